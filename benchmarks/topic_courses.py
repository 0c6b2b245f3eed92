"""Programs that find topics, each as a course: how far it was after so many seconds."""

from __future__ import annotations

import gzip
import json
import os
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from deciban import TopicModel
from deciban.features.counts import count_rows
from deciban.features.limits import Limits
from deciban.features.tokens import Tokens
from deciban.topics.coherence import coherence
from deciban.topics.completion import halves, perplexity
from deciban.topics.words import ranked

SETS = ("20newsgroups/20news_bydate.jsonl.gz", "r8/r8.jsonl.gz")
BETA = 0.01
OUR_PASSES, THEIR_SWEEPS = {100: 120, 400: 60}, {100: 300, 400: 150}


class Corpus(NamedTuple):
    """Documents to learn from, and the halves of those held out."""

    learnt: Any
    observed: Any
    held: Any

    def judge(self, topics: Any, alpha: float) -> float:
        return perplexity(topics, self.observed, self.held, alpha, threads=None)

    def coherence(self, topics: Any) -> float:
        weights = np.full(len(topics), 1 / len(topics))
        return float(coherence(ranked(np.asarray(topics), weights, 10), self.learnt).mean())


class Point(NamedTuple):
    """How far a program was after so many seconds."""

    seconds: float
    perplexity: float


Course = tuple[list[Point], Any]  # and the topics at the end


def corpus(share: float) -> Corpus | None:
    folder = os.environ.get("DECIBAN_DATA")
    if folder is None:
        return None
    texts = []
    for name in SETS:
        with gzip.open(Path(folder, name), "rt", encoding="utf-8") as lines:
            texts += [json.loads(line)["text"] for line in lines]
    texts = texts[:: max(round(1 / share), 1)]
    X, _ = count_rows(texts, Tokens(stop_words="english"), limits=Limits(min_df=5, max_df=0.5))
    X = sp.csr_array(X[np.flatnonzero(np.diff(X.indptr))], dtype=float)
    order = np.random.default_rng(0).permutation(X.shape[0])
    held = X.shape[0] // 10
    return Corpus(X[np.sort(order[held:])], *halves(X[np.sort(order[:held])]))


def alpha_of(K: int) -> float:
    return 5.0 / K


def ours(data: Corpus, K: int, threads: int, seed: int, passes: int | None = None) -> Course:
    """Through the public interface; nothing is held out of what is learnt, and the clock stops while it is judged."""
    course: list[Point] = []
    clock = Clock()
    words = np.arange(data.learnt.shape[1])
    last: list[Any] = []
    passes = passes or OUR_PASSES[K]

    def watch(moment: Any) -> None:
        clock.stop()
        if moment.step in (1, 2) or moment.step % 3 == 0 or moment.step == passes:
            last[:] = [moment.engine.table(words).T]
            course.append(Point(clock.spent, data.judge(last[0], alpha_of(K))))
        clock.start()

    model = TopicModel(
        K,
        method="scvb0",
        alpha=alpha_of(K),
        beta=BETA,
        max_iter=passes,
        tol=0,
        held_out=0.001,
        threads=threads,
        random_state=seed,
    )
    clock.start()
    model.fit(data.learnt, watch=watch)
    return course, last[0]


class Clock:
    def __init__(self) -> None:
        self.spent, self.since = 0.0, 0.0

    def start(self) -> None:
        self.since = time.process_time()

    def stop(self) -> None:
        self.spent += time.process_time() - self.since


def tomotopy(data: Corpus, K: int, threads: int, seed: int) -> Course:
    import tomotopy as tp

    X = data.learnt
    model = tp.LDAModel(k=K, alpha=alpha_of(K), eta=BETA, seed=seed)
    model.optim_interval = 0
    names = np.array([str(w) for w in range(X.shape[1])], dtype=object)
    for begin, end in zip(X.indptr, X.indptr[1:]):
        model.add_doc(names[np.repeat(X.indices[begin:end], X.data[begin:end].astype(int))].tolist())
    course, clock = [], Clock()
    sweeps = THEIR_SWEEPS[K]
    for at in range(0, sweeps, 10):
        clock.start()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.train(10, workers=threads)
        clock.stop()
        if at % 20 == 10 or at + 10 >= sweeps:
            found = np.zeros((K, X.shape[1]))
            found[:, [int(name) for name in model.used_vocabs]] = [model.get_topic_word_dist(k) for k in range(K)]
            course.append(Point(clock.spent, data.judge(found, alpha_of(K))))
    return course, found


def reached(course: list[Point], target: float) -> float:
    """Seconds until a perplexity, between the points that lie around it; inf where it was not reached."""
    before = Point(0.0, np.inf)
    for point in course:
        if point.perplexity <= target:
            if not np.isfinite(before.perplexity):
                return point.seconds
            part = (before.perplexity - target) / (before.perplexity - point.perplexity)
            return before.seconds + part * (point.seconds - before.seconds)
        before = point
    return float("inf")
