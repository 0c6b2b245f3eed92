"""Errors name the place of a row in the input, however the rows were cut, skipped or selected before."""

import pickle

import numpy as np
import pandas as pd
import pytest

from deciban import Gaussian, GenerativeClassifier, Poisson
from deciban.cli.process import as_option
from deciban.errors import HERE, Argument, DomainError, InputError, NotLearntError, Remedy, SaveError, UnknownLabelError
from deciban.read.codes import place_labels
from deciban.read.files import open_source
from deciban.read.schema import Schema
from deciban.read.source import REASONS
from deciban.read.tables import HEAD, Table, stacked


def bad_value(row):
    return DomainError("column 'x' holds -3 (", HERE, ").", row=row, columns=["x"], remedy="Drop the row.")


def located(table, error):
    with pytest.raises(type(error)) as found, table.located():
        raise error
    return found.value


# -- the error ---------------------------------------------------------------------------------------------------------
def test_a_place_stands_where_the_row_stood():
    error = bad_value(17)
    moved = error.at("train.csv, line 19", 19)
    assert str(error) == "column 'x' holds -3 (row 17). Drop the row."
    assert str(moved) == "column 'x' holds -3 (train.csv, line 19). Drop the row."
    assert (type(moved), moved.row, moved.columns, moved.remedy) == (DomainError, 19, ("x",), "Drop the row.")
    assert moved.at("elsewhere", 3) is moved
    assert str(InputError("no columns.").at("train.csv")) == "train.csv: no columns."


def test_values_that_look_like_a_place_stay_as_they_are():
    error = DomainError("column '(row 3)' holds '{row} HERE' (", HERE, ").", row=5)
    assert str(error.at("a.csv, line 7", 7)) == "column '(row 3)' holds '{row} HERE' (a.csv, line 7)."


@pytest.mark.parametrize("kind", [DomainError, SaveError, UnknownLabelError])
def test_an_error_survives_pickling_and_raising_from_another(kind):
    remedy = Remedy("Skip it (", Argument("skip_bad", True), ").")
    error = kind("x (", HERE, ")", row=3, columns=["a", 2], label="b", remedy=remedy).at("f.csv, line 4", 4)
    with pytest.raises(kind) as found:
        raise error from KeyError("y")
    again = pickle.loads(pickle.dumps(found.value))
    assert (type(again), str(again), vars(again)) == (kind, str(error), vars(error))
    assert again.text(as_option) == "x (f.csv, line 4) Skip it (--skip-bad)."
    assert isinstance(found.value.__cause__, KeyError)


def test_the_cause_of_an_error_stays_when_it_is_located():
    table = Table.of(np.zeros((5, 1))).take([4, 1])
    with pytest.raises(DomainError, match=r"\(row 1\)") as found, table.located():
        raise bad_value(1) from KeyError("y")
    assert isinstance(found.value.__cause__, KeyError)


@pytest.mark.parametrize(
    ("argument", "python", "option"),
    [
        (Argument("kinds", {"size, cm": "category"}), "kinds={'size, cm': 'category'}", "--column 'size, cm=category'"),
        (Argument("format", "csv"), "format='csv'", "--read-as csv"),
        (Argument("encoding", "latin-1"), "encoding='latin-1'", "--read-as encoding=latin-1"),
        (Argument("quote", False), "quote=False", "--read-as quote=none"),
        (Argument("rule", "ml"), "rule='ml'", "rule='ml'"),
    ],
)  # fmt: skip
def test_an_argument_is_written_in_python_or_as_an_option(argument, python, option):
    error = InputError("no.", remedy=Remedy("Try ", argument, "."))
    assert str(error) == f"no. Try {python}."
    assert error.text(as_option) == f"no. Try {option}."


def test_a_label_that_is_not_known_is_an_error_of_its_own():
    with pytest.raises(UnknownLabelError) as found:
        place_labels(["a", "z"], 2, ("a", "b"))
    assert found.value.label == "z"
    frame = pd.DataFrame({"x": [1.0, 2.0, 4.0, 3.0]})
    clf = GenerativeClassifier({"x": Gaussian()}).fit(frame, list("abab"))
    with pytest.raises(NotLearntError) as found:
        clf.leave_one_out(frame, list("abaz"))
    assert found.value.label == "z"
    assert found.value.remedy in str(found.value)


# -- tables ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("frame", [False, True])
def test_rows_taken_from_rows_keep_their_numbers(frame):
    X = np.arange(20.0).reshape(10, 2)
    table = Table.of(pd.DataFrame(X, columns=["a", "b"]) if frame else X)
    assert located(table, bad_value(3)).row == 3
    some = table.take(slice(4, 10)).take(np.array([True, False, True, True, False, True]))
    for row, given in enumerate([4, 6, 7, 9]):
        error = located(some, bad_value(row))
        assert (error.row, str(error)) == (given, f"column 'x' holds -3 (row {given}). Drop the row.")
        assert located(table.take([given]), located(some, bad_value(row))).row == given  # located once, not twice


