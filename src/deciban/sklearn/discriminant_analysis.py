"""Discriminant analysis of scikit-learn on deciban's kernels: products per class in one pass, then small matrices.

Covariances come from sums of products, whose relative error grows with the condition number of a covariance, not with
its square root as that of a singular value decomposition of the rows does. Where this would cost more than ten digits,
scikit-learn's own code runs. Directions (`scalings_`, `rotations_`) may differ from scikit-learn's in their sign.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
import scipy.linalg
import sklearn.discriminant_analysis as theirs
from sklearn.base import _fit_context
from sklearn.utils.validation import check_is_fitted, validate_data

from deciban import kernels
from deciban.families.gaussian import Gaussian
from deciban.sklearn.dropin import Array, encode_labels
from deciban.sklearn.evidence import Evidence, LeaveOneOut
from deciban.statistics import Members

FLOATS = (np.float64, np.float32)
LEAST = 1e-5  # ratio of eigenvalues below which the rows themselves are decomposed
ROUNDING = 1e-13  # ratio of eigenvalues that counts as 0
EPS = float(np.finfo(float).eps)
LOST = 1e-11  # relative error of a variance from which on it is computed in two passes


class Classes(NamedTuple):
    """Moments of each class."""

    names: Array  # (K,)
    codes: Array  # (n,)
    sizes: Array  # (K,) number of rows
    mean: Array  # (K, D)
    covariance: Array  # (K, D, D), divided by n


class DiscriminantAnalysis(Evidence, LeaveOneOut):
    """Fit from sums of products, and what both analyses add to scikit-learn's."""

    _structure: str  # of the Gaussian that has the same leave-one-out scores

    def _unsupported(self) -> str | None:
        if self.covariance_estimator is not None:
            return "covariance_estimator is given"
        return "shrinkage='auto'" if isinstance(self.shrinkage, str) else None

    def fit(self, X: Any, y: Any) -> Self:
        """Learn means and covariances.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.

        Returns
        -------
        estimator
            The classifier.
        """
        fits = getattr(X, "dtype", None) in FLOATS and self._runs(X) and X.shape[0] > X.shape[1]
        if fits and self._fit_by_kernels(X, y):
            return self
        return super().fit(X, y)  # type: ignore[misc]

    @_fit_context(prefer_skip_nested_validation=True)
    def _fit_by_kernels(self, X: Any, y: Any) -> bool:
        """Fit; False where scikit-learn should fit, or raise its error or warning."""
        if self.shrinkage is not None if self.solver == "svd" else X.dtype != np.float64:
            return False
        X, y = validate_data(self, X, y, ensure_min_samples=2, ensure_all_finite=False)
        classes = moments(X, y)
        if classes is None or (classes.sizes < 2).any() or len(classes.names) < 2:
            return False
        prior = classes.sizes / len(X) if self.priors is None else np.asarray(self.priors, dtype=X.dtype)
        if prior.shape != classes.sizes.shape or (prior < 0).any() or abs(prior.sum() - 1) > 1e-5:
            return False
        if self.shrinkage:
            spread = np.trace(classes.covariance, axis1=1, axis2=2) / X.shape[1]
            shrunk = (1 - self.shrinkage) * classes.covariance + self.shrinkage * spread[:, None, None] * np.eye(
                X.shape[1]
            )
            classes = classes._replace(covariance=shrunk)
        return self._solve(X, classes, np.asarray(prior))

    def _solve(self, X: Array, classes: Classes, prior: Array) -> bool:
        """Set the fitted attributes; False if a covariance is too close to singular."""
        raise NotImplementedError

    def _log_prior(self, prior: Any = None) -> Array:
        with np.errstate(divide="ignore"):
            return np.log(self.priors_) if prior is None else self._as_log_prior(prior)

    def _left_out(self, X: Any, codes: Array) -> tuple[Array, Array]:
        if self.shrinkage or self._unsupported() or getattr(self, "reg_param", 0.0):
            return super()._left_out(X, codes)
        X = np.asarray(validate_data(self, X, reset=False), dtype=float)
        members = Members.hard(codes, len(self.classes_))
        family = Gaussian(self._structure)  # type: ignore[arg-type]
        stats = family.collect(X, members)
        return family.leave_one_out(stats, X, members, "ml"), members.weights()


