"""Elapsed time beside scikit-learn, each side with its default threads: what people see on the clock.

Both sides run in turn, five times, in one process; slow peers fewer times. A second row of each job compares our time
with one thread to that with all of them. From these two times follows the share of the work that is serial (Amdahl's
law), and from that a simulated gain with more cores, which the remark on the job gives beside CPU seconds. For jobs
that are bound by memory, the remark gives the bytes of the input that are read per second, and those of a plain sum.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

from threadpoolctl import threadpool_limits

import deciban
from clock_jobs import (
    Job,
    count_jobs,
    default_table_jobs,
    default_text_jobs,
    dense_jobs,
    hidden_jobs,
    left_out_jobs,
    mixture_jobs,
    small_jobs,
    text_fit_jobs,
    text_score_jobs,
    tied_jobs,
)
from deciban.kernels.parallel import cores, each, row_chunks
from first_call import cold_rows
from harness import REPEATS, Row, at_least, benchmark, seconds
from one_row import one_row
from text_memory import memory_by_threads

PAUSE = 0.2  # seconds; after a product, OpenBLAS's threads keep their cores busy for some time
SIMULATED = (4, 8, 16, 32, 64)


def elapsed(act: Callable[[], Any], calls: int = 1) -> tuple[float, float]:
    """Elapsed and CPU seconds of one call, after a pause in which BLAS threads of the call before come to rest."""
    time.sleep(PAUSE)
    start, cpu = time.perf_counter(), time.process_time()
    for _ in range(calls):
        act()
    return (time.perf_counter() - start) / calls, (time.process_time() - cpu) / calls


def measure(job: Job, threads: int) -> Iterator[Row | str]:
    """Yield the rows of a job, and what follows from its times."""
    job.ours()  # compiles
    theirs: list[tuple[float, float]] = []
    ours: list[tuple[float, float]] = []
    alone: list[tuple[float, float]] = []
    for turn in range(REPEATS):
        if job.theirs is not None and turn < job.peer_repeats:
            theirs.append(elapsed(job.theirs, job.calls))
        deciban.set_threads(threads)
        ours.append(elapsed(job.ours, job.calls))
        deciban.set_threads(1)
        alone.append(elapsed(job.ours, job.calls))
        deciban.set_threads(None)
    # the last time of a slow peer serves for the repeats that it did not run
    peers = [theirs[min(turn, len(theirs) - 1)] for turn in range(REPEATS)] if theirs else []
    row = _row(job.name, job.peer, peers, ours, None if job.reach is None else at_least(job.reach))
    yield row
    if threads > 1:
        gain = None if job.gain is None else at_least(job.gain)
        yield _row(f"the same, {threads} threads", "ours, one thread", alone, ours, gain)
    mine, one = median(row.our_elapsed), median(wall for wall, _ in alone)
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


def _row(job: str, peer: str, theirs: list[Any], ours: list[Any], reach: Any) -> Row:
    """Return a row by the clock; times are pairs of elapsed and CPU seconds."""
    return Row(
        job,
        peer,
        [cpu for _, cpu in theirs],
        [cpu for _, cpu in ours],
        [peer / own for (peer, _), (own, _) in zip(theirs, ours)],
        reach,
        their_elapsed=[wall for wall, _ in theirs],
        our_elapsed=[wall for wall, _ in ours],
        by_clock=True,
    )


def read(array: Any) -> float:
    """Sum all numbers of an array, in threads."""
    flat = array.reshape(-1)
    return float(sum(each(lambda part: flat[part].sum(), row_chunks(len(flat), 2))))


def run(jobs: Callable[[float], Iterator[Job]], share: float) -> Iterator[Row | str]:
    """Measure jobs, BLAS at its default number of threads."""
    threads = cores()
    yield from limits()
    with threadpool_limits(threads):
        for job in jobs(share):
            yield from measure(job, threads)


def limits() -> Iterator[str]:
    """Yield a warning if the environment limits the threads of the peers."""
    if os.environ.get("OPENBLAS_NUM_THREADS") or os.environ.get("OMP_NUM_THREADS"):
        yield "OPENBLAS_NUM_THREADS or OMP_NUM_THREADS is set: the peers are limited by it, unset it for this table"


@benchmark("clock-gaussian")
def clock_gaussian(share: float) -> Iterator[Row | str]:
    """Elapsed time of Gaussian fits and answers, a covariance or variances of each class."""
    yield from run(dense_jobs, share)


@benchmark("clock-tied")
def clock_tied(share: float) -> Iterator[Row | str]:
    """Elapsed time of fits and answers of Gaussians that share a covariance."""
    yield from run(tied_jobs, share)


@benchmark("clock-mixtures")
def clock_mixtures(share: float) -> Iterator[Row | str]:
    """Elapsed time of EM for Gaussian mixtures."""
    yield from run(mixture_jobs, share)


@benchmark("clock-hidden")
def clock_hidden(share: float) -> Iterator[Row | str]:
    """Elapsed time of EM for hidden Markov models, mixtures of words and PLSA."""
    yield from run(hidden_jobs, share)


@benchmark("clock-counts")
def clock_counts(share: float) -> Iterator[Row | str]:
    """Elapsed time of fits and scores of categories, and of words as sparse rows."""
    yield from run(count_jobs, share)


@benchmark("clock-left-out")
def clock_left_out(share: float) -> Iterator[Row | str]:
    """Elapsed time of exact leave-one-out, one thread and all of them."""
    yield from run(left_out_jobs, share)


@benchmark("clock-small")
def clock_small(share: float) -> Iterator[Row | str]:
    """Elapsed time of fits and answers of small tables: more threads must not slow them down."""
    yield from run(small_jobs, 1.0)


@benchmark("clock-text")
def clock_text(share: float) -> Iterator[Row | str]:
    """Elapsed time of fits from raw text."""
    yield from run(text_fit_jobs, share)


@benchmark("clock-text-scores")
def clock_text_scores(share: float) -> Iterator[Row | str]:
    """Elapsed time of scores and sparse rows from raw text."""
    yield from run(text_score_jobs, share)


@benchmark("clock-text-default")
def clock_text_default(share: float) -> Iterator[Row | str]:
    """Elapsed time of the default fit from raw text: chosen and calibrated."""
    yield from run(default_text_jobs, share)


@benchmark("clock-tables-default")
def clock_tables_default(share: float) -> Iterator[Row | str]:
    """Elapsed time of the default fit of tables: chosen and calibrated."""
    yield from run(default_table_jobs, share)


@benchmark("clock-one-row")
def clock_one_row(share: float) -> Iterator[Row | str]:
    """Elapsed time of answers to one row of numbers, of a mixed table, of a text; intervals of one row."""
    yield from limits()
    with threadpool_limits(cores()):
        yield from one_row(share, by_clock=True)


@benchmark("clock-first")
def clock_first(share: float) -> Iterator[Row | str]:
    """Elapsed time of the first fit and answer of a process, nothing compiled."""
    yield from limits()
    yield from cold_rows(share)


@benchmark("clock-memory")
def clock_memory(share: float) -> Iterator[Row | str]:
    """The most memory of fits that stream 2 GB of texts, with one thread and with two."""
    yield from memory_by_threads(share)
