"""Words or characters: the choice by labels for short texts, and options that are given and therefore kept."""

from __future__ import annotations

import numpy as np
import pytest

from deciban import GenerativeClassifier, Text
from deciban.model import candidates
from deciban.model.candidates import Place
from deciban.statistics import Members
from deciban.text.candidates import ENOUGH_FOR_PAIRS, SHORT

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


def ordered(n, seed=0):
    """Short texts of the same words, whose order tells the class."""
    rng = np.random.default_rng(seed)
    labels, others = rng.choice(["kept", "broken"], n), [f"w{number:03d}" for number in range(300)]
    told = {"kept": ["promise held", "door shut"], "broken": ["held promise", "shut door"]}
    return [" ".join([*rng.choice(others, 2), rng.choice(told[label]), rng.choice(others)]) for label in labels], labels


def test_pairs_of_words_are_chosen_for_short_texts_whose_order_tells():
    clf = GenerativeClassifier().fit(*ordered(ENOUGH_FOR_PAIRS))
    new, truth = ordered(300, seed=1)
    assert (clf.family_.unit, clf.family_.ngrams) == ("word", (1, 2))
    assert (clf.predict(new) == truth).mean() > 0.95
    assert GenerativeClassifier().fit(*ordered(ENOUGH_FOR_PAIRS // 2)).family_.ngrams != (1, 2)


class Judged:
    """A candidate with nested losses of its own, that stands for `nested_losses` of it."""

    def __init__(self, *losses):
        self.losses = np.array(losses * 50)


@pytest.fixture
def by_own_losses(monkeypatch):
    asked = []

    def losses(candidate, sample):
        asked.append(candidate)
        return candidate.losses

    monkeypatch.setattr(candidates, "nested_losses", losses)
    return asked


MANY = Members.hard(np.arange(candidates.ENOUGH_ROWS) % 2, 2)
ROWS = np.zeros((candidates.ENOUGH_ROWS, 1))


def test_a_neighbour_is_taken_if_its_nested_losses_are_clearly_less(by_own_losses):
    line = [Judged(0.2, 0.3), Judged(0.3, 0.4), Judged(0.5, 0.6), Judged(0.7, 0.8)]
    found = candidates.best_by_nested_losses([[Place(line, 2)]], ROWS, MANY, "mean")
    assert found is line[0]
    assert len(by_own_losses) == len(line)  # each once


def test_a_neighbour_that_may_be_better_by_chance_is_not_taken(by_own_losses):
    line = [Judged(0.0, 1.0, 0.0, 0.9), Judged(0.9, 0.1, 0.9, 0.1)]
    assert line[0].losses.mean() < line[1].losses.mean()
    assert candidates.best_by_nested_losses([[Place(line, 1)]], ROWS, MANY, "mean") is line[1]


def test_kinds_are_compared_with_the_better_spread_of_each(by_own_losses):
    words, pairs, pooled = [Judged(0.4, 0.5)], [Judged(0.6, 0.7)], [Judged(0.1, 0.2)]
    kinds = [[Place(words, 0)], [Place(pairs, 0), Place(pooled, 0)]]
    assert candidates.best_by_nested_losses(kinds, ROWS, MANY, "mean") is pooled[0]
    few = MANY.take(np.arange(100))  # of few rows, those of the common scale stand for their kinds
    assert candidates.best_by_nested_losses(kinds, ROWS[:100], few, "mean") is words[0]


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
