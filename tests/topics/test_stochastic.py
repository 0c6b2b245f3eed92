"""Stochastic passes: documents go on in the direction they moved, and no token is lost or counted twice by it."""

import numpy as np
import pytest

from deciban.topics.kernels import SINGLE_THREAD
from deciban.topics.lda import OVER_RELAXATION, Priors, StochasticCVB0, extrapolate
from topics.simulated import corpus


def engine(X, K=8):
    return StochasticCVB0(X, K, Priors.given(0.1, 0.01, K), 0, SINGLE_THREAD, batch=100)


def test_counts_go_on_by_half_and_never_below_nothing():
    before, now = np.array([[4.0, 1.0, 2.0]], np.float32), np.array([[1.0, 4.0, 2.0]], np.float32)
    np.testing.assert_allclose(extrapolate(now, before), [[0.0, 4 + 3 * OVER_RELAXATION, 2.0]])


def test_what_does_not_move_stays():
    counts = np.random.default_rng(0).gamma(1.0, size=(5, 3)).astype(np.float32)
    np.testing.assert_array_equal(extrapolate(counts, counts), counts)


def test_every_token_counts_once_after_any_number_of_passes():
    X, _ = corpus(D=300)
    found = engine(X)
    for _ in range(4):
        found.step()
        whole = found.whole()
        assert whole.final().sum(dtype=float) == pytest.approx(X.sum(), rel=1e-5)
        np.testing.assert_allclose(whole.final().sum(axis=1), X.sum(axis=0), rtol=1e-3, atol=1e-3)


def test_passes_come_to_rest():
    """Over-relaxation beyond what is stable would swing for ever."""
    X, _ = corpus(D=300)
    found = engine(X)
    tables = []
    for _ in range(60):
        found.step()
        tables.append(found.table(np.arange(X.shape[1])))
    early, late = (np.abs(tables[at] - tables[at - 1]).sum() for at in (5, 59))
    assert late < early / 5
