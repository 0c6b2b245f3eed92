"""Whitening, and one row out, against plain linear algebra."""

import numpy as np
import pytest

from deciban.families.gaussian.densities import singular_columns, whiten
from deciban.families.gaussian.posteriors import determinant_without, distance_without, own_distance_without


def matrices(m=3, D=4, seed=0):
    rows = np.random.default_rng(seed).normal(size=(m, 10, D)) * 10.0 ** np.arange(D)
    return rows.transpose(0, 2, 1) @ rows


def test_a_whitener_is_a_root_of_the_inverse():
    M = matrices()
    root = whiten(M)
    np.testing.assert_allclose(
        root.whitener @ root.whitener.transpose(0, 2, 1) @ M, np.tile(np.eye(4), (3, 1, 1)), atol=1e-9
    )
    np.testing.assert_allclose(root.log_det, np.linalg.slogdet(M)[1])
    assert (np.tril(root.whitener, -1) == 0).all()


def test_the_pivot_is_the_unexplained_share_of_variance():
    share = 1e-6
    M = np.array([[1.0, np.sqrt(1 - share)], [np.sqrt(1 - share), 1.0]]) * np.outer([1, 1e5], [1, 1e5])
    assert whiten(M[None]).pivot[0] == pytest.approx(share, rel=1e-6)


def test_what_is_not_positive_has_no_pivot():
    for bad in (np.diag([1.0, 0.0]), np.array([[1.0, 2.0], [2.0, 1.0]]), np.full((2, 2), np.nan)):
        root = whiten(np.stack([bad, np.eye(2)]))
        np.testing.assert_array_equal(root.pivot, [0.0, 1.0])
        assert np.isnan(root.log_det[0])


def test_columns_at_fault_are_found():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 5))
    X[:, 3] = 0
    X[:, 4] = X[:, 0] + X[:, 1]
    constant, dependent = singular_columns(X.T @ X, 1e-12)
    assert constant == [3]
    assert len(dependent) == 1
    assert dependent[0] in (0, 1, 4)
    assert singular_columns(np.zeros((2, 2)), 1e-12) == ([0, 1], [])


@pytest.mark.parametrize("w", [1.0, 0.4])
def test_a_row_leaves_by_a_rank_one_step(w):
    rng = np.random.default_rng(0)
    kappa, psi, mean, x, other = 7.5, matrices(1)[0], rng.normal(size=4), rng.normal(size=4), rng.normal(size=4)
    u, left = x - mean, kappa - w
    a = w * kappa / left
    after, moved = psi - a * np.outer(u, u), (kappa * mean - w * x) / left
    inverse, q = np.linalg.inv(psi), u @ np.linalg.inv(psi) @ u
    shrink = determinant_without(q, a)
    assert shrink == pytest.approx(np.linalg.det(after) / np.linalg.det(psi))
    v = x - other
    assert distance_without(v @ inverse @ v, v @ inverse @ u, a, shrink) == pytest.approx(v @ np.linalg.inv(after) @ v)
    assert own_distance_without(q, kappa / left, shrink) == pytest.approx(
        (x - moved) @ np.linalg.inv(after) @ (x - moved)
    )
