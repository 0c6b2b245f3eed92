"""Streams of word numbers to sparse rows in order of the columns, without sorting.

A row's columns are noted as bits. A bit of the second level says that sixty-four of the first are not all zero, and so
on: walking down from the third level finds a row's columns in order, in time proportional to their number.
"""

from __future__ import annotations

import numpy as np

from ..choice import Array
from ..jit import kernel
from .instructions import lowest_bit

_ONE = np.uint64(1)


@kernel
def sorted_rows(
    ids: Array,
    starts: Array,
    columns: Array,
    first_columns: Array,
    binary: bool,
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
    columns[first_columns[l] + number], or −1 for none. `counts` and the bits are zero before and after.
    """
    for i in range(starts.shape[1] - 1):
        for level in range(starts.shape[0]):
            for p in range(starts[level, i], starts[level, i + 1]):
                column = columns[np.uint64(first_columns[level] + ids[p])]
                if column < 0:
                    continue
                at = np.uint64(column)
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
