"""Errors about rows of a file name the line, in every batch and after skipped lines."""

import re

import numpy as np
import pytest

from deciban import GenerativeClassifier, Poisson, Text
from deciban.cli.process import run
from deciban.errors import DecibanError, DomainError
from deciban.read.files import open_source

HEAD = 65_536  # rows of a batch
BAD = {10: "much,a", 20: "3,", 65_800: "3,", 65_801: "much,b"}  # cells and labels that are skipped on request


def write(path, lines, rows=HEAD + 500):
    """A file of columns x and label; `lines` are written as given."""
    x = np.random.default_rng(0).poisson(3, rows)
    text = ["x,label", *(f"{value},{'ab'[i % 2]}" for i, value in enumerate(x))]
    for line, given in lines.items():
        text[line - 1] = given
    path.write_text("\n".join(text) + "\n")
    return path


def line_of(error):
    """The line that an error names."""
    (line,) = re.findall(r"rows\.csv, line (\d+)", str(error))
    return int(line)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "rows.csv"


@pytest.fixture
def clf(tmp_path):
    return GenerativeClassifier({"x": Poisson()}).fit(write(tmp_path / "clean.csv", {}, 200), "label")


@pytest.mark.parametrize("line", [2, 17, HEAD + 1, HEAD + 2, 66_002])
def test_a_value_that_its_family_refuses(line, path):
    write(path, {line: "-3,a"})
    with pytest.raises(DomainError, match="holds -3") as error:
        GenerativeClassifier({"x": Poisson()}).fit(path, "label")
    assert line_of(error.value) == line


@pytest.mark.parametrize("line", [17, 66_002])
def test_a_value_that_its_family_refuses_behind_skipped_rows(line, path):
    write(path, BAD | {line: "-3,a"})
    with pytest.raises(DomainError, match="holds -3") as error:
        GenerativeClassifier({"x": Poisson()}).fit(open_source(path, skip_bad=True), "label")
    assert line_of(error.value) == line


@pytest.mark.parametrize("line", [17, 66_002])
@pytest.mark.parametrize("cell", ["-3,a", "much,a", "3,"])
def test_a_row_that_cannot_be_learnt(cell, line, path, clf):
    write(path, {line: cell})
    with pytest.raises(DecibanError) as error:
        clf.learn(path, "label")
    assert line_of(error.value) == line
    assert clf.stats_.rows.sum() == 200


@pytest.mark.parametrize("line", [17, 66_002])
def test_a_cell_that_cannot_be_scored(line, path, clf):
    write(path, {line: "much,a"})
    with pytest.raises(DomainError, match="'much'") as error:
        clf.predict(path)
    assert line_of(error.value) == line


def test_skipped_rows_are_named_by_line(path, monkeypatch, capsys):
    write(path, {10: "much,a", 20: "much,b", 40: "3,", 66_002: "much,a"})
    monkeypatch.chdir(path.parent)
    assert run(["fit", "rows.csv", "--label", "label", "--column", "x=poisson", "--skip-bad"]) == 0
    said = capsys.readouterr().err
    assert "4 rows skipped" in said
    assert [int(line) for line in re.findall(r"line (\d+)", said)] == [10, 20, 66_002]


def test_batches_that_come_in_parts_because_of_much_text(path):
    """Behind the first rows a batch holds 8 MiB of text at most."""
    rows, line = HEAD + 30_000, HEAD + 29_500
    notes = ["word"] * HEAD + ["word " * 60] * (rows - HEAD)
    text = ["x,note,label", *(f"{i % 7},{note},{'ab'[i % 2]}" for i, note in enumerate(notes))]
    text[line - 1] = f"-3,{notes[-1]},a"
    path.write_text("\n".join(text) + "\n")
    families = {"x": Poisson(), "note": Text("multinomial", "counts", 1.0)}
    with pytest.raises(DomainError, match="holds -3") as error:
        GenerativeClassifier(families, calibrate=None).fit(path, "label")
    assert line_of(error.value) == line
