"""Runs of words: a pair is two word numbers, a triplet a pair and a word, and so on. No text is touched.

A run of n words is numbered in a table of its own level, by the number of its first n − 1 words and that of the last.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..choice import Array
from ..intrinsics import prefetch
from ..jit import kernel, part

BATCH = 1024  # pairs looked up together
GRAMS, WRITTEN, DONE = 0, 1, 2  # fields of the state: runs in the table, numbers written, pairs done of a document
FIRST_SLOTS = 4 * BATCH  # so that a batch always fits
GROW = -1
MANY = 2**19  # runs beyond which memory matters more than how often they are moved


@part
def _place(key: Any, last: Any) -> Any:
    value = key * np.uint64(0x9E3779B97F4A7C15)
    return (value ^ (value >> np.uint64(32))) & last


@kernel
def join(
    left: Array,
    left_lengths: Array,
    words: Array,
    lengths: Array,
    first: int,
    n: int,
    unknown: int,
    slots: Array,
    pairs: Array,
    state: Array,
    batch: Array,
    ids: Array,
    out_lengths: Array,
) -> int:
    """Append the numbers of runs of n words; the document at which it stopped, because the table is too full.

    Run i of a document is left[i], its first n − 1 words, and words[i + n − 1]. A slot is a pair plus one, and its
    number; 0 is free. `pairs` holds them by number.
    """
    last = np.uint64(slots.size // 2 - 1)
    written, done = state[WRITTEN], state[DONE]
    state[DONE] = 0
    from_left, from_word = np.sum(left_lengths[:first]), np.sum(lengths[:first])
    for d in range(first, lengths.size):
        total = max(lengths[d] - n + 1, 0)
        for begin in range(done, total, BATCH):
            end = min(begin + BATCH, total)
            if unknown == GROW and state[GRAMS] + end - begin > pairs.size:
                state[WRITTEN], state[DONE] = written, begin
                return d
            for i in range(begin, end):
                key = (np.uint64(left[from_left + i]) << np.uint64(32)) | np.uint64(words[from_word + i + n - 1])
                batch[i - begin, 0], batch[i - begin, 1] = key, _place(key, last)
                prefetch(slots, 2 * batch[i - begin, 1])
            for i in range(end - begin):
                key, place = batch[i, 0] + np.uint64(1), batch[i, 1]
                while slots[np.uint64(2) * place] != key and slots[np.uint64(2) * place] != 0:
                    place = (place + np.uint64(1)) & last
                number = np.int64(slots[np.uint64(2) * place + np.uint64(1)])
                if slots[np.uint64(2) * place] == 0:
                    number = np.int64(unknown)
                    if unknown == GROW:
                        number = state[GRAMS]
                        slots[np.uint64(2) * place], slots[np.uint64(2) * place + np.uint64(1)] = key, number
                        pairs[np.uint64(number)] = batch[i, 0]
                        state[GRAMS] += 1
                ids[written] = number
                written += 1
        out_lengths[d] = total
        from_left += left_lengths[d]
        from_word += lengths[d]
        done = 0
    state[WRITTEN] = written
    return lengths.size


@kernel
def move_slots(slots: Array, larger: Array) -> None:
    """Fill a larger table that is empty."""
    last = np.uint64(larger.size // 2 - 1)
    for at in range(0, slots.size, 2):
        ahead = slots[min(at + 64, slots.size - 2)]
        prefetch(larger, 2 * np.int64(_place(ahead - np.uint64(1), last)))
        if slots[at] != 0:
            place = _place(slots[at] - np.uint64(1), last)
            while larger[np.uint64(2) * place] != 0:
                place = (place + np.uint64(1)) & last
            larger[np.uint64(2) * place], larger[np.uint64(2) * place + np.uint64(1)] = slots[at], slots[at + 1]


def _most(slots: int) -> int:
    """Pairs that so many slots may hold: beyond two thirds they would be in each other's way."""
    return 2 * slots // 3


class GramTable:
    """Runs of one length, numbered in the order in which they came."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.slots = np.zeros(2 * FIRST_SLOTS, np.uint64)
        self.pairs = np.zeros(_most(FIRST_SLOTS), np.uint64)
        self.state = np.zeros(3, np.int64)
        self.batch = np.empty((BATCH, 2), np.uint64)

    def __len__(self) -> int:
        return int(self.state[GRAMS])

    def read(self, left: Array, left_lengths: Array, words: Array, lengths: Array, grow: bool) -> tuple[Array, Array]:
        """Numbers and lengths of the runs in a stream; runs that a table does not take in get the number len(self)."""
        ids, out = np.empty(len(words), np.int32), np.zeros(len(lengths), np.int64)
        self.state[WRITTEN] = done = 0
        while True:
            unknown = GROW if grow else len(self)
            memory = self.slots, self.pairs, self.state, self.batch
            done = join(left, left_lengths, words, lengths, done, self.n, unknown, *memory, ids, out)
            if done == len(lengths):
                return ids[: self.state[WRITTEN]], out
            larger = np.zeros((2 if len(self) > MANY else 4) * self.slots.size, np.uint64)
            move_slots(self.slots, larger)
            more = np.zeros(_most(larger.size // 2) - self.pairs.size, np.uint64)
            self.slots, self.pairs = larger, np.concatenate([self.pairs, more])

    def absorb(self, left: Array, right: Array) -> Array:
        """Numbers of pairs given one by one, taken in where they are new."""
        # Each pair is a document of its own: n words of which only the last counts, and one run before it.
        words = np.repeat(right.astype(np.int32), self.n)
        ones = np.ones(len(left), np.int64)
        return self.read(left.astype(np.int32), ones, words, self.n * ones, grow=True)[0]
