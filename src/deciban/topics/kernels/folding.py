"""New documents under fixed topics: loops over each document until it has settled."""

from __future__ import annotations

import math

import numpy as np

from deciban.kernels.choice import Array
from deciban.kernels.jit import any_order_kernel, kernel
from deciban.topics.kernels.compiled import AROUND, inside


@any_order_kernel
def fold_in(
    indptr: Array,
    indices: Array,
    data: Array,
    table: Array,
    prior: Array,
    most: int,
    tolerance: float,
    counts: Array,
    begin: int,
    end: int,
) -> None:
    """CVB0 with p(w|t) fixed: Σ c γ of each document to counts.

    γ_j ∝ (n − γ_j + α) p(w_j|t); all entries of a document at once, from γ ∝ α·p, until counts move by less than
    `tolerance` a token.
    """
    K, zero = table.shape[1], table.dtype.type(0)
    longest = 0
    for d in range(begin, end):
        longest = max(longest, indptr[d + 1] - indptr[d])
    held = inside(np.empty(longest * K + 2 * AROUND, table.dtype)).reshape(longest, K)
    old = np.empty(K, table.dtype)
    for d in range(begin, end):
        first, length = indptr[d], indptr[d + 1] - indptr[d]
        n, whole, moved = counts[d], 0.0, math.inf
        n[:] = 0
        held[:length] = 0
        for j in range(length):
            whole += data[first + j]
        for _ in range(most):
            old[:] = n
            n[:] = 0
            for j in range(length):
                p, g, c, left = table[indices[first + j]], held[j], data[first + j], zero
                for k in range(K):
                    rest = old[k] - g[k]
                    g[k] = ((rest if rest > zero else zero) + prior[k]) * p[k]
                    left += g[k]
                left = table.dtype.type(1) / left
                for k in range(K):
                    g[k] *= left
                    n[k] += c * g[k]
            moved = 0.0
            for k in range(K):
                moved += abs(n[k] - old[k])
            if moved <= tolerance * whole:
                break


@any_order_kernel
def entry_shares(
    indptr: Array,
    indices: Array,
    prior: Array,
    beta: float,
    of_document: Array,
    of_word: Array,
    of_all: Array,
    held: Array,
    begin: int,
    end: int,
) -> None:
    """One pass of exact CVB0 over `held`, the γ of every entry: all counts without the token's own γ."""
    V, K = of_word.shape
    zero = held.dtype.type(0)
    whole = held.dtype.type(V * beta)
    part = inside(np.empty(K + 2 * AROUND, held.dtype))
    for d in range(begin, end):
        nd = of_document[d]
        for j in range(indptr[d], indptr[d + 1]):
            nw, g, left = of_word[indices[j]], held[j], zero
            for k in range(K):
                document, word, rest = nd[k] - g[k], nw[k] - g[k], of_all[k] - g[k]
                document, word = max(document, zero) + prior[k], max(word, zero) + beta
                part[k] = document * word / (max(rest, zero) + whole)
                left += part[k]
            for k in range(K):
                g[k] = part[k] / left


@any_order_kernel
def sum_entries(starts: Array, entries: Array, data: Array, held: Array, sums: Array, begin: int, end: int) -> None:
    """Σ c γ over the entries of each word, or of each document, to sums."""
    for w in range(begin, end):
        a = sums[w]
        a[:] = 0
        for j in range(starts[w], starts[w + 1]):
            g, c = held[entries[j]], data[entries[j]]
            for k in range(held.shape[1]):
                a[k] += c * g[k]


@kernel
def prequential(
    indptr: Array, indices: Array, data: Array, table: Array, prior: Array, out: Array, begin: int, end: int
) -> None:
    """Σ log p(word | words before it) of each document to out: topics start at the prior, and learn word by word."""
    K = table.shape[1]
    t, part = np.empty(K), inside(np.empty(K + 2 * AROUND))
    for d in range(begin, end):
        size, total = 0.0, 0.0
        for k in range(K):
            t[k] = prior[k]
            size += prior[k]
        for j in range(indptr[d], indptr[d + 1]):
            p, rest = table[indices[j]], data[j]
            while rest > 0:
                c = min(rest, 1.0)
                whole = 0.0
                for k in range(K):
                    part[k] = t[k] * p[k]
                    whole += part[k]
                total += c * (math.log(whole) - math.log(size))
                for k in range(K):
                    t[k] += c * part[k] / whole
                size += c
                rest -= c
        out[d] = total
