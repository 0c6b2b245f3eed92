"""Parameters of the drop-ins are checked by every fit, with scikit-learn's errors."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils._param_validation import InvalidParameterError

import deciban.sklearn as ours

NAMES = [name for name in ours.__all__ if name[0].isupper()]
X, Y = np.arange(40.0).reshape(20, 2), np.arange(20) % 2


def error_of(estimator):
    """Message of the error that a fit raises."""
    rows = ["one two", "two three"] * 10 if "Vectorizer" in type(estimator).__name__ else X
    with pytest.raises(InvalidParameterError) as caught:
        estimator.fit(rows, Y)
    return str(caught.value)


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_value_of_each_parameter_raises_scikit_learns_error(name):
    cls = getattr(ours, name)
    theirs = cls.original._parameter_constraints
    checked = [each for each in cls().get_params() if theirs.get(each, "no_validation") != "no_validation"]
    assert checked
    for parameter in checked:
        wrong = {parameter: ...}
        mine = cls().set_params(**wrong)
        assert error_of(mine) == error_of(cls.original(**wrong)), parameter
        assert error_of(clone(mine)) == error_of(pickle.loads(pickle.dumps(mine))), parameter


@pytest.mark.parametrize("name", NAMES)
def test_the_first_of_several_wrong_values_is_named_as_by_scikit_learn(name):
    cls = getattr(ours, name)
    theirs = cls.original._parameter_constraints
    wrong = {each: object() for each in cls().get_params() if theirs.get(each, "no_validation") != "no_validation"}
    mine, peer = error_of(cls(**wrong)), error_of(cls.original(**wrong))
    assert mine.partition("Got")[0] == peer.partition("Got")[0]


def test_defaults_of_a_derived_class_are_checked():
    class Derived(ours.GaussianNB):
        def __init__(self, extra=1.0, *, var_smoothing="none"):
            self.extra = extra
            super().__init__(var_smoothing=var_smoothing)

    assert "var_smoothing" in error_of(Derived())
    assert Derived(extra=2.0, var_smoothing=1e-9).fit(X, Y).get_params()["extra"] == 2.0


COUNTS = np.random.default_rng(0).integers(0, 4, (60, 3))
LABELS = {
    "none": None,
    "a number": 3,
    "a text": "a",
    "a column": np.arange(60)[:, None] % 2,
    "fractions": np.arange(60) / 7,
    "missing": [None] * 60,
    "lists": [["a"]] * 60,
    "too few": np.arange(59) % 2,
}


@pytest.mark.filterwarnings("ignore:A column-vector y")
@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith("NB")])
def test_labels_are_refused_or_taken_as_by_scikit_learn(name, labels):
    cls = getattr(ours, name)
    assert outcome(cls(), LABELS[labels]) == outcome(cls.original(), LABELS[labels])


def outcome(estimator, labels):
    """Classes that a fit finds, or its error."""
    try:
        return estimator.fit(COUNTS, labels).classes_.tolist()
    except (ValueError, TypeError) as error:
        return type(error).__name__, str(error)
