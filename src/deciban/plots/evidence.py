"""Plots of the evidence of each feature: bars for one row, a nomogram for a model.

Reference: Možina et al., Nomograms for visualization of naive Bayesian classifier, PKDD 2004.
"""

from __future__ import annotations

from collections.abc import Hashable
from math import isinf
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike
from scipy.special import logit

from deciban.errors import InputError, NotAvailableError
from deciban.evidence.decisions import PriorLike
from deciban.evidence.explanation import Explanation, Line, decibans_text, odds_text, probability_text, short
from deciban.evidence.scores import convert
from deciban.model.nomogram import nomogram as model_nomogram
from deciban.plots.canvas import AGAINST, DECIBANS, FOR, GREY, MINUS, PRIOR_LABELS, PRIORS, canvas, finish, write
from deciban.read.batches import chosen_rows
from deciban.read.tables import Table
from deciban.statistics import Array

if TYPE_CHECKING:
    from deciban.estimators.classifier import GenerativeClassifier

PAIR_ROWS = 2000  # rows over which the evidence of pairs of columns is shown
QUANTILES = (0.02, 0.25, 0.5, 0.75, 0.98)  # values of a number that its scale shows
MAX_VALUES = 6  # values of a category that its scale shows
SUM_HEIGHT, PROBABILITY_HEIGHT = -0.3, -1.3  # ordinates of the two lower scales; the features are at 1, 2, …
LETTER = 0.0115  # width of a letter, relative to the width of the picture
STEPS = np.array([1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000])  # decibans between ticks


def evidence_bars(explanation: Explanation, row: int = 0, *, most: int = 12, ax: Axes | None = None) -> Axes:
    """Draw the evidence of each feature of one row, their sum, the prior and the posterior as bars, in decibans.

    Parameters
    ----------
    explanation : Explanation
        Result of `explain`.
    row : int, default=0
        Position of the row.
    most : int, default=12
        Number of features to draw, those of strongest evidence; the others are summed in one bar.
    ax : matplotlib.axes.Axes, optional
        Where to draw, new axes if not given.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> explained = Explanation(["height"], [[1.505]], "male", "female", values=[[174]], prior_part=-2.197)
    >>> ax = evidence_bars(explained, ax=Figure().subplots())
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['height = 174', 'evidence', 'prior', 'posterior']
    """
    one = explanation[row]
    bars = one.lines(most)
    ax = canvas(ax, 6.2, 1.4 + 0.28 * len(bars))
    weights = np.array([DECIBANS * bar.nats for bar in bars])
    longest = float(np.abs(weights[np.isfinite(weights)]).max(initial=1.0))
    lengths = np.clip(weights, -1.25 * longest, 1.25 * longest)  # infinite evidence: the longest bar
    places = range(len(bars))
    drawn = ax.barh(places, lengths, color=[FOR if bar.nats > 0 else AGAINST for bar in bars], height=0.72)
    for patch, bar, length, place in zip(drawn, bars, lengths, places):
        patch.set_alpha(1.0 if bar.remark else 0.6)
        offset, side = (4, "left") if bar.nats >= 0 else (-4, "right")
        write(ax, decibans_text(bar.nats), (length, place), (offset, 0), side, "center", "small")
    first_sum = next(i for i, bar in enumerate(bars) if bar.remark)
    ax.axhline(first_sum - 0.5, color=GREY, lw=0.8)
    ax.axvline(0, color="black", lw=0.8)
    ax.set_yticks(places, [_name(bar) for bar in bars])
    ax.set(ylim=(len(bars) - 0.5, -0.5), xlim=(-1.5 * longest, 1.5 * longest))
    over, against = one.sides[0]
    ax.set_xlabel(f"← {against}     evidence (decibans)     {over} →")
    ax.set_title(_headline(one), fontsize="medium")
    finish(ax).grid(axis="y", visible=False)
    return ax


def _name(line: Line) -> str:
    """The name of a bar, and the value of the feature."""
    value = short(line.value, 16)
    return f"{short(line.name, 28)} = {value}" if value else short(line.name, 28)


def _headline(one: Explanation) -> str:
    """The title: the odds, and the probability if there is a prior."""
    nats = float(one.total[0])
    over, against = one.sides[0]
    favoured = over if nats > 0 else against
    text = "the evidence is even" if nats == 0 else f"evidence {odds_text(nats)} for {favoured}"
    if isinf(nats):
        text = f"certain: {favoured}"
    if one.prior_part is None or not one.exhaustive:
        return text
    return f"{text}, P({over}) = {probability_text(float(one.log_odds[0]))}"


class Scale(NamedTuple):
    """The scale of a feature: values, the evidence of each, and that of the marked row."""

    name: str
    values: list[Any]
    decibans: Array  # (len(values),)
    marked: float | None


