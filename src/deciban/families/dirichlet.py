"""Tables of counts with a Dirichlet prior, for the Bernoulli, categorical and multinomial families.

    N | θ  ~  θ_1^N_1 ⋯ θ_M^N_M
    θ      ~  Dirichlet(α)            α0 = Σα; a Beta where M = 2
    θ | N  ~  Dirichlet(α + N)        θ_j alone is Beta(α_j + N_j, the rest)
    p(N)   =  Π_j α_j^(N_j) / α0^(N)  with a^(x) = Γ(a + x)/Γ(a), the rising factorial

The functions work on arrays of cells; their arguments broadcast against each other.

With α = s·base there are two criteria for the strength s, each a sum over cells minus a sum over tables:

    evidence   log p(N)                           = Σ_cells log α_j^(N_j) − Σ_tables log α0^(N)
    loo        Σ N_j log((N_j − 1 + α_j)/(N − 1 + α0)), each count left out in turn

Log-factorials are kept such that their sums are exact. The evidence needs Σ log x!, and unlearning must restore the
same bits; a sum of logarithms rounds, a sum of multiples of a power of two does not. So log x! is split into a multiple
of 2⁻¹⁶ and a multiple of 2⁻⁴⁴: together they are correct to 3·10⁻¹⁴, and their sums are exact in any order while they
stay below 2³⁷ and 2⁹ (sixty million values per class in the worst case).

Densities of counts given their total have known probabilities, or integrate them out:

    multinomial             log f(x) = log L!/Πx_j! + Σ x_j log θ_j
    Dirichlet-multinomial   log f(x) = log L!/Πx_j! + Σ log α_j^(x_j) − log α0^(L)

The coefficient L!/Πx_j! is the same for every class: it is in `log_base`, not in `log_density`. Samples draw tokens
from an urn per class, and return them as rows of counts.

Reference: Gelman et al., Bayesian Data Analysis, 3rd ed., sections 2.4 and 3.4; Minka, Estimating a Dirichlet
distribution, 2000, for the strength.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar, TypeAlias, TypeVar, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.special import gammaln, xlogy

from deciban import kernels
from deciban.errors import HyperparameterError, NoModeError, NotAvailableError
from deciban.families.protocol import Density, Input, Marginal, Posterior, Rule
from deciban.read.arrays import Matrix, entries, is_sparse, plain_numbers, row_sums
from deciban.statistics import Array, Members

Numbers: TypeAlias = Array | float
N = TypeVar("N", bound=Array | float)
ROUNDING = 1e-12  # relative error of a difference of sums of weights
SMALL = 16  # factors up to which a rising factorial is computed as a product, which does not overflow
LARGE = 64.0  # from here on Stirling's series is more accurate than a difference of log-gammas
REACH = np.log(1e-6), np.log(1e6)  # range in which the strength of a prior is searched
COARSE, FINE = 2.0**16, 2.0**44
UNITS = np.array([COARSE, FINE])
TABLE = 1024  # number of log-factorials in the table


def word_prior(pseudo_count: Numbers, base: Numbers | None, V: int) -> tuple[Array, float]:
    """Return the pseudo-count of each of V cells, and their sum."""
    alpha = pseudo_count * (1.0 if base is None else base)
    if isinstance(alpha, np.ndarray) and len(alpha) != V:
        raise HyperparameterError(f"the prior has {len(alpha)} numbers, but there are {V} words. Give one per word.")
    return np.broadcast_to(alpha, (V,)), float(alpha * V if np.ndim(alpha) == 0 else np.sum(alpha))


def numerator(counts: Array, alpha: Numbers, rule: Rule) -> Array:
    """Return the count of a cell plus its pseudo-count under a rule; NaN where there is no mode."""
    if rule == "ml":
        return counts
    if rule == "map":
        left = np.asarray(counts + (alpha - 1.0))
        if left.min(initial=0.0) < 0:
            left[left < 0] = np.nan
        return left
    return counts + alpha  # under "predictive", the probability of one draw is the posterior mean


def denominator(total: N, alpha0: Numbers, cells: Array | int, rule: Rule) -> N:
    """Return the total count of a table plus its pseudo-counts under a rule."""
    if rule == "ml":
        return total
    return cast(N, total + (alpha0 - cells if rule == "map" else alpha0))


def log_theta(counts: Array, total: Numbers, alpha: Numbers, alpha0: Numbers, cells: Array | int, rule: Rule) -> Array:
    """Return the log probability of a cell from its count and the total of its table; NaN where there is no mode.

    >>> np.exp(log_theta(np.array([3.0, 0.0]), 3.0, 1.0, 2.0, 2, "mean")).round(3)
    array([0.8, 0.2])
    """
    top, bottom = numerator(counts, alpha, rule), denominator(total, alpha0, cells, rule)
    # in place where possible: for large tables, allocating memory costs more than the division
    reusable = rule != "ml" and np.shape(top) == np.broadcast_shapes(np.shape(top), np.shape(bottom)) != ()
    with np.errstate(divide="ignore", invalid="ignore"):
        return log_in_place(np.divide(top, bottom, out=top if reusable else None))


def log_in_place(p: Array) -> Array:
    """Replace an array by its logarithm; zeros are handled separately, because `numpy.log` is slow for them."""
    p = np.asarray(p)
    zero = p == 0
    some = zero.any()
    if some:
        np.putmask(p, zero, 1.0)
    with np.errstate(invalid="ignore"):
        np.log(p, out=p)
    if some:
        np.putmask(p, zero, -np.inf)
    return p


def require_modes(log_p: Array, classes: Sequence[Any], family: str) -> None:
    """Raise NoModeError if log_p, with classes along its last axis, holds a NaN."""
    missing = np.argwhere(np.isnan(log_p))
    if len(missing):
        raise NoModeError(
            f"class {classes[missing[0][-1]]!r} has a {family} posterior without a mode: a pseudo-count plus its count "
            "is below 1, or the prior is flat and all counts are 0. Use rule 'mean', or larger pseudo-counts."
        )


def log_rising(a: ArrayLike, x: ArrayLike) -> Array:
    """Return log Γ(a + x)/Γ(a) for a > 0 and x ≥ 0, accurate also where both gammas are large.

    >>> log_rising(2.0, 3.0), np.log(2 * 3 * 4)
    (array(3.17805383), np.float64(3.17805383...))
    """
    a, x = np.broadcast_arrays(np.asarray(a, dtype=float), np.asarray(x, dtype=float))
    large = a >= LARGE
    if large.all():
        return _log_rising_large(a, x)
    if not large.any():
        return np.asarray(gammaln(a + x) - gammaln(a))
    out = np.empty(a.shape)
    out[large], small = _log_rising_large(a[large], x[large]), ~large
    out[small] = gammaln(a[small] + x[small]) - gammaln(a[small])
    return out


def log_rising_counts(a: Array, x: Array) -> Array:
    """Return `log_rising` for a (m, …) and x (m,); for a small integer x the logarithm of a(a + 1)⋯(a + x − 1)."""
    product = np.where(_column(x, a) == 0, 1.0, a)
    others = np.flatnonzero((x > SMALL) | (x != np.rint(x)))
    for t in range(1, int(min(x.max(initial=0), SMALL))):
        longer = np.flatnonzero(x > t)
        product[longer] *= a[longer] + t
    product[others] = 1.0
    logs = np.log(product, out=product)
    logs[others] = log_rising(a[others], _column(x[others], a))
    return logs


def _column(x: Array, a: Array) -> Array:
    return x.reshape(-1, *(1,) * (a.ndim - 1))


def _log_rising_large(a: Array, x: Array) -> Array:
    """Subtract Stirling's series of both log-gammas, term by term."""
    return np.asarray((a - 0.5) * np.log1p(x / a) + x * np.log(a + x) - x + _stirling(a + x) - _stirling(a))


