"""One of several categories, with a Dirichlet prior.

    x | θ  ~  Categorical(θ)
    θ      ~  Dirichlet(α)            one α_j for each category, α0 their sum
    θ | D  ~  Dirichlet(α + N)
    x | D  ~  Categorical((α + N)/(α0 + N))

Several features multiply, or are one table of combinations (`joint=True`). The known categories are the support: a
category that nobody counted scores α/(α0 + N), outside the sum to one, unless `open=True` keeps a cell for it.

Reference: Gelman et al., Bayesian Data Analysis, 3rd ed., section 3.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self

import numpy as np

from deciban.errors import HyperparameterError
from deciban.families.category_tables import (
    CategoricalDensity,
    Support,
    count_categories,
    joint,
    separate,
)
from deciban.families.counts import log_gamma
from deciban.families.dirichlet import best_strength, check_strength, log_prior, log_rising, marginals, require_modes
from deciban.families.posterior import Posterior
from deciban.families.protocol import Density, Family, Rule, own_codes, require_rows
from deciban.read.categories import Codes, encode_categories, refuse_negative
from deciban.statistics import Array, Axis, Members, Ragged, Stats, summed


@dataclass(frozen=True, eq=False, repr=False)
class CategoricalStats(Stats):
    """How often each category of each feature."""

    counts: Array = summed("class", "category", floor=True)  # Σ w


@dataclass(frozen=True, eq=False, repr=False)
class JointStats(Stats):
    """How often each combination of categories."""

    counts: Array = summed("class", "combination", floor=True)  # Σ w

    def select(self, axis: str, index: Array) -> Self:
        """Selecting features sums over the others."""
        if axis != "feature":
            return super().select(axis, index)
        every: Any = self.labels["combination"]
        fewer = [tuple(names[j] for j in index) for names in every.names]
        kept = Axis(tuple(sorted(set(fewer))))
        place = {names: at for at, names in enumerate(kept.names)}
        counts = np.zeros((kept.size, len(self.counts)))
        np.add.at(counts, [place[names] for names in fewer], self.counts.T)
        return replace(self, labels={**self.labels, "combination": kept}, counts=counts.T)


@dataclass(frozen=True, eq=False)
class Categorical(Family[Any]):
    """Categories by any name, independent given the class or joint.

    >>> die = Categorical().fit([1, 6, 2, 6, 3, 6, 4, 6, 5, 6])
    >>> die.density("ml").p
    array([[0.1, 0.1, 0.1, 0.1, 0.1, 0.5]])
    >>> cat = Categorical(categories=["black", "orange", "white"]).fit(["black", "white", None])
    >>> cat.density().p
    array([[0.4, 0.2, 0.4]])
    """

    pseudo_count: Any = 1.0  # α: a number, numbers by category, or "evidence" / "loo": chosen at the first fit
    _: KW_ONLY
    categories: Any = None  # declared names: one list for all features, or a list of lists
    joint: bool = False  # one table of all combinations
    open: bool = False  # a cell for anything else
    base: Any = None  # probabilities by category; α is then pseudo_count × base

    def __post_init__(self) -> None:
        for name in ("pseudo_count", "base", "categories"):
            object.__setattr__(self, name, frozen(getattr(self, name)))
        for pseudo_count in each(self.pseudo_count):
            for base in each(self.base):
                check_strength("Categorical", pseudo_count, base)
        if self.joint and (self.base is not None or isinstance(self.pseudo_count, tuple)):
            raise HyperparameterError("Categorical(joint=True) takes one pseudo-count for every combination.")

    # -- in --------------------------------------------------------------------------------------------------------
    def encode(self, X: Any, columns: Sequence[str], stats: Any = None) -> Codes:
        """Names as codes; names that the model does not know keep theirs, to be learnt or to score as unseen."""
        return X if isinstance(X, Codes) else encode_categories(X, columns)

    def check(self, X: Codes, columns: Sequence[str], learning: bool = False) -> None:
        """Integers are ≥ 0, or −1 where missing."""
        refuse_negative(X, columns)

    def collect(self, X: Codes, members: Members) -> CategoricalStats | JointStats:
        """How often each category, per class; only categories that occur or are declared."""
        if self.joint:
            X = X.combined()
        sizes, counts, names = count_categories(X, members)
        found, stop = np.asarray(counts.any(axis=0)), np.cumsum(sizes)
        index = [np.flatnonzero(found[end - size : end]).tolist() for size, end in zip(sizes, stop)]
        parts = index if names is None else [[names[j][i] for i in part] for j, part in enumerate(index)]
        axes = tuple(Axis(tuple(part)) for part in parts)
        if self.joint:
            joint(axes[0], counts, [], 1.0, self.open)  # refuses a table that is too large
            return JointStats({"class": members.classes, "combination": axes[0]}, counts[:, found])
        stats = CategoricalStats({"class": members.classes, "category": Ragged(axes)}, counts[:, found])
        return self._declared(stats)

    def _declared(self, stats: Any) -> Any:
        """The same sums with the declared categories on their axis."""
        if self.categories is None or self.joint:
            return stats
        axis: Any = stats.labels["category"]
        names = per_feature(self.categories, len(axis.parts))
        if all(part.declared and part.names[: part.declared] == own for part, own in zip(axis.parts, names)):
            return stats
        return stats.relabelled({"category": Ragged(tuple(map(Axis.of, names))).union(axis)})

    def choose(self, stats: Any, rows: Any = None, rule: Rule = "mean") -> Categorical:
        """The strength that the counts call for; a prior by category belongs to the categories first seen."""
        chosen = self
        if (isinstance(self.pseudo_count, tuple) or self.base is not None) and self.categories is None:
            axis: Any = stats.pruned().labels["category"]
            chosen = replace(self, categories=tuple(tuple(part.names) for part in axis.parts))
        if isinstance(self.pseudo_count, str):
            unit = replace(chosen, pseudo_count=1.0).support(stats)
            tables = unit.alpha0[:, None], unit.totals
            chosen = replace(
                chosen, pseudo_count=best_strength(self.pseudo_count, unit.alpha[:, None], unit.counts, *tables)
            )
        return chosen

    @property
    def shared(self) -> bool:
        """A category is known once any class has it."""
        return self.categories is None

    def select(self, features: Array) -> Categorical:
        """The prior and the categories of some features."""
        kept = {
            name: tuple(value[j] for j in features)
            for name in ("pseudo_count", "base", "categories")
            if nested(value := getattr(self, name))
        }
        return replace(self, **kept)  # type: ignore[arg-type]

    def support(self, stats: Any) -> Support:
        """What can occur, with counts and prior."""
        if self.joint != isinstance(stats, JointStats):
            raise HyperparameterError("joint and separate tables keep different counts: fit again to change `joint`.")
        family = self.choose(stats)
        stats = family._declared(stats).pruned()
        counts = np.ascontiguousarray(stats.counts.T)
        if self.joint:
            names: Any = stats.labels["combination"]
            D = len(names.names[0]) if names.size else 1
            declared = [Axis.of(part) for part in per_feature(self.categories, D) if part is not None]
            return joint(names, counts, declared, family.pseudo_count, self.open)
        axis: Any = stats.labels["category"]
        return separate(axis, counts, family._prior(len(axis.parts)), self.open)

    def _prior(self, D: int) -> Any:
        """α as one number, or as numbers for each feature."""
        if self.base is not None:
            return [self.pseudo_count * np.asarray(base) for base in per_feature(self.base, D)]
        return per_feature(self.pseudo_count, D) if isinstance(self.pseudo_count, tuple) else self.pseudo_count

    # -- out -------------------------------------------------------------------------------------------------------
    def estimate(self, stats: Any, rule: Rule) -> CategoricalDensity:
        """Probabilities; the predictive of one row is the posterior mean."""
        return self._density(self.support(stats), stats.labels["class"], rule)

    def _density(self, support: Support, classes: Any, rule: Rule) -> CategoricalDensity:
        if rule == "ml":
            require_rows(support.totals.T, classes, "Categorical")
        log_p, unseen = support.logs(rule)
        require_modes(log_p, classes.names, "categorical")
        require_modes(unseen, classes.names, "categorical")
        return CategoricalDensity(support.axis, log_p, unseen, support.unlisted, support.features)

    def leave_one_out(
        self, stats: Any, X: Codes, members: Members, rule: Rule, density: Density | None = None
    ) -> Array:
        """The row's categories in its own class move; where it was the last of a category, that one is unknown."""
        codes, support = own_codes(members), self.support(stats)
        if not isinstance(density, CategoricalDensity):
            density = self._density(support, stats.labels["class"], rule)
        values = density.codes(X)
        scores, rows, M = density.score(values, density.log_p), np.arange(len(codes)), len(support.counts)
        if M == 0:
            return scores
        if members.weight is None:  # rows of one class and category move alike
            every = np.arange(M)[:, None]
            prior = support.without(every, 1.0)
            last = prior[1].ravel() < support.cells[support.table]
            table = support.left_out(every, np.arange(support.counts.shape[1]), 1.0, rule, prior)
            own = density.score(values, table)[rows, codes]
            fewer = rows[:0]
            if last.any():
                alone = np.r_[last, np.zeros(len(density.rows) - M, dtype=bool)]
                fewer = rows[alone[density.index(X)].any(axis=1)]
        else:
            index, w = density.index(X), members.weight[:, None]
            cell = np.minimum(index, M - 1)
            prior = support.without(cell, w)
            moved = support.left_out(cell, codes[:, None], w, rule, prior)
            own = np.where(index < M, moved, density.rows[index, codes[:, None]]).sum(axis=1)
            fewer = rows[((index < M) & (prior[1] < support.cells[support.table[cell]])).any(axis=1)]
        if rule != "ml" and len(fewer):  # another class notices only that there is one category less
            index, w = density.index(X[fewer]), members.row_weights()[fewer]
            scores[fewer] = 0.0
            for column in index.T:
                moved = support.noticed(np.minimum(column, M - 1), w, rule)
                scores[fewer] += np.where((column < M)[:, None], moved, density.rows[column])
        scores[rows, codes] = np.where(np.isnan(own), -np.inf, own)  # no class left
        return scores

    def log_evidence(self, stats: Any) -> Array:
        """(K,) each table's Dirichlet normaliser after over before."""
        support = self.support(stats)
        alpha0 = np.where(support.alpha0 > 0, support.alpha0, 1.0)[:, None]  # an empty table adds nothing
        cells = log_rising(support.alpha[:, None], support.counts).sum(axis=0)
        return np.asarray(cells - log_rising(alpha0, support.totals).sum(axis=0))

    def log_prior(self, density: CategoricalDensity) -> float:
        """The log of Dirichlet(α) at the probabilities, up to a constant: what `map` adds to the log-likelihood."""
        shell = separate(density.axis, density.log_p, self._prior(len(density.unseen)), self.open)
        unlisted = np.reshape(density.unlisted, (-1, 1))
        rest = unlisted * np.where(unlisted > 0, density.unseen, 0.0)
        return log_prior(density.log_p, shell.alpha[:, None]) + log_prior(rest, shell.alpha_new[:, None])

    def posterior(self, stats: Any) -> Posterior:
        """Beta marginals of the probabilities, (K, ΣM); the mode is that of a feature's categories together."""
        support = self.support(stats)
        table, (mode, unseen) = support.table, support.logs("map")
        none = np.isnan(unseen) & (support.unlisted > 0)[:, None]
        np.logical_or.at(none, table, np.isnan(mode))
        A, A0 = support.counts + support.alpha[:, None], (support.totals + support.alpha0[:, None])[table]
        return marginals(A.T, A0.T, np.where(none[table], np.nan, np.exp(mode)).T)

    def draw(self, stats: Any, rng: np.random.Generator) -> CategoricalDensity:
        """Draw the probabilities of each table from its Dirichlet posterior."""
        support = self.support(stats)
        table, unlisted = support.table, support.unlisted[:, None]
        cells = log_gamma(support.counts + support.alpha[:, None], rng)
        new = log_gamma(np.maximum(support.alpha_new[:, None] * unlisted, 1e-300), rng)
        rest = np.broadcast_to(np.where(unlisted > 0, new, -np.inf), support.totals.shape)
        total = rest.copy()
        for j, (start, size) in enumerate(zip(support.axis.starts, support.axis.sizes)):
            total[j] = np.logaddexp(total[j], np.logaddexp.reduce(cells[start : start + size], axis=0))
        outside = np.log(support.alpha_new / np.maximum(support.alpha0, 1e-300))[:, None]  # a name the support lacks
        unseen = np.where(unlisted > 0, rest - total - np.log(np.maximum(unlisted, 1)), outside)
        return CategoricalDensity(support.axis, cells - total[table], unseen, support.unlisted, support.features)

    @staticmethod
    def of(*features: Any) -> CategoricalDensity:
        """Known probabilities, for each feature a dict by name or a list (then the names are 0, 1, …).

        >>> Categorical.of({"black": 0.4, "white": 0.6}, [0.5, 0.5]).names
        (('black', 'white'), (0, 1))
        """
        tables = [dict(f) if isinstance(f, dict) else dict(enumerate(np.asarray(f).tolist())) for f in features]
        p = np.array([value for table in tables for value in table.values()], dtype=float)
        for table in tables:
            if min(table.values()) < 0 or abs(sum(table.values()) - 1) > 1e-6:
                raise HyperparameterError(f"Categorical.of({table}): probabilities are ≥ 0 and sum to 1.")
        with np.errstate(divide="ignore"):
            log_p = np.log(p)[:, None]
        unseen = np.full((len(tables), 1), -np.inf)
        return CategoricalDensity(Ragged(tuple(Axis.of(table) for table in tables)), log_p, unseen)


def frozen(value: Any) -> Any:
    """Lists as tuples, so that a family is a value."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    return tuple(map(frozen, value)) if isinstance(value, list | tuple) else value


def nested(value: Any) -> bool:
    """Whether each feature has a list of its own."""
    return isinstance(value, tuple) and any(isinstance(part, tuple) for part in value)


def each(value: Any) -> tuple[Any, ...]:
    """What was given, one feature's after another."""
    return value if nested(value) else (value,)


def per_feature(value: Any, D: int) -> list[Any]:
    """One for each feature: as given, or the same for all."""
    if not nested(value):
        return [value] * D
    if len(value) != D:
        raise HyperparameterError(f"there are {D} features, but lists for {len(value)} of them. Give one list each.")
    return list(value)
