"""A dozen rows: what was chosen from them must not stop an answer, and what they cannot know must not be claimed."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer

from deciban import Gaussian, GenerativeClassifier
from deciban.families.transformed import Transformed


def shops(n=40, seed=0):
    rng = np.random.default_rng(seed)
    label = np.arange(n) % 2
    return pd.DataFrame({"amount": np.exp(rng.normal(3 + label, 1.0, n)), "label": label})


def test_a_zero_where_a_logarithm_was_chosen_says_nothing():
    clf = GenerativeClassifier().fit(shops(), "label")
    assert isinstance(clf.family_.families["amount"], Transformed)
    assert clf.family_.families["amount"].by == "log"
    told = clf.predict_proba(pd.DataFrame({"amount": [0.0, -3.0, np.nan, 60.0]}))
    np.testing.assert_array_equal(told[:2], told[[2, 2]])
    assert told[3, 1] > told[2, 1]
    more = clf.learn(pd.DataFrame({"amount": [0.0], "label": [1]}), "label")
    assert more.stats_.rows.tolist() == [20, 21]


def test_numbers_that_never_change_are_left_out_of_small_tables_too():
    few = shops(8).assign(loss=0.0)
    clf = GenerativeClassifier().fit(few, "label")
    assert list(clf.family_.families) == ["amount"]
    asked = few.drop(columns="label")
    np.testing.assert_array_equal(clf.predict_proba(asked.assign(loss=2415.0)), clf.predict_proba(asked))


@pytest.mark.slow
@pytest.mark.parametrize("n", [12, 25, 50])
def test_a_few_rows_answer_better_than_knowing_nothing(n):
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X = X.iloc[:, :10]
    losses, nothing = [], []
    for seed in range(8):
        order = np.random.default_rng(seed).permutation(len(y))
        train, test = order[:n], order[n:]
        log_p = GenerativeClassifier().fit(X.iloc[train], y.iloc[train]).predict_log_proba(X.iloc[test])
        losses.append(-log_p[np.arange(len(test)), y.iloc[test]].mean())
        share = y.iloc[train].mean()
        nothing.append(-np.log(np.where(y.iloc[test], share, 1 - share)).mean())
    assert np.mean(losses) < 0.85 * np.mean(nothing)


def test_whole_numbers_that_are_constant_within_classes_are_not_normal():
    rng = np.random.default_rng(0)
    animal = np.array(["cat", "hen"])[rng.integers(0, 2, 80)]
    legs = np.where(animal == "cat", 4, 2)
    frame = pd.DataFrame({"legs": legs, "weight": rng.lognormal(np.where(animal == "cat", 1.4, 0.7), 0.3)})
    clf = GenerativeClassifier().fit(frame, animal)
    assert not isinstance(clf.family_.families["legs"], Gaussian | Transformed)
    over = clf.llr(pd.DataFrame({"legs": [4], "weight": [2.9]}), "cat", "hen", unit="decibans")
    assert 10 < over[0] < 150  # 40 rows of each class without an exception; a narrow normal density says 9,000
