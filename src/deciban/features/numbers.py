"""Numbers as families take them: float arrays with NaN for missing, or CSR."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from deciban.errors import DomainError, InputError, NotANumberError

Array = NDArray[Any]


def dense_numbers(X: Any, columns: Sequence[str]) -> Array:
    """X as a two-dimensional float64 or float32 array; anything that is not a number is an error.

    >>> dense_numbers([[1, None], [2, 3]], ["a", "b"])
    array([[ 1., nan],
           [ 2.,  3.]])
    """
    if sp.issparse(X):
        raise InputError(
            "sparse input is taken by Multinomial, Bernoulli and the diagonal Gaussian only. "
            "Use one of them, or X.toarray()."
        )
    X = np.asarray(X)
    if X.ndim == 1:
        X = X[:, None]
    if X.ndim != 2:
        raise InputError(f"expected a table of rows and columns, got an array of shape {X.shape}. Reshape it.")
    if X.dtype in (np.float64, np.float32):
        return X
    if X.dtype.kind == "c":
        raise InputError("Complex data not supported: features must be real numbers. Take real and imaginary parts.")
    try:
        return X.astype(np.float64)
    except (TypeError, ValueError):
        raise _not_a_number(X, columns) from None


def numbers(X: Any, columns: Sequence[str]) -> Any:
    """Dense as `dense_numbers`, sparse as CSR of float64; for families that take both."""
    if not sp.issparse(X):
        return dense_numbers(X, columns)
    X = X.tocsr()
    if X.dtype.kind == "c":
        raise InputError("Complex data not supported: features must be real numbers. Take real and imaginary parts.")
    return X if X.dtype == np.float64 else X.astype(np.float64)


def find_bad(X: Any, bad: Callable[[Array], Array]) -> tuple[int, int, float] | None:
    """(row, column, value) of the first value for which `bad` holds; dense or CSR (stored entries)."""
    if sp.issparse(X):
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


def refuse(X: Any, columns: Sequence[str], bad: Callable[[Array], Array], must: str, remedy: str) -> None:
    """Raise a DomainError for the first bad value, saying where it is, what must hold, and what to do."""
    found = find_bad(X, bad)
    if found is not None:
        row, column, value = found
        raise DomainError(f"column {name_of(columns, column)} holds {value:.6g} (row {row}); {must}. {remedy}")


def refuse_infinite(X: Any, columns: Sequence[str]) -> None:
    """No family takes an infinite value."""
    refuse(
        X,
        columns,
        np.isinf,
        "values must be finite, infinity is not a measurement",
        "Drop the row, or mark the value missing (NaN).",
    )


def name_of(columns: Sequence[Any], column: int) -> str:
    """A column's name, quoted; its number where it has no name."""
    return repr(str(columns[column])) if column < len(columns) else str(column)


def _not_a_number(X: Array, columns: Sequence[str]) -> DomainError:
    for row, column in np.ndindex(X.shape):
        try:
            float(X[row, column])
        except (TypeError, ValueError) as error:
            return NotANumberError(
                f"column {name_of(columns, column)} holds {X[row, column]!r} (row {row}), "
                f"which is not a number ({error}). Declare the column Categorical(), or convert it."
            )
    return NotANumberError("the table holds something that is not a number. Convert it to floats.")
