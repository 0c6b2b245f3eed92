"""The column of labels: names in order, and the place of each row's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deciban.errors import DomainError, InputError
from deciban.read import values
from deciban.read.arrow import arrow_column
from deciban.read.column import Column
from deciban.read.tables import Table

if TYPE_CHECKING:
    import pyarrow as pa

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Labels:
    """One label a row, held as codes; NumPy sees the labels themselves.

    >>> np.asarray(Labels(("ham", "spam"), np.array([1, 0])))
    array(['spam', 'ham'], dtype=object)
    """

    names: tuple[Any, ...]  # sorted, each of some row
    codes: Array  # (n,)

    def __len__(self) -> int:
        return len(self.codes)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        kind = dtype or (np.int64 if self.names and isinstance(self.names[0], int) else object)
        return np.array(self.names, dtype=kind)[self.codes]

    def __getitem__(self, rows: Any) -> Labels:
        used, codes = np.unique(self.codes[rows], return_inverse=True)
        return Labels(tuple(self.names[i] for i in used), codes.reshape(-1))


def whole_labels(column: pa.ChunkedArray) -> bool:
    """Whether all labels are whole numbers, written as such."""
    import pyarrow as pa
    import pyarrow.compute as pc

    array = values.whole(column)
    if pa.types.is_integer(array.type):
        return True
    if not values.is_text(array.type):
        return False
    seen = pc.unique(array.drop_null())
    return len(seen) > 0 and bool(pc.all(pc.match_substring_regex(seen, r"^(0|-?[1-9]\d{0,17})$")).as_py())


def label_values(column: pa.ChunkedArray, name: str, whole: bool) -> Labels:
    """Labels of a column; a missing one is an error that names its row."""
    codes, called = values.names(column, Column(name, "category", "labels", trim=True))
    if (codes < 0).any():
        row = int(np.flatnonzero(codes < 0)[0])
        raise InputError(
            f"column {name!r} of labels is missing (row {row}), and in {int((codes < 0).sum()) - 1:,} rows more. "
            "Drop these rows, or skip them (skip_bad=True)."
        )
    if not whole:
        return Labels(called, codes)
    try:
        numbers = [int(label) for label in called]
    except ValueError:
        wrong = next(label for label in called if not label.lstrip("-").isdigit())
        row = int(np.flatnonzero(codes == called.index(wrong))[0])
        raise DomainError(
            f"column {name!r} holds the label {wrong[:60]!r} (row {row}), but all labels so far are whole numbers. "
            "Mend it, or write all labels as text."
        ) from None
    order = np.argsort(numbers)
    place = np.empty(len(order), dtype=np.intp)
    place[order] = np.arange(len(order))
    return Labels(tuple(numbers[i] for i in order), place[codes])


def labelled_rows(table: Table, name: str) -> Array:
    """Which rows of a table have a label."""
    at = [str(column) for column in table.columns].index(name)
    codes, _ = values.names(arrow_column(table, at), Column(name, "category", "labels", trim=True))
    return np.flatnonzero(codes >= 0)
