"""Output of the command line: stdout, stderr, and files that are written whole or not at all.

No other module of the command line writes. Writes to stdout are complete, or raise an error: a raw stream, such as
Python's own with PYTHONUNBUFFERED=1, may write a part and say so only in a number that `print` ignores. Text for people
has its control characters escaped, so that a name from a file cannot send commands to a terminal; tables and JSON keep
them, except on a terminal.
"""

from __future__ import annotations

import codecs
import errno
import io
import json
import os
import re
import select
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO

from deciban.errors import DecibanError, UsageError
from deciban.terminal import json_text, lines, one_line

if TYPE_CHECKING:
    from rich.text import Text


HEAD_BYTES = 4096  # of a file, read to recognise its kind
BUFFER_BYTES = 2**16
LEAST_ROOM = 16  # columns beside an indent
WIDE = 1000  # columns where the output is no terminal: lines are not wrapped
STDIN, STDOUT, STDERR = 0, 1, 2
PLAIN_CHARACTERS = {  # for encodings that lack them
    "−": "-", "–": "-", "—": "-", "…": "...", "“": '"', "”": '"', "‘": "'", "’": "'", "█": "#", "→": "->", "·": "*",
    "×": "x", "≥": ">=", "≤": "<=", "±": "+-", "∞": "inf", "Σ": "sum", "•": "*", "│": "|", "─": "-", "╭": "+",
    "╮": "+", "╰": "+", "╯": "+",
}  # fmt: skip
SHOW_CURSOR = b"\x1b[?25h"


# -- stdout and stderr -------------------------------------------------------------------------------------------------
class CompleteFile(io.FileIO):
    """A file whose `write` writes everything, or raises an error."""

    def write(self, data: Any) -> int:
        with memoryview(data).cast("B") as whole:
            at = 0
            while at < len(whole):
                written = super().write(whole[at:])
                if written is None:  # not ready: another process made the stream non-blocking
                    select.select((), (self.fileno(),), ())
                else:
                    at += written
            return at


def prepare_streams() -> None:
    """Make stdout and stderr of this process complete. To be called before any file is opened.

    A descriptor that is closed is replaced by one on which every operation fails; otherwise the next file that is
    opened, such as a half-written model, would get its number and everything that is printed.
    """
    for number in (STDIN, STDOUT, STDERR):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_WRONLY if number == STDIN else os.O_RDONLY)
    unbuffered = sys.stdout is not None and isinstance(getattr(sys.stdout, "buffer", None), io.RawIOBase)
    codecs.register_error("plain", plain_characters)
    sys.stdout = _complete(STDOUT, sys.stdout, unbuffered or os.isatty(STDOUT))
    sys.stderr = _complete(STDERR, sys.stderr, True)


def _complete(descriptor: int, given: TextIO | None, by_line: bool) -> TextIO:
    buffer = io.BufferedWriter(CompleteFile(descriptor, "w", closefd=False), BUFFER_BYTES)
    encoding = "utf-8" if given is None else given.encoding
    return io.TextIOWrapper(buffer, encoding, "plain", line_buffering=by_line)


def plain_characters(error: UnicodeError) -> tuple[str | bytes, int]:
    r"""Handle characters that an encoding lacks: similar ones, else escapes.

    >>> codecs.register_error("plain", plain_characters)
    >>> "−3 dban …é".encode("ascii", "plain")
    b'-3 dban ...\\xe9'
    """
    if not isinstance(error, UnicodeEncodeError):
        raise error
    wrong = error.object[error.start : error.end]
    known = "".join(PLAIN_CHARACTERS.get(one) or one.encode("ascii", "backslashreplace").decode() for one in wrong)
    return known, error.end


def width() -> int:
    """Columns of the terminal; very many where the output is none."""
    return shutil.get_terminal_size().columns if is_terminal() else WIDE


def is_terminal() -> bool:
    """Whether stdout is a terminal."""
    return sys.stdout.isatty()


def notes_are_seen() -> bool:
    """Whether stderr is a terminal."""
    return sys.stderr.isatty()


def print_line(text: str | Text, style: str | None = None) -> None:
    """Print a line of the answer for people."""
    _print(sys.stdout, text, style)


def print_lines(text: str) -> None:
    """Print several lines of the answer for people."""
    for line in text.split("\n"):
        _print(sys.stdout, line)


def print_markdown(text: str) -> None:
    """Print a page of documentation on a terminal."""
    from rich.console import Console
    from rich.markdown import Markdown

    Console(file=sys.stdout).print(Markdown(text))


def print_note(text: str) -> None:
    """Print a line on stderr."""
    _print(sys.stderr, text)


