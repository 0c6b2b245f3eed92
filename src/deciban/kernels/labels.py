"""Integer labels to class numbers through a table of all possible values."""

from __future__ import annotations

from .choice import Array
from .jit import kernel


@kernel
def encode_offsets(y: Array, low: int, rank: Array, codes: Array) -> None:
    """Write each label's rank among those that occur to codes, and the rank of label low + v to rank[v].

    `rank` comes as −1 throughout and stays so where a label does not occur.
    """
    for i in range(y.size):
        rank[y[i] - low] = 0
    classes = 0
    for v in range(rank.size):
        if rank[v] == 0:
            rank[v] = classes
            classes += 1
    for i in range(y.size):
        codes[i] = rank[y[i] - low]
