import { get, post, session, teach, upload } from "/page/service.js";
import { $, bars, cells, costs, decibans, download, element, fill, named, numberOf, odds, percent, rowText, written } from "/page/view.js";

const state = { model: null, row: null, explained: null, predicted: null, prior: null, costs: {}, version: 0, lesson: null, offered: false, unsure: null, turn: 0, all: false };
const MOST_FIELDS = 60;
const MOST_FILE = 8 * 2 ** 20;

function report(error) {
  const problem = $("problem");
  problem.hidden = !error;
  if (!error) return;
  if (error.status === 401) {
    $("token-field").hidden = false;
    $("token").focus();
  }
  const remedy = error.problem?.remedy;
  const detail = error.message || String(error);
  problem.textContent = remedy && !detail.includes(remedy) ? `${detail} ${remedy}` : detail;
}

async function attempt(work) {
  try {
    report(null);
    return await work();
  } catch (error) {
    if (!("status" in error)) console.error(error);
    report(error);
    return null;
  }
}

// -- the model ----------------------------------------------------------------------------------------------------
async function loadModel() {
  const first = state.model === null;
  const model = await get(`/model?after=${state.version}`);
  state.model = model;
  state.version = Math.max(state.version, model.version);
  document.title = `${model.name} – deciban`;
  $("title").textContent = model.name;
  $("summary").textContent = summary(model);
  $("origin").textContent = `Learnt from ${model.rows.toLocaleString("en")} rows; lessons and changes here: ${model.lessons.toLocaleString("en")}. Calibration: ${model.calibration.replace("out of date: ", "")}.`;
  $("token-field").hidden = !model.tokens;
  if (first) makeFields(model);
  showClasses(model);
  showUnsureCount(model.unsure);
  if (!$("answer").hidden) showPrior();
}

function summary(model) {
  const names = model.classes.map((one) => named(one.name));
  const what = `Predicts ${model.form === "table" && model.label ? model.label : "the class"}`;
  if (names.length === 2) return `${what} (${names[0]} or ${names[1]}), and shows the evidence.`;
  if (names.length === 1) return `The model has one class, ${names[0]}. Teach a second one.`;
  return `${what}, one of ${names.length} (${names.slice(0, 6).join(", ")}${names.length > 6 ? ", …" : ""}), and shows the evidence.`;
}

function makeFields(model) {
  $("file-kinds").textContent = model.form === "table" ? "a table (CSV) to get all its answers." : model.form === "numbers" ? "this model reads no files." : "a text, or a table (CSV) to get all its answers.";
  if (model.form === "text" || model.form === "mail") {
    const hint = model.form === "mail" ? "Paste a message with its headers" : "Type or paste a text";
    fill($("fields"), element("div", { class: "wide" }, element("label", { for: "text", textContent: hint }), element("textarea", { id: "text" })));
    return;
  }
  const paste = element("div", { class: "wide paste" },
    element("label", { for: "line", textContent: "Paste a line of values, or JSON" }),
    element("input", { id: "line", class: "line", autocomplete: "off", "aria-describedby": "line-note", placeholder: model.columns.slice(0, 4).map((column) => column.name).join(", ") + (model.columns.length > 4 ? ", …" : "") }),
    element("p", { id: "line-note", class: "quiet small", role: "status", hidden: true }));
  paste.querySelector("input").addEventListener("input", pasteLine);
  const fields = model.columns.slice(0, MOST_FIELDS).map((column, at) => {
    const id = `field-${at}`;
    const input = element("input", { id, name: column.name, autocomplete: "off" });
    const parts = [element("label", { for: id, textContent: column.name }), input];
    if (column.kind === "number" || column.kind === "count") input.inputMode = "decimal";
    if (column.names?.length) input.placeholder = `such as ${column.names[0]}`;
    else if (column.values && column.kind !== "text") input.placeholder = column.values.replace(/^(whole )?numbers? from /, "");
    if (column.names) {
      input.setAttribute("list", `${id}-names`);
      parts.push(element("datalist", { id: `${id}-names` }, ...column.names.map((name) => element("option", { value: name }))));
    }
    return element("div", { class: column.kind === "text" ? "wide" : "" }, ...parts);
  });
  const wide = (field) => field.className === "wide"; // text fields come last, so that short fields share lines
  fill($("fields"), paste, ...fields.filter((field) => !wide(field)), ...fields.filter(wide));
}

