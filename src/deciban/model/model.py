"""What a classifier has learnt: rows per class, and the family's sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from deciban.errors import InputError, SingularError
from deciban.families.fitted import collect_checked
from deciban.families.product import Product
from deciban.families.protocol import Density, Rule
from deciban.model.calibration import Calibration
from deciban.model.candidates import chosen
from deciban.model.candidates import left_out_prior as left_out_prior
from deciban.read.numbers import run_of_rows
from deciban.read.reservoir import chosen_rows
from deciban.read.tables import HEAD, Table
from deciban.statistics import Array, Axis, Members, Stats, nested, summed


@dataclass(frozen=True, eq=False, repr=False)
class ModelStats(Stats):
    """The class prior's sums and the family's, over one class axis."""

    rows: Array = summed("class", floor=True)  # Σ w of each class, with or without values
    family: Any = nested()

    def pruned(self) -> Self:
        """Also without the undeclared classes that have no rows."""
        kept = super().pruned()
        doomed = (self.rows == 0) & (np.arange(self.axis.size) >= self.axis.declared)
        return kept.select("class", np.flatnonzero(~doomed)) if doomed.any() else kept

    @property
    def axis(self) -> Axis:
        """The class axis."""
        return self.labels["class"]  # type: ignore[return-value]

    @property
    def classes(self) -> tuple[Any, ...]:
        """The names of the classes, in order."""
        return tuple(self.axis.names)

    def __repr__(self) -> str:
        return f"ModelStats(class {len(self.rows)}, rows {self.rows.sum():g}, {self.family!r})"


def class_axis(found: Sequence[Any], declared: Sequence[Any] | None) -> Axis:
    """The class axis of a batch: declared classes first, then those found."""
    if declared is None:
        return Axis(tuple(found))
    names = tuple(name.item() if isinstance(name, np.generic) else name for name in declared)
    if len(set(names)) < len(names):
        raise InputError(f"classes={list(declared)} names a class twice.")
    return Axis.of(names).union(Axis(tuple(found)))


def encode(family: Any, table: Table, stats: Any = None) -> Any:
    """A table as the family takes it."""
    rows = table if isinstance(family, Product) else family.pick(table)
    return family.encode(rows, _names(family, table.columns), stats)


def collect(family: Any, X: Any, members: Members, columns: Sequence[Any], footprint: bool = False) -> ModelStats:
    """One batch's statistics; or its footprint, which shows whether it was learnt."""
    sums = collect_checked(family, X, members, _names(family, columns), footprint)
    return ModelStats({"class": members.classes}, members.weights(), sums)


def fit(family: Any, X: Any, members: Members, columns: Sequence[Any], rule: Rule) -> tuple[Any, ModelStats]:
    """Choose from the first rows, freeze, and sum over all; one pass over the data."""
    n = len(members)
    family = chosen(family, X, members, rule)
    if not family.open:
        stats = collect(family, X, members, columns)
        return family.choose(stats.family, None, rule), stats
    head = X if n <= HEAD else run_of_rows(X, 0, HEAD)
    first = members if n <= HEAD else members.take(slice(0, HEAD))
    stats = collect(family, head, first, columns)
    asked, family = family, family.choose(stats.family, (head, first), rule)
    if n > HEAD:
        stats = stats + collect(family, run_of_rows(X, HEAD, n), members.take(slice(HEAD, n)), columns)
        if family is not asked:  # what was chosen just now, not what was asked for
            family, sums = family.refined(stats.family, X, members)
            stats = replace(stats, family=sums)
    return family, stats


def _names(family: Any, columns: Sequence[Any]) -> Sequence[Any]:
    """Columns as strings where families look them up; elsewhere as they are, for a vocabulary has many."""
    return [str(name) for name in columns] if isinstance(family, Product) else columns


def estimate(family: Any, stats: ModelStats, rule: Rule, columns: Sequence[Any]) -> Density:
    """The density; a singular covariance is reported by the names of its columns."""
    if not len(stats.rows):
        raise InputError("the model holds no rows and no classes any more. Learn some.")
    try:
        return family.estimate(stats.family, rule)
    except SingularError as error:
        if not error.columns or not any(isinstance(name, str) for name in columns):
            raise
        names = tuple(columns[at] if isinstance(at, int) and at < len(columns) else at for at in error.columns)
        raise error.but(*error.args, f" (Columns at fault: {', '.join(map(repr, names))}.)", columns=names) from None


# -- block by block: what calibration works on -----------------------------------------------------------------------
def block_scores(family: Any, density: Density, X: Any) -> list[Array]:
    """(n, K) log densities of each block."""
    return [blocks.log_density(rows) for _, blocks, rows in family.split(density, X)]


def left_out_scores(family: Any, density: Density, stats: Any, X: Any, members: Members, rule: Rule) -> list[Array]:
    """(n, K) leave-one-out scores of each block; `density` is that of the sums under the rule."""
    return [part.left_out_of(*block, members, rule) for part, *block in family.split(density, stats, X)]


def block_lengths(family: Any, X: Any) -> list[Array | None]:
    """(n,) lengths of each block's rows, None where it counts no events."""
    return [part.lengths(rows) for part, rows in family.split(X)]


def calibrate(
    method: str | None, family: Any, density: Density, stats: ModelStats, X: Any, members: Members, rule: Rule
) -> Calibration | None:
    """Fit a calibrator on exact leave-one-out scores of learnt rows: all of them, or a sample of 20,000."""
    if method is None or len(stats.rows) < 2:
        return None
    rows = chosen_rows(len(members))
    some, judged = (X, members) if len(rows) == len(members) else (X[rows], members.take(rows))
    scores = left_out_scores(family, density, stats.family, some, judged, rule)
    lengths = block_lengths(family, some)
    return Calibration.fit(method, scores, judged.codes, lengths, stats.classes, float(stats.rows.sum()))
