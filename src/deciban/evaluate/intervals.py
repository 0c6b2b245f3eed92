"""Intervals of any figure of (llr, is_h1): its variation over other samples of rows.

    bootstrap   rows drawn with replacement in each class; quantiles of the figure
    jackknife   groups of rows left out in turn in each class; figure ± z · standard error

Both keep the number of rows of each class, so that the interval is about the llrs and not about the proportions.

Reference: Efron & Tibshirani, An Introduction to the Bootstrap, 1993, chapters 11 and 13.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from deciban.errors import InputError
from deciban.evaluate.checks import Flags, interval_tail, number_or_array, two_class_scores
from deciban.evidence.scores import Array

Figure = Callable[[Array, Flags], Any]


@dataclass(frozen=True, eq=False)
class Interval:
    """A figure and its confidence interval; arrays where the figure is an array."""

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
    """Compute a bootstrap interval of a figure.

    Parameters
    ----------
    figure : callable
        Function of (llr, is_h1) that returns a number or an array, such as `cllr`.
    llr : array-like of shape (n,)
        Evidence for h1 over h0, in nats; ±inf is allowed.
    is_h1 : array-like of bool of shape (n,)
        Whether h1 is true for each row.
    repeats : int, default=1000
        Number of samples.
    level : float, default=0.95
        Probability of the interval.
    seed : int, default=0
        Seed of the samples.

    Returns
    -------
    Interval
        The figure, and quantiles of its values over the samples.

    Examples
    --------
    >>> from deciban.evaluate import cllr
    >>> print(bootstrap(cllr, [1.5, 0.2, -0.4, -2.2, -1.0, 0.9], [1, 1, 1, 0, 0, 0], repeats=200))
    0.811 [0.392, 1.31]
    """
    llr, is_h1 = two_class_scores(llr, is_h1)
    tail = interval_tail(level)
    if repeats < 2:
        raise InputError(f"repeats is {repeats}. Draw at least 2 times; 1,000 is usual.")
    rng = np.random.default_rng(seed)
    ones, zeros = llr[is_h1], llr[~is_h1]
    flags = np.repeat([True, False], [len(ones), len(zeros)])
    drawn = np.array(
        [figure(np.r_[rng.choice(ones, len(ones)), rng.choice(zeros, len(zeros))], flags) for _ in range(repeats)]
    )
    drawn.sort(axis=0)
    lowest = int(tail * (repeats - 1))  # no interpolation between values: some may be infinite
    return Interval(
        figure(llr, is_h1), number_or_array(drawn[lowest]), number_or_array(drawn[repeats - 1 - lowest]), level
    )


def jackknife(
    figure: Figure, llr: ArrayLike, is_h1: ArrayLike, *, groups: int = 100, level: float = 0.95, seed: int = 0
) -> Interval:
    """Compute a jackknife interval of a smooth figure; minCllr and EER are not smooth, and need `bootstrap`.

    Parameters
    ----------
    figure : callable
        Function of (llr, is_h1) that returns a number or an array, such as `cllr`.
    llr : array-like of shape (n,)
        Evidence for h1 over h0, in nats; ±inf is allowed.
    is_h1 : array-like of bool of shape (n,)
        Whether h1 is true for each row.
    groups : int, default=100
        Number of random groups of rows of each class that are left out in turn; single rows in smaller classes.
    level : float, default=0.95
        Probability of the interval.
    seed : int, default=0
        Seed of the groups.

    Returns
    -------
    Interval
        The figure ± z standard errors.

    Examples
    --------
    >>> from deciban.evaluate import cllr
    >>> print(jackknife(cllr, [1.5, 0.2, -0.4, -2.2, -1.0, 0.9], [1, 1, 1, 0, 0, 0]))
    0.811 [0.238, 1.38]
    """
    llr, is_h1 = two_class_scores(llr, is_h1)
    tail = interval_tail(level)
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
    return Interval(
        number_or_array(estimate), number_or_array(estimate - reach), number_or_array(estimate + reach), level
    )
