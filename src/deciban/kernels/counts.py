"""Counts: sparse rows of words, and tables of categories.

Sparse rows come as the three arrays of a CSR matrix. Columns may be unsorted and repeated, entries may be stored zeros,
and the first row need not start at 0. Indices of either width are read where they lie; so are float64, float32, int64
and int32 entries. An index outside [0, V) raises IndexError.

Categories are integers: −1 is missing, otherwise column j holds 0 … sizes[j] − 1. All columns' categories lie side by
side on one axis of length Σ sizes; column j starts at sizes[:j].sum().
"""

from __future__ import annotations

import numpy as np

from . import reference
from .choice import Array, class_codes, readable, row_weights

# A category number at or above this is taken for a mistake: the table of counts would be as long.
MOST_CATEGORIES = 2**20


class CategoryError(LookupError):
    """X[row, column] = value is neither −1 nor a category of its column."""

    def __init__(self, row: int, column: int, value: int) -> None:
        super().__init__(f"row {row}, column {column} holds {value}")
        self.row, self.column, self.value = row, column, value


def _csr(data: Array, indices: Array, indptr: Array, V: int) -> tuple[Array, Array, Array]:
    """The three arrays, ready to be read, with row limits that lie within them."""
    indptr = readable(indptr, np.int64)
    indices = readable(indices, None if indices.dtype in (np.int32, np.int64) else np.int64)
    data = readable(data, None if data.dtype in (np.float64, np.float32, np.int64, np.int32) else np.float64)
    stored = min(len(data), len(indices))
    if len(indptr) == 0 or indptr[0] < 0 or indptr[-1] > stored or (indptr[1:] < indptr[:-1]).any():
        raise IndexError(f"row limits must rise from ≥ 0 to ≤ {stored}")
    return data, indices, indptr


def _outside(indices: Array, indptr: Array, V: int) -> None:
    """Refuse indices that are no word's."""
    used = indices[indptr[0] : indptr[-1]]
    if used.size and (used.min() < 0 or used.max() >= V):
        raise IndexError(f"column indices run from {used.min()} to {used.max()}; they must lie in [0, {V})")


def sparse_class_sums(
    data: Array, indices: Array, indptr: Array, codes: Array, weight: Array | None, K: int, V: int
) -> Array:
    """Σ w x per class and word: (K, V). Exact for unweighted integers, in any order of rows."""
    data, indices, indptr = _csr(data, indices, indptr, V)
    codes, weight = class_codes(codes, K), row_weights(weight)
    _outside(indices, indptr, V)
    return reference.sparse_class_sums(data, indices, indptr, codes, weight, K, V)


def sparse_class_moments(
    data: Array, indices: Array, indptr: Array, codes: Array, weight: Array | None, K: int, V: int
) -> tuple[Array, Array]:
    """Σ w x and Σ w x² per class and word over the stored entries: (K, V) each."""
    data, indices, indptr = _csr(data, indices, indptr, V)
    codes, weight = class_codes(codes, K), row_weights(weight)
    _outside(indices, indptr, V)
    return reference.sparse_class_moments(data, indices, indptr, codes, weight, K, V)


def sparse_scores(data: Array, indices: Array, indptr: Array, weights: Array, bias: Array) -> Array:
    """bias[k] + Σ x[j] weights[j, k] for each row: (n, K). `weights` is (V, K): a word's K numbers side by side.

    A stored 0 adds 0 even where the weight is −inf; x > 0 makes −inf of it.
    """
    data, indices, indptr = _csr(data, indices, indptr, len(weights))
    weights, bias = readable(weights, np.float64), readable(bias, np.float64)
    _outside(indices, indptr, len(weights))
    return reference.sparse_scores(data, indices, indptr, weights, bias)


def _integers(X: Array) -> Array:
    """Category numbers of a type that can be compared with −1 and added to int64."""
    X = np.asarray(X)
    return X if X.dtype.kind == "i" or (X.dtype.itemsize < 8 and X.dtype.kind == "u") else X.astype(np.int64)


def category_counts(X: Array, codes: Array, weight: Array | None, sizes: Array, K: int) -> Array:
    """Σ w per class and category: (K, Σ sizes). Raises CategoryError at a value outside −1 … sizes[j] − 1."""
    X, codes, weight = _integers(X), class_codes(codes, K), row_weights(weight)
    sizes = readable(sizes, np.int64)
    _refuse(X, reference.first_outside(X, weight, sizes))
    return reference.category_counts(X, codes, weight, sizes, K)


def category_counts_growing(X: Array, codes: Array, weight: Array | None, K: int) -> tuple[Array, Array]:
    """Sizes (one more than each column's largest value) and counts (K, Σ sizes), found in one pass.

    Raises CategoryError at a value below −1, or at 2**20 or more.
    """
    X, codes, weight = _integers(X), class_codes(codes, K), row_weights(weight)
    _refuse(X, reference.first_outside(X, weight, np.full(X.shape[1], MOST_CATEGORIES)))
    sizes = reference.category_sizes(X, weight)
    return sizes, reference.category_counts(X, codes, weight, sizes, K)


def category_scores(X: Array, weights: Array, starts: Array, sizes: Array, unseen: Array) -> Array:
    """Σ over columns j of weights[starts[j] + x[j], k]: (n, K).

    `weights` is (Σ sizes, K). A missing value (−1) adds 0; any other value outside [0, sizes[j]) adds unseen[j, k].
    """
    X = _integers(X)
    weights, unseen = readable(weights, np.float64), readable(unseen, np.float64)
    starts, sizes = readable(starts, np.int64), readable(sizes, np.int64)
    return reference.category_scores(X, weights, starts, sizes, unseen)


def _refuse(X: Array, place: tuple[int, int] | None) -> None:
    if place is not None:
        raise CategoryError(*place, int(X[place]))
