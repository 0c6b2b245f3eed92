"""What all pictures share: axes, colours that most eyes tell apart, and odds in decibans."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike
from scipy.special import expit, logit

from deciban.errors import InputError
from deciban.evaluate.checks import Flags, two_class_scores
from deciban.evaluate.report import Evaluation
from deciban.evidence.scores import UNITS, Array

# Okabe & Ito, Color universal design, 2008: told apart by colour-blind readers, and by most printers
PALETTE = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8B6914", "#666666")
FOR, AGAINST = PALETTE[:2]  # evidence for h1, and against it
GREY = "#767676"
MARKERS = "osD^vPX*"
DECIBANS = UNITS["decibans"]
PRIORS = (0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999)  # marked along axes of prior odds
MINUS = "−"
REFERENCES = ("style of", "default", "reference")  # what the legend names last


class Judged(NamedTuple):
    """What is drawn: llrs in nats, the rows that are of h1, and what the two sides are called."""

    llr: Array
    is_h1: Flags
    h1: str
    h0: str


def judged(scores: Any, is_h1: ArrayLike | None, over: Any = None) -> Judged:
    """Scores from an evaluation, where `over` may name the class that stands against the rest, or from two arrays.

    >>> judged([1.505, -2.247], [True, False]).h1
    'h1'
    """
    if not isinstance(scores, Evaluation):
        if is_h1 is None:
            raise InputError("give llrs and is_h1, one flag a row; or an Evaluation, such as clf.evaluate(X, y).")
        return Judged(*two_class_scores(scores, is_h1), "h1", "h0")
    if is_h1 is not None:
        raise InputError("an Evaluation knows the class of each row. Leave is_h1 out.")
    pair = two_class_scores(*scores.scores(over))
    name = scores.classes[1] if over is None else over
    others = [label for label in scores.classes if label != name]
    return Judged(*pair, str(name), str(others[0]) if len(others) == 1 else "the rest")


def canvas(ax: Axes | None, width: float = 5.2, height: float = 3.9) -> Axes:
    """The axes given, or new ones in a figure of their own."""
    if ax is None:
        import matplotlib.pyplot as plt

        _, ax = plt.subplots(figsize=(width, height), layout="constrained")
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    return ax


def next_colour(ax: Axes, gid: str) -> str:
    """The colour of a further curve: as many as there are of its kind have been used."""
    return PALETTE[sum(line.get_gid() == gid for line in ax.lines) % len(PALETTE)]


def explain_style(ax: Axes, gid: str, style: str, what: str) -> None:
    """One line of the legend for a style that every model's curve of this kind has."""
    if not any(line.get_gid() == f"style of {gid}" for line in ax.lines):
        ax.plot([], [], style, color=GREY, gid=f"style of {gid}", label=what)


def prior_axis(ax: Axes, h1: str) -> None:
    """Prior odds in decibans below, and the probabilities they stand for above."""
    ax.set_xlabel(f"prior odds of {h1} (decibans)")
    if not ax.child_axes:
        above = ax.secondary_xaxis("top", functions=(_probability_place, _probability_place))
        above.set_xticks([DECIBANS * logit(p) for p in PRIORS], [f"{p:g}".removeprefix("0") for p in PRIORS])
        above.set_xlabel(f"prior probability of {h1}")


def _probability_place(odds: Any) -> Any:
    """Both scales run in odds; the upper one is only labelled otherwise."""
    return odds


def percent(share: float) -> str:
    """A share with the digits that matter.

    >>> percent(.0213), percent(.25), percent(0)
    ('2.1 %', '25 %', '0 %')
    """
    return f"{100 * share:.2g} %"


def probability_of(decibans: Any) -> Any:
    """The probability that odds in decibans stand for."""
    return expit(np.asarray(decibans) / DECIBANS)


def finish(ax: Axes, legend: Any = "best") -> Axes:
    """A quiet grid and, where there is something to tell apart, a legend."""
    ax.grid(alpha=0.25, linewidth=0.6)
    ax.set_axisbelow(True)
    handles, labels = ax.get_legend_handles_labels()
    if legend and handles:
        order = sorted(range(len(handles)), key=lambda i: str(handles[i].get_gid()).startswith(REFERENCES))
        told = [handles[i] for i in order], [labels[i] for i in order]
        ax.legend(*told, loc=legend, frameon=True, framealpha=0.85, edgecolor="none", fontsize="small")
    return ax
