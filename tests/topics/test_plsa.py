"""PLSA is EM for p(w|d) = Σ p(w|t) p(t|d): equal to brute force, never falling, and it folds documents in."""

import numpy as np
import pytest
import scipy.sparse as sp

from deciban import PLSA
from deciban.errors import HyperparameterError
from deciban.kernels import forced
from deciban.topics.plsa import LEAST, AspectModel, fold_in_shares
from deciban.topics.words import matched
from topics.simulated import corpus, near_identical


def aspects(X, K, power=1.0):
    return AspectModel(X, K, 0, power=power)


def brute_force(X, documents, words, power, steps):
    """EM holding p(t|d,w) for every document, word and topic; p(t|d) first, then p(w|t) with it."""
    X = X.toarray()
    for _ in range(steps):
        joint = (documents[:, None, :] * words[None]) ** power
        gamma = joint / joint.sum(axis=2, keepdims=True)
        documents = np.einsum("dw,dwt->dt", X, gamma)
        documents /= documents.sum(axis=1, keepdims=True)
        joint = (documents[:, None, :] * words[None]) ** power
        gamma = joint / joint.sum(axis=2, keepdims=True)
        words = np.einsum("dw,dwt->wt", X, gamma)
        words /= words.sum(axis=0)
    return documents, words


@pytest.mark.parametrize("body", ["numba", "numpy"])
@pytest.mark.parametrize("power", [1.0, 0.7])
def test_it_equals_brute_force(body, power):
    X, _ = corpus(D=9, V=12, K=3, length=15)
    X = X[:, np.flatnonzero(X.sum(axis=0))]
    model = aspects(X, 3, power)
    documents, words = brute_force(X, model.documents.astype(float), model.words.astype(float), power, 5)
    with forced(body):
        for _ in range(5):
            model.step()
    np.testing.assert_allclose(model.documents, documents, atol=2e-5)
    np.testing.assert_allclose(model.words, words, atol=2e-5)


@pytest.mark.parametrize("body", ["numba", "numpy"])
def test_the_likelihood_never_falls(body):
    X, _ = corpus(D=200, V=60)
    model = aspects(X, 5)
    likelihood = []
    with forced(body):
        for _ in range(60):
            model.step()
            likelihood.append(model.log_likelihood())
    assert np.diff(likelihood).min() > -1e-6  # float32
    assert likelihood[-1] - likelihood[0] > 0.1


def test_the_likelihood_is_that_of_the_data():
    X, _ = corpus(D=30, V=20, K=3)
    model = aspects(X, 3)
    model.step()
    p = model.documents.astype(float) @ model.words.astype(float).T
    dense = X.toarray()
    seen = dense > 0
    assert model.log_likelihood() == pytest.approx((dense[seen] * np.log(p[seen])).sum() / dense.sum(), rel=1e-5)


def test_topics_are_recovered():
    X, phi = corpus(D=3000, length=150)
    model = PLSA(8, random_state=0, max_iter=300, tol=1e-5, held_out=0).fit(X)
    _, apart = matched(model.components_, phi)
    assert apart.max() < 0.1


def test_new_documents_are_folded_in_with_the_topics_fixed():
    X, phi = corpus(D=20, V=40, K=3, length=60)
    shares = fold_in_shares(X, np.ascontiguousarray(phi.T, dtype=np.float32), 500, aspects(X, 3).pool)
    dense = X.toarray()
    for _ in range(3):  # a fixed point of EM in p(t|d)
        p = shares.astype(float) @ phi
        np.testing.assert_allclose(shares * ((dense / p) @ phi.T) / dense.sum(axis=1)[:, None], shares, atol=1e-3)


def test_documents_without_known_words_have_equal_shares():
    model = PLSA(4, random_state=0).fit(["apples and pears", "ships and boats"])
    np.testing.assert_allclose(model.transform(["", "zebra"]), 0.25)


def test_tempering_helps_where_plain_em_overfits():
    X, _ = near_identical(D=400)
    plain = PLSA(20, random_state=0, held_out=0.2, tol=0, max_iter=60).fit(X)
    cooled = PLSA(20, random_state=0, held_out=0.2, temper="auto", max_iter=200, tol=1e-4).fit(X)
    flat = PLSA(20, random_state=0, held_out=0.2, temper=0.6, max_iter=60).fit(X)
    assert cooled.power_ <= 1
    assert cooled.perplexity_ <= plain.perplexity_ * 1.001
    assert flat.power_ == 0.6


def test_it_stops_before_it_overfits():
    X, _ = near_identical(D=400)
    model = PLSA(20, random_state=0, held_out=0.2, max_iter=100).fit(X)
    assert model.n_iter_ < 100
    assert model.perplexity_ == pytest.approx(np.exp(-max(model.trace_.objective)))


def test_fractions_count_as_weights():
    X, _ = corpus(D=60, V=30, K=3)
    whole, third = aspects(X, 3), aspects(sp.csr_array(X / 4), 3)
    third.words = whole.words
    for _ in range(5):
        whole.step()
        third.step()
    np.testing.assert_allclose(whole.words, third.words, atol=1e-5)


@pytest.mark.parametrize("temper", [0, 1.5, "cold"])
def test_a_temperature_that_is_none_is_refused(temper):
    with pytest.raises(HyperparameterError, match="temper"):
        PLSA(2, temper=temper).fit(np.ones((5, 3)))


def test_shares_that_fade_become_none():
    """Denormal numbers would make every pass several times as slow."""
    X, _ = corpus(D=200, V=60)
    model = aspects(X, 5)
    for _ in range(200):
        model.step()
    for shares in (model.documents, model.words):
        assert (shares == 0).any()
        assert shares[shares > 0].min() >= np.float32(LEAST)
    np.testing.assert_allclose(model.documents.sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(model.words.sum(axis=0), 1, rtol=1e-5)
