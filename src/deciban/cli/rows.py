"""Rows as commands read them: a file, a folder or stdin, in batches, typed by the model's schema."""

from __future__ import annotations

import csv
import os
import re
import secrets
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from deciban.cli.app import refuse_together
from deciban.cli.arguments import class_named, column_named, existing
from deciban.cli.output import Terminal
from deciban.errors import HERE, InputError, UsageError, shortlist
from deciban.read.batches import fitting_rows, with_progress
from deciban.read.files import ENDINGS, open_source
from deciban.read.mail import FIELDS, RawMessage, is_mail, raw_messages
from deciban.read.paths import is_address, is_pattern, read_record, refuse_special_file, within_limit
from deciban.read.schema import Schema
from deciban.read.source import COMPRESSED, STDIN, DocumentSource, Source
from deciban.read.tables import Table, TypedTable, stacked
from deciban.read.texts import TEXT
from deciban.store.files import ENDING, TEMPORARY_FILES, create_locked, remove_if_abandoned

if TYPE_CHECKING:
    from deciban.estimators.classifier import GenerativeClassifier
    from deciban.statistics import Array

FILE = "file"  # the column with the place of a document
HEAD_BYTES = 4096  # read to recognise a table
LINES_BYTES = 2**16  # read of a .txt file to tell a table from texts
FEWEST_LINES = 3  # that show that a .txt file is a table
COPY = "deciban-stdin-"  # beginning of the name of a temporary copy of stdin
TABLE_FORMATS = {"csv", "tsv", "jsonl", "json", "xlsx", "parquet", "arrow"}
DOCUMENT_FORMATS = {"text", "mail"}  # values of --read-as
DELIMITERS = ",;\t|"
YES_OR_NO = {"yes": True, "true": True, "no": False, "false": False}


class TypedBatch(NamedTuple):
    """A batch of rows as they were read, and typed by the model's schema."""

    given: Table
    typed: TypedTable
    start: int  # rows before this batch


# -- opening -----------------------------------------------------------------------------------------------------------
def open_rows(
    terminal: Terminal,
    path: str,
    read_as: str | None = None,
    skip_bad: bool = False,
    *,
    clf: GenerativeClassifier | None = None,
    several_passes: bool = False,
    gaps: bool = False,
    texts: str | None = None,
) -> Source:
    """Open the rows at a path: as documents if the model `clf` reads texts and the path holds no table.

    "-" is stdin, which is copied to a temporary file if it is read in several passes. With `gaps`, columns of the model
    that the rows do not have are missing in every row, and a note says so. With `texts`, rows are texts for a model
    without a schema, and `texts` is the column that was asked for, or "": a .txt file that is no table with this column
    is read as one text a line.
    """
    _remove_abandoned_copies()
    kind, options = read_options(read_as)
    piped = path == STDIN
    if piped and (sys.stdin is None or sys.stdin.isatty()):
        raise UsageError("ROWS is missing, and nothing is piped to stdin. Name a file or a folder, or use a pipe.")
    source: Source | None = None
    if not piped and not (is_address(path) or is_pattern(path)):
        refuse_special_file(existing(path))
        if texts is not None:
            source = open_texts(terminal, path, kind, texts, skip_bad)
    if source is None and clf is not None and not (is_address(path) or is_pattern(path)):
        source = open_documents(terminal, path, kind, schema_of(clf), skip_bad)
    if source is None:
        if piped:
            kind = kind or _format_of_stdin()
            path = _temporary_copy_of_stdin() if several_passes else path
        source = open_source(existing(path), format=kind, **options, **({"skip_bad": True} if skip_bad else {}))
        source.name = "standard input" if piped else source.name
    source.quiet = terminal.quiet
    if getattr(source, "row_numbers", False):
        terminal.note(f"deciban: note: the first column of {source.name} has no name: row numbers, which are not read.")
    if clf is not None and gaps:
        _accept_gaps(terminal, source, schema_of(clf))
    return source


@contextmanager
def engine_of(terminal: Terminal, name: str | None) -> Iterator[Any]:
    """Context in which the engine that --engine names reads files; without a name, this process does."""
    if name is None:
        yield None
        return
    from deciban.engines import engine

    with engine(name) as opened:
        opened.quiet = terminal.quiet
        yield opened


