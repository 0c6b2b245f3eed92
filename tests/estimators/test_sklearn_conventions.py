"""scikit-learn's own checks, none failing and none expected to."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

from deciban import Gaussian, GenerativeClassifier, HiddenMarkovModel, Multinomial, SemiSupervised


@pytest.mark.filterwarnings("ignore:.*:sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks([GenerativeClassifier(), GenerativeClassifier(Gaussian("diagonal")), SemiSupervised()])
def test_estimator_check(estimator, check):
    check(estimator)


# a full Gaussian learns from complete rows, and scores rows with gaps by integrating the missing values out
SCORES_GAPS = {"check_estimators_nan_inf"}
# steps of a sequence are not independent rows, `score` takes lengths, and a sequence of numbers may be one-dimensional
SEQUENCES = {
    *("check_fit_score_takes_y", "check_pipeline_consistency", "check_methods_sample_order_invariance"),
    *("check_methods_subset_invariance", "check_fit1d", "check_fit2d_predict1d", "check_n_features_in"),
    *("check_n_features_in_after_fitting", "check_sample_weights_not_an_array"),
}


@pytest.mark.filterwarnings("ignore:.*:sklearn.exceptions.SkipTestWarning")
@pytest.mark.parametrize(
    ("estimator", "other"),
    [
        (GenerativeClassifier(Gaussian("tied")), SCORES_GAPS),
        (SemiSupervised(Gaussian("tied")), SCORES_GAPS),
        (HiddenMarkovModel(Gaussian()), SCORES_GAPS | SEQUENCES),
    ],
    ids=lambda each: type(each).__name__,
)
def test_estimator_checks_that_apply(estimator, other):
    results = check_estimator(estimator, on_fail=None, on_skip=None)
    assert {each["check_name"] for each in results if each["status"] == "failed"} <= other


def test_pipelines_grids_and_scores():
    X, y = load_iris(return_X_y=True)
    pipe = make_pipeline(StandardScaler(), GenerativeClassifier(Gaussian()))
    assert cross_val_score(pipe, X, y).mean() > 0.95
    grid = GridSearchCV(
        GenerativeClassifier(),
        {"families": [Gaussian("full"), Gaussian("tied"), Gaussian("diagonal")], "rule": ["ml", "mean"]},
    )
    assert grid.fit(X, y).best_score_ > 0.95


def test_the_repr_says_what_was_asked():
    assert repr(GenerativeClassifier(Multinomial(0.5), rule="ml")).startswith(
        "GenerativeClassifier(families=Multinomial("
    )


def test_plain_numbers_are_never_retyped():
    X, y = np.array([[0, 1], [1, 0], [1, 1], [0, 0]] * 5), [0, 1, 1, 0] * 5
    assert isinstance(GenerativeClassifier().fit(X, y).family_, Gaussian)
