"""Runs of words: a pair is two word numbers, a triplet a pair and a word, and so on. No text is touched.

A run of n words is numbered in a table of its own level, by the number of its first n − 1 words and that of the last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from deciban.kernels.choice import Array, readable
from deciban.kernels.intrinsics import prefetch
from deciban.kernels.jit import kernel, part
from deciban.text.kernels.characters import INVALID, NEEDS_CARE, PADDING, WIDTH, code_points
from deciban.text.kernels.compiled_consumers import relabel
from deciban.text.kernels.plain import Chunk, InvalidTextError, Stream, interleaved
from deciban.text.kernels.scan import EDGES, read_characters, read_words
from deciban.text.kernels.table import BATCH, GROW, WRITTEN, WordTable

PAIRS = 1024  # pairs looked up together
GRAMS, WRITTEN_RUNS, DONE = 0, 1, 2  # fields of the state: runs in the table, numbers written, pairs done of a document
FIRST_SLOTS = 4 * PAIRS  # so that a batch always fits
GROW_RUNS = -1
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
    written, done = state[WRITTEN_RUNS], state[DONE]
    state[DONE] = 0
    from_left, from_word = np.sum(left_lengths[:first]), np.sum(lengths[:first])
    for d in range(first, lengths.size):
        total = max(lengths[d] - n + 1, 0)
        for begin in range(done, total, PAIRS):
            end = min(begin + PAIRS, total)
            if unknown == GROW_RUNS and state[GRAMS] + end - begin > pairs.size:
                state[WRITTEN_RUNS], state[DONE] = written, begin
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
                    if unknown == GROW_RUNS:
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
    state[WRITTEN_RUNS] = written
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
        self.batch = np.empty((PAIRS, 2), np.uint64)

    def __len__(self) -> int:
        return int(self.state[GRAMS])

    def read(self, left: Array, left_lengths: Array, words: Array, lengths: Array, grow: bool) -> tuple[Array, Array]:
        """Numbers and lengths of the runs in a stream; runs that a table does not take in get the number len(self)."""
        ids, out = np.empty(len(words), np.int32), np.zeros(len(lengths), np.int64)
        self.state[WRITTEN_RUNS] = done = 0
        while True:
            unknown = GROW_RUNS if grow else len(self)
            memory = self.slots, self.pairs, self.state, self.batch
            done = join(left, left_lengths, words, lengths, done, self.n, unknown, *memory, ids, out)
            if done == len(lengths):
                return ids[: self.state[WRITTEN_RUNS]], out
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


# -- reader ----------
# Documents to numbers of words or of runs of characters, a chunk at a time: memory for the kernels, and the texts that
# need Python's own care.

Prepare = Callable[[str], str]  # a text lower-cased and stripped as asked, in Python
_FIRST_SIZE = 2**14  # bytes of a document, before a longer one is met


def room_for(size: int) -> tuple[Array, Array]:
    """Where kernels put a document of so many bytes, and its masks."""
    return np.zeros(size + PADDING, np.uint8), np.zeros((size // WIDTH + 3, 2), np.uint64)


class WordReader:
    """Reads words of two or more characters into a table, which grows or stays as it is.

    >>> reader = WordReader(WordTable())
    >>> text = np.frombuffer(b"To be or not to be", np.uint8)
    >>> reader.read(Chunk(text, np.array([0, 8, 18])))
    Stream(ids=array([0, 1, 2, 3, 0, 1], dtype=int32), lengths=array([3, 3]))
    """

    def __init__(
        self,
        words: WordTable,
        lowercase: bool = True,
        prepare: Prepare = str.lower,
        strip_accents: bool = False,
        grow: bool = True,
    ) -> None:
        self.words, self.grow, self.prepare = words, grow, prepare
        self.points, self.case = code_points(lowercase, strip_accents), 32 if lowercase else 0
        self.edges = np.zeros(EDGES, np.int64)
        self._make_room(_FIRST_SIZE)

    def read(self, chunk: Chunk) -> Stream:
        """Numbers for the chunk's documents; words that the table does not take in get the number len(words)."""
        text, offsets = readable(chunk.text, np.uint8), readable(chunk.offsets, np.int64)
        stream = self._read(text, offsets, self.points, self.case)
        invalid = np.flatnonzero(stream.lengths == INVALID)
        if len(invalid):
            raise InvalidTextError(chunk.first + int(invalid[0]))
        careful = np.flatnonzero(stream.lengths == NEEDS_CARE)
        return self._with_care(chunk, stream, careful) if len(careful) else stream

    def _read(self, text: Array, offsets: Array, points: Array, case: int) -> Stream:
        """As the kernel finds them; it stops whenever it needs more room."""
        n = len(offsets) - 1
        ids = np.empty(self._most(int(offsets[-1] - offsets[0]), n), np.int32)
        lengths = np.zeros(n, np.int64)
        self.words.state[WRITTEN] = done = 0
        while True:
            done = self._run(text, offsets, done, points, case, ids, lengths)
            if done == n:
                return Stream(ids[: self.words.state[WRITTEN]], lengths)
            size = int(offsets[done + 1] - offsets[done])
            if size + PADDING > self.low.size:
                self._make_room(2 * size)
            if self.grow:
                self.words.grow(self._batch_bytes(size))

    def _with_care(self, chunk: Chunk, stream: Stream, careful: Array) -> Stream:
        """The stream with documents added that Python prepared."""
        prepared = []
        for d in careful:
            raw = chunk.text[chunk.offsets[d] : chunk.offsets[d + 1]].tobytes()
            try:
                prepared.append(self.prepare(raw.decode()).encode())
            except UnicodeDecodeError:
                raise InvalidTextError(chunk.first + int(d)) from None
        offsets = np.cumsum([0, *map(len, prepared)])
        text = np.frombuffer(b"".join(prepared), np.uint8)
        late = self._read(readable(text), offsets, code_points(lowercase=False), 0)
        lengths = np.zeros(len(stream.lengths), np.int64)
        lengths[careful] = late.lengths
        return interleaved([Stream(stream.ids, np.maximum(stream.lengths, 0)), Stream(late.ids, lengths)])

    # -- what differs between words and runs of characters ------------------------------------------------------------
    def _make_room(self, size: int) -> None:
        """Memory for a document of that many bytes."""
        self.low, self.masks = room_for(size)

    def _most(self, size: int, n: int) -> int:
        """Numbers that n documents of so many bytes can give: a word takes three, with what parts it from the next."""
        return size // 3 + n

    def _batch_bytes(self, size: int) -> int:
        """Bytes that a batch of a document's words can have."""
        return size

    def _run(self, text: Array, offsets: Array, done: int, points: Array, case: int, ids: Array, lengths: Array) -> Any:
        words, unknown = self.words, GROW if self.grow else len(self.words)
        memory = words.slots, words.arena, words.state, self.low, self.masks, self.edges, words.batch
        return read_words(text, offsets, done, points, case, unknown, *memory, ids, lengths)


