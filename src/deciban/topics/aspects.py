"""Probabilistic latent semantic analysis by EM, without ever holding p(t|d,w).

    p(w|d) = Σ_t p(w|t) p(t|d)                    γ = p(t|d,w) ∝ [p(w|t) p(t|d)]^b

    p(t|d) ∝ Σ_w c_dw γ                           then, with the new p(t|d),
    p(w|t) ∝ Σ_d c_dw γ

With b = 1 the likelihood never falls. b < 1 is tempered EM: flatter γ, which over-fit less.

Reference: Hofmann, Unsupervised learning by probabilistic latent semantic analysis, 2001.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from deciban.kernels.choice import Array
from deciban.kernels.topics import Crew, Rows, plain_counts, row_log_likelihoods, turned
from deciban.kernels.topics.crew import ALONE
from deciban.topics.priors import Priors
from deciban.topics.starts import start_counts

LEAST = 1e-19  # a share that is taken for 0: products of two smaller ones would be denormal, at ten times the cost
SMOOTHING = 1e-4  # of each topic, when it predicts documents that were not learnt: ML gives words probability 0


class Aspects:
    """p(t|d) and p(w|t), and how likely they make the data."""

    def __init__(self, X: Any, K: int, priors: Priors, seed: int, crew: Crew = ALONE, power: float = 1.0) -> None:
        rng = np.random.default_rng(seed)
        self.rows = Rows.of(X)
        self.by_word = turned(self.rows, X.shape[1])
        self.documents = np.full((X.shape[0], K), 1 / K, np.float32)  # p(t|d)
        words = start_counts(X, K, rng)
        self.words = words / words.sum(axis=0)  # p(w|t)
        self.weights = np.full(K, 1 / K)  # p(t)
        self.priors, self.crew, self.power = priors, crew, power

    def step(self) -> None:
        """p(t|d), then p(w|t)."""
        table, shares = self._powered(self.words), self._powered(self.documents)
        counts = plain_counts(self.rows, table, shares, self.crew)
        self.documents = normalised(counts, counts.sum(axis=1, keepdims=True), self.documents)
        shares = self._powered(self.documents)
        sums = plain_counts(self.by_word, shares, table, self.crew)
        totals = sums.sum(axis=0, dtype=float)
        self.weights = totals / totals.sum()
        self.words = normalised(sums, totals, self.words)

    def log_likelihood(self) -> float:
        """Of a token that was learnt: the mean of log p(w|d)."""
        rows = Rows(self.rows.indptr, self.rows.indices, self.rows.data.astype(float))
        each = row_log_likelihoods(rows, self.words.astype(float), self.documents.astype(float), self.crew)
        return float(each.sum() / rows.data.sum())

    def _powered(self, probabilities: Array) -> Array:
        return probabilities if self.power == 1 else probabilities ** np.float32(self.power)

    def table(self, words: Array) -> Array:
        """p(w|t) of some words, smoothed."""
        return (1 - SMOOTHING) * self.words[words] + SMOOTHING / len(self.words)

    def snapshot(self) -> Any:
        """What to go back to."""
        return self.documents, self.words, self.weights

    def restore(self, kept: Any) -> None:
        """Back to a snapshot."""
        self.documents, self.words, self.weights = kept


def normalised(counts: Array, totals: Array, otherwise: Array) -> Array:
    """Rows, or columns, divided by their totals; those without counts stay as they were, and shares below LEAST end."""
    totals = totals.astype(counts.dtype)
    if not totals.all():
        counts = np.where(totals > 0, counts, otherwise)
        totals = np.where(totals > 0, totals, 1)
    shares = counts / totals
    shares *= shares >= LEAST
    return shares


def folded(X: Any, words: Array, steps: int, crew: Crew) -> Array:
    """(n, K) p(t|d) of new documents, p(w|t) fixed: EM from equal shares."""
    rows = Rows.of(X)
    shares = np.full((X.shape[0], words.shape[1]), 1 / words.shape[1], np.float32)
    for _ in range(steps):
        counts = plain_counts(rows, words, shares, crew)
        shares = normalised(counts, counts.sum(axis=1, keepdims=True), shares)
    return shares
