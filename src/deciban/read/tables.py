"""What stands for a value that is not there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import scipy.sparse as sp

from deciban.errors import DecibanError, InputError

if TYPE_CHECKING:
    from deciban.read.source import Source

# those of pandas, and the question mark
MARKERS = (
    "", "?", "NA", "N/A", "n/a", "#N/A", "#N/A N/A", "#NA", "<NA>", "NaN", "nan", "-NaN", "-nan", "NaT", "NULL", "null",
    "None", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN",
)  # fmt: skip


# -- tables ----------
# Tables as given: arrays, sparse matrices, and the frames of pandas, polars and pyarrow.
#
# A `Table` hands out columns as plain arrays, so that nothing further down knows where they came from.

Kind = Literal["number", "yes/no", "category", "text"]
HEAD = 65_536  # rows of positive weight from which choices are taken


@dataclass(frozen=True, eq=False)
class TextColumn:
    """A table that is one column of texts, as they were given: a list, or the column of a frame.

    >>> TextColumn(["to be", "or not"])[1:].texts
    ['or not']
    """

    texts: Any  # a list of str, or an Arrow ChunkedArray

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.texts), 1

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(object)

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, rows: Any) -> TextColumn:
        if isinstance(rows, slice) and isinstance(self.texts, list):
            return TextColumn(self.texts[rows])
        rows = np.arange(len(self))[rows]
        if isinstance(self.texts, list):
            return TextColumn([self.texts[row] for row in rows.tolist()])
        return TextColumn(self.texts.take(rows))

    def array(self) -> Any:
        """(n, 1) of objects, None where missing."""
        column = np.empty((len(self), 1), dtype=object)
        column[:, 0] = self.texts if isinstance(self.texts, list) else self.texts.to_pylist()
        return column


@dataclass(frozen=True, eq=False)
class Origin:
    """Positions of a table's rows in the input that they were read from.

    >>> whole = Origin(range(100))
    >>> whole.take(slice(60, 100)).take([0, 7]).rows
    array([60, 67])
    """

    rows: Any  # (n,) of int, or a range: position of each row in the input, from 0
    source: Source | None = None  # the file, folder or frame; None for a table that was given as it is

    def take(self, rows: Any) -> Origin:
        """The origin of some of the rows: a slice, a mask or positions."""
        if isinstance(self.rows, range) and isinstance(rows, slice):
            return Origin(self.rows[rows], self.source)
        return Origin(np.asarray(self.rows)[rows], self.source)

    def located(self, error: DecibanError) -> DecibanError:
        """An error about a row of the table, with the place of the row in the input."""
        row = None if error.row is None else int(self.rows[error.row])
        if self.source is not None:
            return self.source.located(error, row)
        return error if row is None else error.at(f"row {row}", row)


@dataclass(frozen=True, eq=False)
class Table:
    """n rows and D columns, dense, sparse or a frame.

    >>> table = Table.of([[1, 2], [3, 4], [5, 6]])
    >>> table.pick([1]).ravel()
    array([2, 4, 6])
    """

    data: Any  # (n, D) array, CSR, a narwhals frame, or a column of texts
    columns: Sequence[Any]  # a tuple of names, or a range where there are none
    named: bool
    origin: Origin | None = None  # None: the rows are those of the input, in order

    @classmethod
    def of(cls, X: Any) -> Table:
        """Look at what was given, without copying it."""
        if isinstance(X, Table):
            return X
        if sp.issparse(X):
            return cls(_checked(X.tocsr()), range(X.shape[1]), False)
        texts = text_column(X)
        if texts is not None:
            return cls(texts, ("text",), False)
        frame = _frame(X)
        if frame is not None:
            _checked(frame)
            return cls(frame, tuple(frame.columns), all(isinstance(name, str) for name in frame.columns))
        array = _checked(_array(X))
        return cls(array, range(array.shape[1]), False)

    @property
    def sparse(self) -> bool:
        return sp.issparse(self.data)

    @property
    def texts(self) -> bool:
        """Whether it is one column of texts."""
        return isinstance(self.data, TextColumn)

    @property
    def framed(self) -> bool:
        return not self.sparse and not isinstance(self.data, (np.ndarray, TextColumn))

    @property
    def shape(self) -> tuple[int, int]:
        return self.data.shape

    def __len__(self) -> int:
        return self.data.shape[0]

    @contextmanager
    def located(self) -> Iterator[None]:
        """Context in which errors about rows of this table name the place of the row in the input."""
        try:
            yield
        except DecibanError as error:
            if self.origin is None or error.place is not None:
                raise
            raise self.origin.located(error).with_traceback(error.__traceback__) from error.__cause__

    def take(self, rows: Any) -> Table:
        """Some of the rows: a slice, a mask or positions."""
        origin = self.origin_of(rows)
        if self.framed:
            rows = np.arange(len(self))[rows]
            return Table(self.data[rows.tolist(), :], self.columns, self.named, origin)
        return Table(self.data[rows], self.columns, self.named, origin)

    def origin_of(self, rows: Any) -> Origin:
        """Where some of the rows come from."""
        return (self.origin or Origin(range(len(self)))).take(rows)

    def select(self, positions: Sequence[int] | None = None) -> Columns:
        """Some of the columns, or all, to be read when a family encodes them."""
        return Columns(self, positions)

    def pick(self, positions: Sequence[int] | None = None) -> Any:
        """Columns as one (n, d) array, or CSR; numbers where all are numbers, else objects with None for missing."""
        if self.texts:
            return self.data.array()
        every = positions is None or list(positions) == list(range(self.shape[1]))
        if not self.framed:
            return self.data if every else self.data[:, list(positions or ())]
        wanted = range(self.shape[1]) if positions is None else positions
        if every and all(self.kind(j) == "number" for j in wanted):
            return self.data.to_numpy()
        columns = [self._column(j) for j in wanted]
        if all(column.dtype.kind in "iufb" for column in columns):
            return np.column_stack(columns)
        return np.column_stack([column.astype(object) for column in columns])

    def column(self, position: int) -> Any:
        """One column as it was given: a list, an array, or a column of pyarrow."""
        if self.texts:
            return self.data.texts
        if not self.framed:
            return self.data[:, position]
        texts = text_column(self.data[:, position].to_native())
        return self.data[:, position].to_list() if texts is None else texts.texts

    def kind(self, position: int) -> Kind:
        """What a frame's column holds, by its type; an array holds numbers."""
        if self.texts:
            return "text"
        if not self.framed:
            return "number"
        dtype = self.data[:, position].dtype
        if dtype.is_numeric():
            return "number"
        return "yes/no" if str(dtype) == "Boolean" else "category"

    def _column(self, position: int) -> Any:
        series = self.data[:, position]
        if series.dtype.is_numeric():
            return series.to_numpy()
        if dtype_is(series, "Datetime", "Date", "Duration", "Time"):
            raise InputError(
                f"column {self.columns[position]!r} holds dates or times ({series.dtype}). "
                "Take the parts that matter (hour, weekday, …) as columns of their own."
            )
        column = np.empty(len(series), dtype=object)
        column[:] = series.to_list()
        if dtype_is(series, "Boolean") and not any(value is None for value in column):
            return column.astype(bool)
        return column


