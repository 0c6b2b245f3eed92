"""Passes of topic models over documents and over words: which of K topics produced each word.

    rows        the documents, CSR: `Rows(indptr, indices, data)`
    columns     the same entries by word: `Columns(starts, documents, entries)`
    table       (V, K) p(w|t), the K numbers of a word side by side
    shares      (n, K) weights of the topics in each document, not scaled to sum to 1

Each document, or in passes over words each word, has its own output, so that results do not depend on the number of
threads, to the bit. Arrays are all float32 or all float64 within a call.
"""

from deciban.topics.kernels.layout import Columns, Rows, ThreadPool, by_word, transposed
from deciban.topics.kernels.passes import (
    add_rows,
    exact_pass,
    excluding_documents,
    excluding_words,
    fold_in,
    gibbs_sweep,
    plain_counts,
    prequential,
    row_log_likelihoods,
    word_rows,
)

__all__ = [
    "Columns",
    "Rows",
    "ThreadPool",
    "add_rows",
    "by_word",
    "exact_pass",
    "excluding_documents",
    "excluding_words",
    "fold_in",
    "gibbs_sweep",
    "plain_counts",
    "prequential",
    "row_log_likelihoods",
    "transposed",
    "word_rows",
]
