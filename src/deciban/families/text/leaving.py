"""Documents that are left out of the sums: what goes with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from deciban.families.dirichlet import left_over
from deciban.families.protocol import own_codes
from deciban.families.text.terms import weighed
from deciban.features.sparse import entries
from deciban.statistics import Array, Axis, Members
from deciban.statistics.axes import undeclared

if TYPE_CHECKING:
    from deciban.families.text.family import Text


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
class Leaving:
    """What a document takes with it when it goes: how much of each word, and whether anybody else has it."""

    text: Text
    counted: Any  # (n, V) CSR
    factors: Array | None  # (V,) the idf
    axis: Axis
    sums: Any  # with unk last, idf multiplied in
    members: Members

    @property
    def codes(self) -> Array:
        """(n,) the class of each document."""
        return own_codes(self.members)

    @property
    def totals(self) -> Array:
        """(V,) how much there is of each word."""
        return self.sums.counts.sum(axis=0)

    @property
    def prunable(self) -> Array:
        """(V,) whether a word goes when there is nothing left of it."""
        free = undeclared(self.axis)
        return np.roll(free, -1) if self.text.kind == "growing" else free

    @property
    def simple(self) -> bool:
        """Whether what goes leaves the document's other words as they are."""
        return not self.text.terms.unit and self.text.kind != "growing"

    def terms(self, counts: Any) -> Any:
        """Counts as the words count."""
        return weighed(self.text.terms.rows(counts, self.factors), self.factors)

    def rows(self) -> LeftOut:
        """The documents as models without them see them."""
        n, V = self.counted.shape
        weight, terms = self.members.row_weights(), self.terms(self.counted)
        row, word, _ = entries(terms)
        removed = terms.data * weight[row]
        lost = np.bincount(row, removed, n)
        gone = self.prunable[word] & (left_over(self.totals[word], removed) == 0)
        if not gone.any():
            return LeftOut(terms, removed, lost, sp.csr_array((n, V)), self.codes, weight)
        absent = sp.csr_array((np.ones(int(gone.sum())), (row[gone], word[gone])), (n, V))
        if self.text.kind == "learnt":
            starts = np.r_[0, np.cumsum(np.bincount(row[~gone], minlength=n))]
            kept = sp.csr_array((self.counted.data[~gone], word[~gone], starts), (n, V))
            return LeftOut(self.terms(kept), removed[~gone], lost, absent, self.codes, weight)
        place = np.where(gone, V - 1, word)  # unk is last
        kept = sp.coo_array((self.counted.data, (row, place)), (n, V)).tocsr()
        own = sp.coo_array((np.where(gone, 0.0, removed), (row, place)), (n, V)).tocsr()
        return LeftOut(self.terms(kept), own.data, lost, absent, self.codes, weight)
