r"""Compiled readers: chunks of documents to streams of ids of words, n-grams of words, or n-grams of characters.

The kernels find words as `\b\w\w+\b` does, or n-grams of characters. A reader owns the memory that they work on.
Documents that a kernel cannot lower-case or strip of accents are prepared in Python, by a function that the reader is
given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from deciban.kernels.choice import Array, readable
from deciban.kernels.jit import inline, kernel
from deciban.text.kernels.characters import (
    INVALID,
    NEEDS_PYTHON,
    PADDING,
    SPACE,
    WIDTH,
    address,
    byte,
    classify_document,
    code_points,
    decode,
    lowest_bit,
    prepared_points,
    set_bits,
    set_byte,
)
from deciban.text.kernels.hash_tables import (
    BATCH,
    GROW,
    HANDLED,
    KEY,
    SKIP,
    WRITTEN,
    NgramTable,
    WordTable,
    hash_key,
    put_in_batch,
    write_batch,
)
from deciban.text.kernels.streams import Chunk, InvalidTextError, Stream, interleaved
from deciban.text.kernels.streams_compiled import relabel

Prepare = Callable[[str], str]  # lower-cases a text and strips its accents, according to the options
Label = Callable[[list[str]], Sequence[str | None]]  # words → what they count as; None is dropped

LONE = 0xE0  # first byte of characters from U+0800 on, which may be words alone
NEVER_LONE = 0x100
FIRST_SIZE = 2**14  # bytes of a document that buffers have room for at first
MOST_LABELS = 2**22  # words whose labels a reader of a fixed vocabulary keeps


# -- kernel: words -----------------------------------------------------------------------------------------------------
EDGES = 2 * BATCH + 8  # edges of a batch of words, and those that are written in excess


@inline
def _append_edges(mask: int, carry: int, first: int, edges: Array, n: int) -> int:
    """Append begins and ends of runs of word characters, in turn; the number of edges in all.

    Eight are written at a time, without a branch on their number, which would often be mispredicted.
    """
    left = mask ^ ((mask << np.uint64(1)) | carry)
    number = set_bits(left)
    for i in range(0, number, 8):
        for j in range(8):
            edges[np.uint64(n + i + j)] = first + lowest_bit(left)
            left &= left - np.uint64(1)
    return n + number


@inline
def _character_bytes(lead: int) -> int:
    """Return the number of bytes of a character, from its first byte."""
    return 1 + (lead >= 0xC0) + (lead >= 0xE0) + (lead >= 0xF0)


@inline
def _fill_batch(edges: Array, number: int, low: Array, lone: int, slots: Array, state: Array, batch: Array) -> int:
    """Put runs of two or more characters, or of one whose first byte is ≥ `lone`, into the batch; their number."""
    base, key = address(low), hash_key(state, KEY)
    n = 0
    for at in range(0, number - 1, 2):
        start = np.int64(edges[np.uint64(at)])
        length = edges[np.uint64(at + 1)] - start
        put_in_batch(batch, n, base + start, start, length, slots, key)
        lead = byte(base + start)
        n += (length > _character_bytes(lead)) | (lead >= lone)
    return n


@kernel
def read_words(
    text: Array,
    offsets: Array,
    first: int,
    points: Array,
    case: int,
    lone: int,
    unknown: int,
    slots: Array,
    arena: Array,
    state: Array,
    low: Array,
    masks: Array,
    edges: Array,
    batch: Array,
    ids: Array,
    lengths: Array,
) -> int:
    """Append the word ids of documents from `first` on to `ids`, and add their number to `lengths`.

    Returns the number of documents that are done. It is less than all if `low` is too short or the table full; the next
    call continues there, even in the middle of a document. `lengths` holds a return code (NEEDS_PYTHON, INVALID) for
    documents that were not read.
    """
    state[SKIP] = state[HANDLED]
    for d in range(first, offsets.size - 1):
        begin, end = offsets[d], offsets[d + 1]
        if end - begin + PADDING > low.size:
            return d
        blocks = classify_document(text, begin, end, points, case, low, masks, lengths, d)
        block, number = 0, 0
        carry = np.uint64(0)
        while block <= blocks:
            while block <= blocks and number <= 2 * BATCH - WIDTH:
                mask = masks[block, 0]
                number = _append_edges(mask, carry, block * WIDTH, edges, number)
                carry = mask >> np.uint64(63)
                block += 1
            n = _fill_batch(edges, number, low, lone, slots, state, batch)
            if not write_batch(batch, n, low, unknown, slots, arena, state, ids, lengths, d):
                return d
            edges[0] = edges[number - 1]  # a run that ends in a later block goes to the next batch
            number &= 1
        state[HANDLED] = 0
    return offsets.size - 1


# -- kernel: n-grams of characters -------------------------------------------------------------------------------------
# As scikit-learn: two or more white-space characters in a row become one space. Within words (`char_wb`), n-grams are
# taken of each word with a space at either end; a word that is too short for an n-gram counts once, as a whole.
_BLANK = 0x20


@inline
def _clean_space(size: int, points: Array, within: bool, low: Array, clean: Array, starts: Array) -> int:
    """Copy a text with its white space collapsed, and write where its characters begin; the number of characters.

    If `within`, all white space becomes a space, and there is one at either end of the text.
    """
    source, target = address(low), address(clean)
    at, to, n = 0, 0, 0
    spaces = 0  # in a row, up to here
    if within:
        set_byte(target, _BLANK)
        starts[0] = 0
        to, n, spaces = 1, 1, 1
    while at < size:
        point, length = byte(source + at), 1
        if point >= 0x80:
            point, length = decode(source + at, size - at)
        space = points[np.uint64(point)] & SPACE != 0
        spaces = spaces + 1 if space else 0
        if spaces >= 2:
            to = starts[n - 1]  # the white space before becomes a space
        else:
            starts[n] = to
            n += 1
        if space and (within or spaces >= 2):
            set_byte(target + to, _BLANK)
            to += 1
        else:
            for i in range(length):
                set_byte(target + to + i, byte(source + at + i))
            to += length
        at += length
    if within and spaces == 0:
        set_byte(target + to, _BLANK)
        starts[n] = to
        n += 1
        to += 1
    starts[n] = to
    return n


@kernel
def read_characters(
    text: Array,
    offsets: Array,
    first: int,
    points: Array,
    case: int,
    lowest: int,
    highest: int,
    within: bool,
    unknown: int,
    slots: Array,
    arena: Array,
    state: Array,
    low: Array,
    masks: Array,
    clean: Array,
    starts: Array,
    batch: Array,
    ids: Array,
    lengths: Array,
) -> int:
    """Append the ids of n-grams of `lowest` to `highest` characters; otherwise as `read_words`."""
    base, key = address(clean), hash_key(state, KEY)
    state[SKIP] = state[HANDLED]
    for d in range(first, offsets.size - 1):
        begin, end = offsets[d], offsets[d + 1]
        if end - begin + PADDING > low.size:
            return d
        if classify_document(text, begin, end, points, case, low, masks, lengths, d) < 0:
            continue
        characters = _clean_space(end - begin, points, within, low, clean, starts)
        n, opens = 0, 0
        while opens + within < characters:
            # From opens to closes: the whole text, or a word with its two spaces.
            closes = characters
            if within:
                closes = opens + 1
                while byte(base + starts[closes]) != _BLANK:
                    closes += 1
                closes += 1
            for size in range(lowest, highest + 1):
                number = closes - opens - size + 1
                for i in range(opens, opens + max(number, np.int64(within))):
                    length = starts[min(i + size, closes)] - starts[i]
                    put_in_batch(batch, n, base + starts[i], starts[i], length, slots, key)
                    n += 1
                    if n == BATCH:
                        if not write_batch(batch, n, clean, unknown, slots, arena, state, ids, lengths, d):
                            return d
                        n = 0
                if within and number <= 1:
                    break  # a short word counts once
            opens = closes - within
        if not write_batch(batch, n, clean, unknown, slots, arena, state, ids, lengths, d):
            return d
        state[HANDLED] = 0
    return offsets.size - 1


# -- readers -----------------------------------------------------------------------------------------------------------
def document_buffers(size: int) -> tuple[Array, Array]:
    """Return buffers for a document of this many bytes in lower case, and for its bitmaps."""
    return np.zeros(size + PADDING, np.uint8), np.zeros((size // WIDTH + 3, 2), np.uint64)


class WordReader:
    """Reads words of two or more characters by a table of words, which may grow; or words by their script.

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
        by_script: bool = False,
    ) -> None:
        self.words, self.grow, self.prepare = words, grow, prepare
        self.in_order = True  # new words get numbers in the order of documents
        self.points, self.case = code_points(lowercase, strip_accents, by_script), 32 if lowercase else 0
        self.by_script, self.lone = by_script, LONE if by_script else NEVER_LONE
        self.edges = np.zeros(EDGES, np.int64)
        self._make_buffers(FIRST_SIZE)

    def read(self, chunk: Chunk) -> Stream:
        """Return a stream of the chunk's documents. Without `grow`, unknown words get the id len(words)."""
        text, offsets = readable(chunk.text, np.uint8), readable(chunk.offsets, np.int64)
        stream = self._read(text, offsets, self.points, self.case)
        invalid = np.flatnonzero(stream.lengths == INVALID)
        if len(invalid):
            raise InvalidTextError(chunk.first + int(invalid[0]))
        unread = np.flatnonzero(stream.lengths == NEEDS_PYTHON)
        return self._with_prepared(chunk, stream, unread) if len(unread) else stream

    def _read(self, text: Array, offsets: Array, points: Array, case: int) -> Stream:
        """Run the kernel; when it stops, enlarge buffers or table and continue."""
        n = len(offsets) - 1
        ids = np.empty(self._most_ids(int(offsets[-1] - offsets[0]), n), np.int32)
        lengths = np.zeros(n, np.int64)
        self.words.state[WRITTEN] = done = 0
        while True:
            done = self._run(text, offsets, done, points, case, ids, lengths)
            if done == n:
                return Stream(ids[: self.words.state[WRITTEN]], lengths)
            size = int(offsets[done + 1] - offsets[done])
            if size + PADDING > self.low.size:
                self._make_buffers(2 * size)
            if self.grow:
                self.words.reserve(self._batch_bytes(size))

    def _with_prepared(self, chunk: Chunk, stream: Stream, unread: Array) -> Stream:
        """Return the stream with the documents that must be prepared in Python; they are read after the others."""
        prepared, self.in_order = [], False
        for d in unread:
            raw = chunk.text[chunk.offsets[d] : chunk.offsets[d + 1]].tobytes()
            try:
                prepared.append(self.prepare(raw.decode()).encode())
            except UnicodeDecodeError:
                raise InvalidTextError(chunk.first + int(d)) from None
        offsets = np.cumsum([0, *map(len, prepared)])
        text = np.frombuffer(b"".join(prepared), np.uint8)
        late = self._read(readable(text), offsets, prepared_points(self.by_script), 0)
        lengths = np.zeros(len(stream.lengths), np.int64)
        lengths[unread] = late.lengths
        return interleaved([Stream(stream.ids, np.maximum(stream.lengths, 0)), Stream(late.ids, lengths)])

    # -- what differs between words and n-grams of characters ----------------------------------------------------------
    def _make_buffers(self, size: int) -> None:
        """Allocate buffers for a document of this many bytes."""
        self.low, self.masks = document_buffers(size)

    def _most_ids(self, size: int, n: int) -> int:
        """Return the most ids of n documents of `size` bytes: a word and what separates it take three bytes."""
        return size // 3 + n

    def _batch_bytes(self, size: int) -> int:
        """Return the most bytes of a batch of words of a document of `size` bytes."""
        return size

    def _run(self, text: Array, offsets: Array, done: int, points: Array, case: int, ids: Array, lengths: Array) -> int:
        words, unknown = self.words, GROW if self.grow else len(self.words)
        memory = words.slots, words.arena, words.state, self.low, self.masks, self.edges, words.batch
        return read_words(text, offsets, done, points, case, self.lone, unknown, *memory, ids, lengths)


