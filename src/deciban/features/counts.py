"""Documents counted in one pass over the text: a sparse row for each, or sums per class.

Large inputs go to compiled kernels, in threads where there are cores; small ones to plain Python. Unweighted counts are
the same to the bit, whichever did the work and however many.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deciban.errors import InputError
from deciban.features.documents import Documents
from deciban.features.limits import Limits
from deciban.features.reading import Reading
from deciban.features.tokens import Tokens
from deciban.features.vocabulary import Vocabulary
from deciban.kernels.text.chunks import Stream
from deciban.kernels.text.counting import Presence, Tally
from deciban.kernels.text.gathering import Part, sparse_rows

if TYPE_CHECKING:
    import scipy.sparse as sp

Array = NDArray[Any]

WORDS, NO_LIMITS = Tokens(), Limits()


@dataclass(frozen=True, eq=False)
class ClassCounts:
    """How often each feature, in how many documents, of each class."""

    vocabulary: Vocabulary
    counts: Array  # (K, V), or (K, V + 1) with unk last: Σ w · occurrences
    rows: Array  # (K,)  Σ w
    lengths: Array  # (n,)  features of each document, those outside the vocabulary too where they are unk
    documents: Array | None  # as counts: Σ w of documents that hold it; None unless asked for


def count_rows(
    texts: Any,
    tokens: Tokens = WORDS,
    vocabulary: Vocabulary | None = None,
    limits: Limits = NO_LIMITS,
    binary: bool = False,
    threads: int | None = None,
) -> tuple[sp.csr_array, Vocabulary]:
    """A row of counts for each document, and the vocabulary: the one given, or what was found.

    >>> X, vocabulary = count_rows(["to be or", "not to be"])
    >>> list(vocabulary), X.toarray().tolist()
    (['be', 'not', 'or', 'to'], [[1, 0, 1, 1], [1, 1, 0, 1]])
    """
    reading = Reading(Documents.of(texts), tokens, vocabulary, threads)

    def read(first: int, last: int) -> tuple[Any, list[list[Stream]]]:
        reader = reading.reader()
        return reader, [reading.streams(reader, chunk) for chunk in reading.documents.chunks(first, last)]

    parts = reading.run(read)
    known, places = reading.places([reader for reader, _ in parts])
    if vocabulary is None and not limits.none:
        everything = [Part(streams, place) for (_, streams), place in zip(parts, places)]
        data, indices, _ = sparse_rows(everything, len(known), binary, reading.fast)
        held, total = np.bincount(indices, minlength=len(known)), np.bincount(indices, data, len(known))
        kept = limits.kept(len(reading.documents), total.astype(np.int64), held[None])
        known, places = _restricted(known, kept, places, limits)
    found = [Part(streams, place) for (_, streams), place in zip(parts, places)]
    return _matrix(*sparse_rows(found, known.columns, binary, reading.fast), known.columns), known


def count_classes(
    texts: Any,
    codes: Array,
    K: int,
    tokens: Tokens = WORDS,
    vocabulary: Vocabulary | None = None,
    limits: Limits = NO_LIMITS,
    weight: Array | None = None,
    presence: bool = False,
    threads: int | None = None,
) -> ClassCounts:
    """Counts per class, codes[i] in [0, K) being document i's; with `presence`, documents per class too.

    A document of weight 0 is as if absent.

    >>> found = count_classes(["to be or", "not to be"], np.array([0, 1]), 2)
    >>> list(found.vocabulary), found.counts.tolist()
    (['be', 'not', 'or', 'to'], [[1.0, 0.0, 1.0, 1.0], [1.0, 1.0, 0.0, 1.0]])
    """
    documents, codes = Documents.of(texts), _checked(codes, len(Documents.of(texts)), K)
    n, counted = len(documents), np.arange(len(documents))
    if weight is not None:
        weight = np.asarray(weight, np.float64)
        if not weight.all():
            counted = np.flatnonzero(weight)
            documents, codes, weight = documents.take(counted), codes[counted], weight[counted]
    reading = Reading(documents, tokens, vocabulary, threads)
    both = presence or (vocabulary is None and not limits.none)
    parts = reading.run(lambda first, last: _counted(reading, first, last, codes, weight, K, both))
    known, places = reading.places([part.reader for part in parts])
    rows = np.bincount(codes, weight, K).astype(np.float64)
    counts = _placed([part.tallies for part in parts], places, K, known.columns)
    held = _placed([part.present for part in parts], places, K, known.columns) if both else None
    if vocabulary is None and not limits.none and held is not None:
        kept = limits.kept(rows.sum(), counts.sum(axis=0), held, rows)
        known, places = _restricted(known, kept, places, limits)
        if known.unk and presence:
            # How many documents hold any word outside, only the documents know.
            return count_classes(texts, codes, K, tokens, known, weight=weight, presence=True, threads=threads)
        counts = _placed([part.tallies for part in parts], places, K, known.columns)
        held = held[:, kept]
    lengths = np.zeros(n, np.int64)
    lengths[counted] = np.concatenate([np.zeros(0, np.int64), *(some for part in parts for some in part.lengths)])
    return ClassCounts(known, counts, rows, lengths, held if presence else None)


@dataclass(frozen=True)
class _Part:
    """What one thread has counted."""

    reader: Any
    tallies: list[Tally]  # of each stream
    present: list[Tally]  # with each feature once a document
    lengths: list[Array]  # of each chunk


def _counted(reading: Reading, first: int, last: int, codes: Array, weight: Array | None, K: int, both: bool) -> _Part:
    reader = reading.reader()
    levels = range(len(reading.sizes(reader)))
    tallies, present = ([Tally(K, weight is not None, reading.fast) for _ in levels] for _ in (0, 1))
    once = [Presence(reading.fast) for _ in levels]
    lengths = []
    for chunk in reading.documents.chunks(first, last):
        streams = reading.streams(reader, chunk)
        here = slice(chunk.first, chunk.first + len(chunk.offsets) - 1)
        weights = None if weight is None else weight[here]
        for level, (stream, size) in enumerate(zip(streams, reading.sizes(reader))):
            tallies[level].add(stream, size, codes[here], weights)
            if both:
                present[level].add(once[level](stream, size), size, codes[here], weights)
        lengths.append(np.sum([stream.lengths for stream in streams], axis=0))
    return _Part(reader, tallies, present, lengths)


def _checked(codes: Array, n: int, K: int) -> Array:
    codes = np.asarray(codes, np.int64)
    if codes.shape != (n,):
        raise InputError(f"{n} documents, but class codes of shape {codes.shape}. Give one a document.")
    if n and (codes.min() < 0 or codes.max() >= K):
        raise InputError(f"class codes run from {codes.min()} to {codes.max()}; they must lie in [0, {K}).")
    return codes


def _placed(parts: Sequence[Sequence[Tally]], places: Sequence[Sequence[Array]], K: int, V: int) -> Array:
    """Counts of all parts and levels under their columns."""
    out = np.zeros((K, V))
    for tallies, levels in zip(parts, places):
        for tally, columns in zip(tallies, levels):
            tally.place(columns, out)
    return out


def _restricted(
    known: Vocabulary, kept: Array, places: Sequence[Sequence[Array]], limits: Limits
) -> tuple[Vocabulary, list[list[Array]]]:
    """A vocabulary of some columns: what is outside is unk where their number was capped, else dropped."""
    smaller = replace(known.take(kept), kind="learnt" if limits.most is None else "capped")
    new = np.full(len(known), len(kept) if smaller.unk else -1, np.int32)
    new[kept] = np.arange(len(kept))
    return smaller, [[new[level] for level in levels] for levels in places]


def _matrix(data: Array, indices: Array, pointers: Array, V: int) -> sp.csr_array:
    import scipy.sparse as sp

    width = np.int32 if len(data) <= np.iinfo(np.int32).max else np.int64
    pieces = data, indices.astype(width, copy=False), pointers.astype(width, copy=False)
    matrix = sp.csr_array(pieces, (len(pointers) - 1, V))
    matrix.has_sorted_indices = matrix.has_canonical_format = True
    return matrix
