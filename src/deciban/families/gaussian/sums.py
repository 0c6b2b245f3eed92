"""What a Gaussian needs of the data: sums about a fixed origin.

Sums about an origin near the data stay linear, so they add, subtract and scale, and yet keep their digits where raw
sums lose them. Two origins are made one by moving the second: with δ the step, s' = s − nδ, S' = S − sδᵀ − δsᵀ + nδδᵀ.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from deciban import kernels
from deciban.errors import DecibanError
from deciban.linalg import EPS
from deciban.statistics import Array, Axis, Members, Stats, fixed, summed
from deciban.statistics.base import TOLERANCE

ORIGIN_ROWS = 1024  # enough to place the origin within the data; a second pass over everything would double the cost


class OriginSums(Stats):
    """Sums about an origin: how they are re-based, tidied, and how rows that were never learnt show."""

    origin: Array

    @abstractmethod
    def about(self, origin: Array) -> Self:
        """The same sums, measured from another origin."""

    @abstractmethod
    def diagonal(self) -> DiagonalStats:
        """Each feature by itself."""

    def settle(self, other: Self) -> tuple[Self, Self]:
        """The second moves to the origin of the first."""
        return self, other.about(self.origin)

    def _refuse_negative(self, other: Self, error: type[DecibanError]) -> None:
        """Also refuse what leaves a negative variance, or sums without rows."""
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
                f"class {was.labels['class'].names[k]!r}, feature {d} would have {what}; these rows were never "  # type: ignore[union-attr]
                "learnt by this model. Nothing was changed: unlearn only rows that were learnt, with their labels."
            )


@dataclass(frozen=True, eq=False, repr=False)
class DiagonalStats(OriginSums):
    """Each feature by itself; a missing value adds nothing."""

    weight: Array = summed("class", "feature", floor=True)  # Σ w          rows that had a value
    first: Array = summed("class", "feature")  # Σ w(x−o)
    second: Array = summed("class", "feature")  # Σ w(x−o)²
    origin: Array = fixed("feature")  # o

    def about(self, origin: Array) -> DiagonalStats:
        """The same sums, measured from another origin."""
        if np.array_equal(origin, self.origin):
            return self
        step = origin - self.origin
        second = self.second - 2 * step * self.first + self.weight * step**2
        return replace(self, first=self.first - self.weight * step, second=np.maximum(second, 0.0), origin=origin)

    def diagonal(self) -> DiagonalStats:
        return self

    def tidy(self) -> DiagonalStats:
        """No rows, no sums: exactly."""
        some = self.weight != 0
        return replace(self, first=self.first * some, second=self.second * some)

    def noise(self) -> Array:
        """(K, D) how much of Σw(x−x̄)² may be rounding."""
        return (16 + np.sqrt(self.weight)) * EPS * self.second + self.weight * (4 * EPS * self.origin) ** 2

    def scatter(self) -> tuple[Array, Array]:
        """(K, D) means from the origin, and Σw(x−x̄)²: exactly 0 where a column does not vary."""
        mean = self.first / np.where(self.weight > 0, self.weight, 1.0)
        scatter = self.second - self.first * mean
        return mean, np.where(scatter > self.noise(), scatter, 0.0)


@dataclass(frozen=True, eq=False, repr=False)
class GaussianStats(OriginSums):
    """Everything any structure can be read from, PCA and Fisher included."""

    weight: Array = summed("class", floor=True)  # Σ w
    first: Array = summed("class", "feature")  # Σ w(x−o)
    second: Array = summed("class", "feature", "feature")  # Σ w(x−o)(x−o)ᵀ
    origin: Array = fixed("feature")  # o

    def about(self, origin: Array) -> GaussianStats:
        """The same sums, measured from another origin."""
        if np.array_equal(origin, self.origin):
            return self
        step = origin - self.origin
        cross = self.first[:, :, None] * step
        second = self.second - cross - cross.transpose(0, 2, 1) + self.weight[:, None, None] * np.outer(step, step)
        return replace(self, first=self.first - self.weight[:, None] * step, second=second, origin=origin)

    def diagonal(self) -> DiagonalStats:
        """Each feature by itself."""
        weight = np.repeat(self.weight[:, None], self.first.shape[1], axis=1)
        second = np.maximum(np.diagonal(self.second, axis1=1, axis2=2), 0.0)
        return DiagonalStats(self.labels, weight, self.first, second, self.origin)

    def tidy(self) -> GaussianStats:
        """No rows, no sums: exactly."""
        some = self.weight != 0
        return replace(self, first=self.first * some[:, None], second=self.second * some[:, None, None])

    def scatter(self) -> tuple[Array, Array]:
        """Means from the origin (K, D), and Σw(x−x̄)(x−x̄)ᵀ (K, D, D): exactly 0 where a column does not vary."""
        each = self.diagonal()
        mean, variation = each.scatter()
        scatter = self.second - self.first[:, :, None] * mean[:, None, :]
        if not variation.all():
            scatter *= (variation[:, :, None] > 0) & (variation[:, None, :] > 0)
        return mean, scatter


def collect_full(X: Array, members: Members, origin: Array | None) -> GaussianStats:
    """Sums of rows and of their products."""
    origin = place_origin(X, members) if origin is None else origin
    labels = _labels(X, members)
    first, second = members.scatter(X, origin)
    return GaussianStats(labels, members.weights(), first, second, origin)


def collect_diagonal(X: Any, members: Members, origin: Array | None) -> DiagonalStats:
    """Sums of values and of their squares; in a sparse table every zero is a value, and the origin is zero."""
    if not sp.issparse(X):
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
    """A point among the first rows: their mean, rounded to the binary unit below the standard deviation.

    Rounding costs nothing and makes the sums of integers integers: they then add up to the bit, in any order.
    """
    weight = members.weight if members.shares is None else members.row_weights()
    head = np.asarray(X[:ORIGIN_ROWS] if weight is None else X[np.flatnonzero(weight)[:ORIGIN_ROWS]], dtype=float)
    seen = ~np.isnan(head)
    count = np.maximum(seen.sum(axis=0), 1)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        mean = np.where(seen, head, 0.0).sum(axis=0) / count
        sd = np.sqrt((np.where(seen, head - mean, 0.0) ** 2).sum(axis=0) / count)
        unit = np.exp2(np.floor(np.log2(sd)))
        return np.where(sd > EPS * np.abs(mean), np.round(mean / unit) * unit, mean)


def _labels(X: Any, members: Members) -> dict[str, Any]:
    return {"class": members.classes, "feature": Axis.of(X.shape[1])}
