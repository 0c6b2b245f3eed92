"""Scores of a block of words, which can be computed again with a factor for each word.

A calibrator that has a factor for each word needs more than the total scores (n, K) of a block. `WordScores` are these
totals together with their source, so that code which handles blocks does not depend on words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self, cast, runtime_checkable

import numpy as np

from deciban.errors import InputError, NotAvailableError
from deciban.families.abilities import ability
from deciban.statistics import Array, Members


class WordSource(Protocol):
    """Source of the scores of n documents: the evidence of their words."""

    def take(self, rows: Any) -> Self:
        """Return the source of some of the documents."""

    def rescaled(self, factors: Any) -> Array:
        """Return the scores with the evidence of each word multiplied by its factor, shape (n, K)."""

    def evidence(self) -> Any:
        """Return the evidence of each word in each document."""


class LeftOutSource(WordSource, Protocol):
    """Source of the leave-one-out scores of learnt documents."""

    def scores(self, rows: Array | None = None) -> Array:
        """Return the scores of these documents, or of all, without factors, shape (m, K)."""


class WordScores(np.ndarray):
    """Log-likelihoods (n, K) of a block of words, and their source.

    A selection of rows keeps the source; every other operation returns an array without one.
    """

    source: WordSource | None

    @classmethod
    def of(cls, scores: Array, source: WordSource | None) -> Array:
        """Return scores with their source; the scores as they are if there is none."""
        if source is None:
            return scores
        found = np.asarray(scores).view(cls)
        found.source = source
        return found

    def __array_finalize__(self, obj: Any) -> None:
        self.source = None

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        if self.source is not None and isinstance(found, WordScores) and not isinstance(key, tuple) and found.ndim == 2:
            found.source = self.source.take(key)
        return found


def source_of(scores: Array) -> WordSource | None:
    """Return the source of the scores of a block of words; None for other blocks."""
    return scores.source if isinstance(scores, WordScores) else None


def rescaled_by(source: WordSource | None, factors: Any) -> Array:
    """Return the scores of a source with factors of words, shape (n, K); refuse where there is none."""
    if source is None:
        raise InputError("scores of words cannot be calibrated word by word without the documents.")
    return source.rescaled(factors)


def plain(scores: Array) -> Array:
    """Return scores without their source."""
    return cast(Array, scores.view(np.ndarray)) if isinstance(scores, WordScores) else scores


@dataclass(frozen=True, eq=False)
class JoinedSource:
    """Documents whose scores come from several sources, such as models without one group each."""

    sources: Sequence[WordSource]
    at: Array  # (n,) position of each document among those of all sources, one after the other

    @classmethod
    def joined(cls, parts: Sequence[Array], rows: Sequence[Array]) -> Array:
        """Return the scores of several parts at their rows; together with their sources, if all parts have one."""
        every = np.concatenate(parts)
        at = np.argsort(np.concatenate(rows), kind="stable")
        sources = [source_of(part) for part in parts]
        known = [source for source in sources if source is not None]
        return WordScores.of(plain(every)[at], cls(known, at) if len(known) == len(sources) else None)

    def take(self, rows: Any) -> JoinedSource:
        """Return the source of some of the documents."""
        return JoinedSource(self.sources, self.at[rows])

    def rescaled(self, factors: Any) -> Array:
        """Return the scores with the evidence of each word multiplied by its factor, shape (n, K)."""
        return np.concatenate([source.rescaled(factors) for source in self.sources])[self.at]

    def evidence(self) -> Any:
        """Refuse: documents of different models have no evidence in common."""
        raise NotAvailableError("scales of words cannot be fitted to scores by several models.")


# -- abilities ---------------------------------------------------------------------------------------------------------
@runtime_checkable
class HasLeftOutWords(Protocol):
    """Families whose leave-one-out scores are sums over words."""

    def left_out_words(self, stats: Any, X: Any, members: Members, rule: Any) -> LeftOutSource | None:
        """Return the source of the leave-one-out scores of learnt documents; None if they are not sums over words."""


class FoldedSource(Protocol):
    """Scores of documents in folds, by candidates with the same sums."""

    def __call__(self, candidate: Any, number: int, train: Array, test: Array) -> tuple[Array, Array]:
        """Return leave-one-out scores of `train` and the scores of `test`, the fold of this number, with sources."""


@runtime_checkable
class HasFoldedWords(Protocol):
    """Families whose sums of words are subtracted fold by fold without making statistics of them."""

    def folded_words(self, stats: Any, X: Any, members: Members, rule: Any) -> FoldedSource | None:
        """Return the scores of documents in folds, None if not supported; without `stats`, these rows are summed."""


@runtime_checkable
class HasWords(Protocol):
    """Densities whose logarithm is a sum over words."""

    def word_source(self, X: Any) -> WordSource | None:
        """Return the source of the scores of documents; None if they are not sums over words."""


@runtime_checkable
class HasTable(Protocol):
    """Densities that score a few rows without a table of all words, which many rows need."""

    def table_steps(self) -> Iterator[None]:
        """Compute the table, if that was not done yet, in steps of a few milliseconds."""

    def lesson_steps(self) -> Iterator[None]:
        """Compute what densities of later lessons share, if that was not done yet, in steps of a few milliseconds."""


def rescaled(density: Any, X: Any, factors: Any) -> Array:
    """Return the scores of documents by a density, (n, K), with the evidence of each word multiplied by its factor."""
    words = ability(density, HasWords)
    return rescaled_by(None if words is None else words.word_source(X), factors)
