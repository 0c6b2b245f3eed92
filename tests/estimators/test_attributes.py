"""Fitted attributes as named arrays in the units of the data, posteriors and the table of parameters."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.datasets import load_iris
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, MultinomialNB

from deciban import (
    Bernoulli,
    Categorical,
    Gamma,
    Gaussian,
    GenerativeClassifier,
    HiddenMarkovModel,
    Mixture,
    MixtureModel,
    Multinomial,
    Poisson,
    Text,
    Transformed,
)

X, Y = load_iris(return_X_y=True)
COUNTS = np.random.default_rng(0).poisson(2.0, size=(60, 3)) + 1
CLASSES = np.arange(60) % 2


def test_moments_of_gaussians_are_those_of_the_rows():
    clf = GenerativeClassifier(Gaussian("full"), rule="ml").fit(X + 100, Y)
    for k in range(3):
        np.testing.assert_allclose(clf.means_[k], X[k == Y].mean(axis=0) + 100)
        np.testing.assert_allclose(clf.covariances_[k], np.cov(X[k == Y].T, bias=True), atol=1e-9)
        np.testing.assert_allclose(clf.variances_[k], X[k == Y].var(axis=0), atol=1e-9)
    diagonal = GenerativeClassifier(Gaussian("diagonal"), rule="ml").fit(X, Y)
    np.testing.assert_allclose(diagonal.covariances_[1], np.diag(X[Y == 1].var(axis=0)), atol=1e-12)


@pytest.mark.parametrize("structure", ["full", "diagonal", "spherical"])
def test_variances_of_student_densities_are_wider_than_their_scales(structure):
    clf = GenerativeClassifier(Gaussian(structure), rule="predictive").fit(X[::10], Y[::10])
    rows = clf.density.sample(np.zeros(200_000, dtype=int), np.random.default_rng(0))
    np.testing.assert_allclose(clf.variances_[0], rows.var(axis=0), rtol=0.1)
    np.testing.assert_allclose(clf.means_[0], rows.mean(axis=0), atol=0.05)


@pytest.mark.parametrize(
    ("family", "rule", "truth"),
    [
        (Poisson(), "mean", lambda d: stats.poisson(d.rate)),
        (Poisson(), "predictive", lambda d: stats.nbinom(d.a, d.b / (d.b + 1))),
        (Gamma(), "mean", lambda d: stats.gamma(d.shape, scale=1 / d.rate)),
        (Gamma(), "predictive", lambda d: stats.betaprime(d.shape, d.a, scale=d.b)),
    ],
)
def test_moments_of_other_families_are_scipys(family, rule, truth):
    clf = GenerativeClassifier(family, rule=rule).fit(COUNTS, CLASSES)
    np.testing.assert_allclose(clf.means_, truth(clf.density).mean(), rtol=1e-9)
    np.testing.assert_allclose(clf.variances_, truth(clf.density).var(), rtol=1e-9)


def test_moments_of_blocks_stand_at_their_columns():
    frame = pd.DataFrame({"a": X[:, 0], "colour": np.array(["red", "blue"])[Y % 2], "b": X[:, 1], "c": X[:, 2]})
    families = {("b", "c"): Gaussian(), "colour": Categorical(), "a": Gaussian("diagonal")}
    clf = GenerativeClassifier(families, rule="ml").fit(frame, Y)
    assert np.isnan(clf.means_[:, 1]).all()
    np.testing.assert_allclose(clf.means_[:, [0, 2, 3]], [X[k == Y][:, :3].mean(axis=0) for k in range(3)])
    covariance = clf.covariances_[2]
    np.testing.assert_allclose(covariance[2:, 2:], np.cov(X[Y == 2][:, 1:3].T, bias=True), atol=1e-9)
    assert covariance[0, 2] == 0
    assert np.isnan(covariance[1]).all()
    assert np.isnan(covariance[:, 1]).all()


def test_log_probabilities_are_those_of_naive_bayes():
    ours = GenerativeClassifier(Multinomial()).fit(COUNTS, CLASSES)
    np.testing.assert_allclose(ours.feature_log_prob_, MultinomialNB().fit(COUNTS, CLASSES).feature_log_prob_)
    ours = GenerativeClassifier(Bernoulli()).fit(COUNTS > 2, CLASSES)
    peer = BernoulliNB().fit(COUNTS > 2, CLASSES)
    np.testing.assert_allclose(ours.feature_log_prob_, peer.feature_log_prob_)
    codes = COUNTS % 3
    ours, peer = GenerativeClassifier(Categorical()).fit(codes, CLASSES), CategoricalNB().fit(codes, CLASSES)
    for mine, theirs in zip(ours.feature_log_prob_, peer.feature_log_prob_, strict=True):
        np.testing.assert_allclose(mine, theirs)
    texts = GenerativeClassifier(Text(transform="counts", pseudo_count=1.0)).fit(["aa bb", "bb cc"] * 5, [0, 1] * 5)
    assert np.exp(texts.feature_log_prob_).sum(axis=1) == pytest.approx(1)


def test_log_probabilities_of_several_families_are_named_by_column():
    frame = pd.DataFrame({"size": X[:, 0], "colour": np.array(["red", "blue", "green"])[np.arange(150) % 7 % 3]})
    frame["text"] = ["aa bb", "bb cc", "cc"] * 50
    families = {"size": Gaussian(), "colour": Categorical(), "text": Text(transform="counts", pseudo_count=1.0)}
    clf = GenerativeClassifier(families, calibrate=None).fit(frame, Y)
    alone = GenerativeClassifier(Categorical()).fit(frame[["colour"]], Y)
    assert list(clf.feature_log_prob_) == list(clf.categories_) == ["colour", "text"]
    np.testing.assert_allclose(clf.feature_log_prob_["colour"], alone.feature_log_prob_[0])
    assert clf.categories_["colour"].tolist() == alone.categories_[0].tolist() == ["blue", "green", "red"]
    share = (frame["colour"][Y == 1] == "red").sum() + 1
    assert np.exp(clf.feature_log_prob_["colour"])[1, 2] == pytest.approx(share / 53)
    assert clf.feature_log_prob_["text"].shape == (3, len(clf.categories_["text"]))
    assert clf.categories_["text"][:3].tolist() == ["aa", "bb", "cc"]
    assert not hasattr(GenerativeClassifier(Gaussian()).fit(X, Y), "categories_")


def test_moments_of_components_and_states():
    colour = np.array(["red", "blue"])[Y % 2]
    frame = pd.DataFrame({"colour": colour, "a": X[:, 0], "b": X[:, 1], "n": COUNTS[np.arange(150) % 60, 0]})
    families = {("b", "a"): Gaussian(), "colour": Categorical(), "n": Poisson()}
    one = MixtureModel(1, families, rule="ml").fit(frame)
    assert np.isnan(one.means_[0, 0])
    np.testing.assert_allclose(one.means_[0, 1:], frame[["a", "b", "n"]].mean())
    np.testing.assert_allclose(one.covariances_[0, 1:3, 1:3], np.cov(X[:, :2].T, bias=True), atol=1e-9)
    chain = HiddenMarkovModel(families, 3, rule="ml").fit([frame], [Y])
    expected = [frame[k == Y][["b", "a"]].mean() for k in range(3)]
    np.testing.assert_allclose(chain.means_[:, :2], expected)  # columns in the order of the dict
    assert np.isnan(chain.means_[:, 2]).all()


def test_moments_of_mixtures_are_those_of_their_samples():
    clf = GenerativeClassifier(Mixture(Gaussian("full"), 2)).fit(X[:, :2], Y)
    rows = clf.density.sample(np.repeat(np.arange(3), 100_000), np.random.default_rng(0))
    for k in range(3):
        mine = rows[100_000 * k : 100_000 * (k + 1)]
        np.testing.assert_allclose(clf.means_[k], mine.mean(axis=0), atol=0.01)
        np.testing.assert_allclose(clf.covariances_[k], np.cov(mine.T), atol=0.01)
        np.testing.assert_allclose(clf.variances_[k], mine.var(axis=0), atol=0.01)
    assert not hasattr(GenerativeClassifier(Mixture(Categorical(), 2)).fit(COUNTS % 3, CLASSES), "means_")


def test_moments_of_known_densities_are_their_own():
    correlated = Gaussian().fit(X[:, :2]).density("ml")
    known = {"a": correlated, "b": Gaussian("diagonal").fit(X[:, :2]).density("ml")}
    clf = GenerativeClassifier.from_densities(known)
    covariance = np.cov(X[:, :2].T, bias=True)
    np.testing.assert_allclose(clf.means_, np.tile(X[:, :2].mean(axis=0), (2, 1)))
    np.testing.assert_allclose(clf.covariances_, [covariance, np.diag(np.diag(covariance))])
    np.testing.assert_allclose(clf.variances_, np.tile(np.diag(covariance), (2, 1)))


def test_what_a_family_lacks_is_no_attribute():
    texts = GenerativeClassifier().fit(["aa bb", "bb cc"] * 5, [0, 1] * 5)
    assert not hasattr(texts, "means_")
    assert not hasattr(GenerativeClassifier(Gaussian()).fit(X, Y), "feature_log_prob_")
    assert not hasattr(GenerativeClassifier(Transformed()).fit(X, Y), "variances_")
    assert not hasattr(GenerativeClassifier(), "means_")


def test_priors_and_posteriors():
    clf = GenerativeClassifier(Poisson(shape=2.0, rate=0.5), prior={0: 0.9}).fit(COUNTS, CLASSES)
    np.testing.assert_allclose(clf.class_prior_, [0.9, 0.1])
    total = np.array([COUNTS[k == CLASSES].sum(axis=0) for k in range(2)])
    np.testing.assert_allclose(clf.posterior()["rate"].mean, (total + 2) / 30.5)
    frame = clf.to_frame(level=0.5)
    assert list(frame.columns) == ["feature", "parameter", "class", "mean", "low", "high", "evidence"]
    assert frame["evidence"].isna().all()
    assert frame["evidence"].dtype == float
    one = frame[(frame["feature"] == "1") & (frame["class"] == "1")].iloc[0]
    exact = stats.gamma(total[1, 1] + 2, scale=1 / 30.5)
    np.testing.assert_allclose([one["mean"], one["low"], one["high"]], [exact.mean(), *exact.interval(0.5)])
