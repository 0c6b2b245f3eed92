"""A session that a newcomer would type, with no Python at all: adult, SMS spam, and a folder of texts."""

import csv
import gzip
import io
import json
import os
from pathlib import Path

import pytest

DATA = os.environ.get("DECIBAN_DATA")
needs = pytest.mark.skipif(DATA is None, reason="set DECIBAN_DATA to the folder that holds adult/ and sms_spam/")


@pytest.mark.slow
@needs
def test_adult_is_fitted_asked_and_corrected(here, said):
    path = Path(str(DATA)) / "adult" / "adult.csv.gz"
    with gzip.open(path, "rt") as lines:
        header, *rows = [line for _, line in zip(range(6001), lines)]
    (here / "train.csv").write_text("".join([header, *rows[:5000]]))
    (here / "test.csv").write_text("".join([header, *rows[5000:]]))
    told = json.loads(said("fit", "train.csv", "--label", "income", "--column", "split=ignore", "--json").out)
    assert told["rows"] == 5000
    assert told["leave_one_out"]["error_rate"] < 0.2
    assert told["leave_one_out"]["cllr"] < 0.65
    assert said("predict", "train.deciban", "test.csv", "--append", "-o", "answers.csv").code == 0
    answers = list(csv.DictReader(io.StringIO((here / "answers.csv").read_text())))
    wrong = sum(row["prediction"] != row["income"] for row in answers)
    judged = json.loads(said("evaluate", "train.deciban", "test.csv", "--json").out)
    assert judged["error_rate"] == wrong / 1000 < 0.2
    assert "posterior" in said("explain", "train.deciban", "test.csv", "--row", "3").out
    assert said("learn", "train.deciban", "test.csv").code == 0
    assert json.loads(said("unlearn", "train.deciban", "test.csv", "--json").out)["rows"] == 5000


@pytest.mark.slow
@needs
def test_messages_are_told_apart_and_one_on_stdin_gives_one_line(here, said, monkeypatch):
    path = Path(str(DATA)) / "sms_spam" / "sms_spam.jsonl.gz"
    told = json.loads(said("fit", str(path), "--label", "label", "-o", "sms.deciban", "--json").out)
    assert told["leave_one_out"]["error_rate"] < 0.025
    assert {feature["favours"] for feature in told["features"]} <= {"ham", "spam", None}
    piped = io.TextIOWrapper(io.BufferedReader(io.BytesIO(b"Free entry! Claim your prize, txt WIN to 80086 now")))
    monkeypatch.setattr("sys.stdin", piped)
    _, line = said("predict", "sms.deciban").out.splitlines()
    assert line.startswith("spam,")
    (here / "one.txt").write_text("ok, see you at lunch later")
    assert said("learn", "sms.deciban", "one.txt", "--class", "spam").code == 0
    assert said("correct", "sms.deciban", "one.txt", "--was", "spam", "--now", "ham").code == 0


def test_a_folder_of_texts_is_a_model_and_a_question(here, said):
    for name, words in {"sea": "boats sail on waves", "sky": "planes fly in clouds"}.items():
        (here / "texts" / name).mkdir(parents=True)
        for number in range(12):
            (here / "texts" / name / f"{number}.txt").write_text(f"{words} {words.split()[number % 4]}")
    assert said("fit", "texts").code == 0
    judged = json.loads(said("evaluate", "texts.deciban", "texts", "--leave-one-out", "--json").out)
    assert judged["error_rate"] == 0
    lines = json.loads(said("inspect", "texts.deciban", "--json").out)["parameters"]
    assert {line["feature"] for line in lines[:4]} <= {"boats", "sail", "waves", "planes", "fly", "clouds", "on", "in"}
    assert sum(line["mean"] for line in lines if line["label"] == "sea") == pytest.approx(1)
    (here / "mail.eml").write_text("Subject: holidays\nFrom: a@example.org\n\nwaves and boats\n")
    assert said("predict", "texts.deciban", "mail.eml").out.splitlines()[1].startswith("sea,")
    (here / "flat").mkdir()
    (here / "flat" / "a.txt").write_text("clouds and planes")
    (here / "flat" / "b.txt").write_text("waves and boats")
    rows = list(csv.DictReader(io.StringIO(said("predict", "texts.deciban", "flat", "--append").out)))
    assert [(row["file"], row["prediction"]) for row in rows] == [("flat/a.txt", "sky"), ("flat/b.txt", "sea")]
    (here / "flat" / "c.txt").write_bytes(b"\0\1\2")
    assert "zero bytes" in said("predict", "texts.deciban", "flat").err
