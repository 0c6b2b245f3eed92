"""Sections of columns: evidence of features, densities in each class, the nomogram, and words.

In a nomogram, evidence of several columns together is packed for the script of the page, which computes it for the
values that are set. Columns that the page does not show stay at their typical values: their evidence is added to the
constants.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from deciban.evidence.explanation import decibans_text, short
from deciban.evidence.scores import convert
from deciban.families.product import expert_columns
from deciban.model.explain import expert_label
from deciban.model.nomogram import CosineTerm, JointTerm, Pairs, PolynomialTerm, Waves
from deciban.report.drawing import (
    Frame,
    bar_cell,
    figure,
    legend_of,
    number_text,
    percent,
    rounded,
    table_of,
    text_of,
    ticks,
    value_text,
)
from deciban.report.findings import block_models
from deciban.report.material import (
    MOST_CLASSES,
    MOST_CURVES,
    MOST_LISTED,
    NUMBERS,
    ColumnScale,
    Material,
    Scales,
    shortened,
)
from deciban.statistics import Array

MOST_FEATURES = 20
FIGURE_BYTES = 220_000  # most bytes for figures of densities
UNEVEN = 10.0  # bins are drawn with equal widths if the widest is wider than this many median widths


def features_section(material: Material) -> str:
    """A table of the features with the most evidence."""
    if not material.features:
        return ""
    largest = max(abs(one.nats) for one in material.features) or 1.0
    rows = [
        (
            short(one.name, 60),
            decibans_text(one.nats),
            bar_cell(one.nats, largest),
            percent(one.accuracy),
            one.favours or "",
        )
        for one in material.features[:MOST_FEATURES]
    ]
    note = "Mean evidence for a row's own class over the most probable other class, over a sample of the rows."
    experts = {expert_label(family, key) for family, key in expert_columns(material.clf.model_.family)}
    if any(one.name in experts for one in material.features[:MOST_FEATURES]):
        note += (
            " A line with several columns is the evidence of their values together, beyond that of each column alone."
        )
    head = ("feature", "decibans a row", "", "rows it predicts correctly", "mostly for")
    table = table_of(head, rows, "Features by mean evidence", (1, 3))
    return f"<p>{note}</p><div class='features'>{table}</div>"


def columns_section(material: Material, share: float) -> str:
    """The family of each block, and densities of columns, as many as `share` of `FIGURE_BYTES` holds."""
    model = material.clf.model_
    ranked = {one.name: place for place, one in enumerate(material.features)}
    columns = sorted(material.scales.columns, key=lambda one: ranked.get(one.name, len(ranked)))
    figures, used = [], 0
    names = model.classes[:MOST_CURVES]
    for number, column in enumerate(columns):
        drawn = _density_figure(column, names, f"column-{number}")
        used += len(drawn)
        if used > share * FIGURE_BYTES:
            break
        figures.append(drawn)
    left = len(columns) - len(figures)
    note = (
        f"<p class='quiet'>The densities of {left:,} more columns are not drawn, to keep the page small.</p>"
        if left
        else ""
    )
    rows = []
    schema = (
        {}
        if model.reader.schema is None
        else {part: one for one in model.reader.schema.columns for part in one.features}
    )
    for block in block_models(model)[:MOST_LISTED]:
        name = ", ".join(block.features[:6]) + (
            f" and {len(block.features) - 6} more" if len(block.features) > 6 else ""
        )
        known = schema.get(block.features[0])
        missing = "" if known is None or not known.missing else percent(known.missing / known.rows)
        rows.append((name, "" if known is None else known.kind, missing, block.model))
    table = table_of(("columns", "kind", "missing", "family"), rows, "Families", (2,))
    legend = legend_of(names) if figures else ""
    more = (
        f"<p class='quiet'>Curves of the first {MOST_CURVES} classes.</p>" if len(model.classes) > MOST_CURVES else ""
    )
    title = "<h3>Densities of each class</h3>" if figures else ""
    return f"{table}{title}{legend}{more}<div class='figures'>{''.join(figures)}</div>{note}"


def _top(column: ColumnScale, heights: Array) -> float:
    """The height of a figure of densities; narrow peaks may be cut off."""
    if not column.edges:
        return float(np.quantile(heights[np.isfinite(heights)], 0.995))
    x = np.array(column.values, dtype=float)
    along, curves = bin_steps(column.edges, x, heights)
    even = np.linspace(x[0], x[-1], 400)
    return float(max(np.quantile(np.interp(even, along, curve), 0.99) for curve in curves.T))


def bin_steps(edges: Sequence[float], x: Array, heights: Array) -> tuple[Array, Array]:
    """Corners of the densities of bins: both ends of each bin, with the density at a value within it."""
    ends = np.array(edges)
    within = np.searchsorted(x, ends[:-1])  # the first value in each bin
    return np.repeat(ends, 2)[1:-1], np.repeat(heights[within], 2, axis=0)


def uneven(edges: Sequence[float]) -> bool:
    """Whether bins differ so much in width that their densities cannot be read from one figure."""
    widths = np.diff(edges)
    return len(widths) > 0 and bool(widths.max() > UNEVEN * np.median(widths))


def bin_probabilities(edges: Sequence[float], x: Array, heights: Array) -> Array:
    """The probability of each bin in each class, shape (bins, K)."""
    _, corners = bin_steps(edges, x, heights)
    return corners[::2] * np.diff(edges)[:, None]


def _edge_texts(edges: Sequence[float]) -> list[str]:
    """Edges of bins with about three digits of the usual width: the first edge is just below the smallest value."""
    digits = 2 - int(np.floor(np.log10(np.median(np.diff(edges)))))
    rounded = [value_text(round(edge, digits) + 0.0) for edge in edges]
    return rounded if len(set(rounded)) == len(edges) else [value_text(edge) for edge in edges]


def _ranges_figure(column: ColumnScale, names: Any, ident: str, heights: Array) -> str:
    """The probabilities of bins, drawn with the same width."""
    shares = bin_probabilities(column.edges, np.array(column.values, dtype=float), heights)
    m, K = shares.shape
    top = max(float(shares.max()) * 1.08, 1e-300)
    frame = Frame((0.0, float(m)), (0.0, top), 360, 200)
    ends = _edge_texts(column.edges)
    step = max(1, int(np.ceil(m / 6)))
    labels = [(float(i), short(ends[i], 8)) for i in range(0, m + 1, step)]
    along = np.repeat(np.arange(m + 1.0), 2)[1:-1]
    body = "".join(frame.line(along, np.repeat(shares[:, k], 2), k) for k in range(K))
    axes = frame.axes(f"{column.name}, in ranges", "probability", labels, ticks(0.0, top, 4))
    rows = [(f"{low} to {high}", *map(percent, line)) for low, high, line in zip(ends[:-1], ends[1:], shares.tolist())]
    name = short(column.name, 60)
    table = table_of(("range", *map(str, names)), rows, f"{name}: probability of each range", tuple(range(1, K + 1)))
    described = f"The probability of each range of {name} in each class; all ranges have the same width."
    return figure(frame, axes + body, name, described, table, ident)


def _density_figure(column: ColumnScale, names: Any, ident: str) -> str:
    K = len(names)
    heights = np.exp(np.clip(column.log_density[:, :K], -700, 700))
    if column.kind == "number" and uneven(column.edges):
        return _ranges_figure(column, names, ident, heights)
    top = _top(column, heights) if column.kind == "number" else float(heights.max())
    top = max(top * 1.08, 1e-300)
    discrete = column.kind != "number"
    ylabel = "probability" if discrete else "density"
    head = (column.kind if column.kind == "category" else "value", *map(str, names))
    m = len(column.values)
    if discrete:
        frame = Frame((-0.6, m - 0.4), (0.0, top), 360, 200)
        width = min((frame.width - frame.left - 10) / m * 0.8 / K, 26.0)
        body = "".join(
            frame.bar(i, float(heights[i, k]), width, k, (k - (K - 1) / 2) * width) for i in range(m) for k in range(K)
        )
        step = max(1, int(np.ceil(m / 8)))
        letters = max(3, 44 // min(m, 8))
        labels = [(float(i), short(value_text(column.values[i]), letters)) for i in range(0, m, step)]
        axes = frame.axes(column.name, ylabel, labels, ticks(0.0, top, 4))
        at = range(m)
    else:
        x = np.array(column.values, dtype=float)
        frame = Frame((float(x[0]), float(x[-1])), (0.0, top), 360, 200)
        along, curves = bin_steps(column.edges, x, heights) if column.edges else (x, heights)
        body = "".join(frame.line(along, curves[:, k], k) for k in range(K))
        axes = frame.axes(column.name, ylabel, ticks(*frame.x), ticks(0.0, top, 4))
        at = range(0, m, max(1, m // 8))
    rows = [(value_text(column.values[i]), *(number_text(float(h)) for h in heights[i])) for i in at]
    table = table_of(head, rows, f"{short(column.name, 40)}: {ylabel} in each class", tuple(range(1, K + 1)))
    return figure(
        frame,
        axes + body,
        short(column.name, 60),
        f"The {ylabel} of {short(column.name, 60)} in each class.",
        table,
        ident,
    )


# -- evidence of several columns together ------------------------------------------------------------------------------
JOINT_NUMBERS = 30_000  # most numbers of eight bytes in all formulas of a page
LARGEST = 200.0  # decibans; stronger evidence counts as this when columns are ordered


def by_range_of_evidence(scales: Scales) -> list[ColumnScale]:
    """Return the columns with scales; those that change the evidence most, at typical values of the others, come first."""
    columns = [one for one in scales.columns if one.decibans is not None]
    unit, D = convert(1.0, "decibans"), 1 + max((one.position for one in columns), default=0)
    typical = np.full(D, -1)
    typical[[one.position for one in columns]] = [one.middle for one in columns]
    spread = []
    for one in columns:
        places = np.tile(typical, (len(one.values), 1))
        places[:, one.position] = np.arange(len(one.values))
        found = np.asarray(one.decibans) + unit * sum(term.evidence(places) for term in scales.terms)
        found = np.clip(found - found[:, :1], -LARGEST, LARGEST)
        spread.append(float(np.ptp(found, axis=0).max()))
    return [columns[i] for i in np.argsort(-np.array(spread), kind="stable")]


def room_for(columns: Sequence[ColumnScale], terms: Sequence[JointTerm], K: int, share: float) -> int:
    """Return the largest number of columns, from the first on, whose formulas fit into `share` of the page's limit."""
    each = {id(term.waves): term.waves for term in terms if isinstance(term, CosineTerm)}.values()
    used, inside = 0.0, [0] * len(terms)
    for n, one in enumerate(columns):
        vectors = [waves.vectors[one.position] for waves in each if one.position in waves.vectors]
        used += sum(min(len(own), len(one.values)) * own.shape[1] for own in vectors)
        inside = [size + (one.position in term.columns) for size, term in zip(inside, terms)]
        squares = sum(K * size**2 for size, term in zip(inside, terms) if isinstance(term, PolynomialTerm))
        if used + squares > share * JOINT_NUMBERS:
            return n
    return len(columns)


