"""The class prior as it would be without each row."""

from __future__ import annotations

import numpy as np

from deciban.statistics import Array


def left_out_prior(rows: Array, codes: Array, weight: Array) -> Array:
    """(n, K) the learnt log prior without each row: (N_c − w)/(N − w) for its class, N_j/(N − w) for the others."""
    left = np.repeat(rows[None, :], len(codes), axis=0)
    own = np.arange(len(codes)), codes
    left[own] = np.maximum(left[own] - weight, 0.0)
    total = left.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_total = np.log(total)
        prior = np.log(rows) - log_total[:, None]
        prior[own] = np.log(left[own]) - log_total
    prior[total <= 0] = -np.log(len(rows))  # nothing left: every class alike
    return prior
