"""Files with typed columns: Parquet, and Arrow IPC (Feather)."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import parquet

from deciban.errors import InputError
from deciban.kernels.parallel import get_threads
from deciban.read.limits import Limits, too_long
from deciban.read.source import COMPRESSED, FileSource, checked_names
from deciban.read.tables import HEAD

TEXTS = (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())
PIECE = 2**24  # bytes decompressed at a time
Contents = AbstractContextManager[tuple[pa.Schema, Iterator[pa.RecordBatch]]]


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
