"""Vocabularies: the words of a model and their columns, their changes, and the limits by which words are kept.

learnt           words outside are not counted
given            words outside are counted as the word `unk`, whose column comes after all others
growing          the same; a word that is learnt later was counted as `unk` before

A dict of 200,000 words takes 50 ms to make, and a lesson with one new word changes the columns of half of them. The
dict of a large vocabulary, its base, is therefore kept, and the columns of a changed vocabulary are computed from the
words that were added or removed since.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from deciban.errors import HyperparameterError, InputError, shortlist
from deciban.kernels.choice import compiled, readable
from deciban.read.arrow import taken
from deciban.statistics import Array
from deciban.text.kernels.streams import alphabetical

Kind = Literal["learnt", "given", "growing"]
FEW_WORDS = 1_000  # new words up to which a sorted vocabulary is not sorted again
FEW_PER_WORD = 256  # a vocabulary this many times smaller is looked up word by word
RUN = 2**16  # words hashed at a time
HASH_FACTOR = np.uint64(0x9E3779B97F4A7C15)
WORK_PER_WORD = 10  # elementary operations of one lookup
LEAST_WORDS = 10_000  # words of a base; the dict of a smaller vocabulary is made anew
MOST_CHANGES = 1_000  # words added and removed; with more, the changed vocabulary becomes a base itself


class ReaderPool:
    """Idle readers of one vocabulary; mutable, owned by the vocabulary and as long-lived as it.

    A reader holds a hash table of all words, and making one takes as long as reading a thousand documents. Densities of
    one vocabulary, of which a model has a new one after each lesson, therefore share its readers. A reader serves one
    thread at a time: it is taken out of the pool and put back.
    """

    def __init__(self) -> None:
        self._idle: dict[Hashable, list[Any]] = {}
        self.newer: NewerBase | None = None  # for the next changes of this vocabulary

    def take(self, kind: Hashable, make: Callable[[], Any]) -> Any:
        """Return an idle reader of this kind, or a new one."""
        try:
            return self._idle[kind].pop()
        except LookupError:
            return make()

    def put(self, kind: Hashable, reader: Any) -> None:
        """Return a reader to the pool."""
        self._idle.setdefault(kind, []).append(reader)

    def __reduce__(self) -> Any:
        return ReaderPool, ()


@dataclass(frozen=True, eq=False, repr=False)
class Vocabulary:
    """Words and their columns.

    >>> ours, theirs = Vocabulary.of(["lamb", "snow"], "growing"), Vocabulary.of(["fleece", "snow"], "growing")
    >>> ours.union(theirs)
    Vocabulary(fleece, lamb, snow; growing)
    >>> ours.ids(["snow", "rain", "lamb"])
    array([ 1, -1,  0])
    """

    names: pa.LargeStringArray  # (V,)
    kind: Kind = "given"
    delta: WordDelta | None = None  # its difference from a base, where there is a base and few words differ
    readers: ReaderPool = field(default_factory=ReaderPool, init=False, repr=False)

    @classmethod
    def of(cls, words: Iterable[str], kind: Kind = "given") -> Vocabulary:
        """Make a vocabulary; given words keep their order, others are sorted."""
        words = words if isinstance(words, pa.Array | pa.ChunkedArray) else list(words)
        try:
            names = text_array(words)
        except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, UnicodeEncodeError):
            odd = "None" if any(word is None for word in words) else "something else"
            raise InputError(f"a vocabulary is a list of texts; this one holds {odd}.") from None
        if names.null_count:
            raise InputError("a vocabulary is a list of texts; this one holds None.")
        if len(names.unique()) != len(names):
            seen: dict[str, int] = {}
            for word in names.to_pylist():
                seen[word] = seen.get(word, 0) + 1
            twice = [repr(word) for word, times in seen.items() if times > 1]
            raise InputError(f"Duplicate term in vocabulary: {shortlist(twice)}.")
        return cls(names if kind == "given" else taken(names, in_order(names)), kind)

    @property
    def unk(self) -> bool:
        """Whether words outside have a column."""
        return self.kind != "learnt"

    @property
    def letters(self) -> int:
        """Bytes of all words together."""
        _, offsets = name_buffers(self.names)
        return int(offsets[-1] - offsets[0])

    def utf8(self) -> tuple[Array, Array]:
        """Return the UTF-8 of all words without gaps, and the end of each in it."""
        text, offsets = name_buffers(self.names)
        return text[offsets[0] : offsets[-1]], offsets[1:] - offsets[0]

    @property
    def columns(self) -> int:
        """Number of columns, that of `unk` included."""
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
        return self is other or (self.kind == other.kind and self.names.equals(other.names))

    __hash__ = None  # type: ignore[assignment]  # would take as long as a comparison

    def __reduce__(self) -> Any:
        return Vocabulary, (self.names, self.kind)  # without the base

    def __repr__(self) -> str:
        return f"Vocabulary({shortlist(self.names[:5].to_pylist() + [''] * (len(self) - 5))}; {self.kind})"

    def ids(self, words: Iterable[str] | pa.Array) -> Array:
        """Return the column of each word, −1 for words outside."""
        import pyarrow.compute as pc

        names = text_array(words if isinstance(words, pa.Array) else list(words))
        return pc.fill_null(pc.index_in(names, self.names), -1).to_numpy(zero_copy_only=False).astype(np.intp)

    def positions(self, other: Vocabulary) -> Array:
        """Return the column that each word of another vocabulary has here, −1 for words outside."""
        if self == other:
            return np.arange(len(self))
        if len(other) * FEW_PER_WORD < len(self) and not (self.unk or other.unk):
            return np.array(sorted_search(self.names, other.names.to_pylist()), np.intp)
        if compiled(WORK_PER_WORD * (len(self) + len(other))):
            places = _merged_positions(self.names, other.names)
            if places.min(initial=0) >= 0 or not (self.unk or other.unk):  # learnt words are sorted
                return places
        return self.ids(other.names)

    def union(self, other: Vocabulary) -> Vocabulary:
        """Return the words of two sorted vocabularies, sorted; this one if it has them all."""
        new = taken(other.names, np.flatnonzero(self.positions(other) < 0))
        if not len(new):
            return self
        if len(new) <= FEW_WORDS:
            return Vocabulary(_inserted(self.names, new), self.kind, self._delta(added=new.to_pylist()))
        return Vocabulary(_merged(self.names, new), self.kind)

    def columns_added_to(self, older: Vocabulary) -> Array:
        """Return the columns, sorted, of the words that an older vocabulary, of words that are all here, does not have.

        >>> Vocabulary.of(["fleece", "lamb", "snow"], "learnt").columns_added_to(Vocabulary.of(["lamb"], "learnt"))
        array([0, 2])
        """
        now, then = self.delta, older.delta or WordDelta(older)
        if now is not None and now.base is not then.base:
            then = then.rebased()
        if now is not None and now.base is then.base and now.removed == then.removed:
            known = set(then.added)
            return np.array([at for word, at in now.added_columns().items() if word not in known], np.intp)
        here = np.ones(len(self), bool)
        here[self.positions(older)] = False
        return np.flatnonzero(here)

    def parts(self, parts: int) -> Array:
        """Return the part of each word, 0 … parts − 1, by a hash of its letters that is the same everywhere.

        >>> Vocabulary.of(["fleece", "lamb", "snow"]).parts(2)
        array([0, 1, 0])
        """
        text, offsets = name_buffers(self.names)
        found = np.empty(len(self.names), np.int64)
        for start in range(0, len(found), RUN):
            run = offsets[start : start + RUN + 1]
            mixed = _hashes(text[run[0] : run[-1]], run - run[0])
            found[start : start + RUN] = mixed * np.uint64(parts) >> np.uint64(32)
        return found

    def take(self, index: Array) -> Vocabulary:
        """Return a selection of the words, in the order given."""
        index = np.asarray(index)
        delta, names = None, taken(self.names, index)
        if 0 < len(self) - len(index) <= FEW_WORDS and not self.unk and bool((index[1:] > index[:-1]).all()):
            delta = self._delta(removed=taken(self.names, np.delete(np.arange(len(self)), index)).to_pylist())
        return Vocabulary(names, self.kind, delta)

    def _delta(self, added: Iterable[str] = (), removed: Iterable[str] = ()) -> WordDelta | None:
        """Return the delta of this vocabulary after further changes; None where a new dict is made instead."""
        return None if self.unk else (self.delta or WordDelta(self)).rebased().changed(added, removed)


# -- changes of a large vocabulary -------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class WordDelta:
    """Words added to and removed from a sorted base.

    >>> delta = WordDelta(Vocabulary.of(["b", "d", "f"], "learnt"), ("a", "e"), (0, 2), (1,))  # a, b, e, f
    >>> [delta.column(at) for at in range(3)], delta.added_columns()
    ([1, None, 3], {'a': 0, 'e': 2})
    """

    base: Vocabulary
    added: tuple[str, ...] = ()  # sorted
    places: tuple[int, ...] = ()  # of each added word: the number of words of the base before it
    removed: tuple[int, ...] = ()  # positions in the base, sorted

    def changed(self, added: Iterable[str] = (), removed: Iterable[str] = ()) -> WordDelta | None:
        """Return the delta after further changes; None if there are too many of them, or the base is small.

        An added word must not be in the vocabulary, a removed one must be.
        """
        if len(self.base) < LEAST_WORDS:
            return None
        new, gone = dict(zip(self.added, self.places)), set(self.removed)
        for word in added:
            at = insertion_point(self.base.names, word)
            if at in gone and self.base.names[at].as_py() == word:
                gone.remove(at)
            else:
                new[word] = at
        for word in removed:
            if new.pop(word, None) is None:
                gone.add(insertion_point(self.base.names, word))
        if len(new) + len(gone) > MOST_CHANGES:
            return None
        words = sorted(new)
        return WordDelta(self.base, tuple(words), tuple(new[word] for word in words), tuple(sorted(gone)))

    @property
    def is_long(self) -> bool:
        """Whether a newer base should be made before there are too many changes."""
        return len(self.added) + len(self.removed) > MOST_CHANGES // 4

    def rebased(self) -> WordDelta:
        """Return the same words as a delta from the newer base, if there is one; else this delta.

        >>> WordDelta(Vocabulary.of(["b", "d"], "learnt"), ("a",), (0,)).rebased().added
        ('a',)
        """
        newer = self.base.readers.newer
        if newer is None:
            return self
        then, names = newer.delta, self.base.names
        added = [word for word in self.added if word not in set(then.added)]
        added += [names[at].as_py() for at in sorted(set(then.removed) - set(self.removed))]
        removed = [word for word in then.added if word not in set(self.added)]
        removed += [names[at].as_py() for at in sorted(set(self.removed) - set(then.removed))]
        return WordDelta(newer.base).changed(added, removed) or self

    def column(self, at: int) -> int | None:
        """Return the column of the base's word at a position; None if it was removed."""
        before = bisect_left(self.removed, at)
        if before < len(self.removed) and self.removed[before] == at:
            return None
        return at - before + bisect_right(self.places, at)

    def added_columns(self) -> dict[str, int]:
        """Return the column of each word that was added."""
        at = (before - bisect_left(self.removed, before) + more for more, before in enumerate(self.places))
        return dict(zip(self.added, at))

    def __len__(self) -> int:
        return len(self.base) + len(self.added) - len(self.removed)


