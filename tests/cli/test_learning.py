"""Models made and changed by commands are those that the library makes."""

import json
from pathlib import Path

import numpy as np
import pytest

import deciban
from program import process


def answers(path, rows="new.csv"):
    return deciban.load(path).predict_proba(rows)


def test_fit_reports_columns_evaluation_features_warnings_and_next_commands(here, said):
    report = (here / "report.txt").read_text()
    for words in (
        'tumours.deciban: 564 rows, 2 classes: "benign" (356 rows), "malignant" (208 rows)',
        "Columns",
        "log-normal (fits best)",
        "Cross-validation",
        "log loss",
        "calibration: fitted on 564 rows",
        "Most informative features",
        "Warnings",
        "column 'patient' is ignored",
        "deciban predict tumours.deciban new.csv",
    ):
        assert words in report, words
    told = json.loads(said("fit", "tumours.csv", "--label", "diagnosis", "-o", "again.deciban", "--json").out)
    assert told["rows"] == 564
    assert told["leave_one_out"]["learnt"] is True
    assert {column["name"]: column["kind"] for column in told["columns"]}["patient"] == "identifier"
    assert sum(column["missing"] > 0 for column in told["columns"]) == 5
    assert told["features"][0]["decibans"] > 0


def test_a_model_fitted_by_command_is_the_one_fitted_in_python(here):
    clf = deciban.GenerativeClassifier(ledger=True).fit("tumours.csv", "diagnosis")
    assert np.array_equal(clf.predict_proba("new.csv"), answers("tumours.deciban"))


def test_stdin_and_files_give_the_same_model(here, said):
    done = process(
        here, "fit", "-", "--label", "diagnosis", "-o", "piped.deciban", stdin=Path("tumours.csv").read_text()
    )
    assert done.code == 0, done.err
    assert np.array_equal(answers("piped.deciban"), answers("tumours.deciban"))


def test_columns_are_what_the_asker_says(here, said):
    options = ("--column", "patient=ignore", "--column", "texture=gaussian", "--block", "radius,smoothness=diagonal")
    assert said("fit", "tumours.csv", "--label", "diagnosis", "-o", "x.deciban", *options).code == 0
    families = deciban.load("x.deciban").families_
    assert families["radius", "smoothness"] == "Gaussian('diagonal'): named by you"
    assert families["texture"].endswith("named by you")
    assert "nats: log P(rows |" in said("inspect", "x.deciban").out


def test_prior_and_cost_given_to_fit_are_the_models_own(here, said):
    wishes = ("--prior", "malignant=.01", "--cost", "malignant:benign=1e9")
    assert said("fit", "tumours.csv", "--label", "diagnosis", "-o", "x.deciban", *wishes).code == 0
    clf, other = deciban.load("x.deciban"), deciban.load("tumours.deciban")
    assert clf.predict_proba("new.csv") == pytest.approx(other.predict_proba("new.csv", prior={"malignant": 0.01}))
    assert set(clf.predict("new.csv")) == {"malignant"}


def test_unlearn_and_learn_bring_back_the_same_answers(here, said):
    before = answers("tumours.deciban")
    assert said("unlearn", "tumours.deciban", "ten.csv").code == 0
    assert deciban.load("tumours.deciban").stats_.rows.sum() == 554
    refused = said("unlearn", "tumours.deciban", "ten.csv")
    assert (refused.code, "Nothing was changed" in refused.err) == (1, True)
    assert said("learn", "tumours.deciban", "ten.csv").code == 0
    assert answers("tumours.deciban") == pytest.approx(before, rel=1e-9)


def test_correct_moves_rows_from_one_class_to_another(here, said):
    before = deciban.load("tumours.deciban")
    assert said("correct", "tumours.deciban", "ten.csv", "--was", "diagnosis", "--now", "benign").code == 0
    moved = deciban.load("tumours.deciban").stats_.rows - before.stats_.rows
    assert moved.tolist() == [10, -10]
    assert said("correct", "tumours.deciban", "ten.csv", "--was", "benign", "--now", "diagnosis").code == 0
    assert answers("tumours.deciban") == pytest.approx(before.predict_proba("new.csv"), rel=1e-9)


def test_new_classes_may_be_learnt_and_written_elsewhere(here, said):
    before = (here / "tumours.deciban").read_bytes()
    assert said("learn", "tumours.deciban", "ten.csv", "--class", "unclear", "-o", "more.deciban").code == 0
    assert (here / "tumours.deciban").read_bytes() == before
    assert deciban.load("more.deciban").classes_.tolist() == ["benign", "malignant", "unclear"]


def test_merged_models_have_learnt_the_rows_of_both(here, said):
    assert said("unlearn", "tumours.deciban", "ten.csv", "-o", "less.deciban").code == 0
    assert said("learn", "less.deciban", "ten.csv").code == 0
    found = said("merge", "less.deciban", "tumours.deciban", "-o", "both.deciban", "--json")
    assert json.loads(found.out)["rows"] == 1128
    assert len(deciban.load("both.deciban").ledger_) == 1128


