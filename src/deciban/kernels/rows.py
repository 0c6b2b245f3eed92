"""Operations on each row: integer labels to codes; sums, maxima and probabilities of the numbers of a row."""

from __future__ import annotations

import numpy as np

from deciban.kernels.choice import Array, numpy_work, quiet, readable
from deciban.kernels.parallel import each, row_chunks

# Labels with a wider range are sorted instead: a table of all values in between would not stay in the cache.
WIDEST_SPAN = 65_536

# Elementary operations of each label and of each exp, for the choice between numpy and compiled version.
LABEL_WORK = 5
EXP_WORK = 1.5

EXP_UNITS = 10  # work of each exp, for chunks
READ_UNITS = 4  # work of reading a number
COLUMN_UNITS = 64  # work of reading a number of a column, which often takes a line of the cache
BLOCK_ROWS = 64  # rows of a block of compiled versions
LONG_ROW = 512  # numbers that are added at a time
SHORT_ROW = 7  # numbers; up to so many, numpy adds a row from left to right, so that sums by columns have the same bits

TURNED_ROW, TURNED_ROWS = 32, 64  # numbers of a row, and rows, whose largest numbers are found fastest by columns


def encode_integers(y: Array) -> tuple[Array, Array] | None:
    """Return sorted unique values of integer (or bool) labels, and each label's position among them (intp).

    None if max − min ≥ 65,536; use `np.unique` then. Labels 0 … K − 1 are their own positions, and are not copied.

    >>> encode_integers(np.array([7, 3, 7]))
    (array([3, 7]), array([1, 0, 1]))
    """
    y = np.asarray(y)
    if not y.size:
        return y[:0], np.empty(0, np.intp)
    # Differences in 64 bits are right even if the labels' own type would overflow.
    if LABEL_WORK * y.size <= numpy_work.get():
        low, span = _range(y)
        if span > WIDEST_SPAN:
            return None
        offsets, seen = y.astype(np.int64) - low, np.zeros(span, bool)
        seen[offsets] = True
        rank = np.cumsum(seen, dtype=np.intp) - 1
        return (np.flatnonzero(seen) + low).astype(y.dtype), rank[offsets]
    from deciban.kernels.rows_compiled import mark_offsets, place_offsets

    numbers, low, seen = readable(y, np.int64), 0, np.zeros(WIDEST_SPAN, np.bool_)
    if not mark_offsets(numbers, low, seen):  # most labels are small numbers; for others the minimum is needed
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
    """Return the smallest label as int64, and the number of integers from the smallest to the largest."""
    low = y.min()
    return int(low.astype(np.int64)), int(y.max()) - int(low) + 1


