"""Full and tied Gaussians of rows with gaps, by EM over the missing values.

    E   x̂_m = μ_m + Σ_mo Σ_oo⁻¹ (x_o − μ_o)        what a row misses, given what it has (o observed, m missing)
        Σ_mm·o = Σ_mm − Σ_mo Σ_oo⁻¹ Σ_om            how uncertain that is: the same for every row with this pattern
    M   Gaussian's own `estimate` on Σw x̂ and Σw (x̂x̂ᵀ + Σ_mm·o)

Rows are grouped by their pattern of gaps. The objective, the likelihood of what was observed (and the prior, under
`map`), never falls. The sums depend on the guess, so they cannot be unlearnt exactly, nor left one out. A row without
any value adds nothing.

Reference: Little & Rubin, Statistical Analysis with Missing Data, 3rd ed., section 11.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np

from deciban.errors import DecibanError, HyperparameterError, NotAvailableError
from deciban.families.gaussian.densities import NormalDensity
from deciban.families.gaussian.family import Gaussian
from deciban.families.gaussian.sums import DiagonalStats, GaussianStats, collect_diagonal
from deciban.families.protocol import Rule, check_rule
from deciban.kernels.choice import one_thread
from deciban.latent import em
from deciban.read.numbers import refuse_infinite
from deciban.statistics import Array, Axis, Members

NOT_EXACT = (
    "the sums of a Gaussian with gaps hold expected values of what was missing, which depend on all rows: rows cannot "
    "be unlearnt exactly, nor left one out. Refit without them; for honest answers use k-fold (cross_val_predict)."
)


@dataclass(frozen=True, eq=False, repr=False)
class ExpectedStats(GaussianStats):
    """The sums that complete rows would be expected to have."""

    def _refuse_negative(self, other: Any, error: type[DecibanError]) -> None:
        raise NotAvailableError(NOT_EXACT)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExpectedStats) and self.same(other)

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, eq=False, repr=False)
class GaussianWithGaps(Gaussian):
    """A Gaussian with a covariance matrix that learns from rows with gaps.

    climb : what EM climbs under, "ml" or "map"; every rule is a reading of the sums it ends with

    >>> import numpy as np
    >>> from deciban import GaussianWithGaps
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 1)) + 0.5 * rng.normal(size=(500, 2))      # two readings of one thing
    >>> X[rng.random(500) < 0.4, 1] = np.nan
    >>> GaussianWithGaps(climb="ml").fit(X).density("ml").log_density(np.array([[0.0, np.nan]])).shape
    (1, 1)
    """

    _: KW_ONLY
    climb: Rule = "map"
    max_iter: int = 1000
    tol: float = 1e-8  # least gain a row
    guess: ExpectedStats | None = None  # frozen at the first fit

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.structure not in ("full", "tied"):
            raise HyperparameterError(
                f"structure={self.structure!r}: only 'full' and 'tied' need EM. Use Gaussian({self.structure!r})."
            )
        check_rule(self.climb)
        if self.climb not in ("ml", "map"):
            raise HyperparameterError(f"climb={self.climb!r}: EM climbs under 'ml' or 'map'.")

    def __repr__(self) -> str:
        """What was asked for; the guess is left out."""
        return f"GaussianWithGaps{Gaussian.__repr__(replace(self, guess=None)).removeprefix('Gaussian')}"

    def check(self, X: Any, columns: Sequence[str], learning: bool = False) -> None:
        """Finite, or missing."""
        refuse_infinite(X, columns)

    # -- sums ------------------------------------------------------------------------------------------------------
    def collect(self, X: Array, members: Members) -> ExpectedStats:
        """Expected sums: under the guess, or at the end of EM where there is none yet."""
        if self.guess is None:
            return self._fitted(X, members)
        return self.collect_under(X, members, self._known(members.classes))

    def collect_under(self, X: Array, members: Members, density: NormalDensity) -> ExpectedStats:
        """Expected sums under given means and covariances."""
        return _expected(X, members, density)

    def choose(self, stats: Any, rows: tuple[Any, Members] | None = None, rule: Rule = "mean") -> GaussianWithGaps:
        """Freeze prior, origin and the guess for rows to come."""
        if self.guess is not None:
            return self
        frozen = self._with_prior(stats if rows is None else collect_diagonal(*rows, self.origin))
        return replace(frozen, guess=stats)

    def refine(self, stats: Any, X: Any, members: Members) -> tuple[GaussianWithGaps, Any]:
        """EM over all rows, from the guess of the first ones."""
        sums = self._fitted(X, members)
        return replace(self, guess=sums), sums

    def select(self, features: Array) -> GaussianWithGaps:
        """The prior and the guess of some features."""
        fewer: Any = super().select(features)
        return replace(fewer, guess=None if self.guess is None else self.guess.select("feature", features))

    def chosen_by_labels(self) -> list[str]:
        """Return nothing: EM does not look at labels."""
        return []

    def keep_choices(self, chosen: Any, with_rows: bool) -> GaussianWithGaps:
        """The guess stays: sums alone cannot make it again."""
        if with_rows:
            return self
        return replace(self, guess=chosen.guess)

    def leave_one_out(self, stats: Any, X: Any, members: Members, rule: Rule, density: Any = None) -> Array:
        """Refused: other rows' missing values would be expected otherwise."""
        raise NotAvailableError(NOT_EXACT)

    # -- the loop --------------------------------------------------------------------------------------------------
    def _with_prior(self, sums: DiagonalStats | GaussianStats) -> GaussianWithGaps:
        """Scale and mean of the prior from the values that are there."""
        return Gaussian.choose(replace(self, target="diagonal") if self.target == "tied" else self, sums)  # type: ignore[return-value]

    def _known(self, classes: Axis) -> NormalDensity:
        """The guess for each of these classes; a guess without classes serves all."""
        guess: Any = self.guess
        names = guess.labels["class"]
        if names.size == 1:
            return self._read(guess.select("class", np.zeros(classes.size, dtype=np.intp)))
        new = [name for name in classes.names if name not in names.names]
        if new:
            raise NotAvailableError(
                f"class {new[0]!r} is new, and a Gaussian with gaps learns a class by EM. Refit with all classes."
            )
        density = self._read(guess)
        at = names.positions(classes)
        return replace(
            density,
            mean=density.mean[at],
            divisor=density.divisor[at],
            scale=density.scale[at] if len(density.scale) > 1 else density.scale,
            whitener=None,
            log_det=None,
        )

    def _read(self, sums: ExpectedStats) -> Any:
        return Gaussian.estimate(self, sums, self.climb)

    def _fitted(self, X: Array, members: Members) -> ExpectedStats:
        seen = collect_diagonal(X, members, self.origin)
        if not seen.finite:  # the caller will say which value it was
            return _not_finite(seen)
        family = self._with_prior(seen)

        def step(current: tuple[NormalDensity, Any]) -> tuple[Any, float]:
            density, _ = current
            sums = _expected(X, members, density)
            objective = _likelihood(X, members, density)
            if family.climb == "map":
                objective += family.log_prior(density)
            return (family._read(sums), sums), objective

        with one_thread(0):
            first = _independent(seen, _variances(family)), None
            (_, sums), _ = em.run(step, first, float(members.row_weights().sum()), self.max_iter, self.tol)
        return sums


