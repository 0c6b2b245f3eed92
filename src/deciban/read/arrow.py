"""Columns as Arrow arrays, and Arrow arrays as floats, category codes, texts and parts of dates.

Integers are exchanged with Arrow through buffers where possible: `pa.array` and `to_numpy` import pandas.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from deciban.errors import InputError, column_error
from deciban.read.tables import MARKERS, Table

if TYPE_CHECKING:
    from deciban.read.columns import Column

Array = NDArray[Any]
CategoryCodes = tuple[Array, tuple[str, ...]]  # (n,) codes, −1 for missing, and the sorted names
Refuse = Callable[[int, str], None]  # called with row and value of a cell that does not fit its column

NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?")  # 1,234 and 1,234.5
DECIMAL_COMMA = re.compile(r"[+-]?(?:[1-9]\d{0,2}(?:\.\d{3})+|\d+)(?:,\d+)?")  # 1,5 and 1.234,5
SIGN = re.compile(r"[$€£¥₹%]|(?<![A-Za-z])(?:USD|EUR|GBP|CHF)(?![A-Za-z])")
MONTHS = tuple(f"{month:02}" for month in range(1, 13))
WEEKDAYS = ("1 Mon", "2 Tue", "3 Wed", "4 Thu", "5 Fri", "6 Sat", "7 Sun")
HOURS = tuple(f"{hour:02}" for hour in range(24))
PER_SECOND = {"s": 1e0, "ms": 1e3, "us": 1e6, "ns": 1e9}  # units of durations
TIME_ZONE = r"(Z|[+-]\d\d:?\d\d)$"
SPACES = np.frombuffer(b"\t\n\f\r ", np.uint8)
LONGEST_MARKER = max(len(marker.encode()) for marker in MARKERS)
ISO_DATE = r"^\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?)?$"


# -- from tables -------------------------------------------------------------------------------------------------------
def arrow_table(table: Table) -> pa.Table:
    """A table as an Arrow table, without a copy where its columns are Arrow arrays already.

    >>> import polars as pl
    >>> arrow_table(Table.of(pl.DataFrame({"a": [1, None]})))["a"].null_count
    1
    """
    names = [str(name) for name in table.columns]
    return pa.table({name: arrow_column(table, j) for j, name in enumerate(names)})


def arrow_column(table: Table, position: int) -> pa.ChunkedArray:
    """One column of a table; NaN becomes null."""
    if not table.framed:
        given = table.column(position)
        return given if isinstance(given, pa.ChunkedArray) else pa.chunked_array([pa.array(given, from_pandas=True)])
    native = table.data[:, position].to_native()
    if isinstance(native, pa.ChunkedArray):
        return native
    try:
        found = native.to_arrow() if hasattr(native, "to_arrow") else pa.Array.from_pandas(native)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        found = _mixed(table.columns[position], native.to_list())
    kind = found.type.value_type if pa.types.is_dictionary(found.type) else found.type
    if isinstance(kind, pa.BaseExtensionType):
        found = _of_objects(native.to_list(), pa.types.is_dictionary(found.type))
    return found if isinstance(found, pa.ChunkedArray) else pa.chunked_array([found])


def _of_objects(values: list[Any], categories: bool) -> pa.Array:
    """Periods by their start; other objects, such as the intervals of `pandas.cut`, by their names."""
    values = [None if value is None or value != value else value for value in values]
    starts = [None if value is None else getattr(value, "start_time", None) for value in values]
    if all((value is None) == (start is None) for value, start in zip(values, starts)):
        return pa.array(starts, pa.timestamp("us"), from_pandas=True)
    names = pa.array([None if value is None else _name_of_object(value) for value in values], pa.string())
    return names.dictionary_encode() if categories else names


def _name_of_object(value: Any) -> str:
    """The name of an interval is the same for ends that are integers and floats: pandas uses floats beside gaps."""
    if not hasattr(value, "closed_left"):
        return str(value)
    left, right = "[" if value.closed_left else "(", "]" if value.closed_right else ")"
    return f"{left}{name_of(value.left)}, {name_of(value.right)}{right}"


def _mixed(name: str, values: list[Any]) -> pa.Array:
    """Floats of Python objects that are numbers of several types; other mixtures are an error."""
    values = [None if value is None or value != value else value for value in values]
    types = sorted({type(value).__name__ for value in values if value is not None})
    if set(types) <= {"int", "float", "bool", "Decimal", "int64", "float64"}:
        return pa.array([None if value is None else float(value) for value in values])
    what = f"mixes {' and '.join(types)}" if len(types) > 1 else f"holds values of the type {types[0]}"
    raise column_error(InputError, name, f"{what}, which have no order", "Turn all its values into strings.")


# -- arrays ------------------------------------------------------------------------------------------------------------
def whole_numbers(column: pa.ChunkedArray) -> Array:
    """(n,) integers of a column without nulls.

    >>> import pyarrow as pa
    >>> whole_numbers(pa.chunked_array([[1, 2], [3]]))
    array([1, 2, 3])
    """
    width = f"{'u' if pa.types.is_unsigned_integer(column.type) else 'i'}{column.type.bit_width // 8}"
    parts = [np.frombuffer(part.buffers()[1], width)[part.offset :][: len(part)] for part in column.chunks if len(part)]
    return np.concatenate([np.zeros(0, width), *parts])


def one_array(values: pa.ChunkedArray | pa.Array) -> pa.Array:
    """All chunks as one array, dictionaries decoded."""
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if isinstance(array, pa.ChunkedArray):  # too long for one array of 32-bit offsets
        array = pa.concat_arrays(array.chunks)
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def is_text(kind: pa.DataType) -> bool:
    """Whether values are strings."""
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def without_markers(array: pa.Array, trim: bool) -> pa.Array:
    """Texts with null for the markers of missing values; with `trim`, without spaces around them."""
    if pa.types.is_string_view(array.type):
        array = array.cast(pa.string())
    if trim and _any_space_around(array):
        array = pc.utf8_trim_whitespace(array)
    starts, stops, _ = _bytes_of(array)
    if not (stops - starts <= LONGEST_MARKER).any():  # hashing long texts takes longer than reading them
        return array
    absent = pc.is_in(array, value_set=_markers(array.type))
    return pc.if_else(absent, pa.scalar(None, array.type), array) if pc.any(absent).as_py() else array


def _any_space_around(array: pa.Array) -> bool:
    """Whether a text begins or ends with white space of ASCII; only the first and last bytes are read."""
    starts, stops, data = _bytes_of(array.drop_null() if array.null_count else array)
    filled = stops > starts
    ends = np.concatenate([data[starts[filled]], data[stops[filled] - 1]])
    return bool(np.isin(ends, SPACES).any())


def _bytes_of(array: pa.Array) -> tuple[Array, Array, Array]:
    """Where each text begins and ends, and the bytes of all texts."""
    _, ends, data = array.buffers()
    if not len(array) or ends is None or data is None:
        return np.zeros(len(array), np.int64), np.zeros(len(array), np.int64), np.zeros(0, np.uint8)
    width = np.int64 if pa.types.is_large_string(array.type) else np.int32
    at = np.frombuffer(ends, width)[array.offset : array.offset + len(array) + 1]
    return at[:-1], at[1:], np.frombuffer(data, np.uint8)


@cache
def _markers(kind: pa.DataType) -> pa.Array:
    ends = np.cumsum([0, *(len(marker.encode()) for marker in MARKERS)], dtype=np.int64)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer("".join(MARKERS).encode())]
    return pa.Array.from_buffers(pa.large_string(), len(MARKERS), buffers).cast(kind)


def taken(column: pa.ChunkedArray | pa.Array, rows: Array) -> pa.ChunkedArray | pa.Array:
    """Some rows of a column; its chunks are not concatenated if the rows are in order.

    >>> import pyarrow as pa
    >>> taken(pa.chunked_array([["a", "b"], ["c", "d"]]), np.array([1, 2])).to_pylist()
    ['b', 'c']
    """
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
    return pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(np.ascontiguousarray(values))])


# -- values of a column ------------------------------------------------------------------------------------------------
def floats(values: pa.ChunkedArray | pa.Array, column: Column, refuse: Refuse) -> Array:
    """(n,) floats, NaN where missing; `refuse` is called for values that are not finite numbers, which become NaN."""
    array = one_array(values)
    if is_text(array.type):
        try:
            if column.decimal_comma:  # 1.234 is more than a thousand here
                raise pa.ArrowInvalid
            found = pc.cast(array, pa.float64())  # the usual case: numbers and nulls only
        except pa.ArrowInvalid:
            array = without_markers(array, trim=True)
            found = _cast_each(_usual_numbers(array, column), array, refuse)
    elif pa.types.is_boolean(array.type) or pa.types.is_decimal(array.type) or pa.types.is_float16(array.type):
        found = pc.cast(pc.cast(array, pa.float32()) if pa.types.is_float16(array.type) else array, pa.float64())
    elif pa.types.is_integer(array.type) or pa.types.is_floating(array.type) or pa.types.is_null(array.type):
        found = pc.cast(array, pa.float64(), safe=False)
    elif pa.types.is_duration(array.type):
        units = pc.cast(pc.cast(array, pa.int64()), pa.float64(), safe=False)
        found = pc.divide(units, PER_SECOND[array.type.unit])
    else:
        remedy = "Declare another kind for it, or drop it."
        raise column_error(InputError, column.name, f"holds {array.type}, not numbers", remedy)
    numbers = found.to_numpy(zero_copy_only=False)
    infinite = np.flatnonzero(np.isinf(numbers))
    if len(infinite):
        for row in infinite:
            refuse(int(row), str(numbers[row]))
        numbers = np.where(np.isinf(numbers), np.nan, numbers)
    return numbers


def _usual_numbers(array: pa.Array, column: Column) -> pa.Array:
    """Numbers as Arrow reads them: without signs and separators of thousands, and with a decimal point."""
    if column.sign:
        plain = [None if value is None else without_sign(value, column.sign) for value in array.to_pylist()]
        array = pa.array(plain, array.type)
    if column.thousands:
        return pc.replace_substring(array, ",", "")
    if not column.decimal_comma:
        return array
    fits = pc.match_substring_regex(array, f"^(?:{DECIMAL_COMMA.pattern})$")
    pointed = pc.replace_substring(pc.replace_substring(array, ".", ""), ",", ".")
    return pc.if_else(fits, pointed, pa.scalar("?", array.type))  # such as 1.5, which is refused


def without_sign(value: str, sign: str) -> str:
    """The number without its currency or per cent sign; unchanged if it has another one.

    >>> without_sign("-€ 5", "€"), without_sign("12 %", "%"), without_sign("$5", "€")
    ('-5', '12', '$5')
    """
    if not sign:
        return value
    minus = "-" if value.startswith("-") else ""
    bare = value.removeprefix("-").strip()
    cut = bare.removeprefix(sign) if bare.startswith(sign) else bare.removesuffix(sign)
    return minus + cut.strip()


def _cast_each(array: pa.Array, given: pa.Array, refuse: Refuse) -> pa.Array:
    """Floats of texts, one by one if Arrow cannot cast them all; what is not a number is refused, and null."""
    try:
        return pc.cast(array, pa.float64())
    except pa.ArrowInvalid:
        found: list[float | None] = []
        for row, (text, written) in enumerate(zip(array.to_pylist(), given.to_pylist())):
            try:
                found.append(None if text is None else float(text.replace("_", "x")))  # float() would take 1_000
            except ValueError:
                refuse(row, written)
                found.append(None)
        return pa.array(found, pa.float64())


def category_codes(values: pa.ChunkedArray | pa.Array, trim: bool) -> CategoryCodes:
    """Codes of names, and the names in order; numbers and truth values are named as they are written."""
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    encoded = array if isinstance(array, pa.DictionaryArray) else one_array(values).dictionary_encode()
    distinct = encoded.dictionary
    if is_text(distinct.type):
        written = without_markers(distinct, trim).to_pylist()
    else:
        written = [name_of(value) for value in distinct.to_pylist()]
    names = sorted({name for name in written if name is not None})
    place = {name: at for at, name in enumerate(names)} | {None: -1}
    table = np.array([*(place[name] for name in written), -1], dtype=np.intp)
    index = pc.fill_null(encoded.indices, len(written)) if encoded.indices.null_count else encoded.indices
    return table[whole_numbers(pa.chunked_array([index]))], tuple(names)


def name_of(value: object) -> str | None:
    """The name of a value that is a number or a truth value; None where it is missing."""
    if value is None or value != value:
        return None
    return str(int(value)) if isinstance(value, float) and value == int(value) else str(value)


def texts(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Texts, empty where missing; in their chunks, since texts are large."""
    if pa.types.is_dictionary(values.type):
        values = pa.chunked_array([part.dictionary_decode() for part in values.chunks], values.type.value_type)
    if not is_text(values.type):
        values = pc.cast(values, pa.string())
    return pc.fill_null(values, "") if values.null_count else values


