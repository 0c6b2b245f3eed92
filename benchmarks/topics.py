"""Topics beside tomotopy, scikit-learn's online LDA and NMF: seconds to a held-out perplexity, and how far it gets.

The corpus is 20 Newsgroups and R8 of Reuters, read from the directory that DECIBAN_DATA names; English stop words and
words of fewer than five documents or more than half are left out. A tenth of the documents is held out; one evaluator
judges every program's topic–word matrix by document completion. All have the same α and β, which none learns, and were
tuned on another division (topic_tuning). Seconds are CPU seconds of all threads spent in learning, unless they are said
to be elapsed ones; both sides have as many threads as are said. It takes about an hour; progress goes to stderr.
"""

from __future__ import annotations

import importlib.util
import time
import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np

from deciban import PLSA, TopicModel
from harness import REPEATS, Row, at_least, benchmark, timed
from topic_corpus import Corpus, corpus
from topic_courses import Course, gensim, ours, sklearn_online, tomotopy
from topic_evidence import overfitting
from topic_tuning import nmf

SEEDS = (1, 2, 3)
SIZES = (100, 400)
OUR_PASSES, THEIR_SWEEPS = {100: 100, 400: 60}, {100: 300, 400: 160}
SKLEARN_SECONDS = 180.0  # of CPU for each seed, unless it no longer gains before; gensim's passes end after as many
TARGETS = (("10 % above its last", 1.1), ("3 % above its last", 1.03), ("its last", 1.0))


@benchmark("topics")
def topics(share: float) -> Iterator[Row | str]:
    """LDA to equal held-out perplexity, PLSA an iteration; time against topics, memory against documents."""
    data = corpus(share)
    if data is None:
        yield "DECIBAN_DATA names no directory of data sets: nothing was run"
        return
    X = data.learnt
    yield f"{X.shape[0]:,} documents of {X.data.sum():,.0f} tokens, {X.shape[1]:,} words; {len(SEEDS)} seeds"
    TopicModel(2, method="scvb0", max_iter=2).fit(X[:1000])  # compile
    yield from _all(data)


def _all(data: Corpus) -> Iterator[Row | str]:
    yield from _plsa(data.learnt)
    yield from overfitting()
    yield from _growth(data.learnt)
    for K in SIZES:
        courses = _courses(data, K)
        for threads, both in courses.items():
            yield from _beside_tomotopy(K, threads, both)
        yield from _ends(data, K, courses)
        if SIZES[0] == K:
            yield from _beside_sklearn(data, K, [mine for _, mine in courses[1]])


def _courses(data: Corpus, K: int) -> dict[int, list[tuple[Course | None, Course]]]:
    """Tomotopy's course and ours for each seed, turn about; by threads."""
    found: dict[int, list[tuple[Course | None, Course]]] = {1: [], 2: []}
    there = importlib.util.find_spec("tomotopy") is not None
    for seed in SEEDS:
        alone = None
        for threads, both in found.items():
            theirs = tomotopy(data, K, threads, seed, THEIR_SWEEPS[K]) if there else None
            alone = ours(data, K, threads, seed, OUR_PASSES[K], alone)
            both.append((theirs, alone))
    return found


def _beside_tomotopy(K: int, threads: int, both: list[tuple[Course | None, Course]]) -> Iterator[Row | str]:
    pairs = [(theirs, mine) for theirs, mine in both if theirs is not None]
    if not pairs:
        yield "tomotopy is not installed, so it was not measured"
        return
    workers = "1 thread" if threads == 1 else f"{threads} threads"
    for clock, said in (("seconds", ""), ("elapsed", ", elapsed")):
        if clock == "elapsed" and threads == 1:
            continue
        for name, factor in TARGETS:
            targets = [factor * theirs.last.perplexity for theirs, _ in pairs]
            job = f"LDA, K = {K}, {workers}, to {name} ({np.median(targets):,.0f}){said}"
            yield _row(job, "tomotopy", pairs, targets, 3, clock)


def _row(
    job: str, peer: str, pairs: list[tuple[Course, Course]], targets: list[float], reach: float, clock: str = "seconds"
) -> Row:
    """Seconds to a target of each seed; a target that was not reached counts as a ratio of 0."""
    their_times = [theirs.reached(target, clock) for (theirs, _), target in zip(pairs, targets)]
    our_times = [mine.reached(target, clock) for (_, mine), target in zip(pairs, targets)]
    ratios = [a / b for a, b in zip(their_times, our_times)]
    return Row(job, peer, their_times, our_times, ratios, at_least(reach))


