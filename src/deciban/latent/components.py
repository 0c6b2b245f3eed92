"""The components of mixtures: their sums, and the densities read from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from deciban import kernels
from deciban.errors import DecibanError, NotAvailableError
from deciban.families.bernoulli import Bernoulli
from deciban.families.categorical import Categorical
from deciban.families.gaussian import Gaussian
from deciban.families.multinomial import Multinomial
from deciban.families.poisson import Poisson
from deciban.families.product import Product, blocks_of
from deciban.families.protocol import Density, Rule
from deciban.statistics import Array, Axis, Stats, nested, summed

NOT_EXACT = (
    "a mixture cannot be unlearnt exactly, nor left one out, since its sums depend on the guess they were collected "
    "with: refit it without those rows. For honest answers about learnt rows use k-fold (cross_val_predict)."
)


@dataclass(frozen=True, eq=False, repr=False)
class MixtureSums(Stats):
    """What an E-step collects for the components of one mixture, or of several: one name each along the class axis."""

    counts: Array = summed("class", floor=True)  # Σ w·γ   rows of each component
    components: Any = nested()  # the family's sums, weighted by responsibilities


@dataclass(frozen=True, eq=False, repr=False)
class MixtureStats(Stats):
    """The sums of a mixture in each class. Components are named (class, number)."""

    rows: Array = summed("class", floor=True)  # Σ w of each class
    mixing: Any = nested()  # MixtureSums of all classes' components together

    def places(self, name: Any) -> Array:
        """Where the components of a class stand."""
        owners = self.mixing.labels["class"].names
        return np.array([at for at, owner in enumerate(owners) if owner[0] == name], dtype=np.intp)

    def knows(self, name: Any) -> bool:
        """Whether rows of a class went into its components."""
        return bool(self.mixing.counts[self.places(name)].any())

    def living(self, name: Any) -> Array:
        """The components of a class that have rows; of a class without rows one, which is the prior."""
        places = self.places(name)
        alive = self.mixing.counts[places] > 0
        return places[alive] if alive.any() else places[:1]

    def select(self, axis: str, index: Array) -> Self:
        """Selecting classes selects their components."""
        if axis != "class":
            raise NotAvailableError("a mixture's sums are selected by class. Use `subset` of the family for features.")
        chosen = Stats.select(replace(self, mixing={}), axis, index)
        old: Any = self.labels["class"]
        new: Any = chosen.labels["class"]
        kept = [self.places(old.names[at]) for at in np.asarray(index, dtype=np.intp)]
        mixing = self.mixing.select("class", np.concatenate(kept) if kept else np.zeros(0, dtype=np.intp))
        owners = [name for name, places in zip(new.names, kept) for _ in places]
        names = tuple((owner, m) for owner, (_, m) in zip(owners, mixing.labels["class"].names))
        declared = sum(len(places) for places in kept[: new.declared])
        return replace(chosen, mixing=renamed(mixing, Axis(names, declared)))

    def _refuse_negative(self, other: Self, error: type[DecibanError]) -> None:
        raise NotAvailableError(NOT_EXACT)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MixtureStats) and self.same(other)

    __hash__ = None  # type: ignore[assignment]


def renamed(stats: Any, classes: Axis) -> Any:
    """The same sums under other names along the class axis, in nested statistics too."""
    parts = {f.name: getattr(stats, f.name) for f in stats.stats_fields() if f.metadata["kind"] == "nested"}
    for name, part in parts.items():
        if isinstance(part, dict):
            parts[name] = {key: renamed(each, classes) for key, each in part.items()}
        else:
            parts[name] = renamed(part, classes)
    return replace(stats, labels={**stats.labels, "class": classes}, **parts)


def component_axis(names: Sequence[Any], declared: int, M: int) -> Axis:
    """The components of each class, class by class."""
    return Axis(tuple((name, m) for name in names for m in range(M)), declared * M)


@dataclass(frozen=True, eq=False)
class MixtureDensity(Density):
    """Components and how often each is drawn."""

    log_weights: Array  # (M,)
    components: Any  # a Density of M groups

    @property
    def K(self) -> int:
        return 1

    def log_joint(self, X: Any) -> Array:
        """(n, M) log π_m f(x|m)."""
        return self.components.log_density(X) + self.log_weights

    def log_density(self, X: Any) -> Array:
        """(n, 1) log Σ_m π_m f(x|m)."""
        return kernels.log_sum_exp(self.log_joint(X))[:, None]

    def log_base(self, X: Any) -> Array | float:
        """What every component shares."""
        return self.components.log_base(X)

    def encode(self, X: Any, columns: Sequence[str]) -> Any:
        """As the components take their rows."""
        return self.components.encode(X, columns)

    def draw(self, n: int, rng: np.random.Generator) -> Array:
        """(n,) the component of each row."""
        p = np.exp(self.log_weights)
        return rng.choice(len(p), n, p=p / p.sum())

    def sample(self, codes: Array, rng: np.random.Generator) -> Any:
        """A component for each row, then the row."""
        return self.components.sample(self.draw(len(codes), rng), rng)


@dataclass(frozen=True, eq=False)
class MixtureDensities(Density):
    """A mixture for each class."""

    each: tuple[MixtureDensity, ...]

    @property
    def K(self) -> int:
        return len(self.each)

    def log_density(self, X: Any) -> Array:
        """(n, K), a class at a time."""
        return np.column_stack([mixture.log_density(X)[:, 0] for mixture in self.each])

    def log_base(self, X: Any) -> Array | float:
        """What every component of every class shares."""
        return self.each[0].log_base(X)

    def sample(self, codes: Array, rng: np.random.Generator) -> Any:
        """Each row from its class's mixture; rows of a class are drawn together."""
        order = np.argsort(codes, kind="stable")
        drawn = [mixture.sample(np.zeros(int((codes == k).sum()), np.intp), rng) for k, mixture in enumerate(self.each)]
        return stacked([part for part in drawn if part.shape[0]] or drawn[:1])[np.argsort(order, kind="stable")]


