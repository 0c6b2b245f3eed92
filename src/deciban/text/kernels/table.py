"""A hash table of words, numbered as they come.

A slot is four numbers: the word's bytes where there are at most sixteen, else a hash and the first eight; its length
and number; where its bytes begin in the arena, which holds all words end to end. So almost every comparison is made
within the slot, and a batch of slots can be asked for before the first is looked at.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from deciban.kernels.choice import Array, readable
from deciban.kernels.intrinsics import prefetch
from deciban.kernels.jit import kernel, part
from deciban.text.kernels.characters import address, eight_bytes
from deciban.text.kernels.ordering import alphabetical

SLOT = 4  # numbers in a slot: key, key, length << 32 | number + 1, start in the arena; the third is 0 where it is free
INLINE = 16  # bytes of a word that the keys hold
BATCH = 1024  # words looked up together

# Fields of the state: words and bytes in the table; numbers written; of the document being read, words looked up, and
# words to skip because they were looked up before the table had to grow.
WORDS, BYTES, WRITTEN, HANDLED, SKIP = 0, 1, 2, 3, 4
FIRST, SECOND, START, LENGTH, PLACE = 0, 1, 2, 3, 4  # columns of a batch: keys, where the word is, its slot
GROW = -1  # as `unknown`: words not in the table are added


@part
def _low_bytes(number: int) -> Any:
    """A mask of 0 … 8 bytes."""
    half = np.uint64(4 * number)
    return ((np.uint64(1) << half) << half) - np.uint64(1)


@part
def _hash(at: int, length: int) -> Any:
    value = np.uint64(length) * np.uint64(0xA0761D6478BD642F)
    for i in range(0, length - 7, 8):
        value = (value ^ eight_bytes(at + i)) * np.uint64(0xE7037ED1A0B428DB)
        value ^= value >> np.uint64(29)
    value = (value ^ eight_bytes(at + length - 8)) * np.uint64(0xE7037ED1A0B428DB)
    return value ^ (value >> np.uint64(32))


@part
def keys(at: int, length: int) -> tuple[int, int]:
    """The two keys of the word at an address, from which sixteen bytes at least can be read."""
    first = eight_bytes(at) & _low_bytes(min(length, 8))
    if length > INLINE:
        return _hash(at, length), first
    return first, eight_bytes(at + 8) & _low_bytes(max(length, 8) - 8)


@part
def _place(first: Any, second: Any, last: Any) -> Any:
    value = (first ^ (second * np.uint64(0xE7037ED1A0B428DB))) * np.uint64(0x9E3779B97F4A7C15)
    return (value ^ (value >> np.uint64(32))) & last


@part
def _same(one: int, other: int, length: int) -> bool:
    for i in range(0, length - 7, 8):
        if eight_bytes(one + i) != eight_bytes(other + i):
            return False
    return eight_bytes(one + length - 8) == eight_bytes(other + length - 8)


@part
def has_room(slots: Array, arena: Array, state: Array, words: int, size: int) -> bool:
    """Whether that many words of that many bytes can be added, at most two thirds of the slots being taken."""
    return 3 * SLOT * (state[WORDS] + words) <= 2 * slots.size and state[BYTES] + size + INLINE <= arena.size


@part
def note(batch: Array, t: int, at: int, start: int, length: int, slots: Array) -> None:
    """Make the word at an address, `start` in its text, the t-th of a batch, and ask for its slot."""
    first, second = keys(at, length)
    place = _place(first, second, np.uint64(slots.size // SLOT - 1))
    prefetch(slots, SLOT * place)
    batch[t, FIRST], batch[t, SECOND], batch[t, PLACE] = first, second, place
    batch[t, START], batch[t, LENGTH] = start, length


@part
def look_up(
    batch: Array, n: int, text: Array, unknown: int, slots: Array, arena: Array, state: Array, ids: Array, to: int
) -> None:
    """Write the numbers of the batch's n words, whose slots have been asked for, to ids[to : to + n]."""
    last = np.uint64(slots.size // SLOT - 1)
    for t in range(n):
        first, second, length, place = batch[t, FIRST], batch[t, SECOND], batch[t, LENGTH], batch[t, PLACE]
        number = np.int64(unknown)
        while True:
            at = np.uint64(SLOT) * place
            held = slots[at + np.uint64(2)]
            if held == 0:
                if unknown == GROW:
                    number = state[WORDS]
                    _add(batch, t, text, slots, at, arena, state)
                break
            if slots[at] == first and slots[at + np.uint64(1)] == second and held >> np.uint64(32) == length:
                start = address(arena) + np.int64(slots[at + np.uint64(3)])
                if length <= INLINE or _same(start, address(text) + np.int64(batch[t, START]), np.int64(length)):
                    number = np.int64(held & np.uint64(0xFFFFFFFF)) - 1
                    break
            place = (place + np.uint64(1)) & last
        ids[np.uint64(to + t)] = number


@part
def _bytes(batch: Array, n: int) -> Any:
    """Of a batch's words together; np.sum would have every process import what numba has for arrays."""
    size = np.uint64(0)
    for t in range(n):
        size += batch[np.uint64(t), LENGTH]
    return size


@part
def flush(
    batch: Array,
    n: int,
    size: int,
    text: Array,
    unknown: int,
    slots: Array,
    arena: Array,
    state: Array,
    ids: Array,
    lengths: Array,
    d: int,
) -> bool:
    """Append the numbers of a batch of document d's words; False where the table has no room for them.

    They have `size` bytes at most. Read again from its beginning after the table has grown, a document falls into the
    same batches: whole batches are skipped that are done.
    """
    if state[SKIP] > 0:
        state[SKIP] -= n
        return True
    if unknown == GROW and not has_room(slots, arena, state, n, _bytes(batch, n)):
        return False
    look_up(batch, n, text, unknown, slots, arena, state, ids, state[WRITTEN])
    state[WRITTEN] += n
    state[HANDLED] += n
    lengths[d] += n
    return True


@part
def _add(batch: Array, t: int, text: Array, slots: Array, at: int, arena: Array, state: Array) -> None:
    start, length, used = batch[t, START], batch[t, LENGTH], np.uint64(state[BYTES])
    slots[at], slots[at + np.uint64(1)] = batch[t, FIRST], batch[t, SECOND]
    slots[at + np.uint64(2)] = (length << np.uint64(32)) | np.uint64(state[WORDS] + 1)
    slots[at + np.uint64(3)] = used
    for i in range(length):
        arena[used + np.uint64(i)] = text[start + np.uint64(i)]
    state[WORDS] += 1
    state[BYTES] += np.int64(length)


@kernel
def move_slots(slots: Array, larger: Array) -> None:
    """Fill a larger table that is empty."""
    last = np.uint64(larger.size // SLOT - 1)
    for at in range(0, slots.size, SLOT):
        if slots[at + 2] != 0:
            place = _place(slots[at], slots[at + 1], last)
            while larger[np.uint64(SLOT) * place + np.uint64(2)] != 0:
                place = (place + np.uint64(1)) & last
            for i in range(SLOT):
                larger[np.uint64(SLOT) * place + np.uint64(i)] = slots[at + i]


@kernel
def place_slots(slots: Array, first: Array, where: Array, other: Array) -> None:
    """Fill a table that is empty with another's words in the order of their numbers given, all of them.

    `where` is room for a place a word.
    """
    last = np.uint64(other.size // SLOT - 1)
    for at in range(0, slots.size, SLOT):
        if slots[at + 2] != 0:
            where[(slots[at + 2] & np.uint64(0xFFFFFFFF)) - np.uint64(1)] = at
    for i in range(first.size):
        at = where[np.uint64(first[i])]
        place = _place(slots[at], slots[at + 1], last)
        while other[np.uint64(SLOT) * place + np.uint64(2)] != 0:
            place = (place + np.uint64(1)) & last
        for j in range(SLOT):
            other[np.uint64(SLOT) * place + np.uint64(j)] = slots[at + j]


@kernel
def starts_and_lengths(slots: Array, starts: Array, lengths: Array) -> None:
    """Where each word begins in the arena, by number."""
    for at in range(0, slots.size, SLOT):
        held = slots[at + 2]
        if held != 0:
            number = np.int64(held & np.uint64(0xFFFFFFFF)) - 1
            starts[number], lengths[number] = slots[at + 3], held >> np.uint64(32)


@kernel
def read_names(
    text: Array,
    offsets: Array,
    first: int,
    unknown: int,
    slots: Array,
    arena: Array,
    state: Array,
    batch: Array,
    ids: Array,
) -> int:
    """The numbers of strings given one by one; where it stopped for want of room in the table.

    The text must go on for sixteen bytes after the last string.
    """
    total = offsets.size - 1
    for begin in range(first, total, BATCH):
        end = min(begin + BATCH, total)
        size = offsets[end] - offsets[begin]
        if unknown == GROW and not has_room(slots, arena, state, end - begin, size):
            return begin
        for i in range(begin, end):
            note(batch, i - begin, address(text) + offsets[i], offsets[i], offsets[i + 1] - offsets[i], slots)
        look_up(batch, end - begin, text, unknown, slots, arena, state, ids, begin)
    return total


# -- words table ----------
# The table of words with its memory: it grows, gives its words back in order, and takes in another's.

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
        move_slots(self.slots, larger)
        self.slots = larger

    def arrange(self, first: Array) -> None:
        """Put words into their slots in the order of the numbers given: the first are in nobody's way.

        Where these are the frequent words, half of the slots may be taken.
        """
        if not np.array_equal(np.sort(first), np.arange(len(self))):
            raise IndexError(f"{len(first)} numbers do not name each of {len(self)} words once")
        least = 1 << (2 * len(self) + 2 * BATCH - 1).bit_length()
        other = np.zeros(SLOT * least, np.uint64)
        place_slots(self.slots, readable(first, np.int64), np.empty(len(self), np.int64), other)
        self.slots = other

    def numbers(self, text: Array, offsets: Array, grow: bool, unknown: int = 0) -> Array:
        """The number of each string text[offsets[i] : offsets[i + 1]]; sixteen bytes must follow the last."""
        text, offsets = readable(text, np.uint8), readable(offsets, np.int64)
        ids = np.empty(len(offsets) - 1, np.int32)
        done = 0
        while True:
            done = read_names(
                text, offsets, done, GROW if grow else unknown, self.slots, self.arena, self.state, self.batch, ids
            )
            if done == len(ids):
                return ids
            self.grow(int(offsets[min(done + BATCH, len(ids))] - offsets[done]))

    def offsets(self) -> Array:
        """Where each word begins in the arena, and where the last one ends."""
        starts, lengths = np.empty(len(self), np.int64), np.empty(len(self), np.int64)
        starts_and_lengths(self.slots, starts, lengths)
        return np.append(starts, self.state[BYTES])

    def order(self, offsets: Array) -> Array:
        """The numbers of the words in alphabetical order of their code points."""
        return alphabetical(self.arena, offsets)

    def absorb(self, other: WordTable) -> Array:
        """Add another table's words; their numbers here."""
        return self.numbers(other.arena, other.offsets(), grow=True)
