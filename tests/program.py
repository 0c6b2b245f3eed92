"""The program `deciban` as a process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

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
