"""Sources of rows: files, standard input and frames, read in batches.

A source has a name for messages, the names of its columns, and its rows. All but standard input can be read from the
beginning again. It knows the place of each row, so that an error can say `adult.csv, line 17`. The borders of batches
depend on the rows alone: a file and a frame with the same rows have the same batches.
"""

from __future__ import annotations

import io
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from deciban.errors import HERE, Argument, DecibanError, InputError, NoRowsError
from deciban.read.paths import Limits, file_system, is_address, refuse_special_file
from deciban.read.tables import HEAD, Origin, Table

if TYPE_CHECKING:
    import pyarrow as pa

Array = NDArray[Any]
SKIP_BAD = Argument("skip_bad", True)
REASONS = 5  # number of skipped rows whose errors are kept
PIECE = 2**23  # characters of documents in a piece
BATCH_TEXT = 2**23  # bytes of text in a batch: the cost of a batch is negligible, its memory small beside a vocabulary
UNCHECKED = 2**24  # bytes after decompression from which on the compression ratio is checked
COMPRESSED = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}
STDIN = "-"


@dataclass
class Skipped:
    """The number of rows that could not be read and were skipped, and the errors of the first ones."""

    rows: int = 0
    reasons: list[DecibanError] = field(default_factory=list)

    def add(self, reason: DecibanError, rows: int = 1, origin: Origin | None = None) -> None:
        """Count rows that could not be read; `origin` is that of the table whose row the error names."""
        self.rows += rows
        if len(self.reasons) < REASONS:
            self.reasons.append(reason if origin is None else origin.located(reason))

    def __add__(self, other: Skipped) -> Skipped:
        return Skipped(self.rows + other.rows, [*self.reasons, *other.reasons][:REASONS])

    def __str__(self) -> str:
        if not self.rows:
            return "no row was skipped"
        reasons = "; ".join(str(reason.but(remedy=None)).rstrip(".") for reason in self.reasons)
        return f"{self.rows:,} row{'s' * (self.rows > 1)} skipped: {reasons}."


class Source(ABC):
    """Rows that are read in batches.

    Attributes
    ----------
    name : str
        How messages call the source.
    size : int or None
        Bytes to be read, if known.
    read : int
        Bytes read so far.
    skip_bad : bool
        Whether rows that cannot be read are skipped and counted; otherwise the first is an error.
    skipped : Skipped
        The rows skipped since the last `batches`.
    limits : Limits
        Limits of rows; by default those of the environment.
    quiet : bool
        Whether no progress bar is shown.
    texts : tuple of str
        Columns that are known to hold texts, however short they are.
    absent : tuple of str
        Columns that the source does not have and that are read as missing in every row.
    prefetch : bool
        Whether batches may be read in advance by another thread.
    """

    name: str
    size: int | None = None
    skip_bad: bool = False
    quiet: bool = False
    texts: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    prefetch: bool = True

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = Limits.from_environment() if limits is None else limits
        self.skipped = Skipped()
        self.read = 0

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""

    @abstractmethod
    def pieces(self) -> Iterator[pa.Table]:
        """All rows from the beginning, in pieces of any size."""

    def batches(self, rows: int = HEAD, texts: Callable[[], Sequence[str]] = tuple) -> Iterator[Table]:
        """All rows from the beginning, in tables of exactly `rows` rows, but for the last.

        `texts` is called after the first table and returns the columns that hold texts; from then on a table is split
        where these hold more than `BATCH_TEXT` bytes.
        """
        self.skipped, self.read = Skipped(), 0
        start = 0
        for table in regrouped(self.pieces(), rows, texts):
            for name in self.absent:
                table = table.append_column(name, [[None] * len(table)])
            stop = start + len(table)
            yield replace(Table.of(table), origin=Origin(range(start, stop), self))
            start = stop
            del table  # before the next is read
        if not start:
            raise self.without_rows()

    def place(self, row: int) -> tuple[str, int]:
        """The place of a row in words, and its number there; rows are counted from 0, without those skipped."""
        return f"{self.name}, row {row + 1}", row + 1

    def located(self, error: DecibanError, row: int | None) -> DecibanError:
        """The same error at the place of a row of this source, or at the source if the row is not known."""
        return error.at(self.name) if row is None else error.at(*self.place(row))

    def refusal(self, what: str, **attributes: Any) -> InputError:
        """An error about the source as a whole: its name, and `what`."""
        return InputError(HERE, what, place=self.name, **attributes)

    def raise_or_skip(self, reason: InputError) -> None:
        """Count a row that cannot be read as skipped if the source has `skip_bad`; otherwise raise the error."""
        if not self.skip_bad:
            raise reason
        self.skipped.add(reason)

    def without_rows(self) -> NoRowsError:
        """The error for a source without a row that can be read."""
        skipped = f" {self.skipped}" if self.skipped.rows else ""
        return NoRowsError(HERE, f" holds no rows.{skipped}", place=self.name, remedy="Give a file with data.")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {len(self.columns)} columns)"


