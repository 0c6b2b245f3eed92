"""Words of one list found in another where both are in order: one walk along the two."""

from __future__ import annotations

import numpy as np

from ..choice import Array
from ..jit import kernel, part


@part
def _order(a: Array, begin_a: int, end_a: int, b: Array, begin_b: int, end_b: int) -> int:
    """Below 0, 0 or above, as a word comes before another, is the same, or comes after it."""
    both = min(end_a - begin_a, end_b - begin_b)
    for at in range(both):
        x, y = np.int64(a[np.uint64(begin_a + at)]), np.int64(b[np.uint64(begin_b + at)])
        if x != y:
            return 1 if x > y else -1
    return (end_a - begin_a) - (end_b - begin_b)


@kernel
def find_in_order(words: Array, starts: Array, wanted: Array, wanted_starts: Array, places: Array) -> None:
    """Write where each of the wanted words stands among the words, or −1. Word i is words[starts[i] : starts[i + 1]].

    In lists that are not in order some are missed, but none is found in a wrong place.
    """
    n, i = starts.size - 1, 0
    for j in range(wanted_starts.size - 1):
        order = -1
        while i < n:
            order = _order(words, starts[i], starts[i + 1], wanted, wanted_starts[j], wanted_starts[j + 1])
            if order >= 0:
                break
            i += 1
        places[j] = i if i < n and order == 0 else -1
