"""Scatter matrices per class: rows gathered by class, a block at a time, each group one BLAS call."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from .blas import one_thread
from .choice import Array, or_unweighted
from .jit import kernel

BLOCK_ROWS = 2048  # of 50 columns they fit in the second-level cache, twice
GROUP_ROWS = 64  # what a class should find in a block on average, to be worth a call
BLOCK_BYTES = 2**26


@kernel
def gather(X: Array, codes: Array, weight: Array, origin: Array, ends: Array, Z: Array, first: Array) -> None:
    """Write √w (x−o) to Z, class after class; ends[k] is where class k stops. Add Σ w (x−o) to first."""
    n, D = X.shape
    ends[:] = 0
    for i in range(n):
        if weight.size == 0 or weight[i] != 0:
            ends[codes[i]] += 1
    place = 0
    for k in range(ends.size):
        place += ends[k]
        ends[k] = place - ends[k]
    for i in range(n):
        w = weight[i] if weight.size else 1.0
        if w == 0:
            continue
        k = codes[i]
        x, z, s = X[i], Z[ends[k]], first[k]
        ends[k] += 1
        root = np.sqrt(w)
        for d in range(D):
            c = x[d] - origin[d]
            s[d] += w * c
            z[d] = root * c


def class_scatter(
    pieces: Iterable[tuple[slice, Array]], codes: Array, weight: Array | None, origin: Array, K: int
) -> tuple[Array, Array]:
    """Σ w (x−o) and Σ w (x−o)(x−o)ᵀ per class, from pieces of the table."""
    from scipy.linalg.blas import dsyrk

    D = len(origin)
    block = min(max(BLOCK_ROWS, GROUP_ROWS * K), max(1, BLOCK_BYTES // (8 * max(1, D))))
    first, second = np.zeros((K, D)), np.zeros((K, D, D))
    ends, Z = np.empty(K, np.intp), np.empty((block, D))
    with one_thread(D):
        for rows, X in pieces:
            for start in range(0, len(X) if D else 0, block):
                here = slice(rows.start + start, min(rows.start + start + block, rows.stop))
                part = X[start : start + block]
                gather(part, codes[here], or_unweighted(weight, here), origin, ends, Z, first)
                begin = 0
                for k, end in enumerate(ends.tolist()):
                    if end > begin:
                        # Half the products of Zᵀ Z, added in place: transposed views are in the order BLAS expects.
                        dsyrk(1.0, Z[begin:end].T, 1.0, second[k].T, lower=1, overwrite_c=1)
                    begin = end
    return first, _mirrored(second)


def _mirrored(second: Array) -> Array:
    """The upper triangles, copied to the lower ones."""
    for S in second:
        below = np.tril_indices(len(S), -1)
        S[below] = S.T[below]
    return second
