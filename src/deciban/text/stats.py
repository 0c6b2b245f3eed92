"""Sums of text: term transforms, the statistics, the words along their axis, and the sums of a stream.

A term is the amount that a word counts in a document:

    counts   x                  binary   1 if x > 0                 log   log(1 + x)
    idf      times log((1 + n)/(1 + n_word)) + 1                    unit   divided by the row's length

What is summed is rounded to multiples of 2⁻²⁰, so that sums are exact in any order. The idf is a factor of each word:
it multiplies sums as well as rows, so it stays out of the sums and is not rounded. With unit length it decides what is
summed and is frozen at the first fit; without, it follows from the numbers of documents n_word, which are summed, too.

The axis of the words depends on where they come from:

    learnt    the words found so far, sorted; words outside are not counted
    growing   <unk>, then the words found so far, sorted
    given     the words as given, then <unk>; likewise where their number was capped

Only words that were given, or kept by a cap, are declared. Others are pruned when nothing is counted under them any
more, and with them their share of the prior.

Adding the sums of a batch unites two vocabularies, in time and memory proportional to the vocabulary. For a stream of
short batches this would take most of the time. The counts of a stream therefore grow in place, in one table of words,
which are sorted once, at the end.

Reference: Rennie et al., Tackling the poor assumptions of naive Bayes text classifiers, 2003.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, cast

import numpy as np
import scipy.sparse as sp

from deciban.errors import DecibanError, HyperparameterError, InputError
from deciban.families.bernoulli import Bernoulli
from deciban.families.dirichlet import left_over
from deciban.families.multinomial import Multinomial
from deciban.families.protocol import Rule, SumAccumulator
from deciban.kernels.parallel import get_threads
from deciban.read.tables import HEAD
from deciban.statistics import Array, Axis, Labels, LazyNames, Members, Stats, summed
from deciban.statistics.base import subtract_to_zero
from deciban.statistics.changed_columns import LEAST_CELLS, MOST_CHANGED, NONE, ChangedColumns, changed_columns
from deciban.text.counting import ClassCounter, TextRows
from deciban.text.vocabulary import Vocabulary, text_array

if TYPE_CHECKING:
    from deciban.text.family import Text

Kind = Literal["learnt", "growing", "given"]
UNK = "<unk>"  # the word that stands for words outside the vocabulary
UNITS = 2.0**20
AMOUNTS = ("counts", "binary", "log")
FACTORS = ("idf", "unit")


# -- terms -------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Terms:
    """A term transform: an amount, and perhaps factors.

    >>> Terms.of("log+idf+unit")
    Terms(amount='log', idf=True, unit=True)
    """

    amount: str = "counts"
    idf: bool = False
    unit: bool = False

    @classmethod
    def of(cls, transform: str) -> Terms:
        """Read a transform: an amount and factors, joined by +."""
        parts = [part.strip() for part in transform.split("+")]
        amounts = [part for part in parts if part in AMOUNTS]
        if len(amounts) > 1 or len(set(parts)) < len(parts) or not set(parts) <= {*AMOUNTS, *FACTORS}:
            raise HyperparameterError(
                f"transform={transform!r}: one of {', '.join(AMOUNTS)}, perhaps with idf or unit: 'log+idf+unit'."
            )
        return cls(amounts[0] if amounts else "counts", "idf" in parts, "unit" in parts)

    @property
    def steps(self) -> Callable[[int], Array] | None:
        """Function of m: what the t-th occurrence of a word adds, t ≤ m; None where it adds 1."""
        return {"log": log_steps, "binary": once}.get(self.amount)

    def amounts(self, most: int) -> Array:
        """Return the amount of a word that occurs t = 0, …, most times, without factors; shape (most + 1,).

        >>> Terms("log").amounts(2).round(3), Terms("binary").amounts(2)
        (array([0.   , 0.693, 1.099]), array([0., 1., 1.]))
        """
        if self.amount == "log":
            return np.cumsum(log_steps(most))  # exact: all are multiples of 2⁻²⁰
        times = np.arange(most + 1.0)
        return np.minimum(times, 1.0) if self.amount == "binary" else times

    def rows(self, counts: sp.csr_array, idf: Array | None) -> sp.csr_array:
        """Return the terms that are summed, of rows of counts: rounded, and without the idf."""
        x = self.amounts(int(counts.data.max(initial=0)))[counts.data]
        if self.unit:
            row = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
            whole = x if idf is None else x * idf[counts.indices]
            norm = np.sqrt(np.bincount(row, whole * whole, counts.shape[0]))
            # rounding must not make a term 0, even in a long row
            x = np.maximum(_rounded(x / norm[row]), 1 / UNITS)
        return _with_data(counts, x)

    def weighted_rows(self, counts: sp.csr_array, idf: Array | None) -> sp.csr_array:
        """Return the terms of rows of counts, multiplied by the idf."""
        rows = self.rows(counts, idf)
        return rows if idf is None else _with_data(rows, rows.data * idf[rows.indices])


def log_steps(most: int) -> Array:
    """Return the amounts, (most + 1,), that the t-th occurrence adds to log(1 + t); their sums are rounded logarithms.

    >>> log_steps(2).round(3)
    array([0.   , 0.693, 0.405])
    """
    return np.diff(_rounded(np.log1p(np.arange(most + 1.0))), prepend=0.0)


def once(most: int) -> Array:
    """Return the amounts, (most + 1,), that the t-th occurrence adds where a word counts once per document."""
    return np.eye(1, most + 1, 1)[0]


def _with_data(rows: sp.csr_array, data: Array) -> sp.csr_array:
    made = sp.csr_array((data, rows.indices, rows.indptr), rows.shape)
    made.has_sorted_indices, made.has_canonical_format = rows.has_sorted_indices, rows.has_canonical_format
    return made


def _rounded(x: Array) -> Array:
    return np.rint(x * UNITS) / UNITS


@dataclass(frozen=True, eq=False)
class Idf:
    """Inverse document frequencies.

    >>> Idf.of(Vocabulary.of(["and", "snow"], "learnt"), np.array([3.0, 1.0]), 3.0).of_words(["snow", "rain"]).round(3)
    array([1.693, 2.386])
    """

    words: tuple[str, ...]
    values: Array  # (V,)
    new: float  # of any other word
    derived: bool = False  # from the sums of a model, not from the first documents

    def validate(self) -> None:
        """Raise InputError unless each word has a factor."""
        if self.values.shape != (len(self.words),) or not np.isfinite(self.new):
            raise InputError("the inverse document frequencies need one number for each word.")

    @classmethod
    def of(cls, vocabulary: Vocabulary, documents: Array, n: float, derived: bool = False) -> Idf:
        """Compute it from the number of documents, of n, that hold each word."""
        return cls(tuple(vocabulary), factors(documents, n), float(factors(np.zeros(1), n)[0]), derived)

    def of_words(self, words: Any) -> Array:
        """Return the factor of each word, shape (V,)."""
        at = Vocabulary(text_array(list(self.words)), "learnt").ids(text_array(words))
        return np.where(at < 0, self.new, np.append(self.values, self.new)[at])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Idf):
            return NotImplemented
        same = self.words == other.words and self.new == other.new
        return same and np.array_equal(self.values, other.values)

    __hash__ = None  # type: ignore[assignment]


def factors(documents: Array, n: float) -> Array:
    """Return the idf of words by the number of documents, of n, that hold them; at least 1."""
    return np.asarray(np.log((1 + n) / (1 + np.minimum(documents, n))) + 1)


# -- statistics --------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False, repr=False)
class TextStats(Stats):
    """Terms of each word, documents and tokens, summed per class."""

    counts: Array = summed("class", "word", floor=True)  # Σ w·term
    rows: Array = summed("class", floor=True)  # Σ w of documents that are not missing
    tokens: Array = summed("class", floor=True)  # Σ w·words of a document, before any transform

    def __post_init__(self) -> None:
        """Hold the words of a learnt axis as a `Vocabulary`: all densities along the axis then share its readers."""
        axis = self.labels["word"]
        if isinstance(axis, Axis) and not axis.declared and not isinstance(axis.names, LazyNames):
            words = Vocabulary(text_array(list(axis.names)), "learnt")
            object.__setattr__(self, "labels", {**self.labels, "word": word_axis(words, "learnt")})

    def validate(self) -> None:
        """Raise InputError if a word is not a text."""
        names = cast(Axis, self.labels["word"]).names
        if not isinstance(names, LazyNames) and (isinstance(names, range) or not set(map(type, names)) <= {str}):
            raise InputError("a vocabulary is a list of texts.")

    @property
    def ones(self) -> Array:
        """(K, V) documents that hold a word, where the term is binary."""
        return self.counts

    @property
    def zeros(self) -> Array:
        """(K, V) documents that do not hold a word, where the term is binary."""
        return left_over(self.rows[:, None], self.counts)

    @property
    def table(self) -> Array | ChangedColumns:
        """The counts as one array, or as a table with changed columns that was not copied yet."""
        return cast("Array | ChangedColumns", self.__dict__["counts"])

    def pruned(self) -> Self:
        """Return the statistics without undeclared words that have no counts, if there are any."""
        empty = word_totals(self) == 0
        gone = np.flatnonzero(empty & self.labels["word"].undeclared) if empty.any() else NONE
        if not len(gone):
            return self
        table = self.table
        if type(self) is not TextStats or not isinstance(table, ChangedColumns) or len(gone) > MOST_CHANGED:
            return super().pruned()
        words = cast(Axis, self.labels["word"]).take(np.delete(np.arange(len(empty)), gone))
        return type(self)({**self.labels, "word": words}, table.narrowed(gone), self.rows, self.tokens)  # type: ignore[arg-type]

    # -- few words of a large vocabulary -------------------------------------------------------------------------------
    def relabelled(self, labels: Mapping[str, Labels]) -> Self:
        """Move the sums to larger axes; a large table is not copied where few of its columns change."""
        return self._with_changed_columns(labels) or super().relabelled(labels)

    def _with_changed_columns(self, labels: Mapping[str, Labels]) -> Self | None:
        """Return the sums on larger axes, as changed columns of a large table; None where too many change."""
        words, classes = (cast(Axis, labels.get(axis, self.labels[axis])) for axis in ("word", "class"))
        own_words, own_classes = (cast(Axis, self.labels[axis]) for axis in ("word", "class"))
        if type(self) is not TextStats or words.declared or words.size * classes.size < LEAST_CELLS:
            return None
        table: ChangedColumns | None
        if own_words.size <= MOST_CHANGED and words.size > own_words.size:
            codes = classes.positions(own_classes)
            rows, tokens, values = (
                _spread(each, codes, classes.size) for each in (self.rows, self.tokens, self.counts)
            )
            places = words.positions(own_words)
            table = ChangedColumns(None, words.size, places[:0], places, values)
        elif classes == own_classes and words.size - own_words.size <= MOST_CHANGED:
            rows, tokens, table = self.rows, self.tokens, changed_columns(self.table)
            if table is not None and not isinstance(self.table, ChangedColumns):
                self.__dict__["counts"] = table  # the same numbers, which are not checked again
            if table is not None and words.size > own_words.size:
                wider, own = (vocabulary_of(axis, "learnt") for axis in (words, own_words))
                table = table.widened(wider.columns_added_to(own))
        else:
            return None
        return None if table is None else type(self)({"class": classes, "word": words}, table, rows, tokens)  # type: ignore[arg-type]

    def _combine(self, other: Self, act: Callable[[Array, Array], Array]) -> Self:
        sign = 1 if act is np.add else -1 if act is subtract_to_zero else 0
        if sign and isinstance(self.table, ChangedColumns) and isinstance(other.table, ChangedColumns):
            both = changed_columns(self.table)
            table = None if both is None else both.plus(other.table, sign)
            if table is not None:
                rows, tokens = act(self.rows, other.rows), act(self.tokens, other.tokens)
                return type(self)(self.labels, table, rows, tokens)  # type: ignore[arg-type]
        return super()._combine(other, act)

    def _refuse_negative(self, other: Self, error: type[DecibanError]) -> None:
        table = other.table
        if isinstance(self.table, ChangedColumns) and isinstance(table, ChangedColumns) and table.older is None:
            self._of_columns(table.at)._refuse_negative(other._of_columns(table.at), error)
        else:
            super()._refuse_negative(other, error)

    def _of_columns(self, at: Array) -> Self:
        """Return the sums of some words of a table with changed columns."""
        axis = Axis(tuple(cast(Axis, self.labels["word"]).take(at).names))
        return type(self)({**self.labels, "word": axis}, self.table.take(at), self.rows, self.tokens)


class _Counts:
    """Descriptor of `TextStats.counts`: a table with changed columns is copied into one array when it is first read."""

    def __get__(self, stats: TextStats | None, owner: type[TextStats]) -> Array:
        if stats is None:
            raise AttributeError("counts")
        table = stats.table
        return table.cells() if isinstance(table, ChangedColumns) else table

    def __set__(self, stats: TextStats, table: Array | ChangedColumns) -> None:
        stats.__dict__["counts"] = table


TextStats.counts = _Counts()  # type: ignore[assignment]


def _spread(values: Array, places: Array, size: int) -> Array:
    """Return sums of classes at their places among more classes."""
    spread = np.zeros((size, *values.shape[1:]))
    spread[places] = values
    return spread


@dataclass(frozen=True, eq=False, repr=False)
class TextStatsWithDocuments(TextStats):
    """Sums of text with the number of documents that hold each word, for inverse document frequencies."""

    documents: Array = summed("class", "word", floor=True)  # Σ w of documents that hold a word


# -- the axis of the words ---------------------------------------------------------------------------------------------
def word_axis(words: Iterable[str], kind: Kind) -> Axis:
    """Return the axis of a vocabulary."""
    if isinstance(words, Vocabulary) and kind == words.kind == "learnt":
        return Axis(LazyNames(words))
    names = words if isinstance(words, tuple) else tuple(words)
    if kind == "learnt":
        return Axis(names)
    return Axis((UNK, *names), 1) if kind == "growing" else Axis.of((*names, UNK))


def vocabulary_of(axis: Axis, kind: Kind) -> Vocabulary:
    """Return the words along an axis, without <unk>."""
    names: Any = axis.names
    if kind == "learnt" and isinstance(names, LazyNames) and isinstance(names.source, Vocabulary):
        return names.source
    words = names if kind == "learnt" else names[1:] if kind == "growing" else names[:-1]
    try:
        return Vocabulary(text_array(list(words)), kind)
    except UnicodeEncodeError as error:
        raise InputError(f"the word {error.object!r} holds half a surrogate pair, which is no character.") from None


def require_words(stats: TextStats) -> None:
    """Refuse a vocabulary without words."""
    if stats.labels["word"].size == 0:
        raise InputError(
            "the documents hold no words, so that the classes cannot be told apart. Check stop_words, pattern, min_df "
            "and max_df."
        )


def in_axis_order(counts: Array, kind: Kind) -> Array:
    """Return columns in the order of the axis, from the order of a vocabulary, which has `unk` last."""
    return np.roll(counts, 1, axis=1) if kind == "growing" else counts


def in_vocabulary_order(counts: Array, kind: Kind) -> Array:
    """Return columns in the order of a vocabulary, from the order of the axis."""
    return np.roll(counts, -1, axis=1) if kind == "growing" else counts


def with_unk(vocabulary: Vocabulary, counts: Array) -> tuple[tuple[str, ...], Array]:
    """Return the words found, and their counts with a column for `unk` added; a word spelt <unk> is `unk`."""
    words, outside = tuple(vocabulary), np.zeros((len(counts), 1))
    if UNK in vocabulary:
        at = words.index(UNK)
        outside = counts[:, at : at + 1]
        words, counts = words[:at] + words[at + 1 :], np.delete(counts, at, axis=1)
    return words, np.concatenate([counts, outside], axis=1)


def text_stats(
    text: Text,
    classes: Axis,
    vocabulary: Vocabulary,
    counts: Array,
    rows: Array,
    tokens: Array,
    documents: Array | None = None,
) -> TextStats:
    """Return counts, and perhaps documents, under the columns of a vocabulary, found or fixed, as statistics."""
    names: Any = vocabulary
    if text.fixed_vocabulary is None and text.kind != "learnt":
        if documents is not None:
            documents = with_unk(vocabulary, documents)[1]
        names, counts = with_unk(vocabulary, counts)
    labels, counts = {"class": classes, "word": word_axis(names, text.kind)}, in_axis_order(counts, text.kind)
    if documents is None:
        return TextStats(labels, counts, rows, tokens)
    return TextStatsWithDocuments(labels, counts, rows, tokens, in_axis_order(documents, text.kind))


# -- the sums as families of counts read them --------------------------------------------------------------------------
class WordSums(NamedTuple):
    """The sums of a model as families of counts read them."""

    axis: Axis  # the words that are counted
    sums: TextStats  # <unk> last, multiplied by the idf
    vocabulary: Vocabulary  # the words without <unk>
    idf: Array | None  # (V,)


def word_sums(text: Text, stats: TextStats) -> WordSums:
    """Return the sums as families of counts read them."""
    stats = stats.pruned()
    axis: Any = stats.labels["word"]
    require_words(stats)
    vocabulary = vocabulary_along(text, axis)
    documents = documents_of_words(text, stats) if text.terms.idf and text.idf is None else None
    idf = idf_of(text, vocabulary) if documents is None else factors(documents, float(stats.rows.sum()))
    if idf is not None or text.kind == "growing":
        counts = in_vocabulary_order(stats.counts, text.kind)
        stats = replace(stats, counts=counts if idf is None else counts * idf)
    return WordSums(axis, stats, vocabulary, idf)


def vocabulary_along(text: Text, axis: Axis) -> Vocabulary:
    """Return the words along an axis, without <unk>; where possible the family's own vocabulary, which has readers."""
    if text.kind == "given" and text.fixed_vocabulary is not None:
        words = text.vocabulary if isinstance(text.vocabulary, tuple) else text.words
        if axis.names[:-1] == words:
            return text.fixed_vocabulary
    return vocabulary_of(axis, text.kind)


