"""Input of topic models: texts, which are counted here, or counts of words as a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import scipy.sparse as sp
from numpy.typing import ArrayLike

from deciban.errors import DomainError, InputError, column_error, shortlist
from deciban.kernels.choice import Array
from deciban.read.arrays import find_bad, plain_numbers
from deciban.read.codes import is_missing
from deciban.read.tables import column_name
from deciban.text.counting import count_rows
from deciban.text.documents import Documents
from deciban.text.tokens import Tokens
from deciban.text.vocabulary import Limits, Vocabulary

DocumentInput: TypeAlias = ArrayLike | Sequence[str] | Documents  # texts, or counts of words

MOST_ENTRIES = 2**31 - 1  # that kernels index


def is_texts(X: DocumentInput) -> bool:
    """Whether X is texts, not a table of counts.

    >>> is_texts(["to be", "or not"]), is_texts(np.array([[1, 0]])), is_texts(np.array(["to be"]))
    (True, False, True)
    """
    if isinstance(X, Documents | str | bytes):
        return True
    if isinstance(X, list | tuple):
        return len(X) > 0 and isinstance(X[0], str | bytes | None)
    if isinstance(X, np.ndarray):
        return X.ndim == 1 and X.dtype.kind in "OUS" and len(X) > 0 and isinstance(X[0], str | bytes | None)
    if sp.issparse(X):
        return False
    if hasattr(X, "shape"):
        return len(X.shape) == 1 and (hasattr(X, "__arrow_c_stream__") or hasattr(X, "__array__"))
    return hasattr(X, "__arrow_c_stream__") or hasattr(X, "__arrow_c_array__")


@dataclass(frozen=True)
class TextCounting:
    """How texts are counted: tokens, limits of the vocabulary, and threads."""

    tokens: Tokens
    limits: Limits
    threads: int | None = None

    def learn(self, texts: DocumentInput) -> tuple[sp.csr_array, Array]:
        """Count words and return the counts with the vocabulary found."""
        X, vocabulary = count_rows(texts, self.tokens, limits=self.limits, threads=self.threads)
        return words_only(X, vocabulary), names_of(vocabulary)

    def count(self, texts: DocumentInput, words: Array) -> sp.csr_array:
        """Count known words; others are left out."""
        known = Vocabulary.of(words, "given")
        return words_only(count_rows(texts, self.tokens, known, threads=self.threads)[0], known)

    def grow(self, texts: DocumentInput, words: Array) -> tuple[sp.csr_array, Array]:
        """Count known words and, in columns behind them, new ones; returns the counts and all words."""
        try:
            X, found = count_rows(texts, self.tokens, threads=self.threads)
        except InputError:  # there is no word at all; after any other error, `count` raises it again
            return self.count(texts, words), np.asarray(words, dtype=object)
        return extended(X, names_of(found), words)


def words_only(X: sp.csr_array, vocabulary: Vocabulary) -> sp.csr_array:
    """Counts without the column of words outside the vocabulary."""
    return X[:, : len(vocabulary)] if vocabulary.unk else X


def names_of(vocabulary: Vocabulary) -> Array:
    """The words as an array of objects, shape (V,)."""
    return np.array(list(vocabulary), dtype=object)


def extended(X: ArrayLike, named: ArrayLike, words: ArrayLike) -> tuple[sp.csr_array, Array]:
    """Move the columns `named` to those of the known `words`; new words follow in their own order.

    >>> X, words = extended(sp.csr_array([[1, 2]]), ["lamb", "snow"], ["snow", "rain"])
    >>> X.toarray().tolist(), words.tolist()
    ([[2, 0, 1]], ['snow', 'rain', 'lamb'])
    """
    old, names = np.asarray(words, dtype=object), np.asarray(named, dtype=object)
    known = Vocabulary.of(old, "given")
    position = known.ids(list(names))
    new = np.flatnonzero(position < 0)
    position[new] = len(known) + np.arange(len(new))
    counts = sp.csr_array(X)
    moved = sp.csr_array(
        (counts.data, position[counts.indices], counts.indptr), (counts.shape[0], len(known) + len(new))
    )
    moved.sort_indices()
    return moved, np.concatenate([old, names[new]])


def counts_of(X: ArrayLike, columns: Sequence[str] | Array = ()) -> sp.csr_array:
    """Return a table of counts as CSR of float64 without stored zeros; fractions are weights."""
    counts = plain_numbers(X, columns)  # type: ignore[arg-type]
    counts = counts if sp.issparse(counts) else sp.csr_array(counts)
    if counts.data.min(initial=0.0) >= 0 and counts.data.max(initial=0.0) < np.inf:
        return sp.csr_array(counts)
    found = find_bad(counts, lambda values: ~((values >= 0) & (values < np.inf)))
    assert found is not None
    row, column, value = found
    said = "Negative values in data passed to a topic model: " if value < 0 else ""
    remedy, why = "Give counts, not differences or logarithms.", "; counts of words must be finite and ≥ 0."
    error = column_error(DomainError, column_name(list(columns), column), f"holds {value:.6g}", remedy, row, why)
    raise error.but(said, *error.args)


def require_words(X: sp.csr_array) -> None:
    """Refuse documents without any word."""
    if X.shape[0] == 0:
        raise InputError(f"Found array with 0 sample(s) (shape={X.shape}) while a minimum of 1 is required.")
    if X.nnz == 0:
        raise InputError("no document holds any word of the vocabulary. Give documents with words.")
    if X.nnz > MOST_ENTRIES:
        raise InputError(f"{X.nnz:,} entries are too many for one fit. Learn them in parts by partial_fit.")


def check_words(words: Sequence[str] | Array, V: int) -> Array:
    """Return names of the columns as an array of objects, shape (V,); refuse repeated names."""
    named = np.array([str(word) for word in words], dtype=object)
    if len(named) != V:
        raise InputError(f"{len(named)} words were named for {V} columns. Name each column once.")
    if len(set(named.tolist())) != V:
        seen: set[str] = set()
        twice = [word for word in named if word in seen or seen.add(word)]  # type: ignore[func-returns-value]
        raise InputError(f"words named twice: {shortlist(twice)}. Name each column once.")
    return named


# -- documents in parts ------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class CountedPart:
    """Counts the words of a vocabulary in the documents of a part; other words are left out."""

    counting: TextCounting
    vocabulary: Array

    def __call__(self, part: Any) -> sp.csr_array:
        return counts_of(self.counting.count(texts_of_part(part), self.vocabulary))


def texts_of_part(part: Any) -> list[str]:
    """Return the documents of a part: a series, or a table with one column; missing ones are empty.

    >>> texts_of_part(pa.table({"text": ["a lamb", None]}))
    ['a lamb', '']
    """
    if getattr(part, "ndim", 2) != 1:
        names = getattr(part, "column_names", None) or list(part.columns)
        if len(names) != 1:
            raise InputError(
                f"documents in partitions are one column of texts, and here are {len(names)} columns.",
                remedy="Give a column of the frame.",
            )
        part = part[names[0]].to_pylist() if isinstance(part, pa.Table) else part[names[0]]
    return ["" if is_missing(text) else str(text) for text in part]


def size_of_part(X: sp.csr_array) -> tuple[int, float]:
    """Return the documents and tokens of a part."""
    return X.shape[0], float(X.data.sum())
