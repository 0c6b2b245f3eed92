"""The table of words with its memory: it grows, gives its words back in order, and takes in another's."""

from __future__ import annotations

import numpy as np

from ..choice import Array, readable
from . import table
from .ordering import alphabetical
from .table import BATCH, BYTES, GROW, INLINE, SLOT, WORDS

FIRST_SLOTS = 4 * BATCH  # so that a batch always fits
MANY = 2**16  # words beyond which memory matters more than how often they are moved
MOST_WORDS = 2**31 - 2  # numbers are kept as int32


class WordTable:
    """Words numbered in the order in which they came.

    >>> words = WordTable()
    >>> text = np.frombuffer(b"to be or not to be" + bytes(16), np.uint8)
    >>> words.numbers(text, np.array([0, 2, 3, 5]), grow=True)
    array([0, 1, 2], dtype=int32)
    >>> len(words)
    3
    """

    def __init__(self) -> None:
        self.slots = np.zeros(FIRST_SLOTS * SLOT, np.uint64)
        self.arena = np.zeros(FIRST_SLOTS * 8, np.uint8)
        self.state = np.zeros(5, np.int64)
        self.batch = np.empty((BATCH, 5), np.uint64)

    def __len__(self) -> int:
        return int(self.state[WORDS])

    def grow(self, size: int) -> None:
        """Make room for a batch more, whose words have at most `size` bytes."""
        if 3 * SLOT * (len(self) + BATCH) > 2 * self.slots.size:
            if 2 * len(self) > MOST_WORDS:
                raise MemoryError(f"a vocabulary of more than {len(self)} words")
            self.loosen(2 if len(self) > MANY else 4)
        used = int(self.state[BYTES])
        if used + size + INLINE > self.arena.size:
            self.arena = np.concatenate([self.arena[:used], np.zeros(used + size + INLINE, np.uint8)])

    def loosen(self, times: int = 2) -> None:
        """More slots. Words get less in each other's way, which tells where the frequent did not come first."""
        larger = np.zeros(times * self.slots.size, np.uint64)
        table.move_slots(self.slots, larger)
        self.slots = larger

    def arrange(self, first: Array) -> None:
        """Put words into their slots in the order of the numbers given: the first are in nobody's way.

        Where these are the frequent words, half of the slots may be taken.
        """
        if not np.array_equal(np.sort(first), np.arange(len(self))):
            raise IndexError(f"{len(first)} numbers do not name each of {len(self)} words once")
        least = 1 << (2 * len(self) + 2 * BATCH - 1).bit_length()
        other = np.zeros(SLOT * least, np.uint64)
        table.place_slots(self.slots, readable(first, np.int64), np.empty(len(self), np.int64), other)
        self.slots = other

    def numbers(self, text: Array, offsets: Array, grow: bool, unknown: int = 0) -> Array:
        """The number of each string text[offsets[i] : offsets[i + 1]]; sixteen bytes must follow the last."""
        text, offsets = readable(text, np.uint8), readable(offsets, np.int64)
        ids = np.empty(len(offsets) - 1, np.int32)
        done = 0
        while True:
            done = table.read_names(
                text, offsets, done, GROW if grow else unknown, self.slots, self.arena, self.state, self.batch, ids
            )
            if done == len(ids):
                return ids
            self.grow(int(offsets[min(done + BATCH, len(ids))] - offsets[done]))

    def offsets(self) -> Array:
        """Where each word begins in the arena, and where the last one ends."""
        starts, lengths = np.empty(len(self), np.int64), np.empty(len(self), np.int64)
        table.starts_and_lengths(self.slots, starts, lengths)
        return np.append(starts, self.state[BYTES])

    def order(self, offsets: Array) -> Array:
        """The numbers of the words in alphabetical order of their code points."""
        return alphabetical(self.arena, offsets)

    def absorb(self, other: WordTable) -> Array:
        """Add another table's words; their numbers here."""
        return self.numbers(other.arena, other.offsets(), grow=True)
