"""PCA and Fisher's linear discriminant, computed from Gaussian statistics and applied to them.

With S the second moments about the origin, total T = ΣS − Nμμᵀ, within W = Σ(S_c − N_c μ_cμ_cᵀ), between B = T − W:
PCA takes the leading eigenvectors of T, Fisher those of B relative to W. Projecting rows by P maps the sums by
s → Pᵀs and S → PᵀSP. So one pass over the data is enough for every covariance structure in every projected space.

Reference: Bishop, Pattern Recognition and Machine Learning, sections 4.1.4 to 4.1.6 and 12.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh, svd
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from deciban.errors import HyperparameterError, InputError, SingularError
from deciban.families.gaussian import Gaussian, GaussianStats
from deciban.families.gaussian.densities import singular_columns, singular_reasons, whiten
from deciban.families.gaussian.sums import EPS
from deciban.families.parameters import COUNT, Ranges
from deciban.read.tables import in_memory
from deciban.statistics import Array, Axis, Members
from deciban.store.checks import require


@dataclass(frozen=True, eq=False)
class Projection:
    """x ↦ (x − offset) @ matrix, for rows and for statistics."""

    matrix: Array  # (D, d)
    offset: Array  # (D,)
    strength: Array  # (d,) variance along each direction; for Fisher, between over within classes
    total: float | None = None  # strength of all directions together; None in older files

    def validate(self) -> None:
        """Raise InputError if matrix, offset and strengths differ in size."""
        D, d = self.matrix.shape if self.matrix.ndim == 2 else (-1, -1)
        if self.offset.shape != (D,) or self.strength.shape != (d,):
            raise InputError("the matrix, the offset and the strengths of a projection do not fit together.")
        if self.total is not None and not self.total >= 0:
            raise InputError("the total strength of a projection is not a number ≥ 0.")

    def transform(self, X: Array) -> Array:
        """Project rows."""
        return (X - self.offset) @ self.matrix

    def inverse(self, Z: Array) -> Array:
        """Return the rows of the subspace that have these projections."""
        return Z @ np.linalg.pinv(self.matrix) + self.offset

    def apply(self, stats: GaussianStats) -> GaussianStats:
        """Return the statistics of the projected rows."""
        P = self.matrix
        stats = stats.whole()
        labels = {**stats.labels, "feature": Axis.of(P.shape[1])}
        second = np.stack([P.T @ S @ P for S in stats.second])
        second = (second + second.transpose(0, 2, 1)) / 2
        return GaussianStats(labels, stats.weight, stats.first @ P, second, self.transform(stats.origin))

    def __repr__(self) -> str:
        return f"Projection({self.matrix.shape[0]} → {self.matrix.shape[1]})"


class _Projector(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """scikit-learn's transformer interface to a projection."""

    projection_: Projection
    n_features_in_: int
    feature_names_in_: Array

    def check_fitted(self) -> None:
        """Raise ModelFileError if fitted attributes that were read from a file contradict each other."""
        require(len(self.projection_.offset) == self.n_features_in_, "projection_", "the number of columns")

    def transform(self, X: ArrayLike) -> Array:
        """Project rows onto the directions.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            Projected rows.
        """
        check_is_fitted(self)
        return self.projection_.transform(validate_data(self, in_memory(X), reset=False, dtype=np.float64))

    def inverse_transform(self, X: ArrayLike) -> Array:
        """Return rows in the units of the data, from projected rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Projected rows.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Rows in the subspace of the directions; their projections are those given.
        """
        check_is_fitted(self)
        rows = check_array(X, dtype=np.float64)
        if rows.shape[1] != self._n_features_out:
            raise InputError(f"X has {rows.shape[1]} columns, but there are {self._n_features_out} directions.")
        return self.projection_.inverse(rows)

    @property
    def components_(self) -> Array:
        """Directions, one per row, shape (n_components, n_features)."""
        return self.projection_.matrix.T

    @property
    def mean_(self) -> Array:
        """Mean of all rows, shape (n_features,)."""
        return self.projection_.offset

    @property
    def explained_variance_ratio_(self) -> Array:
        """Share of each direction in the sum over all directions, shape (n_components,)."""
        projection = self.projection_
        if projection.total is None:
            raise AttributeError("explained_variance_ratio_ is not in files of former versions. Fit again.")
        return projection.strength / projection.total

    @property
    def _n_features_out(self) -> int:
        return self.projection_.matrix.shape[1]


