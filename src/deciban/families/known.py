"""Known densities as a family that learns nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from deciban.errors import NotAvailableError
from deciban.families.abilities import HasParts, parts_support
from deciban.families.product import parts_or_whole
from deciban.families.protocol import Density, Family, Rule
from deciban.statistics import Array, Axis, Members, Stats


@dataclass(frozen=True, eq=False, repr=False)
class NoStats(Stats):
    """Nothing was learnt."""


@dataclass(frozen=True, eq=False)
class KnownDensities(Family[NoStats]):
    """One density per class, given and not learnt."""

    densities: tuple[Density, ...]

    def no_sums(self, classes: Axis) -> NoStats:
        """The statistics of no rows."""
        return NoStats({"class": classes})

    def collect(self, X: Any, members: Members) -> NoStats:
        """Refused: there is nothing to learn."""
        raise NotAvailableError("a classifier of known densities does not learn. Fit one with a family instead.")

    def estimate(self, stats: NoStats, rule: Rule) -> Density:
        """The densities themselves, whatever the rule."""
        return SideBySide(self.densities) if len(self.densities) > 1 else self.densities[0]

    def encode(self, X: Any, columns: Sequence[str], stats: Any = None) -> Any:
        """As the first density takes its rows."""
        return self.densities[0].encode(X, columns)


@dataclass(frozen=True, eq=False)
class SideBySide(Density):
    """Densities of different kinds, one group each."""

    parts_: tuple[Density, ...]

    @property
    def K(self) -> int:
        return len(self.parts_)

    def supports(self, kind: type) -> bool:
        """Whether every density has the ability; parts need none, for a density can be a part as a whole."""
        return kind is HasParts or parts_support(self.parts_, kind)

    def log_density(self, X: Any) -> Array:
        """Return one column per density, shape (n, K); constants are included, since kinds may differ."""
        return np.column_stack([density.log_density(X)[:, 0] + density.log_base(X) for density in self.parts_])

    def parts(self, X: Any) -> Array:
        """(n, K, D) where every density is a sum over features."""
        return np.concatenate([parts_or_whole(density, X) for density in self.parts_], axis=1)

    def polynomial(self) -> tuple[Array | None, Array, Array]:
        """Side by side; quadratic if one of them is."""
        each = [density.polynomial() for density in self.parts_]  # type: ignore[attr-defined]
        D = each[0][1].shape[1]
        A = None
        if any(a is not None for a, _, _ in each):
            A = np.concatenate([np.zeros((1, D, D)) if a is None else a for a, _, _ in each])
        return A, np.concatenate([b for _, b, _ in each]), np.concatenate([c for _, _, c in each])

    def sample(self, codes: Array, rng: np.random.Generator) -> Array:
        """Each row from its own density."""
        rows = [self.parts_[k].sample(np.zeros(1, dtype=np.intp), rng)[0] for k in codes]
        return np.stack(rows)
