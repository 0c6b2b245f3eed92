"""A whole file judged, batch by batch: the evaluation of all its rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from deciban.cli.names import column_named
from deciban.cli.rows import located, schema_of
from deciban.errors import NotLearntError
from deciban.evaluate import Evaluation
from deciban.read.source import Source


def judged(clf: Any, source: Source, label: str, learnt: bool, groups: str | None = None, **options: Any) -> Evaluation:
    """What `clf.evaluate` says of every row of a source; groups may lie anywhere in it, so all rows are read first."""
    if groups is not None:
        from deciban.cli.labelled import label_values, typed_whole

        column_named(groups, source.columns, source.name)
        typed, given = typed_whole(clf, source)
        each = np.asarray(given.data[groups].to_list(), dtype=str)
        return clf.evaluate(typed, label_values(clf, given, label), learnt=learnt, groups=each, **options)
    return joined_evaluation(list(_parts(clf, source, label, learnt, options)))


def _parts(clf: Any, source: Source, label: str, learnt: bool, options: dict[str, Any]) -> Iterator[Evaluation]:
    from dataclasses import replace

    from deciban.estimators.streaming import Rows

    schema = replace(schema_of(clf), label=label)
    start = 0
    for batch in Rows(source, label, None, lambda table, name: schema).batches():
        with batch.located():
            try:
                yield clf.evaluate(batch.table, batch.labels, learnt=learnt, **options)
            except NotLearntError as error:
                raise located(error, source, start) from None
        start += len(batch.table)


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
