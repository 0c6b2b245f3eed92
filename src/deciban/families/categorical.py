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

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from math import prod
from typing import Any, ClassVar, Self, TypeAlias, cast

import numpy as np
import scipy.sparse as sp

from deciban import kernels
from deciban.errors import HyperparameterError, InputError, NotAvailableError
from deciban.families.abilities import (
    HasDraws,
    HasEvidence,
    HasLeftOutFeatures,
    HasLogPrior,
    HasPosterior,
    SharesParameters,
)
from deciban.families.dirichlet import (
    best_strength,
    check_strength,
    draw,
    left_over,
    log_gamma,
    log_prior,
    log_rising,
    log_theta,
    marginals,
    require_modes,
)
from deciban.families.protocol import Density, Family, Input, Posterior, Rule, require_rows
from deciban.kernels.rows import distinct_rows
from deciban.read.arrays import encode_categories, refuse_negative
from deciban.read.codes import Codes
from deciban.statistics import Array, Axis, Members, Ragged, Stats, summed

MOST_CELLS = 10**6  # of a joint table
PerFeature: TypeAlias = Any  # one value, a list by category, or a list of lists by feature
Names: TypeAlias = Sequence[Sequence[Any]] | None  # of the categories of each feature; None if they are 0, 1, …


@dataclass(frozen=True, eq=False, repr=False)
class CategoricalStats(Stats):
    """Counts of each category of each feature."""

    counts: Array = summed("class", "category", floor=True)  # Σ w


