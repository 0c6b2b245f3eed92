import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deciban import kernels
from kernels.agreement import agree, both, frozen, thorough

TYPES = [np.int64, np.int8, np.uint8, np.uint64, np.bool_]


@st.composite
def category_tables(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, D, K = draw(st.sampled_from([0, 1, 5, 200])), draw(st.integers(1, 6)), draw(st.integers(1, 4))
    dtype = draw(st.sampled_from(TYPES))
    sizes = rng.integers(1, 3 if dtype == np.bool_ else 60, D)
    lowest = -1 if dtype in (np.int64, np.int8) else 0
    X = rng.integers(lowest, sizes, (n, D)).astype(dtype)
    X = draw(st.sampled_from([np.ascontiguousarray, np.asfortranarray, frozen]))(X)
    weight = rng.random(n) * (rng.random(n) < 0.8) if draw(st.booleans()) else None
    return X, rng.integers(0, K, n), weight, sizes, K


@thorough
@given(category_tables())
def test_counts_agree_with_their_twin(table):
    X, codes, weight, sizes, K = table
    agree(*both(kernels.category_counts, X, codes, weight, sizes, K), rtol=1e-12)


@thorough
@given(category_tables())
def test_growing_counts_agree_with_their_twin_and_with_known_sizes(table):
    X, codes, weight, _, K = table
    ours, twin = both(kernels.category_counts_growing, X, codes, weight, K)
    agree(ours, twin, rtol=1e-12)
    if weight is None:
        np.testing.assert_array_equal(kernels.category_counts(X, codes, None, ours[0], K), ours[1])


@thorough
@given(category_tables(), st.integers(1, 20), st.integers(0, 2**32))
def test_scores_agree_with_their_twin(table, K, seed):
    X, _, _, sizes, _ = table
    rng = np.random.default_rng(seed)
    weights, unseen = rng.normal(size=(sizes.sum(), K)), rng.normal(size=(len(sizes), K))
    weights[rng.random(weights.shape) < 0.1] = -np.inf
    known = np.maximum(sizes - rng.integers(0, 3, len(sizes)), 0)  # the largest categories are unseen
    agree(*both(kernels.category_scores, X, weights, np.cumsum(sizes) - sizes, known, unseen))


@pytest.mark.parametrize("body", ["numba", "numpy"])
def test_missing_adds_nothing_and_strangers_add_the_unseen_weight(body):
    X = np.array([[-1, 0], [1, 9], [-7, -1]])
    weights, unseen = np.array([[1.0], [2.0], [4.0]]), np.array([[100.0], [1000.0]])
    with kernels.forced(body):
        scores = kernels.category_scores(X, weights, np.array([0, 2]), np.array([2, 1]), unseen)
        np.testing.assert_array_equal(scores, [[4], [1002], [100]])


@pytest.mark.parametrize("body", ["numba", "numpy"])
@pytest.mark.parametrize("value", [-2, 3, 2**40])
@pytest.mark.parametrize("order", ["C", "F"])
def test_values_that_are_no_category_are_reported_with_their_place(body, value, order):
    X = np.zeros((9000, 2), np.int64, order=order)
    X[8000, 1] = value
    codes = np.zeros(9000, int)
    with kernels.forced(body):
        with pytest.raises(kernels.CategoryError) as caught:
            kernels.category_counts(X, codes, None, np.array([3, 3]), 1)
        assert (caught.value.row, caught.value.column, caught.value.value) == (8000, 1, value)
        if value == 3:
            assert kernels.category_counts_growing(X, codes, None, 1)[0].tolist() == [1, 4]
        else:
            with pytest.raises(kernels.CategoryError) as caught:
                kernels.category_counts_growing(X, codes, None, 1)
            assert (caught.value.row, caught.value.column, caught.value.value) == (8000, 1, value)


@pytest.mark.parametrize("body", ["numba", "numpy"])
def test_a_row_of_weight_zero_may_hold_anything(body):
    X, weight = np.array([[0], [-5], [7]]), np.array([1.0, 0.0, 0.0])
    with kernels.forced(body):
        sizes, counts = kernels.category_counts_growing(X, np.zeros(3, int), weight, 1)
    assert sizes.tolist() == [1]
    assert counts.tolist() == [[1.0]]


def test_columns_grow_again_and_again():
    rng = np.random.default_rng(0)
    X = (np.arange(30_000)[:, None] // np.array([1, 7, 3000])) + rng.integers(-1, 2, (30_000, 3))
    X = np.maximum(X, -1)
    agree(*both(kernels.category_counts_growing, X, rng.integers(0, 2, 30_000), None, 2))


@pytest.mark.parametrize("value", [-2, 2**40])
def test_what_is_no_category_is_found_behind_rows_of_weight_zero_that_hold_worse(value):
    X, weight = np.zeros((5000, 2), np.int64), np.ones(5000)
    X[4000:4500], weight[4000:4500] = -7, 0.0
    X[4600, 1] = value
    with kernels.forced("numba"), pytest.raises(kernels.CategoryError) as caught:
        kernels.category_counts_growing(X, np.zeros(5000, int), weight, 1)
    assert (caught.value.row, caught.value.column, caught.value.value) == (4600, 1, value)


def test_a_late_category_is_counted_with_its_weight_in_its_class():
    rng = np.random.default_rng(1)
    X, weight = rng.integers(-1, 3, (9001, 3)), rng.random(9001)  # an odd number: the last row has no partner
    X[5000:, 1] = rng.integers(0, 500, 4001)
    weight[6000:6100], X[6000:6100] = 0.0, 10**6
    agree(*both(kernels.category_counts_growing, X, rng.integers(0, 4, 9001), weight, 4), rtol=1e-12)
