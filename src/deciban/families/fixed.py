"""Families that cannot learn: the parameters of a released model, and densities that are known.

A released family answers as before, to the bit, and has no sums to learn or unlearn with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, Self

import numpy as np

from deciban.errors import NotAvailableError
from deciban.families.abilities import (
    Counts,
    HasChoices,
    HasCovariances,
    HasMoments,
    HasParts,
    HasSubset,
    SeveralParts,
    SharesParameters,
    ability,
    parts_support,
)
from deciban.families.moments import column_covariances
from deciban.families.product import Product, ProductStats, blocks_of, expert_rule, experts_of, parts_or_whole
from deciban.families.protocol import Density, Family, Input, Rows, Rule
from deciban.statistics import Array, Axis, Members, Stats


# -- released models ---------------------------------------------------------------------------------------------------
def refuse(what: str = "learn, unlearn, merge or be re-estimated") -> NoReturn:
    """Raise the error that names what a released model cannot do, and why."""
    raise NotAvailableError(
        f"a released model cannot {what}: it holds parameters only, and the sums that would change were left out. "
        "Use the model that it was released from."
    )


@dataclass(frozen=True, eq=False, repr=False)
class ReleasedStats(Stats):
    """The classes, without the sums."""

    def settle(self, other: Self) -> tuple[Self, Self]:
        """Refuse: there are no sums to add."""
        refuse()

    def select(self, axis: str, index: Array) -> Self:
        """Refuse: there are no sums to select from."""
        refuse()

    def pruned(self) -> Self:
        """Keep all names."""
        return self

    def __mul__(self, factor: float) -> Self:
        refuse("decay")

    __rmul__ = __mul__


@dataclass(frozen=True, eq=False)
class Released(Family[ReleasedStats]):
    """A family with known parameters that cannot learn."""

    family: Family[Any]  # encodes and checks rows
    density: Density
    rule: Rule
    names: Stats  # the names along the axes of the sums, without the sums

    def supports(self, kind: type) -> bool:
        """Whether the released family has the ability; choices and subsets are refused here."""
        return kind in (HasChoices, HasSubset) or ability(self.family, kind) is not None

    def encode(self, X: Input, columns: Sequence[str], stats: ReleasedStats | None = None) -> Rows:
        """Encode rows as the family does, with the names that were known."""
        return self.family.encode(X, columns, self.names)

    def check(self, X: Rows, columns: Sequence[str], learning: bool = False) -> None:
        """Check rows as the family does."""
        self.family.check(X, columns, learning)

    def collect(self, X: Rows, members: Members) -> ReleasedStats:
        """Refuse: a released model does not learn."""
        refuse()

    def estimate(self, stats: ReleasedStats, rule: Rule) -> Density:
        """Return the density, under the rule that it was released with."""
        if rule != self.rule:
            refuse(f"be read by rule {rule!r} (it was released with {self.rule!r})")
        return self.density

    def choose(self, stats: ReleasedStats, rows: tuple[Rows, Members] | None = None, rule: Rule = "mean") -> Self:
        """Refuse: the choices of a released model are kept."""
        refuse("choose anew")

    def keep_choices(self, chosen: Family[Any], with_rows: bool) -> Self:
        """Refuse: the choices of a released model are kept."""
        refuse("choose anew")

    def chosen_by_labels(self) -> list[str]:
        """Return no choices: a released family makes none."""
        return []

    def subset(self, stats: Stats, features: Array, columns: Sequence[Any]) -> tuple[Self, Any]:
        """Refuse: there are no sums to select from."""
        refuse()

    def lengths(self, X: Rows) -> Array:
        """Return lengths as the family does."""
        family: Counts = self.family  # type: ignore[assignment]  # see `supports`
        return family.lengths(X)

    @property
    def part_columns(self) -> list[tuple[int, ...]]:
        """Positions of the columns of each part of an expert."""
        family: SeveralParts = self.family  # type: ignore[assignment]  # see `supports`
        return family.part_columns

    def part_scores(self, density: Density, X: Rows) -> list[Array]:
        """Score rows part by part, as the family does."""
        family: SeveralParts = self.family  # type: ignore[assignment]  # see `supports`
        return family.part_scores(density, X)

    def left_out_parts(
        self, stats: Stats, X: Rows, members: Members, rule: Rule, density: Density | None = None
    ) -> list[Array]:
        """Refuse: there are no sums to subtract a row from."""
        refuse("leave rows out")

    def restricted(self, stats: Stats, features: Array) -> tuple[Any, Any] | None:
        """Refuse: there are no sums to select from."""
        refuse()

    @property
    def shared(self) -> bool:
        """Whether the family's classes share parameters."""
        family: SharesParameters = self.family  # type: ignore[assignment]  # see `supports`
        return family.shared

    def __repr__(self) -> str:
        return f"Released({self.family!r})"


def strip(family: Family[Any], stats: Any, density: Any, rule: Rule) -> tuple[Any, Any]:
    """Return family and statistics of a released model; a product keeps its blocks, for explanations."""
    if isinstance(family, Released):
        return family, stats
    if not isinstance(family, Product):
        return Released(family.resolve(stats), density, rule, without_sums(stats)), ReleasedStats(
            {"class": stats.labels["class"]}
        )
    parts = [strip(part, sums, inner, rule) for part, sums, inner in blocks_of(family, stats, density)]
    others = [strip(part, sums, inner, expert_rule(rule)) for part, sums, inner in experts_of(family, stats, density)]
    families = family.with_families(part for part, _ in parts).with_experts(part for part, _ in others)
    held = {key: sums for key, (_, sums) in zip(family.experts, others)}
    return families, ProductStats(
        stats.labels, {key: sums for key, (_, sums) in zip(stats.blocks, parts)}, held or None
    )


def without_sums(stats: Any) -> Any:
    """Return the names along the axes of statistics, without the sums."""

    def empty(held: Any, f: Any) -> Any:
        if held is None or f.metadata["kind"] != "nested":
            return None
        return {k: without_sums(part) for k, part in held.items()} if isinstance(held, dict) else without_sums(held)

    return stats.map_fields(empty)


def is_released(family: Family[Any] | None) -> bool:
    """Whether a family, or any block of it, was released."""
    return family is not None and any(isinstance(part, Released) for (part,) in blocks_of(family))


# -- known densities ---------------------------------------------------------------------------------------------------
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
        """Whether every density has the ability; a density that is no sum over features counts as one part."""
        return kind is HasParts or parts_support(self.parts_, HasMoments if kind is HasCovariances else kind)

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

    def moments(self) -> tuple[Array, Array]:
        """Return the mean and the variance of each feature under each density, (K, D)."""
        each = [density.moments() for density in self.parts_]  # type: ignore[attr-defined]
        return np.concatenate([means for means, _ in each]), np.concatenate([variances for _, variances in each])

    def covariances(self) -> Array:
        """Return the covariance matrix of each density, (K, D, D)."""
        columns = range(self.moments()[0].shape[1])
        return np.concatenate([column_covariances(density, [columns], len(columns)) for density in self.parts_])

    def sample(self, codes: Array, rng: np.random.Generator) -> Array:
        """Draw each row from the density of its class."""
        rows = [self.parts_[k].sample(np.zeros(1, dtype=np.intp), rng)[0] for k in codes]
        return np.stack(rows)
