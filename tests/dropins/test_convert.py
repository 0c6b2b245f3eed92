"""Models of scikit-learn become models of deciban and come back with the same answers."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn import decomposition, discriminant_analysis, linear_model, mixture, naive_bayes
from sklearn.feature_extraction import text
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import deciban.sklearn
from deciban import Bernoulli, Categorical, Fisher, Gaussian, GenerativeClassifier, MixtureModel, Multinomial, Poisson
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


@pytest.mark.parametrize(("peer", "X"), FROM[6:], ids=str)
def test_analyses_go_there_and_back(peer, X):
    clf = from_sklearn(peer.fit(X, Y))
    np.testing.assert_allclose(clf.means_, peer.means_)
    back = to_sklearn(clf)
    assert type(back) is type(peer)
    np.testing.assert_allclose(back.predict_proba(X), peer.predict_proba(X), atol=1e-9)


@pytest.mark.parametrize("structure", ["full", "tied", "diagonal", "tied diagonal", "spherical"])
def test_mixtures_of_gaussians_become_scikit_learns(structure):
    model = MixtureModel(2, Gaussian(structure), random_state=0).fit(pd.DataFrame(REAL, columns=["u", "v", "w"]))
    peer = pickle.loads(pickle.dumps(to_sklearn(model)))
    assert type(peer) is mixture.GaussianMixture
    frame = pd.DataFrame(REAL, columns=peer.feature_names_in_)
    np.testing.assert_allclose(peer.predict_proba(frame), model.predict_proba(frame), atol=1e-9)
    np.testing.assert_allclose(peer.score_samples(frame), model.score_samples(frame), atol=1e-9)
    np.testing.assert_allclose(peer.precisions_cholesky_.shape, peer.precisions_.shape)


TEXTS = ["to be or not", "not to be", "that is it"] * 20
PLAIN = [
    *((peer, X) for peer, X in FROM),
    (naive_bayes.ComplementNB(), COUNTS),
    (mixture.GaussianMixture(2, random_state=0), REAL),
    (decomposition.PCA(2), REAL),
    (decomposition.LatentDirichletAllocation(2, random_state=0, max_iter=2), COUNTS),
    (text.CountVectorizer(), TEXTS),
    (text.TfidfVectorizer(ngram_range=(1, 2)), TEXTS),
    (text.HashingVectorizer(n_features=16), TEXTS),
]


@pytest.mark.parametrize("patched", [False, True])
@pytest.mark.parametrize(("peer", "X"), PLAIN, ids=str)
def test_drop_ins_become_scikit_learns_own_class(peer, X, patched):
    ours = getattr(deciban.sklearn, type(peer).__name__)(**peer.get_params()).fit(X, Y)
    if patched:
        deciban.sklearn.patch_sklearn()
    try:
        plain = to_sklearn(ours)
    finally:
        deciban.sklearn.unpatch_sklearn()
    pickled = pickle.dumps(plain)
    assert type(plain) is type(peer)
    assert b"deciban" not in pickled
    answer = "predict_proba" if hasattr(peer, "predict_proba") else "transform"
    expected, found = (getattr(each, answer)(X) for each in (ours, pickle.loads(pickled)))
    if answer == "transform" and X is TEXTS:
        expected, found = expected.toarray(), found.toarray()
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_the_steps_of_a_pipeline_are_converted():
    steps = [deciban.sklearn.TfidfVectorizer(), StandardScaler(with_mean=False), deciban.sklearn.MultinomialNB()]
    fitted = make_pipeline(*steps).fit(TEXTS, Y)
    plain = to_sklearn(fitted)
    assert b"deciban" not in pickle.dumps(plain)
    assert b"deciban" in pickle.dumps(fitted)
    np.testing.assert_array_equal(plain.predict_proba(TEXTS), fitted.predict_proba(TEXTS))


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
    with pytest.raises(NotAvailableError, match="RidgeClassifier is no class of deciban"):
        to_sklearn(linear_model.RidgeClassifier().fit(REAL, Y))
    with pytest.raises(NotAvailableError, match="Fisher has no equivalent in scikit-learn"):
        to_sklearn(Fisher().fit(REAL, Y))
    with pytest.raises(NotAvailableError, match="a mixture of Poisson has no equivalent"):
        to_sklearn(MixtureModel(2, Poisson(), random_state=0).fit(COUNTS))
    with pytest.raises(NotAvailableError, match="GaussianNB has no handle_missing='ignore'"):
        to_sklearn(deciban.sklearn.GaussianNB(handle_missing="ignore").fit(REAL, Y))
    known = {"a": Poisson().fit(COUNTS).density(), "b": Poisson().fit(COUNTS + 1).density()}
    with pytest.raises(NotAvailableError, match="not all normal"):
        to_sklearn(GenerativeClassifier.from_densities(known))
