"""Word counts by document and by word, and their division among threads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from deciban.kernels.choice import Array, readable
from deciban.kernels.parallel import each, get_threads


class Rows(NamedTuple):
    """Documents as CSR: document i holds the words indices[indptr[i] : indptr[i + 1]], with the counts in data."""

    indptr: Array  # (n + 1,) int64
    indices: Array  # (nnz,) int32
    data: Array  # (nnz,) float

    @classmethod
    def of(cls, X: sp.csr_array, dtype: DTypeLike = np.float32) -> Rows:
        """Return the three arrays of a CSR matrix, as kernels read them."""
        return cls(readable(X.indptr, np.int64), readable(X.indices, np.int32), readable(X.data, dtype))

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @property
    def size(self) -> int:
        """Number of entries."""
        return int(self.indptr[-1] - self.indptr[0])

    def owners(self) -> Array:
        """(nnz,) the document of each entry."""
        return np.repeat(np.arange(len(self)), np.diff(self.indptr))

    def lengths(self) -> Array:
        """(n,) the tokens of each document."""
        return np.bincount(self.owners(), self.data, len(self))


class Columns(NamedTuple):
    """Entries by word: word w occurs in documents[starts[w] : starts[w + 1]], as the entries in the same positions."""

    starts: Array  # (V + 1,) int64
    documents: Array  # (nnz,) int32
    entries: Array  # (nnz,) int32


class WordTopics(NamedTuple):
    """p(w|t), and the limits of what is left of a document and of a word when a token is excluded from their counts."""

    table: Array  # (V, K) p(w|t)
    inverse_totals: Array  # (K,) 1/(n_k + Vβ)
    low: Any  # smallest weight of a topic in a document; a number of the type of the table
    floor: Any  # smallest p(w|t), likewise


class TokenTopics(NamedTuple):
    """Topics of tokens, in place: document d has the tokens limits[d] … limits[d + 1]."""

    limits: Array  # (n + 1,) int64
    words: Array  # (tokens,) int64
    topics: Array  # (tokens,) int64


def by_word(rows: Rows, V: int) -> Columns:
    """Sort the entries of documents by word.

    >>> by_word(Rows(np.array([0, 2, 3]), np.array([0, 1, 1], np.int32), np.ones(3)), 2).documents
    array([0, 0, 1], dtype=int32)
    """
    numbers = np.arange(rows.size, dtype=np.int32)
    columns = sp.csr_array((numbers, rows.indices, rows.indptr), (len(rows), V)).tocsc()
    return Columns(columns.indptr.astype(np.int64), columns.indices.astype(np.int32, copy=False), columns.data)


def transposed(rows: Rows, V: int) -> Rows:
    """Return words as rows of documents.

    >>> transposed(Rows(np.array([0, 2, 3]), np.array([0, 1, 1], np.int32), np.array([5.0, 6.0, 7.0])), 2).data
    array([5., 6., 7.])
    """
    starts, documents, entries = by_word(rows, V)
    return Rows(starts, documents, rows.data[entries])


WIDE = 20  # times as many words as entries: sorting the entries is then faster than marking the words


def used_words(X: sp.csr_array, dtype: DTypeLike = float) -> tuple[Array, Rows]:
    """Return the columns in use, ascending, and the documents by their positions among them."""
    if WIDE * len(X.indices) < X.shape[1]:
        words, local = np.unique(X.indices, return_inverse=True)
    else:
        used = np.zeros(X.shape[1], dtype=bool)
        used[X.indices] = True
        words, local = np.flatnonzero(used), (np.cumsum(used, dtype=np.int32) - np.int32(1))[X.indices]
    return words.astype(np.int64), Rows(X.indptr.astype(np.int64), local.astype(np.int32), X.data.astype(dtype))


LEAST_WORK = 200_000  # elementary operations of a thread, below which another one does not pay


@dataclass(frozen=True)
class ThreadPool:
    """Divides ranges of rows among at most `most` threads, or `get_threads()`; results must not depend on the division.

    >>> parts = []
    >>> ThreadPool(2).run(lambda begin, end: parts.append((begin, end)), np.array([0, 5, 6, 10]), work=10**6)
    >>> sorted(parts)
    [(0, 1), (1, 3)]
    """

    most: int | None = None

    def run(self, act: Callable[[int, int], Any], limits: Array, work: float) -> None:
        """Call act(begin, end) for ranges of rows with about equal numbers of entries; `limits` is an indptr."""
        number = int(min(work // LEAST_WORK, len(limits) - 1))
        number = 1 if number < 2 else min(get_threads() if self.most is None else self.most, number)
        if number == 1:
            act(0, len(limits) - 1)
            return
        targets = limits[0] + (limits[-1] - limits[0]) * np.arange(1, number) // number
        cuts = [0, *np.searchsorted(limits, targets).tolist(), len(limits) - 1]
        each(lambda ends: act(*ends), list(pairwise(cuts)), threads=number)


SINGLE_THREAD = ThreadPool(1)
