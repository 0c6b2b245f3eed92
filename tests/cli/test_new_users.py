"""What new users try: files as other programs write them, narrow terminals, other encodings, saved models."""

import io
import json
import re
import subprocess
import tomllib
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import deciban
from cli.terminals import OnTerminal
from deciban.cli.app import invoke
from deciban.cli.docs import INSTALLED, pages
from deciban.read.tables import Table
from program import PROGRAM, environment

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    big = rng.random(120) < 0.5
    size = np.round(rng.normal(size=120) + 2 * big, 2)
    price = np.round(1000 * np.exp(rng.normal(size=120)), 2)
    return pd.DataFrame({"size": size, "price": price, "class": np.where(big, "big", "small")})


def german(value):
    return f"{value:,.2f}".replace(",", "_").replace(".", ",").replace("_", ".")


# -- files -------------------------------------------------------------------------------------------------------------
def test_decimal_commas_and_signs_are_read_as_numbers(said, here, frame):
    frame.to_csv("plain.csv", index=False)
    written = frame.assign(size=frame["size"].map(german), price=frame["price"].map(german) + " €")
    written["share"] = [f"{at} %" for at in range(len(frame))]
    written.to_csv("german.csv", sep=";", index=False)
    assert said("fit", "german.csv", "--label", "class", "-q").code == 0
    clf = deciban.load("german.deciban")
    kinds = {column.name: column.reason for column in clf.schema_.columns}
    assert "decimal commas" in kinds["size"]
    assert "decimal commas, with €" in kinds["price"]
    assert "with %" in kinds["share"]
    typed = clf.schema_.apply(Table.of(written))
    np.testing.assert_allclose(typed.column(0), frame["size"])
    np.testing.assert_allclose(typed.column(1), frame["price"])


def test_a_point_among_decimal_commas_is_refused(said, here, frame):
    written = frame.assign(size=frame["size"].map(german))
    written.to_csv("german.csv", sep=";", index=False)
    assert said("fit", "german.csv", "--label", "class", "-q").code == 0
    written.loc[4, "size"] = "1.5"
    written.to_csv("other.csv", sep=";", index=False)
    done = said("predict", "german.deciban", "other.csv")
    assert done.code == 1
    assert "'1.5'" in done.err


@pytest.mark.parametrize(
    "written", ["columns.json", "records.json", "lines.json", "book.xlsx", "index.csv", "index.xlsx"]
)
def test_files_of_other_programs_give_the_rows_of_the_csv(said, here, frame, written):
    frame.to_csv("plain.csv", index=False)
    writers = {
        "columns.json": lambda name: frame.to_json(name),
        "records.json": lambda name: frame.to_json(name, orient="records"),
        "lines.json": lambda name: frame.to_json(name, orient="records", lines=True),
        "book.xlsx": lambda name: frame.to_excel(name, index=False),
        "index.csv": lambda name: frame.to_csv(name),
        "index.xlsx": lambda name: frame.to_excel(name),
    }
    writers[written](written)
    assert said("fit", "plain.csv", "--label", "class", "-q").code == 0
    done = said("predict", "plain.deciban", written)
    assert done.code == 0, done.err
    assert done.out == said("predict", "plain.deciban", "plain.csv").out
    assert ("row numbers" in done.err) == written.startswith("index")


def test_a_file_without_a_header_is_refused_and_can_be_read(said, here, frame):
    frame.to_csv("rows.csv", index=False, header=False)
    done = said("fit", "rows.csv", "--label", "class")
    assert done.code == 1
    assert "--read-as header=no)" in done.err
    assert said("fit", "rows.csv", "--read-as", "header=none", "--label", "column3", "-q").code == 0
    assert deciban.load("rows.deciban").model_.weight == len(frame)
    assert said("fit", "rows.csv", "--read-as", "header=no", "--label", "column3", "-q", "-o", "rows.deciban").code == 0
    done = said("fit", "rows.csv", "--read-as", "header=maybe", "--label", "column3", "-q", "-o", "rows.deciban")
    assert (done.code, "header=maybe" in done.err) == (2, True)


