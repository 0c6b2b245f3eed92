"""The page: sections of HTML with figures, the data of its sliders as JSON, one style sheet and one script.

Nothing is loaded from elsewhere: a content security policy allows the style sheet and the script of the page alone. The
size is bounded: lists, texts and numbers of points have limits that do not depend on the rows.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np

from deciban.errors import DecibanError, InputError
from deciban.evaluate.curves import det, llr_histogram, reliability, roc
from deciban.evaluate.report import Evaluation
from deciban.evidence.explanation import count, decibans_text, plain, short
from deciban.evidence.scores import convert
from deciban.model.predictor import block_lengths
from deciban.read.batches import Batch
from deciban.read.reservoir import chosen_rows
from deciban.report.columns import ColumnScale, Scales, column_scales
from deciban.report.contract import Classifier
from deciban.report.drawing import (
    Frame,
    Markup,
    bar_cell,
    figure,
    legend_of,
    number_text,
    table_of,
    text_of,
    ticks,
)
from deciban.report.drift import Drift, drift
from deciban.report.findings import FeatureEvidence, block_models, data_warnings, feature_evidence
from deciban.report.judged import (
    LEVEL,
    Judged,
    error_interval,
    evidence_intervals,
    judge_rows,
    loss_interval,
    rows_to_show,
)
from deciban.report.words import Words, words_by_evidence
from deciban.statistics import Array
from deciban.store.files import write_bytes

MOST_BYTES = 1_000_000
NUMBERS = 24_000  # of densities and scales of all columns; of words; of llrs: each at most so many
MOST_CLASSES = 40  # listed; with their own curves MOST_CURVES
MOST_CURVES = 8
MOST_LISTED = 400  # columns, in tables
MOST_FEATURES = 20
FIGURE_BYTES = 220_000  # of the densities of columns
LARGE = 1e9  # decibans that stand for infinity in JSON
CHECKED = 40_000  # values of the rows compared with samples of the model
PARTS = 6  # features shown of a row


@dataclass(frozen=True, eq=False)
class Material:
    """Everything that a report shows."""

    clf: Classifier
    title: str
    judged: Judged | None
    scales: Scales
    words: list[Words]
    features: list[FeatureEvidence]
    drift: Drift | None


def write_report(
    clf: Classifier,
    path: str | os.PathLike[str],
    batches: Iterable[Batch] | None,
    learnt: bool | None,
    other: tuple[Any, Any] | None,
    title: str,
) -> None:
    """Write the page of a fitted classifier, whole or not at all; `other` are rows and labels to compare with."""
    write_bytes(path, report_page(clf, batches, learnt, other, title))


def report_page(
    clf: Classifier,
    batches: Iterable[Batch] | None = None,
    learnt: bool | None = None,
    other: tuple[Any, Any] | None = None,
    title: str = "",
) -> bytes:
    """Return the page as bytes."""
    material = gather(clf, batches, learnt, other, title)
    for share in (1.0, 0.5, 0.25, 0.1):
        page = _page(material, share)
        if len(page) <= MOST_BYTES:
            return page
    raise InputError(
        f"the report would have {len(page):,} bytes, more than {MOST_BYTES:,}. Give a model of fewer classes."
    )


def gather(
    clf: Classifier, batches: Iterable[Batch] | None, learnt: bool | None, other: tuple[Any, Any] | None, title: str
) -> Material:
    """Compute what the report shows."""
    predictor = clf.predictor_
    model = predictor.model
    K, D = len(model.classes), len(model.reader.labels)
    judged = None if batches is None else judge_rows(clf, batches, learnt)
    features = []
    if judged is not None:
        features = feature_evidence(clf, judged.rows, judged.labels)
    return Material(
        clf,
        title or f"Classifier of {shortened(model.classes)}",
        judged,
        column_scales(predictor, int(np.clip(2 * NUMBERS // (K * max(D, 1)), 9, 49))),
        words_by_evidence(predictor, min(3000, 2 * NUMBERS // (K + 2))),
        features,
        None if other is None else drift(clf, *other),
    )


def shortened(names: Iterable[Any]) -> str:
    """Up to four names in one line."""
    every = [short(name, 24) for name in names]
    return ", ".join(every[:4]) + (f" and {len(every) - 4:,} more" if len(every) > 4 else "")


# -- the page ----------------------------------------------------------------------------------------------------------
def _page(material: Material, share: float) -> bytes:
    sections: list[tuple[str, str, str]] = []  # id, heading, HTML
    data: dict[str, Any] = {}
    for ident, heading, made in (
        ("model", "The model", _model_section(material)),
        ("figures", "How good it is", _figures_section(material)),
        ("decide", "Prior and costs", _decide_section(material, data, share)),
        ("features", "Most telling features", _features_section(material)),
        ("columns", "Columns", _columns_section(material, share)),
        ("nomogram", "Nomogram", _nomogram_section(material, data, share)),
        ("words", "Words by evidence", _words_section(material, data, share)),
        ("rows", "Rows", _rows_section(material)),
        ("findings", "What looks wrong with the data", _data_section(material)),
        ("drift", "Drift", _drift_section(material)),
        ("calibration", "Calibration", _calibration_section(material)),
    ):
        if made:
            sections.append((ident, heading, made))
    style, script = (_asset(name) for name in ("page.css", "page.js"))
    # "<" may end a script element, so it is escaped
    held = json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    links = "".join(f'<li><a href="#{ident}">{escape(heading)}</a></li>' for ident, heading, _ in sections)
    body = "".join(
        f'<section id="{ident}" aria-labelledby="{ident}-h"><h2 id="{ident}-h">{escape(heading)}</h2>{made}</section>'
        for ident, heading, made in sections
    )
    policy = f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; base-uri 'none'; form-action 'none'"
    from deciban import __version__

    title = text_of(material.title, 120)
    page = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="generator" content="deciban report">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>{title}</title>'
        f'<style>{style}</style></head><body><a class="skip" href="#main">Skip to the report</a>'
        f'<header><h1>{title}</h1><p class="quiet">{text_of(_facts(material), 400)}</p>'
        f'<nav aria-label="Sections"><ul>{links}</ul></nav></header><main id="main">{body}</main>'
        f"<footer><p>Written by deciban {escape(__version__)}. Evidence is in decibans (dban): 10 dban are odds of 10 to 1, "
        "3 dban of 2 to 1; positive evidence is for a class, negative evidence against it.</p></footer>"
        f'<script id="report-data" type="application/json">{held}</script><script>{script}</script></body></html>\n'
    )
    return page.encode("utf-8", "replace")


def _asset(name: str) -> str:
    return (files("deciban.report") / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _facts(material: Material) -> str:
    model = material.clf.model_
    facts = [f"learnt from {model.weight:,.15g} rows", count(len(model.classes), "class", "classes")]
    facts.append(count(len(model.reader.labels), "column"))
    if material.judged is not None:
        how = (
            "learnt rows, each scored as if it had not been learnt"
            if material.judged.evaluation.learnt
            else "rows taken as new"
        )
        facts.append(f"judged on {len(material.judged.evaluation):,} {how}")
    return " · ".join(facts)


def _cards(items: Iterable[tuple[str, str, str]], ids: str = "") -> str:
    cells = []
    for name, value, remark in items:
        ident = f' id="{ids}{name.split()[0].lower()}"' if ids else ""
        cells.append(
            f"<div><dt>{escape(name)}</dt><dd{ident}>{escape(value)}<small>{escape(remark)}</small></dd></div>"
        )
    return f'<dl class="cards">{"".join(cells)}</dl>'


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


# -- sections ----------------------------------------------------------------------------------------------------------
def _model_section(material: Material) -> str:
    clf = material.clf
    model = clf.model_
    prior = np.exp(clf.log_prior())
    largest = max(float(model.stats.rows.max()), 1e-300)
    order = np.argsort(-model.stats.rows, kind="stable")
    rows = [
        (model.classes[k], number_text(float(model.stats.rows[k])), _percent(float(model.stats.rows[k]) / max(model.weight, 1e-300)),
         _percent(float(prior[k])), _share_bar(float(model.stats.rows[k]) / largest, int(k)))
        for k in order[:MOST_CLASSES]
    ]  # fmt: skip
    classes = table_of(("class", "rows learnt", "share", "prior", ""), rows, "Classes", (1, 2, 3))
    more = f"<p class='quiet'>and {len(order) - MOST_CLASSES:,} more classes</p>" if len(order) > MOST_CLASSES else ""
    ledger = (
        "holds a digest of every row, so that unlearning is checked"
        if model.ledger is not None
        else "none: unlearning checks only that sums stay valid"
    )
    changed = "made at the first fit, partly from rows unlearnt since" if model.unlearnt else "made at the first fit"
    facts = [
        ("Parameters", f"rule “{model.rule}”"),
        ("Choices", changed),
        ("Ledger", ledger),
        ("Calibration", _calibration_text(model)),
    ]
    listed = "".join(f"<li><b>{escape(name)}:</b> {escape(text)}</li>" for name, text in facts)
    return (
        "<p>The model describes how each class produces its rows, and answers with evidence: the log-likelihood ratio "
        f"of the classes. Prior and costs are added afterwards.</p>{classes}{more}<ul class='notes'>{listed}</ul>"
    )


def _share_bar(share: float, k: int) -> Markup:
    return Markup(
        f'<svg class="track" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true"><rect class="fill c{k % MOST_CURVES}" x="0" y="1" width="{100 * share:.1f}" height="8"/></svg>'
    )


def _calibration_text(model: Any) -> str:
    calibration = model.calibration
    return "none" if calibration is None else f"{calibration.method}, {calibration.state(model.weight)}"


def _figures_section(material: Material) -> str:
    if material.judged is None:
        return "<p>No rows were given, so there are no figures. Give labelled rows to see error rates, reliability and rows.</p>"
    evaluation = material.judged.evaluation
    n = len(evaluation)
    low, high = error_interval(evaluation)
    wrong = int((evaluation.decided != evaluation.codes).sum())
    loss = loss_interval(evaluation)
    cards = [
        ("Error", _percent(evaluation.error_rate), f"{wrong:,} of {n:,} rows; {_percent(low)} to {_percent(high)}"),
        (
            "Log loss",
            f"{evaluation.log_loss:.3f}",
            f"{loss[0]:.3f} to {loss[1]:.3f}; {evaluation.log_loss_of_prior:.3f} for the prior alone",
        ),
        ("Brier score", f"{evaluation.brier:.3f}", "0 is best"),
        ("Calibration error", f"{evaluation.expected_calibration_error:.3f}", "expected; 0 is best"),
    ]
    if len(evaluation.classes) == 2:
        for name, interval in evidence_intervals(evaluation, evaluation.classes[1]).items():
            form = _percent if name == "EER" else "{:.3f}".format
            remark = "equal error rate" if name == "EER" else "cost of the evidence; 1 is none"
            ends = f"{form(interval.low)} to {form(interval.high)}; " if np.isfinite(interval.low) else ""
            cards.append((name, form(interval.estimate), ends + remark))
    elif evaluation.figure("cllr") is not None:
        cards.append(
            (
                "Cllr",
                number_text(evaluation.cllr),
                f"{evaluation.min_cllr:.3f} with the best scale and offsets; 1 is no evidence",
            )
        )
    how = (
        "Each row was scored as if it had never been learnt, by a model without the rows of its fold (k-fold)."
        if evaluation.learnt
        else "The rows are taken as new. If they were learnt, these figures are too good: say that they were."
    )
    chosen = f" Chosen on these rows: {', '.join(evaluation.selected_on)}." if evaluation.selected_on else ""
    impossible = (
        f" {count(evaluation.impossible, 'row')} with probability zero under every class."
        if evaluation.impossible
        else ""
    )
    verdict = evaluation.verdict()
    warned = "" if verdict is None else f"<p class='warn'>{escape(verdict)}</p>"
    note = f"{warned}<p>{escape(how + chosen + impossible)} Intervals are at {LEVEL:.0%}.</p>"
    folded = _curves(evaluation)
    more = f"<details id='more-curves'><summary>ROC, DET and figures of each class</summary><div class='figures'>{folded}</div>{_class_figures(evaluation)}</details>"
    return f"{note}{_cards(cards)}<div class='pair'><div>{_confusion(evaluation)}</div><div>{_reliability(evaluation)}</div></div>{more}"


def _shown_classes(evaluation: Evaluation) -> list[int]:
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
        lines.append([*cells, _percent(1 - table[i, i] / rows[i]) if rows[i] else "–"])
    head = ["true class", *(f"→ {short(names[j], 16)}" for j in order), "error"]
    left = len(names) - len(order)
    note = f"<p class='quiet'>The {len(order)} most frequent of {len(names):,} classes.</p>" if left else ""
    return table_of(head, lines, "Confusion: rows by true and predicted class", tuple(range(1, len(head)))) + note


def _reliability(evaluation: Evaluation) -> str:
    drawn, rows = [], []
    frame = Frame((0, 1), (0, 1), 360, 260)
    shown = _shown_classes(evaluation)[:4]
    for k in shown:
        try:
            found = reliability(*evaluation.scores(evaluation.classes[k]))
        except DecibanError:
            continue
        for p, low, high in zip(found.predicted, found.low, found.high):
            x = float(frame.across(p))
            drawn.append(
                f'<path class="whisker c{k % MOST_CURVES}" d="M{x:.1f} {float(frame.down(low)):.1f}V{float(frame.down(high)):.1f}"/>'
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
    named = "" if len(evaluation.classes) == 2 else _legend(evaluation, shown)
    title = (
        f"Reliability of P({short(evaluation.classes[1], 30)})"
        if len(evaluation.classes) == 2
        else "Reliability of each class"
    )
    text = "Observed shares against predicted probabilities; on the diagonal both agree. Lines are 95 % intervals."
    return figure(frame, body, title, text, table, "reliability", named)


def _legend(evaluation: Evaluation, shown: list[int]) -> str:
    items = "".join(
        f'<li><i class="key c{k % MOST_CURVES}" aria-hidden="true"></i>{text_of(evaluation.classes[k], 40)}</li>'
        for k in shown
    )
    return f'<ul class="legend">{items}</ul>'


def _curves(evaluation: Evaluation) -> str:
    """ROC and DET of the classes against the rest."""
    from scipy.special import ndtri

    shown = _shown_classes(evaluation)
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
    named = "" if len(evaluation.classes) == 2 else _legend(evaluation, shown)
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
        rows.append((label, f"{found.rows:,}", *numbers, "–" if found.eer is None else _percent(found.eer)))
    return table_of(("class", "rows", "Cllr", "least Cllr", "EER"), rows, "Each class against the rest", (1, 2, 3, 4))


# -- prior and costs ---------------------------------------------------------------------------------------------------
def _decide_section(material: Material, data: dict[str, Any], share: float) -> str:
    if material.judged is None or len(material.clf.classes_) < 2:
        return ""
    evaluation = material.judged.evaluation
    shown = _shown_classes(evaluation)
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
            "prior": _rounded(convert(np.log(p / (1 - p)), "decibans"), 2),
            "cost": _rounded(10 * np.log10(_cost_ratio(evaluation, k)), 2),
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
    cards = _cards(
        (name, "–", "") for name in ("Threshold", "Missed", "Alarms, false", "Expected cost", "Alone", "Best possible")
    )
    for name, ident in (("Threshold", "threshold"), ("Missed", "missed"), ("Alarms, false", "alarms"),
                        ("Expected cost", "expected"), ("Alone", "alone"), ("Best possible", "best")):  # fmt: skip
        cards = cards.replace(f"<dt>{name}</dt><dd>", f'<dt>{LABELS.get(name, name)}</dt><dd id="d-{ident}">')
    return (
        "<p>The evidence stays the same; prior and costs decide where to cut it. Move them to see the threshold, the "
        "errors of the judged rows and the expected cost.</p><div class='controls'>"
        f"{choice}<div><label for='prior'>Prior</label><input id='prior' type='range' min='-40' max='40' step='any'>"
        "<output id='prior-text' for='prior'></output></div>"
        "<div><label for='cost'>Costs</label><input id='cost' type='range' min='-30' max='30' step='any'>"
        "<output id='cost-text' for='cost'></output></div></div><button id='reset' type='button'>Prior and costs of the "
        f"model</button><div aria-live='polite'>{cards}</div>{''.join(histograms)}"
    )


LABELS = {"Alarms, false": "False alarms", "Alone": "Cost of the prior alone", "Best possible": "Least cost"}


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
    return [[_rounded(v, 6), int(a), int(b)] for v, a, b in zip(values, ones, zeros)]


def _histogram(evaluation: Evaluation, k: int, ratio: Array, is_own: Array, number: int) -> str:
    found = llr_histogram(ratio, is_own, 40)
    edges = convert(found.edges, "decibans")
    shares = [side / max(side.sum(), 1) for side in (found.h1, found.h0)]
    frame = Frame((float(edges[0]), float(edges[-1])), (0.0, float(max(map(np.max, shares))) * 1.05 or 1.0), 720, 220)
    colours = (k, 1 - k) if len(evaluation.classes) == 2 else (k, 7 if k % MOST_CURVES != 7 else 6)
    bars = []
    for side, colour in zip(shares, colours):
        step = "M" + "H".join(
            f"{float(frame.across(edges[i])):.1f} {float(frame.down(side[i])):.1f}" if i == 0
            else f"{float(frame.across(edges[i])):.1f}V{float(frame.down(side[i])):.1f}" for i in range(len(side))
        ) + f"H{float(frame.across(edges[-1])):.1f}"  # fmt: skip
        bars.append(f'<path class="line c{colour % MOST_CURVES}" d="{step}"/>')
    scale = float(frame.across(1.0)) - float(frame.across(0.0))
    mark = f'<line class="mark" y1="10" y2="{frame.height - frame.bottom}" data-threshold="{frame.left} {edges[0]:.4f} {scale:.6f} {frame.width - 10} {number}"/>'
    name, rest = (
        short(evaluation.classes[k], 30),
        "the rest" if len(evaluation.classes) > 2 else short(evaluation.classes[1 - k], 30),
    )
    rows = [
        (f"{edges[i]:.1f} to {edges[i + 1]:.1f}", f"{found.h1[i]:,}", f"{found.h0[i]:,}") for i in range(len(found.h1))
    ]
    table = table_of(("evidence (dban)", name, rest), rows, "Rows by evidence", (1, 2))
    axes = frame.axes(f"evidence for {name} (dban)", "share of rows", ticks(*frame.x, 8), ticks(*frame.y, 4))
    legend = f'<ul class="legend"><li><i class="key c{colours[0] % MOST_CURVES}" aria-hidden="true"></i>{escape(name)}</li><li><i class="key c{colours[1] % MOST_CURVES}" aria-hidden="true"></i>{escape(rest)}</li><li>dashed: threshold</li></ul>'
    drawn = figure(frame, axes + "".join(bars) + mark, f"Evidence for {name} in rows of each class",
                   "Shares of rows by evidence, and the threshold.", table, f"histogram-{number}", legend)  # fmt: skip
    return f'<div class="wide" data-histogram="{number}">{drawn}</div>'


def _rounded(value: Any, digits: int) -> float:
    """A number for JSON, which has no infinity and no NaN."""
    number = float(value)
    return 0.0 if number != number else round(max(-LARGE, min(LARGE, number)), digits)


# -- features and columns ----------------------------------------------------------------------------------------------
def _features_section(material: Material) -> str:
    if not material.features:
        return ""
    largest = max(abs(one.nats) for one in material.features) or 1.0
    rows = [
        (
            short(one.name, 60),
            decibans_text(one.nats),
            bar_cell(one.nats, largest),
            _percent(one.accuracy),
            one.favours or "",
        )
        for one in material.features[:MOST_FEATURES]
    ]
    note = "<p>Mean evidence for a row's own class over the most probable other class, over a sample of the rows.</p>"
    head = ("feature", "decibans a row", "", "rows it is right for", "mostly for")
    return note + table_of(head, rows, "Features by mean evidence", (1, 3))


def _columns_section(material: Material, share: float) -> str:
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
        missing = "" if known is None or not known.missing else _percent(known.missing / known.rows)
        rows.append((name, "" if known is None else known.kind, missing, block.model))
    table = table_of(("columns", "kind", "missing", "family"), rows, "Families", (2,))
    legend = legend_of(names) if figures else ""
    more = (
        f"<p class='quiet'>Curves of the first {MOST_CURVES} classes.</p>" if len(model.classes) > MOST_CURVES else ""
    )
    title = "<h3>Densities of each class</h3>" if figures else ""
    return f"{table}{title}{legend}{more}<div class='figures'>{''.join(figures)}</div>{note}"


def _density_figure(column: ColumnScale, names: Any, ident: str) -> str:
    K = len(names)
    heights = np.exp(np.clip(column.log_density[:, :K], -700, 700))
    top = float(np.quantile(heights[np.isfinite(heights)], 0.995)) if column.kind == "number" else float(heights.max())
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
        labels = [(float(i), short(_value_text(column.values[i]), letters)) for i in range(0, m, step)]
        axes = frame.axes(column.name, ylabel, labels, ticks(0.0, top, 4))
        at = range(m)
    else:
        x = np.array(column.values, dtype=float)
        frame = Frame((float(x[0]), float(x[-1])), (0.0, top), 360, 200)
        body = "".join(frame.line(x, heights[:, k], k) for k in range(K))
        axes = frame.axes(column.name, ylabel, ticks(*frame.x), ticks(0.0, top, 4))
        at = range(0, m, max(1, m // 8))
    rows = [(_value_text(column.values[i]), *(number_text(float(h)) for h in heights[i])) for i in at]
    table = table_of(head, rows, f"{short(column.name, 40)}: {ylabel} in each class", tuple(range(1, K + 1)))
    return figure(
        frame,
        axes + body,
        short(column.name, 60),
        f"The {ylabel} of {short(column.name, 60)} in each class.",
        table,
        ident,
    )


def _value_text(value: Any) -> str:
    return number_text(float(value)) if isinstance(value, (int, float)) else short(value, 40)


def _nomogram_section(material: Material, data: dict[str, Any], share: float) -> str:
    scales, clf = material.scales, material.clf
    columns = [one for one in scales.columns if one.decibans is not None]
    if scales.reason or not columns or len(clf.classes_) < 2:
        why = scales.reason or "no column has a scale"
        return "" if not scales.columns else f"<p>There is no nomogram: {escape(why)}.</p>"
    K = min(len(clf.classes_), MOST_CURVES)
    columns.sort(key=lambda one: -float(np.ptp(np.clip(one.decibans[:, 1] - one.decibans[:, 0], -200, 200))))  # type: ignore[index]
    most = max(5, int(share * NUMBERS / K / max(len(one.values) for one in columns)))
    left = columns[most:]
    columns = columns[:most]
    offsets = scales.offsets[:K]
    base = scales.base[:K].copy()
    for one in left:
        base += one.decibans[one.middle, :K]  # type: ignore[index]
    names = [short(name, 40) for name in clf.classes_[:K]]
    prior = convert(np.maximum(clf.log_prior()[:K], -300.0), "decibans")
    data["nomogram"] = {
        "classes": names,
        "prior": [_rounded(p, 4) for p in prior],
        "offsets": [_rounded(o, 6) for o in offsets],
        "base": [_rounded(b, 6) for b in base],
        "linear": bool(base.any()),
        "columns": [
            {
                "values": [_value_text(value) for value in one.values],
                "decibans": [[_rounded(e, 4) for e in row[:K]] for row in np.asarray(one.decibans)],
            }
            for one in columns
        ],
    }
    rows = "".join(_scale_row(number, one) for number, one in enumerate(columns))
    choice = ""
    if len(clf.classes_) > 2:
        for ident, text, first in (("over", "Evidence for", 1), ("against", "over", 0)):
            options = "".join(
                f'<option value="{k}"{" selected" if k == first else ""}>{escape(name)}</option>'
                for k, name in enumerate(names)
            )
            choice += f'<div><label for="{ident}">{text}</label><br><select id="{ident}">{options}</select></div>'
    start = _rounded(prior[1] - prior[0], 2)
    notes = []
    if left:
        notes.append(f"{len(left):,} more columns stay at their typical values.")
    if scales.left_out:
        notes.append(f"Without a scale, and so without evidence here: {shortened(scales.left_out)}.")
    if len(clf.classes_) > K:
        notes.append(f"The first {K} classes.")
    return (
        "<p>Set the value of each column: its curve shows the evidence of every value, above the middle line for the "
        "class. The evidence of all columns is added; with the prior it gives the probability.</p>"
        f"<div class='controls'>{choice}<div><label for='nomogram-prior'>Prior odds</label>"
        f"<input id='nomogram-prior' type='range' min='-60' max='60' step='any' value='{start}'>"
        f"<output id='nomogram-prior-text' for='nomogram-prior'></output></div></div>{rows}"
        "<div class='sum' role='status'><span id='nomogram-sum'></span> → P = <span id='nomogram-probability'></span></div>"
        f"<p class='quiet'>{escape(' '.join(notes))}</p>"
    )


def _scale_row(number: int, column: ColumnScale) -> str:
    name, last, ident = short(column.name, 60), len(column.values) - 1, f"scale-{number}"
    curve = '<svg viewBox="0 0 100 20" preserveAspectRatio="none" aria-hidden="true"><path class="grid" d="M0 10H100"/><polyline class="line" points=""/><line class="mark" y1="0" y2="20"/></svg>'
    if column.kind == "category":
        options = "".join(f'<option value="{i}">{text_of(value, 40)}</option>' for i, value in enumerate(column.values))
        control = f'<select id="{ident}">{options}<option value="-1">missing</option></select>'
    else:
        control = f'<input id="{ident}" type="range" min="-1" max="{last}" step="1" value="{column.middle}">'
    return f'<div class="scale" data-column="{number}"><label for="{ident}">{escape(name)}</label><div class="track-cell">{curve}{control}</div><output for="{ident}"></output></div>'


# -- words and rows ----------------------------------------------------------------------------------------------------
def _words_section(material: Material, data: dict[str, Any], share: float) -> str:
    if not material.words:
        return ""
    K = min(len(material.clf.classes_), MOST_CLASSES)
    sets = []
    for one in material.words:
        most = int(share * len(one.words))
        sets.append({
            "total": one.total,
            "words": [[short(w, 40), _rounded(n, 1), *(_rounded(e, 1) for e in row[:K])]
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


def _rows_section(material: Material) -> str:
    judged, clf = material.judged, material.clf
    if judged is None or len(clf.classes_) < 2:
        return ""
    model = clf.model_
    lengths = _lengths(clf, judged) if len(model.positions) == len(material.words) else None
    shown = rows_to_show(clf, judged, lengths)
    made = []
    for heading, note, chosen in (
        ("Most typical", "the strongest evidence for their own class" if lengths is not None else "the highest density under the model", shown.typical),
        ("Most surprising", "the lowest density under the model" + (", a word" if lengths is not None else ""), shown.surprising),
        ("Most wrong", "the strongest evidence for a class that is not theirs", shown.wrong),
    ):  # fmt: skip
        inner = "".join(_row_article(material, judged, int(i), shown.nats, shown.rival) for i in chosen)
        made.append(
            f"<h3>{heading}</h3><p class='quiet'>Rows with {note}.</p>{inner or '<p>None: all rows favour their own class.</p>'}"
        )
    sampled = f" (a sample of {len(judged.positions):,} rows)" if len(judged.positions) < len(judged.evaluation) else ""
    return f"<p class='quiet'>Of the rows that were judged{sampled}.</p>{''.join(made)}"


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
    verdict = "predicted right" if decided == own else f"predicted “{short(decided, 40)}”"
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


# -- data, drift, calibration ------------------------------------------------------------------------------------------
def _data_section(material: Material) -> str:
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
            found += [str(finding) for finding in report.findings[:20]]
            checked = f"{report.checked:,} pairs of column and class were compared with samples of the model."
        except (DecibanError, TypeError, ValueError):
            checked = "The columns cannot be compared with samples of the model."
    items = "".join(f"<li>{text_of(text, 400)}</li>" for text in found[:60])
    listed = f"<ul class='notes'>{items}</ul>" if items else "<p>Nothing was found.</p>"
    return listed + (f"<p class='quiet'>{checked}</p>" if checked else "")


def _drift_section(material: Material) -> str:
    found = material.drift
    if found is None:
        return ""
    sums = [max(float(side.sum()), 1e-300) for side in (found.learnt, found.other)]
    classes = [
        (name, _percent(float(a) / sums[0]), _percent(float(b) / sums[1]))
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
        f"<p>The {found.rows:,.15g} rows of the second file against the rows learnt. Positive decibans: evidence that a "
        "column has other parameters there, given the class; negative: evidence that they are the same. Computed from the "
        "sums of both, with parameters integrated out.</p>"
        + table_of(("columns", "decibans", "", ""), columns, "Columns", (1,))
        + table_of(("class", "share learnt", "share in the second file"), classes, "Classes", (1, 2))
    )


def _drift_text(decibans: float | None) -> str:
    if decibans is None:
        return "the family cannot be compared by its sums"
    if abs(decibans) < 10:
        return "undecided"
    return "different" if decibans > 0 else "the same"


def _calibration_section(material: Material) -> str:
    model = material.clf.model_
    calibration = model.calibration
    if calibration is None:
        text = "<p>The evidence is not calibrated: it is that of the families.</p>"
    else:
        text = f"<p>Log-likelihoods are calibrated by the method “{escape(calibration.method)}”, {escape(calibration.state(model.weight))}.</p>"
        text += f"<p class='quiet'>{text_of(repr(calibration.calibrator), 300)}</p>"
        if calibration.fitted_on != model.weight:
            text += "<p class='warn'>The calibration is out of date: fit it again on learnt rows.</p>"
    if material.judged is not None:
        evaluation = material.judged.evaluation
        if evaluation.figure("cllr") is not None and np.isfinite(evaluation.cllr):
            text += f"<p>On the judged rows, {evaluation.calibration_loss:.3f} of the Cllr of {evaluation.cllr:.3f} is lost by calibration.</p>"
    return text
