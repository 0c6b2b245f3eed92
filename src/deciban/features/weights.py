"""Row weights as given."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deciban.errors import WeightError


def row_weights(sample_weight: Any, n: int) -> NDArray[np.float64] | None:
    """Weights of n rows as floats, checked; None stays None, and weights that are all 1 become None.

    >>> row_weights([1, 2.5], 2)
    array([1. , 2.5])
    """
    if sample_weight is None:
        return None
    weight = np.asarray(sample_weight, dtype=float)
    if weight.ndim == 0:
        weight = np.full(n, float(weight))
    if weight.shape != (n,):
        raise WeightError(f"sample_weight has shape {weight.shape}, but there are {n} rows. Give one weight a row.")
    bad = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
    if len(bad):
        raise WeightError(
            f"sample_weight holds {weight[bad[0]]} (row {bad[0]}); weights must be finite and at least 0. "
            "To take rows back use unlearn, not a negative weight."
        )
    if n and not weight.any():
        raise WeightError("sample_weight is zero in every row, so there is nothing to learn. Give some row a weight.")
    return None if (weight == 1).all() else weight
