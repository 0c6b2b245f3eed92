"""Topic models are saved and loaded like every model; topics come and go as plain arrays."""

import numpy as np
import pytest

import deciban
from deciban import PLSA, TopicModel
from deciban.errors import ModelFileError
from topics.simulated import corpus

TEXTS = ["ships sail the sea", "wolves hunt sheep", "sheep flee wolves", "the sea carries ships"] * 30


@pytest.mark.parametrize(
    "model",
    [PLSA(2), TopicModel(2), TopicModel(2, method="scvb0"), TopicModel(2, method="gibbs", n_samples=2)],
    ids=["plsa", "cvb0", "scvb0", "gibbs"],
)
def test_a_loaded_model_answers_to_the_bit(model, tmp_path):
    fitted = model.set_params(random_state=0).fit(TEXTS)
    fitted.save(tmp_path / "topics.deciban", note="ships and wolves")
    loaded = deciban.load(tmp_path / "topics.deciban")
    assert type(loaded) is type(fitted)
    np.testing.assert_array_equal(loaded.transform(TEXTS), fitted.transform(TEXTS))
    np.testing.assert_array_equal(loaded.topics_, fitted.topics_)
    assert loaded.top_words(3) == fitted.top_words(3)
    assert loaded.get_params() == fitted.get_params()
    assert deciban.describe(tmp_path / "topics.deciban")["kind"] == type(fitted).__name__


def test_a_loaded_model_goes_on_learning(tmp_path):
    fitted = TopicModel(2, random_state=0).fit(TEXTS)
    deciban.save(fitted, tmp_path / "topics.deciban")
    loaded = deciban.load(tmp_path / "topics.deciban")
    more = ["galleons sail", "lambs flee"] * 10
    np.testing.assert_array_equal(loaded.partial_fit(more).counts_, fitted.partial_fit(more).counts_)


def test_parts_that_do_not_belong_together_are_refused(tmp_path):
    fitted = TopicModel(2, random_state=0).fit(TEXTS)
    fitted.alpha_ = np.ones(3)
    deciban.save(fitted, tmp_path / "topics.deciban")
    with pytest.raises(ModelFileError, match="alpha_"):
        deciban.load(tmp_path / "topics.deciban")


def test_topics_of_other_programs_are_taken_as_arrays():
    X, phi = corpus(D=200)
    model = TopicModel.from_topics(phi, alpha=0.1)
    own = TopicModel(8, random_state=0).fit(X)
    assert model.perplexity(X) == pytest.approx(own.perplexity(X), rel=0.05)
    np.testing.assert_allclose(model.topics_, phi, atol=1e-6)
    named = TopicModel.from_topics([[3, 1], [1, 3]], words=["ships", "wolves"], weights=[2, 1])
    assert named.top_words(1) == [["ships"], ["wolves"]]
    np.testing.assert_allclose(named.prevalence_, [2 / 3, 1 / 3], rtol=1e-5)
    assert named.transform(["ships ships ships"]).argmax() == 0
    assert named.partial_fit(["galleons ships"]).vocabulary_.tolist() == ["ships", "wolves", "galleons"]
