"""One document at a time, in microseconds: everything it needs is made beforehand.

To be handed an array costs a compiled function a tenth of a microsecond. So all that stays the same from one document
to the next is handed over as one array of addresses.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from deciban.kernels.choice import Array, readable
from deciban.kernels.jit import OPTIONS, Kernel, carray, part
from deciban.kernels.rows_compiled import exp
from deciban.kernels.words_compiled import sum_rows_of, sum_scaled_rows_of
from deciban.text.kernels.characters import PADDING, address, code_points, pointer
from deciban.text.kernels.compiled_consumers import ask_for_rows
from deciban.text.kernels.plain import Finish
from deciban.text.kernels.readers import WordReader, room_for
from deciban.text.kernels.scan import read_words
from deciban.text.kernels.table import HANDLED, WORDS, WRITTEN

_read_words = part(read_words.function)
TOO_LONG = -3  # said of a document for which there is no room
FIRST_SIZE = 2**14  # bytes of a document, before a longer one is met
# Rows of the array of addresses and sizes; that of CASE is a number.
CASE, POINTS, SLOTS, ARENA, STATE, LOW, MASKS, EDGES, BATCH, IDS, FRAME = range(11)
WEIGHTS, BIAS, STEPS, SEEN, VALUES, LAW, OFFSETS, PRIOR = range(11, 19)


@part
def _array(plan: Array, row: int, kind: Any) -> Array:
    return carray(pointer(plan[row, 0], kind), (plan[row, 1],))


@part
def _table(plan: Array, row: int, columns: int, kind: Any) -> Array:
    return carray(pointer(plan[row, 0], kind), (plan[row, 1] // columns, columns))


@part
def _read(plan: Array, text: Any, state: Array, frame: Array, ids: Array) -> int:
    """Write the numbers of a text's words to `ids`; how many, or what is said of the document instead."""
    low = _array(plan, LOW, np.uint8)
    size = len(text)
    if size + PADDING > low.size:
        return TOO_LONG
    frame[0], frame[1], frame[2] = 0, size, 0
    state[WRITTEN], state[HANDLED] = 0, 0
    letters = carray(pointer(address(text), np.uint8), (size,))
    table = _array(plan, SLOTS, np.uint64), _array(plan, ARENA, np.uint8), state
    masks, batch = _table(plan, MASKS, 2, np.uint64), _table(plan, BATCH, 5, np.uint64)
    given = _array(plan, POINTS, np.int32), np.uint8(plan[CASE, 0]), state[WORDS]
    _read_words(letters, frame[:2], 0, *given, *table, low, masks, _array(plan, EDGES, np.int64), batch, ids, frame[2:])
    return frame[2]


@part
def _add(plan: Array, ids: Array, length: int, out: Array) -> None:
    """Set out[0] to bias + Σ weights[word], where with steps the t-th occurrence of a word counts steps[t]."""
    weights, bias = _table(plan, WEIGHTS, out.shape[1], np.float64), _array(plan, BIAS, np.float64)
    ask_for_rows(weights, ids, 0, length)
    steps = _array(plan, STEPS, np.float64)
    if steps.size == 0:
        sum_rows_of(weights, ids[:length], bias, out, 0)
        return
    seen, values = _array(plan, SEEN, np.int32), _array(plan, VALUES, np.float64)
    for p in range(length):
        seen[np.uint64(ids[p])] += 1
        values[p] = steps[min(seen[np.uint64(ids[p])], steps.size - 1)]
    for p in range(length):
        seen[np.uint64(ids[p])] = 0
    sum_scaled_rows_of(weights, ids, values, bias, out, 0, length, ids.size - 1, 0)


@part
def _finish(plan: Array, scores: Array, length: int) -> None:
    """What `plain.finished` does; nothing where there are no offsets."""
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


def _answer(text: Any, plan: Array, out: Array) -> int:
    """Write the scores of a text, or what they come to, to `out`; the number of words, or what is said instead."""
    ids = _array(plan, IDS, np.int32)
    length = _read(plan, text, _array(plan, STATE, np.int64), _array(plan, FRAME, np.int64), ids)
    if length >= 0:
        _add(plan, ids, length, carray(pointer(address(out), np.float64), (1, out.size)))
        _finish(plan, out, length)
    return length


# It keeps the GIL, and so its memory to itself: for so short a time nobody would have it otherwise.
answer = Kernel(_answer, {**OPTIONS, "nogil": False})


class _Room(NamedTuple):
    """Memory for documents up to some size, and its addresses: texts as they come, and those that Python prepared."""

    arrays: tuple[Array, ...]  # which must live as long as their addresses
    given: Array
    care: Array


_NOTHING = np.empty(0)
_NO_FINISH = Finish(_NOTHING, _NOTHING, _NOTHING)


class OneByOne:
    """Scores texts one at a time by their words: bias + Σ weights[word], the last row for words not in the table."""

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
        self.room = self._room(FIRST_SIZE)
        answer(b"", self.room.given, np.empty(self.K))  # compiled now, it is run without detours
        self.run = answer.run

    def __reduce__(self) -> Any:
        """A copy has memory of its own, at its own addresses."""
        return OneByOne, (self.reader, self.weights, self.bias, self.steps, self.finish)

    def finished(self, finish: Finish) -> OneByOne:
        """One that answers with log-probabilities, by the same words and weights."""
        return OneByOne(self.reader, self.weights, self.bias, self.steps, finish)

    def _room(self, size: int) -> _Room:
        reader, words, (low, masks) = self.reader, self.reader.words, room_for(size)
        ids, frame = np.zeros(size // 3 + 1, np.int32), np.zeros(3, np.int64)
        steps = _NOTHING if self.steps is None else readable(self.steps(len(ids)), np.float64)
        values = np.empty(len(ids) if len(steps) else 0)
        memory = words.slots, words.arena, words.state, low, masks, reader.edges, words.batch, ids, frame
        arrays = (*memory, self.weights, self.bias, steps, self.seen, values, *self.finish)
        tables = {reader.case: reader.points, 0: code_points(lowercase=False)}
        given, care = (_plan(case, tables[case], arrays) for case in (reader.case, 0))
        return _Room((*tables.values(), *arrays), given, care)

    def __call__(self, text: str) -> tuple[Array, int]:
        """The scores of a text, (K,), or what they come to, and how many words it has."""
        raw, out, room = text.encode(), np.empty(self.K), self.room
        length = self.run(raw, room.given, out)
        if length < 0:
            length = self._again(text, raw, length, room, out)
        return out, length

    def _again(self, text: str, raw: bytes, length: int, room: _Room, out: Array) -> int:
        """The same for a document that is too long for the room, or needs care, as it is UTF-8."""
        careful = False
        while length < 0:
            if length == TOO_LONG:
                self.room = room = self._room(2 * len(raw))
            else:
                careful, raw = True, self.reader.prepare(text).encode()
            length = self.run(raw, room.care if careful else room.given, out)
        return length


def _plan(case: int, points: Array, arrays: tuple[Array, ...]) -> Array:
    """Rows as their names say: addresses and sizes."""
    return np.array([[case, 0], *([array.ctypes.data, array.size] for array in (points, *arrays))], np.int64)
