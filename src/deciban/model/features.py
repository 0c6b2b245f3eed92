"""Losses by which kinds of features, such as words and runs of characters, are compared.

Features that repeat each other gain more than others from a scale for each. So kinds are compared as the classifier
would use them, with the calibrator of the family, and by folds by subtraction: scales of many features that were fitted
to leave-one-out scores of the full sums contain the labels of the judged rows.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np

from deciban.errors import DecibanError
from deciban.evidence.scores import log_posterior, log_probability
from deciban.families.protocol import Family, Rows, Rule
from deciban.model.calibration import Calibration, shares
from deciban.model.cross_fit import folds_by_subtraction
from deciban.model.folds import FOLDS, stratified
from deciban.model.model import Lesson, Model, Reader, collect
from deciban.model.predictor import Predictor, block_lengths
from deciban.read.batches import Batch
from deciban.read.reservoir import chosen_rows
from deciban.read.tables import Table
from deciban.statistics import Array, Members

MOST_ROWS = 2_000  # rows by which kinds of features are compared
ENOUGH_ROWS = 1_000  # with so many, two of the five folds are judged


def nested_losses(family: Family[Any], X: Rows, members: Members, rule: Rule) -> Array | None:
    """Return the log losses of rows in folds, each calibrated on the other rows; None where a fold cannot be fitted."""
    some = chosen_rows(len(members), MOST_ROWS)
    rows, members = X[some], members.take(some)
    columns, codes = ("text",), np.asarray(members.codes)
    stats = collect(family, rows, members, columns)
    model = Model(family, stats, Reader(columns), rule, family, ())
    lesson = Lesson(Batch(Table.of(np.zeros((len(codes), 1))), None), rows, members)
    lengths, log_prior = block_lengths(family, rows), log_probability(shares(codes, members.K))
    number = FOLDS if len(codes) < ENOUGH_ROWS else 2
    losses = []
    try:
        for fold in islice(folds_by_subtraction(Predictor(model), lesson, stratified(codes)), number):
            train, test = ([None if each is None else each[at] for each in lengths] for at in (fold.train, fold.test))
            given = model.classes, model.weight
            made = Calibration.fit("features", fold.left_out, codes[fold.train], train, *given, form="words")
            log_p = log_posterior(made.apply(fold.scores, test, model.classes), log_prior)
            losses.append(-log_p[np.arange(len(fold.test)), codes[fold.test]])
    except DecibanError:  # too few rows of a class
        return None
    # a class with a single row is unknown without it, under every kind
    told = np.concatenate([np.flatnonzero(stratified(codes) == k) for k in range(number)])
    told = np.bincount(codes)[codes[told]] > 1
    return np.concatenate(losses)[told] if told.any() else None
