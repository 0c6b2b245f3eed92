"""Values of arguments: classes, columns, priors, costs, paths and model files.

A name that does not exist is answered with the names that do, the most similar first.
"""

from __future__ import annotations

import difflib
import os
import shlex
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deciban.cli.output import Terminal
from deciban.errors import ModelFileError, UsageError, shortlist
from deciban.read.paths import is_address, is_pattern

if TYPE_CHECKING:
    from deciban.model.model import Model

KEY_VARIABLE = "DECIBAN_KEY"  # environment variable with the ledger's key
POLL_SECONDS = 0.05  # between two attempts to lock a file


# -- names and numbers -------------------------------------------------------------------------------------------------
def unknown_name(name: str, known: Sequence[object], what: str, where: str) -> UsageError:
    """The error for a name that does not exist, with the similar names that do.

    >>> str(unknown_name("speceis", ["species", "island"], "column", "penguins.csv"))
    "penguins.csv has no column 'speceis' (did you mean 'species'?). It has 'species', 'island'."
    """
    near = difflib.get_close_matches(name, [str(one) for one in known], n=2, cutoff=0.6)
    hint = f" (did you mean {' or '.join(map(repr, near))}?)" if near else ""
    names = shortlist([repr(str(one)) for one in known], 12)
    return UsageError(f"{where} has no {what} {name!r}{hint}. It has {names}.")


def class_named(name: str, classes: Sequence[Any]) -> Any:
    """Return the class label with this text: '1' is the number 1 if labels are numbers."""
    for label in classes:
        if str(label) == name:
            return label
    raise unknown_name(name, classes, "class", "the model")


def column_named(name: str, columns: Sequence[str], where: str) -> str:
    """Return the name of a column; raise UsageError if there is no such column."""
    if name in columns:
        return name
    raise unknown_name(name, columns, "column", where)


