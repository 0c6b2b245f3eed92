"""Figures for log-likelihoods of any number of classes, at a prior.

    log loss        mean over rows of −log P(c|x), in nats
    cross-entropy   Σ_c P(c) · mean over rows of c of −log2 P(c|x), in bits: at the prior, not at the rows' proportions
    Cllr            cross-entropy / entropy of the prior; for two classes at even odds the two-class Cllr
    Brier           mean of Σ_c (P(c|x) − [x is c])², halved for two classes, as in scikit-learn
    ECE             mean over bins of |accuracy − mean P|, in bins of the posterior of the most probable class

Reference: Brümmer & van Leeuwen, On calibration of language recognition scores, Odyssey 2006.
"""

from __future__ import annotations

from math import log

import numpy as np
from numpy.typing import ArrayLike

from deciban.errors import InputError, shortlist
from deciban.evaluate.calibration import Offsets
from deciban.evaluate.checks import Codes, class_log_prior, class_scores, score_table
from deciban.evaluate.curves import equal_mass_bins
from deciban.evidence.scores import Array, log_posterior


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
    A person of 174 cm, who is male:

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
            f"no row is of class {shortlist(absent.tolist())}, which the prior says occurs. Add rows, or use log_loss."
        )
    surprise = np.bincount(numbers, weights=-_own(logs, numbers), minlength=len(prior))
    happens = prior > 0  # rows of a class with prior 0 do not count
    return float(prior[happens] @ (surprise[happens] / counts[happens])) / log(2)


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
    calibrator = Offsets.fit(log_likelihood, codes, np.exp(_prior(log_likelihood, log_prior)))
    return max(0.0, raw - multiclass_cllr(calibrator.apply(log_likelihood), codes, log_prior))


def _prior(log_likelihood: ArrayLike, log_prior: ArrayLike | None) -> Array:
    """The log prior as given, or equal for all classes."""
    K = score_table(log_likelihood).shape[1]
    return np.full(K, -log(K)) if log_prior is None else class_log_prior(log_prior, K)


def _log_posterior(log_likelihood: ArrayLike, codes: ArrayLike, log_prior: ArrayLike) -> tuple[Array, Codes]:
    table, numbers = class_scores(log_likelihood, codes)
    return log_posterior(table, class_log_prior(log_prior, table.shape[1], len(table))), numbers


def _own(logs: Array, codes: Codes) -> Array:
    """(n,) the entries of the true classes."""
    return logs[np.arange(len(codes)), codes]
