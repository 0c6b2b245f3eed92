"""What the words of a document say without it, under a rule that has one probability for each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deciban.families.dirichlet import ROUNDING, denominator, left_over, log_in_place, numerator
from deciban.families.linear import linear_scores
from deciban.families.multinomial import Multinomial
from deciban.families.protocol import Rule
from deciban.families.text.leaving import Leaving
from deciban.features.sparse import entries
from deciban.kernels.choice import compiled, or_unweighted
from deciban.statistics import Array

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
    from deciban.kernels.text.leaving import shifted_counts, words_left

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
    words_left(
        *(times, rows.indices, words.places, rows.indptr),
        *(leaving.codes.astype(np.int64), or_unweighted(leaving.members.weight)),
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
