"""Streams of word numbers to sparse rows in order of the columns, without sorting.

A row's columns are noted as bits. A bit of the second level says that sixty-four of the first are not all zero, and so
on: walking down from the third level finds a row's columns in order, in time proportional to their number.
"""

from __future__ import annotations

import numpy as np

from ..choice import Array
from ..intrinsics import prefetch
from ..jit import kernel
from .instructions import lowest_bit

AHEAD = 24  # numbers between asking for a column and using it
_ONE = np.uint64(1)


@kernel
def sorted_rows(
    ids: Array,
    starts: Array,
    columns: Array,
    first_columns: Array,
    binary: bool,
    row: Array,
    counts: Array,
    fine: Array,
    middle: Array,
    coarse: Array,
    indices: Array,
    data: Array,
    ends: Array,
    written: int,
) -> int:
    """Append rows to indices and data and where they end to `ends`; how many entries there are then.

    Row i is the numbers ids[starts[l, i] : starts[l, i + 1]] for all levels l. The column of a number at a level is
    columns[first_columns[l] + number], or −1 for none. `row` is room for the longest row;
    `counts` and the bits are zero before and after.
    """
    for i in range(starts.shape[1] - 1):
        total = 0
        for level in range(starts.shape[0]):
            for p in range(starts[level, i], starts[level, i + 1]):
                prefetch(columns, first_columns[level] + ids[min(p + AHEAD, ids.size - 1)])
                column = columns[np.uint64(first_columns[level] + ids[p])]
                prefetch(counts, column)
                row[np.uint64(total)] = column
                total += column >= 0
        for p in range(total):
            at = np.uint64(row[p])
            # Set whether or not it is set already: nobody could foresee that, and asking costs more.
            fine[at >> np.uint64(6)] |= _ONE << (at & np.uint64(63))
            middle[at >> np.uint64(12)] |= _ONE << ((at >> np.uint64(6)) & np.uint64(63))
            coarse[at >> np.uint64(18)] |= _ONE << ((at >> np.uint64(12)) & np.uint64(63))
            counts[at] += 1
        for high in range(coarse.size):
            while coarse[high] != 0:
                mid = high * 64 + lowest_bit(coarse[high])
                coarse[high] &= coarse[high] - _ONE
                while middle[mid] != 0:
                    low = mid * 64 + lowest_bit(middle[mid])
                    middle[mid] &= middle[mid] - _ONE
                    left = fine[low]
                    fine[low] = 0
                    while left != 0:
                        at = np.uint64(low * 64 + lowest_bit(left))
                        left &= left - _ONE
                        indices[written] = at
                        data[written] = 1 if binary else counts[at]
                        counts[at] = 0
                        written += 1
        ends[i] = written
    return written
