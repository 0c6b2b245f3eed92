"""Makes the n-th call of a kind fail, for every n, in every operation that reads or writes a model.

    python tests/faults/campaign.py [--allocations N] [--operations fit,learn,…]

The calls of the C library are intercepted by `shim.c`, which this program compiles and loads into itself (LD_PRELOAD),
so that those of Python, NumPy and Arrow are all counted. Each run is a fork of this process in a folder of its own.
After each, the model file must be the old one or the new one, byte by byte; no temporary file may be left; and an error
must be one message of deciban's that is no internal error.
"""

from __future__ import annotations

import argparse
import ctypes
import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
MODEL = "model.deciban"  # the file that operations replace
ANSWERS = "answers.csv"  # the file that predict writes
UNSAID = "an error that does not say that the model was saved"
ABORTED = 127  # exit code of glibc where it finds no memory for thread-local data
SECONDS = 300  # after which a run is taken to hang; other processes may take the CPU


class Kind(NamedTuple):
    """A kind of call, as `shim.c` numbers it, and how it fails."""

    name: str
    number: int
    error: int
    lasting: bool = False  # all later calls fail, too
    smallest: int = 0  # bytes of an allocation that counts


KINDS = (
    Kind("open", 1, errno.EMFILE),
    Kind("open", 1, errno.EACCES, True),
    Kind("read", 2, errno.EIO),
    Kind("write", 3, errno.EIO),
    Kind("write", 3, errno.ENOSPC, True),
    Kind("short write", 4, 0),
    Kind("fsync", 5, errno.EIO),
    Kind("rename", 6, errno.EIO),
    Kind("map", 7, errno.ENOMEM),
    Kind("close", 8, errno.EIO),
    Kind("lock", 9, errno.ENOLCK),
    Kind("chmod", 10, errno.EPERM),
    Kind("seek", 11, errno.EIO),
)
LARGE = Kind("allocate 64 KiB or more", 12, errno.ENOMEM, False, 2**16)
ANY = Kind("allocate", 12, errno.ENOMEM)
OPERATIONS = {
    "fit": ["fit", "few.csv", "--label", "diagnosis", "-o", MODEL],
    "learn": ["learn", MODEL, "ten.csv"],
    "unlearn": ["unlearn", MODEL, "twenty.csv"],
    "correct": ["correct", MODEL, "twenty.csv", "--was", "diagnosis", "--now", "benign"],
    "merge": ["merge", "a.deciban", "b.deciban", "-o", MODEL],
    "load": ["predict", MODEL, "new.csv", "-o", ANSWERS],
}


@dataclass
class Found:
    """Counts of what happened, and descriptions of what must not happen."""

    points: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


class Shim:
    """The intercepted calls of this process."""

    def __init__(self, folder: Path) -> None:
        self.library = ctypes.CDLL(None)
        self.library.fault_count.restype = ctypes.c_long
        self.library.fault_arm.argtypes = [ctypes.c_int, ctypes.c_long, ctypes.c_int, ctypes.c_int, ctypes.c_size_t]
        self.library.fault_folder(os.fsencode(folder))

    def arm(self, kind: Kind, n: int) -> None:
        self.library.fault_arm(kind.number, n, kind.error, kind.lasting, kind.smallest)

    def disarm(self) -> int:
        """Stop failing; return the number of calls."""
        calls = self.library.fault_count()
        self.library.fault_arm(0, 0, 0, 0, 0)
        return calls


def prepare(folder: Path) -> None:
    """Write tables, and models of them."""
    from deciban.cli.process import run
    from deciban.demo import write_table

    folder.mkdir()
    write_table(folder)
    lines = (folder / "tumours.csv").read_text().splitlines(keepends=True)
    (folder / "half.csv").write_text("".join(lines[:300]))
    columns = [0, 1, 2, lines[0].rstrip().split(",").index("diagnosis")]
    few = [",".join(line.rstrip().split(",")[column] for column in columns) + "\n" for line in lines[:101]]
    (folder / "few.csv").write_text("".join(few))  # a fit of all columns takes seconds, and makes the same calls
    (folder / "twenty.csv").write_text("".join(lines[:21]))
    before = os.getcwd()
    os.chdir(folder)
    try:
        fit = ["--label", "diagnosis", "-q"]
        assert run(["fit", "half.csv", *fit, "-o", MODEL]) == 0
        for name in ("a", "b"):
            assert run(["fit", "half.csv", *fit, "--like", MODEL, "-o", f"{name}.deciban"]) == 0
    finally:
        os.chdir(before)


