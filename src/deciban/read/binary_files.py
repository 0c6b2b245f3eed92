"""Binary files of tables: Parquet, Arrow IPC (Feather), and Excel workbooks (`pip install deciban[excel]`)."""

from __future__ import annotations

import os
import zipfile
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import parquet

from deciban.errors import InputError, NotAvailableError
from deciban.kernels.parallel import get_threads
from deciban.read.paths import Limits, too_long
from deciban.read.source import COMPRESSED, FileSource, HeldSource, checked_names
from deciban.read.tables import HEAD

TEXTS = (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())
PIECE = 2**24  # bytes decompressed at a time
Contents = AbstractContextManager[tuple[pa.Schema, Iterator[pa.RecordBatch]]]


# -- Parquet and Arrow: columns with types -----------------------------------------------------------------------------
class ColumnarSource(FileSource):
    """A file whose columns have types."""

    def __init__(self, path: str | os.PathLike[str], *, skip_bad: bool = False, limits: Limits | None = None) -> None:
        super().__init__(path, skip_bad=skip_bad, limits=limits)
        self._left_out: list[int] = []  # rows of the file that were too long, since the last `pieces`
        try:
            with self._contents() as (schema, _):
                self._columns = checked_names(schema.names, self.name)
                self.schema: pa.Schema = schema
        except (pa.ArrowException, OSError) as error:
            raise self.unreadable(error) from None

    @property
    def columns(self) -> tuple[str, ...]:
        return self._columns

    def pieces(self) -> Iterator[pa.Table]:
        """Record batches, without rows that are too long."""
        self._left_out, start = [], 0
        try:
            with self._contents() as (_, batches):
                for batch in batches:
                    self.progressed(0)  # counted when it was decompressed
                    yield pa.Table.from_batches([self._within_limit(batch, start)])
                    start += batch.num_rows
        except (pa.ArrowException, OSError) as error:
            if isinstance(error, InputError):
                raise
            raise self.unreadable(error) from None

    def _within_limit(self, batch: pa.RecordBatch, start: int) -> pa.RecordBatch:
        """Return a batch without the rows of more than `record_bytes`; an error for the first, or each is skipped."""
        if batch.nbytes <= self.limits.record_bytes:
            return batch
        long = np.sum([row_bytes(column) for column in batch.columns], axis=0) > self.limits.record_bytes
        for row in np.flatnonzero(long):
            place, number = super().place(start + int(row))
            self.raise_or_skip(too_long(place, "the row", self.limits, number))
            self._left_out.append(start + int(row))
        return batch.filter(pa.array(~long)) if long.any() else batch

    def place(self, row: int) -> tuple[str, int]:
        """The place of a row in the file; rows are counted from 0, without those skipped."""
        for skipped in self._left_out:
            row += skipped <= row
        return super().place(row)

    @abstractmethod
    def _contents(self) -> Contents:
        """Context of the open file: its schema and its record batches."""

    def _seekable(self, stream: pa.NativeFile) -> pa.NativeFile:
        """These formats are read from their end, so a compressed stream is unpacked into memory."""
        if self.stdin:
            return pa.BufferReader(stream.read())
        if os.path.splitext(self.name)[1].lower() not in COMPRESSED:
            return stream
        held: list[bytes] = []
        size = 0
        while found := stream.read(PIECE):
            held.append(found)
            size += len(found)
            self.progressed(len(found))
            if size > self.limits.unpacked_bytes:
                raise self.refusal(
                    f" holds more than {self.limits.unpacked_bytes:,} bytes when it is decompressed.",
                    remedy=self.limits.remedy("unpacked_bytes", "Decompress it first"),
                )
        return pa.BufferReader(b"".join(held))


