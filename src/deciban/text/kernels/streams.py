"""Documents as streams of feature ids; counts per class, scores and sparse rows of streams; the order of features.

Every computation has a compiled version, in `streams_compiled`, and one in numpy, at the end of this module;
`use_kernel` chooses between them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ctypes import memmove
from itertools import accumulate
from math import exp, log
from typing import NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp

from deciban.kernels.choice import Array, readable, weights_or_empty
from deciban.kernels.dense import group_sums
from deciban.kernels.parallel import each

Result = TypeVar("Result")

MOST_IN_INT32 = 2**31 - 1
FIRST_WIDTH = 2**12  # features that counts have room for at first
ROWS_AT_A_TIME = 64  # rows of weights that are prefetched at a time, and then added
FIRST_STEPS = 256  # occurrences of a word that amounts are known for at first


class Chunk(NamedTuple):
    """Some documents: number i is text[offsets[i] : offsets[i + 1]] in UTF-8, and `first` + i among all."""

    text: Array
    offsets: Array
    first: int = 0


class Stream(NamedTuple):
    """Feature ids of some documents, one document after the other."""

    ids: Array  # int32
    lengths: Array  # (n,) ids of each document


class InvalidTextError(ValueError):
    """A document that is not UTF-8."""

    def __init__(self, document: int) -> None:
        super().__init__(f"document {document} is not valid UTF-8")
        self.document = document


# -- stream to stream --------------------------------------------------------------------------------------------------
def interleaved(streams: Sequence[Stream]) -> Stream:
    """Join several streams of the same documents: of each document first the ids of the first stream.

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


def relabelled(stream: Stream, labels: Array, use_kernel: bool) -> Stream:
    """Replace each id by labels[id], and drop those that become −1. The given stream may be overwritten."""
    if not use_kernel:
        return _relabelled(stream, labels)
    from deciban.text.kernels.streams_compiled import relabel

    left = relabel(stream.ids, stream.lengths, labels)
    return Stream(stream.ids[:left], stream.lengths)


def without_id(stream: Stream, number: int, use_kernel: bool) -> Stream:
    """Drop one id. The given stream may be overwritten."""
    if not use_kernel:
        labels = np.arange(number + 1)
        labels[number] = -1
        return _relabelled(stream, labels)
    from deciban.text.kernels.streams_compiled import drop_id

    left = drop_id(stream.ids, stream.lengths, number)
    return Stream(stream.ids[:left], stream.lengths)


class Presence:
    """Reduces streams to the distinct ids of each document."""

    def __init__(self, use_kernel: bool) -> None:
        self.use_kernel, self.row = use_kernel, 1
        self.last_row = np.zeros(0, np.int64)

    def __call__(self, stream: Stream, size: int) -> Stream:
        """Return a new stream; all ids are below `size`."""
        if not self.use_kernel:
            return _distinct(stream)
        from deciban.text.kernels.streams_compiled import distinct

        if size > len(self.last_row):
            self.last_row = np.concatenate([self.last_row, np.zeros(2 * size - len(self.last_row), np.int64)])
        ids, lengths = stream.ids.copy(), stream.lengths.copy()
        left = distinct(ids, lengths, self.last_row, self.row)
        self.row += len(lengths)
        return Stream(ids[:left], lengths)