def test_typed_and_joined_tables_keep_the_place_of_their_rows(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n" + "".join(f"{i}.5,{i % 3}\n" for i in range(100)))
    batches = list(open_source(path).batches(30))
    schema = Schema.infer(batches[0])
    whole = stacked([schema.apply(batch).take([2, 29]) for batch in batches[:3]])
    for row, line in enumerate([4, 31, 34, 61, 64, 91]):
        error = located(whole, bad_value(row))
        assert error.row == line
        assert str(error).startswith(f"column 'x' holds -3 ({path}, line {line})")


def test_a_frame_of_many_rows_is_counted_through(monkeypatch):
    n = HEAD + 500
    frame = pd.DataFrame({"x": np.random.default_rng(0).poisson(3, n).astype(float)})
    labels = np.array(["a", "b"] * (n // 2))
    frame.loc[HEAD + 464, "x"] = -3
    with pytest.raises(DomainError) as found:
        GenerativeClassifier({"x": Poisson()}).fit(frame, labels)
    assert (found.value.row, found.value.columns) == (HEAD + 464, ("x",))
    weight = np.ones(n)
    weight[[5, 17, HEAD + 1]] = 0  # rows that are as if absent
    with pytest.raises(DomainError, match=f"row {HEAD + 464}"):
        GenerativeClassifier({"x": Poisson()}).fit(frame, labels, weight)


# -- skipped rows ------------------------------------------------------------------------------------------------------
def written(path, lines, rows):
    text = ["x,label", *(f"{i % 7},{'ab'[i % 2]}" for i in range(rows))]
    for line, given in lines.items():
        text[line - 1] = given
    path.write_text("\n".join(text) + "\n")
    return path


def test_rows_skipped_on_both_sides_of_a_batch_border_are_named_by_line(tmp_path):
    bad = {7: "much,a", 40: "3,", HEAD + 1: "much,b", HEAD + 2: "much,a", HEAD + 300: "3", 66_002: "much,b"}
    path = written(tmp_path / "rows.csv", bad, HEAD + 600)
    source = open_source(path, skip_bad=True)
    clf = GenerativeClassifier({"x": Poisson()}).fit(source, "label")
    assert source.skipped.rows == 6
    assert float(clf.stats_.rows.sum()) == HEAD + 600 - 6
    assert sorted(reason.row for reason in source.skipped.reasons if reason.row) == [7, HEAD + 1, HEAD + 2]
    path = written(tmp_path / "rows.csv", {line: bad[line] for line in (7, HEAD + 2, 66_002)}, HEAD + 600)
    source = open_source(path, skip_bad=True)
    clf.learn(source, "label")
    assert [reason.row for reason in source.skipped.reasons] == [7, HEAD + 2, 66_002]
    assert "(rows.csv, line 66002)" in str(source.skipped).replace(f"{tmp_path}/", "")


def test_a_value_refused_behind_skipped_rows_is_named_by_line(tmp_path):
    bad = {7: "much,a", HEAD: "3,", HEAD + 3: "much,b", 66_002: "-3,a"}
    source = open_source(written(tmp_path / "rows.csv", bad, HEAD + 600), skip_bad=True)
    with pytest.raises(DomainError, match="holds -3") as found:
        GenerativeClassifier({"x": Poisson()}).fit(source, "label")
    assert found.value.row == 66_002


def test_the_place_is_looked_up_for_the_rows_that_are_reported_alone(tmp_path, monkeypatch):
    lines = dict.fromkeys(range(5, 45), "much,a")
    source = open_source(written(tmp_path / "rows.csv", lines, 1000), skip_bad=True)
    asked, place = [], source.place
    monkeypatch.setattr(source, "place", lambda row: asked.append(row) or place(row))
    GenerativeClassifier({"x": Poisson()}).fit(source, "label")
    assert source.skipped.rows == 40
    assert len(asked) == len(source.skipped.reasons) == REASONS


def test_a_file_of_which_every_row_is_skipped_has_no_rows(tmp_path):
    clf = GenerativeClassifier({"x": Poisson()}).fit(written(tmp_path / "good.csv", {}, 50), "label")
    source = open_source(written(tmp_path / "bad.csv", {2: "much,a", 3: "1,"}, 2), skip_bad=True)
    with pytest.raises(InputError, match=r"bad\.csv holds no rows\. 2 rows skipped"):
        clf.learn(source, "label")
