"""Tables of category numbers: counts per class, and scores.

Categories are integers: −1 is missing, otherwise column j holds 0 … sizes[j] − 1. All columns' categories lie side by
side on one axis of length Σ sizes; column j starts at sizes[:j].sum().
"""

from __future__ import annotations

import numpy as np

from deciban.kernels import reference
from deciban.kernels.choice import Array, class_codes, compiled, or_unweighted, pieces, readable, row_weights

# A category number at or above this is taken for a mistake: the table of counts would be as long.
MOST_CATEGORIES = 2**20

# Types that kernels read as they are; anything else is converted to int64.
NATIVE = ("int64", "int32", "int16", "int8", "uint8")


class CategoryError(LookupError):
    """X[row, column] = value is neither −1 nor a category of its column."""

    def __init__(self, row: int, column: int, value: int) -> None:
        super().__init__(f"row {row}, column {column} holds {value}")
        self.row, self.column, self.value = row, column, value


def _refuse_outside(X: Array, weight: Array | None, sizes: Array, first_row: int = 0) -> None:
    """Raise CategoryError at the first value that is neither −1 nor below its column's size."""
    place = reference.first_outside(X, weight, sizes)
    if place is not None:
        raise CategoryError(first_row + place[0], place[1], int(X[place]))


def _integers(X: Array) -> Array:
    """Category numbers of a type that can be compared with −1 and added to int64."""
    return np.asarray(X) if np.can_cast(X.dtype, np.int64) and X.dtype.kind != "b" else X.astype(np.int64)


def category_counts(X: Array, codes: Array, weight: Array | None, sizes: Array, K: int) -> Array:
    """Σ w per class and category: (K, Σ sizes). Raises CategoryError at a value outside −1 … sizes[j] − 1."""
    codes, weight, sizes = class_codes(codes, K), row_weights(weight), readable(sizes, np.int64)
    if not compiled(X.size):
        X = _integers(X)
        _refuse_outside(X, weight, sizes)
        return reference.category_counts(X, codes, weight, sizes, K)
    from deciban.kernels.categories_compiled import Tally

    tally = Tally(sizes, K)
    for rows, part in pieces(X, NATIVE, np.int64):
        stop = tally.add(part, 0, codes[rows], or_unweighted(weight, rows))
        if stop < len(part):
            at = slice(rows.start + stop, rows.stop)
            _refuse_outside(part[stop:], None if weight is None else weight[at], sizes, at.start)
    return tally.counts()


def category_counts_growing(X: Array, codes: Array, weight: Array | None, K: int) -> tuple[Array, Array]:
    """Sizes (one more than each column's largest value) and counts (K, Σ sizes), found in one pass.

    Raises CategoryError at a value below −1, or at 2**20 or more.
    """
    codes, weight = class_codes(codes, K), row_weights(weight)
    if not compiled(X.size):
        X = _integers(X)
        _refuse_outside(X, weight, np.full(X.shape[1], MOST_CATEGORIES))
        sizes = reference.category_sizes(X, weight)
        return sizes, reference.category_counts(X, codes, weight, sizes, K)
    from deciban.kernels.categories_compiled import CHECKED_ROWS, Tally

    # The first rows say how much room columns are likely to need.
    first = reference.category_sizes(X[:CHECKED_ROWS], None if weight is None else weight[:CHECKED_ROWS])
    tally = Tally(np.minimum(first, MOST_CATEGORIES), K)
    for rows, part in pieces(X, NATIVE, np.int64):
        part_codes, part_weight = codes[rows], None if weight is None else weight[rows]
        at = 0
        while (at := tally.add(part, at, part_codes, or_unweighted(part_weight))) < len(part):
            new = slice(at, at + CHECKED_ROWS)
            own_weight = None if part_weight is None else part_weight[new]
            _refuse_outside(part[new], own_weight, np.full(X.shape[1], MOST_CATEGORIES), rows.start + at)
            tally.settle(part[new], part_codes[new], own_weight)
            at = new.stop
    return tally.trimmed()


def category_scores(X: Array, weights: Array, starts: Array, sizes: Array, unseen: Array) -> Array:
    """Σ over columns j of weights[starts[j] + x[j], k]: (n, K).

    `weights` is (Σ sizes, K). A missing value (−1) adds 0; any other value outside [0, sizes[j]) adds unseen[j, k].
    """
    weights, unseen = readable(weights, np.float64), readable(unseen, np.float64)
    starts, sizes = readable(starts, np.int64), readable(sizes, np.int64)
    if not compiled(X.size * weights.shape[1]):
        return reference.category_scores(_integers(X), weights, starts, sizes, unseen)
    from deciban.kernels import categories_compiled as tally

    return tally.scores(pieces(X, NATIVE, np.int64), len(X), weights, starts, sizes, unseen)
