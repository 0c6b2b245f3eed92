"""Prediction sets: for each row the classes that cannot be excluded, with a guaranteed coverage (conformal prediction).

    s(x, y)  = −log P(y|x) / (1 − P(y|x))                  how badly row x and class y agree with a model
    p(x, y)  = (1 + #{i : s_i ≥ s(x, y)}) / (n + 1)        i runs over n learnt rows, or over those of class y
    set(x)   = {y : p(x, y) > 1 − coverage}

The methods differ in the models that compute s_i and s(x, y), with α = 1 − coverage:

cv+         k folds; choices, sums and the calibrator of a fold's model are made without the fold. Row i is scored by
            the model without its fold, and so is (x, y) when it is compared with row i. For exchangeable rows the
            coverage is at least 1 − 2α − √(2/n), and about 1 − α in practice.
jackknife   s_i by exact leave-one-out, s(x, y) by all rows; not calibrated. No guarantee.
full        (x, y) is added to the sums, and all n + 1 rows are scored by leave-one-out; not calibrated. For
            exchangeable rows, and choices that were not made from them, the coverage is at least 1 − α.

References: Vovk, Gammerman & Shafer, Algorithmic Learning in a Random World, 2005; Barber, Candès, Ramdas & Tibshirani,
Predictive inference with the jackknife+, Annals of Statistics 49, 2021, theorems 1 and 4; Romano, Sesia & Candès,
Classification with valid and adaptive coverage, 2020, theorem 3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from deciban.errors import DecibanError, HyperparameterError, InputError, NotLearntError
from deciban.evidence.explanation import count
from deciban.evidence.scores import log_joint, log_ratio
from deciban.families.protocol import Rows
from deciban.kernels import log_sum_exp
from deciban.model.calibration import total
from deciban.model.cross_fit import fit_calibration
from deciban.model.fit import MOST_KEPT, Request, automatic_method, fit_batch
from deciban.model.judge import known_lesson, learnt_codes, left_out_blocks, left_out_prior
from deciban.model.model import Lesson, Model, collect, estimate
from deciban.model.predictor import Predictor
from deciban.read.batches import Batch, even_rows
from deciban.read.codes import Labels
from deciban.read.tables import Table
from deciban.statistics import Array, Members

METHODS = ("cv+", "jackknife", "full")
FOLDS = 10
SAME_WEIGHT = 1e-9  # relative difference of weights that rounding may make

LogPrior = Callable[[Array], Array]  # rows of each class, (K,) or (n, K) → log prior of the same shape


@dataclass(frozen=True, eq=False)
class PredictionSets:
    """For each row the set of classes that cannot be excluded.

    Attributes
    ----------
    p_values : ndarray of shape (n_samples, n_classes)
        Conformal p-value of each class.
    members : ndarray of bool, of shape (n_samples, n_classes)
        Which classes are in the set.
    classes : tuple
        Class labels, in the order of the columns.
    coverage : float
        The probability with which a set contains the true class.
    method : str
        "cv+", "jackknife" or "full".
    rows : ndarray of shape (n_classes,)
        Number of learnt rows that each class was compared with.
    """

    p_values: Array
    members: Array
    classes: tuple[Any, ...]
    coverage: float
    method: str
    rows: Array

    @property
    def sets(self) -> list[tuple[Any, ...]]:
        """The classes of each row, the most plausible first."""
        order = np.argsort(-self.p_values, axis=1, kind="stable")
        return [
            tuple(self.classes[k] for k in ranked if inside[k]) for ranked, inside in zip(order.tolist(), self.members)
        ]

    @property
    def size(self) -> Array:
        """Number of classes in each set, shape (n_samples,)."""
        return np.asarray(self.members.sum(axis=1))

    @property
    def empty(self) -> int:
        """Number of empty sets: rows for which every class is excluded."""
        return int((self.size == 0).sum())

    @property
    def always(self) -> tuple[Any, ...]:
        """Classes that are in every set, because too few rows were learnt to exclude them."""
        few = self.rows + 1 < 1 / (1 - self.coverage) - SAME_WEIGHT
        return tuple(name for name, each in zip(self.classes, few) if each)

    def __len__(self) -> int:
        return len(self.p_values)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.sets)

    def __getitem__(self, row: int) -> tuple[Any, ...]:
        return self.sets[row]

    def __repr__(self) -> str:
        """Describe how many sets have which size."""
        n, sizes = len(self), np.bincount(self.size, minlength=2)
        said = f"{sizes[1]:,} of one class, {sizes[2:].sum():,} of several, {sizes[0]:,} empty"
        few = f"; in every set, for too few rows: {', '.join(map(str, self.always))}" if self.always else ""
        return f"PredictionSets({count(n, 'row')}, coverage {self.coverage:g}, {self.method}: {said}{few})"


def prediction_sets(
    conformity: Conformity, table: Table, coverage: float, most_probable: Callable[[], Array] | None = None
) -> PredictionSets:
    """Return the sets of rows; `most_probable` gives the class codes that fill empty sets."""
    if not 0 < coverage < 1:
        raise InputError(f"coverage={coverage}: give a probability between 0 and 1, such as .9.")
    p = conformity.p_values(table)
    members = p > 1 - coverage + 1e-12  # p is a ratio of whole numbers; rounding must not include a class
    if most_probable is not None and not (some := members.any(axis=1)).all():
        none = np.flatnonzero(~some)
        members[none, most_probable()[none]] = True
    return PredictionSets(p, members, conformity.classes, coverage, conformity.method, conformity.rows)


# -- scores ------------------------------------------------------------------------------------------------------------
def disagreement(scores: Array, log_prior: Array) -> Array:
    """Return s(x, y) of each class, shape (n, K): log posterior odds against the class.

    >>> disagreement(np.log([[0.8, 0.2]]), np.log([0.5, 0.5])).round(4).tolist()
    [[-1.3863, 1.3863]]
    """
    joint = log_joint(scores, log_prior)
    K = joint.shape[1]
    if K == 1:
        return np.zeros_like(joint)
    others = np.column_stack([log_sum_exp(np.delete(joint, k, axis=1)) for k in range(K)])
    return log_ratio(others, joint)


def surprise(scores: Array, log_prior: Array) -> Array:
    """Return −log f(x|y) of each class, shape (n, K); the prior does not matter."""
    return -scores


Score = Callable[[Array, Array], Array]  # scores (n, K), log prior → s (n, K)


# -- cv+ and jackknife -------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class FoldScores:
    """A model, and the scores of rows that it has not learnt."""

    predictor: Predictor
    log_prior: Array  # (K,)
    held: tuple[Array, ...]  # sorted s_i of the rows that each class is compared with, one array per class


@dataclass(frozen=True, eq=False)
class LeftOutConformity:
    """Compares new rows with learnt rows, each by a model that has not learnt the latter."""

    method: str
    classes: tuple[Any, ...]
    rows: Array  # (K,)
    parts: tuple[FoldScores, ...]
    score: Score = disagreement
    raw: bool = False

    def p_values(self, table: Table) -> Array:
        """Return the p-value of each class, shape (n, K)."""
        at_least = np.ones((len(table), len(self.classes)))  # the new row itself
        for part in self.parts:
            found = self.score(_scores(part.predictor, table, self.raw, self.score), part.log_prior)
            for k, held in enumerate(part.held):
                at_least[:, k] += len(held) - np.searchsorted(held, found[:, k], side="left")
        return at_least / (self.rows + 1)


def _scores(predictor: Predictor, table: Table, raw: bool, score: Score) -> Array:
    rows = predictor.model.encode(table)
    return predictor.log_likelihood(rows, raw=True) if score is surprise else predictor.scores(rows, raw)


def cross_validated(
    predictor: Predictor,
    batch: Batch,
    request: Request,
    log_prior: LogPrior,
    by_class: bool,
    score: Score = disagreement,
) -> LeftOutConformity:
    """Compare by the models of k folds, with choices, sums and calibrator made without the fold."""
    model = predictor.model
    lesson = known_lesson(model, batch)
    codes, n = np.asarray(lesson.members.codes), len(lesson.members)
    fold = np.empty(n, dtype=np.intp)
    fold[np.random.default_rng(0).permutation(n)] = np.arange(n) % FOLDS  # independent of the labels
    weight = lesson.members.row_weights().sum()
    whole = abs(weight - model.weight) <= SAME_WEIGHT * model.weight
    request = replace(request, classes=model.classes, key=None)
    parts = []
    for k in range(min(FOLDS, n)):
        train, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        if not len(train):
            raise InputError("one row was learnt: sets need at least two. Learn more rows.")
        made = _refitted(request, batch, train, model) if whole else _without(predictor, lesson, train, test)
        table = batch.table.take(test)
        prior = log_prior(made.model.stats.rows)
        own = score(_scores(made, table, False, score), prior)[np.arange(len(test)), codes[test]]
        parts.append(FoldScores(made, prior, _held(own, codes[test], model, by_class)))
    return LeftOutConformity("cv+", model.classes, _compared(codes, model, by_class), tuple(parts), score)


def _refitted(request: Request, batch: Batch, train: Array, model: Model) -> Predictor:
    """Fit the rows outside a fold from nothing: families, structure, vocabulary and calibrator are chosen again."""
    some = _taken(batch, train)
    try:
        return fit_batch(request, some, model.reader.schema)
    except DecibanError:  # a class has no row outside the fold, so that no calibrator can be fitted
        return fit_batch(replace(request, calibrate=None), some, model.reader.schema)


def _without(predictor: Predictor, lesson: Lesson, train: Array, test: Array) -> Predictor:
    """Subtract a fold from the sums, and fit the calibrator again; of many rows, a fold does not change choices."""
    model, columns = predictor.model, predictor.model.reader.columns
    left = model.stats - collect(model.family, lesson.rows[test], lesson.members.take(test), columns)
    density = estimate(model.family, left, model.rule, columns)
    without = Predictor(replace(model, stats=left, calibration=None), density)
    if model.calibration is None:
        return without
    rest = Lesson(lesson.batch, lesson.rows[train], lesson.members.take(train))
    made = fit_calibration(without, rest, model.calibration.method, model.calibration.method == automatic_method(model))
    return Predictor(replace(without.model, calibration=made), density)


def left_one_out(
    predictor: Predictor, batch: Batch, log_prior: LogPrior, by_class: bool, score: Score = disagreement
) -> LeftOutConformity:
    """Compare leave-one-out scores with scores by all rows, not calibrated: one pass over the learnt rows."""
    model = predictor.model
    lesson = known_lesson(model, batch)
    codes = np.asarray(lesson.members.codes)
    prior = log_prior(model.stats.rows)
    scores = total(left_out_blocks(predictor, lesson.rows, lesson.members, experts=False))
    if score is surprise:
        scores = scores + np.reshape(predictor.density.log_base(lesson.rows), (-1, 1))
    own = score(scores, prior)[np.arange(len(codes)), codes]
    part = FoldScores(predictor, prior, _held(own, codes, model, by_class))
    rows = _compared(codes, model, by_class)
    return LeftOutConformity("jackknife", model.classes, rows, (part,), score, raw=True)


def _held(own: Array, codes: Array, model: Model, by_class: bool) -> tuple[Array, ...]:
    """Return the sorted scores that each class is compared with."""
    K = len(model.classes)
    return tuple(np.sort(own[codes == k]) for k in range(K)) if by_class else (np.sort(own),) * K


def _compared(codes: Array, model: Model, by_class: bool) -> Array:
    """Return the number of rows that each class is compared with, shape (K,)."""
    K = len(model.classes)
    return np.bincount(codes, minlength=K) if by_class else np.full(K, len(codes))


# -- full --------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class FullConformity:
    """Adds each new row with each class to the sums, and scores all rows by leave-one-out; for small tables."""

    classes: tuple[Any, ...]
    rows: Array  # (K,)
    model: Model
    lesson: Lesson
    log_prior: LogPrior
    by_class: bool
    method: str = "full"

    def p_values(self, table: Table) -> Array:
        """Return the p-value of each class, shape (n, K): one leave-one-out pass for each row and class."""
        rows, K = self.model.encode(table), len(self.classes)
        return np.array([[self._p_value(rows[i : i + 1], k) for k in range(K)] for i in range(len(table))])

    def _p_value(self, row: Rows, k: int) -> float:
        model, members = self.model, self.lesson.members
        new = Members.hard(np.array([k]), members.classes)
        stats = model.stats + collect(model.family, row, new, model.reader.columns)
        predictor = Predictor(replace(model, stats=stats))
        mine = self._own_scores(predictor, row, new)[0]
        found = self._own_scores(predictor, self.lesson.rows, members)
        if self.by_class:
            found = found[members.codes == k]
        return (1 + int((found >= mine).sum())) / (len(found) + 1)

    def _own_scores(self, predictor: Predictor, rows: Rows, members: Members) -> Array:
        """Return s_i of each row without itself, shape (n,)."""
        codes = np.asarray(members.codes)
        left = np.exp(left_out_prior(predictor.model.stats.rows, codes, members.row_weights()))
        scores = total(left_out_blocks(predictor, rows, members, experts=False))
        return disagreement(scores, self.log_prior(left))[np.arange(len(codes)), codes]


def augmented(predictor: Predictor, batch: Batch, log_prior: LogPrior, by_class: bool) -> FullConformity:
    """Compare by models that have learnt the new row, too; the rows must be all that were learnt."""
    model = predictor.model
    lesson = known_lesson(model, batch)
    if abs(lesson.members.row_weights().sum() - model.weight) > SAME_WEIGHT * model.weight:
        raise NotLearntError(
            f"method='full' needs all rows that were learnt: the model has {model.weight:,.0f}, and "
            f"{len(lesson.members):,} were given. Give them all, or use method='cv+'."
        )
    rows = _compared(np.asarray(lesson.members.codes), model, by_class)
    return FullConformity(model.classes, rows, model, lesson, log_prior, by_class)


Conformity: TypeAlias = LeftOutConformity | FullConformity


def conformity_of(
    method: str, predictor: Predictor, batch: Batch, request: Request, log_prior: LogPrior, by_class: bool
) -> Conformity:
    """Prepare the p-values of new rows by one of the methods."""
    if method not in METHODS:
        raise HyperparameterError(f"method={method!r} is not one of {', '.join(METHODS)}.")
    batch = _coded(predictor.model, batch, None if method == "full" else MOST_KEPT)
    if method == "cv+":
        return cross_validated(predictor, batch, request, log_prior, by_class)
    if method == "jackknife":
        return left_one_out(predictor, batch, log_prior, by_class)
    return augmented(predictor, batch, log_prior, by_class)


def class_conformity(predictor: Predictor, batch: Batch, request: Request, log_prior: LogPrior) -> Conformity:
    """Prepare the p-values of log f(x|class), each among the rows of the class, by the models of k folds."""
    batch = _coded(predictor.model, batch, MOST_KEPT)
    return cross_validated(predictor, batch, request, log_prior, by_class=True, score=surprise)


def _coded(model: Model, batch: Batch, most: int | None) -> Batch:
    """Return a batch of at most `most` rows, with labels as codes of the model's classes."""
    n = len(batch.table)
    batch = replace(batch, labels=Labels(model.classes, learnt_codes(model, batch.labels, n)))
    return batch if most is None or n <= most else _taken(batch, even_rows(n, most))


def _taken(batch: Batch, rows: Array) -> Batch:
    return Batch(batch.table.take(rows), batch.labels[rows], None if batch.weight is None else batch.weight[rows])
