"""Normal and Student densities: with a covariance matrix, or with independent features.

Rows with missing values are scored by their marginal density. Means are relative to the origin of the sums, so that
values near 1e8 with a standard deviation of 1 keep their digits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf, dtrtri
from scipy.special import betaln, gammaln

from deciban import kernels
from deciban.errors import HyperparameterError, shortlist
from deciban.families import limits
from deciban.families.gaussian.sums import EPS
from deciban.families.protocol import Density
from deciban.kernels.choice import one_thread
from deciban.kernels.parallel import row_scores
from deciban.kernels.rows import distinct_rows
from deciban.read.arrays import Matrix
from deciban.statistics import Array

FAR = 1e4  # standard deviations of the origin from zero, beyond which origin + mean loses digits
BLOCK_ROWS = 8192
BLOCK_CELLS = 2**14  # values in a block, so that several temporary arrays fit into the cache
LARGE_DOF = 1e4  # from here on log1p is used, because rounding errors of log(1 + x) are multiplied by the dof


def elliptical(distance: Array, log_det: Array, dof: Array | None, D: Array | int) -> Array:
    """Return the log density at a squared distance in D dimensions, in units of the scale; dof None is normal.

    >>> elliptical(np.array([0.0]), np.array([0.0]), None, 1).round(4)
    array([-0.9189])
    """
    if dof is None:
        return np.asarray(-0.5 * (D * np.log(2 * np.pi) + log_det + distance))
    half = np.maximum(D, 1) / 2  # for D = 0 the constant is replaced by 0 below
    # Γ((f+D)/2)/Γ(f/2) by the beta function, which is accurate for large f
    constant = np.where(np.greater(D, 0), gammaln(half) - betaln(dof / 2, half) - D / 2 * np.log(np.pi * dof), 0.0)
    stretched = distance / dof
    logarithm = np.log(1 + stretched) if np.max(dof, initial=0.0) < LARGE_DOF else np.log1p(stretched)
    return constant - 0.5 * (log_det + (dof + D) * logarithm)


def from_origin(X: Array, origin: Array, far: bool, score: Callable[[Array, Array], Array]) -> Array:
    """Return score(X, origin); if the origin is far from zero, score(X − origin, 0), block by block."""
    if not far:
        return score(X, origin)
    zero = np.zeros_like(origin)
    blocks = [score(X[at : at + BLOCK_ROWS] - origin, zero) for at in range(0, len(X), BLOCK_ROWS)]
    return np.concatenate(blocks) if blocks else score(X, origin)


def is_far(origin: Array, whitener: Array, unit: float = 1.0) -> bool:
    """Whether the origin is so far from zero that origin + mean loses digits; `unit` × whitener is the covariance's."""
    most = np.einsum("kij,kij->ki", whitener, whitener).max(axis=0)
    return bool((np.abs(origin) * np.sqrt(most) > FAR / unit).any())


def distances(X: Array, origin: Array, mean: Array, whitener: Array, far: bool) -> Array:
    """Return squared distances from the means, shape (n, K); `far` as `is_far` has it."""
    return from_origin(X, origin, far, lambda rows, at: kernels.whitened_distances(rows, mean + at, whitener, at))


def _discriminant(shift: Array, whitened: Callable[[Array], Array]) -> tuple[Array, Array]:
    """Return weights (D, K) and bias (K,) of the scores (x − o)ᵀΛm − (c + ½m)ᵀΛm, where c is the centre of the means.

    `shift` are means from the origin o, and m those from the centre; `whitened` maps m to Λm. From the centre, the
    terms are no larger than the distances between classes, so that little precision is lost.
    """
    centre = shift.mean(axis=0)
    means = shift - centre
    weights = whitened(means)
    return np.ascontiguousarray(weights.T), -((centre + 0.5 * means) * weights).sum(axis=1)


