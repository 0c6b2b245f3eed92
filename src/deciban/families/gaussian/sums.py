"""Sums of a Gaussian: weights, deviations from a fixed origin, and their products.

Such sums add, subtract and scale, and keep more digits than sums of raw values, if the origin is near the data. Sums
are moved to another origin, at a distance δ, by s' = s − nδ and S' = S − sδᵀ − δsᵀ + nδδᵀ.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from deciban import kernels
from deciban.errors import DecibanError
from deciban.families.protocol import classes_of
from deciban.linalg import EPS
from deciban.read.numbers import Matrix
from deciban.statistics import Array, Axis, Labels, Members, Stats, fixed, summed
from deciban.statistics.base import TOLERANCE

FLOOR = 1e-9  # variance of a constant column, relative to the largest variance
ORIGIN_ROWS = 1024  # number of rows from which the origin is chosen, to save a pass over all rows


class OriginSums(Stats):
    """Sums about an origin; refuses to remove rows that leave a negative variance."""

    origin: Array

    @abstractmethod
    def about(self, origin: Array) -> Self:
        """Return the same sums about another origin."""

    @abstractmethod
    def diagonal(self) -> DiagonalStats:
        """Return the sums of single features, without products."""

    def settle(self, other: Self) -> tuple[Self, Self]:
        """Move the second sums to the origin of the first."""
        return self, other.about(self.origin)

    def _refuse_negative(self, other: Self, error: type[DecibanError]) -> None:
        """Refuse also what leaves a negative variance, or sums without rows."""
        super()._refuse_negative(other, error)
        was, taken = self.diagonal(), other.diagonal()
        weight, first, second = was.weight - taken.weight, was.first - taken.first, was.second - taken.second
        gone = weight <= TOLERANCE * was.weight
        scatter = second - np.where(gone, 0.0, first**2 / np.where(gone, 1.0, weight))
        slack = TOLERANCE * was.second
        left_over = (np.abs(second) > slack) | (np.abs(first) > TOLERANCE * np.sqrt(was.weight * was.second))
        wrong = np.argwhere(np.where(gone, left_over, scatter < -slack))
        if len(wrong):
            k, d = wrong[0]
            what = "sums without any rows" if gone[k, d] else f"a negative variance ({scatter[k, d]:.6g} in all)"
            raise error(
                f"class {classes_of(was.labels).names[k]!r}, feature {d} would have {what}; these rows were never "
                "learnt by this model. Nothing was changed: unlearn only rows that were learnt, with their labels."
            )


@dataclass(frozen=True, eq=False, repr=False)
class DiagonalStats(OriginSums):
    """Sums of single features; a missing value adds nothing."""

    weight: Array = summed("class", "feature", floor=True)  # Σ w          rows that have a value
    first: Array = summed("class", "feature")  # Σ w(x−o)
    second: Array = summed("class", "feature")  # Σ w(x−o)²
    origin: Array = fixed("feature")  # o

    def about(self, origin: Array) -> DiagonalStats:
        """Return the same sums about another origin."""
        if np.array_equal(origin, self.origin):
            return self
        step = origin - self.origin
        second = self.second - 2 * step * self.first + self.weight * step**2
        return replace(self, first=self.first - self.weight * step, second=np.maximum(second, 0.0), origin=origin)

    def diagonal(self) -> DiagonalStats:
        return self

    def tidy(self) -> DiagonalStats:
        """Set sums to 0 where there are no rows."""
        some = self.weight != 0
        return replace(self, first=self.first * some, second=self.second * some)

    def noise(self) -> Array:
        """(K, D) bound on the rounding error of Σw(x−x̄)²."""
        return (16 + np.sqrt(self.weight)) * EPS * self.second + self.weight * (4 * EPS * self.origin) ** 2

    def scatter(self) -> tuple[Array, Array]:
        """Return means from the origin (K, D), and Σw(x−x̄)² (K, D), exactly 0 where a column is constant."""
        mean = self.first / np.where(self.weight > 0, self.weight, 1.0)
        scatter = self.second - self.first * mean
        return mean, np.where(scatter > self.noise(), scatter, 0.0)


@dataclass(frozen=True, eq=False, repr=False)
class GaussianStats(OriginSums):
    """Sums of features and of their products, from which every structure can be estimated."""

    weight: Array = summed("class", floor=True)  # Σ w
    first: Array = summed("class", "feature")  # Σ w(x−o)
    second: Array = summed("class", "feature", "feature")  # Σ w(x−o)(x−o)ᵀ
    origin: Array = fixed("feature")  # o

    def about(self, origin: Array) -> GaussianStats:
        """Return the same sums about another origin."""
        if np.array_equal(origin, self.origin):
            return self
        step = origin - self.origin
        cross = self.first[:, :, None] * step
        second = self.second - cross - cross.transpose(0, 2, 1) + self.weight[:, None, None] * np.outer(step, step)
        return replace(self, first=self.first - self.weight[:, None] * step, second=second, origin=origin)

    def diagonal(self) -> DiagonalStats:
        """Return the sums of single features, without products."""
        weight = np.repeat(self.weight[:, None], self.first.shape[1], axis=1)
        second = np.maximum(np.diagonal(self.second, axis1=1, axis2=2), 0.0)
        return DiagonalStats(self.labels, weight, self.first, second, self.origin)

    def tidy(self) -> GaussianStats:
        """Set sums to 0 where there are no rows."""
        some = self.weight != 0
        return replace(self, first=self.first * some[:, None], second=self.second * some[:, None, None])

    def scatter(self) -> tuple[Array, Array]:
        """Return means from the origin (K, D), and Σw(x−x̄)(x−x̄)ᵀ (K, D, D), exactly 0 where a column is constant."""
        each = self.diagonal()
        mean, variation = each.scatter()
        scatter = self.second - self.first[:, :, None] * mean[:, None, :]
        if not variation.all():
            scatter *= (variation[:, :, None] > 0) & (variation[:, None, :] > 0)
        return mean, scatter


def collect_full(X: Array, members: Members, origin: Array | None) -> GaussianStats:
    """Collect sums of deviations and of their products."""
    origin = place_origin(X, members) if origin is None else origin
    return GaussianStats(_labels(X, members), *members.scatter(X, origin), origin)


def collect_diagonal(X: Matrix, members: Members, origin: Array | None) -> DiagonalStats:
    """Collect sums of deviations and of their squares; in a sparse table every zero is a value, the origin is zero."""
    if isinstance(X, np.ndarray):
        origin = place_origin(X, members) if origin is None else origin
        return DiagonalStats(_labels(X, members), *members.moments(X, origin), origin)
    if members.codes is None:
        first, second = members.total(X), members.total(X.multiply(X).tocsr())
    else:
        codes, K, D = members.codes, members.K, X.shape[1]
        first, second = kernels.sparse_class_moments(X.data, X.indices, X.indptr, codes, members.weight, K, D)
    weight = np.repeat(members.weights()[:, None], X.shape[1], axis=1)
    sums = DiagonalStats(_labels(X, members), weight, first, second, np.zeros(X.shape[1]))
    return sums if origin is None else sums.about(origin)


def place_origin(X: Array, members: Members) -> Array:
    """Return the mean of the first rows, rounded to a multiple of the power of two below the standard deviation.

    With a rounded origin, sums of integers are sums of multiples of a power of two: they are exact, in any order.
    """
    weight = members.weight if members.shares is None else members.row_weights()
    head = np.asarray(X[:ORIGIN_ROWS] if weight is None else X[np.flatnonzero(weight)[:ORIGIN_ROWS]], dtype=float)
    seen = ~np.isnan(head)
    count = np.maximum(seen.sum(axis=0), 1)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        mean = np.where(seen, head, 0.0).sum(axis=0) / count
        sd = np.sqrt((np.where(seen, head - mean, 0.0) ** 2).sum(axis=0) / count)
        unit = np.exp2(np.floor(np.log2(sd)))
        return np.asarray(np.where(sd > EPS * np.abs(mean), np.round(mean / unit) * unit, mean))


def _labels(X: Matrix, members: Members) -> dict[str, Labels]:
    return {"class": members.classes, "feature": Axis(range(X.shape[1]), X.shape[1])}


# -- what the prior takes from the sums --------------------------------------------------------------------------------
def pooled_mean(stats: GaussianStats | DiagonalStats) -> Array:
    """(D,) mean of all rows."""
    each = stats.diagonal()
    n = each.weight.sum(axis=0)
    return np.asarray(stats.origin + each.first.sum(axis=0) / np.where(n > 0, n, 1.0))


def pooled_target(stats: GaussianStats | DiagonalStats, target: str) -> Array:
    """Return the target of the prior, (D,) or (D, D): the covariance within classes, in the form of `target`."""
    variances = pooled_variances(stats.diagonal())
    if target == "spherical":
        return np.full_like(variances, variances.mean() if variances.size else 1.0)
    if target == "diagonal" or isinstance(stats, DiagonalStats):
        return variances
    _, scatter = stats.scatter()
    matrix = scatter.sum(axis=0) / max(stats.weight.sum(), 1.0)
    np.fill_diagonal(matrix, variances)
    return np.asarray(matrix)


def pooled_variances(stats: DiagonalStats) -> Array:
    """Return the variances within classes, (D,), all of them positive.

    If no class has two rows, these are the variances of all rows. A constant column gets `FLOOR` times the largest
    variance, or times the largest squared origin if all columns are constant, so that every density is finite. A column
    with at most one value gets the largest variance.
    """
    n = stats.weight.sum(axis=0)
    _, scatter = stats.scatter()
    within = scatter.sum(axis=0)
    total = np.maximum(stats.second.sum(axis=0) - stats.first.sum(axis=0) ** 2 / np.where(n > 0, n, 1.0), 0.0)
    alone = (stats.weight > 0).sum(axis=0) >= n  # no class has two rows
    noise = (16 + np.sqrt(n)) * EPS * stats.second.sum(axis=0)
    variance = np.where(alone & (total > noise), total, within) / np.where(n > 0, n, 1.0)
    magnitude = (stats.origin**2).max(initial=0.0)
    largest = variance.max(initial=0.0) or magnitude or 1.0
    return np.where(variance > 0, variance, np.where(n > 1, FLOOR * largest, largest))
