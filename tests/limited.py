"""Python code in a process of its own, with hard limits of processor time and memory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

LIMIT = '''
import resource

def limit(seconds, megabytes):
    """Bound what the process may use from here on; more processor time ends it, more memory is a MemoryError."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = int(used.ru_utime + used.ru_stime + seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    with open("/proc/self/statm") as file:
        memory = int(file.read().split()[0]) * resource.getpagesize() + megabytes * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
'''
WALL_SECONDS = 60  # until a process that waits is ended


def run_limited(code: str, *arguments: str | Path) -> str:
    """Return what the code prints; it calls `limit` when all that it needs is imported and compiled."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", LIMIT + code, *map(str, arguments)],
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        text=True,
        timeout=WALL_SECONDS,
    )
    assert done.returncode == 0, f"ended with {done.returncode}: {done.stderr[-2000:]}"
    return done.stdout
