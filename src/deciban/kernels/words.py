"""Sparse rows, such as the words of documents: sums per class, and scores.

Rows come as the three arrays of a CSR matrix. Columns may be unsorted and repeated, entries may be stored zeros,
and the first row need not start at 0. Indices of either width are read where they lie; so are float64, float32, int64
and int32 entries. An index outside [0, V) raises IndexError.
"""

from __future__ import annotations

import numpy as np

from deciban.kernels import reference
from deciban.kernels.choice import Array, class_codes, compiled, or_unweighted, readable, row_weights


def _csr(data: Array, indices: Array, indptr: Array, V: int) -> tuple[Array, Array, Array]:
    """The three arrays, ready to be read: row limits lie within them, indices in [0, V)."""
    indptr = readable(indptr, np.int64)
    indices = readable(indices, None if indices.dtype in (np.int32, np.int64) else np.int64)
    data = readable(data, None if data.dtype in (np.float64, np.float32, np.int64, np.int32) else np.float64)
    stored = min(len(data), len(indices))
    if len(indptr) == 0 or indptr[0] < 0 or indptr[-1] > stored or (indptr[1:] < indptr[:-1]).any():
        raise IndexError(f"row limits must rise from ≥ 0 to ≤ {stored}")
    used = indices[indptr[0] : indptr[-1]]
    # Seen as unsigned, a negative number is huge: one pass checks both ends.
    if used.size and used.view(f"u{used.itemsize}").max() >= V:
        raise IndexError(f"column indices run from {used.min()} to {used.max()}; they must lie in [0, {V})")
    return data, indices, indptr


def sparse_class_sums(
    data: Array, indices: Array, indptr: Array, codes: Array, weight: Array | None, K: int, V: int
) -> Array:
    """Σ w x per class and word: (K, V), the transpose of a C-ordered array if it is large.

    Unweighted integers are summed exactly, in any order of rows.
    """
    data, indices, indptr = _csr(data, indices, indptr, V)
    codes, weight = class_codes(codes, K), row_weights(weight)
    if not compiled(indptr[-1] - indptr[0]):
        return reference.sparse_class_sums(data, indices, indptr, codes, weight, K, V)
    from deciban.kernels.words_compiled import add_class_sums

    sums = np.zeros((V, K))
    add_class_sums(data, indices, indptr, codes, or_unweighted(weight), sums)
    return sums.T


def sparse_class_moments(
    data: Array, indices: Array, indptr: Array, codes: Array, weight: Array | None, K: int, V: int
) -> tuple[Array, Array]:
    """Σ w x and Σ w x² per class and word over the stored entries: (K, V) each, strided views if they are large."""
    data, indices, indptr = _csr(data, indices, indptr, V)
    codes, weight = class_codes(codes, K), row_weights(weight)
    if not compiled(indptr[-1] - indptr[0]):
        return reference.sparse_class_moments(data, indices, indptr, codes, weight, K, V)
    from deciban.kernels.words_compiled import add_class_moments

    sums = np.zeros((V, 2, K))
    add_class_moments(data, indices, indptr, codes, or_unweighted(weight), sums)
    return sums[:, 0].T, sums[:, 1].T


def sparse_scores(data: Array, indices: Array, indptr: Array, weights: Array, bias: Array) -> Array:
    """The bias[k] + Σ x[j] weights[j, k] of each row: (n, K). `weights` is (V, K): a word's K numbers side by side.

    A stored 0 adds 0 even where the weight is −inf; x > 0 makes −inf of it.
    """
    weights, bias = readable(weights, np.float64), readable(bias, np.float64)
    V, K = weights.shape
    data, indices, indptr = _csr(data, indices, indptr, V)
    if not compiled((indptr[-1] - indptr[0]) * K):
        return reference.sparse_scores(data, indices, indptr, weights, bias)
    from deciban.kernels import words_compiled as sparse

    if weights.min(initial=0.0) == -np.inf:
        data, indices, indptr = _without_zeros(data, indices, indptr)
    scores = np.empty((len(indptr) - 1, K))
    sparse.sparse_scores(data, indices, indptr, weights, bias, scores)
    return scores


def row_lookups(data: Array, indptr: Array, table: Array) -> tuple[Array, Array] | None:
    """Σ x and Σ table[x] of each row: (n,) and (n, 2); None unless all x are whole and in [0, T).

    `table` is (T, 2) of int64, with T a power of two and at least 2.
    """
    indptr, data = readable(indptr, np.int64), readable(data, np.float64)
    if not compiled(indptr[-1] - indptr[0]):
        return reference.row_lookups(data, indptr, table)
    from deciban.kernels.words_compiled import row_lookups as kernel

    sums, found = np.empty(len(indptr) - 1), np.empty((len(indptr) - 1, 2), np.int64)
    return (sums, found) if kernel(data, indptr, table, sums, found) else None


def sparse_class_lookups(
    data: Array, indices: Array, indptr: Array, codes: Array, weight: Array | None, K: int, V: int, table: Array
) -> tuple[Array, Array, Array] | None:
    """`sparse_class_sums`, (K, V), and in the same pass Σ w (table[L] − Σ table[x]) per class, (K, 2).

    L is the Σ x of a row. Where it is beyond the table, table[0] stands in for it, and L is given in a third answer:
    (n,), 0 for all other rows. None as `row_lookups`.
    """
    data, indices, indptr = _csr(data, indices, indptr, V)
    codes, weight, data = class_codes(codes, K), row_weights(weight), readable(data, np.float64)
    if not compiled(indptr[-1] - indptr[0]):
        return reference.sparse_class_lookups(data, indices, indptr, codes, weight, K, V, table)
    from deciban.kernels.words_compiled import add_class_lookups

    sums, found, beyond = np.zeros((V, K)), np.zeros((K, 2)), np.zeros(len(indptr) - 1)
    whole = add_class_lookups(data, indices, indptr, codes, or_unweighted(weight), table, sums, found, beyond)
    return (sums.T, found, beyond) if whole else None


def sparse_left_over(
    data: Array, indices: Array, indptr: Array, counts: Array, codes: Array, weight: Array | None, rounding: float
) -> Array:
    """Of each entry x of class k and word j: counts[k, j] − w x, and 0 where that is at most `rounding` of the count.

    `counts` is (K, V), in either order.
    """
    K, V = counts.shape
    data, indices, indptr = _csr(data, indices, indptr, V)
    codes, weight = class_codes(codes, K), row_weights(weight)
    if not compiled((indptr[-1] - indptr[0]) * K):  # as much as scoring the rows, to which this is the next step
        return reference.sparse_left_over(data, indices, indptr, counts, codes, weight, rounding)
    from deciban.kernels.words_compiled import left_over

    turned = counts.flags.f_contiguous
    flat, steps = readable(counts.T if turned else counts, np.float64).ravel(), (1, K) if turned else (V, 1)
    left = np.empty(indptr[-1] - indptr[0])
    left_over(data, indices, indptr, flat, *steps, codes, or_unweighted(weight), rounding, left)
    return left


def _without_zeros(data: Array, indices: Array, indptr: Array) -> tuple[Array, Array, Array]:
    """The same rows without stored zeros, so that 0 · −inf does not arise."""
    if np.count_nonzero(data) == len(data):
        return data, indices, indptr
    kept = data != 0
    before = np.concatenate([[0], np.cumsum(kept)])
    return data[kept], indices[kept], before[indptr]
