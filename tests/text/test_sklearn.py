"""The drop-in CountVectorizer gives what scikit-learn's gives."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer as Theirs
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline

from deciban.kernels import forced
from deciban.sklearn import CountVectorizer
from versions import with_tested_sklearn

TEXTS = ["The cat sat.", "A cat, a Dog & the ΣΊΣΥΦΟΣ", "naïve İstanbul cats", "", "the the the end_of 42 ½"] * 3


@pytest.fixture(autouse=True)
def kernels():
    with forced("numba"):
        yield


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"binary": True, "dtype": np.float32},
        {"min_df": 2, "max_df": 0.9},
        {"max_features": 3},
        {"stop_words": "english", "ngram_range": (1, 2)},
        {"analyzer": "char_wb", "ngram_range": (1, 4)},
        {"vocabulary": ["cat", "the", "cat sat", "dog"], "ngram_range": (1, 2)},
        {"vocabulary": {"dog": 1, "cat": 0}},
        {"token_pattern": r"\S+"},
        {"tokenizer": str.split, "token_pattern": None},
        {"preprocessor": str.upper},
        {"analyzer": str.split},
        {"strip_accents": "unicode", "lowercase": False},
        {"strip_accents": str.swapcase},
    ],
    ids=str,
)
def test_every_option_gives_the_same(options):
    ours, theirs = CountVectorizer(**options), Theirs(**options)
    X, expected = ours.fit_transform(TEXTS), theirs.fit_transform(TEXTS)
    assert type(X) is type(expected)
    assert X.dtype == expected.dtype
    assert X.indices.dtype == expected.indices.dtype
    np.testing.assert_array_equal(X.toarray(), expected.toarray())
    assert ours.vocabulary_ == theirs.vocabulary_
    assert all(type(column) is type(theirs.vocabulary_[term]) for term, column in ours.vocabulary_.items())
    np.testing.assert_array_equal(ours.get_feature_names_out(), theirs.get_feature_names_out())
    np.testing.assert_array_equal(ours.transform(TEXTS[:4]).toarray(), theirs.transform(TEXTS[:4]).toarray())
    for one, other in zip(ours.inverse_transform(X), theirs.inverse_transform(expected)):
        assert sorted(one) == sorted(other)
    assert ours.build_analyzer()(TEXTS[1]) == theirs.build_analyzer()(TEXTS[1])


def test_it_is_one_of_theirs_and_clones_and_pickles():
    ours = CountVectorizer(ngram_range=(1, 2)).fit(TEXTS)
    assert isinstance(ours, Theirs)
    assert clone(ours).get_params() == ours.get_params()
    again = pickle.loads(pickle.dumps(ours))
    np.testing.assert_array_equal(again.transform(TEXTS).toarray(), ours.transform(TEXTS).toarray())


@with_tested_sklearn
def test_the_dictionary_of_terms_is_made_when_somebody_wants_it():
    ours = CountVectorizer()
    assert not hasattr(ours, "vocabulary_")
    X = ours.fit_transform(TEXTS)
    np.testing.assert_array_equal(ours.transform(TEXTS).toarray(), X.toarray())
    assert ours._vocabulary.columns is None
    again = pickle.loads(pickle.dumps(ours))
    assert ours.vocabulary_ is ours.vocabulary_
    assert ours.vocabulary_ == again.vocabulary_ == Theirs().fit(TEXTS).vocabulary_
    del ours.vocabulary_["cat"]  # as some do to leave a term out
    ours.vocabulary_ = {term: column for column, term in enumerate(ours.vocabulary_)}
    assert ours.transform(["cat"]).sum() == 0
    del ours.vocabulary_
    assert not hasattr(ours, "vocabulary_")


def test_it_works_in_pipelines_and_grid_searches():
    y = np.arange(len(TEXTS)) % 2
    search = GridSearchCV(
        make_pipeline(CountVectorizer(), MultinomialNB()), {"countvectorizer__binary": [True, False]}, cv=3
    )
    search.fit(TEXTS, y)
    assert search.predict(TEXTS[:2]).shape == (2,)


@pytest.mark.parametrize("make", [tuple, iter, np.array, pa.array, lambda texts: [text.encode() for text in texts]])
def test_documents_of_any_kind(make):
    expected = Theirs().fit_transform(TEXTS).toarray()
    np.testing.assert_array_equal(CountVectorizer().fit_transform(make(TEXTS)).toarray(), expected)


def test_arrow_columns_are_read_even_where_scikit_learn_does_the_work():
    expected = Theirs(token_pattern=r"\S+").fit_transform(TEXTS).toarray()
    ours = CountVectorizer(token_pattern=r"\S+").fit_transform(pa.chunked_array([TEXTS]))
    np.testing.assert_array_equal(ours.toarray(), expected)


def test_files_are_read(tmp_path):
    for number, text in enumerate(TEXTS):
        (tmp_path / str(number)).write_text(text, encoding="utf-8")
    names = [str(tmp_path / str(number)) for number in range(len(TEXTS))]
    X = CountVectorizer(input="filename").fit_transform(names)
    np.testing.assert_array_equal(X.toarray(), Theirs().fit_transform(TEXTS).toarray())


def test_half_a_surrogate_pair_counts_as_scikit_learn_has_it():
    texts = ["ab\ud800cd ab", "cd"]
    np.testing.assert_array_equal(
        CountVectorizer().fit_transform(texts).toarray(), Theirs().fit_transform(texts).toarray()
    )


@pytest.mark.parametrize("texts", [["a", None], ["a", np.nan], [b"\xff\xfe"], [""], []], ids=str)
def test_what_is_no_text_raises_what_scikit_learn_raises(texts):
    with pytest.raises((ValueError, AttributeError)) as expected:
        Theirs().fit(texts)
    with pytest.raises(expected.type, match=str(expected.value)[:30].replace("(", r"\(")):
        CountVectorizer().fit(texts)


def test_a_subclass_with_an_analyser_of_its_own_is_obeyed():
    class Shouting(CountVectorizer):
        def build_analyzer(self):
            analyse = super().build_analyzer()
            return lambda text: [word.upper() for word in analyse(text)]

    assert "CAT" in Shouting().fit(TEXTS).vocabulary_


def test_stop_words_that_no_token_equals_are_warned_of():
    with pytest.warns(UserWarning, match="inconsistent"):
        CountVectorizer(stop_words=["don't"]).fit(["don't do it"])
