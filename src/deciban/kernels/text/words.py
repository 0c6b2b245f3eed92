r"""Documents to word numbers: two or more word characters in a row, as `\b\w\w+\b` finds them."""

from __future__ import annotations

import numpy as np

from ..choice import Array
from ..jit import kernel, part
from .instructions import WIDTH, address, byte, lowest_bit
from .marks import PADDING, mark_words
from .table import BATCH, FIRST, HANDLED, LENGTH, SECOND, SKIP, START, flush, keys

MOST_IN_BLOCK = WIDTH // 2  # words that can end within one block


@part
def _one_character(at: int, length: int) -> bool:
    """Whether a run of two to four bytes is a single character."""
    lead = byte(at)
    return lead >= 0xC0 and length == (2 if lead < 0xE0 else (3 if lead < 0xF0 else 4))


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
    batch: Array,
    ids: Array,
    lengths: Array,
) -> int:
    """Append word numbers of documents from `first` on to `ids`, and add how many to `lengths`.

    Returns the document at which it stopped because `low` is too short or the table too full; it goes on from there,
    even in the middle of a document. A document that needs care or is not UTF-8 has that said in `lengths`.
    """
    base = address(low)
    state[SKIP] = state[HANDLED]
    for d in range(first, offsets.size - 1):
        begin, end = offsets[d], offsets[d + 1]
        if end - begin + PADDING > low.size:
            return d
        blocks = mark_words(text, begin, end, points, case, low, masks, lengths, d)
        block, start, inside = 0, 0, False
        carry = np.uint64(0)
        while block <= blocks:
            n = 0
            while block <= blocks and n <= BATCH - MOST_IN_BLOCK:
                mask = masks[block, 0]
                edges = mask ^ ((mask << np.uint64(1)) | carry)
                carry = mask >> np.uint64(63)
                while edges != 0:
                    at = block * WIDTH + lowest_bit(edges)
                    edges &= edges - np.uint64(1)
                    if not inside:
                        start, inside = at, True
                        continue
                    inside = False
                    length = at - start
                    if length >= 2 and not (length <= 4 and _one_character(base + start, length)):
                        batch[n, FIRST], batch[n, SECOND] = keys(base + start, length)
                        batch[n, START], batch[n, LENGTH] = start, length
                        n += 1
                block += 1
            if not flush(batch, n, low, unknown, slots, arena, state, ids, lengths, d):
                return d
        state[HANDLED] = 0
    return offsets.size - 1