@dataclass(frozen=True, eq=False, repr=False)
class JointStats(Stats):
    """Counts of each combination of categories."""

    counts: Array = summed("class", "combination", floor=True)  # Σ w

    def validate(self) -> None:
        """Raise InputError unless each combination has one category of each feature."""
        names = cast(Axis, self.labels["combination"]).names
        if not all(isinstance(each, tuple) for each in names) or len({len(each) for each in names}) > 1:
            raise InputError("the combinations of categories have different numbers of features.")

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
class Categorical(
    Family[AnyCategoricalStats],
    HasEvidence,
    HasPosterior,
    HasDraws,
    HasLogPrior,
    HasLeftOutFeatures,
    SharesParameters,
):
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
        if self.pseudo_count != 1.0 or self.base is not None:
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
        declared = tuple([Axis(tuple(part), len(part)) for part in names])
        if declared == axis.parts:
            return stats
        return stats.relabelled({"category": Ragged(declared).union(axis)})

    def choose(
        self, stats: AnyCategoricalStats, rows: tuple[Codes, Members] | None = None, rule: Rule = "mean"
    ) -> Categorical:
        if not (isinstance(self.pseudo_count, tuple) or self.base is not None) or self.categories is not None:
            return self
        axis = cast(Ragged, stats.pruned().labels["category"])  # a prior by category is that of the first ones
        return replace(self, categories=tuple(tuple(part.names) for part in axis.parts))

    def resolve(self, stats: AnyCategoricalStats) -> Categorical:
        if not isinstance(self.pseudo_count, str):
            return self
        unit = replace(self, pseudo_count=1.0).support(stats)
        tables = unit.alpha0[:, None], unit.totals
        return replace(self, pseudo_count=best_strength(self.pseudo_count, unit.alpha[:, None], unit.counts, *tables))

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
        family = self.choose(stats).resolve(stats)
        stats = family._declared(stats)
        if self.joint or not cast(Ragged, stats.labels["category"]).closed:
            stats = stats.pruned()
        counts = np.ascontiguousarray(stats.counts.T)
        if self.joint:
            names = cast(Axis, stats.labels["combination"])
            D = len(names.names[0]) if names.size else 1
            declared = [Axis.of(part) for part in per_feature(self.categories, D) if part is not None]
            return joint(names, counts, declared, family.pseudo_count, self.open)
        axis = cast(Ragged, stats.labels["category"])
        return separate(axis, counts, family._prior(len(axis.parts)), self.open)

    def _prior(self, D: int) -> float | list[Array]:
        """Return α as one number, or as numbers for each feature."""
        if self.base is not None:
            return [self.pseudo_count * np.asarray(base) for base in per_feature(self.base, D)]
        return per_feature(self.pseudo_count, D) if isinstance(self.pseudo_count, tuple) else self.pseudo_count

    # -- densities -------------------------------------------------------------------------------------------------
    def estimate(self, stats: AnyCategoricalStats, rule: Rule) -> CategoricalDensity:
        # under "predictive", the probability of a category is its posterior mean
        return self._density(self.support(stats), cast(Axis, stats.labels["class"]), rule)

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
        codes, support = members.own_codes(), self.support(stats)
        if not isinstance(density, CategoricalDensity):
            density = self._density(support, cast(Axis, stats.labels["class"]), rule)
        K, M, rows = density.K, support.axis.size, np.arange(len(codes))
        if M == 0:
            return density.log_density(X)
        w = members.weight
        if w is None:  # the same change for all rows of one class and category
            table, left = support.left_out(np.arange(M)[:, None], np.arange(K), 1.0, rule)
            values = density.codes(X)
            own = kernels.category_scores(values, table, support.axis.starts, support.axis.sizes, density.unseen)
            scores, own = density.log_density(X, values), own[rows, codes]
            alone = np.r_[left.ravel() < support.cells[support.table], np.zeros(len(density.rows) - M, dtype=bool)]
            index = density.places(values) if alone.any() else np.zeros((len(rows), 0), dtype=np.intp)
            fewer = rows[alone[index].any(axis=1)]
        else:
            scores, index = density.log_density(X), density.index(X)
            cell = np.minimum(index, M - 1)
            moved, left = support.left_out(cell, codes[:, None], w[:, None], rule)
            own = np.where(index < M, moved, density.rows[index, codes[:, None]]).sum(axis=1)
            fewer = rows[((index < M) & (left < support.cells[support.table[cell]])).any(axis=1)]
        if rule != "ml" and len(fewer):  # other classes change only where the support loses a category
            scores[fewer] = 0.0
            for column in index[fewer].T:
                moved = support.without_category(np.minimum(column, M - 1), 1.0 if w is None else w[fewer], rule)
                scores[fewer] += np.where((column < M)[:, None], moved, density.rows[column])
        learnt = ~density.with_gaps(X)  # a row with a gap in a joint table was not counted
        own = np.where(np.isnan(own), -np.inf, own)  # NaN: its class has no other rows
        scores[rows[learnt], codes[learnt]] = own[learnt]
        return scores

    def separate(self, stats: AnyCategoricalStats) -> bool:
        return not self.joint and not isinstance(self.pseudo_count, str)

    def left_out_features(self, stats: AnyCategoricalStats, X: Codes, members: Members, rule: Rule) -> Array:
        if self.joint:
            raise NotAvailableError("the features of a joint table are not independent of each other.")
        codes, support = members.own_codes(), self.support(stats)
        density = self._density(support, cast(Axis, stats.labels["class"]), rule)
        scores, M = density.parts(X), support.axis.size
        if M == 0:
            return np.asarray(scores)
        index, w = density.index(X), members.row_weights()[:, None]
        cell, listed = np.minimum(index, M - 1), index < M
        own, left = support.left_out(cell, codes[:, None], w, rule)
        if rule != "ml":  # other classes change only where the support loses a category
            rows, features = np.nonzero(listed & (left < support.cells[support.table[cell]]))
            scores[rows, :, features] = support.without_category(cell[rows, features], w[rows, 0], rule)
        own = np.where(np.isnan(own), -np.inf, own)  # NaN: its class has no other rows
        scores[np.arange(len(codes)), codes] = np.where(listed, own, density.rows[index, codes[:, None]])
        return np.asarray(scores)

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

    def draw(self, stats: AnyCategoricalStats, rng: np.random.Generator, times: int = 1) -> CategoricalDensity:
        support = self.support(stats)
        table, unlisted, K = support.table, support.unlisted[:, None], support.totals.shape[1]
        cells = log_gamma(np.concatenate([support.counts + support.alpha[:, None]] * times, axis=1), rng)
        new = np.broadcast_to(np.maximum(support.alpha_new[:, None] * unlisted, 1e-300), (len(unlisted), K * times))
        rest = np.where(unlisted > 0, log_gamma(new, rng), -np.inf)
        total = rest.copy()
        for j, (start, size) in enumerate(zip(support.axis.starts, support.axis.sizes)):
            total[j] = np.logaddexp(total[j], np.logaddexp.reduce(cells[start : start + size], axis=0))
        # of a category outside the support
        outside = np.log(support.alpha_new / np.maximum(support.alpha0, 1e-300))[:, None]
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


