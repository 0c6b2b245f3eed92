"""Choice between candidates by nested losses: the log loss of labels with a scale for each feature.

Kinds of features, such as words, pairs of words and runs of characters, are compared by nested losses, since features
that repeat each other gain more than others from a scale for each. So are pseudo-counts, and how they are spread: with
such scales the best ones are not those of a common scale. Folds are subtracted from the sums: scales of many features
that were fitted to leave-one-out scores of the full sums contain the labels of the judged rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil
from typing import Any

import numpy as np

from deciban.errors import DecibanError
from deciban.evidence.scores import log_posterior, log_probability
from deciban.families.abilities import ability
from deciban.families.protocol import Family, Rows, Rule
from deciban.families.word_scores import FoldedSource, HasFoldedWords
from deciban.model.calibration import BY_WORD, Calibration, shares
from deciban.model.candidates import Place, downhill, first_of_near_equals
from deciban.model.cross_fit import Fold, folds_by_subtraction, folds_of_words
from deciban.model.folds import FOLDS, stratified
from deciban.model.model import Lesson, Model, Reader, collect
from deciban.model.predictor import Predictor, block_lengths
from deciban.read.batches import Batch, chosen_rows
from deciban.read.tables import Table
from deciban.statistics import Array, Members

KIND_ROWS = 8_000  # rows by which kinds of features are compared: with fewer, pairs of words show less than they gain
NEIGHBOUR_ROWS = 4_000  # rows by which pseudo-counts are compared
ENOUGH_ROWS = 1_000  # with fewer, pseudo-counts stay those of the least loss under a common scale
LEAST_GAIN = 0.002  # nats a row by which other features must be better than the family's first, such as words


def best_by_nested_losses(
    kinds: Sequence[Sequence[Place]], X: Rows, members: Members, rule: Rule, by_word: bool = True
) -> Any:
    """Return the best candidate, given the best ones of each kind of features under a common scale.

    The candidates of each kind are compared, then the kinds, and then the neighbours of the best one in its line. A
    candidate that was best under a common scale is left only for one that is better by one paired standard error.
    Without `by_word`, a common scale will be used, so that kinds alone are compared.
    """
    judge = NestedJudge(X, members, rule)
    if len(members) < ENOUGH_ROWS or not by_word:
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
    """Compares candidates by nested losses; mutable: it keeps those that were computed, and the samples of rows."""

    X: Rows
    members: Members
    rule: Rule
    found: list[tuple[Place, int, Array | None]] = field(default_factory=list)  # with the number of rows
    samples: dict[int, Sample] = field(default_factory=dict)  # by the number of rows

    def losses(self, place: Place, most: int = NEIGHBOUR_ROWS) -> Array | None:
        """Return the losses by at most so many rows; None where folds have too few rows."""
        for other, rows, losses in self.found:
            if other.line is place.line and other.at == place.at and rows == most:
                return losses
        if most not in self.samples:
            self.samples[most] = Sample(self.X, self.members, self.rule, most)
        losses = nested_losses(place.candidate, self.samples[most])
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


class Sample:
    """Rows by which candidates are compared, in folds; mutable: candidates with the same sums share those of folds.

    At most `most` of the rows are fitted; as many of the five folds are judged as make up a fifth of `most` rows.
    """

    def __init__(self, X: Rows, members: Members, rule: Rule, most: int) -> None:
        self.X, self.every, self.rule, self.most = X, members, rule, most
        self.source: tuple[Family[Any], FoldedSource] | None = None  # of the last candidate
        self.last: Calibration | None = None  # of the last candidate, which is near that of the next one

    @cached_property
    def at(self) -> Array:
        """The positions of the rows."""
        return chosen_rows(len(self.every), self.most)

    @cached_property
    def rows(self) -> Rows:
        """The rows."""
        return self.X[self.at]

    @cached_property
    def members(self) -> Members:
        """Their classes."""
        return self.every.take(self.at)

    @cached_property
    def fold(self) -> Array:
        """The fold of each row, shape (n,); −1 for rows of folds that are not judged."""
        fold = stratified(self.members.codes)
        return np.where(fold < min(FOLDS, ceil(self.most / len(fold))), fold, -1)

    @cached_property
    def classes(self) -> Sequence[Any]:
        """Names of the classes."""
        return self.members.classes.names

    @cached_property
    def log_prior(self) -> Array:
        """Log shares of the classes, shape (K,)."""
        return log_probability(shares(self.members.codes, self.members.K))

    def folds(self, family: Family[Any]) -> Iterator[Fold]:
        """Yield the scores of each fold that is judged, and leave-one-out scores of the other rows."""
        words = ability(family, HasFoldedWords)
        if words is None:
            return self._by_subtraction(family)
        if self.source is None or not family.same_sums(self.source[0]):  # type: ignore[attr-defined]
            source = words.folded_words(None, self.rows, self.members, self.rule)
            if source is None:
                return self._by_subtraction(family)
            self.source = family, source
        return folds_of_words(self.source[1], family, self.fold)

    def _by_subtraction(self, family: Family[Any]) -> Iterator[Fold]:
        columns, n = ("text",), len(self.members.codes)
        stats = collect(family, self.rows, self.members, columns)
        model = Model(family, stats, Reader(columns), self.rule, family, ())
        lesson = Lesson(Batch(Table.of(np.zeros((n, 1))), None), self.rows, self.members)
        number = int(self.fold.max()) + 1
        return folds_by_subtraction(Predictor(model), lesson, stratified(self.members.codes), number)


def nested_losses(family: Family[Any], sample: Sample) -> Array | None:
    """Return the log losses of rows in folds, each calibrated on the other rows; None where a fold cannot be fitted."""
    codes, lengths, losses = sample.members.codes, block_lengths(family, sample.rows), []
    try:
        for fold in sample.folds(family):
            train, test = ([None if each is None else each[at] for each in lengths] for at in (fold.train, fold.test))
            given = sample.classes, float(len(codes))
            made = Calibration.fit(BY_WORD, fold.left_out, codes[fold.train], train, *given, "words", sample.last)
            sample.last = made
            log_p = log_posterior(made.apply(fold.scores, test, sample.classes), sample.log_prior)
            own = codes[fold.test]
            # a class with a single row is unknown without it, under every kind
            losses.append(-log_p[np.arange(len(own)), own][np.bincount(codes)[own] > 1])
    except DecibanError:  # too few rows of a class
        return None
    judged = np.concatenate(losses)
    return judged if len(judged) else None
