"""With --skip-bad, messages name the lines of the file, however many rows were skipped before them."""

import re

import numpy as np
import pytest

from deciban import GenerativeClassifier, Poisson

HEAD = 65_536  # rows of a batch
BAD = {10: "much,a", 20: "much,b", 30: "much,a"}  # three lines of the first batch that are skipped


def write(name, lines, rows=HEAD + 500):
    """A file of columns x and label; `lines` are written as given."""
    x = np.random.default_rng(0).poisson(3, rows)
    text = ["x,label", *(f"{value},{'ab'[i % 2]}" for i, value in enumerate(x))]
    for line, given in lines.items():
        text[line - 1] = given
    with open(name, "w") as file:
        file.write("\n".join(text) + "\n")
    return name


def lines_of(text):
    return [int(line) for line in re.findall(r"line (\d+)", text)]


def test_predict_names_a_skipped_line_of_a_later_batch(said_alone):
    write("clean.csv", {})
    GenerativeClassifier({"x": Poisson()}).fit("clean.csv", "label").save("model.deciban")
    write("rows.csv", {**BAD, 66002: "much,a"})
    found = said_alone("predict", "model.deciban", "rows.csv", "--skip-bad", "-o", "answers.csv")
    assert found.code == 0
    assert "4 rows skipped" in found.err
    assert lines_of(found.err) == [10, 20, 30, 66002]


def test_predict_names_the_line_of_an_impossible_value_behind_skipped_rows(said_alone):
    write("clean.csv", {}, 200)
    GenerativeClassifier({"x": Poisson()}).fit("clean.csv", "label").save("model.deciban")
    for lines, rows in (({**BAD, 150: "-3,a"}, 200), ({**BAD, 66002: "-3,a"}, HEAD + 500)):
        write("rows.csv", lines, rows)
        found = said_alone("predict", "model.deciban", "rows.csv", "--skip-bad", "-o", "answers.csv")
        assert found.code == 1
        assert lines_of(found.err) == [max(lines)]


@pytest.mark.parametrize("command", ["evaluate", "unlearn"])
def test_a_stranger_to_the_ledger_is_named_by_its_line_behind_skipped_rows(command, said_alone):
    write("clean.csv", {})
    GenerativeClassifier({"x": Poisson()}, ledger=True).fit("clean.csv", "label").save("model.deciban")
    write("rows.csv", {**BAD, 40: "3,", 66002: "99,a"})  # no row of clean.csv holds 99
    more = ["--leave-one-out"] if command == "evaluate" else []
    found = said_alone(command, "model.deciban", "rows.csv", "--label", "label", "--skip-bad", *more)
    assert found.code == 1
    assert lines_of(found.err) == [66002]
