r"""Documents to word numbers: two or more word characters in a row, as `\b\w\w+\b` finds them."""

from __future__ import annotations

import numpy as np

from deciban.kernels.choice import Array
from deciban.kernels.jit import kernel, part
from deciban.text.kernels.characters import (
    PADDING,
    SPACE,
    WIDTH,
    address,
    byte,
    decode,
    lowest_bit,
    mark_words,
    set_bits,
    set_byte,
)
from deciban.text.kernels.table import BATCH, HANDLED, SKIP, flush, note

EDGES = 2 * BATCH + 8  # room for the edges of a batch of words, and for those written in vain


@part
def _note_edges(mask: int, carry: int, first: int, edges: Array, n: int) -> int:
    """Append where runs of word characters begin and end, in turn; the number of edges there are then.

    Eight are written at a time, needed or not: to know how many would cost more, as it cannot be foreseen.
    """
    left = mask ^ ((mask << np.uint64(1)) | carry)
    number = set_bits(left)
    for i in range(0, number, 8):
        for j in range(8):
            edges[np.uint64(n + i + j)] = first + lowest_bit(left)
            left &= left - np.uint64(1)
    return n + number


@part
def _character_bytes(lead: int) -> int:
    """How many bytes a character has, by its first."""
    return 1 + (lead >= 0xC0) + (lead >= 0xE0) + (lead >= 0xF0)


@part
def _fill(edges: Array, number: int, low: Array, slots: Array, batch: Array) -> int:
    """Put runs of two or more characters into the batch; how many."""
    base = address(low)
    n = 0
    for at in range(0, number - 1, 2):
        start = np.int64(edges[np.uint64(at)])
        length = edges[np.uint64(at + 1)] - start
        note(batch, n, base + start, start, length, slots)
        n += length > _character_bytes(byte(base + start))
    return n


@kernel
def read_words(
    text: Array,
    offsets: Array,
    first: int,
    points: Array,
    case: int,
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
    """Append word numbers of documents from `first` on to `ids`, and add how many to `lengths`.

    Returns the document at which it stopped because `low` is too short or the table too full; it goes on from there,
    even in the middle of a document. A document that needs care or is not UTF-8 has that said in `lengths`.
    """
    state[SKIP] = state[HANDLED]
    for d in range(first, offsets.size - 1):
        begin, end = offsets[d], offsets[d + 1]
        if end - begin + PADDING > low.size:
            return d
        blocks = mark_words(text, begin, end, points, case, low, masks, lengths, d)
        block, number = 0, 0
        carry = np.uint64(0)
        while block <= blocks:
            while block <= blocks and number <= 2 * BATCH - WIDTH:
                mask = masks[block, 0]
                number = _note_edges(mask, carry, block * WIDTH, edges, number)
                carry = mask >> np.uint64(63)
                block += 1
            n = _fill(edges, number, low, slots, batch)
            if not flush(batch, n, end - begin, low, unknown, slots, arena, state, ids, lengths, d):
                return d
            edges[0] = edges[number - 1]  # a run that has begun is finished in the next batch
            number &= 1
        state[HANDLED] = 0
    return offsets.size - 1


# -- characters ----------
# Documents to numbers of runs of characters, anywhere in the text or within its words.
#
# White space counts as scikit-learn has it: two or more in a row are one space. Within words means: every word between
# two spaces of its own; one that is too short for a run counts once as a whole.

_BLANK = 0x20


@part
def _tidy(size: int, points: Array, within: bool, low: Array, clean: Array, starts: Array) -> int:
    """Copy a text without spare white space, and note where its characters begin; the number of characters.

    Within words every white space is one space, and there is one at either end.
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
            to = starts[n - 1]  # the one before becomes a space
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
    """Append numbers of runs of `lowest` to `highest` characters; otherwise as `read_words`."""
    base = address(clean)
    state[SKIP] = state[HANDLED]
    for d in range(first, offsets.size - 1):
        begin, end = offsets[d], offsets[d + 1]
        if end - begin + PADDING > low.size:
            return d
        if mark_words(text, begin, end, points, case, low, masks, lengths, d) < 0:
            continue
        characters = _tidy(end - begin, points, within, low, clean, starts)
        n, total = 0, 0
        opens = 0
        while opens + within < characters:
            # A window is what runs must lie in: the whole text, or a word with its two spaces.
            closes = characters
            if within:
                closes = opens + 1
                while byte(base + starts[closes]) != _BLANK:
                    closes += 1
                closes += 1
            for run in range(lowest, highest + 1):
                number = closes - opens - run + 1
                for i in range(opens, opens + max(number, np.int64(within))):
                    length = starts[min(i + run, closes)] - starts[i]
                    note(batch, n, base + starts[i], starts[i], length, slots)
                    n += 1
                    total += length
                    if n == BATCH:
                        if not flush(batch, n, total, clean, unknown, slots, arena, state, ids, lengths, d):
                            return d
                        n, total = 0, 0
                if within and number <= 1:
                    break  # a short word counts once
            opens = closes - within
        if not flush(batch, n, total, clean, unknown, slots, arena, state, ids, lengths, d):
            return d
        state[HANDLED] = 0
    return offsets.size - 1
