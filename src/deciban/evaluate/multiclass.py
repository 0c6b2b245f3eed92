"""Figures for any number of classes, from log-likelihoods and a prior.

    log loss        mean of −log P(c|x), in nats, rows counting alike
    cross-entropy   Σ_c P(c) · mean over rows of c of −log2 P(c|x), in bits: at the prior, not at the rows' proportions
    Cllr            cross-entropy over the entropy of the prior; two classes at even odds: the two-class Cllr
    Brier           mean of Σ_c (P(c|x) − [x is c])², halved for two classes, as scikit-learn does
    ECE             mean of |share right − mean P| over bins of the most probable class's posterior

Reference: Brümmer & van Leeuwen, On calibration of language recognition scores, Odyssey 2006.
"""

from __future__ import annotations

from math import log

import numpy as np
from numpy.typing import ArrayLike

from deciban.errors import InputError, shortlist
from deciban.evaluate.calibration import Offsets
from deciban.evaluate.checks import Codes, class_log_prior, class_scores, score_table
from deciban.evaluate.intervals import equal_mass_bins
from deciban.evidence.scores import Array, log_posterior


def log_loss(log_likelihood: ArrayLike, codes: ArrayLike, log_prior: ArrayLike) -> float:
    """How much the true classes surprise, in nats a row; inf once one was held impossible.

    A person of 174 cm, who is male:

    >>> round(log_loss(np.log([[.05395, .01198]]), [0], np.log([.5, .5])), 3)
    0.201
    """
    return float(-_own(*_log_posterior(log_likelihood, codes, log_prior)).mean())


def brier(log_likelihood: ArrayLike, codes: ArrayLike, log_prior: ArrayLike) -> float:
    """The mean squared error of the posterior.

    >>> round(brier(np.log([[.05395, .01198]]), [0], np.log([.5, .5])), 4)
    0.033
    """
    logs, numbers = _log_posterior(log_likelihood, codes, log_prior)
    return brier_of(np.exp(logs), numbers)


def brier_of(posterior: Array, codes: Codes) -> float:
    """The Brier score of posteriors."""
    right = posterior[np.arange(len(codes)), codes]
    squares = np.einsum("ic,ic->i", posterior, posterior) - right**2 + (1 - right) ** 2
    return float(squares.mean()) / (2 if posterior.shape[1] == 2 else 1)


def expected_calibration_error(
    log_likelihood: ArrayLike, codes: ArrayLike, log_prior: ArrayLike, bins: int = 15
) -> float:
    """By how much the decided class's posterior misses how often it is right, over bins of equally many rows.

    >>> round(expected_calibration_error(np.log([[.05395, .01198]]), [0], np.log([.5, .5])), 3)
    0.182
    """
    logs, numbers = _log_posterior(log_likelihood, codes, log_prior)
    return calibration_error_of(logs, numbers, bins)


def calibration_error_of(log_posterior: Array, codes: Codes, bins: int = 15) -> float:
    """The expected calibration error of log posteriors; logs tell posteriors apart that round to 1."""
    decided = log_posterior.argmax(axis=1)
    top = log_posterior[np.arange(len(codes)), decided]
    place = equal_mass_bins(top, bins)
    return float(abs(np.bincount(place, weights=(decided == codes) - np.exp(top))).sum()) / len(codes)


def cross_entropy(log_likelihood: ArrayLike, codes: ArrayLike, log_prior: ArrayLike) -> float:
    """What the log-likelihoods cost at this prior, in bits; every class of the prior must have rows.

    >>> round(cross_entropy(np.log([[.05395, .01198], [.00595, .05624]]), [0, 1], np.log([.5, .5])), 3)
    0.217
    """
    logs, numbers = _log_posterior(log_likelihood, codes, log_prior)
    prior = np.exp(class_log_prior(log_prior, logs.shape[1]))
    counts = np.bincount(numbers, minlength=len(prior))
    if (absent := np.flatnonzero((counts == 0) & (prior > 0))).size:
        raise InputError(
            f"no row is of class {shortlist(absent.tolist())}, which the prior says occurs. Add rows, or "
            "judge by log_loss."
        )
    surprise = np.bincount(numbers, weights=-_own(logs, numbers), minlength=len(prior))
    happens = prior > 0  # rows of a class that cannot be are not part of the question
    return float(prior[happens] @ (surprise[happens] / counts[happens])) / log(2)


def multiclass_cllr(log_likelihood: ArrayLike, codes: ArrayLike, log_prior: ArrayLike | None = None) -> float:
    """The cross-entropy relative to knowing the prior alone (equal classes unless given): 1 says nothing.

    >>> round(multiclass_cllr(np.log([[.05395, .01198], [.00595, .05624]]), [0, 1]), 3)
    0.217
    """
    logs = _prior(log_likelihood, log_prior)
    known = np.exp(logs)
    entropy = -float(known[known > 0] @ logs[known > 0]) / log(2)
    if not entropy:
        raise InputError(
            "the prior is certain of one class, so there is nothing to find out. Give a prior of two or more."
        )
    return cross_entropy(log_likelihood, codes, logs) / entropy


def multiclass_calibration_loss(
    log_likelihood: ArrayLike, codes: ArrayLike, log_prior: ArrayLike | None = None
) -> float:
    """The part of the multi-class Cllr that the best scale and offsets, fitted to these very rows, would save.

    Inf where a true class was held impossible, which no scale can mend.

    >>> round(multiclass_calibration_loss([[0, 9.0], [9, 0], [0, 9], [9, 0], [0, 9], [9, 0]], [1, 0, 1, 0, 0, 1]), 3)
    3.407
    """
    raw = multiclass_cllr(log_likelihood, codes, log_prior)
    if raw == np.inf:
        return raw
    calibrator = Offsets.fit(log_likelihood, codes, np.exp(_prior(log_likelihood, log_prior)))
    return max(0.0, raw - multiclass_cllr(calibrator.apply(log_likelihood), codes, log_prior))


def _prior(log_likelihood: ArrayLike, log_prior: ArrayLike | None) -> Array:
    """The log prior as given, else that of equal classes."""
    K = score_table(log_likelihood).shape[1]
    return np.full(K, -log(K)) if log_prior is None else class_log_prior(log_prior, K)


def _log_posterior(log_likelihood: ArrayLike, codes: ArrayLike, log_prior: ArrayLike) -> tuple[Array, Codes]:
    table, numbers = class_scores(log_likelihood, codes)
    return log_posterior(table, class_log_prior(log_prior, table.shape[1], len(table))), numbers


def _own(logs: Array, codes: Codes) -> Array:
    return logs[np.arange(len(codes)), codes]