# -- tables of counts and pseudo-counts --------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Support:
    """Counts and pseudo-counts of D tables with M listed cells in all, K classes.

    The support of a feature holds the categories that were declared or counted in any class. The support of a joint
    table holds every combination of its features' categories; only the counted ones are listed. An open table has one
    more cell, for all other categories.
    """

    axis: Ragged  # names of the listed cells
    counts: Array  # (M, K)
    alpha: Array  # (M,)  pseudo-count of a listed cell
    alpha_new: Array  # (D,)  pseudo-count of a cell that is not listed
    alpha0: Array  # (D,)  pseudo-count of the whole table
    cells: Array  # (D,)  number of cells in the support, listed or not
    features: tuple[Axis, ...] | None = None  # joint table: categories of each feature
    table: Array = field(init=False)  # (M,)  table of each listed cell
    totals: Array = field(init=False)  # (D, K)  total count of each table
    unlisted: Array = field(init=False)  # (D,)  number of cells in the support that are not listed

    def __post_init__(self) -> None:
        sizes, D = self.axis.sizes, len(self.cells)
        totals, some = np.zeros((D, self.counts.shape[1])), sizes > 0
        if some.any():
            totals[some] = np.add.reduceat(self.counts, self.axis.starts[some], axis=0)
        object.__setattr__(self, "table", np.repeat(np.arange(D), sizes))
        object.__setattr__(self, "totals", totals)
        object.__setattr__(self, "unlisted", self.cells - sizes)

    def logs(self, rule: Rule) -> tuple[Array, Array]:
        """Return log probabilities of listed cells (M, K) and of any other cell (D, K); NaN where there is no mode."""
        M, D = len(self.counts), len(self.cells)
        of = np.concatenate([self.table, np.arange(D)])
        counts = np.concatenate([self.counts, np.zeros_like(self.totals)])
        alpha = np.concatenate([self.alpha, self.alpha_new])[:, None]
        logs = log_theta(counts, self.totals[of], alpha, self.alpha0[of, None], self.cells[of, None], rule)
        other = logs[M:]
        if rule != "ml":
            other = np.where(self.cells[:, None] == 0, 0.0, other)
        # at a mode, categories outside the support have probability 0
        gone = np.isnan(other) & (self.unlisted == 0)[:, None] & (self.totals > 0)
        return logs[:M], np.where(gone, -np.inf, other)

    def without(self, cell: Array, weight: Array | float) -> tuple[Array, Array]:
        """Return α0 and the number of cells of a cell's table without a row; the last row removes the category."""
        table, total = self.table[cell], self.counts.sum(axis=1)
        if self.features is None:
            gone = self.axis.undeclared[cell] & (left_over(total[cell], weight) == 0)
            return self.alpha0[table] - gone * self.alpha[cell], self.cells[table] - gone
        size = 1
        for j, feature in enumerate(self.features):
            place = {name: at for at, name in enumerate(feature.names)}
            code = np.array([place[name[j]] for name in self.axis.parts[0].names], dtype=np.intp)
            each, category = np.bincount(code, total, feature.size), code[cell]
            size = size * (feature.size - ((category >= feature.declared) & (left_over(each[category], weight) == 0)))
        cells = size + (self.cells[0] - prod(feature.size for feature in self.features))  # plus the open cell
        return self.alpha_new[0] * cells, np.asarray(cells)

    def left_out(self, cell: Array, k: Array, weight: Array | float, rule: Rule) -> tuple[Array, Array]:
        """Return log probabilities of cells in class k without a row of that class and cell, and their support.

        The second array has the shape of `cell` and holds the number of cells of its table without the row.
        """
        alpha0, cells = self.without(cell, weight)
        counts, totals = left_over(self.counts[cell, k], weight), left_over(self.totals[self.table[cell], k], weight)
        return _log_cells(counts, totals, self.alpha[cell], alpha0, cells, rule), cells

    def without_category(self, cell: Array, weight: Array | float, rule: Rule) -> Array:
        """Return log probabilities (…, K) of a cell in the other classes, whose support may have lost a category."""
        alpha0, cells = self.without(cell, weight)
        totals, alpha = self.totals[self.table[cell]], self.alpha[cell, None]
        return _log_cells(self.counts[cell], totals, alpha, alpha0[..., None], cells[..., None], rule)


