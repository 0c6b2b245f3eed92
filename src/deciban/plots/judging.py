"""How often decisions err: over all priors, and over all thresholds."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike
from scipy.special import ndtri

from deciban import evaluate
from deciban.evaluate.two_class import DCF_GRID, ECE_GRID
from deciban.evidence.scores import Array
from deciban.plots.canvas import (
    AGAINST,
    DECIBANS,
    FOR,
    GREY,
    MINUS,
    Judged,
    canvas,
    explain_style,
    finish,
    judged,
    next_colour,
    percent,
    prior_axis,
)

RATES = (1e-5, 1e-4, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 0.99)
BEYOND = 8.0  # probits; where rates of 0 and 1 are drawn, outside the picture


def bayes_error(
    scores: Any,
    is_h1: ArrayLike | None = None,
    *,
    over: Any = None,
    prior_log_odds: ArrayLike = DCF_GRID,
    normalised: bool = True,
    label: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """What decisions cost at each prior: by theory's threshold, by the best one, and by the prior alone.

    Normalised, the prior alone costs 1 everywhere; otherwise the curves are error rates.

    >>> from matplotlib.figure import Figure
    >>> ax = bayes_error([1.5, 0.2, -0.4, -2.2], [1, 1, 0, 0], ax=Figure().subplots())
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('prior odds of h1 (decibans)', 'normalised DCF')
    """
    told, ax = judged(scores, is_h1, over), canvas(ax)
    curve = evaluate.bayes_error_curve(told.llr, told.is_h1, prior_log_odds)
    unit = curve.default if normalised else np.ones_like(curve.default)
    odds, colour = DECIBANS * curve.prior_log_odds, next_colour(ax, "actual")
    ax.plot(odds, curve.actual / unit, color=colour, gid="actual", label=label or "actual")
    ax.plot(odds, curve.minimum / unit, "--", color=colour, gid="minimum")
    explain_style(ax, "minimum", "--", "at the best threshold")
    if not any(line.get_gid() == "default" for line in ax.lines):
        ax.plot(odds, curve.default / unit, ":", color=GREY, gid="default", label="by the prior alone")
    top = max(float(np.max(line.get_ydata(), initial=0)) for line in ax.lines)
    ax.set_ylim(0, min(1.05 * top, 1.4 if normalised else 0.7))  # where llrs do harm, how much matters little
    ax.set_ylabel("normalised DCF" if normalised else "error rate")
    prior_axis(ax, told.h1)
    return finish(ax)


def roc(
    scores: Any,
    is_h1: ArrayLike | None = None,
    *,
    over: Any = None,
    hull: bool = True,
    label: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Hits against false alarms over all thresholds, and the convex hull.

    >>> from matplotlib.figure import Figure
    >>> roc([1.5, 0.2, -0.4, -2.2], [1, 0, 1, 0], ax=Figure().subplots()).lines[0].get_ydata().tolist()
    [1.0, 1.0, 0.5, 0.5, 0.0]
    """
    told, ax = judged(scores, is_h1, over), canvas(ax, 4.2, 4.2)
    curve, colour = evaluate.roc(told.llr, told.is_h1), next_colour(ax, "roc")
    ax.plot(curve.false_alarm, curve.hit, color=colour, gid="roc", label=f"{label or 'ROC'}, area {curve.area:.3f}")
    if hull:
        best = evaluate.convex_hull(told.llr, told.is_h1)
        ax.plot(best.false_alarm, best.hit, "--", color=colour, gid="hull", lw=1)
        explain_style(ax, "hull", "--", "convex hull")
    ax.plot([0, 1], [0, 1], ":", color=GREY, gid="chance")
    ax.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.01), aspect="equal")
    ax.set_xlabel(f"{told.h0} taken for {told.h1} (false alarm rate)")
    ax.set_ylabel(f"{told.h1} found (hit rate)")
    return finish(ax, "lower right")


