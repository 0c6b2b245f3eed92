"""scikit-learn's own checks, none failing and none expected to."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from deciban import Gaussian, GenerativeClassifier, Multinomial


@pytest.mark.filterwarnings("ignore:.*:sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks([GenerativeClassifier()])
def test_estimator_check(estimator, check):
    check(estimator)


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
