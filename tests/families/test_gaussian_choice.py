"""Gaussians: which structure, chosen by leaving rows out."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import datasets

from deciban import GenerativeClassifier
from deciban.errors import NotAvailableError
from deciban.families.gaussian import DiagonalStats, Gaussian, GaussianStats
from deciban.families.gaussian.family import _judged, _log_prior_without, _loss, candidates
from deciban.statistics import Members
from gaussian_truth import blobs, fitted


def loss_of(structure, X, members, rule):
    family, stats = fitted(structure, X, members, keep="full")
    rows, judged, weight = _judged(stats.whole(), X, members)
    log_prior = _log_prior_without(stats, judged)
    return _loss(family.leave_one_out(stats, rows, judged, rule), log_prior, judged, weight)


def test_evidence_can_prefer_the_worse_classifier():
    """Breast cancer: the full Gaussian is by far the better density, and the worse classifier."""
    table = datasets.load_breast_cancer()
    X, members = table.data, Members.hard(table.target, 2)
    assert loss_of("full", X, members, "ml") == pytest.approx(0.562, abs=5e-4)
    assert loss_of("tied", X, members, "ml") == pytest.approx(0.1266, abs=5e-4)
    family, stats = fitted("full", X, members)
    gain = family.log_evidence(stats).sum() - replace(family, structure="tied").log_evidence(stats).sum()
    assert gain > len(X)
    assert fitted("auto", X, members)[0].structure == "tied"


def test_the_loss_is_that_of_refits():
    X, members = blobs(30, apart=1.0)
    family, stats = fitted("diagonal", X, members, keep="full")
    losses = []
    for i in range(30):
        others = np.arange(30) != i
        kept = members.take(others)
        scores = family.estimate(family.collect(X[others], kept), "mean").log_density(X[i : i + 1])[0]
        joint = scores + np.log(kept.weights() / 29)
        losses.append(np.logaddexp.reduce(joint) - joint[members.codes[i]])
    rows, judged, weight = _judged(stats.whole(), X, members)
    log_prior = _log_prior_without(stats.whole(), judged)
    loss = _loss(family.leave_one_out(stats, rows, judged, "mean"), log_prior, judged, weight)
    assert loss == pytest.approx(np.mean(losses), rel=1e-9)


def test_weight_three_chooses_as_three_copies_do():
    X, members = blobs(30, apart=1.0)
    rows = np.repeat(np.arange(30), 3)
    heavy = Members.hard(members.codes, 3, np.full(30, 3.0))
    stats = Gaussian("full").collect(X, heavy)
    one, other = (_judged(stats.whole(), *pair) for pair in ((X, heavy), (X[rows], members.take(rows))))
    for family in candidates(fitted("full", X, heavy)[0], stats.whole(), "mean"):
        losses = [
            _loss(family.leave_one_out(stats, X, m, "mean"), _log_prior_without(stats.whole(), m), m, w)
            for X, m, w in (one, other)
        ]
        assert losses[0] == pytest.approx(losses[1], rel=1e-9)


@pytest.mark.parametrize("truth", ["tied spherical", "tied diagonal", "tied", "full"])
def test_enough_rows_find_the_structure_they_came_from(truth):
    rng = np.random.default_rng(0)
    y = np.arange(2000) % 2
    spread = {"tied spherical": np.eye(3), "tied diagonal": np.diag([1, 3, 9])}.get(truth, np.eye(3) + np.tri(3))
    X = rng.normal(size=(2000, 3)) @ spread + np.array([[0.0, 0, 0], [1, 1, -1]])[y]
    if truth == "full":
        X[y == 1] = X[y == 1] @ np.array([[0.0, 1, 0], [1, 0, 0], [0, 0, -1]])
    family, stats = fitted("auto", X, Members.hard(y, 2))
    assert family.structure == truth
    assert isinstance(stats, GaussianStats)
    assert isinstance(family.collect(X, Members.hard(y, 2)), GaussianStats)  # what follows adds to what was learnt


def test_gaps_and_sparse_tables_leave_the_diagonal_structures():
    X, members = blobs()
    X[3, 1] = np.nan
    for table in (X, sp.csr_array(np.nan_to_num(X))):
        family, stats = fitted("auto", table, members)
        assert isinstance(stats, DiagonalStats)
        assert family.structure.removeprefix("tied ") in ("diagonal", "spherical")
        assert isinstance(family.collect(table, members), DiagonalStats)


def test_one_class_is_judged_by_its_density():
    X, _ = blobs(300, K=1)
    assert Gaussian("auto").fit(X).family.structure == "full"
    noise = np.random.default_rng(0).normal(size=(300, 3))
    assert Gaussian("auto").fit(noise * [1, 5, 9]).family.structure == "diagonal"
    assert Gaussian("auto").fit(noise).family.structure == "spherical"


def test_too_few_rows_fall_back():
    X, _ = blobs(3)
    for rule in ("ml", "mean"):
        family = Gaussian("auto")
        members = Members.hard([0, 1, 2], 3)
        assert family.choose(family.collect(X, members), (X, members), rule).structure == "tied diagonal"
    one = Members.one_group(1)
    family = Gaussian("auto")
    assert family.choose(family.collect(X[:1], one), (X[:1], one)).structure == "diagonal"


def test_many_columns_are_not_multiplied_with_each_other():
    rng = np.random.default_rng(0)
    X, members = rng.normal(size=(50, 300)), Members.hard(np.arange(50) % 2, 2)
    _, stats = fitted("auto", X, members)
    assert isinstance(stats, DiagonalStats)


def test_a_scale_that_was_given_is_kept():
    X, members = blobs()
    family, _ = fitted("auto", X, members, scale=np.array([1.0, 2.0, 3.0]))
    np.testing.assert_array_equal(family.scale, [1.0, 2.0, 3.0])


def test_sums_alone_cannot_choose():
    X, members = blobs()
    stats = Gaussian("auto").collect(X, members)
    with pytest.raises(NotAvailableError, match="needs rows"):
        Gaussian("auto").choose(stats)
    with pytest.raises(NotAvailableError, match="needs rows"):
        Gaussian("auto").estimate(stats, "mean")
    chosen = Gaussian("tied").choose(stats).resolve(stats)
    assert chosen.structure == "tied"


@pytest.mark.parametrize(("n", "offered"), [(24, False), (25, True)])
def test_the_tied_covariance_is_a_target_if_there_are_eight_rows_for_each_column(n, offered):
    """Its leave-one-out scores contain the row that is left out: n rows, two columns, nine classes or one."""
    rng = np.random.default_rng(0)
    members = Members.hard(np.arange(n) % 9, 9)
    family, stats = fitted("full", rng.normal(size=(n, 2)), members)
    found = candidates(replace(family, mean=None, scale=None), stats.whole(), "mean")
    assert any(one.target == "tied" for one in found) is offered
    assert any(one.structure == "full" for one in found)


def test_few_rows_of_noise_are_not_told_apart():
    """Sixteen rows of ten columns: with the tied covariance as a target, the mean log loss was 2.5."""
    losses = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(516, 10)), np.r_[np.arange(16) % 2, rng.integers(0, 2, 500)]
        clf = GenerativeClassifier().fit(X[:16], y[:16])
        losses.append(-clf.predict_log_proba(X[16:])[np.arange(500), y[16:]].mean())
    assert np.mean(losses) < 0.85
