"""What predict, explain and evaluate answer is what the library says, in every format, in the order of the rows."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import deciban
from program import process


@pytest.fixture(scope="module")
def clf(files):
    return deciban.load(files / "tumours.deciban")


def read(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_predict_answers_in_order_with_evidence_over_the_runner_up(files, clf):
    done = process(files, "predict", "tumours.deciban", "new.csv", "--unit", "nats")
    rows = read(done.out)
    assert list(rows[0]) == ["prediction", "probability", "evidence", "P(benign)", "P(malignant)"]
    made = clf.decide(str(files / "new.csv"))
    assert [row["prediction"] for row in rows] == made.label.tolist()
    assert [float(row["evidence"]) for row in rows] == pytest.approx(made.llr.tolist(), rel=1e-5)
    P = clf.predict_proba(str(files / "new.csv"))
    assert np.array([[float(row[f"P({name})"]) for name in clf.classes_] for row in rows]) == pytest.approx(P, rel=1e-5)


def test_every_format_holds_the_same_answers(here, said, clf):
    for name in ("a.csv", "a.jsonl", "a.parquet", "a.tsv"):
        assert said("predict", "tumours.deciban", "new.csv", "-o", name).code == 0
    table = parquet.read_table("a.parquet").to_pylist()
    lines = [json.loads(line) for line in Path("a.jsonl").read_text().splitlines()]
    cells = read(Path("a.csv").read_text())
    assert [row["prediction"] for row in table] == [row["prediction"] for row in lines]
    assert Path("a.tsv").read_text().replace("\t", ",") == Path("a.csv").read_text()
    for name in ("probability", "evidence", "P(malignant)"):
        exact = [row[name] for row in table]  # Parquet is not rounded
        assert [row[name] for row in lines] == pytest.approx(exact, rel=1e-5)
        assert [float(row[name]) for row in cells] == pytest.approx(exact, rel=1e-5)


def test_append_keeps_the_columns_of_the_input(here, said):
    rows = read(said("predict", "tumours.deciban", "new.csv", "--append").out)
    given = read(Path("new.csv").read_text())
    assert [{name: row[name] for name in given[0]} for row in rows] == given
    assert list(rows[0])[6:9] == ["prediction", "probability", "evidence"]


def test_values_that_end_cells_are_quoted_and_come_back(here, said):
    odd = ['say "no"', "a,b", "two\nlines", ""]
    table = pa.table({"patient": odd, "radius": [14.0] * 4, "texture": [20.0] * 4, "smoothness": [0.1] * 4})
    table = table.append_column("concave", pa.array(["none"] * 4)).append_column("symmetric", pa.array(["yes"] * 4))
    parquet.write_table(table, "odd.parquet")
    assert [row["patient"] for row in read(said("predict", "tumours.deciban", "odd.parquet", "--append").out)] == odd
    lines = said("predict", "tumours.deciban", "odd.parquet", "--append", "--json").out.splitlines()
    assert [json.loads(line)["patient"] for line in lines] == odd


def test_prior_cost_and_unsure_are_those_of_the_asker(here, said, clf):
    rare = read(said("predict", "tumours.deciban", "new.csv", "--prior", "malignant=.001").out)
    P = clf.predict_proba("new.csv", prior={"malignant": 0.001})
    assert [float(row["P(malignant)"]) for row in rare] == pytest.approx(P[:, 1].tolist(), rel=1e-5)
    dear = read(said("predict", "tumours.deciban", "new.csv", "--cost", "malignant:benign=1e12").out)
    assert {row["prediction"] for row in dear} == {"malignant"}
    sure = read(said("predict", "tumours.deciban", "new.csv", "--unsure", "1").out)
    assert {row["prediction"] for row in sure} == {""}
    null = [
        json.loads(line)
        for line in said("predict", "tumours.deciban", "new.csv", "--unsure", "1", "--json").out.splitlines()
    ]
    assert {row["prediction"] for row in null} == {None}


@pytest.mark.slow
def test_sets_are_those_of_the_library(here, said, clf):
    learnt = ("predict", "tumours.deciban", "ten.csv", "--coverage", ".99", "--learnt", "tumours.csv")
    made = clf.predict_set("ten.csv", 0.99, learnt=("tumours.csv", "diagnosis"))
    done = said(*learnt)
    assert [row["set"] for row in read(done.out)] == [" | ".join(each) for each in made]
    assert f"{(made.size == 1).sum()} of one class, {(made.size > 1).sum()} of several" in done.err
    assert {len(each) for each in made} == {1, 2}
    lines = said(*learnt[:-4], "--coverage", ".5", *learnt[-2:], "--json").out.splitlines()
    assert "" in {json.loads(line)["set"] for line in lines}


def test_a_broken_row_is_skipped_only_when_asked_and_is_counted(here, said):
    lines = Path("new.csv").read_text().splitlines()
    broken = [*lines[:2], "2000,wide,20,.1,none,yes", "2001,14", *lines[2:]]
    (here / "broken.csv").write_text("\n".join(broken) + "\n")
    assert said("predict", "tumours.deciban", "broken.csv").code == 1
    found = said("predict", "tumours.deciban", "broken.csv", "--skip-bad")
    assert found.code == 0
    assert found.out == said("predict", "tumours.deciban", "new.csv").out
    assert "2 rows skipped" in found.err
    assert "broken.csv, line 3" in found.err


def test_the_parts_of_an_explanation_sum_to_the_answer(here, said, clf):
    told = json.loads(said("explain", "tumours.deciban", "new.csv", "--row", "2,4", "--json", "--unit", "nats").out)
    assert told["rows"] == [2, 4]
    for i, row in enumerate((1, 3)):
        parts = sum(told["parts"][i]) + sum(part[i] for part in told["other"].values())
        assert parts == pytest.approx(told["evidence"][i])
        odds = clf.decision_function("new.csv")[row]
        assert told["posterior"][i] == pytest.approx(parts + told["prior"][i]) == pytest.approx(odds)


def test_an_explanation_is_a_table_a_picture_or_a_page(here, said):
    text = said("explain", "tumours.deciban", "new.csv", "--row", "1", "--over", "benign").out
    assert "█" in text
    assert "posterior" in text
    assert said("explain", "tumours.deciban", "new.csv", "--svg", "why.svg").code == 0
    assert "<svg" in Path("why.svg").read_text()
    assert said("explain", "tumours.deciban", "new.csv", "--html", "why.html").code == 0
    assert Path("why.html").read_text().count("<table>") == 5


@pytest.mark.slow
def test_leave_one_out_is_the_librarys_and_knows_groups(here, said, clf):
    told = json.loads(said("evaluate", "tumours.deciban", "tumours.csv", "--leave-one-out", "--json").out)
    truth = clf.evaluate("tumours.csv", "diagnosis", learnt=True)
    assert told["error_rate"] == truth.error_rate
    assert told["log_loss"] == pytest.approx(truth.log_loss)
    grouped = json.loads(
        said("evaluate", "tumours.deciban", "tumours.csv", "--leave-one-out", "--groups", "concave", "--json").out
    )
    assert grouped["rows"] == told["rows"]
    assert grouped["log_loss"] > told["log_loss"]


def test_the_scores_of_another_system_are_judged_and_drawn(here, said):
    rng = np.random.default_rng(0)
    same = rng.random(300) < 0.5
    bans = np.where(same, 1, -1) * 0.6 + rng.normal(size=300)
    lines = [f"{s:.6f},{'target' if t else 'non-target'}" for s, t in zip(bans, same)]
    (here / "scores.csv").write_text("\n".join(["score,kind", *lines]) + "\n")
    asked = ("--scores", "scores.csv", "--llr", "score", "--target", "kind", "--unit", "bans")
    told = json.loads(said("evaluate", *asked, "--plots", "pictures", "--json").out)
    assert told["cllr"] == pytest.approx(deciban.evaluate.cllr(np.round(bans, 6) * np.log(10), same))
    assert len(told["plots"]) == 7
    assert all("<svg" in Path(path).read_text() for path in told["plots"])


def test_a_model_is_drawn_as_well_as_its_answers(here, said):
    told = json.loads(said("evaluate", "tumours.deciban", "test.csv", "--plots", "pictures", "--json").out)
    drawn = {Path(path).stem for path in told["plots"]}
    assert {"roc", "reliability", "nomogram", "decision_regions", "class_densities-radius"} <= drawn
    assert all("<svg" in Path(path).read_text() for path in told["plots"])


def test_samples_have_the_models_columns_and_repeat_by_their_seed(here, said):
    first = said("sample", "tumours.deciban", "-n", "20", "--seed", "3").out
    assert first == said("sample", "tumours.deciban", "-n", "20", "--seed", "3").out
    assert list(read(first)[0]) == ["radius", "texture", "smoothness", "concave", "symmetric", "class"]
    only = read(said("sample", "tumours.deciban", "-n", "20", "--prior", "benign=1").out)
    assert {row["class"] for row in only} == {"benign"}
