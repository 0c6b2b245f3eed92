"""Columns as Arrow arrays, whatever frame they come from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deciban.errors import InputError
from deciban.read.tables import Table

if TYPE_CHECKING:
    import pyarrow as pa

Array = NDArray[Any]


def arrow_table(table: Table) -> pa.Table:
    """A table as Arrow, without a copy where it is so already.

    >>> import polars as pl
    >>> arrow_table(Table.of(pl.DataFrame({"a": [1, None]})))["a"].null_count
    1
    """
    import pyarrow as pa

    names = [str(name) for name in table.columns]
    return pa.table({name: arrow_column(table, j) for j, name in enumerate(names)})


def arrow_column(table: Table, position: int) -> pa.ChunkedArray:
    """One column; NaN is missing."""
    import pyarrow as pa

    if not table.framed:
        given = table.column(position)
        return given if isinstance(given, pa.ChunkedArray) else pa.chunked_array([pa.array(given, from_pandas=True)])
    native = table.data[:, position].to_native()
    if isinstance(native, pa.ChunkedArray):
        return native
    try:
        if hasattr(native, "to_arrow"):
            found = native.to_arrow()
        else:
            found = pa.Array.from_pandas(native)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        return pa.chunked_array([_mixed(table, position, native)])
    return found if isinstance(found, pa.ChunkedArray) else pa.chunked_array([found])


def taken(column: Any, rows: Array) -> Any:
    """Some rows of a column; one in chunks is not put together for it, where the rows are in order.

    >>> import pyarrow as pa
    >>> taken(pa.chunked_array([["a", "b"], ["c", "d"]]), np.array([1, 2])).to_pylist()
    ['b', 'c']
    """
    import pyarrow as pa

    rows = np.asarray(rows, np.int64)
    if not isinstance(column, pa.ChunkedArray) or column.num_chunks < 2 or (rows[1:] < rows[:-1]).any():
        return column.take(_integers(rows))
    starts = np.cumsum([0, *map(len, column.chunks)])
    cuts = np.searchsorted(rows, starts)
    if cuts[0] > 0 or cuts[-1] < len(rows):
        return column.take(_integers(rows))  # which says what is wrong with them
    parts = zip(column.chunks, starts, cuts, cuts[1:])
    some = [chunk.take(_integers(rows[a:b] - start)) for chunk, start, a, b in parts if a < b]
    return pa.chunked_array(some, column.type)


def whole_numbers(column: pa.ChunkedArray) -> Array:
    """(n,) integers without gaps; from their buffers, for `to_numpy` imports pandas.

    >>> import pyarrow as pa
    >>> whole_numbers(pa.chunked_array([[1, 2], [3]]))
    array([1, 2, 3])
    """
    import pyarrow as pa

    width = f"{'u' if pa.types.is_unsigned_integer(column.type) else 'i'}{column.type.bit_width // 8}"
    parts = [np.frombuffer(part.buffers()[1], width)[part.offset :][: len(part)] for part in column.chunks if len(part)]
    return np.concatenate([np.zeros(0, width), *parts])


def _integers(values: Array) -> pa.Array:
    """As Arrow's; from a buffer, for `pa.array` imports pandas to look at them."""
    import pyarrow as pa

    return pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(np.ascontiguousarray(values))])


def _mixed(table: Table, position: int, native: Any) -> pa.Array:
    """A column of Python objects that are not all of one type: numbers as numbers, else an error."""
    import pyarrow as pa

    values = [None if value is None or value != value else value for value in native.to_list()]
    kinds = sorted({type(value).__name__ for value in values if value is not None})
    if set(kinds) <= {"int", "float", "bool", "Decimal", "int64", "float64"}:
        return pa.array([None if value is None else float(value) for value in values])
    raise InputError(
        f"column {table.columns[position]!r} mixes {' and '.join(kinds)}, which have no order. "
        "Turn all its values into strings."
    )
