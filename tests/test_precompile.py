"""After `python -m deciban.precompile`, the usual jobs compile nothing more."""

import gc
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from deciban import Categorical, Gaussian, GenerativeClassifier, Multinomial, kernels, precompile


def compiled():
    """Signatures of each kernel of this process."""
    from deciban.kernels.jit import Kernel

    return {
        (kernel.function.__module__, kernel.function.__qualname__, signature)
        for kernel in gc.get_objects()
        if isinstance(kernel, Kernel)
        for signature in kernel.run.signatures
    }


def usual_jobs():
    rng = np.random.default_rng(0)
    n = 250_000
    y, X = rng.integers(0, 4, n), rng.normal(size=(n, 20))
    texts = ["the same few words once more " + str(i) for i in range(20_000)]
    yield "auto", texts, [i % 2 for i in range(20_000)]
    yield Gaussian("diagonal"), X, y
    yield Gaussian("full"), X, y
    yield Gaussian("tied"), X, y
    yield Categorical(), rng.integers(0, 5, (n, 8)), y
    yield Multinomial(), sp.csr_array(rng.poisson(1.0, (n // 4, 20)).astype(float)), y[: n // 4]


@pytest.mark.slow
def test_its_jobs_compile_what_the_usual_jobs_need():
    code = "import test_precompile; test_precompile.check()"
    done = subprocess.run([sys.executable, "-c", code], cwd="tests", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def check():
    with kernels.forced("numba"):
        for _, job in precompile.jobs():
            job()
    before = compiled()
    assert before
    for family, rows, labels in usual_jobs():
        clf = GenerativeClassifier(family).fit(rows, labels)
        clf.predict(rows)
        clf.predict_proba(rows)
        assert compiled() == before, compiled() - before
