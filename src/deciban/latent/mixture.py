"""Mixtures of any family, by EM.

    f(x) = Σ_m π_m f(x|m)       E: γ_nm ∝ π_m f(x_n|m)       M: the family's estimate on γ-weighted sums, π_m = N_m/N

The mixing weights have a Dirichlet(α) prior; α = 1 leaves them alone. A mixture's sums depend on the current guess, so
it cannot be unlearnt exactly, nor left one out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from deciban import kernels
from deciban.errors import DecibanError, HyperparameterError, InputError, NotAvailableError
from deciban.families.fitted import collect_checked
from deciban.families.protocol import Density, Family, Rule, check_rule
from deciban.features.weights import row_weights
from deciban.latent import em
from deciban.statistics import Array, Members


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

    def sample(self, codes: Array, rng: np.random.Generator) -> Any:
        """A component for each row, then the row."""
        return self.components.sample(rng.choice(len(self.log_weights), len(codes), p=np.exp(self.log_weights)), rng)


@dataclass(frozen=True, eq=False)
class Mixture:
    """A mixture of `n_components` of one family; `fit` finds them without labels.

    >>> import numpy as np
    >>> from deciban import Gaussian, Mixture
    >>> rng = np.random.default_rng(0)
    >>> X = np.r_[rng.normal(0, 1, (100, 1)), rng.normal(9, 1, (50, 1))]
    >>> Mixture(Gaussian(), 2).fit(X, random_state=0).weights.round(2)
    array([0.67, 0.33])
    """

    component: Family
    n_components: int
    pseudo_count: float = 1.0

    def __post_init__(self) -> None:
        if self.n_components < 1 or self.pseudo_count <= 0:
            raise HyperparameterError(
                f"Mixture(n_components={self.n_components}, pseudo_count={self.pseudo_count}): "
                "there must be at least one component, and the pseudo-count must be > 0."
            )

    def fit(
        self,
        X: Any,
        sample_weight: Any = None,
        *,
        rule: Rule = "map",
        start: Any = None,
        n_starts: int = 5,
        max_iter: int = 500,
        tol: float = 1e-8,
        random_state: Any = None,
    ) -> FittedMixture:
        """EM from given responsibilities `start` (n, M), or from the best of `n_starts` short runs."""
        check_rule(rule)
        if rule not in ("ml", "map"):
            raise HyperparameterError(
                f"rule={rule!r}: EM climbs under 'ml' or 'map'; other rules are readings after it."
            )
        block = self.component.encode(X, ())
        n = block.shape[0]
        weight = row_weights(sample_weight, n)
        weight = np.ones(n) if weight is None else weight
        if n < self.n_components:
            raise InputError(f"{self.n_components} components of {n} rows: there are not enough rows. Ask for fewer.")
        pooled = collect_checked(self.component, block, Members.one_group(n, weight), ())
        task = Task(self, self.component.choose(pooled, (block, Members.one_group(n, weight))), block, weight, rule)
        if start is not None:
            first = task.maximise(np.asarray(start, dtype=float) * weight[:, None])
        else:
            first = task.best_start(n_starts, np.random.default_rng(random_state))
        last, trace = em.run(task.step, first, weight.sum(), max_iter, tol)
        order = np.argsort(-last.counts, kind="stable") if start is None else np.arange(self.n_components)
        return FittedMixture(
            task.family, last.stats.select("class", order), last.counts[order], rule, self.pseudo_count, trace
        )


class Guess(NamedTuple):
    """Where EM stands: the sums of the last E-step, and the density estimated from them."""

    stats: Any
    counts: Array  # (M,) rows of each component
    density: MixtureDensity


@dataclass(frozen=True, eq=False)
class Task:
    """One mixture to be fitted to one set of rows."""

    mixture: Mixture
    family: Any
    X: Any
    weight: Array
    rule: Rule

    def step(self, guess: Guess) -> tuple[Guess, float]:
        """One EM step, and the objective of the density it started from."""
        density = guess.density
        joint = density.log_joint(self.X)
        total = kernels.log_sum_exp(joint)
        if np.isneginf(total).any():
            return guess, -np.inf
        objective = float(self.weight @ (total + density.log_base(self.X))) + self.log_prior(density)
        return self.maximise(np.exp(joint - total[:, None]) * self.weight[:, None]), objective

    def maximise(self, shares: Array) -> Guess:
        """The M-step: estimates from weighted sums."""
        stats, counts = self.family.collect(self.X, Members.soft(shares)), shares.sum(axis=0)
        return Guess(stats, counts, read(self.family, stats, counts, self.rule, self.mixture.pseudo_count))

    def log_prior(self, density: MixtureDensity) -> float:
        """What `map` adds to the log-likelihood, up to a constant."""
        if self.rule == "ml":
            return 0.0
        mixing = (self.mixture.pseudo_count - 1) * float(np.sum(density.log_weights))
        return mixing + self.family.log_prior(density.components)

    def best_start(self, n_starts: int, rng: np.random.Generator) -> Guess:
        """The best of several short runs, each from rows drawn at random as seeds."""
        runs: list[tuple[float, Any]] = []
        failure: DecibanError | None = None
        for _ in range(max(n_starts, 1)):
            try:
                guess, trace = em.run(self.step, self.seed(rng), self.weight.sum(), 15, 0.0, warn=False)
                runs.append((trace.objective[-1], guess))
            except DecibanError as error:
                failure = error
        if not runs and failure is not None:
            raise failure
        return max(runs, key=lambda run: run[0])[1]

    def seed(self, rng: np.random.Generator) -> Guess:
        """Responsibilities by how well models of single rows, held up by the prior, explain each row."""
        M = self.mixture.n_components
        rows = rng.choice(len(self.weight), M, replace=False, p=self.weight / self.weight.sum())
        seeds = self.family.estimate(self.family.collect(self.X[rows], Members.hard(np.arange(M), M)), "mean")
        near = kernels.softmax(seeds.log_density(self.X)) + 1e-3  # no component starts empty
        return self.maximise(near / near.sum(axis=1, keepdims=True) * self.weight[:, None])


def read(family: Any, stats: Any, counts: Array, rule: Rule, pseudo_count: float) -> MixtureDensity:
    """A mixture's density from its sums, under a rule."""
    extra = {"ml": 0.0, "map": pseudo_count - 1}.get(rule, pseudo_count)
    mixing = np.maximum(counts + extra, 0.0)
    with np.errstate(divide="ignore"):
        return MixtureDensity(np.log(mixing / mixing.sum()), family.estimate(stats, rule))


