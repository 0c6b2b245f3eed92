"""Compiled versions of `rows`."""

from __future__ import annotations

import math

import numpy as np

from deciban.kernels.choice import Array
from deciban.kernels.intrinsics import exp
from deciban.kernels.jit import inline, kernel
from deciban.kernels.rows import BLOCK_ROWS


@kernel
def mark_offsets(y: Array, low: int, seen: Array) -> bool:
    """Set seen[v] to 1 for each label low + v that occurs; False if one lies outside the table."""
    for i in range(y.size):
        offset = np.uint64(y[i] - low)
        if offset >= np.uint64(seen.size):
            return False
        seen[offset] = 1
    return True


@kernel
def place_offsets(y: Array, low: int, rank: Array, codes: Array) -> None:
    """Write rank[v] of each label low + v to codes."""
    for i in range(y.size):
        codes[i] = rank[y[i] - low]


# -- probabilities -----------------------------------------------------------------------------------------------------
# Blocks of rows are transposed, so that every step is a vector operation over the rows.


@inline
def _sum(scores: Array, i: int, k: int, added: Array | None) -> float:
    if added is None:
        return scores[i, k]
    return scores[i, k] + added[k]


@inline
def _powers(scores: Array, start: int, rows: int, added: Array | None, powers: Array, top: Array, total: Array) -> None:
    """Write exp(score − maximum) of some rows to (K, 64), and maxima and sums. The maximum of a row of −inf is 0.

    `added` is first added to each row, unless it is None.
    """
    K, side = powers.shape
    for i in range(rows):
        for k in range(K):
            powers[k, i] = _sum(scores, start + i, k, added)
    top[:] = -np.inf
    for k in range(K):
        for i in range(side):
            top[i] = powers[k, i] if powers[k, i] > top[i] else top[i]
    for i in range(side):
        top[i] = 0.0 if top[i] == -np.inf else top[i]
    total[:] = 0.0
    for k in range(K):
        for i in range(side):
            powers[k, i] = exp(powers[k, i] - top[i])
            total[i] += powers[k, i]


@kernel
def log_sum_exp(scores: Array, sums: Array) -> None:
    """Write log Σ exp of each row to (n,)."""
    n, K = scores.shape
    powers, top, total = np.zeros((K, BLOCK_ROWS)), np.empty(BLOCK_ROWS), np.empty(BLOCK_ROWS)
    for start in range(0, n, BLOCK_ROWS):
        rows = min(BLOCK_ROWS, n - start)
        _powers(scores, start, rows, None, powers, top, total)
        for i in range(rows):
            sums[start + i] = top[i] + math.log(total[i])


@kernel
def softmax(scores: Array, added: Array | None, logs: bool, out: Array) -> None:
    """Write exp(score) / Σ exp(scores), or its logarithm, to (n, K), which may be the scores themselves.

    `added`, (K,), is first added to each row, unless it is None.
    """
    n, K = scores.shape
    powers, top, total = np.zeros((K, BLOCK_ROWS)), np.empty(BLOCK_ROWS), np.empty(BLOCK_ROWS)
    for start in range(0, n, BLOCK_ROWS):
        rows = min(BLOCK_ROWS, n - start)
        _powers(scores, start, rows, added, powers, top, total)
        for i in range(rows):
            if logs:
                norm = 0.0 if total[i] == 0 else top[i] + math.log(total[i])
                for k in range(K):
                    out[start + i, k] = _sum(scores, start + i, k, added) - norm
            else:
                share = 0.0 if total[i] == 0 else 1.0 / total[i]
                for k in range(K):
                    out[start + i, k] = powers[k, i] * share
