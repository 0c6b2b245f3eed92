"""Programs that find topics, each as a course: how far it was after so many seconds.

All have the same α and β, which none learns. The clocks stand still while topics are judged.
"""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.decomposition import LatentDirichletAllocation

from deciban import TopicModel
from topic_corpus import Corpus

BETA = 0.01


def alpha_of(K: int) -> float:
    return 5.0 / K


class Point(NamedTuple):
    """How far a program was."""

    step: int  # passes over all documents, or sweeps
    seconds: float  # CPU, of all threads
    elapsed: float
    perplexity: float

    def __str__(self) -> str:
        return f"{self.perplexity:,.0f} after {self.step}, {self.seconds:.1f} CPU s, {self.elapsed:.1f} s elapsed"


class Course(NamedTuple):
    """The points along the way, and the topics at the end."""

    points: list[Point]
    topics: Any

    @property
    def last(self) -> Point:
        return self.points[-1]

    @property
    def best(self) -> Point:
        return min(self.points, key=lambda point: point.perplexity)

    def reached(self, target: float, clock: str = "seconds") -> float:
        """Seconds until a perplexity, between the points that lie around it; inf where it was not reached."""
        before = None
        for point in self.points:
            if point.perplexity <= target:
                now = getattr(point, clock)
                if before is None:
                    return now
                part = (before.perplexity - target) / (before.perplexity - point.perplexity)
                return getattr(before, clock) + part * (now - getattr(before, clock))
            before = point
        return float("inf")


class Clock:
    """CPU seconds of all threads, and elapsed ones, while it runs."""

    def __init__(self) -> None:
        self.seconds, self.elapsed = 0.0, 0.0

    def start(self) -> None:
        self.since = time.process_time(), time.perf_counter()

    def stop(self) -> None:
        self.seconds += time.process_time() - self.since[0]
        self.elapsed += time.perf_counter() - self.since[1]


def tell(said: str) -> None:
    """Progress, apart from the table."""
    print(f"{time.strftime('%H:%M:%S')} {said}", file=sys.stderr, flush=True)


# -- ours -------------------------------------------------------------------------------------------------------------
JUDGED = {1, 2, 3, 5, 7, *range(10, 30, 4), *range(30, 60, 6), *range(60, 1000, 10)}  # passes


def ours(data: Corpus, K: int, threads: int, seed: int, passes: int, alone: Course | None = None) -> Course:
    """Through the public interface, with 24 documents held out of what is learnt.

    alone : the same with one thread; topics are then the same to the bit, so what was judged need not be again
    """
    points: list[Point] = []
    clock, words = Clock(), np.arange(data.learnt.shape[1])
    last: list[Any] = []
    seen: list[Any] = []
    known = {} if alone is None else {point.step: point.perplexity for point in alone.points}

    def judge(step: int, engine: Any) -> None:
        last[:] = [engine.table(words).T]
        found = known.get(step) or data.judge(last[0], alpha_of(K))
        points.append(Point(step, clock.seconds, clock.elapsed, found))
        tell(f"ours, K = {K}, {threads} threads, seed {seed}: {points[-1]}")

    def watch(moment: Any) -> None:
        clock.stop()
        if moment.step in JUDGED:
            judge(moment.step, moment.engine)
        seen[:] = [moment]
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
    model.fit(data.learnt, callback=watch)
    if seen[0].step != points[-1].step:  # where it ended, if that was between two that are judged
        judge(seen[0].step, seen[0].engine)
    if alone is not None and not np.array_equal(last[0], alone.topics):
        raise AssertionError(f"{threads} threads found other topics than one")
    return Course(points, last[0])


# -- tomotopy ---------------------------------------------------------------------------------------------------------
SCHEME = "COPY_MERGE"  # of several workers, see topic_tuning


