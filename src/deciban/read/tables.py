"""Tables: rows as given (arrays, sparse matrices, lists of texts, frames of pandas, polars and pyarrow), and typed.

A `Table` returns its columns as plain arrays, so that the rest of the package is independent of the input's type; and
it keeps the origin of its rows, so that errors name the place of a row in the input. A `TypedTable` is a table that was
read by a schema.
"""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Iterator, Mapping, MappingView, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from deciban.errors import HERE, Argument, DecibanError, InputError, NotANumberError, Remedy, column_error
from deciban.read.codes import Named, spelt

if TYPE_CHECKING:
    import narwhals.stable.v1 as nw
    import pyarrow as pa

    from deciban.read.source import Source

    # (n,) floats, codes and names, or texts
    Values: TypeAlias = NDArray[Any] | tuple[NDArray[Any], tuple[str, ...]] | pa.ChunkedArray

Array = NDArray[Any]
T = TypeVar("T", bound="Table")
RowIndex = slice | Sequence[int] | Array  # some rows: a slice, positions, or a mask
ValueType = Literal["number", "yes/no", "category", "text"]
HEAD = 65_536  # first rows of positive weight, from which choices are made
MARKERS = (
    "", "?", "NA", "N/A", "n/a", "#N/A", "#N/A N/A", "#NA", "<NA>", "NaN", "nan", "-NaN", "-nan", "NaT", "NULL", "null",
    "None", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN",
)  # texts that mean a missing value: those of pandas, and the question mark  # fmt: skip


@dataclass(frozen=True, eq=False)
class Origin:
    """Positions of a table's rows in the input that they were read from.

    >>> whole = Origin(range(100))
    >>> whole.take(slice(60, 100)).take([0, 7]).rows
    array([60, 67])
    """

    rows: range | Array  # (n,) of int: position of each row in the input, from 0
    source: Source | None = None  # the file, folder or frame; None for a table that was given as it is

    def take(self, rows: RowIndex) -> Origin:
        """The origin of some of the rows."""
        if not isinstance(self.rows, range):
            return Origin(self.rows[rows], self.source)
        if isinstance(rows, slice):
            return Origin(self.rows[rows], self.source)
        at = np.asarray(rows) if len(rows) else np.empty(0, np.intp)
        if at.dtype == bool:
            at = np.flatnonzero(at)
        # computed, because NumPy would convert the range number by number
        at = np.where(at < 0, at + len(self.rows), at)
        return Origin(self.rows.start + self.rows.step * at, self.source)

    @contextmanager
    def locating(self) -> Iterator[None]:
        """Context in which errors about rows of the table name the place of the row in the input."""
        try:
            yield
        except DecibanError as error:
            if error.place is not None:
                raise
            raise self.located(error).with_traceback(error.__traceback__) from error.__cause__

    def located(self, error: DecibanError) -> DecibanError:
        """An error about a row of the table, with the place of the row in the input."""
        row = None if error.row is None else int(self.rows[error.row])
        if self.source is not None:
            return self.source.located(error, row)
        return error if row is None else error.at(f"row {row}", row)


@dataclass(frozen=True, eq=False)
class TextColumn:
    """A table that is one column of n texts.

    >>> TextColumn(["to be", "or not"])[1:].texts
    ['or not']
    """

    texts: list[str] | pa.ChunkedArray  # (n,), None or null where missing

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.texts), 1

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(object)

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, rows: RowIndex) -> TextColumn:
        if isinstance(rows, slice) and isinstance(self.texts, list):
            return TextColumn(self.texts[rows])
        at = np.arange(len(self))[rows]
        if isinstance(self.texts, list):
            return TextColumn([self.texts[row] for row in at.tolist()])
        return TextColumn(self.texts.take(at))

    def array(self) -> Array:
        """(n, 1) of objects, None where missing."""
        column = np.empty((len(self), 1), dtype=object)
        column[:, 0] = self.texts if isinstance(self.texts, list) else self.texts.to_pylist()
        return column


