"""Building blocks of kernels in LLVM's own instructions: prefetch, products of 128 bits, sums of table rows, exp.

Indices and positions are not checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from llvmlite import ir

from deciban.kernels.choice import Array
from deciban.kernels.jit import as_written_inline, cgutils, inline, intrinsic, types

if TYPE_CHECKING:
    from deciban.kernels.jit import BaseContext, Context, Signature

BYTES = ir.IntType(8).as_pointer()
INT32, INT64, INT128 = ir.IntType(32), ir.IntType(64), ir.IntType(128)

CACHE_LINE = 8  # float64 values in a cache line
SUM_DISTANCE = 32  # entries between the prefetch of a table row and its addition
ADD_DISTANCE = 16  # entries between the prefetch of a table row and the addition to it


def broadcast(builder: ir.IRBuilder, value: ir.Value, width: int) -> ir.Value:
    """Emit a vector with the same value in every lane."""
    undefined = ir.Constant(ir.VectorType(value.type, width), ir.Undefined)
    first = ir.Constant(ir.VectorType(INT32, width), [0] * width)
    return builder.shuffle_vector(builder.insert_element(undefined, value, INT32(0)), undefined, first)


def element_address(
    context: BaseContext, builder: ir.IRBuilder, kind: types.Type, array: ir.Value, position: ir.Value
) -> ir.Value:
    """Emit the address of an array's element at a flat position."""
    return builder.gep(context.make_array(kind)(context, builder, array).data, [position])


def load_vector(builder: ir.IRBuilder, address: ir.Value, kind: ir.VectorType, align: int = 8) -> ir.Value:
    """Emit a load of a vector."""
    return builder.load(builder.bitcast(address, kind.as_pointer()), align=align)


def store_vector(builder: ir.IRBuilder, values: ir.Value, address: ir.Value, align: int = 8) -> None:
    """Emit a store of a vector."""
    builder.store(values, builder.bitcast(address, values.type.as_pointer()), align=align)


def multiply_add(builder: ir.IRBuilder, total: ir.Value, a: ir.Value, b: ir.Value) -> ir.Value:
    """Emit total + a·b, in one instruction if the processor has one."""
    return builder.fadd(total, builder.fmul(a, b, flags=["contract"]), flags=["contract"])


def add_lanes(builder: ir.IRBuilder, values: ir.Value) -> ir.Value:
    """Emit the sum of the lanes of a vector, whose number is a power of two: halves are added until one is left."""
    width = values.type.count
    while width > 1:
        width //= 2
        undefined = ir.Constant(values.type, ir.Undefined)
        halves = [ir.Constant(ir.VectorType(INT32, width), [start + j for j in range(width)]) for start in (0, width)]
        low, high = (builder.shuffle_vector(values, undefined, half) for half in halves)
        values = builder.fadd(low, high)
    return builder.extract_element(values, INT32(0))


def emit_prefetch(builder: ir.IRBuilder, address: ir.Value) -> None:
    """Emit a prefetch of the cache line at an address, for reading, into all levels of the cache."""
    read, keep, data = INT32(0), INT32(3), INT32(1)
    form = ir.FunctionType(ir.VoidType(), [BYTES, INT32, INT32, INT32])
    function = builder.module.declare_intrinsic("llvm.prefetch", (BYTES,), form)
    builder.call(function, [builder.bitcast(address, BYTES), read, keep, data])


@intrinsic
def prefetch(typing: Context, array: types.Array, position: types.Integer) -> Any:
    """Prefetch the cache line of the array's element at a flat position, which may lie outside the array."""

    def emit(context: BaseContext, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value]) -> ir.Value:
        emit_prefetch(builder, element_address(context, builder, signature.args[0], *args))
        return context.get_dummy_value()

    return types.void(array, types.intp), emit


@intrinsic
def folded_product(typing: Context, a: types.Integer, b: types.Integer) -> Any:
    """Return upper half xor lower half of the product of two numbers of 64 bits, which has 128 bits."""

    def emit(context: BaseContext, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value]) -> ir.Value:
        product = builder.mul(*(builder.zext(factor, INT128) for factor in args))
        upper = builder.trunc(builder.lshr(product, INT128(64)), INT64)
        return builder.xor(upper, builder.trunc(product, INT64))

    return types.uint64(types.uint64, types.uint64), emit


