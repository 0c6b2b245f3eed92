"""A model as a SQL query: DuckDB and SQLite give the answers of `predict_proba`."""

import os
import sqlite3
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from deciban import (
    Bernoulli,
    Binned,
    Categorical,
    Gamma,
    Gaussian,
    GenerativeClassifier,
    Poisson,
    Text,
    Transformed,
)
from deciban.errors import InputError, NotAvailableError

duckdb = pytest.importorskip("duckdb")
DATA = os.environ.get("DECIBAN_DATA")


def answers(clf, rows, dialect, **options):
    """(n, K) probabilities and predictions by a database, in the order of the rows."""
    table = rows.copy()
    table.insert(0, "row id", np.arange(len(rows)))
    query = clf.to_sql(dialect, table="some rows", keep=["row id"], **options)
    if dialect == "duckdb":
        with duckdb.connect(config={"threads": 1}) as base:
            base.register("some rows", table)
            found = base.execute(query).df()
    else:
        base = sqlite3.connect(":memory:")
        table.to_sql("some rows", base, index=False)
        found = pd.read_sql_query(query, base)
        base.close()
    found = found.sort_values("row id")
    return found.iloc[:, 2:].to_numpy(float), found["prediction"].to_numpy()


def agree(clf, rows, **options):
    for dialect in ("duckdb", "sqlite"):
        found, decided = answers(clf, rows, dialect, **options)
        np.testing.assert_allclose(found, clf.predict_proba(rows, **options), atol=1e-9)
        assert (decided == clf.predict(rows, **options)).all()


def table(n=120, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    rows = pd.DataFrame(
        {
            "x": rng.normal(y, 1.0),
            "y": rng.normal(2 * y, 2.0),
            "size": rng.gamma(2.0 + y, 3.0),
            "calls": rng.poisson(1.0 + y).astype(float),
            'it\'s "odd"': rng.choice(["a", "b", "it's"], n),
            "smokes": (rng.random(n) < 0.2 + 0.2 * y).astype(float),
        }
    )
    return rows, np.array(["low", "mid", "top"])[y]


FAMILIES = {
    "x": Gaussian(),
    "y": Transformed("yeo-johnson"),
    "size": Gamma(),
    "calls": Poisson(),
    'it\'s "odd"': Categorical(),
    "smokes": Bernoulli(),
}


@pytest.mark.parametrize("rule", ["mean", "map"])
def test_every_family_of_single_columns_also_with_gaps(rule):
    rows, y = table()
    clf = GenerativeClassifier(FAMILIES, rule=rule).fit(rows, y)
    gaps = rows.mask(np.random.default_rng(1).random(rows.shape) < 0.3)
    agree(clf, gaps)
    agree(clf, gaps, prior={"top": 0.01})


def test_integrated_gaussians_bins_and_logarithms():
    rows, y = table()
    families = {"x": Gaussian("diagonal"), "y": Binned(4), "size": Transformed("log", reach=[20.0])}
    clf = GenerativeClassifier(families, rule="predictive").fit(rows[list(families)], y)
    assert (rows["size"] > 20).any()
    agree(clf, rows[list(families)])


@pytest.mark.parametrize("structure", ["full", "tied", "spherical", "tied diagonal"])
@pytest.mark.parametrize("rule", ["ml", "predictive"])
def test_blocks_of_columns(structure, rule):
    rows, y = table()
    clf = GenerativeClassifier({("x", "y", "size"): Gaussian(structure)}, rule=rule).fit(rows[["x", "y", "size"]], y)
    if structure == "spherical" and rule == "predictive":
        with pytest.raises(NotAvailableError, match="spherical"):
            clf.to_sql()
    else:
        agree(clf, rows[["x", "y", "size"]])


def test_a_row_without_values_gets_the_prior_also_from_a_calibrated_model():
    rows, y = table(300)
    clf = GenerativeClassifier().fit(rows, y)
    empty = (
        rows.iloc[:2].copy().mask(np.ones((2, rows.shape[1]), dtype=bool)).astype(rows.dtypes.replace("int64", float))
    )
    agree(clf, empty)
    agree(clf, rows)


def test_absurd_numbers_count_as_missing():
    rows, y = table()
    absurd = rows[:20].copy()
    absurd.loc[:9, "x"], absurd.loc[10:, "calls"] = 99999999.0, 2.0**54
    limited = {"x": Binned(4, limit=[4096.0]), "calls": Poisson(limit=[4096.0])}
    clf = GenerativeClassifier(limited, calibrate=None).fit(rows[["x", "calls"]], y)
    agree(clf, absurd[["x", "calls"]])
    missing = absurd.where(absurd[["x", "calls"]] < 4096.0)[["x", "calls"]]
    np.testing.assert_array_equal(clf.predict_proba(absurd[["x", "calls"]]), clf.predict_proba(missing))
    rows = rows[["x", "calls"]]
    clf = GenerativeClassifier(interactions=[("x", "calls")]).fit(rows, (rows["x"] > 1) ^ (rows["calls"] > 2))
    assert clf.calibration_.calibrator.weights[0] > 0  # of the pair
    agree(clf, absurd[["x", "calls"]])


@pytest.mark.slow
@pytest.mark.skipif(DATA is None, reason="DECIBAN_DATA is not set")
@pytest.mark.parametrize(
    ("file", "label", "without"),
    [
        ("titanic/titanic.csv", "Survived", ["Name", "Ticket", "Cabin"]),
        ("penguins/penguins.csv", None, []),
        ("credit_approval/crx.csv", None, []),
    ],
)
def test_default_models_of_real_tables(file, label, without):
    rows = pd.read_csv(Path(DATA) / file, na_values="?").drop(columns=without)
    label = label or next(name for name in rows.columns if name in ("species", "class", "A16"))
    rows = rows.dropna(subset=[label])
    clf = GenerativeClassifier().fit(rows, label)
    agree(clf, rows.drop(columns=[label]))


def test_what_has_no_query_is_refused():
    clf = GenerativeClassifier(Text()).fit(["red wine", "white bread"] * 5, [0, 1] * 5)
    with pytest.raises(NotAvailableError, match="cannot be written as SQL"):
        clf.to_sql()
    rows, y = table()
    with pytest.raises(InputError, match="'klingon' is unknown"):
        GenerativeClassifier({"x": Gaussian()}).fit(rows[["x"]], y).to_sql("klingon")