// Fills the fields from a line, whose values are those of the form, or of all columns of the file that the model was fitted to.
function pasteLine(event) {
  const text = event.target.value.trim();
  const names = state.model.columns.map((column) => column.name);
  const { given } = state.model;
  let values = null, note = "";
  if (text.startsWith("{")) {
    try { values = JSON.parse(text); } catch { note = "This is not complete JSON."; }
  } else if (text) {
    const found = cells(text);
    const read = [names, given].find((some) => some.length === found.length);
    if (read) values = Object.fromEntries(read.map((name, at) => [name, found[at]]));
    else note = lineNote(found.length, names, given);
  }
  if (values) fillFields(values);
  $("line-note").hidden = !note;
  $("line-note").textContent = note;
}

function lineNote(found, names, given) {
  const some = names.slice(0, 12).join(", ") + (names.length > 12 ? ", …" : "");
  const file = given.length === names.length ? "" : `, or the ${given.length} of the file that was learnt, without the class`;
  return `${found} ${found === 1 ? "value" : "values"}; a line has ${names.length} (${some})${file}. The fields are not changed.`;
}

function setRow(row) {
  if ($("text")) { $("text").value = typeof row === "string" ? row : rowText(row); return; }
  $("line").value = "";
  $("line-note").hidden = true;
  fillFields(row);
}

function fillFields(row) {
  state.model.columns.slice(0, MOST_FIELDS).forEach((column, at) => {
    const value = Array.isArray(row) ? row[at] : row[column.name];
    $(`field-${at}`).value = value === null || value === undefined ? "" : value;
  });
}

function readRow() {
  if ($("text")) return $("text").value;
  const values = state.model.columns.slice(0, MOST_FIELDS).map((column, at) => [column, $(`field-${at}`).value.trim()]);
  const typed = values.map(([column, value]) => {
    if (value === "") return null;
    const number = Number(value);
    return (column.kind === "number" || column.kind === "count") && Number.isFinite(number) ? number : value;
  });
  return state.model.form === "numbers" ? typed : Object.fromEntries(values.map(([column], at) => [column.name, typed[at]]));
}

// -- the answer ---------------------------------------------------------------------------------------------------
function options() {
  const given = { after: state.version };
  if (state.prior !== null) given.prior = { [state.prior.name]: state.prior.share };
  return given;
}

function costList() {
  return Object.entries(state.costs).map(([pair, cost]) => [...JSON.parse(pair), cost]);
}

async function ask(row) {
  const given = options();
  const pair = state.pair ? { over: state.pair[0], against: state.pair[1] } : {};
  const [predicted, explained] = await Promise.all([
    post("/predict", { row, ...given }),
    post("/explain", { row, ...given, ...pair }),
  ]);
  return { predicted: predicted.answers[0], explained: explained.answers[0] };
}

async function classify(row, offered = false, scroll = true) {
  state.row = row;
  state.offered = offered;
  state.prior = null;
  state.costs = {};
  state.pair = null;
  state.all = false;
  $("taught").hidden = true;
  const given = await attempt(() => ask(row));
  if (!given) return;
  state.pair = [given.explained.over, given.explained.against];
  Object.assign(state, given);
  showSections(true);
  $("asked").hidden = !given.predicted.asked;
  $("asked").textContent = `This row is in the random sample of one in ${state.model.asked_one_in}. Please teach its class, even if the prediction is right: the live figures are computed from these rows.`;
  showCosts();
  show();
  showTeachButtons();
  decide();
  countLessons();
  if (scroll) showOnScreen($("answer"));
}

// Scrolls to a section that begins in the lower quarter of the screen or below it, as on a phone.
function showOnScreen(section) {
  const { top } = section.getBoundingClientRect();
  if (top < 0 || top > 0.75 * innerHeight) section.scrollIntoView();
}

function showSections(answered) {
  $("answer").hidden = $("teach").hidden = !answered;
  $("steps").hidden = answered;
}

// The value of a part. For a word, this is its count if it is above 1, otherwise nothing.
function valueOf(part) {
  const columns = state.model.form === "table" ? state.model.columns.filter((column) => column.kind === "text") : [];
  const word = state.model.form === "text" || state.model.form === "mail" || columns.some((column) => part.name.startsWith(`${column.name}: `));
  return word && typeof part.value === "number" ? (part.value === 1 ? "" : `× ${written(part.value)}`) : part.value;
}

