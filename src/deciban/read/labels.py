"""Labels of rows: sorted class names, and the code of each row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deciban import kernels
from deciban.errors import InputError, UnknownLabelError, shortlist

Array = NDArray[Any]


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
