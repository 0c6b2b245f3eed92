"""Topics beside tomotopy, scikit-learn's online LDA and NMF: seconds to a held-out perplexity, and how far it gets.

The corpus is 20 Newsgroups and R8 of Reuters, read from the directory that DECIBAN_DATA names; English stop words and
words of fewer than five documents or more than half are left out. A tenth of the documents is held out; one evaluator
judges every program's topic–word matrix by document completion. All have the same α and β, which none learns. Seconds
are CPU seconds of all threads spent in learning, the time for judging left out; both sides have as many threads as are
said.
"""

from __future__ import annotations

import importlib.util
import time
import tracemalloc
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.decomposition import NMF, LatentDirichletAllocation

from deciban import PLSA, TopicModel
from deciban.topics import starts
from deciban.topics.stochastic import Stochastic
from harness import Row, at_least, benchmark, timed
from topic_courses import BETA, Clock, Corpus, Point, alpha_of, corpus, ours, reached, tomotopy

SEEDS = (1, 2, 3)
SIZES = (100, 400)
SKLEARN_PASSES = 8


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
    yield from _plsa(X)
    for K in SIZES:
        yield from _beside_tomotopy(data, K, 1, SEEDS)
    yield from _beside_sklearn(data, 100)
    yield from _growth(X)
    yield from _choices(data)
    for K in SIZES:
        yield from _beside_tomotopy(data, K, 2, SEEDS[:1])


def _beside_tomotopy(data: Corpus, K: int, threads: int, seeds: tuple[int, ...]) -> Iterator[Row | str]:
    if importlib.util.find_spec("tomotopy") is None:
        yield "tomotopy is not installed, so it was not measured"
        return
    both = [(tomotopy(data, K, threads, seed), ours(data, K, threads, seed)) for seed in seeds]
    ends = [(theirs[0][-1].perplexity, mine[0][-1].perplexity) for theirs, mine in both]
    whole = [course[0][-1].perplexity for course, _ in both]
    for name, factor in (("10 % above its last", 1.1), ("3 % above its last", 1.03), ("its last", 1.0)):
        targets = [factor * last for last in whole]
        their_times = [reached(theirs[0], target) for (theirs, _), target in zip(both, targets)]
        our_times = [reached(mine[0], target) for (_, mine), target in zip(both, targets)]
        ratios = [a / b for a, b in zip(their_times, our_times)]
        workers = "1 thread" if threads == 1 else f"{threads} threads"
        yield Row(
            f"LDA, K = {K}, {workers}, to {name} ({np.median(targets):,.0f})",
            "tomotopy",
            their_times,
            our_times,
            ratios,
            at_least(3),
        )
    yield (
        f"K = {K}, {threads} threads: perplexity at the end, tomotopy and ours, each seed: "
        + "; ".join(f"{a:,.0f} and {b:,.0f}" for a, b in ends)
    )
    if threads == 1:
        cohere = [(data.coherence(theirs[1]), data.coherence(mine[1])) for theirs, mine in both]
        said = "; ".join(f"{a:.3f} and {b:.3f}" for a, b in cohere)
        yield f"K = {K}: NPMI of the ten first words, tomotopy and ours, each seed: {said}"


def _beside_sklearn(data: Corpus, K: int) -> Iterator[Row | str]:
    """Its online LDA, a pass at a time; the seconds we need for what it reaches."""
    model = LatentDirichletAllocation(
        K, doc_topic_prior=alpha_of(K), topic_word_prior=BETA, learning_method="online", batch_size=512, random_state=1
    )
    model.total_samples = data.learnt.shape[0]
    course, clock = [], Clock()
    for _ in range(SKLEARN_PASSES):
        clock.start()
        for at in range(0, data.learnt.shape[0], 512):
            model.partial_fit(data.learnt[at : at + 512])
        clock.stop()
        course.append(Point(clock.spent, data.judge(model.components_, alpha_of(K))))
    mine, _ = ours(data, K, 1, 1)
    best = min(course, key=lambda point: point.perplexity)
    seconds = reached(mine, best.perplexity)
    yield Row(
        f"LDA, K = {K}, 1 thread, to its best ({best.perplexity:,.0f})",
        "scikit-learn, online",
        [best.seconds],
        [seconds],
        [best.seconds / seconds],
        at_least(10),
    )


def _plsa(X: Any) -> Iterator[Row | str]:
    """An iteration is what twelve cost more than two, divided by ten, on both sides."""
    K, times = 20, {"theirs": [], "ours": []}

    def theirs(steps: int) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return NMF(
                K, init="random", solver="mu", beta_loss="kullback-leibler", max_iter=steps, tol=0, random_state=0
            ).fit(X)

    def mine(steps: int) -> Any:
        return PLSA(K, max_iter=steps, tol=0, held_out=0.001, threads=1, random_state=0).fit(X)

    mine(1)
    for _ in range(5):
        for name, act, few, many in (("theirs", theirs, 1, 3), ("ours", mine, 2, 12)):
            times[name].append((timed(lambda: act(many))[0] - timed(lambda: act(few))[0]) / (many - few))  # noqa: B023
    ratios = [a / b for a, b in zip(times["theirs"], times["ours"])]
    yield Row(f"PLSA, K = {K}, an iteration", "NMF(kullback-leibler, mu)", *times.values(), ratios, at_least(8))


def _growth(X: Any) -> Iterator[Row | str]:
    """Nanoseconds a token and pass against K; memory beside the corpus against its size."""
    tokens = X.data.sum()
    said = []
    for K in (20, 100, 400):
        ends: list[float] = []
        model = TopicModel(K, method="scvb0", max_iter=10, tol=0, threads=1, random_state=0)
        model.fit(X, watch=lambda moment, ends=ends: ends.append(time.process_time()))
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


def _choices(data: Corpus) -> Iterator[str]:
    """What comes of letting tokens speak for themselves, and of starting at random."""
    K, passes = 100, 40
    for name, module, attribute, value in (
        ("as it is", None, "", None),
        ("tokens speak for themselves", Stochastic, "excluding", False),
        ("started at random", starts, "SEEDED", 0.0),
    ):
        usual = getattr(module, attribute) if module else None
        try:
            if module:
                setattr(module, attribute, value)
            ends = [ours(data, K, 2, seed, passes)[0][-1].perplexity for seed in SEEDS]
        finally:
            if module:
                setattr(module, attribute, usual)
        yield f"{name}, K = {K}: perplexity after {passes} passes, each seed: {', '.join(f'{p:,.0f}' for p in ends)}"
