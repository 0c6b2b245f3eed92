import numpy as np
import pytest
import scipy.sparse as sp

from deciban.statistics import Members


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    return rng.integers(0, 3, 20), rng.normal(size=(20, 4)), rng.uniform(0, 2, 20)


def test_totals_are_weighted_sums_per_group(rows):
    codes, X, weight = rows
    expected = np.stack([(weight[codes == k, None] * X[codes == k]).sum(axis=0) for k in range(3)])
    members = Members.hard(codes, 3, weight)
    np.testing.assert_allclose(members.total(X), expected)
    np.testing.assert_allclose(members.total(sp.csr_array(X)), expected)
    np.testing.assert_allclose(Members.soft(members.matrix().toarray()).total(sp.csr_array(X)), expected)


def test_groups_give_rows_and_weights(rows):
    codes, X, weight = rows
    members = Members.hard(codes, 3, weight)
    by_groups = np.stack([(w[:, None] * X[at]).sum(axis=0) for _, at, w in members.groups()])
    np.testing.assert_allclose(by_groups, members.total(X))
    soft = Members.soft(members.matrix().toarray())
    np.testing.assert_allclose(np.stack([(w[:, None] * X[at]).sum(axis=0) for _, at, w in soft.groups()]), by_groups)


def test_moments_pass_over_missing_values(rows):
    codes, X, _ = rows
    X = X.copy()
    X[3, 1] = np.nan
    members = Members.hard(codes, 3)
    seen, first, second = members.moments(X, np.full(4, 0.5))
    kept = ~np.isnan(X)
    Z = np.where(kept, X - 0.5, 0)
    np.testing.assert_allclose(seen, members.total(kept.astype(float)))
    np.testing.assert_allclose(first, members.total(Z))
    np.testing.assert_allclose(second, members.total(Z**2))
    soft = Members.soft(members.matrix().toarray())
    for got, expected in zip(soft.moments(X, np.full(4, 0.5)), (seen, first, second)):
        np.testing.assert_allclose(got, expected)


def test_scatter_is_the_same_for_hard_and_soft(rows):
    codes, X, weight = rows
    members = Members.hard(codes, 3, weight)
    soft = Members.soft(members.matrix().toarray())
    for a, b in zip(members.scatter(X, X[0]), soft.scatter(X, X[0])):
        np.testing.assert_allclose(a, b)


def test_taking_rows_takes_their_weights(rows):
    codes, _, weight = rows
    members = Members.hard(codes, 3, weight).take(np.arange(5))
    np.testing.assert_allclose(members.weights(), np.bincount(codes[:5], weight[:5], minlength=3))
    assert len(members) == 5
