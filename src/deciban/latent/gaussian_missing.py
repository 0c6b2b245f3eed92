"""Full and tied Gaussians of rows with missing values, by EM over the missing values.

    E   x̂_m = μ_m + Σ_mo Σ_oo⁻¹ (x_o − μ_o)        expected missing values of a row (o observed, m missing)
        Σ_mm·o = Σ_mm − Σ_mo Σ_oo⁻¹ Σ_om            their covariance, equal for all rows with the same pattern
    M   Gaussian's own `estimate` on Σw x̂ and Σw (x̂x̂ᵀ + Σ_mm·o)

Rows are grouped by their pattern of missing values. The objective, the likelihood of the observed values (with the
prior, under "map"), never decreases. The sums depend on the estimate under which they were collected, so they cannot be
unlearnt exactly and there is no exact leave-one-out. A row without any value adds nothing.

Reference: Little & Rubin, Statistical Analysis with Missing Data, 3rd ed., section 11.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from typing import Any, Self

import numpy as np

from deciban.errors import DecibanError, HyperparameterError, NotAvailableError, SingularError
from deciban.families import limits
from deciban.families.gaussian.densities import NormalDensity
from deciban.families.gaussian.family import Gaussian
from deciban.families.gaussian.sums import DiagonalStats, Frame, GaussianStats, collect_diagonal
from deciban.families.protocol import Input, Rule
from deciban.kernels.choice import one_thread
from deciban.kernels.rows import distinct_rows
from deciban.latent import em
from deciban.read.arrays import refuse_infinite
from deciban.read.tables import dense_numbers
from deciban.statistics import Array, Axis, Members


@dataclass(frozen=True, eq=False, repr=False)
class ExpectedStats(em.ExpectedSums, GaussianStats):
    """Expected sums of the complete rows, given the observed values."""

    def _refuse_negative(self, other: Self, error: type[DecibanError]) -> None:
        raise NotAvailableError(
            "a full or tied Gaussian of rows with gaps is fitted by EM: its sums hold expected values, so that rows "
            "cannot be unlearnt or left out exactly. Nothing was changed.",
            remedy="Fit again without these rows, fill the gaps, or use Gaussian('diagonal'), which can unlearn them. "
            "To evaluate on learnt rows use k-fold (cross_val_predict).",
        )


@dataclass(frozen=True, eq=False, repr=False)
class GaussianWithGaps(em.FrozenEstimate, Gaussian):
    """Gaussian with a full or tied covariance, learnt from rows with missing values.

    Parameters
    ----------
    structure : {"full", "tied"}, default="full"
        Covariance: one for each class, or one for all classes.
    strength : float, default=1.0
        Pseudo-rows of the prior covariance.
    target : {"diagonal", "spherical", "tied"}, default="diagonal"
        Prior covariance; "tied" is read as "diagonal".
    kappa : float, default=0.01
        Pseudo-rows at the prior mean.
    keep : {"structure", "full"}, default="structure"
        Of no effect here: the sums are always full.
    mean : array-like of shape (n_features,), optional
        Prior mean; the pooled mean of the first rows if None.
    scale : array-like, optional
        Prior covariance in place of `target`.
    dof : float, default=0.0
        Further degrees of freedom of the prior of a covariance, beyond those of `strength` rows.
    origin : array-like of shape (n_features,), optional
        Origin of the sums; near the first rows if None.
    reach : array-like of shape (n_features,), optional
        Not used: expected sums hold all rows.
    limit : array-like of shape (n_features,), optional
        Numbers of larger absolute value count as missing. If None, there is no limit.
    rule : {"map", "ml"}, default="map"
        Rule under which EM maximises. Every rule can read the sums it ends with.
    max_iter : int, default=1000
        Largest number of iterations.
    tol : float, default=1e-8
        EM stops when an iteration gains less than this per row.
    guess : ExpectedStats, optional
        Sums of the frozen estimate under which a classifier collects later rows. Set at the first fit.

    Examples
    --------
    >>> import numpy as np
    >>> from deciban import GaussianWithGaps
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 1)) + 0.5 * rng.normal(size=(500, 2))  # two correlated columns
    >>> X[rng.random(500) < 0.4, 1] = np.nan
    >>> GaussianWithGaps(rule="ml").fit(X).density("ml").log_density(np.array([[0.0, np.nan]])).shape
    (1, 1)
    """

    _: KW_ONLY
    rule: Rule = "map"
    max_iter: int = 1000
    tol: float = 1e-8
    guess: ExpectedStats | None = None

    @property
    def accepts(self) -> frozenset[str]:
        return frozenset({"gaps", "negative"})

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.structure not in ("full", "tied"):
            raise HyperparameterError(
                f"structure={self.structure!r}: only 'full' and 'tied' need EM. Use Gaussian({self.structure!r})."
            )
        em.check_em_rule(self.rule)

    def __repr__(self) -> str:
        return f"GaussianWithGaps{Gaussian.__repr__(replace(self, guess=None)).removeprefix('Gaussian')}"

    def check(self, X: Array, columns: Sequence[str], learning: bool = False) -> None:
        refuse_infinite(X, columns)

    def encode(self, X: Input, columns: Sequence[str], stats: ExpectedStats | None = None) -> Array:  # type: ignore[override]
        return limits.masked(dense_numbers(X, columns), self.limit)

    # -- sums --------------------------------------------------------------------------------------------------------
    def collect(self, X: Array, members: Members) -> ExpectedStats:
        if self.guess is None:
            return self._fit(X, members)
        return _expect(X, members, self._known(members.classes))

    def collect_under(self, X: Array, members: Members, density: NormalDensity) -> ExpectedStats:
        """Collect the expected sums under a given density.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            Rows, NaN where a value is missing.
        members : Members
            Group and weight of each row.
        density : NormalDensity
            Means and covariances of the groups.

        Returns
        -------
        ExpectedStats
            The expected sums.
        """
        return _expect(X, members, density)

    def choose(  # type: ignore[override]
        self, stats: ExpectedStats, rows: tuple[Array, Members] | None = None, rule: Rule = "mean"
    ) -> GaussianWithGaps:
        if self.guess is not None:
            return self
        frozen = self._with_prior(
            stats if rows is None else collect_diagonal(*rows, Frame.given(self.origin, self.reach)).whole()
        )
        return replace(frozen, guess=stats)

    def refine(self, stats: ExpectedStats, X: Array, members: Members) -> tuple[GaussianWithGaps, ExpectedStats]:
        """Run EM over all rows.

        Parameters
        ----------
        stats : ExpectedStats
            Sums under the frozen estimate.
        X : ndarray of shape (n_samples, n_features)
            All rows.
        members : Members
            Their classes and weights.

        Returns
        -------
        family : GaussianWithGaps
            The family with the new estimate frozen.
        stats : ExpectedStats
            The sums at the end of EM.
        """
        sums = self._fit(X, members)
        return replace(self, guess=sums), sums

    def select(self, features: Array) -> GaussianWithGaps:
        fewer: Any = super().select(features)
        return replace(fewer, guess=None if self.guess is None else self.guess.select("feature", features))

    # -- EM ----------------------------------------------------------------------------------------------------------
    def _with_prior(self, sums: DiagonalStats | GaussianStats) -> GaussianWithGaps:
        """Return the family with scale and mean of the prior from the observed values."""
        own = replace(self, target="diagonal") if self.target == "tied" else self
        return Gaussian.resolve(Gaussian.choose(own, sums), sums)  # type: ignore[return-value]

    def _known(self, classes: Axis) -> NormalDensity:
        """Return the frozen estimate of each of these classes; an estimate without classes serves all."""
        guess: Any = self.guess
        names = guess.labels["class"]
        if names.size == 1:
            return self._estimate(guess.select("class", np.zeros(classes.size, dtype=np.intp)))
        new = [name for name in classes.names if name not in names.names]
        if new:
            raise NotAvailableError(
                f"class {new[0]!r} is new, and a Gaussian with gaps learns a class by EM. Refit with all classes."
            )
        density = self._estimate(guess)
        at = names.positions(classes)
        return replace(
            density,
            shift=density.shift[at],
            divisor=density.divisor[at],
            scale=density.scale[at] if len(density.scale) > 1 else density.scale,
            whitener=None,
            log_det=None,
        )

    def _estimate(self, sums: ExpectedStats) -> NormalDensity:
        return Gaussian.estimate(self, sums, self.rule)  # type: ignore[return-value]

    def _fit(self, X: Array, members: Members) -> ExpectedStats:
        """Return the expected sums at the end of EM."""
        seen = collect_diagonal(X, members, Frame.given(self.origin, self.reach))
        if not seen.finite:  # the caller then raises the error that names the value
            second = np.full((*seen.first.shape, seen.first.shape[1]), np.nan)
            return ExpectedStats(seen.labels, seen.weight[:, 0], seen.first, second, seen.origin)
        seen = seen.whole()
        family = self._with_prior(seen)

        def step(current: tuple[NormalDensity, Any]) -> tuple[tuple[NormalDensity, Any], float]:
            density, _ = current
            sums = _expect(X, members, density)
            objective = _log_likelihood(X, members, density)
            if family.rule == "map":
                objective += family.log_prior(density)
            return (family._estimate(sums), sums), objective

        with one_thread(0):
            scale: Any = family.scale
            start: tuple[NormalDensity, Any] = _independent(seen, scale if scale.ndim == 1 else scale.diagonal()), None
            (_, sums), _ = em.run(step, start, float(members.row_weights().sum()), self.max_iter, self.tol)
        return sums


def with_gaps(family: object, rule: Rule) -> GaussianWithGaps | None:
    """Return the family that learns rows with gaps in the place of a full or tied Gaussian; None for other families."""
    if type(family) is not Gaussian or family.structure not in ("full", "tied"):
        return None
    same = {each.name: getattr(family, each.name) for each in fields(Gaussian)}
    return GaussianWithGaps(**same, rule="ml" if rule == "ml" else "map")


def _independent(seen: DiagonalStats, otherwise: Array) -> NormalDensity:
    """Return the start of EM: means and variances of the observed values, no correlations."""
    mean, scatter = seen.scatter()
    variance = scatter / np.maximum(seen.weight, 1.0)
    variance = np.where(variance > 0, variance, np.broadcast_to(otherwise, variance.shape))
    return NormalDensity(seen.origin, mean, np.stack([np.diag(v) for v in variance]), np.ones(len(mean)))


def patterns(X: Array) -> Iterator[tuple[Array, Array, Array]]:
    """Yield (rows, observed columns, missing columns) of each pattern; rows without any value are left out."""
    gaps = np.isnan(X)
    kinds, which = distinct_rows(np.packbits(gaps, axis=1))
    order = np.argsort(which, kind="stable")
    ends = np.cumsum(np.bincount(which, minlength=len(kinds)))
    for rows in np.split(order, ends[:-1]):
        missing = gaps[rows[0]]
        if not missing.all():
            yield rows, np.flatnonzero(~missing), np.flatnonzero(missing)


def _expect(X: Array, members: Members, density: NormalDensity) -> ExpectedStats:
    """Return the expected sums about the density's origin."""
    K, D = density.shift.shape
    weight, first, second = np.zeros(K), np.zeros((K, D)), np.zeros((K, D, D))
    shares = members.matrix()
    for rows, seen, gap in patterns(X):
        Z = np.asarray(X[rows], dtype=float) - density.origin
        for k in range(K):
            w = shares[rows][:, [k]].toarray().ravel() if members.shares is None else shares[rows, k]
            here = np.flatnonzero(w)
            if not len(here):
                continue
            w, z = w[here], Z[here]
            if len(gap):
                spread = density.scale[k if len(density.scale) > 1 else 0] / density.divisor[k]
                onto = _regression(spread, seen, gap, members.classes.names[k])
                z[:, gap] = density.shift[k, gap] + (z[:, seen] - density.shift[k, seen]) @ onto
                rest = spread[np.ix_(gap, gap)] - spread[np.ix_(gap, seen)] @ onto
                second[k][np.ix_(gap, gap)] += w.sum() * (rest + rest.T) / 2
            weight[k] += w.sum()
            first[k] += w @ z
            outer = (z * w[:, None]).T @ z
            second[k] += (outer + outer.T) / 2
    labels: dict[str, Any] = {"class": members.classes, "feature": Axis.of(D)}
    return ExpectedStats(labels, weight, first, second, density.origin)


def _regression(spread: Array, seen: Array, gap: Array, label: object) -> Array:
    """Return the coefficients (seen, gap) of the expected missing values given the observed ones."""
    try:
        return np.linalg.solve(spread[np.ix_(seen, seen)], spread[np.ix_(seen, gap)])
    except np.linalg.LinAlgError:
        raise SingularError(
            f"the covariance of class {label!r} cannot be inverted, so missing values have no expected values.",
            label=label,
            remedy="Fit again with more strength, or use Gaussian('diagonal').",
        ) from None


def _log_likelihood(X: Array, members: Members, density: NormalDensity) -> float:
    """Return Σ w log f(observed values)."""
    scores = density.log_density(np.asarray(X, dtype=float))
    shares = members.matrix()
    return float(shares.multiply(scores).sum() if members.shares is None else (shares * scores).sum())
