"""The plan of a fit over fragments, which is the same for every engine.

    0  The first 65,536 rows make the choices that are frozen, as they do on one machine. This process sums them, or
       tasks do if no choice depends on these sums.
    1  Every fragment returns the sums of its rows, keyed by its position. A task that runs twice returns the same
       value twice, and one of them is used: no task adds to a value outside of it.
    2  A tree of fixed shape adds the sums. Its shape depends on the number of fragments alone, so that floating-point
       sums do not depend on the number of workers, or on the order in which they finish.
    3  Calibration uses the rows that it would use on one machine: those with the smallest pseudo-random numbers, which
       depend on the position of a row in the whole input.

The model equals that of a fit on one machine: counts to the bit, Gaussian sums up to the order of additions.

Sums of large vocabularies are added in parts by the hash of the word (engines/words.py).

An engine has three methods, `total`, `each` and `keep` (class `Engine`). An engine that computes sums in its own way,
such as a database, uses the steps instead: `begin` makes the choices, `Begun.finish` takes the sums of the other rows.
Families that iterate over all rows, such as mixtures, do so by passes over encoded fragments (`refined`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from deciban.engines import words
from deciban.engines.tasks import (
    Adding,
    Addition,
    Choices,
    Encoding,
    Engine,
    Files,
    Items,
    Partial,
    Passes,
    Sampling,
    Summing,
    Task,
    Work,
    parts_of,
)
from deciban.errors import InputError, NotAvailableError
from deciban.families.abilities import HasCandidates, RefinesParts, ability, needs_all_rows
from deciban.families.product import Product, blocks_of
from deciban.families.protocol import Family
from deciban.model.fit import (
    Accumulator,
    Opening,
    Request,
    check_request,
    finished,
    opened,
    schema_reader,
)
from deciban.model.ledger import Ledger, ledger_of
from deciban.model.model import ModelStats, Reader, lesson
from deciban.model.predictor import Predictor
from deciban.read.batches import Batch, chosen_rows
from deciban.read.batches import Rows as GivenRows
from deciban.read.files import open_source
from deciban.read.source import Source
from deciban.read.tables import HEAD, stacked
from deciban.terminal import progress_bar

T = TypeVar("T")
FAN_IN = 8  # sums that one task of the tree adds


# -- engines -----------------------------------------------------------------------------------------------------------
class Serial:
    """Runs tasks one after the other in this process."""

    def total(self, work: Work, items: Items, addition: Addition) -> Iterator[Any]:
        """Return the sum of all items, for each part; a value is added as soon as its neighbour is computed."""
        return exchanged(grown((work(data, task) for data, task in items), addition.add), addition)

    def each(self, work: Work, items: Items) -> Iterator[Any]:
        """Return the values in order."""
        return (work(data, task) for data, task in items)

    def keep(self, work: Work, items: Items) -> list[tuple[Any, Task]]:
        """Return the values as items."""
        return [(work(data, task), task) for data, task in items]


class Tree(Generic[T]):
    """Adds values by a tree of fixed shape as they come: `fan_in` neighbours at a time; mutable.

    Additions that take neighbours in pairs, as those of `sums.Adding`, give the same result for a `fan_in` of 2 and
    of 8, to the bit. With 2, one value at most is held for each power of two: 10 of 1,000.
    """

    def __init__(self, add: Callable[[Sequence[T]], T], fan_in: int = FAN_IN) -> None:
        self.add, self.fan_in = add, fan_in
        self.levels: list[list[T]] = []  # values whose neighbours are missing

    def put(self, value: T) -> None:
        """Take the next value."""
        for level in self.levels:
            level.append(value)
            if len(level) < self.fan_in:
                return
            value = self.add(level[:])
            level.clear()
        self.levels.append([value])

    def total(self) -> T:
        """Return the sum of all values."""
        rest: list[T] = []
        for level in self.levels:
            group = [*level, *rest]
            rest = [self.add(group)] if len(group) > 1 else group
        return rest[0]


def tree(leaves: Iterable[T], add: Callable[[Sequence[T]], T], fan_in: int = FAN_IN) -> T:
    """Add values by a tree of fixed shape: `fan_in` neighbours at a time.

    >>> tree(list("abcdefghij"), lambda group: f"({'+'.join(group)})")
    '((a+b+c+d+e+f+g+h)+(i+j))'
    """
    growing = Tree(add, fan_in)
    for leaf in leaves:
        growing.put(leaf)
    return growing.total()


def grown(values: Iterable[Sequence[T]], add: Callable[[Sequence[T]], T]) -> list[T]:
    """Return the sum of values of each part, added as they come, so that few sums are held at a time."""
    trees: list[Tree[T]] = []
    for parts in values:
        trees = trees or [Tree(add, 2) for _ in parts]
        for each, value in zip(trees, parts):
            each.put(value)
        del parts, value
    return [each.total() for each in trees]


def exchanged(sums: list[Any], addition: Addition) -> Iterator[Any]:
    """Yield the sums of all parts, put in order by ranges if there are several (`Engine.total`)."""
    if len(sums) == 1:
        return iter(sums)
    cuts = addition.cuts(sums[0])
    return (addition.join(pieces) for pieces in zip(*(addition.split(each, cuts) for each in sums)))


# -- the fit -----------------------------------------------------------------------------------------------------------
class Given(Protocol):
    """An input in fragments."""

    label: str

    @property
    def first(self) -> Any:
        """Rows that `read.batches.Rows` takes; their first batches are those of the whole input."""

    def items(self, read: int) -> list[tuple[Any, Task]]:
        """The fragments; `read` rows of them are skipped."""

    def rows(self) -> list[int] | None:
        """The number of rows of each fragment; None where it is not known before they are read."""


@dataclass(frozen=True, eq=False)
class Begun:
    """A fit whose choices are made, with the sums of the first rows."""

    request: Request
    opening: Opening
    choices: Choices
    stats: ModelStats  # sums of the first rows
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


def begin(
    request: Request,
    first: Batch,
    given: GivenRows,
    label: str,
    together: bool,
    passes: bool = False,
    sums_elsewhere: Callable[[Choices], Partial] | None = None,
) -> Begun:
    """Make the choices from the first rows, and sum these.

    With `passes`, families may iterate over parts. Where no choice depends on the sums of the first rows,
    `sums_elsewhere` returns these sums, and this process does not compute them.
    """
    names = (*given.X.columns, *(() if label in given.X.columns else (label,)))
    columns = first.table.columns
    with first.table.located():
        opening = opened(request, first, given.schema, together)
        for (block,) in blocks_of(opening.family):
            in_parts = passes and ability(block, RefinesParts) is not None
            if needs_all_rows(block) and not in_parts:
                raise NotAvailableError(
                    f"{type(block).__name__} is fitted by several passes over all rows, which engines do not do.",
                    remedy="Fit it on one machine: load the rows into a frame.",
                )
        read = Reader(columns, given.schema), label, tuple(map(str, names)), opening.together, request.key
        if sums_elsewhere is not None and request.classes is None and chooses_nothing(opening.family):
            choices = Choices(opening.family, None, *read)
            summed = sums_elsewhere(choices)
            return Begun(request, opening, choices, summed.stats, summed.ledger, first)
        start = lesson(opening.family, first, None, request.classes)
        ledger = None if request.key is None else ledger_of(first, request.key)
        sums = Accumulator(opening.family, start, columns, request.rule, opening.by_word)
    return Begun(request, opening, Choices(sums.family, sums.sums.known, *read), sums.total(), ledger, first)


def chooses_nothing(family: Family[Any]) -> bool:
    """Whether no choice depends on the sums of the first rows: texts whose options are all given."""
    if isinstance(family, Product) and family.experts:
        return False
    offers = [ability(block, HasCandidates) for (block,) in blocks_of(family)]
    return all(each is not None and not each.open for each in offers)


def sums_of_first_rows(items: Items, engine: Engine, choices: Choices) -> Partial:
    """Return the sums of the rows that the items skip, computed by the engine."""
    first = [(data, task._replace(skip=0, stop=task.skip)) for data, task in items if task.skip]
    return next(engine.total(Summing(choices), first, Adding()))


def fit(request: Request, given: Given, engine: Engine) -> tuple[Predictor, GivenRows]:
    """Fit a model to the fragments of an input; the result is that of one machine."""
    check_request(request)
    # None: a block of columns that vary together has a gap after the first rows; fit again without such blocks
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


def over_parts(work: Work, source: Source, engine: Engine, quiet: bool = True) -> Iterator[Any] | None:
    """Return `work(part, task)` of each part of files, in order, with a bar; None for files that are one fragment."""
    parts = parts_of(source)
    if len(parts) < 2:
        return None
    return _shown(engine.each(work, Files(source, "", parts).items(0)), len(parts), quiet)


def _shown(values: Iterable[Any], total: int, quiet: bool) -> Iterator[Any]:
    """Yield values; a bar shows how many of the fragments they belong to are done."""
    with progress_bar(None if quiet else "fragments", total) as update:
        for count, value in enumerate(values, 1):
            update(count, f"{count:,} of {total:,}")
            yield value


def _fit(request: Request, given: Given, engine: Engine, together: bool) -> tuple[Predictor, GivenRows] | None:
    rows = GivenRows(given.first, given.label, None, schema_reader(request.families, request.kinds, True))
    batches = rows.batches(ahead=False)  # workers read the later rows
    first = next(batches)
    read, known = rows_read(first), given.rows()
    items = given.items(read)
    more = next(batches, None) is not None if known is None else sum(known) > read
    batches.close()  # type: ignore[attr-defined]
    elsewhere = partial(sums_of_first_rows, items, engine) if more else None
    begun = begin(request, first, rows, given.label, together, passes=True, sums_elsewhere=elsewhere)
    if not more:
        return begun.finish(Partial()), rows
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
    begun, total = refined(begun, total, given, engine)
    if begun.calibrates and known is None:
        found = dict(total.rows)
        items = with_samples(items, [found[task.place] for _, task in items], len(first.table))
        asked = [item for item in items if len(item[1].sample)]  # type: ignore[arg-type]
        sample = [one for some in engine.each(Sampling(begun.choices), asked) for one in some]
        total = replace(total, sample=tuple(sample))
    return begun.finish_total(total), rows


def refined(begun: Begun, total: Partial, given: Given, engine: Engine) -> tuple[Begun, Partial]:
    """Run the iterations of families that need all rows; rows are encoded once, and stay on the workers."""
    family = ability(begun.choices.family, RefinesParts)
    if family is None or not needs_all_rows(family):
        return begun, total
    classes, known = total.stats.classes, total.stats.family
    parts = Passes(engine, engine.keep(Encoding(begun.choices, known, classes), given.items(0)))
    first = lesson(begun.choices.family, begun.first, known, classes)
    better, sums = family.refine_parts(known, first.rows, first.members, parts)
    choices = replace(begun.choices, family=better)  # type: ignore[arg-type]  # an ability is one of a family
    return replace(begun, choices=choices), replace(total, stats=replace(total.stats, family=sums))


def whole(ranges: Iterator[Partial]) -> Partial:
    """Return the sums of all ranges of words as one; the first range has the size of all of them."""
    first = next(ranges)
    if first.size is None:
        return first
    others = map(attrgetter("stats"), ranges)  # unlike a generator, `map` does not keep the last range
    return replace(first, stats=words.together(first.stats, others, first.size), size=None)


def expected_growth(items: Items, rows: Sequence[int] | None) -> float:
    """Return the expected ratio of all rows to the first rows, from which the number of words is predicted."""
    if rows is not None:
        return max(1.0, sum(rows) / HEAD)
    touched = sum(task.skip > 0 for _, task in items)
    return max(1.0, len(items) / max(1, touched))


def rows_read(first: Batch) -> int:
    """Return how many rows of the input were read for the first batch, bad rows that were skipped included."""
    if first.table.origin is None:
        return HEAD
    return HEAD * -(-(int(first.table.origin.rows[-1]) + 1) // HEAD)


def with_samples(items: Items, rows: Sequence[int], first: int) -> list[tuple[Any, Task]]:
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
