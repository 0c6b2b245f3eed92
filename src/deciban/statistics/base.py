"""Sums over rows that can be added, subtracted and scaled: a model is a sum of per-row statistics.

    learn  +      unlearn  −      weights and forgetting  ·      merge  +

The operations are written once, over the fields that a statistic declares:

    @dataclass(frozen=True, eq=False, repr=False)
    class PoissonStats(Stats):
        weight: Array = summed("class", "feature", floor=True)   # Σ w
        total: Array = summed("class", "feature", floor=True)    # Σ w·x

The axes of the sums have names (`labels`). Before two statistics are added, they are aligned: classes, categories and
words are united, and each sum moves to the position of its name.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from functools import cache
from itertools import accumulate, pairwise
from operator import add
from typing import Any, ClassVar, Protocol, Self, TypeAlias, TypeVar, cast

import numpy as np

from deciban.errors import DecibanError, InputError, MergeError, UnlearnError
from deciban.statistics.axes import Array, Axis, Labels, Ragged

TOLERANCE = 1e-9  # relative; a sum this little below zero is rounding of fractional weights
LOST = 1e6  # after subtracting from a sum this many times larger, fewer than nine digits of the rest are right
MOST_RUNS = 1_000  # runs of consecutive positions that are copied one by one
KINDS = ("sum", "fixed", "nested", "peak")

StatsField: TypeAlias = Field[Any]
T = TypeVar("T", bound="Stats")
T_co = TypeVar("T_co", bound="Stats", covariant=True)


class Additive:
    """Base of values that define `+`; 0 is the neutral element, so that Python's `sum` works."""

    def __radd__(self, other: int) -> Self:
        return self if isinstance(other, int) and other == 0 else NotImplemented


def summed(*axes: str, floor: bool = False) -> Any:
    """Declare a field that is added; `floor=True` where a sum over rows cannot be negative."""
    return field(metadata={"axes": axes, "kind": "sum", "floor": floor})


def fixed(*axes: str, default: Any = MISSING, gaps: bool = False) -> Any:
    """Declare a field that is not added and must be equal in both statistics, such as the origin of the sums.

    With `gaps`, NaN stands for a missing value.
    """
    return field(default=default, metadata={"axes": axes, "kind": "fixed", "floor": False, "gaps": gaps})


def peak(of: str, *axes: str, weight: str | None = None) -> Any:
    """Declare a field for the largest value that the sum `of` has had, where it was rounded; None if it never was.

    Rounding errors of a sum are in proportion to it, and remain when rows are unlearnt. Sums of integers below 2⁵³ are
    not rounded: they are recognised where the values are counts, by integers in the field `weight`.
    """
    return field(default=None, metadata={"axes": axes, "kind": "peak", "floor": False, "of": of, "weight": weight})


def nested(default: Any = MISSING) -> Any:
    """Declare a field that holds a statistic, or a dict of statistics; with default None, None if it is empty."""
    return field(default=default, metadata={"axes": (), "kind": "nested", "floor": False})


