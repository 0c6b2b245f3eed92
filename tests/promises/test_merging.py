"""Models that were fitted apart add to the fit of both, or the error names the column and the call."""

import numpy as np
import pytest

from deciban import Categorical, Gamma, Gaussian, GenerativeClassifier, Multinomial, Poisson
from deciban.errors import MergeError

pd = pytest.importorskip("pandas")
rng = np.random.default_rng(0)
FAMILIES = [
    Gaussian(),
    Gaussian("tied"),
    Gaussian("diagonal", target="spherical", strength=5),
    Poisson(),
    Gamma(),
    Categorical("evidence"),
    Multinomial("loo"),
    {0: Gaussian(), 1: Poisson(), 2: Categorical()},
]


@pytest.mark.parametrize("families", FAMILIES, ids=repr)
@pytest.mark.parametrize("rule", ["mean", "predictive"])
def test_two_fits_of_named_families_add_to_the_fit_of_both(families, rule):
    X, y = rng.poisson(3, (200, 3)) + 1, rng.integers(0, 2, 200)
    one, two = (GenerativeClassifier(families, rule=rule).fit(X[at], y[at]) for at in (slice(70), slice(70, 200)))
    whole = GenerativeClassifier(families, rule=rule).fit(X, y)
    for merged in (one + two, two + one):
        np.testing.assert_allclose(merged.predict_proba(X), whole.predict_proba(X), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("families", FAMILIES, ids=repr)
def test_rows_learnt_after_the_fit_count_in_the_prior_as_those_of_the_fit(families):
    X, y = rng.poisson(3, (200, 3)) + 1, rng.integers(0, 2, 200)
    X[0] = 5000  # an odd first row, which a frozen prior would keep
    grown = GenerativeClassifier(families).fit(X[:2], [0, 1]).learn(X[2:], y[2:])
    whole = GenerativeClassifier(families).fit(X, np.r_[0, 1, y[2:]])
    np.testing.assert_allclose(grown.predict_proba(X), whole.predict_proba(X), rtol=1e-6, atol=1e-9)


def _halves(frame, seed):
    half = np.random.default_rng(seed).random(len(frame)) < 0.5
    return frame[half], frame[~half]


TABLES = [("penguins.csv", "species", seed) for seed in range(3)] + [
    ("titanic.csv", "Survived", seed) for seed in range(3)
]
TABLES += [("adult.csv.gz", "income", 0)]


@pytest.mark.slow
@pytest.mark.parametrize(("table", "label", "seed"), TABLES)
def test_halves_of_a_table_add_or_the_error_names_the_column_and_the_call(data, table, label, seed):
    frame = pd.read_csv(data / table.split(".")[0] / table)
    first, second = _halves(frame, seed)
    a, b = (GenerativeClassifier().fit(half, label) for half in (first, second))
    if a.family_ == b.family_:
        merged = a + b
    else:
        with pytest.raises(MergeError, match=r"a\.blank\(\)\.learn\(…\)") as refusal:
            a + b
        columns = refusal.value.columns
        assert set(columns) <= set(frame.columns)
        assert all(repr(name) in str(refusal.value) for name in columns)
        merged = a + a.blank().learn(second, label)
    whole = a.blank().learn(frame, label)
    rows = frame.drop(columns=label)
    np.testing.assert_allclose(merged.log_likelihood(rows), whole.log_likelihood(rows), rtol=1e-6, atol=1e-6)
