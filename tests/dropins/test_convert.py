"""Models of scikit-learn become models of deciban and come back with the same answers."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn import discriminant_analysis, linear_model, naive_bayes

import deciban.sklearn
from deciban import Bernoulli, Categorical, Gaussian, GenerativeClassifier, Multinomial, Poisson
from deciban.errors import HyperparameterError, NotAvailableError
from deciban.sklearn import from_sklearn, to_sklearn

RNG = np.random.default_rng(0)
Y = np.array(["a", "b", "c"])[np.arange(60) % 3]
REAL = RNG.normal(size=(60, 3)) + (np.arange(60) % 3)[:, None] + 50
COUNTS = RNG.poisson(2.0, size=(60, 3))
CODES = np.r_[np.tile([[0], [1], [2]], (1, 3)), RNG.integers(0, 3, size=(57, 3))]

FROM = [
    (naive_bayes.GaussianNB(), REAL),
    (naive_bayes.GaussianNB(priors=[0.5, 0.2, 0.3]), REAL),
    (naive_bayes.MultinomialNB(alpha=[0.5, 1.0, 2.0]), COUNTS),
    (naive_bayes.MultinomialNB(fit_prior=False), COUNTS),
    (naive_bayes.BernoulliNB(alpha=0.3), (COUNTS > 1).astype(int)),
    (naive_bayes.CategoricalNB(alpha=0.7), CODES),
    (discriminant_analysis.LinearDiscriminantAnalysis(store_covariance=True), REAL),
    (discriminant_analysis.QuadraticDiscriminantAnalysis(), REAL),
]
ANALYSES = [
    (deciban.sklearn.LinearDiscriminantAnalysis(), REAL),
    (deciban.sklearn.LinearDiscriminantAnalysis(priors=[0.5, 0.2, 0.3]), REAL),
    (deciban.sklearn.QuadraticDiscriminantAnalysis(), REAL),
]
TO = [
    (Gaussian("diagonal"), REAL, "GaussianNB"),
    (Gaussian("tied spherical"), REAL, "GaussianNB"),
    (Gaussian("tied"), REAL, "LinearDiscriminantAnalysis"),
    (Gaussian("full"), REAL, "QuadraticDiscriminantAnalysis"),
    (Multinomial(0.4), COUNTS, "MultinomialNB"),
    (Bernoulli(2.0, 1.0), (COUNTS > 1).astype(int), "BernoulliNB"),
    (Categorical(0.5), CODES, "CategoricalNB"),
]


@pytest.mark.parametrize(("peer", "X"), FROM + ANALYSES, ids=str)
def test_answers_are_scikit_learns(peer, X):
    clf = from_sklearn(peer.fit(X, Y))
    np.testing.assert_allclose(clf.predict_proba(X), peer.predict_proba(X), atol=1e-9)
    np.testing.assert_array_equal(clf.predict(X), peer.predict(X))


@pytest.mark.parametrize(("peer", "X"), FROM[:6] + ANALYSES, ids=str)
def test_sums_learn_and_unlearn(peer, X):
    clf = from_sklearn(peer.fit(X, Y))
    before = clf.predict_proba(X)
    clf.learn(X[:9], Y[:9])
    assert clf.class_count_.sum() == 69
    np.testing.assert_allclose(clf.unlearn(X[:9], Y[:9]).predict_proba(X), before, atol=1e-9)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(("family", "X", "name"), TO, ids=str)
def test_answers_are_decibans(family, X, name, classes):
    X, y = X["abc"[classes - 1] >= Y], Y["abc"[classes - 1] >= Y]
    clf = GenerativeClassifier(family, prior="uniform").fit(X, y)
    peer = pickle.loads(pickle.dumps(to_sklearn(clf)))
    assert type(peer).__name__ == name
    assert type(peer).__module__.startswith("sklearn.")
    np.testing.assert_allclose(peer.predict_proba(X), clf.predict_proba(X), atol=1e-9)
    np.testing.assert_array_equal(peer.predict(X), clf.predict(X))


def test_names_of_columns_are_kept():
    frame = pd.DataFrame(REAL, columns=["u", "v", "w"])
    clf = from_sklearn(naive_bayes.GaussianNB().fit(frame, Y))
    np.testing.assert_array_equal(clf.predict(frame[["w", "u", "v"]]), clf.predict(frame))
    assert to_sklearn(clf).feature_names_in_.tolist() == ["u", "v", "w"]


def test_what_has_no_equivalent_is_refused():
    with pytest.raises(NotAvailableError, match="RidgeClassifier has no equivalent"):
        from_sklearn(linear_model.RidgeClassifier().fit(REAL, Y))
    with pytest.raises(NotAvailableError, match="store_covariance=True"):
        from_sklearn(discriminant_analysis.LinearDiscriminantAnalysis().fit(REAL, Y))
    with pytest.raises(NotAvailableError, match="Poisson has no equivalent"):
        to_sklearn(GenerativeClassifier(Poisson()).fit(COUNTS, Y))
    with pytest.raises(NotAvailableError, match="calibrate=None"):
        to_sklearn(GenerativeClassifier(Gaussian(), calibrate="offsets").fit(REAL, Y))
    with pytest.raises(NotAvailableError, match="rule='mean'"):
        to_sklearn(GenerativeClassifier(Gaussian(), rule="predictive").fit(REAL, Y))
    with pytest.raises(HyperparameterError, match="column 0 has"):
        to_sklearn(GenerativeClassifier(Categorical()).fit(CODES + 1, Y))
