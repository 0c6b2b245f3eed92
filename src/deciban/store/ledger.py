"""The ledger: which rows a model has learnt, as keyed hashes, and how much each has decayed since.

A multiset: a row learnt twice can be unlearnt twice, and no more. It never holds the rows themselves; but whoever has
the key, or a ledger without a key of its own, can test whether a row that they hold was learnt.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from deciban.errors import MergeError, NotLearntError
from deciban.statistics import Array
from deciban.store.rows import HASH, Key


@dataclass(frozen=True, eq=False, repr=False)
class Ledger:
    """Rows as hashes; a value: learning gives another one.

    >>> hashes = np.array([b"a" * 16, b"b" * 16, b"a" * 16])
    >>> ledger = Ledger.of("our secret").learn(hashes)
    >>> ledger
    Ledger(3 rows, key '071bf5dbc83e37cc')
    >>> ledger.decay(0.5).unlearn(hashes[:2])
    (Ledger(1 rows, key '071bf5dbc83e37cc'), array([0.5, 0.5]))
    """

    key_id: str
    rows: Array = field(
        default_factory=lambda: np.zeros((0, 16), np.uint8)
    )  # (m, 16)  hashes, in order; of one hash, the least decayed first
    level: Array = field(default_factory=lambda: np.zeros(0, np.int32))  # (m,)     which of `since`
    count: Array = field(default_factory=lambda: np.zeros(0, np.int64))  # (m,)     how often
    since: Array = field(default_factory=lambda: np.zeros(0, np.float64))  # (L,)     decay since learning, falling

    def __post_init__(self) -> None:
        m, L = len(self.rows), len(self.since)
        fits = self.rows.shape == (m, 16) and self.level.shape == self.count.shape == (m,) and self.since.shape == (L,)
        kinds = [array.dtype.str[1:] for array in (self.rows, self.level, self.count, self.since)]
        if not fits or kinds != ["u1", "i4", "i8", "f8"] or not isinstance(self.key_id, str):
            raise NotLearntError("this is not a ledger: its arrays do not belong together. Refit the model.")

    @classmethod
    def of(cls, key: Any = None) -> Ledger:
        """An empty ledger; without a key its hashes are no secret."""
        return cls(Key.of(key).id)

    def __len__(self) -> int:
        return int(self.count.sum())

    def learn(self, hashes: Array, since: Array | None = None) -> Ledger:
        """Add rows; `since` where they have decayed already."""
        each = np.ones(len(hashes)) if since is None else since
        return self._with(np.asarray(hashes, HASH), each, np.ones(len(hashes), np.int64))

    def unlearn(self, hashes: Array, numbers: Array | None = None) -> tuple[Ledger, Array]:
        """Take rows out, of equal ones the least decayed first, and say how much each has decayed.

        `numbers` is what errors call the rows.
        """
        names, batch = self._names(), np.asarray(hashes, HASH)
        found, which, wanted = np.unique(batch, return_inverse=True, return_counts=True)
        order = np.argsort(which, kind="stable")
        rank = np.empty(len(batch), np.int64)  # how many equal rows come before, in the batch
        rank[order] = np.arange(len(batch)) - np.repeat(np.cumsum(wanted) - wanted, wanted)
        before = np.concatenate([[0], np.cumsum(self.count)])
        first = np.searchsorted(names, found, side="left")
        there = before[np.searchsorted(names, found, side="right")] - before[first]
        short = np.flatnonzero(rank >= there[which])
        if len(short):
            self._refuse(
                int(short[0] if numbers is None else numbers[short[0]]), int(there[which][short[0]]), len(short)
            )
        entry = np.searchsorted(before, before[first][which] + rank, side="right") - 1
        left = self.count - np.bincount(entry, minlength=len(self.count))
        return replace(self, count=left)._tidy(), self.since[self.level[entry]]

    def _refuse(self, row: int, times: int, more: int) -> None:
        why = f"was learnt {times} times, and would be taken out once more" if times else "was never learnt"
        others = f", and {more - 1} more rows with it" if more > 1 else ""
        raise NotLearntError(
            f"row {row} {why} by this model (with this label and weight){others}. Nothing was changed: unlearn only "
            "rows that were learnt, with the labels and weights that they were learnt with."
        )

    def decay(self, factor: float) -> Ledger:
        """All rows so far count `factor` times."""
        faded = replace(self, since=self.since * factor)
        same = len(np.unique(faded.since)) == len(faded.since)
        return faded if same else Ledger(self.key_id)._joined(faded)

    def merge(self, other: Ledger) -> Ledger:
        """The rows of both."""
        if self.key_id != other.key_id:
            raise MergeError(
                f"the ledgers have different keys ({self.key_id} and {other.key_id}), so equal rows cannot be "
                "recognised. Fit both models with the same key."
            )
        return self._joined(other)

    # -- the machinery ---------------------------------------------------------------------------------------------
    def _joined(self, other: Ledger) -> Ledger:
        return self._with(other._names(), other.since[other.level], other.count)

    def _names(self) -> Array:
        return np.ascontiguousarray(self.rows).view(HASH).reshape(-1)

    def _with(self, names: Array, since: Array, count: Array) -> Ledger:
        """More rows, each in its place; those that are there already count more."""
        every = np.unique(np.concatenate([self.since, since]))[::-1]
        mine = _keys(self._names(), _level(every, self.since)[self.level] if len(self.level) else self.level)
        theirs, which = np.unique(_keys(names, _level(every, since)), return_inverse=True)
        more = np.bincount(which, count, len(theirs)).astype(np.int64)
        at = np.searchsorted(mine, theirs)
        known = mine[np.minimum(at, len(mine) - 1)] == theirs if len(mine) else np.zeros(len(theirs), bool)
        counts = self.count.copy()
        counts[at[known]] += more[known]
        keys = np.insert(mine, at[~known], theirs[~known])
        both = np.insert(counts, at[~known], more[~known])
        split = keys.view(np.uint8).reshape(-1, 20)
        level = np.ascontiguousarray(split[:, 16:]).view(">u4").reshape(-1).astype(np.int32)
        return Ledger(self.key_id, np.ascontiguousarray(split[:, :16]), level, both, every)._tidy()

    def _tidy(self) -> Ledger:
        """Without rows that are gone, and levels that nothing is at."""
        kept = self.count > 0
        used = np.unique(self.level[kept])
        if kept.all() and len(used) == len(self.since):
            return self
        level = np.searchsorted(used, self.level[kept]).astype(np.int32)
        return Ledger(self.key_id, self.rows[kept], level, self.count[kept], self.since[used])

    def __repr__(self) -> str:
        return f"Ledger({len(self):,} rows, key {self.key_id!r})"


def _level(every: Array, since: Array) -> Array:
    """Where numbers stand among falling ones."""
    return (len(every) - 1 - np.searchsorted(every[::-1], since)).astype(np.int32)


def _keys(names: Array, level: Array) -> Array:
    """Hash and level as one text of 20 bytes, in whose order both are."""
    made = np.empty((len(names), 20), np.uint8)
    made[:, :16] = np.ascontiguousarray(names).view(np.uint8).reshape(-1, 16)
    made[:, 16:] = np.ascontiguousarray(level.astype(">u4")).view(np.uint8).reshape(-1, 4)
    return made.view("S20").reshape(-1)
