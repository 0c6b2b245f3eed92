"""Additions of the drop-in classifiers: likelihood ratios, other priors, unlearning, merging, leave-one-out."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Literal, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted, column_or_1d

from deciban import kernels
from deciban.errors import HyperparameterError, MergeError, NotAvailableError, NotLearntError, UnknownLabelError
from deciban.evidence.decisions import resolve_prior
from deciban.evidence.scores import log_probability
from deciban.sklearn.dropin import Array, DropIn, place_labels
from deciban.statistics import Additive

ROUNDING = 1e-12  # share of the weight learnt that counts as none after rows were removed


class Ratios(DropIn):
    """Likelihood ratios between classes, or between the components of a mixture."""

    classes_: Array

    def _log_likelihood(self, X: Any) -> Array:
        """Return log f(x|class), up to a term that all classes share: shape (n, K)."""
        raise NotImplementedError

    def _log_prior(self, prior: Any = None) -> Array:
        """Return the log class probabilities in the scores, or those given."""
        raise NotImplementedError

    def _names(self) -> Array:
        return self.classes_

    def _position(self, name: Any) -> int:
        found = np.flatnonzero(self._names() == name)
        if not len(found):
            raise UnknownLabelError(f"{name!r} is no class of this {type(self).__name__}: {self._names().tolist()}.")
        return int(found[0])

    def llr(self, X: Any, positive: Any = None, negative: Any = None) -> Array:
        """Return log-likelihood ratios, which do not depend on class probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        positive, negative : label, default=None
            The two classes. With two classes in all, the second over the first if not given. With more classes and
            `negative` not given, against all others, in the proportions that were learnt.

        Returns
        -------
        ndarray of shape (n_samples,)
            Natural logarithms of the ratios.
        """
        check_is_fitted(self)
        K = len(self._names())
        if positive is None and K != 2:
            raise HyperparameterError(f"there are {K} classes: name the class of the numerator.")
        scores = self._log_likelihood(X)
        top = 1 if positive is None else self._position(positive)
        if negative is not None:
            return scores[:, top] - scores[:, self._position(negative)]
        others = np.flatnonzero(np.arange(K) != top)
        weights = self._log_prior()[others]
        return scores[:, top] - kernels.log_sum_exp(scores[:, others] + weights - np.logaddexp.reduce(weights))


class Evidence(Ratios):
    """Posteriors under other class probabilities than the learnt ones."""

    def _less_prior(self, joint: Array) -> Array:
        """Return joint log probabilities without the log prior; a class without rows has no density, -inf."""
        own = self._log_prior()
        none = np.isneginf(own)
        return np.where(none, -np.inf, joint - np.where(none, 0.0, own)) if none.any() else joint - own

    def _as_log_prior(self, prior: Any, names: Array | None = None) -> Array:
        """Check class probabilities, an array or {class: probability}; the rest is shared by classes not named."""
        return log_probability(resolve_prior(prior, self.classes_ if names is None else names))

    def predict(self, X: Any, prior: Any = None) -> Array:
        """Return the most probable class of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        prior : array-like of shape (n_classes,) or dict, default=None
            Class probabilities in place of the learnt ones.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        if prior is None:
            return super().predict(X)  # type: ignore[misc]
        return self.classes_[(self._log_likelihood(X) + self._log_prior(prior)).argmax(axis=1)]

    def _posterior(self, X: Any, prior: Any, logs: bool) -> Array:
        """Return posterior probabilities, or their logarithms: (n, K)."""
        if prior is None:
            return super().predict_log_proba(X) if logs else super().predict_proba(X)  # type: ignore[misc]
        return (kernels.log_softmax if logs else kernels.softmax)(self._log_likelihood(X) + self._log_prior(prior))

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


