"""Cllr, DCF, EER and PAV against plain loops, `lir` and `expected_cost`; also for ties, ±10,000 and ±inf."""

import math

import lir.metrics
import numpy as np
import pytest
from expected_cost import ec
from hypothesis import given
from hypothesis import strategies as st
from lir.data.models import LLRData
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logit
from scipy.stats import norm
from sklearn.metrics import confusion_matrix

from deciban.errors import CostError, InputError, PriorError
from deciban.evaluate.calibration import PAV
from deciban.evaluate.curves import bayes_error_curve, empirical_cross_entropy
from deciban.evaluate.figures import calibration_loss, cllr, dcf, eer, min_cllr, min_dcf, pav
from evaluate.twins import cllr_twin, dcf_twin, judged, nats, pav_twin, rates_twin, softplus2, some_scores, unhurried

FIGURES = [cllr, min_cllr, calibration_loss, eer, pav, empirical_cross_entropy, bayes_error_curve]
priors = st.floats(1e-6, 1 - 1e-6)


@unhurried
@given(judged())
def test_cllr_is_its_formula(case):
    assert_allclose(cllr(*case), cllr_twin(*case), rtol=1e-9, atol=1e-9)


@unhurried
@given(judged())
def test_pav_pools_as_the_plain_loop_does(case):
    assert_allclose(pav(*case), pav_twin(*case), rtol=1e-9, atol=1e-9)


@unhurried
@given(judged())
def test_pav_is_monotone_and_changes_nothing_the_second_time(case):
    llr, is_h1 = case
    once = pav(llr, is_h1)
    ranked = once[np.argsort(llr, kind="stable")]
    assert (ranked[1:] >= ranked[:-1]).all()
    assert_array_equal(pav(once, is_h1), once)


@unhurried
@given(judged())
def test_no_recalibration_can_lower_min_cllr(case):
    least = min_cllr(*case)
    assert least <= 1 + 1e-12
    assert cllr(*case) >= least - 1e-12
    assert calibration_loss(*case) >= -1e-12


@unhurried
@given(judged(), priors, st.floats(0.01, 100), st.floats(0.01, 100))
def test_dcf_counts_errors_at_the_theoretical_threshold(case, prior, c_miss, c_fa):
    llr, is_h1 = case
    at = -logit(prior) - math.log(c_miss) + math.log(c_fa)
    if (abs(llr - at) < 1e-9 * max(1, abs(at))).any():  # the last digit of the threshold would decide
        return
    twin = dcf_twin(np.mean(llr[is_h1] < at), np.mean(llr[~is_h1] >= at), prior, c_miss, c_fa)
    assert_allclose(dcf(llr, is_h1, prior, c_miss, c_fa), twin, rtol=1e-9)


@unhurried
@given(judged(), priors, st.floats(0.01, 100))
def test_min_dcf_is_the_least_over_all_thresholds(case, prior, c_miss):
    twin = min(dcf_twin(miss, alarm, prior, c_miss) for miss, alarm in rates_twin(*case))
    least = min_dcf(*case, prior, c_miss)
    assert_allclose(least, twin, rtol=1e-9, atol=1e-12)
    assert least <= 1 + 1e-12
    assert dcf(*case, prior, c_miss) >= least - 1e-12


@unhurried
@given(judged())
def test_eer_is_the_worst_minimum_error_rate_of_any_prior(case):
    # on the convex hull, max over π of min over t of π·miss + (1−π)·alarm is where miss = alarm (minimax)
    points = np.array(rates_twin(*case))
    corners = [0.0, 1.0]
    for i in range(len(points)):
        for j in range(i):
            (m1, a1), (m2, a2) = points[i], points[j]
            if (m1 - a1) != (m2 - a2) and 0 <= (p := (a2 - a1) / ((m1 - a1) - (m2 - a2))) <= 1:
                corners.append(p)
    twin = max(min(p * miss + (1 - p) * alarm for miss, alarm in points) for p in corners)
    assert_allclose(eer(*case), twin, atol=1e-9)


