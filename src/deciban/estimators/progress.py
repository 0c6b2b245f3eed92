"""A progress bar over a source that takes longer than a second; on a terminal only, and on its standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from deciban.read.source import Source
from deciban.read.tables import Table

PATIENCE = 1.0  # seconds before a bar shows


def watched(source: Source, texts: Callable[[], Sequence[str]] = tuple) -> Iterator[Table]:
    """The batches of a source; rows and megabytes a second, and the time left, are shown while they are read."""
    if source.quiet or not sys.stderr.isatty():
        yield from source.batches(texts=texts)
        return
    start, rows, shown = time.monotonic(), 0, _Bar(source)
    try:
        for table in source.batches(texts=texts):
            rows += len(table)
            yield table
            if time.monotonic() - start > PATIENCE:
                shown.tell(rows, time.monotonic() - start)
    finally:
        shown.close()


class _Bar:
    """Made when it is first needed: most files are read before."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.progress: Any = None

    def tell(self, rows: int, seconds: float) -> None:
        if self.progress is None:
            self._open()
        speed = f"{rows / seconds:,.0f} rows/s, {self.source.read / seconds / 1e6:,.0f} MB/s"
        self.progress.update(self.task, completed=self.source.read, speed=speed)

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[speed]}"))
        self.progress = Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True)
        self.task = self.progress.add_task(f"reading {self.source.name}", total=self.source.size, speed="")
        self.progress.start()

    def close(self) -> None:
        if self.progress is not None:
            self.progress.stop()
