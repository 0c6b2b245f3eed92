"""Documents to numbers of features: words, words under other labels, runs of words, or runs of characters."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from .chunks import Chunk, Stream
from .consumers import relabel
from .grams import GramTable
from .reader import WordReader
from .words_table import WordTable

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
