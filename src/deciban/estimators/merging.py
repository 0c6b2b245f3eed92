"""Models of several sites as one: + of all they learnt, with the columns, categories and classes of both."""

from __future__ import annotations

from abc import abstractmethod
from copy import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from deciban.errors import HyperparameterError, MergeError
from deciban.estimators.reading import Reading
from deciban.families.product import Product
from deciban.model import model


class Merging(Reading):
    """What a classifier can do with another one."""

    def merge(self, other: Self, keep: str | None = None) -> Self:
        """A model that has learnt the rows of both; `keep="left"` or `"right"` says whose frozen choices hold.

        A column that only one of them knows was missing from every row of the other, where both were read by a schema.
        """
        check_is_fitted(self)
        check_is_fitted(other)
        if not isinstance(other, Merging):
            raise MergeError(f"{type(other).__name__} is not a classifier of this kind.")
        if keep not in (None, "left", "right"):
            raise HyperparameterError(f"keep={keep!r}: say 'left' or 'right', or nothing.")
        one, two = (self, other) if tuple(self.columns_) == tuple(other.columns_) else _widened(self, other)
        if keep is None and one.family_ != two.family_:
            raise MergeError(
                "the models froze different choices (prior scale, strength or structure) at their first fit. "
                "Say whose to keep: a.merge(b, keep='left'); or let the second begin with the first's: "
                "a.blank().learn(…)."
            )
        both = copy(two if keep == "right" else one)
        if one.schema_ is not None and two.schema_ is not None:
            both.schema_ = one.schema_.union(two.schema_)
        if one.calibration_ is not None and not one.calibration_.agrees(two.calibration_):
            both.calibration_ = None
        return both._set(one.stats_ + two.stats_)._keep(self._merged_ledger(other))

    __add__ = merge

    def blank(self) -> Self:
        """The same choices, and nothing learnt: for another site or machine, whose model can then be added to this."""
        check_is_fitted(self)
        other = copy(self)
        other.calibration_ = None
        other.decayed_ = other.unlearnt_ = False
        return other._set((self.stats_ * 0.0).pruned())._keep(self._no_rows_noted())

    @abstractmethod
    def _set(self, stats: model.ModelStats, eager: bool = False) -> Self:
        """Take these sums for one's own."""


def _widened(one: Any, two: Any) -> tuple[Any, Any]:
    """Both models with the blocks that only the other has."""
    by_schema = one.schema_ is not None and two.schema_ is not None
    if not by_schema or not isinstance(one.family_, Product) or not isinstance(two.family_, Product):
        raise MergeError(f"the models have different columns: {one.columns_} and {two.columns_}.")
    schema = one.schema_.union(two.schema_)
    pair = []
    for own, other in ((one, two), (two, one)):
        blocks, families = dict(own.stats_.family.blocks), dict(own.family_.families)
        for (key, family), name in zip(other.family_.families.items(), other.family_.names):
            if name not in blocks:
                _refuse_overlap(name, key, families)
                none = other.stats_.family.blocks[name].select("class", np.zeros(0, dtype=np.intp)).pruned()
                blocks[name], families[key] = none.relabelled({"class": own.stats_.axis}), family
        wide = copy(own)
        wide.family_, wide.columns_, wide.schema_ = Product(families), schema.features, schema
        wide.n_features_in_, wide.feature_names_in_ = len(schema.names), np.array(schema.names, dtype=object)
        wide.calibration_ = None  # it speaks of fewer blocks
        pair.append(wide._set(replace(own.stats_, family=replace(own.stats_.family, blocks=blocks))))
    one, two = pair
    two.family_ = Product({key: two.family_.families[key] for key in one.family_.families})
    return one, two


def _refuse_overlap(name: str, key: Any, families: Any) -> None:
    held = {column: block for block in families for column in (block if isinstance(block, tuple) else (block,))}
    for column in key if isinstance(key, tuple) else (key,):
        if column in held:
            raise MergeError(
                f"column {column!r} is in the block {name!r} of one model and in another of the other. "
                "Fit both with the same blocks: kinds={…}."
            )
