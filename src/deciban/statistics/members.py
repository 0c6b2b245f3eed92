"""Who belongs to which of K groups, and how much.

Hard members have one class each and a weight; soft members share themselves out (responsibilities of EM). Families
ask for sums per group and never look at which of the two it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
import scipy.sparse as sp

from deciban import kernels
from deciban.statistics.axes import Array, Axis


@dataclass(frozen=True, eq=False)
class Members:
    """n rows that belong to K groups.

    >>> Members.hard([0, 1, 1], 2).total(np.array([[1.0], [2.0], [3.0]]))
    array([[1.], [5.]])
    >>> Members.soft([[0.5, 0.5], [0.0, 1.0]]).weights()
    array([0.5, 1.5])
    """

    classes: Axis
    codes: Any = None  # (n,)    hard: the row's group
    weight: Array | None = None  # (n,)    hard: its weight; None means 1 each
    shares: Any = None  # (n, K)  soft: weight of the row in each group

    @classmethod
    def hard(cls, codes: Any, classes: int | Axis, weight: Any = None) -> Members:
        """Each row in one group, with an optional weight."""
        axis = Axis.of(classes) if isinstance(classes, int) else classes
        kept = None if weight is None else np.asarray(weight, dtype=float)
        return cls(axis, codes=np.asarray(codes), weight=kept)

    @classmethod
    def soft(cls, shares: Any, classes: Axis | None = None) -> Members:
        """Each row in every group, by shares (n, K)."""
        shares = np.asarray(shares, dtype=float)
        return cls(classes or Axis.of(shares.shape[1]), shares=shares)

    @classmethod
    def one_group(cls, n: int, weight: Any = None) -> Members:
        """All rows in a single group: a fit without classes."""
        return cls.hard(np.zeros(n, dtype=np.intp), 1, weight)

    @classmethod
    def joined(cls, parts: Sequence[Members]) -> Members:
        """The rows of several, hard and weighed all or none, one after the other; groups are united.

        >>> one, two = Members.hard([0, 0], Axis(("spam",))), Members.hard([0, 1], Axis(("ham", "spam")))
        >>> Members.joined([one, two]).codes
        array([1, 1, 0, 1])
        """
        axis = reduce(Axis.union, [part.classes for part in parts])
        codes = np.concatenate([axis.positions(part.classes)[part.codes] for part in parts])
        weighed = parts[0].weight is not None
        return cls.hard(codes, axis, np.concatenate([part.row_weights() for part in parts]) if weighed else None)

    @property
    def K(self) -> int:
        return self.classes.size

    def __len__(self) -> int:
        return len(self.codes if self.shares is None else self.shares)

    def take(self, rows: Any) -> Members:
        """Some of the rows."""
        parts = {name: getattr(self, name) for name in ("codes", "weight", "shares")}
        return replace(self, **{name: part[rows] for name, part in parts.items() if part is not None})

    def row_weights(self) -> Array:
        """(n,) the weight of each row."""
        if self.shares is not None:
            return self.shares.sum(axis=1)
        return np.ones(len(self)) if self.weight is None else self.weight

    def weights(self) -> Array:
        """(K,) the weight of each group."""
        if self.shares is not None:
            return self.shares.sum(axis=0)
        return kernels.class_weights(self.codes, self.weight, self.K)

    def matrix(self) -> Any:
        """(n, K) shares, as CSR where hard."""
        if self.shares is not None:
            return self.shares
        n = len(self)
        return sp.csr_array((self.row_weights(), self.codes, np.arange(n + 1)), shape=(n, self.K))

    def groups(self) -> Iterator[tuple[int, Array, Array]]:
        """(k, rows, their weights) for each group, for work a class at a time."""
        for k in range(self.K):
            if self.shares is not None:
                yield k, np.arange(len(self)), self.shares[:, k]
            else:
                rows = np.flatnonzero(self.codes == k)
                yield k, rows, np.ones(len(rows)) if self.weight is None else self.weight[rows]

    # -- sums per group: (K, …) -----------------------------------------------------------------------------------
    def total(self, X: Any) -> Array:
        """(K, D) Σ R[i,k] X[i], dense or CSR."""
        if sp.issparse(X):
            if self.shares is not None:
                return np.asarray((X.T @ self.shares).T)
            return kernels.sparse_class_sums(X.data, X.indices, X.indptr, self.codes, self.weight, self.K, X.shape[1])
        return np.asarray(self.matrix().T @ X)

    def moments(self, X: Array, origin: Array) -> tuple[Array, Array, Array]:
        """(K, D) each: Σ w, Σ w(x−o), Σ w(x−o)² over the values that are there; NaN is missing."""
        if self.shares is not None:
            seen = ~np.isnan(X)
            Z = np.where(seen, X - origin, 0.0)
            return self.shares.T @ seen, self.shares.T @ Z, self.shares.T @ (Z * Z)
        first, second = kernels.class_moments(X, self.codes, self.weight, origin, self.K)
        if np.isnan(first).any():
            return kernels.class_moments_with_gaps(X, self.codes, self.weight, origin, self.K)
        return np.repeat(self.weights()[:, None], X.shape[1], axis=1), first, second

    def scatter(self, X: Array, origin: Array) -> tuple[Array, Array]:
        """Σ w(x−o) as (K, D) and Σ w(x−o)(x−o)ᵀ as (K, D, D)."""
        if self.shares is None:
            return kernels.class_scatter(X, self.codes, self.weight, origin, self.K)
        Z = np.asarray(X, dtype=float) - origin
        return self.shares.T @ Z, np.stack([(Z * share[:, None]).T @ Z for share in self.shares.T])
