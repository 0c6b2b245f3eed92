"""Tokens drawn from one urn per class, as rows of counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from deciban.statistics import Array

DENSE = 1000  # words up to which sampled rows are dense


def draw(p: Array, codes: Array, rng: np.random.Generator) -> Array:
    """(n,) a cell from p[codes[i]] for each i; p is (K, M) and need not sum to one."""
    drawn = np.zeros(len(codes), dtype=np.intp)
    uniform = rng.random(len(codes))
    for k in np.unique(codes):
        heap, here = np.cumsum(p[k]), codes == k
        drawn[here] = np.searchsorted(heap, uniform[here] * heap[-1], side="right")  # never a cell of probability 0
    return drawn


def draw_tokens(p: Array, lengths: Array, codes: Array, rng: np.random.Generator, total: Array | None = None) -> Any:
    """(n, V) counts of lengths[i] tokens from p[codes[i]]; CSR where V is large.

    With `total` it is a Pólya urn that holds so much at first: token t is a copy of an earlier one with probability
    t/(total + t).
    """
    n, V = len(codes), p.shape[1]
    row = np.repeat(np.arange(n), lengths)
    token = draw(p, codes[row], rng)
    if total is not None:
        start = np.cumsum(lengths) - lengths
        for t in range(1, int(lengths.max(initial=0))):
            at = (start + t)[lengths > t]  # the t-th token of every row that is long enough
            copies = at[rng.random(len(at)) < t / (total[codes[row[at]]] + t)]
            token[copies] = token[copies - 1 - rng.integers(0, t, len(copies))]
    counts = sp.coo_array((np.ones(len(row)), (row, token)), (n, V)).tocsr()
    return counts.toarray() if V <= DENSE else counts
