"""A vocabulary that texts are read by, again and again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from deciban.features.documents import Documents
from deciban.features.reading import Reading
from deciban.features.tokens import WORDS, Tokens
from deciban.features.vocabulary import Vocabulary
from deciban.kernels.text.plain import PlainReader

Array = NDArray[Any]
Result = TypeVar("Result")


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
