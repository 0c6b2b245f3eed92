"""Sorted scores and how many rows of each class hold them: what every threshold figure is read from.

miss(t) = share of h1 with llr < t         false alarm(t) = share of h0 with llr ≥ t
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import log
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from deciban.errors import InputError, PriorError
from deciban.evaluate.checks import Codes, score_column, two_class_scores
from deciban.evidence.decisions import threshold
from deciban.evidence.scores import Array


@dataclass(frozen=True, eq=False)
class Tally:
    """How often each score occurs in each class.

    >>> tally = Tally.of([1.5, -2.2, 1.5, 0.3], [True, False, False, True])
    >>> tally.score.tolist(), tally.h1.tolist(), tally.h0.tolist()
    ([-2.2, 0.3, 1.5], [0.0, 1.0, 1.0], [1.0, 0.0, 1.0])
    """

    score: Array  # (G,)  distinct scores, rising
    h1: Array  # (G,)  rows of h1 at that score
    h0: Array  # (G,)  rows of h0 at that score
    place: Codes  # (n,)  where each row's score stands among the distinct ones

    @classmethod
    def of(cls, llr: ArrayLike, is_h1: ArrayLike) -> Tally:
        """Sort once; equal scores are one score."""
        llr, is_h1 = two_class_scores(llr, is_h1)
        order = llr.argsort()
        ranked = llr[order]
        first = np.r_[True, ranked[1:] != ranked[:-1]]
        starts = np.flatnonzero(first)
        place = np.empty(len(llr), dtype=np.intp)
        place[order] = np.cumsum(first) - 1
        h1 = np.add.reduceat(is_h1[order].astype(float), starts)
        return cls(ranked[starts], h1, np.diff(np.r_[starts, len(llr)]) - h1, place)

    def pools(self) -> Codes:
        """Where each pool of the monotone fit starts, ending with G: pools merge until the share of h1 rises."""
        edges = np.arange(len(self.score) + 1)
        while True:  # once, as a rule: rounding inside a very long pool may leave neighbours in the wrong order
            h1, both = (np.add.reduceat(counts, edges[:-1]) for counts in (self.h1, self.h1 + self.h0))
            share = h1 / both
            if (share[1:] > share[:-1]).all():
                return edges
            from scipy.optimize import isotonic_regression  # a quarter of a second that answers need not wait for

            edges = edges[isotonic_regression(share, weights=both).blocks]

    def pooled(self, edges: Codes) -> tuple[Array, Array]:
        """Rows of h1 and of h0 in each pool."""
        return np.add.reduceat(self.h1, edges[:-1]), np.add.reduceat(self.h0, edges[:-1])


def error_rates(h1: Array, h0: Array) -> tuple[Array, Array]:
    """Miss and false-alarm rates of every threshold, from the one that decides h1 always to the one that never does.

    >>> [rate.tolist() for rate in error_rates(np.array([0.0, 1, 1]), np.array([1.0, 0, 1]))]
    [[0.0, 0.0, 0.5, 1.0], [1.0, 0.5, 0.5, 0.0]]
    """
    below1, below0 = np.r_[0.0, np.cumsum(h1)], np.r_[0.0, np.cumsum(h0)]
    return below1 / below1[-1], (below0[-1] - below0) / below0[-1]


# -- pav ----------
# Pool adjacent violators: the best that any monotone recalibration could do with these scores.
#
#     pools    rows in order of llr, merged until the share of h1 rises from pool to pool
#     llr'   = log(rows of h1 / rows of h0 in the pool) − log(N1 / N0)        free of the prior of the test rows
#
# A pool of one class alone is −inf or +inf: that is what these rows say, and why PAV flatters small test sets.
#
# Reference: Brümmer & du Preez, Application-independent evaluation of speaker detection, Computer Speech and Language
# 20 (2006), section 7.


def pav(llr: ArrayLike, is_h1: ArrayLike) -> Array:
    """Each row's llr after the best monotone recalibration, which never ranks one row above another anew.

    >>> pav([-2.2, 0.3, 1.5, 1.5, 4.0], [False, True, False, False, True]).round(3).tolist()
    [-inf, -0.288, -0.288, -0.288, inf]
    """
    tally = Tally.of(llr, is_h1)
    edges = tally.pools()
    return np.repeat(pool_llr(tally, edges), np.diff(edges))[tally.place]


def pool_llr(tally: Tally, edges: Codes) -> Array:
    """The llr that each pool's rows testify to."""
    h1, h0 = tally.pooled(edges)
    with np.errstate(divide="ignore"):  # of quotients, so that 1/3 and 2/6 are the same number
        return np.log(h1 / h0) - np.log(h1.sum() / h0.sum())


