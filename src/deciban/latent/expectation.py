"""E-steps over encoded rows: responsibilities, and the sums that they weight.

    γ_nm ∝ π_m f(x_n|m)        N_m = Σ w γ_nm        the family's `collect` with members γ

The general pass takes a block of rows at a time, so that memory does not grow with the table. Large tables of numbers
or word counts take a fused kernel: a normal log density is linear in [x, vech(xxᵀ)], and so are the sums that a
Gaussian needs, so one matrix product scores a block of rows and another one collects it; a multinomial log density is
linear in the counts. Both passes give the same sums up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from deciban import kernels
from deciban.families.counts import MultinomialDensity, log_coefficient
from deciban.families.gaussian.densities import DiagonalNormal, NormalDensity
from deciban.families.gaussian.family import Gaussian
from deciban.families.gaussian.sums import DiagonalStats, GaussianStats
from deciban.families.multinomial import Multinomial, MultinomialStats
from deciban.families.passes import LabelledPart, Passes
from deciban.families.product import Product
from deciban.families.protocol import Family, Rows
from deciban.kernels.choice import compiled
from deciban.kernels.mixture import feature_count, mixture_pass, sparse_mixture_pass
from deciban.latent.components import MixtureDensity, MixtureSums, collect_under
from deciban.linalg import whiten
from deciban.read.tables import Table
from deciban.statistics import Array, Axis, Members

BLOCK_CELLS = 2**19  # numbers in a block of rows, or in its responsibilities
LEAST_ROWS, MOST_ROWS = 256, 2**15  # rows in a block
FAR = 1e6  # squared distance of a mean from the origin, in variances, above which expanding squares costs digits

Coefficients = tuple[Array, Array, Array | None]  # weights (M, F), bias (M,), second-order terms that all m share


class WeightedRows:
    """Encoded rows to which a mixture is fitted, with their weights; it keeps what no estimate changes."""

    def __init__(self, family: Family, X: Rows, weight: Array | None = None) -> None:
        self.family = family  # of the components, with its choices made
        self.X = X
        self.weight = weight  # (n,), or None for 1 each
        self._base: float | None = None

    def __len__(self) -> int:
        return int(self.X.shape[0])

    @cached_property
    def total_weight(self) -> float:
        """Σ w."""
        return float(len(self) if self.weight is None else self.weight.sum())

    @cached_property
    def log_coefficients(self) -> Array:
        """Logarithms of the multinomial coefficients, shape (n, 2): two numbers whose sums over rows are exact."""
        return log_coefficient(self.X)

    def base(self, density: MixtureDensity) -> float:
        """Return Σ w log_base(x); it is equal for all densities of the family."""
        if self._base is None:
            self._base = sum(float(np.sum(w * density.log_base(x))) for x, w in self.blocks(1))
        return self._base

    def take(self, rows: Array | slice) -> WeightedRows:
        """Return some of the rows."""
        return WeightedRows(self.family, self.X[rows], None if self.weight is None else self.weight[rows])

    def blocks(self, M: int) -> Iterator[tuple[Rows, Array]]:
        """Yield blocks of rows with their weights, for M numbers per row; a small table is one block."""
        n = len(self)
        width = max(M, 1 if sp.issparse(self.X) else self.X.shape[1])
        size = int(np.clip(BLOCK_CELLS // width, LEAST_ROWS, MOST_ROWS))
        for at in range(0, n, size):
            rows = slice(at, min(at + size, n))
            weight = np.ones(rows.stop - at) if self.weight is None else self.weight[rows]
            yield (self.X if n <= size else self.X[rows]), weight

    def expect(self, density: MixtureDensity, names: Axis) -> tuple[MixtureSums | None, float]:
        """Return the sums and the log-likelihood under a density; no sums if a row has density 0."""
        fused = fused_expectation(self, density, names)
        if fused is not None:
            return fused[0], fused[1] + self.base(density)
        total, sums = 0.0, None
        for x, w in self.blocks(names.size):
            joint = density.log_joint(x)
            total += float(w @ kernels.log_sum_exp(joint))
            if not np.isfinite(total):
                return None, total
            shares = kernels.softmax(joint, out=joint)
            shares *= w[:, None]
            found = self.collect(x, shares, names, density)
            sums = found if sums is None else sums + found
        return sums, total + self.base(density)

    def collect(self, x: Rows, shares: Array, names: Axis, density: MixtureDensity | None = None) -> MixtureSums:
        """Return the sums of a block; families with hidden values of their own collect under the density too."""
        under = None if density is None else density.components
        sums = collect_under(self.family, x, Members.soft(shares, names), under)
        return MixtureSums({"class": names}, shares.sum(axis=0), sums)

    def collect_shares(self, names: Axis, shares: Callable[[int, int], Array]) -> MixtureSums:
        """Return the sums under responsibilities shares(begin, end), not yet multiplied by the weights."""
        sums: Any = None
        begin = 0
        for x, w in self.blocks(names.size):
            found = self.collect(x, shares(begin, begin + len(w)) * w[:, None], names)
            sums = found if sums is None else sums + found
            begin += len(w)
        return sums

    def log_density(self, density: MixtureDensity) -> Array:
        """Return log f(x), shape (n,), every constant included."""
        blocks = [density.log_density(x)[:, 0] + density.log_base(x) for x, _ in self.blocks(1)]
        return np.concatenate(blocks) if blocks else np.zeros(0)


# -- rows in other places ----------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class EncodedPart:
    """Encodes the rows of a part by a family whose choices are made."""

    family: Family

    def __call__(self, part: Any) -> WeightedRows:
        table = Table.of(part)
        given: Any = table if isinstance(self.family, Product) else table.pick()
        return WeightedRows(self.family, self.family.encode(given, ()))


@dataclass(frozen=True, eq=False)
class PartExpectation:
    """The E-step of a part."""

    density: MixtureDensity
    names: Axis

    def __call__(self, rows: WeightedRows) -> tuple[MixtureSums | None, float]:
        return rows.expect(self.density, self.names) if len(rows) else (None, 0.0)


@dataclass(frozen=True, eq=False)
class ClassOfPart:
    """Takes the rows of one class from a part."""

    family: Family
    name: object

    def __call__(self, part: LabelledPart) -> WeightedRows:
        if part.rows is None or part.members is None or self.name not in part.members.classes.names:
            return WeightedRows(self.family, np.zeros((0, 1)))
        code = part.members.classes.names.index(self.name)
        at = np.flatnonzero(part.members.codes == code)
        weight = part.members.row_weights()[at]
        return WeightedRows(self.family, part.rows[at], None if (weight == 1).all() else weight)


def _weight_of(rows: WeightedRows) -> tuple[int, float]:
    return len(rows), rows.total_weight


class PartedRows:
    """Rows in parts, for the passes of EM; the sums of the parts travel, and the rows do not."""

    def __init__(self, family: Family, passes: Passes, rows_of: Callable[[Any], WeightedRows] | None = None) -> None:
        self.family = family
        self.passes = passes.kept(rows_of or EncodedPart(family))
        self.size, self.total_weight = self.passes.total(_weight_of)

    def __len__(self) -> int:
        return int(self.size)

    def expect(self, density: MixtureDensity, names: Axis) -> tuple[MixtureSums | None, float]:
        """As that of `WeightedRows`."""
        sums, total = self.passes.total(PartExpectation(density, names))
        return (sums if np.isfinite(total) else None), total


# -- fused passes ------------------------------------------------------------------------------------------------------
def fused_expectation(rows: WeightedRows, density: MixtureDensity, names: Axis) -> tuple[MixtureSums, float] | None:
    """Return sums and log-likelihood without the base; None where the general pass must be taken."""
    family, parts, X = rows.family, density.components, rows.X
    if type(family) is Multinomial and isinstance(parts, MultinomialDensity) and sp.issparse(X):
        return _fused_words(rows, density, names)
    if type(family) is not Gaussian or sp.issparse(X) or not isinstance(parts, NormalDensity | DiagonalNormal):
        return None
    products = isinstance(parts, NormalDensity)
    if family.keep == "full" and not products:  # the family collects products that this density does not need
        return None
    if not compiled(len(rows) * feature_count(X.shape[1], products) * names.size):
        return None
    coefficients = _normal(parts) if isinstance(parts, NormalDensity) else _diagonal(parts)
    if coefficients is None:
        return None
    weights, bias, shared = coefficients
    bias = bias + density.log_weights
    counts, sums, total = mixture_pass(X, rows.weight, parts.origin, weights, bias, products)
    if not np.isfinite(total):
        return None  # a missing value, or a row too far away: the general pass finds out which
    D = X.shape[1]
    if shared is not None:
        total += float(shared @ sums[:, D:].sum(axis=0))
    labels: dict[str, Any] = {"class": names, "feature": Axis.of(D)}
    stats: GaussianStats | DiagonalStats
    if products:
        stats = GaussianStats(labels, counts, sums[:, :D], _square(sums[:, D:], D), parts.origin)
    else:
        stats = DiagonalStats(labels, np.repeat(counts[:, None], D, axis=1), sums[:, :D], sums[:, D:], parts.origin)
    return MixtureSums({"class": names}, counts, stats), total


def _normal(density: NormalDensity) -> Coefficients | None:
    """Coefficients of [z, z_u z_v] from the precision Λ: Λμ, and −½Λ with off-diagonal entries doubled."""
    D = density.shift.shape[1]
    whitener, log_det = density.whitener, density.log_det
    if whitener is None or log_det is None:
        whitener, log_det, _ = whiten(density.scale)
    root = whitener * np.sqrt(density.divisor[: len(whitener), None, None])
    inner = np.einsum("kd,kde->ke", density.shift, np.broadcast_to(root, (density.K, D, D)))
    far = (inner**2).sum(axis=1)
    if not far.max(initial=0.0) < FAR:
        return None
    linear = np.einsum("ke,kde->kd", inner, np.broadcast_to(root, (density.K, D, D)))
    bias = -0.5 * (far + log_det - D * np.log(density.divisor) + D * np.log(2 * np.pi))
    u, v = np.triu_indices(D)
    second = (root @ root.transpose(0, 2, 1))[:, u, v] * np.where(u == v, -0.5, -1.0)
    return _joined(linear, second, bias)


def _diagonal(density: DiagonalNormal) -> Coefficients | None:
    """Coefficients of [z, z²]: μ/σ² and −½/σ²."""
    variance, mean = density.variance, density.shift
    if not (mean**2 / variance).max(initial=0.0) < FAR:
        return None
    bias = -0.5 * (np.log(2 * np.pi * variance) + mean**2 / variance).sum(axis=1)
    return _joined(mean / variance, (-0.5 / variance)[: 1 if density.tied else None], bias)


def _joined(linear: Array, second: Array, bias: Array) -> Coefficients:
    """Join first- and second-order coefficients; second-order ones that all components share are not scored."""
    if len(second) == 1 < len(linear):
        return linear, bias, second[0]
    return np.concatenate([linear, second], axis=1), bias, None


def _square(triangles: Array, D: int) -> Array:
    """Symmetric matrices from the products of columns u ≤ v."""
    u, v = np.triu_indices(D)
    second = np.empty((len(triangles), D, D))
    second[:, u, v] = second[:, v, u] = triangles
    return second


def _fused_words(rows: WeightedRows, density: MixtureDensity, names: Axis) -> tuple[MixtureSums, float] | None:
    X, components = rows.X, density.components
    assert isinstance(components, MultinomialDensity)
    if not compiled(X.nnz * names.size):
        return None
    counts, sums, more, total = sparse_mixture_pass(
        X.data, X.indices, X.indptr, rows.weight, components.log_p, density.log_weights, rows.log_coefficients
    )
    if not np.isfinite(total):
        return None
    labels: dict[str, Any] = {"class": names, "word": Axis.of(X.shape[1])}
    return MixtureSums({"class": names}, counts, MultinomialStats(labels, sums.T, counts, more)), total
