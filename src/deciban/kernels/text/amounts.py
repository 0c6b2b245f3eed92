"""Words that count less when they come again: where one that occurs t times counts f(t), its t-th adds f(t) − f(t − 1).

How often a document has had each word so far is kept as `state`: it lies above the document's mark, and whatever
earlier documents left lies at most at it. A mark is the number of tokens before. Numbers come checked.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..choice import Array
from ..intrinsics import prefetch
from ..jit import kernel, part

AHEAD = 24  # numbers between asking for a place in a table and using it


@part
def _times(state: Array, number: Any, mark: int) -> Any:
    """How often the document has had a number, this time included."""
    before = np.int64(state[number]) - mark
    before &= ~(before >> 63)  # 0 if below; a branch would be guessed wrong for every other word
    state[number] = mark + before + 1
    return before + 1


@kernel
def amounts(ids: Array, lengths: Array, state: Array, mark: int, steps: Array, values: Array) -> None:
    """Set values[p] to steps[t] where token p is the t-th of its number in its document."""
    begin, last = 0, steps.size - 1
    for i in range(lengths.size):
        end = begin + lengths[i]
        for p in range(begin, end):
            prefetch(state, ids[min(p + AHEAD, ids.size - 1)])
            values[p] = steps[np.uint64(min(_times(state, np.uint64(ids[p]), mark), last))]
        mark += lengths[i]
        begin = end


@kernel
def add_class_amounts(
    ids: Array, lengths: Array, codes: Array, weight: Array, state: Array, mark: int, steps: Array, counts: Array
) -> None:
    """Add each document's weight, or 1, times steps[t] to counts[class, id] for the t-th of each of its numbers."""
    width, last = counts.shape[1], steps.size - 1
    begin = 0
    for i in range(lengths.size):
        end = begin + lengths[i]
        row = codes[i] * width
        flat = counts[codes[i]]
        amount = weight[i] if weight.size else 1.0
        for p in range(begin, min(begin + AHEAD, end)):
            prefetch(counts, row + ids[p])
        for p in range(begin, end):
            later = ids[min(p + AHEAD, ids.size - 1)]
            prefetch(counts, row + later)
            prefetch(state, later)
            number = np.uint64(ids[p])
            flat[number] += amount * steps[np.uint64(min(_times(state, number, mark), last))]
        mark += lengths[i]
        begin = end
