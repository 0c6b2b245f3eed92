"""Compiled versions of `streams`, and the sorted vocabulary of the readers whose ids the streams hold.

A stream holds the ids of one document after the other, lengths[i] of them for document i. Ids are not checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from deciban.kernels.choice import Array
from deciban.kernels.intrinsics import CACHE_LINE, prefetch, sum_rows
from deciban.kernels.jit import inline, kernel
from deciban.text.kernels.characters import (
    WIDTH,
    address,
    below_and_equal,
    eight_bytes,
    set_bits,
    set_byte,
    set_eight_bytes,
)
from deciban.text.kernels.streams import ROWS_AT_A_TIME, alphabetical

if TYPE_CHECKING:
    from deciban.text.kernels.readers import NgramReader

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
def sort_by_digit(source: Array, target: Array, total: int, shift: int, histogram: Array) -> None:
    """Copy numbers sorted by one digit, from bit `shift` on; the sort is stable.

    A digit has histogram.size values, a power of 2.
    """
    less, last = np.uint64(shift), np.uint64(histogram.size - 1)
    histogram[:] = 0
    for p in range(total):
        histogram[(np.uint64(source[p]) >> less) & last] += 1
    before = histogram.dtype.type(0)
    for at in range(histogram.size):
        here = histogram[at]
        histogram[at] = before
        before += here
    for p in range(total):
        number = source[p]
        digit = (np.uint64(number) >> less) & last
        target[np.uint64(histogram[digit])] = number
        histogram[digit] += 1


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


# -- ranks of keys -----------------------------------------------------------------------------------------------------
KEY_DIGIT = 12  # most bits of a digit: each value of a digit has an output position that is written to
KEY_BITS = 64  # of a key and the position of its item


@kernel
def _sort(numbers: Array, other: Array, shift: int, digits: int, width: int, histogram: Array) -> None:
    """Sort by digits of `width` bits from bit `shift` on. For an odd number of digits, the result is in `other`."""
    for digit in range(digits):
        sort_by_digit(numbers, other, numbers.size, shift + digit * width, histogram)
        numbers, other = other, numbers


@kernel
def _rank(packed: Array, bits: int, ranks: Array, distinct: Array) -> int:
    """Write ranks and distinct keys of sorted keys with their positions in the lowest bits; the number of distinct."""
    positions = (np.uint64(1) << np.uint64(bits)) - np.uint64(1)
    rank, last = -1, np.uint64(0)
    for p in range(packed.size):
        key = packed[p] >> np.uint64(bits)
        rank += (key != last) | (p == 0)
        distinct[np.uint64(rank)] = key
        ranks[packed[p] & positions] = rank
        last = key
    return rank + 1


def ranked(keys: Array, bits: int) -> tuple[Array, Array]:
    """Return the rank of each key among the distinct keys, and these in order. Keys are uint64 below 2 ** bits.

    The array of keys is overwritten.

    >>> ranked(np.array([7, 3, 7, 5], np.uint64), 3)
    (array([2, 0, 2, 1], dtype=int32), array([3, 5, 7], dtype=uint64))
    """
    positions = len(keys).bit_length()
    if bits + positions > KEY_BITS:
        distinct, ranks = np.unique(keys, return_inverse=True)
        return ranks.astype(np.int32), distinct
    keys <<= np.uint64(positions)
    keys |= np.arange(len(keys), dtype=np.uint64)
    digits = -(-max(bits, 1) // KEY_DIGIT)
    width = -(-max(bits, 1) // digits)
    other, ranks = np.empty_like(keys), np.empty(len(keys), np.int32)
    _sort(keys, other, positions, digits, width, np.empty(1 << width, np.int64))
    packed, distinct = (other, keys) if digits % 2 else (keys, other)
    return ranks, distinct[: _rank(packed, positions, ranks, distinct)]


# -- sorted lists of words ---------------------------------------------------------------------------------------------
@inline
def _compare(a: Array, begin_a: int, end_a: int, b: Array, begin_b: int, end_b: int) -> int:
    """Compare two words: < 0, 0 or > 0."""
    both = min(end_a - begin_a, end_b - begin_b)
    for at in range(both):
        x, y = np.int64(a[np.uint64(begin_a + at)]), np.int64(b[np.uint64(begin_b + at)])
        if x != y:
            return 1 if x > y else -1
    return (end_a - begin_a) - (end_b - begin_b)


@kernel
def find_in_order(words: Array, starts: Array, wanted: Array, wanted_starts: Array, places: Array) -> None:
    """Write the position of each wanted word among the words, or −1. Word i is words[starts[i] : starts[i + 1]].

    Both lists are sorted, and traversed once. If they are not, some words are missed, but no position is wrong.
    """
    n, i = starts.size - 1, 0
    for j in range(wanted_starts.size - 1):
        order = -1
        while i < n:
            order = _compare(words, starts[i], starts[i + 1], wanted, wanted_starts[j], wanted_starts[j + 1])
            if order >= 0:
                break
            i += 1
        places[j] = i if i < n and order == 0 else -1


@inline
def _copy(source: Array, begin: int, end: int, target: Array, to: int) -> int:
    """Copy the bytes of a word; return where it ends."""
    for at in range(end - begin):
        target[np.uint64(to + at)] = source[np.uint64(begin + at)]
    return to + end - begin


@kernel
def merge_in_order(
    words: Array, starts: Array, others: Array, other_starts: Array, text: Array, offsets: Array
) -> None:
    """Write the words of two sorted lists, sorted. Word i is words[starts[i] : starts[i + 1]]; no word is in both."""
    n, m, i, j, to = starts.size - 1, other_starts.size - 1, 0, 0, 0
    offsets[0] = 0
    for at in range(n + m):
        if j == m or (
            i < n and _compare(words, starts[i], starts[i + 1], others, other_starts[j], other_starts[j + 1]) < 0
        ):
            to = _copy(words, starts[i], starts[i + 1], text, to)
            i += 1
        else:
            to = _copy(others, other_starts[j], other_starts[j + 1], text, to)
            j += 1
        offsets[at + 1] = to


# -- vocabulary of several readers -------------------------------------------------------------------------------------
# Words are joined by spaces, which sort before every word character. So an n-gram sorts after the one that it begins
# with and before everything else that sorts after that, and n-grams of n words are sorted by the rank of their first
# n − 1 words, then by that of the last word. Texts are compared for single words only.
_BLANK = 0x20
SPARE = 8  # bytes after a text that may be read or written: eight are copied at a time


class Found(NamedTuple):
    """Features of all readers in alphabetical order, and the positions of those of each reader."""

    text: Array  # names end to end
    offsets: Array  # (V + 1,) where names begin, and the end of the last
    places: list[list[Array]]  # of each reader, for each n that it reads: position by id, int32


class _Level(NamedTuple):
    """All n-grams of one n, in order."""

    left: Array  # rank of the first n − 1 words among the n-grams of the level before
    last: Array  # rank of the last word
    ranks: list[Array]  # of each reader, by id


def merged(readers: Sequence[NgramReader]) -> Found:
    """Merge what readers of the same kind have found. The words of the others are added to the first one's table."""
    first = readers[0]
    own = len(first.words)
    moved = [first.words.add_words(other.words) for other in readers[1:]]
    offsets = first.words.offsets()
    order = alphabetical(first.words.arena, offsets)
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    ranks = [rank[:own], *(rank[ids] for ids in moved)]
    levels = [_Level(np.zeros(0, np.int32), np.arange(len(order), dtype=np.int32), ranks)]
    for at in range(len(first.tables)):
        pairs = [reader.tables[at].pairs[: len(reader.tables[at])] for reader in readers]
        levels.append(_next_level(pairs, levels[-1], levels[0]))
    places = _positions(levels)
    words, last = _by_position([level.last for level in levels], places)
    text, ends = _names(words, last, first.lowest, first.words.arena, order, offsets)
    if first.lowest > 1:
        kept = words >= first.lowest
        ends, new = ends[kept], np.cumsum(kept, dtype=np.int32) - 1
        places = [new[place] for place in places]
    read = range(first.lowest - 1, len(levels))
    found = [[places[n][levels[n].ranks[r]] for n in read] for r in range(len(readers))]
    return Found(text, np.concatenate([[0], ends]), found)


