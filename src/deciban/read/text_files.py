"""Files of cells between delimiters: CSV and TSV.

Arrow parses the rows. Only if it cannot, the file is read again by Python, which is slow, to find the line at fault.
"""

from __future__ import annotations

import codecs
import csv
import io
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from pyarrow import csv as arrow_csv

from deciban.errors import Argument, InputError, Remedy
from deciban.read.arrow import NUMBER
from deciban.read.paths import Limits
from deciban.read.source import SKIP_BAD, FileSource, Rewound, checked_names
from deciban.read.tables import MARKERS

BLOCK_SIZE = 2**19  # bytes parsed at a time
SMALLEST_BLOCK = 2**10
STDIN_BLOCK = 2**24  # of standard input, which cannot be read again with larger blocks
HEADER = 2**20  # bytes in which the header must end
HEADER_LINE = "Name the columns in line 1, each in fewer than 131,072 characters."
DELIMITERS = ",;\t|"
INDEX = ("Unnamed: 0",)  # what pandas calls a first column without a name, in which it writes row numbers
OPEN_QUOTE = "a quote is opened and never closed, so the rest of the file would be one cell."
CLOSE_QUOTE = Remedy("Close it, or read without quotes (", Argument("quote", False), ").")


class DelimitedSource(FileSource):
    """A file of cells between delimiters, whose first line names the columns; all cells are read as text."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        delimiter: str | None = None,
        quote: str | bool = '"',
        encoding: str | None = None,
        missing: Sequence[str] = MARKERS,
        header: bool = True,
        skip_bad: bool = False,
        limits: Limits | None = None,
    ) -> None:
        super().__init__(path, skip_bad=skip_bad, limits=limits)
        self.header = header
        self.quote, self.encoding, self.missing = quote, encoding, list(missing)
        self._counted = 0  # rows of a wrong length that are met again, when a file is read from its beginning again
        with self.opened() as stream:
            self._head: bytes | None = stream.read(HEADER)
            if self.stdin:
                self._rest = stream
        if not self._head:
            raise self.refusal(" is empty.", remedy="Give a file with data.")
        if self.encoding is None:
            utf16 = self._head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
            self.encoding = "utf-16" if utf16 else "utf-8"
        self.delimiter = delimiter
        self._names, self._first_line = self._header(self._head)  # of all cells
        self.row_numbers = self.header and len(self._names) > 1 and self._names[0] in INDEX  # of pandas; not read

    @property
    def columns(self) -> tuple[str, ...]:
        return self._names[1:] if self.row_numbers else self._names

    def _header(self, head: bytes) -> tuple[tuple[str, ...], int]:
        """The names of the columns, and the number of lines that they take."""
        decoder = codecs.getincrementaldecoder("utf-8-sig" if self.encoding == "utf-8" else str(self.encoding))()
        try:
            text = decoder.decode(head)
        except UnicodeDecodeError:
            text = codecs.getincrementaldecoder(str(self.encoding))("replace").decode(head)
        if "\0" in text:
            raise self.refusal(
                " is not text: it holds zero bytes.",
                remedy=Remedy("Name its format, as in ", Argument("format", "parquet"), "."),
            )
        first = next((line for line in text.splitlines() if line.strip()), "")
        if not first:
            raise self.refusal(" has no header: its first lines are empty.", remedy="Name the columns in line 1.")
        if self.delimiter is None:
            self.delimiter = max(DELIMITERS, key=first.count)
        reader = csv.reader(io.StringIO(text, newline=""), **self._dialect())
        try:
            names: list[str] = next((row for row in reader if row), [])
        except csv.Error as error:
            raise self.refusal(f" has no header that can be read ({error}).", remedy=HEADER_LINE) from None
        if reader.line_num > text.count("\n") and len(head) == HEADER:
            raise self.refusal(f" has a header of more than {HEADER:,} bytes.", remedy=HEADER_LINE)
        if not self.header:
            return tuple(f"column{at}" for at in range(1, len(names) + 1)), 0
        self._refuse_numbers(names)
        index = INDEX[:1] if len(names) > 1 and not names[0].strip() else ()
        return checked_names([*index, *(name.strip() for name in names[len(index) :])], self.name), reader.line_num

    def _refuse_numbers(self, names: list[str]) -> None:
        """Refuse a header that is a row: a name such as 5.1 is a measurement."""
        number = next((name for name in names if "." in name and NUMBER.fullmatch(name.strip())), None)
        if number is not None:
            what = f" has no header: line 1 holds {number.strip()!r}, which is a number and no name."
            without = Remedy("Name the columns there, or read it without a header (", Argument("header", False), ").")
            raise self.refusal(what, remedy=without)

    def _dialect(self) -> dict[str, Any]:
        quoting = {"quotechar": self.quote} if self.quote else {"quoting": csv.QUOTE_NONE}
        return {"delimiter": self.delimiter, **quoting}

    def pieces(self) -> Iterator[pa.Table]:
        """Blocks as Arrow parses them; if the last cell has line breaks, quotes are checked once more."""
        done, last, parts = 0, None, iter(self._parsed())
        while True:
            try:
                piece = next(parts, None)
            except pa.ArrowInvalid as error:
                if not _row_too_long(error):
                    raise self._explained(error) from None
                if self.stdin:
                    raise self._too_long(done, 2 * self._block_size()) from None
                parts = self._parsed_apart(done)
                continue
            if piece is None:
                break
            done, last = done + len(piece), piece
            yield piece
        if last is not None and self._may_be_open(last[last.num_columns - 1][len(last) - 1].as_py()):
            self._refuse_open_quote()

    def _block_size(self) -> int:
        """Bytes parsed at a time; a row must lie in at most two blocks, and the limit is therefore two blocks."""
        return min(STDIN_BLOCK if self.stdin else BLOCK_SIZE, max(self.limits.record_bytes // 2, SMALLEST_BLOCK))

    def _too_long(self, row: int, size: int) -> InputError:
        """The error for a row, counted from 0, of more than `size` bytes."""
        return InputError(
            f"row {row + 1} is longer than {size:,} bytes. Is a quote left open?",
            place=self.name,
            row=row + 1,
            remedy=Remedy(
                "Close it, or read without quotes (",
                Argument("quote", False),
                f"). {self.limits.remedy('record_bytes', 'Split the row')}",
            ),
        )

    def _parsed(self) -> Iterator[pa.Table]:
        """Rows as Arrow splits and parses them; an ArrowInvalid error if one does not fit into two blocks."""
        with self._stream() as stream:
            for batch in self._reader(stream):
                self.progressed(batch.nbytes - 3 * batch.num_rows * batch.num_columns)  # an offset has four bytes
                if len(batch):
                    yield pa.Table.from_batches([batch])

    def _parsed_apart(self, skip: int) -> Iterator[pa.Table]:
        """Rows behind the first `skip`, split here and parsed by Arrow: rows may be long.

        With blocks as large as the longest row, Arrow's own reader would hold many of them: it reads ahead.
        """
        seen, self._counted = 0, self.skipped.rows  # rows of a wrong length that were counted as skipped before
        with self.opened() as stream:
            try:
                for text in split_records(self._utf8(stream), self._record(), self.limits.record_bytes):
                    if not text.strip():
                        continue
                    table = arrow_csv.read_csv(pa.BufferReader(text), **self._options(len(text) + 1, "utf-8", 0))
                    rest = table.slice(min(max(skip - seen, 0), len(table)))
                    seen += len(table)
                    if len(rest):
                        yield rest
            except OverflowError:
                raise self._too_long(seen, self.limits.record_bytes) from None

    def _utf8(self, stream: pa.NativeFile) -> Iterator[bytes]:
        """The file in pieces of UTF-8, without the lines of the header."""
        decoder = None if self.encoding == "utf-8" else codecs.getincrementaldecoder(str(self.encoding))()
        head: bytes | None = b""
        lines = re.compile(rb"(?:[^\r\n]*(?:\r\n|\n|\r)){%d}" % self._first_line)
        while found := stream.read(min(HEADER, self.limits.record_bytes)):
            self.progressed(len(found))
            try:
                found = found if decoder is None else decoder.decode(found).encode()
            except UnicodeDecodeError as error:
                raise pa.ArrowInvalid(str(error)) from None
            if head is not None:
                head += found
                if (header := lines.match(head)) is None:
                    continue
                found, head = head[header.end() :], None
            yield found

    def _record(self) -> re.Pattern[bytes]:
        """Pattern of a record and its line break, by the rules of Arrow: a quote opens at the beginning of a cell."""
        delimiter = re.escape(str(self.delimiter).encode())
        cell = rb"[^%b\r\n]*+" % delimiter
        if self.quote:
            quote = re.escape(('"' if self.quote is True else self.quote).encode())
            cell = rb"(?:%b[^%b]*+(?:%b%b[^%b]*+)*+%b|(?!%b))" % ((quote,) * 7) + cell
        return re.compile(cell + rb"(?:%b" % delimiter + cell + rb")*+(?:\r?\n|\r(?=[^\n]))")

    @contextmanager
    def _stream(self) -> Iterator[pa.NativeFile]:
        if self.stdin:
            if self._head is None:
                raise self.read_twice()
            head, self._head = self._head, None
            yield pa.PythonFile(Rewound(head, self._rest), mode="r")
            return
        with self.opened() as stream:
            yield stream

    def _reader(self, stream: pa.NativeFile) -> arrow_csv.CSVStreamingReader:
        return arrow_csv.open_csv(stream, **self._options(self._block_size(), str(self.encoding), self._first_line))

    def _options(self, block: int, encoding: str, skip: int) -> dict[str, Any]:
        """Options of Arrow's reader, which parses `block` bytes at a time and skips the first lines."""
        names = list(self._names)
        return {
            "read_options": arrow_csv.ReadOptions(
                block_size=block, column_names=names, skip_rows=skip, encoding=encoding
            ),
            "parse_options": arrow_csv.ParseOptions(
                delimiter=self.delimiter,
                quote_char=self.quote or False,
                newlines_in_values=bool(self.quote),
                invalid_row_handler=self._wrong_length,
            ),
            "convert_options": arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                null_values=self.missing,
                strings_can_be_null=True,
                include_columns=list(self.columns),
            ),
        }

    def _wrong_length(self, row: arrow_csv.InvalidRow) -> str:
        """What Arrow does with a row that has too few or too many cells."""
        if not self.skip_bad:
            return "error"
        if self._counted:
            self._counted -= 1
            return "skip"
        self.skipped.add(InputError(f"a row of {row.actual_columns} cells ({str(row.text)[:40]!r})"))
        return "skip"

    # -- finding the line at fault ---------------------------------------------------------------------------------
    def place(self, row: int) -> tuple[str, int]:
        """The line on which a row begins."""
        if self.stdin:
            return super().place(row)
        whole = (line for line, cells in self._records() if len(cells) == len(self._names) or not self.skip_bad)
        line = next((line for at, line in enumerate(whole) if at == row), None)
        return super().place(row) if line is None else self.line(line)

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """(line, cells) of every row that is not empty, by Python's own reader."""
        csv.field_size_limit(2**31 - 1)
        with self.opened() as stream:
            text = io.TextIOWrapper(stream, str(self.encoding), errors="surrogateescape", newline="")
            reader = csv.reader(text, **self._dialect(), strict=True)
            line = 1
            try:
                for cells in reader:
                    if cells and line > self._first_line:
                        yield line, cells
                    line = reader.line_num + 1
            except csv.Error:
                raise self.at_line(OPEN_QUOTE, line, remedy=CLOSE_QUOTE) from None
            text.detach()

    def _explained(self, error: pa.ArrowInvalid) -> InputError:
        """The error for what Arrow could not parse, by line and column if they are found."""
        wrong = None if self.stdin else self._wrong_row()
        if wrong is not None:
            return wrong
        return self.refusal(
            f" is not a table of text ({str(error).strip()[:200]}).",
            remedy=Remedy("Correct it, or skip bad rows (", SKIP_BAD, ")."),
        )

    def _wrong_row(self) -> InputError | None:
        """The error of the first row with a wrong number of cells, an open quote, or bytes that are not text."""
        D = len(self._names)
        for line, cells in self._records():
            if len(cells) != D and not self.skip_bad:
                return self.at_line(
                    f"the row has {len(cells)} {'cell' if len(cells) == 1 else 'cells'}, but there "
                    + ("is 1 column." if D == 1 else f"are {D} columns."),
                    line,
                    remedy=Remedy(
                        "Correct the row (is a delimiter in a text not quoted?), or skip bad rows (", SKIP_BAD, ")."
                    ),
                )
            for column, cell in zip(self._names, cells):
                if any("\udc80" <= character <= "\udcff" for character in cell):
                    return self._not_text(line, column, cell)
        return None

    def _not_text(self, line: int, column: str, cell: str) -> InputError:
        shown = cell.encode("utf-8", "surrogateescape")[:40]
        return InputError(
            f"{shown!r} is not {str(self.encoding).upper()}.",
            row=line,
            columns=[column],
            place=f"{self.name}, line {line}, column {column!r}",
            remedy=Remedy(
                "Give the encoding, as in ",
                Argument("encoding", "cp1252" if re.search(r"[\udc80-\udc9f]", cell) else "latin-1"),
                ", or convert the file if it mixes several.",
            ),
        )

    def _may_be_open(self, cell: str | None) -> bool:
        """Whether the last cell may be the rest of the file behind a quote that was never closed."""
        return cell is not None and (cell.endswith("\n") if self.stdin else "\n" in cell)

    def _refuse_open_quote(self) -> None:
        if self.stdin:
            raise self.refusal(f": {OPEN_QUOTE}", remedy=CLOSE_QUOTE)
        for _ in self._records():
            pass


def split_records(pieces: Iterator[bytes], record: re.Pattern[bytes], most: int) -> Iterator[bytearray]:
    r"""Join pieces and split them behind records; an OverflowError if one has more than `most` bytes.

    >>> list(split_records(iter([b"a\nb", b"c\nd"]), re.compile(rb"[^\n]*\n"), 10))
    [bytearray(b'a\n'), bytearray(b'bc\n'), bytearray(b'd')]
    """
    held, enough = bytearray(), 0  # bytes from which on the end of a record is searched for
    for piece in pieces:
        held += piece
        if len(held) < enough:
            continue
        end = 0
        while (found := record.match(held, end)) is not None:
            if found.end() - end > most:
                raise OverflowError
            end = found.end()
        if len(held) - end > most:
            raise OverflowError
        enough = min(2 * (len(held) - end), most + 1)
        if end:
            rest = held[end:]
            del held[end:]
            yield held
            held = rest
    if held:
        yield held


def _row_too_long(error: pa.ArrowInvalid) -> bool:
    """Whether a row did not fit into a block; Arrow has no class of errors of its own for that."""
    return "straddl" in str(error)
