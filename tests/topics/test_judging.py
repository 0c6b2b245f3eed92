"""Words, coherence and pictures in text: against loops over documents."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

from deciban import TopicModel
from deciban.errors import HyperparameterError, InputError
from deciban.topics.words import coherence, divergences, diversity, map_positions, ranked, relevance
from topics.simulated import corpus


def plain_coherence(first, X, measure):
    """Pairs of words, counted document by document."""
    documents = [{w for w, c in enumerate(row) if c} for row in X]
    scores = []
    for topic in first:
        pairs = []
        for i in range(len(topic)):
            for j in range(i):
                a, b = topic[i], topic[j]
                alone = [sum(w in words for words in documents) for w in (a, b)]
                both = sum(a in words and b in words for words in documents)
                if measure == "umass":
                    pairs.append(math.log((both + 1) / alone[1]))
                elif both == 0:
                    pairs.append(-1.0)
                else:
                    n = len(documents)
                    pairs.append(math.log(both * n / (alone[0] * alone[1])) / -math.log(both / n))
        scores.append(sum(pairs) / len(pairs))
    return scores


@pytest.mark.parametrize("measure", ["npmi", "umass"])
def test_coherence_is_what_counting_pairs_gives(measure):
    X, _ = corpus(D=60, V=25, K=4, length=10)
    X = X[:, np.flatnonzero(X.sum(axis=0))]
    first = np.argsort(-np.random.default_rng(0).random((4, X.shape[1])), axis=1)[:, :5]
    expected = plain_coherence(first.tolist(), X.toarray().tolist(), measure)
    np.testing.assert_allclose(coherence(first, X, measure), expected)


def test_words_always_together_cohere_fully_and_absent_ones_not_at_all():
    X = sp.csr_array([[1, 1, 0, 0], [2, 1, 0, 0], [1, 3, 0, 0]])
    np.testing.assert_allclose(coherence([[0, 1], [2, 3]], X), [1.0, -1.0])
    assert np.isfinite(coherence([[0, 1], [2, 3]], X, "umass")).all()


def test_diversity_is_the_share_of_distinct_words():
    assert diversity([[0, 1], [2, 3]]) == 1
    assert diversity([[0, 1], [0, 1]]) == 0.5


def test_relevance_runs_from_lift_to_probability():
    topics, weights = np.array([[0.6, 0.3, 0.1], [0.5, 0.1, 0.4]]), np.array([0.7, 0.3])
    marginal = weights @ topics
    for lam in (0.0, 0.3, 1.0):
        np.testing.assert_allclose(
            relevance(topics, weights, lam), lam * np.log(topics) + (1 - lam) * np.log(topics / marginal)
        )
    assert ranked(topics, weights, 1).tolist() == [[0], [0]]
    assert ranked(topics, weights, 1, "lift").tolist() == [[1], [2]]
    with pytest.raises(HyperparameterError, match="lam"):
        relevance(topics, weights, 1.5)
    with pytest.raises(HyperparameterError, match="by='size'"):
        ranked(topics, weights, 1, "size")


def test_divergence_is_that_of_scipy():
    from scipy.spatial.distance import jensenshannon

    topics = np.random.default_rng(0).dirichlet(np.ones(12), 5)
    expected = [[jensenshannon(a, b, 2) ** 2 for b in topics] for a in topics]
    np.testing.assert_allclose(divergences(topics), expected, atol=1e-12)


def test_alike_topics_are_close_on_the_map():
    one, other = np.random.default_rng(0).dirichlet(np.ones(30), 2)
    at = map_positions(np.array([one, 0.95 * one + 0.05 * other, other]))
    assert np.linalg.norm(at[0] - at[1]) < 0.3 * np.linalg.norm(at[0] - at[2])


@pytest.mark.parametrize("K", [1, 2, 3])
def test_few_topics_have_places_too(K):
    assert map_positions(np.random.default_rng(0).dirichlet(np.ones(9), K)).shape == (K, 2)


def test_a_fitted_model_judges_itself():
    X, _ = corpus(D=300)
    model = TopicModel(8, random_state=0).fit(X)
    first = ranked(model.topics_, model.prevalence_, 10)
    np.testing.assert_allclose(model.coherence(X), coherence(first, X))
    assert model.similarity().shape == (8, 8)
    np.testing.assert_allclose(np.diag(model.similarity()), 1)
    assert 0 < model.diversity() <= 1
    assert model.prevalence_.sum() == pytest.approx(1)


def test_the_table_lists_topics_by_size_with_their_words():
    model = TopicModel(2, stop_words=None, random_state=0).fit(["ships sail", "wolves hunt", "ships sail far"] * 9)
    lines = str(model.table(2)).splitlines()
    assert len(lines) == 3
    assert "ships" in lines[1]
    assert "wolves" in lines[2]
    assert all(len(line) <= 80 for line in str(model.table(500)).splitlines())


def test_coherence_wants_pairs_of_words_that_there_are():
    with pytest.raises(InputError, match="at least two"):
        coherence([[0]], np.ones((3, 2)))
    with pytest.raises(InputError, match="documents have 2"):
        coherence([[0, 5]], np.ones((3, 2)))
