"""Examples run as processes, and print what they promise."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
DATA = os.environ.get("DECIBAN_DATA")
DIGITS = {
    "tied diagonal": [10.6, 11.4, 10.7, 9.5],
    "tied": [9.5, 9.7, 9.9, 9.5],
    "diagonal": [9.5, 10.1, 9.9, 9.0],
    "full": [6.2, 4.9, 7.7, 7.0],
}
MNIST = {
    "tied diagonal": [13.72, 14.40, 25.00, 12.29],
    "tied": [12.29, 12.56, 23.68, 12.29],
    "diagonal": [12.19, 12.29, 23.40, 11.35],
    "full": [4.30, 3.63, 12.21, 10.15],
}


def errors(*options: str) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Our cells and scikit-learn's, as the example prints them."""
    environment = {name: value for name, value in os.environ.items() if name != "DECIBAN_DATA"}
    command = [sys.executable, "-W", "error", str(EXAMPLES / "mnist_table.py"), *options]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = re.findall(r"^(tied diagonal|tied|diagonal|full)((?: +(?:[\d.]+|–)){8})$", done.stdout, re.MULTILINE)
    cells = {name: [float(cell) for cell in line.split() if cell != "–"] for name, line in rows}
    return {name: row[:4] for name, row in cells.items()}, {name: row[4:] for name, row in cells.items() if row[4:]}


def assert_within(found: dict[str, list[float]], expected: dict[str, list[float]], points: float) -> None:
    for name, row in found.items():
        assert row == pytest.approx(expected[name], abs=points), name


def test_sixteen_models_of_digits_come_from_one_pass():
    ours, theirs = errors()
    assert set(ours) == set(DIGITS)
    assert_within(ours, DIGITS, 0.001)
    assert set(theirs) == {"tied", "diagonal", "full"}
    assert_within(theirs, DIGITS, 0.001)


@pytest.mark.slow
@pytest.mark.skipif(DATA is None, reason="set DECIBAN_DATA to the folder that holds mnist/ for the table of MNIST")
def test_sixteen_models_of_mnist_come_from_one_pass():
    ours, theirs = errors("--data", str(DATA))
    assert set(ours) == set(MNIST)
    assert_within(ours, MNIST, 0.0201)
    assert_within(theirs, MNIST, 0.0201)


def test_a_folder_without_mnist_is_named():
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "mnist_table.py"), "--data", str(EXAMPLES)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "train-images-idx3-ubyte.gz is not there" in done.stderr


@pytest.mark.slow
@pytest.mark.skipif(DATA is None, reason="set DECIBAN_DATA to the folder that holds 20newsgroups/ and webkb/")
def test_bernoulli_is_ahead_with_few_words_and_multinomial_with_many(tmp_path):
    example, curve = str(EXAMPLES / "vocabulary_size.py"), tmp_path / "curve.png"
    command = [sys.executable, "-W", "error", example, "--plot", str(curve)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    tables = [table for table in done.stdout.split("\n\n") if table.strip()]
    assert [table.split(":")[0] for table in tables] == ["20 Newsgroups", "WebKB"]
    for table in tables:
        rows = re.findall(r"^ *([\d,]+) +(0\.\d+) +(0\.\d+)", table, re.MULTILINE)
        gain = {int(size.replace(",", "")): float(ours) - float(other) for size, ours, other in rows}
        assert all(more > 0 for size, more in gain.items() if 10 <= size <= 20), table
        assert all(more < 0 for size, more in gain.items() if size >= 200), table
    assert curve.stat().st_size > 10_000


def test_the_curve_says_which_data_it_needs():
    environment = {name: value for name, value in os.environ.items() if name != "DECIBAN_DATA"}
    command = [sys.executable, str(EXAMPLES / "vocabulary_size.py")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--data DIR" in done.stderr
