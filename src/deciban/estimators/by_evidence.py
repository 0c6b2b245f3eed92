"""Which family a column of numbers has, by leave-one-out density: every row is judged by the others of its class.

All candidates are compared in one measure. Numbers that were rounded are measured by the mass of the cell they stand
for (else a density that has found a repeated value could be as high as it likes); others by density. Powers and
logarithms count with their slope, bins by mass over width.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from deciban.errors import DecibanError
from deciban.families.binned import Binned
from deciban.families.gaussian import Gaussian
from deciban.families.poisson import Poisson
from deciban.families.protocol import Family
from deciban.families.transformed import Transformed
from deciban.features.grid import grid_of
from deciban.score import convert, log_posterior
from deciban.statistics import Array, Members

BINS = (5, 10, 20, 40)
GAIN = 2.0  # nats over all rows that the less simple must be better by
ROWS_A_BIN = 4  # and class: fewer say nothing about its height
POINTS = (np.arange(9) - 4) / 9  # of a cell, over which a density is averaged


@dataclass(frozen=True)
class Choice:
    """The family that explains a column best, and by how much."""

    family: Family
    name: str
    decibans: float  # over the runner-up, all rows together
    runner_up: str
    rows: int  # that were judged

    def __str__(self) -> str:
        if self.decibans < 0:
            return f"{self.name}, as good as {self.runner_up} and simpler ({self.rows:,} rows)"
        return f"{self.name}, by {self.decibans:,.0f} dban over {self.runner_up} ({self.rows:,} rows)"


def choose_family(x: Array, members: Members, kind: str) -> Choice:
    """The candidate with the highest leave-one-out density; the simpler of near equals.

    >>> rng = np.random.default_rng(0)
    >>> members = Members.hard(rng.integers(0, 2, 500), 2)
    >>> choose_family(np.exp(rng.normal(3.0, 1.0, 500)), members, "number").name
    'log-Gaussian'
    """
    X = np.asarray(x, dtype=float)[:, None]
    seen = x[~np.isnan(x)]
    grid = grid_of(seen) if len(seen) else None
    scores = {}
    families = candidates(X, members, kind)
    for name, family in families.items():
        try:
            scores[name] = density_score(family, X, members, grid)
        except DecibanError:  # not a candidate for these rows
            continue
    best = next(iter(scores))
    for name in scores:
        if scores[name] > scores[best] + GAIN:
            best = name
    second = max((name for name in scores if name != best), key=lambda name: scores[name], default=best)
    gain = float(convert(scores[best] - scores[second], "decibans"))
    return Choice(families[best], best, gain, second, len(seen))


def candidates(X: Array, members: Members, kind: str) -> dict[str, Family]:
    """What may explain a column; the simpler ones first."""
    seen = X[~np.isnan(X)]
    found: dict[str, Family] = {"Gaussian": Gaussian("diagonal")}
    if kind == "number" and len(seen) and seen.min() > 0:
        found["log-Gaussian"] = Transformed("log", outside="gap")  # later rows may hold a zero: it says nothing
    found["Yeo–Johnson–Gaussian"] = Transformed("yeo-johnson")
    if kind == "count":
        found["Poisson"] = Poisson()
    bins = best_bins(X, members)
    found[f"{bins} bins"] = Binned(bins)
    return found


def best_bins(X: Array, members: Members) -> int:
    """How many bins tell the labels best, each row left out in turn; the fewer of near equals."""
    best, least = BINS[0], np.inf
    for bins in BINS:
        if bins > BINS[0] and (bins >= 2 * len(np.unique(X)) or bins * ROWS_A_BIN * members.K > len(X)):
            break
        family = Binned(bins)
        stats: Any = family.collect(X, members)
        loss = label_loss(family.leave_one_out(stats, X, members, "mean"), members)
        if loss < least - GAIN / len(X):
            best, least = bins, loss
    return best


def label_loss(scores: Array, members: Members) -> float:
    """Mean log loss of the labels, by left-out scores and the proportions of the classes."""
    weight = members.row_weights()
    with np.errstate(divide="ignore"):
        posterior = log_posterior(scores, np.log(members.weights()) - np.log(weight.sum()))
    return float(np.average(-posterior[np.arange(len(scores)), members.codes], weights=weight))


def density_score(family: Family, X: Array, members: Members, grid: float | None) -> float:
    """Σ w · log density, or mass of the cell, of each value in its own class without itself."""
    stats: Any = family.collect(X, members)
    family = family.choose(stats, (X, members))
    own = np.arange(len(X)), members.codes
    base = np.reshape(family.estimate(stats, "mean").log_base(X), -1)
    each = family.leave_one_out(stats, X, members, "mean")[own] + base
    if grid is not None and not isinstance(family, Poisson):
        each = np.minimum(each + np.log(grid) + _within_cell(family, stats, X, members, grid), 0.0)
    seen = ~np.isnan(X[:, 0])
    return float(members.row_weights()[seen] @ each[seen])


def _within_cell(family: Family, stats: Any, X: Array, members: Members, grid: float) -> Array:
    """The log of the mean density over a cell, relative to its middle."""
    if isinstance(family, Binned):
        return np.zeros(len(X))  # a cell never crosses an edge
    density = family.estimate(stats, "mean")
    own = np.arange(len(X)), members.codes

    def at(step: float) -> Array:
        moved = X + step * grid
        with np.errstate(invalid="ignore", divide="ignore"):
            return density.log_density(moved)[own] + np.reshape(density.log_base(moved), -1)

    middle = at(0.0)
    with np.errstate(invalid="ignore"):
        relative = np.stack([at(step) - middle for step in POINTS])
    return np.log(np.mean(np.exp(np.minimum(np.nan_to_num(relative, nan=-np.inf), 700.0)), axis=0))
