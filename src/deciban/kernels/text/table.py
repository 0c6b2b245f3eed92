"""A hash table of words, numbered as they come.

A slot is four numbers: the word's bytes where there are at most sixteen, else a hash and the first eight; its length
and number; where its bytes begin in the arena, which holds all words end to end. So almost every comparison is made
within the slot, and a batch of slots can be asked for before the first is looked at.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..choice import Array
from ..intrinsics import prefetch
from ..jit import kernel, part
from .instructions import address, eight_bytes

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
