"""Prediction sets: brute-force twins of each method, coverage, and where the learnt rows come from."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from deciban import Categorical, Gaussian, GenerativeClassifier
from deciban.errors import HyperparameterError, InputError, NotAvailableError, NotLearntError

K = 3


def rows(rng, n, skewed=False):
    """Three classes in two columns that overlap; skewed columns are not normal."""
    y = rng.choice(K, size=n, p=[0.5, 0.3, 0.2])
    X = rng.normal(size=(n, 2)) + 1.5 * np.array([[0, 0], [1, 0], [0, 1]])[y]
    return (np.exp(X) if skewed else X), y


def odds_against(clf, X):
    """s(x, y): log posterior odds against each class."""
    log_p = clf.predict_log_proba(X)
    return np.log1p(-np.exp(log_p)) - log_p


def learnt(n=40, **options):
    X, y = rows(np.random.default_rng(1), n)
    return GenerativeClassifier(Gaussian("tied"), classes=[0, 1, 2], **options).fit(X, y), X, y


@pytest.mark.parametrize("by_class", [False, True])
def test_cv_plus_compares_each_row_with_the_model_that_has_not_learnt_it(by_class):
    clf, X, y = learnt(calibrate="offsets")
    new, _ = rows(np.random.default_rng(2), 30)
    fold = np.empty(len(X), dtype=int)
    fold[np.random.default_rng(0).permutation(len(X))] = np.arange(len(X)) % 10
    at_least, total = np.ones((30, K)), np.ones((30, K))
    for k in range(10):
        without = GenerativeClassifier(Gaussian("tied"), classes=[0, 1, 2], calibrate="offsets")
        without.fit(X[fold != k], y[fold != k])
        found = odds_against(without, new)
        for i in np.flatnonzero(fold == k):
            own = odds_against(without, X[i : i + 1])[0, y[i]]
            compared = np.arange(K) == y[i] if by_class else np.ones(K, dtype=bool)
            at_least += compared & (own >= found - 1e-9)
            total += compared
    made = clf.predict_set(new, 0.8, by_class=by_class)
    np.testing.assert_allclose(made.p_values, at_least / total)
    np.testing.assert_array_equal(made.members, at_least / total > 0.2 + 1e-12)


@pytest.mark.parametrize("by_class", [False, True])
def test_full_refits_with_each_class_and_leaves_each_row_out(by_class):
    X, y = rows(np.random.default_rng(1), 14)
    y[:6] = np.arange(6) % K
    family = Gaussian("diagonal", mean=[0.0, 0.0], scale=[1.0, 1.0])  # a prior that does not follow the rows
    clf = GenerativeClassifier(family).fit(X, y)
    new, _ = rows(np.random.default_rng(2), 4)
    expected = np.zeros((4, K))
    for r in range(4):
        for c in range(K):
            more, labels = np.vstack([X, new[r : r + 1]]), np.append(y, c)
            own = np.array(
                [
                    odds_against(
                        GenerativeClassifier(family, classes=[0, 1, 2]).fit(
                            np.delete(more, i, 0), np.delete(labels, i)
                        ),
                        more[i : i + 1],
                    )[0, labels[i]]
                    for i in range(15)
                ]
            )
            if by_class:
                own = own[labels == c]
            expected[r, c] = (own >= own[-1] - 1e-9).mean()
    np.testing.assert_allclose(clf.predict_set(new, method="full", by_class=by_class).p_values, expected)


def test_jackknife_compares_with_leave_one_out_scores_that_are_not_calibrated():
    clf, X, y = learnt(calibrate="offsets")
    new, _ = rows(np.random.default_rng(2), 20)
    prior = clf.log_prior()
    left = clf.leave_one_out(X, y, method="predict_log_proba", prior=np.exp(prior), raw=True)[np.arange(40), y]
    own = np.log1p(-np.exp(left)) - left
    log_p = clf.predict_log_proba(new, raw=True)
    found = np.log1p(-np.exp(log_p)) - log_p
    expected = (1 + (own[:, None, None] >= found).sum(axis=0)) / 41
    np.testing.assert_allclose(clf.predict_set(new, method="jackknife").p_values, expected)


@pytest.mark.parametrize("method", ["jackknife", "full"])
def test_learnt_and_new_rows_are_scored_without_experts(method):
    X, y = load_iris(return_X_y=True, as_frame=True)
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[:90], order[90:110]
    clf = GenerativeClassifier().fit(X.iloc[train], y.iloc[train])
    assert len(clf.family_.experts) > 0
    asked = {"X": X.iloc[test], "coverage": 0.9, "method": method}
    alone = GenerativeClassifier(replace(clf.family_, experts={})).fit(X.iloc[train], y.iloc[train])
    np.testing.assert_allclose(clf.predict_set(**asked).p_values, alone.predict_set(**asked).p_values)
    assert clf.predict_set(**asked).members[np.arange(20), y.iloc[test]].mean() > 0.75


@pytest.mark.parametrize("method", ["cv+", "jackknife", "full"])
def test_sets_cover_although_the_family_is_wrong(method):
    """Lognormal columns as normal ones; 20 fits × 100 rows, standard error of the mean about .012."""
    covered, n, m = [], 60, 100 if method != "full" else 15
    for seed in range(20):
        X, y = rows(np.random.default_rng(seed), n + m, skewed=True)
        clf = GenerativeClassifier(Gaussian("diagonal"), classes=[0, 1, 2]).fit(X[:n], y[:n])
        made = clf.predict_set(X[n:], 0.8, method)
        covered.append(made.members[np.arange(m), y[n:]].mean())
    assert 0.76 < np.mean(covered) < 0.87


def test_sets_by_class_cover_a_rare_class():
    """One class in ten; without by_class its coverage is far lower."""
    plain, each = [], []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        y = (rng.random(400) < 0.1).astype(int)
        X = rng.normal(size=(400, 1)) + y[:, None]
        clf = GenerativeClassifier(Gaussian("tied")).fit(X[:200], y[:200])
        rare = np.flatnonzero(y[200:] == 1)
        plain.append(clf.predict_set(X[200:], 0.8).members[rare, 1].mean())
        each.append(clf.predict_set(X[200:], 0.8, by_class=True).members[rare, 1].mean())
    assert np.mean(plain) < 0.4
    assert 0.7 < np.mean(each) < 0.92


def test_certain_rows_are_told_apart_so_that_sets_are_not_too_large():
    """Posteriors of 1 − 1e-30 are all 1; the log odds still differ, so one set in ten is empty."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 1000)
    X = rng.normal(size=(1000, 1)) + 50 * y[:, None]
    made = GenerativeClassifier(Gaussian("tied")).fit(X[:500], y[:500]).predict_set(X[500:], 0.9)
    assert 0.05 < made.empty / 500 < 0.15
    assert made.members[np.arange(500), y[500:]].mean() < 0.95


