"""What a word looks like to a tagger: itself where it is familiar, else its ending and its shape.

A word seen three times or more is itself. A rarer one is `<rare>`, and shows its longest familiar ending and its shape
instead; for the others these two are missing, and missing values add nothing. So unknown words are tagged by what rare
words with such endings were.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

RARE = 2  # a word seen so often or less is described, not named
LONGEST, FAMILIAR = 4, 5  # letters of an ending, and how often it must have occurred among rare words
UNNAMED = "<rare>"


@dataclass(frozen=True)
class Looks:
    """The words that are named, and the endings that are familiar, all in small letters.

    >>> looks = Looks(frozenset({"the"}), frozenset({"ing"}))
    >>> looks.rows([["The", "Kling", "sings"]]).tolist()
    [['the', None, None], ['<rare>', 'ing', 'Xx'], ['<rare>', '', 'x']]
    """

    named: frozenset[str]
    endings: frozenset[str]

    @classmethod
    def of(cls, sentences: Iterable[Sequence[str]]) -> Looks:
        """By how often words occur in sentences."""
        seen = Counter(word.lower() for words in sentences for word in words)
        endings: Counter[str] = Counter()
        for word, count in seen.items():
            if count <= RARE:
                for n in range(1, LONGEST + 1):
                    endings[word[-n:]] += count
        named = frozenset(word for word, count in seen.items() if count > RARE)
        return cls(named, frozenset(ending for ending, count in endings.items() if count >= FAMILIAR))

    def rows(self, sentences: Iterable[Sequence[str]]) -> Any:
        """(n, 3) word, ending, shape of every word, sentences end to end."""
        found = [row for words in sentences for row in self._sentence(words)]
        return np.array(found, dtype=object).reshape(-1, 3)

    def _sentence(self, words: Sequence[str]) -> Iterator[list[str | None]]:
        for at, word in enumerate(words):
            low = word.lower()
            if low in self.named:
                yield [low, None, None]
            else:
                ending = next((low[-n:] for n in range(LONGEST, 0, -1) if low[-n:] in self.endings), "")
                yield [UNNAMED, ending, ("^" if at == 0 else "") + shape(word)]


def shape(word: str) -> str:
    """Capitals, digits, hyphens; punctuation by its first sign.

    >>> [shape(word) for word in ("NATO", "Zaman", "al-Ani", "B52s", "!!")]
    ['XX', 'Xx', '-x', 'dXx', 'sign !']
    """
    if re.fullmatch(r"[\W_]+", word):
        return f"sign {word[0]}"
    marks = ("d" if any(map(str.isdigit, word)) else "") + ("-" if "-" in word else "")
    return marks + ("XX" if word.isupper() and len(word) > 1 else "Xx" if word[0].isupper() else "x")