# -- sums of table rows ------------------------------------------------------------------------------------------------
class _Columns:
    """Some columns of a table, `width` of them from `column` on, in the rows that an index array names."""

    def __init__(
        self,
        context: BaseContext,
        builder: ir.IRBuilder,
        kinds: Sequence[types.Type],
        arrays: Sequence[ir.Value],
        width: int,
        column: ir.Value,
    ) -> None:
        """Take types and values of the table, the indices and the factors of entries, which may be None."""
        self.context, self.builder, self.kinds, self.arrays = context, builder, kinds, arrays
        self.number = kinds[0].dtype
        self.column, self.kind = column, ir.VectorType(context.get_value_type(self.number), width)
        self.align = self.number.bitwidth // 8
        self.line = CACHE_LINE * 8 // self.align  # numbers in a cache line
        shape = context.make_array(kinds[0])(context, builder, arrays[0]).shape
        self.row_size = cgutils.unpack_tuple(builder, shape)[1]

    def entry(self, argument: int, position: ir.Value, wanted: types.Type) -> ir.Value:
        """Emit an entry of the indices or the factors, cast to the type wanted."""
        kind = self.kinds[argument]
        address = element_address(self.context, self.builder, kind, self.arrays[argument], position)
        return self.context.cast(self.builder, self.builder.load(address), kind.dtype, wanted)

    def address(self, kind: types.Type, array: ir.Value, row: ir.Value) -> ir.Value:
        """Emit the address of the columns in a row of an array that is as wide as the table."""
        place = self.builder.add(self.builder.mul(row, self.row_size), self.column)
        return element_address(self.context, self.builder, kind, array, place)

    def row_of(self, position: ir.Value) -> ir.Value:
        """Emit the address of the columns in the table row of an entry."""
        return self.address(self.kinds[0], self.arrays[0], self.entry(1, position, types.int64))

    def factor(self, position: ir.Value) -> ir.Value:
        """Emit a vector of the factor of an entry."""
        return broadcast(self.builder, self.entry(2, position, self.number), self.kind.count)

    def prefetch(self, position: ir.Value, distance: int, last: ir.Value, offsets: Sequence[int]) -> None:
        """Emit prefetches of the table row of the entry `distance` after this one, but at most the last entry."""
        builder = self.builder
        later = builder.add(position, INT64(distance))
        start = self.row_of(builder.select(builder.icmp_signed("<", later, last), later, last))
        for offset in offsets:
            emit_prefetch(builder, builder.gep(start, [INT64(offset)]))


@intrinsic(prefer_literal=True)
def _sum_columns(
    typing: Context,
    width: types.IntegerLiteral,
    table: types.Array,
    indices: types.Array,
    data: types.Type,
    bias: types.Array,
    out: types.Array,
    begin: types.Integer,
    end: types.Integer,
    last: types.Integer,
    row: types.Integer,
    column: types.Integer,
) -> Any:
    """Do what `sum_rows` does for the columns column … column + width − 1; `width` is a literal.

    Terms go in turn to two accumulators, because an addition waits for the one before it in the same register.
    """

    def emit(context: BaseContext, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value]) -> ir.Value:
        kinds, wide, scaled = signature.args, width.literal_value, not isinstance(data, types.NoneType)
        columns = _Columns(context, builder, kinds[1:4], args[1:4], wide, args[10])
        begin, end, last, row = args[6:10]
        bias_at = element_address(context, builder, kinds[4], args[4], args[10])
        start = load_vector(builder, bias_at, columns.kind, columns.align)
        zero = ir.Constant(columns.kind, [0.0] * wide)
        totals = [cgutils.alloca_once_value(builder, value) for value in (start, zero)]

        def add(position: ir.Value, total: ir.Value) -> None:
            # With few columns, the processor's own prefetching is enough.
            if scaled and wide >= 4:
                columns.prefetch(position, SUM_DISTANCE, last, sorted({*range(0, wide, columns.line), wide - 1}))
            term = load_vector(builder, columns.row_of(position), columns.kind, columns.align)
            before = builder.load(total)
            if scaled:
                term = builder.fmul(columns.factor(position), term)
            builder.store(builder.fadd(before, term), total)

        pairs = builder.ashr(builder.sub(end, begin), INT64(1))
        with cgutils.for_range(builder, pairs) as loop:
            position = builder.add(begin, builder.shl(loop.index, INT64(1)))
            add(position, totals[0])
            add(builder.add(position, INT64(1)), totals[1])
        rest = builder.add(begin, builder.shl(pairs, INT64(1)))
        with builder.if_then(builder.icmp_signed("<", rest, end)):
            add(rest, totals[0])
        total = builder.fadd(builder.load(totals[0]), builder.load(totals[1]))
        store_vector(builder, total, columns.address(kinds[5], args[5], row), columns.align)
        return context.get_dummy_value()

    return types.void(width, table, indices, data, bias, out, *[types.int64] * 5), emit


