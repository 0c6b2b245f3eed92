"""What the drop-ins add: ratios, other priors, unlearning, merging and leave-one-out."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

import deciban.sklearn as ours
from deciban.errors import DecibanError, NotLearntError

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
GENERATIVE = [*SUMS[:4], (ours.LinearDiscriminantAnalysis(), REAL), (ours.QuadraticDiscriminantAnalysis(), REAL)]


def name(value):
    return type(value).__name__ if hasattr(value, "fit") else ""


@pytest.mark.parametrize(("clf", "X"), SUMS, ids=name)
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


@pytest.mark.parametrize(("clf", "X"), [SUMS[1], SUMS[3]], ids=name)
def test_rows_that_were_never_learnt_are_refused_and_nothing_changes(clf, X):
    fitted = clone(clf).fit(X, Y)
    before = fitted.predict_proba(X)
    with pytest.raises(NotLearntError):
        fitted.unlearn(np.repeat(X, 3, axis=0), np.repeat(Y, 3))
    np.testing.assert_array_equal(fitted.predict_proba(X), before)


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
