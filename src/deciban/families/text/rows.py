"""Documents as a family takes them: not counted yet, for counting and summing are one pass.

What was counted once is kept: leaving out, lengths and the choice between transforms look at the same rows again.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from deciban.features.counts import Counted, count_known, count_openly
from deciban.features.documents import Documents
from deciban.features.known import KnownWords
from deciban.features.tokens import Tokens
from deciban.read.tables import text_column
from deciban.statistics import Array, Axis

EMPTY = ""


@dataclass(frozen=True, eq=False)
class TextRows:
    """n documents, some perhaps missing.

    >>> rows = TextRows.of(["to be", None])
    >>> rows.shape, rows.present
    ((2, 1), array([ True, False]))
    """

    documents: Documents  # empty where missing
    present: Array | None = None  # (n,) of bool; None where all are there
    known: Axis | None = None  # the words of the model that is asked or taught, once it has learnt some
    counted: dict[Tokens | KnownWords, Counted] = field(default_factory=dict)  # openly, or by a vocabulary
    measured: dict[Tokens, Array] = field(default_factory=dict)  # (n,) how many words each has

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

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.documents), 1

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(object)

    def __len__(self) -> int:
        return len(self.documents)

    def __getitem__(self, rows: Any) -> TextRows:
        present = None if self.present is None else self.present[rows]
        counted = {
            how: Counted(done.matrix[rows], done.vocabulary, done.lengths[rows]) for how, done in self.counted.items()
        }
        measured = {tokens: lengths[rows] for tokens, lengths in self.measured.items()}
        return TextRows(self.documents.take(rows), present, self.known, counted, measured)

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
        return self.counted[tokens]

    def count_known(self, known: KnownWords) -> Counted:
        """Rows of counts of the words of a vocabulary."""
        if known not in self.counted:
            openly = self.counted.get(known.tokens)
            done = count_known(self.documents, known) if openly is None else moved(openly, known)
            self._keep(known, known.tokens, done)
        return self.counted[known]

    def _keep(self, how: Tokens | KnownWords, tokens: Tokens, done: Counted) -> None:
        self.counted[how], self.measured[tokens] = done, done.lengths

    def lengths(self, tokens: Tokens) -> Array:
        """(n,) how many words each document has, in a vocabulary or not."""
        if tokens not in self.measured:
            self.count_openly(tokens)
        return self.measured[tokens].astype(float)


def moved(done: Counted, known: KnownWords) -> Counted:
    """Rows that were counted already, under the columns of a vocabulary."""
    import scipy.sparse as sp

    if not known.vocabulary.unk and known.vocabulary.names.equals(done.vocabulary.names):
        return done
    place = known.vocabulary.positions(done.vocabulary)
    outside = len(known.vocabulary) if known.vocabulary.unk else -1
    column = np.where(place < 0, outside, place)[done.matrix.indices]
    row = np.repeat(np.arange(done.matrix.shape[0]), np.diff(done.matrix.indptr))
    kept = column >= 0
    shape = done.matrix.shape[0], known.vocabulary.columns
    matrix = sp.coo_array((done.matrix.data[kept], (row[kept], column[kept])), shape).tocsr()
    return Counted(matrix, known.vocabulary, done.lengths)


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
