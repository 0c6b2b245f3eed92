"""Fragments: the pieces of an input that one task reads: a file, a run of row groups, or a partition of a frame."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from deciban.errors import DecibanError, InputError
from deciban.read.batches import Batch, Rows
from deciban.read.binary_files import ParquetSource
from deciban.read.files import ManyFiles, check_columns, check_types
from deciban.read.paths import is_address
from deciban.read.schema import Schema
from deciban.read.source import Source
from deciban.statistics import Array

FRAGMENT_BYTES = 2**26  # bytes of row groups, before compression, from which on another fragment begins
OPENERS = 8  # threads that read the footers of Parquet files


@dataclass(frozen=True)
class FilePart:
    """A file, or a run of its row groups."""

    path: str  # absolute, or an address: processes that read it may have other current folders
    open_one: Callable[..., Source]  # opens a path
    row_groups: tuple[int, ...] | None = None
    rows: int | None = None  # None where it is known only when the file has been read
    first: int = 0  # row of the file at which the part begins

    @property
    def name(self) -> str:
        """What messages call it."""
        if self.row_groups is None:
            return self.path
        return f"{self.path}, row groups {self.row_groups[0]} to {self.row_groups[-1]}"

    def source(self) -> Source:
        """Open it; the process may be another one than that which found the file."""
        if not is_address(self.path) and not os.path.exists(self.path):
            raise InputError(
                f"{self.path}: the process that reads it, on {socket.gethostname()}, finds no such file: it was "
                "removed, or that machine does not see it.",
                remedy="Give files that all machines see under the same path, or at an address such as s3://….",
            )
        source = self.open_one(self.path)
        if self.row_groups is not None:
            source = ParquetSource(
                self.path, skip_bad=source.skip_bad, limits=source.limits, row_groups=self.row_groups
            )
        return source


def parts_of(source: Source, size: int = FRAGMENT_BYTES) -> list[FilePart]:
    """Return the parts of a source of files, in order; none for a source that cannot be split.

    They depend on the files alone, not on the machines that read them. A Parquet file with other columns or types than
    the first is refused.
    """
    if isinstance(source, ManyFiles):
        first = source.first
        with ThreadPoolExecutor(OPENERS) as pool:
            each = pool.map(lambda path: _parts_of_file(_anywhere(path), source.open_one, size, first), source.paths)
            return [part for parts in each for part in parts]
    if isinstance(source, ParquetSource) and not source.stdin:
        return _parts_of_file(_anywhere(str(source.path)), _Opener(source.skip_bad), size)
    return []


def _anywhere(path: str) -> str:
    """Return a path that does not depend on the current folder."""
    return path if is_address(path) else os.path.abspath(path)


@dataclass(frozen=True)
class _Opener:
    """Opens a path as a Parquet file."""

    skip_bad: bool

    def __call__(self, path: str) -> ParquetSource:
        return ParquetSource(path, skip_bad=self.skip_bad)


def _parts_of_file(
    path: str, open_one: Callable[..., Source], size: int, first: Source | None = None
) -> list[FilePart]:
    if not path.lower().endswith((".parquet", ".pq")):
        return [FilePart(path, open_one)]
    source = open_one(path)
    if not isinstance(source, ParquetSource):
        return [FilePart(path, open_one)]
    if isinstance(first, ParquetSource):
        check_columns(source.columns, first.columns, source.name, first.name)
        check_types(source.schema, first.schema, source.name, first.name)
    parts: list[FilePart] = []
    groups: list[int] = []
    begin = rows = held = 0
    for group, (n, held_here) in enumerate(source.sizes()):
        groups.append(group)
        rows, held = rows + n, held + held_here
        if held >= size:
            parts.append(FilePart(path, open_one, tuple(groups), rows, begin))
            groups, begin, rows, held = [], begin + rows, 0, 0
    if groups:
        parts.append(FilePart(path, open_one, tuple(groups), rows, begin))
    known = None if source.skip_bad else 0
    return parts if known == 0 else [replace(part, rows=None) for part in parts]


class Task(NamedTuple):
    """The part of the work that belongs to one fragment."""

    place: int  # position of the fragment in the input
    name: str  # what messages call it
    skip: int = 0  # rows of the fragment that are among the first rows of the input
    sample: Array | None = None  # positions, among the rows after those skipped, that calibration uses


# -- reading on a worker -----------------------------------------------------------------------------------------------
def labelled_batches(
    data: Any, name: str, label: str, schema: Schema, columns: Sequence[str], skip: int
) -> tuple[Iterator[Batch], Source | None]:
    """Return the labelled rows of a fragment in batches, typed by the schema, and its source, if it is a file.

    `data` is a `FilePart`, a source, or a frame. The first `skip` rows are left out; `columns` are those of the first
    fragment.
    """
    source = data if isinstance(data, Source) else None
    if isinstance(data, FilePart):
        if data.rows is not None and skip >= data.rows:
            return iter(()), None  # all rows are among the first rows: nothing is read
        source = data.source()
        source.quiet, source.prefetch = True, False  # one thread for each fragment
        check_columns(source.columns, columns, source.name, "the first file")
    elif source is None and len(data):
        check_columns(columns_of(data), columns, name, "the first partition")
    rows = Rows(data if source is None else source, label, None, lambda table, _: schema, schema)
    return _after(rows.batches(parts=True), skip, counted=source is not None), source


def columns_of(frame: Any) -> list[str]:
    """Return the names of the columns of a partition: an Arrow table, or a frame of pandas."""
    return [str(name) for name in getattr(frame, "column_names", frame.columns)]


@contextmanager
def located(data: Any, name: str) -> Iterator[None]:
    """Context in which errors about the rows of a partition name it; errors about a file name it already."""
    try:
        yield
    except DecibanError as error:
        if isinstance(data, FilePart | Source) or (error.place or "").startswith(name):
            raise
        row = None if error.row is None else f"row {error.row}"
        here = [name, *filter(None, [error.place or row])]
        raise error.but(place=", ".join(here)) from error


def _after(batches: Iterator[Batch], skip: int, counted: bool) -> Iterator[Batch]:
    """Leave out the first rows as they were given; with `counted`, the origin of rows says how many were before."""
    start = 0
    for batch in batches:
        n = len(batch.table)
        at: Array = np.asarray(batch.table.origin.rows) if counted and batch.table.origin else start + np.arange(n)
        start += n
        if at[0] >= skip:
            yield batch
        elif at[-1] >= skip:
            kept = np.flatnonzero(at >= skip)
            yield Batch(batch.table.take(kept), batch.labels[kept], None)


class Files:
    """Files as the input of a plan: `first` is their source, `items` are their parts with the rows to skip."""

    def __init__(self, source: Source, label: str, parts: Sequence[FilePart]) -> None:
        self.first, self.label, self.parts = source, label, parts

    def items(self, read: int) -> list[tuple[FilePart, Task]]:
        """Return the parts; `read` rows of the source have been read, and where its files begin is known so far."""
        if isinstance(self.first, ManyFiles):
            begin = dict(zip(map(_anywhere, self.first.paths), self.first.starts))
        else:
            begin = {part.path: 0 for part in self.parts}
        skips = [max(0, read - begin[part.path] - part.first) if part.path in begin else 0 for part in self.parts]
        return [(part, Task(at, part.name, skip)) for at, (part, skip) in enumerate(zip(self.parts, skips))]

    def rows(self) -> list[int] | None:
        """Return the rows of each part; None if one of them is not known."""
        known = [part.rows for part in self.parts]
        return None if None in known else known  # type: ignore[return-value]
