"""Rows in parts that stay where they are, such as on the workers of a cluster: what iterating families use of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from deciban.statistics import Members


class Passes(Protocol):
    """Parts of rows that stay where they are, such as on the workers of a cluster."""

    def kept(self, work: Callable[[Any], Any]) -> Passes:
        """Return the parts as `work` makes them of these; they stay where they are."""

    def total(self, work: Callable[[Any], tuple[Any, ...]]) -> tuple[Any, ...]:
        """Return the sums of `work(part)` over all parts; None adds nothing."""

    def each(self, work: Callable[[Any], Any]) -> list[Any]:
        """Return `work(part)` of all parts in order."""

    def names(self) -> list[str]:
        """Return what messages call the parts."""


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
