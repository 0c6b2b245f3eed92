"""What a command says, and where: answers on stdout, everything else on stderr; colours on terminals only."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

WIDE = 1000  # columns of what is no terminal: nothing is wrapped that a program will read


@dataclass(frozen=True)
class Terminal:
    """The two streams of a command, and how much to say on them."""

    quiet: bool = False
    json: bool = False

    @property
    def out(self) -> Console:
        """For answers."""
        return _console(sys.stdout)

    @property
    def err(self) -> Console:
        """For everything else."""
        return _console(sys.stderr, stderr=True)

    @property
    def watched(self) -> bool:
        """Whether somebody is looking at stderr who wants to know how far we are."""
        return not self.quiet and sys.stderr.isatty()

    def say(self, text: str = "", style: str | None = None) -> None:
        """A line of the answer."""
        self.out.print(text, style=style, markup=False, highlight=False, soft_wrap=True)

    def head(self, text: str) -> None:
        """The heading of a section."""
        self.say()
        self.say(text, "bold")

    def note(self, text: str) -> None:
        """A remark that is no answer; not with --quiet."""
        if not self.quiet:
            self.err.print(text, markup=False, highlight=False, soft_wrap=True)

    def dump(self, answer: Any) -> None:
        """The answer for a program, on one line where it is read by one."""
        indent = 2 if sys.stdout.isatty() else None
        print(json.dumps(plain(answer), ensure_ascii=False, indent=indent, allow_nan=False))

    def table(self, headings: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] = ()) -> None:
        """A table without lines; columns numbered in `right` hold numbers."""
        from rich.cells import cell_len, set_cell_size

        lines = [tuple(headings), *map(tuple, rows)]
        widths = [max(cell_len(line[at]) for line in lines) for at in range(len(headings))]
        for number, line in enumerate(lines):
            cells = [
                " " * (width - cell_len(cell)) + cell if at in right else set_cell_size(cell, width)
                for at, (cell, width) in enumerate(zip(line, widths))
            ]
            self.say("  ".join(cells).rstrip(), None if number else "dim")


def plain(value: Any) -> Any:
    """The same in JSON's own types: numpy unwrapped, no NaN, infinities as text.

    >>> plain({"error": float("inf"), "rows": (1, 2)})
    {'error': 'inf', 'rows': [1, 2]}
    """
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None if value != value else str(value)
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def _console(stream: Any, stderr: bool = False) -> Console:
    from rich.console import Console

    return Console(stderr=stderr, width=None if stream.isatty() else WIDE, highlight=False, emoji=False)
