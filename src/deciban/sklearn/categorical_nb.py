"""Categorical naive Bayes of scikit-learn on deciban's kernels: counts of all columns in one pass.

Beyond scikit-learn's, it takes categories of any type, unknown categories and missing values, if its options say so.
"""

from __future__ import annotations

import math
from copy import copy
from typing import Any, ClassVar, Self

import numpy as np
import sklearn.naive_bayes as theirs
from sklearn.base import _fit_context
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.multiclass import _check_partial_fit_first_call, check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_non_negative, validate_data

from deciban import kernels
from deciban.errors import DomainError, MergeError, NotLearntError
from deciban.kernels.choice import compiled
from deciban.sklearn.dropin import Array, Shapes, check_arrays
from deciban.sklearn.naive_bayes import DiscreteNaiveBayes
from deciban.store.checks import require

MOST_EMPTY = 2**20  # counts of categories that `min_categories` of a file may demand
MISSING = -1  # the code of a missing value, and of an unknown category that is ignored


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
    categories : {"codes", "auto"}, default="codes"
        Whether categories are codes 0, 1, … as scikit-learn demands, or values of any type, such as strings, that are
        found in the rows. New values in later calls of `partial_fit` are added.
    handle_unknown : {"error", "ignore"}, default="error"
        Whether a row with a category that was never learnt is refused, or the category adds nothing to the scores.
    handle_missing : {"error", "ignore"}, default="error"
        Whether missing values (NaN, None) are refused, or add nothing to counts and scores.

    Attributes
    ----------
    categories_ : list of n_features ndarrays
        Values of the categories of each feature; with categories="auto".
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
    >>> clf = CategoricalNB(categories="auto", handle_unknown="ignore", handle_missing="ignore")
    >>> clf.fit([["red", "s"], ["red", None], ["blue", "m"]], ["a", "a", "b"]).predict([["blue", "xl"]])
    array(['b'], dtype='<U1')
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **theirs.CategoricalNB._parameter_constraints,
        "categories": [StrOptions({"codes", "auto"})],
        "handle_unknown": [StrOptions({"error", "ignore"})],
        "handle_missing": [StrOptions({"error", "ignore"})],
    }

    def __init__(
        self,
        *,
        alpha: float = 1.0,
        force_alpha: bool = True,
        fit_prior: bool = True,
        class_prior: Any = None,
        min_categories: Any = None,
        categories: str = "codes",
        handle_unknown: str = "error",
        handle_missing: str = "error",
    ) -> None:
        super().__init__(
            alpha=alpha,
            force_alpha=force_alpha,
            fit_prior=fit_prior,
            class_prior=class_prior,
            min_categories=min_categories,
        )
        self.categories = categories
        self.handle_unknown = handle_unknown
        self.handle_missing = handle_missing

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.handle_missing == "ignore"
        tags.input_tags.positive_only = self.categories == "codes"
        tags.input_tags.string = self.categories == "auto"
        return tags

    def fitted_shapes(self) -> Shapes:
        shapes = super().fitted_shapes()
        del shapes["feature_count_"]
        tables = {"category_count_": "D list", "feature_log_prob_": "D list", "n_categories_": "D whole"}
        return shapes | tables | {"categories_": "D list" if self._encodes() else "optional D list"}

    def check_fitted(self) -> None:
        super().check_fitted()
        K, sizes = len(self.classes_), np.asarray(self.n_categories_)
        least = self.min_categories
        right = least is None or (np.shape(least) in ((), sizes.shape) and np.asarray(least).dtype.kind == "i")
        if right and least is not None:  # learning makes tables of this size
            right = K * sum(np.broadcast_to(least, sizes.shape).tolist()) <= max(MOST_EMPTY, 8 * K * int(sizes.sum()))
        require(right, "min_categories", "a whole number, or one for each column, and not far above the categories")
        shapes = [(K, size) for size in sizes.tolist()]
        check_arrays(self.category_count_, shapes, "category_count_", lambda table: (table >= 0).all())
        check_arrays(self.feature_log_prob_, shapes, "feature_log_prob_", lambda table: (table <= 0).all(), False)
        for names, size in zip(getattr(self, "categories_", ()), sizes):
            right = isinstance(names, np.ndarray) and names.ndim == 1 and names.dtype == object
            right = right and (len(names) <= size if self.categories == "auto" else not len(names))
            require(right and len(set(names.tolist())) == len(names), "categories_", "distinct names of categories")

    # -- options -----------------------------------------------------------------------------------------------------
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Count categories in each class.

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
        CategoricalNB
            The classifier.
        """
        if self._encodes():
            return self._fit_encoded(X, y, None, sample_weight, refit=True)
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
        CategoricalNB
            The classifier.
        """
        if self._encodes():
            return self._fit_encoded(X, y, classes, sample_weight, refit=False)
        return super().partial_fit(X, y, classes, sample_weight)

    @_fit_context(prefer_skip_nested_validation=True)
    def _fit_encoded(self, X: Any, y: Any, classes: Any, sample_weight: Any, refit: bool) -> Self:
        """Count the values that are not missing, with categories of any type."""
        first = refit or getattr(self, "classes_", None) is None
        X, y = self._checked(X, y, reset=first)
        if refit:
            check_classification_targets(y)
            self.classes_ = np.unique(y)
        else:
            _check_partial_fit_first_call(self, classes)
        if first:
            self._init_counters(len(self.classes_), X.shape[1])
            self.categories_ = [np.empty(0, dtype=object)] * X.shape[1]
        labels = self._known_codes(y)
        weight = None
        if sample_weight is not None:
            weight = np.asarray(_check_sample_weight(sample_weight, X), dtype=float)
            X, labels, weight = X[weight != 0], labels[weight != 0], weight[weight != 0]
        names, codes = self._codes(X)
        sums = self._count_codes(codes, labels, weight, len(self.classes_))
        if sums is None:
            raise DomainError(f"a column holds {int(codes.max())} or more categories, too many to count.")
        self.categories_ = names
        self._add(sums)
        self._estimate()
        return self

    def _encodes(self) -> bool:
        """Whether this class converts rows to codes, and not scikit-learn's checks."""
        return self.categories == "auto" or self.handle_missing == "ignore"

    def _checked(self, X: Any, y: Any = "no_validation", reset: bool = False) -> Any:
        """Check rows, and labels if given, as far as the options demand."""
        finite = "allow-nan" if self.handle_missing == "ignore" else True
        dtype = object if self.categories == "auto" else np.float64
        checked = validate_data(self, X, y, dtype=dtype, ensure_all_finite=finite, reset=reset)
        rows, labels = (checked, None) if isinstance(y, str) else checked
        if self.categories == "auto":
            self._refuse_values(rows)
        return rows if labels is None else (rows, labels)

    def _refuse_values(self, rows: Array) -> None:
        """Refuse infinite values, and missing ones unless they are ignored."""
        for bad, what, remedy in (
            (infinite_values(rows), "holds inf", "Drop the row."),
            (missing_values(rows), "is missing (NaN or None)", "Fill it, or set handle_missing='ignore'."),
        ):
            if bad.any() and (what == "holds inf" or self.handle_missing == "error"):
                row, column = map(int, np.argwhere(bad)[0])
                raise DomainError(f"column {column} {what} (row {row}). {remedy}")

    def _codes(self, rows: Array) -> tuple[list[Array], Array]:
        """Return the categories of each column, learnt ones first, and the codes of checked rows."""
        if self.categories == "codes":
            codes = np.where(np.isnan(rows), MISSING, rows).astype(np.int64)
            check_non_negative(rows, "CategoricalNB (input X)")
            return self.categories_, codes
        found = [encode(column, known) for column, known in zip(rows.T, self.categories_)]
        return [names for names, _ in found], np.column_stack([codes for _, codes in found])

    def _check_X(self, X: Any) -> Array:
        if not self._encodes():
            if self.handle_unknown == "ignore" or not self._runs(X):
                return super()._check_X(X)
            # `_joint_log_likelihood` detects codes below 0 without another pass over the codes
            return validate_data(self, X, dtype="int", accept_sparse=False, ensure_all_finite=True, reset=False)
        names, codes = self._codes(self._checked(X))
        for j, (all_names, known) in enumerate(zip(names, self.categories_)):
            if len(all_names) > len(known) and self.handle_unknown == "error":
                row = int(np.argmax(codes[:, j] >= len(known)))
                raise DomainError(
                    f"column {j} holds {all_names[len(known)]!r} (row {row}), a category that was never learnt. "
                    "Set handle_unknown='ignore'."
                )
        return codes

    def _check_rows(self, X: Any, y: Any, refit: bool) -> tuple[Any, Any]:
        # the counts show codes below 0
        return validate_data(self, X, y, dtype="int", accept_sparse=False, ensure_all_finite=True, reset=refit)

    def _count_codes(self, X: Array, codes: Array, weight: Array | None, K: int) -> tuple[Array, ...] | None:
        gaps = self._encodes()
        if weight is not None and not gaps:
            check_non_negative(X, "CategoricalNB (input X)")
        try:
            sizes, counts = kernels.category_counts_growing(X, codes, weight, K)
        except kernels.CategoryError:
            check_non_negative(X, "CategoricalNB (input X)")
            return None  # more categories than a table of counts should have
        totals = kernels.class_weights(codes, weight, K)
        # the kernel takes −1 as a missing value
        if weight is None and not gaps and counts.sum() != totals.sum() * len(sizes):
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
        ignores = self.handle_unknown == "ignore"
        lenient = self._encodes() or ignores
        if not lenient and (not self._runs(X) or not compiled(X.size * K) or X.shape[1] != self.n_features_in_):
            return self._their_scores(X)
        sizes = np.array([table.shape[1] for table in self.feature_log_prob_])
        weights = np.ascontiguousarray(np.concatenate(self.feature_log_prob_, axis=1).T)
        unseen = np.full((len(sizes), K), 0.0 if ignores else np.nan)
        starts, missing = np.cumsum(sizes) - sizes, 0.0 if lenient else np.nan
        scores = kernels.category_scores(X, weights, starts, sizes, unseen, self.class_log_prior_, missing)
        return self._their_scores(X) if np.isnan(scores.sum()) else scores

    def _their_scores(self, X: Array) -> Array:
        """Return scikit-learn's scores of codes; raise its errors of codes below 0 and of unknown categories."""
        check_non_negative(X, "CategoricalNB (input X)")
        return super()._joint_log_likelihood(X)

    # -- sums --------------------------------------------------------------------------------------------------------
    def _take(self, X: Any, y: Any, sample_weight: Any, sign: float) -> None:
        X = self._check_X(X)
        codes = self._known_codes(y)
        w = np.ones(len(X)) if sample_weight is None else np.asarray(_check_sample_weight(sample_weight, X), float)
        if not self._encodes():
            check_non_negative(X, "CategoricalNB (input X)")
        sizes, counts = kernels.category_counts_growing(X, codes, w, len(self.classes_))
        ends = np.cumsum(sizes)
        parts = [sign * counts[:, end - size : end] for end, size in zip(ends, sizes)]
        self._merge(self._sums(), (sign * kernels.class_weights(codes, w, len(self.classes_)), *parts))

    def _sums(self) -> tuple[Array, ...]:
        return self.class_count_, *self.category_count_

    def __add__(self, other: Self) -> Self:
        """Return the classifier of the rows of both."""
        if self.categories != "auto" or type(other) is not type(self) or not hasattr(other, "categories_"):
            return super().__add__(other)
        if len(self.categories_) != len(other.categories_):
            raise MergeError("the classifiers were fitted on different numbers of features.")
        both, aligned = copy(self), copy(other)
        both.categories_, aligned.category_count_ = [], []
        for mine, theirs_, table in zip(self.categories_, other.categories_, other.category_count_):
            names, at = encode(theirs_, mine)
            wide = np.zeros((len(table), len(names)))
            wide[:, at] = table[:, : len(at)]
            both.categories_.append(names)
            aligned.category_count_.append(wide)
        return super(CategoricalNB, both).__add__(aligned)

    def _merge(self, sums: tuple[Array, ...], other: tuple[Array, ...]) -> None:
        count = sums[0] + other[0]
        tables = [padded_sum(mine, more) for mine, more in zip(sums[1:], other[1:])]
        if min([count.min(), *(table.min() for table in tables)]) < -1e-9:
            raise self._never_learnt()
        self._require_rows(count)
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
                if (x >= table.shape[1]).any():
                    raise NotLearntError(
                        "leave_one_out is for learnt rows; a row has a category that was never learnt."
                    )
                term = np.log(table[codes, x] - 1 + alpha) - np.log(
                    table.sum(axis=1)[codes] - 1 + alpha * table.shape[1]
                )
                own += np.where(x == MISSING, 0.0, term)
        scores[np.arange(len(X)), codes] = np.where(np.isnan(own), -np.inf, own)
        return scores, self.class_count_


