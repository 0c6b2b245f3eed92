"""How often decisions err: over all priors, and over all thresholds."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike
from scipy.special import ndtri

from deciban import evaluate
from deciban.evaluate.dcf import GRID
from deciban.plots.canvas import DECIBANS, GREY, canvas, explain_style, finish, judged, next_colour, percent, prior_axis

RATES = (1e-5, 1e-4, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 0.99)
BEYOND = 8.0  # probits; where rates of 0 and 1 are drawn, outside the picture


def bayes_error(
    scores: Any,
    is_h1: ArrayLike | None = None,
    *,
    over: Any = None,
    prior_log_odds: ArrayLike = GRID,
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
