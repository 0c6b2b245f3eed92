"""Whether values are missing, with a Beta prior.

    the value of a column is missing | θ  ~  Bernoulli(θ),     θ ~ Beta(a, b), for each class and column

An expert beside the families of the columns, to which a missing value adds nothing: gaps are evidence where they are
more common in one class than in another.

Reference: Gelman et al., Bayesian Data Analysis, 3rd ed., section 2.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deciban.families.bernoulli import Bernoulli
from deciban.families.protocol import Input
from deciban.read.tables import Columns, Table
from deciban.statistics import Array, Stats


@dataclass(frozen=True, eq=False)
class Gaps(Bernoulli):
    """Whether each column has a value; columns independent given the class.

    Parameters
    ----------
    a : float, default=1.0
        Pseudo-count of gaps.
    b : float, default=1.0
        Pseudo-count of values.

    Examples
    --------
    >>> Gaps().encode(Table.of([[1.0, None], [2.0, 3.0]]), ["x", "y"]).tolist()
    [[0.0, 1.0], [0.0, 0.0]]
    """

    def encode(self, X: Input, columns: Sequence[str], stats: Stats | None = None) -> Array:
        """Return 1 where a value is missing, else 0, shape (n, D)."""
        table, at = (X.table, X.positions) if isinstance(X, Columns) else (Table.of(X), None)
        at = range(table.shape[1]) if at is None else at
        return np.stack([missing(table, j) for j in at], axis=1).astype(float)


def missing(table: Table, column: int) -> Array:
    """Return whether each value of a column is missing, shape (n,) of bool."""
    values = table.pick([column])
    if hasattr(values, "values") and hasattr(values, "names"):  # codes of categories
        return np.asarray(values.values[:, 0] < 0)
    values = np.asarray(values)[:, 0]
    if values.dtype.kind in "fc":
        return np.asarray(np.isnan(values))
    if values.dtype.kind != "O":
        return np.zeros(len(values), dtype=bool)
    return np.array([value is None or value != value for value in values.tolist()], dtype=bool)
