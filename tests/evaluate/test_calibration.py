"""Calibrators: gradients, fits compared with scikit-learn and SciPy, and limits that every calibrator keeps."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import check_grad, minimize
from scipy.special import logsumexp
from sklearn.linear_model import LogisticRegression

from deciban.errors import ConvergenceWarning, InputError, PriorError
from deciban.evaluate import scale_fit
from deciban.evaluate.calibration import PAV, Affine, Blockwise, LengthAware, Offsets, calibrator_from_dict
from deciban.evaluate.figures import cllr
from deciban.evaluate.scale_fit import informative_penalty, objective, weak_penalty
from evaluate.twins import judged, some_scores, unhurried

# Penalties at these sizes move a parameter by far less than its standard error; comparisons allow for that.
LOOSE = {"rtol": 2e-3, "atol": 2e-3}


def some_documents(n=1500, K=4, seed=0, shrinkage=0.7):
    """Log-likelihoods that repeat themselves the more the longer a row is, with offsets, and the rows' lengths."""
    rng = np.random.default_rng(seed)
    codes = rng.choice(K, n, p=np.arange(1, K + 1) / sum(range(1, K + 1)))
    lengths = np.maximum(rng.lognormal(4, 1, n).astype(int), 1)
    x = rng.normal(2 * np.eye(K)[codes], 1.0)
    honest = 2 * x  # log N(x | 2·e_c, 1), up to what is the same for all classes
    swollen = (honest - rng.normal(0, 1, K)) * 5 * (lengths / 50.0)[:, None] ** shrinkage
    return swollen, codes, lengths


def cross_entropy(logits, codes, prior):
    """Cross-entropy in nats, with the classes weighted by the prior."""
    lost = logsumexp(logits + np.log(prior), axis=1) - (logits + np.log(prior))[np.arange(len(codes)), codes]
    return sum(prior[c] * lost[codes == c].mean() for c in range(len(prior)))


@pytest.mark.parametrize("impossible", [False, True])
@pytest.mark.parametrize("by_length", [(False,), (True,), (False, True, False)])
@pytest.mark.parametrize("penalty", [weak_penalty, informative_penalty])
def test_the_gradient_is_the_slope_of_the_objective_and_the_curvature_of_the_gradient(impossible, by_length, penalty):
    tables = []
    for seed, _ in enumerate(by_length):
        table, codes, lengths = some_documents(60)
        tables.append(table + np.random.default_rng(seed).normal(0, seed, table.shape))
    if impossible:
        tables[-1][np.arange(0, 60, 7), (codes[::7] + 1) % 4] = -math.inf
    long = [np.log(lengths / 50) if long else None for long in by_length]
    problem, kept = scale_fit._problem(tables, codes, np.array([0.1, 0.2, 0.3, 0.4]), long, penalty)
    point = np.random.default_rng(1).normal(0, 0.3, len(by_length) + sum(by_length) + len(kept))
    assert check_grad(lambda p: objective(problem, p)[0], lambda p: objective(problem, p)[1], point) < 1e-5
    for i in range(len(point)):
        slope = lambda p: objective(problem, p)[1][i]  # noqa: B023, E731
        assert check_grad(slope, lambda p: objective(problem, p)[2][i], point) < 1e-5  # noqa: B023


@pytest.mark.parametrize("prior", [0.5, 0.02, 0.9])
@pytest.mark.parametrize("spread", [0.2, 1.0, 30.0])
def test_affine_is_prior_weighted_logistic_regression(prior, spread):
    llr, is_h1 = some_scores(2000, spread=spread)
    ours = Affine.fit(llr, is_h1, prior)
    weight = np.where(is_h1, prior / is_h1.sum(), (1 - prior) / (~is_h1).sum()) * len(llr)
    theirs = LogisticRegression(C=np.inf, tol=1e-10).fit(llr[:, None] / spread, is_h1, sample_weight=weight)
    assert_allclose(ours.a * spread, theirs.coef_[0, 0], rtol=1e-3)
    assert_allclose(ours.b, theirs.intercept_[0] - math.log(prior / (1 - prior)), rtol=1e-3, atol=1e-3)


def test_right_llrs_are_left_alone():
    llr, is_h1 = some_scores(20_000)
    fitted = Affine.fit(llr, is_h1)
    assert_allclose([fitted.a, fitted.b], [1, 0], atol=0.05)
    overdone = Affine.fit(8 * llr, is_h1)
    assert_allclose(overdone.apply(8 * llr), fitted.apply(llr), atol=1e-6)
    assert cllr(8 * llr, is_h1) > 1.5 * cllr(overdone.apply(8 * llr), is_h1)