# -- counts and scores -------------------------------------------------------------------------------------------------
class Amounts:
    """Amount that each token adds, if t occurrences of a word in a document count steps[1] + … + steps[t]."""

    def __init__(self, steps: Callable[[int], Array], use_kernel: bool) -> None:
        self.make, self.use_kernel, self.base = steps, use_kernel, 0
        self.steps, self.state = steps(FIRST_STEPS), np.zeros(0, np.int32)

    def __call__(self, stream: Stream, size: int) -> Array:
        """Return the amount of each token of a stream whose ids are below `size`."""
        arguments = self.kernel_arguments(stream, size)
        if not self.use_kernel:
            return _amounts(stream, self.steps)
        from deciban.text.kernels.streams_compiled import amounts

        values = np.empty(len(stream.ids))
        amounts(*stream, *arguments, values)
        return values

    def kernel_arguments(self, stream: Stream, size: int) -> tuple[Array, int, Array]:
        """Return what kernels need for the amounts of a stream: the state that they change, its base, and steps."""
        longest = int(stream.lengths.max(initial=0))
        if longest >= len(self.steps):
            self.steps = self.make(2 * longest)
        if size > len(self.state):
            self.state = np.concatenate([self.state, np.zeros(2 * size - len(self.state), np.int32)])
        if self.base + len(stream.ids) > MOST_IN_INT32:
            self.state[:], self.base = 0, 0
        base, self.base = self.base, self.base + len(stream.ids)
        return self.state, base, self.steps


class StreamCounts:
    """Counts per class and feature of streams; the number of features may grow.

    The counts of a class lie side by side. Features are numbered as they occur, so that the ids of frequent ones are
    small, and the counts that change most share a few cache lines.
    """

    def __init__(self, K: int, weighted: bool, use_kernel: bool) -> None:
        self.use_kernel, self.total = use_kernel, 0
        self.counts = np.zeros((K, FIRST_WIDTH), np.float64 if weighted else np.int32)

    def add(
        self, stream: Stream, size: int, codes: Array, weight: Array | None, K: int, amounts: Amounts | None = None
    ) -> None:
        """Count a stream whose ids are below `size` and class codes below K; each token by its amount, or 1."""
        self._make_room(K, size, len(stream.ids))
        if self.use_kernel:
            from deciban.text.kernels.streams_compiled import add_class_amounts, add_class_counts

            classes = readable(codes, np.int64), weights_or_empty(weight)
            if amounts is None:
                add_class_counts(*stream, *classes, self.counts)
            else:
                add_class_amounts(*stream, *classes, *amounts.kernel_arguments(stream, size), self.counts)
        else:
            values = None if amounts is None else amounts(stream, size)
            new = _class_counts(stream, codes, weight, *self.counts.shape, values)
            self.counts += new.astype(self.counts.dtype)

    def _make_room(self, K: int, size: int, tokens: int) -> None:
        self.total += tokens
        classes, width = self.counts.shape
        dtype = self.counts.dtype
        if dtype == np.int32 and self.total > MOST_IN_INT32:
            dtype = np.dtype(np.int64)
        if size >= width or classes < K or dtype != self.counts.dtype:
            # Memory pages of zeros that are never written to are not allocated.
            counts = np.zeros((max(K, classes), 2 * size if size >= width else width), dtype)
            counts[:classes, :width] = self.counts
            self.counts = counts

    def place(self, columns: Array, out: Array) -> None:
        """Add the counts to out[:, columns], leaving out features whose column is −1."""
        columns = columns[: self.counts.shape[1]]  # another thread may have found more features
        if self.use_kernel:
            from deciban.text.kernels.streams_compiled import place_counts

            place_counts(self.counts, readable(columns, np.int32), out)
        else:
            kept = np.flatnonzero(columns >= 0)
            for mine, theirs in zip(self.counts, out):
                theirs += np.bincount(columns[kept], mine[kept], len(theirs))


def add_scores(
    stream: Stream, weights: Array, bias: Array, out: Array, use_kernel: bool, values: Array | None = None
) -> None:
    """Write bias + Σ weights[id] of each document to the rows of out; with `values`, each token times its value."""
    if not use_kernel:
        out[:] = _scores(stream, weights, bias, values)
        return
    from deciban.text.kernels.streams_compiled import add_scaled_scores
    from deciban.text.kernels.streams_compiled import add_scores as run

    if values is None:
        run(stream.ids, stream.lengths, weights, bias, out)
    else:
        add_scaled_scores(stream.ids, stream.lengths, values, weights, bias, out)


