"""Columns as Arrow arrays, whatever frame they come from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deciban.errors import InputError
from deciban.read.tables import Table

if TYPE_CHECKING:
    import pyarrow as pa


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
        return pa.chunked_array([pa.array(table.data[:, position], from_pandas=True)])
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
