"""Lessons one at a time: the sums are those of one lesson, and a row that is refused changes nothing."""

import numpy as np
import pandas as pd
import pytest

from deciban import Gaussian, GenerativeClassifier, Poisson, Text
from deciban.errors import DecibanError, NotLearntError
from deciban.model import single_rows
from deciban.model.single_rows import RowAccumulator


def table(n=240, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    frame = pd.DataFrame({f"x{j}": rng.normal(y * (j % 3), 1 + j % 2, n) for j in range(4)})
    for j in range(3):
        frame[f"c{j}"] = rng.choice(["red", "green", "blue"][: 2 + j % 2], n)
    return frame, np.array(["a", "b", "c"])[y]


def as_rows(frame):
    return frame.to_dict("records")


@pytest.fixture
def fitted():
    frame, y = table()
    return GenerativeClassifier().fit(frame[:120], y[:120]), as_rows(frame[120:]), y[120:].tolist(), frame[120:]


def same_sums(one, two):
    return one.stats.same(two.stats)


def test_lessons_of_a_table_are_the_sums_of_one_lesson(fitted, monkeypatch):
    clf, rows, labels, frame = fitted
    monkeypatch.setattr(single_rows, "MOST_WAITING", 1000)
    lessons = clf.accumulator()
    for row, label in zip(rows, labels):
        lessons.learn_one(row, label)
    assert lessons.waiting == len(rows)
    assert same_sums(lessons.model(), clf.learn(frame, labels).model_)
    assert lessons.waiting == 0
    expected = clf.predict_proba(frame[:3])
    for at in range(3):
        np.testing.assert_allclose(list(lessons.predict_proba_one(rows[at]).values()), expected[at], rtol=1e-12)


def test_lessons_of_texts_with_new_words_are_the_sums_of_one_lesson(monkeypatch):
    monkeypatch.setattr(single_rows, "MOST_WAITING", 7)
    texts = [f"word{i % 11} and word{i % 7} once more {i}" for i in range(60)]
    labels = ["x" if i % 3 else "y" for i in range(60)]
    clf = GenerativeClassifier(Text(transform="counts", pseudo_count=1.0)).fit(texts[:20], labels[:20])
    lessons = clf.accumulator()
    for text, label in zip(texts[20:], labels[20:]):
        lessons.learn_one(text, label)
    assert same_sums(lessons.model(), GenerativeClassifier(clf.families).fit(texts, labels).model_)
    for text, label in zip(texts[20:], labels[20:]):
        lessons.unlearn_one(text, label)
    assert same_sums(lessons.model(), clf.model_)


def test_a_refused_row_changes_nothing(fitted):
    clf, rows, labels, _ = fitted
    lessons = clf.accumulator().learn_one(rows[0], labels[0])
    before = clf.accumulator().learn_one(rows[0], labels[0]).model()
    bad = [{**rows[1], "x0": float("inf")}, {**rows[1], "x0": "tall"}, {**rows[1], "y9": 1.0}, "a text", 3.0]
    for row in bad:
        with pytest.raises(DecibanError):
            lessons.learn_one(row, "a")
    with pytest.raises(DecibanError):
        lessons.learn_one(rows[1], None)
    assert same_sums(lessons.model(), before)
    counts = GenerativeClassifier(Poisson()).fit([[1.0, 2.0], [3.0, 4.0]], [0, 1]).accumulator()
    with pytest.raises(DecibanError):
        counts.learn_one([-1.0, 2.0], 0)
    assert counts.learn_one([5.0, 2.0], 0).model().weight == 3


def test_new_classes_and_gaps_are_learnt(fitted):
    clf, rows, labels, _ = fitted
    lessons = clf.accumulator().learn_one(rows[0], labels[0])
    lessons.learn_one({name: value for name, value in rows[3].items() if name != "c0"}, "new").learn_one(rows[1], "new")
    model = lessons.model()
    assert model.classes == ("a", "b", "c", "new")
    assert model.weight == clf.model_.weight + 3
    assert set(lessons.predict_proba_one(rows[2])) == {"a", "b", "c", "new"}


def test_answers_are_renewed_after_the_publication_interval(fitted, monkeypatch):
    clf, rows, labels, _ = fitted
    lessons = clf.accumulator()
    monkeypatch.setattr(single_rows, "PUBLISH_SECONDS", 1e9)
    first = lessons.predict_proba_one(rows[0])
    for _ in range(50):
        lessons.learn_one(rows[0], labels[0])
    assert lessons.predict_proba_one(rows[0]) == first  # not yet published
    monkeypatch.setattr(single_rows, "PUBLISH_SECONDS", 0.0)
    assert lessons.predict_proba_one(rows[0])[labels[0]] > first[labels[0]]


def test_a_classifier_learns_and_unlearns_single_rows():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), np.arange(40) % 2
    clf = GenerativeClassifier(Gaussian("tied")).fit(X, y)
    before = clf.model_
    clf.learn_one(X[0].tolist(), 1)
    assert clf.model_.weight == 41
    assert clf.predict_proba_one(X[1])[0] == clf.predict_proba(X[1:2])[0, 0]
    np.testing.assert_allclose(clf.unlearn_one(X[0], 1).density.mean, before.density().mean, rtol=1e-12)
    texts = GenerativeClassifier(Text(pseudo_count=1.0, transform="counts")).fit(["a word", "an end"], [0, 1])
    with pytest.raises(NotLearntError):
        texts.unlearn_one("new", 0)
    assert isinstance(clf.accumulator(), RowAccumulator)


@pytest.mark.parametrize("structure", ["diagonal", "tied"])
@pytest.mark.parametrize("kind", ["dict", "list", "array"])
def test_rows_of_a_plain_gaussian_wait_and_are_summed_together(structure, kind):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), np.arange(60) % 2
    given = pd.DataFrame(X, columns=["a", "b", "c"]) if kind == "dict" else X
    rows = {"dict": lambda: given.to_dict("records"), "list": X.tolist, "array": lambda: list(X)}[kind]()
    lessons = GenerativeClassifier(Gaussian(structure)).fit(given[:30], y[:30]).accumulator()
    for row, label in zip(rows[30:], y[30:]):
        lessons.learn_one(row, label)
    assert lessons.waiting == 30
    whole = GenerativeClassifier(Gaussian(structure)).fit(given[:30], y[:30]).learn(given[30:], y[30:])
    found = [lessons.predict_proba_one(row)[1] for row in rows]
    np.testing.assert_allclose(found, whole.predict_proba(given)[:, 1], atol=1e-12)
    with pytest.raises(DecibanError):
        lessons.learn_one(rows[0][:2] if kind != "dict" else {"a": "red"}, 1)
    assert lessons.model().weight == 60
