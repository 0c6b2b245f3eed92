"""Whole numbers in order, digit by digit from the lowest to the highest, each time keeping the order of the last."""

from __future__ import annotations

import numpy as np

from ..choice import Array
from ..jit import kernel, part

DIGIT = 12  # bits of a digit at most: as many places as that are written to at once
WORD = 64  # bits


@part
def by_digit(source: Array, target: Array, total: int, shift: int, tallies: Array) -> None:
    """Copy numbers in order of one digit, those that agree in it in the order in which they are.

    There are tallies.size digits, a power of 2.
    """
    less, last = np.uint64(shift), np.uint64(tallies.size - 1)
    tallies[:] = 0
    for p in range(total):
        tallies[(np.uint64(source[p]) >> less) & last] += 1
    before = tallies.dtype.type(0)
    for at in range(tallies.size):
        here = tallies[at]
        tallies[at] = before
        before += here
    for p in range(total):
        number = source[p]
        digit = (np.uint64(number) >> less) & last
        target[np.uint64(tallies[digit])] = number
        tallies[digit] += 1


@kernel
def _sort(numbers: Array, other: Array, shift: int, digits: int, width: int, tallies: Array) -> None:
    """Sort by so many digits of that width from bit `shift` on; where their number is odd, the result is in `other`."""
    for digit in range(digits):
        by_digit(numbers, other, numbers.size, shift + digit * width, tallies)
        numbers, other = other, numbers


@kernel
def _number(packed: Array, bits: int, ranks: Array, distinct: Array) -> int:
    """Rank sorted keys, whose positions are in the lowest bits; the number of distinct ones, which are written too."""
    positions = (np.uint64(1) << np.uint64(bits)) - np.uint64(1)
    rank, last = -1, np.uint64(0)
    for p in range(packed.size):
        key = packed[p] >> np.uint64(bits)
        rank += (key != last) | (p == 0)
        distinct[np.uint64(rank)] = key
        ranks[packed[p] & positions] = rank
        last = key
    return rank + 1


def ranked(keys: Array, bits: int) -> tuple[Array, Array]:
    """The rank of each key among the distinct ones, and those in order. Keys are uint64, below 2 ** bits.

    The keys are lost.

    >>> ranked(np.array([7, 3, 7, 5], np.uint64), 3)
    (array([2, 0, 2, 1], dtype=int32), array([3, 5, 7], dtype=uint64))
    """
    positions = len(keys).bit_length()
    if bits + positions > WORD:
        distinct, ranks = np.unique(keys, return_inverse=True)
        return ranks.astype(np.int32), distinct
    keys <<= np.uint64(positions)
    keys |= np.arange(len(keys), dtype=np.uint64)
    digits = -(-max(bits, 1) // DIGIT)
    width = -(-max(bits, 1) // digits)
    other, ranks = np.empty_like(keys), np.empty(len(keys), np.int32)
    _sort(keys, other, positions, digits, width, np.empty(1 << width, np.int64))
    packed, distinct = (other, keys) if digits % 2 else (keys, other)
    return ranks, distinct[: _number(packed, positions, ranks, distinct)]
