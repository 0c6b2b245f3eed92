"""Rows that come in parts: sums of a stream, and parts that stay where they are, such as on the workers of a cluster.

A stream adds batches after the first rows have made the family's open choices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from deciban.families.abilities import RunningSums, Streams, ability
from deciban.families.protocol import Family, Rows, Rule
from deciban.statistics import Members
from deciban.statistics.members import collect_checked


# -- sums of a stream --------------------------------------------------------------------------------------------------
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


# -- parts that stay where they are ------------------------------------------------------------------------------------
class Passes(Protocol):
    """Parts of rows that stay where they are, such as on the workers of a cluster."""

    def kept(self, work: Callable[[Any], Any]) -> Passes:
        """Return the parts as `work` makes them of these; they stay where they are."""

    def total(self, work: Callable[[Any], tuple[Any, ...]]) -> tuple[Any, ...]:
        """Return the sums of `work(part)` over all parts; None adds nothing."""

    def each(self, work: Callable[[Any], Any]) -> list[Any]:
        """Return `work(part)` of all parts in order."""

    def names(self) -> list[str]:
        """Return the names of the parts, for messages."""


class LabelledPart(NamedTuple):
    """Encoded rows of one part, with their classes."""

    rows: Any  # what the family's `encode` returned; None if the part has no rows
    members: Members | None


@dataclass(frozen=True)
class BlockOfPart:
    """Takes the rows of one block from those of a product."""

    at: int  # position of the block

    def __call__(self, part: LabelledPart) -> LabelledPart:
        return part if part.rows is None else part._replace(rows=part.rows.parts[self.at])
