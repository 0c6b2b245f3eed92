"""The topics of new documents, and how sure they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from deciban.errors import HyperparameterError
from deciban.kernels.choice import Array
from deciban.kernels.topics import Crew, Rows, fold_in
from deciban.topics.batches import local_columns

STEPS, TOLERANCE = 200, 1e-5


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


def shares_of(X: Any, counts: Array, alpha: Array, beta: float, crew: Crew) -> TopicShares:
    """Documents X under topics with p(w|t) = (n_wk + β)/(n_k + Vβ), by CVB0 with these fixed."""
    words, local = local_columns(X.indices, X.shape[1])
    table = (counts[words].astype(float) + beta) / (counts.sum(axis=0, dtype=float) + len(counts) * beta)
    rows = Rows(X.indptr.astype(np.int64), local, X.data.astype(float))
    found, spread = fold_in(rows, table, alpha, STEPS, TOLERANCE, crew)
    a = found + alpha
    size = a.sum(axis=1, keepdims=True)
    within = (a * size - a**2 - spread) / (size**2 * (size + 1))
    return TopicShares(a / size, np.sqrt(np.maximum(within + spread / size**2, 0.0)))
