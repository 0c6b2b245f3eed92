"""Linear discriminant of random cosine features: a kernel discriminant that is a sum over rows.

    z(x)     the columns on a common scale: normal scores of numbers, indicators of frequent categories; 0 where missing
    φ_m(x)   √2·cos(ω_m·z(x) + β_m),    ω_m ~ Normal(0, w/D·I),  β_m ~ uniform(0, 2π),   m = 1 … M
    φ(x)|c   ~ Normal(μ_c, Σ)           the same Σ for all classes, shrunk towards a multiple of the identity

The mean of φ(x)·φ(y) over draws of ω and β is the kernel exp(−w·|z(x) − z(y)|²/(2D)), so that the discriminant, which
is linear in φ, is a smooth function of all columns together. The sums are those of a Gaussian of M features: learning,
unlearning and leaving a row out are exact. Scales of columns are chosen from the first rows without labels; the
shrinkage is chosen by the leave-one-out log loss of the labels. The features do not determine x, so that this is no
density of a row: it is an expert beside the families of the columns.

References: Rahimi & Recht, Random features for large-scale kernel machines, NIPS 2007; Mika et al., Fisher
discriminant analysis with kernels, NNSP 1999.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from deciban import kernels
from deciban.errors import HyperparameterError, InputError
from deciban.families import limits
from deciban.families.abilities import HasFoldScores, SeveralParts
from deciban.families.gaussian import Gaussian
from deciban.families.gaussian.family import AnyGaussianStats
from deciban.families.protocol import Density, Input, Rule
from deciban.read.arrays import Matrix, encode_categories
from deciban.read.batches import chosen_rows
from deciban.read.tables import Columns, Table, dense_numbers
from deciban.statistics import Array, Members

STRENGTHS = (3.0, 0.3, 0.03, 0.003)  # pseudo-rows of the target, as shares of the rows
MOST_WORK = 1.5e8  # multiplications per candidate; with more rows, an even selection of them is left out
GAIN = 1.0  # nats over all rows for which a weaker shrinkage is preferred
STEPS = 2.0**10  # features are multiples of 1/STEPS, so that sums of their products have no rounding error
BLOCK_ROWS = 1024  # rows whose features are computed at a time, so that they stay in the cache
SCALES = 2.0 ** np.arange(-6, 4)  # factors of the scores; each candidate is judged at its best factor


@dataclass(frozen=True)
class Ramp:
    """Map of the values of a column to a common scale: by knots of numbers, or by the names of categories."""

    knots: tuple[float, ...] = ()  # values at which the score is known; linear between them, constant beyond
    scores: tuple[float, ...] = ()  # normal scores of the knots
    names: tuple[Any, ...] = ()  # categories that have an indicator each
    shares: tuple[float, ...] = ()  # of these categories
    limit: float | None = None  # numbers of larger absolute value count as missing

    def __post_init__(self) -> None:
        if self.limit is not None:
            limits.checked(self.limit, "limit")

    @property
    def width(self) -> int:
        """Number of columns that it makes."""
        return len(self.names) or 1

    def apply(self, table: Table, column: int, name: str) -> Array:
        """Return the numbers of a column of a table, shape (n, width); NaN where missing."""
        values = Columns(table, [column])
        if not self.names:
            x = limits.within(dense_numbers(values, [name])[:, 0], self.limit)
            return np.where(np.isnan(x), np.nan, np.interp(x, self.knots, self.scores))[:, None]
        codes = encode_categories(values, [name]).on([{name: at for at, name in enumerate(self.names)}])[:, 0]
        flags = codes[:, None] == np.arange(len(self.names))
        return np.where(codes[:, None] < 0, np.nan, np.sqrt(2.0) * (flags - np.array(self.shares)))


@dataclass(frozen=True, eq=False, repr=False)
class CosineFeatures(Gaussian, SeveralParts, HasFoldScores):
    """Linear discriminant of random cosine features of several columns, for calibrated scores.

    Parameters
    ----------
    structure : {"auto", "tied"}, default="auto"
        "auto" chooses the strength of the shrinkage by the leave-one-out log loss of the labels; "tied" has the
        strength that is given.
    ramps : sequence of Ramp
        How each column becomes numbers of a common scale.
    features : int, default=128
        Number of features.
    bandwidth : float, default=0.25
        Squared frequency per column: smooth functions have a small one.

    Examples
    --------
    >>> both = CosineFeatures(ramps=(Ramp((0.0, 2.0), (-1.0, 1.0)), Ramp(names=("no",), shares=(0.5,))), features=3)
    >>> both.encode(Table.of([[1.0, "no"], [2.0, "yes"], [None, None]]), ["a", "b"]).shape
    (3, 3)
    """

    structure: Any = "auto"
    _: KW_ONLY
    target: Any = "spherical"
    ramps: tuple[Ramp, ...] = ()
    features: int = 128
    bandwidth: float = 0.25

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "ramps", tuple(self.ramps))
        if self.origin is None:
            object.__setattr__(self, "origin", np.zeros(self.features))
        if self.structure not in ("auto", "tied"):
            raise HyperparameterError(f"CosineFeatures(structure={self.structure!r}): it is 'auto' or 'tied'.")
        if not (self.features > 0 and self.bandwidth > 0 and self.ramps):
            raise HyperparameterError("CosineFeatures: features and bandwidth must be > 0, and ramps not empty.")

    def __repr__(self) -> str:
        return f"CosineFeatures({self.features} of {len(self.ramps)} columns, bandwidth={self.bandwidth:g})"

    # -- rows ------------------------------------------------------------------------------------------------------
    def encode(self, X: Input, columns: Sequence[str], stats: AnyGaussianStats | None = None) -> Array:
        """Return the features of each row, shape (n, M); NaN if all columns are missing."""
        table, at = (X.table, X.positions) if isinstance(X, Columns) else (Table.of(X), None)
        at = range(table.shape[1]) if at is None else at
        if len(at) != len(self.ramps):
            raise InputError(f"the table has {len(at)} columns, the model {len(self.ramps)}. Give the same columns.")
        parts = [ramp.apply(table, j, str(table.columns[j])) for ramp, j in zip(self.ramps, at)]
        frequencies, phases, found = self.frequencies, self.phases, np.empty((len(table), self.features))
        for start in range(0, len(found), BLOCK_ROWS):
            rows = slice(start, start + BLOCK_ROWS)
            z, waves = np.concatenate([part[rows] for part in parts], axis=1), found[rows]
            missing = np.isnan(z)
            z[missing] = 0.0
            np.matmul(z, frequencies, out=waves)
            waves += phases
            np.cos(waves, out=waves)
            waves *= np.sqrt(2.0) * STEPS
            np.rint(waves, out=waves)
            waves /= STEPS
            waves[missing.all(axis=1)] = np.nan
        return found

    @property
    def phases(self) -> Array:
        """The phases β, shape (M,)."""
        return _phases(self.features)

    @property
    def frequencies(self) -> Array:
        """The frequencies ω, shape (width of all columns, M)."""
        normal = _normal(sum(ramp.width for ramp in self.ramps), self.features)
        return np.asarray(normal * np.sqrt(self.bandwidth / len(self.ramps)))

    # -- leave-one-out: a row without values has no evidence -------------------------------------------------------
    def leave_one_out(
        self, stats: AnyGaussianStats, X: Matrix, members: Members, rule: Rule, density: Density | None = None
    ) -> Array:
        seen = ~np.isnan(X[:, 0])
        if seen.all():
            return super().leave_one_out(stats, X, members, rule, density)
        scores = np.zeros((len(X), members.K))
        scores[seen] = super().leave_one_out(stats, X[seen], members.take(seen), rule, density)
        return scores

    # -- choices ---------------------------------------------------------------------------------------------------
    def choose(
        self, stats: AnyGaussianStats, rows: tuple[Matrix, Members] | None = None, rule: Rule = "mean"
    ) -> CosineFeatures:
        if self.structure != "auto" or rows is None:
            return super().choose(stats, rows, rule)  # type: ignore[return-value]
        X, members = rows
        frozen = replace(self, structure="tied")
        whole = np.bincount(members.codes, members.row_weights(), members.K)
        work = members.K * (self.features**2 + 16)
        some = chosen_rows(len(members), max(500, int(MOST_WORK / work)))
        some = some[whole[members.codes[some]] > 1]  # a class of one row is unknown without it
        best, least = replace(frozen, strength=max(1.0, STRENGTHS[0] * whole.sum())), np.inf
        if not len(some) or members.K < 2:
            return best
        given, own = X[some], members.take(some)
        with np.errstate(divide="ignore"):
            log_prior = np.log(whole / whole.sum())
        seen = ~np.isnan(given[:, 0])
        strengths = [share * float(whole.sum()) for share in STRENGTHS]
        posterior: Any = replace(frozen, strength=strengths[0])._posterior(stats, rule)
        learnt = own if seen.all() else own.take(seen)
        for strength, left_out in zip(
            strengths, posterior.left_out_of_strengths(strengths, given[seen], learnt, rule), strict=True
        ):
            scores = np.zeros((len(some), members.K))
            scores[seen] = left_out
            loss = _least_loss(scores, own, log_prior)
            if loss < least - GAIN / len(some):
                best, least = replace(frozen, strength=strength), loss
        return best

    def select(self, features: Array) -> CosineFeatures:
        """Refuse: each feature depends on all columns."""
        raise InputError("features of all columns cannot be restricted to some of them.")

    # -- parts -----------------------------------------------------------------------------------------------------
    @property
    def part_columns(self) -> list[tuple[int, ...]]:
        return [tuple(range(len(self.ramps)))]

    def part_scores(self, density: Density, X: Array) -> list[Array]:
        return [density.log_density(X)]

    def left_out_parts(
        self, stats: Any, X: Array, members: Members, rule: Rule, density: Density | None = None
    ) -> list[Array]:
        return [self.leave_one_out(stats, X, members, rule, density)]

    def fold_scores(self, stats: Any, X: Array, members: Members, fold: Array, rule: Rule) -> Iterator[list[Array]]:
        seen, F = np.flatnonzero(~np.isnan(X[:, 0])), int(fold.max()) + 1
        rows, fold, n = X[seen], fold[seen], len(X)
        members = members if len(seen) == n else members.take(seen)
        codes, weight, K = members.own_codes(), members.row_weights(), members.K
        of_fold = Members.hard(fold * K + codes, F * K, weight).scatter(rows, stats.origin)
        weights, first, second = (each.reshape(F, K, *each.shape[1:]) for each in of_fold)
        for f in range(F):
            left = replace(
                stats, weight=stats.weight - weights[f], first=stats.first - first[f], second=stats.second - second[f]
            )
            # a row of weight 0 is scored by the sums as they are
            others = Members.hard(codes, members.classes, np.where(fold == f, 0.0, weight))
            scores = np.zeros((n, K))
            scores[seen] = self._posterior(left, rule).leave_one_out(rows, others, rule)
            yield [scores]

    def restricted(self, stats: Any, features: Array) -> tuple[CosineFeatures, Any] | None:
        same = np.array_equal(features, np.arange(len(self.ramps)))
        return (self, stats) if same else None  # each feature depends on all columns


def _least_loss(scores: Array, members: Members, log_prior: Array) -> float:
    """Return the log loss of the labels at the best of several scales of the scores."""
    about, weight = np.ascontiguousarray((scores - kernels.row_max(scores)[:, None]).T), members.row_weights()
    own = members.codes, np.arange(len(members))
    least = np.inf
    for scale in SCALES:  # classes first: sums over few classes are fast then
        joint = scale * about + log_prior[:, None]
        joint -= joint.max(axis=0)
        losses = np.log(np.exp(joint).sum(axis=0)) - joint[own]
        least = min(least, float(np.average(losses, weights=weight)))
    return least


@lru_cache(32)  # answers for single rows reuse them
def _phases(count: int) -> Array:
    phases = 2 * np.pi * _uniform(count, 1)
    phases.flags.writeable = False
    return phases


@lru_cache(32)
def _normal(width: int, count: int) -> Array:
    """Return normal numbers, the same on every machine, shape (width, count)."""
    from scipy.special import ndtri

    normal = np.asarray(ndtri(_uniform(width * count, 2)).reshape(width, count))
    normal.flags.writeable = False
    return normal


def _uniform(count: int, stream: int) -> Array:
    """Return pseudo-random numbers in (0, 1), the same on every machine (SplitMix64), shape (count,)."""
    state = (np.arange(1, count + 1, dtype=np.uint64) + np.uint64(stream << 32)) * np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    state ^= state >> np.uint64(31)
    return np.asarray(((state >> np.uint64(11)).astype(float) + 0.5) / 2**53)
