"""A document's bytes in lower case, and a bit for every byte of a word character.

UTF-8 is checked on the way: whatever the bytes, nothing outside the document is read.
"""

from __future__ import annotations

import numpy as np

from ..choice import Array
from ..jit import part
from .code_points import CARE, LOWER, WORD
from .instructions import WIDTH, address, byte, classify, lowest_bit, set_byte

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
