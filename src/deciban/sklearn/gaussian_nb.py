"""Gaussian naive Bayes of scikit-learn on deciban's kernels: moments of each class in one pass.

Beyond scikit-learn's, it takes rows with missing values and sparse rows, if its options say so.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
import sklearn.naive_bayes as theirs
from sklearn.base import _fit_context
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.multiclass import _check_partial_fit_first_call, check_classification_targets
from sklearn.utils.validation import _check_sample_weight, validate_data

from deciban import kernels
from deciban.errors import NotAvailableError
from deciban.evidence.scores import log_joint
from deciban.sklearn.dropin import ROUNDING, Array, Shapes, encode_labels, place_labels
from deciban.sklearn.naive_bayes import NaiveBayes

EPS = float(np.finfo(float).eps)
LOST = 1e-12  # relative error of a variance above which scikit-learn computes it in two passes
NEGATIVE, NEGATIVE_32 = 1e-9, 1e-4  # sums below minus this share of the learnt squares: rows never learnt
BLOCK = 2**20  # values of rows that are left out at a time


class GaussianNB(NaiveBayes, theirs.GaussianNB):
    """Gaussian naive Bayes with scikit-learn's interface; a fit reads the rows once.

    Sums are kept in float64 also for float32 rows, and converted at the end. Rows of integers, classes that lie more
    than about 60 standard deviations from the others, and scores of fewer than 50,000 values are left to scikit-learn.

    Parameters
    ----------
    priors : array-like of shape (n_classes,), default=None
        Class probabilities; their shares in the data if None.
    var_smoothing : float, default=1e-9
        Share of the largest variance of all features that is added to every variance.
    handle_missing : {"error", "ignore"}, default="error"
        Whether missing values (NaN) are refused, as by scikit-learn, or add nothing to sums and scores. A class without
        any value of a feature has the mean and variance of all classes there.
    accept_sparse : bool, default=False
        Whether sparse rows, whose values that are not stored are 0, are taken; scikit-learn refuses them.

    Attributes
    ----------
    class_count_ : ndarray of shape (n_classes,)
        Number of rows, or sum of weights, of each class.
    value_count_ : ndarray of shape (n_classes, n_features)
        Number, or sum of weights, of the values that are not missing; with handle_missing="ignore".
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
    >>> GaussianNB(handle_missing="ignore").fit([[1.0, 2.0], [np.nan, 3.0], [5.0, 9.0], [7.0, 9.5]], y).theta_
    array([[1.  , 2.5 ],
           [6.  , 9.25]])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **theirs.GaussianNB._parameter_constraints,
        "handle_missing": [StrOptions({"error", "ignore"})],
        "accept_sparse": ["boolean"],
    }

    def __init__(
        self,
        *,
        priors: Any = None,
        var_smoothing: float = 1e-9,
        handle_missing: str = "error",
        accept_sparse: bool = False,
    ) -> None:
        super().__init__(priors=priors, var_smoothing=var_smoothing)
        self.handle_missing = handle_missing
        self.accept_sparse = accept_sparse

    def fitted_shapes(self) -> Shapes:
        values = "K D count" if self.handle_missing == "ignore" else "optional K D count"
        own = {"theta_": "K D real", "var_": "K D count", "class_count_": "K count", "class_prior_": "K count"}
        return super().fitted_shapes() | own | {"epsilon_": "number", "value_count_": values}

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
        if self._takes_more(X):
            return self._fit_values(X, y, None, sample_weight, refit=True)
        if self._runs(X, few=True) and self._fit_by_kernels(X, y, None, sample_weight, refit=True):
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
        if self._takes_more(X):
            return self._fit_values(X, y, classes, sample_weight, refit=False)
        if self._runs(X) and self._fit_by_kernels(X, y, classes, sample_weight, refit=False):
            return self
        return super().partial_fit(X, y, classes, sample_weight)

    def _takes_more(self, X: Any) -> bool:
        """Whether the options allow an input that scikit-learn refuses: missing values, or sparse rows."""
        return self.handle_missing == "ignore" or (self.accept_sparse and sp.issparse(X))

    def _check(self, X: Any, y: Any = "no_validation", reset: bool = False) -> Any:
        """Check rows, and labels if given, as far as the options demand."""
        finite = "allow-nan" if self.handle_missing == "ignore" else True
        sparse = "csr" if self.accept_sparse else False
        types = [np.float64, np.float32]
        return validate_data(self, X, y, reset=reset, dtype=types, accept_sparse=sparse, ensure_all_finite=finite)

    def _check_X(self, X: Any) -> Any:
        if self._takes_more(X):
            return self._check(X)
        if not self._finds_gaps(X):
            return super()._check_X(X)
        return validate_data(self, X, reset=False, ensure_all_finite=False)

    def _finds_gaps(self, X: Any) -> bool:
        """Whether `_joint_log_likelihood` detects values that are not finite by their scores, without a pass over X."""
        plain = isinstance(X, np.ndarray) and X.dtype in (np.float64, np.float32) and self.handle_missing == "error"
        return plain and self._runs(X)

    @_fit_context(prefer_skip_nested_validation=True)
    def _fit_values(self, X: Any, y: Any, classes: Any, sample_weight: Any, refit: bool) -> Self:
        """Learn from the values that are not missing."""
        first = refit or getattr(self, "classes_", None) is None
        X, y = self._check(X, y, reset=first)
        if refit:
            check_classification_targets(y)
            self.classes_ = np.unique(y)
        else:
            _check_partial_fit_first_call(self, classes)
        if first and self.priors is not None:
            self.class_prior_ = np.exp(self._as_log_prior(self.priors))
        codes, weight = self._known_codes(y), np.ones(X.shape[0])
        if sample_weight is not None:
            weight = np.asarray(_check_sample_weight(sample_weight, X), dtype=float)
        batch = value_moments(X, codes, weight, len(self.classes_))
        whole = value_moments(X, np.zeros_like(codes), np.ones(X.shape[0]), 1)
        epsilon = self.var_smoothing * float(whole[3].max())
        if not first:  # as in scikit-learn: the new epsilon is subtracted from the old variances
            batch = merged_values((*self._sums()[:3], np.asarray(self.var_, dtype=float) - epsilon), batch)
        self._set_values(batch, X.dtype.type(epsilon), X.dtype if first else self.theta_.dtype)
        return self

    def _set_values(self, sums: tuple[Array, ...], epsilon: float, dtype: Any) -> None:
        """Set the fitted attributes from weights of classes and of values, means and variances."""
        count, values, mean, variance = sums
        if self.handle_missing == "ignore":
            self.value_count_ = np.broadcast_to(values, mean.shape).copy()
            none = self.value_count_ <= 0
            if none.any():  # the moments of all classes; 0 and 1 for a feature without values
                pooled = merged_classes(self.value_count_, mean, variance)
                mean, variance = np.where(none, pooled[0], mean), np.where(none, pooled[1], variance)
        self._set_moments(count, mean, variance, epsilon, dtype)

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
            old = self.var_.astype(np.float64) - epsilon  # scikit-learn subtracts the new epsilon, not the old one
            learnt = self.class_count_, self.class_count_[:, None], self.theta_, old
            count, _, mean, variance = merged_values(learnt, (count, count[:, None], mean, variance))
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
        if sp.issparse(X):
            return self._sparse_scores(X)
        if (not self._runs(X) and self.handle_missing == "error") or X.dtype not in (np.float64, np.float32):
            return super()._joint_log_likelihood(X)
        variance = np.asarray(self.var_, dtype=np.float64)
        with np.errstate(divide="ignore"):
            log_norm, half = -0.5 * np.log(2 * np.pi * variance), 0.5 / variance
            log_prior = np.log(self.class_prior_)
        if not (np.isfinite(half).all() and np.isfinite(log_norm).all()):
            return super()._joint_log_likelihood(super()._check_X(X))  # with its warnings
        gaps = self.handle_missing == "ignore"
        scores = kernels.diagonal_scores(X, np.asarray(self.theta_, dtype=np.float64), half, log_norm, gaps)
        if not gaps and not np.isfinite(scores[:, 0]).all():
            super()._check_X(X)  # raises the error of a value that is not finite
        return log_joint(scores, log_prior, out=scores).astype(np.result_type(X.dtype, self.var_.dtype), copy=False)

    def _sparse_scores(self, X: Any) -> Array:
        """Joint log-likelihoods of sparse rows: those of a row of zeros, and the change that stored values make."""
        mean, variance = np.asarray(self.theta_, dtype=float), np.asarray(self.var_, dtype=float)
        zeros = -0.5 * (np.log(2 * np.pi * variance) + mean**2 / variance)
        X = sp.csr_array(X)
        gap = np.isnan(X.data)
        values = np.where(gap, 0.0, X.data)
        pattern = (X.indices, X.indptr)
        first, second = (sp.csr_array((each, *pattern), shape=X.shape) for each in (values, values**2))
        scores = first @ (mean / variance).T - 0.5 * (second @ (1 / variance).T) + zeros.sum(axis=1)
        if gap.any():
            scores -= sp.csr_array((gap.astype(float), *pattern), shape=X.shape) @ zeros.T
        with np.errstate(divide="ignore"):
            return (scores + np.log(self.class_prior_)).astype(np.result_type(X.dtype, self.var_.dtype), copy=False)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan, tags.input_tags.sparse = self.handle_missing == "ignore", bool(self.accept_sparse)
        return tags

    def _log_prior(self, prior: Any = None) -> Array:
        return self._as_log_prior(self.class_prior_ if prior is None else prior)

    # -- sums --------------------------------------------------------------------------------------------------------
    def _take(self, X: Any, y: Any, sample_weight: Any, sign: float) -> None:
        X = self._check_X(X) if self._takes_more(X) else super()._check_X(X)
        codes = self._known_codes(y)
        weight = np.ones(X.shape[0]) if sample_weight is None else _check_sample_weight(sample_weight, X)
        count, *moments = value_moments(X, codes, np.asarray(weight, dtype=float), len(self.classes_))
        self._merge(self._sums(), (sign * count, sign * moments[0], *moments[1:]))

    def _sums(self) -> tuple[Array, ...]:
        """Weights of classes and of values, means and variances."""
        values = getattr(self, "value_count_", None) if self.handle_missing == "ignore" else None
        values = self.class_count_[:, None] if values is None else values
        sums = self.class_count_, values, self.theta_, self.var_ - self.epsilon_
        return tuple(np.asarray(each, dtype=float) for each in sums)

    def _merge(self, sums: tuple[Array, ...], other: tuple[Array, ...]) -> None:
        count, values, mean, variance = merged_values(sums, other)
        digits = NEGATIVE if self.theta_.dtype == np.float64 else NEGATIVE_32
        size = sums[1] * (sums[3] + float(self.epsilon_) + digits * sums[2] ** 2)  # learnt squares, and their rounding
        wrong = [(each < -NEGATIVE * max(1.0, np.abs(each).max())).any() for each in (count, values)]
        if (
            any(wrong)
            or (values * variance < -digits * size).any()
            or self._differs_from_all(sums, other, values, digits)
        ):
            raise self._never_learnt()
        self._require_rows(count)
        new = np.maximum(count, 0.0), np.maximum(values, 0.0), mean, np.maximum(variance, 0.0)
        self._set_values(new, self.epsilon_, self.theta_.dtype)

    def _differs_from_all(self, sums: tuple[Array, ...], other: tuple[Array, ...], left: Array, digits: float) -> bool:
        """Whether as many values are removed as were learnt, but not the same: their moments differ."""
        (_, n, mean, variance), (_, more, more_mean, more_variance) = sums, other
        size = variance + float(self.epsilon_) + digits * mean**2
        off = np.maximum((mean - more_mean) ** 2, np.abs(variance - more_variance) * digits**0.5)
        return bool(((left == 0) & (n > 0) & (more < 0) & (off > digits * size)).any())

    def _left_out(self, X: Any, codes: Array) -> tuple[Array, Array]:
        X = self._check_X(X)
        count, values, mean, variance = self._sums()
        values = np.broadcast_to(values, mean.shape)
        if self.handle_missing == "ignore" and (values < 2).any():
            raise NotAvailableError("leave_one_out needs two values or more of every feature in every class.")
        epsilon = float(self.epsilon_)
        if not sp.issparse(X):
            X = np.asarray(X, dtype=float)
        scores = np.asarray(self._joint_log_likelihood(X), dtype=float) - self._log_prior()
        step = max(1, BLOCK // X.shape[1])
        for at in range(0, X.shape[0], step):
            rows = slice(at, at + step)
            own = codes[rows]
            n = values[own]
            d = (X[rows].toarray() if sp.issparse(X) else X[rows]) - mean[own]
            with np.errstate(divide="ignore", invalid="ignore"):
                # variance without the row, by the rank-one identity; its distance from the other rows' mean
                left = np.maximum(n * variance[own] - d**2 * n / (n - 1), 0.0) / (n - 1) + epsilon
                terms = -0.5 * (np.log(2 * np.pi * left) + (d * n / (n - 1)) ** 2 / left)
            terms = np.where(np.isnan(d), 0.0, terms)
            total = np.where(count[own] > 1, terms.sum(axis=1), -np.inf)
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


def value_moments(X: Any, codes: Array, weight: Array, K: int) -> tuple[Array, Array, Array, Array]:
    """Weight of each class, and weight, mean and variance of its values that are not missing, in two passes."""
    count, D = np.bincount(codes, weight, K), X.shape[1]
    values, mean, variance = np.zeros((K, D)), np.zeros((K, D)), np.zeros((K, D))
    for k in np.flatnonzero(count):
        rows, w = np.flatnonzero(codes == k), weight[codes == k]
        values[k], mean[k], variance[k] = (sparse_moments if sp.issparse(X) else dense_moments)(X[rows], w)
    return count, values, mean, variance


def dense_moments(X: Array, weight: Array) -> tuple[Array, Array, Array]:
    """Weight, mean and variance of the values of each column that are not missing."""
    X, gap = np.asarray(X, dtype=float), np.isnan(X)
    total = weight @ ~gap
    safe = np.where(total > 0, total, 1.0)
    mean = weight @ np.where(gap, 0.0, X) / safe
    return total, mean, weight @ np.where(gap, 0.0, X - mean) ** 2 / safe


def sparse_moments(X: Any, weight: Array) -> tuple[Array, Array, Array]:
    """Weight, mean and variance of the values of each column, where values that are not stored are 0."""
    X, D = sp.csr_array(X), X.shape[1]
    w, column = np.repeat(weight, np.diff(X.indptr)), X.indices
    gap = np.isnan(X.data)
    x = np.where(gap, 0.0, X.data)
    total = weight.sum() - np.bincount(column, w * gap, D)
    safe = np.where(total > 0, total, 1.0)
    mean = np.bincount(column, w * x, D) / safe
    w = np.where(gap, 0.0, w)
    squares = np.bincount(column, w * (x - mean[column]) ** 2, D)
    zeros = np.maximum(total - np.bincount(column, w, D), 0.0)
    return total, mean, (squares + zeros * mean**2) / safe


def merged_values(one: tuple[Array, ...], other: tuple[Array, ...]) -> tuple[Array, Array, Array, Array]:
    """Weights of classes and of values, means and variances of two sets of rows; a negative weight removes rows."""
    (count, n, mean, variance), (more_count, more, more_mean, more_variance) = one, other
    total = n + more
    total = np.where(np.abs(total) <= ROUNDING * np.abs(n), 0.0, total)
    safe = np.where(total != 0, total, 1.0)
    new_mean = np.where(total != 0, (n * mean + more * more_mean) / safe, 0.0)
    squares = n * variance + more * more_variance + n * more / safe * (mean - more_mean) ** 2
    return count + more_count, total, new_mean, np.where(total != 0, squares / safe, 0.0)


def merged_classes(n: Array, mean: Array, variance: Array) -> tuple[Array, Array]:
    """Mean and variance of the values of all classes together; 0 and 1 for a feature without values."""
    total = n.sum(axis=0)
    safe = np.where(total > 0, total, 1.0)
    centre = (n * mean).sum(axis=0) / safe
    spread = (n * (variance + (mean - centre) ** 2)).sum(axis=0) / safe
    return centre, np.where(total > 0, spread, 1.0)
