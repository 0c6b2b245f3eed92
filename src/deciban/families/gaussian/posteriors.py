"""Posteriors of Gaussian parameters: densities, leave-one-out scores, evidence, marginals, draws.

`MatrixPosterior` serves full and tied covariances: a normal–inverse-Wishart posterior. `CellPosterior` serves diagonal
and spherical covariances, per class or tied: each variance σ² has an inverse-gamma posterior IG(ν/2, ψ/2).

    diagonal          one variance per class and feature      spherical         one per class
    tied diagonal     one per feature                         tied spherical    one in all

Reference: Murphy, Conjugate Bayesian analysis of the Gaussian distribution (2007), section 8.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, multigammaln

from deciban import kernels
from deciban.errors import InputError, SingularError
from deciban.families.gaussian.densities import (
    BLOCK_CELLS,
    DiagonalNormal,
    DiagonalStudent,
    MatrixDensity,
    NormalDensity,
    SphericalStudent,
    StudentDensity,
    Whitened,
    axis_scores,
    distances,
    elliptical,
    is_far,
    singular_columns,
    singular_reasons,
    whiten,
)
from deciban.families.gaussian.sums import EPS, DiagonalStats, GaussianStats
from deciban.families.protocol import Density, Marginal, Rule, classes_of, require_rows
from deciban.kernels.choice import one_thread
from deciban.read.arrays import Matrix
from deciban.statistics import Array, Members

ALONE = 1e-12  # share of κ, or of ψ, below which a difference is only rounding
COVARIANCE_DRAWS = 2000
MOST_DRAWN = 2e7  # values in all draws of covariances


@dataclass(frozen=True, eq=False)
class Prior:
    """Normal–inverse-Wishart prior with ν0 = strength + D − 1 + dof and Ψ0 = strength × target.

    With dof = 0, the variance of each single column has ν0 = strength and ψ0 = strength × target.
    """

    kappa: float
    strength: float
    mean: Array  # (D,) m0, from the origin of the sums
    target: Array  # (D,) variances, or (D, D)
    dof: float = 0.0

    @property
    def matrix(self) -> Array:
        """(D, D) target covariance."""
        return np.diag(self.target) if self.target.ndim == 1 else self.target

    @property
    def variances(self) -> Array:
        """(D,) target variances."""
        return self.target if self.target.ndim == 1 else self.target.diagonal()


@dataclass(frozen=True, eq=False)
class Estimated:
    """Degrees of freedom of variances that are shrunk to a target derived from the same sums.

    The target S/f, with f = Σ(n_j − 1), contains the scatter of the class itself, so that its rows would count twice.
    The variance of class c is v = (S_c + strength·S/f)/(n_c − 1 + strength) = Σ a_j S_j, which is unbiased; by
    Satterthwaite's rule it is as certain as 1/Σ a_j²(n_j − 1) degrees of freedom. For a single class v = S/(n − 1) with
    n − 1 of them: Student's interval of the mean.
    """

    dof: Array  # of each variance
    rows: Array  # n_c − 1 + strength, the divisor of the scatter
    more: Array  # n/f − 1: share of the target S/n that is added to it, so that it is S/f

    @classmethod
    def of(cls, n: Array, own: Array, f: Array, strength: float) -> Estimated | None:
        """Compute them from the rows of each class, own degrees of freedom n_c − 1, and f; None if a column has f = 0.

        `f` has the shape of one class.
        """
        if not np.all(f > 0):
            return None
        rows = own + strength
        mine, others = (1 + strength / f) / rows, strength / f / rows
        return cls(1 / (mine**2 * own + others**2 * (f - own)), rows, n.sum(axis=0) / f - 1)


@dataclass(frozen=True, eq=False)
class MatrixPosterior:
    """κ, m, ν and Ψ of every class; ν and Ψ are shared if tied. Without a prior: counts, means and scatter."""

    stats: GaussianStats
    prior: Prior | None
    tied: bool
    kappa: Array  # (K,)
    mean: Array  # (K, D) from the origin
    nu: Array  # (K,) or (1,)
    psi: Array  # (K, D, D) or (1, D, D)
    learnt: Array | float = 1.0  # (K,) or (1,) share of Ψ that rows determine, and not the target; see `for_scores`

    @classmethod
    def of(cls, stats: GaussianStats, scatter: tuple[Array, Array], prior: Prior | None, tied: bool) -> MatrixPosterior:
        """Update the prior by the sums: Ψ = Ψ0 + Σ(x−x̄)(x−x̄)ᵀ + κ0n/(κ0+n)·(x̄−m0)(x̄−m0)ᵀ.

        `scatter` is `stats.scatter()`.
        """
        n, (mean, psi) = stats.weight, scatter
        if prior is None:
            require_rows(n, classes_of(stats.labels), "Gaussian")
            return cls(stats, None, tied, n, mean, _pooled(n, tied), _pooled(psi, tied))
        kappa = prior.kappa + n
        off = mean - prior.mean
        psi = psi + np.einsum("k,ki,kj->kij", prior.kappa * n / kappa, off, off)
        mean = (stats.first + prior.kappa * prior.mean) / kappa[:, None]
        nu = prior.strength + mean.shape[1] - 1 + prior.dof + _pooled(n, tied)
        return cls(stats, prior, tied, kappa, mean, nu, _pooled(psi, tied) + prior.strength * prior.matrix)

    def root(self) -> Whitened:
        """Return the whitener and the log determinant of Ψ; SingularError, with class and columns, if Ψ is singular.

        Ψ is singular if the conditional variance of a column, given those before it, is below rounding.
        """
        D = self.psi.shape[1]
        raw = _pooled(np.diagonal(self.stats.second, axis1=1, axis2=2), self.tied)
        with np.errstate(divide="ignore", invalid="ignore"):
            lost = np.nan_to_num((raw / np.diagonal(self.psi, axis1=1, axis2=2)).max(axis=1, initial=0.0), posinf=0.0)
        tolerance = 16 * EPS * (D + lost)
        root = whiten(self.psi)
        bad = np.flatnonzero(~(root.pivot > tolerance))
        if len(bad):
            raise self._singular(bad[0], tolerance[bad[0]])
        return root

    def _singular(self, k: int, tolerance: float) -> SingularError:
        constant, dependent = singular_columns(self.psi[k], max(tolerance, 1e-10))
        label = None if self.tied else classes_of(self.stats.labels).names[k]
        subject = "the classes together have" if self.tied else f"class {label!r} has"
        rows, D = float(self.stats.weight.sum() if self.tied else self.stats.weight[k]), self.psi.shape[1]
        reasons = singular_reasons(constant, dependent)
        if rows <= D:
            reasons += [f"{rows:g} rows are too few for {D} columns"]
        structures = "'diagonal'" if self.tied else "'tied' or 'diagonal'"
        return SingularError(
            f"{subject} a singular covariance: {'; '.join(reasons) or 'it is not positive definite'}.",
            columns=constant + dependent,
            label=label,
            remedy=f"Use rule 'mean' (its prior keeps it regular), structure {structures}, or drop columns.",
        )

    # -- densities -------------------------------------------------------------------------------------------------
    def read(self, rule: Rule, kappa: Array, nu: Array) -> tuple[Array, Array | None]:
        """Return the divisor of Ψ, and the degrees of freedom of a Student density."""
        D, K = self.psi.shape[1], len(self.mean)
        if rule == "predictive":
            return (nu - D + 1) * kappa / (kappa + 1), nu - D + 1 + 0 * kappa
        if rule == "mean":
            return nu - D + 1 - _given(self.prior).dof + 0 * kappa, None  # strength + n
        return (nu if rule == "ml" else nu + D + 1 + (K if self.tied else 1)) + 0 * kappa, None

    def density(self, rule: Rule) -> MatrixDensity:
        """Return normal densities, or under rule "predictive" Student densities."""
        divisor, dof = self.read(rule, self.kappa, self.nu)
        kind = NormalDensity if dof is None else StudentDensity
        root = self.root()
        return kind(self.stats.origin, self.mean, self.psi, divisor, dof, root.whitener, root.log_det)

    def leave_one_out(self, X: Array, members: Members, rule: Rule) -> Array:
        """Return the scores, shape (n, K), from squared distances: removing a row is a rank-one update of Ψ."""
        own, weight = members.own_codes(), members.row_weights()
        root, mean = self.root(), self.mean
        far = is_far(self.stats.origin, root.whitener, float(np.sqrt(np.max(self.nu))))
        q = distances(X, self.stats.origin, mean, root.whitener, far)
        between = distances(mean, np.zeros(mean.shape[1]), mean, root.whitener, far=False) if self.tied else None
        return self._left_out(q, between, root.log_det, root.pivot, own, weight, rule)

    def left_out_of_strengths(
        self, strengths: Sequence[float], X: Array, members: Members, rule: Rule
    ) -> Iterator[Array]:
        """Yield the scores of `leave_one_out` for several strengths of a tied posterior with a spherical target.

        Their Ψ differ by multiples of the identity, so that they have the same eigenvectors. Sums are about zero.
        """
        prior, D, own, weight = _given(self.prior), X.shape[1], members.own_codes(), members.row_weights()
        with one_thread(D):
            values, vectors = np.linalg.eigh(self.psi[0] - prior.strength * prior.matrix)
        rows, means, size = X @ vectors, self.mean @ vectors, float(prior.variances[0])
        for strength in strengths:
            variance = np.maximum(values, 0.0) + strength * size
            one = replace(self, prior=replace(prior, strength=strength), nu=self.nu + strength - prior.strength)
            q, between = (_squared_distances(each, means, 1 / variance) for each in (rows, means))
            log_det, pivot = np.log(variance).sum(keepdims=True), np.ones(1)
            yield one._left_out(q, between, log_det, pivot, own, weight, rule)

    def _left_out(
        self, q: Array, between: Array | None, log_det: Array, pivot: Array, own: Array, w: Array, rule: Rule
    ) -> Array:
        """Return leave-one-out scores from distances q (n, K) of rows, and, if tied, those between the means (K, K).

        `own` and `w` are the class and the weight of each row.
        """
        each, D = np.arange(len(own)), self.mean.shape[1]
        kappa = self.kappa[own] - w
        alone = kappa <= 1e-12 * self.kappa[own]  # no other row in the class
        step = self.kappa[own] / np.where(alone, 1.0, kappa)
        a = np.where(alone, 0.0, w * step)
        share = np.zeros(len(own), dtype=np.intp) if self.tied else own
        shrink = determinant_without(q[each, own], a)
        singular = shrink <= (1e-12 + 64 * EPS / pivot[share] if self.prior is None else 0.0)
        shrink = np.where(singular, 1.0 if self.prior is None else EPS, shrink)
        nu, left = self.nu[share] - w, log_det[share] + np.log(shrink)
        mine = own_distance_without(q[each, own], step, shrink)
        divisor, dof = self.read(rule, self.kappa, self.nu)
        divisor_own, dof_own = self.read(rule, np.where(alone, 1.0, kappa), nu)
        if between is not None:  # the distances to all means under the shared Ψ without the row
            cross = (q + q[each, own][:, None] - between[own]) / 2  # v·u = (v² + u² − (v−u)²)/2
            moved = distance_without(q, cross, a[:, None], shrink[:, None])
            rest, dof_rest = self.read(rule, self.kappa, nu[:, None])  # (n, K)
        if between is None or singular.any():
            scores = elliptical(q * divisor, log_det - D * np.log(divisor), dof, D)
        if between is not None:
            others = elliptical(moved * rest, left[:, None] - D * np.log(rest), dof_rest, D)
            scores = np.where(singular[:, None], scores, others) if singular.any() else others
        scores[each, own] = elliptical(mine * divisor_own, left - D * np.log(divisor_own), dof_own, D)
        if self.prior is None:
            scores[each[alone | singular], own[alone | singular]] = -np.inf
        return scores

    def draw(self, rng: np.random.Generator, times: int = 1) -> NormalDensity:
        """Draw Σ from the inverse Wishart by Bartlett's decomposition, then μ given Σ; all draws at once.

        With root·rootᵀ = Ψ⁻¹ and B of Bartlett's decomposition, W = root·B whitens a draw of Σ: W·Wᵀ = Σ⁻¹. Then
        W⁻ᵀz = root⁻ᵀ·B⁻ᵀz has covariance Σ.
        """
        (K, D), S = self.mean.shape, len(self.psi)
        root = whiten(self.psi).whitener
        bartlett = _strictly_lower(rng.standard_normal((times, S, D * (D - 1) // 2)), D)
        each = np.arange(D)
        lost = np.multiply.outer(np.broadcast_to(self.learnt, S), each)
        diagonal = np.sqrt(rng.chisquare(self.nu[:, None] - lost, (times, S, D)))
        bartlett[:, :, each, each] = diagonal
        whitener = root @ bartlett
        log_det = -2 * (np.log(np.abs(root[:, each, each])).sum(axis=1) + np.log(diagonal).sum(axis=2))
        noise = _solved_transposed(bartlett, rng.standard_normal((times, K, D)))
        noise = (noise.transpose(1, 0, 2) @ np.linalg.inv(root)).transpose(1, 0, 2)  # one product for each class
        mean = self.mean + noise / np.sqrt(self.kappa)[:, None]
        shape = (times, K, D, D)
        every = np.ascontiguousarray(np.broadcast_to(whitener, shape)).reshape(-1, D, D)
        log_dets = np.ascontiguousarray(np.broadcast_to(log_det, (times, K))).ravel()
        unknown, ones = np.zeros((0, D, D)), np.ones(times * K)
        return NormalDensity(self.stats.origin, mean.reshape(-1, D), unknown, ones, None, every, log_dets)

    def corrected(self) -> MatrixPosterior:
        """Return the posterior for a target that was derived from the same sums; see `Estimated`."""
        prior, n, D = _given(self.prior), self.stats.weight, self.mean.shape[1]
        found = Estimated.of(n, _pooled(np.maximum(n - 1, 0), self.tied), np.maximum(n - 1, 0).sum(), prior.strength)
        if found is None:
            return self
        target = prior.strength * prior.matrix
        matrix = self.psi + found.more * target
        root = whiten(matrix).whitener
        learnt = 1 - (1 + found.more) * np.einsum("kij,il,klj->k", root, target, root, optimize=True) / D
        psi = matrix * (found.dof / found.rows)[:, None, None]
        return replace(self, nu=found.dof + D - 1, psi=psi, learnt=np.clip(learnt, 0.0, 1.0))

    def for_scores(self) -> MatrixPosterior:
        """Return the corrected posterior from which densities are drawn, so that intervals of scores cover.

        With S ~ Wishart(Σ, d), the squared distance u'Σ⁻¹u is u'S⁻¹u·χ² of d − D + 1 degrees of freedom, and |Σ|/|S| is
        what an inverse Wishart with ν = d draws. The first needs ν = d − D + 1, which tied scores get: their
        determinants cancel. Other scores have both, and ν is the mean. `corrected` has ν = d + D − 1, with which each
        variance by itself has d degrees of freedom.

        Each column that Bartlett's decomposition has dealt with costs the next ones a degree of freedom. With a target
        T it costs the share of Ψ = S + T that the rows determine, tr(S·Ψ⁻¹)/D: the effective degrees of freedom of
        ridge regression. After few rows T determines most of Ψ, and draws with ν close to D would be far too wide.
        """
        lost = (self.mean.shape[1] - 1) * np.asarray(self.learnt)
        drawn = self.nu - (self.mean.shape[1] - 1) - (lost if self.tied else lost / 2)
        return replace(self, nu=np.maximum(drawn, lost + 0.5))

    def separation(self) -> float:
        """Return the largest squared distance of a mean from the origin, in variances."""
        with np.errstate(divide="ignore", invalid="ignore"):
            variance = np.diagonal(self.psi, axis1=1, axis2=2) / self.nu[:, None]
            return float((self.mean**2 / variance).max(initial=0.0))

    # -- parameters ------------------------------------------------------------------------------------------------
    def log_evidence(self) -> Array:
        """Return the log evidence, shape (K,) or, if tied, (1,): posterior normaliser over prior normaliser."""
        prior, D, n = _given(self.prior), self.mean.shape[1], _pooled(self.stats.weight, self.tied)
        nu0 = prior.strength + D - 1 + prior.dof
        before = whiten((prior.strength * prior.matrix)[None]).log_det
        means = _pooled(np.log(prior.kappa) - np.log(self.kappa), self.tied)
        gammas = multigammaln_each(self.nu / 2, D) - multigammaln(nu0 / 2, D)
        return np.asarray((D * (means - n * np.log(np.pi)) + nu0 * before - self.nu * self.root().log_det) / 2 + gammas)

    def marginals(self) -> dict[str, Marginal]:
        """Return Student marginals of means, inverse-gamma ones of variances, and draws of covariances."""
        from scipy import stats as sps  # lazy: scipy.stats is slow to import

        K, D = self.mean.shape
        if not np.isfinite(self.psi).all():
            raise InputError("the squares of the values exceed the range of numbers. Give the columns a larger unit.")
        dof = self.nu - D + 1
        variance = np.diagonal(self.psi, axis1=1, axis2=2)
        scale = np.sqrt(variance / (self.kappa * dof)[:, None])
        spread = np.broadcast_to(dof[:, None], scale.shape)
        mean = self.stats.origin + self.mean
        shape = (dof / 2)[:, None]
        out = {
            "mean": Marginal.exact(sps.t(df=spread, loc=mean, scale=scale), mean),
            "variance": Marginal.exact(sps.invgamma(shape, scale=variance / 2), variance / (2 * shape + 2)),
        }
        draws = int(min(COVARIANCE_DRAWS, MOST_DRAWN / (K * D * D)))
        if draws >= COVARIANCE_DRAWS / 10:  # with fewer draws, quantiles would be too coarse
            rng = np.random.default_rng(0)
            sampled = [
                np.reshape(sps.invwishart(nu, psi).rvs(draws, rng), (draws, D, D)) for nu, psi in zip(self.nu, self.psi)
            ]
            mode = self.psi / (self.nu + D + 1)[:, None, None]
            excess = (self.nu - D - 1)[:, None, None]
            mean_of = np.where(excess > 0, self.psi / np.where(excess > 0, excess, 1.0), np.inf)
            out["covariance"] = Marginal.sampled(np.stack(sampled, axis=1), mode, mean_of)
        return out


def _squared_distances(rows: Array, means: Array, precision: Array) -> Array:
    """Return Σ_d p_d·(x_d − m_d)² of rows (n, D) and means (K, D), shape (n, K)."""
    scaled = means * precision
    found = (rows * rows @ precision)[:, None] - 2 * rows @ scaled.T + np.einsum("kd,kd->k", means, scaled)
    return np.asarray(np.maximum(found, 0.0))


# -- one row removed: Ψ' = Ψ − a·uuᵀ, u = x − m, a = wκ/(κ−w) ----------------------------------------------------------
def determinant_without(distance: Array, a: Array) -> Array:
    """Return |Ψ'|/|Ψ| = 1 − a·uᵀΨ⁻¹u (determinant lemma)."""
    return 1 - a * distance


