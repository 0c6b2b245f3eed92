"""Yes or no, with a Beta prior.

    x | p  ~  Bernoulli(p)
    p      ~  Beta(a, b)
    p | D  ~  Beta(a + N1, b + N0)
    x | D  ~  Bernoulli((a + N1)/(a + b + N1 + N0))     Laplace's rule of succession where a = b = 1

Dense columns keep ones and zeros, so that a missing value costs nothing and log(1 − p) is exact. Sparse rows keep
ones, and rows per class: a word that arrives late was absent before.

Reference: Gelman et al., Bayesian Data Analysis, 3rd ed., section 2.4.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from deciban.errors import HyperparameterError
from deciban.families.counts import linear_scores, log_gamma
from deciban.families.dirichlet import left_over, log_prior, log_rising, log_theta, marginals, require_modes
from deciban.families.posterior import Posterior
from deciban.families.protocol import Density, Family, Rule, own_codes, require_rows
from deciban.read.numbers import entries, plain_numbers, refuse
from deciban.statistics import Array, Axis, Members, Stats, summed

BLOCK = 2**20  # numbers worked on at a time


@dataclass(frozen=True, eq=False, repr=False)
class BernoulliStats(Stats):
    """How often yes and how often no."""

    ones: Array = summed("class", "feature", floor=True)  # Σ w·[x = 1]
    zeros: Array = summed("class", "feature", floor=True)  # Σ w·[x = 0]


@dataclass(frozen=True, eq=False, repr=False)
class SparseBernoulliStats(Stats):
    """How often present, in how many rows."""

    ones: Array = summed("class", "feature", floor=True)  # Σ w·[x = 1]
    rows: Array = summed("class", floor=True)  # Σ w

    @property
    def zeros(self) -> Array:
        """(K, D) rows in which the feature was absent."""
        return left_over(self.rows[:, None], self.ones)


@dataclass(frozen=True, eq=False)
class Bernoulli(Family[Any]):
    """Features that are 0 or 1, independent given the class; dense with NaN for missing, or CSR.

    >>> coin = Bernoulli().fit([1, 1, 0, 0, 0, 1, 0, 1, 1, 1])
    >>> coin.posterior()["p"]
    Marginal(mean 0.5833, sd 0.1367)
    >>> coin.density("ml").p
    array([[0.6]])
    """

    a: Any = 1.0  # pseudo-count of ones: a number, or one per feature
    b: Any = 1.0  # pseudo-count of zeros

    def __post_init__(self) -> None:
        for name in ("a", "b"):
            value = np.asarray(getattr(self, name), dtype=float)
            if value.ndim > 1 or not (np.isfinite(value) & (value > 0)).all():
                raise HyperparameterError(f"Bernoulli({name}={value.tolist()}): one number > 0, or one per feature.")
            object.__setattr__(self, name, value if value.ndim else float(value))

    def encode(self, X: Any, columns: Sequence[str], stats: Any = None) -> Any:
        """Zeros and ones, checked; NaN where missing (dense only)."""
        X = plain_numbers(X, columns)
        self.check(X, columns)
        return X

    def check(self, X: Any, columns: Sequence[str], learning: bool = False) -> None:
        """Values are 0, 1 or missing; a sparse matrix has no missing values."""
        sparse = sp.issparse(X)
        if all(map(_binary, [X.data] if sparse else (X[rows] for rows in blocks(*X.shape)))):
            return
        refuse(
            X,
            columns,
            lambda x: (x != 0) & (x != 1) & (sparse | ~np.isnan(x)),
            "Bernoulli features are 0 or 1",
            "Binarise it, or declare Multinomial() for counts or Gaussian() for measurements.",
        )

    def collect(self, X: Any, members: Members) -> BernoulliStats | SparseBernoulliStats:
        """How often 1 and how often 0, per class and feature."""
        labels = {"class": members.classes, "feature": Axis.of(X.shape[1])}
        if sp.issparse(X):
            return SparseBernoulliStats(labels, members.total(X), members.weights())
        seen, ones, _ = members.moments(X, np.zeros(X.shape[1]))
        return BernoulliStats(labels, ones, left_over(seen, ones))

    def select(self, features: Array) -> Bernoulli:
        """The prior of some features."""
        a, b = (value if np.ndim(value) == 0 else value[features] for value in (self.a, self.b))
        return replace(self, a=a, b=b)

    def _logs(self, ones: Array, zeros: Array, rule: Rule) -> tuple[Array, Array]:
        """The logs of p and of 1 − p."""
        total, both = ones + zeros, self.a + self.b
        return log_theta(ones, total, self.a, both, 2, rule), log_theta(zeros, total, self.b, both, 2, rule)

    def estimate(self, stats: Any, rule: Rule) -> BernoulliDensity:
        """Probabilities; the predictive of one trial is the posterior mean."""
        classes = stats.labels["class"]
        if rule == "ml":
            require_rows(stats.ones + stats.zeros, classes, "Bernoulli")
        on, off = self._logs(stats.ones, stats.zeros, rule)
        require_modes((on + off).T, classes.names, "Bernoulli")
        return BernoulliDensity(on, off)

    def leave_one_out(self, stats: Any, X: Any, members: Members, rule: Rule, density: Density | None = None) -> Array:
        """Only the row's own class changes; rows of one class and weight change it alike, so they share a density."""
        scores = (density or self.estimate(stats, rule)).log_density(X)
        codes, weight = own_codes(members), members.row_weights()
        pairs, at = np.unique(codes + 1j * weight, return_inverse=True)
        if len(pairs) <= 2 * members.K:
            alike = BernoulliDensity(*self.without_row(stats, pairs.real.astype(np.intp), pairs.imag, rule))
            own = alike.log_density(X)[np.arange(len(at)), at]
        else:
            own = (self._own_sparse if sp.issparse(X) else self._own_dense)(stats, X, codes, weight, rule)
        scores[np.arange(len(codes)), codes] = own
        return scores

    def without_row(self, stats: Any, k: Array, w: Array, rule: Rule) -> tuple[Array, ...]:
        """(pairs, D) each: log p less a row of weight w that had a one, and log(1 − p) less one that had a zero."""
        ones, zeros, both = stats.ones[k], stats.zeros[k], self.a + self.b
        total = left_over(ones + zeros, w[:, None])
        on = log_theta(left_over(ones, w[:, None]), total, self.a, both, 2, rule)
        off = log_theta(left_over(zeros, w[:, None]), total, self.b, both, 2, rule)
        return tuple(np.where(np.isnan(log), -np.inf, log) for log in (on, off))  # no class left

    def _own_dense(self, stats: Any, X: Array, codes: Array, weight: Array, rule: Rule) -> Array:
        own = np.empty(len(X))
        for rows in blocks(*X.shape):
            on, off = self.without_row(stats, codes[rows], weight[rows], rule)
            own[rows] = np.where(np.isnan(X[rows]), 0.0, np.where(X[rows] == 1, on, off)).sum(axis=1)
        return own

    def _own_sparse(self, stats: Any, X: Any, codes: Array, weight: Array, rule: Rule) -> Array:
        own = np.empty(len(codes))
        for rows in blocks(*X.shape):
            on, off = self.without_row(stats, codes[rows], weight[rows], rule)
            row, column, _ = entries(X[rows])
            off[row, column] = on[row, column]
            own[rows] = off.sum(axis=1)
        return own

    def log_evidence(self, stats: Any) -> Array:
        """(K,) each feature's Beta function after over before."""
        ones, zeros = stats.ones, stats.zeros
        each = log_rising(self.a, ones) + log_rising(self.b, zeros) - log_rising(self.a + self.b, ones + zeros)
        return np.asarray(each.sum(axis=1))

    def log_prior(self, density: BernoulliDensity) -> float:
        """The log of Beta(a, b) at the probabilities, up to a constant: what `map` adds to the log-likelihood."""
        return log_prior(density.log_on, self.a) + log_prior(density.log_off, self.b)

    def posterior(self, stats: Any) -> Posterior:
        """Beta marginals of the probabilities, (K, D)."""
        ones, zeros = stats.ones, stats.zeros
        on, off = self._logs(ones, zeros, "map")
        return marginals(ones + self.a, ones + zeros + self.a + self.b, np.where(np.isnan(off), np.nan, np.exp(on)))

    def draw(self, stats: Any, rng: np.random.Generator) -> BernoulliDensity:
        """Draw p from its Beta posterior."""
        on, off = log_gamma(stats.ones + self.a, rng), log_gamma(stats.zeros + self.b, rng)
        both = np.logaddexp(on, off)
        return BernoulliDensity(on - both, off - both)

    @staticmethod
    def of(p: Any) -> BernoulliDensity:
        """A known probability, or one per feature."""
        p = np.atleast_2d(np.asarray(p, dtype=float))
        if not ((p >= 0) & (p <= 1)).all():
            raise HyperparameterError(f"Bernoulli.of({p.tolist()}): probabilities lie between 0 and 1.")
        with np.errstate(divide="ignore"):
            return BernoulliDensity(np.log(p), np.log1p(-p))


