"""The fit behind every parametric calibrator: a scale per block, perhaps shrinking with length, an offset per class.

    P(c|x) = softmax_c( Σ_b s_b·log f_b(x|c) + b_c + log π_c ),    s_b = e^(a_b)·ρ_b^(−γ_b),  ρ = length / reference
    minimise  − Σ_c π_c · mean over rows of c of log P(c|x)  −  log p(a, γ, b) / n

Rows are weighed so that the classes have the prior π, whatever the rows' own proportions; so b leaves the prior out.
p is what is believed of the parameters (module belief). No llr is ever cut off.

Newton steps, downhill also where the objective bends the wrong way (it need not be convex in a and γ), each halved
until it gains.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from deciban.errors import ConvergenceWarning, InputError
from deciban.evaluate.belief import Belief, Believe, vague
from deciban.evaluate.checks import Codes
from deciban.score import Array, log_probability

MOST_STEPS = 200
CLOSE_ENOUGH = 1e-12  # nats a row still to be gained
LAST_STEP = 1e-8, 1e-2  # nats a row, and length: what is left after such a step is its square, and not worth a look
LONGEST = 2.0  # step in log s: beyond it, the objective has little to do with its curvature here
TOO_SHORT = 1e-12  # a step that changes nothing


class Fit(NamedTuple):
    """For each of B blocks the log scale at the reference length and how it shrinks; and an offset per class."""

    log_scales: Array  # (B,)
    shrinkages: Array  # (B,)  0 where lengths do not matter
    offsets: Array  # (K,)  0 on average, and 0 for classes without rows


class Problem(NamedTuple):
    """What the objective is made of, for n rows, K classes, all with rows and prior, and J parameters of scales."""

    scores: Array  # (B, K, n)  log-likelihoods less each row's greatest; 0 where impossible
    possible: Array | None  # (K, n)  0, or −inf where impossible; None where nothing is
    own: Codes  # (n,)  class of each row
    weight: Array  # (n,)  π_c over rows of c
    log_prior: Array  # (K,)
    slope: Array  # (J, n)  ∂ log s / ∂ a = 1, then ∂ log s / ∂ γ = −log ρ where lengths matter
    block: Codes  # (J,)  whose scale each parameter moves
    belief: Belief  # of all J + K parameters

    def scales(self, parameters: Array) -> Array:
        """(B, n) the factor of each block in each row."""
        B, J = len(self.scores), len(self.block)
        scales = np.repeat(np.exp(parameters[:B, None]), self.scores.shape[2], axis=1)
        scales[self.block[B:]] *= np.exp(self.slope[B:] * parameters[B:J, None])
        return scales


def fit_scaled_softmax(
    tables: Sequence[Array],
    codes: Codes,
    prior: Array,
    log_lengths: Sequence[Array | None] = (None,),
    believe: Believe = vague,
) -> Fit:
    """The best scales and offsets; a block's `log_length` is log ρ, where its scale may shrink with it.

    A row that its own class finds impossible costs the same (all there is) whatever the parameters: it has no say.

    >>> scores, codes = np.array([[0.0, 4.0], [4.0, 0.0]] * 300), np.array([1, 0, 1, 0, 0, 1] * 100)
    >>> fit = fit_scaled_softmax([scores], codes, np.array([.5, .5]))
    >>> round(float(np.exp(fit.log_scales[0]) * 4), 2)    # right two times of three: log 2
    0.69
    """
    problem, kept = _problem(tables, codes, prior, log_lengths, believe)
    J, B = len(problem.block), len(tables)
    parameters = _minimise(problem)
    offsets, shrinkages = np.zeros(len(prior)), np.zeros(B)
    offsets[kept] = parameters[J:] - parameters[J:].mean()  # what all share says nothing
    shrinkages[problem.block[B:]] = parameters[B:J]
    return Fit(parameters[:B], shrinkages, offsets)


def _problem(
    tables: Sequence[Array],
    codes: Codes,
    prior: Array,
    log_lengths: Sequence[Array | None],
    believe: Believe,
) -> tuple[Problem, Codes]:
    """The problem among usable rows and the classes they are of, and those classes."""
    whole = sum(tables[1:], start=tables[0])
    usable = np.isfinite(whole[np.arange(len(codes)), codes]) & (prior[codes] > 0)
    kept, own = np.unique(codes[usable], return_inverse=True)
    if len(kept) < 2:
        raise InputError(
            f"{usable.sum():,} of {len(codes):,} rows can be used, and they are not of two classes (a row that its own "
            "class finds impossible cannot). Calibrate on rows of at least two classes."
        )
    scores = np.stack([np.ascontiguousarray(table[usable][:, kept].T) for table in tables])
    impossible = np.isneginf(scores).any(axis=0)
    scores -= scores.max(axis=1, keepdims=True)
    possible = np.where(impossible, -np.inf, 0.0) if impossible.any() else None
    scores[:, impossible] = 0.0
    share = prior[kept] / prior[kept].sum()
    weight = (share / np.bincount(codes)[kept])[own]  # over all rows of the class: the unusable ones count, too
    spread = np.sqrt(scores.var(axis=1) @ weight / weight.sum())  # (B,)  how much each block says of a row
    long = [b for b, log_length in enumerate(log_lengths) if log_length is not None]
    slope = np.stack([np.ones(len(own))] * len(tables) + [-log_lengths[b][usable] for b in long])  # type: ignore[index]
    block = np.r_[np.arange(len(tables)), np.array(long, dtype=np.intp)]
    belief = believe(np.where(spread > 0, spread, 1.0), len(block), len(kept), len(own))
    return Problem(scores, possible, own, weight, log_probability(share), slope, block, belief), kept


def objective(problem: Problem, parameters: Array) -> tuple[float, Array, Array]:
    """The penalised cross-entropy in nats, its gradient, and its curvature."""
    B, J, weight = len(problem.scores), len(problem.block), problem.weight
    own = problem.own, np.arange(len(problem.own))
    scaled = problem.scales(parameters)[:, None, :] * problem.scores
    logits = (scaled[0] if B == 1 else scaled.sum(axis=0)) + (parameters[J:] + problem.log_prior)[:, None]
    if problem.possible is not None:
        logits += problem.possible
    logits -= logits.max(axis=0)
    lost = -logits[own]
    posterior = np.exp(logits, out=logits)
    total = posterior.sum(axis=0)
    posterior /= total
    energy, pull, curvature = problem.belief.energy(parameters)
    loss = weight @ (lost + np.log(total)) + energy

    weighted = weight * posterior
    mean = np.einsum("ci,bci->bi", posterior, scaled)
    excess = weight * (mean - scaled[:, *own])  # (B, n)  ∂ loss / ∂ log s of each row
    surplus = weighted.sum(axis=1) - np.bincount(problem.own, weights=weight, minlength=len(posterior))
    gradient = np.r_[np.einsum("ji,ji->j", problem.slope, excess[problem.block]), surplus] + pull

    about = np.subtract(scaled, mean[:, None, :], out=scaled)
    pulled = about * weighted
    spread = np.einsum("bci,dci->bdi", pulled, about)  # (B, B, n)  covariances of the blocks' scores in each row
    spread[np.arange(B), np.arange(B)] += excess
    for j, (b, slope) in enumerate(zip(problem.block, problem.slope)):
        curvature[j, J:] += pulled[b] @ slope
        curvature[j, :J] += (problem.slope * spread[b, problem.block]) @ slope
    curvature[J:, :J] = curvature[:J, J:].T
    curvature[J:, J:] += np.diag(weighted.sum(axis=1)) - posterior @ weighted.T
    return float(loss), gradient, curvature


def _minimise(problem: Problem) -> Array:
    """Newton steps from what is believed, each of which lowers the objective."""
    parameters = problem.belief.centre
    with np.errstate(all="ignore"):  # a step too far overflows, and is then halved
        loss, gradient, curvature = objective(problem, parameters)
        least = problem.belief.precision.diagonal().min()
        for _ in range(MOST_STEPS):
            bends, directions = np.linalg.eigh(curvature)
            step = -directions @ ((directions.T @ gradient) / np.maximum(abs(bends), least))
            gain, length = -gradient @ step, abs(step).max()
            if gain < LAST_STEP[0] and length < LAST_STEP[1]:
                return parameters + step
            if gain < CLOSE_ENOUGH:
                return parameters
            step /= max(1.0, abs(step[: len(problem.block)]).max() / LONGEST)
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
