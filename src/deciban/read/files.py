"""Opens anything with rows as a source: frames, files of many formats, folders of texts, mail, standard input."""

from __future__ import annotations

import importlib
import inspect
import os
from functools import partial
from glob import has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deciban.errors import Argument, InputError, Remedy
from deciban.read.places import expanded, is_address, is_pattern
from deciban.read.source import COMPRESSED, STDIN, FrameSource, Source, no_file

if TYPE_CHECKING:
    from narwhals.typing import IntoDataFrame

# format → module and class of its source, imported when such a file is read
FORMATS = {
    "csv": "text_files.DelimitedSource",
    "tsv": "text_files.DelimitedSource",
    "jsonl": "json_files.JSONLinesSource",
    "json": "json_files.JSONSource",
    "xlsx": "sheets.WorkbookSource",
    "parquet": "columnar.ParquetSource",
    "arrow": "columnar.ArrowSource",
    "folder": "folder.FolderSource",
    "mail": "mail.MailSource",
}
ENDINGS = {
    ".csv": "csv", ".txt": "csv", ".data": "csv", ".tsv": "tsv", ".tab": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl",
    ".json": "json", ".xlsx": "xlsx", ".xlsm": "xlsx",
    ".parquet": "parquet", ".pq": "parquet", ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow",
    ".eml": "mail", ".mbox": "mail",
}  # fmt: skip


def open_source(
    what: Source | str | os.PathLike[str] | IntoDataFrame, *, format: str | None = None, **options: Any
) -> Source:
    """The source of a frame, a path, a pattern of paths, or "-" for standard input; a source is returned as it is.

    Options are those of the format: `skip_bad`, and for CSV also `delimiter`, `quote`, `encoding` and `missing`.

    >>> import polars as pl
    >>> open_source(pl.DataFrame({"colour": ["red", "white"], "size": [1.5, 2.0]})).columns
    ('colour', 'size')
    """
    if isinstance(what, Source):
        return what
    if not isinstance(what, str | os.PathLike):
        return FrameSource(what)
    if is_pattern(what) or (is_address(what) and has_magic(str(what))):
        return _many_files(str(what), format, options)
    kind = format or _format(what)
    if kind not in FORMATS:
        raise InputError(f"format={kind!r} is not one of {', '.join(FORMATS)}.")
    module, _, name = FORMATS[kind].partition(".")
    source = getattr(importlib.import_module(f"deciban.read.{module}"), name)
    wrong = next((name for name in options if name not in inspect.signature(source).parameters), None)
    if wrong is not None:
        raise InputError(f"the format {kind} has no option {wrong!r}.", place=os.fspath(what))
    return source(what, **({"delimiter": "\t"} if kind == "tsv" else {}) | options)


def _many_files(pattern: str, format: str | None, options: dict[str, Any]) -> Source:
    """The files of a pattern as one source; a single file as itself."""
    from deciban.read.many import ManyFiles

    paths = expanded(pattern)
    if len(paths) == 1:
        return open_source(paths[0], format=format, **options)
    return ManyFiles(pattern, paths, partial(open_source, format=format, **options))


PLACES = (str, os.PathLike, Source)  # types of what stands for rows: a path or a source, not the rows themselves


def _format(path: str | os.PathLike[str]) -> str:
    """The format of a file by its ending, of a folder by its contents."""
    if path == STDIN:
        raise InputError(
            "the format of standard input is not known.",
            remedy=Remedy("Name it: ", Argument("format", "csv"), ", tsv, jsonl or arrow."),
        )
    place = Path(path)
    if not is_address(path) and place.is_dir():
        from deciban.read.mail import boxes_of, is_mail

        return "mail" if is_mail(place) or boxes_of(place) else "folder"
    endings = [ending.lower() for ending in place.suffixes]
    if endings and endings[-1] in COMPRESSED:
        endings.pop()
    if not endings or endings[-1] not in ENDINGS:
        if not is_address(path) and not place.exists():
            raise no_file(os.fspath(path))
        raise InputError(
            "which format this is cannot be told by its name.",
            place=os.fspath(path),
            remedy=Remedy(
                "Name it, as in ", Argument("format", "csv"), f", or rename it to end in one of {', '.join(ENDINGS)}."
            ),
        )
    kind = ENDINGS[endings[-1]]
    return "jsonl" if kind == "json" and _has_json_lines(place) else kind


def _has_json_lines(place: Path) -> bool:
    """Whether a file that ends in .json holds one object a line: two lines begin with a brace."""
    if not place.is_file() or place.suffix.lower() in COMPRESSED:
        return False
    with open(place, "rb") as file:
        head = [line.lstrip() for line in file.read(2**16).splitlines() if line.strip()]
    return len(head) > 1 and head[0].startswith(b"{") and head[1].startswith(b"{") and head[0] != b"{"
