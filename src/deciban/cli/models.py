"""What options name: classes, columns, numbers. A name that is not there is answered with the nearest ones."""

from __future__ import annotations

import difflib
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from deciban.cli.terminal import Terminal
from deciban.errors import ModelFileError, UsageError, shortlist


def nearest(name: str, known: Sequence[Any], what: str, where: str) -> UsageError:
    """No such name, and what may have been meant.

    >>> str(nearest("speceis", ["species", "island"], "column", "penguins.csv"))
    "penguins.csv has no column 'speceis' (did you mean 'species'?). It has 'species', 'island'."
    """
    near = difflib.get_close_matches(name, [str(one) for one in known], n=2, cutoff=0.6)
    hint = f" (did you mean {' or '.join(map(repr, near))}?)" if near else ""
    return UsageError(
        f"{where} has no {what} {name!r}{hint}. It has {shortlist([repr(str(one)) for one in known], 12)}."
    )


def class_named(name: str, classes: Sequence[Any]) -> Any:
    """The class that is written so: '1' is the number 1 where classes are numbers."""
    for label in classes:
        if str(label) == name:
            return label
    raise nearest(name, classes, "class", "the model")


def column_named(name: str, columns: Sequence[str], where: str) -> str:
    """The column of that name."""
    if name in columns:
        return name
    raise nearest(name, columns, "column", where)


def pairs(given: Iterable[str], option: str, example: str) -> list[tuple[str, str]]:
    """NAME=VALUE, split at the last sign, since names may hold any.

    >>> pairs(["spam=.01"], "--prior", "spam=.01")
    [('spam', '.01')]
    """
    found = []
    for text in given:
        name, sign, value = text.rpartition("=")
        if not (sign and name and value):
            raise UsageError(f"{option} {text!r} is not of the form NAME=VALUE. Write for example {option} {example}.")
        found.append((name.strip(), value.strip()))
    return found


def number(text: str, option: str) -> float:
    """A number, or what is wrong with it."""
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"{option}: {text!r} is not a number.") from None


def prior_of(given: Sequence[str], classes: Sequence[Any]) -> Any:
    """--prior spam=.01 ham=.99, or one of the words learnt and uniform; None where nothing was given."""
    if not given:
        return None
    if list(given) in (["uniform"], ["learnt"]):
        return given[0]
    return {
        class_named(name, classes): number(value, f"--prior {name}")
        for name, value in pairs(given, "--prior", "spam=.01")
    }


def cost_of(given: Sequence[str], classes: Sequence[Any]) -> Any:
    """--cost ham:spam=10, what it costs to take ham for spam; None where nothing was given."""
    if not given:
        return None
    costs = {}
    for name, value in pairs(given, "--cost", "ham:spam=10"):
        true, decided = _two_classes(name, classes)
        costs[true, decided] = number(value, f"--cost {name}")
    return costs


def _two_classes(name: str, classes: Sequence[Any]) -> tuple[Any, Any]:
    """TRUE:DECIDED, where classes may hold colons themselves."""
    parts = name.split(":")
    known = {str(label): label for label in classes}
    for at in range(1, len(parts)):
        true, decided = ":".join(parts[:at]), ":".join(parts[at:])
        if true in known and decided in known:
            return known[true], known[decided]
    if len(parts) != 2:
        raise UsageError(f"--cost {name!r} is not of the form TRUE:DECIDED=COST. Write for example --cost ham:spam=10.")
    return class_named(parts[0], classes), class_named(parts[1], classes)


def existing(path: str) -> str:
    """A path that is there, or "-" for standard input; else the names nearby."""
    if path == "-" or os.path.exists(path):
        return path
    folder = os.path.dirname(path) or "."
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        raise UsageError(f"there is no file {path!r}: there is no such folder. Check the path.") from None
    near = difflib.get_close_matches(os.path.basename(path), names, n=2, cutoff=0.6)
    hint = (
        f" Did you mean {' or '.join(repr(os.path.join(os.path.dirname(path), name)) for name in near)}?"
        if near
        else ""
    )
    raise UsageError(f"there is no file {path!r}. Check the path.{hint}")


# -- models ----------
# Model files as commands use them: opened by kind, and changed by one writer at a time.

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
