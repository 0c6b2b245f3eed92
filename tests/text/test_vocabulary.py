"""Vocabularies: their order, union, selection; stems and stop words are found once for each different word."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer

from deciban.kernels import forced
from deciban.text import vocabulary
from deciban.text.counting import count_classes, count_rows
from deciban.text.kernels.characters import IN_PYTHON, LOWER, WORD, code_points
from deciban.text.stats import once
from deciban.text.tokens import Tokens
from deciban.text.vocabulary import Vocabulary
from text.texts import FAR, ODD, characters, documents

words = st.lists(st.text(characters, max_size=30), unique=True, max_size=20)


@given(words)
@settings(deadline=None)
def test_learnt_words_are_in_order_of_their_code_points(names):
    assert list(Vocabulary.of(names, "learnt")) == sorted(names)
    assert list(Vocabulary.of(names, "given")) == names


@given(words, words)
@settings(deadline=None)
def test_a_union_holds_both_and_knows_where(one, other):
    a, b = Vocabulary.of(one, "growing"), Vocabulary.of(other, "growing")
    both = a.union(b)
    assert list(both) == sorted({*one, *other})
    assert both == b.union(a)
    for part in (a, b):
        assert [list(both)[at] for at in both.positions(part)] == list(part)
    assert a.ids(other).tolist() == [sorted(one).index(name) if name in one else -1 for name in other]


@pytest.mark.parametrize("body", ["numba", "numpy"])
@given(words, words)
@settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_many_new_words_are_merged_in_order(monkeypatch, body, one, other):
    monkeypatch.setattr(vocabulary, "FEW_WORDS", 0)  # as many as are not inserted one by one
    a, b = Vocabulary.of(one, "learnt"), Vocabulary.of(other, "learnt")
    with forced(body):
        both = a.union(b.take(np.arange(len(b) // 2, len(b))))
        assert list(both) == sorted({*one, *sorted(other)[len(other) // 2 :]})
        assert list(both.union(b)) == sorted({*one, *other})
        both.names.validate(full=True)


@given(words, words, st.booleans())
@settings(deadline=None, max_examples=50)
def test_words_are_found_where_they_are_by_a_walk_and_by_a_table(one, other, inside):
    here, wanted = (
        Vocabulary.of(dict.fromkeys([*one, *other] if inside else one), "given"),
        Vocabulary.of(other, "learnt"),
    )
    for mine in (here, Vocabulary.of(list(here), "learnt")):
        names = list(mine)
        for body in ("numba", "numpy"):
            with forced(body):
                assert mine.positions(wanted).tolist() == [names.index(w) if w in names else -1 for w in wanted]


def test_a_vocabulary_is_selected_searched_copied_and_shown():
    growing = Vocabulary.of(["a", "b", "c"], "growing")
    assert growing.take(np.array([0, 2])) == Vocabulary.of(["a", "c"], "growing")
    given = Vocabulary.of(["c", "a"])
    assert "c" in given
    assert "b" not in given
    assert pickle.loads(pickle.dumps(given)) == given
    assert repr(Vocabulary.of(map(str, range(9)))) == "Vocabulary(0, 1, 2, 3, 4 and 4 more; given)"


def test_the_table_of_code_points_is_pythons():
    table = code_points()
    for character in ODD + "".join(map(chr, range(0x250))):
        info, small = int(table[ord(character)]), character.lower()
        if info & IN_PYTHON:
            assert character == "Σ" or len(small.encode()) != len(character.encode())
        else:
            assert chr(info & LOWER) == small
            assert bool(info & WORD) == (small.isalnum() or small == "_")


def test_texts_from_beyond_the_table_are_read_by_that_of_all_code_points():
    table = code_points(lowercase=False)
    assert any(ord(far) >= len(table) for far in FAR)
    for character in (each for each in ODD + FAR if ord(each) < len(table)):
        assert int(table[ord(character)]) & LOWER == ord(character)
        assert bool(table[ord(character)] & WORD) == (character.isalnum() or character == "_")
    texts = [f"Ab {far}C {far}c {far}{far} Ȁ{far}" for far in FAR] + ["Ab Σa 𠀀𠀀Σ", "plain"]
    theirs = CountVectorizer().fit(texts)
    for body in ("numba", "numpy"):
        with forced(body):
            X, known = count_rows(texts, Tokens())
        assert list(known) == theirs.get_feature_names_out().tolist()
        np.testing.assert_array_equal(X.toarray(), theirs.transform(texts).toarray())


@pytest.mark.parametrize("language", ["english", "german", "russian", "turkish"])
@given(texts=documents)
@settings(max_examples=15, deadline=None)
def test_stems_are_the_same_from_kernel_and_twin(language, texts):
    tokens = Tokens(stem=language, stop_words=["aa"], ngrams=(1, 2))
    texts = [*texts, "running runs run Häuser Haus бегущий бежать evlerimizden aa aa"]
    found = []
    for body in ("numba", "numpy"):
        with forced(body):
            X, known = count_rows(texts, tokens)
            counts = count_classes(texts, np.zeros(len(texts), int), 1, tokens)
            held = count_classes(texts, np.zeros(len(texts), int), 1, tokens, steps=once)
        found.append((X.toarray().tolist(), list(known)))
        np.testing.assert_array_equal(counts.counts[0], X.sum(axis=0))
        np.testing.assert_array_equal(held.counts[0], (X > 0).sum(axis=0))
    assert found[0] == found[1]


def test_the_nursery_rhyme():
    lines = [
        "Mary had a little lamb, little lamb, little lamb,",
        "Mary had a little lamb, its fleece as white as snow",
    ]
    names = ["mary", "lamb", "little", "big", "fleece", "white", "black", "snow", "rain"]
    tokens, known = Tokens(stop_words=["a", "as", "the"]), Vocabulary.of(names)
    for body in ("numba", "numpy"):
        with forced(body):
            X, _ = count_rows(lines, tokens, known)
        assert X.sum(axis=0).tolist() == [2, 4, 4, 0, 1, 1, 0, 1, 0, 3]
