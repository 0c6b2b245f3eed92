"""Rows asked for before they are used: words lie all over a table, so no processor could guess which comes next."""

from __future__ import annotations

import math

import numpy as np

from deciban.kernels.choice import Array
from deciban.kernels.intrinsics import prefetch
from deciban.kernels.jit import any_order_kernel, inline, kernel
from deciban.topics.kernels.strips import MOST, WIDTH, share_out

AHEAD = 4  # entries between asking for a row and using it
LINE = 64  # bytes that come together


@inline
def ask_row(table: Array, indices: Array, entry: int, end: int) -> None:
    """Have the row of a later entry, before `end`, brought into the cache."""
    K = table.shape[1]
    later = indices[min(entry + AHEAD, end - 1)] * K
    for k in range(0, K, LINE // table.itemsize):
        prefetch(table, later + k)


# -- buffers ----------
# Buffers of compiled loops, with room around them.
#
# A compiler makes two bodies of a loop over topics that sums and stores: a vectorised one, and one that goes number by
# number for arrays that may overlap. Which one runs it decides by how far apart the arrays lie, and small ones may lie
# so close that it doubts. The two add in different orders: the same input would then give other last bits from run to
# run. What such loops store to therefore lies away from everything else.

AROUND = 256  # numbers: more than a compiler looks ahead, whatever the width of its vectors


@inline
def inside(padded: Array) -> Array:
    """A buffer without the room around it."""
    return padded[AROUND : padded.size - AROUND]


# -- compiled ----------
# The loops over topics. Sums over K may be taken in any order: that is what makes them vectors.
#
# Self-exclusion. A token must not speak for itself: what topic k has of document and word counts without it. Its own
# part
# is not kept (that would be entries × K numbers) but computed again, g = t·p·near, where `near` is 1/Σ t·p of the last
# pass. What is left of the document is at least the least prior, `low`; of the word, at least `floor`.

TINY = 1e-30


@any_order_kernel
def excluding_documents(
    indptr: Array,
    indices: Array,
    data: Array,
    table: Array,
    inverse: Array,
    shares: Array,
    low: float,
    floor: float,
    near: Array,
    counts: Array,
    found: Array,
    scale: Array,
    begin: int,
    end: int,
) -> None:
    """Σ c γ of each document to counts; 1/Σ t·p to found; c over the sum that γ is divided by to scale."""
    K = table.shape[1]
    part = inside(np.empty(K + 2 * AROUND, table.dtype))
    one, tiny = table.dtype.type(1), table.dtype.type(TINY)
    for d in range(begin, end):
        t, n = shares[d], counts[d]
        n[:] = 0
        for j in range(indptr[d], indptr[d + 1]):
            ask_row(table, indices, j, indptr[end])
            p, q = table[indices[j]], near[j]
            whole, left = tiny, tiny
            for k in range(K):
                both = t[k] * p[k]
                own = both * q
                of_document, of_word = t[k] - own, p[k] - own * inverse[k]
                of_document = of_document if of_document > low else low
                of_word = of_word if of_word > floor else floor
                part[k] = of_document * of_word
                whole += both
                left += part[k]
            found[j], scale[j] = one / whole, data[j] / left
            c = scale[j]
            for k in range(K):
                n[k] += c * part[k]


@any_order_kernel
def excluding_words(
    starts: Array,
    documents: Array,
    entries: Array,
    shares: Array,
    near: Array,
    scale: Array,
    table: Array,
    inverse: Array,
    low: float,
    floor: float,
    sums: Array,
    begin: int,
    end: int,
) -> None:
    """Σ c γ of each word to sums, with the γ that the pass over documents had."""
    K = table.shape[1]
    for w in range(begin, end):
        a, p = sums[w], table[w]
        a[:] = 0
        for j in range(starts[w], starts[w + 1]):
            t, q, c = shares[documents[j]], near[entries[j]], scale[entries[j]]
            for k in range(K):
                own = t[k] * p[k] * q
                of_document, of_word = t[k] - own, p[k] - own * inverse[k]
                of_document = of_document if of_document > low else low
                of_word = of_word if of_word > floor else floor
                a[k] += c * (of_document * of_word)


@any_order_kernel
def plain_counts(
    indptr: Array,
    indices: Array,
    data: Array,
    table: Array,
    shares: Array,
    counts: Array,
    begin: int,
    end: int,
) -> None:
    """Σ c γ of each row to counts, γ = t·p/Σ t·p."""
    K = table.shape[1]
    tiny = table.dtype.type(TINY)
    strips = (K + WIDTH - 1) // WIDTH
    if K >= WIDTH and strips <= MOST:
        for d in range(begin, end):
            share_out(strips, table, indices, data, shares, counts, indptr[d], indptr[d + 1], d, tiny)
        return
    for d in range(begin, end):
        t, n = shares[d], counts[d]
        n[:] = 0
        for j in range(indptr[d], indptr[d + 1]):
            ask_row(table, indices, j, indptr[end])
            p, whole = table[indices[j]], tiny
            for k in range(K):
                whole += t[k] * p[k]
            c = data[j] / whole
            for k in range(K):
                n[k] += c * p[k]
        for k in range(K):
            n[k] *= t[k]


@any_order_kernel
def row_log_likelihoods(
    indptr: Array, indices: Array, data: Array, table: Array, shares: Array, out: Array, begin: int, end: int
) -> None:
    """Σ c log Σ t·p of each document to out, in float64."""
    for d in range(begin, end):
        t, total = shares[d], 0.0
        for j in range(indptr[d], indptr[d + 1]):
            p, whole = table[indices[j]], 0.0
            for k in range(table.shape[1]):
                whole += t[k] * p[k]
            total += data[j] * math.log(whole)
        out[d] = total


@any_order_kernel
def word_rows(
    words: Array, counts: Array, scale: float, beta: float, inverse: Array, table: Array, begin: int, end: int
) -> None:
    """(counts·scale + β)·inverse of some words to table."""
    for i in range(begin, end):
        n, p = counts[words[i]], table[i]
        for k in range(counts.shape[1]):
            p[k] = (n[k] * scale + beta) * inverse[k]


@any_order_kernel
def add_rows(words: Array, found: Array, factor: float, counts: Array, begin: int, end: int) -> None:
    """Add factor · found to the counts of some words."""
    for i in range(begin, end):
        n, a = counts[words[i]], found[i]
        for k in range(counts.shape[1]):
            n[k] += factor * a[k]


@kernel
def gibbs_sweep(
    limits: Array,
    words: Array,
    topics: Array,
    of_document: Array,
    of_word: Array,
    of_all: Array,
    alpha: Array,
    beta: float,
    draws: Array,
) -> None:
    """Draw the topic of each token anew, one after the other; counts follow."""
    K, V = of_word.shape[1], of_word.shape[0]
    sums = np.empty(K)
    for d in range(limits.size - 1):
        nd = of_document[d]
        for i in range(limits[d], limits[d + 1]):
            nw, k = of_word[words[i]], topics[i]
            nd[k] -= 1
            nw[k] -= 1
            of_all[k] -= 1
            total = 0.0
            for t in range(K):
                total += (nd[t] + alpha[t]) * (nw[t] + beta) / (of_all[t] + V * beta)
                sums[t] = total
            u, k = draws[i] * total, 0
            while k < K - 1 and sums[k] <= u:
                k += 1
            nd[k] += 1
            nw[k] += 1
            of_all[k] += 1
            topics[i] = k
