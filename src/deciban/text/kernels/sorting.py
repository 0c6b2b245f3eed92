"""Whole numbers in order, digit by digit from the lowest to the highest, each time keeping the order of the last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from deciban.kernels.choice import Array
from deciban.kernels.jit import kernel, part
from deciban.text.kernels.characters import address, eight_bytes, set_byte, set_eight_bytes

if TYPE_CHECKING:
    from deciban.text.kernels.readers import LevelReader

DIGIT = 12  # bits of a digit at most: as many places as that are written to at once
WORD = 64  # bits


@part
def by_digit(source: Array, target: Array, total: int, shift: int, tallies: Array) -> None:
    """Copy numbers in order of one digit, those that agree in it in the order in which they are.

    There are tallies.size digits, a power of 2.
    """
    less, last = np.uint64(shift), np.uint64(tallies.size - 1)
    tallies[:] = 0
    for p in range(total):
        tallies[(np.uint64(source[p]) >> less) & last] += 1
    before = tallies.dtype.type(0)
    for at in range(tallies.size):
        here = tallies[at]
        tallies[at] = before
        before += here
    for p in range(total):
        number = source[p]
        digit = (np.uint64(number) >> less) & last
        target[np.uint64(tallies[digit])] = number
        tallies[digit] += 1


@kernel
def _sort(numbers: Array, other: Array, shift: int, digits: int, width: int, tallies: Array) -> None:
    """Sort by so many digits of that width from bit `shift` on; where their number is odd, the result is in `other`."""
    for digit in range(digits):
        by_digit(numbers, other, numbers.size, shift + digit * width, tallies)
        numbers, other = other, numbers


@kernel
def _number(packed: Array, bits: int, ranks: Array, distinct: Array) -> int:
    """Rank sorted keys, whose positions are in the lowest bits; the number of distinct ones, which are written too."""
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
    """The rank of each key among the distinct ones, and those in order. Keys are uint64, below 2 ** bits.

    The keys are lost.

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
    return ranks, distinct[: _number(packed, positions, ranks, distinct)]


# -- merging ----------
# Words of one list found in another where both are in order: one walk along the two.


@part
def _order(a: Array, begin_a: int, end_a: int, b: Array, begin_b: int, end_b: int) -> int:
    """Below 0, 0 or above, as a word comes before another, is the same, or comes after it."""
    both = min(end_a - begin_a, end_b - begin_b)
    for at in range(both):
        x, y = np.int64(a[np.uint64(begin_a + at)]), np.int64(b[np.uint64(begin_b + at)])
        if x != y:
            return 1 if x > y else -1
    return (end_a - begin_a) - (end_b - begin_b)


@kernel
def find_in_order(words: Array, starts: Array, wanted: Array, wanted_starts: Array, places: Array) -> None:
    """Write where each of the wanted words stands among the words, or −1. Word i is words[starts[i] : starts[i + 1]].

    In lists that are not in order some are missed, but none is found in a wrong place.
    """
    n, i = starts.size - 1, 0
    for j in range(wanted_starts.size - 1):
        order = -1
        while i < n:
            order = _order(words, starts[i], starts[i + 1], wanted, wanted_starts[j], wanted_starts[j + 1])
            if order >= 0:
                break
            i += 1
        places[j] = i if i < n and order == 0 else -1


# -- naming ----------
# The names of words and of runs of words, in order.
#
# Before a run stand those that it begins with. So a run is told by its length and its last word: the words before are
# those of the last name that was one word shorter.

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


# -- uniting ----------
# What several readers have found, as one: every word and run of words once, in alphabetical order.
#
# Words are joined by spaces, which come before every word character. So a run comes after what it begins with and
# before
# whatever else comes after that, and runs of n words are in order of their first n − 1 words, then of the last: a run
# is
# two numbers, and no text is compared but that of single words.


