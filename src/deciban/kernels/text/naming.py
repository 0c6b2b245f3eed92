"""The names of runs of words, written in any order wanted."""

from __future__ import annotations

import numpy as np

from ..choice import Array
from ..intrinsics import prefetch
from ..jit import kernel
from .instructions import address, eight_bytes, set_byte, set_eight_bytes

AHEAD = 24  # runs between asking for one and writing it
_BLANK = 0x20


@kernel
def _write(words: Array, order: Array, arena: Array, starts: Array, ends: Array, text: Array) -> None:
    """Write the runs in order, words parted by spaces, the i-th up to ends[i].

    Eight bytes are copied at a time: both texts must go on for as many.
    """
    source, target = address(arena), address(text)
    most = words.shape[1]
    to = 0
    for i in range(order.size):
        prefetch(words, order[min(i + AHEAD, order.size - 1)] * most)
        for j in range(most):
            word = words[np.uint64(order[i]), j]
            if word < 0:
                break
            if j > 0:
                set_byte(target + to, _BLANK)
                to += 1
            start = starts[np.uint64(word)]
            length = starts[np.uint64(word + 1)] - start
            for at in range(0, length, 8):
                set_eight_bytes(target + to + at, eight_bytes(source + start + at))
            to += length
        ends[i] = to


def written(words: Array, order: Array, arena: Array, offsets: Array) -> tuple[Array, Array]:
    """Text and offsets of runs of words: a row of `words` is word numbers and then −1; their text is in the arena."""
    lengths = np.append(np.diff(offsets) + 1, 0)  # with a space; the last for −1
    total = int(lengths[words].sum()) - len(words)
    text, ends = np.empty(total + 8, np.uint8), np.zeros(len(order) + 1, np.int64)
    _write(words, order, arena, offsets, ends[1:], text)
    return text[:total], ends
