"""The fit behind every parametric calibrator: one scale, perhaps shrinking with length, and an offset per class.

    P(c|x) = softmax_c( s·log f(x|c) + b_c + log π_c ),    s = e^a·ρ^(−γ),  ρ = length / reference length
    minimise  − Σ_c π_c · mean over rows of c of log P(c|x)  +  (a² + γ² + Σ b²/100) / 2n²

Rows are weighed so that the classes have the prior π, whatever the rows' own proportions; so b leaves the prior out.

The penalty is a Normal prior of variance n on a (relative to the spread of the scores) and on γ, of 100·n on b. It is
far below what n rows can tell, and is there for what they cannot tell: separable scores, which would drive s to
infinity, keep it finite, at about 2·log n nats for a typical score. No llr is ever cut off.

Newton steps, downhill also where the objective bends the wrong way (it need not be convex in a and γ), each halved
until it gains.
"""

from __future__ import annotations

import warnings
from math import log
from typing import NamedTuple

import numpy as np

from deciban.errors import ConvergenceWarning, InputError
from deciban.evaluate.checks import Codes
from deciban.score import Array, log_probability

MOST_STEPS = 200
CLOSE_ENOUGH = 1e-12  # nats a row still to be gained
LONGEST = 2.0  # step in log s: beyond it, the objective has little to do with its curvature here
TOO_SHORT = 1e-12  # a step that changes nothing


class Fit(NamedTuple):
    """The log scale at the reference length, how it shrinks with length, and an offset per class."""

    log_scale: float
    shrinkage: float
    offsets: Array  # (K,)  0 on average, and 0 for classes without rows


class Problem(NamedTuple):
    """What the objective is made of, for n rows and K classes, all with rows and prior."""

    scores: Array  # (n, K)  log-likelihoods less each row's greatest, over their spread; 0 where impossible
    possible: Array | None  # (n, K)  0, or −inf where impossible; None where nothing is
    own: Codes  # (n,)  class of each row
    weight: Array  # (n,)  π_c over rows of c
    log_prior: Array  # (K,)
    slope: Array  # (n, J)  ∂ log s / ∂ (a, γ): 1, and −log ρ where lengths matter
    ridge: Array  # (J + K,)  weights of the penalty: 1/n², and 1/100n² for offsets


def fit_scaled_softmax(log_likelihood: Array, codes: Codes, prior: Array, log_length: Array | None = None) -> Fit:
    """The best scale and offsets; `log_length` is log ρ, where the scale may shrink with it.

    A row that its own class finds impossible costs the same (all there is) whatever the parameters: it has no say.

    >>> scores, codes = np.array([[0.0, 4.0], [4.0, 0.0]] * 300), np.array([1, 0, 1, 0, 0, 1] * 100)
    >>> fit = fit_scaled_softmax(scores, codes, np.array([.5, .5]))
    >>> round(float(np.exp(fit.log_scale) * 4), 2)    # right two times of three: log 2
    0.69
    """
    problem, kept, spread = _problem(log_likelihood, codes, prior, log_length)
    parameters = _minimise(problem, np.zeros(problem.slope.shape[1] + len(kept)))
    offsets = np.zeros(len(prior))
    offsets[kept] = parameters[-len(kept) :] - parameters[-len(kept) :].mean()  # what all share says nothing
    shrinkage = parameters[1] if log_length is not None else 0.0
    return Fit(float(parameters[0]) - log(spread), float(shrinkage), offsets)


