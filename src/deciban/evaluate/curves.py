"""Curves that show what one figure hides, as arrays for any plotting library.

    ROC          hits against false alarms, over all thresholds                 h1 is decided where llr ≥ threshold
    DET          the same as misses against false alarms, both on a probit scale
    Tippett      the share of each class whose llr is at least so much
    reliability  how often h1 was true among rows that were given it with about such a probability

Reference: Martin et al., The DET curve in assessment of detection task performance, Eurospeech 1997.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv, expit, ndtri

from deciban.errors import InputError
from deciban.evaluate.checks import Codes, two_class_scores
from deciban.evaluate.intervals import equal_mass_bins
from deciban.evaluate.two_class import Tally, error_rates
from deciban.evidence.scores import Array


@dataclass(frozen=True, eq=False)
class ROC:
    """Error rates at every threshold, from deciding h1 always to never."""

    threshold: Array  # (P,)  lowest llr that is decided h1; inf and nothing at all at the end
    false_alarm: Array  # (P,)  share of h0 decided h1, falling from 1 to 0
    hit: Array  # (P,)  share of h1 decided h1, falling from 1 to 0

    @property
    def area(self) -> float:
        """The probability that a row of h1 scores above one of h0, ties counting half."""
        return float(-np.trapezoid(self.hit, self.false_alarm))


@dataclass(frozen=True, eq=False)
class DET:
    """The ROC on probit scales, where Gaussian llrs draw straight lines; rates of 0 and 1 are ∓inf."""

    threshold: Array  # (P,)
    false_alarm: Array  # (P,)  probit of the share of h0 decided h1
    miss: Array  # (P,)  probit of the share of h1 decided h0


@dataclass(frozen=True, eq=False)
class Tippett:
    """How much of each class has at least this llr."""

    llr: Array  # (G,)  distinct llrs, rising
    h1: Array  # (G,)  share of h1 with llr ≥ that; should be large for llr ≤ 0
    h0: Array  # (G,)  share of h0 with llr ≥ that; should be small for llr ≥ 0


@dataclass(frozen=True, eq=False)
class Reliability:
    """Promised and observed shares of h1 in bins of about equally many rows, at the test rows' own proportions."""

    promised: Array  # (B,)  mean posterior probability of h1
    observed: Array  # (B,)  share of rows that are of h1
    low: Array  # (B,)  credible band of the observed share, by Beta(1, 1) updated with the bin's rows
    high: Array  # (B,)
    count: Codes  # (B,)  rows


@dataclass(frozen=True, eq=False)
class LLRHistogram:
    """How many rows of each class fall between the edges; infinite llrs are counted apart."""

    edges: Array  # (B + 1,)  nats
    h1: Codes  # (B,)  rows of h1
    h0: Codes  # (B,)  rows of h0
    infinite: Codes  # (2, 2)  rows at −inf and +inf: of h1, then of h0


def roc(llr: ArrayLike, is_h1: ArrayLike) -> ROC:
    """All the trade-offs that these scores offer.

    >>> curve = roc([2.0, 1.0, 0.5, -1.0], [True, False, True, False])
    >>> curve.false_alarm.tolist(), curve.hit.tolist(), curve.area
    ([1.0, 0.5, 0.5, 0.0, 0.0], [1.0, 1.0, 0.5, 0.5, 0.0], 0.75)
    """
    tally = Tally.of(llr, is_h1)
    miss, alarm = error_rates(tally.h1, tally.h0)
    return ROC(np.r_[tally.score, np.inf], alarm, 1 - miss)


def convex_hull(llr: ArrayLike, is_h1: ArrayLike) -> ROC:
    """The ROC's upper hull: what choosing between thresholds at random reaches too.

    >>> hull = convex_hull([2.0, 1.0, 0.5, -1.0], [True, False, True, False])
    >>> hull.false_alarm.tolist(), hull.hit.tolist()
    ([1.0, 0.5, 0.0, 0.0], [1.0, 1.0, 0.5, 0.0])
    """
    tally = Tally.of(llr, is_h1)
    edges = tally.pools()
    miss, alarm = error_rates(*tally.pooled(edges))
    return ROC(np.r_[tally.score[edges[:-1]], np.inf], alarm, 1 - miss)


def det(llr: ArrayLike, is_h1: ArrayLike) -> DET:
    """Misses against false alarms, spread out where both are rare.

    >>> det([2.0, 1.0, 0.5, -1.0], [True, False, True, False]).miss.tolist()
    [-inf, -inf, 0.0, 0.0, inf]
    """
    tally = Tally.of(llr, is_h1)
    miss, alarm = error_rates(tally.h1, tally.h0)
    return DET(np.r_[tally.score, np.inf], ndtri(alarm), ndtri(miss))


def tippett(llr: ArrayLike, is_h1: ArrayLike) -> Tippett:
    """How often evidence is how strong, in each class.

    >>> told = tippett([1.505, -2.247], [True, False])
    >>> told.llr.tolist(), told.h1.tolist(), told.h0.tolist()
    ([-2.247, 1.505], [1.0, 1.0], [1.0, 0.0])
    """
    tally = Tally.of(llr, is_h1)
    miss, alarm = error_rates(tally.h1, tally.h0)
    return Tippett(tally.score, 1 - miss[:-1], alarm[:-1])


def reliability(llr: ArrayLike, is_h1: ArrayLike, bins: int = 10, level: float = 0.95) -> Reliability:
    """Whether what was promised came true, with the band that so few rows leave it.

    >>> kept = reliability([1.505, -2.247], [True, False], bins=2)
    >>> kept.promised.round(2).tolist(), kept.observed.tolist(), kept.low.round(2).tolist(), kept.high.round(2).tolist()
    ([0.1, 0.82], [0.0, 1.0], [0.01, 0.16], [0.84, 0.99])
    """
    if not 0 < level < 1:
        raise InputError(f"level is {level!r}; it is the probability of the band. Give a number between 0 and 1.")
    llr, is_h1 = two_class_scores(llr, is_h1)
    promised = expit(llr + np.log(is_h1.sum() / (~is_h1).sum()))
    place = equal_mass_bins(llr, bins)
    count = np.bincount(place)
    ones = np.bincount(place, weights=is_h1)
    low, high = (betaincinv(1 + ones, 1 + count - ones, (1 + side * level) / 2) for side in (-1, 1))
    return Reliability(np.bincount(place, weights=promised) / count, ones / count, low, high, count)


def llr_histogram(llr: ArrayLike, is_h1: ArrayLike, bins: int | ArrayLike = 50) -> LLRHistogram:
    """How the evidence is spread in each class, over common edges; `bins` is a number of bins, or the edges.

    >>> shape = llr_histogram([1.505, -2.247, -np.inf], [True, False, False], bins=[-3, 0, 3])
    >>> shape.h1.tolist(), shape.h0.tolist(), shape.infinite.tolist()
    ([0, 1], [1, 0], [[0, 0], [1, 0]])
    """
    llr, is_h1 = two_class_scores(llr, is_h1)
    finite = np.isfinite(llr)
    edges = np.histogram_bin_edges(llr[finite], bins)
    h1, h0 = (np.histogram(llr[finite & side], edges)[0] for side in (is_h1, ~is_h1))
    infinite = [[(side & (llr == end)).sum() for end in (-np.inf, np.inf)] for side in (is_h1, ~is_h1)]
    return LLRHistogram(edges, h1, h0, np.array(infinite))
