"""Sums of a Gaussian: weights, deviations from a fixed origin, and their products.

Such sums add, subtract and scale, and keep more digits than sums of raw values, if the origin is near the data. Sums
are moved to another origin, at a distance δ, by s' = s − nδ and S' = S − sδᵀ − δsᵀ + nδδᵀ.

A row with a value further than `reach` from the origin, 2¹⁰ times a robust scale, is a *far* row: in a float64 sum its
square would wipe out the digits of other rows, also after it is unlearnt. Its products are summed about zero as
integers, without rounding (`ExactSums`). Which rows are far depends on the row alone. Origin and reach are placed from
medians as soon as 32 rows were seen; until then every row is summed without rounding.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from deciban import kernels
from deciban.errors import DecibanError
from deciban.families import limits
from deciban.families.protocol import classes_of
from deciban.read.arrays import Matrix
from deciban.statistics import Array, Axis, ExactSums, Labels, Members, Stats, fixed, nested, summed
from deciban.statistics.base import TOLERANCE
from deciban.statistics.exact import two_product, two_sum

EPS = float(np.finfo(float).eps)
FLOOR = 1e-9  # variance of a constant column, relative to the largest variance
ORIGIN_ROWS = 256  # number of rows from which origin and scale are chosen, to save a pass over all rows
FIRST_ROWS = 32  # rows that must have been seen before origin and scale are chosen
FAR = 2.0**10  # robust scales from the origin beyond which a row is summed exactly
LARGEST = 2.0**500  # largest value: sums of squares of larger ones overflow
UNPLACED = -1.0  # reach while there is no origin yet: every row is far
DIGITS = 1e-9  # relative error of a variance that rows unlearnt may leave behind
Pair = tuple[Array, Array]  # a number of 106 bits: high + low


class Frame(NamedTuple):
    """Origin of the sums, and the distance from it beyond which rows are summed exactly."""

    origin: Array  # (D,)
    reach: Array  # (D,)

    @property
    def placed(self) -> bool:
        """Whether the origin was chosen."""
        return not len(self.reach) or bool(self.reach[0] >= 0)

    def inside(self, limit: Array) -> Frame:
        """Return the frame in which a row with a number beyond the limit is far, too."""
        return Frame(self.origin, np.clip(limit - np.abs(self.origin), 0.0, self.reach))

    @classmethod
    def given(cls, origin: Array | None, reach: Array | None) -> Frame | None:
        """Return the frame of a family, if its origin was chosen or given."""
        if origin is None:
            return None
        return cls.without_limit(origin) if reach is None else cls(origin, reach)

    @classmethod
    def without_limit(cls, origin: Array) -> Frame:
        """Return a frame in which no row is far."""
        return cls(origin, np.full(len(origin), LARGEST))

    @classmethod
    def unplaced(cls, D: int) -> Frame:
        """Return the frame in which every row is far."""
        return cls(np.zeros(D), np.full(D, UNPLACED))


class OriginSums(Stats):
    """Sums about an origin; refuses to remove rows that leave a negative variance."""

    weight: Array
    first: Array
    second: Array
    origin: Array
    reach: Array
    far: ExactSums | None
    head: Array
    all_near: bool  # no row is far; derived
    placed: bool  # origin and reach were chosen; derived

    def __post_init__(self) -> None:
        """Fill fields that older files do not have; replace empty exact sums by None."""
        object.__setattr__(self, "all_near", self.far is None or self.far.empty)
        object.__setattr__(self, "placed", False)
        if self.origin is None:  # names without sums
            return
        if self.reach is None:
            object.__setattr__(self, "reach", np.full(len(self.origin), LARGEST))
        object.__setattr__(self, "placed", Frame(self.origin, self.reach).placed)
        if self.far is not None and self.all_near and not self.far.rounded.any():
            object.__setattr__(self, "far", None)
        if self.head is None:
            object.__setattr__(self, "head", np.empty((0, len(self.origin))))

    def _but(self, **changes: Any) -> Self:
        return replace(self, **changes)

    @abstractmethod
    def about(self, origin: Array) -> Self:
        """Return the same sums about another origin."""

    @abstractmethod
    def diagonal(self) -> DiagonalStats:
        """Return the sums of single features, without products, of all rows."""

    @staticmethod
    @abstractmethod
    def _cells(D: int) -> tuple[Array, Array]:
        """Return the pairs of columns of `_factors` whose products are summed exactly."""

    @staticmethod
    @abstractmethod
    def _cell_count(D: int) -> int:
        """Return the number of pairs in `_cells`."""

    @staticmethod
    @abstractmethod
    def _factors(X: Array) -> Array:
        """Return the columns whose products are summed exactly."""

    @staticmethod
    @abstractmethod
    def _cells_of(features: Array, D: int) -> Array:
        """Return the positions of the cells of some features."""

    @abstractmethod
    def _far_about(self, origin: Array) -> tuple[Array, Array, Array, Array]:
        """Return the classes (G,) with far rows, and their weight, first and second sums about an origin."""

    @classmethod
    def of(cls, sums: tuple[Array, Array, Array], far: Array, X: Array, members: Members, frame: Frame) -> Self:
        """Return the statistics of near sums, and of far rows by their positions."""
        labels, D = _labels(X, members), X.shape[1]
        stats = cls(labels, *sums, *frame)  # type: ignore[call-arg]
        if not len(far):
            return stats
        rows, weight = np.asarray(X[far], dtype=float), None if members.weight is None else members.weight[far]
        large = np.abs(np.where(np.isnan(rows), 0.0, rows)) > LARGEST
        factors = cls._factors(rows)
        bad = large.any(axis=1) | ~np.isfinite(factors).all(axis=1)
        if bad.any():  # the caller then raises the error that names the value
            sums[1][members.codes[far[bad]]] = np.nan
            return stats
        exact = ExactSums.of_products(factors, weight, members.codes[far], cls._cells(D), members.classes)
        head = _sorted_values(rows) if not frame.placed else stats.head
        return stats._but(far=exact, head=head)

    @property
    def frame(self) -> Frame:
        """Origin and reach of the sums; of sums without an origin, those computed from their rows."""
        return Frame(self.origin, self.reach) if self.placed or not len(self.head) else place_frame(self.head)

    @property
    def exact(self) -> ExactSums:
        """The sums of the far rows."""
        if self.far is not None:
            return self.far
        return ExactSums.none(classes_of(self.labels), self._cell_count(len(self.origin)))

    @property
    def finite(self) -> bool:
        """Whether every sum is finite; bad input makes it infinite or NaN."""
        arrays = self.weight, self.first, self.second
        return all(bool(np.isfinite(each).all()) for each in arrays) and (self.far is None or self.far.finite)

    def whole(self) -> Self:
        """Return the sums of all rows, near and far, in float64; from these, parameters are estimated."""
        if self.all_near:
            return self
        together = self._together()
        return together._emptied(together.weight)

    def _together(self) -> Self:
        """Return near plus far sums, in float64."""
        if self.all_near:
            return self
        origin = self.frame.origin
        classes, *parts = self._far_about(origin)
        weight, first, second = self.weight.copy(), self.first.copy(), self.second.copy()
        for mine, part in zip((weight, first, second), parts):
            mine[classes] += part
        none = self._but(origin=origin, reach=None, far=None, head=None)
        return none._but(weight=weight, first=first, second=second)

    @abstractmethod
    def _emptied(self, weight: Array) -> Self:
        """Set sums to 0 where there is no weight."""

    def tidy(self) -> Self:
        """Set sums to 0 where there are no rows."""
        if self.all_near:
            return self._emptied(self.weight)
        weight = self.whole().weight
        gone: Array = np.logical_not(weight.reshape(len(weight), -1).any(axis=1))
        if not gone.any():
            return self
        some = ~gone
        kept = {name: getattr(self, name) for name in ("weight", "first", "second")}
        return self._but(
            far=self.exact.without_groups(gone),
            **{name: each * some.reshape(-1, *[1] * (each.ndim - 1)) for name, each in kept.items()},
        )

    # -- the algebra -----------------------------------------------------------------------------------------------
    def settle(self, other: Self) -> tuple[Self, Self]:
        """Move the second sums to the origin of the first; sums without an origin take that of the others."""
        if np.array_equal(self.origin, other.origin) and np.array_equal(self.reach, other.reach):
            return self, other
        if not self.placed:
            return self._but(origin=other.origin, reach=other.reach, head=other.head[:0]), other
        if not other.placed:
            return self, other._but(origin=self.origin, reach=self.reach, head=self.head[:0])
        return self, other.about(self.origin)._but(reach=self.reach)

    def relabelled(self, labels: Mapping[str, Labels]) -> Self:
        if all(labels.get(axis, names) == names for axis, names in self.labels.items()):
            return self
        moved = super().relabelled(labels)
        return moved if self.far is None else moved._but(far=self.far.relabelled(labels))

    def select(self, axis: str, index: Array) -> Self:
        picked = super().select(axis, index)
        if axis != "feature" or self.far is None:
            return picked
        cells = self._cells_of(np.asarray(index, dtype=np.intp), len(self.origin))
        return picked._but(far=self.far.take_cells(cells))

    def __mul__(self, factor: float) -> Self:
        scaled = super().__mul__(factor)
        return scaled if factor else scaled._but(head=self.head[:0])

    __rmul__ = __mul__

    def _combine(self, other: Self, act: Callable[[Array, Array], Array]) -> Self:
        new = super()._combine(other, act)
        if (self.far is None) != (other.far is None):
            new = new._but(far=self.exact._combine(other.exact, act))
        if self.placed:
            return new
        if act is not np.add:
            return new._but(head=_without_values(self.head, other.head)[0])
        return new._but(head=_sorted_values(np.concatenate([self.head, other.head])))._with_origin()

    def _with_origin(self) -> Self:
        """Place origin and reach once enough rows were seen; rows that are near then join the near sums."""
        if len(self.head) < FIRST_ROWS:
            return self
        frame = place_frame(self.head)
        with np.errstate(invalid="ignore"):
            far = bool((np.abs(self.head - frame.origin) > frame.reach).any())
        placed = self._but(origin=frame.origin, reach=frame.reach, head=self.head[:0])
        return placed if far else placed.whole()._but(reach=frame.reach)

    # -- unlearning ------------------------------------------------------------------------------------------------
    def _refuse_negative(self, other: Self, error: type[DecibanError]) -> None:
        """Refuse rows without which a weight or variance is negative, or sums without rows or digits remain."""
        if self.all_near and other.all_near:
            super()._refuse_negative(other, error)
            was, taken = self.diagonal(), other.diagonal()
            left = replace(
                was, weight=was.weight - taken.weight, first=was.first - taken.first, second=was.second - taken.second
            )
        else:
            self._refuse_far(other, error)
            was, left = self.diagonal(), self._combine(other, np.subtract)._together().diagonal()
        gone = left.weight <= TOLERANCE * was.weight
        mean = left.first / np.where(gone, 1.0, left.weight)
        scatter = left.second - np.where(gone, 0.0, left.first * mean)
        slack = TOLERANCE * was.second
        over = (np.abs(left.second) > slack) | (np.abs(left.first) > TOLERANCE * np.sqrt(was.weight * was.second))
        over |= left.weight < -TOLERANCE * np.maximum(was.weight, 1.0)
        wrong = np.argwhere(np.where(gone, over, scatter < -slack))
        if len(wrong):
            k, d = wrong[0]
            what = "sums without any rows" if gone[k, d] else f"a negative variance ({scatter[k, d]:.6g} in all)"
            self._never_learnt(f"class {self._class(k)!r}, feature {d} would have {what}", error)

    def refuse_lost(self, other: Self, error: type[DecibanError]) -> None:
        """Refuse near rows whose rounding would falsify the variance of the rows that stay.

        A class far from the origin lacks such digits also in a fit without the rows.
        """
        near = self._near_squares()
        taken = other._near_squares()
        if not (near > 64 * (near - taken)).any():  # the usual case
            return
        left = self._combine(other, np.subtract).diagonal()
        _, scatter = left.scatter()
        rest = np.where(scatter > 0, scatter, self._unit(left) ** 2)
        lost = (4 * EPS * near > DIGITS * rest) & (near > 64 * left.second) & (taken != 0)
        lost &= left.weight > TOLERANCE * self.diagonal().weight
        if lost.any():
            k, d = np.argwhere(lost)[0]
            raise error(
                f"class {self._class(k)!r}, feature {d}: the rows that stay have a variance of "
                f"{scatter[k, d] / left.weight[k, d]:.6g}, which the rounding of the sums so far "
                f"({near[k, d]:.6g}) would falsify.",
                remedy="Nothing was changed: fit again without these rows.",
            )

    def _unit(self, left: DiagonalStats) -> Array:
        """Return the scale of each column, with which the rounding of a constant column is compared, (D,)."""
        rows = left.weight.sum(axis=0)
        size = np.sqrt(left.second.sum(axis=0) / np.where(rows > 0, rows, 1.0))
        return np.where(self.reach < LARGEST, self.reach / FAR, np.where(size > 0, size, 1.0))

    def _refuse_far(self, other: Self, error: type[DecibanError]) -> None:
        """Refuse values that were never learnt, and far rows whose sums were rounded by decay."""
        if not self.placed and _without_values(self.head, other.head)[1]:
            self._never_learnt("a value of these rows is not among those learnt", error)
        decayed = self.exact.rounded > 0
        rounded = np.flatnonzero(decayed & np.isin(np.arange(len(decayed)), other.exact.group))
        if len(rounded):
            raise error(
                f"a row of class {self._class(rounded[0])!r} has a value so far from the others that only its exact "
                "sum can be taken back, and decay has rounded that sum.",
                remedy="Nothing was changed: unlearn such a row before decay, or fit again without it.",
            )

    def _never_learnt(self, what: str, error: type[DecibanError]) -> None:
        raise error(
            f"{what}; these rows were never learnt by this model. "
            "Nothing was changed: unlearn only rows that were learnt, with their labels."
        )

    def _class(self, k: int) -> object:
        return classes_of(self.labels).names[k]

    @abstractmethod
    def _near_squares(self) -> Array:
        """Return Σ w(x−o)² of the near rows, (K, D)."""


@dataclass(frozen=True, eq=False, repr=False)
class DiagonalStats(OriginSums):
    """Sums of single features; a missing value adds nothing."""

    weight: Array = summed("class", "feature", floor=True)  # Σ w          rows that have a value
    first: Array = summed("class", "feature")  # Σ w(x−o)
    second: Array = summed("class", "feature")  # Σ w(x−o)²
    origin: Array = fixed("feature")  # o
    reach: Array = fixed("feature", default=None)  # largest |x−o| of the rows in the sums above
    far: ExactSums | None = nested(default=None)  # Σ w, Σ wx and Σ wx² of the other rows
    head: Array = fixed("row", "feature", default=None, gaps=True)  # values before there was an origin, by column

    def about(self, origin: Array) -> DiagonalStats:
        """Return the same sums about another origin."""
        if np.array_equal(origin, self.origin):
            return self
        step = origin - self.origin
        second = self.second - 2 * step * self.first + self.weight * step**2
        if self.all_near:
            second = np.maximum(second, 0.0)
        return replace(self, first=self.first - self.weight * step, second=second, origin=origin)

    def diagonal(self) -> DiagonalStats:
        return self.whole()

    def noise(self) -> Array:
        """Return a bound on the rounding error of Σw(x−x̄)², (K, D)."""
        return (16 + np.sqrt(np.abs(self.weight))) * EPS * self.second + self.weight * (4 * EPS * self.origin) ** 2

    def scatter(self) -> tuple[Array, Array]:
        """Return means from the origin (K, D), and Σw(x−x̄)² (K, D), exactly 0 where a column is constant."""
        whole = self.whole()
        mean = whole.first / np.where(whole.weight > 0, whole.weight, 1.0)
        scatter = whole.second - whole.first * mean
        return mean, np.where(scatter > whole.noise(), scatter, 0.0)

    def _emptied(self, weight: Array) -> DiagonalStats:
        some = weight != 0
        return replace(self, first=self.first * some, second=self.second * some)

    def _near_squares(self) -> Array:
        return self.second

    @staticmethod
    def _cells(D: int) -> tuple[Array, Array]:
        at = np.arange(D)
        return np.concatenate([at, at, at + D]), np.concatenate([at, at + D, at + D])

    @staticmethod
    def _cell_count(D: int) -> int:
        return 3 * D

    @staticmethod
    def _factors(X: Array) -> Array:
        seen = ~np.isnan(X)
        return np.hstack([seen.astype(float), np.where(seen, X, 0.0)])

    @staticmethod
    def _cells_of(features: Array, D: int) -> Array:
        return np.concatenate([features, D + features, 2 * D + features])

    def _far_about(self, origin: Array) -> tuple[Array, Array, Array, Array]:
        classes, *pair = self.exact.totals()
        n, f, F = zip(*(np.split(part, 3, axis=1) for part in pair))
        s = _plus(f, _times(n, -origin))
        S = _plus(_plus(F, _times(f, -origin)), _times(s, -origin))
        return classes, sum(n), sum(s), sum(S)  # type: ignore[return-value]


@dataclass(frozen=True, eq=False, repr=False)
class GaussianStats(OriginSums):
    """Sums of features and of their products, from which every structure can be estimated."""

    weight: Array = summed("class", floor=True)  # Σ w
    first: Array = summed("class", "feature")  # Σ w(x−o)
    second: Array = summed("class", "feature", "feature")  # Σ w(x−o)(x−o)ᵀ
    origin: Array = fixed("feature")  # o
    reach: Array = fixed("feature", default=None)  # largest |x−o| of the rows in the sums above
    far: ExactSums | None = nested(default=None)  # Σ w(1, x)(1, x)ᵀ of the other rows
    head: Array = fixed("row", "feature", default=None)  # values seen before there was an origin, sorted by column

    def about(self, origin: Array) -> GaussianStats:
        """Return the same sums about another origin."""
        if np.array_equal(origin, self.origin):
            return self
        step = origin - self.origin
        cross = self.first[:, :, None] * step
        second = self.second - cross - cross.transpose(0, 2, 1) + self.weight[:, None, None] * np.outer(step, step)
        return replace(self, first=self.first - self.weight[:, None] * step, second=second, origin=origin)

    def diagonal(self) -> DiagonalStats:
        """Return the sums of single features, without products, of all rows."""
        whole = self.whole()
        weight = np.repeat(whole.weight[:, None], whole.first.shape[1], axis=1)
        second = np.maximum(np.diagonal(whole.second, axis1=1, axis2=2), 0.0)
        return DiagonalStats(whole.labels, weight, whole.first, second, whole.origin)

    def scatter(self) -> tuple[Array, Array]:
        """Return means from the origin (K, D), and Σw(x−x̄)(x−x̄)ᵀ (K, D, D), exactly 0 where a column is constant."""
        whole = self.whole()
        mean, variation = whole.diagonal().scatter()
        scatter = whole.second - whole.first[:, :, None] * mean[:, None, :]
        if not variation.all():
            scatter *= (variation[:, :, None] > 0) & (variation[:, None, :] > 0)
        return mean, scatter

    def _emptied(self, weight: Array) -> GaussianStats:
        some = weight != 0
        return replace(self, first=self.first * some[:, None], second=self.second * some[:, None, None])

    def _near_squares(self) -> Array:
        return np.asarray(np.diagonal(self.second, axis1=1, axis2=2))

    @staticmethod
    def _cells(D: int) -> tuple[Array, Array]:
        left, right = np.triu_indices(D + 1)
        return left, right

    @staticmethod
    def _cell_count(D: int) -> int:
        return (D + 1) * (D + 2) // 2

    @staticmethod
    def _factors(X: Array) -> Array:
        return np.hstack([np.ones((len(X), 1)), X])

    @staticmethod
    def _cells_of(features: Array, D: int) -> Array:
        places = np.zeros((D + 1, D + 1), dtype=np.intp)
        places[np.triu_indices(D + 1)] = np.arange((D + 1) * (D + 2) // 2)
        places = np.maximum(places, places.T)
        at = np.concatenate([[0], features + 1])
        return np.asarray(places[np.ix_(at, at)][np.triu_indices(len(at))])

    def _far_about(self, origin: Array) -> tuple[Array, Array, Array, Array]:
        classes, *pair = self.exact.totals()
        D = len(origin)
        tables = np.zeros((2, len(classes), D + 1, D + 1))
        for table, part in zip(tables, pair):
            table[:, *np.triu_indices(D + 1)] = part
            table += np.triu(table, 1).transpose(0, 2, 1)
        n, f, F = ([table[at] for table in tables] for at in (np.s_[:, 0, 0], np.s_[:, 0, 1:], np.s_[:, 1:, 1:]))
        s = _plus(f, _times([part[:, None] for part in n], -origin))
        S = _plus(F, _times([part[:, :, None] for part in f], -origin))
        S = _plus(S, _times([part[:, None, :] for part in s], -origin[:, None]))  # F − f oᵀ − o (f − n o)ᵀ
        return classes, sum(n), sum(s), sum(S)  # type: ignore[return-value]


def _with_values(X: Array, members: Members) -> tuple[Array, Members]:
    """Leave out rows in which every value is missing: they add nothing."""
    some = np.flatnonzero(np.isnan(X[:, 0])) if X.shape[1] else np.empty(0, np.intp)
    empty = some[np.isnan(X[some]).all(axis=1)]
    if not len(empty):
        return X, members
    kept = np.delete(np.arange(len(X)), empty)
    return X[kept], members.take(kept)


def collect_full(X: Array, members: Members, frame: Frame | None, limit: Array | None = None) -> GaussianStats:
    """Collect sums of deviations and of their products; rows with a number beyond `limit` are left out."""
    X, members = _with_values(X, members)
    frame = first_frame(X, members) if frame is None else frame
    if limit is not None and (members.shares is not None or not frame.placed):
        X, members, limit = *limits.learnt_rows(X, members, limit), None
    if not frame.placed:
        K, D = members.K, X.shape[1]
        none = np.zeros(K), np.zeros((K, D)), np.zeros((K, D, D))
        return GaussianStats.of(none, _counted(members), X, members, frame)
    *sums, far = members.scatter_within(X, *(frame if limit is None else frame.inside(limit)))
    if limit is None or not len(far):
        return GaussianStats.of((sums[0], sums[1], sums[2]), far, X, members, frame)
    near = GaussianStats(_labels(X, members), sums[0], sums[1], sums[2], *frame)
    others = limits.taken(X[far], members.take(far), limits.rows_within(X[far], limit))
    limits.warn_if_many(len(far) - len(others[0]), len(X))
    return near + collect_full(*others, frame)


def collect_diagonal(X: Matrix, members: Members, frame: Frame | None, limit: Array | None = None) -> DiagonalStats:
    """Collect sums of deviations and of their squares; numbers beyond `limit` count as missing.

    In a sparse table every zero is a value, the origin is zero, and no row is far.
    """
    if isinstance(X, np.ndarray):
        frame = first_frame(X, members) if frame is None else frame
        if limit is not None and (members.shares is not None or not frame.placed):
            X, limit = limits.learnt_values(X, limit), None
        if not frame.placed:
            none = np.zeros((3, members.K, X.shape[1]))
            return DiagonalStats.of((none[0], none[1], none[2]), _counted(members), X, members, frame)
        *sums, far = members.moments_within(X, *(frame if limit is None else frame.inside(limit)))
        if limit is None or not len(far):
            return DiagonalStats.of((sums[0], sums[1], sums[2]), far, X, members, frame)
        near = DiagonalStats(_labels(X, members), sums[0], sums[1], sums[2], *frame)
        limits.warn_if_many(int(limits.beyond(X[far], limit).any(axis=1).sum()), len(X))
        return near + collect_diagonal(limits.masked(X[far], limit), members.take(far), frame)
    if members.codes is None:
        first, second = members.total(X), members.total(X.multiply(X).tocsr())
    else:
        codes, K, D = members.codes, members.K, X.shape[1]
        first, second = kernels.sparse_class_moments(X.data, X.indices, X.indptr, codes, members.weight, K, D)
    weight = np.repeat(members.weights()[:, None], X.shape[1], axis=1)
    stats = DiagonalStats(_labels(X, members), weight, first, second, np.zeros(X.shape[1]))
    return stats if frame is None else replace(stats.about(frame.origin), reach=frame.reach)


def far_rows(X: Matrix, frame: Frame) -> Array:
    """Return the positions of the rows that are summed exactly."""
    if not isinstance(X, np.ndarray) or not frame.placed:
        return np.empty(0, np.intp)
    return kernels.rows_beyond(X, frame.origin, frame.reach)


def first_frame(X: Array, members: Members) -> Frame:
    """Return the frame for the first rows; unplaced if they are few and their members are hard."""
    counted = None if members.shares is None and members.weight is None else _counted(members)
    if members.shares is None and (len(X) if counted is None else len(counted)) < FIRST_ROWS:
        return Frame.unplaced(X.shape[1])
    head = X[:ORIGIN_ROWS] if counted is None else X[counted[:ORIGIN_ROWS]]
    return place_frame(np.asarray(head, dtype=float), X)


def place_frame(head: Array, X: Array | None = None) -> Frame:
    """Return the median of the first rows as origin, and 2¹⁰ times the median distance from it as reach.

    Values at the median do not count as distances. The scale is rounded up to a power of two, and the origin to a
    multiple of it, so that sums of integers are sums of multiples of a power of two: they are exact, in any order. For
    columns that are constant in the first rows, all rows `X` are used.
    """
    origin, scale = _medians(head)
    if X is not None and len(X) > len(head):
        for d in np.flatnonzero(scale == 0):
            _, more = _medians(np.asarray(X[:, d : d + 1], dtype=float), origin[d : d + 1])
            scale[d] = more[0]
    varies, size = scale > 0, np.where(origin == 0, 1.0, np.abs(origin))
    fraction, power = np.frexp(np.where(varies, scale, size))
    unit = np.ldexp(1.0, power - (fraction == 0.5))
    rounded = varies & (np.abs(origin) < 2.0**52 * unit)
    origin[rounded] = np.round(origin[rounded] / unit[rounded]) * unit[rounded]
    return Frame(origin, np.minimum(FAR * unit, LARGEST))


def _medians(rows: Array, middle: Array | None = None) -> tuple[Array, Array]:
    """Return the medians of the finite values, and those of their distances from them above 0; 0 without such values.

    Of an even number of values, the median is the lower one of the two in the middle.
    """
    values = np.sort(np.where(np.isfinite(rows), rows, np.inf), axis=0)
    each, seen = np.arange(values.shape[1]), np.isfinite(values).sum(axis=0)
    if middle is None:
        middle = np.where(seen > 0, values[np.maximum(seen - 1, 0) // 2, each] if len(values) else 0.0, 0.0)
    away = np.abs(values - middle)
    away[~(away > EPS * np.abs(middle))] = 0.0
    away = np.sort(away, axis=0)
    some = seen - (away == 0).sum(axis=0)
    at = np.clip(seen - some + (some - 1) // 2, 0, max(len(away) - 1, 0))
    return middle, np.where(some > 0, away[at, each] if len(away) else 0.0, 0.0)


def _counted(members: Members) -> Array:
    """Return the positions of the rows with weight."""
    weight = members.weight if members.shares is None else members.row_weights()
    return np.arange(len(members)) if weight is None else np.flatnonzero(weight)


def _sorted_values(rows: Array) -> Array:
    """Sort each column, missing values last; rows without any value are dropped."""
    rows = np.sort(rows, axis=0)
    return rows[~np.isnan(rows).all(axis=1)] if rows.shape[1] else rows[:0]


def _without_values(head: Array, taken: Array) -> tuple[Array, bool]:
    """Remove values from sorted columns; return the rest, and whether a value was missing."""
    left, missing = np.full_like(head, np.nan), False
    for d in range(head.shape[1]):
        have, gone = (part[~np.isnan(part)] for part in (head[:, d], taken[:, d]))
        values, counts = np.unique(have, return_counts=True)
        out, times = np.unique(gone, return_counts=True)
        at = np.searchsorted(values, out)
        known = at < len(values)
        known[known] = values[at[known]] == out[known]
        counts[at[known]] -= times[known]
        missing = missing or not known.all() or bool((counts < 0).any())
        rest = np.repeat(values, np.maximum(counts, 0))
        left[: len(rest), d] = rest
    return left[~np.isnan(left).all(axis=1)] if left.shape[1] else left[:0], missing


# Numbers of 106 bits, as pairs of floats.
def _plus(a: Any, b: Any) -> Pair:
    total, error = two_sum(a[0], b[0])
    return two_sum(total, error + a[1] + b[1])


def _times(a: Any, factor: Array) -> Pair:
    product, error = two_product(a[0] + 0 * factor, factor + 0 * a[0])
    return two_sum(product, error + a[1] * factor)


def _labels(X: Matrix, members: Members) -> dict[str, Labels]:
    return {"class": members.classes, "feature": Axis(range(X.shape[1]), X.shape[1])}


# -- prior mean and target, from the sums ------------------------------------------------------------------------------
def pooled_mean(stats: GaussianStats | DiagonalStats) -> Array:
    """Return the mean of all rows, (D,)."""
    each = stats.diagonal()
    n = each.weight.sum(axis=0)
    return np.asarray(each.origin + each.first.sum(axis=0) / np.where(n > 0, n, 1.0))


def pooled_target(stats: GaussianStats | DiagonalStats, target: str) -> Array:
    """Return the target of the prior, (D,) or (D, D): the covariance within classes, in the form of `target`."""
    stats = stats.whole()
    variances = pooled_variances(stats.diagonal())
    if target == "spherical":
        return np.full_like(variances, variances.mean() if variances.size else 1.0)
    if target == "diagonal" or isinstance(stats, DiagonalStats):
        return variances
    _, scatter = stats.scatter()
    matrix = scatter.sum(axis=0) / max(stats.weight.sum(), 1.0)
    np.fill_diagonal(matrix, variances)
    return np.asarray(matrix)


def pooled_variances(stats: DiagonalStats) -> Array:
    """Return the variances within classes, (D,), all of them positive.

    If no class has two rows, these are the variances of all rows. A constant column gets `FLOOR` times the largest
    variance, or times the largest squared origin if all columns are constant, so that every density is finite. A column
    with at most one value gets the largest variance.
    """
    n = stats.weight.sum(axis=0)
    _, scatter = stats.scatter()
    within = scatter.sum(axis=0)
    total = np.maximum(stats.second.sum(axis=0) - stats.first.sum(axis=0) ** 2 / np.where(n > 0, n, 1.0), 0.0)
    alone = (stats.weight > 0).sum(axis=0) >= n  # no class has two rows
    noise = (16 + np.sqrt(n)) * EPS * stats.second.sum(axis=0)
    variance = np.where(alone & (total > noise), total, within) / np.where(n > 0, n, 1.0)
    magnitude = (stats.origin**2).max(initial=0.0)
    largest = variance.max(initial=0.0) or magnitude or 1.0
    return np.where(variance > 0, variance, np.where(n > 1, FLOOR * largest, largest))
