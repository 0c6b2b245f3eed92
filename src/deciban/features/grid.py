"""To what unit numbers were rounded: repeated values are measured by the cell they stand for."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

FINEST = 1e9  # steps from zero: more digits than anybody writes down are no rounding


def grid_of(values: NDArray[Any]) -> float | None:
    """The largest power of ten, 1 or below, of which all values are multiples; None where there is none.

    >>> grid_of(np.array([1.5, 2.25])), grid_of(np.array([100.0, 300.0])), grid_of(np.array([np.pi]))
    (0.01, 1.0, None)
    """
    largest = np.abs(values).max(initial=0.0)
    for power in range(0, -10, -1):
        unit = 10.0**power
        if power and largest / unit > FINEST:
            return None
        scaled = values / unit
        if (np.abs(scaled - np.round(scaled)) <= 1e-6).all():
            return unit
    return None
