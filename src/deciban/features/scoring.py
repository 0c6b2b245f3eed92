"""Documents to scores in one pass over the text: a bias for each class, and for each feature its weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deciban.errors import InputError
from deciban.features.documents import Documents
from deciban.features.known import KnownWords
from deciban.features.reading import Reading
from deciban.features.tokens import WORDS, Tokens
from deciban.features.vocabulary import Vocabulary
from deciban.kernels.text.counting import Amounts, Presence, add_scores

Array = NDArray[Any]


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

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_one": None}

    def __call__(self, text: str) -> Array:
        """The scores of one text, (K,)."""
        return self.one(text)[0]

    def one(self, text: str) -> tuple[Array, int]:
        """The scores of one text, (K,), and how many features it has."""
        if self._one is None:
            self._one = self._made()
        return self._one(text)

    def scores(self, texts: Any, threads: int | None = None) -> Array:
        """The scores of each text, (n, K)."""
        return self.scores_and_lengths(texts, threads)[0]

    def scores_and_lengths(self, texts: Any, threads: int | None = None) -> tuple[Array, Array]:
        """The scores of each text, (n, K), and how many features it has, in the vocabulary or not, (n,)."""
        documents = Documents.of(texts)
        n = len(documents)
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

        self.known.passed(documents, score, threads)
        return out, lengths

    def _made(self) -> Any:
        """What scores one text: a kernel for plain words, else the general way."""
        plain_words = self.tokens.fast and self.tokens.unit == "word" and self.tokens.ngrams == (1, 1)
        if self.binary or not plain_words or self.tokens.stem or self.tokens.stop_words:
            return self._general
        from deciban.kernels.text.one import OneByOne

        reader = self.tokens.reader(self.vocabulary, fast=True).reader
        outside = () if self.vocabulary.unk else (np.zeros((1, len(self.bias))),)
        return OneByOne(reader, np.concatenate([self.weights, *outside]), self.bias, self.steps)

    def _general(self, text: str) -> tuple[Array, int]:
        scores, lengths = self.scores_and_lengths([text])
        return scores[0], int(lengths[0])
