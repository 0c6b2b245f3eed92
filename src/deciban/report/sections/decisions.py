"""The section of decisions: sliders of prior and costs, and the llrs from which a script counts errors."""

from __future__ import annotations

from typing import Any

import numpy as np

from deciban.errors import DecibanError
from deciban.evaluate.curves import llr_histogram
from deciban.evaluate.report import Evaluation
from deciban.evidence.explanation import short
from deciban.evidence.scores import convert
from deciban.report.drawing import (
    COLOURS,
    LARGE,
    Frame,
    cards,
    class_text,
    figure,
    legend_of,
    rounded,
    table_of,
    text_of,
    ticks,
)
from deciban.report.material import NUMBERS, Material
from deciban.report.sections.figures import shown_classes
from deciban.statistics import Array

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
        "<p>The evidence stays the same; prior and costs decide where to cut it. Move them to see the threshold, the "
        "errors of the judged rows and the expected cost.</p><div class='controls'>"
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
