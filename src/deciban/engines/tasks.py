"""Tasks of a plan: the fragments that they read, the sums that they return, how sums are added, and passes over parts.

A fragment is the piece of an input that one task reads: a file, a run of row groups, or a partition of a frame. A task
is a pure function of its fragment and of the choices, so that a task which runs twice returns the same value.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

import deciban
from deciban.engines import words
from deciban.errors import DecibanError, EngineError, InputError, NoRowsError
from deciban.families.protocol import Family, LabelledPart, accumulator
from deciban.model.fit import gap_in_block
from deciban.model.ledger import Key, Ledger, LedgerSums, ledger_of
from deciban.model.model import ModelStats, Reader, lesson
from deciban.read.batches import Batch, Rows, together
from deciban.read.binary_files import ParquetSource
from deciban.read.files import ManyFiles, check_columns, check_types
from deciban.read.paths import is_address
from deciban.read.schema import Schema
from deciban.read.source import Skipped, Source
from deciban.statistics import Array

# -- fragments ---------------------------------------------------------------------------------------------------------
FRAGMENT_BYTES = 2**26  # uncompressed bytes of row groups after which another fragment begins
OPENERS = 8  # threads that read footers of Parquet files


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
        """Name of the part in messages."""
        if self.row_groups is None:
            return self.path
        return f"{self.path}, row groups {self.row_groups[0]} to {self.row_groups[-1]}"

    def source(self) -> Source:
        """Open the part; this process may be another one than the process that found the file."""
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
    name: str  # name of the fragment in messages
    skip: int = 0  # rows of the fragment that are among the first rows of the input
    sample: Array | None = None  # positions, among the rows after those skipped, that calibration uses
    stop: int | None = None  # row of the fragment before which its part ends, if that is not the last one


# -- reading on a worker -----------------------------------------------------------------------------------------------
def labelled_batches(
    data: Any, task: Task, label: str, schema: Schema, columns: Sequence[str]
) -> tuple[Iterator[Batch], Source | None]:
    """Return the labelled rows of a fragment in batches, typed by the schema, and its source, if it is a file.

    `data` is a `FilePart`, a source, or a frame. The rows that the task skips, and those from its `stop` on, are left
    out; `columns` are those of the first fragment.
    """
    source = data if isinstance(data, Source) else None
    if isinstance(data, FilePart):
        if data.rows is not None and task.skip >= data.rows:
            return iter(()), None  # all rows are among the first rows: nothing is read
        source = data.source()
        source.quiet, source.prefetch = True, False  # one thread for each fragment
        check_columns(source.columns, columns, source.name, "the first file")
    elif source is None and len(data):
        check_columns(columns_of(data), columns, task.name, "the first partition")
    rows = Rows(data if source is None else source, label, None, lambda table, _: schema, schema)
    return _between(rows.batches(parts=True), task, counted=source is not None), source


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


def _between(batches: Iterator[Batch], task: Task, counted: bool) -> Iterator[Batch]:
    """Leave out rows of the input by the `skip` and the `stop` of a task.

    With `counted`, the origin of a row is its number.
    """
    start = 0
    for batch in batches:
        n = len(batch.table)
        at: Array = np.asarray(batch.table.origin.rows) if counted and batch.table.origin else start + np.arange(n)
        start += n
        if task.stop is not None and at[0] >= task.stop:
            return
        if at[0] >= task.skip and (task.stop is None or at[-1] < task.stop):
            yield batch
        elif at[-1] >= task.skip:
            kept = np.flatnonzero((at >= task.skip) & (at < (np.inf if task.stop is None else task.stop)))
            yield Batch(batch.table.take(kept), batch.labels[kept], None)


class Files:
    """Files as the input of a plan: `first` is their source, `items` are their parts with the rows to skip."""

    def __init__(self, source: Source, label: str, parts: Sequence[FilePart]) -> None:
        self.first, self.label, self.parts = source, label, parts

    def items(self, read: int) -> list[tuple[FilePart, Task]]:
        """Return the parts with the rows to skip: the first `read` rows of the source."""
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


# -- addition and engines ----------------------------------------------------------------------------------------------
Work = Callable[[Any, Task], Any]  # function of the data of a fragment and of its task
Items = Sequence[tuple[Any, Task]]  # data of fragments and their tasks
Sums = tuple[Any, ...]  # each is added to those of other parts; None adds nothing


class Addition(Protocol):
    """How values of tasks are added, in one part or in several."""

    @property
    def parts(self) -> int:
        """The number of parts."""

    def add(self, values: Sequence[Any]) -> Any:
        """Return the sum of some values of one part."""

    def cuts(self, first: Any) -> Any:
        """Return where sums are split, given that of the first part."""

    def split(self, value: Any, cuts: Any) -> list[Any]:
        """Return a sum in as many pieces as there are parts."""

    def join(self, pieces: Sequence[Any]) -> Any:
        """Return the pieces of all parts that belong together as one."""


class Engine(Protocol):
    """Runs tasks, here or elsewhere. Tasks are pure: an engine may run one again, and uses one of the results."""

    def total(self, work: Work, items: Items, addition: Addition) -> Iterator[Any]:
        """Yield the sum over all items of `work(data, task)`, by a `tree` of `addition.add`, for each of its parts.

        `work` returns a list of values, one for each part; those of one part are added. If there are several parts, the
        sums are exchanged: `cuts` of the first sum, `split` of each sum at the cuts, `join` of what belongs together.
        A sum is fetched when it is asked for, so that this process need not hold all of them.
        """

    def each(self, work: Work, items: Items) -> Iterable[Any]:
        """Return the values of `work(data, task)` in the order of the items."""

    def keep(self, work: Work, items: Items) -> Items:
        """Compute `work(data, task)` of each item; return items that refer to the values, which stay on the workers."""


# -- the sums of a fragment --------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Choices:
    """Choices made from the first rows, which hold for all fragments."""

    family: Family[Any]  # with its choices made
    known: Any  # statistics that hold the names which rows are encoded by
    reader: Reader
    label: str
    given: tuple[str, ...]  # columns of the input
    together: frozenset[Any] = frozenset()  # columns that must not have gaps
    key: Key | None = None  # key of the ledger
    version: str = deciban.__version__


class Sampled(NamedTuple):
    """Rows of one fragment that calibration uses."""

    place: int  # position of the fragment
    batch: Batch


@dataclass(frozen=True, eq=False)
class Partial:
    """The sums of some fragments, with their ledger, numbers of rows, sample, gaps and skipped rows."""

    stats: Any = None  # ModelStats, or Words in all parts but the first; None if there was no row
    ledger: Ledger | None = None
    rows: tuple[tuple[int, int], ...] = ()  # fragment and its rows, without those skipped
    sample: tuple[Sampled, ...] = ()
    gap: bool = False  # whether a value is missing in columns that were found to vary together
    skipped: Skipped = field(default_factory=Skipped)  # rows that could not be read
    size: words.Size | None = None  # size of the vocabulary; only in split sums, in the piece of the first range

    def __add__(self, other: Partial) -> Partial:
        return Partial(
            _sum(self.stats, other.stats),
            self.ledger.merge(other.ledger) if self.ledger and other.ledger else self.ledger or other.ledger,
            self.rows + other.rows,
            self.sample + other.sample,
            self.gap or other.gap,
            self.skipped + other.skipped,
        )


@dataclass(frozen=True)
class Adding:
    """How partial sums are added; in several parts where the vocabulary is large."""

    parts: int = 1

    def add(self, values: Sequence[Partial]) -> Partial:
        """Add neighbours first: n partial sums in ⌈log₂ n⌉ steps."""
        while len(values) > 1:
            pairs = [values[at : at + 2] for at in range(0, len(values), 2)]
            values = [pair[0] + pair[1] if len(pair) > 1 else pair[0] for pair in pairs]
        return values[0]

    def cuts(self, first: Partial) -> Any:
        """Return the words at which ranges begin."""
        return words.cuts(first.stats, self.parts)

    def split(self, value: Partial, cuts: Any) -> list[Partial]:
        """Return the sums of a part by ranges of words."""
        pieces = words.ranged(value.stats, cuts)
        first = replace(value, stats=pieces[0], size=words.size(value.stats))
        return [first, *(Partial(piece) for piece in pieces[1:])]

    def join(self, pieces: Sequence[Partial]) -> Partial:
        """Return the sums of one range, with the other values of the first part."""
        sizes = [piece.size for piece in pieces if piece.size is not None]
        stats = words.joined([piece.stats for piece in pieces])
        return replace(pieces[0], stats=stats, size=words.size_of_all(sizes) if sizes else None)


@dataclass(frozen=True, eq=False)
class Summing:
    """The work of the first pass: the sums of a fragment, and the rows of the sample where they are known."""

    choices: Choices
    parts: int = 1

    def __call__(self, data: Any, task: Task) -> list[Partial]:
        """Return the sums of a fragment, in parts; data that are partial sums already are those of the first rows."""
        check_version(self.choices.version, task.name)
        with located(data, task.name):
            found = data if isinstance(data, Partial) else _partial(self.choices, data, task)
        if self.parts == 1 or found.stats is None:
            return [found, *[Partial()] * (self.parts - 1)]
        first, *others = words.parted(found.stats, self.parts)
        return [replace(found, stats=first), *map(Partial, others)]


@dataclass(frozen=True, eq=False)
class Sampling:
    """The work of the second pass, where the numbers of rows were not known before: rows of the sample."""

    choices: Choices

    def __call__(self, data: Any, task: Task) -> tuple[Sampled, ...]:
        """Return the rows of the sample."""
        check_version(self.choices.version, task.name)
        with located(data, task.name):
            batches, _ = _batches(self.choices, data, task)
            return _sampled(task, list(_wanted(batches, task)))


@dataclass(frozen=True, eq=False)
class Encoding:
    """The work that encodes the rows of a fragment once, for families that iterate over all rows."""

    choices: Choices
    known: Any  # statistics of all rows, which hold the names that rows are encoded by
    classes: tuple[Any, ...]

    def __call__(self, data: Any, task: Task) -> LabelledPart:
        """Return the encoded rows, with their classes."""
        check_version(self.choices.version, task.name)
        with located(data, task.name):
            try:
                batches = list(_batches(self.choices, data, task)[0])
            except NoRowsError:
                batches = []
            if not batches:
                return LabelledPart(None, None)
            found = lesson(self.choices.family, together(batches), self.known, self.classes)
            return LabelledPart(found.rows, found.members)


def _batches(choices: Choices, data: Any, task: Task) -> Any:
    schema = choices.reader.schema
    assert schema is not None  # fragments are files and frames, which have one
    return labelled_batches(data, task, choices.label, schema, choices.given)


def _partial(choices: Choices, data: Any, task: Task) -> Partial:
    """Return the sums of a fragment; without statistics if it has no rows."""
    sums, hashes, counts, rows = None, None, None, 0
    kept: list[Batch] = []
    try:
        batches, source = _batches(choices, data, task)
        for batch in batches:
            if gap_in_block(batch.table, choices.together):
                return Partial(gap=True)
            with batch.located():
                taken = lesson(choices.family, batch, choices.known)
                if sums is None:
                    sums = accumulator(choices.family, taken.rows, taken.members, choices.reader.columns)
                else:
                    sums.add(taken.rows, taken.members)
                here = ModelStats({"class": taken.members.classes}, taken.members.weights(), {})
                counts = _sum(counts, here)
                if hashes is not None:
                    hashes.add(batch)
                elif choices.key is not None:
                    hashes = LedgerSums(ledger_of(batch, choices.key), choices.reader.columns, choices.key)
            kept += _wanted([batch], task, rows)
            rows += len(batch.table)
    except NoRowsError:
        return Partial(rows=((task.place, 0),))
    skipped = Skipped() if source is None else source.skipped
    if sums is None or counts is None:
        return Partial(rows=((task.place, 0),), skipped=skipped)
    stats, ledger = replace(counts, family=sums.total()), None if hashes is None else hashes.ledger()
    return Partial(stats, ledger, ((task.place, rows),), _sampled(task, kept), skipped=skipped)


def _wanted(batches: Iterable[Batch], task: Task, start: int = 0) -> Iterator[Batch]:
    """Yield the rows that calibration uses, of batches that begin at a row of the fragment."""
    if task.sample is None or not len(task.sample):
        return
    for batch in batches:
        n = len(batch.table)
        first, last = np.searchsorted(task.sample, [start, start + n])
        at = task.sample[first:last] - start
        if len(at):
            yield Batch(replace(batch.table.take(at), origin=None), np.asarray(batch.labels[at]), np.ones(len(at)))
        start += n


def _sampled(task: Task, kept: Sequence[Batch]) -> tuple[Sampled, ...]:
    return tuple(Sampled(task.place, batch) for batch in kept)


def _sum(one: Any, two: Any) -> Any:
    return one if two is None else two if one is None else one + two


def check_version(version: str, name: str) -> None:
    """Raise an EngineError if the program that fits has another version of deciban, whose sums may differ."""
    if version != deciban.__version__:
        raise EngineError(
            f"{name}: the worker has deciban {deciban.__version__}, and the program that fits has {version}.",
            remedy="Install the same version on all machines.",
        )


# -- passes of an iterative fit ----------------------------------------------------------------------------------------
# A pass is `total(work)`: every part returns the sums of its rows under the parameters that `work` holds, and the tree
# of the plan adds them. The loop over passes (EM, topics) is that of one machine and runs in this process.
#
# Parts are computed once by `kept`, and stay on the workers. If a worker dies, its parts are computed again
# from the rows. Work must not change a part, so that a pass which runs twice gives the same sums.
@dataclass(frozen=True, eq=False)
class Passes:
    """Rows in parts that stay on the workers which computed them."""

    engine: Engine
    items: Sequence[tuple[Any, Task]]

    def kept(self, work: Callable[[Any], Any]) -> Passes:
        """Return the parts as `work` makes them of these."""
        return Passes(self.engine, self.engine.keep(_OnPart(work), self.items))

    def total(self, work: Callable[[Any], Sums]) -> Sums:
        """Return the sums of `work(part)` over all parts."""
        return next(self.engine.total(_OnPart(work, listed=True), self.items, _Elementwise()))

    def each(self, work: Callable[[Any], Any]) -> list[Any]:
        """Return `work(part)` of all parts in order; for values that are small."""
        return list(self.engine.each(_OnPart(work), self.items))

    def names(self) -> list[str]:
        """Return the names of the parts in messages."""
        return [task.name for _, task in self.items]


@dataclass(frozen=True, eq=False)
class _OnPart:
    """The work of a pass on one part; checks the version, and names the part in errors."""

    work: Callable[[Any], Any]
    listed: bool = False
    version: str = deciban.__version__

    def __call__(self, data: Any, task: Task) -> Any:
        check_version(self.version, task.name)
        with located(data, task.name):
            found = self.work(data)
        return [found] if self.listed else found


@dataclass(frozen=True)
class _Elementwise(Adding):
    """Adds tuples of sums; None adds nothing."""

    def add(self, values: Sequence[Any]) -> Any:
        """Add neighbours first."""
        while len(values) > 1:
            pairs = [values[at : at + 2] for at in range(0, len(values), 2)]
            values = [tuple(map(_sum, *pair)) if len(pair) > 1 else pair[0] for pair in pairs]
        return values[0]
