"""Memory of a fit that streams texts from the disk: the vocabulary, the counts and the reservoir, not the corpus."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from harness import Row, benchmark

BYTES, WORDS, CLASSES = 2 * 10**9, 500_000, 20
LENGTH = 200  # words of a document
MOST = 700  # MB
MOST_MORE = 1.2  # of the memory of one thread, with two
KINDS = {"plain": "counts and a given pseudo-count", "auto": "as it is by default"}
BLOCK = 2_000  # documents written at a time
FIT = """
import resource, sys, time
from deciban import GenerativeClassifier, Text
start = time.process_time()
options = {} if sys.argv[2] == "auto" else {"transform": "counts", "pseudo_count": 1.0}
calibrate = "auto" if sys.argv[2] == "auto" else None
clf = GenerativeClassifier({"text": Text(**options)}, calibrate=calibrate).fit(sys.argv[1], "label")
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
(sums,) = clf.stats_.family.blocks.values()
words = sums.labels["word"].size
print(peak, time.process_time() - start, words, int(clf.stats_.rows.sum()))
"""


def write(path: Path, size: int, seed: int = 0) -> None:
    """A corpus whose words follow Zipf's law, the classes preferring some of them."""
    rng = np.random.default_rng(seed)
    names = np.array([f"w{i:x}" for i in range(WORDS)], dtype=object)
    heap = np.cumsum(1 / np.arange(1.0, WORDS + 1))
    with open(path, "w", encoding="utf-8") as out:
        while out.tell() < size:
            drawn = np.searchsorted(heap, rng.random((BLOCK, LENGTH)) * heap[-1])
            labels = rng.integers(0, CLASSES, BLOCK)
            drawn[:, ::10] = (drawn[:, ::10] * CLASSES + labels[:, None]) % WORDS
            rows = zip(labels.tolist(), names[drawn])
            out.writelines(f'{{"label": "c{label}", "text": "{" ".join(words)}"}}\n' for label, words in rows)


@benchmark("text-memory")
def text_memory(share: float) -> Iterator[Row | str]:
    """The most memory that a fit of texts takes, streamed from a file of 2 GB."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "corpus.jsonl")
        write(path, int(BYTES * share))
        for kind, said in KINDS.items():
            yield f"{said}: {_fit(path, kind)[1]}"


def memory_by_threads(share: float) -> Iterator[str]:
    """Yield the most memory of both fits, with one thread and with two; a second thread may take a fifth more."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "corpus.jsonl")
        write(path, int(BYTES * share))
        for kind, said in KINDS.items():
            (one, first), (two, second) = (_fit(path, kind, threads) for threads in (1, 2))
            verdict = "within" if two <= MOST_MORE * one else "NOT within"
            yield f"{said}, one thread: {first}"
            yield f"{said}, two threads: {second}; {two / one:.2f} of one thread's, {verdict} {MOST_MORE}"


def _fit(path: Path, kind: str, threads: int | None = None) -> tuple[float, str]:
    """Return the megabytes of a fit in a process of its own, and what is to be said of it."""
    environment = os.environ if threads is None else {**os.environ, "DECIBAN_NUM_THREADS": str(threads)}
    start = time.perf_counter()
    done = subprocess.check_output([sys.executable, "-c", FIT, str(path), kind], text=True, env=environment)
    peak, spent, words, rows = map(float, done.split())
    verdict = "within" if peak <= MOST else "NOT within"
    return peak, (
        f"{path.stat().st_size / 1e9:.1f} GB of JSON lines, {rows:,.0f} documents, {words:,.0f} words, K = {CLASSES}: "
        f"{peak:,.0f} MB at most, {verdict} {MOST}; {spent:.0f} s CPU, {time.perf_counter() - start:.0f} s"
    )
