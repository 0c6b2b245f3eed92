"""The components of mixtures: their densities, their sums, and the E-step that collects the sums from rows.

    γ_nm ∝ π_m f(x_n|m)        N_m = Σ w γ_nm        the family's `collect` with members γ

The general E-step takes a block of rows at a time, so that memory does not grow with the table. Large tables of numbers
or word counts take a fused kernel: a normal log density is linear in [x, vech(xxᵀ)], and so are the sums that a
Gaussian needs, so one matrix product scores a block of rows and another one collects it; a multinomial log density is
linear in the counts. Both give the same sums up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from scipy.special import psi, xlogy

from deciban import kernels
from deciban.errors import (
    NotAvailableError,
)
from deciban.families.abilities import HasCovariances, HasLogPrior, HasMoments, ability
from deciban.families.bernoulli import Bernoulli
from deciban.families.categorical import Categorical
from deciban.families.dirichlet import MultinomialDensity, log_coefficient
from deciban.families.gamma import LARGEST_SHAPE, Gamma, GammaStats
from deciban.families.gaussian import Gaussian
from deciban.families.gaussian.densities import DiagonalNormal, NormalDensity, whiten
from deciban.families.gaussian.sums import DiagonalStats, GaussianStats
from deciban.families.moments import column_covariances, column_moments
from deciban.families.multinomial import Multinomial, MultinomialStats
from deciban.families.poisson import Poisson
from deciban.families.product import BlockRows, Product, blocks_of
from deciban.families.protocol import Density, Family, LabelledPart, Passes, Rows, Rule
from deciban.families.transformed import MappedFamily
from deciban.kernels.choice import compiled
from deciban.kernels.latent import feature_count, mixture_pass, sparse_mixture_pass
from deciban.latent.em import ExpectedSums
from deciban.read.tables import Table
from deciban.statistics import Array, Axis, Members, Stats, nested, summed


@dataclass(frozen=True, eq=False, repr=False)
class MixtureSums(Stats):
    """Sums of an E-step, one entry along the class axis for each component of one mixture or of several."""

    counts: Array = summed("class", floor=True)  # Σ w·γ   expected number of rows of each component
    components: Any = nested()  # the family's statistics, weighted by responsibilities


@dataclass(frozen=True, eq=False, repr=False)
class MixtureStats(ExpectedSums):
    """Sums of one mixture per class. Components are named (class, number)."""

    rows: Array = summed("class", floor=True)  # Σ w of each class
    mixing: Any = nested()  # MixtureSums of the components of all classes

    def positions(self, name: object) -> Array:
        """Return the positions of a class's components along the component axis."""
        owners = self.mixing.labels["class"].names
        return np.array([at for at, owner in enumerate(owners) if owner[0] == name], dtype=np.intp)

    def has_rows(self, name: object) -> bool:
        """Whether some component of the class has rows."""
        return bool(self.mixing.counts[self.positions(name)].any())

    def non_empty(self, name: object) -> Array:
        """Return the positions of the class's components that have rows; the first component if none has."""
        positions = self.positions(name)
        alive = self.mixing.counts[positions] > 0
        return positions[alive] if alive.any() else positions[:1]

    def select(self, axis: str, index: Array) -> Self:
        """Select classes together with their components."""
        if axis != "class":
            raise NotAvailableError("a mixture's sums are selected by class. Use `subset` of the family for features.")
        chosen = Stats.select(replace(self, mixing={}), axis, index)
        old: Any = self.labels["class"]
        new: Any = chosen.labels["class"]
        kept = [self.positions(old.names[at]) for at in np.asarray(index, dtype=np.intp)]
        mixing = self.mixing.select("class", np.concatenate(kept) if kept else np.zeros(0, dtype=np.intp))
        owners = [name for name, positions in zip(new.names, kept) for _ in positions]
        names = tuple((owner, m) for owner, (_, m) in zip(owners, mixing.labels["class"].names))
        declared = sum(len(positions) for positions in kept[: new.declared])
        return replace(chosen, mixing=rename_classes(mixing, Axis(names, declared)))


def rename_classes(stats: Any, classes: Axis) -> Any:
    """Return the same sums with other names along the class axis, also in nested statistics."""

    def rename(part: Any, _: object = None) -> Any:
        if part is None:
            return None
        return (
            {key: rename(each) for key, each in part.items()}
            if isinstance(part, dict)
            else rename_classes(part, classes)
        )

    return replace(stats.map_fields(rename, ["nested"]), labels={**stats.labels, "class": classes})


