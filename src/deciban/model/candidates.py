"""The class prior as it would be without each row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from deciban.errors import DecibanError
from deciban.evaluate.calibration import LengthAware, Offsets
from deciban.evaluate.scale_fit import informative_penalty
from deciban.evidence.scores import log_posterior
from deciban.families.abilities import HasCandidates, ability
from deciban.families.product import Product, blocks_of
from deciban.families.protocol import Rule
from deciban.model.calibration import shares
from deciban.read.numbers import run_of_rows
from deciban.read.reservoir import chosen_rows
from deciban.read.tables import HEAD
from deciban.statistics import Array, Members


def left_out_prior(rows: Array, codes: Array, weight: Array) -> Array:
    """(n, K) the learnt log prior without each row: (N_c − w)/(N − w) for its class, N_j/(N − w) for the others."""
    left = np.repeat(rows[None, :], len(codes), axis=0)
    own = np.arange(len(codes)), codes
    left[own] = np.maximum(left[own] - weight, 0.0)
    total = left.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_total = np.log(total)
        prior = np.log(rows) - log_total[:, None]
        prior[own] = np.log(left[own]) - log_total
    prior[total <= 0] = -np.log(len(rows))  # nothing left: every class alike
    return prior


# -- choosing ----------
# Choices that are made before anything is summed: by exact leave-one-out log loss of the label, after calibration.
#
# A family offers lines of candidates, along which the loss falls and then rises: they are walked downhill. Each
# candidate
# is judged on a sample of the first rows as the classifier would use it, calibrated: on a few of them first, and the
# best
# of the best lines again on more, unless the few told them clearly apart. Of near equals, whose losses differ by no
# more
# than the standard error of the difference, the first is taken: along a line the stronger prior, of lines the one that
# the family names first.

FEW = 4_000  # rows on which candidates are judged first, and calibrated
FINALISTS = 2  # lines whose best is judged on more
MORE = 10_000  # rows on which they are
CLEARLY = 5.0  # standard errors that more rows will not make up for
LARGE = 2**22  # sums that are made again for another line, rather than kept beside its own


def chosen(family: Any, X: Any, members: Members, rule: Rule) -> Any:
    """The family with everything settled that must be before rows are summed; block by block."""
    if isinstance(family, Product):
        return family.with_families(chosen(block, rows, members, rule) for block, rows in blocks_of(family, X))
    if ability(family, HasCandidates) is None or not family.open:
        return family
    first, head = (X, members) if len(members) <= HEAD else (run_of_rows(X, 0, HEAD), members.take(slice(0, HEAD)))
    lines = family.candidates(first, head)
    if len(lines) == len(lines[0]) == 1:
        return lines[0][0]
    if len(np.unique(head.codes)) < 2:
        return family.without_labels(first, head)
    rows = chosen_rows(len(head))
    if len(rows) < len(head):
        first, head = family._ahead(X, rows, first[rows]), head.take(rows)
    judge = Judge(first, head, rule)
    finalists = _finalists([judge.best(line) for line in lines])
    for one in reversed(finalists):  # what was made last is at hand
        judge.losses(one)
    winner = first_of_near_equals(finalists, [judge.losses(one) for one in finalists])
    rivals = judge.with_stronger(winner, next(line for line in lines if any(one is winner for one in line)))
    return first_of_near_equals(rivals, [judge.losses(one) for one in rivals])


def _finalists(best: Sequence[tuple[Array, Any]]) -> list[Any]:
    """Of the best of each line, with their losses, those that more rows may well put first.

    >>> even, odd = np.tile([0.1, 0.3], 50), np.tile([0.3, 0.08], 50)
    >>> _finalists([(even, "a"), (odd, "b")]), _finalists([(even, "a"), (even - 0.01, "b")])
    (['a', 'b'], ['b'])
    """
    limit = sorted(losses.mean() for losses, _ in best)[:FINALISTS][-1]
    least = min((losses for losses, _ in best), key=lambda each: each.mean())
    return [one for losses, one in best if losses.mean() <= limit and not _above(losses, least, CLEARLY)]


def _above(losses: Array, least: Array, errors: float) -> bool:
    """Whether losses are above the least by more than so many standard errors of the difference."""
    with np.errstate(invalid="ignore"):
        above = np.where(losses == least, 0.0, losses - least)  # a rule may find rows impossible
    if not np.isfinite(above).all():
        return True
    return bool(above.mean() > errors * above.std() / np.sqrt(len(above)))


def first_of_near_equals(candidates: Sequence[Any], losses: Sequence[Array]) -> Any:
    """The first candidate that is not clearly worse than the best, by losses (n,) of the same rows.

    >>> even, odd = np.tile([0.1, 0.3], 50), np.tile([0.3, 0.08], 50)
    >>> first_of_near_equals("ab", [even, odd]), first_of_near_equals("ab", [even, even - 0.1])
    ('a', 'b')
    """
    least = min(losses, key=lambda each: each.mean())
    for candidate, own in zip(candidates, losses):
        if not _above(own, least, 1.0):
            return candidate
    return candidates[int(np.argmin([own.mean() for own in losses]))]


def downhill(line: Sequence[Any], loss: Callable[[Any], float]) -> list[float]:
    """The losses met on the way from the second candidate to the least one, and on its other side.

    >>> downhill([5, 3, 2, 1, 4], float), downhill([1, 3, 5], float)
    ([3.0, 2.0, 1.0, 4.0], [3.0, 5.0, 1.0])
    """
    at = min(1, len(line) - 1)
    met = {at: loss(line[at])}
    for step in (1, -1):
        now = at
        while 0 <= now + step < len(line):
            now += step
            met[now] = loss(line[now])
            if met[now] > met[now - step]:
                break
        if met[at] > min(met.values()):
            break  # it fell on this side
    return list(met.values())


class Judge:
    """The calibrated leave-one-out log loss of candidates, by the sums of the same rows."""

    def __init__(self, X: Any, members: Members, rule: Rule) -> None:
        self.X, self.members, self.rule = X, members, rule
        self.few, self.more = (chosen_rows(len(members), most) for most in (FEW, MORE))  # the few are among the more
        self._summed: list[tuple[Any, Any]] = []  # a candidate, and what scores all that are summed as it is
        self._met: dict[int, tuple[Array, Any]] = {}  # scores of a few rows, and the calibrator fitted to them
        self._on_more: dict[int, Array] = {}
        self._size = 0  # of the last sums that were made

    def best(self, line: Sequence[Any]) -> tuple[Array, Any]:
        """The best candidate of a line and its losses, on a few rows and calibrated on them."""
        line[0].lengths(self.X)  # rows that are counted once serve the whole line
        met: dict[int, Array] = {}

        def loss(candidate: Any) -> float:
            scores = self._scores(candidate)(candidate, self.few)
            made = _calibrator(scores, self.members.codes[self.few], self._lengths(candidate, self.few))
            self._met[id(candidate)] = scores, made
            met[id(candidate)] = self._losses(candidate, made, scores, self.few)
            return float(met[id(candidate)].mean())

        downhill(line, loss)
        walked = [candidate for candidate in line if id(candidate) in met]
        chosen = first_of_near_equals(walked, [met[id(candidate)] for candidate in walked])
        return met[id(chosen)], chosen

    def with_stronger(self, winner: Any, line: Sequence[Any]) -> list[Any]:
        """The winner, behind the candidate before it in its line if that was met: a few rows tell them apart badly."""
        at = next(place for place, one in enumerate(line) if one is winner)
        return [one for one in line[max(at - 1, 0) : at + 1] if id(one) in self._met]

    def losses(self, candidate: Any) -> Array:
        """(n,) the losses on more rows, calibrated on the few."""
        if id(candidate) not in self._on_more:
            known, made = self._met[id(candidate)]
            scores, seen = np.empty((len(self.more), known.shape[1])), np.isin(self.more, self.few)
            scores[seen] = known
            if not seen.all():
                scores[~seen] = self._scores(candidate)(candidate, self.more[~seen])
            self._on_more[id(candidate)] = self._losses(candidate, made, scores, self.more)
        return self._on_more[id(candidate)]

    def _lengths(self, candidate: Any, rows: Array) -> Array | None:
        lengths = candidate.lengths(self.X)
        return None if lengths is None else np.maximum(1.0, lengths[rows])

    def _losses(self, candidate: Any, calibrator: Any, scores: Array, rows: Array) -> Array:
        """(n,) −log P(label), times the row's share of the weight and their number."""
        codes, weight = self.members.codes[rows], self.members.row_weights()[rows]
        prior = left_out_prior(self.members.weights(), codes, weight)
        calibrated = calibrator.apply(scores, self._lengths(candidate, rows))
        log_p = log_posterior(calibrated, prior)[np.arange(len(weight)), codes]
        return -log_p * (weight / weight.mean())

    def _scores(self, candidate: Any) -> Any:
        """What gives its scores of some rows; candidates that differ in the prior alone share their sums."""
        found = next((scores for other, scores in self._summed if candidate.same_sums(other)), None)
        if found is None:
            if self._size > LARGE:
                self._summed.clear()
            stats = candidate.collect(self.X, self.members)
            self._size = sum(values.size for values in vars(stats).values() if isinstance(values, np.ndarray))
            found = candidate.left_out_scores(stats, self.X, self.members, self.rule)
            self._summed.append((candidate, found))
        return found


class _AsItIs:
    """What stands for a calibrator where rows are too few to fit one."""

    def apply(self, scores: Array, lengths: Array | None = None) -> Array:
        return scores


def _calibrator(scores: Array, codes: Array, lengths: Array | None) -> Any:
    try:
        if lengths is None:
            return Offsets.fit(scores, codes, penalty=informative_penalty)
        return LengthAware.fit(scores, codes, lengths, shares(codes, scores.shape[1]))
    except DecibanError:
        return _AsItIs()
