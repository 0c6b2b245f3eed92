"""What decisions cost: at the threshold that theory says, and at the best one.

    DCF(π̃)   = [ π̃ · miss(t) + (1−π̃) · false alarm(t) ] / min(π̃, 1−π̃)          1 costs as much as never looking
    actual     t = −log π̃/(1−π̃)          minimum     the t that costs least
    EER        where the convex hull of the ROC has miss = false alarm

h1 is decided where llr ≥ t. π̃ is the effective prior, which holds the costs too. Least costs lie on the convex hull,
whose corners are the edges of the PAV pools.

Reference: Brümmer & de Villiers, The BOSARIS toolkit: theory, algorithms and code, 2011.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from deciban.errors import PriorError
from deciban.evaluate.tally import Tally, error_rates
from deciban.score import Array, threshold

GRID = np.linspace(-6, 6, 121)  # prior log odds, in nats: from 1 in 400 to 400 in 1


def dcf(llr: ArrayLike, is_h1: ArrayLike, prior: ArrayLike, c_miss: float = 1, c_fa: float = 1) -> Any:
    """What deciding by these llrs costs, relative to deciding without them; over 1 they do harm.

    People of 174 and 160 cm, male over female, at even odds, and where one in a hundred is male:

    >>> dcf([1.505, -2.247], [True, False], .5), dcf([1.505, -2.247], [True, False], [.01, .5]).tolist()
    (0.0, [1.0, 0.0])
    """
    at = _thresholds(prior, c_miss, c_fa)
    return _plain(_actual(Tally.of(llr, is_h1), at, *_relative_costs(at)))


def min_dcf(llr: ArrayLike, is_h1: ArrayLike, prior: ArrayLike, c_miss: float = 1, c_fa: float = 1) -> Any:
    """What deciding by the best threshold on these scores would cost; at most 1.

    >>> min_dcf([1.505, -2.247], [True, False], .01)
    0.0
    """
    at = _thresholds(prior, c_miss, c_fa)
    return _plain(_minimum(Tally.of(llr, is_h1), *_relative_costs(at)))


def eer(llr: ArrayLike, is_h1: ArrayLike) -> float:
    """The rate at which misses and false alarms are equally frequent, on the convex hull; at most .5.

    >>> eer([2.0, 1.0, 0.5, -1.0], [True, False, True, False])
    0.25
    """
    tally = Tally.of(llr, is_h1)
    miss, alarm = error_rates(*tally.pooled(tally.pools()))
    after = int(np.argmax(miss >= alarm))  # the first corner at or beyond the crossing; corner 0 is miss 0, alarm 1
    rise, fall = miss[after] - miss[after - 1], alarm[after - 1] - alarm[after]
    share = (alarm[after - 1] - miss[after - 1]) / (rise + fall)
    return float(miss[after - 1] + share * rise)


@dataclass(frozen=True, eq=False)
class BayesErrorCurve:
    """How often decisions err at each prior; divide by `default` for the normalised DCF."""

    prior_log_odds: Array  # (G,)  log π̃/(1−π̃) of h1, nats
    actual: Array  # (G,)  error rate of the theoretical threshold
    minimum: Array  # (G,)  of the best threshold
    default: Array  # (G,)  of deciding by the prior alone: min(π̃, 1−π̃)


def bayes_error_curve(llr: ArrayLike, is_h1: ArrayLike, prior_log_odds: ArrayLike = GRID) -> BayesErrorCurve:
    """Error rates over a range of priors: the gap between actual and minimum is what miscalibration costs.

    >>> curve = bayes_error_curve([1.505, -2.247], [True, False], [-3.0, 0.0])
    >>> curve.actual.round(3).tolist(), curve.minimum.tolist(), curve.default.round(3).tolist()
    ([0.047, 0.0], [0.0, 0.0], [0.047, 0.5])
    """
    tally, grid = Tally.of(llr, is_h1), np.atleast_1d(np.asarray(prior_log_odds, dtype=float))
    if not np.isfinite(grid).all():
        raise PriorError(f"prior log odds of {grid[~np.isfinite(grid)][0]}: a certain prior needs no decisions.")
    costs = expit(grid), expit(-grid)
    return BayesErrorCurve(grid, _actual(tally, -grid, *costs), _minimum(tally, *costs), np.minimum(*costs))


def _thresholds(prior: ArrayLike, c_miss: float, c_fa: float) -> Any:
    """The llr thresholds of the effective priors, which must leave both classes possible."""
    at = threshold(prior, c_miss, c_fa)
    if not np.isfinite(at).all():
        raise PriorError(
            f"prior {prior!r}, c_miss={c_miss}, c_fa={c_fa} leave only one class worth deciding, so that the cost of "
            "never looking is 0. Give a prior strictly between 0 and 1, and costs > 0."
        )
    return at


def _relative_costs(at: Any) -> tuple[Any, Any]:
    """What a miss and a false alarm cost, over min(π̃, 1−π̃): from e^−t, which loses no digits on rare classes."""
    with np.errstate(over="ignore"):  # a prior below 1e−308: the rarer error costs inf, unless it never happens
        return np.exp(np.maximum(np.negative(at), 0)), np.exp(np.maximum(at, 0))


def _actual(tally: Tally, at: Any, c_miss: Any, c_fa: Any) -> Array:
    miss, alarm = error_rates(tally.h1, tally.h0)
    place = np.searchsorted(tally.score, at, side="left")
    return _product(miss[place], c_miss) + _product(alarm[place], c_fa)


def _minimum(tally: Tally, c_miss: Any, c_fa: Any) -> Array:
    miss, alarm = error_rates(*tally.pooled(tally.pools()))
    costs = _product(miss, np.asarray(c_miss)[..., None]) + _product(alarm, np.asarray(c_fa)[..., None])
    return costs.min(axis=-1)


def _product(rate: Array, cost: Any) -> Array:
    """Rate times cost, 0 where the error never happens."""
    rate, cost = np.broadcast_arrays(rate, cost)
    return np.multiply(rate, cost, out=np.zeros(rate.shape), where=rate > 0)


def _plain(costs: Array) -> Any:
    return costs if np.ndim(costs) else float(costs)
