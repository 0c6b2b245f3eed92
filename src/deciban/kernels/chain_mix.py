"""A message times a matrix, and the product of two messages, with vectors kept in registers.

Plain loops would store and reload every partial sum, because the compiler cannot know that the arrays do not overlap.
`lanes` is a literal; `at` and `to` are flat positions; S is the width of the matrix and a multiple of 4. Arrays are
C-ordered float64, and nothing is checked.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from .jit import cgutils, intrinsic, types

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
