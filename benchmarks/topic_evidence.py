"""What the choices behind topics are worth: decision 0012.

Perplexity where topics are nearly alike, with a token taken out of its own counts and left in; how many runs end at the
true topics, started around documents and at random; and both choices on real text.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from deciban import TopicModel
from deciban.topics import lda
from deciban.topics.documents import Completion
from deciban.topics.kernels import SINGLE_THREAD
from deciban.topics.lda import Priors, StochasticCVB0
from deciban.topics.words import matched
from harness import Row, benchmark
from topic_corpus import Corpus
from topic_corpus import corpus as real_corpus
from topic_courses import ours

sys.path.append(str(Path(__file__).parents[1] / "tests" / "topics"))
from simulated import corpus, near_identical

PASSES, RUNS, FOUND = 100, 10, 0.1
SEEDS = (0, 1, 2)
HELD = 300


@benchmark("topic-evidence")
def topic_evidence(share: float) -> Iterator[Row | str]:
    """Self-exclusion where topics are nearly alike; runs that find the true topics, by how they start."""
    for name, alpha, beta in (("learnt", "learnt", "learnt"), (".1 and .01", 0.1, 0.01)):
        for excluding in (True, False):
            ends = [_alike(alpha, beta, excluding, seed) for seed in SEEDS]
            said = "; ".join(f"{best:.1f}, {last:.1f}" for best, last in ends)
            yield f"α, β {name}, own token {'taken out' if excluding else 'left in'}: best, last of each seed: {said}"
    for D in (500, 2000):
        for method in ("scvb0", "cvb0", "gibbs"):
            yield f"{D} documents, {method}: true topics found in {_recovered(D, method)} of {RUNS} runs"
    seeded = lda.SEEDED
    try:
        lda.SEEDED = 0.0
        for D in (500, 2000):
            yield f"{D} documents, scvb0, random start: true topics found in {_recovered(D, 'scvb0')} of {RUNS} runs"
    finally:
        lda.SEEDED = seeded
    yield from overfitting()
    data = real_corpus(share)
    yield from [] if data is None else _choices(data)


def overfitting() -> Iterator[str]:
    """What the defaults do where topics are nearly alike: perplexity of documents that nothing of the fit has seen."""
    for method in ("auto", "scvb0"):
        ends = []
        for seed in SEEDS:
            X, _ = near_identical(seed=seed)
            judge, course = Completion.of(X[:HELD]), []
            model = TopicModel(20, method=method, random_state=seed)
            model.fit(
                X[HELD:],
                callback=lambda moment, judge=judge, course=course: course.append(
                    judge(moment.engine.table(judge.words), moment.engine.priors.alpha)
                ),
            )
            ends.append((min(course), judge(model.topics_[:, judge.words].T, model.alpha_)))
        said = "; ".join(f"{best:.1f}, {last:.1f}" for best, last in ends)
        met = "yes" if all(last <= 1.02 * best for best, last in ends) else "NO"
        yield f"topics nearly alike, method={method!r}: best on the way and at the end: {said}; within 2 %: {met}"


def _choices(data: Corpus) -> Iterator[str]:
    """What comes of letting tokens speak for themselves, and of starting at random."""
    K, passes = 100, 40
    for name, module, attribute, value in (
        ("as it is", None, "", None),
        ("tokens speak for themselves", StochasticCVB0, "excluding", False),
        ("started at random", lda, "SEEDED", 0.0),
    ):
        usual = getattr(module, attribute) if module else None
        try:
            if module:
                setattr(module, attribute, value)
            ends = [ours(data, K, 2, seed, passes).last.perplexity for seed in (1, 2, 3)]
        finally:
            if module:
                setattr(module, attribute, usual)
        yield f"{name}, K = {K}: perplexity after {passes} passes, each seed: {', '.join(f'{p:,.0f}' for p in ends)}"


def _alike(alpha: Any, beta: Any, excluding: bool, seed: int) -> tuple[float, float]:
    """The least perplexity along the way, and that after all passes."""
    X, _ = near_identical(seed=seed)
    judge = Completion.of(X[:HELD])
    engine = StochasticCVB0(X[HELD:], 20, Priors.given(alpha, beta, 20), seed, SINGLE_THREAD)
    engine.excluding = excluding
    course = []
    for _ in range(PASSES):
        engine.step()
        course.append(judge(engine.table(judge.words), engine.priors.alpha))
    return min(course), course[-1]


def _recovered(D: int, method: Any) -> int:
    """Runs in which every topic is within total variation FOUND of a true one of its own."""
    count = 0
    for seed in range(RUNS):
        X, phi = corpus(D=D, seed=seed)
        found = TopicModel(len(phi), method=method, random_state=seed).fit(X).topics_
        count += int(np.max(matched(found, phi)[1]) < FOUND)
    return count
