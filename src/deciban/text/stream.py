"""Sums of text in the making: one table of words, and counts that grow in place, from the first document to the last.

Sums of a batch are as large as the vocabulary, and to add them is to unite two vocabularies: for a stream of short
batches most of the work, and of the memory. So nothing is put in order before the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from deciban.errors import InputError
from deciban.families.accumulators import SumAccumulator as Running
from deciban.families.protocol import Rule
from deciban.read.tables import HEAD
from deciban.statistics import Array, Members
from deciban.text.counting import ClassCounter
from deciban.text.documents import Documents
from deciban.text.rows import TextRows

if TYPE_CHECKING:
    from deciban.text.family import Text
    from deciban.text.stats import TextStats


class RunningText:
    """Documents are counted, and gone.

    >>> from deciban import Text
    >>> sums = RunningText(Text(transform="counts", pseudo_count=1.0), TextRows.of(["to be"]), Members.one_group(1))
    >>> sums.add(TextRows.of(["or not to be"]), Members.one_group(1))
    >>> sums.total().labels["word"].names, sums.total().counts
    (('be', 'not', 'or', 'to'), array([[2., 1., 1., 2.]]))
    """

    known = None  # new words are taken in as they come

    def __init__(self, text: Text, X: TextRows, members: Members) -> None:
        self.family, self.classes = text, members.classes
        self.place: dict[Any, int] = {}  # of each class in the counter, as they come
        self.tokens = np.zeros(0)
        weighted = members.weight is not None
        steps = once if text.terms.amount == "binary" else text.terms.steps
        self.counter = ClassCounter(1, text.tokens, text.frozen, weighted, steps=steps)
        X.samples.clear()  # which were counted ahead; of a stream, other rows are asked for again
        self.add(X, members)

    def choose(self, X: TextRows, members: Members, rule: Rule) -> None:
        """Let the family freeze what it left open; the sums are made only where it looks at them."""
        by_sums = self.family.pseudo_count in ("evidence", "loo")
        self.family = self.family.choose(self.total() if by_sums else None, (X, members), rule)  # type: ignore[arg-type]

    def add(self, X: TextRows, members: Members) -> None:
        """Count a batch."""
        X, at = X.there()
        members = members if at is None else members.take(at)
        self.classes = self.classes.union(members.classes)
        places = [self.place.setdefault(name, len(self.place)) for name in members.classes.names]
        codes = np.array(places, np.int64)[members.codes]
        lengths = self.counter.add(X.documents, codes, members.weight)
        weighed = lengths if members.weight is None else lengths * members.weight
        before = np.append(self.tokens, np.zeros(len(self.place) - len(self.tokens)))
        self.tokens = before + np.bincount(codes, weighed, len(self.place))

    def total(self) -> TextStats:
        """The sums: words in order, classes in theirs."""
        found = self.counter.result()
        if not np.isfinite(found.counts.sum()):
            raise InputError("the weights are so large that their sums overflow. Rescale them.")
        places = [self.place.get(name, len(self.place)) for name in self.classes.names]
        counts, rows, tokens = (_at(values, places) for values in (found.counts, found.rows, self.tokens))
        stats = self.family.sums(self.classes, found.vocabulary, counts, rows, tokens)
        return stats if self.family.frozen is None else stats.pruned()


class RunningTerms(Running):
    """Where a term depends on its document's others, rows are counted first: many at a time, for adding takes long."""

    def __init__(self, text: Text, X: TextRows, members: Members, columns: Sequence[Any]) -> None:
        super().__init__(text, X, members, columns)
        self.waiting: list[tuple[TextRows, Members]] = []

    known = None

    def add(self, X: TextRows, members: Members) -> None:
        """Keep a batch until there are many rows."""
        self.waiting.append((X, members))
        if sum(len(members) for _, members in self.waiting) >= HEAD:
            self._sum()

    def total(self) -> TextStats:
        """The sums."""
        if self.waiting:
            self._sum()
        return self.stats

    def _sum(self) -> None:
        rows, members = zip(*self.waiting)
        self.waiting = []
        present = None
        if any(part.present is not None for part in rows):
            present = np.concatenate([_all(len(part)) if part.present is None else part.present for part in rows])
        super().add(TextRows(Documents.joined([part.documents for part in rows]), present), Members.joined(members))


def once(most: int) -> Array:
    """(most + 1,) what the t-th occurrence adds, where a word counts once a document."""
    return np.eye(1, most + 1, 1)[0]


def _at(values: Array, places: Sequence[int]) -> Array:
    """Rows of values at places, zero where there is none; without a copy where it is all of them in order."""
    if list(places) == list(range(len(values))):
        return values
    return np.concatenate([values, np.zeros((1, *values.shape[1:]))])[np.minimum(places, len(values))]


def _all(n: int) -> Array:
    return np.ones(n, bool)
