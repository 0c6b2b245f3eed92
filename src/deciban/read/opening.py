"""Opening files: compressed or not, from the disk or standard input, and seeing whether they change meanwhile."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deciban.errors import InputError
from deciban.read.source import Source

if TYPE_CHECKING:
    import pyarrow as pa

COMPRESSED = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}
STDIN = "-"


class FileSource(Source):
    """Rows of one file, or of standard input."""

    def __init__(self, path: str | os.PathLike[str], *, skip_bad: bool = False) -> None:
        super().__init__()
        self.path, self.skip_bad = path, skip_bad
        self.stdin = path == STDIN
        self.name = "standard input" if self.stdin else os.fspath(path)
        self._taken = False
        if not self.stdin:
            self.size = self._stamp()[0]
            if self.size == 0:
                raise self.refusal(" is empty.", remedy="Give a file with data.")

    @contextmanager
    def opened(self) -> Iterator[pa.NativeFile]:
        """The file as a stream of bytes, decompressed; an error if it changes before it is closed."""
        import pyarrow as pa

        if self.stdin:
            if self._taken:
                raise self.read_twice()
            self._taken = True
            yield pa.PythonFile(sys.stdin.buffer, mode="r")
            return
        before = self._stamp()
        try:
            with pa.OSFile(os.fspath(self.path)) as raw:
                self._raw = raw
                kind = COMPRESSED.get(Path(self.path).suffix.lower())
                yield pa.CompressedInputStream(raw, kind) if kind else raw
        except (OSError, EOFError) as error:
            raise self.unreadable(error) from None
        if self._stamp() != before:
            raise self.refusal(
                f" changed while it was read ({before[0]:,} bytes then, {self._stamp()[0]:,} now). Nothing was learnt.",
                remedy="Wait until it is written, or read a copy.",
            )

    def unreadable(self, error: BaseException) -> InputError:
        """What the system says of this file, as an error of ours."""
        if isinstance(error, PermissionError):
            return self.refusal(": no permission to read it.", remedy="Ask for it, or copy the file.")
        return self.refusal(f" cannot be read ({_first_line(error)}).", remedy="Is it whole?")

    def line(self, number: int) -> tuple[str, int]:
        """The place of a line, in words, and its number."""
        return f"{self.name}, line {number}", number

    def at_line(self, what: str, number: int, **attributes: Any) -> InputError:
        """An error about a line of the file."""
        place, row = self.line(number)
        return InputError(what, place=place, row=row, **attributes)

    def read_twice(self) -> InputError:
        """The error for standard input that was read already."""
        return self.refusal(" can be read only once.", remedy="Save it to a file first.")

    def progressed(self) -> None:
        """Note how far the file has been read."""
        raw = getattr(self, "_raw", None)
        if raw is not None and not raw.closed:
            self.read = raw.tell()

    def _stamp(self) -> tuple[int, int]:
        """Size and time of change."""
        try:
            found = os.stat(self.path)
        except FileNotFoundError:
            raise no_file(self.name) from None
        except OSError as error:
            raise self.unreadable(error) from None
        return found.st_size, found.st_mtime_ns


def no_file(name: str) -> InputError:
    """The error for a path where there is nothing."""
    return InputError(f"there is no file {name!r}.", remedy="Check the path.")


class Rewound(io.RawIOBase):
    """A stream of which the beginning was read already."""

    def __init__(self, head: bytes, rest: Any) -> None:
        self.head, self.rest = head, rest

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        """The beginning first."""
        if size is None or size < 0:
            found, self.head = self.head, b""
            return found + self.rest.read()
        if self.head:
            found, self.head = self.head[:size], self.head[size:]
            return found
        return self.rest.read(size)


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
