"""Ctrl-C and the system's wish that we end: heard at once, and nothing half written stays behind.

Python hears a signal between two of its own steps. While Arrow waits for a pipe, or a long product is computed, there
are none; so a thread listens too. It gives the main thread a moment to unwind, then ends the process itself.
"""

from __future__ import annotations

import errno
import os
import signal
import socket
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from deciban.errors import Argument, CostError, DecibanError, HyperparameterError, PriorError, UsageError

MOMENT = 0.3  # seconds in which the main thread may end by itself
INTERRUPTED, TERMINATED = 130, 143
SAID = {
    INTERRUPTED: "stopped. Nothing half written is left.",
    TERMINATED: "ended by the system. Nothing half written is left.",
}


class Terminated(BaseException):
    """The system asks this process to end; files half written are removed on the way out."""


def listen() -> None:
    """From now on, in the main thread of the program."""

    def end(number: int, frame: Any) -> None:
        raise Terminated

    signal.signal(signal.SIGTERM, end)
    heard, told = socket.socketpair()
    told.setblocking(False)
    signal.set_wakeup_fd(told.fileno(), warn_on_full_buffer=False)
    threading.Thread(target=_wait, args=(heard, told), daemon=True).start()


def _wait(heard: socket.socket, told: socket.socket) -> None:
    """Until a signal comes; `told` is held so that it stays open."""
    while True:
        signals = heard.recv(16)
        if signal.SIGINT in signals or signal.SIGTERM in signals:
            break
    threading.Event().wait(MOMENT)
    end_now(INTERRUPTED if signal.SIGINT in signals else TERMINATED)


def end_now(code: int) -> None:
    """Without another step of the main thread: remove what is half written, say so, and leave."""
    files = sys.modules.get("deciban.store.files")
    for path in list(getattr(files, "HALF_WRITTEN", ())):
        with suppress(OSError):
            os.unlink(path)
    cursor = b"\x1b[?25h" if os.isatty(2) else b""  # a bar may have hidden it
    with suppress(OSError):
        os.write(2, cursor + b"deciban: " + SAID[code].encode() + b"\n")
    os._exit(code)


# -- remedies ----------

OPTIONS: dict[str, Callable[[Any], str]] = {
    "skip_bad": lambda value: "--skip-bad",
    "kinds": lambda kinds: " ".join(f"--column '{column}={kind}'" for column, kind in kinds.items()),
    "format": lambda value: f"--read-as {value}",
    "encoding": lambda value: f"--read-as encoding={value}",
    "quote": lambda value: f"--read-as quote={value or 'none'}",
    "key": lambda value: "--key-file FILE, or DECIBAN_KEY",
    "like": lambda value: "--like FIRST",
    "keep": lambda value: "--keep-first",
}


def as_option(argument: Argument) -> str:
    """An argument that a remedy names, as an option of the command line.

    >>> as_option(Argument("kinds", {"age": "category"}))
    "--column 'age=category'"
    """
    return OPTIONS[argument.name](argument.value) if argument.name in OPTIONS else str(argument)


# -- boundary ----------
# Where a command ends: its exit code, and one paragraph instead of a traceback.
#
# 0 it is done; 1 the data are bad, or the machine is in the way; 2 the command cannot be meant. 130 stopped by Ctrl-C,
# 143 by the system. A reader who has seen enough (`| head`) is no error.

DONE, BAD_DATA, BAD_USAGE = 0, 1, 2
USAGE = (UsageError, PriorError, CostError, HyperparameterError)  # what only an option can have got wrong


def run(arguments: Sequence[str]) -> int:
    """Do what the arguments say; the exit code."""
    debug = "--debug" in arguments
    try:
        from deciban.cli.app import invoke

        code = invoke(list(arguments))
        sys.stdout.flush()
        return code
    except BaseException as error:
        if _is_broken_pipe(error):
            return _nobody_reads()
        ended = _ended_by(error)
        if ended is not None:
            return _told(SAID[ended], ended)
        if debug and not isinstance(error, SystemExit):
            raise
        return _reported(error)


def _ended_by(error: BaseException) -> int | None:
    """The exit code where somebody stopped us, and not an error."""
    if isinstance(error, Terminated):
        return TERMINATED
    # the reader of arguments turns Ctrl-C into an Abort; Arrow, when it was reading, into ArrowCancelled
    stopped = isinstance(error, KeyboardInterrupt) or type(error).__name__ in ("Abort", "ArrowCancelled")
    return INTERRUPTED if stopped else None


def _is_broken_pipe(error: BaseException) -> bool:
    """Whether nobody reads our output any more; the reader of arguments hides that behind its own exit."""
    cause = error.__context__ if isinstance(error, SystemExit) else error
    return isinstance(cause, OSError) and cause.errno == errno.EPIPE


def show_warnings_plainly() -> None:
    """A warning is a sentence on stderr, not a line of code."""

    def show(message: Any, *place: Any) -> None:
        _told(f"note: {message}", DONE)

    warnings.showwarning = show  # type: ignore[assignment]


def _reported(error: BaseException) -> int:
    """One paragraph on stderr; the exit code."""
    from deciban.cli.app import usage_text

    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else BAD_USAGE if error.code else DONE
    said = usage_text(error)
    if said is not None:
        return _told(said, BAD_USAGE)
    if isinstance(error, DecibanError):
        return _told(error.text(as_option), BAD_USAGE if isinstance(error, USAGE) else BAD_DATA)
    if isinstance(error, MemoryError):
        return _told("the memory of this machine is used up. Take fewer rows or columns at a time.", BAD_DATA)
    if isinstance(error, ImportError):
        return _told(str(error), BAD_DATA)
    if isinstance(error, OSError):
        _write_no_more()
        place = f"{error.filename}: " if error.filename else ""
        return _told(f"{place}{error.strerror or error}. {_remedy(error)}".strip(), BAD_DATA)
    name = type(error).__name__
    return _told(
        f"this should not have happened ({name}: {' '.join(str(error).split())}). It is a fault of deciban: run the "
        "command again with --debug, and report what it prints.",
        BAD_DATA,
    )


def _remedy(error: OSError) -> str:
    from deciban.store.files import REMEDIES

    return REMEDIES.get(error.errno or 0, "Check the path and its permissions.")


def _told(text: str, code: int) -> int:
    try:
        paint = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
        name = "\x1b[1;31mdeciban:\x1b[0m" if paint else "deciban:"
        print(f"{name} {text}", file=sys.stderr, flush=True)
    except (OSError, ValueError):
        pass  # nobody is there to be told; the exit code still says it
    return code


def _nobody_reads() -> int:
    """The reader of our output has left: that is its right."""
    _write_no_more()
    return DONE


def _write_no_more() -> None:
    """What is still held back for stdout is dropped: it would fail again when the process ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
