"""Scores computed while texts are read: many at once, one at a time, words in the vocabulary and outside."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings

from deciban.kernels import forced
from deciban.text.counting import count_classes, count_rows
from deciban.text.density import Scorer
from deciban.text.kernels.streams import Finish, log_probabilities
from deciban.text.tokens import Tokens
from deciban.text.vocabulary import Vocabulary
from text.texts import documents

WORDS = ["aa", "bb", "éé", "日本", "b b", "aa aa", "x" * 70, "σς"]
WORD = Tokens()
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


@pytest.mark.parametrize("tokens", [Tokens(), Tokens(ngrams=(1, 2)), Tokens(stem="english")], ids=str)
@pytest.mark.parametrize("kind", ["learnt", "given"])
@given(texts=documents)
@settings(max_examples=10, deadline=None)
def test_a_word_that_occurs_often_counts_the_sum_of_its_steps(tokens, kind, texts):
    def steps(most):
        return np.diff(np.arange(most + 1) ** 2, prepend=0).astype(float)  # so that t occurrences count t²

    vocabulary = Vocabulary.of(WORDS, kind)
    weights = np.random.default_rng(1).integers(-9, 9, (vocabulary.columns, 3)).astype(float)
    scorer = Scorer(vocabulary, weights, np.array([1.0, 2.0, 3.0]), tokens, steps=steps)
    texts = [*texts, "AA bb bb zz", "", "bb " * 300]
    X = count_rows(texts, tokens, vocabulary)[0].power(2)
    for body in ("numba", "numpy"):
        with forced(body):
            scores, lengths = scorer.scores_and_lengths(texts)
            np.testing.assert_array_equal([scorer(text) for text in texts], scores)
        np.testing.assert_array_equal(scores, X @ weights + scorer.bias)
        np.testing.assert_array_equal(lengths, [len(tokens.analyse(text)) for text in texts])


@pytest.mark.parametrize("weighted", [False, True])
@given(texts=documents)
@settings(max_examples=15, deadline=None)
def test_steps_are_summed_per_class_as_rows_are(weighted, texts):
    def steps(most):
        return np.diff(np.arange(most + 1) ** 2, prepend=0).astype(float)

    texts = [*texts, "AA bb bb zz", "bb " * 300]
    codes = np.arange(len(texts)) % 2
    weight = np.arange(1.0, len(texts) + 1) if weighted else None
    X, vocabulary = count_rows(texts, WORD)
    share = sp.csr_array((np.ones(len(texts)) if weight is None else weight, (codes, np.arange(len(texts)))))
    for body in ("numba", "numpy"):
        with forced(body):
            found = count_classes(texts, codes, 2, WORD, weight=weight, steps=steps)
        assert found.vocabulary == vocabulary
        np.testing.assert_array_equal(found.counts, (share @ X.power(2)).toarray())


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


@pytest.mark.parametrize("law", [[], [0.3, 0.7, 2.0, 3.0]], ids=["plain", "by length"])
@pytest.mark.parametrize("K", [1, 2, 7, 22])
@given(texts=documents)
@settings(max_examples=10, deadline=None)
def test_the_kernel_finishes_scores_as_its_twin_does(law, K, texts):
    rng = np.random.default_rng(K)
    weights = rng.normal(size=(2, K)) * [[1.0], [300.0]]
    weights = np.concatenate([weights, np.full((1, K), -np.inf), np.where(np.arange(K) == 0, -np.inf, weights[:1])])
    scorer = Scorer(Vocabulary.of(["aa", "bb", "éé", "ff"], "learnt"), weights, np.zeros(K))
    finish = Finish(np.array(law), rng.normal(size=K), np.log(np.full(K, 1 / K)))
    answer = scorer.finished(finish)
    for text in [*texts, "", "zz", "aa bb bb", "aa ff", "éé", "bb " * 200, "aa " * 9000]:
        expected = log_probabilities(*scorer.one(text), finish)
        scores, length = answer(text)
        np.testing.assert_allclose(scores, expected, rtol=1e-12, atol=1e-12)
        assert length == len(WORD.analyse(text))