@kernel
def _sort_keys(pairs: Array, left: Array, last: Array, bits: int, keys: Array) -> None:
    """Write the sort keys of n-grams, given as pairs of ids: the rank of the first words, then that of the last."""
    for i in range(pairs.size):
        first, second = pairs[i] >> np.uint64(32), pairs[i] & np.uint64(0xFFFFFFFF)
        keys[i] = (np.uint64(left[first]) << np.uint64(bits)) | np.uint64(last[second])


def _next_level(pairs: Sequence[Array], shorter: _Level, words: _Level) -> _Level:
    """Sort n-grams of one word more, given by each reader as pairs of its own ids."""
    bits, ends = len(words.last).bit_length(), np.cumsum([0, *map(len, pairs)])
    keys = np.empty(ends[-1], np.uint64)
    for at, (mine, left, last) in enumerate(zip(pairs, shorter.ranks, words.ranks)):
        _sort_keys(mine, left, last, bits, keys[ends[at] : ends[at + 1]])
    ranks, distinct = ranked(keys, bits + len(shorter.last).bit_length())
    left = (distinct >> np.uint64(bits)).astype(np.int32)
    last = (distinct & np.uint64((1 << bits) - 1)).astype(np.int32)
    return _Level(left, last, np.split(ranks, ends[1:-1]))


