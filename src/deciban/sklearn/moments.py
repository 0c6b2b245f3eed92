"""Moments of the rows of each class, which add and subtract, and the common part of both discriminant analyses."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
import sklearn
from sklearn.base import _fit_context
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import _check_sample_weight, column_or_1d, validate_data

from deciban import kernels
from deciban.errors import HyperparameterError, NotAvailableError, NotLearntError, SingularError
from deciban.families.gaussian import Gaussian, GaussianStats
from deciban.sklearn.dropin import Array, Evidence, Sums, check_arrays, encode_labels
from deciban.statistics import Axis, Members
from deciban.store.checks import require
from deciban.store.estimators import LARGEST

EPS = float(np.finfo(float).eps)
LOST = 1e-11  # relative error of a variance above which it is computed in two passes
NEGATIVE = 1e-9  # sums below minus this share of the learnt sums show rows that were never learnt
FALSIFIED = 1e-8  # largest relative error of a variance after unlearning
MASKED = 2**16  # rows times classes up to which masks of classes are faster than sorting


class Moments(NamedTuple):
    """Weight and mean of the rows of each class, and their sums of products about it."""

    weight: Array  # (K,)
    mean: Array  # (K, D)
    scatter: Array  # (K, D, D)

    @property
    def covariance(self) -> Array:
        """(K, D, D) covariances, divided by the weight; 0 for a class without rows."""
        return self.scatter / np.where(self.weight > 0, self.weight, 1.0)[:, None, None]

    @classmethod
    def none(cls, K: int, D: int) -> Moments:
        """Return the moments of no rows."""
        return cls(np.zeros(K), np.zeros((K, D)), np.zeros((K, D, D)))

    @classmethod
    def of(cls, X: Array, codes: Array, weight: Array | None, K: int, mean: Array | None = None) -> Moments:
        """Return the moments of rows, in two passes: means, if they are not known, then products about them."""
        found = cls.none(K, X.shape[1])._replace(weight=np.bincount(codes, weight, K).astype(float))
        for k, own in enumerate(_rows_of_classes(codes, K)):
            rows, w = X[own], None if weight is None else weight[own]
            if not len(rows):
                continue
            if mean is None:
                found.mean[k] = np.average(rows, axis=0, weights=w) if w is not None else rows.mean(axis=0, dtype=float)
            else:
                found.mean[k] = mean[k]
            off = rows - found.mean[k]
            off = off if w is None else off * np.sqrt(w)[:, None]
            found.scatter[k] = off.T @ off
        return found

    @classmethod
    def in_one_pass(cls, X: Array, codes: Array, K: int) -> Moments | None:
        """Return the moments of rows; None if a sum is not finite, or if a variance has lost its digits."""
        origin = np.asarray(X[:4096], dtype=np.float64).mean(axis=0)
        if not np.isfinite(origin).all():
            return None
        count = kernels.class_weights(codes, None, K)
        first, second = kernels.class_scatter(X, codes, None, origin, K)
        if not (np.isfinite(first).all() and np.isfinite(second).all()):
            return None
        shift = first / count[:, None]
        scatter = second - first[:, :, None] * shift[:, None, :]
        if (EPS * count[:, None] * shift**2 > LOST * np.diagonal(scatter, axis1=1, axis2=2)).any():
            return None
        return cls(count, origin + shift, scatter)

    def about_mean(self) -> tuple[Array, tuple[Array, Array, Array]]:
        """Return the mean of all rows, and weights, deviations and products of each class about it."""
        origin = self.weight @ self.mean / self.weight.sum()
        shift = self.mean - origin
        first = self.weight[:, None] * shift
        return origin, (self.weight, first, self.scatter + first[:, :, None] * shift[:, None, :])

    def plus(self, other: Moments, sign: float = 1.0) -> Moments:
        """Return the moments of both sets of rows; with sign -1, of the first set without the second."""
        total = self.weight + sign * other.weight
        some = total > NEGATIVE * self.weight
        safe = np.where(some, total, 1.0)
        share = (sign * other.weight / safe)[:, None]
        step = other.mean - self.mean
        between = (self.weight[:, None] * share * step)[:, :, None] * step[:, None, :]
        scatter = self.scatter + sign * other.scatter + (between + between.transpose(0, 2, 1)) / 2
        return Moments(
            np.where(some, total, np.minimum(total, 0.0)),
            np.where(some[:, None], self.mean + share * step, 0.0),
            np.where(some[:, None, None], scatter, 0.0),
        )

    def without(self, other: Moments) -> Moments:
        """Return the moments without learnt rows; NotLearntError if the sums show that they were not learnt."""
        left = self.plus(other, -1.0)
        learnt = np.diagonal(self.scatter, axis1=1, axis2=2)
        size = learnt.max(axis=1) + np.finfo(float).tiny
        wrong = left.weight < -NEGATIVE * np.maximum(self.weight, 1.0)
        wrong |= np.linalg.eigvalsh(left.scatter)[:, 0] < -NEGATIVE * size
        gone = (left.weight <= 0) & (other.weight > 0)  # all rows of a class: both sums must be equal
        off = np.abs(other.scatter - self.scatter).max(axis=(1, 2))
        off += self.weight * ((other.mean - self.mean) ** 2).max(axis=1)
        scale = size + self.weight * (self.mean**2).max(axis=1)
        wrong |= gone & (off > 1e-6 * scale)
        if wrong.any():
            raise NotLearntError("rows to unlearn were never learnt: weights or variances would fall below 0.")
        rest = np.diagonal(left.scatter, axis1=1, axis2=2)
        if ((EPS * learnt > FALSIFIED * rest) & (left.weight > 1)[:, None]).any():
            raise NotAvailableError(
                "the rows that stay vary much less than those to unlearn: the rounding of the sums would falsify their "
                "variances. Nothing was changed: fit again without these rows."
            )
        return left._replace(weight=np.maximum(left.weight, 0.0))


def _rows_of_classes(codes: Array, K: int) -> list[Any]:
    """Return an index of the rows of each class."""
    if K == 1:
        return [slice(None)]
    if len(codes) * K <= MASKED:
        return [codes == k for k in range(K)]
    order, ends = np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes, minlength=K))
    return np.split(order, ends[:-1])


# -- discriminant analyses ---------------------------------------------------------------------------------------------
FLOATS = (np.float64, np.float32)
MOST = 2**24  # most products, of all classes, that a fitted analysis keeps


class DiscriminantAnalysis(Evidence, Sums):
    """Base class of both discriminant analyses: fits from sums of products, and methods that scikit-learn's lack."""

    _structure: str  # structure of the Gaussian with the same leave-one-out scores
    _keeps_objects = False  # whether classes of an array of objects stay objects, as in scikit-learn
    _moments: Moments | None = None  # moments of the learnt rows

    def check_fitted(self) -> None:
        """Raise ModelFileError if fitted attributes contradict each other; a file holds moments as a plain tuple."""
        super().check_fitted()
        held = self._moments
        if held is None:
            return
        K, D = self.means_.shape
        require(isinstance(held, tuple) and len(held) == 3, "_moments", "weights, means and sums of products")
        check_arrays(held, [(K,), (K, D), (K, D, D)], "_moments")
        right = ((held[0] == 0) | (held[0] >= 1 / LARGEST)).all() and held[0].any()  # means divide by them
        require(right, "_moments", f"weights of 0, or of at least {1 / LARGEST:g}, and not all of 0")
        require((np.diagonal(held[2], axis1=1, axis2=2) >= 0).all(), "_moments", "sums of squares of at least 0")
        self._moments = Moments(*held)

    def check_parameters(self) -> None:
        """Check that shrinkage is given only with a solver that has it.

        Raises
        ------
        HyperparameterError
            If it is given with solver "svd".
        """
        if self.solver == "svd" and self.shrinkage is not None:
            raise HyperparameterError(
                f"shrinkage={self.shrinkage!r} is not possible with solver='svd'. Use solver='eigen', or no shrinkage."
            )

    def _unsupported(self) -> str | None:
        if self.covariance_estimator is not None:
            return "covariance_estimator is given"
        return "shrinkage='auto'" if isinstance(self.shrinkage, str) else None

    def fit(self, X: Any, y: Any) -> Self:
        """Learn means and covariances.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows. Rows with weights are learnt by `partial_fit`.
        y : array-like of shape (n_samples,)
            Labels.

        Returns
        -------
        estimator
            The classifier.
        """
        fits = getattr(X, "dtype", None) in FLOATS and self._runs(X) and X.shape[0] > X.shape[1]
        if (fits and self._fit_by_kernels(X, y)) or (not fits and self._fit_few(X, y)):
            return self
        super().fit(X, y)  # type: ignore[misc]
        self._keep(X, y)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn more rows; the analysis is then that of all rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows. The first call must have enough of them for an analysis.
        y : array-like of shape (n_samples,)
            Labels.
        classes : array-like of shape (n_classes,), default=None
            All labels that may occur; needed in the first call.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows: a row of weight 2 counts as two rows.

        Returns
        -------
        estimator
            The classifier.
        """
        return self._learn(X, y, classes, sample_weight, refit=False)

    @_fit_context(prefer_skip_nested_validation=True)
    def _fit_by_kernels(self, X: Any, y: Any) -> bool:
        """Fit; False where scikit-learn should fit, or raise its error or warning."""
        if self.shrinkage is not None if self.solver == "svd" else X.dtype != np.float64:
            return False
        X, y = validate_data(self, X, y, ensure_min_samples=2, ensure_all_finite=False)
        found = encode_labels(y)
        if found is None or not 2 <= len(found[0]) <= MOST / X.shape[1] ** 2:
            return False
        moments = Moments.in_one_pass(X, found[1], len(found[0]))
        if moments is None or (moments.weight < 2).any():
            return False
        prior = moments.weight / len(X) if self.priors is None else np.asarray(self.priors, dtype=X.dtype)
        if prior.shape != moments.weight.shape or (prior < 0).any() or abs(prior.sum() - 1) > 1e-5:
            return False
        names = found[0].astype(object) if self._keeps_objects and np.asarray(y).dtype == object else found[0]
        if not self._solve(X.dtype, names, moments, np.asarray(prior), exact=True):
            return False
        self._moments = moments
        return True

    @_fit_context(prefer_skip_nested_validation=True)
    def _fit_few(self, X: Any, y: Any) -> bool:
        """Fit few rows by scikit-learn's solver, without its slow checks; False where its `fit` should run."""
        plain = type(X) is np.ndarray and X.dtype == np.float64 and type(y) is np.ndarray and y.dtype.kind in "iU"
        if not plain or self._reason() is not None or self.solver != "svd" or self.shrinkage is not None:
            return False
        if self.priors is not None or X.ndim != 2 or y.shape != X.shape[:1]:
            return False
        X, y = validate_data(self, X, y, ensure_min_samples=2)
        names, codes = np.unique(y, return_inverse=True)
        K = len(names)
        if not 2 <= K < len(X) or K * X.shape[1] ** 2 > MOST or not self._solve_few(X, y, names, np.bincount(codes)):
            return False
        self._moments = Moments.of(X, codes, None, K, np.asarray(self.means_))
        return True

    def _solve_few(self, X: Array, y: Array, names: Array, sizes: Array) -> bool:
        """Set the attributes as scikit-learn's `fit` does; False where it raises an error."""
        raise NotImplementedError

    def _solve(self, dtype: Any, names: Array, moments: Moments, prior: Array, exact: bool) -> bool:
        """Set the fitted attributes; False, if `exact`, where a covariance is too close to singular for ten digits."""
        raise NotImplementedError

    def _shrunk(self, moments: Moments) -> Array:
        """Covariances of the classes, with the shrinkage of the parameters: (K, D, D)."""
        return shrunk(moments.covariance, self.shrinkage) if self.shrinkage else moments.covariance

    def _log_prior(self, prior: Any = None) -> Array:
        with np.errstate(divide="ignore"):
            return np.log(self.priors_) if prior is None else self._as_log_prior(prior)

    # -- sums --------------------------------------------------------------------------------------------------------
    def _keep(self, X: Any, y: Any) -> None:
        """Keep the moments of rows to which scikit-learn's own code was fitted."""
        self._moments = None
        K, D = len(self.classes_), self.n_features_in_
        if K * D * D <= MOST and not sklearn.get_config()["array_api_dispatch"]:
            codes = np.searchsorted(self.classes_, np.asarray(y).reshape(-1))
            mean = np.asarray(self.means_) if self.means_.dtype == np.float64 else None
            X = np.asarray(X)
            rows = X if X.dtype in FLOATS else X.astype(float)  # scikit-learn also accepts texts of numbers
            self._moments = Moments.of(rows, codes, None, K, mean)

    @_fit_context(prefer_skip_nested_validation=True)
    def _learn(self, X: Any, y: Any, classes: Any, sample_weight: Any, refit: bool) -> Self:
        """Fit rows with weights, or learn more rows."""
        first = refit or getattr(self, "classes_", None) is None
        learnt = None if first else self._learnt()
        X, y, weight = self._check(X, y, sample_weight, reset=first)
        if refit:
            names = np.unique(y)
        elif first and classes is None:
            raise HyperparameterError("classes must be given in the first call of partial_fit.")
        else:
            names = self.classes_ if classes is None else unique_labels(classes)
            if not first and not np.array_equal(names, self.classes_):
                raise HyperparameterError(f"classes={classes!r} are not those of the first call, {self.classes_}.")
        more = Moments.of(X, self._known_codes(y, names), weight, len(names))
        self._resolve(names, more if learnt is None else learnt.plus(more), X.dtype if first else self.means_.dtype)
        return self

    def _check(self, X: Any, y: Any, sample_weight: Any, reset: bool) -> tuple[Array, Array, Array | None]:
        """Check rows, labels and weights; rows of weight 0 are left out."""
        X, y = validate_data(self, X, y, reset=reset, dtype=list(FLOATS))
        check_classification_targets(y)
        y = column_or_1d(y)
        if sample_weight is None:
            return X, y, None
        weight = np.asarray(_check_sample_weight(sample_weight, X, ensure_non_negative=True), dtype=float)
        some = weight > 0
        return X[some], y[some], weight[some]

    def _learnt(self) -> Moments:
        """Moments of the learnt rows."""
        self._refuse_sums()
        if self._moments is None:
            raise NotAvailableError(
                f"no sums were kept: {len(self.classes_)} classes of {self.n_features_in_} features have too many "
                "products, or the analysis was pickled by an earlier version. Fit again with all rows."
            )
        return self._moments

    def _refuse_sums(self) -> None:
        """Refuse parameters whose covariances do not follow from sums of products."""
        reason = self._unsupported()
        if reason is not None:
            raise NotAvailableError(f"{reason}: such covariances do not follow from sums. Use a number as shrinkage.")

    def _resolve(self, names: Array, moments: Moments, dtype: Any) -> None:
        """Set the fitted attributes from moments; an error, with nothing changed, if there are too few rows."""
        self._refuse_sums()
        if self.solver == "svd" and self.shrinkage is not None:
            raise NotImplementedError("shrinkage not supported with 'svd' solver.")
        K, total = len(names), float(moments.weight.sum())
        if K < 2:
            raise ValueError(f"The number of classes has to be greater than one. Got {K} class.")
        if (moments.weight > 0).sum() < 2:
            raise NotAvailableError("an analysis needs rows of two classes or more.")
        if total <= K:
            raise NotAvailableError(f"an analysis of {K} classes needs more than {K} rows; there are {total:g}.")
        prior = moments.weight / total if self.priors is None else np.exp(self._as_log_prior(self.priors, names))
        self._solve(dtype, names, moments, prior, exact=False)
        self._moments = moments

    def _take(self, X: Any, y: Any, sample_weight: Any, sign: float) -> None:
        learnt = self._learnt()
        X, y, weight = self._check(X, y, sample_weight, reset=False)
        more = Moments.of(X, self._known_codes(y), weight, len(self.classes_))
        left = learnt.without(more) if sign < 0 else learnt.plus(more)
        self._resolve(self.classes_, left, self.means_.dtype)

    def _sums(self) -> tuple[Array, ...]:
        return self._learnt()

    def _merge(self, sums: tuple[Array, ...], other: tuple[Array, ...]) -> None:
        self._resolve(self.classes_, Moments(*sums).plus(Moments(*other)), self.means_.dtype)

    def _left_out(self, X: Any, codes: Array) -> tuple[Array, Array]:
        self._refuse_left_out()
        X, moments = self._varying(np.asarray(validate_data(self, X, reset=False), dtype=float), self._learnt())
        K, D = moments.mean.shape
        if not D:
            raise NotAvailableError(
                f"no column varies by more than tol={self.tol:g} within classes. Use a smaller tol."
            )
        origin, sums = moments.about_mean()
        stats = GaussianStats({"class": Axis.of(K), "feature": Axis.of(D)}, *sums, origin)
        family = Gaussian(self._structure)  # type: ignore[arg-type]
        try:
            return family.leave_one_out(stats, X, Members.hard(codes, K), "ml"), moments.weight
        except SingularError:
            raise SingularError(
                "leave_one_out: the covariance of a class without one of its rows is singular. "
                "Learn more rows, or drop columns that do not vary or depend on others."
            ) from None

    def _varying(self, X: Array, moments: Moments) -> tuple[Array, Moments]:
        """Rows and moments in the directions in which the analysis scores rows."""
        return X, moments

    def _refuse_left_out(self) -> None:
        """Refuse parameters under which there is no exact leave-one-out."""
        named = {"shrinkage": self.shrinkage, "reg_param": getattr(self, "reg_param", 0.0)}
        for name, value in named.items():
            if value:
                raise NotAvailableError(f"leave_one_out has no exact identity with {name}={value!r}. Cross-validate.")


def shrunk(covariance: Array, share: float) -> Array:
    """Covariances (K, D, D) with a share of their mean variance on the diagonal."""
    D = covariance.shape[1]
    spread = np.trace(covariance, axis1=1, axis2=2)[:, None, None] / D
    return (1 - share) * covariance + share * spread * np.eye(D)
