"""Parquet, and Arrow files (Feather, IPC): typed columns as they are."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from deciban.errors import InputError
from deciban.read.opening import COMPRESSED, FileSource
from deciban.read.source import checked_names
from deciban.read.tables import HEAD

if TYPE_CHECKING:
    import pyarrow as pa


class ColumnarSource(FileSource):
    """A file whose columns have types."""

    def __init__(self, path: str | os.PathLike[str], *, skip_bad: bool = False) -> None:
        super().__init__(path, skip_bad=skip_bad)
        import pyarrow as pa

        try:
            with self._file() as (schema, _):
                self._columns = checked_names(schema.names, self.name)
        except (pa.ArrowException, OSError) as error:
            raise self.unreadable(error) from None

    @property
    def columns(self) -> tuple[str, ...]:
        return self._columns

    def pieces(self) -> Iterator[pa.Table]:
        """Row group by row group, or batch by batch."""
        import pyarrow as pa

        try:
            with self._file() as (_, batches):
                for batch in batches:
                    self.progressed()
                    yield pa.Table.from_batches([batch])
        except (pa.ArrowException, OSError) as error:
            if isinstance(error, InputError):
                raise
            raise self.unreadable(error) from None

    @abstractmethod
    def _file(self) -> Any:
        """The file as a context: its schema, and its batches."""

    def _seekable(self, stream: Any) -> Any:
        """These formats are read from their end: what is compressed as a whole is unpacked into memory."""
        import pyarrow as pa

        packed = self.stdin or os.path.splitext(self.name)[1].lower() in COMPRESSED
        return pa.BufferReader(stream.read()) if packed else stream


class ParquetSource(ColumnarSource):
    """Parquet."""

    def _file(self) -> Any:
        from contextlib import contextmanager

        @contextmanager
        def opened() -> Iterator[tuple[Any, Any]]:
            from pyarrow import parquet

            with self.opened() as stream:
                file = parquet.ParquetFile(self._seekable(stream))
                yield file.schema_arrow, file.iter_batches(batch_size=HEAD)

        return opened()


class ArrowSource(ColumnarSource):
    """Arrow IPC, as a file (Feather) or as a stream."""

    def _file(self) -> Any:
        from contextlib import contextmanager

        @contextmanager
        def opened() -> Iterator[tuple[Any, Any]]:
            import pyarrow as pa

            with self.opened() as stream:
                whole = self._seekable(stream)
                try:
                    file = pa.ipc.open_file(whole)
                    yield file.schema, (file.get_batch(at) for at in range(file.num_record_batches))
                except pa.ArrowInvalid:
                    whole.seek(0)
                    batches = pa.ipc.open_stream(whole)
                    yield batches.schema, batches

        return opened()
