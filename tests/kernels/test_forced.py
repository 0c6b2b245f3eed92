"""The environment variable DECIBAN_KERNELS forces one version of all kernels."""

import os
import subprocess
import sys

import pytest

SCRIPT = """
import sys
import numpy as np
from deciban import Gaussian, GenerativeClassifier, Text
X = np.random.default_rng(0).normal(size=({rows}, 20))
y = (X[:, 0] > 0).astype(int)
GenerativeClassifier(Gaussian()).fit(X, y).predict_proba(X)
if {rows} > 1000:
    texts = [f"red wine and bread {{at}}" for at in range({rows})]
    GenerativeClassifier(Text()).fit(texts, y).predict_proba(texts)
print("numba" in sys.modules)
"""


def run(kernels: str, rows: int) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", SCRIPT.format(rows=rows)],
        env={**os.environ, "DECIBAN_KERNELS": kernels},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(("kernels", "rows", "imported"), [("numpy", 60_000, "False"), ("numba", 50, "True")])
def test_one_version_is_used_for_all_sizes(kernels, rows, imported):
    done = run(kernels, rows)
    assert (done.returncode, done.stdout.strip()) == (0, imported), done.stderr


def test_another_value_is_refused():
    done = run("fast", 10)
    assert done.returncode
    assert "DECIBAN_KERNELS='fast' must be 'numpy' or 'numba', or unset" in done.stderr
