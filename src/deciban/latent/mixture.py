"""Mixtures of any family, by EM.

    f(x) = Σ_m π_m f(x|m)       E: γ_nm ∝ π_m f(x_n|m)       M: the family's estimate on γ-weighted sums, π_m = N_m/N

The mixing weights have a Dirichlet(α) prior, which is uniform for α = 1. The sums of a mixture depend on the estimate
under which they were collected, so it cannot be unlearnt exactly and has no exact leave-one-out.

In a classifier a mixture is the density of each class. EM over the first rows makes an estimate for each class, which
is then frozen (`guess`) and improved once over all rows (`refine`). The sums of later rows are collected by one E-step
under it, so they add.

Reference: McLachlan & Peel, Finite Mixture Models (2000).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from functools import partial
from typing import Any, Literal, Self, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from deciban.errors import DecibanError, HyperparameterError, InputError, NotAvailableError
from deciban.families.abilities import Unmixable, ability
from deciban.families.product import subset
from deciban.families.protocol import Density, Family, Passes, Rows, Rule, replaced
from deciban.latent import em
from deciban.latent.components import (
    ClassOfPart,
    MixtureDensities,
    MixtureDensity,
    MixtureStats,
    MixtureSums,
    PartedRows,
    WeightedRows,
    choose_component,
    choose_within,
    component_axis,
    estimate_mixture,
    free_parameters,
    mixture_log_prior,
)
from deciban.latent.mixture_fit import FittedMixture, MixtureFit, Start, check_start
from deciban.latent.sequences import require_columns
from deciban.read.arrays import row_weights
from deciban.statistics import Array, Axis, Members
from deciban.statistics.members import collect_checked

Criterion: TypeAlias = Literal["bic", "icl", "heldout"]
FOLDS = 5  # of held-out likelihood
MOST_COMPONENTS = 2**16  # more are a mistake, or a changed file: each has a name in each class


@dataclass(frozen=True, eq=False, repr=False)
class Mixture(em.FrozenEstimate):
    """Mixture of components of one family.

    Without classes, `fit` finds the components and returns a `FittedMixture`. In a `GenerativeClassifier` each class
    has a mixture of its own.

    Parameters
    ----------
    component : Family
        Family of the components.
    n_components : int, default=2
        Number of components.
    pseudo_count : float, default=1.0
        Parameter α of the Dirichlet prior of the weights; 1 is uniform.
    rule : {"map", "ml"}, default="map"
        Rule under which EM maximises: penalised likelihood or likelihood. Every rule can read the sums it ends with.
    start : {"k-means++", "random"}, default="k-means++"
        First estimate: models of single rows that are far apart, or random responsibilities.
    n_starts : int, default=5
        Number of short runs of EM from different starts; the best one is continued.
    max_iter : int, default=1000
        Largest number of iterations.
    tol : float, default=1e-7
        EM stops when an iteration gains less than this per row.
    random_state : int, default=0
        Seed of the starts in a classifier.
    guess : MixtureStats, optional
        Sums of the frozen estimate under which a classifier collects later rows. Set at the first fit.

    See Also
    --------
    MixtureModel : The same model with scikit-learn's mixture interface.

    Examples
    --------
    >>> import numpy as np
    >>> from deciban import Gaussian, Mixture
    >>> rng = np.random.default_rng(0)
    >>> X = np.r_[rng.normal(0, 1, (100, 1)), rng.normal(9, 1, (50, 1))]
    >>> Mixture(Gaussian(), 2).fit(X, random_state=0).weights.round(2)
    array([0.67, 0.33])
    >>> Mixture(Gaussian()).fit_size(X, range(1, 4), by="bic", random_state=0)
    FittedMixture(2 × Gaussian, Trace(... iterations, converged, ...))
    """

    FROZEN = ("component", "guess")

    component: Family
    n_components: int = 2
    pseudo_count: float = 1.0
    _: KW_ONLY
    rule: Rule = "map"
    start: str = "k-means++"
    n_starts: int = 5
    max_iter: int = 1000
    tol: float = 1e-7
    random_state: int = 0
    guess: MixtureStats | None = field(default=None, repr=False)

    @property
    def accepts(self) -> frozenset[str]:
        return self.component.accepts

    def __post_init__(self) -> None:
        if not 1 <= self.n_components <= MOST_COMPONENTS or self.pseudo_count <= 0:
            raise HyperparameterError(
                f"Mixture(n_components={self.n_components}, pseudo_count={self.pseudo_count}): "
                f"there must be 1 to {MOST_COMPONENTS:,} components, and the pseudo-count must be > 0."
            )
        if not isinstance(self.component, Family):
            raise HyperparameterError(f"{self.component!r} is not a family. Use one such as Gaussian().")
        if ability(self.component, Unmixable) is not None:
            raise HyperparameterError(
                f"{self.component!r} cannot be a mixture component. Count words once, with "
                "deciban.sklearn.CountVectorizer, and mix the counts: Mixture(Multinomial(), 2)."
            )
        check_start(self.start)
        em.check_em_rule(self.rule)

    def __repr__(self) -> str:
        plain = [f for f in fields(self) if f.name not in ("component", "n_components", "guess")]
        given = [f"{f.name}={getattr(self, f.name)!r}" for f in plain if getattr(self, f.name) != f.default]
        return f"Mixture({', '.join([repr(self.component), repr(self.n_components), *given])})"

    # -- without classes ---------------------------------------------------------------------------------------------
    def fit(  # type: ignore[override]
        self,
        X: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        start: Start | None = None,
        random_state: np.random.Generator | int | None = None,
        batch: int | None = None,
        progress: bool = False,
        passes: Passes | None = None,
        **options: Any,
    ) -> FittedMixture:
        """Find the components by EM, without classes.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            Rows, as the component family takes them.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row.
        start : str, array-like of shape (n_samples, n_components) or MixtureDensity, optional
            Name of a start, responsibilities, or a density to start from.
        random_state : numpy.random.Generator, int or None, optional
            Source of the random starts.
        batch : int, optional
            Rows in a batch: three passes of stepwise EM over batches precede EM.
        progress : bool, default=False
            Whether to show a progress bar on a terminal.
        passes : Passes, optional
            Parts of rows that stay where they are, over which EM runs; `X` are the first rows of all parts, from which
            choices and starts are made.
        **options
            Parameters of the mixture for this fit: rule, n_starts, max_iter, tol.

        Returns
        -------
        FittedMixture
            Components ordered by weight, the largest first; in the order given if `start` is not a name.
        """
        asked = replaced(self, **options)
        rows, start = asked._rows(X, sample_weight, start)
        parts = None if passes is None else PartedRows(rows.family, passes)
        task = MixtureFit(rows, asked.rule, self.pseudo_count, self.component, parts)
        rng, names = np.random.default_rng(random_state), Axis.of(self.n_components)
        first: Start = self.start if start is None else start
        if batch is not None:
            first = task.stepwise(names, first, asked.n_starts, rng, batch)
        label = f"mixture of {self.n_components}" if progress else None
        sums, trace = task.fit(names, first, asked.n_starts, asked.max_iter, asked.tol, rng, label)
        if start is None or isinstance(start, str):
            sums = sums.select("class", np.argsort(-sums.counts, kind="stable"))
        family = choose_within(self.component, rows.family, sums.components, asked.rule)
        return FittedMixture(family, sums, asked.rule, self.pseudo_count, trace)

    def fit_size(
        self,
        X: ArrayLike,
        sizes: Iterable[int],
        sample_weight: ArrayLike | None = None,
        *,
        by: Criterion = "bic",
        **options: Any,
    ) -> FittedMixture:
        """Fit mixtures of several sizes and return the best one.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            Rows, as the component family takes them.
        sizes : iterable of int
            Numbers of components to try. Sizes at which EM collapses are skipped.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row.
        by : {"bic", "icl", "heldout"}, default="bic"
            Criterion: an information criterion, or the negative held-out log-likelihood per row in five folds.
        **options
            Options of `fit`.

        Returns
        -------
        FittedMixture
            The mixture with the lowest criterion; its `criteria` holds those of all sizes.
        """
        if by not in get_args(Criterion):
            raise HyperparameterError(f"by={by!r} is not one of {', '.join(get_args(Criterion))}.")
        wanted = list(sizes)
        if not wanted:
            raise HyperparameterError("there are no sizes to choose from. Give some, such as range(1, 9).")
        criteria: dict[int, float] = {}
        fits: dict[int, FittedMixture] = {}
        failure: DecibanError | None = None
        for M in wanted:
            sized = replace(self, n_components=M)
            try:
                fits[M] = sized.fit(X, sample_weight, **options)
                if by == "heldout":
                    criteria[M] = sized._held_out_loss(X, sample_weight, options)
                else:
                    criteria[M] = getattr(fits[M], by)(X, sample_weight)
            except DecibanError as error:
                failure = error
        if not criteria and failure is not None:
            raise failure
        best = min(criteria, key=lambda M: criteria[M])
        return replace(fits[best], criteria=criteria)

    @staticmethod
    def of(weights: ArrayLike, components: Density) -> MixtureDensity:
        """Return a mixture with known parameters.

        Parameters
        ----------
        weights : array-like of shape (n_components,)
            Probability of each component.
        components : Density
            Density with one group for each component.

        Returns
        -------
        MixtureDensity
            The density Σ_m π_m f(x|m).

        Examples
        --------
        >>> import numpy as np
        >>> from deciban import Bernoulli, Mixture
        >>> coins = Mixture.of([0.1, 0.9], Bernoulli.of([[0.5], [0.2]]))
        >>> round(float(np.exp(coins.log_density(np.array([[1.0]])))[0, 0]), 2)
        0.23
        """
        p = np.asarray(weights, dtype=float)
        if p.shape != (components.K,) or (p < 0).any() or abs(p.sum() - 1) > 1e-6:
            raise HyperparameterError(
                f"weights {p.tolist()} for {components.K} components: give one each, at least 0, with sum 1."
            )
        with np.errstate(divide="ignore"):
            return MixtureDensity(np.log(p), components)

    def _rows(
        self, X: ArrayLike, sample_weight: ArrayLike | None, start: Start | None
    ) -> tuple[WeightedRows, Start | None]:
        """Return the encoded rows of positive weight, with the component's choices made on all of them."""
        block = self.component.encode(X, ())
        n = block.shape[0]
        weight = row_weights(sample_weight, n)
        if weight is not None and not weight.all():
            kept = np.flatnonzero(weight)
            block, weight = block[kept], weight[kept]
            if start is not None and not isinstance(start, MixtureDensity) and np.ndim(start) == 2:
                start = np.asarray(start)[kept]
            n = len(kept)
        if n == 0:
            raise InputError("there are no rows to learn from.")
        require_columns(block)
        members = Members.one_group(n, weight)
        pooled = collect_checked(self.component, block, members, [str(j) for j in range(block.shape[1])])
        component = choose_component(self.component, pooled, (block, members), self.rule)
        return WeightedRows(component, block, weight), start

    def _held_out_loss(self, X: ArrayLike, sample_weight: ArrayLike | None, options: dict[str, Any]) -> float:
        """Return −log-likelihood per row, each fold scored by a fit of the others under "mean", which excludes 0."""
        whole = self.component.encode(X, ())
        n = whole.shape[0]
        weight = row_weights(sample_weight, n)
        weight = np.ones(n) if weight is None else weight
        fold = np.random.default_rng(0).permutation(n) % min(FOLDS, n)
        total = 0.0
        for k in range(fold.max() + 1):
            rest, out = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
            if weight[rest].any() and weight[out].any():
                fitted = self.fit(whole[rest], weight[rest], **options)
                total += float(weight[out] @ fitted.log_density(whole[out], "mean"))
        return -total / float(weight.sum())

    # -- in a classifier: one mixture per class ----------------------------------------------------------------------
    def encode(self, X: Any, columns: Sequence[str], stats: MixtureStats | None = None) -> Rows:
        return self.component.encode(X, columns, None if stats is None else stats.mixing.components)

    def check(self, X: Rows, columns: Sequence[str], learning: bool = False) -> None:
        self.component.check(X, columns, learning)

    def collect(self, X: Rows, members: Members) -> MixtureStats:
        if self.guess is not None:
            return self._expect(X, members, self.guess)
        pooled = self.component.collect(X, members)
        if not pooled.finite:  # the caller then raises the error that names the value
            return self._each_class(X, members, _one_component)
        frozen = replace(self, component=choose_component(self.component, pooled, (X, members), self.rule))
        return frozen._each_class(X, members, partial(frozen._fit_class, asked=self.component))

    def collect_under(self, X: Rows, members: Members, density: MixtureDensities) -> MixtureStats:
        """Collect the sums of one E-step under the mixtures of a density.

        Parameters
        ----------
        X : Rows
            Rows, encoded.
        members : Members
            Group and weight of each row.
        density : MixtureDensities
            The mixture of each group.

        Returns
        -------
        MixtureStats
            Sums of the components of each group.
        """

        def expect_group(rows: WeightedRows, name: object, names: Axis) -> MixtureSums:
            mixture = density.each[members.classes.names.index(name)]
            known = names.take(np.arange(len(mixture.log_weights)))
            sums, _ = rows.expect(mixture, known)
            return _one_component(rows, name, names) if sums is None else sums

        return self._each_class(X, members, expect_group)

    def log_prior(self, density: MixtureDensities) -> float:
        """Compute the log prior of weights and components of all groups, up to a constant.

        Parameters
        ----------
        density : MixtureDensities
            The mixture of each group.

        Returns
        -------
        float
            What rule "map" adds to a log-likelihood.
        """
        return sum(mixture_log_prior(self.component, mixture, self.pseudo_count) for mixture in density.each)

    def choose(self, stats: MixtureStats, rows: tuple[Rows, Members] | None = None, rule: Rule = "mean") -> Self:
        if self.guess is not None:
            return self
        if rows is None:
            raise NotAvailableError("a mixture is estimated by EM over rows, not from sums alone. Refit it.")
        component = choose_component(self.component, self.component.collect(*rows), rows, self.rule)
        component = choose_within(self.component, component, stats.mixing.components, self.rule)
        return replace(self, component=component, guess=stats)

    def refine(self, stats: MixtureStats, X: Rows, members: Members) -> tuple[Self, MixtureStats]:
        """Continue EM over all rows from the frozen estimate; classes without one begin with a start.

        Parameters
        ----------
        stats : MixtureStats
            Sums under the frozen estimate.
        X : Rows
            All rows, encoded.
        members : Members
            Their classes and weights.

        Returns
        -------
        family : Mixture
            The mixture with the new estimate frozen.
        stats : MixtureStats
            The sums at the end of EM.
        """
        better = self._each_class(X, members, self._fit_class)
        return replace(self, guess=better), better

    def refine_parts(self, stats: MixtureStats, X: Rows, members: Members, parts: Passes) -> tuple[Self, MixtureStats]:
        """Continue EM as `refine` does, over rows in parts that stay where they are.

        Parameters
        ----------
        stats : MixtureStats
            Sums of all rows under the frozen estimate.
        X : Rows
            The first rows, encoded.
        members : Members
            Their classes and weights.
        parts : Passes
            All rows, in parts of type `LabelledPart`.

        Returns
        -------
        family : Mixture
            The mixture with the new estimate frozen.
        stats : MixtureStats
            The sums at the end of EM.
        """

        def fit_class(rows: WeightedRows, name: object, names: Axis) -> MixtureSums:
            own = PartedRows(self.component, parts, ClassOfPart(self.component, name))
            return self._fit_class(rows, name, names, parts=own)

        better = replace(self._each_class(X, members, fit_class), rows=stats.rows)
        return replace(self, guess=better), better

    def free_parameters(self, stats: MixtureStats) -> int:
        """Count the parameters of the components that have rows, and their weights.

        Parameters
        ----------
        stats : MixtureStats
            Sums of the mixture of each class.

        Returns
        -------
        int
            The number of all classes together; a tied covariance is one for each class.
        """
        owners = dict.fromkeys(owner for owner, _ in stats.mixing.labels["class"].names)
        alive = [stats.non_empty(name) for name in owners]
        each = (free_parameters(self.component, stats.mixing.components.select("class", some)) for some in alive)
        return sum(each) + sum(len(some) - 1 for some in alive)

    def subset(self, stats: MixtureStats, features: Array, columns: Sequence[Any]) -> tuple[Self, MixtureStats]:
        """Return family and statistics of some of the features.

        Parameters
        ----------
        stats : MixtureStats
            Statistics of all features.
        features : ndarray of int
            Positions of the features to keep, in their new order.
        columns : sequence
            Names of all columns.

        Returns
        -------
        family : Mixture
            The mixture over these features.
        stats : MixtureStats
            Its statistics.
        """
        component, sums = subset(self.component, stats.mixing.components, features, columns)
        fewer = replace(stats, mixing=replace(stats.mixing, components=sums))
        return replace(self, component=component, guess=fewer), fewer

    def estimate(self, stats: MixtureStats, rule: Rule) -> MixtureDensities:
        names = stats.labels["class"].names  # type: ignore[union-attr]
        return MixtureDensities(tuple(self._class_density(stats, name, rule) for name in names))

    def _class_density(self, stats: MixtureStats, name: object, rule: Rule) -> MixtureDensity:
        """Return the mixture of one class; components share parameters within their class only."""
        sums = stats.mixing.select("class", stats.non_empty(name))
        return estimate_mixture(self.component, sums, rule, self.pseudo_count)

    def _each_class(
        self, X: Rows, members: Members, act: Callable[[WeightedRows, Any, Axis], MixtureSums]
    ) -> MixtureStats:
        """Call act(rows of the class, its name, its components) for each class, and join the sums."""
        classes, mixing = members.classes, None
        everything = component_axis(classes.names, classes.declared, self.n_components)
        for k, at, weight in members.groups():
            here = at[weight > 0] if len(at) else at
            kept = weight[weight > 0]
            own = X if len(here) == X.shape[0] else X[here]
            rows = WeightedRows(self.component, own, None if (kept == 1).all() else kept)
            names = everything.take(np.arange(k * self.n_components, (k + 1) * self.n_components))
            if len(here):
                sums = act(rows, classes.names[k], names)
            else:
                sums = rows.collect(rows.X, np.zeros((len(rows), names.size)), names)
            mixing = sums if mixing is None else mixing + sums
        return MixtureStats({"class": classes}, members.weights(), mixing)

    def _fit_class(
        self,
        rows: WeightedRows,
        name: object,
        names: Axis,
        asked: Family | None = None,
        parts: PartedRows | None = None,
    ) -> MixtureSums:
        """Run EM over the rows of one class, or over `parts` that begin with them; a frozen estimate is the start."""
        if len(rows) < self.n_components:
            raise InputError(
                f"class {name!r} has {len(rows)} rows for {self.n_components} components. "
                "Ask for fewer components, or learn more rows of that class."
            )
        start: Start = self.start
        if self.guess is not None and self.guess.has_rows(name):
            start = self._class_density(self.guess, name, self.rule)
            names = names.take(np.arange(len(start.log_weights)))
        task = MixtureFit(rows, self.rule, self.pseudo_count, asked or self.component, parts)
        rng = np.random.default_rng(self.random_state)
        return task.fit(names, start, self.n_starts, self.max_iter, self.tol, rng)[0]

    def _expect(self, X: Rows, members: Members, guess: MixtureStats) -> MixtureStats:
        """Return the sums of one E-step under the frozen estimate."""

        def expect_class(rows: WeightedRows, name: object, names: Axis) -> MixtureSums:
            if not len(guess.positions(name)):
                raise NotAvailableError(
                    f"class {name!r} is new, and a mixture learns a class by EM over its rows. Refit with all classes."
                )
            known = guess.mixing.labels["class"].take(guess.non_empty(name))
            sums, _ = rows.expect(self._class_density(guess, name, self.rule), known)
            if sums is None:
                raise InputError(
                    f"class {name!r}: some rows have density 0 under every component. Refit with these rows."
                )
            return sums

        return self._each_class(X, members, expect_class)


def _one_component(rows: WeightedRows, name: object, names: Axis) -> MixtureSums:
    """Return the sums with all rows in the first component."""
    return rows.collect_shares(names.take(np.arange(1)), lambda begin, end: np.ones((end - begin, 1)))
