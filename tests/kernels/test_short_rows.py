"""Maxima, sums and flags along rows: column by column where rows are short, with numpy's own bits."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from deciban import kernels


@pytest.mark.parametrize("K", [1, 2, 3, 7, 8, 20])
def test_operations_along_rows_are_those_of_numpy_to_the_bit(K):
    rows = np.random.default_rng(K).normal(0, 1e3, (501, K)) ** 3
    rows[::7, 0] = -np.inf
    rows[3, K - 1] = np.nan
    assert_array_equal(kernels.row_max(rows), rows.max(axis=1))
    assert_array_equal(kernels.row_sum(rows), rows.sum(axis=1))
    flags = np.random.default_rng(K).random((501, K)) < 0.6
    assert_array_equal(kernels.row_all(flags), flags.all(axis=1))
    assert_array_equal(kernels.row_any(flags), flags.any(axis=1))


def test_rows_without_columns_have_numpys_neutral_elements():
    empty = np.empty((3, 0))
    assert_array_equal(kernels.row_max(empty), [-np.inf] * 3)
    assert_array_equal(kernels.row_sum(empty), [0.0] * 3)
    assert kernels.row_all(empty > 0).all()
    assert not kernels.row_any(empty > 0).any()