class LinearDiscriminantAnalysis(DiscriminantAnalysis, theirs.LinearDiscriminantAnalysis):
    """Linear discriminant analysis with scikit-learn's interface; a fit reads the rows once.

    A covariance estimator, shrinkage="auto", inputs of fewer than 50,000 values and nearly singular covariances are
    left to scikit-learn. Components may have the opposite sign.

    Parameters
    ----------
    solver : {"svd", "lsqr", "eigen"}, default="svd"
        How the covariance is decomposed.
    shrinkage : "auto" or float, default=None
        Share of the average variance in the covariances; not with solver "svd".
    priors : array-like of shape (n_classes,), default=None
        Class probabilities; their shares in the data if None.
    n_components : int, default=None
        Number of components of `transform`.
    store_covariance : bool, default=False
        Whether solver "svd" computes `covariance_`.
    tol : float, default=1e-4
        Singular values below it count as 0; solver "svd" only.
    covariance_estimator : estimator, default=None
        Estimator of the covariances; not with solver "svd".

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_classes, n_features)
        Weights.
    intercept_ : ndarray of shape (n_classes,)
        Intercepts.
    covariance_ : ndarray of shape (n_features, n_features)
        Within-class covariance.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Share of the variance between classes along each component.
    means_ : ndarray of shape (n_classes, n_features)
        Class means.
    priors_ : ndarray of shape (n_classes,)
        Class probabilities.
    scalings_ : ndarray of shape (rank, n_classes - 1)
        Directions, scaled so that the within-class covariance is 1.
    xbar_ : ndarray of shape (n_features,)
        Mean of all rows; solver "svd" only.
    classes_ : ndarray of shape (n_classes,)
        Class labels.

    Examples
    --------
    >>> X, y = [[1.0, 2.0], [2.0, 1.0], [4.0, 6.0], [6.0, 5.0]], [0, 0, 1, 1]
    >>> LinearDiscriminantAnalysis().fit(X, y).predict([[1.0, 1.0]])
    array([0])
    """

    _structure = "tied"

    def _solve(self, X: Array, classes: Classes, prior: Array) -> bool:
        K, (n, D) = len(classes.names), X.shape
        most = min(K - 1, D)
        if self.n_components is not None and self.n_components > most:
            return False
        covariance = np.tensordot(prior.astype(float), classes.covariance, 1)
        found = {"svd": self._by_svd, "lsqr": self._by_lstsq, "eigen": self._by_eigen}[self.solver](
            classes, prior.astype(float), covariance, n, most
        )
        if found is None:
            return False
        coef, intercept, attributes = found
        if K == 2:
            coef, intercept = coef[1:] - coef[:1], intercept[1:] - intercept[:1]
        attributes |= {"coef_": coef, "intercept_": intercept, "means_": classes.mean, "priors_": prior}
        for name, value in attributes.items():
            setattr(self, name, np.asarray(value, dtype=X.dtype))
        if self.solver != "svd" or self.store_covariance:
            self.covariance_ = covariance
        self.classes_ = classes.names
        self._max_components = self._n_features_out = most if self.n_components is None else self.n_components
        return True

    def _by_svd(self, classes: Classes, prior: Array, covariance: Array, n: int, most: int) -> Any:
        within = np.tensordot(classes.sizes / n, classes.covariance, 1)
        sd = np.sqrt(np.diagonal(within))
        sd = np.where(sd == 0, 1.0, sd)
        values, vectors = np.linalg.eigh(within / np.outer(sd, sd))
        values, vectors = values[::-1], vectors[:, ::-1]
        zero = values <= ROUNDING * values[0]
        if ((values < LEAST * values[0]) & ~zero).any() or (zero.any() and self.tol < 1e-6):
            return None
        kept = ~zero & (values > self.tol**2)
        scalings = vectors[:, kept] / sd[:, None] / np.sqrt(values[kept])
        centre = prior @ classes.mean
        between = np.sqrt(n * prior / (len(prior) - 1))[:, None] * (classes.mean - centre) @ scalings
        _, S, Vt = scipy.linalg.svd(between, full_matrices=False)
        rank = int((self.tol * S[0] < S).sum())
        components = most if self.n_components is None else self.n_components
        scalings = scalings @ Vt.T[:, :rank]
        coef = (classes.mean - centre) @ scalings
        with np.errstate(divide="ignore"):
            intercept = -0.5 * (coef**2).sum(axis=1) + np.log(prior)
        coef = coef @ scalings.T
        share = (S**2 / (S**2).sum())[:components]
        return (
            coef,
            intercept - centre @ coef.T,
            {"scalings_": scalings, "xbar_": centre, "explained_variance_ratio_": share},
        )

    def _by_lstsq(self, classes: Classes, prior: Array, covariance: Array, n: int, most: int) -> Any:
        if not well_conditioned(np.linalg.eigvalsh(covariance)):
            return None
        coef = scipy.linalg.lstsq(covariance, classes.mean.T)[0].T
        return coef, intercepts(classes.mean, coef, prior), {}

    def _by_eigen(self, classes: Classes, prior: Array, covariance: Array, n: int, most: int) -> Any:
        if self.shrinkage or not well_conditioned(np.linalg.eigvalsh(covariance)):
            return None  # shrinkage of the total covariance is scikit-learn's
        share = classes.sizes / n
        offset = classes.mean - share @ classes.mean
        total = np.tensordot(share, classes.covariance, 1) + (share[:, None] * offset).T @ offset
        values, vectors = scipy.linalg.eigh(total - covariance, covariance)
        components = most if self.n_components is None else self.n_components
        vectors = vectors[:, np.argsort(values)[::-1]]
        ratio = np.sort(values / values.sum())[::-1][:components]
        coef = classes.mean @ vectors @ vectors.T
        found = {"scalings_": vectors, "explained_variance_ratio_": ratio}
        return coef, intercepts(classes.mean, coef, prior), found

    def _log_likelihood(self, X: Any) -> Array:
        check_is_fitted(self)
        scores = self.decision_function(X)
        if len(self.classes_) == 2:
            scores = np.stack([np.zeros_like(scores), scores], axis=1)
        return scores - self._log_prior()


