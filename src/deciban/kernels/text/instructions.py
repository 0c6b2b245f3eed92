"""Sixty-four bytes at a time, and words of eight bytes from anywhere: what numba has no name for.

Positions are bytes from the start of an array, addresses are of this process; nothing is checked here.
Numbers are little-endian.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ..jit import intrinsic, types

WIDTH = 64  # bytes classified at once, a bit of a mask for each

_BYTE, _INT32, _INT64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
_BLOCK = ir.VectorType(_BYTE, WIDTH)


def _all(value: int) -> Any:
    return ir.Constant(_BLOCK, [value] * WIDTH)


def _spread(builder: Any, value: Any) -> Any:
    """The same value in every place."""
    nothing = ir.Constant(ir.VectorType(value.type, WIDTH), ir.Undefined)
    first = ir.Constant(ir.VectorType(_INT32, WIDTH), [0] * WIDTH)
    return builder.shuffle_vector(builder.insert_element(nothing, value, _INT32(0)), nothing, first)


def _at(context: Any, builder: Any, kind: Any, array: Any, position: Any) -> Any:
    return builder.gep(context.make_array(kind)(context, builder, array).data, [position])


def _within(builder: Any, block: Any, first: int, number: int) -> Any:
    """Which bytes lie among `number` from `first` on: what lies below wraps round and is large."""
    return builder.icmp_unsigned("<", builder.sub(block, _all(first)), _all(number))


@intrinsic
def classify(typing: Any, text: Any, at: Any, low: Any, to: Any, case: Any) -> Any:
    """Copy 64 bytes of `text` to `low`; two masks: ASCII letters, digits and _; bytes that are not ASCII.

    `case` is added to capital letters: 32 makes them small, 0 leaves them.
    """

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        source = _at(context, builder, signature.args[0], args[0], args[1])
        target = _at(context, builder, signature.args[2], args[2], args[3])
        block = builder.load(builder.bitcast(source, _BLOCK.as_pointer()), align=1)
        added = builder.select(_within(builder, block, ord("A"), 26), _spread(builder, args[4]), _all(0))
        builder.store(builder.add(block, added), builder.bitcast(target, _BLOCK.as_pointer()), align=1)
        letter = _within(builder, builder.or_(block, _all(32)), ord("a"), 26)
        digit = _within(builder, block, ord("0"), 10)
        word = builder.or_(builder.or_(letter, digit), builder.icmp_unsigned("==", block, _all(ord("_"))))
        other = builder.icmp_signed("<", block, _all(0))
        masks = [builder.bitcast(word, _INT64), builder.bitcast(other, _INT64)]
        return context.make_tuple(builder, signature.return_type, masks)

    return types.UniTuple(types.uint64, 2)(text, types.intp, low, types.intp, types.uint8), emit


@intrinsic
def below_and_equal(typing: Any, numbers: Any, value: Any) -> Any:
    """Two masks of the first 64 of an int32 array: which lie below a value, and which are equal to it."""
    many = ir.VectorType(_INT32, WIDTH)

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        start = _at(context, builder, signature.args[0], args[0], _INT64(0))
        block = builder.load(builder.bitcast(start, many.as_pointer()), align=4)
        wanted = _spread(builder, args[1])
        masks = [builder.bitcast(builder.icmp_signed(sign, block, wanted), _INT64) for sign in ("<", "==")]
        return context.make_tuple(builder, signature.return_type, masks)

    return types.UniTuple(types.uint64, 2)(numbers, types.int32), emit


@intrinsic
def address(typing: Any, array: Any) -> Any:
    """Where an array's first element is. Small functions take addresses: passing arrays means counting their owners."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        return builder.ptrtoint(data, _INT64)

    return types.int64(array), emit


@intrinsic
def pointer(typing: Any, at: Any, kind: Any) -> Any:
    """An address as one of numbers of a kind."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

    return types.CPointer(kind.dtype)(types.int64, kind), emit


@intrinsic
def eight_bytes(typing: Any, at: Any) -> Any:
    """The eight bytes from an address on, as one number."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load(builder.inttoptr(args[0], _INT64.as_pointer()), align=1)

    return types.uint64(types.int64), emit


@intrinsic
def byte(typing: Any, at: Any) -> Any:
    """The byte at an address."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.zext(builder.load(builder.inttoptr(args[0], _BYTE.as_pointer())), _INT64)

    return types.int64(types.int64), emit


@intrinsic
def set_byte(typing: Any, at: Any, value: Any) -> Any:
    """Write a byte at an address."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store(builder.trunc(args[1], _BYTE), builder.inttoptr(args[0], _BYTE.as_pointer()))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), emit


@intrinsic
def set_eight_bytes(typing: Any, at: Any, value: Any) -> Any:
    """Write eight bytes from an address on."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store(args[1], builder.inttoptr(args[0], _INT64.as_pointer()), align=1)
        return context.get_dummy_value()

    return types.void(types.int64, types.uint64), emit


@intrinsic
def lowest_bit(typing: Any, mask: Any) -> Any:
    """The position of the lowest set bit; 64 where there is none."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), emit


@intrinsic
def set_bits(typing: Any, mask: Any) -> Any:
    """How many bits are set."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.int64(types.uint64), emit