def _accept_gaps(terminal: Terminal, source: Source, schema: Schema) -> None:
    """Let columns that the rows do not have be missing in every row, and say so once."""
    wanted = [column.name for column in schema.columns if column.features]
    absent = tuple(name for name in wanted if name not in source.columns)
    if absent and len(absent) == len(wanted) and FILE not in source.columns:
        names, given = shortlist([repr(name) for name in absent]), shortlist([repr(name) for name in source.columns])
        raise UsageError(
            f"{source.name} has none of the columns of the model: {names}. It has {given}. "
            "Give rows with the columns that were learnt."
        )
    if absent and len(absent) < len(wanted):
        source.absent = absent
        names, verb = shortlist([repr(name) for name in absent]), "is" if len(absent) == 1 else "are"
        terminal.note(
            f"deciban: note: {source.name} has no column {names}, which {verb} taken as missing in every row."
        )


def read_options(text: str | None) -> tuple[str | None, dict[str, Any]]:
    """The format and its options, of --read-as csv or --read-as 'csv,delimiter=;,encoding=latin-1'.

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
    if isinstance(header := options.get("header"), str):
        if header not in YES_OR_NO:
            raise UsageError(f"--read-as header={header}: this is yes or no.", remedy="Give header=yes or header=no.")
        options["header"] = YES_OR_NO[header]
    return kind, options


def report_skipped(terminal: Terminal, source: Source) -> None:
    """Print how many rows were skipped, and the first reasons; with --quiet, too."""
    if source.skipped.rows:
        terminal.warn(f"deciban: {source.skipped}")


def stem(path: str) -> str:
    """The name of a file without folders and endings.

    >>> stem("data/adult.csv.gz")
    'adult'
    """
    name = os.path.basename(os.path.normpath(path))
    return name.split(".")[0] or name


def _temporary_copy_of_stdin() -> str:
    """Copy stdin to a temporary file, which is locked and removed when the process ends."""
    path = Path(tempfile.gettempdir(), f"{COPY}{secrets.token_hex(8)}{ENDING}")
    TEMPORARY_FILES.add(path)
    descriptor, _ = create_locked(path, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy, 2**20)
    except OSError as error:
        error.filename = error.filename or str(path)
        raise
    return str(path)


def _remove_abandoned_copies() -> None:
    """Remove copies of stdin that killed processes left."""
    with suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            if entry.name.startswith(COPY) and entry.name.endswith(ENDING):
                remove_if_abandoned(Path(entry.path))


def _format_of_stdin() -> str:
    """The format of stdin by its first bytes."""
    start = _peek_stdin(16)
    if start.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        return "arrow"
    start = start.lstrip()
    return "jsonl" if start.startswith(b"{") else "json" if start.startswith((b"[{", b"[\n")) else "csv"


def _peek_stdin(size: int) -> bytes:
    """The first bytes of stdin, without consuming them."""
    peek = getattr(sys.stdin.buffer, "peek", None)
    return b"" if peek is None else bytes(peek(size)[:size])


# -- typing ------------------------------------------------------------------------------------------------------------
def schema_of(clf: GenerativeClassifier) -> Schema:
    """The schema by which the model reads files."""
    schema = getattr(clf, "schema_", None)
    if schema is None:
        raise UsageError(
            "this model was fitted on an array, whose columns have no names, so it cannot read files. Fit it on a file "
            "or a frame, or use it from Python."
        )
    return schema


def typed_batches(source: Source, clf: GenerativeClassifier) -> Iterator[TypedBatch]:
    """The rows batch by batch; rows that do not fit the schema raise, or are counted with --skip-bad."""
    schema, start = schema_of(clf), 0
    for given in with_progress(source):
        table, typed = fitting_rows(given, schema, source)
        if len(table):
            yield TypedBatch(table, typed, start)
        start += len(given)


def typed_whole(clf: GenerativeClassifier, source: Source) -> tuple[TypedTable, Table]:
    """All rows, typed and as they were read."""
    batches = list(typed_batches(source, clf))
    return stacked([batch.typed for batch in batches]), stacked([batch.given for batch in batches])


# -- labels ------------------------------------------------------------------------------------------------------------
def labelled(
    clf: GenerativeClassifier, source: Source, label: str | None, constant: str | None, new: bool = False
) -> tuple[Any, Any]:
    """The arguments of `learn` and `unlearn`: a source and its label column, or typed rows and one label for all.

    With `new`, the constant label may be a class that the model does not have yet.
    """
    refuse_together(label=label, **{"class": constant})
    if constant is None:
        try:
            return source, label_column(clf, source, label)
        except UsageError as error:
            raise error.but(remedy="Name it with --label, or give one class for all rows with --class.") from None
    typed, _ = typed_whole(clf, source)
    return typed, _constant_labels(clf, constant, len(typed), new)


def label_column(clf: GenerativeClassifier, source: Source, wanted: str | None) -> str:
    """The label column: as given, else the one that the model learnt from."""
    name = wanted or schema_of(clf).label
    if name is None:
        raise UsageError("the model does not record a label column. Name it with --label.")
    return column_named(str(name), source.columns, source.name)


def label_values(clf: GenerativeClassifier, given: Table, name: str, new: bool = False) -> Any:
    """The labels in the column of that name; if there is none, the class of that name for all rows."""
    if name in given.columns:
        return replace(schema_of(clf), label=name).labels(given)
    return _constant_labels(clf, name, len(given), new)


def _constant_labels(clf: GenerativeClassifier, name: str, n: int, new: bool) -> Array:
    """One label for all rows, of the type of the model's labels."""
    classes = clf.stats_.classes
    if new and name not in map(str, classes):
        whole = schema_of(clf).whole
        if whole and not name.removeprefix("-").isdigit():
            known = shortlist([str(each) for each in classes])
            raise UsageError(
                f"{name!r} is no whole number, as the classes of the model are: {known}. Give a whole number."
            )
        label: Any = int(name) if whole else name
    else:
        label = class_named(name, classes)
    return np.full(n, label, dtype=np.int64 if isinstance(label, int) else object)


