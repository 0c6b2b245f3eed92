"""Choice between candidate families by exact leave-one-out log loss of the label, after calibration.

A family offers lines of candidates, along which the loss falls and then rises; each line is searched downhill.
Candidates are judged on a sample of the first rows, as the classifier would use them: calibrated. A small sample
selects the best of each line, and a larger one the best of the best two lines, unless the small sample shows a clear
difference. Of candidates whose losses differ by no more than the standard error of the difference, the first is taken:
along a line that with the stronger prior, of lines that which the family names first.

Kinds of features, such as words, pairs of words and runs of characters, are compared by nested losses, since features
that repeat each other gain more than others from a scale for each. So are pseudo-counts, and how they are spread: with
such scales the best ones are not those of a common scale. Folds are subtracted from the sums: scales of many features
that were fitted to leave-one-out scores of the full sums contain the labels of the judged rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from deciban.errors import DecibanError
from deciban.evidence.scores import log_posterior, log_probability
from deciban.families.abilities import Counts, HasCandidates, LeftOutScores, ability
from deciban.families.product import Product, blocks_of
from deciban.families.protocol import Family, Rows, Rule
from deciban.families.word_scores import FoldedSource, HasFoldedWords, source_of
from deciban.kernels.choice import one_thread
from deciban.kernels.parallel import each, get_threads
from deciban.model.calibration import BY_WORD, Calibration, shares
from deciban.model.cross_fit import Fold, folds_by_subtraction, folds_of_words
from deciban.model.judge import FOLDS, finalists_of, first_of_near_equals, left_out_prior, stratified
from deciban.model.model import Lesson, Model, Reader, collect
from deciban.model.predictor import Predictor, block_lengths
from deciban.read.arrays import run_of_rows
from deciban.read.batches import Batch, chosen_rows
from deciban.read.tables import HEAD, Table
from deciban.statistics import Array, Members

C = TypeVar("C")
R = TypeVar("R")

SMALL_SAMPLE = 4_000  # rows on which all candidates are judged, and calibrated
LARGE_SAMPLE = 10_000  # rows on which the finalists are judged
LARGE_SUMS = 2**22  # sums of a line that have more numbers are dropped before another line is judged
ENOUGH_FOR_THREADS = 1_000  # rows of the small sample from which lines are judged in threads


def chosen(family: Family[Any], X: Rows, members: Members, rule: Rule, by_word: bool = True) -> Family[Any]:
    """Return the family with the choices that must be made before rows are summed; in a product, block by block.

    With `by_word`, the scores will be calibrated by a scale for each word.
    """
    if isinstance(family, Product):
        offers = [ability(block, HasCandidates) for block in family.families.values()]
        if all(offer is None for offer in offers):
            return family
        return family.with_families(chosen(block, part, members, rule, by_word) for block, part in blocks_of(family, X))
    own = ability(family, HasCandidates)
    if own is None or not own.open:
        return family
    first, head = (X, members) if len(members) <= HEAD else (run_of_rows(X, 0, HEAD), members.take(slice(0, HEAD)))
    lines = own.candidates(first, head)
    if len(lines) == len(lines[0]) == 1:
        return lines[0][0]  # type: ignore[return-value]
    if len(np.unique(head.codes)) < 2:
        return own.without_labels(first, head)  # type: ignore[return-value]
    rows = chosen_rows(len(head))
    if len(rows) < len(head):
        first, head = first[rows], head.take(rows)
    with one_thread(0):
        return best_of_lines(lines, Judge(first, head, rule), by_word)


def best_of_lines(lines: Sequence[Sequence[Any]], judge: Judge, by_word: bool = True) -> Any:
    """Return the best candidate of all lines.

    Kinds of features are compared by their nested losses; with `by_word`, so are candidates near the best.
    """
    kinds: list[list[Sequence[Any]]] = []
    for line in lines:
        same = next((kind for kind in kinds if line[0].same_features(kind[0][0])), None)
        if same is None:
            kinds.append([line])
        else:
            same.append(line)
    best = [best_of_kind(kind, judge) for kind in kinds]
    alone = sum(len(places) for places in best) == len(lines) == 1 == len(lines[0])
    if lines[0][0].calibration != "features" or alone or (len(kinds) == 1 and not by_word):
        return best[0][0].candidate
    return best_by_nested_losses(best, judge.X, judge.members, judge.rule, by_word)


class Place(NamedTuple):
    """A candidate in its line."""

    line: Sequence[Any]
    at: int

    @property
    def candidate(self) -> Any:
        """The candidate."""
        return self.line[self.at]


def best_of_kind(lines: Sequence[Sequence[Any]], judge: Judge) -> list[Place]:
    """Return the best candidate of lines with the same features, and those of other lines that read the same sums."""
    best = judge.best_of_each(lines)
    finalists = [best[at] for at in finalists_of([one.losses for one in best])]
    losses = judge.losses_of_each(finalists)
    at = first_of_near_equals(range(len(finalists)), losses)
    winner = taken = finalists[at]
    if winner.stronger is not None:
        # the small sample does not distinguish neighbours well
        pair = [judge.large_sample_losses(winner.stronger), losses[at]]
        taken = first_of_near_equals([winner.stronger, winner], pair)
    others = [one.place for one in best if one is not winner and one.candidate.same_sums(taken.candidate)]
    return [taken.place, *others]


def downhill(line: Sequence[C], loss: Callable[[C], float], start: int = 1) -> list[float]:
    """Return the losses computed from the candidate `start` downhill to the least one, and one step beyond it.

    >>> downhill([5, 3, 2, 1, 4], float), downhill([1, 3, 5], float)
    ([3.0, 2.0, 1.0, 4.0], [3.0, 5.0, 1.0])
    """
    at = min(start, len(line) - 1)
    met = {at: loss(line[at])}
    for step in (1, -1):
        now = at
        while 0 <= now + step < len(line):
            now += step
            met[now] = loss(line[now])
            if met[now] > met[now - step]:
                break
        if met[at] > min(met.values()):
            break  # the loss fell on this side
    return list(met.values())


# -- judging -----------------------------------------------------------------------------------------------------------
class Calibrator(Protocol):
    """Maps scores (n, K), of rows with the numbers `lengths` of events, to calibrated scores."""

    def apply(self, log_likelihood: Any, lengths: Any = None) -> Array:
        """Return calibrated scores."""


class Uncalibrated:
    """Leaves scores as they are, where there are too few rows to fit a calibrator."""

    def apply(self, log_likelihood: Any, lengths: Any = None) -> Array:
        """Return the scores."""
        return log_likelihood


@dataclass(frozen=True, eq=False)
class Judged:
    """A candidate and its losses on the small sample."""

    place: Place
    scores: Array  # (m, K) leave-one-out scores
    calibrator: Calibrator  # fitted to them
    losses: Array  # (m,)
    lengths: Array | None  # (n,) events of each row of the whole sample, where the candidate counts them
    stronger: Judged | None = None  # the candidate before it in its line, if it was judged

    @property
    def candidate(self) -> Any:
        """The candidate."""
        return self.place.candidate


@dataclass(eq=False)
class Judge:
    """Calibrated leave-one-out log losses of candidates on a sample of rows; mutable: it caches the sums of lines."""

    X: Rows
    members: Members
    rule: Rule
    lines: list[tuple[Any, LeftOutScores]] = field(default_factory=list)  # a candidate of each, and its scores
    last: Calibrator | None = None  # of the last line of the kind judged before, which is near those of the next kind

    def __post_init__(self) -> None:
        n, weight = len(self.members), self.members.row_weights()
        # the small sample is part of the large one
        self.small, self.large = (chosen_rows(n, most) for most in (SMALL_SAMPLE, LARGE_SAMPLE))
        self.weight, codes = weight, self.members.codes
        self.log_prior = left_out_prior(self.members.weights(), codes, weight)  # (n, K) without the row itself
        self.shares = shares(codes[self.small], self.members.K)
        # a class whose only row is left out has probability 0 under every candidate: such rows are not used
        self.usable = np.bincount(codes, minlength=self.members.K)[codes] > 1

    def best_of_each(self, lines: Sequence[Sequence[Any]]) -> list[Judged]:
        """Return the best candidate of each line, as `best` does."""
        start = self.last

        def best(group: Sequence[int]) -> Iterator[Judged]:
            near = start
            for at in group:
                found = self.best(lines[at], near)
                near = found.calibrator
                yield found

        judged = self._by_sums(best, [line[0] for line in lines])
        self.last = judged[-1].calibrator
        return judged

    def losses_of_each(self, judged: Sequence[Judged]) -> list[Array]:
        """Return the losses of each candidate, as `large_sample_losses` does."""

        def losses(group: Sequence[int]) -> Iterator[Array]:
            return (self.large_sample_losses(judged[at]) for at in group)

        return self._by_sums(losses, [one.candidate for one in judged])

    def _by_sums(self, act: Callable[[Sequence[int]], Iterator[R]], candidates: Sequence[Any]) -> list[R]:
        """Return the results of act(positions) for each group of candidates with the same sums, in threads."""
        groups: list[list[int]] = []
        for at, candidate in enumerate(candidates):
            same = next((group for group in groups if candidate.same_sums(candidates[group[0]])), None)
            if same is None:
                groups.append([at])
            else:
                same.append(at)
        # those whose sums are held come first; others may drop them
        groups.sort(key=lambda group: self._held(candidates[group[0]]) is None)
        firsts = [candidates[group[0]] for group in groups]
        several = len(groups) > 1 and len(self.small) >= ENOUGH_FOR_THREADS
        threads = None if several and all(self._scores(first).size <= LARGE_SUMS for first in firsts) else 1
        found: dict[int, R] = {}
        for group, results in zip(groups, each(lambda group: list(act(group)), groups, threads=threads)):
            found.update(zip(group, results))
        return [found[at] for at in range(len(candidates))]

    def best(self, line: Sequence[Any], near: Calibrator | None = None) -> Judged:
        """Return the best candidate of a line, on the small sample and calibrated on it.

        The first calibrator is fitted from one that is near, and each of the others from the one before.
        """
        scores, lengths = self._scores(line[0]), self._lengths(line[0])
        codes, usable = self.members.codes[self.small], self._usable(self.small)
        judged: dict[int, Judged] = {}

        def loss(at: int) -> float:
            nonlocal near
            left_out = scores(line[at], self.small)
            counted = None if lengths is None else lengths[self.small][usable]
            calibrator = near = _fitted(left_out[usable], codes[usable], counted, self.shares, near)
            losses = self._losses(calibrator, left_out, self.small, lengths)
            judged[at] = Judged(Place(line, at), left_out, calibrator, losses, lengths)
            return float(losses.mean())

        downhill(range(len(line)), loss)
        places = sorted(judged)
        at = first_of_near_equals(places, [judged[place].losses for place in places])
        return replace(judged[at], stronger=judged.get(at - 1))

    def large_sample_losses(self, judged: Judged) -> Array:
        """Return the losses on the large sample, calibrated on the small one."""
        scores, seen = np.empty((len(self.large), judged.scores.shape[1])), np.isin(self.large, self.small)
        scores[seen] = judged.scores
        if not seen.all():
            scores[~seen] = self._scores(judged.candidate)(judged.candidate, self.large[~seen])
        return self._losses(judged.calibrator, scores, self.large, judged.lengths)

    def _usable(self, rows: Array) -> Array:
        """Return which rows can be used, shape (m,): those whose class has another row; all, if no class has two."""
        usable = self.usable[rows]
        return usable if usable.any() else np.ones(len(usable), bool)

    def _lengths(self, candidate: Any) -> Array | None:
        counts = ability(candidate, Counts)
        return None if counts is None else np.maximum(1.0, counts.lengths(self.X))

    def _losses(self, calibrator: Calibrator, scores: Array, rows: Array, lengths: Array | None) -> Array:
        """Return −log P(label) of each row that can be used, times its weight over the mean weight, shape (m,)."""
        codes, weight = self.members.codes[rows], self.weight[rows]
        calibrated = calibrator.apply(scores, None if lengths is None else lengths[rows])
        log_p = log_posterior(calibrated, self.log_prior[rows])[np.arange(len(weight)), codes]
        usable = self._usable(rows)
        return -log_p[usable] * (weight[usable] / weight[usable].mean())

    def _scores(self, candidate: Any) -> LeftOutScores:
        """Return f(candidate, rows) of the candidate's line; the sums of other lines are dropped if they are large."""
        found = self._held(candidate)
        if found is None:
            if self.lines and self.lines[-1][1].size > LARGE_SUMS:
                self.lines.clear()
            found = candidate.left_out_scores(None, self.X, self.members, self.rule)
            self.lines.append((candidate, found))
        return found

    def _held(self, candidate: Any) -> LeftOutScores | None:
        return next((scores for first, scores in self.lines if candidate.same_sums(first)), None)


