"""Poisson counts with a Gamma prior.

    x | λ  ~  Poisson(λ)
    λ      ~  Gamma(a, b)             mean a/b, b is a rate
    λ | D  ~  Gamma(a + Σx, b + n)    the prior counts as b rows holding a events
    x | D  ~  NegativeBinomial(a + Σx, (b + n)/(b + n + 1))

Reference: Gelman et al., Bayesian Data Analysis, 3rd ed., section 2.6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln, xlogy

from deciban.errors import OR_GAUSSIAN, DecibanError, HyperparameterError, InputError, NoModeError
from deciban.families import limits
from deciban.families.abilities import (
    HasDraws,
    HasEvidence,
    HasFootprint,
    HasLeftOutFeatures,
    HasLogPrior,
    HasPosterior,
)
from deciban.families.dirichlet import log_factorial, log_rising
from deciban.families.protocol import Density, Family, Input, Marginal, Posterior, Rule, classes_of, require_rows
from deciban.kernels.parallel import row_scores
from deciban.read.arrays import refuse, refuse_infinite
from deciban.read.tables import dense_numbers
from deciban.statistics import Array, Axis, Members, Stats, peak, summed

BLOCK_CELLS = 2**15  # values of all classes that are scored at a time
WORK = 80  # elementary operations of the logarithm and the sums of a value, for chunks of rows


@dataclass(frozen=True, eq=False, repr=False)
class PoissonStats(Stats):
    """Numbers of rows and of events."""

    sizes: ClassVar = {"digit": 2}

    weight: Array = summed("class", "feature", floor=True)  # Σ w         rows that have a value
    total: Array = summed("class", "feature", floor=True)  # Σ w·x
    log_factorial: Array = summed("class", "feature", "digit")  # Σ w·log x!   two numbers that add exactly
    peak: Array | None = peak(
        "total", "class", "feature", weight="weight"
    )  # the largest value of `total`, where it was rounded

    def refuse_lost(self, other: Self, error: type[DecibanError]) -> None:
        self.refuse_lost_digits("total", other, self.weight - other.weight, error, least=1.0)


@dataclass(frozen=True, eq=False)
class Poisson(Family[PoissonStats], HasEvidence, HasPosterior, HasDraws, HasLogPrior, HasFootprint, HasLeftOutFeatures):
    """Counts at a constant rate; features independent given the class.

    Counts are whole numbers; nothing is rounded, a value such as 5.1 raises DomainError.

    Parameters
    ----------
    shape : float or array-like of shape (n_features,), optional
        Shape a of the Gamma prior: events in the pseudo-rows. If None, `rate` × the mean of all classes
        together.
    rate : float, default=1.0
        Rate b of the Gamma prior: number of pseudo-rows.
    limit : array-like of shape (n_features,), optional
        Larger counts count as missing. If None, there is no limit; a default fit sets one.

    Examples
    --------
    >>> calls = Poisson(shape=1, rate=1).fit([[3], [5], [4]])
    >>> calls.posterior()["rate"]
    Marginal(mean 3.25, sd 0.9014)
    """

    shapes: ClassVar = {"shape": "D | 1 positive", "limit": "D positive"}

    shape: float | Array | None = None  # a, () or (D,)
    rate: float = 1.0  # b
    _: KW_ONLY
    limit: Array | None = field(default=None, repr=False)  # (D,)

    @property
    def accepts(self) -> frozenset[str]:
        return frozenset({"gaps"})

    def __post_init__(self) -> None:
        if self.rate <= 0 or (self.shape is not None and np.min(self.shape) <= 0):
            raise HyperparameterError(f"Poisson(shape={self.shape}, rate={self.rate}): both must be > 0.")
        if self.limit is not None:
            object.__setattr__(self, "limit", limits.checked(self.limit, "limit"))

    def encode(self, X: Input, columns: Sequence[str], stats: PoissonStats | None = None) -> Array:
        rows = dense_numbers(X, columns)
        self.check(rows, columns)
        return rows

    def check(self, X: Array, columns: Sequence[str], learning: bool = False) -> None:
        refuse_infinite(X, columns)
        X = limits.masked(X, self.limit)
        refuse(X, columns, lambda x: x < 0, "Poisson counts must be ≥ 0", OR_GAUSSIAN)
        remedy = "Nothing is rounded: round it yourself, or declare the column Gamma() or Gaussian()."
        refuse(X, columns, lambda x: x > np.floor(x), "Poisson counts must be whole numbers", remedy)

    def collect(self, X: Array, members: Members) -> PoissonStats:
        X = limits.learnt_values(X, self.limit)
        seen, total, _ = members.moments(X, np.zeros(X.shape[1]))
        labels = {"class": members.classes, "feature": Axis.of(X.shape[1])}
        digits = log_factorial(np.where(np.isnan(X), 0.0, X)).reshape(len(X), 2 * X.shape[1])
        return PoissonStats(labels, seen, total, members.total(digits).reshape(*total.shape, 2))

    def footprint(self, X: Array, members: Members) -> PoissonStats:
        X = limits.masked(X, self.limit)
        seen, total, _ = members.moments(X, np.zeros(X.shape[1]))
        labels = {"class": members.classes, "feature": Axis.of(X.shape[1])}
        return PoissonStats(labels, seen, total, np.zeros((*total.shape, 2)))

    def resolve(self, stats: PoissonStats) -> Poisson:
        return self if self.shape is not None else replace(self, shape=self._shape(stats))

    def _shape(self, stats: PoissonStats) -> float | Array:
        """Return the shape of the prior; by default `rate` pseudo-rows at the pooled mean."""
        if self.shape is not None:
            return self.shape
        seen, total = stats.weight.sum(axis=0), stats.total.sum(axis=0)
        return np.asarray(
            self.rate * (np.where(total > 0, total, 0.5) / np.maximum(seen, 1))
        )  # a column of zeros: half an event

    def select(self, features: Array) -> Poisson:
        shape = self.shape[features] if isinstance(self.shape, np.ndarray) else self.shape
        return replace(self, shape=shape, limit=None if self.limit is None else self.limit[features])

    def _gamma(self, stats: PoissonStats) -> tuple[Array, Array]:
        """Return shape and rate of the posterior, (K, D) each."""
        return stats.total + self._shape(stats), stats.weight + self.rate

    def estimate(self, stats: PoissonStats, rule: Rule) -> Density:
        if rule == "ml":
            require_rows(stats.weight, classes_of(stats.labels), "Poisson")
            return PoissonDensity(stats.total / stats.weight, limit=self.limit)
        a, b = self._gamma(stats)
        if rule == "map":
            if np.any(a < 1):
                raise NoModeError("a Poisson rate with shape + Σx < 1 has no posterior mode. Use rule 'mean'.")
            return PoissonDensity((a - 1) / b, limit=self.limit)
        if rule == "mean":
            return PoissonDensity(a / b, limit=self.limit)
        return NegativeBinomialDensity(a, b, limit=self.limit)

    def leave_one_out(
        self, stats: PoissonStats, X: Array, members: Members, rule: Rule, density: Density | None = None
    ) -> Array:
        # only the density of the row's own class changes
        X = limits.masked(X, self.limit)
        scores = (density or self.estimate(stats, rule)).log_density(X)
        own = members.own_codes()
        scores[np.arange(len(own)), own] = self._left_out_own(stats, X, members, rule).sum(axis=1)
        return scores

    def separate(self, stats: PoissonStats) -> bool:
        return True

    def left_out_features(self, stats: PoissonStats, X: Array, members: Members, rule: Rule) -> Array:
        X = limits.masked(X, self.limit)
        scores = self.estimate(stats, rule).parts(X)  # type: ignore[attr-defined]
        own = members.own_codes()
        scores[np.arange(len(own)), own] = self._left_out_own(stats, X, members, rule)
        return np.asarray(scores)

    def _left_out_own(self, stats: PoissonStats, X: Array, members: Members, rule: Rule) -> Array:
        """Return the log probability of each value in its row's class, without the row, (n, D); 0 where missing."""
        own, w = members.own_codes(), members.row_weights()[:, None]
        seen = ~np.isnan(X)
        x = np.where(seen, X, 0.0)
        weight, total = stats.weight[own] - w * seen, np.maximum(stats.total[own] - w * x, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            if rule == "ml":
                parts = _poisson_parts(x, np.where(weight > 0, total / weight, np.nan))
            else:
                a, b = total + self._shape(stats), weight + self.rate
                parts = (
                    _negative_binomial_parts(x, a, b)
                    if rule == "predictive"
                    else _poisson_parts(x, (np.where(a >= 1, a - 1, np.nan) if rule == "map" else a) / b)
                )
        return np.where(seen, np.where(np.isnan(parts), -np.inf, parts), 0.0)  # NaN: no other rows

    def log_evidence(self, stats: PoissonStats) -> Array:
        a, b = self._gamma(stats)
        a0, b0 = self._shape(stats), self.rate
        each = a0 * np.log(b0) - a * np.log(b) + log_rising(a0, stats.total) - stats.log_factorial.sum(axis=2)
        return np.asarray(each.sum(axis=1))

    def log_prior(self, density: PoissonDensity) -> float:
        if self.shape is None:
            raise HyperparameterError(
                "the prior of Poisson(shape=None) is derived from sums. Call resolve(stats), or give shape."
            )
        return float(np.sum(xlogy(self.shape - 1.0, density.rate) - self.rate * density.rate))

    def posterior(self, stats: PoissonStats) -> Posterior:
        from scipy import stats as sps  # lazy: scipy.stats is slow to import

        a, b = self._gamma(stats)
        return Posterior({"rate": Marginal.exact(sps.gamma(a, scale=1 / b), np.where(a >= 1, (a - 1) / b, np.nan))})

    def draw(self, stats: PoissonStats, rng: np.random.Generator, times: int = 1) -> PoissonDensity:
        a, b = (np.concatenate([each] * times) for each in np.broadcast_arrays(*self._gamma(stats)))
        return PoissonDensity(rng.gamma(a) / b, limit=self.limit)

    @staticmethod
    def of(rate: ArrayLike) -> PoissonDensity:
        """Return the density of known rates.

        Parameters
        ----------
        rate : float or array-like of shape (n_features,)
            Mean count of each feature.

        Returns
        -------
        PoissonDensity
            The density of a single class.
        """
        return PoissonDensity(np.atleast_2d(np.asarray(rate, dtype=float)))


def _poisson_parts(x: Array, rate: Array) -> Array:
    return np.asarray(xlogy(x, rate) - rate - gammaln(x + 1.0))


def _negative_binomial_parts(x: Array, a: Array, b: Array) -> Array:
    return np.asarray(log_rising(a, x) - gammaln(x + 1.0) - a * np.log1p(1 / b) - x * np.log1p(b))


@dataclass(frozen=True, eq=False)
class PoissonDensity(Density):
    """Independent Poisson counts at known rates."""

    shapes: ClassVar = {"rate": "K D count", "limit": "D positive"}

    rate: Array  # (K, D)
    _: KW_ONLY
    limit: Array | None = None  # (D,) larger counts count as missing

    @property
    def K(self) -> int:
        return len(self.rate)

    def parts(self, X: Array) -> Array:
        """Return the log probability of each value, shape (n, K, D); 0 where it is missing."""
        if X.shape[1] != self.rate.shape[1]:
            raise InputError(f"rows of {X.shape[1]} columns for a density of {self.rate.shape[1]}. Give as many.")
        X = limits.masked(X, self.limit)
        return np.nan_to_num(_poisson_parts(X[:, None, :], self.rate), nan=0.0, neginf=-np.inf)

    def log_density(self, X: Array) -> Array:
        """Return the scores, shape (n, K); computed for blocks of rows, so that memory is bounded."""
        return row_scores(self._scores, X, self.K, WORK * self.rate.size)

    def _scores(self, X: Array) -> Array:
        step = max(1, BLOCK_CELLS // max(1, self.rate.size))
        blocks = [self.parts(X[at : at + step]).sum(axis=2) for at in range(0, max(1, len(X)), step)]
        return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)

    def moments(self) -> tuple[Array, Array]:
        """Return means and variances, (K, D) each; both are the rate."""
        return self.rate, self.rate

    def polynomial(self) -> tuple[None, Array, Array]:
        """Return None, log λ and −Σλ: linear in the counts."""
        with np.errstate(divide="ignore"):
            return None, np.log(self.rate), -self.rate.sum(axis=1)

    def sample(self, codes: Array, rng: np.random.Generator) -> Array:
        """Draw counts, as floats."""
        return rng.poisson(self.rate[codes]).astype(float)


@dataclass(frozen=True, eq=False)
class NegativeBinomialDensity(Density):
    """Poisson counts, the rate integrated out over Gamma(a, b)."""

    shapes: ClassVar = {"a": "K D positive", "b": "K D positive", "limit": "D positive"}

    a: Array  # (K, D)
    b: Array  # (K, D)
    _: KW_ONLY
    limit: Array | None = None  # (D,) larger counts count as missing

    @property
    def K(self) -> int:
        return len(self.a)

    def moments(self) -> tuple[Array, Array]:
        """Return means and variances, (K, D) each."""
        mean = self.a / self.b
        return mean, mean * (1 + 1 / self.b)

    def parts(self, X: Array) -> Array:
        """Return the log probability of each value, shape (n, K, D); 0 where it is missing."""
        X = limits.masked(X, self.limit)
        return np.nan_to_num(_negative_binomial_parts(X[:, None, :], self.a, self.b), nan=0.0, neginf=-np.inf)

    def log_density(self, X: Array) -> Array:
        """Return the scores, shape (n, K); computed class by class, in memory of (n, D)."""

        def score(rows: Array) -> Array:
            rows = limits.masked(rows, self.limit)
            each = [NegativeBinomialDensity(a[None], b[None]).parts(rows) for a, b in zip(self.a, self.b)]
            return np.stack([part[:, 0].sum(axis=1) for part in each], axis=1)

        return row_scores(score, X, self.K, WORK * self.a.size)

    def sample(self, codes: Array, rng: np.random.Generator) -> Array:
        """Draw a rate from its posterior for each row, then counts."""
        return rng.poisson(rng.gamma(self.a[codes], 1 / self.b[codes])).astype(float)