# -- documents ---------------------------------------------------------------------------------------------------------
class GivenDocuments(DocumentSource):
    """One row per document: a text or mail on stdin or in a file, the messages of an mbox, or the files of a folder.

    If the model's columns are those of mail (subject, from, body), a message is split into them; else the whole
    document is the text.
    """

    def __init__(self, path: str, wanted: tuple[str, ...], skip_bad: bool = False) -> None:
        super().__init__("standard input" if path == STDIN else path)
        self.path, self.wanted, self.skip_bad = path, wanted, skip_bad
        self.texts = wanted if len(wanted) == 1 else ()

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.wanted, FILE)

    def documents(self) -> Iterator[tuple[str, dict[str, str]]]:
        """Yield each document: its place, and the values of the columns of the model."""
        for document in self._documents():
            self.read += len(document.data)
            try:
                row = self.row(document)
            except InputError as error:
                self.raise_or_skip(error)
            else:
                yield document.place, {**row, FILE: document.place}

    def _documents(self) -> Iterator[RawMessage]:
        place = Path(self.path)
        if self.path == STDIN:
            data = sys.stdin.buffer.read(self.limits.record_bytes + 1)
            yield RawMessage(self.name, within_limit(data, self.name, self.limits))
        elif place.is_dir() and not is_mail(place):
            for file in sorted(entry for entry in place.iterdir() if not entry.is_dir() and entry.name[0] != "."):
                yield self._file(file)
        else:
            yield from raw_messages(place, self.limits)

    def _file(self, file: Path) -> RawMessage:
        try:
            return RawMessage(str(file), read_record(file, self.limits))
        except InputError as error:
            return RawMessage(str(file), b"", error)

    def row(self, document: RawMessage) -> dict[str, str]:
        """The columns of the model, from a document; an InputError if it cannot be read."""
        if document.wrong is not None:
            raise document.wrong
        place, data = document.place, document.data
        if not data.strip():
            raise InputError(HERE, " is empty.", place=place, remedy="Give a text.")
        if b"\0" in data:
            raise InputError(HERE, " is not text: it holds zero bytes.", place=place, remedy="Give a text or a mail.")
        if set(self.wanted) <= set(FIELDS):
            return document.fields(self.limits)
        try:
            return {self.wanted[0]: data.decode("utf-8")}
        except UnicodeDecodeError:
            return {self.wanted[0]: data.decode("latin-1")}