@as_written_inline
def sum_rows(
    table: Array,
    indices: Array,
    data: Array | None,
    bias: Array,
    out: Array,
    begin: int,
    end: int,
    last: int,
    row: int,
) -> None:
    """Set out[row] to bias + Σ data[p] table[indices[p]], p from begin to end. `data` may be None, for ones.

    Arrays are C-ordered; table, bias and out are all float64, or all float32. With data, table rows are prefetched,
    reading indices up to entry `last`. Columns are taken 16, 8, 4, 3, 2 or 1 at a time. The last group may overlap the
    one before: some sums are then computed twice, to the same bits, which is faster than several narrow groups.
    Products are rounded on any processor, so that numpy can compute the same bits.
    """
    K = out.shape[1]
    c = 0
    while c < K:
        left = K - c
        if K >= 16 and left > 8:
            c = min(c, K - 16)
            _sum_columns(16, table, indices, data, bias, out, begin, end, last, row, c)
            c += 16
        elif K >= 8 and left > 4:
            c = min(c, K - 8)
            _sum_columns(8, table, indices, data, bias, out, begin, end, last, row, c)
            c += 8
        elif K >= 4 and left > 2:
            c = min(c, K - 4)
            _sum_columns(4, table, indices, data, bias, out, begin, end, last, row, c)
            c += 4
        elif left == 3:
            _sum_columns(3, table, indices, data, bias, out, begin, end, last, row, c)
            c += 3
        elif left == 2:
            _sum_columns(2, table, indices, data, bias, out, begin, end, last, row, c)
            c += 2
        else:
            _sum_columns(1, table, indices, data, bias, out, begin, end, last, row, c)
            c += 1


@intrinsic(prefer_literal=True)
def _add_columns(
    typing: Context,
    width: types.IntegerLiteral,
    table: types.Array,
    indices: types.Array,
    data: types.Array,
    row: types.Array,
    begin: types.Integer,
    end: types.Integer,
    column: types.Integer,
    last: types.Integer,
) -> Any:
    """Do what `add_scaled_row` does for the columns column … column + width − 1; `width` is a literal."""

    def emit(context: BaseContext, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value]) -> ir.Value:
        kinds, wide = signature.args, width.literal_value
        columns = _Columns(context, builder, kinds[1:4], args[1:4], wide, args[7])
        values = load_vector(builder, element_address(context, builder, kinds[4], args[4], args[7]), columns.kind)
        with cgutils.for_range_slice(builder, args[5], args[6], INT64(1), intp=INT64) as (position, _):
            address = columns.row_of(position)
            if wide >= CACHE_LINE:  # slower for fewer columns; the first line of the next group is included
                columns.prefetch(position, ADD_DISTANCE, args[8], range(0, wide + 1, CACHE_LINE))
            before = load_vector(builder, address, columns.kind)
            store_vector(builder, multiply_add(builder, before, columns.factor(position), values), address)
        return context.get_dummy_value()

    return types.void(width, table, indices, data, row, *[types.int64] * 4), emit


