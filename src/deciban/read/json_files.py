"""Files of JSON: one object a line, or one array or object for the whole table; and how deeply JSON is nested."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import json as arrow_json

from deciban.errors import InputError, Remedy
from deciban.read.paths import Limits, too_long
from deciban.read.source import SKIP_BAD, FileSource, HeldSource, Rewound, Skipped, checked_names

FIRST_BLOCK = 2**23  # bytes of the block that columns and types are taken from
CHUNK = 2**15  # bytes of a part of the first block, at least
BLOCK = 2**21  # bytes parsed at a time; Arrow needs several times as much meanwhile


class JSONLinesSource(FileSource):
    """One object a line, of text, numbers, true, false and null; a key that a line lacks is missing there.

    If a line has a key several times, its last value counts, as in most readers of JSON.

    The first block of lines gives the columns and their types. It is parsed once, if it is the same when it is read
    again.
    """

    def __init__(self, path: str | os.PathLike[str], *, skip_bad: bool = False, limits: Limits | None = None) -> None:
        super().__init__(path, skip_bad=skip_bad, limits=limits)
        self._held: Iterator[pa.Table] | None = None
        self._schema: pa.Schema | None = None
        self._first: tuple[bytes, pa.Table, Skipped] | None = None  # first lines, parsed, and those skipped
        reading = self._read()
        first = next(reading, None)
        if first is None:
            raise self.without_rows()
        self._columns = checked_names(first.schema.names, self.name)
        if self.stdin:  # which cannot be read from the beginning again
            self._held, self._first = chain([first], reading), None

    @property
    def columns(self) -> tuple[str, ...]:
        return self._columns

    def pieces(self) -> Iterator[pa.Table]:
        """Blocks of lines."""
        if not self.stdin:
            yield from self._read()
            return
        if self._held is None:
            raise self.read_twice()
        held, self._held = self._held, None
        yield from held

    def _read(self) -> Iterator[pa.Table]:
        for line, text in self._few_lines():
            if not text or text.isspace():
                continue
            if self._first is not None and self._first[0] == text:
                _, table, skipped = self._first
                self.skipped, self._first = self.skipped + skipped, None
                yield table
                continue
            before, self._first = self._schema, None
            others, self.skipped = self.skipped, Skipped()
            table = self._first_table(text, line) if before is None else self._parsed(text, line)
            skipped, self.skipped = self.skipped, others + self.skipped
            if not table.num_columns:  # all lines were skipped
                continue
            self._schema = self._schema or _general_types(table.schema)
            table = table.select(self._schema.names).cast(self._schema)
            if before is None:
                self._first = text, table, skipped
            yield table

    def _few_lines(self) -> Iterator[tuple[int, bytes]]:
        """Blocks, and parts of those whose lines are so many that the known columns would have too many cells."""
        for line, text in self._blocks():
            columns = 0 if self._schema is None else len(self._schema)
            if columns < 16 or self._first is not None:  # a line has two bytes or more
                yield line, text
                continue
            most, begin = max(1, self.limits.cells // columns), 0
            feeds = np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n"))
            for at in range(most - 1, len(feeds), most):
                yield line + at - most + 1, text[begin : feeds[at] + 1]
                begin = int(feeds[at]) + 1
            yield line + len(feeds) // most * most, text[begin:]

    def _first_table(self, text: bytes, line: int) -> pa.Table:
        """The table of the first lines, whose columns are not known; an error if it has more cells than the limit.

        Most often the columns of the first few lines are those of all. Otherwise the lines are parsed in parts that are
        so short that all keys of a part, in all its lines, are few cells.
        """
        if len(text) > 2 * CHUNK:
            table = self._with_columns_of_start(text)
            if table is not None:
                return table
        parts, columns, rows = [], dict[str, None](), 0
        for at, part in self._parts(text, line):
            table = self._parsed(part, at)
            columns |= dict.fromkeys(table.column_names)
            rows += table.num_rows
            parts.append(table)
            if len(columns) * rows > self.limits.cells:
                raise self.refusal(
                    f": the first {rows:,} lines have {len(columns):,} different keys.",
                    remedy=self.limits.remedy("cells", "Write rows with the same keys, or one key and value a line"),
                )
        try:
            return parts[0] if len(parts) == 1 else pa.concat_tables(parts, promote_options="permissive")
        except (pa.ArrowInvalid, pa.ArrowTypeError):  # types that only all lines together show
            others, self.skipped = self.skipped, Skipped()
            try:
                return self._parsed(text, line)
            finally:
                self.skipped = others

    def _with_columns_of_start(self, text: bytes) -> pa.Table | None:
        """The table of lines that have the columns and types of the first few of them; None if they have others."""
        start = text[: text.find(b"\n", CHUNK) + 1]
        if not start or not _is_utf8(text) or block_nests_deeper(text, self.limits.depth):
            return None
        try:
            schema = _general_types(_parsed(start).schema)
            if len(schema) * np.count_nonzero(np.frombuffer(text, np.uint8) == ord("\n")) > self.limits.cells:
                return None
            return _parsed(text, schema, "error")
        except pa.ArrowInvalid:
            return None

    def _parts(self, text: bytes, line: int) -> Iterator[tuple[int, bytes]]:
        """Lines in parts whose keys, in all their lines, are at most as many cells as the limit, and their numbers."""
        letters, begin, lines, keys = np.frombuffer(text, np.uint8), 0, 0, 0
        for at in range(0, len(text), CHUNK):
            part = letters[at : at + CHUNK]
            more = int(np.count_nonzero(part == ord("\n"))), int(np.count_nonzero(part == ord(":")))
            if (lines + more[0]) * (keys + more[1]) > self.limits.cells and at > begin:
                end = text.find(b"\n", at) + 1 or len(text)
                yield line, text[begin:end]
                line, begin = line + text.count(b"\n", begin, end), end
                lines = keys = 0
            lines, keys = lines + more[0], keys + more[1]
        if begin < len(text):
            yield line, text[begin:]

    def _blocks(self) -> Iterator[tuple[int, bytes]]:
        """Whole lines, and the number of the first; a line that is too long is an error, or left out and counted."""
        most = self.limits.record_bytes
        line, size = 1, 0
        held: list[bytes] | None = []  # pieces, of `size` bytes, of a line whose end was not read; None if too long
        with self.opened() as stream:
            while found := stream.read(min(FIRST_BLOCK if self._first or self._schema is None else BLOCK, most)):
                self.progressed(len(found))
                end, last = found.find(b"\n") + 1, found.rfind(b"\n") + 1
                size += end or len(found)
                if size > most and held is not None:
                    held = None
                    self.raise_or_skip(too_long(self.line(line)[0], "the line", self.limits, line))
                if not end:
                    held = None if held is None else [*held, found]
                    continue
                text = found[end:last] if held is None else b"".join([*held, found[:last]])
                line, held, size = line + (held is None), [found[last:]], len(found) - last
                yield line, text
                line += int(np.count_nonzero(np.frombuffer(text, np.uint8) == ord("\n")))  # quicker than bytes.count
            if held:
                yield line, b"".join(held)

    def _parsed(self, text: bytes, line: int) -> pa.Table:
        if not _is_utf8(text):  # which Arrow does not check
            return self._line_by_line(text, line)
        if block_nests_deeper(text, self.limits.depth):  # Arrow's parser would overflow the stack
            text = self._without_deep_lines(text, line)
            if not text.strip() or block_nests_deeper(text, self.limits.depth):  # nested over several lines
                return self._line_by_line(text, line)
        try:
            return _parsed(text, self._schema)
        except pa.ArrowInvalid as error:
            return self._line_by_line(text, line, error)

    def _without_deep_lines(self, text: bytes, line: int) -> bytes:
        """The lines with those emptied that are nested too deeply; they are errors, or counted as skipped."""
        depth, lines = self.limits.depth, text.split(b"\n")
        for at, each in enumerate(lines):
            if each.count(b"[") + each.count(b"{") > depth and nests_deeper(each, depth):
                self.raise_or_skip(
                    self.at_line(
                        f"arrays and objects are nested more than {depth} deep.",
                        line + at,
                        remedy=Remedy("Correct the line, or skip bad rows (", SKIP_BAD, ")."),
                    )
                )
                lines[at] = b""
        return b"\n".join(lines)

    def _line_by_line(self, text: bytes, line: int, error: pa.ArrowInvalid | None = None) -> pa.Table:
        """The lines that can be read, if bad ones are skipped; otherwise the first bad line is an error."""
        rows: list[dict[str, Any]] = []
        for at, each in enumerate(text.split(b"\n"), line):
            if not each.strip():
                continue
            try:
                row = json.loads(each)
                if not isinstance(row, dict):
                    raise ValueError(f"{type(row).__name__}, not an object of columns")
                pa.Table.from_pylist([row], schema=self._schema)
            except (ValueError, TypeError, pa.ArrowInvalid, pa.ArrowTypeError) as wrong:
                why = f"the line does not fit the columns ({str(wrong).splitlines()[0][:150]})."
                reason = self.at_line(why, at, remedy=Remedy("Correct it, or skip bad rows (", SKIP_BAD, ")."))
                self.raise_or_skip(reason)
                continue
            rows.append(row)
        try:
            return pa.Table.from_pylist(rows, schema=self._schema)
        except (pa.ArrowInvalid, pa.ArrowTypeError) as wrong:
            raise self.refusal(
                f": a column holds values of several types ({str(error or wrong).splitlines()[0][:150]}).",
                remedy="Write them all as text, or all as numbers.",
            ) from None

    def place(self, row: int) -> tuple[str, int]:
        """The line of a row; empty lines are no rows."""
        if self.stdin or self.skip_bad:
            return super().place(row)
        with self.opened() as stream:
            found = -1
            for at, each in enumerate(io.BufferedReader(Rewound(b"", stream), FIRST_BLOCK), 1):
                found += bool(each.strip())
                if found == row:
                    return self.line(at)
        return super().place(row)


def _parsed(text: bytes, schema: pa.Schema | None = None, other_keys: str = "ignore") -> pa.Table:
    """Lines as a table; with a schema, other keys are ignored, or an error."""
    reading = arrow_json.ReadOptions(use_threads=False, block_size=len(text) + 1)
    options = arrow_json.ParseOptions()
    if schema is not None:
        options = arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior=other_keys)
    return arrow_json.read_json(pa.BufferReader(text), reading, options)


def _is_utf8(text: bytes) -> bool:
    """Whether bytes are UTF-8."""
    if text.isascii():
        return True
    try:
        pa.array([text], pa.large_binary()).cast(pa.large_string())
    except pa.ArrowInvalid:
        return False
    return True


def _general_types(schema: pa.Schema) -> pa.Schema:
    """A schema that later lines fit, too: strings for columns of nulls, floats for those of whole numbers."""

    def general(kind: pa.DataType) -> pa.DataType:
        if pa.types.is_null(kind):
            return pa.string()
        return pa.float64() if pa.types.is_integer(kind) else kind

    return pa.schema([field.with_type(general(field.type)) for field in schema])


# -- one array or object -----------------------------------------------------------------------------------------------
class JSONSource(HeldSource):
    """A whole table as JSON: an array of objects, or an object of columns, as pandas writes them.

    Columns are arrays, or objects whose keys are those of the rows. The file is held in memory.
    """

    def read_columns(self) -> dict[str, list[Any]]:
        """Return the values of each column."""
        most = self.limits.record_bytes
        with self.opened() as stream:
            text = stream.read(most + 1)
            self.progressed(len(text))
        if len(text) > most:
            raise InputError(
                f"the table has more than {most:,} bytes of JSON.",
                place=self.name,
                remedy=self.limits.remedy("record_bytes", "Write JSON lines, one object a line"),
            )
        if nests_deeper(text, self.limits.depth):
            raise self.refusal(
                f": arrays and objects are nested more than {self.limits.depth} deep.", remedy="Write a plain table."
            )
        try:
            found = json.loads(text)
        except ValueError as error:
            what = f" is not JSON ({str(error)[:150]})."
            raise self.refusal(what, remedy="Correct it, or write JSON lines.") from None
        return self._of_objects(found) if isinstance(found, list) else self._of_columns(found)

    def _of_objects(self, rows: list[Any]) -> dict[str, list[Any]]:
        """The columns of an array of objects; a key that an object lacks is missing there."""
        columns: dict[str, list[Any]] = {}
        for at, row in enumerate(rows):
            if len(columns) * at > self.limits.cells:
                raise self.refusal(
                    f": the first {at:,} objects have {len(columns):,} different keys.",
                    remedy=self.limits.remedy("cells", "Write objects with the same keys"),
                )
            if not isinstance(row, dict):
                raise self.refusal(
                    f": element {at + 1} is {type(row).__name__}, not an object of columns.",
                    remedy='Write [{"column": value, …}, …].',
                )
            for name, value in row.items():
                values = columns.setdefault(name, [])
                values += [None] * (at - len(values))
                values.append(value)
        for values in columns.values():
            values += [None] * (len(rows) - len(values))
        return columns

    def _of_columns(self, found: Any) -> dict[str, list[Any]]:
        """The columns of an object of columns."""
        kinds = {type(values) for values in found.values()} if isinstance(found, dict) else set()
        if kinds == {list} and len({len(values) for values in found.values()}) == 1:
            return found
        if kinds == {dict}:  # row → value
            rows = dict.fromkeys(row for values in found.values() for row in values)
            return {name: [values.get(row) for row in rows] for name, values in found.items()}
        if isinstance(found, dict) and kinds and not kinds & {list, dict}:  # one row
            return {name: [value] for name, value in found.items()}
        raise self.refusal(" is JSON, but no table.", remedy='Write [{"column": value, …}, …], or JSON lines.')


# -- nesting -----------------------------------------------------------------------------------------------------------
EXAMINED = 2**17  # bytes examined at a time: they and what is computed of them fit into the cache
_STEP = np.zeros(256, np.int8)
_STEP[list(b"[{")], _STEP[list(b"]}")] = 1, -1


def nests_deeper(text: bytes, depth: int) -> bool:
    r"""Whether arrays and objects are nested more deeply than `depth` in JSON; brackets within strings do not count.

    >>> nests_deeper(rb'{"a": [[1], {}], "b": "[[[[\"[[["}', 2), nests_deeper(rb'{"a": [[1], {}], "b": "[[[[\"[[["}', 3)
    (True, False)
    """
    begin, level, quoted = 0, 0, 0
    while begin < len(text):
        end = min(begin + EXAMINED, len(text))
        while text[end - 1 : end] == b"\\" and end < len(text):  # an escape sequence is not split
            end += 1
        part = text[begin:end]
        if b"\\" in part:
            part = part.replace(rb"\\", b"  ").replace(rb"\"", b"  ")
        letters = np.frombuffer(part, np.uint8)
        brackets, quotes = np.flatnonzero(_STEP[letters]), np.flatnonzero(letters == ord('"'))
        outside = (np.searchsorted(quotes, brackets) + quoted) % 2 == 0
        levels = level + np.cumsum(_STEP[letters[brackets[outside]]], dtype=np.int64)
        if levels.max(initial=0) > depth:
            return True
        begin, level, quoted = end, int(levels[-1]) if len(levels) else level, (quoted + len(quotes)) % 2
    return False


def _most_openings(text: bytes, letters: NDArray[np.uint8]) -> int:
    """An upper bound of the brackets that open in one object: all of them, but one for each line after the first.

    Lines are counted where "{" follows "}" and a line feed. In lines without nesting the bound is 1. Counting needs no
    positions, and takes a third of the time of finding them.
    """
    total = lines = 0
    is_end, is_feed, is_open = np.empty((3, EXAMINED + 2), bool)
    for begin in range(0, len(text), EXAMINED):
        part = letters[max(begin - 2, 0) : begin + EXAMINED]  # two letters of the chunk before
        size = max(len(part) - 2, 0)
        opens = np.equal(part, ord("{"), out=is_open[: len(part)])
        ends, feeds = is_end[:size], is_feed[:size]
        np.equal(part[:-2], ord("}"), out=ends)
        np.equal(part[1:-1], ord("\n"), out=feeds)
        ends &= feeds
        ends &= opens[2:]
        lines += int(np.count_nonzero(ends))
        total += int(np.count_nonzero(opens[2 * (begin > 0) :]))
        if text.find(b"[", begin, begin + EXAMINED) >= 0:
            total += int(np.count_nonzero(letters[begin : begin + EXAMINED] == ord("[")))
    return total - lines


def block_nests_deeper(text: bytes, depth: int) -> bool:
    r"""`nests_deeper` of lines of JSON, quicker where most lines have few brackets.

    Where a line begins with "{" and the line before ends with "}", all objects are closed, or a parser stops there. So
    the depth is at most the number of brackets that open between two such places.

    >>> block_nests_deeper(b'{"a": 1}\n{"a": [[1]]}\n', 3), block_nests_deeper(b'{"a": 1}\n{"a": [[[1]]]}\n', 3)
    (False, True)
    """
    letters = np.frombuffer(text, np.uint8)
    if _most_openings(text, letters) <= depth:
        return False
    found = []
    folded, opens = np.empty(EXAMINED, np.uint8), np.empty(EXAMINED, bool)
    for begin in range(0, len(text), EXAMINED):
        part = letters[begin : begin + EXAMINED]
        np.bitwise_or(part, 0x20, out=folded[: len(part)])  # "[" | 0x20 is "{"
        np.equal(folded[: len(part)], ord("{"), out=opens[: len(part)])
        found.append(opens[: len(part)].nonzero()[0] + begin)
        if len(found[-1]) > max(len(part) // 8, depth):  # so many that their positions take much memory
            return nests_deeper(text, depth)
    opening = np.concatenate(found) if found else np.empty(0, np.int64)
    if len(opening) <= depth:
        return False
    lines = np.flatnonzero(letters[opening - 1] == ord("\n"))  # of one at 0 the last byte is read, and it is not closed
    last, second, third = (letters[np.maximum(opening[lines] - back, 0)] for back in (0, 2, 3))
    closed = (second == ord("}")) | ((second == ord("\r")) & (third == ord("}")))
    lines = lines[closed & (last == ord("{"))]
    most = np.diff(lines, prepend=0, append=len(opening)).max()
    return bool(most > depth) and nests_deeper(text, depth)
