"""Sums and sums of squares per class, in one pass over the table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from deciban.kernels.choice import Array, one_thread, or_unweighted
from deciban.kernels.intrinsics import prefetch
from deciban.kernels.jit import any_order_kernel, kernel, part

# Values to ask memory for in advance: the processor's own guesses stop at page ends. Saves a quarter of the time.
AHEAD = 512
LINE = 8  # float64 values in a cache line


@part
def _fetch(X: Array, i: int) -> None:
    D = X.shape[1]
    for d in range(0, D, LINE):
        prefetch(X, i * D + d + AHEAD)


@kernel
def add_moments(X: Array, codes: Array, weight: Array, origin: Array, first: Array, second: Array) -> None:
    """Add Σ w (x−o) and Σ w (x−o)² to (K, D) arrays."""
    n, D = X.shape
    for i in range(n):
        _fetch(X, i)
        w = weight[i] if weight.size else 1.0
        if w == 0:
            continue
        x, s, q = X[i], first[codes[i]], second[codes[i]]
        for d in range(D):
            z = x[d] - origin[d]
            s[d] += w * z
            q[d] += w * z * z


@kernel
def add_moments_with_gaps(
    X: Array, codes: Array, weight: Array, origin: Array, seen: Array, first: Array, second: Array
) -> None:
    """Add Σ w, Σ w (x−o) and Σ w (x−o)² over the values that are not NaN to (K, D) arrays."""
    n, D = X.shape
    for i in range(n):
        _fetch(X, i)
        w = weight[i] if weight.size else 1.0
        if w == 0:
            continue
        x, m, s, q = X[i], seen[codes[i]], first[codes[i]], second[codes[i]]
        for d in range(D):
            z = x[d] - origin[d]
            # NaN alone differs from itself. Choosing values, not paths, lets the loop be vectorised.
            z, v = (z, w) if x[d] == x[d] else (0.0, 0.0)
            m[d] += v
            s[d] += v * z
            q[d] += v * z * z


# -- scatter ----------
# Scatter matrices per class: rows gathered by class, a block at a time, each group one BLAS call.

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


# -- whitened ----------
# Squared Mahalanobis distances: a block of rows times all classes' whiteners at once, then sums of squares.
#
# Where all classes share a whitener, a row is whitened once; its products with their means are one more matrix product.

BLOCK_VALUES = 2**17  # rows and products held at a time: one megabyte, in the second-level cache
LEAST_ROWS, MOST_ROWS = 256, 4096
STRIP_WIDTH, MOST_STRIPS = 12, 8


class Strip(NamedTuple):
    """Some columns of every whitener side by side, down to the last row that is not zero."""

    whitener: Array  # (rows, K·width)
    mean: Array  # (K, width)  whitened


@kernel
def subtract(X: Array, origin: Array, Z: Array) -> None:
    """Write x−o to Z."""
    n, D = X.shape
    for i in range(n):
        for d in range(D):
            Z[i, d] = X[i, d] - origin[d]


@any_order_kernel
def add_squares(Z: Array, mean: Array, out: Array) -> None:
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


def _strips(mean: Array, whitener: Array) -> list[Strip]:
    """An upper triangular whitener in strips of columns: the zeros below each are not multiplied."""
    D = whitener.shape[1]
    triangular = not np.tril(whitener, -1).any()
    count = min(MOST_STRIPS, max(1, D // STRIP_WIDTH)) if triangular else 1
    edges = np.linspace(0, D, count + 1).astype(int)
    strips = []
    for begin, end in pairwise(edges):
        last = end if triangular else D
        W = whitener[:, :last, begin:end]
        strips.append(
            Strip(
                np.ascontiguousarray(W.transpose(1, 0, 2).reshape(last, -1)),
                np.ascontiguousarray((mean[:, None, :last] @ W)[:, 0]),
            )
        )
    return strips


def _blocks(pieces: Iterable[tuple[slice, Array]], origin: Array, block: int) -> Iterator[tuple[slice, Array]]:
    """Rows relative to the origin, a block at a time, and where they stand."""
    Z = np.empty((block, len(origin)))
    with one_thread(len(origin)):
        for rows, X in pieces:
            for start in range(0, len(X), block):
                part = X[start : start + block]
                subtract(part, origin, Z)
                yield slice(rows.start + start, rows.start + start + len(part)), Z[: len(part)]


def _add_strips(Z: Array, strips: list[Strip], products: Array, out: Array) -> None:
    for W, m in strips:
        whitened = products[: len(Z) * W.shape[1]].reshape(len(Z), -1)
        np.matmul(Z[:, : len(W)], W, out=whitened)
        add_squares(whitened, m, out)


def distances(pieces: Iterable[tuple[slice, Array]], n: int, mean: Array, whitener: Array, origin: Array) -> Array:
    """‖(x − mean[k]) @ whitener[k]‖² as (n, K), from pieces of the table."""
    K, D = mean.shape
    shared = len(whitener) < K
    centre = mean.mean(axis=0) if shared else origin
    strips = _strips(np.zeros((1, D)) if shared else mean - centre, whitener)
    block = min(MOST_ROWS, max(LEAST_ROWS, BLOCK_VALUES // max(1, (len(whitener) + 1) * D)))
    products, out = np.empty(block * max(strip.whitener.shape[1] for strip in strips)), np.zeros((n, K))
    if not shared:
        for rows, Z in _blocks(pieces, centre, block):
            _add_strips(Z, strips, products, out[rows])
        return out
    # ‖z − m‖² = ‖z‖² − 2z·m + ‖m‖², where only z·m is different work for every class. About the centre of the means the
    # terms are no larger than the classes lie apart, so little is lost where they cancel.
    moved = (mean - centre) @ whitener[0]
    cross, own = -2 * whitener[0] @ moved.T, (moved**2).sum(axis=1)
    for rows, Z in _blocks(pieces, centre, block):
        squares = np.zeros((len(Z), 1))
        _add_strips(Z, strips, products, squares)
        here = np.matmul(Z, cross, out=out[rows])
        here += squares + own
        np.maximum(here, 0.0, out=here)
    return out


# -- gaussian ----------
# Scores of diagonal Gaussians, 64 rows at a time: with the rows side by side, every step is a vector operation.
#
# And what a row leaves of the variances of its class, when it is left out.

SIDE_BY_SIDE = 64  # 50 columns of them fit in the first-level cache
FACTORS = 16  # multiplied before a logarithm is taken: of numbers from 1e-16 to 1 that many do not underflow


@part
def _score_complete(columns: Array, mean: Array, half_precision: Array, log_norm: Array, scores: Array) -> None:
    K, D = mean.shape
    for k in range(K):
        s = scores[k]
        s[:] = log_norm[k].sum()
        for d in range(D):
            m, h, x = mean[k, d], half_precision[k, d], columns[d]
            for i in range(SIDE_BY_SIDE):
                z = x[i] - m
                s[i] -= h * z * z


@part
def _score_with_gaps(columns: Array, mean: Array, half_precision: Array, log_norm: Array, scores: Array) -> None:
    K, D = mean.shape
    for k in range(K):
        s = scores[k]
        s[:] = 0.0
        for d in range(D):
            m, h, c, x = mean[k, d], half_precision[k, d], log_norm[k, d], columns[d]
            for i in range(SIDE_BY_SIDE):
                z = x[i] - m
                s[i] += c - h * z * z if x[i] == x[i] else 0.0  # NaN alone differs from itself


@kernel
def diagonal_scores(X: Array, mean: Array, half_precision: Array, log_norm: Array, out: Array) -> None:
    """Write Σ over d seen of log_norm − half_precision (x−mean)² to (n, K)."""
    n, D = X.shape
    K = len(mean)
    columns, scores = np.zeros((D, SIDE_BY_SIDE)), np.empty((K, SIDE_BY_SIDE))
    for start in range(0, n, SIDE_BY_SIDE):
        rows = min(SIDE_BY_SIDE, n - start)
        gaps = False
        for i in range(rows):
            for d in range(D):
                x = X[start + i, d]
                columns[d, i] = x
                gaps |= x != x
        if gaps:
            _score_with_gaps(columns, mean, half_precision, log_norm, scores)
        else:
            _score_complete(columns, mean, half_precision, log_norm, scores)
        for i in range(rows):
            for k in range(K):
                out[start + i, k] = scores[k, i]


@kernel
def diagonal_left_out(
    X: Array,
    codes: Array,
    origin: Array,
    mean: Array,
    precision: Array,
    share: Array,
    least: float,
    distance: Array,
    log_left: Array,
    smallest: Array,
) -> None:
    """Write Σ v/f, Σ log f and the smallest f of each row to (n,) each."""
    n, D = X.shape
    for i in range(n):
        x, m, h, w = X[i], mean[codes[i]], precision[codes[i]], share[i]
        total, logs, low = 0.0, 0.0, 1.0
        for start in range(0, D, FACTORS):
            product = 1.0
            for d in range(start, min(start + FACTORS, D)):
                z = (x[d] - origin[d]) - m[d]
                v = z * z * h[d]
                f = 1.0 - w * v
                f = f if f > least else least
                total += v / f
                product *= f
                low = min(low, f)
            logs += np.log(product)
        distance[i], log_left[i], smallest[i] = total, logs, low
