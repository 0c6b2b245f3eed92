"""Sorting: radix sort, search in sorted lists of words, and the sorted vocabulary that several readers have found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from deciban.kernels.choice import Array
from deciban.kernels.jit import inline, kernel
from deciban.text.kernels.characters import address, eight_bytes, set_byte, set_eight_bytes
from deciban.text.kernels.ordering import alphabetical

if TYPE_CHECKING:
    from deciban.text.kernels.readers import NgramReader

# -- least-significant-digit radix sort --------------------------------------------------------------------------------
DIGIT = 12  # most bits of a digit: each value of a digit has an output position that is written to
WORD = 64  # bits


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
    if bits + positions > WORD:
        distinct, ranks = np.unique(keys, return_inverse=True)
        return ranks.astype(np.int32), distinct
    keys <<= np.uint64(positions)
    keys |= np.arange(len(keys), dtype=np.uint64)
    digits = -(-max(bits, 1) // DIGIT)
    width = -(-max(bits, 1) // digits)
    other, ranks = np.empty_like(keys), np.empty(len(keys), np.int32)
    _sort(keys, other, positions, digits, width, np.empty(1 << width, np.int64))
    packed, distinct = (other, keys) if digits % 2 else (keys, other)
    return ranks, distinct[: _rank(packed, positions, ranks, distinct)]


# -- sorted lists of words ----------------------------------------------------------------------------------
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
