"""Densities of counts given their total: probabilities known, or integrated out.

    multinomial             log f(x) = log L!/Πx_j! + Σ x_j log θ_j
    Dirichlet-multinomial   log f(x) = log L!/Πx_j! + Σ log a_j^(x_j) − log a_0^(L)     rising factorials

The coefficient is the same for every class: it is in `log_base`, not in `log_density`. Samples draw tokens from an urn
per class, and return them as rows of counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.special import xlogy

from deciban import kernels
from deciban.errors import NotAvailableError
from deciban.families.dirichlet import UNITS, log_factorial, log_factorials, log_rising, log_rising_counts
from deciban.families.protocol import Density, Input
from deciban.read.numbers import Matrix, entries, is_sparse, plain_numbers, row_sums
from deciban.statistics import Array, Members

MOST_PARTS = 2**27  # values in an array of parts
DENSE = 1000  # number of words up to which sampled rows are dense


def log_coefficient(X: Matrix) -> Array:
    """(n, 2) log L!/Πx! of each row, as two numbers whose sums are exact (see `log_factorial`)."""
    looked_up = kernels.row_lookups(X.data, X.indptr, log_factorials()) if is_sparse(X) else None
    if looked_up is not None:
        length, words = looked_up
        return np.asarray(log_factorial(length) - words / UNITS)
    row, _, x = entries(X)
    more = x != 1  # most counts are 1, and log 1! = 0
    digits, n = log_factorial(x[more]), X.shape[0]
    words = np.stack([np.bincount(row[more], digit, n) for digit in digits.T], axis=1)
    return log_factorial(row_sums(X)) - words


def class_counts(X: Matrix, members: Members) -> tuple[Array, Array]:
    """(K, V) Σ w·x and (K, 2) Σ w·log L!/Πx!; in one pass over CSR rows with hard members."""
    found = None
    if is_sparse(X) and members.codes is not None:
        classes = members.codes, members.weight, members.K
        found = kernels.sparse_class_lookups(X.data, X.indices, X.indptr, *classes, X.shape[1], log_factorials())
    if found is None:
        return members.total(X), members.total(log_coefficient(X))
    counts, units, beyond = found
    long = np.flatnonzero(beyond)
    return counts, units / UNITS + members.take(long).total(log_factorial(beyond[long]))


class GivenLength(Density):
    """Densities of counts given their total."""

    length: Array  # (K,) mean number of tokens in a row; used by samples only

    def encode(self, X: Input, columns: Sequence[str]) -> Matrix:
        """Convert to counts, dense or CSR."""
        return plain_numbers(X, columns)

    def log_base(self, X: Matrix) -> Array:
        """Return the log coefficient, shape (n,)."""
        return np.asarray(log_coefficient(X).sum(axis=1))


@dataclass(frozen=True, eq=False)
class MultinomialDensity(GivenLength):
    """Multinomial counts with known probabilities."""

    shapes: ClassVar = {"log_p": "D K log", "length": "K count"}

    log_p: Array  # (V, K) log probability of each word
    length: Array  # (K,)

    @property
    def K(self) -> int:
        return int(self.log_p.shape[1])

    @property
    def p(self) -> Array:
        """(K, V) probability of each word."""
        return np.exp(self.log_p.T)

    def log_density(self, X: Matrix) -> Array:
        """Return Σ x log p, shape (n, K), with 0·log 0 = 0."""
        return linear_scores(X, self.log_p, np.zeros(self.K))

    def parts(self, X: Matrix) -> Array:
        """Return x log p, shape (n, K, V); refused where that is too large for memory."""
        if X.shape[0] * self.log_p.size > MOST_PARTS:
            raise NotAvailableError(f"the parts of {X.shape[0]} rows are too many numbers. Ask for fewer rows.")
        x = (X.toarray() if is_sparse(X) else X)[:, None, :]
        return np.asarray(xlogy(x, self.p))

    def polynomial(self) -> tuple[None, Array, Array]:
        """Return None, log p and 0: linear in the counts."""
        return None, self.log_p.T, np.zeros(self.K)

    def sample(self, codes: Array, rng: np.random.Generator) -> Matrix:
        """Draw rows whose number of tokens is Poisson distributed; dense up to 1,000 words, else CSR."""
        return draw_tokens(self.p, rng.poisson(self.length[codes]), codes, rng)


@dataclass(frozen=True, eq=False)
class PolyaDensity(GivenLength):
    """Dirichlet-multinomial (Pólya) counts: probabilities integrated out."""

    shapes: ClassVar = {"concentration": "D K positive", "total": "K positive", "length": "K count"}

    concentration: Array  # (V, K) α + N
    total: Array  # (K,) Σ(α + N)
    length: Array  # (K,)

    @property
    def K(self) -> int:
        return len(self.total)

    @cached_property
    def _log_concentration(self) -> Array:
        return np.log(self.concentration)

    def log_density(self, X: Matrix) -> Array:
        """Return the scores, shape (n, K); counts of 1 add log a, larger ones a rising factorial."""
        row, word, x = entries(X)
        n, V = X.shape
        once = x == 1
        starts = np.r_[0, np.cumsum(np.bincount(row[once], minlength=n))]
        single = sp.csr_array((x[once], word[once], starts), (n, V))
        scores = linear_scores(single, self._log_concentration, np.zeros(self.K))
        rising = log_rising_counts(self.concentration[word[~once]], x[~once])
        more = sp.csr_array((np.ones(len(rising)), (row[~once], np.arange(len(rising)))), (n, len(rising)))
        return np.asarray(scores + more @ rising - log_rising(self.total, row_sums(X)[:, None]))

    def sample(self, codes: Array, rng: np.random.Generator) -> Matrix:
        """Draw rows from Pólya urns; their number of tokens is Poisson distributed."""
        p = (self.concentration / self.total).T
        return draw_tokens(p, rng.poisson(self.length[codes]), codes, rng, self.total)


def draw(p: Array, codes: Array, rng: np.random.Generator) -> Array:
    """Draw a cell from p[codes[i]] for each i, shape (n,); rows of p (K, M) need not sum to one."""
    drawn = np.zeros(len(codes), dtype=np.intp)
    uniform = rng.random(len(codes))
    for k in np.unique(codes):
        cumulative, here = np.cumsum(p[k]), codes == k
        drawn[here] = np.searchsorted(
            cumulative, uniform[here] * cumulative[-1], side="right"
        )  # never a cell of probability 0
    return drawn


def draw_tokens(p: Array, lengths: Array, codes: Array, rng: np.random.Generator, total: Array | None = None) -> Matrix:
    """Draw lengths[i] tokens from p[codes[i]] and count them, shape (n, V); CSR where V is large.

    With `total`, draw from a Pólya urn that starts with this weight: token t is a copy of an earlier one with
    probability t/(total + t).
    """
    n, V = len(codes), p.shape[1]
    row = np.repeat(np.arange(n), lengths)
    token = draw(p, codes[row], rng)
    if total is not None:
        start = np.cumsum(lengths) - lengths
        for t in range(1, int(lengths.max(initial=0))):
            at = (start + t)[lengths > t]  # token t of every row that has so many
            copies = at[rng.random(len(at)) < t / (total[codes[row[at]]] + t)]
            token[copies] = token[copies - 1 - rng.integers(0, t, len(copies))]
    counts = sp.coo_array((np.ones(len(row)), (row, token)), (n, V)).tocsr()
    return counts.toarray() if V <= DENSE else counts


def linear_scores(X: Matrix, weights: Array, bias: Array) -> Array:
    """Return bias + X @ weights, shape (n, K), for X ≥ 0; weights (D, K) may be −inf, with 0·(−inf) = 0.

    >>> linear_scores(np.array([[0.0, 2.0]]), np.array([[-np.inf, 1.0], [1.0, -np.inf]]), np.zeros(2))
    array([[  2., -inf]])
    """
    if is_sparse(X):
        return kernels.sparse_scores(X.data, X.indices, X.indptr, weights, bias)
    impossible = np.isneginf(weights)
    if not impossible.any():
        return kernels.linear_scores(X, weights, bias)
    scores = kernels.linear_scores(X, np.where(impossible, 0.0, weights), bias)
    scores[X @ impossible.astype(X.dtype) > 0] = -np.inf
    return np.asarray(scores)


def log_gamma(shape: Array, rng: np.random.Generator) -> Array:
    """Draw logarithms of Gamma(shape) variates; a tiny shape gives a very negative logarithm, not log 0."""
    return np.log(rng.gamma(shape + 1.0)) + np.log(rng.random(np.shape(shape))) / shape
