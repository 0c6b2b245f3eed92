"""Choice between candidates by nested losses: the log loss of labels with a scale for each feature.

Kinds of features, such as words, pairs of words and runs of characters, are compared by nested losses, since features
that repeat each other gain more than others from a scale for each. So are pseudo-counts, and how they are spread: with
such scales the best ones are not those of a common scale. Folds are subtracted from the sums: scales of many features
that were fitted to leave-one-out scores of the full sums contain the labels of the judged rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import ceil
from typing import Any

import numpy as np

from deciban.errors import DecibanError
from deciban.evidence.scores import log_posterior, log_probability
from deciban.families.protocol import Family, Rows, Rule
from deciban.model.calibration import Calibration, shares
from deciban.model.candidates import Place, downhill, first_of_near_equals
from deciban.model.cross_fit import folds_by_subtraction
from deciban.model.folds import FOLDS, stratified
from deciban.model.model import Lesson, Model, Reader, collect
from deciban.model.predictor import Predictor, block_lengths
from deciban.read.batches import Batch
from deciban.read.reservoir import chosen_rows
from deciban.read.tables import Table
from deciban.statistics import Array, Members

KIND_ROWS = 8_000  # rows by which kinds of features are compared: with fewer, pairs of words show less than they gain
NEIGHBOUR_ROWS = 4_000  # rows by which pseudo-counts are compared
ENOUGH_ROWS = 1_000  # with fewer, pseudo-counts stay those of the least loss under a common scale
LEAST_GAIN = 0.002  # nats a row by which other features must be better than the family's first, such as words


def best_by_nested_losses(kinds: Sequence[Sequence[Place]], X: Rows, members: Members, rule: Rule) -> Any:
    """Return the best candidate, given the best ones of each kind of features under a common scale.

    The candidates of each kind are compared, then the kinds, and then the neighbours of the best one in its line. A
    candidate that was best under a common scale is left only for one that is better by one paired standard error.
    """
    judge = NestedJudge(X, members, rule)
    if len(members) < ENOUGH_ROWS:
        return judge.best_kind([places[0] for places in kinds]).candidate
    best = judge.best_kind([judge.first_of_near_equals(places) for places in kinds])
    met = {best.at: best}

    def loss(at: int) -> float:
        met[at] = best._replace(at=at)
        return judge.loss(met[at])

    if len(best.line) > 1 and np.isfinite(judge.loss(best)):
        downhill(range(len(best.line)), loss, best.at)
    return judge.first_of_near_equals([met[at] for at in sorted(met, key=lambda at: abs(at - best.at))]).candidate


@dataclass(eq=False)
class NestedJudge:
    """Compares candidates by nested losses; mutable: it keeps those that were computed."""

    X: Rows
    members: Members
    rule: Rule
    found: list[tuple[Place, int, Array | None]] = field(default_factory=list)  # with the number of rows

    def losses(self, place: Place, most: int = NEIGHBOUR_ROWS) -> Array | None:
        """Return the losses by at most so many rows; None where folds have too few rows."""
        for other, rows, losses in self.found:
            if other.line is place.line and other.at == place.at and rows == most:
                return losses
        losses = nested_losses(place.candidate, self.X, self.members, self.rule, most)
        self.found.append((place, most, losses))
        return losses

    def loss(self, place: Place) -> float:
        """Return the mean loss; infinite where folds have too few rows."""
        losses = self.losses(place)
        return np.inf if losses is None else float(losses.mean())

    def first_of_near_equals(self, places: Sequence[Place]) -> Place:
        """Return the first place that is not worse than the best by a standard error."""
        if len(places) == 1:
            return places[0]
        losses = [self.losses(place) for place in places]
        known = [each for each in losses if each is not None]
        return places[0] if len(known) < len(places) else first_of_near_equals(places, known)

    def best_kind(self, places: Sequence[Place]) -> Place:
        """Return the place whose features predict labels best; the first, if others gain little."""
        if len(places) == 1:
            return places[0]
        losses = [self.losses(place, KIND_ROWS) for place in places]
        known = [each for each in losses if each is not None]
        if len(known) < len(places):
            return places[0]
        return first_of_near_equals(places, [known[0], *(each + LEAST_GAIN for each in known[1:])])


def nested_losses(family: Family[Any], X: Rows, members: Members, rule: Rule, most: int) -> Array | None:
    """Return the log losses of rows in folds, each calibrated on the other rows; None where a fold cannot be fitted.

    At most `most` of the rows are fitted; as many of the five folds are judged as make up a fifth of `most` rows.
    """
    some = chosen_rows(len(members), most)
    rows, members = X[some], members.take(some)
    columns, codes = ("text",), np.asarray(members.codes)
    stats = collect(family, rows, members, columns)
    model = Model(family, stats, Reader(columns), rule, family, ())
    lesson = Lesson(Batch(Table.of(np.zeros((len(codes), 1))), None), rows, members)
    lengths, log_prior = block_lengths(family, rows), log_probability(shares(codes, members.K))
    number = min(FOLDS, ceil(most / len(codes)))
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
