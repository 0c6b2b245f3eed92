"""Judging a model by rows: leave-one-out, k-fold, intervals of the llr and the influence of learnt rows.

Every function works on a predictor, the sums of its model, and encoded rows; nothing is refitted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from deciban.errors import (
    Argument,
    DecibanError,
    InputError,
    NotAvailableError,
    NotLearntError,
    Remedy,
    UnknownLabelError,
)
from deciban.evidence import scores as score
from deciban.families.abilities import HasDraws, SharesParameters, ability
from deciban.families.product import blocks_of, footprint, left_out_experts, without_ability
from deciban.families.protocol import Density, Rows, Rule
from deciban.families.word_scores import HasLeftOutWords, JoinedSource, WordScores, plain
from deciban.model.calibration import total
from deciban.model.ledger import Key, check_batch
from deciban.model.model import Lesson, Model, ModelStats, collect, estimate
from deciban.model.predictor import Predictor, block_lengths, by_block
from deciban.read.batches import Batch
from deciban.read.codes import Labels, place_labels
from deciban.statistics import Array, Axis, Members, Stats, all_but_one
from deciban.statistics.base import finite

BLOCK = 2**22  # numbers processed at a time
NEW_ROWS = Remedy(
    "Only learnt rows, with the labels and weights that they were learnt with, can be scored without themselves. "
    "If the rows are new, ",
    Argument("new_rows", python="give learnt=False"),
    ".",
)

S = TypeVar("S", bound=Stats)


class LeftOut(NamedTuple):
    """Scores of learnt rows by models that have not learnt them."""

    blocks: list[Array]  # (n, K) log-likelihoods of each block, not calibrated, then the parts of the experts
    log_prior: Array  # (n, K) the learnt log prior without the row
    lesson: Lesson


class LLRInterval(NamedTuple):
    """Credible intervals of llrs, shape (n,) each: the posterior median, and the ends of the equal-tailed interval."""

    median: Array
    low: Array
    high: Array


def left_out_prior(rows: Array, codes: Array, weight: Array) -> Array:
    """Return the learnt log prior without each row, shape (n, K).

    It is (N_c − w)/(N − w) for the row's class and N_j/(N − w) for the others.
    """
    own = np.maximum(rows[codes] - weight, 0.0)
    each = np.arange(len(rows))
    others = np.array([rows[each != k].sum() for k in each])  # not by subtraction: 0 must be 0
    total = others[codes] + own
    with np.errstate(divide="ignore", invalid="ignore"):
        log_total = np.log(total)
        prior = np.log(rows) - log_total[:, None]
        prior[np.arange(len(codes)), codes] = np.log(own) - log_total
    prior[total <= 0] = -np.log(len(rows))  # no rows are left: uniform
    return prior


def left_out_blocks(
    predictor: Predictor, rows: Rows, members: Members, scored: Array | None = None, experts: bool = True
) -> list[Array]:
    """Return the leave-one-out scores of each block, then of the parts of the experts if asked for, shape (n, K) each.

    Scores that have a source, from which they can be computed, are NaN but for the rows `scored`, if these are given.
    """
    model = predictor.model
    each = blocks_of(model.family, model.stats.family, predictor.density, rows)
    given = members, model.rule
    blocks = by_block(lambda block: _left_out(block[0], block[1], block[2], block[3], *given, scored), each)
    if not experts:
        return blocks
    return blocks + left_out_experts(model.family, model.stats.family, rows, *given, predictor.density)


def _left_out(
    family: Any, stats: Any, density: Density, rows: Rows, members: Members, rule: Rule, scored: Array | None
) -> Array:
    """Return the leave-one-out scores of a block, (n, K), with their source where they are sums over words."""
    words = ability(family, HasLeftOutWords)
    source = None if words is None else words.left_out_words(stats, rows, members, rule)
    if source is None:
        return family.leave_one_out(stats, rows, members, rule, density)
    if scored is None:
        return WordScores.of(source.scores(), source)
    scores = np.full((len(members), members.K), np.nan)
    scores[scored] = source.scores(scored)
    return WordScores.of(scores, source)


def leave_out(predictor: Predictor, batch: Batch, groups: ArrayLike | None = None, key: Key | None = None) -> LeftOut:
    """Score learnt rows as if each, or each group, had never been learnt; refuse rows that were not."""
    model, learnt = predictor.model, learnt_lesson(predictor.model, batch, key)
    rows, members = learnt.rows, learnt.members
    if groups is not None:
        return LeftOut(*_leave_groups_out(predictor, rows, members, np.asarray(groups)), learnt)
    prior = left_out_prior(model.stats.rows, members.codes, members.row_weights())
    return LeftOut(left_out_blocks(predictor, rows, members), prior, learnt)


def learnt_lesson(model: Model, batch: Batch, key: Key | None = None) -> Lesson:
    """Encode learnt rows; refuse rows that the ledger or the sums show were not learnt."""
    if model.ledger is not None:
        try:
            batch = check_batch(model.ledger, batch, model.reader.columns, key)  # with the weights after decay
        except NotLearntError as error:
            error.remedy = NEW_ROWS
            raise
    learnt = known_lesson(model, batch)
    rows, members = learnt.rows, learnt.members
    with np.errstate(invalid="ignore", over="ignore"):
        sums = footprint(model.family, rows, members)
    finite(sums, model.family, rows, model.reader.columns)
    model.stats.require(ModelStats({"class": members.classes}, members.weights(), sums), NotLearntError)
    return learnt


def known_lesson(model: Model, batch: Batch) -> Lesson:
    """Encode a batch whose labels are all classes of the model, on the model's class axis."""
    codes = learnt_codes(model, batch.labels, len(batch.table))
    return Lesson(batch, model.encode(batch.table), Members.hard(codes, model.stats.axis, batch.weight))


