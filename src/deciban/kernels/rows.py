"""Row by row: labels to class numbers, what classes weigh, scores to probabilities."""

from __future__ import annotations

import numpy as np

from deciban.kernels import reference
from deciban.kernels.choice import Array, class_codes, compiled, or_unweighted, readable, row_weights

# Labels spread wider than this are left to sorting: a table of every possible value would not stay in cache.
WIDEST_SPAN = 65_536

# Elementary operations for each label and for each exp: what the choice of body reckons with.
LABEL_WORK = 5
EXP_WORK = 5


def encode_integers(y: Array) -> tuple[Array, Array] | None:
    """Sorted unique values of integer (or bool) labels, and each label's position among them (intp).

    None if max − min ≥ 65,536: `np.unique` is the way then. Labels 0 … K − 1 are their own positions, and not copied.

    >>> encode_integers(np.array([7, 3, 7]))
    (array([3, 7]), array([1, 0, 1]))
    """
    y = np.asarray(y)
    if not y.size:
        return y[:0], np.empty(0, np.intp)
    # In 64 bits differences are right even where the labels' own type, or its sign, would overflow.
    numbers = readable(y, np.int64)
    if not compiled(LABEL_WORK * y.size):
        low, span = _range(y)
        if span > WIDEST_SPAN:
            return None
        found, codes = reference.encode_offsets(numbers - low, span)
        return (found + low).astype(y.dtype), codes
    from deciban.kernels.rows_compiled import mark_offsets, place_offsets

    low, seen = 0, np.zeros(WIDEST_SPAN, np.bool_)
    if not mark_offsets(numbers, low, seen):  # most labels are small numbers; only others are worth another look
        low, span = _range(y)
        if span > WIDEST_SPAN:
            return None
        seen = np.zeros(span, np.bool_)
        mark_offsets(numbers, low, seen)
    found, codes = np.flatnonzero(seen), numbers
    if low or found[-1] >= len(found):
        codes = np.empty(y.size, np.intp)
        place_offsets(numbers, low, np.cumsum(seen) - 1, codes)
    return (found + low).astype(y.dtype), codes


def _range(y: Array) -> tuple[int, int]:
    """The least label, as int64 sees it, and how many numbers there are from it to the greatest."""
    low = y.min()
    return int(low.astype(np.int64)), int(y.max()) - int(low) + 1


def class_weights(codes: Array, weight: Array | None, K: int) -> Array:
    """Σ w per class: (K,)."""
    codes, weight = class_codes(codes, K), row_weights(weight)
    if not compiled(LABEL_WORK * codes.size):
        return np.bincount(codes, weight, minlength=K).astype(np.float64)  # of no rows it gives integers
    from deciban.kernels.rows_compiled import add_class_weights

    sums = np.zeros((K, 8))
    add_class_weights(codes, or_unweighted(weight), sums)
    return np.asarray(sums.sum(axis=1))


def log_softmax(scores: Array, out: Array | None = None) -> Array:
    """Scores less their log Σ exp along each row. Rows that are −inf throughout stay so. `out` may be `scores`."""
    scores, out = readable(scores, np.float64), np.empty(scores.shape) if out is None else out
    if compiled(EXP_WORK * scores.size) and _plain(out):
        from deciban.kernels.rows_compiled import log_softmax as kernel

        kernel(scores, out)
    else:
        out[...] = reference.log_softmax(scores)
    return out


def softmax(scores: Array, out: Array | None = None) -> Array:
    """Each row's exp(score) / Σ exp(scores). Rows that are −inf throughout become 0. `out` may be `scores`."""
    scores, out = readable(scores, np.float64), np.empty(scores.shape) if out is None else out
    if compiled(EXP_WORK * scores.size) and _plain(out):
        from deciban.kernels.rows_compiled import softmax as kernel

        kernel(scores, out)
    else:
        out[...] = reference.softmax(scores)
    return out


def log_sum_exp(scores: Array) -> Array:
    """The log Σ exp(scores) along each row: (n,)."""
    scores = readable(scores, np.float64)
    if not compiled(EXP_WORK * scores.size):
        return reference.log_sum_exp(scores)
    from deciban.kernels.rows_compiled import log_sum_exp as kernel

    sums = np.empty(len(scores))
    kernel(scores, sums)
    return sums


def _plain(out: Array) -> bool:
    """Whether a kernel can write to it; anything else is left to numpy's assignment."""
    return type(out) is np.ndarray and out.dtype == np.float64 and out.flags.carray
