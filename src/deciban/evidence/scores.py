"""Log-likelihoods → log-likelihood ratios → posteriors; their units, and the llr's threshold.

    llr(x)           = log f(x|c) − log f(x|j)                          evidence, free of any prior
    llr against rest = log f(x|c) − log Σ_{j≠c} P(j)/(1−P(c)) f(x|j)
    P(c|x)           = softmax_c( log f(x|c) + log P(c) )
    f(x)             = Σ_c P(c) f(x|c)

All in log space, from end to end. A zero probability is −inf and stays so; a row that is −inf under every class is
impossible, and is answered with the class prior (posterior) or 0 (llr) and an `ImpossibleRowWarning`; never NaN.

Shapes: n rows, K classes; log-likelihoods are (n, K); log priors are (K,), or (n, K) where each row has its own, as in
leave-one-out.
"""

from __future__ import annotations

import warnings
from math import inf, log
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from deciban.errors import CostError, ImpossibleRowWarning, InputError, PriorError, shortlist
from deciban.kernels import log_softmax, log_sum_exp

Array = NDArray[np.float64]

UNITS = {"nats": 1.0, "bits": 1 / log(2), "bans": 1 / log(10), "decibans": 10 / log(10)}


def convert(nats: Any, unit: str) -> Any:
    """Evidence in the unit that people read; 10 decibans are ten to one.

    >>> round(convert(1.505, "decibans"), 2)
    6.54
    """
    if unit not in UNITS:
        raise InputError(f"unit {unit!r} is unknown. Use one of {', '.join(map(repr, UNITS))}.")
    evidence = np.multiply(nats, UNITS[unit])
    return evidence if np.ndim(evidence) else float(evidence)


def log_probability(probability: ArrayLike) -> Array:
    """The log of probabilities, where log 0 is −inf and no reason for a warning.

    >>> log_probability([1.0, 0.0]).tolist()
    [0.0, -inf]
    """
    with np.errstate(divide="ignore"):
        return np.log(np.asarray(probability, dtype=float))


def log_joint(log_likelihood: ArrayLike, log_prior: ArrayLike, out: Array | None = None) -> Array:
    """How probable row and class are together: log f(x|c) + log P(c). `out` may be the log-likelihoods.

    >>> log_joint([[-2.92, -4.42]], np.log([.5, .5])).round(2).tolist()
    [[-3.61, -5.11]]
    """
    return np.add(np.asarray(log_likelihood, dtype=float), np.asarray(log_prior, dtype=float), out=out)


def log_marginal(log_likelihood: ArrayLike, log_prior: ArrayLike) -> Array:
    """How well the model as a whole explains each row: log f(x).

    >>> log_marginal(np.log([[.05395, .01198]]), np.log([.5, .5])).round(3).tolist()
    [-3.412]
    """
    return log_sum_exp(log_joint(log_likelihood, log_prior))


def log_posterior(log_likelihood: ArrayLike, log_prior: ArrayLike, out: Array | None = None) -> Array:
    """The answer once a prior is plugged in: log P(c|x); impossible rows keep the prior.

    `out` may be the log-likelihoods themselves, where nobody needs them any more: new memory costs more than the sum.

    A person of 174 cm, male or female, where nine of ten are female:

    >>> post = log_posterior(np.log([[.05395, .01198]]), np.log([.1, .9]))
    >>> np.exp(post).round(4).tolist()
    [[0.3335, 0.6665]]
    """
    joint = log_joint(log_likelihood, log_prior, out)
    posterior = log_softmax(joint, out=joint)
    rows = np.flatnonzero(np.isneginf(posterior[:, 0]))  # usually none: looking at every class would cost more
    impossible = rows[np.isneginf(posterior[rows]).all(axis=1)]
    if len(impossible):
        posterior[impossible] = np.broadcast_to(log_prior, joint.shape)[impossible]
        _warn_impossible(impossible, "under every class", "the posterior is the class prior")
    return posterior


def log_ratio(over: ArrayLike, against: ArrayLike) -> Array:
    """The difference of two logs; 0 where both are −inf, since neither is then the likelier.

    >>> log_ratio([-1.0, -1.0, -np.inf], [-3.0, -np.inf, -np.inf]).tolist()
    [2.0, inf, 0.0]
    """
    over, against = np.broadcast_arrays(np.asarray(over, dtype=float), np.asarray(against, dtype=float))
    return np.subtract(over, against, out=np.zeros(over.shape), where=~(np.isneginf(over) & np.isneginf(against)))


