"""Sums by GROUP BY in DuckDB and SQLite: equal to those of one machine that reads the same rows from a file."""

import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import duckdb
import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deciban
from deciban import Bernoulli, Binned, Categorical, Gaussian, GenerativeClassifier, Poisson, Text, Transformed
from deciban.engines import database
from deciban.engines.database import SqlTable
from deciban.errors import DecibanError, DomainError, EngineError, InputError, NotAvailableError
from engine_rows import ROWS, assert_equal_models, columns, documents

CLASSES = np.array(["p", "q", "r"])


def measurements(n: int = ROWS) -> pa.Table:
    """All kinds of columns; gaps as NULL and as NaN, numbers far beyond the others, names with blanks and markers."""
    rng = np.random.default_rng(1)
    code = rng.integers(0, 3, n)
    x = rng.normal(code, 1.0, n)
    gap = rng.random(n) < 0.02
    return pa.table(
        {
            "plain": pa.array(np.where(gap, np.nan, x), from_pandas=True),
            "far": np.where(rng.random(n) < 5e-4, 1e9 * x, x),
            "nan": np.where(gap, np.nan, 3 * x + 1),
            "wait": pa.array(np.where(gap, np.nan, rng.exponential(1 + code)), from_pandas=True),
            "income": np.exp(rng.normal(code, 0.7)),
            "flag": (rng.random(n) < 0.3 + 0.1 * code).astype(np.int8),
            "calls": rng.poisson(2 + code),
            "colour": pa.array(rng.choice(["a ", " b", "c", "NA", None], n, p=[0.4, 0.2, 0.2, 0.1, 0.1]).tolist()),
            "one": x + rng.normal(size=n),
            "two": x - rng.normal(size=n),
            "label": CLASSES[code],
        }
    )


@pytest.fixture(scope="module")
def rows():
    return measurements()


@pytest.fixture(scope="module")
def path(rows, tmp_path_factory):
    found = tmp_path_factory.mktemp("rows") / "rows.parquet"
    pq.write_table(rows, found)
    return str(found)


@pytest.fixture
def relation(rows):
    connection = duckdb.connect()
    connection.register("given", rows)
    connection.execute("CREATE TABLE measured AS SELECT * FROM given")
    yield connection.table("measured")
    connection.close()


@pytest.fixture
def scanned(monkeypatch):
    """The columns of all scans."""
    found = []
    pieces = database.TableSource.pieces
    monkeypatch.setattr(
        database.TableSource, "pieces", lambda self: (self.first or found.append(self.columns), pieces(self))[1]
    )
    return found


FAMILIES = {
    "plain": Gaussian("diagonal"),
    "far": Gaussian("diagonal"),
    "nan": Gaussian("diagonal"),
    "wait": Binned(edges=[[0.5, 1, 2, 4]], limit=[9.0]),  # exponential numbers with a mean of 1 to 3
    "income": Transformed("log"),
    "flag": Bernoulli(),
    "calls": Poisson(),
    "colour": Categorical(),
    ("one", "two"): Gaussian("full"),
}


@pytest.mark.parametrize(
    ("families", "calibrate"),
    [
        (FAMILIES, None),
        ({("one", "far", "two"): Gaussian("tied"), "wait": Transformed("yeo-johnson")}, "offsets"),
    ],
)
def test_a_relation_gives_the_model_of_one_machine_without_a_scan(relation, path, scanned, families, calibrate):
    one = GenerativeClassifier(families, calibrate=calibrate).fit(path, "label")
    two = GenerativeClassifier(families, calibrate=calibrate).fit(relation, "label")
    assert scanned == []
    assert_equal_models(one.model_, two.model_)
    if calibrate:
        assert two.calibration_.fitted_on == ROWS
    some = pq.read_table(path).slice(ROWS - 300)
    np.testing.assert_allclose(two.predict_proba(some), one.predict_proba(some), atol=1e-9)


def test_pairs_of_columns_and_gaps_are_counted_in_the_database(tmp_path, scanned):
    pq.write_table(columns(ROWS), tmp_path / "rows.parquet")
    one = GenerativeClassifier().fit(tmp_path / "rows.parquet", "label")
    with duckdb.connect() as connection:
        two = GenerativeClassifier().fit(connection.read_parquet(str(tmp_path / "rows.parquet")), "label")
    assert set(two.model_.family.experts) == {"pairs", "gaps"}
    assert scanned == []
    assert_equal_models(one.model_, two.model_)
    some = columns(500, 9).drop(["label"])
    np.testing.assert_allclose(two.predict_proba(some), one.predict_proba(some), atol=1e-12)