@dataclass(frozen=True, eq=False)
class Table:
    """A table of n rows and D columns; n and D are at least 1 in what users give. Nothing is copied.

    >>> table = Table.of([[1, 2], [3, 4], [5, 6]])
    >>> table.pick([1]).ravel()
    array([2, 4, 6])
    """

    data: Any  # (n, D): array, CSR matrix, narwhals frame, or TextColumn; TypedColumns in a TypedTable
    columns: Sequence[Any]  # (D,) names, or range(D) where there are none
    named: bool  # whether all names are strings
    origin: Origin | None = None  # None: the rows are those of the input, in order

    @classmethod
    def of(cls, X: Any) -> Table:
        """The table of an array, a sparse matrix, a list of texts or a frame; a table is returned as it is."""
        if isinstance(X, Table):
            return X
        if type(X) is np.ndarray and X.dtype.kind in "fiub":  # the usual case, decided first
            return cls(_checked(X), range(X.shape[1]), False)
        if _is_iterator(X) or _is_lazy(X):
            raise InputError(
                f"{type(X).__name__} is read once, and its rows are needed several times.",
                remedy="Give X.collect()." if _is_lazy(X) else "Give list(X).",
            )
        if sp.issparse(X):
            return cls(_checked(X.tocsr()), range(X.shape[1]), False)
        texts = text_column(X)
        if texts is not None:
            return cls(texts, ("text",), False)
        frame = _frame(_columns_of(X) if isinstance(X, Mapping) else X)
        if frame is not None:
            _checked(frame)
            return cls(frame, tuple(frame.columns), _are_strings(frame.columns))
        array = _checked(_array(X))
        return cls(array, range(array.shape[1]), False)

    @property
    def sparse(self) -> bool:
        """Whether it is a sparse matrix."""
        return sp.issparse(self.data)

    @property
    def texts(self) -> bool:
        """Whether it is one column of texts."""
        return isinstance(self.data, TextColumn)

    @property
    def framed(self) -> bool:
        """Whether it is a frame, or typed."""
        return not isinstance(self.data, (np.ndarray, TextColumn)) and not self.sparse

    @property
    def shape(self) -> tuple[int, int]:
        return self.data.shape

    def __len__(self) -> int:
        return self.data.shape[0]

    def located(self) -> AbstractContextManager[None]:
        """Context in which errors about rows of this table name the place of the row in the input."""
        return nullcontext() if self.origin is None else self.origin.locating()

    def origin_of(self, rows: RowIndex) -> Origin:
        """The origin of some of the rows."""
        return (self.origin or Origin(range(len(self)))).take(rows)

    def take(self, rows: RowIndex) -> Table:
        """Some of the rows: a slice, a mask or positions."""
        origin = self.origin_of(rows)
        if self.framed:
            at = np.arange(len(self))[rows]
            return Table(self.data[at.tolist(), :], self.columns, self.named, origin)
        return Table(self.data[rows], self.columns, self.named, origin)

    def arranged(self, names: Sequence[str], absent: Sequence[str] = ()) -> Table:
        """A frame with these columns, in this order, and columns that it lacks as missing values after them."""
        import narwhals.stable.v1 as nw

        data = self.data.select(names).with_columns(nw.lit(None).alias(name) for name in absent)
        return replace(self, data=data, columns=(*names, *absent))

    def select(self, positions: Sequence[int] | None = None) -> Columns:
        """Some of the columns, or all, to be read when a family encodes them."""
        return Columns(self, positions)

    def pick(self, positions: Sequence[int] | None = None) -> Any:
        """(n, d) array or CSR of some columns: numbers where all are numbers, else objects with None for missing."""
        if self.texts:
            return self.data.array()
        every = positions is None or [*positions] == [*range(self.shape[1])]
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
        """(n,) values of one column: a list, an array, or an Arrow array of texts."""
        if self.texts:
            return self.data.texts
        if not self.framed:
            return self.data[:, position]
        texts = text_column(self.data[:, position].to_native())
        return self.data[:, position].to_list() if texts is None else texts.texts

    def kind(self, position: int) -> ValueType:
        """What a column holds, by its type; an array holds numbers."""
        if self.texts:
            return "text"
        if not self.framed:
            return "number"
        dtype = self.data[:, position].dtype
        if dtype.is_numeric():
            return "number"
        return "yes/no" if str(dtype) == "Boolean" else "category"

    @staticmethod
    def _stacked(parts: Sequence[Any]) -> Any:
        if isinstance(parts[0], TextColumn):
            return TextColumn([text for part in parts for text in part.array()[:, 0]])
        if sp.issparse(parts[0]):
            return sp.vstack(parts, format="csr")
        if isinstance(parts[0], np.ndarray):
            return np.concatenate(parts)
        import narwhals.stable.v1 as nw

        return nw.concat(parts)

    def _column(self, position: int) -> Array:
        series = self.data[:, position]
        if series.dtype.is_numeric():
            return series.to_numpy()
        if _dtype_is(series, "Datetime", "Date", "Duration", "Time"):
            remedy = "Take the parts that matter (hour, weekday, …) as columns of their own."
            what = f"holds dates or times ({series.dtype})"
            raise column_error(InputError, self.columns[position], what, remedy)
        column = np.empty(len(series), dtype=object)
        column[:] = series.to_list()
        if _dtype_is(series, "Boolean") and not any(value is None for value in column):
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
        """(n, d) array or CSR: numbers where all columns are numbers, else objects with None for missing."""
        return self.table.pick(self.positions)

    def texts(self) -> Any:
        """(n,) texts of the only column: a list, an array, or an Arrow array."""
        if self.shape[1] != 1:
            raise InputError(f"Text takes one column, not {self.shape[1]}.", remedy="Name it: {'body': Text()}.")
        return self.table.column(0 if self.positions is None else self.positions[0])


