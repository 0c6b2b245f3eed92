"""Choices that are made before anything is summed: by exact leave-one-out log loss of the label, after calibration.

A family offers candidates; each is judged on a sample of the first rows as the classifier would use it, calibrated.
All are judged on a few rows first, and the best of them again on all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from deciban.errors import DecibanError
from deciban.estimators.priors import left_out_prior
from deciban.estimators.reservoir import chosen_rows
from deciban.evaluate.calibration import LengthAware, Offsets
from deciban.families.product import Product
from deciban.families.protocol import Rule
from deciban.features.sparse import run_of_rows
from deciban.read.tables import HEAD
from deciban.score import log_posterior
from deciban.statistics import Array, Members

FEW = 4_000  # rows on which all candidates are judged
FINALISTS = 2  # candidates that are judged on all


def chosen(family: Any, X: Any, members: Members, rule: Rule) -> Any:
    """The family with everything settled that must be before rows are summed; block by block."""
    if isinstance(family, Product):
        return family.with_blocks(lambda block, rows: chosen(block, rows, members, rule), X)
    if not family.open:
        return family
    first, head = (X, members) if len(members) <= HEAD else (run_of_rows(X, 0, HEAD), members.take(slice(0, HEAD)))
    offered = family.candidates(first, head)
    if len(offered) == 1 or len(np.unique(head.codes)) < 2:
        return offered[0]
    rows = chosen_rows(len(head))
    if len(rows) < len(head):
        first, head = first[rows], head.take(rows)
    judge = Judge(first, head, rule)
    if len(head) > FEW:
        ranked = sorted(offered, key=judge.on(chosen_rows(len(head), FEW)))
        offered = [candidate for candidate in offered if any(candidate is best for best in ranked[:FINALISTS])]
    return min(offered, key=judge.on(np.arange(len(head))))


class Judge:
    """The calibrated leave-one-out log loss of candidates, by the sums of the same rows."""

    def __init__(self, X: Any, members: Members, rule: Rule) -> None:
        self.X, self.members, self.rule = X, members, rule
        self._summed: list[tuple[Any, Any]] = []

    def on(self, rows: Array) -> Callable[[Any], float]:
        """The loss on some of the rows."""
        some, judged = (
            (self.X, self.members) if len(rows) == len(self.members) else (self.X[rows], self.members.take(rows))
        )
        return lambda candidate: self._loss(candidate, some, judged)

    def _loss(self, candidate: Any, X: Any, members: Members) -> float:
        stats = self._sums(candidate)
        scores = candidate.leave_one_out(stats, X, members, self.rule)
        try:
            calibrated = _calibrated(scores, members.codes, candidate.lengths(X))
        except DecibanError:  # too few rows to calibrate on
            calibrated = scores
        weight = members.row_weights()
        prior = left_out_prior(self.members.weights(), members.codes, weight)
        log_p = log_posterior(calibrated, prior)[np.arange(len(weight)), members.codes]
        return float(-(weight @ log_p) / weight.sum())

    def _sums(self, candidate: Any) -> Any:
        """Its sums; candidates that differ in the prior alone share them."""
        for other, stats in self._summed:
            if candidate.summed_as(other) == candidate:
                return stats
        stats = candidate.collect(self.X, self.members)
        self._summed = [(candidate, stats)]
        return stats


def _calibrated(scores: Array, codes: Array, lengths: Array | None) -> Array:
    if lengths is None:
        return Offsets.fit(scores, codes).apply(scores)
    lengths = np.maximum(1.0, lengths)
    return LengthAware.fit(scores, codes, lengths).apply(scores, lengths)
