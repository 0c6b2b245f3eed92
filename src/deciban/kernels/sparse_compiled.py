"""Compiled versions of `sparse`. Tables hold the numbers of a column (a word, a category) for all classes side by side.

The columns of a row are scattered over a table, so that each access would wait for memory: they are prefetched. Indices
are checked by the caller. They are cast to unsigned, which omits numba's test for negative ones.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from deciban.kernels.choice import Array
from deciban.kernels.intrinsics import CACHE_LINE, prefetch, sum_rows
from deciban.kernels.jit import inline, kernel

# -- sparse rows -------------------------------------------------------------------------------------------------------
DISTANCE = 512  # entries of sparse rows, or codes, between prefetch and use
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
    """Return the number of entries of the longest row."""
    most = 0
    for i in range(indptr.size - 1):
        most = max(most, indptr[i + 1] - indptr[i])
    return most


@inline
def _look_up(several: Array, m: int, ones: int, table: Array) -> tuple[bool, int, int, int]:
    """Return whether any of m values is not an integer in [0, T); and, with some ones, Σ x and Σ table[x] by column.

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


# -- category codes ----------------------------------------------------------------------------------------------------
# While counting, every column has two slots more than categories: slot 0 counts −1, slot v + 1 category v, and the last
# slot all other values. So counting needs no branch, and an empty last slot shows that no value was out of range.
CHECKED_ROWS = 1024  # rows counted between two checks of the last slots


@inline
def _add_two(
    X: Array, i: int, j: int, codes: Array, v: float, w: float, starts: Array, last: Array, table: Array
) -> None:
    """Count two rows at once: while one waits for a slot that was just written, the other continues."""
    x, y, slots_x, slots_y = X[i], X[j], table[codes[i]], table[codes[j]]
    for d in range(X.shape[1]):
        start, end = starts[d], last[d]
        # As unsigned integers, values below −1 are large: one comparison checks both bounds.
        slots_x[start + min(np.uint64(np.int64(x[d]) + 1), end)] += v
        slots_y[start + min(np.uint64(np.int64(y[d]) + 1), end)] += w


@inline
def _add_rows(
    X: Array, begin: int, end: int, codes: Array, weight: Array, starts: Array, last: Array, table: Array
) -> None:
    D = X.shape[1]
    for i in range(begin, end - 1, 2):
        for d in range(0, 2 * D, CACHE_LINE):
            prefetch(X, i * D + d + DISTANCE)
        v, w = (weight[i], weight[i + 1]) if weight.size else (1.0, 1.0)
        _add_two(X, i, i + 1, codes, v, w, starts, last, table)
    if (end - begin) % 2:
        v = weight[end - 1] if weight.size else 1.0
        _add_two(X, end - 1, end - 1, codes, v, 0.0, starts, last, table)


@kernel
def add_counts(X: Array, begin: int, codes: Array, weight: Array, starts: Array, last: Array, table: Array) -> int:
    """Add Σ w of rows from `begin` on to table[class, starts[d] + slot]; last[d] is the last slot of column d.

    Stops after CHECKED_ROWS rows with a value out of range, and returns the first of these rows; otherwise returns n.
    """
    n, D = X.shape
    for at in range(begin, n, CHECKED_ROWS):
        _add_rows(X, at, min(at + CHECKED_ROWS, n), codes, weight, starts, last, table)
        for k in range(len(table)):
            for d in range(D):
                if table[k, starts[d] + last[d]] != 0:
                    return at
    return n


@kernel
def category_scores(X: Array, table: Array, starts: Array, sizes: Array, missing: int, bias: Array, out: Array) -> None:
    """Write bias + Σ over d of table rows: starts[d] + x of a category, `missing` of −1, missing + 1 + d of others."""
    n, D = X.shape
    positions = np.empty(D, np.int64)
    for i in range(n):
        for d in range(0, D, CACHE_LINE):
            prefetch(X, i * D + d + DISTANCE)
        for d in range(D):
            x = np.int64(X[i, d])
            absent = missing if x == -1 else missing + 1 + d
            positions[d] = starts[d] + x if np.uint64(x) < np.uint64(sizes[d]) else absent
        sum_rows(table, positions, None, bias, out, 0, D, 0, i)


class CountTable:
    """Table of counts whose columns get more slots when larger categories appear."""

    def __init__(self, sizes: Array, K: int) -> None:
        self.sizes = sizes.astype(np.int64)
        self.table = np.zeros((K, int(self.slots.sum())))

    @property
    def slots(self) -> Array:
        return self.sizes + 2

    @property
    def starts(self) -> Array:
        return np.cumsum(self.slots) - self.slots

    def add(self, X: Array, begin: int, codes: Array, weight: Array) -> int:
        """Count rows from `begin` on, as `add_counts`."""
        starts, last = self.starts.astype(np.uint64), (self.sizes + 1).astype(np.uint64)
        return add_counts(X, begin, codes, weight, starts, last, self.table)

    def add_categories(self, X: Array, codes: Array, weight: Array | None) -> None:
        """Move the values of these rows that are beyond the sizes from the last slots to new slots of their own."""
        row, column = np.nonzero(np.greater_equal(X, self.sizes))
        each = np.ones(len(row)) if weight is None else weight[row]
        row, column, each = row[each != 0], column[each != 0], each[each != 0]
        value, needed = X[row, column].astype(np.int64), self.sizes.copy()
        np.maximum.at(needed, column, value + 1)
        # At least doubled, so that a column of ever larger codes is copied a logarithmic number of times.
        self._grow(np.where(needed > self.sizes, np.maximum(needed, 2 * self.sizes), self.sizes))
        np.add.at(self.table, (codes[row], self.starts[column] + value + 1), each)

    def __iadd__(self, other: CountTable) -> Self:
        """Add the counts of another table."""
        sizes = np.maximum(self.sizes, other.sizes)
        for table in (self, other):
            if (table.sizes < sizes).any():
                table._grow(sizes)
        self.table += other.table
        return self

    def _grow(self, sizes: Array) -> None:
        """Enlarge columns to these sizes; counts are kept, and the last slots are emptied."""
        column, slot = self._places()
        kept = slot < self.sizes[column] + 1
        old = self.table[:, kept]
        self.sizes = sizes
        self.table = np.zeros((len(old), int(self.slots.sum())))
        self.table[:, self.starts[column[kept]] + slot[kept]] = old

    def _places(self) -> tuple[Array, Array]:
        """Return the column, and the slot within the column, of each position along the table."""
        column = np.repeat(np.arange(len(self.sizes)), self.slots)
        return column, np.arange(len(column)) - self.starts[column]

    def counts(self) -> Array:
        """Return the counts (K, Σ sizes), without the slots of missing values and the last ones."""
        column, slot = self._places()
        return self.table[:, (slot > 0) & (slot <= self.sizes[column])]

    def trimmed(self) -> tuple[Array, Array]:
        """Return sizes, without trailing categories that do not occur, and counts."""
        column, slot = self._places()
        held = self.table.any(axis=0)
        sizes = np.zeros(len(self.sizes), np.int64)
        np.maximum.at(sizes, column[held], slot[held])
        return sizes, self.table[:, (slot > 0) & (slot <= sizes[column])]