def idf_of(text: Text, vocabulary: Vocabulary) -> Array | None:
    """Return the idf of each column of a vocabulary, that of `unk` included, shape (V,); None without idf."""
    if not text.terms.idf or text.idf is None:
        return None
    values = text.idf.of_words(vocabulary.names)
    return np.append(values, text.idf.new) if vocabulary.unk else values


def documents_of_words(text: Text, stats: TextStats) -> Array | None:
    """Return how many documents hold each word, shape (V,) in the order of a vocabulary; None without derived idf.

    The column of `unk` counts as a word that no document holds.
    """
    if not text.derives_idf:
        return None
    if text.terms.amount == "binary":
        documents = stats.counts
    elif isinstance(stats, TextStatsWithDocuments):
        documents = stats.documents
    else:
        return None
    each = in_vocabulary_order(documents, text.kind).sum(axis=0)
    if text.kind != "learnt":
        each[-1] = 0.0
    return np.asarray(each)


def base_measure(totals: Array) -> Array:
    """Return the frequencies of words in all classes together, with mean 1; words without counts get the least of them.

    >>> base_measure(np.array([6.0, 2.0, 0.0])).round(2)
    array([1.8, 0.6, 0.6])
    """
    least = totals[totals > 0].min(initial=np.inf)
    positive = np.where(totals > 0, totals, least if np.isfinite(least) else 1.0)
    return positive / positive.mean()