@dataclass(frozen=True, eq=False)
class Columns:
    """Selected columns of a table, in the order of `positions`.

    >>> columns = Table.of([[1, 2], [3, 4], [5, 6]]).select([1])
    >>> columns.shape, columns.numbers().ravel()
    ((3, 1), array([2, 4, 6]))
    """

    table: Table
    positions: Sequence[int] | None = None  # (d,), None for all columns

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.table), self.table.shape[1] if self.positions is None else len(self.positions)

    def __len__(self) -> int:
        return len(self.table)

    def numbers(self) -> Any:
        """(n, d) array, or CSR: numbers where all columns are numbers, else objects with None for missing."""
        return self.table.pick(self.positions)

    def texts(self) -> Any:
        """The texts of the only column: a list, an array, or a column of pyarrow."""
        if self.shape[1] != 1:
            raise InputError(f"Text takes one column, not {self.shape[1]}.", remedy="Name it: {'body': Text()}.")
        return self.table.column(0 if self.positions is None else self.positions[0])


def array_of(X: Any) -> Any:
    """The array or sparse matrix of selected columns; anything else as it is."""
    return X.numbers() if isinstance(X, Columns) else X


def joined_origin(tables: Sequence[Table]) -> Origin | None:
    """The origin of the rows of several tables of one input, one below the other."""
    origins = [table.origin for table in tables]
    if any(origin is None for origin in origins):
        return None
    return Origin(np.concatenate([origin.rows for origin in origins]), origins[0].source)  # type: ignore[union-attr]


