"""CSV and TSV, streamed: every cell is text here; what it means is the schema's to say.

Rows are parsed by Arrow. Only when something is wrong is the file read again, slowly, to find the line.
"""

from __future__ import annotations

import codecs
import csv
import io
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from deciban.errors import Argument, InputError, Remedy
from deciban.read.opening import FileSource, Rewound
from deciban.read.source import SKIP_BAD, checked_names
from deciban.read.tables import MARKERS

if TYPE_CHECKING:
    import pyarrow as pa

BLOCKS = (2**19, 2**24, 2**28)  # bytes parsed at a time; a row must fit, so larger ones are tried when one does not
HEADER = 2**20  # bytes in which the header must end
DELIMITERS = ",;\t|"
OPEN_QUOTE = "a quote is opened and never closed, so the rest of the file would be one cell."
CLOSE_QUOTE = Remedy("Close it, or read without quotes (", Argument("quote", False), ").")


class DelimitedSource(FileSource):
    """Cells between delimiters, the first line naming the columns."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        delimiter: str | None = None,
        quote: str | bool = '"',
        encoding: str | None = None,
        missing: Sequence[str] = MARKERS,
        skip_bad: bool = False,
    ) -> None:
        super().__init__(path, skip_bad=skip_bad)
        self.quote, self.encoding, self.missing = quote, encoding, list(missing)
        with self.opened() as stream:
            self._head = stream.read(HEADER)
            if self.stdin:
                self._rest = stream
        if not self._head:
            raise self.refusal(" is empty.", remedy="Give a file with data.")
        if self.encoding is None:
            utf16 = self._head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
            self.encoding = "utf-16" if utf16 else "utf-8"
        self.delimiter = delimiter
        self._columns, self._first_line = self._header()

    @property
    def columns(self) -> tuple[str, ...]:
        return self._columns

    def _header(self) -> tuple[tuple[str, ...], int]:
        """The names of the columns, and how many lines they take."""
        decoder = codecs.getincrementaldecoder("utf-8-sig" if self.encoding == "utf-8" else str(self.encoding))()
        try:
            text = decoder.decode(self._head)
        except UnicodeDecodeError:
            text = codecs.getincrementaldecoder(str(self.encoding))("replace").decode(self._head)
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
        names: list[str] = next((row for row in reader if row), [])
        return checked_names([name.strip() for name in names], self.name), reader.line_num

    def _dialect(self) -> dict[str, Any]:
        quoting = {"quotechar": self.quote} if self.quote else {"quoting": csv.QUOTE_NONE}
        return {"delimiter": self.delimiter, **quoting}

    def pieces(self) -> Iterator[pa.Table]:
        """As Arrow parses them; in a rare last row with line breaks, quotes are looked at once more."""
        import pyarrow as pa

        done, last = 0, None
        for block in BLOCKS[1:2] if self.stdin else BLOCKS:
            try:
                for piece in self._parsed(block, done):
                    done, last = done + len(piece), piece
                    yield piece
                break
            except pa.ArrowInvalid as error:
                if "straddling" not in str(error) or block == BLOCKS[-1] or self.stdin:
                    raise self._explained(error) from None
        if last is not None and _swallowed(last[last.num_columns - 1][len(last) - 1].as_py(), self.stdin):
            self._refuse_open_quote()

    def _parsed(self, block: int, skip: int) -> Iterator[pa.Table]:
        """Rows parsed so many bytes at a time, but for the first ones."""
        import pyarrow as pa

        with self._stream() as stream:
            for batch in self._reader(stream, block):
                self.progressed()
                rest, skip = batch.slice(min(skip, len(batch))), max(skip - len(batch), 0)
                if len(rest):
                    yield pa.Table.from_batches([rest])

    @contextmanager
    def _stream(self) -> Iterator[Any]:
        import pyarrow as pa

        if self.stdin:
            if self._head is None:
                raise self.read_twice()
            head, self._head = self._head, None
            yield pa.PythonFile(Rewound(head, self._rest), mode="r")
            return
        with self.opened() as stream:
            yield stream

    def _reader(self, stream: Any, block: int) -> Any:
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        names = list(self.columns)
        return arrow_csv.open_csv(
            stream,
            read_options=arrow_csv.ReadOptions(
                block_size=block, column_names=names, skip_rows=self._first_line, encoding=self.encoding
            ),
            parse_options=arrow_csv.ParseOptions(
                delimiter=self.delimiter,
                quote_char=self.quote or False,
                newlines_in_values=bool(self.quote),
                invalid_row_handler=self._ragged,
            ),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), null_values=self.missing, strings_can_be_null=True
            ),
        )

    def _ragged(self, row: Any) -> str:
        if not self.skip_bad:
            return "error"
        self.skipped.add(InputError(f"a row of {row.actual_columns} cells ({str(row.text)[:40]!r})"))
        return "skip"

    # -- finding the line, when something is wrong -------------------------------------------------------------------
    def place(self, row: int) -> tuple[str, int]:
        """The line on which a row begins."""
        if self.stdin:
            return super().place(row)
        whole = (line for line, cells in self._records() if len(cells) == len(self.columns) or not self.skip_bad)
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

    def _explained(self, error: Exception) -> InputError:
        """What Arrow could not parse, by line and column."""
        said = str(error).strip()
        wrong = None if self.stdin else self._wrong_row()
        if wrong is not None:
            return wrong
        if "straddl" in said:
            most = BLOCKS[1 if self.stdin else -1]
            return self.refusal(f" has a row of more than {most:,} bytes. Is a quote left open?", remedy=CLOSE_QUOTE)
        return self.refusal(
            f" is not a table of text ({said[:200]}).",
            remedy=Remedy("Correct it, or skip bad rows (", SKIP_BAD, ")."),
        )

    def _wrong_row(self) -> InputError | None:
        """The first row with a wrong number of cells, an open quote, or bytes that are no text."""
        D = len(self.columns)
        for line, cells in self._records():
            if len(cells) != D and not self.skip_bad:
                return self.at_line(
                    f"the row has {len(cells)} cells, but there are {D} columns.",
                    line,
                    remedy=Remedy(
                        "Correct the row (is a delimiter in a text not quoted?), or skip bad rows (", SKIP_BAD, ")."
                    ),
                )
            for column, cell in zip(self.columns, cells):
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
                Argument("encoding", "latin-1"),
                ", or convert the file if it mixes several.",
            ),
        )

    def _refuse_open_quote(self) -> None:
        if self.stdin:
            raise self.refusal(f": {OPEN_QUOTE}", remedy=CLOSE_QUOTE)
        for _ in self._records():
            pass


def _swallowed(cell: str | None, surely: bool) -> bool:
    """Whether a last cell may be the rest of a file behind a quote that was never closed."""
    return cell is not None and (cell.endswith("\n") if surely else "\n" in cell)
