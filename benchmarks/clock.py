"""Elapsed time beside scikit-learn, each side with its default threads: what people see on the clock.

Both sides run in turn, five times, in one process; slow peers fewer times. The remark on each job gives CPU seconds,
and our time with one thread; from our two times follows the share of the work that is serial (Amdahl's law), and from
that a simulated gain with more cores. For jobs that are bound by memory, the remark gives the bytes of the input that
are read per second, and those of a plain sum.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.naive_bayes import CategoricalNB, GaussianNB, MultinomialNB
from threadpoolctl import threadpool_limits

import deciban
import mixtures
import text
from deciban import Categorical, Gaussian, GenerativeClassifier, Mixture, Multinomial
from deciban.kernels.parallel import cores, each, row_chunks
from deciban.sklearn import CountVectorizer
from harness import REPEATS, Row, at_least, benchmark, seconds
from workloads import bells, categories, documents

SIMULATED = (4, 16, 64)


@dataclass(frozen=True)
class Job:
    """What both sides do, and the ratio of elapsed times that must be shown."""

    name: str
    peer: str
    theirs: Callable[[], Any] | None
    ours: Callable[[], Any]
    reach: float | None = None
    read: Any = None  # array that both have to read, if the job is bound by memory
    peer_repeats: int = REPEATS


def elapsed(act: Callable[[], Any]) -> tuple[float, float]:
    """Elapsed and CPU seconds."""
    start, cpu = time.perf_counter(), time.process_time()
    act()
    return time.perf_counter() - start, time.process_time() - cpu


def measure(job: Job, threads: int) -> Iterator[Row | str]:
    """Yield the row of a job, and what follows from its times."""
    job.ours()  # compiles
    theirs: list[tuple[float, float]] = []
    ours: list[tuple[float, float]] = []
    alone: list[float] = []
    for turn in range(REPEATS):
        if job.theirs is not None and turn < job.peer_repeats:
            theirs.append(elapsed(job.theirs))
        deciban.set_threads(threads)
        ours.append(elapsed(job.ours))
        deciban.set_threads(1)
        alone.append(elapsed(job.ours)[0])
        deciban.set_threads(None)
    # the last time of a slow peer serves for the repeats that it did not run
    peers = [theirs[min(turn, len(theirs) - 1)][0] for turn in range(REPEATS)] if theirs else []
    row = Row(
        job.name,
        job.peer,
        [cpu for _, cpu in theirs],
        [cpu for _, cpu in ours],
        [peer / own for peer, (own, _) in zip(peers, ours)],
        None if job.reach is None else at_least(job.reach),
        their_elapsed=[time for time, _ in theirs],
        our_elapsed=[time for time, _ in ours],
        by_clock=True,
    )
    yield row
    mine, one = median(row.our_elapsed), median(alone)
    spent = " and ".join(f"{seconds(median(side))} s" for side in (row.theirs, row.ours) if side)
    remarks = [f"{spent} of CPU", f"one thread {seconds(one)} s, {threads} threads {one / mine:.2f} times as fast"]
    if threads > 1:
        serial = min(1.0, max(0.0, (threads * mine / one - 1) / (threads - 1)))
        gains = ", ".join(f"{1 / (serial + (1 - serial) / number):.1f} on {number}" for number in SIMULATED)
        remarks.append(f"serial share {serial:.2f}, simulated gain {gains} cores")
    if job.read is not None:
        plain = median(elapsed(lambda: read(job.read))[0] for _ in range(REPEATS))
        size = job.read.nbytes / 1e9
        remarks.append(f"{size / mine:.1f} GB/s, a plain sum {size / plain:.1f} GB/s")
    yield f"{job.name}: {'; '.join(remarks)}"


def read(array: Any) -> float:
    """Sum all numbers of an array, in threads."""
    flat = array.reshape(-1)
    return float(sum(each(lambda part: flat[part].sum(), row_chunks(len(flat), 2))))


def run(jobs: Callable[[float], Iterator[Job]], share: float) -> Iterator[Row | str]:
    """Measure jobs, BLAS at its default number of threads."""
    threads = cores()
    if os.environ.get("OPENBLAS_NUM_THREADS") or os.environ.get("OMP_NUM_THREADS"):
        yield "OPENBLAS_NUM_THREADS or OMP_NUM_THREADS is set: the peers are limited by it, unset it for this table"
    with threadpool_limits(threads):
        for job in jobs(share):
            yield from measure(job, threads)


@benchmark("clock-gaussian")
def clock_gaussian(share: float) -> Iterator[Row | str]:
    """Elapsed time of Gaussian fits and answers."""
    yield from run(dense_jobs, share)


@benchmark("clock-mixtures")
def clock_mixtures(share: float) -> Iterator[Row | str]:
    """Elapsed time of EM for Gaussian mixtures."""
    yield from run(mixture_jobs, share)


@benchmark("clock-counts")
def clock_counts(share: float) -> Iterator[Row | str]:
    """Elapsed time of fits and scores of categories, and of words as sparse rows."""
    yield from run(count_jobs, share)


@benchmark("clock-left-out")
def clock_left_out(share: float) -> Iterator[Row | str]:
    """Elapsed time of exact leave-one-out, one thread and all of them."""
    yield from run(left_out_jobs, share)


@benchmark("clock-text")
def clock_text(share: float) -> Iterator[Row | str]:
    """Elapsed time of fits from raw text."""
    yield from run(text_fit_jobs, share)


@benchmark("clock-text-scores")
def clock_text_scores(share: float) -> Iterator[Row | str]:
    """Elapsed time of scores and sparse rows from raw text."""
    yield from run(text_score_jobs, share)


def dense_jobs(share: float) -> Iterator[Job]:
    """Gaussian classes."""
    n, D, K = int(400_000 * share), 50, 10
    X, y = bells(n, D, K, full=True)
    size = f"{n:,} × {D}, K = {K}"
    kinds = (
        ("full", QuadraticDiscriminantAnalysis(), {"predict_proba": 6.0}, 12.0),
        ("diagonal", GaussianNB(var_smoothing=0), {"predict_proba": 13.0}, 22.0),
        (
            "tied",
            LinearDiscriminantAnalysis(),
            {"predict_proba": 2.0, "predict": 1.2, "decision_function": 1.2},
            30.0,
        ),
    )
    for structure, peer, methods, reach in kinds:
        name = type(peer).__name__
        clf = GenerativeClassifier(Gaussian(structure), rule="ml", calibrate=None)
        memory = X if structure == "diagonal" else None
        yield Job(
            f"{structure} fit, {size}",
            name,
            lambda peer=peer: peer.fit(X, y),
            lambda clf=clf: clf.fit(X, y),
            reach,
            memory,
        )
        peer.fit(X, y)
        clf.fit(X, y)
        for method, bound in methods.items():
            yield Job(
                f"{structure} {method}, {size}",
                name,
                lambda peer=peer, method=method: getattr(peer, method)(X),
                lambda clf=clf, method=method: getattr(clf, method)(X),
                bound,
            )


def mixture_jobs(share: float) -> Iterator[Job]:
    """Four iterations of EM from the same start."""
    n, D, K = int(200_000 * share), 20, 8
    X, _ = bells(n, D, K, full=True)
    shares = np.random.default_rng(1).dirichlet(np.full(K, 0.1), 20_000)
    for structure, kind, reach in (("full", "full", 7.0), ("diagonal", "diag", 5.0)):
        start = mixtures._start(Gaussian(structure), X[:20_000], shares[: len(X)])
        yield Job(
            f"{structure} mixture, 4 iterations, {n:,} × {D}, K = {K}",
            f"GaussianMixture({kind!r})",
            lambda kind=kind, start=start: mixtures._peer(X, kind, start, 4),
            lambda structure=structure, start=start: Mixture(Gaussian(structure), K).fit(
                X, rule="ml", start=start, max_iter=4, tol=0
            ),
            reach,
        )


def count_jobs(share: float) -> Iterator[Job]:
    """Categories, and words as CSR."""
    C, y = categories(int(2_000_000 * share))
    X, z = documents(int(500_000 * share))
    for name, rows, labels, peer, family in (
        ("categorical", C, y, CategoricalNB(), Categorical(1.0)),
        ("multinomial", X, z, MultinomialNB(), Multinomial(1.0)),
    ):
        clf = GenerativeClassifier(family, calibrate=None)
        size = f"{rows.shape[0]:,} × {rows.shape[1]:,}"
        yield Job(
            f"{name} fit, {size}",
            type(peer).__name__,
            lambda peer=peer, rows=rows, labels=labels: peer.fit(rows, labels),
            lambda clf=clf, rows=rows, labels=labels: clf.fit(rows, labels),
            read=rows if isinstance(rows, np.ndarray) else rows.data,
        )
        peer.fit(rows, labels)
        clf.fit(rows, labels)
        yield Job(
            f"{name} predict_log_proba, {size}",
            type(peer).__name__,
            lambda peer=peer, rows=rows: peer.predict_log_proba(rows),
            lambda clf=clf, rows=rows: clf.predict_log_proba(rows),
        )


def left_out_jobs(share: float) -> Iterator[Job]:
    """Exact leave-one-out of all rows; the peer would refit each time, so that ours is shown alone."""
    n, D, K = int(400_000 * share), 50, 10
    X, y = bells(n, D, K, full=True)
    for structure in ("full", "diagonal", "tied"):
        clf = GenerativeClassifier(Gaussian(structure), calibrate=None).fit(X, y)
        yield Job(
            f"leave-one-out, {structure}, {n:,} × {D}, K = {K}", "", None, lambda clf=clf: clf.leave_one_out(X, y)
        )


def text_fit_jobs(share: float) -> Iterator[Job]:
    """Raw text to models, where DECIBAN_DATA names the data sets."""
    found = text.corpus(share)
    if found is None:
        return
    texts, y = found
    size = _megabytes(texts)
    yield Job(
        f"text fit from a list, {size}",
        text.PEER,
        lambda: text.theirs().fit(texts, y),
        lambda: text.plain().fit(texts, y),
        30.0,
        peer_repeats=2,
    )
    yield Job(
        f"text fit as it is by default, {size}",
        text.PEER,
        lambda: text.theirs().fit(texts, y),
        lambda: GenerativeClassifier().fit(texts, y),
        10.0,
        peer_repeats=1,
    )


def text_score_jobs(share: float) -> Iterator[Job]:
    """Raw text to scores and to sparse rows, where DECIBAN_DATA names the data sets."""
    found = text.corpus(share)
    if found is None:
        return
    texts, y = found
    size = _megabytes(texts)
    pipeline, clf = text.theirs().fit(texts, y), text.plain().fit(texts, y)
    yield Job(
        f"text predict_log_proba, {size}",
        text.PEER,
        lambda: pipeline.predict_log_proba(texts),
        lambda: clf.predict_log_proba(texts),
        peer_repeats=2,
    )
    yield Job(
        f"CountVectorizer, {size}",
        "CountVectorizer",
        lambda: text.Theirs().fit_transform(texts),
        lambda: CountVectorizer().fit_transform(texts),
        peer_repeats=2,
    )


def _megabytes(texts: list[str]) -> str:
    return f"{sum(len(each.encode()) for each in texts) / 1e6:.0f} MB"