class FrameSource(Source):
    """A frame of pandas, polars or pyarrow in memory."""

    def __init__(self, frame: Any) -> None:
        super().__init__()
        self.table = Table.of(frame)
        self.name = "the table"
        if not self.table.framed:
            raise InputError(
                "an array has no names of columns.", remedy="Give a frame of pandas, polars or pyarrow, or a path."
            )
        self._columns = checked_names([str(name) for name in self.table.columns], self.name)

    @property
    def columns(self) -> tuple[str, ...]:
        return self._columns

    def pieces(self) -> Iterator[pa.Table]:
        from deciban.read.arrow import arrow_table

        yield arrow_table(self.table)


class DocumentSource(Source):
    """Rows that are documents, in several files or within one: a row is a dict of texts by column."""

    def __init__(self, name: str | os.PathLike[str], limits: Limits | None = None) -> None:
        super().__init__(limits)
        self.name = os.fspath(name)
        self._places: list[str] = []  # the place of each row

    @abstractmethod
    def documents(self) -> Iterator[tuple[str, dict[str, str]]]:
        """The place of each document in words, and its row."""

    def pieces(self) -> Iterator[pa.Table]:
        """Tables of about `PIECE` characters."""
        import pyarrow as pa

        def table() -> pa.Table:
            return pa.table({name: pa.array([row[name] for row in rows], pa.large_string()) for name in self.columns})

        self._places = []
        rows: list[dict[str, str]] = []
        held = 0
        for place, row in self.documents():
            self._places.append(place)
            rows.append(row)
            held += sum(map(len, row.values()))
            if held > PIECE:
                yield table()
                rows, held = [], 0
        if rows:
            yield table()

    def place(self, row: int) -> tuple[str, int]:
        """The place of the document."""
        return (self._places[row], row + 1) if row < len(self._places) else super().place(row)