function showBars() {
  const { form, columns } = state.model;
  const single = (part) => part.kind === "other" || columns.some(({ name }) => part.name === name || part.name.startsWith(`${name}: `));
  $("joint").hidden = form !== "table" || state.explained.parts.every(single);
  $("calibrated").hidden = !state.explained.parts.some((part) => part.kind === "other");
  const more = bars($("bars"), state.explained, state.all, valueOf);
  $("all-parts").hidden = more <= 0;
  $("all-parts").textContent = state.all ? "Show the largest parts only" : "Show all parts";
  $("all-parts").setAttribute("aria-expanded", String(state.all));
}

function show() {
  const { predicted, explained } = state;
  const [best, share] = Object.entries(predicted.probabilities).sort((a, b) => b[1] - a[1])[0];
  $("headline").textContent = `${named(best)}: probability ${percent(share)}`;
  const side = Number(explained.posterior) < 0 || explained.posterior === "-inf" ? explained.against : explained.over;
  $("odds").textContent = `${decibans(explained.posterior)} decibans for ${named(explained.over)} over ${named(explained.against)}: ${odds(explained.posterior)} for ${named(side)}.`;
  $("over").textContent = named(explained.over);
  $("against").textContent = named(explained.against);
  showBars();
  showPrior();
  const shares = Object.entries(predicted.probabilities).sort((a, b) => b[1] - a[1]);
  fill($("shares").tBodies[0], ...shares.slice(0, 50).map(([name, p]) => element("tr", {}, element("th", { scope: "row", textContent: name }), element("td", { class: "number", textContent: percent(p) }))));
  $("shares-fold").hidden = shares.length < 3;
}

function showPrior() {
  const { over } = state.explained;
  for (const name of document.querySelectorAll(".prior-class")) name.textContent = named(over);
  const own = state.model.classes.find((one) => one.name === over)?.prior ?? 0.5;
  const prior = state.prior?.share ?? own;
  const logit = 10 * Math.log10(prior / (1 - prior));
  if (document.activeElement !== $("prior") || state.prior === null) $("prior").value = Number.isFinite(logit) ? logit : 0;
  showPriorValue(`${percent(prior)}${state.prior === null ? " (as learnt)" : ""}`);
}

function showPriorValue(text) {
  $("prior-value").textContent = text;
  $("prior").setAttribute("aria-valuetext", text);
}

async function movePrior() {
  const logit = Number($("prior").value);
  state.prior = { name: state.pair[0], share: 1 / (1 + 10 ** (-logit / 10)) };
  showPriorValue(percent(state.prior.share));
  await refresh();
}

async function refresh() {
  const turn = (state.turn += 1);
  const given = await attempt(() => ask(state.row));
  if (!given || turn !== state.turn) return;
  Object.assign(state, given);
  show();
  await decide();
}

function showCosts() {
  const [over, against] = state.pair;
  const pairs = [[against, over], [over, against]];
  fill($("costs"), ...pairs.map(([truth, decided], at) => {
    const input = element("input", { type: "number", min: "0", step: "any", value: "1", id: `cost-${at}` });
    input.addEventListener("input", () => {
      const cost = Number(input.value);
      if (input.value === "" || !(cost >= 0)) return;
      state.costs[JSON.stringify([truth, decided])] = cost;
      decide();
    });
    return element("label", { for: `cost-${at}` }, `of deciding ${named(decided)} where ${named(truth)} is right`, input);
  }));
}

async function decide() {
  const cost = costList();
  const given = await attempt(() => post("/decide", { row: state.row, ...options(), ...(cost.length ? { cost } : {}) }));
  if (!given) return;
  const made = given.answers[0];
  $("decision").textContent = `Decide ${named(made.label)}: expected cost ${costs(made.expected_cost)}.`;
}

// -- teaching -----------------------------------------------------------------------------------------------------
function classButtons(parent, act, preferred) {
  const shown = state.model.classes.slice(0, 30);
  fill(parent, ...shown.map((one) => {
    const button = element("button", { type: "button", textContent: one.name, "data-class": one.name, class: one.name === preferred ? "main" : "" });
    button.addEventListener("click", () => act(one.name));
    return button;
  }));
}

function showTeachButtons() {
  $("teach-question").textContent = `The prediction is ${named(state.predicted.prediction)}. Which class is correct? Click it, and the model learns it at once.`;
  classButtons($("teach-classes"), teachRow, state.predicted.prediction);
}

