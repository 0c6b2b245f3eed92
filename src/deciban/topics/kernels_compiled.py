"""Compiled versions of the passes in `kernels`. Sums over topics may be reordered, which lets LLVM vectorise them.

With few topics, the numbers of a document stay in vector registers for all its words. A row of K numbers is loaded as
vectors of eight. The last vector ends where the row ends, and may overlap the one before, so that rows need no padding.
In sums the overlap counts once; it is stored twice, with the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from llvmlite import ir

from deciban.kernels.choice import Array
from deciban.kernels.intrinsics import INT32, INT64, broadcast, load_vector, prefetch, store_vector
from deciban.kernels.jit import any_order_inline, any_order_kernel, cgutils, inline, intrinsic, kernel, types
from deciban.topics.kernels import TINY, Columns, Rows, TokenTopics, WordTopics

if TYPE_CHECKING:
    from deciban.kernels.jit import BaseContext, Context, Signature


# -- documents with few topics, in vector registers --------------------------------------------------------------------
WIDTH = 8  # numbers in a vector
MOST_VECTORS = 8  # vectors of a row: as many again hold the sums, which fills the registers
ANY_ORDER = ("reassoc", "contract")


class _Row:
    """Loads, sums and stores of the vectors of one row."""

    def __init__(self, builder: ir.IRBuilder, number: ir.Type, vectors: int, K: ir.Value) -> None:
        self.builder, self.align = builder, 4 if isinstance(number, ir.FloatType) else 8
        self.vector = ir.VectorType(number, WIDTH)
        self.places = [INT64(at * WIDTH) for at in range(vectors - 1)] + [builder.sub(K, INT64(WIDTH))]

    def load(self, row: ir.Value) -> list[ir.Value]:
        addresses = [self.builder.gep(row, [place]) for place in self.places]
        return [load_vector(self.builder, address, self.vector, self.align) for address in addresses]

    def store(self, row: ir.Value, values: list[ir.Value]) -> None:
        for place, value in zip(self.places, values):
            store_vector(self.builder, value, self.builder.gep(row, [place]), self.align)

    def without_overlap(self, values: list[ir.Value]) -> list[ir.Value]:
        """Emit vectors whose last one is 0 where it overlaps the one before."""
        lanes = ir.Constant(ir.VectorType(INT64, WIDTH), list(range(WIDTH)))
        new = self.builder.sub(INT64((len(self.places) - 1) * WIDTH), self.places[-1])
        kept = self.builder.icmp_signed(">=", lanes, broadcast(self.builder, new, WIDTH))
        return [*values[:-1], self.builder.select(kept, values[-1], ir.Constant(self.vector, [0.0] * WIDTH))]

    def dot(self, one: list[ir.Value], other: list[ir.Value], start: ir.Value) -> ir.Value:
        """Emit start + Σ one·other."""
        builder, total = self.builder, None
        for a, b in zip(one, other):
            term = builder.fmul(a, b, flags=ANY_ORDER)
            total = term if total is None else builder.fadd(total, term, flags=ANY_ORDER)
        width = WIDTH
        while width > 1:  # the upper half is added to the lower half
            width //= 2
            low, high = (
                builder.shuffle_vector(total, total, ir.Constant(ir.VectorType(INT32, width), list(half)))
                for half in (range(width), range(width, 2 * width))
            )
            total = builder.fadd(low, high)
        return builder.fadd(start, builder.extract_element(total, INT32(0)))


@intrinsic
def plain_row(
    typing: Context,
    table: types.Array,
    indices: types.Array,
    data: types.Array,
    shares: types.Array,
    counts: types.Array,
    begin: types.Integer,
    end: types.Integer,
    row: types.Integer,
    tiny: types.Float,
) -> Any:
    """Set counts[row] to t Σ c p/(Σ t p) over the entries begin … end, for WIDTH ≤ K ≤ MOST_VECTORS · WIDTH."""

    def emit(context: BaseContext, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value]) -> ir.Value:
        made = [context.make_array(kind)(context, builder, arg) for kind, arg in zip(signature.args[:5], args[:5])]
        table, indices, data, shares, counts = (array.data for array in made)
        begin, end, row, tiny = args[5:]
        number = context.get_data_type(signature.args[0].dtype)
        K = cgutils.unpack_tuple(builder, made[0].shape)[1]
        start = builder.mul(row, K)
        for vectors in range(1, MOST_VECTORS + 1):  # one version of the loop for each number of vectors
            enough = builder.icmp_signed("<=", K, INT64(vectors * WIDTH))
            needed = builder.icmp_signed(">", K, INT64((vectors - 1) * WIDTH))
            with builder.if_then(builder.and_(enough, needed)):
                rows = _Row(builder, number, vectors, K)
                t = rows.load(builder.gep(shares, [start]))
                once = rows.without_overlap(t)
                zero = ir.Constant(rows.vector, [0.0] * WIDTH)
                sums = [cgutils.alloca_once_value(builder, zero) for _ in t]
                with cgutils.for_range(builder, builder.sub(end, begin)) as loop:
                    at = builder.add(begin, loop.index)
                    loaded = builder.load(builder.gep(indices, [at]))
                    word = context.cast(builder, loaded, signature.args[1].dtype, types.int64)
                    p = rows.load(builder.gep(table, [builder.mul(word, K)]))
                    c = builder.fdiv(builder.load(builder.gep(data, [at])), rows.dot(once, p, tiny))
                    c = broadcast(builder, c, WIDTH)
                    for total, value in zip(sums, p):
                        term = builder.fmul(c, value, flags=ANY_ORDER)
                        builder.store(builder.fadd(builder.load(total), term, flags=ANY_ORDER), total)
                found = [builder.fmul(builder.load(total), share) for total, share in zip(sums, t)]
                rows.store(builder.gep(counts, [start]), found)
        return context.get_dummy_value()

    positions = [types.int64] * 3
    return types.void(table, indices, data, shares, counts, *positions, table.dtype), emit


# -- prefetches and buffers --------------------------------------------------------------------------------------------
DISTANCE = 4  # entries between the prefetch of a table row and its use
CACHE_LINE = 64  # bytes

Triple = tuple[Array, Array, Array]

# LLVM compiles a loop that sums and stores in two versions: vectorised, and scalar for arrays that may overlap. The
# distance between the arrays decides at run time, and small arrays may lie so close that the scalar version runs. The
# versions add in different orders, so that the same input could give other last bits in another run. Therefore buffers
# that such loops store to have this many unused numbers on either side, more than the widest vectors hold.
PADDING = 256


@inline
def _unpadded(buffer: Array) -> Array:
    """Return a buffer without its padding."""
    return buffer[PADDING : buffer.size - PADDING]


@inline
def _prefetch_row(table: Array, indices: Array, entry: int, end: int) -> None:
    """Prefetch the table row of a later entry, before `end`."""
    K = table.shape[1]
    later = indices[min(entry + DISTANCE, end - 1)] * K
    for k in range(0, K, CACHE_LINE // table.itemsize):
        prefetch(table, later + k)


# -- passes that exclude the token itself ------------------------------------------------------------------------------
# The counts of document and word are taken without the token whose γ is computed. Its own share g is not stored (that
# would take entries × K numbers) but computed again: g = t·p·inverse_norms, with 1/Σ t·p of the last pass.
# What is left of the document is at least the smallest prior, `low`; what is left of the word at least `floor`.
@any_order_inline
def _excluded(t: float, p: float, own: float, inverse_total: float, low: float, floor: float) -> float:
    """Return the weight of a topic in the document times that of the word in it, both without the token itself."""
    of_document, of_word = t - own, p - own * inverse_total
    of_document = of_document if of_document > low else low
    return of_document * (of_word if of_word > floor else floor)


@any_order_kernel
def excluding_documents(
    rows: Rows, topics: WordTopics, shares: Array, inverse_norms: Array, found: Triple, begin: int, end: int
) -> None:
    """Write Σ c γ of each document, 1/Σ t·p of each entry, and c over the sum that γ is divided by to found."""
    indptr, indices, data = rows
    table, inverse_totals, low, floor = topics
    counts, norms, scale = found
    K = table.shape[1]
    part = _unpadded(np.empty(K + 2 * PADDING, table.dtype))
    one, tiny = table.dtype.type(1), table.dtype.type(TINY)
    for d in range(begin, end):
        t, n = shares[d], counts[d]
        n[:] = 0
        for j in range(indptr[d], indptr[d + 1]):
            _prefetch_row(table, indices, j, indptr[end])
            p, q = table[indices[j]], inverse_norms[j]
            whole, left = tiny, tiny
            for k in range(K):
                both = t[k] * p[k]
                part[k] = _excluded(t[k], p[k], both * q, inverse_totals[k], low, floor)
                whole += both
                left += part[k]
            norms[j], scale[j] = one / whole, data[j] / left
            c = scale[j]
            for k in range(K):
                n[k] += c * part[k]


@any_order_kernel
def excluding_words(
    columns: Columns,
    topics: WordTopics,
    shares: Array,
    inverse_norms: Array,
    scale: Array,
    sums: Array,
    begin: int,
    end: int,
) -> None:
    """Write Σ c γ of each word to sums, with the γ of the pass over documents."""
    starts, documents, entries = columns
    table, inverse_totals, low, floor = topics
    K = table.shape[1]
    for w in range(begin, end):
        a, p = sums[w], table[w]
        a[:] = 0
        for j in range(starts[w], starts[w + 1]):
            t, q, c = shares[documents[j]], inverse_norms[entries[j]], scale[entries[j]]
            for k in range(K):
                a[k] += c * _excluded(t[k], p[k], t[k] * p[k] * q, inverse_totals[k], low, floor)


@any_order_kernel
def exact_pass(rows: Rows, prior: Array, beta: float, counts: Triple, gamma: Array, begin: int, end: int) -> None:
    """Update γ of every entry by exact CVB0: all counts without the token's own γ."""
    indptr, indices, _ = rows
    of_document, of_word, totals = counts
    V, K = of_word.shape
    zero = gamma.dtype.type(0)
    whole = gamma.dtype.type(V * beta)
    part = _unpadded(np.empty(K + 2 * PADDING, gamma.dtype))
    for d in range(begin, end):
        nd = of_document[d]
        for j in range(indptr[d], indptr[d + 1]):
            nw, g, left = of_word[indices[j]], gamma[j], zero
            for k in range(K):
                document, word, rest = nd[k] - g[k], nw[k] - g[k], totals[k] - g[k]
                document, word = max(document, zero) + prior[k], max(word, zero) + beta
                part[k] = document * word / (max(rest, zero) + whole)
                left += part[k]
            for k in range(K):
                g[k] = part[k] / left


