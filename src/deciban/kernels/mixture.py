"""E-steps of mixtures, and of latent Dirichlet allocation.

**Mixtures** whose log density is linear in features φ of a row: scores s, responsibilities r and sums.

    s[k] = bias[k] + weights[k] · φ(x − o)        r ∝ exp(s)        Σ w r,  Σ w r φ,  Σ w log Σ exp(s)

φ holds the row and its squares (diagonal Gaussians) or all products of its values (full ones). Blocks of rows stay in
the cache, and no array is as long as the table. BLAS uses one thread, so that results are the same to the bit.

**Latent Dirichlet allocation** by variational Bayes: topic shares of documents, and expected word counts.

    γ_dk = α + e_dk Σ_w c_dw B_wk / (e_d · B_w + ε)        e_d = exp(ψ(γ_d) − ψ(Σ_k γ_dk))

with B = exp E[log p(w|k)], repeated for each document until γ changes little. The expected counts of word w and topic k
are B_wk Σ_d e_dk c_dw / (e_d · B_w + ε).

Reference: Hoffman, Blei & Bach, Online learning for latent Dirichlet allocation, 2010.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from deciban.kernels.choice import (
    Array,
    compiled,
    one_thread,
    quiet,
    readable,
    row_blocks,
    row_weights,
    weights_or_empty,
)
from deciban.kernels.dense import NATIVE
from deciban.kernels.parallel import added, entry_chunks, row_chunks
from deciban.kernels.rows import EXP_UNITS, numpy_log_sum_exp, numpy_softmax
from deciban.kernels.sparse import checked_csr, numpy_sparse_scores, without_stored_zeros

# Features of a block, and its rows: threads take the lock of the interpreter a few times in each block, so that larger
# blocks than the second-level cache are faster with two threads, and as fast with one.
BLOCK_BYTES = 2**20
LEAST_ROWS, MOST_ROWS = 64, 4096
ITERATIONS = 20  # of a document of latent Dirichlet allocation, for the choice of chunks


class Pass(NamedTuple):
    """Sums of an E-step."""

    counts: Array  # (K,) Σ w r
    sums: Array  # (K, F) Σ w r φ
    total: float  # Σ w log Σ exp(s); −inf or NaN if a row has no density


def feature_count(D: int, products: bool) -> int:
    """Number of features in φ: D values, then D squares, or D(D+1)/2 products u ≤ v.

    >>> feature_count(3, False), feature_count(3, True)
    (6, 9)
    """
    return D + (D * (D + 1) // 2 if products else D)


def features(Z: Array, products: bool) -> Array:
    """φ of centred rows: (n, F).

    >>> features(np.array([[2.0, 3.0]]), True)
    array([[2., 3., 4., 6., 9.]])
    """
    if not products:
        return np.concatenate([Z, Z * Z], axis=1)
    u, v = np.triu_indices(Z.shape[1])
    return np.concatenate([Z, Z[:, u] * Z[:, v]], axis=1)


def mixture_pass(X: Array, weight: Array | None, origin: Array, weights: Array, bias: Array, products: bool) -> Pass:
    """E-step over a dense table. `weights` is (K, F), or (K, D) if components differ in linear terms only."""
    weight, origin = row_weights(weight), readable(origin, np.float64)
    weights, bias = readable(weights, np.float64), readable(bias, np.float64)
    n, D = X.shape
    F = feature_count(D, products)
    if not compiled(n * F * len(bias)):
        return _mixture_pass(features(np.asarray(X, dtype=float) - origin, products), weight, weights, bias)
    from deciban.kernels.mixture_compiled import fill_products, fill_squares, responsibilities

    fill = fill_products if products else fill_squares
    # Rows of φ take an odd number of cache lines: with a power of two, they would share the same places in the cache.
    most = min(MOST_ROWS, max(LEAST_ROWS, n))
    size = (int(np.clip(BLOCK_BYTES // (8 * F), LEAST_ROWS, most)) // 8 - 1 | 1) * 8
    K, scored = len(bias), weights.shape[1]

    def expect(chunk: slice) -> tuple[Array, Array, Array]:
        phi, shares, block_sums = np.zeros((F, size)), np.empty((K, size)), np.empty((K, F))
        top, norm, counts, sums, total = np.empty(size), np.empty(size), np.zeros(K), np.zeros((K, F)), np.zeros(1)
        for rows, block in row_blocks(X, chunk, NATIVE, np.float64):
            block_weight = weights_or_empty(weight, rows)
            for start in range(0, len(block), size):
                fill(block, start, origin, phi)
                np.matmul(weights, phi[:scored], out=shares)
                total += responsibilities(shares, bias, block_weight, start, len(block), top, norm, counts)
                np.matmul(shares, phi.T, out=block_sums)
                sums += block_sums
        return counts, sums, total

    with one_thread(0):
        counts, sums, total = added(expect, row_chunks(n, K * (F + EXP_UNITS), K * F, multiple=size))
    return Pass(counts, sums, float(total[0]))


def sparse_mixture_pass(
    data: Array, indices: Array, indptr: Array, weight: Array | None, table: Array, bias: Array, extra: Array
) -> tuple[Array, Array, Array, float]:
    """E-step over CSR rows whose scores are bias + Σ x table[column]; `table` is (V, K), `extra` (n, E).

    Returns Σ w r (K,), Σ w r x (V, K), Σ w r extra (K, E) and Σ w log Σ exp(s).
    """
    table, bias, extra = readable(table, np.float64), readable(bias, np.float64), readable(extra, np.float64)
    V, K = table.shape
    data, indices, indptr = checked_csr(data, indices, indptr, V)
    weight = row_weights(weight)
    if table.min(initial=0.0) == -np.inf:
        data, indices, indptr = without_stored_zeros(data, indices, indptr)
    if not compiled((indptr[-1] - indptr[0]) * K):
        return _sparse_mixture_pass(data, indices, indptr, weight, table, bias, extra)
    from deciban.kernels.mixture_compiled import sparse_pass

    def expect(rows: slice) -> tuple[Array, Array, Array, Array]:
        counts, sums, extra_sums = np.zeros(K), np.zeros((V, K)), np.zeros((K, extra.shape[1]))
        entries = data, indices, indptr[rows.start : rows.stop + 1], weights_or_empty(weight, rows)
        total = sparse_pass(*entries, table, bias, extra[rows], np.empty((1, K)), counts, sums, extra_sums)
        return counts, sums, extra_sums, np.array([total])

    counts, sums, extra_sums, total = added(expect, entry_chunks(indptr, 8 + 4 * K, V * K))
    return counts, sums, extra_sums, float(total[0])


# -- numpy versions ----------------------------------------------------------------------------------------------------
@quiet
def _mixture_pass(phi: Array, weight: Array | None, weights: Array, bias: Array) -> Pass:
    scores = phi[:, : weights.shape[1]] @ weights.T + bias
    w = np.ones(len(phi)) if weight is None else weight
    shares = numpy_softmax(scores) * w[:, None]
    return Pass(shares.sum(axis=0), shares.T @ phi, float(w @ numpy_log_sum_exp(scores)))


@quiet
def _sparse_mixture_pass(
    data: Array, indices: Array, indptr: Array, weight: Array | None, table: Array, bias: Array, extra: Array
) -> tuple[Array, Array, Array, float]:
    X = sp.csr_array((data, indices, indptr), (len(indptr) - 1, len(table)))
    scores = numpy_sparse_scores(data, indices, indptr, table, bias)
    w = np.ones(len(scores)) if weight is None else weight
    shares = numpy_softmax(scores) * w[:, None]
    return shares.sum(axis=0), np.asarray(X.T @ shares), shares.T @ extra, float(w @ numpy_log_sum_exp(scores))


# -- latent Dirichlet allocation ---------------------------------------------------------------------------------------
def variational_shares(
    data: Array,
    indices: Array,
    indptr: Array,
    words: Array,
    gamma: Array,
    prior: float,
    most: int,
    tolerance: float,
    eps: float,
    learn: bool,
) -> Array:
    """Update γ (n, K) in place for documents as CSR rows; return Σ_d e_dk c_dw / (e_d · B_w + ε), (V, K), or zeros.

    `words` is B, (V, K); `most` is the largest number of iterations, and `learn` whether sums are wanted.
    """
    from deciban.kernels.mixture_compiled import document_shares

    words = readable(words, np.float64)
    V, K = words.shape
    data, indices, indptr = checked_csr(data, indices, indptr, V)
    data = readable(data, np.float64)

    def expect(rows: slice) -> tuple[Array]:
        sums = np.zeros((V if learn else 0, K))
        limits = indptr[rows.start : rows.stop + 1]
        document_shares(data, indices, limits, words, gamma[rows], prior, most, tolerance, eps, sums)
        return (sums,)

    return added(expect, entry_chunks(indptr, ITERATIONS * 4 * K, V * K if learn else 0))[0]
