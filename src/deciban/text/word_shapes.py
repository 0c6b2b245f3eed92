"""Features of words for a tagger: the word itself if it is frequent, else its ending and its shape.

A word that occurs three times or more is its own feature. A rarer one is `<rare>`, and has its longest known ending and
its shape as features. For frequent words these two are missing, and missing values add nothing. Unknown words are
therefore tagged like rare words with the same ending and shape.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from deciban.errors import InputError
from deciban.families.categorical import Categorical
from deciban.families.product import Product
from deciban.statistics import Array

MOST_RARE = 2  # occurrences of a rare word, at most
LONGEST_ENDING = 4  # letters
ENDING_COUNT = 5  # occurrences of a known ending among rare words, at least
RARE_WORD = "<rare>"
MANY_WORDS = 100  # different words from which a tagger needs endings and shapes


def word_family() -> Product:
    """Return the family of word, ending and shape, which are independent given the tag."""
    return Product({0: Categorical(0.003), 1: Categorical(0.03), 2: Categorical(0.03)})


@dataclass(frozen=True)
class WordFeatures:
    """The frequent words and the known endings, all in lower case.

    >>> features = WordFeatures(frozenset({"the"}), frozenset({"ing"}))
    >>> features.rows([["The", "Kling", "sings"]]).tolist()
    [['the', None, None], ['<rare>', 'ing', 'Xx'], ['<rare>', '', 'x']]
    """

    frequent: frozenset[str]
    endings: frozenset[str]

    @classmethod
    def of(cls, sentences: Iterable[Sequence[str]]) -> WordFeatures:
        """Count the words of sentences, and the endings of the rare ones."""
        seen = Counter(word.lower() for words in sentences for word in words)
        endings: Counter[str] = Counter()
        for word, count in seen.items():
            if count <= MOST_RARE:
                for n in range(1, LONGEST_ENDING + 1):
                    endings[word[-n:]] += count
        frequent = frozenset(word for word, count in seen.items() if count > MOST_RARE)
        return cls(frequent, frozenset(ending for ending, count in endings.items() if count >= ENDING_COUNT))

    def rows(self, sentences: Iterable[Sequence[str]]) -> Array:
        """Return word, ending and shape of every word of all sentences, shape (n, 3)."""
        found = [row for words in sentences for row in self._sentence(words)]
        return np.array(found, dtype=object).reshape(-1, 3)

    def _sentence(self, words: Sequence[str]) -> Iterator[list[str | None]]:
        for at, word in enumerate(words):
            if word is None or word == "":
                yield [None, None, None]
                continue
            if not isinstance(word, str):
                raise InputError(f"{word!r:.40} is not a word. The model has learnt sequences of words: give texts.")
            low = word.lower()
            if low in self.frequent:
                yield [low, None, None]
            else:
                ending = next((low[-n:] for n in range(LONGEST_ENDING, 0, -1) if low[-n:] in self.endings), "")
                yield [RARE_WORD, ending, ("^" if at == 0 else "") + shape(word)]


def shape(word: str) -> str:
    """Return the shape of a word: capitals, digits, hyphens; of punctuation, its first sign.

    >>> [shape(word) for word in ("NATO", "Zaman", "al-Ani", "B52s", "!!")]
    ['XX', 'Xx', '-x', 'dXx', 'sign !']
    """
    if re.fullmatch(r"[\W_]+", word):
        return f"sign {word[0]}"
    marks = ("d" if any(map(str.isdigit, word)) else "") + ("-" if "-" in word else "")
    return marks + ("XX" if word.isupper() and len(word) > 1 else "Xx" if word[0].isupper() else "x")
