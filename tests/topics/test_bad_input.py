"""What is wrong is said; what is merely odd is answered; nothing becomes NaN."""

import numpy as np
import pytest
import scipy.sparse as sp

from deciban import PLSA, TopicModel
from deciban.errors import DomainError, HyperparameterError, InputError

MODELS = [PLSA, TopicModel]
TEXTS = ["ships sail the sea", "wolves hunt sheep", "sheep flee wolves", "the sea carries ships"]


@pytest.fixture(params=MODELS, ids=lambda model: model.__name__)
def model(request):
    return request.param


def fine(fitted, X):
    for answer in (fitted.transform(X), fitted.topics_, fitted.prevalence_):
        assert np.isfinite(answer).all()
        np.testing.assert_allclose(answer.sum(axis=-1), 1.0, rtol=1e-4)


def test_empty_documents_among_others_are_taken(model):
    fitted = model(2, random_state=0).fit(["", *TEXTS, ""])
    fine(fitted, ["", *TEXTS])


def test_documents_without_any_word_are_refused(model):
    with pytest.raises(InputError, match="empty vocabulary"):
        model(2).fit(["", " "])
    with pytest.raises(InputError, match="no document holds any word"):
        model(2).fit(np.zeros((3, 4)))


def test_no_documents_are_refused(model):
    with pytest.raises(ValueError, match="0 sample"):
        model(2).fit(np.zeros((0, 4)))
    with pytest.raises(ValueError):  # noqa: PT011  whichever half of it is noticed first
        model(2).fit([])


def test_more_topics_than_words_are_found(model):
    fitted = model(9, random_state=0).fit(np.array([[1, 2], [2, 1], [4, 0]]))
    assert fitted.topics_.shape == (9, 2)
    fine(fitted, np.ones((2, 2)))


def test_one_document_and_one_word(model):
    fine(model(3, random_state=0).fit(np.array([[5.0]])), np.array([[1.0], [0.0]]))


def test_fractions_are_weights(model):
    X = np.random.default_rng(0).gamma(0.3, size=(30, 8))
    fine(model(2, random_state=0).fit(X), X)


def test_a_sampler_wants_whole_counts():
    with pytest.raises(DomainError, match=r"is 0\.5; Gibbs sampling draws a topic for each token"):
        TopicModel(2, method="gibbs").fit(np.array([[1.0, 0.5], [2.0, 1.0]]))


@pytest.mark.parametrize(("value", "says"), [(-2.0, "Negative values"), (np.nan, "NaN"), (np.inf, "inf")])
def test_values_that_are_no_counts_are_refused(model, value, says):
    X = np.ones((4, 3))
    X[2, 1] = value
    with pytest.raises(ValueError, match=says):
        model(2).fit(X)
    with pytest.raises(ValueError, match=says):
        model(2).fit(sp.csr_array(X))


def test_another_vocabulary_is_refused(model):
    fitted = model(2, random_state=0).fit(np.ones((4, 3)))
    with pytest.raises(InputError, match="expecting 3 features"):
        fitted.transform(np.ones((2, 5)))


def test_a_model_of_nameless_columns_reads_no_texts(model):
    fitted = model(2, random_state=0).fit(np.ones((4, 3)))
    with pytest.raises(InputError, match="columns without names"):
        fitted.transform(["some text"])


def test_one_text_is_not_a_list_of_texts(model):
    with pytest.raises(InputError, match="Put it into a list"):
        model(2).fit("one text")


def test_a_missing_text_is_named(model):
    with pytest.raises(InputError, match="document 1 is missing"):
        model(2).fit(["some text", None])


def test_names_must_fit_the_columns(model):
    with pytest.raises(InputError, match="2 words were named for 3 columns"):
        model(2).fit(np.ones((4, 3)), words=["a", "b"])
    with pytest.raises(InputError, match="named twice: a"):
        model(2).fit(np.ones((4, 3)), words=["a", "b", "a"])
    with pytest.raises(InputError, match="texts bring their own"):
        model(2).fit(TEXTS, words=["a"])


@pytest.mark.parametrize("n_topics", [0, -1, 2.5, "many", [], True])
def test_a_number_of_topics_that_is_none_is_refused(model, n_topics):
    said = f"n_components={n_topics!r} must" if n_topics != [] else "n_components is empty"
    with pytest.raises(HyperparameterError, match=said):
        model(n_topics).fit(TEXTS)


@pytest.mark.parametrize(
    "options",
    [
        {"method": "vb"},
        {"alpha": 0},
        {"alpha": "big"},
        {"alpha": [0.1, 0.2, 0.3]},
        {"beta": -1},
        {"beta": "big"},
        {"beta": [1.0, 2.0]},
        {"max_iter": 0},
        {"batch": 0},
        {"n_samples": 0},
        {"threads": 0},
        {"held_out": 1.5},
        {"held_out": "some"},
    ],
    ids=str,
)
def test_options_that_make_no_sense_are_refused(options):
    with pytest.raises(HyperparameterError, match=next(iter(options))):
        TopicModel(2, **options).fit(TEXTS)


def test_a_stop_word_only_document_and_unknown_words_are_answered(model):
    fitted = model(2, random_state=0).fit(TEXTS)
    fine(fitted, ["the of and", "quixotic"])


def test_perplexity_of_documents_too_short_to_be_cut_is_refused(model):
    fitted = model(2, random_state=0).fit(TEXTS)
    with pytest.raises(InputError, match="holds any word"):
        fitted.perplexity(["the"])
