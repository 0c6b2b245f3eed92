"""What one column of a table is taken to be, and why."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from deciban.errors import Argument, HyperparameterError, InputError, MergeError, Remedy
from deciban.read.arrow import whole_numbers
from deciban.read.tables import MARKERS

if TYPE_CHECKING:
    import pyarrow as pa

Kind = Literal["yes/no", "category", "count", "number", "text", "date", "identifier", "constant"]
KINDS: tuple[str, ...] = get_args(Kind)
NUMBERS = ("count", "number")
NAMES = ("yes/no", "category")
IGNORED = ("identifier", "constant")
PARTS = ("month", "weekday", "hour")  # of a date or time: what comes round again


@dataclass(frozen=True)
class Column:
    """A column's kind is frozen: later rows are read by it.

    >>> print(Column("age", "count", "whole numbers from 17 to 90", 0, 48842))
    age: count (whole numbers from 17 to 90; none missing)
    """

    name: str
    kind: Kind
    reason: str
    missing: int = 0  # of the rows looked at
    rows: int = 0  # looked at
    trim: bool = False  # spaces around values are not part of them
    thousands: bool = False  # 1,234 is a number
    format: str = ""  # of dates that are written out
    parts: tuple[str, ...] = ()  # of a date: those that vary

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise HyperparameterError(
                f"column {self.name!r}: {self.kind!r} is not one of {', '.join(KINDS)}.", columns=[self.name]
            )

    @property
    def features(self) -> tuple[str, ...]:
        """The columns of the model that it becomes."""
        if self.kind in IGNORED:
            return ()
        return tuple(f"{self.name}.{part}" for part in self.parts) if self.kind == "date" else (self.name,)

    def union(self, other: Column) -> Column:
        """One column for the rows of both; kinds that differ cannot be one, unless one of them said nothing."""
        if self.kind == other.kind or other.kind == "constant":
            kept = self
        elif self.kind == "constant":
            kept = other
        elif {self.kind, other.kind} == {"count", "number"}:
            kept = self if self.kind == "number" else other
        elif {self.kind, other.kind} == {"yes/no", "category"}:
            kept = self if self.kind == "category" else other
        else:
            raise MergeError(
                f"column {self.name!r} is a {self.kind} in one ({self.reason}) and a {other.kind} in the other "
                f"({other.reason}).",
                columns=[self.name],
                remedy=Remedy("Declare it when fitting: ", Argument("kinds", {self.name: self.kind}), "."),
            )
        return Column(
            kept.name, kept.kind, kept.reason, self.missing + other.missing, self.rows + other.rows,
            self.trim or other.trim, self.thousands or other.thousands, kept.format,
            tuple(part for part in PARTS if part in self.parts + other.parts),
        )  # fmt: skip

    def __str__(self) -> str:
        gaps = f"{self.missing:,} of {self.rows:,} missing" if self.missing else "none missing"
        return f"{self.name}: {self.kind} ({self.reason}; {gaps}){', ignored' if self.kind in IGNORED else ''}"


def declare_category(first: str, name: str) -> Remedy:
    """The remedy for a value that does not fit its column."""
    return Remedy(f"{first}, leave it empty, or declare the column: ", Argument("kinds", {name: "category"}), ".")


# -- values ----------
# Columns as families take them: floats with NaN, codes of names, parts of dates; each by what its `Column` says.

Array = NDArray[Any]
Codes = tuple[Array, tuple[str, ...]]  # −1 is missing; names sorted
Refuse = Callable[[int, str], None]  # told row and value of a cell that does not fit

THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?")
MONTHS = tuple(f"{month:02}" for month in range(1, 13))
WEEKDAYS = ("1 Mon", "2 Tue", "3 Wed", "4 Thu", "5 Fri", "6 Sat", "7 Sun")
HOURS = tuple(f"{hour:02}" for hour in range(24))


def whole(values: pa.ChunkedArray) -> pa.Array:
    """One array, dictionaries spelt out."""
    import pyarrow as pa

    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if isinstance(array, pa.ChunkedArray):  # too long for one
        array = pa.concat_arrays(array.chunks)
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def is_text(kind: pa.DataType) -> bool:
    """Whether values are strings."""
    import pyarrow as pa

    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def cleaned(array: pa.Array, trim: bool) -> pa.Array:
    """Texts with what stands for missing as null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_string_view(array.type):
        array = array.cast(pa.string())
    if trim and pc.any(pc.match_substring_regex(array, r"^\s|\s$")).as_py():
        array = pc.utf8_trim_whitespace(array)
    absent = pc.is_in(array, value_set=_markers(array.type))
    return pc.if_else(absent, pa.scalar(None, array.type), array) if pc.any(absent).as_py() else array


@cache
def _markers(kind: pa.DataType) -> pa.Array:
    """What stands for missing; from buffers, for Arrow would import pandas to look at a list, or even at a number."""
    import pyarrow as pa

    ends = np.cumsum([0, *(len(marker.encode()) for marker in MARKERS)], dtype=np.int64)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer("".join(MARKERS).encode())]
    return pa.Array.from_buffers(pa.large_string(), len(MARKERS), buffers).cast(kind)


