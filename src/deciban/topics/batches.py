"""Documents cut into batches, each with only the words it uses: small tables stay in the cache."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from deciban.kernels.choice import Array
from deciban.kernels.topics import Columns, Rows, by_word

LEAST, MOST = 128, 512  # documents in a batch
BATCHES = 32  # that there should be, if they are not too small then
WIDE = 20  # times as many words as entries: sorting the entries is then less work than looking through the words


@dataclass
class DocumentBatch:
    """Some documents, and what is known of their topics."""

    words: Array  # columns of the whole vocabulary, rising
    rows: Rows
    columns: Columns
    tokens: float
    counts: Array | None = None  # (n, K) Σ c γ at the last visit
    near: Array | None = None  # (nnz,) see `excluding_documents`

    @classmethod
    def of(cls, X: Any) -> DocumentBatch:
        """The rows of a CSR matrix."""
        words, local = local_columns(X.indices, X.shape[1])
        rows = Rows(X.indptr.astype(np.int64), local, X.data.astype(np.float32))
        return cls(words, rows, by_word(rows, len(words)), float(X.data.sum()))


def batches_of(X: Any, order: Array, size: int | None = None) -> list[DocumentBatch]:
    """All rows of X that hold words, in a given order, a batch at a time."""
    order = order[np.diff(X.indptr)[order] > 0]
    if size is None:
        size = int(np.clip(len(order) // BATCHES, LEAST, MOST))
    return [DocumentBatch.of(X[order[at : at + size]]) for at in range(0, len(order), size)]


def local_columns(indices: Array, V: int) -> tuple[Array, Array]:
    """The columns in use, and indices among them."""
    if WIDE * len(indices) < V:
        words, local = np.unique(indices, return_inverse=True)
        return words.astype(np.int64), local.astype(np.int32)
    used = np.zeros(V, dtype=bool)
    used[indices] = True
    place = np.cumsum(used, dtype=np.int32) - np.int32(1)
    return np.flatnonzero(used), place[indices]
