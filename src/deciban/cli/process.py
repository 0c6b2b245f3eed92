"""The `deciban` process: start-up, exit codes, error messages, warnings and signals.

Exit codes: 0 success; 1 bad data or a failure of the system; 2 usage error; 130 Ctrl-C; 143 SIGTERM. A reader that
closes our output early, such as `head`, is no error.

A short command spends most of its time on imports. scikit-learn, scipy, joblib, numba and Arrow import large modules
that a command hardly uses, so `prepare_process` replaces these by stand-ins, and makes pandas impossible to import. The
library changes neither imports nor garbage collection (docs/decisions/0018).

Python handles a signal between two of its own instructions. There are none while Arrow waits for a pipe or a long
matrix product runs, so a thread waits for signals too: it gives the main thread a moment to unwind, then removes
half-written files and ends the process.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import importlib
import os
import signal
import socket
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.machinery import ModuleSpec, PathFinder
from types import FrameType, ModuleType
from typing import Any, NoReturn

from deciban.cli import output
from deciban.errors import Argument, CostError, DecibanError, HyperparameterError, PriorError, UsageError

SUCCESS, FAILURE, USAGE_ERROR, INTERRUPTED, TERMINATED = 0, 1, 2, 130, 143
USAGE_ERRORS = (UsageError, PriorError, CostError, HyperparameterError)  # caused by options, not by data
STOPPED = {
    INTERRUPTED: "stopped. No half-written file is left.",
    TERMINATED: "terminated by the system. No half-written file is left.",
}
UNWIND_SECONDS = 0.3  # for the main thread, after a signal
OPTIONS: dict[str, Callable[[Any], str]] = {  # argument of Python → option
    "skip_bad": lambda value: "--skip-bad",
    "kinds": lambda kinds: " ".join(f"--column '{column}={kind}'" for column, kind in kinds.items()),
    "format": lambda value: f"--read-as {value}",
    "encoding": lambda value: f"--read-as encoding={value}",
    "quote": lambda value: f"--read-as quote={value or 'none'}",
    "header": lambda value: f"--read-as header={'yes' if value else 'no'}",
    "key": lambda value: "--key-file FILE, or DECIBAN_KEY",
    "like": lambda value: "--like FIRST",
    "keep": lambda value: "--keep-first",
    "family": lambda value: f"--column NAME={value}",
    "written_by": lambda value: "deciban fit",
    "refit": lambda value: "deciban fit ROWS -o MODEL",
    "new_rows": lambda value: "add --new to `recalibrate`, leave --learnt out of `evaluate`",
    "without_ledger": lambda value: "deciban fit ROWS --no-ledger -o MODEL",
}

# Imported by scipy, joblib, scikit-learn, numba and narwhals, and seldom used by a command.
DEFERRED = (
    *("numpy.f2py", "numpy.testing", "numpy.polynomial", "scipy.stats", "narwhals.stable.v2"),
    *("asyncio", "pydoc", "yaml"),
)

# Arrow and scikit-learn import it to recognise its frames. The command line reads files with Arrow and has none.
ABSENT = "pandas"
MMAP_THRESHOLD = -3  # the name of this parameter for glibc's `mallopt`
LARGE_BLOCK = 2**23  # bytes; larger blocks are returned to the system as soon as they are freed


# -- start-up ----------------------------------------------------------------------------------------------------------
class Deferred(ModuleType):
    """Stand-in for a module. The first use of one of its attributes imports the module itself."""

    def __getattr__(self, attribute: str) -> Any:
        name = self.__name__
        finder = self.__loader__
        if isinstance(finder, ImportFinder) and name in finder.deferred:
            finder.deferred.discard(name)
            sys.modules.pop(name, None)
        return getattr(importlib.import_module(name), attribute)


class ImportFinder:
    """Finder for `sys.meta_path`: gives stand-ins for `deferred` modules, and does not find the absent one."""

    def __init__(self, deferred: Sequence[str] = DEFERRED, absent: str = ABSENT) -> None:
        self.deferred, self.absent = set(deferred), absent

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:
        """Specification of a stand-in; None for every other module, which the next finder then looks for."""
        if name == "numpy":
            return_large_blocks()
        if name == self.absent:
            raise ModuleNotFoundError(f"the command line does not use {name}", name=name)
        if name not in self.deferred or PathFinder.find_spec(name, path, target) is None:
            return None
        return ModuleSpec(name, self)  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        """Return None: the import system makes an ordinary module and fills in its attributes."""

    def exec_module(self, module: ModuleType) -> None:
        """Turn the module into a stand-in."""
        module.__class__ = Deferred


def return_large_blocks() -> None:
    """Make glibc return large freed arrays to the system at once; other C libraries have no `mallopt`."""
    import ctypes

    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).mallopt(MMAP_THRESHOLD, LARGE_BLOCK)


def keep_objects() -> None:
    """Exclude all objects that exist now from garbage collection, which takes 0.1 s with a large model."""
    gc.collect()
    gc.freeze()


def prepare_process() -> None:
    """Make imports of this process quick and its memory small. Modules that are loaded already stay as they are."""
    gc.set_threshold(50_000, 20, 20)  # imports create very many objects and little garbage
    sys.meta_path.insert(0, ImportFinder())


# -- running a command -------------------------------------------------------------------------------------------------
def run(arguments: Sequence[str]) -> int:
    """Run the command that the arguments name, report its error, and return the exit code."""
    try:
        from deciban.cli.app import invoke

        code = invoke(list(arguments))
        output.flush_answer()
        return code
    except BaseException as error:
        if _is_broken_pipe(error):
            output.discard_answer()
            return SUCCESS
        stopped = _stopped_by(error)
        if stopped is not None:
            return _print_error(STOPPED[stopped], stopped)
        if "--debug" in arguments and not isinstance(error, SystemExit):
            output.print_traceback(error)
            return FAILURE
        return _report(error)


def unless_stopped(command: Callable[[], int]) -> int:
    """Return the exit code of a function, or that of a signal which arrived outside `run`."""
    try:
        return command()
    except (KeyboardInterrupt, Terminated) as error:
        stopped = TERMINATED if isinstance(error, Terminated) else INTERRUPTED
        return _print_error(STOPPED[stopped], stopped)


def _report(error: BaseException) -> int:
    """Print an error in one paragraph on stderr, and return the exit code."""
    from deciban.cli.app import usage_text

    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else USAGE_ERROR if error.code else SUCCESS
    usage = usage_text(error)
    if usage is not None:
        return _print_error(f"usage error: {usage}", USAGE_ERROR) if usage else USAGE_ERROR
    if isinstance(error, USAGE_ERRORS):
        return _print_error(f"usage error: {error.text(as_option)}", USAGE_ERROR)
    if isinstance(error, DecibanError):
        return _print_error(error.text(as_option), FAILURE)
    if isinstance(error, MemoryError):
        return _print_error("out of memory. Use fewer rows or columns at a time.", FAILURE)
    if _found_no_memory(error):
        return _print_error(f"a library failed ({error}). Most often memory is exhausted: use fewer rows.", FAILURE)
    if isinstance(error, ImportError):
        return _print_error(str(error), FAILURE)
    if isinstance(error, OSError):
        from deciban.store.files import REMEDIES

        output.discard_answer()
        place = f"{error.filename}: " if error.filename else ""
        remedy = REMEDIES.get(error.errno or 0, "Check the path and its permissions.")
        return _print_error(f"{place}{error.strerror or error}. {remedy}".strip(), FAILURE)
    return _print_error(
        f"internal error ({type(error).__name__}: {' '.join(str(error).split())}). This is a bug in deciban: run the "
        "command again with --debug, and report what it prints.",
        FAILURE,
    )


def _found_no_memory(error: BaseException) -> bool:
    """Whether C code, or Python where it makes a lock or a thread, found no memory and did not raise MemoryError."""
    of_locks = isinstance(error, RuntimeError) and str(error).startswith(("can't allocate", "can't start new thread"))
    # Python's parser reports a failed allocation as a syntax error, in a module that is compiled without a cached file
    return of_locks or isinstance(error, SystemError | SyntaxError)


def as_option(argument: Argument) -> str:
    """Write an argument that a remedy names as an option of the command line.

    >>> as_option(Argument("kinds", {"age": "category"}))
    "--column 'age=category'"
    """
    return OPTIONS[argument.name](argument.value) if argument.name in OPTIONS else str(argument)


def print_warnings_as_notes() -> None:
    """Print a warning as one sentence on stderr, without the line of code that issued it."""

    def show(message: Warning | str, *place: object) -> None:
        _print_error(f"note: {message}", SUCCESS)

    warnings.showwarning = show  # type: ignore[assignment]


def _print_error(text: str, code: int) -> int:
    output.print_error(text)
    return code


def _is_broken_pipe(error: BaseException) -> bool:
    """Whether the reader of our output closed the pipe; Typer turns that into SystemExit."""
    cause = error.__context__ if isinstance(error, SystemExit) else error
    return isinstance(cause, OSError) and cause.errno == errno.EPIPE


def end_process(code: int) -> NoReturn:
    """End the process without the interpreter's clean-up.

    A thread of Arrow that is still reading would ask for the interpreter during the clean-up, which aborts the process.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    _remove_temporary_files()
    failure = output.flush_streams()
    os._exit(code if failure is None or code != SUCCESS else _report(failure))


