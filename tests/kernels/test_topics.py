"""Passes of topic models: compiled and numpy versions agree, and any number of threads gives the same bits."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from deciban.kernels import forced
from deciban.topics import kernels as topic_kernels
from deciban.topics.kernels import (
    Rows,
    ThreadPool,
    TokenTopics,
    WordTopics,
    by_word,
    exact_pass,
    excluding_documents,
    excluding_words,
    fold_in,
    gibbs_sweep,
    plain_counts,
    prequential,
    row_log_likelihoods,
    transposed,
)

N, V = 40, 30


@pytest.fixture(params=[1, 7, 100], ids=lambda K: f"K={K}")
def K(request):
    return request.param


@pytest.fixture(params=[np.float32, np.float64], ids=["float32", "float64"])
def dtype(request):
    return request.param


@pytest.fixture
def case(K, dtype):
    """Documents, one of them empty, with integer and fractional counts."""
    rng = np.random.default_rng(K)
    X = sp.csr_array(rng.poisson(0.4, (N, V)) * np.where(np.arange(N) % 3, 1.0, 0.5)[:, None])
    X.data[X.indptr[5] : X.indptr[6]] = 0
    X.eliminate_zeros()
    rows = Rows.of(X, dtype)
    return {
        "rows": rows,
        "columns": by_word(rows, V),
        "table": rng.dirichlet(np.ones(V), K).T.astype(dtype).copy(),
        "shares": rng.gamma(1.0, size=(N, K)).astype(dtype) + dtype(0.1),
        "prior": np.linspace(0.05, 0.2, K).astype(dtype),
        "inverse": np.full(K, 0.01, dtype),
        "near": rng.gamma(5.0, size=rows.size).astype(dtype),
        "held": rng.dirichlet(np.ones(K), rows.size).astype(dtype),
    }


def both(act):
    """Results of the compiled and of the numpy version."""
    answers = []
    for body in ("numba", "numpy"):
        with forced(body):
            found = act()
            answers.append(found if isinstance(found, tuple) else (found,))
    return answers


def assert_alike(answers, dtype):
    tolerance = {"rtol": 2e-5, "atol": 1e-6} if dtype == np.float32 else {"rtol": 1e-10, "atol": 1e-12}
    for one, other in zip(*answers):
        np.testing.assert_allclose(one, other, **tolerance)


def test_passes_without_the_token_itself_agree(case, dtype):
    topics = WordTopics(case["table"], case["inverse"], dtype(0.05), dtype(1e-4))

    def act():
        counts, near, scale = excluding_documents(case["rows"], topics, case["shares"], case["near"])
        sums = excluding_words(case["columns"], topics, case["shares"], case["near"], scale)
        np.testing.assert_allclose(counts.sum(axis=0), sums.sum(axis=0), rtol=1e-4)
        np.testing.assert_allclose(counts.sum(axis=1), case["rows"].lengths(), rtol=1e-4)
        return counts, near, scale, sums

    assert_alike(both(act), dtype)


def test_plain_passes_agree(case, dtype):
    given = case["rows"], case["table"], case["shares"]
    assert_alike(both(lambda: plain_counts(*given)), dtype)
    assert_alike(both(lambda: plain_counts(transposed(case["rows"], V), case["shares"], case["table"])), dtype)
    assert_alike(both(lambda: row_log_likelihoods(*given)), dtype)


@pytest.mark.parametrize("K", [8, 9, 15, 16, 20, 31, 40, 47, 50, 63, 64, 65])
def test_plain_passes_agree_for_every_number_of_strips(K, dtype):
    rng = np.random.default_rng(K)
    rows = Rows.of(sp.csr_array(rng.poisson(0.4, (N, V)).astype(float)), dtype)
    table, shares = rng.dirichlet(np.ones(V), K).T.astype(dtype).copy(), rng.dirichlet(np.ones(K), N).astype(dtype)
    assert_alike(both(lambda: plain_counts(rows, table, shares)), dtype)


def test_a_plain_pass_over_words_shares_out_the_same_tokens(case):
    counts = plain_counts(case["rows"], case["table"], case["shares"])
    sums = plain_counts(transposed(case["rows"], V), case["shares"], case["table"])
    np.testing.assert_allclose(sums.sum(axis=0), counts.sum(axis=0), rtol=1e-4)
    np.testing.assert_allclose(counts.sum(axis=1), case["rows"].lengths(), rtol=1e-4)


def test_folding_in_agrees_and_keeps_every_token(case, dtype):
    answers = both(lambda: fold_in(case["rows"], case["table"], case["prior"], 500, 1e-6))
    (one,), (other,) = answers
    np.testing.assert_allclose(one, other, atol=2e-3)
    np.testing.assert_allclose(one.sum(axis=1), case["rows"].lengths(), rtol=1e-4)


def test_exact_passes_agree(case, dtype):
    rows, held = case["rows"], case["held"]
    owner = rows.owners()
    weighted = rows.data[:, None] * held
    of_document, of_word = np.zeros((N, held.shape[1]), dtype), np.zeros((V, held.shape[1]), dtype)
    np.add.at(of_document, owner, weighted)
    np.add.at(of_word, rows.indices, weighted)

    def act():
        counts = of_document, of_word, of_word.sum(axis=0)
        new, sums = exact_pass(rows, case["columns"], case["prior"], 0.01, counts, held.copy())
        return new, *sums

    assert_alike(both(act), dtype)


def test_word_by_word_prediction_agrees(case, dtype):
    assert_alike(both(lambda: prequential(case["rows"], case["table"], case["prior"])), dtype)


def test_word_by_word_probabilities_of_all_documents_sum_to_one():
    """All sequences of two words; counts of both orders are one row, so a row of two words stands for one order."""
    table, prior = np.random.default_rng(0).dirichlet(np.ones(3), 4).T.copy(), np.linspace(0.1, 0.4, 4)
    total = 0.0
    for first in range(3):
        for second in range(3):
            rows = Rows(np.array([0, 2]), np.array([first, second], np.int32), np.ones(2))
            total += np.exp(prequential(rows, table, prior)[0])
    assert total == pytest.approx(1.0)


def test_gibbs_sweeps_agree_and_keep_counts():
    rng, K = np.random.default_rng(0), 5
    words, limits = rng.integers(0, V, 300), np.array([0, 100, 100, 300])
    draws, start = rng.random(300), rng.integers(0, K, 300)

    def act():
        topics = start.copy()
        nd = np.array([np.bincount(topics[a:b], minlength=K) for a, b in pairwise(limits)], float)
        nw = np.zeros((V, K))
        np.add.at(nw, (words, topics), 1)
        nk = nw.sum(axis=0)
        gibbs_sweep(TokenTopics(limits, words, topics), (nd, nw, nk), np.full(K, 0.1), 0.01, draws)
        np.testing.assert_array_equal(nk, np.bincount(topics, minlength=K))
        np.testing.assert_array_equal(nd.sum(axis=1), np.diff(limits))
        return topics, nd, nw

    for one, other in zip(*both(act)):
        np.testing.assert_array_equal(one, other)


def test_any_number_of_threads_gives_the_same_bits(case, dtype, monkeypatch):
    monkeypatch.setattr(topic_kernels, "LEAST_WORK", 1)
    rows, table, shares = case["rows"], case["table"], case["shares"]
    topics, found = WordTopics(table, case["inverse"], dtype(0.05), dtype(1e-4)), []
    for threads in (1, 2, 3):
        with forced("numba"):
            pool = ThreadPool(threads)
            one = excluding_documents(rows, topics, shares, case["near"], pool)
            sums = excluding_words(case["columns"], topics, shares, case["near"], one[2], pool)
            folded = fold_in(rows, table, case["prior"], pool=pool)
            found.append((*one, sums, folded, plain_counts(rows, table, shares, pool)))
    for others in found[1:]:
        for mine, theirs in zip(found[0], others):
            np.testing.assert_array_equal(mine, theirs)