@dataclass(frozen=True, eq=False)
class NewerBase:
    """A base that replaces an older one for later changes."""

    base: Vocabulary
    delta: WordDelta  # of its words, from the older base


class DeltaNumbers:
    """The columns of a changed vocabulary, looked up in the dict of the base and in the changes."""

    def __init__(self, base: Mapping[str, int], delta: WordDelta) -> None:
        self.base, self.delta, self.added = base, delta, delta.added_columns()

    def get(self, word: str, default: int | None = None) -> int | None:
        """Return the column of a word, or the default."""
        at = self.base.get(word)
        if at is None:
            return self.added.get(word, default)
        column = self.delta.column(at)
        return default if column is None else column

    def __len__(self) -> int:
        return len(self.delta)


# -- arrays of words ---------------------------------------------------------------------------------------------------
class NameBuffer:
    """An array of words that grows by other arrays, each of which can be freed when it was added; mutable.

    >>> names = NameBuffer(3, 7)
    >>> for some in (["to", "be"], ["not"]):
    ...     names.add(text_array(some))
    >>> names.done().to_pylist()
    ['to', 'be', 'not']
    """

    def __init__(self, size: int, letters: int) -> None:
        self.size, self.count = size, 0
        self.text, self.offsets = np.empty(letters, np.uint8), np.zeros(size + 1, np.int64)

    def add(self, names: pa.LargeStringArray) -> None:
        """Append words."""
        text, offsets = name_buffers(names)
        start, end = self.offsets[self.count], self.count + len(names)
        self.offsets[self.count + 1 : end + 1] = offsets[1:] - offsets[0] + start
        self.text[start : self.offsets[end]] = text[offsets[0] : offsets[-1]]
        self.count = end

    def done(self) -> pa.LargeStringArray:
        """Return all words."""
        return pa.LargeStringArray.from_buffers(self.count, pa.py_buffer(self.offsets), pa.py_buffer(self.text))


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


