"""Output of a command: answers on stdout, everything else on stderr; colours on terminals only."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.text import Text

WIDE = 1000  # columns where the output is no terminal: lines are not wrapped


@dataclass(frozen=True)
class Terminal:
    """Prints what a command outputs, as --quiet and --json ask."""

    quiet: bool = False
    json: bool = False

    @property
    def progress(self) -> bool:
        """Whether progress is shown: stderr is a terminal, and --quiet is not given."""
        return not self.quiet and sys.stderr.isatty()

    def say(self, text: str | Text = "", style: str | None = None) -> None:
        """Print a line of the answer."""
        _print(sys.stdout, text, style)

    def heading(self, text: str) -> None:
        """Print the heading of a section."""
        self.say()
        self.say(text, "bold")

    def note(self, text: str) -> None:
        """Print a remark on stderr, unless --quiet is given."""
        if not self.quiet:
            self.warn(text)

    def warn(self, text: str) -> None:
        """Print a line on stderr, with --quiet too."""
        _print(sys.stderr, text)

    def dump(self, answer: object) -> None:
        """Print the answer as JSON: indented on a terminal, on one line elsewhere."""
        indent = 2 if sys.stdout.isatty() else None
        print(json.dumps(plain(answer), ensure_ascii=False, indent=indent, allow_nan=False))

    def table(self, headings: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] = ()) -> None:
        """Print aligned columns; those numbered in `right` are right-aligned."""
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
    """Convert to JSON's types: NumPy values unwrapped, NaN as None, infinities as text.

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


def _print(stream: TextIO, text: str | Text, style: str | None = None) -> None:
    from rich.console import Console

    console = Console(file=stream, width=None if stream.isatty() else WIDE, highlight=False, emoji=False)
    console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)
