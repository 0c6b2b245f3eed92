"""Weights, means and products of the rows of each class, which add and subtract: for drop-ins with covariances."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from deciban import kernels
from deciban.errors import NotAvailableError, NotLearntError
from deciban.sklearn.dropin import Array

EPS = float(np.finfo(float).eps)
LOST = 1e-11  # relative error of a variance from which on it is computed in two passes
NEGATIVE = 1e-9  # ratio to the learnt sums below 0 that shows rows that were never learnt
FALSIFIED = 1e-8  # relative error of a variance that unlearning may leave behind
MASKED = 2**16  # rows times classes up to which a mask of each class takes less time than sorting


class Moments(NamedTuple):
    """Weight and mean of the rows of each class, and their sums of products about it."""

    weight: Array  # (K,)
    mean: Array  # (K, D)
    scatter: Array  # (K, D, D)

    @property
    def covariance(self) -> Array:
        """(K, D, D) covariances, divided by the weight; 0 for a class without rows."""
        return self.scatter / np.where(self.weight > 0, self.weight, 1.0)[:, None, None]

    @classmethod
    def none(cls, K: int, D: int) -> Moments:
        """Return the moments of no rows."""
        return cls(np.zeros(K), np.zeros((K, D)), np.zeros((K, D, D)))

    @classmethod
    def of(cls, X: Array, codes: Array, weight: Array | None, K: int, mean: Array | None = None) -> Moments:
        """Return the moments of rows, in two passes: means, if they are not known, then products about them."""
        found = cls.none(K, X.shape[1])._replace(weight=np.bincount(codes, weight, K).astype(float))
        for k, own in enumerate(_rows_of_classes(codes, K)):
            rows, w = X[own], None if weight is None else weight[own]
            if not len(rows):
                continue
            if mean is None:
                found.mean[k] = np.average(rows, axis=0, weights=w) if w is not None else rows.mean(axis=0, dtype=float)
            else:
                found.mean[k] = mean[k]
            off = rows - found.mean[k]
            off = off if w is None else off * np.sqrt(w)[:, None]
            found.scatter[k] = off.T @ off
        return found

    @classmethod
    def in_one_pass(cls, X: Array, codes: Array, K: int) -> Moments | None:
        """Return the moments of rows; None if a sum is not finite, or if a class without spread has lost its digits."""
        origin = np.asarray(X[:4096], dtype=np.float64).mean(axis=0)
        if not np.isfinite(origin).all():
            return None
        count = kernels.class_weights(codes, None, K)
        first, second = kernels.class_scatter(X, codes, None, origin, K)
        if not (np.isfinite(first).all() and np.isfinite(second).all()):
            return None
        shift = first / count[:, None]
        scatter = second - first[:, :, None] * shift[:, None, :]
        if (EPS * count[:, None] * shift**2 > LOST * np.diagonal(scatter, axis1=1, axis2=2)).any():
            return None
        return cls(count, origin + shift, scatter)

    def about_mean(self) -> tuple[Array, tuple[Array, Array, Array]]:
        """Return the mean of all rows, and weights, deviations and products of each class about it."""
        origin = self.weight @ self.mean / self.weight.sum()
        shift = self.mean - origin
        first = self.weight[:, None] * shift
        return origin, (self.weight, first, self.scatter + first[:, :, None] * shift[:, None, :])

    def plus(self, other: Moments, sign: float = 1.0) -> Moments:
        """Return the moments of both sets of rows; with sign -1, of the rows without the other ones."""
        total = self.weight + sign * other.weight
        some = total > NEGATIVE * self.weight
        safe = np.where(some, total, 1.0)
        share = (sign * other.weight / safe)[:, None]
        step = other.mean - self.mean
        between = (self.weight[:, None] * share * step)[:, :, None] * step[:, None, :]
        scatter = self.scatter + sign * other.scatter + (between + between.transpose(0, 2, 1)) / 2
        return Moments(
            np.where(some, total, np.minimum(total, 0.0)),
            np.where(some[:, None], self.mean + share * step, 0.0),
            np.where(some[:, None, None], scatter, 0.0),
        )

    def without(self, other: Moments) -> Moments:
        """Return the moments without rows that were learnt; NotLearntError if the sums show that they were not."""
        left = self.plus(other, -1.0)
        learnt = np.diagonal(self.scatter, axis1=1, axis2=2)
        size = learnt.max(axis=1) + np.finfo(float).tiny
        wrong = left.weight < -NEGATIVE * np.maximum(self.weight, 1.0)
        wrong |= np.linalg.eigvalsh(left.scatter)[:, 0] < -NEGATIVE * size
        gone = (left.weight <= 0) & (other.weight > 0)  # all rows of a class: both sums must be equal
        off = np.abs(other.scatter - self.scatter).max(axis=(1, 2))
        off += self.weight * ((other.mean - self.mean) ** 2).max(axis=1)
        scale = size + self.weight * (self.mean**2).max(axis=1)
        wrong |= gone & (off > 1e-6 * scale)
        if wrong.any():
            raise NotLearntError("rows to unlearn were never learnt: weights or variances would fall below 0.")
        rest = np.diagonal(left.scatter, axis1=1, axis2=2)
        if ((EPS * learnt > FALSIFIED * rest) & (left.weight > 1)[:, None]).any():
            raise NotAvailableError(
                "the rows that stay vary much less than those to unlearn: the rounding of the sums would falsify their "
                "variances. Nothing was changed: fit again without these rows."
            )
        return left._replace(weight=np.maximum(left.weight, 0.0))


def _rows_of_classes(codes: Array, K: int) -> list[Any]:
    """Return an index of the rows of each class."""
    if K == 1:
        return [slice(None)]
    if len(codes) * K <= MASKED:
        return [codes == k for k in range(K)]
    order, ends = np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes, minlength=K))
    return np.split(order, ends[:-1])
