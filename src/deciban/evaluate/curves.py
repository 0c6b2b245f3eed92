"""Curves of llrs of two classes, as arrays for any plotting library.

    ROC          hits against false alarms, over all thresholds                 h1 is decided where llr ≥ threshold
    DET          misses against false alarms, both on a probit scale
    Tippett      share of each class whose llr is at least a given value
    reliability  share of h1 among rows of about equal posterior probability of h1
    ECE(λ)       π mean over h1 of log2(1 + e^−(llr+λ)) + (1−π) mean over h0 of log2(1 + e^(llr+λ)),  λ = logit π
    Bayes error  error rate of decisions at each prior, at the theoretical threshold and at the best one

References: Martin et al., The DET curve in assessment of detection task performance, Eurospeech 1997; Ramos &
Gonzalez-Rodriguez, Reliable support, Forensic Science International 230 (2013), for ECE.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv, expit, ndtri

from deciban.errors import PriorError
from deciban.evaluate.checks import (
    Codes,
    interval_tail,
    two_class_scores,
)
from deciban.evaluate.figures import Tally, cost_at, equal_mass_bins, error_rates, least_cost, pool_llr
from deciban.evidence.scores import Array

ECE_GRID = np.linspace(-6, 6, 49)  # prior log odds, in nats: from 1 in 400 to 400 in 1
DCF_GRID = np.linspace(-6, 6, 121)


@dataclass(frozen=True, eq=False)
class ROC:
    """Rates of hits and false alarms at every threshold, from always deciding h1 to never."""

    threshold: Array  # (P,)  lowest llr that is decided h1; inf at the end
    false_alarm: Array  # (P,)  share of h0 decided h1, falling from 1 to 0
    hit: Array  # (P,)  share of h1 decided h1, falling from 1 to 0

    @property
    def area(self) -> float:
        """Area under the curve: the probability that a row of h1 scores above one of h0, ties counting half."""
        return float(-np.trapezoid(self.hit, self.false_alarm))


@dataclass(frozen=True, eq=False)
class DET:
    """Error rates on probit scales, where Gaussian llrs give straight lines; rates of 0 and 1 are ∓inf."""

    threshold: Array  # (P,)
    false_alarm: Array  # (P,)  probit of the share of h0 decided h1
    miss: Array  # (P,)  probit of the share of h1 decided h0


@dataclass(frozen=True, eq=False)
class Tippett:
    """Share of each class that has at least a given llr."""

    llr: Array  # (G,)  distinct llrs, rising
    h1: Array  # (G,)  share of h1 with llr ≥ that; should be large for llr ≤ 0
    h0: Array  # (G,)  share of h0 with llr ≥ that; should be small for llr ≥ 0


@dataclass(frozen=True, eq=False)
class Reliability:
    """Predicted and observed shares of h1 in bins of about equally many rows, at the proportions of the test rows."""

    predicted: Array  # (B,)  mean posterior probability of h1
    observed: Array  # (B,)  share of rows that are of h1
    low: Array  # (B,)  lower end of the credible interval of the share, by Beta(1, 1) updated with the bin's rows
    high: Array  # (B,)  upper end
    count: Codes  # (B,)  rows


@dataclass(frozen=True, eq=False)
class LLRHistogram:
    """Number of rows of each class between the edges; infinite llrs are counted separately."""

    edges: Array  # (B + 1,)  nats
    h1: Codes  # (B,)  rows of h1
    h0: Codes  # (B,)  rows of h0
    infinite: Codes  # (2, 2)  rows at −inf and +inf: of h1, then of h0


def roc(llr: ArrayLike, is_h1: ArrayLike) -> ROC:
    """Compute the receiver operating characteristic.

    Parameters
    ----------
    llr : array-like of shape (n,)
        Evidence for h1 over h0, in nats; ±inf is allowed.
    is_h1 : array-like of bool of shape (n,)
        Whether h1 is true for each row.

    Returns
    -------
    ROC
        Curves of shape (P,), P − 1 distinct llrs.

    Examples
    --------
    >>> curve = roc([2.0, 1.0, 0.5, -1.0], [True, False, True, False])
    >>> curve.false_alarm.tolist(), curve.hit.tolist(), curve.area
    ([1.0, 0.5, 0.5, 0.0, 0.0], [1.0, 1.0, 0.5, 0.5, 0.0], 0.75)
    """
    tally = Tally.of(llr, is_h1)
    miss, alarm = error_rates(tally.h1, tally.h0)
    return ROC(np.r_[tally.score, np.inf], alarm, 1 - miss)


def convex_hull(llr: ArrayLike, is_h1: ArrayLike) -> ROC:
    """Compute the upper convex hull of the ROC, which random choices between two thresholds reach.

    Parameters
    ----------
    llr : array-like of shape (n,)
        Evidence for h1 over h0, in nats; ±inf is allowed.
    is_h1 : array-like of bool of shape (n,)
        Whether h1 is true for each row.

    Returns
    -------
    ROC
        The corners of the hull.

    Examples
    --------
    >>> hull = convex_hull([2.0, 1.0, 0.5, -1.0], [True, False, True, False])
    >>> hull.false_alarm.tolist(), hull.hit.tolist()
    ([1.0, 0.5, 0.0, 0.0], [1.0, 1.0, 0.5, 0.0])
    """
    tally = Tally.of(llr, is_h1)
    edges = tally.pools()
    miss, alarm = error_rates(*tally.pooled(edges))
    return ROC(np.r_[tally.score[edges[:-1]], np.inf], alarm, 1 - miss)


def det(llr: ArrayLike, is_h1: ArrayLike) -> DET:
    """Compute the detection error trade-off curve.

    Parameters
    ----------
    llr : array-like of shape (n,)
        Evidence for h1 over h0, in nats; ±inf is allowed.
    is_h1 : array-like of bool of shape (n,)
        Whether h1 is true for each row.

    Returns
    -------
    DET
        Curves of shape (P,), P − 1 distinct llrs.

    Examples
    --------
    >>> det([2.0, 1.0, 0.5, -1.0], [True, False, True, False]).miss.tolist()
    [-inf, -inf, 0.0, 0.0, inf]
    """
    tally = Tally.of(llr, is_h1)
    miss, alarm = error_rates(tally.h1, tally.h0)
    return DET(np.r_[tally.score, np.inf], ndtri(alarm), ndtri(miss))


def tippett(llr: ArrayLike, is_h1: ArrayLike) -> Tippett:
    """Compute the Tippett curves: the share of each class with at least a given llr.

    Parameters
    ----------
    llr : array-like of shape (n,)
        Evidence for h1 over h0, in nats; ±inf is allowed.
    is_h1 : array-like of bool of shape (n,)
        Whether h1 is true for each row.

    Returns
    -------
    Tippett
        Curves of shape (G,), G distinct llrs.

    Examples
    --------
    >>> curves = tippett([1.505, -2.247], [True, False])
    >>> curves.llr.tolist(), curves.h1.tolist(), curves.h0.tolist()
    ([-2.247, 1.505], [1.0, 1.0], [1.0, 0.0])
    """
    tally = Tally.of(llr, is_h1)
    miss, alarm = error_rates(tally.h1, tally.h0)
    return Tippett(tally.score, 1 - miss[:-1], alarm[:-1])


def reliability(llr: ArrayLike, is_h1: ArrayLike, bins: int = 10, level: float = 0.95) -> Reliability:
    """Compare predicted probabilities of h1 with how often it is true.

    Parameters
    ----------
    llr : array-like of shape (n,)
        Evidence for h1 over h0, in nats; ±inf is allowed.
    is_h1 : array-like of bool of shape (n,)
        Whether h1 is true for each row.
    bins : int, default=10
        Number of bins; equal llrs are in one bin, so there may be fewer.
    level : float, default=0.95
        Probability of the credible intervals.

    Returns
    -------
    Reliability
        Predicted and observed shares of each bin, with credible intervals.

    Examples
    --------
    >>> curve = reliability([1.505, -2.247], [True, False], bins=2)
    >>> curve.predicted.round(2).tolist(), curve.observed.tolist()
    ([0.1, 0.82], [0.0, 1.0])
    >>> curve.low.round(2).tolist(), curve.high.round(2).tolist()
    ([0.01, 0.16], [0.84, 0.99])
    """
    tail = interval_tail(level)
    llr, is_h1 = two_class_scores(llr, is_h1)
    predicted = expit(llr + np.log(is_h1.sum() / (~is_h1).sum()))
    place = equal_mass_bins(llr, bins)
    count = np.bincount(place)
    ones = np.bincount(place, weights=is_h1)
    low, high = (betaincinv(1 + ones, 1 + count - ones, side) for side in (tail, 1 - tail))
    return Reliability(np.bincount(place, weights=predicted) / count, ones / count, low, high, count)


def llr_histogram(llr: ArrayLike, is_h1: ArrayLike, bins: int | ArrayLike = 50) -> LLRHistogram:
    """Count the llrs of each class in common bins.

    Parameters
    ----------
    llr : array-like of shape (n,)
        Evidence for h1 over h0, in nats; ±inf is allowed.
    is_h1 : array-like of bool of shape (n,)
        Whether h1 is true for each row.
    bins : int or array-like of shape (B + 1,), default=50
        Number of bins, or their edges.

    Returns
    -------
    LLRHistogram
        Edges and counts.

    Examples
    --------
    >>> shape = llr_histogram([1.505, -2.247, -np.inf], [True, False, False], bins=[-3, 0, 3])
    >>> shape.h1.tolist(), shape.h0.tolist(), shape.infinite.tolist()
    ([0, 1], [1, 0], [[0, 0], [1, 0]])
    """
    llr, is_h1 = two_class_scores(llr, is_h1)
    finite = np.isfinite(llr)
    edges = np.histogram_bin_edges(llr[finite], bins)
    h1, h0 = (np.histogram(llr[finite & side], edges)[0] for side in (is_h1, ~is_h1))
    infinite = [[(side & (llr == end)).sum() for end in (-np.inf, np.inf)] for side in (is_h1, ~is_h1)]
    return LLRHistogram(edges, h1, h0, np.array(infinite))


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
        Curves of shape (G,). Where `actual` is above `reference`, the llrs are worse than no evidence.

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
    return BayesErrorCurve(grid, cost_at(tally, -grid, *costs), least_cost(tally, *costs), np.minimum(*costs))


def _finite_log_odds(prior_log_odds: ArrayLike) -> Array:
    grid = np.atleast_1d(np.asarray(prior_log_odds, dtype=float))
    infinite = grid[~np.isfinite(grid)]
    if len(infinite):
        raise PriorError(
            f"prior log odds of {infinite[0]}: with a prior of 0 or 1 the evidence has no effect. Give finite odds."
        )
    return grid