def _ends(data: Corpus, K: int, courses: dict[int, list[tuple[Course | None, Course]]]) -> Iterator[str]:
    """How far all came, how their topics hold together, and what a second thread was worth."""
    for threads, both in courses.items():
        said = "; ".join(
            f"{theirs.last.perplexity:,.0f} and {mine.last.perplexity:,.0f}" for theirs, mine in both if theirs
        )
        yield f"K = {K}, {threads} threads: perplexity at the end, tomotopy and ours, each seed: {said}"
        said = "; ".join(
            f"{data.coherence(theirs.topics):.3f} and {data.coherence(mine.topics):.3f}"
            for theirs, mine in both
            if theirs
        )
        yield f"K = {K}, {threads} threads: NPMI of the ten first words, tomotopy and ours, each seed: {said}"
    for at, name in enumerate(("tomotopy", "ours")):
        alone, together = (
            [pair[at].last.elapsed for pair in courses[threads] if pair[at] is not None] for threads in courses
        )
        if alone:
            gains = ", ".join(f"{a / b:.2f}" for a, b in zip(alone, together))
            yield (
                f"K = {K}, {name}: {np.median(alone):.0f} s elapsed with 1 thread, {np.median(together):.0f} with 2; "
                f"gain of each seed {gains}"
            )


@benchmark("topics-gensim")
def topics_beside_gensim(share: float) -> Iterator[Row | str]:
    """LDA to the held-out perplexity that gensim reaches with its default settings."""
    data = corpus(share)
    if data is None or importlib.util.find_spec("gensim") is None:
        yield "DECIBAN_DATA names no directory of data sets, or gensim is not installed: nothing was run"
        return
    K = SIZES[0]
    TopicModel(2, method="scvb0", max_iter=2).fit(data.learnt[:1000])  # compile
    pairs = [(gensim(data, K, seed, SKLEARN_SECONDS), ours(data, K, 1, seed, 10)) for seed in SEEDS]
    yield from _beside_online(data, K, "gensim", pairs, 3)


def _beside_sklearn(data: Corpus, K: int, mine: list[Course]) -> Iterator[Row | str]:
    """Its online LDA until it no longer gains; the seconds we need for its best, and for 10 % above that."""
    pairs = [(sklearn_online(data, K, seed, SKLEARN_SECONDS), own) for seed, own in zip(SEEDS, mine)]
    yield from _beside_online(data, K, "scikit-learn, online", pairs, 10)


def _beside_online(
    data: Corpus, K: int, peer: str, pairs: list[tuple[Course, Course]], reach: float
) -> Iterator[Row | str]:
    for name, factor in (("10 % above its best", 1.1), ("its best", 1.0)):
        targets = [factor * theirs.best.perplexity for theirs, _ in pairs]
        job = f"LDA, K = {K}, 1 thread, to {name} ({np.median(targets):,.0f})"
        yield _row(job, peer, pairs, targets, reach)
    said = "; ".join(
        f"{theirs.best.perplexity:,.0f} after {theirs.best.step} passes ({theirs.last.step} made), "
        f"NPMI {data.coherence(theirs.topics):.3f}"
        for theirs, _ in pairs
    )
    yield f"K = {K}: best perplexity of {peer}, each seed: {said}"


def _plsa(X: Any) -> Iterator[Row]:
    """An iteration is what some cost more than a few, divided by how many more; counts of either precision."""

    def mine(X: Any, steps: int) -> Any:
        return PLSA(20, max_iter=steps, tol=0, held_out=0.001, threads=1, random_state=0).fit(X)

    mine(X, 1)
    for dtype in ("float64", "float32"):
        given = X.astype(dtype)
        times: dict[str, list[float]] = {"theirs": [], "ours": []}
        for _ in range(REPEATS):
            for name, act, few, many in (("theirs", nmf, 1, 3), ("ours", mine, 2, 22)):
                spent = [timed(lambda steps=steps: act(given, steps))[0] for steps in (many, few)]  # noqa: B023
                times[name].append((spent[0] - spent[1]) / (many - few))
        ratios = [a / b for a, b in zip(times["theirs"], times["ours"])]
        yield Row(
            f"PLSA, K = 20, an iteration, {dtype}", "NMF(kullback-leibler, mu)", *times.values(), ratios, at_least(8)
        )


def _growth(X: Any) -> Iterator[str]:
    """Nanoseconds a token and pass against K; memory beside the corpus against its size."""
    tokens = X.data.sum()
    said = []
    for K in (20, 100, 400):
        ends: list[float] = []
        model = TopicModel(K, method="scvb0", max_iter=10, tol=0, threads=1, random_state=0)
        model.fit(X, callback=lambda moment, ends=ends: ends.append(time.process_time()))
        said.append(f"K = {K}: {np.median(np.diff(ends)) / tokens * 1e9:.0f} ns")
    yield "a token in a pass, judging included: " + ", ".join(said)
    said = []
    for part in (4, 2, 1):
        some = X[: X.shape[0] // part]
        tracemalloc.start()
        TopicModel(100, method="scvb0", max_iter=2, tol=0, threads=1).fit(some)
        most = tracemalloc.get_traced_memory()[1] / 2**20
        tracemalloc.stop()
        said.append(f"{some.shape[0]:,} documents ({some.nnz:,} entries): {most:.0f} MB")
    yield "memory beside the corpus, K = 100: " + ", ".join(said)
