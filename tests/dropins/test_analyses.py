"""Discriminant analyses and mixtures with weights, and with rows that are added, removed or have gaps."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.discriminant_analysis
import sklearn.mixture
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import check_estimator

import deciban.sklearn as ours
from deciban import GaussianWithGaps
from deciban.errors import DecibanError, NotAvailableError, NotLearntError, SingularError, UnknownLabelError
from deciban.kernels import forced

RNG = np.random.default_rng(0)
N = 90
CODES = np.arange(N) % 3
Y = np.array(["a", "b", "c"])[CODES]
X = RNG.normal(size=(N, 4)) @ (np.eye(4) + 0.3) + 0.7 * CODES[:, None] + 5
WEIGHT = RNG.integers(0, 4, N)
PRIOR = [0.2, 0.3, 0.5]

LINEAR = [
    {},
    {"solver": "lsqr"},
    {"solver": "eigen"},
    {"solver": "lsqr", "shrinkage": 0.3},
    {"solver": "eigen", "shrinkage": 0.3},
    {"solver": "lsqr", "priors": PRIOR},
    {"store_covariance": True, "priors": PRIOR, "n_components": 1},
]
QUADRATIC = [{}, {"reg_param": 0.1}, {"solver": "eigen", "shrinkage": 0.3}, {"store_covariance": True, "priors": PRIOR}]
CASES = [("LinearDiscriminantAnalysis", each) for each in LINEAR]
CASES += [("QuadraticDiscriminantAnalysis", each) for each in QUADRATIC]


def same(mine, peer):
    for attribute in ("means_", "priors_", "coef_", "intercept_", "covariance_", "xbar_", "explained_variance_ratio_"):
        assert hasattr(mine, attribute) == hasattr(peer, attribute)
        if hasattr(peer, attribute):
            np.testing.assert_allclose(getattr(mine, attribute), getattr(peer, attribute), atol=1e-10)
    np.testing.assert_allclose(mine.predict_proba(X), peer.predict_proba(X), atol=1e-12)


@pytest.mark.parametrize(("name", "options"), CASES)
def test_analyses_of_sums_are_those_of_the_rows(name, options):
    mine, peer = (getattr(lib, name)(**options) for lib in (ours, sklearn.discriminant_analysis))
    whole = clone(peer).fit(X, Y)
    halves = [clone(mine).fit(X[part], Y[part]) for part in (slice(40), slice(40, None))]
    grown = clone(mine).partial_fit(X[:40], Y[:40], ["a", "b", "c"]).partial_fit(X[40:], Y[40:])
    more = clone(mine).fit(np.concatenate([X, X[:9] + 1]), np.concatenate([Y, Y[:9]])).unlearn(X[:9] + 1, Y[:9])
    for each in (halves[0] + halves[1], sum(halves), grown, more):
        same(each, whole)
    times = np.repeat(np.arange(N), WEIGHT)
    weighted = clone(mine).partial_fit(X, Y, ["a", "b", "c"], sample_weight=WEIGHT)
    if name == "LinearDiscriminantAnalysis":
        weighted = weighted.fit(X, Y, sample_weight=WEIGHT)
    same(weighted, clone(peer).fit(X[times], Y[times]))
    few = WEIGHT > 2
    same(weighted.unlearn(X[few], Y[few], WEIGHT[few]), clone(peer).fit(X[(k := times[~few[times]])], Y[k]))


def test_kernels_and_scikit_learns_code_keep_the_same_sums():
    for name, _ in (CASES[0], CASES[-1]):
        with forced("numba"):
            fast = getattr(ours, name)().fit(X, Y)
        slow = getattr(ours, name)().fit(X.tolist(), Y.tolist())
        for one, other in zip(fast._moments, slow._moments):
            np.testing.assert_allclose(one, other, atol=1e-10)


@pytest.mark.parametrize("labels", [Y, CODES, CODES.tolist(), CODES.astype(float), CODES > 0])
@pytest.mark.parametrize("name", ["LinearDiscriminantAnalysis", "QuadraticDiscriminantAnalysis"])
def test_few_rows_give_scikit_learns_attributes_to_the_bit(name, labels):
    mine, peer = (
        getattr(lib, name)(store_covariance=True).fit(X, labels) for lib in (ours, sklearn.discriminant_analysis)
    )
    assert set(vars(mine)) - set(vars(peer)) == {"_moments"}
    assert set(vars(peer)) <= set(vars(mine))
    for attribute, value in vars(peer).items():
        if attribute.endswith("_"):
            np.testing.assert_array_equal(getattr(mine, attribute), value, err_msg=attribute)
            assert np.asarray(getattr(mine, attribute)).dtype == np.asarray(value).dtype


def test_leave_one_out_of_an_analysis_with_a_constant_column():
    wide = np.column_stack([X, np.ones(N), X[:, 0] + X[:, 1]])
    found = ours.LinearDiscriminantAnalysis().fit(wide, Y).leave_one_out(wide[:6], Y[:6])
    for i in range(6):
        others = np.arange(N) != i
        without = sklearn.discriminant_analysis.LinearDiscriminantAnalysis().fit(wide[others], Y[others])
        np.testing.assert_allclose(found[i], without.predict_proba(wide[i : i + 1])[0], atol=1e-9)
    with pytest.raises(SingularError, match="do not vary"):
        ours.LinearDiscriminantAnalysis(solver="lsqr").fit(wide, Y).leave_one_out(wide, Y)


def test_a_class_that_is_unlearnt_has_probability_0():
    gone = Y == "a"
    clf = ours.LinearDiscriminantAnalysis().fit(X, Y).unlearn(X[gone], Y[gone])
    rest = sklearn.discriminant_analysis.LinearDiscriminantAnalysis().fit(X[~gone], Y[~gone])
    np.testing.assert_allclose(clf.predict_proba(X), np.column_stack([np.zeros(N), rest.predict_proba(X)]), atol=1e-12)
    np.testing.assert_allclose(clf.predict_proba(X, prior=[0.5, 0.3, 0.2])[:, 0], 0)
    assert np.isfinite(clf.llr(X, "b")).all()
    counts = ours.MultinomialNB().partial_fit([[1, 2], [3, 0]], ["a", "b"], classes=["a", "b", "c"])
    np.testing.assert_allclose(counts.predict_proba([[1, 1]], prior=[0.3, 0.3, 0.4]).sum(), 1)


def test_what_an_analysis_cannot_do_is_refused_and_nothing_changes():
    linear, quadratic = ours.LinearDiscriminantAnalysis, ours.QuadraticDiscriminantAnalysis
    clf, before = linear().fit(X, Y), linear().fit(X, Y).predict_proba(X)
    with pytest.raises(NotLearntError):
        clf.unlearn(30 * X[:5], Y[:5])
    with pytest.raises(NotAvailableError, match="two classes"):
        clf.unlearn(X[Y != "a"], Y[Y != "a"])
    with pytest.raises(UnknownLabelError):
        clf.unlearn(X[:1], ["z"])
    with pytest.raises(ValueError, match="Negative"):
        linear().fit(X, Y, sample_weight=-np.ones(N))
    with pytest.raises(DecibanError, match="first call"):
        linear().partial_fit(X, Y)
    with pytest.raises(DecibanError, match="more than 3 rows"):
        quadratic().partial_fit(X[:3], Y[:3], ["a", "b", "c"])
    with pytest.raises(np.linalg.LinAlgError, match="class a is not full rank"):
        quadratic().fit(X, Y).unlearn(X[Y == "a"], Y[Y == "a"])
    twice = np.hstack([X, X])
    with pytest.raises(SingularError, match="set `shrinkage`"):
        linear(solver="eigen").partial_fit(twice, Y, ["a", "b", "c"])
    with pytest.raises(SingularError, match="No column varies"):
        linear().partial_fit(np.ones((N, 2)), Y, ["a", "b", "c"])
    with pytest.raises(NotAvailableError, match="auto"):
        linear(solver="lsqr", shrinkage="auto").fit(X, Y).partial_fit(X, Y)
    with pytest.raises(NotAvailableError, match="with shrinkage"):
        linear(solver="lsqr", shrinkage=0.3).fit(X, Y).leave_one_out(X, Y)
    with pytest.raises(NotAvailableError, match="priors"):
        linear(solver="lsqr", priors=PRIOR).fit(X, Y).leave_one_out(X, Y)
    large = np.concatenate([X, [[1e10, 0, 0, 0]]])
    spoilt = linear().fit(large, np.append(Y, "a"))
    with pytest.raises(NotAvailableError, match="falsify"):
        spoilt.unlearn(large[-1:], ["a"])
    np.testing.assert_array_equal(clf.predict_proba(X), before)


def test_log_posteriors_that_underflow_are_scikit_learns():
    far = np.concatenate([X, 1e3 * X])
    mine, peer = (lib.LinearDiscriminantAnalysis().fit(X, Y) for lib in (ours, sklearn.discriminant_analysis))
    with forced("numba"):
        found = mine.predict_log_proba(far)
    expected = peer.predict_log_proba(far)
    assert (expected < -700).any()
    normal = expected > -700  # logarithms of subnormal numbers have few digits
    np.testing.assert_allclose(found[normal], expected[normal], atol=1e-9)
    np.testing.assert_allclose(found, expected, atol=0.5)


# -- mixtures ----------------------------------------------------------------------------------------------------------
START = {
    "full": np.array([np.eye(4)] * 2),
    "tied": np.eye(4),
    "diag": np.ones((2, 4)),
    "spherical": np.ones(2),
}
GAPPY = np.where(RNG.random(X.shape) < 0.2, np.nan, X)
GAPPY = GAPPY[~np.isnan(GAPPY).all(axis=1)]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("body", ["numpy", "numba"])
@pytest.mark.parametrize("kind", START)
def test_a_row_of_weight_2_counts_as_two_rows(kind, body):
    options = {"covariance_type": kind, "precisions_init": START[kind], "means_init": X[:2], "weights_init": [0.5, 0.5]}
    options |= {"n_components": 2, "max_iter": 10, "tol": 0.0}
    with forced(body):
        mine = ours.GaussianMixture(**options).fit(X, sample_weight=WEIGHT)
    peer = sklearn.mixture.GaussianMixture(**options).fit(np.repeat(X, WEIGHT, axis=0))
    for name in ("weights_", "means_", "covariances_", "precisions_", "lower_bounds_"):
        np.testing.assert_allclose(getattr(mine, name), getattr(peer, name), atol=1e-10, err_msg=name)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", START)
def test_gaps_of_a_mixture_are_integrated_out(kind):
    options = {"covariance_type": kind, "random_state": 0, "tol": 1e-9}
    mixture = ours.GaussianMixture(2, **options, handle_missing="ignore").fit(GAPPY)
    assert np.diff([*mixture.lower_bounds_, mixture.score(GAPPY)]).min() > -1e-9
    filled = np.where(np.isnan(GAPPY[:1]), 0.0, GAPPY[:1])  # by the law of total probability over a fine grid
    gap = np.flatnonzero(np.isnan(GAPPY).sum(axis=1) == 1)[0]
    grid = np.repeat(GAPPY[gap : gap + 1], 4001, axis=0)
    grid[:, np.isnan(GAPPY[gap])] = np.linspace(-15, 25, 4001)[:, None]
    marginal = np.log(np.trapezoid(np.exp(mixture.score_samples(grid)), dx=0.01))
    np.testing.assert_allclose(mixture.score_samples(GAPPY[gap : gap + 1])[0], marginal, atol=1e-8)
    assert np.isfinite(mixture.predict_proba(filled)).all()
    complete, plain = (ours.GaussianMixture(2, **options, handle_missing=how).fit(X) for how in ("ignore", "error"))
    np.testing.assert_allclose(complete.means_, plain.means_, atol=1e-9)


def test_one_component_with_gaps_is_a_gaussian_with_gaps():
    options = {"handle_missing": "ignore", "reg_covar": 0.0, "tol": 1e-14, "max_iter": 2000}
    full = ours.GaussianMixture(1, **options).fit(GAPPY)
    density = GaussianWithGaps(rule="ml", tol=1e-14).fit(GAPPY).density("ml")
    np.testing.assert_allclose(full.means_, density.origin + density.shift, atol=1e-6)
    np.testing.assert_allclose(full.covariances_, density.scale / density.divisor[:, None, None], atol=1e-6)
    diagonal = ours.GaussianMixture(1, covariance_type="diag", **options).fit(GAPPY)
    np.testing.assert_allclose(diagonal.means_[0], np.nanmean(GAPPY, axis=0))
    np.testing.assert_allclose(diagonal.covariances_[0], np.nanvar(GAPPY, axis=0), atol=1e-6)


def test_ratios_of_components_and_refusals():
    mixture = ours.GaussianMixture(2, random_state=0).fit(X)
    other = sklearn.mixture.GaussianMixture(2, random_state=0).fit(X)
    other.weights_ = np.array([0.9, 0.1])
    for shares in ([0.9, 0.1], {0: 0.9}):
        np.testing.assert_allclose(mixture.predict_proba(X, prior=shares), other.predict_proba(X), atol=1e-10)
        np.testing.assert_array_equal(mixture.predict(X, prior=shares), other.predict(X))
    p = mixture.predict_proba(X)
    odds = np.log(p[:, 1] / p[:, 0]) - np.log(mixture.weights_[1] / mixture.weights_[0])
    np.testing.assert_allclose(mixture.llr(X), odds, atol=1e-8)
    np.testing.assert_allclose(mixture.llr(X, 0), -odds, atol=1e-8)
    with pytest.raises(UnknownLabelError):
        mixture.llr(X, 0, 7)
    lenient = ours.GaussianMixture(2, handle_missing="ignore")
    with pytest.raises(DecibanError, match="row 3 has no value"):
        lenient.fit(np.where(np.arange(N)[:, None] == 3, np.nan, X))
    with pytest.raises(DecibanError, match="column 1 has no value"):
        lenient.fit(np.where(np.arange(4) == 1, np.nan, X))
    with pytest.raises(ValueError, match="NaN"):
        ours.GaussianMixture(2).fit(GAPPY)
    assert not hasattr(mixture, "unlearn")


@pytest.mark.parametrize("start", ["kmeans", "k-means++", "random", "random_from_data"])
def test_rows_of_weight_0_do_not_matter_for_the_start(start):
    far = np.concatenate([X, np.full((5, 4), 1e3)])
    weight = np.append(np.ones(N), np.zeros(5))
    with pytest.warns(ConvergenceWarning):
        mixture = ours.GaussianMixture(2, init_params=start, max_iter=1, random_state=0).fit(far, sample_weight=weight)
    assert (mixture.means_ < 20).all()


ESTIMATORS = [
    ours.LinearDiscriminantAnalysis(),
    ours.QuadraticDiscriminantAnalysis(),
    ours.GaussianMixture(handle_missing="ignore"),
]


@pytest.mark.filterwarnings("ignore:.*:sklearn.exceptions.SkipTestWarning")
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_scikit_learns_checks(estimator):
    results = check_estimator(estimator, on_fail=None, on_skip=None)
    assert not [each["check_name"] for each in results if each["status"] == "failed"]
    assert sum(each["status"] == "passed" for each in results) > 40
