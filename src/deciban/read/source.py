"""Rows regrouped: tables of a fixed number of rows, of which those with much text come in parts.

Where a table ends depends on the rows alone: not on how a file was written, nor on whether they are in a file at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deciban.read.arrow import whole_numbers

if TYPE_CHECKING:
    import pyarrow as pa


from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from deciban.errors import HERE, Argument, DecibanError, InputError
from deciban.read.tables import HEAD, Origin, Table

if TYPE_CHECKING:
    import pyarrow as pa

Array = NDArray[Any]
TEXT = 2**23  # bytes of texts in a part: enough to forget what a batch costs, little beside a vocabulary


def regrouped(pieces: Iterable[pa.Table], rows: int, texts: Callable[[], Sequence[str]] = tuple) -> Iterator[pa.Table]:
    """The same rows in tables of exactly `rows`, but for the last.

    Once the first table was seen, `texts` is asked for the columns that hold texts: of all others, what has more text
    than a part may have comes in parts.
    """
    import pyarrow as pa

    names: Sequence[str] = ()
    held: list[pa.Table] = []
    left, room = rows, TEXT  # rows and bytes that are still to come
    for piece in pieces:
        while len(piece):
            some = piece.slice(0, left)
            ends = text_ends([some[name] for name in names], len(some))
            cut = max(int(np.searchsorted(ends, room, "right")), not held)
            if cut:
                held.append(some.slice(0, cut))
                left, room, piece = left - cut, room - int(ends[cut - 1]), piece.slice(cut)
            if cut < len(some) or left == 0:
                yield pa.concat_tables(held)
                held, room = [], TEXT
                if left == 0:
                    left, names = rows, texts()
    if held:
        yield pa.concat_tables(held)


def cuts(columns: Sequence[Any], n: int) -> Iterator[slice]:
    """The parts that `regrouped` makes of a table after the first, by its columns of texts.

    >>> import pyarrow as pa
    >>> list(cuts([pa.chunked_array([["a" * (TEXT // 2)] * 3])], 3))
    [slice(0, 2, None), slice(2, 3, None)]
    """
    ends = np.append(0, text_ends(columns, n))
    begin = 0
    while begin < n:
        end = max(int(np.searchsorted(ends, ends[begin] + TEXT, "right")) - 1, begin + 1)
        yield slice(begin, end)
        begin = end


def text_ends(columns: Sequence[Any], n: int) -> Array:
    """(n,) bytes of texts up to and with each row; what is no plain text, such as codes of a dictionary, has none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    sizes = np.zeros(n, np.int64)
    for column in columns:
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            lengths = pc.binary_length(column)
            sizes += whole_numbers(pc.fill_null(lengths, 0) if lengths.null_count else lengths)
    return np.cumsum(sizes)


# -- source ----------
# Where rows come from: a name for messages, the columns, and batches of rows.
#
# A source can be read from its beginning as often as wanted (all but standard input can), and knows the place of each
# row, so that an error can say `adult.csv, line 17`.

NAME_IT = "Name it in the header."
SKIP_BAD = Argument("skip_bad", True)
REASONS = 5  # errors that are kept of skipped rows


@dataclass
class Skipped:
    """The number of rows that could not be read and were skipped, and the errors of the first ones."""

    rows: int = 0
    reasons: list[DecibanError] = field(default_factory=list)

    def add(self, reason: DecibanError, rows: int = 1, origin: Origin | None = None) -> None:
        """Count rows that could not be read; `origin` says where the row of the error comes from."""
        self.rows += rows
        if len(self.reasons) < REASONS:
            self.reasons.append(reason if origin is None else origin.located(reason))

    def __str__(self) -> str:
        if not self.rows:
            return "no row was skipped"
        reasons = "; ".join(str(reason.but(remedy=None)).rstrip(".") for reason in self.reasons)
        return f"{self.rows:,} row{'s' * (self.rows > 1)} skipped: {reasons}."


class Source(ABC):
    """Rows to be had in batches."""

    name: str  # for messages
    size: int | None = None  # bytes to be read, where that is known
    skip_bad: bool = False  # pass over rows that cannot be read, instead of stopping at the first
    quiet: bool = False  # no progress is shown

    def __init__(self) -> None:
        self.skipped = Skipped()
        self.read = 0  # bytes so far

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""

    @abstractmethod
    def pieces(self) -> Iterator[pa.Table]:
        """All rows, in pieces of whatever size is handy, from the beginning."""

    def batches(self, rows: int = HEAD, texts: Callable[[], Sequence[str]] = tuple) -> Iterator[Table]:
        """All rows, in tables of exactly `rows` rows, but for the last; how the file was written does not show.

        `texts` says after the first table which columns hold texts: tables with much text come in parts from then on.
        """
        self.skipped, self.read = Skipped(), 0
        start = 0
        for table in regrouped(self.pieces(), rows, texts):
            stop = start + len(table)
            yield replace(Table.of(table), origin=Origin(range(start, stop), self))
            start = stop
            del table  # before the next is read
        if not start:
            raise self.without_rows()

    def place(self, row: int) -> tuple[str, int]:
        """The place of a row in words, and its number there; rows are counted from 0, without those skipped."""
        return f"{self.name}, row {row + 1}", row + 1

    def where(self, row: int) -> str:
        """The place of a row in words."""
        return self.place(row)[0]

    def located(self, error: DecibanError, row: int | None) -> DecibanError:
        """The same error at the place of a row of this source, or at the source where the row is not known."""
        return error.at(self.name) if row is None else error.at(*self.place(row))

    def refusal(self, what: str, **attributes: Any) -> InputError:
        """An error about the source as a whole: its name, and `what`."""
        return InputError(HERE, what, place=self.name, **attributes)

    def without_rows(self) -> InputError:
        """The error for a source without a row that can be read."""
        skipped = f" {self.skipped}" if self.skipped.rows else ""
        return self.refusal(f" holds no rows.{skipped}", remedy="Give a file with data.")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {len(self.columns)} columns)"


class FrameSource(Source):
    """A frame of pandas, polars or pyarrow that is already in memory."""

    def __init__(self, frame: Any) -> None:
        super().__init__()
        self.table = Table.of(frame)
        self.name = "the table"
        if not self.table.framed:
            raise InputError(
                "an array has no names of columns.", remedy="Give a frame of pandas, polars or pyarrow, or a path."
            )
        self._columns = checked_names([str(name) for name in self.table.columns], self.name)

    @property
    def columns(self) -> tuple[str, ...]:
        return self._columns

    def pieces(self) -> Iterator[pa.Table]:
        from deciban.read.arrow import arrow_table

        yield arrow_table(self.table)


def checked_names(names: Iterable[str], name: str) -> tuple[str, ...]:
    """Names of columns: none empty, none twice; else an error that counts columns from 1."""
    seen: dict[str, int] = {}
    for at, column in enumerate(names, 1):
        if not column.strip():
            raise InputError("the column has no name.", place=f"{name}, line 1, column {at}", remedy=NAME_IT)
        if column in seen:
            raise InputError(
                f"columns {seen[column]} and {at} are both called {column!r}.",
                columns=[column],
                place=f"{name}, line 1",
                remedy="Rename one of them.",
            )
        seen[column] = at
    return tuple(seen)
