// Elements and texts of the page. Texts of users and of the model are set as textContent, never as HTML.

export const $ = (id) => document.getElementById(id);

export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "class") made.className = value;
    else if (name.startsWith("aria-") || name === "for" || name === "list" || name === "scope" || name === "data-class") made.setAttribute(name, value);
    else made[name] = value;
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

export function fill(parent, ...children) {
  parent.replaceChildren(...children);
}

export const numberOf = (evidence) => (evidence === "inf" ? Infinity : evidence === "-inf" ? -Infinity : Number(evidence));

export function decibans(value) {
  const number = numberOf(value);
  if (!Number.isFinite(number)) return number > 0 ? "+∞" : "−∞";
  const rounded = number.toFixed(1);
  if (Number(rounded) === 0) return "0.0";
  return number > 0 ? `+${rounded}` : `−${rounded.slice(1)}`;
}

export function percent(share) {
  const p = share * 100;
  if (p > 0 && p < 0.01) return "< 0.01 %";
  if (p < 100 && p > 99.99) return "> 99.99 %";
  return `${p < 1 || p > 99 ? p.toFixed(2) : p.toFixed(1)} %`;
}

const LARGE = new Intl.NumberFormat("en", { notation: "compact", compactDisplay: "long", maximumSignificantDigits: 2 });  // 270 million

export function odds(dban) {
  const number = Math.abs(numberOf(dban));
  if (!Number.isFinite(number)) return "certain";
  const ratio = 10 ** (number / 10);
  if (ratio >= 1e15) return "more than 1,000 trillion to 1";
  return `${ratio < 10 ? ratio.toFixed(1) : ratio < 1e6 ? Math.round(ratio).toLocaleString("en") : LARGE.format(ratio)} to 1`;
}

// Odds with their direction: 2.2 to 1, or 1 to 2.2 if the evidence is against the class.
function direction(dban) {
  const text = odds(dban);
  return numberOf(dban) < 0 && text.endsWith(" to 1") ? `1 to ${text.slice(0, -5)}` : text;
}

export function costs(value) {
  if (value > 0 && value < 1e-6) return "less than 0.000001";
  return value < 0.001 ? String(Number(value.toPrecision(2))) : value.toFixed(3);
}

export function written(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number" && !Number.isInteger(value)) return String(Number(value.toPrecision(6)));
  return String(value);
}

function bar(value, largest) {
  const track = element("div", { class: "track" });
  const share = largest ? Math.min(Math.abs(value) / largest, 1) : 0;
  const mark = element("i", { class: value < 0 ? "against" : "for" });
  mark.style.width = `${(50 * share).toFixed(2)}%`;
  track.append(mark);
  return element("td", { class: "bar", "aria-hidden": "true" }, track);
}

// A name that may be broken after its underscores.
const breakable = (name) => String(name).split("_").flatMap((part, at) => (at ? ["_", document.createElement("wbr"), part] : [part]));

function line(name, value, evidence, largest, kind = "") {
  const row = element("tr", { class: kind },
    element("th", { scope: "row" }, ...breakable(name)),
    element("td", { class: "value", textContent: written(value) }),
    element("td", { class: "number", textContent: decibans(evidence) }));
  row.append(bar(numberOf(evidence), largest));
  return row;
}

const MOST_PARTS = 10;

// The largest MOST_PARTS parts of columns and words, the sum of the smaller ones, then other parts such as calibration.
function partsShown(parts, all) {
  const own = parts.filter((part) => part.kind !== "other");
  const rest = all || own.length <= MOST_PARTS + 2 ? [] : own.slice(MOST_PARTS);
  const sum = rest.reduce((total, part) => total + numberOf(part.evidence), 0);
  const smaller = rest.length ? [{ name: `${rest.length} smaller parts`, value: null, evidence: sum, kind: "sum" }] : [];
  return [...own.slice(0, own.length - rest.length), ...smaller, ...parts.filter((part) => part.kind === "other")];
}

// Shows all parts in a table, or the largest ones; returns how many lines are left out in the second case.
export function bars(table, explained, all, valueOf) {
  const shown = partsShown(explained.parts, all);
  table.classList.toggle("without-values", !shown.some((part) => valueOf(part)));
  const numbers = [...shown.map((part) => part.evidence), explained.evidence, explained.prior, explained.posterior];
  const largest = Math.max(...numbers.map((one) => Math.abs(numberOf(one))).filter(Number.isFinite), 1);
  fill(table.tBodies[0], ...shown.map((part) => line(part.name, valueOf(part), part.evidence, largest, part.kind || "")));
  fill(table.tFoot,
    line("evidence", direction(explained.evidence), explained.evidence, largest, "total"),
    line("prior", direction(explained.prior), explained.prior, largest),
    line("answer", direction(explained.posterior), explained.posterior, largest, "total"));
  return partsShown(explained.parts, true).length - partsShown(explained.parts, false).length;
}

// The name of a class within a sentence; names such as 1 are set in quotes.
export const named = (name) => (/^[\d\s.,+−-]*$/.test(name) ? `“${name}”` : name);

export function rowText(row, between = "\n") {
  if (row === null) return "[erased]";
  if (typeof row === "string") return row;
  if (Array.isArray(row)) return row.join(", ");
  return Object.entries(row).filter(([, value]) => value !== null && value !== "").map(([name, value]) => `${name}: ${written(value)}`).join(between);
}

export function download(name, text, type) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const link = element("a", { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

// Splits a line that was copied from a spreadsheet or a file into cells.
export function cells(text) {
  const delimiter = text.includes("\t") ? "\t" : text.includes(";") ? ";" : ",";
  const found = [];
  let cell = "", quoted = false;
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at];
    if (quoted && character === '"' && text[at + 1] === '"') { cell += '"'; at += 1; }
    else if (character === '"') quoted = !quoted;
    else if (character === delimiter && !quoted) { found.push(cell.trim()); cell = ""; }
    else cell += character;
  }
  found.push(cell.trim());
  return found;
}