def text_array(words: Sequence[str] | pa.Array | pa.ChunkedArray) -> pa.LargeStringArray:
    """Return strings as an Arrow array with 64-bit offsets."""
    if isinstance(words, pa.ChunkedArray):
        words = words.combine_chunks()
    if isinstance(words, pa.Array):
        return words if pa.types.is_large_string(words.type) else words.cast(pa.large_string())
    text, offsets = encoded(list(words))
    return pa.LargeStringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(text))


def joined_words(text: Array, ends: Array) -> Vocabulary | None:
    """Return learnt words by their joined UTF-8 and the end of each; None if they are not UTF-8, or not all differ.

    >>> joined_words(np.frombuffer(b"onetwo", np.uint8), np.array([3, 6]))
    Vocabulary(one, two; learnt)
    """
    offsets = np.concatenate([np.zeros(1, np.int64), ends])
    names = pa.LargeStringArray.from_buffers(len(ends), pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(text)))
    try:
        names.validate(full=True)
    except pa.ArrowInvalid:
        return None
    return Vocabulary(names, "learnt") if len(names.unique()) == len(names) else None


def in_order(names: pa.LargeStringArray) -> Array:
    """Return the positions of names in the order of their code points."""
    text, offsets = name_buffers(names)
    if not len(text):
        return np.arange(len(names))
    text = text[offsets[0] : offsets[-1]]
    return alphabetical(np.append(text, np.zeros(8, np.uint8)), offsets - offsets[0])


