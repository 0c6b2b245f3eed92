"""Squared Mahalanobis distances: a block of rows times all classes' whiteners at once, then sums of squares."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from .blas import one_thread
from .choice import Array
from .jit import any_order_kernel, kernel

BLOCK_VALUES = 2**17  # products held at a time: one megabyte, in the second-level cache
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
    """Add ‖z[k] − mean[k]‖² to (n, K), where z[k] is a row's part k; with one part only, every k compares with it."""
    n, K = out.shape
    width = mean.shape[1]
    step = 0 if Z.shape[1] == width else width
    for i in range(n):
        for k in range(K):
            z, m = Z[i, k * step : k * step + width], mean[k]
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


def distances(pieces: Iterable[tuple[slice, Array]], n: int, mean: Array, whitener: Array, origin: Array) -> Array:
    """‖(x − mean[k]) @ whitener[k]‖² as (n, K), from pieces of the table."""
    K, D = mean.shape
    strips = _strips(mean - origin, whitener)
    widest = max(strip.whitener.shape[1] for strip in strips)
    block = min(MOST_ROWS, max(LEAST_ROWS, BLOCK_VALUES // max(1, len(whitener) * D)))
    Z, products, out = np.empty((block, D)), np.empty(block * widest), np.zeros((n, K))
    with one_thread(D):
        for rows, X in pieces:
            for start in range(0, len(X), block):
                part = X[start : start + block]
                here = out[rows.start + start : rows.start + start + len(part)]
                subtract(part, origin, Z)
                for W, m in strips:
                    whitened = products[: len(part) * W.shape[1]].reshape(len(part), -1)
                    np.matmul(Z[: len(part), : len(W)], W, out=whitened)
                    add_squares(whitened, m, here)
    return out