def packed_terms(
    terms: Sequence[JointTerm], shown: Sequence[ColumnScale], fixed: Sequence[ColumnScale], K: int
) -> dict[str, Any]:
    """Return the formulas for JSON: arrays of numbers as base64, columns by their numbers on the page."""
    waves: list[Waves] = []
    found = []
    for term in terms:
        if isinstance(term, PolynomialTerm):
            found.append(_polynomial(term, shown, fixed, K))
            continue
        if not any(term.waves is one for one in waves):
            waves.append(term.waves)
        place = next(at for at, one in enumerate(waves) if one is term.waves)
        found.append(_cosines(term, place, fixed, K))
    return {"terms": found, "waves": [[_wave(one, column) for column in shown] for one in waves]}


def _wave(waves: Waves, column: ColumnScale) -> dict[str, Any] | None:
    j, m = column.position, len(column.values)
    if j not in waves.vectors:
        return None
    if j in waves.numbers:
        return {"numbers": [float(z) for z in waves.numbers[j][:m]], "vectors": packed(waves.vectors[j])}
    vectors = waves.vectors[j][:m]
    absent = np.asarray(np.isnan(vectors).any(axis=1, keepdims=True))
    return {"absent": absent[:, 0].astype(int).tolist(), "vectors": packed(np.where(absent, 0.0, vectors))}


