"""Counting documents in one pass over the text: a sparse row for each document, or sums per class.

Large inputs are counted by compiled kernels in threads, small ones in plain Python. Unweighted counts are the same to
the bit either way, and all counts are the same for any number of threads. `TextRows` are the documents as the family
takes them; the rows of one batch share the counts that were made of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from deciban.errors import InputError
from deciban.read.tables import Columns, text_column
from deciban.statistics import Array, Members
from deciban.text.documents import DocumentPass, Documents
from deciban.text.kernels.streams import Amounts, Part, Stream, StreamCounts, interleaved, relabelled, sparse_rows
from deciban.text.tokens import WORDS, Tokens
from deciban.text.vocabulary import NO_LIMITS, Limits, Vocabulary, restricted

Steps = Callable[[int], Array]  # (m + 1,): what the t-th occurrence of a feature adds, for t ≤ m
Places = Callable[[Vocabulary, Vocabulary], Array]  # `Vocabulary.positions`, or a function that keeps its results
PAIRS = 2  # pairs of vocabularies whose columns are kept: those of a fold are needed several times
UNKNOWN = -1  # length of a document that was not read yet
MISSING = ""  # the text that stands for a missing document


# -- rows --------------------------------------------------------------------------------------------------------------
class Counted(NamedTuple):
    """Counts of n documents."""

    matrix: sp.csr_array  # (n, V), or (n, V + 1) with `unk` last
    vocabulary: Vocabulary
    lengths: Array  # (n,)  features of each document, in the vocabulary or not

    def take(self, rows: Array) -> Counted:
        """Return the counts of some of the documents."""
        return Counted(self.matrix[rows], self.vocabulary, self.lengths[rows])

    def with_rows(self, at: Array, others: Counted) -> Counted:
        """Return these counts with rows of others put in, which then have the ascending positions `at`."""
        (rows, _, lengths), before = self, at - np.arange(len(at))
        # entries are copied in runs: rows between two others have theirs side by side
        runs, limits = pairwise([0, *rows.indptr[before].tolist(), rows.nnz]), pairwise(others.matrix.indptr.tolist())
        kept, new = [slice(*run) for run in runs], [slice(*limit) for limit in limits]

        def joined(one: Array, two: Array) -> Array:
            last = one[kept[-1]]
            return np.concatenate([*chain.from_iterable((one[a], two[b]) for a, b in zip(kept, new)), last])

        sizes = np.insert(np.diff(rows.indptr), before, np.diff(others.matrix.indptr))
        starts = np.concatenate([np.zeros(1, sizes.dtype), np.cumsum(sizes, dtype=sizes.dtype)])
        entries = joined(rows.data, others.matrix.data), joined(rows.indices, others.matrix.indices), starts
        matrix = sp.csr_array(entries, (len(sizes), rows.shape[1]))
        return Counted(matrix, self.vocabulary, np.insert(lengths, before, others.lengths))

    def under(self, vocabulary: Vocabulary, columns: Places | None = None) -> Counted:
        """Return the counts under the columns of another vocabulary, which `columns` finds (`Vocabulary.positions`)."""
        rows = self.matrix
        if vocabulary is self.vocabulary or (not vocabulary.unk and vocabulary.names.equals(self.vocabulary.names)):
            return self
        place = (columns or Vocabulary.positions)(vocabulary, self.vocabulary)
        shape = rows.shape[0], vocabulary.columns
        if place.min(initial=0) >= 0:
            moved = sp.csr_array((rows.data, place.astype(np.int32)[rows.indices], rows.indptr), shape)
            return Counted(moved, vocabulary, self.lengths)
        column = np.where(place < 0, len(vocabulary) if vocabulary.unk else -1, place)[rows.indices]
        row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        kept = column >= 0
        matrix = sp.coo_array((rows.data[kept], (row[kept], column[kept])), shape).tocsr()
        return Counted(matrix, vocabulary, self.lengths)


class _Read(NamedTuple):
    """The streams of a range of documents."""

    reader: Any
    streams: list[list[Stream]]  # of each chunk
    lengths: list[Array]  # of each chunk


def count_rows(
    texts: Any,
    tokens: Tokens = WORDS,
    vocabulary: Vocabulary | None = None,
    limits: Limits = NO_LIMITS,
    binary: bool = False,
    threads: int | None = None,
) -> tuple[sp.csr_array, Vocabulary]:
    """Return a row of counts for each document, and the vocabulary: the one given, or the features found.

    >>> X, vocabulary = count_rows(["to be or", "not to be"])
    >>> list(vocabulary), X.toarray().tolist()
    (['be', 'not', 'or', 'to'], [[1, 0, 1, 1], [1, 1, 0, 1]])
    """
    found = count_documents(Documents.of(texts), tokens, vocabulary, limits, binary, threads)
    if vocabulary is None and not len(found.vocabulary):
        raise InputError("empty vocabulary; perhaps the documents only contain stop words")
    return found.matrix, found.vocabulary


def count_documents(
    documents: Documents,
    tokens: Tokens = WORDS,
    vocabulary: Vocabulary | None = None,
    limits: Limits = NO_LIMITS,
    binary: bool = False,
    threads: int | None = None,
) -> Counted:
    """Count the features of a vocabulary, or without one all features that occur; there may be none.

    >>> X, _, lengths = count_documents(Documents.of(["to be or not"]), vocabulary=Vocabulary.of(["be", "to"]))
    >>> X.toarray(), lengths
    (array([[1, 1, 2]]), array([4]))
    """
    passed = DocumentPass(documents, tokens, vocabulary, threads)
    parts = passed.run(lambda first, last: _read(passed, passed.reader(), first, last))
    known, places = passed.places([part.reader for part in parts])
    for part in parts:
        passed.done(part.reader)
    if vocabulary is None and limits is not NO_LIMITS and not limits.none and len(known):
        everything = _gathered(parts, places, known, False, passed.fast).matrix
        held = np.bincount(everything.indices, minlength=len(known))
        total = np.bincount(everything.indices, everything.data, len(known))
        kept = limits.kept(len(documents), total.astype(np.int64), held[None])
        known, places = restricted(known, kept, places, limits)
    return _gathered(parts, places, known, binary, passed.fast)


def count_by_arrival(documents: Documents, tokens: Tokens) -> tuple[Counted, Array]:
    """Count all words and n-grams of words; each row is stored in the order in which features first occur.

    A feature is before another one if its first document is, then if it has fewer words, then if it occurs earlier.
    Columns are sorted by name, so that the indices of a row are not sorted. Also returns the columns in the order of
    their features, shape (V,).

    >>> found, columns = count_by_arrival(Documents.of(["to be or", "not to be"]), WORDS)
    >>> columns, found.matrix.indices
    (array([3, 0, 2, 1], dtype=int32), array([3, 0, 2, 3, 0, 1], dtype=int32))
    """
    passed = DocumentPass(documents, tokens)
    parts = passed.run(lambda first, last: _read(passed, passed.reader(), first, last))
    known, places = passed.places([part.reader for part in parts])
    columns = _columns_by_arrival(parts, places, len(known))
    rank = np.empty(len(known), np.int32)
    rank[columns] = np.arange(len(known), dtype=np.int32)
    ranks = [[rank[place] for place in levels] for levels in places]
    matrix, _, lengths = _gathered(parts, ranks, known, False, passed.fast)
    matrix.indices = relabelled(Stream(matrix.indices, np.array([matrix.nnz])), columns, passed.fast).ids
    matrix.has_sorted_indices = matrix.has_canonical_format = False
    return Counted(matrix, known, lengths), columns


def _columns_by_arrival(parts: Sequence[_Read], places: Sequence[Sequence[Array]], V: int) -> Array:
    """Return the columns in the order in which their features first occur."""
    known, found = np.zeros(V, bool), [np.zeros(0, np.int32)]
    for part, levels in zip(parts, places):
        for columns in [_numbered_columns(part, levels)] if part.reader.in_order else _first_columns(part, levels, V):
            found.append(columns[~known[columns]])
            known[found[-1]] = True
    return np.concatenate(found)


def _numbered_columns(part: _Read, levels: Sequence[Array]) -> Array:
    """Return the columns of a part in their order; the reader has numbered the features of each level in this order."""
    if len(levels) == 1:
        return levels[0]
    documents = [_first_documents([streams[at] for streams in part.streams]) for at in range(len(levels))]
    return np.concatenate(levels)[np.argsort(np.concatenate(documents), kind="stable")]


def _first_columns(part: _Read, levels: Sequence[Array], V: int) -> Iterator[Array]:
    """Yield the columns of each chunk in their order, for any numbering."""
    first = np.empty(V, np.int64)
    for streams in part.streams:
        tokens = interleaved([Stream(place[ids], lengths) for place, (ids, lengths) in zip(levels, streams)]).ids
        at = np.arange(len(tokens))
        first[tokens[::-1]] = at[::-1]  # written in reverse, so that the first of equal tokens stays
        yield tokens[first[tokens] == at]


def _first_documents(streams: Sequence[Stream]) -> Array:
    """Return the first document of each number, in ascending order of the numbers."""
    found, most, before = [np.zeros(0, np.int64)], -1, 0
    for ids, lengths in streams:
        filled = np.flatnonzero(lengths)
        if len(filled):
            highest = np.maximum.reduceat(ids, (np.cumsum(lengths) - lengths)[filled])
            so_far = np.maximum.accumulate(np.append(most, highest))
            found.append(np.repeat(before + filled, np.diff(so_far)))  # the numbers that a document adds
            most = int(so_far[-1])
        before += len(lengths)
    return np.concatenate(found)


def count_lengths(documents: Documents, tokens: Tokens) -> Array:
    """Return the number of features of each document, shape (n,)."""
    passed = DocumentPass(documents, tokens)
    parts = passed.run(lambda first, last: _read(passed, passed.reader(), first, last))
    return _concatenated([lengths for part in parts for lengths in part.lengths])


def _read(passed: DocumentPass, reader: Any, first: int, last: int) -> _Read:
    pairs = [passed.read(reader, chunk) for chunk in passed.chunks(first, last)]
    return _Read(reader, [streams for streams, _ in pairs], [lengths for _, lengths in pairs])


def _gathered(
    parts: Sequence[_Read], places: Sequence[Sequence[Array]], known: Vocabulary, binary: bool, fast: bool
) -> Counted:
    found = [Part(part.streams, place) for part, place in zip(parts, places)]
    V = known.columns
    data, indices, pointers = sparse_rows(found, V, binary, fast)
    width = np.int32 if len(data) <= np.iinfo(np.int32).max else np.int64
    pieces = data, indices.astype(width, copy=False), pointers.astype(width, copy=False)
    matrix = sp.csr_array(pieces, (len(pointers) - 1, V))
    matrix.has_sorted_indices = matrix.has_canonical_format = True
    return Counted(matrix, known, _concatenated([lengths for part in parts for lengths in part.lengths]))


def _concatenated(lengths: list[Array]) -> Array:
    return np.concatenate([np.zeros(0, np.int64), *lengths])


# -- documents of a batch ----------------------------------------------------------------------------------------------
class DocumentCounts:
    """Counts of the documents of one batch; mutable. `encode` makes it, and all selections of its rows share it.

    It holds for each `Tokens`

    - the counts of documents that `TextRows.count` has counted, under the vocabulary found in them;
    - the length of every document that was read, for whatever purpose;

    and the columns that the words of one vocabulary have in another, for the last pairs.

    Documents are read several times: candidates are compared, sums collected, and scores calibrated on a sample. The
    documents are counted once.
    """

    def __init__(self, n: int) -> None:
        self.n = n
        self._counted: dict[Tokens, tuple[Array, Counted]] = {}  # positions, ascending, and their counts
        self._lengths: dict[Tokens, Array] = {}  # (n,)
        self._places: list[tuple[Vocabulary, Vocabulary, Array]] = []  # of the last pairs of vocabularies

    def places(self, vocabulary: Vocabulary, other: Vocabulary) -> Array:
        """Return ``vocabulary.positions(other)``; those of the last pairs are kept."""
        for one, two, found in self._places:
            if one is vocabulary and two is other:
                return found
        found = vocabulary.positions(other)
        self._places = [*self._places[1 - PAIRS :], (vocabulary, other, found)]
        return found

    def any(self, tokens: Tokens) -> bool:
        """Whether any document has counts."""
        return tokens in self._counted

    def holds(self, tokens: Tokens, at: Array) -> bool:
        """Whether all of these documents have counts."""
        return tokens in self._counted and len(self.known(tokens, at)) == len(at)

    def known(self, tokens: Tokens, at: Array) -> Array:
        """Return which of the documents have counts, as positions in `at`."""
        return self._match(tokens, at)[0] if tokens in self._counted else np.zeros(0, np.intp)

    def find(self, tokens: Tokens, at: Array) -> tuple[Array, Counted | None]:
        """Return which of the documents have counts, as positions in `at`, and their counts."""
        if tokens not in self._counted:
            return np.zeros(0, np.intp), None
        found, rows = self._match(tokens, at)
        done, counted = self._counted[tokens]
        whole = len(rows) == len(done) and bool((rows[1:] > rows[:-1]).all())
        return found, counted if whole else counted.take(rows)

    def _match(self, tokens: Tokens, at: Array) -> tuple[Array, Array]:
        """Return positions in `at`, and for each the row of the counts that belongs to it."""
        done, _ = self._counted[tokens]
        if not len(done):
            return np.zeros(0, np.intp), np.zeros(0, np.intp)
        near = np.minimum(np.searchsorted(done, at), len(done) - 1)
        found = np.flatnonzero(done[near] == at)
        return found, near[found]

    def keep(self, tokens: Tokens, at: Array, counted: Counted) -> None:
        """Keep the counts of documents at ascending positions, in the place of those kept before."""
        self._counted[tokens] = at, counted

    def lengths(self, tokens: Tokens, at: Array) -> Array:
        """Return the lengths of documents, `UNKNOWN` for those that were not read yet."""
        lengths = self._lengths.get(tokens)
        return np.full(len(at), UNKNOWN) if lengths is None else lengths[at]

    def keep_lengths(self, tokens: Tokens, at: Array, lengths: Array) -> None:
        """Keep the lengths of documents."""
        known = self._lengths.get(tokens)
        if known is None:
            known = self._lengths[tokens] = np.full(self.n, UNKNOWN)
        known[at] = lengths

    def clear(self) -> None:
        """Drop all counts, to free memory; lengths stay."""
        self._counted.clear()
        self._places.clear()


@dataclass(frozen=True, eq=False)
class TextRows:
    """n documents of a batch, some of them perhaps missing.

    >>> rows = TextRows.of(["to be", None, "or not to be"])
    >>> rows.shape, rows.present
    ((3, 1), array([ True, False,  True]))
    >>> rows[[0, 2]].count(Tokens()).matrix.toarray()
    array([[1, 0, 0, 1],
           [1, 1, 1, 1]])
    """

    texts: Documents  # of the whole batch, empty where missing
    counts: DocumentCounts  # of the whole batch
    at: Array  # (n,) positions of these rows in the batch
    present: Array | None = None  # (n,) of bool; None where no document is missing

    @classmethod
    def of(cls, texts: Any) -> TextRows:
        """Take a list, an array, a column of a frame or `Columns`; None and NaN are missing."""
        if isinstance(texts, TextRows):
            return texts
        if isinstance(texts, Columns):
            texts = texts.texts()
        documents, present = _without_gaps(texts)
        n = len(documents)
        return cls(documents, DocumentCounts(n), np.arange(n), present)

    @classmethod
    def joined(cls, parts: Sequence[TextRows]) -> TextRows:
        """Concatenate the rows of several batches."""
        documents, present = Documents.joined([part.documents for part in parts]), None
        if any(part.present is not None for part in parts):
            each = [np.ones(len(part), bool) if part.present is None else part.present for part in parts]
            present = np.concatenate(each)
        return cls(documents, DocumentCounts(len(documents)), np.arange(len(documents)), present)

    @property
    def documents(self) -> Documents:
        """The texts of these rows."""
        return self.texts if len(self.at) == len(self.texts) and self._in_order() else self.texts.take(self.at)

    def _in_order(self) -> bool:
        return bool((self.at[1:] > self.at[:-1]).all())

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.at), 1

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(object)

    def __len__(self) -> int:
        return len(self.at)

    def __getitem__(self, rows: Any) -> TextRows:
        present = None if self.present is None else self.present[rows]
        return replace(self, at=self.at[rows], present=present)

    def without_missing(self) -> tuple[TextRows, Array | None]:
        """Return the documents that are not missing, and their positions; None where all are there."""
        if self.present is None or self.present.all():
            return self, None
        here = np.flatnonzero(self.present)
        return self[here], here

    def with_members(self, members: Members) -> tuple[TextRows, Members]:
        """Return the documents that are not missing, and their members."""
        rows, here = self.without_missing()
        return rows, members if here is None else members.take(here)

    # -- counts --------------------------------------------------------------------------------------------------------
    def counted(self, tokens: Tokens) -> bool:
        """Whether `count` has counted all of these documents."""
        return self.counts.holds(tokens, self.at)

    def already_counted(self, tokens: Tokens) -> Array:
        """Return the positions of the documents that have counts."""
        return self.counts.known(tokens, self.at)

    def count(self, tokens: Tokens) -> Counted:
        """Count all features that occur in these documents, and keep the counts for other rows of the same batch.

        The vocabulary is that of the documents which were counted together. It holds every word of these rows, and may
        hold others.
        """
        found, counted = self.counts.find(tokens, self.at)
        if counted is not None and len(found) == len(self):
            return counted
        counted = count_documents(self.documents, tokens)
        if self._in_order():
            self.counts.keep(tokens, self.at, counted)
        self.counts.keep_lengths(tokens, self.at, counted.lengths)
        return counted

    def count_by(self, vocabulary: Vocabulary, tokens: Tokens) -> Counted:
        """Count these documents under the columns of a vocabulary; counts that are kept are used."""
        found, kept = self.counts.find(tokens, self.at)
        if kept is None or 2 * len(found) < len(self):  # reading all takes little longer
            counted = count_documents(self.documents, tokens, vocabulary)
        elif len(found) == len(self):
            counted = kept.under(vocabulary, self.counts.places)
        else:
            new = np.delete(np.arange(len(self)), found)
            known = kept.under(vocabulary, self.counts.places)
            counted = known.with_rows(new, count_documents(self[new].documents, tokens, vocabulary))
        self.counts.keep_lengths(tokens, self.at, counted.lengths)
        return counted

    def lengths(self, tokens: Tokens) -> Array:
        """Return the number of features of each document, shape (n,); documents that were not read yet are read."""
        lengths = self.counts.lengths(tokens, self.at)
        if self.present is not None:
            lengths = np.where(self.present, lengths, 0)
        new = np.flatnonzero(lengths == UNKNOWN)
        if len(new):
            lengths[new] = count_lengths(self[new].documents, tokens)
            self.counts.keep_lengths(tokens, self.at[new], lengths[new])
        return lengths.astype(float)


def _without_gaps(texts: Any) -> tuple[Documents, Array | None]:
    """Return the documents, empty where missing, and which are present; None where all are."""
    if isinstance(texts, str | bytes | Documents):
        return Documents.of(texts), None
    if isinstance(texts, np.ndarray) and texts.ndim == 2 and texts.shape[1] == 1:
        texts = texts[:, 0]
    column = None if isinstance(texts, list) else text_column(texts)
    texts = texts if column is None else column.texts
    if hasattr(texts, "null_count"):
        present = texts.is_valid().to_numpy() if texts.null_count else None
        return Documents.of(texts.fill_null(MISSING) if texts.null_count else texts), present
    texts = texts.tolist() if isinstance(texts, np.ndarray) else texts if isinstance(texts, list) else list(texts)
    if set(map(type, texts)) <= {str, bytes}:
        return Documents.of(texts), None
    present = np.array([not _is_missing(text) for text in texts], dtype=bool)
    if present.all():
        return Documents.of(texts), None
    return Documents.of([text if here else MISSING for text, here in zip(texts, present.tolist())]), present


def _is_missing(text: object) -> bool:
    if text is None or type(text).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(text, float) and text != text


# -- sums per class ----------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class ClassCounts:
    """Counts of each class."""

    vocabulary: Vocabulary
    counts: Array  # (K, V), or (K, V + 1) with `unk` last: Σ w · occurrences
    rows: Array  # (K,)  Σ w
    lengths: Array  # (n,)  features of each document, in the vocabulary or not


class ClassCounter:
    """Counts per class of documents that come in batches; mutable. Classes may be added with later batches.

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
        passed: DocumentPass | None = None,
        steps: Steps | None = None,
    ) -> None:
        self.passed = passed or DocumentPass(Documents([]), tokens, vocabulary, fast=True)
        self.reader, self.weighted = self.passed.reader(), weighted
        fast, levels = self.passed.fast, range(len(self.passed.sizes(self.reader)))
        self.levels = [StreamCounts(K, weighted or steps is not None, fast) for _ in levels]
        self.amounts = None if steps is None else [Amounts(steps, fast) for _ in levels]
        self.rows = np.zeros(K)

    def add(self, texts: Any, codes: Array, weight: Array | None = None) -> Array:
        """Count a batch; return the number of features of each document."""
        documents = Documents.of(texts)
        codes = _checked(codes, len(documents), None)
        if (weight is not None) != self.weighted:
            raise InputError(
                f"weights must be given for {'every batch' if self.weighted else 'no batch'} of this counter."
            )
        return self.passed.checked(lambda: self.take(documents, 0, len(documents), codes, weight))

    def take(self, documents: Documents, first: int, last: int, codes: Array, weight: Array | None) -> Array:
        """Count documents `first` to `last`."""
        K = max(len(self.rows), int(codes[first:last].max(initial=-1)) + 1)
        weighed = None if weight is None else weight[first:last]
        self.rows = np.append(self.rows, np.zeros(K - len(self.rows))) + np.bincount(codes[first:last], weighed, K)
        lengths = []
        for chunk in documents.chunks(first, last):
            streams, features = self.passed.read(self.reader, chunk)
            here = slice(chunk.first, chunk.first + len(chunk.offsets) - 1)
            weights = None if weight is None else weight[here]
            for level, (stream, size) in enumerate(zip(streams, self.passed.sizes(self.reader))):
                amounts = None if self.amounts is None else self.amounts[level]
                self.levels[level].add(stream, size, codes[here], weights, K, amounts)
            lengths.append(features)
        return _concatenated(lengths)

    def result(self) -> ClassCounts:
        """Return the counts of all batches so far."""
        known, places = self.passed.places([self.reader])
        counts = _placed([self.levels], places, len(self.rows), known.columns)
        return ClassCounts(known, counts, self.rows.copy(), np.zeros(0, np.int64))


