"""Documents as the family takes them: selections of one batch that share the counts made of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from deciban.read.tables import Columns, text_column
from deciban.statistics import Array, Axis
from deciban.text.counting import Counted, count_found, count_known, count_lengths
from deciban.text.documents import Documents
from deciban.text.reading import VocabularyReader
from deciban.text.tokens import Tokens

UNKNOWN = -1  # length of a document that was not read yet
MISSING = ""  # the text that stands for a missing document


class DocumentCounts:
    """Counts of the documents of one batch; mutable. `encode` makes it, and all selections of its rows share it.

    It holds for each `Tokens`

    - the counts of documents that `TextRows.count` has counted, under the vocabulary found in them;
    - the length of every document that was read, for whatever purpose.

    Documents that are read several times (candidates are judged, then sums collected, then scores calibrated on a
    sample) are therefore counted once.
    """

    def __init__(self, n: int) -> None:
        self.n = n
        self._counted: dict[Tokens, tuple[Array, Counted]] = {}  # positions, ascending, and their counts
        self._lengths: dict[Tokens, Array] = {}  # (n,)

    def any(self, tokens: Tokens) -> bool:
        """Whether any document has counts."""
        return tokens in self._counted

    def holds(self, tokens: Tokens, at: Array) -> bool:
        """Whether all of these documents have counts."""
        return tokens in self._counted and len(self._match(tokens, at)[0]) == len(at)

    def find(self, tokens: Tokens, at: Array) -> tuple[Array, Counted | None]:
        """Return which of the documents have counts, as positions in `at`, and their counts."""
        if tokens not in self._counted:
            return np.zeros(0, np.intp), None
        found, rows = self._match(tokens, at)
        done, counted = self._counted[tokens]
        whole = len(rows) == len(done) and bool((rows[1:] > rows[:-1]).all())
        return found, counted if whole else counted.take(rows)

    def _match(self, tokens: Tokens, at: Array) -> tuple[Array, Array]:
        """Return positions in `at`, and for each the row of the counts that belongs to it."""
        done, _ = self._counted[tokens]
        if not len(done):
            return np.zeros(0, np.intp), np.zeros(0, np.intp)
        near = np.minimum(np.searchsorted(done, at), len(done) - 1)
        found = np.flatnonzero(done[near] == at)
        return found, near[found]

    def keep(self, tokens: Tokens, at: Array, counted: Counted) -> None:
        """Keep the counts of documents at ascending positions, in the place of those kept before."""
        self._counted[tokens] = at, counted

    def lengths(self, tokens: Tokens, at: Array) -> Array:
        """Return the lengths of documents, `UNKNOWN` for those that were not read yet."""
        return self._lengths[tokens][at] if tokens in self._lengths else np.full(len(at), UNKNOWN)

    def keep_lengths(self, tokens: Tokens, at: Array, lengths: Array) -> None:
        """Keep the lengths of documents."""
        if tokens not in self._lengths:
            self._lengths[tokens] = np.full(self.n, UNKNOWN)
        self._lengths[tokens][at] = lengths

    def clear(self) -> None:
        """Drop all counts, to free memory; lengths stay."""
        self._counted.clear()


@dataclass(frozen=True, eq=False)
class TextRows:
    """n documents of a batch, some of them perhaps missing.

    >>> rows = TextRows.of(["to be", None, "or not to be"])
    >>> rows.shape, rows.present
    ((3, 1), array([ True, False,  True]))
    >>> rows[[0, 2]].count(Tokens()).matrix.toarray()
    array([[1, 0, 0, 1],
           [1, 1, 1, 1]])
    """

    texts: Documents  # of the whole batch, empty where missing
    counts: DocumentCounts  # of the whole batch
    at: Array  # (n,) positions of these rows in the batch
    present: Array | None = None  # (n,) of bool; None where no document is missing
    known: Axis | None = None  # the words of the model that reads or learns these rows, if it has learnt before

    @classmethod
    def of(cls, texts: Any, known: Axis | None = None) -> TextRows:
        """Take a list, an array, a column of a frame or `Columns`; None and NaN are missing."""
        if isinstance(texts, TextRows):
            return texts if texts.known is known else replace(texts, known=known)
        if isinstance(texts, Columns):
            texts = texts.texts()
        documents, present = _without_gaps(texts)
        n = len(documents)
        return cls(documents, DocumentCounts(n), np.arange(n), present, known)

    @classmethod
    def joined(cls, parts: Sequence[TextRows]) -> TextRows:
        """Concatenate the rows of several batches."""
        documents, present = Documents.joined([part.documents for part in parts]), None
        if any(part.present is not None for part in parts):
            each = [np.ones(len(part), bool) if part.present is None else part.present for part in parts]
            present = np.concatenate(each)
        return cls(documents, DocumentCounts(len(documents)), np.arange(len(documents)), present)

    @property
    def documents(self) -> Documents:
        """The texts of these rows."""
        return self.texts if len(self.at) == len(self.texts) and self._in_order() else self.texts.take(self.at)

    def _in_order(self) -> bool:
        return bool((self.at[1:] > self.at[:-1]).all())

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.at), 1

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(object)

    def __len__(self) -> int:
        return len(self.at)

    def __getitem__(self, rows: Any) -> TextRows:
        present = None if self.present is None else self.present[rows]
        return replace(self, at=self.at[rows], present=present)

    def without_missing(self) -> tuple[TextRows, Array | None]:
        """Return the documents that are not missing, and their positions; None where all are there."""
        if self.present is None or self.present.all():
            return self, None
        here = np.flatnonzero(self.present)
        return self[here], here

    # -- counts --------------------------------------------------------------------------------------------------------
    def counted(self, tokens: Tokens) -> bool:
        """Whether `count` has counted all of these documents."""
        return self.counts.holds(tokens, self.at)

    def count(self, tokens: Tokens) -> Counted:
        """Count all features that occur in these documents, and keep the counts for whoever shares the batch.

        The vocabulary is that of the documents which were counted together. It holds every word of these rows, and may
        hold others.
        """
        found, counted = self.counts.find(tokens, self.at)
        if counted is not None and len(found) == len(self):
            return counted
        counted = count_found(self.documents, tokens)
        if self._in_order():
            self.counts.keep(tokens, self.at, counted)
        self.counts.keep_lengths(tokens, self.at, counted.lengths)
        return counted

    def count_by(self, reader: VocabularyReader) -> Counted:
        """Count these documents under the columns of a vocabulary; counts that are kept are used."""
        tokens, vocabulary = reader.tokens, reader.vocabulary
        found, kept = self.counts.find(tokens, self.at)
        if kept is None or not len(found):
            counted = count_known(self.documents, reader)
        elif len(found) == len(self):
            counted = kept.under(vocabulary)
        else:
            new = np.delete(np.arange(len(self)), found)
            parts = kept.under(vocabulary), count_found(self[new].documents, tokens).under(vocabulary)
            order = np.empty(len(self), np.intp)
            order[found], order[new] = np.arange(len(found)), len(found) + np.arange(len(new))
            matrix = sp.vstack([part.matrix for part in parts], "csr")[order]
            counted = Counted(matrix, vocabulary, np.concatenate([part.lengths for part in parts])[order])
        self.counts.keep_lengths(tokens, self.at, counted.lengths)
        return counted

    def lengths(self, tokens: Tokens) -> Array:
        """Return the number of features of each document, shape (n,); documents that were not read yet are read."""
        lengths = self.counts.lengths(tokens, self.at)
        if self.present is not None:
            lengths = np.where(self.present, lengths, 0)
        new = np.flatnonzero(lengths == UNKNOWN)
        if len(new):
            lengths[new] = count_lengths(self[new].documents, tokens)
            self.counts.keep_lengths(tokens, self.at[new], lengths[new])
        return lengths.astype(float)


def _without_gaps(texts: Any) -> tuple[Documents, Array | None]:
    """Return the documents, empty where missing, and which are present; None where all are."""
    if isinstance(texts, str | bytes | Documents):
        return Documents.of(texts), None
    if isinstance(texts, np.ndarray) and texts.ndim == 2 and texts.shape[1] == 1:
        texts = texts[:, 0]
    column = None if isinstance(texts, list) else text_column(texts)
    texts = texts if column is None else column.texts
    if hasattr(texts, "null_count"):
        present = texts.is_valid().to_numpy() if texts.null_count else None
        return Documents.of(texts.fill_null(MISSING) if texts.null_count else texts), present
    texts = texts.tolist() if isinstance(texts, np.ndarray) else texts if isinstance(texts, list) else list(texts)
    if set(map(type, texts)) <= {str, bytes}:
        return Documents.of(texts), None
    present = np.array([not _is_missing(text) for text in texts], dtype=bool)
    if present.all():
        return Documents.of(texts), None
    return Documents.of([text if here else MISSING for text, here in zip(texts, present.tolist())]), present


def _is_missing(text: object) -> bool:
    if text is None or type(text).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(text, float) and text != text
