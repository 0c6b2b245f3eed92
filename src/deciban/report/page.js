"use strict";
(() => {
  const data = JSON.parse(document.getElementById("report-data").textContent);
  const at = id => document.getElementById(id);
  const LARGE = 1e9, MINUS = "\u2212";
  const DECIBANS = 10 / Math.LN10;
  const THUMB = 16;  // pixels: the width of the thumb of a slider
  const signed = (x, digits = 1) => {
    if (Math.abs(x) >= LARGE) return x > 0 ? "+∞" : MINUS + "∞";
    const text = Math.abs(x).toFixed(digits);
    return (Number(text) === 0 ? "" : x > 0 ? "+" : MINUS) + text;
  };
  const percent = p => {
    const x = 100 * p;
    if (x > 0 && x < 0.1) return x.toPrecision(1) + " %";
    if (x < 100 && x > 99.9) return (100 - Number((100 - x).toPrecision(1))).toString() + " %";
    return x.toFixed(1) + " %";
  };
  const probability = decibans => 1 / (1 + Math.pow(10, -decibans / 10));
  const element = (name, attributes, text) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  };

  // -- prior and costs: threshold, errors and expected cost -----------------------------------------------------------
  function decisions(scores, prior, ratio) {
    // a miss costs `ratio`, a false alarm 1; the class is decided if the evidence is at least the threshold
    const threshold = DECIBANS * (Math.log1p(-prior) - Math.log(prior) - Math.log(ratio));
    let ones = 0, zeros = 0, missed = 0, alarmed = 0;
    for (const [, one, zero] of scores) { ones += one; zeros += zero; }
    for (const [evidence, one, zero] of scores) if (evidence < threshold) missed += one; else alarmed += zero;
    const cost = (misses, alarms) => prior * ratio * misses / ones + (1 - prior) * alarms / zeros;
    let below = 0, above = zeros, best = cost(0, zeros);
    for (const [, one, zero] of scores) {
      below += one; above -= zero;
      best = Math.min(best, cost(below, above));
    }
    return {threshold, ones, zeros, missed, alarmed, miss: missed / ones, alarm: alarmed / zeros,
            cost: cost(missed, alarmed), alone: Math.min(prior * ratio, 1 - prior), best};
  }

  function decide() {
    const which = data.decide[at("class") ? Number(at("class").value) : 0];
    const prior = probability(Number(at("prior").value)), ratio = Math.pow(10, Number(at("cost").value) / 10);
    const found = decisions(which.scores, prior, ratio);
    const ratioText = ratio >= 1 ? `a missed “${which.name}” costs ${Number(ratio.toPrecision(2))} times a false alarm`
      : `a false alarm costs ${Number((1 / ratio).toPrecision(2))} times a missed “${which.name}”`;
    at("prior-text").textContent = `P(${which.name}) = ${percent(prior)}`;
    at("cost-text").textContent = Math.abs(ratio - 1) < 1e-9 ? "both errors have the same cost" : ratioText;
    at("prior").setAttribute("aria-valuetext", percent(prior));
    at("cost").setAttribute("aria-valuetext", at("cost-text").textContent);
    const shown = {
      threshold: [signed(found.threshold) + " dban", `decide “${which.name}” from this evidence on`],
      missed: [percent(found.miss), `${found.missed.toLocaleString("en")} of ${found.ones.toLocaleString("en")} “${which.name}” rows`],
      alarms: [percent(found.alarm), `${found.alarmed.toLocaleString("en")} of ${found.zeros.toLocaleString("en")} other rows`],
      expected: [found.cost.toPrecision(3), "a row, in costs of a false alarm"],
      alone: [found.alone.toPrecision(3), "a row, if the prior alone decides"],
      best: [found.best.toPrecision(3), "a row, at the best threshold for these rows"],
    };
    for (const [name, [value, remark]] of Object.entries(shown)) {
      at("d-" + name).firstChild.textContent = value;
      at("d-" + name).lastChild.textContent = remark;
    }
    for (const line of document.querySelectorAll("[data-threshold]")) {
      const [left, low, perUnit, right, own] = line.dataset.threshold.split(" ").map(Number);
      const x = Math.min(right, Math.max(left, left + (found.threshold - low) * perUnit));
      line.setAttribute("x1", x); line.setAttribute("x2", x);
      line.toggleAttribute("hidden", own !== (at("class") ? Number(at("class").value) : 0));
    }
    window.report.decision = found;
  }

  function startDecisions() {
    if (!data.decide || !data.decide.length) return;
    const choose = () => {
      const which = data.decide[at("class") ? Number(at("class").value) : 0];
      at("prior").value = which.prior; at("cost").value = which.cost;
      for (const figure of document.querySelectorAll("[data-histogram]"))
        figure.hidden = Number(figure.dataset.histogram) !== data.decide.indexOf(which);
      decide();
    };
    if (at("class")) at("class").addEventListener("change", choose);
    for (const id of ["prior", "cost"]) at(id).addEventListener("input", decide);
    at("reset").addEventListener("click", choose);
    choose();
  }

  // -- nomogram --------------------------------------------------------------------------------------------------------
  function startNomogram() {
    const given = data.nomogram;
    if (!given) return;
    const over = at("over"), against = at("against");
    const rows = [...document.querySelectorAll(".scale")].map(row => ({
      row, column: given.columns[Number(row.dataset.column)], control: row.querySelector("input, select"),
      output: row.querySelector("output"), curve: row.querySelector("polyline"), mark: row.querySelector(".mark"),
    }));
    const pair = () => over ? [Number(over.value), Number(against.value)] : [1, 0];
    const evidence = (column, i, [a, b]) => column.decibans[i][a] - column.decibans[i][b];
    const places = () => rows.map(({control}) => Number(control.value));
    const joint = given.joint && jointEvidence(given.joint);
    const live = Boolean(given.pairs || joint);  // the evidence of a column depends on the others

    // evidence of pairs of columns and of averaged one-dependence estimators in decibans, and that of each pair
    function ofPairs([a, b], at) {
      const {tables, parents, averaged} = given.pairs;
      const ofParent = [a, b].map(() => new Array(parents).fill(0));
      const parts = [];
      let sum = 0;
      const levelOf = number => {
        if (number < 0) return 0;  // fixed at its typical value
        return at[number] < 0 ? -1 : given.columns[number].levels[at[number]];
      };
      for (const {parents: both, columns, weight, table} of tables) {
        const [one, two] = columns.map(levelOf);
        if (one < 0 || two < 0) continue;
        const nats = [a, b].map(k => table[one][two][k]);
        nats.forEach((e, side) => { for (const parent of both) ofParent[side][parent] += e; });
        const own = DECIBANS * weight * (nats[0] - nats[1]);
        sum += own;
        if (weight && columns.every(number => number >= 0)) parts.push([own, columns]);
      }
      if (averaged) {
        const mean = each => { const most = Math.max(...each);
          return most + Math.log(each.reduce((total, e) => total + Math.exp(e - most), 0) / parents); };
        sum += DECIBANS * averaged * (mean(ofParent[0]) - mean(ofParent[1]));
      }
      return {sum, parts};
    }

    // the evidence of a row in decibans, and that of each term of several columns
    function total(sides, at, moved) {
      const [a, b] = sides;
      let sum = given.base[a] - given.base[b], seen = given.always;
      at.forEach((i, number) => {
        const column = given.columns[number];
        sum += i < 0 ? column.missing[a] - column.missing[b] : evidence(column, i, sides);
        if (i >= 0) seen = true;
      });
      const pairs = given.pairs ? ofPairs(sides, at) : null;
      const terms = joint ? joint.evidence(sides, at, moved) : [];
      sum += terms.reduce((all, e) => all + e, pairs ? pairs.sum : 0);
      return {sum: seen ? sum + given.offsets[a] - given.offsets[b] : sum, pairs, terms};
    }

    function drawCurves() {
      const sides = pair(), at = places();
      if (joint) joint.start(at);
      const now = live ? total(sides, at).sum : 0;
      const curves = rows.map(({column}, number) => column.values.map((_, i) => {
        if (!live) return evidence(column, i, sides);
        const moved = at.slice();
        moved[number] = i;
        return total(sides, moved, number).sum - now;
      }));
      const most = Math.max(1, ...curves.flat().map(e => Math.min(200, Math.abs(e))));
      rows.forEach(({column, curve}, number) => {
        const last = column.values.length - 1;
        curve.setAttribute("points", curves[number].map((one, i) => {
          const e = Math.max(-most, Math.min(most, one));
          return `${(100 * i / Math.max(1, last)).toFixed(1)},${(10 - 9 * e / most).toFixed(2)}`;
        }).join(" "));
      });
    }

    function add() {
      const sides = pair(), [a, b] = sides, at_ = places();
      if (joint) joint.start(at_);
      const {sum, pairs, terms} = total(sides, at_);
      for (const {column, control, output, mark} of rows) {
        const i = Number(control.value), missing = i < 0;
        const own = missing ? column.missing[a] - column.missing[b] : evidence(column, i, sides);
        const value = missing ? "missing" : column.values[i];
        output.textContent = column.own && !missing ? `${value}: ${signed(own)}` : value;
        if (control.type === "range") control.setAttribute("aria-valuetext", column.own && !missing ? `${value}, ${signed(own)} decibans` : value);
        const x = missing ? -10 : 100 * i / Math.max(1, column.values.length - 1);
        mark.setAttribute("x1", x); mark.setAttribute("x2", x);
      }
      if (pairs) {
        pairs.parts.sort((one, two) => Math.abs(two[0]) - Math.abs(one[0]));
        const names = columns => columns.map(number => rows[number].row.querySelector("label").textContent).join(" with ");
        const most = pairs.parts.slice(0, 3).filter(part => Math.abs(part[0]) >= 0.05).map(([e, columns]) => `${names(columns)} ${signed(e)}`);
        at("nomogram-pairs").textContent = `${signed(pairs.sum)} dban` + (most.length ? `; most: ${most.join(", ")}` : "");
      }
      terms.forEach((e, number) => { at(`nomogram-term-${number}`).textContent = `${signed(e)} dban`; });
      const prior = Number(at("nomogram-prior").value);
      const names = given.classes;
      at("nomogram-prior-text").textContent = `${signed(prior)} dban, ${percent(probability(prior))}`;
      at("nomogram-sum").textContent = `${signed(sum)} dban for “${names[a]}” over “${names[b]}”; with the prior ${signed(sum + prior)} dban`;
      at("nomogram-probability").textContent = percent(probability(sum + prior));
      window.report.nomogram = {sum, prior, posterior: sum + prior, terms};
    }

    let waiting = false;  // curves are drawn once per frame
    function changed() {
      add();
      if (!live || waiting) return;
      waiting = true;
      requestAnimationFrame(() => { waiting = false; drawCurves(); });
    }

    function chooseClasses(changed) {
      if (over.value === against.value) {
        const other = changed === over ? against : over;
        other.value = String((Number(changed.value) + 1) % given.classes.length);
      }
      const [a, b] = pair();
      at("nomogram-prior").value = given.prior[a] - given.prior[b];
      drawCurves();
      add();
    }
    // align the curve with the slider: the middle of its thumb stays half a thumb away from both ends
    for (const {row, control} of rows) {
      if (control.type !== "range") continue;
      const least = Number(control.min), first = -least / Math.max(1, Number(control.max) - least);
      const inner = `(100% - ${THUMB}px)`;
      row.querySelector("svg").style.cssText = `margin-left: calc(${THUMB / 2}px + ${first} * ${inner}); width: calc(${1 - first} * ${inner})`;
    }
    for (const {control} of rows) control.addEventListener("input", changed);
    at("nomogram-prior").addEventListener("input", add);
    if (over) for (const select of [over, against]) select.addEventListener("change", () => chooseClasses(select));
    drawCurves();
    add();
  }

  // evidence of several columns together: cosines of sums over columns, and polynomials of degree two
  function unpacked(text) {
    const bytes = Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
    return new Float64Array(bytes.buffer);
  }

  function jointEvidence({terms, waves}) {
    for (const term of terms) for (const name of ["phases", "linear", "quadratic"])
      if (name in term) term[name] = unpacked(term[name]);
    for (const wave of waves) for (const column of wave) if (column) column.vectors = unpacked(column.vectors);
    const vector = (column, i, M) => column.numbers ? column.vectors : column.vectors.subarray(i * M, (i + 1) * M);
    const missing = (column, i) => !column || i < 0 || Boolean(column.absent && column.absent[i]);
    const addVector = (sum, column, i, sign) => {
      if (missing(column, i)) return;
      const own = vector(column, i, sum.length), z = sign * (column.numbers ? column.numbers[i] : 1);
      for (let m = 0; m < sum.length; m++) sum[m] += z * own[m];
    };
    const sizes = waves.map((_, w) => terms.find(term => term.waves === w).phases.length);
    let begun = [], sums = [];

    // sums over the columns at the values that are set; `movedSums` changes the value of one column
    function start(at) {
      begun = at;
      sums = waves.map((wave, w) => {
        const sum = new Float64Array(sizes[w]);
        wave.forEach((column, number) => addVector(sum, column, at[number], 1));
        return sum;
      });
    }
    function movedSums(at, moved) {
      if (moved === undefined) return sums;
      return waves.map((wave, w) => {
        const sum = sums[w].slice();
        addVector(sum, wave[moved], begun[moved], -1);
        addVector(sum, wave[moved], at[moved], 1);
        return sum;
      });
    }
    function cosines(term, [a, b], at, sum) {
      if (!term.seen && waves[term.waves].every((column, number) => missing(column, at[number]))) return 0;
      const M = sum.length, {phases, linear, constant, factor} = term;
      let e = constant[a] - constant[b];
      for (let m = 0; m < M; m++) {
        const x = Math.cos(factor * sum[m] + phases[m]) * Math.SQRT2 * 1024;
        e += (linear[a * M + m] - linear[b * M + m]) * Math.round(x) / 1024;
      }
      return e;
    }
    function polynomial({columns, numbers, quadratic, linear, constant}, [a, b], at) {
      const t = columns.map((number, d) => at[number] < 0 ? null : numbers[d][at[number]]), D = t.length;
      if (t.includes(null)) return 0;
      let e = constant[a] - constant[b];
      for (let d = 0; d < D; d++) {
        e += (linear[a * D + d] - linear[b * D + d]) * t[d];
        for (let f = 0; f < D; f++) e += (quadratic[(a * D + d) * D + f] - quadratic[(b * D + d) * D + f]) * t[d] * t[f];
      }
      return e;
    }
    function evidence(sides, at, moved) {
      const now = movedSums(at, moved);
      return terms.map(term => DECIBANS *
        (term.kind === "cosines" ? cosines(term, sides, at, now[term.waves]) : polynomial(term, sides, at)));
    }
    return {start, evidence};
  }

  // -- words -----------------------------------------------------------------------------------------------------------
  function startWords() {
    if (!data.words || !data.words.length) return;
    const body = at("word-rows"), SHOWN = 40;
    const largest = Math.max(1, ...data.words.flatMap(set => set.words.slice(0, 300).flatMap(word => word.slice(2).map(Math.abs))));
    function show() {
      const set = data.words[at("word-column") ? Number(at("word-column").value) : 0];
      const k = Number(at("word-class").value), wanted = at("word-search").value.trim().toLowerCase();
      const score = word => word[2 + k] * Math.log1p(word[1]);
      const found = set.words.filter(word => word[0].toLowerCase().includes(wanted));
      if (wanted) found.sort((a, b) => Math.abs(score(b)) - Math.abs(score(a)));
      else found.sort((a, b) => score(b) - score(a));
      body.replaceChildren(...found.slice(0, SHOWN).map(word => {
        const row = element("tr"), value = word[2 + k];
        row.append(element("th", {scope: "row"}, word[0]), element("td", {class: "n"}, word[1].toLocaleString("en")),
                   element("td", {class: "n"}, signed(value)));
        const cell = element("td"), track = document.createElementNS("http://www.w3.org/2000/svg", "svg");
        track.setAttribute("class", "track"); track.setAttribute("viewBox", "0 0 100 10");
        track.setAttribute("preserveAspectRatio", "none"); track.setAttribute("aria-hidden", "true");
        const bar = document.createElementNS("http://www.w3.org/2000/svg", "rect"), share = 50 * Math.min(1, Math.abs(value) / largest);
        for (const [key, one] of Object.entries({x: value < 0 ? 50 - share : 50, y: 1, width: share, height: 8})) bar.setAttribute(key, one);
        bar.setAttribute("class", value < 0 ? "against" : "for");
        track.append(bar); cell.append(track); row.append(cell);
        return row;
      }));
      at("word-count").textContent = `${found.length.toLocaleString("en")} words` +
        (found.length > SHOWN ? `, of which ${SHOWN} are shown` : "") + `; the page holds ${set.words.length.toLocaleString("en")} of ${set.total.toLocaleString("en")}`;
    }
    for (const id of ["word-column", "word-class"]) if (at(id)) at(id).addEventListener("change", show);
    at("word-search").addEventListener("input", show);
    show();
  }

  window.report = {};
  startDecisions();
  startNomogram();
  startWords();
})();
