"""`deciban export`: the query gives the answers of `deciban predict` in DuckDB and in SQLite."""

import os
import sqlite3
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

duckdb = pytest.importorskip("duckdb")
DATA = os.environ.get("DECIBAN_DATA")
PRINTED = 1e-6  # `predict` writes six digits


def in_duckdb(rows, query):
    with duckdb.connect(config={"threads": 1}) as base:
        base.register("rows", rows)
        return base.execute(query).df()


def in_sqlite(rows, query):
    base = sqlite3.connect(":memory:")
    rows.to_sql("rows", base, index=False)
    found = pd.read_sql_query(query.strip().removesuffix(";"), base)
    base.close()
    return found


def compare(call, rows, model):
    """Both databases, and the command on a file of the same rows."""
    rows = rows.reset_index(drop=True)
    rows.to_csv("rows.csv", index=False)
    assert call("predict", model, "rows.csv", "-o", "answers.csv").code == 0
    answers = pd.read_csv("answers.csv")
    names = [name for name in answers if name.startswith("P(")]
    assert names
    for dialect, run in (("duckdb", in_duckdb), ("sqlite", in_sqlite)):
        options = ["--table", "rows", "--keep", "number", "--dialect", dialect, "-o", f"{dialect}.sql"]
        assert call("export", model, *options).code == 0
        found = run(rows.assign(number=np.arange(len(rows))), Path(f"{dialect}.sql").read_text())
        found = found.sort_values("number").reset_index(drop=True)
        np.testing.assert_allclose(found[names].astype(float), answers[names], atol=PRINTED, rtol=0)
        assert (found["prediction"] == answers["prediction"]).all()  # numbers may be 0 here and 0.0 there


def test_the_query_of_the_demonstration_gives_the_answers_of_predict(here, said):
    compare(said, pd.read_csv("new.csv"), "tumours.deciban")


def test_an_existing_file_that_is_no_query_is_kept(here, said):
    Path("notes.sql").write_text("mine")
    done = said("export", "tumours.deciban", "-o", "notes.sql")
    assert done.code != 0
    assert Path("notes.sql").read_text() == "mine"


@pytest.mark.slow
@pytest.mark.skipif(DATA is None, reason="DECIBAN_DATA is not set")
@pytest.mark.parametrize(
    ("file", "label", "without"),
    [
        ("penguins/penguins.csv", "species", []),
        ("titanic/titanic.csv", "Survived", ["Name", "Ticket", "Cabin"]),
        ("credit_approval/crx.csv", "A16", []),
    ],
)
def test_real_tables(said_alone, file, label, without):
    rows = pd.read_csv(Path(DATA) / file, na_values="?").drop(columns=without).dropna(subset=[label])
    rows.to_csv("learnt.csv", index=False)
    assert said_alone("fit", "learnt.csv", "--label", label, "-o", "model.deciban").code == 0
    compare(said_alone, rows.drop(columns=[label]), "model.deciban")