def array_of(X: Any) -> Any:
    """The array or sparse matrix of selected columns; anything else as it is."""
    return X.numbers() if isinstance(X, Columns) else X


def dense_numbers(X: ArrayLike | Columns, columns: Sequence[str]) -> Array:
    """X as an (n, D) array of float64 or float32; anything that is not a number is an error.

    >>> dense_numbers([[1, None], [2, 3]], ["a", "b"])
    array([[ 1., nan],
           [ 2.,  3.]])
    """
    if isinstance(X, Columns):
        X = X.numbers()
    if type(X) is not np.ndarray and sp.issparse(X):
        raise InputError(
            "sparse input is taken by Multinomial, Bernoulli and the diagonal Gaussian only.",
            remedy="Use one of them, or X.toarray().",
        )
    X = np.asarray(X)
    if X.ndim == 1:
        X = X[:, None]
    if X.ndim != 2:
        raise InputError(
            f"expected a table of rows and columns, got an array of shape {X.shape}.", remedy="Reshape it."
        )
    if X.dtype in (np.float64, np.float32):
        return X
    refuse_complex(X)
    try:
        return X.astype(np.float64)
    except (TypeError, ValueError):
        raise _not_a_number(X, columns) from None


def column_name(columns: Sequence[Any], column: int) -> Any:
    """A column's name; its position where it has no name."""
    return columns[column] if column < len(columns) else column


def refuse_complex(X: Any) -> None:
    """Raise an InputError if an array or matrix holds complex numbers."""
    if X.dtype.kind == "c":
        raise InputError(
            "Complex data not supported: features must be real numbers.", remedy="Take real and imaginary parts."
        )


def _not_a_number(X: Array, columns: Sequence[str]) -> NotANumberError:
    """The error for the first value that float() does not take."""
    for row, column in np.ndindex(X.shape):
        value = X[row, column].item() if isinstance(X[row, column], np.generic) else X[row, column]
        try:
            float(value)
        except (TypeError, ValueError) as error:
            name, why = column_name(columns, column), f", which is not a number ({error})."
            remedy = Remedy(
                "Declare the column ", Argument("family", "categorical", "Categorical()"), ", or convert it."
            )
            return column_error(NotANumberError, name, f"holds {value!r}", remedy, row, why)
    return NotANumberError("the table holds something that is not a number.", remedy="Convert it to floats.")


def stacked(tables: Sequence[T]) -> T:
    """The rows of several tables with the same columns, one below the other.

    >>> stacked([Table.of([[1, 2]]), Table.of([[3, 4]])]).shape
    (2, 2)
    """
    if len(tables) == 1:
        return tables[0]
    origins = [table.origin for table in tables if table.origin is not None]
    known = len(origins) == len(tables)
    origin = Origin(np.concatenate([origin.rows for origin in origins]), origins[0].source) if known else None
    return replace(tables[0], data=tables[0]._stacked([table.data for table in tables]), origin=origin)


