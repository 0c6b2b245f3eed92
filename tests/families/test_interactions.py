"""Interactions of columns: counts of pairs, their evidence, and what leaves with a row."""

import numpy as np
import pytest

from deciban.errors import HyperparameterError, NotAvailableError
from deciban.families.bernoulli import Gaps
from deciban.families.interactions import Cut, Interactions
from deciban.read.tables import Table
from deciban.statistics import Axis, Members

rng = np.random.default_rng(5)
N, K = 60, 3
CUTS = (Cut(edges=(-0.5, 0.5)), Cut(names=("a", "b")), Cut(edges=(0.0,)))
FAMILY = Interactions(CUTS, ((0, 1), (0, 2), (1, 2)))
X = np.array(
    [rng.normal(size=N), rng.choice(["a", "b", "c"], N), np.where(rng.random(N) < 0.2, np.nan, rng.normal(size=N))],
    dtype=object,
).T
CODES = np.concatenate([np.arange(K), rng.integers(0, K, N - K)])
ROWS = FAMILY.encode(Table.of(X), ["x", "y", "z"])
WEIGHTS = (None, rng.uniform(0.3, 2.5, N))


def members(weight):
    return Members.hard(CODES, K, weight)


def brute_force(rows, codes, weight, row, k):
    """The interaction of each pair in one row, from rows counted one by one."""
    found = []
    for i, j in FAMILY.pairs:
        sizes = FAMILY.cuts[i].levels, FAMILY.cuts[j].levels
        table = np.full(sizes, FAMILY.pseudo_count / (sizes[0] * sizes[1]))
        for other, code, w in zip(rows, codes, weight):
            if code == k and other[i] >= 0 and other[j] >= 0:
                table[other[i], other[j]] += w
        n, a, b = table.sum(), row[i], row[j]
        if a < 0 or b < 0:
            found.append(0.0)
            continue
        p, q = table.sum(axis=1)[a] / n, table.sum(axis=0)[b] / n
        joint = (table[a, b] + FAMILY.strength * p * q) / (n + FAMILY.strength)
        found.append(np.log(joint / (p * q)))
    return np.array(found)


def one_dependence(pairs):
    """Σ over parents of the product of interactions with the parent, from its definition."""
    each = [sum(value for value, pair in zip(pairs, FAMILY.pairs) if i in pair) for i in range(len(CUTS))]
    return np.log(np.mean(np.exp(each)))


def test_numbers_beyond_the_limit_have_no_level():
    numbers = Table.of(np.array([[0.0], [3.0], [99999999.0], [-1e9]]))
    assert Cut(edges=(1.0,), limit=4096.0).codes(numbers, 0, "x").tolist() == [0, 1, -1, -1]
    assert Cut(edges=(1.0,)).codes(numbers, 0, "x").tolist() == [0, 1, 1, 0]
    with pytest.raises(HyperparameterError, match="limit"):
        Cut(edges=(1.0,), limit=-1.0)


def test_categories_without_a_level_share_the_last_and_gaps_have_none():
    assert ROWS[:, 1].tolist() == [{"a": 0, "b": 1, "c": 2}[value] for value in X[:, 1]]
    assert (ROWS[:, 2] == -1).tolist() == [value != value for value in X[:, 2]]


@pytest.mark.parametrize("weight", WEIGHTS)
def test_a_part_is_the_evidence_of_a_pair_beyond_its_columns(weight):
    stats = FAMILY.collect(ROWS, members(weight))
    parts = FAMILY.part_scores(FAMILY.estimate(stats, "mean"), ROWS)
    w = np.ones(N) if weight is None else weight
    for row in range(0, N, 7):
        for k in range(K):
            truth = brute_force(ROWS, CODES, w, ROWS[row], k)
            np.testing.assert_allclose([part[row, k] for part in parts], [*truth, one_dependence(truth)], atol=1e-12)


@pytest.mark.parametrize("weight", WEIGHTS)
def test_the_parts_of_a_row_left_out_are_those_of_the_other_rows(weight):
    stats = FAMILY.collect(ROWS, members(weight))
    parts = FAMILY.left_out_parts(stats, ROWS, members(weight), "mean")
    scores = FAMILY.leave_one_out(stats, ROWS, members(weight), "mean")
    for row in range(N):
        rest = np.delete(np.arange(N), row)
        others = FAMILY.collect(ROWS[rest], members(weight).take(rest))
        density = FAMILY.estimate(others, "mean")
        truth = FAMILY.part_scores(density, ROWS[row : row + 1])
        for part, expected in zip(parts, truth):
            np.testing.assert_allclose(part[row], expected[0], atol=1e-9)
        np.testing.assert_allclose(scores[row], density.log_density(ROWS[row : row + 1])[0], atol=1e-9)


