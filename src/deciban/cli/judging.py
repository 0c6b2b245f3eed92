"""Evaluations of whole files: rows of a model batch by batch, and the scores of another system."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from deciban.cli.arguments import column_named, unknown_name
from deciban.cli.output import Terminal
from deciban.cli.rows import label_values, schema_of, typed_whole
from deciban.errors import InputError, UsageError, shortlist
from deciban.evaluate import Evaluation
from deciban.evidence.scores import UNITS
from deciban.read.batches import Batch, Rows
from deciban.read.columns import Column
from deciban.read.files import open_source
from deciban.read.reservoir import Reservoir
from deciban.read.schema import Schema
from deciban.read.source import Source
from deciban.read.tables import Table
from deciban.report.findings import evaluate_learnt, evaluated, is_learnt, joined
from deciban.statistics import Array

if TYPE_CHECKING:
    from deciban.estimators.classifier import GenerativeClassifier

TARGET_VALUES = ("1", "true", "yes", "y", "t", "target", "same", "h1")  # recognised without --positive


def evaluate_rows(
    clf: GenerativeClassifier,
    source: Source,
    label: str,
    learnt: bool,
    groups: str | None = None,
    sample: Reservoir | None = None,
    time: str | None = None,
    warn: Callable[[str], None] | None = None,
    **options: Any,
) -> Evaluation:
    """`clf.evaluate` over all rows of a source, some of which are put into `sample`.

    Rows of a group may be anywhere, so with groups or time all rows are read first. `warn` is called with a text if the
    ledger holds rows that are judged as new.
    """
    if groups is not None or time is not None:
        by = {"groups": groups, "time": time}
        for name in filter(None, by.values()):
            column_named(name, source.columns, source.name)
        typed, given = typed_whole(clf, source)
        values: dict[str, Any] = {key: None if name is None else _values(given, name) for key, name in by.items()}
        return clf.evaluate(typed, label_values(clf, given, label), learnt=learnt, **values, **options)
    batches = _batches(clf, source, label, sample)
    if learnt:
        return evaluate_learnt(clf, batches, options)
    options.pop("progress", None)
    first = next(batches)
    if warn is not None and is_learnt(clf, first):
        warn(f"{source.name}: the model learnt these rows, so that these figures are too good. Add --learnt.")
    return joined([evaluated(clf, batch, options) for batch in chain((first,), batches)])


def evaluate_just_learnt(
    clf: GenerativeClassifier, source: Source, label: str, sample: Reservoir, **options: Any
) -> Evaluation:
    """`evaluate_rows` of rows that a fit has just read: of many, only those that are judged are checked."""
    return evaluate_learnt(clf, _batches(clf, source, label, sample), options, only_judged=True)


def _batches(clf: GenerativeClassifier, source: Source, label: str, sample: Reservoir | None) -> Iterator[Batch]:
    schema = replace(schema_of(clf), label=label)
    for batch in Rows(source, label, None, lambda table, name: schema).batches():
        if sample is not None:
            sample.add(batch.table, batch.labels, None)
        yield batch


def _values(given: Table, name: str) -> Array:
    """The values of a column: numbers where all are, else text; dates as ISO 8601 are in order as text."""
    values = np.asarray(given.data[name].to_list(), dtype=object)
    try:
        return values.astype(float)
    except (TypeError, ValueError):
        return values.astype(str)


def evaluate_scores(path: str, llr: str, target: str, unit: str, positive: str | None, **options: Any) -> Evaluation:
    """Evaluate the llrs in a file, two classes: target and not."""
    if unit not in UNITS:
        raise UsageError(f"--unit {unit!r} is not one of {', '.join(UNITS)}.")
    source = open_source(path, **options)
    for name in (llr, target):
        column_named(name, source.columns, source.name)
    schema = Schema((Column(llr, "number", "an llr"),), target)
    ratios, labels = [], []
    for batch in source.batches():
        values = schema.apply(batch).pick([0])[:, 0]
        missing = np.flatnonzero(np.isnan(values))
        if len(missing):
            message, remedy = f"column {llr!r} is empty.", "Drop the row, or give its llr."
            with batch.located():
                raise InputError(message, row=int(missing[0]), columns=[llr], remedy=remedy)
        ratios.append(values)
        labels.append(np.asarray(schema.labels(batch)))
    ratio, label = np.concatenate(ratios) / UNITS[unit], np.concatenate(labels)
    h1, h0 = _target_and_other(sorted(set(label.tolist())), positive, target)
    return Evaluation(np.column_stack([np.zeros(len(ratio)), ratio]), (label == h1).astype(int), (h0, h1))


def _target_and_other(values: list[Any], positive: str | None, column: str) -> tuple[str, str]:
    """The value of the target column that means target, and the other one."""
    if len(values) != 2:
        names = shortlist([repr(value) for value in values])
        raise InputError(
            f"column {column!r} holds {len(values)} different values ({names}). A target column needs two, such as 1 "
            "and 0."
        )
    if positive is None:
        likely = [value for value in values if str(value).lower() in TARGET_VALUES]
        if len(likely) != 1:
            raise UsageError(
                f"column {column!r} holds {values[0]!r} and {values[1]!r}: name the one that means target with "
                "--positive."
            )
        positive = str(likely[0])
    elif positive not in values:
        raise unknown_name(positive, values, "value", f"column {column!r}")
    return positive, next(str(value) for value in values if value != positive)


# -- thresholds --------------------------------------------------------------------------------------------------------
COST_RATIOS = (0.01, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 100.0)  # cost of a miss over that of a false alarm


class Threshold(NamedTuple):
    """What happens at the threshold of least expected cost, for one ratio of costs."""

    cost_ratio: float  # cost of a miss over that of a false alarm
    decibans: float  # evidence from which on the class is decided
    probability: float  # the same as a probability, at the prior
    missed: float  # share of the rows of the class
    false_alarms: float  # share of the other rows
    cost: float  # expected cost a row at the prior; a false alarm costs 1
    cost_of_prior: float  # without the evidence


def threshold_table(evaluation: Evaluation) -> list[Threshold]:
    """The thresholds of several ratios of costs, for two classes; the second is the one to detect."""
    if len(evaluation.classes) != 2:
        raise UsageError(f"--thresholds is for two classes, and there are {len(evaluation.classes)}.")
    ratio, is_second = evaluation.scores()
    prior = float(np.atleast_2d(evaluation.prior).mean(axis=0)[1])
    if not 0 < prior < 1:
        raise UsageError(f"--thresholds needs a prior between 0 and 1, and it is {prior:g}.")
    found = []
    for cost in COST_RATIOS:
        threshold = float(np.log((1 - prior) / prior / cost))
        missed, alarms = float((ratio[is_second] < threshold).mean()), float((ratio[~is_second] >= threshold).mean())
        expected = prior * cost * missed + (1 - prior) * alarms
        alone = min(prior * cost, 1 - prior)
        found.append(Threshold(cost, UNITS["decibans"] * threshold, 1 / (1 + cost), missed, alarms, expected, alone))
    return found


def show_thresholds(terminal: Terminal, evaluation: Evaluation, table: list[Threshold]) -> None:
    """Print the thresholds as a table."""
    first, second = evaluation.classes
    terminal.heading(f'Thresholds for "{second}": decide it from this evidence or probability on')
    rows = [
        (
            f"{line.cost_ratio:g}",
            f"{round(line.decibans, 1) + 0.0:+.1f}".replace("-", "−"),
            f"{line.probability:.3f}",
            f"{line.missed:.1%}",
            f"{line.false_alarms:.1%}",
            f"{line.cost:.4f}",
            f"{line.cost_of_prior:.4f}",
        )
        for line in table
    ]
    heads = ("miss costs", "dban", "P", "missed", "false alarms", "cost a row", "prior alone")
    terminal.table(heads, rows, tuple(range(7)))
    terminal.say(f'a miss: a "{second}" row decided "{first}"; a false alarm costs 1')