def in_memory(X: Any) -> Any:
    """The rows of an iterator, such as a generator of texts, as a list; a polars LazyFrame as a frame; others as given.

    >>> in_memory(word.upper() for word in ["a", "b"])
    ['A', 'B']
    """
    if _is_iterator(X) or isinstance(X, MappingView | deque):
        return list(X)
    return X.collect() if _is_lazy(X) else X


def _is_iterator(X: Any) -> bool:
    return isinstance(X, Iterator) and not isinstance(X, io.IOBase) and not hasattr(X, "__arrow_c_stream__")


def _is_lazy(X: Any) -> bool:
    return type(X).__name__ == "LazyFrame" and hasattr(X, "collect")


def text_column(X: Any) -> TextColumn | None:
    """A list, an array or a column of a frame as a column of texts; None if it holds no texts."""
    if isinstance(X, TextColumn):
        return X
    if isinstance(X, list | tuple):
        first = next((item for item in X if item is not None), None)
        return TextColumn(list(X)) if isinstance(first, str | bytes) else None
    if isinstance(X, np.ndarray):
        return text_column(X.tolist()) if X.ndim == 1 and X.dtype.kind in "OUST" else None
    if getattr(X, "ndim", 1) != 1 or not hasattr(X, "__len__") or hasattr(X, "columns"):
        return None
    import narwhals.stable.v1 as nw

    if type(X).__module__.startswith("pyarrow") and not hasattr(X, "chunks"):
        X = _chunked(X)
    series = nw.from_native(X, series_only=True, allow_series=True, pass_through=True)
    if not isinstance(series, nw.Series) or not _dtype_is(series, "String", "Object", "Categorical", "Enum"):
        return None
    if series.implementation.is_pandas_like():
        return text_column(series.to_list())  # mostly Python strings
    return TextColumn(X if series.implementation.is_pyarrow() else _chunked(series.to_arrow()))


def _dtype_is(series: nw.Series[Any], *names: str) -> bool:
    """Whether the type of a series has one of these names; parameters of the type are ignored."""
    return str(series.dtype).split("(")[0] in names


def _chunked(column: pa.Array | pa.ChunkedArray) -> pa.ChunkedArray:
    import pyarrow as pa

    return column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])


def _frame(X: Any) -> nw.DataFrame[Any] | None:
    if isinstance(X, (np.ndarray, list, tuple)):
        if not isinstance(X, list) or not X or not isinstance(X[0], Mapping):
            return None
        X = _table_of_mappings(X)
    import narwhals.stable.v1 as nw

    try:
        frame = nw.from_native(X, eager_only=True, pass_through=True)
    except nw.exceptions.DuplicateError:
        names = list(X.columns)
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(
            f"{names.count(twice)} columns of the frame are named {twice!r}.", remedy="Give each its own name."
        ) from None
    return frame if isinstance(frame, nw.DataFrame) else None


def _are_strings(names: Sequence[Any]) -> bool:
    """Whether the names of columns are strings; some strings among other names are an error."""
    strings = [name for name in names if isinstance(name, str)]
    if 0 < len(strings) < len(names):
        other = next(name for name in names if not isinstance(name, str))
        raise InputError(
            f"the names of columns mix strings and others: {strings[0]!r} and {other!r}.",
            remedy="Make all of them strings: X.columns = X.columns.astype(str).",
        )
    return bool(strings)


def _table_of_mappings(rows: list[Any]) -> pa.Table:
    """A list of dicts as an Arrow table; a value that a row does not have is missing."""
    import pyarrow as pa

    names: dict[str, None] = {}
    for at, row in enumerate(rows):
        if not isinstance(row, Mapping) or not all(isinstance(name, str) for name in row):
            raise InputError(HERE, " is not a dict of {column name: value}, as rows before it are.", row=at)
        names.update(dict.fromkeys(row))
    columns = {}
    for name in names:
        try:
            columns[name] = pa.array([row.get(name) for row in rows], from_pandas=True)
        except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeEncodeError):
            what = "mixes values of several types, or holds something that is no value of a column"
            raise column_error(InputError, name, what, "Turn all its values into numbers, or all into texts.") from None
    return pa.table(columns)


def _columns_of(X: Mapping[Any, Any]) -> pa.Table:
    """Return a dict of columns as a table of Arrow."""
    import pyarrow as pa

    try:
        return pa.table({str(name): pa.array(values, from_pandas=True) for name, values in X.items()})
    except (TypeError, ValueError) as error:  # Arrow's errors are both
        raise InputError(
            f"a dict is read as columns, and these are none: {error}.",
            remedy="Give lists of one length, such as {'age': [31, 40], 'colour': ['red', 'blue']}.",
        ) from error


