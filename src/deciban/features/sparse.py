"""Sparse rows as families take them: CSR of float64, each entry stored once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from deciban.features.numbers import numbers

Array = NDArray[Any]
LOOKED_AT = 2**16  # entries at a time: the second look finds them in the cache


def plain_numbers(X: Any, columns: Sequence[str]) -> Any:
    """Dense as it is, sparse as CSR without repeated or stored-zero entries; the caller's matrix stays as it was.

    >>> twice = sp.csr_array(([1, 1, 0], [2, 2, 0], [0, 3]), shape=(1, 3))
    >>> plain_numbers(twice, []).data
    array([2.])
    """
    X, _ = counted_numbers(X, columns)
    return X


def counted_numbers(X: Any, columns: Sequence[str]) -> tuple[Any, bool]:
    """`plain_numbers`, and whether all are known to be finite and above 0: the same look answers both."""
    X = numbers(X, columns)
    if not sp.issparse(X):
        return X, False
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    if _all_counts(X.data):
        return X, True
    if not X.data.all():
        X = X.copy()
        X.eliminate_zeros()
    return X, False


def _all_counts(values: Array) -> bool:
    """Whether all are finite and above 0."""
    parts = (values[at : at + LOOKED_AT] for at in range(0, len(values), LOOKED_AT))
    return all(part.min() > 0 and part.max() < np.inf for part in parts)


def run_of_rows(X: Any, start: int, stop: int) -> Any:
    """Consecutive rows; those of a CSR matrix share its memory, where X[start:stop] would copy them.

    >>> run_of_rows(sp.csr_array([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0]]), 1, 3).toarray()
    array([[0., 2.],
           [3., 0.]])
    """
    if not sp.issparse(X):
        return X[start:stop]
    begin, end = X.indptr[start], X.indptr[stop]
    rows = type(X)((stop - start, X.shape[1]), dtype=X.dtype)
    # set, not given to the constructor, which copies what is less than half of an array
    rows.data, rows.indices, rows.indptr = X.data[begin:end], X.indices[begin:end], X.indptr[start : stop + 1] - begin
    if X.has_canonical_format:
        rows.has_canonical_format = True  # so that it is not looked for again
    return rows


def entries(X: Any) -> tuple[Array, Array, Array]:
    """Row, column and value of every entry that is not zero, dense or CSR; row by row."""
    if sp.issparse(X):
        row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        return row, X.indices, X.data
    row, column = np.nonzero(X)
    return row, column, X[row, column]


def row_sums(X: Any) -> Array:
    """(n,) Σ of each row, dense or CSR."""
    return np.asarray(X.sum(axis=1), dtype=float).ravel()


def row_totals(X: Any, values: Array) -> Array:
    """(n,) Σ of a value for each stored entry of a CSR matrix.

    >>> row_totals(sp.csr_array([[0.0, 5.0], [0.0, 0.0], [7.0, 8.0]]), np.array([1.0, 2.0, 4.0]))
    array([1., 0., 6.])
    """
    some = np.diff(X.indptr) > 0
    totals = np.zeros(len(some))
    if some.any():  # several times as fast as counting by row numbers
        totals[some] = np.add.reduceat(values, X.indptr[:-1][some])
    return totals
