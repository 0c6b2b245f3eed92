"""Compiled versions of `mixture`.

Blocks of dense rows are transposed, so that every step is a vector operation over the rows. A last block that is not
full is padded with rows of zeros, whose responsibilities are 0.
"""

from __future__ import annotations

import math

import numpy as np

from deciban.kernels.choice import Array
from deciban.kernels.intrinsics import add_scaled_row, exp, sum_rows
from deciban.kernels.jit import any_order_kernel, inline, kernel
from deciban.kernels.sparse_compiled import prefetch_entries


@inline
def _fill_values(X: Array, start: int, origin: Array, phi: Array) -> None:
    n, D = X.shape
    block = phi.shape[1]
    rows = min(block, n - start)
    for i in range(rows):
        for d in range(D):
            phi[d, i] = X[start + i, d] - origin[d]
    if rows < block:
        phi[:D, rows:] = 0.0


@kernel
def fill_squares(X: Array, start: int, origin: Array, phi: Array) -> None:
    """Write x−o and its squares to (2D, block)."""
    _fill_values(X, start, origin, phi)
    D = X.shape[1]
    for d in range(D):
        for i in range(phi.shape[1]):
            phi[D + d, i] = phi[d, i] * phi[d, i]


@kernel
def fill_products(X: Array, start: int, origin: Array, phi: Array) -> None:
    """Write x−o and the products of its values, u ≤ v, to (F, block)."""
    _fill_values(X, start, origin, phi)
    D = X.shape[1]
    place = D
    for u in range(D):
        for v in range(u, D):
            for i in range(phi.shape[1]):
                phi[place, i] = phi[u, i] * phi[v, i]
            place += 1


@kernel
def responsibilities(
    scores: Array, bias: Array, weight: Array, start: int, n: int, top: Array, norm: Array, counts: Array
) -> float:
    """Replace scores (K, block) by w r, add these to counts, and return Σ w log Σ exp(s + bias)."""
    K, block = scores.shape
    rows = min(block, n - start)
    top[:] = -np.inf
    for k in range(K):
        for i in range(block):
            s = scores[k, i] + bias[k]
            scores[k, i] = s
            top[i] = s if s > top[i] else top[i]
    norm[:] = 0.0
    for k in range(K):
        for i in range(block):
            e = exp(scores[k, i] - top[i])
            scores[k, i] = e
            norm[i] += e
    total = 0.0
    for i in range(rows):
        w = weight[start + i] if weight.size else 1.0
        if w != 0:
            total += w * (top[i] + math.log(norm[i]))
        norm[i] = w / norm[i]
    norm[rows:] = 0.0
    for k in range(K):
        whole = 0.0
        for i in range(block):
            scores[k, i] *= norm[i]
            whole += scores[k, i]
        counts[k] += whole
    return total


@kernel
def sparse_pass(
    data: Array,
    indices: Array,
    indptr: Array,
    weight: Array,
    table: Array,
    bias: Array,
    extra: Array,
    shares: Array,
    counts: Array,
    sums: Array,
    extra_sums: Array,
) -> float:
    """Add Σ w r, Σ w r x and Σ w r extra to counts, sums and extra_sums; return Σ w log Σ exp(s).

    `shares` is a buffer for one row. Sums are added while the row is in the cache. Rows of both tables are prefetched a
    few entries in advance; prefetching those of a whole row at once was slower.
    """
    n, K = indptr.size - 1, bias.size
    last = indptr[n] - 1
    total = 0.0
    r = shares[0]
    for i in range(n):
        begin, end = indptr[i], indptr[i + 1]
        w = weight[i] if weight.size else 1.0
        if w == 0:
            continue
        prefetch_entries(data, indices, begin, end)
        sum_rows(table, indices, data, bias, shares, begin, end, last, 0)
        top = -np.inf
        for k in range(K):
            top = r[k] if r[k] > top else top
        whole = 0.0
        for k in range(K):
            r[k] = exp(r[k] - top)
        for k in range(K):
            whole += r[k]
        total += w * (top + math.log(whole))
        scale = w / whole
        for k in range(K):
            r[k] *= scale
            counts[k] += r[k]
            for e in range(extra_sums.shape[1]):
                extra_sums[k, e] += r[k] * extra[i, e]
        add_scaled_row(sums, indices, data, r, begin, end, last)
    return total


# -- latent Dirichlet allocation ---------------------------------------------------------------------------------------
EULER = 0.577215664901532860606512090082402431


@inline
def digamma(x: float) -> float:
    """ψ(x) of x > 0, by the recurrence up to 6 and the asymptotic series after it; error below 3e-9."""
    if x <= 1e-6:
        return -EULER - 1.0 / x
    result = 0.0
    while x < 6.0:
        result -= 1.0 / x
        x += 1.0
    r = 1.0 / x
    result += math.log(x) - 0.5 * r
    r *= r
    return result - r * (1.0 / 12.0 - r * (1.0 / 120.0 - r * (1.0 / 252.0)))


@inline
def _expectation(gamma: Array, d: int, shares: Array) -> None:
    """Write exp(ψ(γ) − ψ(Σ γ)) of document d."""
    K = gamma.shape[1]
    total = 0.0
    for k in range(K):
        total += gamma[d, k]
    base = digamma(total)
    for k in range(K):
        shares[k] = math.exp(digamma(gamma[d, k]) - base)


@any_order_kernel
def document_shares(
    data: Array,
    indices: Array,
    indptr: Array,
    words: Array,
    gamma: Array,
    prior: float,
    most: int,
    tolerance: float,
    eps: float,
    sums: Array,
) -> None:
    """Update γ of each document; add e_dk c_dw / (e_d · B_w + ε) to `sums` if it has rows."""
    n, K = gamma.shape
    shares, found = np.empty(K), np.empty(K)
    for d in range(n):
        _expectation(gamma, d, shares)
        for _ in range(most):
            found[:] = 0.0
            for j in range(indptr[d], indptr[d + 1]):
                word = indices[j]
                norm = 0.0
                for k in range(K):
                    norm += shares[k] * words[word, k]
                ratio = data[j] / (norm + eps)
                for k in range(K):
                    found[k] += ratio * words[word, k]
            change = 0.0
            for k in range(K):
                value = shares[k] * found[k] + prior
                change += abs(value - gamma[d, k])
                gamma[d, k] = value
            _expectation(gamma, d, shares)
            if change / K < tolerance:
                break
        if len(sums):
            for j in range(indptr[d], indptr[d + 1]):
                word = indices[j]
                norm = 0.0
                for k in range(K):
                    norm += shares[k] * words[word, k]
                ratio = data[j] / (norm + eps)
                for k in range(K):
                    sums[word, k] += ratio * shares[k]
