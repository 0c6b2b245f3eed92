"""One pass over documents: who reads which, compiled or in plain Python, and where features belong in the end."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from deciban.errors import InputError
from deciban.features.documents import Documents
from deciban.features.readers import found, sizes
from deciban.features.tokens import Tokens
from deciban.features.vocabulary import Vocabulary
from deciban.kernels.choice import SMALL_WORK, compiled
from deciban.kernels.text.chunks import Chunk, InvalidTextError, Stream, interleaved
from deciban.kernels.text.counting import in_parallel, relabelled, without

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
            known = streams if self.vocabulary.unk else [without(streams[0], len(self.vocabulary), self.fast)]
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
