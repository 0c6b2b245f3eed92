"""Does data drawn from the model look like the data? Column by column and class by class, in plain words.

For each statistic (spread, skewness, tails, zeros, repeats) of a column in a class, samples of the same size are drawn
from the model. A statistic far outside what the samples show is a finding, and where another family would explain the
column better, by leave-one-out density in one measure, the finding says which, and by how many decibans.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from deciban.evidence.scores import convert
from deciban.families.gaussian import Gaussian
from deciban.families.poisson import Poisson
from deciban.families.product import BlockRows
from deciban.families.protocol import Rows
from deciban.model.model import Model
from deciban.model.predictor import Predictor
from deciban.read.labels import place_labels
from deciban.read.tables import Table
from deciban.statistics import Array

REPLICATES = 200
MOST_ROWS = 500  # of a class that are compared
FAR = 4.5  # standard deviations of the samples


def _skewness(x: Array) -> Array:
    z = x - x.mean(axis=-1, keepdims=True)
    return (z**3).mean(axis=-1) / np.maximum((z**2).mean(axis=-1), 1e-300) ** 1.5


def _tails(x: Array) -> Array:
    z = x - x.mean(axis=-1, keepdims=True)
    return np.log((z**4).mean(axis=-1) / np.maximum((z**2).mean(axis=-1), 1e-300) ** 2 + 1e-12)


STATISTICS = {
    "spread": lambda x: np.log(x.std(axis=-1) + 1e-300),
    "skewness": _skewness,
    "tails": _tails,
    "zeros": lambda x: (x == 0).mean(axis=-1),
    "repeats": lambda x: (np.diff(np.sort(x, axis=-1), axis=-1) == 0).mean(axis=-1),
}
WORDS = {
    "spread": ("spreads less than", "spreads more than"),
    "skewness": ("is skewed to the left of", "is skewed to the right of"),
    "tails": ("has lighter tails than", "has heavier tails than"),
    "zeros": ("is zero less often than", "is zero more often than"),
    "repeats": ("repeats values less often than", "repeats values more often than"),
}


@dataclass(frozen=True, eq=False)
class Finding:
    """One way in which a column of a class does not look like the model."""

    column: str
    label: Any
    statistic: str
    surprise: float  # standard deviations of the model's own samples
    better: str | None  # a family that explains the column better
    decibans: float  # by how much, over all rows of the class

    def __str__(self) -> str:
        what = WORDS[self.statistic][self.surprise > 0]
        text = f"{self.column!r} in class {self.label!r} {what} the model says"
        if self.better is None:
            return f"{text}. Calibration will not mend its shape; consider other columns, or bins."
        return f"{text}: {self.better} is {self.decibans:,.0f} dban better."


@dataclass(frozen=True, eq=False, repr=False)
class FitReport:
    """What does not look like the model, most surprising first."""

    findings: tuple[Finding, ...]
    checked: int  # columns × classes

    def __str__(self) -> str:
        if not self.findings:
            return f"{self.checked} columns and classes look like samples of the model."
        return "\n".join(map(str, self.findings))

    def __repr__(self) -> str:
        return f"FitReport({len(self.findings)} findings in {self.checked} columns and classes)"


def check_fit(predictor: Predictor, table: Table, y: Any, random_state: Any = 0) -> FitReport:
    """Compare numeric columns with samples of the model, class by class."""
    rng = np.random.default_rng(random_state)
    model = predictor.model
    codes = place_labels(y, len(table), model.classes)
    findings, checked = [], 0
    for k, label in enumerate(model.classes):
        rows = np.flatnonzero(codes == k)
        if len(rows) < 8:
            continue
        if len(rows) > MOST_ROWS:
            rows = rng.choice(rows, MOST_ROWS, replace=False)
        drawn = predictor.density.sample(np.full(REPLICATES * len(rows), k), rng)
        for name, values, samples in _columns(model, table, rows, drawn):
            checked += 1
            seen = values[~np.isnan(values)]
            if len(seen) < 8:
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
            continue  # names are what they are; sparse counts have too many columns
        raw = np.asarray(table.take(rows).pick(at), dtype=float)
        for j, place in enumerate(at):
            yield str(model.reader.columns[place]), raw[:, j], sampled[:, j]


def _surprises(values: Array, samples: Array) -> tuple[str, float] | None:
    """The statistic that is furthest from what samples show, if it is far."""
    worst = None
    for name, statistic in STATISTICS.items():
        expected, own = statistic(samples), float(statistic(values))
        surprise = (own - expected.mean()) / max(float(expected.std()), 1e-3)
        if abs(surprise) > FAR and (worst is None or abs(surprise) > abs(worst[1])):
            worst = name, float(surprise)
    return worst


def _alternative(values: Array, judged: int, total: int) -> tuple[str | None, float]:
    """The family of the column with the highest leave-one-out density, against a Gaussian; None if there is none."""
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
