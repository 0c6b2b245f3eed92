"""Sequences of words with known states: rare and unknown words are tagged by their endings and shapes."""

from __future__ import annotations

import numpy as np
import pytest

from deciban import Categorical, HiddenMarkovModel, load
from deciban.errors import InputError

ENDINGS = {"V": "ing", "N": "ness", "A": "ly"}


def sentences(n, seed):
    """Sentences of a determiner and words that hardly repeat, tagged by their endings."""
    rng = np.random.default_rng(seed)
    letters = np.array(list("bcdfgklmnprst"))
    words, tags = [], []
    for _ in range(n):
        own = rng.choice(list(ENDINGS), 3).tolist()
        words.append(["the", *("".join(rng.choice(letters, 5)) + ENDINGS[tag] for tag in own)])
        tags.append(["D", *own])
    return words, tags


@pytest.fixture(scope="module")
def tagger():
    return HiddenMarkovModel(Categorical()).fit(*sentences(80, 0))


def test_unknown_words_are_tagged_by_their_endings(tagger):
    words, tags = sentences(30, 1)
    assert (tagger.predict(words) == np.concatenate(tags)).all()


def test_a_sentence_that_was_unlearnt_leaves_no_trace(tagger, tmp_path):
    extra, before = ([["Zorgblat", "running"]], [["N", "V"]]), tagger.stats_
    assert tagger.learn(*extra).unlearn(*extra).stats_.same(before)
    tagger.save(tmp_path / "tagger.deciban")
    words, _ = sentences(10, 2)
    np.testing.assert_array_equal(load(tmp_path / "tagger.deciban").predict(words), tagger.predict(words))


def test_gaps_are_bridged_and_numbers_refused(tagger):
    assert tagger.predict([["the", None, "brdkling"]]).shape == (3,)
    with pytest.raises(InputError, match="not a word"):
        tagger.predict([["the", 3]])


def test_a_few_categories_and_other_families_are_read_as_they_are():
    words, tags = sentences(80, 0)
    assert HiddenMarkovModel(Categorical(0.5)).fit(words, tags).words_ is None
    assert HiddenMarkovModel(Categorical()).fit([["a", "b"]] * 9, [["x", "y"]] * 9).words_ is None
