"""Documents to numbers of words or of runs of characters, a chunk at a time: memory for the kernels, and the texts that
need Python's own care.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..choice import Array, readable
from .characters import read_characters
from .chunks import Chunk, InvalidTextError, Stream, interleaved
from .code_points import code_points
from .instructions import WIDTH
from .marks import INVALID, NEEDS_CARE, PADDING
from .table import BATCH, GROW, WRITTEN
from .words import EDGES, read_words
from .words_table import WordTable

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
