"""Sums of products as integer digits: exact, whichever version computes them."""

from fractions import Fraction

import numpy as np
import pytest

from deciban.kernels import forced
from deciban.statistics.exact import product_digits


def table(n=25, D=3, seed=0):
    rng = np.random.default_rng(seed)
    V = rng.normal(size=(n, D)) * 10.0 ** rng.integers(-150, 150, (n, D))
    V[3, 1] = 0.0
    return np.hstack([np.ones((n, 1)), V]), rng.uniform(0.1, 3.0, n), rng.integers(0, 3, n)


def exact(value):
    return Fraction(float(value))


@pytest.mark.parametrize("body", ["numpy", "numba"])
@pytest.mark.parametrize("weighted", [False, True])
def test_digits_are_those_of_fractions(body, weighted):
    V, weight, codes = table()
    left, right = np.triu_indices(V.shape[1])
    with forced(body):
        group, place, digits = product_digits(V, weight if weighted else None, codes, left, right, 3)
    assert np.abs(digits).max() <= 2**31
    assert digits.any(axis=1).all()
    for k in range(3):
        rows = np.flatnonzero(codes == k)
        for c, (i, j) in enumerate(zip(left, right, strict=True)):
            truth = sum(exact(V[r, i]) * exact(V[r, j]) * (exact(weight[r]) if weighted else 1) for r in rows)
            found = [(at, p) for at, (g, p) in enumerate(zip(group, place, strict=True)) if g == k]
            assert sum(int(digits[at, c]) * Fraction(2) ** (32 * int(p)) for at, p in found) == truth


def test_weights_of_one_are_no_weights():
    V, _, codes = table()
    left, right = np.triu_indices(V.shape[1])
    mixed = np.ones(len(V))
    mixed[0] = 0.5
    rows = slice(1, None)
    for a, b in zip(
        product_digits(V[rows], None, codes[rows], left, right, 3),
        product_digits(V[rows], mixed[rows], codes[rows], left, right, 3),
        strict=True,
    ):
        np.testing.assert_array_equal(a, b)