def _array(X: Any) -> Array:
    try:
        return np.asarray(X)
    except ValueError:
        raise InputError("rows have different lengths; a table needs the same columns in every row.") from None


def _checked(table: Any) -> Any:
    """The same array, matrix or frame; an error if it does not have rows and columns."""
    if len(table.shape) != 2:
        raise InputError(
            f"Expected 2D array, got an array of shape {table.shape} instead. Reshape your data:",
            remedy="X.reshape(-1, 1) for one feature, X.reshape(1, -1) for one row.",
        )
    if table.shape[1] == 0:
        raise InputError(f"Found array with 0 feature(s) (shape={table.shape}) while a minimum of 1 is required.")
    return table


# -- typed tables ------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class TypedColumns:
    """The values of d columns with n rows each."""

    rows: int
    values: tuple[Values, ...]  # (d,)
    shape: tuple[int, int] = field(init=False)  # n, d

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", (self.rows, len(self.values)))


@dataclass(frozen=True, eq=False)
class TypedTable(Table):
    """A table whose columns have been read by a schema: floats, category codes with their names, or texts.

    Its columns are the features of the model. Families encode it without examining the values again.
    """

    data: TypedColumns

    def take(self, rows: RowIndex) -> TypedTable:
        """Some of the rows: a slice, a mask or positions."""
        at = np.arange(len(self))[rows]
        held = TypedColumns(len(at), tuple(_taken(column, at) for column in self.data.values))
        return TypedTable(held, self.columns, self.named, self.origin_of(rows))

    def kind(self, position: int) -> ValueType:
        """Numbers, names or texts."""
        column = self.data.values[position]
        return "number" if isinstance(column, np.ndarray) else "category" if isinstance(column, tuple) else "text"

    def pick(self, positions: Sequence[int] | None = None) -> Any:
        """(n, d) floats where all columns are numbers, `Named` where all are categories, else objects."""
        if positions is not None and len(positions) == 1:  # the usual case of a column with a family of its own
            column = self.data.values[positions[0]]
            if isinstance(column, np.ndarray):
                return column[:, None]
            if isinstance(column, tuple):
                return Named(column[0][:, None], (column[1],))
        columns: list[Any] = [self.data.values[j] for j in (range(self.shape[1]) if positions is None else positions)]
        if columns and all(isinstance(column, np.ndarray) for column in columns):
            return np.column_stack(columns)
        if columns and all(isinstance(column, tuple) for column in columns):
            return Named(np.stack([codes for codes, _ in columns], axis=1), tuple(names for _, names in columns))
        return np.column_stack([_objects(column) for column in columns])

    def column(self, position: int) -> Any:
        """One column: (n,) floats, (n,) names as objects, or texts as an Arrow array."""
        column = self.data.values[position]
        return _objects(column) if isinstance(column, tuple) else column

    @staticmethod
    def _stacked(parts: Sequence[TypedColumns]) -> TypedColumns:
        columns = tuple(map(_joined, zip(*(part.values for part in parts))))
        return TypedColumns(sum(part.rows for part in parts), columns)


def _joined(parts: Sequence[Any]) -> Values:
    import pyarrow as pa

    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    if not isinstance(parts[0], tuple):
        return pa.chunked_array([chunk for part in parts for chunk in getattr(part, "chunks", [part])])
    names = tuple(sorted({name for _, known in parts for name in known}))
    place = {name: at for at, name in enumerate(names)}
    moved = [np.array([*(place[name] for name in known), -1], dtype=np.intp)[codes] for codes, known in parts]
    return np.concatenate(moved), names


def _objects(column: Values) -> Array:
    if isinstance(column, tuple):
        return spelt(*column)
    found = np.empty(len(column), dtype=object)
    found[:] = column.tolist() if isinstance(column, np.ndarray) else column.to_pylist()
    return found


def _taken(column: Values, rows: Array) -> Values:
    from deciban.read.arrow import taken

    if isinstance(column, np.ndarray):
        return column[rows]
    return (column[0][rows], column[1]) if isinstance(column, tuple) else taken(column, rows)
