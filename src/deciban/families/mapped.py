"""A family behind a map of each feature: what is learnt are the mapped values.

    log f(x|c)  =  log g(t(x)|c) + log |t'(x)|          so that densities of x, not of t(x), are compared

The map is a choice: it is taken from the first rows and frozen. Its slope is the same for every class.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from deciban.families.abilities import HasParts
from deciban.families.posterior import Posterior
from deciban.families.protocol import Density, Family, Rule
from deciban.read.numbers import dense_numbers, refuse_infinite
from deciban.statistics import Array, Axis, Members, Stats, fixed, nested


@dataclass(frozen=True, eq=False, repr=False)
class ThroughStats(Stats):
    """The sums of mapped values, and the map they were collected by."""

    map: Array = fixed("feature", "number")  # (D, P) numbers that say how each feature is mapped
    inner: Any = nested()

    def select(self, axis: str, index: Array) -> Self:
        """Features are selected inside too."""
        chosen = super().select(axis, index)
        return chosen if axis == "class" else replace(chosen, inner=self.inner.select(axis, index))


@dataclass(frozen=True, eq=False)
class Through(Family):
    """What families behind a map share; each says what its map is."""

    @abstractmethod
    def frozen_map(self) -> Array | None:
        """(D, P), or None while it is open."""

    @abstractmethod
    def find_map(self, X: Array, members: Members) -> Array:
        """(D, P) from the first rows."""

    @abstractmethod
    def mapped(self, X: Array, map: Array) -> Any:
        """Rows as the inner family takes them."""

    @abstractmethod
    def log_slope(self, X: Array, map: Array) -> Array:
        """(n, D) log |t'(x)|; 0 where missing."""

    @abstractmethod
    def unmapped(self, Z: Any, map: Array, rng: np.random.Generator) -> Array:
        """Rows that are mapped to these."""

    @abstractmethod
    def inside(self, map: Array) -> Family:
        """The inner family."""

    @abstractmethod
    def frozen(self, map: Array, inner: Family) -> Self:
        """The same with its choices made."""

    # -- the contract ----------------------------------------------------------------------------------------------
    def encode(self, X: Any, columns: Sequence[str], stats: Any = None) -> Array:
        """Numbers, NaN where missing."""
        X = dense_numbers(X, columns)
        self.check(X, columns)
        return X

    def check(self, X: Array, columns: Sequence[str], learning: bool = False) -> None:
        """Finite."""
        refuse_infinite(X, columns)

    def collect(self, X: Array, members: Members) -> ThroughStats:
        """The inner sums, by a map that is found now if it is open."""
        map = self.frozen_map()
        map = self.find_map(X, members) if map is None else map
        labels = {"class": members.classes, "feature": Axis.of(X.shape[1])}
        return ThroughStats(labels, map, self.inside(map).collect(self.mapped(X, map), members))

    def choose(self, stats: ThroughStats, rows: tuple[Any, Members] | None = None, rule: Rule = "mean") -> Self:
        """Freeze the map, and what the inner family leaves open."""
        inner_rows = None if rows is None else (self.mapped(rows[0], stats.map), rows[1])
        return self.frozen(stats.map, self.inside(stats.map).choose(stats.inner, inner_rows, rule))

    def estimate(self, stats: ThroughStats, rule: Rule) -> Density:
        """The inner densities behind the map."""
        return self.behind(stats, self.inside(stats.map).estimate(stats.inner, rule))

    def behind(self, stats: ThroughStats, inner: Density) -> ThroughDensity:
        """An inner density, behind the map."""
        family = self if self.frozen_map() is not None else self.frozen(stats.map, self.inside(stats.map))
        return (ThroughParts if isinstance(inner, HasParts) else ThroughDensity)(inner, family)

    def leave_one_out(self, stats: ThroughStats, X: Array, members: Members, rule: Rule) -> Array:
        """The inner family's own."""
        return self.inside(stats.map).leave_one_out(stats.inner, self.mapped(X, stats.map), members, rule)

    def log_prior(self, density: Any) -> float:
        """The inner family's own."""
        inner: Any = self.inside(density.map)
        return inner.log_prior(density.inner)

    def posterior(self, stats: ThroughStats) -> Posterior:
        """Of the inner family's parameters: they speak of mapped values."""
        inner: Any = self.inside(stats.map)
        return inner.posterior(stats.inner)


@dataclass(frozen=True, eq=False)
class ThroughDensity(Density):
    """Inner densities behind a map."""

    inner: Any
    family: Through

    @property
    def K(self) -> int:
        return self.inner.K

    @property
    def map(self) -> Array:
        found: Any = self.family.frozen_map()
        return found

    def log_density(self, X: Array) -> Array:
        """Of the mapped values; the slope is the same for every class."""
        return self.inner.log_density(self.family.mapped(X, self.map))

    def log_base(self, X: Array) -> Array:
        """(n,) the slope, and what the inner density leaves out."""
        return self.family.log_slope(X, self.map).sum(axis=1) + self.inner.log_base(self.family.mapped(X, self.map))

    def sample(self, codes: Array, rng: np.random.Generator) -> Array:
        """Mapped values, taken back."""
        return self.family.unmapped(self.inner.sample(codes, rng), self.map, rng)


@dataclass(frozen=True, eq=False)
class ThroughParts(ThroughDensity):
    """The same where features are independent."""

    def parts(self, X: Array) -> Array:
        """(n, K, D)."""
        return self.inner.parts(self.family.mapped(X, self.map))
