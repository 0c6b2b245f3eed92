"""Choices that are made before anything is summed: by exact leave-one-out log loss of the label, after calibration.

A family offers lines of candidates, along which the loss falls and then rises: they are walked downhill. Each candidate
is judged on a sample of the first rows as the classifier would use it, calibrated: on a few of them first, and the best
of the best lines again on more. Of near equals, that of the first line is taken: the one least above the least loss by
no more than the standard error of the difference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from deciban.errors import DecibanError
from deciban.estimators.calibration import shares
from deciban.estimators.priors import left_out_prior
from deciban.estimators.reservoir import chosen_rows
from deciban.evaluate.calibration import LengthAware, Offsets
from deciban.families.product import Product
from deciban.families.protocol import Rule
from deciban.features.sparse import run_of_rows
from deciban.read.tables import HEAD
from deciban.score import log_posterior
from deciban.statistics import Array, Members

FEW = 4_000  # rows on which candidates are judged first, and calibrated
FINALISTS = 2  # lines whose best is judged on more
MORE = 10_000  # rows on which they are


def chosen(family: Any, X: Any, members: Members, rule: Rule) -> Any:
    """The family with everything settled that must be before rows are summed; block by block."""
    if isinstance(family, Product):
        return family.with_blocks(lambda block, rows: chosen(block, rows, members, rule), X)
    if not family.open:
        return family
    first, head = (X, members) if len(members) <= HEAD else (run_of_rows(X, 0, HEAD), members.take(slice(0, HEAD)))
    lines = family.candidates(first, head)
    if len(lines) == len(lines[0]) == 1:
        return lines[0][0]
    if len(np.unique(head.codes)) < 2:
        return family.unjudged(first, head)
    rows = chosen_rows(len(head))
    if len(rows) < len(head):
        first, head = first[rows], head.take(rows)
    judge = Judge(first, head, rule)
    best = [min(judge.walk(line), key=lambda pair: pair[0]) for line in lines]
    limit = sorted(loss for loss, _ in best)[:FINALISTS][-1]
    finalists = [one for loss, one in best if loss <= limit]
    return first_of_near_equals(finalists, [judge.losses(one) for one in finalists])


def first_of_near_equals(candidates: Sequence[Any], losses: Sequence[Array]) -> Any:
    """The first candidate that is not clearly worse than the best, by losses (n,) of the same rows.

    >>> even, odd = np.tile([0.1, 0.3], 50), np.tile([0.3, 0.08], 50)
    >>> first_of_near_equals("ab", [even, odd]), first_of_near_equals("ab", [even, even - 0.1])
    ('a', 'b')
    """
    least = min(losses, key=lambda each: each.mean())
    for candidate, own in zip(candidates, losses):
        above = own - least
        if above.mean() <= above.std() / np.sqrt(len(above)):
            return candidate
    return candidates[int(np.argmin([own.mean() for own in losses]))]


def downhill(line: Sequence[Any], loss: Callable[[Any], float]) -> list[tuple[float, Any]]:
    """The losses met on the way from the second candidate to the least one.

    >>> downhill([5, 3, 2, 1, 4], float)
    [(3.0, 3), (2.0, 2), (1.0, 1), (4.0, 4)]
    """
    at = min(1, len(line) - 1)
    met = {at: loss(line[at])}
    for step in (1, -1):
        now = at
        while 0 <= now + step < len(line) and (len(met) == 1 or met[now] == min(met.values())):
            now += step
            met[now] = loss(line[now])
            if met[now] > met[now - step]:
                break
        if met[at] > min(met.values()):
            break  # it fell on this side
    return [(value, line[place]) for place, value in met.items()]


class Judge:
    """The calibrated leave-one-out log loss of candidates, by the sums of the same rows."""

    def __init__(self, X: Any, members: Members, rule: Rule) -> None:
        self.X, self.members, self.rule = X, members, rule
        self._summed: list[tuple[Any, Any]] = []
        self._calibrators: dict[int, Any] = {}

    def walk(self, line: Sequence[Any]) -> list[tuple[float, Any]]:
        """The mean losses of candidates on the way down a line, on a few rows and calibrated on them."""
        line[0].lengths(self.X)  # rows that are counted once serve the whole line
        X, members = self._some(FEW)

        def loss(candidate: Any) -> float:
            scores, lengths = self._scores(candidate, X, members)
            self._calibrators[id(candidate)] = made = _calibrator(scores, members.codes, lengths)
            return float(self._losses(made.apply(scores, lengths), members).mean())

        return downhill(line, loss)

    def losses(self, candidate: Any) -> Array:
        """(n,) the losses on more rows, calibrated on the few."""
        X, members = self._some(MORE)
        scores, lengths = self._scores(candidate, X, members)
        return self._losses(self._calibrators[id(candidate)].apply(scores, lengths), members)

    def _some(self, most: int) -> tuple[Any, Members]:
        rows = chosen_rows(len(self.members), most)
        return (self.X, self.members) if len(rows) == len(self.members) else (self.X[rows], self.members.take(rows))

    def _scores(self, candidate: Any, X: Any, members: Members) -> tuple[Array, Array | None]:
        scores = candidate.leave_one_out(self._sums(candidate), X, members, self.rule)
        lengths = candidate.lengths(X)
        return scores, None if lengths is None else np.maximum(1.0, lengths)

    def _losses(self, scores: Array, members: Members) -> Array:
        """(n,) −log P(label), times the row's share of the weight and their number."""
        weight = members.row_weights()
        prior = left_out_prior(self.members.weights(), members.codes, weight)
        log_p = log_posterior(scores, prior)[np.arange(len(weight)), members.codes]
        return -log_p * (weight / weight.mean())

    def _sums(self, candidate: Any) -> Any:
        """Its sums; candidates that differ in the prior alone share them."""
        for other, stats in self._summed:
            if candidate.summed_as(other) == candidate:
                return stats
        self._summed.append((candidate, candidate.collect(self.X, self.members)))
        return self._summed[-1][1]


class _AsItIs:
    """What stands for a calibrator where rows are too few to fit one."""

    def apply(self, scores: Array, lengths: Array | None = None) -> Array:
        return scores


def _calibrator(scores: Array, codes: Array, lengths: Array | None) -> Any:
    try:
        if lengths is None:
            return Offsets.fit(scores, codes)
        return LengthAware.fit(scores, codes, lengths, shares(codes, scores.shape[1]))
    except DecibanError:
        return _AsItIs()