def nomogram(
    clf: GenerativeClassifier,
    X: object,
    over: Hashable | None = None,
    against: Hashable | None = None,
    *,
    row: int | None = None,
    prior: PriorLike | None = None,
    most: int = 10,
    ax: Axes | None = None,
) -> Axes:
    """Draw a scale of evidence for each feature, with their sum and the posterior probability below.

    For models whose features are independent given the class (naive Bayes), or whose llr is linear. Evidence of several
    columns together has one scale of its own, which shows its range over the rows.

    Parameters
    ----------
    clf : GenerativeClassifier
        A fitted classifier.
    X : table of shape (n, D)
        Rows, whose typical values are shown.
    over, against : label, optional
        The class the evidence is for, and the one it is compared with; of two classes, the second and the first if not
        given.
    row : int, optional
        Position of a row of X to mark on all scales.
    prior : class prior, optional
        The prior, that of the classifier if not given.
    most : int, default=10
        Number of features to draw, those with the widest range of evidence.
    ax : matplotlib.axes.Axes, optional
        Where to draw, new axes if not given.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Raises
    ------
    NotAvailableError
        If the evidence of the model is not a sum over features.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import load_breast_cancer
    >>> from deciban import Gaussian, GenerativeClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = GenerativeClassifier(Gaussian("tied diagonal")).fit(X[:, :4], y)
    >>> nomogram(clf, X[:, :4], row=0, ax=Figure().subplots()).get_xlabel()
    'evidence for 1 over 0 (decibans)'
    """
    table = Table.of(X)
    if table.sparse:
        raise InputError(
            "a nomogram has a scale for each column, and a sparse table has too many columns. Give a dense one."
        )
    one, other = clf.class_pair(over, against)
    if other is None:
        raise InputError("a nomogram compares one class with another. Name both.")
    names = str(clf.classes_[one]), str(clf.classes_[other])
    scales, base = _scales(clf, table, one, other, row)
    marks = [] if row is None else [base + sum(scale.marked or 0.0 for scale in scales)]
    scales = sorted(scales, key=lambda scale: -np.ptp(scale.decibans))
    rest = scales[most:]
    base += sum(float(np.median(scale.decibans)) if row is None else (scale.marked or 0.0) for scale in rest)
    scales = scales[:most]
    ax = canvas(ax, 7.0, 1.6 + 0.52 * len(scales))
    for place, scale in zip(range(len(scales), 0, -1), scales):
        _draw(ax, place, scale)
    log_odds = np.diff(clf.log_prior(prior)[[other, one]])[0]
    _sums(ax, scales, base, marks, float(convert(log_odds, "decibans")))
    ax.set_yticks(
        [*range(len(scales), 0, -1), SUM_HEIGHT, PROBABILITY_HEIGHT],
        [*(short(scale.name, 28) for scale in scales), _sum_name(base, len(rest)), f"P({names[0]})"],
    )
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(PROBABILITY_HEIGHT - 0.7, len(scales) + 0.7)
    ax.set_xlabel(f"evidence for {names[0]} over {names[1]} (decibans)")
    ax.xaxis.set_label_position("top")
    ax.xaxis.tick_top()
    ax.spines["top"].set_visible(True)
    for side in ("left", "bottom"):
        ax.spines[side].set_visible(False)
    ax.grid(axis="x", alpha=0.25, linewidth=0.6)
    return ax


def _sum_name(base: float, left_out: int) -> str:
    """The name of the scale of sums, with the constant that is added."""
    constant = f" {decibans_text(base / DECIBANS).replace('+', '+ ').replace(MINUS, MINUS + ' ')}"
    return f"sum of evidence{constant if abs(base) >= 0.05 else ''}" + (f" ({left_out} others)" if left_out else "")


def _scales(
    clf: GenerativeClassifier, table: Table, one: int, other: int, row: int | None
) -> tuple[list[Scale], float]:
    """The scale of each feature, and the constant evidence, in decibans."""
    D = len(clf.columns_)
    chosen = [_typical(table, j) for j in range(D)]
    width = max(map(len, chosen)) + (row is not None)
    cells = np.empty((width, D), dtype=object)
    for j, values in enumerate(chosen):
        mine = values + ([] if row is None else [table.take([row]).pick([j])[0, 0]])
        cells[:, j] = [*mine, *[mine[-1]] * (width - len(mine))]
    numbers = table.pick().dtype.kind in "iufb"
    shown = Table(cells.astype(float) if numbers else cells, clf.columns_, table.named)
    evidence, offset = _evidence(clf, shown, one, other)
    scales = [
        Scale(
            str(clf.columns_[j]) if isinstance(clf.columns_[j], str) else f"feature {clf.columns_[j]}",
            values,
            evidence[: len(values), j],
            None if row is None else float(evidence[len(values), j]),
        )
        for j, values in enumerate(chosen)
    ]
    calibration = clf.model_.calibration
    if calibration is not None and calibration.uses_experts:
        scales.append(_pairs_scale(clf, table, one, other, row))
    return scales, offset