@dataclass(frozen=True, eq=False)
class BernoulliDensity(Density):
    """Independent zeros and ones, by log p and log(1 − p), (K, D) each."""

    log_on: Array
    log_off: Array

    @property
    def K(self) -> int:
        return len(self.log_on)

    @property
    def p(self) -> Array:
        """(K, D) the probabilities of a one."""
        return np.exp(self.log_on)

    def parts(self, X: Any) -> Array:
        """(n, K, D); a missing value says nothing."""
        x = (X.toarray() if sp.issparse(X) else X)[:, None, :]
        return np.where(np.isnan(x), 0.0, np.where(x == 1, self.log_on, self.log_off))

    def log_density(self, X: Any) -> Array:
        """What all absent would score, and what each presence changes."""
        gaps = None if sp.issparse(X) or not np.isnan(np.sum(X)) else np.isnan(X)
        x = X if gaps is None else np.where(gaps, 0.0, X)
        never = np.isneginf(self.log_off)  # where p = 1, an absence is impossible
        off = np.where(never, 0.0, self.log_off)
        bias = off.sum(axis=1)
        scores = linear_scores(x, np.ascontiguousarray((self.log_on - off).T), bias)
        if gaps is not None:
            scores -= gaps @ off.T
        if never.any():
            absent = never.sum(axis=1) - linear_scores(x, np.ascontiguousarray(never.T, dtype=float), np.zeros(self.K))
            scores[absent - (0 if gaps is None else gaps @ never.T.astype(float)) > 0] = -np.inf
        return scores

    def polynomial(self) -> tuple[None, Array, Array]:
        """Linear: the log odds of each feature, and what all absent would score."""
        return None, self.log_on - self.log_off, self.log_off.sum(axis=1)

    def sample(self, codes: Array, rng: np.random.Generator) -> Array:
        """Zeros and ones as floats."""
        return (rng.random((len(codes), self.log_on.shape[1])) < self.p[codes]).astype(float)


def _binary(x: Array) -> bool:
    """Whether all are 0 or 1, in one quick look; NaN is not."""
    with np.errstate(over="ignore"):
        return not np.any(x * (x - 1))


def blocks(n: int, width: int) -> Iterator[slice]:
    """Slices of n rows of about a million numbers each."""
    step = max(1, BLOCK // max(width, 1))
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))