def name_buffers(names: pa.LargeStringArray) -> tuple[Array, Array]:
    """Return the bytes of names and the offset of each; no bytes where there are no names."""
    _, starts, letters = names.buffers()
    if not len(names) or letters is None:
        return np.zeros(0, np.uint8), np.zeros(len(names) + 1, np.int64)
    return np.frombuffer(letters, np.uint8), np.frombuffer(starts, np.int64)[names.offset :][: len(names) + 1]


def _hashes(text: Array, offsets: Array) -> Array:
    """Return 32-bit hashes, as 64-bit numbers, of the words text[offsets[i] : offsets[i + 1]]."""
    lengths = np.diff(offsets)
    powers = np.full(max(1, int(lengths.max(initial=0))), HASH_FACTOR, np.uint64).cumprod(dtype=np.uint64)
    place = np.arange(len(text)) - np.repeat(offsets[:-1], lengths)
    sums = np.append(np.uint64(0), np.cumsum((text + np.uint64(1)) * powers[place], dtype=np.uint64))
    mixed = sums[offsets[1:]] - sums[offsets[:-1]]
    mixed = (mixed ^ (mixed >> np.uint64(29))) * HASH_FACTOR
    return mixed >> np.uint64(32)


def _inserted(names: pa.LargeStringArray, few: pa.LargeStringArray) -> pa.LargeStringArray:
    """Insert a few new words into sorted names."""
    places = [insertion_point(names, word) for word in few.to_pylist()]
    ends = [0, *places, len(names)]
    parts = [names[ends[0] : ends[1]]]
    for at in range(len(few)):
        parts += [few[at : at + 1], names[ends[at + 1] : ends[at + 2]]]
    return pa.concat_arrays(parts)


