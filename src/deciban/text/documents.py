"""Documents as given (lists, arrays, columns of pandas, polars and pyarrow), read as UTF-8 a chunk at a time.

Arrow columns are read where they are. Everything else is converted chunk by chunk, so that a chunk is still in the
cache when its words are counted, and a corpus is never held twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from deciban.errors import InputError
from deciban.read.arrow import taken
from deciban.statistics import Array
from deciban.text.kernels.streams import Chunk

if TYPE_CHECKING:
    import pyarrow as pa

CHUNK_BYTES = 2**20  # of text read at a time: large beside the cost of a call, small enough for the cache
FIRST_DOCUMENTS = 256  # documents in the first chunk of a list, whose lengths are not known yet


def encoded(texts: Sequence[str]) -> tuple[Array, Array]:
    """Return the UTF-8 of texts without gaps, and the (n + 1,) offsets of the texts in it.

    As fast as Arrow, which would import pandas to inspect its argument, and would leave a UTF-8 copy in every string
    that is not ASCII. Raises TypeError for what is not a text, UnicodeEncodeError for half a surrogate pair.

    >>> text, offsets = encoded(["one", "", "zwölf"])
    >>> text.tobytes().decode(), offsets
    ('onezwölf', array([0, 3, 3, 9]))
    """
    if all(map(str.isascii, texts)):
        whole, sizes = "".join(texts).encode(), map(len, texts)
    else:
        each = [text.encode() for text in texts]
        whole, sizes = b"".join(each), map(len, each)
    offsets = np.zeros(len(texts) + 1, np.int64)
    np.cumsum(np.fromiter(sizes, np.int64, len(texts)), out=offsets[1:])
    return np.frombuffer(whole, np.uint8), offsets


@dataclass(frozen=True)
class Documents:
    """n texts.

    >>> [chunk.text.tobytes() for chunk in Documents.of(["to be", "or not"]).chunks()]
    [b'to beor not']
    """

    texts: Any  # a list of str, or a pyarrow ChunkedArray of strings

    @classmethod
    def of(cls, texts: Any, encoding: str = "utf-8", decode_error: str = "strict") -> Documents:
        """Take a list, an array or a column of a frame; bytes are decoded."""
        if isinstance(texts, Documents):
            return texts
        if isinstance(texts, str | bytes):
            raise InputError("Iterable over raw text documents expected, string object received. Put it into a list.")
        if hasattr(texts, "__arrow_c_stream__") or hasattr(texts, "__arrow_c_array__"):
            return cls(_arrow_column(texts))
        if isinstance(texts, np.ndarray):
            if texts.ndim != 1:
                raise InputError(f"texts must be one column, but have shape {texts.shape}. Select one column.")
            texts = texts.tolist()
        texts = texts if isinstance(texts, list) else list(texts)
        if bytes in set(map(type, texts)):
            texts = [_decoded(text, row, encoding, decode_error) for row, text in enumerate(texts)]
        return cls(texts)

    @classmethod
    def joined(cls, parts: Sequence[Documents]) -> Documents:
        """Concatenate the documents of several."""
        if any(isinstance(part.texts, list) for part in parts):
            return cls([part[row] for part in parts for row in range(len(part))])
        import pyarrow as pa

        return cls(pa.chunked_array([chunk for part in parts for chunk in part.texts.chunks]))

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, row: int) -> str:
        return self.texts[row] if isinstance(self.texts, list) else self.texts[row].as_py()

    def take(self, rows: Array) -> Documents:
        """Return the documents at these positions."""
        if isinstance(self.texts, list):
            return Documents([self.texts[row] for row in rows.tolist()])
        first, last = (int(rows[0]), int(rows[-1])) if len(rows) else (0, -1)
        if last - first + 1 == len(rows) and (np.diff(rows) == 1).all():
            return Documents(self.texts.slice(first, len(rows)))  # without a copy
        return Documents(taken(self.texts, rows))

    def at_least(self, size: int) -> bool:
        """Whether there are at least so many bytes of text; in a list, characters are counted instead of bytes."""
        if not isinstance(self.texts, list):
            return sum(_size(part) for part in self.texts.chunks) >= size
        total = 0
        for text in self.texts:
            total += len(text) if isinstance(text, str) else 0
            if total >= size:
                return True
        return False

    def chunks(self, first: int = 0, last: int | None = None) -> Iterator[Chunk]:
        """Yield documents `first` to `last`, about a megabyte at a time."""
        last = len(self) if last is None else last
        if isinstance(self.texts, list):
            yield from _converted(self.texts, first, last)
        else:
            row = first
            for part in self.texts.slice(first, last - first).chunks:
                yield from _cut(part, row)
                row += len(part)

    def ranges(self, number: int) -> list[tuple[int, int]]:
        """Cut the rows into so many ranges with about the same number of bytes each."""
        if number == 1:
            return [(0, len(self))]
        if isinstance(self.texts, list):
            sizes = np.fromiter(map(len, self.texts), np.int64, len(self))
        else:
            sizes = np.concatenate([np.diff(_buffers(part)[1]) for part in self.texts.chunks] or [np.zeros(0, int)])
        ends = np.cumsum(sizes)
        total = int(ends[-1]) if len(ends) else 0
        cuts = [0, *(int(np.searchsorted(ends, total * i // number)) for i in range(1, number)), len(self)]
        return list(pairwise(cuts))


def _decoded(text: Any, row: int, encoding: str, errors: str) -> Any:
    if not isinstance(text, bytes):
        return text
    try:
        return text.decode(encoding, errors)
    except UnicodeDecodeError as error:
        raise InputError(
            f"document {row} is not valid {encoding}: {error.reason} at byte {error.start}. "
            "Give its encoding, or decode_error='replace' or 'ignore'."
        ) from error


def _arrow_column(texts: Any) -> Any:
    """Return a ChunkedArray of strings without gaps; plain strings are not copied."""
    import pyarrow as pa

    try:
        column = texts if isinstance(texts, pa.ChunkedArray) else pa.chunked_array(texts)
    except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeEncodeError):
        return list(texts)  # a column of Python objects, which are examined one by one
    if pa.types.is_null(column.type) and len(column):
        _refuse_missing(column)
    if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
        raise InputError("the column holds bytes. Decode it, or cast it to strings if it is UTF-8.")
    if pa.types.is_dictionary(column.type):
        spelt = [part.dictionary.cast(pa.large_string()).take(part.indices) for part in column.chunks]
        column = pa.chunked_array(spelt, pa.large_string())
    if pa.types.is_string_view(column.type):
        column = column.cast(pa.large_string())
    if not (pa.types.is_large_string(column.type) or pa.types.is_string(column.type)):
        raise InputError(f"texts must be strings, but the column holds {column.type}.")
    if column.null_count:
        _refuse_missing(column)
    return column


def _refuse_missing(column: pa.ChunkedArray) -> None:
    row = int(np.flatnonzero(column.is_null().to_numpy())[0])
    raise InputError(f"document {row} is missing (None). Drop the row, or give an empty text.")


def _buffers(part: pa.Array) -> tuple[Array, Array]:
    """Return the text and the offsets of an Arrow array of strings; the offsets are checked, the text is not."""
    import pyarrow as pa

    width = np.int64 if pa.types.is_large_string(part.type) else np.int32
    _, starts, text = part.buffers()
    if not len(part) or starts is None:
        return np.zeros(0, np.uint8), np.zeros(1, np.int64)
    offsets = np.frombuffer(starts, width)[part.offset : part.offset + len(part) + 1].astype(np.int64, copy=False)
    letters = np.zeros(0, np.uint8) if text is None else np.frombuffer(text, np.uint8)
    if offsets[0] < 0 or offsets[-1] > len(letters) or np.any(offsets[1:] < offsets[:-1]):
        raise InputError("the Arrow column is broken: its offsets do not lie within its text.")
    return letters, offsets


def _size(part: pa.Array) -> int:
    _, offsets = _buffers(part)
    return int(offsets[-1] - offsets[0])


def _cut(part: pa.Array, row: int) -> Iterator[Chunk]:
    """Cut an Arrow array into chunks; its first document has the number `row`."""
    text, offsets = _buffers(part)
    begin = 0
    while begin < len(part):
        end = int(np.searchsorted(offsets, offsets[begin] + CHUNK_BYTES, side="right")) - 1
        end = min(max(end, begin + 1), len(part))
        yield Chunk(text, offsets[begin : end + 1], row + begin)
        begin = end


def _converted(texts: list[Any], first: int, last: int) -> Iterator[Chunk]:
    """Encode a list chunk by chunk; the size of a chunk follows from the mean length in the one before."""
    begin, number = first, FIRST_DOCUMENTS
    while begin < last:
        end = min(begin + number, last)
        try:
            text, offsets = encoded(texts[begin:end])
        except (TypeError, UnicodeEncodeError):
            _refuse_first_bad(texts, begin, end)
            raise
        yield Chunk(text, offsets, begin)
        number = int(np.clip(CHUNK_BYTES * (end - begin) // max(len(text), 1), 1, 2**16))
        begin = end


def _refuse_first_bad(texts: list[Any], begin: int, end: int) -> None:
    """Name the first document that is missing, not a text, or holds half a surrogate pair."""
    for row in range(begin, end):
        text = texts[row]
        if text is None or text != text:
            raise InputError(f"document {row} is missing ({text}). Drop the row, or give an empty text.")
        if not isinstance(text, str):
            raise InputError(f"document {row} is not a text but {type(text).__name__}: {text!r:.60}.")
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InputError(
                f"document {row} holds half a surrogate pair, {text[error.start]!r}, at character {error.start}. "
                "Decode it anew with errors='replace'."
            ) from None
