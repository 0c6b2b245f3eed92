"""Sparse rows: sums per class and scores. Tables hold a word's numbers for all classes side by side.

A row's words are scattered over the table; each access would wait for memory, so rows are asked for in advance.
Indices come checked. They are cast to unsigned, which spares the test for counting from the end.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .choice import Array
from .intrinsics import LINE, prefetch
from .jit import kernel, part
from .register_sums import sum_scaled_rows_of

STREAM_AHEAD = 512  # entries of the sparse rows themselves, asked for in advance
IN_CACHE = 2**18  # numbers in a table that stays in the second-level cache unasked


@part
def _fetch_entries(data: Array, indices: Array, begin: int, end: int) -> None:
    for p in range(begin, end, LINE):
        prefetch(data, p + STREAM_AHEAD)
        prefetch(indices, p + STREAM_AHEAD)


@kernel
def add_class_sums(data: Array, indices: Array, indptr: Array, codes: Array, weight: Array, sums: Array) -> None:
    """Add Σ w x to (V, K)."""
    K = sums.shape[1]
    n = indptr.size - 1
    for i in range(n):
        _fetch_entries(data, indices, indptr[i], indptr[i + 1])
        if sums.size > IN_CACHE and i + 1 < n:
            for p in range(indptr[i + 1], indptr[i + 2]):
                prefetch(sums, indices[p] * K + codes[i + 1])
        w = weight[i] if weight.size else 1.0
        if w != 0:
            k = np.uint64(codes[i])
            for p in range(indptr[i], indptr[i + 1]):
                sums[np.uint64(indices[p]), k] += w * data[p]


@kernel
def add_class_moments(data: Array, indices: Array, indptr: Array, codes: Array, weight: Array, sums: Array) -> None:
    """Add Σ w x and Σ w x² to (V, 2, K)."""
    K = sums.shape[2]
    n = indptr.size - 1
    for i in range(n):
        _fetch_entries(data, indices, indptr[i], indptr[i + 1])
        if sums.size > IN_CACHE and i + 1 < n:
            for p in range(indptr[i + 1], indptr[i + 2]):
                prefetch(sums, 2 * indices[p] * K + codes[i + 1])
                prefetch(sums, (2 * indices[p] + 1) * K + codes[i + 1])
        w = weight[i] if weight.size else 1.0
        if w != 0:
            k = np.uint64(codes[i])
            for p in range(indptr[i], indptr[i + 1]):
                j, x = np.uint64(indices[p]), float(data[p])
                sums[j, 0, k] += w * x
                sums[j, 1, k] += w * x * x


@kernel
def row_lookups(data: Array, indptr: Array, table: Array, sums: Array, found: Array) -> bool:
    """Write Σ x to (n,) and Σ table[x] to (n, 2); False where an x is not a whole number below the table's end.

    Sums of integers: an addition waits one cycle for the one before it, where floats would wait four.
    """
    T = len(table)
    for i in range(sums.size):
        total: Any = 0
        first: Any = 0
        second: Any = 0
        outside: Any = False
        for p in range(indptr[i], indptr[i + 1]):
            x = np.int64(data[p])
            outside |= (x < 0) | (x >= T) | (x != data[p])
            at = np.uint64(x & (T - 1))
            total += x
            first += table[at, 0]
            second += table[at, 1]
        if outside:
            return False
        sums[i], found[i, 0], found[i, 1] = total, first, second
    return True


@kernel
def sparse_scores(data: Array, indices: Array, indptr: Array, table: Array, bias: Array, out: Array) -> None:
    """Write bias + Σ x table[word] of each row to (n, K)."""
    n = indptr.size - 1
    last = indptr[n] - 1
    for i in range(n):
        _fetch_entries(data, indices, indptr[i], indptr[i + 1])
        sum_scaled_rows_of(table, indices, data, bias, out, indptr[i], indptr[i + 1], last, i)
