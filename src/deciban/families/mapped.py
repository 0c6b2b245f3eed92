"""A family of mapped values: each feature is mapped before it is learnt.

    log f(x|c)  =  log g(t(x)|c) + log |t'(x)|          so that densities of x, not of t(x), are compared

The map is a choice: it is taken from the first rows and frozen. Its slope is the same for every class.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from deciban.families.abilities import ability
from deciban.families.posterior import Posterior
from deciban.families.protocol import Density, Family, Rows, Rule
from deciban.read.numbers import dense_numbers, refuse_infinite
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
class MappedFamily(Family[MappedStats]):
    """What the families of mapped values share; each defines its map."""

    @abstractmethod
    def frozen_map(self) -> Array | None:
        """Return the parameters of the map, shape (D, P); None while it is open."""

    @abstractmethod
    def find_map(self, X: Array, members: Members) -> Array:
        """Return the parameters of the map, shape (D, P), found from the first rows."""

    @abstractmethod
    def mapped(self, X: Array, map: Array) -> Rows:
        """Map rows to what the inner family takes."""

    @abstractmethod
    def log_slope(self, X: Array, map: Array) -> Array:
        """Return log |t'(x)|, shape (n, D); 0 where missing."""

    @abstractmethod
    def unmapped(self, Z: Any, map: Array, rng: np.random.Generator) -> Array:
        """Return rows that are mapped to these."""

    @abstractmethod
    def inside(self, map: Array | None) -> Family[Any]:
        """Return the inner family; `map` is None while the map is open."""

    @abstractmethod
    def frozen(self, map: Array, inner: Family[Any]) -> Self:
        """Return the family with its choices made."""

    def supports(self, kind: type) -> bool:
        """Whether the inner family has the ability."""
        return ability(self.inside(self.frozen_map()), kind) is not None

    # -- the contract ----------------------------------------------------------------------------------------------
    def encode(self, X: Any, columns: Sequence[str], stats: MappedStats | None = None) -> Array:
        """Return floats, NaN where missing."""
        X = dense_numbers(X, columns)
        self.check(X, columns)
        return X

    def check(self, X: Array, columns: Sequence[str], learning: bool = False) -> None:
        """Values are finite."""
        refuse_infinite(X, columns)

    def collect(self, X: Array, members: Members) -> MappedStats:
        """Collect the inner sums; an open map is found from these rows."""
        map = self.frozen_map()
        map = self.find_map(X, members) if map is None else map
        Z = self.mapped(X, map)
        inner = self.inside(map).collect(Z, members)
        return MappedStats({"class": members.classes, "feature": Axis.of(X.shape[1])}, map, inner)

    def choose(self, stats: MappedStats, rows: tuple[Array, Members] | None = None, rule: Rule = "mean") -> Self:
        """Freeze the map, and let the inner family make its choices."""
        inner_rows = None if rows is None else (self.mapped(rows[0], stats.map), rows[1])
        return self.frozen(stats.map, self.inside(stats.map).choose(stats.inner, inner_rows, rule))

    def estimate(self, stats: MappedStats, rule: Rule) -> Density:
        """Return the inner densities of mapped values."""
        return self._behind(stats, self.inside(stats.map).estimate(stats.inner, rule))

    def leave_one_out(self, stats: MappedStats, X: Array, members: Members, rule: Rule, density: Any = None) -> Array:
        """Leave mapped rows out of the inner sums."""
        inner = None if density is None else density.inner
        Z = self.mapped(X, stats.map)
        return self.inside(stats.map).leave_one_out(stats.inner, Z, members, rule, inner)

    # -- abilities, as far as the inner family has them ------------------------------------------------------------
    def log_prior(self, density: Any) -> float:
        """Return the inner family's log prior."""
        inner: Any = self.inside(density.map)
        return inner.log_prior(density.inner)

    def posterior(self, stats: MappedStats) -> Posterior:
        """Return the posterior of the inner family's parameters: they describe mapped values."""
        inner: Any = self.inside(stats.map)
        return inner.posterior(stats.inner)

    def draw(self, stats: MappedStats, rng: np.random.Generator) -> Density:
        """Draw the inner family's parameters."""
        inner: Any = self.inside(stats.map)
        return self._behind(stats, inner.draw(stats.inner, rng))

    def _behind(self, stats: MappedStats, inner: Density) -> MappedDensity:
        family = self if self.frozen_map() is not None else self.frozen(stats.map, self.inside(stats.map))
        return MappedDensity(inner, family)


@dataclass(frozen=True, eq=False)
class MappedDensity(Density):
    """Inner densities of mapped values."""

    inner: Any
    family: MappedFamily

    @property
    def K(self) -> int:
        return self.inner.K

    @cached_property
    def map(self) -> Array:
        """The parameters of the map, shape (D, P)."""
        found: Any = self.family.frozen_map()
        return found

    def supports(self, kind: type) -> bool:
        """Whether the inner densities have the ability."""
        return ability(self.inner, kind) is not None

    def log_density(self, X: Array) -> Array:
        """Score the mapped values; the slope, the same for every class, is in `log_base`."""
        return self.inner.log_density(self.family.mapped(X, self.map))

    def log_base(self, X: Array) -> Array:
        """Return the slope and the terms that the inner density leaves out, shape (n,)."""
        map = self.map
        slope, Z = self.family.log_slope(X, map).sum(axis=1), self.family.mapped(X, map)
        return slope + self.inner.log_base(Z)

    def parts(self, X: Array) -> Array:
        """Return the inner density's parts, shape (n, K, D)."""
        return self.inner.parts(self.family.mapped(X, self.map))

    def sample(self, codes: Array, rng: np.random.Generator) -> Array:
        """Draw mapped values and map them back."""
        return self.family.unmapped(self.inner.sample(codes, rng), self.map, rng)
