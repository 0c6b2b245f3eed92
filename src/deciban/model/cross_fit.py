"""Cross-fitting of calibrators: which one a model uses.

For each of k folds, its rows are subtracted from the sums; leave-one-out scores of the other rows are computed within
those sums, the calibrator is fitted to them, and the fold is scored with those sums: k leave-one-out passes, no refits.
Leave-one-out scores of the full sums do not suffice for a calibrator of several scales: the scores of the other rows
contain the label of the judged row. A calibrator of a single scale cannot make use of it.

Candidates, by the strength of their penalty: one scale for all blocks (where the method was chosen automatically), the
calibrator of the method, and none (the scores as they are). Of the candidates within one paired standard error of the
least log loss the first is taken. The prior alone, that is, scores multiplied by almost 0, is taken where its loss is
the least of all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from deciban.errors import DecibanError
from deciban.evidence.scores import log_posterior, log_probability
from deciban.families.abilities import HasCandidates, ability
from deciban.families.product import Product, blocks_of
from deciban.families.protocol import Family
from deciban.families.word_scores import source_of
from deciban.model.calibration import PARTS, WORDS, Calibration, Form, Lengths, shares
from deciban.model.candidates import first_of_near_equals
from deciban.model.folds import FOLDS, stratified
from deciban.model.judge import left_out_blocks
from deciban.model.model import Lesson, ModelStats, collect, estimate
from deciban.model.predictor import Predictor, block_lengths
from deciban.read.reservoir import chosen_rows
from deciban.statistics import Array

SELECTION_ROWS = 4_000  # rows by which the calibrator is selected
ROWS_PER_BLOCK = 10  # with fewer, rows without an error do not show that many blocks are independent
WORDS_AS_BLOCKS = 10  # a block of words counts for so many
ENOUGH_FOR_ONE_FOLD = 3_000  # rows of which one fold tells whether words have scales of their own
ROWS_PER_SCALE = 50  # with more for each parameter, rows that were fitted are judged as others are


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


def folds_by_subtraction(predictor: Predictor, lesson: Lesson, fold: Array) -> Iterator[Fold]:
    """Yield the scores of each fold, and leave-one-out scores of the other rows, by sums without the fold."""
    model, rows, members = predictor.model, lesson.rows, lesson.members
    columns = model.reader.columns
    for k in np.unique(fold):
        train, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        left = without_fold(model.family, model.stats, collect(model.family, rows[test], members.take(test), columns))
        without = Predictor(replace(model, stats=left), estimate(model.family, left, model.rule, columns))
        left_out = left_out_blocks(without, rows[train], members.take(train))
        yield Fold(train, test, left_out, without.block_scores(rows[test]))


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
    blocks = left_out_blocks(predictor, lesson.rows, lesson.members)
    method = _without_words(method, blocks, simplify)
    lengths, codes = block_lengths(model.family, lesson.rows), lesson.members.codes
    some = chosen_rows(len(codes), SELECTION_ROWS)
    folds = None
    if _many_scales(method, len(blocks), len(some)):
        part = Lesson(lesson.batch, lesson.rows[some], lesson.members.take(some))
        folds = folds_by_subtraction(predictor, part, stratified(codes[some]))
        if method == "features" and len(some) >= ENOUGH_FOR_ONE_FOLD:
            folds = islice(folds, 1)
    return select_calibration(method, blocks, codes, lengths, model.classes, model.weight, folds, simplify)


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
) -> Calibration:
    """Fit the candidate of least cross-fitted log loss; one scale for all blocks is a candidate if `simplify`.

    `folds` are of the rows `chosen_rows(n, SELECTION_ROWS)`.
    """
    given, method = (classes, rows), _without_words(method, blocks, simplify)
    if method == "pav":  # has no candidates: it is asked for by name only
        return Calibration.fit(method, blocks, codes, lengths, *given)
    usual: Form = "fitted" if method != "features" else "scale" if simplify else "words"
    whole = Calibration.fit(method, blocks, codes, lengths, *given, form=usual)
    some = chosen_rows(len(codes), SELECTION_ROWS)
    own, counted = codes[some], [None if each is None else each[some] for each in lengths]
    if folds is None:
        parameters = len(classes) + 2 * len(blocks)
        few = method == "features" or len(own) < ROWS_PER_SCALE * parameters
        number = stratified(own, FOLDS if few else 1)
        folds = _folds_of_scores([each[some] for each in blocks], number)
    dependent = sum(1 if each is None else WORDS_AS_BLOCKS for each in lengths)
    enough = dependent == 1 or len(own) >= ROWS_PER_BLOCK * dependent
    forms: list[Form] = ["prior", usual, "none"] if enough else ["prior", usual]
    if method == "features":
        forms[1:2] = ["scale", *WORDS] if simplify else [*WORDS]
    if simplify and method == "blocks" and len(lengths) > 1:
        forms.insert(1, "scale")
    if simplify and method == "blocks" and len(blocks) > len(lengths):  # the model has experts
        at = forms.index("fitted")  # one scale, if there is one block
        forms[at + (len(lengths) == 1) : at + 1] = list(PARTS)
    losses = {form: np.full(len(own), np.nan) for form in forms}  # NaN for rows that are not judged
    log_prior = log_probability(shares(own, len(classes)))
    try:
        for fold in folds:
            train = own[fold.train], _at(counted, fold.train)
            # of a single fold, all rows are fitted and judged
            every: dict[Form, Calibration] = {usual: whole} if len(train[0]) == len(own) else {}
            every |= Calibration.fit_each(
                [form for form in forms if form not in every], method, fold.left_out, *train, *given
            )
            for form in forms:
                scores = every[form].apply(fold.scores, _at(counted, fold.test), classes)
                with np.errstate(invalid="ignore"):
                    log_p = log_posterior(scores, log_prior)
                losses[form][fold.test] = -log_p[np.arange(len(fold.test)), own[fold.test]]
    except DecibanError:  # too few rows of a class for folds
        return whole
    # a class with a single row is unknown without it, under every candidate
    judged = ~np.isnan(losses["prior"]) & (np.bincount(own)[own] > 1)
    if not judged.any():
        return whole
    losses = {form: each[judged] for form, each in losses.items()}
    some_evidence = [form for form in forms if form != "prior"]
    best: Form = first_of_near_equals(some_evidence, [losses[form] for form in some_evidence])
    if losses["prior"].mean() < losses[best].mean():
        best = "prior"
    return whole if best == usual else Calibration.fit(method, blocks, codes, lengths, *given, best)


def _at(lengths: Lengths, rows: Array) -> list[Array | None]:
    return [None if each is None else each[rows] for each in lengths]