def _stirling(a: Array) -> Array:
    inverse = 1 / a
    square = inverse * inverse
    return inverse * (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680)))


def log_prior(log_p: Array, alpha: Numbers) -> float:
    """Return the log density of the prior up to a constant, Σ (α − 1) log θ; cells with α = 1 add 0."""
    flat = np.equal(alpha, 1.0)
    return float(np.sum(np.where(flat, 0.0, (np.asarray(alpha) - 1.0) * np.where(flat, 0.0, log_p))))


def left_over(total: Array, part: Numbers) -> Array:
    """Return total − part, with 0 where the difference is only rounding."""
    left = np.asarray(total - part)
    return np.multiply(left, left > ROUNDING * np.asarray(total), out=left)


def marginals(A: Array, A0: Array, mode: Array) -> Posterior:
    """Return Beta marginals of cells from α + N of the cell (A) and of its table (A0); `mode` is the joint mode."""
    from scipy import stats as sps  # lazy: scipy.stats is slow to import

    rest = A0 - A
    mean = A / A0
    sd = np.sqrt(mean * (rest / A0) / (A0 + 1))
    return Posterior({"p": Marginal(mean, sd, sps.beta(A, np.where(rest > 0, rest, np.finfo(float).tiny)), None, mode)})


def check_strength(family: str, pseudo_count: ArrayLike | str, base: ArrayLike | None) -> None:
    """Refuse pseudo-counts that are not positive, and bases that are not probabilities."""
    for name, values in (("pseudo_count", pseudo_count), ("base", base)):
        if values is None or isinstance(values, str):
            continue
        values = np.asarray(values, dtype=float)
        if not (np.isfinite(values) & (values > 0)).all():
            raise HyperparameterError(f"{family}({name}={values.tolist()}): every number must be finite and > 0.")
        if name == "base" and abs(values.sum() - 1) > 1e-6:
            raise HyperparameterError(f"{family}(base=…) sums to {values.sum():.6g}; probabilities must sum to 1.")
    if isinstance(pseudo_count, str) and pseudo_count not in ("evidence", "loo"):
        raise HyperparameterError(f"{family}(pseudo_count={pseudo_count!r}): a number, 'evidence' or 'loo'.")
    if base is not None and np.ndim(pseudo_count):
        raise HyperparameterError(f"{family}: a base needs one strength. Give pseudo_count as a single number.")


