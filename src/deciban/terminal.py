"""What is written to a terminal: names without control characters, and a progress bar.

Text from a file must not send commands to a terminal, so control characters in names are shown escaped.
"""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

# -- text without control characters -----------------------------------------------------------------------------------
# C0 and C1 controls, delete, line and paragraph separators, and characters that change the direction of text
_CONTROL = "\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff"
_IN_LINE = re.compile(f"[{_CONTROL}]")
_IN_LINES = re.compile(rf"(?![\n\t])[{_CONTROL}]")
_NAMED = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def one_line(name: object) -> str:
    r"""Return a name as text whose control characters are escaped, as in Python and JSON.

    >>> print(one_line("spam\x1b]0;title\x07\n"), one_line("Zürich"))
    spam\x1b]0;title\x07\n Zürich
    """
    text = str(name)
    return text if text.isprintable() else _IN_LINE.sub(_escaped, text)


def lines(text: str) -> str:
    r"""Return text of several lines with control characters escaped, except for line breaks and tabs.

    >>> print(lines("a\x1b[2J\nb"))
    a\x1b[2J
    b
    """
    return text if text.isprintable() else _IN_LINES.sub(_escaped, text)


def json_text(text: str) -> str:
    r"""Return equivalent JSON whose strings hold no control characters.

    >>> print(json_text('{"a": "\x9b2J"}'))
    {"a": "\u009b2J"}
    """
    return text if text.isprintable() else _IN_LINES.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _escaped(match: re.Match[str]) -> str:
    character = match[0]
    code = ord(character)
    return _NAMED.get(character) or (f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}")


# -- progress of work that takes longer than a second; on a terminal only, written to standard error -------------------
DELAY = 1.0  # seconds of work before the bar is shown
INTERVAL = 0.5  # seconds between two calls of `completed` of `watched`


@contextmanager
def progress_bar(label: str | None, total: float | None) -> Iterator[Callable[[float, str], None]]:
    """Yield a function update(completed, message); without a label, or off a terminal, it does nothing.

    The bar shows `completed` of `total`, the message, and the time left; with total None, only that work goes on.

    >>> with progress_bar("EM", 10) as update:
    ...     update(1, "gain 0.5 per row")
    """
    if label is None or not sys.stderr.isatty():
        yield lambda completed, message: None
        return
    bar = _Bar(label, total)
    try:
        yield bar.update
    finally:
        bar.close()


@contextmanager
def watched(label: str | None, total: float | None, completed: Callable[[], float]) -> Iterator[None]:
    """Show the progress of work that another library does: a thread calls `completed` to know how much is done.

    >>> with watched("queries", 3, lambda: 1):
    ...     pass
    """
    if label is None or not sys.stderr.isatty():
        yield
        return
    ended = threading.Event()
    with progress_bar(label, total) as update:

        def watch() -> None:
            while not ended.wait(INTERVAL):
                update(max(0.0, completed()), "")

        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


class _Bar:
    """A bar that is opened at the first update after DELAY, so that short work imports nothing and prints nothing."""

    def __init__(self, label: str, total: float | None) -> None:
        self.label, self.total, self.start = label, total, time.monotonic()
        self.shown: Any = None  # rich.progress.Progress

    def update(self, completed: float, message: str) -> None:
        if self.shown is None:
            if time.monotonic() - self.start <= DELAY:
                return
            self._open()
        self.shown.update(self.task, completed=completed, message=message)

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[message]}"))
        self.shown = Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True)
        self.task = self.shown.add_task(self.label, total=self.total, message="")
        self.shown.start()

    def close(self) -> None:
        if self.shown is not None:
            self.shown.stop()