@dataclass(frozen=True, eq=False, repr=False)
class Stats(Additive):
    """Sums over rows, with named axes; the base class of every family's statistics.

    A subclass is a frozen dataclass whose fields are declared by `summed`, `fixed` and `nested`. Statistics can be
    added, subtracted and multiplied by a number; the two sides of a sum may have different classes, categories or
    words.

    Parameters
    ----------
    labels : mapping of str to Axis or Ragged
        Names along each axis.

    Examples
    --------
    >>> from deciban import Members, Poisson
    >>> one = Poisson().collect(np.array([[2.0], [3.0]]), Members.hard([0, 0], Axis(("a",))))
    >>> two = Poisson().collect(np.array([[5.0]]), Members.hard([0], Axis(("b",))))
    >>> one + two
    PoissonStats(class 2, feature 1)
    >>> (one + two).total.tolist()
    [[5.0], [5.0]]
    >>> (one + two).without(two).total.tolist()
    [[5.0], [0.0]]
    """

    labels: Mapping[str, Labels]
    sizes: ClassVar[Mapping[str, int]] = {}  # of axes without names that have a fixed size

    def __add__(self, other: Self) -> Self:
        a, b = align(self, other)
        return a._combine(b, np.add)

    def __sub__(self, other: Self) -> Self:
        a, b = align(self, other)
        return a._combine(b, np.subtract)

    def __mul__(self, factor: float) -> Self:
        return self.map_fields(
            lambda values, _: _map_parts(values, lambda part: part * factor),
            kinds=("sum", "nested", "peak"),
        )

    __rmul__ = __mul__

    def without(self, other: Self, error: type[DecibanError] = UnlearnError) -> Self:
        """Subtract the sums of rows that were learnt before.

        Parameters
        ----------
        other : Stats
            Sums of the rows to remove.
        error : type, default=UnlearnError
            The exception to raise.

        Returns
        -------
        Stats
            The difference, without undeclared names whose counts are now zero.

        Raises
        ------
        UnlearnError
            If a sum that cannot be negative would be: the rows were never learnt; or if the rows are so large that
            their rounding would falsify the sums of the rows that stay.
        """
        a, b = align(self, other)
        a._refuse_negative(b, error)
        a.refuse_lost(b, error)
        return a._combine(b, subtract_to_zero).tidy().pruned()

    def require(self, other: Self, error: type[DecibanError] = UnlearnError) -> None:
        """Check that rows could be removed, as `without` does.

        Parameters
        ----------
        other : Stats
            Sums of these rows.
        error : type, default=UnlearnError
            The exception to raise.

        Raises
        ------
        UnlearnError
            If a sum that cannot be negative would be: the rows were never learnt.
        """
        a, b = align(self, other)
        a._refuse_negative(b, error)

    def tidy(self) -> Self:
        """Remove rounding errors after a subtraction; by default, change nothing.

        Returns
        -------
        Stats
            The same sums, or tidied ones.
        """
        return self

    def whole(self) -> Self:
        """Return the sums of all rows, from which parameters are estimated; some statistics sum far rows separately.

        Returns
        -------
        Stats
            The sums of all rows; by default themselves.
        """
        return self.map_fields(lambda values, _: _map_parts(values, lambda part: part.whole()), kinds=("nested",))

    def same(self, other: Self) -> bool:
        """Tell whether names and sums are identical, to the bit.

        Parameters
        ----------
        other : Stats
            Other statistics.

        Returns
        -------
        bool
            Whether they are identical.
        """
        if type(self) is not type(other) or dict(self.labels) != dict(other.labels):
            return False
        sums = [(f, values) for f, values in self.items() if f.metadata["kind"] != "peak"]
        return all(_same(values, getattr(other, f.name)) for f, values in sums)

    @property
    def finite(self) -> bool:
        """Whether every sum is finite; bad input makes it infinite or NaN."""
        return all(
            all(part.finite for part in _parts(values))
            if f.metadata["kind"] == "nested"
            else values is None or bool(np.isfinite(values).all())
            for f, values in self.items()
        )

    def select(self, axis: str, index: Array) -> Self:
        """Select positions of one axis.

        Parameters
        ----------
        axis : str
            Name of the axis. Nested statistics are selected along "class" only.
        index : ndarray of shape (n,)
            Positions to keep, in the order wanted.

        Returns
        -------
        Stats
            The selected sums.
        """
        index = np.asarray(index, dtype=np.intp)
        labels, places = dict(self.labels), {}
        for name, names in self.labels.items():
            if name == axis:
                labels[name], places[name] = names.take(index), index
            elif isinstance(names, Ragged) and names.along == axis:
                labels[name], places[name] = names.of_features(index)

        def pick(values: Any, f: StatsField) -> Any:
            if f.metadata["kind"] == "nested":
                return _map_parts(values, lambda part: part.select(axis, index) if axis == "class" else part)
            for at, name in enumerate(f.metadata["axes"] if values is not None else ()):
                if name in places:
                    values = np.take(values, places[name], axis=at)
            return values

        return replace(self.map_fields(pick), labels=labels)

    def pruned(self) -> Self:
        """Remove undeclared names under which nothing is counted, except classes.

        Returns
        -------
        Stats
            The sums of the other names.
        """
        kept = self.map_fields(lambda values, _: _map_parts(values, lambda part: part.pruned()), kinds=("nested",))
        for axis, names in self.labels.items():
            if axis == "class":
                continue
            unused = names.undeclared
            if not unused.any():
                continue
            for f, values in self.items():
                if f.metadata["floor"] and axis in f.metadata["axes"]:
                    others = tuple(at for at, name in enumerate(f.metadata["axes"]) if name != axis)
                    unused = unused & ~np.any(values != 0, axis=others)
            if unused.any():
                kept = kept.select(axis, np.flatnonzero(~unused))
        return kept

    def relabelled(self, labels: Mapping[str, Labels]) -> Self:
        """Move the sums to larger axes; sums of new names are zero.

        Parameters
        ----------
        labels : mapping of str to Axis or Ragged
            Axes that hold all names of the present ones; axes that are not given stay as they are.

        Returns
        -------
        Stats
            The same sums on the new axes.
        """
        labels = {axis: labels.get(axis, names) for axis, names in self.labels.items()}
        moved = {axis: labels[axis].positions(n) for axis, n in self.labels.items() if labels[axis] != n}  # type: ignore[arg-type]  # an axis has one type
        if not moved:
            return replace(self, labels=labels)

        def spread(values: Array, f: StatsField) -> Array:
            for at, axis in enumerate(f.metadata["axes"] if values is not None else ()):
                if axis in moved:
                    shape = (*values.shape[:at], labels[axis].size, *values.shape[at + 1 :])
                    larger = np.zeros(shape, dtype=values.dtype)
                    for own, place in _runs(moved[axis]):
                        larger[(slice(None),) * at + (place,)] = values[(slice(None),) * at + (own,)]
                    values = larger
            return values

        return replace(self.map_fields(spread, kinds=("sum", "fixed", "peak")), labels=labels)

    def settle(self, other: Self) -> tuple[Self, Self]:
        """Make the fixed fields of two statistics equal; by default they must be.

        Parameters
        ----------
        other : Stats
            Other statistics.

        Returns
        -------
        self, other : Stats
            Both, with equal fixed fields.

        Raises
        ------
        MergeError
            If a fixed field differs.
        """
        for f, values in self.items("fixed"):
            if not np.array_equal(values, getattr(other, f.name)):
                raise MergeError(f"{type(self).__name__}.{f.name} differs: the two were not collected alike.")
        return self, other

    @classmethod
    def stats_fields(cls) -> list[StatsField]:
        """List the declared fields.

        Returns
        -------
        list of dataclasses.Field
            Each with `axes`, `kind` ("sum", "fixed" or "nested") and `floor` in its metadata.
        """
        return list(_stats_fields(cast(Hashable, cls)))

    def items(self, kind: str | None = None) -> list[tuple[StatsField, Any]]:
        """List the declared fields with their values.

        Parameters
        ----------
        kind : str, optional
            The kind of the fields ("sum", "fixed", "nested" or "peak"). If None, all are listed.

        Returns
        -------
        list of (dataclasses.Field, value)
            A value is an array, a statistic, or a dict of statistics.
        """
        return [(f, getattr(self, f.name)) for f in self.stats_fields() if kind in (None, f.metadata["kind"])]

    def map_fields(self, act: Callable[[Any, StatsField], Any], kinds: Sequence[str] = KINDS) -> Self:
        """Replace the value of each declared field.

        Parameters
        ----------
        act : callable
            Function of (value, field) that returns the new value.
        kinds : sequence of str, default=("sum", "fixed", "nested")
            Kinds of fields to replace; the others stay as they are.

        Returns
        -------
        Stats
            Statistics with the new values.
        """
        new = {f.name: act(getattr(self, f.name), f) for f in self.stats_fields() if f.metadata["kind"] in kinds}
        return replace(self, **new) if new else self

    def _combine(self, other: Self, act: Callable[[Array, Array], Array]) -> Self:
        """Apply a function of two arrays to every summed field of two aligned statistics."""
        new: dict[str, Any] = {}
        for f, values in self.items():
            theirs = getattr(other, f.name)
            if f.metadata["kind"] == "sum":
                new[f.name] = act(values, theirs)
            elif f.metadata["kind"] == "nested":
                new[f.name] = _zip_parts(values, theirs, lambda a, b: a._combine(b, act))
            elif f.metadata["kind"] == "peak":
                of = f.metadata["of"]
                counts = _are_counts(f, self, other)
                sums = getattr(self, of), getattr(other, of), new[of]
                new[f.name] = _highest([values, theirs, *(_rounded(each, counts) for each in sums)])
        return replace(self, **new)

    def _refuse_negative(self, other: Self, error: type[DecibanError]) -> None:
        for f, values in self.items():
            theirs = getattr(other, f.name)
            if f.metadata["kind"] == "nested":
                _zip_parts(values, theirs, lambda a, b: a._refuse_negative(b, error))
            elif f.metadata["floor"]:
                if (values >= theirs).all():  # the usual case, decided without further arrays
                    continue
                left = values - theirs
                if left.min(initial=0.0) == 0:
                    continue
                short = np.argwhere(left < -TOLERANCE * np.maximum(np.abs(values), 1))
                if len(short):
                    at = tuple(short[0])
                    raise error(
                        f"{self._position(f, at)} would have {f.name} {left[at]:.6g}; these rows were never learnt by "
                        "this model. Nothing was changed: unlearn only rows that were learnt, with their labels."
                    )

    def refuse_lost(self, other: Self, error: type[DecibanError]) -> None:
        """Refuse to remove rows if too few digits of the rest would be right; by default, check nested statistics.

        Parameters
        ----------
        other : Stats
            Sums of the rows to remove.
        error : type of DecibanError
            Class of the error that is raised.
        """
        for f, values in self.items("nested"):
            _zip_parts(values, getattr(other, f.name), lambda a, b: a.refuse_lost(b, error))

    def refuse_lost_digits(
        self, name: str, other: Self, rows: Array, error: type[DecibanError], least: float = 0.0
    ) -> None:
        """Refuse to remove so much from a sum of values that fewer than nine digits of the rest are right.

        Sums of integers below 2⁵³ are exact.

        Parameters
        ----------
        name : str
            Name of the sum.
        other : Stats
            Sums of the rows to remove.
        rows : ndarray
            Weight that stays, for each number of the sum.
        error : type of DecibanError
            Class of the error that is raised.
        least : float, default=0.0
            A smaller rest counts as this.
        """
        was, taken = getattr(self, name), getattr(other, name)
        held = next(f for f in self.stats_fields() if f.metadata.get("of") == name)
        counts = _are_counts(held, self, other)
        most = _highest([getattr(self, held.name), _rounded(was, counts), _rounded(taken, counts)])
        if most is None:
            return
        lost = (taken > 0) & (rows > 0) & (most > LOST * np.maximum(was - taken, least))
        if lost.any():
            at = tuple(np.argwhere(lost)[0])
            f = next(f for f in self.stats_fields() if f.name == name)
            raise error(
                f"{self._position(f, at)}: the sum has been {most[at]:.6g}, and its rounding would falsify what stays "
                f"({was[at] - taken[at]:.6g}).",
                remedy="Nothing was changed: fit again without these rows.",
            )

    def _position(self, f: StatsField, at: tuple[int, ...]) -> str:
        """Return a position in a field as text: class 'spam', word 'buy'."""
        return ", ".join(f"{axis} {_name(self.labels.get(axis), i)!r}" for axis, i in zip(f.metadata["axes"], at))

    def __repr__(self) -> str:
        sizes = ", ".join(f"{axis} {names.size}" for axis, names in self.labels.items())
        return f"{type(self).__name__}({sizes})"


