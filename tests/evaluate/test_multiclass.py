"""Log loss, Brier, calibration error and multi-class Cllr, against scikit-learn and plain loops."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import log_softmax
from sklearn.metrics import brier_score_loss
from sklearn.metrics import log_loss as sklearn_log_loss

from deciban.errors import ImpossibleRowWarning, InputError, PriorError
from deciban.evaluate.figures import (
    brier,
    cllr,
    cross_entropy,
    expected_calibration_error,
    log_loss,
    multiclass_calibration_loss,
    multiclass_cllr,
)
from evaluate.twins import some_likelihoods, some_scores

FIGURES = [log_loss, brier, expected_calibration_error, cross_entropy, multiclass_cllr, multiclass_calibration_loss]

HALF = np.log([0.5, 0.5])


@pytest.mark.parametrize("K", [2, 3, 5])
def test_scikit_learn_agrees_on_log_loss_and_brier(K):
    table, codes, log_prior = some_likelihoods(K=K)
    posterior = np.exp(log_softmax(table + log_prior, axis=1))
    assert_allclose(log_loss(table, codes, log_prior), sklearn_log_loss(codes, posterior), rtol=1e-9)
    given = posterior[:, 1] if K == 2 else posterior
    assert_allclose(brier(table, codes, log_prior), brier_score_loss(codes, given), rtol=1e-9)


def test_a_prior_may_be_given_row_by_row():
    table, codes, log_prior = some_likelihoods()
    for figure in (log_loss, brier, expected_calibration_error):
        by_row = figure(table, codes, np.tile(log_prior, (len(table), 1)))
        assert_allclose(by_row, figure(table, codes, log_prior), rtol=1e-12)


def test_two_classes_at_even_odds_are_the_two_class_cllr():
    llr, is_h1 = some_scores(spread=2.0)
    table = np.column_stack([np.zeros_like(llr), llr])
    assert_allclose(multiclass_cllr(table, is_h1.astype(int)), cllr(llr, is_h1), rtol=1e-12)


def test_cross_entropy_is_at_the_prior_whatever_the_rows():
    table, codes, log_prior = some_likelihoods()
    logs = log_softmax(table + log_prior, axis=1)
    twin = sum(-math.exp(log_prior[c]) * np.mean([row[c] for row in logs[codes == c]]) for c in range(3)) / math.log(2)
    assert_allclose(cross_entropy(table, codes, log_prior), twin, rtol=1e-12)
    twice = np.r_[np.arange(len(codes)), np.flatnonzero(codes == 1)]
    assert_allclose(cross_entropy(table[twice], codes[twice], log_prior), twin, rtol=1e-12)


def test_saying_nothing_costs_one_at_any_prior():
    _, codes, log_prior = some_likelihoods()
    assert_allclose(multiclass_cllr(np.zeros((300, 3)), codes), 1)
    assert_allclose(multiclass_cllr(np.zeros((300, 3)), codes, log_prior), 1)
    assert_allclose(multiclass_calibration_loss(np.zeros((300, 3)), codes), 0, atol=1e-9)


def test_calibration_loss_is_small_for_right_likelihoods_and_large_for_swollen_ones():
    right, codes, log_prior = some_likelihoods(3000)
    for prior in (None, log_prior):
        assert 0 <= multiclass_calibration_loss(right, codes, prior) < 0.01
        assert multiclass_calibration_loss(10 * right, codes, prior) > 1
        gap = multiclass_cllr(10 * right, codes, prior) - multiclass_calibration_loss(10 * right, codes, prior)
        assert_allclose(gap, multiclass_cllr(right, codes, prior), atol=0.01)


def test_calibration_error_is_the_plain_sum_over_bins():
    table, codes, log_prior = some_likelihoods(300)
    posterior = np.exp(log_softmax(table + log_prior, axis=1))
    order = np.argsort(posterior.max(axis=1))
    twin = 0.0
    for rows in np.array_split(order, 10):
        right = np.mean(posterior[rows].argmax(axis=1) == codes[rows])
        twin += len(rows) / 300 * abs(right - posterior[rows].max(axis=1).mean())
    assert_allclose(expected_calibration_error(table, codes, log_prior, bins=10), twin, rtol=1e-9)
    shuffled = np.random.default_rng(0).permutation(300)
    again = expected_calibration_error(table[shuffled], codes[shuffled], log_prior, bins=10)
    assert_allclose(again, twin, rtol=1e-9)


def test_a_certain_mistake_costs_everything_and_an_impossible_row_the_prior():
    even = np.log([0.5, 0.5])
    assert log_loss([[0, -math.inf], [-math.inf, 0]], [0, 0], even) == math.inf
    assert multiclass_calibration_loss([[0, -math.inf], [-math.inf, 0], [0, 0]], [0, 0, 1], even) == math.inf
    assert log_loss([[0, -math.inf], [-math.inf, 0]], [0, 1], even) == 0
    with pytest.warns(ImpossibleRowWarning, match="1 row"):
        assert_allclose(log_loss([[-math.inf, -math.inf]], [0], even), math.log(2))


@pytest.mark.parametrize("figure", FIGURES)
@pytest.mark.parametrize(
    ("table", "codes", "log_prior", "error", "words"),
    [
        ([[0, 1]], [2], HALF, InputError, "code 2"),
        ([[0, 1]], [0.5], HALF, InputError, "codes are float64"),
        ([[0, math.nan]], [0], HALF, InputError, "NaN in 1 of 1 rows"),
        (np.zeros((0, 2)), [], HALF, InputError, "no rows to judge"),
        ([[0, 1], [1, 0]], [0, 1], [-1.0, -1.0], PriorError, "sum to 1"),
        ([[0, 1], [1, 0]], [0, 1], [0.0], PriorError, r"shape \(1,\)"),
    ],
)
def test_bad_input_is_refused_with_a_reason(figure, table, codes, log_prior, error, words):
    with pytest.raises(error, match=words):
        figure(table, codes, log_prior)


def test_questions_without_an_answer_are_refused():
    with pytest.raises(InputError, match="no row is of class 1, whose prior is above 0"):
        multiclass_cllr([[0, 1]], [0])
    with pytest.raises(InputError, match="certain of one class"):
        multiclass_cllr([[0, 1]], [0], [0, -math.inf])
