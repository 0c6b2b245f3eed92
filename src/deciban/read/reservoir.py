"""Reservoir sampling of the rows of a stream: uniform, bounded, and independent of the batches.

Every row has a pseudo-random number that depends on its position alone; the rows with the smallest numbers are kept.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from deciban.read.codes import Labels
from deciban.read.tables import Array, Table, stacked

MOST_ROWS = 20_000  # calibration is fitted on the leave-one-out scores of so many rows
RUN = 2**15  # rows whose numbers are computed at a time: they stay in the cache
MARGIN = 1.25  # times as many rows as wanted are expected below the bound
SLACK = 1.2  # times as many rows are held before the surplus is dropped


def draws(start: int, stop: int) -> Array:
    """Pseudo-random 64-bit numbers of rows `start` to `stop`: splitmix64 of the position.

    >>> draws(0, 3) % 1000
    array([535, 700, 679], dtype=uint64)
    """
    mixed = np.arange(start + 1, stop + 1, dtype=np.uint64)
    mixed *= np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed ^= mixed >> np.uint64(shift)
        mixed *= np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    return mixed


def chosen_rows(n: int, most: int = MOST_ROWS) -> Array:
    """Positions of the rows that are kept of n, in order; all of them if n is at most `most`.

    >>> chosen_rows(5, 3)
    array([1, 2, 4])
    """
    if n <= most:
        return np.arange(n)
    # Numbers are uniform, so that nearly always enough of them lie below a bound; only these are compared.
    kept, drawn = _rows_below(n, np.uint64(min(MARGIN * most / n, 0.999) * 2.0**64))
    if len(kept) < most:
        kept, drawn = _rows_below(n, np.uint64(2**64 - 1))
    return np.sort(kept[np.argpartition(drawn, most - 1)[:most]])


def even_rows(n: int, most: int) -> Array:
    """Positions of `most` of n rows, in order: one at random of each of as many parts of equal length; or all n.

    Few of many rows are chosen without a number for each row, which takes longer than the sums of a few columns.

    >>> even_rows(9, 3)
    array([1, 3, 7])
    """
    if n <= most:
        return np.arange(n)
    edges = np.arange(most + 1) * n // most
    return edges[:-1] + (draws(0, most) % np.diff(edges).astype(np.uint64)).astype(np.intp)


def _rows_below(n: int, bound: np.uint64) -> tuple[Array, Array]:
    """Positions of the rows of n whose numbers are at most a bound, and these numbers."""
    kept, drawn = [], []
    for start in range(0, n, RUN):
        more = draws(start, min(start + RUN, n))
        below = np.flatnonzero(more <= bound)
        kept.append(below + start)
        drawn.append(more[below])
    return np.concatenate(kept), np.concatenate(drawn)


class Reservoir:
    """A sample of at most `most` rows of a stream, with their labels and weights.

    >>> kept = Reservoir(3)
    >>> for batch in (np.arange(4.0), np.arange(4.0, 5.0)):
    ...     kept.add(Table.of(batch[:, None]), batch, None)
    >>> kept.rows()[1]
    array([1., 2., 4.])
    """

    def __init__(self, most: int = MOST_ROWS) -> None:
        self.most, self.seen = most, 0
        self._limit: np.uint64 | None = None  # rows with a larger number are not in the sample
        self._held: list[tuple[Array, Table, Array, Array]] = []  # numbers, rows, labels, weights

    def add(self, table: Table, labels: ArrayLike | Labels, weight: ArrayLike | None) -> None:
        """Sample the next batch; a weight of None is 1 each."""
        n = len(table)
        drawn, self.seen = draws(self.seen, self.seen + n), self.seen + n
        whole = (drawn, table, np.asarray(labels), np.ones(n) if weight is None else np.asarray(weight, dtype=float))
        self._held.append(whole if self._limit is None else _below(whole, self._limit))
        if sum(len(held[0]) for held in self._held) > SLACK * self.most:
            self._drop_surplus()

    def rows(self) -> tuple[Table, Array, Array]:
        """The sample: rows, labels and weights, in the order of the stream."""
        self._drop_surplus()
        _, tables, labels, weights = zip(*self._held)
        return stacked(tables), np.concatenate(labels), np.concatenate(weights)

    def _drop_surplus(self) -> None:
        """Keep the `most` rows with the smallest numbers."""
        every = np.concatenate([held[0] for held in self._held])
        if len(every) > self.most:
            self._limit = np.partition(every, self.most - 1)[self.most - 1]
            self._held = [_below(held, self._limit) for held in self._held]


def _below(held: tuple[Array, Table, Array, Array], limit: np.uint64) -> tuple[Array, Table, Array, Array]:
    drawn, table, labels, weight = held
    kept = np.flatnonzero(drawn <= limit)
    return held if len(kept) == len(drawn) else (drawn[kept], table.take(kept), labels[kept], weight[kept])
