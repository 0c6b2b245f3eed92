"""Log-likelihood ratios, posteriors and class proportions from log-likelihoods.

    llr(x)           = log f(x|c) − log f(x|j)                          evidence, independent of the prior
    llr against rest = log f(x|c) − log Σ_{j≠c} P(j)/(1−P(c)) f(x|j)
    P(c|x)           = softmax_c( log f(x|c) + log P(c) )
    f(x)             = Σ_c P(c) f(x|c)

Everything is computed with logarithms. The log of a zero probability is −inf. A row that is −inf under every class is
impossible: its posterior is the class prior, its llr is 0, and an `ImpossibleRowWarning` is given; no answer is NaN.

Shapes: n rows, K classes; log-likelihoods are (n, K); log priors are (K,), or (n, K) where each row has its own, as in
leave-one-out.

Class proportions of a batch of rows without labels (prior shift):

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
from collections.abc import Callable
from dataclasses import dataclass
from math import log
from typing import overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deciban.errors import ConvergenceWarning, ImpossibleRowWarning, InputError, shortlist
from deciban.kernels import add_row, log_softmax, log_sum_exp, rows_equal, softmax
from deciban.kernels.parallel import each, row_chunks

Array = NDArray[np.float64]

MANY_ROWS = 1024  # rows from which on the log prior is added to many at a time

UNITS = {"nats": 1.0, "bits": 1 / log(2), "bans": 1 / log(10), "decibans": 10 / log(10)}


@overload
def convert(nats: float, unit: str) -> float: ...
@overload
def convert(nats: Array, unit: str) -> Array: ...
def convert(nats: float | Array, unit: str) -> float | Array:
    """Convert evidence from nats to another unit.

    Parameters
    ----------
    nats : float or ndarray
        Evidence: natural logarithms of ratios.
    unit : {"nats", "bits", "bans", "decibans"}
        The unit. 10 decibans are a ratio of ten to one.

    Returns
    -------
    float or ndarray
        The same evidence in that unit.

    Examples
    --------
    >>> round(convert(1.505, "decibans"), 2)
    6.54
    """
    if unit not in UNITS:
        raise InputError(f"unit {unit!r} is unknown. Use one of {', '.join(map(repr, UNITS))}.")
    evidence = np.multiply(nats, UNITS[unit])
    return evidence if np.ndim(evidence) else float(evidence)


def log_probability(probability: ArrayLike) -> Array:
    """Take the logarithm of probabilities, with log 0 = −inf and no warning.

    Parameters
    ----------
    probability : array-like
        Probabilities, or other numbers ≥ 0.

    Returns
    -------
    ndarray
        Logarithms, of the same shape.

    Examples
    --------
    >>> log_probability([1.0, 0.0]).tolist()
    [0.0, -inf]
    """
    with np.errstate(divide="ignore"):
        return np.log(np.asarray(probability, dtype=float))


def log_joint(log_likelihood: ArrayLike, log_prior: ArrayLike, out: Array | None = None) -> Array:
    """Add the log prior: log f(x|c) + log P(c).

    Parameters
    ----------
    log_likelihood : array-like of shape (n, K)
        Log-likelihoods.
    log_prior : array-like of shape (K,) or (n, K)
        Log prior probabilities.
    out : ndarray of shape (n, K), optional
        Where to write the result; may be `log_likelihood` itself.

    Returns
    -------
    ndarray of shape (n, K)
        Log joint probabilities of row and class.

    Examples
    --------
    >>> log_joint([[-2.92, -4.42]], np.log([.5, .5])).round(2).tolist()
    [[-3.61, -5.11]]
    """
    scores, prior = np.asarray(log_likelihood, dtype=float), np.asarray(log_prior, dtype=float)
    if prior.ndim != 1 or len(scores) < MANY_ROWS or not scores.flags.c_contiguous:
        return np.add(scores, prior, out=out)
    joint = np.empty(scores.shape) if out is None else out
    if not joint.flags.c_contiguous:
        return np.add(scores, prior, out=joint)
    each(lambda rows: add_row(scores[rows], prior, joint[rows]), row_chunks(len(scores), 2 * len(prior)))
    return joint


def log_marginal(log_likelihood: ArrayLike, log_prior: ArrayLike) -> Array:
    """Compute the log-density of each row under the model as a whole: log f(x).

    Parameters
    ----------
    log_likelihood : array-like of shape (n, K)
        Log-likelihoods.
    log_prior : array-like of shape (K,) or (n, K)
        Log prior probabilities.

    Returns
    -------
    ndarray of shape (n,)
        Log-densities.

    Examples
    --------
    >>> log_marginal(np.log([[.05395, .01198]]), np.log([.5, .5])).round(3).tolist()
    [-3.412]
    """
    return log_sum_exp(log_joint(log_likelihood, log_prior))


def log_posterior(log_likelihood: ArrayLike, log_prior: ArrayLike, out: Array | None = None) -> Array:
    """Compute the log posterior probability of each class: log P(c|x).

    Parameters
    ----------
    log_likelihood : array-like of shape (n, K)
        Log-likelihoods.
    log_prior : array-like of shape (K,) or (n, K)
        Log prior probabilities.
    out : ndarray of shape (n, K), optional
        Where to write the result; may be `log_likelihood` itself, which saves an allocation.

    Returns
    -------
    ndarray of shape (n, K)
        Log posterior probabilities; the log prior for impossible rows.

    Examples
    --------
    A person of 174 cm, male or female, in a group of which nine in ten are female:

    >>> post = log_posterior(np.log([[.05395, .01198]]), np.log([.1, .9]))
    >>> np.exp(post).round(4).tolist()
    [[0.3335, 0.6665]]
    """
    posterior = _normalised(log_softmax, log_likelihood, log_prior, out)
    rows = rows_equal(posterior[:, 0], -np.inf)  # candidates by one class: testing all of them is slower
    impossible = rows[np.isneginf(posterior[rows]).all(axis=1)]
    if len(impossible):
        posterior[impossible] = np.broadcast_to(log_prior, posterior.shape)[impossible]
        warn_impossible(impossible, "under every class", "the posterior is the class prior")
    return posterior


def posterior(log_likelihood: ArrayLike, log_prior: ArrayLike, out: Array | None = None) -> Array:
    """Compute the posterior probability of each class: P(c|x).

    Parameters
    ----------
    log_likelihood : array-like of shape (n, K)
        Log-likelihoods.
    log_prior : array-like of shape (K,) or (n, K)
        Log prior probabilities.
    out : ndarray of shape (n, K), optional
        Where to write the result; may be `log_likelihood` itself, which saves an allocation.

    Returns
    -------
    ndarray of shape (n, K)
        Posterior probabilities; the prior for impossible rows.

    Examples
    --------
    >>> posterior(np.log([[.05395, .01198]]), np.log([.1, .9])).round(4).tolist()
    [[0.3335, 0.6665]]
    """
    shares = _normalised(softmax, log_likelihood, log_prior, out)
    rows = rows_equal(shares[:, 0], 0.0)  # candidates by one class: testing all of them is slower
    impossible = rows[~shares[rows].any(axis=1)]
    if len(impossible):
        shares[impossible] = np.exp(np.broadcast_to(log_prior, shares.shape)[impossible])
        warn_impossible(impossible, "under every class", "the posterior is the class prior")
    return shares


def _normalised(
    normalise: Callable[..., Array], log_likelihood: ArrayLike, log_prior: ArrayLike, out: Array | None
) -> Array:
    """Add the log prior and normalise each row; where rows have one prior, while they are in the cache."""
    scores, prior = np.asarray(log_likelihood, dtype=float), np.asarray(log_prior, dtype=float)
    if prior.ndim == 1 and scores.flags.c_contiguous and (out is None or out.flags.c_contiguous):
        return normalise(scores, out=out, row=prior)
    joint = log_joint(scores, prior, out)
    return normalise(joint, out=joint)


def most_probable(log_likelihood: Array, log_prior: Array) -> NDArray[np.intp] | None:
    """Find the most probable class of each row, the first of equal ones.

    Parameters
    ----------
    log_likelihood : ndarray of shape (n, K)
        Log-likelihoods.
    log_prior : ndarray of shape (K,) or (n, K)
        Log prior probabilities.

    Returns
    -------
    ndarray of shape (n,) or None
        Numbers of the classes; None if a row is impossible.

    Examples
    --------
    >>> most_probable(np.log([[.05395, .01198]]), np.log([.1, .9])).tolist()
    [1]
    """
    best = np.empty(len(log_likelihood), np.intp)
    own = np.ndim(log_prior) == 2

    def decide(rows: slice) -> bool:
        joint = log_joint(log_likelihood[rows], log_prior[rows] if own else log_prior)
        joint.argmax(axis=1, out=best[rows])
        with np.errstate(invalid="ignore", over="ignore"):
            if np.isfinite(joint.sum()):
                return True
        return not np.isneginf(joint[np.arange(len(joint)), best[rows]]).any()

    return best if all(each(decide, row_chunks(len(best), 8 * log_likelihood.shape[1] + 32))) else None


def log_ratio(over: ArrayLike, against: ArrayLike) -> Array:
    """Subtract logarithms; the difference of −inf and −inf is 0.

    Parameters
    ----------
    over, against : array-like
        Logarithms, of shapes that broadcast.

    Returns
    -------
    ndarray
        The differences.

    Examples
    --------
    >>> log_ratio([-1.0, -1.0, -np.inf], [-3.0, -np.inf, -np.inf]).tolist()
    [2.0, inf, 0.0]
    """
    over, against = np.broadcast_arrays(np.asarray(over, dtype=float), np.asarray(against, dtype=float))
    return np.subtract(over, against, out=np.zeros(over.shape), where=~(np.isinf(over) & (over == against)))


def llr(log_likelihood: ArrayLike, over: int, against: int | None = None, log_prior: ArrayLike | None = None) -> Array:
    """Compute the log-likelihood ratio of one class over another, or over all other classes.

    Parameters
    ----------
    log_likelihood : array-like of shape (n, K)
        Log-likelihoods.
    over : int
        Number of the class the evidence is for.
    against : int, optional
        Number of the class it is compared with, all others if not given.
    log_prior : array-like of shape (K,) or (n, K), optional
        Weights of the other classes among themselves, equal if not given or zero for all of them.

    Returns
    -------
    ndarray of shape (n,)
        Evidence in nats.

    Examples
    --------
    >>> densities = np.log([[.05395, .01198]])
    >>> llr(densities, over=0, against=1).round(3).tolist()
    [1.505]
    >>> llr(densities, over=0, log_prior=np.log([.1, .9])).round(3).tolist()
    [1.505]
    """
    log_likelihood = np.asarray(log_likelihood, dtype=float)
    rival = log_likelihood[:, against] if against is not None else _log_rest(log_likelihood, over, log_prior)
    impossible = np.isneginf(log_likelihood[:, over]) & np.isneginf(rival)
    if impossible.any():
        warn_impossible(np.flatnonzero(impossible), "on both sides of the llr", "the llr is 0")
    return log_ratio(log_likelihood[:, over], rival)


def llr_over_runner_up(log_likelihood: ArrayLike, decided: ArrayLike, log_prior: ArrayLike) -> Array:
    """Compute the llr of each row's decided class over the most probable other class.

    Parameters
    ----------
    log_likelihood : array-like of shape (n, K)
        Log-likelihoods.
    decided : array-like of shape (n,)
        Number of the decided class of each row.
    log_prior : array-like of shape (K,) or (n, K)
        Log prior probabilities. Of classes that are equally probable the likelier one is compared with.

    Returns
    -------
    ndarray of shape (n,)
        Evidence in nats; 0 if there is one class only.

    Examples
    --------
    >>> densities = np.log([[.05395, .01198]])
    >>> llr_over_runner_up(densities, [1], np.log([.1, .9])).round(3).tolist()
    [-1.505]
    """
    log_likelihood, decided = np.asarray(log_likelihood, dtype=float), np.asarray(decided, dtype=np.intp)
    n, K = log_likelihood.shape
    if K == 1:
        return np.zeros(n)
    rows = np.arange(n)
    joint = log_joint(log_likelihood, log_prior)
    joint[rows, decided] = -np.inf
    runner_up = joint.argmax(axis=1)
    equal = joint == joint[rows, runner_up][:, None]
    tied = np.flatnonzero(np.count_nonzero(equal, axis=1) > 1)  # also where all others have posterior zero
    if len(tied):
        rivals = np.where(equal[tied], log_likelihood[tied], -np.inf)
        rivals[np.arange(len(tied)), decided[tied]] = -np.inf
        runner_up[tied] = rivals.argmax(axis=1)
    runner_up = np.where(runner_up == decided, (decided + 1) % K, runner_up)  # all others −inf: any of them
    return log_ratio(log_likelihood[rows, decided], log_likelihood[rows, runner_up])


def _log_rest(log_likelihood: Array, over: int, log_prior: ArrayLike | None) -> Array:
    """Log-density under the other classes together: log Σ_{j≠over} P(j|not over) f(x|j)."""
    K = log_likelihood.shape[1]
    if K == 1:
        raise InputError(
            "the model has one class: there is no other class to compare it with. Learn a second class first."
        )
    rest = np.delete(np.arange(K), over)
    weights = np.atleast_2d(np.zeros(K) if log_prior is None else np.asarray(log_prior, dtype=float))[:, rest]
    weights = np.where(np.isneginf(weights).all(axis=1, keepdims=True), 0.0, weights)
    return log_sum_exp(log_likelihood[:, rest] + (weights - log_sum_exp(weights)[:, None]))


def warn_impossible(rows: NDArray[np.intp], where: str, answer: str) -> None:
    """Warn once of all impossible rows, with their number and the first positions; as of the caller's caller."""
    named = rows.tolist()
    count, names = ("1 row has", "row") if len(named) == 1 else (f"{len(named):,} rows have", "rows")
    warnings.warn(
        f"{count} probability zero {where} ({names} {shortlist(named)}): {answer}. "
        "Let no probability be zero: rule 'mean', or a pseudo_count > 0.",
        ImpossibleRowWarning,
        stacklevel=3,
    )


# -- class proportions -------------------------------------------------------------------------------------------------
PROPORTIONS_TOLERANCE = 1e-6  # nats over all rows, which moves a proportion by a thousandth of its standard error
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

    A proportion below half a row, 1/(2n), is raised to that, because n rows cannot show that a class is absent; not if
    every row is impossible under the class.

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
    """Raise proportions below 1/(2n) of classes that some row may belong to; the others are lowered in proportion."""
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
        if left <= PROPORTIONS_TOLERANCE:
            return prior, iteration
        prior = _step(likelihood, prior, prior * gain, _newton_point(ratio, prior, gain))
    warnings.warn(
        f"the proportions did not converge in {MAX_ITERATIONS:,} iterations: the log-likelihood may still rise by "
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
    """Return the longest of the halved Newton steps with a higher objective than the EM step, else the EM step."""
    best = by_em / by_em.sum()
    height = np.log(likelihood @ best).sum() - PROPORTIONS_TOLERANCE / 10  # near the maximum, differences are rounding
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