def count_classes(
    texts: Any,
    codes: Array,
    K: int,
    tokens: Tokens = WORDS,
    vocabulary: Vocabulary | None = None,
    weight: Array | None = None,
    threads: int | None = None,
    steps: Steps | None = None,
) -> ClassCounts:
    """Count documents per class; document i is of class codes[i] in [0, K).

    A document of weight 0 is not counted. There may be no feature at all. With `steps`, a feature that occurs t times
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
    # what `steps` adds are multiples of 2⁻²⁰, whose sums are exact
    passed = DocumentPass(documents, tokens, vocabulary, threads, rounded=weight is not None)

    def count(first: int, last: int) -> tuple[ClassCounter, Array]:
        counter = ClassCounter(K, weighted=weight is not None, passed=passed, steps=steps)
        lengths = counter.take(documents, first, last, present, weighed)
        passed.done(counter.reader)
        return counter, lengths

    parts = passed.run(count)
    known, places = passed.places([counter.reader for counter, _ in parts])
    rows = np.bincount(present, weighed, K).astype(np.float64)
    counts = _placed([counter.levels for counter, _ in parts], places, K, known.columns)
    lengths = np.zeros(len(everything), np.int64)
    lengths[counted] = np.concatenate([some for _, some in parts])
    return ClassCounts(known, counts, rows, lengths)


def _checked(codes: Array, n: int, K: int | None) -> Array:
    codes = np.asarray(codes, np.int64)
    if codes.shape != (n,):
        raise InputError(f"{n} documents, but class codes of shape {codes.shape}. Give one a document.")
    if n and (codes.min() < 0 or (K is not None and codes.max() >= K)):
        raise InputError(f"class codes run from {codes.min()} to {codes.max()}; they must lie in [0, {K or '…'}).")
    return codes


def _placed(parts: Sequence[Sequence[StreamCounts]], places: Sequence[Sequence[Array]], K: int, V: int) -> Array:
    """Return the counts of all parts and levels under their columns, shape (K, V)."""
    out = np.zeros((K, V))
    for tallies, levels in zip(parts, places):
        for tally, columns in zip(tallies, levels):
            tally.place(columns, out)
    return out
