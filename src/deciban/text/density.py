"""The density of documents: how they are read, the density of their counts, and a scorer in one pass over the text.

Where the log density is a sum over words, `Scorer` adds a bias for each class and the weights of the words while it
reads; otherwise documents are counted first.

The logarithms of 200,000 words in 20 classes take 30 ms. A model that has just learnt a lesson answers about a few
texts at once and needs the weights of their words only: `WordWeights` computes the whole table when many texts are
scored, or in steps while the process is idle.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
import scipy.sparse as sp

from deciban.errors import InputError, NotAvailableError
from deciban.families.bernoulli import BernoulliDensity
from deciban.families.dirichlet import MultinomialDensity, PolyaDensity, log_rising
from deciban.families.multinomial import WORDS_AT_A_TIME, CellProbabilities
from deciban.families.protocol import Density
from deciban.statistics import Array, Axis
from deciban.statistics.changed_columns import ChangedColumns
from deciban.text.counting import Steps, TextRows
from deciban.text.documents import DocumentPass, Documents, is_large, make_reader, steps_to_base
from deciban.text.kernels.streams import Amounts, Finish, Presence, Stream, add_scores, log_probabilities
from deciban.text.stats import UNK, idf_of, vocabulary_along
from deciban.text.tokens import WORDS, Tokens
from deciban.text.vocabulary import Vocabulary
from deciban.text.word_evidence import NewWords, WordEvidence, WordFactors, evidence_of, parts_by_word

if TYPE_CHECKING:
    from deciban.text.family import Text

ABSENT = "words that are absent"
LENGTH = "number of words"
FEW = 16  # texts up to which plain Python scores them one by one


# -- weights of words --------------------------------------------------------------------------------------------------
class WordWeights:
    """Weights of words, computed when they are needed; mutable: the whole table is kept once it was computed.

    >>> weights = WordWeights.fixed(np.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> weights.complete, weights.rows(np.array([1])), weights.scaled(np.array([2.0, 0.5])).table()
    (True, array([[3., 4.]]), array([[2. , 4. ],
           [1.5, 2. ]]))
    """

    def __init__(
        self, shape: tuple[int, int], some: Callable[[Array], Array], every: Callable[[], Array] | None = None
    ) -> None:
        """`some` returns the rows of columns of the vocabulary, `every` the whole table where that is faster."""
        self.shape, self._some, self._every = shape, some, every
        self._table: Array | None = None

    @classmethod
    def fixed(cls, table: Array) -> WordWeights:
        """Return weights whose table is known."""
        table = np.ascontiguousarray(table, np.float64)
        made = cls(table.shape, lambda at: table[at], lambda: table)
        made._table = table
        return made

    @property
    def complete(self) -> bool:
        """Whether the whole table was computed."""
        return self._table is not None

    def table(self) -> Array:
        """Return all weights, (V, K)."""
        table = self._table
        if table is None:
            for _ in self.steps():
                pass
            table = self._table
        return table  # type: ignore[return-value]

    def steps(self) -> Iterator[None]:
        """Compute the whole table in steps of about a millisecond; it is kept at the end."""
        if self._table is not None:
            return
        if self._every is not None:
            self._table = np.ascontiguousarray(self._every(), np.float64)
            return
        table = np.empty(self.shape)
        for start in range(0, len(table), WORDS_AT_A_TIME):
            at = np.arange(start, min(start + WORDS_AT_A_TIME, len(table)))
            table[at] = self._some(at)
            yield
        self._table = table

    def rows(self, at: Array) -> Array:
        """Return the weights of some columns of the vocabulary, (n, K)."""
        table = self._table
        return self._some(at) if table is None else table[at]

    def scaled(self, factors: Array) -> WordWeights:
        """Return the weights, each word's multiplied by its factor, (V,)."""
        if self.complete:
            return WordWeights.fixed(self.table() * factors[:, None])
        return WordWeights(self.shape, lambda at: self.rows(at) * factors[at, None])

    def __reduce__(self) -> Any:
        return WordWeights.fixed, (self.table(),)


# -- scores ------------------------------------------------------------------------------------------------------------
class OneText(Protocol):
    """Scores one text at a time."""

    def __call__(self, text: str) -> tuple[Array, int]:
        """Return the scores of a text, (K,), or its log-probabilities, and the number of its features."""

    def with_finish(self, finish: Finish) -> Callable[[str], tuple[Array, int]]:
        """Return a scorer that gives log-probabilities."""


class Scorer:
    """Scores texts, many at once or one at a time; mutable: the kernel for single texts is made at its first use.

        score[k] = bias[k] + Σ weights[feature, k]     over the features of a text, or over those present if `binary`

    With `steps`, a feature that occurs t times counts steps(m)[1] + … + steps(m)[t] for t ≤ m.
    `weights` is (V, K): a feature's numbers for all classes side by side; (V + 1, K) where the vocabulary has `unk`.

    >>> scorer = Scorer(Vocabulary.of(["bad", "good"], "learnt"), np.array([[-2.0, 2.0], [1.0, -1.0]]), np.zeros(2))
    >>> scorer("Good, good: not bad."), scorer.scores(["good", "bad"])
    (array([0., 0.]), array([[ 1., -1.],
           [-2.,  2.]]))
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        weights: Array | WordWeights,
        bias: Array,
        tokens: Tokens = WORDS,
        binary: bool = False,
        steps: Steps | None = None,
    ) -> None:
        self.vocabulary, self.tokens, self.binary, self.steps = vocabulary, tokens, binary, steps
        self.table = weights if isinstance(weights, WordWeights) else WordWeights.fixed(weights)
        self.bias = np.ascontiguousarray(bias, np.float64)
        if self.table.shape != (vocabulary.columns, len(self.bias)):
            raise InputError(
                f"weights of shape {self.table.shape} do not fit {vocabulary.columns} features, unk counted, "
                f"and {len(self.bias)} classes."
            )
        self._one: OneText | None = None
        self._totals = np.zeros(0)  # amounts of a feature that occurs 0, 1, 2, … times

    @property
    def weights(self) -> Array:
        """All weights, (V, K)."""
        return self.table.table()

    def scaled(self, factors: Array) -> Scorer:
        """Return the scorer with the weights of each word multiplied by its factor, (V,)."""
        weights = self.table.scaled(factors)
        return Scorer(self.vocabulary, weights, self.bias, self.tokens, self.binary, self.steps)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_one": None}

    def __call__(self, text: str) -> Array:
        """Return the scores of one text, (K,)."""
        return self.one(text)[0]

    def one(self, text: str) -> tuple[Array, int]:
        """Return the scores of one text, (K,), and the number of its features."""
        return self._one_text()(text)

    def finished(self, finish: Finish) -> Callable[[str], tuple[Array, int]]:
        """Return a function of one text that gives its log-probabilities, (K,), and the number of its features."""
        return self._one_text().with_finish(finish)

    def scores(self, texts: Any, threads: int | None = None) -> Array:
        """Return the scores of each text, (n, K)."""
        return self.scores_and_lengths(texts, threads)[0]

    def scores_and_lengths(self, texts: Any, threads: int | None = None) -> tuple[Array, Array]:
        """Return the scores of each text, (n, K), and the number of its features, in the vocabulary or not, (n,)."""
        documents = Documents.of(texts)
        passed, n = DocumentPass(documents, self.tokens, self.vocabulary, threads), len(documents)
        many = passed.fast or is_large(documents)
        if n <= FEW and isinstance(documents.texts, list) and not many:
            found = self._few(passed, documents.texts)
            if found is not None:
                return found
        out, lengths = np.empty((n, len(self.bias))), np.empty(n, np.int64)

        def score(first: int, last: int) -> None:
            reader = passed.reader(lambda: self.weights[: len(self.vocabulary)].max(axis=1))
            once = Presence(passed.fast)
            amounts = None if self.steps is None else Amounts(self.steps, passed.fast)
            for chunk in passed.chunks(first, last):
                (stream,), own = passed.read(reader, chunk)
                if self.binary:
                    stream = once(stream, self.vocabulary.columns)
                here = slice(chunk.first, chunk.first + len(own))
                lengths[here] = own
                values = None if amounts is None else amounts(stream, self.vocabulary.columns)
                stream, weights = self._read_weights(stream, many)
                add_scores(stream, weights, self.bias, out[here], passed.fast, values)
            passed.done(reader, arranged=True)

        passed.run(score)
        return out, lengths

    def _read_weights(self, stream: Stream, many: bool) -> tuple[Stream, Array]:
        """Return a stream and the weights of its ids: all weights, or those of its words if there is no table yet."""
        if many or self.table.complete:
            return stream, self.weights
        at, ids = np.unique(stream.ids, return_inverse=True)
        return stream._replace(ids=ids.astype(np.int32)), self.table.rows(at)

    def _one_text(self) -> OneText:
        if self._one is None:
            self._one = self._made()
        return self._one

    def _made(self) -> OneText:
        """Make the function that scores one text: a kernel for plain words, else the general way."""
        tokens = self.tokens
        plain_words = tokens.compiled and tokens.unit == "word" and tokens.ngrams == (1, 1)
        if self.binary or not plain_words or tokens.stem or tokens.stop_words:
            return _OneOfMany(self)
        from deciban.text.kernels.single_document import SingleDocumentScorer

        reader: Any = make_reader(tokens, self.vocabulary, fast=True)
        outside = () if self.vocabulary.unk else (np.zeros((1, len(self.bias))),)
        return SingleDocumentScorer(reader.reader, np.concatenate([self.weights, *outside]), self.bias, self.steps)

    def _few(self, passed: DocumentPass, texts: list[Any]) -> tuple[Array, Array] | None:
        """Score a few short texts in plain Python; None where one is not a text, for which the general way raises."""
        reader, outside = passed.reader(), len(self.vocabulary) if self.vocabulary.unk else None
        passed.done(reader)  # a plain reader of a vocabulary does not change while it reads
        try:
            features = self.tokens.analyse_all([text.encode().decode() for text in texts])
        except (AttributeError, UnicodeError):
            return None
        out, lengths = np.empty((len(texts), len(self.bias))), np.empty(len(texts), np.int64)
        for i, words in enumerate(features):
            ids = [at for at in [reader.number.get(word, outside) for word in words] if at is not None]
            if self.binary or self.steps is not None:
                often = Counter(ids)
                rows = self.table.rows(np.fromiter(often, np.intp, len(often)))
                if self.steps is not None:
                    rows = rows * self._amounts(often.values())[:, None]
            else:
                rows = self.table.rows(np.array(ids, np.intp))
            out[i], lengths[i] = self.bias + rows.sum(axis=0), len(words)
        return out, lengths

    def _amounts(self, times: Collection[int]) -> Array:
        """Return the amounts of features, by the number of times that each occurs."""
        often = np.fromiter(times, np.intp, len(times))
        most = int(often.max(initial=1))
        if most >= len(self._totals):
            self._totals = np.cumsum(self.steps(2 * most))  # type: ignore[misc]
        return self._totals[often]


@dataclass(frozen=True)
class _OneOfMany:
    """Scores one text by the function for many; the general version of `SingleDocumentScorer`."""

    scorer: Scorer
    finish: Finish | None = None

    def with_finish(self, finish: Finish) -> _OneOfMany:
        return _OneOfMany(self.scorer, finish)

    def __call__(self, text: str) -> tuple[Array, int]:
        scores, lengths = self.scorer.scores_and_lengths([text])
        length = int(lengths[0])
        return scores[0] if self.finish is None else log_probabilities(scores[0], length, self.finish), length


# -- densities ---------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class WordCells:
    """Words, and functions of the density of their counts: of all words at once, or word by word where possible."""

    axis: Axis
    density: Callable[[], Density]
    cells: CellProbabilities | None = None  # of a density with a probability for each word


@dataclass(eq=False)
class LogTable:
    """The density of counts that a `TextDensity` reads, computed at its first use; mutable, owned by one density.

    The logarithms of all words take as long as counting the documents. A fit does not need them, and an answer about
    a few texts needs those of their words only.
    """

    make: Callable[[], WordCells]
    _cells: WordCells | None = None
    _made: tuple[Axis, Density] | None = None
    _ready: tuple[Vocabulary, Array | None, Scorer | None] | None = None
    _rescaled: tuple[WordFactors, Array, Scorer | None] | None = None

    def cells(self) -> WordCells:
        """Return the words, before their logarithms are taken."""
        if self._cells is None:
            self._cells = self.make()
        return self._cells

    def made(self) -> tuple[Axis, Density]:
        """Return the words and the density of their counts."""
        if self._made is None:
            cells = self.cells()
            self._made = cells.axis, cells.density()
        return self._made

    @property
    def by_word(self) -> bool:
        """Whether scores are sums over words with a probability each."""
        return self.cells().cells is not None or isinstance(self.made()[1], MultinomialDensity)

    def log_p(self, at: Array) -> Array:
        """Return the log probabilities of some words, (n, K), where scores are sums over words."""
        cells = self.cells().cells
        return self.made()[1].log_p[at] if cells is None or self._made is not None else cells.log_p(at)  # type: ignore[attr-defined]

    def ready(self, text: Text) -> tuple[Vocabulary, Array | None, Scorer | None]:
        """Return the words without <unk>, their idf (V,), and the scorer where a score is a sum over words."""
        if self._ready is None:
            vocabulary = vocabulary_along(text, self.cells().axis)
            idf = idf_of(text, vocabulary)
            self._ready = vocabulary, idf, self._scorer(text, vocabulary, idf)
        return self._ready

    def rescaled(self, text: Text, factors: WordFactors) -> tuple[Array, Scorer | None]:
        """Return the factor of each column (V,), and the scorer with the weights of words multiplied by them."""
        if self._rescaled is None or self._rescaled[0] is not factors:
            vocabulary, _, scorer = self.ready(text)
            each = factors.of(vocabulary)
            self._rescaled = factors, each, None if scorer is None else scorer.scaled(each)
        return self._rescaled[1:]

    def steps(self) -> Iterator[None]:
        """Compute the logarithms of all words, also those of the scorers that were used, in short steps."""
        cells = self.cells()
        if self._made is None and cells.cells is not None:
            self._made = cells.axis, (yield from cells.cells.density_steps())
        self.made()
        for scorer in (self._ready and self._ready[2], self._rescaled and self._rescaled[2]):
            if scorer is not None:
                yield from scorer.table.steps()

    def _scorer(self, text: Text, vocabulary: Vocabulary, idf: Array | None) -> Scorer | None:
        binary, steps = text.terms.amount == "binary", None if text.terms.amount == "binary" else text.terms.steps
        cells = self.cells().cells
        if cells is not None:
            if text.terms.unit:
                return None
            weights = WordWeights(cells.shape, self.log_p, lambda: self.made()[1].log_p)  # type: ignore[attr-defined]
            weights = weights if idf is None else weights.scaled(idf)
            return Scorer(vocabulary, weights, np.zeros(cells.shape[1]), text.tokens, binary, steps)
        inner = self.made()[1]
        if isinstance(inner, MultinomialDensity) and not text.terms.unit:
            whole, bias = inner.log_p if idf is None else inner.log_p * idf[:, None], np.zeros(inner.K)
        elif isinstance(inner, BernoulliDensity) and np.isfinite(inner.log_off).all():
            whole, bias = (inner.log_on - inner.log_off).T, inner.log_off.sum(axis=1)
        else:
            return None
        return Scorer(vocabulary, whole, bias, text.tokens, binary, steps)

    def __reduce__(self) -> Any:
        return _fixed_table, self.made()


def _fixed_table(axis: Axis, inner: Density) -> LogTable:
    return LogTable(lambda: WordCells(axis, lambda: inner), _made=(axis, inner))


@dataclass(frozen=True, eq=False, init=False)
class TextDensity(Density):
    """K densities of documents.

    A file holds the four fields. In memory, `axis` and `inner` are computed by `table` at their first use.
    """

    shapes: ClassVar = {"length": "K count"}

    text: Text  # how documents are read
    length: Array  # (K,) mean number of words of a document, which only samples need
    axis: Axis  # the words
    inner: Density  # of their counts, <unk> last
    table: LogTable = field(init=False, repr=False)

    def __init__(
        self,
        text: Text,
        length: Array,
        axis: Axis | None = None,
        inner: Density | None = None,
        table: LogTable | None = None,
    ) -> None:
        if table is None:
            if axis is None or inner is None:
                raise InputError("a density of texts needs the words and the density of their counts.")
            _check_widths(axis, inner, length)
            table = _fixed_table(axis, inner)
        for name, value in (("text", text), ("length", length), ("table", table)):
            object.__setattr__(self, name, value)

    @property  # type: ignore[no-redef]
    def axis(self) -> Axis:
        """The words."""
        return self.table.cells().axis

    @property  # type: ignore[no-redef]
    def inner(self) -> Density:
        """The density of the words' counts, <unk> last."""
        return self.table.made()[1]

    def validate(self) -> None:
        """Raise InputError if a word is not a text."""
        names = self.axis.names
        if isinstance(names, range) or not set(map(type, names)) <= {str}:
            raise InputError("the words of a density of texts are texts.")
        "".join(names).encode()  # raises a ValueError if a word is not Unicode

    @property
    def K(self) -> int:
        return len(self.length)

    @property
    def scorer(self) -> Scorer | None:
        """Scores documents while it reads them, where a score is a sum over tokens or over words present."""
        return self.table.ready(self.text)[2]

    @property
    def vocabulary(self) -> Vocabulary:
        """The words along the axis, without <unk>."""
        return self.table.ready(self.text)[0]

    def log_density(self, X: TextRows) -> Array:
        """Return (n, K): sums while reading where possible, else from counts; 0 for missing documents."""
        return self._log_density(X, None)

    def rescaled(self, X: TextRows, factors: WordFactors) -> Array:
        """Return (n, K) scores with the evidence of each word multiplied by its factor."""
        return self._log_density(X, factors)

    def rescaled_scorer(self, factors: WordFactors) -> Scorer | None:
        """Return the scorer with the weights of words multiplied by their factors."""
        return self.table.rescaled(self.text, factors)[1]

    def _log_density(self, X: TextRows, factors: WordFactors | None) -> Array:
        here, at = X.without_missing()
        vocabulary, idf, scorer = self.table.ready(self.text)
        each = None
        if factors is not None:
            each, scorer = self.table.rescaled(self.text, factors)
        if scorer is None or here.counted(self.text.tokens):
            terms = self.text.terms.weighted_rows(here.count_by(vocabulary, self.text.tokens).matrix, idf)
            if each is not None:
                terms = sp.csr_array((terms.data * each[terms.indices], terms.indices, terms.indptr), terms.shape)
            scores = self.inner.log_density(terms)
        else:
            scores, lengths = scorer.scores_and_lengths(here.documents)
            here.counts.keep_lengths(self.text.tokens, here.at, lengths)
        if at is None:
            return scores
        whole = np.zeros((len(X), self.K))
        whole[at] = scores
        return whole

    def table_steps(self) -> Iterator[None]:
        """Compute the logarithms of all words, if that was not done yet, in short steps."""
        yield from self.table.steps()

    def lesson_steps(self) -> Iterator[None]:
        """Make the base vocabulary and the table of counts that later lessons share, in short steps."""
        yield from steps_to_base(self.vocabulary, self.text.tokens)
        cells = self.table.cells().cells
        if cells is not None and isinstance(cells.counts, ChangedColumns) and cells.counts.is_long:
            yield from cells.counts.steps()

    # -- words ---------------------------------------------------------------------------------------------------------
    def word_source(self, X: TextRows) -> NewWords | None:
        """Return the source of these documents' scores, where they are sums over words with a probability each."""
        return NewWords(self, X) if self.table.by_word else None

    def word_evidence(self, X: TextRows) -> WordEvidence:
        """Return the evidence of each word in each document; a missing document is an empty row."""
        inner = self.inner
        assert isinstance(inner, MultinomialDensity)
        vocabulary, idf, _ = self.table.ready(self.text)
        terms = self.text.terms.weighted_rows(X.count_by(vocabulary, self.text.tokens).matrix, idf)
        return evidence_of(vocabulary, terms, inner.log_p, np.zeros((len(X), self.K)))

    # -- explanations --------------------------------------------------------------------------------------------------
    def parts(self, X: TextRows) -> Array:
        """Return (n, K, P): one part for each word that occurs in these documents, and one for the rest."""
        return self.named_parts(X)[1]

    def named_parts(self, X: TextRows) -> tuple[list[str], Array, Array]:
        """Return names (P,), log densities (n, K, P) and counts (n, P) of the words that occur, and of the rest."""
        vocabulary, idf, _ = self.table.ready(self.text)
        counted = X.count_by(vocabulary, self.text.tokens).matrix
        rows = self.text.terms.weighted_rows(counted, idf)
        at = np.unique(rows.indices)
        x, counts = (some[:, at].toarray().astype(float) for some in (rows, counted))
        names = [*vocabulary.take(at[at < len(vocabulary)]), UNK][: len(at)]
        missing = np.zeros(len(X), bool) if X.present is None else ~X.present
        values: Any = np.where(counts == 0, None, counts.astype(int).astype(object))
        if self.table.by_word:
            parts = _product(x[:, None, :], self.table.log_p(at).T)
            parts[missing] = 0.0
            return names, parts, values
        inner = self.inner
        if isinstance(inner, PolyaDensity):
            parts = log_rising(inner.concentration[at].T, x[:, None, :])
        else:
            assert isinstance(inner, BernoulliDensity)
            parts = np.where(x[:, None, :] > 0, inner.log_on[:, at], inner.log_off[:, at])
        parts[missing] = 0.0
        whole = np.where(missing[:, None], 0.0, inner.log_density(rows))
        with np.errstate(invalid="ignore"):
            rest = np.where(np.isneginf(whole), 0.0, whole - np.where(np.isneginf(parts), 0.0, parts).sum(axis=2))
        other = ABSENT if isinstance(inner, BernoulliDensity) else LENGTH
        values = np.concatenate([values, np.full((len(X), 1), None)], axis=1)
        return [*names, other], np.concatenate([parts, rest[:, :, None]], axis=2), values

    def parts_by_word(self, X: TextRows, names: list[str], parts: Array) -> tuple[list[str], Array, Array] | None:
        """Return words, their parts (n, K, W) and counts, from those of runs of characters; None for other features."""
        if self.text.unit != "char_wb" or not self.table.by_word or UNK in names:
            return None
        return parts_by_word(self.text.tokens, [X.documents[row] for row in range(len(X))], names, parts)

    def polynomial(self) -> tuple[None, Array, Array]:
        """Return the discriminant, linear in the terms where the reading is; columns are the words, <unk> last."""
        if isinstance(self.inner, PolyaDensity):
            raise NotAvailableError("a Pólya reading is not linear in the counts. Use reading='multinomial'.")
        A, b, c = self.inner.polynomial()  # type: ignore[attr-defined]
        idf = self.table.ready(self.text)[1]
        return A, b if idf is None else b * idf, c

    def sample(self, codes: Array, rng: np.random.Generator) -> Array:
        """Draw documents: single words, in no order."""
        if self.text.unit != "word" or self.text.tokens.ngrams != (1, 1) or self.text.analyser is not None:
            raise NotAvailableError("only documents of single words can be drawn, not runs of words or characters.")
        names = np.array([*self.vocabulary, UNK], dtype=object)[: self.axis.size]
        inner, idf = self.inner, self.table.ready(self.text)[1]
        if idf is not None and isinstance(inner, MultinomialDensity):  # shares of words, not of weighted terms
            log_p = inner.log_p - np.log(idf)[:, None]
            inner = replace(inner, log_p=log_p - np.logaddexp.reduce(log_p, axis=0))
        elif idf is not None and isinstance(inner, PolyaDensity):
            shares = inner.concentration / idf[:, None]
            shares *= inner.concentration.sum(axis=0) / shares.sum(axis=0)
            inner = replace(inner, concentration=shares)
        counts: Any = inner.sample(codes, rng)
        if isinstance(inner, BernoulliDensity):
            return _joined([names[row] for row in counts > 0])
        if not sp.issparse(counts):
            return _joined([np.repeat(names, row.astype(int)) for row in counts])
        ends = pairwise(counts.indptr)
        return _joined([np.repeat(names[counts.indices[a:b]], counts.data[a:b].astype(int)) for a, b in ends])


def _check_widths(axis: Axis, inner: Density, length: Array) -> None:
    """Refuse a density that does not fit its words, as a damaged file may hold."""
    if isinstance(inner, BernoulliDensity):
        width = inner.log_on.shape[1]
    else:
        width = len(inner.log_p if isinstance(inner, MultinomialDensity) else inner.concentration)  # type: ignore[attr-defined]
    if width != axis.size or len(length) != inner.K:
        raise InputError(f"a density of {width} words and {inner.K} classes does not fit {axis.size} words.")


def _product(x: Array, log_p: Array) -> Array:
    """Return x·log p, where 0·(−inf) is 0."""
    return np.where(x == 0, 0.0, x * np.where((x == 0) & np.isneginf(log_p), 0.0, log_p))


def _joined(words: list[Array]) -> Array:
    texts = np.empty(len(words), dtype=object)
    texts[:] = [" ".join(each) for each in words]
    return texts
