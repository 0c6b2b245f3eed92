"""Sums of products without rounding, as integer digits in base 2³².

Subtracting what was added gives back the same bits, in any order and next to values of any size. A float64 is an
integer of 53 bits times a power of two, and so is a product of floats, with more bits. Such products are cut into
digits of 32 bits, and digits of equal place are added as int64: a digit at place p counts 2^(32 p). A sum has one form
only: digits in [−2³¹, 2³¹), and no entry for a place without digits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from deciban.errors import DecibanError, InputError
from deciban.kernels.choice import compiled, readable, readable_floats, weights_or_empty
from deciban.statistics.axes import Array, Axis, Labels
from deciban.statistics.base import Stats, summed

BITS = 32  # of a digit
LIMB = 18  # bits of a part of a mantissa: a product of three parts, and a sum of seven of them, fit in an int64
HALF, MASK = np.int64(2 ** (BITS - 1)), np.int64(2**BITS - 1)
LIMB_MASK = np.int64(2**LIMB - 1)
WORK = 50  # elementary operations of one product

LOWEST = -70  # place of the lowest digit of a product of two float64 numbers
HIGHEST = 31  # place of the highest digit of a float64: beyond it, a sum overflows


@dataclass(frozen=True, eq=False, repr=False)
class ExactSums(Stats):
    """Sums of C cells per class, as digits of base 2³²; classes without such sums have no entry."""

    group: Array = summed("entry")  # (m,) int64, position of the class
    place: Array = summed("entry")  # (m,) int64, p: a digit counts 2^(32 p)
    digits: Array = summed("entry", "cell")  # (m, C) int64
    rounded: Array = summed("class")  # (K,) 1 where sums were multiplied by a factor that is no power of two

    @classmethod
    def none(cls, classes: Axis, cells: int) -> ExactSums:
        """Return sums without entries."""
        empty = np.empty(0, np.int64)
        labels = {"class": classes, "cell": Axis.of(cells)}
        return cls(labels, empty, empty, np.empty((0, cells), np.int64), np.zeros(classes.size))

    @classmethod
    def of_products(
        cls, V: Array, weight: Array | None, codes: Array, cells: tuple[Array, Array], classes: Axis
    ) -> ExactSums:
        """Sum w·v_i·v_j over rows, for pairs (i, j) of columns of V."""
        group, place, digits = product_digits(V, weight, codes, *cells, classes.size)
        labels = {"class": classes, "cell": Axis.of(len(cells[0]))}
        return cls(labels, group, place, digits, np.zeros(classes.size))

    @property
    def empty(self) -> bool:
        """Whether there are no entries; the sums of a released model are None."""
        return self.group is None or not len(self.group)

    @property
    def finite(self) -> bool:
        """Whether every sum is less than the largest float."""
        return self.empty or int(self.place.max()) <= HIGHEST

    def totals(self) -> tuple[Array, Array, Array]:
        """Return the classes that have entries (G,), and their sums (G, C) as high + low, 106 bits."""
        classes = np.unique(self.group)
        high, low = np.zeros((2, len(classes), self.digits.shape[1]))
        slot = np.searchsorted(classes, self.group)
        for at in np.argsort(self.place, kind="stable"):  # the smallest first
            k = slot[at]
            high[k], error = two_sum(high[k], np.ldexp(self.digits[at].astype(float), BITS * int(self.place[at])))
            high[k], low[k] = two_sum(high[k], low[k] + error)
        return classes, high, low

    def take_cells(self, cells: Array) -> ExactSums:
        """Return the sums of some cells."""
        digits = self.digits[:, cells]
        kept = digits.any(axis=1)
        labels = {**self.labels, "cell": Axis.of(len(cells))}
        return replace(self, labels=labels, group=self.group[kept], place=self.place[kept], digits=digits[kept])

    def without_groups(self, gone: Array) -> Self:
        """Return the sums without the classes for which `gone` (K,) holds."""
        kept = ~gone[self.group]
        rounded = np.where(gone, 0.0, self.rounded)
        return replace(self, group=self.group[kept], place=self.place[kept], digits=self.digits[kept], rounded=rounded)

    def validate(self) -> None:
        """Raise InputError if an entry has no class, or a power of two that no product of two doubles has."""
        if self.rounded is None:  # names without sums, of a released family
            return
        K = len(self.rounded)
        right = (
            all(each.dtype == np.int64 for each in (self.group, self.place, self.digits))
            and bool(((self.group >= 0) & (self.group < K)).all())
            and bool(((self.place >= LOWEST) & (self.place <= HIGHEST)).all())
            and bool((np.abs(self.digits) <= 2 ** (BITS - 1)).all())
        )
        if not right:
            raise InputError("the digits of exact sums contradict each other.")

    # -- the algebra -----------------------------------------------------------------------------------------------
    def relabelled(self, labels: Mapping[str, Labels]) -> Self:
        """Move the sums to a larger class axis."""
        old: Any = self.labels["class"]
        new: Any = labels.get("class", old)
        if new == old:
            return self
        at = new.positions(old)
        rounded = np.zeros(new.size)
        rounded[at] = self.rounded
        return replace(self, labels={**self.labels, "class": new}, group=at[self.group], rounded=rounded)

    def select(self, axis: str, index: Array) -> Self:
        """Select classes."""
        if axis != "class":
            return self
        index = np.asarray(index, dtype=np.intp)
        at = [np.flatnonzero(self.group == k) for k in index]
        entries = np.concatenate([*at, np.empty(0, np.intp)]).astype(np.intp)
        group = np.repeat(np.arange(len(index), dtype=np.int64), [len(each) for each in at])
        return replace(
            self,
            labels={**self.labels, "class": self.labels["class"].take(index)},
            group=group,
            place=self.place[entries],
            digits=self.digits[entries],
            rounded=self.rounded[index],
        )

    def settle(self, other: Self) -> tuple[Self, Self]:
        """Return both: there are no fixed fields."""
        return self, other

    def __mul__(self, factor: float) -> Self:
        if self.empty or factor == 1:
            return self
        if factor == 0:
            return self.without_groups(np.ones(len(self.rounded), dtype=bool))
        fraction, power = np.frexp(factor)
        if abs(fraction) == 0.5:
            places, bits = divmod(int(power) - 1, BITS)
            shift = np.int64(np.sign(factor)) << np.int64(bits)
            return self._canonical(self.group, self.place + places, self.digits * shift, self.rounded)
        classes, high, low = self.totals()
        rounded = self.rounded.copy()
        rounded[classes] = 1.0
        ones, cells = np.ones((len(classes), 1)), np.arange(self.digits.shape[1])
        pairs = cells + 1, np.zeros_like(cells)
        axis: Any = self.labels["class"]
        product, error = two_product(high, np.full_like(high, factor))
        parts = [
            ExactSums.of_products(np.hstack([ones, part]), None, classes, pairs, axis)
            for part in (product, error + low * factor)
        ]
        return replace(parts[0] + parts[1], rounded=rounded)  # type: ignore[return-value]

    __rmul__ = __mul__

    def _combine(self, other: Self, act: Callable[[Array, Array], Array]) -> Self:
        sign = 1 if act is np.add else -1
        if other.empty:
            return self
        rounded = np.maximum(self.rounded, other.rounded)
        if self.empty and sign == 1:
            return replace(other, rounded=rounded)
        group, place = np.concatenate([self.group, other.group]), np.concatenate([self.place, other.place])
        return self._canonical(group, place, np.concatenate([self.digits, sign * other.digits]), rounded)

    def _canonical(self, group: Array, place: Array, digits: Array, rounded: Array) -> Self:
        classes, lowest = np.unique(group), int(place.min())
        sums = np.zeros((len(classes), int(place.max()) - lowest + 1, digits.shape[1]), np.int64)
        np.add.at(sums, (np.searchsorted(classes, group), place - lowest), digits)
        group, place, digits = carried(classes, lowest, sums)
        return replace(self, group=group, place=place, digits=digits, rounded=rounded)

    def _refuse_negative(self, other: Self, error: type[DecibanError]) -> None:
        """Do nothing: the statistics that hold these sums check those which cannot be negative."""


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Return the rounded sum and its rounding error."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """Return the rounded product and its rounding error (Dekker)."""
    (a1, a2), (b1, b2) = _halves(a), _halves(b)
    product = a * b
    return product, ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2


def _halves(a: Array) -> tuple[Array, Array]:
    """Split a float into two of at most 26 bits."""
    fraction, exponent = np.frexp(a)
    high = np.round(fraction * 2.0**26) * 2.0**-26
    return np.ldexp(high, exponent), np.ldexp(fraction - high, exponent)


# -- digits of products ------------------------------------------------------------------------------------------------


def product_digits(
    V: Array, weight: Array | None, codes: Array, left: Array, right: Array, K: int
) -> tuple[Array, Array, Array]:
    """Sum w·V[:, left]·V[:, right] per class, exactly: class (m,), place (m,) and digits (m, C) of the sums.

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
        from deciban.kernels.dense_compiled import add_products

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


def _range(V: Array, weight: Array | None, left: Array, right: Array) -> tuple[int, int]:
    """Return the lowest place of a product of these values, and the number of places: 0 if all values are 0."""
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
    """Return sign, exponent, and three limbs of the mantissas."""
    fraction, exponent = np.frexp(values)
    whole = np.abs(fraction * 2.0**53).astype(np.int64)
    limbs = [whole & LIMB_MASK, (whole >> LIMB) & LIMB_MASK, whole >> (2 * LIMB)]
    return np.sign(values).astype(np.int64), exponent.astype(np.int64) - 53, limbs


def _times(a: list[Array], b: list[Array]) -> list[Array]:
    """Return the limbs of a product."""
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
