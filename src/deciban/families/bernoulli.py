"""Features that are 0 or 1, with a Beta prior.

    x | p  ~  Bernoulli(p)
    p      ~  Beta(a, b)
    p | D  ~  Beta(a + N1, b + N0)
    x | D  ~  Bernoulli((a + N1)/(a + b + N1 + N0))     Laplace's rule of succession where a = b = 1

Dense columns sum ones and zeros separately: missing values are allowed, and log(1 − p) keeps its digits. Sparse
columns sum ones and the rows of each class: a feature first seen in a later batch was 0 in all rows before.

`Gaps` has the same model for whether the value of a column is missing. It is an expert beside the families of the
columns, to which a missing value adds nothing: gaps are evidence where they are more common in one class than in
another.

Reference: Gelman et al., Bayesian Data Analysis, 3rd ed., section 2.4.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from deciban.errors import Argument, HyperparameterError, NotAvailableError, Remedy
from deciban.families.abilities import HasDraws, HasEvidence, HasLeftOutFeatures, HasLogPrior, HasPosterior
from deciban.families.dirichlet import (
    left_over,
    linear_scores,
    log_gamma,
    log_prior,
    log_rising,
    log_theta,
    marginals,
    require_modes,
)
from deciban.families.protocol import Density, Family, Input, Posterior, Rule, classes_of, require_rows
from deciban.read.arrays import Matrix, entries, is_sparse, plain_numbers, refuse
from deciban.read.tables import Columns, Table
from deciban.statistics import Array, Axis, Labels, Members, Stats, summed

BLOCK = 2**20  # values in a block of rows
LEAST = 1e-300  # of a and b: the quantiles of a beta distribution with less overflow


@dataclass(frozen=True, eq=False, repr=False)
class BernoulliStats(Stats):
    """Numbers of ones and of zeros; a missing value adds to neither."""

    ones: Array = summed("class", "feature", floor=True)  # Σ w·[x = 1]
    zeros: Array = summed("class", "feature", floor=True)  # Σ w·[x = 0]


@dataclass(frozen=True, eq=False, repr=False)
class SparseBernoulliStats(Stats):
    """Numbers of ones, and of rows; nothing is missing."""

    ones: Array = summed("class", "feature", floor=True)  # Σ w·[x = 1]
    rows: Array = summed("class", floor=True)  # Σ w

    @property
    def zeros(self) -> Array:
        """(K, D) Σ w·[x = 0]."""
        return left_over(self.rows[:, None], self.ones)


class BinaryCounts(Protocol):
    """Numbers of ones and of zeros, from which parameters are estimated."""

    @property
    def labels(self) -> Mapping[str, Labels]: ...

    @property
    def ones(self) -> Array: ...  # (K, D)

    @property
    def zeros(self) -> Array: ...  # (K, D)


AnyBernoulliStats: TypeAlias = BernoulliStats | SparseBernoulliStats


@dataclass(frozen=True, eq=False)
class Bernoulli(Family[AnyBernoulliStats], HasEvidence, HasPosterior, HasDraws, HasLogPrior, HasLeftOutFeatures):
    """Features that are 0 or 1, independent given the class.

    Rows are dense, with NaN for missing values, or a sparse matrix.

    Parameters
    ----------
    a : float or array-like of shape (n_features,), default=1.0
        Pseudo-count of ones.
    b : float or array-like of shape (n_features,), default=1.0
        Pseudo-count of zeros.

    Examples
    --------
    >>> coin = Bernoulli().fit([1, 1, 0, 0, 0, 1, 0, 1, 1, 1])
    >>> coin.posterior()["p"]
    Marginal(mean 0.5833, sd 0.1367)
    >>> coin.density("ml").p
    array([[0.6]])
    """

    shapes: ClassVar = {"a": "D | 1 positive", "b": "D | 1 positive"}

    a: float | Array = 1.0  # () or (D,)
    b: float | Array = 1.0  # () or (D,)

    @property
    def accepts(self) -> frozenset[str]:
        return frozenset({"gaps", "sparse"})

    def __post_init__(self) -> None:
        for name in ("a", "b"):
            value = np.asarray(getattr(self, name), dtype=float)
            if value.ndim > 1 or not (np.isfinite(value) & (value >= LEAST)).all():
                raise HyperparameterError(
                    f"Bernoulli({name}={value.tolist()}): give one number of at least {LEAST:g}, or one per feature."
                )
            object.__setattr__(self, name, value if value.ndim else float(value))

    def encode(self, X: Input, columns: Sequence[str], stats: AnyBernoulliStats | None = None) -> Matrix:
        rows: Matrix = plain_numbers(X, columns)
        self.check(rows, columns)
        return rows

    def check(self, X: Matrix, columns: Sequence[str], learning: bool = False) -> None:
        sparse = sp.issparse(X)
        if all(map(_binary, [X.data] if is_sparse(X) else (X[rows] for rows in blocks(*X.shape)))):
            return
        refuse(
            X,
            columns,
            lambda x: (x != 0) & (x != 1) & (sparse | ~np.isnan(x)),
            "Bernoulli features are 0 or 1",
            Remedy(
                "Binarise the column, or declare ",
                Argument("family", "multinomial", "Multinomial()"),
                " for counts or ",
                Argument("family", "gaussian", "Gaussian()"),
                " for measurements.",
            ),
        )

    def collect(self, X: Matrix, members: Members) -> AnyBernoulliStats:
        labels = {"class": members.classes, "feature": Axis.of(X.shape[1])}
        if sp.issparse(X):
            return SparseBernoulliStats(labels, members.total(X), members.weights())
        seen, ones, _ = members.moments(X, np.zeros(X.shape[1]))
        return BernoulliStats(labels, ones, left_over(seen, ones))

    def select(self, features: Array) -> Bernoulli:
        a, b = (value[features] if isinstance(value, np.ndarray) else value for value in (self.a, self.b))
        return replace(self, a=a, b=b)

    def _logs(self, ones: Array, zeros: Array, rule: Rule) -> tuple[Array, Array]:
        """Return log p and log(1 − p), (K, D) each."""
        total, both = ones + zeros, self.a + self.b
        return log_theta(ones, total, self.a, both, 2, rule), log_theta(zeros, total, self.b, both, 2, rule)

    def estimate(self, stats: BinaryCounts, rule: Rule) -> BernoulliDensity:
        classes = classes_of(stats.labels)  # under "predictive", the probability of a one is the posterior mean
        if rule == "ml":
            require_rows(stats.ones + stats.zeros, classes, "Bernoulli")
        on, off = self._logs(stats.ones, stats.zeros, rule)
        require_modes((on + off).T, classes.names, "Bernoulli")
        return BernoulliDensity(on, off)

    def leave_one_out(
        self, stats: AnyBernoulliStats, X: Matrix, members: Members, rule: Rule, density: Density | None = None
    ) -> Array:
        # only the density of the row's own class changes, and equally for all rows of the same class and weight
        scores = (density or self.estimate(stats, rule)).log_density(X)
        codes, weight = members.own_codes(), members.row_weights()
        pairs, at = np.unique(codes + 1j * weight, return_inverse=True)
        if len(pairs) <= 2 * members.K:
            alike = BernoulliDensity(*self.without_row(stats, pairs.real.astype(np.intp), pairs.imag, rule))
            own = alike.log_density(X)[np.arange(len(at)), at]
        else:
            own = (self._own_sparse if sp.issparse(X) else self._own_dense)(stats, X, codes, weight, rule)
        scores[np.arange(len(codes)), codes] = own
        return scores

    def without_row(self, stats: BinaryCounts, k: Array, w: Array, rule: Rule) -> tuple[Array, Array]:
        """Estimate log p and log(1 − p) without one row, for pairs of class and weight.

        Parameters
        ----------
        stats : BernoulliStats or SparseBernoulliStats
            Sums that contain the rows.
        k : ndarray of shape (P,)
            Class of each pair.
        w : ndarray of shape (P,)
            Weight of the row that is removed.
        rule : {"ml", "map", "mean", "predictive"}
            How parameters are obtained from the sums.

        Returns
        -------
        on, off : ndarray of shape (P, D)
            Log p without a row that had a one, and log(1 − p) without a row that had a zero.
        """
        ones, zeros, both = stats.ones[k], stats.zeros[k], self.a + self.b
        total = left_over(ones + zeros, w[:, None])
        on = log_theta(left_over(ones, w[:, None]), total, self.a, both, 2, rule)
        off = log_theta(left_over(zeros, w[:, None]), total, self.b, both, 2, rule)
        return _or_impossible(on), _or_impossible(off)

    def _own_dense(self, stats: AnyBernoulliStats, X: Array, codes: Array, weight: Array, rule: Rule) -> Array:
        own = np.empty(len(X))
        for rows in blocks(*X.shape):
            on, off = self.without_row(stats, codes[rows], weight[rows], rule)
            own[rows] = _of_values(X[rows], on, off).sum(axis=1)
        return own

    def left_out_features(self, stats: AnyBernoulliStats, X: Matrix, members: Members, rule: Rule) -> Array:
        if not isinstance(X, np.ndarray):
            raise NotAvailableError("the features of a sparse table are scored together. Give a dense one.")
        codes = members.own_codes()
        scores = self.estimate(stats, rule).parts(X)
        on, off = self.without_row(stats, codes, members.row_weights(), rule)
        scores[np.arange(len(codes)), codes] = _of_values(X, on, off)
        return np.asarray(scores)

    def separate(self, stats: AnyBernoulliStats) -> bool:
        return isinstance(stats, BernoulliStats)

    def _own_sparse(self, stats: AnyBernoulliStats, X: sp.csr_array, codes: Array, weight: Array, rule: Rule) -> Array:
        own = np.empty(len(codes))
        for rows in blocks(*X.shape):
            on, off = self.without_row(stats, codes[rows], weight[rows], rule)
            row, column, _ = entries(X[rows])
            off[row, column] = on[row, column]
            own[rows] = off.sum(axis=1)
        return own

    def log_evidence(self, stats: AnyBernoulliStats) -> Array:
        ones, zeros = stats.ones, stats.zeros
        each = log_rising(self.a, ones) + log_rising(self.b, zeros) - log_rising(self.a + self.b, ones + zeros)
        return np.asarray(each.sum(axis=1))

    def log_prior(self, density: BernoulliDensity) -> float:
        return log_prior(density.log_on, self.a) + log_prior(density.log_off, self.b)

    def posterior(self, stats: AnyBernoulliStats) -> Posterior:
        ones, zeros = stats.ones, stats.zeros
        on, off = self._logs(ones, zeros, "map")
        return marginals(ones + self.a, ones + zeros + self.a + self.b, np.where(np.isnan(off), np.nan, np.exp(on)))

    def draw(self, stats: AnyBernoulliStats, rng: np.random.Generator, times: int = 1) -> BernoulliDensity:
        # a Beta variate is g1/(g1 + g0) with two Gamma variates
        shapes = stats.ones + self.a, stats.zeros + self.b
        on, off = (log_gamma(np.concatenate([shape] * times), rng) for shape in shapes)
        both = np.logaddexp(on, off)
        return BernoulliDensity(on - both, off - both)

    @staticmethod
    def of(p: ArrayLike) -> BernoulliDensity:
        """Return the density of known probabilities.

        Parameters
        ----------
        p : float or array-like of shape (n_features,)
            Probability of a one.

        Returns
        -------
        BernoulliDensity
            The density of a single class.
        """
        p = np.atleast_2d(np.asarray(p, dtype=float))
        if not ((p >= 0) & (p <= 1)).all():
            raise HyperparameterError(f"Bernoulli.of({p.tolist()}): probabilities lie between 0 and 1.")
        with np.errstate(divide="ignore"):
            return BernoulliDensity(np.log(p), np.log1p(-p))


@dataclass(frozen=True, eq=False)
class BernoulliDensity(Density):
    """Independent zeros and ones."""

    shapes: ClassVar = {"log_on": "K D log", "log_off": "K D log"}

    log_on: Array  # (K, D) log p
    log_off: Array  # (K, D) log(1 − p)

    @property
    def K(self) -> int:
        return len(self.log_on)

    @property
    def p(self) -> Array:
        """(K, D) probability of a one."""
        return np.exp(self.log_on)

    def moments(self) -> tuple[Array, Array]:
        """Return means and variances, (K, D) each."""
        return self.p, np.exp(self.log_on + self.log_off)

    def parts(self, X: Matrix) -> Array:
        """Return the log probability of each value, shape (n, K, D); 0 where it is missing."""
        x = (X.toarray() if is_sparse(X) else X)[:, None, :]
        return _of_values(x, self.log_on, self.log_off)

    def log_density(self, X: Matrix) -> Array:
        """Return the score of a row of zeros plus the log odds of each one, shape (n, K)."""
        gaps = None if sp.issparse(X) or not np.isnan(np.sum(X)) else np.isnan(X)
        x = X if gaps is None else np.where(gaps, 0.0, X)
        never = np.isneginf(self.log_off)  # where p = 1, a zero is impossible
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
        """Return None, the log odds of each feature, and the score of a row of zeros."""
        return None, self.log_on - self.log_off, self.log_off.sum(axis=1)

    def sample(self, codes: Array, rng: np.random.Generator) -> Array:
        """Draw zeros and ones, as floats."""
        return (rng.random((len(codes), self.log_on.shape[1])) < self.p[codes]).astype(float)


def _binary(x: Array) -> bool:
    """Whether all values are 0 or 1; NaN is neither."""
    with np.errstate(over="ignore"):
        return not np.any(x * (x - 1))


def _of_values(x: Array, on: Array, off: Array) -> Array:
    """Return `on` where a value is 1, `off` where it is 0, and 0 where it is missing."""
    return np.where(np.isnan(x), 0.0, np.where(x == 1, on, off))


def _or_impossible(log_p: Array) -> Array:
    """Replace NaN, of a class without other rows, by −inf."""
    return np.where(np.isnan(log_p), -np.inf, log_p)


def blocks(n: int, width: int) -> Iterator[slice]:
    """Yield slices of n rows that hold about BLOCK values each."""
    step = max(1, BLOCK // max(width, 1))
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))


# -- missing values as evidence ----------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Gaps(Bernoulli):
    """Whether each column has a value; columns independent given the class.

    Parameters
    ----------
    a : float, default=1.0
        Pseudo-count of gaps.
    b : float, default=1.0
        Pseudo-count of values.

    Examples
    --------
    >>> Gaps().encode(Table.of([[1.0, None], [2.0, 3.0]]), ["x", "y"]).tolist()
    [[0.0, 1.0], [0.0, 0.0]]
    """

    def encode(self, X: Input, columns: Sequence[str], stats: Stats | None = None) -> Array:
        """Return 1 where a value is missing, else 0, shape (n, D)."""
        table, at = (X.table, X.positions) if isinstance(X, Columns) else (Table.of(X), None)
        at = range(table.shape[1]) if at is None else at
        return np.stack([missing(table, j) for j in at], axis=1).astype(float)


def missing(table: Table, column: int) -> Array:
    """Return whether each value of a column is missing, shape (n,) of bool."""
    values = table.pick([column])
    if hasattr(values, "values") and hasattr(values, "names"):  # codes of categories
        return np.asarray(values.values[:, 0] < 0)
    values = np.asarray(values)[:, 0]
    if values.dtype.kind in "fc":
        return np.asarray(np.isnan(values))
    if values.dtype.kind != "O":
        return np.zeros(len(values), dtype=bool)
    return np.array([value is None or value != value for value in values.tolist()], dtype=bool)
