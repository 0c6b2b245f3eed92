"""Words or characters: what labels choose for short texts, and what stays as it was asked for."""

from __future__ import annotations

import numpy as np
import pytest

from deciban import GenerativeClassifier, Text
from deciban.text.choices import SHORT

ENDINGS = {"verb": ["ing", "ed", "s"], "noun": ["ness", "tion", "ment"]}


def inflected(n, length=1, seed=0):
    """Texts of words that hardly repeat, with endings that tell the class."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(list(ENDINGS), n)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))

    def word(label):
        return "".join(rng.choice(letters, 4)) + rng.choice(ENDINGS[label])

    return [" ".join(word(label) for _ in range(length)) for label in labels], labels


def test_characters_are_chosen_where_words_do_not_repeat():
    texts, labels = inflected(300)
    new, truth = inflected(200, seed=1)
    clf = GenerativeClassifier().fit(texts, labels)
    assert (clf.family_.unit, clf.family_.ngrams) == ("char_wb", (2, 4))
    assert (clf.predict(new) == truth).mean() > 0.95
    words = GenerativeClassifier(Text(unit="word")).fit(texts, labels)
    assert (words.predict(new) == truth).mean() < 0.7


def test_words_are_kept_where_they_are_as_good():
    rng = np.random.default_rng(0)
    labels = rng.choice(["a", "b"], 200)
    words = {"a": ["red", "green", "blue", "pink"], "b": ["one", "two", "three", "four"]}
    texts = [" ".join(rng.choice([*words[label], "and", "or"], 4)) for label in labels]
    assert GenerativeClassifier().fit(texts, labels).family_.unit == "word"


@pytest.mark.parametrize(
    "options",
    [{"pseudo_count": 1.0}, {"ngrams": (1, 2)}, {"stem": "english"}, {"pattern": r"\S+"}, {"min_df": 2}],
    ids=str,
)
def test_an_option_about_words_asks_for_words(options):
    assert Text(**options).unit == "word"


def test_long_or_few_texts_are_counted_by_words():
    for texts, labels in (inflected(150, length=1 + SHORT // 6), inflected(60)):
        assert GenerativeClassifier().fit(texts, labels).family_.unit == "word"


def test_explanations_of_characters_are_by_word_and_sum_to_the_answer():
    texts, labels = inflected(300, length=2)
    clf = GenerativeClassifier().fit(texts, labels)
    assert clf.family_.unit == "char_wb"
    given = ["jumping Zorgness", "jumping jumping"]
    found = clf.explain(given, "verb", "noun")
    assert found.names == ("jumping", "zorgness")
    assert (found.parts[:, 0] > 0).all()
    whole = found.parts.sum(axis=1) + sum(found.other.values())
    np.testing.assert_allclose(whole, clf.llr(given, "verb", "noun"), atol=1e-9)
