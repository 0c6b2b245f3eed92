"""Positive numbers: gamma distributions with a known shape and a Gamma prior of the rate.

    x | β  ~  Gamma(α, β)              mean α/β; the classes share the shape α of a feature
    β      ~  Gamma(a, b)              mean a/b
    β | D  ~  Gamma(a + nα, b + Σx)    the prior counts as a/α rows with the sum b
    x | D  ~  (b + Σx) · BetaPrime(α, a + nα)

A shape that is not given maximises the likelihood of the first rows, each class at its own rate β = nα/Σx. It solves

    log α − ψ(α)  =  Σ_c N_c · (log mean x − mean log x)_c / N

Reference: Minka, Estimating a Gamma distribution, 2002 (the Newton step for the shape); Fink, A Compendium of Conjugate
Priors, 1997 (the prior of the rate).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaln, gammaln, polygamma, psi, xlogy

from deciban.errors import OR_GAUSSIAN, DecibanError, HyperparameterError, NoModeError
from deciban.families.abilities import HasDraws, HasEvidence, HasLogPrior, HasPosterior
from deciban.families.dirichlet import left_over
from deciban.families.protocol import Density, Family, Input, Marginal, Posterior, Rule, classes_of, require_rows
from deciban.kernels.parallel import row_scores
from deciban.read.arrays import refuse, refuse_infinite
from deciban.read.tables import dense_numbers
from deciban.statistics import Array, Axis, Members, Stats, peak, summed
from deciban.statistics.base import TOLERANCE

LARGEST_SHAPE = 1e6  # of values that do not vary within the classes
NEWTON_STEPS = 20  # Minka's step has all digits after about five

WORK = 80  # elementary operations of the logarithm and the sums of a value, for chunks of rows


@dataclass(frozen=True, eq=False, repr=False)
class GammaStats(Stats):
    """Sums of values and of their logarithms; a missing value adds to none."""

    weight: Array = summed("class", "feature", floor=True)  # Σ w         rows that had a value
    total: Array = summed("class", "feature", floor=True)  # Σ w·x
    log_total: Array = summed("class", "feature")  # Σ w·log x
    peak: Array | None = peak("total", "class", "feature")  # the largest value of `total`

    def refuse_lost(self, other: Self, error: type[DecibanError]) -> None:
        left = self.weight - other.weight
        self.refuse_lost_digits("total", other, np.where(left > TOLERANCE * self.weight, left, 0.0), error)

    def tidy(self) -> Self:
        """Set the sums of classes without rows to zero."""
        rows = self.weight > 0
        return replace(self, total=np.where(rows, self.total, 0.0), log_total=np.where(rows, self.log_total, 0.0))


@dataclass(frozen=True, eq=False)
class Gamma(Family[GammaStats], HasEvidence, HasPosterior, HasDraws, HasLogPrior):
    """Positive numbers, such as waiting times and amounts; features independent given the class.

    Each class has its own rate; the classes share the shape. Missing values (NaN) are allowed.

    Parameters
    ----------
    shape : float or array-like of shape (n_features,), optional
        Shape α of each feature; 1 is the exponential distribution. If None, it is estimated from the sums, within
        classes; in a mixture or a hidden Markov model, within components or states.
    a : float, default=1.0
        Shape of the Gamma prior of the rate.
    b : float or array-like of shape (n_features,), optional
        Rate of the Gamma prior of the rate. If None, it is derived from the sums so that the prior mean a/b is the rate
        of all rows together, α divided by their mean.

    Examples
    --------
    >>> waits = Gamma(shape=2, a=1, b=1).fit([[1.5], [0.5], [3.0]])
    >>> waits.posterior()["rate"]
    Marginal(mean 1.167, sd 0.441)
    >>> waits.density("ml").rate
    array([[1.2]])
    >>> waits = Gamma().fit([[1.5], [0.5], [3.0]])
    >>> waits.family.resolve(waits.stats).shape.round(3)
    array([2.231])
    """

    shapes: ClassVar = {"shape": "D | 1 positive", "b": "D | 1 positive"}

    shape: float | Array | None = None  # α, () or (D,)
    a: float = 1.0
    b: float | Array | None = None  # () or (D,)

    @property
    def accepts(self) -> frozenset[str]:
        return frozenset({"gaps"})

    def __post_init__(self) -> None:
        for name in ("shape", "a", "b"):
            given = getattr(self, name)
            if given is None and name != "a":
                continue
            value = np.asarray(given, dtype=float)
            if value.ndim > (name != "a") or not (np.isfinite(value) & (value > 0)).all():
                many = "" if name == "a" else " or one per feature"
                raise HyperparameterError(f"Gamma({name}={value.tolist()}): give one number > 0{many}.")
            object.__setattr__(self, name, value if value.ndim else float(value))

    def encode(self, X: Input, columns: Sequence[str], stats: GammaStats | None = None) -> Array:
        rows = dense_numbers(X, columns)
        self.check(rows, columns)
        return rows

    def check(self, X: Array, columns: Sequence[str], learning: bool = False) -> None:
        refuse_infinite(X, columns)
        refuse(X, columns, lambda x: x <= 0, "Gamma values must be > 0", OR_GAUSSIAN)

    def collect(self, X: Array, members: Members) -> GammaStats:
        origin = np.zeros(X.shape[1])
        weight, total, _ = members.moments(X, origin)
        _, log_total, _ = members.moments(np.log(X, dtype=float), origin)
        return GammaStats({"class": members.classes, "feature": Axis.of(X.shape[1])}, weight, total, log_total)

    def resolve(self, stats: GammaStats) -> Gamma:
        shape = _estimate_shape(stats) if self.shape is None else self.shape
        if self.b is not None:
            return self if self.shape is not None else replace(self, shape=shape)
        weight, total = stats.weight.sum(axis=0), stats.total.sum(axis=0)
        mean = np.divide(total, weight, out=np.ones_like(total), where=weight > 0)  # 1 for a column without values
        return replace(self, shape=shape, b=self.a * mean / shape)

    def select(self, features: Array) -> Gamma:
        shape, b = (value[features] if isinstance(value, np.ndarray) else value for value in (self.shape, self.b))
        return replace(self, shape=shape, b=b)

    def _prior(self, stats: GammaStats) -> tuple[Array, Array]:
        """Return the shape α and the prior rate b, (D,) each; open values are derived from these sums."""
        chosen = self.resolve(stats)
        D = stats.weight.shape[1]
        return np.broadcast_to(np.asarray(chosen.shape), D), np.broadcast_to(np.asarray(chosen.b), D)

    def _posterior(self, stats: GammaStats) -> tuple[Array, Array, Array]:
        """Return the shape α and the Gamma posterior of the rates, (K, D) each."""
        shape, b = self._prior(stats)
        return np.tile(shape, (len(stats.weight), 1)), self.a + stats.weight * shape, b + stats.total

    def estimate(self, stats: GammaStats, rule: Rule) -> GammaDensity | CompoundGammaDensity:
        shape, a, b = self._posterior(stats)
        if rule == "ml":
            require_rows(stats.weight, classes_of(stats.labels), "Gamma")
            return GammaDensity(shape, shape * stats.weight / stats.total)
        if rule == "predictive":
            return CompoundGammaDensity(shape, a, b)
        if rule == "map" and np.any(a <= 1):
            k, d = np.argwhere(a <= 1)[0]
            label = classes_of(stats.labels).names[k]
            raise NoModeError(
                f"class {label!r}, feature {d}: the posterior of a Gamma rate with a + nα = {a[k, d]:.6g} ≤ 1 has no "
                "mode above 0.",
                columns=[int(d)],
                label=label,
                remedy="Use rule 'mean' or 'predictive', or a > 1.",
            )
        return GammaDensity(shape, (a - (rule == "map")) / b)

    def leave_one_out(
        self, stats: GammaStats, X: Array, members: Members, rule: Rule, density: Density | None = None
    ) -> Array:
        # only the density of the row's own class changes: it is estimated from the sums without the row
        scores = (density or self.estimate(stats, rule)).log_density(X)
        own, w = members.own_codes(), members.row_weights()[:, None]
        seen = ~np.isnan(X)
        x = np.where(seen, X, 1.0).astype(float)
        weight = left_over(stats.weight[own], w * seen)
        total = np.where(weight > 0, left_over(stats.total[own], w * x * seen), 0.0)
        shape, b0 = self._prior(stats)
        a0, b0 = (0.0, np.zeros_like(b0)) if rule == "ml" else (self.a - (rule == "map"), b0)
        a, b = a0 + weight * shape, b0 + total
        defined = (a > 0) & (b > 0)
        a, b = np.where(defined, a, 1.0), np.where(defined, b, 1.0)
        parts = _compound_parts(x, shape, a, b) if rule == "predictive" else _rate_parts(x, shape, a / b)
        left_out = np.where(seen, parts, 0.0).sum(axis=1)
        scores[np.arange(len(own)), own] = np.where(defined.all(axis=1), left_out, -np.inf)
        return scores

    def log_evidence(self, stats: GammaStats) -> Array:
        shape, b0 = self._prior(stats)
        _, a, b = self._posterior(stats)
        prior = self.a * np.log(b0) - gammaln(self.a)
        each = prior - a * np.log(b) + gammaln(a) + (shape - 1) * stats.log_total - stats.weight * gammaln(shape)
        return np.asarray(each.sum(axis=1))

    def log_prior(self, density: GammaDensity) -> float:
        if self.b is None:
            raise HyperparameterError(
                "the prior of Gamma(b=None) is derived from sums. Call resolve(stats), or give b."
            )
        return float(np.sum(xlogy(self.a - 1.0, density.rate) - self.b * density.rate + self.a * np.log(self.b)))

    def posterior(self, stats: GammaStats) -> Posterior:
        from scipy import stats as sps  # lazy: scipy.stats is slow to import

        _, a, b = self._posterior(stats)
        return Posterior({"rate": Marginal.exact(sps.gamma(a, scale=1 / b), np.where(a >= 1, (a - 1) / b, np.nan))})

    def draw(self, stats: GammaStats, rng: np.random.Generator, times: int = 1) -> GammaDensity:
        shape, a, b = (np.concatenate([each] * times) for each in np.broadcast_arrays(*self._posterior(stats)))
        return GammaDensity(shape, _draw(a, b, rng))

    def free_parameters(self, stats: GammaStats) -> int:
        """Count the rates; the shape is given, or derived from the sums.

        Parameters
        ----------
        stats : GammaStats
            Sums of the rows of each class.

        Returns
        -------
        int
            The number of classes times the number of features.
        """
        return int(stats.weight.size)

    @staticmethod
    def of(shape: ArrayLike, rate: ArrayLike) -> GammaDensity:
        """Return the density of a known shape and rate.

        Parameters
        ----------
        shape : float or array-like of shape (n_features,)
            Shape α.
        rate : float or array-like of shape (n_features,)
            Rate β; the mean is α/β.

        Returns
        -------
        GammaDensity
            The density of a single class.
        """
        known = np.stack(np.broadcast_arrays(np.atleast_1d(shape), np.atleast_1d(rate))).astype(float)
        if known.ndim != 2 or not (np.isfinite(known) & (known > 0)).all():
            raise HyperparameterError(f"Gamma.of({known[0].tolist()}, {known[1].tolist()}): give numbers > 0.")
        return GammaDensity(known[:1], known[1:])


@dataclass(frozen=True, eq=False)
class GammaDensity(Density):
    """Independent gamma distributions with known shapes and rates."""

    shapes: ClassVar = {"shape": "K D positive", "rate": "K D positive"}

    shape: Array  # (K, D) α
    rate: Array  # (K, D) β

    @property
    def K(self) -> int:
        return len(self.rate)

    def moments(self) -> tuple[Array, Array]:
        """Return means and variances, (K, D) each."""
        return self.shape / self.rate, self.shape / self.rate**2

    def parts(self, X: Array) -> Array:
        """Return the log density of each value, shape (n, K, D); 0 where it is missing."""
        return _without_gaps(_rate_parts(X[:, None, :], self.shape, self.rate), X[:, None, :])

    def log_density(self, X: Array) -> Array:
        """Return log f(x|k), shape (n, K): linear in x and log x."""
        constant = self.shape * np.log(self.rate) - gammaln(self.shape)

        def score(rows: Array) -> Array:
            seen = ~np.isnan(rows)
            x = np.where(seen, rows, 1.0).astype(float)
            return np.asarray(np.log(x) @ (self.shape - 1).T - (x * seen) @ self.rate.T + seen @ constant.T)

        return row_scores(score, X, self.K, (WORK + 4 * self.K) * X.shape[1])

    def sample(self, codes: Array, rng: np.random.Generator) -> Array:
        """Draw positive numbers."""
        return _draw(self.shape[codes], self.rate[codes], rng)


@dataclass(frozen=True, eq=False)
class CompoundGammaDensity(Density):
    """Gamma distributions with the rate integrated out: b times a beta prime variate."""

    shapes: ClassVar = {"shape": "K D positive", "a": "K D positive", "b": "K D positive"}

    shape: Array  # (K, D) α
    a: Array  # (K, D) β ~ Gamma(a, b)
    b: Array  # (K, D)

    @property
    def K(self) -> int:
        return len(self.a)

    def moments(self) -> tuple[Array, Array]:
        """Return means and variances, (K, D) each; inf where a ≤ 1 or a ≤ 2."""
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = self.b * self.shape / (self.a - 1)
            variance = mean * self.b * (self.shape + self.a - 1) / ((self.a - 1) * (self.a - 2))
        return np.where(self.a > 1, mean, np.inf), np.where(self.a > 2, variance, np.inf)

    def parts(self, X: Array) -> Array:
        """Return the log density of each value, shape (n, K, D); 0 where it is missing."""
        return _without_gaps(_compound_parts(X[:, None, :], self.shape, self.a, self.b), X[:, None, :])

    def log_density(self, X: Array) -> Array:
        """Return log f(x|k), shape (n, K); one class at a time keeps memory at (n, D)."""

        def score(rows: Array) -> Array:
            each = zip(self.shape, self.a, self.b)
            return np.stack([_without_gaps(_compound_parts(rows, *one), rows).sum(axis=1) for one in each], axis=1)

        return row_scores(score, X, self.K, WORK * self.shape.size)

    def sample(self, codes: Array, rng: np.random.Generator) -> Array:
        """Draw a rate from its posterior for each row, then positive numbers."""
        return _draw(self.shape[codes], _draw(self.a[codes], self.b[codes], rng), rng)


def _rate_parts(x: Array, shape: Array, rate: Array) -> Array:
    return np.asarray(shape * np.log(rate) - gammaln(shape) + (shape - 1) * np.log(x, dtype=float) - rate * x)


def _compound_parts(x: Array, shape: Array, a: Array, b: Array) -> Array:
    logs = (shape - 1) * np.log(x, dtype=float) - shape * np.log(b)
    return np.asarray(logs - betaln(shape, a) - (a + shape) * np.log1p(x / b))


def _without_gaps(parts: Array, x: Array) -> Array:
    """Set the parts of missing values to 0."""
    return np.where(np.isnan(x), 0.0, parts)


def _draw(shape: Array, rate: Array, rng: np.random.Generator) -> Array:
    """Draw Gamma(shape, rate) variates; those of a tiny shape are kept above 0."""
    return np.maximum(rng.gamma(shape) / rate, np.finfo(float).tiny)


def _estimate_shape(stats: GammaStats) -> Array:
    """Estimate the shape of each feature that the classes share, by maximum likelihood, (D,).

    A feature without two rows in a class gets shape 1, and one that does not vary within the classes LARGEST_SHAPE.
    """
    rows = stats.weight > 0
    N = np.where(rows, stats.weight, 1.0)
    gap = stats.weight * (np.log(np.where(rows, stats.total, 1.0) / N) - stats.log_total / N)
    weight = stats.weight.sum(axis=0)
    gap = np.maximum(gap.sum(axis=0) / np.maximum(weight, np.finfo(float).tiny), 0.5 / LARGEST_SHAPE)  # ≈ 1/(2α)
    shape = (3 - gap + np.sqrt((gap - 3) ** 2 + 24 * gap)) / (12 * gap)  # within 1.5 % of the solution
    for _ in range(NEWTON_STEPS):  # Minka's generalized Newton step, in 1/α
        slope = shape - shape**2 * polygamma(1, shape)
        shape = 1 / (1 / shape + (np.log(shape) - psi(shape) - gap) / slope)
    return np.where(weight > rows.sum(axis=0), np.minimum(shape, LARGEST_SHAPE), 1.0)
