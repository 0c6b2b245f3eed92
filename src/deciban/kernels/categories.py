"""Tables of category codes: counts per class, and scores.

Codes are integers: −1 is missing, otherwise column j holds 0 … sizes[j] − 1. The categories of all columns lie side by
side on one axis of length Σ sizes; those of column j start at sizes[:j].sum().
"""

from __future__ import annotations

import numpy as np

from deciban.kernels.choice import (
    Array,
    numpy_work,
    readable,
    row_blocks,
    row_weights,
    weights_or_empty,
)
from deciban.kernels.parallel import added, each, in_order, row_chunks
from deciban.kernels.rows import class_codes, drop_zero_weights

# Codes from this on are refused: the table of counts would be as long.
MOST_CATEGORIES = 2**20

# Types that kernels read as they are; any other is converted to int64.
NATIVE = ("int64", "int32", "int16", "int8", "uint8")


class CategoryError(LookupError):
    """X[row, column] = value is neither −1 nor a category of its column."""

    def __init__(self, row: int, column: int, value: int) -> None:
        super().__init__(f"row {row}, column {column} holds {value}")
        self.row, self.column, self.value = row, column, value


def category_counts(X: Array, codes: Array, weight: Array | None, sizes: Array, K: int) -> Array:
    """Σ w per class and category: (K, Σ sizes). Raises CategoryError at a value outside −1 … sizes[j] − 1."""
    codes = class_codes(codes, K)
    if X.size <= numpy_work.get():
        X = _integers(X)
        _check_codes(X, weight, sizes)
        return _category_counts(X, codes, weight, sizes, K)
    from deciban.kernels.categories_compiled import CountTable

    weight, sizes = row_weights(weight), readable(sizes, np.int64)

    def count(chunk: slice) -> tuple[Array]:
        table = CountTable(sizes, K)
        for rows, block in row_blocks(X, chunk, NATIVE, np.int64):
            stop = table.add(block, 0, codes[rows], weights_or_empty(weight, rows))
            if stop < len(block):
                bad = slice(rows.start + stop, rows.stop)
                _check_codes(block[stop:], None if weight is None else weight[bad], sizes, bad.start)
        return (table.counts(),)

    return added(count, _count_chunks(X, K, sizes))[0]


def _count_chunks(X: Array, K: int, sizes: Array) -> list[slice]:
    return row_chunks(len(X), 4 * X.shape[1], K * int(sizes.sum() + 2 * len(sizes)), multiple=2)


def category_counts_growing(X: Array, codes: Array, weight: Array | None, K: int) -> tuple[Array, Array]:
    """Sizes (the largest code of each column plus one) and counts (K, Σ sizes), found in one pass.

    Raises CategoryError at a code below −1, or at 2**20 or more.
    """
    codes = class_codes(codes, K)
    limits = np.full(X.shape[1], MOST_CATEGORIES)
    if X.size <= numpy_work.get():
        X = _integers(X)
        _check_codes(X, weight, limits)
        sizes = _category_sizes(X, weight)
        return sizes, _category_counts(X, codes, weight, sizes, K)
    from deciban.kernels.categories_compiled import CHECKED_ROWS, CountTable

    weight = row_weights(weight)
    # The first rows give sizes that are likely to suffice.
    first = _category_sizes(X[:CHECKED_ROWS], None if weight is None else weight[:CHECKED_ROWS])
    first = np.minimum(first, MOST_CATEGORIES)

    def count(chunk: slice) -> CountTable:
        table = CountTable(first, K)
        for rows, block in row_blocks(X, chunk, NATIVE, np.int64):
            block_codes, block_weight = codes[rows], None if weight is None else weight[rows]
            at = 0
            while (at := table.add(block, at, block_codes, weights_or_empty(block_weight))) < len(block):
                new = slice(at, at + CHECKED_ROWS)
                new_weight = None if block_weight is None else block_weight[new]
                _check_codes(block[new], new_weight, limits, rows.start + at)
                table.add_categories(block[new], block_codes[new], new_weight)
                at = new.stop
        return table

    table = CountTable(first, K)
    for part in in_order(count, _count_chunks(X, K, first)):
        table += part
    return table.trimmed()


def category_scores(
    X: Array,
    weights: Array,
    starts: Array,
    sizes: Array,
    unseen: Array,
    bias: Array | None = None,
    missing: float = 0.0,
) -> Array:
    """bias[k] + Σ over columns j of weights[starts[j] + x[j], k]: (n, K).

    `weights` is (Σ sizes, K). A missing value (−1) adds `missing`; any other value outside [0, sizes[j]) adds
    unseen[j, k].
    """
    K = weights.shape[1]
    bias = np.zeros(K) if bias is None else readable(bias, np.float64)
    # Below the weights one row for missing values, then the rows for unseen ones: each value adds one row.
    table = np.concatenate([weights, np.full((1, K), missing), unseen])
    if X.size * K <= numpy_work.get():
        return _category_scores(_integers(X), table, starts, sizes, len(weights)) + bias
    from deciban.kernels.categories_compiled import category_scores as run

    starts, sizes = readable(starts, np.int64), readable(sizes, np.int64)
    scores = np.empty((len(X), K))

    def score(chunk: slice) -> None:
        for rows, block in row_blocks(X, chunk, NATIVE, np.int64):
            run(block, table, starts, sizes, len(weights), bias, scores[rows])

    each(score, row_chunks(len(X), (8 + 5 * K) * X.shape[1]))
    return scores


# -- numpy versions ----------------------------------------------------------------------------------------------------
def _integers(X: Array) -> Array:
    """Return codes in a type that can be compared with −1 and added to int64."""
    return np.asarray(X) if np.can_cast(X.dtype, np.int64) and X.dtype.kind != "b" else X.astype(np.int64)


def _check_codes(X: Array, weight: Array | None, sizes: Array, first_row: int = 0) -> None:
    """Raise CategoryError at the first value that is neither −1 nor below its column's size."""
    outside = (X < -1) | np.greater_equal(X, sizes)
    if weight is not None:
        outside &= (weight != 0)[:, None]
    if outside.any():
        row, column = map(int, np.unravel_index(int(outside.argmax()), X.shape))
        raise CategoryError(first_row + row, column, int(X[row, column]))


def _category_sizes(X: Array, weight: Array | None) -> Array:
    """Largest value of each column plus one."""
    _, (X,) = drop_zero_weights(weight, X)
    return X.astype(np.int64).max(axis=0, initial=-1) + 1


def _category_counts(X: Array, codes: Array, weight: Array | None, sizes: Array, K: int) -> Array:
    weight, (X, codes) = drop_zero_weights(weight, X, codes)
    total = int(sizes.sum())
    seen = X >= 0
    cell = (codes[:, None] * total + np.cumsum(sizes) - sizes + X)[seen]
    each = None if weight is None else np.broadcast_to(weight[:, None], X.shape)[seen]
    return np.bincount(cell, each, minlength=K * total).astype(np.float64).reshape(K, total)


def _category_scores(X: Array, table: Array, starts: Array, sizes: Array, missing: int) -> Array:
    absent = np.where(X == -1, missing, missing + 1 + np.arange(X.shape[1]))
    return table[np.where((X >= 0) & np.less(X, sizes), starts + X, absent)].sum(axis=1)