def test_texts_are_scanned_and_other_columns_are_not(tmp_path, scanned):
    rows = columns(ROWS).append_column("text", documents(ROWS)["text"])
    pq.write_table(rows, tmp_path / "rows.parquet")
    family = {"text": Text(), "colour": Categorical()}
    one = GenerativeClassifier(family, calibrate="offsets").fit(tmp_path / "rows.parquet", "label")
    with duckdb.connect() as connection:
        relation = connection.read_parquet(str(tmp_path / "rows.parquet"))
        two = GenerativeClassifier(family, calibrate="offsets").fit(relation, "label")
        assert scanned == [("text", "label")]
        assert_equal_models(one.model_, two.model_)
        answers = two.predict(relation.limit(200).project("text, colour, size, calls + 0 AS calls"))
        assert answers.columns == ["text", "colour", "size", "calls", "prediction"]
        assert [row[-1] for row in answers.fetchall()] == one.predict(rows.slice(0, 200).to_pandas()).tolist()


def test_a_relation_is_answered_by_a_relation(relation, rows):
    clf = GenerativeClassifier({"plain": Gaussian("diagonal"), "calls": Poisson()}, calibrate=None)
    clf.fit(relation, "label")
    answers = clf.predict_proba(relation, prior="uniform")
    assert answers.columns == [*rows.column_names, "P(p)", "P(q)", "P(r)"]
    found = np.array(answers.project('"P(p)", "P(q)", "P(r)"').limit(50).fetchall())
    np.testing.assert_allclose(found, clf.predict_proba(rows.slice(0, 50), prior="uniform"), atol=1e-9)
    with pytest.raises(NotAvailableError, match="decision_function"):
        clf.decision_function(relation)


def test_sqlite_gives_the_same_sums(rows, path, scanned):
    connection = sqlite3.connect(":memory:")
    kept = ["far", "wait", "flag", "calls", "colour", "one", "two", "label"]
    connection.execute(f"CREATE TABLE measured ({', '.join(kept)})")
    values = zip(*(rows[name].to_pylist() for name in kept))
    connection.executemany(f"INSERT INTO measured VALUES ({', '.join('?' * len(kept))})", values)
    family = {key: each for key, each in FAMILIES.items() if key not in ("plain", "nan", "income")}
    one = GenerativeClassifier(family, calibrate="offsets").fit(path, "label")
    table = SqlTable(connection, "measured")
    two = GenerativeClassifier(family, calibrate="offsets").fit(table, "label")
    assert scanned == []
    assert_equal_models(one.model_, two.model_)
    with pytest.raises(NotAvailableError, match=re.escape("clf.to_sql('sqlite', table='measured')")):
        two.predict(table)


def test_a_bad_value_is_named_by_its_row(relation):
    bad = relation.query("rows", f"SELECT * REPLACE (CASE WHEN i = {ROWS} THEN -3 ELSE calls END AS calls) "
                                 "FROM (SELECT *, ROW_NUMBER() OVER () AS i FROM rows)")  # fmt: skip
    with pytest.raises(DomainError, match=rf"column 'calls' holds -3 \(the relation, row {ROWS}\)"):
        GenerativeClassifier({"calls": Poisson()}).fit(bad, "label")
    gone = relation.query("rows", f"SELECT * REPLACE (CASE WHEN i = {ROWS - 1} THEN NULL ELSE label END AS label) "
                                  "FROM (SELECT *, ROW_NUMBER() OVER () AS i FROM rows)")  # fmt: skip
    with pytest.raises(InputError, match=rf"column 'label' of labels is missing \(the relation, row {ROWS - 1}\)"):
        GenerativeClassifier({"calls": Poisson()}).fit(gone, "label")
    broken = relation.query("rows", "SELECT *, CASE WHEN calls > 9 THEN error('disk') ELSE 1.5 END AS more FROM rows")
    clf = GenerativeClassifier({"more": Gaussian("diagonal")})
    with pytest.raises(EngineError, match="the database failed"):
        clf.fit(broken, "label")
    assert not clf.__sklearn_is_fitted__()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda table: table.drop(["calls"]), "lacks 'calls'"),
        (lambda table: table.append_column("more", pa.array([1] * len(table))), "has also 'more'"),
        (lambda table: table.set_column(2, "calls", pa.array(["many"] * len(table))), "column 'calls' is of type text"),
    ],
)
def test_a_file_with_another_schema_is_named(tmp_path, change, said):
    pq.write_table(columns(100), tmp_path / "000.parquet")
    pq.write_table(change(columns(100)), tmp_path / "001.parquet")
    clf = GenerativeClassifier({"calls": Poisson()})
    with deciban.engine("duckdb"), pytest.raises(InputError, match=r"001\.parquet") as found:
        clf.fit(f"{tmp_path}/*.parquet", "label")
    assert said in str(found.value)
    assert not clf.__sklearn_is_fitted__()


