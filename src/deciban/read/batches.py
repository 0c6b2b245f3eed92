"""Rows regrouped: tables of a fixed number of rows, of which those with much text come in parts.

Where a table ends depends on the rows alone: not on how a file was written, nor on whether they are in a file at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deciban.read.arrow import whole_numbers

if TYPE_CHECKING:
    import pyarrow as pa

Array = NDArray[Any]
TEXT = 2**23  # bytes of texts in a part: enough to forget what a batch costs, little beside a vocabulary


def regrouped(pieces: Iterable[pa.Table], rows: int, texts: Callable[[], Sequence[str]] = tuple) -> Iterator[pa.Table]:
    """The same rows in tables of exactly `rows`, but for the last.

    Once the first table was seen, `texts` is asked for the columns that hold texts: of all others, what has more text
    than a part may have comes in parts.
    """
    import pyarrow as pa

    names: Sequence[str] = ()
    held: list[pa.Table] = []
    left, room = rows, TEXT  # rows and bytes that are still to come
    for piece in pieces:
        while len(piece):
            some = piece.slice(0, left)
            ends = text_ends([some[name] for name in names], len(some))
            cut = max(int(np.searchsorted(ends, room, "right")), not held)
            if cut:
                held.append(some.slice(0, cut))
                left, room, piece = left - cut, room - int(ends[cut - 1]), piece.slice(cut)
            if cut < len(some) or left == 0:
                yield pa.concat_tables(held)
                held, room = [], TEXT
                if left == 0:
                    left, names = rows, texts()
    if held:
        yield pa.concat_tables(held)


def cuts(columns: Sequence[Any], n: int) -> Iterator[slice]:
    """The parts that `regrouped` makes of a table after the first, by its columns of texts.

    >>> import pyarrow as pa
    >>> list(cuts([pa.chunked_array([["a" * (TEXT // 2)] * 3])], 3))
    [slice(0, 2, None), slice(2, 3, None)]
    """
    ends = np.append(0, text_ends(columns, n))
    begin = 0
    while begin < n:
        end = max(int(np.searchsorted(ends, ends[begin] + TEXT, "right")) - 1, begin + 1)
        yield slice(begin, end)
        begin = end


def text_ends(columns: Sequence[Any], n: int) -> Array:
    """(n,) bytes of texts up to and with each row; what is no plain text, such as codes of a dictionary, has none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    sizes = np.zeros(n, np.int64)
    for column in columns:
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            lengths = pc.binary_length(column)
            sizes += whole_numbers(pc.fill_null(lengths, 0) if lengths.null_count else lengths)
    return np.cumsum(sizes)
