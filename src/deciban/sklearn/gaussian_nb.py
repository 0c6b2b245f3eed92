"""Gaussian naive Bayes of scikit-learn on deciban's kernels: moments of each class in one pass."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import sklearn.naive_bayes as theirs
from sklearn.base import _fit_context
from sklearn.utils.validation import _check_sample_weight, validate_data

from deciban import kernels
from deciban.sklearn.dropin import Array, encode_labels, place_labels
from deciban.sklearn.naive_bayes import NaiveBayes

EPS = float(np.finfo(float).eps)
LOST = 1e-12  # relative error of a variance from which on it is computed in two passes
BLOCK = 2**20  # values of rows that are left out at once


class GaussianNB(NaiveBayes, theirs.GaussianNB):
    """Gaussian naive Bayes with scikit-learn's interface; a fit reads the rows once.

    Sums are kept in float64 also for float32 rows, and converted at the end. Rows of integers, inputs of fewer than
    50,000 values, and classes that lie more than about 60 standard deviations from the others are left to
    scikit-learn.

    Parameters
    ----------
    priors : array-like of shape (n_classes,), default=None
        Class probabilities; their shares in the data if None.
    var_smoothing : float, default=1e-9
        Share of the largest variance of all features that is added to every variance.

    Attributes
    ----------
    class_count_ : ndarray of shape (n_classes,)
        Number of rows, or sum of weights, of each class.
    class_prior_ : ndarray of shape (n_classes,)
        Class probabilities.
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    epsilon_ : float
        Number added to the variances.
    theta_, var_ : ndarray of shape (n_classes, n_features)
        Means and variances.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.array([[1.0], [2.0], [5.0], [7.0]]), np.array([0, 0, 1, 1])
    >>> clf = GaussianNB().fit(X, y)
    >>> clf.predict([[3.0]]), clf.predict_proba([[3.0]], prior=[0.01, 0.99]).round(3)
    (array([0]), array([[0.02, 0.98]]))
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn means and variances of each class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        GaussianNB
            The classifier.
        """
        if self._runs(X) and self._fit_by_kernels(X, y, None, sample_weight, refit=True):
            return self
        return super().fit(X, y, sample_weight)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn more rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.
        classes : array-like of shape (n_classes,), default=None
            All labels that may occur; needed in the first call.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        GaussianNB
            The classifier.
        """
        if self._runs(X) and self._fit_by_kernels(X, y, classes, sample_weight, refit=False):
            return self
        return super().partial_fit(X, y, classes, sample_weight)

    @_fit_context(prefer_skip_nested_validation=True)
    def _fit_by_kernels(self, X: Any, y: Any, classes: Any, sample_weight: Any, refit: bool) -> bool:
        """Fit; False, with nothing changed but names of features, where scikit-learn should fit or raise its error."""
        dtype = getattr(X, "dtype", None)
        if dtype not in (np.float64, np.float32) or self.priors is not None or (not refit and classes is not None):
            return False
        first = refit or getattr(self, "classes_", None) is None
        if first and not refit:
            return False
        X, y = validate_data(self, X, y, reset=first, ensure_all_finite=False)
        if refit:
            found = encode_labels(y)
            if found is None:
                return False
            names, codes = found
        else:
            names, placed = self.classes_, place_labels(y, self.classes_)
            if placed is None:
                return False
            codes = placed
        weight = None
        if sample_weight is not None:
            weight = np.asarray(_check_sample_weight(sample_weight, X, dtype=X.dtype), dtype=np.float64)
            if not (weight >= 0).all():
                return False
        moments = class_moments(X, codes, weight, len(names), self.var_smoothing)
        if moments is None:
            return False
        count, mean, variance, epsilon = moments
        if not first:
            old = self.var_.astype(np.float64) - epsilon  # scikit-learn subtracts the new number, not the old one
            count, mean, variance = merged(self.class_count_, self.theta_, old, count, mean, variance)
        self.classes_ = names
        self._set_moments(count, mean, variance, X.dtype.type(epsilon), X.dtype if first else self.theta_.dtype)
        return True

    def _set_moments(self, count: Array, mean: Array, variance: Array, epsilon: float, dtype: Any) -> None:
        self.epsilon_ = epsilon
        self.class_count_ = count.astype(dtype)
        self.theta_, self.var_ = mean.astype(dtype), (variance + epsilon).astype(dtype)
        if self.priors is None:
            self.class_prior_ = self.class_count_ / self.class_count_.sum()

    def _joint_log_likelihood(self, X: Array) -> Array:
        if not self._runs(X) or X.dtype not in (np.float64, np.float32):
            return super()._joint_log_likelihood(X)
        variance = np.asarray(self.var_, dtype=np.float64)
        with np.errstate(divide="ignore"):
            log_norm, half = -0.5 * np.log(2 * np.pi * variance), 0.5 / variance
            if not (np.isfinite(half).all() and np.isfinite(log_norm).all()):
                return super()._joint_log_likelihood(X)
            log_prior = np.log(self.class_prior_)
        scores = kernels.diagonal_scores(X, np.asarray(self.theta_, dtype=np.float64), half, log_norm)
        scores += log_prior
        return scores.astype(np.result_type(X.dtype, self.var_.dtype), copy=False)

    def _log_prior(self, prior: Any = None) -> Array:
        return self._as_log_prior(self.class_prior_ if prior is None else prior)

    # -- sums --------------------------------------------------------------------------------------------------------
    def _take(self, X: Any, y: Any, sample_weight: Any, sign: float) -> None:
        X = validate_data(self, X, reset=False)
        codes = self._known_codes(y)
        weight = None if sample_weight is None else np.asarray(_check_sample_weight(sample_weight, X), float)
        if weight is None:
            weight = np.ones(len(X))
        count, mean, variance = two_pass(np.asarray(X, dtype=float), codes, weight, len(self.classes_))
        self._merge(self._sums(), (sign * count, mean, variance))

    def _sums(self) -> tuple[Array, Array, Array]:
        return self.class_count_, self.theta_, self.var_ - self.epsilon_

    def _merge(self, sums: tuple[Array, ...], other: tuple[Array, ...]) -> None:
        count, mean, variance = merged(*(np.asarray(each, dtype=float) for each in (*sums, *other)))
        if (count < -1e-9 * max(1.0, np.abs(count).max())).any():
            raise self._never_learnt()
        self._set_moments(np.maximum(count, 0.0), mean, np.maximum(variance, 0.0), self.epsilon_, self.theta_.dtype)

    def _left_out(self, X: Any, codes: Array) -> tuple[Array, Array]:
        X = np.asarray(validate_data(self, X, reset=False), dtype=float)
        count, mean, variance = (np.asarray(each, dtype=float) for each in self._sums())
        epsilon = float(self.epsilon_)
        scores = np.asarray(self._joint_log_likelihood(X), dtype=float) - self._log_prior()
        step = max(1, BLOCK // X.shape[1])
        for at in range(0, len(X), step):
            rows = slice(at, at + step)
            own = codes[rows]
            n = count[own][:, None]
            d = X[rows] - mean[own]
            with np.errstate(divide="ignore", invalid="ignore"):
                # variance without the row, by the rank-one identity; its distance from the other rows' mean
                left = np.maximum(n * variance[own] - d**2 * n / (n - 1), 0.0) / (n - 1) + epsilon
                terms = -0.5 * (np.log(2 * np.pi * left) + (d * n / (n - 1)) ** 2 / left)
            total = np.where(n[:, 0] > 1, terms.sum(axis=1), -np.inf)
            scores[np.arange(at, at + len(own)), own] = total
        return scores, count


def class_moments(
    X: Array, codes: Array, weight: Array | None, K: int, smoothing: float
) -> tuple[Array, Array, Array, float] | None:
    """Weight, mean and variance of each class, and the number added to variances.

    None if a sum is not finite, or if a class is too far from the origin of the sums for the digits of its variance.
    """
    n = len(X)
    origin = np.asarray(X[:4096], dtype=np.float64).mean(axis=0)
    if not np.isfinite(origin).all():
        return None
    count = kernels.class_weights(codes, weight, K)
    first, second = kernels.class_moments(X, codes, weight, origin, K)
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        return None
    if weight is None:
        all_first, all_second = first.sum(axis=0), second.sum(axis=0)
    else:  # the variance of all rows that scikit-learn uses has no weights
        if not (np.isclose(count, 0) == (count == 0)).all():
            return None
        all_first, all_second = (
            each[0] for each in kernels.class_moments(X, np.zeros(n, dtype=np.intp), None, origin, 1)
        )
    whole = all_second / n - (all_first / n) ** 2
    if (EPS * (all_first / n) ** 2 > LOST * whole.max()).any() or not np.isfinite(whole).all():
        return None
    epsilon = smoothing * float(whole.max())
    safe = np.where(count > 0, count, 1.0)[:, None]
    shift = first / safe
    variance = np.maximum(second / safe - shift**2, 0.0)
    if (EPS * shift**2 > LOST * (variance + epsilon)).any():
        return None
    mean = np.where(count[:, None] > 0, origin + shift, 0.0)
    return count, mean, variance, epsilon


def two_pass(X: Array, codes: Array, weight: Array, K: int) -> tuple[Array, Array, Array]:
    """Weight, mean and variance of each class, with deviations from the class's own mean."""
    count, D = np.bincount(codes, weight, K), X.shape[1]
    mean, variance = np.zeros((K, D)), np.zeros((K, D))
    for k in np.flatnonzero(count):
        x, w = X[codes == k], weight[codes == k]
        mean[k] = w @ x / count[k]
        variance[k] = w @ (x - mean[k]) ** 2 / count[k]
    return count, mean, variance


def merged(
    n: Array, mean: Array, variance: Array, more: Array, more_mean: Array, more_variance: Array
) -> tuple[Array, Array, Array]:
    """Weight, mean and variance of the union of two sets of rows; a negative weight removes rows."""
    total = n + more
    safe = np.where(total != 0, total, 1.0)[:, None]
    n, more = n[:, None], more[:, None]
    new_mean = np.where(total[:, None] != 0, (n * mean + more * more_mean) / safe, 0.0)
    squares = n * variance + more * more_variance + n * more / safe * (mean - more_mean) ** 2
    return total, new_mean, np.where(total[:, None] != 0, squares / safe, 0.0)