def tomotopy(
    data: Corpus, K: int, threads: int, seed: int, sweeps: int, every: int = 20, scheme: str = SCHEME
) -> Course:
    import tomotopy as tp

    X = data.learnt
    model = tp.LDAModel(k=K, alpha=alpha_of(K), eta=BETA, seed=seed)
    model.optim_interval = 0
    names = np.array([str(w) for w in range(X.shape[1])], dtype=object)
    for begin, end in zip(X.indptr, X.indptr[1:]):
        model.add_doc(names[np.repeat(X.indices[begin:end], X.data[begin:end].astype(int))].tolist())
    points, clock = [], Clock()
    parallel = getattr(tp.ParallelScheme, scheme if threads > 1 else "DEFAULT")
    for step in range(every, sweeps + 1, every):
        clock.start()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.train(every, workers=threads, parallel=parallel)
        clock.stop()
        found = np.zeros((K, X.shape[1]))
        found[:, [int(name) for name in model.used_vocabs]] = [model.get_topic_word_dist(k) for k in range(K)]
        points.append(Point(step, clock.seconds, clock.elapsed, data.judge(found, alpha_of(K))))
        tell(f"tomotopy, K = {K}, {threads} threads, seed {seed}: {points[-1]}")
    return Course(points, found)


# -- scikit-learn -----------------------------------------------------------------------------------------------------
class Online(NamedTuple):
    """Settings of its online LDA, by default the winners of topic_tuning."""

    batch: int = 2048
    decay: float = 0.9
    offset: float = 10.0
    steps: int = 20  # max_doc_update_iter


GAIN = 0.001  # share of perplexity that PATIENCE passes together must gain, or it has arrived
PATIENCE = 3


def sklearn_online(data: Corpus, K: int, seed: int, seconds: float, settings: Online | None = None) -> Course:
    """Pass by pass, in an order of its own each, until it no longer gains or has had so many CPU seconds."""
    settings = settings or Online()
    n, rng = data.learnt.shape[0], np.random.default_rng(seed)
    model = LatentDirichletAllocation(
        K,
        doc_topic_prior=alpha_of(K),
        topic_word_prior=BETA,
        learning_method="online",
        learning_decay=settings.decay,
        learning_offset=settings.offset,
        max_doc_update_iter=settings.steps,
        total_samples=n,
        random_state=seed,
    )
    points: list[Point] = []
    clock = Clock()
    while clock.seconds < seconds and not _arrived([point.perplexity for point in points]):
        order = rng.permutation(n)
        for at in range(0, n, settings.batch):
            clock.start()
            model.partial_fit(data.learnt[order[at : at + settings.batch]])
            clock.stop()
            if clock.seconds >= seconds:
                break
        reached = data.judge(model.components_, alpha_of(K))
        points.append(Point(len(points) + 1, clock.seconds, clock.elapsed, reached))
        tell(f"scikit-learn, K = {K}, seed {seed}: {points[-1]}")
    return Course(points, model.components_)


# -- gensim -----------------------------------------------------------------------------------------------------------
def gensim(data: Corpus, K: int, seed: int, seconds: float) -> Course:
    """Online variational Bayes with the settings of its constructor, pass by pass as scikit-learn's above."""
    from gensim.models import LdaModel

    X, rng = data.learnt, np.random.default_rng(seed)
    documents = [
        list(zip(X.indices[begin:end].tolist(), X.data[begin:end].astype(int).tolist()))
        for begin, end in zip(X.indptr, X.indptr[1:])
    ]
    model = LdaModel(
        num_topics=K,
        id2word={w: str(w) for w in range(X.shape[1])},
        alpha=[alpha_of(K)] * K,
        eta=BETA,
        random_state=seed,
        eval_every=None,
    )
    points: list[Point] = []
    clock = Clock()
    while clock.seconds < seconds and not _arrived([point.perplexity for point in points]):
        some = [documents[i] for i in rng.permutation(len(documents))]
        clock.start()
        model.update(some)
        clock.stop()
        reached = data.judge(np.asarray(model.get_topics(), dtype=float), alpha_of(K))
        points.append(Point(len(points) + 1, clock.seconds, clock.elapsed, reached))
        tell(f"gensim, K = {K}, seed {seed}: {points[-1]}")
    return Course(points, model.get_topics())


def _arrived(perplexities: list[float]) -> bool:
    if len(perplexities) <= PATIENCE:
        return False
    return min(perplexities[-PATIENCE:]) > (1 - GAIN) * min(perplexities[:-PATIENCE])