def _merged_positions(names: pa.LargeStringArray, wanted: pa.LargeStringArray) -> Array:
    """Return positions of wanted names by a merge of two sorted lists; −1 for names that were not found."""
    from deciban.text.kernels.streams_compiled import find_in_order

    places = np.empty(len(wanted), np.intp)
    find_in_order(*map(readable, (*name_buffers(names), *name_buffers(wanted))), places)
    return places


def _merged(names: pa.LargeStringArray, new: pa.LargeStringArray) -> pa.LargeStringArray:
    """Return the names of two sorted lists, sorted; no name is in both."""
    if not compiled(WORK_PER_WORD * (len(names) + len(new))):
        both = pa.concat_arrays([names, new])
        return taken(both, in_order(both))
    from deciban.text.kernels.streams_compiled import merge_in_order

    given = [*map(readable, (*name_buffers(names), *name_buffers(new)))]
    offsets = np.empty(len(names) + len(new) + 1, np.int64)
    text = np.empty(sum(int(each[-1] - each[0]) for each in given[1::2]), np.uint8)
    merge_in_order(*given, text, offsets)
    return pa.LargeStringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(text))


def insertion_point(names: pa.LargeStringArray, word: str) -> int:
    """Return the number of sorted names before a word."""
    return bisect_left(names, word, key=pa.LargeStringScalar.as_py)


def sorted_search(names: pa.LargeStringArray, words: Sequence[str]) -> list[int]:
    """Return the position of each word among sorted names, −1 for words that are not there."""
    places = [insertion_point(names, word) for word in words]
    return [at if at < len(names) and names[at].as_py() == word else -1 for at, word in zip(places, words)]


# -- limits ------------------------------------------------------------------------------------------------------------
def mutual_information(documents: Array, rows: Array) -> Array:
    """Return the mutual information of each word's presence and the class in nats, shape (V,).

        I(C; W) = Σ_c Σ_w P(c, w) log P(c, w) / (P(c) P(w)),   w is present or absent

    `documents` is (K, V), the documents of each class that hold a word; `rows` (K,), all its documents.
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
    """Limits of a vocabulary: documents that hold a word (a share of all if not whole), and the number of words."""

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
            raise HyperparameterError(f"most={self.most} must be at least 1.")
        if self.by not in ("frequency", "information"):
            raise HyperparameterError(f"by must be 'frequency' or 'information', not {self.by!r}.")

    @property
    def none(self) -> bool:
        """Whether every word is kept."""
        return self.min_df in (0, 1) and isinstance(self.min_df, Integral) and self.max_df == 1.0 and self.most is None

    def kept(self, n: float, counts: Array, documents: Array, rows: Array | None = None) -> Array:
        """Return the columns to keep, in order.

        `counts` is (V,), tokens of each word; `documents` (K, V), documents that hold it; n and `rows` (K,), documents.

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
            # the same call as in scikit-learn, so that ties are broken alike
            inside = np.sort(inside[(-worth).argsort()[: self.most]])
        if not len(inside):
            raise InputError("After pruning, no terms remain. Try a lower min_df or a higher max_df.")
        return inside


NO_LIMITS = Limits()


def restricted(
    known: Vocabulary, kept: Array, places: Sequence[Sequence[Array]], limits: Limits
) -> tuple[Vocabulary, list[list[Array]]]:
    """Return the vocabulary of some columns, and `places` with the new column of each feature.

    A word outside is `unk` where the number of words was capped, and dropped otherwise (column −1).
    """
    smaller = replace(known.take(kept), kind="learnt" if limits.most is None else "given")
    new = np.full(len(known), len(kept) if smaller.unk else -1, np.int32)
    new[kept] = np.arange(len(kept))
    return smaller, [[new[level] for level in levels] for levels in places]
