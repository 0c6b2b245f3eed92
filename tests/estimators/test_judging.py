"""Every learnt row scored as if it had never been learnt."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.model_selection import LeaveOneOut, StratifiedKFold, cross_val_predict

from deciban import Bernoulli, Categorical, Gaussian, GenerativeClassifier, Multinomial, Poisson
from deciban.errors import InputError, NotLearntError

METHODS = ["predict", "predict_proba", "predict_log_proba", "decision_function"]


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return X[::3], np.array(["setosa", "versicolor", "virginica"])[y[::3]]


def frozen(families, X, y, **options):
    """A classifier whose choices are those of the whole, as leave-one-out has them."""
    whole = GenerativeClassifier(families, **options).fit(X, y)
    return GenerativeClassifier(whole.family_.resolve(whole.stats_.family), **options)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("structure", ["full", "tied", "diagonal"])
def test_leave_one_out_is_n_refits(iris, structure, method):
    X, y = iris
    clf = frozen(Gaussian(structure), X, y)
    slow = cross_val_predict(clf, X, y, cv=LeaveOneOut(), method=method)
    fast = clf.fit(X, y).leave_one_out(X, y, method=method)
    if method == "predict":
        np.testing.assert_array_equal(fast, slow)
    else:
        np.testing.assert_allclose(fast, slow, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("rule", ["map", "mean", "predictive"])
@pytest.mark.parametrize(
    "family", [Multinomial(2.0), Poisson(2.0, 1.0), Categorical(2.0), Bernoulli(2.0, 2.0)], ids=repr
)
def test_leave_one_out_is_n_refits_for_counts(family, rule):
    rng = np.random.default_rng(0)
    X, y, w = rng.integers(0, 2, (40, 4)), rng.integers(0, 3, 40), rng.uniform(0.5, 2, 40)
    clf = GenerativeClassifier(family, rule=rule).fit(X, y, w)
    slow = np.empty((40, 3))
    for i in range(40):
        kept = np.arange(40) != i
        slow[i] = (
            GenerativeClassifier(clf.family_, rule=rule, classes=[0, 1, 2])
            .fit(X[kept], y[kept], w[kept])
            .predict_proba(X[i : i + 1])[0]
        )
    np.testing.assert_allclose(clf.leave_one_out(X, y, sample_weight=w), slow, rtol=1e-8)


def test_a_group_is_left_out_whole(iris):
    X, y = iris
    groups = np.arange(len(y)) % 5
    clf = GenerativeClassifier(Gaussian()).fit(X, y)
    fast = clf.leave_one_out(X, y, groups=groups)
    for group in range(5):
        out = groups == group
        refit = GenerativeClassifier(clf.family_).fit(X[~out], y[~out])
        np.testing.assert_allclose(fast[out], refit.predict_proba(X[out]), rtol=1e-7, atol=1e-10)


def test_k_fold_from_sums_is_k_refits(iris):
    X, y = iris
    clf = frozen(Gaussian(), X, y)
    folds = StratifiedKFold(4)
    slow = cross_val_predict(clf, X, y, cv=folds, method="predict_proba")
    np.testing.assert_allclose(clf.fit(X, y).cross_val_predict(X, y, cv=folds), slow, rtol=1e-7, atol=1e-10)
    unfitted = GenerativeClassifier(Gaussian()).cross_val_predict(X, y, cv=folds)
    refits = cross_val_predict(GenerativeClassifier(Gaussian()), X, y, cv=folds, method="predict_proba")
    np.testing.assert_allclose(unfitted, refits, rtol=1e-7, atol=1e-10)  # each fold has the prior of its own rows


def test_rows_that_were_never_learnt_are_refused(iris):
    X, y = iris
    clf = GenerativeClassifier(Gaussian()).fit(X, y)
    with pytest.raises(NotLearntError):
        clf.leave_one_out(X + 5, y)
    with pytest.raises(NotLearntError):
        clf.leave_one_out(np.r_[X, X], np.r_[y, y])
    with pytest.raises(NotLearntError, match="does not know"):
        clf.leave_one_out(X, np.where(y == "setosa", "rosa", y))
    counts = GenerativeClassifier(Multinomial()).fit([[1, 2], [3, 4]], [0, 1])
    with pytest.raises(NotLearntError):
        counts.leave_one_out([[1, 3]], [0])


def test_some_of_the_learnt_rows_may_be_asked_for(iris):
    X, y = iris
    clf = GenerativeClassifier(Gaussian()).fit(X, y)
    np.testing.assert_allclose(clf.leave_one_out(X[:7], y[:7]), clf.leave_one_out(X, y)[:7], rtol=1e-9)


def test_another_prior_goes_in_afterwards(iris):
    X, y = iris
    clf = GenerativeClassifier(Gaussian()).fit(X, y)
    scores = clf.leave_one_out(X, y, method="log_likelihood")
    joint = scores + np.log([0.2, 0.5, 0.3])
    expected = np.exp(joint - np.logaddexp.reduce(joint, axis=1)[:, None])
    given = {"setosa": 0.2, "versicolor": 0.5, "virginica": 0.3}
    np.testing.assert_allclose(clf.leave_one_out(X, y, prior=given), expected, rtol=1e-9)


def test_sparse_rows_are_left_out_as_dense_ones():
    rng = np.random.default_rng(1)
    X, y = rng.poisson(0.5, (60, 12)).astype(float), rng.integers(0, 2, 60)
    for family in (Multinomial(), Gaussian("diagonal")):
        clf = GenerativeClassifier(family).fit(X, y)
        thin = GenerativeClassifier(clf.family_).fit(sp.csr_matrix(X), y)
        np.testing.assert_allclose(
            thin.leave_one_out(sp.csr_array(X), y), clf.leave_one_out(X, y), rtol=1e-7, atol=1e-10
        )


def test_methods_that_are_not_answers_are_refused(iris):
    X, y = iris
    with pytest.raises(InputError, match="predict_proba"):
        GenerativeClassifier(Gaussian()).fit(X, y).leave_one_out(X, y, method="guess")


def test_the_first_screen_of_the_readme():
    d = load_breast_cancer(as_frame=True)
    y = d.target_names[d.target]
    X = d.data[["mean radius", "mean texture", "mean smoothness", "mean concavity", "mean symmetry"]]
    clf = GenerativeClassifier(Gaussian("diagonal"), rule="ml").fit(X, y)
    assert (clf.leave_one_out(X, y, method="predict") != y).sum() == 37
    told = clf.explain(X.iloc[[13]], "malignant", "benign")
    np.testing.assert_allclose(told.total, clf.llr(X.iloc[[13]], "malignant", "benign"), atol=1e-9)
    np.testing.assert_allclose(clf.predict_proba(X.iloc[[13]])[0, 1], 0.709, atol=5e-4)
    np.testing.assert_allclose(clf.predict_proba(X.iloc[[13]], prior={"malignant": 0.01})[0, 1], 0.04, atol=5e-4)
