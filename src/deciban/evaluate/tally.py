"""Sorted scores and how many rows of each class hold them: what every threshold figure is read from.

miss(t) = share of h1 with llr < t         false alarm(t) = share of h0 with llr ≥ t
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from deciban.evaluate.checks import Codes, two_class_scores
from deciban.score import Array


@dataclass(frozen=True, eq=False)
class Tally:
    """How often each score occurs in each class.

    >>> tally = Tally.of([1.5, -2.2, 1.5, 0.3], [True, False, False, True])
    >>> tally.score.tolist(), tally.h1.tolist(), tally.h0.tolist()
    ([-2.2, 0.3, 1.5], [0.0, 1.0, 1.0], [1.0, 0.0, 1.0])
    """

    score: Array  # (G,)  distinct scores, rising
    h1: Array  # (G,)  rows of h1 at that score
    h0: Array  # (G,)  rows of h0 at that score
    place: Codes  # (n,)  where each row's score stands among the distinct ones

    @classmethod
    def of(cls, llr: ArrayLike, is_h1: ArrayLike) -> Tally:
        """Sort once; equal scores are one score."""
        llr, is_h1 = two_class_scores(llr, is_h1)
        order = llr.argsort()
        ranked = llr[order]
        first = np.r_[True, ranked[1:] != ranked[:-1]]
        starts = np.flatnonzero(first)
        place = np.empty(len(llr), dtype=np.intp)
        place[order] = np.cumsum(first) - 1
        h1 = np.add.reduceat(is_h1[order].astype(float), starts)
        return cls(ranked[starts], h1, np.diff(np.r_[starts, len(llr)]) - h1, place)

    def pools(self) -> Codes:
        """Where each pool of the monotone fit starts, ending with G: pools merge until the share of h1 rises."""
        edges = np.arange(len(self.score) + 1)
        while True:  # once, as a rule: rounding inside a very long pool may leave neighbours in the wrong order
            h1, both = (np.add.reduceat(counts, edges[:-1]) for counts in (self.h1, self.h1 + self.h0))
            share = h1 / both
            if (share[1:] > share[:-1]).all():
                return edges
            from scipy.optimize import isotonic_regression  # a quarter of a second that answers need not wait for

            edges = edges[isotonic_regression(share, weights=both).blocks]

    def pooled(self, edges: Codes) -> tuple[Array, Array]:
        """Rows of h1 and of h0 in each pool."""
        return np.add.reduceat(self.h1, edges[:-1]), np.add.reduceat(self.h0, edges[:-1])


def error_rates(h1: Array, h0: Array) -> tuple[Array, Array]:
    """Miss and false-alarm rates of every threshold, from the one that decides h1 always to the one that never does.

    >>> [rate.tolist() for rate in error_rates(np.array([0.0, 1, 1]), np.array([1.0, 0, 1]))]
    [[0.0, 0.0, 0.5, 1.0], [1.0, 0.5, 0.5, 0.0]]
    """
    below1, below0 = np.r_[0.0, np.cumsum(h1)], np.r_[0.0, np.cumsum(h0)]
    return below1 / below1[-1], (below0[-1] - below0) / below0[-1]
