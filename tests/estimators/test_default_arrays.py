"""Default fits of plain arrays: calibrated as frames are, constant columns left out."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

from deciban import Gaussian, GenerativeClassifier, SemiSupervised
from deciban.model import cross_fit
from deciban.model.cross_fit import PartsTogether, folds_by_subtraction
from deciban.model.judge import stratified
from deciban.model.model import Lesson
from deciban.read.batches import Batch
from deciban.statistics import Members


def ring(n, seed=0):
    """Two classes, of which one surrounds the other: neither is one bell."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    angle, radius = rng.uniform(0, 2 * np.pi, n), np.where(y, 3.0, 1.0) + rng.normal(0, 0.5, n)
    near = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    return np.column_stack([near, near + rng.normal(0, 0.1, (n, 2))]), y


def log_loss(clf, X, y):
    return float(-np.mean(clf.predict_log_proba(X)[np.arange(len(y)), y]))


def test_a_default_array_is_calibrated_and_answers_better_for_it():
    X, y = ring(300)
    fresh = ring(4000, seed=1)
    plain, default = (GenerativeClassifier(calibrate=by).fit(X, y) for by in (None, "auto"))
    assert default.model_.calibration is not None
    assert log_loss(default, *fresh) < log_loss(plain, *fresh) - 0.02


def test_arrays_of_which_no_calibration_is_better_stay_as_they_are():
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    X = rng.normal(0, 1, (200, 2)) + 8 * y[:, None]  # without an error
    plain, default = (GenerativeClassifier(calibrate=by).fit(X, y) for by in (None, "auto"))
    np.testing.assert_allclose(default.predict_log_proba(X), plain.predict_log_proba(X), rtol=1e-9)


def test_named_families_and_first_batches_of_many_stay_uncalibrated():
    X, y = ring(100)
    assert GenerativeClassifier(Gaussian("full")).fit(X, y).model_.calibration is None
    assert GenerativeClassifier().partial_fit(X, y).model_.calibration is None


@pytest.mark.parametrize("load", [load_wine, load_breast_cancer, load_iris])
def test_few_rows_of_an_array_answer_better_than_knowing_nothing(load):
    X, y = load(return_X_y=True)
    losses, nothing = [], []
    for seed in range(6):
        order = np.random.default_rng(seed).permutation(len(y))
        train, test = order[:30], order[30:]
        losses.append(log_loss(GenerativeClassifier().fit(X[train], y[train]), X[test], y[test]))
        nothing.append(-np.log(np.bincount(y[train])[y[test]] / 30).mean())
    assert np.mean(losses) < np.mean(nothing)


@pytest.mark.parametrize("make", [GenerativeClassifier, SemiSupervised])
def test_weights_and_copies_of_few_rows_are_calibrated_alike(make):
    X, y = ring(24)
    weight = np.random.default_rng(0).integers(0, 4, len(y))
    order = np.random.default_rng(1).permutation(weight.sum())
    weighted = make().fit(X, y, sample_weight=weight)
    copied = make().fit(np.repeat(X, weight, axis=0)[order], np.repeat(y, weight)[order])
    np.testing.assert_allclose(copied.predict_proba(X), weighted.predict_proba(X), rtol=1e-7)


def test_cross_fitted_weights_that_gain_little_are_made_smaller():
    rng = np.random.default_rng(0)
    codes, fold = np.arange(400) % 2, np.arange(400) // 2 % 4
    nothing, none = np.zeros((400, 2)), np.array([0.5, 0.5])
    shares = []
    for strength in (0.0, 0.12, 1.0):
        scores = strength * np.eye(2)[codes] + rng.normal(0, 0.5, (400, 2))
        shares.append(cross_fit._combination({"prior": nothing, "parts": scores}, codes, fold, none)[1])
    assert shares[0] == 0
    assert 0 < shares[1] < 0.9
    assert shares[2] > 0.95


def test_constant_columns_of_an_array_are_left_out_and_named():
    X, y = ring(200)
    wide = np.insert(X, 2, 7.0, axis=1)
    clf, plain = GenerativeClassifier().fit(wide, y), GenerativeClassifier().fit(X, y)
    odd = np.insert(X, 2, 5e6, axis=1)  # a value that was never seen
    np.testing.assert_allclose(clf.predict_proba(odd), plain.predict_proba(X), rtol=1e-9)
    assert "a constant column is ignored" in clf.model_.reasons[0].text
    assert clf.n_features_in_ == 5


def test_the_first_batch_of_many_keeps_columns_that_are_constant_in_it():
    X, y = ring(200)
    wide = np.insert(X, 2, np.where(np.arange(200) < 100, 0.0, 6.0 * y), axis=1)
    clf = GenerativeClassifier().partial_fit(wide[:100], y[:100]).partial_fit(wide[100:], y[100:])
    moved = wide[150:151].copy()
    moved[0, 2] = 3.0
    assert not np.allclose(clf.predict_log_proba(moved), clf.predict_log_proba(wide[150:151]))


def test_constant_arrays_are_fitted_as_before():
    clf = GenerativeClassifier().fit(np.ones((20, 2)), np.arange(20) % 2)
    np.testing.assert_allclose(clf.predict_proba(np.ones((1, 2))), 0.5)


@pytest.mark.parametrize("gaps", [False, True])
def test_columns_scored_together_score_as_their_blocks_do(gaps, monkeypatch):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 150)
    X = rng.normal(y[:, None], 1.0, (150, 6))
    X[:, 1], X[:, 4] = np.exp(X[:, 1]), np.exp(2 * X[:, 4])
    if gaps:
        X[rng.random(X.shape) < 0.1] = np.nan
    clf = GenerativeClassifier(interactions=0).fit({f"x{j}": X[:, j] for j in range(6)}, y)
    predictor = clf.predictor_
    table = clf._table({f"x{j}": X[:, j] for j in range(6)})
    lesson = Lesson(Batch(table, y), predictor.model.encode(table), Members.hard(y, predictor.model.stats.axis))
    parts = PartsTogether.of(predictor.model, lesson.rows)
    assert max(len(each.places) for each in parts.features) >= 4
    together = list(folds_by_subtraction(predictor, lesson, stratified(y)))
    nothing = PartsTogether([], [], (predictor.model, lesson.rows))
    monkeypatch.setattr(cross_fit.PartsTogether, "of", lambda model, rows: nothing)
    apart = list(folds_by_subtraction(predictor, lesson, stratified(y)))
    for one, other in zip(together, apart, strict=True):
        for a, b in zip([*one.left_out, *one.scores], [*other.left_out, *other.scores], strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)
