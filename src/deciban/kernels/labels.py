"""Integer labels to class numbers through a table of all possible values."""

from __future__ import annotations

from .choice import Array
from .jit import kernel


@kernel
def mark_offsets(y: Array, low: int, seen: Array) -> None:
    """Set seen[v] to 1 for each label low + v that occurs."""
    for i in range(y.size):
        seen[y[i] - low] = 1


@kernel
def place_offsets(y: Array, low: int, rank: Array, codes: Array) -> None:
    """Write rank[v] of each label low + v to codes."""
    for i in range(y.size):
        codes[i] = rank[y[i] - low]
