// Building blocks of the page. Text from outside is only ever set as textContent.

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

export function odds(dban) {
  const number = Math.abs(numberOf(dban));
  if (!Number.isFinite(number)) return "certain";
  const ratio = 10 ** (number / 10);
  return `${ratio < 10 ? ratio.toFixed(1) : ratio < 1e6 ? Math.round(ratio).toLocaleString("en") : ratio.toExponential(1)} to 1`;
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

function line(name, value, evidence, largest, kind = "") {
  const row = element("tr", { class: kind },
    element("th", { scope: "row", textContent: name }),
    element("td", { class: "value", textContent: written(value) }),
    element("td", { class: "number", textContent: decibans(evidence) }));
  row.append(bar(numberOf(evidence), largest));
  return row;
}

export function bars(table, explained) {
  const numbers = [...explained.parts.map((part) => numberOf(part.evidence)), numberOf(explained.prior), numberOf(explained.posterior)];
  const largest = Math.max(...numbers.map(Math.abs).filter(Number.isFinite), 1);
  fill(table.tBodies[0], ...explained.parts.map((part) => line(part.name, part.value, part.evidence, largest)));
  fill(table.tFoot,
    line("evidence", `${odds(explained.evidence)}`, explained.evidence, largest, "total"),
    line("prior", `${odds(explained.prior)}`, explained.prior, largest),
    line("answer", `${odds(explained.posterior)}`, explained.posterior, largest, "total"));
}

export function rowText(row) {
  if (row === null) return "[erased]";
  if (typeof row === "string") return row;
  if (Array.isArray(row)) return row.join(", ");
  return Object.entries(row).filter(([, value]) => value !== null && value !== "").map(([name, value]) => `${name}: ${written(value)}`).join("\n");
}

export function download(name, text, type) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const link = element("a", { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

// The cells of a line that was copied from a spreadsheet or a file.
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
