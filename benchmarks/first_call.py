"""The first fit and answer of a new process, with texts: wall seconds, from its first import on."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from statistics import median

from harness import REPEATS, Row, at_most, leave_bytecode

TEXTS = """
texts = ["the same few words once more " + str(i) for i in range({n})]
labels = [i % 2 for i in range({n})]
"""
OURS = """
import time
start = time.perf_counter()
from deciban import GenerativeClassifier
{texts}
GenerativeClassifier().fit(texts, labels).predict(texts[:{asked}])
first, cpu = time.perf_counter(), time.process_time()
GenerativeClassifier().fit(texts, labels).predict(texts[:{asked}])
print(first - start, time.perf_counter() - first, cpu)
"""
THEIRS = """
import time
start = time.perf_counter()
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
{texts}
make_pipeline(CountVectorizer(), MultinomialNB()).fit(texts, labels).predict(texts[:{asked}])
first, cpu = time.perf_counter(), time.process_time()
make_pipeline(CountVectorizer(), MultinomialNB()).fit(texts, labels).predict(texts[:{asked}])
print(first - start, time.perf_counter() - first, cpu)
"""
NUMBERS = """
import time
start = time.perf_counter()
{load}
import numpy as np
rng = np.random.default_rng(0)
X, y = rng.normal(size=({n}, 20)), rng.integers(0, 3, {n})
{model}.fit(X, y).predict(X)
first, cpu = time.perf_counter(), time.process_time()
{model}.fit(X, y).predict(X)
print(first - start, time.perf_counter() - first, cpu)
"""
PEER = "CountVectorizer + MultinomialNB"
MANY, FEW, ROWS = 20_000, 12, 100_000
MORE = 1.0  # seconds that a first fit and answer may take beyond the peer's


def start_rows() -> Iterator[Row | str]:
    """Without and with compiled code on disk; and a dozen texts, which nothing is compiled for."""
    leave_bytecode()
    with tempfile.TemporaryDirectory() as folder:
        many, theirs = _code(OURS, MANY, MANY), _code(THEIRS, MANY, MANY)
        job = f"first fit and answer, {MANY:,} texts"
        cold, _, _ = _process(many, folder, OPENBLAS_NUM_THREADS="1")
        yield Row(f"{job}, nothing compiled, wall", "", [], [cold], [], at_most(15, "s"))
        yield from _beside(f"{job}, compiled before, wall", theirs, many, folder, 1.0)
        few = f"first fit of {FEW} texts and answer to one, wall"
        yield from _beside(few, _code(THEIRS, FEW, 1), _code(OURS, FEW, 1), folder)


def cold_rows(share: float) -> Iterator[Row | str]:
    """Yield the first fit and answer of a process without compiled code, by the clock, beside the peer's."""
    leave_bytecode()
    n, rows = int(MANY * share), int(ROWS * share)
    models = {
        kind: NUMBERS.format(load="from deciban import GenerativeClassifier, Gaussian", n=rows, model=model)
        for kind, model in (
            ("diagonal", "GenerativeClassifier(Gaussian('diagonal'))"),
            ("full", "GenerativeClassifier(Gaussian('full'))"),
            ("default", "GenerativeClassifier()"),
        )
    }
    for kind, load, model in (
        ("diagonal", "naive_bayes", "GaussianNB"),
        ("full", "discriminant_analysis", "QuadraticDiscriminantAnalysis"),
        ("default", "naive_bayes", "GaussianNB"),
    ):
        theirs = NUMBERS.format(load=f"from sklearn.{load} import {model}", n=rows, model=f"{model}()")
        yield from _cold(f"first fit and answer, {rows:,} × 20 numbers, {kind}", model, theirs, models[kind])
    yield from _cold(f"first fit and answer, {n:,} texts", PEER, _code(THEIRS, n, n), _code(OURS, n, n))


def _cold(job: str, peer: str, theirs: str, ours: str) -> Iterator[Row | str]:
    """Turn about, each in a process of its own, ours with an empty place for compiled code every time."""
    times = []
    for _ in range(REPEATS):
        with tempfile.TemporaryDirectory() as folder:
            times.append((_process(theirs, folder), _process(ours, folder)))
    (their_wall, their_next, their_cpu), (our_wall, our_next, our_cpu) = (
        [list(column) for column in zip(*side)] for side in zip(*times)
    )
    ratios = [a / b for a, b in zip(their_wall, our_wall)]
    most = at_most(round(median(their_wall) + MORE, 2), "s")
    yield Row(
        f"{job}, nothing compiled", peer, their_cpu, our_cpu, ratios, most,
        their_elapsed=their_wall, our_elapsed=our_wall, by_clock=True,
    )  # fmt: skip
    yield f"{job}: the same once more in that process {median(our_next):.3g} s, the peer's {median(their_next):.3g} s"


def _beside(job: str, theirs: str, ours: str, folder: str, most: float | None = None) -> Iterator[Row | str]:
    """Turn about, each in a process of its own; and what the same work takes once everything is loaded."""
    one = {"OPENBLAS_NUM_THREADS": "1"}
    times = [(*_process(theirs, folder, **one)[:2], *_process(ours, folder, **one)[:2]) for _ in range(REPEATS)]
    their_first, their_next, our_first, our_next = (list(column) for column in zip(*times))
    ratios = [a / b for a, b in zip(their_first, our_first)]
    yield Row(job, PEER, their_first, our_first, ratios, None if most is None else at_most(most, "s"))
    yield f"{job}: the same once more in that process {median(our_next):.3g} s, the peer's {median(their_next):.3g} s"


def _code(program: str, n: int, asked: int) -> str:
    return program.format(texts=TEXTS.format(n=n), asked=asked)


def _process(code: str, folder: str, **variables: str) -> tuple[float, float, float]:
    """Wall seconds of the first call and of the second, and CPU seconds of the process until the first has ended."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": folder, **variables}
    first, again, cpu = subprocess.check_output([sys.executable, "-c", code], env=environment, text=True).split()
    return float(first), float(again), float(cpu)