def det(
    scores: Any,
    is_h1: ArrayLike | None = None,
    *,
    over: Any = None,
    hull: bool = True,
    label: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Misses against false alarms on probit axes, where Gaussian llrs draw straight lines; a dot at the EER.

    >>> from matplotlib.figure import Figure
    >>> det([1.5, 0.2, -0.4, -2.2], [1, 0, 1, 0], ax=Figure().subplots()).get_ylabel()
    'h1 missed (%)'
    """
    told, ax = judged(scores, is_h1, over), canvas(ax, 4.4, 4.4)
    curve, colour = evaluate.det(told.llr, told.is_h1), next_colour(ax, "det")
    rate = evaluate.eer(told.llr, told.is_h1)
    ends = -BEYOND, BEYOND
    ax.plot(
        np.clip(curve.false_alarm, *ends),
        np.clip(curve.miss, *ends),
        color=colour,
        gid="det",
        label=f"{label or ''} EER {percent(rate)}".lstrip(),
    )
    if hull:
        alarm, miss = _hull(told.llr, told.is_h1)
        ax.plot(np.clip(alarm, *ends), np.clip(miss, *ends), "--", color=colour, gid="hull", lw=1)
        explain_style(ax, "hull", "--", "convex hull")
    if 0 < rate < 1:
        ax.plot(*[[ndtri(rate)]] * 2, "o", color=colour, gid="eer")
    rows = int(min(told.is_h1.sum(), (~told.is_h1).sum()))
    _probit_axes(ax, rows, rate)
    ax.set_xlabel(f"{told.h0} taken for {told.h1} (%)")
    ax.set_ylabel(f"{told.h1} missed (%)")
    return finish(ax, "upper right")


def _hull(llr: Any, is_h1: Any) -> tuple[Any, Any]:
    """The hull in probits: its edges, straight in the ROC, bend here."""
    corners = evaluate.convex_hull(llr, is_h1)
    at = np.linspace(0, len(corners.hit) - 1, 64 * (len(corners.hit) - 1) + 1)
    alarm, hit = (np.interp(at, np.arange(len(corners.hit)), rates) for rates in (corners.false_alarm, corners.hit))
    return ndtri(alarm), ndtri(1 - hit)


def _probit_axes(ax: Axes, rows: int, rate: float) -> None:
    """From half a row's worth, the least that these rows can show, to well beyond the EER."""
    low, high = np.clip(0.5 / rows, 1e-5, 0.02), np.clip(2.5 * rate, 0.5, 0.95)
    if any(line.get_gid() == "equal" for line in ax.lines):  # a further curve only widens the view
        low, high = min(ndtri(low), ax.get_xlim()[0]), max(ndtri(high), ax.get_xlim()[1])
    else:
        low, high = ndtri([low, high])
        ax.plot([-BEYOND, BEYOND], [-BEYOND, BEYOND], ":", color=GREY, lw=0.8, gid="equal")
    shown = [r for r in RATES if low <= ndtri(r) <= high]
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_ticks(ndtri(shown), [f"{100 * r:g}" for r in shown])
    ax.set(xlim=(low, high), ylim=(low, high), aspect="equal")


# -- strength ----------
# How strong the evidence is, and whether it keeps its promises.


def tippett(
    scores: Any,
    is_h1: ArrayLike | None = None,
    *,
    over: Any = None,
    span: Any = None,
    label: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """The share of each class that has at least so much evidence for h1; misleading evidence is told in the legend.

    `span` is the range to show, in decibans; otherwise the middle 98 % of each class.

    >>> from matplotlib.figure import Figure
    >>> tippett([1.5, 0.2, -0.4, -2.2], [1, 0, 1, 0], ax=Figure().subplots()).get_xlabel()
    'evidence for h1 (decibans)'
    """
    told, ax = judged(scores, is_h1, over), canvas(ax)
    curve = evaluate.tippett(told.llr, told.is_h1)
    style = "-" if not any(line.get_gid() == "h1" for line in ax.lines) else "--"
    view = central_span(told) if span is None else span
    edges = _around(DECIBANS * curve.llr, view)
    wrong = np.mean(told.llr[told.is_h1] < 0), np.mean(told.llr[~told.is_h1] > 0)
    for gid, name, share, colour, misled in zip(
        ("h1", "h0"), (told.h1, told.h0), (curve.h1, curve.h0), (FOR, AGAINST), wrong
    ):
        beyond = share[-1] if curve.llr[-1] == np.inf else 0.0
        ax.plot(
            np.r_[edges[0], np.clip(DECIBANS * curve.llr, *edges), edges[1]],
            np.r_[1.0, share, beyond],
            style,
            color=colour,
            drawstyle="steps-pre",
            gid=gid,
            label=f"{label or ''} {name}, {percent(float(misled))} misleading".lstrip(),
        )
    ax.axvline(0, color=GREY, lw=0.8)
    ax.set(xlim=view, ylim=(-0.02, 1.02))
    ax.set(xlabel=f"evidence for {told.h1} (decibans)", ylabel="share with at least this evidence")
    return finish(ax, "upper right")


def central_span(told: Judged) -> tuple[float, float]:
    """The decibans of the middle 98 % of each class, and of 0, with a little room."""
    sides = [told.llr[side & np.isfinite(told.llr)] for side in (told.is_h1, ~told.is_h1)]
    ends = [0.0, *(DECIBANS * end for side in sides if len(side) for end in np.quantile(side, [0.01, 0.99]))]
    room = 0.05 * (max(ends) - min(ends)) or 1.0
    return min(ends) - room, max(ends) + room


def _around(decibans: Array, view: Any) -> tuple[float, float]:
    """Where steps begin and end: outside the view and all finite values."""
    finite = decibans[np.isfinite(decibans)]
    return min([*view, *finite[:1]]) - 1, max([*view, *finite[-1:]]) + 1


def llr_histogram(
    scores: Any,
    is_h1: ArrayLike | None = None,
    *,
    over: Any = None,
    bins: int = 40,
    span: Any = None,
    ax: Axes | None = None,
) -> Axes:
    """How the evidence is spread in each class; infinite llrs are counted at the sides.

    `span` is the range to show, in decibans; otherwise the middle 98 % of each class. The bins at its ends hold what
    lies beyond.

    >>> from matplotlib.figure import Figure
    >>> llr_histogram([1.5, 0.2, -0.4, -2.2], [1, 0, 1, 0], ax=Figure().subplots()).get_ylabel()
    'share of its class'
    """
    told, ax = judged(scores, is_h1, over), canvas(ax)
    low, high = np.divide(central_span(told) if span is None else span, DECIBANS)
    inside = np.where(np.isinf(told.llr), told.llr, np.clip(told.llr, low, high))
    shape = evaluate.llr_histogram(inside, told.is_h1, np.linspace(low, high, bins + 1))
    rows = told.is_h1.sum(), (~told.is_h1).sum()
    for name, count, total, colour, hatch in zip(
        (told.h1, told.h0), (shape.h1, shape.h0), rows, (FOR, AGAINST), ("", "///")
    ):
        ax.stairs(
            count / total,
            DECIBANS * shape.edges,
            fill=True,
            facecolor=(colour, 0.35),
            edgecolor=colour,
            hatch=hatch,
            label=f"{name}, {total:,} row{'s' * int(total != 1)}",
        )
    for side, place in enumerate(((0.01, "left"), (0.99, "right"))):
        if shape.infinite[:, side].any():
            ones, zeros = shape.infinite[:, side]
            text = f"{(MINUS, '+')[side]}∞: {ones:,} {told.h1}, {zeros:,} {told.h0}"
            ax.text(place[0], 0.55, text, transform=ax.transAxes, ha=place[1], fontsize="small")
    ax.axvline(0, color=GREY, lw=0.8)
    ax.set(xlabel=f"evidence for {told.h1} (decibans)", ylabel="share of its class")
    return finish(ax)


def reliability(
    scores: Any,
    is_h1: ArrayLike | None = None,
    *,
    over: Any = None,
    bins: int = 10,
    level: float = 0.95,
    label: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Promised probabilities of h1 against how often it was true, with credible bands; on the diagonal all is well.

    >>> from matplotlib.figure import Figure
    >>> reliability([1.5, 0.2, -0.4, -2.2], [1, 0, 1, 0], bins=2, ax=Figure().subplots()).get_xlabel()
    'promised probability of h1'
    """
    told, ax = judged(scores, is_h1, over), canvas(ax, 4.2, 4.2)
    kept, colour = evaluate.reliability(told.llr, told.is_h1, bins, level), next_colour(ax, "reliability")
    ax.plot([0, 1], [0, 1], ":", color=GREY, gid="kept")
    ax.vlines(kept.predicted, kept.low, kept.high, color=colour, lw=4, alpha=0.3)
    said = f"with {100 * level:g} % credible bands"
    ax.plot(kept.predicted, kept.observed, "o-", color=colour, gid="reliability", lw=1, ms=4, label=label or said)
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
    ax.set(xlabel=f"promised probability of {told.h1}", ylabel=f"share that was {told.h1}")
    return finish(ax, "upper left")


def empirical_cross_entropy(
    scores: Any,
    is_h1: ArrayLike | None = None,
    *,
    over: Any = None,
    prior_log_odds: ArrayLike = ECE_GRID,
    label: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """What the llrs cost in bits at each prior, as they are and calibrated at best; at even odds it is the Cllr.

    >>> from matplotlib.figure import Figure
    >>> empirical_cross_entropy([1.5, -2.2], [True, False], ax=Figure().subplots()).get_ylabel()
    'empirical cross-entropy (bits)'
    """
    told, ax = judged(scores, is_h1, over), canvas(ax)
    curve = evaluate.empirical_cross_entropy(told.llr, told.is_h1, prior_log_odds)
    odds, colour = DECIBANS * curve.prior_log_odds, next_colour(ax, "actual")
    ax.plot(odds, curve.actual, color=colour, gid="actual", label=label or "as it is")
    ax.plot(odds, curve.calibrated, "--", color=colour, gid="calibrated")
    explain_style(ax, "calibrated", "--", "calibrated at best")
    if not any(line.get_gid() == "reference" for line in ax.lines):
        ax.plot(odds, curve.reference, ":", color=GREY, gid="reference", label="knowing the prior only")
    heights = [np.asarray(line.get_ydata(), dtype=float) for line in ax.lines]
    ax.set_ylim(0, min(1.05 * max(float(h[np.isfinite(h)].max(initial=0)) for h in heights), 2.0))
    ax.set_ylabel("empirical cross-entropy (bits)")
    prior_axis(ax, told.h1)
    return finish(ax)
