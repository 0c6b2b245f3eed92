"""Tables as output: CSV, JSON lines or Parquet, batch by batch, to stdout or to a file."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from deciban.cli.output import answer_stream, is_terminal
from deciban.errors import UsageError
from deciban.terminal import json_text, lines

if TYPE_CHECKING:
    import pyarrow as pa

    from deciban.statistics import Array

FORMATS = ("csv", "jsonl", "parquet", "tsv")
ENDINGS = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet", ".pq": "parquet"}
DIGITS = 6  # significant digits of a number written as text
POWERS = tuple(10.0**power for power in range(23))  # those that a double holds exactly
FORMULA = r"^[=+\-@\t\r]"  # beginnings of cells that spreadsheets take for formulas
NUMBER = r"^[+-]?(?i:[0-9]+\.?[0-9]*(?:e[+-]?[0-9]+)?|\.[0-9]+(?:e[+-]?[0-9]+)?|inf|infinity|nan)$"


def format_of(output: str | None, wanted: str | None, as_json: bool = False) -> str:
    """The format of the output: as --format says, else by the ending of the file."""
    if wanted is not None:
        if wanted not in FORMATS:
            raise UsageError(f"--format {wanted!r} is not one of {', '.join(FORMATS)}.")
        return wanted
    if output is None or output == "-":
        return "jsonl" if as_json else "csv"
    ending = Path(output).suffix.lower()
    if ending == ".deciban":
        raise UsageError(f"{output!r} is the name of a model, but --output is a table. Save the model with --save.")
    if ending not in ENDINGS:
        raise UsageError(f"{output!r} does not end in .csv, .tsv, .jsonl or .parquet. Name the format with --format.")
    return ENDINGS[ending]


def write_tables(tables: Iterable[pa.Table], output: str | None, kind: str, guarded: bool = False) -> None:
    """Write tables one after the other; a file gets its name once it is complete.

    If `guarded`, text cells that a spreadsheet would take for formulas begin with an apostrophe.
    """
    if guarded:
        if kind not in ("csv", "tsv"):
            raise UsageError(f"--spreadsheet-safe is for CSV and TSV, and the output is {kind}. Leave it out.")
        tables = map(without_formulas, tables)
    if output is not None and output != "-":
        from deciban.store.files import write_whole

        def fill(descriptor: int) -> None:
            with os.fdopen(os.dup(descriptor), "wb", buffering=2**20) as stream:
                WRITERS[kind](stream, tables)

        write_whole(output, fill)
        return
    if kind == "parquet" and is_terminal():
        raise UsageError("Parquet is binary and is not printed on a terminal. Give a file with -o, or use a pipe.")
    with answer_stream(json_text if kind == "jsonl" else lines) as stream:
        WRITERS[kind](stream, tables)


def beside(given: pa.Table, answers: pa.Table) -> pa.Table:
    """Join the columns of both tables; an answer whose name is taken is called "NAME (deciban)"."""
    for name, column in zip(answers.column_names, answers.columns):
        given = given.append_column(name if name not in given.column_names else f"{name} (deciban)", column)
    return given


def rounded(values: Array, digits: int | None = DIGITS) -> Array:
    """Round to significant digits; all digits if None.

    >>> import numpy as np
    >>> rounded(np.array([0.123456789, 1.2213e-281, 123456.0, -np.inf, 0.0]), 3).tolist()
    [0.123, 1.22e-281, 123000.0, -inf, 0.0]
    """
    import numpy as np

    if digits is None:
        return values
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        places = digits - 1 - np.floor(np.log10(np.abs(values)))
        # fmax and fmin turn NaN into 0
        scale = np.array(POWERS)[np.fmin(np.fmax(places, 0), len(POWERS) - 1).astype(np.intp)]
        found = np.rint(values * scale) / scale
    beyond = np.flatnonzero(((places < 0) | (places >= len(POWERS))) & np.isfinite(places))
    found[beyond] = [float(f"{value:.{digits}g}") for value in values[beyond].tolist()]
    return np.where(np.isfinite(values) & (values != 0), found, values)


def without_formulas(table: pa.Table) -> pa.Table:
    """Put an apostrophe before names and texts that a spreadsheet would take for formulas; numbers stay as they are.

    >>> import pyarrow as pa
    >>> without_formulas(pa.table({"=a": ["=1+1", "-2.5", "b", None]})).to_pydict()
    {"'=a": ["'=1+1", '-2.5', 'b', None]}
    """
    names = [f"'{name}" if re.search(FORMULA, name) else name for name in table.column_names]
    columns = [_guarded(column) if _is_text(column.type) else column for column in table.columns]
    return type(table).from_arrays(columns, names=names)


def _is_text(kind: pa.DataType) -> bool:
    import pyarrow as pa

    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(value) or pa.types.is_large_string(value))


def _guarded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    formula = pc.match_substring_regex(column, FORMULA)
    number = pc.match_substring_regex(column, NUMBER)
    marked = pc.binary_join_element_wise(pa.scalar("'", column.type), column, pa.scalar("", column.type))
    return pc.if_else(pc.and_not(formula, number), marked, column)


# -- formats -----------------------------------------------------------------------------------------------------------
def _write_csv(stream: BinaryIO, tables: Iterable[pa.Table], delimiter: str = ",") -> None:
    """A header, then rows; text is quoted where needed."""
    from pyarrow import csv

    has_header = False
    for table in tables:
        if not has_header:
            stream.write((delimiter.join(_quoted_name(name, delimiter) for name in table.column_names) + "\n").encode())
            has_header = True
        quoting = "needed" if any(_needs_quotes(column, delimiter) for column in table.columns) else "none"
        options = csv.WriteOptions(include_header=False, delimiter=delimiter, quoting_style=quoting, batch_size=2**14)
        csv.write_csv(table, stream, options)


def _quoted_name(name: str, delimiter: str) -> str:
    special = any(character in name for character in ('"', "\n", "\r", delimiter))
    return '"' + name.replace('"', '""') + '"' if special else name


def _write_json_lines(stream: BinaryIO, tables: Iterable[pa.Table]) -> None:
    """One object per line, joined from columns of JSON texts."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for table in tables:
        parts: list[Any] = []
        for at, name in enumerate(table.column_names):
            opening = ("{" if at == 0 else ", ") + json.dumps(name, ensure_ascii=False) + ": "
            parts += [pa.scalar(opening), _as_json(table[name].combine_chunks())]
        lines = pc.binary_join_element_wise(*parts, pa.scalar("}\n"), "")
        stream.write("".join(lines.to_pylist()).encode())


