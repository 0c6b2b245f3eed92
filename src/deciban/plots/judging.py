"""Plots of llrs of two classes: costs and errors over priors and thresholds, the strength of evidence, reliability."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike
from scipy.special import ndtri

from deciban import evaluate
from deciban.evaluate import Evaluation
from deciban.evaluate.curves import DCF_GRID, ECE_GRID
from deciban.evidence.explanation import count
from deciban.evidence.scores import Array
from deciban.plots.canvas import (
    AGAINST,
    DECIBANS,
    FOR,
    GREY,
    MINUS,
    DrawnScores,
    add_style_to_legend,
    canvas,
    count_lines,
    drawn_scores,
    finish,
    highest,
    next_colour,
    percent,
    prior_axis,
)

RATES = (1e-5, 1e-4, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 0.99)
BEYOND = 8.0  # probits at which rates of 0 and 1 are drawn, outside the picture


def bayes_error(
    scores: Evaluation | ArrayLike,
    is_h1: ArrayLike | None = None,
    *,
    over: Hashable | None = None,
    prior_log_odds: ArrayLike = DCF_GRID,
    normalised: bool = True,
    label: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the cost of decisions at each prior: at the theoretical threshold, at the best one, and by the prior alone.

    Parameters
    ----------
    scores : Evaluation or array-like of shape (n,)
        Evaluated rows, or llrs in nats.
    is_h1 : array-like of bool of shape (n,), optional
        Whether h1 is true for each row; not for an Evaluation.
    over : label, optional
        Class of the Evaluation that stands against the rest; of two classes, the second if not given.
    prior_log_odds : array-like of shape (G,), optional
        Prior log odds in nats, from −6 to 6 if not given.
    normalised : bool, default=True
        Whether costs are divided by that of the prior alone; error rates otherwise.
    label : str, optional
        Name of the curve in the legend.
    ax : matplotlib.axes.Axes, optional
        Where to draw, new axes if not given.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> ax = bayes_error([1.5, 0.2, -0.4, -2.2], [1, 1, 0, 0], ax=Figure().subplots())
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('prior odds of h1 (decibans)', 'normalised DCF')
    """
    shown, ax = drawn_scores(scores, is_h1, over), canvas(ax)
    curve = evaluate.bayes_error_curve(shown.llr, shown.is_h1, prior_log_odds)
    unit = curve.default if normalised else np.ones_like(curve.default)
    curves = {"actual": curve.actual / unit, "minimum": curve.minimum / unit, "default": curve.default / unit}
    _over_priors(ax, curve.prior_log_odds, curves, label, "at the best threshold")
    ax.set_ylim(
        0, min(1.05 * highest(ax), 1.4 if normalised else 0.7)
    )  # the curve is cut off where llrs cost much more than the prior alone
    ax.set_ylabel("normalised DCF" if normalised else "error rate")
    prior_axis(ax, shown.h1)
    return finish(ax)


def _over_priors(ax: Axes, log_odds: Array, curves: dict[str, Array], label: str | None, best_label: str) -> None:
    """Draw three curves over prior odds, by gid: of the llrs, the best possible one, and that of the prior alone."""
    actual, best, reference = curves
    odds, colour = DECIBANS * log_odds, next_colour(ax, actual)
    ax.plot(odds, curves[actual], color=colour, gid=actual, label=label or actual)
    ax.plot(odds, curves[best], "--", color=colour, gid=best)
    add_style_to_legend(ax, best, "--", best_label)
    if not count_lines(ax, reference):
        ax.plot(odds, curves[reference], ":", color=GREY, gid=reference, label="prior alone")


