"""Sections of rows: figures and decisions on the judged rows, single rows, warnings about the data, and drift."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import Any

import numpy as np

from deciban.errors import DecibanError
from deciban.evaluate.curves import det, llr_histogram, reliability, roc
from deciban.evaluate.report import LEVEL, WITH_INTERVALS, Evaluation
from deciban.evidence.explanation import count, decibans_text, plain, short
from deciban.evidence.scores import convert
from deciban.families.gaussian import Gaussian
from deciban.families.product import blocks_of
from deciban.model.evaluation import Finding
from deciban.model.model import Model
from deciban.model.predictor import block_lengths
from deciban.read.batches import chosen_rows
from deciban.report.drawing import (
    COLOURS,
    LARGE,
    Frame,
    Markup,
    bar_cell,
    cards,
    class_text,
    figure,
    legend_of,
    number_text,
    percent,
    rounded,
    table_of,
    text_of,
    ticks,
)
from deciban.report.findings import Classifier, Judged, data_warnings, rows_to_show
from deciban.report.material import MOST_CLASSES, MOST_CURVES, MOST_LISTED, NUMBERS, Material, WordDrift
from deciban.statistics import Array


def figures_section(material: Material) -> str:
    """Figures of the judged rows with intervals, and the number and origin of these rows."""
    if material.judged is None:
        return "<p>No rows were given, so there are no figures. Give labelled rows to see error rates, reliability and rows.</p>"
    evaluation = material.judged.evaluation
    n = len(evaluation)
    wrong = int((evaluation.decided != evaluation.codes).sum())
    best = "with the best monotone scale" if len(evaluation.classes) == 2 else "with the best scale and offsets"
    shown = [
        ("Error", "error_rate", lambda: f"{wrong:,} of {n:,} rows"),
        ("Log loss", "log_loss", lambda: f"{evaluation.log_loss_of_prior:.3f} for the prior alone"),
        ("Brier score", "brier", lambda: "0 is best"),
        ("Calibration error", "expected_calibration_error", lambda: "expected; 0 is best"),
        ("Cllr", "cllr", lambda: f"cost of the evidence; 1 means no evidence; {evaluation.min_cllr:.3f} {best}"),
    ]
    if len(evaluation.classes) == 2:
        shown.append(("EER", "eer", lambda: "equal error rate"))
    made = [_card(evaluation, *one) for one in shown if evaluation.figure(one[1]) is not None]
    how = (
        "Each row was scored as if it had never been learnt, by a model without the rows of its fold (k-fold)."
        if evaluation.learnt
        else "The rows are taken as new. If the model has learnt them, these figures are too good: evaluate them as learnt rows."
    )
    chosen = f" Chosen on these rows: {', '.join(evaluation.selected_on)}." if evaluation.selected_on else ""
    impossible = (
        f" {count(evaluation.impossible, 'row')} with probability zero under every class."
        if evaluation.impossible
        else ""
    )
    verdict = evaluation.verdict()
    warned = "" if verdict is None else f"<p class='warn'>{escape(verdict)}</p>"
    note = f"{warned}<p>{escape(how + chosen + impossible)} Intervals are at {100 * LEVEL:.0f} %.</p>"
    folded = _curves(evaluation)
    more = f"<details id='more-curves'><summary>ROC, DET and figures of each class</summary><div class='figures'>{folded}</div>{_class_figures(evaluation)}</details>"
    return f"{note}{cards(made)}<div class='pair'><div>{_confusion(evaluation)}</div><div>{_reliability(evaluation)}</div></div>{more}"


def _card(evaluation: Evaluation, name: str, figure: str, remark: Callable[[], str]) -> tuple[str, str, str]:
    """Name, value, and interval with a remark."""
    form = percent if figure in ("error_rate", "eer") else _three_digits
    ends = evaluation.ends(figure) if figure in WITH_INTERVALS else None
    between = "" if ends is None else f"{form(ends[0])} to {form(ends[1])}; "
    return name, form(getattr(evaluation, figure)), between + remark()


def _three_digits(value: float) -> str:
    return f"{value:.3f}" if np.isfinite(value) else number_text(value)


def shown_classes(evaluation: Evaluation) -> list[int]:
    """The classes with curves of their own: of two the second, else the most frequent ones."""
    if len(evaluation.classes) == 2:
        return [1]
    rows = np.bincount(evaluation.codes, minlength=len(evaluation.classes))
    order = [int(k) for k in np.argsort(-rows, kind="stable") if 0 < rows[k] < len(evaluation)]
    return order[:MOST_CURVES]


def _confusion(evaluation: Evaluation) -> str:
    table, names = evaluation.confusion, evaluation.classes
    rows = table.sum(axis=1)
    order = np.argsort(-rows, kind="stable")[:12]
    lines = []
    for i in order:
        cells: list[object] = [names[i]]
        for j in order:
            share = table[i, j] / rows[i] if rows[i] else 0.0
            level = int(np.ceil(4 * share)) if table[i, j] else 0
            tint = f"{'h' if i == j else 'w'}{level}"
            cells.append(Markup(f'<span class="cell {tint}">{int(table[i, j]):,}</span>'))
        lines.append([*cells, percent(1 - table[i, i] / rows[i]) if rows[i] else "–"])
    head = ["true class", *(f"→ {short(names[j], 16)}" for j in order), "error"]
    left = len(names) - len(order)
    note = f"<p class='quiet'>The {len(order)} most frequent of {len(names):,} classes.</p>" if left else ""
    return table_of(head, lines, "Confusion: rows by true and predicted class", tuple(range(1, len(head)))) + note


def _reliability(evaluation: Evaluation) -> str:
    drawn, rows = [], []
    frame = Frame((0, 1), (0, 1), 360, 260)
    shown = shown_classes(evaluation)[:4]
    for k in shown:
        try:
            found = reliability(*evaluation.scores(evaluation.classes[k]))
        except DecibanError:
            continue
        for p, low, high in zip(found.predicted, found.low, found.high):
            x = float(frame.across(p))
            drawn.append(
                f'<path class="whisker c{k % COLOURS}" d="M{x:.1f} {float(frame.down(low)):.1f}V{float(frame.down(high)):.1f}"/>'
            )
        drawn.append(frame.line(found.predicted, found.observed, k))
        drawn += [frame.point(p, o, k) for p, o in zip(found.predicted, found.observed)]
        rows += [
            (evaluation.classes[k], f"{p:.3f}", f"{o:.3f}", f"{low:.3f} to {high:.3f}", f"{n:,}")
            for p, o, low, high, n in zip(found.predicted, found.observed, found.low, found.high, found.count)
        ]
    if not rows:
        return ""
    ends = frame.across([0, 1]), frame.down([0, 1])
    diagonal = f'<path class="diagonal" d="M{ends[0][0]:.1f} {ends[1][0]:.1f}L{ends[0][1]:.1f} {ends[1][1]:.1f}"/>'
    body = frame.axes("predicted probability", "observed share", ticks(0, 1), ticks(0, 1)) + diagonal + "".join(drawn)
    table = table_of(("class", "predicted", "observed", "interval", "rows"), rows, "Reliability", (1, 2, 3, 4))
    named = "" if len(evaluation.classes) == 2 else legend_of([evaluation.classes[k] for k in shown], shown)
    title = (
        f"Reliability of P({short(evaluation.classes[1], 30)})"
        if len(evaluation.classes) == 2
        else "Reliability of each class"
    )
    text = "Observed shares against predicted probabilities; on the diagonal both are equal. Lines are 95 % intervals."
    return figure(frame, body, title, text, table, "reliability", named)


def _curves(evaluation: Evaluation) -> str:
    """ROC and DET of the classes against the rest."""
    from scipy.special import ndtri

    shown = shown_classes(evaluation)
    plane, probits = (
        Frame((0, 1), (0, 1), 360, 300),
        Frame((ndtri(0.001), ndtri(0.6)), (ndtri(0.001), ndtri(0.6)), 360, 300),
    )
    marks = [(float(ndtri(p)), f"{100 * p:g} %") for p in (0.001, 0.01, 0.05, 0.2, 0.5)]
    lines, dets, areas = [], [], []
    for k in shown:
        try:
            pair = evaluation.scores(evaluation.classes[k])
            curve, errors = roc(*pair), det(*pair)
        except DecibanError:
            continue
        at = _thinned(len(curve.hit))
        lines.append(plane.line(curve.false_alarm[at], curve.hit[at], k))
        alarm, miss = (np.clip(side[at], -4, 4) for side in (errors.false_alarm, errors.miss))
        inside = (alarm >= probits.x[0]) & (alarm <= probits.x[1])
        dets.append(probits.line(alarm[inside], miss[inside], k))
        areas.append((evaluation.classes[k], f"{curve.area:.4f}"))
    if not areas:
        return ""
    named = "" if len(evaluation.classes) == 2 else legend_of([evaluation.classes[k] for k in shown], shown)
    table = table_of(("class", "area under the ROC"), areas, "Area under the curve", (1,))
    first = figure(plane, plane.axes("false alarms", "hits", ticks(0, 1), ticks(0, 1)) + "".join(lines),
                   "ROC", "Hits against false alarms at every threshold.", table, "roc", named)  # fmt: skip
    second = figure(probits, probits.axes("false alarms", "misses", marks, marks) + "".join(dets),
                    "DET", "Misses against false alarms on probit scales.", "", "det", named)  # fmt: skip
    return first + second


def _thinned(n: int, most: int = 150) -> Array:
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(int))


def _class_figures(evaluation: Evaluation) -> str:
    rows = []
    for label, found in list(evaluation.per_class.items())[:MOST_CLASSES]:
        numbers = ["–" if one is None else f"{one:.3f}" for one in (found.cllr, found.min_cllr)]
        rows.append((label, f"{found.rows:,}", *numbers, "–" if found.eer is None else percent(found.eer)))
    return table_of(("class", "rows", "Cllr", "least Cllr", "EER"), rows, "Each class against the rest", (1, 2, 3, 4))


# -- decisions ---------------------------------------------------------------------------------------------------------
LIVE = {"threshold": "Threshold", "missed": "Missed", "alarms": "False alarms", "expected": "Expected cost",
        "alone": "Cost of the prior alone", "best": "Least cost"}  # figures that the script keeps up to date  # fmt: skip


def decide_section(material: Material, data: dict[str, Any], share: float) -> str:
    """Sliders of prior and costs; llrs of the judged rows go into `data`."""
    if material.judged is None or len(material.clf.classes_) < 2:
        return ""
    evaluation = material.judged.evaluation
    shown = shown_classes(evaluation)
    prior = np.atleast_2d(evaluation.prior).mean(axis=0)
    most = max(200, int(share * NUMBERS / 3 / max(len(shown), 1)))
    listed, histograms = [], []
    for k in shown:
        try:
            ratio, is_own = evaluation.scores(evaluation.classes[k])
            scores = tally(ratio, is_own, most)
        except DecibanError:
            continue
        p = float(np.clip(prior[k], 1e-6, 1 - 1e-6))
        listed.append({
            "name": short(evaluation.classes[k], 40),
            "prior": rounded(convert(np.log(p / (1 - p)), "decibans"), 2),
            "cost": rounded(10 * np.log10(_cost_ratio(evaluation, k)), 2),
            "scores": scores,
        })  # fmt: skip
        histograms.append(_histogram(evaluation, k, ratio, is_own, len(listed) - 1))
    if not listed:
        return ""
    data["decide"] = listed
    choice = ""
    if len(listed) > 1:
        names = "".join(f'<option value="{i}">{text_of(one["name"], 40)}</option>' for i, one in enumerate(listed))
        choice = f'<div><label for="class">Class against the rest</label><br><select id="class">{names}</select></div>'
    shown_figures = cards(((name, "–", "") for name in LIVE.values()), [f"d-{ident}" for ident in LIVE])
    return (
        "<p>Prior and costs set the threshold of the evidence; they do not change the evidence. Move the sliders to see "
        "the threshold, the errors on the judged rows and the expected cost.</p><div class='controls'>"
        f"{choice}<div><label for='prior'>Prior</label><input id='prior' type='range' min='-40' max='40' step='any'>"
        "<output id='prior-text' for='prior'></output></div>"
        "<div><label for='cost'>Costs</label><input id='cost' type='range' min='-30' max='30' step='any'>"
        "<output id='cost-text' for='cost'></output></div></div><button id='reset' type='button'>Prior and costs of the "
        f"model</button><div aria-live='polite'>{shown_figures}</div>{''.join(histograms)}"
    )


def _cost_ratio(evaluation: Evaluation, k: int) -> float:
    """Mean cost of a miss of class k over the mean cost of a false alarm."""
    cost, others = evaluation.cost, [j for j in range(len(evaluation.classes)) if j != k]
    miss, alarm = cost[k, others].mean() - cost[k, k], cost[others, k].mean() - cost[others, others].mean()
    return float(np.clip(miss / alarm, 1e-3, 1e3)) if miss > 0 and alarm > 0 else 1.0


def tally(ratio: Array, is_own: Array, most: int) -> list[list[float]]:
    """Distinct llrs in decibans, rising, with the rows of the class and of the rest; neighbours joined beyond `most`.

    >>> tally(np.array([0.0, 0.0, np.inf]), np.array([True, False, True]), 9)
    [[0.0, 1, 1], [1000000000.0, 1, 0]]
    """
    decibans = np.clip(convert(np.asarray(ratio, dtype=float), "decibans"), -LARGE, LARGE)
    values, at = np.unique(decibans, return_inverse=True)
    ones, zeros = (np.bincount(at, side, len(values)).astype(int) for side in (is_own, ~np.asarray(is_own)))
    if len(values) > most:
        group = (np.cumsum(ones + zeros) - 1) * most // len(ratio)
        starts = np.flatnonzero(np.diff(group, prepend=-1))
        ones, zeros = np.add.reduceat(ones, starts), np.add.reduceat(zeros, starts)
        values = values[starts]  # the least of the joined llrs
    return [[rounded(v, 6), int(a), int(b)] for v, a, b in zip(values, ones, zeros)]


def _histogram(evaluation: Evaluation, k: int, ratio: Array, is_own: Array, number: int) -> str:
    found = llr_histogram(ratio, is_own, 40)
    edges = convert(found.edges, "decibans")
    shares = [side / max(side.sum(), 1) for side in (found.h1, found.h0)]
    frame = Frame((float(edges[0]), float(edges[-1])), (0.0, float(max(map(np.max, shares))) * 1.05 or 1.0), 720, 220)
    colours = (k, 1 - k) if len(evaluation.classes) == 2 else (k, 7 if k % COLOURS != 7 else 6)
    bars = []
    for side, colour in zip(shares, colours):
        step = "M" + "H".join(
            f"{float(frame.across(edges[i])):.1f} {float(frame.down(side[i])):.1f}" if i == 0
            else f"{float(frame.across(edges[i])):.1f}V{float(frame.down(side[i])):.1f}" for i in range(len(side))
        ) + f"H{float(frame.across(edges[-1])):.1f}"  # fmt: skip
        bars.append(f'<path class="line c{colour % COLOURS}" d="{step}"/>')
    scale = float(frame.across(1.0)) - float(frame.across(0.0))
    mark = f'<line class="mark" y1="10" y2="{frame.height - frame.bottom}" data-threshold="{frame.left} {edges[0]:.4f} {scale:.6f} {frame.width - 10} {number}"/>'
    name, rest = (
        class_text(evaluation.classes[k]),
        "the rest" if len(evaluation.classes) > 2 else class_text(evaluation.classes[1 - k]),
    )
    rows = [
        (f"{edges[i]:.1f} to {edges[i + 1]:.1f}", f"{found.h1[i]:,}", f"{found.h0[i]:,}") for i in range(len(found.h1))
    ]
    table = table_of(("evidence (dban)", name, rest), rows, "Rows by evidence", (1, 2))
    axes = frame.axes(f"evidence for {name} (dban)", "share of rows", ticks(*frame.x, 6), ticks(*frame.y, 4))
    legend = legend_of((name, rest), colours, "dashed: threshold")
    drawn = figure(frame, axes + "".join(bars) + mark, f"Evidence for {name} in rows of each class",
                   "Shares of rows by evidence, and the threshold.", table, f"histogram-{number}", legend)  # fmt: skip
    return f'<div class="wide" data-histogram="{number}">{drawn}</div>'


# -- single rows -------------------------------------------------------------------------------------------------------
PARTS = 6  # features shown of a row


def rows_section(material: Material) -> str:
    """Rows of the sample, each with the evidence of its features."""
    judged, clf = material.judged, material.clf
    if judged is None or len(clf.classes_) < 2:
        return ""
    model = clf.model_
    lengths = _lengths(clf, judged) if len(model.positions) == len(material.words) else None
    shown = rows_to_show(clf, judged, lengths)
    made = []
    for heading, note, chosen in (
        ("Most typical", "the highest density under the model", shown.typical) if lengths is None
        else ("Clearest", "the strongest evidence for their own class", shown.typical),
        ("Most surprising", "the lowest density under the model" + (", a word" if lengths is not None else ""), shown.surprising),
        ("Most wrong", "the strongest evidence for another class than their own", shown.wrong),
    ):  # fmt: skip
        inner = "".join(_row_article(material, judged, int(i), shown.nats, shown.rival) for i in chosen)
        made.append(
            f"<h3>{heading}</h3><p class='quiet'>Rows with {note}.</p>{inner or '<p>None: the evidence of every row is for its own class.</p>'}"
        )
    sampled = f" (a sample of {len(judged.positions):,} rows)" if len(judged.positions) < len(judged.evaluation) else ""
    return f"<p class='quiet'>Chosen from the judged rows{sampled}.</p>{''.join(made)}"


def _lengths(clf: Classifier, judged: Judged) -> Array | None:
    model = clf.model_
    found = [each for each in block_lengths(model.family, model.encode(judged.rows)) if each is not None]
    return np.sum(found, axis=0) if found else None


def _row_article(material: Material, judged: Judged, i: int, nats: Array, rival: Array) -> str:
    clf, evaluation = material.clf, judged.evaluation
    at = int(judged.positions[i])
    own, other = evaluation.classes[evaluation.codes[at]], evaluation.classes[int(rival[i])]
    decided = evaluation.classes[int(evaluation.decided[at])]
    row = judged.rows.take([i])
    cells = "; ".join(
        f"{short(name, 30)} = {_cell_text(row, j)}" for j, name in enumerate(clf.model_.reader.labels[:12])
    )
    left = len(clf.model_.reader.labels) - 12
    cells += f"; and {left:,} more columns" if left > 0 else ""
    try:
        explained = clf.explain(row, own, other)
        parts = explained.parts[0]
        order = np.argsort(-np.abs(parts), kind="stable")[:PARTS]
        largest = float(np.abs(parts[order][np.isfinite(parts[order])]).max(initial=1e-9))
        lines = [
            (short(explained.names[p], 40), decibans_text(float(parts[p])), bar_cell(float(parts[p]), largest))
            for p in order
        ]
        table = table_of(("feature", "dban", ""), lines, f"Evidence for {short(own, 30)} over {short(other, 30)}", (1,))
    except DecibanError:
        table = ""
    text = f"{decibans_text(float(nats[i]))} dban for its class “{short(own, 40)}” over “{short(other, 40)}”"
    verdict = "predicted correctly" if decided == own else f"predicted “{short(decided, 40)}”"
    return (
        f"<article><p><b>Row {int(judged.numbers[i]) + 1:,}</b>, {escape(verdict)}: {escape(text)}</p><p class='cells'>{escape(cells)}</p>"
        f"<details><summary>Evidence of its features<span class='hidden'> in row {int(judged.numbers[i]) + 1:,}</span></summary>{table}</details></article>"
    )


def _cell_text(row: Any, j: int) -> str:
    value = plain(_cell(row, j))
    return "missing" if value is None else short(value, 300)


def _cell(row: Any, j: int) -> Any:
    values = row.column(j)
    if hasattr(values, "toarray"):
        return float(values.toarray().ravel()[0])
    one = values[0]
    return one.as_py() if hasattr(one, "as_py") else one


# -- findings and drift ------------------------------------------------------------------------------------------------
CLEAR = 10  # decibans from which on a difference is reported
WORDS_SHOWN = 20  # words that became more frequent, and as many that became less frequent
MOST_NAMED = 12  # columns that one finding names
WHAT_DIFFERS = "Compared with samples of the model, the rows of some classes have a column that "
REMEDIES = {"has more repeated values": "Rounded measurements cause this; it matters little if the figures are good."}
CHECKED = 40_000  # values of the rows compared with samples of the model


def data_section(material: Material) -> str:
    """Warnings about columns and classes, and columns that differ from samples of the model."""
    clf, judged = material.clf, material.judged
    model = clf.model_
    schema = model.reader.schema
    classes = dict(zip(map(str, model.classes), model.stats.rows.tolist()))
    found = data_warnings(() if schema is None else schema.columns, classes, material.features, model.ledger)
    checked = ""
    if judged is not None and len(material.words) < len(model.positions):
        try:
            some = chosen_rows(len(judged.rows), max(300, CHECKED // max(len(model.reader.labels), 1)))
            report = clf.check_fit(judged.rows.take(some), judged.labels[some])
            found += _fit_findings(model, report.findings)
            checked = f"{report.checked:,} pairs of column and class were compared with samples of the model."
        except (DecibanError, TypeError, ValueError):
            checked = "The columns cannot be compared with samples of the model."
    items = "".join(f"<li>{text_of(text, 400)}</li>" for text in found[:60])
    listed = f"<ul class='notes'>{items}</ul>" if items else "<p>Nothing was found.</p>"
    return listed + (f"<p class='quiet'>{checked}</p>" if checked else "")


def _fit_findings(model: Model, findings: Sequence[Finding]) -> list[str]:
    """Differences from samples of the model; differences of the same kind are one sentence."""
    gaussian = {
        model.reader.labels[j]
        for (family,), at in zip(blocks_of(model.family), model.positions)
        for j in at
        if isinstance(family, Gaussian)
    }
    kinds: dict[str, dict[str, list[Finding]]] = {}
    for one in findings:
        kinds.setdefault(one.what, {}).setdefault(one.column, []).append(one)
    texts = []
    for what, columns in kinds.items():
        names = []
        for column, each in columns.items():
            classes = ", ".join(short(one.label, 20) for one in each)
            better = each[0].better if column in gaussian else None  # other families are compared with a Gaussian
            names.append(f"{short(column, 30)} ({classes}{f'; {better} fits better' if better else ''})")
        more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        texts.append(f"{WHAT_DIFFERS}{what}: {', '.join(names[:MOST_NAMED])}{more}. {REMEDIES.get(what, '')}".strip())
    return texts


def drift_section(material: Material) -> str:
    """Columns and classes that differ in a second file."""
    found = material.drift
    if found is None:
        return ""
    sums = [max(float(side.sum()), 1e-300) for side in (found.learnt, found.other)]
    classes = [
        (name, percent(float(a) / sums[0]), percent(float(b) / sums[1]))
        for name, a, b in zip(found.classes[:MOST_CLASSES], found.learnt, found.other)
    ]
    largest = max([abs(d) for _, d in found.columns if d is not None and np.isfinite(d)], default=1.0) or 1.0
    columns = [
        (
            short(name, 60),
            "–" if d is None else f"{d:+,.1f}".replace("-", "−"),
            "" if d is None else bar_cell(d, largest),
            _drift_text(d),
        )
        for name, d in found.columns[:MOST_LISTED]
    ]
    return (
        f"<p>The {found.rows:,.15g} rows of the second file, compared with the rows learnt. Positive decibans are evidence "
        "that a column has different parameters in the second file, given the class; negative decibans are evidence for "
        "the same parameters. Computed from the sums of both files, with parameters integrated out.</p>"
        + table_of(("columns", "decibans", "", ""), columns, "Columns", (1,))
        + table_of(("class", "share learnt", "share in the second file"), classes, "Classes", (1, 2))
        + "".join(_word_tables(one) for one in found.words)
    )


def _word_tables(found: WordDrift) -> str:
    """Words that became more and less frequent."""
    clear = int((found.decibans >= CLEAR).sum())
    column = f" of {short(found.column, 40)}" if found.column else ""
    title = f"<h3>{text_of(f'Words{column}', 60)}</h3>"
    if not clear:
        return f"{title}<p>None of {found.total:,} words has {CLEAR} dban or more of evidence for a different frequency, given the class.</p>"
    text = (
        f"Words{column} whose frequency, given the class, differs in the second file: {count(clear, 'word')} of "
        f"{found.total:,}, with {CLEAR} dban or more. Expected: the amount at the learnt frequencies."
    )
    made = f"{title}<p>{text_of(text, 400)}</p>"
    more = found.found > found.expected
    for heading, side in (("More frequent", more), ("Less frequent", ~more)):
        at = np.flatnonzero(side & (found.decibans >= CLEAR))[:WORDS_SHOWN]
        largest = float(found.decibans[at].max(initial=1.0))
        rows = [
            (found.words[i], decibans_text(found.decibans[i] / convert(1.0, "decibans")), bar_cell(float(found.decibans[i]), largest),
             f"{found.expected[i]:,.1f}", f"{found.found[i]:,.1f}")
            for i in at
        ]  # fmt: skip
        head = ("word", "decibans", "", "expected", "found")
        made += table_of(head, rows, heading, (1, 3, 4)) if rows else f"<p><b>{heading}:</b> no word.</p>"
    return f"<div>{made}</div>"


def _drift_text(decibans: float | None) -> str:
    if decibans is None:
        return "the family cannot be compared by its sums"
    if abs(decibans) < CLEAR:
        return "undecided"
    return "different" if decibans > 0 else "the same"
