"""Common parts of all plots: axes, colours, the scores to draw, and the axis of prior odds."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Literal, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike
from scipy.special import logit

from deciban.errors import InputError
from deciban.evaluate.checks import Flags, two_class_scores
from deciban.evaluate.report import Evaluation
from deciban.evidence.scores import UNITS, Array

# Okabe & Ito, Color universal design, 2008: distinguishable by colour-blind readers, and in most prints
PALETTE = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8B6914", "#666666")
FOR, AGAINST = PALETTE[:2]  # evidence for h1, and against it
GREY = "#767676"
MARKERS = "osD^vPX*"
LINES = ("-", "--", "-.", ":")
DECIBANS = UNITS["decibans"]
PRIORS = (0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999)  # marked along axes of prior odds
PRIOR_LABELS = tuple(f"{p:g}".removeprefix("0") for p in PRIORS)
MINUS = "−"
LegendPlace = Literal["best", "upper left", "upper right", "center left", "lower right"]
LAST_IN_LEGEND = ("style of", "default", "reference")  # gids of lines that come last in the legend


class DrawnScores(NamedTuple):
    """The scores that a plot shows, and the names of the two classes."""

    llr: Array  # (n,)  nats
    is_h1: Flags  # (n,)
    h1: str
    h0: str


def drawn_scores(scores: Evaluation | ArrayLike, is_h1: ArrayLike | None, over: Hashable | None = None) -> DrawnScores:
    """Scores from an evaluation, of the class `over` against the rest, or from two arrays.

    >>> drawn_scores([1.505, -2.247], [True, False]).h1
    'h1'
    """
    if not isinstance(scores, Evaluation):
        if is_h1 is None:
            raise InputError("give llrs and is_h1, one flag a row; or an Evaluation, such as clf.evaluate(X, y).")
        return DrawnScores(*two_class_scores(scores, is_h1), "h1", "h0")
    if is_h1 is not None:
        raise InputError("an Evaluation has the class of each row. Leave is_h1 out.")
    pair = two_class_scores(*scores.scores(over))
    name = scores.classes[1] if over is None else over
    others = [label for label in scores.classes if label != name]
    return DrawnScores(*pair, str(name), str(others[0]) if len(others) == 1 else "the rest")


def canvas(ax: Axes | None, width: float = 5.2, height: float = 3.9) -> Axes:
    """The axes given, or those of a new figure, without a frame at the top and right."""
    if ax is None:
        import matplotlib.pyplot as plt

        _, ax = plt.subplots(figsize=(width, height), layout="constrained")
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    return ax


def colour_of(k: int) -> str:
    """The colour of class, component or curve number k."""
    return PALETTE[k % len(PALETTE)]


def marker_of(k: int) -> str:
    """The marker of class or component number k."""
    return MARKERS[k % len(MARKERS)]


def line_of(k: int) -> str:
    """The line style of curve number k."""
    return LINES[k % len(LINES)]


def count_lines(ax: Axes, gid: str) -> int:
    """Number of lines with this gid."""
    return sum(line.get_gid() == gid for line in ax.lines)


def next_colour(ax: Axes, gid: str) -> str:
    """The colour of a further curve with this gid."""
    return colour_of(count_lines(ax, gid))


def add_style_to_legend(ax: Axes, gid: str, style: str, meaning: str) -> None:
    """Add one legend entry for a line style that all models share."""
    if not count_lines(ax, f"style of {gid}"):
        ax.plot([], [], style, color=GREY, gid=f"style of {gid}", label=meaning)


def prior_axis(ax: Axes, h1: str) -> None:
    """Prior odds in decibans at the bottom, and the probabilities at the top."""
    ax.set_xlabel(f"prior odds of {h1} (decibans)")
    if not ax.child_axes:
        above = ax.secondary_xaxis("top")
        above.set_xticks([DECIBANS * logit(p) for p in PRIORS], list(PRIOR_LABELS))
        above.set_xlabel(f"prior probability of {h1}")


def write(
    ax: Axes,
    text: str,
    at: tuple[float, float],
    offset: tuple[float, float],
    ha: str,
    va: str,
    size: str = "x-small",
) -> None:
    """Write text at an offset in points from a place."""
    ax.annotate(text, at, offset, textcoords="offset points", ha=ha, va=va, fontsize=size)


def percent(share: float) -> str:
    """A share in percent, with two digits.

    >>> percent(.0213), percent(.25), percent(0)
    ('2.1 %', '25 %', '0 %')
    """
    return f"{100 * share:.2g} %"


def finish(ax: Axes, legend: LegendPlace | None = "best") -> Axes:
    """Add a grid and, if anything has a label, a legend at this place."""
    ax.grid(alpha=0.25, linewidth=0.6)
    ax.set_axisbelow(True)
    handles, labels = ax.get_legend_handles_labels()
    if legend and handles:
        order = sorted(range(len(handles)), key=lambda i: str(handles[i].get_gid()).startswith(LAST_IN_LEGEND))
        entries = [handles[i] for i in order], [labels[i] for i in order]
        ax.legend(*entries, loc=legend, frameon=True, framealpha=0.85, edgecolor="none", fontsize="small")
    return ax


def highest(ax: Axes) -> float:
    """The largest finite ordinate of all lines, at least 0."""
    heights = [np.asarray(line.get_ydata(), dtype=float) for line in ax.lines]
    return max((float(h[np.isfinite(h)].max(initial=0)) for h in heights), default=0.0)
