"""The fit of every parametric calibrator: a scale for each block of evidence and an offset for each class.

    P(c|x) = softmax_c( Σ_b s_b·log f_b(x|c) + b_c + log π_c ),    s_b = e^(a_b)·ρ_b^(−γ_b),  ρ = length / reference
    minimise  − Σ_c π_c · mean over rows of c of log P(c|x)  −  log p(a, γ, b) / n

Rows are weighted so that the classes have the prior π, not their proportions among the rows; the offsets b therefore do
not hold the prior. The penalty −log p is a Normal prior of the parameters, whose weight vanishes as rows are added:

    log scales a   mean: the centre below; standard deviation 2 for each block, and 3 for what all blocks share;
                   above the centre a further penalty of standard deviation 0.5
    shrinkages γ   0.7 ± 0.3; fits on six collections of texts gave 0.6 to 0.9
    offsets b      0 ± 2 nats

Columns repeat each other, so scales far below the centre are common, and common to many blocks at once. Scales above
the centre mean an underconfident model, which is rare; rows that the scores separate without an error fit best with an
infinite scale. The centre of a block whose evidence has a standard deviation of at most 1 nat is a = 0; that of other
blocks scales their evidence to 1 nat. The widths were chosen by the log loss of held-out rows, over samples of 12 to
1,000 rows of seven tables and six collections of texts (of the training part, where there is a test part). With a weak
penalty, 50 texts could give a log loss far above that of the class proportions (`benchmarks/few_rows.py`).

The minimum is found by Newton steps; the objective need not be convex in a and γ, so that the curvature is replaced
by a positive definite matrix where it is not. Each step is halved until the objective falls.

Weights ≥ 0 for parts of a score, beside a score whose scales were fitted before, are fitted by

    P(c|x) = softmax_c( v·g_0(x|c) + Σ_e w_e·g_e(x|c) + b_c + log π_c ),      v ≥ v_least, w ≥ 0
    minimise  − Σ_i log P(c_i|x_i)  +  λ/2·(Σ_e w_e² + (v − 1)²)  +  Σ_c b_c²/(2·OFFSET_SD²)

Weights are ≥ 0: a negative weight on left-out evidence would reveal the label, because the evidence of a row for its
own class is weaker once the row is left out of the counts of that class. Parts enter in rounds: those along whose
weights the loss falls most, by gradient² / curvature. Then all weights are fitted by projected Newton steps. The
objective is convex.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from math import log
from typing import NamedTuple

import numpy as np

from deciban.errors import ConvergenceWarning, InputError
from deciban.evaluate.checks import Codes
from deciban.evidence.scores import Array, log_probability
from deciban.kernels.choice import one_thread

LOG_SCALE_SD, SHARED_LOG_SCALE_SD, ABOVE_CENTRE_SD = 2.0, 3.0, 0.5
SHRINKAGE_MEAN, SHRINKAGE_SD = 0.7, 0.3
OFFSET_SD = 2.0  # nats
PLAUSIBLE_NATS = 1.0  # a block whose evidence varies more than this is expected to be overconfident

MAX_STEPS = 200
TOLERANCE = 1e-12  # nats per row that a step still gains
FINAL_STEP = 1e-8, 1e-2  # gain and length of a step after which the remaining error is negligible
MAX_STEP = 2.0  # in log s: beyond it, the quadratic approximation is poor
MIN_STEP = 1e-12  # a step that changes nothing


class Penalty(NamedTuple):
    """A quadratic penalty on P parameters, larger above its centre than below; per row."""

    centre: Array  # (P,)
    precision: Array  # (P, P)
    above: Array  # (P,)  added to the diagonal of the precision for parameters above the centre

    def value(self, parameters: Array) -> tuple[float, Array, Array]:
        """The penalty, its gradient, and its curvature.

        >>> value, gradient, curvature = Penalty(np.zeros(1), np.eye(1), np.ones(1)).value(np.array([3.0]))
        >>> value, gradient.tolist(), curvature.tolist()
        (9.0, [6.0], [[2.0]])
        """
        away = parameters - self.centre
        curvature = self.precision + np.diag(np.where(away > 0, self.above, 0.0))
        gradient = curvature @ away
        return float(away @ gradient / 2), gradient, curvature


# spread (B,) of the evidence of each block, number of scale parameters J, of classes K and of rows n → penalty
MakePenalty = Callable[[Array, int, int, int], Penalty]


def weak_penalty(spread: Array, J: int, K: int, n: int) -> Penalty:
    """Return a penalty that keeps the scale finite where scores separate the rows: at most about 2·log n nats."""
    centre = np.zeros(J + K)
    centre[: len(spread)] = [-log(one) for one in spread]
    return Penalty(centre, np.diag(np.repeat([1.0, 0.01], [J, K])) / n**2, np.zeros(J + K))


def informative_penalty(spread: Array, J: int, K: int, n: int) -> Penalty:
    """Return the penalty of the Normal prior in the docstring of this module."""
    B, P = len(spread), J + K
    centre, precision, above = np.zeros(P), np.zeros((P, P)), np.zeros(P)
    centre[:B] = [-log(max(1.0, one / PLAUSIBLE_NATS)) for one in spread]
    centre[B:J] = SHRINKAGE_MEAN
    # the inverse of LOG_SCALE_SD²·I + SHARED_LOG_SCALE_SD²·11ᵀ
    shared = SHARED_LOG_SCALE_SD**2 / (LOG_SCALE_SD**2 + B * SHARED_LOG_SCALE_SD**2)
    precision[:B, :B] = (np.eye(B) - shared) / LOG_SCALE_SD**2
    precision[range(B, J), range(B, J)] = 1 / SHRINKAGE_SD**2
    precision[range(J, P), range(J, P)] = 1 / OFFSET_SD**2
    above[:B] = 1 / ABOVE_CENTRE_SD**2
    return Penalty(centre, precision / n, above / n)


class Fit(NamedTuple):
    """Scales of B blocks and offsets of K classes."""

    log_scales: Array  # (B,)  at the reference length
    shrinkages: Array  # (B,)  0 where the scale does not depend on the length
    offsets: Array  # (K,)  nats; mean 0, and 0 for classes without rows


class Problem(NamedTuple):
    """The data of the objective: n rows, B blocks, K classes that all have rows and prior, J parameters of scales."""

    scores: Array  # (B, K − 1, n)  log-likelihoods less those of the first class
    possible: Array | None  # (K, n)  0, or −inf where impossible; None where all are possible
    own: Codes  # (n,)  class of each row
    weight: Array  # (n,)  π_c / rows of c
    log_prior: Array  # (K,)
    slope: Array  # (J, n)  ∂ log s / ∂ a = 1, then ∂ log s / ∂ γ = −log ρ for blocks with lengths
    block: Codes  # (J,)  the block of each parameter
    penalty: Penalty  # on all J + K parameters

    def scales(self, parameters: Array) -> Array:
        """(B, n) the factor of each block in each row; (B, 1) where no block has lengths."""
        B, J = len(self.scores), len(self.block)
        scales = np.exp(parameters[:B, None])
        if J == B:
            return scales
        scales = np.repeat(scales, self.scores.shape[2], axis=1)
        scales[self.block[B:]] *= np.exp(self.slope[B:] * parameters[B:J, None])
        return scales


def fit_scaled_softmax(
    tables: Sequence[Array],
    codes: Codes,
    prior: Array,
    log_lengths: Sequence[Array | None] = (None,),
    penalty: MakePenalty = weak_penalty,
    start: Fit | None = None,
) -> Fit:
    """Fit scales and offsets to a table (n, K) of log-likelihoods for each block, with one thread of BLAS.

    `log_lengths` holds log ρ (n,) of each block whose scale depends on the length. A row that is impossible under its
    own class costs the same at all parameters, and is left out. The steps begin at `start`, such as the fit of similar
    scores, or else at the centre of the penalty.

    >>> scores, codes = np.array([[0.0, 4.0], [4.0, 0.0]] * 300), np.array([1, 0, 1, 0, 0, 1] * 100)
    >>> fit = fit_scaled_softmax([scores], codes, np.array([.5, .5]))
    >>> round(float(np.exp(fit.log_scales[0]) * 4), 2)    # right two times of three: log 2
    0.69
    """
    with one_thread(0):  # threads of BLAS cost more than they save here
        return fit_one_of_many(tables, codes, prior, log_lengths, penalty, start)


def fit_one_of_many(
    tables: Sequence[Array],
    codes: Codes,
    prior: Array,
    log_lengths: Sequence[Array | None],
    penalty: MakePenalty,
    start: Fit | None,
) -> Fit:
    """Do what `fit_scaled_softmax` does, for callers that limit the threads of BLAS themselves."""
    problem, kept = _problem(tables, codes, prior, log_lengths, penalty)
    J, B = len(problem.block), len(tables)
    first = problem.penalty.centre
    if start is not None:
        first = np.concatenate([start.log_scales, start.shrinkages[problem.block[B:]], start.offsets[kept]])
    parameters = _minimise(problem, first)
    offsets, shrinkages = np.zeros(len(prior)), np.zeros(B)
    offsets[kept] = parameters[J:] - parameters[J:].mean()  # a constant common to all classes has no effect
    shrinkages[problem.block[B:]] = parameters[B:J]
    return Fit(parameters[:B], shrinkages, offsets)


def fit_each_scaled_softmax(
    each: Sequence[Sequence[Array]],
    codes: Codes,
    prior: Array,
    log_lengths: Sequence[Array | None] = (None,),
    penalty: MakePenalty = weak_penalty,
) -> list[Fit]:
    """Fit scales and offsets to the tables of each of several models of the same rows."""
    with one_thread(0):
        return [fit_one_of_many(tables, codes, prior, log_lengths, penalty, None) for tables in each]


def _problem(
    tables: Sequence[Array],
    codes: Codes,
    prior: Array,
    log_lengths: Sequence[Array | None],
    make_penalty: MakePenalty,
) -> tuple[Problem, Codes]:
    """The problem restricted to usable rows and the classes that have some, and the numbers of these classes."""
    whole = sum(tables[1:], start=tables[0])
    usable = np.isfinite(whole[np.arange(len(codes)), codes]) & (prior[codes] > 0)
    kept, own = np.unique(codes[usable], return_inverse=True)
    if len(kept) < 2:
        raise InputError(
            f"a calibration needs rows of two classes or more: {usable.sum():,} of {len(codes):,} rows can be used, of "
            f"{('no class', 'one class')[len(kept)]} (rows of probability zero under their own class cannot be used).",
            remedy="Give rows of at least two classes.",
        )
    scores = np.stack([np.ascontiguousarray(table[usable][:, kept].T) for table in tables])
    impossible = np.isneginf(scores).any(axis=0)
    scores -= scores.max(axis=1, keepdims=True)
    possible = np.where(impossible, -np.inf, 0.0) if impossible.any() else None
    scores[:, impossible] = 0.0
    share = prior[kept] / prior[kept].sum()
    weight = (share / np.bincount(codes)[kept])[own]  # by all rows of the class, also those that are left out
    spread = np.sqrt(scores.var(axis=1) @ weight / weight.sum())  # (B,)
    long = [(b, log_length) for b, log_length in enumerate(log_lengths) if log_length is not None]
    slope = np.stack([np.ones(len(own))] * len(tables) + [-log_length[usable] for _, log_length in long])
    block = np.r_[np.arange(len(tables)), np.array([b for b, _ in long], dtype=np.intp)]
    penalty = make_penalty(np.where(spread > 0, spread, 1.0), len(block), len(kept), len(own))
    relative = relative_scores(scores)
    return Problem(relative, possible, own, weight, np.log(share), slope, block, penalty), kept


def objective(problem: Problem, parameters: Array) -> tuple[float, Array, Array]:
    """The penalised cross-entropy in nats, its gradient, and its curvature."""
    B, J, weight = len(problem.scores), len(problem.block), problem.weight
    scaled = problem.scales(parameters)[:, None, :] * problem.scores  # (B, K − 1, n)
    bias = parameters[J:] + problem.log_prior
    lost, posterior = softmax(scaled[0] if B == 1 else scaled.sum(axis=0), bias, problem.possible, problem.own)
    penalty, slope_of_penalty, curved = problem.penalty.value(parameters)
    surplus = excess(posterior, problem.own, weight)
    if J == B:
        steepness = scaled.reshape(B, -1) @ surplus[1:].ravel()
        parts, mixed, classes = curvature(scaled, posterior, weight)
        curved[:J, :J] += parts + np.diag(steepness)
        curved[:J, J:] += mixed
        curved[J:, J:] += classes
    else:
        steepness = _add_curvature_by_length(problem, scaled, posterior, surplus, curved)
    curved[J:, :J] = curved[:J, J:].T
    gradient = np.concatenate([steepness, surplus.sum(axis=1)]) + slope_of_penalty
    return float(weight @ lost + penalty), gradient, curved


def _add_curvature_by_length(problem: Problem, scaled: Array, posterior: Array, surplus: Array, curved: Array) -> Array:
    """Add the curvature of the loss to `curved`, and return its slope along the parameters of the scales, (J,)."""
    J, weighted = len(problem.block), problem.weight * posterior
    mean = np.einsum("ci,bci->bi", posterior[1:], scaled)
    each = np.einsum("ci,bci->bi", surplus[1:], scaled)  # (B, n)  ∂ loss / ∂ log s of each row
    pulled = scaled * weighted[1:]
    # (B, B, n)  covariances of the blocks' scores in each row
    spread = np.einsum("bci,dci->bdi", pulled, scaled) - problem.weight * mean[:, None] * mean
    spread[np.arange(len(scaled)), np.arange(len(scaled))] += each
    for j, (b, slope) in enumerate(zip(problem.block, problem.slope)):
        sloped = slope * mean[b]
        curved[j, J:] -= weighted @ sloped
        curved[j, J + 1 :] += pulled[b] @ slope
        curved[j, :J] += (problem.slope * spread[b, problem.block]) @ slope
    curved[J:, J:] += np.diag(weighted.sum(axis=1)) - posterior @ weighted.T
    return np.einsum("ji,ji->j", problem.slope, each[problem.block])


def _newton_step(problem: Problem, parameters: Array, gradient: Array, curvature: Array, least: float) -> Array:
    """Return −C⁻¹·gradient, where C is the curvature, or a positive definite matrix near it.

    Without lengths, C is the curvature less the terms that are negative, those of scales along which the loss falls.
    Otherwise it has the absolute values of the curvature's eigenvalues, at least `least`.
    """
    try:
        np.linalg.cholesky(curvature - 0.5 * least * np.eye(len(gradient)))
        return np.asarray(-np.linalg.solve(curvature, gradient))  # the curvature is positive definite
    except np.linalg.LinAlgError:
        B = len(problem.scores)
        if len(problem.block) == B:
            steepness = (gradient - problem.penalty.value(parameters)[1])[:B]
            bent = curvature.copy()
            bent[range(B), range(B)] += np.maximum(-steepness, 0.0)
            return np.asarray(-np.linalg.solve(bent, gradient))
        bends, directions = np.linalg.eigh(curvature)
        return np.asarray(-directions @ ((directions.T @ gradient) / np.maximum(abs(bends), least)))


def _minimise(problem: Problem, parameters: Array) -> Array:
    """Newton steps from these parameters, each of which lowers the objective."""
    with np.errstate(all="ignore"):  # a step that is too long overflows, and is then halved
        loss, gradient, curvature = objective(problem, parameters)
        least = problem.penalty.precision.diagonal().min()
        for _ in range(MAX_STEPS):
            step = _newton_step(problem, parameters, gradient, curvature, least)
            gain, length = -gradient @ step, abs(step).max()
            if gain < FINAL_STEP[0] and length < FINAL_STEP[1]:
                return parameters + step
            if gain < TOLERANCE:
                return parameters
            step /= max(1.0, abs(step[: len(problem.block)]).max() / MAX_STEP)
            further = objective(problem, parameters + step)
            while not further[0] < loss and abs(step).max() > MIN_STEP:
                step /= 2
                further = objective(problem, parameters + step)
            if not further[0] < loss:  # a further gain is below rounding
                return parameters
            parameters, (loss, gradient, curvature) = parameters + step, further
    warnings.warn(
        f"the calibration did not converge in {MAX_STEPS} steps; its objective is {loss:.9g} nats a row.",
        ConvergenceWarning,
        stacklevel=5,
    )
    return parameters


# -- softmax of sums of scores -----------------------------------------------------------------------------------------
# Scores of P parts are relative to the first class, (P, K − 1, n): a constant common to all classes has no effect.
# Classes come before rows, because numpy is slow along short rows.
def relative_scores(scores: Array) -> Array:
    """Return scores (P, K, n) less those of the first class, shape (P, K − 1, n)."""
    return np.asarray(scores[:, 1:] - scores[:, :1])


def softmax(sums: Array, bias: Array, possible: Array | None, own: Codes) -> tuple[Array, Array]:
    """Return −log P of the own class of each row, (n,), and the posteriors, (K, n).

    `sums` (K − 1, n) are relative to the first class, and `bias` (K,) is added to each class. `possible` (K, n) is −inf
    where a class is impossible, and 0 elsewhere; None stands for zeros.
    """
    logits = np.empty((len(bias), sums.shape[1]))
    logits[0] = bias[0]
    np.add(sums, bias[1:, None], out=logits[1:])
    if possible is not None:
        logits += possible
    logits -= logits.max(axis=0)
    lost = logits[own, np.arange(len(own))]
    posterior = np.exp(logits, out=logits)
    total = posterior.sum(axis=0)
    posterior /= total
    return np.log(total) - lost, posterior


def excess(posterior: Array, own: Codes, weight: Array | float = 1.0) -> Array:
    """Return w·(posterior − 1 for the own class), shape (K, n): the slope of the losses along each logit."""
    found = weight * posterior
    found[own, np.arange(len(own))] -= weight
    return found


class Curvature(NamedTuple):
    """Second derivatives of Σ w·loss along the weights of P parts and the biases of K classes."""

    parts: Array  # (P, P)
    mixed: Array  # (P, K)
    classes: Array  # (K, K)


def curvature(scores: Array, posterior: Array, weight: Array | float = 1.0) -> Curvature:
    """Return the curvature at posteriors (K, n), for scores (P, K − 1, n): their covariances over the classes."""
    weighted = weight * posterior
    classes = np.diag(weighted.sum(axis=1)) - posterior @ weighted.T
    if len(posterior) == 2:  # the variance of a score that is d with probability p, else 0, is p·(1 − p)·d²
        about, spread = scores[:, 0], weighted[0] * posterior[1]
        pulled, slope = about * np.sqrt(spread), about @ spread
        return Curvature(pulled @ pulled.T, np.stack([-slope, slope], axis=1), classes)
    P, mean = len(scores), np.einsum("ci,pci->pi", posterior[1:], scores)
    pulled = scores * weighted[1:]
    mixed = -mean @ weighted.T
    mixed[:, 1:] += pulled.sum(axis=2)
    parts = pulled.reshape(P, -1) @ scores.reshape(P, -1).T - (weight * mean) @ mean.T
    return Curvature(parts, mixed, classes)


# -- weights of parts --------------------------------------------------------------------------------------------------
WEIGHT_STEPS = 50
WEIGHT_TOLERANCE = 1e-3  # nats over all rows that a step of weights still gains
ROUNDS = 3
PARTS_PER_ROUND = 10
LEAST_MAIN = 0.01  # weight v of the score that was fitted before
LEAST_GAIN = 3.0  # nats over all rows: least expected gain of a part that enters
SHARE_PENALTY, TOTAL_PENALTY = 1.0, 1000.0  # nats per squared unit: of each share, and of their sum less 1
HELD = 1e9  # precision of parameters that are held fixed


class Weights(NamedTuple):
    """Weights of the main score and of E parts, and offsets of K classes."""

    main: float
    parts: Array  # (E,) ≥ 0
    offsets: Array  # (K,) nats; mean 0, and 0 for classes without rows


def fit_weights(
    main: Array, parts: Sequence[Array], codes: Codes, prior: Array, penalties: Sequence[float]
) -> list[Weights]:
    """Fit weights of parts (n, K) beside a main score (n, K), for each of several penalties λ that decrease.

    Each fit begins with the parts of the one before.

    >>> rng = np.random.default_rng(0)
    >>> codes = rng.integers(0, 2, 500)
    >>> truth = np.where(np.eye(2)[codes] > 0, 1.0, 0.0) + rng.normal(0, 1, (500, 2))
    >>> parts = [truth, rng.normal(0, 1, (500, 2))]
    >>> fit_weights(np.zeros((500, 2)), parts, codes, np.array([.5, .5]), [100.0, 1.0])[-1].parts.round(1)
    array([1., 0.])
    """
    usable = np.isfinite(main[np.arange(len(codes)), codes]) & (prior[codes] > 0)
    kept, own = np.unique(codes[usable], return_inverse=True)
    given = main[usable][:, kept].T[None]  # (1, K, n)
    possible = np.where(np.isneginf(given[0]), -np.inf, 0.0) if np.isneginf(given).any() else None
    given = relative_scores(np.where(np.isneginf(given), 0.0, given))
    every = np.empty((len(parts), *given.shape[1:]))
    for into, part in zip(every, parts):
        of_class = part.T if usable.all() and len(kept) == len(prior) else part[usable][:, kept].T
        np.subtract(of_class[1:], of_class[:1], out=into)
    share = prior[kept] / prior[kept].sum()
    path = _Path(given, every, possible, own, np.log(share))
    found = []
    with np.errstate(all="ignore"), one_thread(0):
        for penalty in penalties:
            x = path.fit(penalty)
            weights, offsets = np.zeros(len(parts)), np.zeros(len(prior))
            P = 1 + len(path.chosen)
            weights[path.chosen] = x[1:P]
            offsets[kept] = x[P:] - x[P:].mean()
            found.append(Weights(float(x[0]), weights, offsets))
    return found


def fit_shares(scores: Sequence[Array], codes: Codes, prior: Array, surprise: float = 0.0) -> Array:
    """Fit shares ≥ 0 of several scores (n, K) of the same rows, by the log loss of their weighted sum.

    The sum of the shares is held near 1, by a penalty of TOTAL_PENALTY nats for each squared unit. `surprise` is the
    number of wrong rows that are expected besides these: it limits the evidence where all rows are right.

    >>> codes = np.array([0, 1] * 50)
    >>> truth, noise = 3.0 * np.eye(2)[codes], np.random.default_rng(0).normal(0, 3, (100, 2))
    >>> fit_shares([truth, noise], codes, np.array([.5, .5])).round(1)
    array([1., 0.])
    """
    P, K = len(scores), len(prior)
    own = np.arange(len(codes)), codes
    usable = np.isfinite(np.stack([each[own] for each in scores])).all(axis=0) & (prior[codes] > 0)
    kept, numbers = np.unique(codes[usable], return_inverse=True)
    given = np.stack([each[usable][:, kept].T for each in scores])
    possible = np.where(np.isneginf(given).any(axis=0), -np.inf, 0.0)
    given = np.where(np.isneginf(possible), 0.0, given)
    K = len(kept)
    precision = np.diag(np.r_[np.full(P, SHARE_PENALTY), np.full(K, HELD)])
    precision[:P, :P] += TOTAL_PENALTY
    first, least = np.r_[np.full(P, 1 / P), np.zeros(K)], np.r_[np.zeros(P), np.full(K, -np.inf)]
    share = log_probability(prior[kept] / prior[kept].sum())
    centre = first.copy()
    if surprise and K > 1:  # adding a linear term to a quadratic penalty moves its centre
        centre[:P] -= np.linalg.solve(precision[:P, :P], surprise * _mean_evidence(given, numbers, np.exp(share)))
    some = possible if possible.any() else None
    problem = WeightProblem(relative_scores(given), some, numbers, share, centre, precision, least)
    with np.errstate(all="ignore"), one_thread(0):
        found = problem.minimise(first)[:P]
    return np.asarray(found / max(1.0, found.sum()))


def _mean_evidence(scores: Array, own: Codes, prior: Array) -> Array:
    """Return the mean score of a row's own class less that of another class, drawn by the prior; (P,) of (P, K, n)."""
    of_own, whole = scores[:, own, np.arange(len(own))], np.einsum("k,pkn->pn", prior, scores)
    others = (whole - prior[own] * of_own) / (1.0 - prior[own])
    return np.asarray((of_own - others).mean(axis=1))


