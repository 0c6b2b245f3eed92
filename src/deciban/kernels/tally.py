"""Counts and scores of category numbers.

While counting, every column has one slot more than categories: slot 0 is for −1, slot v + 1 for category v. Counting
then needs no branch, and one unsigned comparison finds everything that has no slot.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .choice import Array
from .intrinsics import prefetch
from .jit import kernel
from .register_sums import sum_rows_of

AHEAD = 512  # values to ask memory for in advance
LINE = 8  # int64 values in a cache line


@kernel
def add_counts(X: Array, begin: int, codes: Array, weight: Array, starts: Array, sizes: Array, table: Array) -> int:
    """Add Σ w of rows from `begin` on to table[class, starts[d] + value + 1].

    Returns the row at which it stopped because a value is below −1 or not below sizes[d]; n if there was none.
    """
    n, D = X.shape
    for i in range(begin, n):
        for d in range(0, D, LINE):
            prefetch(X, i * D + d + AHEAD)
        w = weight[i] if weight.size else 1.0
        if w == 0:
            continue
        outside: Any = False
        for d in range(D):
            outside |= np.uint64(np.int64(X[i, d]) + 1) > np.uint64(sizes[d])
        if outside:
            return i
        slots = table[codes[i]]
        for d in range(D):
            slots[np.uint64(starts[d] + X[i, d] + 1)] += w
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
        self.table = np.zeros((K, int(self.sizes.sum()) + len(sizes)))

    @property
    def starts(self) -> Array:
        return np.cumsum(self.sizes + 1) - (self.sizes + 1)

    def add(self, X: Array, begin: int, codes: Array, weight: Array) -> int:
        """Count rows from `begin` on, as far as the sizes allow; where it stopped."""
        return add_counts(X, begin, codes, weight, self.starts, self.sizes, self.table)

    def grow(self, sizes: Array) -> None:
        """Make room for sizes at least as large as now, keeping what was counted."""
        old_starts, old_slots, old_table = self.starts, self.sizes + 1, self.table
        self.sizes = sizes.astype(np.int64)
        self.table = np.zeros((len(old_table), int(self.sizes.sum()) + len(sizes)))
        moved = np.repeat(self.starts - old_starts, old_slots) + np.arange(old_table.shape[1])
        self.table[:, moved] = old_table

    def counts(self) -> Array:
        """(K, Σ sizes), without the slots of missing values."""
        return np.delete(self.table, self.starts, axis=1)

    def trimmed(self) -> tuple[Array, Array]:
        """Sizes without trailing categories that nobody holds, and counts."""
        column = np.repeat(np.arange(len(self.sizes)), self.sizes + 1)
        slot = np.arange(len(column)) - self.starts[column]
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
