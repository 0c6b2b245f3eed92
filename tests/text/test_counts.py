"""Compiled counts against plain Python and scikit-learn, on arbitrary Unicode."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer

from deciban import GenerativeClassifier, Text
from deciban.kernels import forced
from deciban.text.counting import ClassCounter, count_classes, count_rows
from deciban.text.kernels.streams import MOST_IN_INT32, Amounts, Stream
from deciban.text.stats import once
from deciban.text.tokens import Tokens
from deciban.text.vocabulary import Limits, Vocabulary
from text.texts import ODD, documents

CASES = {
    "words": (Tokens(), {}),
    "as written": (Tokens(lowercase=False), {"lowercase": False}),
    "pairs": (Tokens(ngrams=(1, 2)), {"ngram_range": (1, 2)}),
    "two to four": (Tokens(ngrams=(2, 4)), {"ngram_range": (2, 4)}),
    "no accents": (Tokens(strip_accents="unicode"), {"strip_accents": "unicode"}),
    "ascii": (Tokens(strip_accents="ascii", ngrams=(1, 2)), {"strip_accents": "ascii", "ngram_range": (1, 2)}),
    "capital accents": (
        Tokens(strip_accents="unicode", lowercase=False),
        {"strip_accents": "unicode", "lowercase": False},
    ),
    "stop words": (Tokens(stop_words=["aa", "éé"], ngrams=(1, 2)), {"stop_words": ["aa", "éé"], "ngram_range": (1, 2)}),
    "characters": (Tokens("char", ngrams=(1, 3)), {"analyzer": "char", "ngram_range": (1, 3)}),
    "within words": (Tokens("char_wb", ngrams=(2, 5)), {"analyzer": "char_wb", "ngram_range": (2, 5)}),
    "pattern": (Tokens(pattern=r"\S+", ngrams=(1, 2)), {"token_pattern": r"\S+", "ngram_range": (1, 2)}),
}


def outcome(act):
    """What is counted, or that there is nothing to count."""
    try:
        X, names = act()
        return X.shape, X.toarray().tolist(), list(names)
    except ValueError as error:
        return str(error)


def counted(body, texts, tokens, **options):
    with forced(body):
        return outcome(lambda: count_rows(texts, tokens, **options))


def by_scikit_learn(texts, **options):
    vectorizer = CountVectorizer(**options)
    return outcome(lambda: (vectorizer.fit_transform(texts), vectorizer.get_feature_names_out()))


@pytest.mark.parametrize("case", CASES)
@given(texts=documents)
@example(texts=[ODD, " ".join(ODD), ODD.upper(), "ΑΣ ΑΣ. Σ ΣΑ α\u0301Σ'", "ab", ""])
@example(
    texts=["x" * 255 + " " + "x" * 256 + " " + "x" * 65, "a" * 63 + " b" * 40 + " éa " * 30, "\n\n a \u2003\u2003b"]
)
@settings(max_examples=60, deadline=None)
def test_kernel_twin_and_scikit_learn_agree(case, texts):
    tokens, options = CASES[case]
    compiled, plain = counted("numba", texts, tokens), counted("numpy", texts, tokens)
    assert compiled == plain == by_scikit_learn(texts, **options)
    together = [" ".join(texts), *texts, "".join(texts) * 20]
    assert counted("numba", together, tokens, threads=2) == by_scikit_learn(together, **options)


@pytest.mark.parametrize("case", CASES)
@given(texts=documents, others=documents)
@settings(max_examples=25, deadline=None)
def test_a_given_vocabulary_gets_the_same_counts_from_both(case, texts, others):
    tokens, options = CASES[case]
    vectorizer = CountVectorizer(**options)
    try:
        vectorizer.fit(texts)
    except ValueError:
        return
    names = vectorizer.get_feature_names_out()
    expected = outcome(lambda: (vectorizer.transform(others), names)) if others else None
    for body in ("numba", "numpy"):
        learnt = Vocabulary.of(names, "learnt")
        if others:
            assert counted(body, others, tokens, vocabulary=learnt) == expected
        X = counted(body, others, tokens, vocabulary=Vocabulary.of(names, "given"))[1]
        tokens_there = [len(tokens.analyse(text)) for text in others]
        assert np.sum(X, axis=-1).tolist() == tokens_there if others else X == []


@pytest.mark.parametrize("case", ["words", "pairs", "within words"])
@given(texts=documents, data=st.data())
@settings(max_examples=25, deadline=None)
def test_class_counts_are_the_rows_summed(case, texts, data):
    tokens, _ = CASES[case]
    codes = np.array(data.draw(st.lists(st.integers(0, 2), min_size=len(texts), max_size=len(texts))), np.int64)
    weight = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(texts), max_size=len(texts))), float)
    heavy = np.flatnonzero(weight)
    try:
        with forced("numpy"):
            X, vocabulary = count_rows([texts[i] for i in heavy], tokens)
    except ValueError:
        return
    member = np.eye(3)[codes[heavy]].T * weight[heavy]
    for body in ("numba", "numpy"):
        with forced(body):
            got = count_classes(texts, codes, 3, tokens, weight=weight)
            held = count_classes(texts, codes, 3, tokens, weight=weight, steps=once)
        assert got.vocabulary == vocabulary
        np.testing.assert_array_equal(got.counts, member @ X.toarray())
        np.testing.assert_array_equal(held.counts, member @ (X.toarray() > 0))
        np.testing.assert_array_equal(got.rows, member.sum(axis=1))
        np.testing.assert_array_equal(got.lengths[heavy], X.sum(axis=1))


def test_limits_are_those_of_scikit_learn():
    rng = np.random.default_rng(5)
    texts = [" ".join(f"w{i}" for i in rng.zipf(1.5, 30) % 40) for _ in range(50)]
    for limits, options in (
        (Limits(min_df=3), {"min_df": 3}),
        (Limits(min_df=0.1, max_df=0.5), {"min_df": 0.1, "max_df": 0.5}),
        (Limits(max_df=20), {"max_df": 20}),
    ):
        for body in ("numba", "numpy"):
            assert counted(body, texts, Tokens(), limits=limits) == by_scikit_learn(texts, **options)
    capped, known = count_rows(texts, limits=Limits(most=7))
    vectorizer = CountVectorizer(max_features=7)
    np.testing.assert_array_equal(capped.toarray()[:, :7], vectorizer.fit_transform(texts).toarray())
    assert list(known) == vectorizer.get_feature_names_out().tolist()
    np.testing.assert_array_equal(capped.sum(axis=1), count_rows(texts)[0].sum(axis=1))


def test_a_cap_by_mutual_information_keeps_what_tells_classes_apart():
    texts = ["same left"] * 4 + ["same right"] * 4 + ["same"] * 2
    codes = np.array([0] * 4 + [1] * 4 + [0, 1])
    weight = np.ones(len(texts))
    weight[0] = 0
    family = Text("multinomial", "counts", 1.0, most=2, by="information")
    for weights, left in ((None, 4), (weight, 3)):
        sums = GenerativeClassifier(family, calibrate=None).fit(texts, codes, weights).stats_.family
        assert sums.labels["word"].names == ("left", "right", "<unk>")
        assert sums.counts.tolist() == [[left, 0, left + 1], [0, 4, 5]]
    less = count_classes(texts, codes, 2, vocabulary=Vocabulary.of(["left", "right"]), weight=weight, steps=once)
    assert less.counts.tolist() == [[3, 0, 4], [0, 4, 5]]
    assert less.lengths.tolist() == [0] + [2] * 7 + [1, 1]


def test_counts_do_not_depend_on_threads_and_large_counts_not_on_int32(monkeypatch):
    rng = np.random.default_rng(0)
    texts = [" ".join(f"w{i}" for i in rng.zipf(1.3, 50) % 10_000) for _ in range(500)]
    codes = rng.integers(0, 4, 500)
    with forced("numba"):
        one, three = (count_classes(texts, codes, 4, Tokens(ngrams=(1, 3)), threads=threads) for threads in (1, 3))
        monkeypatch.setattr("deciban.text.kernels.streams.MOST_IN_INT32", 1000)
        wide = count_classes(texts, codes, 4, Tokens(ngrams=(1, 3)))
    assert one.vocabulary == three.vocabulary == wide.vocabulary
    np.testing.assert_array_equal(one.counts, three.counts)
    np.testing.assert_array_equal(one.counts, wide.counts)


@pytest.mark.parametrize("body", ["numba", "numpy"])
def test_batches_add_up_to_the_whole(body):
    texts, codes = ["aa bb", "bb cc é", "aa ΣΑΣ", "", "dd"], np.array([0, 1, 0, 2, 4])
    with forced(body):
        whole = count_classes(texts, codes, 5)
        counter = ClassCounter()
        lengths = [counter.add(texts[i : i + 2], codes[i : i + 2]) for i in (0, 2, 4)]
        parts = counter.result()
        weighted = ClassCounter(weighted=True)
        weighted.add(texts, codes, np.full(5, 0.5))
    assert parts.vocabulary == whole.vocabulary
    np.testing.assert_array_equal(parts.counts, whole.counts)
    np.testing.assert_array_equal(parts.rows, whole.rows)
    np.testing.assert_array_equal(np.concatenate(lengths), whole.lengths)
    np.testing.assert_array_equal(weighted.result().counts, whole.counts / 2)
    with pytest.raises(ValueError, match="weights must be given for"):
        weighted.add(texts, codes)


def test_one_document_larger_than_the_table_is_read_on_after_the_table_has_grown():
    text = " ".join(f"word{i} éé{i}" for i in range(30_000))
    with forced("numba"):
        X, vocabulary = count_rows([text, text[:1000]])
    assert X.shape == (2, 60_000)
    assert X[[0]].nnz == 60_000
    assert X.max() == 1
    assert list(vocabulary) == sorted(set(text.split()))


@pytest.mark.parametrize("words", [3, 500, 40_000])
def test_rows_of_any_length_are_in_order(words):
    rng = np.random.default_rng(words)
    lengths = [0, 1, 2, 63, 64, 65, 66, 127, 128, 129, 700, 30_000]
    texts = [" ".join(f"w{number}" for number in (words * rng.random(m) ** 2).astype(int)) for m in lengths]
    for binary in (False, True):
        with forced("numba"):
            ours, names = count_rows(texts, Tokens(ngrams=(1, 2)), binary=binary)
        vectorizer = CountVectorizer(ngram_range=(1, 2), binary=binary)
        theirs = vectorizer.fit_transform(texts)
        theirs.sort_indices()
        assert list(names) == vectorizer.get_feature_names_out().tolist()
        for mine, other in zip((ours.indptr, ours.indices, ours.data), (theirs.indptr, theirs.indices, theirs.data)):
            np.testing.assert_array_equal(mine, other)


def test_amounts_go_on_where_the_number_of_tokens_leaves_32_bits():
    rng = np.random.default_rng(1)
    ours, twin = (Amounts(lambda most: 1 / np.arange(1, most + 2), fast) for fast in (True, False))
    ours.base = MOST_IN_INT32 - 1_000
    for _ in range(12):
        lengths = rng.integers(0, 20, 16)
        stream = Stream(rng.integers(0, 9, lengths.sum()).astype(np.int32), lengths)
        np.testing.assert_array_equal(ours(stream, 9), twin(stream, 9))
    assert ours.base < 12 * 16 * 20


@pytest.mark.parametrize("kind", ["given", "learnt"])
@pytest.mark.parametrize("ngrams", [(1, 3), (2, 3)])
def test_a_run_that_only_begins_a_longer_one_is_outside(kind, ngrams):
    vocabulary = Vocabulary.of(["aa bb cc", "dd ee"], kind)
    with forced("numba"):
        compiled, _ = count_rows(["aa bb cc zz dd", "dd ee aa"], Tokens(ngrams=ngrams), vocabulary)
    with forced("numpy"):
        plain, _ = count_rows(["aa bb cc zz dd", "dd ee aa"], Tokens(ngrams=ngrams), vocabulary)
    assert compiled.toarray().tolist() == plain.toarray().tolist()


@pytest.mark.parametrize("ngrams", [(1, 1), (1, 3), (2, 2), (3, 4)])
def test_what_several_threads_find_is_united_as_one_would_find_it(ngrams):
    rng = np.random.default_rng(3)
    texts = [" ".join(f"{'é' * (w % 3)}{w:x}z" for w in rng.zipf(1.4, m) % 5000) for m in rng.integers(0, 90, 200)]
    with forced("numpy"):
        X, names = count_rows(texts, Tokens(ngrams=ngrams))
    for threads in (1, 2, 3, 4):
        with forced("numba"):
            ours, found = count_rows(texts, Tokens(ngrams=ngrams), threads=threads)
        assert found == names
        for mine, other in zip((ours.indptr, ours.indices, ours.data), (X.indptr, X.indices, X.data)):
            np.testing.assert_array_equal(mine, other)
