"""Drift: the rows of a model and those of a second file, compared by their sums.

For each block of columns, the log Bayes factor of two hypotheses: the two sets of rows have parameters of their own, or
the same parameters. Both follow from sums: log P(A) + log P(B) − log P(A + B), with parameters integrated out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from deciban.evidence.scores import convert
from deciban.families.abilities import HasEvidence, ability
from deciban.families.product import blocks_of
from deciban.families.transformed import Transformed
from deciban.model.model import Model
from deciban.report.contract import Classifier
from deciban.statistics import Array


@dataclass(frozen=True, eq=False)
class Drift:
    """Differences between the rows learnt and those of a second file."""

    rows: float  # of the second file
    classes: tuple[Any, ...]
    learnt: Array  # (K,) rows of each class
    other: Array  # (K,) rows of each class in the second file
    columns: list[tuple[str, float | None]]  # columns of each block, and decibans for a difference; None: not available


def drift(clf: Classifier, X: Any, y: Any) -> Drift:
    """Compare the rows that a model has learnt with others."""
    own: Model = clf.model_
    other: Model = clf.blank().learn(X, y).model_
    stats = own.stats + other.stats
    classes = stats.classes
    rows = [np.array([dict(zip(m.classes, m.stats.rows)).get(c, 0.0) for c in classes]) for m in (own, other)]
    columns = []
    blocks = zip(blocks_of(own.family, own.stats.family, other.stats.family, stats.family), own.positions)
    for (family, a, b, together), at in blocks:
        name = ", ".join(own.reader.labels[j] for j in at)
        columns.append((name, _decibans(family, a, b, together)))
    order = sorted(columns, key=lambda one: -(one[1] if one[1] is not None else -np.inf))
    return Drift(float(rows[1].sum()), classes, rows[0], rows[1], order)


def _decibans(family: Any, a: Any, b: Any, together: Any) -> float | None:
    """Decibans for different parameters over equal ones; None if the family has no evidence of its rows."""
    if isinstance(family, Transformed):  # the derivative of the map is in all three terms, and cancels
        return _decibans(family.inner, a.inner, b.inner, together.inner)
    known = ability(family, HasEvidence)
    if known is None:
        return None
    one, two, both = (float(np.sum(known.log_evidence(stats))) for stats in (a, b, together))
    return float(convert(one + two - both, "decibans"))
