"""Figures for scores: log-likelihood ratios of two classes, and log-likelihoods of any number of classes.

Two classes, h1 over h0:

    miss(t)          = share of h1 with llr < t            false alarm(t) = share of h0 with llr ≥ t
    Cllr             = ½ [ mean over h1 of log2(1 + e^−llr) + mean over h0 of log2(1 + e^llr) ]      bits
    minCllr          = Cllr after the best monotone recalibration (PAV)
    calibration loss = Cllr − minCllr
    DCF(π̃)           = [ π̃ · miss(t) + (1−π̃) · false alarm(t) ] / min(π̃, 1−π̃)
                       actual: t = −log π̃/(1−π̃);   minimum: the t of least cost
    EER              = the rate at which miss = false alarm on the convex hull of the ROC

An llr of 0 for every row has Cllr 1; decisions by the prior alone have DCF 1. h1 is decided where llr ≥ t. π̃ is the
effective prior, which holds the costs too.

PAV (pool adjacent violators) merges rows in order of llr until the share of h1 rises from pool to pool. The llr of a
pool is log(rows of h1 / rows of h0 in the pool) − log(N1 / N0), independent of the proportions of the test rows; a pool
of one class is −inf or +inf, so PAV is optimistic on small test sets. Least costs lie on the convex hull of the ROC,
whose corners are the edges of the pools.

Any number of classes, at a prior:

    log loss        mean over rows of −log P(c|x), in nats
    cross-entropy   Σ_c P(c) · mean over rows of c of −log2 P(c|x), in bits: at the prior, not at the rows' proportions
    Cllr            cross-entropy / entropy of the prior; for two classes at even odds the two-class Cllr
    Brier           mean of Σ_c (P(c|x) − [x is c])², halved for two classes, as in scikit-learn
    ECE             mean over bins of |accuracy − mean P|, in bins of the posterior of the most probable class

References: Brümmer & du Preez, Application-independent evaluation of speaker detection, Computer Speech and Language 20
(2006), and Brümmer & van Leeuwen, On calibration of language recognition scores, Odyssey 2006, for Cllr; Brümmer & de
Villiers, The BOSARIS toolkit: theory, algorithms and code, 2011, for DCF and EER.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log

import numpy as np
from numpy.typing import ArrayLike

from deciban.errors import InputError, PriorError, shortlist
from deciban.evaluate.checks import (
    Codes,
    Flags,
    class_log_prior,
    class_prior,
    class_scores,
    number_or_array,
    score_table,
    two_class_scores,
)
from deciban.evaluate.scale_fit import fit_scaled_softmax
from deciban.evidence.decisions import threshold
from deciban.evidence.scores import Array, log_posterior


# -- two classes -------------------------------------------------------------------------------------------------------
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
        Normalised DCF; above 1, the llrs are worse than no evidence.

    Examples
    --------
    Evidence for male over female from two heights, at even odds, and where one person in a hundred is male:

    >>> dcf([1.505, -2.247], [True, False], .5), dcf([1.505, -2.247], [True, False], [.01, .5]).tolist()
    (0.0, [1.0, 0.0])
    """
    at = _thresholds(prior, c_miss, c_fa)
    return number_or_array(cost_at(Tally.of(llr, is_h1), at, *_relative_costs(at)))


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
    return number_or_array(least_cost(Tally.of(llr, is_h1), *_relative_costs(at)))


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
    with np.errstate(over="ignore"):  # a prior below 1e−308: the rarer error costs inf, unless its rate is 0
        return np.exp(np.maximum(np.negative(at), 0)), np.exp(np.maximum(at, 0))


def cost_at(tally: Tally, at: float | Array, c_miss: Array, c_fa: Array) -> Array:
    """Costs of decisions at llr thresholds, given the costs of a miss and of a false alarm at each."""
    miss, alarm = error_rates(tally.h1, tally.h0)
    place = np.searchsorted(tally.score, at, side="left")
    return _product(miss[place], c_miss) + _product(alarm[place], c_fa)


def least_cost(tally: Tally, c_miss: Array, c_fa: Array) -> Array:
    """Costs of decisions at the best threshold, for each pair of costs of a miss and of a false alarm."""
    miss, alarm = error_rates(*tally.pooled(tally.pools()))
    costs = _product(miss, np.asarray(c_miss)[..., None]) + _product(alarm, np.asarray(c_fa)[..., None])
    return costs.min(axis=-1)


