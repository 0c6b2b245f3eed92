"""A document left out of text: its own words move in its own class, and leave where nobody else has them.

A model that had never seen the document would not know the words that only it holds. They are not in its vocabulary, so
they have no share of the prior in any class, and score as any unknown word does: not at all, or as <unk>. So for
V − g words in all, of which g are gone,

    multinomial   Σ x log(N_j + α) − L log(N + (V − g)α)       L counts the words that are left
    polya         Σ log (N_j + α)^(x) − log (N + (V − g)α)^(L)
    bernoulli     gone words are neither present nor absent
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from deciban.families.bernoulli import Bernoulli, BernoulliDensity
from deciban.families.dirichlet import left_over, log_rising, log_rising_counts
from deciban.families.multinomial import Multinomial
from deciban.families.protocol import Family, Rule
from deciban.families.text.leaving import Learnt, Leaving, LeftOut
from deciban.families.text.left_words import multinomial
from deciban.families.text.rows import TextRows
from deciban.families.tokens import PolyaDensity
from deciban.features.sparse import entries
from deciban.statistics import Array, Members

if TYPE_CHECKING:
    from deciban.families.text.family import Text
    from deciban.families.text.sums import TextStats


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
