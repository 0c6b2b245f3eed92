"""Sums of products without rounding: integers in base 2³².

A float64 is an integer of 53 bits times a power of two, and so is a product of floats, with more bits. Such products
are cut into digits of 32 bits, and equal digits are added as int64. A digit at place p counts 2^(32 p).
"""

from __future__ import annotations

import numpy as np

from deciban.kernels.choice import Array, compiled, readable, readable_floats, weights_or_empty

BITS = 32  # of a digit
LIMB = 18  # bits of a part of a mantissa: a product of three parts, and a sum of seven of them, fit in an int64
HALF, MASK = np.int64(2 ** (BITS - 1)), np.int64(2**BITS - 1)
LIMB_MASK = np.int64(2**LIMB - 1)
WORK = 50  # elementary operations of one product


def product_digits(
    V: Array, weight: Array | None, codes: Array, left: Array, right: Array, K: int
) -> tuple[Array, Array, Array]:
    """Σ w·V[:, left]·V[:, right] per class, exactly: class (m,), place (m,) and digits (m, C) of the sums.

    Places without digits are left out; all values must be finite. The digits are those of `carried`.
    """
    (V,) = readable_floats(V)
    weight = None if weight is None or (weight == 1).all() else readable(weight, np.float64)
    classes, slot = np.unique(codes, return_inverse=True)
    lowest, places = _range(V, weight, left, right)
    if not len(V) or not places:
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty((0, len(left)), np.int64)
    sums = np.zeros((len(classes), len(left), places), np.int64)
    if compiled(WORK * len(V) * len(left)):
        from deciban.kernels.digits_compiled import add_products

        arrays = readable(slot.reshape(-1), np.intp), readable(left, np.intp), readable(right, np.intp)
        add_products(V, weights_or_empty(weight), *arrays, lowest, sums)
    else:
        _add_products(V, weight, slot.reshape(-1), left, right, lowest, sums)
    return carried(classes.astype(np.int64), lowest, sums.transpose(0, 2, 1))


def carried(classes: Array, lowest: int, sums: Array) -> tuple[Array, Array, Array]:
    """Bring digits (G, places, C) into [−2³¹, 2³¹), the one form of each number, and drop places without digits."""
    G, places, C = sums.shape
    digits = np.zeros((G, places + 2, C), np.int64)
    digits[:, :places] = sums
    for at in range(places + 1):
        carry = (digits[:, at] + HALF) >> BITS
        digits[:, at] -= carry << BITS
        digits[:, at + 1] += carry
    group, place = np.nonzero(digits.any(axis=2))
    return classes[group], place + lowest, digits[group, place]


def spread(group: Array, place: Array, digits: Array, classes: Array, lowest: int, places: int) -> Array:
    """Digits as (G, places, C), for the classes given."""
    sums = np.zeros((len(classes), places, digits.shape[1]), np.int64)
    sums[np.searchsorted(classes, group), place - lowest] = digits
    return sums


def _range(V: Array, weight: Array | None, left: Array, right: Array) -> tuple[int, int]:
    """Lowest place of a product of these values, and number of places; 0 places where all values are 0."""
    some = V[V != 0]
    if not some.size:
        return 0, 0
    exponent = np.frexp(some)[1]
    low, high = int(exponent.min()), int(exponent.max())
    if weight is not None:
        heavy = np.frexp(weight[weight != 0])[1] if weight.any() else np.zeros(1, int)
        least, most = int(heavy.min()), int(heavy.max())
    else:
        least, most = 1, 1
    lowest = (2 * low + least - 3 * 53) // BITS
    return lowest, (2 * high + most) // BITS - lowest + 4


def _parts(values: Array) -> tuple[Array, Array, list[Array]]:
    """Sign, exponent, and three limbs of the mantissas."""
    fraction, exponent = np.frexp(values)
    whole = np.abs(fraction * 2.0**53).astype(np.int64)
    limbs = [whole & LIMB_MASK, (whole >> LIMB) & LIMB_MASK, whole >> (2 * LIMB)]
    return np.sign(values).astype(np.int64), exponent.astype(np.int64) - 53, limbs


def _times(a: list[Array], b: list[Array]) -> list[Array]:
    """Limbs of a product."""
    out: list[Array] = [np.zeros((), np.int64)] * (len(a) + len(b) - 1)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            out[i + j] = out[i + j] + x * y
    return out


def _add_products(
    V: Array, weight: Array | None, slot: Array, left: Array, right: Array, lowest: int, sums: Array
) -> None:
    sign, exponent, limbs = _parts(V)
    signs, at = sign[:, left] * sign[:, right], exponent[:, left] + exponent[:, right]
    products = _times([limb[:, left] for limb in limbs], [limb[:, right] for limb in limbs])
    if weight is not None:
        heavy, more, parts = _parts(weight[:, None])
        signs, at, products = signs * heavy, at + more, _times(products, parts)
    cells = np.broadcast_to(np.arange(len(left)), signs.shape)
    slots = np.broadcast_to(slot[:, None], signs.shape)
    for j, product in enumerate(products):
        place, shift = np.divmod(at + LIMB * j, BITS)
        low, high = (product & MASK) << shift, (product >> BITS) << shift
        place = np.clip(place - lowest, 0, sums.shape[2] - 3)  # a product of 0 may lie outside: it adds 0
        np.add.at(sums, (slots, cells, place), signs * (low & MASK))
        np.add.at(sums, (slots, cells, place + 1), signs * ((low >> BITS) + (high & MASK)))
        np.add.at(sums, (slots, cells, place + 2), signs * (high >> BITS))