def _cosines(term: CosineTerm, waves: int, fixed: Sequence[ColumnScale], K: int) -> dict[str, Any]:
    phases, seen = term.phases.copy(), False
    for column in fixed:
        if column.position in term.waves.vectors:
            own = term.waves.of(column.position, np.array([column.middle]))[0]
            seen = seen or not np.isnan(own[0])
            phases += term.factor * np.nan_to_num(own)
    held = {"phases": packed(phases), "linear": packed(term.linear[:K]), "constant": term.constant[:K].tolist()}
    return {"label": term.label, "kind": "cosines", "waves": waves, "factor": term.factor, "seen": seen, **held}


def _polynomial(
    term: PolynomialTerm, shown: Sequence[ColumnScale], fixed: Sequence[ColumnScale], K: int
) -> dict[str, Any]:
    place = {j: d for d, j in enumerate(term.columns)}
    numbers = [number for number, column in enumerate(shown) if column.position in place]
    free = [place[shown[number].position] for number in numbers]
    rest = [(place[column.position], column.middle) for column in fixed if column.position in place]
    held = [d for d, _ in rest]
    t = np.array([term.numbers[middle, d] for d, middle in rest])
    A, b, c = term.quadratic[:K], term.linear[:K], term.constant[:K]
    constant = c + b[:, held] @ t + np.einsum("d,kde,e->k", t, A[:, held][:, :, held], t)
    linear = b[:, free] + 2 * np.einsum("kde,e->kd", A[:, free][:, :, held], t)
    values = [
        [None if np.isnan(x) else float(x) for x in term.numbers[: len(shown[number].values), d]]
        for number, d in zip(numbers, free)
    ]
    return {
        "label": term.label,
        "kind": "polynomial",
        "columns": numbers,
        "numbers": values,
        "quadratic": packed(A[:, free][:, :, free]),
        "linear": packed(linear),
        "constant": constant.tolist(),
    }


