"""Caches of text have one owner each: counts belong to a batch, readers to a vocabulary, logarithms to a density."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

from deciban import GenerativeClassifier, Text
from deciban.statistics import Members
from deciban.text import counting, density, documents
from deciban.text.counting import TextRows
from deciban.text.tokens import Tokens
from deciban.text.vocabulary import Vocabulary

TEXTS = ["to be or not", "be quick", None, "not to be", "or else", "quick quick"]
LABELS = ["a", "b", "a", "a", "b", "b"]
PLAIN = Text(transform="counts", pseudo_count=1.0)


def counted_texts(monkeypatch):
    """The documents that are read to be counted, in order."""
    read = []

    def noted(original):
        def run(documents, *given):
            read.extend(documents[i] for i in range(len(documents)))
            return original(documents, *given)

        return run

    for name in ("count_documents", "count_lengths"):
        monkeypatch.setattr(counting, name, noted(getattr(counting, name)))
    return read


def test_documents_that_were_counted_are_not_read_again_by_any_selection(monkeypatch):
    read, rows, tokens = counted_texts(monkeypatch), TextRows.of(TEXTS), Tokens()
    rows[[0, 1, 3]].count(tokens)
    assert read == [TEXTS[0], TEXTS[1], TEXTS[3]]
    read.clear()
    together = rows[[5, 1, 0]].count_by(Vocabulary.of(["be", "quick"], "learnt"), tokens)
    assert read == [TEXTS[5]]
    assert together.matrix.toarray().tolist() == [[0, 2], [1, 1], [1, 0]]
    assert together.lengths.tolist() == [2, 2, 4]
    read.clear()
    assert rows[[1, 3]].count(tokens).lengths.tolist() == [2, 3]
    assert read == []


@pytest.mark.parametrize("counted", [[0, 1, 3, 4], [0, 1, 2, 3, 4, 5]])
@pytest.mark.parametrize("transform", ["counts", "log"])
def test_sums_of_documents_that_were_counted_are_those_of_fresh_ones(monkeypatch, counted, transform):
    text, members = replace(PLAIN, transform=transform), Members.hard(np.array([0, 1, 0, 0, 1, 1]), 2)
    fresh = text.collect(TextRows.of(TEXTS), members)
    rows, read = TextRows.of(TEXTS), counted_texts(monkeypatch)
    text.read(rows[counted])
    sums = text.collect(rows, members)
    assert len(read) == len(counted)  # none is counted again
    assert sums.labels["word"] == fresh.labels["word"]
    for name in ("counts", "rows", "tokens"):
        np.testing.assert_array_equal(getattr(sums, name), getattr(fresh, name))


def test_a_default_fit_counts_each_document_once_for_sums_and_calibration(monkeypatch):
    texts = [f"{one} {two} word{i % 7}" for i, (one, two) in enumerate(zip(TEXTS[:2] * 60, TEXTS[3:5] * 60))]
    read = counted_texts(monkeypatch)
    GenerativeClassifier(Text(unit="word")).fit(texts, ["a", "b"] * 60)
    assert sorted(read) == sorted(texts)


def test_asking_for_lengths_counts_nothing(monkeypatch):
    read, rows, tokens = counted_texts(monkeypatch), TextRows.of(TEXTS), Tokens()
    assert rows.lengths(tokens).tolist() == [4, 2, 0, 3, 2, 2]
    assert not rows.counts.any(tokens)
    assert read == [text for text in TEXTS if text is not None]
    read.clear()
    assert rows[[3, 2]].lengths(tokens).tolist() == [3, 0]
    assert read == []


def test_lengths_are_known_once_documents_were_summed_or_scored(monkeypatch):
    texts = [text for text in TEXTS if text is not None]
    members = Members.hard(np.arange(len(texts)) % 2, 2)
    summed, scored = TextRows.of(texts), TextRows.of(texts)
    stats = PLAIN.collect(summed, members)
    PLAIN.estimate(stats, "mean").log_density(scored)
    read = counted_texts(monkeypatch)
    for rows in (summed, scored):
        assert PLAIN.lengths(rows).tolist() == [4, 2, 3, 2, 2]
    assert read == []


def test_batches_do_not_share_counts():
    tokens = Tokens()
    one, two = TextRows.of(["to be"]), TextRows.of(["or not"])
    one.count(tokens)
    assert one.counted(tokens)
    assert not two.counted(tokens)
    assert two.count(tokens).vocabulary == Vocabulary.of(["not", "or"], "learnt")


def test_the_first_rows_of_a_stream_are_not_kept_in_memory():
    rows, members = TextRows.of(TEXTS), Members.hard(np.zeros(6, int), 1)
    rows.count(PLAIN.tokens)
    sums = PLAIN.accumulator(rows, members, ["text"])
    assert not rows.counts.any(PLAIN.tokens)
    assert sums.total().same(PLAIN.collect(TextRows.of(TEXTS), members))


def test_values_of_text_cannot_be_changed():
    clf = GenerativeClassifier(PLAIN).fit(TEXTS, LABELS)
    values = (PLAIN, TextRows.of(TEXTS), Vocabulary.of(["be"]), clf.model_.density())
    for value, name in zip(values, ("tokens", "at", "names", "inner")):
        with pytest.raises(FrozenInstanceError):
            setattr(value, name, None)


@pytest.mark.parametrize("vocabulary", ["learnt", ["be", "quick"]])
def test_a_model_that_learns_keeps_the_readers_of_its_words(vocabulary, monkeypatch):
    clf = GenerativeClassifier(Text(transform="counts", pseudo_count=1.0, vocabulary=vocabulary), calibrate=None)
    clf.fit(TEXTS, LABELS).predict(["be quick"])
    made = []
    original = documents.make_reader

    def make_reader(tokens, words, fast):
        if words is not None:  # a reader of new words belongs to one batch
            made.append(words)
        return original(tokens, words, fast)

    monkeypatch.setattr(documents, "make_reader", make_reader)
    for _ in range(3):
        clf.learn(["be quick", "not else"], ["a", "b"]).predict(["be quick"])
    assert made == []
    pickle.loads(pickle.dumps(clf)).predict(["be quick"])
    assert len(made) == 1  # readers are not copied


def test_a_fit_does_not_take_logarithms(monkeypatch):
    made = []
    original = density.LogTable.made
    monkeypatch.setattr(density.LogTable, "made", lambda table: made.append(table) or original(table))
    clf = GenerativeClassifier(PLAIN).fit(TEXTS, LABELS)
    own = clf.predictor_.density.table
    assert not any(table is own for table in made)  # only those of folds, by which the calibrator is selected
    clf.predict(["be"])  # takes those of its words
    assert not any(table is own for table in made)
    clf.predictor_.complete()
    assert any(table is own for table in made)


def test_copies_of_a_density_score_alike():
    first = PLAIN.estimate(PLAIN.collect(TextRows.of(TEXTS), Members.hard(np.arange(6) % 2, 2)), "mean")
    expected = first.log_density(TextRows.of(["be quick", "unknown"]))
    for other in (copy.copy(first), copy.deepcopy(first), pickle.loads(pickle.dumps(first))):
        np.testing.assert_array_equal(other.log_density(TextRows.of(["be quick", "unknown"])), expected)
