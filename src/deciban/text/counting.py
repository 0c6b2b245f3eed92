"""Documents counted in one pass over the text: a sparse row for each.

Large inputs go to compiled kernels, in threads where there are cores; small ones to plain Python. Unweighted counts are
the same to the bit, whichever did the work and however many.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deciban.errors import InputError
from deciban.text.documents import Documents
from deciban.text.kernels.streams import Amounts, Part, Presence, Stream, StreamCounts, sparse_rows
from deciban.text.reading import KnownWords, Reading
from deciban.text.tokens import WORDS, Tokens
from deciban.text.vocabulary import NO_LIMITS, Limits, Vocabulary, restricted

if TYPE_CHECKING:
    import scipy.sparse as sp


from collections.abc import Callable
from dataclasses import dataclass

Array = NDArray[Any]


class Counted(NamedTuple):
    """Rows of counts."""

    matrix: sp.csr_array  # (n, V), or (n, V + 1) with unk last
    vocabulary: Vocabulary
    lengths: Array  # (n,)  features of each document, in the vocabulary or not


class Read(NamedTuple):
    """What a reader made of a range of documents."""

    reader: Any
    streams: list[list[Stream]]  # of each chunk
    lengths: list[Array]


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
    parts = reading.run(lambda first, last: _read(reading, reading.reader(), first, last))
    known, places = reading.places([part.reader for part in parts])
    if vocabulary is None:
        if not len(known):
            raise InputError("empty vocabulary; perhaps the documents only contain stop words")
        if not limits.none:
            everything = _gathered(parts, places, known, binary, reading.fast).matrix
            held = np.bincount(everything.indices, minlength=len(known))
            total = np.bincount(everything.indices, everything.data, len(known))
            kept = limits.kept(len(reading.documents), total.astype(np.int64), held[None])
            known, places = restricted(known, kept, places, limits)
    return _gathered(parts, places, known, binary, reading.fast).matrix, known


def count_openly(texts: Any, tokens: Tokens = WORDS) -> Counted:
    """Rows of counts of every feature there is, perhaps none."""
    reading = Reading(Documents.of(texts), tokens)
    parts = reading.run(lambda first, last: _read(reading, reading.reader(), first, last))
    known, places = reading.places([part.reader for part in parts])
    return _gathered(parts, places, known, False, reading.fast)


def count_known(texts: Any, known: KnownWords) -> Counted:
    """Rows of counts of a vocabulary's features.

    >>> X, _, lengths = count_known(["to be or not"], KnownWords(Vocabulary.of(["be", "to"])))
    >>> X.toarray(), lengths
    (array([[1, 1, 2]]), array([4]))
    """
    documents = Documents.of(texts)
    fast: list[bool] = []

    def read(reading: Reading, reader: Any, first: int, last: int) -> Read:
        fast.append(reading.fast)
        return _read(reading, reader, first, last)

    parts = known.passed(documents, read)
    columns = [np.arange(known.vocabulary.columns, dtype=np.int32)]
    return _gathered(parts, [columns] * len(parts), known.vocabulary, False, fast[0])


def _read(reading: Reading, reader: Any, first: int, last: int) -> Read:
    pairs = [reading.read(reader, chunk) for chunk in reading.documents.chunks(first, last)]
    return Read(reader, [streams for streams, _ in pairs], [lengths for _, lengths in pairs])


def _gathered(
    parts: Sequence[Read], places: Sequence[Sequence[Array]], known: Vocabulary, binary: bool, fast: bool
) -> Counted:
    found = [Part(part.streams, place) for part, place in zip(parts, places)]
    matrix = _matrix(*sparse_rows(found, known.columns, binary, fast), known.columns)
    lengths = [np.zeros(0, np.int64), *(some for part in parts for some in part.lengths)]
    return Counted(matrix, known, np.concatenate(lengths))


def _matrix(data: Array, indices: Array, pointers: Array, V: int) -> sp.csr_array:
    import scipy.sparse as sp

    width = np.int32 if len(data) <= np.iinfo(np.int32).max else np.int64
    pieces = data, indices.astype(width, copy=False), pointers.astype(width, copy=False)
    matrix = sp.csr_array(pieces, (len(pointers) - 1, V))
    matrix.has_sorted_indices = matrix.has_canonical_format = True
    return matrix


# -- class counts ----------
# Documents counted per class: at once, in threads where there are cores, or batch by batch as they come.
#
# Nothing is kept but the vocabulary and the counts. Unweighted counts are the same to the bit, whoever did the work.

Steps = Callable[[int], Array]


@dataclass(frozen=True, eq=False)
class ClassCounts:
    """How often each feature, in how many documents, of each class."""

    vocabulary: Vocabulary
    counts: Array  # (K, V), or (K, V + 1) with unk last: Σ w · occurrences
    rows: Array  # (K,)  Σ w
    lengths: Array  # (n,)  features of each document, in the vocabulary or not
    documents: Array | None  # as counts: Σ w of documents that hold it; None unless asked for


class ClassCounter:
    """Counts per class of documents that come in batches; a class is there from its first document on.

    >>> counter = ClassCounter()
    >>> counter.add(["to be or"], np.array([0])), counter.add(["not to be"], np.array([1]))
    (array([3]), array([3]))
    >>> found = counter.result()
    >>> list(found.vocabulary), found.counts.tolist()
    (['be', 'not', 'or', 'to'], [[1.0, 0.0, 1.0, 1.0], [1.0, 1.0, 0.0, 1.0]])
    """

    def __init__(
        self,
        K: int = 1,
        tokens: Tokens = WORDS,
        vocabulary: Vocabulary | None = None,
        weighted: bool = False,
        presence: bool = False,
        reading: Reading | None = None,
        steps: Steps | None = None,
    ) -> None:
        self.reading = reading or Reading(Documents([]), tokens, vocabulary, fast=True)
        self.reader, self.weighted, self.presence = self.reading.reader(), weighted, presence
        fast, levels = self.reading.fast, range(len(self.reading.sizes(self.reader)))
        self.tallies = [StreamCounts(K, weighted or steps is not None, fast) for _ in levels]
        self.present = [StreamCounts(K, weighted, fast) for _ in levels] if presence else []
        self.once = [Presence(fast) for _ in levels]
        self.amounts = None if steps is None else [Amounts(steps, fast) for _ in levels]
        self.rows = np.zeros(K)

    def add(self, texts: Any, codes: Array, weight: Array | None = None) -> Array:
        """Count a batch; the number of features of each document."""
        documents = Documents.of(texts)
        codes = _checked(codes, len(documents), None)
        if (weight is not None) != self.weighted:
            raise InputError("weights are given for every batch or for none, as said at the beginning.")
        return self.reading.guarded(lambda: self.take(documents, 0, len(documents), codes, weight))

    def take(self, documents: Documents, first: int, last: int, codes: Array, weight: Array | None) -> Array:
        """Count some of the documents."""
        K = max(len(self.rows), int(codes[first:last].max(initial=-1)) + 1)
        weighed = None if weight is None else weight[first:last]
        self.rows = np.append(self.rows, np.zeros(K - len(self.rows))) + np.bincount(codes[first:last], weighed, K)
        lengths = [np.zeros(0, np.int64)]
        for chunk in documents.chunks(first, last):
            streams, features = self.reading.read(self.reader, chunk)
            here = slice(chunk.first, chunk.first + len(chunk.offsets) - 1)
            weights = None if weight is None else weight[here]
            for level, (stream, size) in enumerate(zip(streams, self.reading.sizes(self.reader))):
                amounts = None if self.amounts is None else self.amounts[level]
                self.tallies[level].add(stream, size, codes[here], weights, K, amounts)
                if self.presence:
                    self.present[level].add(self.once[level](stream, size), size, codes[here], weights, K)
            lengths.append(features)
        return np.concatenate(lengths)

    def result(self) -> ClassCounts:
        """What has been counted so far."""
        known, places = self.reading.places([self.reader])
        held = _placed([self.present], places, len(self.rows), known.columns) if self.presence else None
        counts = _placed([self.tallies], places, len(self.rows), known.columns)
        return ClassCounts(known, counts, self.rows.copy(), np.zeros(0, np.int64), held)


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
    steps: Steps | None = None,
) -> ClassCounts:
    """Counts per class, codes[i] in [0, K) being document i's; with `presence`, documents per class too.

    A document of weight 0 is as if absent. There may be no feature at all. With `steps`, a feature that occurs t times
    counts steps(m)[1] + … + steps(m)[t], for t ≤ m.

    >>> found = count_classes(["to be or", "not to be"], np.array([0, 1]), 2)
    >>> list(found.vocabulary), found.counts.tolist()
    (['be', 'not', 'or', 'to'], [[1.0, 0.0, 1.0, 1.0], [1.0, 1.0, 0.0, 1.0]])
    """
    everything = Documents.of(texts)
    codes = _checked(codes, len(everything), K)
    counted = np.arange(len(everything)) if weight is None else np.flatnonzero(np.asarray(weight))
    documents = everything if len(counted) == len(everything) else everything.take(counted)
    present, weighed = codes[counted], None if weight is None else np.asarray(weight, np.float64)[counted]
    reading = Reading(documents, tokens, vocabulary, threads)
    limited = vocabulary is None and not limits.none

    def count(first: int, last: int) -> tuple[ClassCounter, Array]:
        counter = ClassCounter(
            K, weighted=weight is not None, presence=presence or limited, reading=reading, steps=steps
        )
        return counter, counter.take(documents, first, last, present, weighed)

    parts = reading.run(count)
    known, places = reading.places([counter.reader for counter, _ in parts])
    rows = np.bincount(present, weighed, K).astype(np.float64)
    tallies = [counter.tallies for counter, _ in parts]
    counts = _placed(tallies, places, K, known.columns)
    held = _placed([counter.present for counter, _ in parts], places, K, known.columns)
    if limited:
        kept = limits.kept(rows.sum(), counts.sum(axis=0), held, rows)
        known, places = restricted(known, kept, places, limits)
        if known.unk and presence:
            # How many documents hold any word outside, only the documents know.
            return count_classes(everything, codes, K, tokens, known, NO_LIMITS, weight, presence, threads, steps)
        counts, held = _placed(tallies, places, K, known.columns), held[:, kept]
    lengths = np.zeros(len(everything), np.int64)
    lengths[counted] = np.concatenate([some for _, some in parts])
    return ClassCounts(known, counts, rows, lengths, held if presence else None)


def _checked(codes: Array, n: int, K: int | None) -> Array:
    codes = np.asarray(codes, np.int64)
    if codes.shape != (n,):
        raise InputError(f"{n} documents, but class codes of shape {codes.shape}. Give one a document.")
    if n and (codes.min() < 0 or (K is not None and codes.max() >= K)):
        raise InputError(f"class codes run from {codes.min()} to {codes.max()}; they must lie in [0, {K or '…'}).")
    return codes


def _placed(parts: Sequence[Sequence[StreamCounts]], places: Sequence[Sequence[Array]], K: int, V: int) -> Array:
    """Counts of all parts and levels under their columns."""
    out = np.zeros((K, V))
    for tallies, levels in zip(parts, places):
        for tally, columns in zip(tallies, levels):
            tally.place(columns, out)
    return out
