"""Families behind a map: densities of the numbers as given, whatever map they are learnt through."""

import itertools

import numpy as np
import pytest
from scipy import integrate
from scipy import stats as sps

from deciban.errors import DomainError, HyperparameterError
from deciban.families.binned import Binned, find_edges, left_out_histograms
from deciban.families.transformed import POWERS, Transformed, best_powers, yeo_johnson
from deciban.read.arrays import grid_of
from deciban.statistics import Members

rng = np.random.default_rng(0)
GAMMA = rng.gamma(2.0, 3.0, 300)
EACH = {
    "log": (Transformed("log"), GAMMA, (1e-12, np.inf)),
    "yeo-johnson": (Transformed(), GAMMA - 4, (-np.inf, np.inf)),
    "binned": (Binned(8), GAMMA.round(1), (-np.inf, np.inf)),
    "binned-atoms": (Binned(8), np.where(GAMMA > 4, 0.0, GAMMA.round()), (-np.inf, np.inf)),
}


@pytest.mark.parametrize("name", EACH)
@pytest.mark.parametrize("rule", ["mean", "predictive"])
def test_densities_integrate_to_one(name, rule):
    family, x, (low, high) = EACH[name]
    fitted = family.fit(x[:, None])
    edges = np.r_[low, fitted.family.edges[0] if "binned" in name else np.quantile(x, [0.1, 0.5, 0.9]), high]

    def density(value):
        return float(np.exp(fitted.log_density([[value]], rule))[0])

    total = sum(integrate.quad(density, a, b, limit=400)[0] for a, b in itertools.pairwise(edges))
    assert total == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("power", [0.0, 0.3, 1.0, 1.7, 2.0])
def test_powers_are_those_of_yeo_and_johnson(power):
    x = rng.normal(0, 3, 100)
    np.testing.assert_allclose(yeo_johnson(x, power), sps.yeojohnson(x, power), rtol=1e-12)


def test_the_power_found_is_that_of_highest_likelihood():
    x = rng.gamma(5.0, 1.0, 2000)
    found = best_powers(x[:, None], Members.one_group(len(x), None))[0]
    assert found in POWERS
    assert found == pytest.approx(sps.yeojohnson_normmax(x), abs=0.125 + 0.02)  # the nearest quarter


def test_a_power_does_not_depend_on_the_unit():
    small, large = (Transformed().fit(GAMMA[:, None] * unit).family for unit in (2.0**-20, 2.0**20))
    np.testing.assert_allclose(small.power, large.power)
    np.testing.assert_allclose(small.unit * 2.0**40, large.unit)


def test_a_logarithm_of_zero_is_refused_by_row():
    with pytest.raises(DomainError, match=r"holds 0 \(row 1\).*yeo-johnson"):
        Transformed("log").fit([[1.0], [0.0]])


def test_what_has_no_logarithm_may_be_a_gap():
    lenient = Transformed("log", outside="gap")
    given, missing = ([[1.0, 4.0], [odd, 2.0], [3.0, 5.0]] for odd in (-2.0, np.nan))
    fitted, without = lenient.fit(given), Transformed("log").fit(missing)
    np.testing.assert_allclose(fitted.log_density(given), without.log_density(missing))
    with pytest.raises(DomainError, match="outside='gap'"):
        without.log_density(given)


def test_bins_hold_as_many_values_each_and_frequent_values_are_alone():
    x = np.r_[np.zeros(500), rng.normal(100, 10, 500).round(2)]
    edges = np.array(find_edges(x, np.ones(len(x)), [10])[0])
    counts, _ = np.histogram(x, edges)
    assert (edges[0], edges[1]) == (-0.005, 0.005)
    assert counts[0] == 500
    assert counts[1:].min() >= 500 / 9 / 2
    assert counts.sum() == 1000
    assert np.allclose(edges[2:] + 0.005, np.round(edges[2:] + 0.005))  # round numbers


def test_halves_of_a_column_mostly_have_the_same_edges_and_powers():
    for x in (rng.normal(100, 10, 20_000), rng.exponential(3.0, 20_000), rng.poisson(30, 20_000).astype(float)):
        halves = [half[:, None] for half in (x[::2], x[1::2])]
        one, two = (np.array(Binned(5).fit(half).family.edges[0]) for half in halves)
        assert len(np.intersect1d(one, two)) >= 4  # of 6
        one, two = (Transformed().fit(half).family for half in halves)
        np.testing.assert_array_equal(one.unit, two.unit)
        assert abs(one.power - two.power) <= 0.25


@pytest.mark.parametrize("family", [Binned(8), Transformed()])
def test_absurd_values_do_not_move_the_map(family):
    x = rng.normal(100, 10, 1000)
    spoilt = np.r_[x, np.full(5, 99999999.0)]
    plain, moved = (family.fit(each[:, None]).family.frozen_map() for each in (x, spoilt))
    if isinstance(family, Binned):
        plain, moved = plain[:, 2:-2], moved[:, 2:-2]  # all edges but the outermost
    np.testing.assert_allclose(moved, plain, rtol=0.02)


def test_few_values_have_a_bin_each():
    x = rng.integers(0, 5, 200).astype(float)
    assert find_edges(x, np.ones(200), [10])[0] == [-0.5, 0.5, 1.5, 2.5, 3.5, 4.5]


@pytest.mark.parametrize("x", [[np.nan, np.nan], [3.0, 3.0], [1e300, -1e300], [5e-324, 0.0]])
def test_odd_columns_still_have_bins(x):
    fitted = Binned().fit(np.array(x)[:, None])
    assert np.isfinite(fitted.log_density(np.array([[0.0], [1.0], [np.nan]]))).all()


def test_the_grid_that_numbers_were_rounded_to():
    assert grid_of(np.array([3.0, 200.0])) == 1.0
    assert grid_of(np.array([0.1, 0.7, 1e4 + 0.3])) == 0.1
    assert grid_of(rng.normal(size=10)) is None


@pytest.mark.parametrize(
    "make",
    [
        lambda: Transformed("sqrt"),
        lambda: Transformed(outside="no"),
        lambda: Transformed(power=3),
        lambda: Binned(0),
        lambda: Binned(edges=[[1, 1]]),
    ],
)
def test_maps_that_are_none_are_refused(make):
    with pytest.raises(HyperparameterError):
        make()


@pytest.mark.parametrize("weighted", [False, True])
def test_histograms_left_out_together_score_as_each_alone(weighted):
    x = np.where(np.arange(300) % 11 == 0, np.nan, GAMMA.round(1))
    weight = rng.integers(0, 3, 300).astype(float) if weighted else None
    members = Members.hard(np.arange(300) % 3, 3, weight)
    for bins, scores in zip((5, 20), left_out_histograms(x, members, (5, 20)), strict=True):
        family = Binned(bins)
        alone = family.leave_one_out(family.collect(x[:, None], members), x[:, None], members, "mean")
        np.testing.assert_array_equal(scores, alone)
