"""How strong a Dirichlet prior should be, from the counts alone.

With α = s·base there are two scores for a strength s, both sums over cells less sums over tables:

    evidence   log p(N)                           = Σ_cells log α_j^(N_j) − Σ_tables log α0^(N)
    loo        Σ N_j log((N_j − 1 + α_j)/(N − 1 + α0)), each count left out in turn

Reference: Minka, Estimating a Dirichlet distribution, 2000.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from deciban.families.dirichlet import log_rising
from deciban.statistics import Array

REACH = np.log(1e-6), np.log(1e6)  # strengths worth considering


def _left_out(alpha: Array, counts: Array) -> Array:
    return np.asarray(counts * np.log(np.maximum(counts - 1, 0.0) + alpha))


SCORES: dict[str, Callable[[Array, Array], Array]] = {"evidence": log_rising, "loo": _left_out}


def best_strength(by: str, cell_base: Any, cells: Array, table_base: Any, tables: Array) -> float:
    """The strength with the highest score; bases broadcast against counts.

    >>> counts = np.array([[50.0, 50.0], [48.0, 52.0], [51.0, 49.0]])  # fair coins: a strong prior
    >>> best_strength("evidence", 0.5, counts, 1.0, counts.sum(axis=1)) > 100
    True
    """
    score, cell, table = SCORES[by], _distinct(cell_base, cells), _distinct(table_base, tables)
    if not len(cell[1]):
        return 1.0

    def loss(log_strength: float) -> float:
        s = np.exp(log_strength)
        values = [float(times @ score(s * base, counts)) for base, counts, times in (cell, table)]
        return values[1] - values[0]

    grid = np.linspace(*REACH, 41)
    best = int(np.argmin([loss(at) for at in grid]))
    bounds = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    from scipy.optimize import minimize_scalar  # a quarter of a second that answers need not wait for

    return float(np.exp(minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-6}).x))


def _distinct(base: Any, counts: Array) -> tuple[Array, Array, Array]:
    """Bases, counts > 0, and how often each pair occurs: a large vocabulary has few different counts."""
    base, counts = (part[counts > 0] for part in np.broadcast_arrays(np.asarray(base, dtype=float), counts))
    if len(base) and np.all(base == base[0]):
        counts, times = np.unique(counts, return_counts=True)
        return np.full(len(counts), base[0]), counts, times.astype(float)
    return base, counts, np.ones(len(counts))
