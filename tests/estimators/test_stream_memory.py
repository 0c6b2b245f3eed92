"""A stream of texts takes the memory of its vocabulary and its first rows, not of its length."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

DOCUMENTS, WORDS, CLASSES = 160_000, 30_000, 4
FIT = """
import sys
from deciban import GenerativeClassifier, Text

def memory(what):  # of this process; what `getrusage` says may be its parent's
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(what))

imports, options = memory("VmRSS"), {} if sys.argv[1] == "auto" else {"transform": "counts", "pseudo_count": 1.0}
clf = GenerativeClassifier({"text": Text(**options)}).fit(sys.argv[2], "label")
print(int(clf.stats_.rows.sum()), memory("VmHWM") - imports)
"""


@pytest.fixture(scope="module")
def streams(tmp_path_factory):
    """Files of 68 and 274 MB: the same documents twice and eight times. With less, the reader is not at its limits."""
    folder, rng = tmp_path_factory.mktemp("streams"), np.random.default_rng(0)
    names = np.array([f"w{word}" for word in range(WORDS)], dtype=object)
    drawn = (WORDS ** rng.random((DOCUMENTS, 40))).astype(int) - 1
    lines = [
        json.dumps({"label": f"c{label}", "text": " ".join(names[words])}) + "\n"
        for label, words in zip(rng.integers(0, CLASSES, DOCUMENTS), drawn)
    ]
    paths = [folder / "twice.jsonl", folder / "eight times.jsonl"]
    for path, times in zip(paths, (2, 8)):
        with open(path, "w") as out:
            for _ in range(times):
                out.writelines(lines)
    return paths


def fitted(path, kind):
    """The rows of a fit, and the kilobytes that it took beyond the imports."""
    done = subprocess.check_output([sys.executable, "-c", FIT, kind, str(path)], text=True)
    return tuple(map(int, done.split()))


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of memory cannot be asked for")
@pytest.mark.parametrize("kind", ["given", "auto"])
def test_four_times_the_documents_take_no_more_memory(streams, kind):
    (rows, memory), (all_rows, memory_of_all) = (fitted(path, kind) for path in streams)
    assert (rows, all_rows) == (2 * DOCUMENTS, 8 * DOCUMENTS)
    assert memory_of_all < 1.15 * memory
