"""One EM pass over a table for mixtures whose log density is linear in features of a row: scores, shares and sums.

    s[k] = bias[k] + weights[k] · φ(x − o)        r ∝ exp(s)        Σ w r,  Σ w r φ,  Σ w log Σ exp(s)

φ is the row itself and its squares (diagonal Gaussians) or all its products (full ones). Blocks of rows stay in the
cache, and no array has as many entries as the table has rows. BLAS keeps to one thread: the same bits always.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from deciban.kernels import reference
from deciban.kernels.choice import Array, compiled, one_thread, or_unweighted, pieces, readable, row_weights
from deciban.kernels.dense import NATIVE
from deciban.kernels.words import _csr, _without_zeros

BLOCK_BYTES = 2**19  # of features held at a time: half of a second-level cache
LEAST_ROWS, MOST_ROWS = 64, 1024


class Pass(NamedTuple):
    """What a pass gives."""

    counts: Array  # (K,) Σ w r
    sums: Array  # (K, F) Σ w r φ
    total: float  # Σ w log Σ exp(s); −inf or NaN where a row has no density


def feature_count(D: int, products: bool) -> int:
    """How many features φ has: D values, then D squares, or D(D+1)/2 products u ≤ v.

    >>> feature_count(3, False), feature_count(3, True)
    (6, 9)
    """
    return D + (D * (D + 1) // 2 if products else D)


def features(Z: Array, products: bool) -> Array:
    """(n, F) the features of centred rows.

    >>> features(np.array([[2.0, 3.0]]), True)
    array([[2., 3., 4., 6., 9.]])
    """
    if not products:
        return np.concatenate([Z, Z * Z], axis=1)
    u, v = np.triu_indices(Z.shape[1])
    return np.concatenate([Z, Z[:, u] * Z[:, v]], axis=1)


def mixture_pass(X: Array, weight: Array | None, origin: Array, weights: Array, bias: Array, products: bool) -> Pass:
    """One pass over a dense table; `weights` is (K, F), or (K, D) where the second-order features score alike."""
    weight, origin = row_weights(weight), readable(origin, np.float64)
    weights, bias = readable(weights, np.float64), readable(bias, np.float64)
    n, D = X.shape
    F = feature_count(D, products)
    if not compiled(n * F * len(bias)):
        return _twin(features(np.asarray(X, dtype=float) - origin, products), weight, weights, bias)
    from deciban.kernels import mixture_compiled as fast

    fill = fast.fill_products if products else fast.fill_squares
    # An odd number of cache lines: with a power of two, features of a row would fall on one another in the cache.
    block = (int(np.clip(BLOCK_BYTES // (8 * F), LEAST_ROWS, MOST_ROWS)) // 8 - 1 | 1) * 8
    K, scored = len(bias), weights.shape[1]
    phi, shares, part = np.zeros((F, block)), np.empty((K, block)), np.empty((K, F))
    top, norm, counts, sums, total = np.empty(block), np.empty(block), np.zeros(K), np.zeros((K, F)), 0.0
    with one_thread(0):
        for rows, piece in pieces(X, NATIVE, np.float64):
            its = or_unweighted(weight, rows)
            for start in range(0, len(piece), block):
                fill(piece, start, origin, phi)
                np.matmul(weights, phi[:scored], out=shares)
                total += fast.share(shares, bias, its, start, len(piece), top, norm, counts)
                np.matmul(shares, phi.T, out=part)
                sums += part
    return Pass(counts, sums, total)


def sparse_mixture_pass(
    data: Array, indices: Array, indptr: Array, weight: Array | None, table: Array, bias: Array, extra: Array
) -> tuple[Array, Array, Array, float]:
    """One pass over CSR rows whose scores are bias + Σ x table[word], where table is (V, K).

    Gives Σ w r (K,), Σ w r x (V, K), Σ w r extra (K, E) and Σ w log Σ exp(s). `extra` is (n, E).
    """
    table, bias, extra = readable(table, np.float64), readable(bias, np.float64), readable(extra, np.float64)
    V, K = table.shape
    data, indices, indptr = _csr(data, indices, indptr, V)
    weight = row_weights(weight)
    if table.min(initial=0.0) == -np.inf:
        data, indices, indptr = _without_zeros(data, indices, indptr)
    if not compiled((indptr[-1] - indptr[0]) * K):
        return _sparse_twin(data, indices, indptr, weight, table, bias, extra)
    from deciban.kernels import mixture_compiled as fast

    counts, sums, more = np.zeros(K), np.zeros((V, K)), np.zeros((K, extra.shape[1]))
    shares = np.empty((1, K))
    total = fast.sparse_pass(
        data, indices, indptr, or_unweighted(weight), table, bias, extra, shares, counts, sums, more
    )
    return counts, sums, more, total


# -- the same, written to be read -------------------------------------------------------------------------------------
@reference.quiet
def _twin(phi: Array, weight: Array | None, weights: Array, bias: Array) -> Pass:
    scores = phi[:, : weights.shape[1]] @ weights.T + bias
    w = np.ones(len(phi)) if weight is None else weight
    shares = reference.softmax(scores) * w[:, None]
    return Pass(shares.sum(axis=0), shares.T @ phi, float(w @ reference.log_sum_exp(scores)))


@reference.quiet
def _sparse_twin(
    data: Array, indices: Array, indptr: Array, weight: Array | None, table: Array, bias: Array, extra: Array
) -> tuple[Array, Array, Array, float]:
    from scipy.sparse import csr_array

    X = csr_array((data, indices, indptr), (len(indptr) - 1, len(table)))
    scores = reference.sparse_scores(data, indices, indptr, table, bias)
    w = np.ones(len(scores)) if weight is None else weight
    shares = reference.softmax(scores) * w[:, None]
    return shares.sum(axis=0), np.asarray(X.T @ shares), shares.T @ extra, float(w @ reference.log_sum_exp(scores))