@any_order_kernel
def sum_entries(starts: Array, entries: Array, data: Array, gamma: Array, sums: Array, begin: int, end: int) -> None:
    """Write Σ c γ over the entries of each word, or of each document, to sums."""
    for w in range(begin, end):
        a = sums[w]
        a[:] = 0
        for j in range(starts[w], starts[w + 1]):
            g, c = gamma[entries[j]], data[entries[j]]
            for k in range(gamma.shape[1]):
                a[k] += c * g[k]


# -- passes that include the token itself ------------------------------------------------------------------------------
@any_order_kernel
def plain_counts(rows: Rows, table: Array, shares: Array, counts: Array, begin: int, end: int) -> None:
    """Write Σ c γ of each row to counts, γ = t·p/Σ t·p."""
    indptr, indices, data = rows
    K = table.shape[1]
    tiny = table.dtype.type(TINY)
    if WIDTH <= K <= MOST_VECTORS * WIDTH:
        for d in range(begin, end):
            plain_row(table, indices, data, shares, counts, indptr[d], indptr[d + 1], d, tiny)
        return
    for d in range(begin, end):
        t, n = shares[d], counts[d]
        n[:] = 0
        for j in range(indptr[d], indptr[d + 1]):
            _prefetch_row(table, indices, j, indptr[end])
            p, whole = table[indices[j]], tiny
            for k in range(K):
                whole += t[k] * p[k]
            c = data[j] / whole
            for k in range(K):
                n[k] += c * p[k]
        for k in range(K):
            n[k] *= t[k]


