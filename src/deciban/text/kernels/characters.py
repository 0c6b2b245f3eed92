"""What every code point is: its lower case, and whether it is a word character or white space.

One number per code point: the lower case in the low 21 bits, flags above. It is asked of this Python's own `str.lower`
and `re`, so kernels agree with them whatever their version of Unicode.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir

from deciban.kernels.choice import Array
from deciban.kernels.jit import intrinsic, part, types

LOWER = 0x1FFFFF  # mask of the lower case
WORD = 1 << 24  # \w
SPACE = 1 << 25  # \s
CARE = 1 << 26  # a text that holds it must be prepared in Python

_ALL = 0x110000
_COMMON = 0x20000  # the first two planes: nearly everything that is written, and asked for in an eighth of the time
_PIECE = 4096


@cache
def code_points(lowercase: bool = True, strip_accents: bool = False) -> Array:
    """The table, int32, of all code points, or of the first two planes if texts with characters beyond get care.

    A character needs care when its lower case takes another number of bytes or depends on its neighbours, or when it
    is beyond the table; every character outside ASCII does when accents are to be stripped. What was prepared in Python
    is read by the table of all, code_points(lowercase=False).

    >>> table = code_points()
    >>> chr(table[ord("Ä")] & LOWER), bool(table[ord("Ä")] & WORD), bool(table[ord("Σ")] & CARE)
    ('ä', True, True)
    """
    numbers = np.arange(_COMMON if lowercase or strip_accents else _ALL, dtype=np.int32)
    characters = numbers.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")
    table = numbers.copy()
    for flag, pattern in ((WORD, r"\w+"), (SPACE, r"\s+")):
        for run in re.finditer(pattern, characters):
            table[run.start() : run.end()] |= flag
    if lowercase:
        _lower(table, characters)
    if strip_accents:
        table[128:] |= CARE
    return table


def _lower(table: Array, characters: str) -> None:
    for start in range(0, len(table), _PIECE):
        piece = characters[start : start + _PIECE]
        if piece == piece.lower():
            continue
        for at, character in enumerate(piece, start):
            small = character.lower()
            if small == character:
                continue
            if character == "Σ" or len(small) > 1 or len(small.encode()) != len(character.encode()):
                table[at] |= CARE
            else:
                table[at] = table[ord(small)]


# -- instructions ----------
# Sixty-four bytes at a time, and words of eight bytes from anywhere: what numba has no name for.
#
# Positions are bytes from the start of an array, addresses are of this process; nothing is checked here.
# Numbers are little-endian.

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


# -- marks ----------
# A document's bytes in lower case, and a bit for every byte of a word character.
#
# UTF-8 is checked on the way: whatever the bytes, nothing outside the document is read.

NEEDS_CARE, INVALID = -1, -2  # what is said of a document instead of a number of blocks
PADDING = 2 * WIDTH  # bytes behind a document that may be written or read


@part
def decode(at: int, size: int) -> tuple[int, int]:
    """The code point that begins at an address, of a byte ≥ 128, and its bytes; (−1, 0) where that is not UTF-8.

    `size` bytes are left in the document.
    """
    lead = byte(at)
    if lead < 0xC2 or lead > 0xF4:
        return -1, 0
    length = 2 if lead < 0xE0 else (3 if lead < 0xF0 else 4)
    if length > size:
        return -1, 0
    point = lead & (0x7F >> length)
    for i in range(1, length):
        follower = byte(at + i)
        if follower & 0xC0 != 0x80:
            return -1, 0
        point = (point << 6) | (follower & 0x3F)
    if length == 3 and (point < 0x800 or 0xD800 <= point < 0xE000):
        return -1, 0
    if length == 4 and (point < 0x10000 or point > 0x10FFFF):
        return -1, 0
    return point, length


@part
def encode(at: int, length: int, point: int) -> None:
    """Write a code point of two, three or four bytes to an address."""
    for i in range(length - 1, 0, -1):
        set_byte(at + i, 0x80 | (point & 0x3F))
        point >>= 6
    set_byte(at, (0xF00 >> length) & 0xFF | point)


@part
def _mark_others(size: int, blocks: int, table: Array, low: Array, masks: Array) -> int:
    """Lower-case and mark what is not ASCII; the number of blocks, or what is said instead."""
    base = address(low)
    beyond = 0  # the first byte after the character read last
    for block in range(blocks):
        others = masks[block, 1]
        while others != 0:
            at = block * WIDTH + lowest_bit(others)
            others &= others - np.uint64(1)
            if at < beyond:
                continue
            point, length = decode(base + at, size - at)
            if point < 0:
                return INVALID
            beyond = at + length
            if point >= table.size:
                return NEEDS_CARE
            info = table[np.uint64(point)]
            if info & CARE:
                return NEEDS_CARE
            if info & LOWER != point:
                encode(base + at, length, info & LOWER)
            if info & WORD:
                for i in range(at, beyond):
                    masks[i >> 6, 0] |= np.uint64(1) << np.uint64(i & 63)
    return blocks


@part
def mark_words(
    text: Array, begin: int, end: int, table: Array, case: int, low: Array, masks: Array, lengths: Array, d: int
) -> int:
    """Fill low[: size] and masks[: blocks + 1, 0]; the number of blocks of 64 bytes, NEEDS_CARE or INVALID.

    What is said instead of a number is written to lengths[d] too.

    `low` must have PADDING bytes more than the document, `masks` two rows more than blocks; the last row is 0.
    """
    size = end - begin
    blocks = (size + WIDTH - 1) // WIDTH
    any_other = np.uint64(0)
    for block in range(blocks):
        to = block * WIDTH
        if begin + to + WIDTH <= text.size:
            word, other = classify(text, begin + to, low, to, case)
        else:
            for i in range(WIDTH):
                low[to + i] = text[begin + to + i] if begin + to + i < end else 0
            word, other = classify(low, to, low, to, case)
        if to + WIDTH > size:
            inside = (np.uint64(1) << np.uint64(size - to)) - np.uint64(1)
            word, other = word & inside, other & inside
        masks[block, 0], masks[block, 1] = word, other
        any_other |= other
    masks[blocks, 0] = 0
    if any_other != 0:
        blocks = _mark_others(size, blocks, table, low, masks)
        if blocks < 0:
            lengths[d] = blocks
    return blocks
