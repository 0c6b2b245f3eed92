"""Learning and taking back: every change of a model is a sum."""

from __future__ import annotations

from copy import copy
from itertools import chain
from typing import Any, Self

import numpy as np

from deciban.conventions import check_is_fitted
from deciban.errors import HyperparameterError, InputError, NotLearntError
from deciban.estimators.merging import Merging
from deciban.estimators.reading import members_of
from deciban.families.names import brief
from deciban.families.product import Product
from deciban.families.protocol import Density, check_rule
from deciban.model import choose as auto
from deciban.model import model
from deciban.model.choose import needs_every_row
from deciban.model.prequential import Prequential
from deciban.model.stream import Summing
from deciban.read.batches import Batch, Rows, together
from deciban.read.files import is_place
from deciban.read.memory import hand_back
from deciban.read.reservoir import Reservoir
from deciban.statistics import Members


class Learning(Merging):
    """What a classifier can do with rows: + − ·.

    X is an array, a sparse matrix, a frame, or a place to read rows from: the path of a file or folder, or a source. y
    is one label a row, or the name of the column that holds them.
    """

    prequential_: Prequential | None = None  # how well batches were foretold before they were learnt

    # -- learning ---------------------------------------------------------------------------------------------------
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from nothing: choose what is open from the first rows, freeze it, and sum over all."""
        return self._fit(X, y, sample_weight, self.classes)

    def learn(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Add rows; new classes may arrive. The first call is `fit`.

        A model that calibrates itself scores each batch before it learns it: `prequential_` is the running log loss.
        """
        if not hasattr(self, "stats_"):
            return self.fit(X, y, sample_weight)
        after = copy(self)  # nothing has changed if a batch is refused
        for batch in self._rows(X, y, sample_weight).batches():
            with batch.located():
                block, members = after._taken(batch)
                after.prequential_ = after._foretold(block, batch)
                sums = model.collect(self.family_, block, members, self.columns_)
                after._set(after.stats_ + sums)._keep(after._noted(after.ledger_, batch, self.columns_))
        self.prequential_ = after.prequential_
        return self._set(after.stats_)._keep(after.ledger_)

    def _foretold(self, block: Any, batch: Batch) -> Prequential | None:
        """The running log loss with a batch that is not learnt yet; None for models that do not keep one."""
        return None

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """scikit-learn's name for `learn`; `classes` declares them at the first call."""
        if not hasattr(self, "stats_"):
            return self._fit(X, y, sample_weight, self.classes if classes is None else classes)
        return self.learn(X, y, sample_weight)

    def unlearn(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Take rows back, as if they had never been learnt; refused where the ledger or the sums show otherwise."""
        check_is_fitted(self)
        X, y = self._labelled(X, y)
        table = self._table(X)
        ledger, weight = self._struck(table, y, sample_weight)
        self._set(self.stats_.without(self._sums(Rows(table, y, weight).whole()), NotLearntError))._keep(ledger)
        self.unlearnt_ = True
        return self

    def correct(self, X: Any, was: Any, now: Any, sample_weight: Any = None) -> Self:
        """Move rows from one label to another."""
        check_is_fitted(self)
        rows, was = self._labelled(X, was)
        _, now = self._labelled(X, now)
        table = self._table(rows)
        ledger, weight = self._struck(table, was, sample_weight, now)
        less, more = (self._sums(Rows(table, labels, weight).whole()) for labels in (was, now))
        return self._set((self.stats_ + more).without(less, NotLearntError))._keep(ledger)

    def decay(self, factor: float) -> Self:
        """Forget: what was learnt so far counts `factor` times."""
        check_is_fitted(self)
        if not 0 < factor <= 1:
            raise HyperparameterError(f"decay({factor}): the factor must be > 0 and at most 1.")
        self._set(self.stats_ * factor)._keep(None if self.ledger_ is None else self.ledger_.decay(factor))
        self.decayed_ = self.decayed_ or factor < 1
        return self

    # -- other readings of the same sums ------------------------------------------------------------------------------
    def reestimate(self, *, rule: Any = None, classes: Any = None, columns: Any = None, **hyper: Any) -> Self:
        """Another model from the same sums, without data: rule, classes, columns, or any field of the family."""
        check_is_fitted(self)
        other = copy(self)
        other.calibration_ = None  # it belongs to the densities as they were
        if rule is not None:
            check_rule(rule)
            other.rule = rule
        stats = self.stats_
        if hyper:
            other.family_ = self.family_.rewritten(**hyper).choose(stats.family, None, other.rule)
        if classes is not None:
            place = {name: at for at, name in enumerate(stats.classes)}
            unknown = [name for name in classes if name not in place]
            if unknown:
                raise InputError(f"no such class: {unknown}; the model knows {list(place)}.")
            stats = stats.select("class", np.array([place[name] for name in classes], dtype=np.intp))
        if columns is not None:
            stats = other._select_columns(stats, columns)
            other.ledger_ = None  # it knows whole rows only
        return other._set(stats, eager=True)

    def rechoose(self, X: Any = None, y: Any = None, sample_weight: Any = None) -> Self:
        """Take the frozen choices anew from the current statistics; a structure chosen by leave-one-out needs rows."""
        check_is_fitted(self)
        asked = self.asked_.summed_as(self.family_)
        if X is None:
            self.family_ = asked.settled(self.family_).choose(self.stats_.family, None, self.rule)
        else:
            block, members = self._encoded(X, y, sample_weight)
            asked = model.chosen(asked, block, members, self.rule)
            self.family_ = asked.choose(self.stats_.family, (block, members), self.rule)
        self.unlearnt_ = False
        return self._set(self.stats_)

    # -- the machinery ----------------------------------------------------------------------------------------------
    def _fit(self, X: Any, y: Any, sample_weight: Any, declared: Any, blocks: bool = True) -> Self:
        """`blocks`: numbers may be one block; should a gap come after the first rows, there is none, from the start."""
        check_rule(self.rule)
        rows = Rows(X, y, sample_weight, auto.reader(self.families, self.kinds, is_place(X)))
        batches: Any = rows.batches(parts=True)
        first = next(batches)
        with first.located():
            again = blocks and not getattr(rows.X, "stdin", False)
            family, reasons = auto.resolve(self.families, first, rows.schema, self.kinds, self.rule, again)
            if rows.schema is not None and needs_every_row(family):
                first, batches = together([first, *batches]), iter(())
            block, members = members_of(family, first, None, declared)
        method, kept, columns = self._calibrator(family), Reservoir(), first.table.columns
        second = next(batches, None)
        with first.located():
            if second is None:
                frozen, stats = model.fit(family, block, members, columns, self.rule)
            else:
                summing = Summing(family, block, members, columns, self.rule)
            ledger = self._first_noted(first.table, first.labels, first.weight)
        if second is not None:
            block = None  # room for the rest
            if method is not None:
                kept.add(first.table, first.labels, first.weight)
            first = None
            for batch in chain([second], batches):
                if auto.gap_in_block(batch.table, reasons):
                    batches.close()
                    return self._fit(X, y, sample_weight, declared, blocks=False)
                with batch.located():
                    summing.add(*members_of(summing.family, batch, summing.known))
                    ledger = self._noted(ledger, batch, columns)
                if method is not None:
                    kept.add(batch.table, batch.labels, batch.weight)
            frozen, stats = summing.family, summing.total()
            del summing
            hand_back()
            if method is not None:
                block, members = members_of(frozen, Batch(*kept.rows()), stats.family, stats.classes)
        density = model.estimate(frozen, stats, self.rule, columns)
        calibration = model.calibrate(method, frozen, density, stats, block, members, self.rule)
        self._note_columns(X, rows)
        self.columns_, self.asked_, self.family_, self.reasons_ = columns, family, frozen.finished(), reasons
        self.decayed_ = self.unlearnt_ = False
        self.prequential_ = None
        self._set(stats)._keep(ledger)
        self._density, self.calibration_ = density, calibration
        return self

    def _calibrator(self, family: Any) -> str | None:
        """The calibrator to fit: by "auto" as the family asks, and where deciban itself chose a mix of families."""
        if self.calibrate != "auto":
            return self.calibrate
        if needs_every_row(family):
            return None  # nothing can be left out exactly
        if not (isinstance(self.families, str) and isinstance(family, Product)):
            return family.calibration
        alone = len(family.families) == 1
        return next(iter(family.families.values())).calibration or "offsets" if alone else "blocks"

    def _encoded(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Members]:
        return members_of(self.family_, self._rows(X, y, sample_weight).whole(), self.stats_.family)

    def _taken(self, batch: Batch) -> tuple[Any, Members]:
        return members_of(self.family_, batch, self.stats_.family)

    def _sums(self, batch: Batch) -> model.ModelStats:
        return model.collect(self.family_, *self._taken(batch), self.columns_)

    def _set(self, stats: model.ModelStats, eager: bool = False) -> Self:
        if not np.isfinite(stats.rows).all():
            raise InputError("the weights are so large that their sum overflows. Rescale them.")
        self.stats_ = stats
        self.classes_ = _array(stats.classes)
        self._density = model.estimate(self.family_, stats, self.rule, self.columns_) if eager else None
        return self

    def _select_columns(self, stats: model.ModelStats, columns: Any) -> model.ModelStats:
        place = {name: at for at, name in enumerate(self.columns_)}
        unknown = [name for name in columns if name not in place]
        if unknown:
            raise InputError(f"no such column: {unknown}; the model knows {list(place)}.")
        at = np.array([place[name] for name in columns], dtype=np.intp)
        self.family_, sums = self.family_.subset(stats.family, at, self.columns_)
        self.columns_ = given = tuple(columns) if isinstance(columns[0], str) else range(len(columns))
        if self.schema_ is not None:
            self.schema_ = self.schema_.select(columns)
            given = self.schema_.names
        self.n_features_in_ = len(given)
        if hasattr(self, "feature_names_in_"):
            self.feature_names_in_ = np.array(given, dtype=object)
        return model.ModelStats(stats.labels, stats.rows, sums)

    @property
    def density(self) -> Density:
        """The densities of all classes under the rule, estimated when first needed after a change."""
        if self._density is None:
            self._density = model.estimate(self.family_, self.stats_, self.rule, self.columns_)
        return self._density

    @property
    def families_(self) -> dict[str, str]:
        """For each block what models it, and why."""
        families = self.family_.families.values() if isinstance(self.family_, Product) else [self.family_]
        return {name: f"{brief(family)}: {why}" for (name, why), family in zip(self.reasons_.items(), families)}


def _array(names: tuple[Any, ...]) -> Any:
    return np.array(names) if names else np.array([], dtype=object)
