"""EM for one mixture and one set of rows: starts, E- and M-steps, and stepwise EM.

    γ_nm ∝ π_m f(x_n|m)        N_m = Σ w γ_nm        the family's `collect` with members γ

The general E-step takes a block of rows at a time, so that memory does not grow with the table. Large tables of numbers
or word counts take a fused kernel: a normal log density is linear in [x, vech(xxᵀ)], and so are the sums that a
Gaussian needs, so one matrix product scores a block of rows and another one collects it; a multinomial log density is
linear in the counts. Both give the same sums up to rounding.

A start is responsibilities drawn at random, or one model per seed row. Seed rows are spread out as k-means++ spreads
its centres, for any family: a model estimated from one row and the prior takes the place of a centre, and the
difference between a row's score under its own model and under the best seed so far takes the place of the squared
distance.

Reference: Arthur & Vassilvitskii, k-means++: the advantages of careful seeding, 2007.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from deciban import kernels
from deciban.errors import (
    EmptyClassError,
    EmptyComponentWarning,
    HyperparameterError,
    InputError,
    NoModeError,
    SingularError,
)
from deciban.families.dirichlet import MultinomialDensity, log_coefficient
from deciban.families.gaussian.densities import DiagonalNormal, NormalDensity, whiten
from deciban.families.gaussian.family import Gaussian
from deciban.families.gaussian.sums import DiagonalStats, GaussianStats
from deciban.families.multinomial import Multinomial, MultinomialStats
from deciban.families.product import Product
from deciban.families.protocol import Density, Family, LabelledPart, Passes, Rows, Rule
from deciban.kernels.choice import compiled, one_thread
from deciban.kernels.latent import feature_count, mixture_pass, sparse_mixture_pass
from deciban.latent import em
from deciban.latent.components import (
    MixtureDensity,
    MixtureSums,
    choose_within,
    collect_under,
    estimate_mixture,
    mixture_log_prior,
    open_within,
)
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


Start: TypeAlias = str | ArrayLike | MixtureDensity  # a name of STARTS, responsibilities (n, M), or a density

# -- starts and steps --------------------------------------------------------------------------------------------------
STARTS = ("k-means++", "random")
CANDIDATES = 32  # rows among which each seed is chosen
CANDIDATE_NUMBERS = 2**23  # parameters of the models of all candidates together, at most
AT_ONCE = 16  # candidates whose own models are estimated together
EMPTY = 1e-12  # share of the total weight below which a component is empty
PASSES, POWER = 3, 0.7  # of stepwise EM: passes over all rows, and exponent of the step size
SHORT = 15  # iterations of each competing start
START_ROWS = 2**14  # rows on which starts compete


class Estimate(NamedTuple):
    """The state of EM: a density, and the sums of the E-step from which it was estimated."""

    density: MixtureDensity
    names: Axis  # of the components
    sums: MixtureSums | None = None
    family: Family | None = None  # with the choices made within components; that of the rows if None


@dataclass(frozen=True, eq=False)
class MixtureFit:
    """One mixture to be fitted to one set of rows."""

    rows: WeightedRows
    rule: Rule
    pseudo_count: float
    asked: Family  # of the components, before choices were made
    parts: PartedRows | None = None  # rows in other places, over which EM runs; `rows` are the first of them

    @property
    def all_rows(self) -> WeightedRows | PartedRows:
        """The rows over which EM runs; starts are made from `rows`."""
        return self.rows if self.parts is None else self.parts

    def fit(
        self,
        names: Axis,
        start: Start,
        n_starts: int,
        max_iter: int,
        tol: float,
        rng: np.random.Generator,
        label: str | None = None,
    ) -> tuple[MixtureSums, em.Trace]:
        """Return the sums at the end of EM and the trace; empty components are dropped."""
        if len(self.rows) < names.size:
            raise InputError(
                f"{names.size} components for {len(self.rows)} rows: there are not enough rows. Ask for fewer."
            )
        with one_thread(0):  # the same bits for any number of threads
            first, reached = self.start(names, start, n_starts, rng)
            last, trace = em.run(self.step, first, self.all_rows.total_weight, max_iter, tol, label=label)
            trace.starts = reached
            sums = last.sums if last.sums is not None else _expect(self.all_rows, last.density, last.names)
        sums = _drop_empty(sums)
        dropped = names.size - len(sums.counts)
        if dropped:
            warnings.warn(
                f"{dropped} of {names.size} components lost all their rows and {'was' if dropped == 1 else 'were'} "
                "dropped. Ask for fewer components, or give other starts.",
                EmptyComponentWarning,
                stacklevel=3,
            )
        return sums, trace

    def stepwise(
        self, names: Axis, start: Start, n_starts: int, rng: np.random.Generator, batch: int
    ) -> MixtureDensity:
        """Stepwise EM: PASSES passes over the rows, in batches of a random order."""
        with one_thread(0):
            first, _ = self.start(names, start, n_starts, rng)
            sums = _expect(self.rows.take(slice(0, batch)), first.density, first.names)
            weight = self.rows.total_weight
            orders = [rng.permutation(len(self.rows)) for _ in range(PASSES)]
            some = (np.sort(order[at : at + batch]) for order in orders for at in range(0, len(order), batch))
            batches = ((rows, rows.total_weight) for rows in map(self.rows.take, some))
            sums = em.stepwise(
                lambda rows, sums: _expect(rows, self.maximise(sums).density, first.names),
                sums * (weight / sums.counts.sum()),
                batches,
                weight,
                POWER,
            )
            return self.maximise(sums).density

    # -- steps -------------------------------------------------------------------------------------------------------
    def step(self, estimate: Estimate) -> tuple[Estimate, float]:
        """One EM step; returns the next estimate and the objective of the given one."""
        sums, total = self.all_rows.expect(estimate.density, estimate.names)
        if sums is None:
            return estimate, -np.inf
        return self.maximise(sums), total + self.log_prior(estimate)

    def maximise(self, sums: MixtureSums) -> Estimate:
        """M-step. An empty component without an estimate is dropped, which leaves the likelihood unchanged."""
        try:
            family = choose_within(self.asked, self.rows.family, sums.components, self.rule)
            density = estimate_mixture(family, sums, self.rule, self.pseudo_count)
        except (SingularError, EmptyClassError, NoModeError) as error:
            fewer = _drop_empty(sums)
            if fewer is not sums:
                return self.maximise(fewer)
            remedy = "" if self.rule == "map" else " Rule 'map' has a prior that prevents it; or ask for fewer."
            raise type(error)(f"a component of the mixture has collapsed: {error}{remedy}") from None
        return Estimate(density, sums.labels["class"], sums, family)  # type: ignore[arg-type]

    def log_prior(self, estimate: Estimate) -> float:
        """Log prior that rule "map" adds to the log-likelihood, up to a constant."""
        if self.rule == "ml":
            return 0.0
        return mixture_log_prior(estimate.family or self.rows.family, estimate.density, self.pseudo_count)

    # -- starts ------------------------------------------------------------------------------------------------------
    def start(self, names: Axis, start: Start, n_starts: int, rng: np.random.Generator) -> tuple[Estimate, list[float]]:
        """Return the first estimate and the objectives of the starts that competed for it.

        A density or responsibilities are taken as given; of named starts the best of `n_starts` short runs is taken.
        """
        check_start(start)
        if isinstance(start, MixtureDensity):
            return Estimate(start, names), []
        if not isinstance(start, str):
            return self.maximise(given_sums(self.rows, names, start)), []
        sample = replace(self, parts=None)
        if len(self.rows) > START_ROWS:
            sample = replace(sample, rows=self.rows.take(np.sort(rng.permutation(len(self.rows))[:START_ROWS])))
        if n_starts <= 1:
            return sample._named_start(names, start, rng), []
        weight = sample.rows.total_weight
        return em.best_of(
            lambda: em.run(sample.step, sample._named_start(names, start, rng), weight, SHORT, 0.0, warn=False)
            for _ in range(n_starts)
        )

    def _named_start(self, names: Axis, start: str, rng: np.random.Generator) -> Estimate:
        if start == "random":  # uniform over all ways to divide a row among components
            shares = self.rows.collect_shares(names, lambda begin, end: rng.dirichlet(np.ones(names.size), end - begin))
            return self.maximise(shares)
        seeds = seed_components(self.rows, names, rng)
        if not open_within(self.asked):
            return Estimate(seeds, names)
        # rows belong to their best seed: the shape chosen from all rows is too small to tell seeds apart
        best = np.concatenate([seeds.log_joint(x).argmax(axis=1) for x, _ in self.rows.blocks(names.size)])
        return self.maximise(self.rows.collect_shares(names, lambda begin, end: np.eye(names.size)[best[begin:end]]))


def _expect(rows: WeightedRows | PartedRows, density: MixtureDensity, names: Axis) -> MixtureSums:
    """E-step; raises SingularError if a row has density 0 under every component."""
    sums, _ = rows.expect(density, names)
    if sums is None:
        raise SingularError(
            "some rows have density 0 under every component. Use rule 'map', another start, or larger batches."
        )
    return sums


def seed_components(rows: WeightedRows, names: Axis, rng: np.random.Generator) -> MixtureDensity:
    """Components that are each a model of one row, with rows chosen far from one another."""
    M, n = names.size, len(rows)
    some = int(np.clip(CANDIDATE_NUMBERS // max(1, rows.X.shape[1]), 4 * M, CANDIDATES * M))
    pool = rng.choice(n, min(n, max(some, M)), replace=False, p=_probabilities(rows.weight))
    X, weight = rows.X[pool], np.ones(len(pool)) if rows.weight is None else rows.weight[pool]
    some_rows = [X[at : at + AT_ONCE] for at in range(0, len(pool), AT_ONCE)]
    own = np.concatenate([np.diagonal(_models(rows.family, x).log_density(x)) for x in some_rows])
    chosen = [int(rng.choice(len(pool), p=_probabilities(weight)))]
    best = _models(rows.family, X[chosen]).log_density(X)[:, 0]
    while len(chosen) < M:
        far = np.maximum(own - best, 0.0) * weight
        far[chosen] = 0.0
        if not far.any() or not np.isfinite(far).all():  # only duplicates are left: any other row is as good
            far = np.where(np.isin(np.arange(len(pool)), chosen), 0.0, weight)
        chosen.append(int(rng.choice(len(pool), p=far / far.sum())))
        best = np.maximum(best, _models(rows.family, X[chosen[-1:]]).log_density(X)[:, 0])
    return MixtureDensity(np.full(M, -np.log(M)), _models(rows.family, X[np.array(chosen)], names))


def given_sums(rows: WeightedRows, names: Axis, given: ArrayLike) -> MixtureSums:
    """Sums under given responsibilities (n, M)."""
    shares = np.asarray(given, dtype=float)
    if shares.shape != (len(rows), names.size):
        raise InputError(
            f"start has shape {shares.shape}, but there are {len(rows)} rows and {names.size} components. "
            "Give one responsibility for each row and component, or the name of a start."
        )
    if not np.isfinite(shares).all() or (shares < 0).any():
        raise InputError("start holds responsibilities that are not finite or below 0; they must be at least 0.")
    return rows.collect_shares(names, lambda begin, end: shares[begin:end])


def check_start(start: Start) -> None:
    """Refuse an unknown name of a start."""
    if isinstance(start, str) and start not in STARTS:
        raise HyperparameterError(f"start={start!r} is not one of {', '.join(STARTS)}, nor responsibilities (n, M).")


def _models(family: Family, X: Rows, names: Axis | None = None) -> Density:
    """One group per row, estimated from that row and the prior."""
    names = names or Axis.of(X.shape[0])
    return family.estimate(family.collect(X, Members.hard(np.arange(names.size), names)), "mean")


def _probabilities(weight: Array | None) -> Array | None:
    return None if weight is None else weight / weight.sum()


def _drop_empty(sums: MixtureSums) -> MixtureSums:
    kept = np.flatnonzero(sums.counts > EMPTY * sums.counts.sum())
    return sums if len(kept) == len(sums.counts) else sums.select("class", kept)
