"""Blocks of features, each with its own family, independent given the class.

    log f(x|c) = Σ_b log f_b(x_b|c)

A missing value adds nothing to a block's statistics and nothing to its score, where the block's family allows gaps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from deciban.errors import HyperparameterError, InputError, shortlist
from deciban.families.blocks import Blocks, ProductDensity, ProductStats
from deciban.families.posterior import Posterior
from deciban.families.protocol import Family, Rule
from deciban.families.running import RunningBlocks
from deciban.read.tables import Table
from deciban.statistics import Array, Members


@dataclass(frozen=True, eq=False)
class Product(Family):
    """Several families over several columns: naive Bayes of mixed types.

    Keys are column names or positions, or tuples of them where a family takes several.

    >>> from deciban import Bernoulli, Gaussian
    >>> Product({0: Gaussian("diagonal"), (1, 2): Bernoulli()}).names
    ['0', '1,2']
    """

    families: Mapping[Any, Family]

    def __post_init__(self) -> None:
        if not self.families:
            raise InputError("a product needs at least one family. Give {column: family}.")
        for key, family in self.families.items():
            if not isinstance(family, Family):
                raise InputError(f"{key!r}: {family!r} is not a family. Use one such as Gaussian() or Categorical().")

    @property
    def names(self) -> list[str]:
        """What blocks are called."""
        return [",".join(map(str, _keys(key))) for key in self.families]

    @property
    def _columns(self) -> dict[str, list[str]]:
        """The columns of each block."""
        return {name: [str(key) for key in _keys(keys)] for name, keys in zip(self.names, self.families)}

    def _each(self, act: Callable[..., Any], *parts: Mapping[str, Any]) -> dict[str, Any]:
        return {n: act(f, *(p[n] for p in parts)) for n, f in zip(self.names, self.families.values())}

    def with_families(self, families: Mapping[str, Family]) -> Product:
        """The same blocks under other families."""
        return replace(self, families=dict(zip(self.families, families.values())))

    def positions(self, columns: Sequence[Any]) -> dict[str, list[int]]:
        """Where each block's columns stand in the table."""
        place = {name: at for at, name in enumerate(columns)}
        missing = [key for keys in self.families for key in _keys(keys) if key not in place]
        if missing:
            raise InputError(
                f"the table has no column {shortlist([repr(key) for key in missing])}; it has {shortlist(columns, 10)}."
            )
        return {name: [place[key] for key in _keys(keys)] for name, keys in zip(self.names, self.families)}

    # -- the contract, block by block ------------------------------------------------------------------------------
    def encode(self, X: Any, columns: Sequence[Any], stats: Any = None) -> Blocks:
        """Each block's columns, encoded by its family."""
        if isinstance(X, Blocks):
            return X
        table = Table.of(X)
        places = self.positions(table.columns)
        known: Any = dict.fromkeys(places) if stats is None else stats.blocks
        names = {name: [str(table.columns[j]) for j in at] for name, at in places.items()}
        return Blocks(self._each(lambda f, at, cs, s: f.encode(f.pick(table, at), cs, s), places, names, known))

    def check(self, X: Blocks, columns: Sequence[Any], learning: bool = False) -> None:
        """Let each family name its first bad value."""
        self._each(lambda f, x, cs: f.check(x, cs, learning), X.parts, self._columns)

    def begin(self, X: Blocks, members: Members, columns: Sequence[Any]) -> RunningBlocks:
        """Each block's sums in the making."""
        begun = self._each(lambda f, x, cs: f.begin(x, members, cs), X.parts, self._columns)
        return RunningBlocks(self, members.classes, begun)

    def collect(self, X: Blocks, members: Members) -> ProductStats:
        """Each block's sums."""
        return ProductStats({"class": members.classes}, self._each(lambda f, x: f.collect(x, members), X.parts))

    def footprint(self, X: Blocks, members: Members) -> ProductStats:
        """Each block's."""
        return ProductStats({"class": members.classes}, self._each(lambda f, x: f.footprint(x, members), X.parts))

    def choose(self, stats: ProductStats, rows: tuple[Any, Members] | None = None, rule: Rule = "mean") -> Product:
        """Each block freezes its own choices."""
        X, members = rows or (None, None)
        part: Any = dict.fromkeys(self.names) if X is None or members is None else X.parts
        return self.with_families(
            self._each(lambda f, s, x: f.choose(s, None if x is None else (x, members), rule), stats.blocks, part)
        )

    def with_blocks(self, act: Callable[[Family, Any], Family], X: Blocks) -> Product:
        """Each block's family as `act` makes it of the family and its rows."""
        return self.with_families(self._each(act, X.parts))

    def finished(self) -> Product:
        """Block by block."""
        return self.with_families(self._each(lambda f: f.finished()))

    def summed_as(self, chosen: Product) -> Product:
        """Block by block."""
        theirs = dict(zip(self.names, chosen.families.values()))
        return self.with_families(self._each(lambda f, c: f.summed_as(c), theirs))

    @property
    def open(self) -> bool:
        """If any block is."""
        return any(family.open for family in self.families.values())

    @property
    def mixes(self) -> bool:
        """If all blocks do."""
        return all(family.mixes for family in self.families.values())

    @property
    def calibration(self) -> str | None:
        """Block by block, if any block asks for it."""
        asked = any(family.calibration is not None for family in self.families.values())
        return "blocks" if asked else None

    def split(self, *values: Any) -> list[tuple[Any, ...]]:
        """Block by block."""
        named = [value.parts if isinstance(value, Blocks) else value.blocks for value in values]
        return list(self._each(lambda *block: block, *named).values())

    @property
    def shared(self) -> bool:
        """If any block's classes share something."""
        return any(family.shared for family in self.families.values())

    def chosen_by_labels(self) -> list[str]:
        """What any block chooses."""
        return sorted({choice for family in self.families.values() for choice in family.chosen_by_labels()})

    def refined(self, stats: ProductStats, X: Blocks, members: Members) -> tuple[Product, ProductStats]:
        """Block by block."""
        each = self._each(lambda f, s, x: f.refined(s, x, members), stats.blocks, X.parts)
        families, sums = ({name: pair[at] for name, pair in each.items()} for at in (0, 1))
        return self.with_families(families), ProductStats(stats.labels, sums)

    def settled(self, chosen: Product) -> Product:
        """Block by block."""
        theirs = dict(zip(self.names, chosen.families.values()))
        return self.with_families(self._each(lambda f, c: f.settled(c), theirs))

    def rewritten(self, **hyper: Any) -> Product:
        """Every block that has such a hyper-parameter."""
        families = dict(self.families)
        for name, value in hyper.items():
            having = [key for key, family in families.items() if name in {f.name for f in fields(family)}]
            if not having:
                raise HyperparameterError(f"no block has a hyper-parameter {name!r}.")
            families |= {key: families[key].rewritten(**{name: value}) for key in having}
        return replace(self, families=families)

    def subset(self, stats: ProductStats, features: Array, columns: Sequence[Any]) -> tuple[Product, ProductStats]:
        """Only these columns of the table; blocks that lose all of theirs go."""
        wanted = [columns[j] for j in features]
        place = {key: key if isinstance(key, str) else at for at, key in enumerate(wanted)}  # positions are renumbered
        families, blocks = {}, {}
        for name, (keys, family) in zip(self.names, self.families.items()):
            kept = [at for at, key in enumerate(_keys(keys)) if key in wanted]
            if kept:
                remaining = tuple(place[_keys(keys)[at]] for at in kept)
                label = ",".join(map(str, remaining))
                families[remaining], blocks[label] = family.subset(
                    stats.blocks[name], np.array(kept, dtype=np.intp), _keys(keys)
                )
        return Product(families), ProductStats(stats.labels, blocks)

    def estimate(self, stats: ProductStats, rule: Rule) -> ProductDensity:
        """Each block's density."""
        return ProductDensity(self._each(lambda f, s: f.estimate(s, rule), stats.blocks))

    def leave_one_out(self, stats: ProductStats, X: Blocks, members: Members, rule: Rule) -> Array:
        """Blocks add, with the row left out of each."""
        return sum(self._each(lambda f, s, x: f.leave_one_out(s, x, members, rule), stats.blocks, X.parts).values())

    def log_evidence(self, stats: ProductStats) -> Array:
        """Blocks add; one number a class, or one in all where a block ties its classes."""
        parts = list(self._each(lambda f, s: f.log_evidence(s), stats.blocks).values())
        one = any(len(part) == 1 for part in parts)
        return sum(np.sum(part, keepdims=True) if one else part for part in parts)

    def log_prior(self, density: ProductDensity) -> float:
        """Blocks add."""
        return sum(self._each(lambda f, d: f.log_prior(d), density.blocks).values())

    def posterior(self, stats: ProductStats) -> Posterior:
        """Every block's parameters, named block.parameter."""
        each = self._each(lambda f, s: f.posterior(s), stats.blocks)
        return Posterior({f"{name}.{p}": post[p] for name, post in each.items() for p in post})


def _keys(key: Any) -> tuple[Any, ...]:
    return key if isinstance(key, tuple) else (key,)
