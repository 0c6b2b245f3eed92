"""Passes of topic models over documents and over words: γ, the share of each of K topics in an entry, and sums of c·γ.

    rows        the documents, CSR: `Rows(indptr, indices, data)`
    columns     the same entries by word: `Columns(starts, documents, entries)`
    table       (V, K) p(w|t), the K numbers of a word side by side
    shares      (n, K) weights of the topics in each document, not scaled to sum to 1

Each document, or in passes over words each word, has its own output, so that results do not depend on the number of
threads, to the bit. Arrays are all float32 or all float64 within a call.

Every pass has a compiled version, in `kernels_compiled`, run by several threads, and one in numpy, at the end of this
module, for small inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from deciban.kernels.choice import Array, compiled, readable
from deciban.kernels.parallel import each, get_threads


# -- counts by document and by word, and their division among threads --------------------------------------------------
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
        """Return the document of each entry, shape (nnz,)."""
        return np.repeat(np.arange(len(self)), np.diff(self.indptr))

    def lengths(self) -> Array:
        """Return the tokens of each document, shape (n,)."""
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


TINY = 1e-30  # added to sums that are divided by
PASSES = 50  # approximate number of passes of a fit, whose total work decides whether to compile
TOKEN_WORK = 1000  # elementary operations that take as long as one token of Gibbs sampling in Python


# -- passes that exclude the token itself ------------------------------------------------------------------------------
def excluding_documents(
    rows: Rows, topics: WordTopics, shares: Array, inverse_norms: Array, pool: ThreadPool = SINGLE_THREAD
) -> tuple[Array, Array, Array]:
    """Make a self-excluding pass over documents: Σ c γ (n, K), 1/Σ t·p (nnz,), and the scale of γ (nnz,).

        γ ∝ max(t − g, low) · max(p − g·inverse_totals, floor),   g = t·p·inverse_norms

    `inverse_norms` is the second result of the last pass, 0 before the first.
    """
    work = rows.size * topics.table.shape[1]
    if not compiled(PASSES * work):
        return _excluding_documents(rows, topics, shares, inverse_norms)
    found = np.empty_like(shares), np.empty_like(inverse_norms), np.empty_like(inverse_norms)
    pool.run(partial(_kernels().excluding_documents, rows, topics, shares, inverse_norms, found), rows.indptr, work)
    return found


def excluding_words(
    columns: Columns,
    topics: WordTopics,
    shares: Array,
    inverse_norms: Array,
    scale: Array,
    pool: ThreadPool = SINGLE_THREAD,
) -> Array:
    """Return Σ c γ of each word (V, K), with the γ of a pass over documents: its shares, inverse norms and scale."""
    work = len(columns.entries) * topics.table.shape[1]
    if not compiled(PASSES * work):
        return _excluding_words(columns, topics, shares, inverse_norms, scale)
    sums = np.empty_like(topics.table)
    run = partial(_kernels().excluding_words, columns, topics, shares, inverse_norms, scale, sums)
    pool.run(run, columns.starts, work)
    return sums


def exact_pass(
    rows: Rows,
    columns: Columns,
    prior: Array,
    beta: float,
    counts: tuple[Array, Array, Array],
    gamma: Array,
    pool: ThreadPool = SINGLE_THREAD,
) -> tuple[Array, tuple[Array, Array, Array]]:
    """Pass of exact CVB0: the new γ of every entry, and the counts that they give, of documents, words and in all.

    `counts` are those of the old γ, which is overwritten.
    """
    work, beta = gamma.size, gamma.dtype.type(beta)
    groups = ((rows.indptr, np.arange(rows.size, dtype=np.int32)), (columns.starts, columns.entries))
    if not compiled(PASSES * work):
        gamma = _exact_pass(rows, prior, beta, counts, gamma)
        sums = [_group_sums(starts, entries, rows.data[:, None] * gamma) for starts, entries in groups]
    else:
        pool.run(partial(_kernels().exact_pass, rows, prior, beta, counts, gamma), rows.indptr, work)
        sums = [np.empty_like(part) for part in counts[:2]]
        for (starts, entries), out in zip(groups, sums):
            pool.run(partial(_kernels().sum_entries, starts, entries, rows.data, gamma, out), starts, work)
    return gamma, (sums[0], sums[1], sums[1].sum(axis=0))


# -- passes that include the token itself ------------------------------------------------------------------------------
def plain_counts(rows: Rows, table: Array, shares: Array, pool: ThreadPool = SINGLE_THREAD) -> Array:
    """Return Σ c γ of each document (n, K), γ = t·p/Σ t·p.

    A pass over words is the same function of `transposed` rows, with `table` and `shares` exchanged.
    """
    work = rows.size * table.shape[1]
    if not compiled(PASSES * work):
        return _plain_counts(rows, table, shares)
    counts = np.empty_like(shares)
    pool.run(partial(_kernels().plain_counts, rows, table, shares, counts), rows.indptr, work)
    return counts


def row_log_likelihoods(rows: Rows, table: Array, shares: Array, pool: ThreadPool = SINGLE_THREAD) -> Array:
    """Return Σ c log Σ t·p of each document, shape (n,)."""
    work = rows.size * table.shape[1]
    if not compiled(PASSES * work):
        return _row_log_likelihoods(rows, table, shares)
    out = np.empty(len(rows))
    pool.run(partial(_kernels().row_log_likelihoods, rows, table, shares, out), rows.indptr, work)
    return out


# -- new documents, with fixed topics ----------------------------------------------------------------------------------
def fold_in(
    rows: Rows,
    table: Array,
    prior: Array,
    most: int = 100,
    tolerance: float = 1e-4,
    pool: ThreadPool = SINGLE_THREAD,
    often: bool = False,
) -> Array:
    """Run CVB0 of new documents with fixed topics: Σ c γ, (n, K). `often`: it is called after every pass of a fit.

    >>> rows = Rows(np.array([0, 1]), np.array([0], np.int32), np.ones(1))
    >>> fold_in(rows, np.array([[0.5, 0.25]]), np.array([1.0, 1.0])).round(3)
    array([[0.667, 0.333]])
    """
    work = rows.size * table.shape[1] * 10
    if not compiled(PASSES * work if often else work):
        return _fold_in(rows, table, prior, most, tolerance)
    counts = np.empty((len(rows), table.shape[1]), table.dtype)
    pool.run(partial(_kernels().fold_in, rows, table, prior, most, tolerance, counts), rows.indptr, work)
    return counts


def prequential(rows: Rows, table: Array, prior: Array, pool: ThreadPool = SINGLE_THREAD) -> Array:
    """Return log p of each document, shape (n,): each word is predicted from those before it.

        p(w_i | w_1 … w_i−1) = Σ_k t_k p(w_i|k) / Σ t,   t = α + Σ γ of the words before

    >>> rows = Rows(np.array([0, 1]), np.array([1], np.int32), np.ones(1))
    >>> float(np.exp(prequential(rows, np.array([[0.5, 0.75], [0.5, 0.25]]), np.array([1.0, 1.0]))[0]))
    0.375
    """
    work = float(rows.data.sum()) * table.shape[1]
    if not compiled(work):
        return _prequential(rows, table, prior)
    out = np.empty(len(rows))
    pool.run(partial(_kernels().prequential, rows, table, prior, out), rows.indptr, work)
    return out


# -- rows of a table of counts -----------------------------------------------------------------------------------------
def word_rows(
    words: Array, counts: Array, scale: float, beta: float, inverse_totals: Array, pool: ThreadPool = SINGLE_THREAD
) -> Array:
    """Return p(w|t) of some words: (counts·scale + β)·inverse_totals, (words, K)."""
    work = len(words) * counts.shape[1]
    scale, beta = counts.dtype.type(scale), counts.dtype.type(beta)
    if not compiled(PASSES * work):
        return (counts[words] * scale + beta) * inverse_totals
    table = np.empty((len(words), counts.shape[1]), counts.dtype)
    run = partial(_kernels().word_rows, words, counts, scale, beta, inverse_totals, table)
    pool.run(run, np.arange(len(words) + 1), work)
    return table


def add_rows(words: Array, added: Array, factor: float, counts: Array, pool: ThreadPool = SINGLE_THREAD) -> None:
    """Add factor · added to the rows of some words, which are all different."""
    factor = counts.dtype.type(factor)
    if not compiled(PASSES * added.size):
        counts[words] += factor * added
    else:
        run = partial(_kernels().add_rows, words, added, factor, counts)
        pool.run(run, np.arange(len(words) + 1), added.size)


# -- collapsed Gibbs sampling ------------------------------------------------------------------------------------------
def gibbs_sweep(
    tokens: TokenTopics, counts: tuple[Array, Array, Array], alpha: Array, beta: float, draws: Array
) -> None:
    """Draw the topic of each token given all others; topics and counts change in place.

    Counts are those of documents, of words, and in all; draws are uniform random numbers, one per token.
    """
    run = _kernels().gibbs_sweep if compiled(len(draws) * TOKEN_WORK) else _gibbs_sweep
    run(tokens, counts, alpha, beta, draws)


def _kernels() -> ModuleType:
    """Return the module of compiled versions, which is imported when one is needed."""
    import deciban.topics.kernels_compiled as kernels

    return kernels


# -- numpy versions: arrays of entries × K -----------------------------------------------------------------------------
def _group_sums(starts: Array, entries: Array, values: Array) -> Array:
    """Sum values over groups of entries; group i is entries[starts[i] : starts[i + 1]]."""
    groups = sp.csr_array((np.ones(len(entries), values.dtype), entries, starts), (len(starts) - 1, len(values)))
    return groups @ values


def _document_sums(rows: Rows, values: Array) -> Array:
    return _group_sums(rows.indptr, np.arange(rows.size), values)


def _excluded(t: Array, p: Array, inverse_norms: Array, topics: WordTopics) -> Array:
    own = t * p * inverse_norms[:, None]
    return np.maximum(t - own, topics.low) * np.maximum(p - own * topics.inverse_totals, topics.floor)


def _excluding_documents(
    rows: Rows, topics: WordTopics, shares: Array, inverse_norms: Array
) -> tuple[Array, Array, Array]:
    t, p = shares[rows.owners()], topics.table[rows.indices]
    parts = _excluded(t, p, inverse_norms, topics)
    scale = rows.data / (parts.sum(axis=1) + TINY)
    norms = 1 / ((t * p).sum(axis=1) + TINY)
    return _document_sums(rows, scale[:, None] * parts), norms.astype(p.dtype), scale.astype(p.dtype)


def _excluding_words(columns: Columns, topics: WordTopics, shares: Array, inverse_norms: Array, scale: Array) -> Array:
    at, p = columns.entries, np.repeat(topics.table, np.diff(columns.starts), axis=0)
    parts = _excluded(shares[columns.documents], p, inverse_norms[at], topics) * scale[at, None]
    return _group_sums(columns.starts, np.arange(len(at)), parts)


def _exact_pass(rows: Rows, prior: Array, beta: float, counts: tuple[Array, Array, Array], gamma: Array) -> Array:
    of_document, of_word, totals = counts
    document = np.maximum(of_document[rows.owners()] - gamma, 0) + prior
    word = np.maximum(of_word[rows.indices] - gamma, 0) + beta
    new = document * word / (np.maximum(totals - gamma, 0) + len(of_word) * beta)
    return (new / new.sum(axis=1, keepdims=True)).astype(gamma.dtype)


def _plain_counts(rows: Rows, table: Array, shares: Array) -> Array:
    p = table[rows.indices]
    whole = np.einsum("jk,jk->j", shares[rows.owners()], p)
    ratio = (rows.data / (whole + TINY)).astype(table.dtype)
    return shares * _document_sums(rows, ratio[:, None] * p)


def _row_log_likelihoods(rows: Rows, table: Array, shares: Array) -> Array:
    whole = np.einsum("jk,jk->j", shares[rows.owners()].astype(float), table[rows.indices].astype(float))
    with np.errstate(divide="ignore"):
        return np.bincount(rows.owners(), rows.data * np.log(whole), len(rows))


def _fold_in(rows: Rows, table: Array, prior: Array, most: int, tolerance: float) -> Array:
    """Fold in all documents at once; each stops when its own counts have converged."""
    owner, p = rows.owners(), table[rows.indices]
    c, lengths = rows.data[:, None], rows.lengths()
    gamma = np.zeros_like(p)
    counts = np.zeros((len(rows), table.shape[1]), table.dtype)
    going = lengths > 0
    for _ in range(most):
        active = going[owner]
        rest = np.maximum(counts[owner] - gamma, 0)
        new = (rest + prior) * p
        new /= new.sum(axis=1, keepdims=True)
        gamma = np.where(active[:, None], new, gamma)
        old, counts = counts, _document_sums(rows, c * gamma)
        going = going & (np.abs(counts - old).sum(axis=1) > tolerance * lengths)
        if not going.any():
            break
    return counts


def _prequential(rows: Rows, table: Array, prior: Array) -> Array:
    """Compute `prequential` one token at a time, in all documents at once."""
    steps = np.ceil(rows.data).astype(np.int64)
    entry = np.repeat(np.arange(rows.size), steps)
    place = np.arange(len(entry)) - np.repeat(np.cumsum(steps) - steps, steps)
    c = np.minimum(rows.data[entry] - place, 1.0)
    owner = rows.owners()[entry]
    starts = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(rows)))])
    t, total = np.tile(prior.astype(float), (len(rows), 1)), np.zeros(len(rows))
    for step in range(int(np.diff(starts).max(initial=0))):
        here = np.flatnonzero(np.diff(starts) > step)
        token = starts[here] + step
        part = t[here] * table[rows.indices[entry[token]]]
        whole = part.sum(axis=1)
        total[here] += c[token] * (np.log(whole) - np.log(t[here].sum(axis=1)))
        t[here] += (c[token] / whole)[:, None] * part
    return total


def _gibbs_sweep(
    tokens: TokenTopics, counts: tuple[Array, Array, Array], alpha: Array, beta: float, draws: Array
) -> None:
    """Draw one token after the other, because each depends on all others."""
    (limits, words, topics), (of_document, of_word, totals) = tokens, counts
    owner = np.repeat(np.arange(len(limits) - 1), np.diff(limits))
    for i, (d, w) in enumerate(zip(owner.tolist(), words.tolist())):
        own = of_document[d], of_word[w], totals
        for part in own:
            part[topics[i]] -= 1
        sums = np.cumsum((own[0] + alpha) * (own[1] + beta) / (totals + len(of_word) * beta))
        topics[i] = min(int(np.searchsorted(sums, draws[i] * sums[-1], side="right")), len(sums) - 1)
        for part in own:
            part[topics[i]] += 1