class Finish(NamedTuple):
    """Map from the scores of a document of L features to log-probabilities: s(L) · scores + offsets, normalised.

    s(L) = exp(law₀ − law₁ (log max(L, law₃) − law₂)),   or 1 if there is no law
    """

    law: Array  # (4,) or empty
    offsets: Array  # (K,)
    prior: Array  # (K,) the answer if all scores are −inf, or if there is a law and they are equal


def log_probabilities(scores: Array, length: int, finish: Finish) -> Array:
    """Return the log-probabilities of one document. The scores may be overwritten."""
    if len(finish.law):
        if (scores == scores[0]).all():
            return finish.prior.copy()  # a document without evidence stays so
        log_scale, shrinkage, reference, shortest = finish.law
        scores *= exp(log_scale - shrinkage * (log(max(length, shortest)) - reference))
    scores += finish.offsets
    highest = scores.max()
    if highest == -np.inf:  # impossible in every class
        return finish.prior.copy()
    scores -= highest
    scores -= log(np.exp(scores).sum())
    return scores


# -- sparse rows -------------------------------------------------------------------------------------------------------
class Part(NamedTuple):
    """What one reader read: the streams of each chunk, and the column of each id of each stream, −1 for none."""

    read: Sequence[Sequence[Stream]]
    columns: Sequence[Array]

    @property
    def rows(self) -> int:
        return sum(len(streams[0].lengths) for streams in self.read)

    @property
    def tokens(self) -> int:
        return sum(len(stream.ids) for streams in self.read for stream in streams)


def sparse_rows(parts: Sequence[Part], V: int, binary: bool, use_kernel: bool) -> tuple[Array, Array, Array]:
    """Return data, indices and indptr of the counts of all documents; indices are sorted within rows."""
    if not use_kernel:
        return _sparse_rows(parts, V, binary)
    total = sum(part.tokens for part in parts)
    indices, data = np.empty(total, np.int32), np.empty(total, np.int64)
    parts = [part for part in parts if part.rows]
    starts = np.cumsum([0, *(part.tokens for part in parts)]).tolist()

    def write(at: int) -> Array:
        room = slice(starts[at], starts[at + 1])
        return _write_rows(parts[at], V, binary, indices[room], data[room])

    ends = each(write, range(len(parts)))
    numbers = [int(own[-1]) for own in ends]
    limits = [own + before for own, before in zip(ends, accumulate([0, *numbers]))]
    data, indices = (_closed_up(whole, starts, numbers) for whole in (data, indices))
    return data, indices, np.concatenate([np.zeros(1, np.int64), *limits])


def _closed_up(values: Array, starts: Sequence[int], numbers: Sequence[int]) -> Array:
    """Return the first `numbers` values of each part, which begins at one of `starts`; the array is changed."""
    written, start = 0, values.ctypes.data
    for begin, number in zip(starts, numbers):
        if begin > written:  # numpy would make a copy, because the two places overlap
            memmove(start + written * values.itemsize, start + begin * values.itemsize, number * values.itemsize)
        written += number
    values.resize(written, refcheck=False)
    return values