class CharacterReader(WordReader):
    """Reads n-grams of `lowest` to `highest` characters, anywhere in the text or only `within` words."""

    def __init__(self, words: WordTable, lowest: int, highest: int, within: bool, **options: Any) -> None:
        self.lowest, self.highest, self.within = lowest, highest, within
        super().__init__(words, **options)

    def _make_buffers(self, size: int) -> None:
        super()._make_buffers(size)
        self.clean, self.starts = np.zeros(size + PADDING, np.uint8), np.zeros(size + 4, np.int64)

    def _most_ids(self, size: int, n: int) -> int:
        # Within words, a space ends one and begins the next: in the worst case every character counts twice.
        return (self.highest - self.lowest + 1) * (1 + self.within) * (size + 2 * n)

    def _batch_bytes(self, size: int) -> int:
        return BATCH * min(4 * self.highest, size + 2)

    def _run(self, text: Array, offsets: Array, done: int, points: Array, case: int, ids: Array, lengths: Array) -> int:
        words, unknown = self.words, GROW if self.grow else len(self.words)
        memory = words.slots, words.arena, words.state, self.low, self.masks, self.clean, self.starts, words.batch
        sizes = self.lowest, self.highest, self.within
        return read_characters(text, offsets, done, points, case, *sizes, unknown, *memory, ids, lengths)


