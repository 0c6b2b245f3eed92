"""Gaussian mixtures of scikit-learn on deciban's kernels: an EM iteration reads the rows once and keeps no table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import sklearn.mixture as theirs
from sklearn.mixture._gaussian_mixture import _compute_precision_cholesky

from deciban import kernels
from deciban.kernels.mixture import Pass, mixture_pass
from deciban.sklearn.dropin import Array, DropIn

LOST = 1e6  # squared distance of a component from the origin, in its own variances, from which on digits are lost


@dataclass(frozen=True, eq=False)
class Expectation:
    """Sums of an E-step in the place of responsibilities, which are computed where labels are wanted."""

    sums: Pass
    origin: Array  # (D,)
    mixture: GaussianMixture
    rows: Array

    def argmax(self, axis: int = 1, out: None = None) -> Array:
        """Component of each row."""
        return np.asarray(self.mixture._estimate_weighted_log_prob(self.rows).argmax(axis=axis))


class GaussianMixture(DropIn, theirs.GaussianMixture):
    """Gaussian mixture with scikit-learn's interface and starts; an EM iteration is one pass over the rows.

    Rows of float32, inputs of fewer than 50,000 values, and components more than 1,000 standard deviations from the
    mean of the rows are left to scikit-learn.

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
    """

    def _passes(self, X: Any) -> bool:
        return X.dtype == np.float64 and self.means_.dtype == np.float64 and self._runs(X)

    def _e_step(self, X: Array, xp: Any = None) -> tuple[Any, Any]:
        if not self._passes(X):
            return super()._e_step(X, xp=xp)
        origin = self.weights_ @ self.means_ / self.weights_.sum()
        full = self.covariance_type in ("full", "tied")
        precision, log_det, shift = self._precision(), self._log_det(), self.means_ - origin
        linear = np.einsum("kuv,kv->ku", precision, shift) if full else precision * shift
        constant = (linear * shift).sum(axis=1)
        if not (constant < LOST).all():
            return super()._e_step(X, xp=xp)
        bias = np.log(self.weights_) + log_det - 0.5 * (X.shape[1] * np.log(2 * np.pi) + constant)
        if self.covariance_type == "tied":
            weights = linear
        elif full:
            u, v = np.triu_indices(X.shape[1])
            weights = np.concatenate([linear, precision[:, u, v] * np.where(u == v, -0.5, -1.0)], axis=1)
        else:
            weights = np.concatenate([linear, -0.5 * precision], axis=1)
        sums = mixture_pass(X, None, origin, weights, bias, full)
        total = sums.total
        if self.covariance_type == "tied":  # the square term that all components share
            total -= 0.5 * float((precision[0] * _square(sums.sums.sum(axis=0), X.shape[1])).sum())
        if not np.isfinite(total):
            return super()._e_step(X, xp=xp)
        return np.float64(total / len(X)), Expectation(sums, origin, self, X)

    def _m_step(self, X: Array, log_resp: Any, xp: Any = None) -> None:
        if not isinstance(log_resp, Expectation):
            super()._m_step(X, log_resp, xp=xp)
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

    def _estimate_log_prob(self, X: Array, xp: Any = None) -> Array:
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
