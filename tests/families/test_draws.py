"""Draws from the posterior have its moments, for every family that can draw."""

import numpy as np
import pytest

from cases import CASES
from deciban.families.product import ProductDensity

DRAWABLE = [c for c in CASES if "toy" not in c.name]


@pytest.mark.slow
@pytest.mark.parametrize("case", DRAWABLE, ids=repr)
def test_averaging_densities_over_draws_is_the_predictive(case):
    """E over the posterior of f(x|θ) is the predictive density, by definition."""
    family, X, members = case.data(21, 120)
    stats = family.collect(X, members)
    rows = X[:6]
    predictive = np.exp(family.estimate(stats, "predictive").log_density(rows))
    rng = np.random.default_rng(0)
    drawn = np.exp([family.draw(stats, rng).log_density(rows) for _ in range(600)])
    error = drawn.std(axis=0) / np.sqrt(len(drawn))
    assert (np.abs(drawn.mean(axis=0) - predictive) < 5 * error + 1e-12 * predictive).all()


def test_a_product_draws_block_by_block():
    from deciban import Gaussian, Poisson, Product
    from deciban.statistics import Members

    family = Product({0: Gaussian(), 1: Poisson()})
    X = family.encode(np.random.default_rng(0).poisson(3, (30, 2)).astype(float), [])
    members = Members.hard(np.arange(30) % 2, 2)
    stats = family.collect(X, members)
    assert isinstance(family.choose(stats).draw(stats, np.random.default_rng(0)), ProductDensity)
