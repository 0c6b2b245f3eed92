"""Streams of word numbers to sparse rows in order of the columns.

A row is sorted digit by digit, from the lowest to the highest, each time keeping the order of the last: in time
proportional to its length, within a few kilobytes. In a short row every column is compared with all others at once.
"""

from __future__ import annotations

import numpy as np

from ..choice import Array
from ..intrinsics import prefetch
from ..jit import kernel, part
from .instructions import WIDTH, below_and_equal, set_bits
from .radix import by_digit

AHEAD = 24  # numbers between asking for a column and using it
BEYOND = np.int32(2**31 - 1)  # above all columns
DIGIT = 9  # bits of a digit at most: what is counted of one stays in the nearest cache


@part
def _write_short(row: Array, total: int, binary: bool, place: Array, indices: Array, data: Array, written: int) -> int:
    """Append what WIDTH columns at most come to: each goes to the place that as many smaller ones leave it."""
    for p in range(total, WIDTH):
        row[p] = BEYOND
    for p in range(total):
        below, equal = below_and_equal(row, row[p])
        to = np.uint64(set_bits(below))
        place[to], place[to + np.uint64(WIDTH)] = row[p], set_bits(equal)
    at = 0
    while at < total:
        often = place[at + WIDTH]
        indices[written], data[written] = place[at], 1 if binary else often
        written += 1
        at += often
    return written


@part
def _write_distinct(row: Array, total: int, binary: bool, indices: Array, data: Array, written: int) -> int:
    """Append each of some sorted columns once, and how often it is there; how many entries there are then."""
    at, often, last, more = written - 1, 0, np.int32(-1), 0 if binary else 1
    for p in range(total):
        column = row[np.uint64(p)]
        # Written whether or not it is the last of its kind: nobody could foresee that, and asking costs more.
        new = column != last
        at += new
        often = 1 if new else often + more
        indices[np.uint64(at)], data[np.uint64(at)] = column, often
        last = column
    return at + 1


@kernel
def sorted_rows(
    ids: Array,
    starts: Array,
    columns: Array,
    first_columns: Array,
    binary: bool,
    digits: int,
    row: Array,
    other: Array,
    tallies: Array,
    indices: Array,
    data: Array,
    ends: Array,
    written: int,
) -> int:
    """Append rows to indices and data and where they end to `ends`; how many entries there are then.

    Row i is the numbers ids[starts[l, i] : starts[l, i + 1]] for all levels l. The column of a number at a level is
    columns[first_columns[l] + number], or −1 for none. `row` and `other` are room for the longest row and one more,
    2 WIDTH at least. Columns have so many digits, of which there are tallies.size, a power of 2.
    """
    width = 0
    while np.int64(1) << width < tallies.size:
        width += 1
    for i in range(starts.shape[1] - 1):
        total = 0
        for level in range(starts.shape[0]):
            for p in range(starts[level, i], starts[level, i + 1]):
                prefetch(columns, first_columns[level] + ids[min(p + AHEAD, ids.size - 1)])
                column = columns[np.uint64(first_columns[level] + ids[p])]
                row[np.uint64(total)] = column
                total += column >= 0
        if total <= WIDTH:
            written = _write_short(row, total, binary, other, indices, data, written)
        else:
            for digit in range(digits):
                by_digit(row, other, total, digit * width, tallies)
                row, other = other, row
            written = _write_distinct(row, total, binary, indices, data, written)
        ends[i] = written
    return written
