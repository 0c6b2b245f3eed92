"""The tagger as a user runs it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TAGGER = Path(__file__).parents[2] / "examples" / "tagger.py"
DATA = os.environ.get("DECIBAN_DATA")


def run(*options):
    environment = {name: value for name, value in os.environ.items() if name != "DECIBAN_DATA"}
    command = [sys.executable, "-W", "error", str(TAGGER), *options]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.skipif(DATA is None, reason="set DECIBAN_DATA to the folder that holds ud_english_ewt/ for the tagger")
def test_universal_tags_are_right_more_than_92_times_in_a_hundred():
    done = run("--data", str(DATA))
    assert done.returncode == 0, done.stderr
    accuracy = {
        name: float(value)
        for name, value in re.findall(r"^([^\d\n]+?) +(?:17|102)? +(\d+\.\d\d) ", done.stdout, re.MULTILINE)
    }
    assert accuracy["each word's most frequent tag"] < 87
    assert accuracy["universal tags"] > 92
    assert accuracy["universal and English tags"] > 93
    assert "to the bit, True" in done.stdout


def test_a_treebank_that_is_not_there_is_named():
    done = run("--data", "nowhere.gz")
    assert done.returncode == 1
    assert "nowhere.gz is not there" in done.stderr
