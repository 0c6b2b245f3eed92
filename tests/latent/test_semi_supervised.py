"""Rows with and without labels in one EM loop."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from deciban import Gaussian, GenerativeClassifier, Mixture, Multinomial, SemiSupervised
from deciban.errors import EmptyComponentWarning, HyperparameterError, InputError, NotAvailableError


def documents(n=600, labels=12, seed=0):
    """Counts of three topics, few of them labelled."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(60, 0.8), 3)
    which = np.r_[0, 1, 2, rng.integers(0, 3, n - 3)]
    X = np.stack([rng.multinomial(12, topics[k]) for k in which]).astype(float)
    y = np.array(["a", "b", "c"], dtype=object)[which]
    given = y.copy()
    given[labels:] = None
    return X, y, given


def test_hyper_parameters_of_the_family_are_set_by_name():
    model = SemiSupervised(Multinomial()).set_params(classifier__pseudo_count=0.5)
    assert model.classifier.pseudo_count == 0.5
    model = SemiSupervised(GenerativeClassifier(Multinomial())).set_params(classifier__families__pseudo_count=0.5)
    assert model.get_params()["classifier__families__pseudo_count"] == 0.5
    with pytest.raises(HyperparameterError, match="classifier=None is not a family"):
        SemiSupervised().set_params(classifier__pseudo_count=0.5)


def test_unlabelled_rows_help():
    X, y, given = documents()
    have = np.array([label is not None for label in given])
    alone = GenerativeClassifier(Multinomial(), prior="uniform").fit(X[have], y[have].tolist())
    both = SemiSupervised(GenerativeClassifier(Multinomial(), prior="uniform")).fit(X, given)
    assert both.score(X[~have], y[~have]) > alone.score(X[~have], y[~have]) + 0.05
    assert both.trace_.converged


def test_without_unlabelled_rows_it_is_the_classifier():
    X, y, given = documents(200)
    clf = GenerativeClassifier(Multinomial())
    plain = clone(clf).fit(X, y.tolist()).predict_proba(X)
    np.testing.assert_allclose(SemiSupervised(clf).fit(X, y).predict_proba(X), plain)
    have = np.array([label is not None for label in given])
    alone = clone(clf).fit(X[have], y[have].tolist()).predict_proba(X)
    np.testing.assert_allclose(SemiSupervised(clf, unlabelled_weight=0.0).fit(X, given).predict_proba(X), alone)


@pytest.mark.parametrize("rule", ["ml", "map"])
def test_the_objective_never_falls(rule):
    rng = np.random.default_rng(0)
    X = np.r_[rng.normal(0, 1, (150, 2)), rng.normal(2, 1.5, (150, 2))]
    y = np.full(300, np.nan)
    y[:20], y[150:170] = 0, 1
    weights = rng.uniform(0, 2, 300)
    model = SemiSupervised(GenerativeClassifier(Gaussian(), rule=rule), unlabelled_weight=0.7).fit(X, y, weights)
    assert model.trace_.iterations > 3
    assert (np.diff(model.trace_.objective) > -1e-9 * abs(model.trace_.objective[0])).all()


def test_labelled_rows_keep_their_labels():
    X, _, given = documents(100, labels=30)
    model = SemiSupervised(GenerativeClassifier(Multinomial()), unlabelled_weight=1e-9).fit(X, given)
    np.testing.assert_allclose(model.classifier_.stats_.rows, [(given == name).sum() for name in "abc"], atol=1e-6)
    full = SemiSupervised(GenerativeClassifier(Multinomial())).fit(X, given)
    assert full.classifier_.stats_.rows.sum() == pytest.approx(100)
    assert (full.classifier_.stats_.rows >= [(given == name).sum() for name in "abc"]).all()


def test_missing_labels_are_none_nan_na_or_what_you_say():
    X, _, given = documents(200)
    numbers = {"a": 0.0, "b": 1.0, "c": 2.0}
    answers = [
        SemiSupervised(GenerativeClassifier(Multinomial()), missing=missing).fit(X, labels).predict_proba(X)
        for labels, missing in (
            (given, None),
            ([numbers.get(label, np.nan) for label in given], None),
            (pd.Series([numbers.get(label) for label in given], dtype="Int64"), None),
            ([int(numbers.get(label, -1)) for label in given], -1),
            (["?" if label is None else label for label in given], "?"),
        )
    ]
    for answer in answers[1:]:
        np.testing.assert_allclose(answer, answers[0])


def test_the_weight_is_chosen_by_leaving_labelled_rows_out():
    X, y, given = documents(400, labels=30)
    model = SemiSupervised(GenerativeClassifier(Multinomial()), unlabelled_weight="loo").fit(X, given)
    assert model.unlabelled_weight_ in model.criteria_
    assert model.criteria_[model.unlabelled_weight_] == min(model.criteria_.values())
    assert model.score(X, y) > 0.8


