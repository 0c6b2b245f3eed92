"""Between a reader's numbers and names: what a reader has found, in order; a reader that knows a vocabulary."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from deciban.errors import HyperparameterError
from deciban.text.kernels.streams import PlainReader
from deciban.text.stop_words import stop_words_of
from deciban.text.vocabulary import Vocabulary, text_array

Array = NDArray[Any]


def sizes(reader: Any) -> list[int]:
    """How many features a reader has at each of its levels."""
    return [len(reader)] if isinstance(reader, PlainReader) else reader.sizes


def found(readers: Sequence[Any]) -> tuple[Any, list[list[Array]]]:
    """The names of all that readers have found, sorted; for each reader and level the place of each number."""
    if isinstance(readers[0], PlainReader):
        (reader,) = readers
        words = list(reader.number)
        order = sorted(range(len(words)), key=words.__getitem__)
        place = np.empty(len(order), np.int32)
        place[order] = np.arange(len(order), dtype=np.int32)
        return text_array([words[at] for at in order]), [[place]]
    from deciban.text.kernels.sorting import merged

    text, offsets, places = merged(readers)
    return pa.LargeStringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(text)), places


def _with_other(level: Array, vocabulary: Vocabulary) -> Array:
    """Columns, and behind them that of features outside."""
    return np.append(level, _other(vocabulary)).astype(np.int32)


def _other(vocabulary: Vocabulary) -> int:
    """The column of features outside a vocabulary."""
    return len(vocabulary) if vocabulary.unk else -1


def fill(reader: Any, vocabulary: Vocabulary) -> None:
    """Give a new reader a vocabulary's features, and note their columns unless they are its numbers."""
    if not reader.tables and reader.lowest == 1:
        reader.words.look_up(*_padded(vocabulary.names), grow=True)
        reader.words.enlarge()
        return
    import pyarrow.compute as pc

    parts = pc.split_pattern(vocabulary.names, " ")
    number = pc.list_value_length(parts).to_numpy()
    coded = parts.flatten().dictionary_encode()
    reader.words.look_up(*_padded(text_array(coded.dictionary)), grow=True)
    reader.words.enlarge()
    words = coded.indices.to_numpy()
    starts = np.cumsum(number) - number
    found_columns = []
    runs = words[starts]  # of each feature, the number of its first words
    for n in range(1, len(reader.tables) + 2):
        if n > 1:
            longer = np.flatnonzero(number >= n)
            runs[longer] = reader.tables[n - 2].add_pairs(runs[longer], words[starts[longer] + n - 1])
        if n >= reader.lowest:
            whole = np.flatnonzero(number == n)
            # Runs that only begin longer ones are outside too.
            level = np.full(len(reader.words) if n == 1 else len(reader.tables[n - 2]), _other(vocabulary), np.int32)
            level[runs[whole]] = whole
            found_columns.append(_with_other(level, vocabulary))
    reader.columns = found_columns


def _padded(names: Any) -> tuple[Array, Array]:
    """Text and offsets of names, with the sixteen bytes behind the last that kernels may read."""
    letters = names.buffers()[2]
    offsets = np.frombuffer(names.buffers()[1], np.int64)[names.offset : names.offset + len(names) + 1]
    text = np.zeros(0, np.uint8) if letters is None else np.frombuffer(letters, np.uint8)[offsets[0] : offsets[-1]]
    return np.append(text, np.zeros(16, np.uint8)), offsets - offsets[0]


# -- tokens ----------
# How a text becomes features: words, stems, runs of words, or runs of characters.
#
# Whatever the options, there are two ways to the same features: compiled kernels, and `Tokens.analyse`, which is plain
# Python and what the kernels are tested against. Stop words and stems are looked up once a word, not once a token.

Unit = Literal["word", "char", "char_wb"]
TWO_OR_MORE = r"(?u)\b\w\w+\b"
_SPACES = re.compile(r"\s\s+")


def without_marks(text: str) -> str:
    """A text without accents: decomposed, its combining marks left out.

    >>> without_marks("déjà vu")
    'deja vu'
    """
    if text.isascii():
        return text
    return "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))


def only_ascii(text: str) -> str:
    """A text decomposed, of which only ASCII is left."""
    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()


_STRIPPING: dict[str, Callable[[str], str]] = {"unicode": without_marks, "ascii": only_ascii}


