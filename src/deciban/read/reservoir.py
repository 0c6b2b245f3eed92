"""A sample of the rows of a stream: uniform, bounded, and the same however the stream is cut into batches.

Every row draws a number from its position alone; the rows with the smallest are kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from deciban.kernels.choice import Array
from deciban.read.schema import TypedTable, joined
from deciban.read.tables import Table, stacked

MOST_ROWS = 20_000  # on whose leave-one-out scores calibration is fitted
SLACK = 1.2  # times as many are held, so that rows are thrown out many at a time


def draws(start: int, stop: int) -> Array:
    """What rows `start` to `stop` draw: 64 bits that look random, by a mix of the position (splitmix64).

    >>> draws(0, 3) % 1000
    array([535, 700, 679], dtype=uint64)
    """
    mixed = np.arange(start + 1, stop + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(31))


def chosen_rows(n: int, most: int = MOST_ROWS) -> Array:
    """Which of n rows are kept, in order: all of them where they are few.

    >>> chosen_rows(5, 3)
    array([1, 2, 4])
    """
    return np.arange(n) if n <= most else np.sort(np.argpartition(draws(0, n), most)[:most])


class Reservoir:
    """At most `most` rows with their labels and weights, kept while a stream goes by.

    >>> kept = Reservoir(3)
    >>> for batch in (np.arange(4.0), np.arange(4.0, 5.0)):
    ...     kept.add(Table.of(batch[:, None]), batch, None)
    >>> kept.rows()[1]
    array([1., 2., 4.])
    """

    def __init__(self, most: int = MOST_ROWS) -> None:
        self.most, self.seen = most, 0
        self._limit: Any = None  # no row that draws more can be among the kept ones
        self._held: list[tuple[Array, Table, Array, Array]] = []  # draws, rows, labels, weights

    def add(self, table: Table, labels: Any, weight: Any) -> None:
        """Let a batch go by; weights may be None for 1 each."""
        n = len(table)
        drawn, self.seen = draws(self.seen, self.seen + n), self.seen + n
        whole = (drawn, table, np.asarray(labels), np.ones(n) if weight is None else np.asarray(weight, dtype=float))
        self._held.append(whole if self._limit is None else _below(whole, self._limit))
        if sum(len(held[0]) for held in self._held) > SLACK * self.most:
            self._tighten()

    def rows(self) -> tuple[Table, Array, Array]:
        """What was kept: rows, labels and weights, in the order of the stream."""
        self._tighten()
        _, tables, labels, weights = zip(*self._held)
        whole = joined(tables) if isinstance(tables[0], TypedTable) else stacked(tables)
        return whole, np.concatenate(labels), np.concatenate(weights)

    def _tighten(self) -> None:
        """Keep no more rows than asked for."""
        every = np.concatenate([held[0] for held in self._held])
        if len(every) > self.most:
            self._limit = np.partition(every, self.most - 1)[self.most - 1]
            self._held = [_below(held, self._limit) for held in self._held]


def _below(held: tuple[Array, Table, Array, Array], limit: Any) -> tuple[Array, Table, Array, Array]:
    drawn, table, labels, weight = held
    kept = np.flatnonzero(drawn <= limit)
    return held if len(kept) == len(drawn) else (drawn[kept], table.take(kept), labels[kept], weight[kept])