async function teachRow(label) {
  if (state.busy) return;
  state.busy = true;
  const before = { explained: state.explained, predicted: state.predicted };
  const lesson = await attempt(() => teach("/learn", { row: state.row, label, offered: state.offered }));
  state.busy = false;
  if (!lesson) return;
  state.version = lesson.id;
  state.lesson = lesson;
  const after = await attempt(() => ask(state.row));
  if (!after) return;
  Object.assign(state, after);
  show();
  showLesson(label, before, after, lesson);
  $("asked").hidden = true;
  await attempt(loadModel);
  showTeachButtons();
  await Promise.all([showUnsure(), showHistory(), showFigures(), decide(), countLessons()]);
}

function showLesson(label, before, after, lesson) {
  $("taught").hidden = false;
  $("undo").disabled = false;
  $("undone").textContent = "";
  const [over, against] = state.pair;
  $("taught-text").textContent = `Learnt as ${named(label)}: ${decibans(before.explained.posterior)} → ${decibans(after.explained.posterior)} decibans for ${named(over)} over ${named(against)}.`;
  const parts = new Map();
  for (const part of before.explained.parts) parts.set(part.name, [numberOf(part.evidence), 0]);
  for (const part of after.explained.parts) parts.set(part.name, [(parts.get(part.name) || [0, 0])[0], numberOf(part.evidence)]);
  const changed = [...parts].map(([name, [was, now]]) => [name, was, now]).filter(([, was, now]) => Math.abs(now - was) >= 0.05)
    .sort((a, b) => Math.abs(b[2] - b[1]) - Math.abs(a[2] - a[1])).slice(0, 6);
  const lines = changed.map(([name, was, now]) => [`evidence of ${name}`, decibans(was), decibans(now)]);
  const [restBefore, restAfter] = [before, after].map(({ explained }, at) => changed.reduce((left, line) => left - line[at + 1], numberOf(explained.evidence)));
  if (Number.isFinite(restBefore) && Number.isFinite(restAfter)) lines.push(["evidence of all other parts", decibans(restBefore), decibans(restAfter)]);
  lines.push(["prior", decibans(before.explained.prior), decibans(after.explained.prior)]);
  lines.push(["answer in decibans", decibans(before.explained.posterior), decibans(after.explained.posterior)]);
  for (const name of [over, against]) lines.push([`probability of ${named(name)}`, percent(before.predicted.probabilities[name] ?? 0), percent(after.predicted.probabilities[name] ?? 0)]);
  fill($("changes"), ...lines.map(([name, was, now]) => element("tr", {}, element("th", { scope: "row", textContent: name }), element("td", { class: "number", textContent: was }), element("td", { class: "number", textContent: now }))));
  $("undo").dataset.id = lesson.id;
}

async function undo(id) {
  const lesson = await attempt(() => teach("/undo", { id }));
  if (!lesson) return;
  state.version = lesson.id;
  await attempt(loadModel);
  if (Number($("undo").dataset.id) === id && !$("taught").hidden) {
    $("undo").disabled = true;
    $("undone").textContent = "Undone: the model is as it was before.";
  }
  if (state.row !== null && !$("answer").hidden) {
    if (state.pair?.some((name) => !state.model.classes.some((one) => one.name === name))) state.pair = null;
    await refresh();
    state.pair = [state.explained.over, state.explained.against];
    showTeachButtons();
    countLessons();
  }
  await Promise.all([showUnsure(), showHistory(), showFigures()]);
}

async function countLessons() {
  const { explained, predicted } = state;
  const other = Object.entries(predicted.probabilities).sort((a, b) => b[1] - a[1])[1];
  $("change").textContent = "";
  if (!other || explained === null) return;
  const row = state.row;
  try {
    const found = await post("/change", { row, to: other[0], after: state.version });
    if (row !== state.row) return;
    $("change").textContent = found.lessons === null ? `Up to 4,096 such lessons would not change this to ${named(other[0])}.` : `About ${found.lessons} such ${found.lessons === 1 ? "lesson" : "lessons"} would change this to ${named(other[0])}.`;
  } catch { /* the estimate is optional: the text stays empty */ }
}

// -- unsure rows --------------------------------------------------------------------------------------------------
function showUnsureCount(rows) {
  $("unsure-count").textContent = rows ? `${rows.toLocaleString("en")} ${rows === 1 ? "row waits" : "rows wait"} for a class.` : "None yet. Upload a table: its unsure rows are collected here.";
}

