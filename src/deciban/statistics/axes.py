"""Names along the axes of a statistic.

Two models can be added because their axes have names: classes, categories and words are united, and each sum moves to
the position of its name. Declared names keep their order and are never removed. The other names are sorted, and are
removed when their counts return to zero, so that learning rows and unlearning them gives back the same axis.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, TypeAlias, overload, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from deciban.errors import MergeError

Array: TypeAlias = NDArray[Any]


@runtime_checkable
class NameTable(Collection[Hashable], Protocol):
    """A collection of sorted names that does not change, with faster operations than those of tuples."""

    def union(self, other: Any) -> NameTable:
        """Unite the names of two tables; if one holds all names of the other, the result is that table itself."""

    def positions(self, other: Any) -> Array:
        """Return the position of each name of another table, (n,); −1 for names that are not in this one."""

    def take(self, index: Array) -> NameTable:
        """Select names by ascending positions."""


class LazyNames(Sequence[Hashable]):
    """The names held by a collection that does not change, converted to a tuple on first access.

    The conversion takes long for hundreds of thousands of words, and most operations need the number of names only.
    Axes are compared, united and selected by the methods of the collection if it is a `NameTable`. Pickled as a tuple,
    unless the collection is a `NameTable`, which is pickled itself.

    >>> names = LazyNames(("a", "b"))
    >>> len(names), names[0], names == ("a", "b")
    (2, 'a', True)
    """

    def __init__(self, source: Collection[Hashable]) -> None:
        self.source = source
        self._tuple: tuple[Hashable, ...] | None = None  # made on first access

    @property
    def as_tuple(self) -> tuple[Hashable, ...]:
        """The names."""
        if self._tuple is None:
            self._tuple = tuple(self.source)
        return self._tuple

    def __len__(self) -> int:
        return len(self.source)

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self.as_tuple)

    @overload
    def __getitem__(self, at: int) -> Hashable: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Hashable]: ...
    def __getitem__(self, at: int | slice) -> Hashable | Sequence[Hashable]:
        return self.as_tuple[at]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, LazyNames):
            return self.source is other.source or self.source == other.source
        return self.as_tuple == other if isinstance(other, tuple) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.as_tuple)

    def __reduce__(self) -> tuple[type, tuple[Collection[Hashable]]]:
        return (LazyNames, (self.source,)) if isinstance(self.source, NameTable) else (tuple, (self.as_tuple,))

    def __repr__(self) -> str:
        return repr(self.as_tuple)


@dataclass(frozen=True)
class Axis:
    """Names along one axis of a statistic, in order.

    Parameters
    ----------
    names : Sequence
        The names: a tuple, a `LazyNames`, or a range where columns are known by their position only.
    declared : int, default=0
        The first `declared` names are kept even if nothing is counted under them. The others are in sorted order.

    Examples
    --------
    >>> Axis(("b", "c")).union(Axis(("a", "c")))
    Axis(names=('a', 'b', 'c'), declared=0)
    """

    names: Sequence[Any]
    declared: int = 0

    @classmethod
    def of(cls, names: int | Iterable[Hashable]) -> Axis:
        """Make an axis whose names are all declared.

        Parameters
        ----------
        names : int or iterable
            Names in their order, or the number of columns that have none.

        Returns
        -------
        Axis
            The axis.
        """
        kept: Sequence[Hashable] = range(names) if isinstance(names, int) else tuple(names)
        return cls(kept, len(kept))

    @property
    def size(self) -> int:
        """Number of names."""
        return len(self.names)

    @property
    def undeclared(self) -> Array:
        """Which names are removed when nothing is counted under them, (size,) of bool."""
        return np.arange(self.size) >= self.declared

    def union(self, other: Axis) -> Axis:
        """Unite the names of two axes.

        Parameters
        ----------
        other : Axis
            Another axis.

        Returns
        -------
        Axis
            Declared names of both in their order, then the other names, sorted.

        Raises
        ------
        MergeError
            If both axes have no names and differ in size, or if their names cannot be compared.
        """
        if self == other:
            return self
        if isinstance(self.names, range) and isinstance(other.names, range):
            raise MergeError(f"{self.size} and {other.size} columns cannot be matched: they have no names.")
        ours, theirs = _table(self), _table(other)
        if ours is not None and theirs is not None:
            return Axis(LazyNames(ours.union(theirs)))
        declared = dict.fromkeys([*self.names[: self.declared], *other.names[: other.declared]])
        found = {*self.names[self.declared :], *other.names[other.declared :]}.difference(declared)
        return Axis((*declared, *sorted_names(found)), len(declared))

    def positions(self, other: Axis) -> Array:
        """Find each name of another axis.

        Parameters
        ----------
        other : Axis
            An axis whose names all occur in this one.

        Returns
        -------
        ndarray of shape (other.size,)
            Positions in this axis.
        """
        if self == other:
            return np.arange(self.size)
        ours, theirs = _table(self), _table(other)
        if ours is not None and theirs is not None:
            return ours.positions(theirs)
        place = {name: at for at, name in enumerate(self.names)}
        return np.array([place[name] for name in other.names], dtype=np.intp)

    def take(self, index: Array) -> Axis:
        """Select names.

        Parameters
        ----------
        index : ndarray of shape (n,)
            Positions of the names to keep, in the order wanted.

        Returns
        -------
        Axis
            The selected names. An order other than that of this axis makes them declared, since it must be kept.
        """
        if isinstance(self.names, range) and self.declared == self.size:
            return Axis.of(len(index))
        rising = len(index) == 0 or bool(np.all(np.diff(index) > 0))
        table = _table(self)
        if rising and table is not None:
            return Axis(LazyNames(table.take(index)))
        names = tuple(self.names[i] for i in index)
        return Axis(names, int(np.sum(np.asarray(index) < self.declared)) if rising else len(names))


@dataclass(frozen=True)
class Ragged:
    """Several axes concatenated: the categories of feature 0, then those of feature 1, and so on.

    >>> colours, sizes = Axis(("red", "white")), Axis(("L", "M", "S"))
    >>> Ragged((colours, sizes)).starts
    array([0, 2])
    """

    parts: tuple[Axis, ...]
    sizes: Array = field(init=False, repr=False, compare=False)  # (D,) number of names of each part
    starts: Array = field(init=False, repr=False, compare=False)  # (D,) position of the first name of each part
    size: int = field(init=False, repr=False, compare=False)  # number of names of all parts
    closed: bool = field(init=False, repr=False, compare=False)  # whether all names are declared
    along: ClassVar[str] = "feature"  # the axis whose selection selects whole parts

    def __post_init__(self) -> None:
        sizes = np.array([len(part.names) for part in self.parts], dtype=np.intp)
        object.__setattr__(self, "sizes", sizes)
        object.__setattr__(self, "starts", np.cumsum(sizes) - sizes)
        object.__setattr__(self, "size", int(sizes.sum()))
        object.__setattr__(self, "closed", bool(np.all(sizes == [part.declared for part in self.parts])))

    @property
    def undeclared(self) -> Array:
        """Which names are removed when nothing is counted under them, (size,) of bool."""
        return np.concatenate([part.undeclared for part in self.parts] or [np.zeros(0, dtype=bool)])

    def union(self, other: Ragged) -> Ragged:
        """Unite the names of both, part by part."""
        if len(self.parts) != len(other.parts):
            raise MergeError(f"{len(self.parts)} and {len(other.parts)} features cannot be matched.")
        return Ragged(tuple(a.union(b) for a, b in zip(self.parts, other.parts)))

    def positions(self, other: Ragged) -> Array:
        """Return the position of each name of `other` in this axis, (other.size,)."""
        places = [start + a.positions(b) for start, a, b in zip(self.starts, self.parts, other.parts)]
        return np.concatenate(places) if places else np.zeros(0, dtype=np.intp)

    def take(self, index: Array) -> Ragged:
        """Select categories; all parts are kept, also those left without categories."""
        part = np.searchsorted(self.starts + self.sizes, index, side="right")
        return Ragged(
            tuple(axis.take(np.asarray(index)[part == j] - self.starts[j]) for j, axis in enumerate(self.parts))
        )

    def of_features(self, features: Array) -> tuple[Ragged, Array]:
        """Select parts, and return the positions of their names in this axis."""
        places = [np.arange(self.starts[j], self.starts[j] + self.sizes[j]) for j in features]
        flat = np.concatenate(places) if places else np.zeros(0, dtype=np.intp)
        return Ragged(tuple(self.parts[j] for j in features)), flat


Labels: TypeAlias = Axis | Ragged


def _table(axis: Axis) -> NameTable | None:
    """Return the table that holds all names of an axis; None if one is declared, or if there is no table."""
    if axis.declared or not isinstance(axis.names, LazyNames):  # first: `isinstance` with a protocol is slow
        return None
    return axis.names.source if isinstance(axis.names.source, NameTable) else None


def sorted_names(names: Iterable[Any]) -> list[Any]:
    """Return names in sorted order; raise MergeError if they cannot be compared.

    >>> sorted_names({"b", "a"})
    ['a', 'b']
    """
    names = list(names)
    try:
        return sorted(names)
    except TypeError:
        kinds = " and ".join(sorted({type(name).__name__ for name in names}))
        raise MergeError(f"names of mixed types ({kinds}) have no order. Make them all of one type.") from None