def open_documents(
    terminal: Terminal, path: str, kind: str | None, schema: Schema, skip_bad: bool = False
) -> Source | None:
    """The documents at a path, for a model of texts or mail; None if it is a table, or the model reads tables.

    A .txt file is one text a line if the texts that the model learnt have one line; otherwise it is one text.
    """
    wanted = tuple(column.name for column in schema.columns if column.features)
    reads_mail = set(wanted) <= set(FIELDS)
    reads_text = len(wanted) == 1 and schema[wanted[0]].kind == "text"
    if not (reads_mail or reads_text) or kind in TABLE_FORMATS or kind == "folder":
        return None
    if kind == "lines" and reads_text:
        return open_source(path, format=kind, column=wanted[0])
    if kind not in DOCUMENT_FORMATS and (_is_table(path, wanted[0]) or _has_classes(Path(path))):
        return None
    if kind is None and reads_text and is_txt(path) and not schema[wanted[0]].several_lines:
        return _lines(terminal, path, wanted[0], "as one text: --read-as text")
    return GivenDocuments(path, wanted, skip_bad)


def open_texts(terminal: Terminal, path: str, kind: str | None, column: str, skip_bad: bool) -> Source | None:
    """The texts at a path: a .txt file line by line, or the files of a folder; None if it is a table."""
    place = Path(path)
    if kind is None and is_txt(path) and not (_is_table(path, column) if column else has_cells(path)):
        return _lines(terminal, path, column or TEXT, "as a table: --text COLUMN or --read-as csv")
    if kind == "text" or (kind is None and place.is_dir() and not is_mail(place) and not _has_folders(place)):
        return GivenDocuments(path, (column or TEXT,), skip_bad)
    return None


def is_txt(path: str) -> bool:
    """Whether a path ends in .txt, or in .txt and the ending of a compressed file."""
    place = Path(path)
    return (Path(place.stem) if place.suffix.lower() in COMPRESSED else place).suffix.lower() == ".txt"


def _lines(terminal: Terminal, path: str, column: str, otherwise: str) -> Source:
    """The lines of a .txt file, with a note that it is read so, and how it can be read otherwise."""
    if len(_start(path, HEAD_BYTES).split(b"\n", 1)[-1].strip()) > 0:
        terminal.note(f"deciban: note: {path} is read as one text a line ({otherwise}).")
    return open_source(path, format="lines", column=column)


def has_cells(path: str, fewest: int = 2) -> bool:
    """Whether the first lines of a .txt file are a table: three or more, with equally many cells, `fewest` or more."""
    lines = _start(path, LINES_BYTES).decode("utf-8", "replace").splitlines()
    lines = [line for line in lines[: -1 if len(lines) > FEWEST_LINES else None] if line.strip()]  # the last may be cut
    if len(lines) < FEWEST_LINES:
        return False
    try:
        rows = list(csv.reader(lines, delimiter=max(DELIMITERS, key=lines[0].count)))
    except csv.Error:
        return False
    return len(rows[0]) >= fewest and len({len(row) for row in rows}) == 1


def _start(path: str, size: int) -> bytes:
    """The first bytes of a file, after decompression."""
    import pyarrow as pa

    with pa.input_stream(path, compression="detect") as stream:
        return bytes(stream.read(size))


def _has_folders(place: Path) -> bool:
    """Whether a folder holds other folders that are not hidden."""
    return any(entry.is_dir() and not entry.name.startswith(".") for entry in place.iterdir())


def _has_classes(place: Path) -> bool:
    """Whether a folder holds a folder of texts for each class."""
    return place.is_dir() and not is_mail(place) and any(entry.is_dir() for entry in place.iterdir())


def _is_table(path: str, wanted: str) -> bool:
    """Whether a file or stdin is a table with the wanted column: by its ending, else by its first line."""
    if path == STDIN:
        start = _peek_stdin(HEAD_BYTES)
    else:
        place = Path(path)
        ending = place.suffix.lower()
        if place.is_dir() or ending == ".eml":
            return False
        if not is_txt(path) and (ending == ".csv" or ending in COMPRESSED or ENDINGS.get(ending, "csv") != "csv"):
            return True
        start = _start(path, HEAD_BYTES)
    first = start.lstrip(b"\xef\xbb\xbf \r\n").split(b"\n")[0].decode("utf-8", "replace")
    names = [cell.strip().strip('"') for delimiter in DELIMITERS for cell in first.split(delimiter)]
    return wanted in names or (first.startswith("{") and f'"{wanted}"' in start.decode("utf-8", "replace"))
