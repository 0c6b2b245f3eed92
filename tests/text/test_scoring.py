"""Scores straight from text: many at once, one at a time, known words and unknown."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings

from deciban.features.counts import count_rows
from deciban.features.scoring import Scorer
from deciban.features.tokens import Tokens
from deciban.features.vocabulary import Vocabulary
from deciban.kernels import forced
from text.texts import documents

WORDS = ["aa", "bb", "éé", "日本", "b b", "aa aa", "x" * 70, "σς"]
CASES = [
    Tokens(),
    Tokens(ngrams=(1, 2)),
    Tokens("char_wb", ngrams=(1, 2)),
    Tokens(stem="english"),
    Tokens(pattern=r"\w+"),
]


@pytest.mark.parametrize("tokens", CASES, ids=str)
@pytest.mark.parametrize("kind", ["learnt", "given"])
@pytest.mark.parametrize("binary", [False, True])
@given(texts=documents)
@settings(max_examples=10, deadline=None)
def test_scores_are_rows_times_weights(tokens, kind, binary, texts):
    vocabulary = Vocabulary.of(WORDS, kind)
    weights = np.random.default_rng(1).integers(-9, 9, (vocabulary.columns, 3)).astype(float)
    bias = np.array([1.0, 2.0, 3.0])
    scorer = Scorer(vocabulary, weights, bias, tokens, binary)
    texts = [*texts, "AA bb bb zz", "x" * 70 + " ΑΣ σσ"]
    X = count_rows(texts, tokens, vocabulary, binary=binary)[0]
    for body in ("numba", "numpy"):
        with forced(body):
            scores, lengths = scorer.scores_and_lengths(texts)
        np.testing.assert_array_equal(scores, X @ weights + bias)
        np.testing.assert_array_equal(lengths, [len(tokens.analyse(text)) for text in texts])
        with forced(body):
            np.testing.assert_array_equal([scorer(text) for text in texts], scores)


def test_a_text_longer_than_any_before_and_a_scorer_from_a_pickle():
    scorer = Scorer(Vocabulary.of(["aa", "bb"], "learnt"), np.eye(2), np.zeros(2))
    assert scorer("aa bb " * 50_000 + "cc").tolist() == [50_000, 50_000]
    assert scorer("").tolist() == [0, 0]
    assert pickle.loads(pickle.dumps(scorer))("AA").tolist() == [1, 0]


def test_impossible_words_stay_impossible():
    scorer = Scorer(Vocabulary.of(["aa", "bb"], "learnt"), np.array([[-np.inf, 0.0], [0.0, 1.0]]), np.zeros(2))
    for body in ("numba", "numpy"):
        with forced(body):
            assert scorer.scores(["aa bb", "bb"]).tolist() == [[-np.inf, 1.0], [0.0, 1.0]]
