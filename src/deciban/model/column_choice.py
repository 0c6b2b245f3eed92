"""The family of each column of numbers: which, and why.

A column gets the family with the highest leave-one-out density of its class. All candidates are compared in one
measure: values that were rounded by the probability of the cell they stand for (else a density concentrated on a
repeated value could be as high as it likes), others by density. Powers and logarithms include their slope, bins divide
by their width. Columns that have the same candidate are scored together: their features are independent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from deciban.errors import DecibanError
from deciban.evidence.scores import convert, log_posterior
from deciban.families.binned import Binned, left_out_histograms
from deciban.families.gaussian import Gaussian
from deciban.families.limits import NO_LIMIT, limits_of, masked
from deciban.families.mapped import MappedDensity
from deciban.families.poisson import Poisson
from deciban.families.protocol import Family, Rule
from deciban.families.transformed import Transformed
from deciban.read.numbers import grid_of
from deciban.statistics import Array, Members

BINS = (5, 10, 20, 40)
MOST_DECIBANS = 100_000  # that a comparison names: larger figures come from single rows, and say no more
GAIN = 2.0  # nats over all rows by which a richer candidate must be better
ROWS_PER_BIN = 4  # and class: fewer do not show its height
POINTS = (np.arange(9) - 4) / 9  # positions in a cell at which a density is averaged; the one in the middle is 0
CELLS = 2**21  # scores of rows, classes and columns that are computed together


@dataclass(frozen=True)
class Choice:
    """The family that fits a column best, and by how much."""

    family: Family[Any]
    name: str
    decibans: float  # over the runner-up, all rows together
    runner_up: str
    rows: int  # compared
    limit: float = NO_LIMIT  # numbers of larger absolute value count as missing
    absurd: int = 0  # such numbers in the rows compared

    @property
    def reason(self) -> str:
        """What was chosen, for people."""
        why = "fits best" if self.decibans >= 0 else f"fits as well as {self.runner_up} and is simpler"
        absurd = "" if not self.absurd else f"; absurd numbers count as missing ({self.absurd:,} of the first rows)"
        return f"{self.name} ({why}){absurd}"

    @property
    def comparison(self) -> str:
        """By how much, for people who ask."""
        if abs(self.decibans) >= MOST_DECIBANS:  # one row far away from all others is enough
            return f"more than {MOST_DECIBANS:,} decibans over {self.runner_up} in {self.rows:,} rows"
        return f"{self.decibans:+,.0f} decibans over {self.runner_up} in {self.rows:,} rows".replace("-", "−")


def choose_families(X: Array, members: Members, kinds: Sequence[str]) -> list[Choice]:
    """Choose for each column the candidate with the highest leave-one-out density; of equally good ones, the simpler.

    Absurd numbers, such as 99999999 for an unknown age, count as missing, also in rows that are learnt later.

    >>> rng = np.random.default_rng(0)
    >>> members = Members.hard(rng.integers(0, 2, 500), 2)
    >>> choose_families(np.exp(rng.normal(3.0, 1.0, (500, 1))), members, ["number"])[0].name
    'log-normal'
    """
    step = max(1, CELLS // max(1, len(X) * members.K))
    parts = [slice(at, at + step) for at in range(0, X.shape[1], step)]
    return [choice for part in parts for choice in _choose_some(X[:, part], members, kinds[part])]


def _choose_some(X: Array, members: Members, kinds: Sequence[str]) -> list[Choice]:
    """Choose the families of some columns."""
    known = (~np.isnan(X)).sum(axis=0)
    limit = limits_of(X)
    X = masked(X, limit)
    limits = [None] * len(kinds) if limit is None else list(limit[:, None])
    seen = ~np.isnan(X)
    grids = [grid_of(x[one]) if one.any() else None for x, one in zip(X.T, seen.T)]
    offered = [candidates(X[:, [j]], members, kind, limits[j]) for j, kind in enumerate(kinds)]
    scores: list[dict[str, float]] = [{} for _ in kinds]
    for name in dict.fromkeys(name for each in offered for name in each):
        at = [j for j, each in enumerate(offered) if name in each]
        found = density_scores(offered[at[0]][name], X[:, at], members, [grids[j] for j in at])
        for j, score in zip(at, found):
            if score is not None:
                scores[j][name] = score
    chosen = []
    for j, each in enumerate(scores):
        each = {name: each[name] for name in offered[j] if name in each}  # the simpler ones first
        best = next(iter(each))
        for name in each:
            if each[name] > each[best] + GAIN:
                best = name
        second = max((name for name in each if name != best), key=lambda name: each[name], default=best)
        gain = float(convert(each[best] - each[second], "decibans"))
        rows = int(seen[:, j].sum())
        own = NO_LIMIT if limit is None else float(limit[j])
        chosen.append(Choice(offered[j][best], best, gain, second, rows, own, int(known[j]) - rows))
    return chosen


def candidates(X: Array, members: Members, kind: str, limit: Array | None = None) -> dict[str, Family[Any]]:
    """Return the families that a column of numbers may have, the simpler ones first."""
    seen = X[~np.isnan(X)]
    found: dict[str, Family[Any]] = {"normal": Gaussian("diagonal", limit=limit)}
    if kind == "number" and len(seen) and seen.min() > 0:
        found["log-normal"] = Transformed("log", outside="gap", reach=limit)  # a zero in later rows counts as missing
    found["normal after a power transform"] = Transformed("yeo-johnson", reach=limit)
    if kind == "count":
        found["Poisson"] = Poisson(limit=limit)
    bins = best_bins(X, members)
    found[f"split into {bins} ranges"] = Binned(bins, limit=limit)
    return found


def best_bins(X: Array, members: Members) -> int:
    """Return how many bins predict the labels best, each row left out in turn; of equally good numbers the least."""
    most = min(2 * len(np.unique(X)), len(X) // (ROWS_PER_BIN * members.K) + 1)
    tried = [bins for bins in BINS if bins == BINS[0] or bins < most]
    best, least, label_loss = BINS[0], np.inf, LabelLoss(members)
    for bins, loss in zip(tried, label_loss.of_each(left_out_histograms(X[:, 0], members, tried))):
        if loss < least - GAIN / len(X):
            best, least = bins, loss
    return best


class LabelLoss:
    """The mean log loss of the labels, by left-out scores and the proportions of the classes."""

    def __init__(self, members: Members) -> None:
        self.codes, self.weight = members.codes, members.row_weights()
        with np.errstate(divide="ignore"):
            self.log_prior = np.log(members.weights()) - np.log(self.weight.sum())

    def of_each(self, scores: Sequence[Array]) -> list[float]:
        """Return the mean losses of several scores, shape (n, K) each."""
        with np.errstate(divide="ignore"):
            posterior = log_posterior(np.concatenate(scores), self.log_prior)
        own = posterior.reshape(len(scores), len(self.codes), -1)[:, np.arange(len(self.codes)), self.codes]
        return [self.mean(-each) for each in own]

    def of_rows(self, scores: Array) -> Array:
        """Return the loss of each row by scores (n, K), shape (n,)."""
        with np.errstate(divide="ignore"):
            return np.asarray(-log_posterior(scores, self.log_prior)[np.arange(len(self.codes)), self.codes])

    def mean(self, losses: Array) -> float:
        """Return the mean of losses (n,), by the weights of the rows."""
        return float(np.average(losses, weights=self.weight))


def density_scores(
    family: Family[Any], X: Array, members: Members, grids: Sequence[float | None]
) -> list[float | None]:
    """Return for each column Σ w · log density, or probability of the cell, of each value in its class without itself.

    None where the family is no candidate for the rows.
    """
    try:
        return list(_density_scores(_without_limit(family), X, members, grids))
    except DecibanError:
        if X.shape[1] == 1:
            return [None]
        one_by_one = [density_scores(family, X[:, [j]], members, grids[j : j + 1]) for j in range(X.shape[1])]
        return [score for (score,) in one_by_one]


def _density_scores(family: Any, X: Array, members: Members, grids: Sequence[float | None]) -> Array:
    """(D,) as `density_scores`."""
    stats = family.collect(X, members)
    family = family.choose(stats)
    density, own = family.estimate(stats, "mean"), members.own_codes()
    each = family.left_out_features(stats, X, members, "mean")[np.arange(len(X)), own] + _log_slope(density, X)
    rounded = [j for j, grid in enumerate(grids) if grid is not None]
    if rounded and not isinstance(family, Poisson):
        units = np.array([grids[j] for j in rounded], dtype=float)
        # no cell crosses the edge of a bin
        inside = 0.0 if isinstance(family, Binned) else _within_cell(density, X, own, grids)[:, rounded]
        each[:, rounded] = np.minimum(each[:, rounded] + np.log(units) + inside, 0.0)
    return np.asarray(members.row_weights() @ np.where(np.isnan(X), 0.0, each))


def _log_slope(density: Any, X: Array) -> Array | float:
    """(n, D) the logarithm of the slope of the map of each value; 0 where values are not mapped."""
    return density.family.log_slope(X, density.map) if isinstance(density, MappedDensity) else 0.0


def _within_cell(density: Any, X: Array, own: Array, grids: Sequence[float | None]) -> Array:
    """(n, D) the log of the mean density over a cell, relative to the density at its middle; of columns with a grid."""
    units = np.array([grid or 0.0 for grid in grids])
    rows = np.arange(len(X))
    with np.errstate(invalid="ignore", divide="ignore"):
        moved = (X + units * point for point in POINTS)
        found = np.stack([density.parts(each)[rows, own] + _log_slope(density, each) for each in moved])
        relative = found - found[len(POINTS) // 2]
    return np.log(np.mean(np.exp(np.minimum(np.nan_to_num(relative, nan=-np.inf), 700.0)), axis=0))


def left_out_columns(X: Array, members: Members, families: Sequence[Family[Any]], rule: Rule) -> list[Array]:
    """Return leave-one-out scores of each column under its family, shape (n, K) each; no number is absurd."""
    found: dict[int, Array] = {}
    for kind in dict.fromkeys(map(repr, families)):
        at = [j for j, family in enumerate(families) if repr(family) == kind]
        family: Any = _without_limit(families[at[0]])
        stats = family.collect(X[:, at], members)
        scores = family.choose(stats).left_out_features(stats, X[:, at], members, rule)
        found |= {j: scores[:, :, place] for place, j in enumerate(at)}
    return [found[j] for j in range(len(families))]


def _without_limit(family: Family[Any]) -> Family[Any]:
    """Return the family for columns whose absurd numbers are missing already."""
    if isinstance(family, Transformed):
        return replace(family, reach=None)
    return replace(family, limit=None) if isinstance(family, Gaussian | Poisson | Binned) else family
