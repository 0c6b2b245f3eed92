"""A trial of a model that was read from a file: before `load` returns it, it answers and learns made-up rows.

The other checks look for known faults: types, shapes, names, ranges. Numbers and names that are valid one by one may
still contradict each other in ways that no check covers. Therefore a small model is used once: it scores, explains,
learns, leaves out and unlearns rows of values that it knows, and is merged with itself. A `DecibanError` is a valid
answer to such rows and is ignored. Any other error, such as a `TypeError` or an `IndexError`, shows that parts of it
do not belong together: the file is refused, with that error as the cause of the `ModelFileError`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy, deepcopy
from dataclasses import is_dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.sparse import csr_array

from deciban.errors import Argument, DecibanError, ModelFileError, Remedy
from deciban.families.bernoulli import SparseBernoulliStats
from deciban.families.fitted import number_of_columns
from deciban.families.fixed import Released
from deciban.families.product import Product, ProductStats, blocks_of
from deciban.families.protocol import Density
from deciban.model.explain import explain
from deciban.model.judge import leave_out
from deciban.model.ledger import Key
from deciban.model.model import Model
from deciban.model.predictor import Predictor
from deciban.read.batches import Batch
from deciban.read.tables import Table
from deciban.statistics import Axis, Ragged, Stats
from deciban.store.checks import MISMATCH, dataclasses_of, sizes

ROWS = 2  # of a trial
# raised where parts do not belong together; others, such as MemoryError and OSError, are not caught
CONTRADICTIONS = (*MISMATCH, LookupError, AssertionError, NotImplementedError, RecursionError)
TEXT = "1"  # a document for models of texts without words, and a cell of a file

Use = Callable[[], object]
ANSWERS = ("predict", "predict_proba", "transform", "log_density", "score_samples", "perplexity")  # methods, of rows


def tried(model: Any) -> Any:
    """Use a model once and return it; raise ModelFileError if a use raises an error that is not a DecibanError."""
    with np.errstate(all="ignore"):
        for use in _uses(model):
            _guarded(use)
    return model


def _guarded(use: Use) -> Any:
    """Return the result of a use, None where deciban refuses it."""
    try:
        return use()
    except ModelFileError:
        raise
    except (
        DecibanError,
        ImportError,
        Warning,
    ):  # a valid answer; a missing library; a warning that was turned into an error
        return None
    except CONTRADICTIONS as error:
        raise ModelFileError(
            f"the file is inconsistent: a trial of its model ended with {type(error).__name__} ({str(error)[:200]}).",
            remedy=Remedy(
                "Restore a copy, or fit the model again; if you trust the file, load it with ",
                Argument("verify", False),
                ".",
            ),
        ) from error


def _uses(model: Any) -> Iterator[Use]:
    """Yield what is done with a model, step by step; a step may need the results of those before it."""
    yield lambda: repr(model)
    if isinstance(getattr(model, "predictor_", None), Predictor):
        yield from _of_classifier(model)
    elif isinstance(model, Density):
        yield lambda: model.log_density(model.encode(np.ones((ROWS, sizes(model).get("D", 1))), ()))
    else:
        yield from _of_estimator(model)


# -- classifiers -------------------------------------------------------------------------------------------------------
def _of_classifier(clf: Any) -> Iterator[Use]:
    predictor: Predictor = clf.predictor_
    model = predictor.model
    table: Table | None = _guarded(lambda: _table(model))
    rows = None if table is None else _guarded(lambda: model.encode(table))
    if table is None or rows is None:
        return
    schema = model.reader.schema
    if schema is not None:
        yield lambda: schema.apply(Table.of(pa.table({name: [TEXT] * ROWS for name in schema.names})))
    yield lambda: clf.answer("predict", predictor.scores(rows), clf.log_prior())
    yield lambda: predictor.density.log_base(rows)
    pair = None if len(model.classes) > 2 else (len(model.classes) - 1, 0)
    yield lambda: repr(explain(predictor, table, pair, clf.log_prior()))
    secret, batch = Key.of(clf.ledger or None), Batch(table, clf.classes_[: len(table)])
    learnt: Model | None = _guarded(lambda: model.learn(model.lesson(batch), secret))
    if learnt is not None:
        later = Predictor(learnt)
        yield lambda: later.scores(learnt.encode(table))
        yield lambda: leave_out(later, batch, key=secret)
        yield lambda: learnt.unlearn(batch, secret).density()
        yield lambda: model.merge(model).density()


def _table(model: Model) -> Table:
    """Return rows of values that a model knows, as a table with its columns."""
    columns = model.reader.columns
    cells = np.ones(len(columns), dtype=object)
    for at, (family, sums) in zip(model.positions, blocks_of(model.family, model.stats.family)):
        for j, value in zip(at, _known(family, sums, [columns[j] for j in at])):
            cells[j] = value
    rows = np.tile(cells, (min(len(model.classes), ROWS), 1))
    if len(columns) == 1 and "text" in model.family.accepts:
        return Table.of(rows[:, 0].tolist())
    if isinstance(model.stats.family, SparseBernoulliStats):
        return replace(Table.of(csr_array(rows.astype(float))), columns=columns)
    return Table(rows, columns, all(isinstance(name, str) for name in columns))


def _known(family: Any, stats: Any, columns: Sequence[Any]) -> list[Any]:
    """Return a value for each column of a family: the first word or category that its sums know, else 1."""
    for sums in dataclasses_of(family.names if isinstance(family, Released) else stats):
        if isinstance(sums, ProductStats):  # of a mixture
            found = {name: value for key, part in sums.blocks.items() for name, value in zip(key, _first(part, key))}
            return [found.get(name, 1.0) for name in columns]
        if isinstance(sums, Stats) and not {"word", "combination", "category"}.isdisjoint(sums.labels):
            return _first(sums, columns)
    return [TEXT if "text" in family.accepts else 1.0] * len(columns)


def _first(stats: Stats, columns: Sequence[Any]) -> list[Any]:
    """Return the first names along an axis of words, combinations or categories; numbers stand for themselves."""
    for axis in stats.labels.values():
        names = [part.names for part in axis.parts] if isinstance(axis, Ragged) else [axis.names]
        if axis is not stats.labels.get("class") and len(names) == len(columns):
            return [each[0] if len(each) and type(each) is not range else 1.0 for each in names]
        if isinstance(axis, Axis) and axis.size and type(axis.names[0]) is tuple:
            return list(axis.names[0])
    return [1.0] * len(columns)


# -- other models ------------------------------------------------------------------------------------------------------
def _of_estimator(model: Any) -> Iterator[Use]:
    if hasattr(model, "feature_names_in_"):
        model = copy(model)
        vars(model).pop("feature_names_in_", None)  # the rows of the trial have no names, of which scikit-learn warns
    rows = _guarded(lambda: _rows(model))
    if rows is None:
        return
    lesson = (rows, np.asarray(model.classes_)[:ROWS]) if hasattr(model, "classes_") else (rows,)
    for name in ANSWERS:
        if hasattr(model, name) and not (name == "transform" and getattr(model, "solver", None) == "lsqr"):
            yield partial(getattr(model, name), rows)
    learn = next((name for name in ("learn", "partial_fit") if hasattr(model, name)), None)
    learnt = None if learn is None else _guarded(lambda: getattr(deepcopy(model), learn)(*lesson))
    learnt = model if learnt is None else learnt  # a model that cannot learn the row may still leave it out
    for name in ("leave_one_out", "unlearn"):
        if hasattr(learnt, name):
            yield partial(getattr(deepcopy(learnt), name), *lesson)
    if hasattr(model, "__add__"):
        yield lambda: model + model
    if is_dataclass(getattr(model, "fitted_", None)):  # that of a mixture
        yield from _of_estimator(model.fitted_)


def _rows(model: Any) -> Any:
    """Return rows for a model: values that it knows where it is a family with its sums, else ones."""
    held: Any = model
    if is_dataclass(model) and hasattr(model, "family"):  # a family that was fitted without classes, or a mixture
        return _rows_of(held.family, held.stats)
    if hasattr(model, "n_features_in_"):
        return np.ones((ROWS, model.n_features_in_))
    return [TEXT] * ROWS


def _rows_of(family: Any, stats: Any) -> Any:
    sums = family.names if isinstance(family, Released) else stats
    columns = [name for key in getattr(family, "keys", ()) for name in key] or range(number_of_columns(sums) or 1)
    cells: Any = np.array(_known(family, stats, columns), dtype=object)
    rows = np.tile(cells, (ROWS, 1))
    if isinstance(family, Product):
        return Table(rows, columns, all(isinstance(name, str) for name in columns))
    return rows[:, 0].tolist() if "text" in family.accepts else rows
