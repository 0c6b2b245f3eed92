"""Promises about numbers: each test is one of them."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multinomial
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.model_selection import StratifiedKFold

from deciban import Bernoulli, Categorical, Gaussian, GenerativeClassifier, Multinomial, Poisson, Text

RNG = np.random.default_rng(0)
HALVES = np.repeat([0, 1], 60)


# -- densities ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("calibrate", [None, "offsets", "affine", "pav"])
def test_log_marginal_of_a_number_integrates_to_one(calibrate):
    X = RNG.normal(size=(120, 1)) + HALVES[:, None]
    clf = GenerativeClassifier(Gaussian(), calibrate=calibrate).fit(X, HALVES)
    grid = np.linspace(-15, 15, 20_001)
    assert np.trapezoid(np.exp(clf.log_marginal(grid[:, None])), grid) == pytest.approx(1, abs=1e-6)


def test_log_marginal_of_categories_and_counts_sums_to_one_after_blockwise_calibration():
    frame = pd.DataFrame({"colour": RNG.choice(["red", "white"], 120), "events": RNG.poisson(1 + 2 * HALVES)})
    families = {"colour": Categorical(), "events": Poisson()}
    clf = GenerativeClassifier(families, calibrate="blocks").fit(frame, HALVES)
    cells = pd.DataFrame([{"colour": colour, "events": k} for colour in ("red", "white") for k in range(80)])
    assert np.exp(clf.log_marginal(cells)).sum() == pytest.approx(1, abs=1e-9)


def test_log_marginal_weighs_classes_by_the_prior():
    clf = GenerativeClassifier.from_densities({"m": Gaussian.of(0, 1), "f": Gaussian.of(3, 1)})
    likelihood = np.exp(clf.log_likelihood([[1.0]]))[0]
    assert np.exp(clf.log_marginal([[1.0]], prior={"m": 0.9})[0]) == pytest.approx(likelihood @ [0.9, 0.1])


# -- coefficients ------------------------------------------------------------------------------------------------------
def _counts():
    X = np.where(
        HALVES[:, None] == 0, RNG.multinomial(9, [0.5, 0.3, 0.2], 120), RNG.multinomial(9, [0.2, 0.3, 0.5], 120)
    )
    return X, GenerativeClassifier(Multinomial(), calibrate=None).fit(X, HALVES)


def _multinomial_log_pmf(X, train, labels):
    """Scores (n, 2) by SciPy, with posterior means under a pseudo-count of 1."""
    sums = np.array([train[labels == k].sum(axis=0) + 1.0 for k in (0, 1)])
    return np.column_stack([multinomial.logpmf(X, X.sum(axis=1), each / each.sum()) for each in sums])


def test_left_out_log_likelihoods_of_a_multinomial_have_the_coefficient():
    X, clf = _counts()
    left = clf.leave_one_out(X, HALVES, method="log_likelihood")
    for i in (0, 7, 119):
        kept = np.arange(120) != i
        np.testing.assert_allclose(left[i], _multinomial_log_pmf(X[[i]], X[kept], HALVES[kept])[0], atol=1e-9)


def test_cross_validated_log_likelihoods_of_a_multinomial_have_the_coefficient():
    X, clf = _counts()
    folds = StratifiedKFold(5)
    found = clf.cross_val_predict(X, HALVES, cv=folds, method="log_likelihood")
    for train, test in folds.split(X, HALVES):
        np.testing.assert_allclose(found[test], _multinomial_log_pmf(X[test], X[train], HALVES[train]), atol=1e-9)


# -- gaps --------------------------------------------------------------------------------------------------------------
def _joint(rule="mean", **options):
    rows = np.array([["a", "x"], ["a", "y"], ["b", "y"], ["b", "y"], ["a", "x"], ["b", "x"], ["b", "z"]], dtype=object)
    labels = [0, 0, 0, 1, 1, 1, 1]
    return GenerativeClassifier(Categorical(joint=True, **options), rule=rule, calibrate=None).fit(rows, labels), rows


@pytest.mark.parametrize("rule", ["ml", "mean", "predictive"])
def test_a_joint_table_is_summed_over_the_columns_that_a_row_misses(rule):
    clf, _ = _joint(rule)
    for first in "ab":
        whole = np.exp(clf.log_likelihood(np.array([[first, second] for second in "xyz"], dtype=object))).sum(axis=0)
        np.testing.assert_allclose(np.exp(clf.log_likelihood(np.array([[first, None]], dtype=object)))[0], whole)
    assert clf.predict_proba(np.array([["a", None]], dtype=object), prior="uniform")[0, 0] > 0.55
    np.testing.assert_array_equal(clf.log_likelihood(np.array([[None, None]], dtype=object)), 0.0)


def test_the_marginals_of_a_joint_table_sum_to_one():
    clf, _ = _joint()
    singles = np.array([["a", None], ["b", None]], dtype=object)
    np.testing.assert_allclose(np.exp(clf.log_likelihood(singles)).sum(axis=0), 1)


def test_rows_with_gaps_are_not_counted_in_a_joint_table_and_left_out_as_they_are_scored():
    clf, rows = _joint()
    labels = [0, 0, 0, 1, 1, 1, 1, 0, 1]
    gaps = np.array([["a", None], [None, "z"]], dtype=object)
    both = GenerativeClassifier(Categorical(joint=True), calibrate=None).fit(np.concatenate([rows, gaps]), labels)
    np.testing.assert_allclose(both.log_likelihood(rows), clf.log_likelihood(rows))
    for weight in (None, np.full(9, 2.0)):
        both.fit(np.concatenate([rows, gaps]), labels, weight)
        left = both.leave_one_out(np.concatenate([rows, gaps]), labels, method="log_likelihood", sample_weight=weight)
        np.testing.assert_allclose(left[-2:], both.log_likelihood(gaps))


def test_the_parts_of_a_row_with_a_gap_in_a_joint_table_sum_to_its_llr():
    clf, _ = _joint()
    rows = np.array([["a", None], [None, "z"], ["b", "y"]], dtype=object)
    np.testing.assert_allclose(clf.explain(rows).total, clf.llr(rows), atol=1e-12)


@pytest.mark.parametrize("calibrate", ["affine", "pav", "offsets", "blocks"])
def test_a_row_without_values_has_no_evidence_after_any_calibration(calibrate):
    X = RNG.normal(size=(120, 2)) + HALVES[:, None]
    clf = GenerativeClassifier(Gaussian("diagonal"), calibrate=calibrate).fit(X[:100], HALVES[:100])
    assert clf.llr([[np.nan, np.nan]]).tolist() == [0.0]
    np.testing.assert_allclose(clf.predict_proba([[np.nan, np.nan]]), [[0.6, 0.4]])


# -- explanations ------------------------------------------------------------------------------------------------------
@pytest.mark.filterwarnings("ignore::deciban.errors.ImpossibleRowWarning")
@pytest.mark.parametrize("calibrate", ["auto", "offsets", "affine", "pav", None])
def test_words_that_a_class_finds_impossible_are_explained(calibrate):
    texts = ["ant bee cow", "ant ant dog", "elk fox", "fox gnu gnu", "ant fox"] * 8
    labels = [0, 0, 1, 1, 1] * 8
    clf = GenerativeClassifier(Text(), rule="ml", calibrate=calibrate).fit(texts, labels)
    for text in ("bee", "gnu", "bee gnu", "ant", "ant gnu", "zebu"):
        explained = clf.explain([text])
        assert "nan" not in str(explained)
        assert explained.total[0] == pytest.approx(clf.llr([text])[0], abs=1e-9)


def test_impossible_flags_are_explained():
    X = np.array([[1, 0], [1, 1], [0, 1], [0, 0]] * 10)
    clf = GenerativeClassifier(Bernoulli(), rule="ml", calibrate="offsets").fit(X, [0, 0, 1, 1] * 10)
    assert "nan" not in str(clf.explain(X[:4]))


# -- calibration does no harm ------------------------------------------------------------------------------------------
def _gaussians(distance, n, seed):
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % 2
    return rng.normal(size=(n, 2)) + np.column_stack([distance * codes, np.zeros(n)]), codes


def _log_loss(clf, X, y):
    return -clf.predict_log_proba(X)[np.arange(len(y)), y].mean()


def _harm_on_gaussians(distance, n, method, seeds=5):
    """Mean rise of the log loss of fresh rows by calibration, where the family is true."""
    rises = []
    for seed in range(seeds):
        train, fresh = _gaussians(distance, n, seed), _gaussians(distance, 4000, 1000 + seed)
        told, raw = (GenerativeClassifier(Gaussian("tied"), calibrate=how).fit(*train) for how in (method, None))
        rises.append(_log_loss(told, *fresh) - _log_loss(raw, *fresh))
    return np.mean(rises)


def _harm_in_folds(X, y, family, method="offsets"):
    """Mean rise of the log loss by calibration, in ten folds."""
    rises = []
    for train, test in StratifiedKFold(10, shuffle=True, random_state=0).split(X, y):
        told, raw = (GenerativeClassifier(family, calibrate=how).fit(X[train], y[train]) for how in (method, None))
        rises.append(_log_loss(told, X[test], y[test]) - _log_loss(raw, X[test], y[test]))
    return np.mean(rises)


@pytest.mark.parametrize("method", ["offsets", "affine"])
@pytest.mark.parametrize("n", [40, 200])
def test_calibration_does_no_harm_to_true_densities_that_are_far_apart(n, method):
    assert _harm_on_gaussians(8.0, n, method) <= 1e-4


def test_calibration_does_no_harm_to_iris():
    assert _harm_in_folds(*load_iris(return_X_y=True), Gaussian("tied")) <= 0.001


def test_counts_are_calibrated_although_every_learnt_row_is_right():
    rng = np.random.default_rng(0)
    codes = np.arange(200) % 2
    shares = np.array([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]])
    X = np.array([rng.multinomial(n, shares[c]) for n, c in zip(rng.poisson(300, 200) + 50, codes)])
    clf = GenerativeClassifier(Multinomial(), calibrate="length").fit(X, codes)
    assert (clf.leave_one_out(X, codes, method="predict") == codes).all()
    long, wrong = np.array([[3000, 1800, 1200]]), 1
    assert clf.log_likelihood(long, raw=True)[0] @ [1, -1] > 500  # nats: naive Bayes takes every event as news
    assert -clf.predict_log_proba(long)[0, wrong] < 20


def test_calibration_does_little_harm_on_average():
    sets = load_iris(return_X_y=True), load_wine(return_X_y=True), load_breast_cancer(return_X_y=True)
    harm = [_harm_on_gaussians(distance, n, "offsets") for distance in (1, 2, 4, 8) for n in (40, 200)]
    harm += [_harm_in_folds(*each, Gaussian(structure)) for each in sets for structure in ("tied", "diagonal")]
    assert np.mean(harm) <= 0.002
    assert np.median(harm) <= 0.001
    assert max(harm) <= 0.02


@pytest.mark.slow
def test_columns_of_noise_do_no_more_harm_than_knowing_the_prior_and_figures_say_so():
    losses, printed = [], []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        noise = pd.DataFrame(rng.normal(size=(1300, 60))).rename(columns=str)
        codes = np.arange(1300) % 2
        clf = GenerativeClassifier().fit(noise[:300], codes[:300])
        losses.append(_log_loss(clf, noise[300:], codes[300:]))
        printed.append(clf.evaluate(noise[:300], codes[:300], learnt=True).log_loss)
    assert np.mean(printed) == pytest.approx(np.mean(losses), abs=0.01)  # .03 to .1 less, if calibrators see the rows
    assert np.mean(losses) <= np.log(2) + 0.01
    assert max(losses) <= np.log(2) + 0.03


def test_a_useless_model_of_two_equal_classes_is_wrong_in_half_of_its_rows():
    clf = GenerativeClassifier(Bernoulli(), calibrate=None).fit(np.tile([[0], [1]], (40, 1)), np.repeat([0, 1], 40))
    told = clf.evaluate(np.tile([[0], [1]], (40, 1)), np.repeat([0, 1], 40), learnt=True, prior={0: 0.51})
    assert told.log_loss == pytest.approx(np.log(2), abs=0.03)
    assert np.ndim(told.prior) == 1  # the prior of all rows: without each row, it would favour the other class
    assert clf.evaluate([[0], [1]] * 40, np.repeat([0, 1], 40), learnt=True).prior.tolist() == [0.5, 0.5]


# -- numbers shown to people are in their units ------------------------------------------------------------------------
@pytest.mark.parametrize("structure", ["full", "tied", "diagonal", "spherical"])
@pytest.mark.parametrize("rule", ["ml", "predictive"])
def test_means_of_a_gaussian_density_are_those_of_the_rows(structure, rule):
    X, y = load_iris(return_X_y=True)
    density = GenerativeClassifier(Gaussian(structure), rule=rule).fit(X, y).density
    means = np.array([X[y == k].mean(axis=0) for k in range(3)])
    np.testing.assert_allclose(density.mean, means, rtol=0.01)
    assert "5.00" in repr(density)  # the first mean, 5.006
    assert "origin" not in repr(density)


def test_covariances_of_a_gaussian_density_are_those_of_the_rows():
    X, y = load_iris(return_X_y=True)
    density = GenerativeClassifier(Gaussian(), rule="ml").fit(X, y).density
    np.testing.assert_allclose(density.covariance, [np.cov(X[y == k].T, bias=True) for k in range(3)], rtol=1e-9)
