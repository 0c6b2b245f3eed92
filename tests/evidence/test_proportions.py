"""Proportions of unlabelled rows: compared with simulations and with a plain maximisation; their standard errors."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp
from scipy.stats import norm

from deciban.errors import ConvergenceWarning, ImpossibleRowWarning, InputError
from deciban.evidence import scores as evidence_scores
from deciban.evidence.scores import EstimatedPrior, estimate_prior


def batch(prior, n=2000, gap=2.0, seed=0):
    """Log densities of rows drawn from unit Gaussians `gap` apart."""
    rng = np.random.default_rng(seed)
    means = gap * np.arange(len(prior))
    codes = rng.choice(len(prior), n, p=prior)
    return norm.logpdf(rng.normal(means[codes], 1.0)[:, None], means), codes


@settings(deadline=None, max_examples=40)
@given(st.lists(st.floats(0.05, 1), min_size=2, max_size=4), st.integers(0, 10**6))
def test_a_simulated_prior_is_recovered_within_four_standard_errors(weights, seed):
    prior = np.array(weights) / sum(weights)
    told = estimate_prior(batch(prior, seed=seed)[0])
    assert_allclose(told.prior.sum(), 1)
    assert (abs(told.prior - prior) <= 4 * told.standard_error).all()


@pytest.mark.parametrize("share", [0.02, 0.5, 0.9])
def test_two_classes_reach_the_maximum_and_its_curvature(share):
    table, _ = batch([1 - share, share], n=500)

    def objective(p):
        return -logsumexp(table + np.log([1 - p, p]), axis=1).sum()

    told = estimate_prior(table)
    best = minimize_scalar(objective, bounds=(1e-9, 1 - 1e-9), method="bounded", options={"xatol": 1e-12})
    assert objective(told.prior[1]) <= best.fun + 1e-6
    assert_allclose(told.prior[1], best.x, atol=1e-4)
    step = 1e-4
    bend = (objective(best.x + step) - 2 * objective(best.x) + objective(best.x - step)) / step**2
    assert_allclose(told.standard_error, 1 / math.sqrt(bend), rtol=1e-3)


def test_plain_labels_give_proportions_and_their_binomial_error():
    codes = np.repeat([0, 1, 2], [10, 30, 60])
    told = estimate_prior(np.where(np.eye(3)[codes] > 0, 0.0, -math.inf))
    share = np.array([0.1, 0.3, 0.6])
    assert_allclose(told.prior, share, rtol=1e-9)
    assert_allclose(told.standard_error, np.sqrt(share * (1 - share) / 100), rtol=1e-9)
    assert told.iterations == 1


def test_standard_errors_are_as_wide_as_estimates_scatter():
    told = [estimate_prior(batch([0.3, 0.7], n=300, seed=seed)[0]) for seed in range(200)]
    scatter = np.std([one.prior[0] for one in told])
    assert_allclose(scatter, np.mean([one.standard_error[0] for one in told]), rtol=0.2)


def test_a_factor_per_row_changes_nothing():
    table, _ = batch([0.3, 0.7], n=200)
    moved = estimate_prior(table + np.linspace(-10_000, 10_000, 200)[:, None])
    assert_allclose(moved.prior, estimate_prior(table).prior, rtol=1e-6)


def test_classes_nobody_belongs_to_and_classes_nobody_can_tell_apart():
    table, _ = batch([0.3, 0.7], n=300)
    empty = estimate_prior(np.column_stack([table, np.full(300, -math.inf)]))
    assert_allclose(empty.prior, np.r_[estimate_prior(table).prior, 0], atol=1e-6)
    assert np.isfinite(empty.standard_error).all()
    twins = estimate_prior(np.column_stack([table, table[:, 1]]))
    assert np.isfinite(twins.standard_error).tolist() == [True, False, False]
    assert_allclose(twins.standard_error[0], estimate_prior(table).standard_error[0], rtol=1e-3)


def test_classes_that_overlap_settle_soon_on_and_off_the_edge():
    for gap in (0.05, 0.25, 1.0):
        for prior in ([0.02, 0.08, 0.3, 0.6], [0.0, 0.5, 0.0, 0.5]):
            table, _ = batch(prior, n=20_000, gap=gap)
            told = estimate_prior(table)
            assert told.iterations < 50
            height = logsumexp(table, b=told.prior, axis=1).sum()
            assert height >= logsumexp(table, b=prior, axis=1).sum()


def test_impossible_rows_are_left_out_with_a_warning():
    table, _ = batch([0.3, 0.7], n=300)
    with pytest.warns(ImpossibleRowWarning, match=r"2 rows .*\(rows 300, 301\).* rest on 300"):
        told = estimate_prior(np.vstack([table, np.full((2, 2), -math.inf)]))
    assert_allclose(told.prior, estimate_prior(table).prior)


def test_one_class_has_all():
    told = estimate_prior([[-3.0], [-4.0]])
    assert (told.prior.tolist(), told.standard_error.tolist()) == ([1.0], [0.0])


def test_an_iteration_that_does_not_settle_says_so(monkeypatch):
    monkeypatch.setattr(evidence_scores, "MAX_ITERATIONS", 3)
    with pytest.warns(ConvergenceWarning, match="did not converge in 3 iterations"):
        estimate_prior(batch([0.01, 0.99], gap=0.5)[0])


def test_many_classes_print_on_one_line():
    many = EstimatedPrior(np.full(20, 0.05), np.full(20, 0.01), 3)
    assert "and 15 more" in repr(many)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ([1.0, 2.0], r"shape \(2,\)"),
        (np.zeros((0, 2)), r"shape \(0, 2\)"),
        ([[0, 1], [math.nan, 0], [0, math.inf]], "2 of 3 rows, first in row 1"),
        ([[-math.inf, -math.inf]], "any of the 1 rows"),
    ],
)
def test_batches_that_tell_nothing_are_refused(table, words):
    with pytest.raises(InputError, match=words):
        estimate_prior(table)


def test_no_class_that_a_row_may_belong_to_has_a_share_of_zero():
    """The maximum of the likelihood is at 0 where no row looks like the class."""
    table, _ = batch([0.0, 1.0], n=40, gap=4.0)
    told = estimate_prior(table)
    assert told.prior[0] == pytest.approx(1 / 80)
    assert told.prior.sum() == pytest.approx(1)
