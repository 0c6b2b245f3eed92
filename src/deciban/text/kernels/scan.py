r"""Documents to ids of words, as `\b\w\w+\b` finds them, or of n-grams of characters."""

from __future__ import annotations

import numpy as np

from deciban.kernels.choice import Array
from deciban.kernels.jit import inline, kernel
from deciban.text.kernels.characters import (
    PADDING,
    SPACE,
    WIDTH,
    address,
    byte,
    classify_document,
    decode,
    lowest_bit,
    set_bits,
    set_byte,
)
from deciban.text.kernels.hash_tables import BATCH, HANDLED, KEY, SKIP, hash_key, put_in_batch, write_batch

# -- words -------------------------------------------------------------------------------------------------------------
EDGES = 2 * BATCH + 8  # edges of a batch of words, and those that are written in excess


@inline
def _append_edges(mask: int, carry: int, first: int, edges: Array, n: int) -> int:
    """Append begins and ends of runs of word characters, in turn; the number of edges in all.

    Eight are written at a time, without a branch on their number, which would often be mispredicted.
    """
    left = mask ^ ((mask << np.uint64(1)) | carry)
    number = set_bits(left)
    for i in range(0, number, 8):
        for j in range(8):
            edges[np.uint64(n + i + j)] = first + lowest_bit(left)
            left &= left - np.uint64(1)
    return n + number


@inline
def _character_bytes(lead: int) -> int:
    """Return the number of bytes of a character, from its first byte."""
    return 1 + (lead >= 0xC0) + (lead >= 0xE0) + (lead >= 0xF0)


@inline
def _fill_batch(edges: Array, number: int, low: Array, lone: int, slots: Array, state: Array, batch: Array) -> int:
    """Put runs of two or more characters, or of one whose first byte is ≥ `lone`, into the batch; their number."""
    base, key = address(low), hash_key(state, KEY)
    n = 0
    for at in range(0, number - 1, 2):
        start = np.int64(edges[np.uint64(at)])
        length = edges[np.uint64(at + 1)] - start
        put_in_batch(batch, n, base + start, start, length, slots, key)
        lead = byte(base + start)
        n += (length > _character_bytes(lead)) | (lead >= lone)
    return n


@kernel
def read_words(
    text: Array,
    offsets: Array,
    first: int,
    points: Array,
    case: int,
    lone: int,
    unknown: int,
    slots: Array,
    arena: Array,
    state: Array,
    low: Array,
    masks: Array,
    edges: Array,
    batch: Array,
    ids: Array,
    lengths: Array,
) -> int:
    """Append the word ids of documents from `first` on to `ids`, and add their number to `lengths`.

    Returns the number of documents that are done. It is less than all if `low` is too short or the table full; the next
    call continues there, even in the middle of a document. `lengths` holds a return code (NEEDS_PYTHON, INVALID) for
    documents that were not read.
    """
    state[SKIP] = state[HANDLED]
    for d in range(first, offsets.size - 1):
        begin, end = offsets[d], offsets[d + 1]
        if end - begin + PADDING > low.size:
            return d
        blocks = classify_document(text, begin, end, points, case, low, masks, lengths, d)
        block, number = 0, 0
        carry = np.uint64(0)
        while block <= blocks:
            while block <= blocks and number <= 2 * BATCH - WIDTH:
                mask = masks[block, 0]
                number = _append_edges(mask, carry, block * WIDTH, edges, number)
                carry = mask >> np.uint64(63)
                block += 1
            n = _fill_batch(edges, number, low, lone, slots, state, batch)
            if not write_batch(batch, n, low, unknown, slots, arena, state, ids, lengths, d):
                return d
            edges[0] = edges[number - 1]  # a run that ends in a later block goes to the next batch
            number &= 1
        state[HANDLED] = 0
    return offsets.size - 1


# -- n-grams of characters ---------------------------------------------------------------------------------------------
# As scikit-learn: two or more white-space characters in a row become one space. Within words (`char_wb`), n-grams are
# taken of each word with a space at either end; a word that is too short for an n-gram counts once, as a whole.
_BLANK = 0x20


@inline
def _clean_space(size: int, points: Array, within: bool, low: Array, clean: Array, starts: Array) -> int:
    """Copy a text with its white space collapsed, and write where its characters begin; the number of characters.

    If `within`, all white space becomes a space, and there is one at either end of the text.
    """
    source, target = address(low), address(clean)
    at, to, n = 0, 0, 0
    spaces = 0  # in a row, up to here
    if within:
        set_byte(target, _BLANK)
        starts[0] = 0
        to, n, spaces = 1, 1, 1
    while at < size:
        point, length = byte(source + at), 1
        if point >= 0x80:
            point, length = decode(source + at, size - at)
        space = points[np.uint64(point)] & SPACE != 0
        spaces = spaces + 1 if space else 0
        if spaces >= 2:
            to = starts[n - 1]  # the white space before becomes a space
        else:
            starts[n] = to
            n += 1
        if space and (within or spaces >= 2):
            set_byte(target + to, _BLANK)
            to += 1
        else:
            for i in range(length):
                set_byte(target + to + i, byte(source + at + i))
            to += length
        at += length
    if within and spaces == 0:
        set_byte(target + to, _BLANK)
        starts[n] = to
        n += 1
        to += 1
    starts[n] = to
    return n


@kernel
def read_characters(
    text: Array,
    offsets: Array,
    first: int,
    points: Array,
    case: int,
    lowest: int,
    highest: int,
    within: bool,
    unknown: int,
    slots: Array,
    arena: Array,
    state: Array,
    low: Array,
    masks: Array,
    clean: Array,
    starts: Array,
    batch: Array,
    ids: Array,
    lengths: Array,
) -> int:
    """Append the ids of n-grams of `lowest` to `highest` characters; otherwise as `read_words`."""
    base, key = address(clean), hash_key(state, KEY)
    state[SKIP] = state[HANDLED]
    for d in range(first, offsets.size - 1):
        begin, end = offsets[d], offsets[d + 1]
        if end - begin + PADDING > low.size:
            return d
        if classify_document(text, begin, end, points, case, low, masks, lengths, d) < 0:
            continue
        characters = _clean_space(end - begin, points, within, low, clean, starts)
        n, opens = 0, 0
        while opens + within < characters:
            # From opens to closes: the whole text, or a word with its two spaces.
            closes = characters
            if within:
                closes = opens + 1
                while byte(base + starts[closes]) != _BLANK:
                    closes += 1
                closes += 1
            for size in range(lowest, highest + 1):
                number = closes - opens - size + 1
                for i in range(opens, opens + max(number, np.int64(within))):
                    length = starts[min(i + size, closes)] - starts[i]
                    put_in_batch(batch, n, base + starts[i], starts[i], length, slots, key)
                    n += 1
                    if n == BATCH:
                        if not write_batch(batch, n, clean, unknown, slots, arena, state, ids, lengths, d):
                            return d
                        n = 0
                if within and number <= 1:
                    break  # a short word counts once
            opens = closes - within
        if not write_batch(batch, n, clean, unknown, slots, arena, state, ids, lengths, d):
            return d
        state[HANDLED] = 0
    return offsets.size - 1
