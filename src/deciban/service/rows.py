"""Rows as JSON has them, as a table that a model reads; and labels as JSON has them, as the model's classes."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from deciban.errors import HERE, InputError, UnknownLabelError, column_error, shortlist
from deciban.model.model import Reader
from deciban.read.columns import NUMBERS
from deciban.read.mail import FIELDS, fields_of
from deciban.read.schema import Schema
from deciban.read.tables import Table

Row: TypeAlias = Mapping[str, Any] | Sequence[Any] | str  # an object by column, a list of numbers, or a text
Label: TypeAlias = str | int


@dataclass(frozen=True, eq=False)
class RowReader:
    """Makes tables of rows as they come from JSON.

    A row is an object with a value for each column; a text, if the model reads texts; the source of a message, if its
    columns are those of mail; or a list of numbers, if the model was fitted on an array.
    """

    reader: Reader
    texts: bool  # a model of texts without a schema: a row is a text

    @property
    def columns(self) -> list[str]:
        """Names of the columns that rows are given with, without those that the model ignores."""
        schema = self.reader.schema
        if schema is None:
            return [str(name) for name in self.reader.columns]
        return [column.name for column in schema.columns if column.features]

    @property
    def form(self) -> str:
        """What a row is: "text", "mail", "numbers" or "table"."""
        schema = self.reader.schema
        if self.texts:
            return "text"
        if schema is None:
            return "table" if isinstance(self.reader.columns[0], str) else "numbers"
        wanted = self.columns
        if set(wanted) <= set(FIELDS) and "body" in wanted:
            return "mail"
        return "text" if len(wanted) == 1 and schema[wanted[0]].kind == "text" else "table"

    def table(self, rows: Sequence[Row], *, strict: bool = True) -> Table:
        """Return rows as a table; with `strict`, a column that the model does not have is an error."""
        form, schema = self.form, self.reader.schema
        if form == "numbers":
            return Table(self._numbers(rows), range(len(self.reader.columns)), False)
        if self.texts:
            return Table.of([self._text(row, at) for at, row in enumerate(rows)])
        held = [self._object(row, at, form, strict) for at, row in enumerate(rows)]
        if schema is None:
            columns = {name: _floats(name, [row.get(name) for row in held]) for name in self.columns}
            return Table.of(pa.table(columns))
        columns = {
            name: _arrow(name, [row.get(name) for row in held], schema[name].kind in NUMBERS) for name in self.columns
        }
        return schema.apply(Table.of(pa.table(columns)))

    def kept(self, row: Row) -> Row:
        """Return a row in the form in which it is kept: a text, or its values of the model's columns in their order."""
        form = self.form
        if isinstance(row, Mapping) and form == "text" and len(row) == 1 and isinstance(next(iter(row.values())), str):
            return next(iter(row.values()))
        if not isinstance(row, Mapping):
            return row
        return {name: row[name] for name in self.columns if row.get(name) is not None}

    def _text(self, row: Row, at: int) -> str:
        if isinstance(row, Mapping) and set(row) == {"text"}:
            row = row["text"]
        if not isinstance(row, str):
            raise InputError(HERE, f" is {_kind(row)}, but the model reads texts.", row=at, remedy="Give a text.")
        return _checked_text("text", row, at)

    def _object(self, row: Row, at: int, form: str, strict: bool) -> Mapping[str, Any]:
        if isinstance(row, str):
            if form == "text":
                return {self.columns[0]: row}
            if form == "mail":
                return fields_of(row.encode("utf-8", "surrogateescape"))
        if not isinstance(row, Mapping):
            raise InputError(
                HERE,
                f" is {_kind(row)}, but the model reads columns.",
                row=at,
                remedy='Give an object such as {"column": value}.',
            )
        names = self.columns
        if form == "text" and set(row) == {"text"} and "text" not in names:
            return {names[0]: row["text"]}
        known = {*names, *self.reader.given, *([] if self.reader.schema is None else [self.reader.schema.label])}
        unknown = [name for name in row if name not in known]
        if unknown and strict:
            near = difflib.get_close_matches(unknown[0][:80], names, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise InputError(
                HERE,
                f" has a column {unknown[0][:80]!r}, which the model does not have. It reads {shortlist(names, 10)}.",
                row=at,
                columns=[unknown[0][:80]],
                remedy=f"Rename the column, or leave it out.{hint}",
            )
        if not any(row.get(name) is not None for name in names):
            raise InputError(
                HERE,
                f" holds no value of the model's columns, which are {shortlist(names, 10)}.",
                row=at,
                remedy="Give at least one value.",
            )
        return row

    def _numbers(self, rows: Sequence[Row]) -> Any:
        width = len(self.reader.columns)
        made = np.empty((len(rows), width))
        for at, row in enumerate(rows):
            if isinstance(row, str | Mapping) or len(row) != width:
                raise InputError(
                    HERE,
                    f" is {_kind(row)}, but the model reads {width} numbers.",
                    row=at,
                    remedy=f"Give a list of {width} numbers.",
                )
            made[at] = [_number(name, value, at) for name, value in enumerate(row)]
        return made


def reader_of(clf: Any) -> RowReader:
    """Return the reader of rows for a classifier."""
    from deciban.families.abilities import HasCandidates, ability
    from deciban.families.product import Product

    reader: Reader = clf.model_.reader
    family = clf.model_.family
    family = getattr(family, "family", family)  # a released family holds the one it was made of
    alone = reader.schema is None and not isinstance(family, Product)
    return RowReader(reader, alone and ability(family, HasCandidates) is not None)


# -- labels ------------------------------------------------------------------------------------------------------------
def class_label(given: Any, classes: Sequence[Any], schema: Schema | None, *, new: bool) -> Label:
    """Return the class of the model that a label from JSON names; with `new`, it may be one that there is not yet.

    >>> class_label("1", [0, 1], None, new=False)
    1
    """
    if isinstance(given, bool) or not isinstance(given, str | int) or (isinstance(given, str) and not given.strip()):
        raise UnknownLabelError(
            f"{_kind(given)} is not the name of a class.", remedy="Give a class as a text or as a whole number."
        )
    if isinstance(given, str) and len(given) > MOST_LABEL:
        raise UnknownLabelError(
            f"the name of a class has {len(given)} characters; at most {MOST_LABEL} are allowed.",
            remedy="Give a shorter name.",
        )
    if isinstance(given, int) and abs(given) >= 2**63:
        raise UnknownLabelError("the number of a class is too large.", remedy="Give a smaller number, or a text.")
    _checked_text("label", str(given), 0)
    for name in classes:
        if str(name) == str(given):
            return name
    if not new or (schema is not None and schema.ranges is not None):
        raise UnknownLabelError(
            f"the model has no class {str(given)!r}; it has {shortlist([repr(str(name)) for name in classes], 10)}.",
            label=given,
            remedy="Correct the spelling, or teach the class first.",
        )
    if classes and all(isinstance(name, int) for name in classes):
        if str(given).lstrip("-").isdigit():
            return int(given)
        raise UnknownLabelError(
            f"the class {str(given)!r} is a text, but the classes of this model are whole numbers.",
            label=given,
            remedy="Give a whole number.",
        )
    return str(given)


MOST_LABEL = 200  # characters in the name of a class


# -- values ------------------------------------------------------------------------------------------------------------
def _arrow(name: str, values: list[Any], numbers: bool) -> pa.Array:
    """Return the values of a column: floats where all are numbers and the column holds numbers, else texts."""
    if numbers and all(value is None or type(value) in (int, float) for value in values):
        return _floats(name, values)
    return pa.array([None if value is None else _written(name, value, at) for at, value in enumerate(values)], TEXT)


TEXT = pa.string()


def _floats(name: str, values: list[Any]) -> pa.Array:
    return pa.array([_number(name, value, at) for at, value in enumerate(values)], pa.float64(), from_pandas=True)


def _number(name: str | int, value: Any, row: int) -> float:
    if value is None:
        return float("nan")
    if isinstance(value, str):
        try:
            value = float(value) if "_" not in value else None
        except ValueError:
            value = None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise column_error(InputError, name, "does not hold a number", "Give a number, or null.", row)
    try:
        number = float(value)
    except OverflowError:
        number = float("inf")
    if not np.isfinite(number):
        raise column_error(InputError, name, "holds a number that is too large", "Give a finite number.", row)
    return number


def _written(name: str, value: Any, row: int) -> str:
    if isinstance(value, str):
        return _checked_text(name, value, row)
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, int | float):
        number = _number(name, value, row)
        return str(int(number)) if number == int(number) else str(value)
    remedy = "Give a text, a number, true, false or null."
    raise column_error(InputError, name, f"holds {_kind(value)}", remedy, row)


def _checked_text(name: str, value: str, row: int) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        remedy = "Remove the character."
        raise column_error(InputError, name, "holds half of a surrogate pair", remedy, row) from None
    return value


def _kind(value: Any) -> str:
    names: dict[type, str] = {
        dict: "an object",
        list: "a list",
        str: "a text",
        bool: "true or false",
        type(None): "null",
    }
    return names.get(type(value), "a number")