class Found(NamedTuple):
    """Features in order, and where those of each reader are."""

    text: Array  # names end to end
    offsets: Array  # (V + 1,) where they begin, and where the last ends
    places: list[list[Array]]  # of each reader, at each level that it reads, by number: int32


class _Level(NamedTuple):
    """All runs of one length, in order."""

    left: Array  # rank of the first words among the runs of one word less
    last: Array  # rank of the last word
    ranks: list[Array]  # of each reader, by number


def united(readers: Sequence[LevelReader]) -> Found:
    """Everything that readers of the same kind have found. The first takes in the words of the others."""
    first = readers[0]
    own = len(first.words)
    moved = [first.words.absorb(other.words) for other in readers[1:]]
    offsets = first.words.offsets()
    order = first.words.order(offsets)
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    ranks = [rank[:own], *(rank[numbers] for numbers in moved)]
    levels = [_Level(np.zeros(0, np.int32), np.arange(len(order), dtype=np.int32), ranks)]
    for at in range(len(first.tables)):
        pairs = [reader.tables[at].pairs[: len(reader.tables[at])] for reader in readers]
        levels.append(_runs(pairs, levels[-1], levels[0]))
    places = _placed(levels)
    words, last = _in_order([level.last for level in levels], places)
    text, ends = written(words, last, first.lowest, first.words.arena, order, offsets)
    if first.lowest > 1:
        kept = words >= first.lowest
        ends, new = ends[kept], np.cumsum(kept, dtype=np.int32) - 1
        places = [new[place] for place in places]
    read = range(first.lowest - 1, len(levels))
    found = [[places[n][levels[n].ranks[r]] for n in read] for r in range(len(readers))]
    return Found(text, np.concatenate([[0], ends]), found)


@kernel
def _keys(pairs: Array, left: Array, last: Array, bits: int, keys: Array) -> None:
    """What pairs are in order of: the rank of the first words, then that of the last."""
    for i in range(pairs.size):
        first, second = pairs[i] >> np.uint64(32), pairs[i] & np.uint64(0xFFFFFFFF)
        keys[i] = (np.uint64(left[first]) << np.uint64(bits)) | np.uint64(last[second])


def _runs(pairs: Sequence[Array], shorter: _Level, words: _Level) -> _Level:
    """Runs of one word more, given by each reader as pairs of its own numbers."""
    bits, ends = len(words.last).bit_length(), np.cumsum([0, *map(len, pairs)])
    keys = np.empty(ends[-1], np.uint64)
    for at, (mine, left, last) in enumerate(zip(pairs, shorter.ranks, words.ranks)):
        _keys(mine, left, last, bits, keys[ends[at] : ends[at + 1]])
    ranks, distinct = ranked(keys, bits + len(shorter.last).bit_length())
    left = (distinct >> np.uint64(bits)).astype(np.int32)
    last = (distinct & np.uint64((1 << bits) - 1)).astype(np.int32)
    return _Level(left, last, np.split(ranks, ends[1:-1]))


def _placed(levels: Sequence[_Level]) -> list[Array]:
    """The place of each run among those of all lengths."""
    places: list[Array] = [np.arange(len(levels[0].last), dtype=np.int32)]
    for level in levels[1:]:
        above = places[-1][level.left]  # where what a run begins with has been so far
        # Everything makes room for the runs that begin with what stands before it.
        number = np.bincount(above, minlength=sum(map(len, places)))
        before = (np.cumsum(number) - number).astype(np.int32)
        places = [place + before[place] for place in places]
        places.append(above + np.arange(1, len(above) + 1, dtype=np.int32))
    return places


def _in_order(lasts: Sequence[Array], places: Sequence[Array]) -> tuple[Array, Array]:
    """The length of each run, and the rank of its last word, by place."""
    total = sum(map(len, places))
    words, last = np.empty(total, np.min_scalar_type(len(places))), np.empty(total, np.int32)
    for n, (mine, place) in enumerate(zip(lasts, places), start=1):
        words[place], last[place] = n, mine
    return words, last