def distance_without(distance: Array, cross: Array, a: Array, shrink: Array) -> Array:
    """Return vᵀΨ'⁻¹v from vᵀΨ⁻¹v and the cross product vᵀΨ⁻¹u (Sherman–Morrison)."""
    return np.asarray(distance + a * cross**2 / shrink)


def own_distance_without(distance: Array, step: Array, shrink: Array) -> Array:
    """Return (x−m')ᵀΨ'⁻¹(x−m') with the mean m' of the other rows: x − m' = step·u, step = κ/(κ−w)."""
    return step**2 * distance / shrink


def _strictly_lower(numbers: Array, D: int) -> Array:
    """Return matrices (…, D, D) with these numbers (…, D(D − 1)/2) below the diagonal, row by row, and 0 elsewhere."""
    below = np.tri(D, k=-1)
    if D < 2:
        return np.zeros((*numbers.shape[:-1], D, D))
    place = np.where(below > 0, np.cumsum(below).reshape(D, D) - 1, 0).astype(np.intp)
    matrices = np.take(numbers, place.ravel(), axis=-1).reshape(*numbers.shape[:-1], D, D)
    matrices *= below  # faster than writing row by row
    return matrices


def _solved_transposed(lower: Array, right: Array) -> Array:
    """Solve Lᵀx = r for many lower triangular L (…, D, D) and right sides r (…, D), by back substitution."""
    x = np.array(np.broadcast_to(right, np.broadcast_shapes(right.shape, lower.shape[:-1])))
    for d in range(x.shape[-1] - 1, -1, -1):
        pivot = x[..., d : d + 1]  # a view: one number of each right side
        pivot /= lower[..., d, d : d + 1]
        x[..., :d] -= lower[..., d, :d] * pivot
    return x


