"""Squared Mahalanobis distances: a block of rows times all classes' whiteners at once, then sums of squares.

Where all classes share a whitener, a row is whitened once; its products with their means are one more matrix product.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from .blas import one_thread
from .choice import Array
from .jit import any_order_kernel, kernel

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