def test_offsets_of_two_classes_are_affine():
    llr, is_h1 = some_scores(500, spread=3.0)
    two = Offsets.fit(np.column_stack([np.zeros_like(llr), llr]), is_h1.astype(int), [0.3, 0.7])
    one = Affine.fit(llr, is_h1, 0.7)
    assert_allclose([two.scale, two.offsets[1] - two.offsets[0]], [one.a, one.b], rtol=1e-9)


@pytest.mark.parametrize("prior", [None, [0.1, 0.2, 0.3, 0.4], [0.7, 0.1, 0.1, 0.1]])
def test_offsets_and_length_aware_reach_the_least_cross_entropy(prior):
    table, codes, lengths = some_documents()
    weights = np.full(4, 0.25) if prior is None else np.array(prior)
    centred = table - table.max(axis=1, keepdims=True)
    ours = LengthAware.fit(table, codes, lengths, prior, weak_penalty)
    assert 0.005 <= (lengths < ours.shortest).mean() <= 0.01
    counted = np.maximum(lengths, ours.shortest)
    logs = np.log(counted) - np.log(counted).mean()

    def cost(p):
        return cross_entropy(np.exp(p[0] - p[1] * logs)[:, None] * centred + p[2:], codes, weights)

    starts = [np.r_[-4, gamma, np.zeros(4)] for gamma in (-0.5, 0.5, 1.5)]
    best = min(minimize(cost, start, method="BFGS").fun for start in starts)
    assert_allclose(cost(np.r_[ours.log_scale, ours.shrinkage, ours.offsets]), best, rtol=1e-5)
    assert_allclose(ours.shrinkage, 0.7, atol=0.1)
    assert_allclose(ours.reference_length, np.exp(np.log(counted).mean()))
    one_scale = Offsets.fit(table, codes, prior)
    best = minimize(lambda p: cost(np.r_[p[0], 0, p[1:]]), np.r_[-4, np.zeros(4)], method="BFGS").fun
    assert_allclose(cost(np.r_[math.log(one_scale.scale), 0, one_scale.offsets]), best, rtol=1e-5)
    assert_allclose([ours.offsets.sum(), one_scale.offsets.sum()], 0, atol=1e-9)


def test_the_prior_of_the_rows_does_not_leak_into_the_offsets():
    table, codes, lengths = some_documents(20_000)
    few = np.random.default_rng(2).random(len(codes)) < np.array([1, 1, 0.2, 0.1])[codes]
    whole, part = (LengthAware.fit(table[rows], codes[rows], lengths[rows]) for rows in (codes >= 0, few))
    assert_allclose(part.offsets, whole.offsets, atol=0.25)
    at_prior = LengthAware.fit(table, codes, lengths, np.bincount(codes) / len(codes))
    assert_allclose(at_prior.offsets, whole.offsets, atol=0.15)


def test_separable_scores_keep_a_finite_scale():
    for size in (1e-4, 1.0, 1e4):
        fitted = Affine.fit(np.array([1, 2, -1, -2] * 10) * size, [1, 1, 0, 0] * 10)
        assert 1 < fitted.a * size < 2 * math.log(40) + 2
        assert_allclose(fitted.b, 0, atol=1e-6)
    table = np.eye(3)[[0, 1, 2, 0, 1, 2]]
    assert 1 < Offsets.fit(table, [0, 1, 2, 0, 1, 2]).scale < 20
    assert np.isfinite(LengthAware.fit(table, [0, 1, 2, 0, 1, 2], [1, 10, 100, 5, 7, 9]).log_scale)


@pytest.mark.parametrize("n", [12, 50, 400])
def test_rows_told_apart_without_an_error_are_believed_no_further_than_their_number_goes(n):
    rng = np.random.default_rng(n)
    codes = np.arange(n) % 2
    tables = [(np.eye(2)[codes] + rng.normal(0, 0.1, (n, 2))) * size for size in (1.0, 300.0, 0.5)]
    many = Blockwise.fit(tables, codes)
    one = LengthAware.fit(tables[1], codes, rng.integers(1, 100, n))
    for told in (many.apply(tables), one.apply(tables[1], np.full(n, 50))):
        assert 0.5 < np.ptp(told, axis=1).mean() < math.log(n) + 3  # nats
    assert many.apply([10 * table for table in tables]).max() > many.apply(tables).max()  # and yet nothing is cut off


def test_what_was_believed_fades_as_rows_come():
    table, codes, lengths = some_documents(40_000)
    fitted, plain = (
        LengthAware.fit(table, codes, lengths, penalty=penalty) for penalty in (informative_penalty, weak_penalty)
    )
    assert_allclose([fitted.log_scale, fitted.shrinkage], [plain.log_scale, plain.shrinkage], atol=2e-3)
    assert_allclose(fitted.offsets, plain.offsets, atol=2e-3)


