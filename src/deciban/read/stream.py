"""Reading ahead: the next batches are made in a thread of their own, while this one learns from the last."""

from __future__ import annotations

import queue
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from deciban.errors import HERE, DecibanError, InputError
from deciban.read.files import is_place, open_source
from deciban.read.labels import Labels, labelled_rows
from deciban.read.numbers import row_weights
from deciban.read.schema import Schema, TypedTable, joined
from deciban.read.source import Source, cuts
from deciban.read.tables import HEAD, Table

T = TypeVar("T")
END: Any = object()


def ahead(items: Iterable[T], depth: int = 1) -> Iterator[T]:
    """The same items, `depth` of them made before they are asked for; errors come where their item would.

    >>> list(ahead(n * n for n in range(4)))
    [0, 1, 4, 9]
    """
    ready: queue.Queue[tuple[Any, BaseException | None]] = queue.Queue(depth)
    stopped = threading.Event()

    def put(item: Any, error: BaseException | None = None) -> None:
        while not stopped.is_set():
            try:
                ready.put((item, error), timeout=0.1)
                return
            except queue.Full:
                continue

    def work() -> None:
        try:
            for item in items:
                put(item)
                if stopped.is_set():
                    return
            put(END)
        except BaseException as error:
            put(END, error)

    thread = threading.Thread(target=work, name="deciban-reader", daemon=True)
    thread.start()
    try:
        while True:
            item, error = ready.get()
            if error is not None:
                raise error
            if item is END:
                return
            yield item
    finally:
        stopped.set()
        thread.join()


# -- progress ----------
# A progress bar over a source that takes longer than a second; on a terminal only, and on its standard error.

PATIENCE = 1.0  # seconds before a bar shows


def watched(source: Source, texts: Callable[[], Sequence[str]] = tuple) -> Iterator[Table]:
    """The batches of a source; rows and megabytes a second, and the time left, are shown while they are read."""
    if source.quiet or not sys.stderr.isatty():
        yield from source.batches(texts=texts)
        return
    start, rows, shown = time.monotonic(), 0, _Bar(source)
    try:
        for table in source.batches(texts=texts):
            rows += len(table)
            yield table
            if time.monotonic() - start > PATIENCE:
                shown.tell(rows, time.monotonic() - start)
    finally:
        shown.close()


class _Bar:
    """Made when it is first needed: most files are read before."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.progress: Any = None

    def tell(self, rows: int, seconds: float) -> None:
        if self.progress is None:
            self._open()
        speed = f"{rows / seconds:,.0f} rows/s, {self.source.read / seconds / 1e6:,.0f} MB/s"
        self.progress.update(self.task, completed=self.source.read, speed=speed)

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[speed]}"))
        self.progress = Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True)
        self.task = self.progress.add_task(f"reading {self.source.name}", total=self.source.size, speed="")
        self.progress.start()

    def close(self) -> None:
        if self.progress is not None:
            self.progress.stop()


# -- streaming ----------
# Rows as they are learnt: whatever was given becomes batches of tables with labels and weights.
#
# Frames and files go through the same schema and the same batches, so that a fit from a file of any size equals the fit
# from memory. Arrays, sparse matrices and lists of texts are one batch, as they are.

FEW = 20  # labels that all differ may be chance


@dataclass(frozen=True, eq=False)
class Batch:
    """Some rows, as families take them; none has weight 0."""

    table: Table
    labels: Any  # one a row
    weight: Any = None  # (n,), or None for 1 each

    def located(self) -> AbstractContextManager[None]:
        """Context in which errors about rows name the place of the row in the input."""
        return self.table.located()

    def parts(self, texts: Sequence[str]) -> Iterator[Batch]:
        """The same rows, in parts where they hold much text in these columns."""
        held = [self.table.column(self.table.columns.index(name)) for name in texts]
        for rows in cuts(held, len(self.table)):
            weight = None if self.weight is None else self.weight[rows]
            yield Batch(self.table.take(rows), self.labels[rows], weight)


@dataclass
class Rows:
    """What was given, and how it is read; `reader` makes a schema of first rows and the label's name, where wanted."""

    X: Any
    y: Any
    weight: Any = None
    reader: Callable[[Table, str | None], Schema] | None = None
    schema: Schema | None = None  # once the first rows have been seen

    def __post_init__(self) -> None:
        self.label = self.y if isinstance(self.y, str) else None
        if is_place(self.X):
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
        if nameless(table):
            self.reader = None
        self.X, self.y, self.weight = with_weight(table, self.y, self.weight)

    def batches(self, parts: bool = False) -> Iterator[Batch]:
        """In order, 65,536 rows each; the first has those from which choices are taken.

        With `parts`, later ones with much text come in parts, for whom it is the same how rows are cut up.
        """
        if isinstance(self.X, Source):
            yield from ahead(self._of_source(self.X, self.y, self._texts if parts else tuple))
        elif self.reader is None or not self.X.framed:
            yield Batch(self.X, self.y, self.weight)
        else:
            yield from self._of_frame(HEAD, parts)

    def whole(self) -> Batch:
        """All rows in one."""
        if isinstance(self.X, Source):
            return together(list(self._of_source(self.X, self.y)))
        if self.reader is None or not self.X.framed:
            return Batch(self.X, self.y, self.weight)
        return next(self._of_frame(len(self.X)))

    def _of_frame(self, rows: int, parts: bool = False) -> Iterator[Batch]:
        labels = self.y.to_numpy() if hasattr(self.y, "to_numpy") else self.y
        labels = labels if hasattr(labels, "shape") else np.array(list(labels or ()), dtype=object)
        if len(labels) != len(self.X):
            raise InputError(f"X has {len(self.X)} rows, but y has {len(labels)} labels. Give one label a row.")
        self.schema = schema = replace(self._read_by(self.X, None), label=self.label)
        for at in range(0, len(self.X), rows):
            part = slice(at, at + rows)
            some = self.X if len(self.X) <= rows else self.X.take(part)
            typed, weight = schema.apply(some), None if self.weight is None else self.weight[part]
            whole = Batch(typed, labels[part], weight)
            yield from whole.parts(self._texts()) if parts and at else [whole]

    def _texts(self) -> list[str]:
        """The columns that hold texts, once the first rows have been seen."""
        return [] if self.schema is None else [name for name, kind in self.schema.kinds.items() if kind == "text"]

    def _of_source(self, source: Source, label: str, texts: Callable[[], Sequence[str]] = tuple) -> Iterator[Batch]:
        """Rows that do not fit are errors; or skipped and counted, where the source says so."""
        first = True
        for given in watched(source, texts):
            with given.located():
                schema = self._read_by(given, label)
            table, typed = fitting_rows(given, schema, source, labelled=True)
            if not len(table):
                continue
            labels = schema.labels(table)
            if first:
                _check_labels(labels, label, source)
            first = False
            yield Batch(typed, labels)
        if first:
            raise source.without_rows()

    def _read_by(self, table: Table, label: str | None) -> Schema:
        if self.schema is None:
            self.schema = self.reader(table, label)  # type: ignore[misc]
        return self.schema


