"""The pile of unsure rows: rows without a label, of which the least certain is offered to be taught next.

Rows are scored again after every lesson. Those that have become certain stay, in case a later lesson makes them
uncertain again, until the pile is full; then the most certain ones go.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from json import dumps
from typing import Any

import numpy as np

from deciban.errors import DecibanError
from deciban.model.predictor import Predictor
from deciban.model.row_reader import Row
from deciban.read.batches import Batch
from deciban.service.answers import PLAIN, Setting, predictions, scores
from deciban.service.published import Published
from deciban.statistics import Array

MOST_ROWS = 10_000
MOST_BYTES = 64 * 2**20
MOST_LESSONS = 4096  # more lessons than this are not counted


@dataclass(frozen=True, eq=False)
class Pile:
    """Rows with their entropy under one version of the model."""

    rows: tuple[Row, ...] = ()
    keys: tuple[str, ...] = ()  # the rows as text
    entropy: Array | None = None  # (n,) in nats; None if it is not computed yet
    version: int = -1


class UnsureRows:
    """The pile of a service; its methods may be called from any thread."""

    def __init__(self) -> None:
        self._pile = Pile()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._pile.rows)

    def add(self, rows: Sequence[Row], published: Published) -> int:
        """Add rows that are not in the pile, and return how many there are now."""
        with self._lock:
            pile = self._pile
            held = set(pile.keys)
            kept = map(published.reader.kept, rows)
            new = {key: row for row in kept if (key := _key(row)) not in held}
            self._pile = Pile((*pile.rows, *new.values()), (*pile.keys, *new))
            if len(self._pile.rows) > MOST_ROWS or sum(map(len, self._pile.keys)) > MOST_BYTES:
                self._pile = _reduced(_scored(self._pile, published))
            return len(self._pile.rows)

    def remove(self, rows: Sequence[Row]) -> None:
        """Remove rows, for example because they were taught."""
        gone = {_key(row) for row in rows}
        with self._lock:
            pile = self._pile
            kept = [at for at, key in enumerate(pile.keys) if key not in gone]
            if len(kept) < len(pile.keys):
                self._pile = _taken(pile, kept)

    def next(self, published: Published, most: int = 1) -> list[dict[str, Any]]:
        """Return the rows of greatest entropy, with their predictions."""
        with self._lock:
            if self._pile.version != published.version or self._pile.entropy is None:
                self._pile = _scored(self._pile, published)
            pile = self._pile
        if not pile.rows or pile.entropy is None:
            return []
        best = np.argsort(-pile.entropy, kind="stable")[:most].tolist()
        rows = [pile.rows[at] for at in best]
        answers = predictions(published, scores(published, rows, strict=False))
        return [{"row": row, **answer} for row, answer in zip(rows, answers)]


def _key(row: Row) -> str:
    return dumps(row, sort_keys=True, ensure_ascii=False)


def _scored(pile: Pile, published: Published) -> Pile:
    """Compute the entropy of the posterior of every row."""
    if not pile.rows:
        return replace(pile, version=published.version, entropy=np.zeros(0))
    setting = Setting.of(published, PLAIN)
    shown = setting.grouping.likelihood(scores(published, pile.rows, strict=False), setting.weight)
    joint = shown + setting.log_prior
    joint -= joint.max(axis=1, keepdims=True)
    p = np.exp(joint)
    total = p.sum(axis=1)
    terms = np.where(p > 0, p * np.where(p > 0, joint, 0.0), 0.0).sum(axis=1)
    return replace(pile, version=published.version, entropy=np.log(total) - terms / total)


def _reduced(pile: Pile) -> Pile:
    """Return the less certain half of a pile that is full."""
    order = np.argsort(-np.asarray(pile.entropy), kind="stable")[: max(1, MOST_ROWS // 2)]
    kept, size = [], 0
    for at in order.tolist():
        size += len(pile.keys[at])
        if size > MOST_BYTES // 2:
            break
        kept.append(at)
    return _taken(pile, sorted(kept))


def _taken(pile: Pile, kept: list[int]) -> Pile:
    entropy = None if pile.entropy is None else pile.entropy[kept]
    return Pile(tuple(pile.rows[at] for at in kept), tuple(pile.keys[at] for at in kept), entropy, pile.version)


def lessons_to_change(published: Published, row: Row, name: str) -> int | None:
    """Return how many lessons of this row under a class would make it the prediction; None if too many or none.

    The row is learnt with growing weight on a copy of the model, and the smallest whole weight is found by bisection.
    """
    model, reader = replace(published.model, ledger=None), published.reader
    table = reader.table([row], strict=False)
    label = published.names.label(name, model.classes)
    own = next((each for each in model.classes if str(each) == label), None)
    if own is None:
        return None

    def changes(weight: int) -> bool:
        labels = np.array([own], dtype=np.int64 if isinstance(own, int) else object)
        taught = model.learn(model.lesson(Batch(table, labels, np.array([float(weight)]))))
        later = replace(published, predictor=Predictor(taught))
        found = predictions(later, later.predictor.scores(taught.encode(table)))
        return found[0]["prediction"] == name

    try:
        if predictions(published, scores(published, [row], strict=False))[0]["prediction"] == name:
            return 0
        high = 1
        while not changes(high):
            high *= 4
            if high > MOST_LESSONS:
                return None
        low = high // 4
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if changes(middle) else (middle, high)
    except DecibanError:
        return None
    return high
