"""A model is a sum: it may be split, ordered, weighted and taken apart in any way."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import CASES, close
from deciban.statistics import Members

each_case = pytest.mark.parametrize("case", CASES, ids=repr)
seeds = st.integers(0, 2**32 - 1)
sizes = st.integers(1, 30)


def gappy(case, data):
    return case.gaps and data.draw(st.booleans(), label="gaps")


@each_case
@given(seed=seeds, n=sizes, data=st.data())
@settings(max_examples=25, deadline=None)
def test_a_split_in_any_order_sums_to_the_whole(case, seed, n, data):
    family, X, members = case.data(seed, n, weighted=data.draw(st.booleans()), gaps=gappy(case, data))
    order = np.random.default_rng(seed).permutation(n)
    cut = data.draw(st.integers(0, n))
    parts = [family.collect(X[rows], members.take(rows)) for rows in (order[:cut], order[cut:])]
    close(parts[0] + parts[1], family.collect(X, members), exact=case.exact and members.weight is None)


@each_case
@given(seed=seeds, n=sizes, data=st.data())
@settings(max_examples=25, deadline=None)
def test_adding_back_what_was_subtracted_is_the_identity(case, seed, n, data):
    family, X, members = case.data(seed, n, gaps=gappy(case, data))
    a, b = family.collect(X, members), family.collect(X[: n // 2], members.take(slice(0, n // 2)))
    close((a - b) + b, a, exact=case.exact)
    close((a + b) - b, a, exact=case.exact)


@each_case
@given(seed=seeds, n=sizes, factor=st.floats(0.01, 100))
@settings(max_examples=25, deadline=None)
def test_weighing_the_sum_is_weighing_the_rows(case, seed, n, factor):
    family, X, members = case.data(seed, n, weighted=True)
    heavier = Members.hard(members.codes, members.classes, factor * members.weight)
    close(factor * family.collect(X, members), family.collect(X, heavier))


@each_case
@given(seed=seeds, n=sizes)
@settings(max_examples=15, deadline=None)
def test_weight_three_is_three_copies(case, seed, n):
    family, X, members = case.data(seed, n)
    triple = Members.hard(members.codes, members.classes, np.full(n, 3.0))
    rows = np.repeat(np.arange(n), 3)
    close(family.collect(X, triple), family.collect(X[rows], members.take(rows)), exact=case.exact)


@each_case
@given(seed=seeds, n=sizes)
@settings(max_examples=15, deadline=None)
def test_a_row_of_weight_zero_is_absent(case, seed, n):
    family, X, members = case.data(seed, n + 1)
    weight = np.r_[np.ones(n), 0.0]
    with_it = family.collect(X, Members.hard(members.codes, members.classes, weight))
    close(with_it, family.collect(X[:n], members.take(slice(0, n))), exact=case.exact)


@each_case
@given(seed=seeds, n=sizes, data=st.data())
@settings(max_examples=15, deadline=None)
def test_hard_members_are_one_hot_soft_members(case, seed, n, data):
    family, X, members = case.data(seed, n, weighted=True, gaps=gappy(case, data))
    matrix = members.matrix().toarray()
    close(family.collect(X, members), family.collect(X, Members.soft(matrix, members.classes)))


@each_case
@pytest.mark.parametrize("rule", ["ml", "map", "mean", "predictive"])
@given(seed=seeds)
@settings(max_examples=10, deadline=None)
def test_permuting_classes_permutes_columns(case, rule, seed):
    if rule not in case.rules:
        pytest.skip("the family has no such rule")
    family, X, members = case.data(seed, 30 + case.more)
    order = np.random.default_rng(seed).permutation(3)
    moved = Members.hard(np.argsort(order)[members.codes], 3)
    before = family.estimate(family.collect(X, members), rule).log_density(X)
    after = family.estimate(family.collect(X, moved), rule).log_density(X)
    np.testing.assert_allclose(after, before[:, order], rtol=1e-9, atol=1e-9)


@each_case
def test_selecting_classes_from_sums_is_collecting_those_classes(case):
    family, X, members = case.data(0, 40)
    kept = np.isin(members.codes, [0, 2])
    fewer = Members.hard(np.searchsorted([0, 2], members.codes[kept]), 2)
    close(
        family.collect(X, members).select("class", np.array([0, 2])), family.collect(X[kept], fewer), exact=case.exact
    )


@each_case
def test_taking_rows_back_leaves_the_others_to_the_bit(case):
    family, X, members = case.data(1, 40)
    before = family.collect(X[:20], members.take(slice(0, 20)))
    rest = family.collect(X[20:], members.take(slice(20, 40)))
    after = (before + rest).without(rest)
    close(after, before, exact=case.exact)
    if case.exact:
        assert after.same(before)
