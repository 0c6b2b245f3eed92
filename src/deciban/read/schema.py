"""The schema of a table: the kind of each column, inferred from the first rows, and applied to every batch alike.

Kinds are yes/no, category, count, number, text and date; columns that are identifiers or constant are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from deciban.errors import Argument, DecibanError, InputError, MergeError, Remedy, shortlist
from deciban.read import arrow
from deciban.read.arrow import CategoryCodes, arrow_column, taken
from deciban.read.categories import Named, spelt
from deciban.read.columns import IGNORED, NAMES, NUMBERS, YEAR, Column, infer
from deciban.read.labels import LabelRanges, Labels, are_whole_numbers, label_values
from deciban.read.tables import HEAD, RowIndex, Table, ValueType

if TYPE_CHECKING:
    import pyarrow as pa

    Values: TypeAlias = NDArray[Any] | CategoryCodes | pa.ChunkedArray  # (n,) floats, codes and names, or texts

Array = NDArray[Any]


# -- typed tables ------------------------------------------------------------------------------------------------------
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
        columns: list[Any] = [self.data.values[j] for j in (range(self.shape[1]) if positions is None else positions)]
        if columns and all(isinstance(column, np.ndarray) for column in columns):
            return columns[0][:, None] if len(columns) == 1 else np.column_stack(columns)
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


# -- schema ------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Schema:
    """The columns of a table in order, without the label; and the label's name, if the table holds it.

    A schema is inferred once and then fixed. Its names are part of the file format.

    >>> import polars as pl
    >>> colours = ["red", "blue", None, "red"] * 10
    >>> frame = pl.DataFrame({"id": range(100, 140), "size": [1.5, 2.0] * 20, "colour": colours})
    >>> schema = Schema.infer(Table.of(frame))
    >>> print(schema)
    id: identifier (40 whole numbers from 100 to 139, none twice; none missing), ignored
    size: number (numbers from 1.5 to 2; none missing)
    colour: category (2 names: blue, red; 10 of 40 missing)
    >>> schema.apply(Table.of(frame[:3])).pick([1])
    Named(values=array([[ 1],
           [ 0],
           [-1]]), names=(('blue', 'red'),))
    """

    columns: tuple[Column, ...]
    label: str | None = None
    whole: bool = False  # labels are whole numbers
    ranges: LabelRanges | None = None  # the classes, where labels are numbers that are split into ranges

    @classmethod
    def infer(
        cls, table: Table, label: str | None = None, kinds: Mapping[str, str] | None = None, bins: int | None = None
    ) -> Schema:
        """The schema of a table's first rows; `kinds` are declared ones, by column; `bins` ranges make the classes."""
        declared = dict(kinds or {})
        names = [str(name) for name in table.columns]
        unknown = [name for name in [*declared, *([] if label is None else [label])] if name not in names]
        if unknown:
            raise InputError(
                f"the table has no column {unknown[0]!r}; it has {shortlist(names, 10)}.", columns=unknown[:1]
            )
        head = table if len(table) <= HEAD else table.take(slice(0, HEAD))
        with head.located():
            columns = tuple(
                infer(name, arrow_column(head, j), declared.get(name)) for j, name in enumerate(names) if name != label
            )
        whole = label is not None and are_whole_numbers(arrow_column(head, names.index(label)))
        schema = cls(columns, label, whole)
        if bins is not None and label is not None:
            schema = replace(schema, whole=False, ranges=LabelRanges.of(schema._label_numbers(head), bins))
        if not schema.features:
            ignored = "; ".join(map(str, columns)) or "the label alone"
            raise InputError(
                f"there is no column to learn from: {ignored}.",
                remedy=Remedy("Declare one: ", Argument("kinds", {"name": "category"}), "."),
            )
        return schema

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the table's columns, without the label."""
        return tuple(column.name for column in self.columns)

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the model's columns: without ignored ones, and with the parts of dates."""
        return tuple(self.kinds)

    @property
    def kinds(self) -> dict[str, str]:
        """Feature → kind; the year of a date is a number, its other parts are categories."""
        return {f: _kind_of_part(f) if c.kind == "date" else c.kind for c in self.columns for f in c.features}

    @property
    def ignored(self) -> tuple[Column, ...]:
        """Columns that are identifiers or constant."""
        return tuple(column for column in self.columns if column.kind in IGNORED)

    def __getitem__(self, name: str) -> Column:
        return {column.name: column for column in self.columns}[name]

    def apply(self, table: Table, bad: list[DecibanError] | None = None) -> TypedTable:
        """Typed columns. A cell that does not fit is an error; with `bad`, missing, and its error is added there."""
        if isinstance(table, TypedTable):
            return table
        place = {str(name): at for at, name in enumerate(table.columns)}
        if not table.framed and len(place) == len(self.columns):  # an array: by position
            place = {name: at for at, name in enumerate(self.names)}
        absent = [column.name for column in self.columns if column.features and column.name not in place]
        if absent:
            raise InputError(
                f"the table has no column {shortlist([repr(name) for name in absent])}; it has "
                f"{shortlist(list(place), 10)}.",
                columns=absent,
                remedy="Give the columns that the model was fitted on, empty where unknown.",
            )
        found: list[Values] = []
        with table.located():
            for column in self.columns:
                if column.features:
                    found += _typed(column, arrow_column(table, place[column.name]), bad)
        return TypedTable(TypedColumns(len(table), tuple(found)), self.features, True, table.origin)

    def labels(self, table: Table) -> Labels:
        """The labels of a table that holds them."""
        place = {str(name): at for at, name in enumerate(table.columns)}
        if self.label is None or self.label not in place:
            raise InputError(f"the table has no column {self.label!r} of labels; it has {shortlist(list(place), 10)}.")
        with table.located():
            column = arrow_column(table, place[self.label])
            found = label_values(column, self.label, self.whole)  # refuses missing ones
            return found if self.ranges is None else self.ranges.labels(self._label_numbers(table))

    def _label_numbers(self, table: Table) -> Array:
        """(n,) labels that are numbers."""
        name = str(self.label)
        column = Column(name, "number", "the label, which is split into ranges")
        values = arrow_column(table, [str(each) for each in table.columns].index(name))
        return _typed(column, values, None)[0]  # type: ignore[return-value]

    def select(self, features: Sequence[str]) -> Schema:
        """The schema of the columns that these features are made of."""
        kept = [
            replace(column, parts=tuple(part for part in column.parts if f"{column.name}.{part}" in features))
            for column in self.columns
            if any(feature in features for feature in column.features)
        ]
        return replace(self, columns=tuple(kept))

    def union(self, other: Schema) -> Schema:
        """The columns of both; those that both have must be of one kind."""
        if self.label != other.label and None not in (self.label, other.label):
            raise MergeError(f"the labels are called {self.label!r} and {other.label!r}.", remedy="Rename one of them.")
        theirs = {column.name: column for column in other.columns}
        ours = tuple(c.union(theirs[c.name]) if c.name in theirs else c for c in self.columns)
        new = tuple(c for c in other.columns if c.name not in set(self.names))
        if self.ranges != other.ranges:
            remedy = Remedy("Fit one of them like the other: ", Argument("like", python="a.blank().learn(…)"), ".")
            raise MergeError(f"the ranges of the label {self.label!r} differ.", remedy=remedy)
        return Schema((*ours, *new), self.label or other.label, self.whole and other.whole, self.ranges)

    def __str__(self) -> str:
        return "\n".join(map(str, self.columns))


def _kind_of_part(feature: str) -> str:
    return "number" if feature.endswith(f".{YEAR}") else "category"


def _typed(column: Column, values: pa.ChunkedArray, bad: list[DecibanError] | None) -> list[Values]:
    """The values of a column's features."""

    def refuse(row: int, value: str) -> None:
        error = column.refusal(value, row, f"but it is a {column.kind}: {column.reason}")
        if bad is None:
            raise error
        bad.append(error)

    if column.kind in NUMBERS:
        return [arrow.floats(values, column, refuse)]
    if column.kind in NAMES:
        return [arrow.category_codes(values, column.trim)]
    if column.kind == "text":
        return [arrow.texts(values)]
    when = arrow.timestamps(values, column, refuse)
    return [arrow.decimal_years(when) if part == YEAR else arrow.date_part(when, part) for part in column.parts]
