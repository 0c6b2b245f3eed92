"""The plain numpy twins of the loops over topics: entries × K numbers at once, for small inputs."""

from __future__ import annotations

from typing import Any

import numpy as np

from deciban.kernels.choice import Array
from deciban.topics.kernels.layout import Columns, Rows

TINY = 1e-30


def _sums(starts: Array, entries: Array, values: Array) -> Array:
    """Σ of the values of each group of entries."""
    import scipy.sparse as sp

    groups = sp.csr_array((np.ones(len(entries), values.dtype), entries, starts), (len(starts) - 1, len(values)))
    return groups @ values


def _of_documents(rows: Rows, values: Array) -> Array:
    return _sums(rows.indptr, np.arange(rows.size), values)


def _excluded(t: Array, p: Array, near: Array, inverse: Array, low: float, floor: float) -> Array:
    own = t * p * near[:, None]
    return np.maximum(t - own, low) * np.maximum(p - own * inverse, floor)


def excluding_documents(
    rows: Rows, table: Array, inverse: Array, shares: Array, low: float, floor: float, near: Array
) -> tuple[Array, Array, Array]:
    """Counts of the documents, and of each entry 1/Σ t·p and what γ is scaled by."""
    t, p = shares[rows.owners()], table[rows.indices]
    parts = _excluded(t, p, near, inverse, low, floor)
    scale = rows.data / (parts.sum(axis=1) + TINY)
    found = 1 / ((t * p).sum(axis=1) + TINY)
    return _of_documents(rows, scale[:, None] * parts), found.astype(table.dtype), scale.astype(table.dtype)


def excluding_words(
    columns: Columns, shares: Array, near: Array, scale: Array, table: Array, inverse: Array, low: float, floor: float
) -> Array:
    """Counts of the words."""
    word = np.repeat(np.arange(len(table)), np.diff(columns.starts))
    at = columns.entries
    parts = _excluded(shares[columns.documents], table[word], near[at], inverse, low, floor) * scale[at, None]
    return _sums(columns.starts, np.arange(len(at)), parts)


def plain_counts(rows: Rows, table: Array, shares: Array) -> Array:
    """Counts of the documents."""
    p = table[rows.indices]
    whole = np.einsum("jk,jk->j", shares[rows.owners()], p)
    ratio = (rows.data / (whole + TINY)).astype(table.dtype)
    return shares * _of_documents(rows, ratio[:, None] * p)


def row_log_likelihoods(rows: Rows, table: Array, shares: Array) -> Array:
    """Σ c log Σ t·p of each document."""
    whole = np.einsum("jk,jk->j", shares[rows.owners()].astype(float), table[rows.indices].astype(float))
    with np.errstate(divide="ignore"):
        return np.bincount(rows.owners(), rows.data * np.log(whole), len(rows))


def fold_in(rows: Rows, table: Array, prior: Array, most: int, tolerance: float) -> Array:
    """Counts of the documents; each stops by itself."""
    owner, p = rows.owners(), table[rows.indices]
    c, lengths = rows.data[:, None], rows.lengths()
    held = np.zeros_like(p)
    counts = np.zeros((len(rows), table.shape[1]), table.dtype)
    going = lengths > 0
    for _ in range(most):
        active = going[owner]
        rest = np.maximum(counts[owner] - held, 0)
        new = (rest + prior) * p
        new /= new.sum(axis=1, keepdims=True)
        held = np.where(active[:, None], new, held)
        old, counts = counts, _of_documents(rows, c * held)
        going = going & (np.abs(counts - old).sum(axis=1) > tolerance * lengths)
        if not going.any():
            break
    return counts


def entry_shares(
    rows: Rows, prior: Array, beta: float, of_document: Array, of_word: Array, of_all: Array, held: Array
) -> Array:
    """γ of each entry, from the old ones."""
    document = np.maximum(of_document[rows.owners()] - held, 0) + prior
    word = np.maximum(of_word[rows.indices] - held, 0) + beta
    new = document * word / (np.maximum(of_all - held, 0) + len(of_word) * beta)
    return (new / new.sum(axis=1, keepdims=True)).astype(held.dtype)


def sum_entries(starts: Array, entries: Array, data: Array, held: Array) -> Array:
    """Σ c γ of each group of entries."""
    return _sums(starts, entries, data[:, None] * held)


def prequential(rows: Rows, table: Array, prior: Array) -> Array:
    """Σ log p(word | words before it) of each document; a token at a time in all documents at once."""
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
    """Draw the topic of each token anew: tokens depend on each other, so one after the other."""
    whole = len(of_word) * beta
    owner = np.repeat(np.arange(len(limits) - 1), np.diff(limits))
    counts: list[Any] = [of_document, of_word]
    for i, (d, w) in enumerate(zip(owner.tolist(), words.tolist())):
        nd, nw, k = counts[0][d], counts[1][w], topics[i]
        for held in (nd, nw, of_all):
            held[k] -= 1
        sums = np.cumsum((nd + alpha) * (nw + beta) / (of_all + whole))
        k = min(int(np.searchsorted(sums, draws[i] * sums[-1], side="right")), len(sums) - 1)
        for held in (nd, nw, of_all):
            held[k] += 1
        topics[i] = k
