"""The column of labels: names in order, and the place of each row's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deciban.errors import HERE, DomainError, InputError, Remedy, UnknownLabelError
from deciban.read import columns as values
from deciban.read.arrow import arrow_column
from deciban.read.columns import Column
from deciban.read.source import SKIP_BAD
from deciban.read.tables import Table

if TYPE_CHECKING:
    import pyarrow as pa


from deciban import kernels
from deciban.errors import shortlist

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Labels:
    """One label a row, held as codes; NumPy sees the labels themselves.

    >>> np.asarray(Labels(("ham", "spam"), np.array([1, 0])))
    array(['spam', 'ham'], dtype=object)
    """

    names: tuple[Any, ...]  # sorted, each of some row
    codes: Array  # (n,)

    def __len__(self) -> int:
        return len(self.codes)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        kind = dtype or (np.int64 if self.names and isinstance(self.names[0], int) else object)
        return np.array(self.names, dtype=kind)[self.codes]

    def __getitem__(self, rows: Any) -> Labels:
        used, codes = np.unique(self.codes[rows], return_inverse=True)
        return Labels(tuple(self.names[i] for i in used), codes.reshape(-1))


def whole_labels(column: pa.ChunkedArray) -> bool:
    """Whether all labels are whole numbers, written as such."""
    import pyarrow as pa
    import pyarrow.compute as pc

    array = values.whole(column)
    if pa.types.is_integer(array.type):
        return True
    if not values.is_text(array.type):
        return False
    seen = pc.unique(array.drop_null())
    return len(seen) > 0 and bool(pc.all(pc.match_substring_regex(seen, r"^(0|-?[1-9]\d{0,17})$")).as_py())


def label_values(column: pa.ChunkedArray, name: str, whole: bool) -> Labels:
    """Labels of a column; a missing one is an error that names its row."""
    codes, called = values.names(column, Column(name, "category", "labels", trim=True))
    if (codes < 0).any():
        row = int(np.flatnonzero(codes < 0)[0])
        raise InputError(
            f"column {name!r} of labels is missing (",
            HERE,
            f"), and in {int((codes < 0).sum()) - 1:,} rows more.",
            row=row,
            columns=[name],
            remedy=Remedy("Drop these rows, or skip them (", SKIP_BAD, ")."),
        )
    if not whole:
        return Labels(called, codes)
    try:
        numbers = [int(label) for label in called]
    except ValueError:
        wrong = next(label for label in called if not label.lstrip("-").isdigit())
        row = int(np.flatnonzero(codes == called.index(wrong))[0])
        raise DomainError(
            f"column {name!r} holds the label {wrong[:60]!r} (",
            HERE,
            "), but all labels before it are whole numbers.",
            row=row,
            columns=[name],
            label=wrong,
            remedy="Correct it, or write all labels as text.",
        ) from None
    order = np.argsort(numbers)
    place = np.empty(len(order), dtype=np.intp)
    place[order] = np.arange(len(order))
    return Labels(tuple(numbers[i] for i in order), place[codes])


def labelled_rows(table: Table, name: str) -> Array:
    """Which rows of a table have a label."""
    at = [str(column) for column in table.columns].index(name)
    codes, _ = values.names(arrow_column(table, at), Column(name, "category", "labels", trim=True))
    return np.flatnonzero(codes >= 0)


# -- labels ----------
# Labels as given: names in order, and the place of each row's.


def encode_labels(y: Any, n: int) -> tuple[tuple[Any, ...], Array]:
    """The sorted names of the labels, and for each of n rows the position of its own.

    >>> encode_labels(["b", "a", "b"], 3)
    (('a', 'b'), array([1, 0, 1]))
    """
    if y is None:
        raise InputError("requires y to be passed, but the target y is None. Give one label a row.")
    if isinstance(y, Labels) and len(y) == n:
        return y.names, y.codes
    labels = _column(np.asarray(y) if not _is_strings(y) else np.asarray(list(y), dtype=object))
    if len(labels) != n:
        raise InputError(f"X has {n} rows, but y has {len(labels)} labels. Give one label a row.")
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


def place_labels(y: Any, n: int, classes: tuple[Any, ...]) -> Array:
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


def _is_strings(y: Any) -> bool:
    """A list with strings in it must not become an array of strings: 1 and '1' are different labels."""
    return isinstance(y, (list, tuple)) and any(isinstance(label, str) or label is None for label in y)


def _column(y: Array) -> Array:
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
        raise InputError(f"y should be a 1d array, got an array of shape {y.shape} instead. Give one label a row.")
    return y


def _refuse_continuous(labels: Array) -> None:
    missing = int(np.isnan(labels).sum())
    if missing:
        raise InputError(f"y contains NaN: {missing} of {len(labels)} labels are missing. Drop these rows.")
    if not np.isfinite(labels).all():
        raise InputError("y contains infinity; labels are names, not measurements. Drop these rows.")
    if (labels != np.floor(labels)).any():
        value = labels[labels != np.floor(labels)][0]
        raise InputError(
            f"Unknown label type: continuous, for example {value}. Labels are names: strings, whole numbers or "
            "booleans. Cut the numbers into classes first; this is not a regression."
        )


def _refuse_unnamed(labels: Array) -> None:
    missing = sum(label is None or label != label for label in labels)
    if missing:
        raise InputError(f"{missing} of {len(labels)} labels are missing (None or NaN). Drop these rows.")
    kinds = sorted({"str" if isinstance(label, str) else type(label).__name__ for label in labels})
    if "str" in kinds and len(kinds) > 1:
        raise InputError(
            f"labels of mixed types ({' and '.join(kinds)}) have no common order. Make them all strings or numbers."
        )
