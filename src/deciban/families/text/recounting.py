"""Documents that were counted already: under the columns of another vocabulary, or among others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from deciban.features.counts import Counted
from deciban.features.known import KnownWords
from deciban.features.tokens import Tokens
from deciban.statistics import Array


def some_rows(done: Counted, rows: Any) -> Counted:
    """Of rows that were counted some."""
    return Counted(done.matrix[rows], done.vocabulary, done.lengths[rows])


def moved(done: Counted, known: KnownWords) -> Counted:
    """Rows under the columns of a vocabulary."""
    theirs, rows = known.vocabulary, done.matrix
    if not theirs.unk and theirs.names.equals(done.vocabulary.names):
        return done
    place, shape = theirs.positions(done.vocabulary), (rows.shape[0], theirs.columns)
    if place.min(initial=0) >= 0:
        return Counted(
            sp.csr_array((rows.data, place.astype(np.int32)[rows.indices], rows.indptr), shape), theirs, done.lengths
        )
    column = np.where(place < 0, len(theirs) if theirs.unk else -1, place)[rows.indices]
    row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    kept = column >= 0
    matrix = sp.coo_array((rows.data[kept], (row[kept], column[kept])), shape).tocsr()
    return Counted(matrix, theirs, done.lengths)


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows that were looked at ahead, and where they stand among those that are looked at now.

    >>> ahead = Sample({}, np.array([0, 1, 2]), np.array([3, 5, 8]))
    >>> now = ahead.among(np.array([5, 6, 8, 9]))
    >>> now.rows, now.at
    (array([1, 2]), array([0, 2]))
    """

    counted: dict[Any, Counted]  # of the whole sample
    rows: Array  # (m,) rows of the sample
    at: Array  # (m,) where they stand now, ascending

    def among(self, positions: Array) -> Sample:
        """As it is for whoever looks at some of the rows, in any order."""
        near = np.minimum(np.searchsorted(self.at, positions), len(self.at) - 1)
        found = np.flatnonzero(self.at[near] == positions) if len(self.at) else np.zeros(0, np.intp)
        return Sample(self.counted, self.rows[near[found]], found)

    def count_known(self, known: KnownWords, n: int, count: Callable[[Array, Tokens], Counted]) -> Counted | None:
        """All n rows that are looked at now, `count` counting those that were not before; None if none was."""
        openly = self.counted.get(known.tokens)
        if openly is None or not len(self.at):
            return None
        before = moved(openly, known)
        new = np.delete(np.arange(n), self.at)
        if not len(new) and np.array_equal(self.rows, np.arange(before.matrix.shape[0])):
            return before
        after = moved(count(new, known.tokens), known)
        order = np.empty(n, np.intp)
        order[self.at], order[new] = self.rows, before.matrix.shape[0] + np.arange(len(new))
        both = sp.vstack([before.matrix, after.matrix], "csr")
        return Counted(both[order], known.vocabulary, np.concatenate([before.lengths, after.lengths])[order])
