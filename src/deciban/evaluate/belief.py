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

from collections.abc import Callable
from math import log
from typing import NamedTuple

import numpy as np

from deciban.score import Array

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
