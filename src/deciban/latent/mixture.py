"""A mixture that was fitted without classes: clusters, densities and outliers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from deciban import kernels
from deciban.errors import DecibanError, HyperparameterError, InputError, NotAvailableError
from deciban.families.abilities import Unmixable, ability
from deciban.families.fitted import collect_checked
from deciban.families.protocol import Density, Family, Rule, check_rule
from deciban.latent import em
from deciban.latent.class_mixtures import ClassMixtures
from deciban.latent.components import NOT_EXACT, MixtureDensity, MixtureStats, MixtureSums, free_parameters, read
from deciban.latent.expectation import Rows
from deciban.latent.mixture_fit import Task, by_size, check_start
from deciban.read.numbers import row_weights
from deciban.statistics import Array, Axis, Members


@dataclass(frozen=True, eq=False, repr=False)
class FittedMixture:
    """A mixture that was fitted; `mean` and `predictive` are readings of its final sums."""

    family: Any  # of the components, its choices frozen
    sums: MixtureSums  # of the components, at the end
    rule: Rule
    pseudo_count: float
    trace: em.Trace
    criteria: dict[int, float] = field(default_factory=dict)  # number of components → criterion, where it was chosen

    @property
    def stats(self) -> Any:
        """The family's sums of each component."""
        return self.sums.components

    @property
    def counts(self) -> Array:
        """(M,) how many rows each component has."""
        return self.sums.counts

    @property
    def n_components(self) -> int:
        """How many components there are; fewer than asked for where some lost all their rows."""
        return len(self.sums.counts)

    def density(self, rule: Rule | None = None) -> MixtureDensity:
        """The mixture under a rule."""
        return read(self.family, self.sums, rule or self.rule, self.pseudo_count)

    @property
    def weights(self) -> Array:
        """(M,) how often each component is drawn."""
        return np.exp(self.density().log_weights)

    # -- answers -----------------------------------------------------------------------------------------------------
    def predict_proba(self, X: Any, rule: Rule | None = None) -> Array:
        """(n, M) which component drew each row."""
        density, rows = self.density(rule), self._rows(X)
        blocks = [kernels.softmax(density.log_joint(x)) for x, _ in rows.blocks(self.n_components)]
        return np.concatenate(blocks) if blocks else np.zeros((0, self.n_components))

    def predict(self, X: Any, rule: Rule | None = None) -> Array:
        """(n,) the most probable component."""
        density, rows = self.density(rule), self._rows(X)
        blocks = [density.log_joint(x).argmax(axis=1) for x, _ in rows.blocks(self.n_components)]
        return np.concatenate(blocks) if blocks else np.zeros(0, dtype=np.intp)

    def log_density(self, X: Any, rule: Rule | None = None) -> Array:
        """(n,) log f(x)."""
        return self._rows(X).log_density(self.density(rule))

    def sample(self, n: int, random_state: Any = None) -> Any:
        """N rows like the ones learnt."""
        return self.density().sample(np.zeros(n, dtype=np.intp), np.random.default_rng(random_state))

    # -- judging -------------------------------------------------------------------------------------------------------
    @property
    def n_parameters(self) -> int:
        """Free parameters: those of the components, and M − 1 weights."""
        return free_parameters(self.family, self.stats) + self.n_components - 1

    def bic(self, X: Any, sample_weight: Any = None) -> float:
        """−2 log L + p log n: less is better."""
        total, n = self._likelihood(X, sample_weight)
        return -2 * total + self.n_parameters * float(np.log(n))

    def aic(self, X: Any, sample_weight: Any = None) -> float:
        """−2 log L + 2p: less is better."""
        return -2 * self._likelihood(X, sample_weight)[0] + 2 * self.n_parameters

    def icl(self, X: Any, sample_weight: Any = None) -> float:
        """BIC + twice the entropy of the responsibilities: it asks for clusters that are apart."""
        rows, density, entropy = self._rows(X, sample_weight), self.density(), 0.0
        for x, w in rows.blocks(self.n_components):
            log_share = kernels.log_softmax(density.log_joint(x))
            share = np.exp(log_share)
            entropy -= float(w @ (share * np.where(share > 0, log_share, 0.0)).sum(axis=1))
        return self.bic(X, sample_weight) + 2 * entropy

    def _likelihood(self, X: Any, sample_weight: Any) -> tuple[float, float]:
        rows = self._rows(X, sample_weight)
        scores = rows.log_density(self.density())
        return float(scores.sum() if rows.weight is None else rows.weight @ scores), rows.total_weight

    # -- more rows -----------------------------------------------------------------------------------------------------
    def learn(self, X: Any, sample_weight: Any = None, *, step: float | None = None) -> FittedMixture:
        """Add the sums of more rows, collected under the present guess: stepwise EM.

        step : None adds rows, so each counts once; a number in (0, 1] moves the sums that far towards the new rows',
               and forgets as much of the old
        """
        if step is not None and not 0 < step <= 1:
            raise HyperparameterError(f"learn(step={step}): the step must be > 0 and at most 1.")
        rows = self._rows(X, sample_weight)
        self.family.check(rows.X, (), learning=True)
        found, _ = rows.expect(self.density(), self.sums.labels["class"])  # type: ignore[arg-type]
        if found is None:
            raise NotAvailableError("no component explains some of these rows at all. Refit with them, under 'map'.")
        if step is not None:
            found = found * (step * self.counts.sum() / rows.total_weight)
        return replace(self, sums=(self.sums if step is None else self.sums * (1 - step)) + found)

    def unlearn(self, *_: Any) -> None:
        """Refused: the sums of a mixture depend on the guess they were collected with."""
        raise NotAvailableError(NOT_EXACT)

    def _rows(self, X: Any, sample_weight: Any = None) -> Rows:
        block = self.family.encode(X, (), self.stats)
        return Rows(self.family, block, row_weights(sample_weight, block.shape[0]))

    def __repr__(self) -> str:
        return f"FittedMixture({self.n_components} × {type(self.family).__name__}, {self.trace!r})"


