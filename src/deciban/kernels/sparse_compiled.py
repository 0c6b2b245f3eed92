"""Compiled versions of `sparse`. Tables hold the numbers of a column (a word) for all classes side by side.

The columns of a row are scattered over a table, so that each access would wait for memory: they are prefetched. Indices
are checked by the caller. They are cast to unsigned, which omits numba's test for negative ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from deciban.kernels.choice import Array
from deciban.kernels.intrinsics import CACHE_LINE, prefetch, sum_rows
from deciban.kernels.jit import inline, kernel

DISTANCE = 512  # entries of the sparse rows between prefetch and use
IN_CACHE = 2**18  # numbers of a table that fits in the second-level cache and needs no prefetch


@inline
def prefetch_entries(data: Array, indices: Array, begin: int, end: int) -> None:
    """Prefetch later entries of the sparse rows, as many as there are from begin to end."""
    for p in range(begin, end, CACHE_LINE):
        prefetch(data, p + DISTANCE)
        prefetch(indices, p + DISTANCE)


@inline
def _prefetch_sums(data: Array, indices: Array, begin: int, end: int, sums: Array, k: int) -> None:
    """Prefetch later entries, and the sums (V, K) of class k for the columns of the entries begin … end."""
    K = sums.shape[1]
    for p in range(begin, end):
        prefetch(sums, indices[p] * K + k)
        prefetch(data, p + DISTANCE)
        prefetch(indices, p + DISTANCE)


@kernel
def add_class_sums(data: Array, indices: Array, indptr: Array, codes: Array, weight: Array, sums: Array) -> None:
    """Add Σ w x to (V, K)."""
    n = indptr.size - 1
    for i in range(n):
        if sums.size > IN_CACHE and i + 1 < n:
            _prefetch_sums(data, indices, indptr[i + 1], indptr[i + 2], sums, codes[i + 1])
        else:
            prefetch_entries(data, indices, indptr[i], indptr[i + 1])
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
        prefetch_entries(data, indices, indptr[i], indptr[i + 1])
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


@inline
def _longest(indptr: Array) -> int:
    """Number of entries of the longest row."""
    most = 0
    for i in range(indptr.size - 1):
        most = max(most, indptr[i + 1] - indptr[i])
    return most


@inline
def _look_up(several: Array, m: int, ones: int, table: Array) -> tuple[bool, int, int, int]:
    """Of m values and some ones: whether any is not an integer in [0, T); Σ x; Σ table[x] by column.

    Sums are integers: an addition takes one cycle, that of floats four.
    """
    T = len(table)
    outside: Any = False
    total: Any = ones
    first: Any = ones * table[1, 0]
    second: Any = ones * table[1, 1]
    for q in range(m):
        x = np.int64(several[q])
        outside |= (x < 0) | (x >= T) | (x != several[q])
        at = np.uint64(x & (T - 1))
        total += x
        first += table[at, 0]
        second += table[at, 1]
    return outside, total, first, second


@kernel
def add_class_lookups(
    data: Array,
    indices: Array,
    indptr: Array,
    codes: Array,
    weight: Array,
    table: Array,
    sums: Array,
    found: Array,
    beyond: Array,
) -> bool:
    """Add Σ w x to (V, K) and Σ w (table[Σ x] − Σ table[x]) to (K, 2); False as `row_lookups`.

    Where Σ x is beyond the table, it is written to `beyond`, (n,), instead of looked up. Most entries are 1: the others
    are copied to a buffer, without a branch, and only they are looked up.
    """
    n, T = indptr.size - 1, len(table)
    several = np.empty(_longest(indptr) + 1)
    for i in range(n):
        begin, end = indptr[i], indptr[i + 1]
        if sums.size > IN_CACHE and i + 1 < n:
            _prefetch_sums(data, indices, end, indptr[i + 2], sums, codes[i + 1])
        else:
            prefetch_entries(data, indices, begin, end)
        w = weight[i] if weight.size else 1.0
        if w == 0:
            continue
        k, m = np.uint64(codes[i]), np.uint64(0)
        for p in range(begin, end):
            x = data[p]
            sums[np.uint64(indices[p]), k] += w * x
            several[m] = x
            m += np.uint64(x != 1)
        outside, total, first, second = _look_up(several, m, end - begin - np.int64(m), table)
        if outside:
            return False
        if total >= T:
            beyond[i] = total
        whole = total if total < T else 0
        found[k, 0] += w * (table[whole, 0] - first)
        found[k, 1] += w * (table[whole, 1] - second)
    return True


@kernel
def left_over(
    data: Array,
    indices: Array,
    indptr: Array,
    counts: Array,
    class_stride: int,
    column_stride: int,
    codes: Array,
    weight: Array,
    rounding: float,
    out: Array,
) -> None:
    """Write the count of each entry's class and column without the entry. `counts` is flat, with the strides given."""
    for i in range(indptr.size - 1):
        w, start = weight[i] if weight.size else 1.0, codes[i] * class_stride
        for p in range(indptr[i], indptr[i + 1]):
            count = counts[np.uint64(start + indices[p] * column_stride)]
            left = count - w * data[p]
            out[p - indptr[0]] = left if left > rounding * count else 0.0


@kernel
def row_lookups(data: Array, indptr: Array, table: Array, sums: Array, found: Array) -> bool:
    """Write Σ x to (n,) and Σ table[x] to (n, 2); False if an x is not an integer in [0, T)."""
    several = np.empty(_longest(indptr) + 1)
    for i in range(sums.size):
        begin, end, m = indptr[i], indptr[i + 1], np.uint64(0)
        for p in range(begin, end):
            several[m] = data[p]
            m += np.uint64(data[p] != 1)
        outside, total, first, second = _look_up(several, m, end - begin - np.int64(m), table)
        if outside:
            return False
        sums[i], found[i, 0], found[i, 1] = total, first, second
    return True


@kernel
def sparse_scores(data: Array, indices: Array, indptr: Array, table: Array, bias: Array, out: Array) -> None:
    """Write bias + Σ x table[column] of each row to (n, K)."""
    n = indptr.size - 1
    last = indptr[n] - 1
    for i in range(n):
        prefetch_entries(data, indices, indptr[i], indptr[i + 1])
        sum_rows(table, indices, data, bias, out, indptr[i], indptr[i + 1], last, i)
