"""Gaussian mixtures of scikit-learn on deciban's kernels: an EM iteration reads the rows once and keeps no table.

For few rows, an EM step evaluates scikit-learn's formulas in numpy, for all components at once: at 50 rows,
scikit-learn spends most of an iteration on looking up array namespaces and devices. The types of arrays are those of
scikit-learn: where a start of float64 meets rows of float32, some arrays have the type of the rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import sklearn.mixture as theirs
from scipy.linalg import get_lapack_funcs
from sklearn.cluster import KMeans, kmeans_plusplus
from sklearn.mixture._gaussian_mixture import (
    _compute_precision_cholesky,
    _compute_precision_cholesky_from_precisions,
)
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from deciban import kernels
from deciban.errors import MissingValueError
from deciban.evidence.decisions import resolve_prior
from deciban.evidence.scores import log_probability
from deciban.families.gaussian.densities import NormalDensity
from deciban.kernels.choice import compiled
from deciban.kernels.latent import Pass, mixture_pass
from deciban.latent.gaussian_missing import GaussianWithGaps
from deciban.sklearn.dropin import ROWS, WORK, Array, Ratios, Shapes
from deciban.statistics import Members
from deciban.store.checks import require

LOST = 1e6  # squared distance of a component from the origin, in its variances, above which digits are lost


@dataclass(frozen=True, eq=False)
class Expectation:
    """Sums of an E-step in place of responsibilities, which are computed only for labels."""

    sums: Pass
    origin: Array  # (D,)
    mixture: GaussianMixture
    rows: Array

    def argmax(self, axis: int = 1, out: None = None) -> Array:
        """Component of each row."""
        return np.asarray(self.mixture._estimate_weighted_log_prob(self.rows).argmax(axis=axis))


@dataclass(frozen=True, eq=False)
class Rows:
    """Weights and missing values (NaN) of the rows of a fit, which scikit-learn does not support."""

    weight: Array | None  # (n,)
    gappy: Array | None  # (n, D), NaN where a value is missing; None if none is

    def mean(self, values: Array) -> np.floating[Any]:
        """Return the weighted mean of a number of each row."""
        return np.float64(np.average(values, weights=self.weight))


NONE = Rows(None, None)


class GaussianMixture(Ratios, theirs.GaussianMixture):
    """Gaussian mixture with scikit-learn's interface and starts; an EM iteration is one pass over the rows.

    Large inputs of float32, and components more than 1,000 standard deviations from the mean of the rows, are left to
    scikit-learn. For inputs of fewer than 50,000 values, scikit-learn's formulas are evaluated in numpy. A mixture is
    fitted by EM, whose sums depend on the estimate: rows can be weighted, but neither added, unlearnt nor left out
    without another fit.

    Parameters
    ----------
    n_components : int, default=1
        Number of components.
    covariance_type : {"full", "tied", "diag", "spherical"}, default="full"
        Form of the covariances.
    tol : float, default=1e-3
        Gain of the mean log-likelihood below which EM stops.
    reg_covar : float, default=1e-6
        Number added to variances.
    max_iter : int, default=100
        Most iterations.
    n_init : int, default=1
        Number of starts, of which the best is kept.
    init_params : {"kmeans", "k-means++", "random", "random_from_data"}, default="kmeans"
        How a start is found.
    weights_init, means_init, precisions_init : array-like, default=None
        A start that is given.
    random_state : int, RandomState instance or None, default=None
        Source of random numbers.
    warm_start : bool, default=False
        Whether a fit starts from the last one.
    verbose, verbose_interval : int, default=0 and 10
        What is printed.
    handle_missing : {"error", "ignore"}, default="error"
        Whether missing values (NaN) are refused, as by scikit-learn, or integrated out, in fits and in answers. A row
        without any value is refused in fits.

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
        Shares of the components.
    means_ : ndarray of shape (n_components, n_features)
        Means.
    covariances_, precisions_, precisions_cholesky_ : ndarray
        Covariances, their inverses, and the Cholesky factors of these.
    converged_ : bool
        Whether EM converged.
    n_iter_ : int
        Number of iterations.
    lower_bound_ : float
        Mean log-likelihood at the end.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0], [1.2], [0.9], [5.0], [5.1], [4.8]])
    >>> GaussianMixture(2, random_state=0).fit(X).means_.round(2).ravel().tolist()
    [4.97, 1.03]
    >>> mixture = GaussianMixture(2, random_state=0).fit(X, sample_weight=[1, 1, 1, 2, 2, 2])
    >>> mixture.weights_.round(2).tolist(), mixture.llr([[2.0]], 0, 1).round(1).tolist()
    ([0.67, 0.33], [-252.8])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **theirs.GaussianMixture._parameter_constraints,
        "handle_missing": [StrOptions({"error", "ignore"})],
    }
    _rows: Rows = NONE  # rows of the running fit

    def __init__(
        self,
        n_components: int = 1,
        *,
        covariance_type: str = "full",
        tol: float = 1e-3,
        reg_covar: float = 1e-6,
        max_iter: int = 100,
        n_init: int = 1,
        init_params: str = "kmeans",
        weights_init: Any = None,
        means_init: Any = None,
        precisions_init: Any = None,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
        verbose_interval: int = 10,
        handle_missing: str = "error",
    ) -> None:
        super().__init__(
            n_components,
            covariance_type=covariance_type,
            tol=tol,
            reg_covar=reg_covar,
            max_iter=max_iter,
            n_init=n_init,
            init_params=init_params,
            weights_init=weights_init,
            means_init=means_init,
            precisions_init=precisions_init,
            random_state=random_state,
            warm_start=warm_start,
            verbose=verbose,
            verbose_interval=verbose_interval,
        )
        self.handle_missing = handle_missing

    def fitted_shapes(self) -> Shapes:
        shape = {"full": "K D D", "tied": "D D", "diag": "K D", "spherical": "K"}[self.covariance_type]
        own = {"weights_": "K positive", "means_": "K D real", "converged_": "flag", "n_iter_": "number"}
        own |= dict.fromkeys(("covariances_", "precisions_", "precisions_cholesky_"), f"{shape} real")
        return {**ROWS, **own, "lower_bound_": "number", "lower_bounds_": "optional T list"}

    def check_fitted(self) -> None:
        root = self.precisions_cholesky_
        diagonal = np.diagonal(root, axis1=-2, axis2=-1) if self.covariance_type in ("full", "tied") else root
        require((diagonal > 0).all(), "precisions_cholesky_", "a positive diagonal")
        bounds = getattr(self, "lower_bounds_", [])
        require(all(isinstance(bound, int | float | np.floating) for bound in bounds), "lower_bounds_", "numbers")

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the mixture by EM.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : Ignored
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows: a row of weight 2 counts as two rows.

        Returns
        -------
        GaussianMixture
            The mixture.
        """
        self.fit_predict(X, y, sample_weight)
        return self

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Fit the mixture by EM, and return the most probable component of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : Ignored
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows: a row of weight 2 counts as two rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Components.
        """
        if sample_weight is None and self.handle_missing == "error":
            return super().fit_predict(X, y)
        X = self._check(X, reset=True)
        weight = None
        if sample_weight is not None:
            weight = np.asarray(_check_sample_weight(sample_weight, X, ensure_non_negative=True), dtype=float)
        gaps = np.isnan(X)
        self._rows = Rows(weight, X if gaps.any() else None)
        try:
            return super().fit_predict(filled(X, gaps, weight), y)
        finally:
            del self._rows

    def _check(self, X: Any, reset: bool = False) -> Array:
        finite = "allow-nan" if self.handle_missing == "ignore" else True
        return validate_data(self, X, reset=reset, dtype=[np.float64, np.float32], ensure_all_finite=finite)

    def _initialize_parameters(self, X: Array, random_state: Any, xp: Any = None) -> None:
        weight = self._rows.weight
        if weight is None:
            super()._initialize_parameters(X, random_state, xp=xp)
            return
        (n, D), K = X.shape, self.n_components
        resp = np.zeros((n, K))
        if self.init_params == "kmeans":
            means = KMeans(n_clusters=K, n_init=1, random_state=random_state).fit(X, sample_weight=weight)
            resp[np.arange(n), means.labels_] = 1
        elif self.init_params == "random":
            resp = random_state.dirichlet(np.ones(K), size=n)
        elif self.init_params == "random_from_data":
            resp[random_state.choice(n, size=K, replace=False, p=weight / weight.sum()), np.arange(K)] = 1
        else:
            _, at = kmeans_plusplus(X, K, sample_weight=weight, random_state=random_state)
            resp[at, np.arange(K)] = 1
        self.means_ = X[:K]  # an array of the type of the means, which `_estimate` keeps
        start = NormalDensity(np.average(X, axis=0, weights=weight), np.zeros((K, D)), np.eye(D)[None], np.ones(K))
        self._estimate(X, resp * weight[:, None], start)
        if self.weights_init is not None:
            self.weights_ = np.asarray(self.weights_init)
        if self.means_init is not None:
            self.means_ = np.asarray(self.means_init)
        if self.precisions_init is not None:
            given = self.precisions_init, self.covariance_type
            self.precisions_cholesky_ = _compute_precision_cholesky_from_precisions(*given, xp=np)

    def _passes(self, X: Any) -> bool:
        return X.dtype == np.float64 and self.means_.dtype == np.float64 and self._runs(X)

    def _few(self, X: Any) -> bool:
        """Whether the rows are so few that EM steps in numpy are the fastest."""
        return self._defaults is not None and self._reason() is None and not compiled(WORK * X.size)

    def _few_scores(self, X: Array) -> Array:
        scores = log_densities(X, self.means_, self.precisions_cholesky_, self.covariance_type)
        return scores + np.log(self.weights_)

    def _e_step(self, X: Array, xp: Any = None) -> tuple[Any, Any]:
        if self._rows is NONE and not self._passes(X):
            found = log_responsibilities(self._few_scores(X)) if self._few(X) else None
            return super()._e_step(X, xp=xp) if found is None else (found[0].mean(), found[1])
        if self._rows.gappy is not None or not self._passes(X):
            return self._plain_e_step(X)
        origin = self.weights_ @ self.means_ / self.weights_.sum()
        full = self.covariance_type in ("full", "tied")
        precision, log_det, shift = self._precision(), self._log_det(), self.means_ - origin
        linear = np.einsum("kuv,kv->ku", precision, shift) if full else precision * shift
        constant = (linear * shift).sum(axis=1)
        if not (constant < LOST).all():
            return self._plain_e_step(X)
        bias = np.log(self.weights_) + log_det - 0.5 * (X.shape[1] * np.log(2 * np.pi) + constant)
        if self.covariance_type == "tied":
            weights = linear
        elif full:
            u, v = np.triu_indices(X.shape[1])
            weights = np.concatenate([linear, precision[:, u, v] * np.where(u == v, -0.5, -1.0)], axis=1)
        else:
            weights = np.concatenate([linear, -0.5 * precision], axis=1)
        weight = self._rows.weight
        sums = mixture_pass(X, weight, origin, weights, bias, full)
        total = sums.total
        if self.covariance_type == "tied":  # the square term that all components share
            total -= 0.5 * float((precision[0] * _square(sums.sums.sum(axis=0), X.shape[1])).sum())
        if not np.isfinite(total):
            return self._plain_e_step(X)
        return np.float64(total / (len(X) if weight is None else weight.sum())), Expectation(sums, origin, self, X)

    def _plain_e_step(self, X: Array) -> tuple[Any, Any]:
        """E-step with a table of responsibilities."""
        norm, log_resp = self._estimate_log_prob_resp(X if self._rows.gappy is None else self._rows.gappy)
        return self._rows.mean(norm), log_resp

    def _m_step(self, X: Array, log_resp: Any, xp: Any = None) -> None:
        if not isinstance(log_resp, Expectation):
            if self._rows is NONE and self._few(X):
                self._set_estimates(*estimates(X, np.exp(log_resp), self.reg_covar, self.covariance_type))
                return
            if self._rows is NONE:
                super()._m_step(X, log_resp, xp=xp)
                return
            shares = np.exp(log_resp)
            shares = shares if self._rows.weight is None else shares * self._rows.weight[:, None]
            self._estimate(X if self._rows.gappy is None else self._rows.gappy, shares, self._density())
            return
        D, (counts, sums, _) = X.shape[1], log_resp.sums
        nk = counts + 10 * np.finfo(np.float64).eps
        first, d = sums[:, :D], sums[:, :D] / nk[:, None]
        if self.covariance_type == "full":
            second = np.array([_square(row, D) for row in sums])
            # about the mean: Σ r (z − d)(z − d)ᵀ
            cross = first[:, :, None] * d[:, None, :]
            covariances = (
                second - cross - cross.transpose(0, 2, 1) + counts[:, None, None] * d[:, :, None] * d[:, None, :]
            )
            covariances = covariances / nk[:, None, None] + self.reg_covar * np.eye(D)
        elif self.covariance_type == "tied":
            covariances = (_square(sums.sum(axis=0), D) - (nk[:, None] * d).T @ d) / nk.sum() + self.reg_covar * np.eye(
                D
            )
        else:
            covariances = sums[:, D:] / nk[:, None] - d**2 + self.reg_covar
            covariances = covariances.mean(axis=1) if self.covariance_type == "spherical" else covariances
        self.means_ = d + log_resp.origin * (counts / nk)[:, None]
        self.weights_, self.covariances_ = nk / nk.sum(), covariances
        self.precisions_cholesky_ = _compute_precision_cholesky(covariances, self.covariance_type, xp=np)

    def _set_estimates(self, count: Array, means: Array, covariances: Array) -> None:
        self.weights_, self.means_, self.covariances_ = count / count.sum(), means, covariances
        self.precisions_cholesky_ = precision_roots(covariances, self.covariance_type)

    def _estimate(self, X: Array, shares: Array, density: NormalDensity) -> None:
        """M-step of rows with weights or missing values: from the sums that are expected under a density."""
        sums = GaussianWithGaps().collect_under(np.asarray(X, dtype=float), Members.soft(shares), density)
        nk = sums.weight + 10 * np.finfo(np.float64).eps
        d, D = sums.first / nk[:, None], sums.first.shape[1]
        covariances = sums.second / nk[:, None, None] - d[:, :, None] * d[:, None, :]
        if self.covariance_type == "tied":
            covariances = np.tensordot(nk / nk.sum(), covariances, 1)
        elif self.covariance_type != "full":
            covariances = np.diagonal(covariances, axis1=1, axis2=2)
            covariances = covariances.mean(axis=1) if self.covariance_type == "spherical" else covariances
        matrix = self.covariance_type in ("full", "tied")
        dtype = self.means_.dtype
        self.covariances_ = (covariances + self.reg_covar * (np.eye(D) if matrix else 1.0)).astype(dtype)
        self.means_, self.weights_ = (sums.origin + d).astype(dtype), (nk / nk.sum()).astype(dtype)
        self.precisions_cholesky_ = _compute_precision_cholesky(self.covariances_, self.covariance_type, xp=np)

    def _density(self) -> NormalDensity:
        """Densities of the components, which score rows with missing values by their marginals."""
        K, D = self.means_.shape
        origin = np.asarray(self.weights_ @ self.means_ / self.weights_.sum(), dtype=float)
        root = np.asarray(self.precisions_cholesky_, dtype=float)  # at a start there may be no `covariances_`
        if self.covariance_type in ("full", "tied"):
            inverse = np.linalg.inv(root.reshape(-1, D, D))
            scale = inverse.transpose(0, 2, 1) @ inverse
        else:
            scale = np.broadcast_to(root.reshape(K, -1) ** -2.0, (K, D))[:, :, None] * np.eye(D)
        return NormalDensity(origin, self.means_ - origin, scale, np.ones(K))

    def _estimate_log_prob(self, X: Array, xp: Any = None) -> Array:
        if self.handle_missing == "ignore" and np.isnan(X).any():
            return self._density().log_density(np.asarray(X, dtype=float)).astype(self.means_.dtype, copy=False)
        if not self._passes(X):
            return super()._estimate_log_prob(X, xp=xp)
        D = X.shape[1]
        if self.covariance_type in ("full", "tied"):
            roots = self.precisions_cholesky_.reshape(-1, D, D)
            origin = self.weights_ @ self.means_ / self.weights_.sum()
            scores = kernels.whitened_distances(X, self.means_, roots, origin)
            scores *= -0.5
            scores += self._log_det() - 0.5 * D * np.log(2 * np.pi)
            return scores
        log_norm = np.zeros(self.means_.shape)
        log_norm[:, 0] = self._log_det() - 0.5 * D * np.log(2 * np.pi)
        return kernels.diagonal_scores(X, self.means_, 0.5 * self._precision(), log_norm)

    # -- answers -----------------------------------------------------------------------------------------------------
    def score_samples(self, X: Any) -> Array:
        """Return the log density of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Log densities; with handle_missing="ignore", of the values that are not missing.
        """
        if self.handle_missing == "error":
            return super().score_samples(X)
        check_is_fitted(self)
        return np.logaddexp.reduce(self._estimate_weighted_log_prob(self._check(X)), axis=1)

    def predict(self, X: Any, prior: Any = None) -> Array:
        """Return the most probable component of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        prior : array-like of shape (n_components,) or dict, default=None
            Shares of the components in place of `weights_`.

        Returns
        -------
        ndarray of shape (n_samples,)
            Components.
        """
        if prior is None and self.handle_missing == "error":
            return super().predict(X)
        return self._joint(X, prior).argmax(axis=1)

    def predict_proba(self, X: Any, prior: Any = None) -> Array:
        """Return the probability of each component.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        prior : array-like of shape (n_components,) or dict, default=None
            Shares of the components in place of `weights_`.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            Probabilities.
        """
        if prior is None and self.handle_missing == "error":
            return super().predict_proba(X)
        scores = self._joint(X, prior)
        return kernels.softmax(scores).astype(self.means_.dtype, copy=False)

    def _joint(self, X: Any, prior: Any) -> Array:
        """Return log π_k f(x|k), shape (n, K)."""
        check_is_fitted(self)
        return self._log_likelihood(X) + self._log_prior(prior)

    def _log_likelihood(self, X: Any) -> Array:
        return self._estimate_log_prob(self._check(X))

    def _log_prior(self, prior: Any = None) -> Array:
        if prior is None:
            return np.log(self.weights_)
        return log_probability(resolve_prior(prior, self._names()))

    def _names(self) -> Array:
        return np.arange(self.n_components)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.handle_missing == "ignore"
        return tags

    def _precision(self) -> Array:
        """(K, D, D), or (K, D) of diagonal covariances."""
        root, (K, D) = self.precisions_cholesky_, self.means_.shape
        if self.covariance_type in ("full", "tied"):
            root = root.reshape(-1, D, D)
            return np.broadcast_to(root @ root.transpose(0, 2, 1), (K, D, D))
        return np.broadcast_to((root**2).reshape(K, -1), (K, D))

    def _log_det(self) -> Array:
        """(K,) half of the log determinants of the precisions."""
        root, (K, D) = self.precisions_cholesky_, self.means_.shape
        if self.covariance_type in ("full", "tied"):
            return np.log(np.diagonal(root.reshape(-1, D, D), axis1=1, axis2=2)).sum(axis=1)
        return np.broadcast_to(np.log(root).reshape(K, -1), (K, D)).sum(axis=1)


