"""Tables as they are written: CSV, JSON lines or Parquet, batch by batch, to stdout or to a file that appears whole."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from deciban.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

FORMATS = ("csv", "jsonl", "parquet")
ENDINGS = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet", ".pq": "parquet"}


class Writer(Protocol):
    """Takes tables of one schema; `close` ends the file."""

    def write(self, table: pa.Table) -> None:
        """Some more rows."""

    def close(self) -> None:
        """The end."""


class CSVWriter:
    """A header, then rows; text is quoted where it must be."""

    def __init__(self, stream: Any, delimiter: str = ",") -> None:
        self.stream, self.delimiter, self.headed = stream, delimiter, False

    def write(self, table: pa.Table) -> None:
        """Some more rows."""
        from pyarrow import csv

        if not self.headed:
            self.stream.write((self.delimiter.join(map(self._name, table.column_names)) + "\n").encode())
            self.headed = True
        plain = not any(_needs_quotes(column, self.delimiter) for column in table.columns)
        style = "none" if plain else "needed"
        options = csv.WriteOptions(
            include_header=False, delimiter=self.delimiter, quoting_style=style, batch_size=2**14
        )
        csv.write_csv(table, self.stream, options)

    def _name(self, name: str) -> str:
        odd = any(sign in name for sign in ('"', "\n", "\r", self.delimiter))
        return '"' + name.replace('"', '""') + '"' if odd else name

    def close(self) -> None:
        """Nothing is owed."""


class JSONLinesWriter:
    """An object a line, put together column by column."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def write(self, table: pa.Table) -> None:
        """Some more rows."""
        import pyarrow as pa
        import pyarrow.compute as pc

        pieces: list[Any] = []
        for at, name in enumerate(table.column_names):
            opening = ("{" if at == 0 else ", ") + json.dumps(name, ensure_ascii=False) + ": "
            pieces += [pa.scalar(opening), _json(table[name].combine_chunks())]
        lines = pc.binary_join_element_wise(*pieces, pa.scalar("}\n"), "")
        if isinstance(lines, pa.ChunkedArray):
            lines = lines.combine_chunks()
        self.stream.write("".join(lines.to_pylist()).encode())

    def close(self) -> None:
        """Nothing is owed."""


class ParquetWriter:
    """Row groups as the batches come."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.writer: Any = None

    def write(self, table: pa.Table) -> None:
        """Some more rows."""
        from pyarrow import parquet

        if self.writer is None:
            self.writer = parquet.ParquetWriter(self.stream, table.schema)
        self.writer.write_table(table)

    def close(self) -> None:
        """Write where everything is."""
        if self.writer is not None:
            self.writer.close()


def format_of(output: str | None, wanted: str | None, json_wanted: bool = False) -> str:
    """The format that was asked for, by name or by the ending of the file."""
    if wanted is not None:
        if wanted not in (*FORMATS, "tsv"):
            raise UsageError(f"--format {wanted!r} is not one of {', '.join(FORMATS)}, tsv.")
        return wanted
    if output is None or output == "-":
        return "jsonl" if json_wanted else "csv"
    ending = Path(output).suffix.lower()
    if ending not in ENDINGS:
        raise UsageError(
            f"{output!r}: the format cannot be told by this name. End it in .csv, .jsonl or .parquet, or add --format."
        )
    return ENDINGS[ending]


def write_tables(tables: Iterator[pa.Table], output: str | None, kind: str) -> None:
    """Write tables in the order in which they come; a file appears when it is whole, or not at all."""
    if output is None or output == "-":
        if kind == "parquet" and sys.stdout.isatty():
            raise UsageError("Parquet is not for terminals. Give a file with -o, or send it through a pipe.")
        _fill(_open(sys.stdout.buffer, kind), tables)
        sys.stdout.buffer.flush()
        return
    from deciban.store.files import write_whole

    def fill(descriptor: int) -> None:
        with os.fdopen(os.dup(descriptor), "wb", buffering=2**20) as stream:
            _fill(_open(stream, kind), tables)

    write_whole(output, fill)


def write_bytes(path: str | os.PathLike[str], data: bytes) -> None:
    """A file that appears whole, or not at all."""
    from deciban.store.files import write_all, write_whole

    write_whole(path, lambda descriptor: write_all(descriptor, data))


def _fill(writer: Writer, tables: Iterator[pa.Table]) -> None:
    for table in tables:
        writer.write(table)
    writer.close()


def _open(stream: Any, kind: str) -> Writer:
    makers: dict[str, Callable[[Any], Writer]] = {
        "csv": CSVWriter,
        "tsv": lambda stream: CSVWriter(stream, "\t"),
        "jsonl": JSONLinesWriter,
        "parquet": ParquetWriter,
    }
    return makers[kind](stream)


def _needs_quotes(column: Any, delimiter: str) -> bool:
    """Whether texts hold a sign that would end the cell, or are empty, which is not the same as missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = pa.chunked_array([chunk.dictionary for chunk in column.chunks], column.type.value_type)
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return False
    odd = pc.match_substring_regex(column, f'^$|["\r\n{delimiter}]')
    return bool(pc.any(odd).as_py())


def _json(column: Any) -> Any:
    """A column as JSON texts."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_floating(kind):
        finite = pc.is_finite(column)
        return pc.fill_null(pc.if_else(finite, pc.cast(column, pa.string()), _odd_number(column)), "null")
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return pc.fill_null(pc.cast(column, pa.string()), "null")
    if pa.types.is_dictionary(kind):
        words = pa.array(
            [json.dumps(value, ensure_ascii=False) for value in column.dictionary.to_pylist()], pa.string()
        )
        return pc.fill_null(words.take(column.indices), "null")
    return pa.array([json.dumps(value, ensure_ascii=False, default=str) for value in column.to_pylist()], pa.string())


def _odd_number(column: Any) -> Any:
    """What JSON has no number for: infinities as text, NaN as null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    sign = pc.if_else(pc.greater(column, 0.0), '"inf"', '"-inf"')
    return pc.if_else(pc.is_nan(column), pa.scalar("null"), sign)