class Collects(Protocol[T_co]):
    """The methods of a family that sum rows, and that name the first bad value."""

    def collect(self, X: Any, members: Any) -> T_co:
        """Return the sums of rows."""

    def check(self, X: Any, columns: Sequence[str], learning: bool = False) -> None:
        """Raise an error that names the first bad value."""


@cache
def _stats_fields(cls: Any) -> tuple[StatsField, ...]:
    """Return the declared fields of a class of statistics."""
    return tuple(f for f in fields(cls) if "kind" in f.metadata)


def finite(sums: T, family: Collects[Any], X: Any, columns: Sequence[str]) -> T:
    """Return the sums if they are finite; otherwise raise the error that names the value."""
    if not sums.finite:
        family.check(X, columns, learning=True)
        raise InputError("values are so large that their sums overflow. Rescale the columns.")
    return sums


def align(a: T, b: T) -> tuple[T, T]:
    """Make the axes of two statistics equal, so that their sums can be added; a MergeError if that is impossible."""
    if type(a) is not type(b):
        raise MergeError(f"{type(a).__name__} and {type(b).__name__} do not add: the models use different families.")
    if a.labels != b.labels:
        labels = {axis: names.union(b.labels[axis]) for axis, names in a.labels.items()}  # type: ignore[arg-type]  # an axis has one type
        a, b = a.relabelled(labels), b.relabelled(labels)
    for f, values in a.items("nested"):
        theirs = getattr(b, f.name)
        if values is None or theirs is None:
            continue
        if isinstance(values, dict) and values.keys() != theirs.keys():
            raise MergeError(f"the models have different blocks: {sorted(values)} and {sorted(theirs)}.")
        pairs = _zip_parts(values, theirs, align)
        a = replace(a, **{f.name: _map_parts(pairs, lambda pair: pair[0])})
        b = replace(b, **{f.name: _map_parts(pairs, lambda pair: pair[1])})
    return a.settle(b)


