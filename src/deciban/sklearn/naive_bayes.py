"""Naive Bayes of scikit-learn on deciban's kernels: counts in one pass, and scores of all classes at once."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
import sklearn.naive_bayes as theirs
from sklearn.base import _fit_context
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, check_non_negative

from deciban import kernels
from deciban.families.bernoulli import Bernoulli, BernoulliStats
from deciban.families.multinomial import Multinomial, MultinomialStats
from deciban.kernels.choice import compiled
from deciban.sklearn.dropin import Array, Evidence, Shapes, Sums, encode_labels, place_labels
from deciban.statistics import Axis, Members
from deciban.store.checks import require


class NaiveBayes(Evidence, Sums):
    """Posteriors of a naive Bayes classifier by one kernel."""

    def _posterior(self, X: Any, prior: Any, logs: bool) -> Array:
        if prior is None and not self._runs(X):
            return super()._posterior(X, None, logs)
        check_is_fitted(self)
        scores = self._joint_log_likelihood(self._check_X(X))
        if prior is not None:
            scores = self._less_prior(scores) + self._log_prior(prior)
        if scores.dtype != np.float64 or not scores.flags.c_contiguous:
            posterior = (kernels.log_softmax if logs else kernels.softmax)(scores).astype(scores.dtype, copy=False)
        else:
            posterior = (kernels.log_softmax if logs else kernels.softmax)(scores, out=scores)
        return posterior

    def _log_likelihood(self, X: Any) -> Array:
        check_is_fitted(self)
        return self._less_prior(self._joint_log_likelihood(self._check_X(X)))


class DiscreteNaiveBayes(NaiveBayes):
    """Fit of the classifiers of counts: labels become class codes, and counts are summed by them."""

    class_count_: Array  # (K,)
    feature_count_: Array  # (K, D)
    category_count_: list[Array]  # counts of categories: D tables (K, n_categories)

    def fitted_shapes(self) -> Shapes:
        own = {"class_count_": "K count", "class_log_prior_": "K log"}
        return super().fitted_shapes() | own | {"feature_count_": "K D count", "feature_log_prob_": "K D log"}

    def check_fitted(self) -> None:
        super().check_fitted()
        alpha = np.asarray(self.alpha)
        right = alpha.shape in ((), (self.n_features_in_,)) and alpha.dtype.kind in "fiu" and bool((alpha >= 0).all())
        require(right, "alpha", "a number of at least 0, or one for each column")

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
        if self._runs(X, few=True) and self._fit_by_kernels(X, y, sample_weight, refit=True):
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
        if later and self._runs(X, few=True) and self._fit_by_kernels(X, y, sample_weight, refit=False):
            return self
        return super().partial_fit(X, y, classes, sample_weight=sample_weight)  # type: ignore[misc]

    @_fit_context(prefer_skip_nested_validation=True)
    def _fit_by_kernels(self, X: Any, y: Any, sample_weight: Any, refit: bool) -> bool:
        """Fit; False where scikit-learn should fit, or raise its error."""
        if encode_labels(np.atleast_1d(np.asarray(y))[:1]) is None:
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
        """Return bias + X @ weights.T of many CSR rows; None for inputs for which scikit-learn is as fast."""
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
        self._require_rows(count)
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

    def fitted_shapes(self) -> Shapes:
        # weights have either sign
        return super().fitted_shapes() | {"feature_log_prob_": "K D real", "feature_all_": "D count"}

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
        # scores of complements contain no class prior
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
