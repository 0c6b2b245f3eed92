"""JSON, one object a line; its keys are the columns."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

from deciban.errors import Remedy
from deciban.read.opening import FileSource, Rewound
from deciban.read.source import SKIP_BAD, checked_names

if TYPE_CHECKING:
    import pyarrow as pa

FIRST = 2**23  # bytes of which the first block has the columns and their types
BLOCK = 2**21  # bytes parsed at a time: Arrow takes several times as much meanwhile
MOST = 2**28  # bytes of a line


class JSONLinesSource(FileSource):
    """Objects of text, numbers, true, false and null; a key that is absent from a line is missing there."""

    def __init__(self, path: str | os.PathLike[str], *, skip_bad: bool = False) -> None:
        super().__init__(path, skip_bad=skip_bad)
        self._held: Any = None
        self._schema: Any = None
        reading = self._read()
        first = next(reading, None)
        if first is None:
            raise self.without_rows()
        self._columns = checked_names(first.schema.names, self.name)
        if self.stdin:  # the only chance to see the columns was to begin
            self._held = chain([first], reading)

    @property
    def columns(self) -> tuple[str, ...]:
        return self._columns

    def pieces(self) -> Iterator[pa.Table]:
        """As Arrow parses them."""
        if not self.stdin:
            yield from self._read()
            return
        if self._held is None:
            raise self.read_twice()
        held, self._held = self._held, None
        yield from held

    def _read(self) -> Iterator[pa.Table]:
        """Some lines at a time; the first block says which columns there are, and of what type."""
        for line, text in self._blocks():
            if text.strip():
                table = self._parsed(text, line)
                self._schema = self._schema or _plain(table.schema)
                yield table.select(self._schema.names).cast(self._schema)

    def _blocks(self) -> Iterator[tuple[int, bytes]]:
        """Whole lines, and the number of the first."""
        line, rest = 1, b""
        with self.opened() as stream:
            while True:
                found = stream.read(max(FIRST if self._schema is None else BLOCK, len(rest)))
                self.progressed()
                end = found.rfind(b"\n") + 1 if found else 0
                if found and not end:
                    rest += found
                else:
                    text, rest = rest + found[:end], found[end:]
                    yield line, text
                    line += text.count(b"\n")
                if len(rest) > MOST:
                    raise self.at_line(f"the line is longer than {MOST:,} bytes.", line, remedy="Cut it up.")
                if not found:
                    return

    def _parsed(self, text: bytes, line: int) -> pa.Table:
        import pyarrow as pa
        from pyarrow import json as arrow_json

        options = arrow_json.ParseOptions(explicit_schema=self._schema, unexpected_field_behavior="ignore")
        reading = arrow_json.ReadOptions(use_threads=False, block_size=len(text) + 1)
        try:
            return arrow_json.read_json(
                pa.BufferReader(text), reading, options if self._schema is not None else arrow_json.ParseOptions()
            )
        except pa.ArrowInvalid as error:
            return self._line_by_line(text, line, error)

    def _line_by_line(self, text: bytes, line: int, error: Exception) -> pa.Table:
        """The first bad line as an error; or all others, where bad ones are to be skipped."""
        import pyarrow as pa

        rows: list[dict[str, Any]] = []
        for at, each in enumerate(text.split(b"\n"), line):
            if not each.strip():
                continue
            try:
                row = json.loads(each)
                if not isinstance(row, dict):
                    raise ValueError(f"{type(row).__name__}, not an object of columns")
                if self._schema is not None:
                    pa.Table.from_pylist([row], schema=self._schema)
            except (ValueError, TypeError, pa.ArrowInvalid, pa.ArrowTypeError) as wrong:
                why = f"the line does not fit the columns ({str(wrong).splitlines()[0][:150]})."
                reason = self.at_line(why, at, remedy=Remedy("Correct it, or skip bad rows (", SKIP_BAD, ")."))
                if not self.skip_bad:
                    raise reason from None
                self.skipped.add(reason)
                continue
            rows.append(row)
        try:
            return pa.Table.from_pylist(rows, schema=self._schema)
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            raise self.refusal(
                f": a column holds values of several types ({str(error).splitlines()[0][:150]}).",
                remedy="Write them all as text, or all as numbers.",
            ) from None

    def place(self, row: int) -> tuple[str, int]:
        """Lines and rows are one, but for empty lines."""
        if self.stdin or self.skip_bad:
            return super().place(row)
        with self.opened() as stream:
            found = -1
            for at, each in enumerate(_lines(stream), 1):
                found += bool(each.strip())
                if found == row:
                    return self.line(at)
        return super().place(row)


def _plain(schema: pa.Schema) -> pa.Schema:
    """Columns that were all null may hold text later; whole numbers may be followed by others."""
    import pyarrow as pa

    def settled(kind: pa.DataType) -> pa.DataType:
        if pa.types.is_null(kind):
            return pa.string()
        return pa.float64() if pa.types.is_integer(kind) else kind

    return pa.schema([field.with_type(settled(field.type)) for field in schema])


def _lines(stream: Any) -> Iterator[bytes]:
    import io

    yield from io.BufferedReader(Rewound(b"", stream), FIRST)
