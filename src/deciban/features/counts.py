"""Documents counted in one pass over the text: a sparse row for each.

Large inputs go to compiled kernels, in threads where there are cores; small ones to plain Python. Unweighted counts are
the same to the bit, whichever did the work and however many.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deciban.features.documents import Documents
from deciban.features.limits import NO_LIMITS, Limits, restricted
from deciban.features.reading import Reading
from deciban.features.tokens import WORDS, Tokens
from deciban.features.vocabulary import Vocabulary
from deciban.kernels.text.chunks import Stream
from deciban.kernels.text.gathering import Part, sparse_rows

if TYPE_CHECKING:
    import scipy.sparse as sp

Array = NDArray[Any]


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

    def read(first: int, last: int) -> tuple[Any, list[list[Stream]]]:
        reader = reading.reader()
        return reader, [reading.streams(reader, chunk) for chunk in reading.documents.chunks(first, last)]

    parts = reading.run(read)
    known, places = reading.places([reader for reader, _ in parts])
    if vocabulary is None and not limits.none:
        everything = [Part(streams, place) for (_, streams), place in zip(parts, places)]
        data, indices, _ = sparse_rows(everything, len(known), binary, reading.fast)
        held, total = np.bincount(indices, minlength=len(known)), np.bincount(indices, data, len(known))
        kept = limits.kept(len(reading.documents), total.astype(np.int64), held[None])
        known, places = restricted(known, kept, places, limits)
    found = [Part(streams, place) for (_, streams), place in zip(parts, places)]
    return _matrix(*sparse_rows(found, known.columns, binary, reading.fast), known.columns), known


def _matrix(data: Array, indices: Array, pointers: Array, V: int) -> sp.csr_array:
    import scipy.sparse as sp

    width = np.int32 if len(data) <= np.iinfo(np.int32).max else np.int64
    pieces = data, indices.astype(width, copy=False), pointers.astype(width, copy=False)
    matrix = sp.csr_array(pieces, (len(pointers) - 1, V))
    matrix.has_sorted_indices = matrix.has_canonical_format = True
    return matrix
