"""The drop-ins agree with scikit-learn for all options of their constructors, each drawn at random."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import sklearn.decomposition
import sklearn.discriminant_analysis
import sklearn.mixture
import sklearn.naive_bayes
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.covariance import OAS, ShrunkCovariance

import deciban.sklearn as ours
from deciban.kernels import forced
from dropin_rows import agree, tables

pytestmark = pytest.mark.slow
EXAMPLES = settings(max_examples=40, deadline=None, derandomize=True)
BODIES = pytest.mark.parametrize("body", ["numba", "numpy"])


def one_of(*values):
    return st.sampled_from(values)


def prior_of(y, given):
    """None, or class probabilities that grow with the class."""
    K = len(np.unique(y))
    return np.arange(1, K + 1) / (K * (K + 1) / 2) if given else None


def fitted(home, name, options, *rows):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [getattr(lib, name)(**options).fit(*rows) for lib in (ours, home)]


COUNTS = {
    "alpha": one_of(1.0, 0.3, 0.0),
    "force_alpha": st.booleans(),
    "fit_prior": st.booleans(),
    "class_prior": st.booleans(),
}


@BODIES
@EXAMPLES
@given(tables("counts"), st.fixed_dictionaries(COUNTS), one_of(0.0, 1.0, None))
def test_binary_features(body, table, options, threshold):
    X, y, weight = table
    X = (X > 0).astype(X.dtype) if threshold is None else X
    options = options | {"binarize": threshold, "class_prior": prior_of(y, options["class_prior"])}
    with forced(body):
        mine, peer = fitted(sklearn.naive_bayes, "BernoulliNB", options, X, y, weight)
        if (np.isfinite(peer.feature_log_prob_) & (peer.feature_log_prob_ < 0)).all():  # without alpha: 0 and 1
            agree(mine, peer, X, ["feature_count_", "feature_log_prob_", "class_log_prior_", "classes_"])
        else:
            np.testing.assert_array_equal(mine.feature_count_, peer.feature_count_)


@BODIES
@EXAMPLES
@given(tables("counts"), st.fixed_dictionaries(COUNTS), one_of(None, 9, "each"))
def test_categories(body, table, options, least):
    X, y, weight = table
    least = X.max(axis=0) + np.arange(1, X.shape[1] + 1) if least == "each" else least
    least = least.astype(int) if isinstance(least, np.ndarray) else least
    options = options | {"min_categories": least, "class_prior": prior_of(y, options["class_prior"])}
    with forced(body):
        mine, peer = fitted(sklearn.naive_bayes, "CategoricalNB", options, X, y, weight)
        if all(np.isfinite(part).all() for part in peer.feature_log_prob_):
            agree(mine, peer, X, ["category_count_", "feature_log_prob_", "class_log_prior_", "n_categories_"])
        else:
            np.testing.assert_array_equal(mine.n_categories_, peer.n_categories_)


LINEAR = {
    "solver": one_of("svd", "lsqr", "eigen"),
    "shrinkage": one_of(None, 0.0, 0.4, 1.0, "auto"),
    "n_components": one_of(None, 1),
    "store_covariance": st.booleans(),
    "tol": one_of(1e-4, 1e-2),
    "covariance_estimator": one_of(None, None, OAS(), ShrunkCovariance()),
}


@BODIES
@EXAMPLES
@given(tables(), st.fixed_dictionaries(LINEAR), st.booleans())
def test_linear_discriminants(body, table, options, given_prior):
    X, y, _ = table
    options = options | {"priors": prior_of(y, given_prior)}
    if options["solver"] == "svd" or options["covariance_estimator"] is not None:
        options["shrinkage"] = None
    if options["solver"] == "svd":
        options["covariance_estimator"] = None
    with forced(body):
        mine, peer = fitted(sklearn.discriminant_analysis, "LinearDiscriminantAnalysis", options, X, y)
        names = ["coef_", "intercept_", "means_", "priors_", "classes_"]
        agree(mine, peer, X, names + [name for name in ("covariance_", "xbar_") if hasattr(peer, name)])
        if options["solver"] != "lsqr" and X.dtype == np.float64:
            assert mine.transform(X).shape == peer.transform(X).shape
            np.testing.assert_allclose(np.abs(mine.transform(X)), np.abs(peer.transform(X)), atol=1e-10)


QUADRATIC = {
    "solver": one_of("svd", "eigen"),
    "shrinkage": one_of(None, 0.4, "auto"),
    "reg_param": one_of(0.0, 0.3),
    "store_covariance": st.booleans(),
    "tol": one_of(1e-4, 1e-2),
    "covariance_estimator": one_of(None, None, ShrunkCovariance()),
}


@BODIES
@EXAMPLES
@given(tables(), st.fixed_dictionaries(QUADRATIC), st.booleans())
def test_quadratic_discriminants(body, table, options, given_prior):
    X, y, _ = table
    options = options | {"priors": prior_of(y, given_prior)}
    if options["solver"] == "svd" or options["covariance_estimator"] is not None:
        options["shrinkage"] = None
    if options["solver"] == "svd":
        options["covariance_estimator"] = None
    with forced(body):
        mine, peer = fitted(sklearn.discriminant_analysis, "QuadraticDiscriminantAnalysis", options, X, y)
        names = ["means_", "scalings_", "priors_", "classes_"]
        agree(mine, peer, X, names + ["covariance_"] * hasattr(peer, "covariance_"))


MIXTURE = {
    "n_components": one_of(1, 2, 3),
    "covariance_type": one_of("full", "tied", "diag", "spherical"),
    "init_params": one_of("kmeans", "k-means++", "random", "random_from_data"),
    "n_init": one_of(1, 2),
    "reg_covar": one_of(1e-3, 0.1),
    "tol": one_of(0.0, 1e-2),
    "max_iter": one_of(1, 6),
    "warm_start": st.booleans(),
}


@BODIES
@EXAMPLES
@given(tables(), st.fixed_dictionaries(MIXTURE), st.booleans(), st.booleans(), st.booleans())
def test_mixtures(body, table, options, weights, means, precisions):
    X = np.asarray(table[0], dtype=np.float64)
    K, D = options["n_components"], X.shape[1]
    options = options | {"random_state": 0}
    if weights:
        options["weights_init"] = np.full(K, 1 / K)
    if means:
        options["means_init"] = X[:K] + 0.1
    if precisions:
        eye = np.eye(D)
        kinds = {"full": np.stack([eye] * K), "tied": eye, "diag": np.ones((K, D)), "spherical": np.ones(K)}
        options["precisions_init"] = kinds[options["covariance_type"]]
    with forced(body):
        mine, peer = fitted(sklearn.mixture, "GaussianMixture", options, X)
        assert (mine.n_iter_, mine.converged_) == (peer.n_iter_, peer.converged_)
        names = ("weights_", "means_", "covariances_", "precisions_", "precisions_cholesky_", "lower_bound_")
        for name in names:
            found, expected = np.asarray(getattr(mine, name)), np.asarray(getattr(peer, name))
            np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10, err_msg=name)
        np.testing.assert_allclose(mine.predict_proba(X), peer.predict_proba(X), atol=1e-10)
        np.testing.assert_allclose(mine.bic(X), peer.bic(X), rtol=1e-10)


TOPICS = {
    "n_components": one_of(2, 5),
    "doc_topic_prior": one_of(None, 0.7),
    "topic_word_prior": one_of(None, 0.3),
    "learning_method": one_of("batch", "online"),
    "learning_decay": one_of(0.7, 0.9),
    "learning_offset": one_of(10.0, 3.0),
    "max_iter": one_of(1, 3),
    "batch_size": one_of(7, 128),
    "evaluate_every": one_of(-1, 1),
    "perp_tol": one_of(0.1, 1e9),
    "mean_change_tol": one_of(1e-3, 1e-5),
    "max_doc_update_iter": one_of(3, 100),
}


@BODIES
@EXAMPLES
@given(st.integers(0, 1000), st.fixed_dictionaries(TOPICS))
def test_topics(body, seed, options):
    rng = np.random.default_rng(seed)
    X = rng.poisson(rng.gamma(0.5, 2.0, size=(30, 10))).astype(float)
    with forced(body):
        mine, peer = fitted(sklearn.decomposition, "LatentDirichletAllocation", options | {"random_state": 0}, X)
        assert mine.n_iter_ == peer.n_iter_
        np.testing.assert_allclose(mine.components_, peer.components_, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(mine.transform(X), peer.transform(X), atol=1e-10)
        if options["learning_method"] == "online":
            for each in (mine, peer):
                each.total_samples = 60
                each.partial_fit(X[:11])
            np.testing.assert_allclose(mine.components_, peer.components_, rtol=1e-10, atol=1e-10)


COMPONENTS = {
    "n_components": one_of(None, 1, 2),
    "whiten": st.booleans(),
    "copy": st.booleans(),
    "svd_solver": one_of("auto", "full", "covariance_eigh", "arpack", "randomized"),
    "tol": one_of(0.0, 1e-9),
    "iterated_power": one_of("auto", 3),
    "n_oversamples": one_of(10, 4),
    "power_iteration_normalizer": one_of("auto", "QR", "LU"),
}


@BODIES
@EXAMPLES
@given(st.integers(0, 1000), st.integers(3, 6), st.fixed_dictionaries(COMPONENTS))
def test_principal_components(body, seed, D, options):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, D)) * rng.uniform(0.5, 3.0, D) + 5
    if options["svd_solver"] == "arpack":
        options = options | {"n_components": options["n_components"] or 2}
    with forced(body):
        mine, peer = (lib.PCA(**options, random_state=0).fit(X.copy()) for lib in (ours, sklearn.decomposition))
        for name in ("components_", "explained_variance_", "explained_variance_ratio_", "mean_", "noise_variance_"):
            np.testing.assert_allclose(getattr(mine, name), getattr(peer, name), rtol=1e-10, atol=1e-10, err_msg=name)
        np.testing.assert_allclose(mine.transform(X), peer.transform(X), atol=1e-10)
        np.testing.assert_allclose(mine.score(X), peer.score(X), rtol=1e-10)