@any_order_kernel
def row_log_likelihoods(rows: Rows, table: Array, shares: Array, out: Array, begin: int, end: int) -> None:
    """Write Σ c log Σ t·p of each document to out, in float64."""
    indptr, indices, data = rows
    for d in range(begin, end):
        t, total = shares[d], 0.0
        for j in range(indptr[d], indptr[d + 1]):
            p, whole = table[indices[j]], 0.0
            for k in range(table.shape[1]):
                whole += t[k] * p[k]
            total += data[j] * math.log(whole)
        out[d] = total


# -- new documents, with fixed topics ----------------------------------------------------------------------------------
@any_order_kernel
def fold_in(
    rows: Rows, table: Array, prior: Array, most: int, tolerance: float, counts: Array, begin: int, end: int
) -> None:
    """Write Σ c γ of each document to counts: CVB0 with fixed p(w|t).

    γ_j ∝ (n − γ_j + α) p(w_j|t), for all entries of a document at once, starting from γ ∝ α·p, until counts change by
    less than `tolerance` per token.
    """
    indptr, indices, data = rows
    K, zero = table.shape[1], table.dtype.type(0)
    longest = 0
    for d in range(begin, end):
        longest = max(longest, indptr[d + 1] - indptr[d])
    gamma = _unpadded(np.empty(longest * K + 2 * PADDING, table.dtype)).reshape(longest, K)
    old = np.empty(K, table.dtype)
    for d in range(begin, end):
        first, length = indptr[d], indptr[d + 1] - indptr[d]
        n, whole, moved = counts[d], 0.0, math.inf
        n[:] = 0
        gamma[:length] = 0
        for j in range(length):
            whole += data[first + j]
        for _ in range(most):
            old[:] = n
            n[:] = 0
            for j in range(length):
                p, g, c, left = table[indices[first + j]], gamma[j], data[first + j], zero
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