@inline
def add_scaled_row(table: Array, indices: Array, data: Array, row: Array, begin: int, end: int, last: int) -> None:
    """Add data[p] row to table[indices[p]], p from begin to end, in groups of columns that do not overlap.

    Arrays are C-ordered, table and row float64. Table rows are prefetched, reading indices up to entry `last`.
    """
    K = row.size
    c = 0
    while K - c >= 16:
        _add_columns(16, table, indices, data, row, begin, end, c, last)
        c += 16
    if K - c >= 8:
        _add_columns(8, table, indices, data, row, begin, end, c, last)
        c += 8
    if K - c >= 4:
        _add_columns(4, table, indices, data, row, begin, end, c, last)
        c += 4
    if K - c >= 2:
        _add_columns(2, table, indices, data, row, begin, end, c, last)
        c += 2
    if K - c == 1:
        _add_columns(1, table, indices, data, row, begin, end, c, last)


@intrinsic(prefer_literal=True)
def _products(
    typing: Context,
    width: types.IntegerLiteral,
    table: types.Array,
    indices: types.Array,
    row: types.Array,
    out: types.Array,
    begin: types.Integer,
    end: types.Integer,
) -> Any:
    """Do what `row_products` does for tables whose number of columns is a multiple of `width`, a literal."""

    def emit(context: BaseContext, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value]) -> ir.Value:
        kinds, wide = signature.args, width.literal_value
        columns = _Columns(context, builder, kinds[1:3], args[1:3], wide, INT64(0))
        zero = ir.Constant(columns.kind, [0.0] * wide)
        total = cgutils.alloca_once_value(builder, zero)
        groups = builder.sdiv(columns.row_size, INT64(wide))
        with cgutils.for_range_slice(builder, args[5], args[6], INT64(1), intp=INT64) as (position, _):
            start = columns.row_of(position)
            builder.store(zero, total)
            with cgutils.for_range(builder, groups, intp=INT64) as loop:
                column = builder.mul(loop.index, INT64(wide))
                numbers = load_vector(builder, builder.gep(start, [column]), columns.kind, columns.align)
                factors = element_address(context, builder, kinds[3], args[3], column)
                factors = load_vector(builder, factors, columns.kind, columns.align)
                builder.store(multiply_add(builder, builder.load(total), numbers, factors), total)
            place = element_address(context, builder, kinds[4], args[4], builder.sub(position, args[5]))
            builder.store(add_lanes(builder, builder.load(total)), place)
        return context.get_dummy_value()

    return types.void(width, table, indices, row, out, types.int64, types.int64), emit


@inline
def row_products(table: Array, indices: Array, row: Array, out: Array, begin: int, end: int) -> None:
    """Set out[p − begin] to Σ_c row[c] table[indices[p], c], p from begin to end.

    Arrays are C-ordered and of one type; the number of columns is a multiple of 4.
    """
    if row.size % 8 == 0:
        _products(8, table, indices, row, out, begin, end)
    else:
        _products(4, table, indices, row, out, begin, end)


# -- exp ---------------------------------------------------------------------------------------------------------------
LOG2_E = 1.4426950408889634
# log 2 in two parts; the first has trailing zeros, so that its product with an exponent is exact.
LOG_2_HIGH, LOG_2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
# Adding 1.5 · 2⁵² rounds to an integer and leaves it in the low bits.
ROUND = 6755399441055744.0
LOWEST = -708.0  # exp of less is below the normal numbers: taken for 0


@inline
def exp(x: float) -> float:
    """Return eˣ for x ≤ 709 within 1 unit in the last place: 2ⁿ eʳ with |r| ≤ ½ log 2. NaN gives NaN.

    A polynomial without branches or calls, so that LLVM vectorises loops over it.
    """
    shifted = x * LOG2_E + ROUND
    n = shifted - ROUND
    r = (x - n * LOG_2_HIGH) - n * LOG_2_LOW
    p = 1 / 6227020800.0  # Taylor's series to r¹³/13!
    p = p * r + 1 / 479001600.0
    p = p * r + 1 / 39916800.0
    p = p * r + 1 / 3628800.0
    p = p * r + 1 / 362880.0
    p = p * r + 1 / 40320.0
    p = p * r + 1 / 5040.0
    p = p * r + 1 / 720.0
    p = p * r + 1 / 120.0
    p = p * r + 1 / 24.0
    p = p * r + 1 / 6.0
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    power_of_two = np.int64((np.float64(shifted).view(np.int64) + 1023) << 52).view(np.float64)
    return 0.0 if x < LOWEST else p * power_of_two
