"""Documents that are left out of the sums: what goes with them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from deciban.families.dirichlet import ROUNDING, left_over
from deciban.families.protocol import own_codes
from deciban.families.text.sums import ByWords, TextStats
from deciban.families.text.terms import weighed
from deciban.features.sparse import entries
from deciban.statistics import Array, Axis, Members
from deciban.statistics.axes import undeclared

if TYPE_CHECKING:
    from deciban.families.text.family import Text


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
        free = undeclared(self.axis)
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
        from deciban.kernels.text.leaving import number_words

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
