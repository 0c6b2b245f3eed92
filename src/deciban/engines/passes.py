"""Passes of an iterative fit over rows that stay on the workers: parameters go out, sums come back.

A pass is `total(work)`: every part returns the sums of its rows under the present parameters, which `work` holds, and
the tree of the plan adds them. The loop itself (EM, topics) is that of one machine and runs in this process.

Parts are computed once by `kept`, and stay where they were computed. If a worker dies, its parts are computed again
from the rows. Work must not change a part, so that a pass which runs twice gives the same sums.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import deciban
from deciban.engines.fragments import Task, located
from deciban.engines.sums import Adding, Engine, check_version

Sums = tuple[Any, ...]  # each is added to those of other parts; None adds nothing


@dataclass(frozen=True, eq=False)
class Passes:
    """Rows in parts that stay where they are."""

    engine: Engine
    items: Sequence[tuple[Any, Task]]

    def kept(self, work: Callable[[Any], Any]) -> Passes:
        """Return the parts as `work` makes them of these."""
        return Passes(self.engine, self.engine.keep(_OnPart(work), self.items))

    def total(self, work: Callable[[Any], Sums]) -> Sums:
        """Return the sums of `work(part)` over all parts."""
        return next(self.engine.total(_OnPart(work, listed=True), self.items, _Elementwise()))

    def each(self, work: Callable[[Any], Any]) -> list[Any]:
        """Return `work(part)` of all parts in order; for values that are small."""
        return list(self.engine.each(_OnPart(work), self.items))

    def names(self) -> list[str]:
        """Return what messages call the parts."""
        return [task.name for _, task in self.items]


@dataclass(frozen=True, eq=False)
class _OnPart:
    work: Callable[[Any], Any]
    listed: bool = False
    version: str = deciban.__version__

    def __call__(self, data: Any, task: Task) -> Any:
        check_version(self.version, task.name)
        with located(data, task.name):
            found = self.work(data)
        return [found] if self.listed else found


@dataclass(frozen=True)
class _Elementwise(Adding):
    """Adds tuples of sums; None adds nothing."""

    def add(self, values: Sequence[Any]) -> Any:
        """Add neighbours first."""
        while len(values) > 1:
            pairs = [values[at : at + 2] for at in range(0, len(values), 2)]
            values = [tuple(map(_sum, *pair)) if len(pair) > 1 else pair[0] for pair in pairs]
        return values[0]


def _sum(one: Any, two: Any) -> Any:
    return one if two is None else two if one is None else one + two