def multigammaln_each(a: Array, D: int) -> Array:
    """Return the multivariate log gamma function of each entry."""
    return np.array([multigammaln(each, D) for each in a])


def _pooled(values: Array, tied: bool) -> Array:
    return values.sum(axis=0, keepdims=True) if tied else values


def _given(prior: Prior | None) -> Prior:
    assert prior is not None
    return prior


@dataclass(frozen=True, eq=False)
class CellPosterior:
    """κ and m of every class and feature, ν and ψ of every variance; without a prior counts, means and scatter."""

    stats: DiagonalStats
    prior: Prior | None
    tied: bool  # classes share their variances
    pooled: bool  # features share their variances: spherical
    kappa: Array  # (K, D), or (K, 1) if no value is missing
    mean: Array  # (K, D) from the origin
    nu: Array  # (K or 1, D or 1)
    psi: Array  # (K or 1, D or 1)

    @classmethod
    def of(
        cls, stats: DiagonalStats, scatter: tuple[Array, Array], prior: Prior | None, tied: bool, pooled: bool
    ) -> CellPosterior:
        """Update the prior by the sums: ψ = ψ0 + Σ(x−x̄)² + κ0n/(κ0+n)·(x̄−m0)², pooled.

        `scatter` is `stats.scatter()`.
        """
        n, axes, (mean, psi) = stats.weight, (0,) * tied + (1,) * pooled, scatter
        nu = n.sum(axis=axes, keepdims=True)
        complete = bool((n == n[:, :1]).all()) and n.shape[1] > 0
        if prior is None:
            require_rows(n, classes_of(stats.labels), "Gaussian")
            psi = psi.sum(axis=axes, keepdims=True)
            _refuse_constant(psi, stats, tied)
        else:
            kappa = prior.kappa + n
            psi = psi + prior.kappa * n / kappa * (mean - prior.mean) ** 2
            mean = (stats.first + prior.kappa * prior.mean) / kappa
            pseudo = prior.variances.sum(keepdims=True) if pooled else prior.variances
            nu = nu + prior.strength * (n.shape[1] if pooled else 1) + prior.dof
            n, psi = kappa, psi.sum(axis=axes, keepdims=True) + prior.strength * pseudo
        if complete:  # no value is missing: broadcasting is cheaper
            n, nu = n[:, :1], nu[:, :1]
        return cls(stats, prior, tied, pooled, n, mean, nu, psi)

    def read(self, rule: Rule, kappa: Array, nu: Array) -> tuple[Array, Array | None]:
        """Return the divisor of ψ, and the degrees of freedom of a Student density."""
        if rule == "predictive":
            return nu * kappa / (kappa + 1), nu
        K, D = self.mean.shape
        means = (K if self.tied else 1) * (D if self.pooled else 1)
        if rule == "mean":
            return nu - _given(self.prior).dof, None  # strength + n
        return nu if rule == "ml" else nu + 2 + means, None

    def density(self, rule: Rule) -> Density:
        """Return normal densities, or under rule "predictive" Student densities."""
        divisor, dof = self.read(rule, self.kappa, self.nu)
        variance = np.broadcast_to(self.psi / divisor, self.mean.shape)
        if dof is None:
            return DiagonalNormal(self.stats.origin, self.mean, variance, self.tied)
        K, D = self.mean.shape
        if self.pooled:
            return SphericalStudent(self.stats.origin, self.mean, variance, np.broadcast_to(dof[:, 0], K))
        return DiagonalStudent(self.stats.origin, self.mean, variance, np.broadcast_to(dof, (K, D)))

    def leave_one_out(self, X: Matrix, members: Members, rule: Rule) -> Array:
        """Return the scores, shape (n, K); sparse rows are made dense block by block, since every zero is a value."""
        own, weight = members.own_codes(), members.row_weights()
        separate = not self.tied and not self.pooled and self.kappa.shape[1] == 1 and rule != "predictive"
        if separate and isinstance(X, np.ndarray):
            complete = _leave_complete(self, X, own, weight, rule)
            if complete is not None:
                return complete
        scores = self.density(rule).log_density(X)
        block = max(16, BLOCK_CELLS // max(1, X.shape[1]))
        for at in range(0, X.shape[0], block):
            rows = slice(at, at + block)
            Z = X[rows] if isinstance(X, np.ndarray) else X[rows].toarray()
            _leave(self, Z - self.stats.origin, own[rows], weight[rows, None], rule, scores[rows])
        return scores

    def left_out_own(self, X: Array, members: Members, rule: Rule) -> Array:
        """Return the score of each value in the class of its row, without the row, shape (n, D); 0 where missing."""
        own, weight = members.own_codes(), members.row_weights()[:, None]
        left = _Left.of(self, X - self.stats.origin, own, own, weight)
        divisor, dof = self.read(rule, left.kappa, left.nu)
        parts = elliptical(left.squares / (left.psi / divisor), np.log(left.psi / divisor), dof, 1)
        parts = np.where(left.lost, -np.inf, parts)
        return np.asarray(parts if left.mask is None else np.where(left.mask, parts, 0.0))

    def draw(self, rng: np.random.Generator, times: int = 1) -> DiagonalNormal:
        """Draw variances from their inverse-gamma posteriors, then means given the variances."""
        shape = (times, *self.mean.shape)
        variance = self.psi / 2 / rng.gamma(np.broadcast_to(self.nu / 2, (times, *self.psi.shape)))
        variance = np.broadcast_to(variance, shape)
        mean = self.mean + rng.standard_normal(shape) * np.sqrt(variance / self.kappa)
        D = shape[-1]
        return DiagonalNormal(self.stats.origin, mean.reshape(-1, D), variance.reshape(-1, D), self.tied and times == 1)

    def corrected(self) -> CellPosterior:
        """Return the posterior for a target that was derived from the same sums; see `Estimated`."""
        prior, n, D = _given(self.prior), self.stats.weight, self.mean.shape[1]
        rest = np.maximum(n - 1, 0)
        if self.pooled:
            n, rest = n.sum(axis=1, keepdims=True), rest.sum(axis=1, keepdims=True)
        strength = prior.strength * (D if self.pooled else 1)
        own = rest.sum(axis=0, keepdims=True) if self.tied else rest
        found = Estimated.of(n, own, rest.sum(axis=0), strength)
        if found is None:
            return self
        pseudo = prior.strength * (prior.variances.sum(keepdims=True) if self.pooled else prior.variances)
        return replace(self, nu=found.dof, psi=(self.psi + found.more * pseudo) * (found.dof / found.rows))

    def for_scores(self) -> CellPosterior:
        """Return the corrected posterior from which densities are drawn: this one, whose features are independent."""
        return self

    def separation(self) -> float:
        """Return the largest squared distance of a mean from the origin, in variances."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return float((self.mean**2 / (self.psi / self.nu)).max(initial=0.0))

    # -- parameters ------------------------------------------------------------------------------------------------
    def log_evidence(self) -> Array:
        """Return the log evidence, shape (K,) or, if tied, (1,): posterior normaliser over prior normaliser."""
        prior = _given(self.prior)
        axes = (0,) * self.tied + (1,) * self.pooled
        n = self.stats.weight.sum(axis=axes, keepdims=True)
        nu0 = prior.strength * (self.mean.shape[1] if self.pooled else 1) + prior.dof
        variances = prior.variances.sum(keepdims=True) if self.pooled else prior.variances
        kappa = np.broadcast_to(self.kappa, self.mean.shape)
        means = (np.log(prior.kappa) - np.log(kappa)).sum(axis=axes, keepdims=True)
        scales = nu0 * np.log(prior.strength * variances) - self.nu * np.log(self.psi)
        gammas = gammaln(self.nu / 2) - gammaln(nu0 / 2)
        return np.asarray(((means + scales - n * np.log(np.pi)) / 2 + gammas).sum(axis=1))

    def marginals(self) -> dict[str, Marginal]:
        """Return Student marginals of means (K, D), and inverse-gamma ones of the variances."""
        from scipy import stats as sps  # lazy: scipy.stats is slow to import

        mean = self.stats.origin + self.mean
        dof = np.broadcast_to(self.nu, self.mean.shape)
        scale = np.sqrt(self.psi / (self.kappa * self.nu))
        shape = np.broadcast_to(self.nu / 2, self.psi.shape)
        return {
            "mean": Marginal.exact(sps.t(df=dof, loc=mean, scale=np.broadcast_to(scale, mean.shape)), mean),
            "variance": Marginal.exact(sps.invgamma(shape, scale=self.psi / 2), self.psi / 2 / (shape + 1)),
        }


def _refuse_constant(psi: Array, stats: DiagonalStats, tied: bool) -> None:
    """Refuse constant columns: their maximum-likelihood density is infinite."""
    bad = np.argwhere(~(psi > 0))
    if not len(bad):
        return
    k = bad[0][0]
    columns = (
        bad[bad[:, 0] == k, 1].tolist() if psi.shape[1] == stats.first.shape[1] else [*range(stats.first.shape[1])]
    )
    label = None if tied else classes_of(stats.labels).names[k]
    where = "the classes together" if tied else f"class {label!r}"
    raise SingularError(
        f"{singular_reasons(columns, [])[0]} in {where}, so rule 'ml' has no variance there.",
        columns=columns,
        label=label,
        remedy=f"Use rule 'mean' (its prior keeps it regular){'' if tied else ', a tied structure'}, or drop columns.",
    )


# -- leave-one-out of diagonal and spherical Gaussians: the row is subtracted from each variance -----------------------
# κ' = κ − w        x − m' = (κ/κ')·u, u = x − m        ψ' = ψ − wκ/κ'·u², summed over the features that share ψ
def _leave_complete(posterior: CellPosterior, X: Array, own: Array, w: Array, rule: Rule) -> Array | None:
    """Score rows without missing values by normals with a variance per class and feature, in one pass.

    Return None if a value is missing. With v = u²/ψ, ψ'/ψ = f = 1 − wκ/κ'·v, and the
    squared distance is (κ/κ')²·Σ v/f in units of ψ'.
    """
    D = X.shape[1]
    kappa, least = posterior.kappa[own, 0], ALONE if posterior.prior is None else EPS
    left = kappa - w
    alone = left <= ALONE * kappa  # no other row has a value here
    step = np.where(alone, 0.0, kappa / np.where(alone, 1.0, left))
    density = posterior.density(rule)
    known = posterior.mean, density.half, density.log_norm, 1 / posterior.psi  # type: ignore[attr-defined]
    found = kernels.diagonal_left_out(X, own, posterior.stats.origin, *known, w * step, least)
    if found is None:
        return None
    scores, distance, log_left, smallest = found
    nu = posterior.nu[own, 0] - w
    divisor, _ = posterior.read(rule, left, np.where(nu > 0, nu, 1.0) if posterior.prior is None else nu)
    log_psi = np.log(posterior.psi).sum(axis=1)
    mine = elliptical(distance * step**2 * divisor, log_psi[own] + log_left - D * np.log(divisor), None, D)
    undefined = posterior.prior is None and (alone | (smallest <= least))
    scores[np.arange(len(own)), own] = np.where(undefined, -np.inf, mine)
    return scores


class _Left(NamedTuple):
    """The posterior of each row's own class without the row."""

    squares: Array  # (n, D) squared residuals of the row; 0 where missing
    kappa: Array  # (n, D or 1)
    nu: Array  # (n, D or 1)
    psi: Array  # (n, D or 1)
    mask: Array | None  # (n, D) whether a value is there; None if all are
    lost: Array  # (n, D or 1) whether no other row determines the density: it has none without a prior

    @classmethod
    def of(cls, posterior: CellPosterior, Z: Array, own: Array, share: Array, w: Array) -> _Left:
        """Subtract rows, which are given from the origin; `share` is the class whose variance they share."""
        seen = ~np.isnan(Z)
        mask = None if seen.all() else seen
        weight = w if mask is None else w * seen
        kappa, psi = posterior.kappa[own], posterior.psi[share]
        left = kappa - weight
        alone = left <= ALONE * kappa  # no other row has a value here
        step = np.where(alone, 0.0, kappa / np.where(alone, 1.0, left))
        u = Z - posterior.mean[own]
        if mask is not None:
            u[~seen] = 0.0
        squares = u * u
        removed, gone = weight * step * squares, weight
        if posterior.pooled:
            removed = removed.sum(axis=1, keepdims=True)
            gone = np.broadcast_to(weight, Z.shape).sum(axis=1, keepdims=True)
        rest, nu = psi - removed, posterior.nu[share] - gone
        lost = np.zeros((1, 1), dtype=bool)
        if posterior.prior is None:
            constant = (rest <= ALONE * psi) & (gone > 0)
            lost = alone | constant
            rest[constant], left[alone], nu = 1.0, 1.0, np.where(nu > 0, nu, 1.0)
        else:
            np.maximum(rest, EPS * psi, out=rest)  # the prior keeps ψ positive, also after rounding
        return cls(squares * step**2, left, nu, rest, mask, lost)


def _leave(posterior: CellPosterior, Z: Array, own: Array, w: Array, rule: Rule, scores: Array) -> None:
    """Overwrite the scores that change: of the row's own class, and of all classes if variances are tied."""
    left = _Left.of(posterior, Z, own, np.zeros_like(own) if posterior.tied else own, w)
    undefined = np.broadcast_to(left.lost.any(axis=1), own.shape)
    if posterior.tied:
        kept = scores[undefined]
        _rescore_all(posterior, Z, left.psi, left.nu, left.mask, rule, scores)
        scores[undefined] = kept
    divisor, dof = posterior.read(rule, left.kappa, left.nu)
    mine = axis_scores(left.squares, left.psi / divisor, dof, left.mask, posterior.pooled)
    scores[np.arange(len(own)), own] = np.where(undefined, -np.inf, mine)


def _rescore_all(
    posterior: CellPosterior, Z: Array, psi: Array, nu: Array, seen: Array | None, rule: Rule, scores: Array
) -> None:
    """Score every class, with the ψ of each row."""
    if rule == "predictive":
        for j, mean in enumerate(posterior.mean):
            divisor, dof = posterior.read(rule, posterior.kappa[j], nu)
            scores[:, j] = axis_scores((Z - mean) ** 2, psi / divisor, dof, seen, posterior.pooled)
        return
    divisor, _ = posterior.read(rule, posterior.kappa[0], nu)
    precision = np.broadcast_to(divisor / psi, Z.shape)
    if seen is not None:
        Z, precision = np.where(seen, Z, 0.0), np.where(seen, precision, 0.0)
    norm = axis_scores(np.zeros_like(Z), psi / divisor, None, seen, posterior.pooled)
    for j, mean in enumerate(posterior.mean):
        off = Z - mean
        off *= off
        scores[:, j] = norm - 0.5 * np.einsum("nd,nd->n", off, precision)