def _log_cells(counts: Array, totals: Array, alpha: Array, alpha0: Array, cells: Array, rule: Rule) -> Array:
    """Return `log_theta`, and 0 for a table without cells."""
    logs = log_theta(counts, totals, alpha, alpha0, cells, rule)
    return logs if rule == "ml" else np.where(np.equal(cells, 0), 0.0, logs)


def separate(axis: Ragged, counts: Array, prior: float | list[Array], open: bool) -> Support:
    """Return one table per feature; `prior` is one pseudo-count, or those of every cell of every feature."""
    sizes = axis.sizes
    cells = sizes + int(open)
    if not isinstance(prior, list):
        each = np.full(len(sizes), float(prior))
        return Support(axis, counts, np.full(axis.size, float(prior)), each, prior * cells, cells)
    vectors = [np.asarray(vector, dtype=float) for vector in prior]
    for j, (vector, size) in enumerate(zip(vectors, cells)):
        if len(vector) != size:
            raise HyperparameterError(
                f"the prior of feature {j} has {len(vector)} numbers, but there are {size} categories"
                f"{', one of them the open cell' if open else ''}: {axis.parts[j].names}. "
                "Declare categories=, or give one pseudo-count for all."
            )
    new = [vector[-1] if open else vector.mean() for vector in vectors]
    listed = [vector[: len(vector) - int(open)] for vector in vectors]
    return Support(
        axis, counts, np.concatenate(listed), np.array(new), np.array([vector.sum() for vector in vectors]), cells
    )


def joint(names: Axis, counts: Array, declared: Sequence[Axis], prior: float, open: bool) -> Support:
    """Return one table over all combinations of the features' categories."""
    found = [Axis(tuple(sorted(set(values)))) for values in zip(*names.names)]
    for axis in declared:
        if axis.size > MOST_CELLS:  # before its names are listed
            raise NotAvailableError(
                f"a joint table of a feature with {axis.size:,} categories has more than {MOST_CELLS:,} cells. "
                "Merge rare categories, or use joint=False."
            )
    features = tuple(a.union(b) for a, b in zip(declared, found)) if found and declared else tuple(found or declared)
    size = prod(feature.size for feature in features) if features else 0
    if size > MOST_CELLS:
        raise NotAvailableError(
            f"a joint table of {' × '.join(str(feature.size) for feature in features)} categories has {size:,} cells, "
            f"more than {MOST_CELLS:,}. Leave out features, merge rare categories, or use joint=False."
        )
    cells = np.array([size + int(open)])
    alpha = np.full(names.size, float(prior))
    return Support(Ragged((names,)), counts, alpha, np.array([float(prior)]), prior * cells, cells, features)


