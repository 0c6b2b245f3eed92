"""Compiled versions of `streams`.

A stream holds the ids of one document after the other, lengths[i] of them for document i. Ids are not checked.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from deciban.kernels.choice import Array
from deciban.kernels.intrinsics import CACHE_LINE, prefetch, sum_rows
from deciban.kernels.jit import inline, kernel
from deciban.text.kernels.characters import WIDTH, below_and_equal, set_bits
from deciban.text.kernels.sorting import sort_by_digit
from deciban.text.kernels.streams import ROWS_AT_A_TIME

DISTANCE = 24  # ids between prefetch and use


# -- stream to stream --------------------------------------------------------------------------------------------------
@kernel
def relabel(ids: Array, lengths: Array, labels: Array) -> int:
    """Replace every id by its label, in place, dropping labels −1; the number of ids that are left."""
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
def drop_id(ids: Array, lengths: Array, number: int) -> int:
    """Drop one id, in place; the number of ids that are left."""
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
    """Keep the distinct ids of each document, in place; the number of ids that are left.

    last_row[id] is the last document that held an id. Documents are numbered from `row`, above all earlier ones.
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


# -- counts and scores -------------------------------------------------------------------------------------------------
@kernel
def add_class_counts(ids: Array, lengths: Array, codes: Array, weight: Array, counts: Array) -> None:
    """Add each document's weight, or 1, to counts[class, id] for each of its ids."""
    width = counts.shape[1]
    begin = 0
    for i in range(lengths.size):
        end = begin + lengths[i]
        row = codes[i] * width
        flat = counts[codes[i]]
        amount = counts.dtype.type(weight[i] if weight.size else 1)
        for p in range(begin, min(begin + DISTANCE, end)):
            prefetch(counts, row + ids[p])
        for p in range(begin, end):
            prefetch(counts, row + ids[min(p + DISTANCE, ids.size - 1)])
            flat[np.uint64(ids[p])] += amount
        begin = end


@kernel
def place_counts(counts: Array, columns: Array, out: Array) -> None:
    """Add counts[k, i] to out[k, columns[i]] unless the column is −1. With many classes, most counts are 0."""
    for k in range(min(counts.shape[0], out.shape[0])):
        mine, theirs = counts[k], out[k]
        for i in range(columns.size):
            if mine[i] != 0 and columns[i] >= 0:
                theirs[np.uint64(columns[i])] += mine[i]


@inline
def prefetch_rows(table: Array, ids: Array, begin: int, end: int) -> None:
    """Prefetch the table's rows of ids begin … end."""
    K = table.shape[1]
    for p in range(begin, end):
        start = ids[p] * K
        for line in range(0, K, CACHE_LINE):
            prefetch(table, start + line)
        prefetch(table, start + K - 1)


@kernel
def add_scores(ids: Array, lengths: Array, weights: Array, bias: Array, out: Array) -> None:
    """Set out[i] to bias + Σ weights[id] over each document's ids; rows are prefetched a block in advance."""
    sums = np.empty((2, weights.shape[1]))
    begin = 0
    prefetch_rows(weights, ids, 0, min(ROWS_AT_A_TIME, ids.size))
    for i in range(lengths.size):
        end, now = begin + lengths[i], 0
        sums[0] = bias
        while begin < end:
            stop = min(begin + ROWS_AT_A_TIME, end)
            prefetch_rows(weights, ids, begin + ROWS_AT_A_TIME, min(stop + ROWS_AT_A_TIME, ids.size))
            block = ids[begin:stop]
            sum_rows(weights, block, None, sums[now], sums, 0, block.size, 0, 1 - now)
            begin, now = stop, 1 - now
        out[i] = sums[now]


@kernel
def add_scaled_scores(ids: Array, lengths: Array, values: Array, weights: Array, bias: Array, out: Array) -> None:
    """Set out[i] to bias + Σ values[p] weights[id] over each document's tokens."""
    begin = 0
    for i in range(lengths.size):
        end = begin + lengths[i]
        sum_rows(weights, ids, values, bias, out, begin, end, ids.size - 1, i)
        begin = end


