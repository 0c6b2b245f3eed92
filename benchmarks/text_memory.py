"""Memory of a fit that streams texts from the disk: the vocabulary, the counts and the reservoir, not the corpus."""

from __future__ import annotations

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
BLOCK = 2_000  # documents written at a time
FIT = """
import resource, sys, time
from deciban import GenerativeClassifier, Text
start = time.process_time()
options = {} if sys.argv[2] == "auto" else {"transform": "counts", "pseudo_count": 1.0}
calibrate = "auto" if sys.argv[2] == "auto" else None
clf = GenerativeClassifier({"text": Text(**options)}, calibrate=calibrate).fit(sys.argv[1], "label")
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
words = clf.stats_.family.blocks["text"].labels["word"].size
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
        for kind, said in (("plain", "counts and a given pseudo-count"), ("auto", "as it is by default")):
            start = time.perf_counter()
            done = subprocess.check_output([sys.executable, "-c", FIT, str(path), kind], text=True)
            peak, spent, words, rows = map(float, done.split())
            verdict = "within" if peak <= MOST else "NOT within"
            yield (
                f"{path.stat().st_size / 1e9:.1f} GB of JSON lines, {rows:,.0f} documents, {words:,.0f} words, K = "
                f"{CLASSES}, {said}: {peak:,.0f} MB at most, {verdict} {MOST}; {spent:.0f} s CPU, "
                f"{time.perf_counter() - start:.0f} s"
            )
