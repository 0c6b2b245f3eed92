"""What is done with streams of word numbers: relabel, drop, keep distinct ones, count per class, score.

A stream holds the numbers of one document after the other, lengths[i] for document i. Numbers come checked.
"""

from __future__ import annotations

import numpy as np

from ..choice import Array
from ..intrinsics import LINE, prefetch
from ..jit import kernel, part
from ..register_sums import sum_rows_of, sum_scaled_rows_of

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
