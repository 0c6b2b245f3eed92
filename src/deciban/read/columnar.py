"""Files with typed columns: Parquet, and Arrow IPC (Feather)."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import pyarrow as pa
from pyarrow import parquet

from deciban.errors import InputError
from deciban.read.limits import Limits
from deciban.read.source import COMPRESSED, FileSource, checked_names
from deciban.read.tables import HEAD

PIECE = 2**24  # bytes decompressed at a time
Contents = AbstractContextManager[tuple[pa.Schema, Iterator[pa.RecordBatch]]]


class ColumnarSource(FileSource):
    """A file whose columns have types."""

    def __init__(self, path: str | os.PathLike[str], *, skip_bad: bool = False, limits: Limits | None = None) -> None:
        super().__init__(path, skip_bad=skip_bad, limits=limits)
        try:
            with self._contents() as (schema, _):
                self._columns = checked_names(schema.names, self.name)
        except (pa.ArrowException, OSError) as error:
            raise self.unreadable(error) from None

    @property
    def columns(self) -> tuple[str, ...]:
        return self._columns

    def pieces(self) -> Iterator[pa.Table]:
        """Record batches."""
        try:
            with self._contents() as (_, batches):
                for batch in batches:
                    self.progressed(0)  # counted when it was decompressed
                    yield pa.Table.from_batches([batch])
        except (pa.ArrowException, OSError) as error:
            if isinstance(error, InputError):
                raise
            raise self.unreadable(error) from None

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
    """A Parquet file."""

    @contextmanager
    def _contents(self) -> Iterator[tuple[pa.Schema, Iterator[pa.RecordBatch]]]:
        with self.opened() as stream:
            file = parquet.ParquetFile(self._seekable(stream))
            yield file.schema_arrow, file.iter_batches(batch_size=HEAD)


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
