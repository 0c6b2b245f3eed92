"""Tables as output: CSV, JSON lines or Parquet, batch by batch, to stdout or a file that appears when it is whole."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from deciban.errors import DecibanError, UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from deciban.statistics import Array

FORMATS = ("csv", "jsonl", "parquet", "tsv")
ENDINGS = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet", ".pq": "parquet"}
HEAD_BYTES = 4096  # of a file, read to recognise its kind
DIGITS = 6  # significant digits of a number written as text
LARGEST_EXACT = 22  # the largest power of ten that a double holds exactly


def format_of(output: str | None, wanted: str | None, as_json: bool = False) -> str:
    """The format of the output: as --format says, else by the ending of the file."""
    if wanted is not None:
        if wanted not in FORMATS:
            raise UsageError(f"--format {wanted!r} is not one of {', '.join(FORMATS)}.")
        return wanted
    if output is None or output == "-":
        return "jsonl" if as_json else "csv"
    ending = Path(output).suffix.lower()
    if ending not in ENDINGS:
        raise UsageError(f"{output!r} does not end in .csv, .tsv, .jsonl or .parquet. Name the format with --format.")
    return ENDINGS[ending]


def check_target(output: str | None, inputs: Sequence[str | None], force: bool, is_ours: Callable[[str], bool]) -> None:
    """Raise UsageError if writing to `output` would destroy anything but an earlier output of deciban.

    Refused are devices, pipes and sockets, inputs of the same command, and, without `force`, an existing file of
    another kind. Permissions do not matter: a superuser may replace all of them.
    """
    if output is None or output == "-" or not os.path.exists(output) or os.path.isdir(output):
        return
    if not os.path.isfile(output):
        raise UsageError(f"{output!r} is a device or a pipe, not a file. Leave out -o and redirect stdout instead.")
    if any(path and os.path.exists(path) and os.path.samefile(path, output) for path in inputs):
        raise UsageError(f"{output!r} is an input of this command and would be replaced. Give another file.")
    if not force and os.path.getsize(output) and not is_ours(output):
        raise UsageError(
            f"{output!r} exists and is not an earlier output of this command. Give another file, or replace it with "
            "--force."
        )


def is_model(path: str) -> bool:
    """Whether a file is a model of deciban."""
    from deciban.store import describe

    try:
        return bool(describe(path))
    except DecibanError:
        return False


def has_columns(*wanted: str) -> Callable[[str], bool]:
    """Whether a file is a table with all these columns; an empty list of columns fits no file."""

    def check(path: str) -> bool:
        from deciban.read.files import open_source

        try:
            return bool(wanted) and set(wanted) <= set(open_source(path).columns)
        except (DecibanError, OSError):
            return False

    return check


def begins_like(*starts: str) -> Callable[[str], bool]:
    """Whether the beginning of a file holds one of these texts."""

    def check(path: str) -> bool:
        with open(path, "rb") as file:
            head = file.read(HEAD_BYTES)
        return any(start.encode() in head for start in starts)

    return check


def write_tables(tables: Iterable[pa.Table], output: str | None, kind: str) -> None:
    """Write tables one after the other; a file appears when it is whole, or not at all."""
    if output is None or output == "-":
        if kind == "parquet" and sys.stdout.isatty():
            raise UsageError("Parquet is binary and is not printed on a terminal. Give a file with -o, or use a pipe.")
        WRITERS[kind](sys.stdout.buffer, tables)
        sys.stdout.buffer.flush()
        return
    from deciban.store.files import write_whole

    def fill(descriptor: int) -> None:
        with os.fdopen(os.dup(descriptor), "wb", buffering=2**20) as stream:
            WRITERS[kind](stream, tables)

    write_whole(output, fill)


def write_bytes(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file that appears when it is whole, or not at all."""
    from deciban.store.files import write_all, write_whole

    write_whole(path, lambda descriptor: write_all(descriptor, data))


def beside(given: pa.Table, answers: pa.Table) -> pa.Table:
    """The columns of both tables; answers get a mark behind names that are taken."""
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
        scale = 10.0 ** np.clip(places, 0, LARGEST_EXACT)
        found = np.rint(values * scale) / scale
    beyond = np.flatnonzero(((places < 0) | (places > LARGEST_EXACT)) & np.isfinite(places))
    found[beyond] = [float(f"{value:.{digits}g}") for value in values[beyond].tolist()]
    return np.where(np.isfinite(values) & (values != 0), found, values)


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
    for table in tables:
        writer = writer or parquet.ParquetWriter(stream, table.schema)
        writer.write_table(table)
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
