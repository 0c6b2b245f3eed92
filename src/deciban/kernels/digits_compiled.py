"""Compiled version of `digits`: products of floats added to integer digits."""

from __future__ import annotations

import math

import numpy as np

from deciban.kernels.choice import Array
from deciban.kernels.jit import inline, kernel


@inline
def _add(digits: Array, sign: int, value: int, exponent: int, lowest: int) -> None:
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
                _add(digits, sign, p0 * w0, at, lowest)
                _add(digits, sign, p0 * w1 + p1 * w0, at + 18, lowest)
                _add(digits, sign, p0 * w2 + p1 * w1 + p2 * w0, at + 36, lowest)
                _add(digits, sign, p1 * w2 + p2 * w1 + p3 * w0, at + 54, lowest)
                _add(digits, sign, p2 * w2 + p3 * w1 + p4 * w0, at + 72, lowest)
                _add(digits, sign, p3 * w2 + p4 * w1, at + 90, lowest)
                _add(digits, sign, p4 * w2, at + 108, lowest)
            else:
                _add(digits, sign, p0 + (p1 << 18), at, lowest)
                _add(digits, sign, p2 + (p3 << 18), at + 36, lowest)
                _add(digits, sign, p4, at + 72, lowest)
