"""The cost of an llr over all priors, in bits, and how much of it is miscalibration.

    Cllr             = ½ [ mean over h1 of log2(1 + e^−llr) + mean over h0 of log2(1 + e^llr) ]   1 says nothing
    minCllr          = Cllr after the best monotone recalibration (PAV): what the ranking alone could give
    calibration loss = Cllr − minCllr
    ECE(λ)           = π mean over h1 of log2(1 + e^−(llr+λ)) + (1−π) mean over h0 of log2(1 + e^(llr+λ)),  λ = logit π

Reference: Brümmer & du Preez, Application-independent evaluation of speaker detection, Computer Speech and Language
20 (2006); Ramos & Gonzalez-Rodriguez, Reliable support, Forensic Science International 230 (2013), for ECE.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from deciban.errors import PriorError
from deciban.evaluate.checks import two_class_scores
from deciban.evaluate.pav import pav, pool_llr
from deciban.evaluate.tally import Tally
from deciban.score import Array

GRID = np.linspace(-6, 6, 49)  # prior log odds, in nats: from 1 in 400 to 400 in 1


def cllr(llr: ArrayLike, is_h1: ArrayLike) -> float:
    """What these llrs cost, in bits: 0 for perfect ones, 1 for always saying 0, inf for one certain mistake.

    People of 174 and 160 cm, male over female; the taller is male, the shorter female:

    >>> round(cllr([1.505, -2.247], [True, False]), 3)
    0.217
    >>> cllr([0, 0], [True, False]), cllr([-np.inf, 0], [True, False])
    (1.0, inf)
    """
    llr, is_h1 = two_class_scores(llr, is_h1)
    return float(np.logaddexp(0, -llr[is_h1]).mean() + np.logaddexp(0, llr[~is_h1]).mean()) / (2 * log(2))


def min_cllr(llr: ArrayLike, is_h1: ArrayLike) -> float:
    """What the same ranking would cost, calibrated as well as these very rows allow; at most 1.

    >>> min_cllr([1.505, -2.247], [True, False])
    0.0
    """
    return cllr(pav(llr, is_h1), is_h1)


def calibration_loss(llr: ArrayLike, is_h1: ArrayLike) -> float:
    """The part of Cllr that a better scale of the same scores would save.

    >>> round(calibration_loss([1.505, -2.247], [True, False]), 3)
    0.217
    """
    return cllr(llr, is_h1) - min_cllr(llr, is_h1)


@dataclass(frozen=True, eq=False)
class EmpiricalCrossEntropy:
    """What llrs cost at each prior, in bits; at log odds 0, the Cllr."""

    prior_log_odds: Array  # (G,)  log π/(1−π) of h1, nats
    actual: Array  # (G,)  of the llrs as they are
    calibrated: Array  # (G,)  after PAV: the least that the ranking allows
    reference: Array  # (G,)  of always saying 0, that is, knowing the prior only


def empirical_cross_entropy(
    llr: ArrayLike, is_h1: ArrayLike, prior_log_odds: ArrayLike = GRID
) -> EmpiricalCrossEntropy:
    """The forensic ECE curve; where `actual` is above `reference`, the llrs mislead.

    >>> curve = empirical_cross_entropy([1.505, -2.247], [True, False], [0.0])
    >>> curve.actual.round(3).tolist(), curve.calibrated.tolist(), curve.reference.tolist()
    ([0.217], [0.0], [1.0])
    """
    llr, is_h1 = two_class_scores(llr, is_h1)
    grid = np.atleast_1d(np.asarray(prior_log_odds, dtype=float))
    if not np.isfinite(grid).all():
        raise PriorError(f"prior log odds of {grid[~np.isfinite(grid)][0]}: a certain prior leaves nothing to judge.")
    tally = Tally.of(llr, is_h1)
    edges = tally.pools()
    ones, zeros = tally.pooled(edges)
    best = pool_llr(tally, edges)
    return EmpiricalCrossEntropy(
        grid,
        np.array([_entropy(llr[is_h1], llr[~is_h1], odds) for odds in grid]),
        np.array([_entropy(best[ones > 0], best[zeros > 0], odds, ones[ones > 0], zeros[zeros > 0]) for odds in grid]),
        np.array([_entropy(np.zeros(1), np.zeros(1), odds) for odds in grid]),
    )


def _entropy(of_h1: Array, of_h0: Array, odds: float, ones: Array | None = None, zeros: Array | None = None) -> float:
    """Cross-entropy in bits at one prior; the counts say how many rows share a score."""
    missed = float(np.average(np.logaddexp(0, -of_h1 - odds), weights=ones))
    alarmed = float(np.average(np.logaddexp(0, of_h0 + odds), weights=zeros))
    if np.inf in (missed, alarmed):  # even if the prior is too small to be represented
        return np.inf
    return float(expit(odds) * missed + expit(-odds) * alarmed) / log(2)
