"""Membership of rows in K groups, and the sums per group that families need.

Hard members belong to one group each, with a weight (class labels). Soft members belong to every group by a share
(responsibilities of EM). Families call the same methods for both, which return sums per group.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from deciban import kernels
from deciban.errors import HyperparameterError
from deciban.statistics.axes import Array, Axis
from deciban.statistics.base import Collects, Stats, finite

T = TypeVar("T", bound=Stats)


@dataclass(frozen=True, eq=False)
class Members:
    """Membership of n rows in K groups; made by `hard`, `soft`, `one_group` or `joined`.

    Parameters
    ----------
    classes : Axis
        Names of the groups.
    codes : ndarray of shape (n,) or None
        Hard members: the group of each row, from 0 to K − 1. None for soft members.
    weight : ndarray of shape (n,) or None
        Hard members: the weight of each row. None stands for 1 each.
    shares : ndarray of shape (n, K) or None
        Soft members: the weight of each row in each group. None for hard members.

    Examples
    --------
    >>> Members.hard([0, 1, 1], 2).total(np.array([[1.0], [2.0], [3.0]]))
    array([[1.], [5.]])
    >>> Members.soft([[0.5, 0.5], [0.0, 1.0]]).weights()
    array([0.5, 1.5])
    """

    classes: Axis
    codes: Array = None  # type: ignore[assignment]  # None for soft members only
    weight: Array | None = None
    shares: Array | None = None
    K: int = field(init=False)  # number of groups

    def __post_init__(self) -> None:
        object.__setattr__(self, "K", len(self.classes.names))

    @classmethod
    def hard(cls, codes: ArrayLike, classes: int | Axis, weight: ArrayLike | None = None) -> Members:
        """Make members that belong to one group each.

        Parameters
        ----------
        codes : array-like of shape (n,)
            The group of each row, from 0 to K − 1.
        classes : int or Axis
            Number of groups, or their names.
        weight : array-like of shape (n,), optional
            Weight of each row, 1 if not given.

        Returns
        -------
        Members
            The members.
        """
        axis = Axis.of(classes) if isinstance(classes, int) else classes
        return cls(axis, np.asarray(codes), None if weight is None else np.asarray(weight, dtype=float))

    @classmethod
    def soft(cls, shares: ArrayLike, classes: Axis | None = None) -> Members:
        """Make members that belong to every group by a share.

        Parameters
        ----------
        shares : array-like of shape (n, K)
            Weight of each row in each group.
        classes : Axis, optional
            Names of the groups, their positions if not given.

        Returns
        -------
        Members
            The members.
        """
        shares = np.asarray(shares, dtype=float)
        return cls(classes or Axis.of(shares.shape[1]), shares=shares)

    @classmethod
    def one_group(cls, n: int, weight: ArrayLike | None = None) -> Members:
        """Put all rows into a single group, for a fit without classes.

        Parameters
        ----------
        n : int
            Number of rows.
        weight : array-like of shape (n,), optional
            Weight of each row, 1 if not given.

        Returns
        -------
        Members
            The members.
        """
        return cls.hard(np.zeros(n, dtype=np.intp), 1, weight)

    @classmethod
    def joined(cls, parts: Sequence[Members]) -> Members:
        """Concatenate hard members; their groups are united.

        Parameters
        ----------
        parts : sequence of Members
            Hard members, either all with weights or all without.

        Returns
        -------
        Members
            The rows of all parts, in their order.

        Examples
        --------
        >>> one, two = Members.hard([0, 0], Axis(("spam",))), Members.hard([0, 1], Axis(("ham", "spam")))
        >>> Members.joined([one, two]).codes
        array([1, 1, 0, 1])
        """
        axis = reduce(Axis.union, [part.classes for part in parts])
        codes = np.concatenate([axis.positions(part.classes)[part.codes] for part in parts])
        weighted = parts[0].weight is not None
        return cls.hard(codes, axis, np.concatenate([part.row_weights() for part in parts]) if weighted else None)

    def __len__(self) -> int:
        return len(self.codes if self.shares is None else self.shares)

    def take(self, rows: Array | slice) -> Members:
        """Select rows.

        Parameters
        ----------
        rows : ndarray or slice
            Positions, or a mask of shape (n,).

        Returns
        -------
        Members
            The selected rows.
        """
        parts = {name: getattr(self, name) for name in ("codes", "weight", "shares")}
        return replace(self, **{name: part[rows] for name, part in parts.items() if part is not None})

    def own_codes(self) -> Array:
        """Give the group of each row; a HyperparameterError for soft members.

        Returns
        -------
        ndarray of shape (n,)
            Groups, from 0 to K − 1.
        """
        if self.codes is None:
            raise HyperparameterError("rows that belong to several classes cannot be left out. Use hard labels.")
        return self.codes

    def row_weights(self) -> Array:
        """Give the weight of each row.

        Returns
        -------
        ndarray of shape (n,)
            Weights; the sum over the groups for soft members.
        """
        if self.shares is not None:
            return np.asarray(self.shares.sum(axis=1))
        return np.ones(len(self.codes)) if self.weight is None else self.weight

    def weights(self) -> Array:
        """Give the weight of each group.

        Returns
        -------
        ndarray of shape (K,)
            Sums of the weights of its rows.
        """
        if self.shares is not None:
            return np.asarray(self.shares.sum(axis=0))
        return kernels.class_weights(self.codes, self.weight, self.K)

    def matrix(self) -> Any:
        """Give the weight of each row in each group.

        Returns
        -------
        csr_array or ndarray of shape (n, K)
            Sparse for hard members, dense for soft ones.
        """
        if self.shares is not None:
            return self.shares
        n = len(self)
        return sp.csr_array((self.row_weights(), self.codes, np.arange(n + 1)), shape=(n, self.K))

    def groups(self) -> Iterator[tuple[int, Array, Array]]:
        """Iterate over the groups.

        Yields
        ------
        k : int
            The group.
        rows : ndarray
            Positions of its rows; of all rows for soft members.
        weight : ndarray
            Weights of these rows in the group.
        """
        for k in range(self.K):
            if self.shares is not None:
                yield k, np.arange(len(self)), self.shares[:, k]
            else:
                rows = np.flatnonzero(self.codes == k)
                yield k, rows, np.ones(len(rows)) if self.weight is None else self.weight[rows]

    def total(self, X: Any, amounts: Array | None = None) -> Array:
        """Sum rows per group: Σ_i w_ik · x_i.

        Parameters
        ----------
        X : ndarray or csr_array of shape (n, D)
            Rows.
        amounts : ndarray, optional
            If given, the entries of a sparse X are integers t that stand for amounts[t].

        Returns
        -------
        ndarray of shape (K, D)
            The sums.
        """
        if sp.issparse(X):
            if self.shares is not None:
                X = X if amounts is None else sp.csr_array((amounts[X.data], X.indices, X.indptr), X.shape)
                return np.asarray((X.T @ self.shares).T)
            arrays = X.data, X.indices, X.indptr
            return kernels.sparse_class_sums(*arrays, self.codes, self.weight, self.K, X.shape[1], amounts)
        return np.asarray(self.matrix().T @ X)

    def moments(self, X: Array, origin: Array) -> tuple[Array, Array, Array]:
        """Sum weights, deviations from an origin and their squares per group.

        Parameters
        ----------
        X : ndarray of shape (n, D)
            Rows; NaN is a missing value, which adds nothing.
        origin : ndarray of shape (D,)
            Point that is subtracted from each row.

        Returns
        -------
        weight, first, second : ndarray of shape (K, D)
            Σ w, Σ w(x−o) and Σ w(x−o)² over the values that are not missing.
        """
        if self.shares is not None:
            seen = ~np.isnan(X)
            Z = np.where(seen, X - origin, 0.0)
            return self.shares.T @ seen, self.shares.T @ Z, self.shares.T @ (Z * Z)
        first, second = kernels.class_moments(X, self.codes, self.weight, origin, self.K)
        if np.isnan(first).any():
            return kernels.class_moments_with_gaps(X, self.codes, self.weight, origin, self.K)
        weight = kernels.class_weights(self.codes, self.weight, self.K)
        return np.repeat(weight[:, None], X.shape[1], axis=1), first, second

    def scatter(self, X: Array, origin: Array) -> tuple[Array, Array, Array]:
        """Sum weights, deviations from an origin and their outer products per group.

        Parameters
        ----------
        X : ndarray of shape (n, D)
            Rows without missing values.
        origin : ndarray of shape (D,)
            Point that is subtracted from each row.

        Returns
        -------
        weight : ndarray of shape (K,)
            Σ w.
        first : ndarray of shape (K, D)
            Σ w(x−o).
        second : ndarray of shape (K, D, D)
            Σ w(x−o)(x−o)ᵀ.
        """
        if self.shares is None:
            first, second = kernels.class_scatter(X, self.codes, self.weight, origin, self.K)
            return kernels.class_weights(self.codes, self.weight, self.K), first, second
        Z = np.asarray(X, dtype=float) - origin
        second = np.stack([(Z * share[:, None]).T @ Z for share in self.shares.T])
        return np.asarray(self.shares.sum(axis=0)), self.shares.T @ Z, second

    def moments_within(self, X: Array, origin: Array, reach: Array) -> tuple[Array, Array, Array, Array]:
        """Sum as `moments` does, without the rows that have a value further than `reach` from the origin.

        Parameters
        ----------
        X : ndarray of shape (n, D)
            Rows; NaN is a missing value, which adds nothing.
        origin, reach : ndarray of shape (D,)
            Point that is subtracted from each row, and the largest difference. Of soft members, every row is summed.

        Returns
        -------
        weight, first, second : ndarray of shape (K, D)
            Σ w, Σ w(x−o) and Σ w(x−o)².
        far : ndarray of shape (m,)
            Positions of the rows that were left out.
        """
        if self.shares is not None:
            return *self.moments(X, origin), np.empty(0, np.intp)
        return kernels.class_moments_within(X, self.codes, self.weight, origin, reach, self.K)

    def scatter_within(self, X: Array, origin: Array, reach: Array) -> tuple[Array, Array, Array, Array]:
        """Sum as `scatter` does, without the rows that have a value further than `reach` from the origin.

        Parameters
        ----------
        X : ndarray of shape (n, D)
            Rows without missing values.
        origin, reach : ndarray of shape (D,)
            Point that is subtracted from each row, and the largest difference. Of soft members, every row is summed.

        Returns
        -------
        weight : ndarray of shape (K,)
            Σ w.
        first : ndarray of shape (K, D)
            Σ w(x−o).
        second : ndarray of shape (K, D, D)
            Σ w(x−o)(x−o)ᵀ.
        far : ndarray of shape (m,)
            Positions of the rows that were left out.
        """
        if self.shares is not None:
            return *self.scatter(X, origin), np.empty(0, np.intp)
        first, second, far = kernels.class_scatter_within(X, self.codes, self.weight, origin, reach, self.K)
        codes, weight = self.codes, self.weight
        if len(far):
            codes, weight = np.delete(codes, far), None if weight is None else np.delete(weight, far)
        return kernels.class_weights(codes, weight, self.K), first, second, far


def collect_checked(family: Collects[T], X: Any, members: Members, columns: Sequence[str]) -> T:
    """Collect the sums of rows; if one is not finite, raise the error that names the value."""
    with np.errstate(invalid="ignore", over="ignore"):
        sums = family.collect(X, members)
    return sums if sums.finite else finite(sums, family, X, columns)