class LeaveOneOut:
    """Leave-one-out answers of classifiers."""

    classes_: Array
    _log_prior: Any

    def _left_out(self, X: Any, codes: Array) -> tuple[Array, Array]:
        """Return log-likelihoods of rows without them, (n, K), and the weights of the classes."""
        raise NotAvailableError(f"{type(self).__name__} has no leave-one-out scores.")

    def leave_one_out(
        self, X: Any, y: Any, method: Literal["predict_proba", "predict_log_proba", "predict"] = "predict_proba"
    ) -> Array:
        """Answer for each learnt row as the classifier fitted without it would, without refitting.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows that were learnt, each with weight 1.
        y : array-like of shape (n_samples,)
            Their labels.
        method : {"predict_proba", "predict_log_proba", "predict"}, default="predict_proba"
            What to return.

        Returns
        -------
        ndarray of shape (n_samples, n_classes) or (n_samples,)
            Probabilities, their logarithms, or labels.
        """
        check_is_fitted(self)
        codes = self._known_codes(y)
        try:
            scores, count = self._left_out(X, codes)
        except HyperparameterError as error:  # alpha=0: without a row, some of its values would be impossible
            raise NotAvailableError(
                f"{type(self).__name__} with these parameters has no leave-one-out scores: {error}"
            ) from None
        scores = scores + self._left_out_prior(np.asarray(count, dtype=float), codes)
        if method == "predict":
            return self.classes_[scores.argmax(axis=1)]
        return (kernels.softmax if method == "predict_proba" else kernels.log_softmax)(scores)

    def _left_out_prior(self, count: Array, codes: Array) -> Array:
        """Return log class probabilities without each row: (n, K), or (K,) if they were not learnt."""
        if not self._learns_prior():
            return self._log_prior()
        left = np.repeat(count[None, :], len(codes), axis=0)
        left[np.arange(len(codes)), codes] -= 1.0
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log(left / left.sum(axis=1, keepdims=True))

    def _learns_prior(self) -> bool:
        given = getattr(self, "priors", None) is not None or getattr(self, "class_prior", None) is not None
        return not given and getattr(self, "fit_prior", True)

    def _known_codes(self, y: Any, names: Array | None = None) -> Array:
        y, names = column_or_1d(y), self.classes_ if names is None else names
        codes = place_labels(y, names)
        if codes is None and y.dtype.kind == "f" and np.isin(y, names).all():
            codes = np.searchsorted(names, y)
        if codes is None:
            raise UnknownLabelError(f"y holds labels that this classifier does not know; it knows {names.tolist()}.")
        return codes


class Sums(LeaveOneOut, Additive):
    """Unlearning and merging of classifiers whose fitted attributes are sums over rows."""

    class_count_: Array
    _take: Any
    _sums: Any
    _merge: Any

    def unlearn(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Remove rows that were learnt before; the classifier is then as if they had not been learnt.

        A number that was added to variances (`epsilon_`) is kept.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights with which the rows were learnt.

        Returns
        -------
        estimator
            The classifier.

        Raises
        ------
        NotLearntError
            If the sums show that a row was never learnt. The classifier is unchanged.
        NotAvailableError
            If no row would be left. The classifier is unchanged.
        """
        check_is_fitted(self)
        self._take(X, y, sample_weight, -1.0)
        return self

    def __add__(self, other: Self) -> Self:
        """Return the classifier of the rows of both."""
        if type(other) is not type(self) or other.get_params() != self.get_params():  # type: ignore[attr-defined]
            raise MergeError("classifiers can be added if they have the same class and parameters.")
        check_is_fitted(self)
        check_is_fitted(other)
        if other.n_features_in_ != self.n_features_in_:  # type: ignore[attr-defined]
            raise MergeError("the classifiers were fitted on different numbers of features.")
        both = deepcopy(self)
        both.classes_ = np.union1d(self.classes_, other.classes_)
        K = len(both.classes_)
        mine, theirs = (
            each._select_classes(each._sums(), np.searchsorted(both.classes_, each.classes_), K)
            for each in (self, other)
        )
        both._merge(mine, theirs)
        return both

    def _select_classes(self, sums: tuple[Array, ...], at: Array, K: int) -> tuple[Array, ...]:
        """Place the sums of each class at positions among K classes; others are 0."""
        placed = tuple(np.zeros((K, *each.shape[1:])) for each in sums)
        for new, old in zip(placed, sums):
            new[at] = old
        return placed

    def _require_rows(self, count: Array) -> None:
        """Refuse weights of classes without any row: there would be no class probabilities."""
        if not (count > ROUNDING * max(1.0, np.abs(self.class_count_).max(initial=0.0))).any():
            raise NotAvailableError(
                f"{type(self).__name__} would have no rows left. Keep some of them, or use a new classifier."
            )

    def _never_learnt(self) -> NotLearntError:
        return NotLearntError("rows to unlearn were never learnt: counts would fall below 0.")
