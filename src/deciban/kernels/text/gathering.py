"""Streams of feature numbers to one sparse matrix. One thread does it: it is a matter of memory, not of work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..choice import Array
from . import plain
from .chunks import Stream


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
    from .sparse_rows import DIGIT, WIDTH, sorted_rows

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
