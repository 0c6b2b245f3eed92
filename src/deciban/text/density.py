"""The density of documents: how they are read, and what scores their counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from deciban.errors import InputError, NotAvailableError
from deciban.families.bernoulli import BernoulliDensity
from deciban.families.counts import MultinomialDensity, PolyaDensity
from deciban.families.dirichlet import log_rising
from deciban.families.protocol import Density
from deciban.statistics import Array, Axis
from deciban.text.rows import TextRows
from deciban.text.scoring import Scorer
from deciban.text.stats import UNK, ByWords
from deciban.text.terms import weighed

if TYPE_CHECKING:
    from deciban.text.family import Text

ABSENT = "words that are absent"
LENGTH = "number of words"


@dataclass(frozen=True, eq=False)
class TextDensity(ByWords, Density):
    """K densities of documents."""

    text: Text  # how they are read
    length: Array  # (K,) words a document has on average; only samples need it
    axis: Axis  # the words
    inner: Density  # of rows of their counts, unk last

    def __post_init__(self) -> None:
        width = getattr(self.inner, "log_p", getattr(self.inner, "concentration", None))
        width = self.inner.log_on.shape[1] if isinstance(self.inner, BernoulliDensity) else len(width)  # type: ignore[arg-type]
        if width != self.axis.size or len(self.length) != self.inner.K:
            raise InputError(
                f"a density of {width} words and {self.inner.K} classes does not fit {self.axis.size} words."
            )

    @classmethod
    def later(cls, text: Text, length: Array, make: Callable[[], tuple[Axis, Density]]) -> TextDensity:
        """A density whose axis and inner density are made when somebody asks: logarithms take as long as counting."""
        made = object.__new__(cls)
        made.__dict__.update(text=text, length=length, _make=make)
        return made

    def __getattr__(self, name: str) -> Any:
        if name not in ("axis", "inner") or "_make" not in self.__dict__:
            raise AttributeError(name)
        axis, inner = self.__dict__["_make"]()
        self.__dict__.update(axis=axis, inner=inner)
        del self.__dict__["_make"]
        return self.__dict__[name]

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("text", "length", "axis", "inner")}

    @property
    def K(self) -> int:
        return len(self.length)

    @cached_property
    def scorer(self) -> Scorer | None:
        """What scores documents while it reads them, where a score is a sum over tokens or over words present."""
        binary, inner = self.text.terms.amount == "binary", self.inner
        if isinstance(inner, MultinomialDensity) and self.text.terms.plain:
            weights = inner.log_p if self.factors is None else inner.log_p * self.factors[:, None]
            bias = np.zeros(self.K)
        elif isinstance(inner, BernoulliDensity) and np.isfinite(inner.log_off).all():
            weights, bias = (inner.log_on - inner.log_off).T, inner.log_off.sum(axis=1)
        else:
            return None
        steps = self.text.terms.steps
        return Scorer(self.known.vocabulary, weights, bias, self.text.tokens, binary, self.known, steps)

    def rows(self, X: TextRows) -> Any:
        """(n, V) CSR of what each document's words count."""
        counted = X.count_known(self.known).matrix
        return weighed(self.text.terms.rows(counted, self.factors), self.factors)

    def log_density(self, X: TextRows) -> Array:
        """Plain sums while reading; others by rows of counts. A missing document says nothing."""
        here, at = X.there()
        if self.scorer is None or here.counted:
            scores = self.inner.log_density(self.rows(here))
        else:
            scores, here.measured[self.text.tokens] = self.scorer.scores_and_lengths(here.documents)
        if at is None:
            return scores
        whole = np.zeros((len(X), self.K))
        whole[at] = scores
        return whole

    # -- why --------------------------------------------------------------------------------------------------------
    def parts(self, X: TextRows) -> Array:
        """(n, K, P): one part for each word that occurs in these documents, and what no word says."""
        return self.named_parts(X)[1]

    def named_parts(self, X: TextRows) -> tuple[list[str], Array, Array]:
        """Names (P,), log densities (n, K, P) and counts (n, P) of the words in these documents, and of the rest."""
        rows, counted = self.rows(X), X.count_known(self.known).matrix
        at = np.unique(rows.indices)
        x, counts = (some[:, at].toarray().astype(float) for some in (rows, counted))
        names = [*self.known.vocabulary, UNK]
        whole, inner = self.log_density(X), self.inner
        if isinstance(inner, MultinomialDensity):
            parts = _times(x[:, None, :], inner.log_p[at].T)
        elif isinstance(inner, PolyaDensity):
            parts = log_rising(inner.concentration[at].T, x[:, None, :])
        else:
            assert isinstance(inner, BernoulliDensity)
            parts = np.where(x[:, None, :] > 0, inner.log_on[:, at], inner.log_off[:, at])
        values: Any = np.where(counts == 0, None, counts.astype(int).astype(object))
        missing = np.zeros(len(X), bool) if X.present is None else ~X.present
        parts[missing] = 0.0
        with np.errstate(invalid="ignore"):
            rest = np.where(np.isneginf(whole), 0.0, whole - np.where(np.isneginf(parts), 0.0, parts).sum(axis=2))
        if isinstance(inner, MultinomialDensity):
            return [names[j] for j in at], parts, values
        other = ABSENT if isinstance(inner, BernoulliDensity) else LENGTH
        values = np.concatenate([values, np.full((len(X), 1), None)], axis=1)
        return [*(names[j] for j in at), other], np.concatenate([parts, rest[:, :, None]], axis=2), values

    def polynomial(self) -> tuple[None, Array, Array]:
        """Linear in what the words count, where the reading is; columns are the words, unk last."""
        if isinstance(self.inner, PolyaDensity):
            raise NotAvailableError("a Pólya reading is not linear in the counts. Use reading='multinomial'.")
        A, b, c = self.inner.polynomial()  # type: ignore[attr-defined]
        return A, b if self.factors is None else b * self.factors, c

    def sample(self, codes: Array, rng: np.random.Generator) -> Array:
        """Documents of single words, in no order."""
        if self.text.unit != "word" or self.text.tokens.ngrams != (1, 1) or self.text.analyser is not None:
            raise NotAvailableError("only documents of single words can be drawn, not runs of words or characters.")
        names = np.array([*self.known.vocabulary, UNK], dtype=object)[: self.axis.size]
        if isinstance(self.inner, BernoulliDensity):
            there = self.inner.sample(codes, rng) > 0
            return _texts([names[row] for row in there])
        counts: Any = self.inner.sample(codes, rng)
        if isinstance(counts, np.ndarray):
            return _texts([np.repeat(names, row.astype(int)) for row in counts])
        ends = counts.indptr
        each = [np.repeat(names[counts.indices[a:b]], counts.data[a:b].astype(int)) for a, b in pairwise(ends)]
        return _texts(each)


def _times(x: Array, log_p: Array) -> Array:
    """The product, where 0·(−inf) is 0."""
    return np.where(x == 0, 0.0, x * np.where((x == 0) & np.isneginf(log_p), 0.0, log_p))


def _texts(words: list[Array]) -> Array:
    texts = np.empty(len(words), dtype=object)
    texts[:] = [" ".join(each) for each in words]
    return texts
