"""The vectorizers agree with scikit-learn's to the bit, on random texts and for all options."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.feature_extraction.text as theirs
from hypothesis import given, settings
from hypothesis import strategies as st

import deciban.sklearn as ours
from deciban.kernels import forced
from deciban.text.documents import Documents

EXAMPLES = settings(max_examples=15, deadline=None, derandomize=True)
WORDS = ["the", "cat", "Cat", "sat", "on", "a", "ΣΊΣΥΦΟΣ", "naïve", "İstanbul", "end_of", "42", "½", "don't", "日本語"]

COMMON = {
    "ngram_range": st.sampled_from([(1, 1), (1, 2), (2, 3)]),
    "analyzer": st.sampled_from(["word", "word", "char", "char_wb"]),
    "lowercase": st.booleans(),
    "strip_accents": st.sampled_from([None, "unicode", "ascii"]),
    "stop_words": st.sampled_from([None, "english", ["cat", "naïve"]]),
    "binary": st.booleans(),
}
WEIGHTS = {"norm": st.sampled_from(["l1", "l2", None])}
IDF = {"use_idf": st.booleans(), "smooth_idf": st.booleans(), "sublinear_tf": st.booleans()}
TERMS = {
    "min_df": st.sampled_from([1, 2, 0.2]),
    "max_df": st.sampled_from([1.0, 0.9]),
    "max_features": st.sampled_from([None, 2, 9]),
    "vocabulary": st.sampled_from([None, None, ["cat", "the", "cat sat", "a"]]),
}
OPTIONS = {
    "CountVectorizer": COMMON | TERMS | {"dtype": st.sampled_from([np.int64, np.float32, np.uint8])},
    "TfidfVectorizer": COMMON | TERMS | WEIGHTS | IDF | {"dtype": st.sampled_from([np.float64, np.float32])},
    "HashingVectorizer": COMMON
    | WEIGHTS
    | {
        "n_features": st.sampled_from([16, 2**20]),  # with collisions, and without
        "alternate_sign": st.booleans(),
        "dtype": st.sampled_from([np.float64, np.float32]),
    },
}


@st.composite
def cases(draw):
    """A class of vectorizers, its options, and documents."""
    name = draw(st.sampled_from(sorted(OPTIONS)))
    options = {key: draw(value) for key, value in OPTIONS[name].items()}
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    texts = [" ".join(rng.choice(WORDS, rng.integers(0, 15))) for _ in range(draw(st.integers(1, 30)))]
    if draw(st.booleans()):
        texts = [text.encode() for text in texts]
    return name, options, texts


@pytest.mark.filterwarnings("ignore:Your stop_words may be", "ignore:.*will not be used.*", "ignore:divide")
@pytest.mark.parametrize("body", ["numba", "numpy"])
@EXAMPLES
@given(cases())
def test_random_texts(body, case):
    name, options, texts = case
    with forced(body):
        mine, peer = (getattr(lib, name)(**options) for lib in (ours, theirs))
        X, expected = outcome(mine, texts), outcome(peer, texts)
        if isinstance(expected, str):  # no term is left
            assert expected == X
            return
        assert type(X) is type(expected)
        assert (X.dtype, X.indices.dtype) == (expected.dtype, expected.indices.dtype)
        if options["analyzer"] == "word":  # entries of a row in the same order, so that sums over it are rounded alike
            np.testing.assert_array_equal(X.indptr, expected.indptr)
            np.testing.assert_array_equal(X.indices, expected.indices)
            np.testing.assert_array_equal(X.data, expected.data)
        assert abs(X - expected).max() < (1e-6 if X.dtype == np.float32 else 1e-14)
        assert (mine.transform(texts[::-1]) != peer.transform(texts[::-1])).nnz == 0
        if name != "HashingVectorizer":
            assert mine.vocabulary_ == peer.vocabulary_
            assert options["analyzer"] != "word" or list(mine.vocabulary_) == list(peer.vocabulary_)


def outcome(vectorizer, texts):
    """What fit_transform returns, or the message of its error."""
    try:
        return vectorizer.fit_transform(texts)
    except ValueError as error:
        return str(error)


def test_the_order_of_rows_in_several_chunks_and_threads(monkeypatch):
    """Features of later chunks, and of the ranges of documents that other threads read, come after the earlier ones."""
    rng = np.random.default_rng(0)
    words = np.array([f"word{i}" for i in range(3_000)])
    texts = [" ".join(words[rng.zipf(1.2, 60) % len(words)]) for _ in range(600)]
    texts[70] = "İ " + texts[70]  # a document that kernels read after the others of its chunk
    monkeypatch.setattr("deciban.text.documents.BYTES_PER_RANGE", 1_000)
    monkeypatch.setattr("deciban.text.documents.FIRST_DOCUMENTS", 50)
    monkeypatch.setattr("deciban.text.documents.CHUNK_BYTES", 10_000)
    monkeypatch.setattr("deciban.text.documents.get_threads", lambda: 3)
    assert len(list(Documents.of(texts).chunks(0, 600))) > 5
    for options in ({}, {"ngram_range": (1, 2)}, {"ngram_range": (2, 3), "stop_words": ["word1"], "min_df": 2}):
        with forced("numba"):
            mine, peer = (lib.CountVectorizer(**options).fit_transform(texts) for lib in (ours, theirs))
        np.testing.assert_array_equal(mine.indices, peer.indices)
        np.testing.assert_array_equal(mine.data, peer.data)


@EXAMPLES
@given(st.integers(0, 1000), st.booleans(), st.fixed_dictionaries(WEIGHTS | IDF))
def test_weights_of_counts(seed, sparse, options):
    X = np.random.default_rng(seed).poisson(0.7, size=(12, 6)).astype([np.int64, np.float32][seed % 2])
    X = theirs.sp.csr_array(X) if sparse else X
    with np.errstate(divide="ignore"):
        mine, peer = (lib.TfidfTransformer(**options).fit_transform(X) for lib in (ours, theirs))
    assert mine.dtype == peer.dtype
    np.testing.assert_array_equal(mine.toarray(), peer.toarray())
