"""Scores: ratios, posteriors, units, thresholds. compared with SciPy, also for −inf and ±10,000 nats."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import log_softmax, logsumexp
from scipy.stats import norm

from deciban.errors import CostError, ImpossibleRowWarning, InputError, PriorError
from deciban.evidence.decisions import effective_prior, threshold
from deciban.evidence.explanation import decibans_text, odds_text, probability_text
from deciban.evidence.scores import (
    UNITS,
    convert,
    llr,
    llr_over_runner_up,
    log_joint,
    log_marginal,
    log_posterior,
    log_probability,
    log_ratio,
)

unhurried = settings(deadline=None)  # a busy machine is no failure
nats = st.floats(-10_000, 10_000)
impossible = st.just(-np.inf)
several = st.integers(2, 5)


@st.composite
def problems(draw, score=nats | impossible, classes=several):
    """Log-likelihoods (n, K) and a log prior (K,), of which some entries are zero."""
    n, K = draw(st.integers(0, 6)), draw(classes)
    weights = draw(st.lists(st.just(0.0) | st.floats(1e-6, 1), min_size=K, max_size=K).filter(any))
    prior = np.array(weights) / np.sum(weights)
    return draw(arrays(float, (n, K), elements=score)), log_probability(prior)


def quietly(function, *args):
    """Call with every warning an error except the one about impossible rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ImpossibleRowWarning)
        return function(*args)


MALE, FEMALE = norm(175.33, math.sqrt(52.89)), norm(161.82, math.sqrt(46.89))
HEIGHT = np.array([[MALE.logpdf(174), FEMALE.logpdf(174)]])


def test_at_174_cm_male_is_four_and_a_half_times_as_likely():
    assert np.exp(HEIGHT).round(5).tolist() == [[0.05395, 0.01198]]
    assert np.exp(llr(HEIGHT, 0, 1)) == pytest.approx(4.504, abs=5e-4)


def test_where_nine_of_ten_are_female_the_same_evidence_says_female():
    posterior = np.exp(log_posterior(HEIGHT, np.log([0.1, 0.9])))[0]
    assert posterior[0] / posterior[1] == pytest.approx(0.5005, abs=5e-5)


@unhurried
@given(problems())
def test_posteriors_sum_to_one_and_are_never_nan(problem):
    posterior = np.exp(quietly(log_posterior, *problem))
    assert not np.isnan(posterior).any()
    np.testing.assert_allclose(posterior.sum(axis=1), 1, atol=1e-9)


@unhurried
@given(problems(score=nats))
def test_posterior_and_marginal_are_scipys(problem):
    scores, log_prior = problem
    joint = log_joint(scores, log_prior)
    np.testing.assert_allclose(log_posterior(scores, log_prior), log_softmax(joint, axis=1), atol=1e-9)
    np.testing.assert_allclose(log_marginal(scores, log_prior), logsumexp(joint, axis=1), atol=1e-9)


@unhurried
@given(problems(), st.randoms(use_true_random=False))
def test_permuting_classes_permutes_columns(problem, random):
    scores, log_prior = problem
    order = random.sample(range(len(log_prior)), len(log_prior))
    permuted = quietly(log_posterior, scores[:, order], log_prior[order])
    np.testing.assert_allclose(permuted, quietly(log_posterior, scores, log_prior)[:, order], atol=1e-9)


@unhurried
@given(problems())
def test_an_impossible_row_has_marginal_zero_and_keeps_the_prior(problem):
    scores, log_prior = problem
    dead = np.vstack([scores, np.where(log_prior > -np.inf, -np.inf, 0.0)])
    assert quietly(log_marginal, dead, log_prior)[-1] == -np.inf
    assert (quietly(log_posterior, dead, log_prior)[-1] == log_prior).all()


def test_one_warning_counts_and_names_the_impossible_rows():
    scores = np.zeros((30, 2))
    scores[[4, 17, 20]] = -np.inf
    with pytest.warns(
        ImpossibleRowWarning, match=r"^3 rows have .* every class \(rows 4, 17, 20\).*'mean'.*"
    ) as caught:
        log_posterior(scores, np.log([0.5, 0.5]))
    assert len(caught) == 1
    with pytest.warns(ImpossibleRowWarning, match=r"1 row has probability zero .*\(row 0\): the llr is 0"):
        assert llr(scores[4:5], 0, 1) == [0.0]


