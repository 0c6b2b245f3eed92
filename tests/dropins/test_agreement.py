"""The drop-ins agree with scikit-learn on random data of many shapes, types and options."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.decomposition
import sklearn.discriminant_analysis
import sklearn.mixture
import sklearn.naive_bayes
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

import deciban.sklearn as ours
from deciban.kernels import forced
from dropin_rows import agree, tables

EXAMPLES = settings(max_examples=12, deadline=None, derandomize=True)


@pytest.fixture(autouse=True, scope="module")
def kernels():
    """The kernels run on inputs of any size."""
    with forced("numba"):
        yield


@EXAMPLES
@given(tables(), st.sampled_from([1e-9, 0.0, 0.1]))
def test_gaussian(table, smoothing):
    X, y, weight = table
    mine, peer = (lib.GaussianNB(var_smoothing=smoothing).fit(X, y, weight) for lib in (ours, sklearn.naive_bayes))
    agree(mine, peer, X, ["theta_", "var_", "class_count_", "class_prior_", "classes_", "epsilon_"])
    half = len(X) // 2
    for clf in (mine, peer):
        clf.partial_fit(X[:half], y[:half])
    agree(mine, peer, X, ["theta_", "var_", "class_count_", "class_prior_", "epsilon_"])


ANSWERS = "predict", "predict_proba", "predict_log_proba"


@pytest.mark.parametrize("name", ["GaussianNB", "LinearDiscriminantAnalysis", "QuadraticDiscriminantAnalysis"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_value_that_is_not_finite_is_refused_by_every_answer(name, bad, dtype):
    rng = np.random.default_rng(0)
    y = np.arange(300) % 3
    X = (rng.normal(size=(300, 4)) + y[:, None]).astype(dtype)
    clf = getattr(ours, name)().fit(X, y)
    X[77, 2] = bad
    for answer in (*ANSWERS, *(["decision_function"] if "Analysis" in name else [])):
        with pytest.raises(ValueError, match="Input X contains"):
            getattr(clf, answer)(X)
    for method in ("leave_one_out", "partial_fit"):
        with pytest.raises(ValueError, match=r"contains|not finite|NaN|inf"):
            getattr(clf, method)(X, y)


@pytest.mark.parametrize(("bad", "error"), [(-1, "Negative values"), (-2, "Negative values"), (9, "out of bounds")])
def test_codes_that_are_no_categories_are_refused_by_every_answer(bad, error):
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 5, (300, 4)), np.arange(300) % 3
    clf = ours.CategoricalNB().fit(X, y)
    X[77, 2] = bad
    for answer in ANSWERS:
        with pytest.raises((ValueError, IndexError), match=error):
            getattr(clf, answer)(X)
    for method in ("leave_one_out", "unlearn"):
        with pytest.raises((ValueError, IndexError), match=rf"{error}|never learnt"):
            getattr(clf, method)(X, y)
    assert np.isfinite(clf.predict_log_proba(np.full((300, 4), 4))).all()


@pytest.mark.skipif(np.finfo(np.longdouble).eps > 1e-18, reason="long double has no more digits than float64 here")
def test_gaussian_far_from_0_is_closer_to_the_exact_posteriors_than_scikit_learn():
    """10⁵ standard deviations from 0, scikit-learn's error alone is about 1e-10."""
    errors = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        y = np.arange(400) % 5
        X = rng.normal(size=(400, 12)) + rng.normal(size=(5, 12))[y] + 1e5
        exact = exact_gaussian_posteriors(X.astype(np.longdouble), y)
        fitted = (lib.GaussianNB(var_smoothing=0).fit(X, y) for lib in (ours, sklearn.naive_bayes))
        errors.append([float(np.abs(clf.predict_proba(X) - exact).max()) for clf in fitted])
    mine, theirs = np.max(errors, axis=0)
    assert mine < 4e-11
    assert mine < theirs