def _remove_temporary_files() -> None:
    files = sys.modules.get("deciban.store.files")
    for path in list(getattr(files, "TEMPORARY_FILES", ())):
        with suppress(OSError):
            os.unlink(path)


# -- signals -----------------------------------------------------------------------------------------------------------
class Terminated(BaseException):
    """SIGTERM was received; half-written files are removed while the main thread unwinds."""


def handle_signals() -> None:
    """End the process on SIGINT and SIGTERM. To be called in the main thread."""

    def raise_terminated(number: int, frame: FrameType | None) -> None:
        raise Terminated

    signal.signal(signal.SIGTERM, raise_terminated)
    receiver, sender = socket.socketpair()
    sender.setblocking(False)
    signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
    threading.Thread(target=_wait_for_signal, args=(receiver, sender), daemon=True).start()


def _wait_for_signal(receiver: socket.socket, sender: socket.socket) -> None:
    """Wait for SIGINT or SIGTERM, then end the process; holding `sender` keeps it open."""
    while True:
        signals = receiver.recv(16)
        if signal.SIGINT in signals or signal.SIGTERM in signals:
            break
    threading.Event().wait(UNWIND_SECONDS)
    _end_now(INTERRUPTED if signal.SIGINT in signals else TERMINATED)


def _end_now(code: int) -> None:
    """Remove half-written files, print why, and end the process without waiting for the main thread."""
    _remove_temporary_files()
    output.write_error_now(STOPPED[code])  # a progress bar may have hidden the cursor
    os._exit(code)


def _stopped_by(error: BaseException) -> int | None:
    """Exit code if a signal ended the command; None for an error."""
    if isinstance(error, Terminated):
        return TERMINATED
    # Typer raises Abort for Ctrl-C, Arrow ArrowCancelled while it reads
    interrupted = isinstance(error, KeyboardInterrupt) or type(error).__name__ in ("Abort", "ArrowCancelled")
    return INTERRUPTED if interrupted else None