def _product(rate: Array, cost: Array) -> Array:
    """Rate times cost, 0 where the rate is 0."""
    rate, cost = np.broadcast_arrays(rate, cost)
    return np.multiply(rate, cost, out=np.zeros(rate.shape), where=rate > 0)


# -- any number of classes ---------------------------------------------------------------------------------------------
def log_loss(log_likelihood: ArrayLike, codes: ArrayLike, log_prior: ArrayLike) -> float:
    """Compute the log loss: the mean of −log P(true class | x).

    Parameters
    ----------
    log_likelihood : array-like of shape (n, K)
        Log-likelihoods.
    codes : array-like of int of shape (n,)
        True class of each row.
    log_prior : array-like of shape (K,) or (n, K)
        Log prior probabilities; each row may have its own.

    Returns
    -------
    float
        Nats per row; inf if a true class has posterior 0.

    Examples
    --------
    A male person of 174 cm:

    >>> round(log_loss(np.log([[.05395, .01198]]), [0], np.log([.5, .5])), 3)
    0.201
    """
    return float(-_own(*_log_posterior(log_likelihood, codes, log_prior)).mean())


def brier(log_likelihood: ArrayLike, codes: ArrayLike, log_prior: ArrayLike) -> float:
    """Compute the Brier score: the mean squared error of the posterior.

    Parameters
    ----------
    log_likelihood : array-like of shape (n, K)
        Log-likelihoods.
    codes : array-like of int of shape (n,)
        True class of each row.
    log_prior : array-like of shape (K,) or (n, K)
        Log prior probabilities; each row may have its own.

    Returns
    -------
    float
        The score; halved for two classes.

    Examples
    --------
    >>> round(brier(np.log([[.05395, .01198]]), [0], np.log([.5, .5])), 4)
    0.033
    """
    logs, numbers = _log_posterior(log_likelihood, codes, log_prior)
    return brier_of(np.exp(logs), numbers)


def brier_of(posterior: Array, codes: Codes) -> float:
    """The Brier score of posterior probabilities (n, K)."""
    right = posterior[np.arange(len(codes)), codes]
    squares = np.einsum("ic,ic->i", posterior, posterior) - right**2 + (1 - right) ** 2
    return float(squares.mean()) / (2 if posterior.shape[1] == 2 else 1)


def expected_calibration_error(
    log_likelihood: ArrayLike, codes: ArrayLike, log_prior: ArrayLike, bins: int = 15
) -> float:
    """Compute the expected calibration error of the most probable class, in bins of equally many rows.

    Parameters
    ----------
    log_likelihood : array-like of shape (n, K)
        Log-likelihoods.
    codes : array-like of int of shape (n,)
        True class of each row.
    log_prior : array-like of shape (K,) or (n, K)
        Log prior probabilities; each row may have its own.
    bins : int, default=15
        Number of bins.

    Returns
    -------
    float
        Mean absolute difference of posterior and accuracy.

    Examples
    --------
    >>> round(expected_calibration_error(np.log([[.05395, .01198]]), [0], np.log([.5, .5])), 3)
    0.182
    """
    logs, numbers = _log_posterior(log_likelihood, codes, log_prior)
    return calibration_error_of(logs, numbers, bins)


def calibration_error_of(log_posterior: Array, codes: Codes, bins: int = 15) -> float:
    """The expected calibration error of log posteriors (n, K), whose order is kept where probabilities round to 1."""
    decided = log_posterior.argmax(axis=1)
    top = log_posterior[np.arange(len(codes)), decided]
    place = equal_mass_bins(top, bins)
    return float(abs(np.bincount(place, weights=(decided == codes) - np.exp(top))).sum()) / len(codes)


def cross_entropy(log_likelihood: ArrayLike, codes: ArrayLike, log_prior: ArrayLike) -> float:
    """Compute the cross-entropy at a prior, in bits.

    Parameters
    ----------
    log_likelihood : array-like of shape (n, K)
        Log-likelihoods.
    codes : array-like of int of shape (n,)
        True class of each row.
    log_prior : array-like of shape (K,)
        Log prior probabilities.

    Returns
    -------
    float
        Bits.

    Raises
    ------
    InputError
        If a class with a positive prior has no rows.

    Examples
    --------
    >>> round(cross_entropy(np.log([[.05395, .01198], [.00595, .05624]]), [0, 1], np.log([.5, .5])), 3)
    0.217
    """
    logs, numbers = _log_posterior(log_likelihood, codes, log_prior)
    prior = np.exp(class_log_prior(log_prior, logs.shape[1]))
    counts = np.bincount(numbers, minlength=len(prior))
    if (absent := np.flatnonzero((counts == 0) & (prior > 0))).size:
        raise InputError(
            f"no row is of class {shortlist(absent.tolist())}, whose prior is above 0. Add rows, or use log_loss."
        )
    surprise = np.bincount(numbers, weights=-_own(logs, numbers), minlength=len(prior))
    possible = prior > 0  # rows of a class with prior 0 do not count
    return float(prior[possible] @ (surprise[possible] / counts[possible])) / log(2)


