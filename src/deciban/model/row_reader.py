"""Reader of single rows: turns dicts, lists of numbers or texts, also from JSON, into a table that a model reads."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from deciban.errors import HERE, InputError, column_error, shortlist
from deciban.families.abilities import HasCandidates, ability
from deciban.families.product import Product
from deciban.model.model import Model, Reader
from deciban.read.columns import NUMBERS
from deciban.read.mail import FIELDS, fields_of
from deciban.read.schema import typed_records
from deciban.read.tables import Table

Row: TypeAlias = (
    Mapping[str, Any] | Sequence[Any] | NDArray[Any] | str
)  # an object by column, a list of numbers, or a text
Form: TypeAlias = Literal["text", "mail", "numbers", "table"]


@dataclass(frozen=True, eq=False)
class RowReader:
    """Makes tables of single rows.

    A row is a dict with a value for each column; a text, if the model reads texts; the source of a message, if its
    columns are those of mail; or a sequence of numbers, if the model was fitted on an array.
    """

    reader: Reader
    texts: bool  # a model of texts without a schema: a row is a text
    columns: tuple[str, ...] = field(init=False)  # columns of the rows, without those that the model ignores
    form: Form = field(init=False)  # what a row is
    known: frozenset[Any] = field(init=False)  # columns that a row may have

    def __post_init__(self) -> None:
        schema = self.reader.schema
        if schema is None:
            columns = tuple(str(name) for name in self.reader.columns)
        else:
            columns = tuple(column.name for column in schema.columns if column.features)
        label = () if schema is None else (schema.label,)
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "form", self._form(columns))
        object.__setattr__(self, "known", frozenset((*columns, *map(str, self.reader.given), *label)))

    def _form(self, columns: tuple[str, ...]) -> Form:
        schema = self.reader.schema
        if self.texts:
            return "text"
        if schema is None:
            return "table" if isinstance(self.reader.columns[0], str) else "numbers"
        if set(columns) <= set(FIELDS) and "body" in columns:
            return "mail"
        return "text" if len(columns) == 1 and schema[columns[0]].kind == "text" else "table"

    def table(self, rows: Sequence[Row], *, strict: bool = True) -> Table:
        """Return rows as a table; with `strict`, a column that the model does not have is an error."""
        schema = self.reader.schema
        if self.form == "numbers":
            return Table(self._numbers(rows), range(len(self.columns)), False)
        if self.texts:
            return Table.of([self._text(row, at) for at, row in enumerate(rows)])
        held = [self._object(row, at, strict) for at, row in enumerate(rows)]
        columns = [[row.get(name) for row in held] for name in self.columns]
        if schema is None:
            return Table(_objects(columns, len(held)), self.columns, True)
        typed = typed_records(columns, schema)
        if typed is not None:
            return typed
        each = zip(self.columns, columns)
        written = {name: _arrow(name, values, schema[name].kind in NUMBERS) for name, values in each}
        return schema.apply(Table.of(pa.table(written)))

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
            raise InputError(HERE, f" is {kind_of(row)}, but the model reads texts.", row=at, remedy="Give a text.")
        return checked_text("text", row, at)

    def _object(self, row: Row, at: int, strict: bool) -> Mapping[str, Any]:
        form = self.form
        if isinstance(row, str):
            if form == "text":
                return {self.columns[0]: row}
            if form == "mail":
                return fields_of(row.encode("utf-8", "surrogateescape"))
        if not isinstance(row, Mapping):
            raise InputError(
                HERE,
                f" is {kind_of(row)}, but the model reads columns.",
                row=at,
                remedy='Give an object such as {"column": value}.',
            )
        names = self.columns
        if form == "text" and set(row) == {"text"} and "text" not in names:
            return {names[0]: row["text"]}
        unknown = [name for name in row if name not in self.known] if strict else []
        if unknown:
            first = str(unknown[0])[:80]
            near = difflib.get_close_matches(first, names, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise InputError(
                HERE,
                f" has a column {first!r}, which the model does not have. It reads {shortlist(names, 10)}.",
                row=at,
                columns=[first],
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
                    f" is {kind_of(row)}, but the model reads {width} numbers.",
                    row=at,
                    remedy=f"Give a list of {width} numbers.",
                )
            plain = isinstance(row, np.ndarray) and row.dtype.kind in "fiub"
            made[at] = row if plain else [_number(name, value, at) for name, value in enumerate(row)]
        return made


def reader_of(model: Model) -> RowReader:
    """Return the reader of single rows for a model."""
    reader, family = model.reader, model.family
    family = getattr(family, "family", family)  # a released family holds the one it was made of
    alone = reader.schema is None and not isinstance(family, Product)
    return RowReader(reader, alone and ability(family, HasCandidates) is not None)


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
    if value is None or (isinstance(value, float) and value != value):
        return float("nan")
    if isinstance(value, np.generic):
        value = value.item()
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
        return checked_text(name, value, row)
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, int | float):
        number = _number(name, value, row)
        return str(int(number)) if number == int(number) else str(value)
    remedy = "Give a text, a number, true, false or null."
    raise column_error(InputError, name, f"holds {kind_of(value)}", remedy, row)


def _objects(columns: Sequence[Sequence[Any]], n: int) -> Any:
    """Return values as an array of objects, shape (n, D); None where missing."""
    made = np.empty((n, len(columns)), dtype=object)
    for j, values in enumerate(columns):
        made[:, j] = values
    return made


def checked_text(name: str, value: str, row: int) -> str:
    """Return a text; an error if it holds half of a surrogate pair."""
    try:
        value.encode()
    except UnicodeEncodeError:
        remedy = "Remove the character."
        raise column_error(InputError, name, "holds half of a surrogate pair", remedy, row) from None
    return value


def kind_of(value: Any) -> str:
    """Return the type of a value from JSON, as text for messages."""
    names: dict[type, str] = {
        dict: "an object",
        list: "a list",
        str: "a text",
        bool: "true or false",
        type(None): "null",
    }
    return names.get(type(value), "a number")
