"""Gaussians: sums that move, rows with gaps or far from zero, sparse tables."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats as sps

from cases import RULES, close
from deciban.errors import MergeError, NotAvailableError, PrecisionWarning, UnlearnError
from deciban.families.abilities import HasParts, HasSelection, ability
from deciban.families.gaussian import DiagonalStats, Gaussian, GaussianStats
from deciban.families.protocol import replaced
from deciban.statistics import Members
from gaussian_truth import CONCRETE, DIAGONAL, blobs, fitted, gaussian_truth

each_structure = pytest.mark.parametrize("structure", CONCRETE)
each_diagonal = pytest.mark.parametrize("structure", DIAGONAL)
each_rule = pytest.mark.parametrize("rule", RULES)


@each_structure
@each_rule
def test_no_digits_are_lost_at_a_hundred_million(structure, rule):
    X, members = blobs(90)
    X = np.round(X * 64) / 64  # so that adding 1e8 is exact
    near, far = (fitted(structure, X + at, members) for at in (0.0, 1e8))
    scores = [family.estimate(stats, rule).log_density(X + at) for (family, stats), at in ((near, 0.0), (far, 1e8))]
    np.testing.assert_allclose(scores[1], scores[0], rtol=1e-9)
    left_out = [f.leave_one_out(s, X + at, members, rule) for (f, s), at in ((near, 0.0), (far, 1e8))]
    np.testing.assert_allclose(left_out[1], left_out[0], rtol=1e-9)


def test_lost_digits_are_announced():
    X, members = blobs(at=1e6)
    family, stats = fitted("full", X, members, origin=np.zeros(3))
    with pytest.warns(PrecisionWarning, match="standard deviations from the origin"):
        family.estimate(stats, "mean")
    family, stats = fitted("diagonal", X, members, origin=np.zeros(3))
    with pytest.warns(PrecisionWarning, match="keep about 3 digits"):
        family.estimate(stats, "ml")


@pytest.mark.parametrize("structure", ["full", "tied"])
@each_rule
def test_a_row_with_gaps_scores_by_its_marginal(structure, rule):
    X, members = blobs(D=4)
    family, stats = fitted(structure, X, members)
    density = family.estimate(stats, rule)
    holes = X[:6].copy()
    holes[0, 2] = holes[1, [0, 3]] = holes[2, 2] = holes[3, :3] = holes[5] = np.nan
    scores = density.log_density(holes)
    for i in range(5):
        seen = np.flatnonzero(~np.isnan(holes[i]))
        for k in range(3):
            shape = density.scale[min(k, len(density.scale) - 1)][np.ix_(seen, seen)] / density.divisor[k]
            at = density.mean[k][seen]
            truth = (
                sps.multivariate_normal(at, shape)
                if density.dof is None
                else sps.multivariate_t(at, shape, df=density.dof[k])
            )
            assert scores[i, k] == pytest.approx(truth.logpdf(holes[i, seen]), rel=1e-9)
    np.testing.assert_array_equal(scores[5], 0.0)
    np.testing.assert_allclose(scores[4], density.log_density(X[4:5])[0])


@each_diagonal
@each_rule
def test_sparse_tables_give_the_dense_answers(structure, rule):
    rng = np.random.default_rng(0)
    dense = rng.normal(size=(40, 6)) * (rng.random((40, 6)) < 0.4)
    members = Members.hard(np.arange(40) % 2, 2, rng.uniform(0.5, 2, 40))
    X = Gaussian(structure).encode(sp.csr_array(dense), [])
    family, stats = fitted(structure, X, members)
    np.testing.assert_array_equal(stats.origin, 0.0)
    close(stats, family.collect(dense, members))
    close(stats, family.collect(X, Members.soft(members.matrix().toarray())))
    density = family.estimate(stats, rule)
    np.testing.assert_allclose(density.log_density(X), density.log_density(dense), rtol=1e-9)
    np.testing.assert_allclose(density.log_density(dense), gaussian_truth(family, stats, dense, rule), rtol=1e-9)
    left_out = [family.leave_one_out(stats, table, members, rule) for table in (X, dense)]
    np.testing.assert_allclose(*left_out, rtol=1e-9)
    if ability(density, HasParts):
        np.testing.assert_allclose(density.parts(X).sum(axis=2), density.log_density(X), rtol=1e-9)


def test_sparse_entries_given_twice_are_added_before_they_are_squared():
    twice = sp.coo_array(([1.0, 2.0, 5.0], ([0, 0, 1], [0, 0, 1])), shape=(2, 2))
    X = sp.csr_array((twice.data, twice.coords[1], [0, 2, 3]), shape=(2, 2))
    stats = Gaussian("diagonal").collect(Gaussian("diagonal").encode(X, []), Members.one_group(2))
    np.testing.assert_array_equal(stats.second, [[9.0, 25.0]])
    assert X.nnz == 3  # the table given is left as it was


def test_single_precision_rows_have_double_precision_sums():
    X, members = blobs()
    for structure in CONCRETE:
        stats = Gaussian(structure, origin=np.zeros(3)).collect(X.astype(np.float32), members)
        assert stats.second.dtype == np.float64
        close(stats, Gaussian(structure, origin=np.zeros(3)).collect(X.astype(np.float32).astype(float), members))


def test_integer_data_have_integer_sums():
    rng = np.random.default_rng(0)
    X = rng.poisson(20.0, (500, 3)).astype(float)
    order = rng.permutation(500)
    family = Gaussian()
    whole = family.collect(X, Members.one_group(500))
    assert (whole.second == np.round(whole.second)).all()
    family = family.choose(whole).resolve(whole)
    parts = [family.collect(X[rows], Members.one_group(250)) for rows in (order[:250], order[250:])]
    assert (parts[0] + parts[1]).same(whole)


@pytest.mark.parametrize("structure", ["full", "diagonal"])
def test_sums_about_two_origins_add(structure):
    X, members = blobs()
    here, there = (Gaussian(structure, origin=np.full(3, at)) for at in (0.5, -2.0))
    half = slice(0, 30), slice(30, 60)
    both = here.collect(X[half[0]], members.take(half[0])) + there.collect(X[half[1]], members.take(half[1]))
    close(both, here.collect(X, members))
    close(
        both.without(there.collect(X[half[1]], members.take(half[1]))), here.collect(X[half[0]], members.take(half[0]))
    )


@pytest.mark.parametrize("structure", ["full", "diagonal"])
def test_rows_that_were_never_learnt_show(structure):
    X, members = blobs()
    family, stats = fitted(structure, X, members)
    with pytest.raises(UnlearnError, match=r"class 0, feature \d would have a negative variance"):
        stats.without(family.collect(X[:1] + 50, Members.hard([0], 3)))
    own = members.codes == 1
    wrong = X[own].copy()
    wrong[0, 2] += 1e-3
    with pytest.raises(UnlearnError, match=r"class 1, feature 2 would have sums without any rows"):
        stats.without(family.collect(wrong, Members.hard(members.codes[own], 3)))


@pytest.mark.parametrize("structure", ["full", "diagonal"])
def test_an_emptied_class_is_exactly_empty(structure):
    X, members = blobs(at=1e4)
    family, stats = fitted(structure, X, members)
    own = members.codes == 1
    left = stats.without(family.collect(X[own], Members.hard(members.codes[own], 3)))
    assert not np.any(left.weight[1])
    assert not np.any(left.first[1])
    assert not np.any(left.second[1])


def test_tables_of_different_widths_do_not_merge():
    one, two = (Gaussian().collect(np.ones((3, D)), Members.one_group(3)) for D in (1, 2))
    with pytest.raises(MergeError, match="columns cannot be matched"):
        one + two


@each_structure
def test_every_structure_is_a_reading_of_full_sums(structure):
    X, members = blobs()
    family, full = fitted("full", X, members)
    direct, stats = fitted(structure, X, members, origin=full.origin)
    for rule in RULES:
        read = replace(family, structure=structure).estimate(full, rule).log_density(X)
        np.testing.assert_allclose(read, direct.estimate(stats, rule).log_density(X), rtol=1e-9)


def test_a_diagonal_fit_does_not_know_covariances_unless_told_to_keep_them():
    X, members = blobs()
    family, stats = fitted("diagonal", X, members)
    assert isinstance(stats, DiagonalStats)
    with pytest.raises(NotAvailableError, match="keep='full'"):
        replace(family, structure="tied").estimate(stats, "mean")
    family, stats = fitted("diagonal", X, members, keep="full")
    assert isinstance(stats, GaussianStats)
    replace(family, structure="tied").estimate(stats, "mean")


@each_structure
def test_another_reading_goes_on_learning(structure):
    X, members = blobs()
    family, stats = fitted("tied", X, members)
    read = replaced(family, structure=structure, strength=3.0).choose(stats)
    close(stats + read.collect(X, members), 2 * stats)
    assert replaced(read, target="tied").scale is None
    open_again = replace(read, mean=None, scale=None, origin=None, reach=None)
    assert Gaussian("auto").keep_choices(read, with_rows=False) == open_again
    narrow, sums = fitted("diagonal", X, members)
    with pytest.raises(NotAvailableError, match="keep='full'"):
        replaced(narrow, structure="full").choose(sums).estimate(sums, "mean")


@each_structure
def test_selected_features_are_those_features(structure):
    X, members = blobs(D=4)
    family, stats = fitted(structure, X, members, target="tied")
    at = np.array([3, 1])
    few, sums = family.select(at), stats.select("feature", at)
    close(sums, few.collect(X[:, at], members))
    scores = few.estimate(sums, "mean").log_density(X[:, at])
    np.testing.assert_allclose(scores, gaussian_truth(few, sums, X[:, at], "mean"), rtol=1e-9)


@each_structure
@each_rule
def test_a_density_of_some_features_is_that_of_rows_without_the_others(structure, rule):
    X, members = blobs(D=4)
    family, stats = fitted(structure, X, members)
    density = family.estimate(stats, rule)
    assert ability(density, HasSelection)
    holes = X.copy()
    holes[:, [0, 2]] = np.nan
    few = density.select(np.array([1, 3])).log_density(X[:, [1, 3]])
    np.testing.assert_allclose(few, density.log_density(holes), rtol=1e-9)
