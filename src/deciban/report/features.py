"""Sections of features: their evidence, the densities of columns by class, and the evidence of words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from deciban.evidence.explanation import decibans_text, short
from deciban.families.product import expert_columns
from deciban.model.explain import expert_label
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
from deciban.report.material import MOST_CLASSES, MOST_CURVES, MOST_LISTED, Material
from deciban.report.scales import ColumnScale
from deciban.statistics import Array

MOST_FEATURES = 20
FIGURE_BYTES = 220_000  # of the densities of columns
UNEVEN = 10.0  # bins are drawn with the same width if the widest has so many times the median width


def features_section(material: Material) -> str:
    """The features with most evidence."""
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
        note += " Several columns named in one line: what their values tell together, beyond each by itself."
    head = ("feature", "decibans a row", "", "rows it is right for", "mostly for")
    table = table_of(head, rows, "Features by mean evidence", (1, 3))
    return f"<p>{note}</p><div class='features'>{table}</div>"


def columns_section(material: Material, share: float) -> str:
    """The family of each block, and densities of its columns within `share` of the room for them."""
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
    """The height of a figure of densities: narrow peaks may reach beyond it."""
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
        "Sorted by evidence and frequency.</p><div class='controls'>"
        f"{choice}<div><label for='word-class'>Class</label><br><select id='word-class'>{classes}</select></div>"
        "<div id='search-box'><label for='word-search'>Search words</label><br><input id='word-search' type='search'></div></div>"
        "<p id='word-count' class='quiet' role='status'></p><div class='scroll' tabindex='0' role='group' aria-label='Words'>"
        "<table><thead><tr><th scope='col'>word</th><th scope='col' class='n'>amount learnt</th><th scope='col' class='n'>"
        "decibans</th><th scope='col'><span class='hidden'>bar</span></th></tr></thead><tbody id='word-rows'></tbody></table></div>"
    )