def padded_sum(one: Array, other: Array) -> Array:
    """Sum of two tables of the same classes, of which one may have more categories."""
    table = np.zeros((len(one), max(one.shape[1], other.shape[1])))
    table[:, : one.shape[1]] += one
    table[:, : other.shape[1]] += other
    return table


def missing_values(rows: Array) -> Array:
    """Where an array of objects holds None, NaN, or pandas' NA: same shape."""
    return np.frompyfunc(lambda value: value is None or value is not value or value != value, 1, 1)(rows).astype(bool)


def infinite_values(rows: Array) -> Array:
    """Where an array of objects holds an infinite number: same shape."""
    return np.frompyfunc(lambda value: isinstance(value, float) and math.isinf(value), 1, 1)(rows).astype(bool)


def encode(values: Array, known: Array | None) -> tuple[Array, Array]:
    """Categories, the known ones first, and the code of each value; -1 for missing values."""
    names = [] if known is None else known.tolist()
    place = {name: code for code, name in enumerate(names)}
    gap = missing_values(values)
    given = values[~gap].tolist()
    unknown = set(given) - place.keys()
    try:
        new = sorted(unknown)
    except TypeError:  # values of several types
        new = sorted(unknown, key=lambda value: (type(value).__name__, value))
    place |= {name: len(names) + i for i, name in enumerate(new)}
    codes = np.full(len(values), MISSING, dtype=np.int64)
    codes[~gap] = [place[value] for value in given]
    found = np.empty(len(place), dtype=object)
    found[:] = list(place)
    return found, codes
