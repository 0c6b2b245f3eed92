"""Blocks of columns, each with its own family, independent given the class.

    log f(x|c) = Σ_b log f_b(x_b|c)

A missing value adds nothing to a block's statistics and nothing to its score, where the block's family allows gaps.

A product may also have *experts*: further families over columns that a block models already, such as pairs of columns.
They are summed like blocks, and they add parts to the calibrated score. They are no part of the density: scores without
calibration, samples, evidences and posteriors are those of the blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from deciban.errors import DecibanError, HyperparameterError, InputError, shortlist
from deciban.families.abilities import (
    Composite,
    Counts,
    HasChoices,
    HasDraws,
    HasEvidence,
    HasFootprint,
    HasFrame,
    HasLogPrior,
    HasParts,
    HasPosterior,
    HasSubset,
    Refines,
    RefinesParts,
    RunningSums,
    SeveralParts,
    SharesParameters,
    Streams,
    Unmixable,
    ability,
    parts_support,
    with_frame,
)
from deciban.families.protocol import (
    BlockOfPart,
    Density,
    Family,
    Input,
    Passes,
    Posterior,
    Rows,
    Rule,
    accumulator,
    replaced,
)
from deciban.read.tables import Columns, Table
from deciban.statistics import Array, Axis, Members, Stats, nested

Key = tuple[Any, ...]  # the columns of a block: names, or positions
ASKED = "named by you"  # reason of a block whose family was given


@dataclass(frozen=True, eq=False)
class Block:
    """Columns that one family models, and why this family."""

    columns: Key  # () for all columns of the table
    family: Family[Any]
    reason: str = ""
    together: bool = False  # its columns were found to vary together, so later rows must have no gap in them
    expert: bool = False  # beside other blocks of the same columns
    detail: str = ""  # figures behind the reason


@dataclass(frozen=True)
class Expert:
    """Columns, which blocks model already, and a further family for them."""

    columns: Key
    family: Family[Any]
    whole_rows: bool = False  # a row with a gap in one of the columns counts as missing in all
    alone: bool = False  # its score is the whole evidence of its columns, not only the part beyond their families

    def encode(self, table: Table) -> Rows:
        """Encode the columns of a table."""
        at = places_of([self.columns], table.columns)[0]
        rows = self.family.encode(Columns(table, at), [str(table.columns[j]) for j in at])
        if not self.whole_rows:
            return rows
        gaps = np.isnan(rows).any(axis=1)
        return np.where(gaps[:, None], np.nan, rows) if gaps.any() else rows


class ExpertRows(Sequence[Rows]):
    """The rows of a table, encoded for each expert at their first use; mutable: they are kept.

    The answers of a model whose calibration does not use the experts need none of them.
    """

    def __init__(self, experts: Iterable[Expert], table: Table) -> None:
        self._experts, self._table = tuple(experts), table
        self._made: tuple[Rows, ...] | None = None

    def _rows(self) -> tuple[Rows, ...]:
        if self._made is None:
            self._made = tuple(expert.encode(self._table) for expert in self._experts)
        return self._made

    def __getitem__(self, at: Any) -> Any:
        return self._rows()[at]

    def __len__(self) -> int:
        return len(self._experts)


@dataclass(frozen=True, eq=False)
class BlockRows:
    """The encoded rows of several blocks; selecting rows selects them in each."""

    parts: tuple[Rows, ...]
    experts: Sequence[Rows] = ()

    @property
    def shape(self) -> tuple[int, int]:
        shapes = [part.shape for part in self.parts]
        return shapes[0][0], sum(shape[1] for shape in shapes)

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(object)

    def __getitem__(self, rows: Array | slice) -> BlockRows:
        return BlockRows(tuple(part[rows] for part in self.parts), tuple(part[rows] for part in self.experts))

    def side_by_side(self, places: Iterable[Sequence[int]]) -> Any:
        """Return drawn rows as one table, each column at its place: sparse if all blocks are.

        Parameters
        ----------
        places : iterable of sequence of int
            Place of each column of each block in the table.

        Returns
        -------
        ndarray or CSR matrix of shape (n, D)
            The rows.
        """
        order = np.argsort([place for block in places for place in block])
        if all(map(sp.issparse, self.parts)):
            return sp.hstack(self.parts).tocsr()[:, order]
        return np.column_stack([part.toarray() if sp.issparse(part) else part for part in self.parts])[:, order]

    def by_name(self, keys: Iterable[Sequence[Any]]) -> Any:
        """Return drawn rows as they can be learnt: columns by their names, or an array if they have positions."""
        names = [name for key in keys for name in key]
        if sorted(names, key=str) == list(range(len(names))):
            return self.side_by_side([names])
        columns = [part[:, [j]] for part in self.parts for j in range(part.shape[1])]
        return {name: BlockRows((column,)).side_by_side([[0]])[:, 0] for name, column in zip(names, columns)}


@dataclass(frozen=True, eq=False, repr=False)
class ProductStats(Stats):
    """The statistics of each block, by its columns, and those of the experts."""

    blocks: dict[Key, Stats] = nested()
    experts: dict[str, Stats] | None = nested(default=None)  # by their names; None where there are none


@dataclass(frozen=True, eq=False)
class ProductDensity(Density):
    """Densities of blocks, multiplied."""

    blocks: dict[Key, Density]
    experts: dict[str, Density] | None = None  # by their names; not part of the density

    @property
    def K(self) -> int:
        return next(iter(self.blocks.values())).K

    def supports(self, kind: type) -> bool:
        """Whether every block has the ability; a block that is no sum over features counts as one part."""
        return kind is HasParts or parts_support(list(self.blocks.values()), kind)

    def log_density(self, X: BlockRows) -> Array:
        """Return the sum over blocks."""
        return sum(density.log_density(part) for density, part in self._with(X))  # type: ignore[return-value]

    def log_base(self, X: BlockRows) -> Array | float:
        """Return the sum over blocks."""
        return sum(density.log_base(part) for density, part in self._with(X))

    def parts(self, X: BlockRows) -> Array:
        """Return (n, K, P): one part per feature where the block is a sum over features, else one for the block."""
        return np.concatenate([parts_or_whole(density, part) for density, part in self._with(X)], axis=2)

    def polynomial(self) -> tuple[Array | None, Array, Array]:
        """Return the coefficients of all blocks, in the order of the blocks."""
        each = [density.polynomial() for density in self.blocks.values()]  # type: ignore[attr-defined]
        sizes = [b.shape[1] for _, b, _ in each]
        A = None
        if any(block is not None for block, _, _ in each):
            A = np.zeros((self.K, sum(sizes), sum(sizes)))
            for (block, _, _), end, size in zip(each, np.cumsum(sizes), sizes):
                if block is not None:
                    A[:, end - size : end, end - size : end] = block
        return A, np.concatenate([b for _, b, _ in each], axis=1), sum(c for _, _, c in each)

    def sample(self, codes: Array, rng: np.random.Generator) -> BlockRows:
        """Draw the blocks separately: they are independent given the class."""
        return BlockRows(tuple(density.sample(codes, rng) for density in self.blocks.values()))

    def _with(self, X: BlockRows) -> Iterable[tuple[Density, Rows]]:
        return zip(self.blocks.values(), X.parts)


@dataclass(frozen=True, eq=False)
class Product(
    Family[ProductStats],
    HasEvidence,
    HasPosterior,
    HasDraws,
    HasLogPrior,
    HasFootprint,
    HasFrame,
    HasChoices,
    HasSubset,
    Streams,
    Refines,
    RefinesParts,
    SharesParameters,
    Unmixable,
    Composite,
):
    """Families of blocks of columns, independent given the class: naive Bayes of mixed types.

    Parameters
    ----------
    families : dict of {column: Family}
        Family of each block. A key is a column name or position, or a tuple of them where a family takes several.
    experts : dict of {str: Expert}, optional
        Further families over columns that a block has already, by any name. They add parts to calibrated scores, with
        weights ≥ 0, and are no part of the density.

    Examples
    --------
    >>> from deciban import Bernoulli, Gaussian
    >>> Product({0: Gaussian("diagonal"), (1, 2): Bernoulli()}).keys
    [(0,), (1, 2)]
    """

    families: Mapping[Any, Family[Any]]
    experts: Mapping[str, Expert] = field(default_factory=dict)

    @property
    def accepts(self) -> frozenset[str]:
        return frozenset.intersection(*(family.accepts for family in self.families.values()))

    def __post_init__(self) -> None:
        if not self.families:
            raise InputError("a product needs at least one family. Give {column: family}.")
        for key, family in self.families.items():
            if not isinstance(family, Family):
                raise InputError(f"{key!r}: {family!r} is not a family. Use one such as Gaussian() or Categorical().")
            if len(set(as_key(key))) < len(as_key(key)):
                raise InputError(f"the block {key!r} names a column twice. Name each column once.")

    @property
    def keys(self) -> list[Key]:
        """The columns of each block."""
        return [as_key(key) for key in self.families]

    def supports(self, kind: type) -> bool:
        # lengths are those of single blocks, not of the product
        return kind is HasSubset or (kind is not Counts and parts_support(list(self.families.values()), kind))

    def with_families(self, families: Iterable[Family[Any]]) -> Product:
        """Replace the families of the blocks.

        Parameters
        ----------
        families : iterable of Family
            One per block, in the order of the blocks.

        Returns
        -------
        Product
            The same blocks with these families.
        """
        return replace(self, families=dict(zip(self.families, families)))

    def positions(self, columns: Sequence[Any]) -> list[list[int]]:
        """Find the columns of each block in a table.

        Parameters
        ----------
        columns : sequence
            Names or positions of the columns of the table.

        Returns
        -------
        list of list of int
            Positions of the columns of each block.
        """
        return places_of(self.keys, columns)

    # -- the contract, block by block ------------------------------------------------------------------------------
    def encode(self, X: Input | BlockRows, columns: Sequence[Any], stats: ProductStats | None = None) -> BlockRows:
        if isinstance(X, BlockRows):
            return X
        table = X.table if isinstance(X, Columns) else Table.of(X)
        known = [None] * len(self.families) if stats is None else list(stats.blocks.values())
        encoded = []
        for family, at, sums in zip(self.families.values(), self.positions(table.columns), known):
            encoded.append(family.encode(Columns(table, at), [str(table.columns[j]) for j in at], sums))
        return BlockRows(tuple(encoded), ExpertRows(self.experts.values(), table))

    def check(self, X: BlockRows, columns: Sequence[Any], learning: bool = False) -> None:
        for family, key, part in zip(self.families.values(), self.keys, X.parts):
            family.check(part, list(map(str, key)), learning)

    def collect(self, X: BlockRows, members: Members) -> ProductStats:
        experts = [expert.collect(part, members) for expert, part in experts_of(self, X)]
        return self._stats(members.classes, self._each(lambda f, x: f.collect(x, members), X.parts), experts)

    def choose(
        self, stats: ProductStats, rows: tuple[BlockRows, Members] | None = None, rule: Rule = "mean"
    ) -> Product:
        if rows is None:
            chosen = self.with_families(self._each(lambda f, s: f.choose(s, None, rule), stats.blocks.values()))
            return chosen.with_experts(
                one.choose(sums, None, expert_rule(rule)) for one, sums in experts_of(self, stats)
            )
        X, members = rows
        chosen = self.with_families(
            self._each(lambda f, s, x: f.choose(s, (x, members), rule), stats.blocks.values(), X.parts)
        )
        each = experts_of(self, stats, X)
        return chosen.with_experts(one.choose(sums, (part, members), expert_rule(rule)) for one, sums, part in each)

    def with_experts(self, families: Iterable[Family[Any]]) -> Product:
        """Replace the families of the experts.

        Parameters
        ----------
        families : iterable of Family
            One per expert, in the order of the experts.

        Returns
        -------
        Product
            The same blocks, and experts with these families.
        """
        if not self.experts:
            return self
        each = zip(self.experts.items(), families)
        return replace(self, experts={name: replace(expert, family=family) for (name, expert), family in each})

    def resolve(self, stats: ProductStats) -> Product:
        resolved = self.with_families(self._each(lambda f, s: f.resolve(s), stats.blocks.values()))
        return resolved.with_experts(expert.resolve(sums) for expert, sums in experts_of(self, stats))

    def estimate(self, stats: ProductStats, rule: Rule) -> ProductDensity:
        blocks = self._each(lambda f, s, k: _estimate(f, s, rule, k), stats.blocks.values(), self.keys)
        each = zip(self.experts, experts_of(self, stats))
        experts = {name: expert.estimate(sums, expert_rule(rule)) for name, (expert, sums) in each}
        return ProductDensity(dict(zip(self.keys, blocks)), experts or None)

    def leave_one_out(
        self, stats: ProductStats, X: BlockRows, members: Members, rule: Rule, density: Density | None = None
    ) -> Array:
        known = list(density.blocks.values()) if isinstance(density, ProductDensity) else [None] * len(self.families)
        parts = self._each(
            lambda f, s, x, d: f.leave_one_out(s, x, members, rule, d), stats.blocks.values(), X.parts, known
        )
        return np.asarray(sum(parts))

    # -- abilities -------------------------------------------------------------------------------------------------
    def accumulator(self, X: BlockRows, members: Members, columns: Sequence[Any]) -> RunningSums:
        return _BlockAccumulator(self, X, members)

    def footprint(self, X: BlockRows, members: Members) -> ProductStats:
        experts = [footprint(expert, part, members) for expert, part in experts_of(self, X)]
        return self._stats(members.classes, self._each(lambda f, x: footprint(f, x, members), X.parts), experts)

    def framed(self, stats: ProductStats) -> Product:
        pairs = zip(self.families.values(), stats.blocks.values())
        found = [with_frame(part, sums) for part, sums in pairs]
        experts = [with_frame(expert, sums) for expert, sums in experts_of(self, stats)]
        old = [*self.families.values(), *(expert.family for expert in self.experts.values())]
        same = all(new is former for new, former in zip([*found, *experts], old))
        return self if same else self.with_families(found).with_experts(experts)

    def refine(self, stats: ProductStats, X: BlockRows, members: Members) -> tuple[Product, ProductStats]:
        pairs = self._each(
            lambda f, s, x: f.refine(s, x, members) if ability(f, Refines) else (f, s), stats.blocks.values(), X.parts
        )
        return self._refined(stats, pairs)

    def refine_parts(
        self, stats: ProductStats, X: BlockRows, members: Members, parts: Passes
    ) -> tuple[Product, ProductStats]:
        pairs = [
            family.refine_parts(sums, rows, members, parts.kept(BlockOfPart(at)))  # type: ignore[attr-defined]
            if ability(family, Refines)
            else (family, sums)
            for at, (family, sums, rows) in enumerate(zip(self.families.values(), stats.blocks.values(), X.parts))
        ]
        return self._refined(stats, pairs)

    def _refined(self, stats: ProductStats, pairs: Sequence[tuple[Any, Any]]) -> tuple[Product, ProductStats]:
        families, sums = zip(*pairs)
        found = self._stats(stats.labels["class"], sums)  # type: ignore[arg-type]
        return self.with_families(families), replace(found, experts=stats.experts)

    def chosen_by_labels(self) -> list[str]:
        every = [*self.families.values(), *(family for (family,) in experts_of(self))]
        having = [family for family in every if ability(family, HasChoices)]
        return sorted({choice for family in having for choice in family.chosen_by_labels()})

    def keep_choices(self, chosen: Product, with_rows: bool) -> Product:
        def kept(family: Any, made: Any) -> Any:
            return family.keep_choices(made, with_rows) if ability(family, HasChoices) else family

        blocks = self.with_families(self._each(kept, chosen.families.values()))
        both = zip(experts_of(self), experts_of(chosen))
        return blocks.with_experts(kept(family, made) for (family,), (made,) in both)

    @property
    def shared(self) -> bool:
        having = (ability(family, SharesParameters) for family in self.families.values())
        return any(family is not None and family.shared for family in having)

    @property
    def not_mixable(self) -> str:
        having = (ability(family, Unmixable) for family in self.families.values())
        return next((family.not_mixable for family in having if family is not None), "")

    def subset(self, stats: ProductStats, features: Array, columns: Sequence[Any]) -> tuple[Product, ProductStats]:
        wanted = [columns[j] for j in features]
        place = {key: key if isinstance(key, str) else at for at, key in enumerate(wanted)}  # positions are renumbered
        families: dict[Key, Any] = {}
        blocks: dict[Key, Any] = {}
        for key, part, sums in zip(self.keys, self.families.values(), stats.blocks.values()):
            kept = [at for at, name in enumerate(key) if name in wanted]
            if kept:
                left = tuple(place[key[at]] for at in kept)
                families[left], blocks[left] = subset(part, sums, np.array(kept, dtype=np.intp), key)
        experts: dict[str, Expert] = {}
        held: dict[str, Any] = {}
        for (name, expert), (_, sums) in zip(self.experts.items(), experts_of(self, stats)):
            at = np.array([j for j, column in enumerate(expert.columns) if column in wanted], dtype=np.intp)
            found = _expert_subset(expert, sums, at)
            if found is not None:
                left = tuple(place[expert.columns[j]] for j in at)
                experts[name] = replace(expert, columns=left, family=found[0])
                held[name] = found[1]
        return Product(families, experts), ProductStats(stats.labels, blocks, held or None)

    def log_evidence(self, stats: ProductStats) -> Array:
        parts = self._each(lambda f, s: f.log_evidence(s), stats.blocks.values())
        one = any(len(part) == 1 for part in parts)
        return np.asarray(sum(np.sum(part, keepdims=True) if one else part for part in parts))

    def log_prior(self, density: ProductDensity) -> float:
        return float(sum(self._each(lambda f, d: f.log_prior(d), density.blocks.values())))

    def posterior(self, stats: ProductStats) -> Posterior:
        """Describe the posterior of every block's parameters.

        Parameters
        ----------
        stats : ProductStats
            Sums of the rows of each class.

        Returns
        -------
        Posterior
            Marginals by block and parameter, such as "height.mean".
        """
        each = self._each(lambda f, s: f.posterior(s), stats.blocks.values())
        labels = [",".join(map(str, key)) for key in self.keys]
        return Posterior({f"{label}.{p}": post[p] for label, post in zip(labels, each) for p in post})

    def draw(self, stats: ProductStats, rng: np.random.Generator, times: int = 1) -> ProductDensity:
        return self._density(self._each(lambda f, s: f.draw(s, rng, times), stats.blocks.values()))

    # -- internals ------------------------------------------------------------------------------------------------
    def _each(self, act: Callable[..., Any], *parts: Iterable[Any]) -> list[Any]:
        return [act(family, *each) for family, *each in zip(self.families.values(), *parts)]

    def _stats(self, classes: Axis, sums: Iterable[Stats], experts: Iterable[Stats] = ()) -> ProductStats:
        held = dict(zip(self.experts, experts))
        return ProductStats({"class": classes}, dict(zip(self.keys, sums)), held or None)

    def _density(self, densities: Iterable[Density]) -> ProductDensity:
        return ProductDensity(dict(zip(self.keys, densities)))


class _BlockAccumulator:
    """Accumulators of the blocks of a product."""

    def __init__(self, product: Product, X: BlockRows, members: Members) -> None:
        self.product, self.classes = product, members.classes
        pairs = zip(product.families.values(), product.keys, X.parts)
        self.blocks = [accumulator(family, part, members, list(map(str, key))) for family, key, part in pairs]
        others = zip(product.experts.values(), X.experts)
        self.experts = [accumulator(one.family, part, members, list(map(str, one.columns))) for one, part in others]

    @property
    def family(self) -> Product:
        """The product of the blocks' families."""
        blocks = self.product.with_families(block.family for block in self.blocks)
        return blocks.with_experts(expert.family for expert in self.experts)

    @property
    def known(self) -> ProductStats:
        """Statistics of the blocks, whose names are used to encode later rows."""
        return self._stats(block.known for block in self.blocks)

    def choose(self, X: BlockRows, members: Members, rule: Rule) -> None:
        """Let each block and expert make its choices."""
        for block, part in zip([*self.blocks, *self.experts], [*X.parts, *X.experts]):
            block.choose(part, members, rule)

    def add(self, X: BlockRows, members: Members) -> None:
        """Add the sums of a batch to each block's."""
        self.classes = self.classes.union(members.classes)
        for block, part in zip([*self.blocks, *self.experts], [*X.parts, *X.experts]):
            block.add(part, members)

    def total(self) -> ProductStats:
        """Return the sums of each block and expert."""
        experts = {name: expert.total() for name, expert in zip(self.product.experts, self.experts)}
        return replace(self._stats(block.total() for block in self.blocks), experts=experts or None)

    def _stats(self, sums: Iterable[Any]) -> ProductStats:
        return ProductStats({"class": self.classes}, dict(zip(self.product.keys, sums)))


