"""Changes of a large vocabulary: a base that stays, and the few words that were added or removed since.

A dict of 200,000 words takes 50 ms to make, and a lesson with one new word changes the columns of half of them. The
dict of the base is therefore kept, and the columns of its words are computed from the changes.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from deciban.text.vocabulary import Vocabulary

LEAST_WORDS = 10_000  # words of a base; the dict of a smaller vocabulary is made anew
MOST_CHANGES = 1_000  # words added and removed; with more, the changed vocabulary becomes a base itself


@dataclass(frozen=True, eq=False)
class WordDelta:
    """Words added to and removed from a sorted base.

    >>> from deciban.text.vocabulary import Vocabulary
    >>> delta = WordDelta(Vocabulary.of(["b", "d", "f"], "learnt"), ("a", "e"), (0, 2), (1,))  # a, b, e, f
    >>> [delta.column(at) for at in range(3)], delta.added_columns()
    ([1, None, 3], {'a': 0, 'e': 2})
    """

    base: Vocabulary
    added: tuple[str, ...] = ()  # sorted
    places: tuple[int, ...] = ()  # of each added word: the number of words of the base before it
    removed: tuple[int, ...] = ()  # positions in the base, sorted

    def changed(self, added: Iterable[str] = (), removed: Iterable[str] = ()) -> WordDelta | None:
        """Return the delta after further changes; None if there are too many of them, or the base is small.

        An added word must not be in the vocabulary, a removed one must be.
        """
        if len(self.base) < LEAST_WORDS:
            return None
        new, gone = dict(zip(self.added, self.places)), set(self.removed)
        for word in added:
            at = place(self.base.names, word)
            if at in gone and self.base.names[at].as_py() == word:
                gone.remove(at)
            else:
                new[word] = at
        for word in removed:
            if new.pop(word, None) is None:
                gone.add(place(self.base.names, word))
        if len(new) + len(gone) > MOST_CHANGES:
            return None
        words = sorted(new)
        return WordDelta(self.base, tuple(words), tuple(new[word] for word in words), tuple(sorted(gone)))

    @property
    def is_long(self) -> bool:
        """Whether a newer base should be made before there are too many changes."""
        return len(self.added) + len(self.removed) > MOST_CHANGES // 4

    def rebased(self) -> WordDelta:
        """Return the delta from the newer base that was made of a vocabulary like this one; this delta if none was.

        >>> from deciban.text.vocabulary import Vocabulary
        >>> WordDelta(Vocabulary.of(["b", "d"], "learnt"), ("a",), (0,)).rebased().added
        ('a',)
        """
        newer = self.base.readers.newer
        if newer is None:
            return self
        then, names = newer.delta, self.base.names
        added = [word for word in self.added if word not in set(then.added)]
        added += [names[at].as_py() for at in sorted(set(then.removed) - set(self.removed))]
        removed = [word for word in then.added if word not in set(self.added)]
        removed += [names[at].as_py() for at in sorted(set(self.removed) - set(then.removed))]
        return WordDelta(newer.base).changed(added, removed) or self

    def column(self, at: int) -> int | None:
        """Return the column of the base's word at a position; None if it was removed."""
        before = bisect_left(self.removed, at)
        if before < len(self.removed) and self.removed[before] == at:
            return None
        return at - before + bisect_right(self.places, at)

    def added_columns(self) -> dict[str, int]:
        """Return the column of each word that was added."""
        at = (before - bisect_left(self.removed, before) + more for more, before in enumerate(self.places))
        return dict(zip(self.added, at))

    def __len__(self) -> int:
        return len(self.base) + len(self.added) - len(self.removed)


@dataclass(frozen=True, eq=False)
class NewerBase:
    """A base that takes the place of an older one, for the next changes."""

    base: Vocabulary
    delta: WordDelta  # of its words, from the older base


class DeltaNumbers:
    """The columns of a changed vocabulary, looked up as in a dict: that of the base, and the changes."""

    def __init__(self, base: Mapping[str, int], delta: WordDelta) -> None:
        self.base, self.delta, self.added = base, delta, delta.added_columns()

    def get(self, word: str, default: int | None = None) -> int | None:
        """Return the column of a word, or the default."""
        at = self.base.get(word)
        if at is None:
            return self.added.get(word, default)
        column = self.delta.column(at)
        return default if column is None else column

    def __len__(self) -> int:
        return len(self.delta)


def place(names: pa.LargeStringArray, word: str) -> int:
    """Return the number of sorted names before a word."""
    return bisect_left(names, word, key=pa.LargeStringScalar.as_py)


def found(names: pa.LargeStringArray, words: Sequence[str]) -> list[int]:
    """Return the position of each word among sorted names, −1 for words that are not there."""
    places = [place(names, word) for word in words]
    return [at if at < len(names) and names[at].as_py() == word else -1 for at, word in zip(places, words)]