def exact_gaussian_posteriors(X, y):
    """Posteriors of naive Bayes by maximum likelihood, in the precision of X."""
    log_joint = []
    for k in range(y.max() + 1):
        rows = X[y == k]
        deviations = X - rows.mean(axis=0)
        variance = ((rows - rows.mean(axis=0)) ** 2).mean(axis=0)
        log_joint.append(np.log(len(rows)) - 0.5 * (np.log(variance) + deviations**2 / variance).sum(axis=1))
    joint = np.exp(log_joint - np.max(log_joint, axis=0))
    return (joint / joint.sum(axis=0)).T


HOMES = {
    "GaussianNB": sklearn.naive_bayes,
    "MultinomialNB": sklearn.naive_bayes,
    "CategoricalNB": sklearn.naive_bayes,
    "LinearDiscriminantAnalysis": sklearn.discriminant_analysis,
    "QuadraticDiscriminantAnalysis": sklearn.discriminant_analysis,
}


@pytest.mark.parametrize("name", HOMES)
def test_classes_of_an_array_of_objects(name):
    rng = np.random.default_rng(0)
    y = np.array(["one", "two"], dtype=object)[np.arange(40) % 2]
    X = rng.integers(0, 5, size=(40, 2)).astype(int if name == "CategoricalNB" else float)
    mine, peer = (getattr(lib, name)().fit(X, y) for lib in (ours, HOMES[name]))
    agree(mine, peer, X, ["classes_"])
    assert mine.classes_.dtype == mine.predict(X).dtype == peer.predict(X).dtype
    kept = mine.predict_proba(X)
    np.testing.assert_allclose(mine.partial_fit(X[:9], y[:9]).unlearn(X[:9], y[:9]).predict_proba(X), kept, atol=1e-9)
    with pytest.raises(ValueError, match="label type"):
        getattr(ours, name)().fit(X, np.arange(40).astype(object) % 2)


def test_a_constant_column_without_smoothing_warns_as_scikit_learn_does():
    X, y = np.column_stack([np.ones(30), np.arange(30.0)]), np.arange(30) % 2
    seen = []
    for lib in (ours, sklearn.naive_bayes):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            lib.GaussianNB(var_smoothing=0).fit(X, y).predict_proba(X)
        seen.append({str(each.message) for each in caught})
    assert seen[0] == seen[1] != set()


@EXAMPLES
@given(
    tables("sparse"),
    st.sampled_from(["MultinomialNB", "ComplementNB", "BernoulliNB"]),
    st.sampled_from([1.0, 0.01]),
    st.booleans(),
)
def test_counts(table, name, alpha, fit_prior):
    X, y, weight = table
    options = {"alpha": alpha, "fit_prior": fit_prior}
    mine, peer = (getattr(lib, name)(**options).fit(X, y, weight) for lib in (ours, sklearn.naive_bayes))
    names = ["feature_count_", "feature_log_prob_", "class_count_", "class_log_prior_", "classes_"]
    agree(mine, peer, X, names)
    for clf in (mine, peer):
        clf.partial_fit(X, y, sample_weight=weight)
    agree(mine, peer, X, names)


