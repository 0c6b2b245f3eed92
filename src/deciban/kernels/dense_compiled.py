"""Compiled versions of `dense`: sums per class and scatter matrices, scores of diagonal and full Gaussians."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from deciban.kernels.choice import Array, one_thread, quiet, row_blocks, weights_or_empty
from deciban.kernels.dense import FACTORS, MOMENT_ROWS, NATIVE, SCORED_ROWS, SMALL_PRODUCT, class_weights
from deciban.kernels.intrinsics import CACHE_LINE, prefetch
from deciban.kernels.jit import any_order_kernel, as_written_inline, as_written_kernel, inline, kernel
from deciban.kernels.parallel import each, in_order, row_chunks

# Values between a prefetch and their use. The hardware's own prefetching stops at page ends; this saves a quarter of
# the time.
DISTANCE = 512


@inline
def _prefetch_row(X: Array, i: int) -> None:
    D = X.shape[1]
    for d in range(0, D, CACHE_LINE):
        prefetch(X, i * D + d + DISTANCE)


# -- weights and moments -----------------------------------------------------------------------------------------------
@kernel
def add_class_weights(codes: Array, weight: Array, sums: Array) -> None:
    """Add Σ w per class to (K, 8), in turn: an addition waits for the one before it to the same address."""
    for i in range(codes.size):
        sums[np.uint64(codes[i]), np.uint64(i & 7)] += weight[i] if weight.size else 1.0


@inline
def _add_rows(
    X: Array,
    start: int,
    stop: int,
    codes: Array,
    weight: Array,
    origin: Array,
    seen: Array | None,
    first: Array,
    second: Array,
) -> None:
    """Add the moments of the rows from `start` to `stop`."""
    D = X.shape[1]
    for i in range(start, stop):
        _prefetch_row(X, i)
        w = weight[i] if weight.size else 1.0
        if w == 0:
            continue
        x, s, q = X[i], first[codes[i]], second[codes[i]]
        if seen is None:
            for d in range(D):
                z = x[d] - origin[d]
                s[d] += w * z
                q[d] += w * z * z
        else:
            m = seen[codes[i]]
            for d in range(D):
                z = x[d] - origin[d]
                # Only NaN differs from itself. A selection of values, without a branch, can be vectorised.
                z, v = (z, w) if x[d] == x[d] else (0.0, 0.0)
                m[d] += v
                s[d] += v * z
                q[d] += v * z * z


@kernel
def add_moments(
    X: Array, codes: Array, weight: Array, origin: Array, seen: Array | None, first: Array, second: Array
) -> None:
    """Add Σ w (x−o) and Σ w (x−o)² to (K, D) arrays; unless `seen` is None, over values other than NaN, and Σ w."""
    _add_rows(X, 0, len(X), codes, weight, origin, seen, first, second)


@kernel
def _add_moments_within(
    X: Array,
    codes: Array,
    weight: Array,
    origin: Array,
    limit: Array,
    seen: Array | None,
    first: Array,
    second: Array,
    weights: Array | None,
    sums: Array,
    squares: Array,
    hit: Array,
) -> None:
    """Add the moments of blocks of rows, except of those that may have a value beyond reach; mark these in `hit`.

    A value beyond reach makes a sum of squares larger than its weight times reach², the limit. `weights`, `sums` and
    `squares` are memory for the sums of one block. They are arguments because an array made here would have its
    references counted at every row.
    """
    n, D = X.shape
    K = first.shape[0]
    for start in range(0, n, MOMENT_ROWS):
        stop = min(start + MOMENT_ROWS, n)
        sums[:], squares[:] = 0.0, 0.0
        if weights is not None:
            weights[:] = 0.0
        _add_rows(X, start, stop, codes, weight, origin, weights, sums, squares)
        least = 1.0
        if weight.size:
            for i in range(start, stop):
                least = min(least, weight[i] if weight[i] != 0 else 1.0)
        over = 0
        for k in range(K):
            for d in range(D):
                over += not squares[k, d] <= least * limit[d]  # NaN counts as over
        if over:
            hit[start // MOMENT_ROWS] = True
            continue
        if seen is not None:
            seen[:] += weights
        first += sums
        second += squares


class _GapsError(Exception):
    """Raised at a missing value where sums need complete rows."""


def class_moments_within(
    X: Array,
    chunks: list[slice],
    codes: Array,
    weight: Array | None,
    origin: Array,
    reach: Array,
    K: int,
    gaps: bool,
) -> tuple[Array, Array, Array, Array] | None:
    """Sum w, w (x−o) and w (x−o)² of rows within reach, list the others; None if there are gaps and not `gaps`."""
    limit = 0.99 * reach * np.minimum(reach, 1e150)

    def sums(chunk: slice) -> tuple[Array, Array]:
        return _moments_within(X, chunk, codes, weight, origin, reach, limit, K, gaps)

    total, far = np.zeros((3, K, len(origin))), []
    try:
        for part, beyond in in_order(sums, chunks):
            total += part
            far.append(beyond)
    except _GapsError:
        return None
    (seen, first, second), others = total, np.concatenate(far)
    if gaps:
        return seen, first, second, others
    if not len(others):
        rows = class_weights(codes, weight, K)
    else:
        keep = np.ones(len(X), bool)
        keep[others] = False
        rows = class_weights(codes[keep], None if weight is None else weight[keep], K)
    return np.repeat(rows[:, None], len(origin), axis=1), first, second, others


def _moments_within(
    X: Array,
    chunk: slice,
    codes: Array,
    weight: Array | None,
    origin: Array,
    reach: Array,
    limit: Array,
    K: int,
    gaps: bool,
) -> tuple[Array, Array]:
    """Return weights (if `gaps`), sums and squares (3, K, D) of a chunk's rows within reach, and the other rows."""
    sums = np.zeros((3, K, len(origin)))
    weights, *block = np.zeros((3, K, len(origin)))
    seen, first, second = sums[0] if gaps else None, sums[1], sums[2]
    far = [np.empty(0, np.intp)]
    for rows, part in row_blocks(X, chunk, NATIVE, np.float64):
        hit = np.zeros(-(-len(part) // MOMENT_ROWS), np.bool_)
        arrays = part, codes[rows], weights_or_empty(weight, rows), origin, limit
        _add_moments_within(*arrays, seen, first, second, weights if gaps else None, *block, hit)
        for start in np.flatnonzero(hit) * MOMENT_ROWS:
            some = part[start : start + MOMENT_ROWS]
            here = slice(rows.start + start, rows.start + start + len(some))
            if not gaps and np.isnan(some).any():
                raise _GapsError
            w = np.ones(len(some)) if weight is None else weight[here].copy()
            with np.errstate(over="ignore", invalid="ignore"):
                beyond = np.flatnonzero((np.abs(some - origin) > reach).any(axis=1) & (w != 0))
            far.append(beyond + here.start)
            w[beyond] = 0.0
            add_moments(some, codes[here], w, origin, seen, first, second)
    return sums, np.concatenate(far).astype(np.intp)


# -- scatter matrices --------------------------------------------------------------------------------------------------
# The rows of a block are sorted by class; each class then is one BLAS call.
SCATTER_ROWS = 4096  # rows of a block: with 50 columns, 1.6 MB; half as many take a tenth more time
ROWS_PER_CLASS = 64  # rows of a block per class, on average, that are worth a BLAS call
SCATTER_BYTES = 2**26  # largest block


@kernel
def _sort_by_class(
    X: Array,
    codes: Array,
    weight: Array,
    origin: Array,
    reach: Array,
    begins: Array,
    ends: Array,
    Z: Array,
    first: Array,
    far: Array,
) -> int:
    """Write √w (x−o) of the rows within reach to Z, sorted by class; class k is at begins[k] … ends[k].

    Add Σ w (x−o) to first, write the positions of the other rows to far, and return their number.
    """
    n, D = X.shape
    ends[:] = 0
    for i in range(n):
        if weight.size == 0 or weight[i] != 0:
            ends[codes[i]] += 1
    place = 0
    for k in range(ends.size):
        begins[k] = place
        place += ends[k]
        ends[k] = begins[k]
    beyond = 0
    for i in range(n):
        w = weight[i] if weight.size else 1.0
        if w == 0:
            continue
        k = codes[i]
        x, z, s = X[i], Z[ends[k]], first[k]
        root, over = np.sqrt(w), np.int64(0)
        for d in range(D):
            c = x[d] - origin[d]
            over += np.int64(abs(c) > reach[d])
            z[d] = root * c
        if over:
            far[beyond] = i
            beyond += 1
            continue
        ends[k] += 1
        for d in range(D):
            s[d] += root * z[d]
    return beyond


def class_scatter(
    X: Array, codes: Array, weight: Array | None, origin: Array, reach: Array, K: int
) -> tuple[Array, Array, Array]:
    """Sum w (x−o) and w (x−o)(x−o)ᵀ per class of the rows within reach; list the positions of the others."""
    D = len(origin)
    size = min(max(SCATTER_ROWS, ROWS_PER_CLASS * K), max(1, SCATTER_BYTES // (8 * max(1, D))))
    chunks = row_chunks(len(X) if D else 0, D * D / 4 + 5 * D, K * D * D, multiple=size)
    first, second, far = np.zeros((K, D)), np.zeros((K, D, D)), [np.empty(0, np.intp)]

    def sums(chunk: slice) -> tuple[Array, Array, list[Array]]:
        return _scatter(X, chunk, codes, weight, origin, reach, K, size)

    with one_thread(D):
        for part in in_order(sums, chunks, blas=True):
            first += part[0]
            second += part[1]
            far += part[2]
    for S in second:
        below = np.tril_indices(D, -1)
        S[below] = S.T[below]
    return first, second, np.concatenate(far).astype(np.intp)


@quiet
def _scatter(
    X: Array, chunk: slice, codes: Array, weight: Array | None, origin: Array, reach: Array, K: int, size: int
) -> tuple[Array, Array, list[Array]]:
    """Return the sums of a chunk of rows, for `class_scatter`; `size` rows are sorted by class at a time."""
    D = len(origin)
    first, second, product = np.zeros((K, D)), np.zeros((K, D, D)), np.empty((D, D))
    begins, ends, beyond, Z = np.empty(K, np.intp), np.empty(K, np.intp), np.empty(size, np.intp), np.empty((size, D))
    far = []
    for rows, block in row_blocks(X, chunk, NATIVE, np.float64):
        for start in range(0, len(block), size):
            here = slice(rows.start + start, min(rows.start + start + size, rows.stop))
            arrays = block[start : start + size], codes[here], weights_or_empty(weight, here), origin, reach
            count = _sort_by_class(*arrays, begins, ends, Z, first, beyond)
            if count:
                far.append(beyond[:count] + here.start)
            for k, (begin, end) in enumerate(zip(begins.tolist(), ends.tolist())):
                if end > begin:
                    # numpy sees that the factors are the same: one triangle is computed, and copied to the other
                    second[k] += np.matmul(Z[begin:end].T, Z[begin:end], out=product)
    return first, second, far


# -- Mahalanobis distances ---------------------------------------------------------------------------------------------
# A block of rows is multiplied by the whiteners of all classes at once; sums of squares follow.
DISTANCE_VALUES = 2**17  # values of a block and its products: 1 MB, which fits in the second-level cache
LEAST_ROWS, MOST_ROWS = 256, 4096  # rows of a block
PANEL_WIDTH, MOST_PANELS = 12, 8  # columns of a panel, and panels of a whitener


class Panel(NamedTuple):
    """Some columns of the whiteners of all classes side by side, without the rows of zeros at the bottom."""

    whitener: Array  # (rows, K·width)
    mean: Array  # (K, width)  whitened


@kernel
def _subtract(X: Array, origin: Array, Z: Array) -> None:
    """Write x−o to Z."""
    n, D = X.shape
    for i in range(n):
        for d in range(D):
            Z[i, d] = X[i, d] - origin[d]


@any_order_kernel
def _add_squares(Z: Array, mean: Array, out: Array) -> None:
    """Add ‖z[k] − mean[k]‖² to (n, K), where z[k] is a row's part k."""
    n, K = out.shape
    width = mean.shape[1]
    for i in range(n):
        for k in range(K):
            z, m = Z[i, k * width : (k + 1) * width], mean[k]
            total = 0.0
            for d in range(width):
                c = z[d] - m[d]
                total += c * c
            out[i, k] += total


def _panels(mean: Array, whitener: Array) -> list[Panel]:
    """Split upper triangular whiteners into panels of columns, so that the zeros below each are not multiplied."""
    D = whitener.shape[1]
    triangular = not np.tril(whitener, -1).any()
    count = min(MOST_PANELS, max(1, D // PANEL_WIDTH)) if triangular else 1
    edges = np.linspace(0, D, count + 1).astype(int)
    panels = []
    for begin, end in pairwise(edges):
        last = end if triangular else D
        W = whitener[:, :last, begin:end]
        panels.append(
            Panel(
                np.ascontiguousarray(W.transpose(1, 0, 2).reshape(last, -1)),
                np.ascontiguousarray((mean[:, None, :last] @ W)[:, 0]),
            )
        )
    return panels


def _centred(X: Array, chunk: slice, origin: Array, size: int) -> Iterator[tuple[slice, Array]]:
    """Yield rows of a chunk relative to the origin, at most `size` at a time, and their positions."""
    Z = np.empty((size, len(origin)))
    for rows, block in row_blocks(X, chunk, NATIVE, np.float64):
        for start in range(0, len(block), size):
            some = block[start : start + size]
            _subtract(some, origin, Z)
            yield slice(rows.start + start, rows.start + start + len(some)), Z[: len(some)]


def _add_panels(Z: Array, panels: list[Panel], products: Array, out: Array) -> None:
    for W, m in panels:
        whitened = products[: len(Z) * W.shape[1]].reshape(len(Z), -1)
        np.matmul(Z[:, : len(W)], W, out=whitened)
        _add_squares(whitened, m, out)


def whitened_distances(X: Array, mean: Array, whitener: Array, origin: Array) -> Array:
    """Return ‖(x − mean[k]) @ whitener[k]‖², (n, K)."""
    K, D = mean.shape
    shared = len(whitener) < K
    centre = mean.mean(axis=0) if shared else origin
    panels = _panels(np.zeros((1, D)) if shared else mean - centre, whitener)
    size = min(MOST_ROWS, max(LEAST_ROWS, DISTANCE_VALUES // max(1, (len(whitener) + 1) * D)))
    out = np.zeros((len(X), K))
    # ‖z − m‖² = ‖z‖² − 2z·m + ‖m‖²: each row is whitened once, and only z·m is computed per class, as a matrix product.
    # Relative to the centre of the means, the terms are no larger than the distances between classes, so that little
    # precision is lost by cancellation.
    moved = (mean - centre) @ whitener[0] if shared else mean[:, :0]
    cross, own = -2 * whitener[0, :, : moved.shape[1]] @ moved.T, (moved**2).sum(axis=1)

    def measure(chunk: slice) -> None:
        products = np.empty(size * max(panel.whitener.shape[1] for panel in panels))
        for rows, Z in _centred(X, chunk, centre, size):
            if not shared:
                _add_panels(Z, panels, products, out[rows])
                continue
            squares = np.zeros((len(Z), 1))
            _add_panels(Z, panels, products, squares)
            here = np.matmul(Z, cross, out=out[rows])
            here += squares + own
            np.maximum(here, 0.0, out=here)

    with one_thread(D):
        each(measure, row_chunks(len(X), (len(whitener) * D / 3 + 2 * K) * D, multiple=size), blas=True)
    return out


# -- diagonal Gaussians ------------------------------------------------------------------------------------------------
# Blocks of rows are transposed, so that every step is a vector operation over the rows.
@inline
def _score_complete(columns: Array, mean: Array, half_precision: Array, log_norm: Array, scores: Array) -> None:
    K, D = mean.shape
    for k in range(K):
        s = scores[k]
        s[:] = log_norm[k].sum()
        for d in range(D):
            m, h, x = mean[k, d], half_precision[k, d], columns[d]
            for i in range(SCORED_ROWS):
                z = x[i] - m
                s[i] -= h * z * z


@inline
def _score_with_gaps(columns: Array, mean: Array, half_precision: Array, log_norm: Array, scores: Array) -> None:
    K, D = mean.shape
    for k in range(K):
        s = scores[k]
        s[:] = 0.0
        for d in range(D):
            m, h, c, x = mean[k, d], half_precision[k, d], log_norm[k, d], columns[d]
            for i in range(SCORED_ROWS):
                z = x[i] - m
                s[i] += c - h * z * z if x[i] == x[i] else 0.0  # only NaN differs from itself


@kernel
def diagonal_scores(X: Array, mean: Array, half_precision: Array, log_norm: Array, out: Array, gaps: bool) -> None:
    """Write Σ of log_norm − half_precision (x−mean)² to (n, K); with `gaps` over the values that are not NaN."""
    n, D = X.shape
    K = len(mean)
    columns, scores = np.zeros((D, SCORED_ROWS)), np.empty((K, SCORED_ROWS))
    for start in range(0, n, SCORED_ROWS):
        rows = min(SCORED_ROWS, n - start)
        missing = False
        for i in range(rows):
            for d in range(D):
                x = X[start + i, d]
                columns[d, i] = x
                missing |= x != x
        if missing and gaps:
            _score_with_gaps(columns, mean, half_precision, log_norm, scores)
        else:
            _score_complete(columns, mean, half_precision, log_norm, scores)
        for i in range(rows):
            for k in range(K):
                out[start + i, k] = scores[k, i]


# The steps below are those of `dense._left_out_in_blocks`, in the same order, so that both have the same bits.
@as_written_inline
def _scores_as_written(columns: Array, mean: Array, half_precision: Array, norms: Array, scores: Array) -> None:
    K, D = mean.shape
    for k in range(K):
        s = scores[k]
        s[:] = norms[k]
        for d in range(D):
            m, h, x = mean[k, d], half_precision[k, d], columns[d]
            for i in range(SCORED_ROWS):
                z = x[i] - m
                s[i] -= z * z * h


@as_written_inline
def _own_terms(
    columns: Array, codes: Array, mean: Array, precision: Array, share: Array, least: float, terms: Array
) -> None:
    """Compute Σ v/f, min f, and the product of f as a number and a power of 2, of a block of rows: (4, rows).

    `mean` and `precision` are (D, K).
    """
    total, low, product, power = terms[0], terms[1], terms[2], terms[3]
    total[:], low[:], product[:], power[:] = 0.0, 1.0, 1.0, 0.0
    D, rows = len(mean), len(codes)
    for start in range(0, D, FACTORS):
        for d in range(start, min(start + FACTORS, D)):
            x, m, h = columns[d], mean[d], precision[d]
            for i in range(rows):
                z = x[i] - m[codes[i]]
                v = z * z * h[codes[i]]
                f = 1.0 - share[i] * v
                f = f if f > least else least
                total[i] += v / f
                product[i] *= f
                low[i] = f if f < low[i] else low[i]
        for i in range(rows):
            if product[i] < SMALL_PRODUCT:
                fraction, exponent = math.frexp(product[i])
                product[i] = fraction
                power[i] += exponent


@as_written_kernel
def diagonal_left_out(
    X: Array,
    codes: Array,
    origin: Array,
    mean: Array,
    half_precision: Array,
    norms: Array,
    precision: Array,
    share: Array,
    least: float,
    out: Array,
    terms: Array,
) -> bool:
    """Write scores to (n, K), and to (4, n) the terms of `_own_terms`; see `dense.diagonal_left_out`.

    Return False, without computing the later rows, at a block with a missing value.
    """
    n, D = X.shape
    K = len(mean)
    columns, scores, block = np.zeros((D, SCORED_ROWS)), np.empty((K, SCORED_ROWS)), np.empty((4, SCORED_ROWS))
    means, precisions = mean.T.copy(), precision.T.copy()
    for start in range(0, n, SCORED_ROWS):
        rows = min(SCORED_ROWS, n - start)
        gaps = False
        for i in range(rows):
            for d in range(D):
                z = X[start + i, d] - origin[d]
                columns[d, i] = z
                gaps |= z != z
        if gaps:
            return False
        _scores_as_written(columns, mean, half_precision, norms, scores)
        for i in range(rows):
            for k in range(K):
                out[start + i, k] = scores[k, i]
        here = slice(start, start + rows)
        _own_terms(columns, codes[here], means, precisions, share[here], least, block)
        for j in range(4):
            for i in range(rows):
                terms[j, start + i] = block[j, i]
    return True


# -- sums of products without rounding: digits in base 2³², see `deciban.statistics.exact` -----------------------------
@inline
def _add_digits(digits: Array, sign: int, value: int, exponent: int, lowest: int) -> None:
    """Add sign · value · 2^exponent, with 0 ≤ value < 2⁶², to digits in base 2³²."""
    place = exponent >> 5
    shift = exponent - (place << 5)
    place -= lowest
    low, high = (value & 0xFFFFFFFF) << shift, (value >> 32) << shift
    digits[place] += sign * (low & 0xFFFFFFFF)
    digits[place + 1] += sign * ((low >> 32) + (high & 0xFFFFFFFF))
    digits[place + 2] += sign * (high >> 32)


@kernel
def add_products(V: Array, weight: Array, slot: Array, left: Array, right: Array, lowest: int, sums: Array) -> None:
    """Add w · V[i, left] · V[i, right] to the digits (class, cell, place)."""
    n, columns = V.shape
    mantissa, exponent = np.zeros(columns, np.int64), np.zeros(columns, np.int64)
    for i in range(n):
        for d in range(columns):
            fraction, power = math.frexp(V[i, d])
            mantissa[d], exponent[d] = np.int64(fraction * 9007199254740992.0), power - 53
        heavy, more = np.int64(1), np.int64(0)
        if weight.size:
            fraction, power = math.frexp(weight[i])
            heavy, more = np.int64(fraction * 9007199254740992.0), np.int64(power - 53)
        w0, w1, w2 = heavy & 0x3FFFF, (heavy >> 18) & 0x3FFFF, heavy >> 36
        for c in range(left.size):
            x, y = mantissa[left[c]], mantissa[right[c]]
            if x == 0 or y == 0 or heavy == 0:
                continue
            sign = np.int64(1)
            if (x < 0) != (y < 0):
                sign = np.int64(-1)
            x, y = abs(x), abs(y)
            at = exponent[left[c]] + exponent[right[c]] + more
            a0, a1, a2 = x & 0x3FFFF, (x >> 18) & 0x3FFFF, x >> 36
            b0, b1, b2 = y & 0x3FFFF, (y >> 18) & 0x3FFFF, y >> 36
            p0, p1, p2, p3, p4 = a0 * b0, a0 * b1 + a1 * b0, a0 * b2 + a1 * b1 + a2 * b0, a1 * b2 + a2 * b1, a2 * b2
            digits = sums[slot[i], c]
            if weight.size:
                _add_digits(digits, sign, p0 * w0, at, lowest)
                _add_digits(digits, sign, p0 * w1 + p1 * w0, at + 18, lowest)
                _add_digits(digits, sign, p0 * w2 + p1 * w1 + p2 * w0, at + 36, lowest)
                _add_digits(digits, sign, p1 * w2 + p2 * w1 + p3 * w0, at + 54, lowest)
                _add_digits(digits, sign, p2 * w2 + p3 * w1 + p4 * w0, at + 72, lowest)
                _add_digits(digits, sign, p3 * w2 + p4 * w1, at + 90, lowest)
                _add_digits(digits, sign, p4 * w2, at + 108, lowest)
            else:
                _add_digits(digits, sign, p0 + (p1 << 18), at, lowest)
                _add_digits(digits, sign, p2 + (p3 << 18), at + 36, lowest)
                _add_digits(digits, sign, p4, at + 72, lowest)