@dataclass(frozen=True, eq=False, repr=False)
class MatrixDensity(Density):
    """Elliptical densities with a scale matrix per class, or one for all."""

    shapes: ClassVar = {
        "origin": "D real",
        "shift": "K D real",
        "scale": "S D D real",
        "divisor": "K positive",
        "dof": "K positive",
        "whitener": "S D D real",
        "log_det": "S real",
        "limit": "D positive",
    }

    origin: Array  # (D,)
    shift: Array  # (K, D) mean − origin
    scale: Array  # (K or 1, D, D), before division by `divisor`; (0, D, D) if only its whitener is known
    divisor: Array  # (K,)
    dof: Array | None = None  # (K,) degrees of freedom; None is normal
    whitener: Array | None = None  # of `scale`, if known
    log_det: Array | None = None  # of `scale`, if known
    constants: tuple[bool, Array] | None = field(init=False, repr=False)  # `_constants`, where the whitener is known
    linear: tuple[Array, Array] | None = field(init=False, repr=False)  # `_discriminant`, where classes share Σ
    _: KW_ONLY
    limit: Array | None = None  # (D,) numbers of larger absolute value count as missing

    def __post_init__(self) -> None:
        constants, linear, whitener = None, None, self.whitener
        if whitener is not None and self.log_det is not None:
            constants = self._constants(whitener, self.log_det)
            if self.dof is None and len(whitener) < self.K and (self.divisor == self.divisor[0]).all():
                with np.errstate(invalid="ignore", over="ignore"):
                    linear = _discriminant(self.shift, lambda m: m @ whitener[0] @ whitener[0].T * self.divisor[0])
        object.__setattr__(self, "constants", constants)
        object.__setattr__(self, "linear", linear)

    @property
    def K(self) -> int:
        return len(self.shift)

    @property
    def mean(self) -> Array:
        """Means in the units of the data, shape (K, D)."""
        return np.asarray(self.origin + self.shift)

    @property
    def covariance(self) -> Array:
        """Covariances, shape (K, D, D); squared scales of a Student density."""
        return np.asarray(self._scale() / self.divisor[:, None, None])

    def _scale(self) -> Array:
        if len(self.scale):
            return self.scale
        inverse = np.linalg.inv(self._root()[0])  # W·Wᵀ = scale⁻¹
        return np.asarray(inverse.transpose(0, 2, 1) @ inverse)

    def covariances(self) -> Array:
        """Return covariances, (K, D, D), also of Student densities: inf for at most 2 degrees of freedom."""
        return self.covariance * spread_of(self.dof, self.K).reshape(-1, 1, 1)

    def moments(self) -> tuple[Array, Array]:
        """Return means and variances, (K, D) each."""
        return self.mean, np.diagonal(self.covariances(), axis1=1, axis2=2)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(mean={self.mean!r}, covariance={self.covariance!r})"

    def _root(self) -> tuple[Array, Array]:
        if self.whitener is not None and self.log_det is not None:
            return self.whitener, self.log_det
        root = whiten(self._scale())
        return root.whitener, root.log_det

    def log_density(self, X: Array) -> Array:
        """Return the scores, shape (n, K); missing values are integrated out."""
        large = X.size > limits.SMALL and len(self.scale) > 0
        X = X if large or self.limit is None else limits.masked(X, self.limit)
        whitener, log_det = self._root()
        far, norm = self._constants(whitener, log_det) if self.constants is None else self.constants
        distance = distances(X, self.origin, self.shift, whitener, far)
        gaps = np.isnan(distance[:, 0])
        if large and self.limit is not None:
            gaps = ~(distance[:, 0] < limits.least_square(self.limit, self.mean[0], self.scale[0].diagonal()))
        if self.dof is None:  # as `elliptical`, but in place: allocation would cost more
            scores = np.multiply(distance, -0.5 * self.divisor, out=distance)
            scores += norm
        else:
            scores = elliptical(distance * self.divisor, norm, self.dof, X.shape[1])
        if gaps.any():
            self._fill_gaps(scores, X, np.flatnonzero(gaps))
        return scores

    def _constants(self, whitener: Array, log_det: Array) -> tuple[bool, Array]:
        """Whether origin + mean loses digits; and the log density at the mean, or log|scale| if Student, shape (K,)."""
        D = len(self.origin)
        far = is_far(self.origin, whitener, float(np.sqrt(np.max(self.divisor, initial=0.0))))
        log_det = log_det - D * np.log(self.divisor)
        return far, elliptical(np.zeros(1), log_det, None, D) if self.dof is None else log_det

    def contrast(self, X: Array) -> Array:
        """Return `log_density`, without the quadratic term that classes with one covariance share."""
        if self.linear is None:
            return self.log_density(X)
        weights, bias = self.linear
        scores = kernels.linear_scores(X, weights, bias, self.origin, self.limit)
        gaps = np.flatnonzero(np.isnan(scores[:, 0]))
        if len(gaps):
            self._fill_gaps(scores, X, gaps)
        return scores

    def _fill_gaps(self, scores: Array, X: Array, gaps: Array) -> None:
        """Score rows with missing values, those with the same features together; other rows among them stay."""
        some = limits.masked(X[gaps], self.limit)
        patterns, which = distinct_rows(np.isnan(some))
        for at, missing in enumerate(patterns):
            rows, seen = gaps[which == at], np.flatnonzero(~missing)
            if not len(seen):
                scores[rows] = 0.0
            elif missing.any():
                scores[rows] = self.select(seen).log_density(X[np.ix_(rows, seen)])

    def select(self, features: Array) -> MatrixDensity:
        """Return the marginal density of some features: sub-vector and sub-matrix, the same degrees of freedom."""
        features = np.asarray(features)
        scale = self._scale()[:, features[:, None], features]
        limit = None if self.limit is None else self.limit[features]
        return type(self)(self.origin[features], self.shift[:, features], scale, self.divisor, self.dof, limit=limit)

    def sample(self, codes: Array, rng: np.random.Generator) -> Array:
        """Draw normal rows, scaled by a chi-square variate for Student densities."""
        whitener, _ = self._root()
        rows = rng.standard_normal((len(codes), self.shift.shape[1]))
        for k in np.unique(codes):
            own = codes == k
            shape = whitener[k if len(whitener) > 1 else 0]
            # z·whitener⁻¹ has covariance whitener⁻ᵀ·whitener⁻¹ = scale
            if len(self.scale):
                noise = solve_triangular(shape, rows[own].T, trans=1)
            else:  # a whitener that was drawn is not triangular
                noise = np.linalg.solve(shape.T, rows[own].T)
            rows[own] = noise.T / np.sqrt(self.divisor[k])
        return self.origin + (self.shift[codes] + rows * stretch(self.dof, codes, rng))


