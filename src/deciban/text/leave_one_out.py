"""Documents that are left out of the sums: what goes with them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from deciban.families.dirichlet import ROUNDING, left_over
from deciban.families.protocol import own_codes
from deciban.read.numbers import entries
from deciban.statistics import Array, Axis, Members
from deciban.text.stats import ByWords, TextStats
from deciban.text.terms import weighed

if TYPE_CHECKING:
    from deciban.text.family import Text


from dataclasses import field
from typing import TYPE_CHECKING

from deciban.families.bernoulli import Bernoulli, BernoulliDensity
from deciban.families.counts import PolyaDensity, linear_scores
from deciban.families.dirichlet import denominator, log_in_place, log_rising, log_rising_counts, numerator
from deciban.families.multinomial import Multinomial
from deciban.families.protocol import Family, Rule
from deciban.kernels.choice import compiled, weights_or_empty
from deciban.text.rows import TextRows

if TYPE_CHECKING:
    from deciban.text.family import Text
    from deciban.text.stats import TextStats


@dataclass(frozen=True, eq=False)
class Learnt(ByWords):
    """What was learnt of the words, from all documents; shared by texts that differ in the prior alone."""

    text: Text
    axis: Axis
    sums: Any  # with unk last, idf multiplied in

    @classmethod
    def of(cls, text: Text, stats: TextStats) -> Learnt:
        return cls(text, *text.readable(stats))

    @cached_property
    def totals(self) -> Array:
        """(V,) how much there is of each word."""
        return np.ones(len(self.sums.counts)) @ self.sums.counts  # faster than a sum

    @cached_property
    def whole(self) -> Array:
        """(K,) how much there is of all words."""
        return self.sums.counts @ np.ones(self.axis.size)

    @cached_property
    def prunable(self) -> Array:
        """(V,) whether a word goes when there is nothing left of it."""
        free = self.axis.undeclared
        return np.roll(free, -1) if self.text.kind == "growing" else free

    @property
    def simple(self) -> bool:
        """Whether what goes leaves a document's other words as they are."""
        return not self.text.terms.unit and self.text.kind != "growing"

    def terms(self, counts: Any) -> Any:
        """Counts as the words count."""
        return weighed(self.text.terms.rows(counts, self.factors), self.factors)


@dataclass(frozen=True, eq=False)
class LeftOut:
    """n documents, each as a model without it would count it."""

    rows: Any  # (n, V) CSR: gone words dropped, or counted as unk
    removed: Array  # of each entry: what its own class loses of the word
    lost: Array  # (n,)  Σ of all that its own class loses
    gone: Any  # (n, V) CSR: 1 for each word that is gone
    codes: Array  # (n,)
    weight: Array  # (n,)


@dataclass(frozen=True, eq=False)
class Words:
    """The words that occur in n documents: a table of them alone is soon made, and soon read."""

    used: Array  # (U,) their columns
    place: Array  # (V,) where each word is among them, or −1
    places: Array  # of each entry of the documents: where its word is among them
    limits: Array  # (U,) who takes so much of a word takes the word; inf for those that stay
    table: Array  # (U, K) room for what classes say of them


@dataclass(frozen=True, eq=False)
class Leaving:
    """What documents take with them when they go: how much of each word, and whether anybody else has it."""

    learnt: Learnt
    counted: Any  # (n, V) CSR
    members: Members

    @property
    def codes(self) -> Array:
        """(n,) the class of each document."""
        return own_codes(self.members)

    @cached_property
    def words(self) -> Words:
        """The words that occur."""
        from deciban.text.kernels.leave_one_out_compiled import number_words

        columns, V = self.counted.indices, self.counted.shape[1]
        used, place, places = np.empty(V, columns.dtype), np.full(V, -1, columns.dtype), np.empty_like(columns)
        used = used[: number_words(columns, place, used, places)]
        limits = np.where(self.learnt.prunable[used], self.learnt.totals[used] * (1 - ROUNDING), np.inf)
        return Words(used, place, places, limits, np.empty((len(used), len(self.learnt.whole))))

    @cached_property
    def rows(self) -> LeftOut:
        """The documents as models without them see them."""
        (n, V), learnt = self.counted.shape, self.learnt
        weight, terms = self.members.row_weights(), learnt.terms(self.counted)
        row, word, _ = entries(terms)
        removed = terms.data * weight[row]
        lost = np.bincount(row, removed, n)
        gone = learnt.prunable[word] & (left_over(learnt.totals[word], removed) == 0)
        if not gone.any():
            return LeftOut(terms, removed, lost, sp.csr_array((n, V)), self.codes, weight)
        absent = sp.csr_array((np.ones(int(gone.sum())), (row[gone], word[gone])), (n, V))
        if learnt.text.kind == "learnt":
            starts = np.r_[0, np.cumsum(np.bincount(row[~gone], minlength=n))]
            kept = sp.csr_array((self.counted.data[~gone], word[~gone], starts), (n, V))
            return LeftOut(learnt.terms(kept), removed[~gone], lost, absent, self.codes, weight)
        place = np.where(gone, V - 1, word)  # unk is last
        kept = sp.coo_array((self.counted.data, (row, place)), (n, V)).tocsr()
        own = sp.coo_array((np.where(gone, 0.0, removed), (row, place)), (n, V)).tocsr()
        return LeftOut(learnt.terms(kept), own.data, lost, absent, self.codes, weight)


