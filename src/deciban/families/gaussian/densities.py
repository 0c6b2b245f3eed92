"""Normal and Student densities with a covariance matrix; rows with gaps score by their marginal.

Everything is measured from the origin of the sums, so that data at 1e8 with a spread of 1 keep their digits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import betaln, gammaln

from deciban import kernels
from deciban.families.protocol import Density
from deciban.linalg import whiten
from deciban.statistics import Array

FAR = 1e4  # standard deviations from zero beyond which adding the origin to a mean would cost digits
BLOCK_ROWS = 8192
LARGE_DOF = 1e4  # from here on log1p is worth its time: what it is multiplied by would show its rounding


def elliptical(distance: Array, log_det: Array, dof: Array | None, D: Array | int) -> Array:
    """Log density in D dimensions at a squared distance, both in units of the scale matrix; dof None is normal.

    >>> elliptical(np.array([0.0]), np.array([0.0]), None, 1).round(4)
    array([-0.9189])
    """
    if dof is None:
        return -0.5 * (D * np.log(2 * np.pi) + log_det + distance)
    half = np.maximum(D, 1) / 2  # in no dimensions at all the answer is 0 whatever the constant
    # Γ((f+D)/2)/Γ(f/2) by the beta function, which keeps its digits where f is large
    constant = np.where(np.greater(D, 0), gammaln(half) - betaln(dof / 2, half) - D / 2 * np.log(np.pi * dof), 0.0)
    stretched = distance / dof
    logarithm = np.log(1 + stretched) if np.max(dof, initial=0.0) < LARGE_DOF else np.log1p(stretched)
    return constant - 0.5 * (log_det + (dof + D) * logarithm)


def from_origin(X: Array, origin: Array, far: bool, score: Callable[[Array, Array], Array]) -> Array:
    """score(X, origin): directly, or a block of rows at a time relative to the origin where it is far away."""
    if not far:
        return score(X, origin)
    zero = np.zeros_like(origin)
    blocks = [score(X[at : at + BLOCK_ROWS] - origin, zero) for at in range(0, len(X), BLOCK_ROWS)]
    return np.concatenate(blocks) if blocks else score(X, origin)


def distances(X: Array, origin: Array, mean: Array, whitener: Array, unit: float = 1.0) -> Array:
    """(n, K) squared distances from the means; `unit` × whitener has standard deviations in it."""
    far = bool((np.abs(origin) * np.sqrt((whitener**2).sum(axis=2).max(axis=0)) > FAR / unit).any())
    return from_origin(X, origin, far, lambda rows, at: kernels.whitened_distances(rows, mean + at, whitener, at))


@dataclass(frozen=True, eq=False)
class MatrixDensity(Density):
    """K ellipsoids; one scale matrix each, or one for all."""

    origin: Array  # (D,)
    mean: Array  # (K, D) from the origin
    scale: Array  # (K or 1, D, D), to be divided by
    divisor: Array  # (K,)
    dof: Array | None = None  # (K,) degrees of freedom; None is normal
    whitener: Array | None = None  # of `scale`, where it is known already
    log_det: Array | None = None

    @property
    def K(self) -> int:
        return len(self.mean)

    def _root(self) -> tuple[Array, Array]:
        if self.whitener is not None and self.log_det is not None:
            return self.whitener, self.log_det
        root = whiten(self.scale)
        return root.whitener, root.log_det

    def log_density(self, X: Array) -> Array:
        """(n, K); what is missing is integrated out."""
        whitener, log_det = self._root()
        D = X.shape[1]
        distance = distances(X, self.origin, self.mean, whitener, float(np.sqrt(np.max(self.divisor))))
        gaps = np.flatnonzero(np.isnan(distance[:, 0]))
        log_det = log_det - D * np.log(self.divisor)
        if self.dof is None:  # as `elliptical`, without fetching fresh memory, which costs more than the arithmetic
            scores = np.multiply(distance, -0.5 * self.divisor, out=distance)
            scores += elliptical(np.zeros(1), log_det, None, D)
        else:
            scores = elliptical(distance * self.divisor, log_det, self.dof, D)
        if len(gaps):
            self._fill_gaps(scores, X, gaps)
        return scores

    def _fill_gaps(self, scores: Array, X: Array, gaps: Array) -> None:
        """Rows that miss the same features share a marginal."""
        patterns, which = np.unique(np.isnan(X[gaps]), axis=0, return_inverse=True)
        for at, missing in enumerate(patterns):
            rows, seen = gaps[which == at], np.flatnonzero(~missing)
            if not len(seen):
                scores[rows] = 0.0
            elif missing.any():
                scores[rows] = self.select(seen).log_density(X[np.ix_(rows, seen)])

    def select(self, features: Array) -> MatrixDensity:
        """The marginal density of some features: the sub-vector and sub-matrix, degrees of freedom kept."""
        features = np.asarray(features)
        scale = self.scale[:, features[:, None], features]
        return type(self)(self.origin[features], self.mean[:, features], scale, self.divisor, self.dof)

    def sample(self, codes: Array, rng: np.random.Generator) -> Array:
        """Normal rows, stretched by a chi-square where the density is Student's."""
        whitener, _ = self._root()
        rows = rng.standard_normal((len(codes), self.mean.shape[1]))
        for k in np.unique(codes):
            own = codes == k
            shape = whitener[k if len(whitener) > 1 else 0]
            # z·whitener⁻¹ has covariance whitener⁻ᵀ·whitener⁻¹ = scale
            rows[own] = solve_triangular(shape, rows[own].T, trans=1).T / np.sqrt(self.divisor[k])
        return self.origin + (self.mean[codes] + rows * stretch(self.dof, codes, rng))


def stretch(dof: Array | None, codes: Array, rng: np.random.Generator) -> Array | float:
    """√(f/χ²_f) per row, or per row and feature: what makes a normal sample a Student sample."""
    return 1.0 if dof is None else np.sqrt(dof[codes] / rng.chisquare(dof[codes])).reshape(len(codes), -1)


class NormalDensity(MatrixDensity):
    """Normal densities with known means and covariances."""

    def polynomial(self) -> tuple[Array | None, Array, Array]:
        """A = −½Λ, b = Λμ, c = −½μᵀΛμ + ½log|Λ|; a shared Λ leaves b and c."""
        whitener, log_det = self._root()
        mean = self.origin + self.mean
        root = whitener * np.sqrt(self.divisor[: len(whitener), None, None])
        inner = np.einsum("kd,kde->ke", mean, np.broadcast_to(root, (self.K, *root.shape[1:])))
        b = np.einsum("ke,kde->kd", inner, np.broadcast_to(root, (self.K, *root.shape[1:])))
        c = -0.5 * (inner**2).sum(axis=1)
        if len(whitener) < self.K:
            return None, b, c
        D = mean.shape[1]
        precision = root @ root.transpose(0, 2, 1)
        return -0.5 * precision, b, c - 0.5 * (log_det - D * np.log(self.divisor) + D * np.log(2 * np.pi))


class StudentDensity(MatrixDensity):
    """Normal densities with mean and covariance integrated out."""
