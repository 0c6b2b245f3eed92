"""The words a model knows: learnt, given, capped or growing.

A word outside a learnt vocabulary is dropped; outside any other kind it is the word **unk**, which has a column of its
own behind all others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from deciban.errors import InputError, MergeError, shortlist
from deciban.features.utf8 import encoded
from deciban.kernels.choice import compiled, readable
from deciban.kernels.text.ordering import alphabetical
from deciban.later import Later
from deciban.read.arrow import taken

Array = NDArray[Any]
pc: Any = Later("pyarrow.compute")  # a twentieth of a second that most texts need not wait for
Kind = Literal["learnt", "given", "capped", "growing"]
WORK_PER_WORD = 10  # elementary operations that looking a word up takes
UNK = "unk"  # what the column of words outside is called


@dataclass(frozen=True, eq=False, repr=False)
class Vocabulary:
    """Words and their columns. Of the names, the first `declared` stay whatever is counted; the others are sorted.

    >>> ours, theirs = Vocabulary.of(["lamb", "snow"], "growing"), Vocabulary.of(["fleece", "snow"], "growing")
    >>> ours.union(theirs)
    Vocabulary(fleece, lamb, snow; growing)
    >>> ours.ids(["snow", "rain", "lamb"])
    array([ 1, -1,  0])
    """

    names: pa.LargeStringArray
    kind: Kind = "given"
    declared: int = 0

    @classmethod
    def of(cls, words: Iterable[str], kind: Kind = "given") -> Vocabulary:
        """A vocabulary of words in the order given, which is kept if they are given or capped, else sorted."""
        words = words if isinstance(words, pa.Array | pa.ChunkedArray) else list(words)
        try:
            names = text_array(words)
        except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, UnicodeEncodeError):
            odd = "None" if any(word is None for word in words) else "something else"
            raise InputError(f"a vocabulary is a list of texts; this one holds {odd}.") from None
        if names.null_count:
            raise InputError("a vocabulary is a list of texts; this one holds None.")
        if len(names.unique()) != len(names):
            seen = names.value_counts()
            twice = seen.field("values").filter(pc.greater(seen.field("counts"), 1)).to_pylist()
            raise InputError(f"Duplicate term in vocabulary: {shortlist(list(map(repr, twice)))}.")
        if kind in ("given", "capped"):
            return cls(names, kind, len(names) if kind == "given" else 0)
        return cls(taken(names, in_order(names)), kind)

    @property
    def unk(self) -> bool:
        """Whether words outside have a column."""
        return self.kind != "learnt"

    @property
    def size(self) -> int:
        return len(self.names)

    @property
    def columns(self) -> int:
        """With that of unk."""
        return len(self.names) + self.unk

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names.to_pylist())

    def __contains__(self, word: object) -> bool:
        return isinstance(word, str) and pc.index(self.names, pa.scalar(word, pa.large_string())).as_py() >= 0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vocabulary):
            return NotImplemented
        same = (self.kind, self.declared) == (other.kind, other.declared)
        return self is other or (same and self.names.equals(other.names))

    __hash__ = None  # type: ignore[assignment]  # as long as comparing: better not asked for

    def __repr__(self) -> str:
        return f"Vocabulary({shortlist(self.names[:5].to_pylist() + [''] * (len(self) - 5))}; {self.kind})"

    def ids(self, words: Iterable[str]) -> Array:
        """The column of each word, −1 outside."""
        return self.positions_of(text_array(words if isinstance(words, pa.Array) else list(words)))

    def positions_of(self, names: Any) -> Array:
        return pc.fill_null(pc.index_in(names, self.names), -1).to_numpy(zero_copy_only=False).astype(np.intp)

    def positions(self, other: Vocabulary) -> Array:
        """Where each of another's words stands here, −1 outside."""
        if self == other:
            return np.arange(len(self))
        if compiled(WORK_PER_WORD * (len(self) + len(other))):
            found = _found_in_order(self.names, other.names)
            if found.min(initial=0) >= 0:
                return found
        return self.positions_of(other.names)

    def union(self, other: Vocabulary) -> Vocabulary:
        """The words of both: declared ones first, the others sorted."""
        if self == other:
            return self
        if self.kind != other.kind:
            raise MergeError(
                f"a {self.kind} and a {other.kind} vocabulary cannot be merged: they treat new words apart."
            )
        if self.kind in ("given", "capped"):
            odd = [*self.outside(other), *other.outside(self)]
            if odd:
                raise MergeError(
                    f"two {self.kind} vocabularies differ, in {shortlist(odd)}: what is unk in one is a word in the "
                    "other. Count both with one vocabulary."
                )
        declared = pa.concat_arrays([self.names[: self.declared], other.names[: other.declared]]).unique()
        found = pa.concat_arrays([self.names[self.declared :], other.names[other.declared :]]).unique()
        found = found.filter(pc.invert(pc.is_in(found, declared)))
        return Vocabulary(pa.concat_arrays([declared, taken(found, in_order(found))]), self.kind, len(declared))

    def outside(self, other: Vocabulary) -> list[str]:
        """The words of another that are not here."""
        return taken(other.names, np.flatnonzero(self.positions_of(other.names) < 0)).to_pylist()

    def take(self, index: Array) -> Vocabulary:
        """A selection, in the order given."""
        index = np.asarray(index)
        return replace(self, names=taken(self.names, index), declared=int(np.sum(index < self.declared)))

    def used(self, counted: Array) -> Array:
        """The columns to keep: declared, or with anything counted; `counted` is (V,), as bool or counts."""
        return np.flatnonzero((np.asarray(counted)[: len(self)] != 0) | (np.arange(len(self)) < self.declared))


def text_array(words: Any) -> Any:
    """Strings as an Arrow array with 64-bit offsets."""
    if isinstance(words, pa.ChunkedArray):
        words = words.combine_chunks()
    if isinstance(words, pa.Array):
        return words if pa.types.is_large_string(words.type) else words.cast(pa.large_string())
    text, offsets = encoded(list(words))
    return pa.LargeStringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(text))


def in_order(names: Any) -> Array:
    """Positions of names in order of their code points."""
    text, offsets = _letters(names)
    if not len(text):
        return np.arange(len(names))
    text = text[offsets[0] : offsets[-1]]
    return alphabetical(np.append(text, np.zeros(8, np.uint8)), offsets - offsets[0])


def _letters(names: Any) -> tuple[Array, Array]:
    """The bytes of names, and where each begins; none where there are no names."""
    _, starts, letters = names.buffers()
    if not len(names) or letters is None:
        return np.zeros(0, np.uint8), np.zeros(len(names) + 1, np.int64)
    return np.frombuffer(letters, np.uint8), np.frombuffer(starts, np.int64)[names.offset :][: len(names) + 1]


def _found_in_order(names: Any, wanted: Any) -> Array:
    """Where wanted names stand among others, if both are in order; −1 for those that were not met."""
    from deciban.kernels.text.merging import find_in_order

    places = np.empty(len(wanted), np.intp)
    find_in_order(*map(readable, (*_letters(names), *_letters(wanted))), places)
    return places
