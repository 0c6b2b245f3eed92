"""scikit-learn's own checks, none failing and none expected to."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

from deciban import (
    PLSA,
    Gaussian,
    GenerativeClassifier,
    HiddenMarkovModel,
    HMMClassifier,
    Multinomial,
    SemiSupervised,
    TopicModel,
)
from versions import with_tested_sklearn

ESTIMATORS = [
    GenerativeClassifier(),
    GenerativeClassifier(Gaussian("diagonal")),
    GenerativeClassifier(Gaussian("tied")),
    SemiSupervised(),
    SemiSupervised(Gaussian("tied")),
]


@pytest.mark.filterwarnings("ignore:.*:sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(ESTIMATORS)
def test_estimator_check(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", [PLSA, TopicModel])
def test_estimator_checks_of_topics(kind):
    results = check_estimator(kind(2), on_fail=None, on_skip=None)
    assert not [each["check_name"] for each in results if each["status"] in ("failed", "xfail")]
    assert sum(each["status"] == "passed" for each in results) > 40


class OneSequence(HiddenMarkovModel):
    """The model with the tags of an estimator of tables, so that scikit-learn runs its checks on one sequence."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = True
        return tags


# The steps of a sequence are not independent rows; a sequence of numbers may be one-dimensional; emissions that are
# full Gaussians are learnt from complete rows, and score rows with gaps.
SEQUENCES = {
    *("check_methods_sample_order_invariance", "check_methods_subset_invariance", "check_fit1d"),
    "check_estimators_nan_inf",
}


@with_tested_sklearn
@pytest.mark.filterwarnings("ignore:.*:sklearn.exceptions.SkipTestWarning")
def test_estimator_checks_of_one_sequence():
    results = check_estimator(OneSequence(Gaussian()), on_fail=None, on_skip=None)
    assert {each["check_name"] for each in results if each["status"] == "failed"} <= SEQUENCES
    assert sum(each["status"] == "passed" for each in results) > 40


@pytest.mark.filterwarnings("ignore:.*:sklearn.exceptions.SkipTestWarning")
@pytest.mark.parametrize("kind", [HiddenMarkovModel, HMMClassifier])
def test_the_tags_of_sequences(kind):
    estimator = kind(Gaussian("diagonal"), 2, random_state=0, n_starts=1)
    assert not [each for each in check_estimator(estimator, on_fail=None) if each["status"] == "failed"]
    tags = get_tags(estimator).input_tags
    assert (tags.two_d_array, tags.three_d_array, tags.allow_nan) == (False, True, True)
    X = np.random.default_rng(0).normal(size=(8, 5, 2))
    y = np.arange(8) % 2 if kind is HMMClassifier else None
    one, other = clone(estimator).fit(X, y), clone(estimator).fit(list(X), y)
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(list(X)))
    assert one.set_params(family__strength=3.0).family.strength == 3.0


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
