"""The prior in plain terms: so many pseudo-rows of a target covariance, around a mean."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deciban.families.gaussian.sums import DiagonalStats, GaussianStats
from deciban.linalg import EPS
from deciban.statistics import Array

FLOOR = 1e-9  # of the largest variance: what a column that never varied is taken to vary


@dataclass(frozen=True, eq=False)
class Prior:
    """Normal–inverse-Wishart in plain terms: ν0 = strength + D + 1 and Ψ0 = strength × target.

    The posterior mean of a covariance is then (strength × target + scatter)/(strength + n).
    """

    kappa: float
    strength: float
    mean: Array  # (D,) m0, from the origin of the sums
    target: Array  # (D,) variances, or (D, D)

    @property
    def matrix(self) -> Array:
        return np.diag(self.target) if self.target.ndim == 1 else self.target

    @property
    def variances(self) -> Array:
        return self.target if self.target.ndim == 1 else self.target.diagonal()


def pooled_mean(stats: GaussianStats | DiagonalStats) -> Array:
    """(D,) the mean of all rows."""
    each = stats.diagonal()
    n = each.weight.sum(axis=0)
    return stats.origin + each.first.sum(axis=0) / np.where(n > 0, n, 1.0)


def pooled_target(stats: GaussianStats | DiagonalStats, target: str) -> Array:
    """What the rows of a class vary about their own mean, all classes together: the target of the prior."""
    variances = pooled_variances(stats.diagonal())
    if target == "spherical":
        return np.full_like(variances, variances.mean() if variances.size else 1.0)
    if target == "diagonal" or isinstance(stats, DiagonalStats):
        return variances
    _, scatter = stats.scatter()
    matrix = scatter.sum(axis=0) / max(stats.weight.sum(), 1.0)
    np.fill_diagonal(matrix, variances)
    return matrix


def pooled_variances(stats: DiagonalStats) -> Array:
    """(D,) variances within classes; of all rows where classes have one row each; a trifle where nothing varies.

    The trifle is `FLOOR` of the largest variance, or of the largest squared mean where no column varies at all: small
    against whatever is measured, yet never zero, so that a constant column leaves every density finite. A column of
    which at most one value was seen may be as wide as the widest.
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
