"""Means, variances and covariances of the columns of a table, from the densities of its blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from deciban.families.abilities import HasCovariances, HasMoments, ability
from deciban.families.product import ProductDensity
from deciban.families.protocol import Density
from deciban.statistics import Array


class Moments(NamedTuple):
    """Moments of the columns in each class; NaN for columns whose family has none."""

    means: Array  # (K, D)
    variances: Array  # (K, D)


def blocks_of_density(density: Density) -> list[Density]:
    """Return the densities of the blocks of a table; another density than a product is the only block."""
    return list(density.blocks.values()) if isinstance(density, ProductDensity) else [density]


def column_moments(density: Density, positions: Sequence[Sequence[int]], D: int) -> Moments:
    """Return means and variances of D columns in the units of the data; a block has the columns at its positions.

    Raises AttributeError if no column has them, so that `hasattr` is False.
    """
    found = Moments(np.full((density.K, D), np.nan), np.full((density.K, D), np.nan))
    for at, part in zip(positions, blocks_of_density(density)):
        described = ability(part, HasMoments)
        if described is not None:
            found.means[:, at], found.variances[:, at] = described.moments()
    if np.isnan(found.means).all():
        raise AttributeError("no column has a family with means and variances, such as Gaussian or Poisson.")
    return found


def column_covariances(density: Density, positions: Sequence[Sequence[int]], D: int) -> Array:
    """Return the covariances of D columns in each class, (K, D, D): 0 between blocks, NaN where there are none."""
    variances = column_moments(density, positions, D).variances
    found = variances[:, :, None] * np.eye(D)
    missing = np.isnan(variances)
    found[missing[:, :, None] | missing[:, None, :]] = np.nan
    for at, part in zip(positions, blocks_of_density(density)):
        described = ability(part, HasCovariances)
        if described is not None:
            found[:, np.asarray(at)[:, None], at] = described.covariances()
    return found
