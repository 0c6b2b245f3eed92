"""Large tables of which few columns change: an older table that is kept, and columns that are new, gone or differ.

A lesson of one text changes sixty of 200,000 columns. Copying the others takes 10 to 40 ms with 20 classes, most of it
for new memory; storing the changes takes less than one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from deciban.statistics.axes import Array
from deciban.statistics.base import is_exact

LEAST_CELLS = 2**18  # numbers of a table; a smaller one is copied
COLUMNS_AT_A_TIME = 2**13  # copied in one step
MOST_CHANGED = 2**12  # columns; with more, the table is copied, and becomes the older table of the next changes
NONE = np.zeros(0, np.intp)


@dataclass(frozen=True, eq=False)
class OlderTable:
    """A table that is not changed any more, and its sums."""

    cells: Array  # (K, V)
    column_sums: Array  # (V,) sums over the classes
    row_sums: Array  # (K,) sums over the columns

    @classmethod
    def of(cls, cells: Array) -> OlderTable | None:
        """Return a table with its sums; None if a number or a sum was rounded: sums then depend on their order."""
        # not a product with ones: BLAS threads make a lesson slower while other processes are busy
        made = cls(cells, np.add.reduce(cells, axis=0), cells.sum(axis=1))
        exact = all(bool(is_exact(row).all()) for row in (*cells, made.column_sums, made.row_sums))
        return made if exact else None


class ChangedColumns:
    """A table (K, V): an older one, with new columns and other values in some.

    Mutable: it keeps the whole table once that is computed.

    >>> older = OlderTable.of(np.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> at, values = np.array([0, 1]), np.array([[9.0, 5.0], [9.0, 6.0]])
    >>> table = ChangedColumns(older, 3, new=at[1:], at=at, values=values)
    >>> table.take(np.array([2, 1])), table.column_sums(), table.row_sums(), table.cells()
    (array([[2., 5.],
           [4., 6.]]), array([18., 11.,  6.]), array([16., 19.]), array([[9., 5., 2.],
           [9., 6., 4.]]))
    """

    def __init__(
        self, older: OlderTable | None, width: int, new: Array, at: Array, values: Array, gone: Array = NONE
    ) -> None:
        """Take `new`, columns that the older table does not have, and `at`, the columns of the values (K, m), sorted.

        `gone` are columns of the older table that this one does not have, sorted. Without an older table, all other
        columns are zero.
        """
        self.older, self.width = older, width
        self.new, self.at, self.values, self.gone = new, at, values, gone
        self._older: OlderTable | None = None  # this table, once it was made

    @property
    def shape(self) -> tuple[int, int]:
        """Number of classes and of columns."""
        return len(self.values), self.width

    @property
    def made(self) -> OlderTable | None:
        """The whole table with its sums, if it was made."""
        return self._older

    @property
    def is_long(self) -> bool:
        """Whether the whole table should be made before there are too many columns."""
        return self._older is None and len(self.at) > MOST_CHANGED // 2

    def cells(self) -> Array:
        """Return the whole table."""
        made = self._older
        if made is None:
            for _ in self.steps():
                pass
            made = self._older
        return made.cells  # type: ignore[union-attr]

    def steps(self) -> Iterator[None]:
        """Make the whole table in steps of about a millisecond; it is kept at the end, as `made`."""
        if self._older is not None:
            return
        cells = np.zeros(self.shape) if self.older is None else np.empty(self.shape)
        if self.older is not None:
            ends = [*self.new.tolist(), self.width]
            for added, (first, end) in enumerate(zip([0, *(at + 1 for at in ends)], ends)):
                for start in range(first, end, COLUMNS_AT_A_TIME):
                    stop = min(start + COLUMNS_AT_A_TIME, end)
                    cells[:, start:stop] = self._of_older(start - added, stop - added)
                    yield
        cells[:, self.at] = self.values
        self._older = OlderTable(cells, self.column_sums(), self.row_sums())

    def take(self, at: Array) -> Array:
        """Return some columns, (K, n)."""
        if self._older is not None:
            return self._older.cells[:, at]
        found = np.zeros((len(self.values), len(at)))
        place = np.searchsorted(self.at, at)
        changed = np.append(self.at, -1)[place] == at
        found[:, changed] = self.values[:, place[changed]]
        if self.older is not None:
            found[:, ~changed] = self._before(at[~changed])
        return found

    def _gaps(self) -> Array:
        """Return for each new column the number of kept columns of the older table before it."""
        return self.new - np.arange(len(self.new))

    def _older_places(self, kept: Array) -> Array:
        """Return the columns of the older table, counted without those that are gone, as columns of the whole of it."""
        return np.asarray(kept + np.searchsorted(self.gone - np.arange(len(self.gone)), kept, side="right"))

    def _of_older(self, start: int, stop: int) -> Array:
        """Return a run of columns of the older table, counted without those that are gone."""
        first, last = self._older_places(np.array([start, stop - 1])).tolist()
        run = self.older.cells[:, first : last + 1]  # type: ignore[union-attr]
        begin, end = np.searchsorted(self.gone, [first, last])
        return run if begin == end else np.delete(run, self.gone[begin:end] - first, axis=1)

    def _before(self, at: Array) -> Array:
        """Return columns of the older table, none of them new."""
        places = self._older_places(at - np.searchsorted(self.new, at))
        return self.older.cells[:, places]  # type: ignore[union-attr]

    def column_sums(self) -> Array:
        """Return the sums over the classes, (V,)."""
        if self.older is None:
            before = np.zeros(self.width)
        else:
            kept = np.delete(self.older.column_sums, self.gone) if len(self.gone) else self.older.column_sums
            before = np.insert(kept, self._gaps(), 0.0)
        before[self.at] = np.ones(len(self.values)) @ self.values
        return before

    def row_sums(self) -> Array:
        """Return the sums over the columns, (K,)."""
        sums: Array = self.values.sum(axis=1)
        if self.older is None:
            return sums
        replaced = self._before(np.setdiff1d(self.at, self.new, assume_unique=True))
        gone = self.older.cells[:, self.gone]
        return np.asarray(self.older.row_sums + (sums - replaced.sum(axis=1) - gone.sum(axis=1)))

    def widened(self, added: Array) -> ChangedColumns:
        """Return the table with columns of zeros added, so that these have the positions `added`, sorted."""
        before = added - np.arange(len(added))  # columns of this table before each
        at, new = (old + np.searchsorted(before, old, side="right") for old in (self.at, self.new))
        every = np.concatenate([at, added])
        order = np.argsort(every)
        values = np.concatenate([self.values, np.zeros((len(self.values), len(added)))], axis=1)
        new = np.sort(np.concatenate([new, added]))
        return ChangedColumns(self.older, self.width + len(added), new, every[order], values[:, order], self.gone)

    def narrowed(self, removed: Array) -> ChangedColumns:
        """Return the table without some columns, sorted."""
        of_older = np.setdiff1d(removed, self.new, assume_unique=True)
        places = self._older_places(of_older - np.searchsorted(self.new, of_older))
        stays = ~np.isin(self.at, removed)
        at, new = self.at[stays], np.setdiff1d(self.new, removed, assume_unique=True)
        at, new = (old - np.searchsorted(removed, old) for old in (at, new))
        gone = np.union1d(self.gone, places)
        return ChangedColumns(self.older, self.width - len(removed), new, at, self.values[:, stays], gone)

    def plus(self, other: ChangedColumns, sign: int = 1) -> ChangedColumns | None:
        """Return the sum with a table that has no older one; None if that has many columns, or sums would be rounded.

        With many columns in both together, this table is copied, and becomes the older one of the sum. With sign −1
        the other table is subtracted.
        """
        if other.older is not None or len(other.at) > MOST_CHANGED or not is_exact(other.values).all():
            return None
        at = np.union1d(self.at, other.at)
        if len(at) > MOST_CHANGED:
            self.cells()
            whole = changed_columns(self)  # its sums are known, and are not checked again
            return None if whole is None else whole.plus(other, sign)
        values = self.take(at) + sign * other.take(at)
        return ChangedColumns(self.older, self.width, self.new, at, values, self.gone)

    def unlike(self, other: ChangedColumns) -> tuple[Array, Array] | None:
        """Return columns of this table and of another, such that both tables are equal without them.

        Some of them may be equal all the same. None if the two have no older table in common.
        """
        for own in (self, changed_columns(self)):
            for their in (other, changed_columns(other)):
                if own is not None and their is not None and own.older is not None and own.older is their.older:
                    places = np.union1d(own._unlike_older(), their._unlike_older())
                    return own._columns_of(places), their._columns_of(places)
        return None

    def _unlike_older(self) -> Array:
        """Return the columns of the older table that are gone or have other values here, sorted."""
        changed = np.setdiff1d(self.at, self.new, assume_unique=True)
        return np.union1d(self.gone, self._older_places(changed - np.searchsorted(self.new, changed)))

    def _columns_of(self, places: Array) -> Array:
        """Return where columns of the older table are here, without those that are gone, and the new columns."""
        kept = np.setdiff1d(places, self.gone, assume_unique=True)
        kept = kept - np.searchsorted(self.gone, kept)
        return np.union1d(kept + np.searchsorted(self._gaps(), kept, side="right"), self.new)

    def __reduce__(self) -> Any:
        return np.asarray, (self.cells(),)


def changed_columns(table: Array | ChangedColumns) -> ChangedColumns | None:
    """Return a table without changes of its own; None if it is small, or if its sums were rounded."""
    if isinstance(table, ChangedColumns):
        if table.made is None:
            return table
        older: OlderTable | None = table.made
    else:
        large = table.size >= LEAST_CELLS and table.dtype == np.float64
        older = OlderTable.of(table) if large else None
    if older is None:
        return None
    unchanged = ChangedColumns(older, older.cells.shape[1], NONE, NONE, np.zeros((len(older.cells), 0)))
    unchanged._older = older
    return unchanged
