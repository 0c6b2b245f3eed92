"""Words by their script: emoji, pairs of characters of scripts without spaces, and runs of letters and digits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from deciban import GenerativeClassifier, Text
from deciban.kernels import forced
from deciban.text.counting import count_rows
from deciban.text.kernels.scripts import EMOJI, WITHOUT_SPACES
from deciban.text.tokens import Tokens

BY_SCRIPT = Tokens(pattern=None)
BLOCKS = ((0x20, 0x7E), (0xC0, 0x17F), (0x370, 0x3FF), (0xAC00, 0xACFF), (0x200C, 0x200D), (0xFE0E, 0xFE0F))
characters = st.one_of(
    *(st.characters(min_codepoint=a, max_codepoint=b) for a, b in (*BLOCKS, *WITHOUT_SPACES, *EMOJI))
)
MIXED = "I 👍🏽👍 ❤️❤ 👨‍👩‍👧 🇩🇪🇫🇷 北京大学。好! ก็ภาษาไทย 나 は日本語です ΑΣ é iPhone手机 \u200d \ufe0f ㍿"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("I like it", ["like", "it"]),
        ("ok👍👍🏽 ❤️!", ["ok", "👍", "👍🏽", "❤"]),
        ("👨‍👩‍👧 🇩🇪🇫🇷", ["👨👩👧", "🇩🇪", "🇫🇷"]),
        ("北京大学。好", ["北京", "京大", "大学", "好"]),
        ("ก็ดี", ["ก็ดี"]),
        ("ภาษาไทย", ["ภา", "าษ", "ษา", "าไ", "ไท", "ทย"]),
        ("iPhone手机很好", ["iphone", "手机", "机很", "很好"]),
        ("나 a é は", ["나", "は"]),
    ],
)
def test_words_are_found_by_their_script(text, words):
    assert BY_SCRIPT.analyse(text) == words


@pytest.mark.parametrize(
    "options", [{}, {"lowercase": False}, {"strip_accents": "unicode"}, {"ngrams": (1, 2)}], ids=str
)
@given(texts=st.lists(st.text(characters, max_size=40), max_size=6))
@example(texts=[MIXED, MIXED.upper(), "plain", ""])
@settings(max_examples=40, deadline=None)
def test_kernels_find_the_words_of_plain_python(options, texts):
    tokens, found = Tokens(pattern=None, **options), []
    for body in ("numpy", "numba"):
        with forced(body):
            X, names = count_rows(["anchor", *texts], tokens)
        found.append((X.toarray().tolist(), list(names)))
    assert found[0] == found[1]


def test_texts_in_one_script_are_classified_by_their_words():
    chinese = ["今天天气很好", "天气不好下雨", "股票价格上涨", "股票市场下跌"] * 3
    clf = GenerativeClassifier(Text(pseudo_count=1, transform="counts")).fit(
        chinese, ["weather", "weather", "money", "money"] * 3
    )
    assert clf.predict(["明天天气", "股票价格"]).tolist() == ["weather", "money"]
    faces = GenerativeClassifier(Text(pseudo_count=1, transform="counts")).fit(
        ["😀", "😀👍", "😡", "😡👎"], ["+", "+", "-", "-"]
    )
    assert faces.predict(["👍👍", "so 😡"]).tolist() == ["+", "-"]
    assert "👍" in str(faces.explain(["👍"]))


def test_a_single_document_is_read_as_a_batch_is():
    texts = [MIXED, "北京大学", "👍", "plain words"] * 4
    clf = GenerativeClassifier(Text(pseudo_count=1, transform="counts")).fit(texts, list("abcd") * 4)
    one, every = clf.scorer(), clf.predict_proba(texts[:4])
    assert np.allclose([[*one.predict_proba(text).values()] for text in texts[:4]], every, atol=1e-9)


def test_the_pattern_of_scikit_learn_counts_as_scikit_learn_does():
    pattern = r"(?u)\b\w\w+\b"
    assert Tokens(pattern=pattern).analyse("👍 北京大学 나 ok") == ["北京大学", "ok"]
    assert Text().pattern is None
    assert Text(pattern=pattern).tokens == Tokens()
