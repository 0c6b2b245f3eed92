"""Random cosine features: the kernel they stand for, sums without rounding, and what leaves with a row."""

from dataclasses import replace

import numpy as np
import pytest

from deciban.errors import HyperparameterError, InputError
from deciban.families.cosine_features import STEPS, CosineFeatures, Ramp, _uniform
from deciban.read.tables import Table
from deciban.statistics import Members

rng = np.random.default_rng(3)
N, K = 80, 3
RAMPS = (
    Ramp((-2.0, 0.0, 2.0), (-1.5, 0.0, 1.5)),
    Ramp(names=("a", "b"), shares=(0.5, 0.3)),
    Ramp((0.0, 1.0), (0.0, 1.0)),
)
X = np.array(
    [rng.normal(size=N), rng.choice(["a", "b", "c"], N), np.where(rng.random(N) < 0.2, np.nan, rng.random(N))],
    dtype=object,
).T
CODES = np.concatenate([np.arange(K), rng.integers(0, K, N - K)])
FAMILY = CosineFeatures("tied", ramps=RAMPS, features=12, strength=4.0)
ROWS = FAMILY.encode(Table.of(X), ["x", "y", "z"])
WEIGHTS = (None, rng.integers(1, 4, N).astype(float))


def test_columns_are_put_on_a_common_scale():
    table = Table.of(np.array([[1.0, "b", None], [9.0, None, 0.5]], dtype=object))
    each = [ramp.apply(table, j, "x").tolist() for j, ramp in enumerate(RAMPS)]
    half = np.sqrt(2.0)
    assert each[0] == [[0.75], [1.5]]
    np.testing.assert_allclose(each[1], [[-0.5 * half, 0.7 * half], [np.nan, np.nan]])
    np.testing.assert_array_equal(each[2], [[np.nan], [0.5]])


def test_products_of_features_are_a_gaussian_kernel_on_average():
    many = CosineFeatures(ramps=RAMPS[:1] + RAMPS[2:], features=20_000, bandwidth=1.5)
    values = [[-1.0, 0.2], [0.7, 0.9], [0.1, 0.0]]
    features = many.encode(Table.of(np.array(values)), ["x", "z"])
    scaled = np.array([[0.75 * x, z] for x, z in values])
    kernel = np.exp(-1.5 * ((scaled[:, None] - scaled[None]) ** 2).sum(axis=2) / (2 * 2))
    np.testing.assert_allclose(features @ features.T / 20_000, kernel, atol=0.03)


def splitmix(number):
    """SplitMix64 with Python's integers."""
    state, ones = number * 0x9E3779B97F4A7C15, 2**64 - 1
    state = ((state & ones) ^ ((state & ones) >> 30)) * 0xBF58476D1CE4E5B9
    state = ((state & ones) ^ ((state & ones) >> 27)) * 0x94D049BB133111EB
    state = (state & ones) ^ ((state & ones) >> 31)
    return ((state >> 11) + 0.5) / 2**53


def test_the_frequencies_are_the_same_on_every_machine():
    assert _uniform(3, 1).tolist() == [splitmix(1 + (1 << 32)), splitmix(2 + (1 << 32)), splitmix(3 + (1 << 32))]
    draws = _uniform(50_000, 2)
    assert abs(draws.mean() - 0.5) < 0.005
    assert abs(np.corrcoef(draws[1:], draws[:-1])[0, 1]) < 0.02


@pytest.mark.parametrize("weight", WEIGHTS)
def test_left_out_parts_are_those_of_sums_without_the_row(weight):
    members = Members.hard(CODES, K, weight)
    stats = FAMILY.collect(ROWS, members)
    (left_out,) = FAMILY.left_out_parts(stats, ROWS, members, "mean")
    resolved = FAMILY.resolve(stats)  # mean and scale of the prior are held
    for row in range(0, N, 9):
        others = np.delete(np.arange(N), row)
        alone = resolved.estimate(FAMILY.collect(ROWS[others], members.take(others)), "mean")
        (expected,) = FAMILY.part_scores(alone, ROWS[row : row + 1])
        np.testing.assert_allclose(left_out[row] - left_out[row, 0], expected[0] - expected[0, 0], rtol=1e-8, atol=1e-8)


def test_sums_have_no_rounding_error():
    assert (np.rint(ROWS * STEPS) == ROWS * STEPS).all()
    members = Members.hard(CODES, K)
    order = rng.permutation(N)
    once, again = FAMILY.collect(ROWS, members), FAMILY.collect(ROWS[order], members.take(order))
    assert once.same(again)
    some = np.arange(30)
    part = FAMILY.collect(ROWS[some], members.take(some))
    assert (once - part + part).same(once)


