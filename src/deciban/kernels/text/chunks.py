"""Documents as kernels take them, and what they become."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..choice import Array


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
