"""Where EM begins: models of single rows as seeds, or responsibilities drawn at random.

Seeds are spread out as k-means++ spreads its centres, for any family: a model of one row, held up by the prior, stands
for a centre, and what the best seed so far loses against the row's own model stands for the squared distance.

Reference: Arthur & Vassilvitskii, k-means++: the advantages of careful seeding, 2007.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from deciban.errors import HyperparameterError, InputError
from deciban.latent.components import MixtureDensity, MixtureSums
from deciban.latent.expectation import Rows
from deciban.statistics import Array, Axis, Members

STARTS = ("k-means++", "random")
CANDIDATES = 32  # rows among which each seed is chosen
CANDIDATE_NUMBERS = 2**23  # parameters of all candidates' models together, at most
AT_ONCE = 16  # candidates whose own models are made together


def seeds(rows: Rows, names: Axis, rng: np.random.Generator) -> MixtureDensity:
    """Components that are each a model of one row, far from one another."""
    M, n = names.size, len(rows)
    some = int(np.clip(CANDIDATE_NUMBERS // max(1, rows.X.shape[1]), 4 * M, CANDIDATES * M))
    pool = rng.choice(n, min(n, max(some, M)), replace=False, p=_chances(rows.weight))
    X, weight = rows.X[pool], np.ones(len(pool)) if rows.weight is None else rows.weight[pool]
    own = np.concatenate([_own_scores(rows.family, X[at : at + AT_ONCE]) for at in range(0, len(pool), AT_ONCE)])
    chosen = [int(rng.choice(len(pool), p=_chances(weight)))]
    best = _of_row(rows.family, X, chosen[0])
    while len(chosen) < M:
        far = np.maximum(own - best, 0.0) * weight
        far[chosen] = 0.0
        if not far.any() or not np.isfinite(far).all():  # duplicates: any other row will do
            far = np.where(np.isin(np.arange(len(pool)), chosen), 0.0, weight)
        chosen.append(int(rng.choice(len(pool), p=far / far.sum())))
        best = np.maximum(best, _of_row(rows.family, X, chosen[-1]))
    return MixtureDensity(np.full(M, -np.log(M)), _models(rows.family, X[np.array(chosen)], names))


def random_sums(rows: Rows, names: Axis, rng: np.random.Generator) -> MixtureSums:
    """Every row shared out at random, uniformly over all ways to share."""
    return rows.collect_shares(names, lambda begin, end: rng.dirichlet(np.ones(names.size), end - begin))


def given_sums(rows: Rows, names: Axis, shares: Any) -> MixtureSums:
    """Responsibilities as given, (n, M)."""
    shares = np.asarray(shares, dtype=float)
    if shares.shape != (len(rows), names.size):
        raise InputError(
            f"start has shape {shares.shape}, but there are {len(rows)} rows and {names.size} components. "
            "Give one responsibility for each, or the name of a start."
        )
    if not np.isfinite(shares).all() or (shares < 0).any():
        raise InputError("responsibilities must be finite and at least 0. Mend `start`.")
    return rows.collect_shares(names, lambda begin, end: shares[begin:end])


def check_start(start: Any) -> None:
    """Refuse the name of a start that is not one."""
    if isinstance(start, str) and start not in STARTS:
        raise HyperparameterError(f"start={start!r} is not one of {', '.join(STARTS)}, nor responsibilities (n, M).")


def _models(family: Any, X: Any, names: Axis) -> Any:
    return family.estimate(family.collect(X, Members.hard(np.arange(names.size), names)), "mean")


def _own_scores(family: Any, X: Any) -> Array:
    """(n,) how each row scores by its own model."""
    return np.diagonal(_models(family, X, Axis.of(X.shape[0])).log_density(X))


def _of_row(family: Any, X: Any, row: int) -> Array:
    """(n,) how all rows score by one row's model."""
    return _models(family, X[row : row + 1], Axis.of(1)).log_density(X)[:, 0]


def _chances(weight: Array | None) -> Array | None:
    return None if weight is None else weight / weight.sum()
