"""Evidence of several columns together, as short formulas of their values: what a page can compute by itself.

    cosines      e_c(x) = w·(c_c + b_c·φ(x)),   φ_m(x) = √2·cos(β_m + Σ_j ω_jm·z_j(x_j)), rounded to multiples of 1/1024
    polynomials  e_c(x) = w·(c_c + b_c·t + tᵀ·A_c·t),   t_j = t_j(x_j) mapped and on a common scale

Each formula is written over a table that holds one value of every column in each of its rows: a row of evidence is a
choice of one place of the table for each column, −1 for a missing value.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from deciban.errors import DecibanError
from deciban.families.abilities import HasDiscriminant, ability
from deciban.families.cosine_features import STEPS, CosineFeatures
from deciban.families.mapped import MappedDensity
from deciban.read.tables import Table
from deciban.statistics import Array


@dataclass(frozen=True, eq=False)
class Waves:
    """The arguments of cosines, a sum over columns: for each column, numbers times vectors, or a vector per value."""

    numbers: dict[int, Array]  # position → (m,) numbers z of a column, NaN where missing
    vectors: dict[int, Array]  # position → (1, M) the vector that z is multiplied by, or (m, M) one for each value

    def of(self, position: int, places: Array) -> Array:
        """Return the vectors of some values of a column, shape (n, M); NaN where they are missing."""
        vectors = self.vectors[position]
        found = self.numbers[position][places, None] * vectors if position in self.numbers else vectors[places]
        return np.where(places[:, None] < 0, np.nan, found)


@dataclass(frozen=True, eq=False)
class CosineTerm:
    """A discriminant that is linear in cosines of all columns; it has no evidence if all of them are missing."""

    label: str
    columns: tuple[int, ...]  # positions
    waves: Waves  # may be shared by terms whose frequencies differ by a factor
    factor: float  # of the waves
    phases: Array  # (M,)
    linear: Array  # (K, M) nats
    constant: Array  # (K,) nats

    def evidence(self, places: Array) -> Array:
        """Return the evidence of rows in nats.

        Parameters
        ----------
        places : ndarray of int of shape (n, D)
            Place of each value in the table, by the positions of columns; below 0 where a value is missing.

        Returns
        -------
        ndarray of shape (n, K)
            Evidence.
        """
        each = np.stack([self.waves.of(j, places[:, j]) for j in self.columns if j in self.waves.vectors])
        empty = np.isnan(each).all(axis=(0, 2))
        phi = np.rint(np.cos(self.factor * np.nansum(each, axis=0) + self.phases) * (np.sqrt(2.0) * STEPS)) / STEPS
        return np.where(empty[:, None], 0.0, phi @ self.linear.T + self.constant)


@dataclass(frozen=True, eq=False)
class PolynomialTerm:
    """A polynomial of degree two of several columns; it has no evidence if one of them is missing."""

    label: str
    columns: tuple[int, ...]  # positions
    numbers: Array  # (m, D) mapped values on a common scale
    quadratic: Array  # (K, D, D) nats
    linear: Array  # (K, D) nats
    constant: Array  # (K,) nats
    gaps: bool  # whether values may be missing

    def evidence(self, places: Array) -> Array:
        """Return the evidence of rows in nats.

        Parameters
        ----------
        places : ndarray of int of shape (n, D)
            Place of each value in the table, by the positions of columns; below 0 where a value is missing.

        Returns
        -------
        ndarray of shape (n, K)
            Evidence.
        """
        at = places[:, self.columns]
        t = np.where(at < 0, np.nan, np.take_along_axis(self.numbers, np.maximum(at, 0), axis=0))
        scores = self.constant + t @ self.linear.T + np.einsum("nd,kde,ne->nk", t, self.quadratic, t)
        return np.where(np.isnan(t).any(axis=1, keepdims=True), 0.0, scores)


JointTerm = CosineTerm | PolynomialTerm


def cosine_term(
    label: str, family: CosineFeatures, density: Any, weight: float, at: list[int], table: Table, known: Collection[int]
) -> CosineTerm | None:
    """Return the formula of an expert of cosine features; None if it is not linear in them (rule "predictive").

    Columns that are not in `known` are missing.
    """
    coefficients = coefficients_of(density)
    if coefficients is None or coefficients[0] is not None:
        return None
    numbers: dict[int, Array] = {}
    vectors: dict[int, Array] = {}
    start = 0
    frequencies = family.frequencies
    for ramp, j in zip(family.ramps, at):
        own = frequencies[start : start + ramp.width]
        start += ramp.width
        if j not in known:
            continue
        z = ramp.apply(table, j, str(table.columns[j]))
        if ramp.names:
            vectors[j] = z @ own  # NaN where the category is not among the frequent ones
        else:
            numbers[j], vectors[j] = z[:, 0], own
    _, b, c = coefficients
    waves = Waves(numbers, vectors)
    return CosineTerm(label, tuple(at), waves, 1.0, family.phases, weight * (b - b[0]), weight * (c - c[0]))


def share_waves(terms: list[JointTerm], bandwidths: dict[str, float]) -> list[JointTerm]:
    """Let terms that differ in the bandwidth alone have the same waves, times a factor; bandwidths by label."""
    found: list[JointTerm] = []
    for term in terms:
        first = next((one for one in found if isinstance(one, CosineTerm)), None)
        if isinstance(term, CosineTerm) and first is not None and _same_shapes(term, first):
            factor = float(np.sqrt(bandwidths[term.label] / bandwidths[first.label]))
            if all(np.allclose(term.waves.vectors[j], factor * v, rtol=1e-12, atol=1e-14, equal_nan=True)
                   for j, v in first.waves.vectors.items()):  # fmt: skip
                term = replace(term, waves=first.waves, factor=factor)
        found.append(term)
    return found


def _same_shapes(one: CosineTerm, two: CosineTerm) -> bool:
    a, b = one.waves.vectors, two.waves.vectors
    return a.keys() == b.keys() and all(a[j].shape == b[j].shape for j in a)


def polynomial_term(label: str, density: Any, X: Array, weight: float, at: list[int], gaps: bool) -> JointTerm | None:
    """Return the formula of a Gaussian of several columns, of mapped values, too; None if it is no polynomial.

    `X` are the values of the table as the density takes them, shape (m, D).
    """
    density, X, _ = unmapped(density, X)
    coefficients = coefficients_of(density)
    if coefficients is None or not isinstance(X, np.ndarray) or (not gaps and np.isnan(X).any()):
        return None
    A, b, c = coefficients
    A = np.zeros((*b.shape, b.shape[1])) if A is None else A
    centre, unit = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
    unit = np.where(unit > 0, unit, 1.0)
    turned = A @ centre  # (K, D)
    constant = c + b @ centre + turned @ centre
    linear, quadratic = (b + 2 * turned) * unit, A * np.multiply.outer(unit, unit)
    A, b, c = (weight * (part - part[0]) for part in (quadratic, linear, constant))
    return PolynomialTerm(label, tuple(at), (X - centre) / unit, A, b, c, gaps)


def unmapped(density: Any, X: Any) -> tuple[Any, Any, Array | float]:
    """Return the density of mapped values, these values, and the log slopes (m, 1, D), the same for all classes."""
    slope: Array | float = 0.0
    while isinstance(density, MappedDensity):
        slope = slope + density.family.log_slope(X, density.map)[:, None, :]
        X, density = density.family.mapped(X, density.map), density.inner
    return density, X, slope


def coefficients_of(density: Any) -> tuple[Array | None, Array, Array] | None:
    """Return the polynomial of the log densities of classes, without common terms; None if they are none."""
    linear = ability(density, HasDiscriminant)
    try:
        return None if linear is None else linear.polynomial()
    except DecibanError:  # under rule "predictive" the llr is no polynomial
        return None
