"""Gaussians of transformed numbers: logarithm or Yeo–Johnson power.

    z        =  log x,  or the Yeo–Johnson power of x/unit
    z | c    ~  Normal                                     any structure of the Gaussian family
    f(x|c)   =  Normal(z|c) · dz/dx

    Yeo–Johnson, 0 ≤ λ ≤ 2:   z = ((1+x)^λ − 1)/λ              x ≥ 0, log(1+x) for λ = 0
                              z = −((1−x)^(2−λ) − 1)/(2−λ)     x < 0, −log(1−x) for λ = 2

With λ between 0 and 2 the transform maps the real line onto itself, so that the density integrates to one. λ is chosen
by maximum likelihood, with a mean and a variance per class.

A number beyond `reach` is absurd, such as 99999999 for an unknown age. It counts as missing: it is no evidence, and a
row with such a number is not learnt. Whether a row is learnt depends on the row alone, so that it can be unlearnt.

Reference: Yeo and Johnson, A new family of power transformations, Biometrika 87 (2000).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, ClassVar, Literal, Self, cast

import numpy as np

from deciban.errors import HyperparameterError, InputError
from deciban.families import limits
from deciban.families.abilities import (
    Composite,
    HasChoices,
    HasDraws,
    HasFrame,
    HasLeftOutFeatures,
    HasLogPrior,
    HasParts,
    HasPosterior,
    SharesParameters,
    ability,
)
from deciban.families.gaussian import Gaussian
from deciban.families.protocol import Density, Family, Input, Posterior, Rows, Rule
from deciban.read.arrays import refuse, refuse_infinite
from deciban.read.tables import dense_numbers
from deciban.statistics import Array, Axis, Members, Stats, fixed, nested


# -- families of mapped values, of which `Transformed` and `Binned` are two --------------------------------------------
#   log f(x|c)  =  log g(t(x)|c) + log |t'(x)|          so that densities of x, not of t(x), are compared
# The map t is a choice: it is taken from the first rows and frozen. Its slope is the same for every class.
@dataclass(frozen=True, eq=False, repr=False)
class MappedStats(Stats):
    """The sums of mapped values, and the map they were collected with."""

    map: Array = fixed("feature", "number")  # (D, P) parameters of each feature's map
    inner: Any = nested()

    def select(self, axis: str, index: Array) -> Self:
        """Select features inside too."""
        chosen = super().select(axis, index)
        return chosen if axis == "class" else replace(chosen, inner=self.inner.select(axis, index))


@dataclass(frozen=True, eq=False)
class MappedFamily(Family[MappedStats], HasLogPrior, HasPosterior, HasDraws, HasFrame, HasLeftOutFeatures, Composite):
    """Base of the families of mapped values; each defines its map."""

    @abstractmethod
    def frozen_map(self) -> Array | None:
        """Return the parameters of the map.

        Returns
        -------
        ndarray of shape (D, P) or None
            The parameters of each feature; None while the map is open.
        """

    @abstractmethod
    def find_map(self, X: Array, members: Members) -> Array:
        """Choose the parameters of the map from the first rows.

        Parameters
        ----------
        X : ndarray of shape (n, D)
            Numbers, NaN where missing.
        members : Members
            The class and the weight of each row.

        Returns
        -------
        ndarray of shape (D, P)
            The parameters of each feature.
        """

    @abstractmethod
    def mapped(self, X: Array, map: Array) -> Rows:
        """Map rows to what the inner family takes.

        Parameters
        ----------
        X : ndarray of shape (n, D)
            Numbers, NaN where missing.
        map : ndarray of shape (D, P)
            Parameters of the map of each feature.

        Returns
        -------
        rows
            Encoded rows of the inner family.
        """

    @abstractmethod
    def log_slope(self, X: Array, map: Array) -> Array:
        """Compute log abs(t'(x)).

        Parameters
        ----------
        X : ndarray of shape (n, D)
            Numbers, NaN where missing.
        map : ndarray of shape (D, P)
            Parameters of the map of each feature.

        Returns
        -------
        ndarray of shape (n, D)
            The logarithms; 0 where a value is missing.
        """

    @abstractmethod
    def unmapped(self, Z: Array, map: Array, rng: np.random.Generator) -> Array:
        """Invert the map.

        Parameters
        ----------
        Z : ndarray of shape (n, D)
            Mapped values.
        map : ndarray of shape (D, P)
            Parameters of the map of each feature.
        rng : numpy.random.Generator
            Source of random numbers, where several values are mapped to the same one.

        Returns
        -------
        ndarray of shape (n, D)
            Rows that are mapped to `Z`.
        """

    @abstractmethod
    def inside(self, map: Array | None) -> Family[Any]:
        """Return the inner family.

        Parameters
        ----------
        map : ndarray of shape (D, P) or None
            Parameters of the map; None while it is open.

        Returns
        -------
        Family
            The family of the mapped values.
        """

    @abstractmethod
    def frozen(self, map: Array, inner: Family[Any]) -> Self:
        """Freeze the choices.

        Parameters
        ----------
        map : ndarray of shape (D, P)
            Parameters of the map of each feature.
        inner : Family
            The inner family, with its choices made.

        Returns
        -------
        Family
            This family with its choices made.
        """

    def supports(self, kind: type) -> bool:
        return ability(self.inside(self.frozen_map()), kind) is not None

    def check_sums(self, stats: MappedStats) -> None:
        """Check that sums from a file were collected under a map of this form.

        Parameters
        ----------
        stats : MappedStats
            Sums from a file.

        Raises
        ------
        InputError
            If the map of the sums has another shape.
        """
        map = self.frozen_map()
        if map is not None and map.shape != stats.map.shape:
            raise InputError(f"a map of shape {map.shape} does not fit sums under one of shape {stats.map.shape}.")

    # -- the contract ----------------------------------------------------------------------------------------------
    def encode(self, X: Input, columns: Sequence[str], stats: MappedStats | None = None) -> Array:
        rows = dense_numbers(X, columns)
        self.check(rows, columns)
        return rows

    def check(self, X: Array, columns: Sequence[str], learning: bool = False) -> None:
        refuse_infinite(X, columns)

    def collect(self, X: Array, members: Members) -> MappedStats:
        map = self.frozen_map()
        map = self.find_map(X, members) if map is None else map
        labels = {"class": members.classes, "feature": Axis(range(X.shape[1]), X.shape[1])}
        return MappedStats(labels, map, self.inside(map).collect(self.mapped(X, map), members))

    def choose(self, stats: MappedStats, rows: tuple[Array, Members] | None = None, rule: Rule = "mean") -> Self:
        inner_rows = None if rows is None else (self.mapped(rows[0], stats.map), rows[1])
        return self.frozen(stats.map, self.inside(stats.map).choose(stats.inner, inner_rows, rule))

    def resolve(self, stats: MappedStats) -> Self:
        return self.frozen(stats.map, self.inside(stats.map).resolve(stats.inner))

    def estimate(self, stats: MappedStats, rule: Rule) -> Density:
        return self._behind(stats, self.inside(stats.map).estimate(stats.inner, rule))

    def leave_one_out(
        self, stats: MappedStats, X: Array, members: Members, rule: Rule, density: Density | None = None
    ) -> Array:
        inner = density.inner if isinstance(density, MappedDensity) else None
        return self.inside(stats.map).leave_one_out(stats.inner, self.mapped(X, stats.map), members, rule, inner)

    # -- abilities, as far as the inner family has them ------------------------------------------------------------
    def left_out_features(self, stats: MappedStats, X: Array, members: Members, rule: Rule) -> Array:
        inner: HasLeftOutFeatures = self.inside(stats.map)  # type: ignore[assignment]  # see `supports`
        return inner.left_out_features(stats.inner, self.mapped(X, stats.map), members, rule)

    def separate(self, stats: MappedStats) -> bool:
        inner: HasLeftOutFeatures = self.inside(stats.map)  # type: ignore[assignment]  # see `supports`
        return inner.separate(stats.inner)

    def log_prior(self, density: MappedDensity) -> float:
        inner: HasLogPrior = self.inside(density.map)  # type: ignore[assignment]  # see `supports`
        return inner.log_prior(density.inner)

    def posterior(self, stats: MappedStats) -> Posterior:
        inner: HasPosterior = self.inside(stats.map)  # type: ignore[assignment]  # parameters describe mapped values
        return inner.posterior(stats.inner)

    def draw(self, stats: MappedStats, rng: np.random.Generator, times: int = 1) -> Density:
        inner: HasDraws = self.inside(stats.map)  # type: ignore[assignment]  # see `supports`
        return self._behind(stats, inner.draw(stats.inner, rng, times))

    def framed(self, stats: MappedStats) -> Self:
        old = self.inside(stats.map)
        inner: HasFrame = old  # type: ignore[assignment]  # see `supports`
        new: Any = inner.framed(stats.inner)
        return self if new is old else self.frozen(stats.map, new)

    def _behind(self, stats: MappedStats, inner: Density) -> MappedDensity:
        family = self if self.frozen_map() is not None else self.frozen(stats.map, self.inside(stats.map))
        return MappedDensity(inner, family)


@dataclass(frozen=True, eq=False)
class MappedDensity(Density):
    """Inner densities of mapped values."""

    inner: Density
    family: MappedFamily

    @property
    def K(self) -> int:
        return self.inner.K

    @property
    def map(self) -> Array:
        """The parameters of the map, shape (D, P)."""
        return cast(Array, self.family.frozen_map())

    def supports(self, kind: type) -> bool:
        """Whether the inner densities have the ability."""
        return ability(self.inner, kind) is not None

    def log_density(self, X: Array) -> Array:
        """Score the mapped values; the slope, the same for every class, is in `log_base`."""
        return self.inner.log_density(self.family.mapped(X, self.map))

    def log_base(self, X: Array) -> Array:
        """Return the slope and the terms that the inner density leaves out, shape (n,)."""
        map = self.map
        slope, Z = self.family.log_slope(X, map), self.family.mapped(X, map)
        return np.asarray(slope.sum(axis=1) + self.inner.log_base(Z))

    def parts(self, X: Array) -> Array:
        """Return the inner density's parts, shape (n, K, D)."""
        inner: HasParts = self.inner  # type: ignore[assignment]  # see `supports`
        return inner.parts(self.family.mapped(X, self.map))

    def sample(self, codes: Array, rng: np.random.Generator) -> Array:
        """Draw mapped values and map them back."""
        return self.family.unmapped(self.inner.sample(codes, rng), self.map, rng)


# -- transformed numbers -----------------------------------------------------------------------------------------------
Transform = Literal["none", "log", "yeo-johnson"]
Outside = Literal["refuse", "gap"]
TRANSFORMS = ("none", "log", "yeo-johnson")
OUTSIDE = ("refuse", "gap")
ENOUGH = 4096  # number of rows by which a power is chosen
POWERS = tuple(k / 4 for k in range(9))  # candidates for λ: few, so that independent fits often choose the same
FAR = 32  # robust scales from the median up to which values are used to choose a power


@dataclass(frozen=True, eq=False)
class Transformed(MappedFamily, HasChoices, SharesParameters):
    """Gaussian of transformed numbers.

    Parameters
    ----------
    by : {"yeo-johnson", "log", "none"} or sequence of them, default="yeo-johnson"
        Transform of all features, or of each.
    inner : Family, default=Gaussian("diagonal")
        Family of the transformed numbers.
    power : array-like of shape (n_features,), optional
        Yeo–Johnson power λ, from 0 to 2. If None, it is chosen at the first fit.
    unit : array-like of shape (n_features,), optional
        Divisor of the numbers before a Yeo–Johnson power. If None, it is chosen at the first fit.
    outside : {"refuse", "gap"}, default="refuse"
        Treatment of numbers that have no logarithm: raise an error, or count them as missing.
    reach : array-like of shape (n_features,), optional
        Numbers of larger absolute value are treated as missing. If None, there is no limit.

    Examples
    --------
    >>> incomes = Transformed("log").fit([[100.0], [1000.0], [10000.0]])
    >>> incomes.log_density([[1000.0], [3000.0]]).round(3)
    array([-8.458, -9.727])
    """

    shapes: ClassVar = {"power": "D real", "unit": "D positive", "reach": "D positive"}

    by: Transform | tuple[Transform, ...] = "yeo-johnson"
    _: KW_ONLY
    inner: Family[Any] = field(default_factory=lambda: Gaussian("diagonal"))
    power: Array | None = None  # (D,) λ
    unit: Array | None = None  # (D,)
    outside: Outside = "refuse"
    reach: Array | None = None  # (D,)

    @property
    def accepts(self) -> frozenset[str]:
        logs = "log" in (self.by if isinstance(self.by, tuple) else (self.by,))
        return self.inner.accepts & (frozenset({"gaps"}) if logs else frozenset({"gaps", "negative"}))

    def __post_init__(self) -> None:
        if isinstance(self.by, list):
            object.__setattr__(self, "by", tuple(self.by))
        for by in self.by if isinstance(self.by, tuple) else (self.by,):
            if by not in TRANSFORMS:
                raise HyperparameterError(f"by={by!r} is not one of {', '.join(TRANSFORMS)}.")
        if self.outside not in OUTSIDE:
            raise HyperparameterError(f"outside={self.outside!r} is not one of {', '.join(OUTSIDE)}.")
        for name in ("power", "unit"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, np.atleast_1d(np.asarray(getattr(self, name), dtype=float)))
        if self.reach is not None:
            object.__setattr__(self, "reach", limits.checked(self.reach, "reach"))
        if self.power is not None and not ((self.power >= 0) & (self.power <= 2)).all():
            raise HyperparameterError(f"power={self.power}: must be between 0 and 2.")

    def __repr__(self) -> str:
        found = "" if self.power is None or self.by == "log" else f", power={np.round(self.power, 2).tolist()}"
        plain = "" if self.inner == Gaussian("diagonal") or self.power is not None else f", inner={self.inner!r}"
        return f"Transformed({self.by!r}{plain}{found})"

    def _each(self, D: int) -> tuple[str, ...]:
        """Return the transform of each feature."""
        if isinstance(self.by, tuple) and len(self.by) != D:
            raise HyperparameterError(
                f"there are {D} features, but transforms for {len(self.by)}. Give one per feature."
            )
        return self.by if isinstance(self.by, tuple) else (self.by,) * D

    def _logs(self, X: Array) -> Array:
        """Return whether the logarithm of each feature is taken, (D,)."""
        return np.array([by == "log" for by in self._each(X.shape[1])])

    def check(self, X: Array, columns: Sequence[str], learning: bool = False) -> None:
        super().check(X, columns, learning)
        logs = self._logs(X)
        if self.outside == "refuse" and logs.any() and X.size and np.nanmin(np.where(logs, X, 1.0), initial=1.0) <= 0:
            must = "only numbers above zero have a logarithm"
            remedy = "Use 'yeo-johnson' for this column, or outside='gap'."
            refuse(np.where(logs, X, 1.0), columns, lambda x: x <= 0, must, remedy)

    # -- the map: (D, 2) power and unit ----------------------------------------------------------------------------
    def frozen_map(self) -> Array | None:
        if self.power is None or self.unit is None:
            return None
        if np.shape(self.power) != np.shape(self.unit):
            raise HyperparameterError("powers and units are not equally many: give one of each for every column.")
        return np.stack([self.power, self.unit], axis=1)

    def find_map(self, X: Array, members: Members) -> Array:
        rows = np.linspace(0, len(X) - 1, min(len(X), ENOUGH)).astype(np.intp)
        some, few = np.asarray(X[rows], dtype=float), members.take(rows)
        found = np.ones((X.shape[1], 2))
        at = [j for j, by in enumerate(self._each(X.shape[1])) if by == "yeo-johnson"]
        scales = np.array([robust_scale(some[:, j])[1] for j in at])
        found[at, 1] = np.exp2(2 * np.round(np.log2(scales) / 2))
        if at:
            found[at, 0] = best_powers(some[:, at] / found[at, 1], few)
        return found

    # -- rows with numbers that count as missing -----------------------------------------------------------------------
    def _masked(self, X: Array) -> Array:
        """Return numbers with NaN in place of absurd ones, and of those without a logarithm if these are gaps."""
        X = X if self.reach is None else limits.masked(X, self.reach)
        without = self._without_logarithm(X)
        return np.where(without, np.nan, X) if without.any() else X

    def _without_logarithm(self, X: Array) -> Array:
        """Return whether numbers without a logarithm count as missing, (n, D), or one False if none does."""
        if self.outside == "gap":
            logs = self._logs(X)
            if logs.any():
                return np.asarray((X <= 0) & logs)
        return np.zeros((1, 1), dtype=bool)

    def _near(self, X: Array) -> Array | None:
        """Return the positions of the rows that are learnt; None if all are.

        Rows with an absurd number are not; neither is one without a logarithm, if the inner family needs all values.
        """
        near = limits.rows_within(X, self.reach)
        without = self._without_logarithm(X)
        if "gaps" in self.inner.accepts or not without.any():
            return near
        rows = np.flatnonzero(~without.any(axis=1))
        return rows if near is None else np.intersect1d(near, rows)

    def collect(self, X: Array, members: Members) -> MappedStats:
        near = self._near(X)
        if near is not None:
            limits.warn_if_many(len(X) - len(near), len(X))
        return super().collect(*limits.taken(X, members, near))

    def choose(self, stats: MappedStats, rows: tuple[Array, Members] | None = None, rule: Rule = "mean") -> Transformed:
        if rows is not None:
            rows = limits.taken(*rows, self._near(rows[0]))
        return super().choose(stats, rows, rule)

    def leave_one_out(
        self, stats: MappedStats, X: Array, members: Members, rule: Rule, density: Density | None = None
    ) -> Array:
        near = self._near(X)
        if near is None:
            return super().leave_one_out(stats, X, members, rule, density)
        scores = np.asarray((self.estimate(stats, rule) if density is None else density).log_density(X))
        scores[near] = super().leave_one_out(stats, X[near], members.take(near), rule, density)
        return scores

    def left_out_features(self, stats: MappedStats, X: Array, members: Members, rule: Rule) -> Array:
        near = self._near(X)
        if near is None:
            return super().left_out_features(stats, X, members, rule)
        learnt = super().left_out_features(stats, X[near], members.take(near), rule)
        scores = np.asarray(self.estimate(stats, rule).parts(X))  # type: ignore[attr-defined]
        scores[near] = learnt
        return scores

    def mapped(self, X: Array, map: Array) -> Array:
        X = self._masked(X)
        columns = [_transform(X[:, j], by, *map[j]) for j, by in enumerate(self._each(X.shape[1]))]
        return np.stack(columns, axis=1)

    def log_slope(self, X: Array, map: Array) -> Array:
        X = self._masked(X)
        slopes = np.stack([_log_slope(X[:, j], by, *map[j]) for j, by in enumerate(self._each(X.shape[1]))], axis=1)
        slopes[np.isnan(slopes)] = 0.0
        return slopes

    def unmapped(self, Z: Array, map: Array, rng: np.random.Generator) -> Array:
        columns = [_inverse(Z[:, j], by, *map[j]) for j, by in enumerate(self._each(Z.shape[1]))]
        return np.stack(columns, axis=1)

    # -- the inner family ------------------------------------------------------------------------------------------
    def inside(self, map: Array | None) -> Family[Any]:
        return self.inner

    def frozen(self, map: Array, inner: Family[Any]) -> Transformed:
        return replace(self, inner=inner, power=map[:, 0], unit=map[:, 1])

    def supports(self, kind: type) -> bool:
        # the frozen power is a choice; the other abilities are those of the inner family
        return kind is HasChoices or super().supports(kind)

    @property
    def shared(self) -> bool:
        inner = ability(self.inner, SharesParameters)
        return inner is not None and inner.shared

    def chosen_by_labels(self) -> list[str]:
        inner = ability(self.inner, HasChoices)
        return [] if inner is None else inner.chosen_by_labels()

    def select(self, features: Array) -> Transformed:
        by = tuple(self.by[j] for j in features) if isinstance(self.by, tuple) else self.by
        power, unit, reach = (None if each is None else each[features] for each in (self.power, self.unit, self.reach))
        return replace(self, by=by, power=power, unit=unit, reach=reach, inner=self.inner.select(features))

    def keep_choices(self, chosen: Transformed, with_rows: bool) -> Transformed:
        if with_rows:
            return self
        inner = ability(self.inner, HasChoices)
        kept: Any = self.inner if inner is None else inner.keep_choices(chosen.inner, with_rows)
        return replace(self, power=chosen.power, unit=chosen.unit, inner=kept)


def robust_scale(x: Array) -> tuple[float, float]:
    """Return the median, and half the distance between the quantiles of one standard deviation to either side.

    If more than two thirds of the values are equal, the scale is that of the others. It is never 0.
    """
    x = x[~np.isnan(x)]
    if not len(x):
        return 0.0, 1.0
    low, middle, high = np.quantile(x, (0.16, 0.5, 0.84))
    scale = high / 2 - low / 2
    others = np.abs(x[x != middle] - middle)
    return float(middle), float(scale or (np.median(others) if len(others) else 1.0))


def best_powers(X: Array, members: Members) -> Array:
    """Return for each column the λ among `POWERS` with the highest likelihood, with a mean and a variance per class.

    Values far from the others are left out, so that a few absurd ones do not decide. A constant column has λ = 1.
    """
    middle, scale = np.array([robust_scale(x) for x in X.T]).reshape(-1, 2).T
    known = np.abs(X - middle) <= FAR * scale  # False for NaN
    x = np.where(known, X, 0.0)
    codes = members.codes if members.codes is not None else np.zeros(len(X), dtype=np.intp)
    weight = known * members.row_weights()[:, None]
    flags = (codes == np.arange(members.K)[:, None]).astype(float)  # (K, n)
    rows = flags @ weight
    total = np.maximum(rows.sum(axis=0), 1e-300)
    slope = (weight * np.sign(x) * np.log1p(np.abs(x))).sum(axis=0)

    def loss(power: float) -> Array:
        z = yeo_johnson(x, power)
        z -= (weight * z).sum(axis=0) / total
        spread = flags @ (weight * z * z) - (flags @ (weight * z)) ** 2 / np.maximum(rows, 1e-300)
        pooled = np.maximum(spread.sum(axis=0) / total, 1e-300)
        variance = (np.maximum(spread, 0.0) + pooled) / (rows + 1.0)  # one pseudo-row: a class of one row stays finite
        return np.asarray(0.5 * (rows * np.log(variance)).sum(axis=0) - (power - 1.0) * slope)

    best = np.array(POWERS)[np.argmin([loss(power) for power in POWERS], axis=0)]
    least, most = np.where(known, X, np.inf).min(axis=0), np.where(known, X, -np.inf).max(axis=0)
    return np.where(least < most, best, 1.0)


def yeo_johnson(x: Array, power: float) -> Array:
    """Return the Yeo–Johnson transform of each number.

    >>> yeo_johnson(np.array([-1.0, 0.0, 3.0]), 0.5).round(3)
    array([-1.219,  0.   ,  2.   ])
    """
    up, down = np.log1p(np.maximum(x, 0.0)), np.log1p(np.maximum(-x, 0.0))
    rise = up if power == 0 else np.expm1(power * up) / power
    fall = down if power == 2 else np.expm1((2 - power) * down) / (2 - power)
    return np.where(x >= 0, rise, -fall) + 0.0 * x


def _transform(x: Array, by: str, power: float, unit: float) -> Array:
    if by == "none":
        return x
    return np.log(x) if by == "log" else yeo_johnson(x / unit, power)


def _log_slope(x: Array, by: str, power: float, unit: float) -> Array:
    if by == "none":
        return np.zeros(len(x))
    if by == "log":
        return -np.log(x)
    return np.asarray((power - 1.0) * np.sign(x) * np.log1p(np.abs(x / unit)) - np.log(unit))


def _inverse(z: Array, by: str, power: float, unit: float) -> Array:
    if by == "none":
        return z
    if by == "log":
        return np.exp(z)
    up, down = np.maximum(z, 0.0), np.maximum(-z, 0.0)
    rise = np.expm1(up) if power == 0 else np.expm1(np.log1p(power * up) / power)
    fall = np.expm1(down) if power == 2 else np.expm1(np.log1p((2 - power) * down) / (2 - power))
    return unit * np.where(z >= 0, rise, -fall)
