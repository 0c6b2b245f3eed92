"""Where a command ends: its exit code, and one paragraph instead of a traceback.

0 it is done; 1 the data are bad, or the machine is in the way; 2 the command cannot be meant. 130 stopped by Ctrl-C,
143 by the system. A reader who has seen enough (`| head`) is no error.
"""

from __future__ import annotations

import errno
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from deciban.cli.remedies import in_our_words
from deciban.cli.stopping import INTERRUPTED, SAID, TERMINATED, Terminated
from deciban.errors import CostError, DecibanError, HyperparameterError, PriorError, UsageError

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
        return _told(str(error), BAD_USAGE if isinstance(error, USAGE) else BAD_DATA)
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
        print(f"{name} {in_our_words(text)}", file=sys.stderr, flush=True)
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
