"""Posterior predictive checks: compares each column, class by class, with samples drawn from the model.

Five statistics of a column (standard deviation, skewness, kurtosis, share of zeros, share of repeated values) are
compared with those of samples of the same size. A statistic far from those of the samples is a finding. If another
family has a higher leave-one-out density, in the same measure, the finding names it and the difference in decibans.

Reference: Gelman et al., Bayesian Data Analysis, 3rd ed., section 6.3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from deciban.evidence.scores import convert
from deciban.families.gaussian import Gaussian
from deciban.families.poisson import Poisson
from deciban.families.product import BlockRows
from deciban.families.protocol import Rows
from deciban.model.model import Model
from deciban.model.predictor import Predictor
from deciban.read.labels import Labels, place_labels
from deciban.read.tables import Table
from deciban.statistics import Array

REPLICATES = 200
MOST_ROWS = 500  # of a class that are compared
LEAST_ROWS = 8  # of a class or column, to be compared
THRESHOLD = 4.5  # standard deviations of the samples

Seed: TypeAlias = np.random.Generator | int | None


def _skewness(x: Array) -> Array:
    z = x - x.mean(axis=-1, keepdims=True)
    return (z**3).mean(axis=-1) / np.maximum((z**2).mean(axis=-1), 1e-300) ** 1.5


def _tails(x: Array) -> Array:
    z = x - x.mean(axis=-1, keepdims=True)
    return np.log((z**4).mean(axis=-1) / np.maximum((z**2).mean(axis=-1), 1e-300) ** 2 + 1e-12)


STATISTICS: dict[str, Callable[[Array], Array]] = {
    "spread": lambda x: np.log(x.std(axis=-1) + 1e-300),
    "skewness": _skewness,
    "tails": _tails,
    "zeros": lambda x: (x == 0).mean(axis=-1),
    "repeats": lambda x: (np.diff(np.sort(x, axis=-1), axis=-1) == 0).mean(axis=-1),
}
WORDS = {
    "spread": ("has a smaller spread", "has a larger spread"),
    "skewness": ("is more skewed to the left", "is more skewed to the right"),
    "tails": ("has lighter tails", "has heavier tails"),
    "zeros": ("has fewer zeros", "has more zeros"),
    "repeats": ("has fewer repeated values", "has more repeated values"),
}


@dataclass(frozen=True, eq=False)
class Finding:
    """A column that differs from samples of the model in one class."""

    column: str
    label: Any
    statistic: str
    surprise: float  # difference from the mean of the samples, in their standard deviations
    better: str | None  # a family with a higher leave-one-out density
    decibans: float  # by how much higher, over all rows of the class

    def __str__(self) -> str:
        what = WORDS[self.statistic][self.surprise > 0]
        text = f"column {self.column!r} in class {self.label!r} {what} than samples of the model"
        if self.better is None:
            return f"{text}. Consider Binned(), or leave the column out; calibration cannot correct this."
        return f"{text}; {self.better} fits {self.decibans:,.0f} decibans better."


@dataclass(frozen=True, eq=False, repr=False)
class FitReport:
    """The columns that differ from samples of the model, largest difference first."""

    findings: tuple[Finding, ...]
    checked: int  # pairs of column and class

    def __str__(self) -> str:
        if not self.findings:
            return f"No differences from samples of the model ({self.checked} pairs of column and class checked)."
        return "\n".join(map(str, self.findings))

    def __repr__(self) -> str:
        return f"FitReport({len(self.findings)} findings in {self.checked} pairs of column and class)"


def check_fit(predictor: Predictor, table: Table, y: ArrayLike | Labels | None, random_state: Seed = 0) -> FitReport:
    """Compare numeric columns with samples of the model, class by class."""
    rng = np.random.default_rng(random_state)
    model = predictor.model
    codes = place_labels(y, len(table), model.classes)
    findings, checked = [], 0
    for k, label in enumerate(model.classes):
        rows = np.flatnonzero(codes == k)
        if len(rows) < LEAST_ROWS:
            continue
        if len(rows) > MOST_ROWS:
            rows = rng.choice(rows, MOST_ROWS, replace=False)
        drawn = predictor.density.sample(np.full(REPLICATES * len(rows), k), rng)
        for name, values, samples in _columns(model, table, rows, drawn):
            checked += 1
            seen = values[~np.isnan(values)]
            if len(seen) < LEAST_ROWS:
                continue
            found = _surprises(seen, samples.reshape(REPLICATES, -1)[:, : len(seen)])
            if found is not None:
                better, gain = _alternative(seen, len(rows), int((codes == k).sum()))
                findings.append(Finding(name, label, *found, better, gain))
    return FitReport(tuple(sorted(findings, key=lambda f: -abs(f.surprise))), checked)


def _columns(model: Model, table: Table, rows: Array, drawn: Rows) -> Iterator[tuple[str, Array, Array]]:
    """Yield name, values and samples of each numeric column."""
    parts = drawn.parts if isinstance(drawn, BlockRows) else (drawn,)
    for at, sampled in zip(model.positions, parts):
        if not isinstance(sampled, np.ndarray) or sampled.dtype.kind != "f":
            continue  # categories have no such statistics; sparse counts have too many columns
        raw = np.asarray(table.take(rows).pick(at), dtype=float)
        for j, place in enumerate(at):
            yield str(model.reader.columns[place]), raw[:, j], sampled[:, j]


def _surprises(values: Array, samples: Array) -> tuple[str, float] | None:
    """Return the statistic furthest from the samples and its distance; None if all are within the threshold."""
    worst = None
    for name, statistic in STATISTICS.items():
        expected, own = statistic(samples), float(statistic(values))
        surprise = (own - expected.mean()) / max(float(expected.std()), 1e-3)
        if abs(surprise) > THRESHOLD and (worst is None or abs(surprise) > abs(worst[1])):
            worst = name, float(surprise)
    return worst


def _alternative(values: Array, judged: int, total: int) -> tuple[str | None, float]:
    """Return a family with a higher leave-one-out density than a Gaussian, and the gain in decibans; or None and 0."""
    if np.ptp(values) == 0:
        return None, 0.0
    column = values[:, None]
    base = Gaussian().fit(column).leave_one_out(column).sum()
    scores = {}
    if (values > 0).all():
        logs = np.log(column)
        scores["log-Gaussian (take its logarithm)"] = (Gaussian().fit(logs).leave_one_out(logs) - logs[:, 0]).sum()
    if (values >= 0).all() and (values == np.round(values)).all():
        scores["Poisson()"] = Poisson().fit(column).leave_one_out(column).sum()
    if not scores:
        return None, 0.0
    best = max(scores, key=lambda name: scores[name])
    gain = float(convert(scores[best] - base, "decibans")) * total / judged
    return (best, gain) if gain > 10 else (None, 0.0)
