"""Passes over documents with few topics, in vector registers: the numbers of a document stay there for all its words.

A row of K numbers is loaded as vectors of eight. The last vector ends where the row ends, and may overlap the one
before, so that rows need no padding. In sums the overlap counts once; it is stored twice, with the same numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from llvmlite import ir

from deciban.kernels.intrinsics import INT32, INT64, broadcast, load_vector, store_vector
from deciban.kernels.jit import cgutils, intrinsic, types

if TYPE_CHECKING:
    from deciban.kernels.jit import BaseContext, Context, Signature

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
