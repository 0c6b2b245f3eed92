"""One pass of a mixture over sparse rows: a row's scores, its shares, and its words' sums, while they are in the cache.

Rows of both tables are asked for a few entries in advance; asking for a whole row's at once was slower.
"""

from __future__ import annotations

import math

import numpy as np

from .choice import Array
from .jit import kernel
from .mixture_scatter import add_scaled_row_to
from .probabilities import exp
from .register_sums import sum_scaled_rows_of
from .sparse import _fetch_entries


@kernel
def sparse_pass(
    data: Array,
    indices: Array,
    indptr: Array,
    weight: Array,
    table: Array,
    bias: Array,
    extra: Array,
    shares: Array,
    counts: Array,
    sums: Array,
    more: Array,
) -> float:
    """Add Σ w r, Σ w r x and Σ w r extra to counts, sums and more; return Σ w log Σ exp(s). `shares` is a buffer."""
    n, K = indptr.size - 1, bias.size
    last = indptr[n] - 1
    total = 0.0
    r = shares[0]
    for i in range(n):
        begin, end = indptr[i], indptr[i + 1]
        w = weight[i] if weight.size else 1.0
        if w == 0:
            continue
        _fetch_entries(data, indices, begin, end)
        sum_scaled_rows_of(table, indices, data, bias, shares, begin, end, last, 0)
        top = -np.inf
        for k in range(K):
            top = r[k] if r[k] > top else top
        whole = 0.0
        for k in range(K):
            r[k] = exp(r[k] - top)
        for k in range(K):
            whole += r[k]
        total += w * (top + math.log(whole))
        scale = w / whole
        for k in range(K):
            r[k] *= scale
            counts[k] += r[k]
            for e in range(more.shape[1]):
                more[k, e] += r[k] * extra[i, e]
        add_scaled_row_to(sums, indices, data, r, begin, end, last)
    return total
