"""A model in the making: choices are made on the first rows of a stream, and batches added as they come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from deciban.families.protocol import Rule
from deciban.model.candidates import chosen
from deciban.model.model import ModelStats
from deciban.statistics import Members


class Summing:
    """The sums of a stream so far, the first rows' to begin with."""

    def __init__(self, family: Any, X: Any, members: Members, columns: Sequence[Any], rule: Rule) -> None:
        family = chosen(family, X, members, rule)
        self.sums = family.begin(X, members, columns)
        self.sums.choose(X, members, rule)
        self.rows = _rows(members)

    @property
    def family(self) -> Any:
        """With its choices frozen."""
        return self.sums.family

    @property
    def known(self) -> Any:
        """Statistics whose names a batch is encoded by."""
        return self.sums.known

    def add(self, X: Any, members: Members) -> None:
        """Add a batch."""
        self.sums.add(X, members)
        self.rows = self.rows + _rows(members)

    def total(self) -> ModelStats:
        """The statistics of everything that was added."""
        return replace(self.rows, family=self.sums.total())


def _rows(members: Members) -> ModelStats:
    """The rows of each class, without the family's sums."""
    return ModelStats({"class": members.classes}, members.weights(), {})
