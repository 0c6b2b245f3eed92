"""Sparse rows, such as word counts of documents, and tables of category codes: sums per class, scores, table lookups.

Sparse rows are given by the three arrays of a CSR matrix. Columns may be unsorted and repeated, entries may be stored
zeros, and the first row need not start at 0. Indices of either width and float64, float32, int64 and int32 entries are
read in place. An index outside [0, V) raises IndexError.

A table of codes stands for sparse rows of ones. Codes are integers: −1 is missing, otherwise column j holds
0 … sizes[j] − 1. The categories of all columns lie side by side on one axis of length Σ sizes; those of column j start
at sizes[:j].sum().
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from deciban.kernels.choice import (
    Array,
    at_hand,
    compiled,
    numpy_work,
    quiet,
    readable,
    readable_csr,
    readable_floats,
    row_blocks,
    row_weights,
    weights_or_empty,
)
from deciban.kernels.dense import class_codes, drop_zero_weights
from deciban.kernels.parallel import added, each, entry_chunks, in_order, row_chunks

# -- sparse rows -------------------------------------------------------------------------------------------------------
IN_NUMPY = 4.0  # times the usual work that scipy's products and exact sums take, which are nearly as fast as kernels
PART = 2**17  # entries whose amounts are looked up at a time
ENTRY_WORK = 8  # elementary operations of an entry, and of each class where an entry is scored: one


def checked_csr(data: Array, indices: Array, indptr: Array, V: int) -> tuple[Array, Array, Array]:
    """Return the three arrays as kernels read them; IndexError unless row limits and column indices are in range."""
    data, indices, indptr = readable_csr(data, indices, indptr)
    stored = min(len(data), len(indices))
    if len(indptr) == 0 or indptr[0] < 0 or indptr[-1] > stored or (indptr[1:] < indptr[:-1]).any():
        raise IndexError(f"row limits must rise from ≥ 0 to ≤ {stored}")
    used = indices[indptr[0] : indptr[-1]]
    # As unsigned integers, negative indices are large: one comparison checks both bounds.
    if used.size and used.view(f"u{used.itemsize}").max() >= V:
        raise IndexError(f"column indices run from {used.min()} to {used.max()}; they must lie in [0, {V})")
    return data, indices, indptr


def without_stored_zeros(data: Array, indices: Array, indptr: Array) -> tuple[Array, Array, Array]:
    """Drop stored zeros, so that no product 0 · −inf arises."""
    if np.count_nonzero(data) == len(data):
        return data, indices, indptr
    kept = data != 0
    before = np.concatenate([[0], np.cumsum(kept)])
    return data[kept], indices[kept], before[indptr]


def sparse_class_sums(
    data: Array,
    indices: Array,
    indptr: Array,
    codes: Array,
    weight: Array | None,
    K: int,
    V: int,
    amounts: Array | None = None,
) -> Array:
    """Sum w x per class and column: (K, V), for large inputs the transpose of a C-ordered array.

    With `amounts`, entries are integers, and x is amounts[entry]. Sums of unweighted integers are exact, in any order
    of the rows, and so must be those of amounts.
    """
    data, indices, indptr = checked_csr(data, indices, indptr, V)
    codes, weight = class_codes(codes, K), row_weights(weight)
    entries = indptr[-1] - indptr[0]
    if not compiled(entries):
        return _sparse_class_sums(data if amounts is None else amounts[data], indices, indptr, codes, weight, K, V)
    exact = weight is None and not compiled(entries, IN_NUMPY)  # and then equal to the bit
    if amounts is not None and exact and not at_hand("deciban.kernels.sparse_compiled", "add_class_sums"):
        return np.asfortranarray(_sparse_class_sums(amounts[data], indices, indptr, codes, weight, K, V))
    from deciban.kernels.sparse_compiled import add_class_sums

    def total(rows: slice) -> tuple[Array]:
        sums = np.zeros((V, K))
        for some in [rows] if amounts is None else _parts(indptr, rows):
            limits, entries = indptr[some.start : some.stop + 1], slice(indptr[some.start], indptr[some.stop])
            if amounts is None:
                x, words = data, indices
            else:  # a part at a time: the amounts of all entries are not held
                x, words, limits = amounts[data[entries]], indices[entries], limits - limits[0]
            add_class_sums(x, words, limits, codes[some], weights_or_empty(weight, some), sums)
        return (sums,)

    return added(total, entry_chunks(indptr, ENTRY_WORK, V * K))[0].T


def _parts(indptr: Array, rows: slice) -> list[slice]:
    """Cut rows into parts of about `PART` entries."""
    cuts = np.searchsorted(indptr, np.arange(indptr[rows.start] + PART, indptr[rows.stop], PART)).tolist()
    return [slice(*ends) for ends in pairwise(sorted({rows.start, *cuts, rows.stop}))]


def sparse_class_moments(
    data: Array, indices: Array, indptr: Array, codes: Array, weight: Array | None, K: int, V: int
) -> tuple[Array, Array]:
    """Sum w x and w x² per class and column over the stored entries: (K, V) each, strided views for large inputs."""
    data, indices, indptr = checked_csr(data, indices, indptr, V)
    codes, weight = class_codes(codes, K), row_weights(weight)
    if not compiled(indptr[-1] - indptr[0]):
        return _sparse_class_moments(data, indices, indptr, codes, weight, K, V)
    from deciban.kernels.sparse_compiled import add_class_moments

    def total(rows: slice) -> tuple[Array]:
        sums = np.zeros((V, 2, K))
        limits = indptr[rows.start : rows.stop + 1]
        add_class_moments(data, indices, limits, codes[rows], weights_or_empty(weight, rows), sums)
        return (sums,)

    (sums,) = added(total, entry_chunks(indptr, 2 * ENTRY_WORK, 2 * V * K))
    return sums[:, 0].T, sums[:, 1].T


def sparse_scores(data: Array, indices: Array, indptr: Array, weights: Array, bias: Array) -> Array:
    """Return bias[k] + Σ x[j] weights[j, k] of each row, (n, K). `weights` is (V, K): K adjacent numbers of a column.

    A stored 0 adds 0 even where the weight is −inf; x > 0 there gives −inf.
    """
    V, K = weights.shape
    data, indices, indptr = checked_csr(data, indices, indptr, V)
    weights, bias = readable_floats(weights, bias)
    if not compiled((indptr[-1] - indptr[0]) * K, IN_NUMPY):
        return numpy_sparse_scores(data, indices, indptr, weights, bias)
    from deciban.kernels.sparse_compiled import sparse_scores as run

    if weights.min(initial=0.0) == -np.inf:
        data, indices, indptr = without_stored_zeros(data, indices, indptr)
    scores = np.empty((len(indptr) - 1, K))

    def score(rows: slice) -> None:
        run(data, indices, indptr[rows.start : rows.stop + 1], weights, bias, scores[rows])

    each(score, entry_chunks(indptr, ENTRY_WORK + K))
    return scores


def row_lookups(data: Array, indptr: Array, table: Array) -> tuple[Array, Array] | None:
    """Return Σ x and Σ table[x] of each row, (n,) and (n, 2); None unless all x are integers in [0, T).

    `table` is (T, 2) of int64, where T ≥ 2 is a power of two.
    """
    indptr, data = readable(indptr, np.int64), readable(data, np.float64)
    if not compiled(indptr[-1] - indptr[0]):
        return _row_lookups(data, indptr, table)
    from deciban.kernels.sparse_compiled import row_lookups as run

    sums, found = np.empty(len(indptr) - 1), np.empty((len(indptr) - 1, 2), np.int64)

    def look_up(rows: slice) -> bool:
        return bool(run(data, indptr[rows.start : rows.stop + 1], table, sums[rows], found[rows]))

    return (sums, found) if all(each(look_up, entry_chunks(indptr, ENTRY_WORK))) else None


def sparse_class_lookups(
    data: Array, indices: Array, indptr: Array, codes: Array, weight: Array | None, K: int, V: int, table: Array
) -> tuple[Array, Array, Array] | None:
    """Return `sparse_class_sums`, (K, V), and from the same pass Σ w (table[L] − Σ table[x]) per class, (K, 2).

    L is Σ x of a row. Where L ≥ T, table[0] is used instead, and the third result, (n,), holds L; it is 0 for all other
    rows. None in the same cases as `row_lookups`.
    """
    data, indices, indptr = checked_csr(data, indices, indptr, V)
    codes, weight, data = class_codes(codes, K), row_weights(weight), readable(data, np.float64)
    if not compiled(indptr[-1] - indptr[0]):
        return _sparse_class_lookups(data, indices, indptr, codes, weight, K, V, table)
    from deciban.kernels.sparse_compiled import add_class_lookups

    beyond = np.zeros(len(indptr) - 1)

    def total(rows: slice) -> tuple[Array, Array, Array]:
        sums, found = np.zeros((V, K)), np.zeros((K, 2))
        entries = data, indices, indptr[rows.start : rows.stop + 1], codes[rows], weights_or_empty(weight, rows)
        in_range = add_class_lookups(*entries, table, sums, found, beyond[rows])
        return sums, found, np.array([not in_range], dtype=int)

    sums, found, outside = added(total, entry_chunks(indptr, 2 * ENTRY_WORK, V * K))
    return None if outside[0] else (sums.T, found, beyond)


def sparse_left_over(
    data: Array, indices: Array, indptr: Array, counts: Array, codes: Array, weight: Array | None, rounding: float
) -> Array:
    """Return counts[k, j] − w x for each entry x of class k and column j, or 0 if at most `rounding` of the count.

    `counts` is (K, V), in either memory order.
    """
    K, V = counts.shape
    data, indices, indptr = checked_csr(data, indices, indptr, V)
    codes, weight = class_codes(codes, K), row_weights(weight)
    if not compiled((indptr[-1] - indptr[0]) * K):  # counted as for scores of the rows, which are needed too
        return _sparse_left_over(data, indices, indptr, counts, codes, weight, rounding)
    from deciban.kernels.sparse_compiled import left_over

    by_column = counts.flags.f_contiguous
    flat = readable(counts.T if by_column else counts, np.float64).ravel()
    strides = (1, K) if by_column else (V, 1)
    left = np.empty(indptr[-1] - indptr[0])

    def subtract(rows: slice) -> None:
        limits = indptr[rows.start : rows.stop + 1]
        out = left[limits[0] - indptr[0] : limits[-1] - indptr[0]]
        entries = data, indices, limits, flat, *strides, codes[rows], weights_or_empty(weight, rows)
        left_over(*entries, rounding, out)

    each(subtract, entry_chunks(indptr, ENTRY_WORK))
    return left


# -- numpy versions for sparse rows ------------------------------------------------------------------------------------
def _row_of_entry(indptr: Array) -> Array:
    return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))


@quiet
def _sparse_class_sums(
    data: Array, indices: Array, indptr: Array, codes: Array, weight: Array | None, K: int, V: int
) -> Array:
    cell = np.repeat(codes * V, np.diff(indptr)) + indices[indptr[0] : indptr[-1]]
    data = data[indptr[0] : indptr[-1]]
    if weight is not None:
        weight, (data, cell) = drop_zero_weights(weight[_row_of_entry(indptr)], data, cell)
        data = data * weight
    sums = np.bincount(cell, data, minlength=K * V).reshape(K, V)
    return sums.astype(np.float64, copy=False)  # without entries bincount returns integers


@quiet
def _sparse_class_moments(
    data: Array, indices: Array, indptr: Array, codes: Array, weight: Array | None, K: int, V: int
) -> tuple[Array, Array]:
    first = _sparse_class_sums(data, indices, indptr, codes, weight, K, V)
    return first, _sparse_class_sums(data * data, indices, indptr, codes, weight, K, V)


def numpy_sparse_scores(data: Array, indices: Array, indptr: Array, weights: Array, bias: Array) -> Array:
    """Compute `sparse_scores` of arrays that have been checked."""
    used = slice(indptr[0], indptr[-1])
    data, indices, indptr = without_stored_zeros(data[used], indices[used], indptr - indptr[0])  # 0 · −inf counts as 0
    limits = indptr.astype(indices.dtype, copy=False)  # scipy copies mixed widths
    return bias + sp.csr_array((data, indices, limits), (len(indptr) - 1, len(weights))) @ weights


@quiet
def _row_lookups(data: Array, indptr: Array, table: Array) -> tuple[Array, Array] | None:
    """Look up as if each x were 1, as most are, and correct the sums for the others."""
    x, stored = data[indptr[0] : indptr[-1]], np.diff(indptr)
    other = np.flatnonzero(x != 1)
    row, x = np.searchsorted(indptr - indptr[0], other, side="right") - 1, x[other]
    if not ((x >= 0) & (x < len(table)) & (x == np.floor(x))).all():
        return None
    more = (table[x.astype(np.intp)] - table[1]).T
    found = [np.bincount(row, each, len(stored)) for each in (x - 1, *more)]
    return stored + found[0], stored[:, None] * table[1] + np.stack(found[1:], axis=1).astype(np.int64)


@quiet
def _sparse_class_lookups(
    data: Array, indices: Array, indptr: Array, codes: Array, weight: Array | None, K: int, V: int, table: Array
) -> tuple[Array, Array, Array] | None:
    if weight is not None:
        data = data.copy()
        data[indptr[0] : indptr[-1]][weight[_row_of_entry(indptr)] == 0] = 0.0
    looked_up = _row_lookups(data, indptr, table)
    if looked_up is None:
        return None
    length, words = looked_up
    beyond = np.where(length >= len(table), length, 0.0)
    found = (table[np.where(beyond > 0, 0, length).astype(np.intp)] - words).astype(np.float64)
    weighted = found if weight is None else found * weight[:, None]
    sums = _sparse_class_sums(data, indices, indptr, codes, weight, K, V)
    return sums, np.stack([np.bincount(codes, each, K) for each in weighted.T], axis=1).astype(np.float64), beyond


def _sparse_left_over(
    data: Array, indices: Array, indptr: Array, counts: Array, codes: Array, weight: Array | None, rounding: float
) -> Array:
    row, used = _row_of_entry(indptr), slice(indptr[0], indptr[-1])
    count = counts[codes[row], indices[used]]
    left = count - data[used] * (1.0 if weight is None else weight[row])
    return np.where(left > rounding * count, left, 0.0)


# -- category codes ----------------------------------------------------------------------------------------------------
# Codes from this on are refused: the table of counts would be as long.
MOST_CATEGORIES = 2**20

# Types of codes that kernels read as they are; any other is converted to int64.
CODE_TYPES = ("int64", "int32", "int16", "int8", "uint8")


class CategoryError(LookupError):
    """X[row, column] = value is neither −1 nor a category of its column."""

    def __init__(self, row: int, column: int, value: int) -> None:
        super().__init__(f"row {row}, column {column} holds {value}")
        self.row, self.column, self.value = row, column, value


def category_counts(X: Array, codes: Array, weight: Array | None, sizes: Array, K: int) -> Array:
    """Sum w per class and category: (K, Σ sizes). Raises CategoryError at a value outside −1 … sizes[j] − 1."""
    codes = class_codes(codes, K)
    if X.size <= numpy_work.get():
        X = _integers(X)
        _check_codes(X, weight, sizes)
        return _category_counts(X, codes, weight, sizes, K)
    from deciban.kernels.sparse_compiled import CountTable

    weight, sizes = row_weights(weight), readable(sizes, np.int64)

    def count(chunk: slice) -> tuple[Array]:
        table = CountTable(sizes, K)
        for rows, block in row_blocks(X, chunk, CODE_TYPES, np.int64):
            stop = table.add(block, 0, codes[rows], weights_or_empty(weight, rows))
            if stop < len(block):
                bad = slice(rows.start + stop, rows.stop)
                _check_codes(block[stop:], None if weight is None else weight[bad], sizes, bad.start)
        return (table.counts(),)

    return added(count, _count_chunks(X, K, sizes))[0]


def _count_chunks(X: Array, K: int, sizes: Array) -> list[slice]:
    return row_chunks(len(X), 4 * X.shape[1], K * int(sizes.sum() + 2 * len(sizes)), multiple=2)


def category_counts_growing(X: Array, codes: Array, weight: Array | None, K: int) -> tuple[Array, Array]:
    """Return sizes (the largest code of each column plus one) and counts (K, Σ sizes), found in one pass.

    Raises CategoryError at a code below −1, or at 2**20 or more.
    """
    codes = class_codes(codes, K)
    limits = np.full(X.shape[1], MOST_CATEGORIES)
    if X.size <= numpy_work.get():
        X = _integers(X)
        _check_codes(X, weight, limits)
        sizes = _category_sizes(X, weight)
        return sizes, _category_counts(X, codes, weight, sizes, K)
    from deciban.kernels.sparse_compiled import CHECKED_ROWS, CountTable

    weight = row_weights(weight)
    # The first rows give sizes that are likely to suffice.
    first = _category_sizes(X[:CHECKED_ROWS], None if weight is None else weight[:CHECKED_ROWS])
    first = np.minimum(first, MOST_CATEGORIES)

    def count(chunk: slice) -> CountTable:
        table = CountTable(first, K)
        for rows, block in row_blocks(X, chunk, CODE_TYPES, np.int64):
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
    """Return bias[k] + Σ over columns j of weights[starts[j] + x[j], k], (n, K).

    `weights` is (Σ sizes, K). A missing value (−1) adds `missing`; any other value outside [0, sizes[j]) adds
    unseen[j, k].
    """
    K = weights.shape[1]
    bias = np.zeros(K) if bias is None else readable(bias, np.float64)
    # Below the weights one row for missing values, then the rows for unseen ones: each value adds one row.
    table = np.concatenate([weights, np.full((1, K), missing), unseen])
    if X.size * K <= numpy_work.get():
        return _category_scores(_integers(X), table, starts, sizes, len(weights)) + bias
    from deciban.kernels.sparse_compiled import category_scores as run

    starts, sizes = readable(starts, np.int64), readable(sizes, np.int64)
    scores = np.empty((len(X), K))

    def score(chunk: slice) -> None:
        for rows, block in row_blocks(X, chunk, CODE_TYPES, np.int64):
            run(block, table, starts, sizes, len(weights), bias, scores[rows])

    each(score, row_chunks(len(X), (8 + 5 * K) * X.shape[1]))
    return scores


# -- numpy versions for category codes ---------------------------------------------------------------------------------
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
    """Return the largest value of each column plus one."""
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