class PCA(_Projector):
    """Principal component analysis from sums.

    Parameters
    ----------
    n_components : int, optional
        Number of directions; as many as there are columns if None.

    Attributes
    ----------
    projection_ : Projection
        The projection; it applies to rows and to Gaussian statistics.
    components_ : ndarray of shape (n_components, n_features)
        Orthonormal directions of largest variance, the largest first.
    explained_variance_ : ndarray of shape (n_components,)
        Variance along each direction, divided by the number of rows.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Share of each direction in the variance of the rows.
    mean_ : ndarray of shape (n_features,)
        Mean of the rows.
    n_features_in_ : int
        Number of columns.

    Examples
    --------
    >>> import numpy as np
    >>> from deciban import PCA
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 3)) * [5.0, 1.0, 0.1]
    >>> PCA(2).fit(X).explained_variance_.round(1)
    array([24. ,  0.9])
    """

    RANGES: ClassVar[Ranges] = {"n_components": COUNT}

    def __init__(self, n_components: int | None = None) -> None:
        self.n_components = n_components

    def fit_stats(self, stats: GaussianStats) -> Projection:
        """Find the directions from sums alone.

        Parameters
        ----------
        stats : GaussianStats
            Full Gaussian statistics, with or without classes.

        Returns
        -------
        Projection
            Projection of rows and of statistics.
        """
        stats = stats.whole()
        D, total = len(stats.origin), stats.weight.sum()
        d = _wanted(self.n_components, D, f"{D} columns")
        mean = stats.first.sum(axis=0) / total
        covariance = stats.second.sum(axis=0) / total - np.outer(mean, mean)
        largest = None if d == D else (D - d, D - 1)
        variance, vectors = eigh(covariance, subset_by_index=largest)
        matrix = _fix_signs(vectors[:, ::-1])
        total = max(float(np.trace(covariance)), 0.0)
        return Projection(matrix, stats.origin + mean, np.maximum(variance[::-1], 0.0), total)

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Find the directions.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : object, optional
            Ignored.

        Returns
        -------
        PCA
            The fitted transformer.
        """
        rows = validate_data(self, in_memory(X), dtype=np.float64)
        stats = Gaussian("full").collect(rows, Members.one_group(len(rows)))
        self.projection_ = self.fit_stats(stats)  # type: ignore[arg-type]
        return self

    @property
    def explained_variance_(self) -> Array:
        """Variance along each direction, shape (n_components,)."""
        return self.projection_.strength


class Fisher(_Projector):
    """Fisher's linear discriminant from sums.

    Within classes the projected rows have the identity as covariance. With all directions, a tied Gaussian makes the
    same decisions as without the projection.

    Parameters
    ----------
    n_components : int, optional
        Number of directions; if None the number of classes less one, or the number of columns if that is lower.

    Attributes
    ----------
    projection_ : Projection
        The projection; it applies to rows and to Gaussian statistics.
    components_ : ndarray of shape (n_components, n_features)
        Directions of largest separation, the largest first.
    separation_ : ndarray of shape (n_components,)
        Variance between classes over variance within classes, along each direction.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Share of each direction in the variance between classes, where that within classes is 1.
    mean_ : ndarray of shape (n_features,)
        Mean of all rows.
    n_features_in_ : int
        Number of columns.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from deciban import Fisher
    >>> X, y = load_iris(return_X_y=True)
    >>> Fisher().fit(X, y).separation_.round(2)
    array([32.19,  0.29])
    """

    RANGES: ClassVar[Ranges] = {"n_components": COUNT}

    def __init__(self, n_components: int | None = None) -> None:
        self.n_components = n_components

    def fit_stats(self, stats: GaussianStats) -> Projection:
        """Find the directions from sums alone.

        Parameters
        ----------
        stats : GaussianStats
            Full Gaussian statistics, one group per class.

        Returns
        -------
        Projection
            Projection of rows and of statistics.
        """
        stats = stats.whole()
        stats = stats.select("class", np.flatnonzero(stats.weight > 0))
        (K, D), total = stats.first.shape, stats.weight.sum()
        if K < 2:
            raise InputError("Fisher's directions separate classes, but there is only one class. Give at least two.")
        d = _wanted(self.n_components, min(K - 1, D), f"{D} columns and {K} classes")
        means, scatter = stats.scatter()
        whitener = _within(scatter.sum(axis=0) / total)
        centre = stats.first.sum(axis=0) / total
        between = np.sqrt(stats.weight / total)[:, None] * (means - centre)  # betweenᵀ·between = B/N
        _, singular, rotation = svd(between @ whitener, full_matrices=False)
        matrix, total = _fix_signs(whitener @ rotation[:d].T), float((singular**2).sum())
        return Projection(matrix, stats.origin + centre, singular[:d] ** 2, total)

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Find the directions that separate the classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Class labels.

        Returns
        -------
        Fisher
            The fitted transformer.
        """
        from sklearn.utils.multiclass import check_classification_targets

        rows, labels = validate_data(self, in_memory(X), y, dtype=np.float64, ensure_min_samples=2)
        check_classification_targets(labels)
        classes, codes = np.unique(labels, return_inverse=True)
        stats = Gaussian("full").collect(rows, Members.hard(codes, len(classes)))
        self.projection_ = self.fit_stats(stats)  # type: ignore[arg-type]
        return self

    @property
    def separation_(self) -> Array:
        """Variance between over variance within classes along each direction, shape (n_components,)."""
        return self.projection_.strength

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def _wanted(n: int | None, most: int, rows: str) -> int:
    if n is None:
        return most
    if not isinstance(n, (int, np.integer)) or not 1 <= n <= most:
        raise HyperparameterError(
            f"n_components={n!r} directions cannot be had from {rows}. Give 1 to {most}, or None."
        )
    return int(n)


def _fix_signs(vectors: Array) -> Array:
    """Make the largest entry of each direction positive, because the sign of a direction is arbitrary."""
    largest = np.abs(vectors).argmax(axis=0)
    return vectors * np.where(vectors[largest, np.arange(vectors.shape[1])] < 0, -1.0, 1.0)


def _within(covariance: Array) -> Array:
    """Return a root of the inverse covariance; SingularError with the names of the columns if there is none."""
    root, tolerance = whiten(covariance[None]), 64 * EPS * len(covariance)
    if root.pivot[0] > tolerance:
        return root.whitener[0]
    constant, dependent = singular_columns(covariance, max(tolerance, 1e-10))
    raise SingularError(
        f"within classes {' and '.join(singular_reasons(constant, dependent))}, so there is no inverse covariance.",
        columns=constant + dependent,
        remedy="Use PCA first, or drop columns.",
    )
