"""Rows with their labels, whether a column holds them or somebody says what they all are."""

from __future__ import annotations

from typing import Any

import numpy as np

from deciban.cli.command import refuse_together
from deciban.cli.names import class_named
from deciban.cli.rows import label_column, schema_of, typed_batches
from deciban.read.source import Source
from deciban.read.tables import stacked
from deciban.read.typed import joined


def labelled(clf: Any, source: Source, label: str | None, constant: str | None, new: bool = False) -> tuple[Any, Any]:
    """What `learn` and `unlearn` take: a source and its column, or typed rows and one label for all."""
    refuse_together(label=label, **{"class": constant})
    if constant is None:
        return source, label_column(clf, source, label)
    typed, _ = typed_whole(clf, source)
    return typed, _all_of(clf, constant, len(typed), new)


def typed_whole(clf: Any, source: Source) -> tuple[Any, Any]:
    """All rows, as the model takes them and as they were read."""
    parts = list(typed_batches(source, clf))
    return joined([some.typed for some in parts]), stacked([some.given for some in parts])


def label_values(clf: Any, given: Any, name: str, new: bool = False) -> Any:
    """The labels that a column holds; or where there is no such column, that class for all rows."""
    from dataclasses import replace

    if name in given.columns:
        return replace(schema_of(clf), label=name).labels(given)
    return _all_of(clf, name, len(given), new)


def _all_of(clf: Any, name: str, n: int, new: bool) -> Any:
    """One label for all; a new one must be of the kind that the others are."""
    whole = schema_of(clf).whole
    if new and name not in map(str, clf.stats_.classes):
        label = int(name) if whole and name.lstrip("-").isdigit() else name
    else:
        label = class_named(name, clf.stats_.classes)
    return np.full(n, label, dtype=np.int64 if isinstance(label, int) else object)
