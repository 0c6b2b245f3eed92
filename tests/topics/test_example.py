"""The example finds the topics of a folder of texts."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "topics.py"


def run(*options):
    environment = {name: value for name, value in os.environ.items() if name != "DECIBAN_DATA"}
    command = [sys.executable, "-W", "error", str(EXAMPLE), *map(str, options)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_topics_of_a_folder_and_their_page(tmp_path):
    for at in range(30):
        text = "ships sail the stormy sea" if at % 2 else "wolves hunt the woolly sheep"
        words = " ".join(f"{word}{at % 5}" for word in text.split())
        (tmp_path / f"{at}.txt").write_text(f"{text} {words}")
    done = run(tmp_path, "--topics", 2, 3, "--out", tmp_path / "topics.html")
    assert done.returncode == 0, done.stderr
    assert "30 documents" in done.stdout
    assert "2 topics: perplexity" in done.stdout
    assert "Map of topics" in (tmp_path / "topics.html").read_text()


def test_a_folder_without_texts_is_named(tmp_path):
    done = run(tmp_path)
    assert done.returncode == 1
    assert "there is no .txt file" in done.stderr
