"""The class prior as it would be without each row."""

from __future__ import annotations

import numpy as np

from deciban.statistics import Array


def left_out_prior(rows: Array, codes: Array, weight: Array) -> Array:
    """(n, K) the learnt log prior without each row: (N_c − w)/(N − w) for its class, N_j/(N − w) for the others."""
    left = np.repeat(rows[None, :], len(codes), axis=0)
    at = np.arange(len(codes)), codes
    left[at] = np.maximum(left[at] - weight, 0.0)
    total = left.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        prior = np.log(left) - np.log(total)
    return np.where(total > 0, prior, -np.log(len(rows)))  # nothing left: every class alike