def roc(
    scores: Evaluation | ArrayLike,
    is_h1: ArrayLike | None = None,
    *,
    over: Hashable | None = None,
    hull: bool = True,
    label: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw hits against false alarms over all thresholds.

    Parameters
    ----------
    scores : Evaluation or array-like of shape (n,)
        Evaluated rows, or llrs in nats.
    is_h1 : array-like of bool of shape (n,), optional
        Whether h1 is true for each row; not for an Evaluation.
    over : label, optional
        Class of the Evaluation that stands against the rest; of two classes, the second if not given.
    hull : bool, default=True
        Whether to draw the convex hull.
    label : str, optional
        Name of the curve in the legend.
    ax : matplotlib.axes.Axes, optional
        Where to draw, new axes if not given.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> roc([1.5, 0.2, -0.4, -2.2], [1, 0, 1, 0], ax=Figure().subplots()).lines[0].get_ydata().tolist()
    [1.0, 1.0, 0.5, 0.5, 0.0]
    """
    shown, ax = drawn_scores(scores, is_h1, over), canvas(ax, 4.2, 4.2)
    curve, colour = evaluate.roc(shown.llr, shown.is_h1), next_colour(ax, "roc")
    ax.plot(curve.false_alarm, curve.hit, color=colour, gid="roc", label=f"{label or 'ROC'}, area {curve.area:.3f}")
    if hull:
        best = evaluate.convex_hull(shown.llr, shown.is_h1)
        ax.plot(best.false_alarm, best.hit, "--", color=colour, gid="hull", lw=1)
        add_style_to_legend(ax, "hull", "--", "convex hull")
    ax.plot([0, 1], [0, 1], ":", color=GREY, gid="chance")
    ax.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.01), aspect="equal")
    ax.set_xlabel(f"{shown.h0} predicted {shown.h1} (false alarm rate)")
    ax.set_ylabel(f"{shown.h1} predicted {shown.h1} (hit rate)")
    return finish(ax, "lower right")


def det(
    scores: Evaluation | ArrayLike,
    is_h1: ArrayLike | None = None,
    *,
    over: Hashable | None = None,
    hull: bool = True,
    label: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw misses against false alarms on probit axes, where Gaussian llrs give straight lines; a dot is the EER.

    Parameters
    ----------
    scores : Evaluation or array-like of shape (n,)
        Evaluated rows, or llrs in nats.
    is_h1 : array-like of bool of shape (n,), optional
        Whether h1 is true for each row; not for an Evaluation.
    over : label, optional
        Class of the Evaluation that stands against the rest; of two classes, the second if not given.
    hull : bool, default=True
        Whether to draw the convex hull of the ROC.
    label : str, optional
        Name of the curve in the legend.
    ax : matplotlib.axes.Axes, optional
        Where to draw, new axes if not given.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> det([1.5, 0.2, -0.4, -2.2], [1, 0, 1, 0], ax=Figure().subplots()).get_ylabel()
    'h1 missed (%)'
    """
    shown, ax = drawn_scores(scores, is_h1, over), canvas(ax, 4.4, 4.4)
    curve, colour = evaluate.det(shown.llr, shown.is_h1), next_colour(ax, "det")
    rate = evaluate.eer(shown.llr, shown.is_h1)
    name = f"{label or ''} EER {percent(rate)}".lstrip()
    ax.plot(*_inside(curve.false_alarm, curve.miss), color=colour, gid="det", label=name)
    if hull:
        ax.plot(*_inside(*_probit_hull(shown)), "--", color=colour, gid="hull", lw=1)
        add_style_to_legend(ax, "hull", "--", "convex hull")
    if 0 < rate < 1:
        ax.plot(*[[ndtri(rate)]] * 2, "o", color=colour, gid="eer")
    _probit_axes(ax, int(min(shown.is_h1.sum(), (~shown.is_h1).sum())), rate)
    ax.set_xlabel(f"{shown.h0} predicted {shown.h1} (%)")
    ax.set_ylabel(f"{shown.h1} missed (%)")
    return finish(ax, "upper right")


def _inside(*probits: Array) -> list[Array]:
    return [np.clip(rates, -BEYOND, BEYOND) for rates in probits]


def _probit_hull(shown: DrawnScores) -> tuple[Array, Array]:
    """False alarms and misses of the hull in probits; its edges, straight in the ROC, are curves here."""
    corners = evaluate.convex_hull(shown.llr, shown.is_h1)
    at = np.linspace(0, len(corners.hit) - 1, 64 * (len(corners.hit) - 1) + 1)
    alarm, hit = (np.interp(at, np.arange(len(corners.hit)), rates) for rates in (corners.false_alarm, corners.hit))
    return ndtri(alarm), ndtri(1 - hit)


def _probit_axes(ax: Axes, rows: int, rate: float) -> None:
    """Set limits from half a row, the smallest rate that the rows can show, to well beyond the EER."""
    low, high = np.clip(0.5 / rows, 1e-5, 0.02), np.clip(2.5 * rate, 0.5, 0.95)
    if count_lines(ax, "equal"):  # further curves can only widen the limits
        low, high = min(ndtri(low), ax.get_xlim()[0]), max(ndtri(high), ax.get_xlim()[1])
    else:
        low, high = ndtri([low, high])
        ax.plot([-BEYOND, BEYOND], [-BEYOND, BEYOND], ":", color=GREY, lw=0.8, gid="equal")
    ticks = [r for r in RATES if low <= ndtri(r) <= high]
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_ticks(ndtri(ticks), [f"{100 * r:g}" for r in ticks])
    ax.set(xlim=(low, high), ylim=(low, high), aspect="equal")


def tippett(
    scores: Evaluation | ArrayLike,
    is_h1: ArrayLike | None = None,
    *,
    over: Hashable | None = None,
    span: tuple[float, float] | None = None,
    label: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the share of each class with at least a given evidence for h1; the legend has the share of misleading rows.

    Parameters
    ----------
    scores : Evaluation or array-like of shape (n,)
        Evaluated rows, or llrs in nats.
    is_h1 : array-like of bool of shape (n,), optional
        Whether h1 is true for each row; not for an Evaluation.
    over : label, optional
        Class of the Evaluation that stands against the rest; of two classes, the second if not given.
    span : (float, float), optional
        Range to show in decibans, the middle 98 % of each class if not given.
    label : str, optional
        Name of the curves in the legend.
    ax : matplotlib.axes.Axes, optional
        Where to draw, new axes if not given.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> tippett([1.5, 0.2, -0.4, -2.2], [1, 0, 1, 0], ax=Figure().subplots()).get_xlabel()
    'evidence for h1 (decibans)'
    """
    shown, ax = drawn_scores(scores, is_h1, over), canvas(ax)
    curve = evaluate.tippett(shown.llr, shown.is_h1)
    style = "--" if count_lines(ax, "h1") else "-"
    view = _central_span(shown) if span is None else span
    edges = _around(DECIBANS * curve.llr, view)
    wrong = np.mean(shown.llr[shown.is_h1] < 0), np.mean(shown.llr[~shown.is_h1] > 0)
    for gid, name, share, colour, misleading in zip(
        ("h1", "h0"), (shown.h1, shown.h0), (curve.h1, curve.h0), (FOR, AGAINST), wrong
    ):
        ax.plot(
            np.r_[edges[0], np.clip(DECIBANS * curve.llr, *edges), edges[1]],
            np.r_[1.0, share, share[-1] if curve.llr[-1] == np.inf else 0.0],
            style,
            color=colour,
            drawstyle="steps-pre",
            gid=gid,
            label=f"{label or ''} {name}, {percent(float(misleading))} misleading".lstrip(),
        )
    ax.axvline(0, color=GREY, lw=0.8)
    ax.set(xlim=view, ylim=(-0.02, 1.02))
    ax.set(xlabel=f"evidence for {shown.h1} (decibans)", ylabel="share with at least this evidence")
    return finish(ax, "upper right")


def _central_span(shown: DrawnScores) -> tuple[float, float]:
    """The range in decibans of the middle 98 % of each class and of 0, with a margin."""
    sides = [shown.llr[side & np.isfinite(shown.llr)] for side in (shown.is_h1, ~shown.is_h1)]
    ends = [0.0, *(DECIBANS * end for side in sides if len(side) for end in np.quantile(side, [0.01, 0.99]))]
    margin = 0.05 * (max(ends) - min(ends)) or 1.0
    return min(ends) - margin, max(ends) + margin


def _around(decibans: Array, view: tuple[float, float]) -> tuple[float, float]:
    """Where steps begin and end: outside the view and all finite values."""
    finite = decibans[np.isfinite(decibans)]
    return min([*view, *finite[:1]]) - 1, max([*view, *finite[-1:]]) + 1


def llr_histogram(
    scores: Evaluation | ArrayLike,
    is_h1: ArrayLike | None = None,
    *,
    over: Hashable | None = None,
    bins: int = 40,
    span: tuple[float, float] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a histogram of the evidence in each class; infinite llrs are counted at the sides.

    Parameters
    ----------
    scores : Evaluation or array-like of shape (n,)
        Evaluated rows, or llrs in nats.
    is_h1 : array-like of bool of shape (n,), optional
        Whether h1 is true for each row; not for an Evaluation.
    over : label, optional
        Class of the Evaluation that stands against the rest; of two classes, the second if not given.
    bins : int, default=40
        Number of bins.
    span : (float, float), optional
        Range to show in decibans, the middle 98 % of each class if not given. Its first and last bins hold the finite
        llrs beyond.
    ax : matplotlib.axes.Axes, optional
        Where to draw, new axes if not given.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> llr_histogram([1.5, 0.2, -0.4, -2.2], [1, 0, 1, 0], ax=Figure().subplots()).get_ylabel()
    'share of its class'
    """
    shown, ax = drawn_scores(scores, is_h1, over), canvas(ax)
    low, high = np.divide(_central_span(shown) if span is None else span, DECIBANS)
    inside = np.where(np.isinf(shown.llr), shown.llr, np.clip(shown.llr, low, high))
    shape = evaluate.llr_histogram(inside, shown.is_h1, np.linspace(low, high, bins + 1))
    rows = int(shown.is_h1.sum()), int((~shown.is_h1).sum())
    for name, number, total, colour, hatch in zip(
        (shown.h1, shown.h0), (shape.h1, shape.h0), rows, (FOR, AGAINST), ("", "///")
    ):
        ax.stairs(
            number / total,
            DECIBANS * shape.edges,
            fill=True,
            facecolor=(colour, 0.35),
            edgecolor=colour,
            hatch=hatch,
            label=f"{name}, {count(total, 'row')}",
        )
    for side, place in enumerate(((0.01, "left"), (0.99, "right"))):
        if shape.infinite[:, side].any():
            ones, zeros = shape.infinite[:, side]
            text = f"{(MINUS, '+')[side]}∞: {ones:,} {shown.h1}, {zeros:,} {shown.h0}"
            ax.text(place[0], 0.55, text, transform=ax.transAxes, ha=place[1], fontsize="small")
    ax.axvline(0, color=GREY, lw=0.8)
    ax.set(xlabel=f"evidence for {shown.h1} (decibans)", ylabel="share of its class")
    return finish(ax)


def reliability(
    scores: Evaluation | ArrayLike,
    is_h1: ArrayLike | None = None,
    *,
    over: Hashable | None = None,
    bins: int = 10,
    level: float = 0.95,
    label: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw how often h1 is true against its predicted probability; calibrated llrs lie on the diagonal.

    Parameters
    ----------
    scores : Evaluation or array-like of shape (n,)
        Evaluated rows, or llrs in nats.
    is_h1 : array-like of bool of shape (n,), optional
        Whether h1 is true for each row; not for an Evaluation.
    over : label, optional
        Class of the Evaluation that stands against the rest; of two classes, the second if not given.
    bins : int, default=10
        Number of bins of equally many rows.
    level : float, default=0.95
        Probability of the credible intervals.
    label : str, optional
        Name of the curve in the legend.
    ax : matplotlib.axes.Axes, optional
        Where to draw, new axes if not given.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> reliability([1.5, 0.2, -0.4, -2.2], [1, 0, 1, 0], bins=2, ax=Figure().subplots()).get_xlabel()
    'predicted probability of h1'
    """
    shown, ax = drawn_scores(scores, is_h1, over), canvas(ax, 4.2, 4.2)
    curve, colour = evaluate.reliability(shown.llr, shown.is_h1, bins, level), next_colour(ax, "reliability")
    ax.plot([0, 1], [0, 1], ":", color=GREY, gid="diagonal")
    ax.vlines(curve.predicted, curve.low, curve.high, color=colour, lw=4, alpha=0.3)
    name = label or f"with {100 * level:g} % credible intervals"
    ax.plot(curve.predicted, curve.observed, "o-", color=colour, gid="reliability", lw=1, ms=4, label=name)
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
    ax.set(xlabel=f"predicted probability of {shown.h1}", ylabel=f"share of {shown.h1}")
    return finish(ax, "upper left")


def empirical_cross_entropy(
    scores: Evaluation | ArrayLike,
    is_h1: ArrayLike | None = None,
    *,
    over: Hashable | None = None,
    prior_log_odds: ArrayLike = ECE_GRID,
    label: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the cross-entropy of llrs at each prior, before and after recalibration; at even odds it is the Cllr.

    Parameters
    ----------
    scores : Evaluation or array-like of shape (n,)
        Evaluated rows, or llrs in nats.
    is_h1 : array-like of bool of shape (n,), optional
        Whether h1 is true for each row; not for an Evaluation.
    over : label, optional
        Class of the Evaluation that stands against the rest; of two classes, the second if not given.
    prior_log_odds : array-like of shape (G,), optional
        Prior log odds in nats, from −6 to 6 if not given.
    label : str, optional
        Name of the curve in the legend.
    ax : matplotlib.axes.Axes, optional
        Where to draw, new axes if not given.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> empirical_cross_entropy([1.5, -2.2], [True, False], ax=Figure().subplots()).get_ylabel()
    'empirical cross-entropy (bits)'
    """
    shown, ax = drawn_scores(scores, is_h1, over), canvas(ax)
    curve = evaluate.empirical_cross_entropy(shown.llr, shown.is_h1, prior_log_odds)
    curves = {"actual": curve.actual, "calibrated": curve.calibrated, "reference": curve.reference}
    _over_priors(ax, curve.prior_log_odds, curves, label, "best calibration")
    ax.set_ylim(0, min(1.05 * highest(ax), 2.0))
    ax.set_ylabel("empirical cross-entropy (bits)")
    prior_axis(ax, shown.h1)
    return finish(ax)
