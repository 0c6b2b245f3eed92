"""Streams of feature numbers gathered: counts per class, scores. `fast` says kernel or twin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

import numpy as np

from deciban.kernels.choice import Array, or_unweighted, readable
from deciban.text.kernels import plain
from deciban.text.kernels.plain import Stream

MOST_IN_INT32 = 2**31 - 1
_FIRST_WIDTH = 2**12
FIRST_STEPS = 256

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
    from deciban.text.kernels.compiled_consumers import relabel

    left = relabel(stream.ids, stream.lengths, labels)
    return Stream(stream.ids[:left], stream.lengths)


def without(stream: Stream, number: int, fast: bool) -> Stream:
    """A stream without a number; it may take the place of the one given."""
    if not fast:
        labels = np.arange(number + 1)
        labels[number] = -1
        return relabelled(stream, labels, fast)
    from deciban.text.kernels.compiled_consumers import without as run

    left = run(stream.ids, stream.lengths, number)
    return Stream(stream.ids[:left], stream.lengths)


class Tally:
    """Counts per class for one level of features, whose number may grow.

    The counts of a class lie side by side: features are numbered as they come, the frequent ones soon, so that those
    which are counted most share a few cache lines.
    """

    def __init__(self, K: int, weighted: bool, fast: bool) -> None:
        self.fast, self.total = fast, 0
        self.counts = np.zeros((K, _FIRST_WIDTH), np.float64 if weighted else np.int32)

    def add(
        self, stream: Stream, size: int, codes: Array, weight: Array | None, K: int, amounts: Amounts | None = None
    ) -> None:
        """Count a stream whose numbers are below `size`, and class codes below K; each token by its amount, or 1."""
        self._make_room(K, size, len(stream.ids))
        if self.fast:
            from deciban.text.kernels.compiled_consumers import add_class_amounts, add_class_counts

            given = readable(codes, np.int64), or_unweighted(weight)
            if amounts is None:
                add_class_counts(*stream, *given, self.counts)
            else:
                add_class_amounts(*stream, *given, *amounts.ready(stream, size), self.counts)
        else:
            values = None if amounts is None else amounts(stream, size)
            new = plain.class_counts(*stream, codes, weight, *self.counts.shape, values)
            self.counts += new.astype(self.counts.dtype)

    def _make_room(self, K: int, size: int, tokens: int) -> None:
        self.total += tokens
        classes, width = self.counts.shape
        dtype = self.counts.dtype
        if dtype == np.int32 and self.total > MOST_IN_INT32:
            dtype = np.dtype(np.int64)
        if size >= width or classes < K or dtype != self.counts.dtype:
            # Memory that nothing is counted in costs nothing.
            counts = np.zeros((max(K, classes), 2 * size if size >= width else width), dtype)
            counts[:classes, :width] = self.counts
            self.counts = counts

    def place(self, columns: Array, out: Array) -> None:
        """Add the counts to out[:, columns], leaving out features whose column is −1."""
        columns = columns[: self.counts.shape[1]]  # others may have found more
        if self.fast:
            from deciban.text.kernels.compiled_consumers import place_counts

            place_counts(self.counts, readable(columns, np.int32), out)
        else:
            plain.place_counts(self.counts, columns, out)


class Presence:
    """Streams with each feature once a document."""

    def __init__(self, fast: bool) -> None:
        self.fast, self.row = fast, 1
        self.last_row = np.zeros(0, np.int64)

    def __call__(self, stream: Stream, size: int) -> Stream:
        """A copy of the stream; its numbers are below `size`."""
        if not self.fast:
            return Stream(*plain.distinct(*stream))
        from deciban.text.kernels.compiled_consumers import distinct

        if size > len(self.last_row):
            self.last_row = np.concatenate([self.last_row, np.zeros(2 * size - len(self.last_row), np.int64)])
        ids, lengths = stream.ids.copy(), stream.lengths.copy()
        left = distinct(ids, lengths, self.last_row, self.row)
        self.row += len(lengths)
        return Stream(ids[:left], lengths)


class Amounts:
    """What each token adds, where a word that occurs t times counts steps[1] + … + steps[t]."""

    def __init__(self, steps: Callable[[int], Array], fast: bool) -> None:
        self.make, self.fast, self.mark = steps, fast, 0
        self.steps, self.state = steps(FIRST_STEPS), np.zeros(0, np.int32)

    def __call__(self, stream: Stream, size: int) -> Array:
        """The amount of each token of a stream whose numbers are below `size`."""
        ready = self.ready(stream, size)
        if not self.fast:
            return plain.amounts(*stream, self.steps)
        from deciban.text.kernels.compiled_consumers import amounts

        values = np.empty(len(stream.ids))
        amounts(*stream, *ready, values)
        return values

    def ready(self, stream: Stream, size: int) -> tuple[Array, int, Array]:
        """What kernels need to find the amounts of a stream: the state that they change, its mark, and the steps."""
        longest = int(stream.lengths.max(initial=0))
        if longest >= len(self.steps):
            self.steps = self.make(2 * longest)
        if size > len(self.state):
            self.state = np.concatenate([self.state, np.zeros(2 * size - len(self.state), np.int32)])
        if self.mark + len(stream.ids) > MOST_IN_INT32:
            self.state[:], self.mark = 0, 0
        mark, self.mark = self.mark, self.mark + len(stream.ids)
        return self.state, mark, self.steps


def add_scores(
    stream: Stream, weights: Array, bias: Array, out: Array, fast: bool, values: Array | None = None
) -> None:
    """Write bias + Σ weights[number], times the token's value if it has one, of each document to the rows of out."""
    if not fast:
        out[:] = plain.scores(*stream, weights, bias, values)
        return
    from deciban.text.kernels.compiled_consumers import add_scaled_scores
    from deciban.text.kernels.compiled_consumers import add_scores as run

    if values is None:
        run(stream.ids, stream.lengths, weights, bias, out)
    else:
        add_scaled_scores(stream.ids, stream.lengths, values, weights, bias, out)


