"""The Gaussian family: hyper-parameters, the posterior that a structure reads from the sums, choice of a structure."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from typing import Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from deciban import kernels
from deciban.errors import (
    DecibanError,
    HyperparameterError,
    MissingValueError,
    NotAvailableError,
    PrecisionWarning,
    column_error,
)
from deciban.families import limits
from deciban.families.abilities import (
    HasChoices,
    HasDraws,
    HasEvidence,
    HasFrame,
    HasLeftOutFeatures,
    HasLogPrior,
    HasPosterior,
    SharesParameters,
)
from deciban.families.gaussian.densities import DiagonalNormal, NormalDensity, known_density, whiten
from deciban.families.gaussian.posteriors import CellPosterior, MatrixPosterior, Prior
from deciban.families.gaussian.sums import (
    EPS,
    LARGEST,
    DiagonalStats,
    Frame,
    GaussianStats,
    collect_diagonal,
    collect_full,
    far_rows,
    pooled_mean,
    pooled_target,
)
from deciban.families.protocol import Density, Family, Input, Posterior, Rule, score_by_each, sums_without_each
from deciban.read.arrays import Matrix, find_bad, numbers, refuse, refuse_infinite
from deciban.read.tables import column_name, dense_numbers
from deciban.statistics import Array, Members

Structure: TypeAlias = Literal["full", "diagonal", "spherical", "tied", "tied diagonal", "tied spherical", "auto"]
STRUCTURES: tuple[Structure, ...] = (  # simplest first
    "tied spherical",
    "spherical",
    "tied diagonal",
    "diagonal",
    "tied",
    "full",
    "auto",
)
Target: TypeAlias = Literal["diagonal", "spherical", "tied"]
TARGETS: tuple[Target, ...] = get_args(Target)
AUTO_FEATURES = 200  # with more features, only diagonal structures are candidates: products of columns cost too much
MOST_WORK = 3e8  # multiplications per candidate; with more rows, an even selection of them is left out
MOST_KEPT = 2**22  # numbers in the sums without each far row that are kept for all candidates
ROWS_PER_FEATURE = 2  # of every class, without which a class has no covariance of its own that is not shrunk
ROWS_OF_TARGET = 8  # for each feature, beyond one of each class; with fewer, the tied covariance is no target
GAIN = 1.0  # nats, over all rows: the least gain for which a structure with more parameters is preferred
LOST_DIGITS = 1e-6  # relative error of a variance above which a warning is given
AnyGaussianStats: TypeAlias = GaussianStats | DiagonalStats
_NO_PRODUCTS = (
    "structure={!r} needs products of columns, which a diagonal fit does not keep. "
    "Fit with keep='full', which keeps the sums of every structure."
)


@dataclass(frozen=True, eq=False, repr=False)
class Gaussian(
    Family[AnyGaussianStats],
    HasEvidence,
    HasPosterior,
    HasDraws,
    HasLogPrior,
    HasChoices,
    HasFrame,
    HasLeftOutFeatures,
    SharesParameters,
):
    """Normal distribution of real numbers; structures differ in the parameters that covariances share.

    The prior is worth `strength` rows with the `target` covariance, and `kappa` rows at the mean of all rows. Its mean
    and scale are derived from the sums, unless they are given.

    Parameters
    ----------
    structure : {"full", "diagonal", "spherical", "tied", "tied diagonal", "tied spherical", "auto"}, default="full"
        Form of the covariance, per class or tied (the same for all classes). "auto" chooses the structure and its
        strength by the leave-one-out log loss of the labels.
    strength : float, default=1.0
        Number of pseudo-rows with the target covariance. Some tens of them, with target "tied" or "spherical",
        shrink the covariances.
    target : {"diagonal", "spherical", "tied"}, default="diagonal"
        Target covariance: the within-class variances, their average, or the within-class covariance.
    kappa : float, default=0.01
        Number of pseudo-rows at the prior mean.
    keep : {"structure", "full"}, default="structure"
        Sums to keep: those that the structure needs, or those from which every structure can be estimated.
    mean : array-like of shape (n_features,), optional
        Prior mean. If None, the mean of all rows.
    scale : array-like of shape (n_features,) or (n_features, n_features), optional
        Target covariance, or its diagonal. If None, it is computed by `target` from all rows.
    dof : float, default=0.0
        Further degrees of freedom of the prior of a covariance, beyond those of `strength` rows. Models from older
        files, where it is missing, have 2.
    origin : array-like of shape (n_features,), optional
        Point about which sums are collected. If None, the medians of the first rows, once there are 32.
    reach : array-like of shape (n_features,), optional
        Distance from the origin beyond which the sums of a row are kept without rounding. If None, 2¹⁰ times the
        median distance of the first rows; no limit if an origin is given.
    limit : array-like of shape (n_features,), optional
        Numbers of larger absolute value count as missing. With sums of products, a row that has one is not learnt. If
        None, there is no limit; a default fit sets one.

    Examples
    --------
    >>> Gaussian("tied", strength=10)
    Gaussian('tied', strength=10)
    >>> heights = Gaussian().fit([[171.0], [180.0], [175.0], [178.0]])
    >>> heights.density("ml").log_density(np.array([[175.0]])).round(3)
    array([[-2.184]])
    >>> heights.posterior()["mean"]
    Marginal(mean 176, sd 3.387)
    """

    shapes: ClassVar = {
        "mean": "D | 1 real",
        "scale": "D | D D | 1 real",
        "origin": "D real",
        "reach": "D positive",
        "limit": "D positive",
    }

    structure: Structure = "full"
    _: KW_ONLY
    strength: float = 1.0
    target: Target = "diagonal"
    kappa: float = 0.01
    keep: Literal["structure", "full"] = "structure"
    mean: Array | None = None  # (D,) m0
    scale: Array | None = field(default=None, metadata={"follows": "target"})  # (D,) or (D, D)
    dof: float = field(default=0.0, metadata={"absent": 2.0})  # of the prior: ν0 = strength + D − 1 + dof
    # sums about different origins can be added, so that families that differ only in these are equal
    origin: Array | None = field(default=None, compare=False)  # (D,)
    reach: Array | None = field(default=None, compare=False)  # (D,)
    limit: Array | None = None  # (D,)

    @property
    def accepts(self) -> frozenset[str]:
        full = self._matrix or self.keep == "full"
        return frozenset({"negative"}) if full else frozenset({"gaps", "negative", "sparse"})

    def __post_init__(self) -> None:
        for name, known in (("structure", STRUCTURES), ("target", TARGETS), ("keep", ("structure", "full"))):
            if getattr(self, name) not in known:
                raise HyperparameterError(f"{name}={getattr(self, name)!r} is not one of {', '.join(known)}.")
        if not (self.strength > 0 and self.kappa > 0):
            raise HyperparameterError(f"Gaussian(strength={self.strength}, kappa={self.kappa}): both must be > 0.")
        if not self.dof >= 0:
            raise HyperparameterError(f"Gaussian(dof={self.dof}): must be ≥ 0.")
        for name in ("mean", "scale", "origin", "reach"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, np.atleast_1d(np.asarray(getattr(self, name), dtype=float)))
        if self.limit is not None:
            object.__setattr__(self, "limit", limits.checked(self.limit, "limit"))

    def __repr__(self) -> str:
        """Name the hyper-parameters that differ from their defaults, without arrays."""
        plain = [f for f in fields(self) if f.name not in ("structure", *self.shapes)]
        shown = [f"{f.name}={getattr(self, f.name)!r}" for f in plain if getattr(self, f.name) != f.default]
        return f"Gaussian({', '.join([repr(self.structure), *shown])})"

    @property
    def _tied(self) -> bool:
        return self.structure.startswith("tied")

    @property
    def _matrix(self) -> bool:
        return self.structure in ("full", "tied")

    @property
    def _complete(self) -> bool:
        """Whether only rows without missing values can be learnt."""
        return self._matrix or self.keep == "full"

    # -- rows ------------------------------------------------------------------------------------------------------
    def encode(self, X: Input, columns: Sequence[str], stats: AnyGaussianStats | None = None) -> Matrix:
        if self._complete:
            return dense_numbers(X, columns)
        sparse: Matrix = numbers(X, columns)
        if isinstance(sparse, np.ndarray):
            return sparse
        if not sparse.has_canonical_format:
            sparse = sparse.copy()
            sparse.sum_duplicates()
        return sparse

    def check(self, X: Matrix, columns: Sequence[str], learning: bool = False) -> None:
        refuse_infinite(X, columns)
        if learning:
            must = f"the squares of values above {LARGEST:.2g} are too large to sum"
            refuse(X, columns, lambda x: np.abs(x) > LARGEST, must, "Drop the row, or rescale the column.")
        if sp.issparse(X):
            refuse(X, columns, np.isnan, "a sparse table has no missing values", "Use a dense table.")
        missing = find_bad(X, np.isnan) if learning and self._complete else None
        if missing is not None:
            row, column, _ = missing
            remedy = "Fill the gap, drop the row, or use structure='diagonal'."
            why = "; a full Gaussian learns from complete rows only."
            raise column_error(MissingValueError, column_name(columns, column), "is missing (NaN)", remedy, row, why)

    def collect(self, X: Matrix, members: Members) -> AnyGaussianStats:
        if self._complete:
            return collect_full(X, members, Frame.given(self.origin, self.reach), self.limit)
        if self.structure == "auto" and not sp.issparse(X) and X.shape[1] <= AUTO_FEATURES:
            sums = collect_full(X, members, Frame.given(self.origin, self.reach), self.limit)
            if not np.isnan(sums.first).any():  # with missing values, only diagonal structures are candidates
                return sums
        return collect_diagonal(X, members, Frame.given(self.origin, self.reach), self.limit)

    def choose(
        self, stats: AnyGaussianStats, rows: tuple[Matrix, Members] | None = None, rule: Rule = "mean"
    ) -> Gaussian:
        keep: Literal["structure", "full"] = "full" if isinstance(stats, GaussianStats) else self.keep
        frozen = replace(self, keep=keep if not self._complete else self.keep).framed(stats)
        if self.structure != "auto":
            return frozen
        if rows is None:
            raise NotAvailableError(
                "structure='auto' is chosen by leaving rows out, so it needs rows, not sums alone. "
                "Name the structure, or choose again with the rows."
            )
        keep = "full" if isinstance(stats, GaussianStats) else "structure"
        return choose_structure(replace(frozen, keep=keep), stats, *rows, rule)

    def resolve(self, stats: AnyGaussianStats) -> Gaussian:
        if self.mean is not None and self.scale is not None:
            return self
        return replace(
            self,
            mean=pooled_mean(stats) if self.mean is None else self.mean,
            scale=pooled_target(stats, self.target) if self.scale is None else self.scale,
        )

    def framed(self, stats: AnyGaussianStats) -> Gaussian:
        if self.origin is not None or not stats.placed:
            return self
        return replace(self, origin=stats.origin, reach=stats.reach)

    @property
    def shared(self) -> bool:
        return self._tied

    def chosen_by_labels(self) -> list[str]:
        return ["structure"] if self.structure == "auto" else []

    def select(self, features: Array) -> Gaussian:
        at = np.asarray(features)
        scale = self.scale
        if scale is not None:
            scale = scale[np.ix_(at, at)] if scale.ndim == 2 else scale[at]
        arrays = self.mean, self.origin, self.reach, self.limit
        mean, origin, reach, limit = (None if each is None else each[at] for each in arrays)
        return replace(self, mean=mean, scale=scale, origin=origin, reach=reach, limit=limit)

    def keep_choices(self, chosen: Gaussian, with_rows: bool) -> Gaussian:
        if with_rows or self.structure != "auto":
            return self
        return replace(
            self, structure=chosen.structure, strength=chosen.strength, target=chosen.target, keep=chosen.keep
        )

    # -- densities -------------------------------------------------------------------------------------------------
    def _posterior(self, stats: AnyGaussianStats, rule: Rule = "mean") -> MatrixPosterior | CellPosterior:
        """Return κ, m, ν and Ψ under this structure; under rule "ml" without the prior."""
        if self.structure == "auto":
            self.choose(stats)  # raises the error that the structure is chosen by rows
        matrix, tied, prior = self._matrix, self._tied, None
        stats = stats.whole()
        if rule != "ml":
            D = len(stats.origin)
            mean = pooled_mean(stats) if self.mean is None else self.mean
            scale = pooled_target(stats, self.target) if self.scale is None else self.scale
            target = scale if scale.ndim == 2 else np.broadcast_to(scale, D)
            prior = Prior(self.kappa, self.strength, np.broadcast_to(mean - stats.origin, D), target, self.dof)
        if not matrix:
            cells = stats.diagonal()
            return CellPosterior.of(cells, cells.scatter(), prior, tied, "spherical" in self.structure)
        if isinstance(stats, DiagonalStats):
            raise NotAvailableError(_NO_PRODUCTS.format(self.structure))
        return MatrixPosterior.of(stats, stats.scatter(), prior, tied)

    def estimate(self, stats: AnyGaussianStats, rule: Rule) -> Density:
        posterior = self._posterior(stats, rule)
        separation = posterior.separation()
        density = posterior.density(rule)
        density = density if self.limit is None else self._limited(density)
        if EPS * separation > LOST_DIGITS:
            sds = np.sqrt(separation)
            warnings.warn(
                f"a class lies {sds:.2g} standard deviations from the origin of the sums; its variances keep about "
                f"{max(0, int(-np.log10(EPS * sds**2)))} digits. Fit again, which chooses another origin.",
                PrecisionWarning,
                stacklevel=2,
            )
        return density

    def _limited(self, density: Any) -> Density:
        """Return a density to which numbers beyond the limit are missing."""
        limited: Density = density if self.limit is None else replace(density, limit=self.limit)
        return limited

    def leave_one_out(
        self, stats: AnyGaussianStats, X: Matrix, members: Members, rule: Rule, density: Density | None = None
    ) -> Array:
        if self.limit is not None and isinstance(X, np.ndarray):
            X, learnt, every = *self.learnt(stats, X, members), X
            if len(X) < len(every):  # the other rows are not in the sums
                near = limits.rows_within(every, self.limit)
                scores = (self.estimate(stats, rule) if density is None else density).log_density(every)
                scores[near] = self.leave_one_out(stats, X, learnt, rule)
                return scores
        far = far_rows(X, stats.frame)
        without = sums_without_each(self, stats, X[far], members.take(far)) if len(far) else ()
        return self.score_left_out(stats.whole(), far, without, X, members, rule)

    def learnt(self, stats: AnyGaussianStats, X: Array, members: Members) -> tuple[Array, Members]:
        """Return the rows as they are summed: absurd numbers are missing, or rows with such a number are left out.

        Parameters
        ----------
        stats : GaussianStats or DiagonalStats
            Sums, with or without products.
        X : ndarray of shape (n_samples, n_features)
            Rows.
        members : Members
            The class and the weight of each row.

        Returns
        -------
        X : ndarray
            The rows that are summed.
        members : Members
            Their members.
        """
        if isinstance(stats, DiagonalStats):
            return limits.masked(X, self.limit), members
        return limits.taken(X, members, limits.rows_within(X, self.limit))

    def separate(self, stats: AnyGaussianStats) -> bool:
        apart = self.structure == "diagonal" and self.target == "diagonal" and isinstance(stats, DiagonalStats)
        return apart and stats.placed and stats.all_near

    def left_out_features(self, stats: AnyGaussianStats, X: Matrix, members: Members, rule: Rule) -> Array:
        if self.structure != "diagonal" or sp.issparse(X):
            raise NotAvailableError("features are independent of each other under structure='diagonal' only.")
        X = limits.masked(np.asarray(X), self.limit)
        whole, own = stats.whole(), members.own_codes()
        posterior = self._posterior(whole, rule)
        scores = posterior.density(rule).parts(X)  # type: ignore[attr-defined]
        scores[np.arange(len(own)), own] = posterior.left_out_own(X, members, rule)  # type: ignore[union-attr]
        far = far_rows(X, stats.frame)
        if not len(far):
            return np.asarray(scores)
        prior = self.resolve(whole)
        without = sums_without_each(self, stats, X[far], members.take(far))
        for at, left in zip(far, without):  # the digits of the other rows would be lost
            try:
                scores[at] = prior.estimate(left, rule).parts(X[at : at + 1])[0]  # type: ignore[attr-defined]
            except DecibanError:  # the class has no density without the row
                scores[at, own[at]] = -np.inf
        return np.asarray(scores)

    def score_left_out(
        self,
        whole: AnyGaussianStats,
        far: Array,
        without: Iterable[AnyGaussianStats],
        X: Matrix,
        members: Members,
        rule: Rule,
    ) -> Array:
        """Score each row without it, as `leave_one_out`, by sums that do not depend on structure and prior.

        For a far row, the rank-one step would lose the digits of the other rows: it is subtracted from the sums.

        Parameters
        ----------
        whole : GaussianStats or DiagonalStats
            Sums of all rows, near and far.
        far : ndarray of int
            Positions of the far rows.
        without : iterable of GaussianStats or DiagonalStats
            The sums without each far row.
        X : ndarray or sparse matrix of shape (n_samples, n_features)
            Rows.
        members : Members
            The class and the weight of each row.
        rule : {"ml", "map", "mean", "predictive"}
            How parameters are obtained from the sums.

        Returns
        -------
        ndarray of shape (n, K)
            Row i holds log f(x_i|k) estimated without row i.
        """
        scores = self._posterior(whole, rule).leave_one_out(X, members, rule)
        if len(far):
            scores[far] = score_by_each(self.resolve(whole), whole, without, X[far], members.take(far), rule)
        return scores

    def log_evidence(self, stats: AnyGaussianStats) -> Array:
        return self._posterior(stats).log_evidence()

    def log_prior(self, density: NormalDensity | DiagonalNormal) -> float:
        if self.scale is None or self.mean is None:
            raise HyperparameterError(
                "the prior of this Gaussian is derived from sums. Call resolve(stats), or give mean and scale."
            )
        D = density.shift.shape[1]
        target = self.scale if self.scale.ndim == 2 else np.broadcast_to(self.scale, D)
        prior = Prior(self.kappa, self.strength, np.broadcast_to(self.mean, D) - density.origin, target, self.dof)
        if isinstance(density, DiagonalNormal):
            return _axis_log_prior(prior, density, self._tied, "spherical" in self.structure)
        return _matrix_log_prior(prior, density)

    def posterior(self, stats: AnyGaussianStats) -> Posterior:
        """Describe the posterior of means and covariances.

        Where the target covariance is derived from the same sums, the degrees of freedom are those of the variance
        estimates: intervals of the mean then have their nominal coverage, also after a few rows.

        Parameters
        ----------
        stats : GaussianStats or DiagonalStats
            Sums of the rows of each class.

        Returns
        -------
        Posterior
            Marginals of "mean", shape (K, D), and "variance"; for full covariances also "covariance", by draws.
        """
        return Posterior(self._corrected(stats).marginals())

    def draw(self, stats: AnyGaussianStats, rng: np.random.Generator, times: int = 1) -> Density:
        found = self._corrected(stats)
        return self._limited((found.for_scores() if self.scale is None else found).draw(rng, times))

    def _corrected(self, stats: AnyGaussianStats) -> MatrixPosterior | CellPosterior:
        """Return the posterior, corrected where its target was derived from the same sums."""
        found = self._posterior(stats)
        return found.corrected() if self.scale is None else found

    @staticmethod
    def of(mean: ArrayLike, covariance: ArrayLike) -> Density:
        """Return the density of a known mean and covariance.

        Parameters
        ----------
        mean : float or array-like of shape (n_features,)
            Means.
        covariance : float or array-like of shape (n_features,) or (n_features, n_features)
            Variances (not standard deviations), or a covariance matrix.

        Returns
        -------
        Density
            The density of a single class.

        Examples
        --------
        >>> male = Gaussian.of(175.33, 52.89)
        >>> np.exp(male.log_density(np.array([[174.0]]))).round(5)
        array([[0.05395]])
        """
        return known_density(mean, covariance)


# -- the log prior, up to a constant -----------------------------------------------------------------------------------
#   Σ ~ inverse-Wishart(ν0, Ψ0)      −½[(ν0 + D + 1) log|Σ| + tr Ψ0Σ⁻¹]        once per covariance
#   μ | Σ ~ Normal(m0, Σ/κ0)         −½[log|Σ| + κ0 (μ−m0)ᵀΣ⁻¹(μ−m0)]          once per mean
# For diagonal and spherical covariances, the inverse-Wishart is an inverse gamma.
def _matrix_log_prior(prior: Prior, density: NormalDensity) -> float:
    """Return the log prior of full or tied covariances; `prior.mean` is relative to the density's origin."""
    D, shared = density.shift.shape[1], len(density.scale)
    root = whiten(density.scale)
    spread = np.sqrt(density.divisor[:shared])
    whitener = root.whitener * spread[:, None, None]  # of Σ = scale/divisor
    log_det = root.log_det - 2 * D * np.log(spread)
    trace = np.einsum("kde,df,kfe->k", whitener, prior.strength * prior.matrix, whitener)
    inner = np.einsum("kd,kde->ke", density.shift - prior.mean, np.broadcast_to(whitener, (density.K, D, D)))
    covariances = ((prior.strength + 2 * D + prior.dof) * log_det + trace).sum()
    means = np.broadcast_to(log_det, density.K).sum() + prior.kappa * (inner**2).sum()
    return float(-0.5 * (covariances + means))