def _fitted(scores: Array, codes: Array, lengths: Array | None, prior: Array, near: Calibrator | None) -> Calibrator:
    from deciban.evaluate.calibration import LengthAware, Offsets
    from deciban.evaluate.scale_fit import informative_penalty

    try:
        if lengths is None:
            return Offsets.fit(scores, codes, penalty=informative_penalty)
        return LengthAware.fit_from(scores, codes, lengths, prior, near if isinstance(near, LengthAware) else None)
    except DecibanError:
        return Uncalibrated()


# -- nested losses, with a scale for each feature ----------------------------------------------------------------------
KIND_ROWS = 8_000  # rows by which kinds of features are compared: fewer underestimate the gain of pairs of words
NEIGHBOUR_ROWS = 4_000  # rows by which pseudo-counts are compared
ENOUGH_ROWS = 1_000  # with fewer rows, pseudo-counts are those of the least loss under a common scale
LEAST_GAIN = 0.002  # nats a row by which other features must be better than the family's first, such as words


def best_by_nested_losses(
    kinds: Sequence[Sequence[Place]], X: Rows, members: Members, rule: Rule, by_word: bool = True
) -> Any:
    """Return the best candidate, given the best ones of each kind of features under a common scale.

    The candidates of each kind are compared, then the kinds, and then the neighbours of the best one in its line. A
    candidate that was best under a common scale is replaced only by one that is better by one paired standard error.
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
        if get_threads() > 1:  # both neighbours are nearly always needed
            judge.losses_of_each(
                [best._replace(at=at) for at in (best.at + 1, best.at - 1) if 0 <= at < len(best.line)]
            )
        downhill(range(len(best.line)), loss, best.at)
    return judge.first_of_near_equals([met[at] for at in sorted(met, key=lambda at: abs(at - best.at))]).candidate


@dataclass(eq=False)
class NestedJudge:
    """Compares candidates by nested losses; mutable: it caches losses and samples of rows."""

    X: Rows
    members: Members
    rule: Rule
    found: list[tuple[Place, int, Array | None]] = field(default_factory=list)  # with the number of rows
    samples: dict[int, Sample] = field(default_factory=dict)  # by the number of rows

    def losses_of_each(self, places: Sequence[Place], most: int = NEIGHBOUR_ROWS) -> list[Array | None]:
        """Return the losses of each place on at most `most` rows, in threads; None where folds have too few rows."""
        if most not in self.samples:
            self.samples[most] = Sample(self.X, self.members, self.rule, most)
        sample, new = self.samples[most], [place for place in places if self._known(place, most) is None]
        threads = None if len(new) > 1 and all(sample.prepare(place.candidate) for place in new) else 1
        losses = each(lambda place: nested_losses(place.candidate, sample), new, threads=threads)
        self.found += [(place, most, of_place) for place, of_place in zip(new, losses)]
        sample.end(new)
        return [self.losses(place, most) for place in places]

    def losses(self, place: Place, most: int = NEIGHBOUR_ROWS) -> Array | None:
        """Return the losses on at most `most` rows; None where folds have too few rows."""
        known = self._known(place, most)
        return self.losses_of_each([place], most)[0] if known is None else known[2]

    def _known(self, place: Place, most: int) -> tuple[Place, int, Array | None] | None:
        """Return what was found for a place; None if it was not judged yet."""
        return next(
            (one for one in self.found if one[0].line is place.line and one[0].at == place.at and one[1] == most), None
        )

    def loss(self, place: Place) -> float:
        """Return the mean loss; infinite where folds have too few rows."""
        losses = self.losses(place)
        return np.inf if losses is None else float(losses.mean())

    def first_of_near_equals(self, places: Sequence[Place]) -> Place:
        """Return the first place that is not worse than the best by a standard error."""
        if len(places) == 1:
            return places[0]
        losses = self.losses_of_each(places)
        known = [each for each in losses if each is not None]
        return places[0] if len(known) < len(places) else first_of_near_equals(places, known)

    def best_kind(self, places: Sequence[Place]) -> Place:
        """Return the place whose features predict labels best; the first, if others gain little."""
        if len(places) == 1:
            return places[0]
        losses = [self.losses(place, KIND_ROWS) for place in places]  # one by one, to hold the folds of one kind alone
        known = [each for each in losses if each is not None]
        if len(known) < len(places):
            return places[0]
        return first_of_near_equals(places, [known[0], *(each + LEAST_GAIN for each in known[1:])])


class Sample:
    """Rows by which candidates are compared, in folds; mutable: candidates with the same sums share those of folds.

    At most `most` of the rows are fitted; as many of the five folds are judged as make up a fifth of `most` rows.
    """

    def __init__(self, X: Rows, members: Members, rule: Rule, most: int) -> None:
        at = chosen_rows(len(members), most)
        self.rows, self.members, self.rule = X[at], members.take(at), rule
        fold = stratified(self.members.codes)
        self.fold = np.where(fold < min(FOLDS, ceil(most / len(fold))), fold, -1)  # (n,) −1: its fold is not judged
        self.classes = self.members.classes.names
        self.log_prior = log_probability(shares(self.members.codes, self.members.K))  # (K,)
        self.source: tuple[Family[Any], FoldedSource] | None = None  # of the last candidate
        self.prepared: list[tuple[Family[Any], list[Fold]]] = []  # folds of candidates that are judged next
        self.fitted: list[tuple[Family[Any], Calibration]] = []  # last calibrations of candidates
        self.near: Calibration | None = None  # of the first candidate, which is near those of others

    def prepare(self, family: Family[Any]) -> bool:
        """Score the folds of a candidate of words, so that `nested_losses` of it can be computed in a thread."""
        source = self._source(family)
        if source is None:
            return False
        try:
            folds = list(folds_of_words(source, family, self.fold))
            for found in (source_of(scores) for fold in folds for scores in fold.left_out):
                if found is not None:
                    found.evidence()  # is kept
        except DecibanError:  # too few rows of a class
            return False
        self.prepared.append((family, folds))
        return True

    def end(self, judged: Sequence[Place]) -> None:
        """Drop the folds of candidates that were judged; the calibration of the first candidate of all is kept."""
        if self.near is None and judged:
            self.near = next((made for family, made in self.fitted if family is judged[0].candidate), None)
        self.prepared, self.fitted = [], []

    def folds(self, family: Family[Any]) -> Iterator[Fold]:
        """Yield the scores of each fold that is judged, and leave-one-out scores of the other rows."""
        prepared = next((folds for one, folds in self.prepared if one is family), None)
        if prepared is not None:
            return iter(prepared)
        source = self._source(family)
        return self._by_subtraction(family) if source is None else folds_of_words(source, family, self.fold)

    def _source(self, family: Family[Any]) -> FoldedSource | None:
        words = ability(family, HasFoldedWords)
        if words is None:
            return None
        if self.source is None or not family.same_sums(self.source[0]):  # type: ignore[attr-defined]
            source = words.folded_words(None, self.rows, self.members, self.rule)
            if source is None:
                return None
            self.source = family, source
        return self.source[1]

    def _by_subtraction(self, family: Family[Any]) -> Iterator[Fold]:
        columns, n = ("text",), len(self.members.codes)
        stats = collect(family, self.rows, self.members, columns)
        model = Model(family, stats, Reader(columns), self.rule, family, ())
        lesson = Lesson(Batch(Table.of(np.zeros((n, 1))), None), self.rows, self.members)
        number = int(self.fold.max()) + 1
        return folds_by_subtraction(Predictor(model), lesson, stratified(self.members.codes), number)


def nested_losses(family: Family[Any], sample: Sample) -> Array | None:
    """Return the log losses of rows in folds, each calibrated on the other rows; None where a fold cannot be fitted."""
    codes, lengths, losses, near = sample.members.codes, block_lengths(family, sample.rows), [], sample.near
    try:
        for fold in sample.folds(family):
            train, test = ([None if each is None else each[at] for each in lengths] for at in (fold.train, fold.test))
            given = sample.classes, float(len(codes))
            near = made = Calibration.fit(BY_WORD, fold.left_out, codes[fold.train], train, *given, "words", near)
            log_p = log_posterior(made.apply(fold.scores, test, sample.classes), sample.log_prior)
            own = codes[fold.test]
            # without its only row, a class has probability 0 under every kind
            losses.append(-log_p[np.arange(len(own)), own][np.bincount(codes)[own] > 1])
    except DecibanError:  # too few rows of a class
        return None
    if near is not None:
        sample.fitted.append((family, near))
    judged = np.concatenate(losses)
    return judged if len(judged) else None
