"""Leave-one-out scores of documents: a document's own words lose its counts in its own class.

Words that no other document holds leave the vocabulary with the document. They have no share of the prior in any class,
and score as unknown words do: 0, or as <unk>. With A the sum of the pseudo-counts α_j of the words that stay, and L the
sum of the terms x of those of them that the document holds,

    multinomial   Σ x log(N_j + α_j) − L log(N + A)
    polya         Σ log (N_j + α_j)^(x) − log (N + A)^(L)
    bernoulli     words that leave are neither present nor absent

Pseudo-counts that are proportional to the frequencies of words are held fixed: they do not depend on labels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from deciban import kernels
from deciban.families.bernoulli import Bernoulli, BernoulliDensity
from deciban.families.dirichlet import (
    ROUNDING,
    PolyaDensity,
    left_over,
    log_in_place,
    log_rising,
    log_rising_counts,
    word_prior,
)
from deciban.families.protocol import Family, Rule
from deciban.kernels.choice import compiled, weights_or_empty
from deciban.kernels.parallel import each, entry_chunks
from deciban.statistics import Array, Members
from deciban.text.counting import TextRows
from deciban.text.kernels.streams import MOST_IN_INT32
from deciban.text.stats import TextStats, count_family, pseudo_counts, rule_of, word_sums
from deciban.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from deciban.text.family import Text

Prior: TypeAlias = tuple[Array, float]  # the pseudo-count of each word, (V,), and the sum of those of all words
GROUPS = 16  # occurrences in a document from which a word takes a logarithm of its own
LARGE_MODEL = 2**22  # counts of a model above which documents are scored in parts
PART = 4_096  # documents in a part, in which few of the words occur
LEFT_OUT_IN_NUMPY = 4.0  # work of the numpy version over the usual estimate: many calls, with little work per entry
ENTRY_WORK = 40  # elementary operations of a word of a document, and one for each class


@dataclass(frozen=True, eq=False)
class LearntWords:
    """Counts of the words of a model; candidates that differ in the prior alone share them."""

    counts: Array  # (K, V) `unk` last, multiplied by the idf
    totals: Array  # (V,) of each word, over the classes
    whole: Array  # (K,) of each class, over the words
    prunable: Array  # (V,) whether a word leaves the vocabulary when nothing is counted under it
    idf: Array | None = None  # (V,)
    vocabulary: Vocabulary | None = None
    sums: TextStats | None = None  # whose counts these are
    every: Array | None = None  # totals of all words, where the V words are some of them
    at: Array | None = None  # (V,) positions of these words among all

    @classmethod
    def of(cls, text: Text, stats: TextStats) -> LearntWords:
        """Read the sums of a model."""
        axis, sums, vocabulary, idf = word_sums(text, stats)
        counts = sums.counts
        free = np.arange(counts.shape[1]) >= axis.declared
        return cls(
            counts,
            np.ones(len(counts)) @ counts,  # faster than a sum
            counts @ np.ones(len(free)),
            np.roll(free, -1) if text.kind == "growing" else free,
            idf,
            vocabulary,
            sums,
        )

    @classmethod
    def among(cls, counts: Array, whole: Array, every: Array, at: Array) -> LearntWords:
        """Return some of the words that a model has learnt, given the totals of all, none of which is declared."""
        return cls(counts, every[at], whole, np.ones(len(at), bool), every=every, at=at)

    def prior(self, text: Text) -> Prior:
        """Return the pseudo-count of each word, (V,), and the sum of the pseudo-counts of all words."""
        every = self.totals if self.every is None else self.every
        alpha, alpha0 = word_prior(pseudo_counts(text, every), None, len(every))
        return (alpha if self.at is None else alpha[self.at]), alpha0

    @property
    def words(self) -> int:
        """Number of all words."""
        return len(self.totals if self.every is None else self.every)


class LeaveOneOut:
    """Leave-one-out scores of learnt documents, by candidates that differ in the prior alone; mutable.

    What does not depend on the prior is computed once: the words of the model, and what the documents that were scored
    last remove from its counts.
    """

    def __init__(self, text: Text, stats: TextStats, X: TextRows, members: Members, rule: Rule) -> None:
        self.text, self.stats, self.X, self.members, self.rule = text, stats, X, members, rule
        self.learnt = LearntWords.of(text, stats)
        self.vocabulary: Any = self.learnt.vocabulary
        self._last: tuple[Array | None, PlainRemoval | CompiledRemoval, Array | None] | None = None

    @property
    def size(self) -> int:
        """Number of counts that it holds."""
        return self.stats.counts.size

    def __call__(self, candidate: Text, rows: Array | None = None) -> Array:
        """Return the log densities of these rows, or of all, shape (m, K); 0 for missing documents."""
        removal, here = self._removal(rows)
        scores = removal.scores(candidate.resolve(self.stats))
        if here is None:
            return scores
        every = np.zeros((len(self.X) if rows is None else len(rows), scores.shape[1]))
        every[here] = scores
        return every

    def all_scores(self, candidate: Text) -> Array:
        """Return the log densities of all rows, shape (n, K); by a large model, part by part if not counted before."""
        if self.size <= LARGE_MODEL or self.X.counts.any(self.text.tokens):
            return self(candidate)
        starts = range(0, len(self.X), PART)
        return np.concatenate([self(candidate, np.arange(at, min(at + PART, len(self.X)))) for at in starts])

    def entries(self, candidate: Text, dtype: Any) -> tuple[Vocabulary, LeftOutEntries]:
        """Return the vocabulary, and the words of all rows with the counts of a model without each row.

        Entries have the precision `dtype` where they are many.
        """
        removal, here = self._removal(None)
        if here is not None:  # a missing document is an empty row
            counted = self.X.count_by(self.vocabulary, self.text.tokens).matrix
            removal = removal_of(self.text, self.learnt, counted, self.members, self.rule, (self.stats, self.X))
        return self.vocabulary, removal.entries(candidate, dtype)

    def _removal(self, rows: Array | None) -> tuple[PlainRemoval | CompiledRemoval, Array | None]:
        """Return the removal of the documents that are not missing, and their positions; the last one is kept."""
        if self._last is None or not _same(self._last[0], rows):
            X, members = (self.X, self.members) if rows is None else (self.X[rows], self.members.take(rows))
            X, here = X.without_missing()
            members = members if here is None else members.take(here)
            counted = X.count_by(self.vocabulary, self.text.tokens).matrix
            given = counted, members, self.rule, (self.stats, X)
            self._last = rows, removal_of(self.text, self.learnt, *given), here
        return self._last[1:]


def _same(one: Array | None, two: Array | None) -> bool:
    return one is two or (one is not None and two is not None and np.array_equal(one, two))


def removal_of(
    text: Text,
    learnt: LearntWords,
    counted: sp.csr_array,
    members: Members,
    rule: Rule,
    given: tuple[TextStats, TextRows] | None = None,
) -> PlainRemoval | CompiledRemoval:
    """Return what each document removes from the counts, compiled where the reading and the rule allow it.

    `given` are the sums and the documents; a reading with a probability for each word does not need them.
    """
    own, K = members.own_codes(), len(learnt.whole)
    predictive = rule_of(text, rule) == "predictive"
    one_probability = text.reading != "bernoulli" and not predictive
    # the kernel drops words that leave, and needs terms that do not depend on a document's other words
    suited = one_probability and text.kind != "growing" and not text.terms.unit
    if suited and compiled(counted.nnz * K, LEFT_OUT_IN_NUMPY):
        return CompiledRemoval(text, learnt, counted, members, rule)
    left = LeftOut.of(text, learnt, counted, own, members.row_weights())
    counts = np.zeros(0) if predictive else left.own_counts(learnt.counts)
    length = np.bincount(left.row, left.rows.data, len(own))
    return PlainRemoval(members, learnt, left, counts, length, rule, predictive, given)


# -- numpy -------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class LeftOut:
    """The words of n documents, and what removing each document takes from the counts of its class."""

    rows: sp.csr_array  # (n, V) terms: words that leave are dropped, or counted as unk
    row: Array  # of each entry: its document
    removed: Array  # of each entry: what its own class loses of the word
    lost: Array  # (n,)  Σ of all that its own class loses
    whole: Array  # (n, K)  total count of each class without the document
    gone: sp.csr_array  # (n, V) 1 for each word that leaves the vocabulary
    codes: Array  # (n,)
    weight: Array  # (n,)

    @classmethod
    def of(cls, text: Text, learnt: LearntWords, counted: sp.csr_array, codes: Array, weight: Array) -> LeftOut:
        """Find the words that leave with each document."""
        n, V = counted.shape
        terms = text.terms.weighted_rows(counted, learnt.idf)
        row, word = np.repeat(np.arange(n), np.diff(terms.indptr)), terms.indices
        removed = terms.data if (weight == 1.0).all() else terms.data * weight[row]
        lost = np.bincount(row, removed, n)
        whole = totals_without(learnt.whole, codes, lost)
        rare = learnt.prunable & (learnt.totals * (1 - 2 * ROUNDING) <= removed.max(initial=0.0))
        gone = rare[word]
        near = np.flatnonzero(gone)
        gone[near] = left_over(learnt.totals[word[near]], removed[near]) == 0
        if not gone.any():
            return cls(terms, row, removed, lost, whole, sp.csr_array((n, V)), codes, weight)
        absent = sp.csr_array((np.ones(int(gone.sum())), (row[gone], word[gone])), (n, V))
        if text.kind == "learnt":
            starts = np.concatenate([[0], np.cumsum(np.bincount(row[~gone], minlength=n))])
            stays = ~gone
            data = (
                counted.data if text.terms.unit else terms.data
            )  # with unit length, all terms change if a word leaves
            kept = sp.csr_array((data[stays], word[stays], starts), (n, V))
            terms = text.terms.weighted_rows(kept, learnt.idf) if text.terms.unit else kept
            return cls(terms, row[stays], removed[stays], lost, whole, absent, codes, weight)
        place = np.where(gone, V - 1, word)  # unk is last
        kept = sp.coo_array((counted.data, (row, place)), (n, V)).tocsr()
        own = sp.coo_array((np.where(gone, 0.0, removed), (row, place)), (n, V)).tocsr()
        terms = text.terms.weighted_rows(kept, learnt.idf)
        row = np.repeat(np.arange(n), np.diff(terms.indptr))
        return cls(terms, row, own.data, lost, whole, absent, codes, weight)

    def own_counts(self, counts: Array) -> Array:
        """Return what the own class of each entry counts of the word without the document; `counts` is (K, V)."""
        return left_over(counts[self.codes[self.row], self.rows.indices], self.removed)


@dataclass(frozen=True, eq=False)
class LeftOutEntries:
    """The words of n documents and the counts without each document, for sums over words with factors."""

    used: Array  # (U,) columns of the words that occur
    rows: sp.csr_array  # (n, U) terms x of the words that stay
    own: Array  # of each entry: x·(log of the word's count in the own class without the document − table)
    table: Array  # (U, K) log of the count and prior of each word
    totals: Array  # (n, K) counts and prior of each class without each document
    codes: Array  # (n,)


@dataclass(frozen=True, eq=False)
class PlainRemoval:
    """Counts without each of n documents, in numpy: for every reading, term and kind of vocabulary."""

    members: Members
    learnt: LearntWords
    left: LeftOut
    own: Array  # of each entry: what its own class counts of the word without the document; empty if `predictive`
    length: Array  # (n,)  Σ x of the words that stay
    rule: Rule
    predictive: bool  # whether the words of a document are scored together, as drawn from an urn
    given: tuple[TextStats, TextRows] | None  # the sums and the documents

    def scores(self, candidate: Text, prior: Prior | None = None) -> Array:
        """Return the log densities of the documents by a candidate, shape (n, K); its prior may be known."""
        V, sums = self.learnt.words, self.learnt.sums
        if candidate.reading == "bernoulli" and sums is not None and self.given is not None:
            if self.rule in ("ml", "map") and self.left.gone.nnz:  # an absence may be impossible
                return Family.leave_one_out(candidate, *self.given, self.members, self.rule)
            family: Bernoulli = count_family(candidate, sums)  # type: ignore[assignment]
            return _bernoulli(family, sums, self.left, self.rule)
        alpha, alpha0 = prior or self.learnt.prior(candidate)
        if self.predictive and sums is not None:
            scores = _polya(alpha, alpha0, sums, self.left)
        else:
            words = self._word_scores(alpha)
            scores = _normalised(words, prior_total(alpha0, V, self.rule))
        scores[np.isnan(scores)] = -np.inf  # the class is empty without the document
        return scores

    def _word_scores(self, alpha: Array) -> WordScores:
        left, word, x = self.left, self.left.rows.indices, self.left.rows.data
        shift = shift_of(alpha, self.rule)
        logs = log_in_place(np.ascontiguousarray(self.learnt.counts.T) + shift[:, None])
        scores = kernels.sparse_scores(x, word, left.rows.indptr, logs, np.zeros(logs.shape[1]))
        each = log_in_place(self.own + shift[word])
        scores[np.arange(len(left.codes)), left.codes] = np.bincount(left.row, x * each, len(left.codes))
        return WordScores(scores, self.length, left.whole, left.gone @ shift)

    def entries(self, candidate: Text, dtype: Any = np.float64, prior: Prior | None = None) -> LeftOutEntries:
        """Return the words that stay when each document is left out, by a candidate."""
        learnt, left, V = self.learnt, self.left, len(self.learnt.totals)
        counts, terms, codes = learnt.counts, left.rows, left.codes
        alpha, alpha0 = prior or learnt.prior(candidate)
        shift = shift_of(alpha, self.rule)
        word, occurs = terms.indices, np.zeros(V, bool)
        occurs[word] = True
        used, place = np.flatnonzero(occurs), np.cumsum(occurs, dtype=np.int32) - np.int32(1)
        table = log_in_place(np.ascontiguousarray(counts.T[used]) + shift[used, None])
        own = log_in_place(self.own + shift[word]) - table[place[word], codes[left.row]]
        whole = left.whole + (prior_total(alpha0, learnt.words, self.rule) - left.gone @ shift)[:, None]
        rows = sp.csr_array((terms.data, place[word], terms.indptr), (len(codes), len(used)))
        return LeftOutEntries(used, rows, terms.data * own, table, whole, codes)


@dataclass(frozen=True, eq=False)
class WordScores:
    """Scores of n documents by the words that stay, before the division by the total counts."""

    scores: Array  # (n, K)  Σ x log of the word's count and prior
    length: Array  # (n,)  Σ x of the words that stay
    whole: Array  # (n, K)  total count of each class without the document
    gone: Array  # (n,)  what the prior adds to the counts of words that leave


def shift_of(alpha: Array, rule: Rule) -> Array:
    """Return what the prior adds to the count of each word under a rule."""
    return {"ml": np.zeros(len(alpha)), "map": alpha - 1.0}.get(rule, alpha)


def prior_total(alpha0: float, V: int, rule: Rule) -> float:
    """Return what the prior adds to the counts of all V words under a rule."""
    return {"ml": 0.0, "map": alpha0 - V}.get(rule, alpha0)


def totals_without(whole: Array, codes: Array, lost: Array) -> Array:
    """Return the total count of each class without each document, (n, K), from those with all documents, (K,)."""
    own = np.arange(len(codes)), codes
    found = np.broadcast_to(whole, (len(codes), len(whole))).copy()
    found[own] = left_over(found[own], lost)
    return found


def _normalised(words: WordScores, prior: float) -> Array:
    """Divide by the total counts without each document: (n, K) log densities."""
    whole = words.whole + (prior - words.gone)[:, None]
    empty = whole <= 0
    if prior > 0:
        empty[words.length == 0] = False  # no word is left without the document, so that it has no word to score
    whole[whole <= 0] = 1.0
    with np.errstate(invalid="ignore"):
        scores = words.scores - words.length[:, None] * np.log(whole, out=whole)
    scores[empty] = -np.inf
    return scores


def _polya(alpha: Array, alpha0: float, sums: TextStats, left: LeftOut) -> Array:
    without = alpha0 - left.gone @ alpha
    row, word, x = left.row, left.rows.indices, left.rows.data
    own = np.arange(len(left.codes)), left.codes
    length = np.bincount(row, x, len(left.codes))[:, None]
    totals = np.broadcast_to(sums.counts.sum(axis=1), (len(length), len(sums.rows))).copy()
    urn = PolyaDensity(np.ascontiguousarray(sums.counts.T) + alpha[:, None], totals[0] + 1.0, sums.rows)
    words = urn.log_density(left.rows) + log_rising(urn.total, length)  # cancels the urn's total
    counts = left.own_counts(sums.counts)
    words[own] = np.bincount(row, log_rising_counts(counts + alpha[word], x), len(left.codes))
    totals[own] = left_over(totals[own], left.lost)
    return words - log_rising(totals + without[:, None], length)


def _bernoulli(family: Bernoulli, sums: TextStats, left: LeftOut, rule: Rule) -> Array:
    present = sp.csr_array((np.ones(len(left.rows.data)), left.rows.indices, left.rows.indptr), left.rows.shape)
    scores = _presence(family.estimate(sums, rule), present, left.gone)
    pairs, at = np.unique(left.codes + 1j * left.weight, return_inverse=True)
    every = np.arange(len(at))
    if len(pairs) <= 2 * scores.shape[1]:  # documents of the same class and weight change the density equally
        alike = BernoulliDensity(*family.without_row(sums, pairs.real.astype(np.intp), pairs.imag, rule))
        scores[every, left.codes] = _presence(alike, present, left.gone)[every, at]
        return scores
    for i in every:
        alone = BernoulliDensity(*family.without_row(sums, left.codes[i : i + 1], left.weight[i : i + 1], rule))
        scores[i, left.codes[i]] = _presence(alone, present[i : i + 1], left.gone[i : i + 1])[0, 0]
    return scores


def _presence(density: BernoulliDensity, present: sp.csr_array, gone: sp.csr_array) -> Array:
    """Return scores that do not count words that leave the vocabulary as absent."""
    scores = density.log_density(present)
    return scores - gone @ density.log_off.T if gone.nnz else scores


# -- compiled ----------------------------------------------------------------------------------------------------------
class CompiledRemoval:
    """Counts without each of n documents: multinomial readings of a vocabulary that drops words, in one compiled pass.

    Only the U words that occur in the documents take part: a table of their logarithms is made and read quickly. The
    memory of the table is used again for the next candidate.
    """

    def __init__(self, text: Text, learnt: LearntWords, counted: sp.csr_array, members: Members, rule: Rule) -> None:
        from deciban.text.kernels.word_evidence_compiled import number_words

        self.text, self.learnt, self.counted, self.members, self.rule = text, learnt, counted, members, rule
        columns, V = counted.indices, counted.shape[1]
        used, place, places = np.empty(V, columns.dtype), np.full(V, -1, columns.dtype), np.empty_like(columns)
        self.used = used[: number_words(columns, place, used, places)]  # (U,) columns of the words that occur
        self.place = place  # (V,) position of each word among them, or −1
        self.places = places  # of each entry of the documents: the position of its word
        # (U,) removing this much of a word deletes it from the vocabulary; inf for words that stay
        self.limits = np.where(learnt.prunable[self.used], learnt.totals[self.used] * (1 - ROUNDING), np.inf)
        self.table = np.empty((len(self.used), len(learnt.whole)))
        self.kept: tuple[Array, Array] | None = None  # starts of the words of each row that stay, and which words do
        # the last candidate, and its sums
        self.made: tuple[Text, tuple[float, tuple[Any, ...], Array, tuple[Any, ...]]] | None = None

    def scores(self, candidate: Text, prior: Prior | None = None) -> Array:
        """Return the log densities of the documents by a candidate, shape (n, K); its prior may be known."""
        alpha0, counts, logs, limits = self._sums(candidate, prior)
        added = prior_total(alpha0, self.learnt.words, self.rule)
        scores = _normalised(self._word_scores(counts, logs, limits), added)
        scores[np.isnan(scores)] = -np.inf  # the class is empty without the document
        return scores

    def _word_scores(self, counts: tuple[Any, ...], logs: Array, prior: tuple[Any, ...]) -> WordScores:
        from deciban.text.kernels.word_evidence_compiled import leave_one_out_scores

        codes, K = self.members.own_codes(), len(self.learnt.whole)
        n = len(codes)
        rows, room = self.counted, np.diff(self.counted.indptr).max(initial=0) + 1
        scores, (length, lost, gone) = np.empty((n, K)), np.empty((3, n))
        documents = self._documents()

        def score(some: slice) -> None:
            leave_one_out_scores(
                *documents(some),
                *(*counts, logs, *prior),
                *(np.empty(GROUPS), np.zeros(room, self.places.dtype), np.empty(room), np.zeros(K)),
                *(scores[some], length[some], lost[some], gone[some]),
            )

        each(score, entry_chunks(rows.indptr, ENTRY_WORK + K))
        return WordScores(scores, length, totals_without(self.learnt.whole, codes, lost), gone)

    def entries(self, candidate: Text, dtype: Any = np.float64, prior: Prior | None = None) -> LeftOutEntries:
        """Return the words that stay when each document is left out, by a candidate."""
        from deciban.text.kernels.word_evidence_compiled import count_left_out, left_out_entries

        n, codes = len(self.members.own_codes()), self.members.own_codes()
        documents, (alpha0, counts, logs, limits) = self._documents(), self._sums(candidate, prior)
        chunks = entry_chunks(self.counted.indptr, ENTRY_WORK)
        if self.kept is None:
            kept, stays = np.empty(n, np.int64), np.zeros(len(self.used), bool)
            each(lambda some: count_left_out(*documents(some), self.limits, kept[some], stays), chunks)
            self.kept = np.concatenate([[0], np.cumsum(kept)]), stays
        (starts, stays), lost, gone = self.kept, np.empty(n), np.empty(n)
        number = np.cumsum(stays, dtype=np.int32) - np.int32(1)  # words that leave with their only document have none
        words, terms, own = (np.empty(starts[-1], kind) for kind in (np.int32, dtype, dtype))

        def find(some: slice) -> None:
            out = starts[some], number, words, terms, own, lost[some], gone[some]
            left_out_entries(*documents(some), *counts, *limits, *out)

        each(find, chunks)
        limits_of_rows = starts.astype(np.int32) if starts[-1] <= MOST_IN_INT32 else starts  # scipy copies mixed widths
        rows = sp.csr_array((terms, words, limits_of_rows), (n, int(stays.sum())))
        added = prior_total(alpha0, self.learnt.words, self.rule) - gone
        whole = totals_without(self.learnt.whole, codes, lost) + added[:, None]
        return LeftOutEntries(self.used[stays], rows, own, logs[stays], whole, codes)

    def _documents(self) -> Callable[[slice], tuple[Array, ...]]:
        """Return a function of a slice of documents: what the kernels read of them."""
        rows, codes = self.counted, self.members.own_codes().astype(np.int64)
        times = rows.data.astype(np.int64, copy=False)
        amounts = self.text.terms.amounts(int(times.max(initial=0)))
        factors = np.empty(0) if self.learnt.idf is None else self.learnt.idf[self.used]

        def of(some: slice) -> tuple[Array, ...]:
            entries = times, rows.indices, self.places, rows.indptr[some.start : some.stop + 1]
            return *entries, codes[some], weights_or_empty(self.members.weight, some), amounts, factors

        return of

    def _sums(self, candidate: Text, known: Prior | None) -> tuple[float, tuple[Any, ...], Array, tuple[Any, ...]]:
        """Return the sum of the prior, counts and strides, logarithms of counts and prior (U, K), limits and prior."""
        from deciban.text.kernels.word_evidence_compiled import shifted_counts

        if self.made is not None and self.made[0] is candidate:
            return self.made[1]
        alpha, alpha0 = known or self.learnt.prior(candidate)
        counts, shift = self.learnt.counts, shift_of(alpha[self.used], self.rule)
        turned = counts.flags.f_contiguous
        steps = (1, len(counts)) if turned else (counts.shape[1], 1)
        flat = np.ascontiguousarray(counts.T if turned else counts).reshape(-1)
        shifted_counts(flat, *steps, self.place, shift, self.table)
        found = alpha0, (flat, *steps), log_in_place(self.table), (self.limits, shift, ROUNDING)
        self.made = candidate, found
        return found
