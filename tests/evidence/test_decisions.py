"""Decisions: priors and costs in every accepted form, the least expected cost, and rows that are not decided."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from deciban.errors import CostError, ImpossibleRowWarning, InputError, PriorError
from deciban.evidence.decisions import (
    Decision,
    Decisions,
    decide,
    effective_prior,
    expected_cost,
    resolve_cost,
    resolve_prior,
    threshold,
    with_unsure,
)
from deciban.evidence.scores import llr, log_posterior, log_probability

unhurried = settings(deadline=None)  # a busy machine is no failure
CLASSES = ["ham", "news", "spam"]
LEARNT = np.array([30.0, 10.0, 60.0])


def zero_one(K):
    return 1.0 - np.eye(K)


@st.composite
def log_posteriors(draw, classes=st.integers(1, 5)):  # noqa: B008  strategies are values
    n, K = draw(st.integers(0, 6)), draw(classes)
    scores = draw(arrays(float, (n, K), elements=st.floats(-10_000, 0) | st.just(-np.inf)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ImpossibleRowWarning)
        return log_posterior(scores, np.full(K, -np.log(K)))


# --- priors


def test_the_learnt_prior_is_the_class_frequencies():
    assert resolve_prior("learnt", CLASSES, LEARNT).tolist() == [0.3, 0.1, 0.6]


def test_the_uniform_prior_needs_nothing_learnt():
    np.testing.assert_allclose(resolve_prior("uniform", CLASSES), [1 / 3] * 3)


def test_a_named_prior_leaves_the_rest_to_the_learnt_proportions():
    np.testing.assert_allclose(resolve_prior({"spam": 0.2}, CLASSES, LEARNT), [0.6, 0.2, 0.2])


def test_classes_that_learnt_nothing_share_the_remainder_equally():
    np.testing.assert_allclose(resolve_prior({"spam": 0.2}, CLASSES, [0, 0, 5]), [0.4, 0.4, 0.2])
    np.testing.assert_allclose(resolve_prior({"spam": 0.2}, CLASSES), [0.4, 0.4, 0.2])


def test_a_prior_that_names_all_or_nothing():
    assert resolve_prior({"spam": 1.0}, CLASSES, LEARNT).tolist() == [0, 0, 1]
    assert resolve_prior({"spam": 0.5, "ham": 0.25, "news": 0.25}, CLASSES, LEARNT).tolist() == [0.25, 0.25, 0.5]
    np.testing.assert_allclose(resolve_prior({}, CLASSES, LEARNT), [0.3, 0.1, 0.6])


def test_an_array_goes_by_the_order_of_the_classes():
    given_prior = np.array([0.25, 0.25, 0.5])
    assert resolve_prior(given_prior, CLASSES, LEARNT).tolist() == [0.25, 0.25, 0.5]
    assert resolve_prior([0.25, 0.25, 0.5], CLASSES, LEARNT).tolist() == [0.25, 0.25, 0.5]


def test_a_series_goes_by_its_labels():
    counts = pd.Series(["spam"] * 5 + ["ham"] * 3 + ["news"] * 2).value_counts(normalize=True)
    np.testing.assert_allclose(resolve_prior(counts, CLASSES, LEARNT), [0.3, 0.2, 0.5])


@pytest.mark.parametrize("key", [1, np.int64(1), np.int8(1), 1.0, np.float32(1), True])
@pytest.mark.parametrize("classes", [[0, 1], np.array([0, 1]), np.array([0.0, 1.0]), np.array([0, 1], dtype=object)])
def test_classes_are_matched_by_equality(key, classes):
    np.testing.assert_allclose(resolve_prior({key: 0.9}, classes, [1, 1]), [0.1, 0.9])
    assert resolve_cost({(key, 0): 7}, classes).tolist() == [[0, 1], [7, 0]]


def test_text_classes_may_be_numpys():
    assert resolve_prior({"spam": 0.25, np.str_("ham"): 0.5}, np.array(CLASSES), LEARNT).tolist() == [0.5, 0.25, 0.25]


@unhurried
@given(st.dictionaries(st.sampled_from(CLASSES), st.floats(0, 1 / 3)), arrays(float, 3, elements=st.floats(0, 1e6)))
def test_a_named_prior_sums_to_one_and_keeps_what_was_named(named, learnt):
    assume(len(named) < 3)
    prior = resolve_prior(named, CLASSES, learnt)
    assert prior.sum() == pytest.approx(1)
    assert all(prior[CLASSES.index(label)] == pytest.approx(value, abs=1e-12) for label, value in named.items())


def test_a_sum_that_is_nearly_one_is_made_one():
    assert resolve_prior([0.25, 0.25, 0.5000004], CLASSES).sum() == 1
    assert resolve_prior({"spam": 0.5, "ham": 0.5000004}, CLASSES).sum() == 1


@pytest.mark.parametrize(
    ("prior", "says"),
    [
        ({"spm": 0.2}, r"names class 'spm', .*did you mean 'spam'.*'ham', 'news', 'spam'"),
        ({17: 0.2}, r"names class 17, which the model does not have\. Its classes are 'ham'"),
        ({"ham": -0.5}, r"'ham' is -0.5; .* between 0 and 1"),
        ({"spam": -0.5}, r"'spam' is -0.5"),
        ({"ham": 1.5}, r"'ham' is 1.5"),
        ({"ham": np.nan}, r"'ham' is nan"),
        ({"ham": None}, r"'ham' is nan"),
        ({"ham": "much"}, r"prior of 'ham' must be a number; got 'much'"),
        ({"ham": 0.7, "spam": 0.6}, r"sums to 1.3, not to 1"),
        ({"ham": 0.1, "news": 0.1, "spam": 0.1}, r"sums to 0.3, not to 1"),
        ([0.5, 0.5], r"3 probabilities; got \[0.5, 0.5\], of shape \(2,\)"),
        ([0.5, 0.5, 0.5], r"sums to 1.5"),
        ([0.5, 0.6, -0.1], r"'spam' is -0.1"),
        ([0.5, 0.5, np.nan], r"'spam' is nan"),
        ("learned", r"'learnt', 'uniform', a dict or 3 probabilities; got 'learned'"),
        (None, r"got None"),
        (0.5, r"got 0.5"),
    ],
)
def test_a_prior_that_is_none_says_why(prior, says):
    with pytest.raises(PriorError, match=says):
        resolve_prior(prior, CLASSES, LEARNT)


def test_nothing_learnt_has_no_learnt_prior():
    with pytest.raises(PriorError, match="uniform"):
        resolve_prior("learnt", CLASSES)


# --- costs


def test_no_cost_is_zero_one():
    assert resolve_cost(None, CLASSES).tolist() == zero_one(3).tolist()


def test_a_named_cost_leaves_zero_and_one_elsewhere():
    assert resolve_cost({("ham", "spam"): 10, ("spam", "spam"): 0.5}, CLASSES).tolist() == [
        [0, 1, 10],
        [1, 0, 1],
        [1, 1, 0.5],
    ]


def test_a_given_matrix_is_copied():
    matrix = np.arange(9.0).reshape(3, 3)
    np.fill_diagonal(matrix, 0)
    found = resolve_cost(matrix, CLASSES)
    assert (found == matrix).all()
    assert not np.shares_memory(found, matrix)


@pytest.mark.parametrize(
    ("cost", "says"),
    [
        ({("ham", "spm"): 1}, r"cost names class 'spm', .*did you mean 'spam'"),
        ({"ham": 1}, r"key 'ham'\. Use pairs"),
        ({("ham", "spam"): -1}, r"cost of \('ham', 'spam'\) is -1; .*≥ 0"),
        ({("ham", "spam"): np.inf}, r"is inf; costs must be finite"),
        ({("ham", "spam"): np.nan}, r"is nan"),
        ({("ham", "spam"): "high"}, r"must be a number; got 'high'"),
        ({("ham", "ham"): 2}, r"cost of \('ham', 'news'\) is 1; deciding rightly costs 2"),
        (np.ones((2, 2)), r"3 × 3 .* of shape \(2, 2\)"),
        (np.eye(3), r"deciding rightly costs 1"),
        ("cheap", r"got 'cheap'"),
    ],
)
def test_a_cost_that_is_none_says_why(cost, says):
    with pytest.raises(CostError, match=says):
        resolve_cost(cost, CLASSES)


# --- decisions


@unhurried
@given(log_posteriors())
def test_at_zero_one_cost_the_most_probable_class_is_decided(logs):
    cost = zero_one(logs.shape[1])
    assert (decide(logs, resolve_cost(None, range(len(cost)))) == logs.argmax(axis=1)).all()
    if len(cost) > 1:
        assert (decide(logs, 7 * cost) == logs.argmax(axis=1)).all()
        assert (decide(np.exp(logs), cost) == np.exp(logs).argmax(axis=1)).all()


def test_decisions_survive_posteriors_that_underflow():
    logs = np.array([[-5000.0, -4000.0, -np.exp(-4000.0)]])
    assert decide(logs, zero_one(3)) == [2]
    free = np.array([[0, 1, 1], [1, 0, 1], [0, 0, 0.0]])  # of class 2 nothing matters: 0 or 1, by 1,000 nats
    assert decide(logs, free) == [1]
    partly = np.array([[0, 1, 2], [2, 0, 1], [0, 0, 0.0]])
    assert decide(logs, partly) == [1]
    assert decide(np.exp(logs), partly) == [0]  # as probabilities both are zero: a tie


@unhurried
@given(log_posteriors(), st.data())
def test_the_decision_has_the_least_expected_cost(logs, data):
    K = logs.shape[1]
    cost = data.draw(arrays(float, (K, K), elements=st.floats(0, 100)))
    np.fill_diagonal(cost, 0)
    brute = np.array([[sum(np.exp(row[c]) * cost[c, d] for c in range(K)) for d in range(K)] for row in logs])
    brute = brute.reshape(len(logs), K)
    expected = expected_cost(logs, cost)
    np.testing.assert_allclose(expected, brute, atol=1e-9)
    np.testing.assert_allclose(expected_cost(np.exp(logs), cost), brute, atol=1e-9)
    for posterior in (logs, np.exp(logs)):
        decided = decide(posterior, cost)
        np.testing.assert_allclose(brute[np.arange(len(logs)), decided], brute.min(axis=1), rtol=1e-9, atol=1e-9)


def test_of_equals_the_first_is_decided():
    assert decide([[0.4, 0.4, 0.2]], zero_one(3)) == [0]
    assert decide([[0.2, 0.4, 0.4]], [[0, 2, 2], [1, 0, 1], [1, 1, 0]]) == [0]
    assert decide([[0.2, 0.8]], np.zeros((2, 2))) == [0]
    assert decide([[0.2, 0.4, 0.4]], [[0, 1, 3], [1, 0, 3], [1, 3, 0]]) == [0]


@unhurried
@given(
    arrays(float, (5, 2), elements=st.floats(-1000, 1000)),
    st.floats(0.001, 0.999),
    st.floats(0, 1),
    st.floats(0, 1),
    st.floats(0.001, 1000),
    st.floats(0.001, 1000),
)
def test_two_class_costs_are_a_threshold_at_the_effective_prior(scores, prior, c_hit, c_pass, miss, alarm):
    costs = {"c_hit": c_hit, "c_pass": c_pass}
    limit = threshold(prior, c_hit + miss, c_pass + alarm, **costs)
    evidence = llr(scores, 1, 0)
    assume((abs(evidence - limit) > 1e-6).all())
    logs = log_posterior(scores, log_probability([1 - prior, prior]))
    cost = resolve_cost([[c_pass, c_pass + alarm], [c_hit + miss, c_hit]], ["h0", "h1"])
    assert (decide(logs, cost) == (evidence > limit)).all()
    effective = effective_prior(prior, c_hit + miss, c_pass + alarm, **costs)
    assume(0 < effective < 1)
    equal = log_posterior(scores, log_probability([1 - effective, effective]))
    assert (decide(equal, zero_one(2)) == (evidence > limit)).all()


@unhurried
@given(log_posteriors(), st.data())
def test_permuting_classes_permutes_decisions(logs, data):
    K = logs.shape[1]
    order = np.array(data.draw(st.permutations(range(K))), dtype=int)
    cost = np.random.default_rng(7).uniform(1, 2, (K, K))
    np.fill_diagonal(cost, 0)
    best = np.sort(expected_cost(logs, cost), axis=1)
    assume(K == 1 or (best[:, 1] - best[:, 0] > 1e-9).all())
    assert (order[decide(logs[:, order], cost[np.ix_(order, order)])] == decide(logs, cost)).all()


# --- not deciding


def test_a_posterior_below_unsure_is_unsure_and_one_at_it_is_not():
    posterior = [[0.1, 0.9], [0.2, 0.8]]
    assert with_unsure(posterior, [1, 1], 0.9).tolist() == [False, True]
    assert with_unsure(np.log(posterior), [1, 1], 0.85).tolist() == [False, True]
    assert with_unsure(posterior, [1, 1]).tolist() == [False, False]


def test_a_decision_dearer_than_saying_unsure_is_unsure():
    posterior = [[0.1, 0.9], [0.4, 0.6]]
    assert with_unsure(posterior, [1, 1], reject_cost=0.2).tolist() == [False, True]
    assert with_unsure(posterior, [1, 1], reject_cost=0.5, cost=[[0, 10], [1, 0]]).tolist() == [True, True]
    assert with_unsure(posterior, [1, 1], 0.95, reject_cost=1).tolist() == [True, True]


@pytest.mark.parametrize("unsure", [-0.1, 1.1, np.nan])
def test_unsure_is_a_probability(unsure):
    with pytest.raises(InputError, match="between 0 and 1"):
        with_unsure([[1.0]], [0], unsure)
    with pytest.raises(CostError, match="finite number"):
        with_unsure([[1.0]], [0], reject_cost=-1)


HEIGHTS = np.log([[0.05395, 0.01198], [0.001, 0.05]])


def test_decisions_hold_label_posterior_llr_and_cost():
    made = Decisions.of(HEIGHTS, [0.1, 0.9], np.array(["m", "f"]), resolve_cost(None, ["m", "f"]), unsure=0.9)
    assert made.label.tolist() == [None, "f"]
    np.testing.assert_allclose(made.posterior, [0.6665, 0.9978], atol=1e-4)
    np.testing.assert_allclose(made.llr, [-1.505, np.log(50)], atol=1e-3)
    np.testing.assert_allclose(made.expected_cost, 1 - made.posterior)
    assert repr(made) == "Decisions(2 rows, 1 unsure)"


def test_decisions_index_and_iterate_like_a_sequence_of_rows():
    made = Decisions.of(HEIGHTS, [0.5, 0.5], ["m", "f"], zero_one(2))
    assert len(made) == 2
    assert list(made) == [made[0], made[1]]
    assert made[-1] == Decision("f", *(getattr(made, name)[1] for name in ("posterior", "llr", "expected_cost")))
    assert made[1:].label.tolist() == ["f"]
    assert made[np.array([True, False])].label.tolist() == ["m"]
    with pytest.raises(IndexError):
        made[2]
    assert len(made[:0]) == 0


def test_labels_are_plain_and_may_be_anything():
    made = Decisions.of(HEIGHTS, [0.5, 0.5], np.array([0, 1]), zero_one(2))
    assert [type(label) for label in made.label] == [int, int]
    assert Decisions.of(HEIGHTS, [0.5, 0.5], [("a", 1), ("b", 2)], zero_one(2)).label.tolist() == [("a", 1), ("b", 2)]


def test_decisions_become_a_frame():
    frame = Decisions.of(HEIGHTS, [0.1, 0.9], ["m", "f"], zero_one(2), unsure=0.9).to_frame()
    assert frame.columns.tolist() == ["label", "posterior", "llr", "expected_cost"]
    assert frame["label"].isna().tolist() == [True, False]


def test_an_impossible_row_is_decided_by_the_prior_with_one_warning():
    with pytest.warns(ImpossibleRowWarning) as caught:
        made = Decisions.of([[-np.inf, -np.inf]], [0.1, 0.9], ["m", "f"], zero_one(2))
    assert len(caught) == 1
    assert made[0] == ("f", pytest.approx(0.9), 0.0, pytest.approx(0.1))