class Runner:
    """Runs operations in forks of this process, each in a new copy of a folder."""

    def __init__(self, pristine: Path, work: Path) -> None:
        self.pristine, self.work = pristine, work
        self.messages, self.report = work.with_name("messages"), work.with_name("report")
        self.shim = Shim(work)

    def run(self, arguments: list[str], kind: Kind, n: int) -> tuple[int, str, int]:
        """Exit code, stderr and the number of calls of a run whose n-th call fails; with n = 0 none does."""
        shutil.rmtree(self.work, ignore_errors=True)
        shutil.copytree(self.pristine, self.work)
        receiving, sending = os.pipe()
        child = os.fork()
        if not child:
            self._child(arguments, kind, n, sending)
        os.close(sending)
        status = self._wait(child)
        calls = int(os.read(receiving, 100) or b"-1")
        os.close(receiving)
        return os.waitstatus_to_exitcode(status), self.messages.read_text(errors="replace"), calls

    def _child(self, arguments: list[str], kind: Kind, n: int, sending: int) -> None:
        try:
            from deciban.cli.output import prepare_streams
            from deciban.cli.process import end_process, run

            os.chdir(self.work)
            for number, path in ((1, self.report), (2, self.messages)):
                os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
            prepare_streams()
            self.shim.arm(kind, n)
            code = run(arguments)
            os.write(sending, str(self.shim.disarm()).encode())
            end_process(code)
        finally:
            os._exit(99)

    @staticmethod
    def _wait(child: int) -> int:
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            found, status = os.waitpid(child, os.WNOHANG)
            if found:
                return status
            time.sleep(0.002)
        os.kill(child, signal.SIGKILL)
        return os.waitpid(child, 0)[1]

    def answers(self) -> bytes | None:
        path = self.work / ANSWERS
        return path.read_bytes() if path.exists() else None

    def model(self) -> bytes:
        return (self.work / MODEL).read_bytes()


def inject(runner: Runner, name: str, kind: Kind, found: Found, most: int | None = None) -> None:
    """Make each call of a kind fail in turn; of many calls, `most` that are spread evenly."""
    arguments = OPERATIONS[name]
    code, message, calls = runner.run(arguments, kind, 0)
    assert code == 0, message
    old, new = (runner.pristine / MODEL).read_bytes(), runner.model()
    assert (old == new) == (name == "load"), name
    answers, report = runner.answers(), runner.report.read_bytes()
    step = 1 if most is None else max(1, calls // most)
    for n in range(1, calls + 1, step):
        code, message, _ = runner.run(arguments, kind, n)
        found.points[f"{name}: {kind.name}"] += 1
        problem = judge(runner, kind, code, message, old, new, answers)
        if problem == UNSAID and runner.report.read_bytes() == report:
            problem = ""  # the report says so: the fault came after the command
        found.outcomes["crash" if code < 0 or code == ABORTED else "success" if code == 0 else "error"] += 1
        if problem:
            found.wrong.append(f"{name}, {kind.name} {n} of {calls}: {problem} (code {code}): {message[-300:]!r}")


def judge(runner: Runner, kind: Kind, code: int, message: str, old: bytes, new: bytes, answers: bytes | None) -> str:
    """What is wrong after a run; empty if nothing is."""
    state = "old" if runner.model() == old else "new" if runner.model() == new else ""
    if not state:
        return "the model is neither the old nor the new one"
    if runner.answers() not in (None, answers):
        return "the answers are wrong or incomplete"
    if code == 0:
        whole = runner.model() == new and runner.answers() == answers
        return "" if whole else "success, but the model or the answers are not the new ones"
    if code == -signal.SIGKILL:
        return "it hung"
    if code < 0 or code == ABORTED:  # a library that does not survive a failed allocation; the file has
        return "" if kind.number == ANY.number else "it crashed"
    if list(runner.work.glob(".*.deciban-tmp")):
        return "a temporary file is left"
    if code != 1 or "Traceback" in message or "internal error" in message:
        return "no clear error"
    if not re.match(r"deciban: .{20,}\n", message):
        return "no message"
    if state == "new" and old != new and "was saved" not in message:
        return UNSAID
    return ""


def campaign(operations: list[str], allocations: int, kinds: tuple[Kind, ...] = KINDS) -> Found:
    """All kinds of faults in these operations; `allocations` is the number tried of each kind of allocation."""
    found = Found()
    with tempfile.TemporaryDirectory() as place:
        pristine = Path(place, "pristine")
        prepare(pristine)
        runner = Runner(pristine, Path(place, "work"))
        for name in operations:
            for kind in kinds:
                inject(runner, name, kind, found)
            for kind in (LARGE, ANY) if allocations else ():
                inject(runner, name, kind, found, allocations)
    return found


def shim(folder: Path) -> Path | None:
    """Compile the shim; None where there is no C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or not sys.platform.startswith("linux"):
        return None
    made = folder / "shim.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", made, HERE / "shim.c", "-ldl"], check=True)
    return made


def start(*arguments: str) -> subprocess.CompletedProcess[str] | None:
    """Run this program with the shim; None where it cannot be compiled."""
    with tempfile.TemporaryDirectory() as place:
        made = shim(Path(place))
        if made is None:
            return None
        environment = {**os.environ, "LD_PRELOAD": str(made), "OPENBLAS_NUM_THREADS": "1", "DECIBAN_SHIM": "1"}
        command = [sys.executable, __file__, *arguments]
        return subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)


def main() -> int:
    """Print the counts as JSON; 1 if anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--allocations", type=int, default=200)
    parser.add_argument("--operations", default=",".join(OPERATIONS))
    parser.add_argument("--kinds", default="")
    given = parser.parse_args()
    if "DECIBAN_SHIM" not in os.environ:
        done = start(*sys.argv[1:])
        print("there is no C compiler here" if done is None else done.stdout)
        return 0 if done is None else done.returncode
    wanted = given.kinds.split(",") if given.kinds else None
    kinds = tuple(kind for kind in KINDS if wanted is None or kind.name in wanted)
    found = campaign(given.operations.split(","), given.allocations, kinds)
    print(json.dumps({"points": found.points, "outcomes": found.outcomes, "wrong": found.wrong}, indent=1))
    return 1 if found.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
