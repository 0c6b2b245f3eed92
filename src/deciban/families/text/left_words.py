"""What the words of a document say without it, under a rule that has one probability for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import xlogy

from deciban.families.dirichlet import ROUNDING, denominator, left_over, log_in_place, numerator
from deciban.families.linear import linear_scores
from deciban.families.multinomial import Multinomial
from deciban.families.protocol import Rule
from deciban.families.text.leaving import Leaving
from deciban.features.sparse import entries
from deciban.kernels.choice import compiled, or_unweighted
from deciban.statistics import Array


@dataclass(frozen=True, eq=False)
class Words:
    """What the words of n documents say without them, before it is divided by the whole."""

    scores: Array  # (n, K)  Σ x log of the word's share of the whole
    length: Array  # (n,)  Σ x of the words that are left
    lost: Array  # (n,)  what the own class loses in all
    gone: Array  # (n,)  words that are gone


def plain_words(leaving: Leaving, alpha: Array, rule: Rule) -> Words:
    """Whatever goes."""
    counts, left = leaving.sums.counts, leaving.rows()
    row, word, x = entries(left.rows)
    n = len(left.codes)
    logs = log_in_place(numerator(np.ascontiguousarray(counts.T), alpha[:, None], rule) + 0.0)
    scores = linear_scores(left.rows, logs, np.zeros(logs.shape[1]))
    own = left_over(counts[left.codes[row], word], left.removed)
    scores[np.arange(n), left.codes] = np.bincount(row, x * log_in_place(numerator(own, alpha[word], rule)), n)
    return Words(scores, np.bincount(row, x, n), left.lost, np.diff(left.gone.indptr))


def fused_words(leaving: Leaving, alpha: Array, rule: Rule) -> Words:
    """The same in one pass, where gone words are dropped and the others stay as they are."""
    from deciban.kernels.text.leaving import words_left

    rows, counts = leaving.terms(leaving.counted), leaving.sums.counts
    totals, prunable, indices = leaving.totals, leaving.prunable, rows.indices
    used = np.flatnonzero(np.bincount(indices, minlength=len(alpha)))
    if 2 * len(used) < len(alpha):  # a small table of the words that occur is soon made, and stays in the cache
        place = np.zeros(len(alpha), indices.dtype)
        place[used] = np.arange(len(used))
        indices, alpha, totals, prunable = place[indices], alpha[used], totals[used], prunable[used]
        counts = counts[:, used]
    counts = np.ascontiguousarray(counts.T)
    n, K = len(leaving.codes), counts.shape[1]
    logs = log_in_place(numerator(counts, alpha[:, None], rule) + 0.0)
    shift = {"ml": np.zeros(len(alpha)), "map": alpha - 1.0}.get(rule, np.ascontiguousarray(alpha))
    room = np.diff(rows.indptr).max(initial=0) + 1
    words = Words(np.empty((n, K)), np.empty(n), np.empty(n), np.empty(n, np.int64))
    words_left(
        *(rows.data, indices, rows.indptr),
        *(leaving.codes.astype(np.int64), or_unweighted(leaving.members.weight)),
        *(counts, logs, totals, prunable, shift, ROUNDING),
        *(np.zeros(room, indices.dtype), np.empty(room), np.zeros(K)),
        *(words.scores, words.length, words.lost, words.gone),
    )
    return words


def multinomial(family: Multinomial, sums: Any, leaving: Leaving, rule: Rule) -> Array:
    """(n, K) log densities."""
    alpha, alpha0 = family.alpha(sums)
    fused = leaving.simple and compiled(leaving.counted.nnz * len(sums.rows))
    words, codes = (fused_words if fused else plain_words)(leaving, alpha, rule), leaving.codes
    own, gone = (np.arange(len(codes)), codes), words.gone[:, None]
    whole = np.broadcast_to(sums.counts.sum(axis=1), words.scores.shape).copy()
    whole[own] = left_over(whole[own], words.lost)
    # unk is never gone, and the others have one pseudo-count
    whole = denominator(whole, alpha0 - gone * alpha[0], len(alpha) - gone, rule)
    with np.errstate(invalid="ignore"):
        scores = words.scores - xlogy(words.length[:, None], np.where(whole > 0, whole, 1.0))
    return np.where(whole > 0, scores, -np.inf)
