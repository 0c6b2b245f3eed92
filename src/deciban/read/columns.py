"""Columns of a table: their kinds, and how a kind is inferred from the first rows.

The types of a frame or of a typed file are kept. Columns of text are examined: they may be numbers, dates or yes/no.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deciban.errors import Argument, DomainError, HyperparameterError, InputError, MergeError, Remedy, column_error
from deciban.read import arrow
from deciban.read.arrow import Array

Kind = Literal["yes/no", "category", "count", "number", "text", "date", "identifier", "constant"]
KINDS: tuple[str, ...] = get_args(Kind)
NUMBERS = ("count", "number")
NAMES = ("yes/no", "category")
IGNORED = ("identifier", "constant")
DAY_FIRST, MONTH_FIRST = "day-first", "month-first"  # declared: dates, with the order of their numbers
DECLARABLE = (*KINDS, DAY_FIRST, MONTH_FIRST)
YEAR = "year"  # part of a date that is a number, with a fraction for the time of the year
PARTS = (YEAR, "month", "weekday", "hour")  # of a date or time: the year, and parts that recur


@dataclass(frozen=True)
class Column:
    """Name and kind of a column, and how its values are read; fixed when the schema is inferred.

    The names of this class and of its fields are part of the file format.

    >>> print(Column("age", "count", "whole numbers from 17 to 90", 0, 48842))
    age: count (whole numbers from 17 to 90; none missing)
    """

    name: str
    kind: Kind
    reason: str  # why the column has this kind, in words
    missing: int = 0  # missing values among `rows`
    rows: int = 0  # rows that were examined
    trim: bool = False  # spaces around values are removed
    thousands: bool = False  # numbers are written with separators: 1,234
    format: str = ""  # of dates that are texts
    parts: tuple[str, ...] = ()  # of a date: those of PARTS that vary
    assumed: str = ""  # how values were read that can also be read in another way
    otherwise: str = ""  # the kind to declare for the other way
    decimal_comma: bool = False  # numbers are written with a comma: 1,5; and perhaps points between thousands: 1.234,5
    sign: str = ""  # a currency or a per cent sign, written before or after the numbers
    several_lines: bool = False  # of texts: most have several lines

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            what = f"column {self.name!r}: {self.kind!r} is not one of {', '.join(KINDS)}."
            raise HyperparameterError(what, columns=[self.name])
        if (self.format and self.format not in DATE_FORMATS) or not set(self.parts) <= set(PARTS):
            what = f"column {self.name!r}: dates of the form {self.format!r} with {self.parts} are not known."
            raise HyperparameterError(what, columns=[self.name])

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the model's columns that it is turned into: none, itself, or the parts of a date."""
        if self.kind in IGNORED:
            return ()
        return tuple(f"{self.name}.{part}" for part in self.parts) if self.kind == "date" else (self.name,)

    def union(self, other: Column) -> Column:
        """The column for the rows of both; kinds must agree, unless one is constant or more general."""
        if self.kind == other.kind or other.kind == "constant":
            kept = self
        elif self.kind == "constant":
            kept = other
        elif {self.kind, other.kind} == {"count", "number"}:
            kept = self if self.kind == "number" else other
        elif {self.kind, other.kind} == {"yes/no", "category"}:
            kept = self if self.kind == "category" else other
        else:
            what = f"is a {self.kind} in one ({self.reason}) and a {other.kind} in the other ({other.reason})"
            remedy = Remedy("Declare it when fitting: ", Argument("kinds", {self.name: self.kind}), ".")
            raise column_error(MergeError, self.name, what, remedy)
        return replace(
            kept,
            missing=self.missing + other.missing,
            rows=self.rows + other.rows,
            trim=self.trim or other.trim,
            thousands=self.thousands or other.thousands,
            decimal_comma=self.decimal_comma or other.decimal_comma,
            sign=self.sign or other.sign,
            several_lines=self.several_lines or other.several_lines,
            parts=tuple(part for part in PARTS if part in self.parts + other.parts),
            assumed=self.assumed or other.assumed,
            otherwise=self.otherwise or other.otherwise,
        )

    def refusal(self, value: str, row: int, why: str) -> DomainError:
        """The error for a value that does not fit the column."""
        declared = Argument("kinds", {self.name: "category"})
        remedy = Remedy("Correct the value, leave it empty, or declare the column when fitting: ", declared, ".")
        return column_error(DomainError, self.name, f"holds {value[:60]!r}", remedy, row, f", {why}.")

    def __str__(self) -> str:
        gaps = f"{self.missing:,} of {self.rows:,} missing" if self.missing else "none missing"
        return f"{self.name}: {self.kind} ({self.reason}; {gaps}){', ignored' if self.kind in IGNORED else ''}"


