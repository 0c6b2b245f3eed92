"""Tokens: how a text becomes features, which are words, stems, runs of words or runs of characters.

Features are found in two ways with the same result: by compiled kernels (see `reading`), and by `Tokens.analyse`, which
is plain Python and the reference that the kernels are tested against.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import chain
from typing import Literal

from deciban.errors import HyperparameterError, shortlist
from deciban.text.kernels.scripts import separated, words_pattern

Unit = Literal["word", "char", "char_wb"]
TWO_OR_MORE = r"(?u)\b\w\w+\b"
LONGEST_RUN = 1000  # words or characters
_RUNS = re.compile(r"\w\w+")  # finds the same words as TWO_OR_MORE
_SPACES = re.compile(r"\s\s+")


def _compiled(pattern: str) -> re.Pattern[str]:
    """Compile a regular expression; a HyperparameterError if it is none."""
    try:
        return re.compile(pattern)
    except (re.error, RecursionError, OverflowError, TypeError) as error:
        raise HyperparameterError(
            f"pattern={pattern!r:.200} is not a regular expression that `re` can compile ({error}).",
            remedy="Correct it, or leave it out to find words by their script.",
        ) from None


@dataclass(frozen=True)
class Tokens:
    """What counts as a feature of a text.

    >>> Tokens(ngrams=(1, 2), stop_words=["the"], stem="english").analyse("The cats slept")
    ['cat', 'slept', 'cat slept']
    >>> Tokens("char_wb", ngrams=(3, 3)).analyse("To be")
    [' to', 'to ', ' be', 'be ']
    >>> Tokens(pattern=None).analyse("I 👍 东京塔")
    ['👍', '东京', '京塔']
    """

    unit: Unit = "word"
    ngrams: tuple[int, int] = (1, 1)  # the fewest and the most words, or characters, in a run
    lowercase: bool = True
    strip_accents: Literal["unicode", "ascii"] | None = None
    stop_words: str | Iterable[str] | None = None  # a language, or a list
    stem: str | None = None  # a language
    pattern: str | None = TWO_OR_MORE  # regular expression of a word; None for words by their script
    analyser: Callable[[str], Iterable[str]] | None = None  # instead of everything above

    def __post_init__(self) -> None:
        object.__setattr__(self, "ngrams", tuple(self.ngrams))
        low, high = self.ngrams
        if self.analyser is not None and not callable(self.analyser):
            raise HyperparameterError(f"analyser={self.analyser!r} is not a function of a text.")
        if self.unit not in ("word", "char", "char_wb"):
            raise HyperparameterError(f"unit must be 'word', 'char' or 'char_wb', not {self.unit!r}.")
        if not 1 <= low <= high <= LONGEST_RUN:
            raise HyperparameterError(
                f"ngrams={self.ngrams} must be (fewest, most), with 1 ≤ fewest ≤ most ≤ {LONGEST_RUN}."
            )
        if self.strip_accents not in (None, "unicode", "ascii"):
            raise HyperparameterError(f"strip_accents must be None, 'unicode' or 'ascii', not {self.strip_accents!r}.")
        if self.unit != "word" and (self.stop_words is not None or self.stem is not None):
            raise HyperparameterError(f"stop words and stems are for words, not for unit={self.unit!r}.")
        if self.pattern is not None and _compiled(self.pattern).groups > 1:
            raise HyperparameterError("More than 1 capturing group in token pattern; it may have one, for the word.")
        if self.stop_words is not None and not isinstance(self.stop_words, str):
            object.__setattr__(self, "stop_words", frozenset(self.stop_words))
        stop_words_of(self.stop_words)  # refuses an unknown language
        stemmer(self.stem)  # likewise

    @property
    def compiled(self) -> bool:
        """Whether the kernels can find these features."""
        return self.analyser is None and (self.unit != "word" or self.pattern in (TWO_OR_MORE, None))

    @property
    def by_script(self) -> bool:
        """Whether emoji are words, and scripts without spaces are cut into pairs of characters."""
        return self.unit == "word" and self.pattern is None and self.analyser is None

    def analyse(self, text: str) -> list[str]:
        """Return the features of a text."""
        return self.analyse_all([text])[0]

    def analyse_all(self, texts: Iterable[str]) -> list[list[str]]:
        """Return the features of each text."""
        if self.analyser is not None:
            return [list(self.analyser(text)) for text in texts]
        low, high = self.ngrams
        if self.unit == "word":
            each = self.words_of(texts)
            return each if high == 1 else [_runs_of_words(words, low, high) for words in each]
        if self.unit == "char":
            spaced = (_SPACES.sub(" ", text) for text in self._prepared(texts))
            return [
                [text[i : i + n] for n in range(low, high + 1) for i in range(len(text) - n + 1)] for text in spaced
            ]
        words, runs = self.words_with_runs(texts)
        return [[run for word in some for run in runs[word]] for some in words]

    def words_of(self, texts: Iterable[str]) -> list[list[str]]:
        """Return the words of each text, or their stems, without stop words."""
        if self.pattern is None:
            spelt, plain = words_pattern().findall, _RUNS.findall  # the same words of ASCII, in half the time
            each = (plain(text) if text.isascii() else spelt(text) for text in self._prepared(texts))
        else:
            pattern = _RUNS if self.pattern == TWO_OR_MORE else re.compile(self.pattern)
            each = map(pattern.findall, self._prepared(texts))  # type: ignore[assignment]
        if self.stop_words is None and self.stem is None:
            return list(each)
        return [[word for word in self.labels(words) if word is not None] for words in each]

    def spaced_words(self, texts: Iterable[str]) -> list[list[str]]:
        """Return the words of each text, up to spaces."""
        return list(map(str.split, self._prepared(texts)))

    def words_with_runs(self, texts: Iterable[str]) -> tuple[list[list[str]], dict[str, list[str]]]:
        """Return the words of each text, up to spaces, and the runs of characters within each different word.

        Words are in the order of their first occurrence.
        """
        words = self.spaced_words(texts)
        return words, {word: self._runs_within(word) for word in dict.fromkeys(chain.from_iterable(words))}

    def _runs_within(self, word: str) -> list[str]:
        """Return the runs of characters within a word and the spaces around it."""
        window, (low, high) = f" {word} ", self.ngrams
        size = len(window)
        if size <= low:
            return [window]
        return [window[i : i + n] for n in range(low, min(high, size) + 1) for i in range(size - n + 1)]

    def _prepared(self, texts: Iterable[str]) -> Iterable[str]:
        """Return each text as `prepare` does."""
        if self.strip_accents is not None:
            return map(self.prepare, texts)
        lowered = map(str.lower, texts) if self.lowercase else texts
        return (text if text.isascii() else separated(text) for text in lowered) if self.by_script else lowered

    def prepare(self, text: str) -> str:
        """Return a text in lower case, without accents and with separated scripts, as asked for."""
        text = text.lower() if self.lowercase else text
        if self.strip_accents is not None:
            text = without_marks(text) if self.strip_accents == "unicode" else only_ascii(text)
        return separated(text) if self.by_script and not text.isascii() else text

    def labels(self, words: list[str]) -> list[str | None]:
        """Return the stem of each word, or None for stop words."""
        stop, stem_all = stop_words_of(self.stop_words), stemmer(self.stem)
        kept = [word for word in words if word not in stop] if stop else words
        stems = iter(kept if stem_all is None else stem_all(kept))
        return [None if word in stop else next(stems) for word in words]


def _runs_of_words(words: list[str], low: int, high: int) -> list[str]:
    return [" ".join(words[i : i + n]) for n in range(low, high + 1) for i in range(len(words) - n + 1)]


def without_marks(text: str) -> str:
    """Return a text without accents: decomposed, its combining marks left out.

    >>> without_marks("déjà vu")
    'deja vu'
    """
    if text.isascii():
        return text
    return "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))


def only_ascii(text: str) -> str:
    """Return the ASCII characters of a decomposed text."""
    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()


@cache
def stemmer(language: str | None) -> Callable[[list[str]], Sequence[str]] | None:
    """Return the Snowball stemmer of a language: words to stems."""
    if language is None:
        return None
    import Stemmer

    try:
        return Stemmer.Stemmer(language).stemWords
    except KeyError:
        known = ", ".join(Stemmer.algorithms())
        raise HyperparameterError(f"no stemmer for {language!r}; there are {known}.") from None


def stop_words_of(given: str | Iterable[str] | None) -> frozenset[str]:
    """Return the stop words of a language, or the list given.

    >>> sorted(stop_words_of("german"))[:3], stop_words_of(None)
    (['aber', 'alle', 'allem'], frozenset())
    """
    if given is None:
        return frozenset()
    return _of_language(given) if isinstance(given, str) else frozenset(given)


@cache
def _of_language(language: str) -> frozenset[str]:
    if language == "english":
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

        return ENGLISH_STOP_WORDS
    parts = files("deciban.text").joinpath("stop_words.txt").read_text("utf-8").split("\n\n")[1:]
    lists = dict(part.split(":\n") for part in parts)
    if language not in lists:
        known = shortlist(sorted([*lists, "english"]), 20)
        raise HyperparameterError(f"no stop words for {language!r}; there are {known}. Give a list of your own.")
    return frozenset(lists[language].split())


WORDS = Tokens()  # the default of CountVectorizer
