"""Figures for log-likelihood ratios of two classes, h1 over h0.

    miss(t)          = share of h1 with llr < t            false alarm(t) = share of h0 with llr ≥ t
    Cllr             = ½ [ mean over h1 of log2(1 + e^−llr) + mean over h0 of log2(1 + e^llr) ]      bits
    minCllr          = Cllr after the best monotone recalibration (PAV)
    calibration loss = Cllr − minCllr
    ECE(λ)           = π mean over h1 of log2(1 + e^−(llr+λ)) + (1−π) mean over h0 of log2(1 + e^(llr+λ)),  λ = logit π
    DCF(π̃)           = [ π̃ · miss(t) + (1−π̃) · false alarm(t) ] / min(π̃, 1−π̃)
                       actual: t = −log π̃/(1−π̃);   minimum: the t of least cost
    EER              = the rate at which miss = false alarm on the convex hull of the ROC

An llr of 0 for every row has Cllr 1; decisions by the prior alone have DCF 1. h1 is decided where llr ≥ t. π̃ is the
effective prior, which holds the costs too.

PAV (pool adjacent violators) merges rows in order of llr until the share of h1 rises from pool to pool. The llr of a
pool is log(rows of h1 / rows of h0 in the pool) − log(N1 / N0), independent of the proportions of the test rows; a pool
of one class is −inf or +inf, so PAV is optimistic on small test sets. Least costs lie on the convex hull of the ROC,
whose corners are the edges of the pools.

References: Brümmer & du Preez, Application-independent evaluation of speaker detection, Computer Speech and Language 20
(2006); Ramos & Gonzalez-Rodriguez, Reliable support, Forensic Science International 230 (2013), for ECE; Brümmer & de
Villiers, The BOSARIS toolkit: theory, algorithms and code, 2011, for DCF and EER.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from deciban.errors import PriorError
from deciban.evaluate.checks import Codes, Flags, number_or_array, two_class_scores
from deciban.evidence.decisions import threshold
from deciban.evidence.scores import Array

ECE_GRID = np.linspace(-6, 6, 49)  # prior log odds, in nats: from 1 in 400 to 400 in 1
DCF_GRID = np.linspace(-6, 6, 121)


@dataclass(frozen=True, eq=False)
class Tally:
    """Distinct scores in rising order, and the number of rows of each class at each.

    >>> tally = Tally.of([1.5, -2.2, 1.5, 0.3], [True, False, False, True])
    >>> tally.score.tolist(), tally.h1.tolist(), tally.h0.tolist()
    ([-2.2, 0.3, 1.5], [0.0, 1.0, 1.0], [1.0, 0.0, 1.0])
    """

    score: Array  # (G,)  distinct scores, rising
    h1: Array  # (G,)  rows of h1 at that score
    h0: Array  # (G,)  rows of h0 at that score
    place: Codes  # (n,)  position of each row's score among the distinct ones

    @classmethod
    def of(cls, llr: ArrayLike, is_h1: ArrayLike) -> Tally:
        """Sort and count scores."""
        return cls.counted(*two_class_scores(llr, is_h1))

    @classmethod
    def counted(cls, llr: Array, is_h1: Flags) -> Tally:
        """Sort and count scores that were checked."""
        order = llr.argsort()
        ranked = llr[order]
        first = np.r_[True, ranked[1:] != ranked[:-1]]
        starts = np.flatnonzero(first)
        place = np.empty(len(llr), dtype=np.intp)
        place[order] = np.cumsum(first) - 1
        h1 = np.add.reduceat(is_h1[order].astype(float), starts)
        return cls(ranked[starts], h1, np.diff(np.r_[starts, len(llr)]) - h1, place)

    def pools(self) -> Codes:
        """(B + 1,) the first position of each pool of PAV, then G."""
        edges = np.arange(len(self.score) + 1)
        while True:  # usually once: rounding inside a very long pool may leave neighbours in the wrong order
            h1, both = (np.add.reduceat(counts, edges[:-1]) for counts in (self.h1, self.h1 + self.h0))
            share = h1 / both
            if (share[1:] > share[:-1]).all():
                return edges
            from scipy.optimize import isotonic_regression  # lazy: slow to import

            edges = edges[isotonic_regression(share, weights=both).blocks]

    def pooled(self, edges: Codes) -> tuple[Array, Array]:
        """(B,) rows of h1 and of h0 in each pool."""
        return np.add.reduceat(self.h1, edges[:-1]), np.add.reduceat(self.h0, edges[:-1])


def error_rates(h1: Array, h0: Array) -> tuple[Array, Array]:
    """Miss and false-alarm rates (G + 1,) of every threshold, from always deciding h1 to never.

    >>> [rate.tolist() for rate in error_rates(np.array([0.0, 1, 1]), np.array([1.0, 0, 1]))]
    [[0.0, 0.0, 0.5, 1.0], [1.0, 0.5, 0.5, 0.0]]
    """
    below1, below0 = np.r_[0.0, np.cumsum(h1)], np.r_[0.0, np.cumsum(h0)]
    return below1 / below1[-1], (below0[-1] - below0) / below0[-1]


def pav(llr: ArrayLike, is_h1: ArrayLike) -> Array:
    """Recalibrate llrs by pool-adjacent-violators: the best monotone recalibration on these rows.

    Parameters
    ----------
    llr : array-like of shape (n,)
        Evidence for h1 over h0, in nats; ±inf is allowed.
    is_h1 : array-like of bool of shape (n,)
        Whether h1 is true for each row.

    Returns
    -------
    ndarray of shape (n,)
        Recalibrated llrs in nats.

    Examples
    --------
    >>> pav([-2.2, 0.3, 1.5, 1.5, 4.0], [False, True, False, False, True]).round(3).tolist()
    [-inf, -0.288, -0.288, -0.288, inf]
    """
    tally = Tally.of(llr, is_h1)
    edges = tally.pools()
    return np.repeat(pool_llr(tally, edges), np.diff(edges))[tally.place]


def pool_llr(tally: Tally, edges: Codes) -> Array:
    """(B,) the llr of each pool."""
    h1, h0 = tally.pooled(edges)
    with np.errstate(divide="ignore"):  # of quotients, so that 1/3 and 2/6 are the same number
        return np.log(h1 / h0) - np.log(h1.sum() / h0.sum())


def cllr(llr: ArrayLike, is_h1: ArrayLike) -> float:
    """Compute the cost of llrs over all priors, in bits.

    Parameters
    ----------
    llr : array-like of shape (n,)
        Evidence for h1 over h0, in nats; ±inf is allowed.
    is_h1 : array-like of bool of shape (n,)
        Whether h1 is true for each row.

    Returns
    -------
    float
        Cllr: 0 for perfect llrs, 1 for llrs of 0, inf if an infinite llr is wrong.

    Examples
    --------
    Evidence for male over female from heights of 174 and 160 cm; the first person is male, the second female:

    >>> round(cllr([1.505, -2.247], [True, False]), 3)
    0.217
    >>> cllr([0, 0], [True, False]), cllr([-np.inf, 0], [True, False])
    (1.0, inf)
    """
    llr, is_h1 = two_class_scores(llr, is_h1)
    return float(np.logaddexp(0, -llr[is_h1]).mean() + np.logaddexp(0, llr[~is_h1]).mean()) / (2 * log(2))


def min_cllr(llr: ArrayLike, is_h1: ArrayLike) -> float:
    """Compute the Cllr after the best monotone recalibration on these rows.

    Parameters
    ----------
    llr : array-like of shape (n,)
        Evidence for h1 over h0, in nats; ±inf is allowed.
    is_h1 : array-like of bool of shape (n,)
        Whether h1 is true for each row.

    Returns
    -------
    float
        Bits, at most 1.

    Examples
    --------
    >>> min_cllr([1.505, -2.247], [True, False])
    0.0
    """
    return cllr(pav(llr, is_h1), is_h1)


def calibration_loss(llr: ArrayLike, is_h1: ArrayLike) -> float:
    """Compute the part of Cllr that a monotone recalibration would save: Cllr − minCllr.

    Parameters
    ----------
    llr : array-like of shape (n,)
        Evidence for h1 over h0, in nats; ±inf is allowed.
    is_h1 : array-like of bool of shape (n,)
        Whether h1 is true for each row.

    Returns
    -------
    float
        Bits.

    Examples
    --------
    >>> round(calibration_loss([1.505, -2.247], [True, False]), 3)
    0.217
    """
    return cllr(llr, is_h1) - min_cllr(llr, is_h1)


@dataclass(frozen=True, eq=False)
class EmpiricalCrossEntropy:
    """Cross-entropy of llrs at each prior, in bits; at log odds 0 it is the Cllr."""

    prior_log_odds: Array  # (G,)  log π/(1−π) of h1, nats
    actual: Array  # (G,)  of the llrs as they are
    calibrated: Array  # (G,)  after PAV
    reference: Array  # (G,)  of llrs of 0, that is, of the prior alone


def empirical_cross_entropy(
    llr: ArrayLike, is_h1: ArrayLike, prior_log_odds: ArrayLike = ECE_GRID
) -> EmpiricalCrossEntropy:
    """Compute the empirical cross-entropy (ECE) over a range of priors.

    Parameters
    ----------
    llr : array-like of shape (n,)
        Evidence for h1 over h0, in nats; ±inf is allowed.
    is_h1 : array-like of bool of shape (n,)
        Whether h1 is true for each row.
    prior_log_odds : array-like of shape (G,), optional
        Prior log odds of h1 in nats, from −6 to 6 if not given.

    Returns
    -------
    EmpiricalCrossEntropy
        Curves of shape (G,). Where `actual` is above `reference`, the llrs do harm.

    Examples
    --------
    >>> curve = empirical_cross_entropy([1.505, -2.247], [True, False], [0.0])
    >>> curve.actual.round(3).tolist(), curve.calibrated.tolist(), curve.reference.tolist()
    ([0.217], [0.0], [1.0])
    """
    llr, is_h1 = two_class_scores(llr, is_h1)
    grid = _finite_log_odds(prior_log_odds)
    tally = Tally.of(llr, is_h1)
    edges = tally.pools()
    ones, zeros = tally.pooled(edges)
    best = pool_llr(tally, edges)
    return EmpiricalCrossEntropy(
        grid,
        np.array([_entropy(llr[is_h1], llr[~is_h1], odds) for odds in grid]),
        np.array([_entropy(best[ones > 0], best[zeros > 0], odds, ones[ones > 0], zeros[zeros > 0]) for odds in grid]),
        np.array([_entropy(np.zeros(1), np.zeros(1), odds) for odds in grid]),
    )


def _entropy(of_h1: Array, of_h0: Array, odds: float, ones: Array | None = None, zeros: Array | None = None) -> float:
    """Cross-entropy in bits at one prior; `ones` and `zeros` are the numbers of rows at each score, 1 if None."""
    missed = float(np.average(np.logaddexp(0, -of_h1 - odds), weights=ones))
    alarmed = float(np.average(np.logaddexp(0, of_h0 + odds), weights=zeros))
    if np.inf in (missed, alarmed):  # also where the prior underflows
        return np.inf
    return float(expit(odds) * missed + expit(-odds) * alarmed) / log(2)


def dcf(llr: ArrayLike, is_h1: ArrayLike, prior: ArrayLike, c_miss: float = 1, c_fa: float = 1) -> float | Array:
    """Compute the detection cost of decisions at the theoretical threshold, relative to decisions by the prior alone.

    Parameters
    ----------
    llr : array-like of shape (n,)
        Evidence for h1 over h0, in nats; ±inf is allowed.
    is_h1 : array-like of bool of shape (n,)
        Whether h1 is true for each row.
    prior : float or array-like of shape (G,)
        Prior probability of h1.
    c_miss, c_fa : float, default=1
        Costs of a miss and of a false alarm.

    Returns
    -------
    float or ndarray of shape (G,)
        Normalised DCF; above 1 the llrs do harm.

    Examples
    --------
    Evidence for male over female from two heights, at even odds, and where one person in a hundred is male:

    >>> dcf([1.505, -2.247], [True, False], .5), dcf([1.505, -2.247], [True, False], [.01, .5]).tolist()
    (0.0, [1.0, 0.0])
    """
    at = _thresholds(prior, c_miss, c_fa)
    return number_or_array(_actual(Tally.of(llr, is_h1), at, *_relative_costs(at)))


def min_dcf(llr: ArrayLike, is_h1: ArrayLike, prior: ArrayLike, c_miss: float = 1, c_fa: float = 1) -> float | Array:
    """Compute the detection cost of decisions at the best threshold, relative to decisions by the prior alone.

    Parameters
    ----------
    llr : array-like of shape (n,)
        Evidence for h1 over h0, in nats; ±inf is allowed.
    is_h1 : array-like of bool of shape (n,)
        Whether h1 is true for each row.
    prior : float or array-like of shape (G,)
        Prior probability of h1.
    c_miss, c_fa : float, default=1
        Costs of a miss and of a false alarm.

    Returns
    -------
    float or ndarray of shape (G,)
        Normalised minimum DCF, at most 1.

    Examples
    --------
    >>> min_dcf([1.505, -2.247], [True, False], .01)
    0.0
    """
    at = _thresholds(prior, c_miss, c_fa)
    return number_or_array(_minimum(Tally.of(llr, is_h1), *_relative_costs(at)))


def eer(llr: ArrayLike, is_h1: ArrayLike) -> float:
    """Compute the equal error rate, on the convex hull of the ROC.

    Parameters
    ----------
    llr : array-like of shape (n,)
        Evidence for h1 over h0, in nats; ±inf is allowed.
    is_h1 : array-like of bool of shape (n,)
        Whether h1 is true for each row.

    Returns
    -------
    float
        The rate, at most 0.5.

    Examples
    --------
    >>> eer([2.0, 1.0, 0.5, -1.0], [True, False, True, False])
    0.25
    """
    return eer_of_checked(*two_class_scores(llr, is_h1))


def eer_of_checked(llr: Array, is_h1: Flags) -> float:
    """Compute the equal error rate of scores that were checked."""
    tally = Tally.counted(llr, is_h1)
    miss, alarm = error_rates(*tally.pooled(tally.pools()))
    after = int(np.argmax(miss >= alarm))  # the first corner at or beyond the crossing; corner 0 is miss 0, alarm 1
    rise, fall = miss[after] - miss[after - 1], alarm[after - 1] - alarm[after]
    share = (alarm[after - 1] - miss[after - 1]) / (rise + fall)
    return float(miss[after - 1] + share * rise)


@dataclass(frozen=True, eq=False)
class BayesErrorCurve:
    """Error rate of decisions at each prior; divided by `default` it is the normalised DCF."""

    prior_log_odds: Array  # (G,)  log π̃/(1−π̃) of h1, nats
    actual: Array  # (G,)  at the theoretical threshold
    minimum: Array  # (G,)  at the best threshold
    default: Array  # (G,)  of decisions by the prior alone: min(π̃, 1−π̃)


def bayes_error_curve(llr: ArrayLike, is_h1: ArrayLike, prior_log_odds: ArrayLike = DCF_GRID) -> BayesErrorCurve:
    """Compute error rates over a range of priors.

    Parameters
    ----------
    llr : array-like of shape (n,)
        Evidence for h1 over h0, in nats; ±inf is allowed.
    is_h1 : array-like of bool of shape (n,)
        Whether h1 is true for each row.
    prior_log_odds : array-like of shape (G,), optional
        Prior log odds of h1 in nats, from −6 to 6 if not given.

    Returns
    -------
    BayesErrorCurve
        Curves of shape (G,). The difference of `actual` and `minimum` is due to calibration.

    Examples
    --------
    >>> curve = bayes_error_curve([1.505, -2.247], [True, False], [-3.0, 0.0])
    >>> curve.actual.round(3).tolist(), curve.minimum.tolist(), curve.default.round(3).tolist()
    ([0.047, 0.0], [0.0, 0.0], [0.047, 0.5])
    """
    tally, grid = Tally.of(llr, is_h1), _finite_log_odds(prior_log_odds)
    costs = expit(grid), expit(-grid)
    return BayesErrorCurve(grid, _actual(tally, -grid, *costs), _minimum(tally, *costs), np.minimum(*costs))


def _finite_log_odds(prior_log_odds: ArrayLike) -> Array:
    grid = np.atleast_1d(np.asarray(prior_log_odds, dtype=float))
    infinite = grid[~np.isfinite(grid)]
    if len(infinite):
        raise PriorError(f"prior log odds of {infinite[0]}: a certain prior leaves nothing to judge. Give finite odds.")
    return grid


def _thresholds(prior: ArrayLike, c_miss: float, c_fa: float) -> float | Array:
    """The llr thresholds of the effective priors, which must be strictly between 0 and 1."""
    at = threshold(prior, c_miss, c_fa)
    if not np.isfinite(at).all():
        raise PriorError(
            f"prior {prior!r}, c_miss={c_miss}, c_fa={c_fa} make one class certain, so that decisions by the prior "
            "alone cost 0. Give a prior strictly between 0 and 1, and costs > 0."
        )
    return at


def _relative_costs(at: float | Array) -> tuple[Array, Array]:
    """Costs of a miss and of a false alarm over min(π̃, 1−π̃), from e^−t: no digits are lost where a class is rare."""
    with np.errstate(over="ignore"):  # a prior below 1e−308: the rarer error costs inf, unless it never happens
        return np.exp(np.maximum(np.negative(at), 0)), np.exp(np.maximum(at, 0))


def _actual(tally: Tally, at: float | Array, c_miss: Array, c_fa: Array) -> Array:
    miss, alarm = error_rates(tally.h1, tally.h0)
    place = np.searchsorted(tally.score, at, side="left")
    return _product(miss[place], c_miss) + _product(alarm[place], c_fa)


def _minimum(tally: Tally, c_miss: Array, c_fa: Array) -> Array:
    miss, alarm = error_rates(*tally.pooled(tally.pools()))
    costs = _product(miss, np.asarray(c_miss)[..., None]) + _product(alarm, np.asarray(c_fa)[..., None])
    return costs.min(axis=-1)


def _product(rate: Array, cost: Array) -> Array:
    """Rate times cost, 0 where the error never happens."""
    rate, cost = np.broadcast_arrays(rate, cost)
    return np.multiply(rate, cost, out=np.zeros(rate.shape), where=rate > 0)
