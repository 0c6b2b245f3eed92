"""What columns are taken to be, and that every batch is read alike."""

import datetime as dt
import re
import uuid

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
import scipy.sparse as sp

from deciban.errors import DomainError, HyperparameterError, InputError, MergeError
from deciban.read.arrays import counted_numbers, encode_categories, numbers, plain_numbers
from deciban.read.arrow import without_markers
from deciban.read.files import open_source
from deciban.read.schema import Schema
from deciban.read.tables import MARKERS, Table, dense_numbers, stacked

N = 60


def column(values, kind=None):
    repeated = [values[i % len(values)] for i in range(N)]
    table = Table.of(pa.table({"x": pa.array(repeated), "y": list(range(N))[::-1], "z": [1.5, 2.0] * (N // 2)}))
    return Schema.infer(table, "y", {} if kind is None else {"x": kind}).columns[0]


WORDS = [f"a few words about {i}" for i in range(N)]
KINDS = [
    (["y", "n", None], "yes/no"),
    (["True", "False"], "yes/no"),
    ([True, False], "yes/no"),
    (["0", "1"], "yes/no"),
    (["red", "white", "?"], "category"),
    (["1", "2", "many"], "category"),
    (["3", "17", "NA"], "count"),
    ([3, 17], "count"),
    (["1,234", "56", "7,000,000"], "count"),
    (["-3", "17"], "number"),
    (["1.5", "2e3", "nan"], "number"),
    ([1.5, 2.0, float("nan")], "number"),
    (["2026-01-31", "2026-11-15"], "date"),
    (["2026-01-31T23:43:00Z", "2026-11-15T00:00:01Z"], "date"),
    (["31.12.2025", "01.01.2026"], "date"),
    (["23:59", "00:10"], "date"),
    ([dt.date(2026, 1, 31), dt.date(2026, 11, 15)], "date"),
    ([dt.datetime(2026, 1, 31, 5), dt.datetime(2026, 11, 15, 6)], "date"),
    (WORDS, "text"),
    ([f"AB-{i}" for i in range(N)], "identifier"),
    (list(range(1, N + 1)), "identifier"),
]


@pytest.mark.parametrize(("values", "kind"), KINDS, ids=lambda x: repr(x)[:25] if isinstance(x, list) else x)
def test_kinds_are_found(values, kind):
    found = column(values)
    assert found.kind == kind, str(found)
    assert found.reason


@pytest.mark.parametrize("values", [["always"], [3], [None], ["?"]])
def test_what_never_varies_is_ignored_and_said_so(values):
    table = Table.of(pa.table({"x": pa.array(values * N), "y": ["a", "b", "c"] * (N // 3)}))
    (ignored,) = Schema.infer(table).ignored
    assert ignored.kind == "constant"
    assert str(ignored).endswith("ignored")


def test_numbers_that_vary_freely_are_no_identifiers():
    rng = np.random.default_rng(0)
    assert column(rng.choice(10**6, N, replace=False).tolist()).kind == "count"


def test_a_kind_can_be_declared():
    assert column(["1", "2"], "category").kind == "category"
    assert column(["red", "white"], "text").features == ("x",)
    assert column(["red", "white"], "identifier").features == ()
    with pytest.raises(HyperparameterError, match="'colour' is not one of"):
        column(["red"], "colour")


def test_gaps_are_counted_and_spaces_are_no_part_of_values():
    found = column([" red", "white ", " ?", None])
    assert (found.missing, found.rows, found.trim) == (N // 2, N, True)


def test_a_value_that_spoils_numbers_is_named():
    values = [str(i % 7) for i in range(N - 1)] + ["seven"]
    with pytest.raises(DomainError, match=rf"'x' holds 'seven' \(row {N - 1}\).*kinds="):
        column(values)


def test_a_table_without_anything_to_learn_from_is_refused():
    with pytest.raises(InputError, match="no column to learn from"):
        Schema.infer(Table.of(pa.table({"x": ["same"] * N})))


FRAME = {
    "colour": ["red", "white", None, "red"] * 10,
    "size": [1.5, 2.25, None, 7.0] * 10,
    "when": [dt.datetime(2026, 1, 5, 23), dt.datetime(2026, 2, 3, 4), None, dt.datetime(2026, 2, 4, 4)] * 10,
    "note": [f"some words of row {i}" for i in range(40)],
    "label": [1, 0, 1, 1] * 10,
}


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table])
def test_columns_are_typed_alike_whatever_the_frame(frame):
    table = Table.of(frame(FRAME))
    schema = Schema.infer(table, "label")
    typed = schema.apply(table)
    assert typed.columns == ("colour", "size", "when.year", "when.month", "when.weekday", "when.hour", "note")
    np.testing.assert_array_equal(typed.pick([1])[:4, 0], [1.5, 2.25, np.nan, 7.0])
    assert typed.pick([0])[:4, 0].tolist() == ["red", "white", None, "red"]
    assert typed.pick([3, 4, 5])[0].__array__().tolist() == [["01", "1 Mon", "23"]]
    assert typed.pick([6])[7, 0] == "some words of row 7"
    labels = schema.labels(table)
    assert labels.names == (0, 1)
    np.testing.assert_array_equal(np.asarray(labels), FRAME["label"])


def test_a_file_and_a_frame_have_one_schema(tmp_path):
    path = tmp_path / "x.csv"
    pd.DataFrame(FRAME).to_csv(path, index=False)
    (batch,) = open_source(path).batches()
    ours, theirs = Schema.infer(batch, "label"), Schema.infer(Table.of(pd.DataFrame(FRAME)), "label")
    assert [(c.name, c.kind, c.missing) for c in ours.columns] == [(c.name, c.kind, c.missing) for c in theirs.columns]
    a, b = ours.apply(batch), theirs.apply(Table.of(pd.DataFrame(FRAME)))
    for j in range(a.shape[1]):
        np.testing.assert_array_equal(np.asarray(a.pick([j])), np.asarray(b.pick([j])))
    assert ours.labels(batch).names == theirs.labels(Table.of(pd.DataFrame(FRAME))).names


def test_batches_together_are_the_table():
    table = Table.of(pa.table(FRAME))
    schema = Schema.infer(table, "label")
    parts = [schema.apply(table.take(slice(at, at + 7))) for at in range(0, 40, 7)]
    whole, again = schema.apply(table), stacked(parts)
    for j in range(whole.shape[1]):
        np.testing.assert_array_equal(np.asarray(whole.pick([j])), np.asarray(again.pick([j])))
    rows = np.array([3, 0, 5])
    np.testing.assert_array_equal(np.asarray(whole.take(rows).pick()), np.asarray(whole.pick())[rows])


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table])
def test_selected_columns_are_encoded_as_their_values_are(frame):
    given = Table.of(frame(FRAME))
    for table in (given, Schema.infer(given, "label").apply(given)):
        size, colour, note = (table.select([table.columns.index(name)]) for name in ("size", "colour", "note"))
        assert size.shape == colour.shape == (40, 1)
        np.testing.assert_array_equal(dense_numbers(size, ["size"]), np.array(FRAME["size"], dtype=float)[:, None])
        codes = encode_categories(colour, ["colour"])
        assert codes.names == (("red", "white"),)
        np.testing.assert_array_equal(codes.values[:4, 0], [0, 1, -1, 0])
        assert list(map(str, note.texts()))[7] == "some words of row 7"
        with pytest.raises(InputError, match=r"Text takes one column, not 2\..*'body': Text\(\)") as found:
            table.select([0, 1]).texts()
        assert found.value.remedy in str(found.value)


def test_selected_columns_of_a_sparse_table_stay_sparse():
    X = sp.csr_array(np.array([[0.0, 1.0, 2.0], [3.0, 0.0, 0.0]]))
    columns = Table.of(X).select([2, 0])
    for read in (numbers, plain_numbers, lambda X, names: counted_numbers(X, names)[0]):
        np.testing.assert_array_equal(read(columns, ["c", "a"]).toarray(), [[2, 0], [0, 3]])
    assert Table.of(X).select().shape == (2, 3)


@pytest.mark.parametrize(
    ("column", "value", "says"),
    [
        ("size", "wide", r"'size' holds 'wide' \(row 2\), but it is a number"),
        ("size", "inf", r"'size' holds 'inf' \(row 2\)"),
        ("when", "yesterday", r"'when' holds 'yesterday' \(row 2\), but it is a date"),
        ("when", "2026-02-31", r"'when' holds '2026-02-31' \(row 2\)"),
        ("label", "many", r"label 'many' \(row 2\)"),
        ("label", "?", r"'label' of labels is missing \(row 2\)"),
    ],
)
def test_a_later_value_that_contradicts_the_first_rows_is_named(column, value, says):
    first = pd.DataFrame(FRAME)
    schema = Schema.infer(Table.of(first), "label")
    later = first.astype(str).replace({"None": None, "nan": None, "NaT": None})
    later.loc[2, column] = value
    table = Table.of(later)
    with pytest.raises((DomainError, InputError), match=says):
        schema.labels(table) if column == "label" else schema.apply(table)
    if column != "label":
        bad = []
        assert np.asarray(schema.apply(table, bad).pick())[2] is not None
        assert [error.row for error in bad] == [2]


def test_a_missing_column_is_named():
    schema = Schema.infer(Table.of(pd.DataFrame(FRAME)), "label")
    with pytest.raises(InputError, match="no column 'size'"):
        schema.apply(Table.of(pd.DataFrame(FRAME).drop(columns="size")))


def test_two_schemas_have_a_union():
    one = Schema.infer(Table.of(pd.DataFrame({"a": [1, 2] * 20, "b": ["x"] * 40, "y": ["p", "q"] * 20})), "y")
    two = Schema.infer(Table.of(pd.DataFrame({"a": [1.5, 2] * 20, "b": ["x", "z"] * 20, "c": [True, False] * 20})))
    both = one.union(two)
    assert {c.name: c.kind for c in both.columns} == {"a": "number", "b": "category", "c": "yes/no"}
    assert both.label == "y"
    assert both["a"].rows == 80
    with pytest.raises(MergeError, match="'a' is a count in one"):
        one.union(Schema.infer(Table.of(pd.DataFrame({"a": ["red", "white"] * 20}))))


def test_durations_are_read_as_seconds():
    spans = pd.Series(pd.to_timedelta([90, None, 30.5] * 10, unit="s"))
    frames = (
        pd.DataFrame({"took": spans}),
        pl.DataFrame({"took": [dt.timedelta(seconds=90), None, dt.timedelta(0, 30.5)] * 10}),
    )
    for frame in frames:
        schema = Schema.infer(Table.of(frame))
        assert str(schema.columns[0]) == "took: number (numbers from 30.5 to 90, seconds; 10 of 30 missing)"
        np.testing.assert_array_equal(schema.apply(Table.of(frame)).pick([0]).ravel()[:3], [90.0, np.nan, 30.5])


@pytest.mark.parametrize(
    ("values", "kind", "first"),
    [
        (pd.Series(pd.cut([1.0, 9.0, np.nan] * 10, [0, 5, 10])), "category", "(0, 5]"),
        (pd.Series(pd.arrays.IntervalArray.from_tuples([(0, 5), (5, 10), None] * 10)), "category", "(0, 5]"),
        (pd.Series(pd.PeriodIndex(["2024-03", "2025-01", None] * 10, freq="M")), "date", None),
        (pd.Series([uuid.UUID(int=1), uuid.UUID(int=2), None] * 10), "category", str(uuid.UUID(int=1))),
    ],
    ids=["cut", "intervals", "periods", "uuids"],
)
def test_columns_of_pandas_own_types_are_read(values, kind, first):
    table = Table.of(pd.DataFrame({"a": values}))
    schema = Schema.infer(table)
    assert (schema.columns[0].kind, schema.columns[0].missing) == (kind, 10)
    read = schema.apply(table)
    whole = schema.apply(Table.of(pd.DataFrame({"a": values[:2]})))  # without gaps
    np.testing.assert_array_equal(whole.column(0), read.column(0)[:2])
    if kind == "category":
        assert read.column(0)[:3].tolist() == [first, read.column(0)[1], None]
    else:
        assert read.column(0)[0] == pytest.approx(2024 + 60 / 366)


def test_whole_numbers_beyond_64_bits_are_floats():
    table = Table.of(pd.DataFrame({"a": [10**30, 2 * 10**30] * 5}))
    np.testing.assert_array_equal(Schema.infer(table).apply(table).pick([0])[:2, 0], [1e30, 2e30])


@pytest.mark.parametrize("name", ["ID", "patient_id", "customerId", "row id"])
def test_columns_named_as_identifiers_may_have_a_few_values_twice(name):
    numbers = np.random.default_rng(0).integers(0, 10**7, 100)
    numbers[:5] = numbers[5:10]
    frame = pd.DataFrame({name: numbers, "x": np.arange(100) % 7})
    found = Schema.infer(Table.of(frame))[name]
    assert (found.kind, found.otherwise) == ("identifier", "count")
    assert "95 different whole numbers" in found.reason
    other = Schema.infer(Table.of(frame.rename(columns={name: "humid"})))["humid"]
    assert other.kind == "count"


@pytest.mark.parametrize(
    ("frame", "says"),
    [
        (pd.DataFrame([[1.0, 2.0]], columns=["a", "a"]), "2 columns of the frame are named 'a'"),
        (pd.DataFrame([[1.0, 2.0]], columns=["a", 7]), "mix strings and others: 'a' and 7"),
    ],
)
def test_names_of_columns_that_cannot_be_used_are_refused(frame, says):
    with pytest.raises(InputError, match=says):
        Table.of(frame)


def test_a_single_label_that_is_missing_is_counted_as_one():
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": ["a", None, None]})
    schema = Schema.infer(Table.of(frame), "y")
    for rows, says in ((2, r"missing \(row 1\)\. Drop"), (3, "in 1 row more")):
        with pytest.raises(InputError, match=says):
            schema.labels(Table.of(frame[:rows]))


EDGES = [
    "plain",
    " before",
    "after ",
    "\tboth\n",
    "in the middle",
    "",
    "NA",
    " NA ",
    "\u00a0wide\u00a0",
    "-1.#QNAN",
    "é",
    None,
]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
@pytest.mark.parametrize("trim", [False, True])
def test_markers_and_spaces_are_found_by_the_ends_of_texts_as_by_a_regular_expression(kind, trim):
    rng = np.random.default_rng(0)
    for _ in range(200):
        values = [EDGES[at] for at in rng.integers(0, len(EDGES), rng.integers(0, 4))]
        array = pa.array(["left out", *values, "left out "], kind)[1:-1]
        wanted = array.cast(pa.string()) if pa.types.is_string_view(kind) else array
        if trim and any(re.search(r"^[ \t\n\f\r]|[ \t\n\f\r]\Z", value) for value in values if value):
            wanted = pc.utf8_trim_whitespace(wanted)
        wanted = [None if value in MARKERS else value for value in wanted.to_pylist()]
        assert without_markers(array, trim).to_pylist() == wanted
