"""Row by row: labels to class numbers, scores to probabilities."""

from __future__ import annotations

import numpy as np

from . import reference
from .choice import Array, compiled, readable

# Labels spread wider than this are left to sorting: a table of every possible value would not stay in cache.
WIDEST_SPAN = 65_536

# Elementary operations that encoding a label takes, and that exp takes: what the choice of body reckons with.
PASSES = 5


def encode_integers(y: Array) -> tuple[Array, Array] | None:
    """Sorted unique values of integer (or bool) labels, and each label's position among them (intp).

    None if max − min ≥ 65,536: `np.unique` is the way then.

    >>> encode_integers(np.array([7, 3, 7]))
    (array([3, 7]), array([1, 0, 1]))
    """
    y = np.asarray(y)
    if not y.size:
        return y[:0], np.empty(0, np.intp)
    low = y.min()
    span = int(y.max()) - int(low) + 1
    if span > WIDEST_SPAN:
        return None
    # In 64 bits differences are right even where the labels' own type, or its sign, would overflow.
    numbers, base = readable(y, np.int64), int(low.astype(np.int64))
    if compiled(PASSES * y.size):
        from .labels import encode_offsets

        rank, codes = np.full(span, -1, np.intp), np.empty(y.size, np.intp)
        encode_offsets(numbers, base, rank, codes)
        found = np.flatnonzero(rank >= 0)
    else:
        found, codes = reference.encode_offsets(numbers - base, span)
    return (found + base).astype(y.dtype), codes


def log_softmax(scores: Array, out: Array | None = None) -> Array:
    """Scores less their log Σ exp along each row. Rows that are −inf throughout stay so. `out` may be `scores`."""
    result = reference.log_softmax(np.asarray(scores, np.float64))
    return _into(out, result)


def softmax(scores: Array, out: Array | None = None) -> Array:
    """exp(score) / Σ exp(scores) along each row. Rows that are −inf throughout become 0. `out` may be `scores`."""
    result = reference.softmax(np.asarray(scores, np.float64))
    return _into(out, result)


def log_sum_exp(scores: Array) -> Array:
    """The log Σ exp(scores) along each row: (n,)."""
    return reference.log_sum_exp(np.asarray(scores, np.float64))


def _into(out: Array | None, result: Array) -> Array:
    if out is None:
        return result
    out[...] = result
    return out