def pairs(given: Iterable[str], option: str, example: str) -> list[tuple[str, str]]:
    """Split NAME=VALUE at the last "=", because names may contain any character.

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


def prior_of(given: Sequence[str] | None, classes: Sequence[Any]) -> dict[Any, float] | str | None:
    """The prior of --prior spam=.01 --prior ham=.99, or one of the words "learnt" and "uniform"."""
    if not given:
        return None
    if list(given) in (["uniform"], ["learnt"]):
        return given[0]
    return {
        class_named(name, classes): _number(value, f"--prior {name}")
        for name, value in pairs(given, "--prior", "spam=.01")
    }


def cost_of(given: Sequence[str] | None, classes: Sequence[Any]) -> dict[tuple[Any, Any], float] | None:
    """The costs of --cost ham:spam=10, which is the cost of deciding spam for ham."""
    if not given:
        return None
    return {
        _two_classes(name, classes): _number(value, f"--cost {name}")
        for name, value in pairs(given, "--cost", "ham:spam=10")
    }


def _number(text: str, option: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"{option}: {text!r} is not a number.") from None


def _two_classes(name: str, classes: Sequence[Any]) -> tuple[Any, Any]:
    """The classes of TRUE:DECIDED; their names may contain colons."""
    parts = name.split(":")
    known = {str(label): label for label in classes}
    for at in range(1, len(parts)):
        true, decided = ":".join(parts[:at]), ":".join(parts[at:])
        if true in known and decided in known:
            return known[true], known[decided]
    if len(parts) != 2:
        raise UsageError(f"--cost {name!r} is not of the form TRUE:DECIDED=COST. Write for example --cost ham:spam=10.")
    return class_named(parts[0], classes), class_named(parts[1], classes)


def sizes_of(text: str, option: str) -> list[int]:
    """The numbers of N or FROM-TO.

    >>> sizes_of("2-4", "-k")
    [2, 3, 4]
    """
    try:
        ends = [int(part) for part in text.split("-")]
    except ValueError:
        ends = []
    if len(ends) not in (1, 2) or ends[0] < 1 or ends[-1] < ends[0]:
        raise UsageError(f"{option} {text!r} is not a positive whole number or a range such as 2-8.")
    return list(range(ends[0], ends[-1] + 1))


# -- files -------------------------------------------------------------------------------------------------------------
def existing(path: str) -> str:
    """The path, if it exists or is "-" for stdin, an address, or a pattern; the error names similar files."""
    if path == "-" or os.path.exists(path) or is_address(path) or is_pattern(path):
        return path
    folder = os.path.dirname(path)
    try:
        names = sorted(os.listdir(folder or "."))
    except OSError:
        raise UsageError(f"there is no file {path!r}: there is no such folder. Check the path.") from None
    near = difflib.get_close_matches(os.path.basename(path), names, n=2, cutoff=0.6)
    hint = f" Did you mean {' or '.join(repr(os.path.join(folder, name)) for name in near)}?" if near else ""
    raise UsageError(f"there is no file {path!r}. Check the path.{hint}")


def ledger_key(key_file: str | None) -> bytes | None:
    """The key of the ledger from the file, else from the environment, else None."""
    if key_file is not None:
        return Path(existing(key_file)).read_bytes().strip() or None
    return os.environ.get(KEY_VARIABLE, "").encode() or None


COMMANDS = {
    "GenerativeClassifier": "fit",
    "MixtureModel": "cluster",
    "TopicModel": "topics",
    "HiddenMarkovModel": "tag",
}


def open_model(path: str, *kinds: str, key: bytes | None = None) -> Any:
    """Load a model file that holds one of these kinds of estimators, or any kind if none is named."""
    from deciban.store import describe, load

    if os.path.isdir(existing(path)):
        raise UsageError(f"{path!r} is a folder. Give the model file that deciban fit wrote.")
    found = describe(path)["kind"]
    if kinds and found not in kinds:
        wanted = [f"{kind} (deciban {COMMANDS[kind]})" if kind in COMMANDS else kind for kind in kinds]
        raise UsageError(f"{path} holds a {found}; this command needs a {' or '.join(wanted)}.")
    if found == "GenerativeClassifier":  # so that the registry of the file format finds its classes at once
        from deciban.estimators import classifier  # noqa: F401
    return load(path, key=key)


@contextmanager
def locked(terminal: Terminal, path: str, wait: float) -> Iterator[None]:
    """Lock a model file while it is read, changed and replaced; raise ModelFileError after `wait` seconds.

    The lock is on the file itself. The previous holder may have replaced the file, so whether the name still means the
    locked file is checked after the lock is obtained. Temporary files of writers that were killed are removed.
    """
    from deciban.store.files import remove_abandoned

    remove_abandoned(path)
    try:
        import fcntl
    except ImportError:  # a system without such locks: files are still replaced whole
        yield
        return
    deadline, noted = time.monotonic() + wait, False
    while True:
        with _opened(existing(path)) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise ModelFileError(
                        f"another deciban process has been changing {path} for {wait:g} seconds. Nothing was "
                        "changed: try again, or wait longer with --wait."
                    ) from None
                if not noted:
                    terminal.note(f"waiting for another deciban process to finish with {path} …")
                    noted = True
                time.sleep(POLL_SECONDS)
                continue
            except OSError as error:
                raise ModelFileError(
                    f"{path} cannot be locked ({error.strerror}), and rows could be lost if another process changed "
                    "it at the same time. Nothing was changed: copy the model to another disk."
                ) from None
            if _is_at(file, path):
                yield
                return


@contextmanager
def _opened(path: str) -> Iterator[int]:
    """Open a file for reading and yield its descriptor; errors of closing it are ignored."""
    flags = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)  # a pipe is not waited for
    descriptor = os.open(path, flags)
    try:
        yield descriptor
    finally:
        with suppress(OSError):
            os.close(descriptor)


def _is_at(descriptor: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


# -- state of a model --------------------------------------------------------------------------------------------------
def calibration_state(model: Model, path: str) -> str:
    """Which calibration a model has, and the command that renews it if it is out of date."""
    calibration, rows = model.calibration, model.weight
    if calibration is None:
        return "none"
    state = calibration.state(rows)
    return state if calibration.fitted_on == rows else f"{state}; renew with {_calibrate_command(path)}"


def choices_state(model: Model, path: str) -> str:
    """When the choices of a model were made, and the command that renews them if rows were unlearnt since."""
    if not model.unlearnt:
        return "made at the first fit"
    return f"made at the first fit, partly from rows unlearnt since; renew with {_fit_command(model, path)}"


def standing(model: Model, path: str) -> str:
    """One line: whether choices and calibration of a model are up to date, or the command that renews them."""
    rows, calibration = model.weight, model.calibration
    current = calibration is None or calibration.fitted_on == rows
    choices = "were made partly from rows unlearnt since" if model.unlearnt else "are up to date"
    state = "none" if calibration is None else calibration.state(rows)
    command = _fit_command(model, path) if model.unlearnt else _calibrate_command(path)
    renew = "" if current and not model.unlearnt else f"; renew with {command}"
    return f"choices {choices}; calibration: {state}{renew}"


def _calibrate_command(path: str) -> str:
    """The command that calibrates the model again."""
    return f"deciban recalibrate {shlex.quote(path)} ROWS"


def _fit_command(model: Model, path: str) -> str:
    """The command that fits the model again."""
    schema = model.reader.schema
    label = "" if schema is None or schema.label is None else f" --label {shlex.quote(str(schema.label))}"
    bins = "" if schema is None or schema.ranges is None else f" --bins {len(schema.ranges.names)}"
    return f"deciban fit ROWS{label}{bins} -o {shlex.quote(path)}"
