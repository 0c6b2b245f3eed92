"""Random tables for the drop-ins, and the comparison of a drop-in with scikit-learn's class."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st


@st.composite
def tables(draw, kind="real"):
    """Rows, labels and weights; two rows or more of each class."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    K, D = draw(st.integers(2, 4)), draw(st.integers(1, 6))
    n = draw(st.integers(3 * K * (D + 1), 80 + 3 * K * (D + 1)))
    y = rng.permutation(np.arange(n) % K)
    names = draw(st.sampled_from([np.array(["b", "a", "d", "c"]), np.array([7, 3, -2, 100]), np.arange(4)]))
    if kind == "real":
        X = (
            rng.normal(size=(n, D)) * rng.uniform(0.5, 2, D)
            + rng.normal(size=(K, D))[y]
            + draw(st.sampled_from([0, 20]))
        )
        X = X.astype(draw(st.sampled_from([np.float64, np.float32])))
        X = np.asfortranarray(X) if draw(st.booleans()) else X
    else:
        X = rng.poisson(1.0, size=(n, D))
        X = X.astype(draw(st.sampled_from([np.int64, np.float64, np.int32])))
        if kind == "sparse" and draw(st.booleans()):
            X = draw(st.sampled_from([sp.csr_array, sp.csr_matrix, sp.csc_matrix]))(X)
    weight = rng.integers(1, 4, n).astype(float) if draw(st.booleans()) else None
    return X, names[y], weight


def agree(mine, peer, X, attributes, tolerance=1e-10):
    """Fitted attributes, their types, and answers."""
    if X.dtype == np.float32:
        tolerance = 2e-3  # scikit-learn sums in float32, deciban in float64
    for name in attributes:
        one, other = getattr(mine, name), getattr(peer, name)
        assert (
            np.asarray(one[0] if isinstance(one, list) else one).dtype
            == np.asarray(other[0] if isinstance(other, list) else other).dtype
        ), name
        for a, b in zip(one, other, strict=True) if isinstance(one, list) else [(one, other)]:
            if np.asarray(a).dtype.kind in "USO":
                np.testing.assert_array_equal(a, b)
            else:
                np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance, err_msg=name)
    expected, got = peer.predict_proba(X), mine.predict_proba(X)
    assert got.dtype == expected.dtype
    np.testing.assert_allclose(got, expected, rtol=0, atol=tolerance)
    log, logs = peer.predict_log_proba(X), mine.predict_log_proba(X)
    there = log > -30
    np.testing.assert_allclose(logs[there], log[there], rtol=tolerance, atol=tolerance)
    two = np.sort(expected, axis=1)[:, -2:]
    clear = two[:, 1] - two[:, 0] > 2 * tolerance  # where classes are level, rounding decides
    np.testing.assert_array_equal(mine.predict(X)[clear], peer.predict(X)[clear])
