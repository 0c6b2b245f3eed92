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
first = time.perf_counter()
GenerativeClassifier().fit(texts, labels).predict(texts[:{asked}])
print(first - start, time.perf_counter() - first)
"""
THEIRS = """
import time
start = time.perf_counter()
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
{texts}
make_pipeline(CountVectorizer(), MultinomialNB()).fit(texts, labels).predict(texts[:{asked}])
first = time.perf_counter()
make_pipeline(CountVectorizer(), MultinomialNB()).fit(texts, labels).predict(texts[:{asked}])
print(first - start, time.perf_counter() - first)
"""
PEER = "CountVectorizer + MultinomialNB"
MANY, FEW = 20_000, 12


def start_rows() -> Iterator[Row | str]:
    """Without and with compiled code on disk; and a dozen texts, which nothing is compiled for."""
    leave_bytecode()
    with tempfile.TemporaryDirectory() as folder:
        many, theirs = _code(OURS, MANY, MANY), _code(THEIRS, MANY, MANY)
        job = f"first fit and answer, {MANY:,} texts"
        cold, _ = _process(many, folder)
        yield Row(f"{job}, nothing compiled, wall", "", [], [cold], [], at_most(15, "s"))
        yield from _beside(f"{job}, compiled before, wall", theirs, many, folder, 1.0)
        few = f"first fit of {FEW} texts and answer to one, wall"
        yield from _beside(few, _code(THEIRS, FEW, 1), _code(OURS, FEW, 1), folder)


def _beside(job: str, theirs: str, ours: str, folder: str, most: float | None = None) -> Iterator[Row | str]:
    """Turn about, each in a process of its own; and what the same work takes once everything is loaded."""
    times = [(*_process(theirs, folder), *_process(ours, folder)) for _ in range(REPEATS)]
    their_first, their_next, our_first, our_next = (list(column) for column in zip(*times))
    ratios = [a / b for a, b in zip(their_first, our_first)]
    yield Row(job, PEER, their_first, our_first, ratios, None if most is None else at_most(most, "s"))
    yield f"{job}: the same once more in that process {median(our_next):.3g} s, the peer's {median(their_next):.3g} s"


def _code(program: str, n: int, asked: int) -> str:
    return program.format(texts=TEXTS.format(n=n), asked=asked)


def _process(code: str, folder: str) -> tuple[float, float]:
    """Wall seconds of the first call and of the second."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "NUMBA_CACHE_DIR": folder}
    first, again = subprocess.check_output([sys.executable, "-c", code], env=environment, text=True).split()
    return float(first), float(again)
