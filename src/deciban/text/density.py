"""The density of documents: how they are read, and the density of their counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from deciban.errors import InputError, NotAvailableError
from deciban.families.bernoulli import BernoulliDensity
from deciban.families.counts import MultinomialDensity, PolyaDensity
from deciban.families.dirichlet import log_rising
from deciban.families.protocol import Density
from deciban.statistics import Array, Axis
from deciban.text.counting import TextRows
from deciban.text.documents import VocabularyReader
from deciban.text.scoring import Scorer
from deciban.text.stats import UNK, idf_of, vocabulary_along

if TYPE_CHECKING:
    from deciban.text.family import Text

ABSENT = "words that are absent"
LENGTH = "number of words"


@dataclass(eq=False)
class LogTable:
    """The density of counts that a `TextDensity` reads, computed at its first use; mutable, owned by one density.

    The logarithms of all words take as long as counting the documents, and a fit does not need them.
    """

    make: Callable[[], tuple[Axis, Density]]  # the words and the density of their counts
    _made: tuple[Axis, Density] | None = None
    _ready: tuple[VocabularyReader, Array | None, Scorer | None] | None = None

    def made(self) -> tuple[Axis, Density]:
        """Return the words and the density of their counts."""
        if self._made is None:
            self._made = self.make()
        return self._made

    def ready(self, text: Text) -> tuple[VocabularyReader, Array | None, Scorer | None]:
        """Return the reader of the words, their idf (V,), and the scorer where a score is a sum over words."""
        if self._ready is None:
            axis, inner = self.made()
            reader = VocabularyReader(vocabulary_along(text, axis), text.tokens)
            idf = idf_of(text, reader.vocabulary)
            self._ready = reader, idf, _scorer(text, reader.vocabulary, inner, idf)
        return self._ready

    def __reduce__(self) -> Any:
        return _fixed_table, self.made()


def _fixed_table(axis: Axis, inner: Density) -> LogTable:
    return LogTable(lambda: (axis, inner), (axis, inner))


def _scorer(text: Text, vocabulary: Any, inner: Density, idf: Array | None) -> Scorer | None:
    binary, unit = text.terms.amount == "binary", text.terms.unit
    if isinstance(inner, MultinomialDensity) and not unit:
        weights, bias = inner.log_p if idf is None else inner.log_p * idf[:, None], np.zeros(inner.K)
    elif isinstance(inner, BernoulliDensity) and np.isfinite(inner.log_off).all():
        weights, bias = (inner.log_on - inner.log_off).T, inner.log_off.sum(axis=1)
    else:
        return None
    return Scorer(vocabulary, weights, bias, text.tokens, binary, text.terms.steps)


@dataclass(frozen=True, eq=False, init=False)
class TextDensity(Density):
    """K densities of documents.

    A file holds the four fields. In memory, `axis` and `inner` are computed by `table` at their first use.
    """

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
        return self.table.made()[0]

    @property  # type: ignore[no-redef]
    def inner(self) -> Density:
        """The density of the words' counts, <unk> last."""
        return self.table.made()[1]

    @property
    def K(self) -> int:
        return len(self.length)

    @property
    def scorer(self) -> Scorer | None:
        """Scores documents while it reads them, where a score is a sum over tokens or over words present."""
        return self.table.ready(self.text)[2]

    @property
    def vocabulary(self) -> Any:
        """The words along the axis, without <unk>."""
        return self.table.ready(self.text)[0].vocabulary

    def log_density(self, X: TextRows) -> Array:
        """Return (n, K): sums while reading where possible, else from counts; 0 for missing documents."""
        here, at = X.without_missing()
        reader, idf, scorer = self.table.ready(self.text)
        if scorer is None or here.counted(self.text.tokens):
            terms = self.text.terms.weighted_rows(here.count_by(reader).matrix, idf)
            scores = self.inner.log_density(terms)
        else:
            scores, lengths = scorer.scores_and_lengths(here.documents)
            here.counts.keep_lengths(self.text.tokens, here.at, lengths)
        if at is None:
            return scores
        whole = np.zeros((len(X), self.K))
        whole[at] = scores
        return whole

    # -- explanations --------------------------------------------------------------------------------------------------
    def parts(self, X: TextRows) -> Array:
        """Return (n, K, P): one part for each word that occurs in these documents, and one for the rest."""
        return self.named_parts(X)[1]

    def named_parts(self, X: TextRows) -> tuple[list[str], Array, Array]:
        """Return names (P,), log densities (n, K, P) and counts (n, P) of the words that occur, and of the rest."""
        reader, idf, _ = self.table.ready(self.text)
        counted = X.count_by(reader).matrix
        rows = self.text.terms.weighted_rows(counted, idf)
        at = np.unique(rows.indices)
        x, counts = (some[:, at].toarray().astype(float) for some in (rows, counted))
        names = [*reader.vocabulary, UNK]
        inner, missing = self.inner, np.zeros(len(X), bool) if X.present is None else ~X.present
        if isinstance(inner, MultinomialDensity):
            parts = _product(x[:, None, :], inner.log_p[at].T)
        elif isinstance(inner, PolyaDensity):
            parts = log_rising(inner.concentration[at].T, x[:, None, :])
        else:
            assert isinstance(inner, BernoulliDensity)
            parts = np.where(x[:, None, :] > 0, inner.log_on[:, at], inner.log_off[:, at])
        values: Any = np.where(counts == 0, None, counts.astype(int).astype(object))
        parts[missing] = 0.0
        if isinstance(inner, MultinomialDensity):
            return [names[j] for j in at], parts, values
        whole = np.where(missing[:, None], 0.0, inner.log_density(rows))
        with np.errstate(invalid="ignore"):
            rest = np.where(np.isneginf(whole), 0.0, whole - np.where(np.isneginf(parts), 0.0, parts).sum(axis=2))
        other = ABSENT if isinstance(inner, BernoulliDensity) else LENGTH
        values = np.concatenate([values, np.full((len(X), 1), None)], axis=1)
        return [*(names[j] for j in at), other], np.concatenate([parts, rest[:, :, None]], axis=2), values

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
        counts: Any = self.inner.sample(codes, rng)
        if isinstance(self.inner, BernoulliDensity):
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
