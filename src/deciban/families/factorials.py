"""Log-factorials whose sums are exact.

The evidence needs Σ log x!, and rows that are learnt and taken back must leave the same bits behind. A float64 sum of
logarithms rounds; a sum of multiples of a power of two does not. So each log x! is kept as two numbers, a multiple of
2⁻¹⁶ and for the rest a multiple of 2⁻⁴⁴: together right to 3·10⁻¹⁴, and their sums are exact in any order as long as
they stay below 2³⁷ and 2⁹ (sixty million values a class at the very worst).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from scipy.special import gammaln

from deciban.statistics import Array

COARSE, FINE = 2.0**16, 2.0**44
UNITS = np.array([COARSE, FINE])
TABLE = 1024  # factorials kept ready


def log_factorial(x: Any) -> Array:
    """(…, 2) two numbers that sum to log x!, each a multiple of a power of two.

    >>> log_factorial(np.array([1.0, 4.0])).sum(axis=-1).round(3)
    array([0.   , 3.178])
    """
    x = np.asarray(x, dtype=float)
    small = x.astype(np.intp) if x.size and x.min() >= 0 and x.max() < TABLE else None
    if small is not None and np.array_equal(small, x):
        return _table()[small]
    return _units(gammaln(x + 1.0)) / UNITS


@cache
def log_factorials() -> Array:
    """(1024, 2) those of 0, 1, 2, …, in whole units of 2⁻¹⁶ and 2⁻⁴⁴."""
    return _units(gammaln(np.arange(TABLE) + 1.0)).astype(np.int64)


@cache
def _table() -> Array:
    return log_factorials() / UNITS


def _units(values: Array) -> Array:
    coarse = np.rint(values * COARSE)
    return np.stack([coarse, np.rint((values - coarse / COARSE) * FINE)], axis=-1)
