"""LDA: topics are recovered, do not over-fit, and are the same for any number of threads."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import gammaln

from deciban import TopicModel
from deciban.errors import ConvergenceWarning
from deciban.kernels import forced
from deciban.topics import kernels
from deciban.topics.lda import Priors
from deciban.topics.topic_model import fold_in_documents, shares_of
from deciban.topics.words import matched
from topics.simulated import corpus, near_identical

METHODS = ("scvb0", "cvb0", "gibbs")


@pytest.mark.parametrize("method", METHODS)
def test_topics_are_recovered(method):
    X, phi = corpus()
    model = TopicModel(8, method=method, random_state=0).fit(X)
    pairs, apart = matched(model.topics_, phi)
    assert apart.max() < 0.1
    assert model.method_ == method
    assert abs(model.prevalence_ - 1 / 8).max() < 0.05
    assert sorted(pairs.tolist()) == list(range(8))


@pytest.mark.parametrize("method", METHODS)
def test_no_token_is_lost(method):
    X, _ = corpus(D=300)
    model = TopicModel(5, method=method, random_state=0, max_iter=20).fit(X)
    np.testing.assert_allclose(model.counts_.sum(axis=1), X.sum(axis=0), rtol=1e-3, atol=1e-3)
    assert model.tokens_ == X.data.sum()
    assert model.documents_ == 300


@pytest.mark.parametrize("method", ["scvb0", "cvb0"])
def test_near_identical_topics_are_not_overfitted(method):
    X, _ = near_identical()
    model = TopicModel(20, method=method, random_state=0, held_out=0.2, tol=0, max_iter=150).fit(X)
    reached = np.exp(-np.array(model.trace_.objective))
    assert len(reached) == 150
    assert reached[-1] <= 1.02 * reached.min()


@pytest.mark.parametrize("method", ["scvb0", "cvb0"])
def test_the_same_bits_for_any_number_of_threads(method, monkeypatch):
    monkeypatch.setattr(kernels, "LEAST_WORK", 1)
    X, _ = corpus(D=700)
    with forced("numba"):
        fits = [TopicModel(7, method=method, random_state=3, max_iter=6, threads=n).fit(X) for n in (1, 2, 3)]
        for other in fits[1:]:
            np.testing.assert_array_equal(fits[0].counts_, other.counts_)
            np.testing.assert_array_equal(fits[0].alpha_, other.alpha_)
            np.testing.assert_array_equal(fits[0].transform(X), other.transform(X))


def test_kernel_and_twin_find_the_same_topics():
    X, _ = corpus(D=150, V=60, K=3)
    found = []
    for body in ("numba", "numpy"):
        with forced(body):
            found.append(TopicModel(3, method="scvb0", random_state=0, max_iter=30).fit(X).topics_)
    np.testing.assert_allclose(*found, atol=2e-3)


def test_the_concentrations_are_learnt():
    """α of very unequal topics; β from counts that are certain."""
    rng = np.random.default_rng(0)
    alpha = np.array([0.05, 0.2, 1.0])
    counts = np.array([rng.multinomial(200, rng.dirichlet(alpha)) for _ in range(4000)], dtype=float)
    learnt = Priors.given("learnt", "learnt", 3)
    for _ in range(200):
        learnt = learnt.learn_alpha_from(counts, exact=True)
    np.testing.assert_allclose(learnt.alpha, alpha, rtol=0.1)
    words = np.array([rng.multinomial(20_000, rng.dirichlet(np.full(500, 0.05))) for _ in range(40)]).T.astype(float)
    for _ in range(50):
        learnt = learnt.learn_beta_from(words, exact=True)
    assert learnt.beta == pytest.approx(0.05, rel=0.1)


def test_learnt_priors_predict_better_where_topics_are_unequal():
    rng = np.random.default_rng(0)
    phi = rng.dirichlet(np.full(200, 0.05), 8)
    theta = rng.dirichlet([1.0, 0.5, *[0.05] * 6], 1500)
    X = sp.csr_array(rng.multinomial(30, (theta @ phi) / (theta @ phi).sum(axis=1, keepdims=True)).astype(float))
    fixed = TopicModel(8, alpha=0.1, beta=0.01, random_state=0).fit(X[:1200])
    learnt = TopicModel(8, beta=0.01, method="scvb0", random_state=0).fit(X[:1200])
    assert learnt.perplexity(X[1200:]) < fixed.perplexity(X[1200:])
    assert learnt.alpha_.max() > 5 * learnt.alpha_.min()


# -- new documents -----------------------------------------------------------------------------------------------------
def exact_shares(words, phi, alpha):
    """E θ and its sd, over all assignments of topics to tokens."""
    K = len(alpha)
    weights, means, squares = [], [], []
    for z in itertools.product(range(K), repeat=len(words)):
        a = alpha + np.bincount(z, minlength=K)
        log = gammaln(a).sum() + sum(np.log(phi[k, w]) for k, w in zip(z, words))
        weights.append(np.exp(log))
        means.append(a / a.sum())
        squares.append(a * (a + 1) / (a.sum() * (a.sum() + 1)))
    weights = np.array(weights) / np.sum(weights)
    mean = weights @ np.array(means)
    return mean, np.sqrt(weights @ np.array(squares) - mean**2)


def test_shares_of_a_new_document_are_close_to_the_exact_posterior():
    rng = np.random.default_rng(2)
    counts, alpha, beta = rng.gamma(0.5, 100, (6, 3)), np.array([0.5, 1.0, 0.3]), 0.1
    phi = ((counts + beta) / (counts + beta).sum(axis=0)).T
    words = [0, 1, 1, 3, 4, 5, 2]
    X = sp.csr_array(np.bincount(words, minlength=6)[None].astype(float))
    found = shares_of(fold_in_documents(X, counts, alpha, beta, kernels.SINGLE_THREAD), alpha)
    mean, sd = exact_shares(words, phi, alpha)
    np.testing.assert_allclose(found.mean[0], mean, atol=0.03)
    np.testing.assert_allclose(found.sd[0], sd, atol=0.03)
    low, high = found.interval(0.9)
    assert (low < found.mean).all()
    assert (found.mean < high).all()


def test_one_word_gives_the_exact_posterior():
    counts, alpha = np.array([[8.0, 1.0], [2.0, 9.0]]), np.array([0.3, 0.6])
    X = sp.csr_array([[1.0, 0.0]])
    phi = ((counts + 0.1) / (counts + 0.1).sum(axis=0)).T
    mean, sd = exact_shares([0], phi, alpha)
    found = shares_of(fold_in_documents(X, counts, alpha, 0.1, kernels.SINGLE_THREAD), alpha)
    np.testing.assert_allclose(found.mean[0], mean, atol=1e-6)
    np.testing.assert_allclose(found.sd[0], sd, atol=1e-6)


def test_documents_without_known_words_have_the_shares_of_the_prior():
    model = TopicModel(3, random_state=0).fit(["apples and pears", "ships and boats", "pears and apples"])
    expected = model.alpha_ / model.alpha_.sum()
    for shares in model.transform(["", "zebra"]):
        np.testing.assert_allclose(shares, expected)


def test_samples_widen_the_uncertainty():
    X, _ = corpus(D=150, V=40, K=3, length=15)
    model = TopicModel(3, method="gibbs", random_state=0, n_samples=6).fit(X)
    assert model.samples_.shape == (6, 40, 3)
    np.testing.assert_array_equal(model.samples_.sum(axis=(1, 2)), model.samples_[0].sum())
    del model.samples_
    single = model.posterior(X).sd.mean()
    model = TopicModel(3, method="gibbs", random_state=0, n_samples=6).fit(X)
    assert model.posterior(X).sd.mean() > single


# -- streams, choices, interruptions -----------------------------------------------------------------------------------
def test_a_stream_learns_new_words():
    first = ["ships sail the sea", "boats and ships at sea", "wolves hunt sheep", "sheep flee wolves"] * 20
    model = TopicModel(2, stop_words=["the", "and", "at"], random_state=0).partial_fit(first)
    before = model.vocabulary_.tolist()
    for _ in range(5):
        model.partial_fit(["galleons and ships sail the sea", "lambs and sheep flee wolves"] * 20)
    assert model.vocabulary_.tolist() == [*before, "galleons", "lambs"]
    assert model.n_features_in_ == len(model.vocabulary_) == len(model.counts_)
    at_sea, wild, galleons, lambs = model.transform(["sea ships", "wolves sheep", "galleons", "lambs"]).argmax(axis=1)
    assert (galleons, lambs) == (at_sea, wild)
    assert at_sea != wild
    assert model.documents_ == 80 + 200


def test_a_stream_of_batches_comes_close_to_one_fit():
    X, phi = corpus(D=4000)
    model = TopicModel(8, random_state=0)
    for at in range(0, 4000, 500):
        model.partial_fit(X[at : at + 500])
    _, apart = matched(model.topics_, phi)
    assert apart.max() < 0.12
    assert model.counts_.sum() == pytest.approx(X.data.sum(), rel=0.05)


def test_a_table_with_named_columns_grows_too():
    model = TopicModel(2, random_state=0).partial_fit(np.ones((4, 2)), words=["a", "b"])
    model.partial_fit(np.ones((4, 2)), words=["c", "a"])
    assert model.vocabulary_.tolist() == ["a", "b", "c"]


def test_the_number_of_topics_is_chosen_by_held_out_documents():
    X, _ = corpus(D=600, K=5, alpha=0.05)
    model = TopicModel([2, 5, 30], random_state=0).fit(X)
    assert model.n_topics_ == 5
    assert set(model.criteria_) == {2, 5, 30}
    assert model.criteria_[5] == min(model.criteria_.values()) == model.perplexity_
    assert model.transform(X).shape == (600, 5)


def test_an_interruption_keeps_the_topics():
    X, _ = corpus(D=300)

    def impatient(moment):
        if moment.step == 3:
            raise KeyboardInterrupt

    with pytest.warns(ConvergenceWarning, match="interrupted after 3 iterations"):
        model = TopicModel(4, random_state=0).fit(X, callback=impatient)
    assert model.trace_.interrupted
    assert model.transform(X).shape == (300, 4)


def test_texts_and_counts_give_the_same_topics():
    texts = ["ships sail seas", "wolves hunt sheep", "seas carry ships", "sheep flee wolves"] * 8
    by_text = TopicModel(2, stop_words=None, random_state=0).fit(texts)
    from deciban.sklearn import CountVectorizer

    counting = CountVectorizer().fit(texts)
    by_count = TopicModel(2, random_state=0).fit(counting.transform(texts), words=counting.get_feature_names_out())
    np.testing.assert_array_equal(by_text.counts_, by_count.counts_)
    assert by_text.top_words(3) == by_count.top_words(3)


def test_perplexity_of_good_topics_is_lower_and_score_is_its_logarithm():
    X, _ = corpus(D=500)
    good, bad = (TopicModel(K, random_state=0).fit(X[:400]) for K in (8, 1))
    assert good.perplexity(X[400:]) < 0.6 * bad.perplexity(X[400:])
    assert good.score(X[400:]) == pytest.approx(-np.log(good.perplexity(X[400:])))