def _axis_log_prior(prior: Prior, density: DiagonalNormal, tied: bool, pooled: bool) -> float:
    """Return the log prior of diagonal or spherical variances; `prior.mean` is relative to the density's origin."""
    D = density.shift.shape[1]
    own = density.variance[: 1 if tied else None, : 1 if pooled else None]  # each variance once
    nu = prior.strength * (D if pooled else 1) + prior.dof
    psi = prior.strength * (prior.variances.sum(keepdims=True) if pooled else prior.variances)
    variances = ((nu + 2) * np.log(own) + psi / own).sum()
    off = (density.shift - prior.mean) ** 2 / density.variance
    return float(-0.5 * (variances + np.log(density.variance).sum() + prior.kappa * off.sum()))


# -- choice of structure and shrinkage, by the exact leave-one-out log loss of the labels ------------------------------
# One set of full sums serves every candidate, and leaving a row out is an identity, so that a candidate costs one pass
# over the rows.
def candidates(family: Gaussian, stats: AnyGaussianStats, rule: Rule) -> list[Gaussian]:
    """Return structures from the fewest to the most parameters, each with the given prior and with stronger ones.

    A target covariance is worth a tenth of the rows of a class, or all of them; for tied structures a hundredth or a
    tenth of all rows. Shrinkage to the tied covariance lies between a quadratic and a linear discriminant; shrinkage to
    the spherical one helps where columns hardly vary. A scale that was given is the only target. The covariance of a
    class is a candidate without shrinkage only if every class has twice as many rows as it has columns.

    Leave-one-out holds the prior of all rows. The tied covariance contains each row in the direction of its own class:
    with few rows for each column, left-out rows are then classified better than new rows.
    """
    own_scale = family.scale is not None
    K, full = stats.weight.shape[0], not isinstance(stats, DiagonalStats)
    each_class = stats.weight.reshape(K, -1).max(axis=1, initial=0.0)
    rows = float(np.max(stats.weight.reshape(K, -1).sum(axis=0), initial=0.0))
    some, many = max(rows / K / 10, 0.1), max(rows / K, 1.0)
    targets: list[Target] = [family.target] if own_scale else ["diagonal", "spherical"]
    shrinkage: list[tuple[Structure, list[float], list[Target]]] = [("tied spherical", [], []), ("spherical", [], [])]
    shrinkage += [("tied diagonal", [], []), ("diagonal", [some, many], targets)]
    if full:
        shrinkage += [("tied", [rows / 100, rows / 10], targets)]
        pooled = not own_scale and rows - K >= ROWS_OF_TARGET * len(stats.origin)
        shrinkage += [("full", [some, many], targets), ("full", [some, many, 4 * many], ["tied"] if pooled else [])]
    found: list[Gaussian] = []
    for structure, strengths, aims in shrinkage:
        tied = structure.startswith("tied")
        if K == 1 and (tied or "tied" in aims):
            continue
        needed = ROWS_PER_FEATURE * (len(stats.origin) if structure == "full" else 1)
        alone = tied or K == 1 or bool((each_class > needed).all())
        each: list[tuple[float, Target]] = [(family.strength, family.target)] if alone or rule == "ml" else []
        each += [(strength, aim) for aim in aims for strength in strengths if rule != "ml" and strength > 0]
        found += [replace(family, structure=structure, strength=s, target=t) for s, t in each]
    return found


