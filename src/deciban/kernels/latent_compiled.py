"""Compiled versions of `latent`, which defines what is computed.

Blocks of dense rows of mixtures are transposed, so that every step is a vector operation over the rows. A last block
that is not full is padded with rows of zeros, whose responsibilities are 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from llvmlite import ir

from deciban.kernels.choice import Array
from deciban.kernels.intrinsics import (
    INT64,
    add_scaled_row,
    broadcast,
    element_address,
    exp,
    load_vector,
    multiply_add,
    store_vector,
    sum_rows,
)
from deciban.kernels.jit import any_order_inline, any_order_kernel, cgutils, inline, intrinsic, kernel, types
from deciban.kernels.latent import Arrays
from deciban.kernels.sparse_compiled import prefetch_entries


# -- mixtures ----------------------------------------------------------------------------------------------------------
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
    """Return ψ(x) of x > 0, by the recurrence up to 6 and the asymptotic series after it; error below 3e-9."""
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


if TYPE_CHECKING:
    from deciban.kernels.jit import BaseContext, Context, Signature

# -- hidden Markov chains: scaled messages -----------------------------------------------------------------------------
# Every message is divided by its sum, so that long sequences do not underflow. If a single step does (odds of more than
# 10¹⁰⁰ to one), the caller repeats the sequence in logarithms. The number of states is padded to a multiple of 4.
# For S = 8 the loops are compiled with a constant S, which unrolls them.
SMALLEST_SUM = 1e-100  # a sum below this has lost states to underflow, or the step is impossible
LOG_SMALLEST = -230.25850929940458
SMALLEST_PRODUCT = 1e-200  # the logarithm of a product of sums is taken before it underflows
ACCUMULATORS = 4  # an addition waits for the one before it in the same register


@intrinsic(prefer_literal=True)
def _multiply_columns(
    typing: Context,
    lanes: types.IntegerLiteral,
    message: types.Array,
    at: types.Integer,
    matrix: types.Array,
    S: types.Integer,
    column: types.Integer,
    out: types.Array,
    to: types.Integer,
) -> Any:
    """Set out[to + c] to Σ_j message[at + j] · matrix[j, column + c] for c < lanes, j < S."""

    def emit(context: BaseContext, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value]) -> ir.Value:
        def place(array: int, position: int) -> ir.Value:
            return element_address(context, builder, signature.args[array], args[array], args[position])

        source, table, target, size = place(1, 2), place(3, 5), place(6, 7), args[4]
        kind = ir.VectorType(ir.DoubleType(), lanes.literal_value)
        zero = ir.Constant(kind, [0.0] * kind.count)
        sums = [cgutils.alloca_once_value(builder, zero) for _ in range(ACCUMULATORS)]
        with cgutils.for_range(builder, builder.ashr(size, INT64(2))) as loop:
            j = builder.shl(loop.index, INT64(2))
            for number, total in enumerate(sums):
                row = builder.add(j, INT64(number))
                factor = broadcast(builder, builder.load(builder.gep(source, [row])), kind.count)
                values = load_vector(builder, builder.gep(table, [builder.mul(row, size)]), kind)
                builder.store(multiply_add(builder, builder.load(total), factor, values), total)
        a, b, c, d = (builder.load(total) for total in sums)
        store_vector(builder, builder.fadd(builder.fadd(a, b), builder.fadd(c, d)), target)
        return context.get_dummy_value()

    position = types.int64
    return types.void(lanes, message, position, matrix, position, position, out, position), emit


@intrinsic(prefer_literal=True)
def _add_outer_columns(
    typing: Context,
    lanes: types.IntegerLiteral,
    left: types.Array,
    at: types.Integer,
    factor: types.Float,
    right: types.Array,
    S: types.Integer,
    column: types.Integer,
    matrix: types.Array,
) -> Any:
    """Add factor · left[at + j] · right[column + c] to matrix[j, column + c] for c < lanes, j < S."""

    def emit(context: BaseContext, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value]) -> ir.Value:
        def place(array: int, position: int) -> ir.Value:
            return element_address(context, builder, signature.args[array], args[array], args[position])

        source, target, size = place(1, 2), place(7, 6), args[5]
        kind = ir.VectorType(ir.DoubleType(), lanes.literal_value)
        values = builder.fmul(broadcast(builder, args[3], kind.count), load_vector(builder, place(4, 6), kind))
        with cgutils.for_range(builder, size) as loop:
            number = broadcast(builder, builder.load(builder.gep(source, [loop.index])), kind.count)
            row = builder.gep(target, [builder.mul(loop.index, size)])
            store_vector(builder, multiply_add(builder, load_vector(builder, row, kind), number, values), row)
        return context.get_dummy_value()

    position = types.int64
    return types.void(lanes, left, position, types.float64, right, position, position, matrix), emit


@any_order_inline
def _multiply(message: Array, at: int, matrix: Array, S: int, out: Array, to: int) -> None:
    """Set S numbers of `out` from `to` on to the message, S numbers from `at` on, times the matrix."""
    column = 0
    while column + 8 <= S:
        _multiply_columns(8, message, at, matrix, S, column, out, to + column)
        column += 8
    if column < S:
        _multiply_columns(4, message, at, matrix, S, column, out, to + column)


@any_order_inline
def _add_outer(left: Array, at: int, factor: float, right: Array, S: int, matrix: Array) -> None:
    """Add factor · left · rightᵀ to the matrix; left has S numbers from `at` on."""
    column = 0
    while column + 8 <= S:
        _add_outer_columns(8, left, at, factor, right, S, column, matrix)
        column += 8
    if column < S:
        _add_outer_columns(4, left, at, factor, right, S, column, matrix)


@any_order_inline
def _scaled_forward(piece: Arrays, begin: int, end: int, fresh: bool, chain: Arrays, messages: Arrays, S: int) -> float:
    """Write the messages of one sequence; its log-likelihood, or NaN if a step underflows."""
    (index, table, offset, _), (start, A, _), (alpha, scale) = piece, chain, messages
    total, product, inverse = 0.0, 1.0, 1.0
    missing = table.shape[0] - 1
    for t in range(begin, end):
        x = index[t] if index[t] >= 0 else missing
        if t == begin and fresh:
            for k in range(S):
                alpha[t + 1, k] = start[k]
        else:
            _multiply(alpha, t * S, A, S, alpha, (t + 1) * S)
        s = 0.0
        for k in range(S):  # the division of the row before has finished by now
            alpha[t + 1, k] *= table[x, k] * inverse
            s += alpha[t + 1, k]
        if not s > SMALLEST_SUM:
            return np.nan
        inverse = 1 / s
        scale[t] = inverse
        total += offset[x]
        product *= s
        if product < SMALLEST_PRODUCT:
            total += math.log(product)
            product = 1.0
    return total + math.log(product)


@any_order_kernel
def scaled_forward(piece: Arrays, fresh: bool, chain: Arrays, messages: Arrays, evidence: Array) -> int:
    """Write the messages of a piece to `alpha`, the inverses of their sums to `scale`; add log-likelihoods.

    Returns the first sequence that underflows, or the number of sequences.
    """
    ends, S, begin = piece[3], chain[0].size, 0
    for b in range(ends.size):
        fresh = fresh or b > 0
        if S == 8:
            found = _scaled_forward(piece, begin, ends[b], fresh, chain, messages, 8)
        else:
            found = _scaled_forward(piece, begin, ends[b], fresh, chain, messages, S)
        if math.isnan(found):
            return b
        evidence[b] += found
        begin = ends[b]
    return ends.size


@any_order_inline
def _scaled_backward(
    piece: Arrays, begin: int, end: int, final: bool, AT: Array, messages: Arrays, carry: Array, counts: Arrays, S: int
) -> None:
    """Add the expected counts of one sequence; `carry`, w of row `end`, is replaced by w of row `begin`."""
    (index, table, _, _), (alpha, scale), (weight, visits, joint, beta) = piece, messages, counts
    missing = table.shape[0] - 1
    for t in range(end - 1, begin - 1, -1):
        x = index[t] if index[t] >= 0 else missing
        if t == end - 1 and final:
            for j in range(S):
                beta[j] = 1.0
        else:
            _multiply(carry, 0, AT, S, beta, 0)
            _add_outer(alpha, (t + 1) * S, weight * scale[t], carry, S, joint)
        for k in range(S):
            visits[x, k] += (weight * scale[t] * alpha[t + 1, k]) * beta[k]
            # a state that cannot be reached would overflow
            carry[k] = (table[x, k] * scale[t] if alpha[t + 1, k] > 0 else 0.0) * beta[k]


@any_order_kernel
def scaled_backward(
    piece: Arrays, fresh: bool, final: bool, chain: Arrays, messages: Arrays, carry: Array, counts: Arrays
) -> None:
    """Add weighted expected counts: `visits` per row of the table and state, `joint` per pair, `first` per state."""
    ends, (_, A, AT), (alpha, scale), (weight, visits, joint, first) = piece[3], chain, messages, counts
    S = first.size
    pairs, beta = np.zeros((S, S)), np.ones(S)
    for b in range(ends.size - 1, -1, -1):
        begin = 0 if b == 0 else ends[b - 1]
        last = final or b < ends.size - 1
        own = weight[b], visits, pairs, beta
        if S == 8:
            _scaled_backward(piece, begin, ends[b], last, AT, messages, carry, own, 8)
        else:
            _scaled_backward(piece, begin, ends[b], last, AT, messages, carry, own, S)
        if b > 0 or fresh:
            for k in range(S):
                first[k] += weight[b] * scale[begin] * alpha[begin + 1, k] * beta[k]
    for j in range(S):
        for k in range(S):
            joint[j, k] += pairs[j, k] * A[j, k]


@kernel
def scaled_densities(logs: Array, base: Array, table: Array, offset: Array) -> bool:
    """Write exp(logs − maximum) of each row to `table`, maximum + base to `offset`; whether a density underflows."""
    n, S = logs.shape
    for i in range(n):
        top = -np.inf
        for k in range(S):
            top = logs[i, k] if logs[i, k] > top else top
        reference = 0.0 if top == -np.inf else top
        offset[i] = reference + base[i]
        for k in range(S):
            table[i, k] = logs[i, k] - reference
        for k in range(S, table.shape[1]):
            table[i, k] = -np.inf
    flat, small = table.reshape(-1), 0
    for at in range(flat.size):  # one loop over all numbers, which is vectorised
        x = flat[at]
        small += 1 if LOG_SMALLEST > x > -np.inf else 0
        flat[at] = exp(x)
    return small > 0


@kernel
def smallest_positive(alpha: Array, rows: int) -> float:
    """Return the smallest number above 0 in the messages of the first rows."""
    low = np.inf
    for t in range(1, rows + 1):
        for k in range(alpha.shape[1]):
            if 0.0 < alpha[t, k] < low:
                low = alpha[t, k]
    return low


# -- hidden Markov chains: messages in logarithms ----------------------------------------------------------------------
@inline
def _log_multiply(messages: Array, row: int, logs: Array, out: Array, to: int) -> None:
    """Write log Σ_j exp(messages[row, j] + logs[j, k]) to out[to, k]."""
    S = logs.shape[0]
    for k in range(S):
        top = -np.inf
        for j in range(S):
            v = messages[row, j] + logs[j, k]
            top = v if v > top else top
        total = 0.0
        if top > -np.inf:
            for j in range(S):
                total += exp(messages[row, j] + logs[j, k] - top)
        out[to, k] = top + math.log(total) if total > 0 else -np.inf


@inline
def _normalise(messages: Array, row: int) -> float:
    """Divide a message by its sum; returns the log of the sum."""
    S, top = messages.shape[1], -np.inf
    for k in range(S):
        top = messages[row, k] if messages[row, k] > top else top
    if top == -np.inf:
        return -np.inf
    total = 0.0
    for k in range(S):
        total += exp(messages[row, k] - top)
    total = top + math.log(total)
    for k in range(S):
        messages[row, k] -= total
    return total


@kernel
def log_forward(piece: Arrays, fresh: bool, chain: Arrays, messages: Arrays, evidence: Array) -> int:
    """Write the messages of a piece; the first impossible row, or the number of rows."""
    (index, logs, base, ends), (start, A, _), (alpha, scale) = piece, chain, messages
    S, begin, impossible = start.size, 0, index.size
    missing = logs.shape[0] - 1
    for b in range(ends.size):
        for t in range(begin, ends[b]):
            x = index[t] if index[t] >= 0 else missing
            if t == begin and (fresh or b > 0):
                for k in range(S):
                    alpha[t + 1, k] = start[k]
            else:
                _log_multiply(alpha, t, A, alpha, t + 1)
            for k in range(S):
                alpha[t + 1, k] += logs[x, k]
            scale[t] = _normalise(alpha, t + 1)
            evidence[b] += scale[t] + base[x]
            if scale[t] == -np.inf:
                impossible = min(impossible, t)
                break
        begin = ends[b]
    return impossible


@kernel
def log_backward(
    piece: Arrays, fresh: bool, final: bool, chain: Arrays, messages: Arrays, carry: Array, counts: Arrays
) -> None:
    """Add weighted expected counts, as `scaled_backward`."""
    (index, logs, _, ends), (_, A, AT), (alpha, scale) = piece, chain, messages
    weight, visits, joint, first = counts
    S, missing = first.size, logs.shape[0] - 1
    after, beta = np.empty((1, S)), np.zeros((1, S))
    for k in range(S):
        after[0, k] = carry[k]
    for b in range(ends.size - 1, -1, -1):
        begin = 0 if b == 0 else ends[b - 1]
        for t in range(ends[b] - 1, begin - 1, -1):
            x = index[t] if index[t] >= 0 else missing
            if t == ends[b] - 1 and (final or b < ends.size - 1):
                for k in range(S):
                    beta[0, k] = 0.0
            else:
                _log_multiply(after, 0, AT, beta, 0)
                for j in range(S):
                    for k in range(S):
                        joint[j, k] += weight[b] * exp(alpha[t + 1, j] + A[j, k] + after[0, k])
            for k in range(S):
                share = weight[b] * exp(alpha[t + 1, k] + beta[0, k])
                visits[x, k] += share
                if t == begin and (fresh or b > 0):
                    first[k] += share
                after[0, k] = logs[x, k] + beta[0, k] - scale[t]
    for k in range(S):
        carry[k] = after[0, k]


# -- hidden Markov chains: most probable paths -------------------------------------------------------------------------
@kernel
def best_states(piece: Arrays, fresh: bool, chain: Arrays, carry: Array, pointers: Array, last: Array) -> None:
    """Write the best predecessor of every row and state, and the best last state of each sequence, or −1."""
    (index, logs, ends), (start, A) = piece, chain
    S, begin, missing = start.size, 0, logs.shape[0] - 1
    after = np.empty(S)
    for b in range(ends.size):
        for t in range(begin, ends[b]):
            x = index[t] if index[t] >= 0 else missing
            for k in range(S):
                top, place = -np.inf, 0
                if t == begin and (fresh or b > 0):
                    top = start[k]
                else:
                    for j in range(S):
                        v = carry[j] + A[j, k]
                        place = j if v > top else place
                        top = v if v > top else top
                after[k] = top + logs[x, k]
                pointers[t, k] = place
            for k in range(S):
                carry[k] = after[k]
        last[b], top = -1, -np.inf
        for k in range(S):
            if carry[k] > top:
                last[b], top = k, carry[k]
        begin = ends[b]


@kernel
def follow_pointers(pointers: Array, ends: Array, last: Array, path: Array) -> int:
    """Follow the pointers back from the last state of each sequence; the state before the piece."""
    state = 0
    for b in range(ends.size - 1, -1, -1):
        begin = 0 if b == 0 else ends[b - 1]
        state = last[b]
        for t in range(ends[b] - 1, begin - 1, -1):
            path[t] = state
            state = pointers[t, state]
    return state
