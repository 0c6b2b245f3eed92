"""Tables of categories as integer codes.

Strings, integers and truth values become codes; None, NaN and the integer −1 are missing. A table of integers is taken
as it is, without a copy: its numbers are their own names.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from deciban.errors import DomainError, InputError, column_error, shortlist
from deciban.read.labels import is_missing
from deciban.read.tables import array_of, column_name

Array = NDArray[Any]
MISSING = -1
DROP_INFINITE = "Mark it missing (NaN), or drop the row."


@dataclass(frozen=True, eq=False)
class Codes:
    """n rows of D categories as codes, and the names of the codes.

    >>> table = encode_categories([["red", "S"], ["white", None]], [])
    >>> table.values
    array([[ 0,  0],
           [ 1, -1]])
    >>> table.names
    (('red', 'white'), ('S',))
    """

    values: Array  # (n, D) of int; −1 is missing
    names: tuple[tuple[Any, ...], ...] | None  # of each feature, sorted; None if the codes are their own names

    @property
    def shape(self) -> tuple[int, int]:
        return self.values.shape

    @property
    def dtype(self) -> np.dtype:
        return self.values.dtype

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: Any) -> Any:
        return type(self)(self.values[rows], self.names)

    def on(self, places: Sequence[dict[Any, int]]) -> Array:
        """(n, D) codes under other codings, {name: code} of each feature; unknown names get the code after the last."""
        if len(places) != self.shape[1]:
            raise InputError(
                f"the table has {self.shape[1]} columns, the model {len(places)}.", remedy="Give the same columns."
            )
        if self.names is None:
            if all(_is_identity(place) for place in places):
                return self.values
            return _by_column(self.values, [_recoding(place) for place in places])
        tables = [
            np.array([*(place.get(name, len(place)) for name in names), MISSING], dtype=np.intp)
            for place, names in zip(places, self.names)
        ]
        return _by_column(self.values, [table.__getitem__ for table in tables])

    def named(self) -> Codes:
        """The same with `names` that are not None."""
        if self.names is not None:
            return self
        return _encoded([_encode_numbers(column) for column in self.values.T], len(self))

    def combined(self) -> Codes:
        """One feature whose names are the tuples that occur; missing where any of the features is."""
        table = self.named()
        names: Any = table.names
        code, tuples = np.zeros(len(table), dtype=np.intp), [()]
        for column, known in zip(table.values.T, names):
            pairs, code = np.unique(code * (len(known) + 1) + column + 1, return_inverse=True)
            head, tail = np.divmod(pairs, len(known) + 1)
            tuples = [(*tuples[h], known[t - 1] if t else None) for h, t in zip(head, tail)]
        kept = np.flatnonzero((table.values >= 0).all(axis=1))
        found, place = np.unique(code[kept], return_inverse=True)
        values = np.full((len(table), 1), MISSING)
        values[kept, 0] = place
        return Codes(values, (tuple(tuples[i] for i in found),))


@dataclass(frozen=True, eq=False)
class Named(Codes):
    """Codes that NumPy takes for an array of their names, None where missing.

    >>> Named(np.array([[1], [-1]]), (("red", "white"),))[:, 0]
    array(['white', None], dtype=object)
    """

    names: tuple[tuple[str, ...], ...]

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(object)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        return np.column_stack([spelt(*column) for column in zip(self.values.T, self.names)]).astype(dtype or object)

    def __getitem__(self, at: Any) -> Any:
        return np.asarray(self)[at] if isinstance(at, tuple) else super().__getitem__(at)

    def astype(self, dtype: DTypeLike) -> Array:
        """As an array."""
        return np.asarray(self).astype(dtype)


def spelt(codes: Array, names: Sequence[Any]) -> Array:
    """(n,) names of codes as objects, None where missing."""
    return np.array([*names, None], dtype=object)[codes]


def encode_categories(X: Any, columns: Sequence[str]) -> Codes:
    """Codes of a table of names, an array or selected columns; errors name its features by `columns`."""
    X = array_of(X)
    if isinstance(X, Named):
        return Codes(X.values, X.names)
    X = _table(X)
    if X.dtype.kind in "iu":
        return Codes(X, None)
    if X.dtype.kind == "b":
        return Codes(X.view(np.int8), None)
    if X.dtype.kind == "f":
        whole = _whole_numbers(X)
        if whole is not None:
            return Codes(whole, None)
        return _encoded([_encode_numbers(np.where(np.isnan(c), MISSING, c), np.isnan(c)) for c in X.T], len(X))
    return _encoded([_encode_column(X[:, j].tolist(), column_name(columns, j)) for j in range(X.shape[1])], len(X))


def refuse_negative(X: Codes, columns: Sequence[str]) -> None:
    """Raise a DomainError for the first integer below −1."""
    if X.names is None and X.values.min(initial=0) < MISSING:
        row, column = (int(at) for at in np.argwhere(X.values < MISSING)[0])
        raise _negative(column_name(columns, column), X.values[row, column], row)


def _negative(name: Any, value: float, row: int | None = None) -> DomainError:
    remedy = "Turn the column into strings to use its numbers as names."
    why = "; integer categories are ≥ 0, and −1 is missing."
    return column_error(DomainError, name, f"holds {value}", remedy, row, why)


def _table(X: Any) -> Array:
    if sp.issparse(X):
        raise InputError("categories must be a dense table.", remedy="Use X.toarray(), or Multinomial().")
    table = np.asarray(X)
    if table.dtype.kind in "USmM" and not isinstance(X, np.ndarray):
        table = np.array(X, dtype=object)  # otherwise NumPy turns numbers, None and NaN into strings
    if table.ndim == 1:
        table = table[:, None]
    if table.ndim != 2:
        raise InputError(
            f"expected a table of rows and columns, got an array of shape {table.shape}.", remedy="Reshape it."
        )
    return table


def _whole_numbers(X: Array) -> Array | None:
    """Floats as integers, NaN as −1; None if they are not all whole numbers."""
    gaps = np.isnan(X)
    if np.isinf(X).any():
        raise DomainError("the table of categories holds an infinite number.", remedy=DROP_INFINITE)
    whole = np.where(gaps, MISSING, X).astype(np.int64)
    return whole if np.array_equal(whole[~gaps], X[~gaps]) else None


def _encode_numbers(column: Array, gaps: Array | None = None) -> tuple[Array, tuple[Any, ...]]:
    missing = column == MISSING if gaps is None else gaps
    names, codes = np.unique(column[~missing], return_inverse=True)
    values = np.full(len(column), MISSING, dtype=np.intp)
    values[~missing] = codes
    return values, tuple(names.tolist())


def _encode_column(column: list[Any], name: str | int) -> tuple[Array, tuple[Any, ...]]:
    try:
        found: dict[Any, int] = dict.fromkeys(column, MISSING)
    except TypeError:
        raise column_error(InputError, name, "holds something that cannot be a name, such as a list") from None
    names = _sorted_names([value for value in found if not is_missing(value)], name)
    found.update(zip(names, range(len(names))))
    return np.fromiter(map(found.__getitem__, column), np.intp, len(column)), tuple(names)


def _sorted_names(names: list[Any], column: str | int) -> list[Any]:
    samples = {_kind(kind): name for kind, name in {type(name): name for name in names}.items()}
    kinds = set(samples)
    if len(kinds) > 1:
        shown = shortlist([repr(sample) for sample in samples.values()])
        what = f"mixes {' and '.join(sorted(kinds))} ({shown}), which have no order"
        raise column_error(InputError, column, what, "Turn all its values into strings.")
    names = [name.item() if isinstance(name, np.generic) else name for name in names]
    if kinds == {"numbers"}:
        if any(isinstance(name, float) and math.isinf(name) for name in names):
            raise column_error(DomainError, column, "holds an infinite number", DROP_INFINITE)
        names = [name for name in names if name != MISSING]
        low = min(names, default=0)
        if low < MISSING and all(name == int(name) for name in names):
            raise _negative(column, low)
    return sorted(names)


def _kind(kind: type) -> str:
    if issubclass(kind, (bool, int, float, np.number, np.bool_)):
        return "numbers"
    return "strings" if issubclass(kind, str) else kind.__name__


def _encoded(columns: list[tuple[Array, tuple[Any, ...]]], n: int) -> Codes:
    values = [values for values, _ in columns]
    return Codes(np.stack(values, axis=1) if values else np.empty((n, 0), np.intp), tuple(name for _, name in columns))


def _by_column(values: Array, functions: Sequence[Callable[[Array], Array]]) -> Array:
    """Each column through its own function."""
    out = np.empty(values.shape, dtype=np.intp)
    for j, function in enumerate(functions):
        out[:, j] = function(values[:, j])
    return out


def _is_identity(place: dict[Any, int]) -> bool:
    """Whether the names are 0, 1, 2, … in order."""
    return all(name == at for name, at in place.items())


def _recoding(place: dict[Any, int]) -> Callable[[Array], Array]:
    """The function from numbers that are their own names to codes; unknown ones get the code after the last."""
    numbers = sorted((name, at) for name, at in place.items() if isinstance(name, int | float))
    if not numbers:
        return lambda column: np.where(column == MISSING, MISSING, len(place))
    names, codes = np.array([name for name, _ in numbers]), np.array([at for _, at in numbers], dtype=np.intp)

    def find(column: Array) -> Array:
        at = np.minimum(np.searchsorted(names, column), len(names) - 1)
        return np.where(column == MISSING, MISSING, np.where(names[at] == column, codes[at], len(place)))

    return find