def _estimate(family: Family[Any], stats: Any, rule: Rule, columns: Key) -> Density:
    """Estimate the density of a block; an error names the columns of the table, not their positions in the block."""
    try:
        return family.estimate(stats, rule)
    except DecibanError as error:
        if error.columns is None:
            raise
        raise error.but(columns=tuple(columns[j] for j in error.columns)) from None


def blocks_of(family: Family[Any], *values: Any) -> list[tuple[Any, ...]]:
    """Return (family, value, …) of each block: one, unless the family is a product.

    The values are encoded rows, statistics or densities of the family.
    """
    if Product not in type(family).__mro__:  # isinstance looks at every protocol that Product derives from
        return [(family, *values)]
    parts = [value.parts if isinstance(value, BlockRows) else list(value.blocks.values()) for value in values]
    return list(zip(family.families.values(), *parts))  # type: ignore[attr-defined]


def places_of(keys: Sequence[Key], columns: Sequence[Any]) -> list[list[int]]:
    """Return the positions of the columns of each key in a table; an error names those that it lacks."""
    place = {name: at for at, name in enumerate(columns)}
    missing = [name for key in keys for name in key if name not in place]
    if missing:
        lacks, has = shortlist([repr(name) for name in missing]), shortlist(columns, 10)
        raise InputError(f"the table has no column {lacks}; it has {has}.", columns=tuple(missing))
    return [[place[name] for name in key] for key in keys]


