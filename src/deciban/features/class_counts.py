"""Documents counted per class: at once, in threads where there are cores, or batch by batch as they come.

Nothing is kept but the vocabulary and the counts. Unweighted counts are the same to the bit, whoever did the work.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deciban.errors import InputError
from deciban.features.documents import Documents
from deciban.features.limits import NO_LIMITS, Limits, restricted
from deciban.features.reading import Reading
from deciban.features.tokens import WORDS, Tokens
from deciban.features.vocabulary import Vocabulary
from deciban.kernels.text.counting import Amounts, Presence, Tally

Array = NDArray[Any]
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
        self.tallies = [Tally(K, weighted or steps is not None, fast) for _ in levels]
        self.present = [Tally(K, weighted, fast) for _ in levels] if presence else []
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


def _placed(parts: Sequence[Sequence[Tally]], places: Sequence[Sequence[Array]], K: int, V: int) -> Array:
    """Counts of all parts and levels under their columns."""
    out = np.zeros((K, V))
    for tallies, levels in zip(parts, places):
        for tally, columns in zip(tallies, levels):
            tally.place(columns, out)
    return out
