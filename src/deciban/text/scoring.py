"""Scores of documents in one pass over the text: a bias for each class, plus the weights of the features."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from deciban.errors import InputError
from deciban.statistics import Array
from deciban.text.counting import Steps
from deciban.text.documents import DocumentPass, Documents, VocabularyReader, is_large, make_reader
from deciban.text.kernels.streams import Amounts, Finish, Presence, add_scores, log_probabilities
from deciban.text.tokens import WORDS, Tokens
from deciban.text.vocabulary import Vocabulary

FEW = 16  # texts up to which plain Python scores them one by one


class OneText(Protocol):
    """Scores one text at a time."""

    def __call__(self, text: str) -> tuple[Array, int]:
        """Return the scores of a text, (K,), or its log-probabilities, and the number of its features."""

    def with_finish(self, finish: Finish) -> Callable[[str], tuple[Array, int]]:
        """Return one that gives log-probabilities."""


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
        weights: Array,
        bias: Array,
        tokens: Tokens = WORDS,
        binary: bool = False,
        steps: Steps | None = None,
    ) -> None:
        self.vocabulary, self.tokens, self.binary, self.steps = vocabulary, tokens, binary, steps
        self.weights = np.ascontiguousarray(weights, np.float64)
        self.bias = np.ascontiguousarray(bias, np.float64)
        if self.weights.shape != (vocabulary.columns, len(self.bias)):
            raise InputError(
                f"weights of shape {self.weights.shape} do not fit {vocabulary.columns} features, unk counted, "
                f"and {len(self.bias)} classes."
            )
        self.reader = VocabularyReader(vocabulary, tokens)
        self._one: OneText | None = None
        self._totals = np.zeros(0)  # amounts of a feature that occurs 0, 1, 2, … times

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
        n = len(documents)
        if n <= FEW and isinstance(documents.texts, list) and not is_large(documents):
            found = self._few(documents.texts)
            if found is not None:
                return found
        out, lengths = np.empty((n, len(self.bias))), np.empty(n, np.int64)

        def score(passed: DocumentPass, reader: Any, first: int, last: int) -> None:
            once = Presence(passed.fast)
            amounts = None if self.steps is None else Amounts(self.steps, passed.fast)
            for chunk in documents.chunks(first, last):
                (stream,), own = passed.read(reader, chunk)
                if self.binary:
                    stream = once(stream, self.vocabulary.columns)
                here = slice(chunk.first, chunk.first + len(own))
                lengths[here] = own
                values = None if amounts is None else amounts(stream, self.vocabulary.columns)
                add_scores(stream, self.weights, self.bias, out[here], passed.fast, values)

        self.reader.run(documents, score, threads, lambda: self.weights[: len(self.vocabulary)].max(axis=1))
        return out, lengths

    def _one_text(self) -> OneText:
        if self._one is None:
            self._one = self._made()
        return self._one

    def _made(self) -> OneText:
        """Return what scores one text: a kernel for plain words, else the general way."""
        tokens = self.tokens
        plain_words = tokens.compiled and tokens.unit == "word" and tokens.ngrams == (1, 1)
        if self.binary or not plain_words or tokens.stem or tokens.stop_words:
            return _OneOfMany(self)
        from deciban.text.kernels.single_document import SingleDocumentScorer

        reader: Any = make_reader(tokens, self.vocabulary, fast=True)
        outside = () if self.vocabulary.unk else (np.zeros((1, len(self.bias))),)
        return SingleDocumentScorer(reader.reader, np.concatenate([self.weights, *outside]), self.bias, self.steps)

    def _few(self, texts: list[Any]) -> tuple[Array, Array] | None:
        """Score a few short texts in plain Python; None where one is not a text: the long way then raises the error."""
        reader, outside = self.reader.plain(), len(self.vocabulary) if self.vocabulary.unk else None
        try:
            features = self.tokens.analyse_all([text.encode().decode() for text in texts])
        except (AttributeError, UnicodeError):
            return None
        out, lengths = np.empty((len(texts), len(self.bias))), np.empty(len(texts), np.int64)
        for i, words in enumerate(features):
            ids = [at for at in [reader.number.get(word, outside) for word in words] if at is not None]
            if self.binary or self.steps is not None:
                often = Counter(ids)
                rows = self.weights[list(often)]
                if self.steps is not None:
                    rows = rows * self._amounts(often.values())[:, None]
            else:
                rows = self.weights[ids]
            out[i], lengths[i] = self.bias + rows.sum(axis=0), len(words)
        return out, lengths

    def _amounts(self, times: Collection[int]) -> Array:
        """Return the amounts of features that occur so often."""
        often = np.fromiter(times, np.intp, len(times))
        most = int(often.max(initial=1))
        if most >= len(self._totals):
            self._totals = np.cumsum(self.steps(2 * most))  # type: ignore[misc]
        return self._totals[often]


@dataclass(frozen=True)
class _OneOfMany:
    """Scores one text at a time as it would many; the numpy version of `SingleDocumentScorer`."""

    scorer: Scorer
    finish: Finish | None = None

    def with_finish(self, finish: Finish) -> _OneOfMany:
        return _OneOfMany(self.scorer, finish)

    def __call__(self, text: str) -> tuple[Array, int]:
        scores, lengths = self.scorer.scores_and_lengths([text])
        length = int(lengths[0])
        return scores[0] if self.finish is None else log_probabilities(scores[0], length, self.finish), length