def print_error(text: str) -> None:
    """Print a message of the program on stderr; if that fails, only the exit code reports the error."""
    with suppress(OSError, ValueError):
        shown = f"deciban: {one_line(text)}"
        if sys.stderr.isatty():
            shown = wrapped(shown, shutil.get_terminal_size().columns)
            if not os.environ.get("NO_COLOR"):
                shown = shown.replace("deciban:", "\x1b[1;31mdeciban:\x1b[0m", 1)
        print(shown, file=sys.stderr, flush=True)


def print_traceback(error: BaseException) -> None:
    """Print an error with its traceback on stderr."""
    import traceback

    with suppress(OSError, ValueError):
        print(lines("".join(traceback.format_exception(error))), end="", file=sys.stderr, flush=True)


def write_error_now(text: str) -> None:
    """Write to stderr without its buffer, which another thread may hold; and show the cursor again."""
    cursor = SHOW_CURSOR if os.isatty(STDERR) else b""
    with suppress(OSError):
        os.write(STDERR, cursor + b"deciban: " + text.encode() + b"\n")


def write_text(text: str) -> None:
    """Write text for programs to stdout; control characters are escaped on a terminal only."""
    sys.stdout.write(lines(text) if is_terminal() else text)


def write_json(value: object) -> None:
    """Write JSON to stdout: indented on a terminal, on one line elsewhere."""
    escaped = codecs.lookup(sys.stdout.encoding).name != "utf-8"
    text = json.dumps(value, ensure_ascii=escaped, indent=2 if is_terminal() else None, allow_nan=False)
    sys.stdout.write(f"{json_text(text) if is_terminal() else text}\n")


@contextmanager
def answer_stream(escape: Callable[[str], str]) -> Iterator[BinaryIO]:
    """Stdout for bytes; on a terminal they are text, and `escape` is applied to it."""
    sys.stdout.flush()
    if is_terminal():
        escaping = _Escaping(sys.stdout, escape)
        yield escaping  # type: ignore[misc]
        escaping.finish()
    else:
        yield sys.stdout.buffer
    sys.stdout.flush()


class _Escaping(io.RawIOBase):
    """A stream of UTF-8 bytes that are written as escaped text."""

    def __init__(self, stream: TextIO, escape: Callable[[str], str]) -> None:
        self.stream, self.escape = stream, escape
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.stream.write(self.escape(self.decoder.decode(bytes(data))))
        return len(data)

    def finish(self) -> None:
        self.stream.write(self.escape(self.decoder.decode(b"", True)))


def flush_answer() -> None:
    """Write what is buffered for stdout."""
    sys.stdout.flush()


def discard_answer() -> None:
    """Drop what is buffered for stdout: writing it at the end of the process would fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def flush_streams() -> OSError | None:
    """Write what is buffered; return the error of stdout, if there is one that matters."""
    failure = None
    try:
        sys.stdout.flush()
    except ValueError:  # it is closed
        pass
    except OSError as error:
        failure = None if error.errno == errno.EPIPE else error
    with suppress(OSError, ValueError):
        sys.stderr.flush()
    return failure


def _print(stream: TextIO, text: str | Text, style: str | None = None) -> None:
    from rich.console import Console

    if isinstance(text, str):
        text = one_line(text)
        if stream.isatty():
            text = wrapped(text, shutil.get_terminal_size().columns)
    elif not text.plain.isprintable():
        text = one_line(text.plain)
    console = Console(file=stream, width=None if stream.isatty() else WIDE, highlight=False, emoji=False)
    # on a terminal, lines are broken between words
    console.print(text, style=style, markup=False, highlight=False, soft_wrap=not stream.isatty())


def wrapped(text: str, most: int) -> str:
    """Break a long line between words; what follows is indented as the last column of the line.

    >>> print(wrapped("error   18.9 %   168 of 891 rows in five folds", 36))
    error   18.9 %   168 of 891 rows in
                     five folds
    """
    if len(text) <= most:
        return text
    columns = [gap.end() for gap in re.finditer(r"(?<=\S) {2,}", text)]
    indent = max((at for at in columns if at <= most - LEAST_ROOM), default=2)
    return textwrap.fill(text, most, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False)


# -- files -------------------------------------------------------------------------------------------------------------
def write_file(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file, which gets its name once it is complete; after an error there is none."""
    from deciban.store.files import write_bytes

    write_bytes(path, data)


def check_target(output: str | None, inputs: Sequence[str | None], force: bool, is_ours: Callable[[str], bool]) -> None:
    """Raise UsageError if writing to `output` would destroy anything but an earlier output of deciban.

    Temporary files that killed writers of `output` left are removed.

    Refused are devices, pipes and sockets, inputs of the same command, and, without `force`, an existing file of
    another kind. Permissions are not examined: a superuser may replace every file.
    """
    if output is None or output == "-":
        return
    from deciban.store.files import remove_abandoned

    remove_abandoned(output)
    if not os.path.exists(output) or os.path.isdir(output):
        return
    if not os.path.isfile(output):
        raise UsageError(f"{output!r} is a device or a pipe, not a file. Leave out -o and redirect stdout instead.")
    if any(path and os.path.exists(path) and os.path.samefile(path, output) for path in inputs):
        raise UsageError(f"{output!r} is an input of this command and would be replaced. Give another file.")
    if not force and os.path.getsize(output) and not is_ours(output):
        raise UsageError(
            f"{output!r} exists and is not an earlier output of this command. Give another file, or replace it with "
            "--force."
        )