def _square(sums: Array, D: int) -> Array:
    """(D, D) matrix of the products u ≤ v that follow the D linear sums."""
    matrix = np.zeros((D, D))
    matrix[np.triu_indices(D)] = sums[D:]
    return matrix + np.triu(matrix, 1).T


def filled(X: Array, gaps: Array, weight: Array | None) -> Array:
    """Replace missing values by the means of their columns, with which EM starts."""
    empty = gaps.all(axis=1)
    if empty.any():
        raise MissingValueError(f"row {np.flatnonzero(empty)[0]} has no value. Drop the row.")
    if not gaps.any():
        return X
    there = ~gaps if weight is None else ~gaps * weight[:, None]
    count = there.sum(axis=0)
    if not count.all():
        raise MissingValueError(f"column {np.flatnonzero(count == 0)[0]} has no value. Drop the column.")
    known = np.where(gaps, 0.0, X)
    return np.where(gaps, (known * there).sum(axis=0) / count, X).astype(X.dtype, copy=False)


# -- EM steps for few rows ---------------------------------------------------------------------------------------------
LOG_2PI = math.log(2 * math.pi)


def log_densities(X: Array, means: Array, root: Array, kind: str) -> Array:
    """(n, K) log densities; `root` holds the Cholesky factors of the precisions."""
    K, D = means.shape
    if kind in ("full", "tied"):
        roots = root.reshape(-1, D, D)
        squares = np.square(X @ roots - means[:, None, :] @ roots).sum(axis=2).T.astype(X.dtype, copy=False)
        log_det = np.log(roots.reshape(-1, D * D)[:, :: D + 1]).sum(axis=1)
    else:
        precision = np.broadcast_to(np.square(root).reshape(K, -1), (K, D))
        squares = (means**2 * precision).sum(axis=1) - 2.0 * (X @ (means * precision).T) + X**2 @ precision.T
        log_det = np.log(root).sum(axis=1) if kind == "diag" else D * np.log(root)
    return -0.5 * (D * LOG_2PI + squares) + log_det