@unhurried
@given(problems(), st.data())
def test_the_llr_is_antisymmetric_and_never_nan(problem, data):
    scores, _ = problem
    a, b = data.draw(st.permutations(range(scores.shape[1])))[:2]
    forth, back = quietly(llr, scores, a, b), quietly(llr, scores, b, a)
    assert not np.isnan(forth).any()
    assert (forth == -back).all()


@unhurried
@given(problems(classes=st.just(2)))
def test_of_two_classes_the_rest_is_the_other_one(problem):
    scores, log_prior = problem
    pair = quietly(llr, scores, 1, 0)
    assert (quietly(llr, scores, 1, None, log_prior) == pair).all()
    assert (quietly(llr, scores, 1) == pair).all()


@unhurried
@given(problems(score=st.floats(-300, 0)), st.data())
def test_the_rest_is_weighed_by_the_prior_renormalised(problem, data):
    scores, log_prior = problem
    over = data.draw(st.integers(0, len(log_prior) - 1))
    rest = np.delete(np.exp(log_prior), over)
    weights = rest / rest.sum() if rest.any() else np.full(len(rest), 1 / len(rest))
    truth = scores[:, over] - np.log(np.exp(np.delete(scores, over, axis=1)) @ weights)
    np.testing.assert_allclose(llr(scores, over, None, log_prior), truth, atol=1e-9)


@unhurried
@given(problems(score=nats))
def test_posterior_log_odds_are_evidence_plus_prior_log_odds(problem):
    scores, log_prior = problem
    log_prior = np.logaddexp(log_prior, -5) - logsumexp(np.logaddexp(log_prior, -5))  # no zeros
    others = logsumexp(np.delete(log_posterior(scores, log_prior), 0, axis=1), axis=1)
    odds = llr(scores, 0, None, log_prior) + log_prior[0] - logsumexp(log_prior[1:])
    np.testing.assert_allclose(log_posterior(scores, log_prior)[:, 0] - others, odds, atol=1e-9)


@unhurried
@given(problems(), st.data())
def test_each_row_may_have_its_own_prior(problem, data):
    scores, log_prior = problem
    n, K = scores.shape
    own = np.array([data.draw(st.permutations(log_prior.tolist())) for _ in range(n)]).reshape(n, K)
    for answer in (log_posterior, log_marginal, lambda rows, prior: llr(rows, 0, None, prior)):
        together = quietly(answer, scores, own)
        apart = [quietly(answer, scores[i : i + 1], own[i])[0] for i in range(n)]
        np.testing.assert_allclose(together, np.reshape(apart, together.shape), rtol=1e-12)


def test_one_impossible_side_is_infinite_evidence():
    scores = np.array([[0.0, -np.inf, -np.inf]])
    assert llr(scores, 0, 1) == [np.inf]
    assert llr(scores, 1, 0) == [-np.inf]
    assert llr(scores, 0) == [np.inf]
    assert log_ratio(-np.inf, -np.inf) == 0.0


def test_one_class_has_no_rest():
    with pytest.raises(InputError, match="Learn a second class"):
        llr(np.zeros((3, 1)), 0)
    assert log_posterior(np.zeros((3, 1)), np.zeros(1)).tolist() == [[0.0]] * 3


@unhurried
@given(problems(), st.data())
def test_the_runner_up_is_the_most_probable_other_class(problem, data):
    scores, log_prior = problem
    n, K = scores.shape
    decided = np.array(data.draw(st.lists(st.integers(0, K - 1), min_size=n, max_size=n)), dtype=int)
    found = quietly(llr_over_runner_up, scores, decided, log_prior)
    for row, own, got in zip(scores, decided, found):
        others = [k for k in range(K) if k != own]
        rival = max(others, key=lambda k: (row[k] + log_prior[k], row[k]))
        assert got == log_ratio(row[own], row[rival])