# -- size ----------
# The number of components: by an information criterion, or by the likelihood of rows held out.

Criterion: TypeAlias = Literal["bic", "icl", "heldout"]
FOLDS = 5


def best_size(
    mixture: Mixture, X: Any, sizes: Iterable[int], sample_weight: Any, by: Criterion, options: dict[str, Any]
) -> FittedMixture:
    """Fit every size, and keep the one with the least criterion; sizes that collapse are passed over."""
    if by not in get_args(Criterion):
        raise HyperparameterError(f"by={by!r} is not one of {', '.join(get_args(Criterion))}.")
    wanted = list(sizes)
    if not wanted:
        raise HyperparameterError("there are no sizes to choose from. Give some, such as range(1, 9).")
    criteria: dict[int, float] = {}
    fits: dict[int, FittedMixture] = {}
    failure: DecibanError | None = None
    for M in wanted:
        sized = replace(mixture, n_components=M)
        try:
            fits[M] = sized.fit(X, sample_weight, **options)
            if by == "heldout":
                criteria[M] = held_out(sized, X, sample_weight, options)
            else:
                criteria[M] = getattr(fits[M], by)(X, sample_weight)
        except DecibanError as error:
            failure = error
    if not criteria and failure is not None:
        raise failure
    best = min(criteria, key=lambda M: criteria[M])
    return replace(fits[best], criteria=criteria)


def held_out(mixture: Mixture, X: Any, sample_weight: Any, options: dict[str, Any]) -> float:
    """−log-likelihood a row, each fold scored by the mixture of the others; read by `mean`, so that nothing is 0."""
    whole = mixture.component.encode(X, ())
    n = whole.shape[0]
    weight = row_weights(sample_weight, n)
    weight = np.ones(n) if weight is None else weight
    fold = np.random.default_rng(0).permutation(n) % min(FOLDS, n)
    total = 0.0
    for k in range(fold.max() + 1):
        rest, out = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        if weight[rest].any() and weight[out].any():
            fitted = mixture.fit(whole[rest], weight[rest], **options)
            total += float(weight[out] @ fitted.log_density(whole[out], "mean"))
    return -total / float(weight.sum())


# -- mixture ----------
# Mixtures of any family, by EM.
#
#     f(x) = Σ_m π_m f(x|m)       E: γ_nm ∝ π_m f(x_n|m)       M: the family's estimate on γ-weighted sums, π_m = N_m/N
#
# The mixing weights have a Dirichlet(α) prior; α = 1 leaves them alone. A mixture's sums depend on the current guess,
# so
# it cannot be unlearnt exactly, nor left one out.
#
# As the density of each class in a classifier a mixture is a family like any other: EM over the first rows makes the
# guess, a frozen choice as a prior's scale is; the sums of all rows are then collected under it, and add up.
#
# Reference: McLachlan & Peel, Finite Mixture Models (2000).


