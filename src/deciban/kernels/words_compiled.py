"""Sums of table rows that stay in registers, for any number of columns.

Columns are taken in strips of 16, 8, 4, 3, 2 or 1. The last strip may overlap the one before: it then computes a few
sums a second time, to the same bits, instead of taking several narrow strips.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from deciban.kernels.choice import Array
from deciban.kernels.intrinsics import LINE, prefetch, sum_rows, sum_scaled_rows
from deciban.kernels.jit import kernel, part


@part
def sum_rows_of(table: Array, indices: Array, bias: Array, out: Array, row: int) -> None:
    """Set out[row] to bias + Σ table[indices]."""
    K = out.shape[1]
    c = 0
    while c < K:
        left = K - c
        if K >= 16 and left > 8:
            c = min(c, K - 16)
            sum_rows(16, table, indices, bias, out, 0, indices.size, row, c)
            c += 16
        elif K >= 8 and left > 4:
            c = min(c, K - 8)
            sum_rows(8, table, indices, bias, out, 0, indices.size, row, c)
            c += 8
        elif K >= 4 and left > 2:
            c = min(c, K - 4)
            sum_rows(4, table, indices, bias, out, 0, indices.size, row, c)
            c += 4
        elif left == 3:
            sum_rows(3, table, indices, bias, out, 0, indices.size, row, c)
            c += 3
        elif left == 2:
            sum_rows(2, table, indices, bias, out, 0, indices.size, row, c)
            c += 2
        else:
            sum_rows(1, table, indices, bias, out, 0, indices.size, row, c)
            c += 1


@part
def sum_scaled_rows_of(
    table: Array, indices: Array, data: Array, bias: Array, out: Array, begin: int, end: int, last: int, row: int
) -> None:
    """Set out[row] to bias + Σ data[p] table[indices[p]], p from begin to end; `last` is the last entry of all rows."""
    K = out.shape[1]
    c = 0
    while c < K:
        left = K - c
        if K >= 16 and left > 8:
            c = min(c, K - 16)
            sum_scaled_rows(16, table, indices, bias, out, data, begin, end, last, row, c)
            c += 16
        elif K >= 8 and left > 4:
            c = min(c, K - 8)
            sum_scaled_rows(8, table, indices, bias, out, data, begin, end, last, row, c)
            c += 8
        elif K >= 4 and left > 2:
            c = min(c, K - 4)
            sum_scaled_rows(4, table, indices, bias, out, data, begin, end, last, row, c)
            c += 4
        elif left == 3:
            sum_scaled_rows(3, table, indices, bias, out, data, begin, end, last, row, c)
            c += 3
        elif left == 2:
            sum_scaled_rows(2, table, indices, bias, out, data, begin, end, last, row, c)
            c += 2
        else:
            sum_scaled_rows(1, table, indices, bias, out, data, begin, end, last, row, c)
            c += 1


# -- sparse ----------
# Sparse rows: sums per class and scores. Tables hold a word's numbers for all classes side by side.
#
# A row's words are scattered over the table; each access would wait for memory, so rows are asked for in advance.
# Indices come checked. They are cast to unsigned, which spares the test for counting from the end.

STREAM_AHEAD = 512  # entries of the sparse rows themselves, asked for in advance
IN_CACHE = 2**18  # numbers in a table that stays in the second-level cache unasked


@part
def _fetch_entries(data: Array, indices: Array, begin: int, end: int) -> None:
    for p in range(begin, end, LINE):
        prefetch(data, p + STREAM_AHEAD)
        prefetch(indices, p + STREAM_AHEAD)


@part
def _fetch_places(data: Array, indices: Array, begin: int, end: int, sums: Array, k: int) -> None:
    """As `_fetch_entries`, and ask for the places of class k in (V, K) that a row's words stand for."""
    K = sums.shape[1]
    for p in range(begin, end):
        prefetch(sums, indices[p] * K + k)
        prefetch(data, p + STREAM_AHEAD)
        prefetch(indices, p + STREAM_AHEAD)


@kernel
def add_class_sums(data: Array, indices: Array, indptr: Array, codes: Array, weight: Array, sums: Array) -> None:
    """Add Σ w x to (V, K)."""
    n = indptr.size - 1
    for i in range(n):
        if sums.size > IN_CACHE and i + 1 < n:
            _fetch_places(data, indices, indptr[i + 1], indptr[i + 2], sums, codes[i + 1])
        else:
            _fetch_entries(data, indices, indptr[i], indptr[i + 1])
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


@part
def _longest(indptr: Array) -> int:
    """The most entries of a row."""
    most = 0
    for i in range(indptr.size - 1):
        most = max(most, indptr[i + 1] - indptr[i])
    return most


@part
def _look_up(several: Array, m: int, ones: int, table: Array) -> tuple[bool, int, int, int]:
    """Of m values and some ones: whether any is no whole number below the table's end, Σ x, Σ table[x] by column.

    Sums of integers: an addition waits one cycle for the one before it, where floats would wait four.
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

    Where Σ x is beyond the table, it is written to (n,) instead of looked up. Most entries are 1: the others are set
    aside, without a branch, and only they are looked up.
    """
    n, T = indptr.size - 1, len(table)
    several = np.empty(_longest(indptr) + 1)
    for i in range(n):
        begin, end = indptr[i], indptr[i + 1]
        if sums.size > IN_CACHE and i + 1 < n:
            _fetch_places(data, indices, end, indptr[i + 2], sums, codes[i + 1])
        else:
            _fetch_entries(data, indices, begin, end)
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
    by_class: int,
    by_word: int,
    codes: Array,
    weight: Array,
    rounding: float,
    out: Array,
) -> None:
    """Write what each entry leaves of its word's count in its class; from class to class is a step of `by_class`."""
    for i in range(indptr.size - 1):
        w, start = weight[i] if weight.size else 1.0, codes[i] * by_class
        for p in range(indptr[i], indptr[i + 1]):
            count = counts[np.uint64(start + indices[p] * by_word)]
            left = count - w * data[p]
            out[p - indptr[0]] = left if left > rounding * count else 0.0


@kernel
def row_lookups(data: Array, indptr: Array, table: Array, sums: Array, found: Array) -> bool:
    """Write Σ x to (n,) and Σ table[x] to (n, 2); False where an x is not a whole number below the table's end."""
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
    """Write bias + Σ x table[word] of each row to (n, K)."""
    n = indptr.size - 1
    last = indptr[n] - 1
    for i in range(n):
        _fetch_entries(data, indices, indptr[i], indptr[i + 1])
        sum_scaled_rows_of(table, indices, data, bias, out, indptr[i], indptr[i + 1], last, i)