@EXAMPLES
@given(
    tables("sparse"),
    st.sampled_from(["MultinomialNB", "ComplementNB", "BernoulliNB"]),
    st.booleans(),
    st.sampled_from([np.int8, np.uint16, np.bool_, np.float32]),
    st.booleans(),
)
def test_options_and_types_of_counts(table, name, several, dtype, special):
    X, y, weight = table
    X = X.astype(dtype)
    K = len(np.unique(y))
    several = several and name != "BernoulliNB"  # whose alpha scikit-learn adds to counts of classes
    options = {"alpha": np.linspace(0.2, 2.0, X.shape[1]) if several else 0.0, "force_alpha": False}
    if special:
        options |= (
            {"class_prior": np.arange(1, K + 1) / (K * (K + 1) / 2)} if name != "ComplementNB" else {"norm": True}
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # alpha too small
        mine, peer = (getattr(lib, name)(**options).fit(X, y, weight) for lib in (ours, sklearn.naive_bayes))
        agree(mine, peer, X, ["feature_count_", "feature_log_prob_", "class_count_", "class_log_prior_", "classes_"])


@EXAMPLES
@given(tables(), st.sampled_from(["GaussianNB", "LinearDiscriminantAnalysis", "QuadraticDiscriminantAnalysis"]))
def test_given_priors(table, name):
    X, y, _ = table
    K = len(np.unique(y))
    prior = np.arange(1, K + 1) / (K * (K + 1) / 2)
    home = sklearn.naive_bayes if name == "GaussianNB" else sklearn.discriminant_analysis
    mine, peer = (getattr(lib, name)(priors=prior).fit(X, y) for lib in (ours, home))
    means, priors = ("theta_", "class_prior_") if name == "GaussianNB" else ("means_", "priors_")
    agree(mine, peer, X, [means, priors, "classes_"])


@EXAMPLES
@given(tables("counts"), st.sampled_from([None, 3, 12]))
def test_categories(table, least):
    X, y, weight = table
    mine, peer = (lib.CategoricalNB(min_categories=least).fit(X, y, weight) for lib in (ours, sklearn.naive_bayes))
    names = ["category_count_", "feature_log_prob_", "class_count_", "class_log_prior_", "n_categories_"]
    agree(mine, peer, X, names)
    for clf in (mine, peer):
        clf.partial_fit(X[:5], y[:5])
    agree(mine, peer, X, names)


LINEAR = [{}, {"solver": "lsqr"}, {"solver": "lsqr", "shrinkage": 0.3}, {"solver": "eigen"}, {"store_covariance": True}]


@EXAMPLES
@given(tables(), st.sampled_from(LINEAR))
def test_linear_discriminants(table, options):
    X, y, _ = table
    mine, peer = (lib.LinearDiscriminantAnalysis(**options).fit(X, y) for lib in (ours, sklearn.discriminant_analysis))
    names = ["coef_", "intercept_", "means_", "priors_", "classes_"]
    names += [name for name in ("covariance_", "xbar_", "explained_variance_ratio_") if hasattr(peer, name)]
    agree(mine, peer, X, names)
    if options.get("solver") != "lsqr" and X.dtype != np.float32:
        np.testing.assert_allclose(np.abs(mine.transform(X)), np.abs(peer.transform(X)), atol=1e-10)


@pytest.mark.parametrize("options", LINEAR)
@pytest.mark.parametrize("body", ["numba", "numpy"])
def test_linear_discriminants_of_numbers_as_texts_and_of_sparse_rows(options, body):
    """scikit-learn converts numbers that are written out, and scores sparse rows."""
    rng = np.random.default_rng(0)
    y = np.arange(120) % 3
    X = (rng.normal(size=(120, 3)) + y[:, None]).round(3)
    with forced(body):
        peer = sklearn.discriminant_analysis.LinearDiscriminantAnalysis(**options).fit(X, y)
        for rows in (X.astype(str), X.astype(str).astype(object), X.astype("S8")):
            mine = ours.LinearDiscriminantAnalysis(**options).fit(rows, y)
            agree(mine, peer, X, ["coef_", "intercept_", "means_"])
            mine.unlearn(X[:9], y[:9])
        mine = ours.LinearDiscriminantAnalysis(**options).fit(X, y)
        for answer in (*ANSWERS, "decision_function"):
            one, other = (getattr(clf, answer)(sp.csr_array(X)) for clf in (mine, peer))
            np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-10)


QUADRATIC = [
    {},
    {"reg_param": 0.1, "store_covariance": True},
    {"solver": "eigen"},
    {"solver": "eigen", "shrinkage": 0.2},
]