def log_responsibilities(scores: Array) -> tuple[Array, Array] | None:
    """Log density of each row, and the (n, K) log probabilities of the components; None if a row has no density."""
    top = scores.max(axis=1, keepdims=True)
    if not np.isfinite(top).all():
        return None
    norm = top + np.log(np.exp(scores - top).sum(axis=1, keepdims=True))
    return norm[:, 0], scores - norm


def estimates(X: Array, shares: Array, extra: float, kind: str) -> tuple[Array, Array, Array]:
    """Numbers of rows, means and covariances of the components, with `extra` added to the variances."""
    count = shares.sum(axis=0) + 10 * np.finfo(shares.dtype).eps
    means = shares.T @ X / count[:, None]
    D = X.shape[1]
    if kind == "full":
        centred = X - means[:, None, :]
        covariances = (shares.T[:, :, None] * centred).transpose(0, 2, 1) @ centred / count[:, None, None]
        covariances = covariances.astype(X.dtype, copy=False)
        covariances.reshape(-1, D * D)[:, :: D + 1] += extra
    elif kind == "tied":
        covariances = (X.T @ X - (count * means.T) @ means) / count.sum()
        covariances.reshape(-1)[:: D + 1] += extra
    else:
        covariances = shares.T @ (X * X) / count[:, None] - means**2 + extra
        covariances = covariances.mean(axis=1) if kind == "spherical" else covariances
    return count, means, covariances


def precision_roots(covariances: Array, kind: str) -> Array:
    """Cholesky factors of the precisions; scikit-learn's error for covariances that are not positive definite."""
    if kind in ("full", "tied") and np.isfinite(covariances).all():
        D = covariances.shape[-1]
        decompose, invert = get_lapack_funcs(("potrf", "trtri"), (covariances,))
        roots = np.empty_like(covariances)
        for matrix, root in zip(covariances.reshape(-1, D, D), roots.reshape(-1, D, D), strict=True):
            factor, failed = decompose(matrix, lower=True, clean=True)
            if failed:
                break
            root[...] = invert(factor, lower=True)[0].T
        else:
            return roots
    return _compute_precision_cholesky(covariances, kind, xp=np)