def llr(log_likelihood: ArrayLike, over: int, against: int | None = None, log_prior: ArrayLike | None = None) -> Array:
    """The weight of evidence for class `over` against another class, or against the rest, in nats.

    The rest is weighed by the prior among themselves; equally where no prior is given, or where it is zero for all.

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
        _warn_impossible(np.flatnonzero(impossible), "on both sides of the llr", "the llr is 0")
    return log_ratio(log_likelihood[:, over], rival)


def llr_over_runner_up(log_likelihood: ArrayLike, decided: ArrayLike, log_prior: ArrayLike) -> Array:
    """The llr of each row's decided class over the most probable other class; 0 where there is no other.

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
    alone = np.isneginf(joint.max(axis=1))  # all others have posterior zero: the likeliest of them is the rival
    joint[alone] = log_likelihood[alone]
    joint[rows, decided] = -np.inf
    runner_up = joint.argmax(axis=1)
    runner_up = np.where(runner_up == decided, (decided + 1) % K, runner_up)  # all others −inf: any of them
    return log_ratio(log_likelihood[rows, decided], log_likelihood[rows, runner_up])


def threshold(
    prior: ArrayLike, c_miss: float = 1, c_fa: float = 1, *, c_hit: float = 0, c_pass: float = 0
) -> float | Array:
    """The llr, in nats, above which h1 is decided: −log π̃/(1−π̃), with π̃ the effective prior of h1.

    Missing h1 costs `c_miss`, a false alarm `c_fa`; `c_hit` and `c_pass` are what deciding h1 and h0 rightly costs.
    Of people of whom one in ten is male, male is decided only by evidence above nine to one:

    >>> round(float(np.exp(threshold(.1))), 9)
    9.0
    """
    prior = np.asarray(prior, dtype=float)
    if not ((prior >= 0) & (prior <= 1)).all():
        raise PriorError(f"the prior of h1 is {prior}; probabilities lie between 0 and 1.")
    if not (0 <= c_hit <= c_miss < inf and 0 <= c_pass <= c_fa < inf):
        raise CostError(
            f"c_miss={c_miss}, c_fa={c_fa}, c_hit={c_hit}, c_pass={c_pass}: costs must be finite and ≥ 0, and a right "
            "decision must not cost more than a wrong one."
        )
    miss = log_probability(prior) + log_probability(c_miss - c_hit)
    alarm = log_probability(1 - prior) + log_probability(c_fa - c_pass)
    if np.isneginf(np.maximum(miss, alarm)).any():
        raise CostError("no error that can happen costs anything, so nothing decides. Let c_miss and c_fa be > 0.")
    nats = alarm - miss
    return nats if np.ndim(nats) else float(nats)


def effective_prior(
    prior: ArrayLike, c_miss: float = 1, c_fa: float = 1, *, c_hit: float = 0, c_pass: float = 0
) -> float | Array:
    """The prior of h1 that decides, at equal costs, as this one does at the given costs.

    >>> round(effective_prior(.1, c_miss=9), 9)
    0.5
    """
    effective = expit(np.negative(threshold(prior, c_miss, c_fa, c_hit=c_hit, c_pass=c_pass)))
    return effective if np.ndim(effective) else float(effective)


def _log_rest(log_likelihood: Array, over: int, log_prior: ArrayLike | None) -> Array:
    """How well the other classes together explain each row: log Σ_{j≠over} P(j|not over) f(x|j)."""
    K = log_likelihood.shape[1]
    if K == 1:
        raise InputError("the model has one class: there is no rest to weigh it against. Learn a second class first.")
    rest = np.delete(np.arange(K), over)
    weights = np.atleast_2d(np.zeros(K) if log_prior is None else np.asarray(log_prior, dtype=float))[:, rest]
    weights = np.where(np.isneginf(weights).all(axis=1, keepdims=True), 0.0, weights)
    return log_sum_exp(log_likelihood[:, rest] + (weights - log_sum_exp(weights)[:, None]))


def _warn_impossible(rows: NDArray[np.intp], where: str, answer: str) -> None:
    """One warning per call, that counts the rows and names them."""
    named = rows.tolist()
    count, names = ("1 row has", "row") if len(named) == 1 else (f"{len(named):,} rows have", "rows")
    warnings.warn(
        f"{count} probability zero {where} ({names} {shortlist(named)}): {answer}. "
        "Let no probability be zero: rule 'mean', or a pseudo_count > 0.",
        ImpossibleRowWarning,
        stacklevel=3,
    )
