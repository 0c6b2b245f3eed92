"""Hash tables of words and of n-grams of words, with open addressing. Ids are given in order of first occurrence.

A slot of the table of words is four numbers: two keys, which are the word's bytes if there are at most sixteen,
otherwise a hash and the first eight bytes; its length and id; the position of its bytes in the arena, which holds all
words end to end. So almost every comparison is made within the slot, and the slots of a batch of words can be
prefetched before the first is read.

The hash functions are keyed: each table draws a secret key of 128 bits. Under a known hash function, words can be
chosen that all have the same first slot, and n such words take time of order n². Ids do not depend on the key.
"""

from __future__ import annotations

import os

import numpy as np

from deciban.kernels.choice import Array, readable
from deciban.kernels.intrinsics import folded_product, prefetch
from deciban.kernels.jit import inline, kernel
from deciban.text.kernels.characters import address, eight_bytes

SLOT = 4  # numbers in a slot: key, key, length << 32 | id + 1, start in the arena; the third is 0 in a free slot
INLINE = 16  # bytes of a word that the keys hold
BATCH = 1024  # words looked up together

# Fields of the state: words and bytes in the table; ids written; words of the current document that were looked up, and
# those to skip because they were looked up before the table had to grow; the two halves of the key.
WORDS, BYTES, WRITTEN, HANDLED, SKIP, KEY, KEY_2 = 0, 1, 2, 3, 4, 5, 6
FIRST, SECOND, START, LENGTH, PLACE = 0, 1, 2, 3, 4  # columns of a batch: keys, position and length of the word, slot
GROW = -1  # value of `unknown`: words that are not in the table are added. Any other value is their id


# -- hash functions ----------------------------------------------------------------------------------------------------
def random_key() -> Array:
    """Return a secret key of two numbers from the system's generator of random numbers."""
    return np.frombuffer(os.urandom(16), np.int64)


@inline
def hash_key(state: Array, at: int) -> tuple[np.uint64, np.uint64]:
    """Return the key of a table's hash function, which its state holds from position `at` on."""
    return np.uint64(state[at]), np.uint64(state[at + 1])


@inline
def _low_bytes(number: int) -> np.uint64:
    """Mask of the lowest 0 … 8 bytes."""
    half = np.uint64(4 * number)  # two shifts by half, since a shift by 64 is undefined
    return ((np.uint64(1) << half) << half) - np.uint64(1)


@inline
def _hash(at: int, length: int, key: tuple[np.uint64, np.uint64]) -> np.uint64:
    """Hash of a word of more than sixteen bytes."""
    value = key[0] ^ np.uint64(length)
    for i in range(0, length - 7, 8):
        value = folded_product(value ^ eight_bytes(at + i), key[1])
    return folded_product(value ^ eight_bytes(at + length - 8), key[1])


@inline
def _keys(at: int, length: int, key: tuple[np.uint64, np.uint64]) -> tuple[int, int]:
    """Return the two keys of the word at an address; at least sixteen bytes must be readable there."""
    first = eight_bytes(at) & _low_bytes(min(length, 8))
    if length > INLINE:
        return _hash(at, length, key), first
    return first, eight_bytes(at + 8) & _low_bytes(max(length, 8) - 8)


@inline
def _place(first: np.uint64, second: np.uint64, key: tuple[np.uint64, np.uint64], last: np.uint64) -> np.uint64:
    """Return the first slot to try for two keys of a word; `last` is the number of the last slot."""
    return folded_product(first ^ key[0], second ^ key[1]) & last


@inline
def _ngram_place(pair: np.uint64, key: tuple[np.uint64, np.uint64], last: np.uint64) -> np.uint64:
    """Return the first slot to try for an n-gram; `last` is the number of the last slot."""
    return folded_product(pair ^ key[0], key[1]) & last


