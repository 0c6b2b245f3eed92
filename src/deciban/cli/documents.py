"""Whole documents as rows: a mail or a text on stdin, a file of one, an mbox, a folder of them without classes.

A model of texts is asked about a document as readily as about a table. Where its columns are those of mail (subject,
from, body) a message is taken apart; else the document is the text, as a folder of texts was learnt.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deciban.errors import InputError
from deciban.read.files import ENDINGS
from deciban.read.mail import FIELDS, fields_of, is_mail, raw_messages
from deciban.read.opening import COMPRESSED, STDIN
from deciban.read.source import Source

if TYPE_CHECKING:
    import pyarrow as pa

FILE = "file"  # the column that says where a document was
PIECE = 2**23  # bytes of text at a time
TABLES = {"csv", "tsv", "jsonl", "parquet", "arrow"}
DOCUMENTS = {"text", "mail"}  # what --read-as calls them


class DocumentSource(Source):
    """One row a document: the columns that the model wants of it, and where it was."""

    def __init__(self, path: str, wanted: tuple[str, ...]) -> None:
        super().__init__()
        self.path, self.wanted = path, wanted
        self.name = "standard input" if path == STDIN else path
        self._places: list[str] = []

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.wanted, FILE)

    def pieces(self) -> Iterator[pa.Table]:
        """Some megabytes at a time."""
        self._places, rows, held = [], [], 0
        for place, data in self._documents():
            self._places.append(place)
            rows.append(self._row(place, data))
            held += len(data)
            self.read += len(data)
            if held > PIECE:
                yield self._table(rows)
                rows, held = [], 0
        if rows:
            yield self._table(rows)

    def where(self, row: int) -> str:
        """The document itself."""
        return self._places[row] if row < len(self._places) else super().where(row)

    def _documents(self) -> Iterator[tuple[str, bytes]]:
        place = Path(self.path)
        if self.path == STDIN:
            yield self.name, sys.stdin.buffer.read()
        elif place.is_dir() and not is_mail(place):
            for file in sorted(entry for entry in place.iterdir() if entry.is_file() and entry.name[0] != "."):
                yield str(file), file.read_bytes()
        else:
            yield from raw_messages(place)

    def _row(self, place: str, data: bytes) -> list[str]:
        if not data.strip():
            raise InputError(f"{place} is empty. Give a text.")
        if b"\0" in data:
            raise InputError(f"{place} is not text: it holds zero bytes. Give a text or a mail.")
        if set(self.wanted) <= set(FIELDS):
            fields = fields_of(data)
            return [fields[name] for name in self.wanted]
        try:
            return [data.decode("utf-8")]
        except UnicodeDecodeError:
            return [data.decode("latin-1")]

    def _table(self, rows: list[list[str]]) -> Any:
        import pyarrow as pa

        columns = {name: [row[j] for row in rows] for j, name in enumerate(self.wanted)}
        return pa.table(columns | {FILE: self._places[-len(rows) :]})


def documents(path: str, kind: str | None, schema: Any) -> DocumentSource | None:
    """The documents at a path, for a model of texts; None where it is a table, or the model wants one."""
    wanted = tuple(column.name for column in schema.columns if column.features)
    of_mail = set(wanted) <= set(FIELDS)
    one_text = len(wanted) == 1 and schema[wanted[0]].kind == "text"
    if not (of_mail or one_text) or kind in TABLES or kind == "folder":
        return None
    if kind in DOCUMENTS or (not _is_table(path, wanted[0]) and not _has_classes(Path(path))):
        return DocumentSource(path, wanted)
    return None


def first_of_stdin(size: int) -> bytes:
    """What is piped in begins with, left there to be read."""
    peek = getattr(sys.stdin.buffer, "peek", None)
    return b"" if peek is None else bytes(peek(size)[:size])


def _has_classes(place: Path) -> bool:
    """Whether a folder holds folders of texts, one a class."""
    return place.is_dir() and not is_mail(place) and any(entry.is_dir() for entry in place.iterdir())


def _is_table(path: str, wanted: str) -> bool:
    """Whether something looks like a table that has the column: by its ending, or by its first bytes."""
    place = Path(path)
    if path != STDIN and (place.is_dir() or place.suffix.lower() == ".eml"):
        return False
    endings = [ending.lower() for ending in place.suffixes]
    if path != STDIN and endings and (endings[-1] in COMPRESSED or ENDINGS.get(endings[-1], "csv") != "csv"):
        return True
    if path != STDIN and endings[-1:] == [".csv"]:
        return True
    if path == STDIN:
        start = first_of_stdin(4096)
    else:
        with open(path, "rb") as file:
            start = file.read(4096)
    first = start.lstrip(b"\xef\xbb\xbf \r\n").split(b"\n")[0].decode("utf-8", "replace")
    names = [cell.strip().strip('"') for sign in ",;\t|" for cell in first.split(sign)]
    return wanted in names or (first.startswith("{") and f'"{wanted}"' in start.decode("utf-8", "replace"))
