"""Model files as commands use them: opened by kind, and changed by one writer at a time."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from deciban.cli.names import existing
from deciban.cli.terminal import Terminal
from deciban.errors import ModelFileError, UsageError

TURN = 0.05  # seconds between two looks at a lock
KEY = "DECIBAN_KEY"  # of the environment: the key of ledgers


def ledger_key(key_file: str | None) -> bytes | None:
    """The key of the ledger: what a file holds, or else the environment; None where neither does."""
    if key_file is not None:
        return Path(existing(key_file)).read_bytes().strip() or None
    return os.environ.get(KEY, "").encode() or None


def open_model(path: str, *kinds: str, key: Any = None) -> Any:
    """The model in a file, of one of these kinds (or any)."""
    from deciban.store import describe, load

    if os.path.isdir(existing(path)):
        raise UsageError(f"{path!r} is a folder. Give the model file that deciban fit wrote.")
    found = describe(path)["kind"]
    if kinds and found not in kinds:
        raise UsageError(f"{path} holds a {found}, and this command is for {' or '.join(kinds)}.")
    if found == "GenerativeClassifier":  # what it needs is then known, and the loader need not look further
        from deciban.estimators import classifier  # noqa: F401
    return load(path, key=key)


@contextmanager
def changing(terminal: Terminal, path: str, wait: float) -> Iterator[None]:
    """Hold a model file while it is read, changed and replaced; others wait their turn, or are refused.

    The lock is on the file itself. Who gets it looks whether the name still means that file: the one before may have
    replaced it.
    """
    try:
        import fcntl
    except ImportError:  # a system without such locks: the file is still replaced whole
        yield
        return
    deadline, told = time.monotonic() + wait, False
    while True:
        with open(existing(path), "rb") as held:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                if time.monotonic() >= deadline:
                    raise ModelFileError(
                        f"{path} is being changed by another deciban, and was for {wait:g} seconds. Nothing was "
                        "changed: try again, or wait longer with --wait."
                    ) from None
                if not told:
                    terminal.note(f"waiting for another deciban to finish with {path} …")
                    told = True
                time.sleep(TURN)
                continue
            if _same(held, path):
                yield
                return


def _same(held: Any, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(held.fileno()), os.stat(path))
    except FileNotFoundError:
        return False
