"""Discriminant analysis of scikit-learn on deciban's kernels: products per class in one pass, then small matrices.

Covariances come from sums of products, whose relative error grows with the condition number of a covariance, not with
its square root as that of a singular value decomposition of the rows does. Where this would cost more than ten digits,
scikit-learn's own code runs. Directions (`scalings_`, `rotations_`) may differ from scikit-learn's in their sign.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.linalg
import scipy.sparse as sp
import sklearn.discriminant_analysis as theirs
from sklearn.utils.validation import check_is_fitted, validate_data

from deciban import kernels
from deciban.errors import NotAvailableError, SingularError
from deciban.sklearn.dropin import Array, Shapes, check_arrays
from deciban.sklearn.moments import FLOATS, DiscriminantAnalysis, Moments, shrunk
from deciban.store.checks import require

LEAST = 1e-5  # ratio of eigenvalues below which scikit-learn decomposes the rows
ROUNDING = 1e-13  # ratio of eigenvalues up to which one counts as 0
UNDERFLOW = np.log(np.finfo(float).smallest_subnormal) - np.log(2)  # log probability that rounds to 0


class RankError(SingularError, np.linalg.LinAlgError):
    """A covariance that is not of full rank; also numpy's error, which scikit-learn raises for it."""


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
    coef_: Array  # (K, D), or (1, D) of two classes
    intercept_: Array

    def fitted_shapes(self) -> Shapes:
        own = {"priors_": "K count", "means_": "K D real", "coef_": "L D real", "intercept_": "L real"}
        kept = "" if self.solver != "svd" or self.store_covariance else "optional "
        own |= dict.fromkeys(("_max_components", "_n_features_out"), "optional C size")
        own |= {"covariance_": f"{kept}D D real", "_moments": "optional other"}
        if self.solver != "lsqr":
            own |= {"scalings_": "D R real", "explained_variance_ratio_": "V real"}
        return super().fitted_shapes() | own | ({"xbar_": "D real"} if self.solver == "svd" else {})

    def check_fitted(self) -> None:
        super().check_fitted()
        K, D = self.means_.shape
        require(len(self.coef_) == (1 if K == 2 else K), "coef_", "a row for each class, or one for two classes")
        most = min(K - 1, D) if self.n_components is None else self.n_components
        self._max_components = self._n_features_out = vars(self).get("_max_components", most)  # not in former files

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn means and the covariance.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows: a row of weight 2 counts as two rows.

        Returns
        -------
        LinearDiscriminantAnalysis
            The classifier.
        """
        return super().fit(X, y) if sample_weight is None else self._learn(X, y, None, sample_weight, refit=True)

    def _solve(self, dtype: Any, names: Array, moments: Moments, prior: Array, exact: bool) -> bool:
        K, D = moments.mean.shape
        most = min(K - 1, D)
        if self.n_components is not None and self.n_components > most:
            if exact:
                return False
            raise ValueError("n_components cannot be larger than min(n_features, n_classes - 1).")
        prior64 = prior.astype(float)
        covariance = np.tensordot(prior64, self._shrunk(moments), 1)
        solve = {"svd": self._by_svd, "lsqr": self._by_lstsq, "eigen": self._by_eigen}[self.solver]
        found = solve(moments, prior64, covariance, most, exact)
        if found is None:
            return False
        coef, intercept, attributes = found
        if K == 2:
            coef, intercept = coef[1:] - coef[:1], intercept[1:] - intercept[:1]
        attributes |= {"coef_": coef, "intercept_": intercept, "means_": moments.mean, "priors_": prior}
        for name, value in attributes.items():
            setattr(self, name, np.asarray(value, dtype=dtype))
        if self.solver != "svd" or self.store_covariance:
            self.covariance_ = covariance
        self.classes_ = names
        self._max_components = self._n_features_out = most if self.n_components is None else self.n_components
        return True

    def _solve_few(self, X: Array, y: Array, names: Array, sizes: Array) -> bool:
        if self.n_components is not None:
            return False
        self.classes_, self.priors_ = names, sizes / len(X)
        self._max_components = self._n_features_out = min(len(names) - 1, X.shape[1])
        self._solve_svd(X, y)
        if len(names) == 2:
            self.coef_, self.intercept_ = self.coef_[1:] - self.coef_[:1], self.intercept_[1:] - self.intercept_[:1]
        return True

    def _by_svd(self, moments: Moments, prior: Array, covariance: Array, most: int, exact: bool) -> Any:
        n, (values, vectors) = moments.weight.sum(), principal(moments)
        zero = values <= ROUNDING * values[0]
        if exact and (((values < LEAST * values[0]) & ~zero).any() or (zero.any() and self.tol < 1e-6)):
            return None
        kept = ~zero & (values > self.tol**2)
        if not kept.any():
            if exact:
                return None
            raise RankError("No column varies within classes. Learn more rows, or drop these columns.")
        scalings = vectors[:, kept] / np.sqrt(values[kept])
        centre = prior @ moments.mean
        between = np.sqrt(n * prior / (len(prior) - 1))[:, None] * (moments.mean - centre) @ scalings
        _, S, Vt = scipy.linalg.svd(between, full_matrices=False)
        rank = int((self.tol * S[0] < S).sum())
        components = most if self.n_components is None else self.n_components
        scalings = scalings @ Vt.T[:, :rank]
        coef = (moments.mean - centre) @ scalings
        with np.errstate(divide="ignore"):
            intercept = -0.5 * (coef**2).sum(axis=1) + np.log(prior)
        coef = coef @ scalings.T
        share = (S**2 / (S**2).sum())[:components]
        return (
            coef,
            intercept - centre @ coef.T,
            {"scalings_": scalings, "xbar_": centre, "explained_variance_ratio_": share},
        )

    def _by_lstsq(self, moments: Moments, prior: Array, covariance: Array, most: int, exact: bool) -> Any:
        if exact and not well_conditioned(np.linalg.eigvalsh(covariance)):
            return None
        coef = scipy.linalg.lstsq(covariance, moments.mean.T)[0].T
        return coef, intercepts(moments.mean, coef, prior), {}

    def _by_eigen(self, moments: Moments, prior: Array, covariance: Array, most: int, exact: bool) -> Any:
        if exact and not well_conditioned(np.linalg.eigvalsh(covariance)):
            return None
        share = moments.weight / moments.weight.sum()
        offset = moments.mean - share @ moments.mean
        total = np.tensordot(share, moments.covariance, 1) + (share[:, None] * offset).T @ offset
        if self.shrinkage:
            total = shrunk(total[None], self.shrinkage)[0]
        try:
            values, vectors = scipy.linalg.eigh(total - covariance, covariance)
        except np.linalg.LinAlgError:
            raise RankError(
                "The covariance matrix within classes is not full rank. Learn more rows, drop columns that depend on "
                "others, or set `shrinkage`."
            ) from None
        components = most if self.n_components is None else self.n_components
        vectors = vectors[:, np.argsort(values)[::-1]]
        ratio = np.sort(values / values.sum())[::-1][:components]
        coef = moments.mean @ vectors @ vectors.T
        found = {"scalings_": vectors, "explained_variance_ratio_": ratio}
        return coef, intercepts(moments.mean, coef, prior), found

    def decision_function(self, X: Any) -> Array:
        """Return log posterior probabilities up to a term that all classes share.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes) or (n_samples,)
            Scores; of two classes, those of the second less those of the first.
        """
        check_is_fitted(self)
        plain = getattr(X, "dtype", None) == np.float64 and not sp.issparse(X)  # scikit-learn takes sparse rows here
        if not plain or self.coef_.dtype != np.float64 or not self._runs(X):
            return super().decision_function(X)
        rows = validate_data(self, X, ensure_all_finite=False, reset=False)
        scores = kernels.linear_scores(rows, np.ascontiguousarray(self.coef_.T), self.intercept_)
        # a NaN or inf in a row makes all its scores NaN or inf; scikit-learn raises the error
        if not np.isfinite(scores[:, 0]).all():
            return super().decision_function(X)
        return scores if scores.shape[1] > 1 else scores.ravel()

    def _posterior(self, X: Any, prior: Any, logs: bool) -> Array:
        if prior is not None or len(self.__dict__.get("classes_", ())) < 3 or not self._runs(X):
            return super()._posterior(X, prior, logs)
        scores = np.ascontiguousarray(self.decision_function(X))
        if scores.dtype != np.float64:
            return super()._posterior(X, prior, logs)
        if not logs:
            return kernels.softmax(scores, out=scores)
        kernels.log_softmax(scores, out=scores)
        if scores.min(initial=0.0) < UNDERFLOW:  # scikit-learn replaces probabilities of 0 by the smallest number
            scores[scores < UNDERFLOW] = np.log(np.finfo(float).smallest_normal)
        return scores

    def _varying(self, X: Array, moments: Moments) -> tuple[Array, Moments]:
        if self.solver != "svd":
            return X, moments
        values, vectors = principal(moments)
        W = vectors[:, (values > ROUNDING * values[0]) & (values > self.tol**2)]
        if W.shape[1] == len(W):
            return X, moments
        return X @ W, Moments(moments.weight, moments.mean @ W, W.T @ moments.scatter @ W)

    def _refuse_left_out(self) -> None:
        super()._refuse_left_out()
        if self.priors is not None and self.solver != "svd":
            raise NotAvailableError(
                f"leave_one_out has no exact identity with solver={self.solver!r} and priors, which weight the "
                "covariances of the classes. Use solver='svd'."
            )

    def _log_likelihood(self, X: Any) -> Array:
        check_is_fitted(self)
        scores = self.decision_function(X)
        if len(self.classes_) == 2:
            scores = np.stack([np.zeros_like(scores), scores], axis=1)
        return self._less_prior(scores)


class QuadraticDiscriminantAnalysis(DiscriminantAnalysis, theirs.QuadraticDiscriminantAnalysis):
    """Quadratic discriminant analysis with scikit-learn's interface; a fit reads the rows once.

    A covariance estimator, shrinkage="auto", inputs of fewer than 50,000 values and nearly singular covariances are
    left to scikit-learn. Rows with weights are learnt by `partial_fit`.

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
    _keeps_objects = True

    def fitted_shapes(self) -> Shapes:
        own = {"priors_": "K count", "means_": "K D real", "scalings_": "K list", "rotations_": "K list"}
        own |= {"covariance_": "K list" if self.store_covariance else "optional K list", "_moments": "optional other"}
        return super().fitted_shapes() | own

    def check_fitted(self) -> None:
        super().check_fitted()
        D = self.n_features_in_
        check_arrays(self.scalings_, [None] * len(self.scalings_), "scalings_", lambda values: (values >= 0).all())
        check_arrays(self.rotations_, [(D, len(values)) for values in self.scalings_], "rotations_")
        kept = getattr(self, "covariance_", [])
        check_arrays(kept, [(D, D)] * len(kept), "covariance_")

    def _solve(self, dtype: Any, names: Array, moments: Moments, prior: Array, exact: bool) -> bool:
        covariance = self._shrunk(moments)
        values, vectors = np.linalg.eigh(covariance)
        if exact and not all(map(well_conditioned, values)):
            return False
        values, vectors = values[:, ::-1], vectors[:, :, ::-1]
        if self.solver == "svd":
            values = (1 - self.reg_param) * values + self.reg_param
        full = (values > self.tol).all(axis=1)
        if not full.all():
            if exact:
                return False
            more = "shrinkage" if self.solver == "eigen" else "reg_param"
            raise RankError(
                f"The covariance matrix of class {names[~full][0]} is not full rank. Learn more rows, or increase the "
                f"value of `{more}` to reduce the collinearity."
            )
        if self.store_covariance:
            kept = covariance
            if self.solver == "svd":
                kept = np.einsum("kij,kj,klj->kil", vectors, values, vectors)
            self.covariance_ = list(kept.astype(dtype, copy=False))
        self.classes_ = names
        self.priors_ = prior if self.priors is None else np.array(self.priors)
        self.means_ = moments.mean.astype(dtype, copy=False)
        self.scalings_ = list(values.astype(dtype, copy=False))
        self.rotations_ = list(vectors.astype(dtype, copy=False))
        return True

    def _solve_few(self, X: Array, y: Array, names: Array, sizes: Array) -> bool:
        if (sizes < 2).any():
            return False
        classes = [X[y == name] for name in names]
        found = [self._solve_svd(rows) for rows in classes]
        if any((scaling > self.tol).sum() < X.shape[1] for scaling, _, _ in found):
            return False
        self.classes_, self.priors_ = names, sizes / float(len(X))
        self.means_ = np.asarray([rows.mean(0) for rows in classes])
        self.scalings_, self.rotations_, covariances = (list(each) for each in zip(*found))
        if self.store_covariance:
            self.covariance_ = covariances
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
            # any root of the precision matrix gives the same distances; the triangular one is the fastest
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
        return self._less_prior(self._decision_function(X))


def principal(moments: Moments) -> tuple[Array, Array]:
    """Variances within classes, descending, along the directions (D, D) of columns scaled to variance 1."""
    within = moments.scatter.sum(axis=0) / moments.weight.sum()
    sd = np.sqrt(np.diagonal(within))
    sd = np.where(sd == 0, 1.0, sd)
    values, vectors = np.linalg.eigh(within / np.outer(sd, sd))
    return values[::-1], vectors[:, ::-1] / sd[:, None]


def well_conditioned(values: Array) -> bool:
    """Whether eigenvalues in ascending order keep their digits."""
    return bool(values[0] > LEAST * values[-1])


def intercepts(mean: Array, coef: Array, prior: Array) -> Array:
    """Constants of the linear scores, from class means and weights."""
    with np.errstate(divide="ignore"):
        return -0.5 * (mean * coef).sum(axis=1) + np.log(prior)