def test_the_shrinkage_is_chosen_by_the_labels():
    noise, signal = rng.integers(0, 2, 300), rng.integers(0, 2, 300)
    values = np.c_[signal * 2.0 + rng.normal(0, 0.3, 300), rng.normal(size=300)]
    open_family = CosineFeatures(ramps=(Ramp((-2.0, 4.0), (-2.0, 2.0)), Ramp((-2.0, 2.0), (-2.0, 2.0))), features=30)
    rows = open_family.encode(Table.of(values), ["x", "z"])
    chosen = {}
    for name, codes in {"noise": noise, "signal": signal}.items():
        members = Members.hard(codes, 2)
        chosen[name] = open_family.choose(open_family.collect(rows, members), (rows, members))
    assert open_family.chosen_by_labels() == ["structure"]
    assert chosen["noise"].chosen_by_labels() == []
    assert chosen["noise"].strength > chosen["signal"].strength


def test_some_of_the_columns_are_not_enough():
    stats = FAMILY.collect(ROWS, Members.hard(CODES, K))
    assert FAMILY.restricted(stats, np.array([0, 2])) is None
    assert FAMILY.restricted(stats, np.arange(3)) == (FAMILY, stats)
    with pytest.raises(InputError, match="cannot be restricted"):
        FAMILY.select(np.array([0]))
    with pytest.raises(InputError, match="has 2 columns, the model 3"):
        FAMILY.encode(Table.of(X[:, :2]), ["x", "y"])
    for wrong in ({"features": 0}, {"bandwidth": 0.0}, {"ramps": ()}, {"structure": "full"}):
        with pytest.raises(HyperparameterError):
            CosineFeatures(**({"ramps": RAMPS} | wrong))


def test_a_row_without_values_has_no_features_and_gets_no_evidence():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    X = rng.normal(size=(200, 3)) + 2 * np.cos(3 * y)[:, None]
    ramps = tuple(Ramp((-3.0, 3.0), (-3.0, 3.0)) for _ in range(3))
    family = CosineFeatures(ramps=ramps, features=8)
    rows = family.encode(np.vstack([X, np.full((1, 3), np.nan)]), ["a", "b", "c"])
    assert np.isnan(rows[-1]).all()
    members, more = Members.hard(y, 2), Members.hard(np.append(y, 1), 2)
    assert family.collect(rows, more).same(family.collect(rows[:-1], members))
    density = replace(family, structure="tied").estimate(family.collect(rows, more), "mean")
    assert (density.log_density(rows[-1:]) == 0).all()
    tied = replace(family, structure="tied")
    left = tied.leave_one_out(tied.collect(rows, more), rows, more, "mean")
    assert (left[-1] == 0).all()
    assert np.isfinite(left).all()


def test_numbers_beyond_the_limit_have_no_score():
    numbers = Table.of(np.array([[0.0], [2.0], [99999999.0]]))
    ramp = Ramp((0.0, 2.0), (-1.0, 1.0), limit=4096.0)
    np.testing.assert_array_equal(ramp.apply(numbers, 0, "x")[:, 0], [-1.0, 1.0, np.nan])


@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("rule", ["mean", "predictive"])
def test_folds_are_scored_by_the_sums_of_the_others(weight, rule):
    rows, members, fold = ROWS.copy(), Members.hard(CODES, K, weight), np.arange(N) % 4
    rows[[5, 17]] = np.nan  # rows without any value have no evidence
    stats = FAMILY.collect(rows, members)
    for f, (scores,) in enumerate(FAMILY.fold_scores(stats, rows, members, fold, rule)):
        inside, others = np.flatnonzero(fold == f), np.flatnonzero(fold != f)
        left = stats - FAMILY.collect(rows[inside], members.take(inside))
        (left_out,) = FAMILY.left_out_parts(left, rows[others], members.take(others), rule)
        (outside,) = FAMILY.part_scores(FAMILY.estimate(left, rule), rows[inside])
        outside[np.isnan(rows[inside, 0])] = 0.0
        np.testing.assert_allclose(scores[others], left_out, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(scores[inside], outside, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("rule", ["mean", "map", "predictive"])
def test_strengths_of_one_basis_score_as_each_by_itself(weight, rule):
    members, strengths = Members.hard(CODES, K, weight), (300.0, 4.0, 0.1)
    stats = FAMILY.collect(ROWS, members)
    together = FAMILY._posterior(stats, rule).left_out_of_strengths(strengths, ROWS, members, rule)
    for strength, scores in zip(strengths, together, strict=True):
        alone = replace(FAMILY, strength=strength).leave_one_out(stats, ROWS, members, rule)
        np.testing.assert_allclose(scores, alone, rtol=1e-8, atol=1e-8)