def packed(numbers: Array) -> str:
    """Return numbers of eight bytes each, row by row, as base64.

    >>> packed(np.array([[1.0]]))
    'AAAAAAAA8D8='
    """
    return base64.b64encode(np.ascontiguousarray(numbers, dtype="<f8").tobytes()).decode()


# -- the nomogram ------------------------------------------------------------------------------------------------------
WITH_JOINT_EVIDENCE = (
    "Set the value of each column. The number beside it is the evidence of this column alone. Its curve shows how "
    "the evidence of the whole row changes with this value while the other values stay the same: above the middle "
    "line, the evidence for the class is stronger than at the value that is set. The evidence of several columns "
    "together depends on all their values. All evidence is added; the sum and the prior give the probability."
)
BY_COLUMN = (
    "Set the value of each column. Its curve shows the evidence of every value; above the middle line, it is "
    "evidence for the class. The evidence of all columns is added; the sum and the prior give the probability."
)


def nomogram_section(material: Material, data: dict[str, Any], share: float) -> str:
    """Scales of the columns, whose numbers go into `data`; the script adds the evidence of the values that are set."""
    scales, clf = material.scales, material.clf
    columns = [one for one in scales.columns if one.decibans is not None]
    if scales.reason or not columns or len(clf.classes_) < 2:
        why = scales.reason or "no column has a scale"
        return "" if not scales.columns else f"<p>There is no nomogram: {escape(why)}.</p>"
    K = min(len(clf.classes_), MOST_CURVES)
    columns = by_range_of_evidence(scales)
    most = max(5, int(share * NUMBERS / K / max(len(one.values) for one in columns)))
    most = min(most, room_for(columns, scales.terms, K, share))
    left = columns[most:]
    columns = columns[:most]
    if not columns:
        return "<p>There is no nomogram: the formulas of several columns together are too large for this page.</p>"
    offsets = scales.offsets[:K]
    base = scales.base[:K].copy()
    for one in left:
        base += one.decibans[one.middle, :K]  # type: ignore[index]
    pairs: dict[str, Any] | None = None
    levels: dict[int, list[int]] = {}
    if scales.pairs is not None:
        pairs, levels = _pair_tables(scales.pairs, columns, left, K)
        numbers = sum(np.size(one["table"]) for one in pairs["tables"])
        if numbers > 2 * share * NUMBERS:
            return f"<p>There is no nomogram: the tables of pairs of columns would hold {numbers:,} numbers.</p>"
    names = [short(name, 40) for name in clf.classes_[:K]]
    prior = convert(np.maximum(clf.log_prior()[:K], -300.0), "decibans")
    data["nomogram"] = {
        "classes": names,
        "prior": [rounded(p, 4) for p in prior],
        "offsets": [rounded(o, 6) for o in offsets],
        "base": [rounded(b, 6) for b in base],
        "always": bool(left or base.any() or any(one.missing is not None and one.missing.any() for one in columns)),
        "pairs": pairs,
        "joint": packed_terms(scales.terms, columns, left, K) if scales.terms else None,
        "columns": [
            {
                "values": [value_text(value) for value in one.values],
                "decibans": [[rounded(e, 4) for e in row[:K]] for row in np.asarray(one.decibans)],
                "missing": None if one.missing is None else [rounded(e, 4) for e in one.missing[:K]],
                "own": bool(np.asarray(one.decibans).any()),
                "levels": levels.get(one.position),
            }
            for one in columns
        ],
    }
    rows = "".join(_scale_row(number, one) for number, one in enumerate(columns))
    choice = _choice_of_classes(names) if len(clf.classes_) > 2 else ""
    start = rounded(prior[1] - prior[0], 2)
    notes = []
    if left:
        notes.append(f"{len(left):,} more columns stay at their typical values.")
    if scales.left_out:
        notes.append(f"Columns without a scale, which count as missing here: {shortened(scales.left_out)}.")
    if len(clf.classes_) > K:
        notes.append(f"Only the first {K} classes are shown.")
    several = [("nomogram-pairs", "pairs of columns")] if pairs is not None else []
    several += [(f"nomogram-term-{number}", term.label) for number, term in enumerate(scales.terms)]
    listed = "".join(f"<li><b>{escape(label)}:</b> <span id='{ident}'></span></li>" for ident, label in several)
    together = f"<h3>Several columns together</h3><ul class='notes'>{listed}</ul>" if several else ""
    text = WITH_JOINT_EVIDENCE if several else BY_COLUMN
    return (
        f"<p>{text}</p>"
        f"<div class='controls'>{choice}<div><label for='nomogram-prior'>Prior odds</label>"
        f"<input id='nomogram-prior' type='range' min='-60' max='60' step='any' value='{start}'>"
        f"<output id='nomogram-prior-text' for='nomogram-prior'></output></div></div>"
        "<div class='sum' role='status'><span id='nomogram-sum'></span> → P = <span id='nomogram-probability'></span></div>"
        f"{rows}{together}"
        f"<p class='quiet'>{escape(' '.join(notes))}</p>"
    )


