"""Rows asked for before they are used: words lie all over a table, so no processor could guess which comes next."""

from __future__ import annotations

from ..choice import Array
from ..intrinsics import prefetch
from ..jit import part

AHEAD = 4  # entries between asking for a row and using it
LINE = 64  # bytes that come together


@part
def ask_row(table: Array, indices: Array, entry: int, end: int) -> None:
    """Have the row of a later entry, before `end`, brought into the cache."""
    K = table.shape[1]
    later = indices[min(entry + AHEAD, end - 1)] * K
    for k in range(0, K, LINE // table.itemsize):
        prefetch(table, later + k)
