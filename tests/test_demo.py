"""The demonstration runs, is short, and shows what it promises."""

import subprocess
import sys


def test_the_demo_fits_a_screen_and_keeps_its_promises():
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "deciban.demo"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) < 40
    for step in ("[1/4]", "[2/4]", "[3/4]", "[4/4]"):
        assert any(line.startswith(step) for line in lines)
    assert "counts identical to the bit: yes" in done.stdout
    assert "NotLearntError" in done.stdout
    assert "the model is as it was: yes" in done.stdout
    table = [line.split() for line in lines if line.strip().startswith(("full", "tied diagonal"))]
    assert table[0][2:6] == ["10.6", "11.4", "10.7", "9.5"]
    assert table[1][1:5] == ["6.2", "4.9", "7.7", "7.0"]