def stacked(tables: Sequence[Table]) -> Table:
    """The rows of several tables with the same columns, one below the other.

    >>> stacked([Table.of([[1, 2]]), Table.of([[3, 4]])]).shape
    (2, 2)
    """
    first = tables[0]
    if len(tables) == 1:
        return first
    parts: list[Any] = [table.data for table in tables]
    if first.texts:
        data: Any = TextColumn([text for part in parts for text in part.array()[:, 0]])
    elif first.framed:
        import narwhals.stable.v1 as nw

        data = nw.concat(parts)
    else:
        data = sp.vstack(parts, format="csr") if first.sparse else np.concatenate(parts)
    return Table(data, first.columns, first.named, joined_origin(tables))


def dtype_is(series: Any, *names: str) -> bool:
    """Whether a narwhals series is of one of these types, whatever their parameters."""
    return str(series.dtype).split("(")[0] in names


def text_column(X: Any) -> TextColumn | None:
    """A column of texts, where a list, an array or a column of a frame is one."""
    if isinstance(X, TextColumn):
        return X
    if isinstance(X, list | tuple):
        first = next((item for item in X if item is not None), None)
        return TextColumn(list(X)) if isinstance(first, str | bytes) else None
    if isinstance(X, np.ndarray):
        if X.ndim != 1 or X.dtype.kind not in "OUST":
            return None
        return text_column(X.tolist())
    if getattr(X, "ndim", 1) != 1 or not hasattr(X, "__len__") or hasattr(X, "columns"):
        return None
    import narwhals.stable.v1 as nw

    if type(X).__module__.startswith("pyarrow") and not hasattr(X, "chunks"):
        X = _chunked(X)
    series = nw.from_native(X, series_only=True, allow_series=True, pass_through=True)
    if not isinstance(series, nw.Series) or not dtype_is(series, "String", "Object", "Categorical", "Enum"):
        return None
    if series.implementation.is_pandas_like():
        return text_column(series.to_list())  # Python texts, most often
    return TextColumn(X if series.implementation.is_pyarrow() else _chunked(series.to_arrow()))


def _chunked(column: Any) -> Any:
    import pyarrow as pa

    return column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])


def _frame(X: Any) -> Any:
    if isinstance(X, (np.ndarray, list, tuple)):
        return None
    import narwhals.stable.v1 as nw

    frame = nw.from_native(X, eager_only=True, pass_through=True)
    return frame if isinstance(frame, nw.DataFrame) else None


def _array(X: Any) -> Any:
    try:
        return np.asarray(X)
    except ValueError:
        raise InputError("rows have different lengths; a table needs the same columns in every row.") from None


def _checked(table: Any) -> Any:
    if len(table.shape) != 2:
        raise InputError(
            f"Expected 2D array, got an array of shape {table.shape} instead. Reshape your data: "
            "X.reshape(-1, 1) for one feature, X.reshape(1, -1) for one row."
        )
    if table.shape[1] == 0:
        raise InputError(f"Found array with 0 feature(s) (shape={table.shape}) while a minimum of 1 is required.")
    return table
