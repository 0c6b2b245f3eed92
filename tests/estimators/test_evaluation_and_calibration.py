"""Evaluation without a hold-out, calibration on leave-one-out scores, and the proportions of a batch."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import log_loss

from deciban import Gaussian, GenerativeClassifier, Multinomial
from deciban.errors import HyperparameterError, InputError, NotLearntError
from deciban.model.judge import stratified
from deciban.model.predictor import Predictor


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return X, np.array(["malignant", "benign"])[y]


def test_new_rows_are_judged_as_new(cancer):
    X, y = cancer
    clf = GenerativeClassifier(Gaussian("diagonal")).fit(X[::2], y[::2])
    told = clf.evaluate(X[1::2], y[1::2])
    np.testing.assert_allclose(told.log_loss, log_loss(y[1::2], clf.predict_proba(X[1::2])), rtol=1e-9)
    assert told.error_rate == (clf.predict(X[1::2]) != y[1::2]).mean()
    assert not told.learnt


def test_learnt_rows_are_judged_as_if_never_learnt(cancer):
    X, y = cancer
    clf = GenerativeClassifier(Gaussian("diagonal")).fit(X, y)
    told = clf.evaluate(X, y, learnt=True)
    prior = {"benign": (y == "benign").mean()}  # that of all rows
    answers, fold = np.empty((len(y), 2)), stratified((y == "malignant").astype(int))
    for k in range(5):
        again = GenerativeClassifier(Gaussian("diagonal")).fit(X[fold != k], y[fold != k])
        answers[fold == k] = again.predict_proba(X[fold == k], prior=prior)
    np.testing.assert_allclose(told.log_loss, log_loss(y, answers), rtol=1e-9)
    with pytest.raises(NotLearntError):
        clf.evaluate(X + 100, y, learnt=True)
    with pytest.raises(InputError, match="does not know"):
        clf.evaluate(X, np.where(y == "benign", "fine", y))


def test_figures_that_were_selected_on_say_so(cancer):
    X, y = cancer
    clf = GenerativeClassifier().fit(X[:400, :6], y[:400]).learn(X[400:, :6], y[400:])
    assert clf.evaluate(X[:, :6], y, learnt=True).selected_on == ("structure",)  # by the first rows
    clf = GenerativeClassifier().fit(X[:, :6], y)
    assert clf.evaluate(X[:, :6], y, learnt=True).selected_on == ()
    few = clf.evaluate(X[:100, :6], y[:100], learnt=True)  # too few rows to choose and calibrate by
    assert few.selected_on == ("structure", "calibration")
    again = clf.evaluate(X[:, :6], y, learnt=True, rechoose=3)
    assert again.selected_on == ()
    assert clf.evaluate(X[:, :6], y).selected_on == ()


def test_each_block_has_its_own_scale_and_parts_still_add_up(cancer):
    X, y = cancer
    frame = pd.DataFrame({f"c{j}": X[:, j] for j in range(6)})
    families = {("c0", "c2", "c3"): Gaussian("diagonal"), ("c1", "c4", "c5"): Gaussian("diagonal")}
    clf = GenerativeClassifier(families, calibrate="blocks").fit(frame, y)
    scales = np.exp(clf.calibration_.calibrator.log_scales)
    assert 1.2 * scales[0] < scales[1] < 0.7  # radius, perimeter and area say the same three times
    told, raw = clf.evaluate(frame, y, learnt=True), clf.evaluate(frame, y, learnt=True, raw=True)
    assert told.cllr < raw.cllr
    shown = clf.explain(frame[:7])
    np.testing.assert_allclose(shown.total, clf.llr(frame[:7]), atol=1e-9)
    first = clf.explain(frame[:1], "malignant", "benign")
    loud = GenerativeClassifier(families).fit(frame, y).explain(frame[:1], "malignant", "benign")
    ratio = first.parts[0] / loud.parts[0]
    np.testing.assert_allclose(ratio[:6], scales[[0, 0, 0, 1, 1, 1]], rtol=1e-9)
    both = clf.leave_one_out(frame, y, method="log_likelihood")
    again = clf.recalibrate(frame, y).leave_one_out(frame, y, method="log_likelihood")
    np.testing.assert_allclose(again, both, rtol=1e-6)


@pytest.mark.parametrize("method", ["offsets", "affine", "pav"])
def test_calibration_mends_overconfidence_and_leaves_the_prior_out(cancer, method):
    X, y = cancer
    train = np.arange(len(y)) % 2 == 0
    clf = GenerativeClassifier(Gaussian("diagonal"), calibrate=method).fit(X[train], y[train])
    raw = clf.evaluate(X[~train], y[~train], raw=True)
    told = clf.evaluate(X[~train], y[~train])
    if method != "pav":  # whose ends are certain, and can be certainly wrong
        assert told.cllr < 0.5 * raw.cllr
    shares = [np.log(0.9), np.log(0.1)]
    joint = clf.log_likelihood(X[:5]) + shares
    np.testing.assert_allclose(
        clf.predict_log_proba(X[:5], prior=[0.9, 0.1]), joint - np.logaddexp.reduce(joint, axis=1)[:, None], atol=1e-9
    )
    assert not np.isnan(clf.predict_proba(X)).any()


def test_explanations_of_a_calibrated_model_sum_to_its_answer(cancer):
    X, y = cancer
    for method in ("offsets", "affine", "pav"):
        clf = GenerativeClassifier(Gaussian("diagonal"), calibrate=method).fit(X[:, :5], y)
        told = clf.explain(X[:40, :5], "malignant", "benign")
        answer = clf.llr(X[:40, :5], "malignant", "benign")
        finite = np.isfinite(answer)
        np.testing.assert_allclose(told.total[finite], answer[finite], atol=1e-9)
        assert "calibration" in told.other


def test_counts_are_calibrated_by_their_length():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    topic = rng.dirichlet(np.full(30, 0.3), 400) * 0.5 + np.where(y[:, None] == 1, 1, np.linspace(0.5, 1.5, 30)) / 60
    X = np.stack([rng.multinomial(rng.integers(5, 300), t / t.sum()) for t in topic])
    clf = GenerativeClassifier(Multinomial()).fit(X, y)
    raw = clf.evaluate(X, y, learnt=True).log_loss
    assert "length" in repr(type(clf.recalibrate(X, y).calibration_.calibrator)).lower()
    assert clf.evaluate(X, y, learnt=True).log_loss < 0.7 * raw
    assert np.isfinite(clf.predict_proba(np.zeros((1, 30)))).all()


def test_calibration_goes_stale_and_is_renewed(cancer):
    X, y = cancer
    clf = GenerativeClassifier(Gaussian("diagonal"), calibrate="offsets").fit(X[:400], y[:400])
    assert clf.calibration_state_ == "calibration: fitted on 400 rows"
    clf.learn(X[400:], y[400:])
    out_of_date = "calibration: out of date: fitted on 400 rows, the model now has 569"
    assert clf.calibration_state_ == out_of_date
    assert clf.recalibrate(X, y).calibration_state_ == "calibration: fitted on 569 rows"
    assert clf.recalibrate(X, y, None).calibration_state_ == "calibration: none"


def test_a_merge_keeps_a_calibration_both_sides_share(cancer):
    X, y = cancer
    a = GenerativeClassifier(Gaussian("diagonal"), calibrate="offsets").fit(X[:300], y[:300])
    b = GenerativeClassifier(a.family_, calibrate="offsets").fit(X[300:], y[300:])
    assert (a + b).calibration_ is None
    b.use(Predictor(replace(b.model_, calibration=a.calibration_)))
    assert (a + b).calibration_ is a.calibration_
    assert a.reestimate(rule="ml").calibration_ is None


def test_a_class_that_comes_later_is_not_calibrated_by_the_others(cancer):
    X, y = cancer
    clf = GenerativeClassifier(Gaussian("diagonal"), calibrate="offsets").fit(X, y)
    clf.learn(X[:20] + 1, ["odd"] * 20)
    assert clf.predict_proba(X).shape[1] == 3
    pav = GenerativeClassifier(Gaussian("diagonal"), calibrate="pav").fit(X, y).learn(X[:20] + 1, ["odd"] * 20)
    with pytest.raises(InputError, match="Calibrate again"):
        pav.predict(X)


def test_default_fits_of_frames_and_arrays_are_calibrated_and_named_families_are_not():
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 300)
    base = rng.normal(y, 1.0)
    frame = pd.DataFrame({"a": base, "b": base + rng.normal(0, 0.1, 300), "c": np.where(base > 0.5, "hi", "lo")})
    assert GenerativeClassifier().fit(frame, y).calibration_ is not None
    assert GenerativeClassifier(calibrate=None).fit(frame, y).calibration_ is None
    assert GenerativeClassifier().fit(frame[["a", "b"]], y).calibration_ is not None
    numbers = frame[["a", "b"]].to_numpy()
    assert GenerativeClassifier().fit(numbers, y).calibration_ is not None
    assert GenerativeClassifier(Gaussian()).fit(numbers, y).calibration_ is None


def test_calibrators_that_do_not_fit_the_model_are_refused(cancer):
    X, y = cancer
    with pytest.raises(HyperparameterError, match="not one of"):
        GenerativeClassifier(Gaussian(), calibrate="magic").fit(X, y)
    with pytest.raises(HyperparameterError, match="length"):
        GenerativeClassifier(Gaussian("diagonal"), calibrate="length").fit(X, y)
    with pytest.raises(HyperparameterError, match="two classes"):
        GenerativeClassifier(Gaussian("diagonal"), calibrate="pav").fit(X[:300], np.arange(300) % 3)


def test_the_proportions_of_a_batch_are_found_and_used(cancer):
    X, y = cancer
    clf = GenerativeClassifier(Gaussian("tied"), calibrate="offsets").fit(X[::2], y[::2])
    rest, truth = X[1::2], y[1::2]
    few = np.r_[np.flatnonzero(truth == "benign"), np.flatnonzero(truth == "malignant")[:10]]
    found = clf.estimate_prior(rest[few])
    share = (truth[few] == "malignant").mean()
    assert abs(found.prior[1] - share) < 4 * found.standard_error[1]
    shifted = (clf.predict(rest[few], prior=found.prior) != truth[few]).mean()
    assert shifted <= (clf.predict(rest[few]) != truth[few]).mean()