# -- inference ---------------------------------------------------------------------------------------------------------
YES_NO = ({"y", "n"}, {"yes", "no"}, {"t", "f"}, {"true", "false"}, {"0", "1"}, {"on", "off"})
TIMES = ("", " %H:%M", " %H:%M:%S")
MONTH_FIRST_FORMATS = tuple(f"{day}{time}" for day in ("%m/%d/%Y", "%m-%d-%Y") for time in TIMES)
DAY_FIRST_FORMATS = tuple(f"{day}{time}" for day in ("%d/%m/%Y", "%d-%m-%Y") for time in TIMES)
DATE_FORMATS = (
    "ISO", "%Y/%m/%d", "%d.%m.%Y", "%Y-%m-%d %I:%M %p", "%d.%m.%Y %H:%M", "%H:%M:%S", "%H:%M", *MONTH_FIRST_FORMATS,
    *DAY_FIRST_FORMATS,
)  # fmt: skip
FIRST_TEXTS = 1000  # examined for line breaks
FIRST_VALUES = 100  # if none of these is a number, the column is not one of numbers
FEWEST_ROWS = 20  # fewer do not show whether values repeat
MOST_NUMBERS = 0.9  # from this share of numbers on, other values are taken for mistakes
MOSTLY_DIFFERENT = 0.9  # share of distinct values from which whole numbers may be identifiers with a few repeated rows
LEADING_ZERO = r"^0\d+$"
CODE_NAME = re.compile(r"(?<![a-z])(zip|zip[ _-]?codes?|post(al)?[ _-]?codes?|plz|postleitzahl|phone)(?![a-z])")
ID_NAME = re.compile(r"(?:^|[^A-Za-z])(?:id|Id|ID)(?:$|[^A-Za-z])|[a-z](?:Id|ID)$")
YEAR_NAME = re.compile(r"(?<![a-z])(year|yr|jahr|annee|année|año|anno)(?![a-z])")
YEARS = 1800, 2100  # whole numbers between them are read as years
EPOCHS = 946_684_800, 2_208_988_800  # seconds from 1970 to 2000 and to 2040: numbers between them may be times
IDENTIFIER_DIGITS, ALWAYS_IDENTIFIER_DIGITS = 10, 15  # of whole numbers of equal length
COLLISIONS = 10  # whole numbers that differ although so many collisions are expected by chance: an identifier
FIRST_YEAR = 1971.0  # times without a date are read as of the first day of 1970
ALL_MISSING = "all values are missing"


def infer(name: str, values: pa.ChunkedArray, kind: str | None = None) -> Column:
    """The column of these values; `kind` if it is declared.

    >>> import pyarrow as pa
    >>> print(infer("smokes", pa.chunked_array([["y", "n", "?", "y"]])))
    smokes: yes/no ('n' and 'y'; 1 of 4 missing)
    """
    if kind == "text" and arrow.is_text(values.type):
        return _declared_text(name, values)
    if kind in IGNORED:
        return Column(name, kind, "declared by you", values.null_count, len(values))  # type: ignore[arg-type]
    array = arrow.one_array(values)
    if pa.types.is_nested(array.type) or pa.types.is_binary(array.type) or pa.types.is_large_binary(array.type):
        ignored = Argument("kinds", {name: "identifier"})
        remedy = Remedy("Turn it into several columns, or ignore it: ", ignored, ".")
        raise column_error(InputError, name, f"holds {array.type}, which is no value of a table", remedy)
    column = Column(name, "constant", "", rows=len(array))
    text = arrow.is_text(array.type)
    if text:
        array, trim = _trimmed(array, kind)
        column = replace(column, trim=trim)
    elif pa.types.is_floating(array.type):
        array = pa.array(array.to_numpy(zero_copy_only=False), from_pandas=True)
    column = replace(column, missing=array.null_count)
    if kind is not None:
        return _declared(column, array, kind)
    if array.null_count == len(array):
        return replace(column, reason=ALL_MISSING)
    categories = pa.types.is_dictionary(values.type)
    return _of_text(column, array, categories) if text else _of_type(column, array, categories)


