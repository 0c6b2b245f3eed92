"""Judging a model by rows: leave-one-out, k-fold, intervals of the llr, influence of learnt rows; folds; comparisons.

The functions that score rows work on a predictor, the sums of its model, and encoded rows; nothing is refitted.

Folds are stratified, by groups or by time. At most `JUDGED_ROWS` rows are judged. Rows that belong to a group of a
judged row are left out together with it, whether they are judged or not.

Equal rows are either copies of one row (a file that was concatenated twice, a class that was oversampled) or different
cases whose few columns happen to agree. Copies stay together: a row is easy to predict from its copy. Chance agreement
must not be kept together, since new rows will agree with learnt ones just as often. Equal rows count as copies if there
are more than `CHANCE` times as many pairs of them as columns that are independent within each class would give.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp
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
from deciban.model.ledger import Key, check_batch, row_hashes
from deciban.model.model import Lesson, Model, ModelStats, collect, estimate
from deciban.model.predictor import Predictor, block_lengths, by_block
from deciban.read.batches import Batch, chosen_rows
from deciban.read.codes import Labels, place_labels
from deciban.read.tables import Table
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
    """Return the class codes of labels; NotLearntError if the model does not have one of them."""
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

    `answer(scores, rows_per_class)` computes the results of m rows from their log-likelihoods (m, K), which have every
    constant if `constant`.
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


# -- credible intervals of llrs, and influence of learnt rows --------------------------------------------------------
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
    experts = [np.concatenate([each] * times) for each in scores[B:]]  # their densities are not drawn
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
    """Do what `_without_each` does, where only the row's own class changes: one group per row, its class without it."""
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


# -- folds -------------------------------------------------------------------------------------------------------------
FOLDS = 5
JUDGED_ROWS = 10_000  # at most
HASHED_ROWS = 100_000  # with more rows, copies are looked for among the judged rows alone
CHANCE = 10.0  # times as many equal pairs as by chance, from which equal rows are copies


class Split(NamedTuple):
    """Positions of rows: judged ones, those that are left out of the sums with them, and those to choose by."""

    test: Array
    out: Array
    train: Array


def stratified(codes: Array, k: int = FOLDS, groups: ArrayLike | None = None, seed: int = 0) -> Array:
    """Return the fold of each row, shape (n,): random, with equal shares of each class; groups stay together.

    >>> stratified(np.array([0, 0, 1, 1, 0, 1]), 2).tolist()
    [1, 0, 0, 1, 0, 1]
    >>> stratified(np.array([0, 0, 1, 1, 0, 1]), 2, list("abaabb")).tolist()
    [0, 1, 0, 0, 1, 1]
    """
    order = np.random.default_rng(seed).permutation(len(codes))
    fold = np.empty(len(codes), dtype=np.intp)
    if groups is not None:
        _, group, size = np.unique(np.asarray(groups), return_inverse=True, return_counts=True)
        if size.max() > 1:
            return _with_groups(codes, k, group, size, order)
    order = order[np.argsort(codes[order], kind="stable")]
    fold[order] = np.arange(len(codes)) % k
    return fold


def _with_groups(codes: Array, k: int, group: Array, size: Array, order: Array) -> Array:
    """Deal groups to folds, the largest first, each to the fold that has the fewest rows of its classes; then rows."""
    fold, K = np.full(len(codes), -1), int(codes.max()) + 1
    held = np.zeros((k, K))
    of_group = sp.csr_array((np.ones(len(codes)), (group, codes)), (len(size), K)).toarray()
    shuffled = np.unique(group[order], return_index=True)[1]  # place of each group in the random order
    several = np.flatnonzero(size > 1)
    dealt = np.full(len(size), -1)
    for one in several[np.lexsort((shuffled[several], -size[several]))]:
        wanted = held @ of_group[one] * len(codes) + held.sum(axis=1)
        at = int(np.argmin(wanted))
        dealt[one] = at
        held[at] += of_group[one]
    fold = dealt[group]
    for c in range(K):
        rows = order[(fold[order] < 0) & (codes[order] == c)]
        for at in np.argsort(held[:, c], kind="stable") if len(rows) else ():  # fill up to equal shares
            share = max(0, int(np.ceil((len(rows) + held[:, c].sum()) / k - held[at, c])))
            fold[rows[:share]], rows = at, rows[share:]
            held[at, c] += min(share, len(rows) + share)
    left = order[fold[order] < 0]
    fold[left] = np.arange(len(left)) % k
    return fold


