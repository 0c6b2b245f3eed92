"""Learn, unlearn, correct, merge, decay: every change is a sum, and a failed one changes nothing."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_iris

from deciban import Bernoulli, Categorical, Gaussian, GenerativeClassifier, Multinomial, Poisson
from deciban.errors import DecibanError, EmptyClassError, HyperparameterError, InputError, MergeError, NotLearntError


def counts(seed=0, n=120, D=5):
    rng = np.random.default_rng(seed)
    y = np.array(["ham", "news", "spam"])[rng.integers(0, 3, n)]
    return rng.poisson(2.0, (n, D)) + (y == "spam")[:, None] * rng.poisson(2, (n, D)), y


def colours(seed=0, n=80):
    rng = np.random.default_rng(seed)
    return rng.choice(["red", "green", "blue"], (n, 2)).astype(object), rng.choice(["a", "b"], n)


X, y = counts()
DISCRETE = [
    ("multinomial", Multinomial(), X, y),
    ("multinomial-csr", Multinomial(), sp.csr_array(X.astype(float)), y),
    ("poisson", Poisson(), X, y),
    ("bernoulli", Bernoulli(), (X > 2).astype(float), y),
    ("bernoulli-csr", Bernoulli(), sp.csr_array((X > 2).astype(float)), y),
    ("categorical", Categorical(), X, y),
    ("strings", Categorical(), *colours()),
    ("product", {0: Poisson(), (1, 2): Multinomial(), 3: Categorical()}, X, y),
]
discrete = pytest.mark.parametrize(("families", "X", "y"), [pytest.param(*c[1:], id=c[0]) for c in DISCRETE])


@discrete
def test_learning_and_unlearning_is_the_identity_to_the_bit(families, X, y):
    clf = GenerativeClassifier(families).fit(X[:50], y[:50])
    before = clf.stats_
    clf.learn(X[50:], y[50:])
    assert not clf.stats_.same(before)
    assert clf.unlearn(X[50:], y[50:]).stats_.same(before)


@discrete
def test_batches_in_any_order_are_one_fit(families, X, y):
    whole = GenerativeClassifier(families).fit(X, y)
    parts = (
        GenerativeClassifier(whole.family_).fit(X[60:], y[60:]).learn(X[:20], y[:20]).partial_fit(X[20:60], y[20:60])
    )
    assert parts.stats_.same(whole.stats_)
    np.testing.assert_array_equal(parts.predict_proba(X[:9]), whole.predict_proba(X[:9]))


def test_new_categories_and_classes_come_and_go():
    X, y = colours()
    clf = GenerativeClassifier(Categorical()).fit(X, y)
    before = clf.stats_
    clf.learn([["mauve", "red"], ["red", "taupe"]], ["c", "a"])
    assert clf.classes_.tolist() == ["a", "b", "c"]
    assert clf.unlearn([["mauve", "red"], ["red", "taupe"]], ["c", "a"]).stats_.same(before)
    assert clf.classes_.tolist() == ["a", "b"]


def test_an_unknown_label_is_never_credited_to_another_class():
    clf = GenerativeClassifier(Multinomial()).partial_fit(X[:60], y[:60], classes=["ham", "news", "spam"])
    before = clf.stats_.rows.copy()
    clf.partial_fit(X[:5], ["eggs"] * 5)
    assert clf.classes_.tolist() == ["ham", "news", "spam", "eggs"]
    np.testing.assert_array_equal(clf.stats_.rows[:3], before)
    assert clf.stats_.rows[3] == 5


def test_correcting_is_unlearning_and_learning():
    clf = GenerativeClassifier(Multinomial()).fit(X, y)
    right = y.copy()
    right[:4] = "spam"
    clf.correct(X[:4], y[:4], right[:4])
    assert clf.stats_.same(GenerativeClassifier(Multinomial()).fit(X, right).stats_)


def test_two_halves_merge_into_the_whole():
    whole = GenerativeClassifier(Multinomial()).fit(X, y)
    a, b = (GenerativeClassifier(Multinomial()).fit(X[r], y[r]) for r in (slice(0, 70), slice(70, 120)))
    assert (a + b).stats_.same(whole.stats_)
    assert a.merge(b).stats_.same(b.merge(a).stats_)


def test_a_gaussian_merges_with_the_first_ones_choices():
    X, y = load_iris(return_X_y=True)
    odd = np.arange(150) % 2 == 1
    a = GenerativeClassifier(Gaussian()).fit(X[odd], y[odd])
    b = GenerativeClassifier(Gaussian()).fit(X[~odd], y[~odd])
    with pytest.raises(MergeError, match="keep='left'"):
        a + GenerativeClassifier(Gaussian(strength=3.0)).fit(X[~odd], y[~odd])
    whole = GenerativeClassifier(a.family_).fit(X, y)
    for merged in (a + b, a.merge(b, keep="left"), a + GenerativeClassifier(a.family_).fit(X[~odd], y[~odd])):
        np.testing.assert_allclose(merged.predict_proba(X), whole.predict_proba(X), rtol=1e-9, atol=1e-12)


def test_a_gaussian_unlearns_to_rounding_far_from_zero():
    rng = np.random.default_rng(0)
    far = 1e8 + rng.normal(size=(2000, 3))
    labels = rng.integers(0, 2, 2000)
    clf = GenerativeClassifier(Gaussian()).fit(far, labels)
    clf.unlearn(far[200:], labels[200:])
    alone = GenerativeClassifier(clf.family_).fit(far[:200], labels[:200])
    np.testing.assert_allclose(clf.log_likelihood(far[:50]), alone.log_likelihood(far[:50]), rtol=1e-8)


def test_decay_forgets_and_then_refuses_to_unlearn():
    clf = GenerativeClassifier(Multinomial()).fit(X, y).decay(0.5)
    np.testing.assert_allclose(clf.stats_.rows.sum(), 60)
    with pytest.raises(NotLearntError, match="decayed"):
        clf.unlearn(X[:1], y[:1])
    with pytest.raises(HyperparameterError, match="factor"):
        clf.decay(0)


FAILURES = [
    ("unlearn a stranger", lambda clf: clf.unlearn([[900, 0, 0, 0, 0]], ["ham"]), NotLearntError),
    ("unlearn an unknown class", lambda clf: clf.unlearn(X[:1], ["eggs"]), NotLearntError),
    ("correct a stranger", lambda clf: clf.correct([[900, 0, 0, 0, 0]], ["ham"], ["spam"]), NotLearntError),
    ("learn negative counts", lambda clf: clf.learn([[1, -1, 0, 0, 0]], ["ham"]), DecibanError),
    ("learn another width", lambda clf: clf.learn([[1, 2]], ["ham"]), ValueError),
    ("learn without labels", lambda clf: clf.learn(X[:2], [None, "ham"]), InputError),
    ("merge another family", lambda clf: clf.merge(GenerativeClassifier(Poisson()).fit(X, y)), MergeError),
]


@pytest.mark.parametrize(("what", "act", "error"), FAILURES, ids=[f[0] for f in FAILURES])
def test_a_failure_leaves_the_model_as_it_was(what, act, error):
    clf = GenerativeClassifier(Multinomial()).fit(X, y)
    before = clf.stats_, clf.family_, clf.predict_proba(X)
    with pytest.raises(error):
        act(clf)
    assert clf.stats_ is before[0]
    assert clf.family_ is before[1]
    np.testing.assert_array_equal(clf.predict_proba(X), before[2])


def test_rows_of_weight_zero_are_as_if_absent():
    weight = np.ones(len(y))
    weight[y == "spam"] = 0
    clf = GenerativeClassifier(Multinomial()).fit(X, y, sample_weight=weight)
    assert clf.classes_.tolist() == ["ham", "news"]
    assert clf.stats_.same(GenerativeClassifier(Multinomial()).fit(X[y != "spam"], y[y != "spam"]).stats_)


def test_another_reading_needs_no_data():
    X, y = load_iris(return_X_y=True)
    clf = GenerativeClassifier(Gaussian()).fit(X, y)
    tied = clf.reestimate(rule="ml", structure="tied")
    direct = GenerativeClassifier(Gaussian("tied"), rule="ml").fit(X, y)
    np.testing.assert_allclose(tied.predict_proba(X), direct.predict_proba(X), rtol=1e-8, atol=1e-12)
    fewer = clf.reestimate(rule="ml", classes=[0, 2], columns=[3, 1])
    kept = y != 1
    direct = GenerativeClassifier(Gaussian(), rule="ml").fit(X[kept][:, [3, 1]], y[kept])
    np.testing.assert_allclose(
        fewer.predict_proba(X[:, [3, 1]]), direct.predict_proba(X[:, [3, 1]]), rtol=1e-8, atol=1e-12
    )


def test_columns_of_a_product_can_be_chosen_later():
    clf = GenerativeClassifier({0: Poisson(), (1, 2): Multinomial(), 3: Categorical()}).fit(X, y)
    fewer = clf.reestimate(columns=[2, 3])
    direct = GenerativeClassifier({0: Multinomial(), 1: Categorical()}).fit(X[:, [2, 3]], y)
    np.testing.assert_allclose(fewer.predict_proba(X[:, [2, 3]]), direct.predict_proba(X[:, [2, 3]]), rtol=1e-9)


def test_choices_are_taken_anew_from_what_is_left():
    clf = GenerativeClassifier(Poisson()).fit(X, y)
    clf.unlearn(X[60:], y[60:])
    assert "rechoose" in clf.choices_
    clf.rechoose()
    assert clf.family_ == GenerativeClassifier(Poisson()).fit(X[:60], y[:60]).family_
    assert "rechoose" not in clf.choices_


def test_a_declared_class_without_rows_scores_by_its_prior_predictive():
    clf = GenerativeClassifier(Multinomial(), classes=["ham", "news", "spam", "eggs"]).fit(X, y)
    assert clf.classes_.tolist() == ["ham", "news", "spam", "eggs"]
    np.testing.assert_allclose(clf.log_likelihood(np.eye(5))[:, 3], np.log(1 / 5))
    assert (clf.predict_proba(X)[:, 3] == 0).all()
    assert (clf.predict_proba(X, prior="uniform")[:, 3] > 0).all()
    with pytest.raises(EmptyClassError, match="'eggs'"):
        GenerativeClassifier(Multinomial(), rule="ml", classes=["ham", "news", "spam", "eggs"]).fit(X, y)


def test_choices_come_from_the_first_65536_rows_so_a_stream_gives_the_same_model():
    rng = np.random.default_rng(0)
    n = 65_536 + 5_000
    X, y = rng.normal(3, 2, (n, 2)), rng.integers(0, 2, n)
    X[65_536:] *= 10
    whole = GenerativeClassifier(Gaussian("diagonal")).fit(X, y)
    stream = GenerativeClassifier(Gaussian("diagonal")).fit(X[:65_536], y[:65_536]).learn(X[65_536:], y[65_536:])
    assert whole.family_ == stream.family_
    np.testing.assert_allclose(whole.predict_proba(X[:50]), stream.predict_proba(X[:50]), rtol=1e-10)


def test_a_model_survives_pickle_and_clone():
    clf = GenerativeClassifier({0: Gaussian(), (1, 2): Multinomial(), 3: Categorical(), 4: Poisson()}).fit(X, y)
    again = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    assert again.learn(X[:2], y[:2]).stats_.rows.sum() == 122
    fresh = clone(clf)
    assert not hasattr(fresh, "stats_")
    np.testing.assert_array_equal(fresh.fit(X, y).predict_proba(X), clf.predict_proba(X))


def test_everything_unlearnt_leaves_nothing_to_ask():
    clf = GenerativeClassifier(Multinomial()).fit(X, y).unlearn(X, y)
    assert len(clf.classes_) == 0
    with pytest.raises(InputError, match="no rows"):
        clf.predict(X)
    assert clf.learn(X, y).stats_.same(GenerativeClassifier(Multinomial()).fit(X, y).stats_)