def choose_structure(family: Gaussian, stats: AnyGaussianStats, X: Matrix, members: Members, rule: Rule) -> Gaussian:
    """Return the candidate with the least loss."""
    whole = stats.whole()
    if family.limit is not None and isinstance(X, np.ndarray):
        X, members = family.learnt(stats, X, members)
    X, members, weight = _judged(whole, X, members)
    fallback = replace(family, structure="diagonal" if members.K == 1 else "tied diagonal")
    best, least = fallback, np.inf
    if not len(members):
        return best
    far, without = far_rows(X, stats.frame), None
    if len(far) * whole.second.size <= MOST_KEPT:  # otherwise they are computed again for each candidate
        each = sums_without_each(fallback, stats, X[far], members.take(far)) if len(far) else ()
        without = [left.whole() for left in each]
    log_prior = _log_prior_without(whole, members)
    for one in candidates(family, whole, rule):
        try:
            if without is None:
                scores = one.leave_one_out(stats, X, members, rule)
            else:
                scores = one.score_left_out(whole, far, without, X, members, rule)
        except DecibanError:  # singular under rule "ml"
            continue
        loss = _loss(scores, log_prior, members, weight)
        if loss < least - GAIN / weight.sum():
            best, least = one, loss
    return best


def _judged(stats: AnyGaussianStats, X: Matrix, members: Members) -> tuple[Matrix, Members, Array]:
    """Return the rows to leave out, their members, and the weights of their losses.

    A row of weight 3 stands for three rows: one copy is left out, and its loss counts three times. Rows that are alone
    in their class are not used.
    """
    weight = members.row_weights()
    copy = np.minimum(weight, 1.0)
    classes = stats.weight.reshape(members.K, -1).max(axis=1, initial=0.0)
    fit = (weight > 0) & (classes[members.codes] - copy > 1e-9)
    D = X.shape[1]
    work = members.K * (D if isinstance(stats, DiagonalStats) else D * D + 16)
    rows = np.flatnonzero(fit)
    most = max(1000, int(MOST_WORK / max(work, 1)))
    if len(rows) > most:
        rows = rows[np.linspace(0, len(rows) - 1, most).astype(np.intp)]
    if len(rows) < len(weight):
        X = X[rows]
    return X, Members.hard(members.codes[rows], members.classes, copy[rows]), weight[rows]


def _log_prior_without(stats: AnyGaussianStats, members: Members) -> Array:
    """Return the logarithms of the weights of the classes without each row, shape (n, K)."""
    counts = np.tile(stats.weight.reshape(members.K, -1).max(axis=1), (len(members), 1))
    counts[np.arange(len(members)), members.codes] -= members.row_weights()
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(counts))


def _loss(scores: Array, log_prior: Array, members: Members, weight: Array) -> float:
    """Return the log loss of the labels; of a single class −log f."""
    if members.K > 1:
        scores = kernels.log_softmax(scores + log_prior)
    losses = -scores[np.arange(len(members)), members.codes]
    return float(np.average(losses, weights=weight)) if np.isfinite(losses).all() else np.inf
