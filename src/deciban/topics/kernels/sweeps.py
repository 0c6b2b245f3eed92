"""Passes over documents and over words: kernel or twin, in as many threads as there are."""

from __future__ import annotations

import numpy as np

from deciban.kernels.choice import Array, compiled
from deciban.topics.kernels import twins
from deciban.topics.kernels.layout import ALONE, Columns, Crew, Rows

PASSES = 50  # that a fit makes, about: a kernel is worth compiling by the work of them all


def excluding_documents(
    rows: Rows,
    table: Array,
    inverse: Array,
    shares: Array,
    low: float,
    floor: float,
    near: Array,
    crew: Crew = ALONE,
) -> tuple[Array, Array, Array]:
    """A self-excluding pass over documents: Σ c γ (n, K), 1/Σ t·p (nnz,), and what γ is scaled by (nnz,).

        γ ∝ max(t − g, low) · max(p − g·inverse, floor),   g = t·p·near

    `near` is the second result of the last pass, 0 before the first; `inverse` (K,) is 1/(n_k + Vβ).
    """
    work = rows.size * table.shape[1]
    low, floor = table.dtype.type(low), table.dtype.type(floor)
    if not compiled(PASSES * work):
        return twins.excluding_documents(rows, table, inverse, shares, low, floor, near)
    from deciban.topics.kernels.compiled import excluding_documents as run

    counts, found, scale = np.empty_like(shares), np.empty_like(near), np.empty_like(near)
    fixed = (*rows, table, inverse, shares, low, floor, near, counts, found, scale)
    crew.share(lambda begin, end: run(*fixed, begin, end), rows.indptr, work)
    return counts, found, scale


def excluding_words(
    columns: Columns,
    shares: Array,
    near: Array,
    scale: Array,
    table: Array,
    inverse: Array,
    low: float,
    floor: float,
    crew: Crew = ALONE,
) -> Array:
    """Σ c γ of each word (V, K), with the γ of a pass over documents: its shares, `near` and scale."""
    work = len(columns.entries) * table.shape[1]
    low, floor = table.dtype.type(low), table.dtype.type(floor)
    if not compiled(PASSES * work):
        return twins.excluding_words(columns, shares, near, scale, table, inverse, low, floor)
    from deciban.topics.kernels.compiled import excluding_words as run

    sums = np.empty_like(table)
    fixed = (*columns, shares, near, scale, table, inverse, low, floor, sums)
    crew.share(lambda begin, end: run(*fixed, begin, end), columns.starts, work)
    return sums


def plain_counts(rows: Rows, table: Array, shares: Array, crew: Crew = ALONE) -> Array:
    """Σ c γ of each document (n, K), γ = t·p/Σ t·p.

    A pass over words is the same on rows that are words: `turned` rows, with `table` and `shares` changing places.
    """
    work = rows.size * table.shape[1]
    if not compiled(PASSES * work):
        return twins.plain_counts(rows, table, shares)
    from deciban.topics.kernels.compiled import plain_counts as run

    counts = np.empty_like(shares)
    fixed = (*rows, table, shares, counts)
    crew.share(lambda begin, end: run(*fixed, begin, end), rows.indptr, work)
    return counts


def row_log_likelihoods(rows: Rows, table: Array, shares: Array, crew: Crew = ALONE) -> Array:
    """(n,) Σ c log Σ t·p of each document."""
    work = rows.size * table.shape[1]
    if not compiled(PASSES * work):
        return twins.row_log_likelihoods(rows, table, shares)
    from deciban.topics.kernels.compiled import row_log_likelihoods as run

    out = np.empty(len(rows))
    crew.share(lambda begin, end: run(*rows, table, shares, out, begin, end), rows.indptr, work)
    return out


def fold_in(
    rows: Rows,
    table: Array,
    prior: Array,
    most: int = 100,
    tolerance: float = 1e-4,
    crew: Crew = ALONE,
    often: bool = False,
) -> Array:
    """CVB0 of new documents under fixed topics: Σ c γ, (n, K). `often`: after every pass of a fit, not once.

    >>> rows = Rows(np.array([0, 1]), np.array([0], np.int32), np.ones(1))
    >>> fold_in(rows, np.array([[0.5, 0.25]]), np.array([1.0, 1.0])).round(3)
    array([[0.667, 0.333]])
    """
    work = rows.size * table.shape[1] * 10
    if not compiled(PASSES * work if often else work):
        return twins.fold_in(rows, table, prior, most, tolerance)
    from deciban.topics.kernels.folding import fold_in as run

    counts = np.empty((len(rows), table.shape[1]), table.dtype)
    fixed = (*rows, table, prior, most, tolerance, counts)
    crew.share(lambda begin, end: run(*fixed, begin, end), rows.indptr, work)
    return counts


