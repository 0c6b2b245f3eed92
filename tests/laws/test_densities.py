"""Densities are densities: they agree with SciPy, sum to one, and follow from the evidence."""

import numpy as np
import pytest
from scipy.special import logsumexp

from cases import CASES, RULES
from deciban.errors import EmptyClassError
from deciban.families.abilities import HasEvidence, HasParts, ability
from deciban.statistics import Members

each_case = pytest.mark.parametrize("case", CASES, ids=repr)
every = [pytest.param(case, rule, id=f"{case.name}-{rule}") for case in CASES for rule in RULES if rule in case.rules]


@pytest.mark.parametrize(("case", "rule"), every)
def test_log_density_is_the_truth(case, rule):
    if case.truth is None:
        pytest.skip("another case of the same family has the truth")
    family, X, members = case.data(3, 50)
    stats = family.collect(X, members)
    density = family.estimate(stats, rule)
    scores = density.log_density(X) + np.reshape(density.log_base(X), (-1, 1))
    np.testing.assert_allclose(scores, case.truth(family, stats, X, rule), rtol=case.slack, atol=case.slack)


@pytest.mark.parametrize(("case", "rule"), every)
def test_probabilities_of_all_possible_rows_sum_to_one(case, rule):
    if case.support is None:
        pytest.skip("the rows of this family cannot be listed")
    family, X, members = case.data(4, 50)
    density = family.estimate(family.collect(X, members), rule)
    support = family.encode(case.support(), [], family.collect(X, members))
    scores = density.log_density(support) + np.reshape(density.log_base(support), (-1, 1))
    np.testing.assert_allclose(logsumexp(scores, axis=0), 0.0, atol=1e-9)


@each_case
def test_the_predictive_is_a_ratio_of_evidences(case):
    if not ability(case.family, HasEvidence) or "predictive" not in case.rules:
        pytest.skip("no closed-form evidence")
    family, X, members = case.data(6, 30)
    before = family.collect(X[:-1], members.take(slice(0, -1)))
    after = family.collect(X, members)
    row = X[-1:]
    density = family.estimate(before, "predictive")
    score = (density.log_density(row) + np.reshape(density.log_base(row), (-1, 1)))[0, members.codes[-1]]
    ratio = np.sum(family.log_evidence(after)) - np.sum(family.log_evidence(before))
    np.testing.assert_allclose(ratio, score, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(("case", "rule"), every)
def test_parts_sum_to_the_log_density(case, rule):
    family, X, members = case.data(7, 30, gaps=case.gaps)
    density = family.estimate(family.collect(X, members), rule)
    if not ability(density, HasParts):
        pytest.skip("not a sum over features")
    np.testing.assert_allclose(density.parts(X).sum(axis=2), density.log_density(X), rtol=1e-9, atol=1e-9)


@each_case
def test_an_all_missing_row_scores_zero_and_adds_nothing(case):
    if not case.gaps:
        pytest.skip("the family takes no gaps")
    family, X, members = case.data(8, 30)
    raw = np.full((1, X.shape[1]), np.nan) if X.dtype.kind == "f" else np.full((1, X.shape[1]), None, dtype=object)
    stats = family.collect(X, members)
    row = family.encode(raw, [f"x{j}" for j in range(X.shape[1])], stats)
    more = family.collect(row, Members.hard([1], 3))
    assert (stats + more).same(stats)
    for rule in case.rules:
        np.testing.assert_array_equal(family.estimate(stats, rule).log_density(row), 0.0)


@pytest.mark.parametrize(("case", "rule"), every)
def test_a_model_learnt_from_samples_is_the_model_they_came_from(case, rule):
    family, X, members = case.data(9, 300)
    stats = family.collect(X, members)
    family = family.resolve(stats)  # what follows from the sums, such as an idf, is part of the model
    density = family.estimate(stats, rule)
    codes = np.repeat(np.arange(3), 4000)
    drawn = family.encode(density.sample(codes, np.random.default_rng(1)), [f"x{j}" for j in range(X.shape[1])])
    again = family.estimate(family.collect(drawn, Members.hard(codes, 3)), "mean")
    divergence = (density.log_density(drawn) - again.log_density(drawn))[np.arange(len(codes)), codes]
    assert np.abs(divergence.reshape(3, -1).mean(axis=1)).max() < 0.03 * X.shape[1]


@each_case
def test_an_empty_class_scores_by_its_prior_and_is_refused_by_ml(case):
    family, X, members = case.data(10, 30)
    wider = Members.hard(members.codes, 4)
    stats = family.collect(X, wider)
    for rule in case.rules:
        if rule == "ml":
            if getattr(case, "tied", False):
                continue
            with pytest.raises(EmptyClassError, match="class 3"):
                family.estimate(stats, rule)
        elif rule != "map":  # a flat prior has no mode
            scores = family.estimate(stats, rule).log_density(X)
            assert np.isfinite(scores[:, 3]).all()
