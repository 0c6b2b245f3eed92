"""Text: raw documents to counts, scores and sparse rows, beside scikit-learn's CountVectorizer and MultinomialNB.

The corpus is 20 Newsgroups and IMDB, read from the directory that DECIBAN_DATA names.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tempfile
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

from deciban.features.class_counts import count_classes
from deciban.features.scoring import Scorer
from deciban.sklearn import CountVectorizer
from harness import Row, at_least, at_most, benchmark, first_call, largest_difference, timed, versus

SETS = ("20newsgroups/20news_bydate.jsonl.gz", "imdb/imdb.jsonl.gz")
PEER = "CountVectorizer + MultinomialNB"
PEER_REPEATS = 2  # ten seconds each
SHORT = 200  # characters of a short document
FEW_WORDS, FEW_CLASSES = 5000, 2
FIRST_CALL = """
import time
import numpy as np
start = time.perf_counter()
from deciban.features.class_counts import count_classes
texts = ["the same few words once more " + str(i) for i in range(20_000)]
count_classes(texts, np.zeros(len(texts), int), 1)
print(time.perf_counter() - start)
"""


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


def weights_of(counts: np.ndarray) -> np.ndarray:
    """Log shares of words with one added to each count, a word's numbers side by side."""
    smoothed = counts + 1.0
    return np.log(smoothed / smoothed.sum(axis=1, keepdims=True)).T.copy()


@benchmark("text")
def text(share: float) -> Iterator[Row | str]:
    """Raw text to class counts, class scores and sparse rows."""
    found = corpus(share)
    if found is None:
        yield "DECIBAN_DATA names no directory of data sets: nothing was run"
        return
    texts, y = found
    K, column = int(y.max()) + 1, pa.array(texts, pa.large_string())
    size = f"{sum(len(text.encode()) for text in texts) / 1e6:.0f} MB, {len(texts):,} documents"
    yield f"compiling took {first_call(lambda: count_classes(texts[:2000], y[:2000], K)):.1f} s CPU, not counted above"
    counts = count_classes(column, y, K)
    pipeline = make_pipeline(Theirs(), MultinomialNB()).fit(texts, y)
    scorer = Scorer(counts.vocabulary, weights_of(counts.counts), pipeline[1].class_log_prior_)
    yield from fit_rows(texts, column, y, K, size)
    yield from score_rows(texts, column, pipeline, scorer, size)
    yield from vectorizer_rows(texts, size)
    yield one_document(texts, pipeline, scorer, at_least(1000))
    yield small_model(texts, y)
    yield from start_rows()
    yield threads(column, y, K)


def joint(pipeline: Any, texts: list[str]) -> np.ndarray:
    """Their scores: log prior plus log likelihood."""
    return pipeline[1].predict_joint_log_proba(pipeline[0].transform(texts))


def fit_rows(texts: list[str], column: pa.Array, y: np.ndarray, K: int, size: str) -> Iterator[Row]:
    for kind, given, reach in (("list", texts, at_least(20)), ("Arrow", column, at_least(30))):
        yield versus(
            f"class counts from {kind}, {size}",
            PEER,
            lambda: make_pipeline(Theirs(), MultinomialNB()).fit(texts, y)[1].feature_count_,
            lambda given=given: count_classes(given, y, K).counts,
            reach,
            largest_difference,
            peer_repeats=PEER_REPEATS,
        )


def score_rows(texts: list[str], column: pa.Array, pipeline: Any, scorer: Scorer, size: str) -> Iterator[Row]:
    for kind, given in (("list", texts), ("Arrow", column)):
        yield versus(
            f"class scores from {kind}, {size}",
            PEER,
            lambda: joint(pipeline, texts),
            lambda given=given: scorer.scores(given),
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


def one_document(texts: list[str], pipeline: Any, scorer: Scorer, reach: Any) -> Row:
    """Short documents one by one; seconds are of one."""
    short = [text[SHORT : 2 * SHORT] for text in texts[:: max(len(texts) // 500, 1)]]
    scorer(short[0])  # compiles

    def each(score: Any, some: list[str]) -> float:
        return timed(lambda: [score(text) for text in some])[0] / len(some)

    times = [(each(lambda one: joint(pipeline, [one]), short[:20]), each(scorer, short)) for _ in range(5)]
    V, K = scorer.weights.shape
    job = f"one document of {SHORT} characters, V = {V:,}, K = {K}"
    return Row(job, PEER, [a for a, _ in times], [b for _, b in times], [a / b for a, b in times], reach)


def small_model(texts: list[str], y: np.ndarray) -> Row:
    """The same with few words and classes."""
    some = texts[:: max(len(texts) // 5000, 1)]
    codes = y[:: max(len(texts) // 5000, 1)] % FEW_CLASSES
    pipeline = make_pipeline(Theirs(max_features=FEW_WORDS), MultinomialNB()).fit(some, codes)
    counts = count_classes(some, codes, FEW_CLASSES)
    kept = counts.vocabulary.ids(pipeline[0].get_feature_names_out())
    scorer = Scorer(counts.vocabulary.take(kept), weights_of(counts.counts[:, kept]), pipeline[1].class_log_prior_)
    return one_document(some, pipeline, scorer, at_least(30))


def start_rows() -> Iterator[Row]:
    """Wall time of the first call in a new process, without and with compiled code on disk."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
        for name, most, repeats in (
            ("nothing compiled", 15, 1),
            ("compiled before", 1, 5),
        ):
            spent = [
                float(subprocess.check_output([sys.executable, "-c", FIRST_CALL], env=environment, text=True))
                for _ in range(repeats)
            ]
            yield Row(f"first call, {name}, wall", "", [], spent, [], at_most(most, "s"))


def threads(column: pa.Array, y: np.ndarray, K: int) -> str:
    """How much sooner two threads are done; the counts are the same."""

    def wall(number: int) -> float:
        start = time.perf_counter()
        count_classes(column, y, K, threads=number)
        return time.perf_counter() - start

    gains = [wall(1) / wall(2) for _ in range(5)]
    same = np.array_equal(count_classes(column, y, K, threads=1).counts, count_classes(column, y, K, threads=2).counts)
    return f"two threads are done {median(gains):.2f} times as fast as one, counts {'equal' if same else 'DIFFERENT'}"
