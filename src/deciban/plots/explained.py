"""One answer taken apart: a bar for what each feature said."""

from __future__ import annotations

from math import fsum, isinf
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes

from deciban.explain import Explanation
from deciban.plots.canvas import AGAINST, DECIBANS, FOR, GREY, canvas, finish
from deciban.wording import decibans_text, odds_text, probability_text, short


class Bar(NamedTuple):
    """A bar's words, its nats, and whether it is a sum of others."""

    name: str
    nats: float
    total: bool = False


def evidence_bars(told: Explanation, row: int = 0, *, most: int = 12, ax: Axes | None = None) -> Axes:
    """What each feature of one row said, then the sum, the prior and the posterior, in decibans.

    >>> from matplotlib.figure import Figure
    >>> told = Explanation(["height"], [[1.505]], "male", "female", values=[[174]], prior_part=[-2.197])
    >>> ax = evidence_bars(told, ax=Figure().subplots())
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['height = 174', 'evidence', 'prior', 'posterior']
    """
    one = told[row]
    bars = _bars(one, most)
    ax = canvas(ax, 6.2, 1.4 + 0.28 * len(bars))
    weights = np.array([DECIBANS * bar.nats for bar in bars])
    longest = float(np.abs(weights[np.isfinite(weights)]).max(initial=1.0))
    lengths = np.clip(weights, -1.25 * longest, 1.25 * longest)  # infinite evidence: the longest bar, and its label
    places = np.arange(len(bars))
    drawn = ax.barh(places, lengths, color=[FOR if bar.nats > 0 else AGAINST for bar in bars], height=0.72)
    for patch, bar, length, place in zip(drawn, bars, lengths, places):
        patch.set_alpha(1.0 if bar.total else 0.6)
        ax.annotate(
            decibans_text(bar.nats),
            (length, place),
            (4 if bar.nats >= 0 else -4, 0),
            textcoords="offset points",
            ha="left" if bar.nats >= 0 else "right",
            va="center",
            fontsize="small",
        )
    first_sum = next(i for i, bar in enumerate(bars) if bar.total)
    ax.axhline(first_sum - 0.5, color=GREY, lw=0.8)
    ax.axvline(0, color="black", lw=0.8)
    ax.set_yticks(places, [bar.name for bar in bars])
    ax.set(ylim=(len(bars) - 0.5, -0.5), xlim=(-1.5 * longest, 1.5 * longest))
    over, against = one.sides[0]
    ax.set_xlabel(f"← {against}     evidence (decibans)     {over} →")
    ax.set_title(_headline(one), fontsize="medium")
    finish(ax).grid(axis="y", visible=False)
    return ax


def _bars(one: Explanation, most: int) -> list[Bar]:
    """Features by weight, the rest in one, other parts, and the sums."""
    nats = one.parts[0].tolist()
    order = sorted(range(len(nats)), key=lambda p: -abs(nats[p]))
    bars = [Bar(_name(one, p), nats[p]) for p in order[:most]]
    if len(order) > most:
        rest = [nats[p] for p in order[most:]]
        bars.append(Bar(f"… and {len(rest):,} more", fsum(rest)))
    bars += [Bar(name, float(part[0])) for name, part in one.other.items()]
    bars.append(Bar("evidence", float(one.total[0]), True))
    if one.prior_part is not None:
        bars += [Bar("prior", float(one.prior_part[0]), True), Bar("posterior", float(one.log_odds[0]), True)]
    return bars


def _name(one: Explanation, part: int) -> str:
    value = short(one.values[0, part], 16)
    return f"{short(one.names[part], 28)} = {value}" if value else short(one.names[part], 28)


def _headline(one: Explanation) -> str:
    """The odds in words, and the probability where there is a prior."""
    nats = float(one.total[0])
    over, against = one.sides[0]
    text = "the evidence is even" if nats == 0 else f"evidence {odds_text(nats)} for {over if nats > 0 else against}"
    if isinf(nats):
        text = f"certain: {over if nats > 0 else against}"
    if one.prior_part is None or not one.exhaustive:
        return text
    return f"{text}, P({over}) = {probability_text(float(one.log_odds[0]))}"
