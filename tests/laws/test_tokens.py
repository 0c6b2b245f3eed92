"""Tokens one at a time and counts are the same model; so are one category and a one-hot row of counts."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from deciban import Categorical, Members, Multinomial

seeds = st.integers(0, 2**32 - 1)
forms = pytest.mark.parametrize("make", [np.asarray, sp.csr_array])


def documents(seed):
    rng = np.random.default_rng(seed)
    X = rng.multinomial(rng.integers(1, 12, 20), rng.dirichlet(np.ones(5))).astype(float)
    y = np.r_[0, 1, 2, rng.integers(0, 3, 17)]
    document = np.repeat(np.arange(20), X.sum(axis=1).astype(int))
    words = np.repeat(np.tile(np.arange(5), 20), X.astype(int).ravel())
    return X, y, words, document


@forms
@given(seed=seeds)
@settings(max_examples=15, deadline=None)
def test_tokens_one_at_a_time_are_counts(make, seed):
    X, y, words, document = documents(seed)
    family, tokens = Multinomial(1.5), np.eye(5)[words]
    whole = family.collect(make(X), Members.hard(y, 3))
    single = family.collect(make(tokens), Members.hard(y[document], 3))
    np.testing.assert_array_equal(whole.counts, single.counts)
    for rule in ("map", "mean"):
        a, b = (family.estimate(stats, rule) for stats in (whole, single))
        np.testing.assert_array_equal(a.p, b.p)
        scores = b.log_density(make(tokens))
        summed = np.stack([np.bincount(document, column, 20) for column in scores.T], axis=1)
        np.testing.assert_allclose(summed, a.log_density(make(X)), atol=1e-9)


@given(seed=seeds)
@settings(max_examples=15, deadline=None)
def test_tokens_learnt_in_sequence_predict_each_other_as_the_urn_does(seed):
    X, y, _, _ = documents(seed)
    family = Multinomial(0.7)
    stats = family.collect(X, Members.hard(y, 3))
    row = X[:1]
    score, running = np.zeros(3), stats
    for word in np.repeat(np.arange(5), row[0].astype(int)):
        token = np.eye(5)[[word]]
        score += family.estimate(running, "predictive").log_density(token)[0]
        running = running + family.collect(np.repeat(token, 3, axis=0), Members.hard([0, 1, 2], 3))
    np.testing.assert_allclose(score, family.estimate(stats, "predictive").log_density(row)[0], atol=1e-9)


@pytest.mark.parametrize("rule", ["ml", "map", "mean", "predictive"])
@forms
@given(seed=seeds)
@settings(max_examples=10, deadline=None)
def test_a_category_is_a_row_with_one_count(make, rule, seed):
    _, y, words, document = documents(seed)
    members, tokens = Members.hard(y[document], 3), np.eye(5)[words]
    category, counts = Categorical(1.25, categories=range(5)), Multinomial(1.25)
    codes = category.encode(words, [])
    a, b = category.collect(codes, members), counts.collect(make(tokens), members)
    np.testing.assert_array_equal(a.counts, b.counts)
    np.testing.assert_allclose(category.log_evidence(a), counts.log_evidence(b), atol=1e-9)
    scores = [category.estimate(a, rule).log_density(codes), counts.estimate(b, rule).log_density(make(tokens))]
    np.testing.assert_allclose(*scores, atol=1e-9)
    left = category.leave_one_out(a, codes, members, rule), counts.leave_one_out(b, make(tokens), members, rule)
    np.testing.assert_allclose(*left, atol=1e-9)
