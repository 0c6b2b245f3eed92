"""Lessons that change few words of a large vocabulary: the sums and answers are those of one fit of all documents."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from deciban import GenerativeClassifier, Text
from deciban.errors import NotLearntError
from deciban.model.predictor import Predictor
from deciban.statistics import changed_columns
from deciban.statistics.changed_columns import ChangedColumns
from deciban.text import stats as text_stats
from deciban.text import vocabulary as vocabularies
from deciban.text.counting import TextRows
from deciban.text.density import WordWeights
from deciban.text.word_evidence import WordFactors

RNG = np.random.default_rng(5)
WORDS = np.array([f"word{at}" for at in range(60)])
DOCUMENTS = [" ".join(RNG.choice(WORDS, 12)) for _ in range(40)]
LABELS = RNG.choice(["a", "b", "c"], 40).tolist()
LESSONS = [f"{text} new{at % 4} unseen{at}" for at, text in enumerate(DOCUMENTS[:8])]
ASKED = [*LESSONS[:3], "word1 word1 new2", "absent", ""]
TEXTS = {
    "log": Text(transform="log", pseudo_count=0.5, base="pooled"),
    "counts": Text(transform="counts", pseudo_count=1.0),
    "binary": Text(transform="binary", pseudo_count=1.0),
    "bernoulli": Text(transform="binary", reading="bernoulli", pseudo_count=1.0),
    "polya": Text(transform="counts", reading="polya", pseudo_count=1.0),
    "idf": Text(transform="log+idf", pseudo_count=1.0),
    "evidence": Text(transform="counts", pseudo_count="evidence"),
    "growing": Text(transform="counts", pseudo_count=1.0, unk=1.0),
}


@pytest.fixture
def noted(monkeypatch):
    """Note changed columns of tables of any size."""
    for module in (changed_columns, text_stats):
        monkeypatch.setattr(module, "LEAST_CELLS", 1)
    monkeypatch.setattr(text_stats, "MOST_CHANGED", 40)  # fewer than the words of the model
    monkeypatch.setattr(vocabularies, "LEAST_WORDS", 4)


def fitted(text):
    return GenerativeClassifier(text, calibrate=None, ledger=True).fit(DOCUMENTS, LABELS)


def table_of(clf):
    return clf.model_.stats.family.table


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_lessons_one_by_one_give_the_sums_and_answers_of_one_lesson(text, noted, monkeypatch):
    clf = fitted(text)
    for at, lesson in enumerate(LESSONS):
        clf.learn([lesson], [LABELS[at]])
        if at == 4:
            clf.predict(DOCUMENTS)  # makes the table of all words
    steps = [Predictor(clf.model_) for _ in range(2)]
    steps[1].complete()
    monkeypatch.setattr(text_stats, "LEAST_CELLS", 10**9)
    whole = fitted(text).learn(LESSONS, LABELS[: len(LESSONS)])
    assert not isinstance(table_of(whole), ChangedColumns)
    expected = whole.predictor_.scores(TextRows.of(ASKED))
    for predictor in steps:
        np.testing.assert_array_equal(predictor.scores(TextRows.of(ASKED)), expected)
    assert clf.model_.stats.same(whole.model_.stats)
    np.testing.assert_array_equal(clf.predict_proba(DOCUMENTS), whole.predict_proba(DOCUMENTS))


def test_the_table_is_not_copied_before_many_texts_are_scored(noted):
    clf = fitted(TEXTS["log"])
    for at, lesson in enumerate(LESSONS):
        clf.learn([lesson], [LABELS[at]])
        clf.predict(ASKED)
        clf.explain(ASKED[:1])
        assert table_of(clf).made is None
    density = clf.predictor_.density
    assert not density.scorer.table.complete
    clf.predictor_.complete()
    assert density.scorer.table.complete
    assert table_of(clf).made is not None


def test_unlearning_restores_the_sums(noted):
    clf = fitted(TEXTS["log"])
    before = clf.model_
    clf.learn(LESSONS[:1], LABELS[:1]).learn(LESSONS[1:3], LABELS[1:3])
    assert isinstance(table_of(clf), ChangedColumns)
    clf.unlearn(LESSONS[:3], LABELS[:3])
    assert clf.model_.stats.same(before.stats)


def test_unlearning_known_words_does_not_copy_the_table(noted):
    clf = fitted(TEXTS["log"]).learn(LESSONS[:2], LABELS[:2])
    clf.unlearn(DOCUMENTS[2:4], LABELS[2:4])
    assert isinstance(table_of(clf), ChangedColumns)
    assert table_of(clf).made is None
    whole = GenerativeClassifier(TEXTS["log"], calibrate=None, ledger=True)
    whole.fit([*DOCUMENTS[:2], *DOCUMENTS[4:], *LESSONS[:2]], [*LABELS[:2], *LABELS[4:], *LABELS[:2]])
    assert clf.model_.stats.same(whole.model_.stats)


@pytest.mark.parametrize("made", [False, True], ids=["since the older table", "of the older table"])
def test_unlearning_removes_words_without_copying_the_table(noted, made):
    clf = fitted(TEXTS["log"]).learn(LESSONS[:3], LABELS[:3])
    if made:
        clf.predictor_.complete()
    clf.unlearn(LESSONS[1:2], LABELS[1:2]).learn(LESSONS[4:5], LABELS[4:5]).unlearn(LESSONS[:1], LABELS[:1])
    assert isinstance(table_of(clf), ChangedColumns)
    assert table_of(clf).made is None
    whole = GenerativeClassifier(TEXTS["log"], calibrate=None, ledger=True)
    whole.fit([*DOCUMENTS, LESSONS[2], LESSONS[4]], [*LABELS, LABELS[2], LABELS[4]])
    np.testing.assert_array_equal(clf.predict_proba(ASKED), whole.predict_proba(ASKED))
    assert clf.model_.stats.same(whole.model_.stats)


def test_words_that_were_not_learnt_are_refused_with_their_name(noted, monkeypatch):
    def refusal():
        clf = GenerativeClassifier(TEXTS["log"], calibrate=None).fit(DOCUMENTS, LABELS)
        clf.learn(LESSONS[:1], LABELS[:1])
        before = clf.model_.stats
        with pytest.raises(NotLearntError) as refused:
            clf.unlearn([DOCUMENTS[0] + " unseen0 unseen0 unseen0"], LABELS[:1])
        assert clf.model_.stats is before
        return str(refused.value)

    few = refusal()
    assert "unseen0" in few
    monkeypatch.setattr(text_stats, "LEAST_CELLS", 10**9)
    assert refusal() == few


def test_a_new_class_and_a_copy_have_all_counts(noted):
    clf = fitted(TEXTS["counts"]).learn(LESSONS[:1], ["a"])
    copied = pickle.loads(pickle.dumps(clf))
    for each in (clf, copied):
        each.learn(["word1 quite new"], ["d"])
    whole = fitted(TEXTS["counts"]).learn([LESSONS[0], "word1 quite new"], ["a", "d"])
    assert clf.model_.stats.same(whole.model_.stats)
    assert copied.model_.stats.same(whole.model_.stats)


def test_weights_that_are_rounded_when_summed_are_copied(noted):
    clf = fitted(TEXTS["counts"]).learn(LESSONS[:1], ["a"], sample_weight=[0.1])
    assert not isinstance(table_of(clf), ChangedColumns)


def test_rows_of_rescaled_weights_are_those_of_the_table(noted):
    clf = fitted(TEXTS["log"]).learn(LESSONS[:1], ["a"])
    factors = WordFactors(("unseen0", "word1"), np.array([0.5, 3.0]))
    density, other = clf.model_.density(), clf.model_.density()
    few = density.rescaled(TextRows.of(ASKED), factors)
    other.rescaled(TextRows.of(ASKED), factors)
    assert len(list(other.table_steps())) > 0
    assert not density.rescaled_scorer(factors).table.complete
    assert other.rescaled_scorer(factors).table.complete
    np.testing.assert_array_equal(few, other.rescaled(TextRows.of(ASKED), factors))
    assert not np.allclose(few, other.log_density(TextRows.of(ASKED)))


def test_scaled_weights_are_multiplied_word_by_word():
    table, each = np.arange(6.0).reshape(3, 2), np.array([1.0, 0.0, 2.0])
    lazy = WordWeights(table.shape, lambda at: table[at], lambda: table).scaled(each)
    np.testing.assert_array_equal(lazy.rows(np.array([2, 0])), [[8.0, 10.0], [0.0, 1.0]])
    assert not lazy.complete
    np.testing.assert_array_equal(lazy.table(), table * each[:, None])
    assert lazy.complete
    assert WordWeights.fixed(table).scaled(each).complete


def test_many_changed_columns_make_a_copy_the_older_table_of_the_next(noted, monkeypatch):
    monkeypatch.setattr(changed_columns, "MOST_CHANGED", 20)
    clf, checked = fitted(TEXTS["log"]), []
    of = changed_columns.OlderTable.of
    monkeypatch.setattr(changed_columns.OlderTable, "of", lambda cells: checked.append(cells) or of(cells))
    for at, lesson in enumerate(LESSONS):
        clf.learn([lesson], [LABELS[at]])
        assert isinstance(table_of(clf), ChangedColumns)
        assert len(table_of(clf).at) <= 20
    assert len(checked) == 1  # later copies have known sums
    table = table_of(clf)
    assert table.made is None
    for _ in clf.predictor_.lesson_steps():
        assert table.made is None
    assert table.made is not None
    whole = fitted(TEXTS["log"]).learn(LESSONS, LABELS[: len(LESSONS)])
    assert clf.model_.stats.same(whole.model_.stats)
    np.testing.assert_array_equal(table.column_sums(), table.cells().sum(axis=0))
    np.testing.assert_array_equal(table.row_sums(), table.cells().sum(axis=1))