class Labeller:
    """Counts words under labels, such as stems. Each word is labelled once, not each token."""

    def __init__(self, label: Label, words: WordTable, grow: bool) -> None:
        self.label, self.words, self.grow = label, words, grow
        self.labels = np.empty(0, np.int32)

    def __call__(self, stream: Stream, raw: WordTable) -> Stream:
        """Replace the ids of words by those of their labels; the given stream is overwritten."""
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
        ids = np.full(len(new), -1, np.int32)
        ids[kept] = self.words.look_up(text, np.cumsum([0, *map(len, encoded)]), self.grow, len(self.words))
        self.labels = np.concatenate([self.labels, ids])


class NgramReader:
    """Reads words, or their labels, and n-grams of them up to `highest`, with a table for each n."""

    def __init__(self, reader: WordReader, lowest: int = 1, highest: int = 1, label: Label | None = None) -> None:
        self.reader, self.lowest = reader, lowest
        self.words, self.grow = reader.words, reader.grow
        self.tables = [NgramTable(n) for n in range(2, highest + 1)]
        self.labeller = None
        self.columns: list[Array] | None = None  # the column of each id of each n, where ids are not columns
        if label is not None:
            # The word reader gets a table of its own, which grows in any case: its ids index the labels.
            self.labeller = Labeller(label, self.words, self.grow)
            reader.words, reader.grow = WordTable(), True

    def read(self, chunk: Chunk) -> list[Stream]:
        """Return a stream for each n from the lowest on."""
        if self.labeller is not None and not self.grow and len(self.reader.words) > MOST_LABELS:
            self.reader.words, self.labeller.labels = WordTable(), np.empty(0, np.int32)
        words = self.reader.read(chunk)
        if self.labeller is not None:
            words = self.labeller(words, self.reader.words)
        streams, ngrams = [words] if self.lowest == 1 else [], words
        for table in self.tables:
            ngrams = Stream(*table.read(*ngrams, *words, self.grow))
            if table.n >= self.lowest:
                streams.append(ngrams)
        return streams

    @property
    def in_order(self) -> bool:
        """Whether features of each n are numbered in the order in which they first occur."""
        return self.reader.in_order

    @property
    def sizes(self) -> list[int]:
        """Number of features of each n that is read."""
        return [len(self.words), *map(len, self.tables)][self.lowest - 1 :]