def test_latin_1_is_offered(said, here):
    (here / "towns.csv").write_bytes("town,class\nKöln,a\nBonn,b\n".encode("latin-1"))
    assert "--read-as encoding=latin-1" in said("fit", "towns.csv", "--label", "class").err


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.json", b"[1, 2]", "not an object of columns"),
        ("b.json", b'{"a": [1, 2], "b": [1]}', "no table"),
        ("c.json", b"[{]", "is not JSON"),
        ("d.json", b"[" * 100 + b"]" * 100, "nested more than"),
        ("e.json", b"[]", "no rows"),
        ("f.xlsx", b"PK not a workbook", "cannot be read"),
    ],
)
def test_damaged_tables_are_refused(said, here, name, content, words):
    (here / name).write_bytes(content)
    done = said("fit", name, "--label", "class")
    assert done.code == 1
    assert words in done.err
    assert "Traceback" not in done.err


# -- answers -----------------------------------------------------------------------------------------------------------
def test_inspect_shows_the_ranges_of_a_column_in_bins(said, here):
    table = pd.DataFrame({"x": [0.0] * 30 + [1.0] * 30 + [5.0] * 30 + list(range(30)), "class": list("ab") * 60})
    table.to_csv("bins.csv", index=False)
    assert said("fit", "bins.csv", "--label", "class", "--column", "x=binned", "-q").code == 0
    done = said("inspect", "bins.deciban", "--feature", "x")
    assert "x from " in done.out
    assert "all of" not in done.out


def test_inspect_shows_all_ranges_of_a_column_and_no_other_column(said, here):
    years = {"year": [2007, 2008, 2009] * 40, "year 2": np.arange(120.0) % 7, "class": list("ab") * 60}
    pd.DataFrame(years).to_csv("years.csv", index=False)
    assert said("fit", "years.csv", "--label", "class", "--column", "year=binned", "-q").code == 0
    told = json.loads(said("inspect", "years.deciban", "--json", "--feature", "year").out)
    shown = {line["feature"] for line in told["parameters"]}
    assert {"year 2007", "year 2008", "year 2009"} <= shown
    assert not any(name.startswith("year 2 ") or name == "year 2" for name in shown)


def test_words_of_a_table_are_named_by_their_column(said, here):
    words = {"body": ["cheap pills now"] * 30 + ["see you at lunch"] * 30, "size": np.arange(60.0) % 7}
    pd.DataFrame(words | {"class": ["spam"] * 30 + ["ham"] * 30}).to_csv("mails.csv", index=False)
    options = ("--text", "body", "--column", "size=gaussian")
    assert said("fit", "mails.csv", "--label", "class", *options, "-q").code == 0
    told = json.loads(said("inspect", "mails.deciban", "--json", "--feature", "body").out)
    assert {"body: pills", "body: lunch"} <= {line["feature"] for line in told["parameters"]}
    only = json.loads(said("inspect", "mails.deciban", "--json", "--feature", "body: pills").out)
    assert {line["feature"] for line in only["parameters"]} == {"body: pills"}


def test_a_model_is_not_a_table_of_clusters(said, here):
    done = said("cluster", "new.csv", "-o", "clusters.deciban")
    assert done.code == 2
    assert "--save" in done.err


def test_explain_says_the_prediction_and_what_the_signs_mean(said):
    lines = said("explain", "tumours.deciban", "new.csv", "--row", "2").out.splitlines()
    answer = said("predict", "tumours.deciban", "new.csv").out.splitlines()[2].split(",")
    assert lines[0].startswith(f'row 2: predicted "{answer[0]}", probability ')
    assert lines[1].startswith('+ is evidence for "')
    assert '− for "' in lines[1]


def test_thresholds_are_those_of_least_cost(said):
    told = json.loads(said("evaluate", "tumours.deciban", "tumours.csv", "--thresholds", "--json").out)
    prior = told["prior"][1]
    for line in told["thresholds"]:
        assert line["cost"] == pytest.approx(
            prior * line["cost_ratio"] * line["missed"] + (1 - prior) * line["false_alarms"]
        )
        odds = 10 ** (line["decibans"] / 10) * prior / (1 - prior)
        assert line["probability"] == pytest.approx(odds / (1 + odds))
    even = next(line for line in told["thresholds"] if line["cost_ratio"] == 1)
    assert even["cost"] == pytest.approx(told["error_rate"])
    assert "false alarms" in said("evaluate", "tumours.deciban", "tumours.csv", "--thresholds").out


