"""Adding a scaled row to several rows of a table, the scaled row held in vector registers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir

from deciban.kernels.choice import Array
from deciban.kernels.intrinsics import LINE, _emit_prefetch
from deciban.kernels.jit import cgutils, intrinsic, kernel, part, types
from deciban.kernels.rows_compiled import exp
from deciban.kernels.words_compiled import _fetch_entries, sum_scaled_rows_of

_INT32, _INT64 = ir.IntType(32), ir.IntType(64)
AHEAD = 16  # entries between asking for a table row and adding to it
AHEAD_FROM = 8  # columns of a strip that is worth it


@intrinsic(prefer_literal=True)
def add_scaled_row(
    typing: Any,
    width: Any,
    table: Any,
    indices: Any,
    data: Any,
    row: Any,
    begin: Any,
    end: Any,
    column: Any,
    last: Any,
) -> Any:
    """Add data[p] row[c] to table[indices[p], c], p from begin to end, for c of column … column + width − 1.

    `width` is a literal. Arrays are C-ordered, table and row float64; nothing is checked. Asks for rows in advance,
    reading indices up to the last entry.
    """

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kinds, wide = signature.args, width.literal_value
        made = [context.make_array(kind)(context, builder, array) for kind, array in zip(kinds[1:5], args[1:5])]
        rows, places, values, given = made
        vector = ir.VectorType(ir.DoubleType(), wide)
        first = ir.Constant(ir.VectorType(_INT32, wide), [0] * wide)
        nothing = ir.Constant(vector, ir.Undefined)
        columns = cgutils.unpack_tuple(builder, rows.shape)[-1]
        start = builder.bitcast(builder.gep(given.data, [args[7]]), vector.as_pointer())
        share = builder.load(start, align=8)
        with cgutils.for_range_slice(builder, args[5], args[6], _INT64(1), intp=_INT64) as (position, _):
            loaded = builder.load(builder.gep(places.data, [position]))
            place = context.cast(builder, loaded, kinds[2].dtype, types.int64)
            if wide >= AHEAD_FROM:
                later = builder.add(position, _INT64(AHEAD))
                later = builder.select(builder.icmp_signed("<", later, args[8]), later, args[8])
                later = builder.load(builder.gep(places.data, [later]))
                later = context.cast(builder, later, kinds[2].dtype, types.int64)
                there = builder.gep(rows.data, [builder.add(builder.mul(later, columns), args[7])])
                for offset in range(0, wide + 1, LINE):  # the next strip's first line too
                    _emit_prefetch(builder, builder.gep(there, [_INT64(offset)]))
            value = builder.load(builder.gep(values.data, [position]))
            value = context.cast(builder, value, kinds[3].dtype, types.float64)
            spread = builder.shuffle_vector(builder.insert_element(nothing, value, _INT32(0)), nothing, first)
            address = builder.gep(rows.data, [builder.add(builder.mul(place, columns), args[7])])
            address = builder.bitcast(address, vector.as_pointer())
            step = builder.fmul(spread, share, flags=["contract"])
            builder.store(builder.fadd(builder.load(address, align=8), step, flags=["contract"]), address, align=8)
        return context.get_dummy_value()

    return types.void(width, table, indices, data, row, *[types.int64] * 4), emit


@part
def add_scaled_row_to(table: Array, indices: Array, data: Array, row: Array, begin: int, end: int, last: int) -> None:
    """Add data[p] row to table[indices[p]], p from begin to end: strips of columns that do not overlap."""
    K = row.size
    c = 0
    while K - c >= 16:
        add_scaled_row(16, table, indices, data, row, begin, end, c, last)
        c += 16
    if K - c >= 8:
        add_scaled_row(8, table, indices, data, row, begin, end, c, last)
        c += 8
    if K - c >= 4:
        add_scaled_row(4, table, indices, data, row, begin, end, c, last)
        c += 4
    if K - c >= 2:
        add_scaled_row(2, table, indices, data, row, begin, end, c, last)
        c += 2
    if K - c == 1:
        add_scaled_row(1, table, indices, data, row, begin, end, c, last)


# -- mixture blocks ----------
# The parts of a mixture's pass between two matrix products: features of a block of rows, and scores to shares.
#
# Rows lie side by side, so that every step is a vector operation. A last block that is not full has rows of zeros,
# whose
# shares are nothing.


@part
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
def share(
    scores: Array, bias: Array, weight: Array, start: int, n: int, top: Array, norm: Array, counts: Array
) -> float:
    """Turn scores (K, block) into weighted shares, add them to counts, and return Σ w log Σ exp(s + bias)."""
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


# -- mixture words ----------
# One pass of a mixture over sparse rows: a row's scores, its shares, and its words' sums, while they are in the cache.
#
# Rows of both tables are asked for a few entries in advance; asking for a whole row's at once was slower.


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
    more: Array,
) -> float:
    """Add Σ w r, Σ w r x and Σ w r extra to counts, sums and more; return Σ w log Σ exp(s). `shares` is a buffer."""
    n, K = indptr.size - 1, bias.size
    last = indptr[n] - 1
    total = 0.0
    r = shares[0]
    for i in range(n):
        begin, end = indptr[i], indptr[i + 1]
        w = weight[i] if weight.size else 1.0
        if w == 0:
            continue
        _fetch_entries(data, indices, begin, end)
        sum_scaled_rows_of(table, indices, data, bias, shares, begin, end, last, 0)
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
            for e in range(more.shape[1]):
                more[k, e] += r[k] * extra[i, e]
        add_scaled_row_to(sums, indices, data, r, begin, end, last)
    return total
