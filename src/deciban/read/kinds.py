"""What a column is, by its first rows, and why.

Types that a frame or file declares are believed. Text is looked at: numbers, dates and yes or no may be written out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from deciban.errors import HERE, DomainError, InputError
from deciban.read import columns as values
from deciban.read.columns import NUMBERS, PARTS, Column, declare_category

if TYPE_CHECKING:
    import pyarrow as pa

PAIRS = ({"y", "n"}, {"yes", "no"}, {"t", "f"}, {"true", "false"}, {"0", "1"}, {"on", "off"})
FORMS = (
    "ISO", "%Y/%m/%d", "%d.%m.%Y", "%Y-%m-%d %I:%M %p", "%d.%m.%Y %H:%M", "%H:%M:%S", "%H:%M", "%m/%d/%Y", "%d/%m/%Y",
)  # fmt: skip
GLANCE = 100  # values, none of which is a number in a column of names
FEW = 20  # rows with fewer values say little about repeats
MOSTLY = 0.9  # of the values being numbers makes the others a mistake, not names
BY_HAND = "declared by you"
COLLISIONS = 10  # expected by chance, where there is not a single one: an identifier


def infer(name: str, column: pa.ChunkedArray, kind: str | None = None) -> Column:
    """The column; `kind` where somebody has declared it.

    >>> import pyarrow as pa
    >>> print(infer("smokes", pa.chunked_array([["y", "n", "?", "y"]])))
    smokes: yes/no ('n' and 'y'; 1 of 4 missing)
    """
    import pyarrow as pa

    if kind == "text" and values.is_text(column.type):
        return _declared_text(name, column)
    array = values.whole(column)
    if pa.types.is_nested(array.type) or pa.types.is_binary(array.type) or pa.types.is_large_binary(array.type):
        raise InputError(f"column {name!r} holds {array.type}, which is no value of a table. Drop it, or unfold it.")
    found = Column(name, "constant", "", rows=len(array))
    texts = values.is_text(array.type)
    if texts:
        array, trim = _cleaned(array, kind)
        found = replace(found, trim=trim)
    elif pa.types.is_floating(array.type):
        array = pa.array(array.to_numpy(zero_copy_only=False), from_pandas=True)
    found = replace(found, missing=array.null_count)
    if kind is not None:
        return _declared(found, array, kind)
    if array.null_count == len(array):
        return replace(found, reason="nothing but gaps")
    declared = pa.types.is_dictionary(column.type)
    return _of_text(found, array, declared) if texts else _of_type(found, array, declared)


def _declared_text(name: str, column: pa.ChunkedArray) -> Column:
    """Chunk by chunk: texts are large, and nothing but their gaps and spaces is looked for."""
    looked = [(array.null_count, trim) for array, trim in (_cleaned(chunk, "text") for chunk in column.chunks)]
    gaps, trim = sum(gaps for gaps, _ in looked), any(trim for _, trim in looked)
    return Column(name, "text", BY_HAND, gaps, len(column), trim)


def _cleaned(array: pa.Array, kind: str | None) -> tuple[pa.Array, bool]:
    """Texts without spaces around them and with gaps as null, and whether there were such spaces."""
    import pyarrow as pa

    if kind in NUMBERS and _are_numbers(array):
        return array, False
    encoded = array.dictionary_encode()  # what repeats is looked at once
    trimmed, plain = (values.cleaned(encoded.dictionary, trim=trim) for trim in (True, False))
    if trimmed.null_count or trimmed is not encoded.dictionary:
        array = trimmed.take(encoded.indices.cast(pa.int64()))
    return array, not trimmed.equals(plain)


def _are_numbers(array: pa.Array) -> bool:
    import pyarrow as pa

    try:
        return array.cast(pa.float64()) is not None
    except pa.ArrowInvalid:
        return False


def _of_type(column: Column, array: pa.Array, declared: bool) -> Column:
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_boolean(array.type):
        return _unless_constant(
            replace(column, kind="yes/no", reason="true or false"), pc.count_distinct(array).as_py()
        )
    if pa.types.is_temporal(array.type) and not pa.types.is_duration(array.type):
        return _of_date(column, array, f"{array.type}")
    if declared:
        return _unless_constant(replace(column, kind="category", reason="categories"), pc.count_distinct(array).as_py())
    return _of_numbers(column, values.numbers(array, column, lambda row, value: None))


def _of_text(column: Column, array: pa.Array, declared: bool) -> Column:
    import pyarrow.compute as pc

    if declared:
        return _unless_constant(replace(column, kind="category", reason="categories"), pc.count_distinct(array).as_py())
    number = _as_numbers(column, array)
    if number is not None:
        return number
    different = pc.unique(array.drop_null())
    distinct = different[:GLANCE].to_pylist()
    if len(different) == 1:
        named = replace(column, kind="category", reason=f"always {distinct[0][:40]!r}")
        return _unless_constant(named, 1, named.reason)
    if {value.lower() for value in distinct} in PAIRS:
        return replace(column, kind="yes/no", reason=" and ".join(map(repr, sorted(distinct))))
    if distinct[0][:1].isdigit():
        for form in FORMS:
            found = values.parsed(array, form)
            if found.null_count == array.null_count:
                return _of_date(replace(column, format=form), found, f"dates or times, {form}")
    return _of_names(column, array, len(different), distinct)


def _as_numbers(column: Column, array: pa.Array) -> Column | None:
    """A column of numbers written out; None where it is not one, an error where a few values spoil it."""
    glance: list[str] = []
    first = array.drop_null()[:GLANCE]
    values.numbers(first, column, lambda row, value: glance.append(value))
    if len(glance) == len(first) and not all(map(values.THOUSANDS.fullmatch, glance)):
        return None
    wrong: list[tuple[int, str]] = []
    floats = values.numbers(array, column, lambda row, value: wrong.append((row, value)))
    n = len(array) - array.null_count
    if wrong and all(values.THOUSANDS.fullmatch(value) for _, value in wrong):
        column, wrong = replace(column, thousands=True), []
        floats = values.numbers(array, column, lambda row, value: wrong.append((row, value)))
    if not wrong:
        return _of_numbers(column, floats)
    if n - len(wrong) > MOSTLY * n and n >= FEW:
        row, value = wrong[0]
        raise DomainError(
            f"column {column.name!r} holds {value[:60]!r} (",
            HERE,
            f"), where {n - len(wrong):,} of {n:,} values are finite numbers.",
            row=row,
            columns=[column.name],
            remedy=declare_category("Correct it", column.name),
        )
    return None


def _of_numbers(column: Column, floats: Any) -> Column:
    seen = floats[~np.isnan(floats)]
    if not len(seen):
        return replace(column, reason="nothing but gaps")
    low, high = seen.min(), seen.max()
    if low == high:
        return replace(column, kind="constant" if len(seen) > 1 else "number", reason=f"always {low:g}")  # no scale
    finite = seen[np.isfinite(seen)]
    said = f"from {low:g} to {high:g}{', thousands separated' if column.thousands else ''}"
    if not (finite == np.round(finite)).all():
        return replace(column, kind="number", reason=f"numbers {said}")
    distinct = len(np.unique(seen))
    if distinct == 2 and low == 0 and high == 1:
        return replace(column, kind="yes/no", reason="0 and 1")
    chance = len(seen) ** 2 / (2 * (high - low + 1))
    if distinct == len(seen) and chance > COLLISIONS:
        return replace(column, kind="identifier", reason=f"{distinct:,} whole numbers {said}, none twice")
    return replace(column, kind="count" if low >= 0 else "number", reason=f"whole numbers {said}")


def _of_date(column: Column, array: pa.Array, why: str) -> Column:
    """Its parts that vary; a date none of whose parts does says nothing."""
    when = values.moments(array, column, lambda row, value: None)
    parts = tuple(part for part in PARTS if len(np.unique(values.part(when, part)[0])) > 1 + bool(when.null_count))
    if not parts:
        return replace(column, reason=f"{why}; month, weekday and hour are always the same")
    return replace(column, kind="date", parts=parts, reason=why)


def _of_names(column: Column, array: pa.Array, distinct: int, some: list[str]) -> Column:
    """Names that repeat are categories; those that do not are texts if they have words, else identifiers."""
    import pyarrow.compute as pc

    n = len(array) - array.null_count
    words = pc.mean(pc.add(pc.count_substring_regex(array, r"\s+"), 1)).as_py()
    mostly = distinct > n / 2 and n >= FEW
    if words >= (3 if mostly else 8 if n >= FEW else 4):
        return replace(column, kind="text", reason=f"{words:.0f} words a row")
    if mostly:
        return replace(column, kind="identifier", reason=f"{distinct:,} of {n:,} values differ")
    others = f" and {distinct - 3:,} more" if distinct > 3 else ""
    return replace(column, kind="category", reason=f"{distinct:,} names: {', '.join(sorted(some)[:3])[:80]}{others}")


def _declared(column: Column, array: pa.Array, kind: str) -> Column:
    """As somebody said; what reading needs to know is still looked up."""
    import pyarrow as pa

    column = replace(column, kind=kind, reason=BY_HAND)  # type: ignore[arg-type]
    if kind == "date":
        forms = FORMS if values.is_text(array.type) else ("",)
        for form in forms:
            found = values.moments(array, replace(column, format=form), lambda row, value: None)
            if found.null_count == array.null_count or len(forms) == 1:
                return replace(column, format=form, parts=PARTS)
        raise DomainError(
            f"column {column.name!r} holds no dates that can be read.",
            columns=[column.name],
            remedy="Write them as 2026-11-15T23:43:00.",
        )
    if kind in NUMBERS and values.is_text(array.type):
        commas = [v for v in array.drop_null().slice(0, 1000).to_pylist() if values.THOUSANDS.fullmatch(v)]
        return replace(column, thousands=bool(commas))
    return column if not pa.types.is_null(array.type) else replace(column, missing=len(array))


def _unless_constant(column: Column, distinct: int, why: str = "always the same") -> Column:
    """What never varies says nothing; of a few rows it may be chance."""
    return column if distinct > 1 or column.rows < FEW else replace(column, kind="constant", reason=why)
