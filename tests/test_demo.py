"""The demonstration runs, shows what it promises, and says each command before it runs it."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    command = [sys.executable, "-W", "error", "-m", "deciban.demo", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def test_the_ideas_fit_a_screen_and_keep_their_promises(shown):
    ideas = shown[: shown.index("[5/6]")]
    lines = ideas.splitlines()
    assert len(lines) < 40
    for step in ("[1/6]", "[2/6]", "[3/6]", "[4/6]"):
        assert any(line.startswith(step) for line in lines)
    assert "counts identical to the bit: yes" in ideas
    assert "NotLearntError" in ideas
    assert "the model is unchanged: yes" in ideas
    table = [line.split() for line in lines if line.strip().startswith(("full", "tied diagonal"))]
    assert table[0][2:6] == ["10.6", "11.4", "10.7", "9.5"]
    assert table[1][1:5] == ["6.2", "4.9", "7.7", "7.0"]


def test_each_command_is_printed_before_what_it_prints(shown):
    commands = [part.splitlines() for part in shown.split("\n$ deciban ")[1:]]
    assert [lines[0].split()[0] for lines in commands] == [
        "fit", "predict", "explain", "fit", "predict", "explain", "unlearn", "learn", "report",
    ]  # fmt: skip
    assert all(len(lines) > 1 and lines[1] for lines in commands)


def test_whole_texts_that_the_model_has_not_seen_are_told_apart(shown):
    answers = [line.split(",") for line in shown.splitlines() if line.startswith("unseen/")]
    assert len(answers) == 6
    for file, language, *_ in answers:
        assert language == ("C" if file.endswith(".c.txt") else "Python")


def test_a_table_with_gaps_is_learnt_and_its_rows_taken_back(shown):
    table = shown[shown.index("[6/6]") :]
    assert "564 rows, 2 classes" in table
    assert "column 'patient' is ignored" in table
    assert "554 rows (−10)" in table
    assert table.count("564 rows (+10)") == 1


def test_the_demonstration_ends_with_what_to_try_next(shown):
    assert "/report.html" in shown[shown.index("\nlook: file://") : shown.index("\nnext:")]
    assert "deciban fit yours.csv --label COLUMN" in shown[shown.index("\nnext:") :]