def test_frames_priors_and_mixtures():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": np.r_[rng.normal(0, 1, 200), rng.normal(5, 1, 200)], "c": ["u", "v"] * 200})
    y = np.full(400, None)
    y[:10], y[200:210] = "low", "high"
    model = SemiSupervised(GenerativeClassifier(prior={"low": 0.5, "high": 0.5})).fit(frame, y)
    assert (model.predict(frame) == np.repeat(["low", "high"], 200)).mean() > 0.97
    assert model.llr(frame[:3], "low", "high").shape == (3,)
    mixed = SemiSupervised(GenerativeClassifier(Mixture(Gaussian(), 2))).fit(frame[["x"]].to_numpy(), y)
    assert (mixed.predict(frame[["x"]].to_numpy()) == np.repeat(["low", "high"], 200)).mean() > 0.97


def test_what_is_refused():
    X, _, given = documents(20)
    with pytest.raises(InputError, match="every label is missing"):
        SemiSupervised().fit(X, [None] * 20)
    with pytest.raises(HyperparameterError, match="neither a number"):
        SemiSupervised(unlabelled_weight="much").fit(X, given)
    with pytest.raises(NotAvailableError, match="refit"):
        SemiSupervised(GenerativeClassifier(Multinomial())).fit(X, given).unlearn(X[:1], given[:1])


@pytest.mark.slow
@pytest.mark.skipif("DECIBAN_DATA" not in os.environ, reason="set DECIBAN_DATA to the folder that holds 20newsgroups/")
def test_a_hundred_labels_on_newsgroups():
    example = Path(__file__).parents[2] / "examples" / "few_labels.py"
    command = [
        sys.executable,
        "-W",
        "error",
        str(example),
        "--corpus",
        "20 Newsgroups",
        "--labels",
        "100",
        "--seeds",
        "1",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    alone, both, chosen = map(float, re.search(r"^ +100 +([\d.]+) +([\d.]+) +([\d.]+)$", done.stdout, re.M).groups())
    assert min(both, chosen) > alone + 10


def test_log_likelihoods_include_every_constant():
    rng = np.random.default_rng(0)
    X = rng.multinomial(8, [0.2, 0.3, 0.5], 40).astype(float)
    y = np.array(["a", "b", None, None] * 10, dtype=object)
    model = SemiSupervised(GenerativeClassifier(Multinomial())).fit(X, y)
    pairs = np.array([[2, 0, 0], [0, 2, 0], [0, 0, 2], [1, 1, 0], [1, 0, 1], [0, 1, 1]], dtype=float)
    np.testing.assert_allclose(np.exp(model.log_likelihood(pairs)).sum(axis=0), [1.0, 1.0])
    joint = model.log_likelihood(X) + np.log(model.classifier_.stats_.rows / model.classifier_.stats_.rows.sum())
    np.testing.assert_allclose(
        model.predict_log_proba(X), joint - np.logaddexp.reduce(joint, axis=1, keepdims=True), atol=1e-12
    )


def test_unlabelled_rows_get_no_weight_unless_left_out_rows_are_predicted_better():
    """Unlabelled rows of noise: labels alone are not beaten by a standard error."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 40)
    X = np.r_[rng.normal(2.0 * y, 1.0), rng.uniform(-20, 20, 200)][:, None]
    given = np.array([*y.tolist(), *[None] * 200], dtype=object)
    model = SemiSupervised(GenerativeClassifier(Gaussian("tied")), unlabelled_weight="loo").fit(X, given)
    assert model.unlabelled_weight_ == 0
    assert model.criteria_[1.0] > model.criteria_[0.0]


def test_a_class_that_em_has_emptied_is_named():
    rng = np.random.default_rng(0)
    X = np.r_[[[0.0], [0.1], [4.0], [4.1]], rng.normal(0.0, 1.0, (400, 1))]
    y = np.array(["a", "a", "b", "b", *[None] * 400], dtype=object)
    clf = GenerativeClassifier(Gaussian("tied"))
    with pytest.warns(EmptyComponentWarning, match="class 'b'.*loo"):
        SemiSupervised(clf).fit(X, y)


def test_the_calibration_is_fitted_again():
    X, _, given = documents(300, labels=60)
    first = GenerativeClassifier(Multinomial(), calibrate="offsets")
    model = SemiSupervised(first, unlabelled_weight=0.1).fit(X, given)
    labelled = clone(first).fit(X[:60], given[:60].tolist())
    made, before = model.classifier_.calibration_, labelled.calibration_
    assert made is not None
    assert made.calibrator.scale != before.calibrator.scale
    assert SemiSupervised(GenerativeClassifier(Multinomial())).fit(X, given).classifier_.calibration_ is None
