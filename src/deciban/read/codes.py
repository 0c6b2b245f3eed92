"""Codes: labels and categories as integers, with the sorted names that the integers stand for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from deciban import kernels
from deciban.errors import InputError, UnknownLabelError, shortlist

Array = NDArray[Any]
MISSING = -1  # code of a missing value


# -- labels ------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Labels:
    """One label a row, held as codes; as an array, the labels themselves.

    >>> np.asarray(Labels(("ham", "spam"), np.array([1, 0])))
    array(['spam', 'ham'], dtype=object)
    """

    names: tuple[Any, ...]  # (K,) sorted; each is the label of some row
    codes: Array  # (n,) of int: positions in `names`

    def __len__(self) -> int:
        return len(self.codes)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        kind = dtype or (np.int64 if self.names and isinstance(self.names[0], int) else object)
        return np.array(self.names, dtype=kind)[self.codes]

    def __getitem__(self, rows: slice | Array) -> Labels:
        used, codes = np.unique(self.codes[rows], return_inverse=True)
        return Labels(tuple(self.names[i] for i in used), codes.reshape(-1))


def encode_labels(y: ArrayLike | Labels | None, n: int) -> tuple[tuple[Any, ...], Array]:
    """The sorted names of the labels, and for each of n rows the position of its own.

    >>> encode_labels(["b", "a", "b"], 3)
    (('a', 'b'), array([1, 0, 1]))
    """
    if y is None:
        raise InputError("requires y to be passed, but the target y is None.", remedy="Give one label a row.")
    if isinstance(y, Labels) and len(y) == n:
        return y.names, y.codes
    labels = _one_column(np.asarray(list(y), dtype=object) if _has_strings(y) else np.asarray(y))
    if len(labels) != n:
        raise one_label_a_row(n, len(labels))
    if labels.dtype.kind in "iub":
        found = kernels.encode_integers(labels)
        if found is not None:
            return tuple(found[0].tolist()), found[1]
    if labels.dtype.kind == "f":
        _refuse_continuous(labels)
    if labels.dtype.kind == "c":
        raise InputError("Complex data not supported: labels are names, that is strings, whole numbers or booleans.")
    if labels.dtype == object:
        _refuse_unnamed(labels)
    names, codes = np.unique(labels, return_inverse=True)
    return tuple(names.tolist()), codes.reshape(-1)


def place_labels(y: ArrayLike | Labels | None, n: int, classes: tuple[Any, ...]) -> Array:
    """For each of n rows the position of its label among `classes`; an unknown label is an error."""
    names, codes = encode_labels(y, n)
    if names == classes:
        return codes
    place = {name: at for at, name in enumerate(classes)}
    unknown = [name for name in names if name not in place]
    if unknown:
        raise UnknownLabelError(
            f"labels this model does not know: {shortlist(unknown)}; it knows {shortlist(classes, 10)}.",
            label=unknown[0],
            remedy="Learn rows with these labels first, or correct the spelling.",
        )
    return np.array([place[name] for name in names], dtype=np.intp)[codes]


def one_label_a_row(n: int, labels: int) -> InputError:
    """The error for another number of labels than of rows."""
    return InputError(f"X has {n} rows, but y has {labels} labels.", remedy="Give one label a row.")


def _has_strings(y: object) -> TypeGuard[Sequence[Any]]:
    """Whether a list holds strings; NumPy would turn its numbers into strings, but 1 and '1' are different labels."""
    return isinstance(y, (list, tuple)) and any(isinstance(label, str) or label is None for label in y)


def _one_column(y: Array) -> Array:
    if y.ndim == 2 and y.shape[1] == 1:
        import warnings

        from sklearn.exceptions import DataConversionWarning

        warnings.warn(
            "A column-vector y was passed when a 1d array was expected. Please change the shape of y to "
            "(n_samples, ), for example using ravel().",
            DataConversionWarning,
            stacklevel=4,
        )
        return y.ravel()
    if y.ndim != 1:
        raise InputError(
            f"y should be a 1d array, got an array of shape {y.shape} instead.", remedy="Give one label a row."
        )
    return y


def _refuse_continuous(labels: Array) -> None:
    missing = int(np.isnan(labels).sum())
    if missing:
        what = f"y contains NaN: {missing} of {len(labels)} labels are missing."
        raise InputError(what, row=int(np.flatnonzero(np.isnan(labels))[0]), remedy="Drop these rows.")
    if not np.isfinite(labels).all():
        raise InputError("y contains infinity; labels are names, not measurements.", remedy="Drop these rows.")
    if (labels != np.floor(labels)).any():
        value = labels[labels != np.floor(labels)][0]
        raise InputError(
            f"Unknown label type: continuous, for example {value}. Labels are names: strings, whole numbers or "
            "booleans.",
            remedy="Cut the numbers into classes first; this is not a regression.",
        )


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, or the missing value of pandas, which cannot be compared.

    >>> import pandas as pd
    >>> [is_missing(value) for value in (None, float("nan"), pd.NA, pd.NaT, "", 0)]
    [True, True, True, True, False, False]
    """
    return value is None or type(value).__name__ in ("NAType", "NaTType") or bool(value != value)


def _refuse_unnamed(labels: Array) -> None:
    if set(map(type, labels)) == {str}:
        return
    missing = [row for row, label in enumerate(labels) if is_missing(label)]
    if missing:
        what = f"{len(missing)} of {len(labels)} labels are missing (None or NaN)."
        raise InputError(what, row=missing[0], remedy="Drop these rows.")
    types = sorted({"str" if isinstance(label, str) else type(label).__name__ for label in labels})
    if "str" in types and len(types) > 1:
        raise InputError(
            f"labels of mixed types ({' and '.join(types)}) have no common order.",
            remedy="Make them all strings or numbers.",
        )


# -- categories --------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Codes:
    """n rows of D categories as codes, and the names of the codes.

    >>> from deciban.read.arrays import encode_categories
    >>> table = encode_categories([["red", "S"], ["white", None]], [])
    >>> table.values
    array([[ 0,  0],
           [ 1, -1]])
    >>> table.names
    (('red', 'white'), ('S',))
    """

    values: Array  # (n, D) of int; −1 is missing
    names: tuple[tuple[Any, ...], ...] | None  # of each feature, sorted; None if the codes are their own names

    @classmethod
    def of_columns(cls, columns: Sequence[tuple[Array, tuple[Any, ...]]], n: int) -> Codes:
        """The table of n rows with these columns, each as its codes and their names."""
        values = np.stack([codes for codes, _ in columns], axis=1) if columns else np.empty((n, 0), np.intp)
        return cls(values, tuple(names for _, names in columns))

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
        return Codes.of_columns([encode_numbers(column) for column in self.values.T], len(self))

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
    """Codes that NumPy converts to an array of their names, None where missing.

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


def encode_numbers(column: Array, gaps: Array | None = None) -> tuple[Array, tuple[Any, ...]]:
    """Codes of numbers and the sorted numbers; missing where `gaps`, by default where the number is −1."""
    missing = column == MISSING if gaps is None else gaps
    names, codes = np.unique(column[~missing], return_inverse=True)
    values = np.full(len(column), MISSING, dtype=np.intp)
    values[~missing] = codes
    return values, tuple(names.tolist())


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