def component_axis(names: Sequence[Any], declared: int, M: int) -> Axis:
    """Return the axis of M components for each class, ordered by class."""
    return Axis(tuple((name, m) for name in names for m in range(M)), declared * M)


@dataclass(frozen=True, eq=False, repr=False)
class MixtureDensity(Density):
    """Σ_m π_m f(x|m)."""

    shapes: ClassVar = {"log_weights": "M log"}

    log_weights: Array  # (M,) log π
    components: Density  # of M groups

    @property
    def K(self) -> int:
        return 1

    def __repr__(self) -> str:
        return f"MixtureDensity(weights={np.exp(self.log_weights).round(4).tolist()}, {describe(self.components)})"

    def log_joint(self, X: Rows) -> Array:
        """Return log π_m f(x|m), shape (n, M)."""
        return self.components.log_density(X) + self.log_weights

    def log_density(self, X: Rows) -> Array:
        """Return log Σ_m π_m f(x|m), shape (n, 1)."""
        return kernels.log_sum_exp(self.log_joint(X))[:, None]

    def log_base(self, X: Rows) -> Array | float:
        """Return the terms that are equal for all components."""
        return self.components.log_base(X)

    def encode(self, X: Any, columns: Sequence[str]) -> Rows:
        """Convert columns to what the components score."""
        return self.components.encode(X, columns)

    def supports(self, kind: type) -> bool:
        """Whether the components have the ability, where the mixture's is made of theirs."""
        return kind not in (HasMoments, HasCovariances) or ability(self.components, HasMoments) is not None

    def moments(self) -> tuple[Array, Array]:
        """Return mean and variance of the mixture, (1, D) each."""
        mean, covariance = self._moments()
        return mean[None], np.diagonal(covariance)[None]

    def covariances(self) -> Array:
        """Return the covariance of the mixture, (1, D, D)."""
        return self._moments()[1][None]

    def _moments(self) -> tuple[Array, Array]:
        """Return the mean and covariance: those within components, and those of the means of components."""
        pi, D = np.exp(self.log_weights), self.components.moments()[0].shape[1]  # type: ignore[attr-defined]
        means = column_moments(self.components, [range(D)], D).means
        mean = pi @ means
        off = means - mean
        within = np.einsum("m,muv->uv", pi, column_covariances(self.components, [range(D)], D))
        return mean, within + (pi[:, None] * off).T @ off

    def sample_components(self, n: int, rng: np.random.Generator) -> Array:
        """Draw the component of each of n rows."""
        p = np.exp(self.log_weights)
        return rng.choice(len(p), n, p=p / p.sum())

    def sample(self, codes: Array, rng: np.random.Generator) -> Rows:
        """Draw a component for each row, then the row."""
        return self.components.sample(self.sample_components(len(codes), rng), rng)


@dataclass(frozen=True, eq=False)
class MixtureDensities(Density):
    """One mixture for each class."""

    each: tuple[MixtureDensity, ...]

    @property
    def K(self) -> int:
        return len(self.each)

    def log_density(self, X: Rows) -> Array:
        """Return log f(x|class), shape (n, K)."""
        return np.column_stack([mixture.log_density(X)[:, 0] for mixture in self.each])

    def log_base(self, X: Rows) -> Array | float:
        """Return the terms that are equal for all components of all classes."""
        return self.each[0].log_base(X)

    def supports(self, kind: type) -> bool:
        """Whether every mixture has the ability."""
        return all(mixture.supports(kind) for mixture in self.each)

    def moments(self) -> tuple[Array, Array]:
        """Return means and variances of the mixtures, (K, D) each."""
        means, variances = zip(*(mixture.moments() for mixture in self.each))
        return np.concatenate(means), np.concatenate(variances)

    def covariances(self) -> Array:
        """Return the covariances of the mixtures, (K, D, D)."""
        return np.concatenate([mixture.covariances() for mixture in self.each])

    def sample(self, codes: Array, rng: np.random.Generator) -> Rows:
        """Draw each row from the mixture of its class; the rows of a class are drawn together."""
        order = np.argsort(codes, kind="stable")
        drawn = [mixture.sample(np.zeros(int((codes == k).sum()), np.intp), rng) for k, mixture in enumerate(self.each)]
        return _stack([part for part in drawn if part.shape[0]] or drawn[:1])[np.argsort(order, kind="stable")]


def _stack(parts: Sequence[Rows]) -> Rows:
    """Concatenate encoded rows: arrays, CSR matrices, codes, or blocks of them."""
    if len(parts) == 1:
        return parts[0]
    if isinstance(parts[0], BlockRows):
        return BlockRows(tuple(_stack(each) for each in zip(*(part.parts for part in parts))))
    if sp.issparse(parts[0]):
        return sp.vstack(parts).tocsr()
    return np.concatenate(parts)