def _runs(places: Array) -> Iterator[tuple[slice, Any]]:
    """Yield positions and their places, as slices where few runs of consecutive places cover them all.

    Copying slices is four times faster than copying by positions.

    >>> list(_runs(np.array([0, 1, 3])))
    [(slice(0, 2, None), slice(0, 2, None)), (slice(2, 3, None), slice(3, 4, None))]
    """
    cuts = np.flatnonzero(np.diff(places) != 1) + 1
    if len(cuts) > MOST_RUNS:
        yield slice(None), places
        return
    for begin, end in pairwise([0, *cuts.tolist(), len(places)]):
        if end > begin:
            yield slice(begin, end), slice(int(places[begin]), int(places[begin]) + end - begin)


def all_but_one(parts: Sequence[T]) -> list[T]:
    """Return for each part the sum of all others, for k-fold, in 3n additions: prefix plus suffix sums.

    No part is subtracted, so that no digits are lost.

    >>> all_but_one([1, 2, 3, 4])  # anything that adds
    [9, 8, 7, 6]
    """
    if len(parts) < 2:
        raise ValueError("all-but-one sums need at least two parts")
    before = list(accumulate(parts, add))
    after = list(accumulate(reversed(parts), lambda total, part: part + total))[::-1]
    inner = [left + right for left, right in zip(before, after[2:])]
    return [after[1], *inner, before[-2]]