def _evidence(clf: GenerativeClassifier, rows: Table, one: int, other: int) -> tuple[Array, float]:
    """Evidence of each value of each column (m, D), and the constant, in decibans; an error if it is not a sum."""
    found = model_nomogram(clf.predictor_, rows, range(len(clf.columns_)))
    if found.reason or found.left_out:
        why = found.reason or "the evidence of this model is not a sum over columns"
        raise NotAvailableError(
            f"{why}, so columns have no scales. Use a diagonal or a tied covariance, or calibrate='offsets'."
        )
    columns = np.stack([found.evidence[j] for j in range(len(clf.columns_))], axis=2)  # (m, K, D)
    constant = found.base + found.offsets
    return DECIBANS * (columns[:, one] - columns[:, other]), DECIBANS * float(constant[one] - constant[other])


def _pairs_scale(clf: GenerativeClassifier, table: Table, one: int, other: int, row: int | None) -> Scale:
    """The scale of functions of several columns: quantiles of their evidence over the rows, and the marked row's."""
    some = chosen_rows(len(table), PAIR_ROWS)
    rows = table.take(some if row is None else np.append(some, row))
    columns, constant = _evidence(clf, rows, one, other)
    predictor = clf.predictor_
    scores = predictor.scores(predictor.model.encode(rows))
    beyond = DECIBANS * (scores[:, one] - scores[:, other]) - columns.sum(axis=1) - constant
    shown = np.quantile(beyond, QUANTILES)
    names = [decibans_text(float(value) / DECIBANS) for value in shown]
    return Scale("several columns", names, shown, None if row is None else float(beyond[-1]))


def _typical(table: Table, j: int) -> list[Any]:
    """The most frequent values of a category, or quantiles of a number."""
    column = table.pick([j])[:, 0]
    if column.dtype == object or table.kind(j) != "number":
        held, count = np.unique(np.array([str(v) for v in column if v is not None]), return_counts=True)
        known = {str(v): v for v in column if v is not None}
        return [known[name] for name in held[np.argsort(-count, kind="stable")][:MAX_VALUES]]
    numbers = np.asarray(column, dtype=float)
    numbers = numbers[np.isfinite(numbers)]
    if len(np.unique(numbers)) <= MAX_VALUES:
        return np.unique(numbers).tolist()
    return np.unique(np.quantile(numbers, QUANTILES)).tolist()


def _draw(ax: Axes, place: float, scale: Scale) -> None:
    """One scale: a line with its values; labels that would overlap are put below it, or left out."""
    at = np.sort(scale.decibans)
    ax.plot(at[[0, -1]], [place, place], color="black", lw=1, gid="scale")
    ax.plot(scale.decibans, np.full(len(at), place), "|", color="black", ms=6, gid="ticks")
    letter = LETTER * max(np.ptp(ax.dataLim.intervalx), 1e-9)
    ends = {True: -np.inf, False: -np.inf}  # right end of the labels above and below the line
    for i in np.argsort(scale.decibans):
        text = short(_rounded(scale.values[i]), 12)
        half = (len(text) + 1) / 2 * letter
        above = scale.decibans[i] - half >= ends[True]
        if not above and scale.decibans[i] - half < ends[False]:
            continue  # no room: a tick without a label
        ends[above] = scale.decibans[i] + half
        offset, side = (4, "bottom") if above else (-4, "top")
        write(ax, text, (scale.decibans[i], place), (0, offset), "center", side)
    if scale.marked is not None:
        ax.plot([scale.marked], [place], "o", color=FOR, ms=6, gid="marked")


def _rounded(value: object) -> object:
    return float(f"{value:.3g}") if isinstance(value, (float, np.floating)) else value


def _sums(ax: Axes, scales: list[Scale], base: float, marks: list[float], prior: float) -> None:
    """The two lower scales: the sum, scaled to the width of the picture, and the posterior probability."""
    low, high = (base + sum(float(end(scale.decibans)) for scale in scales) for end in (np.min, np.max))
    left, right = ax.dataLim.intervalx
    low, high = min([low, *marks]), max([high, *marks])

    def scaled(decibans: ArrayLike) -> Array:
        return left + (np.asarray(decibans) - low) * (right - left) / (high - low)

    step = STEPS[np.searchsorted(STEPS, (high - low) / 10).clip(max=len(STEPS) - 1)]
    totals = np.arange(np.ceil(low / step), np.floor(high / step) + 1) * step
    odds = np.array([DECIBANS * logit(p) - prior for p in PRIORS])
    inside = (odds >= low) & (odds <= high)
    probabilities = [label for label, shown in zip(PRIOR_LABELS, inside) if shown]
    for place, at, labels in (
        (SUM_HEIGHT, totals, [f"{t:g}".replace("-", MINUS) for t in totals]),
        (PROBABILITY_HEIGHT, odds[inside], probabilities),
    ):
        ax.plot([left, right], [place, place], color=GREY, lw=1, gid="sum")
        ax.plot(scaled(at), np.full(len(at), place), "|", color=GREY, ms=6)
        for x, text in zip(scaled(at), labels):
            write(ax, text, (x, place), (0, 4), "center", "bottom")
        ax.plot(scaled(marks), [place] * len(marks), "o", color=FOR, ms=6, gid="answer")
