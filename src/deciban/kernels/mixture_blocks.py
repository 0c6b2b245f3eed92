"""The parts of a mixture's pass between two matrix products: features of a block of rows, and scores to shares.

Rows lie side by side, so that every step is a vector operation. A last block that is not full has rows of zeros, whose
shares are nothing.
"""

from __future__ import annotations

import math

import numpy as np

from .choice import Array
from .jit import kernel, part
from .probabilities import exp


@part
def _fill_values(X: Array, start: int, origin: Array, phi: Array) -> None:
    n, D = X.shape
    block = phi.shape[1]
    rows = min(block, n - start)
    for i in range(rows):
        for d in range(D):
            phi[d, i] = X[start + i, d] - origin[d]
    if rows < block:
        phi[:D, rows:] = 0.0


@kernel
def fill_squares(X: Array, start: int, origin: Array, phi: Array) -> None:
    """Write x−o and its squares to (2D, block)."""
    _fill_values(X, start, origin, phi)
    D = X.shape[1]
    for d in range(D):
        for i in range(phi.shape[1]):
            phi[D + d, i] = phi[d, i] * phi[d, i]


@kernel
def fill_products(X: Array, start: int, origin: Array, phi: Array) -> None:
    """Write x−o and the products of its values, u ≤ v, to (F, block)."""
    _fill_values(X, start, origin, phi)
    D = X.shape[1]
    place = D
    for u in range(D):
        for v in range(u, D):
            for i in range(phi.shape[1]):
                phi[place, i] = phi[u, i] * phi[v, i]
            place += 1


@kernel
def share(
    scores: Array, bias: Array, weight: Array, start: int, n: int, top: Array, norm: Array, counts: Array
) -> float:
    """Turn scores (K, block) into weighted shares, add them to counts, and return Σ w log Σ exp(s + bias)."""
    K, block = scores.shape
    rows = min(block, n - start)
    top[:] = -np.inf
    for k in range(K):
        for i in range(block):
            s = scores[k, i] + bias[k]
            scores[k, i] = s
            top[i] = s if s > top[i] else top[i]
    norm[:] = 0.0
    for k in range(K):
        for i in range(block):
            e = exp(scores[k, i] - top[i])
            scores[k, i] = e
            norm[i] += e
    total = 0.0
    for i in range(rows):
        w = weight[start + i] if weight.size else 1.0
        if w != 0:
            total += w * (top[i] + math.log(norm[i]))
        norm[i] = w / norm[i]
    norm[rows:] = 0.0
    for k in range(K):
        whole = 0.0
        for i in range(block):
            scores[k, i] *= norm[i]
            whole += scores[k, i]
        counts[k] += whole
    return total
