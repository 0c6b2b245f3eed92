"""Full Gaussians that learn from rows with gaps."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_normal
from sklearn.datasets import load_iris

from deciban import Gaussian, GaussianWithGaps, GenerativeClassifier, Mixture
from deciban.errors import DomainError, HyperparameterError, NotAvailableError, SingularError
from deciban.latent import em
from deciban.statistics import Members


def rows(n=300, seed=0, share=0.25):
    rng = np.random.default_rng(seed)
    whole = rng.normal(size=(n, 3)) @ np.array([[1.0, 0.8, 0.0], [0.0, 0.6, 0.5], [0.0, 0.0, 1.0]]) + [1.0, 20.0, 300.0]
    X = whole.copy()
    X[rng.random(X.shape) < share] = np.nan
    return X, whole


def observed(X, mean, covariance):
    total = 0.0
    for x in X:
        seen = ~np.isnan(x)
        if seen.any():
            total += multivariate_normal(mean[seen], covariance[np.ix_(seen, seen)]).logpdf(x[seen])
    return total


def test_em_finds_the_maximum_of_the_observed_likelihood():
    X, _ = rows(60)
    density = GaussianWithGaps(rule="ml", tol=1e-12).fit(X).density("ml")
    mean, covariance = density.mean[0], density.scale[0] / density.divisor[0]

    def loss(flat):
        root = np.zeros((3, 3))
        root[np.tril_indices(3)] = flat[3:]
        return -observed(X, flat[:3], root @ root.T + 1e-12 * np.eye(3))

    start = np.r_[mean, np.linalg.cholesky(covariance)[np.tril_indices(3)]]
    best = minimize(loss, start, method="L-BFGS-B")
    assert -loss(start) == pytest.approx(-best.fun, abs=1e-5)


def test_complete_rows_give_the_plain_gaussian():
    _, whole = rows()
    for rule in ("ml", "map", "mean", "predictive"):
        ours = GaussianWithGaps().fit(whole).density(rule).log_density(whole)
        np.testing.assert_allclose(ours, Gaussian().fit(whole).density(rule).log_density(whole), rtol=1e-9)


@pytest.mark.parametrize("rule", ["ml", "map"])
@pytest.mark.parametrize("structure", ["full", "tied"])
def test_the_objective_never_falls(structure, rule, monkeypatch):
    traces = []
    X, _ = rows(120, share=0.4)
    rng = np.random.default_rng(1)
    members = Members.hard(rng.integers(0, 2, 120), 2, rng.uniform(0.2, 2, 120))
    family = GaussianWithGaps(structure, rule=rule)
    real = em.run
    monkeypatch.setattr(em, "run", lambda *a, **o: _keep(real(*a, **o), traces))
    family.collect(X, members)
    assert len(traces[0].objective) > 3
    assert (np.diff(traces[0].objective) > -1e-9 * abs(traces[0].objective[0])).all()


def _keep(found, traces):
    traces.append(found[1])
    return found


def test_correlations_survive_the_gaps():
    X, whole = rows(4000, share=0.4)
    density = GaussianWithGaps().fit(X).density("mean")
    np.testing.assert_allclose(density.scale[0] / density.divisor[0], np.cov(whole.T), atol=0.1)


@pytest.mark.parametrize("structure", ["full", "tied"])
def test_classes_with_gaps(structure):
    X, y = load_iris(return_X_y=True)
    gappy = X.copy()
    gappy[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    clf = GenerativeClassifier(GaussianWithGaps(structure)).fit(gappy, y)
    assert clf.score(X, y) > 0.96
    assert (clf.cross_val_predict(gappy, y).argmax(axis=1) == y).mean() > 0.9
    assert clf.reestimate(columns=[2, 3]).score(gappy[:, 2:], y) > 0.85
    only = clf.stats_.rows.copy()
    clf.learn(gappy[:10], y[:10])
    assert clf.stats_.rows.sum() == only.sum() + 10
    with pytest.raises(NotAvailableError, match="expected values"):
        clf.unlearn(gappy[:2], y[:2])
    with pytest.raises(NotAvailableError, match="class 7 is new"):
        clf.learn(gappy[:2], [7, 7])


def test_a_row_without_values_adds_nothing():
    X, _ = rows(50)
    more = np.r_[X, np.full((5, 3), np.nan)]
    assert GaussianWithGaps().fit(more).stats.weight[0] == GaussianWithGaps().fit(X).stats.weight[0]
    scores = GaussianWithGaps().fit(more).log_density(more)
    np.testing.assert_array_equal(scores[50:], 0.0)


def test_mixtures_of_gaussians_with_gaps():
    rng = np.random.default_rng(0)
    which = rng.integers(0, 2, 400)
    X = rng.normal(size=(400, 2)) @ np.array([[1.0, 0.9], [0.0, 0.4]]) + which[:, None] * [4.0, -4.0]
    X[rng.random(X.shape) < 0.2] = np.nan
    found = Mixture(GaussianWithGaps(), 2).fit(X, random_state=0)
    assert (np.diff(found.trace.objective) > -1e-9 * abs(found.trace.objective[0])).all()
    right = (found.predict(X) == which)[~np.isnan(X).all(axis=1)].mean()
    assert max(right, 1 - right) > 0.95


def test_what_is_refused():
    with pytest.raises(HyperparameterError, match="only 'full' and 'tied'"):
        GaussianWithGaps("diagonal")
    with pytest.raises(HyperparameterError, match="rule='mean'"):
        GaussianWithGaps(rule="mean")
    with pytest.raises(DomainError, match="holds inf"):
        GaussianWithGaps().fit([[1.0, np.inf], [2.0, 3.0]])
    assert repr(GaussianWithGaps("tied", rule="ml")) == "GaussianWithGaps('tied', rule='ml')"


def test_a_covariance_that_cannot_be_inverted_is_refused_where_values_are_missing():
    X = np.random.default_rng(0).normal(size=(60, 3))
    X[::3, 0] = np.nan
    density = GaussianWithGaps().fit(X).density("mean")
    flat = replace(density, scale=np.ones_like(density.scale))  # columns 1 and 2 are the same
    members = Members.hard(np.zeros(60, dtype=np.intp), 1)
    with pytest.raises(SingularError, match=r"cannot be inverted.*Gaussian\('diagonal'\)"):
        GaussianWithGaps().collect_under(X, members, flat)