def is_model(path: str) -> bool:
    """Whether a file is a model of deciban."""
    from deciban.store import describe

    try:
        return bool(describe(path))
    except DecibanError:
        return False


def has_columns(*wanted: str) -> Callable[[str], bool]:
    """Whether a file is a table with all these columns; an empty list of columns fits no file."""

    def check(path: str) -> bool:
        from deciban.read.files import open_source

        try:
            return bool(wanted) and set(wanted) <= set(open_source(path).columns)
        except (DecibanError, OSError):
            return False

    return check


def begins_like(*starts: str) -> Callable[[str], bool]:
    """Whether the beginning of a file holds one of these texts."""

    def check(path: str) -> bool:
        with open(path, "rb") as file:
            head = file.read(HEAD_BYTES)
        return any(start.encode() in head for start in starts)

    return check


# -- what a command prints: answers on stdout, everything else on stderr; colours on terminals only --------------------
@dataclass(frozen=True)
class Terminal:
    """Prints what a command outputs, as --quiet and --json ask."""

    quiet: bool = False
    json: bool = False

    @property
    def progress(self) -> bool:
        """Whether progress is shown: stderr is a terminal, and --quiet is not given."""
        return not self.quiet and notes_are_seen()

    def say(self, text: str | Text = "", style: str | None = None) -> None:
        """Print a line of the answer."""
        print_line(text, style)

    def lines(self, text: str) -> None:
        """Print several lines of the answer."""
        print_lines(text)

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
        print_note(text)

    def dump(self, answer: object) -> None:
        """Print the answer as JSON: indented on a terminal, on one line elsewhere."""
        write_json(plain(answer))

    @contextmanager
    def reporting(self, path: str) -> Iterator[None]:
        """Print the report on a file that was saved; if that fails, a note says that the file was saved."""
        try:
            yield
            flush_answer()
        except BaseException as error:
            if not (isinstance(error, OSError) and error.errno == errno.EPIPE):
                print_error(f"note: {path} was saved; only the report on it is incomplete.")
            raise

    def table(self, headings: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] = ()) -> None:
        """Print aligned columns, those in `right` to the right; cells are wrapped where the terminal is narrow.

        A table that is too wide nevertheless is printed in parts below each other, each with the first column.
        """
        from rich.cells import cell_len

        lines = [tuple(map(one_line, line)) for line in (headings, *rows)]
        widths = [max(cell_len(line[at]) for line in lines) for at in range(len(headings))]
        for number, part in enumerate(column_groups(widths, width())):
            if number:
                self.say()
            self._table(
                [[line[at] for at in part] for line in lines],
                fitted([widths[at] for at in part], width()),
                [place for place, at in enumerate(part) if at in right],
            )

    def _table(self, lines: Sequence[Sequence[str]], widths: Sequence[int], right: Sequence[int]) -> None:
        from rich.cells import cell_len, set_cell_size

        for number, line in enumerate(lines):
            wrapped = [textwrap.wrap(cell, width) or [""] for cell, width in zip(line, widths)]
            for part in range(max(map(len, wrapped))):
                cells = []
                for at, width in enumerate(widths):
                    cell = wrapped[at][part] if part < len(wrapped[at]) else ""
                    cells.append(" " * (width - cell_len(cell)) + cell if at in right else set_cell_size(cell, width))
                self.say("  ".join(cells).rstrip(), None if number else "dim")


LEAST_WIDTH = 12  # of a column that is narrowed


def column_groups(widths: Sequence[int], most: int) -> list[list[int]]:
    """Divide columns into groups that fit side by side once narrowed; the first column is in each.

    >>> column_groups([8, 30, 40, 9], 80), column_groups([8, 30, 40, 9], 38)
    ([[0, 1, 2, 3]], [[0, 1, 2], [0, 3]])
    """
    least = [min(width, LEAST_WIDTH) for width in widths]
    groups, used = [[0]], least[0]
    for at in range(1, len(widths)):
        if used + 2 + least[at] > most and len(groups[-1]) > 1:
            groups.append([0])
            used = least[0]
        groups[-1].append(at)
        used += 2 + least[at]
    return groups


def fitted(widths: list[int], most: int, least: int = LEAST_WIDTH) -> list[int]:
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