@dataclass(frozen=True)
class Tokens:
    """What counts as a feature of a text.

    >>> Tokens(ngrams=(1, 2), stop_words=["the"], stem="english").analyse("The cats slept")
    ['cat', 'slept', 'cat slept']
    >>> Tokens("char_wb", ngrams=(3, 3)).analyse("To be")
    [' to', 'to ', ' be', 'be ']
    """

    unit: Unit = "word"
    ngrams: tuple[int, int] = (1, 1)  # the fewest and the most words, or characters, in a run
    lowercase: bool = True
    strip_accents: Literal["unicode", "ascii"] | None = None
    stop_words: str | Iterable[str] | None = None  # a language, or a list
    stem: str | None = None  # a language
    pattern: str = TWO_OR_MORE  # what a word is
    analyser: Callable[[str], Iterable[str]] | None = None  # instead of everything above

    def __post_init__(self) -> None:
        low, high = self.ngrams
        if self.unit not in ("word", "char", "char_wb"):
            raise HyperparameterError(f"unit must be 'word', 'char' or 'char_wb', not {self.unit!r}.")
        if not 1 <= low <= high:
            raise HyperparameterError(f"ngrams={self.ngrams} must be (fewest, most), with 1 ≤ fewest ≤ most.")
        if self.strip_accents not in (None, "unicode", "ascii"):
            raise HyperparameterError(f"strip_accents must be None, 'unicode' or 'ascii', not {self.strip_accents!r}.")
        if self.unit != "word" and (self.stop_words is not None or self.stem is not None):
            raise HyperparameterError(f"stop words and stems are for words, not for unit={self.unit!r}.")
        if re.compile(self.pattern).groups > 1:
            raise HyperparameterError("More than 1 capturing group in token pattern; it may have one, for the word.")
        if self.stop_words is not None and not isinstance(self.stop_words, str):
            object.__setattr__(self, "stop_words", frozenset(self.stop_words))
        stop_words_of(self.stop_words)  # refuses languages it does not know, as does the next
        stemmer(self.stem)

    # -- in plain Python ----------------------------------------------------------------------------------------------
    def prepare(self, text: str) -> str:
        """Lower-cased and stripped as asked."""
        text = text.lower() if self.lowercase else text
        return text if self.strip_accents is None else _STRIPPING[self.strip_accents](text)

    def labels(self, words: list[str]) -> list[str | None]:
        """What words count as: their stems, or None for stop words."""
        stop, stem_all = stop_words_of(self.stop_words), stemmer(self.stem)
        kept = [word for word in words if word not in stop] if stop else words
        stems = iter(kept if stem_all is None else stem_all(kept))
        return [None if word in stop else next(stems) for word in words]

    def analyse(self, text: str) -> list[str]:
        """The features of a text, in plain Python."""
        if self.analyser is not None:
            return list(self.analyser(text))
        text = self.prepare(text)
        low, high = self.ngrams
        if self.unit == "word":
            words = [word for word in self.labels(re.findall(self.pattern, text)) if word is not None]
            return [" ".join(words[i : i + n]) for n in range(low, high + 1) for i in range(len(words) - n + 1)]
        text = _SPACES.sub(" ", text)
        if self.unit == "char":
            return [text[i : i + n] for n in range(low, high + 1) for i in range(len(text) - n + 1)]
        return [run for word in text.split() for run in _runs_within(f" {word} ", low, high)]

    # -- compiled -----------------------------------------------------------------------------------------------------
    @property
    def fast(self) -> bool:
        """Whether there is a kernel for this."""
        return self.analyser is None and (self.unit != "word" or self.pattern == TWO_OR_MORE)

    def reader(self, vocabulary: Vocabulary | None, fast: bool) -> Any:
        """Something that reads chunks of documents into streams of numbers: of new features, or of a vocabulary's."""
        if not (fast and self.fast):
            return PlainReader(self.analyse, () if vocabulary is None else vocabulary, vocabulary is None)
        from deciban.text.kernels.hash_tables import WordTable
        from deciban.text.kernels.readers import CharacterReader, NgramReader, WordReader

        options: dict[str, Any] = {
            "lowercase": self.lowercase,
            "prepare": self.prepare,
            "strip_accents": self.strip_accents is not None,
            "grow": vocabulary is None,
        }
        words = WordTable()
        low, high = self.ngrams
        if self.unit != "word":
            reader = NgramReader(CharacterReader(words, low, high, self.unit == "char_wb", **options))
        else:
            labelled = self.stem is not None or self.stop_words is not None
            reader = NgramReader(WordReader(words, **options), low, high, self.labels if labelled else None)
        if vocabulary is not None:
            fill(reader, vocabulary)
        return reader


def _runs_within(window: str, low: int, high: int) -> Iterable[str]:
    for n in range(low, high + 1):
        yield window[:n]
        yield from (window[i : i + n] for i in range(1, len(window) - n + 1))
        if len(window) <= n:
            return


@cache
def stemmer(language: str | None) -> Callable[[list[str]], Sequence[str]] | None:
    """Words to stems, by Snowball's rules for a language."""
    if language is None:
        return None
    import Stemmer

    try:
        return Stemmer.Stemmer(language).stemWords
    except KeyError:
        known = ", ".join(Stemmer.algorithms())
        raise HyperparameterError(f"no stemmer for {language!r}; there are {known}.") from None


WORDS = Tokens()  # what CountVectorizer counts unless told otherwise