def _problem(table: Array, codes: Codes, prior: Array, log_length: Array | None) -> tuple[Problem, Codes, float]:
    """The problem among usable rows and the classes they are of, those classes, and the spread of the scores."""
    usable = np.isfinite(table[np.arange(len(codes)), codes]) & (prior[codes] > 0)
    kept, own = np.unique(codes[usable], return_inverse=True)
    if len(kept) < 2:
        raise InputError(
            f"{usable.sum():,} of {len(codes):,} rows can be used, and they are not of two classes (a row that its own "
            "class finds impossible cannot). Calibrate on rows of at least two classes."
        )
    scores = table[usable][:, kept]
    scores -= scores.max(axis=1, keepdims=True)
    impossible = np.isneginf(scores)
    possible = np.where(impossible, -np.inf, 0.0) if impossible.any() else None
    scores[impossible] = 0.0
    share = prior[kept] / prior[kept].sum()
    weight = (share / np.bincount(codes)[kept])[own]  # over all rows of the class: the unusable ones count, too
    spread = float(np.sqrt(weight @ scores.var(axis=1) / weight.sum())) or 1.0
    slope = np.ones((len(own), 1)) if log_length is None else np.column_stack([np.ones(len(own)), -log_length[usable]])
    ridge = np.repeat([1.0, 0.01], [slope.shape[1], len(kept)]) / len(own) ** 2
    problem = Problem(scores / spread, possible, own, weight, log_probability(share), slope, ridge)
    return problem, kept, spread


def objective(problem: Problem, parameters: Array) -> tuple[float, Array, Array]:
    """The penalised cross-entropy in nats, its gradient, and its curvature."""
    J, rows = problem.slope.shape[1], np.arange(len(problem.own))
    scale, weight = np.exp(problem.slope @ parameters[:J]), problem.weight
    logits = scale[:, None] * problem.scores + (parameters[J:] + problem.log_prior)
    if problem.possible is not None:
        logits += problem.possible
    logits -= logits.max(axis=1, keepdims=True)
    lost = -logits[rows, problem.own]
    posterior = np.exp(logits, out=logits)
    total = posterior.sum(axis=1)
    posterior /= total[:, None]
    loss = weight @ (lost + np.log(total)) + problem.ridge @ parameters**2 / 2

    weighted = weight[:, None] * posterior
    mean = np.einsum("ic,ic->i", posterior, problem.scores)
    about = problem.scores - mean[:, None]
    variance = np.einsum("ic,ic,ic->i", posterior, about, about)
    surplus = weighted.sum(axis=0) - np.bincount(problem.own, weights=weight, minlength=posterior.shape[1])
    excess = mean - problem.scores[rows, problem.own]
    gradient = np.r_[problem.slope.T @ (weight * scale * excess), surplus] + problem.ridge * parameters

    curvature = np.diag(problem.ridge)
    bend = weight * scale * (scale * variance + excess)
    curvature[:J, :J] += problem.slope.T @ (problem.slope * bend[:, None])
    curvature[:J, J:] = (problem.slope * scale[:, None]).T @ (weighted * about)
    curvature[J:, :J] = curvature[:J, J:].T
    curvature[J:, J:] += np.diag(weighted.sum(axis=0)) - posterior.T @ weighted
    return float(loss), gradient, curvature


def _minimise(problem: Problem, parameters: Array) -> Array:
    """Newton steps, each of which lowers the objective."""
    with np.errstate(all="ignore"):  # a step too far overflows, and is then halved
        loss, gradient, curvature = objective(problem, parameters)
        for _ in range(MOST_STEPS):
            bends, directions = np.linalg.eigh(curvature)
            step = -directions @ ((directions.T @ gradient) / np.maximum(abs(bends), problem.ridge.min()))
            if -gradient @ step < CLOSE_ENOUGH:
                return parameters
            step /= max(1.0, abs(step[: problem.slope.shape[1]]).max() / LONGEST)
            further = objective(problem, parameters + step)
            while not further[0] < loss and abs(step).max() > TOO_SHORT:
                step /= 2
                further = objective(problem, parameters + step)
            if not further[0] < loss:  # rounding hides any further gain
                return parameters
            parameters, (loss, gradient, curvature) = parameters + step, further
    warnings.warn(
        f"the calibration had not settled after {MOST_STEPS} steps; its objective is {loss:.9g} nats a row.",
        ConvergenceWarning,
        stacklevel=4,
    )
    return parameters