# -- lookup of words ---------------------------------------------------------------------------------------------------
@inline
def _same(one: int, other: int, length: int) -> bool:
    """Compare two words of more than sixteen bytes."""
    for i in range(0, length - 7, 8):
        if eight_bytes(one + i) != eight_bytes(other + i):
            return False
    return eight_bytes(one + length - 8) == eight_bytes(other + length - 8)


@inline
def _has_room(slots: Array, arena: Array, state: Array, words: int, size: int) -> bool:
    """Whether this many words of this many bytes in all can be added: at most two thirds of the slots are used."""
    return 3 * SLOT * (state[WORDS] + words) <= 2 * slots.size and state[BYTES] + size + INLINE <= arena.size


@inline
def put_in_batch(
    batch: Array, t: int, at: int, start: int, length: int, slots: Array, key: tuple[np.uint64, np.uint64]
) -> None:
    """Make the word at an address, at position `start` of its text, the t-th of a batch, and prefetch its slot."""
    first, second = _keys(at, length, key)
    place = _place(first, second, key, np.uint64(slots.size // SLOT - 1))
    prefetch(slots, SLOT * place)
    batch[t, FIRST], batch[t, SECOND], batch[t, PLACE] = first, second, place
    batch[t, START], batch[t, LENGTH] = start, length


@inline
def _look_up(
    batch: Array, n: int, text: Array, unknown: int, slots: Array, arena: Array, state: Array, ids: Array, to: int
) -> None:
    """Write the ids of the n words of a batch to ids[to : to + n]."""
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


@inline
def _batch_bytes(batch: Array, n: int) -> np.uint64:
    """Sum of the words' bytes. np.sum would make every process import numba's array library."""
    size = np.uint64(0)
    for t in range(n):
        size += batch[np.uint64(t), LENGTH]
    return size


@inline
def write_batch(
    batch: Array,
    n: int,
    text: Array,
    unknown: int,
    slots: Array,
    arena: Array,
    state: Array,
    ids: Array,
    lengths: Array,
    d: int,
) -> bool:
    """Append the ids of a batch of words of document d; False if the table has no room for them.

    A document is read again from its beginning after the table has grown. It is split into the same batches, and those
    that were looked up are skipped.
    """
    if state[SKIP] > 0:
        state[SKIP] -= n
        return True
    if unknown == GROW and not _has_room(slots, arena, state, n, _batch_bytes(batch, n)):
        return False
    _look_up(batch, n, text, unknown, slots, arena, state, ids, state[WRITTEN])
    state[WRITTEN] += n
    state[HANDLED] += n
    lengths[d] += n
    return True


@inline
def _add(batch: Array, t: int, text: Array, slots: Array, at: int, arena: Array, state: Array) -> None:
    """Add the t-th word of a batch to the table, in the slot that starts at slots[at]."""
    start, length, used = batch[t, START], batch[t, LENGTH], np.uint64(state[BYTES])
    slots[at], slots[at + np.uint64(1)] = batch[t, FIRST], batch[t, SECOND]
    slots[at + np.uint64(2)] = (length << np.uint64(32)) | np.uint64(state[WORDS] + 1)
    slots[at + np.uint64(3)] = used
    for i in range(length):
        arena[used + np.uint64(i)] = text[start + np.uint64(i)]
    state[WORDS] += 1
    state[BYTES] += np.int64(length)


# -- growth ------------------------------------------------------------------------------------------------------------
@inline
def _copy_slot(slots: Array, at: int, other: Array, key: tuple[np.uint64, np.uint64], last: np.uint64) -> None:
    """Copy the word whose slot starts at slots[at] to another table of the same key, whose last slot is `last`."""
    place = _place(slots[at], slots[at + 1], key, last)
    while other[np.uint64(SLOT) * place + np.uint64(2)] != 0:
        place = (place + np.uint64(1)) & last
    for i in range(SLOT):
        other[np.uint64(SLOT) * place + np.uint64(i)] = slots[at + i]


@kernel
def _copy_slots(slots: Array, state: Array, larger: Array) -> None:
    """Copy all words to a larger table that is empty."""
    key, last = hash_key(state, KEY), np.uint64(larger.size // SLOT - 1)
    for at in range(0, slots.size, SLOT):
        if slots[at + 2] != 0:
            _copy_slot(slots, at, larger, key, last)


@kernel
def _copy_in_order(slots: Array, state: Array, first: Array, where: Array, other: Array) -> None:
    """Copy all words to another table that is empty, in the given order of their ids. `where` is a buffer."""
    key, last = hash_key(state, KEY), np.uint64(other.size // SLOT - 1)
    for at in range(0, slots.size, SLOT):
        if slots[at + 2] != 0:
            where[(slots[at + 2] & np.uint64(0xFFFFFFFF)) - np.uint64(1)] = at
    for i in range(first.size):
        _copy_slot(slots, where[np.uint64(first[i])], other, key, last)


@kernel
def _starts(slots: Array, starts: Array) -> None:
    """Write the position of each word in the arena, by id."""
    for at in range(0, slots.size, SLOT):
        held = slots[at + 2]
        if held != 0:
            starts[np.int64(held & np.uint64(0xFFFFFFFF)) - 1] = slots[at + 3]


@kernel
def _look_up_strings(
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
    """Write the ids of strings; the number of strings that are done, fewer than all if the table is full.

    At least sixteen bytes must follow the last string.
    """
    total, key = offsets.size - 1, hash_key(state, KEY)
    for begin in range(first, total, BATCH):
        end = min(begin + BATCH, total)
        size = offsets[end] - offsets[begin]
        if unknown == GROW and not _has_room(slots, arena, state, end - begin, size):
            return begin
        for i in range(begin, end):
            length = offsets[i + 1] - offsets[i]
            put_in_batch(batch, i - begin, address(text) + offsets[i], offsets[i], length, slots, key)
        _look_up(batch, end - begin, text, unknown, slots, arena, state, ids, begin)
    return total


# -- table of words ----------------------------------------------------------------------------------------------------
FIRST_SLOTS = 4 * BATCH  # so that a batch always fits
MANY_WORDS = 2**16  # from here on slots are doubled, not quadrupled, to save memory
MOST_WORDS = 2**31 - 2  # ids are kept as int32


class WordTable:
    """Hash table of words; ids are given in the order in which words are added.

    `key` is that of the hash function, two int64; a random one unless given. Only the order of the slots depends on it.

    >>> words = WordTable()
    >>> text = np.frombuffer(b"to be or not to be" + bytes(16), np.uint8)
    >>> words.look_up(text, np.array([0, 2, 3, 5]), grow=True)
    array([0, 1, 2], dtype=int32)
    >>> len(words)
    3
    """

    def __init__(self, expected: int = 0, key: Array | None = None) -> None:
        # with at most a third of the slots in use, expected words have few collisions whatever their order
        slots = max(FIRST_SLOTS, 1 << (3 * (expected + BATCH) - 1).bit_length())
        self.slots = np.zeros(slots * SLOT, np.uint64)
        self.arena = np.zeros(FIRST_SLOTS * 8, np.uint8)
        self.state = np.zeros(7, np.int64)
        self.state[[KEY, KEY_2]] = random_key() if key is None else key
        self.batch = np.empty((BATCH, 5), np.uint64)

    def __len__(self) -> int:
        return int(self.state[WORDS])

    def reserve(self, size: int) -> None:
        """Make room for another batch, whose words have at most `size` bytes."""
        if 3 * SLOT * (len(self) + BATCH) > 2 * self.slots.size:
            if 2 * len(self) > MOST_WORDS:
                raise MemoryError(f"a vocabulary of more than {len(self)} words")
            larger = np.zeros((2 if len(self) > MANY_WORDS else 4) * self.slots.size, np.uint64)
            _copy_slots(self.slots, self.state, larger)
            self.slots = larger
        used = int(self.state[BYTES])
        if used + size + INLINE > self.arena.size:
            self.arena = np.concatenate([self.arena[:used], np.zeros(used + size + INLINE, np.uint8)])

    def arrange(self, first: Array) -> None:
        """Put words into slots in the given order of their ids: the first ones have no collisions.

        If these are the frequent words, half of the slots may be used.
        """
        if not np.array_equal(np.sort(first), np.arange(len(self))):
            raise IndexError(f"{len(first)} ids do not name each of {len(self)} words once")
        least = 1 << (2 * len(self) + 2 * BATCH - 1).bit_length()
        other = np.zeros(SLOT * least, np.uint64)
        _copy_in_order(self.slots, self.state, readable(first, np.int64), np.empty(len(self), np.int64), other)
        self.slots = other

    def look_up(self, text: Array, offsets: Array, grow: bool, unknown: int = 0) -> Array:
        """Return the id of each string text[offsets[i] : offsets[i + 1]]; sixteen bytes must follow the last.

        Strings that are not in the table are added if `grow`; otherwise they get the id `unknown`.
        """
        text, offsets = readable(text, np.uint8), readable(offsets, np.int64)
        ids = np.empty(len(offsets) - 1, np.int32)
        done = 0
        while True:
            done = _look_up_strings(
                text, offsets, done, GROW if grow else unknown, self.slots, self.arena, self.state, self.batch, ids
            )
            if done == len(ids):
                return ids
            self.reserve(int(offsets[min(done + BATCH, len(ids))] - offsets[done]))

    def offsets(self) -> Array:
        """Return the position of each word in the arena, and the end of the last one."""
        starts = np.empty(len(self), np.int64)
        _starts(self.slots, starts)
        return np.append(starts, self.state[BYTES])

    def add_words(self, other: WordTable) -> Array:
        """Add the words of another table; their ids here."""
        return self.look_up(other.arena, other.offsets(), grow=True)


# -- table of n-grams --------------------------------------------------------------------------------------------------
# An n-gram is the pair of the id of its first n − 1 words, in the table of that length, and the id of its last word: no
# text is read. A slot is this pair plus one, and the n-gram's id; 0 marks a free slot.
# Fields of the state: n-grams; ids written; those done of the current document; the two halves of the key.
NGRAMS, NGRAMS_WRITTEN, NGRAMS_DONE, NGRAM_KEY, NGRAM_KEY_2 = 0, 1, 2, 3, 4
MANY_NGRAMS = 2**19  # from here on slots are doubled, not quadrupled, to save memory


@kernel
def _look_up_ngrams(
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
    """Append the ids of n-grams; the number of documents that are done, fewer than all if the table is full.

    n-gram i of a document is the pair of left[i], the id of its first n − 1 words, and words[i + n − 1]. `pairs` holds
    the pairs by id.
    """
    secret, last = hash_key(state, NGRAM_KEY), np.uint64(slots.size // 2 - 1)
    written, done = state[NGRAMS_WRITTEN], state[NGRAMS_DONE]
    state[NGRAMS_DONE] = 0
    from_left, from_word = np.sum(left_lengths[:first]), np.sum(lengths[:first])
    for d in range(first, lengths.size):
        total = max(lengths[d] - n + 1, 0)
        for begin in range(done, total, BATCH):
            end = min(begin + BATCH, total)
            if unknown == GROW and state[NGRAMS] + end - begin > pairs.size:
                state[NGRAMS_WRITTEN], state[NGRAMS_DONE] = written, begin
                return d
            for i in range(begin, end):
                key = (np.uint64(left[from_left + i]) << np.uint64(32)) | np.uint64(words[from_word + i + n - 1])
                batch[i - begin, 0], batch[i - begin, 1] = key, _ngram_place(key, secret, last)
                prefetch(slots, 2 * batch[i - begin, 1])
            for i in range(end - begin):
                key, place = batch[i, 0] + np.uint64(1), batch[i, 1]
                while slots[np.uint64(2) * place] != key and slots[np.uint64(2) * place] != 0:
                    place = (place + np.uint64(1)) & last
                number = np.int64(slots[np.uint64(2) * place + np.uint64(1)])
                if slots[np.uint64(2) * place] == 0:
                    number = np.int64(unknown)
                    if unknown == GROW:
                        number = state[NGRAMS]
                        slots[np.uint64(2) * place], slots[np.uint64(2) * place + np.uint64(1)] = key, number
                        pairs[np.uint64(number)] = batch[i, 0]
                        state[NGRAMS] += 1
                ids[written] = number
                written += 1
        out_lengths[d] = total
        from_left += left_lengths[d]
        from_word += lengths[d]
        done = 0
    state[NGRAMS_WRITTEN] = written
    return lengths.size


@kernel
def _copy_ngrams(slots: Array, state: Array, larger: Array) -> None:
    """Copy all n-grams to a larger table that is empty."""
    secret, last = hash_key(state, NGRAM_KEY), np.uint64(larger.size // 2 - 1)
    for at in range(0, slots.size, 2):
        later = slots[min(at + 64, slots.size - 2)]
        prefetch(larger, 2 * np.int64(_ngram_place(later - np.uint64(1), secret, last)))
        if slots[at] != 0:
            place = _ngram_place(slots[at] - np.uint64(1), secret, last)
            while larger[np.uint64(2) * place] != 0:
                place = (place + np.uint64(1)) & last
            larger[np.uint64(2) * place], larger[np.uint64(2) * place + np.uint64(1)] = slots[at], slots[at + 1]


def _most_ngrams(slots: int) -> int:
    """Two thirds of the slots: more would collide too often."""
    return 2 * slots // 3


class NgramTable:
    """Hash table of n-grams of one length n ≥ 2; `key` as for `WordTable`."""

    def __init__(self, n: int, key: Array | None = None) -> None:
        self.n = n
        self.slots = np.zeros(2 * FIRST_SLOTS, np.uint64)
        self.pairs = np.zeros(_most_ngrams(FIRST_SLOTS), np.uint64)
        self.state = np.zeros(5, np.int64)
        self.state[[NGRAM_KEY, NGRAM_KEY_2]] = random_key() if key is None else key
        self.batch = np.empty((BATCH, 2), np.uint64)

    def __len__(self) -> int:
        return int(self.state[NGRAMS])

    def read(self, left: Array, left_lengths: Array, words: Array, lengths: Array, grow: bool) -> tuple[Array, Array]:
        """Return ids and lengths of the n-grams of a stream; without `grow`, unknown n-grams get the id len(self)."""
        ids, out = np.empty(len(words), np.int32), np.zeros(len(lengths), np.int64)
        self.state[NGRAMS_WRITTEN] = done = 0
        while True:
            unknown = GROW if grow else len(self)
            memory = self.slots, self.pairs, self.state, self.batch
            done = _look_up_ngrams(left, left_lengths, words, lengths, done, self.n, unknown, *memory, ids, out)
            if done == len(lengths):
                return ids[: self.state[NGRAMS_WRITTEN]], out
            larger = np.zeros((2 if len(self) > MANY_NGRAMS else 4) * self.slots.size, np.uint64)
            _copy_ngrams(self.slots, self.state, larger)
            more = np.zeros(_most_ngrams(larger.size // 2) - self.pairs.size, np.uint64)
            self.slots, self.pairs = larger, np.concatenate([self.pairs, more])

    def add_pairs(self, left: Array, right: Array) -> Array:
        """Return the ids of n-grams given as pairs; those that are new are added."""
        # Each pair is a document of its own: n words, of which only the last is read, and one n-gram of n − 1 words.
        words = np.repeat(right.astype(np.int32), self.n)
        ones = np.ones(len(left), np.int64)
        return self.read(left.astype(np.int32), ones, words, self.n * ones, grow=True)[0]