def timestamps(values: pa.ChunkedArray | pa.Array, column: Column, refuse: Refuse) -> pa.Array:
    """Dates and times; `refuse` is called for texts that are not of the column's format, which become null."""
    array = one_array(values)
    if not is_text(array.type):
        if pa.types.is_time(array.type):
            return pc.cast(pc.cast(array, pa.time64("us")), pa.int64()).cast(pa.timestamp("us"))
        if pa.types.is_timestamp(array.type):
            return array if array.type.unit in ("us", "ns") else _within_range(array, refuse)
        if not pa.types.is_date(array.type) and not pa.types.is_null(array.type):
            what = f"holds {array.type}, but it is a date: {column.reason}"
            raise column_error(InputError, column.name, what)
        return pc.cast(_within_range(array, refuse) if pa.types.is_date64(array.type) else array, pa.timestamp("us"))
    array = without_markers(array, trim=True)
    found = parse_dates(array, column.format or "ISO")
    for row in np.flatnonzero(np.asarray(pc.and_(pc.is_null(found), pc.is_valid(array)))):
        refuse(int(row), array[int(row)].as_py())
    return found


def _within_range(array: pa.Array, refuse: Refuse) -> pa.Array:
    """Dates in seconds or milliseconds; those that microseconds cannot hold are refused, and become null."""
    per_second = array.type.unit == "s" if pa.types.is_timestamp(array.type) else False
    number = pc.cast(array, pa.int64())
    most = (2**63 - 1) // (10**6 if per_second else 1000)
    fits = pc.and_(pc.less_equal(number, most), pc.greater_equal(number, -most))
    wrong = np.flatnonzero(np.asarray(pc.fill_null(pc.invert(fits), False)))
    for row in wrong:
        refuse(int(row), f"{number[int(row)].as_py()} {'s' if per_second else 'ms'} since 1970")
    return pc.if_else(fits, array, pa.scalar(None, array.type)) if len(wrong) else array