@dataclass(frozen=True, eq=False, repr=False)
class FittedMixture:
    """A mixture that was fitted; `mean` and `predictive` are readings of its final sums."""

    family: Any
    stats: Any  # sums of the components at the end
    counts: Array  # (M,) rows of each
    rule: Rule
    pseudo_count: float
    trace: em.Trace

    def density(self, rule: Rule | None = None) -> MixtureDensity:
        """The mixture under a rule."""
        return read(self.family, self.stats, self.counts, rule or self.rule, self.pseudo_count)

    @property
    def weights(self) -> Array:
        """(M,) how often each component is drawn."""
        return np.exp(self.density().log_weights)

    def predict_proba(self, X: Any) -> Array:
        """(n, M) which component drew each row."""
        return kernels.softmax(self.density().log_joint(self.family.encode(X, (), self.stats)))

    def predict(self, X: Any) -> Array:
        """(n,) the most probable component."""
        return self.predict_proba(X).argmax(axis=1)

    def log_density(self, X: Any, rule: Rule | None = None) -> Array:
        """(n,) log f(x)."""
        block = self.family.encode(X, (), self.stats)
        density = self.density(rule)
        return density.log_density(block)[:, 0] + density.log_base(block)

    def sample(self, n: int, random_state: Any = None) -> Any:
        """N rows like the ones learnt."""
        return self.density().sample(np.zeros(n, dtype=np.intp), np.random.default_rng(random_state))

    def unlearn(self, *_: Any) -> None:
        """Refused: the sums of a mixture depend on the guess they were collected with."""
        raise NotAvailableError("a mixture cannot be unlearnt exactly: refit it without those rows.")

    def __repr__(self) -> str:
        return f"FittedMixture({len(self.counts)} × {type(self.family).__name__}, {self.trace!r})"
