"""Adding a scaled row to several rows of a table, the scaled row held in vector registers."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from .choice import Array
from .intrinsics import LINE, _emit_prefetch
from .jit import cgutils, intrinsic, part, types

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