@dataclass(frozen=True, eq=False, repr=False)
class PAV:
    """A calibrator that keeps the pools: the calibrated llr at both ends of each.

    Between two pools it is linear. Beyond the outermost scores it is constant. A gap beside an infinite pool takes the
    finite neighbour's value, so that infinite evidence is claimed only where such scores were seen; a gap between −inf
    and +inf says nothing: 0.

    >>> fitted = PAV.fit([-2.2, 0.3, 1.5, 1.5, 4.0], [False, True, False, False, True])
    >>> fitted.apply([-3.0, -1.0, 0.9, 4.0]).round(3).tolist()
    [-inf, -0.288, -0.288, inf]
    >>> fitted
    PAV(3 pools, llr −inf to inf)
    """

    score: Array  # (2B,)  lowest and highest score of each pool
    calibrated: Array  # (2B,)  the pool's llr, twice

    @classmethod
    def fit(cls, llr: ArrayLike, is_h1: ArrayLike) -> PAV:
        """Pool these scores."""
        tally = Tally.of(llr, is_h1)
        edges = tally.pools()
        ends = np.column_stack([edges[:-1], edges[1:] - 1]).ravel()
        return cls(tally.score[ends], np.repeat(pool_llr(tally, edges), 2))

    def apply(self, llr: ArrayLike, lengths: Any = None) -> Array:
        """Calibrated llrs of new scores; lengths do not matter."""
        scores, last = score_column(llr), len(self.score) - 1
        below = np.clip(np.searchsorted(self.score, scores, side="right") - 1, 0, last)
        above = np.clip(np.searchsorted(self.score, scores, side="left"), 0, last)
        low, high = self.calibrated[below], self.calibrated[above]
        answer = np.where(np.isinf(low), np.where(np.isinf(high), 0.0, high), low)
        between = np.isfinite(low) & np.isfinite(high) & (low != high)
        share = _share(scores[between], self.score[below[between]], self.score[above[between]])
        answer[between] = (1 - share) * low[between] + share * high[between]
        return np.where(low == high, low, answer)

    def to_dict(self) -> dict[str, Any]:
        """Plain values; infinities are words, which every JSON reader accepts."""
        return {"kind": "pav", "score": _words(self.score), "calibrated": _words(self.calibrated)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> PAV:
        score, calibrated = (np.array([float(x) for x in values[name]]) for name in ("score", "calibrated"))
        if score.shape != calibrated.shape or not len(score):
            raise InputError(f"{len(score)} scores and {len(calibrated)} calibrated llrs do not make a PAV calibrator.")
        return cls(score, calibrated)

    def __repr__(self) -> str:
        ends = f"{self.calibrated[0]:.3g} to {self.calibrated[-1]:.3g}".replace("-", "−")
        count = len(self.score) // 2
        return f"PAV({count:,} pool{'s' * (count != 1)}, llr {ends})"


def _share(scores: Array, low: Array, high: Array) -> Array:
    """How far each score lies on its way from low to high; beside an infinite end, all the way to the finite one."""
    from_nowhere, to_nowhere = np.isneginf(low), np.isposinf(high)
    share = np.where(from_nowhere & ~to_nowhere, 1.0, np.where(to_nowhere & ~from_nowhere, 0.0, 0.5))
    way, whole = scores / 2 - low / 2, high / 2 - low / 2  # halves cannot overflow
    return np.divide(way, whole, out=share, where=~from_nowhere & ~to_nowhere & (whole > 0))


def _words(numbers: Array) -> list[float | str]:
    return [x if np.isfinite(x) else str(x) for x in numbers.tolist()]


# -- cllr ----------
# The cost of an llr over all priors, in bits, and how much of it is miscalibration.
#
#     Cllr             = ½ [ mean over h1 of log2(1 + e^−llr) + mean over h0 of log2(1 + e^llr) ]   1 says nothing
#     minCllr          = Cllr after the best monotone recalibration (PAV): what the ranking alone could give
#     calibration loss = Cllr − minCllr
#     ECE(λ)           = π mean over h1 of log2(1 + e^−(llr+λ)) + (1−π) mean over h0 of log2(1 + e^(llr+λ)),  λ =
#     logit π
#
# Reference: Brümmer & du Preez, Application-independent evaluation of speaker detection, Computer Speech and Language
# 20 (2006); Ramos & Gonzalez-Rodriguez, Reliable support, Forensic Science International 230 (2013), for ECE.

GRID = np.linspace(-6, 6, 49)  # prior log odds, in nats: from 1 in 400 to 400 in 1


def cllr(llr: ArrayLike, is_h1: ArrayLike) -> float:
    """What these llrs cost, in bits: 0 for perfect ones, 1 for always saying 0, inf for one certain mistake.

    People of 174 and 160 cm, male over female; the taller is male, the shorter female:

    >>> round(cllr([1.505, -2.247], [True, False]), 3)
    0.217
    >>> cllr([0, 0], [True, False]), cllr([-np.inf, 0], [True, False])
    (1.0, inf)
    """
    llr, is_h1 = two_class_scores(llr, is_h1)
    return float(np.logaddexp(0, -llr[is_h1]).mean() + np.logaddexp(0, llr[~is_h1]).mean()) / (2 * log(2))


def min_cllr(llr: ArrayLike, is_h1: ArrayLike) -> float:
    """What the same ranking would cost, calibrated as well as these very rows allow; at most 1.

    >>> min_cllr([1.505, -2.247], [True, False])
    0.0
    """
    return cllr(pav(llr, is_h1), is_h1)


def calibration_loss(llr: ArrayLike, is_h1: ArrayLike) -> float:
    """The part of Cllr that a better scale of the same scores would save.

    >>> round(calibration_loss([1.505, -2.247], [True, False]), 3)
    0.217
    """
    return cllr(llr, is_h1) - min_cllr(llr, is_h1)


@dataclass(frozen=True, eq=False)
class EmpiricalCrossEntropy:
    """What llrs cost at each prior, in bits; at log odds 0, the Cllr."""

    prior_log_odds: Array  # (G,)  log π/(1−π) of h1, nats
    actual: Array  # (G,)  of the llrs as they are
    calibrated: Array  # (G,)  after PAV: the least that the ranking allows
    reference: Array  # (G,)  of always saying 0, that is, knowing the prior only


def empirical_cross_entropy(
    llr: ArrayLike, is_h1: ArrayLike, prior_log_odds: ArrayLike = GRID
) -> EmpiricalCrossEntropy:
    """The forensic ECE curve; where `actual` is above `reference`, the llrs mislead.

    >>> curve = empirical_cross_entropy([1.505, -2.247], [True, False], [0.0])
    >>> curve.actual.round(3).tolist(), curve.calibrated.tolist(), curve.reference.tolist()
    ([0.217], [0.0], [1.0])
    """
    llr, is_h1 = two_class_scores(llr, is_h1)
    grid = np.atleast_1d(np.asarray(prior_log_odds, dtype=float))
    if not np.isfinite(grid).all():
        raise PriorError(f"prior log odds of {grid[~np.isfinite(grid)][0]}: a certain prior leaves nothing to judge.")
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
    """Cross-entropy in bits at one prior; the counts say how many rows share a score."""
    missed = float(np.average(np.logaddexp(0, -of_h1 - odds), weights=ones))
    alarmed = float(np.average(np.logaddexp(0, of_h0 + odds), weights=zeros))
    if np.inf in (missed, alarmed):  # even if the prior is too small to be represented
        return np.inf
    return float(expit(odds) * missed + expit(-odds) * alarmed) / log(2)


# -- dcf ----------
# What decisions cost: at the threshold that theory says, and at the best one.
#
#     DCF(π̃)   = [ π̃ · miss(t) + (1−π̃) · false alarm(t) ] / min(π̃, 1−π̃)          1 costs as much as never looking
#     actual     t = −log π̃/(1−π̃)          minimum     the t that costs least
#     EER        where the convex hull of the ROC has miss = false alarm
#
# h1 is decided where llr ≥ t. π̃ is the effective prior, which holds the costs too. Least costs lie on the convex hull,
# whose corners are the edges of the PAV pools.
#
# Reference: Brümmer & de Villiers, The BOSARIS toolkit: theory, algorithms and code, 2011.

DCF_GRID = np.linspace(-6, 6, 121)  # prior log odds, in nats: from 1 in 400 to 400 in 1


def dcf(llr: ArrayLike, is_h1: ArrayLike, prior: ArrayLike, c_miss: float = 1, c_fa: float = 1) -> Any:
    """What deciding by these llrs costs, relative to deciding without them; over 1 they do harm.

    People of 174 and 160 cm, male over female, at even odds, and where one in a hundred is male:

    >>> dcf([1.505, -2.247], [True, False], .5), dcf([1.505, -2.247], [True, False], [.01, .5]).tolist()
    (0.0, [1.0, 0.0])
    """
    at = _thresholds(prior, c_miss, c_fa)
    return _plain(_actual(Tally.of(llr, is_h1), at, *_relative_costs(at)))


def min_dcf(llr: ArrayLike, is_h1: ArrayLike, prior: ArrayLike, c_miss: float = 1, c_fa: float = 1) -> Any:
    """What deciding by the best threshold on these scores would cost; at most 1.

    >>> min_dcf([1.505, -2.247], [True, False], .01)
    0.0
    """
    at = _thresholds(prior, c_miss, c_fa)
    return _plain(_minimum(Tally.of(llr, is_h1), *_relative_costs(at)))


def eer(llr: ArrayLike, is_h1: ArrayLike) -> float:
    """The rate at which misses and false alarms are equally frequent, on the convex hull; at most .5.

    >>> eer([2.0, 1.0, 0.5, -1.0], [True, False, True, False])
    0.25
    """
    tally = Tally.of(llr, is_h1)
    miss, alarm = error_rates(*tally.pooled(tally.pools()))
    after = int(np.argmax(miss >= alarm))  # the first corner at or beyond the crossing; corner 0 is miss 0, alarm 1
    rise, fall = miss[after] - miss[after - 1], alarm[after - 1] - alarm[after]
    share = (alarm[after - 1] - miss[after - 1]) / (rise + fall)
    return float(miss[after - 1] + share * rise)


@dataclass(frozen=True, eq=False)
class BayesErrorCurve:
    """How often decisions err at each prior; divide by `default` for the normalised DCF."""

    prior_log_odds: Array  # (G,)  log π̃/(1−π̃) of h1, nats
    actual: Array  # (G,)  error rate of the theoretical threshold
    minimum: Array  # (G,)  of the best threshold
    default: Array  # (G,)  of deciding by the prior alone: min(π̃, 1−π̃)


def bayes_error_curve(llr: ArrayLike, is_h1: ArrayLike, prior_log_odds: ArrayLike = DCF_GRID) -> BayesErrorCurve:
    """Error rates over a range of priors: the gap between actual and minimum is what miscalibration costs.

    >>> curve = bayes_error_curve([1.505, -2.247], [True, False], [-3.0, 0.0])
    >>> curve.actual.round(3).tolist(), curve.minimum.tolist(), curve.default.round(3).tolist()
    ([0.047, 0.0], [0.0, 0.0], [0.047, 0.5])
    """
    tally, grid = Tally.of(llr, is_h1), np.atleast_1d(np.asarray(prior_log_odds, dtype=float))
    if not np.isfinite(grid).all():
        raise PriorError(f"prior log odds of {grid[~np.isfinite(grid)][0]}: a certain prior needs no decisions.")
    costs = expit(grid), expit(-grid)
    return BayesErrorCurve(grid, _actual(tally, -grid, *costs), _minimum(tally, *costs), np.minimum(*costs))


def _thresholds(prior: ArrayLike, c_miss: float, c_fa: float) -> Any:
    """The llr thresholds of the effective priors, which must leave both classes possible."""
    at = threshold(prior, c_miss, c_fa)
    if not np.isfinite(at).all():
        raise PriorError(
            f"prior {prior!r}, c_miss={c_miss}, c_fa={c_fa} leave only one class worth deciding, so that the cost of "
            "never looking is 0. Give a prior strictly between 0 and 1, and costs > 0."
        )
    return at


def _relative_costs(at: Any) -> tuple[Any, Any]:
    """What a miss and a false alarm cost, over min(π̃, 1−π̃): from e^−t, which loses no digits on rare classes."""
    with np.errstate(over="ignore"):  # a prior below 1e−308: the rarer error costs inf, unless it never happens
        return np.exp(np.maximum(np.negative(at), 0)), np.exp(np.maximum(at, 0))


def _actual(tally: Tally, at: Any, c_miss: Any, c_fa: Any) -> Array:
    miss, alarm = error_rates(tally.h1, tally.h0)
    place = np.searchsorted(tally.score, at, side="left")
    return _product(miss[place], c_miss) + _product(alarm[place], c_fa)


def _minimum(tally: Tally, c_miss: Any, c_fa: Any) -> Array:
    miss, alarm = error_rates(*tally.pooled(tally.pools()))
    costs = _product(miss, np.asarray(c_miss)[..., None]) + _product(alarm, np.asarray(c_fa)[..., None])
    return costs.min(axis=-1)


def _product(rate: Array, cost: Any) -> Array:
    """Rate times cost, 0 where the error never happens."""
    rate, cost = np.broadcast_arrays(rate, cost)
    return np.multiply(rate, cost, out=np.zeros(rate.shape), where=rate > 0)


def _plain(costs: Array) -> Any:
    return costs if np.ndim(costs) else float(costs)