class QuadraticDiscriminantAnalysis(DiscriminantAnalysis, theirs.QuadraticDiscriminantAnalysis):
    """Quadratic discriminant analysis with scikit-learn's interface; a fit reads the rows once.

    A covariance estimator, shrinkage="auto", inputs of fewer than 50,000 values and nearly singular covariances are
    left to scikit-learn.

    Parameters
    ----------
    solver : {"svd", "eigen"}, default="svd"
        How covariances are decomposed.
    shrinkage : "auto" or float, default=None
        Share of the average variance in the covariances; solver "eigen" only.
    priors : array-like of shape (n_classes,), default=None
        Class probabilities; their shares in the data if None.
    reg_param : float, default=0.0
        Share of the unit matrix in the covariances; solver "svd" only.
    store_covariance : bool, default=False
        Whether `covariance_` is kept.
    tol : float, default=1e-4
        Variances below it count as 0.
    covariance_estimator : estimator, default=None
        Estimator of the covariances; solver "eigen" only.

    Attributes
    ----------
    covariance_ : list of n_classes ndarrays of shape (n_features, n_features)
        Covariances, if they are kept.
    means_ : ndarray of shape (n_classes, n_features)
        Class means.
    priors_ : ndarray of shape (n_classes,)
        Class probabilities.
    rotations_ : list of n_classes ndarrays of shape (n_features, n_features)
        Principal axes of each class.
    scalings_ : list of n_classes ndarrays of shape (n_features,)
        Variances along the principal axes.
    classes_ : ndarray of shape (n_classes,)
        Class labels.

    Examples
    --------
    >>> X, y = [[1.0], [2.0], [4.0], [7.0]], [0, 0, 1, 1]
    >>> QuadraticDiscriminantAnalysis().fit(X, y).llr([[1.0]]).round(2)
    array([-5.1])
    """

    _structure = "full"

    def _solve(self, X: Array, classes: Classes, prior: Array) -> bool:
        values, vectors = np.linalg.eigh(classes.covariance)
        if not all(map(well_conditioned, values)):
            return False
        values, vectors = values[:, ::-1], vectors[:, :, ::-1]
        if self.solver == "svd":
            values = (1 - self.reg_param) * values + self.reg_param
        if not (values > self.tol).all():
            return False
        if self.store_covariance:
            kept = classes.covariance
            if self.solver == "svd":
                kept = np.einsum("kij,kj,klj->kil", vectors, values, vectors)
            self.covariance_ = list(kept.astype(X.dtype, copy=False))
        self.classes_ = classes.names
        self.priors_ = prior if self.priors is None else np.array(self.priors)
        self.means_ = classes.mean.astype(X.dtype, copy=False)
        self.scalings_ = list(values.astype(X.dtype, copy=False))
        self.rotations_ = list(vectors.astype(X.dtype, copy=False))
        return True

    def _decision_function(self, X: Any) -> Array:
        if getattr(X, "dtype", None) not in FLOATS or not self._runs(X):
            return super()._decision_function(X)
        check_is_fitted(self)
        X = validate_data(self, X, reset=False)
        mean, whitener, log_det = np.asarray(self.means_, dtype=float), [], []
        for values, vectors in zip(self.scalings_, np.asarray(self.rotations_, dtype=float)):
            if vectors.shape[0] != vectors.shape[1]:
                return super()._decision_function(X)
            # any root of the precision matrix gives the same distances; the triangular one takes least time
            _, R = np.linalg.qr((vectors * np.sqrt(np.asarray(values, dtype=float))).T)
            whitener.append(scipy.linalg.solve_triangular(R, np.eye(len(R))))
            log_det.append(np.log(values).sum())
        scores = kernels.whitened_distances(X, mean, np.array(whitener), mean.mean(axis=0))
        scores += np.array(log_det)
        scores *= -0.5
        scores += np.log(self.priors_)
        return scores.astype(np.result_type(X.dtype, self.means_.dtype, self.priors_.dtype), copy=False)

    def _posterior(self, X: Any, prior: Any, logs: bool) -> Array:
        if prior is not None or not self._runs(X):
            return super()._posterior(X, prior, logs)
        scores = self._decision_function(X)
        softmax, out = kernels.log_softmax if logs else kernels.softmax, scores if scores.dtype == np.float64 else None
        return softmax(scores, out=out).astype(scores.dtype, copy=False)

    def _log_likelihood(self, X: Any) -> Array:
        return self._decision_function(X) - self._log_prior()


def moments(X: Array, y: Array) -> Classes | None:
    """Count, mean and covariance of each class; None if a sum is not finite or has lost its digits."""
    found = encode_labels(y)
    if found is None:
        return None
    names, codes = found
    K = len(names)
    origin = np.asarray(X[:4096], dtype=np.float64).mean(axis=0)
    if not np.isfinite(origin).all():
        return None
    count = kernels.class_weights(codes, None, K)
    first, second = kernels.class_scatter(X, codes, None, origin, K)
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        return None
    shift = first / count[:, None]
    covariance = second / count[:, None, None] - shift[:, :, None] * shift[:, None, :]
    variance = np.diagonal(covariance, axis1=1, axis2=2)
    if (EPS * shift**2 > LOST * variance).any():
        return None
    return Classes(names, codes, count, origin + shift, covariance)


def well_conditioned(values: Array) -> bool:
    """Whether eigenvalues in ascending order keep their digits."""
    return bool(values[0] > LEAST * values[-1])


def intercepts(mean: Array, coef: Array, prior: Array) -> Array:
    """Constants of the linear scores, from class means and weights."""
    with np.errstate(divide="ignore"):
        return -0.5 * (mean * coef).sum(axis=1) + np.log(prior)