@pytest.mark.parametrize(
    ("column", "values", "row"),
    [("label", pa.array([None] * 100, pa.string()), 1), ("calls", pa.array([1] * 30 + [-3] * 70), 31)],
)
def test_a_bad_row_behind_the_first_ones_is_named_by_its_file(tmp_path, column, values, row):
    pq.write_table(columns(ROWS), tmp_path / "000.parquet")
    pq.write_table(columns(50), tmp_path / "001.parquet")
    rows = columns(100)
    at = rows.column_names.index(column)
    pq.write_table(rows.set_column(at, column, values), tmp_path / "002.parquet", row_group_size=20)
    with deciban.engine("duckdb"), pytest.raises(DecibanError, match=rf"002\.parquet, row {row}\b"):
        GenerativeClassifier({"calls": "poisson"}, calibrate=None).fit(f"{tmp_path}/*.parquet", "label")


def test_a_file_that_vanishes_during_a_fit_is_named(tmp_path, monkeypatch):
    pq.write_table(columns(ROWS), tmp_path / "000.parquet")
    pq.write_table(columns(100), tmp_path / "001.parquet")
    counted = database.sql_sums.class_rows

    def removing(given):
        (tmp_path / "001.parquet").unlink()
        return counted(given)

    monkeypatch.setattr(database.sql_sums, "class_rows", removing)
    clf = GenerativeClassifier({"calls": Poisson()})
    with deciban.engine("duckdb"), pytest.raises(EngineError, match=r"001\.parquet.* No model was made"):
        clf.fit(f"{tmp_path}/*.parquet", "label")
    assert not clf.__sklearn_is_fitted__()


def test_an_interrupted_query_is_an_interruption_and_another_failure_names_the_rows():
    class Failing:
        columns, types = ("x",), ("DOUBLE",)

        def __init__(self, error):
            self.error = error

        def query(self, name, text):
            raise self.error

    with pytest.raises(KeyboardInterrupt):
        database.Relation(Failing(RuntimeError("Query interrupted")), "logs").query("SELECT 1")
    with pytest.raises(EngineError, match=r"logs: the database failed \(disk full\)"):
        database.Relation(Failing(RuntimeError("disk full")), "logs").query("SELECT 1")


def test_a_ledger_has_every_row_of_a_relation(relation, rows):
    clf = GenerativeClassifier({"calls": Poisson()}, calibrate=None, ledger=True).fit(relation, "label")
    assert clf.ledger_.count.sum() == ROWS
    assert clf.unlearn(rows.slice(0, 10), "label").ledger_.count.sum() == ROWS - 10


def test_the_command_line_fits_parquet_files_in_duckdb(tmp_path):
    path, model = str(tmp_path / "rows.parquet"), str(tmp_path / "m.deciban")
    pq.write_table(columns(ROWS).select(["calls", "label"]), path)
    arguments = ["fit", path, "--label", "label", "--engine", "duckdb", "--calibrate", "none", "--no-ledger"]
    run = subprocess.run([sys.executable, "-m", "deciban", *arguments, "--quiet", "-o", model], capture_output=True)
    assert run.returncode == 0, run.stderr
    assert deciban.load(model).stats_.rows.sum() == ROWS


@pytest.mark.parametrize("address", ["", "memory://deciban/rows.parquet"])
def test_the_engine_of_a_with_statement_reads_parquet_files_also_at_an_address(path, scanned, address):
    fsspec.filesystem("memory").pipe("/deciban/rows.parquet", Path(path).read_bytes())
    family = {"calls": Poisson(), "colour": Categorical()}
    one = GenerativeClassifier(family, calibrate=None).fit(path, "label")
    with deciban.engine("duckdb"):
        two = GenerativeClassifier(family, calibrate=None).fit(address or path, "label")
    assert scanned == []
    assert_equal_models(one.model_, two.model_)
