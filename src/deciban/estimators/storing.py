"""Classifiers as files: what is stored of one, and how it is put together again."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from deciban.errors import DecibanError, ModelFileError
from deciban.estimators.learning import Learning
from deciban.evaluate.calibration import Calibrator
from deciban.families.known import KnownDensities
from deciban.families.product import Product, ProductStats
from deciban.families.protocol import Density, Family, check_rule
from deciban.model.calibration import Calibration
from deciban.model.ledger import Ledger
from deciban.model.model import ModelStats
from deciban.read.columns import Column
from deciban.read.schema import Schema
from deciban.statistics import Axis, Ragged, Stats
from deciban.store import save
from deciban.store.checks import arrays, require, sizes
from deciban.store.estimators import Estimator
from deciban.store.models import ODD
from deciban.store.released import Released, is_released, refuse, strip

DERIVED = {"classes_"}  # follows from the statistics
ABSENT = {"calibration_": None, "ledger_": None}  # what a file may leave out
MANY = 2**20  # columns that nothing in the file need hold
# their features are the columns
BY_COLUMN = {"Bernoulli", "Poisson", "Gaussian", "Multinomial", "Categorical", "Transformed", "Binned"}


@dataclass(frozen=True, eq=False)
class Stored(Estimator):
    """A classifier as a file holds it; its parts are seen to belong together."""

    @property
    def family(self) -> Any:
        return self.fitted.get("family_")

    @property
    def rows(self) -> float:
        """Σ w of the rows learnt."""
        return float(self.fitted["stats_"].rows.sum())

    def restored(self, check: Callable[[], None] | None = None, key: Any = None) -> Any:
        """The classifier; `check` looks at its numbers when they are first needed."""
        model = self.put_together(ABSENT)
        require(isinstance(model, Storing), self.estimator, "to be a classifier")
        _fits(model)
        model._set(model.stats_)
        model._unchecked, model._from_file = check, True
        return model._with_key(key) if key is not None else model


class Storing(Learning):
    """What a classifier can do with files."""

    _from_file = False  # and not estimated since
    _unchecked: Callable[[], None] | None = None  # numbers that came from a large file and were not looked at yet

    def save(self, path: str | os.PathLike[str], *, note: str = "") -> None:
        """Write the model to a file, whole or not at all; `deciban.load` reads it."""
        save(self, path, note=note)

    def released(self) -> Self:
        """The same classifier without its sums: it answers as before, to the bit, and cannot learn."""
        check_is_fitted(self)
        family, sums = strip(self.family_, self.stats_.family, self.density, self.rule)
        other = copy(self)
        other.family_ = other.asked_ = family
        other.ledger_ = None
        density = self.density
        other._set(ModelStats(self.stats_.labels, self.stats_.rows, sums))
        other._density = density
        return other

    def stored(self) -> Stored:
        """As a file holds it."""
        check_is_fitted(self)
        self._checked()
        record = Estimator.of(self)
        fitted = {name: value for name, value in record.fitted.items() if name not in DERIVED}
        # a key stays with its owner
        parameters = record.parameters | ({"ledger": bool(self.ledger)} if "ledger" in record.parameters else {})
        # where nothing was chosen, no choice can be out of date
        fitted["unlearnt_"] = bool(self.unlearnt_ and self.asked_ != self.family_)
        return Stored(record.estimator, parameters, fitted)

    def merge(self, other: Self, keep: str | None = None) -> Self:
        """A model that has learnt the rows of both; `keep="left"` or `"right"` says whose frozen choices hold."""
        check_is_fitted(self)
        if is_released(self.family_) or is_released(getattr(other, "family_", None)):
            refuse()
        return super().merge(other, keep)

    __add__ = merge

    @property
    def density(self) -> Density:
        """The densities of all classes under the rule, estimated when first needed after a change."""
        if not self._from_file or self._density is not None:
            return super().density
        self._checked()
        try:
            density = super().density
            _speaks(self.family_, density, self.stats_.axis.size, self.columns_)
        except DecibanError:
            raise
        except ODD as error:
            raise ModelFileError(
                f"the sums and the family that were loaded do not belong together ({error}). "
                "The file was changed: restore a copy, or fit the model again."
            ) from None
        self._from_file = False
        return density

    def _checked(self) -> None:
        if self._unchecked is not None:
            self._unchecked()
            self._unchecked = None

    def __getstate__(self) -> Any:
        self._checked()  # a copy elsewhere has no file to look at
        return super().__getstate__()


# -- whether the parts of a model belong together --------------------------------------------------------------------
def _fits(model: Any) -> None:
    names = ("stats_", "family_", "asked_", "columns_", "reasons_", "n_features_in_", "decayed_", "unlearnt_")
    require(all(hasattr(model, name) for name in names), "the classifier", ", ".join(names))
    require(isinstance(model.stats_, ModelStats) and isinstance(model.stats_.axis, Axis), "stats_", "statistics")
    require(type(model.stats_.axis.names) is tuple, "stats_", "classes with names")
    require(isinstance(model.family_, Family) and isinstance(model.asked_, Family), "family_", "a family")
    if type(model.columns_) is range:
        held = sum(array.size for _, array, _, _ in arrays((model.stats_, model.family_), ""))
        require(len(model.columns_) <= MANY + held, "columns_", "a number for each column")
    else:
        right = type(model.columns_) is tuple and len(set(model.columns_)) == len(model.columns_)
        require(right, "columns_", "names that differ")
    given = _given(model)
    require(model.n_features_in_ == len(given) > 0, "n_features_in_", "the number of columns")
    require(isinstance(model.reasons_, dict), "reasons_", "a reason for each block")
    named = getattr(model, "feature_names_in_", None)
    require(named is None or tuple(named) == given, "feature_names_in_", "the names of the columns")
    require(all(isinstance(flag, bool) for flag in (model.decayed_, model.unlearnt_)), "decayed_", "true or false")
    require(model.ledger_ is None or isinstance(model.ledger_, Ledger), "ledger_", "a ledger")
    _calibrates(model.calibration_)
    check_rule(str(model.rule))
    _belongs(model.family_, model.stats_.family, model.stats_.axis.size, model.columns_)


def _given(model: Any) -> Sequence[Any]:
    """The columns that are given to a model: its own, or those that its schema reads."""
    schema = model.schema_
    if schema is None:
        return model.columns_
    right = isinstance(schema, Schema) and type(schema.columns) is tuple
    require(right and all(isinstance(column, Column) for column in schema.columns), "schema_", "columns")
    require(schema.features == model.columns_, "schema_", "the columns of the model")
    return schema.names


def _calibrates(calibration: Any) -> None:
    if calibration is None:
        return
    require(isinstance(calibration, Calibration) and type(calibration.classes) is tuple, "calibration_", "classes")
    made = calibration.calibrator
    require(isinstance(made, Calibrator), "calibration_", "a calibrator")
    offsets = getattr(made, "offsets", None)
    fits = offsets is None or np.shape(offsets) == (len(calibration.classes),)
    require(fits, "calibration_", "an offset for each class")


def _belongs(family: Any, stats: Any, K: int, columns: Sequence[Any]) -> None:
    """Refuse sums or densities of another number of classes or columns than the model's."""
    if isinstance(family, Product):
        places = family.positions(columns)
        fits = isinstance(stats, ProductStats) and isinstance(stats.blocks, dict) and list(stats.blocks) == list(places)
        require(fits, "a product", "the sums of its blocks")
        for (name, at), part in zip(places.items(), family.families.values()):
            _belongs(part, stats.blocks[name], K, [columns[j] for j in at])
        return
    require(isinstance(stats, Stats), type(family).__name__, "sums")
    D = len(columns)
    if isinstance(family, Released):
        _speaks(family, family.density, K, columns)
        _belongs(family.family, family.names, K, columns)
    elif isinstance(family, KnownDensities):
        each = [sizes(density) for density in family.densities]
        right = len(each) == K and all(found["K"] == 1 and found.get("D", D) == D for found in each)
        require(right, "known densities", "one for each class, of all columns")
    elif type(family).__name__ in BY_COLUMN:
        for axis in (stats.labels.get(name) for name in ("feature", "word", "category")):
            size = D if axis is None else len(axis.parts) if isinstance(axis, Ragged) else axis.size
            require(size == D, type(family).__name__, f"sums of {D} columns")


def _speaks(family: Any, density: Any, K: int, columns: Sequence[Any]) -> None:
    """Refuse a density of another number of classes or columns than the model's: kernels trust it."""
    if isinstance(family, Product):
        for (name, at), part in zip(family.positions(columns).items(), family.families.values()):
            _speaks(part, density.blocks[name], K, at)
        return
    found = sizes(density)
    inner = family.family if isinstance(family, Released) else family
    plain = type(inner).__name__ in BY_COLUMN
    right = found["K"] == K and (not plain or found.get("D", len(columns)) == len(columns))
    require(right, f"the density of {type(inner).__name__}", f"{K} classes and {len(columns)} columns")
