"""SIGINT and SIGTERM at many moments of a command: the old model or the new one, and no temporary file."""

import os
import signal
import time

import pytest

from deciban import load
from deciban.demo import write_table
from program import forked, run_as_program

pytestmark = pytest.mark.slow

ROWS = {"fit": (564,), "learn": (564, 574)}
COMMANDS = {
    "fit": ["fit", "tumours.csv", "--label", "diagnosis", "-o", "model.deciban"],
    "learn": ["learn", "model.deciban", "ten.csv"],
}
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("signals")
    write_table(folder)
    done = forked(folder, *COMMANDS["fit"])
    assert done.code == 0, done.err
    return folder


def start(folder, arguments):
    child = os.fork()
    if not child:
        os.chdir(folder)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            os.dup2(nowhere, number)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        run_as_program(arguments)
    return child


@pytest.mark.parametrize("name", COMMANDS)
def test_a_signal_leaves_a_whole_model(folder, name):
    old = (folder / "model.deciban").read_bytes()
    begun = time.monotonic()
    os.waitpid(start(folder, COMMANDS[name]), 0)
    seconds = time.monotonic() - begun
    new, codes = (folder / "model.deciban").read_bytes(), set()
    for at in range(6):
        number = list(CODES)[at % 2]
        (folder / "model.deciban").write_bytes(old)
        child = start(folder, COMMANDS[name])
        time.sleep(0.03 + seconds * at / 7)
        os.kill(child, number)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert code in (0, CODES[number], -number)  # it may end before the signal, or get it before it has handlers
        codes.add(code)
        assert (folder / "model.deciban").read_bytes() in (old, new)
        assert load(folder / "model.deciban", verify=True).stats_.rows.sum() in ROWS[name]
        assert not list(folder.glob(".*.deciban-tmp"))
    (folder / "model.deciban").write_bytes(old)
    assert codes & {130, 143}