# -- experts ---------------------------------------------------------------------------------------------------------
def experts_of(family: Family[Any], *values: Any) -> list[tuple[Any, ...]]:
    """Return (family, value, …) of each expert of a product; none of another family.

    The values are encoded rows, statistics or densities of the family.
    """
    if not isinstance(family, Product) or not family.experts:
        return []
    parts = [value.experts if isinstance(value, BlockRows) else list(value.experts.values()) for value in values]
    return list(zip([expert.family for expert in family.experts.values()], *parts))


def expert_rule(rule: Rule) -> Rule:
    """Return the rule by which experts are estimated, under which no row has probability 0."""
    return rule if rule == "predictive" else "mean"


def expert_scores(family: Family[Any], density: Density, rows: Rows) -> list[Array]:
    """Return the scores of each part of each expert, shape (n, K)."""
    scores: list[Array] = []
    for expert, inner, encoded in experts_of(family, density, rows):
        several = ability(expert, SeveralParts)
        scores += [inner.log_density(encoded)] if several is None else several.part_scores(inner, encoded)
    return scores


def left_out_experts(
    family: Family[Any], stats: Any, rows: Rows, members: Members, rule: Rule, density: Density
) -> list[Array]:
    """Return the leave-one-out scores of each part of each expert, shape (n, K)."""
    scores: list[Array] = []
    for expert, sums, encoded, inner in experts_of(family, stats, rows, density):
        given = sums, encoded, members, expert_rule(rule), inner
        several = ability(expert, SeveralParts)
        scores += [expert.leave_one_out(*given)] if several is None else several.left_out_parts(*given)
    return scores