class ParquetSource(ColumnarSource):
    """A Parquet file, or some of its row groups."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        skip_bad: bool = False,
        limits: Limits | None = None,
        row_groups: Sequence[int] | None = None,
    ) -> None:
        self.row_groups = row_groups
        self._before = 0  # rows in the row groups before the first that is read
        super().__init__(path, skip_bad=skip_bad, limits=limits)

    def sizes(self) -> list[tuple[int, int]]:
        """Rows and bytes, before compression, of each row group."""
        with self.opened() as stream:
            groups = parquet.ParquetFile(self._seekable(stream)).metadata
            return [
                (groups.row_group(g).num_rows, groups.row_group(g).total_byte_size)
                for g in range(groups.num_row_groups)
            ]

    def place(self, row: int) -> tuple[str, int]:
        """The place of a row in the file, also where only some row groups are read."""
        return super().place(self._before + row)

    @contextmanager
    def _contents(self) -> Iterator[tuple[pa.Schema, Iterator[pa.RecordBatch]]]:
        with self.opened() as stream:
            file = parquet.ParquetFile(self._seekable(stream))
            if self.row_groups is not None:
                groups = range(min(self.row_groups, default=0))
                self._before = sum(file.metadata.row_group(group).num_rows for group in groups)
            several = get_threads() > 1
            yield file.schema_arrow, file.iter_batches(HEAD, row_groups=self.row_groups, use_threads=several)


class ArrowSource(ColumnarSource):
    """Arrow IPC, as a file (Feather) or as a stream."""

    @contextmanager
    def _contents(self) -> Iterator[tuple[pa.Schema, Iterator[pa.RecordBatch]]]:
        with self.opened() as stream:
            seekable = self._seekable(stream)
            try:
                file = pa.ipc.open_file(seekable)
            except pa.ArrowInvalid:
                seekable.seek(0)
                batches = pa.ipc.open_stream(seekable)
                yield batches.schema, batches
            else:
                yield file.schema, (file.get_batch(at) for at in range(file.num_record_batches))


def row_bytes(column: pa.Array) -> NDArray[np.int64]:
    """Return the bytes of each value of a column of texts, bytes, lists or structures; 0 for each number.

    >>> row_bytes(pa.array(["abc", None, "é"]))
    array([3, 0, 2])
    """
    kind = column.type
    if pa.types.is_dictionary(kind):
        sizes = np.append(row_bytes(column.dictionary), 0)  # the last for missing values
        return sizes[column.indices.fill_null(len(sizes) - 1).to_numpy(zero_copy_only=False)]
    if kind in TEXTS:
        return pc.binary_length(column).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    if pa.types.is_nested(kind):
        return np.array([column.slice(row, 1).nbytes for row in range(len(column))], dtype=np.int64)
    return np.zeros(len(column), dtype=np.int64)


# -- workbooks ---------------------------------------------------------------------------------------------------------
class WorkbookSource(HeldSource):
    """A sheet of a workbook, whose first row that is not empty names the columns; formulas have their last values."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        sheet: str | None = None,
        skip_bad: bool = False,
        limits: Limits | None = None,
    ) -> None:
        self.sheet = sheet
        super().__init__(path, skip_bad=skip_bad, limits=limits)

    def read_columns(self) -> dict[str, list[Any]]:
        """Return the values of each column."""
        try:
            from openpyxl import load_workbook  # type: ignore[import-untyped]
        except ImportError:
            raise NotAvailableError(
                f"{self.name} is a workbook, and openpyxl, which reads workbooks, is not installed. Install it: "
                "pip install deciban[excel]; or save the sheet as CSV."
            ) from None
        if self.stdin:
            raise self.refusal(" cannot be a workbook.", remedy="Save it to a file first.")
        self._check_size()
        try:
            book = load_workbook(os.fspath(self.path), read_only=True, data_only=True)
        except Exception as error:  # the parser raises errors of many kinds for files that are damaged
            raise self.unreadable(error) from None
        try:
            return self._cells(book)
        except InputError:
            raise
        except Exception as error:
            raise self.unreadable(error) from None
        finally:
            book.close()

    def _check_size(self) -> None:
        """Refuse a workbook that would be too large in memory."""
        try:
            with zipfile.ZipFile(os.fspath(self.path)) as packed:
                size = sum(entry.file_size for entry in packed.infolist())
        except (zipfile.BadZipFile, OSError) as error:
            raise self.unreadable(error) from None
        if size > self.limits.unpacked_bytes or size > max(2**20, self.limits.ratio * os.path.getsize(self.path)):
            raise self.refusal(
                f" holds {size:,} bytes after decompression.",
                remedy=self.limits.remedy("unpacked_bytes", "Save the sheet as CSV"),
            )

    def _cells(self, book: Any) -> dict[str, list[Any]]:
        if self.sheet is not None and self.sheet not in book.sheetnames:
            raise self.refusal(f" has no sheet {self.sheet!r}: {', '.join(book.sheetnames)[:200]}.")
        sheet = book[self.sheet or book.sheetnames[0]]
        names: list[str] | None = None
        rows: list[tuple[Any, ...]] = []
        for row in sheet.iter_rows(values_only=True):
            if row.count(None) == len(row):
                continue
            if names is None:
                width = max(at for at, value in enumerate(row, 1) if value is not None)
                names = ["" if value is None else str(value).strip() for value in row[:width]]
                continue
            if len(row) > width and row[width:].count(None) < len(row) - width:
                raise self.refusal(
                    f": row {len(rows) + 2} has cells beyond the last column that has a name.",
                    remedy="Name the columns in the first row.",
                )
            if width * len(rows) > self.limits.cells:
                raise self.refusal(
                    f" has more than {len(rows):,} rows of {width:,} columns.",
                    remedy=self.limits.remedy("cells", "Save the sheet as CSV"),
                )
            rows.append(row[:width] + (None,) * (width - len(row)))
        columns = [list(values) for values in zip(*rows)] if rows else [[] for _ in names or ()]
        return self.named(names or [], columns)
