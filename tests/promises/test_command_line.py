"""What the command line promises: what it says, what it refuses, and what it never destroys."""

from __future__ import annotations

import csv
import mailbox
import os
import stat
import warnings
from email.message import EmailMessage
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from deciban import GenerativeClassifier, demo, load
from deciban.cli.process import run
from deciban.demo import write_table
from deciban.errors import ImpossibleRowWarning


@pytest.fixture
def deciban(tmp_path, monkeypatch, capfd):
    """The program in an empty folder: exit code, and what it printed."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str, code: int = 0):
        capfd.readouterr()
        found = run(list(arguments))
        out, err = capfd.readouterr()
        assert found == code, f"{found}: {out}{err}"
        return SimpleNamespace(out=out, err=err, all=out + err)

    return call


@pytest.fixture
def tumours(deciban, tmp_path):
    """The files of the demonstration, and a model of them."""
    write_table(tmp_path)
    deciban("fit", "tumours.csv", "--label", "diagnosis", "--quiet")
    return tmp_path


def write(path, **columns):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values()))


def column_line(report, name):
    """The line of a column in the report of `fit`."""
    return next(line for line in report.splitlines() if line.startswith(f"{name} "))


# -- 14: a column that gives the label away ----------------------------------------------------------------------------
def test_how_often_one_column_predicts_the_label_is_counted_over_all_rows_and_left_out(deciban):
    rng = np.random.default_rng(0)
    y = np.array(["a", "b"])[rng.integers(0, 2, 6000)]
    told = np.where(
        np.arange(6000) < 3000, y, np.where(rng.random(6000) < 0.03, "?!", y)
    )  # wrong in the second half only
    write("leak.csv", told=told, noise=rng.normal(size=6000).round(3), y=y)
    warning = next(
        line for line in deciban("fit", "leak.csv", "--label", "y").out.splitlines() if "'told' alone" in line
    )
    assert "of 4,000 rows, each left out in turn" in warning
    share = float(warning.split("the class of ")[1].split(" %")[0])
    assert 98.0 <= share <= 99.5  # 98.5 % of all rows; of the first rows all


def test_a_value_that_occurs_once_is_not_counted_as_known(deciban):
    rng = np.random.default_rng(1)
    y = np.array(["a", "b"])[rng.integers(0, 2, 400)]
    write("once.csv", code=[f"code {i // 2 * 2 % 398} x" for i in range(400)], size=rng.normal(size=400).round(2), y=y)
    report = deciban("fit", "once.csv", "--label", "y", "--column", "code=category").out
    assert "'code' alone" not in report  # a class of its own for each pair of rows: right only where the row was learnt


# -- 15: a label of numbers --------------------------------------------------------------------------------------------
def prices(n=298):
    rng = np.random.default_rng(2)
    rooms = rng.integers(1, 9, n)
    write("houses.csv", rooms=rooms, garden=rng.normal(size=n).round(3), price=1000 * rooms * n + np.arange(n))


def test_a_label_of_very_many_numbers_is_refused_with_the_remedy(deciban):
    prices()
    said = deciban("fit", "houses.csv", "--label", "price", code=2).err
    assert "298 different numbers" in said
    assert "--bins 3" in said
    assert "--label-is-category" in said
    assert not os.path.exists("houses.deciban")


def test_bins_make_classes_of_a_number_that_later_commands_know(deciban):
    prices()
    said = deciban("fit", "houses.csv", "--label", "price", "--bins", "3").out
    assert "298 rows, 3 classes" in said
    assert ' or less"' in said
    assert "298 rows, 3 classes" in deciban("evaluate", "houses.deciban", "houses.csv").out
    classes = load("houses.deciban").classes_
    assert len(classes) == 3
    assert "268 rows (−30)" in _unlearn_first(deciban, 30)


def _unlearn_first(deciban, n):
    lines = Path("houses.csv").read_text().splitlines()
    Path("some.csv").write_text("\n".join(lines[: n + 1]) + "\n")
    return deciban("unlearn", "houses.deciban", "some.csv").out


def test_a_label_may_be_declared_a_category(deciban):
    rng = np.random.default_rng(3)
    code = np.repeat(np.arange(40), 10)
    write("codes.csv", size=code + rng.normal(size=400).round(2), code=code)
    assert "40 different numbers" in deciban("fit", "codes.csv", "--label", "code", code=2).err
    assert "400 rows, 40 classes" in deciban("fit", "codes.csv", "--label", "code", "--label-is-category").out


def test_a_dozen_whole_numbers_are_classes_as_ever(deciban):
    rng = np.random.default_rng(4)
    digit = rng.integers(0, 10, 300)
    write("digits.csv", ink=digit + rng.normal(size=300).round(2), digit=digit)
    assert "300 rows, 10 classes" in deciban("fit", "digits.csv", "--label", "digit").out


# -- 16: what values are -----------------------------------------------------------------------------------------------
def box(path, subjects):
    path.parent.mkdir(parents=True, exist_ok=True)
    found = mailbox.mbox(path)
    for subject in subjects:
        message = EmailMessage()
        message["Subject"], message["From"] = subject, "ada@example.org"
        message.set_content(f"{subject}, and more of it")
        found.add(message)
    found.close()


@pytest.mark.parametrize("name", ["in.mbox", "inbox"])
def test_an_mbox_in_a_class_folder_is_all_its_messages(deciban, tmp_path, name):
    box(tmp_path / "mail/spam" / name, [f"free prize {i}" for i in range(12)])
    box(tmp_path / "mail/ham" / name, [f"lunch at {i}" for i in range(9)])
    assert '21 rows, 2 classes: "spam" (12 rows), "ham" (9 rows)' in deciban("fit", "mail").out


def test_an_mbox_beside_plain_texts_is_all_its_messages(deciban, tmp_path):
    box(tmp_path / "texts/spam/in.mbox", [f"free prize {i}" for i in range(12)])
    (tmp_path / "texts/ham").mkdir()
    for i in range(9):
        (tmp_path / f"texts/ham/{i}.txt").write_text(f"lunch at {i}")
    assert '21 rows, 2 classes: "spam" (12 rows), "ham" (9 rows)' in deciban("fit", "texts").out


def dated(forms, n=300):
    rng = np.random.default_rng(5)
    old = rng.random(n) < 0.5
    year, month, day = np.where(old, 2003, 2019) + rng.integers(0, 2, n), rng.integers(1, 13, n), rng.integers(1, 13, n)
    columns = {name: [form.format(y=y, m=m, d=d) for y, m, d in zip(year, month, day)] for name, form in forms.items()}
    write("dated.csv", **columns, age=np.where(old, "old", "new"))


def test_a_date_keeps_its_year(deciban):
    dated({"when": "{y}-{m:02}-{d:02}"})
    deciban("fit", "dated.csv", "--label", "age", "--quiet")
    assert "when.year" in deciban("inspect", "dated.deciban").out
    assert "error          0.0 %" in deciban("evaluate", "dated.deciban", "dated.csv", "--leave-one-out").out


def test_an_ambiguous_day_and_month_is_said_and_can_be_told(deciban):
    dated({"when": "{m:02}/{d:02}/{y}"})
    said = deciban("fit", "dated.csv", "--label", "age").out
    assert "is read as month/day/year, and could be day/month/year" in said
    assert "--column when=day-first" in said
    again = deciban("fit", "dated.csv", "--label", "age", "--column", "when=day-first", "-o", "told.deciban").out
    assert "could be" not in again
    formats = [load(name).schema_["when"].format for name in ("dated.deciban", "told.deciban")]
    assert formats == ["%m/%d/%Y", "%d/%m/%Y"]


def test_a_date_that_can_be_read_in_one_way_only_needs_no_remark(deciban):
    write("one.csv", when=[f"{13 + i % 9}/0{1 + i % 8}/2020" for i in range(60)], y=["ab"[i % 2] for i in range(60)])
    assert "could be" not in deciban("fit", "one.csv", "--label", "y").out


def test_long_numbers_are_identifiers_and_codes_are_not_quantities(deciban):
    rng = np.random.default_rng(6)
    n = 200
    write(
        "codes.csv",
        account=[str(10**17 + int(k)) for k in rng.integers(0, 10**16, n)],
        zip=rng.choice([10001, 60601, 94105], n),
        branch=[f"{k:03}" for k in rng.integers(0, 20, n)],
        built=rng.integers(1950, 2020, n),
        visits=rng.poisson(3, n),
        y=np.array(["a", "b"])[rng.integers(0, 2, n)],
    )
    said = deciban("fit", "codes.csv", "--label", "y").out
    kinds = {name: column_line(said, name).split()[1] for name in ("account", "zip", "branch", "built", "visits")}
    assert kinds == {
        "account": "identifier", "zip": "category", "branch": "category", "built": "number", "visits": "count",
    }  # fmt: skip
    assert "whole numbers of 18 digits" in said
    assert "column 'zip': digits are read as codes, not as quantities (otherwise --column zip=number)" in said
    assert "column 'branch': digits with leading zeros are read as codes" in said
    assert "whole numbers from 1950 to 2019 are read as years (otherwise --column built=count)" in said


# -- 17: -o never destroys what is not deciban's own -------------------------------------------------------------------
@pytest.mark.parametrize(
    "command", ["predict tumours.deciban new.csv --format csv", "fit tumours.csv --label diagnosis"]
)
def test_a_device_and_a_pipe_are_refused(deciban, tumours, command):
    os.mkfifo("pipe")
    for target in ("/dev/null", "pipe"):
        assert "device or a pipe" in deciban(*command.split(), "-o", target, "--force", code=2).err
    assert stat.S_ISFIFO(os.stat("pipe").st_mode)
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_the_library_does_not_replace_a_pipe_either(deciban, tumours):
    os.mkfifo("pipe")
    with pytest.raises(ValueError, match="pipe"):
        load("tumours.deciban").save("pipe")
    assert stat.S_ISFIFO(os.stat("pipe").st_mode)


@pytest.mark.parametrize(
    "command",
    [
        "predict tumours.deciban new.csv -o new.csv",
        "predict tumours.deciban new.csv --format csv -o tumours.deciban",
        "fit tumours.csv --label diagnosis -o tumours.csv",
        "learn tumours.deciban ten.csv -o ten.csv",
        "cluster tumours.csv -o tumours.csv",
        "merge tumours.deciban tumours.deciban -o tumours.deciban",
        "inspect tumours.deciban --format csv -o tumours.deciban",
    ],
)
def test_an_input_of_the_same_command_is_refused_even_with_force(deciban, tumours, command):
    before = {path.name: path.read_bytes() for path in tumours.iterdir()}
    assert "is an input of this command" in deciban(*command.split(), "--force", code=2).err
    assert {path.name: path.read_bytes() for path in tumours.iterdir()} == before


@pytest.mark.parametrize(
    "command",
    [
        "predict tumours.deciban new.csv -o mine.csv",
        "fit tumours.csv --label diagnosis -o mine.csv",
        "sample tumours.deciban -o mine.csv",
        "inspect tumours.deciban -o mine.csv",
        "unlearn tumours.deciban ten.csv -o mine.csv",
    ],
)
def test_a_file_of_another_kind_needs_force(deciban, tumours, command):
    (tumours / "mine.csv").write_text("a,b\n1,2\n")
    assert "--force" in deciban(*command.split(), code=2).err
    assert (tumours / "mine.csv").read_text() == "a,b\n1,2\n"
    deciban(*command.split(), "--force")
    assert (tumours / "mine.csv").read_bytes() != b"a,b\n1,2\n"


def test_an_earlier_output_of_the_same_command_is_replaced(deciban, tumours):
    for ending in ("csv", "jsonl", "parquet"):
        for _ in range(2):
            deciban("predict", "tumours.deciban", "new.csv", "-o", f"answers.{ending}")
    for _ in range(2):
        deciban("fit", "tumours.csv", "--label", "diagnosis", "-o", "again.deciban", "--quiet")


# -- 18: first things first --------------------------------------------------------------------------------------------
def test_a_model_no_better_than_its_prior_says_so_first(deciban):
    rng = np.random.default_rng(7)
    write("noise.csv", x=rng.normal(size=300).round(3), z=rng.normal(size=300).round(3), y=rng.choice(["a", "b"], 300))
    said = deciban("fit", "noise.csv", "--label", "y").out
    assert said.startswith("This model is no better than the class proportions alone")


def test_a_model_that_is_better_does_not_say_so(deciban, tumours):
    said = deciban("fit", "tumours.csv", "--label", "diagnosis", "-o", "again.deciban").out
    assert said.startswith("again.deciban: 564 rows")


def test_a_column_that_is_missing_at_prediction_time_is_a_gap_with_one_remark(deciban, tumours):
    rows = [line.split(",") for line in (tumours / "new.csv").read_text().splitlines()]
    at = rows[0].index("texture")
    (tumours / "cut.csv").write_text("".join(",".join(row[:at] + row[at + 1 :]) + "\n" for row in rows))
    (tumours / "gap.csv").write_text(
        "".join(",".join(row if not i else [*row[:at], "", *row[at + 1 :]]) + "\n" for i, row in enumerate(rows))
    )
    said = deciban("predict", "tumours.deciban", "cut.csv")
    assert said.out == deciban("predict", "tumours.deciban", "gap.csv").out
    assert said.err.count("'texture'") == 1
    assert "missing in every row" in said.err
    assert deciban("predict", "tumours.deciban", "cut.csv", "--quiet").err == ""
    assert "texture" in deciban("explain", "tumours.deciban", "cut.csv", "--row", "1").out


def test_remedies_name_commands_and_options_not_methods(deciban, tumours):
    write("below.csv", visits=[*range(40), -1], y=["ab"[i % 2] for i in range(41)])
    said = deciban("fit", "below.csv", "--label", "y", "--column", "visits=poisson", code=1).err
    assert "--column NAME=gaussian" in said
    assert "()" not in said
    deciban("unlearn", "tumours.deciban", "ten.csv")
    for name in ("inspect tumours.deciban", "unlearn tumours.deciban new.csv --class benign --quiet"):
        said = run_any(deciban, name)
        assert "recalibrate(" not in said
        assert "rechoose(" not in said


def run_any(deciban, command):
    try:
        return deciban(*command.split()).all
    except AssertionError as error:
        return str(error)


def test_a_rule_that_gives_probability_zero_prints_no_note_of_numpy(deciban):
    colours = [*["red", "blue"] * 30, "blue", "pink"]
    write("zero.csv", colour=colours, size=[1.5 + i % 7 for i in range(62)], y=[*"ab" * 30, "a", "a"])
    with warnings.catch_warnings():  # numpy's warnings stay errors
        warnings.simplefilter("ignore", ImpossibleRowWarning)
        said = deciban("fit", "zero.csv", "--label", "y", "--rule", "ml")
    assert "invalid value" not in said.all
    assert said.out.startswith("This model gives 1 row probability zero")


# -- 19: after the demonstration ---------------------------------------------------------------------------------------
def test_fit_works_right_after_the_demonstration_as_printed(deciban, tmp_path, monkeypatch):
    shown = []

    def remember(folder, *arguments):
        shown.append(arguments)
        if arguments[0] == "fit" and "-o" in arguments:
            (folder / arguments[arguments.index("-o") + 1]).touch()

    monkeypatch.setattr(demo, "run", remember)
    demo.show_commands(tmp_path)
    assert any("tumours.csv" in each for each in shown)
    deciban("fit", "tumours.csv", "--label", "diagnosis", "--quiet")
    assert os.path.getsize("tumours.deciban") > 0


# -- 5: unlearning says what it checked --------------------------------------------------------------------------------
def test_unlearning_with_a_ledger_says_that_every_row_was_checked_and_refuses_strangers(deciban, tumours):
    said = deciban("unlearn", "tumours.deciban", "ten.csv").out.splitlines()
    assert said[1] == "checked: every row was in the ledger of learnt rows"
    assert said[2].startswith("choices were made partly from rows unlearnt since; calibration: out of date")
    assert "renew with deciban fit ROWS --label diagnosis -o tumours.deciban" in said[2]
    assert len(said) == 3
    before = (tumours / "tumours.deciban").read_bytes()
    deciban("unlearn", "tumours.deciban", "test.csv", code=1)
    assert (tumours / "tumours.deciban").read_bytes() == before


def test_unlearning_without_a_ledger_says_what_it_could_not_check(deciban, tumours):
    deciban("fit", "tumours.csv", "--label", "diagnosis", "--no-ledger", "-o", "bare.deciban", "--quiet")
    said = deciban("unlearn", "bare.deciban", "ten.csv").out.splitlines()
    assert said[1].startswith("not checked: the model keeps no ledger")
    assert len(said) == 3


def test_the_classifier_says_the_same():
    rng = np.random.default_rng(8)
    X, y = rng.normal(size=(60, 2)), np.repeat([0, 1], 30)
    bare, checked = (GenerativeClassifier(ledger=ledger).fit(X, y) for ledger in (False, True))
    assert "cannot check rows: there is no ledger" in bare.standing_
    assert "by the ledger" in checked.standing_
    bare.unlearn(X[:3], y[:3])
    assert "unlearnt since" in bare.standing_
    assert "out of date" in GenerativeClassifier(calibrate="offsets").fit(X, y).unlearn(X[:3], y[:3]).standing_