def test_an_empty_set_is_counted_or_gets_the_most_probable_class():
    clf, _, _ = learnt()
    new = np.random.default_rng(3).normal(size=(200, 2))
    made, filled = clf.predict_set(new, 0.3), clf.predict_set(new, 0.3, allow_empty=False)
    empty = made.size == 0
    assert made.empty == empty.sum() > 0
    assert filled.empty == 0
    np.testing.assert_array_equal(filled.members[~empty], made.members[~empty])
    assert [each[0] for each, was in zip(filled, empty) if was] == clf.predict(new)[empty].tolist()
    assert f"{made.empty} empty" in repr(made)


def test_a_class_with_too_few_rows_is_in_every_set_by_class():
    X, y = rows(np.random.default_rng(0), 60)
    y[:] = np.arange(60) % 2
    y[:8] = 2  # 1/α − 1 = 9 rows are needed
    made = GenerativeClassifier(Gaussian("tied")).fit(X, y).predict_set(X, 0.9, by_class=True)
    assert made.always == (2,)
    assert made.members[:, 2].all()
    assert "2" in repr(made).split("too few rows")[1]
    assert GenerativeClassifier(Gaussian("tied")).fit(X, y).predict_set(X, 0.88, by_class=True).always == ()


def test_classes_of_one_row_and_two_rows_do_not_break_the_folds():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=30), "c": list("aab") * 10})
    y = ["p"] * 14 + ["q"] * 13 + ["r"] * 2 + ["s"]
    made = GenerativeClassifier().fit(frame, y).predict_set(frame)
    assert made.p_values.shape == (30, 4)
    assert np.isfinite(made.p_values).all()