@pytest.mark.slow
def test_halves_fitted_alike_add_up_to_the_whole(here, said):
    header, *rows = Path("tumours.csv").read_text().splitlines(keepends=True)
    Path("a.csv").write_text("".join([header, *rows[:300]]))
    Path("b.csv").write_text("".join([header, *rows[300:]]))
    for name in ("a", "b"):
        assert said("fit", f"{name}.csv", "--label", "diagnosis", "--quiet").code == 0
    assert said("fit", "b.csv", "--label", "diagnosis", "--column", "radius=category", "-o", "b.deciban").code == 0
    refused = said("merge", "a.deciban", "b.deciban", "-o", "ab.deciban")
    assert (refused.code, "column 'radius'" in refused.err, "--like" in refused.err) == (1, True, True)
    assert said("fit", "b.csv", "--label", "diagnosis", "--like", "a.deciban", "-o", "b.deciban").code == 0
    assert said("merge", "a.deciban", "b.deciban", "-o", "ab.deciban").code == 0
    whole = deciban.load("a.deciban").learn("b.csv", "diagnosis").recalibrate(None, None, None)
    assert answers("ab.deciban") == pytest.approx(whole.predict_proba("new.csv"), rel=1e-9)
    assert said("fit", "b.csv", "--label", "diagnosis", "--like", "a.deciban", "--text", "radius").code == 2


@pytest.mark.slow
def test_a_ledger_under_a_key_of_its_own_wants_that_key(here, said, monkeypatch):
    (here / "key").write_text("our secret\n")
    asked = ("fit", "tumours.csv", "--label", "diagnosis", "-o", "x.deciban", "--key-file", "key")
    assert said(*asked).code == 0
    without = said("unlearn", "x.deciban", "ten.csv")
    assert (without.code, "--key-file" in without.err) == (1, True)
    assert said("predict", "x.deciban", "new.csv").code == 0
    monkeypatch.setenv("DECIBAN_KEY", "our secret")
    assert said("unlearn", "x.deciban", "ten.csv").code == 0
    monkeypatch.delenv("DECIBAN_KEY")
    (here / "key").write_text("another\n")
    assert said("learn", "x.deciban", "ten.csv", "--key-file", "key").code == 1


def test_inspect_shows_parameters_with_intervals_ledger_and_provenance(here, said):
    text = said("inspect", "tumours.deciban").out
    for words in ("564 rows, under the public key", "fitted on tumours.csv", "90% interval"):
        assert words in text, words
    told = json.loads(said("inspect", "tumours.deciban", "--json", "--feature", "concave").out)
    assert {line["feature"] for line in told["parameters"]} == {"concave=much", "concave=none", "concave=some"}
    for label in ("benign", "malignant"):
        shares = [line for line in told["parameters"] if line["label"] == label]
        assert sum(line["mean"] for line in shares) == pytest.approx(1)
        assert all(line["low"] < line["mean"] < line["high"] for line in shares)
    assert said("inspect", "tumours.deciban", "-o", "all.csv").code == 0
    assert len(Path("all.csv").read_text().splitlines()) > 10


@pytest.mark.slow
def test_how_families_compare_is_shown_only_with_verbose(here, said):
    fit = ("fit", "tumours.csv", "--label", "diagnosis", "-o", "x.deciban")
    assert "decibans over" not in said(*fit).out
    assert "decibans over" in said(*fit, "--verbose").out
    assert "decibans over" not in said("inspect", "x.deciban").out
    assert "decibans over" in said("inspect", "x.deciban", "--verbose").out


def test_what_is_out_of_date_names_the_command_that_renews_it(here, said):
    renew = "renew with deciban fit ROWS --label diagnosis -o tumours.deciban"
    out_of_date = f"calibration: out of date: fitted on 564 rows, the model now has 554; {renew}"
    assert out_of_date in said("unlearn", "tumours.deciban", "ten.csv").out
    shown = said("inspect", "tumours.deciban").out
    assert shown.count(renew) == 1
    assert shown.count("renew with deciban recalibrate tumours.deciban ROWS") == 1
    assert "renew" not in said("learn", "tumours.deciban", "ten.csv").out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "word"),
    [(["--stem", "english"], "cat"), (["--characters"], " ca"), (["--ngrams", "2"], "the cats")],
    ids=["stems", "characters", "pairs"],
)
def test_options_of_texts_reach_the_words_of_a_model(tmp_path, given, word):
    rows = [
        ("the cats sleep all day", "cat"),
        ("a cat and more cats purr", "cat"),
        ("dogs bark at the gates", "dog"),
    ] * 3
    lines = [json.dumps({"text": text, "kind": kind}) for text, kind in rows]
    (tmp_path / "rows.jsonl").write_text("\n".join(lines))
    args = ["fit", "rows.jsonl", "--label", "kind", "--text", "text", "-o", "m.deciban", "-q", *given]
    assert process(tmp_path, *args).code == 0
    (sums,) = deciban.load(tmp_path / "m.deciban").stats_.family.blocks.values()
    assert word in list(sums.labels["word"].names)
