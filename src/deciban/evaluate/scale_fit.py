"""What is believed of a calibrator before any row speaks, so that few rows are not trusted too far.

    log scales a   each about 2 from what all blocks share, that about 3 from the centre below; above the centre ½ more
    shrinkages γ   .7 ± .3: in six collections of texts it came out between .6 and .9
    offsets b      0 ± 2 nats

Columns repeat each other, so scales far below the centre are common, and shared by many blocks at once; scales above it
mean that a model doubts itself too much, which is rare, and is what separable rows ask for without end. A block that
says a nat or less is taken at its word (a = 0); one that says more is taken to say a nat, until rows show otherwise.

All are Normal and fade as rows come. The widths were chosen by the log loss of rows held out, over samples of 12 to
1,000 rows of seven tables and six collections of texts (the training part, where there is a test part). With next to no
belief, 50 texts could give a log loss far above that of knowing nothing (`benchmarks/few_rows.py`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from deciban.errors import ConvergenceWarning, InputError
from deciban.evaluate.checks import Codes, class_prior, class_scores, row_lengths, score_table, shortest
from deciban.evidence.scores import Array, log_probability

OWN, SHARED, UPWARD = 2.0, 3.0, 0.5  # deviations of log scales
SHRINKAGE, SHRINKAGES = 0.7, 0.3
OFFSETS = 2.0  # nats
SAID = 1.0  # nats that a block may say of a row, on its own word


class Belief(NamedTuple):
    """A Normal prior of P parameters, narrower above its centre; energies are per row."""

    centre: Array  # (P,)
    precision: Array  # (P, P)
    upward: Array  # (P,)  more of it for what lies above the centre

    def energy(self, parameters: Array) -> tuple[float, Array, Array]:
        """−log of the prior up to a constant, its gradient, and its curvature.

        >>> energy, pull, bend = Belief(np.zeros(1), np.eye(1), np.ones(1)).energy(np.array([3.0]))
        >>> energy, pull.tolist(), bend.tolist()
        (9.0, [6.0], [[2.0]])
        """
        away = parameters - self.centre
        bend = self.precision + np.diag(np.where(away > 0, self.upward, 0.0))
        pull = bend @ away
        return float(away @ pull / 2), pull, bend


Believe = Callable[[Array, int, int, int], Belief]


def vague(spread: Array, J: int, K: int, n: int) -> Belief:
    """Next to nothing: scores that rows tell apart without an error keep a finite scale, at about 2·log n nats."""
    centre = np.zeros(J + K)
    centre[: len(spread)] = [-log(one) for one in spread]
    return Belief(centre, np.diag(np.repeat([1.0, 0.01], [J, K])) / n**2, np.zeros(J + K))


def considered(spread: Array, J: int, K: int, n: int) -> Belief:
    """What is believed of B blocks with so much to say, J parameters of scales, and K offsets, before n rows speak."""
    B, P = len(spread), J + K
    centre, precision, upward = np.zeros(P), np.zeros((P, P)), np.zeros(P)
    centre[:B] = [-log(max(1.0, one / SAID)) for one in spread]
    centre[B:J] = SHRINKAGE
    # the inverse of OWN²·I + SHARED²·11ᵀ
    precision[:B, :B] = (np.eye(B) - SHARED**2 / (OWN**2 + B * SHARED**2)) / OWN**2
    precision[range(B, J), range(B, J)] = 1 / SHRINKAGES**2
    precision[range(J, P), range(J, P)] = 1 / OFFSETS**2
    upward[:B] = 1 / UPWARD**2
    return Belief(centre, precision / n, upward / n)


# -- scaled softmax ----------
# The fit behind every parametric calibrator: a scale per block, perhaps shrinking with length, an offset per class.
#
#     P(c|x) = softmax_c( Σ_b s_b·log f_b(x|c) + b_c + log π_c ),    s_b = e^(a_b)·ρ_b^(−γ_b),  ρ = length / reference
#     minimise  − Σ_c π_c · mean over rows of c of log P(c|x)  −  log p(a, γ, b) / n
#
# Rows are weighed so that the classes have the prior π, whatever the rows' own proportions; so b leaves the prior out.
# p is what is believed of the parameters (module belief). No llr is ever cut off.
#
# Newton steps, downhill also where the objective bends the wrong way (it need not be convex in a and γ), each halved
# until it gains.

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


# -- blockwise ----------
# A calibrator for models made of blocks: each block's evidence has a scale of its own.
#
#     log f'(x|c) = Σ_b s_b(L_b)·log f_b(x|c) + b_c,      s_b(L) = e^(a_b)·(L/L₀_b)^(−γ_b)
#
# Columns of one block repeat what others say, more in some blocks than in others: words more than measurements. Where a
# block does not count events its γ is 0.

NUMBERS = ("log_scales", "shrinkages", "reference_lengths", "offsets", "shortest")


@dataclass(frozen=True, eq=False)
class Blockwise:
    """log f'(x|c) = Σ_b s_b·log f_b(x|c) + b_c.

    Of two blocks, the second says nothing that is true:

    >>> told, codes = np.array([[0.0, 2.0], [2.0, 0.0]] * 300), np.array([1, 0, 1, 0, 0, 1] * 100)
    >>> noise = np.random.default_rng(0).normal(0, 3, (600, 2))
    >>> fitted = Blockwise.fit([told, noise], codes)
    >>> fitted
    Blockwise(scales=0.354 0.0403, 2 offsets)
    >>> fitted.apply([[[0.0, 2.0]], [[1.0, 0.0]]]).round(1).tolist()
    [[0.0, 0.7]]
    """

    log_scales: Array  # (B,)  a: log of each block's scale at its reference length
    shrinkages: Array  # (B,)  γ: 0 where lengths do not matter
    reference_lengths: Array  # (B,)  L₀ ≥ 1
    offsets: Array  # (K,)  nats, 0 on average; 0 for classes without rows
    shortest: Array  # (B,)  ≥ 1: rows that are shorter count as long as this

    def __post_init__(self) -> None:
        numbers = [np.asarray(getattr(self, name), dtype=float) for name in NUMBERS]
        blocks = numbers[:3] + numbers[4:]
        alike = len({number.shape for number in blocks}) == 1 and all(number.ndim == 1 for number in numbers)
        long = alike and (np.stack(blocks[2:]) >= 1).all()
        if not (long and all(np.isfinite(number).all() for number in numbers)):
            raise InputError("this is no calibrator: each block needs a finite scale and a reference length ≥ 1.")

    @classmethod
    def fit(
        cls,
        tables: Sequence[ArrayLike],
        codes: ArrayLike,
        lengths: Sequence[ArrayLike | None] | None = None,
        prior: ArrayLike | None = None,
        believe: Believe = considered,
    ) -> Blockwise:
        """Scales and offsets of least cross-entropy at the given prior (K,), else an equal one; (n, K) scores a block.

        `lengths` has for each block the (n,) lengths of its rows, or None where it counts no events.
        """
        checked = [class_scores(table, codes) for table in tables]
        n, K = checked[0][0].shape
        counted = [None if long is None else row_lengths(long, n) for long in lengths or [None] * len(checked)]
        least = np.array([1.0 if long is None else shortest(long) for long in counted])
        logs = [None if long is None else np.log(np.maximum(long, low)) for long, low in zip(counted, least)]
        means = np.array([0.0 if log is None else log.mean() for log in logs])
        centred = [None if log is None else log - mean for log, mean in zip(logs, means)]
        scores = [table for table, _ in checked]
        fit = fit_scaled_softmax(scores, checked[0][1], class_prior(prior, K), centred, believe)
        return cls(fit.log_scales, fit.shrinkages, np.exp(means), fit.offsets, least)

    def scales(self, lengths: Sequence[ArrayLike | None], n: int) -> Array:
        """The factor (B, n) by which each block's evidence counts in each row."""
        logs = np.zeros((len(self.log_scales), n))
        for b in np.flatnonzero(self.shrinkages).tolist():
            counted = np.maximum(row_lengths(lengths[b], n), self.shortest[b])
            logs[b] = np.log(counted / self.reference_lengths[b])
        return np.exp(self.log_scales[:, None] - self.shrinkages[:, None] * logs)

    def apply(self, tables: Sequence[ArrayLike], lengths: Sequence[ArrayLike | None] | None = None) -> Array:
        """Calibrated log-likelihoods (n, K) from those of each block."""
        if len(tables) != len(self.log_scales):
            raise InputError(f"{len(tables)} blocks of scores for a calibrator of {len(self.log_scales)}.")
        checked = [score_table(table) for table in tables]
        scales = self.scales(lengths or [None] * len(checked), len(checked[0]))
        return sum(scale[:, None] * table for scale, table in zip(scales, checked)) + self.offsets

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "blockwise", **{name: getattr(self, name).tolist() for name in NUMBERS}}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Blockwise:
        return cls(*(np.array(values[name], dtype=float) for name in NUMBERS))

    def __repr__(self) -> str:
        scales = " ".join(f"{scale:.3g}" for scale in np.exp(self.log_scales))
        return f"Blockwise(scales={scales}, {len(self.offsets)} offsets)"
