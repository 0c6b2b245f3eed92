"""A vocabulary that differs from a base by few words has the same columns as a new vocabulary of its words."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deciban import GenerativeClassifier, Text
from deciban.text import vocabulary as vocabularies
from deciban.text.documents import make_reader, steps_to_base
from deciban.text.tokens import Tokens
from deciban.text.vocabulary import Vocabulary, WordDelta

WORDS = [a + b for a in "abcäß中" for b in "xyz😀"]
BASE = WORDS[::2]


@pytest.fixture(autouse=True)
def small_bases(monkeypatch):
    monkeypatch.setattr(vocabularies, "LEAST_WORDS", 4)


def columns(vocabulary):
    number = make_reader(Tokens(), vocabulary, fast=False).number
    return [number.get(word, -1) for word in [*WORDS, "absent", ""]], len(number)


def renewed(vocabulary):
    return Vocabulary(vocabulary.names, vocabulary.kind)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sets(st.sampled_from(WORDS), min_size=1, max_size=5), max_size=6))
def test_changes_in_steps_give_the_columns_of_a_new_vocabulary(steps):
    vocabulary = Vocabulary.of(BASE, "learnt")
    for changed in steps:
        known = set(vocabulary)
        if changed <= known:
            vocabulary = vocabulary.take(np.array([at for at, word in enumerate(vocabulary) if word not in changed]))
        else:
            vocabulary = vocabulary.union(Vocabulary.of(changed, "learnt"))
        if len(vocabulary) < 5:
            return
        assert list(vocabulary) == sorted(vocabulary)
        assert vocabulary.delta is None or vocabulary.delta.base.delta is None
        assert columns(vocabulary) == columns(renewed(vocabulary))


def test_many_changes_make_a_new_base(monkeypatch):
    monkeypatch.setattr(vocabularies, "MOST_CHANGES", 2)
    vocabulary = Vocabulary.of(BASE, "learnt")
    one = vocabulary.union(Vocabulary.of(["m"], "learnt"))
    three = one.union(Vocabulary.of(["n", "o"], "learnt"))
    assert one.delta is not None
    assert one.delta.base is vocabulary
    assert three.delta is None
    assert columns(three) == columns(renewed(three))


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.booleans(), st.sets(st.sampled_from(WORDS), min_size=1, max_size=5)), max_size=8),
    st.integers(0, 3),
)
def test_a_base_made_between_changes_gives_the_columns_of_a_new_vocabulary(steps, behind):
    """Bases are made of the vocabulary of some changes ago, as by a thread that is late."""
    past = [Vocabulary.of(BASE, "learnt")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vocabularies, "MOST_CHANGES", 8)  # a new base is worth while from three changes on
        for rebase, changed in steps:
            if rebase:
                list(steps_to_base(past[max(0, len(past) - 1 - behind)], Tokens()))
            vocabulary = past[-1]
            known = set(vocabulary)
            if changed <= known:
                kept = np.array([at for at, word in enumerate(vocabulary) if word not in changed])
                past.append(vocabulary.take(kept))
            else:
                past.append(vocabulary.union(Vocabulary.of(changed, "learnt")))
                added = [at for at, word in enumerate(past[-1]) if word not in known]
                assert past[-1].columns_added_to(vocabulary).tolist() == added
            if len(past[-1]) < 5:
                return
            assert list(past[-1]) == sorted(past[-1])
            assert past[-1].delta is None or past[-1].delta.base.delta is None
            assert columns(past[-1]) == columns(renewed(past[-1]))


def test_a_newer_base_takes_the_place_of_the_older_one(monkeypatch):
    monkeypatch.setattr(vocabularies, "MOST_CHANGES", 8)
    first = Vocabulary.of(BASE, "learnt")
    grown = first.union(Vocabulary.of(["m", "n", "o"], "learnt"))
    assert list(steps_to_base(first, Tokens())) == []  # a base itself
    assert list(steps_to_base(grown, Tokens())) == [None]
    assert list(steps_to_base(grown, Tokens())) == []  # made already
    later = grown.union(Vocabulary.of(["p"], "learnt"))
    assert (later.delta.base.names, later.delta.added) == (grown.names, ("p",))
    made = []
    monkeypatch.setattr("deciban.text.documents.PlainReader", lambda *given: made.append(given))
    make_reader(Tokens(), later, fast=False)
    assert len(made) == 1  # of the later words; the reader of the base was made in steps


def test_a_word_that_comes_back_leaves_no_change():
    vocabulary = Vocabulary.of(BASE, "learnt")
    without = vocabulary.take(np.delete(np.arange(len(vocabulary)), 3))
    back = without.union(vocabulary.take(np.array([3])))
    assert back == vocabulary
    assert (back.delta.added, back.delta.removed) == ((), ())


def test_a_small_vocabulary_has_no_delta(monkeypatch):
    monkeypatch.setattr(vocabularies, "LEAST_WORDS", 1000)
    assert Vocabulary.of(BASE, "learnt").union(Vocabulary.of(["m"], "learnt")).delta is None
    assert WordDelta(Vocabulary.of(BASE, "learnt")).changed(added=["m"]) is None


def test_a_copy_has_the_words_and_not_the_base():
    grown = Vocabulary.of(BASE, "learnt").union(Vocabulary.of(["m"], "learnt"))
    copy = pickle.loads(pickle.dumps(grown))
    assert copy == grown
    assert copy.delta is None


@pytest.mark.parametrize("kind", [{}, {"vocabulary": "growing"}, {"unit": "char_wb", "ngrams": (1, 2)}])
def test_lessons_with_new_words_equal_one_fit_to_the_bit(kind):
    texts = ["ab cd ef", "cd gh ij", "kl mn op", "ab op"]
    more = ["new words ab", "zz aa new", "mm cd 中文 words"]
    family = Text(transform="counts", pseudo_count=1.0, **kind)
    clf = GenerativeClassifier(family, calibrate=None).fit(texts, [0, 1, 0, 1])
    clf.predict_proba(texts)  # a reader of the base
    before = clf.stats_
    for text, label in zip(more, (0, 1, 1)):
        clf.learn([text], [label])
    whole = GenerativeClassifier(family, calibrate=None).fit(texts + more, [0, 1, 0, 1, 0, 1, 1])
    assert clf.stats_.same(whole.stats_)
    for asked in (texts + more, ["zz", "unknown", "new ab words"]):
        np.testing.assert_array_equal(clf.predict_proba(asked), whole.predict_proba(asked))
        np.testing.assert_array_equal(clf.predict_proba(asked[:1]), whole.predict_proba(asked)[:1])
    for text, label in zip(more, (0, 1, 1)):
        clf.unlearn([text], [label])
    assert clf.stats_.same(before)
    np.testing.assert_array_equal(
        clf.predict_proba(more),
        GenerativeClassifier(family, calibrate=None).fit(texts, [0, 1, 0, 1]).predict_proba(more),
    )