# -- left words ----------
# What the words of a document say without it, under a rule that has one probability for each.

GROUPS = 16  # words that occur so often or more take a logarithm each


@dataclass(frozen=True, eq=False)
class Said:
    """What the words of n documents say without them, before it is divided by the whole."""

    scores: Array  # (n, K)  Σ x log of the word's share of the whole
    length: Array  # (n,)  Σ x of the words that are left
    lost: Array  # (n,)  what the own class loses in all
    gone: Array  # (n,)  words that are gone


def plain_words(leaving: Leaving, alpha: Array, rule: Rule) -> Said:
    """Whatever goes."""
    counts, left = leaving.learnt.sums.counts, leaving.rows
    row, word, x = entries(left.rows)
    n = len(left.codes)
    logs = log_in_place(numerator(np.ascontiguousarray(counts.T), alpha[:, None], rule) + 0.0)
    scores = linear_scores(left.rows, logs, np.zeros(logs.shape[1]))
    own = left_over(counts[left.codes[row], word], left.removed)
    scores[np.arange(n), left.codes] = np.bincount(row, x * log_in_place(numerator(own, alpha[word], rule)), n)
    return Said(scores, np.bincount(row, x, n), left.lost, np.diff(left.gone.indptr))


def fused_words(leaving: Leaving, alpha: Array, rule: Rule) -> Said:
    """The same in one pass, where gone words are dropped and the others stay as they are."""
    from deciban.text.kernels.leave_one_out_compiled import leave_one_out_scores, shifted_counts

    words, rows, learnt = leaving.words, leaving.counted, leaving.learnt
    (n, K), some = (len(leaving.codes), len(learnt.whole)), alpha[words.used]
    shift = {"ml": np.zeros(len(some)), "map": some - 1.0}.get(rule, some)
    factors = np.empty(0) if learnt.factors is None else learnt.factors[words.used]
    counts = learnt.sums.counts
    turned = counts.flags.f_contiguous
    steps = (1, K) if turned else (counts.shape[1], 1)
    flat = np.ascontiguousarray(counts.T if turned else counts).reshape(-1)
    shifted_counts(flat, *steps, words.place, shift, words.table)
    times = rows.data.astype(np.int64, copy=False)
    room = np.diff(rows.indptr).max(initial=0) + 1
    said = Said(np.empty((n, K)), np.empty(n), np.empty(n), np.empty(n, np.int64))
    leave_one_out_scores(
        *(times, rows.indices, words.places, rows.indptr),
        *(leaving.codes.astype(np.int64), weights_or_empty(leaving.members.weight)),
        *(learnt.text.terms.amounts(int(times.max(initial=0))), factors),
        *(flat, *steps, log_in_place(words.table), words.limits, shift, ROUNDING),
        *(np.empty(GROUPS), np.zeros(room, words.places.dtype), np.empty(room), np.zeros(K)),
        *(said.scores, said.length, said.lost, said.gone),
    )
    return said


def multinomial(family: Multinomial, leaving: Leaving, rule: Rule) -> Array:
    """(n, K) log densities."""
    learnt, codes = leaving.learnt, leaving.codes
    alpha, alpha0 = family.alpha(learnt.sums)
    fused = learnt.simple and compiled(leaving.counted.nnz * len(learnt.whole))
    said = (fused_words if fused else plain_words)(leaving, alpha, rule)
    own, gone = (np.arange(len(codes)), codes), said.gone[:, None]
    whole = np.broadcast_to(learnt.whole, said.scores.shape).copy()
    whole[own] = left_over(whole[own], said.lost)
    # unk is never gone, and the others have one pseudo-count
    whole = denominator(whole, alpha0 - gone * alpha[0], len(alpha) - gone, rule)
    empty = whole <= 0
    whole[empty] = 1.0
    with np.errstate(invalid="ignore"):
        scores = said.scores - said.length[:, None] * np.log(whole, out=whole)
    scores[empty] = -np.inf
    return scores


