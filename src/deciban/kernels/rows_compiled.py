"""Integer labels to class numbers through a table of all possible values, and how much each class weighs."""

from __future__ import annotations

import math

import numpy as np

from deciban.kernels.choice import Array
from deciban.kernels.jit import kernel, part


@kernel
def mark_offsets(y: Array, low: int, seen: Array) -> bool:
    """Set seen[v] to 1 for each label low + v that occurs; False where one lies outside the table."""
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


@kernel
def add_class_weights(codes: Array, weight: Array, sums: Array) -> None:
    """Add Σ w per class to (K, 8): eight sums in turn, for an addition waits for the one before in the same place."""
    for i in range(codes.size):
        sums[np.uint64(codes[i]), np.uint64(i & 7)] += weight[i] if weight.size else 1.0


# -- probabilities ----------
# Scores to probabilities, 64 rows at a time: with the rows side by side, every step is a vector operation.

SIDE_BY_SIDE = 64

LOG2_E = 1.4426950408889634
# log 2 in two parts; the first has trailing zeros, so that its product with an exponent is exact.
LOG_2_HIGH, LOG_2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
# Adding 1.5 · 2⁵² rounds to an integer and leaves it in the low bits.
ROUND = 6755399441055744.0
LOWEST = -708.0  # exp of less is below the normal numbers: taken for 0


@part
def exp(x: float) -> float:
    """The power eˣ for x ≤ 709 within 1 unit in the last place: 2ⁿ eʳ with |r| ≤ ½ log 2. NaN gives NaN."""
    shifted = x * LOG2_E + ROUND
    n = shifted - ROUND
    r = (x - n * LOG_2_HIGH) - n * LOG_2_LOW
    p = 1 / 6227020800.0  # Taylor's series to r¹³/13!
    p = p * r + 1 / 479001600.0
    p = p * r + 1 / 39916800.0
    p = p * r + 1 / 3628800.0
    p = p * r + 1 / 362880.0
    p = p * r + 1 / 40320.0
    p = p * r + 1 / 5040.0
    p = p * r + 1 / 720.0
    p = p * r + 1 / 120.0
    p = p * r + 1 / 24.0
    p = p * r + 1 / 6.0
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    power_of_two = np.int64((np.float64(shifted).view(np.int64) + 1023) << 52).view(np.float64)
    return 0.0 if x < LOWEST else p * power_of_two


@part
def _powers(scores: Array, start: int, rows: int, powers: Array, top: Array, total: Array) -> None:
    """Write exp(score − top) of some rows to (K, 64), and their tops and sums. The top of a row of −inf is 0."""
    K, side = powers.shape
    for i in range(rows):
        for k in range(K):
            powers[k, i] = scores[start + i, k]
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
    powers, top, total = np.zeros((K, SIDE_BY_SIDE)), np.empty(SIDE_BY_SIDE), np.empty(SIDE_BY_SIDE)
    for start in range(0, n, SIDE_BY_SIDE):
        rows = min(SIDE_BY_SIDE, n - start)
        _powers(scores, start, rows, powers, top, total)
        for i in range(rows):
            sums[start + i] = top[i] + math.log(total[i])


@kernel
def log_softmax(scores: Array, out: Array) -> None:
    """Write scores less their log Σ exp to (n, K), which may be the scores themselves."""
    n, K = scores.shape
    powers, top, total = np.zeros((K, SIDE_BY_SIDE)), np.empty(SIDE_BY_SIDE), np.empty(SIDE_BY_SIDE)
    for start in range(0, n, SIDE_BY_SIDE):
        rows = min(SIDE_BY_SIDE, n - start)
        _powers(scores, start, rows, powers, top, total)
        for i in range(rows):
            norm = 0.0 if total[i] == 0 else top[i] + math.log(total[i])
            for k in range(K):
                out[start + i, k] = scores[start + i, k] - norm


@kernel
def softmax(scores: Array, out: Array) -> None:
    """Write exp(score) / Σ exp(scores) to (n, K), which may be the scores themselves."""
    n, K = scores.shape
    powers, top, total = np.zeros((K, SIDE_BY_SIDE)), np.empty(SIDE_BY_SIDE), np.empty(SIDE_BY_SIDE)
    for start in range(0, n, SIDE_BY_SIDE):
        rows = min(SIDE_BY_SIDE, n - start)
        _powers(scores, start, rows, powers, top, total)
        for i in range(rows):
            share = 0.0 if total[i] == 0 else 1.0 / total[i]
            for k in range(K):
                out[start + i, k] = powers[k, i] * share