# -- gathering ----------
# Streams of feature numbers to one sparse matrix. One thread does it: it is a matter of memory, not of work.


class Part(NamedTuple):
    """Some documents: the streams of each chunk, and the column of each number of each stream, −1 for none."""

    read: Sequence[Sequence[Stream]]
    columns: Sequence[Array]

    @property
    def rows(self) -> int:
        return sum(len(streams[0].lengths) for streams in self.read)

    @property
    def tokens(self) -> int:
        return sum(len(stream.ids) for streams in self.read for stream in streams)


def sparse_rows(parts: Sequence[Part], V: int, binary: bool, fast: bool) -> tuple[Array, Array, Array]:
    """Data, indices and row pointers, with indices in order within rows."""
    if not fast:
        return _plain_rows(parts, binary)
    total = sum(part.tokens for part in parts)
    indices, data = np.empty(total, np.int32), np.empty(total, np.int64)
    ends = [np.zeros(1, np.int64)]
    for part in parts:
        if part.rows:
            ends.append(_write(part, V, binary, indices, data, int(ends[-1][-1])))
    written = int(ends[-1][-1])
    indices.resize(written, refcheck=False)
    data.resize(written, refcheck=False)
    return data, indices, np.concatenate(ends)


def _write(part: Part, V: int, binary: bool, indices: Array, data: Array, written: int) -> Array:
    """Rows of a part, from entry `written` on; where each ends."""
    from deciban.text.kernels.compiled_consumers import DIGIT, WIDTH, sorted_rows

    ends = np.empty(part.rows, np.int64)
    bits = max(V.bit_length(), 1)
    digits = -(-bits // DIGIT)
    tallies = np.empty(1 << -(-bits // digits), np.int32)
    flat = np.concatenate(part.columns).astype(np.int32, copy=False)
    sizes = np.array([len(level) for level in part.columns])
    row, longest = 0, max(np.sum([stream.lengths for stream in streams], axis=0).max() for streams in part.read)
    work = digits, *np.empty((2, max(longest + 1, 2 * WIDTH)), np.int32), tallies
    for streams in part.read:
        m = len(streams[0].lengths)
        ids = streams[0].ids if len(streams) == 1 else np.concatenate([stream.ids for stream in streams])
        starts = np.zeros((len(streams), m + 1), np.int64)
        for level, stream in enumerate(streams):
            np.cumsum(stream.lengths, out=starts[level, 1:])
        amounts = np.array([len(stream.ids) for stream in streams])
        starts += (np.cumsum(amounts) - amounts)[:, None]
        out = indices, data, ends[row : row + m]
        written = sorted_rows(ids, starts, flat, np.cumsum(sizes) - sizes, binary, *work, *out, written)
        row += m
    return ends


def _plain_rows(parts: Sequence[Part], binary: bool) -> tuple[Array, Array, Array]:
    rows, places = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    first = 0
    for part in parts:
        for streams in part.read:
            m = len(streams[0].lengths)
            for stream, columns in zip(streams, part.columns):
                rows.append(np.repeat(np.arange(first, first + m), stream.lengths))
                places.append(columns[stream.ids].astype(np.int64))
            first += m
    row, column = np.concatenate(rows), np.concatenate(places)
    data, indices, ends = plain.sorted_rows(row[column >= 0], column[column >= 0], first)
    return np.minimum(data, 1) if binary else data, indices, np.append(0, ends)