def stacked(parts: Sequence[Any]) -> Any:
    """Rows of several samples, one after another: arrays, CSR, codes or blocks of them."""
    import scipy.sparse as sp

    from deciban.families.product import BlockRows

    if len(parts) == 1:
        return parts[0]
    if isinstance(parts[0], BlockRows):
        return BlockRows(tuple(stacked(each) for each in zip(*(part.parts for part in parts))))
    if sp.issparse(parts[0]):
        return sp.vstack(parts).tocsr()
    return np.concatenate(parts)


def read(family: Any, sums: MixtureSums, rule: Rule, pseudo_count: float) -> MixtureDensity:
    """A mixture's density from its sums, under a rule: π has a Dirichlet(α) prior."""
    extra = {"ml": 0.0, "map": pseudo_count - 1}.get(rule, pseudo_count)
    mixing = np.maximum(sums.counts + extra, 0.0)
    mixing = mixing if mixing.any() else np.ones(len(mixing))
    with np.errstate(divide="ignore"):
        return MixtureDensity(np.log(mixing / mixing.sum()), family.estimate(sums.components, rule))


# -- parameters ----------
# How many free parameters a family has: what BIC and AIC charge for.


def free_parameters(family: Any, stats: Any) -> int:
    """Of all groups together; tied groups share.

    >>> from deciban import Gaussian
    >>> stats = Gaussian().fit([[0.0, 1.0], [1.0, 0.0], [2.0, 5.0]]).stats
    >>> free_parameters(Gaussian("full"), stats), free_parameters(Gaussian("diagonal"), stats)
    (5, 4)
    """
    if isinstance(family, Product):
        return sum(free_parameters(part, sums) for part, sums in blocks_of(family, stats))
    K = stats.labels["class"].size
    if isinstance(family, Gaussian):
        return _gaussian(family.structure, K, len(stats.origin))
    if isinstance(family, Multinomial):
        return K * (stats.counts.shape[1] - 1)
    if isinstance(family, Categorical) and "category" in stats.labels:
        return K * int(np.maximum(stats.labels["category"].sizes - 1, 0).sum())
    if isinstance(family, Categorical):
        return K * (stats.counts.shape[1] - 1)
    if isinstance(family, Bernoulli):
        return K * int(stats.ones.shape[1])
    if isinstance(family, Poisson):
        return K * int(stats.total.shape[1])
    if hasattr(family, "free_parameters"):
        return int(family.free_parameters(stats))
    raise NotAvailableError(
        f"how many parameters {type(family).__name__} has is not known. Compare by held-out likelihood "
        "(by='heldout'), or give the family a method free_parameters(stats)."
    )


def _gaussian(structure: str, K: int, D: int) -> int:
    each = {"full": D * (D + 1) // 2, "tied": D * (D + 1) // 2, "diagonal": D, "tied diagonal": D}.get(structure, 1)
    return K * D + (1 if structure.startswith("tied") else K) * each
