"""A progress bar for what takes longer than a second; on a terminal only, and on its standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

PATIENCE = 1.0  # seconds before a bar shows


def _gain(value: float) -> str:
    return f"gain {value:.1e} a row"


@contextmanager
def bar(label: str | None, total: int, wording: Callable[[float], str] = _gain) -> Iterator[Callable[[float], None]]:
    """A function to be told the gain of each step, or what `wording` puts into words; without a label it does nothing.

    >>> with bar(None, 10) as tell:
    ...     tell(0.5)
    """
    if label is None or not sys.stderr.isatty():
        yield lambda gain: None
        return
    shown = _Bar(label, total, wording)
    try:
        yield shown.tell
    finally:
        shown.close()


class _Bar:
    """Made when it is first needed: most runs end before."""

    def __init__(self, label: str, total: int, wording: Callable[[float], str]) -> None:
        self.label, self.total, self.steps, self.start = label, total, 0, time.monotonic()
        self.wording = wording
        self.progress: Any = None

    def tell(self, value: float) -> None:
        self.steps += 1
        if self.progress is None and time.monotonic() - self.start > PATIENCE:
            self._open()
        if self.progress is not None:
            self.progress.update(self.task, completed=self.steps, description=f"{self.label}, {self.wording(value)}")

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import Progress

        self.progress = Progress(console=Console(stderr=True), transient=True)
        self.task = self.progress.add_task(self.label, total=self.total)
        self.progress.start()

    def close(self) -> None:
        if self.progress is not None:
            self.progress.stop()
