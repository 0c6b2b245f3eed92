"""The algebra: a model is a sum of per-row statistics.

    learn  +      unlearn  −      weigh, forget  ·      merge  +

Written once, over the fields that a statistic declares:

    @dataclass(frozen=True, eq=False, repr=False)
    class PoissonStats(Stats):
        weight: Array = summed("class", "feature", floor=True)   # Σ w
        total: Array = summed("class", "feature", floor=True)    # Σ w·x

Axes have names (`labels`). Before two statistics are added they are aligned: classes, categories and words are
united, and each sum moves to its place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields, replace
from itertools import accumulate
from operator import add
from typing import Any, Self

import numpy as np

from deciban.errors import DecibanError, MergeError, UnlearnError
from deciban.statistics.axes import Array, Labels, Ragged, undeclared

TOLERANCE = 1e-9  # relative; what rounding of fractional weights may leave below zero


def summed(*axes: str, floor: bool = False) -> Any:
    """A field that is added: its axes; `floor=True` where no sum of rows can be negative."""
    return field(metadata={"axes": axes, "kind": "sum", "floor": floor})


def fixed(*axes: str) -> Any:
    """A field that is not added but must agree, such as the origin of the sums."""
    return field(metadata={"axes": axes, "kind": "fixed", "floor": False})


def nested() -> Any:
    """A field that holds one statistic, or a dict of them."""
    return field(metadata={"axes": (), "kind": "nested", "floor": False})


@dataclass(frozen=True, eq=False, repr=False)
class Stats:
    """Sums over rows, with named axes; a vector space."""

    labels: Mapping[str, Labels]  # axis → its names; not summed

    # -- the vector space ----------------------------------------------------------------------------------------
    def __add__(self, other: Self) -> Self:
        a, b = align(self, other)
        return a._zip(b, np.add)

    def __sub__(self, other: Self) -> Self:
        a, b = align(self, other)
        return a._zip(b, np.subtract)

    def __mul__(self, factor: float) -> Self:
        return self._map(
            lambda values, f: (
                _map_parts(values, lambda part: part * factor) if f.metadata["kind"] != "fixed" else values
            )
        )

    __rmul__ = __mul__

    def without(self, other: Self, error: type[DecibanError] = UnlearnError) -> Self:
        """Take rows back: `self − other`, refused where a sum that cannot be negative would be."""
        a, b = align(self, other)
        a._refuse_negative(b, error)
        return a._zip(b, _subtract_to_zero).tidy().pruned()

    def require(self, other: Self, error: type[DecibanError] = UnlearnError) -> None:
        """Refuse what `without` refuses, and change nothing."""
        a, b = align(self, other)
        a._refuse_negative(b, error)

    def tidy(self) -> Self:
        """Remove what rounding left behind; families that need it say how."""
        return self

    def same(self, other: Self) -> bool:
        """Whether labels and sums are identical to the bit."""
        if type(self) is not type(other) or dict(self.labels) != dict(other.labels):
            return False
        pairs = [(getattr(self, f.name), getattr(other, f.name)) for f in self._fields()]
        return all(_same(a, b) for a, b in pairs)

    @property
    def finite(self) -> bool:
        """Whether every sum is finite: bad input shows here."""
        return all(
            all(part.finite for part in _parts(values)) if f.metadata["kind"] == "nested" else np.isfinite(values).all()
            for f, values in self._items()
        )

    # -- names along the axes ------------------------------------------------------------------------------------
    def select(self, axis: str, index: Array) -> Self:
        """Only these positions of an axis, in this order; nested statistics share the class axis alone."""
        index = np.asarray(index, dtype=np.intp)
        labels, places = dict(self.labels), {}
        for name, names in self.labels.items():
            if name == axis:
                labels[name], places[name] = names.take(index), index
            elif isinstance(names, Ragged) and names.along == axis:
                labels[name], places[name] = names.of_features(index)

        def pick(values: Any, f: Field) -> Any:
            if f.metadata["kind"] == "nested":
                return _map_parts(values, lambda part: part.select(axis, index) if axis == "class" else part)
            for at, name in enumerate(f.metadata["axes"]):
                if name in places:
                    values = np.take(values, places[name], axis=at)
            return values

        return replace(self._map(pick), labels=labels)

    def pruned(self) -> Self:
        """Without the undeclared names under which nothing is counted; classes are their owner's to prune."""
        kept: Self = self._map(lambda values, _: _map_parts(values, lambda part: part.pruned()), kinds=("nested",))
        for axis, names in self.labels.items():
            doomed = undeclared(names)
            if axis == "class" or not doomed.any():
                continue
            for f, values in self._items():
                if f.metadata["floor"] and axis in f.metadata["axes"]:
                    others = tuple(at for at, name in enumerate(f.metadata["axes"]) if name != axis)
                    doomed = doomed & ~np.any(values != 0, axis=others)
            if doomed.any():
                kept = kept.select(axis, np.flatnonzero(~doomed))
        return kept

    def relabelled(self, labels: Mapping[str, Labels]) -> Self:
        """The same sums on larger axes: zero where a name is new."""
        labels = {axis: labels.get(axis, names) for axis, names in self.labels.items()}
        moved = {axis: labels[axis].positions(n) for axis, n in self.labels.items() if labels[axis] != n}  # type: ignore[arg-type]

        def spread(values: Any, f: Field) -> Any:
            for at, axis in enumerate(f.metadata["axes"]):
                if axis in moved:
                    shape = (*values.shape[:at], labels[axis].size, *values.shape[at + 1 :])
                    larger = np.zeros(shape, dtype=values.dtype)
                    larger[(slice(None),) * at + (moved[axis],)] = values
                    values = larger
            return values

        return replace(self._map(spread, kinds=("sum", "fixed")), labels=labels)

    def settle(self, other: Self) -> tuple[Self, Self]:
        """Make the fixed fields of two statistics agree; the default is to insist that they do."""
        for f, values in self._items():
            if f.metadata["kind"] == "fixed" and not np.array_equal(values, getattr(other, f.name)):
                raise MergeError(f"{type(self).__name__}.{f.name} differs: the two were not collected alike.")
        return self, other

    # -- derived over the fields ---------------------------------------------------------------------------------
    @classmethod
    def _fields(cls) -> list[Field]:
        return [f for f in fields(cls) if "kind" in f.metadata]

    def _items(self) -> list[tuple[Field, Any]]:
        return [(f, getattr(self, f.name)) for f in self._fields()]

    def _map(self, act: Callable[[Any, Field], Any], kinds: tuple[str, ...] = ("sum", "fixed", "nested")) -> Self:
        return replace(self, **{f.name: act(values, f) for f, values in self._items() if f.metadata["kind"] in kinds})

    def _zip(self, other: Self, act: Callable[[Any, Any], Any]) -> Self:
        new: dict[str, Any] = {}
        for f, values in self._items():
            theirs = getattr(other, f.name)
            if f.metadata["kind"] == "sum":
                new[f.name] = act(values, theirs)
            elif f.metadata["kind"] == "nested":
                new[f.name] = _zip_parts(values, theirs, lambda a, b: a._zip(b, act))
        return replace(self, **new)

    def _refuse_negative(self, other: Self, error: type[DecibanError]) -> None:
        for f, values in self._items():
            theirs = getattr(other, f.name)
            if f.metadata["kind"] == "nested":
                _zip_parts(values, theirs, lambda a, b: a._refuse_negative(b, error))
            elif f.metadata["floor"]:
                if (values >= theirs).all():
                    continue
                left = values - theirs
                if left.min(initial=0.0) == 0:  # nothing is short: the usual case, without looking for where
                    continue
                short = np.argwhere(left < -TOLERANCE * np.maximum(np.abs(values), 1))
                if len(short):
                    names = self._names(f, tuple(short[0]))
                    raise error(
                        f"{names} would have {f.name} {left[tuple(short[0])]:.6g}; these rows were never learnt by "
                        "this model. Nothing was changed: unlearn only rows that were learnt, with their labels."
                    )

    def _names(self, f: Field, at: tuple[int, ...]) -> str:
        """Where in a field, in words: class 'spam', word 'buy'."""
        return ", ".join(f"{axis} {_name(self.labels.get(axis), i)!r}" for axis, i in zip(f.metadata["axes"], at))

    def __repr__(self) -> str:
        sizes = ", ".join(f"{axis} {names.size}" for axis, names in self.labels.items())
        return f"{type(self).__name__}({sizes})"


