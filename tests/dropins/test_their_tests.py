"""Some of scikit-learn's own tests, run against the drop-ins; `make test-sklearn` runs all of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

RUNNER = Path(__file__).parents[1] / "peers" / "run_sklearn_tests.py"


def test_naive_bayes():
    pytest.importorskip("sklearn.tests.test_naive_bayes")
    command = [sys.executable, str(RUNNER), "naive_bayes", "-k", "gnb or mnb or categoricalnb"]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stdout + done.stderr
    assert "naive_bayes: " in done.stdout
    assert "(100.0%)" in done.stdout


def test_every_public_estimator_passes_scikit_learns_checks():
    done = subprocess.run([sys.executable, str(RUNNER), "checks"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(" passed, 0 failed") >= 29
