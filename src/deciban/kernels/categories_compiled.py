"""Compiled versions of `categories`.

While counting, every column has two slots more than categories: slot 0 counts −1, slot v + 1 category v, and the last
slot all other values. So counting needs no branch, and an empty last slot shows that no value was out of range.
"""

from __future__ import annotations

from typing import Self

import numpy as np

from deciban.kernels.choice import Array
from deciban.kernels.intrinsics import CACHE_LINE, prefetch, sum_rows
from deciban.kernels.jit import inline, kernel

DISTANCE = 512  # values between prefetch and use
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
        """Column, and slot within the column, of each position along the table."""
        column = np.repeat(np.arange(len(self.sizes)), self.slots)
        return column, np.arange(len(column)) - self.starts[column]

    def counts(self) -> Array:
        """(K, Σ sizes), without the slots of missing values and the last ones."""
        column, slot = self._places()
        return self.table[:, (slot > 0) & (slot <= self.sizes[column])]

    def trimmed(self) -> tuple[Array, Array]:
        """Sizes without trailing categories that do not occur, and counts."""
        column, slot = self._places()
        held = self.table.any(axis=0)
        sizes = np.zeros(len(self.sizes), np.int64)
        np.maximum.at(sizes, column[held], slot[held])
        return sizes, self.table[:, (slot > 0) & (slot <= sizes[column])]