class FileSource(Source):
    """A file, compressed or not, or standard input."""

    def __init__(self, path: str | os.PathLike[str], *, skip_bad: bool = False, limits: Limits | None = None) -> None:
        super().__init__(limits)
        self.path, self.skip_bad = path, skip_bad
        self.stdin = path == STDIN
        self.name = "standard input" if self.stdin else os.fspath(path)
        self._opened = False  # standard input can be opened once
        self._raw: pa.NativeFile | None = None  # the open file
        self._unpacked: int | None = None  # bytes of the open file after decompression; None if it is not compressed
        if not self.stdin:
            if not is_address(path):
                refuse_special_file(path)
            self.size = self._stamp()[0]
            if self.size == 0:
                raise self.refusal(" is empty.", remedy="Give a file with data.")

    @contextmanager
    def opened(self) -> Iterator[pa.NativeFile]:
        """The file as a stream of bytes, decompressed; an error if it changes before it is closed."""
        import pyarrow as pa

        if self.stdin:
            if self._opened:
                raise self.read_twice()
            self._opened = True
            yield pa.PythonFile(sys.stdin.buffer, mode="r")
            return
        before = self._stamp()
        try:
            with self._open() as raw:
                self._raw = raw
                codec = COMPRESSED.get(Path(self.path).suffix.lower())
                self._unpacked = 0 if codec else None
                yield pa.CompressedInputStream(raw, codec) if codec else raw
        except (OSError, EOFError) as error:
            raise self.unreadable(error) from None
        after = self._stamp()
        if after != before:
            raise self.refusal(
                f" changed while it was read ({before[0]:,} bytes then, {after[0]:,} now). Nothing was learnt.",
                remedy="Wait until it is written, or read a copy.",
            )

    def _open(self) -> pa.NativeFile:
        if is_address(self.path):
            system, path = file_system(str(self.path))
            return system.open_input_file(path)
        import pyarrow as pa

        return pa.OSFile(os.fspath(self.path))

    def unreadable(self, error: BaseException) -> InputError:
        """The error for a file that the system or Arrow cannot read."""
        if isinstance(error, PermissionError):
            return self.refusal(": no permission to read it.", remedy="Ask for it, or copy the file.")
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        return self.refusal(f" cannot be read ({reason}).", remedy="Is it whole?")

    def read_twice(self) -> InputError:
        """The error for standard input that was read already."""
        return self.refusal(" can be read only once.", remedy="Save it to a file first.")

    def line(self, number: int) -> tuple[str, int]:
        """The place of a line in words, and its number."""
        return f"{self.name}, line {number}", number

    def at_line(self, what: str, number: int, **attributes: Any) -> InputError:
        """An error about a line of the file."""
        place, row = self.line(number)
        return InputError(what, place=place, row=row, **attributes)

    def progressed(self, unpacked: int) -> None:
        """Count bytes that were read, after decompression; an error if the compression ratio is too high."""
        if self._raw is None or self._raw.closed:
            return
        self.read = self._raw.tell()
        if self._unpacked is None:
            return
        self._unpacked += unpacked
        if self._unpacked > max(UNCHECKED, self.limits.ratio * self.read):
            raise self.refusal(
                f" holds {self._unpacked:,} bytes in {self.read:,} compressed bytes, "
                f"a ratio above {self.limits.ratio:,g}.",
                remedy=self.limits.remedy("ratio", "Decompress it first"),
            )

    def _stamp(self) -> tuple[int, int]:
        """Size and time of the last change."""
        if is_address(self.path):
            return self._remote_stamp()
        try:
            found = os.stat(self.path)
        except FileNotFoundError:
            raise no_file(self.name) from None
        except OSError as error:
            raise self.unreadable(error) from None
        return found.st_size, found.st_mtime_ns

    def _remote_stamp(self) -> tuple[int, int]:
        system, path = file_system(str(self.path))
        try:
            info = system.get_file_info(path)
        except OSError as error:
            raise self.unreadable(error) from None
        if not info.is_file:
            raise no_file(self.name)
        return info.size, info.mtime_ns or 0


class Rewound(io.RawIOBase):
    """A stream whose first bytes were read already, from its beginning."""

    def __init__(self, head: bytes, rest: BinaryIO | pa.NativeFile) -> None:
        self.head, self.rest = head, rest

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> bytes:
        """Bytes of `head` first, then of `rest`."""
        if size is None or size < 0:
            found, self.head = self.head, b""
            return found + self.rest.read()
        if self.head:
            found, self.head = self.head[:size], self.head[size:]
            return found
        return self.rest.read(size)


def no_file(name: str) -> InputError:
    """The error for a path at which there is nothing."""
    return InputError(f"there is no file {name!r}.", remedy="Check the path.")


def checked_names(names: Iterable[str], name: str) -> tuple[str, ...]:
    """The names of columns; an error, with columns counted from 1, if one is empty or occurs twice."""
    seen: dict[str, int] = {}
    for at, column in enumerate(names, 1):
        if not column.strip():
            raise InputError(
                "the column has no name.", place=f"{name}, line 1, column {at}", remedy="Name it in the header."
            )
        if column in seen:
            raise InputError(
                f"columns {seen[column]} and {at} are both called {column!r}.",
                columns=[column],
                place=f"{name}, line 1",
                remedy="Rename one of them.",
            )
        seen[column] = at
    return tuple(seen)


