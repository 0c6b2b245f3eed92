"""Mixtures of any family, by EM.

    f(x) = Σ_m π_m f(x|m)       E: γ_nm ∝ π_m f(x_n|m)       M: the family's estimate on γ-weighted sums, π_m = N_m/N

The mixing weights have a Dirichlet(α) prior; α = 1 leaves them alone. A mixture's sums depend on the current guess, so
it cannot be unlearnt exactly, nor left one out.

As the density of each class in a classifier a mixture is a family like any other: EM over the first rows makes the
guess, a frozen choice as a prior's scale is; the sums of all rows are then collected under it, and add up.

Reference: McLachlan & Peel, Finite Mixture Models (2000).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, field, fields
from typing import Any

import numpy as np

from deciban.errors import HyperparameterError, InputError
from deciban.families.fitted import collect_checked
from deciban.families.protocol import Density, Family, Rule, check_rule
from deciban.features.weights import row_weights
from deciban.latent import size
from deciban.latent.class_mixtures import ClassMixtures
from deciban.latent.components import MixtureDensity, MixtureStats
from deciban.latent.expectation import Rows
from deciban.latent.fitted_mixture import FittedMixture
from deciban.latent.starts import check_start
from deciban.latent.task import Task, by_size
from deciban.statistics import Axis, Members


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
        if not self.component.mixes:
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
        self, X: Any, sizes: Iterable[int], sample_weight: Any = None, *, by: size.Criterion = "bic", **options: Any
    ) -> FittedMixture:
        """The number of components by "bic", "icl" or "heldout" likelihood; `criteria` of the answer has them all."""
        return size.best_size(self, X, sizes, sample_weight, by, options)

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
