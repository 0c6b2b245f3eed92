"""Cross-fitting of calibrators: which one a model uses.

For each of k folds, its rows are subtracted from the sums; leave-one-out scores of the other rows are computed within
those sums, the calibrator is fitted to them, and the fold is scored with those sums: k leave-one-out passes, no refits.
Leave-one-out scores of the full sums do not suffice for a calibrator of several scales: the scores of the other rows
contain the label of the judged row. A calibrator of a single scale cannot make use of it.

Candidates, by the strength of their penalty: one scale for all blocks (where the method was chosen automatically), the
calibrator of the method, and none (the scores as they are). Of the candidates within one paired standard error of the
least log loss the first is taken. The prior alone, that is, scores multiplied by almost 0, is taken where its loss is
the least of all.

Where a model has experts, its candidates are combined instead: they are linear in the scores of blocks and experts, and
so is a weighted sum of them. Further candidates are experts that are models by themselves. The weights, ≥ 0 and of sum
1 together with that of the prior, are fitted on the cross-fitted scores. Weights that are fitted on the other folds
must be better than the prior alone by one paired standard error; otherwise the prior alone is taken. By z standard
errors, the share 1 − 1/z⁴ of the weights is taken.

In a family of independent features, a fold of a feature is a feature of its own: the sums of feature j without fold f
are those of a feature (f, j) that misses the values of fold f. All folds are then scored by one call. Columns that have
equal Gaussians, as they are or transformed, are scored together, too. Other parts may share work between folds by
themselves (`HasFoldScores`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from deciban.errors import DecibanError
from deciban.evidence.scores import log_posterior, log_probability
from deciban.families import limits
from deciban.families.abilities import HasCandidates, HasFoldScores, HasLeftOutFeatures, SeveralParts, ability
from deciban.families.gaussian import Gaussian
from deciban.families.gaussian.sums import DiagonalStats
from deciban.families.product import BlockRows, Product, ProductStats, arrangements, blocks_of, expert_rule, experts_of
from deciban.families.protocol import Family, Rule
from deciban.families.transformed import MappedFamily
from deciban.families.word_scores import FoldedSource, HasFoldedWords, source_of
from deciban.model.calibration import PARTS, ROWS_OF_SCALES, WORDS, Calibration, Form, Lengths, shares
from deciban.model.judge import FOLDS, copied_rows, first_of_near_equals, left_out_blocks, stratified
from deciban.model.ledger import Key, row_hashes
from deciban.model.model import Lesson, Model, ModelStats, collect, estimate
from deciban.model.predictor import Predictor, block_lengths
from deciban.read.batches import Batch, chosen_rows
from deciban.read.codes import MISSING, Codes
from deciban.statistics import Array, Axis, Members

SELECTION_ROWS = 4_000  # rows by which the calibrator is selected
ROWS_PER_BLOCK = 10  # rows for each block, from which scores without calibration are a candidate
ROWS_FOR_ONE_BLOCK = 50  # the same, for a single block of a default fit
WORDS_AS_BLOCKS = 10  # a block of words counts as this many blocks
ENOUGH_FOR_ONE_FOLD = 3_000  # rows with which one fold decides whether words have scales of their own
ROWS_OF_FACTORS = 50  # fewer do not show that words have scales of their own
FEW_ROWS = 64  # with fewer, an array is calibrated on its distinct rows
SURPRISE = 0.02  # expected number of wrong rows beside those that were judged
FINITE = 1e9  # nats; stands for infinite losses of labels that a model excludes
ROWS_PER_SCALE = 50  # with more for each parameter, the calibrator is judged on the rows that it was fitted to


class Fold(NamedTuple):
    """Scores of the rows of a fold and of the others, by sums without the fold."""

    train: Array  # (m,) positions of the other rows
    test: Array  # (t,) positions of the rows of the fold
    left_out: list[Array]  # (m, K) leave-one-out scores of each block, of the other rows
    scores: list[Array]  # (t, K) scores of each block, of the rows of the fold


def without_fold(family: Family[Any], stats: ModelStats, fold: ModelStats) -> ModelStats:
    """Return the sums without those of a fold; words that no other document has leave the vocabulary."""
    left = stats - fold
    if not isinstance(family, Product):
        return left if ability(family, HasCandidates) is None else replace(left, family=left.family.pruned())
    texts = {key for key, (part,) in zip(family.keys, blocks_of(family)) if ability(part, HasCandidates) is not None}
    blocks = {key: sums.pruned() if key in texts else sums for key, sums in left.family.blocks.items()}
    return replace(left, family=replace(left.family, blocks=blocks))


def folds_by_subtraction(
    predictor: Predictor, lesson: Lesson, fold: Array, number: int | None = None
) -> Iterator[Fold]:
    """Yield the scores of each fold, and leave-one-out scores of the other rows, by sums without the fold.

    `fold` (n,) holds the fold of each row, from 0; `number` is how many of them are wanted, by default all.
    """
    model, members = predictor.model, lesson.members
    number = int(fold.max()) + 1 if number is None else min(number, int(fold.max()) + 1)
    together = PartsTogether.of(model, lesson.rows)
    for k, found in enumerate(together.by_fold(fold, members, number)):
        train, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        inside: list[Array] = []
        outside: list[Array] = []
        if together.rest is not None:
            inside, outside = _fold_of_rest(*together.rest, members, train, test)
        left_out, scores, places = iter(inside), iter(outside), range(len(found) + len(inside))
        yield Fold(
            train,
            test,
            [found[at][train] if at in found else next(left_out) for at in places],
            [found[at][test] if at in found else next(scores) for at in places],
        )


def _fold_of_rest(
    model: Model, rows: Any, members: Members, train: Array, test: Array
) -> tuple[list[Array], list[Array]]:
    """Return leave-one-out scores of the rows `train` and scores of `test`, of each part by sums without `test`."""
    columns = model.reader.columns
    left = without_fold(model.family, model.stats, collect(model.family, rows[test], members.take(test), columns))
    without = Predictor(replace(model, stats=left), estimate(model.family, left, model.rule, columns))
    return left_out_blocks(without, rows[train], members.take(train)), without.block_scores(rows[test])


def folds_of_words(source: FoldedSource, family: Family[Any], fold: Array) -> Iterator[Fold]:
    """Do what `folds_by_subtraction` does for a family of words, by a source of scores in folds."""
    for k in range(fold.max() + 1):  # rows of other folds, if some are not judged, are fitted
        train, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        left_out, scores = source(family, k, train, test)
        yield Fold(train, test, [left_out], [scores])


def _folds(predictor: Predictor, lesson: Lesson, fold: Array, number: int | None = None) -> Iterator[Fold]:
    """Yield the scores of each fold, and leave-one-out scores of the other rows, by sums without the fold.

    `number` is how many folds are wanted, by default all.
    """
    model = predictor.model
    words = ability(model.family, HasFoldedWords)
    given = model.stats.family, lesson.rows, lesson.members, model.rule
    source = None if words is None else words.folded_words(*given)
    if source is None:
        return folds_by_subtraction(predictor, lesson, fold, number)
    return islice(folds_of_words(source, model.family, fold), number)


def _folds_of_scores(blocks: Sequence[Array], fold: Array) -> Iterator[Fold]:
    """Yield the scores of each fold as they are; of a single fold, all rows are fitted and judged."""
    for k in range(fold.max() + 1):
        test = np.flatnonzero(fold == k)
        train = np.flatnonzero(fold != k) if fold.max() else test
        yield Fold(train, test, [each[train] for each in blocks], [each[test] for each in blocks])


def _many_scales(method: str, B: int, n: int) -> bool:
    """Whether a calibrator of B blocks has so many scales that leave-one-out scores of the full sums do not suffice."""
    return method == "features" or (method == "blocks" and B > 1 and n < ROWS_PER_SCALE * B)


def fit_calibration(predictor: Predictor, lesson: Lesson, method: str, simplify: bool = False) -> Calibration:
    """Fit the calibrator of a model on leave-one-out scores of rows that it has learnt, as `select_calibration`."""
    model = predictor.model
    if simplify and method in ("offsets", "length"):
        lesson = distinct(lesson)
    few = chosen_rows(len(lesson.members), ROWS_OF_SCALES)
    scored = few if method == "features" and len(few) < len(lesson.members) else None
    blocks = left_out_blocks(predictor, lesson.rows, lesson.members, scored)
    method = _without_words(method, blocks, simplify)
    lengths, codes = block_lengths(model.family, lesson.rows), lesson.members.codes
    some = chosen_rows(len(codes), SELECTION_ROWS)
    folds = None
    if _many_scales(method, len(blocks), len(some)):
        part = Lesson(lesson.batch, lesson.rows[some], lesson.members.take(some))
        number = 1 if method == "features" and len(some) >= ENOUGH_FOR_ONE_FOLD else None
        folds = _folds(predictor, part, stratified(codes[some]), number)
    given = method, blocks, codes, lengths, model.classes, model.weight
    return select_calibration(*given, folds, simplify, arrangements(model.family))


def distinct(lesson: Lesson) -> Lesson:
    """Return each of few rows once, with the weight of its copies, in an order that does not depend on the given one.

    Weighted and repeated rows are then calibrated alike. Many rows are returned as they are.
    """
    if len(lesson.members) >= FEW_ROWS:
        return lesson
    table, codes, weight = lesson.batch.table, lesson.members.codes, lesson.members.row_weights()
    n = len(codes)
    hashes = row_hashes(table, table.columns, ("",), np.zeros(n, dtype=np.intp), None, Key())
    place = np.unique(hashes, return_inverse=True)[1].reshape(-1)
    apart = np.arange(n) if copied_rows(table, codes) is None else np.zeros(n, dtype=np.intp)
    _, first, same = np.unique(np.c_[place, codes, apart], axis=0, return_index=True, return_inverse=True)
    members = Members.hard(codes[first], lesson.members.classes, np.bincount(same.reshape(-1), weight))
    return Lesson(Batch(table.take(first), None, members.weight), lesson.rows[first], members)


def _without_words(method: str, blocks: Sequence[Array], automatic: bool) -> str:
    """Return the method; one without scales of words if it was chosen automatically and no block has words."""
    if not (automatic and method == "features") or any(source_of(each) is not None for each in blocks):
        return method
    return "length" if len(blocks) == 1 else "blocks"


def select_calibration(
    method: str,
    blocks: Sequence[Array],
    codes: Array,
    lengths: Lengths,
    classes: Sequence[Any],
    rows: float,
    folds: Iterable[Fold] | None = None,
    simplify: bool = False,
    alone: Sequence[Sequence[int]] = (),
) -> Calibration:
    """Fit the candidate of least cross-fitted log loss; one scale for all blocks is a candidate if `simplify`.

    `folds` are of the rows `chosen_rows(n, SELECTION_ROWS)`. Where the model has experts and was calibrated
    automatically, the result is a weighted sum of the candidates, among them the sets `alone` of parts by themselves.
    """
    given, method = (classes, rows), _without_words(method, blocks, simplify)
    if method == "pav":  # without candidates: it is fitted only if it is named
        return Calibration.fit(method, blocks, codes, lengths, *given)
    several = simplify and method == "blocks" and len(blocks) > len(lengths)  # the model has experts
    combine = several and all(each is None for each in lengths)
    candidates = Candidates(method, _forms(method, lengths, len(codes), simplify, several), alone if combine else ())
    fallback = candidates.usual(simplify)
    some = chosen_rows(len(codes), SELECTION_ROWS)
    own, counted = codes[some], [None if each is None else each[some] for each in lengths]
    if folds is None:
        parameters = len(classes) + 2 * len(blocks)
        few = method == "features" or len(own) < ROWS_PER_SCALE * parameters
        folds = _folds_of_scores([each[some] for each in blocks], stratified(own, FOLDS if few else 1))
    try:
        scores, fold_of, near = _cross_fitted(candidates, folds, own, counted, *given)
        # without its only row, a class has probability 0 under every candidate
        judged = (fold_of >= 0) & (np.bincount(own)[own] > 1)
    except DecibanError:  # too few rows of a class for folds
        judged = np.zeros(len(own), dtype=bool)
    if not judged.any():
        return Calibration.fit(method, blocks, codes, lengths, *given, fallback)
    scores = {name: each[judged] for name, each in scores.items()}
    prior, own = shares(own, len(classes)), own[judged]
    if combine:
        weights = _combination(scores, own, fold_of[judged], prior)
        each = candidates.fit(blocks, codes, lengths, *given)
        return Calibration.combined(list(each.values()), weights, len(blocks) - len(lengths))
    losses = {name: _losses(each, own, prior) for name, each in scores.items()}
    if any(each is not None for each in lengths):
        losses = {name: loss + _surprise(scores[name], own, prior) for name, loss in losses.items()}
    some_evidence = [form for form in candidates.forms if form != "prior"]
    best: Form = first_of_near_equals(some_evidence, [losses[form] for form in some_evidence])
    if losses["prior"].mean() < losses[best].mean():
        best = "prior"
    return Calibration.fit(method, blocks, codes, lengths, *given, best, near.get(best))


class Candidates(NamedTuple):
    """Calibrations among which one is chosen, or which are combined."""

    method: str
    forms: list[Form]
    alone: Sequence[Sequence[int]]  # sets of blocks and parts of experts that are scaled by themselves

    def usual(self, simplify: bool) -> Form:
        """Return the form that is taken where the candidates cannot be judged."""
        return "fitted" if self.method != "features" else "scale" if simplify else "words"

    def fit(
        self, scores: Sequence[Array], codes: Array, lengths: Lengths, classes: Sequence[Any], rows: float
    ) -> dict[Any, Calibration]:
        """Fit every candidate."""
        return Calibration.fit_each(self.forms, self.method, scores, codes, lengths, classes, rows, self.alone)


def _forms(method: str, lengths: Lengths, n: int, simplify: bool, several: bool) -> list[Form]:
    """Return the forms of calibration that are compared, by the strength of their penalty."""
    dependent = sum(1 if each is None else WORDS_AS_BLOCKS for each in lengths)
    # with few rows, the structure of a single block was chosen automatically by the rows that would judge it
    least = ROWS_PER_BLOCK * dependent if dependent > 1 else ROWS_FOR_ONE_BLOCK if simplify else 0
    enough = min(n, SELECTION_ROWS) >= least
    if method == "features":
        few = simplify and n < ROWS_OF_FACTORS
        fitted: list[Form] = ["scale"] if few else ["scale", *WORDS] if simplify else [*WORDS]
    elif several:
        fitted = ["scale" if len(lengths) > 1 else "fitted", *PARTS]
    else:
        fitted = ["scale", "fitted"] if simplify and method == "blocks" and len(lengths) > 1 else ["fitted"]
    return ["prior", *fitted, "none"] if enough else ["prior", *fitted]


def _cross_fitted(
    candidates: Candidates,
    folds: Iterable[Fold],
    codes: Array,
    lengths: Lengths,
    classes: Sequence[Any],
    rows: float,
) -> tuple[dict[Any, Array], Array, dict[Any, Calibration]]:
    """Return the scores (n, K) of each candidate, fitted on other folds, and the fold of each row; −1 without one.

    Also returns the candidates of the last fold.
    """
    fold_of = np.full(len(codes), -1)
    scores: dict[Any, Array] = {}
    every: dict[Any, Calibration] = {}
    for number, fold in enumerate(folds):
        every = candidates.fit(fold.left_out, codes[fold.train], _at(lengths, fold.train), classes, rows)
        fold_of[fold.test] = number
        for name, of_fold in Calibration.apply_each(every, fold.scores, _at(lengths, fold.test), classes).items():
            scores.setdefault(name, np.zeros((len(codes), len(classes))))[fold.test] = of_fold
    return scores, fold_of, every


def _combination(scores: Mapping[Any, Array], codes: Array, fold_of: Array, prior: Array) -> Array:
    """Return the weights of candidates; the prior alone unless weights from other folds are clearly better than it."""
    from deciban.evaluate.scale_fit import fit_shares

    each = list(scores.values())
    judged = np.zeros_like(each[0])
    for k in np.unique(fold_of):
        test = fold_of == k
        train = ~test if not test.all() else test  # of a single fold, all rows are fitted and judged
        weights = fit_shares([one[train] for one in each], codes[train], prior, SURPRISE)
        judged[test] = sum(w * one[test] for w, one in zip(weights, each) if w > 0)  # 0 · −inf is 0
    share = _certain_share(_losses(scores["prior"], codes, prior), _losses(judged, codes, prior))
    if share == 0.0:
        return np.array([float(name == "prior") for name in scores])
    return share * fit_shares(each, codes, prior, SURPRISE)


def _certain_share(without: Array, losses: Array) -> float:
    """Return the share of weights that is kept, by the losses (n,) of the prior alone and of weights from other folds.

    With a mean gain of z standard errors it is 1 − 1/z⁴, and 0 below z = 1: weights of an uncertain gain are reduced,
    and those of a clear gain hardly change.

    >>> one = np.ones(100)
    >>> [round(_certain_share(one, one - np.tile(gains, 50)), 4) for gains in ([0.5, 0.3], [0.9, -0.6], [0.5, -0.6])]
    [1.0, 0.9375, 0.0]
    """
    with np.errstate(invalid="ignore"):
        gains = np.where(without == losses, 0.0, without - losses)  # both may be infinite
    if not np.isfinite(gains).all():  # labels that the model excludes
        return 1.0
    mean, variance = gains.mean(), gains.var() / len(gains)
    return float(max(0.0, 1.0 - (variance / mean**2) ** 2)) if mean > 0 else 0.0


def _losses(scores: Array, codes: Array, prior: Array) -> Array:
    """Return −log P(label) of each row, shape (n,)."""
    with np.errstate(invalid="ignore"):
        log_p = log_posterior(scores, log_probability(prior))
    return np.asarray(-log_p[np.arange(len(codes)), codes])


def _surprise(scores: Array, codes: Array, prior: Array) -> Array:
    """Return what each row would cost with another label, times the share of such rows that is to be expected, (n,).

    For counts of events, whose evidence grows with their number: where all judged rows are right, scores without
    calibration have the least loss, even with evidence of thousands of nats. A single wrong row among new ones then
    costs more than all others together.
    """
    with np.errstate(invalid="ignore"):
        log_p = log_posterior(scores, log_probability(prior))
    others = np.where(np.arange(len(prior)) == codes[:, None], 0.0, prior)
    total = others.sum(axis=1, keepdims=True)
    shares_of_others = np.divide(others, total, out=np.zeros_like(others), where=total > 0)
    cost = np.einsum("nk,nk->n", shares_of_others, np.minimum(-log_p, FINITE))
    return np.asarray(cost * SURPRISE / len(codes))


def _at(lengths: Lengths, rows: Array) -> list[Array | None]:
    return [None if each is None else each[rows] for each in lengths]


# -- parts of a model whose folds are scored together ------------------------------------------------------------------
CELLS = 2**22  # scores of rows, classes, features and folds that are computed together
SUMS = ("weight", "first", "second")


class Part(NamedTuple):
    """A block or an expert, or several blocks of one feature each, whose features are those of one family."""

    places: list[int]  # of its scores among those of the model
    family: Any
    stats: Any
    rows: Any
    rule: Rule

    def scores_of_features(self, fold: Array, members: Members, folds: Sequence[int]) -> Array:
        """Return the scores of each row by the sums without each of some folds, and without the row.

        They have the shape (F, places, n, K).
        """
        D, F = self.rows.shape[1], len(folds)
        copies = np.tile(np.arange(D), F)
        inside = np.repeat(fold[:, None] == np.asarray(folds), D, axis=1)
        family, rows = self.family.select(copies), _picked(self.rows, copies)
        own, others = _without(rows, ~inside), _without(rows, inside)
        left = self.stats.select("feature", copies) - family.collect(own, members)
        scores = family.left_out_features(left, others, members, self.rule)
        scores += family.estimate(left, self.rule).parts(own)  # the score of a missing value is 0
        n, K = scores.shape[:2]
        by_fold = np.ascontiguousarray(scores.reshape(n, K, F, D).transpose(2, 3, 0, 1))
        return by_fold if len(self.places) == D else by_fold.sum(axis=1, keepdims=True)


class PartsTogether(NamedTuple):
    """The parts of a model whose folds are scored together, and the rest of the model."""

    features: list[Part]  # of independent features
    others: list[Part]
    rest: tuple[Model, Any] | None  # with the encoded rows; None if no block is left

    @classmethod
    def of(cls, model: Model, rows: Any) -> PartsTogether:
        """Find the parts whose folds are scored together."""
        product, sums = model.family, model.stats.family
        if not isinstance(product, Product):
            return cls([], [], (model, rows))
        features, others, place = list[Part](), list[Part](), 0
        left: list[int] = []  # positions of the blocks, and then of the experts, that are scored fold by fold
        blocks, experts = blocks_of(product, sums, rows), experts_of(product, sums, rows)
        for at, (family, stats, part) in enumerate([*blocks, *experts]):
            rule = model.rule if at < len(blocks) else expert_rule(model.rule)
            several = ability(family, SeveralParts)
            places = list(range(place, place + (1 if several is None else len(several.part_columns))))
            one = Part(places, family, stats, part, rule)
            feature, place = _feature(one), place + len(places)
            if feature is not None:
                features.append(feature)
            elif ability(family, HasFoldScores) is not None:
                others.append(one)
            else:
                left.append(at)
        if left and left[0] >= len(blocks):  # a product has at least one block
            first = next(each for each in features if each.places == [0])
            features.remove(first)
            left.insert(0, 0)
        rest = _restricted(model, rows, left) if left else None
        return cls(_grouped(features), others, rest)

    def by_fold(self, fold: Array, members: Members, number: int) -> Iterator[dict[int, Array]]:
        """Yield, for each of the first folds, scores of all rows (n, K) by their places in the model.

        They are those by the sums without the fold, for rows of other folds also without the row.
        """
        every = [each.family.fold_scores(each.stats, each.rows, members, fold, each.rule) for each in self.others]
        cells = members.K * len(fold) * max(1, sum(each.rows.shape[1] for each in self.features))
        step = max(1, CELLS // cells)
        for start in range(0, number, step):
            folds = range(start, min(start + step, number))
            scores = [each.scores_of_features(fold, members, folds) for each in self.features]
            for f in range(len(folds)):
                found: dict[int, Array] = {}
                for part, of_features in zip(self.features, scores):
                    found |= zip(part.places, of_features[f])
                for part, by_fold in zip(self.others, every):
                    found |= zip(part.places, next(by_fold))
                yield found


def _feature(part: Part) -> Part | None:
    """Return a part of independent features, mapped if it is; None if they are not, or gaps are not allowed."""
    places, family, stats, rows, rule = part
    if not isinstance(rows, np.ndarray | Codes) or len(places) != 1:
        return None
    if isinstance(family, MappedFamily):
        if rows.shape[1] != 1:  # a row that cannot be mapped in one column may be left out in all
            return None
        values: Any = rows
        inner = family.inside(stats.map), stats.inner, family.mapped(values, stats.map)
        return _feature(Part(places, *inner, rule))
    apart = ability(family, HasLeftOutFeatures)
    if apart is None or not apart.separate(stats) or "gaps" not in family.accepts:
        return None
    if rows.shape[1] > 1 and any(isinstance(each, np.ndarray) and each.size == 1 for each in vars(family).values()):
        return None  # a parameter that all features share cannot be selected for copies of them
    if isinstance(family, Gaussian):
        rows = limits.masked(np.asarray(rows, dtype=float), family.limit)
        family = replace(family, limit=None)
    return Part(places, family, stats, rows, rule)


def _grouped(features: Sequence[Part]) -> list[Part]:
    """Join the columns that have the Gaussian and the rule of the first of them."""
    plain = [each for each in features if type(each.family) is Gaussian and each.rows.shape[1] == 1]
    gaussians = [each for each in plain if each.family.mean is None and each.family.scale is None]
    alike = [each for each in gaussians if each.family == gaussians[0].family and each.rule == gaussians[0].rule]
    if len(alike) < 2:
        return list(features)
    each = [one.stats for one in alike]
    origin, reach = (np.concatenate([getattr(one, name) for one in each]) for name in ("origin", "reach"))
    weight, first, second = (np.concatenate([getattr(one, name) for one in each], axis=1) for name in SUMS)
    labels = {**each[0].labels, "feature": Axis.of(len(each))}
    stats = DiagonalStats(labels, weight, first, second, origin, reach)
    places = [place for one in alike for place in one.places]
    family = replace(alike[0].family, origin=origin, reach=reach)
    joined = Part(places, family, stats, np.concatenate([one.rows for one in alike], axis=1), alike[0].rule)
    return [joined, *(one for one in features if one.places[0] not in places)]


def _restricted(model: Model, rows: BlockRows, kept: Sequence[int]) -> tuple[Model, BlockRows]:
    """Return the model of some blocks and experts, by their positions, and their rows."""
    product: Any = model.family
    sums: ProductStats = model.stats.family
    B = len(product.families)
    families, experts = list(product.families.items()), list(product.experts.items())
    blocks, beside = [at for at in kept if at < B], [at - B for at in kept if at >= B]
    family = replace(product, families=dict(families[at] for at in blocks), experts=dict(experts[at] for at in beside))
    held = {name: sums.experts[name] for name in family.experts} if sums.experts is not None else {}
    stats = replace(sums, blocks={key: sums.blocks[key] for key in family.keys}, experts=held or None)
    parts = BlockRows(tuple(rows.parts[at] for at in blocks), tuple(rows.experts[at] for at in beside))
    return replace(model, family=family, stats=replace(model.stats, family=stats)), parts


def _picked(rows: Any, features: Array) -> Any:
    """Return copies of features."""
    if isinstance(rows, Codes):
        names = None if rows.names is None else tuple(rows.names[j] for j in features)
        return Codes(rows.values[:, features].astype(np.intp), names)
    return rows[:, features]


def _without(rows: Any, gone: Array) -> Any:
    """Return rows in which some values are missing."""
    if isinstance(rows, Codes):
        return Codes(np.where(gone, MISSING, rows.values), rows.names)
    return np.where(gone, np.nan, rows)
