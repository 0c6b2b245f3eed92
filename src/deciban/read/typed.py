"""A table whose columns have been read by a schema."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deciban.read.arrow import taken
from deciban.read.tables import Kind, Table

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Named:
    """An (n, d) array of names, held as codes; NumPy sees objects, with None for missing.

    >>> Named(np.array([[1], [-1]]), (("red", "white"),))[:, 0]
    array(['white', None], dtype=object)
    """

    values: Array  # (n, d) of int; −1 is missing
    names: tuple[tuple[str, ...], ...]  # of each column, sorted

    @property
    def shape(self) -> tuple[int, int]:
        return self.values.shape

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(object)

    def __len__(self) -> int:
        return len(self.values)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        columns = [np.array([*names, None], dtype=object)[codes] for codes, names in zip(self.values.T, self.names)]
        return np.column_stack(columns).astype(dtype or object)

    def __getitem__(self, at: Any) -> Any:
        return np.asarray(self)[at] if isinstance(at, tuple) else Named(self.values[at], self.names)

    def astype(self, dtype: Any) -> Array:
        """As an array."""
        return np.asarray(self).astype(dtype)


@dataclass(frozen=True, eq=False)
class Columns:
    """N rows of columns: floats, (codes, names) of categories, or Arrow texts."""

    rows: int
    values: tuple[Any, ...]

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows, len(self.values)

    def __len__(self) -> int:
        return self.rows


@dataclass(frozen=True, eq=False)
class TypedTable(Table):
    """Columns as a schema reads them; families take them without another look."""

    data: Columns

    def take(self, rows: Any) -> TypedTable:
        """Some of the rows: a slice, a mask or positions."""
        at = np.arange(len(self))[rows]
        held = Columns(len(at), tuple(_taken(column, at) for column in self.data.values))
        return TypedTable(held, self.columns, self.named)

    def kind(self, position: int) -> Kind:
        """Numbers, names or texts."""
        column = self.data.values[position]
        return "number" if isinstance(column, np.ndarray) else "category" if isinstance(column, tuple) else "text"

    def pick(self, positions: Sequence[int] | None = None) -> Any:
        """Floats where all are numbers, names held as codes where all are names, else objects."""
        columns = [self.data.values[j] for j in (range(self.shape[1]) if positions is None else positions)]
        if columns and all(isinstance(column, np.ndarray) for column in columns):
            return columns[0][:, None] if len(columns) == 1 else np.column_stack(columns)
        if columns and all(isinstance(column, tuple) for column in columns):
            return Named(np.stack([codes for codes, _ in columns], axis=1), tuple(names for _, names in columns))
        return np.column_stack([_objects(column) for column in columns])

    def column(self, position: int) -> Any:
        """One column: an array, or texts of Arrow."""
        column = self.data.values[position]
        return _objects(column) if isinstance(column, tuple) else column


def joined(tables: Sequence[TypedTable]) -> TypedTable:
    """The rows of several tables, one below the other."""
    if len(tables) == 1:
        return tables[0]
    columns = tuple(_joined(parts) for parts in zip(*(table.data.values for table in tables)))
    return TypedTable(Columns(sum(map(len, tables)), columns), tables[0].columns, tables[0].named)


def _joined(parts: Sequence[Any]) -> Any:
    import pyarrow as pa

    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    if not isinstance(parts[0], tuple):
        return pa.chunked_array([chunk for part in parts for chunk in getattr(part, "chunks", [part])])
    names = tuple(sorted({name for _, called in parts for name in called}))
    place = {name: at for at, name in enumerate(names)}
    moved = [np.array([*(place[name] for name in called), -1], dtype=np.intp)[codes] for codes, called in parts]
    return np.concatenate(moved), names


def _objects(column: Any) -> Array:
    if isinstance(column, tuple):
        return np.array([*column[1], None], dtype=object)[column[0]]
    found = np.empty(len(column), dtype=object)
    found[:] = column.tolist() if isinstance(column, np.ndarray) else column.to_pylist()
    return found


def _taken(column: Any, rows: Array) -> Any:
    if isinstance(column, np.ndarray):
        return column[rows]
    return (column[0][rows], column[1]) if isinstance(column, tuple) else taken(column, rows)
