"""How a text becomes features: words, stems, runs of words, or runs of characters.

Whatever the options, there are two ways to the same features: compiled kernels, and `Tokens.analyse`, which is plain
Python and what the kernels are tested against. Stop words and stems are looked up once a word, not once a token.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from deciban.errors import HyperparameterError
from deciban.features.readers import fill
from deciban.features.stop_words import stop_words_of
from deciban.features.vocabulary import Vocabulary
from deciban.kernels.text.plain import PlainReader

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
        from deciban.kernels.text.levels import LevelReader
        from deciban.kernels.text.reader import CharacterReader, WordReader
        from deciban.kernels.text.words_table import WordTable

        options: dict[str, Any] = {
            "lowercase": self.lowercase,
            "prepare": self.prepare,
            "strip_accents": self.strip_accents is not None,
            "grow": vocabulary is None,
        }
        words = WordTable()
        low, high = self.ngrams
        if self.unit != "word":
            reader = LevelReader(CharacterReader(words, low, high, self.unit == "char_wb", **options))
        else:
            labelled = self.stem is not None or self.stop_words is not None
            reader = LevelReader(WordReader(words, **options), low, high, self.labels if labelled else None)
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
