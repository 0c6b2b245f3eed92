"""Streams of feature numbers gathered: counts per class, sparse rows, scores. `fast` says kernel or twin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np

from ..choice import Array, or_unweighted, readable
from . import plain
from .chunks import Stream

MOST_IN_INT32 = 2**31 - 1
_FIRST_WIDTH = 2**12

Result = TypeVar("Result")


def in_parallel(act: Callable[..., Result], arguments: Sequence[tuple[Any, ...]]) -> list[Result]:
    """Results in order, of one thread for each set of arguments."""
    if len(arguments) == 1:
        return [act(*arguments[0])]
    with ThreadPoolExecutor(len(arguments)) as pool:
        return list(pool.map(lambda given: act(*given), arguments))


def relabelled(stream: Stream, labels: Array, fast: bool) -> Stream:
    """A stream of labels[number], without −1; it may take the place of the one given."""
    if not fast:
        return Stream(*plain.relabel(*stream, labels))
    from .consumers import relabel

    left = relabel(stream.ids, stream.lengths, labels)
    return Stream(stream.ids[:left], stream.lengths)


class Tally:
    """Counts per class for one level of features, whose number may grow.

    The counts of a class lie side by side: features are numbered as they come, the frequent ones soon, so that those
    which are counted most share a few cache lines.
    """

    def __init__(self, K: int, weighted: bool, fast: bool) -> None:
        self.fast, self.total = fast, 0
        self.counts = np.zeros((K, _FIRST_WIDTH), np.float64 if weighted else np.int32)

    def add(self, stream: Stream, size: int, codes: Array, weight: Array | None) -> None:
        """Count a stream whose numbers are below `size`."""
        self._make_room(size, len(stream.ids))
        if self.fast:
            from .consumers import add_class_counts

            add_class_counts(stream.ids, stream.lengths, readable(codes, np.int64), or_unweighted(weight), self.counts)
        else:
            new = plain.class_counts(*stream, codes, weight, *self.counts.shape)
            self.counts += new.astype(self.counts.dtype)

    def _make_room(self, size: int, tokens: int) -> None:
        self.total += tokens
        K, width = self.counts.shape
        dtype = self.counts.dtype
        if dtype == np.int32 and self.total > MOST_IN_INT32:
            dtype = np.dtype(np.int64)
        if size > width or dtype != self.counts.dtype:
            counts = np.zeros((K, max(2 * size, width)), dtype)
            counts[:, :width] = self.counts
            self.counts = counts

    def place(self, columns: Array, out: Array) -> None:
        """Add the counts to out[:, columns], leaving out features whose column is −1."""
        counts = self.counts[:, : len(columns)]
        columns = columns[: counts.shape[1]]
        kept = np.flatnonzero(columns >= 0)
        shared = len(kept) and np.bincount(columns[kept]).max() > 1
        for mine, theirs in zip(counts, out):
            if shared:
                theirs += np.bincount(columns[kept], mine[kept], len(theirs))
            elif len(kept) == len(columns):
                theirs[columns] += mine
            else:
                theirs[columns[kept]] += mine[kept]


class Presence:
    """Streams with each feature once a document."""

    def __init__(self, fast: bool) -> None:
        self.fast, self.row = fast, 1
        self.last_row = np.zeros(0, np.int64)

    def __call__(self, stream: Stream, size: int) -> Stream:
        """A copy of the stream; its numbers are below `size`."""
        if not self.fast:
            return Stream(*plain.distinct(*stream))
        from .consumers import distinct

        if size > len(self.last_row):
            self.last_row = np.concatenate([self.last_row, np.zeros(2 * size - len(self.last_row), np.int64)])
        ids, lengths = stream.ids.copy(), stream.lengths.copy()
        left = distinct(ids, lengths, self.last_row, self.row)
        self.row += len(lengths)
        return Stream(ids[:left], lengths)


def sparse_rows(
    read: Sequence[Sequence[Stream]], columns: Sequence[Array], V: int, binary: bool, fast: bool
) -> tuple[Array, Array, Array]:
    """Data, indices and row ends of chunks' streams; columns[l][number] is a level's feature's column, or −1.

    Indices are in order within rows.
    """
    n = sum(len(streams[0].lengths) for streams in read)
    if not fast:
        return _plain_rows(read, columns, n, binary)
    from .sparse_rows import sorted_rows

    total = sum(len(stream.ids) for streams in read for stream in streams)
    indices, data, ends = np.empty(total, np.int32), np.empty(total, np.int64), np.empty(n, np.int64)
    counts = np.zeros(V, np.int32)
    bits = [np.zeros((V >> shift) + 1, np.uint64) for shift in (6, 12, 18)]
    sizes = np.array([len(level) for level in columns])
    flat = np.concatenate(columns).astype(np.int32, copy=False)
    row = written = 0
    for streams in read:
        m = len(streams[0].lengths)
        ids = streams[0].ids if len(streams) == 1 else np.concatenate([stream.ids for stream in streams])
        starts = np.zeros((len(streams), m + 1), np.int64)
        for level, stream in enumerate(streams):
            np.cumsum(stream.lengths, out=starts[level, 1:])
        amounts = np.array([len(stream.ids) for stream in streams])
        starts += (np.cumsum(amounts) - amounts)[:, None]
        out = indices, data, ends[row : row + m]
        first = np.cumsum(sizes) - sizes
        written = sorted_rows(ids, starts, flat, first, binary, counts, *bits, *out, written)
        row += m
    indices.resize(written, refcheck=False)
    data.resize(written, refcheck=False)
    return data, indices, ends


def _plain_rows(
    read: Sequence[Sequence[Stream]], columns: Sequence[Array], n: int, binary: bool
) -> tuple[Array, Array, Array]:
    rows, places = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    first = 0
    for streams in read:
        m = len(streams[0].lengths)
        for level, stream in enumerate(streams):
            rows.append(np.repeat(np.arange(first, first + m), stream.lengths))
            places.append(columns[level][stream.ids].astype(np.int64))
        first += m
    row, column = np.concatenate(rows), np.concatenate(places)
    data, indices, ends = plain.sorted_rows(row[column >= 0], column[column >= 0], n)
    return np.minimum(data, 1) if binary else data, indices, ends


def add_scores(stream: Stream, weights: Array, bias: Array, out: Array, fast: bool) -> None:
    """Write bias + Σ weights[number] of each document to the rows of out."""
    if not fast:
        out[:] = plain.scores(*stream, weights, bias)
        return
    from .consumers import add_scores as run

    run(stream.ids, stream.lengths, weights, bias, out)
