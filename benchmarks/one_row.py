"""One row at a time: answers beside scikit-learn, lessons through the accumulator, and intervals."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from deciban import Gaussian, GenerativeClassifier, Text
from harness import Reach, Row, at_least, at_most, benchmark, timed

ROWS, NUMBERS, CLASSES, REPEATS, CALLS = 5000, 20, 5, 7, 60
WORDS, MANY_CLASSES, LESSONS = 200_000, 20, 4096


@benchmark("one-row")
def cpu_of_one_row(share: float) -> Iterator[Row | str]:
    """One row answered and learnt, in microseconds; intervals of one row."""
    yield from one_row(share)


def one_row(share: float, by_clock: bool = False) -> Iterator[Row | str]:
    """Yield the rows of the table; ratios and bounds are of CPU seconds, or of elapsed ones."""
    for row in _rows(share):
        if not by_clock:
            yield row
            continue
        ratios = [a / b for a, b in zip(row.their_elapsed, row.our_elapsed)]
        yield replace(row, ratios=ratios, by_clock=True)


def _rows(share: float) -> Iterator[Row]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, CLASSES, ROWS)
    X = rng.normal(size=(ROWS, NUMBERS)) + 0.3 * y[:, None]
    yield from _numbers(X, y)
    half = NUMBERS // 2
    frame = pd.DataFrame({f"n{j}": X[:, j] for j in range(half)})
    frame = frame.assign(**{f"c{j}": rng.choice(list("abcdef"), ROWS) for j in range(half)})
    yield from _mixed(frame, y)
    yield from _texts(rng, max(2000, int(WORDS * share)))


def _numbers(X: Any, y: Any) -> Iterator[Row]:
    one = X[:1].copy()
    peers = {"diagonal": GaussianNB(), "full": QuadraticDiscriminantAnalysis(), "tied": LinearDiscriminantAnalysis()}
    for structure, peer in peers.items():
        peer, clf = peer.fit(X, y), GenerativeClassifier(Gaussian(structure)).fit(X, y)
        job, name = f"predict_proba of one row, {NUMBERS} numbers, {structure}", type(peer).__name__
        yield _beside(job, name, lambda p=peer: p.predict_proba(one), lambda c=clf: c.predict_proba(one), at_least(2))
        score = clf.scorer()
        yield _beside(
            f"{job}, scorer", name, lambda p=peer: p.predict_proba(one), lambda s=score: s(one[0]), at_least(2)
        )
        yield _alone(
            f"llr_interval of one row, {structure}", lambda c=clf: c.llr_interval(one, 0), at_most(0.02, "s"), 3
        )


def _mixed(frame: Any, y: Any) -> Iterator[Row]:
    one, row = frame[:1].reset_index(drop=True), frame.iloc[0].to_dict()
    numbers, names = ([name for name in frame if name[0] == kind] for kind in "nc")
    columns = make_column_transformer((StandardScaler(), numbers), (OneHotEncoder(sparse_output=False), names))
    peer, clf = make_pipeline(columns, GaussianNB()).fit(frame, y), GenerativeClassifier().fit(frame, y)
    job, name, score = "predict_proba of one mixed row, 20 columns", "ColumnTransformer + GaussianNB", clf.scorer()
    yield _beside(f"{job}, frame", name, lambda: peer.predict_proba(one), lambda: clf.predict_proba(one), at_least(2))
    yield _beside(f"{job}, dict", name, lambda: peer.predict_proba(one), lambda: clf.predict_proba([row]), at_least(2))
    yield _beside(f"{job}, scorer", name, lambda: peer.predict_proba(one), lambda: score(row), at_least(2))
    rows, labels = frame[:LESSONS].to_dict("records"), y[:LESSONS].tolist()
    yield from _lessons("mixed row of 20 columns", clf, rows, labels, at_most(60e-6, "s"))


def _texts(rng: Any, V: int) -> Iterator[Row]:
    words = np.array([f"w{i}" for i in range(V)])
    texts = [" ".join(words[at : at + 100]) for at in range(0, V, 100)] + [
        " ".join(rng.choice(words, 100)) for _ in range(2000)
    ]
    y = rng.integers(0, MANY_CLASSES, len(texts))
    peer = make_pipeline(CountVectorizer(), MultinomialNB()).fit(texts, y)
    clf = GenerativeClassifier(Text(transform="counts", pseudo_count=1.0), calibrate=None).fit(texts, y)
    text, size = texts[-1][:200], f"V = {V:,}, K = {MANY_CLASSES}"
    theirs, ours = lambda: peer.predict_proba([text]), lambda: clf.predict_proba([text])
    yield _beside(f"predict_proba of one text, {size}", "CountVectorizer + MultinomialNB", theirs, ours, at_least(2))
    some = [" ".join(rng.choice(words, 35)) for _ in range(LESSONS)]
    labels = rng.integers(0, MANY_CLASSES, LESSONS).tolist()
    yield from _lessons(f"text of 35 words, {size}", clf, some, labels, at_most(100e-6, "s"))
    new = iter(range(10**6))

    def lesson() -> Any:
        clf.learn([f"{text} neu{next(new)}"], [0])
        return clf.predict_proba([text])

    yield _alone(f"learn a text with a new word and answer, {size}", lesson, at_most(0.1, "s"), 3)


def _lessons(what: str, clf: Any, rows: list[Any], labels: list[Any], reach: Reach) -> Iterator[Row]:
    """Lessons through the accumulator, the sums included; and what a model with its density and a first answer take."""
    learnt: list[Times] = []
    published: list[Times] = []
    for _ in range(5):
        lessons = clf.accumulator()

        def learn(lessons: Any = lessons) -> None:
            for row, label in zip(rows, labels):
                lessons.learn_one(row, label)
            lessons.model()

        cpu, wall = _both(learn)
        learnt.append((cpu / len(rows), wall / len(rows)))
        published.append(_both(lambda lessons=lessons: lessons.predict_proba_one(rows[0])))
    yield _row(f"learn_one, {what}, {len(rows):,} lessons and their sums, each", "", [], learnt, reach)
    yield _row(f"publication after these lessons, and an answer, {what}", "", [], published)


def _beside(job: str, peer: str, theirs: Callable[[], Any], ours: Callable[[], Any], reach: Reach) -> Row:
    """Turn about; seconds are of one call."""

    _both(theirs, CALLS), _both(ours, CALLS)
    times = [(_both(theirs, CALLS), _both(ours, CALLS)) for _ in range(REPEATS)]
    return _row(job, peer, [a for a, _ in times], [b for _, b in times], reach)


def _alone(job: str, call: Callable[[], Any], reach: Reach, calls: int) -> Row:
    call()
    return _row(job, "", [], [_both(call, calls) for _ in range(5)], reach)


Times = tuple[float, float]  # CPU and elapsed seconds of a call


def _both(call: Callable[[], Any], calls: int = 1) -> Times:
    start = time.perf_counter()
    cpu, _ = timed(lambda: [call() for _ in range(calls)])
    return cpu / calls, (time.perf_counter() - start) / calls


def _row(job: str, peer: str, theirs: list[Times], ours: list[Times], reach: Reach | None = None) -> Row:
    (their_cpu, their_wall), (our_cpu, our_wall) = (
        ([cpu for cpu, _ in side], [wall for _, wall in side]) for side in (theirs, ours)
    )
    ratios = [a / b for a, b in zip(their_cpu, our_cpu)]
    return Row(job, peer, their_cpu, our_cpu, ratios, reach, their_elapsed=their_wall, our_elapsed=our_wall)
