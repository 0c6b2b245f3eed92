"""One row at a time: dicts, sequences and texts are answered as frames and arrays are."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from deciban import Categorical, Gaussian, GenerativeClassifier, Poisson, Text
from deciban.errors import DecibanError, InputError
from deciban.read.columns import Column
from deciban.read.schema import Schema, typed_table
from deciban.read.tables import Table

ODD = [
    1.5, -3, 2**60, 0, float("nan"), None, True, False, "red", " red", "NA", "", "3", "1e3", "x ", "ä", "Ⅻ", "inf",
]  # fmt: skip
SCHEMA = Schema((Column("number", "number", ""), Column("name", "category", "", trim=True), Column("text", "text", "")))


def mixed(n=300, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    frame = pd.DataFrame(
        {
            "height": rng.normal(170, 9, n) + 4 * y,
            "visits": rng.poisson(2 + y, n),
            "colour": rng.choice(["red", "green", "blue"], n),
            "smokes": rng.choice([True, False], n),
            "note": rng.choice(["late again", "paid in full", "no answer yet", "called twice today"], n),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 700, n), "D"),
        }
    )
    frame.loc[rng.choice(n, 20, replace=False), "height"] = np.nan
    frame.loc[rng.choice(n, 20, replace=False), "colour"] = None
    return frame, np.array(["a", "b", "c"])[y]


def as_dicts(frame):
    return [
        {name: value for name, value in row.items() if value is not None and value == value}
        for row in frame.to_dict("records")
    ]


@pytest.mark.parametrize("dates", [False, True])
def test_dicts_are_answered_as_the_frame_is(dates):
    frame, y = mixed()
    frame = frame if dates else frame.drop(columns="day")
    clf = GenerativeClassifier(kinds={"note": "text"}).fit(frame, y)
    expected = clf.predict_proba(frame)
    rows = as_dicts(frame.assign(day=frame["day"].dt.strftime("%Y-%m-%d")) if dates else frame)
    score = clf.scorer()
    for at in range(12):
        np.testing.assert_allclose(clf.predict_proba(frame[at : at + 1]), expected[at : at + 1], rtol=1e-12)
        np.testing.assert_allclose(list(score.predict_proba(rows[at]).values()), expected[at], rtol=1e-12)
        assert score.predict(rows[at]) == clf.predict(frame[at : at + 1])[0]
    np.testing.assert_allclose(clf.predict_proba(rows), expected, rtol=1e-12)


@pytest.mark.parametrize("structure", ["full", "tied", "diagonal", "spherical"])
@pytest.mark.parametrize("rule", ["mean", "predictive"])
def test_a_sequence_of_numbers_is_answered_as_the_array_is(structure, rule):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(60, 4)), np.arange(60) % 3
    clf = GenerativeClassifier(Gaussian(structure), rule=rule).fit(X, y)
    score, expected = clf.scorer(prior="uniform"), clf.predict_log_proba(X, prior="uniform")
    for row in (X[0], X[0].tolist(), tuple(X[0])):
        np.testing.assert_allclose(score(row), expected[0], rtol=1e-12)
    if structure != "full":
        gap = [X[1, 0], None, np.nan, X[1, 3]]
        np.testing.assert_allclose(score(gap), clf.predict_log_proba([gap], prior="uniform")[0], rtol=1e-12)


def test_names_that_are_numbers_and_columns_of_given_families():
    frame, y = mixed()
    frame = frame.dropna(subset=["height"]).assign(colour=frame["colour"].fillna("none"))
    y = y[frame.index]
    clf = GenerativeClassifier(
        {"height": Gaussian("diagonal"), "visits": Categorical(), "colour": Categorical(), "note": Text()},
    ).fit(frame[["height", "visits", "colour", "note"]], y)
    expected = clf.predict_log_proba(frame[["height", "visits", "colour", "note"]])
    score = clf.scorer()
    for at, row in enumerate(as_dicts(frame[["height", "visits", "colour", "note"]])[:10]):
        np.testing.assert_allclose(score(row), expected[at], rtol=1e-12)


def test_a_classifier_is_fitted_on_dicts():
    frame, y = mixed()
    frame = frame.drop(columns=["day", "note"])
    one = GenerativeClassifier().fit(frame, y)
    two = GenerativeClassifier().fit(as_dicts(frame), y)
    np.testing.assert_allclose(two.predict_proba(as_dicts(frame)), one.predict_proba(frame), rtol=1e-12)
    assert [two.predict_one(row) for row in as_dicts(frame)[:5]] == one.predict(frame)[:5].tolist()


def test_unknown_columns_and_impossible_values_of_a_dict_are_refused():
    frame, y = mixed()
    clf = GenerativeClassifier().fit(frame[["height", "colour"]], y)
    score = clf.scorer()
    with pytest.raises(InputError, match="colour"):
        score({"height": 170.0, "color": "red"})
    with pytest.raises(DecibanError, match="height"):
        score({"height": "tall"})
    with pytest.raises(DecibanError):
        score({"height": float("inf")})
    with pytest.raises(InputError, match="columns"):
        score("a text")
    with pytest.raises(InputError, match="dict"):
        GenerativeClassifier().fit([{"a": 1.0}, 3, {"a": 2.0}], [0, 1, 0])
    with pytest.raises(InputError, match="mixes"):
        GenerativeClassifier().fit([{"a": 1.0}, {"a": "x"}], [0, 1])
    numbers = GenerativeClassifier(Poisson()).fit([[1.0, 2.0], [3.0, 4.0]], [0, 1]).scorer()
    with pytest.raises(InputError, match="2 numbers"):
        numbers([1.0])
    with pytest.raises(DecibanError):
        numbers([-1.0, 2.0])


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_a_few_rows_are_typed_as_many_are(make):
    """Plain Python and Arrow give the same typed columns, or the same refusal, for every value."""
    for name in ("number", "name", "text"):
        for value in ODD:
            if name == "text" and not isinstance(value, str):
                continue
            columns = {"number": [1.0], "name": ["a"], "text": ["b"]} | {name: [value]}
            table = Table.of(make(columns))
            try:
                expected = SCHEMA.apply(table)
            except DecibanError as error:
                with pytest.raises(type(error)):
                    typed_table(table, SCHEMA)
                continue
            found = typed_table(table, SCHEMA)
            for ours, theirs in zip(found.data.values, expected.data.values):
                if isinstance(theirs, tuple):
                    assert (ours[0].tolist(), ours[1]) == (theirs[0].tolist(), theirs[1]), (name, value)
                elif isinstance(theirs, np.ndarray):
                    np.testing.assert_array_equal(ours, theirs, err_msg=f"{name} {value!r}")
                else:
                    assert ours.to_pylist() == theirs.to_pylist(), (name, value)
