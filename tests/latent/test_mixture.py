"""Mixtures of any family through soft members."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning as PeerWarning
from sklearn.mixture import GaussianMixture

from cases import CASES
from deciban import Bernoulli, Gaussian, Mixture, Multinomial, Poisson, Product
from deciban.errors import (
    ConvergenceWarning,
    DecibanError,
    EmptyComponentWarning,
    HyperparameterError,
    InputError,
    NotAvailableError,
    SingularError,
)

DICE = np.array([[0.5, 0.1, 0.1, 0.1, 0.1, 0.1], [0.1, 0.1, 0.1, 0.1, 0.1, 0.5]])


def rolls(n=600, seed=0):
    rng = np.random.default_rng(seed)
    which = (rng.random(n) < 0.42).astype(int)
    return np.stack([rng.multinomial(20, DICE[k]) for k in which]), which


def test_look_alike_dice_are_recovered():
    X, which = rolls(2000)
    found = Mixture(Multinomial(), 2).fit(X, rule="ml", random_state=0)
    dice = np.exp(found.density("ml").components.log_density(np.eye(6))).T
    order = np.argsort(-dice[:, 0])
    np.testing.assert_allclose(dice[order], DICE, atol=0.02)
    np.testing.assert_allclose(found.weights[order], [0.58, 0.42], atol=0.03)
    assert (np.argsort(order)[found.predict(X)] == which).mean() > 0.98


@pytest.mark.parametrize(
    ("structure", "theirs"), [("full", "full"), ("tied", "tied"), ("diagonal", "diag"), ("spherical", "spherical")]
)
def test_a_gaussian_mixture_is_scikit_learns_from_the_same_start(structure, theirs):
    rng = np.random.default_rng(2)
    X = np.r_[rng.normal(0, 1, (150, 3)), rng.normal(3, 1.5, (100, 3)), rng.normal(-3, 0.7, (80, 3))]
    R = rng.dirichlet(np.ones(3), len(X))
    steps = 12
    ours = Mixture(Gaussian(structure), 3).fit(X, rule="ml", start=R, max_iter=steps, tol=0)
    means = R.T @ X / R.sum(axis=0)[:, None]
    covariances = np.stack([np.cov(X.T, aweights=r, bias=True) for r in R.T])
    pooled = np.average(covariances, axis=0, weights=R.sum(axis=0))
    variances = np.diagonal(covariances, axis1=1, axis2=2)
    precisions = {"full": np.linalg.inv(covariances), "tied": np.linalg.inv(pooled), "diag": 1 / variances}
    precisions["spherical"] = 1 / variances.mean(axis=1)
    peer = GaussianMixture(
        3,
        covariance_type=theirs,
        reg_covar=0.0,
        max_iter=steps,
        tol=0,
        weights_init=R.mean(axis=0),
        means_init=means,
        precisions_init=precisions[theirs],
    )
    with pytest.warns(PeerWarning):
        peer.fit(X)
    density = ours.density("ml")
    np.testing.assert_allclose(np.exp(density.log_weights), peer.weights_, atol=1e-8)
    np.testing.assert_allclose(ours.log_density(X), peer.score_samples(X), atol=1e-7)


@pytest.mark.parametrize("rule", ["ml", "map"])
@pytest.mark.parametrize("case", [c for c in CASES if "toy" not in c.name and "joint" not in c.name], ids=repr)
@given(seed=st.integers(0, 2**32 - 1), weighted=st.booleans(), gaps=st.booleans())
@settings(max_examples=5, deadline=None)
def test_the_objective_never_falls(case, rule, seed, weighted, gaps):
    rng = np.random.default_rng(seed)
    family, X, members = case.data(seed, 60, weighted=weighted, gaps=gaps and case.gaps)
    try:
        fitted = Mixture(family, 2).fit(
            X, members.row_weights(), rule=rule, start=rng.dirichlet(np.ones(2), 60), max_iter=15, tol=0
        )
    except DecibanError:
        return  # a component collapsed, or has no mode, and the error says so
    gains = np.diff(fitted.trace.objective)
    assert (gains > -1e-9 * np.abs(fitted.trace.objective[0]) - 1e-9).all()


@pytest.mark.parametrize("rule", ["ml", "map"])
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=5, deadline=None)
def test_the_objective_never_falls_for_mixed_tables_with_gaps(rule, seed):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=(80, 2)), rng.integers(0, 2, 80), rng.poisson(3, 80)])
    X[rng.random(X.shape) < 0.15] = np.nan
    family = Product({(0, 1): Gaussian("diagonal"), 2: Bernoulli(1.5, 1.5), 3: Poisson(2.0, 0.5)})
    fitted = Mixture(family, 3, 1.5).fit(
        X, rng.uniform(0, 2, 80), rule=rule, start=rng.dirichlet(np.ones(3), 80), max_iter=20, tol=0
    )
    assert (np.diff(fitted.trace.objective) > -1e-9 * np.abs(fitted.trace.objective[0])).all()


def test_readings_after_convergence():
    X, _ = rolls(300)
    found = Mixture(Multinomial(), 2).fit(X, random_state=1)
    for rule in ("ml", "map", "mean", "predictive"):
        assert np.isfinite(found.log_density(X, rule)).all()
    assert found.sample(5, random_state=0).shape == (5, 6)
    assert "converged" in repr(found)


def test_stopping_early_is_said():
    X, _ = rolls(200)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        Mixture(Multinomial(), 3).fit(X, max_iter=2, tol=1e-12, random_state=0)


def test_weights_count_as_copies():
    X, _ = rolls(60)
    R = np.random.default_rng(0).dirichlet(np.ones(2), 60)
    w = np.random.default_rng(1).integers(0, 4, 60).astype(float)
    weighted = Mixture(Multinomial(), 2).fit(X, w, start=R, max_iter=8, tol=0)
    at = np.repeat(np.arange(60), w.astype(int))
    copies = Mixture(Multinomial(), 2).fit(X[at], start=R[at], max_iter=8, tol=0)
    np.testing.assert_allclose(weighted.log_density(X), copies.log_density(X), rtol=1e-9)


def test_what_a_mixture_refuses():
    X, _ = rolls(5)
    with pytest.raises(InputError, match="not enough rows"):
        Mixture(Multinomial(), 6).fit(X)
    with pytest.raises(HyperparameterError, match="readings"):
        Mixture(Multinomial(), 2).fit(X, rule="mean")
    with pytest.raises(HyperparameterError, match="at least one component"):
        Mixture(Multinomial(), 0)
    with pytest.raises(NotAvailableError, match="refit"):
        Mixture(Multinomial(), 2).fit(X, random_state=0).unlearn(X[:1])


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
    order = [int(np.argmin(((parts.origin + parts.mean - mean) ** 2).sum(axis=1))) for mean in means]
    assert sorted(order) == [0, 1, 2]
    np.testing.assert_allclose((parts.origin + parts.mean)[order], means, atol=0.2)
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
    X, _ = rolls(100)
    R = np.random.default_rng(0).dirichlet(np.ones(3), 100)
    R[:, 2] = 0.0
    with pytest.warns(EmptyComponentWarning, match="1 of 3 components"):
        found = Mixture(Multinomial(), 3).fit(X, rule=rule, start=R)
    assert found.n_components == 2
    assert found.predict_proba(X).shape == (100, 2)


def test_more_that_is_refused():
    X, _ = rolls(20)
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
