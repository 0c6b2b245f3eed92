"""A Gaussian that is known, not learnt."""

from __future__ import annotations

from typing import Any

import numpy as np

from deciban.errors import HyperparameterError
from deciban.families.gaussian.axis_densities import DiagonalNormal
from deciban.families.gaussian.densities import NormalDensity
from deciban.families.protocol import Density
from deciban.linalg import EPS, whiten


def known_density(mean: Any, covariance: Any) -> Density:
    """One density, of D means and D variances or a covariance matrix."""
    centre, spread = np.atleast_1d(np.asarray(mean, dtype=float)), np.asarray(covariance, dtype=float)
    D = len(centre)
    if centre.ndim != 1 or spread.shape not in ((), (1,), (D,), (D, D)):
        raise HyperparameterError(
            f"a mean of shape {np.shape(mean)} and a covariance of shape {spread.shape} do not fit together. "
            "Give D means, and D variances or a D × D matrix."
        )
    if spread.ndim < 2:
        if not (spread > 0).all():
            raise HyperparameterError(f"variances must be > 0, not {np.min(spread):g}.")
        return DiagonalNormal(centre, np.zeros((1, D)), np.broadcast_to(spread, (1, D)))
    if not np.allclose(spread, spread.T) or not whiten(spread[None]).pivot[0] > D * EPS:
        raise HyperparameterError("a covariance matrix must be symmetric and positive definite.")
    return NormalDensity(centre, np.zeros((1, D)), spread[None], np.ones(1))