def nameless(table: Table) -> bool:
    """Whether a frame is but an array: numbers in columns that have no names."""
    return table.framed and not table.named and all(table.kind(j) == "number" for j in range(table.shape[1]))


def split_label(table: Table, name: str) -> tuple[Table, Any]:
    """The other columns of a frame, and the values of one."""
    names = [str(column) for column in table.columns]
    if not table.framed or name not in names:
        raise _no_label("the table", name, table.columns)
    series = table.data[:, names.index(name)]
    rest = [column for column in table.columns if str(column) != name]
    labels = series.to_numpy() if series.dtype.is_numeric() else np.array([*series.to_list(), None], dtype=object)[:-1]
    return Table(table.data.select(rest), tuple(rest), table.named, table.origin), labels


def together(batches: list[Batch]) -> Batch:
    """Several batches of typed rows as one."""
    labels = np.concatenate([np.asarray(batch.labels) for batch in batches])
    return replace(batches[0], table=joined([batch.table for batch in batches]), labels=labels)  # type: ignore[misc]


def typed_rows(X: Any, schema: Schema) -> TypedTable:
    """All rows of a frame, a batch or a file, typed; labels are not looked at."""
    if not is_place(X):
        return schema.apply(Table.of(X))
    return joined([schema.apply(table) for table in watched(open_source(X))])


def with_weight(table: Table, y: Any, sample_weight: Any) -> tuple[Table, Any, Any]:
    """Rows of weight 0 are as if absent, in everything."""
    n = len(table)
    if n == 0:
        raise InputError(f"Found array with 0 sample(s) (shape={table.shape}) while a minimum of 1 is required.")
    weight = row_weights(sample_weight, n)
    if weight is None or weight.all() or y is None:
        return table, y, weight
    kept = np.flatnonzero(weight)
    labels = np.asarray(y) if hasattr(y, "dtype") else np.array(list(y), dtype=object)
    if len(labels) != n:
        raise InputError(f"X has {n} rows, but y has {len(labels)} labels. Give one label a row.")
    weight = weight[kept]
    return table.take(kept), labels[kept], None if (weight == 1).all() else weight


def fitting_rows(table: Table, schema: Schema, source: Source, labelled: bool = False) -> tuple[Table, TypedTable]:
    """The rows of a batch that fit the schema, as given and typed; `labelled` ones must have a label, too.

    Other rows are skipped and counted where the source has `skip_bad`, and errors elsewhere.
    """
    if not source.skip_bad:
        return table, schema.apply(table)
    if labelled:
        kept = labelled_rows(table, str(schema.label))
        if len(kept) < len(table):
            source.skipped.add(InputError("no label"), len(table) - len(kept))
            table = table.take(kept)
    bad: list[DecibanError] = []
    typed = schema.apply(table, bad)
    if bad:
        wrong = {int(error.row or 0): error for error in reversed(bad)}
        for row in sorted(wrong):
            source.skipped.add(wrong[row], origin=table.origin)
        left = np.delete(np.arange(len(table)), list(wrong))
        table, typed = table.take(left), typed.take(left)
    return table, typed


def _check_labels(labels: Labels, name: str, source: Source) -> None:
    """A label that never varies, or never repeats, tells nothing apart."""
    n = len(labels)
    if n < FEW:
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


def _no_label(where: str, name: str, columns: Any) -> InputError:
    from difflib import get_close_matches

    near = get_close_matches(name, [str(column) for column in columns], 1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return InputError(
        HERE, f" has no column {name!r} of labels; it has {', '.join(map(str, columns))[:300]}.{hint}", place=where
    )
