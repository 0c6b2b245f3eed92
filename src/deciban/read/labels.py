"""Labels of rows: sorted class names, and the code of each row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deciban import kernels
from deciban.errors import DomainError, InputError, Remedy, UnknownLabelError, column_error, shortlist
from deciban.read import arrow
from deciban.read.source import SKIP_BAD
from deciban.read.tables import Table

if TYPE_CHECKING:
    import pyarrow as pa

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


@dataclass(frozen=True)
class LabelRanges:
    """Classes made of a label that is a number: ranges that hold about equally many of the first rows.

    >>> LabelRanges((10.0, 20.0)).names
    ('10 or less', 'over 10 to 20', 'over 20')
    """

    edges: tuple[float, ...]  # (K − 1,) upper ends of all ranges but the last, in order

    @classmethod
    def of(cls, values: Array, bins: int) -> LabelRanges:
        """So many ranges, fewer if values repeat; edges have at most four significant digits where these differ."""
        edges = np.quantile(values[~np.isnan(values)], np.arange(1, bins) / bins)
        short = np.array([float(f"{edge:.4g}") for edge in edges])
        found = np.unique(short if len(np.unique(short)) == len(np.unique(edges)) else edges)
        found = found[(found < np.nanmax(values)) & (found >= np.nanmin(values))]
        return cls(tuple(found.tolist()))

    @property
    def names(self) -> tuple[str, ...]:
        """The classes, in order."""
        texts = [f"{edge:.15g}" for edge in self.edges]
        between = [f"over {low} to {high}" for low, high in pairwise(texts)]
        return (f"{texts[0]} or less", *between, f"over {texts[-1]}") if texts else ("all",)

    def labels(self, values: Array) -> Labels:
        """The classes of numbers, none of which is NaN."""
        return Labels(self.names, np.searchsorted(self.edges, values))[:]


# -- columns of labels -------------------------------------------------------------------------------------------------
def are_whole_numbers(column: pa.ChunkedArray) -> bool:
    """Whether all labels of a column are whole numbers, written as such."""
    import pyarrow as pa
    import pyarrow.compute as pc

    array = arrow.one_array(column)
    if pa.types.is_integer(array.type):
        return True
    if not arrow.is_text(array.type):
        return False
    seen = pc.unique(array.drop_null())
    return len(seen) > 0 and bool(pc.all(pc.match_substring_regex(seen, r"^(0|-?[1-9]\d{0,17})$")).as_py())


def label_values(column: pa.ChunkedArray, name: str, whole: bool) -> Labels:
    """Labels of a column, as integers if they are `whole` numbers; a missing one is an error that names its row."""
    codes, names = arrow.category_codes(column, trim=True)
    missing = np.flatnonzero(codes < 0)
    if len(missing):
        remedy = Remedy("Drop these rows, or skip them (", SKIP_BAD, ").")
        why = f", and in {len(missing) - 1:,} rows more."
        raise column_error(InputError, name, "of labels is missing", remedy, int(missing[0]), why)
    if not whole:
        return Labels(names, codes)
    try:
        numbers = [int(label) for label in names]
    except ValueError:
        wrong = next(label for label in names if not label.lstrip("-").isdigit())
        row = int(np.flatnonzero(codes == names.index(wrong))[0])
        what, why = f"holds the label {wrong[:60]!r}", ", but all labels before it are whole numbers."
        correct = "Correct it, or write all labels as text."
        raise column_error(DomainError, name, what, correct, row, why, wrong) from None
    order = np.argsort(numbers)
    place = np.empty(len(order), dtype=np.intp)
    place[order] = np.arange(len(order))
    return Labels(tuple(numbers[i] for i in order), place[codes])


def labelled_rows(table: Table, name: str) -> Array:
    """Positions of the rows of a table that have a label."""
    at = [str(column) for column in table.columns].index(name)
    codes, _ = arrow.category_codes(arrow.arrow_column(table, at), trim=True)
    return np.flatnonzero(codes >= 0)


# -- labels as given ---------------------------------------------------------------------------------------------------
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


def _refuse_unnamed(labels: Array) -> None:
    missing = [row for row, label in enumerate(labels) if label is None or label != label]
    if missing:
        what = f"{len(missing)} of {len(labels)} labels are missing (None or NaN)."
        raise InputError(what, row=missing[0], remedy="Drop these rows.")
    types = sorted({"str" if isinstance(label, str) else type(label).__name__ for label in labels})
    if "str" in types and len(types) > 1:
        raise InputError(
            f"labels of mixed types ({' and '.join(types)}) have no common order.",
            remedy="Make them all strings or numbers.",
        )
