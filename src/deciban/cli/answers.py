"""Answers as a table: prediction, probability, evidence, then one P(class) for each class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from deciban.cli.models import cost_of, prior_of
from deciban.errors import UsageError
from deciban.evidence import decisions as decide
from deciban.evidence import scores as score
from deciban.statistics import Array

if TYPE_CHECKING:
    import pyarrow as pa

DIGITS = 6  # figures of a number that is read as text
EXACT = 22  # the largest power of ten that a double holds exactly


@dataclass(frozen=True, eq=False)
class Asked:
    """What was asked of a classifier, with its names looked up."""

    clf: Any
    log_prior: Array  # (K,)
    cost: Array  # (K, K)
    unsure: float | None
    unit: str

    @classmethod
    def of(
        cls,
        clf: Any,
        prior: list[str] | None,
        cost: list[str] | None,
        unsure: float | None = None,
        unit: str = "decibans",
    ) -> Asked:
        """Options as they were written."""
        if unit not in score.UNITS:
            raise UsageError(f"--unit {unit!r} is not one of {', '.join(score.UNITS)}.")
        if unsure is not None and not 0 <= unsure <= 1:
            raise UsageError(f"--unsure {unsure:g} is no probability. Give a number between 0 and 1, such as .9.")
        classes = clf.stats_.classes
        return cls(
            clf,
            clf.log_prior(prior_of(prior or [], classes)),
            clf.cost_matrix(cost_of(cost or [], classes)),
            unsure,
            unit,
        )

    def table(self, X: Any, digits: int | None = DIGITS) -> pa.Table:
        """The answers to rows; numbers rounded to `digits` figures."""
        import pyarrow as pa

        scores = self.clf.log_likelihood(X, constant=False)
        logs = score.log_posterior(scores, self.log_prior)
        decided, rows = decide.decide(logs, self.cost), np.arange(len(logs))
        evidence = score.convert(score.llr_over_runner_up(scores, decided, self.log_prior), self.unit)
        probabilities = np.exp(logs)
        missing = None
        if self.unsure is not None:
            missing = decide.with_unsure(logs, decided, self.unsure, cost=self.cost)
        names = pa.array([str(name) for name in self.clf.stats_.classes])
        columns = {
            "prediction": pa.DictionaryArray.from_arrays(pa.array(decided, pa.int32(), mask=missing), names),
            "probability": rounded(probabilities[rows, decided], digits),
            "evidence": rounded(evidence, digits),
        }
        for k, name in enumerate(names.to_pylist()):
            columns[f"P({name})"] = rounded(probabilities[:, k], digits)
        return pa.table(columns)


def rounded(values: Array, digits: int | None) -> Array:
    """Numbers to so many figures, whatever their size.

    >>> rounded(np.array([0.123456789, 1.2213e-281, 123456.0, -np.inf, 0.0]), 3).tolist()
    [0.123, 1.22e-281, 123000.0, -inf, 0.0]
    """
    if digits is None:
        return values
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        places = digits - 1 - np.floor(np.log10(np.abs(values)))
        scale = 10.0 ** np.clip(places, 0, EXACT)
        found = np.rint(values * scale) / scale
    beyond = np.flatnonzero(((places < 0) | (places > EXACT)) & np.isfinite(places))
    found[beyond] = [float(f"{value:.{digits}g}") for value in values[beyond].tolist()]
    return np.where(np.isfinite(values) & (values != 0), found, values)