def test_pairs_are_sums():
    whole, half = FAMILY.collect(ROWS, members(None)), np.arange(N) % 2 == 0
    parts = [FAMILY.collect(ROWS[at], members(None).take(np.flatnonzero(at))) for at in (half, ~half)]
    assert (parts[0] + parts[1]).same(whole)
    assert whole.without(parts[1]).same(parts[0])
    soft = FAMILY.collect(ROWS, Members.soft(np.eye(K)[CODES], Axis.of(K)))
    assert soft.same(whole)


def test_marginals_of_a_table_are_those_of_its_estimate():
    """q has the marginals p, so that P(b|a) = q/p sums to one."""
    stats = FAMILY.collect(ROWS, members(None))
    layout, density = FAMILY.layout, FAMILY.estimate(stats, "mean")
    for (i, j), start, size in zip(layout.pairs, layout.starts, layout.sizes):
        counts = stats.counts[0, start : start + size].reshape(layout.levels[i], layout.levels[j])
        n_ab = counts + FAMILY.pseudo_count / size
        p, q = n_ab.sum(axis=1) / n_ab.sum(), n_ab.sum(axis=0) / n_ab.sum()
        joint = np.exp(density.table[start : start + size, 0].reshape(counts.shape)) * np.outer(p, q)
        np.testing.assert_allclose(joint.sum(axis=1), p)
        np.testing.assert_allclose(joint.sum(axis=0), q)


def test_a_row_without_values_has_no_evidence():
    density = FAMILY.estimate(FAMILY.collect(ROWS, members(None)), "mean")
    empty = np.full((1, 3), -1, dtype=np.int16)
    assert (np.array(FAMILY.part_scores(density, empty)) == 0).all()
    assert (FAMILY.collect(empty, Members.hard([0], K)).counts == 0).all()


def test_some_of_the_pairs_have_the_sums_of_a_fit_of_these_pairs():
    stats = FAMILY.collect(ROWS, members(None))
    family, sums = FAMILY.among(stats, [2, 0])
    assert sums.same(family.collect(ROWS, members(None)))
    found = FAMILY.restricted(stats, np.array([0, 2]))
    assert found[1].same(found[0].collect(ROWS[:, [0, 2]], members(None)))
    assert FAMILY.restricted(stats, np.array([1])) is None


def test_pairs_of_the_same_column_are_refused_and_nothing_is_drawn():
    with pytest.raises(HyperparameterError, match="different columns"):
        Interactions(CUTS, ((1, 1),))
    density = FAMILY.estimate(FAMILY.collect(ROWS, members(None)), "mean")
    with pytest.raises(NotAvailableError):
        density.sample(np.zeros(1, dtype=int), rng)


def test_gaps_count_what_is_missing():
    rows = Gaps().encode(Table.of(X), ["x", "y", "z"])
    assert rows.sum(axis=0).tolist() == [0, 0, sum(value != value for value in X[:, 2])]


def test_names_of_levels_that_cannot_be_looked_up_are_refused():
    with pytest.raises(HyperparameterError, match="hashable"):
        Cut(names=("a", {}))


@pytest.mark.parametrize("weight", WEIGHTS)
def test_folds_are_scored_by_the_sums_of_the_others(weight):
    every, fold = members(weight), np.arange(N) % 4
    stats = FAMILY.collect(ROWS, every)
    for f, parts in enumerate(FAMILY.fold_scores(stats, ROWS, every, fold, "mean")):
        inside, others = np.flatnonzero(fold == f), np.flatnonzero(fold != f)
        left = stats - FAMILY.collect(ROWS[inside], every.take(inside))
        left_out = FAMILY.left_out_parts(left, ROWS[others], every.take(others), "mean")
        outside = FAMILY.part_scores(FAMILY.estimate(left, "mean"), ROWS[inside])
        for scores, one, other in zip(parts, left_out, outside, strict=True):
            np.testing.assert_allclose(scores[others], one, rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(scores[inside], other, rtol=1e-9, atol=1e-12)
