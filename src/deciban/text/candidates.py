"""Choices of a family of texts: the candidates among which labels choose, their scores in folds, and the usual choices.

Folds: the sums of a fold are subtracted from those of all documents as arrays, with one numbering of the words that
occur in the documents. Candidates that differ in the prior alone share these sums, and what each document removes from
them. Words that no other document has leave the vocabulary, and with them their share of the prior.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from deciban import kernels
from deciban.errors import InputError
from deciban.families.dirichlet import left_over, log_in_place
from deciban.families.protocol import Rule
from deciban.families.word_scores import WordScores
from deciban.statistics import Array, Members
from deciban.text.counting import TextRows
from deciban.text.leave_one_out import CompiledRemoval, LearntWords, PlainRemoval, Prior, removal_of
from deciban.text.stats import UNK, Idf, TextStats, word_sums, word_totals
from deciban.text.word_evidence import ColumnFactors, WordEvidence, between_classes

if TYPE_CHECKING:
    from deciban.text.family import Text

PSEUDO_COUNTS = (1.0, 0.3, 0.1, 0.03, 0.01)  # candidates, the strongest prior first
POOLED_COUNTS = (3.0, 1.0, 0.3, 0.1, 0.03)  # likewise, where they are proportional to the frequencies of words
TRANSFORMS = {"multinomial": ("log", "counts"), "polya": ("log", "counts"), "bernoulli": ("binary",)}
CHARACTERS = (2, 4)  # lengths of runs of characters
SHORT = 200  # mean number of characters of documents, up to which runs of characters are a candidate
ENOUGH_ROWS = 100  # rows from which runs of characters are a candidate; with fewer, the comparison is too noisy
ENOUGH_FOR_PAIRS = 1_000  # short documents from which pairs of words are a candidate, for the same reason


# -- choices -----------------------------------------------------------------------------------------------------------
def candidate_lines(text: Text, X: TextRows, members: Members) -> list[list[Text]]:
    """Return a list of pseudo-counts for each transform, each spread of pseudo-counts, and each kind of features."""
    made: list[list[Text]] = []
    for features, transforms, bases in _features(text, X):
        features = with_words(features, X, members)
        for transform in transforms if text.transform == "auto" else (text.transform,):
            chosen = with_idf(replace(features, transform=transform), X, members)
            made += [_line(chosen, base) for base in bases]
    return made


def _features(text: Text, X: TextRows) -> Iterator[tuple[Text, Sequence[str], Sequence[str]]]:
    """Yield the family with each kind of features, the transforms and the spreads of pseudo-counts to try with it."""
    transforms, bases = TRANSFORMS[text.reading], _bases(text)
    words: dict[str, Any] = {"unit": "word"} if text.unit == "auto" else {}
    short = text.unit == "auto" and len(X) >= ENOUGH_ROWS and not X.documents.at_least(SHORT * len(X))
    pairs = text.ngrams == "auto" or (short and len(X) >= ENOUGH_FOR_PAIRS)
    by_word = replace(text, **words) if words else text
    yield replace(by_word, ngrams=(1, 1)) if pairs else by_word, transforms, bases
    if pairs:
        yield replace(by_word, ngrams=(1, 2)), transforms[:1], bases
    if short:
        yield replace(text, unit="char_wb", ngrams=CHARACTERS), transforms[:1], bases


def _bases(text: Text) -> tuple[str, ...]:
    """Return the candidates for how pseudo-counts are spread."""
    if text.base != "auto":
        return (text.base,)
    return ("flat", "pooled") if text.pseudo_count == "auto" and text.reading != "bernoulli" else ("flat",)


def _line(text: Text, base: Any) -> list[Text]:
    """Return candidates that differ in the pseudo-count, the strongest prior first."""
    if text.pseudo_count != "auto":
        return [replace(text, base=base)]
    first, *others = POOLED_COUNTS if base == "pooled" else PSEUDO_COUNTS
    made = replace(text, base=base, pseudo_count=first)
    return [made, *(_with_pseudo_count(made, strength) for strength in others)]


def _with_pseudo_count(text: Text, pseudo_count: float) -> Text:
    """Return a copy with another pseudo-count, without checking the options again."""
    other = copy(text)
    object.__setattr__(other, "pseudo_count", pseudo_count)
    return other


def usual_choices(text: Text) -> Text:
    """Return the family with the usual choices for what is open, except words and idf."""
    transform = "binary" if text.reading == "bernoulli" else "counts"
    each = {"ngrams": (1, 1), "unit": "word", "transform": transform, "pseudo_count": 1.0, "base": "flat"}
    left_open: dict[str, Any] = {name: value for name, value in each.items() if getattr(text, name) == "auto"}
    return replace(text, **left_open) if left_open else text


def with_words(text: Text, X: TextRows, members: Members) -> Text:
    """Freeze the vocabulary: the words of the first documents that are within the limits."""
    if text.fixed_vocabulary is not None or text.limits.none:
        return text
    X, members = X.with_members(members)
    done = X.count(text.tokens)
    present = done.matrix.astype(bool).astype(float)
    rows, documents = members.weights(), members.total(present)
    kept = text.limits.kept(rows.sum(), members.total(done.matrix.astype(float)).sum(axis=0), documents, rows)
    return replace(text, words=tuple(word for word in done.vocabulary.take(kept) if word != UNK))


def with_idf(text: Text, X: TextRows, members: Members) -> Text:
    """Freeze the inverse document frequencies of the first documents, where the sums depend on them."""
    if not (text.terms.idf and text.terms.unit) or text.idf is not None:
        return text
    X, members = X.with_members(members)
    done, weight = X.count(text.tokens), members.row_weights()
    entry = np.repeat(weight, np.diff(done.matrix.indptr))
    documents = np.bincount(done.matrix.indices, entry, len(done.vocabulary))
    return replace(text, idf=Idf.of(done.vocabulary, documents, float(weight.sum())))


# -- folds -------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class FoldSums:
    """The sums without a fold, and the documents with the numbers of the words that these sums hold."""

    learnt: LearntWords
    removal: PlainRemoval | CompiledRemoval  # of each of the other documents
    terms: sp.csr_array  # (t, U) of the documents of the fold
    used: Array  # (W,) numbers of the words that occur in the fold


@dataclass(eq=False)
class FoldedWords:
    """Scores of n documents in folds, by candidates with the same sums; mutable: it keeps the sums of the folds."""

    text: Text
    rows: sp.csr_array  # (n, U) counts of the words that occur in these documents
    terms: sp.csr_array  # (n, U) what is summed of them
    counts: Array  # (K, U) sums of all documents of the model
    at: Array  # (U,) positions of these words in `totals`
    totals: Array  # (V,) of each word of the model, over the classes
    whole: Array  # (K,) of each class, over the words of the model
    members: Members
    rule: Rule
    folds: dict[int, FoldSums] = field(default_factory=dict)

    @classmethod
    def of(cls, text: Text, stats: TextStats | None, X: TextRows, members: Members, rule: Rule) -> FoldedWords:
        """Number the words of documents that a model has learnt; without sums, it has learnt these alone."""
        if stats is None:
            counted = X.count(text.tokens).matrix
            rows, _ = _renumbered(counted, _columns(counted))
            terms = text.terms.rows(rows, None)
            counts = members.total(terms)
            totals, at = np.ones(len(counts)) @ counts, np.arange(rows.shape[1])
            return cls(text, rows, terms, counts, at, totals, counts.sum(axis=1), members, rule)
        _, sums, vocabulary, _ = word_sums(text, stats)
        counted = X.count_by(vocabulary, text.tokens).matrix
        rows, at = _renumbered(counted, _columns(counted))
        every, totals = sums.counts, word_totals(sums)
        return cls(text, rows, text.terms.rows(rows, None), every[:, at], at, totals, every.sum(axis=1), members, rule)

    def __call__(self, candidate: Text, number: int, train: Array, test: Array) -> tuple[Array, Array]:
        """Return the leave-one-out scores of `train` and the scores of `test`, the fold of this number."""
        fold = self.folds.get(number)
        if fold is None:
            fold = self.folds[number] = self._without(train, test)
        prior = fold.learnt.prior(candidate)
        left_out = LeftOutOfFold(fold, candidate, prior)
        return WordScores.of(fold.removal.scores(candidate, prior), left_out), _scored(fold, *prior)

    def _without(self, train: Array, test: Array) -> FoldSums:
        """Return the sums without the documents `test`."""
        terms, totals = self.terms[test], self.totals.copy()
        removed = self.members.take(test).total(terms)
        counts = left_over(self.counts, removed)
        totals[self.at] = np.ones(len(counts)) @ counts
        known = totals > 0
        stays = np.flatnonzero(known[self.at])
        learnt = LearntWords.among(
            np.ascontiguousarray(counts[:, stays]),
            left_over(self.whole, removed.sum(axis=1)),
            totals[known],
            (np.cumsum(known) - 1)[self.at[stays]],
        )
        rows, members = _renumbered(self.rows[train], stays)[0], self.members.take(train)
        removal = removal_of(self.text, learnt, rows, members, self.rule)
        inside, _ = _renumbered(terms, stays)
        inside, used = _renumbered(inside, _columns(inside))
        return FoldSums(learnt, removal, inside, used)


def _columns(rows: sp.csr_array) -> Array:
    """Return the columns that occur, ascending."""
    occurs = np.zeros(rows.shape[1], bool)
    occurs[rows.indices] = True
    return np.flatnonzero(occurs)


def _renumbered(rows: sp.csr_array, kept: Array) -> tuple[sp.csr_array, Array]:
    """Return rows with the columns `kept` alone, and these columns."""
    place = np.full(rows.shape[1], -1, np.int32)
    place[kept] = np.arange(len(kept), dtype=np.int32)
    indices, data, indptr = place[rows.indices], rows.data, rows.indptr
    if indices.min(initial=0) < 0:
        inside = indices >= 0
        starts = np.concatenate([[0], np.cumsum(inside)])
        indices, data, indptr = indices[inside], data[inside], starts[indptr]
    made = sp.csr_array((data, indices, indptr), (rows.shape[0], len(kept)))
    made.has_sorted_indices, made.has_canonical_format = rows.has_sorted_indices, rows.has_canonical_format
    return made, kept


def _scored(fold: FoldSums, alpha: Array, alpha0: float) -> Array:
    """Return the scores of the documents of a fold under a prior, with their source."""
    table = np.ascontiguousarray(fold.learnt.counts[:, fold.used].T)
    table += alpha[fold.used, None]
    with np.errstate(divide="ignore"):  # the total is 0 if the other folds have no words; then no word is scored
        table = log_in_place(table) - np.log(fold.learnt.whole + alpha0)
    source = DocumentsOfFold(fold.terms, table, fold.used)
    return WordScores.of(source.scores(source.terms.data), source)


# -- sources -----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class DocumentsOfFold:
    """Documents of a fold, scored by the sums of the others."""

    terms: sp.csr_array  # (t, W)
    table: Array  # (W, K) log probabilities
    used: Array  # (W,) numbers of the words

    def take(self, rows: Any) -> DocumentsOfFold:
        """Return some of the documents."""
        return replace(self, terms=self.terms[rows])

    def scores(self, data: Array) -> Array:
        """Return the scores of the documents, with `data` in the place of the terms, shape (t, K)."""
        return kernels.sparse_scores(
            data, self.terms.indices, self.terms.indptr, self.table, np.zeros(self.table.shape[1])
        )

    def rescaled(self, factors: ColumnFactors) -> Array:
        """Return the scores with the evidence of each word multiplied by its factor, shape (t, K)."""
        each = factors.of_columns(self.used)
        return self.scores(self.terms.data * each[self.terms.indices])

    def evidence(self) -> WordEvidence:
        """Return the evidence of each word in each document, without terms that all classes share."""
        totals = np.zeros((self.terms.shape[0], self.table.shape[1]))
        return WordEvidence(None, self.used, self.terms, self.table, totals).between_classes()


@dataclass(eq=False)
class LeftOutOfFold:
    """Documents outside of a fold, each scored by the sums of the others without it; mutable: it keeps the evidence."""

    fold: FoldSums
    candidate: Text
    prior: Prior  # of the candidate
    found: WordEvidence | None = None  # once it was computed

    def take(self, rows: Any) -> LeftOutOfFold:
        """Refuse: each of the documents is needed."""
        raise InputError("the documents outside of a fold are scored together.")

    def evidence(self) -> WordEvidence:
        """Return the evidence of each word in each document, without terms that all classes share."""
        if self.found is None:
            self.found = between_classes(None, self.fold.removal.entries(self.candidate, np.float32, self.prior))
        return self.found

    def rescaled(self, factors: ColumnFactors) -> Array:
        """Return leave-one-out scores with the evidence of each word multiplied by its factor, shape (n, K)."""
        found = self.evidence()
        return found.scores(factors.of_columns(found.at))
