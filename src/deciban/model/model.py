"""The model: what was learnt, as an immutable value.

    learn  +      unlearn  −      weigh, forget  ·      merge  +

Everything that changes a model returns another one. A refused batch therefore changes nothing, a reader in another
thread keeps the value it has, and a file is the value written down. The density that answers are computed from is not
part of the value: `Predictor` estimates it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from deciban.errors import (
    Argument,
    DecibanError,
    HyperparameterError,
    InputError,
    MergeError,
    NotLearntError,
    Remedy,
    SingularError,
)
from deciban.families.abilities import HasChoices, ability, with_frame
from deciban.families.fixed import is_released, refuse, strip
from deciban.families.product import Product, ProductStats, as_key, expert_columns, subset, with_hyperparameters
from deciban.families.protocol import Density, Family, Rows, Rule, brief, check_rule
from deciban.model.calibration import Calibration
from deciban.model.ledger import Ledger, Secret, learn_batch, unlearn_batch
from deciban.read.batches import Batch
from deciban.read.codes import Labels, encode_labels
from deciban.read.tables import Columns, Table
from deciban.statistics import Array, Axis, Members, Stats, nested, summed
from deciban.statistics.base import LOST, is_exact
from deciban.statistics.members import collect_checked

if TYPE_CHECKING:
    from deciban.read.schema import Schema


InteractionsLike: TypeAlias = str | int | Sequence[tuple[Any, Any]]  # "auto", how many pairs of columns, or which
NOISE = 1e-11  # share of a weight that rounding may leave when all rows are removed


@dataclass(frozen=True, eq=False, repr=False)
class ModelStats(Stats):
    """The class prior's sums and the family's sums, over one class axis."""

    rows: Array = summed("class", floor=True)  # Σ w of each class, with or without values
    family: Any = nested()

    def pruned(self) -> Self:
        """Return the statistics without the undeclared classes that have no rows, and without unused names."""
        kept = super().pruned()
        empty = (self.rows == 0) & (np.arange(self.axis.size) >= self.axis.declared)
        return kept.select("class", np.flatnonzero(~empty)) if empty.any() else kept

    def refuse_lost(self, other: Self, error: type[DecibanError]) -> None:
        """Refuse rows whose weight is so large that its rounding would falsify the weight of the rows that stay."""
        super().refuse_lost(other, error)
        left = self.rows - other.rows
        stays = (left > NOISE * self.rows) & (self.rows > LOST * left)  # a smaller rest is a rounding error of 0
        lost = stays & ~(is_exact(self.rows) & is_exact(other.rows))
        if lost.any():
            k = int(np.argmax(lost))
            raise error(
                f"the rows of class {self.classes[k]!r} weigh {self.rows[k]:.6g}, and the rounding of this sum would "
                f"falsify the weight of the rows that stay ({left[k]:.6g}).",
                label=self.classes[k],
                remedy="Nothing was changed: fit again without these rows.",
            )

    @property
    def axis(self) -> Axis:
        """The class axis."""
        return self.labels["class"]  # type: ignore[return-value]

    @property
    def classes(self) -> tuple[Any, ...]:
        """The names of the classes, in order."""
        return tuple(self.axis.names)

    def __repr__(self) -> str:
        return f"ModelStats(class {len(self.rows)}, rows {self.rows.sum():g}, {self.family!r})"


@dataclass(frozen=True, eq=False)
class Reader:
    """How rows are read: the columns of the model, and the schema that types frames and files."""

    columns: Sequence[Any]  # names, or a range where there are none
    schema: Schema | None = None

    @property
    def given(self) -> Sequence[Any]:
        """The columns that rows are given with; the schema may make several columns of one."""
        return self.columns if self.schema is None else self.schema.names

    @property
    def labels(self) -> list[str]:
        """The columns as text, for messages."""
        return [str(name) for name in self.columns]

    def select(self, columns: Sequence[Any]) -> Reader:
        """Return the reader of some of the columns."""
        names = tuple(columns) if isinstance(columns[0], str) else range(len(columns))
        return Reader(names, None if self.schema is None else self.schema.select(columns))


@dataclass(frozen=True)
class Reason:
    """Why a block has its family, as text, and the figures behind it."""

    text: str
    detail: str = ""


@dataclass(frozen=True)
class Prequential:
    """Log loss of labels predicted before they were learnt, over all batches since the first fit.

    Reference: Dawid, Statistical theory: the prequential approach, 1984.

    >>> Prequential().add(np.log([0.5, 0.25]), None)
    Prequential(log loss 1.040 over 2 rows)
    """

    total: float = 0.0  # Σ −w·log P(label), of labels that were classes of the model
    rows: float = 0.0  # Σ w of these rows
    new: float = 0.0  # Σ w of rows whose class was new to the model

    @property
    def log_loss(self) -> float:
        """Mean log loss in nats per row; NaN if no row was scored."""
        return self.total / self.rows if self.rows else float("nan")

    def add(self, log_p: Array, weight: Array | None) -> Prequential:
        """Return the loss with more rows; `log_p` is the log probability of each label, NaN for a new class."""
        weight = np.ones(len(log_p)) if weight is None else weight
        known = ~np.isnan(log_p)
        return replace(
            self,
            total=self.total - float(weight[known] @ log_p[known]),
            rows=self.rows + float(weight[known].sum()),
            new=self.new + float(weight[~known].sum()),
        )

    def __repr__(self) -> str:
        new = f", {self.new:g} rows of new classes" if self.new else ""
        return f"Prequential(log loss {self.log_loss:.3f} over {self.rows:g} rows{new})"


@dataclass(frozen=True, eq=False)
class Lesson:
    """A batch of labelled rows, encoded for the family of a model."""

    batch: Batch
    rows: Rows
    members: Members


@dataclass(frozen=True, eq=False)
class Model:
    """What was learnt: a family, its sums, and how rows are read. Immutable; every change returns another model.

    Attributes
    ----------
    family : Family
        The family with its choices made.
    stats : ModelStats
        The sums of all rows learnt.
    reader : Reader
        Columns and schema.
    rule : {"ml", "map", "mean", "predictive"}
        How parameters are obtained from the posterior.
    asked : Family
        The family that the user asked for, before open choices were made.
    reasons : tuple of Reason
        For each block of the family, why it was chosen.
    calibration : Calibration or None
        Maps log-likelihoods to calibrated ones.
    ledger : Ledger or None
        Digests of the rows learnt, for checked unlearning.
    prequential : Prequential or None
        Log loss of batches that were scored before they were learnt.
    decayed, unlearnt : bool
        Whether rows have decayed, or were unlearnt, since the first fit.
    chosen_on : float or None
        Weight of the rows when a fit made the choices; None where it is not known, or choices were replaced since.
    """

    family: Family[Any]
    stats: ModelStats
    reader: Reader
    rule: Rule
    asked: Family[Any]
    reasons: tuple[Reason, ...]
    calibration: Calibration | None = None
    ledger: Ledger | None = None
    prequential: Prequential | None = None
    decayed: bool = False
    unlearnt: bool = False
    chosen_on: float | None = None

    # -- reading ---------------------------------------------------------------------------------------------------
    @property
    def classes(self) -> tuple[Any, ...]:
        """The names of the classes, in the order of every (n, K) answer."""
        return self.stats.classes

    @property
    def weight(self) -> float:
        """Σ w of the rows learnt."""
        return float(self.stats.rows.sum())

    @property
    def positions(self) -> list[list[int]]:
        """Where the columns of each block stand."""
        columns = self.reader.columns
        return self.family.positions(columns) if isinstance(self.family, Product) else [list(range(len(columns)))]

    @property
    def block_names(self) -> list[str]:
        """What each block is called in messages: its columns."""
        if isinstance(self.family, Product):
            return [", ".join(map(str, key)) for key in self.family.keys]
        return [f"all {len(self.reader.columns)} columns"]

    def uses(self, given: Sequence[Any]) -> bool:
        """Whether some family needs one of these columns of a table."""
        schema = self.reader.schema
        if isinstance(self.family, Product):
            used = {name for key in self.family.keys for name in key}
            used |= {name for _, key in expert_columns(self.family) for name in key}
        else:
            used = set(self.reader.columns)
        if schema is not None:
            used = {column.name for column in schema.columns if used.intersection(column.features)}
        return not used.isdisjoint(given)

    def encode(self, table: Table) -> Rows:
        """Encode a table for the family, with the names that the model knows."""
        return encode(self.family, table, self.stats.family)

    def lesson(self, batch: Batch, declared: Sequence[Any] | None = None) -> Lesson:
        """Encode a batch of labelled rows."""
        return lesson(self.family, batch, self.stats.family, declared)

    def density(self) -> Density:
        """Estimate the densities of all classes; a singular covariance is reported by the names of its columns."""
        return estimate(self.family, self.stats, self.rule, self.reader.columns)

    # -- learning --------------------------------------------------------------------------------------------------
    def learn(self, lesson: Lesson, key: Secret = None) -> Model:
        """Add rows; new classes may arrive."""
        ledger = None if self.ledger is None else learn_batch(self.ledger, lesson.batch, self.reader.columns, key)
        stats = self.stats + self.sums(lesson)
        return self._with(stats, family=with_frame(self.family, stats.family), ledger=ledger)

    def unlearn(self, batch: Batch, key: Secret = None) -> Model:
        """Remove rows that were learnt before; NotLearntError where the ledger or the sums show that they were not."""
        ledger, now = self._unlearn_batch(batch, key)
        left = self.stats.without(self.sums(self.lesson(now)), NotLearntError)
        return self._with(left, ledger=ledger, unlearnt=True)

    def correct(self, batch: Batch, labels: ArrayLike | Labels | None, key: Secret = None) -> Model:
        """Move rows from their labels to others."""
        ledger, now = self._unlearn_batch(batch, key, labels)
        more = self.sums(self.lesson(replace(now, labels=labels)))
        less = self.sums(self.lesson(now))
        return self._with((self.stats + more).without(less, NotLearntError), ledger=ledger)

    def __mul__(self, factor: float) -> Model:
        """Weigh all rows learnt so far by a factor."""
        if not 0 < factor <= 1:
            raise HyperparameterError(f"decay({factor}): the factor must be > 0 and at most 1.")
        ledger = None if self.ledger is None else self.ledger.decay(factor)
        return self._with(self.stats * factor, ledger=ledger, decayed=self.decayed or factor < 1)

    def __add__(self, other: Model) -> Model:
        return self.merge(other)

    def merge(self, other: Model, keep: str | None = None) -> Model:
        """Return a model that has learnt the rows of both; `keep` is "left" or "right" where their choices differ.

        A column that only one of them has was missing from every row of the other, where both were read by a schema.
        """
        if is_released(self.family) or is_released(other.family):
            refuse()
        if keep not in (None, "left", "right"):
            raise HyperparameterError(f"keep={keep!r} is not 'left', 'right' or None.")
        one, two = (self, other) if tuple(self.reader.columns) == tuple(other.reader.columns) else _widened(self, other)
        one, two = with_common_experts(one, two)
        if keep is None and one.family != two.family:
            raise _different_choices(one, two)
        kept = two if keep == "right" else one
        reader = kept.reader
        if one.reader.schema is not None and two.reader.schema is not None:
            reader = replace(reader, schema=one.reader.schema.union(two.reader.schema))
        agree = one.calibration is None or one.calibration.agrees(two.calibration)
        return replace(
            kept,
            stats=_finite(one.stats + two.stats),
            reader=reader,
            calibration=kept.calibration if agree else None,
            ledger=_merged_ledger(self.ledger, other.ledger),
        )

    def blank(self) -> Model:
        """Return a model with the same choices and no rows, for another site whose model can then be added."""
        ledger = None if self.ledger is None else Ledger(self.ledger.key_id)
        stats = (self.stats * 0.0).pruned()
        return self._with(stats, ledger=ledger, calibration=None, decayed=False, unlearnt=False)

    # -- other models from the same sums ---------------------------------------------------------------------------
    def reestimate(
        self,
        *,
        rule: Rule | None = None,
        classes: Sequence[Any] | None = None,
        columns: Sequence[Any] | None = None,
        interactions: int | Sequence[tuple[Any, Any]] | None = None,
        **hyper: Any,
    ) -> Model:
        """Return a model with another rule, other hyper-parameters, or some of the classes, columns or pairs."""
        model = self if interactions is None else with_interactions(self, interactions)
        # calibration and choices were made for the densities as they are
        model = replace(model, calibration=None, chosen_on=None)
        if rule is not None:
            check_rule(rule)
            model = replace(model, rule=rule)
        if hyper and is_released(self.family):
            refuse()
        if hyper:
            family = with_hyperparameters(model.family, **hyper).choose(self.stats.family, None, model.rule)
            model = replace(model, family=family)
        if classes is not None:
            at = _places(classes, self.classes, "class")
            model = replace(model, stats=model.stats.select("class", at))
        return model if columns is None else model.select(columns)

    def select(self, columns: Sequence[Any]) -> Model:
        """Return the model of some of the columns; the ledger knows whole rows only, so it is dropped."""
        if is_released(self.family):
            refuse()
        at = _places(columns, self.reader.columns, "column")
        family, sums = subset(self.family, self.stats.family, at, self.reader.columns)
        reasons = self.reasons
        if isinstance(self.family, Product):
            wanted = {self.reader.columns[j] for j in at}
            reasons = tuple(why for key, why in zip(self.family.keys, self.reasons) if wanted.intersection(key))
        return replace(
            self,
            family=family,
            stats=replace(self.stats, family=sums),
            reader=self.reader.select(columns),
            reasons=reasons,
            ledger=None,
        )

    def released(self, density: Density) -> Model:
        """Return the model without its sums and its ledger; `density` is its own."""
        family, sums = strip(self.family, self.stats.family, density, self.rule)
        return replace(self, family=family, asked=family, stats=replace(self.stats, family=sums), ledger=None)

    def rechoose(self, family: Family[Any]) -> Model:
        """Return the model with choices made again: `family` has them."""
        return replace(self, family=family, unlearnt=False, chosen_on=None)

    def rechosen_from_sums(self) -> Model:
        """Make the choices again that sums can make; the others stay."""
        choices = ability(self.asked, HasChoices)
        asked: Any = self.asked if choices is None else choices.keep_choices(self.family, with_rows=False)
        return self.rechoose(asked.choose(self.stats.family, None, self.rule))

    # -- sums ------------------------------------------------------------------------------------------------------
    def sums(self, lesson: Lesson) -> ModelStats:
        """Collect the statistics of a batch."""
        return collect(self.family, lesson.rows, lesson.members, self.reader.columns)

    def _with(self, stats: ModelStats, **changes: Any) -> Model:
        return replace(self, stats=_finite(stats), **changes)

    def _unlearn_batch(
        self, batch: Batch, key: Secret, labels: ArrayLike | Labels | None = None
    ) -> tuple[Ledger | None, Batch]:
        """Return the ledger without the rows, and the batch with the weights that decay has left."""
        if self.ledger is not None:
            return unlearn_batch(self.ledger, batch, self.reader.columns, key, labels)
        if self.decayed:
            raise NotLearntError(
                "this model has decayed, so the weight its rows have now is not the one they were learnt with. "
                "Nothing was changed: unlearn before decay, refit, or keep a ledger (ledger=True) from the start."
            )
        return None, batch


def with_common_experts(one: Model, two: Model) -> tuple[Model, Model]:
    """Return two models of products with the experts, and of these the pairs of columns, that both have."""
    if not isinstance(one.family, Product) or not isinstance(two.family, Product):
        return one, two
    if one.family.experts == two.family.experts:
        return one, two
    from deciban.model.experts import common_experts

    first, second = common_experts((one.family, one.stats.family), (two.family, two.stats.family))
    return _with_experts(one, *first), _with_experts(two, *second)


def with_interactions(model: Model, wanted: int | Sequence[tuple[Any, Any]]) -> Model:
    """Return a model with some of its pairs of columns: a number of them, the greatest weights first, or a list."""
    from deciban.model.experts import kept_pairs

    if is_released(model.family):
        refuse()
    if not isinstance(model.family, Product):
        raise InputError("the model has no blocks of columns, so that no pairs of columns were summed.")
    return _with_experts(model, *kept_pairs(model.family, model.stats.family, wanted, model.calibration))


def _with_experts(model: Model, family: Product, sums: ProductStats) -> Model:
    return replace(model, family=family, stats=replace(model.stats, family=sums))


def _different_choices(one: Model, two: Model) -> MergeError:
    """Return the error that names the columns whose families differ, and the call that makes the models alike."""
    first, second = (
        dict(zip(model.family.keys, model.family.families.values()))
        if isinstance(model.family, Product)
        else {(): model.family}
        for model in (one, two)
    )
    differ = [key for key in {**first, **second} if first.get(key) != second.get(key)]
    said = []
    for key in differ[:5]:
        here, there = (brief(each[key]) if key in each else "no block of its own" for each in (first, second))
        where = f"column {', '.join(map(repr, key))}: " if key else ""
        said.append(f"{where}{here} in the first, {there}{' with other values' * (here == there)} in the second")
    more = f"; and {len(differ) - 5} more" if len(differ) > 5 else ""
    remedy: list[str | Argument] = [
        "Fit the second with the choices of the first: ",
        Argument("like", python="a.blank().learn(…)"),
        ".",
    ]
    try:
        one.stats + two.stats
    except DecibanError:
        pass  # the sums differ in kind, so that neither model's choices fit both
    else:
        held = Argument("keep", "left", "a.merge(b, keep='left')")
        remedy = [*remedy[:2], "; or name the model whose choices hold: ", held, "."]
    return MergeError(
        f"the models made different choices at their first fit: {'; '.join(said)}{more}.",
        columns=[name for key in differ for name in key] or None,
        remedy=Remedy(*remedy),
    )


# -- functions that a fit needs before there is a model --------------------------------------------------------------
def class_axis(found: Sequence[Any], declared: Sequence[Any] | None) -> Axis:
    """Return the class axis of a batch: declared classes first, then those found."""
    if declared is None:
        return Axis(tuple(found))
    names = tuple(name.item() if isinstance(name, np.generic) else name for name in declared)
    if len(set(names)) < len(names):
        raise InputError(f"classes={list(declared)} contains a class twice. Give each class once.")
    return Axis.of(names).union(Axis(tuple(found)))


def encode(family: Family[Any], table: Table, stats: Stats | None = None) -> Rows:
    """Encode a table for a family; `stats` holds the names that are known already."""
    return family.encode(Columns(table), table.columns, stats)


def lesson(family: Family[Any], batch: Batch, stats: Stats | None, declared: Sequence[Any] | None = None) -> Lesson:
    """Encode a batch, and place its labels on a class axis."""
    names, codes = encode_labels(batch.labels, batch.table.data.shape[0])
    axis = class_axis(names, declared)
    if tuple(axis.names) != names:
        codes = axis.positions(class_axis(names, None))[codes]
    return Lesson(batch, encode(family, batch.table, stats), Members.hard(codes, axis, batch.weight))


def collect(family: Family[Any], X: Rows, members: Members, columns: Sequence[Any]) -> ModelStats:
    """Collect the statistics of encoded rows."""
    sums = collect_checked(family, X, members, columns)
    return ModelStats({"class": members.classes}, members.weights(), sums)


def estimate(family: Family[Any], stats: ModelStats, rule: Rule, columns: Sequence[Any]) -> Density:
    """Estimate a density; a singular covariance is reported by the names of its columns."""
    if not len(stats.rows):
        raise InputError("the model has no rows and no classes left. Learn some rows first.")
    try:
        return family.estimate(stats.family, rule)
    except SingularError as error:
        if not error.columns or not any(isinstance(name, str) for name in columns):
            raise
        names = tuple(columns[at] if isinstance(at, int) and at < len(columns) else at for at in error.columns)
        raise error.but(*error.args, f" (Columns at fault: {', '.join(map(repr, names))}.)", columns=names) from None


def label_array(names: Sequence[Any]) -> Array:
    """Return class labels as an array; one of objects where there are none."""
    return np.array(names) if len(names) else np.array([], dtype=object)


def _finite(stats: ModelStats) -> ModelStats:
    if not np.isfinite(stats.rows).all():
        raise InputError("the weights are so large that their sum overflows. Rescale them.")
    return stats


def _places(wanted: Sequence[Any], names: Sequence[Any], what: str) -> Array:
    place = {name: at for at, name in enumerate(names)}
    unknown = [name for name in wanted if name not in place]
    if unknown:
        raise InputError(f"no such {what}: {unknown}; the model knows {list(place)}.")
    return np.array([place[name] for name in wanted], dtype=np.intp)


def _merged_ledger(one: Ledger | None, two: Ledger | None) -> Ledger | None:
    if (one is None) != (two is None):
        raise MergeError(
            "one of the models has a ledger and the other does not, so the ledger of the sum would lack rows.",
            remedy=Remedy(
                "Fit both with a ledger, or drop the ledger of the one that has it: ",
                Argument("without_ledger", python="clf.without_ledger()"),
                ".",
            ),
        )
    return None if one is None or two is None else one.merge(two)


def _widened(one: Model, two: Model) -> tuple[Model, Model]:
    """Return both models with the blocks that only the other has."""
    mine, theirs = one.reader.schema, two.reader.schema
    products = isinstance(one.family, Product) and isinstance(two.family, Product)
    if mine is None or theirs is None or not products:
        raise MergeError(
            f"the models have different columns: {one.reader.columns} and {two.reader.columns}. "
            "Fit both with the same columns."
        )
    schema = mine.union(theirs)
    reader = Reader(schema.features, schema)
    first, second = _with_blocks_of(one, two, reader), _with_blocks_of(two, one, reader)
    order: dict[Any, Any] = {as_key(key): key for key in second.family.families}  # type: ignore[attr-defined]
    keys = [order[key] for key in first.family.keys]  # type: ignore[attr-defined]
    family = Product({key: second.family.families[key] for key in keys})  # type: ignore[attr-defined]
    blocks = {as_key(key): second.stats.family.blocks[as_key(key)] for key in keys}
    reasons = dict(zip(second.family.keys, second.reasons))  # type: ignore[attr-defined]
    second = replace(
        second,
        family=family,
        stats=replace(second.stats, family=ProductStats(second.stats.family.labels, blocks)),
        reasons=tuple(reasons[as_key(key)] for key in keys),
    )
    return first, second


def _with_blocks_of(own: Model, other: Model, reader: Reader) -> Model:
    """Return a model with the blocks that only the other has, empty of rows."""
    blocks, families = dict(own.stats.family.blocks), dict(own.family.families)  # type: ignore[attr-defined]
    reasons = list(own.reasons)
    held = {name: key for key in blocks for name in key}
    for (key, family), why in zip(other.family.families.items(), other.reasons):  # type: ignore[attr-defined]
        columns = as_key(key)
        if columns in blocks:
            continue
        for name in columns:
            if name in held:
                raise MergeError(
                    f"column {name!r} is in the block {', '.join(map(str, columns))!r} of one model and in another of "
                    "the other. Fit both with the same blocks: kinds={…}."
                )
        none = other.stats.family.blocks[columns].select("class", np.zeros(0, dtype=np.intp)).pruned()
        blocks[columns], families[key] = none.relabelled({"class": own.stats.axis}), family
        reasons.append(why)
    sums = replace(own.stats.family, blocks=blocks, experts=None)
    return replace(
        own,
        family=Product(families),
        stats=replace(own.stats, family=sums),
        reader=reader,
        reasons=tuple(reasons),
        calibration=None,  # it has fewer blocks
    )
