"""Anything with rows as a source: frames, paths of many formats, folders of texts, standard input."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from deciban.errors import Argument, InputError, Remedy
from deciban.read.columnar import ArrowSource, ParquetSource
from deciban.read.delimited import DelimitedSource
from deciban.read.folder import FolderSource
from deciban.read.json_lines import JSONLinesSource
from deciban.read.opening import COMPRESSED, STDIN, no_file
from deciban.read.source import FrameSource, Source

FORMATS: dict[str, Callable[..., Source]] = {
    "csv": DelimitedSource,
    "tsv": lambda path, **options: DelimitedSource(path, **({"delimiter": "\t"} | options)),
    "jsonl": JSONLinesSource,
    "parquet": ParquetSource,
    "arrow": ArrowSource,
    "folder": FolderSource,
    "mail": lambda path, **options: _mail(path, **options),
}
ENDINGS = {
    ".csv": "csv", ".txt": "csv", ".data": "csv", ".tsv": "tsv", ".tab": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl",
    ".parquet": "parquet", ".pq": "parquet", ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow",
    ".eml": "mail", ".mbox": "mail",
}  # fmt: skip


def open_source(what: Any, *, format: str | None = None, **options: Any) -> Source:
    """The source that something is: a frame, a path, "-" for standard input, or a source already.

    Options are those of the format: skip_bad, and for text also delimiter, quote, encoding and missing.

    >>> import polars as pl
    >>> open_source(pl.DataFrame({"colour": ["red", "white"], "size": [1.5, 2.0]})).columns
    ('colour', 'size')
    """
    if isinstance(what, Source):
        return what
    if not isinstance(what, str | os.PathLike):
        return FrameSource(what)
    kind = format or _kind(what)
    if kind not in FORMATS:
        raise InputError(f"format={kind!r} is not one of {', '.join(FORMATS)}.")
    try:
        return FORMATS[kind](what, **options)
    except TypeError as error:
        wrong = next((name for name in options if f"'{name}'" in str(error)), None)
        if wrong is None:
            raise
        raise InputError(f"the format {kind} has no option {wrong!r}.", place=os.fspath(what)) from None


def is_place(what: Any) -> bool:
    """Whether something says where rows are, rather than being rows."""
    return isinstance(what, str | os.PathLike | Source)


def _mail(path: str | os.PathLike[str], **options: Any) -> Source:
    from deciban.read.mail import MailSource  # ten milliseconds that other sources need not wait for

    return MailSource(path, **options)


def _kind(path: str | os.PathLike[str]) -> str:
    """The format that a path ends in."""
    if path == STDIN:
        raise InputError(
            "the format of standard input is not known.",
            remedy=Remedy("Name it: ", Argument("format", "csv"), ", tsv, jsonl or arrow."),
        )
    place = Path(path)
    if place.is_dir():
        from deciban.read.mail import boxes_of, is_mail

        return "mail" if is_mail(place) or boxes_of(place) else "folder"
    endings = [ending.lower() for ending in place.suffixes]
    if endings and endings[-1] in COMPRESSED:
        endings.pop()
    if not endings or endings[-1] not in ENDINGS:
        if not place.exists():
            raise no_file(os.fspath(path))
        raise InputError(
            "which format this is cannot be told by its name.",
            place=os.fspath(path),
            remedy=Remedy(
                "Name it, as in ", Argument("format", "csv"), f", or rename it to end in one of {', '.join(ENDINGS)}."
            ),
        )
    return ENDINGS[endings[-1]]
