"""EM steps of a Gaussian mixture for few rows: scikit-learn's formulas in numpy, all components at once.

Types are scikit-learn's, too: where a start of float64 meets rows of float32, some arrays have the type of the rows.
At 50 rows, scikit-learn spends most of an iteration on looking up array namespaces and devices.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import get_lapack_funcs
from sklearn.mixture._gaussian_mixture import _compute_precision_cholesky

from deciban.sklearn.dropin import Array

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