def collect_under(family: Family, X: Rows, members: Members, density: Density | None) -> Any:
    """Collect sums; families with hidden values of their own infer these under the density of the groups."""
    collect = None if density is None else getattr(family, "collect_under", None)
    return family.collect(X, members) if collect is None else collect(X, members, density)


def choose_component(family: Family, sums: Stats, rows: tuple[Rows, Members], rule: Rule) -> Family:
    """Make the choices of a component from the sums of all rows together.

    Under rule "map" the prior of a Poisson rate whose shape was left open gets a mode: its pseudo-rows have the pooled
    mean as mode, not as mean. Otherwise rare counts would have no posterior mode.
    """

    def with_mode(asked: Family, chosen: Family, _: object) -> Family:
        if rule == "map" and isinstance(asked, Poisson) and isinstance(chosen, Poisson) and asked.shape is None:
            return replace(chosen, shape=np.asarray(chosen.shape) + 1)
        return chosen

    sums = sums.whole()
    return _each_block(with_mode, family, family.choose(sums, rows).resolve(sums), sums)


def open_within(family: Family) -> bool:
    """Whether a choice of the family is to be made within components: the shape of a Gamma."""
    if isinstance(family, Product):
        return any(map(open_within, family.families.values()))
    return isinstance(family, Gamma) and family.shape is None


def choose_within(asked: Family, chosen: Family, sums: Any, rule: Rule) -> Family:
    """Make the choices again that are made within groups, from the sums of the components: the shape of a Gamma.

    From all rows together the shape of a mixture comes out too small, because components differ in their means.
    """

    def within(asked: Family, chosen: Family, sums: Any) -> Family:
        if not isinstance(asked, Gamma) or not isinstance(chosen, Gamma) or asked.shape is not None:
            return chosen
        shape, prior = _gamma_shape(chosen, sums, asked.b is None, rule), np.asarray(chosen.b)
        return replace(chosen, shape=shape, b=prior if asked.b is not None else prior * chosen.shape / shape)

    return _each_block(within, asked, chosen, sums) if open_within(asked) else chosen


def _gamma_shape(family: Gamma, sums: GammaStats, scaled: bool, rule: Rule) -> Array:
    """Return shape α of each feature at the joint mode of α and the rates β_k ~ Gamma(a, b); b = s/α if it is scaled.

    Σ_k [n_k log β_k + β_k s/α² − a/α] − N ψ(α) + Σ log x = 0,   β_k = (a − 1 + n_k α)/(b + Σ x)

    by bisection of log α; the second and third term belong to a scaled b only.
    """
    n, N, logs = sums.weight, sums.weight.sum(axis=0), sums.log_total.sum(axis=0)
    prior: Any = family.b
    a, s = (1.0, 0.0) if rule == "ml" else (family.a, prior * (family.shape if scaled else 1.0))
    low, high = np.tile(np.log([[1e-6], [LARGEST_SHAPE]]), n.shape[1])
    for _ in range(60):
        middle = (low + high) / 2
        shape = np.exp(middle)
        with np.errstate(divide="ignore", invalid="ignore"):
            rate = (a - 1 + n * shape) / (s / (shape if scaled else 1.0) + sums.total)
        rate = np.where(n > 0, rate, 1.0)
        slope = xlogy(n, rate).sum(axis=0) - N * psi(shape) + logs
        if scaled and rule != "ml":
            slope = slope + ((n > 0) * (rate * s / shape**2 - a / shape)).sum(axis=0)
        low, high = np.where(slope > 0, middle, low), np.where(slope > 0, high, middle)
    return np.exp((low + high) / 2)


def _each_block(act: Callable[[Family, Family, Any], Family], asked: Family, chosen: Family, sums: Any) -> Family:
    """Return act(asked, chosen, sums), for each block of a product."""
    if isinstance(asked, Product) and isinstance(chosen, Product):
        blocks = zip(asked.families, asked.families.values(), chosen.families.values(), sums.blocks.values())
        return replace(chosen, families={key: _each_block(act, *parts) for key, *parts in blocks})
    return act(asked, chosen, sums)


def mixture_log_prior(family: Family, density: MixtureDensity, pseudo_count: float) -> float:
    """Return the log prior of weights and components that rule "map" adds to the log-likelihood, up to a constant."""
    prior = ability(family, HasLogPrior)
    if prior is None:
        raise NotAvailableError(f"{type(family).__name__} has no log_prior, which EM under 'map' needs. Use rule='ml'.")
    mixing = (pseudo_count - 1) * float(np.sum(density.log_weights)) if pseudo_count != 1 else 0.0
    return mixing + prior.log_prior(density.components)


