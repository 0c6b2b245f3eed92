"""Typed tables: columns as floats, category codes with their names, or texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from deciban.read.categories import Named, spelt
from deciban.read.tables import RowIndex, Table, ValueType

if TYPE_CHECKING:
    import pyarrow as pa

    # (n,) floats, codes and names, or texts
    Values: TypeAlias = NDArray[Any] | tuple[NDArray[Any], tuple[str, ...]] | pa.ChunkedArray

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class TypedColumns:
    """The values of d columns with n rows each."""

    rows: int
    values: tuple[Values, ...]  # (d,)
    shape: tuple[int, int] = field(init=False)  # n, d

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", (self.rows, len(self.values)))


@dataclass(frozen=True, eq=False)
class TypedTable(Table):
    """A table whose columns have been read by a schema: floats, category codes with their names, or texts.

    Its columns are the features of the model. Families encode it without examining the values again.
    """

    data: TypedColumns

    def take(self, rows: RowIndex) -> TypedTable:
        """Some of the rows: a slice, a mask or positions."""
        at = np.arange(len(self))[rows]
        held = TypedColumns(len(at), tuple(_taken(column, at) for column in self.data.values))
        return TypedTable(held, self.columns, self.named, self.origin_of(rows))

    def kind(self, position: int) -> ValueType:
        """Numbers, names or texts."""
        column = self.data.values[position]
        return "number" if isinstance(column, np.ndarray) else "category" if isinstance(column, tuple) else "text"

    def pick(self, positions: Sequence[int] | None = None) -> Any:
        """(n, d) floats where all columns are numbers, `Named` where all are categories, else objects."""
        if positions is not None and len(positions) == 1:  # the usual case of a column with a family of its own
            column = self.data.values[positions[0]]
            if isinstance(column, np.ndarray):
                return column[:, None]
            if isinstance(column, tuple):
                return Named(column[0][:, None], (column[1],))
        columns: list[Any] = [self.data.values[j] for j in (range(self.shape[1]) if positions is None else positions)]
        if columns and all(isinstance(column, np.ndarray) for column in columns):
            return np.column_stack(columns)
        if columns and all(isinstance(column, tuple) for column in columns):
            return Named(np.stack([codes for codes, _ in columns], axis=1), tuple(names for _, names in columns))
        return np.column_stack([_objects(column) for column in columns])

    def column(self, position: int) -> Any:
        """One column: (n,) floats, (n,) names as objects, or texts as an Arrow array."""
        column = self.data.values[position]
        return _objects(column) if isinstance(column, tuple) else column

    @staticmethod
    def _stacked(parts: Sequence[TypedColumns]) -> TypedColumns:
        columns = tuple(map(_joined, zip(*(part.values for part in parts))))
        return TypedColumns(sum(part.rows for part in parts), columns)


def _joined(parts: Sequence[Any]) -> Values:
    import pyarrow as pa

    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    if not isinstance(parts[0], tuple):
        return pa.chunked_array([chunk for part in parts for chunk in getattr(part, "chunks", [part])])
    names = tuple(sorted({name for _, known in parts for name in known}))
    place = {name: at for at, name in enumerate(names)}
    moved = [np.array([*(place[name] for name in known), -1], dtype=np.intp)[codes] for codes, known in parts]
    return np.concatenate(moved), names


def _objects(column: Values) -> Array:
    if isinstance(column, tuple):
        return spelt(*column)
    found = np.empty(len(column), dtype=object)
    found[:] = column.tolist() if isinstance(column, np.ndarray) else column.to_pylist()
    return found


def _taken(column: Values, rows: Array) -> Values:
    if isinstance(column, np.ndarray):
        return column[rows]
    return (column[0][rows], column[1]) if isinstance(column, tuple) else taken(column, rows)


def taken(column: pa.ChunkedArray | pa.Array, rows: Array) -> pa.ChunkedArray | pa.Array:
    """Some rows of a column; its chunks are not concatenated if the rows are in order.

    >>> import pyarrow as pa
    >>> taken(pa.chunked_array([["a", "b"], ["c", "d"]]), np.array([1, 2])).to_pylist()
    ['b', 'c']
    """
    import pyarrow as pa

    rows = np.asarray(rows, np.int64)
    if not isinstance(column, pa.ChunkedArray) or column.num_chunks < 2 or (rows[1:] < rows[:-1]).any():
        return column.take(_integers(rows))
    starts = np.cumsum([0, *map(len, column.chunks)])
    cuts = np.searchsorted(rows, starts)
    if cuts[0] > 0 or cuts[-1] < len(rows):
        return column.take(_integers(rows))  # raises Arrow's own error for rows out of range
    parts = zip(column.chunks, starts, cuts, cuts[1:])
    some = [chunk.take(_integers(rows[a:b] - start)) for chunk, start, a, b in parts if a < b]
    return pa.chunked_array(some, column.type)


def _integers(values: Array) -> pa.Array:
    import pyarrow as pa

    return pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(np.ascontiguousarray(values))])
