"""Sums of a stream of documents: one table of words and counts that grow in place, from the first batch to the last.

The sums of a batch are as large as the vocabulary, and to add them is to unite two vocabularies. For a stream of short
batches that would be most of the work and of the memory, so words are sorted once, at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from deciban.errors import InputError
from deciban.families.protocol import Rule, SumAccumulator
from deciban.kernels.parallel import get_threads
from deciban.read.tables import HEAD
from deciban.statistics import Array, Members
from deciban.text.counting import ClassCounter, TextRows
from deciban.text.stats import TextStats, text_stats

if TYPE_CHECKING:
    from deciban.text.family import Text


class CountAccumulator:
    """Counts documents as they come and keeps none of them; for terms that are summed while documents are read.

    >>> from deciban import Text
    >>> text = Text(transform="counts", pseudo_count=1.0)
    >>> sums = CountAccumulator(text, TextRows.of(["to be"]), Members.one_group(1))
    >>> sums.add(TextRows.of(["or not to be"]), Members.one_group(1))
    >>> sums.total().labels["word"].names, sums.total().counts
    (('be', 'not', 'or', 'to'), array([[2., 1., 1., 2.]]))
    """

    known = None  # new words are learnt until the stream ends

    def __init__(self, text: Text, X: TextRows, members: Members) -> None:
        self.family, self.classes = text, members.classes
        self.place: dict[Any, int] = {}  # the position of each class in the counter, in the order of arrival
        self.tokens = np.zeros(0)
        weighted = members.weight is not None
        self.counter = ClassCounter(1, text.tokens, text.fixed_vocabulary, weighted, steps=text.terms.steps)
        self.first: TextStats | None = None  # sums of the first rows, if these were counted in several threads
        if get_threads() > 1 and not weighted and text.fixed_vocabulary is None:
            self.first = text.collect(X, members)
        X.counts.clear()  # the rows of a stream are not read again
        if self.first is None:
            self.add(X, members)

    def choose(self, X: TextRows, members: Members, rule: Rule) -> None:
        """Let the family make its open choices; it does not look at the sums."""
        self.family = self.family.choose(None, (X, members), rule)  # type: ignore[arg-type]

    def add(self, X: TextRows, members: Members) -> None:
        """Count a batch."""
        X, members = X.with_members(members)
        self.classes = self.classes.union(members.classes)
        places = [self.place.setdefault(name, len(self.place)) for name in members.classes.names]
        codes = np.array(places, np.int64)[members.codes]
        lengths = self.counter.add(X.documents, codes, members.weight)
        weighed = lengths if members.weight is None else lengths * members.weight
        before = np.append(self.tokens, np.zeros(len(self.place) - len(self.tokens)))
        self.tokens = before + np.bincount(codes, weighed, len(self.place))

    def total(self) -> TextStats:
        """Return the sums: words sorted, classes in the order of their axis."""
        if self.first is not None and not self.place:
            return self.first
        found = self.counter.result()
        if not np.isfinite(found.counts.sum()):
            raise InputError("the weights are so large that their sums overflow. Rescale them.")
        places = [self.place.get(name, len(self.place)) for name in self.classes.names]
        counts, rows, tokens = (_rows_at(values, places) for values in (found.counts, found.rows, self.tokens))
        stats = text_stats(self.family, self.classes, found.vocabulary, counts, rows, tokens)
        if self.first is not None:
            return self.first + stats
        return stats if self.family.fixed_vocabulary is None else stats.pruned()


class TermAccumulator(SumAccumulator):
    """Collects many documents at a time; for terms that depend on the other words of their document."""

    known = None  # new words are learnt until the stream ends

    def __init__(self, text: Text, X: TextRows, members: Members, columns: Sequence[Any]) -> None:
        super().__init__(text, X, members, columns)
        self.waiting: list[tuple[TextRows, Members]] = []

    def add(self, X: TextRows, members: Members) -> None:
        """Keep a batch until there are many rows: to add sums takes long."""
        self.waiting.append((X, members))
        if sum(len(members) for _, members in self.waiting) >= HEAD:
            self._sum()

    def total(self) -> TextStats:
        """Return the sums."""
        if self.waiting:
            self._sum()
        return self.stats

    def _sum(self) -> None:
        rows, members = zip(*self.waiting)
        self.waiting = []
        super().add(TextRows.joined(rows), Members.joined(members))


def _rows_at(values: Array, places: Sequence[int]) -> Array:
    """Return the rows of values at places, zero where there is none; not copied where all are wanted in order."""
    if list(places) == list(range(len(values))):
        return values
    return np.concatenate([values, np.zeros((1, *values.shape[1:]))])[np.minimum(places, len(values))]
