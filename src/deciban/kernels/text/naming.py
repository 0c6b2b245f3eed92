"""The names of words and of runs of words, in order.

Before a run stand those that it begins with. So a run is told by its length and its last word: the words before are
those of the last name that was one word shorter.
"""

from __future__ import annotations

import numpy as np

from ..choice import Array
from ..jit import kernel
from .instructions import address, eight_bytes, set_byte, set_eight_bytes

_BLANK = 0x20
SPARE = 8  # bytes behind a text that may be read or written, as eight are copied at a time


@kernel
def _measure(words: Array, last: Array, starts: Array, lowest: int, ends: Array, reach: Array) -> int:
    """Write where each name ends, those of less than `lowest` words having no letters; the longest there is."""
    to, longest = 0, 0
    for i in range(last.size):
        n = words[i]
        length = starts[np.uint64(last[i]), 1] + (reach[n - 1] + 1 if n > 1 else 0)
        reach[n] = length
        longest = max(longest, length)
        to += length if n >= lowest else 0
        ends[i] = to
    return longest


@kernel
def _write(
    words: Array, last: Array, starts: Array, lowest: int, arena: Array, chain: Array, reach: Array, text: Array
) -> None:
    """Write the names one after the other. `chain` is room for the longest: the words of which runs are made."""
    source, here, target = address(arena), address(chain), address(text)
    to = 0
    for i in range(last.size):
        n = words[i]
        begin = 0
        if n > 1:
            begin = reach[n - 1] + 1
            set_byte(here + begin - 1, _BLANK)
        start, length = starts[np.uint64(last[i]), 0], starts[np.uint64(last[i]), 1]
        for at in range(0, length, 8):
            set_eight_bytes(here + begin + at, eight_bytes(source + start + at))
        reach[n] = begin + length
        if n >= lowest:
            for at in range(0, begin + length, 8):
                set_eight_bytes(target + to + at, eight_bytes(here + at))
            to += begin + length


def written(words: Array, last: Array, lowest: int, arena: Array, order: Array, offsets: Array) -> tuple[Array, Array]:
    """Text and ends of the names of runs of `lowest` words or more, in order, with those that they begin with.

    Run i has words[i] words, the last being order[last[i]]; word number w is arena[offsets[w] : offsets[w + 1]].
    """
    starts = np.column_stack([offsets[:-1][order], np.diff(offsets)[order]])
    reach, ends = np.zeros(int(words.max(initial=0)) + 1, np.int64), np.empty(len(last), np.int64)
    longest = _measure(words, last, starts, lowest, ends, reach)
    text = np.empty(int(ends[-1]) + SPARE if len(ends) else SPARE, np.uint8)
    _write(words, last, starts, lowest, arena, np.empty(longest + SPARE, np.uint8), reach, text)
    return text[:-SPARE], ends
