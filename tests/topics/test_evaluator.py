"""The evaluator is what a few lines of plain Python say it is, whoever found the topics."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

from deciban.errors import InputError
from deciban.kernels import forced
from deciban.topics.documents import halves, perplexity
from topics.simulated import corpus


def plain_perplexity(topics, observed, held, alpha, smoothing, steps):
    """Document completion, a number at a time."""
    K, V = len(topics), len(topics[0])
    phi = [[(1 - smoothing) * p / sum(topic) + smoothing / V for p in topic] for topic in topics]
    total = tokens = 0.0
    for shown, hidden in zip(observed, held):
        words = [(w, c) for w, c in enumerate(shown) if c]
        gamma = {w: [0.0] * K for w, _ in words}
        counts = [0.0] * K
        for _ in range(steps):
            new = {}
            for w, _ in words:
                part = [(max(counts[k] - gamma[w][k], 0.0) + alpha[k]) * phi[k][w] for k in range(K)]
                new[w] = [p / sum(part) for p in part]
            gamma = new
            counts = [sum(c * gamma[w][k] for w, c in words) for k in range(K)]
        size = sum(counts) + sum(alpha)
        theta = [(counts[k] + alpha[k]) / size for k in range(K)]
        for w, c in enumerate(hidden):
            if c:
                total += c * math.log(sum(theta[k] * phi[k][w] for k in range(K)))
                tokens += c
    return math.exp(-total / tokens)


@pytest.mark.parametrize("body", ["numba", "numpy"])
def test_it_equals_its_plain_twin(body):
    X, phi = corpus(D=12, V=15, K=3, length=20)
    observed, held = halves(X, seed=1)
    alpha = [0.1, 0.2, 0.3]
    with forced(body):
        ours = perplexity(phi, observed, held, alpha)
    plain = plain_perplexity(phi.tolist(), observed.toarray().tolist(), held.toarray().tolist(), alpha, 1e-4, 2000)
    assert ours == pytest.approx(plain, rel=1e-4)


def test_the_scale_of_topics_does_not_matter():
    X, phi = corpus(D=50)
    observed, held = halves(X)
    assert perplexity(phi * 17.0, observed, held) == pytest.approx(perplexity(phi, observed, held), rel=1e-12)


def test_true_topics_predict_better_than_others_and_knowing_nothing_gives_V():
    X, phi = corpus(D=300)
    observed, held = halves(X)
    wrong = np.random.default_rng(9).dirichlet(np.full(phi.shape[1], 0.05), len(phi))
    assert perplexity(phi, observed, held) < 0.5 * perplexity(wrong, observed, held)
    assert perplexity(np.ones((4, phi.shape[1])), observed, held) == pytest.approx(phi.shape[1])


def test_a_word_no_topic_has_is_improbable_but_not_impossible():
    observed, held = [[2, 0, 1]], [[1, 1, 0]]
    assert np.isfinite(perplexity([[1.0, 0.0, 1.0]], observed, held))


def test_halves_share_out_every_token():
    X, _ = corpus(D=40)
    X.data[::5] += 0.5
    first, second = halves(X, seed=3)
    np.testing.assert_allclose((first + second).toarray(), X.toarray())
    assert first.data.sum() == pytest.approx(X.data.sum() / 2, rel=0.05)


@pytest.mark.parametrize(
    ("topics", "says"),
    [
        ([[0.5, -0.5, 1]], "topic 0 gives word 1 the weight -0.5"),
        ([[1, 1, 1], [0, 0, 0]], "topic 1 gives no word any weight"),
        ([[1, 1]], "topics over 2 words"),
        ([1, 1, 1], "must be a matrix"),
    ],
)
def test_what_is_no_topic_is_said(topics, says):
    half = sp.csr_array(np.ones((2, 3)))
    with pytest.raises(InputError, match=says):
        perplexity(topics, half, half)
