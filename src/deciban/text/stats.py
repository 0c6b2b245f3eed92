"""The sums of text, and the words along their axis.

    learnt    the words found at the first fit, sorted; those outside are dropped
    growing   <unk>, then the words found so far, sorted
    given     the words as given, then <unk>; so where their number was capped

Only words that were given, or kept by a cap, are declared: others go when nothing is counted under them any more, and
with them their share of the prior.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Self
from weakref import ref

import numpy as np

from deciban.errors import InputError
from deciban.families.dirichlet import left_over
from deciban.statistics import Array, Axis, Labels, LazyNames, Stats, summed
from deciban.text.reading import KnownWords
from deciban.text.tokens import Tokens
from deciban.text.vocabulary import Vocabulary, text_array

Kind = Literal["learnt", "growing", "given"]
KEPT = 2  # vocabularies that are ready to read by
UNK = "<unk>"  # the word that stands for words outside


@dataclass(frozen=True, eq=False, repr=False)
class TextStats(Stats):
    """How much of each word, in how many documents, with how many tokens."""

    counts: Array = summed("class", "word", floor=True)  # Σ w·term
    rows: Array = summed("class", floor=True)  # Σ w of documents that are not missing
    tokens: Array = summed("class", floor=True)  # Σ w·words of a document, before any transform

    @property
    def ones(self) -> Array:
        """(K, V) documents that hold a word, where the term is present or absent."""
        return self.counts

    @property
    def zeros(self) -> Array:
        """(K, V) documents that do not."""
        return left_over(self.rows[:, None], self.counts)

    def pruned(self) -> Self:
        """As of any statistics; where there is nothing to prune, a glance tells."""
        empty = np.ones(len(self.counts)) @ self.counts == 0
        return super().pruned() if (empty & self.labels["word"].undeclared).any() else self


def word_axis(words: Iterable[str], kind: Kind) -> Axis:
    """The axis of a vocabulary."""
    if isinstance(words, Vocabulary) and kind == words.kind == "learnt":
        return Axis(LazyNames(words))
    names = words if isinstance(words, tuple) else tuple(words)
    if kind == "learnt":
        return Axis(names)
    return Axis((UNK, *names), 1) if kind == "growing" else Axis.of((*names, UNK))


def require_words(axis: Labels) -> None:
    """Refuse a vocabulary without words."""
    if axis.size == 0:
        raise InputError(
            "the documents hold no words, so there is nothing to tell the classes apart by. Look at stop_words, "
            "pattern, min_df and max_df."
        )


def in_axis_order(counts: Array, kind: Kind) -> Array:
    """Columns of counts as the axis has them, from those of a vocabulary, which has unk last."""
    return np.roll(counts, 1, axis=1) if kind == "growing" else counts


def in_vocabulary_order(counts: Array, kind: Kind) -> Array:
    """The other way round."""
    return np.roll(counts, -1, axis=1) if kind == "growing" else counts


def vocabulary_of(axis: Axis, kind: Kind) -> Vocabulary:
    """The words along an axis, without <unk>."""
    names: Any = axis.names
    if kind == "learnt" and isinstance(names, LazyNames) and isinstance(names.source, Vocabulary):
        return names.source
    words = names if kind == "learnt" else names[1:] if kind == "growing" else names[:-1]
    return Vocabulary(text_array(list(words)), kind, len(words) if kind == "given" else 0)


_recent: list[tuple[ref[Axis], Kind, Tokens, KnownWords]] = []  # the last first


def known_words(axis: Axis, kind: Kind, tokens: Tokens) -> KnownWords:
    """The words along an axis, ready to read by.

    Those of the last two that are in use are kept, for their readers take long to make; and no longer than somebody
    has the axis, for they are as large as the sums.
    """
    found = next((one for one in _recent if one[1:3] == (kind, tokens) and one[0]() == axis), None)
    if found is None:
        found = ref(axis, _forget), kind, tokens, KnownWords(vocabulary_of(axis, kind), tokens)
    _recent[:] = [found, *(one for one in _recent if one is not found)][:KEPT]
    return found[3]


class ByWords:
    """What reads documents by the words along an axis."""

    text: Any  # how they are read
    axis: Axis

    @cached_property
    def known(self) -> KnownWords:
        """The words, ready to read by."""
        return known_words(self.axis, self.text.kind, self.text.tokens)

    @cached_property
    def factors(self) -> Array | None:
        """(V,) the idf of each column."""
        return self.text.factors(self.known.vocabulary)


def _forget(gone: ref[Axis]) -> None:
    _recent[:] = [one for one in _recent if one[0] is not gone]


def with_unk(vocabulary: Vocabulary, counts: Array) -> tuple[tuple[str, ...], Array]:
    """The words that were found, and their counts with a column for unk behind; a word spelt <unk> is unk."""
    words, outside = tuple(vocabulary), np.zeros((len(counts), 1))
    if UNK in vocabulary:
        at = words.index(UNK)
        outside = counts[:, at : at + 1]
        words, counts = words[:at] + words[at + 1 :], np.delete(counts, at, axis=1)
    return words, np.concatenate([counts, outside], axis=1)
