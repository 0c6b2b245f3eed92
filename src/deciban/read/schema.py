"""The schema of a table: the kind of each column, inferred from the first rows, and applied to every batch alike.

Kinds are yes/no, category, count, number, text and date; columns that are identifiers or constant are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import isinf
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from deciban.errors import Argument, DecibanError, DomainError, InputError, MergeError, Remedy, column_error, shortlist
from deciban.read import arrow
from deciban.read.arrow import arrow_column, name_of
from deciban.read.codes import Labels
from deciban.read.columns import IGNORED, NAMES, NUMBERS, YEAR, Column, infer
from deciban.read.source import SKIP_BAD
from deciban.read.tables import HEAD, MARKERS, Table, TypedColumns, TypedTable

if TYPE_CHECKING:
    from deciban.read.tables import Values

MOST_SHOWN = 20  # columns that an error names


Array = NDArray[Any]
FEW_ROWS = 16  # with more rows, Arrow is faster
ABSENT = frozenset(MARKERS)
NUMBER_TYPES = (float, int, np.floating, np.integer)


# -- labels ------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class LabelRanges:
    """Classes made of a label that is a number: ranges that hold about equally many of the first rows.

    >>> LabelRanges((10.0, 20.0)).names
    ('10 or less', 'over 10 to 20', 'over 20')
    """

    edges: tuple[float, ...]  # (K − 1,) upper ends of all ranges but the last, in order

    @classmethod
    def of(cls, values: Array, bins: int) -> LabelRanges:
        """So many ranges, fewer if values repeat; edges have at most four significant digits where these differ."""
        edges = np.quantile(values[~np.isnan(values)], np.arange(1, bins) / bins)
        short = np.array([float(f"{edge:.4g}") for edge in edges])
        found = np.unique(short if len(np.unique(short)) == len(np.unique(edges)) else edges)
        found = found[(found < np.nanmax(values)) & (found >= np.nanmin(values))]
        return cls(tuple(found.tolist()))

    @property
    def names(self) -> tuple[str, ...]:
        """The classes, in order."""
        texts = [f"{edge:.15g}" for edge in self.edges]
        between = [f"over {low} to {high}" for low, high in pairwise(texts)]
        return (f"{texts[0]} or less", *between, f"over {texts[-1]}") if texts else ("all",)

    def labels(self, values: Array) -> Labels:
        """The classes of numbers, none of which is NaN."""
        return Labels(self.names, np.searchsorted(self.edges, values))[:]


def are_whole_numbers(column: pa.ChunkedArray) -> bool:
    """Whether all labels of a column are whole numbers, written as such."""
    array = arrow.one_array(column)
    if pa.types.is_integer(array.type):
        return True
    if not arrow.is_text(array.type):
        return False
    seen = pc.unique(array.drop_null())
    return len(seen) > 0 and bool(pc.all(pc.match_substring_regex(seen, r"^(0|-?[1-9]\d{0,17})$")).as_py())


def label_values(column: pa.ChunkedArray, name: str, whole: bool) -> Labels:
    """Labels of a column, as integers if they are `whole` numbers; a missing one is an error that names its row."""
    codes, names = arrow.category_codes(column, trim=True)
    missing = np.flatnonzero(codes < 0)
    if len(missing):
        remedy = Remedy("Drop these rows, or skip them (", SKIP_BAD, ").")
        more = len(missing) - 1
        why = f", and in {more:,} {'row' if more == 1 else 'rows'} more." if more else "."
        raise column_error(InputError, name, "of labels is missing", remedy, int(missing[0]), why)
    if not whole:
        return Labels(names, codes)
    try:
        numbers = [int(label) for label in names]
    except ValueError:
        wrong = next(label for label in names if not label.lstrip("-").isdigit())
        row = int(np.flatnonzero(codes == names.index(wrong))[0])
        what, why = f"holds the label {wrong[:60]!r}", ", but all labels before it are whole numbers."
        correct = "Correct it, or write all labels as text."
        raise column_error(DomainError, name, what, correct, row, why, wrong) from None
    order = np.argsort(numbers)
    place = np.empty(len(order), dtype=np.intp)
    place[order] = np.arange(len(order))
    return Labels(tuple(numbers[i] for i in order), place[codes])


def labelled_rows(table: Table, name: str) -> Array:
    """Positions of the rows of a table that have a label."""
    at = [str(column) for column in table.columns].index(name)
    codes, _ = arrow.category_codes(arrow.arrow_column(table, at), trim=True)
    return np.flatnonzero(codes >= 0)


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
            shown = [f"{column!s:.200}" for column in columns[:MOST_SHOWN]]
            more = [f"and {len(columns) - MOST_SHOWN:,} more"] if len(columns) > MOST_SHOWN else []
            ignored = "; ".join([*shown, *more]) or "the label alone"
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


# -- a few rows --------------------------------------------------------------------------------------------------------
# What `Schema.apply` makes of a frame, in plain Python and microseconds a row: Arrow and narwhals take hundreds of
# microseconds for a frame of one row. Values that need Arrow, such as dates, numbers written as texts, and names with
# spaces around them, are left to it.
def typed_table(table: Table, schema: Schema) -> TypedTable:
    """Typed columns of a table, a frame of a few rows in plain Python."""
    columns = _columns(table, [column.name for column in schema.columns if column.features])
    found = None if columns is None else typed_records(columns, schema)
    return schema.apply(table) if found is None else found


def _columns(table: Table, names: Sequence[str]) -> list[list[Any]] | None:
    """The values of named columns of a frame of a few rows, column by column; None for other tables."""
    if not table.framed or not 0 < len(table) <= FEW_ROWS or isinstance(table, TypedTable) or table.origin is not None:
        return None
    place = {str(name): at for at, name in enumerate(table.columns)}
    if not all(name in place for name in names):
        return None
    native = table.data.to_native()
    rows = native.to_numpy(dtype=object) if hasattr(native, "iloc") else table.data.rows()
    columns = list(zip(*rows))
    return [list(columns[place[name]]) for name in names]


def typed_records(columns: Sequence[Sequence[Any]], schema: Schema) -> TypedTable | None:
    """The typed table of the values of each column that the schema uses; None where Arrow is needed.

    >>> from deciban.read.columns import Column
    >>> colours = Schema((Column("age", "number", ""), Column("colour", "category", "")))
    >>> typed_records([[3, None], ["red", "NA"]], colours).data.values
    (array([ 3., nan]), (array([ 0, -1]), ('red',)))
    """
    found: list[Values] = []
    for column, values in zip((column for column in schema.columns if column.features), columns):
        typed: Values | None = None
        if column.kind in NUMBERS:
            typed = _floats(values)
        elif column.kind in NAMES:
            typed = _codes(values, column.trim)
        elif column.kind == "text":
            typed = _texts(values)
        if typed is None:
            return None
        found.append(typed)
    return TypedTable(TypedColumns(len(columns[0]), tuple(found)), schema.features, True)


def _floats(values: Sequence[Any]) -> Values | None:
    if set(map(type, values)) == {float}:
        known = np.array(values)
        return None if np.isinf(known).any() else known
    numbers = []
    for value in values:
        if value is None:
            numbers.append(np.nan)
        elif isinstance(value, NUMBER_TYPES) and not isinstance(value, bool):
            try:
                numbers.append(float(value))
            except OverflowError:  # an integer of more than 300 digits
                return None
        else:
            return None
        if isinf(numbers[-1]):
            return None
    return np.array(numbers)


def _codes(values: Sequence[Any], trim: bool) -> Values | None:
    kinds = set(map(type, values)) - {type(None)}
    if len(kinds) > 1:  # Arrow has one type for all values of a column, or refuses it
        return None
    names: dict[Any, str | None] = {None: None}  # of each different value
    for value in values if kinds - {str} else set(values):
        if isinstance(value, str):
            if (trim and value != value.strip()) or not (value.isascii() or is_unicode(value)):
                return None
            names[value] = None if value in ABSENT else value
        elif value is None or (isinstance(value, (bool, int, float)) and not isinf(value)):
            names[value] = name_of(value)
        else:
            return None
    known = sorted({name for name in names.values() if name is not None})
    place: dict[str | None, int] = {name: at for at, name in enumerate(known)} | {None: -1}
    places = {value: place[name] for value, name in names.items()}
    return np.array([places[value] for value in values], dtype=np.intp), tuple(known)


def _texts(values: Sequence[Any]) -> Values | None:
    if not all(value is None or (isinstance(value, str) and is_unicode(value)) for value in values):
        return None
    import pyarrow as pa

    return pa.chunked_array([pa.array(["" if value is None else value for value in values], pa.string())])


def is_unicode(text: str) -> bool:
    """Whether a text can be encoded."""
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
    return True
