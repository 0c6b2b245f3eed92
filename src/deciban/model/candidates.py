"""Choice between candidate families by exact leave-one-out log loss of the label, after calibration.

A family offers lines of candidates, along which the loss falls and then rises; each line is searched downhill.
Candidates are judged on a sample of the first rows, as the classifier would use them: calibrated. A small sample
selects the best of each line, and a larger one the best of the best two lines, unless the small sample shows a clear
difference. Of candidates whose losses differ by no more than the standard error of the difference, the first is taken:
along a line that with the stronger prior, of lines that which the family names first. Kinds of features, and candidates
near the best, are compared by nested losses (`model/features.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from deciban.errors import DecibanError
from deciban.evidence.scores import log_posterior
from deciban.families.abilities import Counts, HasCandidates, LeftOutScores, ability
from deciban.families.product import Product, blocks_of
from deciban.families.protocol import Family, Rows, Rule
from deciban.kernels.choice import one_thread
from deciban.model.calibration import shares
from deciban.model.judge import left_out_prior
from deciban.read.arrays import run_of_rows
from deciban.read.batches import chosen_rows
from deciban.read.tables import HEAD
from deciban.statistics import Array, Members

C = TypeVar("C")

SMALL_SAMPLE = 4_000  # rows on which all candidates are judged, and calibrated
LARGE_SAMPLE = 10_000  # rows on which the finalists are judged
FINALISTS = 2
CLEARLY_WORSE = 5.0  # standard errors by which a candidate is worse that a larger sample need not judge
LARGE_SUMS = 2**22  # numbers in the sums of a line, above which they are not kept while another line is judged


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
    from deciban.model.features import best_by_nested_losses  # imports this module

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
    best = [judge.best(line) for line in lines]
    finalists = [best[at] for at in finalists_of([one.losses for one in best])]
    # the sums of the last line are at hand: judge it first
    losses = [judge.large_sample_losses(one) for one in reversed(finalists)][::-1]
    at = first_of_near_equals(range(len(finalists)), losses)
    winner = taken = finalists[at]
    if winner.stronger is not None:
        # the small sample does not distinguish neighbours well
        pair = [judge.large_sample_losses(winner.stronger), losses[at]]
        taken = first_of_near_equals([winner.stronger, winner], pair)
    others = [one.place for one in best if one is not winner and one.candidate.same_sums(taken.candidate)]
    return [taken.place, *others]


# -- comparisons -------------------------------------------------------------------------------------------------------
def finalists_of(losses: Sequence[Array]) -> list[int]:
    """Return which candidates a larger sample may put first, by losses (n,) of the same rows.

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
    """Whether losses are above the least by more than so many standard errors of the difference."""
    with np.errstate(invalid="ignore"):
        above = np.where(losses == least, 0.0, losses - least)  # both may be infinite
    if not np.isfinite(above).all():
        return True
    return bool(above.mean() > errors * above.std() / np.sqrt(len(above)))


def downhill(line: Sequence[C], loss: Callable[[C], float], start: int = 1) -> list[float]:
    """Return the losses met on the way from a candidate, the second, to the least one, and on its other side.

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
    """Maps scores (n, K), of rows with so many events, to calibrated scores."""

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
    """Calibrated leave-one-out log losses of candidates on a sample of rows; mutable: it keeps the sums of lines."""

    X: Rows
    members: Members
    rule: Rule
    lines: list[tuple[Any, LeftOutScores]] = field(default_factory=list)  # a candidate of each, and its scores
    last: Calibrator | None = None  # of the candidate judged before, which is near that of the next one

    def __post_init__(self) -> None:
        n, weight = len(self.members), self.members.row_weights()
        # the small sample is part of the large one
        self.small, self.large = (chosen_rows(n, most) for most in (SMALL_SAMPLE, LARGE_SAMPLE))
        self.weight, codes = weight, self.members.codes
        self.log_prior = left_out_prior(self.members.weights(), codes, weight)  # (n, K) without the row itself
        self.shares = shares(codes[self.small], self.members.K)
        # a class whose only row is left out is unknown under every candidate: such rows judge nothing
        self.told = np.bincount(codes, minlength=self.members.K)[codes] > 1

    def best(self, line: Sequence[Any]) -> Judged:
        """Return the best candidate of a line, on the small sample and calibrated on it."""
        scores, lengths = self._scores(line[0]), self._lengths(line[0])
        codes, told = self.members.codes[self.small], self._told(self.small)
        judged: dict[int, Judged] = {}

        def loss(at: int) -> float:
            left_out = scores(line[at], self.small)
            counted = None if lengths is None else lengths[self.small][told]
            calibrator = self.last = _fitted(left_out[told], codes[told], counted, self.shares, self.last)
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

    def _told(self, rows: Array) -> Array:
        """Return which of the rows judge, shape (m,) of bool; all, if no class has two rows."""
        told = self.told[rows]
        return told if told.any() else np.ones(len(told), bool)

    def _lengths(self, candidate: Any) -> Array | None:
        counts = ability(candidate, Counts)
        return None if counts is None else np.maximum(1.0, counts.lengths(self.X))

    def _losses(self, calibrator: Calibrator, scores: Array, rows: Array, lengths: Array | None) -> Array:
        """Return −log P(label) of each row that judges, times its weight over the mean weight, shape (m,)."""
        codes, weight = self.members.codes[rows], self.weight[rows]
        calibrated = calibrator.apply(scores, None if lengths is None else lengths[rows])
        log_p = log_posterior(calibrated, self.log_prior[rows])[np.arange(len(weight)), codes]
        told = self._told(rows)
        return -log_p[told] * (weight[told] / weight[told].mean())

    def _scores(self, candidate: Any) -> LeftOutScores:
        """Return f(candidate, rows) of the candidate's line; the sums of other lines are dropped if they are large."""
        found = next((scores for first, scores in self.lines if candidate.same_sums(first)), None)
        if found is None:
            if self.lines and self.lines[-1][1].size > LARGE_SUMS:
                self.lines.clear()
            found = candidate.left_out_scores(None, self.X, self.members, self.rule)
            self.lines.append((candidate, found))
        return found


def _fitted(scores: Array, codes: Array, lengths: Array | None, prior: Array, near: Calibrator | None) -> Calibrator:
    from deciban.evaluate.calibration import LengthAware, Offsets
    from deciban.evaluate.scale_fit import informative_penalty

    try:
        if lengths is None:
            return Offsets.fit(scores, codes, penalty=informative_penalty)
        return LengthAware.fit_from(scores, codes, lengths, prior, near if isinstance(near, LengthAware) else None)
    except DecibanError:
        return Uncalibrated()