def learnt_codes(model: Model, labels: ArrayLike | Labels | None, n: int) -> Array:
    """Return the class codes of labels; a label that the model does not know was never learnt."""
    try:
        return place_labels(labels, n, model.classes)
    except UnknownLabelError as error:
        raise error.turned_into(NotLearntError) from None


def _leave_groups_out(predictor: Predictor, rows: Rows, members: Members, groups: Array) -> tuple[list[Array], Array]:
    """Score each group by the sums without it; return also the log prior without it."""
    if groups.shape != (len(members),):
        raise InputError(f"groups has shape {groups.shape}, but there are {len(members)} rows. Give one for each row.")
    model, columns = predictor.model, predictor.model.reader.columns
    family = model.family.resolve(model.stats.family)
    _, codes = np.unique(groups, return_inverse=True)
    scores: list[list[Array]] = []
    places: list[Array] = []
    prior = np.empty((len(members), members.K))
    for group in range(codes.max() + 1):
        at = np.flatnonzero(codes == group)
        left = model.stats - collect(model.family, rows[at], members.take(at), columns)
        try:
            density = estimate(family, left, model.rule, columns)
        except DecibanError as error:
            raise error.but(f"without group {groups[at[0]]!r}: ", *error.args) from None
        scores.append(predictor.block_scores(rows[at], density))
        places.append(at)
        weight = np.maximum(left.rows, 0)
        prior[at] = score.log_probability(weight / weight.sum())
    return [JoinedSource.joined(parts, places) for parts in zip(*scores)], prior


def cross_validate(
    model: Model,
    lesson: Lesson,
    folds: Sequence[Array],
    answer: Callable[[Array, Array], Array],
    constant: bool = False,
) -> Array:
    """Answer for each fold by the sums of the others: one pass, k estimates, no refits; choices are kept.

    `answer(scores, rows_per_class)` turns log-likelihoods (m, K), with every constant if `constant`, into what is asked
    for.
    """
    rows, members = lesson.rows, lesson.members
    columns = model.reader.columns
    parts = [collect(model.family, rows[fold], members.take(fold), columns) for fold in folds]
    answers = []
    for rest, fold in zip(all_but_one(parts), folds):
        density = estimate(model.family, rest, model.rule, columns)
        scores = density.log_density(rows[fold])
        if constant:
            scores = scores + np.reshape(density.log_base(rows[fold]), (-1, 1))
        answers.append(answer(scores, rest.rows))
    return np.concatenate(answers)[np.argsort(np.concatenate(folds), kind="stable")]


