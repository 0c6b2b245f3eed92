"""A document left out of text: its own words move in its own class, and leave where nobody else has them.

A model that had never seen the document would not know the words that only it holds. They are not in its vocabulary, so
they have no share of the prior in any class, and score as any unknown word does: not at all, or as <unk>. So for
V − g words in all, of which g are gone,

    multinomial   Σ x log(N_j + α) − L log(N + (V − g)α)       L counts the words that are left
    polya         Σ log (N_j + α)^(x) − log (N + (V − g)α)^(L)
    bernoulli     gone words are neither present nor absent
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from scipy.special import xlogy

from deciban.families.bernoulli import Bernoulli, BernoulliDensity
from deciban.families.dirichlet import denominator, left_over, log_in_place, log_rising, log_rising_counts, numerator
from deciban.families.linear import linear_scores
from deciban.families.multinomial import Multinomial
from deciban.families.protocol import Family, Rule, own_codes
from deciban.families.text.rows import TextRows
from deciban.families.text.sums import known_words
from deciban.families.text.terms import weighed
from deciban.families.tokens import PolyaDensity
from deciban.statistics import Array, Members
from deciban.statistics.axes import undeclared

if TYPE_CHECKING:
    from deciban.families.text.family import Text
    from deciban.families.text.sums import TextStats


@dataclass(frozen=True, eq=False)
class LeftOut:
    """n documents, each as a model without it would count it."""

    rows: Any  # (n, V) CSR: gone words dropped, or counted as unk
    removed: Array  # of each entry: what its own class loses of the word
    lost: Array  # (n,)  Σ of all that its own class loses
    gone: Any  # (n, V) CSR: 1 for each word that is gone
    codes: Array  # (n,)
    weight: Array  # (n,)


def left_out(text: Text, stats: TextStats, X: TextRows, members: Members, rule: Rule) -> Array:
    """(n, K) log densities without each document."""
    here, at = X.there()
    if at is not None:
        scores = np.zeros((len(X), members.K))
        scores[at] = left_out(text, stats, here, members.take(at), rule)
        return scores
    axis, sums = text.readable(stats)
    known = known_words(axis, text.kind, text.tokens)
    prunable = np.roll(undeclared(axis), -1) if text.kind == "growing" else undeclared(axis)
    counted, factors = X.count_known(known).matrix, text.factors(known.vocabulary)

    def terms(counts: Any) -> Any:
        return weighed(text.terms.rows(counts, factors), factors)

    left = _left(
        counted, terms, sums.counts.sum(axis=0), prunable, own_codes(members), members.row_weights(), text.kind
    )
    family = text.family(axis.size)
    if isinstance(family, Bernoulli):
        if rule in ("ml", "map") and left.gone.nnz:
            return Family.leave_one_out(text, stats, X, members, rule)  # an absence may be impossible
        return _bernoulli(family, sums, left, rule)
    act = _polya if text.rule_of(rule) == "predictive" else _multinomial
    scores = act(family, sums, left, rule)
    return np.where(np.isnan(scores), -np.inf, scores)  # no class left


def _left(
    counted: Any, terms: Callable[[Any], Any], totals: Array, prunable: Array, codes: Array, weight: Array, kind: str
) -> LeftOut:
    n, V = counted.shape
    rows = terms(counted)
    row, word = np.repeat(np.arange(n), np.diff(rows.indptr)), rows.indices
    removed = rows.data * weight[row]
    lost = np.bincount(row, removed, n)
    gone = prunable[word] & (left_over(totals[word], removed) == 0)
    if not gone.any():
        return LeftOut(rows, removed, lost, sp.csr_array((n, V)), codes, weight)
    absent = sp.csr_array((np.ones(int(gone.sum())), (row[gone], word[gone])), (n, V))
    if kind == "learnt":
        starts = np.r_[0, np.cumsum(np.bincount(row[~gone], minlength=n))]
        kept = sp.csr_array((counted.data[~gone], word[~gone], starts), (n, V))
        return LeftOut(terms(kept), removed[~gone], lost, absent, codes, weight)
    place = np.where(gone, V - 1, word)  # unk is last
    kept = sp.coo_array((counted.data, (row, place)), (n, V)).tocsr()
    own = sp.coo_array((np.where(gone, 0.0, removed), (row, place)), (n, V)).tocsr()
    return LeftOut(terms(kept), own.data, lost, absent, codes, weight)


def _multinomial(family: Multinomial, sums: Any, left: LeftOut, rule: Rule) -> Array:
    alpha, alpha0, cells = _prior(family, sums, left)
    row, word, x = _entries(left.rows)
    own = np.arange(len(left.codes)), left.codes
    logs = log_in_place(numerator(np.ascontiguousarray(sums.counts.T), alpha[:, None], rule) + 0.0)
    scores = linear_scores(left.rows, logs, np.zeros(logs.shape[1]))
    counts = left_over(sums.counts[left.codes[row], word], left.removed)
    scores[own] = np.bincount(row, x * log_in_place(numerator(counts, alpha[word], rule)), len(left.codes))
    whole = np.broadcast_to(sums.counts.sum(axis=1), scores.shape).copy()
    whole[own] = left_over(whole[own], left.lost)
    whole = denominator(whole, alpha0[:, None], cells[:, None], rule)
    length = np.bincount(row, x, len(left.codes))[:, None]
    with np.errstate(invalid="ignore"):
        scores = scores - xlogy(length, np.where(whole > 0, whole, 1.0))
    return np.where(whole > 0, scores, -np.inf)


def _polya(family: Multinomial, sums: Any, left: LeftOut, rule: Rule) -> Array:
    alpha, alpha0, _ = _prior(family, sums, left)
    row, word, x = _entries(left.rows)
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


def _prior(family: Multinomial, sums: Any, left: LeftOut) -> tuple[Array, Array, Array]:
    """(V,) pseudo-counts, and without each row (n,) their sum and the number of words."""
    alpha, alpha0 = family.alpha(sums)
    return alpha, alpha0 - left.gone @ alpha, len(alpha) - np.diff(left.gone.indptr)


def _entries(rows: Any) -> tuple[Array, Array, Array]:
    return np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr)), rows.indices, rows.data
