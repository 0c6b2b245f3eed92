"""Characters: a table of all code points, and lower case and word characters of a document in UTF-8."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from llvmlite import ir

from deciban.kernels.choice import Array
from deciban.kernels.intrinsics import INT32, INT64, broadcast, element_address, load_vector, store_vector
from deciban.kernels.jit import inline, intrinsic, types
from deciban.text.kernels.scripts import EMOJI, WITHOUT_SPACES, marks

if TYPE_CHECKING:
    from deciban.kernels.jit import BaseContext, Context, Signature

# -- table of code points ----------------------------------------------------------------------------------------------
# One number per code point: its lower case in the low 21 bits, flags above. Python's own `str.lower` and `re` define
# them, so that kernels agree with Python for any version of Unicode.
LOWER = 0x1FFFFF  # mask of the lower case
WORD = 1 << 24  # \w
SPACE = 1 << 25  # \s
IN_PYTHON = 1 << 26  # texts that hold the character must be prepared in Python

_ALL = 0x110000
_COMMON = 0x20000  # the first two planes hold nearly all characters in use, and are tabulated in an eighth of the time
_BLOCK = 4096  # code points that are compared with their lower case at once


@cache
def code_points(lowercase: bool = True, strip_accents: bool = False, by_script: bool = False) -> Array:
    """Return the table of the first two planes, int32.

    A character must be handled in Python if its lower case has another number of bytes or depends on its neighbours, or
    if it is beyond the table; if accents are stripped, so must all characters outside ASCII; with `by_script`, so must
    emoji and the characters of scripts without spaces.

    >>> table = code_points()
    >>> chr(table[ord("Ä")] & LOWER), bool(table[ord("Ä")] & WORD), bool(table[ord("Σ")] & IN_PYTHON)
    ('ä', True, True)
    """
    table, characters = _flagged(_COMMON)
    if lowercase:
        _lower(table, characters)
    if strip_accents:
        table[128:] |= IN_PYTHON
    if by_script:
        for first, last in (*WITHOUT_SPACES, *EMOJI):
            table[first : last + 1] |= IN_PYTHON
    return table


@cache
def prepared_points(by_script: bool = False) -> Array:
    """Return the table of all code points for texts that Python has prepared, int32.

    With `by_script`, emoji and the combining marks of scripts without spaces are parts of words, too.
    """
    table, _ = _flagged(_ALL)
    if by_script:
        table[[ord(mark) for mark in marks()]] |= WORD
        for first, last in EMOJI:
            table[first : last + 1] |= WORD
    return table


def _flagged(size: int) -> tuple[Array, str]:
    """Return a table of the first code points with the flags of words and spaces, and these characters."""
    table = np.arange(size, dtype=np.int32)
    characters = table.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")
    for flag, pattern in ((WORD, r"\w+"), (SPACE, r"\s+")):
        for run in re.finditer(pattern, characters):
            table[run.start() : run.end()] |= flag
    return table, characters


def _lower(table: Array, characters: str) -> None:
    """Enter the lower case of every character, and its flags."""
    for start in range(0, len(table), _BLOCK):
        piece = characters[start : start + _BLOCK]
        if piece == piece.lower():
            continue
        for at, character in enumerate(piece, start):
            small = character.lower()
            if small == character:
                continue
            if character == "Σ" or len(small) > 1 or len(small.encode()) != len(character.encode()):
                table[at] |= IN_PYTHON
            else:
                table[at] = table[ord(small)]


# -- bytes and bits ----------------------------------------------------------------------------------------------------
# Positions are bytes from the start of an array, addresses are those of this process; neither is checked. Numbers are
# little-endian.
WIDTH = 64  # bytes, or numbers, that are compared at once, for one bit of a mask each

_BYTE = ir.IntType(8)
_BYTES = ir.VectorType(_BYTE, WIDTH)


def _constant(value: int) -> ir.Constant:
    return ir.Constant(_BYTES, [value] * WIDTH)


def _in_range(builder: ir.IRBuilder, block: ir.Value, first: int, number: int) -> ir.Value:
    """Emit whether bytes are in first … first + number − 1: smaller ones wrap around and are large."""
    return builder.icmp_unsigned("<", builder.sub(block, _constant(first)), _constant(number))


@intrinsic
def classify(
    typing: Context, text: types.Array, at: types.Integer, low: types.Array, to: types.Integer, case: types.Integer
) -> Any:
    """Copy 64 bytes of `text` to `low`; two masks: ASCII letters, digits and _; bytes that are not ASCII.

    `case` is added to capital letters: 32 makes them lower case, 0 keeps them.
    """

    def emit(context: BaseContext, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value]) -> ir.Value:
        source = element_address(context, builder, signature.args[0], args[0], args[1])
        target = element_address(context, builder, signature.args[2], args[2], args[3])
        block = load_vector(builder, source, _BYTES, align=1)
        capital = _in_range(builder, block, ord("A"), 26)
        added = builder.select(capital, broadcast(builder, args[4], WIDTH), _constant(0))
        store_vector(builder, builder.add(block, added), target, align=1)
        letter = _in_range(builder, builder.or_(block, _constant(32)), ord("a"), 26)
        digit = _in_range(builder, block, ord("0"), 10)
        word = builder.or_(builder.or_(letter, digit), builder.icmp_unsigned("==", block, _constant(ord("_"))))
        other = builder.icmp_signed("<", block, _constant(0))
        masks = [builder.bitcast(word, INT64), builder.bitcast(other, INT64)]
        return context.make_tuple(builder, signature.return_type, masks)

    return types.UniTuple(types.uint64, 2)(text, types.intp, low, types.intp, types.uint8), emit


@intrinsic
def below_and_equal(typing: Context, numbers: types.Array, value: types.Integer) -> Any:
    """Two masks of the first 64 numbers of an int32 array: those below a value, and those equal to it."""
    many = ir.VectorType(INT32, WIDTH)

    def emit(context: BaseContext, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value]) -> ir.Value:
        start = element_address(context, builder, signature.args[0], args[0], INT64(0))
        block = load_vector(builder, start, many, align=4)
        wanted = broadcast(builder, args[1], WIDTH)
        masks = [builder.bitcast(builder.icmp_signed(sign, block, wanted), INT64) for sign in ("<", "==")]
        return context.make_tuple(builder, signature.return_type, masks)

    return types.UniTuple(types.uint64, 2)(numbers, types.int32), emit


@intrinsic
def address(typing: Context, array: types.Type) -> Any:
    """Address of an array's first element. Inlined functions take addresses: arrays would be reference-counted."""

    def emit(context: BaseContext, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value]) -> ir.Value:
        return builder.ptrtoint(element_address(context, builder, signature.args[0], args[0], INT64(0)), INT64)

    return types.int64(array), emit


