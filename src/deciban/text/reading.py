"""One pass over documents: who reads which, compiled or in plain Python, and where features belong in the end."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from deciban.errors import InputError
from deciban.kernels.choice import SMALL_WORK, compiled
from deciban.text.documents import Documents
from deciban.text.kernels.streams import (
    Chunk,
    InvalidTextError,
    PlainReader,
    Stream,
    in_parallel,
    interleaved,
    relabelled,
    without_id,
)
from deciban.text.tokens import WORDS, Tokens, found, sizes
from deciban.text.vocabulary import Vocabulary

Array = NDArray[Any]
Result = TypeVar("Result")

WORK_PER_BYTE = 10  # elementary operations that a byte of text costs in plain Python
BYTES_PER_THREAD = 2**24  # less is not worth a thread
BYTES_PER_WORD = 2  # of text that plain Python reads while a word is put into the table
MOST_THREADS = 4


def is_large(documents: Documents, words: int = 0) -> bool:
    """Whether there is enough text for the kernels, if a table of so many words must be made first."""
    large = documents.at_least(SMALL_WORK // WORK_PER_BYTE + BYTES_PER_WORD * words)
    return compiled(SMALL_WORK if large else 0)


class Reading:
    """Reads documents into streams of feature numbers.

    With a vocabulary there is one stream a chunk, of columns; without, one for each length of run, of numbers that
    `places` puts in order afterwards.
    """

    def __init__(
        self,
        documents: Documents,
        tokens: Tokens,
        vocabulary: Vocabulary | None = None,
        threads: int | None = None,
        fast: bool = False,
    ) -> None:
        self.documents, self.tokens, self.vocabulary = documents, tokens, vocabulary
        self.fast = compiled(SMALL_WORK) if fast else is_large(documents)
        self.ranges = documents.ranges(self._threads(threads))

    def _threads(self, wanted: int | None) -> int:
        if not (self.fast and self.tokens.fast) or len(self.documents) < 2:
            return 1
        if wanted is not None:
            return min(wanted, len(self.documents))
        here = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        cores = min(here, MOST_THREADS)
        while cores > 1 and not self.documents.at_least(cores * BYTES_PER_THREAD):
            cores -= 1
        return cores

    def run(self, act: Callable[[int, int], Result]) -> list[Result]:
        """Results for each range of documents, each in a thread of its own."""
        return self.guarded(lambda: in_parallel(act, self.ranges))

    def guarded(self, act: Callable[[], Result]) -> Result:
        """A result, or an error that says which document is no text."""
        try:
            return act()
        except InvalidTextError as error:
            raise InputError(
                f"document {error.document} is not valid UTF-8. Decode the column with its own encoding first."
            ) from None

    def reader(self) -> Any:
        return self.tokens.reader(self.vocabulary, self.fast)

    def streams(self, reader: Any, chunk: Chunk) -> list[Stream]:
        """What a reader makes of a chunk."""
        return self.read(reader, chunk)[0]

    def read(self, reader: Any, chunk: Chunk) -> tuple[list[Stream], Array]:
        """What a reader makes of a chunk, and how many features each document has, in the vocabulary or not."""
        streams = reader.read(chunk)
        if self.vocabulary is None:
            return streams, np.sum([stream.lengths for stream in streams], axis=0)
        lengths = np.sum([stream.lengths for stream in streams], axis=0)  # relabelling may write over them
        if not hasattr(reader, "columns"):  # numbers are columns, and what is outside has the one behind the last
            known = streams if self.vocabulary.unk else [without_id(streams[0], len(self.vocabulary), self.fast)]
            return known, lengths
        known = [relabelled(stream, level, self.fast) for stream, level in zip(streams, reader.columns)]
        return [interleaved(known)], lengths

    def sizes(self, reader: Any) -> list[int]:
        """Above the numbers of each stream."""
        return sizes(reader) if self.vocabulary is None else [self.vocabulary.columns]

    def places(self, readers: Sequence[Any]) -> tuple[Vocabulary, list[list[Array]]]:
        """The vocabulary, and for each reader and stream the column of each number."""
        if self.vocabulary is not None:
            return self.vocabulary, [[np.arange(self.vocabulary.columns, dtype=np.int32)]] * len(readers)
        names, places = found(readers)
        return Vocabulary(names, "learnt"), places


# -- known ----------
# A vocabulary that texts are read by, again and again.


class KnownWords:
    """Reads texts by one vocabulary; its readers are kept: making one takes as long as reading a thousand texts.

    >>> known = KnownWords(Vocabulary.of(["be", "to"], "learnt"))
    >>> def streams(reading, reader, first, last):
    ...     return [reading.read(reader, chunk) for chunk in reading.documents.chunks(first, last)]
    >>> known.passed(["to be or not"], streams)[0]
    [([Stream(ids=array([1, 0]), lengths=array([2]))], array([4]))]
    """

    def __init__(self, vocabulary: Vocabulary, tokens: Tokens = WORDS) -> None:
        self.vocabulary, self.tokens = vocabulary, tokens
        self._idle: dict[bool, list[Any]] = {True: [], False: []}

    def passed(
        self,
        texts: Any,
        act: Callable[..., Result],
        threads: int | None = None,
        frequency: Callable[[], Array] | None = None,
    ) -> list[Result]:
        """act(reading, reader, first, last) for each range of the documents, each with a reader of its own.

        A reader is a quarter faster that knows which words are frequent: `frequency`, (V,), grows with it.
        """
        reading = Reading(Documents.of(texts), self.tokens, self.vocabulary, threads)
        idle = self._idle[reading.fast]

        def run(first: int, last: int) -> Result:
            reader = idle.pop() if idle else self._made(reading, frequency)
            done = act(reading, reader, first, last)
            idle.append(reader)
            return done

        return reading.run(run)

    def _made(self, reading: Reading, frequency: Callable[[], Array] | None) -> Any:
        reader = reading.reader()
        if frequency is not None and not isinstance(reader, PlainReader) and not reader.tables:
            reader.words.arrange(np.argsort(-frequency()))
        return reader

    def plain(self) -> PlainReader:
        """A reader in plain Python; it may serve several threads, for it does not change."""
        idle = self._idle[False]
        if not idle:
            idle.append(self.tokens.reader(self.vocabulary, fast=False))
        return idle[0]

    def __getstate__(self) -> dict[str, Any]:
        return {"vocabulary": self.vocabulary, "tokens": self.tokens}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]
