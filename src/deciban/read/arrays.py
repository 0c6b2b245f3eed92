"""Arrays that families compute with: floats with NaN for missing, sparse matrices as CSR, category codes, weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeGuard

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from deciban.errors import (
    HERE,
    DomainError,
    InputError,
    WeightError,
    column_error,
    shortlist,
)
from deciban.read.codes import MISSING, Codes, Named, encode_numbers, is_missing
from deciban.read.tables import Columns, array_of, column_name, dense_numbers, refuse_complex

Array = NDArray[Any]
Matrix: TypeAlias = Array | sp.csr_array  # (n, D), dense or sparse


def is_sparse(X: object) -> TypeGuard[sp.csr_array]:
    """`scipy.sparse.issparse`, for type checkers."""
    return bool(sp.issparse(X))


def numbers(X: Matrix | Columns, columns: Sequence[str]) -> Any:
    """Dense as `dense_numbers`, sparse as CSR of float64; for families that take both."""
    X = array_of(X)
    if not sp.issparse(X):
        return dense_numbers(X, columns)
    X = X.tocsr()
    refuse_complex(X)
    return X if X.dtype == np.float64 else X.astype(np.float64)


def find_bad(X: Matrix, bad: Callable[[Array], Array]) -> tuple[int, int, float] | None:
    """(row, column, value) of the first value for which `bad` holds; dense or CSR (stored entries)."""
    if is_sparse(X):
        hits = np.flatnonzero(bad(X.data))
        if not len(hits):
            return None
        row = int(np.searchsorted(X.indptr, hits[0], side="right")) - 1
        return row, int(X.indices[hits[0]]), float(X.data[hits[0]])
    where = np.argwhere(bad(X))
    if not len(where):
        return None
    row, column = (int(at) for at in where[0])
    return row, column, float(X[row, column])


def refuse(X: Matrix, columns: Sequence[str], bad: Callable[[Array], Array], must: str, remedy: str) -> None:
    """Raise a DomainError for the first value for which `bad` holds; `must` says what values must be."""
    found = find_bad(X, bad)
    if found is not None:
        row, column, value = found
        name = column_name(columns, column)
        raise column_error(DomainError, name, f"holds {value:.6g}", remedy, row, f"; {must}.")


def refuse_infinite(X: Matrix, columns: Sequence[str]) -> None:
    """Raise a DomainError for the first infinite value."""
    must = "values must be finite, infinity is not a measurement"
    refuse(X, columns, np.isinf, must, "Drop the row, or mark the value missing (NaN).")


# -- rounding ----------------------------------------------------------------------------------------------------------
UNITS = np.array([10.0**power for power in range(0, -10, -1)])  # to which numbers may be rounded
FIRST_VALUES = 16  # by which units are excluded before all values are tested
MOST_STEPS = 1e9  # of the unit between zero and the largest value; numbers with more digits are not rounded


def grid_of(values: Array) -> float | None:
    """The unit to which numbers were rounded: the largest power of ten, at most 1, of which all are multiples.

    None if there is none.

    >>> grid_of(np.array([1.5, 2.25])), grid_of(np.array([100.0, 300.0])), grid_of(np.array([np.pi]))
    (0.01, 1.0, None)
    """
    largest = np.abs(values).max(initial=0.0)
    for unit in UNITS[_on_grid(values[:FIRST_VALUES], UNITS[:, None]).all(axis=1)].tolist():
        if unit < 1 and largest / unit > MOST_STEPS:
            return None
        if _on_grid(values, unit).all():
            return float(unit)
    return None


def _on_grid(values: Array, unit: Array | float) -> Array:
    """Whether values are multiples of a unit, but for rounding."""
    scaled = values / unit
    return np.asarray(np.abs(scaled - np.round(scaled)) <= 1e-6)


# -- weights -----------------------------------------------------------------------------------------------------------
def row_weights(sample_weight: ArrayLike | None, n: int) -> NDArray[np.float64] | None:
    """(n,) checked weights of rows; None for weights that are all 1.

    >>> row_weights([1, 2.5], 2)
    array([1. , 2.5])
    """
    if sample_weight is None:
        return None
    weight = np.asarray(sample_weight, dtype=float)
    if weight.ndim == 0:
        weight = np.full(n, float(weight))
    if weight.shape != (n,):
        raise WeightError(
            f"sample_weight has shape {weight.shape}, but there are {n} rows.", remedy="Give one weight a row."
        )
    bad = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
    if len(bad):
        raise WeightError(
            f"sample_weight holds {weight[bad[0]]} (",
            HERE,
            "); weights must be finite and at least 0.",
            row=int(bad[0]),
            remedy="To take rows back use unlearn, not a negative weight.",
        )
    if n and not weight.any():
        raise WeightError(
            "sample_weight is zero in every row, so there is nothing to learn.", remedy="Give some row a weight."
        )
    return None if (weight == 1).all() else weight


# -- sparse matrices ---------------------------------------------------------------------------------------------------
CHUNK = 2**16  # entries whose minimum and maximum are taken together, while they are in the cache


def plain_numbers(X: Matrix | Columns, columns: Sequence[str]) -> Any:
    """`numbers`; a sparse matrix without repeated entries and stored zeros. The given matrix is not changed.

    >>> twice = sp.csr_array(([1, 1, 0], [2, 2, 0], [0, 3]), shape=(1, 3))
    >>> plain_numbers(twice, []).data
    array([2.])
    """
    return counted_numbers(X, columns)[0]


def counted_numbers(X: Matrix | Columns, columns: Sequence[str]) -> tuple[Any, bool]:
    """`plain_numbers`, and whether it is a sparse matrix whose entries are all finite and above 0."""
    found = numbers(X, columns)
    if not is_sparse(found):
        return found, False
    if not found.has_canonical_format:
        found = found.copy()
        found.sum_duplicates()
    if _all_counts(found.data):
        return found, True
    if not found.data.all():
        found = found.copy()
        found.eliminate_zeros()
    return found, False


def _all_counts(values: Array) -> bool:
    """Whether all are finite and above 0."""
    parts = (values[at : at + CHUNK] for at in range(0, len(values), CHUNK))
    return all(part.min() > 0 and part.max() < np.inf for part in parts)


def run_of_rows(X: Any, start: int, stop: int) -> Any:
    """Consecutive rows; those of a CSR matrix share its memory, while X[start:stop] would copy them.

    >>> run_of_rows(sp.csr_array([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0]]), 1, 3).toarray()
    array([[0., 2.],
           [3., 0.]])
    """
    if not is_sparse(X):
        return X[start:stop]
    begin, end = X.indptr[start], X.indptr[stop]
    rows = type(X)((stop - start, X.shape[1]), dtype=X.dtype)
    # assigned, since the constructor would copy arrays of less than half the length
    rows.data, rows.indices, rows.indptr = X.data[begin:end], X.indices[begin:end], X.indptr[start : stop + 1] - begin
    if X.has_canonical_format:
        rows.has_canonical_format = True  # otherwise SciPy would check all entries
    return rows


def entries(X: Matrix) -> tuple[Array, Array, Array]:
    """Row, column and value of every entry that is not zero, dense or CSR, in the order of rows."""
    if is_sparse(X):
        row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        return row, X.indices, X.data
    row, column = np.nonzero(X)
    return row, column, X[row, column]


def row_sums(X: Matrix) -> Array:
    """(n,) sum of each row, dense or CSR."""
    return np.asarray(X.sum(axis=1), dtype=float).ravel()


def row_totals(X: sp.csr_array, values: Array) -> Array:
    """(n,) sum over the stored entries of each row, with one value an entry.

    >>> row_totals(sp.csr_array([[0.0, 5.0], [0.0, 0.0], [7.0, 8.0]]), np.array([1.0, 2.0, 4.0]))
    array([1., 0., 6.])
    """
    some = np.diff(X.indptr) > 0
    totals = np.zeros(len(some))
    if some.any():  # several times as fast as np.bincount by row
        totals[some] = np.add.reduceat(values, X.indptr[:-1][some])
    return totals


DROP_INFINITE = "Mark it missing (NaN), or drop the row."


# -- categories --------------------------------------------------------------------------------------------------------
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
        return Codes.of_columns([encode_numbers(np.where(np.isnan(c), MISSING, c), np.isnan(c)) for c in X.T], len(X))
    return Codes.of_columns(
        [_encode_column(X[:, j].tolist(), column_name(columns, j)) for j in range(X.shape[1])], len(X)
    )


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