@pytest.mark.slow
def test_compare_ranks_models_by_log_loss(said, here):
    assert (
        said(
            "fit", "tumours.csv", "--label", "diagnosis", "--column", "radius=ignore", "-o", "narrow.deciban", "-q"
        ).code
        == 0
    )
    told = json.loads(said("compare", "tumours.deciban", "narrow.deciban", "ten.csv", "--json").out)
    losses = [figures["log_loss"] for figures in told.values()]
    assert set(told) == {"tumours", "narrow"}
    assert losses == sorted(losses)
    alone = json.loads(said("evaluate", "narrow.deciban", "ten.csv", "--json").out)
    assert told["narrow"]["log_loss"] == alone["log_loss"]
    noted = said("compare", "tumours.deciban", "narrow.deciban", "tumours.csv").err
    assert [line.split(":")[0] for line in noted.splitlines() if "too good" in line] == ["tumours", "narrow"]
    assert "best" in said("compare", "tumours.deciban", "narrow.deciban", "ten.csv").out
    assert "two models or more" in said("compare", "tumours.deciban", "ten.csv").err


def test_recalibrate_renews_a_calibration_that_is_out_of_date(said, here):
    assert said("learn", "tumours.deciban", "ten.csv").code == 0
    state = said("inspect", "tumours.deciban").out
    assert "out of date" in state
    assert "deciban recalibrate tumours.deciban ROWS" in state
    table = pd.concat([pd.read_csv("tumours.csv"), pd.read_csv("ten.csv")])
    table.to_csv("all.csv", index=False)
    assert said("recalibrate", "tumours.deciban", "all.csv").code == 0
    assert "out of date" not in said("inspect", "tumours.deciban").out
    assert said("recalibrate", "tumours.deciban", "all.csv", "--method", "none").code == 0
    assert deciban.load("tumours.deciban").calibration_ is None
    assert "not one of" in said("recalibrate", "tumours.deciban", "all.csv", "--method", "magic").err


# -- saved clusters and topics -----------------------------------------------------------------------------------------
def test_saved_clusters_answer_as_when_they_were_found(said, here):
    found = said("cluster", "tumours.csv", "-k", "2", "--ignore", "diagnosis", "--save", "c.deciban")
    assert said("predict", "c.deciban", "tumours.csv").out == found.out
    told = json.loads(said("inspect", "c.deciban", "--json").out)
    assert sum(one["share"] for one in told["clusters"]) == pytest.approx(1)
    shown = said("inspect", "c.deciban").out
    drawn = pd.read_csv(io.StringIO(said("sample", "c.deciban", "-n", "2000", "--seed", "1").out))
    table = pd.read_csv("tumours.csv")
    for name in drawn.columns.drop("class"):  # each under its own name
        assert name in shown
        if pd.api.types.is_numeric_dtype(table[name]):
            assert abs(drawn[name].median() - table[name].median()) < table[name].std() / 2
        else:
            assert set(drawn[name]) <= set(table[name].astype(str))
    assert "--prior is for classes" in said("predict", "c.deciban", "tumours.csv", "--prior", "a=.1").err


def test_saved_topics_give_the_shares_of_texts(said, here):
    texts = ["the cat and the dog ran home today"] * 30 + ["stocks fell while bonds rose again today"] * 30
    pd.DataFrame({"note": texts}).to_csv("notes.csv", index=False)
    assert said("topics", "notes.csv", "--text", "note", "-k", "2", "-o", "t.deciban").code == 0
    answers = pd.read_csv(io.StringIO(said("predict", "t.deciban", "notes.csv", "--text", "note").out))
    np.testing.assert_allclose(answers["topic 0"] + answers["topic 1"], 1, atol=1e-5)
    shares = deciban.load("t.deciban").transform(texts)
    np.testing.assert_allclose(answers[["topic 0", "topic 1"]], shares, atol=1e-5)
    assert "cat" in said("inspect", "t.deciban").out