def test_evidence_is_never_turned_round():
    llr, is_h1 = some_scores(500)
    fitted = Affine.fit(-llr, is_h1)
    assert 0 < fitted.a < 0.01
    assert_allclose(cllr(fitted.apply(-llr), is_h1), 1, atol=1e-3)


@unhurried
@given(judged(), st.sampled_from([0.5, 0.01]))
def test_infinite_scores_stay_infinite_and_nothing_becomes_nan(case, prior):
    llr, is_h1 = case
    kept = np.isfinite(llr) | (is_h1 == (llr > 0))  # what can be mended by a scale, or needs no mending
    if not (is_h1[kept].any() and (~is_h1[kept]).any()):
        with pytest.raises(InputError, match="needs rows of two classes"):
            Affine.fit(llr, is_h1, prior)
        return
    told = Affine.fit(llr, is_h1, prior).apply(llr)
    assert_array_equal(told[np.isinf(llr)], llr[np.isinf(llr)])
    assert not np.isnan(told).any()


def test_certainties_count_towards_their_class():
    # nine of ten rows of h1 are certain, so a score that both share speaks for h0
    llr, is_h1 = np.r_[np.full(90, math.inf), np.zeros(110)], np.arange(200) < 100
    assert_allclose(Affine.fit(llr, is_h1).apply([0.0]), math.log(0.1), atol=1e-2)


def test_impossible_entries_and_rows_do_not_disturb_the_fit():
    table, codes, lengths = some_documents(800)
    own, other = table.copy(), table.copy()
    own[np.arange(0, 800, 50), codes[::50]] = -math.inf
    other[:, 3] = np.where(codes == 3, other[:, 3], -math.inf)
    empty = np.vstack([table, np.full((5, 4), -math.inf)])
    for strange, labels, tokens in (
        (own, codes, lengths),
        (other, codes, lengths),
        (empty, np.r_[codes, 0, 1, 2, 3, 0], np.r_[lengths, [1] * 5]),
    ):
        fitted = LengthAware.fit(strange, labels, tokens)
        told = fitted.apply(strange, tokens)
        assert not np.isnan(told).any()
        assert_array_equal(np.isneginf(told), np.isneginf(strange))


def test_a_class_without_rows_has_offset_zero():
    table, codes, lengths = some_documents(800)
    wider = np.column_stack([table[:, 0] - 5, table])
    with_gap, without = Offsets.fit(wider, codes + 1), Offsets.fit(table, codes)
    assert_allclose(with_gap.offsets, np.r_[0, without.offsets], **LOOSE)
    assert LengthAware.fit(wider, codes + 1, lengths).offsets[0] == 0


def test_equal_lengths_make_length_aware_one_scale():
    table, codes, _ = some_documents(800)
    for penalty, shrinkage in ((weak_penalty, 0.0), (informative_penalty, 0.7)):  # the centre: rows say nothing of it
        fitted = LengthAware.fit(table, codes, np.full(800, 9), penalty=penalty)
        plain = Offsets.fit(table, codes, penalty=penalty)
        assert_allclose(fitted.apply(table, np.full(800, 9)), plain.apply(table), rtol=1e-6)
        assert_allclose(fitted.shrinkage, shrinkage, atol=1e-9)


def test_equal_scores_calibrate_to_saying_nothing():
    for size in (0.0, 3.0, -1e5):
        assert_allclose(Affine.fit(np.full(40, size), np.arange(40) < 10).apply([size]), 0, atol=0.05)


def test_one_block_is_calibrated_as_if_there_were_no_blocks():
    table, codes, lengths = some_documents(800)
    one, plain = Blockwise.fit([table], codes, [lengths]), LengthAware.fit(table, codes, lengths)
    assert_allclose(one.apply([table], [lengths]), plain.apply(table, lengths), rtol=1e-6)


def test_blocks_that_repeat_themselves_count_less():
    llr, is_h1 = some_scores(4000)
    honest = np.where(is_h1, 1.0, -1.0) + np.random.default_rng(5).normal(0, np.sqrt(2), 4000)
    tables = [np.column_stack([np.zeros(4000), column]) for column in (3 * llr, honest)]
    fitted = Blockwise.fit(tables, is_h1.astype(int))
    theirs = LogisticRegression(C=np.inf, tol=1e-10, class_weight="balanced").fit(
        np.column_stack([3 * llr, honest]), is_h1
    )
    assert_allclose(np.exp(fitted.log_scales), theirs.coef_[0], rtol=5e-3)


def test_lengths_that_nobody_has_seen_are_not_extrapolated_to():
    table, codes, lengths = some_documents(800)
    long = lengths + 40.0
    for made, some in ((LengthAware.fit(table, codes, long), table), (Blockwise.fit([table], codes, [long]), [table])):
        again = calibrator_from_dict(made.to_dict())
        each = [size if some is table else [size] for size in (np.full(800, 1.0), np.full(800, float(long.min())))]
        assert_array_equal(*(made.apply(some, size) for size in each))
        assert_array_equal(*(again.apply(some, size) for size in each))


