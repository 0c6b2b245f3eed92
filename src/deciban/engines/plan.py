"""The plan of a fit over fragments, which is the same for every engine.

    0  The first 65,536 rows make the choices that are frozen, as they do on one machine.
    1  Every fragment returns the sums of its rows, keyed by its position. A task that runs twice returns the same
       value twice, and one of them is used: nothing is counted in a place that outlives a task.
    2  A tree of fixed shape adds the sums. Its shape depends on the number of fragments alone, so that floating sums do
       not depend on how many workers there are, or which of them was first.
    3  Calibration uses the rows that it would use on one machine: those with the smallest pseudo-random numbers, which
       depend on the position of a row in the whole input.

The model equals that of a fit on one machine: counts to the bit, Gaussian sums up to the order of additions.

Sums of large vocabularies are added in parts by the hash of the word (engines/words.py).

An engine has two methods, `total` and `each` (class `Engine`). An engine that computes sums in its own way, such as a
database, uses the steps instead: `begin` makes the choices, `Begun.finish` takes the sums of the other rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

import deciban
from deciban.engines import words
from deciban.engines.fragments import Files, Task, labelled_batches, located, parts_of
from deciban.errors import EngineError, InputError, NoRowsError, NotAvailableError
from deciban.families.abilities import needs_all_rows
from deciban.families.accumulators import accumulator
from deciban.families.protocol import Family
from deciban.model.fit import (
    Accumulator,
    Opening,
    Request,
    check_request,
    finished,
    gap_in_block,
    opened,
    schema_reader,
)
from deciban.model.ledger import Key, Ledger, learn_batch, ledger_of
from deciban.model.model import ModelStats, Reader, lesson
from deciban.model.predictor import Predictor
from deciban.read.batches import Batch
from deciban.read.batches import Rows as GivenRows
from deciban.read.files import open_source
from deciban.read.reservoir import chosen_rows
from deciban.read.source import Skipped, Source
from deciban.read.tables import HEAD, stacked

T = TypeVar("T")
FAN_IN = 8  # sums that one task of the tree adds


# -- engines -----------------------------------------------------------------------------------------------------------
Work = Callable[[Any, Task], Any]  # of the data of a fragment and its task


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
    """Runs tasks somewhere. Tasks are pure: an engine may run one again, and uses one of the results."""

    def total(self, work: Work, items: Sequence[tuple[Any, Task]], addition: Addition) -> Iterator[Any]:
        """Yield the sum over all items of `work(data, task)`, by a `tree` of `addition.add`, for each of its parts.

        `work` returns a list of values, one for each part; those of one part are added. If there are several parts, the
        sums are exchanged: `cuts` of the first sum, `split` of each sum at the cuts, `join` of what belongs together.
        A sum is fetched when it is asked for, so that this process need not hold all of them.
        """

    def each(self, work: Work, items: Sequence[tuple[Any, Task]]) -> Iterable[Any]:
        """Return the values of `work(data, task)` in the order of the items."""


class Serial:
    """Runs tasks one after the other in this process."""

    def total(self, work: Work, items: Sequence[tuple[Any, Task]], addition: Addition) -> Iterator[Any]:
        """Return the sum of all items, for each part."""
        found = [work(data, task) for data, task in items]
        sums = [tree([values[part] for values in found], addition.add) for part in range(addition.parts)]
        if len(sums) == 1:
            return iter(sums)
        cuts = addition.cuts(sums[0])
        return (addition.join(pieces) for pieces in zip(*(addition.split(each, cuts) for each in sums)))

    def each(self, work: Work, items: Sequence[tuple[Any, Task]]) -> Iterator[Any]:
        """Return the values in order."""
        return (work(data, task) for data, task in items)

    def keep(self, work: Work, items: Sequence[tuple[Any, Task]]) -> list[tuple[Any, Task]]:
        """Return the values as items."""
        return [(work(data, task), task) for data, task in items]


def tree(leaves: Sequence[T], add: Callable[[Sequence[T]], T]) -> T:
    """Add values by a tree of fixed shape: `FAN_IN` neighbours at a time.

    >>> tree(list("abcdefghij"), lambda group: f"({'+'.join(group)})")
    '((a+b+c+d+e+f+g+h)+(i+j))'
    """
    while len(leaves) > 1:
        groups = [leaves[at : at + FAN_IN] for at in range(0, len(leaves), FAN_IN)]
        leaves = [add(group) if len(group) > 1 else group[0] for group in groups]
    return leaves[0]


# -- the sums of a fragment --------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Choices:
    """What the first rows decided, for all fragments alike."""

    family: Family[Any]  # with its choices made
    known: Any  # statistics that hold the names which rows are encoded by
    reader: Reader
    label: str
    given: tuple[str, ...]  # columns of the input
    together: frozenset[Any] = frozenset()  # columns that must not have gaps
    key: Key | None = None  # of the ledger
    version: str = deciban.__version__


class Sampled(NamedTuple):
    """Rows of one fragment that calibration uses."""

    place: int  # of the fragment
    batch: Batch


@dataclass(frozen=True, eq=False)
class Partial:
    """The sums of some fragments, and what else was found in them."""

    stats: Any = None  # ModelStats, or Words in all parts but the first; None if there was no row
    ledger: Ledger | None = None
    rows: tuple[tuple[int, int], ...] = ()  # fragment and its rows, without those skipped
    sample: tuple[Sampled, ...] = ()
    gap: bool = False  # whether a value is missing in columns that were found to vary together
    skipped: Skipped = field(default_factory=Skipped)  # rows that could not be read
    size: words.Size | None = None  # of the vocabulary; in split sums alone, in the piece of the first range

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
        """Return the sums of one range, with what the first part has beside words."""
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


def _batches(choices: Choices, data: Any, task: Task) -> Any:
    schema = choices.reader.schema
    assert schema is not None  # fragments are files and frames, which have one
    return labelled_batches(data, task.name, choices.label, schema, choices.given, task.skip)


def _partial(choices: Choices, data: Any, task: Task) -> Partial:
    """Return the sums of a fragment; none if it has no rows."""
    sums, ledger, counts, rows = None, None, None, 0
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
                if choices.key is not None:
                    ledger = (
                        ledger_of(batch, choices.key)
                        if ledger is None
                        else learn_batch(ledger, batch, choices.reader.columns, choices.key)
                    )
            kept += _wanted([batch], task, rows)
            rows += len(batch.table)
    except NoRowsError:
        return Partial(rows=((task.place, 0),))
    skipped = Skipped() if source is None else source.skipped
    if sums is None or counts is None:
        return Partial(rows=((task.place, 0),), skipped=skipped)
    stats = replace(counts, family=sums.total())
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
    """Refuse to work for another version of deciban, whose sums may be others."""
    if version != deciban.__version__:
        raise EngineError(
            f"{name}: the worker has deciban {deciban.__version__}, and the program that fits has {version}.",
            remedy="Install the same version on all machines.",
        )


# -- the fit -----------------------------------------------------------------------------------------------------------
class Given(Protocol):
    """An input in fragments."""

    label: str

    @property
    def first(self) -> Any:
        """What `read.batches.Rows` takes, and whose first batches are those of the whole input."""

    def items(self, read: int) -> list[tuple[Any, Task]]:
        """The fragments; `read` rows of them are skipped."""

    def rows(self) -> list[int] | None:
        """The number of rows of each fragment; None where it is not known before they are read."""


@dataclass(frozen=True, eq=False)
class Begun:
    """A fit whose choices are made, and which has the sums of the first rows."""

    request: Request
    opening: Opening
    choices: Choices
    stats: ModelStats  # of the first rows
    ledger: Ledger | None
    first: Batch

    @property
    def calibrates(self) -> bool:
        """Whether a sample of rows is needed in the end."""
        return self.opening.method is not None

    def finish(self, rest: Partial) -> Predictor:
        """Return the model of the first rows and the others, calibrated on the rows sampled of both."""
        return self.finish_total(self.partial + rest)

    @property
    def partial(self) -> Partial:
        """The sums of the first rows."""
        return Partial(self.stats, self.ledger)

    def finish_total(self, total: Partial) -> Predictor:
        """Return the model of sums that contain those of the first rows."""
        stats, start = total.stats, None
        if self.calibrates:
            batch = _joined(self.first, total)
            start = lesson(self.choices.family, batch, stats.family, stats.classes)
        return finished(
            self.request, self.opening, self.choices.family, stats, self.choices.reader, start, total.ledger
        )


def begin(request: Request, first: Batch, given: GivenRows, label: str, together: bool) -> Begun:
    """Make the choices from the first rows, and sum these."""
    with first.table.located():
        opening = opened(request, first, given.schema, len(first.table), together)
        if needs_all_rows(opening.family):
            raise NotAvailableError(
                f"{type(opening.family).__name__} is fitted by several passes over all rows, which engines do not do.",
                remedy="Fit it on one machine: load the rows into a frame.",
            )
        start = lesson(opening.family, first, None, request.classes)
        columns = first.table.columns
        ledger = None if request.key is None else ledger_of(first, request.key)
        sums = Accumulator(opening.family, start, columns, request.rule)
    names = (*given.X.columns, *(() if label in given.X.columns else (label,)))
    choices = Choices(
        sums.family,
        sums.sums.known,
        Reader(columns, given.schema),
        label,
        tuple(map(str, names)),
        opening.together,
        request.key,
    )
    return Begun(request, opening, choices, sums.total(), ledger, first)


def fit(request: Request, given: Given, engine: Engine) -> tuple[Predictor, GivenRows]:
    """Fit a model to the fragments of an input; the result is that of one machine."""
    check_request(request)
    # a block whose columns vary together has a gap after the first rows: fit again without such blocks
    fitted = _fit(request, given, engine, True) or _fit(request, given, engine, False)
    assert fitted is not None
    return fitted


def check_label(y: Any, sample_weight: Any) -> str:
    """Return the name of the column of labels; refuse labels apart from the rows, and weights."""
    if not isinstance(y, str):
        raise InputError("rows in fragments have their labels in a column.", remedy="For y, give its name.")
    if sample_weight is not None:
        raise InputError("rows in fragments cannot be weighted.", remedy="Load them into a frame first.")
    return y


def fit_files(request: Request, X: Any, label: str, engine: Engine) -> tuple[Predictor, GivenRows] | None:
    """Fit a model to files; None for files that are one fragment."""
    source = open_source(X)
    parts = parts_of(source)
    return fit(request, Files(source, label, parts), engine) if len(parts) > 1 else None


def over_parts(work: Work, source: Source, engine: Engine) -> Iterator[Any] | None:
    """Return `work(part, task)` of each part of files, in order; None for files that are one fragment."""
    parts = parts_of(source)
    return iter(engine.each(work, Files(source, "", parts).items(0))) if len(parts) > 1 else None


def _fit(request: Request, given: Given, engine: Engine, together: bool) -> tuple[Predictor, GivenRows] | None:
    rows = GivenRows(given.first, given.label, None, schema_reader(request.families, request.kinds, True))
    batches = rows.batches()
    first = next(batches)
    begun = begin(request, first, rows, given.label, together)
    items = given.items(rows_read(first))
    more = next(batches, None) is not None
    batches.close()  # type: ignore[attr-defined]
    if not more:
        return begun.finish(Partial()), rows
    known = given.rows()
    if begun.calibrates and known is not None:
        left = [max(0, n - task.skip) for n, (_, task) in zip(known, items)]
        items = with_samples(items, left, len(first.table))
    parts = words.parts_needed(begun.stats, expected_growth(items, known))
    leaves = [(begun.partial, Task(-1, "the first rows")), *items]
    total = whole(engine.total(Summing(begun.choices, parts), leaves, Adding(parts)))
    if isinstance(rows.X, Source):
        rows.X.skipped = total.skipped  # fragments read the first rows again, and count them
    if total.gap:
        return None
    if begun.calibrates and known is None:
        found = dict(total.rows)
        items = with_samples(items, [found[task.place] for _, task in items], len(first.table))
        asked = [item for item in items if len(item[1].sample)]  # type: ignore[arg-type]
        sample = [one for some in engine.each(Sampling(begun.choices), asked) for one in some]
        total = replace(total, sample=tuple(sample))
    return begun.finish_total(total), rows


def whole(ranges: Iterator[Partial]) -> Partial:
    """Return the sums of all ranges of words as one; the first range has the size of all of them."""
    first = next(ranges)
    if first.size is None:
        return first
    others = map(attrgetter("stats"), ranges)  # unlike a generator, it does not hold the range before
    return replace(first, stats=words.together(first.stats, others, first.size), size=None)


def expected_growth(items: Sequence[tuple[Any, Task]], rows: Sequence[int] | None) -> float:
    """Return how many times more rows the fragments may have than the first rows, to foresee the number of words."""
    if rows is not None:
        return max(1.0, sum(rows) / HEAD)
    touched = sum(task.skip > 0 for _, task in items)
    return max(1.0, len(items) / max(1, touched))


def rows_read(first: Batch) -> int:
    """Return how many rows of the input were read for the first batch, bad rows that were skipped included."""
    if first.table.origin is None:
        return HEAD
    return HEAD * -(-(int(first.table.origin.rows[-1]) + 1) // HEAD)


def with_samples(items: Sequence[tuple[Any, Task]], rows: Sequence[int], first: int) -> list[tuple[Any, Task]]:
    """Return the tasks with the positions that calibration uses; `first` rows come before those of the fragments."""
    starts = first + np.cumsum([0, *rows])
    chosen = chosen_rows(int(starts[-1]))
    cuts = np.searchsorted(chosen, starts)
    return [
        (data, task._replace(sample=chosen[a:b] - start))
        for (data, task), start, a, b in zip(items, starts, cuts, cuts[1:])
    ]


def _joined(first: Batch, total: Partial) -> Batch:
    """Return the sample of the first rows and of the fragments, in the order of the input."""
    n = len(first.table)
    chosen = chosen_rows(n + sum(rows for _, rows in total.rows))
    at = chosen[chosen < n]
    labels = np.asarray(first.labels[at])
    head = Batch(replace(first.table.take(at), origin=None), labels, np.ones(len(at)))
    each = [head, *(one.batch for one in sorted(total.sample, key=lambda one: one.place))]
    return Batch(
        stacked([batch.table for batch in each]),
        np.concatenate([np.asarray(batch.labels) for batch in each]),
        np.concatenate([batch.weight for batch in each]),
    )
