"""The normal–inverse-Wishart prior, as pseudo-rows with a target covariance about a mean.

The log prior of means and covariances, which rule "map" adds to a log-likelihood, is up to a constant

    Σ ~ inverse-Wishart(ν0, Ψ0)      −½[(ν0 + D + 1) log|Σ| + tr Ψ0Σ⁻¹]        once per covariance
    μ | Σ ~ Normal(m0, Σ/κ0)         −½[log|Σ| + κ0 (μ−m0)ᵀΣ⁻¹(μ−m0)]          once per mean

For diagonal and spherical covariances, the inverse-Wishart is an inverse gamma.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deciban.families.gaussian.densities import DiagonalNormal, NormalDensity
from deciban.families.gaussian.sums import DiagonalStats, GaussianStats
from deciban.linalg import EPS, whiten
from deciban.statistics import Array

FLOOR = 1e-9  # variance of a constant column, relative to the largest variance


@dataclass(frozen=True, eq=False)
class Prior:
    """Normal–inverse-Wishart prior with ν0 = strength + D + 1 and Ψ0 = strength × target.

    The posterior mean of a covariance is then (strength × target + scatter)/(strength + n).
    """

    kappa: float
    strength: float
    mean: Array  # (D,) m0, from the origin of the sums
    target: Array  # (D,) variances, or (D, D)

    @property
    def matrix(self) -> Array:
        """(D, D) target covariance."""
        return np.diag(self.target) if self.target.ndim == 1 else self.target

    @property
    def variances(self) -> Array:
        """(D,) target variances."""
        return self.target if self.target.ndim == 1 else self.target.diagonal()


def pooled_mean(stats: GaussianStats | DiagonalStats) -> Array:
    """(D,) mean of all rows."""
    each = stats.diagonal()
    n = each.weight.sum(axis=0)
    return np.asarray(each.origin + each.first.sum(axis=0) / np.where(n > 0, n, 1.0))


def pooled_target(stats: GaussianStats | DiagonalStats, target: str) -> Array:
    """Return the target of the prior, (D,) or (D, D): the covariance within classes, in the form of `target`."""
    stats = stats.whole()
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


def matrix_log_prior(prior: Prior, density: NormalDensity) -> float:
    """Return the log prior of full or tied covariances; `prior.mean` is relative to the density's origin."""
    D, shared = density.mean.shape[1], len(density.scale)
    root = whiten(density.scale)
    spread = np.sqrt(density.divisor[:shared])
    whitener = root.whitener * spread[:, None, None]  # of Σ = scale/divisor
    log_det = root.log_det - 2 * D * np.log(spread)
    trace = np.einsum("kde,df,kfe->k", whitener, prior.strength * prior.matrix, whitener)
    inner = np.einsum("kd,kde->ke", density.mean - prior.mean, np.broadcast_to(whitener, (density.K, D, D)))
    covariances = ((prior.strength + 2 * D + 2) * log_det + trace).sum()
    means = np.broadcast_to(log_det, density.K).sum() + prior.kappa * (inner**2).sum()
    return float(-0.5 * (covariances + means))


def axis_log_prior(prior: Prior, density: DiagonalNormal, tied: bool, pooled: bool) -> float:
    """Return the log prior of diagonal or spherical variances; `prior.mean` is relative to the density's origin."""
    D = density.mean.shape[1]
    own = density.variance[: 1 if tied else None, : 1 if pooled else None]  # each variance once
    nu = prior.strength * (D if pooled else 1) + 2
    psi = prior.strength * (prior.variances.sum(keepdims=True) if pooled else prior.variances)
    variances = ((nu + 2) * np.log(own) + psi / own).sum()
    off = (density.mean - prior.mean) ** 2 / density.variance
    return float(-0.5 * (variances + np.log(density.variance).sum() + prior.kappa * off.sum()))
