"""Compiled version of `variational`."""

from __future__ import annotations

import math

import numpy as np

from deciban.kernels.choice import Array
from deciban.kernels.jit import any_order_kernel, inline

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