def numbers(values: pa.ChunkedArray, column: Column, refuse: Refuse) -> Array:
    """(n,) floats, NaN where missing; what is no finite number is refused."""
    import pyarrow as pa
    import pyarrow.compute as pc

    array = whole(values)
    if is_text(array.type):
        try:
            found = pc.cast(array, pa.float64())  # the usual case: clean, or null already
        except pa.ArrowInvalid:
            array = cleaned(array, trim=True)
            if column.thousands:
                array = pc.replace_substring(array, ",", "")
            found = _cast_each(array, refuse)
    elif pa.types.is_boolean(array.type) or pa.types.is_decimal(array.type) or pa.types.is_float16(array.type):
        found = pc.cast(pc.cast(array, pa.float32()) if pa.types.is_float16(array.type) else array, pa.float64())
    elif pa.types.is_integer(array.type) or pa.types.is_floating(array.type) or pa.types.is_null(array.type):
        found = pc.cast(array, pa.float64(), safe=False)
    else:
        raise InputError(
            f"column {column.name!r} holds {array.type}, not numbers.",
            columns=[column.name],
            remedy="Declare it otherwise, or drop it.",
        )
    floats = found.to_numpy(zero_copy_only=False)
    if np.isinf(floats).any():
        for row in np.flatnonzero(np.isinf(floats)):
            refuse(int(row), str(floats[row]))
        floats = np.where(np.isinf(floats), np.nan, floats)
    return floats


def _cast_each(array: pa.Array, refuse: Refuse) -> pa.Array:
    """Floats of texts, one by one where Arrow takes none; what is no number is refused, and null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        return pc.cast(array, pa.float64())
    except pa.ArrowInvalid:
        found: list[float | None] = []
        for row, text in enumerate(array.to_pylist()):
            try:
                found.append(None if text is None else float(text.replace("_", "x")))
            except ValueError:
                refuse(row, text)
                found.append(None)
        return pa.array(found, pa.float64())


def names(values: pa.ChunkedArray, column: Column) -> Codes:
    """Codes of names, and the names in order; numbers and truth values are called as they are written."""
    import pyarrow as pa
    import pyarrow.compute as pc

    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    encoded = array if isinstance(array, pa.DictionaryArray) else whole(values).dictionary_encode()
    distinct = encoded.dictionary
    if is_text(distinct.type):
        called = cleaned(distinct, column.trim).to_pylist()
    else:
        called = [_called(value) for value in distinct.to_pylist()]
    kept = sorted({name for name in called if name is not None})
    place = {name: at for at, name in enumerate(kept)} | {None: -1}
    table = np.array([*(place[name] for name in called), -1], dtype=np.intp)
    index = pc.fill_null(encoded.indices, len(called)) if encoded.indices.null_count else encoded.indices
    return table[whole_numbers(pa.chunked_array([index]))], tuple(kept)


def _called(value: Any) -> str | None:
    if value is None or value != value:
        return None
    if isinstance(value, float) and value == int(value):
        return str(int(value))
    return str(value)


def text(values: pa.ChunkedArray, column: Column) -> pa.ChunkedArray:
    """Texts, empty where missing; in chunks as they came, for texts are large."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(values.type):
        values = pa.chunked_array([part.dictionary_decode() for part in values.chunks], values.type.value_type)
    if not is_text(values.type):
        values = pc.cast(values, pa.string())
    return pc.fill_null(values, "") if values.null_count else values


def moments(values: pa.ChunkedArray, column: Column, refuse: Refuse) -> pa.Array:
    """Dates and times as timestamps."""
    import pyarrow as pa
    import pyarrow.compute as pc

    array = whole(values)
    if not is_text(array.type):
        if pa.types.is_time(array.type):
            return pc.cast(pc.cast(array, pa.time64("us")), pa.int64()).cast(pa.timestamp("us"))
        if pa.types.is_timestamp(array.type):
            return array
        if not pa.types.is_date(array.type) and not pa.types.is_null(array.type):
            raise InputError(
                f"column {column.name!r} holds {array.type}, but it is a date: {column.reason}.", columns=[column.name]
            )
        return pc.cast(array, pa.timestamp("us"))
    array = cleaned(array, trim=True)
    found = parsed(array, column.format or "ISO")
    wrong = np.asarray(pc.and_(pc.is_null(found), pc.is_valid(array)))
    for row in np.flatnonzero(wrong):
        refuse(int(row), array[int(row)].as_py())
    return found


def parsed(array: pa.Array, form: str) -> pa.Array:
    """Timestamps of texts, null where they are not of this form; "ISO" is YYYY-MM-DDTHH:MM:SS with variations."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if form != "ISO":
        return pc.strptime(array, form, "us", error_is_null=True)
    try:
        return pc.cast(array, pa.timestamp("us"))  # the usual case
    except pa.ArrowInvalid:
        pass
    zoned = pc.match_substring_regex(array, r"(Z|[+-]\d\d:?\d\d)$")
    local = pc.if_else(zoned, pc.replace_substring_regex(array, r"(Z|[+-]\d\d:?\d\d)$", ""), array)
    fits = pc.match_substring_regex(local, r"^\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?)?$")
    try:
        return pc.cast(pc.if_else(fits, local, pa.scalar(None, local.type)), pa.timestamp("us"))
    except pa.ArrowInvalid:  # such as the 31st of February
        good = [value for value in pc.filter(local, fits).to_pylist() if not _is_moment(value)]
        fits = pc.and_(fits, pc.invert(pc.is_in(local, value_set=pa.array(good, local.type))))
        return pc.cast(pc.if_else(fits, local, pa.scalar(None, local.type)), pa.timestamp("us"))


def _is_moment(value: str) -> bool:
    from datetime import datetime

    try:
        return bool(datetime.fromisoformat(value))
    except ValueError:
        return False


def part(when: pa.Array, which: str) -> Codes:
    """The month, weekday or hour of timestamps."""
    import pyarrow.compute as pc

    found, called = {
        "month": (lambda: pc.subtract(pc.month(when), 1), MONTHS),
        "weekday": (lambda: pc.day_of_week(when), WEEKDAYS),
        "hour": (lambda: pc.hour(when), HOURS),
    }[which]
    codes = pc.fill_null(found(), -1).to_numpy(zero_copy_only=False).astype(np.intp)
    return codes, called
