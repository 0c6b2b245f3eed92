"""Blocks of one column and a Gaussian each, as one Gaussian of independent features: the same scores by fewer calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from deciban.families import limits
from deciban.families.gaussian import Gaussian
from deciban.families.gaussian.sums import DiagonalStats
from deciban.families.product import BlockRows, Product, ProductStats, blocks_of
from deciban.families.protocol import Rule
from deciban.model.model import Model
from deciban.statistics import Array, Axis, Members

FEWEST = 4  # columns that are worth a group


class ColumnGroup(NamedTuple):
    """Columns of a product that have a Gaussian each, as they are or transformed."""

    places: list[int]  # of their blocks in the product; at least one block is not among them
    family: Gaussian  # structure "diagonal"
    stats: DiagonalStats
    rows: Array  # (n, D)

    @classmethod
    def of(cls, model: Model, rows: Any) -> ColumnGroup | None:
        """Return the group of the columns that have equal priors and no far rows; None if they are few."""
        if not isinstance(model.family, Product):
            return None
        found: dict[int, tuple[Gaussian, DiagonalStats, Array]] = {}
        for place, (family, stats, part) in enumerate(blocks_of(model.family, model.stats.family, rows)):
            column = _gaussian(family, stats, part)
            if column is not None and (not found or next(iter(found.values()))[0] == column[0]):
                found[place] = column
        if len(found) == len(model.family.families):
            found.popitem()
        if len(found) < FEWEST:
            return None
        families, each, columns = zip(*found.values())
        origin, reach = (np.concatenate([getattr(one, name) for one in each]) for name in ("origin", "reach"))
        sums = {name: np.concatenate([getattr(one, name) for one in each], axis=1) for name in SUMS}
        labels = {**each[0].labels, "feature": Axis.of(len(each))}
        stats = DiagonalStats(labels, sums["weight"], sums["first"], sums["second"], origin, reach)
        family = replace(families[0], origin=origin, reach=reach)
        return cls(list(found), family, stats, np.concatenate(columns, axis=1))

    def rest(self, model: Model, rows: BlockRows) -> tuple[Model, BlockRows]:
        """Return the model of the other blocks and of the experts, and their rows."""
        product: Any = model.family
        others = [at for at in range(len(product.families)) if at not in set(self.places)]
        names, keys = list(product.families), product.keys
        family = replace(product, families={names[at]: product.families[names[at]] for at in others})
        sums: ProductStats = model.stats.family
        stats = replace(sums, blocks={keys[at]: sums.blocks[keys[at]] for at in others})
        kept = replace(model, family=family, stats=replace(model.stats, family=stats))
        return kept, BlockRows(tuple(rows.parts[at] for at in others), rows.experts)

    def scores(self, train: Array, test: Array, members: Members, rule: Rule) -> tuple[list[Array], list[Array]]:
        """Return leave-one-out scores of the rows `train` and scores of `test`, by sums without `test`.

        Both are lists of arrays (n, K), one for each column.
        """
        left: Any = self.stats - self.family.collect(self.rows[test], members.take(test))  # type: ignore[operator]
        inside = self.family.left_out_features(left, self.rows[train], members.take(train), rule)
        outside = self.family.estimate(left, rule).parts(self.rows[test])  # type: ignore[attr-defined]
        return list(np.ascontiguousarray(np.moveaxis(inside, 2, 0))), list(
            np.ascontiguousarray(np.moveaxis(outside, 2, 0))
        )

    def together(self, group: Sequence[Array], rest: Sequence[Array]) -> list[Array]:
        """Return the scores of all blocks in the order of the product, then those of the experts."""
        own, others = dict(zip(self.places, group)), iter(rest)
        return [own[at] if at in own else next(others) for at in range(len(group) + len(rest))]


SUMS = ("weight", "first", "second")


def _gaussian(family: Any, stats: Any, rows: Any) -> tuple[Gaussian, DiagonalStats, Array] | None:
    """Return family, sums and rows of a column as those of a Gaussian; None if it has another family, or far rows."""
    from deciban.families.transformed import Transformed

    if isinstance(family, Transformed):
        return _gaussian(family.inner, stats.inner, family.mapped(rows, stats.map))
    plain = type(family) is Gaussian and family.structure == "diagonal" and isinstance(stats, DiagonalStats)
    if not plain or rows.shape[1] != 1 or not (stats.placed and stats.all_near):
        return None
    return replace(family, limit=None), stats, limits.masked(np.asarray(rows, dtype=float), family.limit)
