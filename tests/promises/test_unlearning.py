"""What docs/explanation/unlearning.md promises, one test for each promise."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.model_selection import train_test_split

from deciban import Bernoulli, Gamma, Gaussian, GenerativeClassifier, Multinomial, Poisson, Transformed
from deciban.errors import AbsurdNumbersWarning, DomainError, NotAvailableError, NotLearntError, UnlearnError
from deciban.families.limits import limits_of

STRUCTURES = ["full", "tied", "diagonal", "tied diagonal", "spherical", "tied spherical"]
ABSURD = [1e3, 1e5, 999_999_999.0, -1e16, 1e50, 1e150]
each_structure = pytest.mark.parametrize("structure", STRUCTURES)


@pytest.fixture(scope="module")
def two_classes():
    """400 rows of two classes that overlap."""
    rng = np.random.default_rng(0)
    y = np.arange(400) % 2
    return rng.normal(size=(400, 4)) + 0.75 * y[:, None], y


@each_structure
@pytest.mark.parametrize("value", ABSURD)
def test_an_absurd_row_learnt_and_unlearnt_leaves_no_trace(two_classes, structure, value):
    X, y = two_classes
    clf = GenerativeClassifier(Gaussian(structure)).fit(X, y)
    before = clf.predict_log_proba(X)
    row = X[:1].copy()
    row[0, 2] = value
    clf.learn(row, y[:1]).unlearn(row, y[:1])
    np.testing.assert_allclose(clf.predict_log_proba(X), before, rtol=1e-9, atol=1e-9)


@each_structure
@pytest.mark.parametrize("value", ABSURD)
def test_an_absurd_row_among_the_first_rows_can_be_unlearnt(two_classes, structure, value):
    X, y = two_classes
    spoilt = X.copy()
    spoilt[7, 1] = value
    clf = GenerativeClassifier(Gaussian(structure)).fit(spoilt, y).unlearn(spoilt[7:8], y[7:8])
    rest = np.arange(400) != 7
    alone = GenerativeClassifier(Gaussian(structure)).fit(X[rest], y[rest])
    np.testing.assert_allclose(clf.predict_log_proba(X), alone.predict_log_proba(X), rtol=1e-9, atol=1e-9)


@each_structure
def test_rows_of_every_size_come_and_go_one_by_one(two_classes, structure):
    X, y = two_classes
    rng = np.random.default_rng(1)
    clf = GenerativeClassifier(Gaussian(structure)).fit(X, y)
    before = clf.predict_log_proba(X)
    rows, codes = X[:30].copy(), y[:30]
    rows[np.arange(30), rng.integers(0, 4, 30)] = 10.0 ** rng.uniform(-150, 150, 30)
    weight = rng.uniform(0.1, 3.0, 30)
    for order, act in ((rng.permutation(30), clf.learn), (rng.permutation(30), clf.unlearn)):
        for i in order:
            act(rows[i : i + 1], codes[i : i + 1], sample_weight=weight[i : i + 1])
    np.testing.assert_allclose(clf.predict_log_proba(X), before, rtol=1e-9, atol=1e-9)


def test_an_absurd_row_with_gaps_can_be_unlearnt(two_classes):
    X, y = two_classes
    gaps = X.copy()
    gaps[np.random.default_rng(2).random(X.shape) < 0.1] = np.nan
    clf = GenerativeClassifier(Gaussian("diagonal")).fit(gaps, y)
    before = clf.predict_log_proba(X)
    row = np.array([[np.nan, 1e9, 0.5, np.nan]])
    clf.learn(row, y[:1]).unlearn(row, y[:1])
    np.testing.assert_allclose(clf.predict_log_proba(X), before, rtol=1e-9, atol=1e-9)


def test_a_transformed_gaussian_unlearns_an_absurd_row():
    rng = np.random.default_rng(3)
    y = np.arange(300) % 2
    X = np.exp(rng.normal(size=(300, 2)) + y[:, None])
    clf = GenerativeClassifier(Transformed("log")).fit(X, y)
    before = clf.predict_log_proba(X)
    for row in ([[1e-150, 1.0]], [[1e150, 2.0]]):
        clf.learn(row, [0]).unlearn(row, [0])
    np.testing.assert_allclose(clf.predict_log_proba(X), before, rtol=1e-9, atol=1e-9)


@each_structure
def test_row_by_row_is_one_fit_in_any_order(structure):
    X, y = load_iris(return_X_y=True)
    one = GenerativeClassifier(Gaussian(structure)).fit(X, y)
    for seed in range(2):
        order = np.random.default_rng(seed).permutation(150)
        clf = GenerativeClassifier(Gaussian(structure), classes=[0, 1, 2]).fit(X[order[:1]], y[order[:1]])
        for i in order[1:]:
            clf.learn(X[i : i + 1], y[i : i + 1])
        assert clf.score(X, y) == one.score(X, y)
        np.testing.assert_allclose(clf.predict_log_proba(X), one.predict_log_proba(X), rtol=1e-9, atol=1e-9)


def test_an_absurd_first_row_does_not_spoil_what_follows():
    X, y = load_iris(return_X_y=True)
    one = GenerativeClassifier(Gaussian("full")).fit(X, y)
    clf = GenerativeClassifier(Gaussian("full"), classes=[0, 1, 2]).fit([[99999999.0, 1.0, 1.0, -1e9]], [0])
    for i in range(150):
        clf.learn(X[i : i + 1], y[i : i + 1])
    clf.unlearn([[99999999.0, 1.0, 1.0, -1e9]], [0])
    np.testing.assert_allclose(clf.predict_log_proba(X), one.predict_log_proba(X), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
@pytest.mark.parametrize("seed", range(3))
def test_a_default_fit_with_absurd_values_unlearnt_is_as_accurate_as_a_refit(load, seed):
    X, y = load(return_X_y=True)
    rng = np.random.default_rng(seed)
    n, m = len(X), len(X) // 100
    copies = rng.choice(n, m, replace=False)
    absurd = X[copies].copy()
    absurd[np.arange(m), rng.integers(0, X.shape[1], m)] = 99999999.0
    order = rng.permutation(n + m)
    clf = GenerativeClassifier().fit(np.r_[X, absurd][order], np.r_[y, y[copies]][order])
    clf.unlearn(absurd, y[copies])
    assert clf.score(X, y) >= GenerativeClassifier().fit(X, y).score(X, y) - 0.01


@pytest.mark.parametrize("heavy", [1e7 + 0.1, 1e9 + 0.3])
@pytest.mark.parametrize(
    "family", [Gaussian("diagonal"), Bernoulli(), Multinomial()], ids=lambda family: type(family).__name__
)
def test_a_weight_so_large_that_the_others_are_lost_is_not_unlearnt(two_classes, family, heavy):
    X, y = two_classes
    X, y = (X > 0).astype(float)[:6] + (0.1 * X[:6] if isinstance(family, Gaussian) else 0.0), y[:6]
    clf = GenerativeClassifier(family).fit(X, y).learn(X[:1], y[:1], sample_weight=[heavy])
    before = clf.predict_proba(X)
    with pytest.raises(UnlearnError, match="rounding"):
        clf.unlearn(X[:1], y[:1], sample_weight=[heavy])
    np.testing.assert_array_equal(clf.predict_proba(X), before)


@pytest.mark.parametrize("heavy", [3.0, 1e6 + 0.25, 2.0**30])
def test_weights_that_are_summed_exactly_are_unlearnt_exactly(two_classes, heavy):
    X, y = two_classes
    X = (X > 0).astype(float)
    clf = GenerativeClassifier(Bernoulli()).fit(X, y)
    before = clf.predict_proba(X)
    clf.learn(X[:1], y[:1], sample_weight=[heavy]).unlearn(X[:1], y[:1], sample_weight=[heavy])
    np.testing.assert_array_equal(clf.predict_proba(X), before)


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
@pytest.mark.parametrize("framed", [False, True], ids=["array", "frame"])
def test_a_default_fit_with_absurd_values_learnt_is_as_accurate_as_a_fit_without_them(load, framed):
    X, y = load(return_X_y=True)
    X = X[:, :6]
    rng = np.random.default_rng(3)
    train, test = train_test_split(np.arange(len(X)), test_size=0.3, random_state=3, stratify=y)
    copies = rng.choice(train, max(1, len(train) // 100), replace=False)
    absurd = X[copies].copy()
    absurd[np.arange(len(copies)), rng.integers(0, X.shape[1], len(copies))] = 99999999.0
    table = partial(pd.DataFrame, columns=[f"x{j}" for j in range(X.shape[1])]) if framed else np.asarray
    spoilt = GenerativeClassifier().fit(table(np.r_[X[train], absurd]), np.r_[y[train], y[copies]])
    clean = GenerativeClassifier().fit(table(X[train]), y[train])
    assert spoilt.score(table(X[test]), y[test]) >= clean.score(table(X[test]), y[test]) - 0.01


LATE = [99999999.0, -1e9, 1e16, 2.0**54]


def _late(clf, X, y, Z, labels, numbers, rng):
    """The accuracies while rows with an absurd number in one of the columns are learnt, and after they are unlearnt."""
    was = clf.predict_log_proba(Z)
    for value in LATE:
        at = rng.choice(len(X), max(1, len(X) // 100), replace=False)
        rows = X.iloc[at].copy() if isinstance(X, pd.DataFrame) else X[at].copy()
        for i in range(len(at)):
            j = numbers[rng.integers(len(numbers))]
            if isinstance(X, pd.DataFrame):
                rows[j] = rows[j].astype(float)
                rows.iloc[i, rows.columns.get_loc(j)] = value
            else:
                rows[i, j] = value
        clf.learn(rows, y[at])
        yield clf.score(Z, labels)
        clf.unlearn(rows, y[at])
        np.testing.assert_allclose(clf.predict_log_proba(Z), was, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
@pytest.mark.parametrize("seed", range(2))
def test_absurd_values_that_come_after_a_default_fit_do_not_lower_its_accuracy(load, seed):
    X, y = load(return_X_y=True)
    train, test = train_test_split(np.arange(len(X)), test_size=0.3, random_state=seed, stratify=y)
    clf = GenerativeClassifier().fit(X[train], y[train])
    least = clf.score(X[test], y[test]) - 0.01
    rng = np.random.default_rng(seed)
    for accuracy in _late(clf, X[train], y[train], X[test], y[test], range(X.shape[1]), rng):
        assert accuracy >= least


def test_absurd_values_that_come_after_a_default_fit_of_a_frame_do_not_lower_its_accuracy():
    """Columns with a Gaussian, a transformed Gaussian, a Poisson and bins, and a category."""
    rng = np.random.default_rng(6)
    y = np.arange(400) % 2
    frame = pd.DataFrame(
        {
            "size": rng.normal(50.0, 4.0, 400) + 3 * y,
            "price": np.exp(rng.normal(3.0, 1.0, 400) + 0.7 * y),
            "visits": rng.poisson(2.0 + 2 * y),
            "colour": np.where(rng.random(400) < 0.4 + 0.3 * y, "red", "blue"),
        }
    )
    clf = GenerativeClassifier().fit(frame[:300], y[:300])
    accuracy = clf.score(frame[300:], y[300:])
    for now in _late(clf, frame[:300], y[:300], frame[300:], y[300:], ["size", "price", "visits"], rng):
        assert now >= accuracy - 0.01


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "label", "numbers"),
    [
        ("penguins", "species", ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]),
        ("titanic", "Survived", ["Age", "SibSp", "Parch", "Fare"]),
    ],
)
def test_absurd_values_after_a_default_fit_of_real_tables_cost_little(data, table, label, numbers):
    """Columns of numbers, of counts and in ranges, pairs of columns, and smooth functions of all columns."""
    frame = pd.read_csv(data / table / f"{table}.csv").drop(columns=["PassengerId", "Name", "Ticket"], errors="ignore")
    y = frame.pop(label).to_numpy()
    train, test = train_test_split(np.arange(len(y)), test_size=0.3, random_state=0, stratify=y)
    clf = GenerativeClassifier().fit(frame.iloc[train], y[train])
    accuracy = clf.score(frame.iloc[test], y[test])
    rng = np.random.default_rng(0)
    found = list(_late(clf, frame.iloc[train], y[train], frame.iloc[test], y[test], numbers, rng))
    assert min(found) >= accuracy - 0.01


@pytest.mark.parametrize("first", [False, True], ids=["learnt later", "among the first rows"])
def test_absurd_counts_in_sparse_rows_do_not_lower_the_accuracy(first):
    rng = np.random.default_rng(3)
    y = np.arange(600) % 2
    rates = np.where(y[:, None] == 0, 1 / np.arange(1.0, 41), 1 / np.arange(40.0, 0, -1)) * 0.7
    X = rng.poisson(rates).astype(float)
    spoilt, labels = X[:4].copy(), y[:4]
    spoilt[np.arange(4), [3, 30, 12, 39]] = 2.0**54
    Z, of_Z = sp.csr_array(X[400:]), y[400:]
    clf = GenerativeClassifier().fit(sp.csr_array(X[:400]), y[:400])
    accuracy, was = clf.score(Z, of_Z), clf.predict_log_proba(Z)
    if first:
        clf = GenerativeClassifier().fit(sp.csr_array(np.r_[spoilt, X[:400]]), np.r_[labels, y[:400]])
        assert clf.score(Z, of_Z) >= accuracy - 0.01
    else:
        clf.learn(sp.csr_array(spoilt), labels)
        assert clf.score(Z, of_Z) >= accuracy - 0.01
        clf.unlearn(sp.csr_array(spoilt), labels)
        np.testing.assert_allclose(clf.predict_log_proba(Z), was, rtol=1e-9, atol=1e-9)


def test_tails_of_long_distributions_are_not_absurd():
    rng = np.random.default_rng(7)
    tails = np.stack(
        [
            np.exp(rng.normal(0, 1, 60_000)),
            np.exp(rng.normal(0, 3, 60_000)),
            rng.pareto(1.5, 60_000),
            np.where(rng.random(60_000) < 0.9, 0.0, np.exp(rng.normal(8, 1, 60_000))),
            np.where(rng.random(60_000) < 0.9, rng.normal(0, 1e-3, 60_000), rng.normal(5, 1, 60_000)),
            rng.integers(1900, 2025, 60_000).astype(float),
        ],
        axis=1,
    )
    limit = limits_of(tails[:1000])
    assert (np.abs(tails) <= limit).all()
    assert (limit < 1e15).all()


def test_numbers_beyond_the_limits_in_many_rows_give_a_warning():
    X, y = load_iris(return_X_y=True)
    clf = GenerativeClassifier().fit(X, y)
    with pytest.warns(AbsurdNumbersWarning, match="150 of 150 rows .* fit again"):
        clf.learn(1e9 + X, y)


def test_an_absurd_number_is_missing_to_every_density(two_classes):
    """Also in large tables, where distances are compared before numbers are, and where scores are linear."""
    X, y = two_classes
    for structure in STRUCTURES:
        for rule in ("mean", "predictive"):
            family = Gaussian(structure, limit=[4096.0] * 4)
            clf = GenerativeClassifier(family, rule=rule).fit(X, y)
            many = np.tile(X, (30, 1))
            many[5::40, 1], many[7::40] = 1e7, -1e7
            gaps = np.where(np.abs(many) > 4096, np.nan, many)
            for method in (clf.log_likelihood, clf.predict_proba):
                np.testing.assert_allclose(method(many), method(gaps), rtol=1e-9, atol=1e-9)
                np.testing.assert_allclose(method(many[:50]), method(gaps[:50]), rtol=1e-9, atol=1e-9)


def test_a_number_that_is_absurd_is_no_evidence_and_its_row_is_not_learnt(two_classes):
    X, y = two_classes
    family, spoilt = Transformed("none", inner=Gaussian("full"), reach=[4096.0] * 4), X.copy()
    spoilt[7, 1], rest = 99999999.0, np.arange(len(X)) != 7
    clf = GenerativeClassifier(family, prior="uniform").fit(spoilt, y)
    without = GenerativeClassifier(family, prior="uniform").fit(X[rest], y[rest])
    np.testing.assert_allclose(clf.predict_proba(X), without.predict_proba(X), rtol=1e-12)
    gap = spoilt[7:8].copy()
    gap[0, 1] = np.nan
    np.testing.assert_allclose(clf.predict_proba(spoilt[7:8]), clf.predict_proba(gap), rtol=1e-12)


@each_structure
@pytest.mark.parametrize("value", [1e5, 1e9, 1e50, 1e150])
def test_an_absurd_row_left_out_scores_as_a_refit_without_it(two_classes, structure, value):
    X, y = two_classes
    spoilt = X.copy()
    spoilt[7, 1] = value
    whole = GenerativeClassifier(Gaussian(structure)).fit(spoilt, y)
    family = whole.family_.resolve(whole.stats_.family)
    rest = np.arange(400) != 7
    fast = GenerativeClassifier(family, prior="uniform").fit(spoilt, y).leave_one_out(spoilt, y, method="predict_proba")
    slow = GenerativeClassifier(family, prior="uniform").fit(spoilt[rest], y[rest]).predict_proba(spoilt[7:8])
    np.testing.assert_allclose(fast[7], slow[0], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("family", "rows"),
    [
        (Poisson(), [[2.0**54, 1.0, 1.0]]),
        (Poisson(), [[1e100, 1.0, 1.0]]),
        (Multinomial(), [[2.0**54, 1.0, 1.0]]),
        (Gamma(), [[1e16, 1.0, 1.0]]),
        (Gamma(), [[1e150, 1.0, 1.0]]),
    ],
)
def test_sums_of_absurd_counts_and_amounts_are_refused_not_falsified(family, rows):
    rng = np.random.default_rng(4)
    y = np.arange(200) % 2
    X = rng.poisson(3.0, (200, 3)) + 1.0
    clf = GenerativeClassifier(family).fit(X, y)
    before = clf.predict_log_proba(X)
    clf.learn(rows, [0])
    kept = clf.predict_log_proba(X)
    with pytest.raises(UnlearnError, match="Nothing was changed: fit again"):
        clf.unlearn(rows, [0])
    np.testing.assert_array_equal(clf.predict_log_proba(X), kept)
    assert not np.allclose(before, kept)


def test_ordinary_counts_are_unlearnt_to_the_bit():
    rng = np.random.default_rng(5)
    y = np.arange(200) % 2
    for family, X in (
        (Poisson(1.0), rng.poisson(3.0, (200, 3))),
        (Multinomial(), rng.poisson(3.0, (200, 3))),
        (Bernoulli(), rng.random((200, 3)) < 0.4),
    ):
        clf = GenerativeClassifier(family).fit(X[:150], y[:150])
        before = clf.stats_
        clf.learn(X[150:], y[150:]).unlearn(X[150:], y[150:])
        assert clf.stats_.same(before)


def test_rows_that_were_never_learnt_are_refused_and_nothing_changes(two_classes):
    X, y = two_classes
    for rows in (X, X[:20]):  # with an origin, and before there is one
        clf = GenerativeClassifier(Gaussian("diagonal")).fit(rows, y[: len(rows)])
        before = clf.stats_
        with pytest.raises(NotLearntError):
            clf.unlearn([[1e9, 0.0, 0.0, 0.0]], [0])
        assert clf.stats_ is before


def test_an_absurd_row_cannot_be_unlearnt_once_decay_has_rounded_it(two_classes):
    X, y = two_classes
    row = np.array([[1e9, 0.0, 0.0, 0.0]])
    clf = GenerativeClassifier(Gaussian("full"), ledger=True).fit(X, y).learn(row, [0])
    halved = clf.decay(0.5).stats_
    assert clf.unlearn(row, [0]).stats_ is not halved  # halving rounds nothing
    clf.learn(row, [0]).decay(0.3)
    before = clf.stats_
    with pytest.raises(UnlearnError, match="before decay"):
        clf.unlearn(row, [0])
    assert clf.stats_ is before
    clf.unlearn(X[:5], y[:5])  # other rows can


def test_values_whose_squares_overflow_are_refused(two_classes):
    X, y = two_classes
    clf = GenerativeClassifier(Gaussian("full")).fit(X, y)
    with pytest.raises(DomainError, match="too large to sum"):
        clf.learn([[1e200, 0.0, 0.0, 0.0]], [0])


def test_a_gaussian_that_is_fitted_by_em_says_that_it_cannot_unlearn(two_classes):
    X, y = two_classes
    gaps = X.copy()
    gaps[7, 1] = np.nan
    clf = GenerativeClassifier(Gaussian("full")).fit(gaps, y)
    assert "GaussianWithGaps" in str(clf.families_)
    assert "cannot be unlearnt; Gaussian('diagonal') could" in str(clf.families_)
    assert "rows cannot be unlearnt" in clf.standing_
    before = clf.stats_
    with pytest.raises(NotAvailableError, match=r"Nothing was changed.*Gaussian\('diagonal'\)"):
        clf.unlearn(gaps[:1], y[:1])
    assert clf.stats_ is before
    diagonal = GenerativeClassifier(Gaussian("diagonal")).fit(gaps, y).unlearn(gaps[7:8], y[7:8])
    alone = GenerativeClassifier(Gaussian("diagonal")).fit(np.delete(gaps, 7, axis=0), np.delete(y, 7))
    np.testing.assert_allclose(diagonal.predict_log_proba(X), alone.predict_log_proba(X), rtol=1e-9, atol=1e-9)
