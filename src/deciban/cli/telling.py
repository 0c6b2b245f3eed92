"""Which features tell the classes apart, by what they say of rows that were learnt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from deciban.read.source import Source
from deciban.read.tables import HEAD
from deciban.score import convert
from deciban.statistics import Array

MOST_ROWS = 400  # of a class that are looked at
SURE = 0.99  # right alone in this share of the rows: too good to be true
ONE_SIDED = 0.8  # share of the evidence that goes to one class
ENOUGH = 50  # rows from which that can be said


@dataclass(frozen=True)
class Telling:
    """What a feature says on average."""

    feature: str
    nats: float  # mean evidence a row, for its class over the nearest rival
    right: float  # share of the rows in which it alone favours the right class
    rows: int
    side: str | None = None  # the class it speaks for, where it is one

    def to_dict(self) -> dict[str, Any]:
        """For a program."""
        decibans = convert(self.nats, "decibans")
        return {"feature": self.feature, "decibans": decibans, "right": self.right, "for": self.side}


def most_telling(clf: Any, source: Source) -> list[Telling]:
    """Features by the evidence that they bring, most first; judged on some of the first rows of each class."""
    if len(clf.stats_.classes) < 2:
        return []
    classes = clf.stats_.classes
    sums: dict[str, Array] = {}  # evidence of each class's rows, then how many were right
    seen = 0
    for k, rows in _by_class(clf, source):
        told = clf.explain(rows, classes[k], classes[_rival(clf, rows, k)])
        n = len(told)
        seen += n
        finite = np.clip(told.parts, -50, 50)  # what is certain must not hide the rest
        for name, part in zip(told.names, finite.T):
            total = sums.setdefault(name, np.zeros(len(classes) + 1))
            total[k] += part.sum()
            total[-1] += (part > 0).sum()
    found = [
        Telling(name, float(total[:-1].sum() / seen), float(total[-1] / seen), seen, _side(total[:-1], classes))
        for name, total in sums.items()
    ]
    return sorted(found, key=lambda part: -abs(part.nats))


def _side(evidence: Array, classes: Sequence[Any]) -> str | None:
    """The class whose rows a feature speaks for, where it says next to nothing for the others."""
    best = int(evidence.argmax())
    return str(classes[best]) if evidence[best] > ONE_SIDED * np.abs(evidence).sum() else None


def giveaways(telling: list[Telling]) -> list[Telling]:
    """Features that need no company."""
    return [part for part in telling if part.right >= SURE and part.rows >= ENOUGH]


def _by_class(clf: Any, source: Source) -> Iterator[tuple[int, Any]]:
    """Some of the first rows of each class."""
    schema = clf.schema_
    table = next(source.batches(HEAD))
    bad: list[tuple[int, str]] = []
    typed = schema.apply(table, bad)
    from deciban.read.labels import labelled_rows

    kept = np.setdiff1d(labelled_rows(table, str(schema.label)), [row for row, _ in bad])
    labels = np.asarray(schema.labels(table.take(kept)))
    for k, name in enumerate(clf.stats_.classes):
        rows = kept[np.flatnonzero(labels == name)[:MOST_ROWS]]
        if len(rows):
            yield k, typed.take(rows)


def _rival(clf: Any, rows: Any, k: int) -> int:
    """The class that these rows are most likely to be taken for."""
    mean = clf.predict_proba(rows).mean(axis=0)
    mean[k] = -1.0
    return int(mean.argmax())
