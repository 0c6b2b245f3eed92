"""Normal and Student densities whose features vary independently; what is missing adds nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from deciban import kernels
from deciban.families.gaussian.densities import FAR, LARGE_DOF, elliptical, from_origin, stretch
from deciban.families.protocol import Density
from deciban.statistics import Array

BLOCK_CELLS = 2**14  # values worked on at a time: several temporary arrays of them stay in the cache


def sum_of_logs(factors: Array) -> Array:
    """Σ log along the last axis, by logs of products of eight: products are cheap.

    No factor may be so small or so large that its eighth power leaves the range of floats: about 1e±38.
    """
    for _ in range(3):
        half = factors.shape[-1] // 2
        if half == 0:
            break
        odd = factors[..., 2 * half :]
        factors = factors[..., :half] * factors[..., half : 2 * half]
        factors[..., : odd.shape[-1]] *= odd
    return np.log(factors).sum(axis=-1)


def axis_scores(squares: Array, variance: Array, dof: Array | None, seen: Array | None, pooled: bool) -> Array:
    """(n,) log density from squared residuals (n, D).

    Features that share one variance also share one Student density: their distances add up before it, not after.
    """
    distance, log_det = squares / variance, np.log(variance)
    if pooled or dof is None:
        if seen is None:
            count: Any = squares.shape[-1]
            log_det = np.broadcast_to(log_det, squares.shape) if log_det.shape[-1] != count else log_det
        else:
            distance, log_det, count = np.where(seen, distance, 0.0), np.where(seen, log_det, 0.0), seen.sum(axis=-1)
        total = None if dof is None else dof[..., 0]
        return elliptical(distance.sum(axis=-1), log_det.sum(axis=-1), total, count)
    if seen is None and dof.shape[-1] == 1 and np.max(dof, initial=0.0) < LARGE_DOF:
        norm = elliptical(np.zeros(1), log_det, dof, 1).sum(axis=-1)
        distance /= dof
        distance += 1.0
        return norm - 0.5 * (dof[..., 0] + 1) * sum_of_logs(distance)
    parts = elliptical(distance, log_det, dof, 1)
    return (parts if seen is None else np.where(seen, parts, 0.0)).sum(axis=-1)


@dataclass(frozen=True, eq=False)
class AxisDensity(Density):
    """Means and squared scales along the axes."""

    origin: Array  # (D,)
    mean: Array  # (K, D) from the origin
    variance: Array  # (K, D); of a Student density its squared scale

    @property
    def K(self) -> int:
        return len(self.mean)

    @property
    def far(self) -> bool:
        """Whether the origin is so far from zero that sums with it would cost digits."""
        return bool((self.origin**2 > FAR**2 * self.variance.min(axis=0, initial=np.inf)).any())

    def select(self, features: Array) -> AxisDensity:
        """The density of some features."""
        at = np.asarray(features)
        return replace(self, origin=self.origin[at], mean=self.mean[:, at], variance=self.variance[:, at])

    def squares(self, X: Array, k: int) -> Array:
        """(n, D) squared residuals from the mean of group k."""
        return ((X - self.origin) - self.mean[k]) ** 2

    def dense_scores(self, X: Array, dof: Array, pooled: bool) -> Array:
        """(n, K) Student scores, a block of rows and a class at a time."""
        if (dof == dof[:, :1]).all():  # nothing was missing
            dof = dof[:, :1]
        scores = np.empty((len(X), self.K))
        block = max(16, BLOCK_CELLS // max(1, X.shape[1]))
        for at in range(0, len(X), block):
            Z = X[at : at + block] - self.origin
            seen = ~np.isnan(Z)
            mask = None if seen.all() else seen
            for k in range(self.K):
                squares = Z - self.mean[k]
                squares *= squares
                scores[at : at + block, k] = axis_scores(squares, self.variance[k], dof[k], mask, pooled)
        return scores

    def distances(self, X: Any) -> Array:
        """(n, K) Σ(x−μ)²/variance of a sparse table: that of a row of zeros, plus what the stored entries change."""
        mean, half = self.origin + self.mean, 1 / self.variance
        linear = kernels.sparse_scores(X.data, X.indices, X.indptr, -2 * (half * mean).T, (half * mean**2).sum(axis=1))
        return linear + kernels.sparse_scores(X.data**2, X.indices, X.indptr, half.T, np.zeros(self.K))


@dataclass(frozen=True, eq=False)
class DiagonalNormal(AxisDensity):
    """Independent normal features with known means and variances."""

    tied: bool = False

    def log_density(self, X: Any) -> Array:
        """(n, K)."""
        log_norm = -0.5 * np.log(2 * np.pi * self.variance)
        if sp.issparse(X):
            return log_norm.sum(axis=1) - 0.5 * self.distances(X)
        half = 0.5 / self.variance
        return from_origin(
            X, self.origin, self.far, lambda rows, at: kernels.diagonal_scores(rows, self.mean + at, half, log_norm)
        )

    def parts(self, X: Any) -> Array:
        """(n, K, D); a missing value says nothing."""
        X = X.toarray() if sp.issparse(X) else X
        parts = [elliptical(self.squares(X, k) / v, np.log(v), None, 1) for k, v in enumerate(self.variance)]
        return np.nan_to_num(np.stack(parts, axis=1), nan=0.0, neginf=-np.inf)

    def polynomial(self) -> tuple[Array | None, Array, Array]:
        """A = −½Λ, b = Λμ, c = −½μᵀΛμ + ½log|Λ|; a shared Λ leaves b and c."""
        mean = self.origin + self.mean
        b = mean / self.variance
        c = -0.5 * (mean * b).sum(axis=1)
        if self.tied:
            return None, b, c
        A = np.stack([np.diag(-0.5 / variance) for variance in self.variance])
        return A, b, c - 0.5 * np.log(2 * np.pi * self.variance).sum(axis=1)

    def sample(self, codes: Array, rng: np.random.Generator) -> Array:
        """Normal rows."""
        noise = rng.standard_normal((len(codes), len(self.origin)))
        return self.origin + (self.mean[codes] + noise * np.sqrt(self.variance[codes]))


@dataclass(frozen=True, eq=False)
class DiagonalStudent(AxisDensity):
    """Independent features, mean and variance integrated out."""

    dof: Array  # (K, D)

    def select(self, features: Array) -> DiagonalStudent:
        """The density of some features."""
        return replace(super().select(features), dof=self.dof[:, np.asarray(features)])  # type: ignore[call-arg, return-value]

    def log_density(self, X: Any) -> Array:
        """(n, K), a class at a time."""
        if sp.issparse(X):
            return self._sparse(X)
        return self.dense_scores(X, self.dof, pooled=False)

    def _sparse(self, X: Any) -> Array:
        """The score of a row of zeros, plus what the stored entries change."""
        row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        scores = np.empty((X.shape[0], self.K))
        for k, (mean, variance, dof) in enumerate(zip(self.origin + self.mean, self.variance, self.dof)):
            log_det = np.log(variance)
            zero = elliptical(mean**2 / variance, log_det, dof, 1)
            at = X.indices
            there = elliptical((X.data - mean[at]) ** 2 / variance[at], log_det[at], dof[at], 1)
            scores[:, k] = zero.sum() + np.bincount(row, there - zero[at], minlength=X.shape[0])
        return scores

    def parts(self, X: Any) -> Array:
        """(n, K, D); a missing value says nothing."""
        X = X.toarray() if sp.issparse(X) else X
        each = enumerate(zip(self.variance, self.dof))
        parts = [elliptical(self.squares(X, k) / v, np.log(v), f, 1) for k, (v, f) in each]
        return np.nan_to_num(np.stack(parts, axis=1), nan=0.0, neginf=-np.inf)

    def sample(self, codes: Array, rng: np.random.Generator) -> Array:
        """Every value with a variance of its own."""
        noise = rng.standard_normal((len(codes), len(self.origin)))
        return self.origin + (self.mean[codes] + noise * np.sqrt(self.variance[codes]) * stretch(self.dof, codes, rng))


@dataclass(frozen=True, eq=False)
class SphericalStudent(AxisDensity):
    """Features that share one variance, integrated out with the means: they are no longer independent."""

    dof: Array  # (K,)

    def log_density(self, X: Any) -> Array:
        """(n, K), a class at a time."""
        if sp.issparse(X):
            return elliptical(self.distances(X), np.log(self.variance).sum(axis=1), self.dof, X.shape[1])
        return self.dense_scores(X, self.dof[:, None], pooled=True)

    def sample(self, codes: Array, rng: np.random.Generator) -> Array:
        """Every row with a variance of its own."""
        noise = rng.standard_normal((len(codes), len(self.origin)))
        return self.origin + (self.mean[codes] + noise * np.sqrt(self.variance[codes]) * stretch(self.dof, codes, rng))
