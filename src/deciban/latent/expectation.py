"""The E-step over many rows: responsibilities and the sums they weigh, a block of rows at a time.

    γ_nm ∝ π_m f(x_n|m)        N_m = Σ w γ_nm        the family's `collect` with members γ

Large tables of numbers and of counts take one fused pass (`fused`); every other family takes this one. Both add up the
same sums, and neither holds anything as long as the table, so memory stays bounded.
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
from deciban.kernels.choice import compiled
from deciban.kernels.mixture import feature_count, mixture_pass, sparse_mixture_pass
from deciban.latent.components import MixtureDensity, MixtureSums
from deciban.linalg import whiten
from deciban.statistics import Array, Axis, Members

BLOCK_CELLS = 2**19  # numbers in a block of rows, or in its responsibilities
LEAST_ROWS, MOST_ROWS = 256, 2**15


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows that a mixture is fitted to."""

    family: Any  # of the components, its choices frozen
    X: Any
    weight: Array | None = None  # None means 1 each

    def __len__(self) -> int:
        return int(self.X.shape[0])

    @cached_property
    def total_weight(self) -> float:
        """Σ w."""
        return float(len(self) if self.weight is None else self.weight.sum())

    @cached_property
    def _known(self) -> dict[str, Any]:
        return {}

    def kept(self, name: str, compute: Callable[[], Any]) -> Any:
        """What no guess changes: computed once."""
        if name not in self._known:
            self._known[name] = compute()
        return self._known[name]

    def base(self, density: MixtureDensity) -> float:
        """Σ w log_base(x)."""

        def add() -> float:
            return sum(float(np.sum(w * density.log_base(x))) for x, w in self.blocks(1))

        return self.kept("base", add)

    def take(self, rows: Any) -> Rows:
        """Some of the rows."""
        return Rows(self.family, self.X[rows], None if self.weight is None else self.weight[rows])

    def blocks(self, M: int) -> Iterator[tuple[Any, Array]]:
        """Blocks of rows and their weights; small tables are one block."""
        n = len(self)
        width = max(M, 1 if sp.issparse(self.X) else self.X.shape[1])
        size = int(np.clip(BLOCK_CELLS // width, LEAST_ROWS, MOST_ROWS))
        for at in range(0, n, size):
            rows = slice(at, min(at + size, n))
            weight = np.ones(rows.stop - at) if self.weight is None else self.weight[rows]
            yield (self.X if n <= size else self.X[rows]), weight

    # -- E-steps -----------------------------------------------------------------------------------------------------
    def expect(self, density: MixtureDensity, names: Axis) -> tuple[MixtureSums | None, float]:
        """Sums under a guess, and the log-likelihood of that guess; None where some row has no density at all."""
        fast = expect(self, density, names)
        if fast is not None:
            sums, total = fast
            return sums, total + self.base(density)
        total, parts = 0.0, _Adder()
        for x, w in self.blocks(names.size):
            joint = density.log_joint(x)
            top = kernels.log_sum_exp(joint)
            total += float(w @ top)
            if not np.isfinite(total):
                return None, total
            shares = kernels.softmax(joint, out=joint)
            shares *= w[:, None]
            parts.add(self.collect(x, shares, names, density))
        return parts.total, total + self.base(density)

    def collect(self, x: Any, shares: Array, names: Axis, density: MixtureDensity | None = None) -> MixtureSums:
        """The sums of a block; families with hidden values of their own collect under the guess too."""
        members = Members.soft(shares, names)
        under = getattr(self.family, "collect_under", None)
        if under is None or density is None:
            sums = self.family.collect(x, members)
        else:
            sums = under(x, members, density.components)
        return MixtureSums({"class": names}, shares.sum(axis=0), sums)

    def collect_shares(self, names: Axis, shares: Callable[[int, int], Array]) -> MixtureSums:
        """The sums under responsibilities given by shares(begin, end), not yet weighted."""
        parts, begin = _Adder(), 0
        for x, w in self.blocks(names.size):
            parts.add(self.collect(x, shares(begin, begin + len(w)) * w[:, None], names))
            begin += len(w)
        return parts.total

    def log_density(self, density: MixtureDensity) -> Array:
        """(n,) log f(x), a block at a time."""
        blocks = [density.log_density(x)[:, 0] + density.log_base(x) for x, _ in self.blocks(1)]
        return np.concatenate(blocks) if blocks else np.zeros(0)


class _Adder:
    """Adds sums up as they come."""

    total: Any = None

    def add(self, sums: Any) -> None:
        self.total = sums if self.total is None else self.total + sums


# -- fused ----------
# E-steps of large tables in one fused pass, for Gaussians and for counts of words.
#
# A normal log density is linear in [x, vech(xxᵀ)], and so are the sums that a Gaussian needs: one matrix product
# scores a
# block of rows, another collects it. A multinomial's is linear in the counts. What comes out is what `collect` would
# have
# given, up to rounding.

FAR = 1e6  # squared distance of a mean from the origin, in variances, from which expanding squares costs digits


def expect(rows: Rows, density: MixtureDensity, names: Axis) -> tuple[MixtureSums | None, float] | None:
    """Sums and log-likelihood without the base; None where the plain pass must be taken."""
    parts, X = density.components, rows.X
    if type(rows.family) is Multinomial and isinstance(parts, MultinomialDensity) and sp.issparse(X):
        return _words(rows, density, names)
    if type(rows.family) is not Gaussian or sp.issparse(X) or not isinstance(parts, NormalDensity | DiagonalNormal):
        return None
    products = isinstance(parts, NormalDensity)
    if rows.family._complete != products or not compiled(len(rows) * feature_count(X.shape[1], products) * names.size):
        return None
    coefficients = _matrix(parts) if isinstance(parts, NormalDensity) else _axes(parts)
    if coefficients is None:
        return None
    weights, bias, shared = coefficients
    bias = bias + density.log_weights
    origin = parts.origin
    counts, sums, total = mixture_pass(X, rows.weight, origin, weights, bias, products)
    if not np.isfinite(total):
        return None  # a gap, or a row too far away: the plain pass knows which
    D = X.shape[1]
    if shared is not None:  # the second-order part that all components have alike
        total += float(shared @ sums[:, D:].sum(axis=0))
    labels: dict[str, Any] = {"class": names, "feature": Axis.of(D)}
    stats: Any
    if products:
        stats = GaussianStats(labels, counts, sums[:, :D], _square(sums[:, D:], D), origin)
    else:
        stats = DiagonalStats(labels, np.repeat(counts[:, None], D, axis=1), sums[:, :D], sums[:, D:], origin)
    return MixtureSums({"class": names}, counts, stats), total


def _matrix(density: NormalDensity) -> tuple[Array, Array, Array | None] | None:
    """Coefficients of [z, z_u z_v] from the precision Λ: Λμ, and −½Λ with off-diagonal entries twice."""
    D = density.mean.shape[1]
    whitener, log_det = density.whitener, density.log_det
    if whitener is None or log_det is None:
        whitener, log_det, _ = whiten(density.scale)
    root = whitener * np.sqrt(density.divisor[: len(whitener), None, None])
    inner = np.einsum("kd,kde->ke", density.mean, np.broadcast_to(root, (density.K, D, D)))
    far = (inner**2).sum(axis=1)
    if not far.max(initial=0.0) < FAR:
        return None
    linear = np.einsum("ke,kde->kd", inner, np.broadcast_to(root, (density.K, D, D)))
    bias = -0.5 * (far + log_det - D * np.log(density.divisor) + D * np.log(2 * np.pi))
    u, v = np.triu_indices(D)
    second = (root @ root.transpose(0, 2, 1))[:, u, v] * np.where(u == v, -0.5, -1.0)
    return _joined(linear, second, bias)


def _axes(density: DiagonalNormal) -> tuple[Array, Array, Array | None] | None:
    """Coefficients of [z, z²]: μ/σ² and −½/σ²."""
    variance, mean = density.variance, density.mean
    if not (mean**2 / variance).max(initial=0.0) < FAR:
        return None
    bias = -0.5 * (np.log(2 * np.pi * variance) + mean**2 / variance).sum(axis=1)
    return _joined(mean / variance, (-0.5 / variance)[: 1 if density.tied else None], bias)


def _joined(linear: Array, second: Array, bias: Array) -> tuple[Array, Array, Array | None]:
    """What the second order adds to every component alike need not be scored."""
    if len(second) == 1 < len(linear):
        return linear, bias, second[0]
    return np.concatenate([linear, second], axis=1), bias, None


def _square(triangles: Array, D: int) -> Array:
    """Full matrices from the products u ≤ v."""
    u, v = np.triu_indices(D)
    second = np.empty((len(triangles), D, D))
    second[:, u, v] = second[:, v, u] = triangles
    return second


def _words(rows: Rows, density: MixtureDensity, names: Axis) -> tuple[MixtureSums | None, float] | None:
    X, log_p = rows.X, density.components.log_p
    if not compiled(X.nnz * names.size):
        return None
    extra = rows.kept("coefficient", lambda: log_coefficient(X))
    counts, sums, more, total = sparse_mixture_pass(
        X.data, X.indices, X.indptr, rows.weight, log_p, density.log_weights, extra
    )
    if not np.isfinite(total):
        return None
    labels: dict[str, Any] = {"class": names, "word": Axis.of(X.shape[1])}
    return MixtureSums({"class": names}, counts, MultinomialStats(labels, sums.T, counts, more)), total
