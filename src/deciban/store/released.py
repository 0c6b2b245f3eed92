"""Models stripped to parameters: they answer as before, to the bit, and hold no sums to learn or unlearn with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, NoReturn, Self

from deciban.errors import NotAvailableError
from deciban.families.product import Product, ProductStats
from deciban.families.protocol import Density, Family, Rule
from deciban.statistics import Array, Members, Stats


def refuse(what: str = "learn, unlearn, merge or be re-estimated") -> NoReturn:
    """Say what a released model cannot do, and why."""
    raise NotAvailableError(
        f"a released model cannot {what}: it holds parameters only, and the sums that would change were left out. "
        "Use the model that it was released from."
    )


@dataclass(frozen=True, eq=False, repr=False)
class ReleasedStats(Stats):
    """The classes, without the sums."""

    def settle(self, other: Self) -> tuple[Self, Self]:
        """Refused: there is nothing to add."""
        refuse()

    def select(self, axis: str, index: Array) -> Self:
        """Refused: there is nothing to select from."""
        refuse()

    def pruned(self) -> Self:
        """Names stay."""
        return self

    def __mul__(self, factor: float) -> Self:
        refuse("decay")

    __rmul__ = __mul__


@dataclass(frozen=True, eq=False)
class Released(Family):
    """A family whose parameters are known, and that learns no more."""

    family: Family  # what it was: it still says how rows are read
    density: Density
    rule: Rule
    names: Stats  # as the sums had them, without the sums

    def collect(self, X: Any, members: Members) -> Stats:
        """Refused."""
        refuse()

    def estimate(self, stats: Any, rule: Rule) -> Density:
        """The density, under the rule that it was released with."""
        if rule != self.rule:
            refuse(f"be read by rule {rule!r} (it was released with {self.rule!r})")
        return self.density

    def choose(self, stats: Any, rows: Any = None, rule: Rule = "mean") -> Self:
        """Refused."""
        refuse("choose anew")

    def settled(self, chosen: Any) -> Self:
        """Refused."""
        refuse("choose anew")

    def rewritten(self, **hyper: Any) -> Self:
        """Refused."""
        refuse()

    def subset(self, stats: Any, features: Array, columns: Sequence[Any]) -> tuple[Self, Any]:
        """Refused."""
        refuse()

    def pick(self, table: Any, positions: Sequence[int] | None = None) -> Any:
        """As the family does."""
        return self.family.pick(table, positions)

    def encode(self, X: Any, columns: Sequence[str], stats: Any = None) -> Any:
        """As the family does."""
        return self.family.encode(X, columns, self.names)

    def check(self, X: Any, columns: Sequence[str], learning: bool = False) -> None:
        """As the family does."""
        self.family.check(X, columns, learning)

    def lengths(self, X: Any) -> Any:
        """As the family does."""
        return self.family.lengths(X)

    @property
    def shared(self) -> bool:
        """As the family does."""
        return self.family.shared

    def __repr__(self) -> str:
        return f"Released({self.family!r})"


def strip(family: Any, stats: Any, density: Any, rule: Rule) -> tuple[Any, Any]:
    """Family and statistics of a released model; blocks stay blocks, so that explanations stay the same."""
    if isinstance(family, Released):
        return family, stats
    if not isinstance(family, Product):
        return Released(family, density, rule, emptied(stats)), ReleasedStats({"class": stats.labels["class"]})
    families, blocks = {}, {}
    for name, (key, part) in zip(family.names, family.families.items()):
        families[key], blocks[name] = strip(part, stats.blocks[name], density.blocks[name], rule)
    return Product(families), ProductStats(stats.labels, blocks)


def emptied(stats: Any) -> Any:
    """The names along the axes of statistics, without the sums."""

    def empty(held: Any, f: Any) -> Any:
        if f.metadata["kind"] != "nested":
            return None
        return {name: emptied(part) for name, part in held.items()} if isinstance(held, dict) else emptied(held)

    return stats.map_fields(empty)


def is_released(family: Any) -> bool:
    """Whether a family, or any block of it, was released."""
    each = family.families.values() if isinstance(family, Product) else [family]
    return any(isinstance(part, Released) for part in each)


def release(model: Any, rule: Rule | None = None) -> Any:
    """The same model without its sums: smaller, quick to open, and unable to learn or unlearn.

    A classifier is released under its own rule. What was fitted without classes can be read by any rule: name one.

    >>> from deciban import Bernoulli
    >>> coin = Bernoulli().fit([1, 1, 0, 0, 0, 1, 0, 1, 1, 1])
    >>> release(coin).log_density([[1]]).round(4), coin.log_density([[1]]).round(4)
    (array([-0.539]), array([-0.539]))
    """
    if hasattr(model, "released"):
        if rule is not None and rule != model.rule:
            model = model.reestimate(rule=rule)
        return model.released()
    if not is_dataclass(model) or not {"family", "stats"} <= {f.name for f in fields(model)}:
        raise NotAvailableError(
            f"{type(model).__name__} cannot be released. Save it whole; or save its density(), which is all that "
            "scoring needs."
        )
    held: Any = model
    chosen = rule or "mean"
    family, stats = strip(held.family, held.stats, held.family.estimate(held.stats, chosen), chosen)
    return replace(held, family=family, stats=stats)
