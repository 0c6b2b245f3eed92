"""Naive Bayes of scikit-learn on deciban's kernels: sums per class in one pass, and scores of all classes at once."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
import sklearn.naive_bayes as theirs
from sklearn.base import _fit_context
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, check_non_negative, validate_data

from deciban import kernels
from deciban.families.bernoulli import Bernoulli, BernoulliStats
from deciban.families.multinomial import Multinomial, MultinomialStats
from deciban.kernels.choice import compiled
from deciban.sklearn.dropin import Array, encode_labels, place_labels
from deciban.sklearn.evidence import Evidence, Sums
from deciban.statistics import Axis, Members

EPS = float(np.finfo(float).eps)
LOST = 1e-12  # relative error of a variance from which on it is computed in two passes
BLOCK = 2**20  # values of rows that are left out at once


class NaiveBayes(Evidence, Sums):
    """Posteriors of a naive Bayes classifier by one kernel."""

    def predict_log_proba(self, X: Any, prior: Any = None) -> Array:
        """Return log posterior probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        prior : array-like of shape (n_classes,) or dict, default=None
            Class probabilities in place of the learnt ones.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Log probability of each class.
        """
        return self._posterior(X, prior, logs=True)

    def predict_proba(self, X: Any, prior: Any = None) -> Array:
        """Return posterior probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        prior : array-like of shape (n_classes,) or dict, default=None
            Class probabilities in place of the learnt ones.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probability of each class.
        """
        return self._posterior(X, prior, logs=False)

    def _posterior(self, X: Any, prior: Any, logs: bool) -> Array:
        if prior is None and not self._runs(X):
            return super().predict_log_proba(X) if logs else super().predict_proba(X)  # type: ignore[misc]
        check_is_fitted(self)
        scores = self._joint_log_likelihood(self._check_X(X))
        if prior is not None:
            scores = scores - self._log_prior() + self._log_prior(prior)
        if scores.dtype != np.float64 or not scores.flags.c_contiguous:
            posterior = (kernels.log_softmax if logs else kernels.softmax)(scores).astype(scores.dtype, copy=False)
        else:
            posterior = (kernels.log_softmax if logs else kernels.softmax)(scores, out=scores)
        return posterior

    def _log_likelihood(self, X: Any) -> Array:
        check_is_fitted(self)
        return self._joint_log_likelihood(self._check_X(X)) - self._log_prior()


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


class DiscreteNaiveBayes(NaiveBayes):
    """Fit of the classifiers of counts: labels become class codes, and counts are summed by them."""

    class_count_: Array  # (K,)
    feature_count_: Array  # (K, D)
    category_count_: list[Array]  # of categories: D tables (K, n_categories)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Count features in each class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        estimator
            The classifier.
        """
        if self._runs(X) and self._fit_by_kernels(X, y, sample_weight, refit=True):
            return self
        return super().fit(X, y, sample_weight=sample_weight)  # type: ignore[misc]

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn more rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.
        classes : array-like of shape (n_classes,), default=None
            All labels that may occur; needed in the first call.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        estimator
            The classifier.
        """
        later = getattr(self, "classes_", None) is not None and classes is None
        if later and self._runs(X) and self._fit_by_kernels(X, y, sample_weight, refit=False):
            return self
        return super().partial_fit(X, y, classes, sample_weight=sample_weight)  # type: ignore[misc]

    @_fit_context(prefer_skip_nested_validation=True)
    def _fit_by_kernels(self, X: Any, y: Any, sample_weight: Any, refit: bool) -> bool:
        """Fit; False where scikit-learn should fit, or raise its error."""
        if encode_labels(np.asarray(y)[:1]) is None:
            return False
        X, y = self._check_rows(X, y, refit)
        found = encode_labels(y) if refit else (self.classes_, place_labels(y, self.classes_))
        if found is None or found[1] is None:
            return False
        classes, codes = found[0], found[1]
        weight = None
        if sample_weight is not None:
            weight = np.asarray(_check_sample_weight(sample_weight, X), dtype=np.float64)
            if not (weight > 0).all():
                return False
        sums = self._count_codes(X, codes, weight, len(classes))
        if sums is None:
            return False
        if refit:
            self.classes_ = classes
            self._init_counters(len(classes), X.shape[1])
        self._add(sums)
        self._estimate()
        return True

    def _check_rows(self, X: Any, y: Any, refit: bool) -> tuple[Any, Any]:
        return self._check_X_y(X, y, reset=refit)

    def _estimate(self) -> None:
        self._update_feature_log_prob(self._check_alpha())
        self._update_class_log_prior(class_prior=self.class_prior)

    def _count_codes(self, X: Any, codes: Array, weight: Array | None, K: int) -> tuple[Array, ...] | None:
        """Weights of classes, and counts of features, after scikit-learn's checks; None where it should count."""
        members = Members.hard(codes, K, weight)
        return members.weights(), np.asarray(members.total(X), dtype=np.float64)

    def _add(self, sums: tuple[Array, ...]) -> None:
        """Add sums to the fitted attributes."""
        self.class_count_ = self.class_count_ + sums[0]
        self.feature_count_ = np.ascontiguousarray(self.feature_count_ + sums[1])

    def _log_prior(self, prior: Any = None) -> Array:
        return self.class_log_prior_ if prior is None else self._as_log_prior(prior)

    def _linear(self, X: Any, weights: Array, bias: Array) -> Array | None:
        """Return bias + X @ weights.T of many CSR rows; None where scikit-learn is as fast."""
        if not sp.issparse(X) or not self._runs(X) or not compiled(X.nnz * len(weights)):
            return None
        return kernels.sparse_scores(X.data, X.indices, X.indptr, np.ascontiguousarray(weights.T), bias)

    # -- sums --------------------------------------------------------------------------------------------------------
    def _take(self, X: Any, y: Any, sample_weight: Any, sign: float) -> None:
        X = self._check_X(X)
        codes = self._known_codes(y)
        w = np.ones(X.shape[0]) if sample_weight is None else np.asarray(_check_sample_weight(sample_weight, X), float)
        members = Members.hard(codes, len(self.classes_), w)
        self._merge(self._sums(), (sign * members.weights(), sign * np.asarray(members.total(X), dtype=float)))

    def _sums(self) -> tuple[Array, ...]:
        return self.class_count_, self.feature_count_

    def _merge(self, sums: tuple[Array, ...], other: tuple[Array, ...]) -> None:
        count, features = (mine + more for mine, more in zip(sums, other))
        least = -1e-9 * max(1.0, float(np.abs(features).max(initial=0.0)))
        if (count < least).any() or (features < least).any():
            raise self._never_learnt()
        self.class_count_, self.feature_count_ = np.maximum(count, 0.0), np.maximum(features, 0.0)
        self._estimate()


