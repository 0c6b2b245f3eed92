"""Between a reader's numbers and names: what a reader has found, in order; a reader that knows a vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from deciban.features.vocabulary import Vocabulary, text_array
from deciban.kernels.text.plain import PlainReader
from deciban.later import Later

Array = NDArray[Any]
pc: Any = Later("pyarrow.compute")  # a twentieth of a second that most texts need not wait for


def sizes(reader: Any) -> list[int]:
    """How many features a reader has at each of its levels."""
    return [len(reader)] if isinstance(reader, PlainReader) else reader.sizes


def found(readers: Sequence[Any]) -> tuple[Any, list[list[Array]]]:
    """The names of all that readers have found, sorted; for each reader and level the place of each number."""
    if isinstance(readers[0], PlainReader):
        (reader,) = readers
        words = list(reader.number)
        order = sorted(range(len(words)), key=words.__getitem__)
        place = np.empty(len(order), np.int32)
        place[order] = np.arange(len(order), dtype=np.int32)
        return text_array([words[at] for at in order]), [[place]]
    from deciban.kernels.text.uniting import united

    text, offsets, places = united(readers)
    return pa.LargeStringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(text)), places


def _with_other(level: Array, vocabulary: Vocabulary) -> Array:
    """Columns, and behind them that of features outside."""
    return np.append(level, _other(vocabulary)).astype(np.int32)


def _other(vocabulary: Vocabulary) -> int:
    """The column of features outside a vocabulary."""
    return len(vocabulary) if vocabulary.unk else -1


def fill(reader: Any, vocabulary: Vocabulary) -> None:
    """Give a new reader a vocabulary's features, and note their columns unless they are its numbers."""
    if not reader.tables and reader.lowest == 1:
        reader.words.numbers(*_padded(vocabulary.names), grow=True)
        reader.words.loosen()
        return
    parts = pc.split_pattern(vocabulary.names, " ")
    number = pc.list_value_length(parts).to_numpy()
    coded = parts.flatten().dictionary_encode()
    reader.words.numbers(*_padded(text_array(coded.dictionary)), grow=True)
    reader.words.loosen()
    words = coded.indices.to_numpy()
    starts = np.cumsum(number) - number
    found_columns = []
    runs = words[starts]  # of each feature, the number of its first words
    for n in range(1, len(reader.tables) + 2):
        if n > 1:
            longer = np.flatnonzero(number >= n)
            runs[longer] = reader.tables[n - 2].absorb(runs[longer], words[starts[longer] + n - 1])
        if n >= reader.lowest:
            whole = np.flatnonzero(number == n)
            # Runs that only begin longer ones are outside too.
            level = np.full(len(reader.words) if n == 1 else len(reader.tables[n - 2]), _other(vocabulary), np.int32)
            level[runs[whole]] = whole
            found_columns.append(_with_other(level, vocabulary))
    reader.columns = found_columns


def _padded(names: Any) -> tuple[Array, Array]:
    """Text and offsets of names, with the sixteen bytes behind the last that kernels may read."""
    letters = names.buffers()[2]
    offsets = np.frombuffer(names.buffers()[1], np.int64)[names.offset : names.offset + len(names) + 1]
    text = np.zeros(0, np.uint8) if letters is None else np.frombuffer(letters, np.uint8)[offsets[0] : offsets[-1]]
    return np.append(text, np.zeros(16, np.uint8)), offsets - offsets[0]
