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
from deciban.features.documents import Documents
from deciban.features.known import KnownWords
from deciban.features.limits import NO_LIMITS, Limits, restricted
from deciban.features.reading import Reading
from deciban.features.tokens import WORDS, Tokens
from deciban.features.vocabulary import Vocabulary
from deciban.kernels.text.chunks import Stream
from deciban.kernels.text.gathering import Part, sparse_rows

if TYPE_CHECKING:
    import scipy.sparse as sp

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