@intrinsic
def pointer(typing: Context, at: types.Integer, kind: types.Type) -> Any:
    """Cast an address to a pointer to numbers of a type."""

    def emit(context: BaseContext, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value]) -> ir.Value:
        return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

    return types.CPointer(kind.dtype)(types.int64, kind), emit


@intrinsic
def eight_bytes(typing: Context, at: types.Integer) -> Any:
    """Load the eight bytes at an address as one number."""

    def emit(context: BaseContext, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value]) -> ir.Value:
        return builder.load(builder.inttoptr(args[0], INT64.as_pointer()), align=1)

    return types.uint64(types.int64), emit


@intrinsic
def byte(typing: Context, at: types.Integer) -> Any:
    """Load the byte at an address."""

    def emit(context: BaseContext, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value]) -> ir.Value:
        return builder.zext(builder.load(builder.inttoptr(args[0], _BYTE.as_pointer())), INT64)

    return types.int64(types.int64), emit


@intrinsic
def set_byte(typing: Context, at: types.Integer, value: types.Integer) -> Any:
    """Store a byte at an address."""

    def emit(context: BaseContext, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value]) -> ir.Value:
        builder.store(builder.trunc(args[1], _BYTE), builder.inttoptr(args[0], _BYTE.as_pointer()))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), emit


@intrinsic
def set_eight_bytes(typing: Context, at: types.Integer, value: types.Integer) -> Any:
    """Store eight bytes at an address."""

    def emit(context: BaseContext, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value]) -> ir.Value:
        builder.store(args[1], builder.inttoptr(args[0], INT64.as_pointer()), align=1)
        return context.get_dummy_value()

    return types.void(types.int64, types.uint64), emit


@intrinsic
def lowest_bit(typing: Context, mask: types.Integer) -> Any:
    """Position of the lowest set bit; 64 if no bit is set."""

    def emit(context: BaseContext, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value]) -> ir.Value:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), emit


@intrinsic
def set_bits(typing: Context, mask: types.Integer) -> Any:
    """Number of set bits."""

    def emit(context: BaseContext, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value]) -> ir.Value:
        return builder.ctpop(args[0])

    return types.int64(types.uint64), emit


# -- word characters of a document -------------------------------------------------------------------------------------
# UTF-8 is checked on the way: for any bytes, nothing outside the document is read.
NEEDS_PYTHON = -1  # return code: the document must be lower-cased and stripped in Python
INVALID = -2  # return code: the document is not UTF-8
PADDING = 2 * WIDTH  # bytes after a document that may be written or read


@inline
def decode(at: int, size: int) -> tuple[int, int]:
    """Decode the code point at an address whose first byte is ≥ 128; point and its bytes, (−1, 0) if not UTF-8.

    `size` is the number of bytes to the end of the document.
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


@inline
def encode(at: int, length: int, point: int) -> None:
    """Store a code point of two, three or four bytes at an address."""
    for i in range(length - 1, 0, -1):
        set_byte(at + i, 0x80 | (point & 0x3F))
        point >>= 6
    set_byte(at, (0xF00 >> length) & 0xFF | point)


@inline
def _classify_non_ascii(size: int, blocks: int, table: Array, low: Array, masks: Array) -> int:
    """Lower-case characters outside ASCII, and set bits of word characters; the number of blocks or a return code."""
    base = address(low)
    beyond = 0  # the first byte after the last character
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
                return NEEDS_PYTHON
            info = table[np.uint64(point)]
            if info & IN_PYTHON:
                return NEEDS_PYTHON
            if info & LOWER != point:
                encode(base + at, length, info & LOWER)
            if info & WORD:
                for i in range(at, beyond):
                    masks[i >> 6, 0] |= np.uint64(1) << np.uint64(i & 63)
    return blocks


@inline
def classify_document(
    text: Array, begin: int, end: int, table: Array, case: int, low: Array, masks: Array, lengths: Array, d: int
) -> int:
    """Write a document in lower case to `low`, and its bitmap of word characters, a bit per byte, to masks[:, 0].

    Returns the number of blocks of 64 bytes, or a return code (NEEDS_PYTHON, INVALID), which is written to lengths[d]
    too. `low` must have PADDING bytes more than the document, `masks` two rows more than blocks; masks[:, 1] is the
    bitmap of bytes that are not ASCII, and masks[blocks, 0] is set to 0.
    """
    size = end - begin
    blocks = (size + WIDTH - 1) // WIDTH
    any_non_ascii = np.uint64(0)
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
        any_non_ascii |= other
    masks[blocks, 0] = 0
    if any_non_ascii != 0:
        blocks = _classify_non_ascii(size, blocks, table, low, masks)
        if blocks < 0:
            lengths[d] = blocks
    return blocks