def _choice_of_classes(names: Sequence[str]) -> str:
    """Two controls: the class that the evidence is for, and the class that it is against."""
    choice = ""
    for ident, text, first in (("over", "Evidence for", 1), ("against", "over", 0)):
        options = "".join(
            f'<option value="{k}"{" selected" if k == first else ""}>{escape(name)}</option>'
            for k, name in enumerate(names)
        )
        choice += f'<div><label for="{ident}">{text}</label><br><select id="{ident}">{options}</select></div>'
    return choice


def _pair_tables(
    pairs: Pairs, shown: list[ColumnScale], fixed: list[ColumnScale], K: int
) -> tuple[dict[str, Any], dict[int, list[int]]]:
    """Tables of pairs over the levels that values have, and the level of each value, by the position of the column.

    A fixed column has one level, that of its typical value. Pairs with a column that is missing have no evidence.
    """
    place = {one.position: number for number, one in enumerate(shown)}
    middles = {one.position: one.middle for one in fixed}
    used: list[Array] = []  # levels of each column that occur
    levels: dict[int, list[int]] = {}
    for c, j in enumerate(pairs.columns):
        m = len(shown[place[j]].values) if j in place else 0
        own = pairs.levels[:m, c] if j in place else pairs.levels[[middles[j]], c] if j in middles else np.array([-1])
        found, at = np.unique(own, return_inverse=True)
        used.append(found)
        if j in place:
            levels[j] = at.tolist()
    tables = []
    for (a, b), table, weight in zip(pairs.pairs, pairs.tables, pairs.weights):
        if min(used[a][0], used[b][0]) < 0:
            continue
        cells = table[np.ix_(used[a], used[b])][:, :, :K]
        columns = [place.get(pairs.columns[c], -1) for c in (a, b)]
        nats = [[[rounded(e, 6) for e in cell] for cell in row] for row in cells]
        tables.append({"parents": [int(a), int(b)], "columns": columns, "weight": rounded(weight, 6), "table": nats})
    return {"parents": len(pairs.columns), "averaged": rounded(pairs.averaged, 6), "tables": tables}, levels