def _declared(column: Column, array: pa.Array, kind: str) -> Column:
    """A column of declared kind; the format of dates and thousands separators are still inferred."""
    orders = {DAY_FIRST: DAY_FIRST_FORMATS, MONTH_FIRST: MONTH_FIRST_FORMATS, "date": DATE_FORMATS}
    column = replace(column, kind="date" if kind in orders else kind, reason="declared by you")  # type: ignore[arg-type]
    if kind in orders:
        formats = orders[kind] if arrow.is_text(array.type) else ("",)
        for form in formats:
            found = arrow.timestamps(array, replace(column, format=form), _ignore)
            if found.null_count == array.null_count or len(formats) == 1:
                parts = tuple(part for part in PARTS if part != YEAR or _varies(found, YEAR))
                return replace(column, format=form, parts=parts)
        remedy = "Write them as 2026-11-15T23:43:00."
        raise column_error(DomainError, column.name, "holds no dates that can be read", remedy)
    if kind in NUMBERS and arrow.is_text(array.type):
        first = array.drop_null().slice(0, 1000).to_pylist()
        return replace(column, **(_writing(first) or {"thousands": any(map(arrow.THOUSANDS.fullmatch, first))}))
    if kind == "text" and arrow.is_text(array.type):
        return replace(column, several_lines=_have_several_lines(array))
    return column if not pa.types.is_null(array.type) else replace(column, missing=len(array))


def _declared_text(name: str, values: pa.ChunkedArray) -> Column:
    """A column declared to be text, examined chunk by chunk, since texts are large."""
    found = [(array.null_count, trim) for array, trim in (_trimmed(chunk, "text") for chunk in values.chunks)]
    missing, trim = sum(nulls for nulls, _ in found), any(trim for _, trim in found)
    lines = any(_have_several_lines(chunk) for chunk in values.chunks[:1])
    return Column(name, "text", "texts", missing, len(values), trim, several_lines=lines)


def _have_several_lines(texts: pa.Array) -> bool:
    r"""Whether most of the first texts have more than one line.

    >>> _have_several_lines(pa.array(["one line\n", "two\nlines", "three\n\nlines"]))
    True
    """
    first = texts.slice(0, FIRST_TEXTS).drop_null()
    share = pc.mean(pc.match_substring_regex(first, r"\S\s*\n\s*\S")).as_py() if len(first) else None
    return share is not None and share > 0.5


def _trimmed(array: pa.Array, kind: str | None) -> tuple[pa.Array, bool]:
    """Texts without spaces around them and null for missing, and whether there were such spaces."""
    if kind in NUMBERS and _are_numbers(array):
        return array, False
    if kind == "text":  # texts are rarely repeated
        trimmed, plain = (arrow.without_markers(array, trim=trim) for trim in (True, False))
        return trimmed, trimmed is not plain and not trimmed.equals(plain)
    encoded = array.dictionary_encode()  # each distinct value is examined once
    trimmed, plain = (arrow.without_markers(encoded.dictionary, trim=trim) for trim in (True, False))
    if trimmed.null_count or trimmed is not encoded.dictionary:
        array = trimmed.take(encoded.indices.cast(pa.int64()))
    return array, not trimmed.equals(plain)


def _are_numbers(array: pa.Array) -> bool:
    try:
        return array.cast(pa.float64()) is not None
    except pa.ArrowInvalid:
        return False


def _of_type(column: Column, array: pa.Array, categories: bool) -> Column:
    """The kind of an array that is no text; `categories` if the table says that it holds them."""
    if pa.types.is_boolean(array.type):
        return _unless_constant(replace(column, kind="yes/no", reason="true or false"), array)
    if pa.types.is_temporal(array.type) and not pa.types.is_duration(array.type):
        return _of_date(column, array, f"{array.type}")
    if categories:
        return _unless_constant(replace(column, kind="category", reason="categories"), array)
    if pa.types.is_integer(array.type) and CODE_NAME.search(column.name.lower()):
        text = array.cast(pa.string())
        return _of_codes(column, text, text.drop_null().unique(), "whole numbers")
    return _of_numbers(column, arrow.floats(array, column, _ignore), pa.types.is_duration(array.type))


def _of_codes(column: Column, array: pa.Array, different: pa.Array, what: str) -> Column:
    """Digits that are no quantities, such as postal codes: categories if they repeat, else identifiers."""
    found = _of_names(column, array, len(different), different[:FIRST_VALUES].to_pylist())
    return replace(found, assumed=f"{what} are read as codes, not as quantities", otherwise="number")


def _with_order(column: Column, array: pa.Array) -> Column:
    """A column of dates, with what was assumed if day and month could also be exchanged."""
    if column.format not in MONTH_FIRST_FORMATS:
        return column
    other = DAY_FIRST_FORMATS[MONTH_FIRST_FORMATS.index(column.format)]
    if arrow.parse_dates(array, other).null_count > array.null_count:
        return column
    example = array.drop_null()[0].as_py()
    assumed = f"{example} is read as month/day/year, and could be day/month/year"
    return replace(column, assumed=assumed, otherwise=DAY_FIRST)


