"""Class proportions of a batch of rows without labels (prior shift).

    maximise  Σ_i log Σ_c π_c f(x_i|c)   over the proportions π

by EM: π_c ← mean over rows of P(c|x) at the current π. Where a Newton step gives a larger objective, it is taken
instead, since EM converges slowly when classes overlap. The objective is concave, so it can still rise by at most
n·(max_c mean f(x|c)/f(x) − 1) nats, and the iteration stops when this bound is small.

The likelihoods must be calibrated: over-confident likelihoods give wrong proportions with too small standard errors.

Reference: Saerens, Latinne & Decaestecker, Adjusting the outputs of a classifier to new a priori probabilities, Neural
Computation 14 (2002); Kim, Carbonetto, Stephens & Anitescu, A fast algorithm for maximum likelihood estimation of
mixture proportions, Journal of Computational and Graphical Statistics 29 (2020), for the Newton step.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from deciban.errors import ConvergenceWarning, InputError, shortlist
from deciban.evidence.scores import Array, warn_impossible

TOLERANCE = 1e-6  # nats over all rows, which moves a proportion by a thousandth of its standard error
MAX_ITERATIONS = 1000
JITTER = 1e-10  # relative, added to the diagonal of the curvature so that it has an inverse


@dataclass(frozen=True, eq=False, repr=False)
class EstimatedPrior:
    """Class proportions of a batch, with standard errors.

    Parameters
    ----------
    prior : ndarray of shape (K,)
        Proportions, which sum to 1.
    standard_error : ndarray of shape (K,)
        Standard errors; inf where the rows do not distinguish a class from others.
    iterations : int
        Number of iterations.

    Examples
    --------
    >>> EstimatedPrior(np.array([.25, .75]), np.array([.05, .05]), 17)
    EstimatedPrior(0.25 ± 0.05, 0.75 ± 0.05; 17 iterations)
    """

    prior: Array
    standard_error: Array
    iterations: int

    def __repr__(self) -> str:
        shares = [f"{share:.3g} ± {error:.2g}" for share, error in zip(self.prior, self.standard_error)]
        return f"EstimatedPrior({shortlist(shares)}; {self.iterations:,} iterations)"


def estimate_prior(log_likelihood: ArrayLike) -> EstimatedPrior:
    """Estimate the class proportions of a batch by maximum likelihood.

    n rows cannot show that a class has no share: a maximum below half a row, 1/(2n), is raised to it, unless every row
    is impossible under the class.

    Standard errors come from the observed information; at a proportion of 0 they are those of the estimate without the
    constraint, which is too large. Rows that are impossible under every class are left out, with a warning.

    Parameters
    ----------
    log_likelihood : array-like of shape (n, K)
        Log-likelihoods of the rows.

    Returns
    -------
    EstimatedPrior
        Proportions and their standard errors.

    Raises
    ------
    InputError
        If there are no rows, or a log-likelihood is NaN or +inf.

    Examples
    --------
    Of ten people nine are much more probably tall, one much more probably short:

    >>> estimate_prior(np.log([[.9, .01]] * 9 + [[.01, .9]]))
    EstimatedPrior(0.909 ± 0.097, 0.091 ± 0.097; 4 iterations)
    """
    table = _checked(log_likelihood)
    highest = table.max(axis=1, keepdims=True)
    possible = np.isfinite(highest[:, 0])
    if not possible.all():
        table, highest = table[possible], highest[possible]
        answer = f"left out of the proportions, which rest on {len(table):,} rows"
        warn_impossible(np.flatnonzero(~possible), "under every class", answer)
    likelihood = np.exp(table - highest)  # a factor per row does not change the proportions
    prior, iterations = _iterate(likelihood)
    return EstimatedPrior(_at_least_half_a_row(likelihood, prior), _standard_error(likelihood, prior), iterations)


def _at_least_half_a_row(likelihood: Array, prior: Array) -> Array:
    """Raise proportions below 1/(2n) of classes that some row may belong to; the others make room in proportion."""
    least = 1 / (2 * len(likelihood))
    few = (prior < least) & likelihood.any(axis=0)
    if not few.any():
        return prior
    return np.where(few, least, prior * (1 - few.sum() * least) / prior[~few].sum())


def _iterate(likelihood: Array) -> tuple[Array, int]:
    """The proportions, and the number of iterations they took."""
    n, K = likelihood.shape
    prior = np.full(K, 1 / K)
    for iteration in range(MAX_ITERATIONS):
        ratio = likelihood / (likelihood @ prior)[:, None]
        gain = ratio.mean(axis=0)  # mean f(x|c)/f(x)
        left = n * (gain.max() - 1)
        if left <= TOLERANCE:
            return prior, iteration
        prior = _step(likelihood, prior, prior * gain, _newton_point(ratio, prior, gain))
    warnings.warn(
        f"the proportions had not settled after {MAX_ITERATIONS:,} iterations: the log-likelihood may still rise by "
        f"{left:.2g} nats. Convergence is slow for classes that the rows hardly distinguish; join them.",
        ConvergenceWarning,
        stacklevel=3,
    )
    return prior, MAX_ITERATIONS


def _newton_point(ratio: Array, prior: Array, gain: Array) -> Array:
    """The maximum of the local quadratic approximation among proportions ≥ 0."""
    curvature = ratio.T @ ratio / len(ratio)
    extra = JITTER * curvature.trace()  # two classes may have equal likelihoods
    root = np.linalg.cholesky(curvature + extra * np.eye(len(prior))).T
    # curvature · prior = gain; the sum of 1 is a term of the objective, not a constraint
    from scipy.optimize import nnls  # lazy: slow to import

    return nnls(root, np.linalg.solve(root.T, 2 * gain - 1 + extra * prior))[0]


def _step(likelihood: Array, prior: Array, by_em: Array, newton: Array) -> Array:
    """The longest of the halved Newton steps that beats the EM step, else the EM step."""
    best = by_em / by_em.sum()
    height = np.log(likelihood @ best).sum() - TOLERANCE / 10  # near the maximum, differences are rounding
    for part in 0.5 ** np.arange(8):
        point = prior + part * (newton - prior)
        point /= point.sum()
        with np.errstate(divide="ignore"):  # −inf at a point that makes a row impossible
            if np.log(likelihood @ point).sum() > height:
                return point
    return best


def _standard_error(likelihood: Array, prior: Array) -> Array:
    """Square roots of the diagonal of the inverse information, among proportions that sum to 1."""
    ratio, along = likelihood / (likelihood @ prior)[:, None], _directions(len(prior))
    bends, axes = np.linalg.eigh(along @ (ratio.T @ ratio) @ along.T)
    moves = (axes.T @ along) ** 2  # (K − 1, K)  squared movement of each class along each axis
    flat = bends <= 1e-12 * bends.max(initial=1.0)
    variance = (moves[~flat] / bends[~flat, None]).sum(axis=0)
    variance[(moves[flat] > 1e-9).any(axis=0)] = np.inf
    return np.sqrt(variance)


def _directions(K: int) -> Array:
    """(K − 1, K) orthonormal directions along which the sum of K proportions is constant."""
    return np.linalg.svd(np.ones((1, K)))[2][1:]


def _checked(log_likelihood: ArrayLike) -> Array:
    table = np.asarray(log_likelihood, dtype=float)
    if table.ndim != 2 or not table.size:
        raise InputError(f"log_likelihood has shape {table.shape}. Give at least one row, and a column per class.")
    strange = np.flatnonzero((np.isnan(table) | np.isposinf(table)).any(axis=1))
    if strange.size:
        raise InputError(
            f"log_likelihood is NaN or +inf in {len(strange):,} of {len(table):,} rows, first in row {strange[0]}. "
            "Leave these rows out, or correct the model that scored them."
        )
    if np.isneginf(table).all():
        raise InputError(f"every class gives probability zero to any of the {len(table):,} rows: no proportions fit.")
    return table
