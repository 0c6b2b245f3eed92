"""Diagonal and spherical covariance, per class or tied: a table of variances, pooled along one axis, both or none.

    diagonal          one variance per class and feature      spherical         one per class
    tied diagonal     one per feature                         tied spherical    one in all

Each variance σ² has an inverse-gamma posterior, IG(ν/2, ψ/2), shared by the means that share it. Values may be missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import gammaln

from deciban.errors import SingularError
from deciban.families.gaussian.axis_densities import (
    DiagonalNormal,
    DiagonalStudent,
    SphericalStudent,
)
from deciban.families.gaussian.one_out import leave_one_out
from deciban.families.gaussian.prior import Prior
from deciban.families.gaussian.sums import DiagonalStats
from deciban.families.posterior import Marginal
from deciban.families.protocol import Density, Rule, require_rows
from deciban.linalg import singular_reasons
from deciban.statistics import Array, Members


@dataclass(frozen=True, eq=False)
class CellPosterior:
    """κ, m of every class and feature, ν and ψ of every variance. Without a prior: counts, means and scatter."""

    stats: DiagonalStats
    prior: Prior | None
    tied: bool  # classes share their variances
    pooled: bool  # features share theirs: spherical
    kappa: Array  # (K, D), or (K, 1) where nothing is missing
    mean: Array  # (K, D) from the origin
    nu: Array  # (K or 1, D or 1)
    psi: Array  # (K or 1, D or 1)

    @classmethod
    def of(cls, stats: DiagonalStats, prior: Prior | None, tied: bool, pooled: bool) -> CellPosterior:
        """Prior and sums make the posterior: ψ = ψ0 + Σ(x−x̄)² + κ0n/(κ0+n)·(x̄−m0)², pooled."""
        axes = (0,) * tied + (1,) * pooled
        n = stats.weight
        mean, psi = stats.scatter()
        nu = n.sum(axis=axes, keepdims=True)
        complete = bool((n == n[:, :1]).all()) and n.shape[1] > 0
        if prior is None:
            require_rows(n, stats.labels["class"], "Gaussian")  # type: ignore[arg-type]
            psi = psi.sum(axis=axes, keepdims=True)
            _refuse_constant(psi, stats, tied)
        else:
            kappa = prior.kappa + n
            psi = psi + prior.kappa * n / kappa * (mean - prior.mean) ** 2
            mean = (stats.first + prior.kappa * prior.mean) / kappa
            pseudo = prior.variances.sum(keepdims=True) if pooled else prior.variances
            nu = nu + prior.strength * (n.shape[1] if pooled else 1) + 2
            n, psi = kappa, psi.sum(axis=axes, keepdims=True) + prior.strength * pseudo
        if complete:  # every row had every value: broadcasting is cheaper
            n, nu = n[:, :1], nu[:, :1]
        return cls(stats, prior, tied, pooled, n, mean, nu, psi)

    def read(self, rule: Rule, kappa: Array, nu: Array) -> tuple[Array, Array | None]:
        """What ψ is divided by, and the Student degrees of freedom."""
        if rule == "predictive":
            return nu * kappa / (kappa + 1), nu
        K, D = self.mean.shape
        means = (K if self.tied else 1) * (D if self.pooled else 1)
        return {"ml": nu, "map": nu + 2 + means, "mean": nu - 2}[rule], None

    @cached_property
    def log_psi(self) -> Array:
        """(K,) or (1,): Σ log ψ over the features."""
        return np.log(self.psi).sum(axis=1)

    def density(self, rule: Rule) -> Density:
        """Plug-in normals, or the Student densities that integrate the parameters out."""
        divisor, dof = self.read(rule, self.kappa, self.nu)
        variance = np.broadcast_to(self.psi / divisor, self.mean.shape)
        if dof is None:
            return DiagonalNormal(self.stats.origin, self.mean, variance, self.tied)
        K, D = self.mean.shape
        if self.pooled:
            return SphericalStudent(self.stats.origin, self.mean, variance, np.broadcast_to(dof[:, 0], K))
        return DiagonalStudent(self.stats.origin, self.mean, variance, np.broadcast_to(dof, (K, D)))

    def leave_one_out(self, X: Any, members: Members, rule: Rule) -> Array:
        """(n, K) as if each row had never been learnt."""
        return leave_one_out(self, X, members, rule)

    def separation(self) -> float:
        """The largest squared distance of a mean from the origin, in variances."""
        return float((self.mean**2 / (self.psi / self.nu)).max(initial=0.0))

    # -- what is known of the parameters ---------------------------------------------------------------------------
    def log_evidence(self) -> Array:
        """(K,), or (1,) where tied: the normalisers of the posterior over those of the prior."""
        assert self.prior is not None
        axes = (0,) * self.tied + (1,) * self.pooled
        n = self.stats.weight.sum(axis=axes, keepdims=True)
        nu0 = self.prior.strength * (self.mean.shape[1] if self.pooled else 1) + 2
        variances = self.prior.variances.sum(keepdims=True) if self.pooled else self.prior.variances
        kappa = np.broadcast_to(self.kappa, self.mean.shape)
        means = (np.log(self.prior.kappa) - np.log(kappa)).sum(axis=axes, keepdims=True)
        scales = nu0 * np.log(self.prior.strength * variances) - self.nu * np.log(self.psi)
        gammas = gammaln(self.nu / 2) - gammaln(nu0 / 2)
        return ((means + scales - n * np.log(np.pi)) / 2 + gammas).sum(axis=1)

    def marginals(self) -> dict[str, Marginal]:
        """Student means, (K, D), and inverse-gamma variances, as many as there are."""
        from scipy import stats as sps  # a quarter of a second that answers need not wait for

        mean = self.stats.origin + self.mean
        dof = np.broadcast_to(self.nu, self.mean.shape)
        scale = np.sqrt(self.psi / (self.kappa * self.nu))
        shape = np.broadcast_to(self.nu / 2, self.psi.shape)
        return {
            "mean": Marginal.exact(sps.t(df=dof, loc=mean, scale=np.broadcast_to(scale, mean.shape)), mean),
            "variance": Marginal.exact(sps.invgamma(shape, scale=self.psi / 2), self.psi / 2 / (shape + 1)),
        }


def _refuse_constant(psi: Array, stats: DiagonalStats, tied: bool) -> None:
    """Maximum likelihood gives a column that does not vary an infinite density."""
    bad = np.argwhere(~(psi > 0))
    if not len(bad):
        return
    k = bad[0][0]
    columns = (
        bad[bad[:, 0] == k, 1].tolist() if psi.shape[1] == stats.first.shape[1] else [*range(stats.first.shape[1])]
    )
    label = None if tied else stats.labels["class"].names[k]  # type: ignore[union-attr]
    who = "the classes together" if tied else f"class {label!r}"
    error = SingularError(
        f"{singular_reasons(columns, [])[0]} in {who}, so rule 'ml' has no variance there. "
        f"Use rule 'mean' (its prior keeps it regular){'' if tied else ', a tied structure'}, or drop columns."
    )
    error.columns, error.label = columns, label  # type: ignore[attr-defined]
    raise error