# -- the strength of a prior -------------------------------------------------------------------------------------------
def _left_out(alpha: ArrayLike, counts: Array) -> Array:
    return np.asarray(counts * np.log(np.maximum(counts - 1, 0.0) + alpha))


SCORES: dict[str, Callable[[Array, Array], Array]] = {"evidence": log_rising, "loo": _left_out}


def best_strength(by: str, cell_base: Numbers, cells: Array, table_base: Numbers, tables: Array) -> float:
    """Return the strength with the best criterion; bases broadcast against counts.

    >>> counts = np.array([[50.0, 50.0], [48.0, 52.0], [51.0, 49.0]])  # fair coins: a strong prior
    >>> best_strength("evidence", 0.5, counts, 1.0, counts.sum(axis=1)) > 100
    True
    """
    score, cell, table = SCORES[by], _distinct(cell_base, cells), _distinct(table_base, tables)
    if not len(cell[1]):
        return 1.0

    def loss(log_strength: float) -> float:
        s = np.exp(log_strength)
        values = [float(times @ score(s * base, counts)) for base, counts, times in (cell, table)]
        return values[1] - values[0]

    grid = np.linspace(*REACH, 41)
    best = int(np.argmin([loss(at) for at in grid]))
    bounds = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    from scipy.optimize import minimize_scalar  # lazy: scipy.optimize is slow to import

    return float(np.exp(minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-6}).x))


def _distinct(base: Numbers, counts: Array) -> tuple[Array, Array, Array]:
    """Return distinct pairs of base and count > 0, and their frequency: large vocabularies have few distinct counts."""
    base, counts = (part[counts > 0] for part in np.broadcast_arrays(np.asarray(base, dtype=float), counts))
    if len(base) and np.all(base == base[0]):
        counts, times = np.unique(counts, return_counts=True)
        return np.full(len(counts), base[0]), counts, times.astype(float)
    return base, counts, np.ones(len(counts))


# -- log-factorials whose sums are exact -------------------------------------------------------------------------------
def log_factorial(x: ArrayLike) -> Array:
    """Return two numbers that sum to log x!, shape (…, 2), each a multiple of a power of two.

    >>> log_factorial(np.array([1.0, 4.0])).sum(axis=-1).round(3)
    array([0.   , 3.178])
    """
    x = np.asarray(x, dtype=float)
    small = x.astype(np.intp) if x.size and x.min() >= 0 and x.max() < TABLE else None
    if small is not None and np.array_equal(small, x):
        return _table()[small]
    return np.asarray(_units(gammaln(x + 1.0)) / UNITS)


@cache
def log_factorials() -> Array:
    """Return the log-factorials of 0, 1, 2, …, in integer multiples of 2⁻¹⁶ and 2⁻⁴⁴, (1024, 2)."""
    return _units(gammaln(np.arange(TABLE) + 1.0)).astype(np.int64)


@cache
def _table() -> Array:
    return np.asarray(log_factorials() / UNITS)


def _units(values: Array) -> Array:
    coarse = np.rint(values * COARSE)
    return np.stack([coarse, np.rint((values - coarse / COARSE) * FINE)], axis=-1)


# -- densities of counts given their total -----------------------------------------------------------------------------
MOST_PARTS = 2**27  # values in an array of parts
DENSE = 1000  # number of words up to which sampled rows are dense


def log_coefficient(X: Matrix) -> Array:
    """Return log L!/Πx! of each row, as two numbers whose sums are exact (see `log_factorial`), (n, 2)."""
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
    """Return Σ w·x (K, V) and Σ w·log L!/Πx! (K, 2); in one pass over CSR rows with hard members."""
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
    log_concentration: Array = field(init=False, repr=False)  # (V, K)

    def __post_init__(self) -> None:
        with np.errstate(divide="ignore", invalid="ignore"):  # numbers from a file are checked later
            object.__setattr__(self, "log_concentration", np.log(self.concentration))

    @property
    def K(self) -> int:
        return len(self.total)

    def log_density(self, X: Matrix) -> Array:
        """Return the scores, shape (n, K); counts of 1 add log a, larger ones a rising factorial."""
        row, word, x = entries(X)
        n, V = X.shape
        once = x == 1
        starts = np.r_[0, np.cumsum(np.bincount(row[once], minlength=n))]
        single = sp.csr_array((x[once], word[once], starts), (n, V))
        scores = linear_scores(single, self.log_concentration, np.zeros(self.K))
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
            at = (start + t)[lengths > t]  # token t of every row with more than t tokens
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
