"""Rows as commands read them: a file, a folder or stdin, in batches, typed by the model's schema."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from deciban.cli.models import column_named, existing
from deciban.cli.terminal import Terminal
from deciban.errors import HERE, InputError, UsageError
from deciban.read.batches import fitting_rows, with_progress
from deciban.read.files import ENDINGS, open_source
from deciban.read.mail import FIELDS, fields_of, is_mail, raw_messages
from deciban.read.source import COMPRESSED, STDIN, Source
from deciban.read.tables import Table

if TYPE_CHECKING:
    import pyarrow as pa


from deciban.cli.command import refuse_together
from deciban.cli.models import class_named
from deciban.read.tables import stacked


class Some(NamedTuple):
    """A batch of rows: as they were read, and as the model takes them."""

    given: Table
    typed: Any
    start: int  # how many rows came before


def open_rows(
    terminal: Terminal,
    path: str,
    read_as: str | None = None,
    skip_bad: bool = False,
    *,
    clf: Any = None,
    again: bool = False,
) -> Source:
    """The source at a path, which may be documents where the model `clf` is one of texts.

    "-" is stdin, kept in a file for a while where it is read more than once (`again`).
    """
    kind, options = read_options(read_as)
    piped = path == STDIN
    if piped and (sys.stdin is None or sys.stdin.isatty()):
        raise UsageError("nothing is piped in. Name a file or a folder, or send rows through a pipe.")
    whole = None if clf is None else documents(existing(path), kind, schema_of(clf))
    if whole is not None:
        whole.quiet = terminal.quiet
        return whole
    if piped:
        kind = kind or _sniffed()
        path = _spooled() if again else path
    options |= {"skip_bad": True} if skip_bad else {}
    source = open_source(existing(path), format=kind, **options)
    source.name = "standard input" if piped else source.name
    source.quiet = terminal.quiet
    return source


def read_options(text: str | None) -> tuple[str | None, dict[str, Any]]:
    """--read-as csv, or with what the format can be told: --read-as 'csv,delimiter=;,encoding=latin-1'.

    >>> read_options("tsv,quote=none")
    ('tsv', {'quote': False})
    """
    kind, options = None, {}
    for part in [] if text is None else re.split(r",(?=\w+=)|,(?!$)", text):
        name, sign, value = part.partition("=")
        if not sign:
            kind = name
        else:
            options[name.strip()] = False if value == "none" else value
    return kind, options


def typed_batches(source: Source, clf: Any) -> Iterator[Some]:
    """Batch by batch; errors say where in the source a row is, and with --skip-bad such rows are counted."""
    schema, start = schema_of(clf), 0
    for given in with_progress(source):
        table, typed = fitting_rows(given, schema, source)
        if len(table):
            yield Some(table, typed, start)
        start += len(given)


def schema_of(clf: Any) -> Any:
    """How the model reads tables."""
    schema = getattr(clf, "schema_", None)
    if schema is None:
        raise UsageError(
            "this model was fitted on an array, whose columns have no names, so it cannot read files. Fit it on a file "
            "or a frame, or ask it from Python."
        )
    return schema


def label_column(clf: Any, source: Source, wanted: str | None) -> str:
    """The column of labels: as asked for, or as the model learnt it."""
    name = wanted or getattr(schema_of(clf), "label", None)
    if name is None:
        raise UsageError("the model does not say which column holds the labels. Name it with --label.")
    return column_named(str(name), source.columns, source.name)


def report_skipped(terminal: Terminal, source: Source) -> None:
    """Say how many rows were passed over, and the first reasons; never silent."""
    if source.skipped.rows:
        said = f"deciban: {source.skipped}"
        terminal.err.print(said, markup=False, highlight=False, soft_wrap=True)


def _spooled() -> str:
    """What is piped in, as a file that goes when the process does."""
    with tempfile.NamedTemporaryFile(prefix="deciban-stdin-", delete=False) as kept:
        atexit.register(Path(kept.name).unlink, missing_ok=True)
        shutil.copyfileobj(sys.stdin.buffer, kept, 2**20)
    return kept.name


def _sniffed() -> str:
    """The format of stdin by its first bytes."""
    start = first_of_stdin(16)
    if start.startswith(b"ARROW1") or start.startswith(b"\xff\xff\xff\xff"):
        return "arrow"
    return "jsonl" if start.lstrip().startswith(b"{") else "csv"


def stem(path: str) -> str:
    """The name of a file without folders and endings.

    >>> stem("data/adult.csv.gz")
    'adult'
    """
    name = os.path.basename(os.path.normpath(path))
    return name.split(".")[0] or name


# -- documents ----------
# Whole documents as rows: a mail or a text on stdin, a file of one, an mbox, a folder of them without classes.
#
# A model of texts is asked about a document as readily as about a table. Where its columns are those of mail (subject,
# from, body) a message is taken apart; else the document is the text, as a folder of texts was learnt.

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

    def place(self, row: int) -> tuple[str, int]:
        """The document itself."""
        return (self._places[row], row + 1) if row < len(self._places) else super().place(row)

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
            raise InputError(HERE, " is empty.", place=place, remedy="Give a text.")
        if b"\0" in data:
            raise InputError(HERE, " is not text: it holds zero bytes.", place=place, remedy="Give a text or a mail.")
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


# -- labelled ----------
# Rows with their labels, whether a column holds them or somebody says what they all are.


def labelled(clf: Any, source: Source, label: str | None, constant: str | None, new: bool = False) -> tuple[Any, Any]:
    """What `learn` and `unlearn` take: a source and its column, or typed rows and one label for all."""
    refuse_together(label=label, **{"class": constant})
    if constant is None:
        return source, label_column(clf, source, label)
    typed, _ = typed_whole(clf, source)
    return typed, _all_of(clf, constant, len(typed), new)


def typed_whole(clf: Any, source: Source) -> tuple[Any, Any]:
    """All rows, as the model takes them and as they were read."""
    parts = list(typed_batches(source, clf))
    return stacked([some.typed for some in parts]), stacked([some.given for some in parts])


def label_values(clf: Any, given: Any, name: str, new: bool = False) -> Any:
    """The labels that a column holds; or where there is no such column, that class for all rows."""
    from dataclasses import replace

    if name in given.columns:
        return replace(schema_of(clf), label=name).labels(given)
    return _all_of(clf, name, len(given), new)


def _all_of(clf: Any, name: str, n: int, new: bool) -> Any:
    """One label for all; a new one must be of the kind that the others are."""
    whole = schema_of(clf).whole
    if new and name not in map(str, clf.stats_.classes):
        label = int(name) if whole and name.lstrip("-").isdigit() else name
    else:
        label = class_named(name, clf.stats_.classes)
    return np.full(n, label, dtype=np.int64 if isinstance(label, int) else object)
