"""A family of known densities, which cannot learn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deciban.errors import NotAvailableError
from deciban.families.abilities import HasParts, parts_support
from deciban.families.product import parts_or_whole
from deciban.families.protocol import Density, Family, Input, Rows, Rule
from deciban.statistics import Array, Axis, Members, Stats


@dataclass(frozen=True, eq=False, repr=False)
class NoStats(Stats):
    """The classes, without sums."""


@dataclass(frozen=True, eq=False)
class KnownDensities(Family[NoStats]):
    """One known density per class."""

    densities: tuple[Density, ...]

    def no_sums(self, classes: Axis) -> NoStats:
        """Return statistics without sums."""
        return NoStats({"class": classes})

    def collect(self, X: Rows, members: Members) -> NoStats:
        """Refuse: known densities do not learn."""
        raise NotAvailableError("a classifier of known densities does not learn. Fit one with a family instead.")

    def estimate(self, stats: NoStats, rule: Rule) -> Density:
        """Return the densities; they are the same under every rule."""
        return SideBySide(self.densities) if len(self.densities) > 1 else self.densities[0]

    def encode(self, X: Input, columns: Sequence[str], stats: NoStats | None = None) -> Rows:
        """Encode rows as the first density does."""
        return self.densities[0].encode(X, columns)


@dataclass(frozen=True, eq=False)
class SideBySide(Density):
    """Densities of different kinds, one per class."""

    parts_: tuple[Density, ...]

    @property
    def K(self) -> int:
        return len(self.parts_)

    def supports(self, kind: type) -> bool:
        """Whether every density has the ability; for parts, a density without parts counts as one part."""
        return kind is HasParts or parts_support(self.parts_, kind)

    def log_density(self, X: Rows) -> Array:
        """Return one column per density, shape (n, K); constants are included, since kinds may differ."""
        return np.column_stack([density.log_density(X)[:, 0] + density.log_base(X) for density in self.parts_])

    def parts(self, X: Rows) -> Array:
        """Return the parts of each density, shape (n, K, D)."""
        return np.concatenate([parts_or_whole(density, X) for density in self.parts_], axis=1)

    def polynomial(self) -> tuple[Array | None, Array, Array]:
        """Return the coefficients of each density; A is None only if it is for all."""
        each = [density.polynomial() for density in self.parts_]  # type: ignore[attr-defined]
        D = each[0][1].shape[1]
        A = None
        if any(a is not None for a, _, _ in each):
            A = np.concatenate([np.zeros((1, D, D)) if a is None else a for a, _, _ in each])
        return A, np.concatenate([b for _, b, _ in each]), np.concatenate([c for _, _, c in each])

    def sample(self, codes: Array, rng: np.random.Generator) -> Array:
        """Draw each row from the density of its class."""
        rows = [self.parts_[k].sample(np.zeros(1, dtype=np.intp), rng)[0] for k in codes]
        return np.stack(rows)
