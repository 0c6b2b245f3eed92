"""Topic shares of new documents under fixed topics, and their uncertainty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from deciban.errors import HyperparameterError
from deciban.kernels.choice import Array
from deciban.topics.kernels.layout import Rows, ThreadPool
from deciban.topics.kernels.passes import fold_in
from deciban.topics.state import local_columns

STEPS, TOLERANCE = 200, 1e-5  # of fold-in
ENTRY_STEPS = 10  # fixed-point steps of γ given the counts
CHUNK = 2**21  # numbers held at a time


@dataclass(frozen=True, eq=False)
class TopicShares:
    """Posterior of the topic shares θ of documents.

    The variance is that of θ given the topics of all tokens, plus that due to the number of tokens of each topic.

    Attributes
    ----------
    mean : ndarray of shape (n_documents, n_topics)
        Expected shares.
    sd : ndarray of shape (n_documents, n_topics)
        Standard deviations of the shares.
    """

    mean: Array
    sd: Array

    def interval(self, level: float = 0.95) -> tuple[Array, Array]:
        """Lower and upper bounds of each share: quantiles of the Beta distribution with this mean and variance."""
        from scipy.stats import beta

        if not 0 < level < 1:
            raise HyperparameterError(f"level={level} must lie between 0 and 1.")
        mean = np.clip(self.mean, 1e-12, 1 - 1e-12)
        size = np.maximum(mean * (1 - mean) / np.maximum(self.sd, 1e-9) ** 2 - 1, 1e-9)
        tail = (1 - level) / 2
        return beta.ppf(tail, mean * size, (1 - mean) * size), beta.ppf(1 - tail, mean * size, (1 - mean) * size)

    def __repr__(self) -> str:
        n, K = self.mean.shape
        return f"TopicShares({n} documents, {K} topics)"


class FoldedIn(NamedTuple):
    """Documents and their expected counts under fixed topics."""

    rows: Rows
    table: Array  # (words used, K) p(w|t)
    counts: Array  # (n, K) Σ c γ


def fold_in_documents(X: sp.csr_array, counts: Array, alpha: Array, beta: float, pool: ThreadPool) -> FoldedIn:
    """Fold documents in by CVB0 with p(w|t) = (n_wk + β)/(n_k + Vβ) fixed."""
    words, local = local_columns(X.indices, X.shape[1])
    table = (counts[words].astype(float) + beta) / (counts.sum(axis=0, dtype=float) + len(counts) * beta)
    rows = Rows(X.indptr.astype(np.int64), local, X.data.astype(float))
    return FoldedIn(rows, table, fold_in(rows, table, alpha, STEPS, TOLERANCE, pool))


def expected_shares(counts: Array, alpha: Array) -> Array:
    """E θ, shape (n, K)."""
    return (counts + alpha) / (counts + alpha).sum(axis=1, keepdims=True)


def shares_of(found: FoldedIn, alpha: Array) -> TopicShares:
    """Mean and standard deviation of the shares, by the law of total variance."""
    a = found.counts + alpha
    size, spread = a.sum(axis=1, keepdims=True), count_variances(found, alpha)
    within = np.maximum(a * size - a**2 - spread, 0.0) / (size**2 * (size + 1))
    return TopicShares(a / size, np.sqrt(within + spread / size**2))


def count_variances(found: FoldedIn, alpha: Array) -> Array:
    """Variance of the number of tokens of each topic, shape (n, K).

    If the topics of tokens were independent, the covariance would be S = Σ c (diag γ − γγᵀ). They are not; the response
    of the fixed point of γ to a change of the counts (linear response) gives

        Cov(n) = (I − S D⁻¹)⁻¹ S,   D = diag(n + α)

    Reference: Opper and Saad, eds, Advanced mean field methods, 2001, on linear response.
    """
    rows, K = found.rows, found.counts.shape[1]
    lengths = np.diff(rows.indptr)
    variances, order = np.zeros_like(found.counts), np.argsort(lengths, kind="stable")
    at = int(np.sum(lengths == 0))
    while at < len(order):
        few = max(1, CHUNK // (K * max(K, int(lengths[order[at]]))))
        here = order[at : at + few]
        variances[here] = _responses(found, alpha, here)
        at += few
    return variances


def _responses(found: FoldedIn, alpha: Array, documents: Array) -> Array:
    rows, n = found.rows, found.counts[documents]
    a, lengths = n + alpha, np.diff(rows.indptr)[documents]
    place = np.arange(lengths.max())
    valid = place < lengths[:, None]
    entry = np.where(valid, rows.indptr[documents][:, None] + place, 0)
    c, p = np.where(valid, rows.data[entry], 0.0), found.table[rows.indices[entry]]
    g = np.zeros_like(p)
    for _ in range(ENTRY_STEPS):  # γ of each entry, given the counts
        g = (np.maximum(n[:, None] - g, 0.0) + alpha) * p
        g /= g.sum(axis=2, keepdims=True)
    S = -np.matmul((g * c[:, :, None]).transpose(0, 2, 1), g)
    diagonal = np.arange(S.shape[1])
    S[:, diagonal, diagonal] += (g * c[:, :, None]).sum(axis=1)
    root = np.sqrt(a)
    B = S / (root[:, :, None] * root[:, None, :])
    inverse = np.linalg.inv(np.eye(len(alpha)) - B)  # exists, because S ≤ diag n
    response = a * (inverse[:, diagonal, diagonal] - 1)
    whole = n.sum(axis=1, keepdims=True)
    return np.clip(response, 0.0, n * np.maximum(whole - n, 0.0))  # the largest possible variance
