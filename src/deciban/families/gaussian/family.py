"""The Gaussian family: hyper-parameters, and which reading of the sums each structure is."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp

from deciban.errors import DomainError, HyperparameterError, NotAvailableError, PrecisionWarning, column_error
from deciban.families.gaussian.densities import DiagonalNormal, known_density
from deciban.families.gaussian.posteriors import CellPosterior, MatrixPosterior
from deciban.families.gaussian.prior import Prior, axis_log_prior, matrix_log_prior, pooled_mean, pooled_target
from deciban.families.gaussian.structure import AUTO_FEATURES, choose_structure
from deciban.families.gaussian.sums import DiagonalStats, GaussianStats, collect_diagonal, collect_full
from deciban.families.posterior import Posterior
from deciban.families.protocol import Density, Family, Rule
from deciban.linalg import EPS
from deciban.read.numbers import column_name, dense_numbers, find_bad, numbers, refuse, refuse_infinite
from deciban.read.tables import array_of
from deciban.statistics import Array, Members

Structure: TypeAlias = Literal["full", "diagonal", "spherical", "tied", "tied diagonal", "tied spherical", "auto"]
STRUCTURES = ("tied spherical", "spherical", "tied diagonal", "diagonal", "tied", "full", "auto")  # simplest first
TARGETS = ("diagonal", "spherical", "tied")
LOST_DIGITS = 1e-6  # relative error of a variance worth a warning
_NO_PRODUCTS = (
    "structure={!r} needs products of columns, which a diagonal fit does not keep. "
    "Fit with keep='full', then every structure can be read."
)


@dataclass(frozen=True, eq=False, repr=False)
class Gaussian(Family[Any]):
    """Real numbers about a mean; structures differ in what their covariances share.

    `strength` pseudo-rows of a `target` covariance (the pooled within-class variances, their average, or the pooled
    covariance), and `kappa` pseudo-rows at the pooled mean, are the prior. Its scale is taken from the first rows and
    frozen. A strength of some tens, with target "tied" or "spherical", is shrinkage.

    structure="auto" tries every structure and some strengths, and takes the one whose labels, each row left out in
    turn, have the least log loss.

    >>> Gaussian("tied", strength=10)
    Gaussian('tied', strength=10)
    >>> heights = Gaussian().fit([[171.0], [180.0], [175.0], [178.0]])
    >>> heights.density("ml").log_density(np.array([[175.0]])).round(3)
    array([[-2.184]])
    >>> heights.posterior()["mean"]
    Marginal(mean 176, sd 1.693)
    """

    structure: Structure = "full"
    _: KW_ONLY
    strength: float = 1.0
    target: Literal["diagonal", "spherical", "tied"] = "diagonal"
    kappa: float = 0.01
    keep: Literal["structure", "full"] = "structure"  # "full": sums from which every structure can be read
    mean: Any = None  # (D,) m0; None is the pooled mean, frozen at the first fit
    # (D,) or (D, D); None is the target, frozen at the first fit
    scale: Any = field(default=None, metadata={"follows": "target"})
    origin: Any = None  # (D,) of the sums; None is near the first rows

    def __post_init__(self) -> None:
        for name, known in (("structure", STRUCTURES), ("target", TARGETS), ("keep", ("structure", "full"))):
            if getattr(self, name) not in known:
                raise HyperparameterError(f"{name}={getattr(self, name)!r} is not one of {', '.join(known)}.")
        if not (self.strength > 0 and self.kappa > 0):
            raise HyperparameterError(f"Gaussian(strength={self.strength}, kappa={self.kappa}): both must be > 0.")
        for name in ("mean", "scale", "origin"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, np.atleast_1d(np.asarray(getattr(self, name), dtype=float)))

    def __repr__(self) -> str:
        """What was asked for; the frozen arrays are left out."""
        plain = [f for f in fields(self) if f.name not in ("structure", "mean", "scale", "origin")]
        said = [f"{f.name}={getattr(self, f.name)!r}" for f in plain if getattr(self, f.name) != f.default]
        return f"Gaussian({', '.join([repr(self.structure), *said])})"

    @property
    def _tied(self) -> bool:
        return self.structure.startswith("tied")

    @property
    def _matrix(self) -> bool:
        return self.structure in ("full", "tied")

    @property
    def _complete(self) -> bool:
        """Whether rows must be complete to be learnt."""
        return self._matrix or self.keep == "full"

    # -- rows ------------------------------------------------------------------------------------------------------
    def encode(self, X: Any, columns: Sequence[str], stats: Any = None) -> Any:
        """Floats with NaN where missing; the diagonal structures take sparse tables too."""
        if self._complete:
            return dense_numbers(X, columns)
        X = array_of(X)
        if not sp.issparse(X):
            return dense_numbers(X, columns)
        X = numbers(X, columns)
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        return X

    def check(self, X: Any, columns: Sequence[str], learning: bool = False) -> None:
        """Finite; and complete, where products of columns are summed."""
        refuse_infinite(X, columns)
        if sp.issparse(X):
            refuse(X, columns, np.isnan, "a sparse table has no missing values", "Use a dense one.")
        missing = find_bad(X, np.isnan) if learning and self._complete else None
        if missing is not None:
            row, column, _ = missing
            remedy = "Fill the gap, drop the row, or use structure='diagonal'."
            why = "; a full Gaussian learns from complete rows only."
            raise column_error(DomainError, column_name(columns, column), "is missing", remedy, row, why)

    def collect(self, X: Any, members: Members) -> GaussianStats | DiagonalStats:
        """Sums about the origin: of products too, where the structure needs them or they are to be kept."""
        if self._complete:
            return collect_full(X, members, self.origin)
        if self.structure == "auto" and not sp.issparse(X) and X.shape[1] <= AUTO_FEATURES:
            sums = collect_full(X, members, self.origin)
            if not np.isnan(sums.first).any():  # a gap leaves the diagonal structures to choose from
                return sums
        return collect_diagonal(X, members, self.origin)

    def choose(self, stats: Any, rows: tuple[Any, Members] | None = None, rule: Rule = "mean") -> Gaussian:
        """Freeze the origin, the prior's mean and target, and the structure if it is to be found."""
        kept = "full" if isinstance(stats, GaussianStats) and not self._complete else self.keep
        each = stats if isinstance(stats, DiagonalStats) else stats.diagonal()
        frozen = replace(
            self,
            keep=kept,
            mean=pooled_mean(each) if self.mean is None else self.mean,
            scale=pooled_target(stats, each, self.target) if self.scale is None else self.scale,
            origin=stats.origin if self.origin is None else self.origin,
        )
        if self.structure != "auto":
            return frozen
        if rows is None:
            raise NotAvailableError(
                "structure='auto' is chosen by leaving rows out, so it needs rows, not sums alone. "
                "Name the structure, or choose again with the rows at hand."
            )
        keep: Literal["structure", "full"] = "full" if isinstance(stats, GaussianStats) else "structure"
        return choose_structure(replace(frozen, keep=keep), stats, *rows, rule, own_scale=self.scale is not None)

    @property
    def shared(self) -> bool:
        """Tied classes share their covariance."""
        return self._tied

    def chosen_by_labels(self) -> list[str]:
        """The structure, and with it the strength, where they are to be found."""
        return ["structure"] if self.structure == "auto" else []

    def select(self, features: Array) -> Gaussian:
        """The prior of some features."""
        at = np.asarray(features)
        scale = self.scale
        if scale is not None:
            scale = scale[np.ix_(at, at)] if scale.ndim == 2 else scale[at]
        mean, origin = (None if each is None else each[at] for each in (self.mean, self.origin))
        return replace(self, mean=mean, scale=scale, origin=origin)

    def keep_choices(self, chosen: Gaussian, with_rows: bool) -> Gaussian:
        """Without rows, a structure that was found by leaving rows out stays as found."""
        if with_rows or self.structure != "auto":
            return self
        return replace(
            self, structure=chosen.structure, strength=chosen.strength, target=chosen.target, keep=chosen.keep
        )

    # -- readings of the sums --------------------------------------------------------------------------------------
    def _posterior(self, stats: Any, rule: Rule = "mean") -> MatrixPosterior | CellPosterior:
        """κ, m, ν and Ψ under this structure; under ml the bare sums."""
        if self.structure == "auto":
            self.choose(stats)  # says what is missing
        prior = None if rule == "ml" else self._prior(stats)
        tied = self._tied
        if not self._matrix:
            each = stats if isinstance(stats, DiagonalStats) else stats.diagonal()
            return CellPosterior.of(each, prior, tied, "spherical" in self.structure)
        if isinstance(stats, DiagonalStats):
            raise NotAvailableError(_NO_PRODUCTS.format(self.structure))
        return MatrixPosterior.of(stats, prior, tied)

    def _prior(self, stats: Any) -> Prior:
        D = len(stats.origin)
        mean = pooled_mean(stats.diagonal()) if self.mean is None else self.mean
        scale = pooled_target(stats, stats.diagonal(), self.target) if self.scale is None else self.scale
        target = scale if scale.ndim == 2 else np.broadcast_to(scale, D)
        return Prior(self.kappa, self.strength, np.broadcast_to(mean - stats.origin, D), target)

    def estimate(self, stats: Any, rule: Rule) -> Density:
        """Means and covariances, or the Student densities that integrate them out."""
        posterior = self._posterior(stats, rule)
        density = posterior.density(rule)
        if EPS * posterior.separation() > LOST_DIGITS:
            sds = np.sqrt(posterior.separation())
            warnings.warn(
                f"a class lies {sds:.2g} standard deviations from the origin of the sums; its variances keep about "
                f"{max(0, int(-np.log10(EPS * sds**2)))} digits. Fit again, so that the origin is chosen anew.",
                PrecisionWarning,
                stacklevel=2,
            )
        return density

    def leave_one_out(self, stats: Any, X: Any, members: Members, rule: Rule, density: Density | None = None) -> Array:
        """A row leaves by a rank-one step: no refits."""
        return self._posterior(stats, rule).leave_one_out(X, members, rule)

    def log_evidence(self, stats: Any) -> Array:
        """(K,), or (1,) where the classes share their covariance."""
        return self._posterior(stats).log_evidence()

    def log_prior(self, density: Any) -> float:
        """The log prior at a density's means and covariances, up to a constant: what `map` adds to a log-likelihood."""
        D = density.mean.shape[1]
        target = self.scale if self.scale.ndim == 2 else np.broadcast_to(self.scale, D)
        prior = Prior(self.kappa, self.strength, np.broadcast_to(self.mean, D) - density.origin, target)
        if isinstance(density, DiagonalNormal):
            return axis_log_prior(prior, density, self._tied, "spherical" in self.structure)
        return matrix_log_prior(prior, density)

    def posterior(self, stats: Any) -> Posterior:
        """Marginals of "mean" (K, D) and "variance"; for matrices "covariance" too, by draws."""
        return Posterior(self._posterior(stats).marginals())

    def draw(self, stats: Any, rng: np.random.Generator) -> Density:
        """Draw means and covariances from their normal–inverse-Wishart posterior."""
        return self._posterior(stats).draw(rng)

    @staticmethod
    def of(mean: Any, covariance: Any) -> Density:
        """A known density: a covariance matrix, or variances (not standard deviations).

        >>> male = Gaussian.of(175.33, 52.89)
        >>> np.exp(male.log_density(np.array([[174.0]]))).round(5)
        array([[0.05395]])
        """
        return known_density(mean, covariance)