def _positions(levels: Sequence[_Level]) -> list[Array]:
    """Return the position of each n-gram among those of all levels."""
    places: list[Array] = [np.arange(len(levels[0].last), dtype=np.int32)]
    for level in levels[1:]:
        above = places[-1][level.left]  # position so far of the n-gram that it begins with
        # Every n-gram moves by the number of new ones that begin with an earlier one.
        number = np.bincount(above, minlength=sum(map(len, places)))
        before = (np.cumsum(number) - number).astype(np.int32)
        places = [place + before[place] for place in places]
        places.append(above + np.arange(1, len(above) + 1, dtype=np.int32))
    return places


def _by_position(lasts: Sequence[Array], places: Sequence[Array]) -> tuple[Array, Array]:
    """Return the number of words of each n-gram, and the rank of its last word, by position."""
    total = sum(map(len, places))
    words, last = np.empty(total, np.min_scalar_type(len(places))), np.empty(total, np.int32)
    for n, (mine, place) in enumerate(zip(lasts, places), start=1):
        words[place], last[place] = n, mine
    return words, last


def _names(words: Array, last: Array, lowest: int, arena: Array, order: Array, offsets: Array) -> tuple[Array, Array]:
    """Return the text and the ends of the names of n-grams in order; n-grams of fewer than `lowest` words are empty.

    N-gram i has words[i] words, the last of which is order[last[i]]; the words before it are those of the last n-gram
    with one word less. Word w is arena[offsets[w] : offsets[w + 1]].
    """
    starts = np.column_stack([offsets[:-1][order], np.diff(offsets)[order]])
    reach, ends = np.zeros(int(words.max(initial=0)) + 1, np.int64), np.empty(len(last), np.int64)
    longest = _measure_names(words, last, starts, lowest, ends, reach)
    text = np.empty(int(ends[-1]) + SPARE if len(ends) else SPARE, np.uint8)
    _write_names(words, last, starts, lowest, arena, np.empty(longest + SPARE, np.uint8), reach, text)
    return text[:-SPARE], ends


@kernel
def _measure_names(words: Array, last: Array, starts: Array, lowest: int, ends: Array, reach: Array) -> int:
    """Write the end of each name; the length of the longest. reach[n] is the length of the last name of n words."""
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
def _write_names(
    words: Array, last: Array, starts: Array, lowest: int, arena: Array, current: Array, reach: Array, text: Array
) -> None:
    """Write the names one after the other. `current` is a buffer for the longest name."""
    source, here, target = address(arena), address(current), address(text)
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
