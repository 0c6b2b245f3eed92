"""The numpy twins: what every kernel computes, written to be read.

They run on small inputs and are the truth that kernels are tested against. Arguments come checked from the dispatching
functions of the same names, which say what is computed; formulas here are the same without the speed.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from deciban.kernels.choice import Array

quiet = np.errstate(invalid="ignore", over="ignore", divide="ignore")  # NaN and inf are meant to propagate


def _present(weight: Array | None, *arrays: Array) -> tuple[Array | None, tuple[Array, ...]]:
    """Rows of weight 0 dropped: they are as if absent, even when they hold NaN."""
    if weight is None or weight.all():
        return weight, arrays
    keep = weight != 0
    return weight[keep], tuple(array[keep] for array in arrays)


def _by_class(rows: Array, codes: Array, K: int) -> Array:
    """Sums of rows per class, in their order; a class without rows has sum 0."""
    n = len(rows)
    return np.asarray(sp.csc_array((np.ones(n), codes, np.arange(n + 1)), shape=(K, n)) @ rows)


@quiet
def class_moments(X: Array, codes: Array, weight: Array | None, origin: Array, K: int) -> tuple[Array, Array]:
    """Σ w (x−o) and Σ w (x−o)² per class."""
    weight, (X, codes) = _present(weight, X, codes)
    Z = X - origin
    weighted = Z if weight is None else Z * weight[:, None]
    return _by_class(weighted, codes, K), _by_class(weighted * Z, codes, K)


@quiet
def class_moments_with_gaps(
    X: Array, codes: Array, weight: Array | None, origin: Array, K: int
) -> tuple[Array, Array, Array]:
    """Σ w, Σ w (x−o) and Σ w (x−o)² per class over the values that are not NaN."""
    weight, (X, codes) = _present(weight, X, codes)
    seen = ~np.isnan(X)
    counted = seen * (1.0 if weight is None else weight[:, None])
    Z = np.where(seen, X - origin, 0.0)
    return _by_class(counted, codes, K), _by_class(counted * Z, codes, K), _by_class(counted * Z * Z, codes, K)


@quiet
def class_scatter(X: Array, codes: Array, weight: Array | None, origin: Array, K: int) -> tuple[Array, Array]:
    """Σ w (x−o) and Σ w (x−o)(x−o)ᵀ per class."""
    weight, (X, codes) = _present(weight, X, codes)
    Z = X - origin
    first, second = np.zeros((K, Z.shape[1])), np.zeros((K, Z.shape[1], Z.shape[1]))
    for k in np.unique(codes):
        z = Z[codes == k]
        wz = z if weight is None else z * weight[codes == k, None]
        first[k], second[k] = wz.sum(axis=0), wz.T @ z
    return first, (second + second.transpose(0, 2, 1)) / 2


@quiet
def diagonal_scores(X: Array, mean: Array, half_precision: Array, log_norm: Array) -> Array:
    """Σ over d seen of log_norm − half_precision (x−mean)²."""
    scores = np.empty((len(X), len(mean)))
    seen = ~np.isnan(X)
    for k in range(len(mean)):
        terms = log_norm[k] - half_precision[k] * (X - mean[k]) ** 2
        scores[:, k] = np.where(seen, terms, 0.0).sum(axis=1)
    return scores


@quiet
def diagonal_left_out(
    X: Array, codes: Array, origin: Array, mean: Array, precision: Array, share: Array, least: float
) -> tuple[Array, Array, Array]:
    """Σ v/f, Σ log f and the smallest f of each row; f = 1 − share·v, at least `least`."""
    v = ((X - origin) - mean[codes]) ** 2 * precision[codes]
    f = np.maximum(1 - share[:, None] * v, least)
    return (v / f).sum(axis=1), np.log(f).sum(axis=1), f.min(axis=1, initial=1.0)


@quiet
def whitened_distances(X: Array, mean: Array, whitener: Array, origin: Array) -> Array:
    """‖(x − mean) whitener‖²; taken from the mean directly, the origin is not needed."""
    distances = np.empty((len(X), len(mean)))
    for k in range(len(mean)):
        z = (X - mean[k]) @ whitener[k if len(whitener) > 1 else 0]
        distances[:, k] = np.einsum("nd,nd->n", z, z)
    return distances


def _row_of_entry(indptr: Array) -> Array:
    return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))


@quiet
def sparse_class_sums(
    data: Array, indices: Array, indptr: Array, codes: Array, weight: Array | None, K: int, V: int
) -> Array:
    """Σ w x per class and word."""
    cell = np.repeat(codes * V, np.diff(indptr)) + indices[indptr[0] : indptr[-1]]
    data = data[indptr[0] : indptr[-1]]
    if weight is not None:
        weight, (data, cell) = _present(weight[_row_of_entry(indptr)], data, cell)
        data = data * weight
    sums = np.bincount(cell, data, minlength=K * V).reshape(K, V)
    return sums.astype(np.float64, copy=False)  # of no entries it gives integers


@quiet
def sparse_class_moments(
    data: Array, indices: Array, indptr: Array, codes: Array, weight: Array | None, K: int, V: int
) -> tuple[Array, Array]:
    """Σ w x and Σ w x² per class and word."""
    return (
        sparse_class_sums(data, indices, indptr, codes, weight, K, V),
        sparse_class_sums(data * data, indices, indptr, codes, weight, K, V),
    )


@quiet
def row_lookups(data: Array, indptr: Array, table: Array) -> tuple[Array, Array] | None:
    """Σ x and Σ table[x] of each row, if all x are whole and in [0, T): first as if each x were 1, which most are."""
    x, stored = data[indptr[0] : indptr[-1]], np.diff(indptr)
    other = np.flatnonzero(x != 1)
    row, x = np.searchsorted(indptr - indptr[0], other, side="right") - 1, x[other]
    if not ((x >= 0) & (x < len(table)) & (x == np.floor(x))).all():
        return None
    more = (table[x.astype(np.intp)] - table[1]).T
    found = [np.bincount(row, each, len(stored)) for each in (x - 1, *more)]
    return stored + found[0], stored[:, None] * table[1] + np.stack(found[1:], axis=1).astype(np.int64)


@quiet
def sparse_class_lookups(
    data: Array, indices: Array, indptr: Array, codes: Array, weight: Array | None, K: int, V: int, table: Array
) -> tuple[Array, Array, Array] | None:
    """Σ w x per class and word, Σ w (table[L] − Σ table[x]) per class, and each row's L = Σ x where it has no entry."""
    if weight is not None:
        data = data.copy()
        data[indptr[0] : indptr[-1]][weight[_row_of_entry(indptr)] == 0] = 0.0
    looked_up = row_lookups(data, indptr, table)
    if looked_up is None:
        return None
    length, words = looked_up
    beyond = np.where(length >= len(table), length, 0.0)
    found = (table[np.where(beyond > 0, 0, length).astype(np.intp)] - words).astype(np.float64)
    weighted = found if weight is None else found * weight[:, None]
    sums = sparse_class_sums(data, indices, indptr, codes, weight, K, V)
    return sums, np.stack([np.bincount(codes, each, K) for each in weighted.T], axis=1).astype(np.float64), beyond


