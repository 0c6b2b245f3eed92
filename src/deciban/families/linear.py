"""Scores that are linear in the data, where 0·(−inf) is 0 also inside a matrix product."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from deciban import kernels
from deciban.statistics import Array


def linear_scores(X: Any, weights: Array, bias: Array) -> Array:
    """(n, K) bias + X @ weights for X ≥ 0, dense or CSR; weights (D, K) may hold −inf.

    >>> linear_scores(np.array([[0.0, 2.0]]), np.array([[-np.inf, 1.0], [1.0, -np.inf]]), np.zeros(2))
    array([[  2., -inf]])
    """
    if sp.issparse(X):
        return kernels.sparse_scores(X.data, X.indices, X.indptr, weights, bias)
    impossible = np.isneginf(weights)
    if not impossible.any():
        return np.asarray(X @ weights + bias)
    scores = X @ np.where(impossible, 0.0, weights) + bias
    scores[X @ impossible.astype(X.dtype) > 0] = -np.inf
    return np.asarray(scores)
