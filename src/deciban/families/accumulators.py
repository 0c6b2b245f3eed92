"""Sums of a stream: batches are added after the first rows have made the family's open choices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deciban.families.abilities import RunningSums, Streams, ability
from deciban.families.protocol import Family, Rows, Rule
from deciban.statistics import Members
from deciban.statistics.members import collect_checked


class SumAccumulator:
    """A family and the sums of all batches so far; every batch makes new sums.

    >>> import numpy as np
    >>> from deciban import Poisson
    >>> sums = SumAccumulator(Poisson(), np.array([[1.0], [2.0]]), Members.one_group(2), ["calls"])
    >>> sums.add(np.array([[4.0]]), Members.one_group(1))
    >>> sums.total().total
    array([[7.]])
    """

    def __init__(self, family: Family[Any], X: Rows, members: Members, columns: Sequence[str]) -> None:
        self.family, self.columns = family, columns
        self.stats = collect_checked(family, X, members, columns)

    @property
    def known(self) -> Any:
        """Statistics that hold the names which later rows are encoded by."""
        return self.stats

    def choose(self, X: Rows, members: Members, rule: Rule) -> None:
        """Let the family make its open choices from the first rows and their sums."""
        self.family = self.family.choose(self.stats, (X, members), rule)

    def add(self, X: Rows, members: Members) -> None:
        """Add the sums of a batch."""
        self.stats = self.stats + collect_checked(self.family, X, members, self.columns)

    def total(self) -> Any:
        """Return the statistics of all batches."""
        return self.stats


def accumulator(family: Family[Any], X: Rows, members: Members, columns: Sequence[str]) -> RunningSums:
    """Start the sums of a stream with its first rows, in place where the family has sums that grow in place."""
    streams = ability(family, Streams)
    if streams is None:
        return SumAccumulator(family, X, members, columns)
    return streams.accumulator(X, members, columns)
