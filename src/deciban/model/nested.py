"""Scores of learnt rows by models that have not seen them: k-fold cross-validation of the whole fit.

For each fold, the sums without its rows, the choices that labels make, and the calibrator are obtained from the other
rows, by the functions that a fit uses; the fold is then scored. A calibrator that is cross-fitted on leave-one-out
scores of the full sums does not suffice: these scores contain the label of the judged row.

Where all rows of the model are given and can be judged, families, transforms, bins and blocks are chosen again, too,
and the other rows are summed under these choices. With more rows, the sums of the fold are subtracted from those of the
model; what can be chosen again under these sums is, and choices that decided what was summed stay (decision 0026).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from deciban.errors import DecibanError, InputError
from deciban.families.abilities import HasCandidates, HasChoices, ability
from deciban.families.product import BlockRows, Product, blocks_of
from deciban.families.protocol import Family, Rows
from deciban.kernels.choice import with_one_thread
from deciban.model.cross_fit import without_fold
from deciban.model.fit import Request, calibrated, calibration_method, fit_lesson, rechosen
from deciban.model.folds import JUDGED_ROWS, Split
from deciban.model.model import Lesson, Model, Reader, collect, encode
from deciban.model.predictor import Predictor
from deciban.read.batches import Batch
from deciban.read.tables import Table, TypedColumns, TypedTable
from deciban.statistics import Array, Members, Stats

ENOUGH = 0.5  # share of the model's rows, or of the most that are judged, that must be given to choose again
Progress: TypeAlias = Callable[[float, str], None]


class Nested(NamedTuple):
    """Scores of judged rows."""

    rows: Array  # (m,) positions among the given rows
    scores: Array  # (m, K) calibrated log-likelihoods
    kept: list[str]  # what labels of these rows have chosen, and was not chosen again


class Judge(Protocol):
    """Scores the test rows of a split by a model without the rows that are left out."""

    def scores(self, split: Split) -> Array:
        """Return calibrated log-likelihoods of the test rows, shape (t, K)."""


@with_one_thread
def nested_scores(
    predictor: Predictor,
    request: Request,
    lesson: Lesson,
    splits: Sequence[Split],
    raw: bool = False,
    progress: Progress = lambda completed, message: None,
) -> Nested:
    """Score the test rows of each split by a model of the other rows; `request` is what the model was fitted with."""
    model, members = predictor.model, lesson.members
    judged = np.concatenate([split.test for split in splits])
    method = _method(request, model, raw)
    request = replace(request, calibrate=method, rule=model.rule, classes=model.classes, key=None)
    as_fitted = model.chosen_on is not None and bool(np.isclose(model.chosen_on, model.weight, rtol=1e-12))
    complete = holds_all_rows(model, lesson)
    if complete and any(len(split.out) == len(members) for split in splits):
        raise InputError("no rows are left to judge by. Give at least two rows that are not copies or of one group.")
    if complete and method is not None and any(_classes_left(split, members) < 2 for split in splits):
        raise InputError(
            f"{len(members)} rows are too few to be judged: without those of a fold, rows of a single class are left. "
            "Give at least two rows of each of two classes, that are not copies or of one group."
        )
    kept: list[str] = []
    judge: Judge
    if complete and as_fitted and len(members) <= JUDGED_ROWS:
        judge = Refits(model, request, lesson)
    else:
        few = len(np.union1d(judged, splits[-1].train)) < ENOUGH * min(model.weight, JUDGED_ROWS)
        choices = ability(model.asked, HasChoices)
        if choices is not None and (few or not as_fitted):
            kept = choices.chosen_by_labels()
        if few and method is not None:
            kept = [*kept, "calibration"]
        judge = Subtractions(model, request, lesson, as_fitted and not few, not few)
    scores = []
    for number, split in enumerate(splits):
        progress(number, f"fold {number + 1} of {len(splits)}")
        try:
            scores.append(judge.scores(split))
        except DecibanError as error:
            raise error.but(f"without fold {number + 1} of {len(splits)}: ", *error.args) from None
    order = np.argsort(judged, kind="stable")
    return Nested(judged[order], np.concatenate(scores)[order], kept)


def holds_all_rows(model: Model, lesson: Lesson) -> bool:
    """Whether a lesson has as many rows of each class as the model has learnt."""
    return bool(np.allclose(lesson.members.weights(), model.stats.rows, rtol=1e-9))


def _classes_left(split: Split, members: Members) -> int:
    """How many classes the rows have that a split does not leave out."""
    return len(np.unique(np.delete(members.codes, split.out)))


def _method(request: Request, model: Model, raw: bool) -> str | None:
    """Return how folds are calibrated: as the model is now; "auto" where a fit would choose the same."""
    if raw or model.calibration is None:
        return None
    found = model.calibration.method
    chosen = calibration_method(request, model.asked, (int(model.weight), len(model.reader.columns)))
    same = found == chosen or (chosen == "features" and found in ("length", "blocks"))  # without scales of words
    automatic = request.calibrate == "auto" and same
    return "auto" if automatic else found


class Refits:
    """Fits the rows that are not left out as the whole model was fitted; documents are counted once for all folds."""

    def __init__(self, model: Model, request: Request, lesson: Lesson) -> None:
        self.model, self.request, self.lesson = model, request, lesson
        keys = model.family.keys if isinstance(model.family, Product) else [()]
        self.documents = {
            key: (family, rows)
            for key, (family, rows) in zip(keys, blocks_of(model.family, lesson.rows))
            if ability(family, HasCandidates) is not None
        }
        for family, rows in self.documents.values():
            rows.count(family.tokens)

    def scores(self, split: Split) -> Array:
        """Fit the other rows and score the test rows."""
        members = self.lesson.members
        left = np.delete(np.arange(len(members)), split.out)
        codes, weight = members.codes, members.weight  # names of classes do not matter, their order does
        table, reader = self.lesson.batch.table, self.model.reader
        if reader.schema is not None:
            table, reader = _varying(table, left, reader)
        batch = Batch(table.take(left), codes[left], None if weight is None else weight[left])
        made = fit_lesson(
            self.request,
            batch,
            reader,
            lambda family: Lesson(batch, self._encoded(family, table, left), members.take(left)),
        )
        return made.scores(self._encoded(made.model.family, table, split.test, made.model.stats.family))

    def _encoded(self, family: Family[Any], table: Table, at: Array, stats: Stats | None = None) -> Rows:
        """Encode some rows; documents that are counted already are selected."""
        rows = encode(family, table.take(at), stats)
        if not isinstance(rows, BlockRows):
            return self.documents[()][1][at] if () in self.documents else rows
        parts = list(rows.parts)
        for place, key in enumerate(family.keys if isinstance(family, Product) else ()):
            if key in self.documents:
                parts[place] = self.documents[key][1][at]
        return replace(rows, parts=tuple(parts))


def _varying(table: Table, rows: Array, reader: Reader) -> tuple[Table, Reader]:
    """Leave out columns of numbers that are the same in all of these rows, as a schema of these rows would."""
    numbers = [j for j in range(table.shape[1]) if table.kind(j) == "number"]
    fixed = {j for j in numbers if _is_constant(np.asarray(table.column(j))[rows])}
    kept = [j for j in range(table.shape[1]) if j not in fixed]
    if not fixed or not kept or not isinstance(table, TypedTable):
        return table, reader
    columns = tuple(table.columns[j] for j in kept)
    held = TypedColumns(len(table), tuple(table.data.values[j] for j in kept))
    return TypedTable(held, columns, table.named, table.origin), reader.select(columns)


def _is_constant(values: Array) -> bool:
    seen = values[~np.isnan(values)]
    return not len(seen) or bool((seen == seen[0]).all())


class Subtractions:
    """Subtracts the rows that are left out from the sums of the model, and chooses and calibrates again if asked to."""

    def __init__(self, model: Model, request: Request, lesson: Lesson, choose: bool, calibrate: bool) -> None:
        self.model, self.request, self.lesson = model, request, lesson
        self.choose, self.calibrate = choose, calibrate

    def scores(self, split: Split) -> Array:
        """Score the test rows by the other sums."""
        model, rows, members = self.model, self.lesson.rows, self.lesson.members
        out = collect(model.family, rows[split.out], members.take(split.out), model.reader.columns)
        model = replace(model, stats=without_fold(model.family, model.stats, out), ledger=None)
        train = Lesson(self.lesson.batch, rows[split.train], members.take(split.train))
        if self.choose:
            model = model.rechoose(rechosen(model, train))
        method = self.request.calibrate
        if self.calibrate or method is None:
            named = model.calibration.method if method == "auto" and model.calibration is not None else method
            made = calibrated(replace(model, calibration=None), train, named, method == "auto")
        else:
            made = Predictor(model, model.density())
        return made.scores(rows[split.test])