def sparse_left_over(
    data: Array, indices: Array, indptr: Array, counts: Array, codes: Array, weight: Array | None, rounding: float
) -> Array:
    """What each entry leaves of its word's count in its row's class."""
    row, used = _row_of_entry(indptr), slice(indptr[0], indptr[-1])
    count = counts[codes[row], indices[used]]
    left = count - data[used] * (1.0 if weight is None else weight[row])
    return np.where(left > rounding * count, left, 0.0)


@quiet
def sparse_scores(data: Array, indices: Array, indptr: Array, weights: Array, bias: Array) -> Array:
    """The bias + Σ x weights over the stored entries of each row."""
    row = _row_of_entry(indptr)
    data, indices = data[indptr[0] : indptr[-1]], indices[indptr[0] : indptr[-1]]
    kept = data != 0  # 0 · −inf counts as 0
    terms = data[kept, None] * weights[indices[kept]]
    return bias + _by_class(terms, row[kept], len(indptr) - 1)


def category_counts(X: Array, codes: Array, weight: Array | None, sizes: Array, K: int) -> Array:
    """Σ w per class and category, all columns side by side."""
    weight, (X, codes) = _present(weight, X, codes)
    total = int(sizes.sum())
    seen = X >= 0
    cell = (codes[:, None] * total + np.cumsum(sizes) - sizes + X)[seen]
    each = None if weight is None else np.broadcast_to(weight[:, None], X.shape)[seen]
    return np.bincount(cell, each, minlength=K * total).astype(np.float64).reshape(K, total)


def first_outside(X: Array, weight: Array | None, sizes: Array) -> tuple[int, int] | None:
    """Row and column of the first value that is neither −1 nor below its column's size."""
    outside = (X < -1) | np.greater_equal(X, sizes)
    if weight is not None:
        outside &= (weight != 0)[:, None]
    if not outside.any():
        return None
    row, column = np.unravel_index(int(outside.argmax()), X.shape)
    return int(row), int(column)


def category_sizes(X: Array, weight: Array | None) -> Array:
    """One more than the largest value of each column."""
    _, (X,) = _present(weight, X)
    return X.astype(np.int64).max(axis=0, initial=-1) + 1


def category_scores(X: Array, weights: Array, starts: Array, sizes: Array, unseen: Array) -> Array:
    """Σ over columns of the weight of the category found there."""
    # Below the weights one row of zeros for what is missing, then the unseen rows: every value has a row to add.
    table = np.concatenate([weights, np.zeros((1, weights.shape[1])), unseen])
    absent = np.where(X == -1, len(weights), len(weights) + 1 + np.arange(X.shape[1]))
    return table[np.where((X >= 0) & np.less(X, sizes), starts + X, absent)].sum(axis=1)


@quiet
def log_sum_exp(scores: Array) -> Array:
    """The log Σ exp along each row."""
    top = scores.max(axis=1, initial=-np.inf)
    top = np.where(top == -np.inf, 0.0, top)  # a row of −inf: −inf − −inf would be NaN
    return top + np.log(np.exp(scores - top[:, None]).sum(axis=1))


@quiet
def log_softmax(scores: Array) -> Array:
    """Scores less their log Σ exp."""
    norm = log_sum_exp(scores)
    return scores - np.where(norm == -np.inf, 0.0, norm)[:, None]


@quiet
def softmax(scores: Array) -> Array:
    """exp(score) / Σ exp(scores)."""
    top = scores.max(axis=1, initial=-np.inf, keepdims=True)
    powers = np.exp(scores - np.where(top == -np.inf, 0.0, top))
    total = powers.sum(axis=1, keepdims=True)
    return powers / np.where(total == 0, 1.0, total)


def encode_offsets(offsets: Array, span: int) -> tuple[Array, Array]:
    """Which of 0 … span − 1 occur, and each entry's rank among them."""
    seen = np.zeros(span, bool)
    seen[offsets] = True
    rank = np.cumsum(seen, dtype=np.intp) - 1
    return np.flatnonzero(seen), rank[offsets]