def pseudo_counts(text: Text, totals: Array) -> float | Array:
    """Return the pseudo-count of all columns, or of each, given the counts (V,) of all classes together."""
    alpha = 1.0 if isinstance(text.pseudo_count, str) else text.pseudo_count
    each: float | Array = alpha * base_measure(totals) if text.base == "pooled" else alpha
    if text.unk is None or text.kind == "learnt":
        return each
    return np.append(np.broadcast_to(each, len(totals))[:-1], text.unk)


def word_totals(sums: TextStats) -> Array:
    """Return the counts of each word in all classes together, shape (V,)."""
    table = sums.table
    return (
        table.column_sums() if isinstance(table, ChangedColumns) else np.ones(len(table)) @ table
    )  # faster than a sum


def count_family(text: Text, sums: TextStats) -> Multinomial | Bernoulli:
    """Return the family that reads these sums."""
    alpha = pseudo_counts(text, word_totals(sums))
    return Bernoulli(alpha, alpha) if text.reading == "bernoulli" else Multinomial(alpha)


def rule_of(text: Text, rule: Rule) -> Rule:
    """Return the rule of the counts' family; a Pólya reading is predictive."""
    if text.reading != "polya":
        return rule
    if rule in ("ml", "map"):
        raise HyperparameterError(
            f"a Pólya reading integrates the probabilities out, which rule {rule!r} does not. Use rule 'mean'."
        )
    return "predictive"


