"""Passes of topic models over documents and over words: which of K topics produced each word.

    rows        the documents, CSR: `Rows(indptr, indices, data)`
    columns     the same entries by word: `Columns(starts, documents, entries)`
    table       (V, K) p(w|t), the K numbers of a word side by side
    shares      (n, K) weights of the topics in each document, not scaled to sum to 1

Each document, or in passes over words each word, has its own output, so that results do not depend on the number of
threads, to the bit. Arrays are all float32 or all float64 within a call.
"""
