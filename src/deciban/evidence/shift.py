"""How common each class is among rows whose classes nobody knows.

    maximise  Σ_i log Σ_c π_c f(x_i|c)   over the proportions π

by EM: π_c ← mean over rows of P(c|x) at the current π; where a Newton step climbs higher, that is taken instead, since
EM crawls when classes overlap. The objective is concave, so that it can rise by at most n·(max_c mean f(x|c)/f(x) − 1)
nats more: the iteration stops on that.

The likelihoods must be calibrated: over-confident ones give over-confident proportions.

Reference: Saerens, Latinne & Decaestecker, Adjusting the outputs of a classifier to new a priori probabilities, Neural
Computation 14 (2002); Kim, Carbonetto, Stephens & Anitescu, A fast algorithm for maximum likelihood estimation of
mixture proportions, Journal of Computational and Graphical Statistics 29 (2020), for the Newton step.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from deciban.errors import ConvergenceWarning, ImpossibleRowWarning, InputError, shortlist
from deciban.evidence.scores import Array

TOLERANCE = 1e-6  # nats, over all rows: a thousandth of a standard error
MOST_ITERATIONS = 1000
JITTER = 1e-10  # of the curvature, so that it has an inverse


@dataclass(frozen=True, eq=False, repr=False)
class EstimatedPrior:
    """Class proportions of a batch, and how sure they are.

    >>> EstimatedPrior(np.array([.25, .75]), np.array([.05, .05]), 17)
    EstimatedPrior(0.25 ± 0.05, 0.75 ± 0.05; 17 iterations)
    """

    prior: Array  # (K,)  proportions, summing to 1
    standard_error: Array  # (K,)  inf where the rows cannot tell a class from others
    iterations: int

    def __repr__(self) -> str:
        shares = [f"{share:.3g} ± {error:.2g}" for share, error in zip(self.prior, self.standard_error)]
        return f"EstimatedPrior({shortlist(shares)}; {self.iterations:,} iterations)"


def estimate_prior(log_likelihood: ArrayLike) -> EstimatedPrior:
    """The class proportions that best explain a batch, from its (n, K) log-likelihoods alone.

    Standard errors come from the observed information. At a proportion of 0 they are those of the free estimate, and so
    rather too large. A row that no class could have produced says nothing, and is left out.

    Of ten people nine are plainly tall, one plainly short:

    >>> estimate_prior(np.log([[.9, .01]] * 9 + [[.01, .9]]))
    EstimatedPrior(0.909 ± 0.097, 0.091 ± 0.097; 4 iterations)
    """
    table = _checked(log_likelihood)
    highest = table.max(axis=1, keepdims=True)
    possible = np.isfinite(highest[:, 0])
    if not possible.all():
        table, highest = table[possible], highest[possible]
        _warn_impossible(np.flatnonzero(~possible).tolist(), len(table))
    likelihood = np.exp(table - highest)  # any factor per row leaves the proportions alone
    prior, iterations = _iterate(likelihood)
    return EstimatedPrior(prior, _standard_error(likelihood, prior), iterations)


def _iterate(likelihood: Array) -> tuple[Array, int]:
    n, K = likelihood.shape
    prior = np.full(K, 1 / K)
    for iteration in range(MOST_ITERATIONS):
        ratio = likelihood / (likelihood @ prior)[:, None]
        gain = ratio.mean(axis=0)  # mean f(x|c)/f(x)
        left = n * (gain.max() - 1)
        if left <= TOLERANCE:
            return prior, iteration
        prior = _climb(likelihood, prior, prior * gain, _peak(ratio, prior, gain))
    warnings.warn(
        f"the proportions had not settled after {MOST_ITERATIONS:,} iterations: the log-likelihood may still rise by "
        f"{left:.2g} nats. Classes that are hardly told apart take long; join them.",
        ConvergenceWarning,
        stacklevel=3,
    )
    return prior, MOST_ITERATIONS


def _peak(ratio: Array, prior: Array, gain: Array) -> Array:
    """Where the quadratic that fits the objective here is highest, among proportions ≥ 0."""
    curvature = ratio.T @ ratio / len(ratio)
    extra = JITTER * curvature.trace()  # classes may be alike
    root = np.linalg.cholesky(curvature + extra * np.eye(len(prior))).T
    # the curvature times the prior is the gain; the sum of 1 is a term of the objective, not a constraint
    from scipy.optimize import nnls  # a quarter of a second that answers need not wait for

    return nnls(root, np.linalg.solve(root.T, 2 * gain - 1 + extra * prior))[0]


def _climb(likelihood: Array, prior: Array, by_em: Array, peak: Array) -> Array:
    """The largest part of the way to the peak that climbs higher than the EM step, else that step."""
    best = by_em / by_em.sum()
    height = np.log(likelihood @ best).sum() - TOLERANCE / 10  # near the top, rounding hides which is higher
    for part in 0.5 ** np.arange(8):
        point = prior + part * (peak - prior)
        point /= point.sum()
        with np.errstate(divide="ignore"):  # a point that makes a row impossible is −inf high
            if np.log(likelihood @ point).sum() > height:
                return point
    return best


def _standard_error(likelihood: Array, prior: Array) -> Array:
    """Square roots of the diagonal of the inverse information, among proportions that sum to 1."""
    ratio, along = likelihood / (likelihood @ prior)[:, None], _directions(len(prior))
    bends, axes = np.linalg.eigh(along @ (ratio.T @ ratio) @ along.T)
    moves = (axes.T @ along) ** 2  # (K − 1, K)  how far each class moves along each axis
    flat = bends <= 1e-12 * bends.max(initial=1.0)
    variance = (moves[~flat] / bends[~flat, None]).sum(axis=0)
    variance[(moves[flat] > 1e-9).any(axis=0)] = np.inf
    return np.sqrt(variance)


def _directions(K: int) -> Array:
    """(K − 1, K) orthonormal directions that keep the sum of K proportions."""
    return np.linalg.svd(np.ones((1, K)))[2][1:]


def _checked(log_likelihood: ArrayLike) -> Array:
    table = np.asarray(log_likelihood, dtype=float)
    if table.ndim != 2 or not table.size:
        raise InputError(f"log_likelihood has shape {table.shape}. Give at least one row, and a column per class.")
    strange = np.flatnonzero((np.isnan(table) | np.isposinf(table)).any(axis=1))
    if strange.size:
        raise InputError(
            f"log_likelihood is NaN or +inf in {len(strange):,} of {len(table):,} rows, first in row {strange[0]}. "
            "Leave these rows out, or mend what scored them."
        )
    if np.isneginf(table).all():
        raise InputError(f"no class could have produced any of the {len(table):,} rows: they tell no proportions.")
    return table


def _warn_impossible(rows: list[int], left: int) -> None:
    names = "row" if len(rows) == 1 else "rows"
    warnings.warn(
        f"{len(rows):,} {names} that no class could have produced ({names} {shortlist(rows)}): left out of the "
        f"proportions, which rest on {left:,}.",
        ImpossibleRowWarning,
        stacklevel=3,
    )