def expert_columns(family: Family[Any]) -> list[tuple[Family[Any], Key]]:
    """Return the expert and the columns of each part of the experts, in the order of their scores."""
    found: list[tuple[Family[Any], Key]] = []
    for expert in family.experts.values() if isinstance(family, Product) else ():
        several, columns = ability(expert.family, SeveralParts), expert.columns
        parts = [tuple(range(len(columns)))] if several is None else several.part_columns
        found += [(expert.family, tuple(columns[j] for j in part)) for part in parts]
    return found


def arrangements(family: Family[Any]) -> list[list[int]]:
    """Return sets of blocks and parts of experts, each a model by itself, as positions of their scores.

    Each is an expert of several columns, or all experts of single columns, with the blocks of the other columns.
    """
    if not isinstance(family, Product):
        return []
    sets: dict[Any, list[tuple[int, Key]]] = {}
    at = len(family.families)
    for name, expert in family.experts.items():
        several = ability(expert.family, SeveralParts)
        if expert.alone:
            sets.setdefault(name if len(expert.columns) > 1 else (), []).append((at, expert.columns))
        at += 1 if several is None else len(several.part_columns)
    found = []
    for experts in sets.values():
        taken = {column for _, columns in experts for column in columns}
        blocks = [b for b, key in enumerate(family.keys) if not taken.intersection(key)]
        found.append([*blocks, *(at for at, _ in experts)])
    return found


