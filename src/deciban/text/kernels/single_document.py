"""Scores of one document at a time, in microseconds.

An array argument adds a tenth of a microsecond to a call of a compiled function. So all arrays that stay the same from
one document to the next are passed as one array of addresses and sizes, the plan.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from deciban.kernels.choice import Array, readable
from deciban.kernels.intrinsics import exp, sum_rows
from deciban.kernels.jit import OPTIONS, Kernel, carray, inline
from deciban.text.kernels.characters import PADDING, address, pointer, prepared_points
from deciban.text.kernels.hash_tables import HANDLED, WORDS, WRITTEN
from deciban.text.kernels.readers import FIRST_SIZE, WordReader, document_buffers, read_words
from deciban.text.kernels.streams import Finish
from deciban.text.kernels.streams_compiled import prefetch_rows

_read_words = inline(read_words.function)
TOO_LONG = -3  # return code: buffers too small for the document; others are NEEDS_PYTHON and INVALID
# Rows of the plan: address and size of an array. The row CASE holds two numbers, `case` and `lone` of read_words.
CASE, POINTS, SLOTS, ARENA, STATE, LOW, MASKS, EDGES, BATCH, IDS, FRAME = range(11)
WEIGHTS, BIAS, STEPS, SEEN, VALUES, LAW, OFFSETS, PRIOR = range(11, 19)


@inline
def _array(plan: Array, row: int, kind: type[np.number]) -> Array:
    return carray(pointer(plan[row, 0], kind), (plan[row, 1],))


@inline
def _table(plan: Array, row: int, columns: int, kind: type[np.number]) -> Array:
    return carray(pointer(plan[row, 0], kind), (plan[row, 1] // columns, columns))


@inline
def _read(plan: Array, text: bytes, state: Array, frame: Array, ids: Array) -> int:
    """Write the ids of a text's words to `ids`; their number, or a return code."""
    low = _array(plan, LOW, np.uint8)
    size = len(text)
    if size + PADDING > low.size:
        return TOO_LONG
    frame[0], frame[1], frame[2] = 0, size, 0
    state[WRITTEN], state[HANDLED] = 0, 0
    letters = carray(pointer(address(text), np.uint8), (size,))
    table = _array(plan, SLOTS, np.uint64), _array(plan, ARENA, np.uint8), state
    masks, batch = _table(plan, MASKS, 2, np.uint64), _table(plan, BATCH, 5, np.uint64)
    given = _array(plan, POINTS, np.int32), np.uint8(plan[CASE, 0]), plan[CASE, 1], state[WORDS]
    _read_words(letters, frame[:2], 0, *given, *table, low, masks, _array(plan, EDGES, np.int64), batch, ids, frame[2:])
    return frame[2]


@inline
def _score(plan: Array, ids: Array, length: int, out: Array) -> None:
    """Set out[0] to bias + Σ weights[id]; with steps, the t-th occurrence of a word counts steps[t]."""
    weights, bias = _table(plan, WEIGHTS, out.shape[1], np.float64), _array(plan, BIAS, np.float64)
    prefetch_rows(weights, ids, 0, length)
    steps = _array(plan, STEPS, np.float64)
    if steps.size == 0:
        sum_rows(weights, ids, None, bias, out, 0, length, 0, 0)
        return
    seen, values = _array(plan, SEEN, np.int32), _array(plan, VALUES, np.float64)
    for p in range(length):
        seen[np.uint64(ids[p])] += 1
        values[p] = steps[min(seen[np.uint64(ids[p])], steps.size - 1)]
    for p in range(length):
        seen[np.uint64(ids[p])] = 0
    sum_rows(weights, ids, values, bias, out, 0, length, ids.size - 1, 0)


@inline
def _finish(plan: Array, scores: Array, length: int) -> None:
    """Do what `streams.log_probabilities` does, unless there are no offsets."""
    law, offsets = _array(plan, LAW, np.float64), _array(plan, OFFSETS, np.float64)
    if offsets.size == 0:
        return
    scale, equal = 1.0, law.size > 0
    if law.size > 0:
        scale = math.exp(law[0] - law[1] * (math.log(max(np.float64(length), law[3])) - law[2]))
        for k in range(scores.size):
            equal = equal and scores[k] == scores[0]
    highest = -np.inf
    for k in range(scores.size):
        scores[k] = scores[k] * scale + offsets[k]
        highest = max(highest, scores[k])
    if equal or highest == -np.inf:
        scores[:] = _array(plan, PRIOR, np.float64)
        return
    total = 0.0
    for k in range(scores.size):
        total += exp(scores[k] - highest)
    norm = highest + math.log(total)
    for k in range(scores.size):
        scores[k] -= norm


