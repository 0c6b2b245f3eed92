"""The record of a classifier in a file, and the checks when it is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from deciban.errors import DecibanError, EmptyClassError, InputError, ModelFileError, NoModeError, SingularError
from deciban.evaluate.calibration import Calibrator
from deciban.families.abilities import HasCandidates, ability
from deciban.families.cosine_features import CosineFeatures
from deciban.families.fixed import KnownDensities, Released
from deciban.families.interactions import InteractionDensity, Interactions, InteractionStats
from deciban.families.product import Expert, Product, ProductStats, blocks_of, experts_of, places_of
from deciban.families.protocol import Density, Family, check_rule
from deciban.model.calibration import Calibration
from deciban.model.ledger import Ledger, Secret
from deciban.model.model import Model, ModelStats, Reader, Reason
from deciban.model.predictor import Predictor
from deciban.read.columns import Column
from deciban.read.schema import Schema
from deciban.statistics import Axis, Ragged, Stats
from deciban.store.checks import (
    MISMATCH,
    arrays,
    check_blocks,
    check_empty_batch,
    check_family,
    check_features,
    keyed_by_columns,
    not_together,
    plain_names,
    require,
    sizes,
)
from deciban.store.estimators import Estimator, find, name_of, unfitted

MOST_COLUMNS = 2**20  # columns beyond the numbers that the file holds
# errors of valid models: some sums have no estimate under some rules
OF_ESTIMATES = (EmptyClassError, InputError, ModelFileError, NoModeError, SingularError)
# fitted attributes in files of versions without model_
FORMER = ("stats_", "family_", "asked_", "columns_", "reasons_", "decayed_", "unlearnt_")


@dataclass(frozen=True, eq=False)
class Stored(Estimator):
    """The parameters of a classifier and its model."""

    @property
    def model(self) -> Any:
        """The model, for files of any version."""
        return self.fitted["model_"] if "model_" in self.fitted else _of_former_attributes(self.fitted, self.parameters)

    @property
    def family(self) -> Any:
        """The family of the model."""
        return self.model.family

    @property
    def rows(self) -> float:
        """Σ w of the rows learnt."""
        return self.model.weight

    def restored(self, check: Callable[[], None] | None = None, key: Secret = None) -> Any:
        """Return the classifier; `check` is called when its numbers are first needed."""
        cls = find(str(self.estimator))
        require(hasattr(cls, "use"), self.estimator, "to be a classifier")
        clf = unfitted(cls, self.parameters)
        require(type(self.fitted) is dict, self.estimator, "fitted attributes")
        if not self.fitted:  # a parameter of another model
            return clf
        model = self.model
        require(isinstance(model, Model), self.estimator, "a model")
        model = _with_keys_of_blocks(model)
        _check(model, small=check is None)
        names = model.reader.given
        require(self.fitted.get("n_features_in_") == len(names) > 0, "n_features_in_", "the number of columns")
        named = self.fitted.get("feature_names_in_")
        right = named is None or (isinstance(named, np.ndarray) and named.tolist() == [*names])
        require(right, "feature_names_in_", "an array of the names of the columns")
        clf.n_features_in_ = len(names)
        if named is not None:
            clf.feature_names_in_ = named

        def checked(latest: Model) -> Density:
            if check is not None:
                check()
            return _checked_density(latest)

        clf.use(Predictor(model, check=checked))
        return clf if key is None else clf.with_key(key)


def record_of(clf: Any) -> Stored:
    """Return the record of a classifier; the key of its ledger is not stored."""
    parameters = clf.get_params(deep=False)
    parameters |= {"ledger": bool(clf.ledger)} if "ledger" in parameters else {}
    if not clf.__sklearn_is_fitted__():
        return Stored(name_of(type(clf)), parameters, {})
    predictor = clf.predictor_
    predictor.verify()
    model = predictor.model
    # if no choice was made, none can be out of date
    model = replace(model, unlearnt=bool(model.unlearnt and model.asked != model.family))
    fitted = {"model_": model, "n_features_in_": clf.n_features_in_}
    if hasattr(clf, "feature_names_in_"):
        fitted["feature_names_in_"] = clf.feature_names_in_
    return Stored(name_of(type(clf)), parameters, fitted)


# -- files of former versions ----------------------------------------------------------------------------------------
def _of_former_attributes(fitted: dict[str, Any], parameters: dict[str, Any]) -> Model:
    """Return the model of a file that held attributes of the classifier instead of a model."""
    require(all(name in fitted for name in FORMER), "the classifier", ", ".join(FORMER))
    reasons = fitted["reasons_"]
    require(isinstance(reasons, dict), "reasons_", "a reason for each block")
    return Model(
        fitted["family_"],
        fitted["stats_"],
        Reader(fitted["columns_"], fitted.get("schema_")),
        parameters.get("rule", "mean"),
        fitted["asked_"],
        tuple(Reason(str(why)) for why in reasons.values()),
        fitted.get("calibration_"),
        fitted.get("ledger_"),
        fitted.get("prequential_"),
        fitted["decayed_"],
        fitted["unlearnt_"],
    )


def _with_keys_of_blocks(model: Model) -> Model:
    """Return a model whose sums are found by the columns of a block; former files have joined names as keys."""
    if not isinstance(model.stats, ModelStats):
        return model
    return replace(model, stats=replace(model.stats, family=keyed_by_columns(model.family, model.stats.family)))


# -- checks ----------------------------------------------------------------------------------------------------------
def _check(model: Model, small: bool) -> None:
    """Check that the parts of a model have the right types and the same classes and columns.

    A small model also learns a batch of 0 rows: this finds sums and hyper-parameters that the family cannot produce.
    """
    stats, reader = model.stats, model.reader
    require(isinstance(stats, ModelStats) and isinstance(stats.axis, Axis), "the statistics", "sums with classes")
    require(type(stats.axis.names) is not range, "the statistics", "classes with names")
    require(isinstance(model.family, Family) and isinstance(model.asked, Family), "the model", "a family")
    require(isinstance(reader, Reader), "the model", "a reader")
    columns = reader.columns
    if type(columns) is range:
        held = sum(array.size for _, array, _, _ in arrays((stats, model.family), ""))
        require(len(columns) <= MOST_COLUMNS + held, "the columns", "a number for each column")
    else:
        right = type(columns) is tuple and len(set(columns)) == len(columns)
        require(right, "the columns", "names that differ")
    if reader.schema is not None:
        right = isinstance(reader.schema, Schema) and type(reader.schema.columns) is tuple
        right = right and all(isinstance(column, Column) for column in reader.schema.columns)
        require(right, "the schema", "columns")
        require(reader.schema.features == columns, "the schema", "the columns of the model")
    right = type(model.reasons) is tuple and all(isinstance(reason, Reason) for reason in model.reasons)
    require(right, "the reasons", "a text for each block")
    require(all(isinstance(flag, bool) for flag in (model.decayed, model.unlearnt)), "decayed", "true or false")
    require(model.ledger is None or isinstance(model.ledger, Ledger), "the ledger", "digests of rows")
    _check_calibration(model.calibration)
    check_rule(str(model.rule))
    _check_sums(model.family, stats.family, stats.axis.size, columns)
    if small:
        at = model.family.positions(columns) if isinstance(model.family, Product) else [range(len(columns))]
        for places, (part, sums) in zip(at, blocks_of(model.family, stats.family)):
            check_empty_batch(part, sums, [columns[j] for j in places])
        keys = [one.columns for one in model.family.experts.values()] if isinstance(model.family, Product) else []
        for key, (expert, sums) in zip(keys, experts_of(model.family, stats.family)):
            if not isinstance(expert.family if isinstance(expert, Released) else expert, Interactions):
                check_empty_batch(expert, sums, key)


def _check_calibration(calibration: Calibration | None) -> None:
    """Check that a calibration has a calibrator with an offset for each class."""
    if calibration is None:
        return
    right = isinstance(calibration, Calibration) and plain_names(calibration.classes)
    require(right, "the calibration", "classes")
    made = calibration.calibrator
    require(isinstance(made, Calibrator), "the calibration", "a calibrator")
    offsets = getattr(made, "offsets", None)
    fits = offsets is None or np.shape(offsets) == (len(calibration.classes),)
    require(fits, "the calibration", "an offset for each class")


def _check_sums(family: Family[Any], stats: Stats, K: int, columns: Sequence[Any]) -> None:
    """Check that sums and densities have the classes and columns of the model."""
    if isinstance(family, Product):
        places = family.positions(columns)
        check_blocks(family, stats)
        for at, (part, sums) in zip(places, blocks_of(family, stats)):
            _check_sums(part, sums, K, [columns[j] for j in at])
        _check_experts(family, stats, K, columns)  # type: ignore[arg-type]  # see `check_blocks`
        return
    require(isinstance(stats, Stats), type(family).__name__, "sums")
    require(stats.labels["class"].size == K, type(family).__name__, f"sums of {K} classes")
    D = len(columns)
    if ability(family, HasCandidates) is None:  # the features of a text are words, not columns
        check_features(family, D)
    check_family(family, stats)
    if isinstance(family, Released):
        try:
            _check_density(family, family.density, K, columns)
        except MISMATCH as error:
            raise error if isinstance(error, DecibanError) else not_together(error) from None
        _check_sums(family.family, family.names, K, columns)
    elif isinstance(family, KnownDensities):
        each = [sizes(density) for density in family.densities]
        right = len(each) == K and all(found["K"] == 1 and found.get("D", D) == D for found in each)
        require(right, "known densities", "one for each class, of all columns")
    elif ability(family, HasCandidates) is None:  # the features of a text are words, not columns
        for axis in (stats.labels.get(name) for name in ("feature", "word", "category")):
            size = D if axis is None else len(axis.parts) if isinstance(axis, Ragged) else axis.size
            require(size == D, type(family).__name__, f"sums of {D} columns")
        combinations = stats.labels.get("combination")
        if isinstance(combinations, Axis) and combinations.size:
            require(len(combinations.names[0]) == D, type(family).__name__, f"combinations of {D} columns")


def _check_experts(family: Product, stats: ProductStats, K: int, columns: Sequence[Any]) -> None:
    """Check that the experts of a product have columns of the model, and sums of their own."""
    right = isinstance(family.experts, dict) and all(isinstance(each, Expert) for each in family.experts.values())
    require(right and (stats.experts is None or isinstance(stats.experts, dict)), "a product", "experts by their names")
    require(list(stats.experts or {}) == list(family.experts), "a product", "the sums of its experts")
    for name, (columns_of, expert) in {name: (one.columns, one.family) for name, one in family.experts.items()}.items():
        require(type(columns_of) is tuple, "a product", "columns of each expert")
        at, sums = places_of([columns_of], columns)[0], (stats.experts or {})[name]
        inner, held = (expert.family, expert.names) if isinstance(expert, Released) else (expert, sums)
        require(isinstance(inner, Family), "a product", "experts that are families")
        if isinstance(inner, Interactions):
            names = held.labels.get("cell") if isinstance(held, InteractionStats) else None
            right = len(inner.cuts) == len(at) and isinstance(names, Ragged)
            require(right and names == inner.layout.axis, "interactions", "counts of their levels")
            if isinstance(expert, Released):
                require(isinstance(expert.density, InteractionDensity), "interactions", "their own density")
                _check_density(expert, expert.density, K, columns_of)
        elif isinstance(inner, CosineFeatures):
            require(len(inner.ramps) == len(at), "features of columns", "one ramp for each column")
            _check_sums(expert, sums, K, range(inner.features))
        else:
            _check_sums(expert, sums, K, [columns[j] for j in at])


def _check_density(family: Family[Any], density: Density, K: int, columns: Sequence[Any]) -> None:
    """Check that a density has the classes and columns of the model; compiled code does not check sizes."""
    if isinstance(family, Product):
        for at, (part, inner) in zip(family.positions(columns), blocks_of(family, density)):
            _check_density(part, inner, K, at)
        for held, (part, inner) in zip(family.experts.values(), experts_of(family, density)):
            own: Any = part.family if isinstance(part, Released) else part
            _check_density(part, inner, K, range(own.features) if isinstance(own, CosineFeatures) else held.columns)
        return
    if isinstance(density, InteractionDensity):
        layout: Any = (family.family if isinstance(family, Released) else family).layout  # type: ignore[attr-defined]
        for name in ("levels", "pairs"):
            require(getattr(density, name).dtype == np.int64, f"InteractionDensity.{name}", "integers")
        right = density.table.shape == (layout.cells, K) and np.array_equal(density.pairs, layout.pairs)
        require(right and np.array_equal(density.levels, layout.levels), "interactions", f"{K} classes")
        return
    found = sizes(density)
    if not density.shapes and not type(density).__module__.startswith("deciban."):
        drawn = density.sample(np.arange(density.K), np.random.default_rng(0))  # its shapes are not known
        right = density.log_density(drawn).shape == (density.K, density.K)
        require(right, type(density).__name__, "a score for each row and group")
    inner = family.family if isinstance(family, Released) else family
    right = found["K"] == K and found.get("D", len(columns)) == len(columns)
    require(right, f"the density of {type(inner).__name__}", f"{K} classes and {len(columns)} columns")


def _checked_density(model: Model) -> Density:
    """Estimate the density of a model from a file, and check its sizes."""
    try:
        density = model.density()
        _check_density(model.family, density, model.stats.axis.size, model.reader.columns)
    except OF_ESTIMATES:
        raise
    except DecibanError as error:
        raise error.turned_into(ModelFileError) from None
    except MISMATCH as error:
        raise not_together(error) from None
    return density
