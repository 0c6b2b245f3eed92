"""A family of mapped values: each feature is mapped before it is learnt.

    log f(x|c)  =  log g(t(x)|c) + log |t'(x)|          so that densities of x, not of t(x), are compared

The map is a choice: it is taken from the first rows and frozen. Its slope is the same for every class.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, cast

import numpy as np

from deciban.errors import InputError
from deciban.families.abilities import (
    Composite,
    HasDraws,
    HasFrame,
    HasLeftOutFeatures,
    HasLogPrior,
    HasParts,
    HasPosterior,
    ability,
)
from deciban.families.posterior import Posterior
from deciban.families.protocol import Density, Family, Input, Rows, Rule
from deciban.read.arrays import refuse_infinite
from deciban.read.tables import dense_numbers
from deciban.statistics import Array, Axis, Members, Stats, fixed, nested


@dataclass(frozen=True, eq=False, repr=False)
class MappedStats(Stats):
    """The sums of mapped values, and the map they were collected with."""

    map: Array = fixed("feature", "number")  # (D, P) parameters of each feature's map
    inner: Any = nested()

    def select(self, axis: str, index: Array) -> Self:
        """Select features inside too."""
        chosen = super().select(axis, index)
        return chosen if axis == "class" else replace(chosen, inner=self.inner.select(axis, index))


@dataclass(frozen=True, eq=False)
class MappedFamily(Family[MappedStats], HasLogPrior, HasPosterior, HasDraws, HasFrame, HasLeftOutFeatures, Composite):
    """Base of the families of mapped values; each defines its map."""

    @abstractmethod
    def frozen_map(self) -> Array | None:
        """Return the parameters of the map.

        Returns
        -------
        ndarray of shape (D, P) or None
            The parameters of each feature; None while the map is open.
        """

    @abstractmethod
    def find_map(self, X: Array, members: Members) -> Array:
        """Choose the parameters of the map from the first rows.

        Parameters
        ----------
        X : ndarray of shape (n, D)
            Numbers, NaN where missing.
        members : Members
            The class and the weight of each row.

        Returns
        -------
        ndarray of shape (D, P)
            The parameters of each feature.
        """

    @abstractmethod
    def mapped(self, X: Array, map: Array) -> Rows:
        """Map rows to what the inner family takes.

        Parameters
        ----------
        X : ndarray of shape (n, D)
            Numbers, NaN where missing.
        map : ndarray of shape (D, P)
            Parameters of the map of each feature.

        Returns
        -------
        rows
            Encoded rows of the inner family.
        """

    @abstractmethod
    def log_slope(self, X: Array, map: Array) -> Array:
        """Compute log abs(t'(x)).

        Parameters
        ----------
        X : ndarray of shape (n, D)
            Numbers, NaN where missing.
        map : ndarray of shape (D, P)
            Parameters of the map of each feature.

        Returns
        -------
        ndarray of shape (n, D)
            The logarithms; 0 where a value is missing.
        """

    @abstractmethod
    def unmapped(self, Z: Array, map: Array, rng: np.random.Generator) -> Array:
        """Invert the map.

        Parameters
        ----------
        Z : ndarray of shape (n, D)
            Mapped values.
        map : ndarray of shape (D, P)
            Parameters of the map of each feature.
        rng : numpy.random.Generator
            Source of random numbers, where several values are mapped to the same one.

        Returns
        -------
        ndarray of shape (n, D)
            Rows that are mapped to `Z`.
        """

    @abstractmethod
    def inside(self, map: Array | None) -> Family[Any]:
        """Return the inner family.

        Parameters
        ----------
        map : ndarray of shape (D, P) or None
            Parameters of the map; None while it is open.

        Returns
        -------
        Family
            The family of the mapped values.
        """

    @abstractmethod
    def frozen(self, map: Array, inner: Family[Any]) -> Self:
        """Freeze the choices.

        Parameters
        ----------
        map : ndarray of shape (D, P)
            Parameters of the map of each feature.
        inner : Family
            The inner family, with its choices made.

        Returns
        -------
        Family
            This family with its choices made.
        """

    def supports(self, kind: type) -> bool:
        return ability(self.inside(self.frozen_map()), kind) is not None

    def check_sums(self, stats: MappedStats) -> None:
        """Check that sums from a file were collected under a map of this form.

        Parameters
        ----------
        stats : MappedStats
            Sums from a file.

        Raises
        ------
        InputError
            If the map of the sums has another shape.
        """
        map = self.frozen_map()
        if map is not None and map.shape != stats.map.shape:
            raise InputError(f"a map of shape {map.shape} does not fit sums under one of shape {stats.map.shape}.")

    # -- the contract ----------------------------------------------------------------------------------------------
    def encode(self, X: Input, columns: Sequence[str], stats: MappedStats | None = None) -> Array:
        rows = dense_numbers(X, columns)
        self.check(rows, columns)
        return rows

    def check(self, X: Array, columns: Sequence[str], learning: bool = False) -> None:
        refuse_infinite(X, columns)

    def collect(self, X: Array, members: Members) -> MappedStats:
        map = self.frozen_map()
        map = self.find_map(X, members) if map is None else map
        labels = {"class": members.classes, "feature": Axis(range(X.shape[1]), X.shape[1])}
        return MappedStats(labels, map, self.inside(map).collect(self.mapped(X, map), members))

    def choose(self, stats: MappedStats, rows: tuple[Array, Members] | None = None, rule: Rule = "mean") -> Self:
        inner_rows = None if rows is None else (self.mapped(rows[0], stats.map), rows[1])
        return self.frozen(stats.map, self.inside(stats.map).choose(stats.inner, inner_rows, rule))

    def resolve(self, stats: MappedStats) -> Self:
        return self.frozen(stats.map, self.inside(stats.map).resolve(stats.inner))

    def estimate(self, stats: MappedStats, rule: Rule) -> Density:
        return self._behind(stats, self.inside(stats.map).estimate(stats.inner, rule))

    def leave_one_out(
        self, stats: MappedStats, X: Array, members: Members, rule: Rule, density: Density | None = None
    ) -> Array:
        inner = density.inner if isinstance(density, MappedDensity) else None
        return self.inside(stats.map).leave_one_out(stats.inner, self.mapped(X, stats.map), members, rule, inner)

    # -- abilities, as far as the inner family has them ------------------------------------------------------------
    def left_out_features(self, stats: MappedStats, X: Array, members: Members, rule: Rule) -> Array:
        inner: HasLeftOutFeatures = self.inside(stats.map)  # type: ignore[assignment]  # see `supports`
        return inner.left_out_features(stats.inner, self.mapped(X, stats.map), members, rule)

    def separate(self, stats: MappedStats) -> bool:
        inner: HasLeftOutFeatures = self.inside(stats.map)  # type: ignore[assignment]  # see `supports`
        return inner.separate(stats.inner)

    def log_prior(self, density: MappedDensity) -> float:
        inner: HasLogPrior = self.inside(density.map)  # type: ignore[assignment]  # see `supports`
        return inner.log_prior(density.inner)

    def posterior(self, stats: MappedStats) -> Posterior:
        inner: HasPosterior = self.inside(stats.map)  # type: ignore[assignment]  # parameters describe mapped values
        return inner.posterior(stats.inner)

    def draw(self, stats: MappedStats, rng: np.random.Generator, times: int = 1) -> Density:
        inner: HasDraws = self.inside(stats.map)  # type: ignore[assignment]  # see `supports`
        return self._behind(stats, inner.draw(stats.inner, rng, times))

    def framed(self, stats: MappedStats) -> Self:
        old = self.inside(stats.map)
        inner: HasFrame = old  # type: ignore[assignment]  # see `supports`
        new: Any = inner.framed(stats.inner)
        return self if new is old else self.frozen(stats.map, new)

    def _behind(self, stats: MappedStats, inner: Density) -> MappedDensity:
        family = self if self.frozen_map() is not None else self.frozen(stats.map, self.inside(stats.map))
        return MappedDensity(inner, family)


@dataclass(frozen=True, eq=False)
class MappedDensity(Density):
    """Inner densities of mapped values."""

    inner: Density
    family: MappedFamily

    @property
    def K(self) -> int:
        return self.inner.K

    @property
    def map(self) -> Array:
        """The parameters of the map, shape (D, P)."""
        return cast(Array, self.family.frozen_map())

    def supports(self, kind: type) -> bool:
        """Whether the inner densities have the ability."""
        return ability(self.inner, kind) is not None

    def log_density(self, X: Array) -> Array:
        """Score the mapped values; the slope, the same for every class, is in `log_base`."""
        return self.inner.log_density(self.family.mapped(X, self.map))

    def log_base(self, X: Array) -> Array:
        """Return the slope and the terms that the inner density leaves out, shape (n,)."""
        map = self.map
        slope, Z = self.family.log_slope(X, map), self.family.mapped(X, map)
        return np.asarray(slope.sum(axis=1) + self.inner.log_base(Z))

    def parts(self, X: Array) -> Array:
        """Return the inner density's parts, shape (n, K, D)."""
        inner: HasParts = self.inner  # type: ignore[assignment]  # see `supports`
        return inner.parts(self.family.mapped(X, self.map))

    def sample(self, codes: Array, rng: np.random.Generator) -> Array:
        """Draw mapped values and map them back."""
        return self.family.unmapped(self.inner.sample(codes, rng), self.map, rng)
