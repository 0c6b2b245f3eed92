"""The log prior of means and covariances: what `map` adds to a log-likelihood, and EM climbs.

    Σ ~ inverse-Wishart(ν0, Ψ0)      −½[(ν0 + D + 1) log|Σ| + tr Ψ0Σ⁻¹]        once per covariance
    μ | Σ ~ Normal(m0, Σ/κ0)         −½[log|Σ| + κ0 (μ−m0)ᵀΣ⁻¹(μ−m0)]          once per mean

Along axes the inverse-Wishart is an inverse gamma. Constants are left out.
"""

from __future__ import annotations

import numpy as np

from deciban.families.gaussian.axis_densities import DiagonalNormal
from deciban.families.gaussian.densities import NormalDensity
from deciban.families.gaussian.prior import Prior
from deciban.linalg import whiten


def matrix_log_prior(prior: Prior, density: NormalDensity) -> float:
    """Of full or tied covariances; the prior's mean is measured from the density's origin."""
    D, shared = density.mean.shape[1], len(density.scale)
    root = whiten(density.scale)
    spread = np.sqrt(density.divisor[:shared])
    whitener = root.whitener * spread[:, None, None]  # of Σ = scale/divisor
    log_det = root.log_det - 2 * D * np.log(spread)
    trace = np.einsum("kde,df,kfe->k", whitener, prior.strength * prior.matrix, whitener)
    inner = np.einsum("kd,kde->ke", density.mean - prior.mean, np.broadcast_to(whitener, (density.K, D, D)))
    covariances = ((prior.strength + 2 * D + 2) * log_det + trace).sum()
    means = np.broadcast_to(log_det, density.K).sum() + prior.kappa * (inner**2).sum()
    return float(-0.5 * (covariances + means))


def axis_log_prior(prior: Prior, density: DiagonalNormal, tied: bool, pooled: bool) -> float:
    """Of diagonal or spherical variances; the prior's mean is measured from the density's origin."""
    D = density.mean.shape[1]
    own = density.variance[: 1 if tied else None, : 1 if pooled else None]  # each variance once
    nu = prior.strength * (D if pooled else 1) + 2
    psi = prior.strength * (prior.variances.sum(keepdims=True) if pooled else prior.variances)
    variances = ((nu + 2) * np.log(own) + psi / own).sum()
    off = (density.mean - prior.mean) ** 2 / density.variance
    return float(-0.5 * (variances + np.log(density.variance).sum() + prior.kappa * off.sum()))