# -- term transforms ---------------------------------------------------------------------------------------------------
# If t occurrences of a word in a document count f(t), its t-th occurrence adds f(t) − f(t − 1) = steps[t].
#
# state[id] − base is the number of occurrences of an id in the current document, if positive. The base of a document is
# the number of tokens before it, so that values from earlier documents are at most the base.
@inline
def _occurrences(state: Array, number: Any, base: int) -> Any:
    """Count one occurrence of an id; the number of its occurrences in the document."""
    before = np.int64(state[number]) - base
    before &= ~(before >> 63)  # max(before, 0) without a branch, which would often be mispredicted
    state[number] = base + before + 1
    return before + 1


@kernel
def amounts(ids: Array, lengths: Array, state: Array, base: int, steps: Array, values: Array) -> None:
    """Set values[p] to steps[t] if token p is the t-th of its id in its document."""
    begin, last = 0, steps.size - 1
    for i in range(lengths.size):
        end = begin + lengths[i]
        for p in range(begin, end):
            prefetch(state, ids[min(p + DISTANCE, ids.size - 1)])
            values[p] = steps[np.uint64(min(_occurrences(state, np.uint64(ids[p]), base), last))]
        base += lengths[i]
        begin = end


@kernel
def add_class_amounts(
    ids: Array, lengths: Array, codes: Array, weight: Array, state: Array, base: int, steps: Array, counts: Array
) -> None:
    """Add each document's weight, or 1, times steps[t] to counts[class, id] for the t-th occurrence of each id."""
    width, last = counts.shape[1], steps.size - 1
    begin = 0
    for i in range(lengths.size):
        end = begin + lengths[i]
        row = codes[i] * width
        flat = counts[codes[i]]
        amount = weight[i] if weight.size else 1.0
        for p in range(begin, min(begin + DISTANCE, end)):
            prefetch(counts, row + ids[p])
        for p in range(begin, end):
            later = ids[min(p + DISTANCE, ids.size - 1)]
            prefetch(counts, row + later)
            prefetch(state, later)
            number = np.uint64(ids[p])
            flat[number] += amount * steps[np.uint64(min(_occurrences(state, number, base), last))]
        base += lengths[i]
        begin = end


# -- sparse rows -------------------------------------------------------------------------------------------------------
# Long rows are sorted by least-significant-digit radix sort, in time proportional to their length. In short rows each
# column is compared with all others at once, and its rank is the number of smaller ones.
BEYOND = np.int32(2**31 - 1)  # above all columns
DIGIT = 9  # most bits of a digit: the counts of all digits stay in the first-level cache


@inline
def _write_short(row: Array, total: int, binary: bool, place: Array, indices: Array, data: Array, written: int) -> int:
    """Append a row of at most WIDTH columns; the number of entries written in all."""
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


@inline
def _write_sorted(row: Array, total: int, binary: bool, indices: Array, data: Array, written: int) -> int:
    """Append a row of sorted columns: each column once, with its count; the number of entries written in all."""
    at, often, last, more = written - 1, 0, np.int32(-1), 0 if binary else 1
    for p in range(total):
        column = row[np.uint64(p)]
        # Written for every token, also if the next one is equal: a branch would often be mispredicted.
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
    histogram: Array,
    indices: Array,
    data: Array,
    ends: Array,
    written: int,
) -> int:
    """Append rows to indices and data, and their ends to `ends`; the number of entries written in all.

    Row i consists of ids[starts[s, i] : starts[s, i + 1]] for all streams s. The column of an id of stream s is
    columns[first_columns[s] + id], or −1 for none. `row` and `other` are buffers for the longest row and one more, at
    least 2 WIDTH long. Columns have `digits` digits of histogram.size values each, a power of 2.
    """
    width = 0
    while np.int64(1) << width < histogram.size:
        width += 1
    for i in range(starts.shape[1] - 1):
        total = 0
        for s in range(starts.shape[0]):
            for p in range(starts[s, i], starts[s, i + 1]):
                prefetch(columns, first_columns[s] + ids[min(p + DISTANCE, ids.size - 1)])
                column = columns[np.uint64(first_columns[s] + ids[p])]
                row[np.uint64(total)] = column
                total += column >= 0
        if total <= WIDTH:
            written = _write_short(row, total, binary, other, indices, data, written)
        else:
            for digit in range(digits):
                sort_by_digit(row, other, total, digit * width, histogram)
                row, other = other, row
            written = _write_sorted(row, total, binary, indices, data, written)
        ends[i] = written
    return written
