"""Opens anything with rows as a source: frames, files of many formats, folders of texts, mail, standard input."""

from __future__ import annotations

import importlib
import inspect
import os
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from glob import has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deciban.errors import HERE, Argument, InputError, Remedy, shortlist
from deciban.read.paths import Limits, expanded, is_address, is_pattern
from deciban.read.source import COMPRESSED, STDIN, FrameSource, Source, no_file
from deciban.read.tables import HEAD

if TYPE_CHECKING:
    import pyarrow as pa
    from narwhals.typing import IntoDataFrame

# format → module and class of its source, imported when such a file is read
FORMATS = {
    "csv": "text_files.DelimitedSource",
    "tsv": "text_files.DelimitedSource",
    "jsonl": "json_files.JSONLinesSource",
    "json": "json_files.JSONSource",
    "xlsx": "binary_files.WorkbookSource",
    "parquet": "binary_files.ParquetSource",
    "arrow": "binary_files.ArrowSource",
    "folder": "texts.FolderSource",
    "lines": "texts.LinesSource",
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
    paths = expanded(pattern)
    if len(paths) == 1:
        return open_source(paths[0], format=format, **options)
    return ManyFiles(pattern, paths, partial(open_source, format=format, **options))


PLACES = (str, os.PathLike, Source)  # types that refer to rows: paths and sources; other types hold the rows


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


# -- several files as one source ---------------------------------------------------------------------------------------
class ManyFiles(Source):
    """The rows of several files of one kind.

    Files are opened when they are read. Each must have the columns of the first, in any order, and of the same types.

    >>> import polars, tempfile
    >>> from deciban.read.files import open_source
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in "ab":
    ...         polars.DataFrame({"size": [1.5, 2.0], "colour": ["red", "white"]}).write_csv(f"{folder}/{name}.csv")
    ...     rows = open_source(f"{folder}/*.csv")
    ...     len(rows.paths), sum(len(table) for table in rows.batches())
    (2, 4)
    """

    def __init__(
        self, name: str, paths: Sequence[str], open_one: Callable[[str], Source], limits: Limits | None = None
    ) -> None:
        super().__init__(limits)
        self.name, self.paths, self.open_one = name, tuple(paths), open_one
        self.first = open_one(self.paths[0])
        self.skip_bad = self.first.skip_bad
        self.starts: list[int] = []  # row at which each file starts, for the files opened so far
        self._opened: list[Source] = []

    @property
    def columns(self) -> tuple[str, ...]:
        return self.first.columns

    def pieces(self) -> Iterator[pa.Table]:
        """The pieces of one file after the other, with the columns in the order of the first."""
        rows, read, schema = 0, 0, None
        self.starts, self._opened = [], []
        for path in self.paths:
            source = self.open_one(path)
            check_columns(source.columns, self.columns, source.name, self.paths[0])
            source.skipped, source.limits = self.skipped, self.limits
            self.starts.append(rows)
            self._opened.append(source)
            for piece in source.pieces():
                table = piece.select(list(self.columns))
                schema = schema or table.schema
                yield _of_types(table, schema, source, self.paths[0])
                rows, self.read = rows + len(table), read + source.read
            read += source.read

    def place(self, row: int) -> tuple[str, int]:
        """The place of a row in its file."""
        at = bisect_right(self.starts, row) - 1
        return self._opened[at].place(row - self.starts[at])


class FirstRows(Source):
    """The first rows of another source, those from which choices are made."""

    def __init__(self, source: Source, rows: int = HEAD) -> None:
        super().__init__(source.limits)
        self.source, self.rows = source, rows
        self.name, self.skip_bad, self.quiet, self.absent = source.name, source.skip_bad, source.quiet, source.absent

    @property
    def columns(self) -> tuple[str, ...]:
        return self.source.columns

    def pieces(self) -> Iterator[pa.Table]:
        """The pieces of the other source, until there are enough rows."""
        self.source.skipped, left = self.skipped, self.rows
        for piece in self.source.pieces():
            yield piece.slice(0, left)
            left -= len(piece)
            if left <= 0:
                return

    def place(self, row: int) -> tuple[str, int]:
        """The place of a row in the other source."""
        return self.source.place(row)


def check_columns(found: Sequence[str], wanted: Sequence[str], name: str, first: str) -> None:
    """Refuse a file or partition whose columns are not those of `first`."""
    lacks = [each for each in wanted if each not in found]
    more = [each for each in found if each not in wanted]
    if lacks or more:
        said = [f"lacks {shortlist(list(map(repr, lacks)))}"] if lacks else []
        said += [f"has also {shortlist(list(map(repr, more)))}"] if more else []
        raise InputError(
            HERE,
            f" has other columns than {first}: it {' and '.join(said)}.",
            place=name,
            columns=lacks or more,
            remedy="Give the same columns in all of them.",
        )


def _of_types(table: pa.Table, schema: pa.Schema, source: Source, first: str) -> pa.Table:
    """The table, with types as in the first file; an error if a column is of another kind."""
    if table.schema.equals(schema):
        return table
    check_types(table.schema, schema, source.name, first)
    import pyarrow as pa

    try:
        return table.cast(schema)
    except pa.ArrowInvalid as error:
        reason = str(error).splitlines()[0][:200]
        raise InputError(HERE, f" does not fit the types of {first} ({reason}).", place=source.name) from None


def check_types(found: pa.Schema, wanted: pa.Schema, name: str, first: str) -> None:
    """Refuse a file that has the columns of `first`, of other kinds of values."""
    for field in wanted:
        check_type(found.field(field.name), field, name, first)


def check_type(field: pa.Field, wanted: pa.Field, name: str, first: str) -> None:
    """Refuse a column whose kind of values is another than in the first file."""
    if kind_of_type(field.type) not in (kind_of_type(wanted.type), "null") and kind_of_type(wanted.type) != "null":
        raise InputError(
            HERE,
            f": column {field.name!r} is of type {field.type} here and of type {wanted.type} in {first}.",
            place=name,
            columns=[field.name],
            remedy="Give files with the same types.",
        )


def kind_of_type(kind: pa.DataType) -> str:
    """What the values of an Arrow type are; widths and encodings do not matter.

    >>> import pyarrow as pa
    >>> kind_of_type(pa.int8()), kind_of_type(pa.dictionary(pa.int32(), pa.string()))
    ('integer', 'text')
    """
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return kind_of_type(kind.value_type)
    kinds = {
        "integer": pa.types.is_integer,
        "fraction": pa.types.is_floating,
        "text": lambda each: pa.types.is_string(each) or pa.types.is_large_string(each) or each == pa.string_view(),
        "date": pa.types.is_temporal,
        "decimal": pa.types.is_decimal,
    }
    return next((name for name, test in kinds.items() if test(kind)), str(kind))
