"""What several readers have found, as one: every word and run of words once, in alphabetical order.

Words are joined by spaces, which come before every word character. So a run comes after what it begins with and before
whatever else comes after that, and runs of n words are in order of their first n − 1 words, then of the last: a run is
two numbers, and no text is compared but that of single words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..choice import Array
from ..jit import kernel
from .naming import written
from .radix import ranked

if TYPE_CHECKING:
    from .levels import LevelReader


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
