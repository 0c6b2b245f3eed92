"""Poisson counts with a Gamma prior.

    x | λ  ~  Poisson(λ)
    λ      ~  Gamma(a, b)             mean a/b, b is a rate
    λ | D  ~  Gamma(a + Σx, b + n)    the prior counts as b rows holding a events
    x | D  ~  NegativeBinomial(a + Σx, (b + n)/(b + n + 1))

Reference: Gelman et al., Bayesian Data Analysis, 3rd ed., section 2.6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import gammaln, xlogy

from deciban.errors import HyperparameterError, NoModeError
from deciban.families.dirichlet import log_factorial, log_rising
from deciban.families.posterior import Marginal, Posterior
from deciban.families.protocol import Density, Family, Rule, own_codes, require_rows
from deciban.read.numbers import dense_numbers, refuse, refuse_infinite
from deciban.statistics import Array, Axis, Members, Stats, summed


@dataclass(frozen=True, eq=False, repr=False)
class PoissonStats(Stats):
    """What a Poisson rate needs of the data."""

    weight: Array = summed("class", "feature", floor=True)  # Σ w         rows that had a value
    total: Array = summed("class", "feature", floor=True)  # Σ w·x
    log_factorial: Array = summed("class", "feature", "digit")  # Σ w·log x!   two numbers that add exactly


@dataclass(frozen=True, eq=False)
class Poisson(Family[PoissonStats]):
    """Counts at a constant rate; features independent given the class.

    >>> calls = Poisson(shape=1, rate=1).fit([[3], [5], [4]])
    >>> calls.posterior()["rate"]
    Marginal(mean 3.25, sd 0.9014)
    """

    shape: Any = None  # a: a number, or one per feature; None is rate × the pooled mean, frozen at the first fit
    rate: float = 1.0  # b

    def __post_init__(self) -> None:
        if self.rate <= 0 or (self.shape is not None and np.min(self.shape) <= 0):
            raise HyperparameterError(f"Poisson(shape={self.shape}, rate={self.rate}): both must be > 0.")

    def encode(self, X: Any, columns: Sequence[str], stats: Any = None) -> Array:
        """Counts, checked: at least 0, NaN where missing."""
        X = dense_numbers(X, columns)
        self.check(X, columns)
        return X

    def check(self, X: Array, columns: Sequence[str], learning: bool = False) -> None:
        """Counts are finite and at least 0."""
        refuse_infinite(X, columns)
        refuse(
            X, columns, lambda x: x < 0, "Poisson counts must be ≥ 0", "Drop the row, or declare the column Gaussian()."
        )

    def collect(self, X: Array, members: Members) -> PoissonStats:
        """Σw, Σwx and Σw·log x!, per class and feature."""
        seen, total, _ = members.moments(X, np.zeros(X.shape[1]))
        labels = {"class": members.classes, "feature": Axis.of(X.shape[1])}
        digits = log_factorial(np.where(np.isnan(X), 0.0, X)).reshape(len(X), 2 * X.shape[1])
        return PoissonStats(labels, seen, total, members.total(digits).reshape(*total.shape, 2))

    def footprint(self, X: Array, members: Members) -> PoissonStats:
        """Return the sums without Σw·log x!."""
        seen, total, _ = members.moments(X, np.zeros(X.shape[1]))
        labels = {"class": members.classes, "feature": Axis.of(X.shape[1])}
        return PoissonStats(labels, seen, total, np.zeros((*total.shape, 2)))

    def choose(self, stats: PoissonStats, rows: Any = None, rule: Rule = "mean") -> Poisson:
        """One pseudo-row at the pooled mean."""
        if self.shape is not None:
            return self
        seen, total = stats.weight.sum(axis=0), stats.total.sum(axis=0)
        pooled = np.where(total > 0, total, 0.5) / np.maximum(seen, 1)  # a column of zeros: half an event
        return replace(self, shape=self.rate * pooled)

    def select(self, features: Array) -> Poisson:
        """The prior of some features."""
        return self if np.ndim(self.shape) == 0 else replace(self, shape=self.shape[features])

    def _gamma(self, stats: PoissonStats) -> tuple[Array, Array]:
        shape = self.choose(stats).shape
        return stats.total + shape, stats.weight + self.rate

    def estimate(self, stats: PoissonStats, rule: Rule) -> Density:
        """Rates, or the negative binomial that integrates them out."""
        if rule == "ml":
            require_rows(stats.weight, stats.labels["class"], "Poisson")  # type: ignore[arg-type]
            return PoissonDensity(stats.total / stats.weight)
        a, b = self._gamma(stats)
        if rule == "map":
            if np.any(a < 1):
                raise NoModeError("a Poisson rate with shape + Σx < 1 has no posterior mode. Use rule 'mean'.")
            return PoissonDensity((a - 1) / b)
        return PoissonDensity(a / b) if rule == "mean" else NegativeBinomialDensity(a, b)

    def leave_one_out(
        self, stats: PoissonStats, X: Array, members: Members, rule: Rule, density: Density | None = None
    ) -> Array:
        """Only the row's own class changes: it is estimated from the sums without the row."""
        scores = (density or self.estimate(stats, rule)).log_density(X)
        own, w = own_codes(members), members.row_weights()[:, None]
        seen = ~np.isnan(X)
        x = np.where(seen, X, 0.0)
        weight, total = stats.weight[own] - w * seen, np.maximum(stats.total[own] - w * x, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            if rule == "ml":
                parts = _poisson_parts(x, np.where(weight > 0, total / weight, np.nan))
            else:
                a, b = total + self.choose(stats).shape, weight + self.rate
                parts = (
                    _negative_binomial_parts(x, a, b)
                    if rule == "predictive"
                    else _poisson_parts(x, (np.where(a >= 1, a - 1, np.nan) if rule == "map" else a) / b)
                )
        own_score = np.where(seen, parts, 0.0).sum(axis=1)
        scores[np.arange(len(own)), own] = np.where(np.isnan(own_score), -np.inf, own_score)  # no class left
        return scores

    def log_evidence(self, stats: PoissonStats) -> Array:
        """(K,) each feature's Gamma normaliser after over before, less Σ log x!."""
        a, b = self._gamma(stats)
        a0, b0 = self.choose(stats).shape, self.rate
        each = a0 * np.log(b0) - a * np.log(b) + log_rising(a0, stats.total) - stats.log_factorial.sum(axis=2)
        return np.asarray(each.sum(axis=1))

    def log_prior(self, density: PoissonDensity) -> float:
        """The log of Gamma(a, b) at the rates, up to a constant: what `map` adds to the log-likelihood."""
        return float(np.sum(xlogy(self.shape - 1.0, density.rate) - self.rate * density.rate))

    def posterior(self, stats: PoissonStats) -> Posterior:
        """Gamma marginals of the rates, (K, D)."""
        from scipy import stats as sps  # a quarter of a second that answers need not wait for

        a, b = self._gamma(stats)
        return Posterior({"rate": Marginal.exact(sps.gamma(a, scale=1 / b), np.where(a >= 1, (a - 1) / b, np.nan))})

    def draw(self, stats: PoissonStats, rng: np.random.Generator) -> PoissonDensity:
        """Draw rates from their Gamma posterior."""
        a, b = self._gamma(stats)
        return PoissonDensity(rng.gamma(a) / b)

    @staticmethod
    def of(rate: Any) -> PoissonDensity:
        """A known rate, or one per feature."""
        return PoissonDensity(np.atleast_2d(np.asarray(rate, dtype=float)))


def _poisson_parts(x: Array, rate: Array) -> Array:
    return xlogy(x, rate) - rate - gammaln(x + 1.0)


def _negative_binomial_parts(x: Array, a: Array, b: Array) -> Array:
    return log_rising(a, x) - gammaln(x + 1.0) - a * np.log1p(1 / b) - x * np.log1p(b)


@dataclass(frozen=True, eq=False)
class PoissonDensity(Density):
    """Independent Poisson counts at known rates (K, D)."""

    rate: Array

    @property
    def K(self) -> int:
        return len(self.rate)

    def parts(self, X: Array) -> Array:
        """(n, K, D); a missing value says nothing."""
        return np.nan_to_num(_poisson_parts(X[:, None, :], self.rate), nan=0.0, neginf=-np.inf)

    def log_density(self, X: Array) -> Array:
        """A class at a time keeps memory at (n, D)."""
        return np.stack([PoissonDensity(rate[None]).parts(X)[:, 0].sum(axis=1) for rate in self.rate], axis=1)

    def polynomial(self) -> tuple[None, Array, Array]:
        """Linear: log λ per event, less the rates."""
        with np.errstate(divide="ignore"):
            return None, np.log(self.rate), -self.rate.sum(axis=1)

    def sample(self, codes: Array, rng: np.random.Generator) -> Array:
        """Counts as floats."""
        return rng.poisson(self.rate[codes]).astype(float)


@dataclass(frozen=True, eq=False)
class NegativeBinomialDensity(Density):
    """Poisson with the rate integrated out: Gamma(a, b), arrays (K, D)."""

    a: Array
    b: Array

    @property
    def K(self) -> int:
        return len(self.a)

    def parts(self, X: Array) -> Array:
        """(n, K, D); a missing value says nothing."""
        return np.nan_to_num(_negative_binomial_parts(X[:, None, :], self.a, self.b), nan=0.0, neginf=-np.inf)

    def log_density(self, X: Array) -> Array:
        """A class at a time keeps memory at (n, D)."""
        pairs = zip(self.a, self.b)
        return np.stack(
            [NegativeBinomialDensity(a[None], b[None]).parts(X)[:, 0].sum(axis=1) for a, b in pairs], axis=1
        )

    def sample(self, codes: Array, rng: np.random.Generator) -> Array:
        """A rate from its posterior for each row, then counts."""
        return rng.poisson(rng.gamma(self.a[codes], 1 / self.b[codes])).astype(float)
