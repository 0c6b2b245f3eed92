"""What is done with streams of word numbers: relabel, drop, keep distinct ones, count per class, score.

A stream holds the numbers of one document after the other, lengths[i] for document i. Numbers come checked.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from deciban.kernels.choice import Array
from deciban.kernels.intrinsics import LINE, prefetch
from deciban.kernels.jit import kernel, part
from deciban.kernels.words_compiled import sum_rows_of, sum_scaled_rows_of
from deciban.text.kernels.characters import WIDTH, below_and_equal, set_bits
from deciban.text.kernels.sorting import by_digit

AHEAD = 24  # numbers between asking for a place in a table and using it
ROWS = 64  # rows of weights asked for at a time


@kernel
def relabel(ids: Array, lengths: Array, labels: Array) -> int:
    """Replace every number by its label, in place, dropping labels −1; how many are left."""
    begin, to = 0, 0
    for i in range(lengths.size):
        end, start = begin + lengths[i], to
        for p in range(begin, end):
            label = labels[np.uint64(ids[p])]
            ids[to] = label
            to += label >= 0
        lengths[i] = to - start
        begin = end
    return to


@kernel
def without(ids: Array, lengths: Array, number: int) -> int:
    """Drop a number, in place; how many are left."""
    begin, to = 0, 0
    for i in range(lengths.size):
        end, start = begin + lengths[i], to
        for p in range(begin, end):
            here = ids[np.uint64(p)]
            ids[np.uint64(to)] = here
            to += here != number
        lengths[i] = to - start
        begin = end
    return to


@kernel
def distinct(ids: Array, lengths: Array, last_row: Array, row: int) -> int:
    """Keep each number once a document, in place; how many are left.

    last_row[id] is the document that held a number last, documents being numbered from `row`, above all before.
    """
    begin, to = 0, 0
    for i in range(lengths.size):
        end, start = begin + lengths[i], to
        for p in range(begin, end):
            number = np.uint64(ids[p])
            new = last_row[number] != row + i
            last_row[number] = row + i
            ids[to] = number
            to += new
        lengths[i] = to - start
        begin = end
    return to


@kernel
def add_class_counts(ids: Array, lengths: Array, codes: Array, weight: Array, counts: Array) -> None:
    """Add each document's weight, or 1, to counts[class, id] for each of its numbers."""
    width = counts.shape[1]
    begin = 0
    for i in range(lengths.size):
        end = begin + lengths[i]
        row = codes[i] * width
        flat = counts[codes[i]]
        amount = counts.dtype.type(weight[i] if weight.size else 1)
        for p in range(begin, min(begin + AHEAD, end)):
            prefetch(counts, row + ids[p])
        for p in range(begin, end):
            prefetch(counts, row + ids[min(p + AHEAD, ids.size - 1)])
            flat[np.uint64(ids[p])] += amount
        begin = end


@kernel
def place_counts(counts: Array, columns: Array, out: Array) -> None:
    """Add counts[k, i] to out[k, columns[i]] unless the column is −1. Most counts of many classes are 0."""
    for k in range(min(counts.shape[0], out.shape[0])):
        mine, theirs = counts[k], out[k]
        for i in range(columns.size):
            if mine[i] != 0 and columns[i] >= 0:
                theirs[np.uint64(columns[i])] += mine[i]


@part
def ask_for_rows(table: Array, ids: Array, begin: int, end: int) -> None:
    """Ask for the table's rows of some numbers."""
    K = table.shape[1]
    for p in range(begin, end):
        start = ids[p] * K
        for line in range(0, K, LINE):
            prefetch(table, start + line)
        prefetch(table, start + K - 1)


@kernel
def add_scores(ids: Array, lengths: Array, weights: Array, bias: Array, out: Array) -> None:
    """Set out[i] to bias + Σ weights[id] over each document's numbers, a block of them asked for while one is added."""
    sums = np.empty((2, weights.shape[1]))
    begin = 0
    ask_for_rows(weights, ids, 0, min(ROWS, ids.size))
    for i in range(lengths.size):
        end, now = begin + lengths[i], 0
        sums[0] = bias
        while begin < end:
            stop = min(begin + ROWS, end)
            ask_for_rows(weights, ids, begin + ROWS, min(stop + ROWS, ids.size))
            sum_rows_of(weights, ids[begin:stop], sums[now], sums, 1 - now)
            begin, now = stop, 1 - now
        out[i] = sums[now]


@kernel
def add_scaled_scores(ids: Array, lengths: Array, values: Array, weights: Array, bias: Array, out: Array) -> None:
    """Set out[i] to bias + Σ values[p] weights[id] over each document's tokens."""
    begin = 0
    for i in range(lengths.size):
        end = begin + lengths[i]
        sum_scaled_rows_of(weights, ids, values, bias, out, begin, end, ids.size - 1, i)
        begin = end


# -- amounts ----------
# Words that count less when they come again: where one that occurs t times counts f(t), its t-th adds f(t) − f(t − 1).
#
# How often a document has had each word so far is kept as `state`: it lies above the document's mark, and whatever
# earlier documents left lies at most at it. A mark is the number of tokens before. Numbers come checked.

# numbers between asking for a place in a table and using it


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


# -- sparse rows ----------
# Streams of word numbers to sparse rows in order of the columns.
#
# A row is sorted digit by digit, from the lowest to the highest, each time keeping the order of the last: in time
# proportional to its length, within a few kilobytes. In a short row every column is compared with all others at once.

# numbers between asking for a column and using it
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