@EXAMPLES
@given(tables(), st.sampled_from(QUADRATIC))
def test_quadratic_discriminants(table, options):
    X, y, _ = table
    mine, peer = (
        lib.QuadraticDiscriminantAnalysis(**options).fit(X, y) for lib in (ours, sklearn.discriminant_analysis)
    )
    names = ["means_", "scalings_", "priors_", "classes_"] + ["covariance_"] * options.get("store_covariance", False)
    agree(mine, peer, X, names)


@EXAMPLES
@given(tables(), st.sampled_from(["full", "tied", "diag", "spherical"]), st.integers(1, 3))
def test_mixtures(table, kind, K):
    X = np.asarray(table[0], dtype=np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        mine, peer = (
            lib.GaussianMixture(K, covariance_type=kind, random_state=0, max_iter=5, tol=0.0, reg_covar=1e-3).fit(X)
            for lib in (ours, sklearn.mixture)
        )
    for name in ("weights_", "means_", "covariances_", "precisions_", "lower_bounds_"):
        np.testing.assert_allclose(getattr(mine, name), getattr(peer, name), rtol=1e-10, atol=1e-10, err_msg=name)
    np.testing.assert_allclose(mine.score_samples(X), peer.score_samples(X), rtol=1e-10, atol=1e-10)
    np.testing.assert_array_equal(mine.predict(X), peer.predict(X))


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
@pytest.mark.parametrize("n_components", [1, 3])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_mixtures_of_few_rows(kind, n_components, dtype):
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(50, 4)) + 3 * (np.arange(50) % 3)[:, None]).astype(dtype)
    options = {"covariance_type": kind, "random_state": 0, "init_params": "random_from_data"}
    tolerance = 1e-10 if dtype is np.float64 else 2e-3
    with forced("numpy"):
        mine, peer = (lib.GaussianMixture(n_components, **options).fit(X) for lib in (ours, sklearn.mixture))
        assert (mine.n_iter_, mine.converged_) == (peer.n_iter_, peer.converged_)
        for name in ("weights_", "means_", "covariances_", "precisions_", "precisions_cholesky_", "lower_bound_"):
            one, other = np.asarray(getattr(mine, name)), np.asarray(getattr(peer, name))
            assert one.dtype == other.dtype
            np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)
        np.testing.assert_array_equal(mine.fit_predict(X), peer.fit_predict(X))


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
@pytest.mark.parametrize("start", ["weights_init", "means_init", "warm_start"])
def test_mixtures_of_few_rows_of_float32_that_start_from_float64(kind, start):
    X = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)
    given = {"weights_init": np.full(2, 0.5), "means_init": X[:2].astype(float), "warm_start": True}
    options = {"covariance_type": kind, "random_state": 0, "max_iter": 2, "tol": 0.0, start: given[start]}
    with forced("numpy"), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        mine, peer = (lib.GaussianMixture(2, **options).fit(X).fit(X) for lib in (ours, sklearn.mixture))
    for name in ("weights_", "means_", "covariances_", "precisions_", "precisions_cholesky_"):
        one, other = getattr(mine, name), getattr(peer, name)
        assert one.dtype == other.dtype, name
        np.testing.assert_allclose(one, other, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("kind", ["full", "tied", "diag"])
def test_mixtures_of_few_equal_rows_are_refused(kind):
    X, options = np.zeros((20, 2)), {"covariance_type": kind, "reg_covar": 0.0}
    errors = []
    with forced("numpy"):
        for lib in (ours, sklearn.mixture):
            with pytest.raises(ValueError, match="ill-defined empirical covariance") as raised:
                lib.GaussianMixture(1, **options).fit(X)
            errors.append(str(raised.value))
    assert errors[0] == errors[1]


@EXAMPLES
@given(
    st.integers(0, 1000), st.sampled_from(["batch", "online"]), st.sampled_from([np.float64, np.float32]), st.booleans()
)
def test_topics(seed, method, dtype, dense):
    rng = np.random.default_rng(seed)
    X = rng.poisson(rng.gamma(0.5, 2.0, size=(40, 12))).astype(dtype)
    X[0] = 0
    X = X if dense else sp.csr_array(X)
    options = {"learning_method": method, "max_iter": 3, "random_state": 0, "batch_size": 16, "evaluate_every": 2}
    mine, peer = (lib.LatentDirichletAllocation(4, **options).fit(X) for lib in (ours, sklearn.decomposition))
    tolerance = 1e-10 if dtype == np.float64 else 1e-3
    for name in ("components_", "exp_dirichlet_component_", "bound_"):
        assert np.asarray(getattr(mine, name)).dtype == np.asarray(getattr(peer, name)).dtype
        np.testing.assert_allclose(getattr(mine, name), getattr(peer, name), rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(mine.transform(X), peer.transform(X), atol=tolerance)
    assert mine.transform(X).dtype == dtype
    np.testing.assert_allclose(mine.perplexity(X), peer.perplexity(X), rtol=tolerance)


@pytest.mark.parametrize("n", [3, 50])
@pytest.mark.parametrize("most", [0, 1, 2, 100])
@pytest.mark.parametrize("sparse", [False, True])
def test_topics_of_few_documents(n, most, sparse):
    """Documents without words, and documents that need more iterations than the others."""
    rng = np.random.default_rng(n)
    X = rng.poisson(rng.gamma(0.3, 3.0, size=(n, 30)))
    X[1] = 0
    X = sp.csr_array(X) if sparse else X
    options = {"max_doc_update_iter": most, "mean_change_tol": 1e-4, "max_iter": 4, "random_state": 0}
    with forced("numpy"):
        mine, peer = (lib.LatentDirichletAllocation(6, **options).fit(X) for lib in (ours, sklearn.decomposition))
        np.testing.assert_allclose(mine.components_, peer.components_, rtol=1e-10)
        np.testing.assert_allclose(mine.transform(X), peer.transform(X), atol=1e-10)
        assert mine.bound_ == pytest.approx(peer.bound_, rel=1e-10)


@pytest.mark.parametrize("body", ["numba", "numpy"])
@pytest.mark.parametrize("n", [3, 50])
def test_the_perplexity_of_rows_that_lack_the_last_words(body, n):
    X = np.random.default_rng(0).poisson(1.0, size=(50, 6))
    with forced(body):
        mine, peer = (
            lib.LatentDirichletAllocation(3, max_iter=2, random_state=0).fit(X) for lib in (ours, sklearn.decomposition)
        )
        assert mine.perplexity(X[:n, :5]) == pytest.approx(peer.perplexity(X[:n, :5]), rel=1e-10)


@EXAMPLES
@given(
    tables(),
    st.sampled_from(["auto", "full", "covariance_eigh"]),
    st.sampled_from([None, 1, 0.7, "mle"]),
    st.booleans(),
)
def test_principal_components(table, solver, n_components, whiten):
    X = table[0]
    options = {"n_components": n_components, "svd_solver": solver, "whiten": whiten}
    mine, peer = (lib.PCA(**options).fit(X) for lib in (ours, sklearn.decomposition))
    tolerance = 1e-10 if X.dtype == np.float64 else 5e-3
    assert mine.n_components_ == peer.n_components_
    names = ["components_", "explained_variance_", "explained_variance_ratio_", "singular_values_", "mean_"]
    for name in [*names, "noise_variance_"]:
        one, other = np.asarray(getattr(mine, name)), np.asarray(getattr(peer, name))
        assert one.dtype == other.dtype, name
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance, err_msg=name)
    for one, other in ((mine.transform(X), peer.transform(X)), (mine.fit_transform(X), peer.fit_transform(X))):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=0, atol=100 * tolerance)
