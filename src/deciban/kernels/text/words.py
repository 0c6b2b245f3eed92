r"""Documents to word numbers: two or more word characters in a row, as `\b\w\w+\b` finds them."""

from __future__ import annotations

import numpy as np

from ..choice import Array
from ..jit import kernel, part
from .instructions import WIDTH, address, byte, lowest_bit, set_bits
from .marks import PADDING, mark_words
from .table import BATCH, HANDLED, SKIP, flush, note

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