class MultinomialNB(DiscreteNaiveBayes, theirs.MultinomialNB):
    """Multinomial naive Bayes with scikit-learn's interface.

    Parameters
    ----------
    alpha : float or array-like of shape (n_features,), default=1.0
        Pseudo-count of each feature.
    force_alpha : bool, default=True
        Whether values of alpha below 1e-10 are kept.
    fit_prior : bool, default=True
        Whether class probabilities are learnt; else they are equal.
    class_prior : array-like of shape (n_classes,), default=None
        Class probabilities.

    Attributes
    ----------
    class_count_ : ndarray of shape (n_classes,)
        Number of rows, or sum of weights, of each class.
    class_log_prior_ : ndarray of shape (n_classes,)
        Log class probabilities.
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    feature_count_, feature_log_prob_ : ndarray of shape (n_classes, n_features)
        Counts and log probabilities of features.

    Examples
    --------
    >>> clf = MultinomialNB().fit([[2, 0], [1, 1], [0, 3]], ["a", "a", "b"])
    >>> clf.unlearn([[1, 1]], ["a"]).feature_count_
    array([[2., 0.],
           [0., 3.]])
    """

    def _count_codes(self, X: Any, codes: Array, weight: Array | None, K: int) -> tuple[Array, ...] | None:
        check_non_negative(X, "MultinomialNB (input X)")
        return super()._count_codes(X, codes, weight, K)

    def _joint_log_likelihood(self, X: Any) -> Array:
        scores = self._linear(X, self.feature_log_prob_, self.class_log_prior_)
        return super()._joint_log_likelihood(X) if scores is None else scores

    def _left_out(self, X: Any, codes: Array) -> tuple[Array, Array]:
        X, K = self._check_X(X), len(self.classes_)
        labels = {"class": Axis.of(K), "word": Axis.of(X.shape[1])}
        stats = MultinomialStats(labels, self.feature_count_, self.class_count_, np.zeros((K, 2)))
        X = sp.csr_array(X) if sp.issparse(X) else np.asarray(X, dtype=float)
        family = Multinomial(self._check_alpha())
        return family.leave_one_out(stats, X, Members.hard(codes, K), "mean"), self.class_count_


