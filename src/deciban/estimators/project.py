"""PCA and Fisher's discriminant from Gaussian statistics, and applied to them.

With S the second moments about the origin, total T = ΣS − Nμμᵀ, within W = Σ(S_c − N_c μ_cμ_cᵀ), between B = T − W:
PCA takes the leading eigenvectors of T, Fisher those of B relative to W. Projecting rows by P maps the sums by
s → Pᵀs and S → PᵀSP. So one pass over the data fits every structure in every projected space.

Reference: Bishop, Pattern Recognition and Machine Learning, sections 4.1.4 to 4.1.6 and 12.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.linalg import eigh, svd
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from deciban.errors import HyperparameterError, InputError, SingularError
from deciban.families.gaussian import Gaussian, GaussianStats
from deciban.linalg import EPS, singular_columns, singular_reasons, whiten
from deciban.statistics import Array, Axis, Members


@dataclass(frozen=True, eq=False)
class Projection:
    """x ↦ (x − offset) @ matrix, for rows and for sums alike."""

    matrix: Array  # (D, d)
    offset: Array  # (D,)
    strength: Array  # (d,) variance along each direction; for Fisher between over within

    def transform(self, X: Array) -> Array:
        """Rows, projected."""
        return (X - self.offset) @ self.matrix

    def apply(self, stats: GaussianStats) -> GaussianStats:
        """The sums that the projected rows would have."""
        P = self.matrix
        labels = {**stats.labels, "feature": Axis.of(P.shape[1])}
        second = np.stack([P.T @ S @ P for S in stats.second])
        second = (second + second.transpose(0, 2, 1)) / 2
        return GaussianStats(labels, stats.weight, stats.first @ P, second, self.transform(stats.origin))

    def __repr__(self) -> str:
        return f"Projection({self.matrix.shape[0]} → {self.matrix.shape[1]})"


class _Projector(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """What PCA and Fisher share: scikit-learn's face on a projection."""

    projection_: Projection

    def transform(self, X: Any) -> Array:
        """Rows along the directions found."""
        check_is_fitted(self)
        return self.projection_.transform(validate_data(self, X, reset=False, dtype=np.float64))

    @property
    def components_(self) -> Array:
        """(d, D) the directions, as scikit-learn keeps them."""
        return self.projection_.matrix.T

    @property
    def _n_features_out(self) -> int:
        return self.projection_.matrix.shape[1]


class PCA(_Projector):
    """The directions in which rows vary most; orthonormal.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 3)) * [5.0, 1.0, 0.1]
    >>> PCA(2).fit(X).explained_variance_.round(1)
    array([24. ,  0.9])

    From sums, with or without classes: `PCA(2).fit_stats(stats)` is a `Projection` of rows and of sums.
    """

    def __init__(self, n: int | None = None) -> None:
        self.n = n  # None: as many as there are columns

    def fit_stats(self, stats: GaussianStats) -> Projection:
        """The directions, from sums alone."""
        D, total = len(stats.origin), stats.weight.sum()
        d = _wanted(self.n, D, "columns")
        mean = stats.first.sum(axis=0) / total
        covariance = stats.second.sum(axis=0) / total - np.outer(mean, mean)
        few = None if d == D else (D - d, D - 1)
        variance, vectors = eigh(covariance, subset_by_index=few)
        matrix = _one_way(vectors[:, ::-1])
        return Projection(matrix, stats.origin + mean, np.maximum(variance[::-1], 0.0))

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the directions; y is not looked at."""
        X = validate_data(self, X, dtype=np.float64)
        stats = Gaussian("full").collect(X, Members.one_group(len(X)))
        self.projection_ = self.fit_stats(stats)  # type: ignore[arg-type]
        return self

    @property
    def explained_variance_(self) -> Array:
        """Variance along each direction, divided by the number of rows."""
        return self.projection_.strength


class Fisher(_Projector):
    """The directions that part the classes best, in units of their spread.

    Within classes the projected rows have the identity as their covariance; there are at most as many directions as
    classes less one, and with all of them a tied Gaussian decides as it does without the projection.

    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> Fisher().fit(X, y).separation_.round(2)
    array([32.19,  0.29])
    """

    def __init__(self, n: int | None = None) -> None:
        self.n = n  # None: classes less one, or the number of columns

    def fit_stats(self, stats: GaussianStats) -> Projection:
        """The directions, from sums alone."""
        stats = stats.select("class", np.flatnonzero(stats.weight > 0))
        (K, D), total = stats.first.shape, stats.weight.sum()
        if K < 2:
            raise InputError("Fisher's directions part classes, but there is only one class. Give at least two.")
        d = min(_wanted(self.n, D, "columns"), K - 1, D)
        means, scatter = stats.scatter()
        whitener = _within(scatter.sum(axis=0) / total)
        centre = stats.first.sum(axis=0) / total
        apart = np.sqrt(stats.weight / total)[:, None] * (means - centre)  # apartᵀ·apart = B/N
        _, share, turn = svd(apart @ whitener, full_matrices=False)
        return Projection(_one_way(whitener @ turn[:d].T), stats.origin + centre, share[:d] ** 2)

    def fit(self, X: Any, y: Any) -> Self:
        """Find the directions that part the classes y."""
        from sklearn.utils.multiclass import check_classification_targets

        X, y = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        check_classification_targets(y)
        classes, codes = np.unique(y, return_inverse=True)
        stats = Gaussian("full").collect(X, Members.hard(codes, len(classes)))
        self.projection_ = self.fit_stats(stats)  # type: ignore[arg-type]
        return self

    @property
    def separation_(self) -> Array:
        """Variance between classes over variance within, along each direction."""
        return self.projection_.strength

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def _wanted(n: Any, most: int, of: str) -> int:
    if n is None:
        return most
    if not isinstance(n, (int, np.integer)) or not 1 <= n <= most:
        raise HyperparameterError(f"n={n!r} directions are not to be had from {most} {of}. Give 1 to {most}, or None.")
    return int(n)


def _one_way(vectors: Array) -> Array:
    """A direction has no sign of its own: let its largest entry be positive."""
    largest = np.abs(vectors).argmax(axis=0)
    return vectors * np.where(vectors[largest, np.arange(vectors.shape[1])] < 0, -1.0, 1.0)


def _within(covariance: Array) -> Array:
    """A root of the inverse; an error that names the columns where there is none."""
    root, tolerance = whiten(covariance[None]), 64 * EPS * len(covariance)
    if root.pivot[0] > tolerance:
        return root.whitener[0]
    constant, dependent = singular_columns(covariance, max(tolerance, 1e-10))
    error = SingularError(
        f"within classes {' and '.join(singular_reasons(constant, dependent))}, so distances have no unit there. "
        "Use PCA first, or drop columns."
    )
    error.columns, error.label = constant + dependent, None  # type: ignore[attr-defined]
    raise error