class _Path:
    """The parts chosen so far, and their weights; mutable."""

    def __init__(self, main: Array, every: Array, possible: Array | None, own: Codes, log_prior: Array) -> None:
        self.main, self.every, self.given = main, every, (possible, own, log_prior)
        self.chosen: list[int] = []
        self.x = np.r_[1.0, np.zeros(len(log_prior))]

    def fit(self, penalty: float) -> Array:
        """Return the weights under a penalty: of the main score, of the parts chosen, and the offsets."""
        for _ in range(ROUNDS):
            problem = self._problem(penalty)
            self.x = problem.minimise(self.x)
            gains = problem.gains(self.x, self.every)
            gains[self.chosen] = 0.0
            best = np.argsort(-gains, kind="stable")[:PARTS_PER_ROUND]
            more = [int(e) for e in best if gains[e] > LEAST_GAIN]
            if not more:
                return self.x
            P = 1 + len(self.chosen)
            used = np.flatnonzero(self.x[1:P] > 0)
            self.x = np.r_[self.x[0], self.x[1:P][used], np.zeros(len(more)), self.x[P:]]
            self.chosen = [self.chosen[at] for at in used] + more
        self.x = self._problem(penalty).minimise(self.x)
        return self.x

    def _problem(self, penalty: float) -> WeightProblem:
        P, K = 1 + len(self.chosen), len(self.given[2])
        scores = np.concatenate([self.main, self.every[self.chosen]])
        precision = np.diag(np.r_[np.full(P, penalty), np.full(K, 1 / OFFSET_SD**2)])
        least = np.r_[LEAST_MAIN, np.zeros(P - 1), np.full(K, -np.inf)]
        return WeightProblem(scores, *self.given, np.r_[1.0, np.zeros(P - 1 + K)], precision, least)


