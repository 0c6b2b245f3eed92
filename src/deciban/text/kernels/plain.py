"""Documents as kernels take them, and what they become."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log
from typing import NamedTuple

import numpy as np

from deciban.kernels.choice import Array


class Chunk(NamedTuple):
    """Some documents: number i is text[offsets[i] : offsets[i + 1]] in UTF-8, and `first` + i among all."""

    text: Array
    offsets: Array
    first: int = 0


class Stream(NamedTuple):
    """Numbers of the words of some documents, one document after the other."""

    ids: Array  # int32
    lengths: Array  # (n,) of each document


class Finish(NamedTuple):
    """How scores of a document of L features become log-probabilities: s(L) · scores + offsets, normalised.

    s(L) = exp(law₀ − law₁ (log max(L, law₃) − law₂)),   or 1 where there is no law
    """

    law: Array  # (4,) or empty
    offsets: Array  # (K,)
    prior: Array  # (K,) the answer where all scores are impossible, or where there is a law and they are equal


class InvalidTextError(ValueError):
    """A document that is not UTF-8."""

    def __init__(self, document: int) -> None:
        super().__init__(f"document {document} is not valid UTF-8")
        self.document = document


def interleaved(streams: Sequence[Stream]) -> Stream:
    """Several streams of the same documents as one: of each document, first what the first stream has.

    >>> interleaved([Stream(np.array([1, 2]), np.array([1, 0, 1])), Stream(np.array([7, 8, 9]), np.array([0, 2, 1]))])
    Stream(ids=array([1, 7, 8, 2, 9]), lengths=array([1, 2, 2]))
    """
    if len(streams) == 1:
        return streams[0]
    lengths = np.sum([stream.lengths for stream in streams], axis=0)
    ids = np.empty(lengths.sum(), streams[0].ids.dtype)
    starts = np.cumsum(lengths) - lengths
    for stream in streams:
        before = np.cumsum(stream.lengths) - stream.lengths
        ids[np.repeat(starts - before, stream.lengths) + np.arange(len(stream.ids))] = stream.ids
        starts = starts + stream.lengths
    return Stream(ids, lengths)


# -- plain ----------
# The twins of the consumers of streams, written to be read.


def relabel(ids: Array, lengths: Array, labels: Array) -> tuple[Array, Array]:
    """The labels of the numbers, without −1."""
    row = np.repeat(np.arange(len(lengths)), lengths)
    new = labels[ids]
    return new[new >= 0], np.bincount(row[new >= 0], minlength=len(lengths))


def distinct(ids: Array, lengths: Array) -> tuple[Array, Array]:
    """Each number once a document, in order."""
    row = np.repeat(np.arange(len(lengths)), lengths)
    pairs = np.unique(np.stack([row, ids]), axis=1)
    return pairs[1], np.bincount(pairs[0], minlength=len(lengths))


def amounts(ids: Array, lengths: Array, steps: Array) -> Array:
    """steps[t] for each token that is the t-th of its number in its document."""
    row = np.repeat(np.arange(len(lengths)), lengths)
    order = np.lexsort((ids, row))
    new = np.append(True, (np.diff(ids[order]) != 0) | (np.diff(row[order]) != 0))[: len(ids)]
    first = np.maximum.accumulate(np.where(new, np.arange(len(ids)), 0))
    values = np.empty(len(ids))
    values[order] = steps[np.minimum(np.arange(len(ids)) - first + 1, len(steps) - 1)]
    return values


def class_counts(
    ids: Array, lengths: Array, codes: Array, weight: Array | None, K: int, V: int, values: Array | None = None
) -> Array:
    """Σ of weights per class and number, times values where tokens have some, (K, V)."""
    place = np.repeat(codes, lengths) * V + ids
    amount = None if weight is None else np.repeat(weight, lengths)
    if values is not None:
        amount = values if amount is None else amount * values
    return np.bincount(place, amount, K * V).reshape(K, V)


def place_counts(counts: Array, columns: Array, out: Array) -> None:
    """Add counts[k, i] to out[k, columns[i]], unless the column is −1."""
    kept = np.flatnonzero(columns >= 0)
    for mine, theirs in zip(counts, out):
        theirs += np.bincount(columns[kept], mine[kept], len(theirs))


def scores(ids: Array, lengths: Array, weights: Array, bias: Array, values: Array | None = None) -> Array:
    """The bias + Σ weights[id] of each document, times values where tokens have some, (n, K)."""
    ends = np.cumsum(lengths)
    rows = weights[ids] if values is None else weights[ids] * values[:, None]
    return bias + np.array([rows[end - n : end].sum(axis=0) for n, end in zip(lengths, ends)]).reshape(
        len(lengths), len(bias)
    )


def finished(scores: Array, length: int, finish: Finish) -> Array:
    """The answer that scores of one document come to; it may take their place."""
    if len(finish.law):
        if (scores == scores[0]).all():
            return finish.prior.copy()  # a document that says nothing still says nothing
        log_scale, shrinkage, reference, shortest = finish.law
        scores *= exp(log_scale - shrinkage * (log(max(length, shortest)) - reference))
    scores += finish.offsets
    highest = scores.max()
    if highest == -np.inf:  # impossible in every class: the prior is all there is
        return finish.prior.copy()
    scores -= highest
    scores -= log(np.exp(scores).sum())
    return scores


def sorted_rows(rows: Array, columns: Array, n: int) -> tuple[Array, Array, Array]:
    """Counts, columns and row ends of a sparse matrix from a row and a column for each occurrence."""
    width = int(columns.max(initial=0)) + 1
    cells, counts = np.unique(rows * width + columns, return_counts=True)
    ends = np.searchsorted(cells, (np.arange(n) + 1) * width)
    return counts, (cells % width).astype(np.int32), ends