def align(a: Stats, b: Stats) -> tuple[Any, Any]:
    """Make the labels of two statistics equal, so that their sums can be added; a MergeError where they cannot be."""
    if type(a) is not type(b):
        raise MergeError(f"{type(a).__name__} and {type(b).__name__} do not add: the models use different families.")
    labels = {axis: names.union(b.labels[axis]) for axis, names in a.labels.items()}  # type: ignore[arg-type]
    a, b = a.relabelled(labels), b.relabelled(labels)
    for f, values in a._items():
        if f.metadata["kind"] == "nested":
            theirs = getattr(b, f.name)
            if isinstance(values, dict) and values.keys() != theirs.keys():
                raise MergeError(f"the models have different blocks: {sorted(values)} and {sorted(theirs)}.")
            pairs = _zip_parts(values, theirs, align)
            a = replace(a, **{f.name: _map_parts(pairs, lambda pair: pair[0])})
            b = replace(b, **{f.name: _map_parts(pairs, lambda pair: pair[1])})
    return a.settle(b)


def _subtract_to_zero(a: Array, b: Array) -> Array:
    """A − b, where a remainder of pure rounding is exactly zero."""
    left = np.asarray(a - b)
    return np.where(np.abs(left) <= 4 * np.finfo(float).eps * np.abs(a), 0.0, left)


def _parts(values: Any) -> list[Stats]:
    return list(values.values()) if isinstance(values, dict) else [values]


def _map_parts(values: Any, act: Callable[[Any], Any]) -> Any:
    return {name: act(part) for name, part in values.items()} if isinstance(values, dict) else act(values)


def _zip_parts(a: Any, b: Any, act: Callable[[Any, Any], Any]) -> Any:
    return {name: act(part, b[name]) for name, part in a.items()} if isinstance(a, dict) else act(a, b)


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_same(part, b[name]) for name, part in a.items())
    return a.same(b) if isinstance(a, Stats) else np.array_equal(a, b)


def _name(names: Labels | None, i: int) -> Any:
    if isinstance(names, Ragged):
        part = int(np.searchsorted(names.starts + names.sizes, i, side="right"))
        return names.parts[part].names[i - names.starts[part]]
    return i if names is None else names.names[i]


# -- folds ----------
# All-but-one sums, for k-fold: prefix plus suffix, no subtraction, so nothing is lost to rounding.


def all_but_one(parts: Sequence[Stats]) -> list[Stats]:
    """For each part the sum of all the others, in 3n additions.

    >>> all_but_one([1, 2, 3, 4])  # anything that adds
    [9, 8, 7, 6]
    """
    if len(parts) < 2:
        raise ValueError("all-but-one sums need at least two parts")
    before = list(accumulate(parts, add))
    after = list(accumulate(reversed(parts), lambda total, part: part + total))[::-1]
    inner = [left + right for left, right in zip(before, after[2:])]
    return [after[1], *inner, before[-2]]
