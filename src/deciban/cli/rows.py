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
from typing import Any, NamedTuple

import numpy as np

from deciban.cli.documents import documents, first_of_stdin
from deciban.cli.names import column_named, existing
from deciban.cli.remedies import in_our_words
from deciban.cli.terminal import Terminal
from deciban.errors import DecibanError, UsageError
from deciban.estimators.progress import watched
from deciban.read.files import open_source
from deciban.read.source import Source
from deciban.read.tables import Table

STDIN = "-"


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
    for table in watched(source):
        bad: list[tuple[int, str]] | None = [] if source.skip_bad else None
        try:
            typed = schema.apply(table, bad)
        except DecibanError as error:
            raise source.located(error, start) from None
        if bad:
            wrong = dict(reversed(bad))
            for row, said in sorted(wrong.items()):
                source.skipped.add(said.replace(f"(row {row})", f"({source.where(start + row)})"))
            left = np.delete(np.arange(len(table)), list(wrong))
            table, typed = table.take(left), typed.take(left)
        if len(table):
            yield Some(table, typed, start)
        start += len(table)


def located(error: DecibanError, source: Source, start: int = 0) -> DecibanError:
    """The same error, with a row of a batch that began at `start` named by its place, a stranger to the ledger too."""
    stranger = re.match(r"row (\d+) was", str(error))
    if stranger is None:
        return source.located(error, start)
    return type(error)(f"{source.where(start + int(stranger[1]))}: the row was{str(error)[stranger.end() :]}")


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
        said = in_our_words(f"deciban: {source.skipped}")
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
