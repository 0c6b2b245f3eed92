"""Histograms: numbers in bins, with a Dirichlet prior.

    bin of x | θ  ~  Categorical(θ)                one θ per class
    θ             ~  Dirichlet(α)
    f(x|c)        =  θ_b · h_b(x)                  h is uniform within a bin, 1/width

Two more bins lie beyond the outermost edges, with exponential tails, so that the density integrates to one. Edges and
tails are chosen from the first rows and frozen: bins hold about equally many values, and a frequent value has its own.

Reference: Gelman et al., Bayesian Data Analysis, 3rd ed., section 3.4, for the probabilities of bins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from deciban.errors import HyperparameterError
from deciban.families import limits
from deciban.families.abilities import HasChoices
from deciban.families.categorical import Categorical
from deciban.families.dirichlet import left_over, log_theta
from deciban.families.protocol import Family
from deciban.families.transformed import MappedFamily
from deciban.read.arrays import grid_of
from deciban.read.codes import MISSING, Codes
from deciban.statistics import Array, Members


@dataclass(frozen=True, eq=False)
class Binned(MappedFamily, HasChoices):
    """Histograms of numbers; features independent given the class.

    Parameters
    ----------
    bins : int, default=10
        Largest number of bins of a feature, approximately.
    pseudo_count : float or {"evidence", "loo"}, default=1.0
        Pseudo-count α of each bin; a name chooses it at the first fit, by marginal likelihood or leave-one-out.
    edges : sequence of sequences of float, optional
        Edges of the bins of each feature, increasing. If None, they are chosen at the first fit.
    tails : array-like of shape (n_features,), optional
        Mean distance from the outermost edges, in the bins beyond them. If None, they are chosen at the first fit.
    limit : array-like of shape (n_features,), optional
        Numbers of larger absolute value count as missing. If None, there is no limit; a default fit sets one.

    Examples
    --------
    >>> waits = Binned(4).fit([[1.0], [2.0], [2.0], [3.0], [9.0], [30.0]])
    >>> waits.family.edges
    ((-0.5, 1.5, 2.5, 8.5, 39.5),)
    """

    shapes: ClassVar = {"tails": "D positive", "limit": "D positive"}

    bins: int = 10
    _: KW_ONLY
    pseudo_count: float | str = 1.0  # α
    edges: Sequence[Sequence[float]] | None = None  # converted to tuples
    tails: Array | None = None  # (D,)
    limit: Array | None = field(default=None, repr=False)  # (D,)

    def __post_init__(self) -> None:
        if not 1 <= self.bins <= 10_000:
            raise HyperparameterError(f"Binned(bins={self.bins}): give from 1 to 10,000 bins.")
        if self.edges is not None:
            edges = tuple(tuple(map(float, each)) for each in self.edges)
            if any(len(each) < 2 or (np.diff(each) <= 0).any() for each in edges):
                raise HyperparameterError(f"edges={edges}: give at least two for each feature, in increasing order.")
            object.__setattr__(self, "edges", edges)
        if self.tails is not None:
            object.__setattr__(self, "tails", np.atleast_1d(np.asarray(self.tails, dtype=float)))
        if self.limit is not None:
            object.__setattr__(self, "limit", limits.checked(self.limit, "limit"))

    def __repr__(self) -> str:
        cells = self.bins if self.edges is None else ", ".join(str(len(each) - 1) for each in self.edges)
        return f"Binned({cells})"

    # -- the map ---------------------------------------------------------------------------------------------------
    def frozen_map(self) -> Array | None:
        if self.edges is None:
            return None
        tails = np.array([(each[-1] - each[0]) / 2 for each in self.edges]) if self.tails is None else self.tails
        return _map_of(self.edges, tails)

    def find_map(self, X: Array, members: Members) -> Array:
        X, weight = limits.masked(X, self.limit), members.row_weights()
        each = [find_edges(X[:, j], weight, [self.bins])[0] for j in range(X.shape[1])]
        return _map_of(each, np.array([edges[-1] / 2 - edges[0] / 2 for edges in each]))

    def mapped(self, X: Array, map: Array) -> Codes:
        X = limits.masked(X, self.limit)
        codes = [np.searchsorted(_edges(row), x, side="right") for x, row in zip(X.T, map)]
        return Codes(np.where(np.isnan(X), MISSING, np.stack(codes, axis=1)), None)

    def log_slope(self, X: Array, map: Array) -> Array:
        X, slopes = limits.masked(X, self.limit), np.zeros(X.shape)
        for j, (x, row) in enumerate(zip(X.T, map)):
            tail, edges = row[0], _edges(row)
            at = np.searchsorted(edges, x, side="right")
            widths = np.r_[tail, np.diff(edges), tail]
            beyond = np.maximum(np.maximum(edges[0] - x, x - edges[-1]), 0.0) / tail
            slopes[:, j] = np.where(np.isnan(x), 0.0, -np.log(widths[at]) - beyond)
        return slopes

    def unmapped(self, Z: Array, map: Array, rng: np.random.Generator) -> Array:
        drawn = np.empty(Z.shape)
        for j, row in enumerate(map):
            tail, edges, at = row[0], _edges(row), Z[:, j].astype(np.intp)
            inside = rng.uniform(edges[np.clip(at - 1, 0, len(edges) - 1)], edges[np.clip(at, 0, len(edges) - 1)])
            beyond = rng.exponential(tail, len(at))
            last = np.where(at == 0, edges[0] - beyond, edges[-1] + beyond)
            drawn[:, j] = np.where((at == 0) | (at == len(edges)), last, inside)
            if _are_between_whole_numbers(edges):
                drawn[:, j] = np.floor(drawn[:, j] + 0.5)
        return drawn

    def ranges(self, feature: int, map: Array) -> list[str]:
        """Write the bins of a feature as ranges: the values below the first edge, between edges, and from the last.

        Edges halfway between whole numbers are those of a column of whole numbers, which are then named.

        Parameters
        ----------
        feature : int
            Position of the feature.
        map : ndarray of shape (n_features, 1 + edges)
            The map of the statistics.

        Returns
        -------
        list of str
            One text for each bin.

        Examples
        --------
        >>> waits = Binned(4).fit([[1.0], [2.0], [2.0], [3.0], [9.0], [30.0]])
        >>> waits.family.ranges(0, waits.stats.map)
        ['below 0', '0 to 1', '2', '3 to 8', '9 to 39', 'from 40']
        """
        edges = _edges(map[feature])
        if _are_between_whole_numbers(edges):
            whole = [(f"{low + 0.5:.15g}", f"{high - 0.5:.15g}") for low, high in pairwise(edges)]
            between = [low if low == high else f"{low} to {high}" for low, high in whole]
            return [f"below {edges[0] + 0.5:.15g}", *between, f"from {edges[-1] + 0.5:.15g}"]
        ends = [f"{edge:.6g}" for edge in edges]
        inside = [f"from {low} to {high}" for low, high in pairwise(ends)]
        return [f"below {ends[0]}", *inside, f"from {ends[-1]}"]

    # -- the inner family: categories of bins ----------------------------------------------------------------------
    def inside(self, map: Array | None) -> Family[Any]:
        if map is None:
            return Categorical(self.pseudo_count)
        cells = tuple(tuple(range(len(_edges(row)) + 1)) for row in map)
        return Categorical(self.pseudo_count, categories=cells)

    def frozen(self, map: Array, inner: Family[Any]) -> Binned:
        chosen = inner.pseudo_count if isinstance(inner, Categorical) else self.pseudo_count
        return replace(self, edges=[_edges(row).tolist() for row in map], tails=map[:, 0], pseudo_count=chosen)

    def select(self, features: Array) -> Binned:
        edges = None if self.edges is None else tuple(self.edges[j] for j in features)
        tails, limit = (None if each is None else each[features] for each in (self.tails, self.limit))
        return replace(self, edges=edges, tails=tails, limit=limit)

    def supports(self, kind: type) -> bool:
        # the frozen edges are a choice; the other abilities are those of the inner family
        return kind is HasChoices or super().supports(kind)

    def chosen_by_labels(self) -> list[str]:
        return []  # edges are quantiles, found without labels

    def keep_choices(self, chosen: Binned, with_rows: bool) -> Binned:
        return self if with_rows else replace(self, edges=chosen.edges, tails=chosen.tails)


def _map_of(edges: Sequence[Sequence[float]], tails: Array) -> Array:
    """Return the map (D, 1 + most edges): the tail, then the edges, the last one repeated."""
    if len(edges) != len(tails):
        raise HyperparameterError(
            f"edges of {len(edges)} columns and tails of {len(tails)}: give both for each column."
        )
    most = max(map(len, edges))
    padded = [np.pad(np.array(each), (0, most - len(each)), mode="edge") for each in edges]
    return np.concatenate([tails[:, None], np.stack(padded)], axis=1)


def _are_between_whole_numbers(edges: Array) -> bool:
    """Whether the edges lie halfway between whole numbers, as those of a column of whole numbers do."""
    return bool((edges % 1 == 0.5).all())


def _edges(row: Array) -> Array:
    """Return the edges in one row of the map."""
    return row[1:][np.r_[True, np.diff(row[1:]) > 0]]


def find_edges(x: Array, weight: Array, numbers: Sequence[int]) -> list[list[float]]:
    """Return edges for each number of bins, of about equal weight; a value as frequent as a bin gets its own bin.

    An edge is a round number within a quarter of a bin's weight from its quantile, so that independent fits of the same
    column often have the same edges.
    """
    known = ~np.isnan(x)
    values, place = np.unique(x[known], return_inverse=True)
    if not len(values):
        return [[-0.5, 0.5] for _ in numbers]
    counts, grid = np.bincount(place, weight[known]), grid_of(values)
    return [_edges_between(values, counts, grid, bins) for bins in numbers]


def _edges_between(values: Array, counts: Array, grid: float | None, bins: int) -> list[float]:
    """Return the edges between distinct values, in increasing order, by their counts."""
    half_range = values[-1] / 2 - values[0] / 2
    half = (grid or np.exp2(np.floor(np.log2(half_range or abs(values[0]) or 1.0))) * 2.0**-30) / 2
    shift = half if grid else 0.0  # an edge lies between two values of the grid
    alone = counts >= counts.sum() / bins
    own = values[alone]
    ends = np.array([values[0] - half, values[-1] + half])
    cuts = np.empty(0)
    if not alone.all():
        held = np.cumsum(np.where(alone, 0.0, counts))  # the other values share the bins that are left
        shares = max(bins - len(own), 1)
        low, high = np.searchsorted(held, held[-1] / shares * (np.arange(1, shares) + np.array([[-0.25], [0.25]])))
        cuts = round_between(values[low], values[high]) - shift
    if len(values) > bins:  # the ends, rounded outwards
        unit = 10.0 ** np.floor(np.log10(half_range))
        rounded = np.floor(values[[0, -1]] / unit) * unit + np.array([0.0, unit]) - shift
        ends = np.where(alone[[0, -1]], ends, rounded)
    inside = cuts[(ends[0] < cuts) & (cuts < ends[1]) & ~(np.abs(own[:, None] - cuts) < half).any(axis=0)]
    edges = np.unique(np.concatenate([ends, inside, own - half, own + half]))
    filled = np.bincount(np.searchsorted(edges, values, side="right"), minlength=len(edges) + 1)[1:-1] > 0
    if len(edges) > 2:  # an empty bin joins the next
        edges = np.concatenate([edges[:1], edges[1:-1][filled[:-1]], edges[-1:]])
    if len(edges) < 2:  # the step is below the rounding of the value
        edges = values[0] + max(abs(values[0]), 1.0) * np.array([-1e-6, 1e-6])
    return list(edges.tolist())


def round_between(low: Array, high: Array) -> Array:
    """Return the roundest numbers above `low` and at most `high`: multiples of a large 1, 2 or 5 times a power of ten.

    >>> round_between(np.array([27.3, 0.0123]), np.array([31.8, 0.0189])).tolist()
    [30.0, 0.015]
    """
    with np.errstate(all="ignore"):
        width = high - low
        usable = (width > 1e-250) & (width < 1e250)
        power = np.floor(np.log10(np.where(usable, width, 1.0)))
        units = (10.0 ** (power + np.arange(-1, 4)[:, None]))[:, None] * np.array([[1.0], [2.0], [5.0]])
        units = units.reshape(15, len(low))  # increasing
        nearest = np.round((low / 2 + high / 2) / units) * units
        numbers = np.where((low < nearest) & (nearest <= high), nearest, np.floor(high / units) * units)
        inside = (low < numbers) & (numbers <= high) & usable
    last = len(units) - 1 - np.argmax(inside[::-1], axis=0)  # the largest unit
    found = numbers[last, np.arange(len(low))]
    found = np.array([float(f"{number:.12g}") for number in found])  # without the rounding error of the product
    return np.where(inside.any(axis=0) & (low < found) & (found <= high), found, high)


def left_out_histograms(x: Array, members: Members, numbers: Sequence[int]) -> list[Array]:
    """Return leave-one-out scores of one feature for each number of bins, shape (n, K) each, under rule "mean".

    As `Binned(bins).leave_one_out`, where a bin is in the support also without rows, so that a row changes two counts
    only: those of its bin and of its class.
    """
    codes, K, weight = members.own_codes(), members.K, members.row_weights()
    rows, seen, found = np.arange(len(x)), ~np.isnan(x), []
    for edges in find_edges(x, weight, numbers):
        cell, M = np.searchsorted(edges, x, side="right"), len(edges) + 1
        counts = np.bincount((cell * K + codes)[seen], weight[seen], M * K).reshape(M, K)
        totals = counts.sum(axis=0)
        left = left_over(counts[cell, codes], weight), left_over(totals[codes], weight)
        scores = log_theta(counts, totals, 1.0, float(M), M, "mean")[cell]
        scores[rows, codes] = log_theta(*left, 1.0, float(M), M, "mean")
        found.append(np.where(seen[:, None], scores, 0.0))
    return found
