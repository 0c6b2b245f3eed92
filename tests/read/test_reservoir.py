import numpy as np
import pytest

from deciban.read.batches import chosen_rows, draws
from deciban.read.tables import Origin


@pytest.mark.parametrize(("n", "most"), [(5, 3), (30, 29), (1_000, 1), (1_000, 999), (70_000, 65_000), (200_000, 500)])
def test_the_rows_with_the_smallest_numbers_are_chosen(n, most):
    np.testing.assert_array_equal(chosen_rows(n, most), np.sort(np.argsort(draws(0, n), kind="stable")[:most]))


@pytest.mark.parametrize("rows", [range(100), range(20, 120), range(0, 300, 3), np.arange(100)[::-1]])
@pytest.mark.parametrize("some", [slice(5, 60, 2), np.array([3, 0, -1]), np.arange(100) % 7 == 0, np.zeros(0, int)])
def test_an_origin_takes_rows_as_an_array_of_positions_does(rows, some):
    np.testing.assert_array_equal(np.asarray(Origin(rows).take(some).rows), np.asarray(rows)[some])
