"""Gaussian log densities by SciPy, from raw sums and the textbook formulas: a plain twin of the family; and rows."""

import numpy as np
from scipy import stats as sps

from deciban.families.gaussian import STRUCTURES, Gaussian
from deciban.statistics import Members

CONCRETE = STRUCTURES[:-1]
DIAGONAL = [s for s in CONCRETE if s not in ("full", "tied")]


def blobs(n=60, D=3, K=3, seed=0, apart=2.0, at=0.0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % K
    mix = np.eye(D) + np.tril(rng.normal(size=(D, D)), -1)
    X = at + apart * rng.normal(size=(K, D))[y] + rng.normal(size=(n, D)) @ mix
    return X, Members.hard(y, K)


def fitted(structure, X, members, **choices):
    family = Gaussian(structure, **choices)
    stats = family.collect(X, members)
    return family.choose(stats, (X, members)).resolve(stats), stats


def gaussian_truth(family, stats, X, rule):
    if hasattr(X, "toarray"):
        X = X.toarray()
    stats = stats.whole()
    Z = X - stats.origin
    tied, kind = family.structure.startswith("tied"), family.structure.removeprefix("tied ")
    truth = matrix_truth if kind in ("full", "tied") else axes_truth
    return truth(family, stats, Z, rule, tied, kind)


def matrix_truth(family, stats, Z, rule, tied, _):
    K, D = stats.first.shape
    m0, T = family.mean - stats.origin, family.scale
    k0, nu0, P0 = (
        family.kappa,
        family.strength + D - 1 + family.dof,
        family.strength * (np.diag(T) if T.ndim == 1 else T),
    )
    if rule == "ml":
        k0, nu0, P0 = 0.0, 0.0, np.zeros((D, D))
    kappa, nu = k0 + stats.weight, nu0 + stats.weight
    mean = (stats.first + k0 * m0) / kappa[:, None]
    raw = [S + k0 * np.outer(m0, m0) - k * np.outer(m, m) for S, k, m in zip(stats.second, kappa, mean, strict=True)]
    psi = [P0 + sum(raw)] * K if tied else [P0 + R for R in raw]
    nu = np.full(K, nu0 + stats.weight.sum()) if tied else nu
    divisor = {
        "ml": nu,
        "map": nu + D + 1 + (K if tied else 1),
        "mean": nu - D + 1 - family.dof,
        "predictive": nu - D + 1,
    }[rule]
    scores = np.empty((len(Z), K))
    for k in range(K):
        if rule == "predictive":
            shape = psi[k] * (kappa[k] + 1) / kappa[k] / divisor[k]
            scores[:, k] = sps.multivariate_t(mean[k], shape, df=divisor[k]).logpdf(Z)
        else:
            scores[:, k] = sps.multivariate_normal(mean[k], psi[k] / divisor[k]).logpdf(Z)
    return scores


def axes_truth(family, stats, Z, rule, tied, kind):
    n, first, second = stats.weight, stats.first, stats.second
    if n.ndim == 1:
        n, second = np.repeat(n[:, None], first.shape[1], axis=1), np.diagonal(second, axis1=1, axis2=2)
    K, D = first.shape
    spherical = kind == "spherical"
    axes = (0,) * tied + (1,) * spherical
    T = family.scale if family.scale.ndim == 1 else np.diag(family.scale)
    k0, m0, s0 = family.kappa, family.mean - stats.origin, family.strength
    nu0, P0 = (s0 * D + family.dof, s0 * T.sum()) if spherical else (s0 + family.dof, s0 * T)
    if rule == "ml":
        k0, nu0, P0 = 0.0, 0.0, 0.0
    kappa = k0 + n
    mean = (first + k0 * m0) / kappa
    psi = np.broadcast_to(P0 + (second + k0 * m0**2 - kappa * mean**2).sum(axis=axes, keepdims=True), (K, D))
    nu = np.broadcast_to(nu0 + n.sum(axis=axes, keepdims=True), (K, D))
    means = (K if tied else 1) * (D if spherical else 1)
    if rule != "predictive":
        variance = psi / {"ml": nu, "map": nu + 2 + means, "mean": nu - family.dof}[rule]
        return sps.norm.logpdf(Z[:, None, :], mean, np.sqrt(variance)).sum(axis=2)
    scale = psi * (kappa + 1) / kappa / nu
    if not spherical:
        return sps.t.logpdf(Z[:, None, :], nu, mean, np.sqrt(scale)).sum(axis=2)
    joint = [sps.multivariate_t(mean[k], np.diag(scale[k]), df=nu[k, 0]).logpdf(Z) for k in range(K)]
    return np.stack(joint, axis=1)
