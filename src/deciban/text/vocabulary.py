"""The words a model knows: learnt, given, capped or growing.

A word outside a learnt vocabulary is dropped; outside any other kind it is the word **unk**, which has a column of its
own behind all others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from deciban.errors import HyperparameterError, InputError, MergeError, shortlist
from deciban.kernels.choice import compiled, readable
from deciban.read.arrow import taken
from deciban.text.documents import encoded
from deciban.text.kernels.ordering import alphabetical

Array = NDArray[Any]
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
            import pyarrow.compute as pc

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
        import pyarrow.compute as pc

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
        import pyarrow.compute as pc

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
        import pyarrow.compute as pc

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
    from deciban.text.kernels.sorting import find_in_order

    places = np.empty(len(wanted), np.intp)
    find_in_order(*map(readable, (*_letters(names), *_letters(wanted))), places)
    return places


# -- limits ----------
# Which words to keep: not too rare, not too common, the most frequent, or those that say most about the class.


def mutual_information(documents: Array, rows: Array) -> Array:
    """What the presence of each word says about the class, in nats: (V,).

        I(C; W) = Σ_c Σ_w P(c, w) log P(c, w) / (P(c) P(w)),   w is present or absent

    `documents` is (K, V), of each class the documents that hold a word; `rows` (K,), its documents.
    Reference: McCallum and Nigam, A comparison of event models for naive Bayes text classification, 1998.

    >>> mutual_information(np.array([[2.0, 1.0], [0.0, 1.0]]), np.array([2.0, 2.0])).round(3) + 0.0
    array([0.693, 0.   ])
    """
    from scipy.special import xlogy

    n = rows.sum()
    total = np.zeros(documents.shape[1])
    for present in (documents, rows[:, None] - documents):
        joint = present / n
        expected = (rows[:, None] / n) * joint.sum(axis=0)
        total += (xlogy(joint, joint) - xlogy(joint, expected)).sum(axis=0)
    return np.maximum(total, 0.0)


@dataclass(frozen=True)
class Limits:
    """Words to keep by the number of documents that hold them (a share of all if not whole), and how many at most."""

    min_df: float = 1
    max_df: float = 1.0
    most: int | None = None
    by: Literal["frequency", "information"] = "frequency"

    def __post_init__(self) -> None:
        for name in ("min_df", "max_df"):
            value = getattr(self, name)
            if value < 0 or (not isinstance(value, Integral) and value > 1):
                raise HyperparameterError(f"{name}={value} must be a whole number of documents, or a share of them.")
        if self.most is not None and self.most < 1:
            raise HyperparameterError(f"at most {self.most} words would leave none; it must be at least 1.")
        if self.by not in ("frequency", "information"):
            raise HyperparameterError(f"by must be 'frequency' or 'information', not {self.by!r}.")

    @property
    def none(self) -> bool:
        return self.min_df in (0, 1) and isinstance(self.min_df, Integral) and self.max_df == 1.0 and self.most is None

    def kept(self, n: float, counts: Array, documents: Array, rows: Array | None = None) -> Array:
        """Columns to keep, in order. `counts` is (V,) of tokens, `documents` (K, V), n and `rows` (K,) of documents.

        >>> Limits(min_df=2).kept(3, np.array([5, 2, 9]), np.array([[1, 2, 3]]))
        array([1, 2])
        """
        frequency = documents.sum(axis=0)
        least = self.min_df if isinstance(self.min_df, Integral) else self.min_df * n
        most = self.max_df if isinstance(self.max_df, Integral) else self.max_df * n
        if most < least:
            raise InputError(f"max_df corresponds to < documents than min_df: {most:g} < {least:g}.")
        inside = np.flatnonzero((frequency >= least) & (frequency <= most))
        if self.most is not None and len(inside) > self.most:
            if self.by == "frequency":
                worth = counts[inside]
            elif rows is None:
                raise InputError("mutual information with the class needs class labels.")
            else:
                worth = mutual_information(documents[:, inside], rows)
            # the very call of scikit-learn, so that ties fall alike
            inside = np.sort(inside[(-worth).argsort()[: self.most]])
        if not len(inside):
            raise InputError("After pruning, no terms remain. Try a lower min_df or a higher max_df.")
        return inside


NO_LIMITS = Limits()


def restricted(
    known: Vocabulary, kept: Array, places: Sequence[Sequence[Array]], limits: Limits
) -> tuple[Vocabulary, list[list[Array]]]:
    """A vocabulary of some columns: what is outside is unk where their number was capped, else dropped."""
    smaller = replace(known.take(kept), kind="learnt" if limits.most is None else "capped")
    new = np.full(len(known), len(kept) if smaller.unk else -1, np.int32)
    new[kept] = np.arange(len(kept))
    return smaller, [[new[level] for level in levels] for levels in places]
