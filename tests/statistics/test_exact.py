"""Exact sums: what is added comes out again, to the bit."""

import numpy as np
import pytest

from deciban.statistics import Axis, ExactSums

CELLS = np.triu_indices(3)


def sums(seed, n=10, classes=3):
    rng = np.random.default_rng(seed)
    V = rng.normal(size=(n, 3)) * 10.0 ** rng.integers(-140, 140, (n, 3))
    return ExactSums.of_products(V, rng.uniform(0.1, 2.0, n), rng.integers(0, classes, n), CELLS, Axis.of(classes))


def test_added_and_subtracted_sums_are_the_same_bits():
    a, b, c = sums(0), sums(1), sums(2)
    assert ((a + b) + c).same(c + (b + a))
    assert (((a + b) + c) - b).same(a + c)
    assert (a - a).empty


def test_powers_of_two_scale_without_rounding():
    a = sums(3)
    assert ((a * 0.125) * 8).same(a)
    assert (2 * a).same(a + a)
    assert not (a * 0.125).rounded.any()
    assert (a * 0.3).rounded[np.unique(a.group)].all()
    assert (a * 0).empty


def test_another_factor_keeps_106_bits():
    a = sums(4)
    _, high, low = (a * 0.3).totals()
    _, whole, _ = a.totals()
    np.testing.assert_allclose(high + low, 0.3 * whole, rtol=1e-15)


@pytest.mark.parametrize("index", [[2, 0], [1], [0, 0, 2]])
def test_selected_classes_have_their_sums(index):
    a = sums(5)
    classes, high, _ = a.totals()
    dense = np.zeros((3, 6))
    dense[classes] = high
    found, picked, _ = a.select("class", np.array(index)).totals()
    np.testing.assert_array_equal(picked, dense[index][found])
