"""One document at a time, in microseconds: everything it needs is made beforehand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..choice import Array, readable
from ..jit import OPTIONS, Kernel, part
from ..register_sums import sum_rows_of, sum_scaled_rows_of
from .code_points import code_points
from .marks import PADDING
from .reader import WordReader
from .table import HANDLED, WORDS, WRITTEN
from .words import read_words

_read_words = part(read_words.function)
TOO_LONG = -3  # said of a document for which there is no room


def _score(
    text: Array,
    points: Array,
    case: int,
    slots: Array,
    arena: Array,
    state: Array,
    low: Array,
    masks: Array,
    edges: Array,
    batch: Array,
    ids: Array,
    frame: Array,
    weights: Array,
    bias: Array,
    steps: Array,
    seen: Array,
    values: Array,
    out: Array,
) -> int:
    """Set out[0] to bias + Σ weights[word]; the number of words, or what is said of the document instead.

    With steps, the t-th occurrence of a word counts steps[t]. `seen` is zero before and after: how often each word was
    met. `frame` is room for where the document begins and ends, and its length.
    """
    if text.size + PADDING > low.size:
        return TOO_LONG
    frame[0], frame[1], frame[2] = 0, text.size, 0
    state[WRITTEN], state[HANDLED] = 0, 0
    memory = slots, arena, state, low, masks, edges, batch
    _read_words(text, frame[:2], 0, points, case, state[WORDS], *memory, ids, frame[2:])
    length = frame[2]
    if length >= 0 and steps.size:
        for p in range(length):
            seen[np.uint64(ids[p])] += 1
            values[p] = steps[min(seen[np.uint64(ids[p])], steps.size - 1)]
        for p in range(length):
            seen[np.uint64(ids[p])] = 0
        sum_scaled_rows_of(weights, ids, values, bias, out, 0, length, ids.size - 1, 0)
    elif length >= 0:
        sum_rows_of(weights, ids[:length], bias, out, 0)
    return length


# It keeps the GIL, and so its memory to itself: for so short a time nobody would have it otherwise.
score = Kernel(_score, {**OPTIONS, "nogil": False})


class OneByOne:
    """Scores texts one at a time by their words: bias + Σ weights[word], the last row for words not in the table."""

    def __init__(
        self, reader: WordReader, weights: Array, bias: Array, steps: Callable[[int], Array] | None = None
    ) -> None:
        self.steps, self.seen = steps, np.zeros(len(weights) if steps is not None else 0, np.int32)
        self.reader, self.prepare = reader, reader.prepare
        self.weights, self.bias = readable(weights, np.float64), readable(bias, np.float64)
        self.K = len(bias)
        self.care: Any = (code_points(lowercase=False), 0)
        self._make_room(2**14)

    def _make_room(self, size: int) -> None:
        self.reader._make_room(size)
        words, ids, frame = self.reader.words, np.zeros(size // 3 + 1, np.int32), np.zeros(3, np.int64)
        steps = np.zeros(0) if self.steps is None else self.steps(len(ids))
        self.given = self.reader.points, self.reader.case
        self.memory = (
            words.slots,
            words.arena,
            words.state,
            self.reader.low,
            self.reader.masks,
            self.reader.edges,
            words.batch,
            ids,
            frame,
            self.weights,
            self.bias,
            steps,
            self.seen,
            np.empty(len(ids) if len(steps) else 0),
        )

    def __call__(self, text: str) -> tuple[Array, int]:
        """The scores of a text, (K,), and how many words it has."""
        return self._scored(text.encode(), self.given)

    def _scored(self, text: bytes, given: Any) -> tuple[Array, int]:
        if not text:
            return self.bias.copy(), 0
        out = np.empty((1, self.K))
        length = score(np.frombuffer(text, np.uint8), *given, *self.memory, out)
        if length >= 0:
            return out[0], length
        if length == TOO_LONG:
            self._make_room(2 * len(text))
            return self._scored(text, given)
        return self._scored(self.prepare(text.decode()).encode(), self.care)  # it is UTF-8, so it needs care
