"""Scores of rows by the sums without their fold: parts of a model whose folds are scored together.

In a family of independent features, a fold of a feature is a feature of its own: the sums of feature j without fold f
are those of a feature (f, j) that misses the values of fold f. All folds are then scored by one call. Columns that have
equal Gaussians, as they are or transformed, are scored together, too. Other parts may share work between folds by
themselves (`HasFoldScores`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from deciban.families import limits
from deciban.families.abilities import HasFoldScores, HasLeftOutFeatures, SeveralParts, ability
from deciban.families.gaussian import Gaussian
from deciban.families.gaussian.sums import DiagonalStats
from deciban.families.mapped import MappedFamily
from deciban.families.product import BlockRows, Product, ProductStats, blocks_of, expert_rule, experts_of
from deciban.families.protocol import Rule
from deciban.model.model import Model
from deciban.read.codes import MISSING, Codes
from deciban.statistics import Array, Axis, Members

CELLS = 2**22  # scores of rows, classes, features and folds that are computed together
SUMS = ("weight", "first", "second")


class Part(NamedTuple):
    """A block or an expert, or several blocks of one feature each, whose features are those of one family."""

    places: list[int]  # of its scores among those of the model
    family: Any
    stats: Any
    rows: Any
    rule: Rule

    def scores_of_features(self, fold: Array, members: Members, folds: Sequence[int]) -> Array:
        """Return the scores of each row by the sums without each of some folds, and without the row.

        They have the shape (F, places, n, K).
        """
        D, F = self.rows.shape[1], len(folds)
        copies = np.tile(np.arange(D), F)
        inside = np.repeat(fold[:, None] == np.asarray(folds), D, axis=1)
        family, rows = self.family.select(copies), _picked(self.rows, copies)
        own, others = _without(rows, ~inside), _without(rows, inside)
        left = self.stats.select("feature", copies) - family.collect(own, members)
        scores = family.left_out_features(left, others, members, self.rule)
        scores += family.estimate(left, self.rule).parts(own)  # the score of a missing value is 0
        n, K = scores.shape[:2]
        by_fold = np.ascontiguousarray(scores.reshape(n, K, F, D).transpose(2, 3, 0, 1))
        return by_fold if len(self.places) == D else by_fold.sum(axis=1, keepdims=True)


class PartsTogether(NamedTuple):
    """The parts of a model whose folds are scored together, and the rest of the model."""

    features: list[Part]  # of independent features
    others: list[Part]
    rest: tuple[Model, Any] | None  # with the encoded rows; None if no block is left

    @classmethod
    def of(cls, model: Model, rows: Any) -> PartsTogether:
        """Find the parts whose folds are scored together."""
        product, sums = model.family, model.stats.family
        if not isinstance(product, Product):
            return cls([], [], (model, rows))
        features, others, place = list[Part](), list[Part](), 0
        left: list[int] = []  # positions of the blocks, and then of the experts, that are scored fold by fold
        blocks, experts = blocks_of(product, sums, rows), experts_of(product, sums, rows)
        for at, (family, stats, part) in enumerate([*blocks, *experts]):
            rule = model.rule if at < len(blocks) else expert_rule(model.rule)
            several = ability(family, SeveralParts)
            places = list(range(place, place + (1 if several is None else len(several.part_columns))))
            one = Part(places, family, stats, part, rule)
            feature, place = _feature(one), place + len(places)
            if feature is not None:
                features.append(feature)
            elif ability(family, HasFoldScores) is not None:
                others.append(one)
            else:
                left.append(at)
        if left and left[0] >= len(blocks):  # a product has at least one block
            first = next(each for each in features if each.places == [0])
            features.remove(first)
            left.insert(0, 0)
        rest = _restricted(model, rows, left) if left else None
        return cls(_grouped(features), others, rest)

    def by_fold(self, fold: Array, members: Members, number: int) -> Iterator[dict[int, Array]]:
        """Yield, for each of the first folds, scores of all rows (n, K) by their places in the model.

        They are those by the sums without the fold, for rows of other folds also without the row.
        """
        every = [each.family.fold_scores(each.stats, each.rows, members, fold, each.rule) for each in self.others]
        cells = members.K * len(fold) * max(1, sum(each.rows.shape[1] for each in self.features))
        step = max(1, CELLS // cells)
        for start in range(0, number, step):
            folds = range(start, min(start + step, number))
            scores = [each.scores_of_features(fold, members, folds) for each in self.features]
            for f in range(len(folds)):
                found: dict[int, Array] = {}
                for part, of_features in zip(self.features, scores):
                    found |= zip(part.places, of_features[f])
                for part, by_fold in zip(self.others, every):
                    found |= zip(part.places, next(by_fold))
                yield found


def _feature(part: Part) -> Part | None:
    """Return a part of independent features, mapped if it is; None if they are not, or gaps are not allowed."""
    places, family, stats, rows, rule = part
    if not isinstance(rows, np.ndarray | Codes) or len(places) != 1:
        return None
    if isinstance(family, MappedFamily):
        if rows.shape[1] != 1:  # a row that cannot be mapped in one column may be left out in all
            return None
        values: Any = rows
        inner = family.inside(stats.map), stats.inner, family.mapped(values, stats.map)
        return _feature(Part(places, *inner, rule))
    apart = ability(family, HasLeftOutFeatures)
    if apart is None or not apart.separate(stats) or "gaps" not in family.accepts:
        return None
    if rows.shape[1] > 1 and any(isinstance(each, np.ndarray) and each.size == 1 for each in vars(family).values()):
        return None  # a parameter that all features share cannot be selected for copies of them
    if isinstance(family, Gaussian):
        rows = limits.masked(np.asarray(rows, dtype=float), family.limit)
        family = replace(family, limit=None)
    return Part(places, family, stats, rows, rule)


def _grouped(features: Sequence[Part]) -> list[Part]:
    """Join the columns that have the Gaussian and the rule of the first of them."""
    plain = [each for each in features if type(each.family) is Gaussian and each.rows.shape[1] == 1]
    gaussians = [each for each in plain if each.family.mean is None and each.family.scale is None]
    alike = [each for each in gaussians if each.family == gaussians[0].family and each.rule == gaussians[0].rule]
    if len(alike) < 2:
        return list(features)
    each = [one.stats for one in alike]
    origin, reach = (np.concatenate([getattr(one, name) for one in each]) for name in ("origin", "reach"))
    weight, first, second = (np.concatenate([getattr(one, name) for one in each], axis=1) for name in SUMS)
    labels = {**each[0].labels, "feature": Axis.of(len(each))}
    stats = DiagonalStats(labels, weight, first, second, origin, reach)
    places = [place for one in alike for place in one.places]
    family = replace(alike[0].family, origin=origin, reach=reach)
    joined = Part(places, family, stats, np.concatenate([one.rows for one in alike], axis=1), alike[0].rule)
    return [joined, *(one for one in features if one.places[0] not in places)]


def _restricted(model: Model, rows: BlockRows, kept: Sequence[int]) -> tuple[Model, BlockRows]:
    """Return the model of some blocks and experts, by their positions, and their rows."""
    product: Any = model.family
    sums: ProductStats = model.stats.family
    B = len(product.families)
    families, experts = list(product.families.items()), list(product.experts.items())
    blocks, beside = [at for at in kept if at < B], [at - B for at in kept if at >= B]
    family = replace(product, families=dict(families[at] for at in blocks), experts=dict(experts[at] for at in beside))
    held = {name: sums.experts[name] for name in family.experts} if sums.experts is not None else {}
    stats = replace(sums, blocks={key: sums.blocks[key] for key in family.keys}, experts=held or None)
    parts = BlockRows(tuple(rows.parts[at] for at in blocks), tuple(rows.experts[at] for at in beside))
    return replace(model, family=family, stats=replace(model.stats, family=stats)), parts


def _picked(rows: Any, features: Array) -> Any:
    """Return copies of features."""
    if isinstance(rows, Codes):
        names = None if rows.names is None else tuple(rows.names[j] for j in features)
        return Codes(rows.values[:, features].astype(np.intp), names)
    return rows[:, features]


def _without(rows: Any, gone: Array) -> Any:
    """Return rows in which some values are missing."""
    if isinstance(rows, Codes):
        return Codes(np.where(gone, MISSING, rows.values), rows.names)
    return np.where(gone, np.nan, rows)