# -- tables that are held in memory ------------------------------------------------------------------------------------
class HeldSource(FileSource):
    """A file that is read into memory as a whole, because its format does not list row after row."""

    row_numbers = False  # whether the first column has no name, and is not read

    def __init__(self, path: str | os.PathLike[str], *, skip_bad: bool = False, limits: Limits | None = None) -> None:
        super().__init__(path, skip_bad=skip_bad, limits=limits)
        held = self.read_columns()
        checked_names(held, self.name)
        self._table = _arrow_table(held)
        if not len(self._table):
            raise self.without_rows()

    @abstractmethod
    def read_columns(self) -> dict[str, list[Any]]:
        """Return the values of each column, as Python's own."""

    def named(self, names: Sequence[str], columns: Sequence[list[Any]]) -> dict[str, list[Any]]:
        """Return columns by their names, which must differ; a first column without a name holds row numbers."""
        if len(names) > 1 and not names[0]:
            self.row_numbers = True
            names, columns = names[1:], columns[1:]
        return dict(zip(checked_names(names, self.name), columns))

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self._table.column_names)

    def pieces(self) -> Iterator[pa.Table]:
        """All rows."""
        yield self._table


def _arrow_table(columns: dict[str, list[Any]]) -> pa.Table:
    """Columns with a type each; values of several types are texts."""
    import pyarrow as pa

    made = {}
    for name, values in columns.items():
        try:
            made[name] = pa.array(values)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
            made[name] = pa.array([None if value is None else str(value) for value in values], pa.string())
    return pa.table(made)


# -- borders of batches ------------------------------------------------------------------------------------------------
def regrouped(pieces: Iterable[pa.Table], rows: int, texts: Callable[[], Sequence[str]] = tuple) -> Iterator[pa.Table]:
    """The same rows in tables of exactly `rows`, but for the last.

    `texts` is called after the first table and returns the columns that hold texts; from then on a table is split where
    these hold more than `BATCH_TEXT` bytes.
    """
    import pyarrow as pa

    names: Sequence[str] = ()
    held: list[pa.Table] = []
    left, room = rows, BATCH_TEXT  # rows and bytes until the next border
    for piece in pieces:
        while len(piece):
            some = piece.slice(0, left)
            ends = text_ends([some[name] for name in names], len(some))
            cut = max(int(np.searchsorted(ends, room, "right")), not held)
            if cut:
                held.append(some.slice(0, cut))
                left, room, piece = left - cut, room - int(ends[cut - 1]), piece.slice(cut)
            if cut < len(some) or left == 0:
                yield pa.concat_tables(held)
                held, room = [], BATCH_TEXT
                if left == 0:
                    left, names = rows, texts()
    if held:
        yield pa.concat_tables(held)


def text_slices(columns: Sequence[pa.ChunkedArray], n: int) -> Iterator[slice]:
    """The slices into which `regrouped` splits a table behind the first, by its columns of texts.

    >>> import pyarrow as pa
    >>> list(text_slices([pa.chunked_array([["a" * (BATCH_TEXT // 2)] * 3])], 3))
    [slice(0, 2, None), slice(2, 3, None)]
    """
    ends = np.append(0, text_ends(columns, n))
    begin = 0
    while begin < n:
        end = max(int(np.searchsorted(ends, ends[begin] + BATCH_TEXT, "right")) - 1, begin + 1)
        yield slice(begin, end)
        begin = end


def text_ends(columns: Sequence[pa.ChunkedArray], n: int) -> Array:
    """(n,) bytes of text up to and with each row; values that are not strings, such as dictionary codes, have none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from deciban.read.arrow import whole_numbers

    sizes = np.zeros(n, np.int64)
    for column in columns:
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            lengths = pc.binary_length(column)
            sizes += whole_numbers(pc.fill_null(lengths, 0) if lengths.null_count else lengths)
    return np.cumsum(sizes)
