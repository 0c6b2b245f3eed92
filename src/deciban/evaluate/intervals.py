"""Intervals of figures: their variation over other samples of rows.

    bootstrap        rows drawn with replacement in each class; quantiles of any figure of (llr, is_h1)
    jackknife        groups of rows left out in turn in each class; figure ± z · standard error
    mean_interval    of a mean over rows, or of the mean of the means of each class: ± z · standard error
    share_interval   of a share of rows, by Wilson's score test

The standard error of rows in groups is that of the sums of the groups. Bootstrap and jackknife keep the number of rows
of each class, so that the interval is about the llrs and not about the proportions.

References: Efron & Tibshirani, An Introduction to the Bootstrap, 1993, chapters 11 and 13; Wilson, Journal of the
American Statistical Association 22, 1927.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from deciban.errors import InputError
from deciban.evaluate.checks import Codes, Flags, interval_tail, number_or_array, two_class_scores
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


def standard_error(each: Array, groups: Codes | None = None) -> float:
    """Standard error of the mean of values (n,); infinite for a single row or group, and for infinite values.

    >>> values = np.array([1.0, 2.0, 3.0, 4.0])
    >>> round(standard_error(values), 3), round(standard_error(values, np.array([0, 0, 1, 1])), 3)
    (0.645, 1.0)
    """
    n = len(each)
    if n < 2 or not np.isfinite(each).all():
        return np.inf
    away = each - each.mean()
    if groups is None:
        return float(np.sqrt(np.square(away).sum() / (n * (n - 1))))
    sums = np.bincount(np.unique(groups, return_inverse=True)[1], away)
    G = len(sums)
    return float(np.sqrt(np.square(sums).sum() * G / (G - 1)) / n) if G > 1 else np.inf


def mean_interval(each: Array, groups: Codes | None, level: float, classes: Codes | None = None) -> Interval:
    """Interval of the mean of values ≥ 0, shape (n,); with `classes` (n,), of the mean of the means of each class.

    >>> print(mean_interval(np.array([1.0, 2.0, 3.0, 4.0]), None, 0.95))
    2.5 [1.23, 3.77]
    """
    parts = [np.arange(len(each))] if classes is None else [np.flatnonzero(classes == k) for k in np.unique(classes)]
    mean = float(np.mean([each[part].mean() for part in parts]))
    if not np.isfinite(mean):
        return Interval(mean, mean, mean, level)
    errors = [standard_error(each[part], None if groups is None else groups[part]) for part in parts]
    reach = float(ndtri(1 - interval_tail(level)) * np.sqrt(np.square(errors).sum()) / len(parts))
    return Interval(mean, max(0.0, mean - reach), mean + reach, level)


def share_interval(each: Array, groups: Codes | None, level: float) -> Interval:
    """Interval of a share: the mean of flags (n,), 0 or 1; it is neither empty at 0 or 1 nor beyond them.

    >>> print(share_interval(np.zeros(50), None, 0.95))
    0 [0, 0.0713]
    """
    n, share, reach = float(len(each)), float(each.mean()), float(ndtri(1 - interval_tail(level)))
    if groups is not None:  # as many independent rows as have the same standard error
        error = standard_error(each, groups)
        alone = standard_error(each)
        n = n * min(1.0, (alone / error) ** 2) if error and np.isfinite(error) else float(len(np.unique(groups)))
    centre = (share + reach**2 / (2 * n)) / (1 + reach**2 / n)
    half = reach / (1 + reach**2 / n) * np.sqrt(share * (1 - share) / n + (reach / (2 * n)) ** 2)
    return Interval(share, float(max(0.0, centre - half)), float(min(1.0, centre + half)), level)
