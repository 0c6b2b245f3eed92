"""Texts that are empty, missing, of another type or too long: an error that names them, or the right answer."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from deciban.errors import HyperparameterError, InputError
from deciban.kernels import forced
from deciban.text.counting import count_classes, count_rows
from deciban.text.density import Scorer
from deciban.text.documents import Documents
from deciban.text.tokens import Tokens
from deciban.text.vocabulary import Limits, Vocabulary

BODIES = pytest.mark.parametrize("body", ["numba", "numpy"])


def strings(*raw: bytes) -> pa.Array:
    """An Arrow column of strings that need not be UTF-8."""
    offsets = np.cumsum([0, *map(len, raw)]).astype(np.int32)
    return pa.StringArray.from_buffers(len(raw), pa.py_buffer(offsets), pa.py_buffer(b"".join(raw)))


@BODIES
@pytest.mark.parametrize(
    "raw",
    [
        b"\xff",
        b"ab\x80",
        b"\xc3",
        b"\xc3(",
        b"\xe2\x82",
        b"\xc0\xaf",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        b"\xf5",
        b"x\xf0\x9f",
    ],
)
def test_bytes_that_are_not_utf8_are_refused_by_document(body, raw):
    with forced(body), pytest.raises(InputError, match="document 1 is not valid UTF-8"):
        count_rows(strings("fine é".encode(), raw, b"\xa9 more"))


def test_offsets_outside_the_text_are_refused():
    column = pa.StringArray.from_buffers(2, pa.py_buffer(np.array([0, 900, 5], np.int32)), pa.py_buffer(b"hello world"))
    with pytest.raises(InputError, match="offsets"):
        count_rows(column)


@pytest.mark.parametrize(
    ("texts", "match"),
    [
        (["a", None], "document 1 is missing"),
        (["a", float("nan")], "document 1 is missing"),
        (pd.Series(["a", None]), "document 1 is missing"),
        (pl.Series(["a", None]), "document 1 is missing"),
        (pa.chunked_array([["a"], ["b", None]]), "document 2 is missing"),
        (["a", 3], "document 1 is not a text but int"),
        (["a", "\ud800"], "document 1 holds half a surrogate pair"),
        ([b"ok", b"\xff"], "document 1 is not valid utf-8"),
        (pl.Series([1, 2]), "int64"),
        (np.array([["a"]]), "one column"),
        ("a text", "string object received"),
        (["a", "b"], "empty vocabulary"),
        ([], "empty vocabulary"),
    ],
)
def test_what_is_no_text_is_said(texts, match):
    with pytest.raises(InputError, match=match):
        count_rows(texts)


@BODIES
def test_documents_of_only_stop_words_and_none_at_all(body):
    with forced(body):
        with pytest.raises(InputError, match="empty vocabulary"):
            count_rows(["the of", "and"], Tokens(stop_words="english"))
        known = Vocabulary.of(["cat"], "learnt")
        assert count_rows(["the of", ""], Tokens(stop_words="english"), known)[0].toarray().tolist() == [[0], [0]]
        assert count_rows([], vocabulary=known)[0].shape == (0, 1)
        assert count_classes([], np.zeros(0, int), 2, vocabulary=known).counts.tolist() == [[0], [0]]
        with pytest.raises(InputError, match="After pruning, no terms remain"):
            count_rows(["aa bb", "cc dd"], limits=Limits(min_df=2))


def test_nul_bytes_are_not_ends():
    with forced("numba"):
        X, known = count_rows(["ab\0cd ab", "\0\0", "cd\0"], Tokens())
        assert list(known) == ["ab", "cd"]
        assert X.toarray().tolist() == [[2, 1], [0, 0], [0, 1]]
        pairs = count_rows(["a\0", "a"], Tokens("char", ngrams=(1, 2)))[1]
    assert list(pairs) == ["\0", "a", "a\0"]


def test_one_word_of_many_megabytes():
    with forced("numba"):
        X, known = count_rows(["é" * 5_000_000 + " é " + "x" * 3_000_000 + " end"])
    assert list(map(len, known)) == [3, 3_000_000, 5_000_000]
    assert X.toarray().tolist() == [[1, 1, 1]]


def test_columns_of_every_kind_hold_the_same_documents():
    texts = ["a b", "naïve 日本", "", "x" * 100]
    kinds = [
        texts,
        tuple(texts),
        np.array(texts),
        np.array(texts, object),
        pd.Series(texts),
        pd.Series(texts, dtype=object),
        pd.Series(texts).astype("category"),
        pl.Series(texts),
        pl.Series(texts).cast(pl.Categorical),
        pa.array(texts),
        pa.array(["before", *texts, "after"])[1:-1],
        pa.array(texts, pa.large_string()),
        pa.array(texts, pa.string_view()),
        pa.array(texts).dictionary_encode(),
        pa.chunked_array([texts[:1], [], texts[1:]]),
        [text.encode() for text in texts],
    ]
    for kind in kinds:
        documents = Documents.of(kind)
        chunks = [chunk for first, last in documents.ranges(2) for chunk in documents.chunks(first, last)]
        found = [
            chunk.text[begin:end].tobytes().decode()
            for chunk in chunks
            for begin, end in zip(chunk.offsets[:-1], chunk.offsets[1:])
        ]
        assert found == texts
        assert documents.take(np.array([3, 1]))[1] == texts[1]


def test_options_that_do_not_exist_are_refused():
    for options in (
        {"unit": "sentence"},
        {"ngrams": (2, 1)},
        {"ngrams": (0, 1)},
        {"strip_accents": "all"},
        {"stem": "klingon"},
        {"stop_words": "klingon"},
        {"unit": "char", "stem": "english"},
        {"pattern": "(a)(b)"},
    ):
        with pytest.raises(HyperparameterError):
            Tokens(**options)
    for limits in ({"min_df": -1}, {"max_df": 1.5}, {"most": 0}, {"by": "luck"}):
        with pytest.raises(HyperparameterError):
            Limits(**limits)


def test_a_vocabulary_is_a_list_of_different_texts():
    with pytest.raises(InputError, match="Duplicate term in vocabulary: 'a'"):
        Vocabulary.of(["a", "b", "a"])
    with pytest.raises(InputError, match="None"):
        Vocabulary.of(["a", None])
    with pytest.raises(InputError, match="something else"):
        Vocabulary.of([1, 2])


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(InputError, match="class codes of shape"):
        count_classes(["aa"], np.array([0, 1]), 2)
    with pytest.raises(InputError, match="must lie in"):
        count_classes(["aa"], np.array([2]), 2)
    with pytest.raises(InputError, match="do not fit 3 features"):
        Scorer(Vocabulary.of(["a", "b"]), np.zeros((2, 2)), np.zeros(2))