def test_an_empty_row_counts_as_one_token():
    fitted = LengthAware(0.1, 0.7, 20.0, np.zeros(2))
    assert_array_equal(fitted.apply([[1.0, 2.0]], [0]), fitted.apply([[1.0, 2.0]], [1]))


def every_calibrator():
    llr, is_h1 = some_scores(100)
    table, codes, lengths = some_documents(200)
    yield Affine.fit(llr, is_h1), llr, None
    yield PAV.fit(llr, is_h1), llr, None
    yield Offsets.fit(table, codes), table, None
    yield LengthAware.fit(table, codes, lengths), table, lengths
    yield Blockwise.fit([table, -table], codes, [lengths, None]), [table, -table], [lengths, None]


@pytest.mark.parametrize("at", range(5))
def test_a_calibrator_survives_json_and_prints_one_line(at):
    fitted, scores, lengths = list(every_calibrator())[at]
    again = calibrator_from_dict(json.loads(json.dumps(fitted.to_dict(), allow_nan=False)))
    assert type(again) is type(fitted)
    assert_array_equal(again.apply(scores, lengths=lengths), fitted.apply(scores, lengths=lengths))
    assert "\n" not in repr(fitted)
    assert len(repr(fitted)) < 100
    with pytest.raises(AttributeError):
        fitted.extra = 1  # frozen


def test_a_fit_that_does_not_settle_says_so(monkeypatch):
    monkeypatch.setattr(scale_fit, "MAX_STEPS", 1)
    with pytest.warns(ConvergenceWarning, match="did not converge in 1 steps"):
        Affine.fit(*some_scores(100, spread=5.0))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: Affine.fit([1, 2], [1, 1]), InputError, "no row is of h0"),
        (lambda: Affine.fit([1, -1], [1, 0], prior=1), PriorError, "prior of h1 is 1"),
        (lambda: Affine(0, 1), InputError, "the scale is 0"),
        (lambda: Offsets(math.nan, np.zeros(2)), InputError, "the scale is nan"),
        (lambda: LengthAware(0, 0, 0.5, np.zeros(2)), InputError, "reference length ≥ 1"),
        (lambda: Offsets.fit([[1, 2], [2, 1]], [0, 0]), InputError, "needs rows of two classes"),
        (lambda: Offsets.fit([[1, 2], [2, math.nan]], [0, 1]), InputError, "NaN in 1 of 2 rows, first in row 1"),
        (lambda: Offsets.fit([[1, 2], [2, math.inf]], [0, 1]), InputError, r"\+inf in row 1, class 1"),
        (lambda: Offsets.fit([[1, 2], [2, 1]], [0, 2]), InputError, r"code 2 \(row 1\) is no class: there are 2"),
        (lambda: Offsets.fit([[1, 2], [2, 1]], ["a", "b"]), InputError, "not class numbers"),
        (lambda: Offsets.fit([[1, 2], [2, 1]], [0]), InputError, r"codes has shape \(1,\)"),
        (lambda: Offsets.fit([[1, 2], [2, 1]], [0, 1], [0.5, 0.6]), PriorError, r"the prior is \[0.5, 0.6\]"),
        (lambda: Offsets.fit([[1, 2], [2, 1]], [0, 1], [1.0]), PriorError, "there are 2 classes"),
        (lambda: Offsets.fit([1, 2], [0, 1]), InputError, r"shape \(2,\)"),
        (lambda: Offsets(1.0, np.zeros(3)).apply([[1, 2]]), InputError, "2 columns .* of 3 classes"),
        (lambda: LengthAware.fit([[1, 2], [2, 1]], [0, 1], [1]), InputError, r"lengths has shape \(1,\)"),
        (lambda: LengthAware.fit([[1, 2], [2, 1]], [0, 1], [1, -1]), InputError, "length of row 1 is -1"),
        (lambda: LengthAware(0, 1, 9, np.zeros(2)).apply([[1, 2]]), InputError, "Give lengths="),
        (lambda: LengthAware(0, 1, 9, np.zeros(2)).apply([[1, 2]], [1, 2]), InputError, r"1 rows of scores"),
        (lambda: calibrator_from_dict({"kind": "spline"}), InputError, "kind 'spline' is unknown"),
        (lambda: PAV.from_dict({"score": [1.0], "calibrated": []}), InputError, "1 scores and 0 calibrated"),
    ],
)
def test_bad_calibrations_are_refused_with_a_reason(call, error, words):
    with pytest.raises(error, match=words):
        call()
