"""Topics: which of K topics drew the words of documents, in passes over documents and over words.

    rows        the documents, CSR: `Rows(indptr, indices, data)`
    columns     the same entries by word: `Columns(starts, documents, entries)`
    table       (V, K) p(w|t), a word's K numbers side by side
    shares      (n, K) how much each topic has of each document, not scaled to 1

A document, and in passes over words a word, owns what is written about it, so that the bits do not depend on the number
of threads. Arrays are float32 or float64 throughout one call; the small inputs' twin is in `twins`.
"""

from deciban.topics.kernels.layout import Columns, Crew, Rows, by_word, turned
from deciban.topics.kernels.sweeps import (
    add_rows,
    entry_shares,
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
    "Crew",
    "Rows",
    "add_rows",
    "by_word",
    "entry_shares",
    "excluding_documents",
    "excluding_words",
    "fold_in",
    "gibbs_sweep",
    "plain_counts",
    "prequential",
    "row_log_likelihoods",
    "turned",
    "word_rows",
]
