"""Few topics: the numbers of a document stay in vector registers while its words go by.

Rows of K numbers are strips of eight, of which the last ends where the row ends, so it may overlap the one before. What
overlaps is counted once where numbers are summed, and written twice, the same, where they are stored: rows need no room
after them, whatever K is.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from deciban.kernels.choice import Array
from deciban.kernels.jit import cgutils, inline, intrinsic, types

WIDTH = 8  # numbers in a strip
MOST = 8  # strips: as many again hold the sums, which is what there are registers for
_INT32, _INT64 = ir.IntType(32), ir.IntType(64)
ANY_ORDER = ("reassoc", "contract")


class _Strips:
    """Loads, sums and stores of one row's strips."""

    def __init__(self, builder: Any, number: Any, strips: int, K: Any) -> None:
        self.builder, self.number = builder, number
        self.vector = ir.VectorType(number, WIDTH)
        self.places = [_INT64(at * WIDTH) for at in range(strips - 1)] + [builder.sub(K, _INT64(WIDTH))]

    def address(self, row: Any, place: Any) -> Any:
        return self.builder.bitcast(self.builder.gep(row, [place]), self.vector.as_pointer())

    def load(self, row: Any) -> list[Any]:
        align = 4 if isinstance(self.number, ir.FloatType) else 8
        return [self.builder.load(self.address(row, place), align=align) for place in self.places]

    def store(self, row: Any, values: list[Any]) -> None:
        align = 4 if isinstance(self.number, ir.FloatType) else 8
        for place, value in zip(self.places, values):
            self.builder.store(value, self.address(row, place), align=align)

    def once(self, values: list[Any]) -> list[Any]:
        """The last strip without what the one before holds too."""
        lanes = ir.Constant(ir.VectorType(_INT64, WIDTH), list(range(WIDTH)))
        new = self.builder.sub(_INT64((len(self.places) - 1) * WIDTH), self.places[-1])
        kept = self.builder.icmp_signed(">=", lanes, self.spread(new, _INT64))
        return [*values[:-1], self.builder.select(kept, values[-1], ir.Constant(self.vector, [0.0] * WIDTH))]

    def spread(self, value: Any, kind: Any) -> Any:
        nothing = ir.Constant(ir.VectorType(kind, WIDTH), ir.Undefined)
        first = ir.Constant(ir.VectorType(_INT32, WIDTH), [0] * WIDTH)
        return self.builder.shuffle_vector(self.builder.insert_element(nothing, value, _INT32(0)), nothing, first)

    def dot(self, one: list[Any], other: list[Any], start: Any) -> Any:
        builder, total = self.builder, None
        for a, b in zip(one, other):
            term = builder.fmul(a, b, flags=ANY_ORDER)
            total = term if total is None else builder.fadd(total, term, flags=ANY_ORDER)
        width = WIDTH
        while width > 1:  # the upper half is added to the lower
            width //= 2
            low, high = (
                builder.shuffle_vector(total, total, ir.Constant(ir.VectorType(_INT32, width), list(half)))
                for half in (range(width), range(width, 2 * width))
            )
            total = builder.fadd(low, high)
        return builder.fadd(start, builder.extract_element(total, _INT32(0)))


@intrinsic(prefer_literal=True)
def _share_out(
    typing: Any,
    strips: Any,
    table: Any,
    indices: Any,
    data: Any,
    shares: Any,
    counts: Any,
    begin: Any,
    end: Any,
    row: Any,
    tiny: Any,
) -> Any:
    """Entries begin … end of one row: counts[row] = t Σ c p/(Σ t p). `strips` is a literal."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        made = [context.make_array(kind)(context, builder, arg) for kind, arg in zip(signature.args[1:6], args[1:6])]
        table, indices, data, shares, counts = (array.data for array in made)
        begin, end, row, tiny = args[6:]
        number = context.get_data_type(signature.args[1].dtype)
        K = cgutils.unpack_tuple(builder, made[0].shape)[1]
        strip = _Strips(builder, number, strips.literal_value, K)
        start = builder.mul(row, K)
        t = strip.load(builder.gep(shares, [start]))
        once = strip.once(t)
        zero = ir.Constant(strip.vector, [0.0] * WIDTH)
        sums = [cgutils.alloca_once_value(builder, zero) for _ in t]
        with cgutils.for_range(builder, builder.sub(end, begin)) as loop:
            at = builder.add(begin, loop.index)
            loaded = builder.load(builder.gep(indices, [at]))
            word = context.cast(builder, loaded, signature.args[2].dtype, types.int64)
            p = strip.load(builder.gep(table, [builder.mul(word, K)]))
            c = builder.fdiv(builder.load(builder.gep(data, [at])), strip.dot(once, p, tiny))
            c = strip.spread(c, number)
            for total, value in zip(sums, p):
                term = builder.fmul(c, value, flags=ANY_ORDER)
                builder.store(builder.fadd(builder.load(total), term, flags=ANY_ORDER), total)
        found = [builder.fmul(builder.load(total), share) for total, share in zip(sums, t)]
        strip.store(builder.gep(counts, [start]), found)
        return context.get_dummy_value()

    places = [types.int64] * 3
    return types.void(strips, table, indices, data, shares, counts, *places, table.dtype), emit


@inline
def share_out(
    strips: int,
    table: Array,
    indices: Array,
    data: Array,
    shares: Array,
    counts: Array,
    begin: int,
    end: int,
    row: int,
    tiny: float,
) -> None:
    """One row of at most MOST strips."""
    if strips == 1:
        _share_out(1, table, indices, data, shares, counts, begin, end, row, tiny)
    elif strips == 2:
        _share_out(2, table, indices, data, shares, counts, begin, end, row, tiny)
    elif strips == 3:
        _share_out(3, table, indices, data, shares, counts, begin, end, row, tiny)
    elif strips == 4:
        _share_out(4, table, indices, data, shares, counts, begin, end, row, tiny)
    elif strips == 5:
        _share_out(5, table, indices, data, shares, counts, begin, end, row, tiny)
    elif strips == 6:
        _share_out(6, table, indices, data, shares, counts, begin, end, row, tiny)
    elif strips == 7:
        _share_out(7, table, indices, data, shares, counts, begin, end, row, tiny)
    else:
        _share_out(8, table, indices, data, shares, counts, begin, end, row, tiny)
