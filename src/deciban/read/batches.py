"""Labelled rows in batches: frames, files and arrays as tables with labels and weights; and samples of the rows.

Frames and files are read by the same schema in the same batches, so that a model fitted from a file of any size equals
the one fitted from memory. Arrays, sparse matrices and lists of texts are one batch.

Samples are uniform, bounded, and independent of the batches: every row has a pseudo-random number that depends on its
position alone, and the rows with the smallest numbers are kept.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deciban.errors import HERE, DecibanError, InputError, NoRowsError
from deciban.read.arrays import row_weights
from deciban.read.codes import Labels, one_label_a_row
from deciban.read.files import PLACES, open_source
from deciban.read.source import Source, text_slices
from deciban.read.tables import HEAD, Table, TypedTable, stacked
from deciban.terminal import one_line

if TYPE_CHECKING:
    from rich.progress import Progress

    from deciban.read.schema import Schema

Array = NDArray[Any]
T = TypeVar("T")
PROGRESS_AFTER = 1.0  # seconds before a progress bar is shown
FEWEST_LABELS = 20  # fewer labels that are all equal, or all different, may be chance
MOST_ROWS = 20_000  # calibration is fitted on the leave-one-out scores of at most so many rows
RUN = 2**15  # rows whose numbers are computed at a time: they stay in the cache
MARGIN = 1.25  # times as many rows as wanted are expected below the bound
SLACK = 1.2  # times as many rows are held before the surplus is dropped


@dataclass(frozen=True, eq=False)
class Batch:
    """n rows with their labels and weights, none of which is 0."""

    table: Table
    labels: Labels | Array | Any  # (n,)
    weight: Array | None = None  # (n,) positive; None for 1 each

    def located(self) -> AbstractContextManager[None]:
        """Context in which errors about rows name the place of the row in the input."""
        return self.table.located()

    def parts(self, texts: Sequence[str]) -> Iterator[Batch]:
        """The same rows in several batches, split where these columns hold much text."""
        held = [self.table.column(self.table.columns.index(name)) for name in texts]
        for rows in text_slices(held, len(self.table)):
            weight = None if self.weight is None else self.weight[rows]
            yield Batch(self.table.take(rows), self.labels[rows], weight)


@dataclass
class Rows:
    """Rows and labels as given, to be read in batches.

    X is a source, the path of one, or anything that `Table.of` takes; y the labels, or the name of their column.
    Afterwards X is a `Source` or a `Table` without rows of weight 0.
    """

    X: Any
    y: Any
    weight: Any = None  # (n,), or None for 1 each
    reader: Callable[[Table, str | None], Schema] | None = None  # makes a schema of the first rows and the label's name
    schema: Schema | None = None  # None until the first rows have been read, unless given; and where there is no reader

    def __post_init__(self) -> None:
        self.label = self.y if isinstance(self.y, str) else None
        if isinstance(self.X, PLACES):
            self.X = source = open_source(self.X)
            if not isinstance(self.y, str):
                raise source.refusal(
                    ": its labels are one of its columns.", remedy="For y, give its name, such as 'label'."
                )
            if self.weight is not None:
                raise source.refusal(": its rows cannot be weighted.", remedy="Load them into a frame first.")
            if self.y not in source.columns:
                raise _no_label(source.name, self.y, source.columns)
            return
        table = Table.of(self.X)
        if isinstance(self.y, str):
            table, self.y = split_label(table, self.y)
        if table.framed and _is_array(table):
            self.reader = None
        self.X, self.y, self.weight = with_weight(table, self.y, self.weight)

    def batches(self, parts: bool = False, ahead: bool = True) -> Iterator[Batch]:
        """Batches of 65,536 rows in order; choices are taken from the first.

        With `parts`, later batches are split where they hold much text. With `ahead`, another thread may read a source
        in advance.
        """
        if isinstance(self.X, Source):
            found = self._of_source(self.X, self.y, self._texts if parts else tuple)
            yield from prefetched(found) if ahead and self.X.prefetch else found
        elif self.reader is None or not self.X.framed:
            yield Batch(self.X, self.y, self.weight)
        else:
            yield from self._of_frame(HEAD, parts)

    def at(self, rows: Array) -> Rows:
        """Some of the rows of a table in memory."""
        labels = np.asarray(self.y) if hasattr(self.y, "dtype") else np.array(list(self.y), dtype=object)
        return replace(
            self, X=self.X.take(rows), y=labels[rows], weight=None if self.weight is None else self.weight[rows]
        )

    def whole(self) -> Batch:
        """All rows in one batch."""
        if isinstance(self.X, Source):
            return together(list(self._of_source(self.X, self.y)))
        if self.reader is None or not self.X.framed:
            return Batch(self.X, self.y, self.weight)
        return next(self._of_frame(len(self.X)))

    def _of_frame(self, rows: int, parts: bool = False) -> Iterator[Batch]:
        labels = self.y.to_numpy() if hasattr(self.y, "to_numpy") else self.y
        labels = labels if hasattr(labels, "shape") else np.array(list(labels or ()), dtype=object)
        if len(labels) != len(self.X):
            raise one_label_a_row(len(self.X), len(labels))
        self.schema = schema = replace(self._schema_of(self.X, None), label=self.label)
        for at in range(0, len(self.X), rows):
            part = slice(at, at + rows)
            some = self.X if len(self.X) <= rows else self.X.take(part)
            weight = None if self.weight is None else self.weight[part]
            whole = Batch(schema.apply(some), labels[part], weight)
            yield from whole.parts(self._texts()) if parts and at else [whole]

    def _texts(self) -> list[str]:
        """The columns that hold texts; none until the first rows have been read."""
        return [] if self.schema is None else [name for name, kind in self.schema.kinds.items() if kind == "text"]

    def _of_source(self, source: Source, label: str, texts: Callable[[], Sequence[str]] = tuple) -> Iterator[Batch]:
        """Batches of a source; rows that do not fit are errors, or skipped and counted if it has `skip_bad`."""
        first, examined = True, self.schema is not None
        for given in with_progress(source, texts):
            with given.located():
                schema = self._schema_of(given, label)
            table, typed = fitting_rows(given, schema, source, labelled=True)
            if not len(table):
                continue
            labels = schema.labels(table)
            if first and not examined:
                _check_labels(labels, label, source)
            first = False
            yield Batch(typed, labels)
        if first:
            raise source.without_rows()

    def _schema_of(self, table: Table, label: str | None) -> Schema:
        if self.schema is None:
            self.schema = self.reader(table, label)  # type: ignore[misc]
        return self.schema


def together(batches: Sequence[Batch]) -> Batch:
    """Several batches of typed rows without weights as one."""
    labels = np.concatenate([np.asarray(batch.labels) for batch in batches])
    return Batch(stacked([batch.table for batch in batches]), labels)


def typed_rows(X: Source | str | os.PathLike[str] | Any, schema: Schema) -> TypedTable:
    """All rows of a frame, a table or a file, typed by a schema; labels are not read."""
    if not isinstance(X, PLACES):
        return schema.apply(Table.of(X))
    return stacked([schema.apply(table) for table in with_progress(open_source(X))])


def fitting_rows(table: Table, schema: Schema, source: Source, labelled: bool = False) -> tuple[Table, TypedTable]:
    """The rows of a batch that fit the schema, as given and typed; with `labelled` they must have a label, too.

    Other rows are skipped and counted if the source has `skip_bad`; otherwise the first is an error.
    """
    if not source.skip_bad:
        return table, schema.apply(table)
    if labelled:
        from deciban.read.schema import labelled_rows

        kept = labelled_rows(table, str(schema.label))
        if len(kept) < len(table):
            source.skipped.add(InputError("no label"), len(table) - len(kept))
            table = table.take(kept)
    bad: list[DecibanError] = []
    typed = schema.apply(table, bad)
    if bad:
        wrong = {int(error.row or 0): error for error in reversed(bad)}  # the first error of each row
        for row in sorted(wrong):
            source.skipped.add(wrong[row], origin=table.origin)
        left = np.delete(np.arange(len(table)), list(wrong))
        table, typed = table.take(left), typed.take(left)
    return table, typed


def split_label(table: Table, name: str) -> tuple[Table, Array]:
    """A frame without its column of labels, and the labels."""
    names = [str(column) for column in table.columns]
    if not table.framed or name not in names:
        raise _no_label("the table", name, table.columns)
    series = table.data[:, names.index(name)]
    rest = [column for column in table.columns if str(column) != name]
    labels = series.to_numpy() if series.dtype.is_numeric() else np.array([*series.to_list(), None], dtype=object)[:-1]
    return Table(table.data.select(rest), tuple(rest), table.named, table.origin), labels


def with_weight(table: Table, y: Any, sample_weight: ArrayLike | None) -> tuple[Table, Any, Array | None]:
    """Rows, labels and weights without the rows of weight 0."""
    n = table.data.shape[0]
    if n == 0:
        raise NoRowsError(f"Found array with 0 sample(s) (shape={table.shape}) while a minimum of 1 is required.")
    weight = None if sample_weight is None else row_weights(sample_weight, n)
    if weight is None or weight.all() or y is None:
        return table, y, weight
    kept = np.flatnonzero(weight)
    labels = np.asarray(y) if hasattr(y, "dtype") else np.array(list(y), dtype=object)
    if len(labels) != n:
        raise one_label_a_row(n, len(labels))
    weight = weight[kept]
    return table.take(kept), labels[kept], None if (weight == 1).all() else weight


def _is_array(table: Table) -> bool:
    """Whether a frame is no more than an array: numbers in columns without names."""
    return not table.named and all(table.kind(j) == "number" for j in range(table.shape[1]))


def _check_labels(labels: Labels, name: str, source: Source) -> None:
    """Refuse labels that are all equal, or all different, in the first rows."""
    n = len(labels)
    if n < FEWEST_LABELS:
        return
    if len(labels.names) == 1:
        raise source.refusal(
            f": the label {name!r} is always {labels.names[0]!r} in the first {n:,} rows, so there is nothing to tell "
            "apart.",
            columns=[name],
            label=labels.names[0],
            remedy="Shuffle the rows, or name another column.",
        )
    if len(labels.names) == n:
        raise source.refusal(
            f": the label {name!r} is different in each of the first {n:,} rows, so no class could be learnt.",
            columns=[name],
            remedy="Name another column.",
        )


def _no_label(where: str, name: str, columns: Iterable[Any]) -> InputError:
    from difflib import get_close_matches

    names = [str(column) for column in columns]
    near = get_close_matches(name, names, 1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    what = f" has no column {name!r} of labels; it has {', '.join(names)[:300]}.{hint}"
    return InputError(HERE, what, place=where, columns=[name])


# -- reading in the background -----------------------------------------------------------------------------------------
def prefetched(items: Iterable[T], depth: int = 2) -> Iterator[T]:
    """The same items, of which up to `depth` are computed in advance by another thread; errors come in their place.

    >>> list(prefetched(n * n for n in range(4)))
    [0, 1, 4, 9]
    """
    from concurrent.futures import ThreadPoolExecutor

    iterator, end = iter(items), object()
    threads: list[int] = []
    reader = ThreadPoolExecutor(1, "deciban-reader", initializer=lambda: threads.append(threading.get_ident()))
    try:
        ahead = deque(reader.submit(next, iterator, end) for _ in range(depth))
        while (item := ahead.popleft().result()) is not end:
            ahead.append(reader.submit(next, iterator, end))
            yield item  # type: ignore[misc]
    finally:
        # the garbage collector may close this generator in the reader's own thread, which cannot wait for itself
        reader.shutdown(wait=threading.get_ident() not in threads, cancel_futures=True)


def with_progress(source: Source, texts: Callable[[], Sequence[str]] = tuple) -> Iterator[Table]:
    """The batches of a source; if reading takes longer than a second, a terminal shows speed and time left."""
    start, rows, bar = time.monotonic(), 0, None
    shown = not source.quiet and sys.stderr.isatty()
    try:
        for table in source.batches(texts=texts):
            rows += len(table)
            yield table
            seconds = time.monotonic() - start
            if shown and seconds > PROGRESS_AFTER:
                bar = bar or _progress_bar(source)
                speed = f"{rows / seconds:,.0f} rows/s, {source.read / seconds / 1e6:,.0f} MB/s"
                bar.update(bar.task_ids[0], completed=source.read, speed=speed)
    finally:
        if bar is not None:
            bar.stop()


def _progress_bar(source: Source) -> Progress:
    """A progress bar on standard error."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    name = TextColumn("{task.description}", markup=False)  # a file name is no markup
    columns = (name, BarColumn(), TextColumn("{task.fields[speed]}"), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    bar.add_task(f"reading {one_line(source.name)}", total=source.size, speed="")
    bar.start()
    return bar


# -- samples of rows ---------------------------------------------------------------------------------------------------
def draws(start: int, stop: int) -> Array:
    """Pseudo-random 64-bit numbers of rows `start` to `stop`: splitmix64 of the position.

    >>> draws(0, 3) % 1000
    array([535, 700, 679], dtype=uint64)
    """
    mixed = np.arange(start + 1, stop + 1, dtype=np.uint64)
    mixed *= np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed ^= mixed >> np.uint64(shift)
        mixed *= np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    return mixed


def chosen_rows(n: int, most: int = MOST_ROWS) -> Array:
    """Positions of the rows that are kept of n, in order; all of them if n is at most `most`.

    >>> chosen_rows(5, 3)
    array([1, 2, 4])
    """
    if n <= most:
        return np.arange(n)
    # Numbers are uniform, so that nearly always enough of them lie below a bound; only these are compared.
    kept, drawn = _rows_below(n, np.uint64(min(MARGIN * most / n, 0.999) * 2.0**64))
    if len(kept) < most:
        kept, drawn = _rows_below(n, np.uint64(2**64 - 1))
    return np.sort(kept[np.argpartition(drawn, most - 1)[:most]])


def even_rows(n: int, most: int) -> Array:
    """Positions of `most` of n rows, in order: one at random of each of as many parts of equal length; or all n.

    Much faster than `chosen_rows` where few of many rows are chosen: no number is computed for each row.

    >>> even_rows(9, 3)
    array([1, 3, 7])
    """
    if n <= most:
        return np.arange(n)
    edges = np.arange(most + 1) * n // most
    return edges[:-1] + (draws(0, most) % np.diff(edges).astype(np.uint64)).astype(np.intp)


def _rows_below(n: int, bound: np.uint64) -> tuple[Array, Array]:
    """Positions of the rows of n whose numbers are at most a bound, and these numbers."""
    kept, drawn = [], []
    for start in range(0, n, RUN):
        more = draws(start, min(start + RUN, n))
        below = np.flatnonzero(more <= bound)
        kept.append(below + start)
        drawn.append(more[below])
    return np.concatenate(kept), np.concatenate(drawn)


class Reservoir:
    """A sample of at most `most` rows of a stream, with their labels and weights.

    >>> kept = Reservoir(3)
    >>> for batch in (np.arange(4.0), np.arange(4.0, 5.0)):
    ...     kept.add(Table.of(batch[:, None]), batch, None)
    >>> kept.rows()[1]
    array([1., 2., 4.])
    """

    def __init__(self, most: int = MOST_ROWS) -> None:
        self.most, self.seen = most, 0
        self._limit: np.uint64 | None = None  # rows with a larger number are not in the sample
        self._held: list[tuple[Array, Table, Array, Array]] = []  # numbers, rows, labels, weights

    def add(self, table: Table, labels: ArrayLike | Labels, weight: ArrayLike | None) -> None:
        """Sample the next batch; a weight of None is 1 each."""
        n = len(table)
        drawn, self.seen = draws(self.seen, self.seen + n), self.seen + n
        whole = (drawn, table, np.asarray(labels), np.ones(n) if weight is None else np.asarray(weight, dtype=float))
        self._held.append(whole if self._limit is None else _below(whole, self._limit))
        if sum(len(held[0]) for held in self._held) > SLACK * self.most:
            self._drop_surplus()

    def rows(self) -> tuple[Table, Array, Array]:
        """The sample: rows, labels and weights, in the order of the stream."""
        self._drop_surplus()
        _, tables, labels, weights = zip(*self._held)
        return stacked(tables), np.concatenate(labels), np.concatenate(weights)

    def _drop_surplus(self) -> None:
        """Keep the `most` rows with the smallest numbers."""
        every = np.concatenate([held[0] for held in self._held])
        if len(every) > self.most:
            self._limit = np.partition(every, self.most - 1)[self.most - 1]
            self._held = [_below(held, self._limit) for held in self._held]


def _below(held: tuple[Array, Table, Array, Array], limit: np.uint64) -> tuple[Array, Table, Array, Array]:
    drawn, table, labels, weight = held
    kept = np.flatnonzero(drawn <= limit)
    return held if len(kept) == len(drawn) else (drawn[kept], table.take(kept), labels[kept], weight[kept])
