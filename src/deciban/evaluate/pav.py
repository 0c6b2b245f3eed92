"""Pool adjacent violators: the best that any monotone recalibration could do with these scores.

    pools    rows in order of llr, merged until the share of h1 rises from pool to pool
    llr'   = log(rows of h1 / rows of h0 in the pool) − log(N1 / N0)        free of the prior of the test rows

A pool of one class alone is −inf or +inf: that is what these rows say, and why PAV flatters small test sets.

Reference: Brümmer & du Preez, Application-independent evaluation of speaker detection, Computer Speech and Language
20 (2006), section 7.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from deciban.errors import InputError
from deciban.evaluate.checks import Codes, score_column
from deciban.evaluate.tally import Tally
from deciban.score import Array


def pav(llr: ArrayLike, is_h1: ArrayLike) -> Array:
    """Each row's llr after the best monotone recalibration, which never ranks one row above another anew.

    >>> pav([-2.2, 0.3, 1.5, 1.5, 4.0], [False, True, False, False, True]).round(3).tolist()
    [-inf, -0.288, -0.288, -0.288, inf]
    """
    tally = Tally.of(llr, is_h1)
    edges = tally.pools()
    return np.repeat(pool_llr(tally, edges), np.diff(edges))[tally.place]


def pool_llr(tally: Tally, edges: Codes) -> Array:
    """The llr that each pool's rows testify to."""
    h1, h0 = tally.pooled(edges)
    with np.errstate(divide="ignore"):  # of quotients, so that 1/3 and 2/6 are the same number
        return np.log(h1 / h0) - np.log(h1.sum() / h0.sum())


@dataclass(frozen=True, eq=False, repr=False)
class PAV:
    """A calibrator that keeps the pools: the calibrated llr at both ends of each.

    Between two pools it is linear. Beyond the outermost scores it is constant. A gap beside an infinite pool takes the
    finite neighbour's value, so that infinite evidence is claimed only where such scores were seen; a gap between −inf
    and +inf says nothing: 0.

    >>> fitted = PAV.fit([-2.2, 0.3, 1.5, 1.5, 4.0], [False, True, False, False, True])
    >>> fitted.apply([-3.0, -1.0, 0.9, 4.0]).round(3).tolist()
    [-inf, -0.288, -0.288, inf]
    >>> fitted
    PAV(3 pools, llr −inf to inf)
    """

    score: Array  # (2B,)  lowest and highest score of each pool
    calibrated: Array  # (2B,)  the pool's llr, twice

    @classmethod
    def fit(cls, llr: ArrayLike, is_h1: ArrayLike) -> PAV:
        """Pool these scores."""
        tally = Tally.of(llr, is_h1)
        edges = tally.pools()
        ends = np.column_stack([edges[:-1], edges[1:] - 1]).ravel()
        return cls(tally.score[ends], np.repeat(pool_llr(tally, edges), 2))

    def apply(self, llr: ArrayLike, lengths: Any = None) -> Array:
        """Calibrated llrs of new scores; lengths do not matter."""
        scores, last = score_column(llr), len(self.score) - 1
        below = np.clip(np.searchsorted(self.score, scores, side="right") - 1, 0, last)
        above = np.clip(np.searchsorted(self.score, scores, side="left"), 0, last)
        low, high = self.calibrated[below], self.calibrated[above]
        answer = np.where(np.isinf(low), np.where(np.isinf(high), 0.0, high), low)
        between = np.isfinite(low) & np.isfinite(high) & (low != high)
        share = _share(scores[between], self.score[below[between]], self.score[above[between]])
        answer[between] = (1 - share) * low[between] + share * high[between]
        return np.where(low == high, low, answer)

    def to_dict(self) -> dict[str, Any]:
        """Plain values; infinities are words, which every JSON reader accepts."""
        return {"kind": "pav", "score": _words(self.score), "calibrated": _words(self.calibrated)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> PAV:
        score, calibrated = (np.array([float(x) for x in values[name]]) for name in ("score", "calibrated"))
        if score.shape != calibrated.shape or not len(score):
            raise InputError(f"{len(score)} scores and {len(calibrated)} calibrated llrs do not make a PAV calibrator.")
        return cls(score, calibrated)

    def __repr__(self) -> str:
        ends = f"{self.calibrated[0]:.3g} to {self.calibrated[-1]:.3g}".replace("-", "−")
        count = len(self.score) // 2
        return f"PAV({count:,} pool{'s' * (count != 1)}, llr {ends})"


def _share(scores: Array, low: Array, high: Array) -> Array:
    """How far each score lies on its way from low to high; beside an infinite end, all the way to the finite one."""
    from_nowhere, to_nowhere = np.isneginf(low), np.isposinf(high)
    share = np.where(from_nowhere & ~to_nowhere, 1.0, np.where(to_nowhere & ~from_nowhere, 0.0, 0.5))
    way, whole = scores / 2 - low / 2, high / 2 - low / 2  # halves cannot overflow
    return np.divide(way, whole, out=share, where=~from_nowhere & ~to_nowhere & (whole > 0))


def _words(numbers: Array) -> list[float | str]:
    return [x if np.isfinite(x) else str(x) for x in numbers.tolist()]