def spread_of(dof: Array | None, K: int) -> Array:
    """Return the variance of a Student variate of scale 1, f/(f − 2), in the shape of `dof`; ones (K,) if normal."""
    if dof is None:
        return np.ones(K)
    with np.errstate(divide="ignore"):
        return np.where(dof > 2, dof / (dof - 2), np.inf)


def stretch(dof: Array | None, codes: Array, rng: np.random.Generator) -> Array | float:
    """Draw √(f/χ²_f) per row, or per row and feature: a normal variate times it is a Student variate."""
    if dof is None:
        return 1.0
    drawn = np.sqrt(dof[codes] / rng.chisquare(dof[codes]))
    return np.asarray(drawn if drawn.ndim > 1 else drawn[:, None])


class NormalDensity(MatrixDensity):
    """Normal densities with known means and covariances."""

    def polynomial(self) -> tuple[Array | None, Array, Array]:
        """Return A = −½Λ, b = Λμ, c = −½μᵀΛμ + ½log|Λ|; A is None if all classes share Λ."""
        whitener, log_det = self._root()
        mean = self.mean
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
    """Student densities: normal, with mean and covariance integrated out."""


# -- diagonal and spherical covariances; a missing value adds nothing -------------------------------------------------
def sum_of_logs(factors: Array) -> Array:
    """Return Σ log along the last axis, as logarithms of products of eight factors, which is faster.

    The eighth power of a factor must be in the range of floats: factors between about 1e-38 and 1e38.
    """
    for _ in range(3):
        half = factors.shape[-1] // 2
        if half == 0:
            break
        odd = factors[..., 2 * half :]
        factors = factors[..., :half] * factors[..., half : 2 * half]
        factors[..., : odd.shape[-1]] *= odd
    return np.asarray(np.log(factors).sum(axis=-1))


