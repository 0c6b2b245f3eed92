"""Evidence of documents word by word, and a factor for each word.

    log f(x|c) = Σ_w x_w·(t_wc − d_c)    t: log of a word's count and pseudo-count, d: log of the total of the class

A document that is left out has other t in its own class, and other d; words that leave the vocabulary with it have no
evidence. A factor u_w ≥ 0 multiplies the evidence of word w for all classes. What all classes share has no effect on
answers, so the factors change no probability beyond the evidence between classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from deciban.errors import InputError, NotAvailableError
from deciban.families.dirichlet import log_in_place
from deciban.families.protocol import Rule
from deciban.read.arrow import taken
from deciban.statistics import Array, LazyNames, Members
from deciban.text.counting import TextRows
from deciban.text.leave_one_out import LeaveOneOut, LeftOutEntries
from deciban.text.stats import UNK, TextStats
from deciban.text.vocabulary import Vocabulary, in_order, text_array
from deciban.text.word_fit import WordEvidence

if TYPE_CHECKING:
    from deciban.text.density import TextDensity
    from deciban.text.family import Text

NEAR_ONE = 1e-3  # factors that differ from 1 by less are not kept


@dataclass(frozen=True, eq=False)
class WordFactors:
    """A factor ≥ 0 for the evidence of each word.

    >>> WordFactors(("good", "the"), np.array([1.5, 0.2])).of(Vocabulary.of(["bad", "good"], "learnt"))
    array([1. , 1.5])
    """

    words: Sequence[str]  # sorted
    factors: Array  # of these words; 1 for all others
    unk: float = 1.0  # of words outside the vocabulary, where they are counted

    def __post_init__(self) -> None:
        """Check the numbers, and let a `Vocabulary` spell the words."""
        if not isinstance(self.words, LazyNames):
            object.__setattr__(self, "words", LazyNames(Vocabulary(text_array(list(self.words)), "learnt")))
        each = np.append(self.factors, self.unk)
        if np.shape(self.factors) != (len(self.words),) or not ((each >= 0) & (each < np.inf)).all():
            raise InputError(f"{len(self.words)} words need as many factors ≥ 0.")

    @classmethod
    def kept(cls, vocabulary: Vocabulary, at: Array, factors: Array) -> WordFactors:
        """Keep the factors of the words at these columns of a vocabulary that differ from 1."""
        outside = at == len(vocabulary)
        unk = float(factors[outside][0]) if outside.any() else 1.0
        changed = np.flatnonzero((np.abs(factors - 1.0) >= NEAR_ONE) & ~outside)
        changed = changed[np.argsort(at[changed])]
        names = vocabulary.take(at[changed]).names
        if vocabulary.kind == "given":  # in any order; others are sorted
            order = in_order(names)
            names, changed = taken(names, order), changed[order]
        return cls(LazyNames(Vocabulary(names, "learnt")), factors[changed], unk)  # type: ignore[arg-type]

    def of(self, vocabulary: Vocabulary) -> Array:
        """Return the factor of each column of a vocabulary, that of `unk` included."""
        at = self._known().positions(vocabulary)
        found = np.where(at < 0, 1.0, np.append(self.factors, 1.0)[at])
        return np.append(found, self.unk) if vocabulary.unk else found

    def _known(self) -> Vocabulary:
        """Return the words; a copy through pickle holds them as a tuple."""
        words = self.words.source if isinstance(self.words, LazyNames) else None
        return words if isinstance(words, Vocabulary) else Vocabulary(text_array(list(self.words)), "learnt")

    def of_words(self, words: Sequence[str]) -> Array:
        """Return the factor of each word, shape (P,)."""
        at = self._known().ids(words)
        unk = np.array([word == UNK for word in words], dtype=bool)
        return np.where(unk, self.unk, np.where(at < 0, 1.0, np.append(self.factors, 1.0)[at]))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, WordFactors):
            return NotImplemented
        same = tuple(self.words) == tuple(other.words) and self.unk == other.unk
        return same and np.array_equal(self.factors, other.factors)

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, eq=False)
class ColumnFactors:
    """A factor ≥ 0 for the evidence of each word, by the number of the word: for sums that are not kept.

    >>> ColumnFactors(np.array([1, 3]), np.array([0.5, 2.0])).of_columns(np.array([0, 1, 3]))
    array([1. , 0.5, 2. ])
    """

    at: Array  # (P,) ascending numbers of words
    factors: Array  # of these words; 1 for all others

    def of_columns(self, used: Array) -> Array:
        """Return the factors of words, by their numbers."""
        each = np.ones(max(self.at.max(initial=0), used.max(initial=0)) + 1)
        each[self.at] = self.factors
        return each[used]


def factors_of(evidence: WordEvidence, factors: Array) -> WordFactors | ColumnFactors:
    """Return the factors that differ from 1 of the words of evidence, by name if they have names."""
    if evidence.vocabulary is not None:
        return WordFactors.kept(evidence.vocabulary, evidence.at, factors)
    changed = np.flatnonzero(np.abs(factors - 1.0) >= NEAR_ONE)
    return ColumnFactors(evidence.at[changed], factors[changed])


def between_classes(vocabulary: Vocabulary | None, found: LeftOutEntries) -> WordEvidence:
    """Return evidence of left-out documents for a fit; without terms that all classes share."""
    return _left_out_evidence(vocabulary, found).between_classes()


def _left_out_evidence(vocabulary: Vocabulary | None, found: LeftOutEntries) -> WordEvidence:
    totals = log_in_place(np.where(found.totals > 0, found.totals, 1.0))
    if not (np.isfinite(found.table.sum()) and np.isfinite(found.own.sum())):
        raise NotAvailableError(
            "a word has probability zero in a class, so its evidence is infinite and has no scale. Use rule 'mean'."
        )
    own = sp.csr_array((found.own, found.rows.indices, found.rows.indptr), found.rows.shape)
    return WordEvidence(vocabulary, found.used, found.rows, found.table, totals, own, found.codes)


def evidence_of(vocabulary: Vocabulary, terms: sp.csr_array, logs: Array, totals: Array) -> WordEvidence:
    """Return evidence from terms (n, V), logs t (V, K) and totals d (n, K)."""
    occurs = np.zeros(terms.shape[1], bool)
    occurs[terms.indices] = True
    at = np.flatnonzero(occurs)
    place = np.cumsum(occurs, dtype=np.int32) - 1
    rows = sp.csr_array((terms.data, place[terms.indices], terms.indptr), (terms.shape[0], len(at)))
    return WordEvidence(vocabulary, at, rows, logs[at], totals)


def by_word(text: Text, rule: Rule) -> bool:
    """Whether scores are sums over words with a probability each."""
    return text.reading == "multinomial" and rule == "mean"


# -- sources -----------------------------------------------------------------------------------------------------------
class LeftOutWords:
    """Learnt documents, each scored by a model without it; mutable: evidence is kept once it was computed."""

    def __init__(self, text: Text, stats: TextStats, X: TextRows, members: Members, rule: Rule) -> None:
        self.text, self.stats, self.X, self.members, self.rule = text, stats, X, members, rule

    def take(self, rows: Any) -> LeftOutWords:
        """Return some of the documents; the model still has learnt all."""
        return LeftOutWords(self.text, self.stats, self.X[rows], self.members.take(rows), self.rule)

    def scores(self, rows: Array | None = None) -> Array:
        """Return the leave-one-out scores of these documents, or of all, shape (m, K)."""
        return self._left.all_scores(self.text) if rows is None else self._left(self.text, rows)

    @cached_property
    def _left(self) -> LeaveOneOut:
        return LeaveOneOut(self.text, self.stats, self.X, self.members, self.rule)

    def _words(self, dtype: Any) -> WordEvidence:
        vocabulary, found = self._left.entries(self.text, dtype)
        self.__dict__.pop("_left", None)  # frees memory
        return _left_out_evidence(vocabulary, found)

    @cached_property
    def _evidence(self) -> WordEvidence:
        return self._words(np.float64)

    @cached_property
    def _between_classes(self) -> WordEvidence:
        return self._words(np.float32).between_classes()

    def evidence(self) -> WordEvidence:
        """Return the evidence of each word in each document, without terms that all classes share."""
        return self._between_classes

    def rescaled(self, factors: WordFactors) -> Array:
        """Return leave-one-out scores with the evidence of each word multiplied by its factor, shape (n, K)."""
        found = self._evidence
        vocabulary: Any = found.vocabulary
        return found.scores(factors.of(vocabulary)[found.at])


@dataclass(frozen=True, eq=False)
class NewWords:
    """Documents scored by a density."""

    density: TextDensity
    X: TextRows

    def take(self, rows: Any) -> NewWords:
        """Return some of the documents."""
        return NewWords(self.density, self.X[rows])

    def evidence(self) -> WordEvidence:
        """Return the evidence of each word in each document, without terms that all classes share."""
        return self.density.word_evidence(self.X).between_classes()

    def rescaled(self, factors: WordFactors) -> Array:
        """Return the scores with the evidence of each word multiplied by its factor, shape (n, K)."""
        return self.density.rescaled(self.X, factors)
