"""Curves against plain loops and scikit-learn; intervals against the theory of means."""

import math

import numpy as np
import pytest
from hypothesis import given
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import beta, norm
from sklearn.calibration import calibration_curve
from sklearn.metrics import det_curve, roc_auc_score

from deciban.errors import InputError
from deciban.evaluate.curves import convex_hull, det, llr_histogram, reliability, roc, tippett
from deciban.evaluate.figures import cllr, dcf, equal_mass_bins
from deciban.evaluate.intervals import Interval, bootstrap, jackknife
from evaluate.twins import judged, rates_twin, some_scores, unhurried


@unhurried
@given(judged())
def test_roc_det_and_tippett_are_shares_beyond_each_threshold(case):
    llr, is_h1 = case
    miss, alarm = np.array(rates_twin(llr, is_h1)).T
    curve, probits, shares = roc(llr, is_h1), det(llr, is_h1), tippett(llr, is_h1)
    assert_allclose([curve.false_alarm, curve.hit], [alarm, 1 - miss], atol=1e-12)
    assert_allclose([probits.false_alarm, probits.miss], norm.ppf([alarm, miss]), atol=1e-9)
    assert_allclose([shares.h1, shares.h0], [1 - miss[:-1], alarm[:-1]], atol=1e-12)
    assert_array_equal(shares.llr, np.unique(llr))


@unhurried
@given(judged())
def test_the_hull_is_convex_and_above_the_roc(case):
    curve, hull = roc(*case), convex_hull(*case)
    steps = np.diff(np.column_stack([hull.false_alarm, hull.hit]), axis=0)
    cross = steps[:-1, 0] * steps[1:, 1] - steps[:-1, 1] * steps[1:, 0]
    assert (cross > 0).all()
    assert (np.interp(curve.false_alarm, hull.false_alarm[::-1], hull.hit[::-1]) >= curve.hit - 1e-12).all()
    assert set(hull.threshold) <= set(curve.threshold)


@pytest.mark.parametrize("ties", [False, True])
def test_scikit_learn_agrees_on_the_area_and_the_det_curve(ties):
    llr, is_h1 = some_scores(ties=ties)
    assert_allclose(roc(llr, is_h1).area, roc_auc_score(is_h1, llr), rtol=1e-12)
    alarm, miss, at = det_curve(is_h1, llr)
    ours = det(llr, is_h1)
    kept = np.isin(ours.threshold, at) & np.isfinite(ours.threshold)
    theirs = np.isin(at, ours.threshold[kept])
    assert_allclose(norm.cdf([ours.false_alarm[kept], ours.miss[kept]]), [alarm[theirs], miss[theirs]], atol=1e-12)


def test_reliability_bins_hold_equally_many_rows_and_agree_with_scikit_learn():
    llr, is_h1 = some_scores(1000)
    told = reliability(llr, is_h1, bins=10)
    posterior = 1 / (1 + np.exp(-(llr + np.log(is_h1.sum() / (~is_h1).sum()))))
    observed, promised = calibration_curve(is_h1, posterior, n_bins=10, strategy="quantile")
    assert_array_equal(told.count, 100)
    assert_allclose([told.predicted, told.observed], [promised, observed], rtol=1e-12)
    ones = told.observed * told.count
    low, high = beta(1 + ones, 1 + told.count - ones).interval(0.95)
    assert_allclose([told.low, told.high], [low, high], rtol=1e-9)
    inside = (told.low <= told.predicted) & (told.predicted <= told.high)
    assert inside.sum() >= 8  # the llrs are right, so nine and a half of ten bands hold the promise


def test_infinite_and_equal_scores_have_bins_too():
    told = reliability([-math.inf, -math.inf, 0, 0, math.inf], [False, False, True, False, True], bins=4)
    assert told.predicted.tolist() == pytest.approx([0, 0.4, 1])
    assert told.count.tolist() == [2, 2, 1]
    assert reliability([1, 1, 1], [True, True, False]).count.tolist() == [3]
    assert set(equal_mass_bins(np.arange(100.0), 7).tolist()) == set(range(7))


def test_a_histogram_counts_every_row_once():
    llr, is_h1 = np.r_[some_scores()[0], math.inf, -math.inf, -math.inf], np.r_[some_scores()[1], True, False, True]
    told = llr_histogram(llr, is_h1, bins=20)
    assert told.infinite.tolist() == [[1, 1], [1, 0]]
    assert told.h1.sum() + told.infinite[0].sum() == is_h1.sum()
    assert told.h0.sum() + told.infinite[1].sum() == (~is_h1).sum()
    assert llr_histogram([math.inf, -math.inf], [True, False]).h1.sum() == 0


def mean_of_h1(llr, is_h1):
    return float(llr[is_h1].mean())


def test_both_intervals_of_a_mean_are_the_textbooks():
    llr, is_h1 = some_scores(600)
    of_h1 = llr[is_h1]
    reach = 1.96 * of_h1.std(ddof=1) / math.sqrt(len(of_h1))
    drawn = bootstrap(mean_of_h1, llr, is_h1, repeats=2000)
    left_out = jackknife(mean_of_h1, llr, is_h1, groups=len(llr))
    in_groups = jackknife(mean_of_h1, llr, is_h1, groups=60)
    assert_allclose([left_out.low, left_out.high], of_h1.mean() + reach * np.array([-1, 1]), rtol=1e-4)
    for other in (drawn, in_groups):
        assert_allclose([other.low, other.high], [left_out.low, left_out.high], atol=0.3 * reach)
    assert drawn.estimate == left_out.estimate == of_h1.mean()


def test_intervals_are_seeded_and_cover_arrays_and_infinities():
    llr, is_h1 = some_scores(80)
    assert bootstrap(cllr, llr, is_h1, repeats=50).low == bootstrap(cllr, llr, is_h1, repeats=50).low
    assert bootstrap(cllr, llr, is_h1, repeats=50).low != bootstrap(cllr, llr, is_h1, repeats=50, seed=1).low
    several = bootstrap(lambda x, h: dcf(x, h, [0.1, 0.5]), llr, is_h1, repeats=50)
    assert several.low.shape == several.high.shape == (2,)
    assert str(several) == "2 intervals at 95%"
    assert (several.low <= several.high).all()
    certain = np.where(np.arange(80) == is_h1.argmax(), -math.inf, llr)
    assert bootstrap(cllr, certain, is_h1, repeats=50).high == math.inf
    with pytest.raises(InputError, match="infinite without some rows of h1"):
        jackknife(cllr, certain, is_h1)
    assert str(Interval(0.5, 0.25, math.inf, 0.9)) == "0.5 [0.25, inf]"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: bootstrap(cllr, [1, 0], [1, 0], level=95), "level is 95"),
        (lambda: bootstrap(cllr, [1, 0], [1, 0], repeats=0), "repeats is 0"),
        (lambda: jackknife(cllr, [1, 0], [1, 0], groups=1), "groups is 1"),
        (lambda: jackknife(cllr, [1, 0, 0], [1, 0, 0]), "h1 has 1 row"),
        (lambda: reliability([1, 0], [1, 0], level=1), "level is 1"),
        (lambda: reliability([1, 0], [1, 0], bins=0), "bins is 0"),
    ],
)
def test_odd_wishes_are_refused(call, words):
    with pytest.raises(InputError, match=words):
        call()