# -- sums of a stream --------------------------------------------------------------------------------------------------
class CountAccumulator:
    """Counts the documents of a stream batch by batch; for terms that are summed while documents are read.

    >>> from deciban import Text
    >>> text = Text(transform="counts", pseudo_count=1.0)
    >>> sums = CountAccumulator(text, TextRows.of(["to be"]), Members.one_group(1))
    >>> sums.add(TextRows.of(["or not to be"]), Members.one_group(1))
    >>> sums.total().labels["word"].names, sums.total().counts
    (('be', 'not', 'or', 'to'), array([[2., 1., 1., 2.]]))
    """

    known = None  # new words are learnt until the stream ends

    def __init__(self, text: Text, X: TextRows, members: Members) -> None:
        self.family, self.classes = text, members.classes
        self.place: dict[Any, int] = {}  # the position of each class in the counter, in the order of arrival
        self.tokens = np.zeros(0)
        weighted = members.weight is not None
        self.counter = ClassCounter(1, text.tokens, text.fixed_vocabulary, weighted, steps=text.terms.steps)
        self.first: TextStats | None = None  # sums of the first rows, if these were counted in several threads
        if get_threads() > 1 and not weighted and text.fixed_vocabulary is None:
            self.first = text.collect(X, members)
        X.counts.clear()  # the rows of a stream are not read again
        if self.first is None:
            self.add(X, members)

    def choose(self, X: TextRows, members: Members, rule: Rule) -> None:
        """Make the open choices of the family from these documents."""
        self.family = self.family.choose(None, (X, members), rule)  # type: ignore[arg-type]

    def add(self, X: TextRows, members: Members) -> None:
        """Count a batch."""
        X, members = X.with_members(members)
        self.classes = self.classes.union(members.classes)
        places = [self.place.setdefault(name, len(self.place)) for name in members.classes.names]
        codes = np.array(places, np.int64)[members.codes]
        lengths = self.counter.add(X.documents, codes, members.weight)
        weighed = lengths if members.weight is None else lengths * members.weight
        before = np.append(self.tokens, np.zeros(len(self.place) - len(self.tokens)))
        self.tokens = before + np.bincount(codes, weighed, len(self.place))

    def total(self) -> TextStats:
        """Return the sums: words sorted, classes in the order of their axis."""
        if self.first is not None and not self.place:
            return self.first
        found = self.counter.result()
        if not np.isfinite(found.counts.sum()):
            raise InputError("the weights are so large that their sums overflow. Rescale them.")
        places = [self.place.get(name, len(self.place)) for name in self.classes.names]
        counts, rows, tokens = (_rows_at(values, places) for values in (found.counts, found.rows, self.tokens))
        stats = text_stats(self.family, self.classes, found.vocabulary, counts, rows, tokens)
        if self.first is not None:
            return self.first + stats
        return stats if self.family.fixed_vocabulary is None else stats.pruned()


class TermAccumulator(SumAccumulator):
    """Sums the documents of a stream many at a time; for terms that depend on the other words of their document."""

    known = None  # new words are learnt until the stream ends

    def __init__(self, text: Text, X: TextRows, members: Members, columns: Sequence[Any]) -> None:
        super().__init__(text, X, members, columns)
        self.waiting: list[tuple[TextRows, Members]] = []

    def add(self, X: TextRows, members: Members) -> None:
        """Keep a batch until there are many rows, because adding sums is slow."""
        self.waiting.append((X, members))
        if sum(len(members) for _, members in self.waiting) >= HEAD:
            self._sum()

    def total(self) -> TextStats:
        """Return the sums."""
        if self.waiting:
            self._sum()
        return self.stats

    def _sum(self) -> None:
        rows, members = zip(*self.waiting)
        self.waiting = []
        super().add(TextRows.joined(rows), Members.joined(members))


def _rows_at(values: Array, places: Sequence[int]) -> Array:
    """Return the rows of values at places, 0 for places beyond the last; not copied if these are all rows in order."""
    if list(places) == list(range(len(values))):
        return values
    return np.concatenate([values, np.zeros((1, *values.shape[1:]))])[np.minimum(places, len(values))]