# -- terminals and encodings -------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
def test_output_is_written_in_any_encoding(here, encoding):
    def answer(*arguments):
        given = environment(PYTHONIOENCODING=encoding)
        done = subprocess.run([*PROGRAM, *arguments], env=given, capture_output=True, check=False, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout.decode(encoding)

    shown = answer("explain", "tumours.deciban", "new.csv", "--row", "1")
    assert "posterior" in shown
    assert "\\u2212" not in shown
    assert json.loads(answer("inspect", "tumours.deciban", "--json"))["model"].startswith("tumours.deciban")


def test_lines_fit_a_terminal_of_80_columns_without_broken_words(said, here):
    longer = {name: f"{name} of a tumour" for name in pd.read_csv("tumours.csv").columns.drop("diagnosis")}
    pd.read_csv("tumours.csv").rename(columns=longer).to_csv("long.csv", index=False)
    assert said("fit", "long.csv", "--label", "diagnosis", "-q").code == 0
    plain = said("inspect", "long.deciban").out
    assert max(map(len, plain.splitlines())) > 80
    code, seen = OnTerminal(here, "inspect", "long.deciban", fork=True).finish()
    assert code == 0
    lines = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", seen).splitlines()
    assert max(map(len, lines)) <= 80
    assert {word for line in lines for word in line.split()} <= set(plain.split())


# -- completion and documentation --------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("deciban fit tumours.csv --label diag", {"diagnosis"}),
        ("deciban fit tumours.csv --column radius=ga", {"radius=gamma", "radius=gaussian"}),
        ("deciban predict tumours.deciban new.csv --prior ", {"benign=", "malignant="}),
        ("deciban explain tumours.deciban new.csv --over m", {"malignant"}),
        ("deciban predict tumours.deciban new.csv --format p", {"parquet"}),
        ("deciban docs tut", {"tutorial"}),
        ("deciban fit tumours.csv --rule m", {"mean", "map", "ml"}),
        # what bash gives for --column radius=ga, --column ra, --prior benign= and --cost benign:
        ("deciban\nfit\ntumours.csv\n--column\nradius\n=\nga", {"gamma", "gaussian"}),
        ("deciban\npredict\ntumours.deciban\nnew.csv\n--prior\nbenign\n=", {"0.5", "0.1", "0.01"}),
        (
            "deciban\npredict\ntumours.deciban\nnew.csv\n--cost\nbenign\n:",
            {"malignant=1", "malignant=10", "malignant=100"},
        ),
    ],
)
def test_the_shell_completes_values(here, monkeypatch, words, offered):
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split("\n" if "\n" in words else " ")) - 1))
    monkeypatch.delenv("DECIBAN_COMPLETED_BEFORE", raising=False)
    monkeypatch.setenv("_DECIBAN_COMPLETE", "complete_bash")
    shown = io.StringIO()
    with redirect_stdout(shown), pytest.raises(SystemExit):
        invoke([])
    assert set(shown.getvalue().split()) == offered


def test_docs_lists_pages_and_prints_one(said):
    listed = json.loads(said("docs", "--json").out)
    assert listed["tutorial"].startswith("Tutorial")
    assert said("docs", "howto/service").out.startswith("# ")
    assert said("docs", "service").out == said("docs", "howto/service").out
    assert "\n\nRead one: deciban docs PAGE" in said("docs").out
    assert all(len(path.read_text(encoding="utf-8")) > 100 for path in pages().values())
    assert "did you mean 'howto/tables'" in said("docs", "howto/table").err


def test_every_page_of_the_documentation_is_in_the_wheel(said):
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    listed = settings["tool"]["setuptools"]["data-files"].items()
    packed = {f"{folder}/{path.name}" for folder, globs in listed for one in globs for path in ROOT.glob(one)}
    assert {f"{INSTALLED}{name}.md" for name in pages()} <= packed


def test_learnt_rows_that_are_judged_as_new_are_pointed_out(said, here):
    note = "tumours.csv: the model learnt these rows, so that these figures are too good. Add --learnt."
    assert note in " ".join(said("evaluate", "tumours.deciban", "tumours.csv").err.split())
    for others in (("test.csv",), ("tumours.csv", "--learnt")):
        assert "too good" not in said("evaluate", "tumours.deciban", *others).err
