import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deciban import kernels
from kernels.agreement import agree, both, thorough


@st.composite
def score_tables(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, K = draw(st.sampled_from([0, 1, 63, 64, 65, 300])), draw(st.integers(1, 20))
    scores = rng.normal(draw(st.sampled_from([0.0, -1e4])), draw(st.sampled_from([1.0, 300.0])), size=(n, K))
    for value in draw(st.sets(st.sampled_from([-np.inf, np.nan]))):
        scores[rng.random(scores.shape) < 0.2] = value
    if n > 1 and draw(st.booleans()):
        scores[1] = -np.inf
    return scores


@thorough
@given(score_tables())
def test_probabilities_agree_with_their_twins(scores):
    agree(*both(kernels.log_softmax, scores), rtol=1e-13, atol=1e-12)
    agree(*both(kernels.softmax, scores), rtol=1e-13, atol=1e-300)
    agree(*both(kernels.log_sum_exp, scores), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("body", ["numba", "numpy"])
@pytest.mark.parametrize("function", [kernels.log_softmax, kernels.softmax])
def test_probabilities_can_replace_the_scores(function, body):
    scores = np.random.default_rng(0).normal(size=(100, 3))
    for target in (scores.copy(), np.asfortranarray(scores), scores.astype(np.float32)):
        with kernels.forced(body):
            result = function(scores, out=target)
            assert result is target
            np.testing.assert_allclose(result, function(scores), rtol=1e-6)
    with kernels.forced(body):
        expected = function(scores)
        np.testing.assert_array_equal(function(scores, scores), expected)


@pytest.mark.parametrize("body", ["numba", "numpy"])
@pytest.mark.parametrize("function", [kernels.log_softmax, kernels.softmax])
def test_a_row_is_added_to_the_scores_as_if_before(function, body):
    rng = np.random.default_rng(0)
    scores, row = 50 * rng.normal(size=(1_000, 7)), np.log(rng.dirichlet(np.ones(7)))
    scores[5], row[2] = -np.inf, -np.inf
    given = scores.copy()
    with kernels.forced(body):
        expected = function(scores + row)
        np.testing.assert_array_equal(function(scores, row=row), expected)
        np.testing.assert_array_equal(function(np.asfortranarray(scores), row=row), expected)
        np.testing.assert_array_equal(scores, given)
        np.testing.assert_array_equal(function(scores, out=scores, row=row), expected)
        np.testing.assert_array_equal(scores, expected)


def test_numbers_that_are_not_finite_are_found_in_any_chunk():
    rows = np.zeros((1_500_000, 3))
    for bad in (np.nan, np.inf, -np.inf):
        assert kernels.all_finite(rows)
        rows[-1, 1] = bad
        assert not kernels.all_finite(rows)
        rows[-1, 1] = 0.0


def test_positions_of_equal_numbers_are_those_of_the_whole_column():
    column = np.random.default_rng(0).integers(0, 1_000, (400_000, 2)).astype(float)[:, 0]
    np.testing.assert_array_equal(kernels.rows_equal(column, 7.0), np.flatnonzero(column == 7))
    assert not len(kernels.rows_equal(column, -np.inf))
    assert not len(kernels.rows_equal(column[:0], 7.0))


@pytest.mark.parametrize("body", ["numba", "numpy"])
def test_impossible_rows_stay_impossible(body):
    scores = np.array([[-np.inf, -np.inf], [0.0, -np.inf]])
    with kernels.forced(body):
        np.testing.assert_array_equal(kernels.log_softmax(scores), scores)
        np.testing.assert_array_equal(kernels.softmax(scores), [[0, 0], [1, 0]])
        np.testing.assert_array_equal(kernels.log_sum_exp(scores), [-np.inf, 0])


def test_exp_is_right_to_the_last_place():
    from deciban.kernels.intrinsics import exp

    x = np.random.default_rng(0).uniform(-708, 700, 20_000)
    truth = np.exp(x.astype(np.longdouble))
    ours = np.array([exp(each) for each in x])
    assert np.max(np.abs((ours - truth) / np.spacing(truth.astype(np.float64)))) <= 1.0


@thorough
@given(
    st.lists(st.integers(-(2**7), 2**7 - 1), max_size=50),
    st.sampled_from([np.int64, np.int32, np.int8, np.uint8, np.uint64]),
    st.sampled_from([0, 2**31 - 200, 2**63 + 5]),
)
def test_labels_are_encoded_as_by_unique(labels, dtype, shift):
    wide = np.array(labels, np.int64)
    y = wide.astype(dtype) + np.array(shift % (np.iinfo(dtype).max // 2 + 1), dtype)
    values, codes = np.unique(y, return_inverse=True)
    ours, twin = both(kernels.encode_integers, y)
    if twin is None:  # casting made negative labels huge
        assert ours is None
        assert int(y.max()) - int(y.min()) >= 65_536
        return
    for found in (ours, twin):
        np.testing.assert_array_equal(found[0], values)
        assert found[0].dtype == dtype
        np.testing.assert_array_equal(found[1], codes)
        assert found[1].dtype == np.intp


def test_booleans_are_labels_and_wide_ranges_are_not():
    values, codes = kernels.encode_integers(np.array([True, False]))
    assert values.tolist() == [False, True]
    assert codes.tolist() == [1, 0]
    assert kernels.encode_integers(np.array([0, 65_536])) is None
    assert kernels.encode_integers(np.array([0, 65_535])) is not None


@thorough
@given(st.sampled_from([0, 1, 7, 300]), st.integers(1, 6), st.booleans(), st.integers(0, 2**32))
def test_class_weights_agree_with_their_twin(n, K, weighted, seed):
    rng = np.random.default_rng(seed)
    weight = rng.random(n) * (rng.random(n) < 0.8) if weighted else None
    agree(*both(kernels.class_weights, rng.integers(0, K, n), weight, K), rtol=1e-13)


@pytest.mark.parametrize("body", ["numba", "numpy"])
@pytest.mark.parametrize("code", [-1, 2])
def test_a_class_that_is_not_there_has_no_weight(body, code):
    with kernels.forced(body), pytest.raises(IndexError, match="class codes"):
        kernels.class_weights(np.array([0, code]), None, 2)