@unhurried
@given(judged(), st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(case, random):
    llr, is_h1 = case
    order = np.array(random.sample(range(len(llr)), len(llr)))
    assert_array_equal(pav(llr[order], is_h1[order]), pav(llr, is_h1)[order])
    for figure in (cllr, min_cllr, eer):
        assert_allclose(figure(llr[order], is_h1[order]), figure(llr, is_h1), rtol=1e-12, atol=1e-12)


@unhurried
@given(judged(), st.lists(st.floats(-8, 8), min_size=1, max_size=4))
def test_empirical_cross_entropy_is_its_formula_and_cllr_at_even_odds(case, grid):
    llr, is_h1 = case
    curve = empirical_cross_entropy(llr, is_h1, [*grid, 0.0])
    for scores, told in ((llr, curve.actual), (pav(llr, is_h1), curve.calibrated), (0 * is_h1, curve.reference)):
        for odds, value in zip([*grid, 0.0], told):
            prior = 1 / (1 + math.exp(-odds))
            missed = np.mean([softplus2(-x - odds) for x in scores[is_h1]])
            alarmed = np.mean([softplus2(x + odds) for x in scores[~is_h1]])
            assert_allclose(value, prior * missed + (1 - prior) * alarmed, rtol=1e-9, atol=1e-12)
    assert_allclose([curve.actual[-1], curve.calibrated[-1]], [cllr(*case), min_cllr(*case)], rtol=1e-9, atol=1e-12)
    assert (curve.calibrated <= np.minimum(curve.actual, curve.reference) + 1e-12).all()


@unhurried
@given(judged(), st.lists(st.floats(-8, 8), min_size=1, max_size=4))
def test_the_bayes_error_curve_is_the_dcf_times_its_default(case, grid):
    curve = bayes_error_curve(*case, grid)
    default = np.minimum(1 / (1 + np.exp(-np.array(grid))), 1 / (1 + np.exp(np.array(grid))))
    assert_allclose(curve.default, default, rtol=1e-12)
    assert (curve.minimum <= np.minimum(curve.actual, curve.default) + 1e-12).all()
    assert_allclose(curve.minimum / default, min_dcf(*case, 1 / (1 + np.exp(-np.array(grid)))), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("spread", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("ties", [False, True])
def test_lir_agrees_on_cllr_and_min_cllr(spread, ties):
    llr, is_h1 = some_scores(spread=spread, ties=ties)
    told = LLRData(features=llr[:, None] / math.log(10), labels=is_h1.astype(int))  # lir speaks log10
    assert_allclose(cllr(llr, is_h1), lir.metrics.cllr(told), rtol=1e-9)
    assert_allclose(min_cllr(llr, is_h1), lir.metrics.cllr_min(told), rtol=1e-9)
    assert_allclose(calibration_loss(llr, is_h1), lir.metrics.cllr_cal(told), rtol=1e-8)


@pytest.mark.parametrize(("prior", "c_miss", "c_fa"), [(0.5, 1, 1), (0.01, 1, 1), (0.01, 10, 1), (0.7, 1, 5)])
def test_expected_cost_agrees_on_dcf(prior, c_miss, c_fa):
    llr, is_h1 = some_scores(spread=2.0)
    costs, both = ec.CostMatrix([[0, c_fa], [c_miss, 0]]), [1 - prior, prior]
    decided, _ = ec.bayes_decisions(np.column_stack([0 * llr, llr]), costs, both, score_type="log_likelihoods")
    rates = confusion_matrix(is_h1, decided, normalize="true")
    truth = ec.average_cost_from_confusion_matrix(rates, np.array(both), costs, adjusted=True)
    assert_allclose(dcf(llr, is_h1, prior, c_miss, c_fa), truth, rtol=1e-9)


def test_certain_answers_cost_what_mathematics_says():
    assert cllr([math.inf, -math.inf], [True, False]) == 0
    assert cllr([-math.inf, -math.inf], [True, False]) == math.inf
    assert cllr([10_000, -10_000], [True, False]) == 0
    assert_allclose(cllr([-10_000, 0], [True, False]), (10_000 / math.log(2) + 1) / 2)
    assert min_cllr([-math.inf, math.inf], [True, False]) == 1
    assert eer([math.inf, -math.inf], [True, False]) == 0
    assert dcf([math.inf, -math.inf], [True, False], 1e-300) == 0


def test_a_score_on_the_threshold_is_decided_h1():
    assert dcf([0.0, -1.0], [True, False], 0.5) == 0
    assert dcf([1.0, 0.0], [True, False], 0.5) == 1


def test_equal_scores_say_nothing():
    llr, is_h1 = np.full(6, 3.0), np.arange(6) < 2
    assert_allclose(pav(llr, is_h1), 0, atol=1e-15)
    assert (min_cllr(llr, is_h1), eer(llr, is_h1), min_dcf(llr, is_h1, 0.2)) == (1, 0.5, 1)


def test_an_array_of_priors_gives_an_array_of_costs():
    llr, is_h1 = some_scores()
    several = np.array([[0.01, 0.5], [0.9, 0.99]])
    for figure in (dcf, min_dcf):
        assert_array_equal(figure(llr, is_h1, several), [[figure(llr, is_h1, p) for p in row] for row in several])


def test_the_eer_of_two_gaussians_is_the_textbooks():
    x = norm.ppf((np.arange(20_000) + 0.5) / 20_000)
    llr, is_h1 = np.r_[2 * (x + 1), 2 * (x - 1)], np.arange(40_000) < 20_000
    assert_allclose(eer(llr, is_h1), norm.cdf(-1), atol=1e-3)


def test_pav_in_a_million_scores_is_monotone():
    llr, is_h1 = some_scores(1_000_000, ties=False)
    ranked = pav(llr, is_h1)[np.argsort(llr)]
    assert (ranked[1:] >= ranked[:-1]).all()


@unhurried
@given(judged(), st.lists(nats, min_size=1, max_size=8))
def test_a_pav_calibrator_repeats_pav_and_is_monotone_between(case, fresh):
    llr, is_h1 = case
    fitted = PAV.fit(llr, is_h1)
    assert_array_equal(fitted.apply(llr), pav(llr, is_h1))
    told = fitted.apply(np.sort([*fresh, *llr]))
    assert not np.isnan(told).any()
    assert (told[1:] >= told[:-1]).all()
    again = PAV.from_dict(fitted.to_dict())
    assert_array_equal(again.apply(fresh), fitted.apply(fresh))


def test_between_two_pools_pav_is_linear_and_beyond_them_constant():
    fitted = PAV(np.array([-1.0, 0.0, 2.0, 3.0]), np.array([-2.0, -2.0, 1.0, 1.0]))
    assert_allclose(fitted.apply([-9, 0, 1, 1.5, 2, 9]), [-2, -2, -0.5, 0.25, 1, 1])
    torn = PAV(np.array([-1.0, -1.0, 1.0, 1.0]), np.array([-math.inf, -math.inf, math.inf, math.inf]))
    assert torn.apply([-2, -1, 0, 1, 2]).tolist() == [-math.inf, -math.inf, 0, math.inf, math.inf]


@pytest.mark.parametrize("figure", FIGURES)
@pytest.mark.parametrize(
    ("llr", "is_h1", "words"),
    [
        ([1.0, 2.0], [True, True], "no row is of h0: 2 rows, all of h1"),
        ([1.0, 2.0], [False, False], "no row is of h1: 2 rows, all of h0"),
        ([], [], "no row is of"),
        ([1.0, math.nan, math.nan], [True, False, True], "NaN in 2 of 3 rows, first in row 1"),
        ([1.0, 2.0, 3.0], [True, False], r"3 llrs, but is_h1 has shape \(2,\)"),
        ([1.0, 2.0], [True, 2], r"is_h1 holds 2 \(row 1\)"),
        ([1.0, 2.0], ["m", "f"], r"is_h1 holds 'm' \(row 0\)"),
        ([[1.0, 2.0]], [True, False], r"llr has shape \(1, 2\)"),
        (["high", "low"], [True, False], "llr must be numbers"),
    ],
)
def test_what_cannot_be_judged_is_refused_with_a_reason(figure, llr, is_h1, words):
    with pytest.raises(InputError, match=words):
        figure(llr, is_h1)


def test_certain_priors_are_refused():
    with pytest.raises(PriorError, match="strictly between 0 and 1"):
        dcf([1, -1], [True, False], [0.5, 1.0])
    with pytest.raises(PriorError, match="between 0 and 1"):
        min_dcf([1, -1], [True, False], 1.5)
    with pytest.raises(CostError, match="c_miss=-1"):
        dcf([1, -1], [True, False], 0.5, c_miss=-1)
    for curve in (empirical_cross_entropy, bayes_error_curve):
        with pytest.raises(PriorError, match="prior log odds of inf"):
            curve([1, -1], [True, False], [0.0, math.inf])
