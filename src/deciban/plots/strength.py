"""How strong the evidence is, and whether it keeps its promises."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from deciban import evaluate
from deciban.evaluate.cllr import GRID
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
from deciban.score import Array


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
    ax.vlines(kept.promised, kept.low, kept.high, color=colour, lw=4, alpha=0.3)
    said = f"with {100 * level:g} % credible bands"
    ax.plot(kept.promised, kept.observed, "o-", color=colour, gid="reliability", lw=1, ms=4, label=label or said)
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
    ax.set(xlabel=f"promised probability of {told.h1}", ylabel=f"share that was {told.h1}")
    return finish(ax, "upper left")


def empirical_cross_entropy(
    scores: Any,
    is_h1: ArrayLike | None = None,
    *,
    over: Any = None,
    prior_log_odds: ArrayLike = GRID,
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