def _expert_subset(expert: Expert, stats: Any, features: Array) -> tuple[Family[Any], Any] | None:
    """Return the family and the sums of an expert for some of its columns; None if nothing is left of it."""
    several = ability(expert.family, SeveralParts)
    if several is not None:
        return several.restricted(stats, features)
    return subset(expert.family, stats, features, expert.columns) if len(features) else None


def without_ability(family: Family[Any], kind: type) -> str:
    """Return the name of the family that lacks an ability; of a product, with the columns of the block."""
    if isinstance(family, Product):
        for key, part in zip(family.keys, family.families.values()):
            if ability(part, kind) is None:
                return f"{without_ability(part, kind)} (block {', '.join(map(str, key))!r})"
    return type(family).__name__


def footprint(family: Family[Any], X: Rows, members: Members) -> Any:
    """Return sums that are enough to check that rows were learnt."""
    cheap = ability(family, HasFootprint)
    return family.collect(X, members) if cheap is None else cheap.footprint(X, members)


def subset(family: Family[Any], stats: Any, features: Array, columns: Sequence[Any]) -> tuple[Family[Any], Any]:
    """Return family and statistics of some of the columns, in the order given."""
    if len(features) == len(columns) and np.array_equal(features, np.arange(len(columns))):
        return family, stats
    composite = ability(family, HasSubset)
    if composite is not None:
        return composite.subset(stats, features, columns)  # type: ignore[return-value]
    return family.select(features), stats.select("word" if "word" in stats.labels else "feature", features)


def with_hyperparameters(family: Family[Any], **hyper: object) -> Family[Any]:
    """Return the family with other hyper-parameters; of a product, in every block that has them."""
    if not isinstance(family, Product):
        return replaced(family, **hyper)
    families = dict(family.families)
    for name, value in hyper.items():
        having = [key for key, part in families.items() if name in {f.name for f in fields(part)}]
        if not having:
            raise HyperparameterError(f"no block has a hyper-parameter {name!r}.")
        families |= {key: replaced(families[key], **{name: value}) for key in having}
    return replace(family, families=families)


def parts_or_whole(density: Density, X: Rows) -> Array:
    """Return the parts (n, K, P) of a density, or its log density as the only part."""
    parts = ability(density, HasParts)
    return density.log_density(X)[:, :, None] if parts is None else parts.parts(X)


def as_key(key: Any) -> Key:
    """Return the columns that a key names."""
    return key if isinstance(key, tuple) else (key,)
