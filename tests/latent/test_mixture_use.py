"""Mixtures: starts, numbers of components, further rows, and errors."""

import numpy as np
import pytest

from deciban import Bernoulli, Gaussian, Mixture, Multinomial, Poisson, Product, Transformed
from deciban.errors import (
    ConvergenceWarning,
    DecibanError,
    EmptyComponentWarning,
    HyperparameterError,
    InputError,
    SingularError,
)


def rolls(n):
    rng = np.random.default_rng(0)
    dice = np.array([[0.5, 0.1, 0.1, 0.1, 0.1, 0.1], [0.1, 0.1, 0.1, 0.1, 0.1, 0.5]])
    return np.stack([rng.multinomial(20, dice[k]) for k in rng.integers(0, 2, n)])


def bells(n=600, seed=0):
    rng = np.random.default_rng(seed)
    which = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    means = np.array([[0.0, 0.0], [5.0, 0.0], [0.0, 7.0]])
    spreads = np.array([[[1.0, 0.5], [0.5, 1.0]], [[0.5, 0.0], [0.0, 2.0]], [[2.0, -0.6], [-0.6, 1.0]]])
    return np.stack([rng.multivariate_normal(means[k], spreads[k]) for k in which]), means, spreads


@pytest.mark.parametrize("start", ["k-means++", "random"])
def test_gaussians_are_recovered(start):
    X, means, spreads = bells(4000)
    parts = Mixture(Gaussian(), 3).fit(X, rule="ml", start=start, random_state=1).density().components
    order = [int(np.argmin(((parts.mean - mean) ** 2).sum(axis=1))) for mean in means]
    assert sorted(order) == [0, 1, 2]
    np.testing.assert_allclose(parts.mean[order], means, atol=0.2)
    np.testing.assert_allclose((parts.scale / parts.divisor[:, None, None])[order], spreads, atol=0.25)


def test_a_seed_gives_the_same_answer_twice():
    X, _, _ = bells(300)
    one, two = (Mixture(Gaussian(), 4).fit(X, random_state=7) for _ in range(2))
    assert one.sums.same(two.sums)
    assert len(one.trace.starts) == 5
    assert one.trace.objective[0] >= max(one.trace.starts)


def test_a_mixture_goes_on_from_another():
    X, _, _ = bells(300)
    with pytest.warns(ConvergenceWarning):
        first = Mixture(Gaussian(), 3).fit(X, random_state=0, max_iter=1, n_starts=1)
    rest = Mixture(Gaussian(), 3).fit(X, start=first.density())
    assert rest.trace.objective[0] > first.trace.objective[-1]
    assert rest.trace.converged


@pytest.mark.parametrize("by", ["bic", "icl", "heldout"])
def test_the_number_of_components_is_found(by):
    X, _, _ = bells(400)
    found = Mixture(Gaussian()).fit_size(X, range(2, 5), by=by, random_state=0, n_starts=2, tol=1e-5)
    assert found.n_components == 3
    assert min(found.criteria, key=found.criteria.get) == 3


def test_parameters_are_counted():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(50, 2)), rng.integers(0, 2, (50, 1)), rng.poisson(3, (50, 1))])
    family = Product({(0, 1): Gaussian("tied"), 2: Bernoulli(), 3: Poisson()})
    found = Mixture(family, 3).fit(X, random_state=0)
    assert found.n_parameters == 2 + (6 + 3) + 3 + 3
    logarithms = Mixture(Transformed("log"), 2).fit(np.exp(X[:, :2]), random_state=0)
    assert logarithms.n_parameters == 1 + 2 * (2 + 2)


def test_stepwise_passes_come_close_and_em_finishes():
    X, _, _ = bells(2000)
    batches = Mixture(Gaussian(), 3).fit(X, random_state=0, batch=200)
    whole = Mixture(Gaussian(), 3).fit(X, random_state=0)
    assert batches.trace.objective[-1] == pytest.approx(whole.trace.objective[-1], rel=1e-5)
    assert batches.trace.objective[0] == pytest.approx(whole.trace.objective[-1], rel=0.01)


def test_learning_more_rows_adds_or_moves():
    X, _, _ = bells(900)
    found = Mixture(Gaussian(), 3).fit(X[:300], random_state=0)
    more = found.learn(X[300:])
    assert more.counts.sum() == pytest.approx(900)
    moved = found.learn(X[300:600], step=0.5)
    assert moved.counts.sum() == pytest.approx(300)
    assert more.log_density(X).mean() > found.log_density(X).mean() - 0.01
    with pytest.raises(HyperparameterError, match="at most 1"):
        found.learn(X, step=2)