# -- left out ----------
# A document left out of text: its own words move in its own class, and leave where nobody else has them.
#
# A model that had never seen the document would not know the words that only it holds. They are not in its
# vocabulary, so
# they have no share of the prior in any class, and score as any unknown word does: not at all, or as <unk>. So for
# V − g words in all, of which g are gone,
#
#     multinomial   Σ x log(N_j + α) − L log(N + (V − g)α)       L counts the words that are left
#     polya         Σ log (N_j + α)^(x) − log (N + (V − g)α)^(L)
#     bernoulli     gone words are neither present nor absent


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """Scores of documents without themselves, by texts that differ in the prior alone and share the rest."""

    text: Text
    stats: TextStats
    X: TextRows
    members: Members
    rule: Rule
    _ready: dict[bytes, tuple[Leaving, TextRows, Array | None]] = field(default_factory=dict)

    @cached_property
    def learnt(self) -> Learnt:
        return Learnt.of(self.text, self.stats)

    def __call__(self, other: Text, rows: Array | None = None) -> Array:
        """(n, K) log densities of these rows, or of all; a missing document says nothing."""
        leaving, here, at = self._leaving(rows)
        scores = self._scores(other, leaving, here)
        if at is None:
            return scores
        every = np.zeros((len(self.X) if rows is None else len(rows), scores.shape[1]))
        every[at] = scores
        return every

    def in_parts(self, size: int) -> Array:
        """(n, K) log densities of all rows, so many counted and scored at a time; their lengths are noted."""
        parts = [np.arange(at, min(at + size, len(self.X))) for at in range(0, len(self.X), size)]
        scores, lengths, tokens = [], np.zeros(len(self.X), np.int64), self.text.tokens
        for rows in parts:
            scores.append(self(self.text, rows))
            _, here, at = self._leaving(rows)
            lengths[rows if at is None else rows[at]] = here.measured[tokens]
        self.X.measured[tokens] = lengths
        return np.concatenate(scores)

    def _leaving(self, rows: Array | None) -> tuple[Leaving, TextRows, Array | None]:
        """Of some rows those that are not missing, and where they stand; kept while the same are asked for again."""
        asked = b"" if rows is None else rows.tobytes()
        if asked not in self._ready:
            self._ready.clear()
            X, members = (self.X, self.members) if rows is None else (self.X[rows], self.members.take(rows))
            here, at = X.there()
            counted = here.count_known(self.learnt.known).matrix
            self._ready[asked] = Leaving(self.learnt, counted, members if at is None else members.take(at)), here, at
        return self._ready[asked]

    def _scores(self, other: Text, leaving: Leaving, here: TextRows) -> Array:
        family: Any = other.family(self.learnt.axis.size)
        if isinstance(family, Bernoulli):
            if self.rule in ("ml", "map") and leaving.rows.gone.nnz:  # an absence may be impossible
                return Family.leave_one_out(other, self.stats, here, leaving.members, self.rule)
            return _bernoulli(family, self.learnt.sums, leaving.rows, self.rule)
        if other.rule_of(self.rule) == "predictive":
            scores = _polya(family, self.learnt.sums, leaving.rows)
        else:
            scores = multinomial(family, leaving, self.rule)
        scores[np.isnan(scores)] = -np.inf  # no class left
        return scores


def _polya(family: Multinomial, sums: Any, left: LeftOut) -> Array:
    alpha, alpha0 = family.alpha(sums)
    alpha0 = alpha0 - left.gone @ alpha
    row, word, x = entries(left.rows)
    own = np.arange(len(left.codes)), left.codes
    length = np.bincount(row, x, len(left.codes))[:, None]
    totals = np.broadcast_to(sums.counts.sum(axis=1), (len(length), len(sums.rows))).copy()
    urn = PolyaDensity(np.ascontiguousarray(sums.counts.T) + alpha[:, None], totals[0] + 1.0, sums.rows)
    words = urn.log_density(left.rows) + log_rising(urn.total, length)  # whatever the urn's total is said to be
    counts = left_over(sums.counts[left.codes[row], word], left.removed)
    words[own] = np.bincount(row, log_rising_counts(counts + alpha[word], x), len(left.codes))
    totals[own] = left_over(totals[own], left.lost)
    return words - log_rising(totals + alpha0[:, None], length)


def _bernoulli(family: Bernoulli, sums: Any, left: LeftOut, rule: Rule) -> Array:
    present = sp.csr_array((np.ones(len(left.rows.data)), left.rows.indices, left.rows.indptr), left.rows.shape)
    scores = _presence(family.estimate(sums, rule), present, left.gone)
    pairs, at = np.unique(left.codes + 1j * left.weight, return_inverse=True)
    which = np.arange(len(at))
    if len(pairs) <= 2 * scores.shape[1]:  # rows of one class and weight move alike
        alike = BernoulliDensity(*family._without(sums, pairs.real.astype(np.intp), pairs.imag, rule))
        scores[which, left.codes] = _presence(alike, present, left.gone)[which, at]
        return scores
    for i in which:
        alone = BernoulliDensity(*family._without(sums, left.codes[i : i + 1], left.weight[i : i + 1], rule))
        scores[i, left.codes[i]] = _presence(alone, present[i : i + 1], left.gone[i : i + 1])[0, 0]
    return scores


def _presence(density: BernoulliDensity, present: Any, gone: Any) -> Array:
    """Scores in which words that are gone are not absent either."""
    scores = density.log_density(present)
    return scores - gone @ density.log_off.T if gone.nnz else scores