def _scale_row(number: int, column: ColumnScale) -> str:
    name, last, ident = short(column.name, 60), len(column.values) - 1, f"scale-{number}"
    curve = '<svg viewBox="0 0 100 20" preserveAspectRatio="none" aria-hidden="true"><path class="grid" d="M0 10H100"/><polyline class="line" points=""/><line class="mark" y1="0" y2="20"/></svg>'
    if column.kind == "category":
        options = "".join(f'<option value="{i}">{text_of(value, 40)}</option>' for i, value in enumerate(column.values))
        gap = "" if column.missing is None else '<option value="-1">missing</option>'
        control = f'<select id="{ident}">{options}{gap}</select>'
    else:
        least = 0 if column.missing is None else -1
        control = f'<input id="{ident}" type="range" min="{least}" max="{last}" step="1" value="{column.middle}">'
    return f'<div class="scale" data-column="{number}"><label for="{ident}">{escape(name)}</label><div class="track-cell">{curve}{control}</div><output for="{ident}"></output></div>'


# -- words -------------------------------------------------------------------------------------------------------------
def words_section(material: Material, data: dict[str, Any], share: float) -> str:
    """A table of words that the script fills; the words go into `data`."""
    if not material.words:
        return ""
    K = min(len(material.clf.classes_), MOST_CLASSES)
    sets = []
    for one in material.words:
        most = int(share * len(one.words))
        sets.append({
            "total": one.total,
            "words": [[short(w, 40), rounded(n, 1), *(rounded(e, 1) for e in row[:K])]
                      for w, n, row in zip(one.words[:most], one.counts, one.decibans)],
        })  # fmt: skip
    data["words"] = sets
    classes = "".join(
        f'<option value="{k}"{" selected" if k == K - 1 and K == 2 else ""}>{text_of(name, 40)}</option>'
        for k, name in enumerate(material.clf.classes_[:K])
    )
    choice = ""
    if len(sets) > 1:
        options = "".join(
            f'<option value="{i}">{text_of(one.column, 40)}</option>' for i, one in enumerate(material.words)
        )
        choice = f'<div><label for="word-column">Column</label><br><select id="word-column">{options}</select></div>'
    return (
        "<p>Evidence of one occurrence of a word for a class over the mean of the other classes, before calibration. "
        "The amount of a word is the sum of its counts as the model weighs them. "
        "Sorted by evidence times frequency.</p><div class='controls'>"
        f"{choice}<div><label for='word-class'>Class</label><br><select id='word-class'>{classes}</select></div>"
        "<div id='search-box'><label for='word-search'>Search words</label><br><input id='word-search' type='search'></div></div>"
        "<p id='word-count' class='quiet' role='status'></p><div class='scroll' tabindex='0' role='group' aria-label='Words'>"
        "<table><thead><tr><th scope='col'>word</th><th scope='col' class='n'>amount learnt</th><th scope='col' class='n'>"
        "decibans</th><th scope='col'><span class='hidden'>bar</span></th></tr></thead><tbody id='word-rows'></tbody></table></div>"
    )