def _write_rows(part: Part, V: int, binary: bool, indices: Array, data: Array) -> Array:
    """Write the rows of a part; the end of each row."""
    from deciban.text.kernels.streams_compiled import DIGIT, WIDTH, sorted_rows

    ends = np.empty(part.rows, np.int64)
    bits = max(V.bit_length(), 1)
    digits = -(-bits // DIGIT)
    histogram = np.empty(1 << -(-bits // digits), np.int32)
    flat = np.concatenate(part.columns).astype(np.int32, copy=False)
    sizes = np.array([len(level) for level in part.columns])
    row, written = 0, 0
    longest = max(np.sum([stream.lengths for stream in streams], axis=0).max() for streams in part.read)
    buffers = digits, *np.empty((2, max(longest + 1, 2 * WIDTH)), np.int32), histogram
    for streams in part.read:
        m = len(streams[0].lengths)
        ids = streams[0].ids if len(streams) == 1 else np.concatenate([stream.ids for stream in streams])
        starts = np.zeros((len(streams), m + 1), np.int64)
        for level, stream in enumerate(streams):
            np.cumsum(stream.lengths, out=starts[level, 1:])
        amounts = np.array([len(stream.ids) for stream in streams])
        starts += (np.cumsum(amounts) - amounts)[:, None]
        out = indices, data, ends[row : row + m]
        written = sorted_rows(ids, starts, flat, np.cumsum(sizes) - sizes, binary, *buffers, *out, written)
        row += m
    return ends


# -- alphabetical order: by code point, which in UTF-8 is the order of the bytes ---------------------------------------
def _eight_bytes(text: Array, offsets: Array, words: Array, depth: int) -> Array:
    """Bytes depth … depth + 7 of some words as big-endian numbers, padded with 0."""
    at = np.minimum(offsets[words] + depth, len(text) - 8)
    everywhere = np.ndarray(len(text) - 7, ">u8", text, strides=(1,))
    left = np.clip(offsets[words + 1] - offsets[words] - depth, 0, 8).astype(np.uint64)
    # A shift by 64 is undefined: two shifts by half.
    half = 4 * (8 - left)
    return everywhere[at].astype(np.uint64) >> half >> half << half << half


def _by_both(group: Array, key: Array) -> Array:
    """Order by group, then key. Two plain sorts are several times faster than `np.lexsort`."""
    by_key = np.argsort(key)
    sorted_key = key[by_key]
    rank = np.empty(len(key), np.int64)
    rank[by_key] = np.cumsum(np.append(0, sorted_key[1:] != sorted_key[:-1]))
    return np.argsort(group * len(key) + rank)


def alphabetical(text: Array, offsets: Array) -> Array:
    """Return the numbers of the words text[offsets[i] : offsets[i + 1]] in alphabetical order.

    Words are compared eight bytes at a time, and only ties further. At least eight bytes must follow the last word.

    >>> text = np.frombuffer(b"todayto" + bytes(8), np.uint8)
    >>> alphabetical(text, np.array([0, 5, 7]))
    array([1, 0])
    """
    order = np.arange(len(offsets) - 1)
    lengths = np.diff(offsets)
    tied = order.copy()  # positions in the order that are not final
    group = np.zeros(len(order), np.int64)  # equal for words whose bytes so far are equal
    depth = 0
    while len(tied):
        key = _eight_bytes(text, offsets, order[tied], depth)
        by_key = np.argsort(key) if depth == 0 else _by_both(group, key)
        order[tied] = order[tied][by_key]
        key, group = key[by_key], group[by_key]
        new = np.append(True, (key[1:] != key[:-1]) | (group[1:] != group[:-1]))
        alone = new & np.append(new[1:], True)
        group = np.cumsum(new)[~alone]
        tied = tied[~alone]
        depth += 8
        if len(tied) and lengths[order[tied]].max() <= depth:
            # Equal but for zero bytes at the end: the shorter word comes first.
            order[tied] = order[tied][_by_both(group, lengths[order[tied]])]
            break
    return order


# -- numpy versions ----------------------------------------------------------------------------------------------------
def document_of_token(stream: Stream) -> Array:
    """Return the position of the document of each id."""
    return np.repeat(np.arange(len(stream.lengths)), stream.lengths)


def _kept(stream: Stream, kept: Array) -> Stream:
    """Return some of the tokens, (tokens,) of bool."""
    before = np.concatenate([[0], np.cumsum(kept)])
    ends = np.cumsum(stream.lengths)
    return Stream(stream.ids[kept], before[ends] - before[ends - stream.lengths])


def _relabelled(stream: Stream, labels: Array) -> Stream:
    new = Stream(labels[stream.ids], stream.lengths)
    return _kept(new, new.ids >= 0)


def _distinct(stream: Stream) -> Stream:
    order, new = _sorted_tokens(stream)
    kept = np.zeros(len(order), bool)
    kept[order[new]] = True  # of equal ids of a document, the first one
    return _kept(stream, kept)


def _sorted_tokens(stream: Stream) -> tuple[Array, Array]:
    """Return the tokens in the order of their ids, then documents, then places; and which are of a new id or document.

    scipy turns sparse rows into columns in one pass, without comparisons.
    """
    tokens, n = len(stream.ids), len(stream.lengths)
    width = int(stream.ids.max(initial=-1)) + 1
    limits = np.concatenate([[0], np.cumsum(stream.lengths)])
    columns = sp.csr_array((np.arange(tokens), stream.ids, limits), (n, width)).tocsc()
    new = np.empty(tokens, bool)
    np.not_equal(columns.indices[1:], columns.indices[:-1], out=new[1:])
    starts = columns.indptr[:-1]
    new[starts[starts < tokens]] = True
    return columns.data, new


def _amounts(stream: Stream, steps: Array) -> Array:
    """steps[t] for each token that is the t-th of its id in its document."""
    order, new = _sorted_tokens(stream)
    values = np.full(len(order), steps[1])
    again = np.flatnonzero(~new)
    if len(again):
        first = np.maximum.accumulate(np.where(new, np.arange(len(order)), 0))
        values[order[again]] = steps[np.minimum(again - first[again] + 1, len(steps) - 1)]
    return values


def _class_counts(
    stream: Stream, codes: Array, weight: Array | None, K: int, V: int, values: Array | None = None
) -> Array:
    place = np.repeat(codes, stream.lengths) * V + stream.ids
    amount = None if weight is None else np.repeat(weight, stream.lengths)
    if values is not None:
        amount = values if amount is None else amount * values
    return np.bincount(place, amount, K * V).reshape(K, V)


def _scores(stream: Stream, weights: Array, bias: Array, values: Array | None) -> Array:
    """Return the scores in the order of the additions of the kernels, so that they are equal to the bit.

    Tokens at even places of a block are added to the scores so far, those at odd places to a sum of their own. A block
    is a document, or without values 64 of its tokens.
    """
    n, row = len(stream.lengths), document_of_token(stream)
    place = np.arange(len(row)) - (np.cumsum(stream.lengths) - stream.lengths)[row]
    block = np.zeros(1, np.intp) if values is not None else place // ROWS_AT_A_TIME
    scores = np.tile(bias, (n, 1))
    for number in range(int(block.max(initial=0)) + 1):
        some = np.flatnonzero(block == number) if len(block) == len(row) and block.max(initial=0) else slice(None)
        terms = weights[stream.ids[some]]
        if values is not None:
            terms *= values[some, None]
        group = 2 * row[some] + (place[some] & 1)
        before = np.zeros((n, 2, len(bias)))
        before[:, 0] = scores
        codes = np.concatenate([np.arange(2 * n), group])
        sums = group_sums(np.concatenate([before.reshape(2 * n, -1), terms]), codes, 2 * n).reshape(before.shape)
        scores = sums[:, 0] + sums[:, 1]
    return scores


def _sparse_rows(parts: Sequence[Part], V: int, binary: bool) -> tuple[Array, Array, Array]:
    made = [sp.csr_array((0, V), dtype=np.int32)]
    for part in parts:
        for streams in part.read:
            labels = [_relabelled(stream, columns) for stream, columns in zip(streams, part.columns)]
            ids, lengths = interleaved(labels)
            limits = np.concatenate([[0], np.cumsum(lengths)])
            rows = sp.csr_array((np.ones(len(ids), np.int32), ids, limits.astype(np.int32)), (len(lengths), V))
            rows = rows.tocsc().tocsr()  # each sorts in one pass, which is faster than a comparison of columns
            rows.has_sorted_indices = True
            rows.sum_duplicates()
            made.append(rows)
    whole = made[-1] if len(made) == 2 else sp.vstack(made, "csr")
    counts = whole.data.astype(np.int64)
    return np.minimum(counts, 1) if binary else counts, whole.indices.astype(np.int32, copy=False), whole.indptr
