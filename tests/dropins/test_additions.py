"""What the drop-ins add: ratios, other priors, unlearning, merging, leave-one-out, gaps, strings, sparse rows."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.decomposition
from scipy.stats import multivariate_normal, norm
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

import deciban.sklearn as ours
from deciban.errors import DecibanError, NotAvailableError, NotLearntError

RNG = np.random.default_rng(0)
Y = np.array(["a", "b", "c"])[np.arange(45) % 3]
REAL = RNG.normal(size=(45, 3)) + (np.arange(45) % 3)[:, None]
COUNTS = RNG.poisson(2.0, size=(45, 3))
CODES = RNG.integers(0, 3, size=(45, 3))

SUMS = [
    (ours.GaussianNB(var_smoothing=0), REAL),
    (ours.MultinomialNB(alpha=0.5), COUNTS),
    (ours.BernoulliNB(), COUNTS),
    (ours.CategoricalNB(min_categories=3), CODES),
    (ours.ComplementNB(), COUNTS),
]
ANALYSES = [(ours.LinearDiscriminantAnalysis(), REAL), (ours.QuadraticDiscriminantAnalysis(), REAL)]
GENERATIVE = [*SUMS[:4], *ANALYSES]


def name(value):
    return type(value).__name__ if hasattr(value, "fit") else ""


@pytest.mark.parametrize(("clf", "X"), [*SUMS, *ANALYSES], ids=name)
def test_unlearnt_rows_leave_the_classifier_of_the_others(clf, X):
    whole = clone(clf).fit(X, Y).unlearn(X[30:], Y[30:])
    part = clone(clf).fit(X[:30], Y[:30])
    np.testing.assert_allclose(whole.predict_proba(X), part.predict_proba(X), atol=1e-10)


@pytest.mark.parametrize(("clf", "X"), SUMS, ids=name)
def test_two_classifiers_add(clf, X):
    one, other = clone(clf).fit(X[Y != "c"], Y[Y != "c"]), clone(clf).fit(X[Y == "c"][:, :], Y[Y == "c"])
    both = one + other
    whole = clone(clf).fit(X, Y)
    np.testing.assert_array_equal(both.classes_, whole.classes_)
    np.testing.assert_allclose(both.predict_proba(X), whole.predict_proba(X), atol=1e-10)
    assert len(one.classes_) == 2


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("at", [0.0, 1e4])
@pytest.mark.parametrize("left", [1, 2, 100])
def test_rounding_is_no_sign_of_rows_that_were_never_learnt(left, at, dtype):
    rng = np.random.default_rng(0)
    X, y = (rng.normal(size=(400, 3)) + at).astype(dtype), np.arange(400) % 2
    clf = ours.GaussianNB().fit(X, y).unlearn(X[2 * left :], y[2 * left :])
    np.testing.assert_allclose(clf.class_count_, left)
    far = ours.GaussianNB().fit(X, y)
    with pytest.raises(NotLearntError):
        far.unlearn(X[:9] + 1000, y[:9])
    np.testing.assert_array_equal(far.var_, ours.GaussianNB().fit(X, y).var_)


@pytest.mark.parametrize(("clf", "X"), [*SUMS[:2], SUMS[3], *ANALYSES], ids=name)
def test_rows_that_were_never_learnt_are_refused_and_nothing_changes(clf, X):
    fitted = clone(clf).fit(X, Y)
    before = fitted.predict_proba(X)
    with pytest.raises(NotLearntError):
        fitted.unlearn(np.repeat(X, 3, axis=0), np.repeat(Y, 3))
    np.testing.assert_array_equal(fitted.predict_proba(X), before)


@pytest.mark.parametrize(("clf", "X"), SUMS, ids=name)
def test_the_last_rows_are_kept(clf, X):
    fitted = clone(clf).fit(X, Y)
    before = fitted.predict_proba(X)
    with pytest.raises(NotAvailableError, match="no rows left"):
        fitted.unlearn(X, Y)
    np.testing.assert_array_equal(fitted.predict_proba(X), before)


@pytest.mark.filterwarnings("ignore:divide by zero")  # log of the probability 0 of a class, as in scikit-learn
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("at", [0.0, 1e3])
@pytest.mark.parametrize("weight", [1.0, 0.1, 1 / 3])
def test_a_class_is_unlearnt_by_its_own_rows_only(weight, at, dtype):
    """As many rows as were learnt, but different ones, are detected by the mean and the variance."""
    rng = np.random.default_rng(0)
    X, y, w = (rng.normal(size=(60, 3)) + at).astype(dtype), np.arange(60) % 2, np.full(60, weight)
    clf = ours.GaussianNB().fit(X, y, w)
    own = X[y == 1]
    for others in (own + 1, 1.5 * (own - at) + at):
        with pytest.raises(NotLearntError):
            clf.unlearn(others.astype(dtype), y[y == 1], w[y == 1])
    clf.unlearn(own, y[y == 1], w[y == 1])
    np.testing.assert_array_equal(clf.predict_proba(X), np.tile([1.0, 0.0], (60, 1)))


@pytest.mark.parametrize(("clf", "X"), GENERATIVE, ids=name)
def test_leave_one_out_is_a_fit_without_the_row(clf, X):
    found = clone(clf).fit(X, Y).leave_one_out(X, Y)
    for i in range(0, 45, 4):
        others = np.arange(45) != i
        expected = clone(clf).fit(X[others], Y[others]).predict_proba(X[i : i + 1])
        np.testing.assert_allclose(found[i : i + 1], expected, atol=1e-9)


@pytest.mark.parametrize(("clf", "X"), GENERATIVE, ids=name)
def test_ratios_and_priors(clf, X):
    fitted = clone(clf).fit(X, Y)
    prior = {"a": 0.7, "b": 0.2}
    p = fitted.predict_proba(X, prior=prior)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    np.testing.assert_allclose(np.exp(fitted.predict_log_proba(X, prior=[0.7, 0.2, 0.1])), p, atol=1e-12)
    np.testing.assert_array_equal(fitted.predict(X, prior=prior), fitted.classes_[p.argmax(axis=1)])
    odds = np.log(p[:, 0] / p[:, 1]) - np.log(0.7 / 0.2)
    np.testing.assert_allclose(fitted.llr(X, "a", "b"), odds, atol=1e-8)
    learnt = fitted.predict_proba(X)  # equal shares of three classes
    np.testing.assert_allclose(fitted.llr(X, "a"), np.log(learnt[:, 0] / (1 - learnt[:, 0])) - np.log(0.5), atol=1e-7)
    with pytest.raises(DecibanError, match="name the class"):
        fitted.llr(X)
    with pytest.raises(DecibanError, match="not to 1"):
        fitted.predict_proba(X, prior=[0.5, 0.1, 0.1])


# -- options that scikit-learn does not have ---------------------------------------------------------------------------
GAPPY = np.where(RNG.random(REAL.shape) < 0.2, np.nan, REAL)
WEIGHT = RNG.integers(1, 4, 45).astype(float)


def test_gaussian_rows_with_gaps():
    clf = ours.GaussianNB(handle_missing="ignore").fit(GAPPY, Y, WEIGHT)
    spread = clf.var_smoothing * np.nanvar(GAPPY, axis=0).max()
    for k, label in enumerate(clf.classes_):
        for d in range(3):
            there = (label == Y) & ~np.isnan(GAPPY[:, d])
            mean = np.average(GAPPY[there, d], weights=WEIGHT[there])
            variance = np.average((GAPPY[there, d] - mean) ** 2, weights=WEIGHT[there])
            np.testing.assert_allclose([clf.theta_[k, d], clf.var_[k, d]], [mean, variance + spread])
            assert clf.value_count_[k, d] == WEIGHT[there].sum()
    one = GAPPY[:1].copy()
    one[0, 1] = np.nan
    uniform = clf.predict_log_proba(one, prior=[1 / 3] * 3)[0]
    densities = []
    for k in range(3):
        there = [d for d in range(3) if not np.isnan(one[0, d])]
        densities.append(norm.logpdf(one[0, there], clf.theta_[k, there], np.sqrt(clf.var_[k, there])).sum())
    np.testing.assert_allclose(uniform, densities - np.logaddexp.reduce(densities))
    with pytest.raises(ValueError, match="NaN"):
        ours.GaussianNB().fit(GAPPY, Y)


def test_a_class_without_values_has_the_moments_of_all():
    X = np.array([[1.0, np.nan], [2.0, np.nan], [3.0, 5.0], [4.0, 9.0], [1.0, 2.0]])
    clf = ours.GaussianNB(handle_missing="ignore", var_smoothing=0).fit(X, [0, 0, 1, 1, 1])
    np.testing.assert_allclose([clf.theta_[0, 1], clf.var_[0, 1]], [X[2:, 1].mean(), X[2:, 1].var()])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_gaussian_sparse_rows(dtype):
    X = np.where(RNG.random((60, 8)) < 0.6, 0.0, RNG.normal(size=(60, 8))).astype(dtype)
    y = np.arange(60) % 3
    dense, sparse = ours.GaussianNB().fit(X, y), ours.GaussianNB(accept_sparse=True).fit(sp.csr_array(X), y)
    bound = 1e-10 if dtype is np.float64 else 1e-4
    np.testing.assert_allclose(sparse.var_, dense.var_, atol=bound)
    np.testing.assert_allclose(sparse.predict_proba(sp.csc_array(X)), dense.predict_proba(X), atol=bound)
    assert sparse.predict_proba(sp.csr_array(X)).dtype == dense.predict_proba(X).dtype
    with pytest.raises(TypeError):
        ours.GaussianNB().fit(sp.csr_array(X), y)


WORDS = np.array([["red", "blue", "green"], ["s", "m", "l"], ["yes", "no", None]], dtype=object)
NAMES = np.column_stack([WORDS[d][CODES[:, d]] for d in range(3)])


def test_categories_of_any_type():
    clf = ours.CategoricalNB(categories="auto", handle_unknown="ignore", handle_missing="ignore").fit(NAMES, Y)
    assert [each.tolist() for each in clf.categories_] == [["blue", "green", "red"], ["l", "m", "s"], ["no", "yes"]]
    codes = np.column_stack([np.array([2, 0, 1])[CODES[:, 0]], np.array([2, 1, 0])[CODES[:, 1]]])
    peer = ours.CategoricalNB().fit(codes, Y)
    absent = NAMES.copy()
    absent[:, 2] = None
    np.testing.assert_allclose(clf.predict_proba(absent), peer.predict_proba(codes), atol=1e-12)
    absent[:, 2] = "maybe"
    np.testing.assert_allclose(clf.predict_proba(absent), peer.predict_proba(codes), atol=1e-12)
    strict = ours.CategoricalNB(categories="auto", handle_missing="ignore").fit(NAMES, Y)
    with pytest.raises(DecibanError, match="column 2 holds 'maybe'"):
        strict.predict(absent)
    with pytest.raises(DecibanError, match=r"column 2 is missing.*handle_missing"):
        ours.CategoricalNB(categories="auto").fit(NAMES, Y)
    with pytest.raises(NotLearntError):
        clf.unlearn(absent, Y)


def test_unknown_and_missing_codes():
    known = ours.CategoricalNB(handle_unknown="ignore").fit(CODES[:, :2], Y)
    other = CODES[:, :2].copy()
    other[:, 1] = 9
    first = ours.CategoricalNB().fit(CODES[:, :1], Y)
    np.testing.assert_allclose(known.predict_proba(other), first.predict_proba(CODES[:, :1]), atol=1e-12)
    gaps = CODES[:, :2].astype(float)
    gaps[:, 1] = np.nan
    clf = ours.CategoricalNB(handle_missing="ignore").fit(CODES[:, :2], Y)
    np.testing.assert_allclose(clf.predict_proba(gaps), first.predict_proba(CODES[:, :1]), atol=1e-12)
    with pytest.raises(IndexError):
        ours.CategoricalNB().fit(CODES, Y).predict(CODES + 9)


OPTIONS = [
    (ours.GaussianNB(handle_missing="ignore", var_smoothing=0), GAPPY),
    (ours.GaussianNB(accept_sparse=True, var_smoothing=0), sp.csr_array(np.round(REAL))),
    (ours.CategoricalNB(categories="auto", handle_missing="ignore", handle_unknown="ignore"), NAMES),
]


@pytest.mark.parametrize(("clf", "X"), OPTIONS, ids=name)
def test_sums_under_the_options(clf, X):
    whole, at = clone(clf).fit(X, Y, WEIGHT), np.arange(45)
    head = clone(clf).partial_fit(X[at[:15]], Y[:15], ["a", "b", "c"], WEIGHT[:15])
    np.testing.assert_allclose(
        clone(head).fit(X[at[:15]], Y[:15], WEIGHT[:15]).predict_proba(X), head.predict_proba(X), atol=1e-12
    )
    head.partial_fit(X[at[15:]], Y[15:], sample_weight=WEIGHT[15:])
    parts = [clone(clf).fit(X[at[part]], Y[part], WEIGHT[part]) for part in (at < 25, at >= 25)]
    for other in (head, parts[0] + parts[1]):
        np.testing.assert_allclose(other.predict_proba(X), whole.predict_proba(X), atol=1e-10)
    left = whole.unlearn(X[at[25:]], Y[25:], WEIGHT[25:])
    np.testing.assert_allclose(left.predict_proba(X[at[:25]]), parts[0].predict_proba(X[at[:25]]), atol=1e-9)
    full = clone(clf).fit(X, Y)
    without = clone(clf).fit(X[at[1:]], Y[1:])
    np.testing.assert_allclose(full.leave_one_out(X, Y)[:1], without.predict_proba(X[at[:1]]), atol=1e-9)


STRICT = [
    ours.GaussianNB(handle_missing="ignore", accept_sparse=True),
    ours.CategoricalNB(categories="auto", handle_unknown="ignore", handle_missing="ignore"),
    ours.PCA(),
]


@pytest.mark.filterwarnings("ignore:.*:sklearn.exceptions.SkipTestWarning")
@pytest.mark.parametrize("estimator", STRICT, ids=repr)
def test_scikit_learns_checks(estimator):
    results = check_estimator(estimator, on_fail=None, on_skip=None)
    assert not [each["check_name"] for each in results if each["status"] == "failed"]
    assert sum(each["status"] == "passed" for each in results) > 40


# -- principal components ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("options", [{}, {"n_components": 2, "whiten": True}, {"n_components": 0.8}])
def test_principal_components_of_sums(options):
    X = RNG.normal(size=(60, 4)) * [4.0, 2.0, 1.0, 0.5] + 30
    whole = sklearn.decomposition.PCA(**options, svd_solver="full").fit(X)
    parts = [ours.PCA(**options).fit(part) for part in (X[:35], X[35:])]
    grown = ours.PCA(**options).partial_fit(X[:35]).partial_fit(X[35:])
    twice = ours.PCA(**options).partial_fit(X[:35], sample_weight=np.full(35, 2.0)).unlearn(X[:35])
    more = ours.PCA(**options).fit(np.concatenate([X, X[:20] + 3])).unlearn(X[:20] + 3)
    for found in (parts[0] + parts[1], sum(parts), grown, more, twice.partial_fit(X[35:])):
        assert found.n_components_ == whole.n_components_
        np.testing.assert_allclose(found.transform(X), whole.transform(X), atol=1e-9)
        np.testing.assert_allclose(found.noise_variance_, whole.noise_variance_, atol=1e-10)
        np.testing.assert_allclose(found.explained_variance_ratio_, whole.explained_variance_ratio_, atol=1e-12)
    with pytest.raises(NotLearntError):
        grown.unlearn(10 * X)
    with pytest.raises(NotAvailableError, match="arpack"):
        ours.PCA(2, svd_solver="arpack").fit(X).partial_fit(X)


@pytest.mark.parametrize("whiten", [False, True])
def test_principal_components_of_equal_variances(whiten):
    """scikit-learn fails here: an explained variance minus the noise variance is 0, and is divided by."""
    X = np.vstack([np.eye(4), -np.eye(4)])
    pca = ours.PCA(2, whiten=whiten, svd_solver="covariance_eigh").fit(X)
    pca.explained_variance_[:] = pca.noise_variance_  # as they are, without rounding
    np.testing.assert_allclose(pca.get_precision() @ pca.get_covariance(), np.eye(4), atol=1e-12)
    expected = multivariate_normal(np.zeros(4), 2 / 7 * np.eye(4)).logpdf(X)
    np.testing.assert_allclose(pca.score_samples(X), expected, atol=1e-10)
