"""What a product is made of, block by block: its rows, its statistics, and its density."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from deciban.errors import DecibanError, HyperparameterError, InputError, NotAvailableError, shortlist
from deciban.families.abilities import HasParts, HasPolynomial
from deciban.families.fitted import collect_checked
from deciban.families.posterior import Posterior
from deciban.families.protocol import Density, Family, Rule
from deciban.read.tables import Table
from deciban.statistics import Array, Axis, Members, Stats, nested


@dataclass(frozen=True, eq=False)
class Blocks:
    """The rows of several blocks side by side; selecting rows selects them in each."""

    parts: dict[str, Any]

    @property
    def shape(self) -> tuple[int, int]:
        shapes = [part.shape for part in self.parts.values()]
        return shapes[0][0], sum(shape[1] for shape in shapes)

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(object)

    def __getitem__(self, rows: Any) -> Blocks:
        return Blocks({name: part[rows] for name, part in self.parts.items()})


@dataclass(frozen=True, eq=False, repr=False)
class ProductStats(Stats):
    """The statistics of each block."""

    blocks: dict[str, Stats] = nested()


@dataclass(frozen=True, eq=False)
class ProductDensity(Density):
    """Densities of blocks, multiplied."""

    blocks: dict[str, Density]

    @property
    def K(self) -> int:
        return next(iter(self.blocks.values())).K

    def log_density(self, X: Blocks) -> Array:
        """Σ over blocks."""
        return sum(density.log_density(X.parts[name]) for name, density in self.blocks.items())  # type: ignore[return-value]

    def log_base(self, X: Blocks) -> Array | float:
        """Σ over blocks."""
        return sum(density.log_base(X.parts[name]) for name, density in self.blocks.items())

    def parts(self, X: Blocks) -> Array:
        """(n, K, P): one part a feature where the block is a sum over features, else one for the block."""
        return np.concatenate([_parts(density, X.parts[name]) for name, density in self.blocks.items()], axis=2)

    def polynomial(self) -> tuple[Array | None, Array, Array]:
        """Blocks side by side, in the order of the blocks."""
        for name, density in self.blocks.items():
            if not isinstance(density, HasPolynomial):
                raise NotAvailableError(f"block {name!r} has no linear or quadratic discriminant.")
        each = [density.polynomial() for density in self.blocks.values()]  # type: ignore[attr-defined]
        sizes = [b.shape[1] for _, b, _ in each]
        A = None
        if any(block is not None for block, _, _ in each):
            A = np.zeros((self.K, sum(sizes), sum(sizes)))
            for (block, _, _), end, size in zip(each, np.cumsum(sizes), sizes):
                if block is not None:
                    A[:, end - size : end, end - size : end] = block
        return A, np.concatenate([b for _, b, _ in each], axis=1), sum(c for _, _, c in each)

    def sample(self, codes: Array, rng: np.random.Generator) -> Blocks:
        """Each block for itself: independent given the class."""
        return Blocks({name: density.sample(codes, rng) for name, density in self.blocks.items()})


def _parts(density: Density, X: Any) -> Array:
    return density.parts(X) if isinstance(density, HasParts) else density.log_density(X)[:, :, None]


# -- running ----------
# Sums in the making: batches are added as they come, after the first rows have settled what was open.
#
# Adding makes new sums of the old ones and the batch's. A family whose sums are large beside a batch, such as those
# of a
# vocabulary, keeps something that grows in place instead, and makes sums of it in the end.


class Running:
    """A family, and its sums so far, of the first rows to begin with.

    >>> import numpy as np
    >>> from deciban import Poisson
    >>> sums = Running(Poisson(), np.array([[1.0], [2.0]]), Members.one_group(2), ["calls"])
    >>> sums.add(np.array([[4.0]]), Members.one_group(1))
    >>> sums.total().total
    array([[7.]])
    """

    def __init__(self, family: Any, X: Any, members: Members, columns: Sequence[Any]) -> None:
        self.family, self.columns = family, columns
        self.stats = collect_checked(family, X, members, columns)

    @property
    def known(self) -> Any:
        """Statistics whose names later rows are encoded by."""
        return self.stats

    def choose(self, X: Any, members: Members, rule: Rule) -> None:
        """Let the family freeze what it left open, by the first rows and their sums."""
        self.family = self.family.choose(self.stats, (X, members), rule)

    def add(self, X: Any, members: Members) -> None:
        """Add the sums of a batch."""
        self.stats = self.stats + collect_checked(self.family, X, members, self.columns)

    def total(self) -> Any:
        """The sums of everything that was added."""
        return self.stats


class RunningBlocks:
    """The same for a product, block by block."""

    def __init__(self, product: Product, classes: Axis, blocks: dict[str, Any]) -> None:
        self.product, self.classes, self.blocks = product, classes, blocks

    @property
    def family(self) -> Product:
        """The product of the blocks' families."""
        return self.product.with_families({name: block.family for name, block in self.blocks.items()})

    @property
    def known(self) -> ProductStats:
        """Of each block."""
        return ProductStats({"class": self.classes}, {name: block.known for name, block in self.blocks.items()})

    def choose(self, X: Blocks, members: Members, rule: Rule) -> None:
        """Block by block."""
        for name, block in self.blocks.items():
            block.choose(X.parts[name], members, rule)

    def add(self, X: Blocks, members: Members) -> None:
        """Add the sums of a batch to each block's."""
        self.classes = self.classes.union(members.classes)
        for name, block in self.blocks.items():
            block.add(X.parts[name], members)

    def total(self) -> ProductStats:
        """The sums of each block."""
        return ProductStats({"class": self.classes}, {name: block.total() for name, block in self.blocks.items()})


# -- product ----------
# Blocks of features, each with its own family, independent given the class.
#
#     log f(x|c) = Σ_b log f_b(x_b|c)
#
# A missing value adds nothing to a block's statistics and nothing to its score, where the block's family allows gaps.


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
        keys = dict(zip(self.names, map(_keys, self.families)))
        return ProductDensity(self._each(lambda f, s, k: _estimate(f, s, rule, k), stats.blocks, keys))

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


def _estimate(family: Family, stats: Any, rule: Rule, columns: Sequence[Any]) -> Density:
    """The density of a block; an error names the columns of the table, not their positions in the block."""
    try:
        return family.estimate(stats, rule)
    except DecibanError as error:
        if error.columns is None:
            raise
        raise error.but(columns=tuple(columns[j] for j in error.columns)) from None


def _keys(key: Any) -> tuple[Any, ...]:
    return key if isinstance(key, tuple) else (key,)
