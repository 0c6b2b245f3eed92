"""Documents to scores in one pass over the text: a bias for each class, and for each feature its weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deciban.errors import InputError
from deciban.text.documents import Documents
from deciban.text.kernels.streams import Amounts, Finish, Presence, add_scores, log_probabilities
from deciban.text.reading import KnownWords, Reading, is_large
from deciban.text.tokens import WORDS, Tokens
from deciban.text.vocabulary import Vocabulary

Array = NDArray[Any]
FEW = 16  # texts that are scored one by one


class Scorer:
    """Scores texts, many at once or one at a time.

        score[k] = bias[k] + Σ weights[feature, k]     over the features of a text, or over those present if `binary`

    With `steps`, a feature that occurs t times counts steps(m)[1] + … + steps(m)[t] for t ≤ m.
    `weights` is (V, K): a feature's numbers for all classes side by side; (V + 1, K) where the vocabulary has unk.

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
        known: KnownWords | None = None,
        steps: Callable[[int], Array] | None = None,
    ) -> None:
        self.steps = steps
        self.vocabulary, self.tokens, self.binary = vocabulary, tokens, binary
        self.weights = np.ascontiguousarray(weights, np.float64)
        self.bias = np.ascontiguousarray(bias, np.float64)
        if self.weights.shape != (vocabulary.columns, len(self.bias)):
            raise InputError(
                f"weights of shape {self.weights.shape} do not fit {vocabulary.columns} features, unk counted, "
                f"and {len(self.bias)} classes."
            )
        self.known = known or KnownWords(vocabulary, tokens)
        self._one: Any = None
        self._totals = np.zeros(0)  # what a feature counts that occurs 0, 1, 2, … times

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_one": None}

    def __call__(self, text: str) -> Array:
        """The scores of one text, (K,)."""
        return self.one(text)[0]

    def one(self, text: str) -> tuple[Array, int]:
        """The scores of one text, (K,), and how many features it has."""
        return self._one_by_one()(text)

    def finished(self, finish: Finish) -> Callable[[str], tuple[Array, int]]:
        """What gives the log-probabilities of one text at a time, (K,), and how many features it has."""
        return self._one_by_one().with_finish(finish)

    def _one_by_one(self) -> Any:
        if self._one is None:
            self._one = self._made()
        return self._one

    def scores(self, texts: Any, threads: int | None = None) -> Array:
        """The scores of each text, (n, K)."""
        return self.scores_and_lengths(texts, threads)[0]

    def scores_and_lengths(self, texts: Any, threads: int | None = None) -> tuple[Array, Array]:
        """The scores of each text, (n, K), and how many features it has, in the vocabulary or not, (n,)."""
        documents = Documents.of(texts)
        n = len(documents)
        if n <= FEW and isinstance(documents.texts, list) and not is_large(documents):
            told = self._few(documents.texts)
            if told is not None:
                return told
        out, lengths = np.empty((n, len(self.bias))), np.empty(n, np.int64)

        def score(reading: Reading, reader: Any, first: int, last: int) -> None:
            once = Presence(reading.fast)
            amounts = None if self.steps is None else Amounts(self.steps, reading.fast)
            for chunk in documents.chunks(first, last):
                (stream,), own = reading.read(reader, chunk)
                if self.binary:
                    stream = once(stream, self.vocabulary.columns)
                here = slice(chunk.first, chunk.first + len(own))
                lengths[here] = own
                values = None if amounts is None else amounts(stream, self.vocabulary.columns)
                add_scores(stream, self.weights, self.bias, out[here], reading.fast, values)

        self.known.passed(documents, score, threads, lambda: self.weights[: len(self.vocabulary)].max(axis=1))
        return out, lengths

    def _made(self) -> Any:
        """What scores one text: a kernel for plain words, else the general way."""
        plain_words = self.tokens.fast and self.tokens.unit == "word" and self.tokens.ngrams == (1, 1)
        if self.binary or not plain_words or self.tokens.stem or self.tokens.stop_words:
            return _OneOfMany(self)
        from deciban.text.kernels.single_document import SingleDocumentScorer

        reader = self.tokens.reader(self.vocabulary, fast=True).reader
        outside = () if self.vocabulary.unk else (np.zeros((1, len(self.bias))),)
        return SingleDocumentScorer(reader, np.concatenate([self.weights, *outside]), self.bias, self.steps)

    def _few(self, texts: list[Any]) -> tuple[Array, Array] | None:
        """The same for a few short texts, without a detour; None where one is no text, which the long way explains."""
        reader, outside = self.known.plain(), len(self.vocabulary) if self.vocabulary.unk else None
        out, lengths = np.empty((len(texts), len(self.bias))), np.empty(len(texts), np.int64)
        for i, text in enumerate(texts):
            try:
                words = list(reader.analyse(text.encode().decode()))
            except (AttributeError, UnicodeError):
                return None
            numbers = (reader.number.get(word, outside) for word in words)
            ids = [number for number in numbers if number is not None]
            if self.binary or self.steps is not None:
                often = Counter(ids)
                rows = self.weights[list(often)]
                if self.steps is not None:
                    rows = rows * self._counting_for(often.values())[:, None]
            else:
                rows = self.weights[ids]
            out[i], lengths[i] = self.bias + rows.sum(axis=0), len(words)
        return out, lengths

    def _counting_for(self, often: Any) -> Array:
        """What features that occur so often count."""
        times = np.fromiter(often, np.intp, len(often))
        most = int(times.max(initial=1))
        if most >= len(self._totals):
            self._totals = np.cumsum(self.steps(2 * most))  # type: ignore[misc]
        return self._totals[times]


@dataclass(frozen=True)
class _OneOfMany:
    """Scores texts one at a time as it would many; the numpy version of `SingleDocumentScorer`."""

    scorer: Scorer
    finish: Finish | None = None

    def with_finish(self, finish: Finish) -> _OneOfMany:
        return _OneOfMany(self.scorer, finish)

    def __call__(self, text: str) -> tuple[Array, int]:
        scores, lengths = self.scorer.scores_and_lengths([text])
        length = int(lengths[0])
        return scores[0] if self.finish is None else log_probabilities(scores[0], length, self.finish), length
