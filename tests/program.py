"""The program `deciban` as a process."""

from __future__ import annotations

import io
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn

PROGRAM = [sys.executable, "-W", "error", "-m", "deciban"]


def environment(**more: str) -> dict[str, str]:
    plain = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
    return {**plain, "OPENBLAS_NUM_THREADS": "1", **more}


def process(folder: Path, *arguments: str, stdin: str | bytes | None = None, **more: str):
    """Run the program to its end; stdin is a pipe if given, else there is none."""
    given = stdin.encode() if isinstance(stdin, str) else stdin
    pipe = {"input": given} if given is not None else {"stdin": subprocess.DEVNULL}
    done = subprocess.run(
        [*PROGRAM, *arguments],
        cwd=folder,
        env=environment(**more),
        capture_output=True,
        check=False,
        timeout=120,
        **pipe,
    )
    return SimpleNamespace(code=done.returncode, out=done.stdout.decode(), err=done.stderr.decode(), raw=done.stdout)


def forked(
    folder: Path,
    *arguments: str,
    stdout: int | None = None,
    closed: int | None = None,
    limit: int | None = None,
    unbuffered: bool = False,
    user: int | None = None,
):
    """Run the program in a fork of this process, which has imported it already: ten times as quick as `process`.

    `stdout` is a descriptor, instead of a file; the descriptor `closed` is closed; `limit` is the largest size of a
    file that the program may write; `user` is the user it runs as.
    """
    import_program()
    seen = [tempfile.TemporaryFile() for _ in range(2)]  # noqa: SIM115
    child = os.fork()
    if not child:
        os.chdir(folder)
        places = (os.open(os.devnull, os.O_RDONLY), stdout or seen[0].fileno(), seen[1].fileno())
        for number, place in enumerate(places):
            os.dup2(place, number)
        if closed is not None:
            os.closerange(3, 256)
            os.close(closed)
        if user is not None:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
        run_as_program(arguments, limit, unbuffered)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    texts = []
    for file in seen:
        with file:
            file.seek(0)
            texts.append(file.read())
    return SimpleNamespace(code=code, out=texts[0].decode(), err=texts[1].decode(), raw=texts[0])


@cache
def import_program() -> None:
    """Import what commands import, so that forks need not do it again, or may not, as other users."""
    modules = (
        "cli.app",
        "cli.rows",
        "cli.figures",
        "demo",
        "estimators.classifier",
        "store",
    )
    others = ("pyarrow.csv", "pyarrow.compute", "pyarrow.parquet", "rich.console", "rich.progress_bar", "numba")
    for name in (*(f"deciban.{module}" for module in modules), *others):
        import_module(name)
    nowhere = io.TextIOWrapper(io.BytesIO())
    with tempfile.TemporaryDirectory() as place, redirect_stdout(nowhere), redirect_stderr(nowhere):
        from deciban.cli.app import program_with
        from deciban.cli.process import run
        from deciban.demo import write_table

        program_with(None)
        write_table(Path(place))
        table, model = f"{place}/tumours.csv", f"{place}/x.deciban"
        assert run(["fit", table, "--label", "diagnosis", "-o", model]) == 0
        assert run(["learn", model, f"{place}/ten.csv"]) == 0
        assert run(["predict", model, f"{place}/new.csv"]) == 0
        assert run(["predict", model, f"{place}/nothing.csv"]) == 2


def run_as_program(arguments: Sequence[str], limit: int | None = None, unbuffered: bool = False) -> NoReturn:
    """Make this process, a fork, the program."""
    try:
        from deciban.cli import run_program
        from deciban.cli.process import end_process

        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        sys.stdout, sys.stderr = _stream(1, unbuffered), _stream(2, False)
        end_process(run_program(arguments))
    except KeyboardInterrupt:
        os._exit(130)
    finally:
        os._exit(99)


def _stream(number: int, unbuffered: bool) -> io.TextIOWrapper | None:
    """A standard stream as Python makes it; None if it is closed."""
    try:
        raw = io.FileIO(number, "w", closefd=False)
    except OSError:
        return None
    return io.TextIOWrapper(raw if unbuffered else io.BufferedWriter(raw), "utf-8", write_through=unbuffered)