def axis_scores(squares: Array, variance: Array, dof: Array | None, seen: Array | None, pooled: bool) -> Array:
    """Return log densities (n,) from squared residuals (n, D).

    Features with one variance (`pooled`) have one Student density of the sum of their distances.
    """
    distance, log_det = squares / variance, np.log(variance)
    if pooled or dof is None:
        if seen is None:
            count: Array | int = squares.shape[-1]
            log_det = np.broadcast_to(log_det, squares.shape) if log_det.shape[-1] != count else log_det
        else:
            distance, log_det, count = np.where(seen, distance, 0.0), np.where(seen, log_det, 0.0), seen.sum(axis=-1)
        total = None if dof is None else dof[..., 0]
        return elliptical(distance.sum(axis=-1), log_det.sum(axis=-1), total, count)
    if seen is None and dof.shape[-1] == 1 and np.max(dof, initial=0.0) < LARGE_DOF:
        norm = elliptical(np.zeros(1), log_det, dof, 1).sum(axis=-1)
        distance /= dof
        distance += 1.0
        return np.asarray(norm - 0.5 * (dof[..., 0] + 1) * sum_of_logs(distance))
    parts = elliptical(distance, log_det, dof, 1)
    return np.asarray((parts if seen is None else np.where(seen, parts, 0.0)).sum(axis=-1))


