"""Mixtures of any family through soft members."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning as PeerWarning
from sklearn.mixture import GaussianMixture

from cases import CASES, SCORED_NOT_LEARNT
from deciban import Bernoulli, Gaussian, Mixture, Multinomial, Poisson, Product, Text
from deciban.errors import ConvergenceWarning, DecibanError, HyperparameterError, InputError, NotAvailableError
from deciban.families.abilities import Unmixable, ability

DICE = np.array([[0.5, 0.1, 0.1, 0.1, 0.1, 0.1], [0.1, 0.1, 0.1, 0.1, 0.1, 0.5]])

MIXABLE = [c for c in CASES if not ability(c.family, Unmixable) and "toy" not in c.name and "joint" not in c.name]


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
@pytest.mark.parametrize(
    "case",
    [c for c in MIXABLE if c.name not in SCORED_NOT_LEARNT],
    ids=repr,
)
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


def test_a_family_that_cannot_be_mixed_says_what_to_mix_instead():
    with pytest.raises(HyperparameterError, match="Count words once"):
        Mixture(Product({"a": Gaussian(), "b": Text()}), 2)


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
    with pytest.raises(HyperparameterError, match="other rules apply"):
        Mixture(Multinomial(), 2).fit(X, rule="mean")
    for components in (0, 2**31):
        with pytest.raises(HyperparameterError, match="1 to 65,536 components"):
            Mixture(Multinomial(), components)
    with pytest.raises(NotAvailableError, match="refit"):
        Mixture(Multinomial(), 2).fit(X, random_state=0).unlearn(X[:1])
