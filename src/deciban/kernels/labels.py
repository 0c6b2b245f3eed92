"""Integer labels to class numbers through a table of all possible values, and how much each class weighs."""

from __future__ import annotations

import numpy as np

from .choice import Array
from .jit import kernel


@kernel
def mark_offsets(y: Array, low: int, seen: Array) -> bool:
    """Set seen[v] to 1 for each label low + v that occurs; False where one lies outside the table."""
    for i in range(y.size):
        offset = np.uint64(y[i] - low)
        if offset >= np.uint64(seen.size):
            return False
        seen[offset] = 1
    return True


@kernel
def place_offsets(y: Array, low: int, rank: Array, codes: Array) -> None:
    """Write rank[v] of each label low + v to codes."""
    for i in range(y.size):
        codes[i] = rank[y[i] - low]


@kernel
def add_class_weights(codes: Array, weight: Array, sums: Array) -> None:
    """Add Σ w per class to (K, 8): eight sums in turn, for an addition waits for the one before in the same place."""
    for i in range(codes.size):
        sums[np.uint64(codes[i]), np.uint64(i & 7)] += weight[i] if weight.size else 1.0