# -- how certain an answer is, and which rows it rests on ------------------------------------------------------------
def llr_interval(
    predictor: Predictor,
    rows: Rows,
    pair: tuple[int, int | None],
    log_prior: Array,
    level: float,
    draws: int,
    rng: np.random.Generator,
) -> LLRInterval:
    """Return credible intervals of the llrs, by scoring rows with parameters drawn from the posterior."""
    if not 0 < level < 1:
        raise InputError(f"level={level}: give a probability between 0 and 1.")
    model = predictor.model
    family = ability(model.family, HasDraws)  # not resolved: whether a prior is derived matters to its certainty
    if family is None:
        raise NotAvailableError(
            f"{without_ability(model.family, HasDraws)} cannot draw parameters from its posterior, so there is no "
            "interval. Use a family that can, such as Gaussian()."
        )
    n, llrs = rows.shape[0], list[Array]()
    step = max(1, BLOCK // max(_numbers(model.stats.family), n * len(model.classes)))
    if model.calibration is not None and model.calibration.by_word:
        step = 1  # its scores are computed from one density of words
    for at in range(0, draws, step):
        times = min(step, draws - at)
        scores = _scores_of_draws(predictor, rows, family.draw(model.stats.family, rng, times), times)
        llrs.append(score.llr(scores, *pair, log_prior).reshape(times, n))
    return LLRInterval(*np.quantile(np.concatenate(llrs), (0.5, (1 - level) / 2, (1 + level) / 2), axis=0))


def _scores_of_draws(predictor: Predictor, rows: Rows, density: Density, times: int) -> Array:
    """Return calibrated scores of rows by each of several draws, shape (times · n, K), the first draw first."""
    model, scores = predictor.model, predictor.block_scores(rows, density)
    if times == 1:
        return predictor.calibrated(scores, rows)
    K, B = len(model.classes), len(blocks_of(model.family))
    drawn = [each.reshape(len(each), times, K).transpose(1, 0, 2).reshape(-1, K) for each in map(plain, scores[:B])]
    if model.calibration is None:
        return total(drawn)
    experts = [np.concatenate([each] * times) for each in scores[B:]]  # none is drawn for them
    lengths = [None if each is None else np.concatenate([each] * times) for each in block_lengths(model.family, rows)]
    return model.calibration.apply([*drawn, *experts], lengths, model.classes)


def influence(predictor: Predictor, target: Rows, lesson: Lesson, one: int, other: int) -> Array:
    """Return by how much the llr of one row changes if each learnt row is unlearnt, shape (n,); exact."""
    model, members = predictor.model, lesson.members
    model.stats.require(model.sums(lesson), NotLearntError)
    model = replace(model, family=model.family.resolve(model.stats.family))
    before = predictor.scores(target, raw=True)[0]
    changed = np.zeros(len(members))
    sharing = ability(model.family, SharesParameters)
    shared = sharing is not None and sharing.shared
    codes: Any = members.codes
    concerned = np.arange(len(codes)) if shared else np.flatnonzero(np.isin(codes, (one, other)))
    for at in _portions(concerned, model.stats):
        after = (_without_each if shared else _without_own)(model, lesson, at, target, before)
        changed[at] = (after[:, one] - after[:, other]) - (before[one] - before[other])
    return changed


def _without_each(model: Model, lesson: Lesson, at: Array, target: Rows, before: Array) -> Array:
    """Score the target by models that lack one row each, shape (m, K): one model at a time."""
    after = np.repeat(before[None, :], len(at), axis=0)
    for place, i in enumerate(at):
        row = lesson.rows[i : i + 1]
        left = model.stats.family - model.family.collect(row, lesson.members.take(slice(i, i + 1)))
        after[place] = model.family.estimate(left, model.rule).log_density(target)[0]
    return after


def _without_own(model: Model, lesson: Lesson, at: Array, target: Rows, before: Array) -> Array:
    """As `_without_each` where only the row's own class changes: one group per row, each that class without the row."""
    after = np.repeat(before[None, :], len(at), axis=0)
    members = lesson.members
    codes: Any = members.codes[at]
    weight = None if members.weight is None else members.weight[at]
    each = Axis.of(len(at))
    own = model.family.collect(lesson.rows[at], Members.hard(np.arange(len(at)), each, weight))
    groups = _with_classes(model.stats.family.select("class", codes), each) - own
    after[np.arange(len(at)), codes] = model.family.estimate(groups, model.rule).log_density(target)[0]
    return after


def _with_classes(stats: S, axis: Axis) -> S:
    """Return the same sums with other names along the class axis, nested ones too."""
    renamed = replace(stats, labels={**stats.labels, "class": axis})
    for f, values in stats.items():
        if f.metadata["kind"] == "nested" and values is not None:
            parts = (
                {name: _with_classes(part, axis) for name, part in values.items()}
                if isinstance(values, dict)
                else _with_classes(values, axis)
            )
            renamed = replace(renamed, **{f.name: parts})
    return renamed


def _portions(rows: Array, stats: ModelStats) -> list[Array]:
    """Cut rows into portions whose groups fit in memory."""
    width = max(_sizes(stats.family), default=1) // max(len(stats.rows), 1)
    step = max(1, BLOCK // max(width, 1))
    return [rows[at : at + step] for at in range(0, len(rows), step)]


def _numbers(stats: Stats) -> int:
    """Return how many numbers the sums have, nested ones too."""
    own = sum(_sizes(stats))
    for f, values in stats.items():
        if f.metadata["kind"] == "nested" and values is not None:
            own += sum(_numbers(part) for part in (values.values() if isinstance(values, dict) else [values]))
    return own


def _sizes(stats: Stats) -> list[int]:
    return [np.size(values) for _, values in stats.items() if isinstance(values, np.ndarray)]
