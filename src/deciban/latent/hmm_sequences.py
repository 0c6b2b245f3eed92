"""Sequences laid end to end: where each begins, how much it counts, and pieces of bounded size to work on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from deciban.errors import InputError, WeightError
from deciban.statistics import Array

PARTS = 16  # into which the groups are dealt, for as many threads at most; sums are added in their order
PART_ROWS = 2**15  # fewer rows are not worth a part of their own


@dataclass(frozen=True)
class Group:
    """Whole sequences that fit one piece, or one long sequence cut into several."""

    first: int  # the number of its first sequence
    ends: Array  # (B,) rows where its sequences end, counted from `pieces[0][0]`
    pieces: tuple[tuple[int, int], ...]  # consecutive (from, to) rows


@dataclass(frozen=True, eq=False)
class Sequences:
    """B sequences of n rows in all.

    >>> Sequences.of([3, 2], 5).begins
    array([0, 3])
    """

    ends: Array  # (B,)
    weight: Array  # (B,)

    @classmethod
    def of(cls, lengths: Any, n: int, weight: Any = None) -> Sequences:
        """Checked: lengths are at least 1 and sum to n; without lengths all rows are one sequence."""
        if n == 0:
            raise InputError("there are no rows: a sequence has at least one step.")
        each = np.asarray([n] if lengths is None else lengths)
        if each.ndim != 1 or each.dtype.kind not in "iu":
            raise InputError(f"lengths={lengths!r} must be whole numbers, one for each sequence.")
        if len(each) == 0 or each.min() < 1:
            empty = int(np.argmax(each < 1)) if len(each) else 0
            raise InputError(f"sequence {empty} is empty: every sequence has at least one step. Leave it out.")
        if each.sum() != n:
            raise InputError(f"lengths sum to {each.sum()}, but X has {n} rows. Give the length of every sequence.")
        return cls(np.cumsum(each, dtype=np.int64), _weights(weight, len(each)))

    @property
    def n(self) -> int:
        return int(self.ends[-1]) if len(self.ends) else 0

    @property
    def begins(self) -> Array:
        """(B,) the first row of each."""
        return np.r_[0, self.ends[:-1]]

    @property
    def lengths(self) -> Array:
        """(B,) how many rows each has."""
        return np.diff(self.ends, prepend=0)

    @property
    def weighted(self) -> bool:
        """Whether some sequence counts other than once."""
        return bool((self.weight != 1).any())

    def where(self, row: int) -> str:
        """A row in words: step 3 of sequence 7 (row 105)."""
        b = int(np.searchsorted(self.ends, row, side="right"))
        return f"step {row - int(self.begins[b])} of sequence {b} (row {row})"

    def head(self, most: int) -> Sequences:
        """The first sequences, cut off after this many rows."""
        if self.n <= most:
            return self
        count = int(np.searchsorted(self.ends, most)) + 1
        return Sequences(np.minimum(self.ends[:count], most), self.weight[:count])

    def parts(self, rows: int) -> list[list[Group]]:
        """Groups of pieces of at most so many rows, dealt into parts by position alone, whatever the threads."""
        groups = self._groups(rows)
        count = max(1, min(PARTS, self.n // PART_ROWS, len(groups)))
        cuts = np.linspace(0, self.n, count + 1)[1:-1]
        starts = np.searchsorted([group.pieces[0][0] for group in groups], cuts)
        edges = [0, *starts.tolist(), len(groups)]
        return [groups[a:b] for a, b in pairwise(edges) if b > a]

    def _groups(self, rows: int) -> list[Group]:
        if rows in self._kept:
            return self._kept[rows]
        groups, b, begin = [], 0, 0
        while b < len(self.ends):
            stop = max(b + 1, int(np.searchsorted(self.ends, begin + rows, side="right")))
            end = int(self.ends[stop - 1])
            cuts = [*range(begin, end, rows), end]
            groups.append(Group(b, self.ends[b:stop] - begin, tuple(pairwise(cuts))))
            b, begin = stop, end
        self._kept[rows] = groups
        return groups

    @cached_property
    def _kept(self) -> dict[int, list[Group]]:
        return {}


def join(X: Any, lengths: Any) -> tuple[Any, Any]:
    """A list of sequences end to end, with their lengths; anything else as it is.

    >>> join([[1, 2, 3], [4]], None)
    ([1, 2, 3, 4], [3, 1])
    """
    if lengths is not None or not is_list_of_sequences(X):
        return X, lengths
    sizes = [x.shape[0] if hasattr(x, "shape") else len(x) for x in X]
    if all(sp.issparse(x) for x in X):
        return sp.vstack(X, format="csr"), sizes
    if all(isinstance(x, list | tuple) for x in X):
        return [step for x in X for step in x], sizes
    arrays = [np.asarray(x) for x in X]
    if len({array.ndim for array in arrays}) > 1 or len({array.shape[1:] for array in arrays}) > 1:
        raise InputError(f"the sequences differ in columns: {sorted({array.shape[1:] for array in arrays})}.")
    return np.concatenate(arrays), sizes


def is_list_of_sequences(X: Any) -> bool:
    """Whether X is a list whose items are sequences themselves; a name is not a sequence."""
    if not isinstance(X, list | tuple) or not X:
        return False
    return sp.issparse(X[0]) or (isinstance(X[0], Sequence | np.ndarray) and not isinstance(X[0], str | bytes))


def _weights(weight: Any, B: int) -> Array:
    if weight is None:
        return np.ones(B)
    weight = np.asarray(weight, dtype=float)
    if weight.shape != (B,) or not (np.isfinite(weight) & (weight >= 0)).all() or not weight.any():
        raise WeightError(f"sequence_weight must be {B} finite numbers ≥ 0, not all 0: one for each sequence.")
    return weight
