"""Softmax of sums of scores: losses, posteriors and curvature, for the fits of scales and of weights.

Scores of P parts are kept relative to the first class, (P, K − 1, n): a constant common to all classes has no effect.
Classes come before rows, because numpy is slow along short rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from deciban.evaluate.checks import Codes
from deciban.evidence.scores import Array


def relative_scores(scores: Array) -> Array:
    """Return scores (P, K, n) less those of the first class, shape (P, K − 1, n)."""
    return np.asarray(scores[:, 1:] - scores[:, :1])


def softmax(sums: Array, bias: Array, possible: Array | None, own: Codes) -> tuple[Array, Array]:
    """Return −log P of the own class of each row, (n,), and the posteriors, (K, n).

    `sums` (K − 1, n) are relative to the first class, and `bias` (K,) is added to each class. `possible` (K, n) is −inf
    where a class is impossible, and 0 elsewhere; None stands for zeros.
    """
    logits = np.empty((len(bias), sums.shape[1]))
    logits[0] = bias[0]
    np.add(sums, bias[1:, None], out=logits[1:])
    if possible is not None:
        logits += possible
    logits -= logits.max(axis=0)
    lost = logits[own, np.arange(len(own))]
    posterior = np.exp(logits, out=logits)
    total = posterior.sum(axis=0)
    posterior /= total
    return np.log(total) - lost, posterior


def excess(posterior: Array, own: Codes, weight: Array | float = 1.0) -> Array:
    """Return w·(posterior − 1 for the own class), shape (K, n): the slope of the losses along each logit."""
    found = weight * posterior
    found[own, np.arange(len(own))] -= weight
    return found


class Curvature(NamedTuple):
    """Second derivatives of Σ w·loss along the weights of P parts and the biases of K classes."""

    parts: Array  # (P, P)
    mixed: Array  # (P, K)
    classes: Array  # (K, K)


def curvature(scores: Array, posterior: Array, weight: Array | float = 1.0) -> Curvature:
    """Return the curvature at posteriors (K, n), for scores (P, K − 1, n): their covariances over the classes."""
    weighted = weight * posterior
    classes = np.diag(weighted.sum(axis=1)) - posterior @ weighted.T
    if len(posterior) == 2:  # the variance of a score that is d with probability p, else 0, is p·(1 − p)·d²
        about, spread = scores[:, 0], weighted[0] * posterior[1]
        pulled, slope = about * np.sqrt(spread), about @ spread
        return Curvature(pulled @ pulled.T, np.stack([-slope, slope], axis=1), classes)
    mean = sum(part * share for part, share in zip(scores.transpose(1, 0, 2), posterior[1:]))  # (P, n)
    root = np.sqrt(weighted)
    mixed = np.empty((len(scores), len(posterior)))
    pulled = -mean * root[0]
    parts, mixed[:, 0] = pulled @ pulled.T, pulled @ root[0]
    for k in range(1, len(posterior)):
        pulled = (scores[:, k - 1] - mean) * root[k]
        parts += pulled @ pulled.T
        mixed[:, k] = pulled @ root[k]
    return Curvature(parts, mixed, classes)