def frozen(value: PerFeature) -> PerFeature:
    """Convert arrays and lists to tuples, which cannot change."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    return tuple(map(frozen, value)) if isinstance(value, list | tuple) else value


def nested(value: PerFeature) -> bool:
    """Whether there is a list for each feature."""
    return isinstance(value, tuple) and any(isinstance(part, tuple) for part in value)


def each(value: PerFeature) -> tuple[Any, ...]:
    """Return the value of each feature, or the only value."""
    return tuple(value) if nested(value) else (value,)


def per_feature(value: PerFeature, D: int) -> list[Any]:
    """Return one value per feature: as given, or the same for all."""
    if not nested(value):
        return [value] * D
    if len(value) != D:
        raise HyperparameterError(f"there are {D} features, but lists for {len(value)} of them. Give one list each.")
    return list(value)


def count_categories(X: Codes, members: Members) -> tuple[Array, Array, Names]:
    """Return the number of categories (D,), counts (K, Σ numbers), and names; None where the codes are the names."""
    if X.names is None and members.shares is None:
        try:
            sizes, counts = kernels.category_counts_growing(X.values, members.codes, members.weight, members.K)
            return sizes, counts, None
        except kernels.CategoryError:
            refuse_negative(X, ())
    X = X.named()  # also codes that are too large to be positions in a table
    sizes = np.array([len(names) for names in X.names or ()], dtype=np.intp)
    if members.shares is None:
        return sizes, kernels.category_counts(X.values, members.codes, members.weight, sizes, members.K), X.names
    seen = X.values >= 0
    starts = np.r_[0, np.cumsum(seen.sum(axis=1))]
    flags = sp.csr_array(
        (np.ones(starts[-1]), (X.values + np.cumsum(sizes) - sizes)[seen], starts), (len(X), int(sizes.sum()))
    )
    return sizes, members.total(flags), X.names


# -- densities ---------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class CategoricalDensity(Density):
    """Probabilities of D tables with M listed cells in all, K classes."""

    shapes: ClassVar = {"log_p": "M K log", "unseen": "T K log", "unlisted": "T count"}

    axis: Ragged  # names of the listed cells
    log_p: Array  # (M, K)  log probability of a listed cell
    unseen: Array  # (D, K)  log probability of any other category
    unlisted: Array | int = 0  # (D,)  number of cells in the support that are not listed
    features: tuple[Axis, ...] | None = None  # joint table: categories of each feature
    # (M + 1 + D, K)  score of a value: listed cells, then missing, then a category not listed in each table
    rows: Array = field(init=False, repr=False)
    positions: list[dict[Any, int]] = field(init=False, repr=False)  # of the names in each table

    def __post_init__(self) -> None:
        rows = np.concatenate([self.log_p, np.zeros((1, self.K)), self.unseen])
        positions = [{name: at for at, name in enumerate(part.names)} for part in self.axis.parts]
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "positions", positions)

    @property
    def K(self) -> int:
        return int(self.log_p.shape[1])

    @property
    def p(self) -> Array:
        """(K, M) probability of each listed cell."""
        return np.exp(self.log_p.T)

    @property
    def names(self) -> tuple[tuple[Any, ...], ...]:
        """Names of the listed cells of each table; tuples if it is joint."""
        return tuple(tuple(part.names) for part in self.axis.parts)

    def encode(self, X: Input, columns: Sequence[str]) -> Codes:
        """Convert names to codes."""
        return encode_categories(X, columns)

    def codes(self, X: Codes) -> Array:
        """Return the position of each value in its table, (n, D); −1 if missing, the number of cells if not listed."""
        return (X if self.features is None else X.combined()).on(self.positions)

    def places(self, codes: Array) -> Array:
        """Return the position in `rows` of the score of each value, by its code, (n, D)."""
        M = len(self.log_p)
        absent = np.where(codes == -1, M, M + 1 + np.arange(codes.shape[1]))
        return np.where((codes >= 0) & (codes < self.axis.sizes), codes + self.axis.starts, absent)

    def index(self, X: Codes) -> Array:
        """Return the position of each value's score in `rows`, (n, D)."""
        return self.places(self.codes(X))

    def scores(self, codes: Array) -> Array:
        """Return log densities of values by their codes, (n, K)."""
        return kernels.category_scores(codes, self.log_p, self.axis.starts, self.axis.sizes, self.unseen)

    def log_density(self, X: Codes, values: Array | None = None) -> Array:
        """Return the sum over tables; a missing value adds 0. Joint tables are summed over features that a row misses.

        `values` are the codes of X, for callers that have them.
        """
        scores = self.scores(self.codes(X) if values is None else values)
        for rows, marginal in self._marginals(X):
            scores[rows] = marginal
        return scores

    def with_gaps(self, X: Codes) -> Array:
        """Return whether each row misses some, but not all, features of a joint table, (n,)."""
        if not self.features:
            return np.zeros(len(X.values), dtype=bool)
        missing = X.values < 0
        return np.asarray(missing.any(axis=1) & ~missing.all(axis=1))

    def _marginals(self, X: Codes) -> Iterator[tuple[Array, Array]]:
        """Yield rows of a joint table with gaps, and the log probability (m, K) of the values that they have."""
        at = np.flatnonzero(self.with_gaps(X)) if self.features else ()
        if not len(at):
            return
        features, M = self.features or (), len(self.log_p)
        places = [{name: code for code, name in enumerate(feature.names)} for feature in features]
        listed = np.array([[place[name] for place, name in zip(places, cell)] for cell in self.names[0]], dtype=np.intp)
        codes, sizes = X[at].on(places), np.array([feature.size for feature in features])
        for gaps in np.unique(codes < 0, axis=0):
            alike = np.flatnonzero(((codes < 0) == gaps).all(axis=1))
            seen = np.concatenate([listed.reshape(M, -1), codes[alike]])[:, ~gaps]
            groups, place = distinct_rows(seen)
            p, cells = np.zeros((len(groups), self.K)), np.bincount(place[:M], minlength=len(groups))
            np.add.at(p, place[:M], np.exp(self.log_p))
            known = (groups < sizes[~gaps]).all(axis=1)  # the code of an unknown category is that after the last
            p += np.where(known, sizes[gaps].prod() - cells, 1)[:, None] * np.exp(self.unseen)
            with np.errstate(divide="ignore"):
                yield at[alike], np.log(p[place[M:]])

    def parts(self, X: Codes) -> Array:
        """Return the score of each feature, shape (n, K, D); that of a joint table stands at its first feature."""
        parts = self.rows[self.index(X)].transpose(0, 2, 1)
        if self.features is None:
            return parts
        for rows, marginal in self._marginals(X):
            parts[rows, :, 0] = marginal
        return np.concatenate([parts, np.zeros((*parts.shape[:2], X.shape[1] - 1))], axis=2)

    def sample(self, codes: Array, rng: np.random.Generator) -> Array:
        """Draw names, shape (n, D); the open cell has no name and is never drawn."""
        if self.features:
            return self._sample_joint(codes, rng)
        drawn = np.full((len(codes), len(self.unseen)), None, dtype=object)
        for j, (start, part) in enumerate(zip(self.axis.starts, self.axis.parts)):
            if part.size:
                cells = draw(self.p[:, start : start + part.size], codes, rng)
                drawn[:, j] = np.array([*part.names, None], dtype=object)[cells]
        return drawn

    def _sample_joint(self, codes: Array, rng: np.random.Generator) -> Array:
        """Draw combinations, listed or not."""
        features = self.features or ()
        shape = [feature.size for feature in features]
        places = [{name: at for at, name in enumerate(feature.names)} for feature in features]
        listed = [[place[part] for place, part in zip(places, name)] for name in self.names[0]]
        cells: Any = np.ravel_multi_index(tuple(np.array(listed, dtype=np.intp).reshape(-1, len(shape)).T), shape)
        others = np.setdiff1d(np.arange(np.prod(shape)), cells)
        p = np.concatenate([self.p, len(others) * np.exp(self.unseen.T)], axis=1)
        at = draw(p, codes, rng)
        new = at == len(cells)
        at[~new] = cells[at[~new]]
        at[new] = rng.choice(others, int(new.sum())) if new.any() else 0
        columns = zip(features, np.unravel_index(at, shape))
        return np.stack([np.array([*f.names, None], dtype=object)[column] for f, column in columns], axis=1)