@dataclass(frozen=True, eq=False, repr=False)
class AxisDensity(Density):
    """Means and squared scales of single features."""

    shapes: ClassVar = {"origin": "D real", "shift": "K D real", "variance": "K D positive", "limit": "D positive"}

    origin: Array  # (D,)
    shift: Array  # (K, D) mean − origin
    variance: Array  # (K, D); squared scale of a Student density
    _: KW_ONLY
    limit: Array | None = None  # (D,) numbers of larger absolute value count as missing

    @property
    def K(self) -> int:
        return len(self.shift)

    @property
    def mean(self) -> Array:
        """Means in the units of the data, shape (K, D)."""
        return np.asarray(self.origin + self.shift)

    def moments(self) -> tuple[Array, Array]:
        """Return means and variances, (K, D) each."""
        return self.mean, self.variance * spread_of(getattr(self, "dof", None), self.K).reshape(self.K, -1)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(mean={self.mean!r}, variance={self.variance!r})"

    def select(self, features: Array) -> AxisDensity:
        """Return the density of some features."""
        at = np.asarray(features)
        limit = None if self.limit is None else self.limit[at]
        return replace(
            self, origin=self.origin[at], shift=self.shift[:, at], variance=self.variance[:, at], limit=limit
        )

    def squares(self, X: Array, k: int) -> Array:
        """Return squared residuals from the mean of class k, shape (n, D)."""
        return np.asarray(((X - self.origin) - self.shift[k]) ** 2)

    def dense_scores(self, X: Array, dof: Array, pooled: bool) -> Array:
        """Return Student scores, shape (n, K), by blocks of rows and by classes."""
        X = limits.masked(X, self.limit)
        if (dof == dof[:, :1]).all():  # no value was missing
            dof = dof[:, :1]
        return row_scores(lambda rows: self._block_scores(rows, dof, pooled), X, self.K, 80 * self.shift.size)

    def _block_scores(self, X: Array, dof: Array, pooled: bool) -> Array:
        scores = np.empty((len(X), self.K))
        block = max(16, BLOCK_CELLS // max(1, X.shape[1]))
        for at in range(0, len(X), block):
            Z = X[at : at + block] - self.origin
            seen = ~np.isnan(Z)
            mask = None if seen.all() else seen
            for k in range(self.K):
                squares = Z - self.shift[k]
                squares *= squares
                scores[at : at + block, k] = axis_scores(squares, self.variance[k], dof[k], mask, pooled)
        return scores

    def distances(self, X: sp.csr_array) -> Array:
        """Return Σ(x−μ)²/variance of sparse rows, shape (n, K): that of zeros, plus the change by stored entries."""
        mean, half = self.mean, 1 / self.variance
        linear = kernels.sparse_scores(X.data, X.indices, X.indptr, -2 * (half * mean).T, (half * mean**2).sum(axis=1))
        return linear + kernels.sparse_scores(X.data**2, X.indices, X.indptr, half.T, np.zeros(self.K))

    def _draw(self, codes: Array, rng: np.random.Generator, dof: Array | None = None) -> Array:
        """Draw rows about the means; with degrees of freedom, the variances are drawn too."""
        noise = rng.standard_normal((len(codes), len(self.origin))) * np.sqrt(self.variance[codes])
        return self.origin + (self.shift[codes] + (noise if dof is None else noise * stretch(dof, codes, rng)))


@dataclass(frozen=True, eq=False, repr=False)
class DiagonalNormal(AxisDensity):
    """Independent normal features with known means and variances."""

    tied: bool = False
    far: bool = field(init=False, repr=False)  # whether origin + mean loses digits
    half: Array = field(init=False, repr=False)  # (K, D) 1/(2σ²)
    log_norm: Array = field(init=False, repr=False)  # (K, D) −½ log 2πσ²

    def __post_init__(self) -> None:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            derived = {
                "far": bool((self.origin**2 > FAR**2 * self.variance.min(axis=0, initial=np.inf)).any()),
                "half": 0.5 / self.variance,
                "log_norm": -0.5 * np.log(2 * np.pi * self.variance),
            }
        for name, value in derived.items():
            object.__setattr__(self, name, value)

    def log_density(self, X: Matrix) -> Array:
        """Return the scores, shape (n, K)."""
        if not isinstance(X, np.ndarray):
            return np.asarray(self.log_norm.sum(axis=1) - 0.5 * self.distances(X))
        large = X.size > limits.SMALL
        scores = self._scores(X if large or self.limit is None else limits.masked(X, self.limit))
        if large and self.limit is not None:
            least = 0.5 * limits.least_square(self.limit, self.mean[0], self.variance[0])
            some = np.flatnonzero(~(scores[:, 0] > np.maximum(self.log_norm[0], 0.0).sum() - least))
            scores[some] = self._scores(limits.masked(X[some], self.limit))
        return scores

    def _scores(self, X: Array) -> Array:
        half, log_norm = self.half, self.log_norm
        return from_origin(
            X, self.origin, self.far, lambda rows, at: kernels.diagonal_scores(rows, self.shift + at, half, log_norm)
        )

    def contrast(self, X: Matrix) -> Array:
        """Return `log_density`, without the quadratic term that classes with one covariance share."""
        if not self.tied or not isinstance(X, np.ndarray):
            return self.log_density(X)
        weights, bias = _discriminant(self.shift, lambda m: m / self.variance)
        scores = kernels.linear_scores(X, weights, bias, self.origin, self.limit)
        gaps = np.flatnonzero(np.isnan(scores[:, 0]))
        if len(gaps):
            scores[gaps] = self.log_density(X[gaps])
        return scores

    def parts(self, X: Matrix) -> Array:
        """Return the log density of each value, shape (n, K, D); 0 where it is missing."""
        X = limits.masked(X if isinstance(X, np.ndarray) else X.toarray(), self.limit)
        parts = [elliptical(self.squares(X, k) / v, np.log(v), None, 1) for k, v in enumerate(self.variance)]
        return np.asarray(np.nan_to_num(np.stack(parts, axis=1), nan=0.0, neginf=-np.inf))

    def polynomial(self) -> tuple[Array | None, Array, Array]:
        """Return A = −½Λ, b = Λμ, c = −½μᵀΛμ + ½log|Λ|; A is None if all classes share Λ."""
        mean = self.mean
        b = mean / self.variance
        c = -0.5 * (mean * b).sum(axis=1)
        if self.tied:
            return None, b, c
        A = np.stack([np.diag(-0.5 / variance) for variance in self.variance])
        return A, b, c - 0.5 * np.log(2 * np.pi * self.variance).sum(axis=1)

    def sample(self, codes: Array, rng: np.random.Generator) -> Array:
        """Draw normal rows."""
        return self._draw(codes, rng)


@dataclass(frozen=True, eq=False, repr=False)
class DiagonalStudent(AxisDensity):
    """Independent Student features: normal, with mean and variance integrated out."""

    shapes: ClassVar = {**AxisDensity.shapes, "dof": "K D positive"}

    dof: Array  # (K, D)

    def select(self, features: Array) -> DiagonalStudent:
        """Return the density of some features."""
        fewer: DiagonalStudent = super().select(features)  # type: ignore[assignment]
        return replace(fewer, dof=self.dof[:, np.asarray(features)])

    def log_density(self, X: Matrix) -> Array:
        """Return the scores, shape (n, K)."""
        if not isinstance(X, np.ndarray):
            return self._sparse(X)
        return self.dense_scores(X, self.dof, pooled=False)

    def _sparse(self, X: sp.csr_array) -> Array:
        """Return the score of a row of zeros, plus the change by stored entries."""
        row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        scores = np.empty((X.shape[0], self.K))
        for k, (mean, variance, dof) in enumerate(zip(self.mean, self.variance, self.dof)):
            log_det = np.log(variance)
            zero = elliptical(mean**2 / variance, log_det, dof, 1)
            at = X.indices
            there = elliptical((X.data - mean[at]) ** 2 / variance[at], log_det[at], dof[at], 1)
            scores[:, k] = zero.sum() + np.bincount(row, there - zero[at], minlength=X.shape[0])
        return scores

    def parts(self, X: Matrix) -> Array:
        """Return the log density of each value, shape (n, K, D); 0 where it is missing."""
        X = limits.masked(X if isinstance(X, np.ndarray) else X.toarray(), self.limit)
        each = enumerate(zip(self.variance, self.dof))
        parts = [elliptical(self.squares(X, k) / v, np.log(v), f, 1) for k, (v, f) in each]
        return np.asarray(np.nan_to_num(np.stack(parts, axis=1), nan=0.0, neginf=-np.inf))

    def sample(self, codes: Array, rng: np.random.Generator) -> Array:
        """Draw rows, with another variance for every value."""
        return self._draw(codes, rng, self.dof)


@dataclass(frozen=True, eq=False, repr=False)
class SphericalStudent(AxisDensity):
    """Features with one variance, integrated out with the means; they are not independent."""

    shapes: ClassVar = {**AxisDensity.shapes, "dof": "K positive"}

    dof: Array  # (K,)

    def log_density(self, X: Matrix) -> Array:
        """Return the scores, shape (n, K)."""
        if not isinstance(X, np.ndarray):
            return elliptical(self.distances(X), np.log(self.variance).sum(axis=1), self.dof, X.shape[1])
        return self.dense_scores(X, self.dof[:, None], pooled=True)

    def sample(self, codes: Array, rng: np.random.Generator) -> Array:
        """Draw rows, with another variance for every row."""
        return self._draw(codes, rng, self.dof)


def known_density(mean: ArrayLike, covariance: ArrayLike) -> Density:
    """Return the density of D known means, and D variances or a covariance matrix."""
    centre, spread = np.atleast_1d(np.asarray(mean, dtype=float)), np.asarray(covariance, dtype=float)
    D = len(centre)
    if centre.ndim != 1 or spread.shape not in ((), (1,), (D,), (D, D)):
        raise HyperparameterError(
            f"a mean of shape {np.shape(mean)} and a covariance of shape {spread.shape} do not fit together. "
            "Give D means, and D variances or a D × D matrix."
        )
    if spread.ndim < 2:
        if not (spread > 0).all():
            raise HyperparameterError(f"variances must be > 0, not {np.min(spread):g}.")
        return DiagonalNormal(centre, np.zeros((1, D)), np.broadcast_to(spread, (1, D)))
    if not np.allclose(spread, spread.T) or not whiten(spread[None]).pivot[0] > D * EPS:
        raise HyperparameterError("a covariance matrix must be symmetric and positive definite.")
    return NormalDensity(centre, np.zeros((1, D)), spread[None], np.ones(1))


# -- covariance matrices: whitening, and the columns that make one singular --------------------------------------------
class Whitened(NamedTuple):
    """Inverse square roots and determinants of symmetric positive definite matrices M."""

    whitener: Array  # (m, D, D) upper triangular, whitener @ whitenerᵀ = M⁻¹
    log_det: Array  # (m,) log |M|
    pivot: Array  # (m,) smallest share of a column's variance that the columns before it do not explain


def whiten(matrices: Array) -> Whitened:
    """Return square roots of the inverses, by Cholesky decomposition of the correlation matrices.

    Results do not depend on the units of the columns. A matrix that is not positive definite has pivot 0, and NaN in
    the rest. The caller decides which pivots count as singular.

    >>> root = whiten(np.array([[[4.0, 0.0], [0.0, 9.0]]]))
    >>> root.whitener[0].diagonal(), root.log_det.round(3)
    (array([0.5       , 0.33333333]), array([3.584]))
    """
    whitener, log_det, pivot = np.full_like(matrices, np.nan), np.full(len(matrices), np.nan), np.zeros(len(matrices))
    with one_thread(matrices.shape[-1]):
        for k, matrix in enumerate(matrices):
            variance = matrix.diagonal()
            if not (variance > 0).all():
                continue
            sd = np.sqrt(variance)
            try:
                lower = np.linalg.cholesky(matrix / sd / sd[:, None])
            except np.linalg.LinAlgError:
                continue
            left = lower.diagonal()
            # M = sd·L·Lᵀ·sd, so its inverse has the root sd⁻¹·L⁻ᵀ
            whitener[k] = dtrtri(lower, lower=1)[0].T / sd[:, None]
            log_det[k] = 2 * np.log(left * sd).sum()
            pivot[k] = left.min(initial=1.0) ** 2
    return Whitened(whitener, log_det, pivot)


def singular_columns(matrix: Array, tolerance: float) -> tuple[list[int], list[int]]:
    """Return the columns that do not vary, and columns that are linear combinations of the others.

    >>> x, y = np.array([1.0, 2.0, 4.0]), np.array([3.0, 1.0, 2.0])
    >>> table = np.stack([x, y, x - y, np.zeros(3)])
    >>> singular_columns(table @ table.T, 1e-12)
    ([3], [1])
    """
    variance = matrix.diagonal()
    constant = np.flatnonzero(~(variance > 0))
    varying = np.flatnonzero(variance > 0)
    if not len(varying):
        return constant.tolist(), []
    sd = np.sqrt(variance[varying])
    correlation = matrix[np.ix_(varying, varying)] / sd / sd[:, None]
    _, order, rank, _ = dpstrf(correlation, tol=tolerance)
    return constant.tolist(), sorted(varying[order[rank:] - 1].tolist())


def singular_reasons(constant: list[int], dependent: list[int]) -> list[str]:
    """Describe constant and linearly dependent columns, for error messages.

    >>> singular_reasons([3], [0, 1])
    ['column 3 does not vary', 'columns 0, 1 are linear combinations of the others']
    """
    reasons = []
    for columns, one, many in (
        (constant, "does not vary", "do not vary"),
        (dependent, "is a linear combination of the others", "are linear combinations of the others"),
    ):
        if columns:
            several = len(columns) > 1
            reasons.append(f"column{'s' * several} {shortlist(columns)} {many if several else one}")
    return reasons