def test_of_equally_probable_classes_the_likelier_is_the_runner_up():
    prior = [0.0, 0.5, 0.25, 0.25]
    likelihood = [[1.0, 1.0, 2.0, 1.0]]  # classes 1 and 2 are equally probable
    found = llr_over_runner_up(log_probability(likelihood), [0], log_probability(prior))
    np.testing.assert_allclose(found, -np.log(2))


def test_without_another_class_there_is_no_runner_up():
    assert llr_over_runner_up([[3.0]], [0], [0.0]).tolist() == [0.0]


@pytest.mark.parametrize(
    ("unit", "ten_to_one"), [("nats", math.log(10)), ("bits", math.log2(10)), ("bans", 1), ("decibans", 10)]
)
def test_ten_to_one_in_every_unit(unit, ten_to_one):
    assert convert(math.log(10), unit) == pytest.approx(ten_to_one)
    assert convert([math.log(10), -np.inf], unit).tolist() == [pytest.approx(ten_to_one), -np.inf]
    assert isinstance(convert(1.0, unit), float)


def test_an_unknown_unit_lists_the_known_ones():
    with pytest.raises(InputError, match="'dB' is unknown") as error:
        convert(1.0, "dB")
    assert all(unit in str(error.value) for unit in UNITS)


@unhurried
@given(st.floats(0, 1), st.floats(0, 1e6), st.floats(0, 1e6))
def test_the_threshold_is_minus_the_log_odds_of_the_effective_prior(prior, c_miss, c_fa):
    weight = prior * c_miss + (1 - prior) * c_fa
    if weight < 1e-300:
        return
    truth = prior * c_miss / weight
    assert effective_prior(prior, c_miss, c_fa) == pytest.approx(truth, rel=1e-9, abs=1e-12)
    if 1e-9 < truth < 1 - 1e-9:
        assert threshold(prior, c_miss, c_fa) == pytest.approx(-math.log(truth / (1 - truth)), rel=1e-6, abs=1e-6)


def test_certain_priors_have_infinite_thresholds():
    assert threshold(0) == np.inf
    assert threshold(1) == -np.inf
    assert threshold([0.0, 0.5, 1.0]).tolist() == [np.inf, 0.0, -np.inf]
    assert effective_prior([0.0, 0.5, 1.0]).tolist() == [0.0, 0.5, 1.0]


def test_what_right_decisions_cost_is_taken_off_the_wrong_ones():
    assert threshold(0.3, 12, 5, c_hit=2, c_pass=4) == pytest.approx(threshold(0.3, 10, 1))
    assert effective_prior(0.3, 12, 5, c_hit=2, c_pass=4) == pytest.approx(effective_prior(0.3, 10, 1))


@pytest.mark.parametrize("costs", [(-1, 1), (1, np.inf), (np.nan, 1), (0, 0)])
def test_costs_that_decide_nothing_are_refused(costs):
    with pytest.raises(CostError):
        threshold(0.5, *costs)
    with pytest.raises(CostError):
        threshold(0.5, 1, 1, c_hit=2)
    with pytest.raises(CostError):
        threshold(0, 1, 0)


@pytest.mark.parametrize("prior", [-0.1, 1.1, np.nan])
def test_a_prior_outside_0_and_1_is_refused(prior):
    with pytest.raises(PriorError, match="between 0 and 1"):
        effective_prior(prior)


@unhurried
@given(nats)
def test_evidence_is_worded_without_overflow(evidence):
    assert decibans_text(evidence)[0] in "+−"
    assert odds_text(evidence) == odds_text(-evidence)
    assert "nan" not in probability_text(evidence) + odds_text(evidence)


def test_odds_and_probabilities_round_up_to_the_next_power():
    assert odds_text(math.log(9.96)) == "10 to 1"
    assert odds_text(math.log(999_999)) == "1,000,000 to 1"
    assert odds_text(math.log(9.99e7)) == "1.0e8 to 1"
    assert odds_text(10_000) == "8.8e4342 to 1"
    assert probability_text(-10_000) == "1.1e−4343"
    assert probability_text(0) == ".500"
    assert probability_text(-np.inf) == "0"
    assert decibans_text(-0.001) == "+0.0"
    assert decibans_text(-10_000) == "−43,429.4"
