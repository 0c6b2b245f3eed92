"""Gaussians: what is refused, and rows without which a class is undefined."""

import numpy as np
import pytest
import scipy.sparse as sp

from cases import RULES
from deciban.errors import DomainError, EmptyClassError, HyperparameterError, InputError, SingularError
from deciban.families.gaussian import Gaussian
from deciban.statistics import Axis, Members
from gaussian_truth import CONCRETE, DIAGONAL, blobs, fitted

each_structure = pytest.mark.parametrize("structure", CONCRETE)
each_diagonal = pytest.mark.parametrize("structure", DIAGONAL)
each_rule = pytest.mark.parametrize("rule", RULES)


def named():
    X, members = blobs(D=4)
    return X, Members.hard(members.codes, Axis(("ant", "bee", "cow")))


def test_a_constant_column_is_named_by_ml_and_harmless_to_the_prior():
    X, members = named()
    X[members.codes == 1, 2] = 0.1 + 0.2
    for structure in ("full", "diagonal"):
        family, stats = fitted(structure, X, members)
        with pytest.raises(SingularError, match=r"column 2 does not vary|column 2 does not vary in class 'bee'") as e:
            family.estimate(stats, "ml")
        assert (e.value.columns, e.value.label) == ((2,), "bee")
        assert "'bee'" in str(e.value)
    X[:, 2] = 7.1
    for structure in CONCRETE:
        family, stats = fitted(structure, X, members)
        for rule in RULES[1:]:
            assert np.isfinite(family.estimate(stats, rule).log_density(X)).all()
            assert np.isfinite(family.leave_one_out(stats, X, members, rule)).all()
    for structure in ("tied", "tied diagonal"):
        family, stats = fitted(structure, X, members)
        with pytest.raises(SingularError, match="the classes together") as e:
            family.estimate(stats, "ml")
        assert (e.value.columns, e.value.label) == ((2,), None)


def test_a_table_that_never_varies_is_scored_all_the_same():
    for X in (np.zeros((6, 2)), np.full((6, 2), 0.3), np.full((1, 2), 1e8)):
        members = Members.hard(np.arange(len(X)) % 2, 2)
        for structure in CONCRETE:
            family, stats = fitted(structure, X, members)
            assert np.isfinite(family.estimate(stats, "mean").log_density(X)).all()


def test_a_column_that_repeats_others_is_named():
    X, members = named()
    X[members.codes == 2, 3] = X[members.codes == 2, 0] - 2 * X[members.codes == 2, 1]
    family, stats = fitted("full", X, members)
    with pytest.raises(SingularError, match=r"class 'cow' has a singular covariance: column \d is a linear") as e:
        family.estimate(stats, "ml")
    assert len(e.value.columns) == 1
    assert set(e.value.columns) <= {0, 1, 3}
    assert np.isfinite(family.estimate(stats, "mean").log_density(X)).all()
    X[:, 3] = X[:, 0] - 2 * X[:, 1]
    family, stats = fitted("tied", X, members)
    with pytest.raises(SingularError, match="the classes together have a singular"):
        family.estimate(stats, "ml")


def test_too_few_rows_are_counted():
    X, members = blobs(9, D=4)
    family, stats = fitted("full", X, members)
    with pytest.raises(SingularError, match="3 rows are too few for 4 columns"):
        family.estimate(stats, "ml")


@each_structure
def test_an_empty_class_has_no_maximum_likelihood(structure):
    X, members = blobs()
    family, stats = fitted(structure, X, Members.hard(members.codes, 4))
    with pytest.raises(EmptyClassError, match="class 3"):
        family.estimate(stats, "ml")


def test_bad_values_are_named():
    X, members = blobs()
    X[17, 1] = np.nan
    family = Gaussian("full")
    assert not family.collect(X, members).finite
    message = (
        r"column 'age' is missing \(NaN\) \(row 17\); a full Gaussian learns from complete rows only. Fill the gap"
    )
    with pytest.raises(DomainError, match=message):
        family.check(X, ["height", "age", "weight"], learning=True)
    family.check(X, [])  # scoring takes gaps
    Gaussian("diagonal").check(X, [], learning=True)
    X[17, 1] = np.inf
    assert not Gaussian("diagonal").collect(X, members).finite
    with pytest.raises(DomainError, match="finite"):
        Gaussian("diagonal").check(X, [])
    with pytest.raises(DomainError, match="no missing values"):
        Gaussian("diagonal").check(sp.csr_array([[np.nan]]), [])
    with pytest.raises(InputError, match="sparse"):
        Gaussian("tied").encode(sp.csr_array([[1.0]]), [])


@pytest.mark.parametrize(
    "choices", [{"structure": "banded"}, {"target": "round"}, {"keep": "some"}, {"strength": 0}, {"kappa": -1.0}]
)
def test_unknown_choices_are_refused(choices):
    with pytest.raises(HyperparameterError):
        Gaussian(**choices)


@each_structure
def test_without_the_row_a_class_may_be_undefined(structure):
    X, members = blobs(14, D=2, K=2)
    codes = np.r_[0, 0, 0, np.ones(10, dtype=int), 2]  # class 2 has one row; class 0 has D + 1
    members = Members.hard(codes, 3)
    family, stats = fitted(structure, X, members)
    if structure in ("tied", "tied diagonal", "tied spherical"):
        scores = family.leave_one_out(stats, X, members, "ml")
        assert scores[13, 2] == -np.inf
        assert np.isfinite(np.delete(scores, 13, axis=0)).all()
        assert np.isfinite(scores[13, :2]).all()
    else:  # class 2 is singular from the start
        keep = slice(0, 13)
        few = Members.hard(codes[keep], 2)
        stats = family.collect(X[keep], few)
        scores = family.leave_one_out(stats, X[keep], few, "ml")
        alone = {"full": [True] * 3, "diagonal": [False] * 3, "spherical": [False] * 3}[structure]
        np.testing.assert_array_equal(scores[:3, 0] == -np.inf, alone)
        assert not np.isnan(scores).any()
        assert np.isfinite(scores[:, 1]).all()


@each_structure
@pytest.mark.parametrize("seed", range(3))
def test_few_rows_left_out_agree_with_refits_as_far_as_conditioning_allows(structure, seed):
    X, members = blobs(15, D=2, seed=seed)
    family, stats = fitted(structure, X, members)
    for rule in RULES:
        fast = family.leave_one_out(stats, X, members, rule)
        slow = super(Gaussian, family).leave_one_out(stats, X, members, rule)
        np.testing.assert_allclose(fast, slow, rtol=1e-6, atol=1e-6)
