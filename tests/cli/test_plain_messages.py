"""Messages that a newcomer meets: what is wrong, and the command that mends it."""

import json

import pytest


@pytest.fixture
def rows(tmp_path, monkeypatch):
    """Files in an empty folder."""
    monkeypatch.chdir(tmp_path)
    lines = [json.dumps({"x": at % 7 + at % 2 * 2.5, "deep": {"z": at}, "y": "ab"[at % 2]}) for at in range(60)]
    (tmp_path / "rows.jsonl").write_text("\n".join(lines) + "\n")
    (tmp_path / "one.csv").write_text("x,y\n" + "".join(f"{at}.5,a\n" for at in range(12)))
    (tmp_path / "other.csv").write_text("u,v\n1,2\n3,4\n")
    return tmp_path


def test_a_nested_column_can_be_ignored(rows, program_here):
    refused = program_here("fit", "rows.jsonl", "--label", "y")
    assert refused.code == 1
    assert "or ignore it: --column 'deep=identifier'" in refused.err
    fitted = program_here("fit", "rows.jsonl", "--label", "y", "--column", "deep=ignore")
    assert fitted.code == 0, fitted.err
    assert "ignored" in fitted.out
    assert program_here("predict", "rows.deciban", "rows.jsonl").code == 0


def test_a_label_of_one_class_is_reported(rows, program_here):
    told = program_here("fit", "one.csv", "--label", "y").out
    assert "the label has one class, so that every row is predicted as 'a'" in told
    assert "-0.000" not in told
    assert next(line for line in told.splitlines() if line.startswith("Cllr")).endswith(
        "–     needs rows of every class"
    )
    refused = program_here("recalibrate", "one.deciban", "one.csv")
    assert "a calibration needs rows of two classes" in refused.err


def test_a_file_without_the_columns_is_named_once_and_the_remedy_is_an_option(rows, program_here):
    assert program_here("fit", "one.csv", "--label", "y").code == 0
    answered = program_here("predict", "one.deciban", "other.csv")
    assert answered.code == 2
    assert "other.csv has none of the columns of the model: 'x'. It has 'u', 'v'." in answered.err
    learnt = program_here("learn", "one.deciban", "other.csv")
    assert learnt.err.count("other.csv") == 1
    assert "--class" in learnt.err


def test_a_model_of_another_kind_is_refused_with_the_command_that_makes_the_right_one(rows, program_here):
    assert program_here("cluster", "one.csv", "-k", "1", "--ignore", "y", "--save", "c.deciban").code == 0
    refused = program_here("explain", "c.deciban", "one.csv")
    assert "c.deciban holds a MixtureModel; this command needs a GenerativeClassifier (deciban fit)." in refused.err


def test_the_encoding_that_is_proposed_has_the_bytes(rows, program_here):
    for price, encoding in (("5 €", "cp1252"), ("5 £", "latin-1")):
        (rows / "prices.csv").write_bytes(("price,y\n" + f"{price},a\n{price},b\n" * 30).encode(encoding))
        refused = program_here("fit", "prices.csv", "--label", "y")
        assert f"--read-as encoding={encoding}" in refused.err


def test_a_class_that_is_no_number_is_refused_where_classes_are_numbers(rows, program_here):
    (rows / "numbers.csv").write_text("x,y\n" + "".join(f"{at % 7}.5,{at % 2}\n" for at in range(40)))
    assert program_here("fit", "numbers.csv", "--label", "y").code == 0
    refused = program_here("learn", "numbers.deciban", "numbers.csv", "--class", "x")
    assert refused.code == 2
    assert "'x' is no whole number, as the classes of the model are: 0, 1" in refused.err


def test_a_file_that_is_no_model_is_refused_with_the_command(rows, program_here):
    refused = program_here("predict", "one.csv")
    assert "one.csv is not a model file of deciban. Give a file that deciban fit has written." in refused.err