def parse_dates(array: pa.Array, form: str) -> pa.Array:
    """Timestamps of texts, null where they are not of this form; "ISO" is YYYY-MM-DDTHH:MM:SS with variations."""
    if form != "ISO":
        return pc.strptime(array, form, "us", error_is_null=True)
    try:
        return pc.cast(array, pa.timestamp("us"))  # the usual case
    except pa.ArrowInvalid:
        pass
    zoned = pc.match_substring_regex(array, TIME_ZONE)
    local = pc.if_else(zoned, pc.replace_substring_regex(array, TIME_ZONE, ""), array)
    fits = pc.match_substring_regex(local, ISO_DATE)
    try:
        return pc.cast(pc.if_else(fits, local, pa.scalar(None, local.type)), pa.timestamp("us"))
    except pa.ArrowInvalid:  # such as the 31st of February
        wrong = [value for value in pc.filter(local, fits).to_pylist() if not _is_date(value)]
        fits = pc.and_(fits, pc.invert(pc.is_in(local, value_set=pa.array(wrong, local.type))))
        return pc.cast(pc.if_else(fits, local, pa.scalar(None, local.type)), pa.timestamp("us"))


def _is_date(text: str) -> bool:
    from datetime import datetime

    try:
        return bool(datetime.fromisoformat(text))
    except ValueError:
        return False


