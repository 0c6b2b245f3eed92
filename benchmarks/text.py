"""Text: raw documents to models, scores and sparse rows, beside scikit-learn's CountVectorizer and MultinomialNB.

The corpus is 20 Newsgroups and IMDB, read from the directory that DECIBAN_DATA names. Single documents: `text_one.py`.
"""

from __future__ import annotations

import gzip
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.feature_extraction.text import CountVectorizer as Theirs
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline

from deciban import GenerativeClassifier, Text
from deciban.sklearn import CountVectorizer
from deciban.text.counting import count_classes
from harness import Row, at_least, benchmark, first_call, largest_difference, versus

SETS = ("20newsgroups/20news_bydate.jsonl.gz", "imdb/imdb.jsonl.gz")
WORDS = r"(?u)\b\w\w+\b"  # as scikit-learn counts: without the scripts and signs that ours reads by default
PEER = "CountVectorizer + MultinomialNB"
PEER_REPEATS = 2  # ten seconds each
NOTHING = "DECIBAN_DATA names no directory of data sets: nothing was run"


def corpus(share: float) -> tuple[list[str], np.ndarray] | None:
    """Texts and class codes; every so many where only a share is wanted."""
    folder = os.environ.get("DECIBAN_DATA")
    if folder is None:
        return None
    texts, labels = [], []
    for name in SETS:
        with gzip.open(Path(folder, name), "rt", encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                texts.append(row["text"])
                labels.append(str(row["label"]))
    step = max(round(1 / share), 1)
    return texts[::step], np.unique(labels[::step], return_inverse=True)[1]


def plain(**options: Any) -> GenerativeClassifier:
    """What the peer fits: counts of words, one added to each."""
    return GenerativeClassifier(Text(transform="counts", pseudo_count=1.0, pattern=WORDS, **options), calibrate=None)


def theirs(**options: Any) -> Any:
    return make_pipeline(Theirs(**options), MultinomialNB())


@benchmark("text")
def text(share: float) -> Iterator[Row | str]:
    """Raw text to fitted models, class scores and sparse rows."""
    found = corpus(share)
    if found is None:
        yield NOTHING
        return
    texts, y = found
    column = pa.chunked_array([pa.array(texts, pa.large_string())])
    size = f"{sum(len(text.encode()) for text in texts) / 1e6:.0f} MB, {len(texts):,} documents"
    yield f"compiling took {first_call(lambda: plain().fit(texts[:2000], y[:2000])):.1f} s CPU, not counted above"
    yield from fit_rows(texts, column, y, size)
    yield from default_rows(texts, column, y, size)
    yield from score_rows(texts, column, y, size)
    yield from vectorizer_rows(texts, size)
    yield growth(column, y, size)
    yield threads(column, y)


def fit_rows(texts: list[str], column: Any, y: np.ndarray, size: str) -> Iterator[Row]:
    for kind, given, reach in (("list", texts, at_least(20)), ("Arrow", column, at_least(30))):
        yield versus(
            f"fit from {kind}, {size}",
            PEER,
            lambda: theirs().fit(texts, y)[1].feature_count_,
            lambda given=given: plain().fit(given, y).stats_.family.counts,
            reach,
            largest_difference,
            peer_repeats=PEER_REPEATS,
        )


def default_rows(texts: list[str], column: Any, y: np.ndarray, size: str) -> Iterator[Row]:
    """Calibrated, transform and pseudo-count chosen by leave-one-out; the peer has nothing of the kind."""
    GenerativeClassifier().fit(texts[:2000], y[:2000])  # compiles
    yield versus(
        f"fit as it is by default, {size}",
        PEER,
        lambda: theirs().fit(texts, y),
        lambda: GenerativeClassifier().fit(column, y),
        at_least(8),
        peer_repeats=1,
    )


def score_rows(texts: list[str], column: Any, y: np.ndarray, size: str) -> Iterator[Row]:
    pipeline, clf = theirs().fit(texts, y), plain().fit(column, y)
    clf.predict(column[:2000])  # estimates
    for kind, given in (("list", texts), ("Arrow", column)):
        yield versus(
            f"class scores from {kind}, {size}",
            PEER,
            lambda: pipeline.predict_log_proba(texts),
            lambda given=given: clf.predict_log_proba(given),
            at_least(20),
            largest_difference,
            peer_repeats=PEER_REPEATS,
        )


def rows_and_terms(vectorizer: Any, texts: list[str]) -> tuple[Any, dict[str, int]]:
    """Both, because ours makes its dictionary of terms only when somebody wants it."""
    X = vectorizer.fit_transform(texts)
    return X, vectorizer.vocabulary_


def vectorizer_rows(texts: list[str], size: str) -> Iterator[Row]:
    for name, options, reach in (
        ("words", {}, at_least(15)),
        ("words and pairs", {"ngram_range": (1, 2)}, at_least(10)),
    ):
        CountVectorizer(**options).fit(texts[:2000])  # compiles
        yield versus(
            f"fit_transform, {name}, {size}",
            "CountVectorizer",
            lambda options=options: rows_and_terms(Theirs(**options), texts),
            lambda options=options: rows_and_terms(CountVectorizer(**options), texts),
            reach,
            lambda theirs, ours: float((theirs[0] != ours[0]).nnz + (theirs[1] != ours[1])),
            peer_repeats=1 if options else PEER_REPEATS,
        )
    yield versus(
        f"fit, words and pairs, {size}",
        PEER,
        lambda: theirs(ngram_range=(1, 2)).fit(texts, [0] * len(texts)),
        lambda: plain(ngrams=(1, 2)).fit(texts, [0] * len(texts)),
        at_least(10),
        peer_repeats=1,
    )


def growth(column: Any, y: np.ndarray, size: str) -> Row:
    """A quarter of the documents beside all: 4 is linear."""
    clf, quarter = plain(), slice(0, len(y), 4)
    some = pa.chunked_array([pa.array(column.to_pylist()[quarter], pa.large_string())])
    return versus(
        f"fit from Arrow, {size}", "ours with a quarter", lambda: clf.fit(some, y[quarter]), lambda: clf.fit(column, y)
    )


def threads(column: Any, y: np.ndarray) -> str:
    """How much sooner two threads are done; the counts are the same."""
    K = int(y.max()) + 1

    def wall(number: int) -> float:
        start = time.perf_counter()
        count_classes(column, y, K, threads=number)
        return time.perf_counter() - start

    gains = [wall(1) / wall(2) for _ in range(5)]
    same = np.array_equal(count_classes(column, y, K, threads=1).counts, count_classes(column, y, K, threads=2).counts)
    return f"two threads are done {median(gains):.2f} times as fast as one, counts {'equal' if same else 'DIFFERENT'}"
