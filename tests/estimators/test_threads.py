"""One classifier in several threads: lessons are applied one after the other, and readers see whole models only."""

import threading

import numpy as np
import pytest

from deciban import GenerativeClassifier, Multinomial, Text
from estimators.kinds import KINDS, counts, texts

THREADS, LESSONS, ROWS = 8, 45, 5  # 1,800 rows in all
pytestmark = pytest.mark.usefixtures("often")


def run(*works):
    """Run functions at the same time, from one starting signal; the first exception of any is raised here."""
    failures, barrier = [], threading.Barrier(len(works))

    def guarded(work):
        try:
            barrier.wait()
            work()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


@pytest.mark.parametrize("kind", KINDS)
def test_every_row_is_counted(kind):
    family, make = KINDS[kind]
    first = make(40)
    clf = GenerativeClassifier(family(), ledger=True).fit(first, ["a", "b"] * 20)
    lessons = [[make(ROWS) for _ in range(LESSONS)] for _ in range(THREADS)]
    labels = [("a", "b", "c")[i % 3] for i in range(ROWS)]  # a class that is new to the model, too

    def teach(batches):
        return lambda: [clf.learn(batch, labels) for batch in batches]

    run(*(teach(batches) for batches in lessons))
    assert clf.stats_.rows.sum() == 40 + THREADS * LESSONS * ROWS
    assert len(clf.ledger_) == 40 + THREADS * LESSONS * ROWS
    alone = GenerativeClassifier(family(), ledger=True).fit(first, ["a", "b"] * 20)
    for batches in lessons:
        for batch in batches:
            alone.learn(batch, labels)
    np.testing.assert_allclose(clf.predict_proba(first), alone.predict_proba(first), rtol=1e-9)


def test_rows_are_learnt_unlearnt_and_corrected_at_the_same_time():
    X = counts(400)
    y = np.array(["a", "b"] * 200)
    clf = GenerativeClassifier(Multinomial(), ledger=True).fit(X[:200], y[:200])
    turns = [slice(i, i + ROWS) for i in range(0, 100, ROWS)]

    def learn():
        for part in turns:
            clf.learn(X[200:][part], y[200:][part])

    def unlearn():
        for part in turns:
            clf.unlearn(X[part], y[part])

    def correct():
        for part in turns:
            clf.correct(X[100:200][part], y[100:200][part], np.where(y[100:200][part] == "a", "b", "a"))

    run(learn, unlearn, correct)
    kept = np.where(y[100:200] == "a", "b", "a")
    expected = GenerativeClassifier(Multinomial()).fit(X[100:300], [*kept, *y[200:300]])
    assert clf.stats_.same(expected.stats_)
    assert len(clf.ledger_) == 200


@pytest.mark.parametrize("kind", KINDS)
def test_readers_see_the_model_before_or_after_a_lesson(kind):
    """The same lesson again and again: the answer after each number of lessons is known, and none other is given."""
    family, make = KINDS[kind]
    first, lesson, asked = make(40), make(ROWS), make(3)
    known = GenerativeClassifier(family()).fit(first, ["a", "b"] * 20)
    after = (known.learn(lesson, ["a"] * ROWS).predict_proba(asked) for _ in range(2 * LESSONS))
    states = np.array([known.predict_proba(asked), *after])
    steps = np.abs(np.diff(states, axis=0)).max(axis=(1, 2))
    assert steps.min() > 1e-7  # lessons can be told apart by their answers
    clf = GenerativeClassifier(family()).fit(first, ["a", "b"] * 20)
    done = threading.Event()
    answers = [[] for _ in range(4)]

    finished = []

    def teach():
        try:
            for _ in range(LESSONS):
                clf.learn(lesson, ["a"] * ROWS)
        finally:
            finished.append(True)
            if len(finished) == 2:
                done.set()

    def read(found):
        def work():
            while not done.is_set():
                found.append(clf.predict_proba(asked))
            found.append(clf.predict_proba(asked))

        return work

    run(teach, teach, *(read(found) for found in answers))
    for found in answers:
        distance = np.abs(np.array(found)[:, None] - states[None]).max(axis=(2, 3))
        assert distance.min(axis=1).max() < 1e-10  # each answer is that of one state
        assert (np.diff(distance.argmin(axis=1)) >= 0).all()  # and states are seen in their order
        assert distance[-1].argmin() == 2 * LESSONS


def test_readers_are_not_disturbed_by_classes_that_arrive():
    first, asked = texts(40), texts(3)
    clf = GenerativeClassifier(Text("multinomial", "counts", 1.0, vocabulary="growing")).fit(first, ["a", "b"] * 20)
    done = threading.Event()

    def teach():
        try:
            for i in range(60):
                clf.learn([f"{text} new{i}" for text in texts(2)], [f"class{i}"] * 2)
        finally:
            done.set()

    def read():
        while not done.is_set():
            answer = clf.predict_proba(asked)
            np.testing.assert_allclose(answer.sum(axis=1), 1.0)
            assert set(clf.predict(asked)) <= {"a", "b", *(f"class{i}" for i in range(60))}
            assert len(clf.decide(asked)) == len(clf.llr(asked, "a")) == 3

    run(teach, read, read, read)
    assert clf.stats_.rows.sum() == 40 + 120
    assert clf.predict_proba(asked).shape == (3, 62)