def test_none_of_these_is_told_by_the_density_of_each_class():
    X, y = rows(np.random.default_rng(5), 300)
    clf = GenerativeClassifier(Gaussian("tied")).fit(X, y)
    new, true = rows(np.random.default_rng(6), 2000)
    p = clf.p_values(np.vstack([new, [[40.0, 40.0]]]))
    assert (p[-1] < 0.03).all()
    own = p[:-1][np.arange(2000), true]
    assert abs((own <= 0.1).mean() - 0.1) < 0.04  # uniform under the class
    assert clf.predict_set([[40.0, 40.0]]).size[0] > 0  # a set does not tell: the posterior of some class is high


# -- the learnt rows ---------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_given_rows_and_remembered_rows_give_the_same_sets():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=80), "c": rng.choice(list("abc"), 80)})
    y = np.where(frame["x"] + (frame["c"] == "a") > 0.5, "yes", "no")
    clf = GenerativeClassifier().fit(frame, y)
    again = pickle.loads(pickle.dumps(clf))
    with pytest.raises(NotAvailableError, match="learnt="):
        again.predict_set(frame)
    with_label = frame.assign(label=y)
    for given in ((frame, y), (with_label, "label")):
        made = again.predict_set(frame[:20], learnt=given)
        np.testing.assert_array_equal(made.p_values, clf.predict_set(frame[:20]).p_values)


def test_rows_are_forgotten_once_the_model_changes():
    clf, X, y = learnt()
    clf.recalibrate(X, y, "offsets").predict_set(X[:2])
    clf.learn(X[:3], y[:3])
    with pytest.raises(NotAvailableError, match="changed"):
        clf.predict_set(X[:2])
    assert len(clf.predict_set(X[:2], learnt=(np.vstack([X, X[:3]]), np.append(y, y[:3])))) == 2


def test_a_part_of_the_rows_is_subtracted_from_the_sums():
    """A sample of the learnt rows: the sums without a fold are those of a fit without it."""
    X, y = rows(np.random.default_rng(1), 200)
    clf = GenerativeClassifier(Gaussian("tied"), calibrate="offsets").fit(X, y)
    new, _ = rows(np.random.default_rng(2), 30)
    made = clf.predict_set(new, learnt=(X[:100], y[:100]))
    fold = np.empty(100, dtype=int)
    fold[np.random.default_rng(0).permutation(100)] = np.arange(100) % 10
    part = clf.conformity("cv+", learnt=(X[:100], y[:100])).parts[3].predictor
    kept = np.flatnonzero(np.append(fold != 3, np.ones(100, dtype=bool)))
    alone = GenerativeClassifier(Gaussian("tied"), calibrate=None).fit(X[kept], y[kept])
    np.testing.assert_allclose(part.scores(new, raw=True), alone.log_likelihood(new), rtol=1e-8)
    assert made.rows.tolist() == [100] * K
    with pytest.raises(NotLearntError, match="200"):
        clf.predict_set(new, method="full", learnt=(X[:100], y[:100]))


def test_texts_have_sets_too():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 60)
    texts = [" ".join(rng.choice(["red", "green", "blue"], 5, p=[0.6, 0.2, 0.2] if c else [0.2, 0.3, 0.5])) for c in y]
    made = GenerativeClassifier().fit(texts, y).predict_set(["red red red", "blue blue"], 0.7)
    assert [1 in made[0], 0 in made[1]] == [True, True]


def test_wrong_arguments_are_named():
    clf, X, _ = learnt()
    with pytest.raises(InputError, match=r"coverage=1\.5"):
        clf.predict_set(X, 1.5)
    with pytest.raises(HyperparameterError, match="'split'"):
        clf.predict_set(X, method="split")


def test_categories_that_a_fold_lacks_are_scored():
    frame = pd.DataFrame({"c": ["only", *"ab" * 20]})
    clf = GenerativeClassifier(Categorical()).fit(frame, ["p", *"pq" * 20])
    assert np.isfinite(clf.predict_set(frame).p_values).all()