def _score_text(text: bytes, plan: Array, out: Array) -> int:
    """Write the scores of a text, or its log-probabilities, to `out`; the number of words, or a return code."""
    ids = _array(plan, IDS, np.int32)
    length = _read(plan, text, _array(plan, STATE, np.int64), _array(plan, FRAME, np.int64), ids)
    if length >= 0:
        _score(plan, ids, length, carray(pointer(address(out), np.float64), (1, out.size)))
        _finish(plan, out, length)
    return length


# It keeps the GIL, so that threads do not share its buffers; releasing it for so short a time would gain nothing.
score_text = Kernel(_score_text, {**OPTIONS, "nogil": False})


class _Buffers(NamedTuple):
    """Memory for documents up to some size, and the plans for texts as they are and as Python prepared them."""

    arrays: tuple[Array, ...]  # keeps the memory of the plans alive
    plan: Array
    prepared_plan: Array


_NOTHING = np.empty(0)
_NO_FINISH = Finish(_NOTHING, _NOTHING, _NOTHING)


class SingleDocumentScorer:
    """Scores texts one at a time: bias + Σ weights[word]. The last row of weights is for words not in the table."""

    def __init__(
        self,
        reader: WordReader,
        weights: Array,
        bias: Array,
        steps: Callable[[int], Array] | None = None,
        finish: Finish = _NO_FINISH,
    ) -> None:
        self.reader, self.steps, self.K = reader, steps, len(bias)
        self.weights, self.bias = readable(weights, np.float64), readable(bias, np.float64)
        self.finish = Finish(*(readable(part, np.float64) for part in finish))
        self.seen = np.zeros(len(weights) if steps is not None else 0, np.int32)
        self.buffers = self._allocate(FIRST_SIZE)
        score_text(b"", self.buffers.plan, np.empty(self.K))  # compiles it
        self.run = score_text.run  # numba's dispatcher itself: the shortest call

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy without buffers: a copy has memory of its own, at other addresses."""
        return SingleDocumentScorer, (self.reader, self.weights, self.bias, self.steps, self.finish)

    def with_finish(self, finish: Finish) -> SingleDocumentScorer:
        """Return a scorer with the same words and weights that gives log-probabilities."""
        return SingleDocumentScorer(self.reader, self.weights, self.bias, self.steps, finish)

    def _allocate(self, size: int) -> _Buffers:
        reader, words, (low, masks) = self.reader, self.reader.words, document_buffers(size)
        ids, frame = np.zeros(size // 3 + 1, np.int32), np.zeros(3, np.int64)
        steps = _NOTHING if self.steps is None else readable(self.steps(len(ids)), np.float64)
        values = np.empty(len(ids) if len(steps) else 0)
        memory = words.slots, words.arena, words.state, low, masks, reader.edges, words.batch, ids, frame
        arrays = (*memory, self.weights, self.bias, steps, self.seen, values, *self.finish)
        prepared = prepared_points(reader.by_script)
        plan = _plan(reader.case, reader.lone, reader.points, arrays)
        return _Buffers((reader.points, prepared, *arrays), plan, _plan(0, reader.lone, prepared, arrays))

    def __call__(self, text: str) -> tuple[Array, int]:
        """Return the scores of a text, (K,), or its log-probabilities, and its number of words."""
        raw, out, buffers = text.encode(), np.empty(self.K), self.buffers
        length = self.run(raw, buffers.plan, out)
        if length < 0:
            length = self._repeat(text, raw, length, buffers, out)
        return out, length

    def _repeat(self, text: str, raw: bytes, length: int, buffers: _Buffers, out: Array) -> int:
        """Score a document again that is too long for the buffers, or must be prepared in Python."""
        prepared = False
        while length < 0:
            if length == TOO_LONG:
                self.buffers = buffers = self._allocate(2 * len(raw))
            else:
                prepared, raw = True, self.reader.prepare(text).encode()
            length = self.run(raw, buffers.prepared_plan if prepared else buffers.plan, out)
        return length


def _plan(case: int, lone: int, points: Array, arrays: tuple[Array, ...]) -> Array:
    """Return addresses and sizes in the order of the plan's rows."""
    return np.array([[case, lone], *([array.ctypes.data, array.size] for array in (points, *arrays))], np.int64)
