"""The topics of new documents, and how sure they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from deciban.errors import HyperparameterError
from deciban.kernels.choice import Array
from deciban.topics.kernels import Rows, ThreadPool, fold_in
from deciban.topics.state import local_columns

STEPS, TOLERANCE = 200, 1e-5
OWN_STEPS = 10
CHUNK = 2**21  # numbers held at a time


@dataclass(frozen=True, eq=False)
class TopicShares:
    """Posterior of documents' topic shares.

    The variance has two parts: of θ given the topics of all tokens, and of the number of tokens each topic has.
    """

    mean: Array  # (n, K) E θ
    sd: Array  # (n, K)

    def interval(self, level: float = 0.95) -> tuple[Array, Array]:
        """Lower and upper bounds of each share, from the Beta distribution of the same mean and variance."""
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


class Folded(NamedTuple):
    """Documents under fixed topics."""

    rows: Rows
    table: Array  # (words used, K) p(w|t)
    counts: Array  # (n, K) Σ c γ


def folded(X: Any, counts: Array, alpha: Array, beta: float, pool: ThreadPool) -> Folded:
    """Documents X under topics with p(w|t) = (n_wk + β)/(n_k + Vβ), by CVB0 with these fixed."""
    words, local = local_columns(X.indices, X.shape[1])
    table = (counts[words].astype(float) + beta) / (counts.sum(axis=0, dtype=float) + len(counts) * beta)
    rows = Rows(X.indptr.astype(np.int64), local, X.data.astype(float))
    return Folded(rows, table, fold_in(rows, table, alpha, STEPS, TOLERANCE, pool))


def means(counts: Array, alpha: Array) -> Array:
    """(n, K) E θ."""
    return (counts + alpha) / (counts + alpha).sum(axis=1, keepdims=True)


def shares_of(found: Folded, alpha: Array) -> TopicShares:
    """Mean and standard deviation, by the law of total variance."""
    a = found.counts + alpha
    size, spread = a.sum(axis=1, keepdims=True), count_variances(found, alpha)
    within = np.maximum(a * size - a**2 - spread, 0.0) / (size**2 * (size + 1))
    return TopicShares(a / size, np.sqrt(within + spread / size**2))


def count_variances(found: Folded, alpha: Array) -> Array:
    """(n, K) the variance of the number of tokens of each topic.

    Were the topics of tokens independent, it would be S = Σ c (diag γ − γγᵀ). But they pull each other: how far shows
    in what a push of the counts does to the fixed point of γ (linear response),

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


def _responses(found: Folded, alpha: Array, documents: Array) -> Array:
    rows, n = found.rows, found.counts[documents]
    a, lengths = n + alpha, np.diff(rows.indptr)[documents]
    place = np.arange(lengths.max())
    there = place < lengths[:, None]
    entry = np.where(there, rows.indptr[documents][:, None] + place, 0)
    c, p = np.where(there, rows.data[entry], 0.0), found.table[rows.indices[entry]]
    g = np.zeros_like(p)
    for _ in range(OWN_STEPS):  # each entry's γ, the counts being known
        g = (np.maximum(n[:, None] - g, 0.0) + alpha) * p
        g /= g.sum(axis=2, keepdims=True)
    S = -np.matmul((g * c[:, :, None]).transpose(0, 2, 1), g)
    diagonal = np.arange(S.shape[1])
    S[:, diagonal, diagonal] += (g * c[:, :, None]).sum(axis=1)
    root = np.sqrt(a)
    B = S / (root[:, :, None] * root[:, None, :])
    inverse = np.linalg.inv(np.eye(len(alpha)) - B)  # S is at most diag n, so this exists
    response = a * (inverse[:, diagonal, diagonal] - 1)
    whole = n.sum(axis=1, keepdims=True)
    return np.clip(response, 0.0, n * np.maximum(whole - n, 0.0))  # no count has more variance than this