def _of_text(column: Column, array: pa.Array, categories: bool) -> Column:
    """The kind of texts: numbers, yes/no, dates, categories, texts or identifiers."""
    if categories:
        return _unless_constant(replace(column, kind="category", reason="categories"), array)
    different = pc.unique(array.drop_null())
    digits = pc.all(pc.match_substring_regex(different, r"^\d+$")).as_py()
    zeros = digits and pc.any(pc.match_substring_regex(different, LEADING_ZERO)).as_py()
    if digits and len(different) > 1 and (zeros or CODE_NAME.search(column.name.lower())):
        return _of_codes(column, array, different, "digits with leading zeros" if zeros else "digits")
    number = _as_numbers(column, array)
    if number is not None:
        return number
    first = different[:FIRST_VALUES].to_pylist()
    if len(different) == 1:
        reason = f"always {first[0][:40]!r}"
        return _unless_constant(replace(column, kind="category", reason=reason), array, reason)
    if {value.lower() for value in first} in YES_NO:
        return replace(column, kind="yes/no", reason=" and ".join(map(repr, sorted(first))))
    if first[0][:1].isdigit():
        for form in DATE_FORMATS:
            found = arrow.parse_dates(array, form)
            if found.null_count == array.null_count:
                column = _with_order(replace(column, format=form), array)
                return _of_date(column, found, f"dates or times, {form}")
    return _of_names(column, array, len(different), first)


def _as_numbers(column: Column, array: pa.Array) -> Column | None:
    """A column of numbers that are written as text; None if it is not one, an error if a few values are no numbers."""
    wrong: list[tuple[int, str]] = []

    def collect(row: int, value: str) -> None:
        wrong.append((row, value))

    first = array.drop_null()[:FIRST_VALUES]
    arrow.floats(first, column, collect)
    if len(wrong) == len(first) and not _writing([value for _, value in wrong]):
        return None
    wrong.clear()
    numbers = arrow.floats(array, column, collect)
    writing = _writing([value for _, value in wrong]) if wrong else {}
    if writing.get("sign") == "%" and len(wrong) < len(array) - array.null_count:
        writing = {}  # 12 % and 0.12 in one column
    if writing:
        column = replace(column, **writing)
        wrong.clear()
        numbers = arrow.floats(array, column, collect)
    if not wrong:
        return _of_numbers(column, numbers)
    n = len(array) - array.null_count
    if n - len(wrong) > MOST_NUMBERS * n and n >= FEWEST_ROWS:
        row, value = wrong[0]
        raise column.refusal(value, row, f"where {n - len(wrong):,} of {n:,} values are finite numbers")
    return None


def _writing(values: list[str]) -> dict[str, Any]:
    """How numbers are written that Arrow cannot read: fields of a column; none if they are no numbers.

    >>> _writing(["1,234", "12"]), _writing(["1.234,5", "2,25"]), _writing(["€ 5", "7 €"]), _writing(["5 %", "red"])
    ({'thousands': True}, {'decimal_comma': True}, {'sign': '€'}, {})
    """
    signs = {found.group() for value in values if (found := arrow.SIGN.search(value)) is not None}
    if len(signs) > 1:
        return {}
    sign = next(iter(signs), "")
    plain = [arrow.without_sign(value, sign) for value in values]
    written: dict[str, Any] = {"sign": sign} if sign else {}
    odd = [value for value in plain if not arrow.NUMBER.fullmatch(value)]
    if odd and all(map(arrow.THOUSANDS.fullmatch, odd)):
        return written | {"thousands": True}
    if odd and all(map(arrow.DECIMAL_COMMA.fullmatch, plain)):
        return written | {"decimal_comma": True}
    return {} if odd else written