async function showUnsure() {
  const found = await attempt(() => get(`/unsure?most=1&after=${state.version}`));
  if (!found) return;
  showUnsureCount(found.rows);
  state.unsure = found.next[0] || null;
  $("unsure-next").hidden = !state.unsure;
  if (!state.unsure) return;
  $("unsure-row").textContent = rowText(state.unsure.row);
  $("unsure-row").tabIndex = $("unsure-row").scrollHeight > $("unsure-row").clientHeight ? 0 : -1;  // long rows scroll
  $("unsure-guess").textContent = `Most probable: ${named(state.unsure.prediction)} (${percent(state.unsure.probability)}). Which class is right?`;
  classButtons($("unsure-classes"), teachUnsure, "");
}

async function teachUnsure(label) {
  const row = state.unsure.row;
  const lesson = await attempt(() => teach("/learn", { row, label, offered: true }));
  if (!lesson) return;
  state.version = lesson.id;
  await attempt(loadModel);
  await Promise.all([showUnsure(), showHistory(), showFigures()]);
  if (state.row !== null && !$("answer").hidden) await refresh();
}

// -- tables -------------------------------------------------------------------------------------------------------
async function takeFile(file) {
  if (!file) return;
  if (file.size > MOST_FILE) { report(new Error(`${file.name} has ${(file.size / 2 ** 20).toFixed(1)} MB; at most 8 MB are read here. Use deciban predict for larger files.`)); return; }
  const text = await file.text();
  const table = /\.(csv|tsv)$/i.test(file.name) || file.type === "text/csv";
  if ($("text") && !table) { setRow(text); await classify(text); return; }
  const answers = await attempt(() => upload(text, "text/csv"));
  if (answers === null) return;
  const button = element("button", { type: "button", class: "main", textContent: "Download the answers" });
  const name = `${file.name.replace(/\.[^.]*$/, "")}-answers.csv`;
  button.addEventListener("click", () => download(name, answers.text, "text/csv"));
  $("upload").hidden = false;
  fill($("upload"), element("p", { textContent: `${file.name}: ${answers.rows.toLocaleString("en")} rows answered. Those with a probability below 90 % are under “Unsure rows”.` }), button);
  await showUnsure();
}

// -- classes, history, figures ------------------------------------------------------------------------------------
function showClasses(model) {
  fill($("class-list"), ...model.classes.slice(0, 100).map((one) => element("tr", {},
    element("th", { scope: "row", textContent: one.name }),
    element("td", { class: "number", textContent: one.rows.toLocaleString("en") }),
    element("td", { class: "number", textContent: percent(one.prior) }))));
  const kept = $("rename-was").value;
  fill($("rename-was"), ...model.classes.map((one) => element("option", { value: one.name, textContent: one.name })));
  if (model.classes.some((one) => one.name === kept)) $("rename-was").value = kept;
  fill($("class-names"), ...model.classes.map((one) => element("option", { value: one.name })));
}

async function rename() {
  const lesson = await attempt(() => teach("/classes", { rename: $("rename-was").value, to: $("rename-now").value.trim() }));
  if (!lesson) return;
  $("rename-now").value = "";
  state.version = lesson.id;
  await attempt(loadModel);
  await Promise.all([showHistory(), showUnsure()]);
  if (state.row !== null && !$("answer").hidden) await classify(state.row, state.offered, false);
}

const MOST_OF_ROW = 120;  // characters of a row in the history
const VERBS = { learn: "learnt", unlearn: "unlearnt", correct: "corrected", classes: "", erase: "erased" };

const shortened = (text) => (text.length > MOST_OF_ROW ? `${text.slice(0, MOST_OF_ROW)} …` : text);

