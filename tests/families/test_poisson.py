"""Counts at a constant rate."""

import numpy as np
import pytest
from scipy import stats as sps

from deciban import Members, Poisson
from deciban.errors import DomainError, EmptyClassError, HyperparameterError, NoModeError

CALLS = [[3.0], [5.0], [4.0]]


def test_the_posterior_is_a_gamma():
    posterior = Poisson(2.0, 0.5).fit(CALLS).posterior()
    truth = sps.gamma(14, scale=1 / 3.5)
    np.testing.assert_allclose(posterior.mean, truth.mean())
    np.testing.assert_allclose(posterior.sd, truth.std())
    np.testing.assert_allclose(posterior.mode, 13 / 3.5)
    np.testing.assert_allclose(np.ravel(posterior.interval(0.9)), truth.ppf([0.05, 0.95]))


def test_the_rules_read_one_posterior():
    fit = Poisson(2.0, 0.5).fit(CALLS)
    assert [fit.density(rule).rate[0, 0] for rule in ("ml", "map", "mean")] == pytest.approx([4.0, 13 / 3.5, 4.0])
    np.testing.assert_allclose(fit.log_density([7.0], "predictive"), sps.nbinom.logpmf(7, 14, 3.5 / 4.5))


def test_one_pseudo_row_at_the_pooled_mean_follows_the_sums():
    def shape(fit):
        return fit.family.resolve(fit.stats).shape

    fit = Poisson().fit(CALLS)
    assert fit.family.shape is None
    np.testing.assert_allclose(shape(fit), [4.0])
    np.testing.assert_allclose(shape(fit.learn([[100.0]])), [(4.0 * len(CALLS) + 100) / (len(CALLS) + 1)])
    np.testing.assert_allclose(shape(Poisson(rate=2.0).fit([[0.0], [0.0]])), [0.5])  # half an event in two rows


def test_a_rate_of_zero_never_makes_nan():
    density = Poisson.of([0.0, 2.0])
    rows = np.array([[0.0, 1.0], [1.0, 1.0], [np.nan, 1.0]])
    one = sps.poisson.logpmf(1, 2)
    np.testing.assert_allclose(density.log_density(rows)[:, 0], [one, -np.inf, one])


def test_huge_counts_keep_their_digits():
    fit = Poisson(1.0, 1.0).fit([[1e9], [1e9]])
    before = Poisson(1.0, 1.0).fit([[1e9]])
    assert fit.log_evidence() - before.log_evidence() == pytest.approx(before.log_density([1e9], "predictive")[0], 1e-6)


def test_learning_and_unlearning_leave_the_same_bits():
    rng = np.random.default_rng(0)
    X, more = rng.poisson(40, (500, 3)).astype(float), rng.poisson(900, (300, 3)).astype(float)
    fit = Poisson().fit(X)
    assert fit.learn(more).unlearn(more).stats.same(fit.stats)


@pytest.mark.parametrize("value", [-1.0, np.inf])
def test_what_is_not_a_count_is_refused(value):
    with pytest.raises(DomainError, match=r"column 'b' holds .* \(row 1\)"):
        Poisson().encode(np.array([[1.0, 2.0], [1.0, value]]), ["a", "b"])


def test_rates_without_a_mode_or_rows_are_refused():
    stats = Poisson(0.5, 1.0).collect(np.zeros((2, 1)), Members.hard([0, 0], 2))
    with pytest.raises(NoModeError, match="mean"):
        Poisson(0.5, 1.0).estimate(stats, "map")
    with pytest.raises(EmptyClassError, match="class 1, feature 0"):
        Poisson(0.5, 1.0).estimate(stats, "ml")
    with pytest.raises(HyperparameterError):
        Poisson(rate=0.0)


def test_the_polynomial_is_the_log_density_less_what_all_share():
    _, b, c = Poisson.of([1.5, 3.0]).polynomial()
    x = np.array([[2.0, 4.0]])
    truth = Poisson.of([1.5, 3.0]).log_density(x) - Poisson.of([1.0, 1.0]).log_density(x) - 2.0
    np.testing.assert_allclose(x @ b.T + c, truth)
