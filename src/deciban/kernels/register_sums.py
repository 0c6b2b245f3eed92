"""Sums of table rows that stay in registers, for any number of columns.

Columns are taken in strips of 16, 8, 4, 3, 2 or 1. The last strip may overlap the one before: it then computes a few
sums a second time, to the same bits, instead of taking several narrow strips.
"""

from __future__ import annotations

from .choice import Array
from .intrinsics import sum_rows, sum_scaled_rows
from .jit import part


@part
def sum_rows_of(table: Array, indices: Array, bias: Array, out: Array, row: int) -> None:
    """Set out[row] to bias + Σ table[indices]."""
    K = out.shape[1]
    c = 0
    while c < K:
        left = K - c
        if K >= 16 and left > 8:
            c = min(c, K - 16)
            sum_rows(16, table, indices, bias, out, 0, indices.size, row, c)
            c += 16
        elif K >= 8 and left > 4:
            c = min(c, K - 8)
            sum_rows(8, table, indices, bias, out, 0, indices.size, row, c)
            c += 8
        elif K >= 4 and left > 2:
            c = min(c, K - 4)
            sum_rows(4, table, indices, bias, out, 0, indices.size, row, c)
            c += 4
        elif left == 3:
            sum_rows(3, table, indices, bias, out, 0, indices.size, row, c)
            c += 3
        elif left == 2:
            sum_rows(2, table, indices, bias, out, 0, indices.size, row, c)
            c += 2
        else:
            sum_rows(1, table, indices, bias, out, 0, indices.size, row, c)
            c += 1


@part
def sum_scaled_rows_of(
    table: Array, indices: Array, data: Array, bias: Array, out: Array, begin: int, end: int, last: int, row: int
) -> None:
    """Set out[row] to bias + Σ data[p] table[indices[p]], p from begin to end; `last` is the last entry of all rows."""
    K = out.shape[1]
    c = 0
    while c < K:
        left = K - c
        if K >= 16 and left > 8:
            c = min(c, K - 16)
            sum_scaled_rows(16, table, indices, bias, out, data, begin, end, last, row, c)
            c += 16
        elif K >= 8 and left > 4:
            c = min(c, K - 8)
            sum_scaled_rows(8, table, indices, bias, out, data, begin, end, last, row, c)
            c += 8
        elif K >= 4 and left > 2:
            c = min(c, K - 4)
            sum_scaled_rows(4, table, indices, bias, out, data, begin, end, last, row, c)
            c += 4
        elif left == 3:
            sum_scaled_rows(3, table, indices, bias, out, data, begin, end, last, row, c)
            c += 3
        elif left == 2:
            sum_scaled_rows(2, table, indices, bias, out, data, begin, end, last, row, c)
            c += 2
        else:
            sum_scaled_rows(1, table, indices, bias, out, data, begin, end, last, row, c)
            c += 1
