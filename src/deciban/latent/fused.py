"""E-steps of large tables in one fused pass, for Gaussians and for counts of words.

A normal log density is linear in [x, vech(xxᵀ)], and so are the sums that a Gaussian needs: one matrix product scores a
block of rows, another collects it. A multinomial's is linear in the counts. What comes out is what `collect` would have
given, up to rounding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from deciban.families.gaussian.axis_densities import DiagonalNormal
from deciban.families.gaussian.densities import NormalDensity
from deciban.families.gaussian.family import Gaussian
from deciban.families.gaussian.sums import DiagonalStats, GaussianStats
from deciban.families.multinomial import Multinomial, MultinomialStats
from deciban.families.tokens import MultinomialDensity, log_coefficient
from deciban.kernels.choice import compiled
from deciban.kernels.mixture import feature_count, mixture_pass, sparse_mixture_pass
from deciban.latent.components import MixtureDensity, MixtureSums
from deciban.linalg import whiten
from deciban.statistics import Array, Axis

if TYPE_CHECKING:
    from deciban.latent.expectation import Rows

FAR = 1e6  # squared distance of a mean from the origin, in variances, from which expanding squares costs digits


def expect(rows: Rows, density: MixtureDensity, names: Axis) -> tuple[MixtureSums | None, float] | None:
    """Sums and log-likelihood without the base; None where the plain pass must be taken."""
    parts, X = density.components, rows.X
    if type(rows.family) is Multinomial and isinstance(parts, MultinomialDensity) and sp.issparse(X):
        return _words(rows, density, names)
    if type(rows.family) is not Gaussian or sp.issparse(X) or not isinstance(parts, NormalDensity | DiagonalNormal):
        return None
    products = isinstance(parts, NormalDensity)
    if rows.family._complete != products or not compiled(len(rows) * feature_count(X.shape[1], products) * names.size):
        return None
    coefficients = _matrix(parts) if isinstance(parts, NormalDensity) else _axes(parts)
    if coefficients is None:
        return None
    weights, bias, shared = coefficients
    bias = bias + density.log_weights
    origin = parts.origin
    counts, sums, total = mixture_pass(X, rows.weight, origin, weights, bias, products)
    if not np.isfinite(total):
        return None  # a gap, or a row too far away: the plain pass knows which
    D = X.shape[1]
    if shared is not None:  # the second-order part that all components have alike
        total += float(shared @ sums[:, D:].sum(axis=0))
    labels: dict[str, Any] = {"class": names, "feature": Axis.of(D)}
    stats: Any
    if products:
        stats = GaussianStats(labels, counts, sums[:, :D], _square(sums[:, D:], D), origin)
    else:
        stats = DiagonalStats(labels, np.repeat(counts[:, None], D, axis=1), sums[:, :D], sums[:, D:], origin)
    return MixtureSums({"class": names}, counts, stats), total


def _matrix(density: NormalDensity) -> tuple[Array, Array, Array | None] | None:
    """Coefficients of [z, z_u z_v] from the precision Λ: Λμ, and −½Λ with off-diagonal entries twice."""
    D = density.mean.shape[1]
    whitener, log_det = density.whitener, density.log_det
    if whitener is None or log_det is None:
        whitener, log_det, _ = whiten(density.scale)
    root = whitener * np.sqrt(density.divisor[: len(whitener), None, None])
    inner = np.einsum("kd,kde->ke", density.mean, np.broadcast_to(root, (density.K, D, D)))
    far = (inner**2).sum(axis=1)
    if not far.max(initial=0.0) < FAR:
        return None
    linear = np.einsum("ke,kde->kd", inner, np.broadcast_to(root, (density.K, D, D)))
    bias = -0.5 * (far + log_det - D * np.log(density.divisor) + D * np.log(2 * np.pi))
    u, v = np.triu_indices(D)
    second = (root @ root.transpose(0, 2, 1))[:, u, v] * np.where(u == v, -0.5, -1.0)
    return _joined(linear, second, bias)


def _axes(density: DiagonalNormal) -> tuple[Array, Array, Array | None] | None:
    """Coefficients of [z, z²]: μ/σ² and −½/σ²."""
    variance, mean = density.variance, density.mean
    if not (mean**2 / variance).max(initial=0.0) < FAR:
        return None
    bias = -0.5 * (np.log(2 * np.pi * variance) + mean**2 / variance).sum(axis=1)
    return _joined(mean / variance, (-0.5 / variance)[: 1 if density.tied else None], bias)


def _joined(linear: Array, second: Array, bias: Array) -> tuple[Array, Array, Array | None]:
    """What the second order adds to every component alike need not be scored."""
    if len(second) == 1 < len(linear):
        return linear, bias, second[0]
    return np.concatenate([linear, second], axis=1), bias, None


def _square(triangles: Array, D: int) -> Array:
    """Full matrices from the products u ≤ v."""
    u, v = np.triu_indices(D)
    second = np.empty((len(triangles), D, D))
    second[:, u, v] = second[:, v, u] = triangles
    return second


def _words(rows: Rows, density: MixtureDensity, names: Axis) -> tuple[MixtureSums | None, float] | None:
    X, log_p = rows.X, density.components.log_p
    if not compiled(X.nnz * names.size):
        return None
    extra = rows.kept("coefficient", lambda: log_coefficient(X))
    counts, sums, more, total = sparse_mixture_pass(
        X.data, X.indices, X.indptr, rows.weight, log_p, density.log_weights, extra
    )
    if not np.isfinite(total):
        return None
    labels: dict[str, Any] = {"class": names, "word": Axis.of(X.shape[1])}
    return MixtureSums({"class": names}, counts, MultinomialStats(labels, sums.T, counts, more)), total
