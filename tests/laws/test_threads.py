"""Results are the same to the bit for any number of threads."""

import numpy as np
import pytest

import deciban
from cases import CASES, close
from deciban import kernels
from deciban.kernels import parallel
from deciban.text import documents

pytestmark = pytest.mark.slow

each_case = pytest.mark.parametrize("case", CASES, ids=repr)


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    """Compiled versions for all inputs, in chunks of a few rows, so that small tables have many."""
    monkeypatch.setattr(parallel, "CHUNK_WORK", 300)
    monkeypatch.setattr(parallel, "SUM_WORK", 0)
    monkeypatch.setattr(documents, "BYTES_PER_RANGE", 64)
    with kernels.forced("numba"):
        yield
    deciban.set_threads(None)


def results(case, threads):
    """Sums, scores and leave-one-out scores."""
    deciban.set_threads(threads)
    family, X, members = case.data(3, 300, weighted=True, gaps=case.gaps)
    stats = family.collect(X, members)
    density = family.estimate(stats, "mean")
    left_out = (family.leave_one_out(stats, X, members, rule) for rule in ("mean", "predictive"))
    return stats, [density.log_density(X), family.estimate(stats, "predictive").log_density(X), *left_out]


@each_case
def test_bits_do_not_depend_on_the_number_of_threads(case):
    stats, scores = results(case, 1)
    for threads in (2, 3, 8):
        other, others = results(case, threads)
        close(stats, other, exact=True)
        for ours, theirs in zip(scores, others, strict=True):
            np.testing.assert_array_equal(ours, theirs)
