"""Documents that were counted already: under the columns of another vocabulary, or among others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from deciban.read.tables import text_column
from deciban.statistics import Array, Axis
from deciban.text.counting import Counted, count_known, count_openly
from deciban.text.documents import Documents
from deciban.text.reading import KnownWords
from deciban.text.tokens import Tokens


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


# -- rows ----------
# Documents as a family takes them: not counted yet, for counting and summing are one pass.
#
# What was counted once is kept: leaving out, lengths and the choice between transforms look at the same rows again.

EMPTY = ""


@dataclass(frozen=True, eq=False)
class TextRows:
    """n documents, some perhaps missing.

    >>> rows = TextRows.of(["to be", None])
    >>> rows.shape, rows.present
    ((2, 1), array([ True, False]))
    """

    texts: Documents  # empty where missing
    present: Array | None = None  # (n,) of bool; None where all are there
    known: Axis | None = None  # the words of the model that is asked or taught, once it has learnt some
    counted: dict[Tokens | KnownWords, Counted] = field(default_factory=dict)  # openly, or by a vocabulary
    measured: dict[Tokens, Array] = field(default_factory=dict)  # (n,) how many words each has
    chosen: Array | None = None  # (n,) which of the texts these are; None for all
    samples: list[Sample] = field(default_factory=list)  # of these rows some that were counted ahead

    @classmethod
    def of(cls, texts: Any, known: Axis | None = None) -> TextRows:
        """Documents of a list, array or column; None and NaN are missing."""
        if isinstance(texts, TextRows):
            return texts if texts.known is known else replace(texts, known=known)
        if isinstance(texts, str | bytes | Documents):
            return cls(Documents.of(texts), None, known)
        if isinstance(texts, np.ndarray) and texts.ndim == 2 and texts.shape[1] == 1:
            texts = texts[:, 0]
        column = None if isinstance(texts, list) else text_column(texts)
        texts = texts if column is None else column.texts
        if hasattr(texts, "null_count"):
            present = texts.is_valid().to_numpy() if texts.null_count else None
            return cls(Documents.of(texts.fill_null(EMPTY) if texts.null_count else texts), present, known)
        plain, present = _without_gaps(texts)
        return cls(Documents.of(plain), present, known)

    @cached_property
    def documents(self) -> Documents:
        """The texts, taken when they are read: what was counted already need not be."""
        return self.texts if self.chosen is None else self.texts.take(self.chosen)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self), 1

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(object)

    def __len__(self) -> int:
        return len(self.texts) if self.chosen is None else len(self.chosen)

    def __getitem__(self, rows: Any) -> TextRows:
        present = None if self.present is None else self.present[rows]
        counted = {how: some_rows(done, rows) for how, done in self.counted.items()}
        measured = {tokens: lengths[rows] for tokens, lengths in self.measured.items()}
        if isinstance(rows, slice):
            return TextRows(self.documents.take(rows), present, self.known, counted, measured)
        rows = np.asarray(rows)
        rows = np.flatnonzero(rows) if rows.dtype == bool else rows
        samples = [sample.among(rows) for sample in self.samples]
        chosen = rows if self.chosen is None else self.chosen[rows]
        return TextRows(self.texts, present, self.known, counted, measured, chosen, samples)

    def note(self, rows: Array, some: TextRows) -> TextRows:
        """Keep what will be counted of some rows, in ascending order, for when they are asked for again."""
        self.samples.append(Sample(some.counted, np.arange(len(rows)), rows))
        return some

    def there(self) -> tuple[TextRows, Array | None]:
        """The documents that are not missing, and where they stand; None where all are there."""
        if self.present is None or self.present.all():
            return self, None
        at = np.flatnonzero(self.present)
        return self[at], at

    def count_openly(self, tokens: Tokens) -> Counted:
        """Rows of counts of every word there is."""
        if tokens not in self.counted:
            self._keep(tokens, tokens, count_openly(self.documents, tokens))
            self.__dict__.pop("documents", None)  # they are not read again
        return self.counted[tokens]

    def count_known(self, known: KnownWords) -> Counted:
        """Rows of counts of the words of a vocabulary."""
        if known not in self.counted:
            openly = self.counted.get(known.tokens)
            done = self._count_known(known) if openly is None else moved(openly, known)
            self._keep(known, known.tokens, done)
        return self.counted[known]

    def _count_known(self, known: KnownWords) -> Counted:
        for sample in self.samples:
            done = sample.count_known(known, len(self), lambda new, tokens: self[new].count_openly(tokens))
            if done is not None:
                return done
        return count_known(self.documents, known)

    def _keep(self, how: Tokens | KnownWords, tokens: Tokens, done: Counted) -> None:
        self.counted[how], self.measured[tokens] = done, done.lengths

    def lengths(self, tokens: Tokens) -> Array:
        """(n,) how many words each document has, in a vocabulary or not."""
        if tokens not in self.measured:
            self.count_openly(tokens)
        return self.measured[tokens].astype(float)


def _without_gaps(texts: Any) -> tuple[Any, Array | None]:
    """The texts with the missing ones empty, and which are there."""
    texts = texts.tolist() if isinstance(texts, np.ndarray) else texts if isinstance(texts, list) else list(texts)
    if set(map(type, texts)) <= {str, bytes}:
        return texts, None
    present = np.array([not _missing(text) for text in texts], dtype=bool)
    if present.all():
        return texts, None
    return [text if here else EMPTY for text, here in zip(texts, present.tolist())], present


def _missing(text: Any) -> bool:
    if text is None or type(text).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(text, float) and text != text