def _write_parquet(stream: BinaryIO, tables: Iterable[pa.Table]) -> None:
    """One row group per table, then the footer."""
    from pyarrow import parquet

    writer: Any = None
    try:
        for table in tables:
            writer = writer or parquet.ParquetWriter(stream, table.schema)
            writer.write_table(table)
    except BaseException:
        if writer is not None:
            writer.is_open = False  # or it would write a footer when it is freed, to a stream that is closed by then
        raise
    if writer is not None:
        writer.close()


WRITERS: dict[str, Callable[[BinaryIO, Iterable[pa.Table]], None]] = {
    "csv": _write_csv,
    "tsv": partial(_write_csv, delimiter="\t"),
    "jsonl": _write_json_lines,
    "parquet": _write_parquet,
}


def _needs_quotes(column: pa.ChunkedArray, delimiter: str) -> bool:
    """Whether a text contains a special character, or is empty and would be read as missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = pa.chunked_array([chunk.dictionary for chunk in column.chunks], column.type.value_type)
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return False
    special = pc.match_substring_regex(column, f'^$|["\r\n{delimiter}]')
    return bool(pc.any(special).as_py())


def _as_json(column: pa.Array) -> pa.Array:
    """A column as JSON texts; infinities are texts and NaN is null, because JSON has no numbers for them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_floating(kind):
        infinite = pc.if_else(pc.greater(column, 0.0), '"inf"', '"-inf"')
        special = pc.if_else(pc.is_nan(column), pa.scalar("null"), infinite)
        return pc.fill_null(pc.if_else(pc.is_finite(column), pc.cast(column, pa.string()), special), "null")
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return pc.fill_null(pc.cast(column, pa.string()), "null")
    if pa.types.is_dictionary(kind):
        names = [json.dumps(value, ensure_ascii=False) for value in column.dictionary.to_pylist()]
        return pc.fill_null(pa.array(names, pa.string()).take(column.indices), "null")
    return pa.array([json.dumps(value, ensure_ascii=False, default=str) for value in column.to_pylist()], pa.string())