def decimal_years(when: pa.Array) -> Array:
    """(n,) years of timestamps with the fraction of the year that has passed, NaN where missing.

    >>> import pyarrow as pa
    >>> from datetime import datetime
    >>> decimal_years(pa.array([datetime(2024, 7, 2), None])).round(3)
    array([2024.5,    nan])
    """
    days = when.cast("timestamp[us]", safe=False).cast("int64").to_numpy(zero_copy_only=False) / 86_400e6
    missing = np.isnan(days) if days.dtype.kind == "f" else np.zeros(len(days), bool)
    dates = np.where(missing, 0, days).astype("datetime64[D]")
    years = dates.astype("datetime64[Y]")
    start, end = (edge.astype("datetime64[D]").astype(float) for edge in (years, years + np.timedelta64(1, "Y")))
    return np.where(missing, np.nan, 1970 + years.astype(float) + (days - start) / (end - start))


def date_part(when: pa.Array, which: str) -> CategoryCodes:
    """The month, weekday or hour of timestamps, as categories."""
    if which == "month":
        found, names = pc.subtract(pc.month(when), 1), MONTHS
    elif which == "weekday":
        found, names = pc.day_of_week(when), WEEKDAYS
    else:
        found, names = pc.hour(when), HOURS
    return pc.fill_null(found, -1).to_numpy(zero_copy_only=False).astype(np.intp), names
