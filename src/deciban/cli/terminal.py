"""What a command prints: answers on stdout, everything else on stderr; colours on terminals only."""

from __future__ import annotations

import errno
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deciban.cli import output
from deciban.printable import one_line

if TYPE_CHECKING:
    from rich.text import Text


@dataclass(frozen=True)
class Terminal:
    """Prints what a command outputs, as --quiet and --json ask."""

    quiet: bool = False
    json: bool = False

    @property
    def progress(self) -> bool:
        """Whether progress is shown: stderr is a terminal, and --quiet is not given."""
        return not self.quiet and output.notes_are_seen()

    def say(self, text: str | Text = "", style: str | None = None) -> None:
        """Print a line of the answer."""
        output.print_line(text, style)

    def lines(self, text: str) -> None:
        """Print several lines of the answer."""
        output.print_lines(text)

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
        output.print_note(text)

    def dump(self, answer: object) -> None:
        """Print the answer as JSON: indented on a terminal, on one line elsewhere."""
        output.write_json(plain(answer))

    @contextmanager
    def reporting(self, path: str) -> Iterator[None]:
        """Print the report on a file that was saved; if that fails, a note says that the file was saved."""
        try:
            yield
            output.flush_answer()
        except BaseException as error:
            if not (isinstance(error, OSError) and error.errno == errno.EPIPE):
                output.print_error(f"note: {path} was saved; only the report on it is incomplete.")
            raise

    def table(self, headings: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] = ()) -> None:
        """Print aligned columns, those in `right` to the right; cells are wrapped where the terminal is narrow."""
        from rich.cells import cell_len, set_cell_size

        lines = [tuple(map(one_line, line)) for line in (headings, *rows)]
        widths = fitted([max(cell_len(line[at]) for line in lines) for at in range(len(headings))], output.width())
        for number, line in enumerate(lines):
            wrapped = [textwrap.wrap(cell, width) or [""] for cell, width in zip(line, widths)]
            for part in range(max(map(len, wrapped))):
                cells = []
                for at, width in enumerate(widths):
                    cell = wrapped[at][part] if part < len(wrapped[at]) else ""
                    cells.append(" " * (width - cell_len(cell)) + cell if at in right else set_cell_size(cell, width))
                self.say("  ".join(cells).rstrip(), None if number else "dim")


def fitted(widths: list[int], most: int, least: int = 12) -> list[int]:
    """Widths of columns, with two spaces between them: the widest are narrowed until all fit.

    >>> fitted([8, 30, 40], 60), fitted([8, 30, 40], 100)
    ([8, 24, 24], [8, 30, 40])
    """
    found = list(widths)
    room = most - 2 * (len(found) - 1)
    while sum(found) > room and max(found) > least:
        found[found.index(max(found))] -= 1
    return found


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