def entry_shares(
    rows: Rows,
    columns: Columns,
    prior: Array,
    beta: float,
    counts: tuple[Array, Array, Array],
    held: Array,
    crew: Crew = ALONE,
) -> tuple[Array, tuple[Array, Array, Array]]:
    """A pass of exact CVB0: new γ of every entry, and the counts they give, of documents, words and all.

    `counts` are those of the old γ, `held`, which is overwritten.
    """
    of_document, of_word, of_all = counts
    work = held.size
    dtype = held.dtype.type
    everything = np.arange(rows.size, dtype=np.int32)
    groups = ((rows.indptr, everything), (columns.starts, columns.entries))
    if not compiled(PASSES * work):
        held = twins.entry_shares(rows, prior, dtype(beta), of_document, of_word, of_all, held)
        sums = [twins.sum_entries(starts, entries, rows.data, held) for starts, entries in groups]
    else:
        from deciban.topics.kernels.folding import entry_shares as run
        from deciban.topics.kernels.folding import sum_entries

        fixed = (rows.indptr, rows.indices, prior, dtype(beta), of_document, of_word, of_all, held)
        crew.share(lambda begin, end: run(*fixed, begin, end), rows.indptr, work)
        sums = [np.empty_like(of_document), np.empty_like(of_word)]
        for (starts, entries), out in zip(groups, sums):
            given = (starts, entries, rows.data, held, out)
            crew.share(lambda begin, end, given=given: sum_entries(*given, begin, end), starts, work)  # type: ignore[misc]
    return held, (sums[0], sums[1], sums[1].sum(axis=0))


def prequential(rows: Rows, table: Array, prior: Array, crew: Crew = ALONE) -> Array:
    """(n,) log p of each document, its words in order, each predicted from those before it; sums to 1 over documents.

        p(w_i | w_1 … w_i−1) = Σ_k t_k p(w_i|k) / Σ t,   t = α + Σ γ of the words before

    >>> rows = Rows(np.array([0, 1]), np.array([1], np.int32), np.ones(1))
    >>> float(np.exp(prequential(rows, np.array([[0.5, 0.75], [0.5, 0.25]]), np.array([1.0, 1.0]))[0]))
    0.375
    """
    work = float(rows.data.sum()) * table.shape[1]
    if not compiled(work):
        return twins.prequential(rows, table, prior)
    from deciban.topics.kernels.folding import prequential as run

    out = np.empty(len(rows))
    crew.share(lambda begin, end: run(*rows, table, prior, out, begin, end), rows.indptr, work)
    return out


def word_rows(words: Array, counts: Array, scale: float, beta: float, inverse: Array, crew: Crew = ALONE) -> Array:
    """p(w|t) of some words: (counts·scale + β)·inverse, (words, K)."""
    work = len(words) * counts.shape[1]
    scale, beta = counts.dtype.type(scale), counts.dtype.type(beta)
    if not compiled(PASSES * work):
        return (counts[words] * scale + beta) * inverse
    from deciban.topics.kernels.compiled import word_rows as run

    table = np.empty((len(words), counts.shape[1]), counts.dtype)
    fixed = (words, counts, scale, beta, inverse, table)
    crew.share(lambda begin, end: run(*fixed, begin, end), np.arange(len(words) + 1), work)
    return table


def add_rows(words: Array, found: Array, factor: float, counts: Array, crew: Crew = ALONE) -> None:
    """Add factor · found to the rows of some words, no two of them alike."""
    work = found.size
    factor = counts.dtype.type(factor)
    if not compiled(PASSES * work):
        counts[words] += factor * found
        return
    from deciban.topics.kernels.compiled import add_rows as run

    crew.share(lambda begin, end: run(words, found, factor, counts, begin, end), np.arange(len(words) + 1), work)


# -- gibbs ----------
# Collapsed Gibbs sampling, one token after the other.

PYTHON = 1000  # elementary operations that take as long as a token in plain Python


def gibbs_sweep(
    limits: Array,
    words: Array,
    topics: Array,
    of_document: Array,
    of_word: Array,
    of_all: Array,
    alpha: Array,
    beta: float,
    draws: Array,
) -> None:
    """Draw the topic of each token given all others; topics and counts change in place.

    Tokens of document d are words[limits[d] : limits[d + 1]]; draws are uniform numbers, one a token.
    """
    if not compiled(len(words) * PYTHON):
        twins.gibbs_sweep(limits, words, topics, of_document, of_word, of_all, alpha, beta, draws)
        return
    from deciban.topics.kernels.compiled import gibbs_sweep as run

    run(limits, words, topics, of_document, of_word, of_all, alpha, beta, draws)
