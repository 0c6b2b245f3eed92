"""A row left out scores as if it had never been learnt."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import CASES, RULES
from deciban.errors import DecibanError, NoModeError, NotAvailableError
from deciban.families.abilities import HasLeftOutFeatures, ability
from deciban.families.gaussian import Gaussian
from deciban.families.protocol import Family
from deciban.statistics import Members

every = [pytest.param(case, rule, id=f"{case.name}-{rule}") for case in CASES for rule in RULES if rule in case.rules]


def by_refits(family, X, members, rule):
    """Scores of n refits, and the rows without which their class is singular or empty: the named exception."""
    n = len(members)
    scores, undefined = np.zeros((n, members.K)), np.zeros(n, dtype=bool)
    for i in range(n):
        others = np.arange(n) != i
        try:
            density = family.estimate(family.collect(X[others], members.take(others)), rule)
        except DecibanError:
            undefined[i] = True
        else:
            scores[i] = density.log_density(X[i : i + 1])[0]
    return scores, undefined


@pytest.mark.parametrize(("case", "rule"), every)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(12, 30), data=st.data())
@settings(max_examples=8, deadline=None)
def test_a_row_left_out_scores_as_if_never_learnt(case, rule, seed, n, data):
    weighted = data.draw(st.booleans(), label="weighted")
    gaps = case.gaps and data.draw(st.booleans(), label="gaps")
    n += case.more
    family, X, members = case.data(seed, n, weighted=weighted, gaps=gaps)
    stats = family.collect(X, members)
    try:
        family.estimate(stats, rule)
    except DecibanError:
        return  # no model, nothing to leave out of it
    fast = family.leave_one_out(stats, X, members, rule)
    slow, undefined = by_refits(family, X, members, rule)
    own = fast[np.arange(n), members.codes]
    assert not np.isnan(fast).any()
    assert (own[undefined] == -np.inf).all()
    np.testing.assert_allclose(fast[~undefined], slow[~undefined], rtol=case.tolerance, atol=case.tolerance)


@pytest.mark.parametrize(("case", "rule"), every)
def test_the_short_way_is_the_derived_way(case, rule):
    family, X, members = case.data(5, 60)
    stats = family.collect(X, members)
    fast = family.leave_one_out(stats, X, members, rule)
    np.testing.assert_allclose(
        fast, Family.leave_one_out(family, stats, X, members, rule), rtol=case.tolerance, atol=case.tolerance
    )


@pytest.mark.parametrize(("case", "rule"), every)
@pytest.mark.parametrize("n", [20, 60])  # with and without a frame of the sums
def test_scores_of_left_out_features_add_up_to_those_of_left_out_rows(case, rule, n):
    for weighted, gaps in [(False, False), (True, case.gaps)]:
        family, X, members = case.data(3, n, weighted=weighted, gaps=gaps)
        able = ability(family, HasLeftOutFeatures)
        if able is None:
            return
        stats = family.collect(X, members)
        try:
            features = able.left_out_features(stats, X, members, rule)
        except (NotAvailableError, NoModeError):
            return  # the structure has no independent features, or the rule no parameters
        whole = family.leave_one_out(stats, X, members, rule)
        assert features.shape == (*whole.shape, X.shape[1])
        np.testing.assert_allclose(features.sum(axis=2), whole, rtol=case.tolerance, atol=case.tolerance)


def test_features_of_far_rows_are_left_out_by_sums_of_the_other_rows():
    X = np.random.default_rng(0).normal(size=(60, 2))
    X[7, 1] = 1e9
    members, family = Members.hard(np.arange(60) % 2, 2), Gaussian("diagonal")
    stats = family.collect(X, members)
    features = family.left_out_features(stats, X, members, "mean")
    np.testing.assert_allclose(features.sum(axis=2), family.leave_one_out(stats, X, members, "mean"), rtol=1e-12)
