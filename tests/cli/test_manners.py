"""How the program behaves among others: terminals, pipes, signals, disks that are full, and a second writer."""

import fcntl
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time

import pytest

from cli.terminals import OnTerminal
from program import PROGRAM, environment, process

COLOUR = re.compile(r"\x1b\[([0-9]+;)*3[0-7]m")
ROW = "1,14.2,20.1,.09,some,yes\n"
HEADER = "patient,radius,texture,smoothness,concave,symmetric\n"


def half_written(folder):
    return [path.name for path in folder.iterdir() if path.name.endswith(".deciban-tmp")]


@pytest.mark.slow
def test_progress_is_shown_on_a_terminal_with_speed(here):
    shown = OnTerminal(here, "predict", "tumours.deciban", "-", "-o", "answers.csv")
    shown.send(HEADER + ROW * 70_000)
    shown.wait(lambda: half_written(here))
    time.sleep(1.2)  # a bar shows after a second
    shown.send(ROW * 70_000)
    code, seen = shown.finish()
    assert code == 0, seen
    assert "rows/s" in seen
    assert "MB/s" in seen
    assert len((here / "answers.csv").read_text().splitlines()) == 140_001


@pytest.mark.slow
def test_nothing_but_the_answer_is_written_where_nobody_looks(here):
    done = process(here, "predict", "tumours.deciban", "-", stdin=HEADER + ROW * 3)
    assert done.code == 0
    assert done.err == ""
    assert done.out.count("\n") == 4
    assert "\x1b" not in done.out


def test_colours_are_for_terminals_that_want_them(here):
    arguments = ("explain", "tumours.deciban", "new.csv", "--row", "1")
    assert COLOUR.search(OnTerminal(here, *arguments).finish()[1])
    assert not COLOUR.search(OnTerminal(here, *arguments, NO_COLOR="1").finish()[1])


def test_ctrl_c_stops_at_once_and_leaves_no_half_file(here):
    shown = OnTerminal(here, "predict", "tumours.deciban", "-", "-o", "answers.csv")
    shown.send(HEADER + ROW * 70_000)
    shown.wait(lambda: half_written(here))
    pressed = time.monotonic()
    os.write(shown.master, b"\x03")
    shown.wait(lambda: b"stopped" in shown.seen)
    assert time.monotonic() - pressed < 5
    code, seen = shown.finish()
    assert code == 130
    assert "Traceback" not in seen
    assert not half_written(here)
    assert not (here / "answers.csv").exists()


def test_a_process_that_is_asked_to_end_leaves_no_half_file(here):
    running = subprocess.Popen(
        [*PROGRAM, "predict", "tumours.deciban", "-", "-o", "answers.csv"],
        cwd=here, env=environment(), stdin=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    running.stdin.write((HEADER + ROW * 70_000).encode())
    running.stdin.flush()
    end = time.monotonic() + 60
    while not half_written(here) and time.monotonic() < end:
        time.sleep(0.05)
    running.send_signal(signal.SIGTERM)
    _, err = running.communicate(timeout=60)
    assert running.returncode == 143, err
    assert b"Traceback" not in err
    assert not half_written(here)


def test_output_can_be_piped_into_head(here):
    command = f"set -o pipefail; {' '.join(PROGRAM)} sample tumours.deciban -n 20000 | head -n 2"
    done = subprocess.run(["bash", "-c", command], cwd=here, env=environment(), capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.count(b"\n") == 2


def test_a_full_disk_is_said_and_nothing_half_written_is_left(here):
    before = (here / "tumours.deciban").read_bytes()
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*PROGRAM, "predict", "tumours.deciban", "new.csv"],
            cwd=here, env=environment(), stdout=full, stderr=subprocess.PIPE, check=False,
        )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.decode().startswith("deciban: No space left on device")
    assert done.stderr.count(b"\n") == 1
    done = subprocess.run(
        [*PROGRAM, "learn", "tumours.deciban", "ten.csv"],
        cwd=here, env=environment(), capture_output=True, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)),
    )  # fmt: skip
    assert done.returncode == 1
    assert b"larger than is allowed" in done.stderr
    assert (here / "tumours.deciban").read_bytes() == before
    assert not half_written(here)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("", "empty"),
        (HEADER, "no rows"),
        (HEADER + ROW + '2,14.2,"20.1', "Expected 6 columns"),
        ('{"radius": 1', "standard input"),
    ],
)
def test_stdin_that_ends_early_is_refused(given, words, here):
    done = process(here, "predict", "tumours.deciban", stdin=given)
    assert done.code == 1
    assert words in done.err
    assert done.err.count("\n") == 1


def test_two_writers_take_turns_and_nothing_is_lost(here):
    commands = [[*PROGRAM, "learn", "tumours.deciban", "ten.csv", "--json"]] * 2
    both = [subprocess.Popen(c, cwd=here, env=environment(), stdout=subprocess.PIPE) for c in commands]
    rows = sorted(json.loads(one.communicate(timeout=120)[0])["rows"] for one in both)
    assert rows == [574.0, 584.0]


def test_a_second_writer_is_refused_when_it_has_waited_long_enough(here, said):
    before = (here / "tumours.deciban").read_bytes()
    with open("tumours.deciban", "rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        found = said("learn", "tumours.deciban", "ten.csv", "--wait", "0.1")
    assert found.code == 1
    assert "another deciban process has been changing" in found.err
    assert (here / "tumours.deciban").read_bytes() == before


def test_the_program_alone_prints_its_help(here):
    done = process(here)
    assert (done.code, done.err) == (2, "")
    assert "Usage: deciban" in done.out


def test_a_traceback_is_there_for_those_who_ask(here):
    assert "Traceback" in process(here, "predict", "nothing.deciban", "new.csv", "--debug").err


def test_the_program_says_which_it_is_and_completes_its_commands(here):
    assert re.fullmatch(r"deciban \S+\n", process(here, "--version").out)
    script = process(here, "--show-completion", _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1", SHELL="/bin/bash")
    completing = {"_DECIBAN_COMPLETE": "complete_bash", "COMP_WORDS": "deciban pre", "COMP_CWORD": "1"}
    assert "predict" in process(here, **completing).out, script


LOADED = """
import sys
from deciban.cli import run_program
run_program({arguments})
print("loaded", [name for name in {heavy} if name in sys.modules], file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("arguments", "heavy"),
    [
        (["--help"], ["numpy", "pyarrow", "scipy", "sklearn", "deciban.estimators", "matplotlib"]),
        (
            ["predict", "tumours.deciban", "new.csv"],
            ["pandas", "scipy.stats._stats_py", "numba", "matplotlib"],
        ),
    ],
    ids=["help", "predict"],
)
def test_what_a_command_does_not_use_is_not_imported(arguments, heavy, here):
    code = LOADED.format(arguments=arguments, heavy=heavy)
    done = subprocess.run([sys.executable, "-c", code], cwd=here, env=environment(), capture_output=True, check=False)
    assert done.stderr.decode() == "loaded []\n"


def test_the_copy_of_stdin_is_removed(here, tmp_path_factory):
    folder = tmp_path_factory.mktemp("temporary")
    rows = (here / "tumours.csv").read_bytes()
    done = process(here, "fit", "-", "--label", "diagnosis", "-o", "x.deciban", "-q", stdin=rows, TMPDIR=str(folder))
    assert (done.code, done.err) == (0, "")
    assert list(folder.glob("deciban-stdin-*")) == []