function lessonLine(lesson) {
  const what = lesson.kind === "classes" ? `${named(lesson.labels[0])} is shown as ${named(lesson.labels[1])}`
    : lesson.kind === "correct" ? `${named(lesson.was?.[0])} → ${named(lesson.labels[0])}` : `as ${[...new Set(lesson.labels)].map(named).join(", ")}`;
  const rows = lesson.kind === "classes" ? "" : lesson.erased ? "[rows erased]" : shortened(rowText(lesson.rows[0], "; ")) + (lesson.count > 1 ? ` and ${lesson.count - 1} more` : "");
  const flags = [lesson.asked ? "random sample" : "", lesson.offered ? "offered as unsure" : "", lesson.undoes ? `undoes ${lesson.undoes}` : "", lesson.undone ? `undone by ${lesson.undone}` : ""].filter(Boolean).join("; ");
  const when = new Date(lesson.time * 1000).toLocaleString();
  const made = element("li", { id: `lesson-${lesson.id}` },
    element("p", {}, element("b", { textContent: [`Lesson ${lesson.id}:`, VERBS[lesson.kind] ?? lesson.kind, lesson.kind === "erase" ? "" : what].filter(Boolean).join(" ") })),
    rows ? element("p", { class: "small", textContent: rows }) : null,
    element("p", { class: "quiet small", textContent: `${when}${lesson.who ? `, by ${lesson.who}` : ""}${flags ? `; ${flags}` : ""}` }));
  if (!lesson.undone && !lesson.erased && lesson.kind !== "erase") {
    const button = element("button", { type: "button", textContent: "Undo", "aria-label": `Undo lesson ${lesson.id}` });
    button.addEventListener("click", () => undo(lesson.id));
    made.append(button);
  }
  if (lesson.receipt) {
    const button = element("button", { type: "button", textContent: "Receipt", "aria-label": `Download the receipt of lesson ${lesson.id}` });
    button.addEventListener("click", () => download(`receipt-${lesson.id}.json`, JSON.stringify(lesson.receipt, null, 2), "application/json"));
    made.append(button);
  }
  return made;
}

async function showHistory(before = null) {
  const found = await attempt(() => get(`/history?most=10${before ? `&before=${before}` : ""}`));
  if (!found) return;
  const lines = found.lessons.map(lessonLine);
  if (before) $("lessons").append(...lines);
  else fill($("lessons"), ...lines);
  $("history-empty").hidden = $("lessons").children.length > 0;
  $("more").hidden = found.lessons.length < 10;
  $("more").dataset.before = found.lessons.at(-1)?.id ?? "";
}

async function showFigures() {
  const figures = await attempt(() => get("/figures"));
  if (!figures) return;
  $("figures-text").textContent = figures.rows ? `${figures.errors} of ${figures.rows} predictions were wrong: error ${percent(figures.error_rate)}, 95 % interval ${percent(figures.interval[0])} to ${percent(figures.interval[1])}; log loss ${figures.log_loss.toFixed(3)}.` : "No row of the random sample has a lesson yet.";
}

// -- start --------------------------------------------------------------------------------------------------------
function wire() {
  $("row-form").addEventListener("submit", (event) => { event.preventDefault(); const row = readRow(); if (typeof row === "string" && !row.trim()) { report(new Error("Type or paste a text first.")); return; } classify(row); });
  $("clear").addEventListener("click", () => { $("row-form").reset(); if ($("line-note")) $("line-note").hidden = true; showSections(false); state.row = null; report(null); ($("text") || $("line")).focus(); });
  let timer = 0;
  $("prior").addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(movePrior, 40); });
  $("prior-reset").addEventListener("click", () => { state.prior = null; refresh(); });
  $("new-class").addEventListener("submit", (event) => { event.preventDefault(); const name = $("new-class-name").value.trim(); if (name) { $("new-class-name").value = ""; teachRow(name); } });
  $("all-parts").addEventListener("click", () => { state.all = !state.all; showBars(); });
  $("undo").addEventListener("click", () => undo(Number($("undo").dataset.id)));
  $("unsure-look").addEventListener("click", () => { const { row } = state.unsure; setRow(row); classify(row, true); });
  $("rename").addEventListener("submit", (event) => { event.preventDefault(); rename(); });
  $("more").addEventListener("click", () => showHistory($("more").dataset.before));
  $("identity").addEventListener("submit", (event) => { event.preventDefault(); start(); });
  $("who").value = session.who;
  $("who").addEventListener("change", () => { session.who = $("who").value.trim(); });
  $("token").addEventListener("change", () => { session.token = $("token").value.trim(); start(); });
  $("file").addEventListener("change", () => takeFile($("file").files[0]));
  const drop = $("drop");
  for (const name of ["dragover", "dragenter"]) document.addEventListener(name, (event) => { event.preventDefault(); drop.classList.add("over"); });
  for (const name of ["dragleave", "drop"]) document.addEventListener(name, (event) => { event.preventDefault(); drop.classList.remove("over"); });
  document.addEventListener("drop", (event) => takeFile(event.dataTransfer?.files[0]));
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) { session.token = given; history.replaceState(null, "", location.pathname); }
}

async function start() {
  if (await attempt(async () => { await loadModel(); return true; })) await Promise.all([showUnsure(), showHistory(), showFigures()]);
}

wire();
start();
