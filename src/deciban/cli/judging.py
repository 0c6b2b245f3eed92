"""A whole file judged, batch by batch: the evaluation of all its rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from deciban.cli.models import column_named, nearest
from deciban.cli.rows import schema_of
from deciban.errors import InputError, UsageError, shortlist
from deciban.evaluate import Evaluation
from deciban.evidence.scores import UNITS
from deciban.read.columns import Column
from deciban.read.files import open_source
from deciban.read.schema import Schema
from deciban.read.source import Source


def judged(clf: Any, source: Source, label: str, learnt: bool, groups: str | None = None, **options: Any) -> Evaluation:
    """What `clf.evaluate` says of every row of a source; groups may lie anywhere in it, so all rows are read first."""
    if groups is not None:
        from deciban.cli.rows import label_values, typed_whole

        column_named(groups, source.columns, source.name)
        typed, given = typed_whole(clf, source)
        each = np.asarray(given.data[groups].to_list(), dtype=str)
        return clf.evaluate(typed, label_values(clf, given, label), learnt=learnt, groups=each, **options)
    return joined_evaluation(list(_parts(clf, source, label, learnt, options)))


def _parts(clf: Any, source: Source, label: str, learnt: bool, options: dict[str, Any]) -> Iterator[Evaluation]:
    from dataclasses import replace

    from deciban.read.batches import Rows

    schema = replace(schema_of(clf), label=label)
    for batch in Rows(source, label, None, lambda table, name: schema).batches():
        with batch.located():
            yield clf.evaluate(batch.table, batch.labels, learnt=learnt, **options)


def joined_evaluation(parts: list[Evaluation]) -> Evaluation:
    """The evaluation of all rows, from those of some each."""
    first = parts[0]
    if len(parts) == 1:
        return first
    prior = first.prior
    if np.ndim(prior) == 2:
        prior = np.concatenate([part.prior for part in parts])
    return Evaluation(
        np.concatenate([part.log_likelihood for part in parts]),
        np.concatenate([part.codes for part in parts]),
        first.classes,
        prior,
        first.cost,
        first.learnt,
        first.selected_on,
    )


# -- scores ----------
# The scores of any other system, judged: `deciban evaluate --scores file.csv --llr COL --target COL`.

YES = ("1", "true", "yes", "y", "t", "target", "same", "h1")


def judged_scores(path: str, llr: str, target: str, unit: str, positive: str | None, **options: Any) -> Evaluation:
    """Llrs of a file in some unit, and which rows are targets, as an evaluation of two classes."""
    if unit not in UNITS:
        raise UsageError(f"--unit {unit!r} is not one of {', '.join(UNITS)}.")
    source = open_source(path, **options)
    for name in (llr, target):
        column_named(name, source.columns, source.name)
    schema = Schema((Column(llr, "number", "an llr"),), target)
    ratios: list[Any] = []
    labels: list[Any] = []
    for batch in source.batches():
        values, row = schema.apply(batch).pick([0])[:, 0], np.asarray(schema.labels(batch))
        if np.isnan(values).any():
            gap = int(np.flatnonzero(np.isnan(values))[0])
            what = f"column {llr!r} is empty."
            with batch.located():
                raise InputError(what, row=gap, columns=[llr], remedy="Drop the row, or give its llr.")
        ratios.append(values)
        labels.append(row)
    ratio, label = np.concatenate(ratios) / UNITS[unit], np.concatenate(labels)
    h1, h2 = _sides(label, positive, target)
    return Evaluation(np.column_stack([np.zeros(len(ratio)), ratio]), (label == h1).astype(int), (h2, h1))


def _sides(labels: Any, positive: str | None, column: str) -> tuple[str, str]:
    """The target's name, and the other's."""
    names = sorted(set(labels.tolist()))
    if len(names) != 2:
        raise InputError(
            f"column {column!r} holds {len(names)} different values ({shortlist(list(map(repr, names)))}); a target is "
            "or is not there, so it needs two, such as 1 and 0."
        )
    if positive is None:
        likely = [name for name in names if str(name).lower() in YES]
        if len(likely) != 1:
            raise UsageError(
                f"column {column!r} holds {names[0]!r} and {names[1]!r}: say which is the target, with --positive."
            )
        positive = str(likely[0])
    elif positive not in names:
        raise nearest(positive, names, "value", f"column {column!r}")
    return positive, next(str(name) for name in names if name != positive)