@kernel
def prequential(rows: Rows, table: Array, prior: Array, out: Array, begin: int, end: int) -> None:
    """Write Σ log p(word | words before it) of each document to out; the topics' weights start at the prior."""
    indptr, indices, data = rows
    K = table.shape[1]
    t, part = np.empty(K), _unpadded(np.empty(K + 2 * PADDING))
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


# -- rows of a table of counts -----------------------------------------------------------------------------------------
@any_order_kernel
def word_rows(
    words: Array, counts: Array, scale: float, beta: float, inverse_totals: Array, table: Array, begin: int, end: int
) -> None:
    """Write (counts·scale + β)·inverse_totals of some words to table."""
    for i in range(begin, end):
        n, p = counts[words[i]], table[i]
        for k in range(counts.shape[1]):
            p[k] = (n[k] * scale + beta) * inverse_totals[k]


@any_order_kernel
def add_rows(words: Array, added: Array, factor: float, counts: Array, begin: int, end: int) -> None:
    """Add factor · added to the counts of some words."""
    for i in range(begin, end):
        n, a = counts[words[i]], added[i]
        for k in range(counts.shape[1]):
            n[k] += factor * a[k]


# -- collapsed Gibbs sampling ------------------------------------------------------------------------------------------
@kernel
def gibbs_sweep(tokens: TokenTopics, counts: Triple, alpha: Array, beta: float, draws: Array) -> None:
    """Draw the topic of each token, one after the other, and update the counts."""
    limits, words, topics = tokens
    of_document, of_word, totals = counts
    K, V = of_word.shape[1], of_word.shape[0]
    sums = np.empty(K)
    for d in range(limits.size - 1):
        nd = of_document[d]
        for i in range(limits[d], limits[d + 1]):
            nw, k = of_word[words[i]], topics[i]
            nd[k] -= 1
            nw[k] -= 1
            totals[k] -= 1
            total = 0.0
            for t in range(K):
                total += (nd[t] + alpha[t]) * (nw[t] + beta) / (totals[t] + V * beta)
                sums[t] = total
            u, k = draws[i] * total, 0
            while k < K - 1 and sums[k] <= u:
                k += 1
            nd[k] += 1
            nw[k] += 1
            totals[k] += 1
            topics[i] = k
