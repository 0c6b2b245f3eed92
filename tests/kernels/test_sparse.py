from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deciban import kernels
from kernels.agreement import agree, both, frozen, thorough


@st.composite
def sparse_rows(draw):
    """Rows that may be empty, with columns unsorted and repeated, stored zeros, and a first row not at 0."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, V = draw(st.sampled_from([0, 1, 5, 100])), draw(st.sampled_from([1, 7, 500]))
    lengths = rng.integers(0, draw(st.sampled_from([1, 4, 70])) + 1, n)
    skipped = draw(st.integers(0, 3))
    indptr = skipped + np.concatenate([[0], np.cumsum(lengths)])
    entries = int(indptr[-1]) + draw(st.integers(0, 3))
    index_type, data_type = draw(
        st.sampled_from([(np.int32, np.float64), (np.int64, np.float32), (np.int32, np.int64)])
    )
    data = rng.integers(0, 4, entries).astype(data_type)
    indices = rng.integers(0, V, entries).astype(index_type)
    parts = data, indices, indptr.astype(index_type)
    return tuple(frozen(part) for part in parts) if draw(st.booleans()) else parts, n, V


@st.composite
def sparse_classes(draw):
    parts, n, V = draw(sparse_rows())
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    K = draw(st.integers(1, 5))
    weight = rng.random(n) * (rng.random(n) < 0.8) if draw(st.booleans()) else None
    return *parts, rng.integers(0, K, n), weight, K, V


@thorough
@given(sparse_classes())
def test_sums_agree_with_their_twin(rows):
    ours, twin = both(kernels.sparse_class_sums, *rows)
    agree(ours, twin)
    if rows[4] is None:
        np.testing.assert_array_equal(ours, twin)


@pytest.mark.parametrize("body", ["numba", "numpy"])
def test_sums_of_amounts_are_sums_of_what_entries_stand_for(body, monkeypatch):
    monkeypatch.setattr("deciban.kernels.sparse.PART", 7)
    rng = np.random.default_rng(0)
    lengths = rng.integers(0, 9, 50)
    indptr = 3 + np.concatenate([[0], np.cumsum(lengths)])
    data, indices = rng.integers(0, 5, indptr[-1]), rng.integers(0, 11, indptr[-1])
    classes, amounts = rng.integers(0, 4, 50), np.array([0.0, 0.5, 2.0, 4.25, 8.0])
    with kernels.forced(body):
        found = kernels.sparse_class_sums(data, indices, indptr, classes, None, 4, 11, amounts)
        expected = kernels.sparse_class_sums(amounts[data], indices, indptr, classes, None, 4, 11)
    np.testing.assert_array_equal(found, expected)


@thorough
@given(sparse_classes())
def test_moments_agree_with_their_twin(rows):
    agree(*both(kernels.sparse_class_moments, *rows))


@thorough
@given(sparse_rows(), st.integers(1, 40), st.booleans(), st.integers(0, 2**32))
def test_scores_agree_with_their_twin(rows, K, impossible, seed):
    parts, _, V = rows
    rng = np.random.default_rng(seed)
    weights, bias = rng.normal(size=(V, K)), rng.normal(size=K)
    if impossible:
        weights[rng.random(weights.shape) < 0.1] = -np.inf
    ours, twin = both(kernels.sparse_scores, *parts, weights, bias)
    agree(ours, twin)
    assert not np.isnan(ours).any()


@pytest.mark.parametrize("body", ["numba", "numpy"])
def test_a_stored_zero_adds_nothing_to_an_impossible_word(body):
    weights = np.array([[-np.inf, 1.0], [2.0, 3.0]])
    data, indices, indptr = np.array([0.0, 1.0, 1.0]), np.array([0, 1, 0]), np.array([0, 2, 3])
    with kernels.forced(body):
        scores = kernels.sparse_scores(data, indices, indptr, weights, np.zeros(2))
    np.testing.assert_array_equal(scores, [[2, 3], [-np.inf, 1]])


@pytest.mark.parametrize("body", ["numba", "numpy"])
@pytest.mark.parametrize("index", [-1, 3, 2**31 - 1])
def test_words_outside_the_vocabulary_are_refused(body, index):
    data, indices, indptr = np.ones(2), np.array([0, index], np.int32), np.array([0, 2])
    codes = np.zeros(1, int)
    with kernels.forced(body):
        for function in (kernels.sparse_class_sums, kernels.sparse_class_moments):
            with pytest.raises(IndexError, match=r"\[0, 3\)"):
                function(data, indices, indptr, codes, None, 1, 3)
        with pytest.raises(IndexError, match=r"\[0, 3\)"):
            kernels.sparse_scores(data, indices, indptr, np.zeros((3, 2)), np.zeros(2))


@pytest.mark.parametrize("indptr", [[0, 3], [-1, 2], [0, 2, 1], []])
def test_row_limits_outside_the_entries_are_refused(indptr):
    with pytest.raises(IndexError, match="row limits"):
        kernels.sparse_scores(np.ones(2), np.zeros(2, int), np.array(indptr, int), np.zeros((3, 2)), np.zeros(2))


def test_a_vocabulary_larger_than_the_cache_is_summed_the_same():
    rng = np.random.default_rng(0)
    n, V, K = 500, 100_000, 3
    indptr = np.arange(n + 1) * 20
    rows = rng.integers(1, 4, n * 20).astype(float), rng.integers(0, V, n * 20), indptr
    codes = rng.integers(0, K, n)
    for function in (kernels.sparse_class_sums, kernels.sparse_class_moments):
        agree(*both(function, *rows, codes, None, K, V))


@thorough
@given(sparse_rows(), st.sampled_from([0.0, 0.5, -1.0, 8.0, np.nan, np.inf]))
def test_lookups_agree_with_their_twin(rows, odd):
    (data, _, indptr), n, _ = rows
    table = np.arange(16).reshape(8, 2) ** 3
    ours, twin = both(kernels.row_lookups, data, indptr, table)
    for each in (ours, twin):
        np.testing.assert_array_equal(each[0], [data[a:b].sum() for a, b in pairwise(indptr)])
        np.testing.assert_array_equal(
            each[1], np.reshape([table[data[a:b].astype(int)].sum(0) for a, b in pairwise(indptr)], (n, 2))
        )
    if indptr[-1] > indptr[0]:
        spoilt = data.astype(float)
        spoilt[indptr[0]] = odd
        assert all((answer is None) == (odd != 0) for answer in both(kernels.row_lookups, spoilt, indptr, table))


@thorough
@given(sparse_classes(), st.sampled_from([0.0, 0.5, -1.0, 8.0, np.nan, np.inf]))
def test_class_lookups_agree_with_their_twin_and_with_sums_of_rows(rows, odd):
    data, indices, indptr, codes, weight, K, V = rows
    table = np.arange(128).reshape(64, 2) ** 2
    ours, twin = both(kernels.sparse_class_lookups, *rows, table)
    agree(ours, twin)
    length, words = kernels.row_lookups(data, indptr, table)
    each = np.ones(len(codes)) if weight is None else weight
    np.testing.assert_allclose(ours[0], kernels.sparse_class_sums(*rows), rtol=1e-12)
    np.testing.assert_array_equal(ours[2], np.where((length >= 64) & (each != 0), length, 0))
    found = (table[np.where(length < 64, length, 0).astype(int)] - words) * each[:, None]
    np.testing.assert_allclose(ours[1], [found[codes == k].sum(axis=0) for k in range(K)], rtol=1e-12, atol=1e-9)
    row = np.flatnonzero((np.diff(indptr) > 0) & (each != 0))
    if len(row) and odd != 8.0:
        spoilt = data.astype(float)
        spoilt[indptr[row[0]]] = odd
        answers = both(kernels.sparse_class_lookups, spoilt, indices, indptr, codes, weight, K, V, table)
        assert all((answer is None) == (odd != 0) for answer in answers)


@pytest.mark.parametrize("body", ["numba", "numpy"])
def test_class_lookups_pass_over_rows_of_weight_zero(body):
    data, indices, indptr = np.array([2.0, np.nan, 0.5]), np.array([0, 1, 0]), np.array([0, 1, 3])
    table = np.arange(16).reshape(8, 2)
    with kernels.forced(body):
        sums, found, beyond = kernels.sparse_class_lookups(
            data, indices, indptr, np.array([1, 0]), np.array([3.0, 0.0]), 2, 2, table
        )
    np.testing.assert_array_equal(sums, [[0, 0], [6, 0]])
    np.testing.assert_array_equal(found, [[0, 0], [0, 0]])
    np.testing.assert_array_equal(beyond, [0, 0])


@thorough
@given(sparse_classes(), st.booleans(), st.integers(0, 2**32))
def test_what_is_left_over_agrees_with_its_twin(rows, turned, seed):
    data, indices, indptr, codes, weight, K, V = rows
    counts = np.random.default_rng(seed).integers(0, 6, (K, V)).astype(float)
    counts = np.asfortranarray(counts) if turned else counts
    ours, twin = both(kernels.sparse_left_over, data, indices, indptr, counts, codes, weight, 1e-12)
    agree(ours, twin)
    row = np.repeat(np.arange(len(codes)), np.diff(indptr))
    used, each = slice(indptr[0], indptr[-1]), 1.0 if weight is None else weight[row]
    left = counts[codes[row], indices[used]] - each * data[used]
    np.testing.assert_allclose(ours, np.maximum(left, 0), atol=1e-11)
