"""Bins that hold about equally many rows, whatever the order they come in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from deciban.errors import InputError
from deciban.evaluate.checks import Codes, Flags, two_class_scores
from deciban.evidence.scores import Array


def equal_mass_bins(values: Array, bins: int) -> Codes:
    """The bin of each value; equal values share one, so that there may be fewer bins than asked for.

    >>> equal_mass_bins(np.array([.2, .9, .2, .4, .2]), 2).tolist()
    [0, 1, 0, 1, 0]
    """
    if bins < 1:
        raise InputError(f"bins is {bins}. Ask for at least one.")
    ranked = np.sort(values)
    cuts = np.arange(1, bins) * len(values) // bins  # how many values should lie below each cut
    cuts = np.searchsorted(ranked, ranked[cuts[cuts > 0] - 1], side="right")  # to the end of the tie that a cut splits
    return np.searchsorted(np.unique(ranked[cuts[cuts < len(values)]]), values, side="right")


# -- intervals ----------
# How far a figure may be trusted: what it would be on other rows like these.
#
#     bootstrap   rows drawn anew with replacement, class by class; percentiles of the figure
#     jackknife   groups of rows left out in turn, class by class; figure ± z · standard error
#
# Both keep the number of rows of each class, so that the interval speaks of the llrs and not of the proportions.
#
# Reference: Efron & Tibshirani, An Introduction to the Bootstrap, 1993, chapters 11 and 13.

Figure = Callable[[Array, Flags], Any]


@dataclass(frozen=True, eq=False)
class Interval:
    """A figure and the range in which it would probably lie on other rows; arrays where the figure is one."""

    estimate: Any
    low: Any
    high: Any
    level: float

    def __str__(self) -> str:
        if np.ndim(self.estimate):
            return f"{np.size(self.estimate)} intervals at {self.level:.0%}"
        return f"{self.estimate:.3g} [{self.low:.3g}, {self.high:.3g}]"


def bootstrap(
    figure: Figure, llr: ArrayLike, is_h1: ArrayLike, *, repeats: int = 1000, level: float = 0.95, seed: int = 0
) -> Interval:
    """The interval of any figure of (llr, is_h1), by drawing rows anew; the same seed gives the same interval.

    >>> from deciban.evaluate.two_class import cllr
    >>> print(bootstrap(cllr, [1.5, 0.2, -0.4, -2.2, -1.0, 0.9], [1, 1, 1, 0, 0, 0], repeats=200))
    0.811 [0.392, 1.31]
    """
    llr, is_h1 = two_class_scores(llr, is_h1)
    tail = _tail(level)
    if repeats < 2:
        raise InputError(f"repeats is {repeats}. Draw at least 2 times; 1,000 is usual.")
    rng = np.random.default_rng(seed)
    ones, zeros = llr[is_h1], llr[~is_h1]
    flags = np.repeat([True, False], [len(ones), len(zeros)])
    drawn = np.array(
        [figure(np.r_[rng.choice(ones, len(ones)), rng.choice(zeros, len(zeros))], flags) for _ in range(repeats)]
    )
    drawn.sort(axis=0)
    lowest = int(tail * (repeats - 1))  # drawn values rather than means between them: some may be infinite
    return Interval(figure(llr, is_h1), _plain(drawn[lowest]), _plain(drawn[repeats - 1 - lowest]), level)


def jackknife(
    figure: Figure, llr: ArrayLike, is_h1: ArrayLike, *, groups: int = 100, level: float = 0.95, seed: int = 0
) -> Interval:
    """The interval of a smooth figure of (llr, is_h1), by leaving rows out; minCllr and EER need `bootstrap`.

    Classes of up to `groups` rows leave out one row at a time, larger ones that many random groups.

    >>> from deciban.evaluate.two_class import cllr
    >>> print(jackknife(cllr, [1.5, 0.2, -0.4, -2.2, -1.0, 0.9], [1, 1, 1, 0, 0, 0]))
    0.811 [0.238, 1.38]
    """
    llr, is_h1 = two_class_scores(llr, is_h1)
    tail = _tail(level)
    if groups < 2:
        raise InputError(f"groups is {groups}. Leave out at least 2 in turn.")
    rng, estimate = np.random.default_rng(seed), np.asarray(figure(llr, is_h1), dtype=float)
    variance = np.zeros(estimate.shape)
    for name, rows in (("h1", np.flatnonzero(is_h1)), ("h0", np.flatnonzero(~is_h1))):
        if len(rows) < 2:
            raise InputError(f"{name} has 1 row, which cannot be left out. Give at least 2 rows of each class.")
        parts = np.array_split(rng.permutation(rows), min(groups, len(rows)))
        without = np.array([figure(np.delete(llr, part), np.delete(is_h1, part)) for part in parts])
        if not np.isfinite(without).all():
            raise InputError(f"the figure is infinite without some rows of {name}. Use bootstrap, which allows that.")
        variance += (len(parts) - 1) * without.var(axis=0)
    reach = ndtri(1 - tail) * np.sqrt(variance)
    return Interval(_plain(estimate), _plain(estimate - reach), _plain(estimate + reach), level)


def _tail(level: float) -> float:
    if not 0 < level < 1:
        raise InputError(f"level is {level!r}; it is the probability of the interval. Give a number between 0 and 1.")
    return (1 - level) / 2


def _plain(values: Any) -> Any:
    return values if np.ndim(values) else float(values)