def multiclass_cllr(log_likelihood: ArrayLike, codes: ArrayLike, log_prior: ArrayLike | None = None) -> float:
    """Compute the cross-entropy relative to the entropy of the prior.

    Parameters
    ----------
    log_likelihood : array-like of shape (n, K)
        Log-likelihoods.
    codes : array-like of int of shape (n,)
        True class of each row.
    log_prior : array-like of shape (K,), optional
        Log prior probabilities, equal for all classes if not given.

    Returns
    -------
    float
        Cllr: 0 for perfect log-likelihoods, 1 for equal ones.

    Examples
    --------
    >>> round(multiclass_cllr(np.log([[.05395, .01198], [.00595, .05624]]), [0, 1]), 3)
    0.217
    """
    logs = _prior(log_likelihood, log_prior)
    known = np.exp(logs)
    entropy = -float(known[known > 0] @ logs[known > 0]) / log(2)
    if not entropy:
        raise InputError(
            "the prior is certain of one class, so that its entropy is 0. Give a prior of two or more classes."
        )
    return cross_entropy(log_likelihood, codes, logs) / entropy


def multiclass_calibration_loss(
    log_likelihood: ArrayLike, codes: ArrayLike, log_prior: ArrayLike | None = None
) -> float:
    """Compute the part of the multi-class Cllr that a scale and offsets, fitted to the same rows, would save.

    Parameters
    ----------
    log_likelihood : array-like of shape (n, K)
        Log-likelihoods.
    codes : array-like of int of shape (n,)
        True class of each row.
    log_prior : array-like of shape (K,), optional
        Log prior probabilities, equal for all classes if not given.

    Returns
    -------
    float
        Difference of two Cllrs; inf if a true class has likelihood 0, which no scale changes.

    Examples
    --------
    >>> round(multiclass_calibration_loss([[0, 9.0], [9, 0], [0, 9], [9, 0], [0, 9], [9, 0]], [1, 0, 1, 0, 0, 1]), 3)
    3.407
    """
    raw = multiclass_cllr(log_likelihood, codes, log_prior)
    if raw == np.inf:
        return raw
    table, numbers = class_scores(log_likelihood, codes)
    prior = class_prior(np.exp(_prior(log_likelihood, log_prior)), table.shape[1])
    fit = fit_scaled_softmax([table], numbers, prior)
    return max(0.0, raw - multiclass_cllr(exp(fit.log_scales[0]) * table + fit.offsets, codes, log_prior))


def equal_mass_bins(values: Array, bins: int) -> Codes:
    """The bin (n,) of each value, with about as many values in each; equal values are in one bin.

    >>> equal_mass_bins(np.array([.2, .9, .2, .4, .2]), 2).tolist()
    [0, 1, 0, 1, 0]
    """
    if bins < 1:
        raise InputError(f"bins is {bins}. Ask for at least one.")
    ranked = np.sort(values)
    cuts = np.arange(1, bins) * len(values) // bins  # how many values should lie below each cut
    cuts = np.searchsorted(ranked, ranked[cuts[cuts > 0] - 1], side="right")  # to the end of the tie that a cut splits
    return np.searchsorted(np.unique(ranked[cuts[cuts < len(values)]]), values, side="right")


def _prior(log_likelihood: ArrayLike, log_prior: ArrayLike | None) -> Array:
    """The log prior as given, or equal for all classes."""
    K = score_table(log_likelihood).shape[1]
    return np.full(K, -log(K)) if log_prior is None else class_log_prior(log_prior, K)


def _log_posterior(log_likelihood: ArrayLike, codes: ArrayLike, log_prior: ArrayLike) -> tuple[Array, Codes]:
    table, numbers = class_scores(log_likelihood, codes)
    return log_posterior(table, class_log_prior(log_prior, table.shape[1], len(table))), numbers


def _own(logs: Array, codes: Codes) -> Array:
    """Return the entries of the true classes, (n,)."""
    return logs[np.arange(len(codes)), codes]