@dataclass(frozen=True, eq=False, repr=False)
class Mixture(ClassMixtures, Family):
    """A mixture of `n_components` of one family; `fit` finds them without labels.

    rule  : what EM climbs under, "ml" or "map"; every rule is a reading of the sums it ends with
    start : "k-means++" (models of single rows, far apart) or "random" (responsibilities); the best of `n_starts`

    >>> import numpy as np
    >>> from deciban import Gaussian, Mixture
    >>> rng = np.random.default_rng(0)
    >>> X = np.r_[rng.normal(0, 1, (100, 1)), rng.normal(9, 1, (50, 1))]
    >>> Mixture(Gaussian(), 2).fit(X, random_state=0).weights.round(2)
    array([0.67, 0.33])
    >>> Mixture(Gaussian()).fit_size(X, range(1, 4), by="bic", random_state=0)
    FittedMixture(2 × Gaussian, Trace(... iterations, converged, ...))
    """

    component: Family
    n_components: int = 2
    pseudo_count: float = 1.0
    _: KW_ONLY
    rule: Rule = "map"
    start: str = "k-means++"
    n_starts: int = 5
    max_iter: int = 1000
    tol: float = 1e-7  # least gain a row
    seed: int = 0  # of the starts, where the mixture is the density of a class
    guess: MixtureStats | None = field(default=None, repr=False)  # frozen at the first fit of a classifier

    def __post_init__(self) -> None:
        if self.n_components < 1 or self.pseudo_count <= 0:
            raise HyperparameterError(
                f"Mixture(n_components={self.n_components}, pseudo_count={self.pseudo_count}): "
                "there must be at least one component, and the pseudo-count must be > 0."
            )
        if not isinstance(self.component, Family):
            raise HyperparameterError(f"{self.component!r} is not a family. Use one such as Gaussian().")
        if ability(self.component, Unmixable) is not None:
            raise HyperparameterError(
                f"{self.component!r} cannot be mixed. Count words once, with deciban.sklearn.CountVectorizer, and mix "
                "the counts: Mixture(Multinomial(), 2)."
            )
        check_start(self.start)
        _check_climbing(self.rule)

    def __repr__(self) -> str:
        """What was asked for; the guess is left out."""
        plain = [f for f in fields(self) if f.name not in ("component", "n_components", "guess")]
        said = [f"{f.name}={getattr(self, f.name)!r}" for f in plain if getattr(self, f.name) != f.default]
        return f"Mixture({', '.join([repr(self.component), repr(self.n_components), *said])})"

    def fit(  # type: ignore[override]
        self,
        X: Any,
        sample_weight: Any = None,
        *,
        rule: Rule | None = None,
        start: Any = None,
        n_starts: int | None = None,
        max_iter: int | None = None,
        tol: float | None = None,
        random_state: Any = None,
        batch: int | None = None,
        progress: bool = False,
    ) -> FittedMixture:
        """EM from `start`: its name, responsibilities (n, M), or a mixture's density; else the mixture's own settings.

        batch : rows of a batch: three stepwise passes come first, then EM goes on from where they led
        """
        rule = self.rule if rule is None else rule
        _check_climbing(rule)
        rows, start = self._rows(X, sample_weight, start)
        task = Task(rows, rule, self.pseudo_count)
        rng = np.random.default_rng(random_state)
        names = Axis.of(self.n_components)
        given = self.start if start is None else start
        tries = self.n_starts if n_starts is None else n_starts
        if batch is not None:
            given = task.by_batches(names, given, tries, rng, batch)
        sums, trace = task.fit(
            names,
            given,
            tries,
            self.max_iter if max_iter is None else max_iter,
            self.tol if tol is None else tol,
            rng,
            f"mixture of {self.n_components}" if progress else None,
        )
        if start is None or isinstance(start, str):
            sums = sums.select("class", by_size(sums))
        return FittedMixture(rows.family, sums, rule, self.pseudo_count, trace)

    def fit_size(
        self, X: Any, sizes: Iterable[int], sample_weight: Any = None, *, by: Criterion = "bic", **options: Any
    ) -> FittedMixture:
        """The number of components by "bic", "icl" or "heldout" likelihood; `criteria` of the answer has them all."""
        return best_size(self, X, sizes, sample_weight, by, options)

    @staticmethod
    def of(weights: Any, components: Density) -> MixtureDensity:
        """A known mixture: how often each group of a known density is drawn.

        >>> from deciban import Bernoulli, Mixture
        >>> coins = Mixture.of([0.1, 0.9], Bernoulli.of([[0.5], [0.2]]))
        >>> round(float(np.exp(coins.log_density(np.array([[1.0]])))[0, 0]), 2)
        0.23
        """
        weights = np.asarray(weights, dtype=float)
        if weights.shape != (components.K,) or (weights < 0).any() or abs(weights.sum() - 1) > 1e-6:
            raise HyperparameterError(
                f"weights {weights.tolist()} for {components.K} components: give one each, at least 0, with sum 1."
            )
        with np.errstate(divide="ignore"):
            return MixtureDensity(np.log(weights), components)

    def _rows(self, X: Any, sample_weight: Any, start: Any = None) -> tuple[Rows, Any]:
        """Rows of positive weight, encoded; the component's choices frozen on all of them."""
        block = self.component.encode(X, ())
        n = block.shape[0]
        weight = row_weights(sample_weight, n)
        if weight is not None and not weight.all():
            kept = np.flatnonzero(weight)
            block, weight = block[kept], weight[kept]
            start = np.asarray(start)[kept] if start is not None and np.ndim(start) == 2 else start
            n = len(kept)
        if n == 0:
            raise InputError("there are no rows to learn from.")
        members = Members.one_group(n, weight)
        pooled = collect_checked(self.component, block, members, [str(j) for j in range(block.shape[1])])
        return Rows(self.component.choose(pooled, (block, members)), block, weight), start


def _check_climbing(rule: Rule) -> None:
    check_rule(rule)
    if rule not in ("ml", "map"):
        raise HyperparameterError(f"rule={rule!r}: EM climbs under 'ml' or 'map'; other rules are readings after it.")
