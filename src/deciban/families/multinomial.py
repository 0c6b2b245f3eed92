"""Counts of events such as words, with a Dirichlet prior.

    x | θ, L  ~  Multinomial(L, θ)          L = Σx tokens, independent of the class
    θ         ~  Dirichlet(α)
    θ | D     ~  Dirichlet(α + N)
    x | D, L  ~  Dirichlet-multinomial(L, α + N)       Pólya: repeated words are more probable

The coefficient L!/Πx_j! is the same for every class: `log_density` leaves it out, `log_base` is its logarithm. Its sum
is kept for the evidence, as two numbers that add exactly (see `dirichlet.log_factorial`): unlearning restores all bits.

Reference: Gelman et al., Bayesian Data Analysis, 3rd ed., section 3.4; Minka, Estimating a Dirichlet, 2000.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.special import xlogy

from deciban import kernels
from deciban.errors import Argument, DecibanError, HyperparameterError, Remedy
from deciban.families import limits
from deciban.families.abilities import Counts, HasDraws, HasEvidence, HasFootprint, HasLogPrior, HasPosterior
from deciban.families.dirichlet import (
    ROUNDING,
    MultinomialDensity,
    PolyaDensity,
    best_strength,
    check_strength,
    class_counts,
    denominator,
    left_over,
    log_gamma,
    log_in_place,
    log_prior,
    log_rising,
    log_rising_counts,
    log_theta,
    marginals,
    numerator,
    require_modes,
    word_prior,
)
from deciban.families.protocol import Density, Family, Input, Posterior, Rule, classes_of, require_rows
from deciban.read.arrays import Matrix, counted_numbers, refuse, row_sums, row_totals
from deciban.statistics import Array, Axis, Members, Stats, peak, summed
from deciban.statistics.changed_columns import ChangedColumns


@dataclass(frozen=True, eq=False, repr=False)
class MultinomialStats(Stats):
    """Counts of each word, and of rows."""

    sizes: ClassVar = {"digit": 2}

    counts: Array = summed("class", "word", floor=True)  # Σ w·x
    rows: Array = summed("class", floor=True)  # Σ w
    coefficient: Array = summed("class", "digit")  # Σ w·log L!/Πx!, as two numbers that add exactly
    peak: Array | None = peak(
        "counts", "class", "word", weight="rows"
    )  # the largest value of `counts`, where it was rounded

    def refuse_lost(self, other: Self, error: type[DecibanError]) -> None:
        self.refuse_lost_digits("counts", other, (self.rows - other.rows)[:, None], error, least=1.0)


WORDS_AT_A_TIME = 2**13  # of a table that is computed in steps: a millisecond or two with 20 classes


@dataclass(frozen=True, eq=False)
class CellProbabilities:
    """Probabilities of words by class, before their logarithms are taken: of all words, or of some."""

    counts: Array | ChangedColumns  # (K, V)
    totals: Array  # (K,)
    rows: Array  # (K,) weight of the rows
    alpha: Array  # (V,) pseudo-counts
    alpha0: float  # their sum
    rule: Rule

    @property
    def shape(self) -> tuple[int, int]:
        """Number of words and of classes."""
        return len(self.alpha), len(self.totals)

    def log_p(self, at: Array | None = None) -> Array:
        """Return the log probabilities of some words, (n, K), or of all."""
        counts, alpha = self.counts, self.alpha
        if at is not None:
            counts = counts.take(at) if isinstance(counts, ChangedColumns) else counts[:, at]
            alpha = alpha[at]
        elif isinstance(counts, ChangedColumns):
            counts = counts.cells()
        by_word = np.ascontiguousarray(counts.T)  # the numbers of a word are adjacent in memory
        return log_theta(by_word, self.totals, alpha[:, None], self.alpha0, len(self.alpha), self.rule)

    def density(self, log_p: Array | None = None) -> MultinomialDensity:
        """Return the density of counts of all words, whose log probabilities (V, K) may be known already."""
        length = np.divide(self.totals, self.rows, out=np.zeros(len(self.rows)), where=self.rows > 0)
        return MultinomialDensity(self.log_p() if log_p is None else log_p, length)

    def density_steps(self) -> Generator[None, None, MultinomialDensity]:
        """Compute the density of counts of all words in steps of about a millisecond."""
        if isinstance(self.counts, ChangedColumns):
            yield from self.counts.steps()
        log_p = np.empty(self.shape)
        for start in range(0, len(log_p), WORDS_AT_A_TIME):
            at = np.arange(start, min(start + WORDS_AT_A_TIME, len(log_p)))
            log_p[at] = self.log_p(at)
            yield
        return self.density(log_p)


@dataclass(frozen=True, eq=False)
class Multinomial(Family[MultinomialStats], HasEvidence, HasPosterior, HasDraws, HasLogPrior, HasFootprint, Counts):
    """Counts of events such as words, given their total.

    Rows are dense or a sparse matrix; counts may be fractional.

    Parameters
    ----------
    pseudo_count : float, array-like of shape (n_features,) or {"evidence", "loo"}, default=1.0
        Pseudo-count α of each word. A name chooses it at the first fit, by marginal likelihood or leave-one-out.
    base : array-like of shape (n_features,), optional
        Probabilities of the words; α is then `pseudo_count` × `base`.
    limit : float, optional
        Larger counts are absurd and count as 0. If None, there is no limit; a default fit of sparse rows sets one.

    Examples
    --------
    >>> rolls = Multinomial().fit([[1, 0, 2], [0, 1, 4]])
    >>> rolls.density().p.round(3)
    array([[0.182, 0.182, 0.636]])
    """

    shapes: ClassVar = {"base": "D count"}

    pseudo_count: Any = 1.0  # float, (V,) or a name
    _: KW_ONLY
    base: Array | None = None  # (V,)
    limit: float | None = field(default=None, repr=False)

    @property
    def accepts(self) -> frozenset[str]:
        return frozenset({"sparse"})

    def __post_init__(self) -> None:
        check_strength("Multinomial", self.pseudo_count, self.base)
        if self.limit is not None:
            limits.checked(self.limit, "limit")
        for name in ("pseudo_count", "base"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                value = np.asarray(value, dtype=float)
                object.__setattr__(self, name, value if value.ndim else float(value))

    def encode(self, X: Input, columns: Sequence[str], stats: MultinomialStats | None = None) -> Matrix:
        rows, valid = counted_numbers(X, columns)
        if not valid:
            self.check(rows, columns)
        return limits.without_absurd_counts(rows, self.limit)

    def check(self, X: Matrix, columns: Sequence[str], learning: bool = False) -> None:
        refuse(
            X,
            columns,
            lambda x: ~((x >= 0) & (x < np.inf)),
            "multinomial counts must be finite and ≥ 0",
            Remedy(
                "Drop the row, put 0 where an event was not seen, or declare ",
                Argument("family", "gaussian", "Gaussian()"),
                ".",
            ),
        )

    def collect(self, X: Matrix, members: Members) -> MultinomialStats:
        labels = {"class": members.classes, "word": Axis.of(X.shape[1])}
        counts, coefficient = class_counts(X, members)
        return MultinomialStats(labels, counts, members.weights(), coefficient)

    def footprint(self, X: Matrix, members: Members) -> MultinomialStats:
        labels = {"class": members.classes, "word": Axis.of(X.shape[1])}
        return MultinomialStats(labels, members.total(X), members.weights(), np.zeros((members.K, 2)))

    def resolve(self, stats: MultinomialStats) -> Multinomial:
        if not isinstance(self.pseudo_count, str):
            return self
        base = np.ones(stats.counts.shape[1]) if self.base is None else self.base
        totals = stats.counts.sum(axis=1)
        return replace(
            self, pseudo_count=best_strength(self.pseudo_count, base, stats.counts, float(np.sum(base)), totals)
        )

    def lengths(self, X: Matrix) -> Array:
        return row_sums(X)

    def select(self, words: Array) -> Multinomial:
        if np.ndim(self.pseudo_count):
            return replace(self, pseudo_count=self.pseudo_count[words])
        if self.base is None:
            return self
        share = float(self.base[words].sum())  # every word keeps its pseudo-count
        strength = self.pseudo_count if isinstance(self.pseudo_count, str) else self.pseudo_count * share
        return replace(self, pseudo_count=strength, base=self.base[words] / share)

    def alpha(self, stats: MultinomialStats) -> tuple[Array, float]:
        """Return the pseudo-counts.

        Parameters
        ----------
        stats : MultinomialStats
            Sums from which the strength is chosen, where it is open.

        Returns
        -------
        alpha : ndarray of shape (n_features,)
            Pseudo-count of each word.
        alpha0 : float
            Their sum.
        """
        chosen = self.resolve(stats)
        return word_prior(chosen.pseudo_count, chosen.base, stats.labels["word"].size)

    def probabilities(
        self, stats: MultinomialStats, rule: Rule, counts: ChangedColumns | None = None
    ) -> CellProbabilities:
        """Return the probabilities of the words, from which their logarithms can be taken one by one.

        Parameters
        ----------
        stats : MultinomialStats
            The sums.
        rule : {"ml", "map", "mean"}
            How they are obtained from the posterior.
        counts : ChangedColumns, optional
            The counts, where their table was not copied yet.

        Returns
        -------
        CellProbabilities
            Counts and pseudo-counts of all words.
        """
        table = stats.counts if counts is None else counts
        totals = table.row_sums() if isinstance(table, ChangedColumns) else table.sum(axis=1)
        if rule == "ml":
            require_rows(totals, classes_of(stats.labels), "Multinomial")
        return CellProbabilities(table, totals, stats.rows, *self.alpha(stats), rule)

    def estimate(self, stats: MultinomialStats, rule: Rule) -> MultinomialDensity | PolyaDensity:
        if rule == "predictive":
            totals, (alpha, alpha0) = stats.counts.sum(axis=1), self.alpha(stats)
            length = np.divide(totals, stats.rows, out=np.zeros(len(totals)), where=stats.rows > 0)
            return PolyaDensity(np.ascontiguousarray(stats.counts.T) + alpha[:, None], totals + alpha0, length)
        density = self.probabilities(stats, rule).density()
        if rule == "map":
            require_modes(density.log_p, classes_of(stats.labels).names, "multinomial")
        return density

    def leave_one_out(
        self, stats: MultinomialStats, X: Matrix, members: Members, rule: Rule, density: Density | None = None
    ) -> Array:
        # only the counts of the row's words in its own class change: O(entries)
        scores = (density or self.estimate(stats, rule)).log_density(X)
        codes, w = members.own_codes(), members.weight
        alpha, alpha0 = self.alpha(stats)
        rows: sp.csr_array = X if sp.issparse(X) else sp.csr_array(X)
        x, length = rows.data, row_totals(rows, rows.data)
        own_alpha = (
            alpha[0] if alpha.strides == (0,) else alpha.take(rows.indices)
        )  # one for all words, or one per word
        counts = kernels.sparse_left_over(x, rows.indices, rows.indptr, stats.counts, codes, w, ROUNDING)
        totals = left_over(stats.counts.sum(axis=1)[codes], length if w is None else length * w)
        if rule == "predictive":
            own = row_totals(rows, log_rising_counts(counts + own_alpha, x)) - log_rising(totals + alpha0, length)
        else:
            words = log_in_place(numerator(counts, own_alpha, rule))
            whole = denominator(totals, alpha0, len(alpha), rule)
            own = row_totals(rows, x * words) - xlogy(length, np.where(whole > 0, whole, 1.0))
            own = np.where(whole > 0, own, -np.inf)
        scores[np.arange(len(codes)), codes] = np.where(np.isnan(own), -np.inf, own)  # NaN: its class has no other rows
        return scores

    def log_evidence(self, stats: MultinomialStats) -> Array:
        alpha, alpha0 = self.alpha(stats)
        words = log_rising(alpha, stats.counts).sum(axis=1)
        return np.asarray(words - log_rising(alpha0, stats.counts.sum(axis=1)) + stats.coefficient.sum(axis=1))

    def log_prior(self, density: MultinomialDensity) -> float:
        alpha = self.pseudo_count * (1.0 if self.base is None else self.base)
        return log_prior(density.log_p.T, alpha)

    def posterior(self, stats: MultinomialStats) -> Posterior:
        alpha, alpha0 = self.alpha(stats)
        totals = stats.counts.sum(axis=1)[:, None]
        mode = np.exp(log_theta(stats.counts, totals, alpha, alpha0, len(alpha), "map"))
        # the mode is the joint one of all words
        none = np.isnan(mode).any(axis=1, keepdims=True)
        return marginals(stats.counts + alpha, totals + alpha0, np.where(none, np.nan, mode))

    def draw(self, stats: MultinomialStats, rng: np.random.Generator, times: int = 1) -> MultinomialDensity:
        alpha, _ = self.alpha(stats)
        logs = log_gamma(np.concatenate([stats.counts.T + alpha[:, None]] * times, axis=1), rng)
        length = np.concatenate([self.estimate(stats, "mean").length] * times)
        return MultinomialDensity(logs - np.logaddexp.reduce(logs, axis=0), length)

    @staticmethod
    def of(p: ArrayLike, length: ArrayLike = 100) -> MultinomialDensity:
        """Return the density of known probabilities.

        Parameters
        ----------
        p : array-like of shape (n_features,)
            Probabilities of the words.
        length : float, default=100
            Mean number of tokens of a sampled row.

        Returns
        -------
        MultinomialDensity
            The density of a single class.
        """
        p = np.atleast_2d(np.asarray(p, dtype=float))
        if (p < 0).any() or np.abs(p.sum(axis=1) - 1).max() > 1e-6:
            raise HyperparameterError(
                f"Multinomial.of: p must be ≥ 0 and sum to 1; its least number is {p.min():.6g}, "
                f"and it sums to {p.sum(axis=1)}, not 1."
            )
        with np.errstate(divide="ignore"):
            return MultinomialDensity(np.ascontiguousarray(np.log(p.T)), np.broadcast_to(length, (len(p),)))
