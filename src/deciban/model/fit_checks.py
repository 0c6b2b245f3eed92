"""Posterior predictive checks: compares each column, class by class, with samples drawn from the model.

Five statistics of a column (standard deviation, skewness, kurtosis, share of zeros, share of repeated values) are
compared with those of samples of the same size. A statistic far from those of the samples is a finding. If another
family has a higher density in k-fold cross-validation, in the same measure, the finding names it and the difference in
decibans, with its interval.

Reference: Gelman et al., Bayesian Data Analysis, 3rd ed., section 6.3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from deciban.evaluate.intervals import standard_error
from deciban.evidence.scores import convert
from deciban.families.gaussian import Gaussian
from deciban.families.poisson import Poisson
from deciban.families.product import BlockRows
from deciban.families.protocol import Rows
from deciban.model.folds import stratified
from deciban.model.model import Model
from deciban.model.predictor import Predictor
from deciban.read.codes import Labels, place_labels
from deciban.read.tables import Table
from deciban.statistics import Array

REPLICATES = 200
MOST_ROWS = 500  # of a class that are compared
LEAST_ROWS = 8  # of a class or column, to be compared
THRESHOLD = 4.5  # standard deviations of the samples
LEAST_VARIANCE = 1e-100  # of a constant column; its powers are not rounded to 0

Seed: TypeAlias = np.random.Generator | int | None


def _skewness(x: Array) -> Array:
    z = x - x.mean(axis=-1, keepdims=True)
    return (z**3).mean(axis=-1) / np.maximum((z**2).mean(axis=-1), LEAST_VARIANCE) ** 1.5


def _tails(x: Array) -> Array:
    z = x - x.mean(axis=-1, keepdims=True)
    return np.log((z**4).mean(axis=-1) / np.maximum((z**2).mean(axis=-1), LEAST_VARIANCE) ** 2 + 1e-12)


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
    better: str | None  # a family with a higher density of rows that it was not fitted to
    decibans: float  # by how much higher, over all rows of the class
    interval: tuple[float, float] = (0.0, 0.0)  # of the difference, at 95 %

    @property
    def what(self) -> str:
        """How the column differs, in words."""
        return WORDS[self.statistic][self.surprise > 0]

    def __str__(self) -> str:
        text = f"column {self.column!r} in class {self.label!r} {self.what} than samples of the model"
        if self.better is None:
            return f"{text}. Consider Binned(), or leave the column out; calibration cannot correct this."
        low, high = (f"{end:,.0f}".replace("-", "−") for end in self.interval)
        return f"{text}; {self.better} fits {self.decibans:,.0f} [{low}, {high}] decibans better."


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
                better, gain, ends = _alternative(seen, int((codes == k).sum()) / len(rows))
                findings.append(Finding(name, label, *found, better, gain, ends))
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


def _alternative(values: Array, share: float) -> tuple[str | None, float, tuple[float, float]]:
    """Return a family with a higher density than a Gaussian in k-fold, the gain in decibans and its interval; or None.

    The gain is that of `share` times as many rows.
    """
    nothing = None, 0.0, (0.0, 0.0)
    if np.ptp(values) == 0:
        return nothing
    column = values[:, None]
    offered: dict[str, Array] = {}
    if (values > 0).all():
        logs = np.log(column)
        offered["log-Gaussian (take its logarithm)"] = _k_fold_density(Gaussian(), logs) - logs[:, 0]
    if (values >= 0).all() and (values == np.round(values)).all():
        offered["Poisson()"] = _k_fold_density(Poisson(), column)
    if not offered:
        return nothing
    best = max(offered, key=lambda name: float(offered[name].sum()))
    each = np.asarray(convert(offered[best] - _k_fold_density(Gaussian(), column), "decibans"))
    gain, error = float(each.sum()) * share, standard_error(each) * len(each) * share
    reach = float(ndtri(0.975)) * error
    return (best, gain, (gain - reach, gain + reach)) if gain > 10 else nothing


def _k_fold_density(family: Any, column: Array) -> Array:
    """Return the log density of each value under the family fitted to the values of other folds, shape (n,)."""
    fold, scores = stratified(np.zeros(len(column), dtype=np.intp)), np.empty(len(column))
    for k in range(fold.max() + 1):
        scores[fold == k] = family.fit(column[fold != k]).log_density(column[fold == k])
    return scores