class WeightProblem:
    """Log loss of softmax of weighted parts, with a quadratic penalty about a centre and least values: convex."""

    def __init__(
        self,
        scores: Array,
        possible: Array | None,
        own: Codes,
        log_prior: Array,
        centre: Array,
        precision: Array,
        least: Array,
    ) -> None:
        # (P, K − 1, n)
        self.scores, self.possible, self.own, self.log_prior = scores, possible, own, log_prior
        # of P weights and K offsets: the penalty is quadratic about the centre
        self.centre, self.precision, self.least = centre, precision, least

    def posterior(self, x: Array) -> tuple[float, Array]:
        """Return the penalised loss and the posteriors (K, n)."""
        P = len(self.scores)
        sums = (x[:P] @ self.scores.reshape(P, -1)).reshape(self.scores.shape[1:])
        lost, posterior = softmax(sums, x[P:] + self.log_prior, self.possible, self.own)
        away = x - self.centre
        return float(lost.sum() + away @ self.precision @ away / 2), posterior

    def slopes(self, x: Array, posterior: Array) -> tuple[Array, Array]:
        """Return the gradient and the curvature."""
        P, surplus = len(self.scores), excess(posterior, self.own)
        gradient = np.r_[self.scores.reshape(P, -1) @ surplus[1:].ravel(), surplus.sum(axis=1)]
        gradient += self.precision @ (x - self.centre)
        parts, mixed, classes = curvature(self.scores, posterior)
        return gradient, self.precision + np.block([[parts, mixed], [mixed.T, classes]])

    def minimise(self, x: Array) -> Array:
        """Projected Newton steps; each is halved until the objective falls."""
        loss, posterior = self.posterior(x)
        for _ in range(WEIGHT_STEPS):
            gradient, curved = self.slopes(x, posterior)
            free = (x > self.least) | (gradient < 0)
            step = np.zeros(len(x))
            step[free] = -np.linalg.solve(curved[np.ix_(free, free)], gradient[free])
            size = 1.0
            while size > 1e-9:
                further = np.maximum(x + size * step, self.least)
                lower, there = self.posterior(further)
                if lower <= loss:
                    break
                size /= 2
            gain, x, loss, posterior = loss - lower, further, lower, there
            if not gain > WEIGHT_TOLERANCE:
                break
        return x

    def gains(self, x: Array, parts: Array) -> Array:
        """Return by how much the loss may fall along the weight of each part (E, K − 1, n), from weight 0."""
        _, posterior = self.posterior(x)
        slopes = parts.reshape(len(parts), -1) @ excess(posterior, self.own)[1:].ravel()
        found = np.zeros(len(parts))
        for e in np.flatnonzero(slopes < 0):
            pulled = parts[e] * posterior[1:]
            mean = pulled.sum(axis=0)
            bend = np.vdot(pulled, parts[e]) - mean @ mean
            found[e] = slopes[e] ** 2 / (2 * bend) if bend > 0 else 0.0
        return found
