"""Instructions that numba has no name for: prefetches, and sums held in vector registers."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from deciban.kernels.jit import cgutils, intrinsic, types

_BYTES = ir.IntType(8).as_pointer()
_INT32, _INT64 = ir.IntType(32), ir.IntType(64)

LINE = 8  # float64 values in a cache line


AHEAD = 32  # entries between asking for a table row and adding it


def _emit_prefetch(builder: Any, address: Any) -> None:
    read, keep, data = _INT32(0), _INT32(3), _INT32(1)
    form = ir.FunctionType(ir.VoidType(), [_BYTES, _INT32, _INT32, _INT32])
    function = builder.module.declare_intrinsic("llvm.prefetch", (_BYTES,), form)
    builder.call(function, [builder.bitcast(address, _BYTES), read, keep, data])


@intrinsic
def prefetch(typing: Any, array: Any, position: Any) -> Any:
    """Ask for the cache line that holds the array's element at a flat position.

    The position may lie outside the array: it is a hint, and wrong hints are ignored.
    """

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        start = context.make_array(signature.args[0])(context, builder, args[0]).data
        _emit_prefetch(builder, builder.gep(start, [args[1]]))
        return context.get_dummy_value()

    return types.void(array, types.intp), emit


class _RowSum:
    """The loop of `sum_rows` and `sum_scaled_rows`: terms are added in turn to two vectors of `width` numbers.

    Two, because an addition must wait for the one before it in the same vector.
    """

    def __init__(self, context: Any, builder: Any, kinds: Any, arrays: Any, width: int, column: Any) -> None:
        made = [context.make_array(kind)(context, builder, array) for kind, array in zip(kinds, arrays)]
        self.table, self.indices, self.bias, self.out = made[:4]
        self.data = made[4] if len(made) > 4 else None
        self.context, self.builder, self.kinds, self.width, self.column = context, builder, kinds, width, column
        self.vector = ir.VectorType(ir.DoubleType(), width)

    def at(self, array: Any, row: Any = None) -> Any:
        """Where the strip of columns begins in a row of the array."""
        place = self.column
        if row is not None:
            columns = cgutils.unpack_tuple(self.builder, array.shape)[-1]
            place = self.builder.add(self.builder.mul(row, columns), place)
        return self.builder.gep(array.data, [place])

    def load(self, address: Any) -> Any:
        return self.builder.load(self.builder.bitcast(address, self.vector.as_pointer()), align=8)

    def index(self, position: Any) -> Any:
        loaded = self.builder.load(self.builder.gep(self.indices.data, [position]))
        return self.context.cast(self.builder, loaded, self.kinds[1].dtype, types.int64)

    def term(self, position: Any) -> Any:
        row = self.load(self.at(self.table, self.index(position)))
        if self.data is None:
            return row
        builder, nothing = self.builder, ir.Constant(self.vector, ir.Undefined)
        loaded = builder.load(builder.gep(self.data.data, [position]))
        value = self.context.cast(builder, loaded, self.kinds[4].dtype, types.float64)
        spread = builder.insert_element(nothing, value, _INT32(0))
        first = ir.Constant(ir.VectorType(_INT32, self.width), [0] * self.width)
        return builder.fmul(builder.shuffle_vector(spread, nothing, first), row, flags=["contract"])

    def fetch(self, position: Any, last: Any) -> None:
        """Ask for the table row of a later entry."""
        builder = self.builder
        later = builder.add(position, _INT64(AHEAD))
        later = builder.select(builder.icmp_signed("<", later, last), later, last)
        start = self.at(self.table, self.index(later))
        for offset in {*range(0, self.width, LINE), self.width - 1}:
            _emit_prefetch(builder, builder.gep(start, [_INT64(offset)]))

    def emit(self, begin: Any, end: Any, last: Any, row: Any) -> Any:
        builder, zero = self.builder, ir.Constant(self.vector, [0.0] * self.width)
        totals = [cgutils.alloca_once_value(builder, start) for start in (self.load(self.at(self.bias)), zero)]

        def add(position: Any, total: Any) -> None:
            # Narrow strips are so little work that the processor itself runs far enough ahead.
            if self.data is not None and self.width >= 4:
                self.fetch(position, last)
            builder.store(builder.fadd(builder.load(total), self.term(position), flags=["contract"]), total)

        pairs = builder.ashr(builder.sub(end, begin), _INT64(1))
        with cgutils.for_range(builder, pairs) as loop:
            position = builder.add(begin, builder.shl(loop.index, _INT64(1)))
            add(position, totals[0])
            add(builder.add(position, _INT64(1)), totals[1])
        rest = builder.add(begin, builder.shl(pairs, _INT64(1)))
        with builder.if_then(builder.icmp_signed("<", rest, end)):
            add(rest, totals[0])
        total = builder.fadd(builder.load(totals[0]), builder.load(totals[1]))
        target = builder.bitcast(self.at(self.out, row), self.vector.as_pointer())
        builder.store(total, target, align=8)
        return self.context.get_dummy_value()


@intrinsic(prefer_literal=True)
def sum_rows(
    typing: Any, width: Any, table: Any, indices: Any, bias: Any, out: Any, begin: Any, end: Any, row: Any, column: Any
) -> Any:
    """Set out[row, c] to bias[c] + Σ table[indices[p], c], p from begin to end, for c of column … column + width − 1.

    `width` is a literal. Arrays are C-ordered, the table float64, indices any integers; nothing is checked.
    """

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        strip = _RowSum(context, builder, signature.args[1:5], args[1:5], width.literal_value, args[8])
        return strip.emit(args[5], args[6], None, args[7])

    positions = [types.int64] * 4
    return types.void(width, table, indices, bias, out, *positions), emit


@intrinsic(prefer_literal=True)
def sum_scaled_rows(
    typing: Any,
    width: Any,
    table: Any,
    indices: Any,
    bias: Any,
    out: Any,
    data: Any,
    begin: Any,
    end: Any,
    last: Any,
    row: Any,
    column: Any,
) -> Any:
    """As `sum_rows`, each table row times data[p]. Asks for rows in advance, reading indices up to the last entry."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        strip = _RowSum(context, builder, signature.args[1:6], args[1:6], width.literal_value, args[10])
        return strip.emit(args[6], args[7], args[8], args[9])

    positions = [types.int64] * 5
    return types.void(width, table, indices, bias, out, data, *positions), emit
