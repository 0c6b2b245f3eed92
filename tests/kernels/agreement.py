"""Compiled and numpy version of a kernel on the same input, and strategies for difficult inputs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from deciban import kernels

# The first example includes compilation, which takes seconds.
thorough = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


def both(function, *args, **options):
    """Results of the compiled and of the numpy version."""
    with kernels.forced("numba"):
        compiled = function(*args, **options)
    with kernels.forced("numpy"):
        return compiled, function(*args, **options)


def agree(ours, truth, rtol=1e-10, atol=1e-10):
    """Assert equality up to rounding where the reference is finite; elsewhere neither is finite."""
    ours, truth = (each if isinstance(each, tuple) else (each,) for each in (ours, truth))
    assert len(ours) == len(truth)
    for a, b in zip(ours, truth):
        assert a.shape == b.shape
        assert a.dtype == b.dtype
        finite = np.isfinite(b)
        np.testing.assert_array_equal(np.isfinite(a), finite)
        np.testing.assert_allclose(a[finite], b[finite], rtol=rtol, atol=atol)


def frozen(array):
    """Return a read-only copy."""
    array = array.copy(order="K")
    array.flags.writeable = False
    return array


@dataclass
class Table:
    X: np.ndarray
    codes: np.ndarray
    weight: np.ndarray | None
    origin: np.ndarray
    K: int

    @property
    def args(self):
        return self.X, self.codes, self.weight, self.origin, self.K


def spoil(draw, rng, X):
    """Set some values to NaN or inf, perhaps."""
    for value in draw(st.sets(st.sampled_from([np.nan, np.inf, -np.inf]))):
        X[rng.random(X.shape) < 0.05] = value
    return X


@st.composite
def tables(draw, gaps=True):
    """Dense rows in classes: any layout, float32 too, one class or one row or none, rows of weight 0."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, D, K = draw(st.sampled_from([0, 1, 2, 63, 64, 65, 300])), draw(st.integers(1, 20)), draw(st.integers(1, 5))
    X = rng.normal(draw(st.sampled_from([0.0, 1e3])), 1.0, size=(n, D))
    X = spoil(draw, rng, X) if gaps else X
    X = X.astype(draw(st.sampled_from([np.float64, np.float32])))
    X = draw(
        st.sampled_from([np.ascontiguousarray, np.asfortranarray, frozen, lambda X: np.repeat(X, 2, axis=0)[::2]])
    )(X)
    weight = rng.random(n) * (rng.random(n) < 0.8) if draw(st.booleans()) else None
    origin = rng.normal(size=D) if draw(st.booleans()) else np.zeros(D)
    return Table(X, rng.integers(0, K, n), weight, origin, K)