class ComplementNB(DiscreteNaiveBayes, theirs.ComplementNB):
    """Complement naive Bayes with scikit-learn's interface.

    Parameters
    ----------
    alpha : float or array-like of shape (n_features,), default=1.0
        Pseudo-count of each feature.
    force_alpha : bool, default=True
        Whether values of alpha below 1e-10 are kept.
    fit_prior : bool, default=True
        Used only if there is a single class.
    class_prior : array-like of shape (n_classes,), default=None
        Not used.
    norm : bool, default=False
        Whether weights are normalised a second time.

    Attributes
    ----------
    class_count_ : ndarray of shape (n_classes,)
        Number of rows, or sum of weights, of each class.
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    feature_all_ : ndarray of shape (n_features,)
        Counts of all classes together.
    feature_count_, feature_log_prob_ : ndarray of shape (n_classes, n_features)
        Counts, and weights of features.

    Examples
    --------
    >>> ComplementNB().fit([[2, 0], [1, 1], [0, 3]], ["a", "a", "b"]).predict([[1, 0]])
    array(['a'], dtype='<U1')
    """

    def _count_codes(self, X: Any, codes: Array, weight: Array | None, K: int) -> tuple[Array, ...] | None:
        check_non_negative(X, "ComplementNB (input X)")
        return super()._count_codes(X, codes, weight, K)

    def _estimate(self) -> None:
        self.feature_all_ = self.feature_count_.sum(axis=0)
        super()._estimate()

    def _joint_log_likelihood(self, X: Any) -> Array:
        bias = self.class_log_prior_ if len(self.classes_) == 1 else np.zeros(len(self.classes_))
        scores = self._linear(X, self.feature_log_prob_, bias)
        return super()._joint_log_likelihood(X) if scores is None else scores

    def _log_prior(self, prior: Any = None) -> Array:
        # scores of complements hold no class prior
        own = self.class_log_prior_ if len(self.classes_) == 1 else np.zeros(len(self.classes_))
        return own if prior is None else self._as_log_prior(prior)


class BernoulliNB(DiscreteNaiveBayes, theirs.BernoulliNB):
    """Bernoulli naive Bayes with scikit-learn's interface.

    Parameters
    ----------
    alpha : float or array-like of shape (n_features,), default=1.0
        Pseudo-count of ones and of zeros.
    force_alpha : bool, default=True
        Whether values of alpha below 1e-10 are kept.
    binarize : float or None, default=0.0
        Values above it count as 1, others as 0. If None, values are taken as they are.
    fit_prior : bool, default=True
        Whether class probabilities are learnt; else they are equal.
    class_prior : array-like of shape (n_classes,), default=None
        Class probabilities.

    Attributes
    ----------
    class_count_ : ndarray of shape (n_classes,)
        Number of rows, or sum of weights, of each class.
    class_log_prior_ : ndarray of shape (n_classes,)
        Log class probabilities.
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    feature_count_, feature_log_prob_ : ndarray of shape (n_classes, n_features)
        Counts and log probabilities of ones.

    Examples
    --------
    >>> clf = BernoulliNB().fit([[1, 0], [1, 1], [0, 1]], ["a", "a", "b"])
    >>> clf.llr([[1, 0]], "a", "b").round(3)
    array([1.216])
    """

    def _joint_log_likelihood(self, X: Any) -> Array:
        if not sp.issparse(X) or not self._runs(X):
            return super()._joint_log_likelihood(X)
        absent = np.log(1 - np.exp(self.feature_log_prob_))
        scores = self._linear(X, self.feature_log_prob_ - absent, self.class_log_prior_ + absent.sum(axis=1))
        return super()._joint_log_likelihood(X) if scores is None else scores

    def _left_out(self, X: Any, codes: Array) -> tuple[Array, Array]:
        X, K = self._check_X(X), len(self.classes_)
        X = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=float)
        labels = {"class": Axis.of(K), "feature": Axis.of(X.shape[1])}
        stats = BernoulliStats(labels, self.feature_count_, self.class_count_[:, None] - self.feature_count_)
        alpha = self._check_alpha()
        family = Bernoulli(alpha, alpha)
        return family.leave_one_out(stats, X, Members.hard(codes, K), "mean"), self.class_count_


