"""Plots of topics show the numbers of the model."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from deciban import TopicModel, plots
from deciban.errors import InputError

TEXTS = ["ships sail the sea", "wolves hunt sheep", "cats purr and sleep", "the sea carries ships"] * 10


@pytest.fixture(scope="module")
def model():
    return TopicModel(3, random_state=0).fit(TEXTS)


def axes():
    return Figure().subplots()


def test_circles_have_areas_in_proportion_to_their_topics(model):
    ax = plots.topic_map(model, ax=axes())
    sizes = ax.collections[0].get_sizes()
    np.testing.assert_allclose(sizes / sizes.sum(), model.prevalence_)
    assert len(ax.texts) == 3


def test_bars_are_the_words_of_the_topic(model):
    ax = plots.topic_words(model, 1, 4, ax=axes())
    shown = [label.get_text() for label in ax.get_yticklabels()][::-1]
    assert shown == model.top_words(4, "relevance")[1]
    own = sorted(bar.get_width() for bar in ax.patches[4:])[::-1]
    marginal = sorted(bar.get_width() for bar in ax.patches[:4])[::-1]
    assert all(a <= b + 1e-12 for a, b in zip(own, marginal))
    with pytest.raises(InputError, match="topic 3 of 3"):
        plots.topic_words(model, 3, ax=axes())


def test_bars_of_a_document_are_its_shares(model):
    ax = plots.topic_shares(model, TEXTS, 2, ax=axes())
    heights = [bar.get_height() for bar in ax.patches]
    np.testing.assert_allclose(heights, model.posterior(TEXTS).mean[2], atol=1e-12)
    np.testing.assert_allclose(heights, model.transform(TEXTS)[2], atol=1e-5)  # approximate
    with pytest.raises(InputError, match="row 99"):
        plots.topic_shares(model, TEXTS, 99, ax=axes())
