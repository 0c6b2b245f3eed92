"""Categories, with a Dirichlet prior.

    x | θ  ~  Categorical(θ)
    θ      ~  Dirichlet(α)            one α_j for each category, α0 their sum
    θ | D  ~  Dirichlet(α + N)
    x | D  ~  Categorical((α + N)/(α0 + N))

Several features are independent given the class, or form one table of combinations (`joint=True`). The support holds
the categories that were declared or counted in any class. Another category scores α/(α0 + N), in excess of a total of
one; with `open=True` the support has one more cell for such categories, and the total is one.

Reference: Gelman et al., Bayesian Data Analysis, 3rd ed., section 3.4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self, TypeAlias, cast

import numpy as np

from deciban.errors import HyperparameterError
from deciban.families.abilities import HasDraws, HasEvidence, HasLogPrior, HasPosterior, SharesParameters
from deciban.families.category_tables import (
    CategoricalDensity,
    PerFeature,
    Support,
    count_categories,
    each,
    frozen,
    joint,
    nested,
    per_feature,
    separate,
)
from deciban.families.counts import log_gamma
from deciban.families.dirichlet import best_strength, check_strength, log_prior, log_rising, marginals, require_modes
from deciban.families.posterior import Posterior
from deciban.families.protocol import Density, Family, Input, Rule, classes_of, own_codes, require_rows
from deciban.read.categories import Codes, encode_categories, refuse_negative
from deciban.statistics import Array, Axis, Members, Ragged, Stats, summed


@dataclass(frozen=True, eq=False, repr=False)
class CategoricalStats(Stats):
    """Counts of each category of each feature."""

    counts: Array = summed("class", "category", floor=True)  # Σ w


@dataclass(frozen=True, eq=False, repr=False)
class JointStats(Stats):
    """Counts of each combination of categories."""

    counts: Array = summed("class", "combination", floor=True)  # Σ w

    def select(self, axis: str, index: Array) -> Self:
        if axis != "feature":
            return super().select(axis, index)
        every = cast(Axis, self.labels["combination"])
        fewer = [tuple(names[j] for j in index) for names in every.names]  # the other features are summed over
        kept = Axis(tuple(sorted(set(fewer))))
        place = {names: at for at, names in enumerate(kept.names)}
        counts = np.zeros((kept.size, len(self.counts)))
        np.add.at(counts, [place[names] for names in fewer], self.counts.T)
        return replace(self, labels={**self.labels, "combination": kept}, counts=counts.T)


AnyCategoricalStats: TypeAlias = CategoricalStats | JointStats


@dataclass(frozen=True, eq=False)
class Categorical(Family[AnyCategoricalStats], HasEvidence, HasPosterior, HasDraws, HasLogPrior, SharesParameters):
    """Categories by any name; features independent given the class, or joint.

    Parameters
    ----------
    pseudo_count : float, sequence of float or {"evidence", "loo"}, default=1.0
        Pseudo-count α of each category: one for all, a list by category, or a list of such lists by feature. A name
        chooses it at the first fit, by marginal likelihood or leave-one-out.
    categories : sequence, optional
        Names of the categories: one list for all features, or a list of lists by feature. Others are added when
        they occur.
    joint : bool, default=False
        Whether all features together form one table of combinations. A row that misses some features is not counted;
        it is scored by the sum over the combinations that it may be.
    open : bool, default=False
        Whether the support has one more cell, for categories that were not seen.
    base : sequence of float, optional
        Probabilities by category; α is then `pseudo_count` × `base`.

    Examples
    --------
    >>> die = Categorical().fit([1, 6, 2, 6, 3, 6, 4, 6, 5, 6])
    >>> die.density("ml").p
    array([[0.1, 0.1, 0.1, 0.1, 0.1, 0.5]])
    >>> cat = Categorical(categories=["black", "orange", "white"]).fit(["black", "white", None])
    >>> cat.density().p
    array([[0.4, 0.2, 0.4]])
    """

    pseudo_count: PerFeature = 1.0
    _: KW_ONLY
    categories: PerFeature = None
    joint: bool = False
    open: bool = False
    base: PerFeature = None

    def __post_init__(self) -> None:
        for name in ("pseudo_count", "base", "categories"):
            object.__setattr__(self, name, frozen(getattr(self, name)))
        for pseudo_count in each(self.pseudo_count):
            for base in each(self.base):
                check_strength("Categorical", pseudo_count, base)
        if self.joint and (self.base is not None or isinstance(self.pseudo_count, tuple)):
            raise HyperparameterError("Categorical(joint=True) takes one pseudo-count for every combination.")

    # -- rows and sums ---------------------------------------------------------------------------------------------
    def encode(self, X: Input | Codes, columns: Sequence[str], stats: AnyCategoricalStats | None = None) -> Codes:
        return X if isinstance(X, Codes) else encode_categories(X, columns)

    def check(self, X: Codes, columns: Sequence[str], learning: bool = False) -> None:
        refuse_negative(X, columns)

    def collect(self, X: Codes, members: Members) -> AnyCategoricalStats:
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

    def _declared(self, stats: AnyCategoricalStats) -> AnyCategoricalStats:
        """Add the declared categories to the axis of the sums."""
        if self.categories is None or isinstance(stats, JointStats):
            return stats
        axis = cast(Ragged, stats.labels["category"])
        names = per_feature(self.categories, len(axis.parts))
        return stats.relabelled({"category": Ragged(tuple(Axis.of(part) for part in names)).union(axis)})

    def choose(
        self, stats: AnyCategoricalStats, rows: tuple[Codes, Members] | None = None, rule: Rule = "mean"
    ) -> Categorical:
        chosen = self
        if (isinstance(self.pseudo_count, tuple) or self.base is not None) and self.categories is None:
            axis = cast(Ragged, stats.pruned().labels["category"])  # a prior by category is that of the first ones
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
        return self.categories is None  # a category of one class is in the support of all

    def select(self, features: Array) -> Categorical:
        kept = {
            name: tuple(value[j] for j in features)
            for name in ("pseudo_count", "base", "categories")
            if nested(value := getattr(self, name))
        }
        return replace(self, **kept)  # type: ignore[arg-type]

    def support(self, stats: AnyCategoricalStats) -> Support:
        """List the categories that can occur, with their counts and pseudo-counts.

        Parameters
        ----------
        stats : CategoricalStats or JointStats
            Sums of the rows of each class.

        Returns
        -------
        Support
            One table per feature, or one in all if joint.
        """
        if self.joint != isinstance(stats, JointStats):
            raise HyperparameterError("joint and separate tables keep different counts: fit again to change `joint`.")
        family = self.choose(stats)
        stats = family._declared(stats).pruned()
        counts = np.ascontiguousarray(stats.counts.T)
        if self.joint:
            names = cast(Axis, stats.labels["combination"])
            D = len(names.names[0]) if names.size else 1
            declared = [Axis.of(part) for part in per_feature(self.categories, D) if part is not None]
            return joint(names, counts, declared, family.pseudo_count, self.open)
        axis = cast(Ragged, stats.labels["category"])
        return separate(axis, counts, family._prior(len(axis.parts)), self.open)

    def _prior(self, D: int) -> float | list[Array]:
        """α as one number, or as numbers for each feature."""
        if self.base is not None:
            return [self.pseudo_count * np.asarray(base) for base in per_feature(self.base, D)]
        return per_feature(self.pseudo_count, D) if isinstance(self.pseudo_count, tuple) else self.pseudo_count

    # -- densities -------------------------------------------------------------------------------------------------
    def estimate(self, stats: AnyCategoricalStats, rule: Rule) -> CategoricalDensity:
        # under "predictive", the probability of a category is its posterior mean
        return self._density(self.support(stats), classes_of(stats.labels), rule)

    def _density(self, support: Support, classes: Axis, rule: Rule) -> CategoricalDensity:
        if rule == "ml":
            require_rows(support.totals.T, classes, "Categorical")
        log_p, unseen = support.logs(rule)
        require_modes(log_p, classes.names, "categorical")
        require_modes(unseen, classes.names, "categorical")
        return CategoricalDensity(support.axis, log_p, unseen, support.unlisted, support.features)

    def leave_one_out(
        self, stats: AnyCategoricalStats, X: Codes, members: Members, rule: Rule, density: Density | None = None
    ) -> Array:
        # the counts of the row's categories change in its own class; the last row of a category removes it for all
        codes, support = own_codes(members), self.support(stats)
        if not isinstance(density, CategoricalDensity):
            density = self._density(support, classes_of(stats.labels), rule)
        scores, rows, M = density.log_density(X), np.arange(len(codes)), support.axis.size
        if M == 0:
            return scores
        if members.weight is None:  # the same change for all rows of one class and category
            every = np.arange(M)[:, None]
            table = support.left_out(every, np.arange(members.K), 1.0, rule)
            own = replace(density, log_p=table).log_density(X)[rows, codes]
            last = support.without(every, 1.0)[1].ravel() < support.cells[support.table]
            alone = np.r_[last, np.zeros(len(density.rows) - M, dtype=bool)]
            fewer = rows[alone[density.index(X)].any(axis=1)] if last.any() else rows[:0]
        else:
            index, w = density.index(X), members.weight[:, None]
            cell = np.minimum(index, M - 1)
            moved = support.left_out(cell, codes[:, None], w, rule)
            own = np.where(index < M, moved, density.rows[index, codes[:, None]]).sum(axis=1)
            fewer = rows[((index < M) & (support.without(cell, w)[1] < support.cells[support.table[cell]])).any(axis=1)]
        if rule != "ml":  # other classes change only where the support loses a category
            index, w = density.index(X[fewer]), members.row_weights()[fewer]
            scores[fewer] = 0.0
            for column in index.T:
                moved = support.without_category(np.minimum(column, M - 1), w, rule)
                scores[fewer] += np.where((column < M)[:, None], moved, density.rows[column])
        learnt = ~density.with_gaps(X)  # a row with a gap in a joint table was not counted
        own = np.where(np.isnan(own), -np.inf, own)  # NaN: its class has no other rows
        scores[rows[learnt], codes[learnt]] = own[learnt]
        return scores

    def log_evidence(self, stats: AnyCategoricalStats) -> Array:
        support = self.support(stats)
        alpha0 = np.where(support.alpha0 > 0, support.alpha0, 1.0)[:, None]  # an empty table adds nothing
        cells = log_rising(support.alpha[:, None], support.counts).sum(axis=0)
        return np.asarray(cells - log_rising(alpha0, support.totals).sum(axis=0))

    def log_prior(self, density: CategoricalDensity) -> float:
        prior = separate(density.axis, density.log_p, self._prior(len(density.unseen)), self.open)
        unlisted = np.reshape(density.unlisted, (-1, 1))
        rest = unlisted * np.where(unlisted > 0, density.unseen, 0.0)
        return log_prior(density.log_p, prior.alpha[:, None]) + log_prior(rest, prior.alpha_new[:, None])

    def posterior(self, stats: AnyCategoricalStats) -> Posterior:
        support = self.support(stats)
        table, (mode, unseen) = support.table, support.logs("map")
        none = np.isnan(unseen) & (support.unlisted > 0)[:, None]
        np.logical_or.at(none, table, np.isnan(mode))
        A, A0 = support.counts + support.alpha[:, None], (support.totals + support.alpha0[:, None])[table]
        # the mode is the joint one of all categories of a table
        return marginals(A.T, A0.T, np.where(none[table], np.nan, np.exp(mode)).T)

    def draw(self, stats: AnyCategoricalStats, rng: np.random.Generator) -> CategoricalDensity:
        support = self.support(stats)
        table, unlisted = support.table, support.unlisted[:, None]
        cells = log_gamma(support.counts + support.alpha[:, None], rng)
        new = log_gamma(np.maximum(support.alpha_new[:, None] * unlisted, 1e-300), rng)
        rest = np.broadcast_to(np.where(unlisted > 0, new, -np.inf), support.totals.shape)
        total = rest.copy()
        for j, (start, size) in enumerate(zip(support.axis.starts, support.axis.sizes)):
            total[j] = np.logaddexp(total[j], np.logaddexp.reduce(cells[start : start + size], axis=0))
        outside = np.log(support.alpha_new / np.maximum(support.alpha0, 1e-300))[
            :, None
        ]  # of a category outside the support
        unseen = np.where(unlisted > 0, rest - total - np.log(np.maximum(unlisted, 1)), outside)
        return CategoricalDensity(support.axis, cells - total[table], unseen, support.unlisted, support.features)

    @staticmethod
    def of(*features: Mapping[Any, float] | Sequence[float]) -> CategoricalDensity:
        """Return the density of known probabilities.

        Parameters
        ----------
        *features : dict of {name: float} or sequence of float
            Probabilities of the categories of each feature; those of a sequence are named 0, 1, ….

        Returns
        -------
        CategoricalDensity
            The density of a single class.

        Examples
        --------
        >>> Categorical.of({"black": 0.4, "white": 0.6}, [0.5, 0.5]).names
        (('black', 'white'), (0, 1))
        """
        tables = [dict(f) if isinstance(f, dict) else dict(enumerate(np.asarray(f).tolist())) for f in features]
        p = np.array([value for table in tables for value in table.values()], dtype=float)
        for table in tables:
            if min(table.values()) < 0 or abs(sum(table.values()) - 1) > 1e-6:
                raise HyperparameterError(f"Categorical.of({table}): probabilities must be ≥ 0 and sum to 1.")
        with np.errstate(divide="ignore"):
            log_p = np.log(p)[:, None]
        unseen = np.full((len(tables), 1), -np.inf)
        return CategoricalDensity(Ragged(tuple(Axis.of(table) for table in tables)), log_p, unseen)
