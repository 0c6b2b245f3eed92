"""A few rows as typed columns, in plain Python: what `Schema.apply` makes of a frame, in microseconds a row.

Arrow and narwhals take hundreds of microseconds for a frame of one row. Values that need Arrow, such as dates, numbers
written as texts, and names with spaces around them, are left to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isinf
from typing import TYPE_CHECKING, Any

import numpy as np

from deciban.read.arrow import name_of
from deciban.read.columns import NAMES, NUMBERS
from deciban.read.schema import Schema
from deciban.read.tables import MARKERS, Table
from deciban.read.typed import TypedColumns, TypedTable

if TYPE_CHECKING:
    from deciban.read.typed import Values

FEW_ROWS = 16  # from so many rows on, Arrow is faster
ABSENT = frozenset(MARKERS)
NUMBER_TYPES = (float, int, np.floating, np.integer)


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
            if (trim and value != value.strip()) or not (value.isascii() or _is_unicode(value)):
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
    if not all(value is None or (isinstance(value, str) and _is_unicode(value)) for value in values):
        return None
    import pyarrow as pa

    return pa.chunked_array([pa.array(["" if value is None else value for value in values], pa.string())])


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
    return True