class CategoricalNB(DiscreteNaiveBayes, theirs.CategoricalNB):
    """Categorical naive Bayes with scikit-learn's interface; counts of all columns are found in one pass.

    Parameters
    ----------
    alpha : float, default=1.0
        Pseudo-count of each category.
    force_alpha : bool, default=True
        Whether a value of alpha below 1e-10 is kept.
    fit_prior : bool, default=True
        Whether class probabilities are learnt; else they are equal.
    class_prior : array-like of shape (n_classes,), default=None
        Class probabilities.
    min_categories : int or array-like of shape (n_features,), default=None
        Least number of categories of each feature.

    Attributes
    ----------
    category_count_, feature_log_prob_ : list of n_features ndarrays of shape (n_classes, n_categories)
        Counts and log probabilities of the categories of each feature.
    class_count_ : ndarray of shape (n_classes,)
        Number of rows, or sum of weights, of each class.
    class_log_prior_ : ndarray of shape (n_classes,)
        Log class probabilities.
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    n_categories_ : ndarray of shape (n_features,)
        Number of categories of each feature.

    Examples
    --------
    >>> CategoricalNB().fit([[0, 1], [1, 1], [2, 0]], ["a", "a", "b"]).predict([[2, 0]])
    array(['b'], dtype='<U1')
    """

    def _check_rows(self, X: Any, y: Any, refit: bool) -> tuple[Any, Any]:
        # codes below 0 are noticed by the counts
        return validate_data(self, X, y, dtype="int", accept_sparse=False, ensure_all_finite=True, reset=refit)

    def _count_codes(self, X: Array, codes: Array, weight: Array | None, K: int) -> tuple[Array, ...] | None:
        if weight is not None:
            check_non_negative(X, "CategoricalNB (input X)")
        try:
            sizes, counts = kernels.category_counts_growing(X, codes, weight, K)
        except kernels.CategoryError:
            check_non_negative(X, "CategoricalNB (input X)")
            return None  # more categories than a table of counts should have
        totals = kernels.class_weights(codes, weight, K)
        if weight is None and counts.sum() != totals.sum() * len(sizes):  # −1 is a missing value to the kernel
            check_non_negative(X, "CategoricalNB (input X)")
        self._validate_n_categories(sizes[None, :] - 1, self.min_categories)  # raises its error before a change
        return totals, *np.split(counts, np.cumsum(sizes)[:-1], axis=1)

    def _add(self, sums: tuple[Array, ...]) -> None:
        sizes = np.array([table.shape[1] for table in sums[1:]])
        self.n_categories_ = self._validate_n_categories(sizes[None, :] - 1, self.min_categories)
        wider = [np.zeros((len(sums[0]), most)) for most in self.n_categories_]
        tables = [
            padded_sum(old, padded_sum(new, more)) for old, new, more in zip(self.category_count_, wider, sums[1:])
        ]
        self.category_count_, self.class_count_ = tables, self.class_count_ + sums[0]

    def _joint_log_likelihood(self, X: Array) -> Array:
        K = len(self.classes_)
        if not self._runs(X) or not compiled(X.size * K) or X.shape[1] != self.n_features_in_:
            return super()._joint_log_likelihood(X)
        sizes = np.array([table.shape[1] for table in self.feature_log_prob_])
        weights = np.ascontiguousarray(np.concatenate(self.feature_log_prob_, axis=1).T)
        unseen = np.full((len(sizes), K), np.nan)
        scores = kernels.category_scores(X, weights, np.cumsum(sizes) - sizes, sizes, unseen)
        if np.isnan(scores.sum()):
            return super()._joint_log_likelihood(X)  # raises the error of an unknown category
        scores += self.class_log_prior_
        return scores

    # -- sums --------------------------------------------------------------------------------------------------------
    def _take(self, X: Any, y: Any, sample_weight: Any, sign: float) -> None:
        X = self._check_X(X)
        codes = self._known_codes(y)
        w = np.ones(len(X)) if sample_weight is None else np.asarray(_check_sample_weight(sample_weight, X), float)
        sizes, counts = kernels.category_counts_growing(X, codes, w, len(self.classes_))
        ends = np.cumsum(sizes)
        parts = [sign * counts[:, end - size : end] for end, size in zip(ends, sizes)]
        self._merge(self._sums(), (sign * kernels.class_weights(codes, w, len(self.classes_)), *parts))

    def _sums(self) -> tuple[Array, ...]:
        return self.class_count_, *self.category_count_

    def _merge(self, sums: tuple[Array, ...], other: tuple[Array, ...]) -> None:
        count = sums[0] + other[0]
        tables = [padded_sum(mine, more) for mine, more in zip(sums[1:], other[1:])]
        if min([count.min(), *(table.min() for table in tables)]) < -1e-9:
            raise self._never_learnt()
        self.class_count_, self.category_count_ = np.maximum(count, 0.0), [np.maximum(t, 0.0) for t in tables]
        self.n_categories_ = np.array([table.shape[1] for table in tables])
        self._estimate()

    def _left_out(self, X: Any, codes: Array) -> tuple[Array, Array]:
        X = self._check_X(X)
        scores = self._joint_log_likelihood(X) - self.class_log_prior_
        own = np.zeros(len(X))
        alpha = self._check_alpha()
        with np.errstate(divide="ignore", invalid="ignore"):
            for x, table in zip(X.T, self.category_count_):
                own += np.log(table[codes, x] - 1 + alpha) - np.log(
                    table.sum(axis=1)[codes] - 1 + alpha * table.shape[1]
                )
        scores[np.arange(len(X)), codes] = np.where(np.isnan(own), -np.inf, own)
        return scores, self.class_count_


def padded_sum(one: Array, other: Array) -> Array:
    """Sum of two tables of the same classes, of which one may have more categories."""
    table = np.zeros((len(one), max(one.shape[1], other.shape[1])))
    table[:, : one.shape[1]] += one
    table[:, : other.shape[1]] += other
    return table