def k_folds(codes: Array, k: int, together: Array | None, most: int = JUDGED_ROWS) -> Iterator[Split]:
    """Yield k splits of at most `most` rows; rows with the same number in `together` are in the same fold."""
    judged = chosen_rows(len(codes), most)
    units = len(judged) if together is None else len(np.unique(together[judged]))
    number = stratified(codes[judged], min(k, max(units, 1)), None if together is None else together[judged])
    fold = np.full(len(codes), -1)
    fold[judged] = number
    if together is not None and len(judged) < len(codes):
        of_unit = np.full(together.max() + 1, -1)
        of_unit[together[judged]] = number
        fold = of_unit[together]
    for one in range(number.max() + 1):
        yield Split(judged[number == one], np.flatnonzero(fold == one), judged[number != one])


def folds_in_time(time: ArrayLike, n: int, k: int = FOLDS, most: int = JUDGED_ROWS) -> Iterator[Split]:
    """Yield k splits: the rows, ordered by time, in k + 1 parts, of which each but the first is judged by those before.

    Rows of the same time are in the same part.

    >>> [(split.train.tolist(), split.test.tolist()) for split in folds_in_time([3, 1, 2, 4], 4, 2)]
    [([1, 2], [0]), ([0, 1, 2], [3])]
    """
    times = np.asarray(time)
    if times.shape != (n,):
        raise InputError(f"time has shape {times.shape}, but there are {n} rows. Give one for each row.")
    values, when, count = np.unique(times, return_inverse=True, return_counts=True)
    part = ((np.cumsum(count) - 1) * (k + 1) // n)[when]  # of the last row of that time
    parts = np.unique(part)
    if len(parts) < 2:
        raise InputError(f"time has {len(values)} different values, too few for a split into earlier and later rows.")
    judged = np.zeros(n, dtype=bool)
    judged[chosen_rows(n, most)] = True
    for one in parts[1:]:
        out = np.flatnonzero(part >= one)
        yield Split(np.flatnonzero((part == one) & judged), out, np.flatnonzero((part < one) & judged))


def units(table: Table, codes: Array, groups: ArrayLike | None) -> Array | None:
    """Return a number for each row, equal for rows that stay together, shape (n,); None if all may be separated."""
    n = len(codes)
    if groups is not None:
        named = np.asarray(groups)
        if named.shape != (n,):
            raise InputError(f"groups has shape {named.shape}, but there are {n} rows. Give one for each row.")
        groups = np.unique(named, return_inverse=True)[1]
    copies = copied_rows(table, codes)
    if copies is None or groups is None:
        return copies if groups is None else groups
    from scipy.sparse.csgraph import connected_components  # lazy: only rows with both copies and groups need it

    rows = np.arange(n)
    pairs = sp.coo_array((np.ones(2 * n), (np.r_[rows, rows], np.r_[n + copies, 2 * n + groups])), (3 * n, 3 * n))
    return connected_components(pairs, directed=False)[1][:n]


def copied_rows(table: Table, codes: Array) -> Array | None:
    """Return a number for each row, equal for copies of a row, shape (n,); None if there are no copies.

    >>> once = np.arange(40.0).reshape(20, 2)
    >>> copied_rows(Table.of(np.r_[once, once[:2]]), np.arange(22) % 2)[[0, 1, 20, 21]].tolist()
    [0, 1, 0, 1]
    >>> copied_rows(Table.of(np.tile([[0.0], [1.0]], (20, 1))), np.repeat([0, 1], 20)) is None
    True
    """
    n = len(codes)
    looked = np.arange(n) if n <= HASHED_ROWS else chosen_rows(n, JUDGED_ROWS)
    some = table if len(looked) == n else table.take(looked)
    hashes = row_hashes(some, table.columns, ("",), np.zeros(len(looked), dtype=np.intp), None, Key())
    _, first, same, size = np.unique(hashes, return_index=True, return_inverse=True, return_counts=True)
    pairs = float((size * (size - 1) / 2).sum())
    if not pairs or pairs <= CHANCE * _pairs_by_chance(some, codes[looked]):
        return None
    found = np.arange(n)
    found[looked] = looked[first][same]
    return found


def _pairs_by_chance(table: Table, codes: Array) -> float:
    """Return the expected number of pairs of equal rows if columns were independent within each class."""
    if table.texts or table.sparse:
        return 0.0
    size = np.bincount(codes).astype(float)
    pairs = size * (size - 1)
    equal = np.ones(len(size))  # probability that two rows of a class agree in the columns so far
    for j in range(table.shape[1]):
        if table.kind(j) == "text":
            return 0.0
        values = np.asarray(table.column(j))
        if values.dtype.kind not in "biuf":
            values = values.astype(str)
        found, value = np.unique(values, return_inverse=True)
        counts = sp.csr_array((np.ones(len(codes)), (codes, value)), (len(size), len(found)))
        agreeing = np.asarray(counts.multiply(counts).sum(axis=1)).reshape(-1) - size
        equal *= np.divide(agreeing, pairs, out=np.zeros(len(size)), where=pairs > 0)
    return float((equal * pairs).sum() / 2)


# -- comparisons of losses ---------------------------------------------------------------------------------------------
FINALISTS = 2  # candidates that are judged by a larger sample
CLEARLY_WORSE = 5.0  # standard errors; a larger sample does not judge candidates that are worse by more

C = TypeVar("C")


def finalists_of(losses: Sequence[Array]) -> list[int]:
    """Return the positions of the candidates that a larger sample should judge, by losses (n,) of the same rows.

    >>> even, odd = np.tile([0.1, 0.3], 50), np.tile([0.3, 0.08], 50)
    >>> finalists_of([even, odd]), finalists_of([even, even - 0.01])
    ([0, 1], [1])
    """
    limit = sorted(each.mean() for each in losses)[:FINALISTS][-1]
    least = min(losses, key=lambda each: each.mean())
    return [
        at for at, each in enumerate(losses) if each.mean() <= limit and not clearly_worse(each, least, CLEARLY_WORSE)
    ]


def first_of_near_equals(candidates: Sequence[C], losses: Sequence[Array]) -> C:
    """Return the first candidate that is not worse than the best by a standard error, by losses (n,) of the same rows.

    >>> even, odd = np.tile([0.1, 0.3], 50), np.tile([0.3, 0.08], 50)
    >>> first_of_near_equals("ab", [even, odd]), first_of_near_equals("ab", [even, even - 0.1])
    ('a', 'b')
    """
    least = min(losses, key=lambda each: each.mean())
    for candidate, own in zip(candidates, losses):
        if not clearly_worse(own, least, 1.0):
            return candidate
    return candidates[int(np.argmin([own.mean() for own in losses]))]


def clearly_worse(losses: Array, least: Array, errors: float) -> bool:
    """Whether losses are above the least by more than `errors` standard errors of the difference."""
    with np.errstate(invalid="ignore"):
        above = np.where(losses == least, 0.0, losses - least)  # both may be infinite
    if not np.isfinite(above).all():
        return True
    return bool(above.mean() > errors * above.std() / np.sqrt(len(above)))