def _are_counts(f: StatsField, *each: Stats) -> bool:
    """Whether the sums of which `f` is the peak are sums of counts with integer weights."""
    if f.metadata["weight"] is None:
        return False
    weights = [getattr(stats, f.metadata["weight"]) for stats in each]
    return all(bool((weight == np.rint(weight)).all()) for weight in weights)


def is_exact(sums: Array) -> Array:
    """Whether sums have not been rounded, (…) of bool: multiples of 2⁻²⁰ below 2³³ count as exact.

    >>> is_exact(np.array([3.0, 0.1, 1e15]))
    array([ True, False, False])
    """
    scaled = np.asarray(sums) * 2.0**20
    return np.asarray((np.abs(scaled) < 2.0**53) & (scaled == np.rint(scaled)))


def _rounded(sums: Array, counts: bool) -> Array | None:
    """Return the sums that may have been rounded, 0 for the others; None if there is none."""
    if not counts:
        return sums
    if sums.max(initial=0.0) < 2**53 and (sums == np.rint(sums)).all():
        return None
    return np.where((sums == np.rint(sums)) & (sums < 2**53), 0.0, sums)


def _highest(each: Sequence[Array | None]) -> Array | None:
    """Return the largest number of several arrays, cell by cell; None stands for zeros."""
    some = [one for one in each if one is not None]
    return np.maximum.reduce(some) if some else None


def subtract_to_zero(a: Array, b: Array) -> Array:
    """Return a − b, and exactly zero where the difference is only rounding."""
    left = np.asarray(a - b)
    return np.where(np.abs(left) <= 4 * np.finfo(float).eps * np.abs(a), 0.0, left)


# A nested field holds one statistic, a dict of them, or None; these functions treat them alike.
def _parts(values: Stats | dict[str, Stats] | None) -> list[Stats]:
    if values is None:
        return []
    return list(values.values()) if isinstance(values, dict) else [values]


def _map_parts(values: Any, act: Callable[[Any], Any]) -> Any:
    if values is None:
        return None
    return {name: act(part) for name, part in values.items()} if isinstance(values, dict) else act(values)


def _zip_parts(a: Any, b: Any, act: Callable[[Any, Any], Any]) -> Any:
    if a is None or b is None:
        return None
    return {name: act(part, b[name]) for name, part in a.items()} if isinstance(a, dict) else act(a, b)


def _same(a: Any, b: Any) -> bool:
    if a is None or b is None:
        return a is b
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_same(part, b[name]) for name, part in a.items())
    return a.same(b) if isinstance(a, Stats) else np.array_equal(a, b, equal_nan=np.asarray(a).dtype.kind == "f")


def _name(names: Labels | None, i: int) -> object:
    """Return the name at position i of an axis."""
    if isinstance(names, Ragged):
        part = int(np.searchsorted(names.starts + names.sizes, i, side="right"))
        return _name(names.parts[part], i - names.starts[part])
    return names.names[i] if isinstance(names, Axis) else i
