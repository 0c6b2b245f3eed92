"""What the columns of a table are: found from the first rows, frozen, and applied to every batch alike.

Types are yes/no, category, count, number, text and date; identifiers and constants are ignored, and said so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from deciban.errors import DomainError, InputError, MergeError, shortlist
from deciban.read import kinds, values
from deciban.read.arrow import arrow_column
from deciban.read.column import IGNORED, NAMES, NUMBERS, Column
from deciban.read.labels import Labels, label_values, whole_labels
from deciban.read.tables import HEAD, Table
from deciban.read.typed import Columns, TypedTable


@dataclass(frozen=True)
class Schema:
    """Columns in order, and the label's name where the table holds it.

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

    @classmethod
    def infer(
        cls, table: Table, label: str | None = None, kinds_: Mapping[str, str] | None = None, only: bool = False
    ) -> Schema:
        """From the first rows; `kinds_` are those declared by hand, column by column, and `only` those are read."""
        declared = dict(kinds_ or {})
        names = [str(name) for name in table.columns]
        unknown = [name for name in [*declared, *([] if label is None else [label])] if name not in names]
        if unknown:
            raise InputError(f"the table has no column {unknown[0]!r}; it has {shortlist(names, 10)}.")
        head = table if len(table) <= HEAD else table.take(slice(0, HEAD))
        columns = tuple(
            kinds.infer(name, arrow_column(head, j), declared.get(name))
            for j, name in enumerate(names)
            if name != label
        )
        whole = label is not None and whole_labels(arrow_column(head, names.index(label)))
        schema = cls(columns, label, whole)
        if not schema.features:
            said = "; ".join(map(str, columns)) or "the label alone"
            raise InputError(f"there is no column to learn from: {said}. Declare one: kinds={{'name': 'category'}}.")
        return schema

    @property
    def names(self) -> tuple[str, ...]:
        """The columns as given, without the label."""
        return tuple(column.name for column in self.columns)

    @property
    def features(self) -> tuple[str, ...]:
        """The columns of the model: without what is ignored, dates as their parts."""
        return tuple(feature for column in self.columns for feature in column.features)

    @property
    def kinds(self) -> dict[str, str]:
        """Feature → kind; a part of a date is a category."""
        return {f: "category" if c.kind == "date" else c.kind for c in self.columns for f in c.features}

    @property
    def ignored(self) -> tuple[Column, ...]:
        """Columns that nothing is learnt from."""
        return tuple(column for column in self.columns if column.kind in IGNORED)

    def __getitem__(self, name: str) -> Column:
        return {column.name: column for column in self.columns}[name]

    def apply(self, table: Table, bad: list[tuple[int, str]] | None = None) -> TypedTable:
        """Typed columns. A cell that does not fit is an error; or missing, its (row, reason) added to `bad`."""
        if isinstance(table, TypedTable):
            return table
        place = {str(name): at for at, name in enumerate(table.columns)}
        if not table.framed and len(place) == len(self.columns):  # an array: by position
            place = {name: at for at, name in enumerate(self.names)}
        absent = [column.name for column in self.columns if column.features and column.name not in place]
        if absent:
            raise InputError(
                f"the table has no column {shortlist([repr(name) for name in absent])}; it has "
                f"{shortlist(list(place), 10)}. Give the columns that the model was fitted on, empty where unknown."
            )
        found: list[Any] = []
        for column in self.columns:
            if column.features:
                found += _typed(column, arrow_column(table, place[column.name]), bad)
        return TypedTable(Columns(len(table), tuple(found)), self.features, True)

    def labels(self, table: Table) -> Labels:
        """The labels that a table holds."""
        place = {str(name): at for at, name in enumerate(table.columns)}
        if self.label is None or self.label not in place:
            raise InputError(f"the table has no column {self.label!r} of labels; it has {shortlist(list(place), 10)}.")
        return label_values(arrow_column(table, place[self.label]), self.label, self.whole)

    def select(self, features: Sequence[str]) -> Schema:
        """Only what these features need."""
        kept = [
            replace(column, parts=tuple(part for part in column.parts if f"{column.name}.{part}" in features))
            for column in self.columns
            if any(feature in features for feature in column.features)
        ]
        return replace(self, columns=tuple(kept))

    def union(self, other: Schema) -> Schema:
        """The columns of both, each of one kind."""
        if self.label != other.label and None not in (self.label, other.label):
            raise MergeError(f"the labels are called {self.label!r} and {other.label!r}. Rename one of them.")
        theirs = {column.name: column for column in other.columns}
        ours = tuple(c.union(theirs[c.name]) if c.name in theirs else c for c in self.columns)
        new = tuple(c for c in other.columns if c.name not in set(self.names))
        return Schema((*ours, *new), self.label or other.label, self.whole and other.whole)

    def __str__(self) -> str:
        return "\n".join(map(str, self.columns))


def _typed(column: Column, array: Any, bad: list[tuple[int, str]] | None) -> Sequence[Any]:
    """A column's features."""

    def refuse(row: int, value: str) -> None:
        said = (
            f"column {column.name!r} holds {value[:60]!r} (row {row}), but it is a {column.kind}: {column.reason}. "
            f"Mend the value, leave it empty, or declare the column: kinds={{{column.name!r}: 'category'}}."
        )
        if bad is None:
            raise DomainError(said)
        bad.append((row, said))

    if column.kind in NUMBERS:
        return [values.numbers(array, column, refuse)]
    if column.kind in NAMES:
        return [values.names(array, column)]
    if column.kind == "text":
        return [values.text(array, column)]
    when = values.moments(array, column, refuse)
    return [values.part(when, part) for part in column.parts]