class CharacterReader(WordReader):
    """Reads runs of `lowest` to `highest` characters into a table, anywhere or `within` words."""

    def __init__(self, words: WordTable, lowest: int, highest: int, within: bool, **options: Any) -> None:
        self.lowest, self.highest, self.within = lowest, highest, within
        super().__init__(words, **options)

    def _make_room(self, size: int) -> None:
        super()._make_room(size)
        self.clean, self.starts = np.zeros(size + PADDING, np.uint8), np.zeros(size + 4, np.int64)

    def _most(self, size: int, n: int) -> int:
        # Within words, a space ends one and begins the next: at worst every character counts twice.
        return (self.highest - self.lowest + 1) * (1 + self.within) * (size + 2 * n)

    def _batch_bytes(self, size: int) -> int:
        return BATCH * min(4 * self.highest, size + 2)

    def _run(self, text: Array, offsets: Array, done: int, points: Array, case: int, ids: Array, lengths: Array) -> Any:
        words, unknown = self.words, GROW if self.grow else len(self.words)
        memory = words.slots, words.arena, words.state, self.low, self.masks, self.clean, self.starts, words.batch
        runs = self.lowest, self.highest, self.within
        return read_characters(text, offsets, done, points, case, *runs, unknown, *memory, ids, lengths)


# -- levels ----------
# Documents to numbers of features: words, words under other labels, runs of words, or runs of characters.

Label = Callable[[list[str]], Sequence[str | None]]  # words → what they count as; None is dropped

MOST_REMEMBERED = 2**22  # words whose labels a reader of a fixed vocabulary keeps


class Labeller:
    """Words counted under labels of their own, such as stems. Labels are asked for once a word, not once a token."""

    def __init__(self, label: Label, words: WordTable, grow: bool) -> None:
        self.label, self.words, self.grow = label, words, grow
        self.labels = np.empty(0, np.int32)

    def __call__(self, stream: Stream, raw: WordTable) -> Stream:
        """The stream of labels; it takes the place of the words' own."""
        if len(raw) > len(self.labels):
            self._extend(raw)
        left = relabel(stream.ids, stream.lengths, self.labels)
        return Stream(stream.ids[:left], stream.lengths)

    def _extend(self, raw: WordTable) -> None:
        known, offsets = len(self.labels), raw.offsets()
        letters = raw.arena[: offsets[-1]].tobytes()
        new = [letters[a:b].decode() for a, b in zip(offsets[known:-1].tolist(), offsets[known + 1 :].tolist())]
        labels = self.label(new)
        kept = np.array([label is not None for label in labels], bool)
        encoded = [label.encode() for label in labels if label is not None]
        text = np.frombuffer(b"".join(encoded) + bytes(16), np.uint8)
        numbers = np.full(len(new), -1, np.int32)
        numbers[kept] = self.words.numbers(text, np.cumsum([0, *map(len, encoded)]), self.grow, len(self.words))
        self.labels = np.concatenate([self.labels, numbers])


class LevelReader:
    """Reads words, and runs of them up to `highest`, each length into a table of its own."""

    def __init__(self, reader: WordReader, lowest: int = 1, highest: int = 1, label: Label | None = None) -> None:
        self.reader, self.lowest = reader, lowest
        self.words, self.grow = reader.words, reader.grow
        self.tables = [GramTable(n) for n in range(2, highest + 1)]
        self.labeller = None
        if label is not None:
            # The reader's own table keeps growing: it remembers which label a word has.
            self.labeller = Labeller(label, self.words, self.grow)
            reader.words, reader.grow = WordTable(), True

    def read(self, chunk: Chunk) -> list[Stream]:
        """A stream for each length of run from the lowest on."""
        if self.labeller is not None and not self.grow and len(self.reader.words) > MOST_REMEMBERED:
            self.reader.words, self.labeller.labels = WordTable(), np.empty(0, np.int32)
        words = self.reader.read(chunk)
        if self.labeller is not None:
            words = self.labeller(words, self.reader.words)
        streams, runs = [words] if self.lowest == 1 else [], words
        for table in self.tables:
            runs = Stream(*table.read(*runs, *words, self.grow))
            if table.n >= self.lowest:
                streams.append(runs)
        return streams

    @property
    def sizes(self) -> list[int]:
        """How many features there are of each length that is read."""
        return [len(self.words), *map(len, self.tables)][self.lowest - 1 :]
