"""Forward and backward messages of hidden Markov chains in plain numbers, rescaled at every step.

Every message is divided by its sum, so nothing vanishes however long the sequence; what vanishes within a step (odds of
more than 10¹⁰⁰ to one) is reported, and the caller turns to `chains_in_logs`. The number of states is a multiple of 4,
made so by states that cannot be; 8 is compiled apart, its loops gone.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
from llvmlite import ir

from deciban.kernels.choice import Array
from deciban.kernels.jit import ANY_ORDER, any_order_kernel, cgutils, intrinsic, kernel, types
from deciban.kernels.rows_compiled import exp

part = numba.njit(forceinline=True, **ANY_ORDER)

FAINT = 1e-100  # a sum below this has lost states to underflow, or nothing explains the step
LOG_FAINT = -230.25850929940458
SOON = 1e-200  # a product of sums is taken the logarithm of before it vanishes


_INT32, _INT64 = ir.IntType(32), ir.IntType(64)
_HERE = _INT64(0)
CHAINS = 4  # sums under way at a time, since an addition must wait for the one before it


class _Vectors:
    """Loads and stores of a few numbers at a time."""

    def __init__(self, context: Any, builder: Any, signature: Any, args: Any, width: int) -> None:
        self.context, self.builder, self.signature, self.args = context, builder, signature, args
        self.kind = ir.VectorType(ir.DoubleType(), width)
        self.first = ir.Constant(ir.VectorType(_INT32, width), [0] * width)

    def place(self, argument: int, offset: int) -> Any:
        """Where in an array argument the position given by another argument is."""
        array = self.context.make_array(self.signature.args[argument])(self.context, self.builder, self.args[argument])
        return self.builder.gep(array.data, [self.args[offset]])

    def at(self, place: Any, offset: Any) -> Any:
        return self.builder.bitcast(self.builder.gep(place, [offset]), self.kind.as_pointer())

    def load(self, place: Any, offset: Any = _HERE) -> Any:
        return self.builder.load(self.at(place, offset), align=8)

    def store(self, values: Any, place: Any, offset: Any = _HERE) -> None:
        self.builder.store(values, self.at(place, offset), align=8)

    def spread(self, number: Any) -> Any:
        """One number in every lane."""
        nothing = ir.Constant(self.kind, ir.Undefined)
        return self.builder.shuffle_vector(self.builder.insert_element(nothing, number, _INT32(0)), nothing, self.first)

    def plus(self, total: Any, a: Any, b: Any) -> Any:
        """The total plus a·b, in one instruction where there is one."""
        return self.builder.fadd(total, self.builder.fmul(a, b, flags=["contract"]), flags=["contract"])


@intrinsic(prefer_literal=True)
def mix(typing: Any, lanes: Any, message: Any, at: Any, matrix: Any, S: Any, column: Any, out: Any, to: Any) -> Any:
    """Set out[to + c] to Σ_j message[at + j] · matrix[j, column + c] for c < lanes, j < S."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vectors = _Vectors(context, builder, signature, args, lanes.literal_value)
        source, table, target, size = vectors.place(1, 2), vectors.place(3, 5), vectors.place(6, 7), args[4]
        zero = ir.Constant(vectors.kind, [0.0] * lanes.literal_value)
        sums = [cgutils.alloca_once_value(builder, zero) for _ in range(CHAINS)]
        with cgutils.for_range(builder, builder.ashr(size, _INT64(2))) as loop:
            j = builder.shl(loop.index, _INT64(2))
            for chain, total in enumerate(sums):
                row = builder.add(j, _INT64(chain))
                number = vectors.spread(builder.load(builder.gep(source, [row])))
                values = vectors.load(table, builder.mul(row, size))
                builder.store(vectors.plus(builder.load(total), number, values), total)
        a, b, c, d = (builder.load(total) for total in sums)
        vectors.store(builder.fadd(builder.fadd(a, b), builder.fadd(c, d)), target)
        return context.get_dummy_value()

    place = types.int64
    return types.void(lanes, message, place, matrix, place, place, out, place), emit


