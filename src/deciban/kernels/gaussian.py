"""Scores of diagonal Gaussians, 64 rows at a time: with the rows side by side, every step is a vector operation.

And what a row leaves of the variances of its class, when it is left out.
"""

from __future__ import annotations

import numpy as np

from .choice import Array
from .jit import kernel, part

SIDE_BY_SIDE = 64  # 50 columns of them fit in the first-level cache
FACTORS = 16  # multiplied before a logarithm is taken: of numbers from 1e-16 to 1 that many do not underflow


@part
def _score_complete(columns: Array, mean: Array, half_precision: Array, log_norm: Array, scores: Array) -> None:
    K, D = mean.shape
    for k in range(K):
        s = scores[k]
        s[:] = log_norm[k].sum()
        for d in range(D):
            m, h, x = mean[k, d], half_precision[k, d], columns[d]
            for i in range(SIDE_BY_SIDE):
                z = x[i] - m
                s[i] -= h * z * z


@part
def _score_with_gaps(columns: Array, mean: Array, half_precision: Array, log_norm: Array, scores: Array) -> None:
    K, D = mean.shape
    for k in range(K):
        s = scores[k]
        s[:] = 0.0
        for d in range(D):
            m, h, c, x = mean[k, d], half_precision[k, d], log_norm[k, d], columns[d]
            for i in range(SIDE_BY_SIDE):
                z = x[i] - m
                s[i] += c - h * z * z if x[i] == x[i] else 0.0  # NaN alone differs from itself


@kernel
def diagonal_scores(X: Array, mean: Array, half_precision: Array, log_norm: Array, out: Array) -> None:
    """Write Σ over d seen of log_norm − half_precision (x−mean)² to (n, K)."""
    n, D = X.shape
    K = len(mean)
    columns, scores = np.zeros((D, SIDE_BY_SIDE)), np.empty((K, SIDE_BY_SIDE))
    for start in range(0, n, SIDE_BY_SIDE):
        rows = min(SIDE_BY_SIDE, n - start)
        gaps = False
        for i in range(rows):
            for d in range(D):
                x = X[start + i, d]
                columns[d, i] = x
                gaps |= x != x
        if gaps:
            _score_with_gaps(columns, mean, half_precision, log_norm, scores)
        else:
            _score_complete(columns, mean, half_precision, log_norm, scores)
        for i in range(rows):
            for k in range(K):
                out[start + i, k] = scores[k, i]


@kernel
def diagonal_left_out(
    X: Array,
    codes: Array,
    origin: Array,
    mean: Array,
    precision: Array,
    share: Array,
    least: float,
    distance: Array,
    log_left: Array,
    smallest: Array,
) -> None:
    """Write Σ v/f, Σ log f and the smallest f of each row to (n,) each."""
    n, D = X.shape
    for i in range(n):
        x, m, h, w = X[i], mean[codes[i]], precision[codes[i]], share[i]
        total, logs, low = 0.0, 0.0, 1.0
        for start in range(0, D, FACTORS):
            product = 1.0
            for d in range(start, min(start + FACTORS, D)):
                z = (x[d] - origin[d]) - m[d]
                v = z * z * h[d]
                f = 1.0 - w * v
                f = f if f > least else least
                total += v / f
                product *= f
                low = min(low, f)
            logs += np.log(product)
        distance[i], log_left[i], smallest[i] = total, logs, low
