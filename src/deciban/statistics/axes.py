"""The names along the axes of a statistic.

Two models can be added because their axes have names: classes, categories and words are united, and every sum finds
its place. Declared names keep their order and stay for ever; the others are sorted, and go when nothing is counted
under them any more. So learning and unlearning again gives back the same axis.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from deciban.errors import MergeError

Array: TypeAlias = NDArray[Any]


def in_order(names: Iterable[Any]) -> list[Any]:
    """Names sorted; an error where they cannot be compared.

    >>> in_order({"b", "a"})
    ['a', 'b']
    """
    names = list(names)
    try:
        return sorted(names)
    except TypeError:
        kinds = " and ".join(sorted({type(name).__name__ for name in names}))
        raise MergeError(f"names of mixed types ({kinds}) have no order. Make them all of one type.") from None


@dataclass(frozen=True, eq=False)
class Axis:
    """Names in order, of which the first `declared` stay even when nothing is counted there.

    >>> Axis(("b", "c")).union(Axis(("a", "c")))
    Axis(names=('a', 'b', 'c'), declared=0)
    """

    names: Sequence[Any]  # a tuple, or a range where positions are the only names
    declared: int = 0
    source: ClassVar[Any] = None  # what the names are taken from, where they are spelt out only when asked for

    @classmethod
    def of(cls, names: int | Iterable[Any]) -> Axis:
        """A declared axis: a number of positions, or names in the order given."""
        kept: Sequence[Any] = range(names) if isinstance(names, int) else tuple(names)
        return cls(kept, len(kept))

    @classmethod
    def spelt_by(cls, source: Collection[Any]) -> Axis:
        """The sorted names in a collection that does not change: hundreds of thousands take long to spell out.

        >>> Axis.spelt_by(("a", "b")) == Axis(("a", "b"))
        True
        """
        axis = cls.__new__(cls)
        object.__setattr__(axis, "source", source)
        return axis

    def __getattr__(self, name: str) -> Any:
        if name != "names" or self.source is None:
            raise AttributeError(name)
        object.__setattr__(self, "names", tuple(self.source))
        return self.names

    def __reduce__(self) -> Any:
        return Axis, (self.names, self.declared)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Axis):
            return NotImplemented
        if self is other or (self.source is not None and self.source is other.source):
            return True
        return self.declared == other.declared and self.names == other.names

    def __hash__(self) -> int:
        return hash((self.names, self.declared))

    @property
    def size(self) -> int:
        return len(self.names if self.source is None else self.source)

    def union(self, other: Axis) -> Axis:
        """The names of both: declared ones first, the others sorted."""
        if self == other:
            return self
        if isinstance(self.names, range) and isinstance(other.names, range):
            raise MergeError(f"{self.size} and {other.size} columns cannot be matched: they have no names.")
        declared = dict.fromkeys([*self.names[: self.declared], *other.names[: other.declared]])
        found = {*self.names[self.declared :], *other.names[other.declared :]}.difference(declared)
        return Axis((*declared, *in_order(found)), len(declared))

    def positions(self, other: Axis) -> Array:
        """Where each name of `other` stands here."""
        if self == other:
            return np.arange(self.size)
        place = {name: at for at, name in enumerate(self.names)}
        return np.array([place[name] for name in other.names], dtype=np.intp)

    def take(self, index: Array) -> Axis:
        """The axis of a selection, in the order given."""
        if isinstance(self.names, range) and self.declared == self.size:
            return Axis.of(len(index))
        names = tuple(self.names[i] for i in index)
        in_place = len(index) == 0 or bool(np.all(np.diff(index) > 0))
        # a selection in another order than ours is somebody's wish, so it is declared
        return Axis(names, int(np.sum(np.asarray(index) < self.declared)) if in_place else len(names))

    def __repr__(self) -> str:
        names = f"range({self.size})" if isinstance(self.names, range) else repr(self.names)
        return f"Axis(names={names}, declared={self.declared})"


@dataclass(frozen=True)
class Ragged:
    """Several axes laid end to end: the categories of feature 0, then those of feature 1, …

    >>> colours, sizes = Axis(("red", "white")), Axis(("L", "M", "S"))
    >>> Ragged((colours, sizes)).starts
    array([0, 2])
    """

    parts: tuple[Axis, ...]
    along = "feature"  # selecting features selects whole parts

    @property
    def sizes(self) -> Array:
        return np.array([part.size for part in self.parts], dtype=np.intp)

    @property
    def starts(self) -> Array:
        return np.cumsum(self.sizes) - self.sizes

    @property
    def size(self) -> int:
        return int(self.sizes.sum())

    def union(self, other: Ragged) -> Ragged:
        """Each feature's categories, united."""
        if len(self.parts) != len(other.parts):
            raise MergeError(f"{len(self.parts)} and {len(other.parts)} features cannot be matched.")
        return Ragged(tuple(a.union(b) for a, b in zip(self.parts, other.parts)))

    def positions(self, other: Ragged) -> Array:
        """Where each category of `other` stands here."""
        places = [start + a.positions(b) for start, a, b in zip(self.starts, self.parts, other.parts)]
        return np.concatenate(places) if places else np.zeros(0, dtype=np.intp)

    def take(self, index: Array) -> Ragged:
        """The axis of a selection of categories; every feature stays, perhaps without categories."""
        part = np.searchsorted(self.starts + self.sizes, index, side="right")
        return Ragged(
            tuple(axis.take(np.asarray(index)[part == j] - self.starts[j]) for j, axis in enumerate(self.parts))
        )

    def of_features(self, features: Array) -> tuple[Ragged, Array]:
        """The axis of some features only, and where their categories stand here."""
        places = [np.arange(self.starts[j], self.starts[j] + self.sizes[j]) for j in features]
        flat = np.concatenate(places) if places else np.zeros(0, dtype=np.intp)
        return Ragged(tuple(self.parts[j] for j in features)), flat

    @property
    def undeclared(self) -> Array:
        """Which categories may be pruned, (size,) of bool."""
        return np.concatenate([np.arange(part.size) >= part.declared for part in self.parts] or [np.zeros(0, bool)])


Labels: TypeAlias = Axis | Ragged


def undeclared(labels: Labels) -> Array:
    """Which names may be pruned when nothing is counted under them."""
    return labels.undeclared if isinstance(labels, Ragged) else np.arange(labels.size) >= labels.declared