def estimate_mixture(family: Family, sums: MixtureSums, rule: Rule, pseudo_count: float) -> MixtureDensity:
    """Estimate weights and components under a rule; π has a Dirichlet(pseudo_count) prior."""
    extra = {"ml": 0.0, "map": pseudo_count - 1}.get(rule, pseudo_count)
    mixing = np.maximum(sums.counts + extra, 0.0)
    mixing = mixing if mixing.any() else np.ones(len(mixing))
    with np.errstate(divide="ignore"):
        return MixtureDensity(np.log(mixing / mixing.sum()), family.estimate(sums.components, rule))


def describe(density: Density) -> str:
    """Name of a density, with its means in the units of the data if it is Gaussian."""
    if isinstance(density, NormalDensity | DiagonalNormal):
        rows = (", ".join(f"{value:.6g}" for value in row) for row in density.mean)
        return f"{type(density).__name__}(means=[{'; '.join(rows)}])"
    return type(density).__name__


def free_parameters(family: Family, stats: Any) -> int:
    """Return the number of free parameters of all groups together, as BIC and AIC count them.

    >>> from deciban import Gaussian
    >>> stats = Gaussian().fit([[0.0, 1.0], [1.0, 0.0], [2.0, 5.0]]).stats
    >>> free_parameters(Gaussian("full"), stats), free_parameters(Gaussian("diagonal"), stats)
    (5, 4)
    """
    if isinstance(family, Product):
        return sum(free_parameters(part, sums) for part, sums in blocks_of(family, stats))
    if isinstance(family, MappedFamily):
        return free_parameters(family.inside(stats.map), stats.inner)
    K = stats.labels["class"].size
    if isinstance(family, Gaussian):
        return _gaussian_parameters(family.structure, K, len(stats.origin))
    if isinstance(family, Categorical) and "category" in stats.labels:
        return K * int(np.maximum(stats.labels["category"].sizes - 1, 0).sum())
    if isinstance(family, Multinomial | Categorical):
        return K * (stats.counts.shape[1] - 1)
    if isinstance(family, Bernoulli | Poisson):
        return K * int((stats.ones if isinstance(family, Bernoulli) else stats.total).shape[1])
    if hasattr(family, "free_parameters"):
        return int(family.free_parameters(stats))
    raise NotAvailableError(
        f"the number of parameters of {type(family).__name__} is not known. Compare models by held-out likelihood, or "
        "give the family a method free_parameters(stats)."
    )


def _gaussian_parameters(structure: str, K: int, D: int) -> int:
    each = {"full": D * (D + 1) // 2, "tied": D * (D + 1) // 2, "diagonal": D, "tied diagonal": D}.get(structure, 1)
    return K * D + (1 if structure.startswith("tied") else K) * each


# -- rows and the E-step -----------------------------------------------------------------------------------------------
BLOCK_CELLS = 2**19  # numbers in a block of rows, or in its responsibilities
LEAST_ROWS, MOST_ROWS = 256, 2**15  # rows in a block
FAR = 1e6  # squared distance of a mean from the origin, in variances, above which expanding squares costs digits

Coefficients = tuple[Array, Array, Array | None]  # weights (M, F), bias (M,), second-order terms that all m share


class WeightedRows:
    """Encoded rows to which a mixture is fitted, with their weights; it caches what does not depend on estimates."""

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
    """Rows in parts, for the passes of EM; only sums leave the place of a part."""

    def __init__(self, family: Family, passes: Passes, rows_of: Callable[[Any], WeightedRows] | None = None) -> None:
        self.family = family
        self.passes = passes.kept(rows_of or EncodedPart(family))
        self.size, self.total_weight = self.passes.total(_weight_of)

    def __len__(self) -> int:
        return int(self.size)

    def expect(self, density: MixtureDensity, names: Axis) -> tuple[MixtureSums | None, float]:
        """Return the sums and the log-likelihood under a density, as `WeightedRows.expect` does."""
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
        return None  # a missing value, or a row too far away: the general pass raises the error or scores the row
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
    """Return the coefficients of [z, z_u z_v] from the precision Λ: Λμ, and −½Λ with off-diagonal entries doubled."""
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
    """Return the coefficients of [z, z²]: μ/σ² and −½/σ²."""
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
    """Return the symmetric matrices from the products of columns u ≤ v."""
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
