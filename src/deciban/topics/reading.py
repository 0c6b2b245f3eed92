"""What topics are learnt from: texts, which are counted here, or counts of words as a matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from deciban.errors import DomainError, InputError, column_error, shortlist
from deciban.kernels.choice import Array
from deciban.read.numbers import column_name, find_bad, plain_numbers
from deciban.text.counting import count_rows
from deciban.text.documents import Documents
from deciban.text.tokens import Tokens
from deciban.text.vocabulary import Limits, Vocabulary

MOST_ENTRIES = 2**31 - 1


def is_texts(X: Any) -> bool:
    """Whether X is documents, and not a table of counts.

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
    """How texts become counts of words."""

    tokens: Tokens
    limits: Limits
    threads: int | None = None

    def learn(self, texts: Any) -> tuple[Any, Array]:
        """Counts, and the words found."""
        X, vocabulary = count_rows(texts, self.tokens, limits=self.limits, threads=self.threads)
        return words_only(X, vocabulary), names_of(vocabulary)

    def count(self, texts: Any, words: Any) -> Any:
        """Counts of known words; others are left out."""
        known = Vocabulary.of(words, "given")
        return words_only(count_rows(texts, self.tokens, known, threads=self.threads)[0], known)

    def grow(self, texts: Any, words: Any) -> tuple[Any, Array]:
        """Counts of known words and, behind them, of new ones; and the words."""
        try:
            X, found = count_rows(texts, self.tokens, threads=self.threads)
        except InputError as problem:
            if "empty vocabulary" not in str(problem):
                raise
            return self.count(texts, words), np.asarray(words, dtype=object)
        return extended(X, names_of(found), words)


def words_only(X: Any, vocabulary: Vocabulary) -> Any:
    """Counts without the column of words outside."""
    return X[:, : len(vocabulary)] if vocabulary.unk else X


def names_of(vocabulary: Vocabulary) -> Array:
    """(V,) the words, as objects."""
    return np.array(list(vocabulary), dtype=object)


def extended(X: Any, named: Any, words: Any) -> tuple[Any, Array]:
    """Columns moved to those of the words known before; new words follow in their own order.

    >>> X, words = extended(sp.csr_array([[1, 2]]), ["lamb", "snow"], ["snow", "rain"])
    >>> X.toarray().tolist(), words.tolist()
    ([[2, 0, 1]], ['snow', 'rain', 'lamb'])
    """
    known = Vocabulary.of(words, "given")
    place = known.ids(list(named))
    new = np.flatnonzero(place < 0)
    place[new] = len(known) + np.arange(len(new))
    X = sp.csr_array(X)
    moved = sp.csr_array((X.data, place[X.indices], X.indptr), (X.shape[0], len(known) + len(new)))
    moved.sort_indices()
    return moved, np.concatenate([np.asarray(words, dtype=object), np.asarray(named, dtype=object)[new]])


def counts_of(X: Any, columns: Any = ()) -> Any:
    """A table of counts as CSR of float64 without stored zeros; fractions are weights."""
    X = plain_numbers(X, columns)
    X = X if sp.issparse(X) else sp.csr_array(X)
    if X.data.min(initial=0.0) >= 0 and X.data.max(initial=0.0) < np.inf:
        return sp.csr_array(X)
    found = find_bad(X, lambda values: ~((values >= 0) & (values < np.inf)))
    assert found is not None
    row, column, value = found
    said = "Negative values in data passed to a topic model: " if value < 0 else ""
    remedy, why = "Give counts, not differences or logarithms.", "; counts of words must be finite and ≥ 0."
    error = column_error(DomainError, column_name(columns, column), f"holds {value:.6g}", remedy, row, why)
    raise error.but(said, *error.args)


def require_words(X: Any) -> None:
    """Refuse documents without a single word."""
    if X.shape[0] == 0:
        raise InputError(f"Found array with 0 sample(s) (shape={X.shape}) while a minimum of 1 is required.")
    if X.nnz == 0:
        raise InputError("no document holds any word: there is nothing to find topics in. Give documents with words.")
    if X.nnz > MOST_ENTRIES:
        raise InputError(f"{X.nnz:,} entries are too many for one fit. Learn them in parts by partial_fit.")


def check_words(words: Any, V: int) -> Array:
    """Names of the columns, as many as there are and no two alike."""
    named = np.array([str(word) for word in words], dtype=object)
    if len(named) != V:
        raise InputError(f"{len(named)} words were named for {V} columns. Name each column once.")
    if len(set(named.tolist())) != V:
        seen: set[str] = set()
        twice = [word for word in named if word in seen or seen.add(word)]  # type: ignore[func-returns-value]
        raise InputError(f"words named twice: {shortlist(twice)}. Name each column once.")
    return named