def add_row(scores: Array, row: Array, out: Array) -> None:
    """Write scores + row to `out`; (n, K), (K,) and (n, K), all float64 and the first and last in C order.

    numpy needs about 15 ns for each row of a few numbers. Here many rows at a time are one long row.
    """
    n, K = scores.shape
    wide = max(1, LONG_ROW // max(K, 1))
    m = n - n % wide
    shape = m // wide, wide * K
    np.add(scores[:m].reshape(shape), np.tile(row, wide), out=out[:m].reshape(shape))
    np.add(scores[m:], row, out=out[m:])


def distinct_rows(rows: Array) -> tuple[Array, Array]:
    """Return the rows that differ, in order, and (n,) the place of each row among them."""
    distinct, place = np.unique(rows, axis=0, return_inverse=True)
    return distinct, place.reshape(-1)  # numpy 2.0 returns a column


def row_max(rows: Array) -> Array:
    """Return the largest number of each row, (n,); −inf where rows are empty, NaN where a row has one."""
    n, K = rows.shape
    if 0 < K <= TURNED_ROW and n >= TURNED_ROWS:
        return np.ascontiguousarray(rows.T).max(axis=0)
    return rows.max(axis=1, initial=-np.inf)


def row_sum(rows: Array) -> Array:
    """Return the sum of each row, (n,)."""
    return _along_rows(np.add, rows) if 0 < rows.shape[1] <= SHORT_ROW else rows.sum(axis=1)


def row_all(flags: Array) -> Array:
    """Whether all flags of each row are set, (n,) of bool."""
    return _along_rows(np.logical_and, flags) if 0 < flags.shape[1] <= SHORT_ROW else np.asarray(flags.all(axis=1))


def row_any(flags: Array) -> Array:
    """Whether some flag of each row is set, (n,) of bool."""
    return _along_rows(np.logical_or, flags) if 0 < flags.shape[1] <= SHORT_ROW else np.asarray(flags.any(axis=1))


def _along_rows(operation: np.ufunc, rows: Array) -> Array:
    """Combine the numbers of short rows, column by column: numpy needs about 20 ns for each row otherwise."""
    found = rows[:, 0].copy()
    for k in range(1, rows.shape[1]):
        operation(found, rows[:, k], out=found)
    return found


def log_softmax(scores: Array, out: Array | None = None, row: Array | None = None) -> Array:
    """Return scores minus log Σ exp(scores) of each row, written to `out` if given, which may be the scores.

    A `row`, (K,), is first added to each row of the scores.
    """
    return _softmax(scores, True, out, row)


def softmax(scores: Array, out: Array | None = None, row: Array | None = None) -> Array:
    """Return exp(score) / Σ exp(scores) in each row, as `log_softmax`; 0 where all scores are −inf."""
    return _softmax(scores, False, out, row)


def _softmax(scores: Array, logs: bool, out: Array | None, row: Array | None) -> Array:
    large = EXP_WORK * scores.size > numpy_work.get()
    if large and (out is None or (type(out) is np.ndarray and out.dtype == np.float64 and out.flags.carray)):
        from deciban.kernels.rows_compiled import softmax as run

        out = np.empty(scores.shape) if out is None else out
        scores, added = readable(scores, np.float64), None if row is None else readable(row, np.float64)
        chunks = row_chunks(len(scores), EXP_UNITS * scores.shape[1], multiple=BLOCK_ROWS)
        each(lambda chunk: run(scores[chunk], added, logs, out[chunk]), chunks)
        return out
    scores = scores if row is None else scores + row
    found = _log_softmax(scores) if logs else numpy_softmax(scores)
    if out is None:
        return found
    out[...] = found
    return out


def all_finite(rows: Array) -> bool:
    """Whether the sums of all numbers are finite, which NaN and inf prevent."""
    parts = row_chunks(len(rows), READ_UNITS * rows.shape[1])
    with np.errstate(invalid="ignore", over="ignore"):
        return all(each(lambda part: bool(np.isfinite(rows[part].sum())), parts))


def rows_equal(column: Array, value: float) -> Array:
    """Return the positions of the rows whose number in a column, (n,), is the value."""
    parts = row_chunks(len(column), COLUMN_UNITS)
    return np.concatenate(each(lambda part: np.flatnonzero(column[part] == value) + part.start, parts))


def log_sum_exp(scores: Array) -> Array:
    """Return log Σ exp(scores) of each row, (n,)."""
    if EXP_WORK * scores.size <= numpy_work.get():
        return numpy_log_sum_exp(scores)
    from deciban.kernels.rows_compiled import log_sum_exp as run

    sums, scores = np.empty(len(scores)), readable(scores, np.float64)
    chunks = row_chunks(len(scores), EXP_UNITS * scores.shape[1], multiple=BLOCK_ROWS)
    each(lambda chunk: run(scores[chunk], sums[chunk]), chunks)
    return sums


# -- numpy versions ----------------------------------------------------------------------------------------------------
@quiet
def numpy_log_sum_exp(scores: Array) -> Array:
    """Compute `log_sum_exp` in numpy."""
    top = row_max(scores)
    top[top == -np.inf] = 0.0  # −inf − −inf would be NaN
    return top + np.log(row_sum(np.exp(scores - top[:, None])))


@quiet
def numpy_softmax(scores: Array) -> Array:
    """Compute `softmax` in numpy."""
    top = row_max(scores)
    powers = np.exp(scores - np.where(top == -np.inf, 0.0, top)[:, None])
    total = row_sum(powers)
    return powers / np.where(total == 0, 1.0, total)[:, None]


@quiet
def _log_softmax(scores: Array) -> Array:
    top = row_max(scores)
    top[top == -np.inf] = 0.0  # −inf − −inf would be NaN
    norm = row_sum(np.exp(scores - top[:, None]))
    norm[norm == 0] = 1.0
    return scores - (top + np.log(norm))[:, None]