def _of_numbers(column: Column, values: Array, seconds: bool = False) -> Column:
    """Yes/no, count, number, identifier or constant; `seconds` if they are durations."""
    seen = values[~np.isnan(values)]
    if not len(seen):
        return replace(column, reason=ALL_MISSING)
    low, high = seen.min(), seen.max()
    if low == high:
        return replace(column, kind="constant" if len(seen) > 1 else "number", reason=f"always {low:g}")
    finite = seen[np.isfinite(seen)]
    written = {"thousands separated": column.thousands, "decimal commas": column.decimal_comma}
    written |= {f"with {column.sign}": bool(column.sign)}
    written |= {"seconds": seconds}
    interval = "".join([f"from {low:g} to {high:g}", *(f", {how}" for how, so in written.items() if so)])
    if not (finite == np.round(finite)).all():
        return replace(column, kind="number", reason=f"numbers {interval}")
    distinct = len(np.unique(seen))
    if distinct == 2 and low == 0 and high == 1:
        return replace(column, kind="yes/no", reason="0 and 1")
    if _are_long_codes(low, high, distinct, len(seen)):
        reason = f"whole numbers of {len(f'{low:.0f}')} digits{', none twice' if distinct == len(seen) else ''}"
        return replace(column, kind="identifier", reason=reason)
    named = YEAR_NAME.search(column.name.lower())
    if YEARS[0] <= low and high <= YEARS[1] and distinct > 2:
        column = replace(column, kind="number", reason=f"years {interval}")
        return (
            column
            if named
            else replace(column, assumed=f"whole numbers {interval} are read as years", otherwise="count")
        )
    expected = len(seen) ** 2 / (2 * (high - low + 1))  # collisions among random numbers of this interval
    if distinct == len(seen) and expected > COLLISIONS:
        return replace(column, kind="identifier", reason=f"{distinct:,} whole numbers {interval}, none twice")
    if ID_NAME.search(column.name) and distinct > MOSTLY_DIFFERENT * len(seen) and len(seen) >= FEWEST_ROWS:
        reason = f"{distinct:,} different whole numbers {interval} in {len(seen):,} rows"
        assumed = "whole numbers of a column with this name are read as identifiers"
        return replace(column, kind="identifier", reason=reason, assumed=assumed, otherwise="count")
    return replace(column, kind="count" if low >= 0 else "number", reason=f"whole numbers {interval}")


def _are_long_codes(low: float, high: float, distinct: int, n: int) -> bool:
    """Whether whole numbers are identifiers by their length: equal for all, and too large to be counts."""
    digits = len(f"{low:.0f}")
    if low <= 0 or digits != len(f"{high:.0f}") or digits < IDENTIFIER_DIGITS or n < FEWEST_ROWS:
        return False
    if any(EPOCHS[0] <= low / unit and high / unit <= EPOCHS[1] for unit in (1, 1e3, 1e6, 1e9)):
        return False  # times
    return digits >= ALWAYS_IDENTIFIER_DIGITS or distinct > MOSTLY_DIFFERENT * n


def _of_date(column: Column, array: pa.Array, reason: str) -> Column:
    """A date with the parts that vary; constant if none does."""
    when = arrow.timestamps(array, column, _ignore)
    parts = tuple(part for part in PARTS if _varies(when, part))
    if not parts:
        return replace(column, reason=f"{reason}; always the same")
    return replace(column, kind="date", parts=parts, reason=reason)


def _varies(when: pa.Array, part: str) -> bool:
    """Whether a part of dates has several values; a time without a date has no year."""
    if part == YEAR:
        years = np.unique(arrow.decimal_years(when.drop_null()))
        return len(years) > 1 and bool(years[-1] >= FIRST_YEAR)
    return len(np.unique(arrow.date_part(when, part)[0])) > 1 + bool(when.null_count)


def _of_names(column: Column, array: pa.Array, distinct: int, first: list[str]) -> Column:
    """Names that repeat are categories; those that do not are texts if they have several words, else identifiers."""
    n = len(array) - array.null_count
    words = pc.mean(pc.add(pc.count_substring_regex(array, r"\s+"), 1)).as_py()
    unique = distinct > n / 2 and n >= FEWEST_ROWS
    if words >= (3 if unique else 8 if n >= FEWEST_ROWS else 4):
        return replace(column, kind="text", reason=f"{words:.0f} words a row", several_lines=_have_several_lines(array))
    if unique:
        return replace(column, kind="identifier", reason=f"nearly every value is unique ({distinct:,} of {n:,})")
    others = f" and {distinct - 3:,} more" if distinct > 3 else ""
    return replace(column, kind="category", reason=f"{distinct:,} names: {', '.join(sorted(first)[:3])[:80]}{others}")


def _unless_constant(column: Column, array: pa.Array, reason: str = "always the same") -> Column:
    """The column, or a constant one if enough rows hold one value only."""
    varies = column.rows < FEWEST_ROWS or pc.count_distinct(array).as_py() > 1
    return column if varies else replace(column, kind="constant", reason=reason)


def _ignore(row: int, value: str) -> None:
    """For `refuse`: values that do not fit count as missing."""