def _variances(family: Gaussian) -> Array:
    return family.scale if family.scale.ndim == 1 else family.scale.diagonal()


def _independent(seen: DiagonalStats, otherwise: Array) -> NormalDensity:
    """Where EM starts: means and variances of what was seen, no correlations."""
    mean, scatter = seen.scatter()
    variance = scatter / np.maximum(seen.weight, 1.0)
    variance = np.where(variance > 0, variance, np.broadcast_to(otherwise, variance.shape))
    return NormalDensity(seen.origin, mean, np.stack([np.diag(v) for v in variance]), np.ones(len(mean)))


def patterns(X: Array) -> Iterator[tuple[Array, Array, Array]]:
    """(rows, observed columns, missing columns) for each pattern of gaps; rows without any value are left out."""
    gaps = np.isnan(X)
    kinds, which = np.unique(np.packbits(gaps, axis=1), axis=0, return_inverse=True)
    order = np.argsort(which.reshape(-1), kind="stable")
    ends = np.cumsum(np.bincount(which.reshape(-1), minlength=len(kinds)))
    for rows in np.split(order, ends[:-1]):
        missing = gaps[rows[0]]
        if not missing.all():
            yield rows, np.flatnonzero(~missing), np.flatnonzero(missing)


def _expected(X: Array, members: Members, density: NormalDensity) -> ExpectedStats:
    """Expected sums about the density's origin, group by group and pattern by pattern."""
    K, D = density.mean.shape
    weight, first, second = np.zeros(K), np.zeros((K, D)), np.zeros((K, D, D))
    shares = members.matrix()
    for rows, seen, gap in patterns(X):
        Z = np.asarray(X[rows], dtype=float) - density.origin
        for k in range(K):
            w = np.asarray(shares[rows, k].todense()).ravel() if members.shares is None else shares[rows, k]
            here = np.flatnonzero(w)
            if not len(here):
                continue
            w, z = w[here], Z[here]
            if len(gap):
                spread = density.scale[k if len(density.scale) > 1 else 0] / density.divisor[k]
                onto = np.linalg.solve(spread[np.ix_(seen, seen)], spread[np.ix_(seen, gap)])
                z[:, gap] = density.mean[k, gap] + (z[:, seen] - density.mean[k, seen]) @ onto
                rest = spread[np.ix_(gap, gap)] - spread[np.ix_(gap, seen)] @ onto
                second[k][np.ix_(gap, gap)] += w.sum() * (rest + rest.T) / 2
            weight[k] += w.sum()
            first[k] += w @ z
            outer = (z * w[:, None]).T @ z
            second[k] += (outer + outer.T) / 2
    labels: dict[str, Any] = {"class": members.classes, "feature": Axis.of(D)}
    return ExpectedStats(labels, weight, first, second, density.origin)


def _likelihood(X: Array, members: Members, density: NormalDensity) -> float:
    """Σ w log f(what was observed)."""
    scores = density.log_density(np.asarray(X, dtype=float))
    shares = members.matrix()
    return float(shares.multiply(scores).sum() if members.shares is None else (shares * scores).sum())


def _not_finite(seen: DiagonalStats) -> ExpectedStats:
    """Sums that show that a value is not finite."""
    K, D = seen.first.shape
    return ExpectedStats(seen.labels, seen.weight[:, 0], seen.first, np.full((K, D, D), np.nan), seen.origin)
