"""Counts and scores of category numbers.

While counting, every column has two slots more than categories: slot 0 is for −1, slot v + 1 for category v, and the
last takes whatever has no slot of its own. Counting then needs no branch, and an empty last slot shows that nothing was
outside.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from deciban.kernels.choice import Array
from deciban.kernels.intrinsics import prefetch
from deciban.kernels.jit import kernel, part
from deciban.kernels.words_compiled import sum_rows_of

AHEAD = 512  # values to ask memory for in advance
LINE = 8  # int64 values in a cache line
CHECKED_ROWS = 1024  # counted before the last slots are looked at


@part
def _add_two(
    X: Array, i: int, j: int, codes: Array, v: float, w: float, starts: Array, last: Array, table: Array
) -> None:
    """Count two rows at once: while one waits for a slot just written, the other goes on."""
    x, y, slots_x, slots_y = X[i], X[j], table[codes[i]], table[codes[j]]
    for d in range(X.shape[1]):
        start, end = starts[d], last[d]
        # Seen as unsigned, what is below −1 is huge: one comparison for both ends.
        slots_x[start + min(np.uint64(np.int64(x[d]) + 1), end)] += v
        slots_y[start + min(np.uint64(np.int64(y[d]) + 1), end)] += w


@part
def _add_rows(
    X: Array, begin: int, end: int, codes: Array, weight: Array, starts: Array, last: Array, table: Array
) -> None:
    D = X.shape[1]
    for i in range(begin, end - 1, 2):
        for d in range(0, 2 * D, LINE):
            prefetch(X, i * D + d + AHEAD)
        v, w = (weight[i], weight[i + 1]) if weight.size else (1.0, 1.0)
        _add_two(X, i, i + 1, codes, v, w, starts, last, table)
    if (end - begin) % 2:
        v = weight[end - 1] if weight.size else 1.0
        _add_two(X, end - 1, end - 1, codes, v, 0.0, starts, last, table)


@kernel
def add_counts(X: Array, begin: int, codes: Array, weight: Array, starts: Array, last: Array, table: Array) -> int:
    """Add Σ w of rows from `begin` on to table[class, starts[d] + slot], where `last` is a column's last slot.

    Returns where the first CHECKED_ROWS start in which something had no slot, and ends after them; n if all had one.
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
def category_scores(X: Array, table: Array, starts: Array, sizes: Array, missing: int, zero: Array, out: Array) -> None:
    """Write Σ over d of table rows: starts[d] + x for a category, `missing` for −1, missing + 1 + d for any other."""
    n, D = X.shape
    positions = np.empty(D, np.int64)
    for i in range(n):
        for d in range(0, D, LINE):
            prefetch(X, i * D + d + AHEAD)
        for d in range(D):
            x = np.int64(X[i, d])
            absent = missing if x == -1 else missing + 1 + d
            positions[d] = starts[d] + x if np.uint64(x) < np.uint64(sizes[d]) else absent
        sum_rows_of(table, positions, zero, out, i)


class Tally:
    """A table of counts whose columns gain slots as larger categories turn up."""

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
        """Count rows from `begin` on; stops after CHECKED_ROWS with values outside, and says where they begin."""
        starts, last = self.starts.astype(np.uint64), (self.sizes + 1).astype(np.uint64)
        return add_counts(X, begin, codes, weight, starts, last, self.table)

    def settle(self, X: Array, codes: Array, weight: Array | None) -> None:
        """Give what these rows hold beyond the sizes slots of its own, instead of the last ones."""
        row, column = np.nonzero(np.greater_equal(X, self.sizes))
        each = np.ones(len(row)) if weight is None else weight[row]
        row, column, each = row[each != 0], column[each != 0], each[each != 0]
        value, needed = X[row, column].astype(np.int64), self.sizes.copy()
        np.maximum.at(needed, column, value + 1)
        # Twice the room, so that a column of ever larger numbers is moved a few times only.
        self._grow(np.where(needed > self.sizes, np.maximum(needed, 2 * self.sizes), self.sizes))
        np.add.at(self.table, (codes[row], self.starts[column] + value + 1), each)

    def _grow(self, sizes: Array) -> None:
        """Make room for sizes at least as large as now, keeping what was counted; the last slots are empty again."""
        column, slot = self._places()
        kept = slot < self.sizes[column] + 1
        old = self.table[:, kept]
        self.sizes = sizes
        self.table = np.zeros((len(old), int(self.slots.sum())))
        self.table[:, self.starts[column[kept]] + slot[kept]] = old

    def _places(self) -> tuple[Array, Array]:
        """Column, and slot within it, of everything along the table."""
        column = np.repeat(np.arange(len(self.sizes)), self.slots)
        return column, np.arange(len(column)) - self.starts[column]

    def counts(self) -> Array:
        """(K, Σ sizes), without the slots of missing values and the last ones."""
        column, slot = self._places()
        return self.table[:, (slot > 0) & (slot <= self.sizes[column])]

    def trimmed(self) -> tuple[Array, Array]:
        """Sizes without trailing categories that nobody holds, and counts."""
        column, slot = self._places()
        held = self.table.any(axis=0)
        sizes = np.zeros(len(self.sizes), np.int64)
        np.maximum.at(sizes, column[held], slot[held])
        return sizes, self.table[:, (slot > 0) & (slot <= sizes[column])]


def scores(
    pieces: Iterable[tuple[slice, Array]], n: int, weights: Array, starts: Array, sizes: Array, unseen: Array
) -> Array:
    """Σ over columns of the category's weights as (n, K), from pieces of the table."""
    K = weights.shape[1]
    # Below the weights one row of zeros for what is missing, then the unseen rows: every value has a row to add.
    table = np.concatenate([weights, np.zeros((1, K)), unseen])
    out, zero = np.empty((n, K)), np.zeros(K)
    for rows, X in pieces:
        category_scores(X, table, starts, sizes, len(weights), zero, out[rows])
    return out