@intrinsic(prefer_literal=True)
def add_product(
    typing: Any, lanes: Any, left: Any, at: Any, factor: Any, right: Any, S: Any, column: Any, matrix: Any
) -> Any:
    """Add factor · left[at + j] · right[column + c] to matrix[j, column + c] for c < lanes, j < S."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vectors = _Vectors(context, builder, signature, args, lanes.literal_value)
        source, target, size = vectors.place(1, 2), vectors.place(7, 6), args[5]
        values = builder.fmul(vectors.spread(args[3]), vectors.load(vectors.place(4, 6)))
        with cgutils.for_range(builder, size) as loop:
            number = vectors.spread(builder.load(builder.gep(source, [loop.index])))
            row = builder.mul(loop.index, size)
            vectors.store(vectors.plus(vectors.load(target, row), number, values), target, row)
        return context.get_dummy_value()

    place = types.int64
    return types.void(lanes, left, place, types.float64, right, place, place, matrix), emit


@part
def _mix(message: Array, at: int, matrix: Array, S: int, out: Array, to: int) -> None:
    """Set S numbers of `out` from `to` on to the message, S numbers from `at` on, times the matrix."""
    column = 0
    while column + 8 <= S:
        mix(8, message, at, matrix, S, column, out, to + column)
        column += 8
    if column < S:
        mix(4, message, at, matrix, S, column, out, to + column)


@part
def _add_product(left: Array, at: int, factor: float, right: Array, S: int, matrix: Array) -> None:
    """Add factor · left · rightᵀ to the matrix; left has S numbers from `at` on."""
    column = 0
    while column + 8 <= S:
        add_product(8, left, at, factor, right, S, column, matrix)
        column += 8
    if column < S:
        add_product(4, left, at, factor, right, S, column, matrix)


@part
def _forward(
    index: Array,
    table: Array,
    offset: Array,
    begin: int,
    end: int,
    fresh: bool,
    start: Array,
    A: Array,
    alpha: Array,
    scale: Array,
    S: int,
) -> float:
    """Messages of one sequence's rows; its log-likelihood, or NaN where a step is too faint."""
    total, product, inverse = 0.0, 1.0, 1.0
    missing = table.shape[0] - 1
    for t in range(begin, end):
        x = index[t] if index[t] >= 0 else missing
        if t == begin and fresh:
            for k in range(S):
                alpha[t + 1, k] = start[k]
        else:
            _mix(alpha, t * S, A, S, alpha, (t + 1) * S)
        s = 0.0
        for k in range(S):  # the division for the row before is over by now: nobody waits for it
            alpha[t + 1, k] *= table[x, k] * inverse
            s += alpha[t + 1, k]
        if not s > FAINT:
            return np.nan
        inverse = 1 / s
        scale[t] = inverse
        total += offset[x]
        product *= s
        if product < SOON:
            total += math.log(product)
            product = 1.0
    return total + math.log(product)


@any_order_kernel
def forward(
    index: Array,
    table: Array,
    offset: Array,
    ends: Array,
    fresh: bool,
    start: Array,
    A: Array,
    alpha: Array,
    scale: Array,
    evidence: Array,
) -> int:
    """Write the messages of a piece of rows to `alpha`, the inverses of their sums to `scale`; add log-likelihoods.

    Returns the number of the first sequence that is too faint, or how many there are.
    """
    S, begin = start.size, 0
    for b in range(ends.size):
        fresh = fresh or b > 0
        if S == 8:
            found = _forward(index, table, offset, begin, ends[b], fresh, start, A, alpha, scale, 8)
        else:
            found = _forward(index, table, offset, begin, ends[b], fresh, start, A, alpha, scale, S)
        if math.isnan(found):
            return b
        evidence[b] += found
        begin = ends[b]
    return ends.size


@part
def _backward(
    index: Array,
    table: Array,
    begin: int,
    end: int,
    final: bool,
    AT: Array,
    carry: Array,
    alpha: Array,
    scale: Array,
    weight: float,
    visits: Array,
    joint: Array,
    beta: Array,
    S: int,
) -> None:
    """Add one sequence's share; `carry` comes as what follows row end − 1 and leaves as what follows row begin − 1."""
    missing = table.shape[0] - 1
    for t in range(end - 1, begin - 1, -1):
        x = index[t] if index[t] >= 0 else missing
        if t == end - 1 and final:
            for j in range(S):
                beta[j] = 1.0
        else:
            _mix(carry, 0, AT, S, beta, 0)
            _add_product(alpha, (t + 1) * S, weight * scale[t], carry, S, joint)
        for k in range(S):
            visits[x, k] += (weight * scale[t] * alpha[t + 1, k]) * beta[k]
            # what cannot be reached must not grow without bound
            carry[k] = (table[x, k] * scale[t] if alpha[t + 1, k] > 0 else 0.0) * beta[k]


@any_order_kernel
def backward(
    index: Array,
    table: Array,
    ends: Array,
    fresh: bool,
    final: bool,
    A: Array,
    AT: Array,
    carry: Array,
    alpha: Array,
    scale: Array,
    weight: Array,
    visits: Array,
    joint: Array,
    first: Array,
) -> None:
    """Add weighted expected counts: `visits` per row of the table and state, `joint` per pair, `first` per state."""
    S = first.size
    pairs, beta = np.zeros((S, S)), np.ones(S)
    for b in range(ends.size - 1, -1, -1):
        begin = 0 if b == 0 else ends[b - 1]
        last = final or b < ends.size - 1
        if S == 8:
            _backward(index, table, begin, ends[b], last, AT, carry, alpha, scale, weight[b], visits, pairs, beta, 8)
        else:
            _backward(index, table, begin, ends[b], last, AT, carry, alpha, scale, weight[b], visits, pairs, beta, S)
        if b > 0 or fresh:
            for k in range(S):
                first[k] += weight[b] * scale[begin] * alpha[begin + 1, k] * beta[k]
    for j in range(S):
        for k in range(S):
            joint[j, k] += pairs[j, k] * A[j, k]


@kernel
def likelihoods(logs: Array, base: Array, table: Array, offset: Array) -> bool:
    """Write exp of each row less its top to `table`, the tops and base to `offset`; whether a state became faint."""
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
    flat, faint = table.reshape(-1), 0
    for at in range(flat.size):  # in a row, so that several are taken at a time
        x = flat[at]
        faint += 1 if LOG_FAINT > x > -np.inf else 0
        flat[at] = exp(x)
    return faint > 0


@kernel
def least(alpha: Array, rows: int) -> float:
    """The smallest number above 0 among the messages of the first rows."""
    low = np.inf
    for t in range(1, rows + 1):
        for k in range(alpha.shape[1]):
            if 0.0 < alpha[t, k] < low:
                low = alpha[t, k]
    return low