def test_rows_of_weight_zero_are_as_if_absent():
    X, _, _ = bells(200)
    w = np.r_[np.ones(150), np.zeros(50)]
    far = X.copy()
    far[150:] = 1e6
    R = np.random.default_rng(0).dirichlet(np.ones(3), 200)
    kept = Mixture(Gaussian(), 3).fit(X[:150], start=R[:150], max_iter=5, tol=0)
    assert Mixture(Gaussian(), 3).fit(far, w, start=R, max_iter=5, tol=0).sums.same(kept.sums)


def test_rows_without_any_value_change_no_parameter():
    X, _, _ = bells(200)
    R = np.random.default_rng(0).dirichlet(np.ones(2), 220)
    empty = np.r_[X, np.full((20, 2), np.nan)]
    a = Mixture(Gaussian("diagonal"), 2).fit(X, start=R[:200], max_iter=1, tol=0).stats
    b = Mixture(Gaussian("diagonal"), 2).fit(empty, start=R, max_iter=1, tol=0).stats
    np.testing.assert_allclose(a.first, b.first, rtol=1e-2)
    assert np.isfinite(Mixture(Gaussian("diagonal"), 2).fit(empty, random_state=0).log_density(empty)).all()


def test_duplicate_rows_are_one_cluster_however_many_are_asked_for():
    X = np.repeat([[1.0, 2.0]], 30, axis=0)
    found = Mixture(Gaussian(), 3).fit(X, random_state=0)
    assert np.isfinite(found.log_density(X)).all()
    two = Mixture(Multinomial(), 3).fit(np.repeat([[3, 0, 1], [0, 4, 0]], 20, axis=0), random_state=0)
    assert np.isfinite(two.log_density([[3, 0, 1]])).all()


def test_a_component_that_collapses_is_said_and_a_prior_holds_it():
    X = np.r_[np.random.default_rng(0).normal(size=(50, 2)), np.repeat([[9.0, 9.0]], 5, axis=0)]
    R = np.zeros((55, 2))
    R[:50, 0] = R[50:, 1] = 1.0
    with pytest.raises(SingularError, match=r"collapsed.*Rule 'map' has a prior"):
        Mixture(Gaussian(), 2).fit(X, rule="ml", start=R)
    held = Mixture(Gaussian(), 2).fit(X, rule="map", start=R)
    np.testing.assert_allclose(np.sort(held.counts), [5, 50], atol=0.01)


@pytest.mark.parametrize("rule", ["ml", "map"])
def test_an_empty_component_is_dropped_with_a_message(rule):
    X = rolls(100)
    R = np.random.default_rng(0).dirichlet(np.ones(3), 100)
    R[:, 2] = 0.0
    with pytest.warns(EmptyComponentWarning, match="1 of 3 components"):
        found = Mixture(Multinomial(), 3).fit(X, rule=rule, start=R)
    assert found.n_components == 2
    assert found.predict_proba(X).shape == (100, 2)


def test_more_that_is_refused():
    X = rolls(20)
    with pytest.raises(HyperparameterError, match="is not one of k-means"):
        Mixture(Multinomial(), 2, start="middle")
    with pytest.raises(HyperparameterError, match="not a family"):
        Mixture("gaussian", 2)
    with pytest.raises(HyperparameterError, match="by='aic'"):
        Mixture(Multinomial()).fit_size(X, [1, 2], by="aic")
    with pytest.raises(HyperparameterError, match="no sizes"):
        Mixture(Multinomial()).fit_size(X, [])
    with pytest.raises(InputError, match="start has shape"):
        Mixture(Multinomial(), 2).fit(X, start=np.ones((20, 3)))
    with pytest.raises(InputError, match="at least 0"):
        Mixture(Multinomial(), 2).fit(X, start=-np.ones((20, 2)))
    with pytest.raises(InputError, match="no rows"):
        Mixture(Multinomial(), 2).fit(X[:0])
    with pytest.raises(DecibanError, match="holds inf"):
        Mixture(Gaussian(), 2).fit([[1.0], [np.inf], [2.0]])
    with pytest.raises(HyperparameterError, match="with sum 1"):
        Mixture.of([0.5, 0.6], Bernoulli.of([[0.5], [0.2]]))
